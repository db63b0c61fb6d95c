/* What people do to a world: lanes that come, go, pause and change. */
#include "tests/flow/world_inside.h"

void world_pause(world *w, uint32_t l, bool is_paused)
{
    w->lanes[l].o.is_paused = is_paused;
    stg_flow_pause(w->flow, l, is_paused, w->now);
}

void world_remove(world *w, uint32_t l)
{
    w->lanes[l].is_removing = true;
    w->lanes[l].has_shed = true;
    world_end_lane(w, l);
}

void world_return(world *w, uint32_t number)
{
    lane *l = &w->lanes[number];
    uint32_t one_in = w->fail_one_in;

    CHECK(l->was_removed);
    l->was_removed = l->was_known = l->was_added = false;
    l->life++;
    l->in_flight = 0;
    memset(l->receipts, 0, WORLD_MESSAGES * sizeof *l->receipts);
    w->fail_one_in = 0;
    world_add_lane(w, number);
    w->fail_one_in = one_in;
    world_note_begin(w, number);
}

static stg_lane_options *join(world *w, const char *policy, bool is_from_oldest)
{
    stg_lane_options *o = world_lane(w, policy);
    uint32_t one_in = w->fail_one_in;

    o->is_from_oldest = is_from_oldest;
    w->fail_one_in = 0;
    world_add_lane(w, w->lane_count - 1);
    w->fail_one_in = one_in;
    world_note_begin(w, w->lane_count - 1);
    return o;
}

stg_lane_options *world_join(world *w, const char *policy)
{
    return join(w, policy, false);
}

stg_lane_options *world_join_oldest(world *w, const char *policy)
{
    return join(w, policy, true);
}

stg_status world_change_all(world *w, stg_error *err)
{
    return stg_flow_change(w->flow, &w->o, w->now, err);
}

stg_status world_change(world *w, uint32_t number, const stg_lane_options *o,
                        const char *policy, stg_error *err)
{
    lane *l = &w->lanes[number];
    stg_lane_options wanted = *o;
    stg_status status;

    if (policy != NULL)
        wanted.policy = world_make_policy(w, policy);
    status = stg_flow_change_lane(w->flow, number, &wanted, w->now, err);
    if (status != STG_OK)
        return status;
    l->o = wanted;
    if (policy != NULL) {
        l->policy = w->policies[w->policy_count - 1];
        l->has_changed = true;
    }
    return STG_OK;
}

void world_keep(const world *w, uint32_t l, stg_lane_options *o)
{
    const stg_lane_options *now = &w->lanes[l].o;

    o->policy = now->policy;
    o->order = now->order;
    o->is_paused = now->is_paused;
    o->accepts = now->accepts;
    o->follows = now->follows;
    o->ctx = now->ctx;
}

void world_calm(world *w, world_leaf *leaf, uint64_t seed)
{
    world_fail_one_in(w, 0);
    world_store_room(w, UINT64_MAX);
    world_store_unknown(w, 0);
    world_store_delay(w, 5 * STG_MS);
    world_fetch_delay(w, STG_MS);
    for (uint32_t l = 0; l < w->lane_count; l++) {
        world_leaf_is(w, l, leaf);
        world_pause(w, l, false);
    }
    world_run(w, STG_NEVER);
    for (uint32_t p = 0; w->is_merged && p < w->partition_count; p++)
        world_give(w, p);
    world_run(w, STG_NEVER);
    world_check_ends(w, seed);
}

void world_retain(world *w, uint32_t partition, uint64_t position)
{
    stg_flow_retain(w->flow, partition, position, w->now);
}

void world_trim(world *w, uint32_t partition, uint64_t position)
{
    w->trimmed[partition] = position;
}
