/* Partitions of a world that come and go, and the hubs that have them else. */
#include <stdlib.h>

#include "flow/state.h"
#include "tests/flow/world_inside.h"

void world_merge(world *w, bool keeps_rows)
{
    w->is_merged = true;
    w->keeps_rows = keeps_rows;
}

void world_large(world *w, uint64_t n)
{
    w->large = n;
}

bool world_is_here(const world *w, uint32_t p)
{
    return w->parts[p].where == HERE;
}

bool world_is_away(const world *w, uint32_t p)
{
    return w->parts[p].where == AWAY;
}

/* The first message at position or above, of the partition's. */
static uint64_t find(const world *w, uint32_t p, uint64_t position)
{
    uint64_t i = w->partition_logged[p];

    while (i > 0 && w->log[w->of_partition[p][i - 1]].position >= position)
        i--;
    return i;
}

static const logged *message(const world *w, uint32_t p, uint64_t i)
{
    return &w->log[w->of_partition[p][i]];
}

/* Where the next message will come from. */
static uint64_t position_of(const world *w, uint32_t p, uint64_t i)
{
    if (i < w->partition_logged[p])
        return message(w, p, i)->position;
    return w->next_position[p] + 1;
}

/* -- the consumer ---------------------------------------------------------- */

static uint64_t find_read(const world *w, uint32_t p)
{
    return find(w, p, stg_ns_max(w->parts[p].read_at, w->trimmed[p]));
}

bool world_is_pollable(const world *w)
{
    for (uint32_t p = 0; p < w->partition_count; p++)
        if (world_is_here(w, p) && find_read(w, p) < w->partition_logged[p])
            return true;
    return false;
}

void world_poll(world *w, const stg_action *a)
{
    event *e = world_post(w, POLL,
                          w->is_traced ? 0 : stg_rng_upto(&w->rng, 2 * STG_MS));

    for (event *other = e->next; other != NULL; other = other->next)
        CHECK(other->what != POLL && other->what != MERGED); // one at a time
    e->bytes_max = a->read.bytes_max;
    w->reads++;
}

/* What there is, up to the bytes that are left. */
static run read_run(world *w, uint32_t p, size_t *left, bool is_first)
{
    run r = {.assignment = w->parts[p].assignment, .first = find_read(w, p)};

    while (r.first + r.count < w->partition_logged[p]) {
        size_t size = message(w, p, r.first + r.count)->size;

        if (size > *left && !(is_first && r.count == 0))
            break;
        *left -= size < *left ? size : *left;
        r.count++;
    }
    if (r.count > 0) {
        r.next = message(w, p, r.first + r.count - 1)->position + 1;
        w->parts[p].read_at = r.next;
    }
    return r;
}

/* Not of all of them, and never of none. */
void world_answer_poll(world *w, size_t left)
{
    event *e = world_post(w, MERGED,
                          w->is_traced ? 0 : stg_rng_upto(&w->rng, 2 * STG_MS));
    bool is_any = false;

    for (int turn = 0; turn < 2 && !is_any; turn++)
        for (uint32_t p = 0; p < w->partition_count; p++) {
            if (!world_is_here(w, p) ||
                (turn == 0 && !w->is_traced && stg_rng_upto(&w->rng, 1) == 0))
                continue;
            e->runs[p] = read_run(w, p, &left, !is_any);
            is_any |= e->runs[p].count > 0;
        }
}

void world_answer_merged(world *w, const event *e)
{
    for (uint32_t p = 0; p < w->partition_count; p++)
        if (e->runs[p].count > 0)
            world_give_records(w, p, e, e->runs[p].first, e->runs[p].count,
                               e->runs[p].next, e->runs[p].assignment);
    stg_flow_read_end(w->flow, w->now);
}

/* -- to come --------------------------------------------------------------- */

static size_t gather(const world *w, uint32_t p, stg_cursor *cursors)
{
    size_t count = 0;

    for (uint32_t l = 0; l < w->lane_count; l++)
        if (w->lanes[l].cursors[p].is_known)
            cursors[count++] = w->lanes[l].cursors[p].c;
    return count;
}

/* A store that nobody else has refuses nothing: who claims it, had it. */
static stg_status give(world *w, uint32_t p, bool is_rows_only)
{
    stg_cursor *cursors = calloc(w->lane_count + 1, sizeof *cursors);
    part *at = &w->parts[p];
    stg_assignment g = {.partition = p,
                        .generation = at->generation + !w->keeps_rows,
                        .begin = w->trimmed[p],
                        .floor = w->keeps_rows ? at->group : 0,
                        .is_merged = true,
                        .is_rows_only = is_rows_only,
                        .cursors = cursors,
                        .cursor_count = gather(w, p, cursors)};
    stg_status status = stg_flow_assign(w->flow, &g, w->now, NULL);

    free(cursors);
    if (status == STG_OK)
        at->generation = at->claimed = g.generation;
    return status;
}

uint64_t world_begin_of(const world *w, uint32_t p, uint64_t next)
{
    return w->keeps_rows ? stg_ns_max(next, w->parts[p].group) : next;
}

static void note_begins(world *w, uint32_t p)
{
    for (uint32_t l = 0; l < w->lane_count; l++) {
        cursor *c = &w->lanes[l].cursors[p];
        const stg_lane *own = stg_flow_lane(w->flow, l);

        if (!w->keeps_rows)
            world_forget_part(w, l, p);
        if (!c->is_known && own != NULL)
            c->begin = stg_place_next(own, stg_flow_partition(w->flow, p));
    }
}

void world_give(world *w, uint32_t p)
{
    part *at = &w->parts[p];
    stg_partition_view v;

    if (at->where != AWAY || w->is_stopped)
        return;
    if (give(w, p, false) != STG_OK) {
        CHECK(w->fail_one_in > 0 || w->fail_at > 0);
        return;
    }
    CHECK(stg_flow_look_partition(w->flow, p, &v) == STG_OK);
    CHECK(v.state == STG_PARTITION_GIVEN);
    at->where = HERE;
    at->is_lost = false;
    at->assignment = stg_flow_assignment(w->flow, p);
    at->read_at = v.next;
    w->committed[p] = w->keeps_rows ? at->group : 0;
    note_begins(w, p);
    if (w->trimmed[p] > 0)
        stg_flow_expired(w->flow, p, w->trimmed[p], w->now);
}

/* Rows that stay go on wherever their partition is. */
void world_begin_parts(world *w)
{
    for (uint32_t p = 0; p < w->partition_count; p++) {
        if (w->parts[p].where == GOING)
            w->parts[p].where = AWAY;
        if (w->keeps_rows)
            CHECK(give(w, p, true) == STG_OK);
    }
}

void world_give_parts(world *w)
{
    for (uint32_t p = 0; p < w->partition_count; p++)
        if (world_is_here(w, p)) {
            w->parts[p].where = AWAY;
            world_give(w, p);
        }
}

/* -- to go ----------------------------------------------------------------- */

/* A lane that is removed has no business in it any more. */
static void go(world *w, uint32_t p, bool is_lost)
{
    w->parts[p].where = GOING;
    w->parts[p].is_lost |= is_lost;
    w->crashes += is_lost;
    for (uint32_t l = 0; l < w->lane_count; l++)
        if (w->lanes[l].is_removing)
            w->lanes[l].cursors[p].end = 0;
}

void world_take(world *w, uint32_t p, stg_ns drain)
{
    if (!world_is_here(w, p))
        return;
    stg_flow_revoke(w->flow, p, w->keeps_rows, drain, w->now);
    go(w, p, false);
}

void world_lose(world *w, uint32_t p)
{
    if (world_is_away(w, p))
        return;
    stg_flow_lose(w->flow, p, w->keeps_rows, w->now);
    go(w, p, true);
}

/* The lowest durable cursor, of those that flow has. */
static uint64_t find_lowest(const world *w, uint32_t p)
{
    uint64_t lowest = UINT64_MAX;

    for (uint32_t l = 0; l < w->lane_count; l++)
        if (w->lanes[l].cursors[p].is_known &&
            w->lanes[l].cursors[p].c.base < lowest)
            lowest = w->lanes[l].cursors[p].c.base;
    return lowest;
}

static bool is_any_removing(const world *w)
{
    for (uint32_t l = 0; l < w->lane_count; l++)
        if (w->lanes[l].is_removing)
            return true;
    return false;
}

/* All is committed, and nothing is under way but rows that stay. */
void world_note_taken(world *w, uint32_t p)
{
    part *at = &w->parts[p];
    uint64_t lowest = find_lowest(w, p);

    CHECK(at->where == GOING);
    at->where = AWAY;
    for (const event *e = w->events; e != NULL; e = e->next)
        CHECK(e->what != ENDED || e->partition != p ||
              (w->keeps_rows &&
               world_find_row(w, e->lane, p, e->position, e->replay) != NULL));
    if (at->is_lost || at->generation > at->claimed || lowest == UINT64_MAX)
        return;
    if (!is_any_removing(w))
        CHECK_U64(w->committed[p], stg_ns_max(lowest, w->committed[p]));
}

void world_check_here(world *w, const stg_action *a)
{
    const stg_message *m = a->start.message;
    const row *r =
        world_find_row(w, a->lane, m->partition, m->position, a->start.replay);

    CHECK(world_is_here(w, m->partition) || (w->keeps_rows && r != NULL));
}

/* -- the store and the group ----------------------------------------------- */

/* I2 */
void world_note_commit(world *w, const stg_action *a)
{
    uint32_t p = a->partition;
    part *at = &w->parts[p];

    CHECK(a->position >= w->committed[p]);
    w->committed[p] = a->position;
    for (uint32_t l = 0; l < w->lane_count; l++)
        CHECK(!w->lanes[l].cursors[p].is_known ||
              w->lanes[l].cursors[p].c.base >= a->position ||
              w->lanes[l].was_removed);
    if (!w->is_merged)
        return;
    CHECK(at->where == HERE || (at->where == GOING && !at->is_lost));
    at->group = stg_ns_max(at->group, a->position);
}

static bool has_claim(const stg_group *g, uint32_t p)
{
    for (size_t i = 0; i < g->claim_count; i++)
        if (g->claims[i].partition == p)
            return true;
    return false;
}

void world_check_claims(const world *w, const stg_group *g)
{
    for (size_t i = 0; i < g->change_count; i++)
        CHECK(has_claim(g, g->changes[i].partition));
    for (size_t i = 0; i < g->cursor_count; i++)
        CHECK(has_claim(g, g->cursors[i].partition));
    for (size_t i = 0; i < g->claim_count; i++) {
        const part *at = &w->parts[g->claims[i].partition];

        CHECK(i == 0 || g->claims[i - 1].partition < g->claims[i].partition);
        if (!w->is_merged)
            continue;
        CHECK_U64(g->claims[i].generation, at->claimed);
        CHECK(w->keeps_rows || at->where == HERE ||
              (at->where == GOING && !at->is_lost));
    }
}

bool world_is_fenced(world *w, const stg_group *g)
{
    bool is_fenced = false;

    for (size_t i = 0; i < g->claim_count && w->is_merged; i++) {
        uint32_t p = g->claims[i].partition;

        if (g->claims[i].generation == w->parts[p].generation)
            continue;
        is_fenced = true;
        stg_flow_fenced(w->flow, p, w->now);
        go(w, p, true);
    }
    return is_fenced;
}

void world_forget_elsewhere(world *w, uint32_t number)
{
    for (uint32_t p = 0; p < w->partition_count; p++) {
        stg_change c = {
            .kind = STG_CHANGE_CANCEL, .lane = number, .partition = p};

        if (w->keeps_rows || world_is_here(w, p))
            continue;
        world_cancel_rows(w, &c);
        w->lanes[number].cursors[p].is_known = false;
    }
}

/* -- elsewhere ------------------------------------------------------------- */

/* The other hub has the lane in the order that it likes. */
static void park_there(world *w, uint32_t l, const logged *m)
{
    lane *at = &w->lanes[l];
    stg_cursor *c = &at->cursors[m->partition].c;
    stg_ns wall = w->wall_at + (w->now - w->origin_at);
    row *r = world_add_row(w);

    *r = (row){.lane = l,
               .partition = m->partition,
               .position = m->position,
               .progress = stg_progress_begin(at->policy),
               .failure = {.outcome = stg_answered(503),
                           .why = STG_WHY_BACKOFF,
                           .first_attempt_at = wall,
                           .last_attempt_at = wall,
                           .detail = ""},
               .has_failure = true,
               .wait = 100 * STG_MS,
               .began_at = wall,
               .due_at = wall + 100 * STG_MS};
    r->progress.attempts = 1;
    c->routed++;
    c->parked++;
    at->has_shed |= at->o.order != STG_ORDER_NONE && !c->is_ordered;
}

static void deliver_there(world *w, uint32_t l, uint64_t i, row *r)
{
    lane *at = &w->lanes[l];
    stg_cursor *c = &at->cursors[w->log[i].partition].c;

    if (r != NULL) {
        c->parked--;
        world_delete_row(w, r);
    } else {
        c->routed++;
    }
    c->delivered++;
    at->receipts[i].processed++;
}

static void refuse_there(world *w, uint32_t l, const logged *m)
{
    const stg_failure too_large = {.outcome = stg_failed(STG_FAULT_TOO_LARGE)};
    stg_cursor *c = &w->lanes[l].cursors[m->partition].c;

    world_put_dead(w, &(stg_change){.kind = STG_CHANGE_DEAD,
                                    .lane = l,
                                    .partition = m->partition,
                                    .position = m->position,
                                    .failure = &too_large});
    c->routed++;
    c->dead++;
}

/* Returns whether the base may pass it. */
static bool settle_there(world *w, uint32_t l, uint64_t i, bool is_last)
{
    lane *at = &w->lanes[l];
    const logged *m = &w->log[i];
    cursor *c = &at->cursors[m->partition];
    row *r = world_find_row(w, l, m->partition, m->position, 0);
    bool is_settled = world_is_settled(c, m->position);

    if (m->position < c->begin ||
        !world_is_wanted(at, m->partition, m->position))
        return true;
    if (r != NULL && (c->c.is_ordered || stg_rng_upto(&w->rng, 1) == 0)) {
        deliver_there(w, l, i, r);
    } else if (r == NULL && !is_settled && m->true_size > 0) {
        refuse_there(w, l, m);
    } else if (r == NULL && !is_settled &&
               (c->c.is_ordered ? is_last : stg_rng_upto(&w->rng, 3) == 0)) {
        park_there(w, l, m);
        return !c->c.is_ordered;
    } else if (r == NULL && !is_settled) {
        deliver_there(w, l, i, NULL);
    }
    return true;
}

/* What the log had lost. */
static void lose_there(world *w, uint32_t l, uint32_t p)
{
    cursor *c = &w->lanes[l].cursors[p];

    if (c->c.base >= w->trimmed[p])
        return;
    world_put_dead(w, &(stg_change){.kind = STG_CHANGE_RANGE,
                                    .lane = l,
                                    .partition = p,
                                    .position = c->c.base,
                                    .replay = STG_REPLAY_LOST,
                                    .last_position = w->trimmed[p] - 1,
                                    .count = w->trimmed[p] - c->c.base,
                                    .is_expired = true});
    c->c.routed += w->trimmed[p] - c->c.base;
    c->c.dead += w->trimmed[p] - c->c.base;
}

static void rise(cursor *c, uint64_t base)
{
    size_t count = 0;

    c->c.base = stg_ns_max(c->c.base, base);
    for (size_t i = 0; i < c->c.settled_count; i++)
        if (c->settled[i] >= c->c.base)
            c->settled[count++] = c->settled[i];
    c->c.settled_count = count;
}

static void settle_lane(world *w, uint32_t l, uint32_t p, uint64_t count)
{
    cursor *c = &w->lanes[l].cursors[p];
    uint64_t i = find(w, p, stg_ns_max(c->c.base, w->trimmed[p]));
    uint64_t base = stg_ns_max(c->c.base, w->trimmed[p]);
    bool is_head = stg_rng_upto(&w->rng, 1) == 0;

    lose_there(w, l, p);
    if (c->c.parked == c->c.replays)
        c->c.is_ordered = stg_rng_upto(&w->rng, 1) == 0;
    for (; count > 0 && i < w->partition_logged[p]; count--, i++) {
        if (!settle_there(w, l, w->of_partition[p][i], is_head && count == 1))
            break;
        base = position_of(w, p, i + 1);
    }
    rise(c, base);
    world_check_cursor(w, &c->c);
}

/* Its store is another: what it did this hub learns from the group's offset. */
static void pass_all(world *w, uint32_t p, uint64_t count)
{
    part *at = &w->parts[p];
    uint64_t i = find(w, p, at->group);

    for (; count > 0 && i < w->partition_logged[p]; count--, i++)
        for (uint32_t l = 0; l < w->lane_count; l++) {
            w->lanes[l].receipts[w->of_partition[p][i]].processed++;
            w->lanes[l].has_lost = w->lanes[l].has_shed = true;
        }
    at->group = stg_ns_max(at->group, position_of(w, p, i));
}

static bool is_theirs(const world *w, uint32_t p)
{
    return world_is_away(w, p) || w->parts[p].generation > w->parts[p].claimed;
}

void world_elsewhere(world *w, uint32_t p, uint64_t count)
{
    if (!is_theirs(w, p))
        return;
    w->crashes++;
    if (w->keeps_rows) {
        pass_all(w, p, count);
        return;
    }
    w->parts[p].generation++;
    for (uint32_t l = 0; l < w->lane_count; l++)
        if (w->lanes[l].cursors[p].is_known && !w->lanes[l].is_removing)
            settle_lane(w, l, p, count);
}

void world_fence(world *w, uint32_t p)
{
    if (w->keeps_rows || world_is_away(w, p))
        return;
    w->parts[p].generation++;
    w->crashes++;
}

void world_gap(world *w, uint32_t p, uint64_t count)
{
    CHECK(w->parts[p].where == HERE);
    CHECK(find_read(w, p) == w->partition_logged[p]);
    w->next_position[p] += count;
    w->parts[p].read_at = w->next_position[p] + 1;
    stg_flow_messages(w->flow, false, p, w->parts[p].assignment, NULL, 0,
                      w->parts[p].read_at, w->now);
}

void world_expire(world *w, uint32_t p, uint64_t position)
{
    if (position <= w->trimmed[p])
        return;
    w->trimmed[p] = position;
    for (uint32_t l = 0; l < w->lane_count; l++)
        w->lanes[l].has_lost = w->lanes[l].has_shed = true;
    if (world_is_here(w, p))
        stg_flow_expired(w->flow, p, position, w->now);
}
