/* What the log has lost before lanes could read it. */
#include "flow/state.h"

/* How many there were nobody knows: as many as there were positions at most.
 * What joins a row that is not durable yet makes it longer. */
static void fold(stg_flow *f, stg_lane *l, stg_partition *p, uint64_t from,
                 uint64_t end)
{
    stg_range *r = &stg_lane_place(l, p)->expired;

    stg_lane_place(l, p)->lost = end - 1;
    if (r->count == 0)
        *r = (stg_range){.first = from};
    r->last = end - 1;
    r->count += end - from;
    r->is_dirty = true;
    stg_place_mark(f, l, p, STG_SLICE_MUST);
    stg_flow_tell(f, l->number, p->number, STG_TELL_LOST, end - from, 0);
}

static bool follows(const stg_lane *l, const stg_partition *p)
{
    return l->o.follows == NULL || l->o.follows(l->o.ctx, p->number);
}

/* A lane in the window goes on in it, and then behind what is lost. */
void stg_expired_pass(stg_flow *f, stg_lane *l, stg_partition *p)
{
    stg_place *place = stg_lane_place(l, p);
    const stg_window *w = &p->window;
    uint64_t begin = p->lost_below;
    bool is_in_window = stg_place_is_in_window(l, p);
    uint64_t from = is_in_window ? w->next : place->next, end = begin;

    if (begin <= w->next) // what is in the window is not lost
        end = is_in_window ? from : stg_ns_min(begin, w->start);
    if (from >= end)
        return;
    if (follows(l, p) && !l->is_ending)
        fold(f, l, p, from, end);
    if (is_in_window)
        return;
    place->next = stg_ns_min(end, w->start);
    place->behind_at = 0;
    stg_place_mark(f, l, p, STG_SLICE_DIRTY);
    stg_place_join(f, l, p);
    stg_lane_wake(f, l);
}

void stg_flow_expired(stg_flow *f, uint32_t partition, uint64_t begin,
                      stg_ns now)
{
    stg_partition *p = stg_flow_partition(f, partition);

    f->now = now;
    if (p == NULL || !stg_partition_is_given(p))
        return;
    p->lost_below = stg_ns_max(p->lost_below, begin);
    for (uint32_t i = 0; i < f->lane_capacity; i++)
        if (f->lanes[i] != NULL)
            stg_expired_pass(f, f->lanes[i], p);
    p->begin = stg_ns_max(p->begin, begin);
    if (begin > p->window.next)
        p->window.next = begin;
}
