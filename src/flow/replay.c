/* Rows that others park or delete in the store, under numbers of replays. */
#include "flow/state.h"

/* NULL: the lane or the partition is not here any more. */
static stg_lane_cursor *find_cursor(const stg_lane *l, const stg_partition *p)
{
    return l == NULL || p == NULL || p->phase == STG_PHASE_LOST
               ? NULL
               : stg_lane_cursor_in(l, p);
}

/* Memory does not know which rows there are. */
static void note_rows(stg_flow *f, stg_lane *l, stg_partition *p)
{
    stg_parking_reset(f, &l->caches[STG_PARKED_REPLAYS]);
    stg_lane_cursor_mark(f, l, p, STG_SLICE_MUST);
    stg_lane_wake(f, l);
}

void stg_flow_replayed(stg_flow *f, uint32_t lane, uint32_t partition,
                       uint64_t count, bool is_again, stg_ns now)
{
    stg_lane *l = stg_flow_lane(f, lane);
    stg_partition *p = stg_flow_partition(f, partition);
    stg_lane_cursor *cursor = find_cursor(l, p);

    (void)now;
    if (cursor == NULL)
        return;
    if (is_again)
        cursor->routed += count;
    else
        cursor->dead -= count;
    cursor->rows += count;
    cursor->replays += count;
    note_rows(f, l, p);
}

bool stg_flow_hold_replay(stg_flow *f, uint32_t lane, uint32_t replay)
{
    stg_lane *l = stg_flow_lane(f, lane);

    if (l == NULL)
        return true;
    l->held_replay = replay;
    for (stg_link *at = stg_list_first(&l->busy); at != NULL;
         at = stg_list_next(&l->busy, at)) {
        const stg_delivery *d = STG_HOLDER(at, stg_delivery, busy);

        if (d->replay == replay && d->state != STG_DELIVERY_ENDED)
            return false;
    }
    return true;
}

/* A fetch that is under way may keep rows in memory that a reset would evict. */
static void drop_rows(stg_flow *f, stg_lane *l, uint32_t partition,
                      uint32_t replay)
{
    stg_link *at = stg_list_first(&l->caches[STG_PARKED_REPLAYS].rows);

    while (at != NULL) {
        stg_delivery *d = STG_HOLDER(at, stg_delivery, link);

        at = stg_list_next(&l->caches[STG_PARKED_REPLAYS].rows, at);
        if (d->replay != replay || d->message->partition != partition)
            continue;
        stg_parking_take(f, d);
        stg_delivery_free(f, d);
    }
}

void stg_flow_replay_cancelled(stg_flow *f, uint32_t lane, uint32_t partition,
                               uint32_t replay, uint64_t count)
{
    stg_lane *l = stg_flow_lane(f, lane);
    stg_partition *p = stg_flow_partition(f, partition);
    stg_lane_cursor *cursor = find_cursor(l, p);

    if (cursor == NULL)
        return;
    cursor->cancelled += count;
    cursor->rows -= count;
    cursor->replays -= count;
    drop_rows(f, l, partition, replay);
    note_rows(f, l, p);
}
