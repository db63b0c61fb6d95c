#include "sim/delivery/internal.h"

#include <string.h>

/* What the store of a world holds: parked rows, dead letters, cursors. A group
 * may come again after its answer was lost, and after a replay of what it made:
 * all changes are idempotent, and a replayed letter stays replayed.
 *
 * Arrays have no order: what is deleted is replaced by the last one. A pointer
 * to a row or letter is good until one is added or deleted, and a loop that
 * deletes must look at the same place again, or go backwards. Each array has its
 * keys, and each cursor the numbers of its rows (`tally`). */

/* -- parked rows ----------------------------------------------------------- */

static stg_world_key key_of_row(const stg_world_row *r)
{
    return (stg_world_key){.position = r->position,
                           .lane = r->lane,
                           .partition = r->partition,
                           .replay = r->replay};
}

stg_world_row *stg_world_find_row(const stg_world *w, uint32_t lane,
                                  uint32_t partition, uint64_t position,
                                  uint32_t replay)
{
    stg_world_key key = {.position = position,
                         .lane = lane,
                         .partition = partition,
                         .replay = replay};
    size_t i = stg_world_keys_find(&w->row_keys, &key);

    return i == SIZE_MAX ? NULL : &w->rows[i];
}

static stg_world_tally *tally_of_row(const stg_world *w, const stg_world_row *r)
{
    return &w->lanes[r->lane]->cursors[r->partition].tally;
}

void stg_world_delete_row(stg_world *w, stg_world_row *r)
{
    stg_world_key key;

    if (r == NULL)
        return;
    tally_of_row(w, r)->parked--;
    tally_of_row(w, r)->replays -= r->replay > 0;
    key = key_of_row(r);
    stg_world_keys_remove(&w->row_keys, &key);
    *r = w->rows[--w->row_count];
    if (r == &w->rows[w->row_count])
        return;
    key = key_of_row(r);
    stg_world_keys_put(w, &w->row_keys, &key, (size_t)(r - w->rows));
}

bool stg_world_add_row(stg_world *w, const stg_world_row *row)
{
    stg_world_key key = key_of_row(row);

    if (!stg_world_grow(w, &w->rows, &w->row_capacity, w->row_count + 1,
                        sizeof *w->rows) ||
        !stg_world_keys_put(w, &w->row_keys, &key, w->row_count))
        return false;
    w->rows[w->row_count++] = *row;
    tally_of_row(w, row)->parked++;
    tally_of_row(w, row)->replays += row->replay > 0;
    return true;
}

/* Replaces the row, if it is there. The texts of a failure are lent for the
 * call, and are not kept. */
static void park(stg_world *w, const stg_change *c)
{
    stg_world_row *r =
        stg_world_find_row(w, c->lane, c->partition, c->position, c->replay);
    stg_world_row row = {.lane = c->lane,
                         .partition = c->partition,
                         .position = c->position,
                         .replay = c->replay,
                         .attempts_before = c->attempts_before,
                         .progress = c->progress,
                         .began_at = c->began_at,
                         .wait = c->wait,
                         .due_at = c->due_at,
                         .has_failure = c->failure != NULL};

    stg_world_require(
        w, r != NULL || c->message != NULL, "I13",
        stg_about_message(c->lane, c->partition, c->position),
        "a row that the store does not have comes with its message");
    if (c->failure != NULL) {
        row.failure = *c->failure;
        row.failure.detail = "";
        row.failure.answer = NULL;
        row.failure.answer_size = 0;
    }
    if (r != NULL)
        *r = row;
    else
        (void)stg_world_add_row(w, &row);
}

/* -- dead letters ---------------------------------------------------------- */

static stg_world_key key_of_change(const stg_world *w, const stg_change *c)
{
    return (stg_world_key){.position = c->position,
                           .lane = c->lane,
                           .partition = c->partition,
                           .replay = c->replay,
                           .life = w->lanes[c->lane]->life};
}

static stg_world_key key_of_dead(const stg_world_dead *d)
{
    return (stg_world_key){.position = d->position,
                           .lane = d->lane,
                           .partition = d->partition,
                           .replay = d->replay,
                           .life = d->life};
}

static stg_world_dead *find_dead(stg_world *w, const stg_change *c)
{
    stg_world_key key = key_of_change(w, c);
    size_t i = stg_world_keys_find(&w->dead_keys, &key);

    return i == SIZE_MAX ? NULL : &w->dead[i];
}

/* What was replayed since stays so when a group comes again. */
static bool was_replayed(const stg_world *w, const stg_change *c)
{
    stg_world_key key = key_of_change(w, c);
    size_t i = stg_world_keys_find(&w->replayed_keys, &key);

    return i != SIZE_MAX && w->replayed[i].count == c->count;
}

/* Of the lane's present life. */
static uint64_t *tally_of_dead(const stg_world *w, const stg_world_dead *d)
{
    stg_world_tally *t = &w->lanes[d->lane]->cursors[d->partition].tally;

    return d->is_cancelled ? &t->cancelled : &t->dead;
}

static void count_dead(const stg_world *w, const stg_world_dead *d)
{
    *tally_of_dead(w, d) += stg_world_count_dead(d);
}

static void uncount_dead(const stg_world *w, const stg_world_dead *d)
{
    *tally_of_dead(w, d) -= stg_world_count_dead(d);
}

static bool add_dead(stg_world *w, const stg_world_dead *d)
{
    stg_world_key key = key_of_dead(d);

    if (!stg_world_grow(w, &w->dead, &w->dead_capacity, w->dead_count + 1,
                        sizeof *w->dead) ||
        !stg_world_keys_put(w, &w->dead_keys, &key, w->dead_count))
        return false;
    w->dead[w->dead_count++] = *d;
    count_dead(w, d);
    return true;
}

static void delete_dead(stg_world *w, stg_world_dead *d)
{
    stg_world_key key = key_of_dead(d);

    uncount_dead(w, d);
    stg_world_keys_remove(&w->dead_keys, &key);
    *d = w->dead[--w->dead_count];
    if (d == &w->dead[w->dead_count])
        return;
    key = key_of_dead(d);
    stg_world_keys_put(w, &w->dead_keys, &key, (size_t)(d - w->dead));
}

/* I34: what is dead as expired had a time at which it expires. */
static void check_expired(stg_world *w, const stg_change *c)
{
    uint64_t i;

    if (c->failure->outcome.fault != STG_FAULT_MESSAGE_EXPIRED)
        return;
    i = stg_world_index(w, c->partition, c->position);
    stg_world_require(w, i < w->log_count && w->log[i].expires_at > 0, "I34",
                      stg_about_message(c->lane, c->partition, c->position),
                      "only what expires is dead as expired");
}

static stg_world_dead make_dead(stg_world *w, const stg_change *c)
{
    stg_world_dead d = {.lane = c->lane,
                        .partition = c->partition,
                        .position = c->position,
                        .replay = c->replay,
                        .last_position = c->last_position,
                        .count = c->count,
                        .is_cancelled = c->is_cancelled,
                        .is_expired = c->is_expired,
                        .reason = c->reason,
                        .life = w->lanes[c->lane]->life,
                        .attempts = (uint32_t)c->attempts_before +
                                    c->progress.attempts};

    if (c->failure != NULL) {
        check_expired(w, c);
        d.outcome = c->failure->outcome;
        d.why = c->failure->why;
    }
    return d;
}

/* A letter that is there is replaced, by one of its kind. One that was replayed
 * since is not written again: it would be delivered, and dead as well. */
void stg_world_put_dead(stg_world *w, const stg_change *c)
{
    stg_world_dead *d = find_dead(w, c), made;

    if (d == NULL && was_replayed(w, c))
        return;
    made = make_dead(w, c);
    if (d == NULL) {
        (void)add_dead(w, &made);
        return;
    }
    stg_world_require(
        w,
        (d->count > 0) == (c->count > 0) && d->is_cancelled == c->is_cancelled,
        "I13", stg_about_message(c->lane, c->partition, c->position),
        "a bulk row is not the row of a delivery, nor one cancelled one "
        "shed");
    uncount_dead(w, d);
    *d = made;
    count_dead(w, d);
}

/* Each parked row of the lane in the partition becomes a dead letter. */
void stg_world_cancel_rows(stg_world *w, const stg_change *c)
{
    for (size_t i = 0; i < w->row_count;) {
        const stg_world_row *r = &w->rows[i];
        stg_change each = *c;

        if (r->lane != c->lane || r->partition != c->partition) {
            i++;
            continue;
        }
        each.position = r->position;
        each.replay = r->replay;
        each.progress = r->progress;
        each.attempts_before = r->attempts_before;
        each.is_cancelled = true;
        stg_world_put_dead(w, &each);
        stg_world_delete_row(w, &w->rows[i]);
    }
}

/* -- a group, as one transaction ------------------------------------------- */

/* What a bulk row grows by is said, too, for the metrics; where it is told again
 * after an unknown outcome, it has grown already. */
static void check_growth(stg_world *w, const stg_change *c)
{
    const stg_world_dead *d = find_dead(w, c);

    if (d != NULL)
        stg_world_require(
            w, d->count == c->count || d->count == c->count - c->added, "I17",
            stg_about_message(c->lane, c->partition, c->position),
            "a bulk row grows by as much as its change says");
}

/* A row ends with its delivery, whether delivered or dead. */
static void apply_change(stg_world *w, const stg_change *c)
{
    stg_world_lane *l = w->lanes[c->lane];
    uint64_t i;

    switch (c->kind) {
    case STG_CHANGE_PARK:
        park(w, c);
        break;
    case STG_CHANGE_DEAD:
        stg_world_put_dead(w, c);
        // Given up before an attempt, perhaps.
        i = stg_world_index(w, c->partition, c->position);
        if (i < w->log_count)
            l->receipts[i].is_over = true;
        __attribute__((fallthrough));
    case STG_CHANGE_DELIVERED:
        stg_world_delete_row(w, stg_world_find_row(w, c->lane, c->partition,
                                                   c->position, c->replay));
        break;
    case STG_CHANGE_RANGE:
        check_growth(w, c);
        stg_world_put_dead(w, c);
        // Its order has a hole, of which flow may not have told yet.
        l->has_shed = true;
        break;
    case STG_CHANGE_CANCEL:
        stg_world_cancel_rows(w, c);
        break;
    case STG_CHANGE_FORGET:
        l->cursors[c->partition].is_known = false;
        l->is_forgotten = true;
        break;
    }
}

/* Positions are copied, for a group is flow's. Checked against the rows only
 * now, when all changes of the group have been made. */
static void apply_cursor(stg_world *w, const stg_cursor *c)
{
    stg_world_cursor *known = &w->lanes[c->lane]->cursors[c->partition];

    if (c->settled_count > known->settled_capacity &&
        !stg_world_grow(w, &known->settled, &known->settled_capacity,
                        c->settled_count, sizeof *known->settled))
        return;
    stg_world_require(w, !known->is_known || c->base >= known->c.base, "I2",
                      stg_about_message(c->lane, c->partition, c->base),
                      "a cursor never goes back");
    stg_world_require(
        w, stg_positions_are_sound(c->settled, c->settled_count, c->base),
        "check", stg_about_message(c->lane, c->partition, c->base),
        "settled ranges rise from the base, with gaps");
    if (c->settled_count > 0)
        memcpy(known->settled, c->settled,
               c->settled_count * sizeof *known->settled);
    known->c = *c;
    known->c.settled = known->settled;
    // The group was made before flow heard of these.
    known->c.routed += known->rewound;
    known->c.dead -= known->replayed - known->rewound;
    known->c.parked += known->replayed;
    known->c.replays += known->replayed;
    known->is_known = true;
    w->lanes[c->lane]->was_known = true;
    stg_world_check_cursor(w, known);
}

/* Changes first: a cursor counts the rows that they leave. */
void stg_world_apply(stg_world *w, const stg_group *g)
{
    for (size_t i = 0; i < g->change_count; i++)
        apply_change(w, &g->changes[i]);
    for (size_t i = 0; i < g->cursor_count; i++)
        apply_cursor(w, &g->cursors[i]);
    if (w->hooks.stored != NULL)
        w->hooks.stored(w->hooks.ctx, g);
}

bool stg_world_is_settled(const stg_world_cursor *c, uint64_t position)
{
    if (!c->is_known)
        return false;
    if (position < c->c.base)
        return true;
    return stg_positions_have(c->c.settled, c->c.settled_count, position);
}

/* -- a replay -------------------------------------------------------------- */

/* A dead letter becomes a parked row that is due at once, in one transaction
 * with the cursor's counts. A group that is under way was made before: what was
 * replayed since is added to its cursor again (c->replayed). */
static bool replay_one(stg_world *w, stg_world_dead *d)
{
    stg_world_lane *l = w->lanes[d->lane];
    stg_world_cursor *c = &l->cursors[d->partition];
    uint64_t i = stg_world_index(w, d->partition, d->position);
    stg_world_key key = key_of_dead(d);
    stg_world_row row = {.lane = d->lane,
                         .partition = d->partition,
                         .position = d->position,
                         .replay = d->replay + 1,
                         .attempts_before = d->attempts,
                         .due_at = stg_world_wall(w)};

    if (i == w->log_count || !stg_world_add_row(w, &row) ||
        !stg_world_grow(w, &w->replayed, &w->replayed_capacity,
                        w->replayed_count + 1, sizeof *w->replayed) ||
        !stg_world_keys_put(w, &w->replayed_keys, &key, w->replayed_count))
        return false;
    l->receipts[i].replays = d->replay + 1;
    l->receipts[i].not_before = 0;
    l->replays++;
    c->c.dead--;
    c->c.parked++;
    c->c.replays++;
    c->replayed += w->is_group_pending;
    w->has_replayed = true;
    stg_flow_replayed(w->flow, d->lane, d->partition, 1, false, w->now);
    w->replayed[w->replayed_count++] = *d;
    delete_dead(w, d);
    return true;
}

/* A bulk row is another kind of replay, and what was too large stays so. */
static bool is_replayable(const stg_world *w, const stg_world_dead *d)
{
    const stg_world_lane *l = w->lanes[d->lane];

    return d->count == 0 && !d->is_cancelled &&
           d->outcome.fault != STG_FAULT_TOO_LARGE && d->life == l->life &&
           !l->is_removing && !l->was_removed;
}

/* Backwards, as each replay moves the last letter into the place of its own. */
uint32_t stg_world_replay(stg_world *w, uint32_t lane, uint32_t count)
{
    uint32_t replayed = 0;

    for (size_t i = w->dead_count; i-- > 0 && replayed < count;) {
        stg_world_dead *d = &w->dead[i];

        if (w->has_failed)
            break;
        if (d->lane == lane && is_replayable(w, d))
            replayed += replay_one(w, d);
    }
    return replayed;
}

/* -- a rewind -------------------------------------------------------------- */

/* Of what has ended for the lane: it is the lane's business, nothing of it waits,
 * and no dead letter of its own would have another beside it. */
static bool is_rewindable(const stg_world *w, uint32_t lane, uint64_t i)
{
    const stg_world_lane *l = w->lanes[lane];
    const stg_world_message *m = &w->log[i];
    const stg_world_cursor *c = &l->cursors[m->partition];

    if (!stg_world_is_settled(c, m->position) || m->position < c->begin ||
        m->position < w->partitions[m->partition].trimmed || m->true_size > 0 ||
        l->receipts[i].processed == 0 ||
        !stg_world_is_routed(l, m->partition, m->position))
        return false;
    for (uint32_t n = 0; n <= l->receipts[i].replays; n++)
        if (stg_world_find_row(w, lane, m->partition, m->position, n) != NULL)
            return false;
    for (size_t d = 0; d < w->dead_count; d++)
        if (w->dead[d].lane == lane && w->dead[d].partition == m->partition &&
            w->dead[d].life == l->life && w->dead[d].position <= m->position &&
            (w->dead[d].count > 0 ? w->dead[d].last_position
                                  : w->dead[d].position) >= m->position)
            return false;
    return true;
}

/* One transaction, as a replay is: a parked row that is due at once, and the
 * message is routed once more. */
static bool rewind_one(stg_world *w, uint32_t lane, uint64_t i)
{
    stg_world_lane *l = w->lanes[lane];
    const stg_world_message *m = &w->log[i];
    stg_world_cursor *c = &l->cursors[m->partition];
    stg_world_row row = {.lane = lane,
                         .partition = m->partition,
                         .position = m->position,
                         .replay = l->receipts[i].replays + 1,
                         .due_at = stg_world_wall(w)};

    if (!stg_world_add_row(w, &row))
        return false;
    l->receipts[i].replays++;
    l->receipts[i].not_before = 0;
    l->replays++;
    l->rewound++;
    c->c.routed++;
    c->c.parked++;
    c->c.replays++;
    c->replayed += w->is_group_pending;
    c->rewound += w->is_group_pending;
    w->has_replayed = true;
    stg_flow_replayed(w->flow, lane, m->partition, 1, true, w->now);
    return true;
}

uint32_t stg_world_rewind(stg_world *w, uint32_t lane, uint32_t count)
{
    const stg_world_lane *l = w->lanes[lane];
    uint32_t rewound = 0;

    if (l->is_removing || l->was_removed)
        return 0;
    for (uint64_t i = 0; i < w->log_count && rewound < count; i++)
        if (!w->has_failed && is_rewindable(w, lane, i))
            rewound += rewind_one(w, lane, i);
    return rewound;
}
