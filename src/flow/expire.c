/* What the log has lost before lanes could read it. */
#include "flow/state.h"

/* Of them, those that the row has not got yet: some of what it has lies in a
 * window that the lane was in then. */
static uint64_t count_new(const stg_range *r, uint64_t from, uint64_t end)
{
    uint64_t low = stg_ns_max(from, r->first),
             high = stg_ns_min(end, r->last + 1);

    return r->count == 0 || low >= high ? end - from
                                        : end - from - (high - low);
}

/* How many there were nobody knows: as many as there were positions at most.
 * What joins a row that is not durable yet makes it longer. */
static void fold(stg_flow *f, stg_lane *l, stg_partition *p, uint64_t from,
                 uint64_t end)
{
    stg_place *place = stg_lane_place(l, p);
    stg_range *r = &place->expired;
    uint64_t count = count_new(r, from, end);

    place->lost = stg_ns_max(place->lost, end - 1);
    if (count == 0)
        return;
    if (r->count == 0)
        *r = (stg_range){.first = from, .last = from};
    r->first = stg_ns_min(r->first, from);
    r->last = stg_ns_max(r->last, end - 1);
    r->count += count;
    r->is_dirty = true;
    stg_place_mark(f, l, p, STG_SLICE_MUST);
    stg_flow_tell(f, l->number, p->number, STG_TELL_LOST, count, 0);
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
    // No range row reaches over it.
    place->taken = stg_ns_max(place->taken, place->next - 1);
    place->has_hole = true;
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
