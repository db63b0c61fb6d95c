/* What no lane needs any more: in the log, by the durable cursors; in memory,
 * by where the lanes stand. */
#include "flow/state.h"

static uint64_t find_lowest(const stg_flow *f, uint32_t p)
{
    uint64_t lowest = UINT64_MAX;

    for (uint32_t i = 0; i < f->lane_capacity; i++)
        if (f->lanes[i] != NULL && f->lanes[i]->places[p].durable < lowest)
            lowest = f->lanes[i]->places[p].durable;
    return lowest;
}

/* The number of the window that no lane is below. */
static uint64_t find_passed(const stg_flow *f, uint32_t p)
{
    uint64_t passed = f->partitions[p].furthest;

    for (uint32_t i = 0; i < f->lane_capacity; i++) {
        const stg_lane *l = f->lanes[i];

        if (l != NULL && !l->places[p].is_laggard &&
            l->places[p].number < passed)
            passed = l->places[p].number;
    }
    return passed;
}

void stg_watermark_raise(stg_flow *f)
{
    for (uint32_t p = 0; p < f->partition_count; p++) {
        stg_partition *partition = &f->partitions[p];
        uint64_t lowest = find_lowest(f, p);
        uint64_t passed = find_passed(f, p);

        while (partition->window.first < passed)
            stg_flow_drop(f, stg_window_shift(&partition->window));
        if (lowest == UINT64_MAX || lowest <= partition->committed)
            continue;
        partition->committed = lowest;
        partition->is_committed_new = true;
    }
}

bool stg_watermark_next(stg_flow *f, stg_action *action)
{
    for (uint32_t p = 0; p < f->partition_count; p++) {
        stg_partition *partition = &f->partitions[p];

        if (!partition->is_committed_new)
            continue;
        partition->is_committed_new = false;
        *action = (stg_action){.kind = STG_ACTION_COMMIT, .partition = p};
        action->position = partition->committed;
        return true;
    }
    return false;
}
