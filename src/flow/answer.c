/* The store's answer to a group.
 *
 * A group is whole or not at all. STORED: its changes are booked, and only now do
 * its deliveries go on. FULL: nothing of it was written, all of it waits again, and
 * cursors are tried without rows, since they make room. FENCED: the partition is
 * another hub's, and what is left of the group is made anew. UNKNOWN: it may have
 * been written, so that the very same group is sent again; building another one
 * could book a change twice.
 *
 * A partition may be lost between a group and its answer: each piece of the group
 * looks whether its partition is still here. */
#include <assert.h>

#include "flow/state.h"

/* A partition of the group, or NULL: what was lost counts no more. It is not freed
 * before the answer, nor is a lane: see revoke.c and remove_next(). */
static stg_partition *find_kept(const stg_flow *f, uint32_t number)
{
    stg_partition *p = stg_flow_partition(f, number);

    assert(p != NULL);
    return p->phase == STG_PHASE_LOST ? NULL : p;
}

/* -- it is durable --------------------------------------------------------- */

static void note_cursors(stg_flow *f)
{
    const stg_group *g = &f->checkpoint.group;
    stg_partition *p = NULL;

    for (size_t i = 0; i < g->cursor_count; i++) {
        const stg_cursor *c = &g->cursors[i];
        stg_lane *l = stg_flow_lane(f, c->lane);
        stg_lane_cursor *cursor;

        if (p == NULL || p->number != c->partition)
            p = find_kept(f, c->partition);
        assert(l != NULL);
        if (p == NULL)
            continue;
        cursor = stg_lane_cursor_in(l, p);
        cursor->durable = c->base;
        if (cursor->stored == STG_CURSOR_NEW)
            cursor->stored = STG_CURSOR_DURABLE;
        if (l->is_new)
            stg_lane_note(f, l);
        // A gap that the window has seen is not read again.
        cursor->next = stg_ns_max(cursor->next, c->base);
    }
}

static void note_range(stg_flow *f, stg_lane *l, const stg_partition *p,
                       const stg_change *c, bool is_durable)
{
    stg_lane_cursor *cursor = stg_lane_cursor_in(l, p);
    stg_bulk_row *r = c->is_expired ? &cursor->expired : &cursor->bulk;

    r->is_in_group = false;
    r->is_dirty |= !is_durable;
    if (is_durable)
        r->stored = c->count;
    if (c->is_expired && is_durable && !r->is_dirty)
        *r = (stg_bulk_row){.count = 0}; // the next is another row
    stg_lane_wake(f, l);
}

/* What the group's rows come to, beside the deliveries: bulk rows that are stored,
 * and lanes that are forgotten. What was not stored is marked to be written again. */
static void note_changes(stg_flow *f, bool is_durable)
{
    const stg_group *g = &f->checkpoint.group;

    for (size_t i = 0; i < g->change_count; i++) {
        const stg_change *c = &g->changes[i];
        stg_lane *l = stg_flow_lane(f, c->lane);
        stg_partition *p = find_kept(f, c->partition);

        assert(l != NULL);
        if (p == NULL)
            continue;
        if (c->kind == STG_CHANGE_RANGE) {
            note_range(f, l, p, c, is_durable);
        } else if (c->kind == STG_CHANGE_FORGET && is_durable) {
            stg_lane_cursor_in(l, p)->stored = STG_CURSOR_FORGOTTEN;
            stg_lane_note(f, l);
        }
        if (!is_durable)
            stg_lane_cursor_mark(f, l, p, STG_SLICE_MUST);
    }
}

static void note_partitions(stg_flow *f, bool is_durable)
{
    for (uint32_t i = 0; i < f->partition_count; i++) {
        stg_partition *p = f->partitions[i];

        if (!p->is_in_group)
            continue;
        p->is_in_group = false;
        p->is_raised |= is_durable;
        if (p->last == STG_LAST_OUT)
            p->last = is_durable ? STG_LAST_DONE : STG_LAST_NONE;
    }
}

/* Deliveries that go on after the answer; those that were lost do not. */
static void settle_group(stg_flow *f)
{
    stg_link *at;

    while ((at = stg_list_shift(&f->checkpoint.in_group)) != NULL) {
        stg_delivery *d = STG_HOLDER(at, stg_delivery, change);

        d->is_in_group = false;
        if (stg_flow_home(f, d->message)->phase == STG_PHASE_LOST)
            stg_revoke_drop(f, d);
        else
            stg_settle_durable(f, d);
    }
}

static void succeed(stg_flow *f)
{
    note_cursors(f);
    note_changes(f, true);
    note_partitions(f, true);
    stg_checkpoint_free(f);
    f->checkpoint.state = STG_GROUP_NONE;
    settle_group(f);
    stg_watermark_raise(f);
}

static void open_store_gates(stg_flow *f)
{
    for (uint32_t i = 0; i < f->lane_capacity; i++)
        if (f->lanes[i] != NULL && f->lanes[i]->is_store_full) {
            f->lanes[i]->is_store_full = false;
            stg_lane_wake(f, f->lanes[i]);
        }
    stg_flow_tell(f, 0, 0, STG_TELL_STORE_SPACE_OK, 0, 0);
}

/* -- nothing of it was written --------------------------------------------- */

static void mark_cursors(stg_flow *f)
{
    const stg_group *g = &f->checkpoint.group;

    for (size_t i = 0; i < g->cursor_count; i++) {
        const stg_cursor *c = &g->cursors[i];
        stg_partition *p = find_kept(f, c->partition);

        if (p != NULL)
            stg_lane_cursor_mark(f, stg_flow_lane(f, c->lane), p,
                                 STG_SLICE_DIRTY);
    }
}

/* All of it waits again, first its rows. */
static void take_back(stg_flow *f, bool is_full)
{
    stg_checkpoint *c = &f->checkpoint;
    stg_link *at;

    note_changes(f, false);
    mark_cursors(f);
    note_partitions(f, false);
    stg_checkpoint_free(f);
    c->state = STG_GROUP_NONE;
    while ((at = stg_list_last(&c->in_group)) != NULL) {
        stg_delivery *d = STG_HOLDER(at, stg_delivery, change);

        stg_list_remove(at);
        d->is_in_group = false;
        if (stg_flow_home(f, d->message)->phase == STG_PHASE_LOST) {
            stg_revoke_drop(f, d);
            continue;
        }
        stg_list_unshift(&c->pending, at);
        c->pending_count++;
        d->lane->is_store_full |= is_full;
    }
}

/* The cursors that rows rely on are written with them. */
static void mark_pending(stg_flow *f)
{
    stg_list *pending = &f->checkpoint.pending;

    for (stg_link *at = stg_list_first(pending); at != NULL;
         at = stg_list_next(pending, at)) {
        stg_delivery *d = STG_HOLDER(at, stg_delivery, change);

        stg_lane_cursor_mark(f, d->lane, stg_flow_home(f, d->message),
                             STG_SLICE_MUST);
    }
}

/* The store is full: first the cursors without the rows, with the room that
 * they make; then the rows, every second. A group that had no rows is not sent
 * before that second is over, either: the disk may be full for cursors, too. */
static void refuse(stg_flow *f, stg_ns now)
{
    stg_checkpoint *c = &f->checkpoint;
    bool was_bare = c->is_bare;

    take_back(f, true);
    mark_pending(f);
    if (!c->is_full)
        stg_flow_tell(f, 0, 0, STG_TELL_STORE_FULL, 0, 0);
    c->is_full = true;
    c->is_bare_due = !was_bare && c->pending_count > 0;
    c->retry_at = c->is_bare_due ? now : stg_ns_add(now, STG_S);
}

/* -- nobody knows whether it was ------------------------------------------- */

/* The same group is sent again, but for what was lost since. */
static void strip(stg_flow *f)
{
    stg_checkpoint *c = &f->checkpoint;
    stg_group *g = &c->group;
    size_t count = 0;

    for (size_t i = 0; i < g->change_count; i++)
        if (find_kept(f, c->changes[i].partition) != NULL)
            c->changes[count++] = c->changes[i];
    g->change_count = count;
    count = 0;
    for (size_t i = 0; i < g->cursor_count; i++)
        if (find_kept(f, c->cursors[i].partition) != NULL)
            c->cursors[count++] = c->cursors[i];
    g->cursor_count = count;
    count = 0;
    for (size_t i = 0; i < g->claim_count; i++)
        if (find_kept(f, c->claims[i].partition) != NULL)
            c->claims[count++] = c->claims[i];
    g->claim_count = count;
}

/* Deliveries of partitions that were lost since the group was made: nothing of them is
 * stored any more, whatever the store has answered. */
static void drop_lost(stg_flow *f)
{
    stg_list *in_group = &f->checkpoint.in_group;
    stg_link *at = stg_list_first(in_group);

    strip(f);
    for (uint32_t i = 0; i < f->partition_count; i++)
        if (f->partitions[i]->phase == STG_PHASE_LOST)
            f->partitions[i]->is_in_group = false;
    while (at != NULL) {
        stg_delivery *d = STG_HOLDER(at, stg_delivery, change);

        at = stg_list_next(in_group, at);
        if (stg_flow_home(f, d->message)->phase == STG_PHASE_LOST)
            stg_revoke_drop(f, d);
    }
}

void stg_checkpoint_strip(stg_flow *f)
{
    stg_checkpoint *c = &f->checkpoint;

    if (c->state != STG_GROUP_MADE)
        return;
    drop_lost(f);
    if (c->group.change_count + c->group.cursor_count > 0)
        return;
    stg_checkpoint_free(f);
    c->state = STG_GROUP_NONE;
    c->is_bare = false;
    stg_checkpoint_resume(f);
}

/* -- the answer ------------------------------------------------------------ */

/* Nothing is left that had no room: the partition of it is lost. As long as a
 * cursor is marked the store is full, until it takes a group. */
void stg_checkpoint_resume(stg_flow *f)
{
    stg_checkpoint *c = &f->checkpoint;

    if (!c->is_full || c->state != STG_GROUP_NONE || c->pending_count > 0 ||
        c->marks != 0)
        return;
    c->is_full = c->is_bare_due = false;
    c->retry_at = 0;
    open_store_gates(f);
}

/* A group that may be there is sent again as it is, but for what was lost: also where
 * it is fenced the second time. One that did not fit goes out once more without its
 * new rows (bare), so that what frees room is stored; one that was fenced is taken
 * back, since another hub has its partitions. */
static void answer(stg_flow *f, stg_stored how, stg_ns now)
{
    stg_checkpoint *c = &f->checkpoint;

    c->is_unknown |= how == STG_STORED_UNKNOWN;
    if (how == STG_STORED_UNKNOWN ||
        (how == STG_STORED_FENCED && c->is_unknown)) {
        c->state = STG_GROUP_MADE;
        return;
    }
    if (how == STG_STORED_FULL) {
        refuse(f, now);
        return;
    }
    if (how == STG_STORED_FENCED) {
        c->is_bare_due |= c->is_bare;
        c->is_bare = false;
        take_back(f, false);
        return;
    }
    succeed(f);
    if (c->is_bare) {
        mark_pending(f);
        c->retry_at = stg_ns_add(now, STG_S);
    } else if (c->is_full) {
        c->is_full = false;
        open_store_gates(f);
    }
    c->is_bare = false;
}

void stg_flow_stored(stg_flow *f, stg_stored how, stg_ns now)
{
    if (f->checkpoint.state != STG_GROUP_OUT)
        return;
    answer(f, how, now);
    stg_checkpoint_resume(f);
}
