/* Partitions that are revoked in order, or lost.
 *
 * Revoked: nothing begins any more; what is under way may end until the drain is
 * over, then it is cut; a last checkpoint is stored; then it is given back. Its
 * rows stay with this hub (keeps_rows) or leave with it.
 *
 * Lost: another hub may have it already. Nothing more is stored of it, attempts
 * are cancelled, and what comes of them counts no more: the other hub delivers
 * them again.
 *
 * A delivery is awaited where the partition waits for its end; under_way counts
 * them, and the action REVOKED comes at zero. */
#include <assert.h>
#include <string.h>

#include "flow/state.h"

/* -- what is under way ----------------------------------------------------- */

static bool is_of(const stg_delivery *d, const stg_partition *p)
{
    return d->message->slot == p->slot;
}

static bool is_under_way(const stg_delivery *d)
{
    return d->state == STG_DELIVERY_IN_FLIGHT ||
           d->state == STG_DELIVERY_SETTLING;
}

/* A delivery that is tried again has a row, which may stay. */
static void wait_for(stg_lane *l, stg_partition *p)
{
    for (stg_link *at = stg_list_first(&l->busy); at != NULL;
         at = stg_list_next(&l->busy, at)) {
        stg_delivery *d = STG_HOLDER(at, stg_delivery, busy);

        if (!is_of(d, p) || !is_under_way(d) || d->is_awaited ||
            (p->keeps_rows && d->is_stored))
            continue;
        d->is_awaited = true;
        p->under_way++;
    }
}

/* Only attempts that the partition waits for; is_cut: they end as those of a stop. */
static void cancel(stg_flow *f, stg_partition *p, bool is_cut)
{
    for (uint32_t i = 0; i < f->lane_capacity; i++) {
        stg_lane *l = f->lanes[i];

        if (l == NULL || l->in_flight == 0)
            continue;
        for (stg_link *at = stg_list_first(&l->busy); at != NULL;
             at = stg_list_next(&l->busy, at)) {
            stg_delivery *d = STG_HOLDER(at, stg_delivery, busy);

            if (!is_of(d, p) || !d->is_awaited ||
                d->state != STG_DELIVERY_IN_FLIGHT)
                continue;
            d->is_cut = is_cut;
            if (!stg_list_has(&d->change))
                stg_list_push(&f->cancels, &d->change);
        }
    }
    p->is_cut = true;
    p->cut_at = STG_NEVER;
}

/* -- what waits ------------------------------------------------------------ */

/* Nothing begins any more: it keeps its slot, until the end. */
static void hold_untried(stg_lane *l, const stg_partition *p)
{
    stg_link *at = stg_list_first(&l->untried);

    while (at != NULL) {
        stg_delivery *d = STG_HOLDER(at, stg_delivery, link);

        at = stg_list_next(&l->untried, at);
        if (!is_of(d, p))
            continue;
        stg_list_remove(&d->link);
        d->is_blocked = true;
    }
}

/* A row that is durable, and leaves: what has a slot in the ring keeps it until
 * the last checkpoint. */
static void leave_row(stg_flow *f, stg_delivery *d)
{
    d->state = STG_DELIVERY_PARKED;
    d->is_blocked = true;
    if (!d->in_ring)
        stg_delivery_free(f, d);
}

/* Parked rows go with the partition: the hub that gets it has them from the store. */
static void leave_rows(stg_flow *f, stg_lane *l, const stg_partition *p)
{
    for (int i = 0; i < STG_PARKED_CACHES; i++) {
        const stg_list *rows = &l->caches[i].rows;
        stg_link *at = stg_list_first(rows);

        while (at != NULL) {
            stg_delivery *d = STG_HOLDER(at, stg_delivery, link);

            at = stg_list_next(rows, at);
            if (!is_of(d, p))
                continue;
            stg_parking_take(f, d);
            leave_row(f, d);
        }
    }
}

/* Back from an attempt without an end, or parked in a partition that is
 * revoked. */
void stg_revoke_leave(stg_flow *f, stg_delivery *d)
{
    stg_revoke_note(f, d);
    if (d->is_stored) {
        leave_row(f, d);
        return;
    }
    d->state = STG_DELIVERY_UNTRIED;
    d->is_blocked = true;
    d->lane->untried_count++;
    d->lane->pinned += d->message->size;
}

/* It is as if the lane had never taken it. */
static void undo_take(stg_flow *f, stg_delivery *d)
{
    stg_lane_cursor *cursor = stg_delivery_cursor(d);

    if (!d->is_stored) {
        cursor->routed--;
        cursor->waiting--;
    }
    if (d->state == STG_DELIVERY_UNTRIED) {
        d->lane->untried_count--;
        d->lane->pinned -= d->message->size;
    }
    stg_delivery_free(f, d);
}

void stg_revoke_drop(stg_flow *f, stg_delivery *d)
{
    stg_lane *l = d->lane;

    stg_revoke_note(f, d);
    if (d->state == STG_DELIVERY_SETTLING) {
        l->settling--;
        l->parking -= d->kind == STG_CHANGE_PARK && !d->is_stored;
    }
    undo_take(f, d);
    stg_lane_wake(f, l);
}

/* -- a beginning of the end ------------------------------------------------ */

/* The window goes first: a lane stands at a position. */
static void leave_window(stg_flow *f, stg_partition *p)
{
    for (uint32_t i = 0; i < f->lane_capacity; i++)
        if (f->lanes[i] != NULL) {
            stg_lane_cursor *cursor = stg_lane_cursor_in(f->lanes[i], p);

            cursor->next = stg_lane_cursor_next(f->lanes[i], p);
            cursor->lagging_at = 0;
            if (cursor->is_catching_up)
                stg_lane_cursor_catch_up(f, f->lanes[i], p);
        }
    stg_partition_clear(f, p);
    f->held -= p->reserved;
    p->reserved = 0;
    p->is_reading = false;
    f->merged.count -= p->is_merged;
}

/* Nothing new is taken from here on. What is under way may end, until cut_at; then
 * the last cursors are stored, and flow lets go. */
static void begin(stg_flow *f, stg_partition *p, bool keeps_rows)
{
    leave_window(f, p);
    p->phase = STG_PHASE_REVOKING;
    p->keeps_rows = keeps_rows;
    p->last = STG_LAST_NONE;
    f->revoking++;
    for (uint32_t i = 0; i < f->lane_capacity; i++) {
        stg_lane *l = f->lanes[i];

        if (l == NULL)
            continue;
        hold_untried(l, p);
        if (!keeps_rows)
            leave_rows(f, l, p);
        wait_for(l, p);
        stg_lane_wake(f, l);
    }
}

void stg_flow_revoke(stg_flow *f, uint32_t partition, bool keeps_rows,
                     stg_ns drain, stg_ns now)
{
    stg_partition *p = stg_flow_partition(f, partition);

    if (p == NULL || !stg_partition_is_assigned(p))
        return;
    begin(f, p, keeps_rows);
    p->cut_at = stg_ns_add(now, drain);
}

/* -- a loss ---------------------------------------------------------------- */

/* Drops the changes that have not gone to the store. */
static void drop_pending(stg_flow *f, const stg_partition *p)
{
    stg_checkpoint *c = &f->checkpoint;
    stg_link *at = stg_list_first(&c->pending);

    while (at != NULL) {
        stg_delivery *d = STG_HOLDER(at, stg_delivery, change);

        at = stg_list_next(&c->pending, at);
        if (!is_of(d, p))
            continue;
        c->pending_count--;
        stg_revoke_drop(f, d);
    }
}

static void drop_gone(stg_flow *f, stg_lane *l, const stg_partition *p)
{
    stg_link *at = stg_list_first(&l->busy);

    while (at != NULL) {
        stg_delivery *d = STG_HOLDER(at, stg_delivery, busy);

        at = stg_list_next(&l->busy, at);
        if (is_of(d, p) && d->state == STG_DELIVERY_ENDED)
            stg_delivery_free(f, d);
    }
}

/* Deliveries that stay leave their slots, the others are as if they had not been
 * taken. */
static void empty_ring(stg_flow *f, stg_lane *l, stg_lane_cursor *cursor,
                       bool (*stays)(const stg_delivery *d))
{
    for (uint32_t i = 0; i < cursor->ring.count; i++) {
        stg_delivery *d =
            stg_ring_at(&cursor->ring, cursor->ring.first + i)->delivery;

        if (d == NULL)
            continue;
        d->in_ring = false;
        d->is_blocked = false;
        l->in_ring -= d->message->size;
        if (!stays(d))
            undo_take(f, d);
    }
    stg_ring_free(&cursor->ring, &f->memory);
}

static void lose_lane(stg_flow *f, stg_lane *l, stg_partition *p)
{
    stg_lane_cursor *cursor = stg_lane_cursor_in(l, p);

    leave_rows(f, l, p);
    drop_gone(f, l, p);
    empty_ring(f, l, cursor, is_under_way);
    stg_flow_release(f, cursor->restored);
    cursor->restored = NULL;
    cursor->restored_at = cursor->restored_count = cursor->restored_capacity =
        0;
    cursor->bulk = cursor->expired = (stg_bulk_row){.count = 0};
    wait_for(l, p);
    stg_lane_wake(f, l);
}

static void lose_all(stg_flow *f, stg_partition *p)
{
    p->phase = STG_PHASE_LOST;
    p->keeps_rows = false;
    for (uint32_t i = 0; i < f->lane_capacity; i++)
        if (f->lanes[i] != NULL)
            lose_lane(f, f->lanes[i], p);
    drop_pending(f, p);
    for (uint32_t s = 0; s < f->lane_capacity / STG_SLICE; s++)
        p->slices[s] = 0;
}

/* Another hub may have the partition already: nothing of it is stored any more, and
 * what is under way is cancelled at once. */
void stg_flow_lose(stg_flow *f, uint32_t partition, bool keeps_rows, stg_ns now)
{
    stg_partition *p = stg_flow_partition(f, partition);

    (void)now;
    if (p == NULL || p->phase == STG_PHASE_LOST ||
        (p->phase == STG_PHASE_ROWS && keeps_rows))
        return;
    if (p->phase == STG_PHASE_ROWS)
        f->revoking++;
    if (stg_partition_is_assigned(p))
        begin(f, p, keeps_rows);
    p->is_foreign = true;
    p->is_committed_new = false;
    if (!keeps_rows)
        lose_all(f, p);
    cancel(f, p, false);
    stg_checkpoint_resume(f);
}

void stg_flow_fenced(stg_flow *f, uint32_t partition, stg_ns now)
{
    stg_flow_lose(f, partition, false, now);
}

/* -- the end --------------------------------------------------------------- */

static bool is_stored(const stg_delivery *d)
{
    return d->is_stored;
}

/* The lane stands as after a restart. Rows that settle from now on are noted:
 * there is room for all of them. False: no memory. */
static bool keep_rows(stg_flow *f, stg_lane *l, stg_partition *p)
{
    stg_lane_cursor *cursor = stg_lane_cursor_in(l, p);
    size_t most = cursor->ring.count + cursor->restored_capacity + 1;
    stg_positions *settled = stg_flow_allocate(f, most * sizeof *settled);
    uint64_t base;

    if (settled == NULL)
        return false;
    cursor->restored_count =
        stg_lane_cursor_settled(cursor, false, cursor->next, &base, settled);
    cursor->next = base;
    cursor->taken = cursor->passed = 0;
    cursor->restored_at = 0;
    cursor->restored_capacity = most;
    stg_flow_release(f, cursor->restored);
    cursor->restored = settled;
    cursor->loose_below = UINT64_MAX;
    cursor->bulk = cursor->expired = (stg_bulk_row){.count = 0};
    empty_ring(f, l, cursor, is_stored);
    stg_lane_wake(f, l);
    return true;
}

/* Where memory lacks for one lane, those before it stay as they are, and are not
 * asked again: else many lanes might never have it all at once. */
static bool keep_all_rows(stg_flow *f, stg_partition *p)
{
    for (uint32_t i = 0; i < f->lane_capacity; i++) {
        stg_lane *l = f->lanes[i];

        if (l != NULL && stg_lane_cursor_in(l, p)->loose_below != UINT64_MAX &&
            !keep_rows(f, l, p))
            return false;
    }
    p->phase = STG_PHASE_ROWS;
    return true;
}

/* Nothing is left of it. */
static void leave(stg_flow *f, stg_partition *p)
{
    for (uint32_t i = 0; i < f->lane_capacity; i++)
        if (f->lanes[i] != NULL && p->phase == STG_PHASE_REVOKING)
            lose_lane(f, f->lanes[i], p);
    stg_partition_free(f, p);
    for (uint32_t i = 0; i < f->lane_capacity; i++)
        if (f->lanes[i] != NULL)
            stg_lane_note(f, f->lanes[i]);
}

/* Slices that are marked go into one more group. */
static void want_last(stg_flow *f, stg_partition *p)
{
    bool is_any = false;

    for (uint32_t s = 0; s < f->lane_capacity / STG_SLICE; s++)
        if (p->slices[s] != 0) {
            p->slices[s] |= STG_SLICE_MUST;
            is_any = true;
        }
    if (is_any) {
        f->checkpoint.marks |= STG_SLICE_MUST;
        p->last = STG_LAST_DUE;
    } else {
        p->last = p->is_in_group ? STG_LAST_OUT : STG_LAST_DONE;
    }
}

static bool is_over(stg_flow *f, stg_partition *p)
{
    assert(!p->is_committed_new); // a commit goes first
    if (p->under_way > 0)
        return false;
    if (p->phase != STG_PHASE_LOST && p->last == STG_LAST_NONE)
        want_last(f, p);
    // Another group may have it since its last checkpoint: that is awaited, too.
    return !p->is_in_group &&
           (p->phase == STG_PHASE_LOST || p->last == STG_LAST_DONE);
}

static bool is_awaited(const stg_partition *p)
{
    return p->phase == STG_PHASE_REVOKING || p->phase == STG_PHASE_LOST;
}

void stg_revoke_cut(stg_flow *f, stg_ns now)
{
    for (uint32_t i = 0; i < f->partition_count; i++) {
        stg_partition *p = f->partitions[i];

        if (is_awaited(p) && !p->is_cut && now >= p->cut_at)
            cancel(f, p, true);
    }
}

bool stg_revoke_next(stg_flow *f, stg_action *action, stg_ns now)
{
    for (uint32_t i = 0; f->revoking > 0 && i < f->partition_count; i++) {
        stg_partition *p = f->partitions[i];

        if (!is_awaited(p) || !is_over(f, p))
            continue;
        if (p->is_cut && p->cut_at != STG_NEVER && now < p->cut_at)
            continue; // there was no memory
        *action =
            (stg_action){.kind = STG_ACTION_REVOKED, .partition = p->number};
        if (!p->keeps_rows) {
            leave(f, p);
        } else if (!keep_all_rows(f, p)) {
            p->is_cut = true;
            p->cut_at = stg_ns_add(now, 100 * STG_MS);
            continue;
        }
        f->revoking--;
        return true;
    }
    return false;
}

/* What was cut, lacks memory and is in a group meanwhile waits for the group. */
stg_ns stg_revoke_at(const stg_flow *f)
{
    stg_ns at = STG_NEVER;

    for (uint32_t i = 0; i < f->partition_count; i++) {
        const stg_partition *p = f->partitions[i];

        if (is_awaited(p) && !(p->is_cut && p->is_in_group))
            at = stg_ns_min(at, p->cut_at);
    }
    return at;
}
