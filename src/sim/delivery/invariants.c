#include "sim/delivery/internal.h"

#include <string.h>

/* What has to be true of a world, by the numbers of the hub's contract: at each
 * start, after each event, and for each group (ends.c: when all has settled). The
 * judge is the record of what targets saw and the store holds; of flow's own state
 * it believes nothing but the order that holds now. */

/* Only the first failure is kept: what follows is mostly its consequence. */
void stg_world_fail(stg_world *w, const char *invariant, stg_world_subject of,
                    const char *text)
{
    if (w->has_failed)
        return;
    w->has_failed = true;
    w->failure = (stg_world_failure){.invariant = invariant,
                                     .text = text,
                                     .seed = w->seed,
                                     .at = w->now - w->origin_at,
                                     .lane = of.lane,
                                     .partition = of.partition,
                                     .position = of.position};
    if (w->hooks.failed != NULL)
        w->hooks.failed(w->hooks.ctx, &w->failure);
}

/* -- the books ------------------------------------------------------------- */

void stg_world_check_cursor(stg_world *w, const stg_world_cursor *known)
{
    const stg_cursor *c = &known->c;
    const stg_world_tally *t = &known->tally;

    stg_world_require(w,
                      c->parked == t->parked && c->replays == t->replays &&
                          c->dead == t->dead && c->cancelled == t->cancelled,
                      "I17", stg_about_message(c->lane, c->partition, c->base),
                      "a stored cursor counts the rows that are");
    stg_world_require(
        w, c->routed == c->delivered + c->dead + c->cancelled + c->parked,
        "I17", stg_about_message(c->lane, c->partition, c->base),
        "the books of a stored cursor balance");
}

/* Flow's own check, and its counts against the world's. A lane that flow does
 * not have (removed) is passed over. */
void stg_world_check_flow(stg_world *w)
{
    const char *flaw;

    if (w->has_failed)
        return;
    flaw = stg_flow_check(w->flow);
    stg_world_require(w, flaw == NULL, "check", stg_about_all(), flaw);
    for (uint32_t l = 0; l < w->lane_count; l++) {
        stg_lane_view v;

        if (stg_flow_view_lane(w->flow, l, &v, w->now) != STG_OK)
            continue;
        stg_world_require(w,
                          v.routed == v.delivered + v.dead + v.cancelled +
                                          v.parked + v.waiting + v.in_flight,
                          "I17", stg_about_lane(l), "the books balance");
        stg_world_require(w, v.in_flight == w->lanes[l]->in_flight, "I17",
                          stg_about_lane(l), "flow counts its attempts");
        stg_world_require(w, v.limit <= w->lanes[l]->o.in_flight_max, "I8",
                          stg_about_lane(l), "the limit is within its bound");
    }
}

void stg_world_check_touched(stg_world *w, uint32_t lane, uint32_t partition)
{
    const char *flaw = stg_flow_check_cursor(w->flow, lane, partition);
    const stg_lane *own = stg_flow_lane(w->flow, lane);

    stg_world_require(w, flaw == NULL, "check",
                      stg_about_message(lane, partition, UINT64_MAX), flaw);
    if (own == NULL)
        return;
    stg_world_require(w, own->in_flight == w->lanes[lane]->in_flight, "I17",
                      stg_about_lane(lane), "flow counts its attempts");
    stg_world_require(w, stg_lane_limit(own) <= w->lanes[lane]->o.in_flight_max,
                      "I8", stg_about_lane(lane),
                      "the limit is within its bound");
}

void stg_world_check_sometimes(stg_world *w)
{
    if (++w->unchecked < w->check_every)
        return;
    w->unchecked = 0;
    stg_world_check_flow(w);
}

/* A bit for each partition that the group claims. */
static uint32_t find_claimed(const stg_group *g)
{
    uint32_t claimed = 0;

    for (size_t i = 0; i < g->claim_count; i++)
        claimed |= (uint32_t)1 << g->claims[i].partition;
    return claimed;
}

/* In a store of its own (keeps_rows) a hub may write of a partition that it has
 * lost: the rows that stay are still its own. */
void stg_world_check_claims(stg_world *w, const stg_group *g)
{
    uint32_t claimed = find_claimed(g), written = 0;

    for (size_t i = 0; i < g->change_count; i++)
        written |= (uint32_t)1 << g->changes[i].partition;
    for (size_t i = 0; i < g->cursor_count; i++)
        written |= (uint32_t)1 << g->cursors[i].partition;
    stg_world_require(w, (written & ~claimed) == 0, "I2", stg_about_all(),
                      "a group claims each partition that it writes");
    for (size_t i = 0; i < g->claim_count; i++) {
        uint32_t p = g->claims[i].partition;
        const stg_world_partition *at = &w->partitions[p];

        stg_world_require(w, i == 0 || g->claims[i - 1].partition < p, "check",
                          stg_about_partition(p), "claims rise");
        if (!w->is_group)
            continue;
        stg_world_require(w, g->claims[i].generation == at->claimed, "I2",
                          stg_about_partition(p),
                          "a claim has the generation that was assigned");
        stg_world_require(w,
                          w->keeps_rows || at->where == STG_WORLD_ASSIGNED ||
                              (at->where == STG_WORLD_REVOKING && !at->is_lost),
                          "I2", stg_about_partition(p),
                          "nothing is written of what was lost");
    }
}

/* -- an attempt starts ----------------------------------------------------- */

/* Whether the lane has shed some of it, so that its order has holes. It is for
 * good: a hole stays when the bulk row has been written. */
static bool has_shed(stg_world *w, uint32_t lane)
{
    const stg_lane *own = stg_flow_lane(w->flow, lane);

    for (uint32_t i = 0; i < w->flow->partition_count; i++)
        if (stg_lane_cursor_in(own, w->flow->partitions[i])->bulk.count > 0)
            w->lanes[lane]->has_shed = true;
    return w->lanes[lane]->has_shed;
}

/* The partition came with rows of another order, which wait for none before them:
 * the lane's order holds there when they have ended. */
static bool is_draining(const stg_world *w, uint32_t lane, uint32_t partition)
{
    return stg_lane_cursor_is_draining(stg_lane_cursor_in(
        stg_flow_lane(w->flow, lane), stg_flow_partition(w->flow, partition)));
}

/* Rows of a partition that the hub does not read any more stand in no ring. A lane
 * that has a strict order has one of them at most; one that became strict since may
 * have one of each key, and they wait for none of another. */
static bool is_strict(const stg_world *w, stg_order order, uint32_t partition)
{
    return order == STG_ORDER_STRICT &&
           w->partitions[partition].where == STG_WORLD_ASSIGNED;
}

/* It is the lane's business, and has not ended. */
static bool is_awaited(const stg_world_lane *l, const stg_world_message *m,
                       uint64_t i)
{
    return !l->receipts[i].is_over &&
           m->position >= l->cursors[m->partition].begin &&
           stg_world_is_routed(l, m->partition, m->position);
}

/* All of the partition's messages before `over` are awaited no more. */
static void pass_over(const stg_world *w, stg_world_lane *l, uint32_t partition)
{
    const stg_world_partition *p = &w->partitions[partition];
    uint64_t *over = &l->cursors[partition].over;

    while (*over < p->count &&
           !is_awaited(l, &w->log[p->messages[*over]], p->messages[*over]))
        ++*over;
}

/* I18: those that come before it have ended: of the same key, or in a strict
 * lane all. Not asked once something was replayed or shed: a replay comes after
 * later messages by its nature. */
static void check_turn(stg_world *w, uint32_t lane, uint64_t i)
{
    stg_world_lane *l = w->lanes[lane];
    const stg_world_message *m = &w->log[i];
    stg_order order = stg_flow_lane(w->flow, lane)->o.order; // that holds now
    const stg_world_partition *p = &w->partitions[m->partition];

    if (order == STG_ORDER_NONE || has_shed(w, lane) || l->replays > 0 ||
        is_draining(w, lane, m->partition))
        return;
    pass_over(w, l, m->partition);
    for (uint64_t k = l->cursors[m->partition].over;
         k < p->count && p->messages[k] < i; k++) {
        const stg_world_message *other = &w->log[p->messages[k]];
        bool is_same_key = m->key != 0 && m->key == other->key;

        if (!is_awaited(l, other, p->messages[k]))
            continue;
        stg_world_require(w, !is_strict(w, order, m->partition) && !is_same_key,
                          "I18",
                          stg_about_message(lane, m->partition, m->position),
                          "an attempt starts when those before it have ended");
    }
}

/* Nothing begins of what was revoked, but rows that stay. */
static bool is_here(const stg_world *w, const stg_action *a)
{
    const stg_message *m = a->start.message;

    return !w->is_group || stg_world_is_assigned(w, m->partition) ||
           (w->keeps_rows &&
            stg_world_find_row(w, a->lane, m->partition, m->position,
                               a->start.replay) != NULL);
}

static bool is_unchanged(const stg_world_message *m, const stg_message *got)
{
    unsigned char expected[STG_WORLD_SIZE_MIN];

    stg_world_write_bytes(expected, m->partition, m->position);
    return got->size == m->size &&
           memcmp(got->bytes, expected, sizeof expected) == 0 &&
           got->key == m->key && got->created_at == m->created_at;
}

/* By the wall clock as the hub has it, which it was told at its start. */
static bool is_in_time(const stg_world *w, const stg_world_message *m)
{
    stg_ns wall_at = stg_flow_wall(w->flow, w->now);

    return wall_at >= m->not_before &&
           (m->expires_at == 0 || wall_at < m->expires_at);
}

/* The first attempt is number 1, and a retry has at least number 2. */
void stg_world_check_start(stg_world *w, const stg_action *a, uint64_t i)
{
    const stg_world_message *m = &w->log[i];
    const stg_world_lane *l = w->lanes[a->lane];
    const stg_world_receipt *r = &l->receipts[i];
    stg_world_subject of =
        stg_about_message(a->lane, m->partition, m->position);

    stg_world_require(w, is_unchanged(m, a->start.message), "I11", of,
                      "the message is as it was published");
    stg_world_require(w, m->true_size == 0, "I6", of,
                      "what is too large is not tried");
    stg_world_require(
        w,
        !l->was_removed && !l->is_removing && !l->o.is_paused && !l->o.is_gated,
        "I7", of, "no attempt of a removed, paused or gated lane");
    stg_world_require(w, stg_world_is_routed(l, m->partition, m->position),
                      "I7", of, "no attempt of what the lane refuses");
    stg_world_require(w, w->now >= r->not_before, "I4", of,
                      "no attempt starts early");
    stg_world_require(w, is_in_time(w, m), "I34", of,
                      "an attempt starts within the message's own times");
    stg_world_require(w,
                      a->start.timeout > 0 && a->start.replay == r->replays &&
                          a->start.attempt > a->start.is_retry,
                      "I3", of, "the attempt is counted as it should be");
    stg_world_require(w, is_here(w, a), "I2", of,
                      "nothing of what was revoked starts");
    check_turn(w, a->lane, i);
}
