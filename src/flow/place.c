/* A lane's cursor in one partition. */
#include <string.h>

#include "flow/state.h"

enum { COUNT_TEXT = 48 }; /* a number and its unit */

uint64_t stg_place_next(const stg_lane *l, const stg_partition *p)
{
    const stg_place *place = stg_lane_place(l, p);
    const stg_window *w = &p->window;

    if (!stg_place_is_in_window(l, p))
        return place->next;
    return stg_window_position(w, place->number);
}

uint64_t stg_place_base(const stg_lane *l, const stg_partition *p)
{
    const stg_ring *r = &stg_lane_place(l, p)->ring;

    return r->count > 0 ? stg_ring_at(r, r->first)->position
                        : stg_place_next(l, p);
}

bool stg_place_is_in_window(const stg_lane *l, const stg_partition *p)
{
    const stg_place *place = stg_lane_place(l, p);

    return stg_partition_is_given(p) && !place->is_laggard &&
           place->number >= p->window.first;
}

stg_ns stg_place_oldest(const stg_lane *l, const stg_partition *p)
{
    const stg_place *place = stg_lane_place(l, p);
    const stg_window *w = &p->window;
    const stg_ring *r = &place->ring;

    if (r->count > 0)
        return stg_ring_at(r, r->first)->delivery->message->created_at;
    if (!stg_place_is_in_window(l, p))
        return place->behind_at;
    return place->number < w->end ? stg_window_at(w, place->number)->created_at
                                  : 0;
}

/* Of what is lost nothing is stored. */
void stg_place_mark(stg_flow *f, const stg_lane *l, stg_partition *p,
                    uint8_t mark)
{
    if (p->phase == STG_PHASE_LOST)
        return;
    p->slices[l->number / STG_SLICE] |= mark;
    f->checkpoint.is_dirty = true;
    if (mark & STG_SLICE_MUST)
        f->checkpoint.is_must = true;
}

void stg_place_mark_all(stg_flow *f, const stg_lane *l, uint8_t mark)
{
    for (uint32_t i = 0; i < f->partition_count; i++)
        stg_place_mark(f, l, f->partitions[i], mark);
}

static bool is_any_laggard(const stg_flow *f, const stg_lane *l)
{
    for (uint32_t i = 0; i < f->partition_count; i++)
        if (stg_lane_place(l, f->partitions[i])->is_laggard)
            return true;
    return false;
}

/* Not behind the window any more: in it, or it is gone. */
void stg_place_catch_up(stg_flow *f, stg_lane *l, const stg_partition *p)
{
    stg_lane_place(l, p)->is_laggard = false;
    if (!stg_list_has(&l->laggard) || is_any_laggard(f, l))
        return;
    stg_list_remove(&l->laggard);
    stg_flow_tell(f, l->number, p->number, STG_TELL_JOINED, 0, 0);
}

/* Below what was committed the log may be trimmed at any time. What the group
 * has committed is settled for a lane that is known, too; what others here have
 * settled above it need not be. */
void stg_place_begin(stg_lane *l, const stg_partition *p)
{
    uint64_t oldest = stg_ns_max(p->begin, p->committed);
    bool is_oldest = l->o.is_from_oldest || (l->o.is_known && p->floor > 0);

    stg_lane_place(l, p)->next = stg_lane_place(l, p)->durable =
        is_oldest ? stg_ns_min(oldest, p->window.next) : p->window.next;
}

void stg_place_follow(stg_lane *l, stg_partition *p)
{
    stg_place *place = stg_lane_place(l, p);
    bool was_following = place->is_following;

    place->is_following =
        l->o.follows == NULL || l->o.follows(l->o.ctx, p->number);
    if (l->is_removing)
        return;
    p->followers += place->is_following;
    p->followers -= was_following;
}

/* In an ordered lane rows take their places as the lane comes to them: while it
 * has any, it goes on message by message. */
bool stg_place_may_pass(const stg_lane *l, const stg_partition *p)
{
    const stg_place *place = stg_lane_place(l, p);
    bool has_rows = place->rows > place->replays;

    return stg_partition_is_given(p) && !l->is_ending &&
           !stg_lane_follows(l, p) &&
           (!has_rows || (l->o.order == STG_ORDER_NONE && !place->is_draining));
}

/* Positions that were settled before a restart, and are passed above an unsettled
 * one, are remembered in the ring. False: no memory. */
static bool pass_restored(stg_flow *f, stg_place *place, uint64_t end)
{
    while (place->restored_at < place->restored_count &&
           place->restored[place->restored_at] < end) {
        if (place->ring.count > 0) {
            if (!stg_ring_reserve(&place->ring, &f->memory))
                return false;
            stg_ring_push(&place->ring, place->restored[place->restored_at],
                          NULL);
        }
        place->restored_at++;
    }
    return true;
}

void stg_place_pass(stg_flow *f, stg_lane *l, stg_partition *p)
{
    stg_place *place = stg_lane_place(l, p);
    const stg_window *w = &p->window;

    if (!stg_place_may_pass(l, p) || !pass_restored(f, place, w->next))
        return;
    place->next = w->next;
    place->number = w->end;
    place->behind_at = 0;
    stg_place_catch_up(f, l, p);
    stg_place_mark(f, l, p, STG_SLICE_DIRTY);
}

void stg_place_join(stg_flow *f, stg_lane *l, stg_partition *p)
{
    stg_place *place = stg_lane_place(l, p);
    const stg_window *w = &p->window;

    stg_place_pass(f, l, p);
    if (place->next >= w->start) {
        place->number = stg_window_find(w, place->next);
        stg_place_catch_up(f, l, p);
        stg_expired_pass_gap(f, l, p);
        return;
    }
    if (place->next <
        stg_ns_min(p->lost_below,
                   w->start)) { // and it is not in memory any more
        stg_expired_pass(f, l, p);
        return;
    }
    if (!place->is_laggard)
        stg_flow_tell(f, l->number, p->number, STG_TELL_LAGGARD, 0, 0);
    place->is_laggard = true;
    if (place->behind_at == 0) { // nobody knows: since now, at least
        place->behind_at = stg_flow_wall(f, f->now);
        stg_place_mark(f, l, p, STG_SLICE_DIRTY);
    }
    if (!stg_list_has(&l->laggard))
        stg_list_push(&f->laggards, &l->laggard);
}

static void forget_restored(stg_flow *f, stg_place *place)
{
    stg_flow_release(f, place->restored);
    place->restored = NULL;
    place->restored_at = place->restored_count = place->restored_capacity = 0;
}

/* What was passed is not needed any more, unless rows may still be noted. */
static bool is_restored(stg_flow *f, stg_place *place, uint64_t position)
{
    while (place->restored_at < place->restored_count &&
           place->restored[place->restored_at] < position)
        place->restored_at++;
    if (place->restored_at < place->restored_count)
        return place->restored[place->restored_at] == position;
    if (place->rows == place->replays)
        forget_restored(f, place);
    return false;
}

static size_t find_restored(const stg_place *place, uint64_t position)
{
    size_t i = place->restored_at;

    while (i < place->restored_count && place->restored[i] < position)
        i++;
    return i;
}

/* A row without a place in the ring is settled, above all that was taken: when
 * the reader comes there it is to be passed over. There is room, for as many as
 * there were rows. */
void stg_place_note(stg_flow *f, stg_lane *l, const stg_delivery *d)
{
    stg_partition *p = stg_flow_home(f, d->message);
    stg_place *place = stg_lane_place(l, p);
    uint64_t position = d->message->position;
    size_t i = find_restored(place, position), count = place->restored_count;

    if (d->replay > 0 || !d->is_stored || position < stg_place_next(l, p) ||
        (i < count && place->restored[i] == position) ||
        count - place->restored_at == place->restored_capacity)
        return;
    if (count == place->restored_capacity) { // what was passed makes room
        memmove(place->restored, place->restored + place->restored_at,
                (count - place->restored_at) * sizeof *place->restored);
        i -= place->restored_at;
        count -= place->restored_at;
        place->restored_at = 0;
    }
    memmove(place->restored + i + 1, place->restored + i,
            (count - i) * sizeof *place->restored);
    place->restored[i] = position;
    place->restored_count = count + 1;
}

void stg_place_enter(stg_lane *l, stg_delivery *d)
{
    stg_place *place = stg_delivery_place(d);

    d->is_blocked = stg_order_is_blocked(l, d);
    d->slot = stg_ring_push(&place->ring, d->message->position, d);
    d->in_ring = true;
    place->taken = d->message->position;
    l->in_ring += d->message->size;
}

/* The ring has room for one. */
bool stg_place_skips(stg_flow *f, stg_lane *l, const stg_message *m)
{
    stg_place *place = &l->places[m->slot];

    if (place->restored != NULL && is_restored(f, place, m->position)) {
        place->taken = m->position;
        if (place->ring.count > 0)
            stg_ring_push(&place->ring, m->position, NULL);
        return true;
    }
    if (stg_order_attach_now(f, l, m))
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
    return m->true_size > 0 || m->headers_lost > 0;
}

/* It may not be sent: the row of a dead letter says how large it was, or how
 * many headers it lacks. */
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
        .detail = is_large ? print_count(text, m->true_size, " bytes")
                           : print_count(text, m->headers_lost,
                                         " of its headers cannot be sent"),
    };

    stg_delivery_note(f, d, &failure);
    d->is_blocked = false;
    stg_settle(f, d, STG_CHANGE_DEAD);
}

bool stg_place_take(stg_flow *f, stg_lane *l, stg_message *m)
{
    stg_place *place = &l->places[m->slot];
    stg_delivery *d;

    if (!stg_ring_reserve(&place->ring, &f->memory))
        return false;
    d = stg_delivery_new(l, f, m);
    if (d == NULL)
        return false;
    m->refs++;
    d->after_hole = place->has_hole;
    place->has_hole = false;
    stg_place_enter(l, d);
    place->routed++;
    place->waiting++;
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

void stg_place_lead(stg_flow *f, const stg_lane *l, stg_partition *p)
{
    uint64_t number = stg_lane_place(l, p)->number;

    while (p->furthest < number && stg_lane_follows(l, p))
        stg_partition_lead(f, p);
}

/* A lane that sheds is quick, and would leave the others behind. */
void stg_place_advance(stg_flow *f, stg_lane *l, stg_partition *p)
{
    stg_place *place = stg_lane_place(l, p);
    const stg_window *w = &p->window;

    place->behind_at = stg_window_at(w, place->number)->created_at;
    place->next = stg_window_at(w, place->number++)->position + 1;
    stg_expired_pass_gap(f, l, p);
    if (!l->is_shedding)
        stg_place_lead(f, l, p);
    stg_place_mark(f, l, p, STG_SLICE_DIRTY);
}

void stg_place_settle(stg_flow *f, stg_delivery *d)
{
    stg_lane *l = d->lane;
    stg_place *place = stg_delivery_place(d);

    stg_place_mark(f, l, stg_flow_home(f, d->message), STG_SLICE_DIRTY);
    if (!d->in_ring) {
        stg_place_note(f, l, d);
        return;
    }
    d->in_ring = false;
    stg_shed_break(l, place, d->message->position);
    l->in_ring -= d->message->size;
    stg_ring_settle(&place->ring, d->slot, &f->memory);
    if (l->o.order != STG_ORDER_NONE)
        stg_order_unblock(f, l, d);
}
