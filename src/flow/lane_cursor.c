/* A lane's cursor in one partition.
 *
 * `next` is the position after the last one taken, `base` the first one that is
 * not settled: what is stored is base, and a restart goes on there. Between them
 * the ring has a slot for each unsettled position, and maybe for settled ones
 * above: what has no slot is settled, or was never the lane's.
 *
 * A cursor is in the window (`number` counts) or catches up (`next` counts) when
 * the window has moved on: then its messages are read again for it alone.
 * Positions that were settled above base before a restart are `restored`, and are
 * passed over when the reader comes to them (I1). */
#include <string.h>

#include "flow/state.h"

enum { COUNT_TEXT = 48 }; /* a number and its unit */

uint64_t stg_lane_cursor_next(const stg_lane *l, const stg_partition *p)
{
    const stg_lane_cursor *cursor = stg_lane_cursor_in(l, p);
    const stg_window *w = &p->window;

    if (!stg_lane_cursor_is_in_window(l, p))
        return cursor->next;
    return stg_window_position(w, cursor->number);
}

uint64_t stg_lane_cursor_base(const stg_lane *l, const stg_partition *p)
{
    const stg_ring *r = &stg_lane_cursor_in(l, p)->ring;

    return r->count > 0 ? stg_ring_at(r, r->first)->position
                        : stg_lane_cursor_next(l, p);
}

/* Settled, or will be once the group is durable. In an ordered lane what is parked
 * keeps its slot. */
static bool is_settled(const stg_delivery *d, bool with_group)
{
    if (d == NULL || !with_group)
        return d == NULL;
    return d->is_in_group &&
           (d->kind != STG_CHANGE_PARK || d->lane->o.order == STG_ORDER_NONE);
}

/* Above the base, all that has no unsettled slot; nothing where that is only what was
 * never the lane's. */
static size_t find_settled(const stg_lane_cursor *cursor, bool with_group,
                           uint64_t next, uint64_t *base,
                           stg_positions *settled)
{
    const stg_ring *r = &cursor->ring;
    uint64_t from = 0; // behind the last one that is not settled
    size_t count = 0;

    *base = next;
    if (r->count > 0 && r->settled == 0 && !with_group) {
        *base = stg_ring_at(r, r->first)->position;
        if (cursor->passed < *base)
            return 0;
    }
    for (uint32_t i = 0; i < r->count; i++) {
        const stg_slot *slot = stg_ring_at(r, r->first + i);

        if (is_settled(slot->delivery, with_group))
            continue;
        if (from == 0)
            *base = slot->position;
        else
            count = stg_positions_append(settled, count, from, slot->position);
        from = slot->position + 1;
    }
    return from == 0 ? 0 : stg_positions_append(settled, count, from, next);
}

size_t stg_lane_cursor_settled(const stg_lane_cursor *cursor, bool with_group,
                               uint64_t next, uint64_t *base,
                               stg_positions *settled)
{
    size_t count = find_settled(cursor, with_group, next, base, settled);

    for (size_t i = cursor->restored_at; i < cursor->restored_count; i++)
        count = stg_positions_append(
            settled, count, stg_ns_max(cursor->restored[i].first, next),
            cursor->restored[i].last + 1);
    return count;
}

bool stg_lane_cursor_is_in_window(const stg_lane *l, const stg_partition *p)
{
    const stg_lane_cursor *cursor = stg_lane_cursor_in(l, p);

    return stg_partition_is_assigned(p) && !cursor->is_catching_up &&
           cursor->number >= p->window.first;
}

stg_ns stg_lane_cursor_oldest(const stg_lane *l, const stg_partition *p)
{
    const stg_lane_cursor *cursor = stg_lane_cursor_in(l, p);
    const stg_window *w = &p->window;
    const stg_ring *r = &cursor->ring;

    if (r->count > 0)
        return stg_ring_at(r, r->first)->delivery->message->created_at;
    if (!stg_lane_cursor_is_in_window(l, p))
        return cursor->lagging_at;
    return cursor->number < w->end
               ? stg_window_at(w, cursor->number)->created_at
               : 0;
}

/* Of what is lost nothing is stored. */
void stg_lane_cursor_mark(stg_flow *f, const stg_lane *l, stg_partition *p,
                          uint8_t mark)
{
    if (p->phase == STG_PHASE_LOST)
        return;
    p->slices[l->number / STG_SLICE] |= mark;
    f->checkpoint.marks |= (uint8_t)(STG_SLICE_DIRTY | (mark & STG_SLICE_MUST));
}

void stg_lane_cursor_mark_all(stg_flow *f, const stg_lane *l, uint8_t mark)
{
    for (uint32_t i = 0; i < f->partition_count; i++)
        stg_lane_cursor_mark(f, l, f->partitions[i], mark);
}

static bool is_any_catching_up(const stg_flow *f, const stg_lane *l)
{
    for (uint32_t i = 0; i < f->partition_count; i++)
        if (stg_lane_cursor_in(l, f->partitions[i])->is_catching_up)
            return true;
    return false;
}

/* The cursor no longer catches up: it is in the window, or freed. */
void stg_lane_cursor_catch_up(stg_flow *f, stg_lane *l, const stg_partition *p)
{
    stg_lane_cursor_in(l, p)->is_catching_up = false;
    if (!stg_list_has(&l->catch_up_link) || is_any_catching_up(f, l))
        return;
    stg_list_remove(&l->catch_up_link);
    stg_flow_tell(f, l->number, p->number, STG_TELL_CAUGHT_UP, 0, 0);
}

/* Below what was committed the log may be trimmed at any time. What the group
 * has committed is settled for a lane that is known, too; what others here have
 * settled above it need not be. */
void stg_lane_cursor_begin(stg_lane *l, const stg_partition *p)
{
    uint64_t oldest = stg_ns_max(p->begin, p->committed);
    bool is_oldest = l->o.is_from_earliest || (l->o.is_known && p->floor > 0);

    stg_lane_cursor_in(l, p)->next = stg_lane_cursor_in(l, p)->durable =
        is_oldest ? stg_ns_min(oldest, p->window.next) : p->window.next;
}

void stg_lane_cursor_follow(stg_lane *l, stg_partition *p)
{
    stg_lane_cursor *cursor = stg_lane_cursor_in(l, p);
    bool was_following = cursor->is_following;

    cursor->is_following =
        l->o.follows == NULL || l->o.follows(l->o.ctx, p->number);
    if (l->is_removing)
        return;
    p->followers += cursor->is_following;
    p->followers -= was_following;
}

/* In an ordered lane rows get their slots as the lane comes to them: while it
 * has any, it goes on message by message. */
bool stg_lane_cursor_may_pass(const stg_lane *l, const stg_partition *p)
{
    const stg_lane_cursor *cursor = stg_lane_cursor_in(l, p);
    bool has_rows = cursor->rows > cursor->replays;

    return stg_partition_is_assigned(p) && !l->is_ending &&
           !stg_lane_follows(l, p) &&
           (!has_rows ||
            (l->o.order == STG_ORDER_NONE && !cursor->is_draining));
}

void stg_lane_cursor_note_hole(stg_lane_cursor *cursor, uint64_t last)
{
    cursor->taken = stg_ns_max(cursor->taken, last);
    cursor->passed = stg_ns_max(cursor->passed, last);
    cursor->has_hole = true;
}

/* Passes over the restored ranges that end below. */
static void pass_restored(stg_lane_cursor *cursor, uint64_t end)
{
    while (cursor->restored_at < cursor->restored_count &&
           cursor->restored[cursor->restored_at].last < end)
        stg_lane_cursor_note_hole(cursor,
                                  cursor->restored[cursor->restored_at++].last);
}

void stg_lane_cursor_pass(stg_flow *f, stg_lane *l, stg_partition *p)
{
    stg_lane_cursor *cursor = stg_lane_cursor_in(l, p);
    const stg_window *w = &p->window;

    if (!stg_lane_cursor_may_pass(l, p))
        return;
    pass_restored(cursor, w->next);
    if (cursor->next < w->next)
        stg_lane_cursor_note_hole(cursor, w->next - 1);
    cursor->next = w->next;
    cursor->number = w->end;
    cursor->lagging_at = 0;
    stg_lane_cursor_catch_up(f, l, p);
    stg_lane_cursor_mark(f, l, p, STG_SLICE_DIRTY);
}

void stg_lane_cursor_join(stg_flow *f, stg_lane *l, stg_partition *p)
{
    stg_lane_cursor *cursor = stg_lane_cursor_in(l, p);
    const stg_window *w = &p->window;

    stg_lane_cursor_pass(f, l, p);
    if (cursor->next >= w->start) {
        cursor->number = stg_window_find(w, cursor->next);
        stg_lane_cursor_catch_up(f, l, p);
        stg_expired_pass_gap(f, l, p);
        return;
    }
    if (cursor->next <
        stg_ns_min(p->lost_below,
                   w->start)) { // and it is not in memory any more
        stg_expired_pass(f, l, p);
        return;
    }
    if (!cursor->is_catching_up)
        stg_flow_tell(f, l->number, p->number, STG_TELL_CATCHING_UP, 0, 0);
    cursor->is_catching_up = true;
    if (cursor->lagging_at == 0) { // nobody knows: since now, at least
        cursor->lagging_at = stg_flow_wall(f, f->now);
        stg_lane_cursor_mark(f, l, p, STG_SLICE_DIRTY);
    }
    if (!stg_list_has(&l->catch_up_link))
        stg_list_push(&f->catching_up, &l->catch_up_link);
}

static void forget_restored(stg_flow *f, stg_lane_cursor *cursor)
{
    stg_flow_release(f, cursor->restored);
    cursor->restored = NULL;
    cursor->restored_at = cursor->restored_count = cursor->restored_capacity =
        0;
}

/* What was passed is not needed any more, unless rows may still be noted. */
static bool is_restored(stg_flow *f, stg_lane_cursor *cursor, uint64_t position)
{
    pass_restored(cursor, position);
    if (cursor->restored_at < cursor->restored_count)
        return cursor->restored[cursor->restored_at].first <= position;
    if (cursor->rows == cursor->replays)
        forget_restored(f, cursor);
    return false;
}

/* A row without a slot in the ring is settled, above all that was taken: when
 * the reader comes there it is to be passed over. There is room for as many as
 * there were rows; a store that has more of them than its cursor says sees one sent
 * again. */
static void note_row(stg_flow *f, stg_lane *l, const stg_delivery *d)
{
    stg_partition *p = stg_flow_home(f, d->message);
    stg_lane_cursor *cursor = stg_lane_cursor_in(l, p);
    uint64_t position = d->message->position;

    if (d->replay > 0 || position < stg_lane_cursor_next(l, p) ||
        cursor->restored_count == cursor->restored_capacity)
        return;
    cursor->restored_count =
        cursor->restored_at +
        stg_positions_insert(cursor->restored + cursor->restored_at,
                             cursor->restored_count - cursor->restored_at,
                             position);
}

void stg_lane_cursor_enter(stg_lane *l, stg_delivery *d)
{
    stg_lane_cursor *cursor = stg_delivery_cursor(d);

    d->is_blocked = stg_order_is_blocked(l, d);
    d->slot = stg_ring_push(&cursor->ring, d->message->position, d);
    d->in_ring = true;
    cursor->taken = d->message->position;
    l->in_ring += d->message->size;
}

bool stg_lane_cursor_pass_known(stg_flow *f, stg_lane *l, const stg_message *m)
{
    stg_lane_cursor *cursor = &l->cursors[m->slot];

    if (cursor->restored != NULL && is_restored(f, cursor, m->position)) {
        stg_lane_cursor_note_hole(cursor, m->position);
        return true;
    }
    if (stg_ring_ends_at(&cursor->ring, m->position))
        return true;
    return l->o.accepts != NULL && !l->o.accepts(l->o.ctx, m);
}

/* "1234" and the unit, at the end of text. */
static const char *print_count(char text[COUNT_TEXT], uint32_t count,
                               const char *unit)
{
    size_t size = strlen(unit) + 1, start = COUNT_TEXT - size;
    char *at = &text[start];

    memcpy(at, unit, size);
    do
        *--at = (char)('0' + count % 10);
    while ((count /= 10) > 0);
    return at;
}

/* The log has not got it as it was published. */
static bool is_unfit(const stg_message *m)
{
    return m->true_size > 0 || m->headers_lost > 0 ||
           m->not_before == STG_NEVER;
}

/* What the row of its dead letter says: how large it was, how many headers it
 * lacks, or that nobody knows when it may be sent. */
static const char *find_flaw(const stg_message *m, char text[COUNT_TEXT])
{
    if (m->true_size > 0)
        return print_count(text, m->true_size, " bytes");
    if (m->headers_lost > 0)
        return print_count(text, m->headers_lost,
                           " of its headers cannot be sent");
    return "its Stagger-Not-Before or Stagger-Expires cannot be read";
}

/* It may not be sent. */
static void refuse(stg_flow *f, stg_delivery *d)
{
    const stg_message *m = d->message;
    bool is_large = m->true_size > 0;
    char text[COUNT_TEXT];
    stg_failure failure = {
        .outcome =
            stg_failed(is_large ? STG_FAULT_TOO_LARGE : STG_FAULT_INVALID),
        .why = STG_WHY_PERMANENT,
        .first_attempt_at = stg_flow_wall(f, f->now),
        .last_attempt_at = stg_flow_wall(f, f->now),
        .detail = find_flaw(m, text),
    };

    stg_delivery_note(f, d, &failure);
    d->is_blocked = false;
    stg_settle(f, d, STG_CHANGE_DEAD);
}

/* Memory is reserved first: what is taken from the window cannot be put back. A
 * message that cannot be delivered (too large, headers lost) ends as a dead letter
 * without an attempt. */
bool stg_lane_cursor_take(stg_flow *f, stg_lane *l, stg_message *m)
{
    stg_lane_cursor *cursor = &l->cursors[m->slot];
    stg_delivery *d;

    if (!stg_order_attach(f, l, stg_flow_home(f, m), m->position + 1))
        return false;
    if (stg_lane_cursor_pass_known(f, l, m))
        return true;
    if (!stg_ring_reserve(&cursor->ring, &f->memory))
        return false;
    d = stg_delivery_new(l, f, m);
    if (d == NULL)
        return false;
    m->refs++;
    d->after_hole = cursor->has_hole;
    cursor->has_hole = false;
    stg_lane_cursor_enter(l, d);
    cursor->routed++;
    cursor->waiting++;
    if (is_unfit(m)) {
        refuse(f, d);
    } else if (d->is_blocked) {
        l->untried_count++;
        l->pinned += m->size;
    } else {
        stg_dispatch_untried(d, false);
    }
    return true;
}

void stg_lane_cursor_lead(stg_flow *f, const stg_lane *l, stg_partition *p)
{
    uint64_t number = stg_lane_cursor_in(l, p)->number;

    while (p->furthest < number && stg_lane_follows(l, p))
        stg_partition_lead(f, p);
}

/* A lane that sheds is quick, and would leave the others behind. */
void stg_lane_cursor_advance(stg_flow *f, stg_lane *l, stg_partition *p)
{
    stg_lane_cursor *cursor = stg_lane_cursor_in(l, p);
    const stg_window *w = &p->window;

    cursor->lagging_at = stg_window_at(w, cursor->number)->created_at;
    cursor->next = stg_window_at(w, cursor->number++)->position + 1;
    stg_expired_pass_gap(f, l, p);
    if (!l->is_shedding)
        stg_lane_cursor_lead(f, l, p);
    stg_lane_cursor_mark(f, l, p, STG_SLICE_DIRTY);
}

/* A row outside of the ring is only noted, for the reader to pass its message; the
 * ring moves the base where the lowest of its deliveries is settled. */
void stg_lane_cursor_settle(stg_flow *f, stg_delivery *d)
{
    stg_lane *l = d->lane;
    stg_lane_cursor *cursor = stg_delivery_cursor(d);

    stg_lane_cursor_mark(f, l, stg_flow_home(f, d->message), STG_SLICE_DIRTY);
    if (!d->in_ring) {
        note_row(f, l, d);
        return;
    }
    d->in_ring = false;
    stg_shed_break(l, cursor, d->message->position);
    l->in_ring -= d->message->size;
    stg_ring_settle(&cursor->ring, d->slot, &f->memory);
    if (l->o.order != STG_ORDER_NONE)
        stg_order_unblock(f, l, d);
}
