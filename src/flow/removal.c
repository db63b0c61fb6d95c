#include "flow/lane.h"
#include "flow/state.h"

/* The removal of a lane: its attempts are cancelled and come back, what waits is
 * cancelled into a row, its cursors are stored, and only then is it freed.
 *
 * The same questions (is all of it settled, is it durable?) say when a new lane is
 * told of as added. */

/* One whose link `change` is in a list already stays there: it has one list at a
 * time. */
static void cancel_attempts(stg_flow *f, stg_lane *l)
{
    for (stg_link *at = stg_list_first(&l->busy); at != NULL;
         at = stg_list_next(&l->busy, at)) {
        stg_delivery *d = STG_HOLDER(at, stg_delivery, busy);

        if (d->state == STG_DELIVERY_IN_FLIGHT && !stg_list_has(&d->change))
            stg_list_push(&f->cancels, &d->change);
    }
}

/* A parked row above what was read is cancelled as well: the end moves behind
 * it. */
void stg_lane_note_end(stg_lane *l)
{
    const stg_list *rows = &l->caches[STG_PARKED_RETRIES].rows;

    for (stg_link *at = stg_list_first(rows); at != NULL;
         at = stg_list_next(rows, at)) {
        stg_delivery *d = STG_HOLDER(at, stg_delivery, link);
        stg_lane_cursor *cursor = stg_delivery_cursor(d);

        cursor->shed_below =
            stg_ns_max(cursor->shed_below, d->message->position + 1);
    }
}

/* All that a reader has read is cancelled. Before a restart the lane may have
 * come further: then what it settled, or has rows of, stands above what it had
 * taken. */
static void note_ends(stg_flow *f, stg_lane *l)
{
    for (uint32_t i = 0; i < f->partition_count; i++) {
        stg_lane_cursor *cursor = stg_lane_cursor_in(l, f->partitions[i]);
        uint64_t end = f->partitions[i]->window.next;

        f->partitions[i]->followers -= cursor->is_following;
        if (cursor->restored_count > 0)
            end = stg_ns_max(
                end, cursor->restored[cursor->restored_count - 1].last + 1);
        cursor->shed_below = stg_ns_max(cursor->shed_below, end);
    }
    stg_lane_note_end(l);
}

void stg_flow_remove(stg_flow *f, uint32_t lane, stg_ns now)
{
    stg_lane *l = stg_flow_lane(f, lane);

    (void)now;
    if (l == NULL || l->is_removing)
        return;
    l->is_removing = true;
    stg_shed_end(f, l);
    note_ends(f, l);
    cancel_attempts(f, l);
    stg_lane_wake(f, l);
}

/* Deliveries that wait in a partition that is revoked leave with it; and of one
 * that has its rows only nothing waits. */
static bool is_cursor_settled(const stg_lane *l, const stg_partition *p)
{
    const stg_lane_cursor *cursor = stg_lane_cursor_in(l, p);

    if (p->phase == STG_PHASE_LOST)
        return true;
    if (p->phase == STG_PHASE_REVOKING || stg_bulk_row_is_unsaved(cursor))
        return false;
    return !stg_partition_is_assigned(p) || cursor->is_draining ||
           stg_lane_cursor_next(l, p) >= cursor->shed_below;
}

bool stg_lane_is_settled(const stg_flow *f, const stg_lane *l)
{
    if (l->in_flight + l->settling + l->untried_count > 0 ||
        stg_parking_is_fetching(l))
        return false;
    // The rows of an ordered lane say how far it had come.
    if (!stg_lane_is_loaded(l))
        return false;
    for (uint32_t i = 0; i < f->partition_count; i++)
        if (!is_cursor_settled(l, f->partitions[i]))
            return false;
    return true;
}

/* What is lost is not stored any more, once the group is answered that was
 * out. */
static bool is_forgotten(const stg_flow *f, const stg_lane *l)
{
    for (uint32_t i = 0; i < f->partition_count; i++) {
        const stg_partition *p = f->partitions[i];

        if (p->phase == STG_PHASE_LOST
                ? p->is_in_group
                : stg_lane_cursor_in(l, p)->stored != STG_CURSOR_FORGOTTEN)
            return false;
    }
    return true;
}

/* A lost partition does not count: nothing of it is stored any more. What was forgotten
 * again, since the lane is removed, is not there. */
bool stg_lane_is_durable(const stg_flow *f, const stg_lane *l)
{
    for (uint32_t i = 0; i < f->partition_count; i++)
        if (f->partitions[i]->phase != STG_PHASE_LOST &&
            stg_lane_cursor_in(l, f->partitions[i])->stored !=
                STG_CURSOR_DURABLE)
            return false;
    return true;
}

void stg_lane_note(stg_flow *f, stg_lane *l)
{
    if (l->is_ending && is_forgotten(f, l)) {
        stg_lane_move(f, l, STG_IN_NONE);
        stg_list_push(&f->removed, &l->link);
    } else if (l->is_new && stg_lane_is_durable(f, l)) {
        l->is_new = false;
        stg_list_push(&f->added, &l->added);
    }
}
