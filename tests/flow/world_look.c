/* What came of it: a look at a world. */
#include "flow/lane.h"
#include "flow/state.h"
#include "tests/flow/world_inside.h"

stg_flow *world_flow(world *w)
{
    return w->flow;
}

struct stg_lane *world_lane_of(world *w, uint32_t l)
{
    return stg_flow_lane(w->flow, l);
}

stg_lane_view world_look(world *w, uint32_t l)
{
    stg_lane_view view = {.limit = 0};

    CHECK(stg_flow_look(w->flow, l, &view, w->now) == STG_OK);
    return view;
}

stg_flow_view world_look_all(world *w)
{
    stg_flow_view view;

    stg_flow_view_all(w->flow, &view, w->now);
    return view;
}

const char *world_trace(world *w)
{
    return w->trace;
}

void world_trace_off(world *w)
{
    w->is_traced = false;
}

void world_trace_clear(world *w)
{
    w->trace_size = 0;
    w->trace[0] = '\0';
}

world_receipt *world_receipt_of(world *w, uint32_t l, uint64_t position)
{
    return world_receipt_at(w, l, 0, position);
}

stg_ns world_now(const world *w)
{
    return w->now;
}

stg_ns world_after(const world *w, stg_ns wait)
{
    return stg_ns_add(w->now, wait);
}

stg_rng *world_rng(world *w)
{
    return &w->rng;
}

uint64_t world_allocations(const world *w)
{
    return w->allocations;
}

size_t world_parked(const world *w)
{
    return w->row_count;
}

size_t world_dead_count(const world *w)
{
    return w->dead_count;
}

const world_dead *world_dead_at(const world *w, size_t i)
{
    return &w->dead[i];
}

uint64_t world_committed(const world *w, uint32_t partition)
{
    return w->committed[partition];
}

uint64_t world_published(const world *w)
{
    return w->log_count;
}

uint64_t world_position(const world *w, uint64_t i)
{
    return w->log[i].position;
}

uint32_t world_partition(const world *w, uint64_t i)
{
    return w->log[i].partition;
}

uint32_t world_crashes(const world *w)
{
    return w->crashes;
}

uint32_t world_peak(const world *w, uint32_t l)
{
    return w->lanes[l].peak;
}

uint64_t world_starts(const world *w, uint32_t l)
{
    return w->lanes[l].starts;
}

uint32_t world_lane_count(const world *w)
{
    return w->lane_count;
}

bool world_was_removed(const world *w, uint32_t l)
{
    return w->lanes[l].was_removed;
}

bool world_was_added(const world *w, uint32_t l)
{
    return w->lanes[l].was_added;
}

bool world_is_stopped(const world *w)
{
    return w->is_stopped;
}

uint64_t world_reads(const world *w)
{
    return w->reads;
}

uint64_t world_catch_ups(const world *w)
{
    return w->catch_ups;
}

void world_unread(world *w, uint32_t count)
{
    w->unread = count;
}

uint64_t world_fetches(const world *w)
{
    return w->fetches;
}

uint64_t world_groups(const world *w)
{
    return w->groups;
}
