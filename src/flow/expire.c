/* Messages that the log has lost before lanes could read them. */
#include <assert.h>

#include "flow/state.h"

/* How many there were nobody knows: as many as there were positions at most.
 * Positions that join a row that is not durable yet make it longer; its first
 * one is its name, and stays once it was sent. What was settled before a restart
 * is not counted: so no two rows have one name.
 *
 * A parked row in there has no slot in an ordered lane any more: else it would
 * hold the base below. It is counted, too: the count is a bound. */
static void fold(stg_flow *f, stg_lane *l, stg_partition *p, uint64_t from,
                 uint64_t end)
{
    stg_lane_cursor *cursor = stg_lane_cursor_in(l, p);
    stg_bulk_row *r = &cursor->expired;
    uint64_t first = from;
    uint64_t count = stg_positions_missing(
        cursor->restored, cursor->restored_count, from, end, &first);

    assert(r->count == 0 || r->last < from); // the cursor has passed the row
    cursor->lost = stg_ns_max(cursor->lost, end - 1);
    cursor->loose_below = stg_ns_max(cursor->loose_below, end);
    if (count == 0)
        return;
    if (r->count == 0)
        *r = (stg_bulk_row){.first = first, .last = first};
    r->last = end - 1;
    r->count += count;
    r->is_dirty = true;
    cursor->routed += count;
    cursor->dead += count;
    stg_lane_cursor_mark(f, l, p, STG_SLICE_MUST);
    stg_flow_tell(f, l->number, p->number, STG_TELL_LOST, count, 0);
}

static void settle(stg_flow *f, stg_lane *l, stg_partition *p, uint64_t from,
                   uint64_t end)
{
    stg_lane_cursor *cursor = stg_lane_cursor_in(l, p);

    if (stg_lane_follows(l, p) && !l->is_ending)
        fold(f, l, p, from, end);
    cursor->next = end;
    stg_lane_cursor_note_hole(cursor, end - 1);
    cursor->lagging_at = 0;
    stg_lane_cursor_mark(f, l, p, STG_SLICE_DIRTY);
}

void stg_expired_pass_gap(stg_flow *f, stg_lane *l, stg_partition *p)
{
    stg_lane_cursor *cursor = stg_lane_cursor_in(l, p);
    const stg_window *w = &p->window;
    uint64_t from = p->lost_from, end = p->lost_end;

    if (cursor->number < w->end) {
        from = stg_window_at(w, cursor->number)->lost_from;
        end = stg_window_at(w, cursor->number)->lost_end;
    }
    from = stg_ns_max(from, cursor->next);
    if (from < end)
        settle(f, l, p, from, end);
}

/* A lane in the window takes first what is there. */
void stg_expired_pass(stg_flow *f, stg_lane *l, stg_partition *p)
{
    stg_lane_cursor *cursor = stg_lane_cursor_in(l, p);
    uint64_t end = stg_ns_min(p->lost_below, p->window.start);

    if (stg_lane_cursor_is_in_window(l, p)) {
        stg_expired_pass_gap(f, l, p);
        return;
    }
    if (cursor->next >= end)
        return;
    settle(f, l, p, cursor->next, end);
    stg_lane_cursor_join(f, l, p);
    stg_lane_wake(f, l);
}

/* Where the loss goes beyond the window, the gap is noted until the next message is
 * read: lanes that come there have missed what was in it. */
void stg_flow_expired(stg_flow *f, uint32_t partition, uint64_t begin,
                      stg_ns now)
{
    stg_partition *p = stg_flow_partition(f, partition);

    f->now = now;
    if (p == NULL || !stg_partition_is_assigned(p))
        return;
    p->lost_below = stg_ns_max(p->lost_below, begin);
    if (begin > p->window.next) {
        p->lost_from = p->lost_end > 0 ? p->lost_from : p->window.next;
        p->lost_end = begin;
    }
    for (uint32_t i = 0; i < f->lane_capacity; i++)
        if (f->lanes[i] != NULL)
            stg_expired_pass(f, f->lanes[i], p);
    p->begin = stg_ns_max(p->begin, begin);
    if (begin > p->window.next)
        stg_checkpoint_note_gap(f, p, begin);
}
