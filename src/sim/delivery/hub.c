#include "sim/delivery/internal.h"

#include <assert.h>
#include <string.h>

/* The hub of a world: how an incarnation begins on what is durable and ends,
 * and what operators do to its lanes.
 *
 * Rows, dead letters and cursors are the store's and outlive a hub. So do the
 * receipts of targets, but for what only the hub knew: stg_world_forget() takes
 * that out. A field that is added to a receipt must be one or the other.
 *
 * Flow's allocations do not fail by chance while a hub begins or a lane is
 * added: the world requires that flow takes them. The n-th allocation fails
 * also there, if a test has asked for it by number. */

/* -- a lane begins and ends ------------------------------------------------ */

/* A cursor that the store knows has had its begin noted already. */
void stg_world_note_begin(stg_world *w, uint32_t lane)
{
    const stg_lane *own = stg_flow_lane(w->flow, lane);

    for (uint32_t p = 0; own != NULL && p < w->partition_count; p++) {
        stg_world_cursor *c = &w->lanes[lane]->cursors[p];
        const stg_partition *part = stg_flow_partition(w->flow, p);

        if (!c->is_known && part != NULL)
            stg_world_set_begin(
                c, stg_world_begin_of(w, p, stg_lane_cursor_next(own, part)));
    }
}

/* All that a reader has read, or the lane had come to before a crash. Where
 * rows of another order are to end first, it was handed nothing: all is lag. */
static uint64_t find_end(const stg_world *w, uint32_t lane, uint32_t p)
{
    const stg_world_cursor *at = &w->lanes[lane]->cursors[p];
    const stg_partition *part = stg_flow_partition(w->flow, p);
    uint64_t end = part->window.next;

    if (stg_lane_cursor_is_draining(
            stg_lane_cursor_in(stg_flow_lane(w->flow, lane), part)))
        return 0;
    if (at->is_known && at->c.settled_count > 0)
        end = stg_ns_max(end, at->c.settled[at->c.settled_count - 1].last + 1);
    for (size_t i = 0; i < w->row_count; i++)
        if (w->rows[i].lane == lane && w->rows[i].partition == p)
            end = stg_ns_max(end, w->rows[i].position + 1);
    return end;
}

/* Of a partition that is not here this hub ends nothing, so nothing is checked
 * of it: its end is 0. */
void stg_world_end_lane(stg_world *w, uint32_t lane)
{
    if (stg_flow_lane(w->flow, lane)->is_removing)
        return;
    for (uint32_t p = 0; p < w->partition_count; p++)
        w->lanes[lane]->cursors[p].end =
            w->partitions[p].where == STG_WORLD_ASSIGNED ? find_end(w, lane, p)
                                                         : 0;
    stg_flow_remove(w->flow, lane, w->now);
}

bool stg_world_start_lane(stg_world *w, uint32_t lane)
{
    stg_status status =
        stg_flow_add_lane(w->flow, lane, &w->lanes[lane]->o, w->now, NULL);

    return stg_world_require(w, status == STG_OK, "check", stg_about_lane(lane),
                             "flow takes the lane");
}

/* -- the hub begins -------------------------------------------------------- */

/* I21 The store sees to it when it is opened. */
static void cap_waits(stg_world *w)
{
    for (size_t i = 0; i < w->row_count; i++) {
        stg_world_row *r = &w->rows[i];

        r->due_at = stg_ns_min(r->due_at, w->o.wall_at + r->wait);
    }
}

/* Without a group the hub has all partitions, and reads on from what is
 * committed, or from where the log now begins. */
static void assign_queue(stg_world *w)
{
    for (uint32_t p = 0; p < w->partition_count; p++) {
        const stg_world_partition *at = &w->partitions[p];
        stg_assignment g = {.partition = p,
                            .begin = stg_ns_max(at->committed, at->trimmed)};

        stg_world_require(
            w, stg_flow_assign(w->flow, &g, w->now, NULL) == STG_OK, "check",
            stg_about_partition(p), "flow takes the partition");
    }
}

/* In a group the cursors come with the assignment of their partition. */
static void restore(stg_world *w)
{
    for (uint32_t i = 0; i < w->lane_count; i++)
        for (uint32_t p = 0; p < w->partition_count; p++)
            if (w->lanes[i]->cursors[p].is_known)
                stg_world_require(
                    w,
                    stg_flow_restore(w->flow, &w->lanes[i]->cursors[p].c) ==
                        STG_OK,
                    "check", stg_about_lane(i),
                    "flow takes its own cursor back");
}

/* Flow's allocations alone: the world's own do not fail on purpose. Chance is
 * drawn only where it is asked for, so that other runs replay as before. */
static void *allocate(void *ctx, size_t size)
{
    stg_world *w = ctx;
    void *bytes;

    if (++w->allocations == w->fail_at ||
        (w->fail_one_in > 0 && stg_rng_upto(&w->rng, w->fail_one_in - 1) == 0))
        return NULL;
    bytes = w->hooks.memory.allocate(w->hooks.memory.ctx, size);
    w->allocated += bytes != NULL;
    return bytes;
}

static void release(void *ctx, void *bytes)
{
    stg_world *w = ctx;

    w->allocated--;
    w->hooks.memory.release(w->hooks.memory.ctx, bytes);
}

/* Each incarnation has another seed, drawn from the world's. Flow is given the
 * wall clock here only: setting it later changes nothing until a restart. */
static bool make_flow(stg_world *w)
{
    stg_memory memory = {allocate, release, w};

    w->o.wall_at = stg_world_wall(w);
    cap_waits(w);
    w->o.seed = stg_rng_next(&w->rng);
    return stg_world_require(
        w, stg_flow_new(&w->flow, &memory, &w->o, w->now, NULL) == STG_OK,
        "check", stg_about_all(), "flow takes the options");
}

/* Memory fails by chance only when all this is done. Rows that stay are
 * assigned before flow starts, partitions after it. */
static void begin(stg_world *w)
{
    uint32_t one_in = w->fail_one_in;

    w->fail_one_in = 0;
    if (!make_flow(w))
        return;
    if (!w->is_group)
        assign_queue(w);
    for (uint32_t i = 0; i < w->lane_count; i++)
        if (!w->lanes[i]->was_removed)
            stg_world_start_lane(w, i);
    if (w->is_group)
        stg_world_assign_rows(w);
    else
        restore(w);
    w->is_stopped = false;
    stg_flow_start(w->flow, w->now);
    if (w->is_group)
        stg_world_assign_all(w);
    w->fail_one_in = one_in;
    for (uint32_t i = 0; i < w->lane_count; i++)
        if (!w->lanes[i]->was_removed)
            stg_world_note_begin(w, i);
}

void stg_world_start(stg_world *w)
{
    if (w->has_failed)
        return;
    begin(w);
    stg_world_act(w);
}

/* -- the hub ends ---------------------------------------------------------- */

/* I21: what is left of a row's wait, by the wall clock as the hub has it: while it
 * runs, the one that it was told at its start. */
static stg_ns find_wait(const stg_world *w, const stg_world_row *r)
{
    stg_ns wall_at =
        w->flow != NULL ? stg_flow_wall(w->flow, w->now) : stg_world_wall(w);

    return stg_ns_min(stg_ns_sub(r->due_at, wall_at), r->wait);
}

/* Takes from the receipts what this hub alone knew: whether a message is over
 * is now what the store says, and the wait is the stored row's, or none. */
void stg_world_forget(stg_world *w, uint32_t lane, uint32_t partition)
{
    stg_world_lane *l = w->lanes[lane];

    l->cursors[partition].over = 0;
    for (uint64_t i = 0; i < w->partitions[partition].count; i++) {
        uint64_t at = w->partitions[partition].messages[i];
        const stg_world_message *m = &w->log[at];
        stg_world_receipt *r = &l->receipts[at];
        const stg_world_row *row = NULL;

        r->is_over = stg_world_is_settled(&l->cursors[partition], m->position);
        if (r->not_before == 0)
            continue;
        for (uint32_t replay = 0; replay <= r->replays && !row; replay++)
            row = stg_world_find_row(w, lane, partition, m->position, replay);
        r->not_before =
            row == NULL ? 0
                        : stg_ns_min(r->not_before, w->now + find_wait(w, row));
    }
}

/* A lane that was to be removed, and that the store does not know any more, is
 * removed, whether or not flow came to say so: also where a partition was away, and
 * has its cursor still. */
static bool is_removed(const stg_world_lane *l)
{
    if (l->is_forgotten)
        return l->is_removing;
    for (uint32_t p = 0; p < STG_WORLD_PARTITIONS_MAX; p++)
        if (l->cursors[p].is_known)
            return false;
    return l->is_removing;
}

/* A lane that was being removed begins again with the others, and its removal
 * once more after them. */
void stg_world_restart(stg_world *w, stg_ns after)
{
    if (w->has_failed)
        return;
    stg_flow_free(w->flow);
    w->flow = NULL;
    w->now += after;
    for (uint32_t l = 0; l < w->lane_count; l++) {
        w->lanes[l]->in_flight = 0;
        if (is_removed(w->lanes[l]))
            stg_world_note_removed(w, l);
        else
            for (uint32_t p = 0; p < w->partition_count; p++)
                stg_world_forget(w, l, p);
    }
    begin(w);
    // The settings know what is to be removed.
    for (uint32_t l = 0; l < w->lane_count && !w->has_failed; l++)
        if (w->lanes[l]->is_removing)
            stg_world_end_lane(w, l);
    stg_world_act(w);
}

/* By chance each attempt under way has reached its target or not, and the group
 * under way is written or not. `crashes` raises the bounds of I3 and I16: a
 * crash may lose the count of an attempt, and send a message again. */
void stg_world_crash(stg_world *w, stg_ns after)
{
    if (w->has_failed)
        return;
    w->crashes++;
    for (stg_world_event *e = w->attempts; e != NULL; e = e->next)
        if (stg_rng_upto(&w->rng, 1) == 1)
            stg_world_count_processed(w, e);
    stg_world_lose_store(w);
    stg_world_free_events(w);
    stg_world_restart(w, after);
}

bool stg_world_stop(stg_world *w)
{
    if (w->has_failed)
        return false;
    stg_flow_stop(w->flow, w->now);
    stg_world_run(w, STG_NEVER);
    stg_world_require(w, w->is_stopped, "I14", stg_about_all(),
                      "a stop comes to its end");
    stg_world_lose_store(w);
    stg_world_free_events(w);
    w->crashes += !w->is_clean; // as good as one, for what was not stored
    return w->is_clean;
}

stg_ns stg_world_wall(const stg_world *w)
{
    return w->wall_at + (w->now - w->origin_at);
}

void stg_world_set_wall_forward(stg_world *w, stg_ns by)
{
    w->wall_at += by;
}

void stg_world_set_wall_back(stg_world *w, stg_ns by)
{
    w->wall_at -= by;
}

/* -- what operators do ----------------------------------------------------- */

void stg_world_pause(stg_world *w, uint32_t lane, bool is_paused)
{
    if (w->has_failed)
        return;
    w->lanes[lane]->o.is_paused = is_paused;
    stg_flow_pause(w->flow, lane, is_paused, w->now);
}

void stg_world_gate(stg_world *w, uint32_t lane, bool is_gated)
{
    if (w->has_failed)
        return;
    w->lanes[lane]->o.is_gated = is_gated;
    stg_flow_gate(w->flow, lane, is_gated, w->now);
}

bool stg_world_probe(stg_world *w, uint32_t lane)
{
    return !w->has_failed && stg_flow_probe(w->flow, lane, w->now);
}

/* has_shed: a removal cancels what is left, and its order has holes. */
void stg_world_remove(stg_world *w, uint32_t lane)
{
    if (w->has_failed)
        return;
    w->lanes[lane]->is_removing = true;
    w->lanes[lane]->has_shed = true;
    stg_world_end_lane(w, lane);
}

/* Memory does not fail by chance for a lane that is added. What the log has lost by
 * then may be the lane's business, and is a hole in its order. */
static void add(stg_world *w, uint32_t lane)
{
    uint32_t one_in = w->fail_one_in;

    for (uint32_t p = 0; w->is_group && p < w->partition_count; p++)
        if (w->partitions[p].trimmed > 0)
            w->lanes[lane]->has_lost = w->lanes[lane]->has_shed = true;
    w->fail_one_in = 0;
    stg_world_start_lane(w, lane);
    w->fail_one_in = one_in;
    stg_world_note_begin(w, lane);
}

/* The new life has the options and the target of the old one, and none of its
 * receipts. `life` tells the dead letters of the two apart. */
void stg_world_add_again(stg_world *w, uint32_t lane)
{
    stg_world_lane *l = w->lanes[lane];

    assert(l->was_removed);
    if (w->has_failed)
        return;
    l->was_removed = l->was_known = l->was_added = l->is_forgotten = false;
    l->life++;
    l->in_flight = 0;
    l->rewound = 0;
    for (uint32_t p = 0; p < w->partition_count; p++)
        l->cursors[p].over = l->cursors[p].tally.dead =
            l->cursors[p].tally.cancelled = 0;
    memset(l->receipts, 0, w->log_count * sizeof *l->receipts);
    add(w, lane);
}

stg_lane_options *stg_world_join_lane(stg_world *w, const char *policy,
                                      bool is_from_earliest)
{
    stg_lane_options *o = NULL;

    if (!w->has_failed)
        o = stg_world_add_lane(w, policy);
    if (o == NULL)
        return NULL;
    o->is_from_earliest = is_from_earliest;
    add(w, (uint32_t)w->lane_count - 1);
    return o;
}

stg_status stg_world_change(stg_world *w, stg_error *err)
{
    if (w->has_failed)
        return STG_IO;
    return stg_flow_change(w->flow, &w->o, w->now, err);
}

/* The old policy stays in the world's list, for flow may keep it. From then on
 * nobody can say how many attempts a message may have (has_changed). */
stg_status stg_world_change_lane(stg_world *w, uint32_t lane,
                                 const stg_lane_options *o, const char *policy,
                                 stg_error *err)
{
    stg_world_lane *l = w->lanes[lane];
    stg_lane_options changed = *o;
    stg_policy *other = NULL;
    stg_status status;

    if (w->has_failed)
        return STG_IO;
    if (policy != NULL) {
        changed.policy = other = stg_world_make_policy(w, policy, err);
        if (other == NULL)
            return STG_INVALID;
    }
    status = stg_flow_change_lane(w->flow, lane, &changed, w->now, err);
    if (status != STG_OK)
        return status;
    l->o = changed;
    if (other != NULL) {
        l->policy = other;
        l->has_changed = true;
    }
    return STG_OK;
}

void stg_world_copy_options(const stg_world *w, uint32_t lane,
                            stg_lane_options *o)
{
    const stg_lane_options *now = &w->lanes[lane]->o;

    o->policy = now->policy;
    o->order = now->order;
    o->is_paused = now->is_paused;
    o->is_gated = now->is_gated;
    o->is_from_earliest = now->is_from_earliest;
    o->is_known = now->is_known;
    o->accepts = now->accepts;
    o->follows = now->follows;
    o->ctx = now->ctx;
}

void stg_world_retain(stg_world *w, uint32_t partition, uint64_t position)
{
    if (!w->has_failed)
        stg_flow_retain(w->flow, partition, position, w->now);
}

void stg_world_trim(stg_world *w, uint32_t partition, uint64_t position)
{
    w->partitions[partition].trimmed = position;
}

/* Runs twice: partitions that are being revoked have to be away before they can
 * be assigned again. */
void stg_world_heal(stg_world *w, stg_world_target *answer)
{
    w->fail_one_in = 0;
    w->store_room = UINT64_MAX;
    w->lost_answers = 0;
    w->store_delay = 5 * STG_MS;
    w->fetch_delay = STG_MS;
    for (uint32_t l = 0; l < w->lane_count; l++) {
        stg_world_set_target(w, l, answer);
        stg_world_pause(w, l, false);
        stg_world_gate(w, l, false);
    }
    stg_world_run(w, STG_NEVER);
    for (uint32_t p = 0; w->is_group && p < w->partition_count; p++)
        stg_world_assign(w, p);
    stg_world_run(w, STG_NEVER);
    stg_world_check_ends(w);
}
