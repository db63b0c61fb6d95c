/* The positions that no lane needs any more: in the log, by the durable cursors;
 * in memory, by where the lanes stand. */
#include "flow/state.h"

/* UINT64_MAX without lanes: then nothing is committed. Ends where nothing new is
 * to be committed. */
static uint64_t find_lowest(const stg_flow *f, const stg_partition *p)
{
    uint64_t lowest = UINT64_MAX;

    for (uint32_t i = 0; i < f->lane_capacity && lowest > p->committed; i++)
        if (f->lanes[i] != NULL &&
            stg_lane_cursor_in(f->lanes[i], p)->durable < lowest)
            lowest = stg_lane_cursor_in(f->lanes[i], p)->durable;
    return lowest;
}

/* The number of the window that no lane is below; the window's first, or less,
 * where there is nothing to drop. */
static uint64_t find_passed(const stg_flow *f, const stg_partition *p)
{
    uint64_t passed = p->furthest;

    for (uint32_t i = 0; i < f->lane_capacity && passed > p->window.first;
         i++) {
        const stg_lane *l = f->lanes[i];

        if (l != NULL && !stg_lane_cursor_in(l, p)->is_catching_up &&
            stg_lane_cursor_in(l, p)->number < passed)
            passed = stg_lane_cursor_in(l, p)->number;
    }
    return passed;
}

static void drop_passed(stg_flow *f, stg_partition *p)
{
    uint64_t passed = find_passed(f, p);

    while (p->window.first < passed)
        stg_flow_drop(f, stg_window_shift(&p->window));
}

/* Nothing is committed of what another hub has. */
static bool is_over(const stg_partition *p)
{
    return p->is_foreign || p->phase == STG_PHASE_ROWS;
}

/* Commits only grow, and follow the durable cursors and not the lanes: after a
 * restart a lane reads on from its durable cursor. */
void stg_watermark_raise(stg_flow *f)
{
    for (uint32_t i = 0; i < f->partition_count; i++) {
        stg_partition *p = f->partitions[i];
        uint64_t lowest;

        if (!p->is_raised)
            continue;
        p->is_raised = false;
        if (stg_partition_is_assigned(p))
            drop_passed(f, p);
        lowest = find_lowest(f, p);
        if (lowest == UINT64_MAX || lowest <= p->committed || is_over(p))
            continue;
        p->committed = lowest;
        p->is_committed_new = true;
    }
}

void stg_watermark_raise_all(stg_flow *f)
{
    for (uint32_t i = 0; i < f->partition_count; i++)
        f->partitions[i]->is_raised = true;
    stg_watermark_raise(f);
}

bool stg_watermark_next(stg_flow *f, stg_action *action)
{
    for (uint32_t i = 0; i < f->partition_count; i++) {
        stg_partition *p = f->partitions[i];

        if (!p->is_committed_new)
            continue;
        p->is_committed_new = false;
        *action =
            (stg_action){.kind = STG_ACTION_COMMIT, .partition = p->number};
        action->position = p->committed;
        return true;
    }
    return false;
}
