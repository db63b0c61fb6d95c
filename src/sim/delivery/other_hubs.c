#include "sim/delivery/internal.h"

/* What the other hubs of a group do to partitions that this one does not have:
 * they deliver, park and lose messages as they like, each in whole transactions
 * of the store, or in a store of their own that this hub never sees.
 *
 * With a shared store each change here is one of rows, dead letters and the
 * counts of a cursor together, and the books must balance after it
 * (settle_lane() checks). Stores of their own are known by the group's offset
 * alone.
 *
 * There is no second flow: this is written by the rules of one (what is ordered
 * blocks at a parked message, the base never goes back), and must follow them
 * if they change. */

static const stg_world_message *message(const stg_world *w, uint32_t p,
                                        uint64_t i)
{
    return &w->log[w->partitions[p].messages[i]];
}

/* Where message i of the partition is; or the next one will be. */
static uint64_t position_of(const stg_world *w, uint32_t p, uint64_t i)
{
    if (i < w->partitions[p].count)
        return message(w, p, i)->position;
    return w->partitions[p].last + 1;
}

/* -- one message ----------------------------------------------------------- */

/* Parks a message after one attempt that was answered 503. The other hub may
 * have the lane in no order where this one has one: then its rows are holes in
 * the order. */
static void park(stg_world *w, uint32_t lane, const stg_world_message *m)
{
    stg_world_lane *l = w->lanes[lane];
    stg_cursor *c = &l->cursors[m->partition].c;
    stg_ns wall = stg_world_wall(w);
    stg_world_row row = {.lane = lane,
                         .partition = m->partition,
                         .position = m->position,
                         .progress = stg_progress_begin(l->policy),
                         .failure = {.outcome = stg_answered(503),
                                     .why = STG_WHY_BACKOFF,
                                     .first_attempt_at = wall,
                                     .last_attempt_at = wall,
                                     .detail = ""},
                         .has_failure = true,
                         .wait = 100 * STG_MS,
                         .began_at = wall,
                         .due_at = wall + 100 * STG_MS};

    row.progress.attempts = 1;
    if (!stg_world_add_row(w, &row))
        return;
    c->routed++;
    c->parked++;
    l->has_shed |= l->o.order != STG_ORDER_NONE && !c->is_ordered;
}

/* r: its row, which ends with it; NULL: it was delivered at once. */
static void deliver(stg_world *w, uint32_t lane, uint64_t i, stg_world_row *r)
{
    stg_world_lane *l = w->lanes[lane];
    stg_cursor *c = &l->cursors[w->log[i].partition].c;

    if (r != NULL) {
        c->parked--;
        stg_world_delete_row(w, r);
    } else {
        c->routed++;
    }
    c->delivered++;
    l->receipts[i].processed++;
}

/* What is too large is dead without an attempt. */
static void refuse(stg_world *w, uint32_t lane, const stg_world_message *m)
{
    const stg_failure too_large = {.outcome = stg_failed(STG_FAULT_TOO_LARGE)};
    stg_cursor *c = &w->lanes[lane]->cursors[m->partition].c;

    stg_world_put_dead(w, &(stg_change){.kind = STG_CHANGE_DEAD,
                                        .lane = lane,
                                        .partition = m->partition,
                                        .position = m->position,
                                        .failure = &too_large});
    c->routed++;
    c->dead++;
}

/* Settles or parks one message, by chance. Returns whether the base may pass
 * it: an ordered lane stands before its parked message. In such a lane only the
 * last of the messages may be parked, and a row is always delivered, as it
 * comes before all else. */
static bool settle_one(stg_world *w, uint32_t lane, uint64_t i, bool is_last)
{
    stg_world_lane *l = w->lanes[lane];
    const stg_world_message *m = &w->log[i];
    stg_world_cursor *c = &l->cursors[m->partition];
    stg_world_row *r =
        stg_world_find_row(w, lane, m->partition, m->position, 0);
    bool is_settled = stg_world_is_settled(c, m->position);

    if (m->position < c->begin ||
        !stg_world_is_routed(l, m->partition, m->position))
        return true;
    if (r != NULL && (c->c.is_ordered || stg_rng_upto(&w->rng, 1) == 0)) {
        deliver(w, lane, i, r);
    } else if (r == NULL && !is_settled && m->true_size > 0) {
        refuse(w, lane, m);
    } else if (r == NULL && !is_settled &&
               (c->c.is_ordered ? is_last : stg_rng_upto(&w->rng, 3) == 0)) {
        park(w, lane, m);
        return !c->c.is_ordered;
    } else if (r == NULL && !is_settled) {
        deliver(w, lane, i, NULL);
    }
    return true;
}

/* -- a lane ---------------------------------------------------------------- */

/* What the log had lost becomes a bulk row. */
static void lose(stg_world *w, uint32_t lane, uint32_t p)
{
    stg_world_cursor *c = &w->lanes[lane]->cursors[p];
    uint64_t trimmed = w->partitions[p].trimmed, first = 0;
    uint64_t count = stg_positions_missing(c->c.settled, c->c.settled_count,
                                           c->c.base, trimmed, &first);

    if (count == 0)
        return;
    stg_world_put_dead(w, &(stg_change){.kind = STG_CHANGE_RANGE,
                                        .lane = lane,
                                        .partition = p,
                                        .position = first,
                                        .replay = STG_REPLAY_LOST,
                                        .last_position = trimmed - 1,
                                        .count = count,
                                        .is_expired = true});
    c->c.routed += count;
    c->c.dead += count;
}

/* Settled ranges below the base are no longer listed. */
static void raise_base(stg_world_cursor *c, uint64_t base)
{
    size_t count = 0;

    c->c.base = stg_ns_max(c->c.base, base);
    for (size_t i = 0; i < c->c.settled_count; i++)
        count = stg_positions_append(c->settled, count,
                                     stg_ns_max(c->settled[i].first, c->c.base),
                                     c->settled[i].last + 1);
    c->c.settled_count = count;
}

/* The order may change only while no first delivery is parked (replays do not
 * count): rows of the other order would have to end first. */
static void settle_lane(stg_world *w, uint32_t lane, uint32_t p, uint64_t count)
{
    stg_world_cursor *c = &w->lanes[lane]->cursors[p];
    uint64_t base = stg_ns_max(c->c.base, w->partitions[p].trimmed);
    uint64_t i = stg_world_find(w, p, base);
    bool is_head = stg_rng_upto(&w->rng, 1) == 0;

    lose(w, lane, p);
    if (c->c.parked == c->c.replays)
        c->c.is_ordered = stg_rng_upto(&w->rng, 1) == 0;
    for (; count > 0 && i < w->partitions[p].count; count--, i++) {
        if (!settle_one(w, lane, w->partitions[p].messages[i],
                        is_head && count == 1))
            break;
        base = position_of(w, p, i + 1);
    }
    raise_base(c, base);
    stg_world_check_cursor(w, c);
}

/* -- a partition ----------------------------------------------------------- */

/* Their store is another: what they did this hub learns from the group's
 * offset. */
static void pass_all(stg_world *w, uint32_t p, uint64_t count)
{
    stg_world_partition *at = &w->partitions[p];
    uint64_t i = stg_world_find(w, p, at->group_at);

    for (; count > 0 && i < at->count; count--, i++)
        for (uint32_t l = 0; l < w->lane_count; l++) {
            w->lanes[l]->receipts[at->messages[i]].processed++;
            w->lanes[l]->has_lost = w->lanes[l]->has_shed = true;
        }
    at->group_at = stg_ns_max(at->group_at, position_of(w, p, i));
}

/* Nothing where this hub has the partition by right: it must be away, or
 * fenced. What the others do raises `crashes`: they may repeat what was under
 * way here. Each time counts as another claim, with a generation of its own. */
void stg_world_settle_elsewhere(stg_world *w, uint32_t partition,
                                uint64_t count)
{
    stg_world_partition *at = &w->partitions[partition];

    if (at->where != STG_WORLD_AWAY && at->generation <= at->claimed)
        return;
    w->crashes++;
    if (w->keeps_rows) {
        pass_all(w, partition, count);
        return;
    }
    at->generation++;
    for (uint32_t l = 0; l < w->lane_count; l++)
        if (w->lanes[l]->cursors[partition].is_known &&
            !w->lanes[l]->is_removing)
            settle_lane(w, l, partition, count);
}

/* The hubs that have the other partitions remove the lane as well, at once. */
void stg_world_forget_elsewhere(stg_world *w, uint32_t lane)
{
    for (uint32_t p = 0; p < w->partition_count; p++) {
        stg_change c = {
            .kind = STG_CHANGE_CANCEL, .lane = lane, .partition = p};

        if (w->keeps_rows || stg_world_is_assigned(w, p))
            continue;
        stg_world_cancel_rows(w, &c);
        w->lanes[lane]->cursors[p].is_known = false;
    }
}
