#include "sim/delivery/internal.h"

/* Partitions of a world that come and go, as in a group of hubs: assigned,
 * revoked in order, or lost. The store knows a generation for each; a hub that
 * writes in the name of an older one is fenced.
 *
 * There are two kinds of group. With a shared store, cursors and rows go with
 * the partition, and each assignment raises the generation. With a store of its
 * own (keeps_rows) a hub keeps its rows wherever the partition goes,
 * generations stay, and it learns what others did from the group's offset.
 *
 * A partition is AWAY only when flow has answered REVOKED, or the hub began
 * anew. Until then it is REVOKING, and cannot be assigned again. */

bool stg_world_is_assigned(const stg_world *w, uint32_t partition)
{
    return w->partitions[partition].where == STG_WORLD_ASSIGNED;
}

bool stg_world_is_away(const stg_world *w, uint32_t partition)
{
    return w->partitions[partition].where == STG_WORLD_AWAY;
}

/* -- assigned -------------------------------------------------------------- */

/* The cursors that the store has of a partition, of all lanes. */
static size_t gather(const stg_world *w, uint32_t p, stg_cursor *cursors)
{
    size_t count = 0;

    for (uint32_t l = 0; l < w->lane_count; l++)
        if (w->lanes[l]->cursors[p].is_known)
            cursors[count++] = w->lanes[l]->cursors[p].c;
    return count;
}

/* Claims a partition in the store, and gives it to flow with its cursors. The
 * claim is made only if flow takes it. A store that nobody else has refuses
 * nothing: its generation stays. The floor keeps lanes from what others have
 * committed. */
static stg_status assign(stg_world *w, uint32_t p, bool is_rows_only)
{
    stg_cursor *cursors =
        stg_world_allocate(w, w->lane_count + 1, sizeof *cursors);
    stg_world_partition *at = &w->partitions[p];
    stg_assignment g = {.partition = p,
                        .generation = at->generation + !w->keeps_rows,
                        .begin = at->trimmed,
                        .floor = w->keeps_rows ? at->group_at : 0,
                        .is_merged = true,
                        .is_rows_only = is_rows_only,
                        .cursors = cursors};
    stg_status status;

    if (cursors == NULL)
        return STG_IO;
    g.cursor_count = gather(w, p, cursors);
    status = stg_flow_assign(w->flow, &g, w->now, NULL);
    stg_world_release(w, cursors);
    if (status == STG_OK)
        at->generation = at->claimed = g.generation;
    return status;
}

uint64_t stg_world_begin_of(const stg_world *w, uint32_t partition,
                            uint64_t next)
{
    return w->keeps_rows ? stg_ns_max(next, w->partitions[partition].group_at)
                         : next;
}

/* With a shared store other hubs may have settled anything meanwhile: what this
 * one knew is out of date. */
static void note_begins(stg_world *w, uint32_t p)
{
    for (uint32_t l = 0; l < w->lane_count; l++) {
        stg_world_cursor *c = &w->lanes[l]->cursors[p];
        const stg_lane *own = stg_flow_lane(w->flow, l);

        if (!w->keeps_rows)
            stg_world_forget(w, l, p);
        if (!c->is_known && own != NULL)
            stg_world_set_begin(
                c, stg_lane_cursor_next(own, stg_flow_partition(w->flow, p)));
    }
}

/* Flow may refuse a partition that is away for want of memory only. Then it
 * stays away, and the world may try again. What the log has lost is said at
 * once, before anything is read. */
void stg_world_assign(stg_world *w, uint32_t partition)
{
    stg_world_partition *at = &w->partitions[partition];
    bool may_fail = w->fail_one_in > 0 || w->fail_at > 0;
    stg_partition_view v = {.state = STG_PARTITION_ROWS};

    if (at->where != STG_WORLD_AWAY || w->is_stopped || w->has_failed)
        return;
    if (assign(w, partition, false) != STG_OK) {
        stg_world_require(w, may_fail, "check", stg_about_partition(partition),
                          "flow takes a partition that is away");
        return;
    }
    stg_flow_view_partition(w->flow, partition, &v);
    stg_world_require(w, v.state == STG_PARTITION_ASSIGNED, "check",
                      stg_about_partition(partition),
                      "flow has what it was assigned");
    at->where = STG_WORLD_ASSIGNED;
    at->is_lost = false;
    at->assignment = stg_flow_assignment(w->flow, partition);
    at->read_at = v.next;
    at->committed = w->keeps_rows ? at->group_at : 0;
    note_begins(w, partition);
    if (at->trimmed > 0)
        stg_flow_expired(w->flow, partition, at->trimmed, w->now);
}

/* Rows that stay go on wherever their partition is. */
void stg_world_assign_rows(stg_world *w)
{
    for (uint32_t p = 0; p < w->partition_count; p++) {
        if (w->partitions[p].where == STG_WORLD_REVOKING)
            w->partitions[p].where = STG_WORLD_AWAY;
        if (w->keeps_rows)
            stg_world_require(w, assign(w, p, true) == STG_OK, "check",
                              stg_about_partition(p),
                              "flow takes the partition's rows");
    }
}

/* After a restart. What was assigned before is assigned anew: it is set AWAY
 * first, as stg_world_assign() takes nothing else. */
void stg_world_assign_all(stg_world *w)
{
    for (uint32_t p = 0; p < w->partition_count; p++)
        if (stg_world_is_assigned(w, p)) {
            w->partitions[p].where = STG_WORLD_AWAY;
            stg_world_assign(w, p);
        }
}

/* -- revoked, or lost ------------------------------------------------------ */

/* A lane that is removed has no business in it any more. */
static void note_revoking(stg_world *w, uint32_t p, bool is_lost)
{
    w->partitions[p].where = STG_WORLD_REVOKING;
    w->partitions[p].is_lost |= is_lost;
    w->crashes += is_lost;
    for (uint32_t l = 0; l < w->lane_count; l++)
        if (w->lanes[l]->is_removing)
            w->lanes[l]->cursors[p].end = 0;
}

void stg_world_revoke(stg_world *w, uint32_t partition, stg_ns drain)
{
    if (!stg_world_is_assigned(w, partition) || w->has_failed)
        return;
    stg_flow_revoke(w->flow, partition, w->keeps_rows, drain, w->now);
    note_revoking(w, partition, false);
}

/* One that is being revoked in order may still be lost. */
void stg_world_lose(stg_world *w, uint32_t partition)
{
    if (stg_world_is_away(w, partition) || w->has_failed)
        return;
    stg_flow_lose(w->flow, partition, w->keeps_rows, w->now);
    note_revoking(w, partition, true);
}

/* The lowest durable cursor, of those that flow has. */
static uint64_t find_lowest(const stg_world *w, uint32_t p)
{
    uint64_t lowest = UINT64_MAX;

    for (uint32_t l = 0; l < w->lane_count; l++)
        if (w->lanes[l]->cursors[p].is_known &&
            w->lanes[l]->cursors[p].c.base < lowest)
            lowest = w->lanes[l]->cursors[p].c.base;
    return lowest;
}

/* A lane that is new holds back all from where it begins until its cursor is durable;
 * one that is being removed holds back nothing any more. */
static bool is_any_without_cursor(const stg_world *w, uint32_t p)
{
    for (uint32_t i = 0; i < w->lane_count; i++) {
        const stg_world_lane *l = w->lanes[i];

        if (l->is_removing || (!l->was_removed && !l->cursors[p].is_known))
            return true;
    }
    return false;
}

/* Whether nothing of the partition is under way but rows that stay. */
static bool is_at_rest(const stg_world *w, uint32_t p)
{
    for (const stg_world_event *e = w->attempts; e != NULL; e = e->next)
        if (e->partition == p &&
            (!w->keeps_rows ||
             stg_world_find_row(w, e->lane, p, e->attempt.position,
                                e->attempt.replay) == NULL))
            return false;
    return true;
}

/* A partition that goes in order is committed up to its lowest cursor. That
 * cannot be asked of one that was lost or fenced, or where a lane has none. */
void stg_world_note_revoked(stg_world *w, uint32_t partition)
{
    stg_world_partition *at = &w->partitions[partition];
    uint64_t lowest = find_lowest(w, partition);

    stg_world_require(w, at->where == STG_WORLD_REVOKING, "check",
                      stg_about_partition(partition),
                      "only what is to go is revoked");
    at->where = STG_WORLD_AWAY;
    stg_world_require(w, is_at_rest(w, partition), "check",
                      stg_about_partition(partition),
                      "nothing of a revoked partition is under way");
    if (at->is_lost || at->generation > at->claimed || lowest == UINT64_MAX ||
        is_any_without_cursor(w, partition))
        return;
    stg_world_require(w, at->committed == stg_ns_max(lowest, at->committed),
                      "I2", stg_about_partition(partition),
                      "a revoked partition is committed up to its cursors");
}

/* -- commits and claims ---------------------------------------------------- */

/* A commit passes no durable cursor (I2): what the log then trims would be lost
 * to that lane. */
void stg_world_note_commit(stg_world *w, const stg_action *a)
{
    stg_world_partition *at = &w->partitions[a->partition];
    stg_world_subject of =
        stg_about_message(UINT32_MAX, a->partition, a->position);

    stg_world_require(w, a->position >= at->committed, "I2", of,
                      "a commit never goes back");
    at->committed = a->position;
    for (uint32_t i = 0; i < w->lane_count; i++) {
        const stg_world_lane *l = w->lanes[i];
        const stg_world_cursor *c = &l->cursors[a->partition];

        stg_world_require(
            w, !c->is_known || c->c.base >= a->position || l->was_removed, "I2",
            stg_about_message(i, a->partition, a->position),
            "a commit never passes a durable cursor");
    }
    if (!w->is_group)
        return;
    stg_world_require(w,
                      at->where == STG_WORLD_ASSIGNED ||
                          (at->where == STG_WORLD_REVOKING && !at->is_lost),
                      "I2", of, "nothing is committed of what was lost");
    at->group_at = stg_ns_max(at->group_at, a->position);
}

/* All claims are looked at: flow is told of each partition that it has lost. */
bool stg_world_is_fenced(stg_world *w, const stg_group *g)
{
    bool is_fenced = false;

    for (size_t i = 0; i < g->claim_count && w->is_group; i++) {
        uint32_t p = g->claims[i].partition;

        if (g->claims[i].generation == w->partitions[p].generation)
            continue;
        is_fenced = true;
        stg_flow_fenced(w->flow, p, w->now);
        note_revoking(w, p, true);
    }
    return is_fenced;
}

void stg_world_fence(stg_world *w, uint32_t partition)
{
    if (w->keeps_rows || stg_world_is_away(w, partition))
        return;
    w->partitions[partition].generation++;
    w->crashes++;
}

/* The log loses messages that lanes may not have had: for all lanes some may be
 * missing, and their order has holes. */
void stg_world_expire(stg_world *w, uint32_t partition, uint64_t position)
{
    if (position <= w->partitions[partition].trimmed || w->has_failed)
        return;
    w->partitions[partition].trimmed = position;
    for (uint32_t l = 0; l < w->lane_count; l++)
        w->lanes[l]->has_lost = w->lanes[l]->has_shed = true;
    if (stg_world_is_assigned(w, partition))
        stg_flow_expired(w->flow, partition, position, w->now);
}
