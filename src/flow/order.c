/* Order: who waits for whom in a lane, where its parked rows stand after a
 * restart, and how it changes.
 *
 * In an ordered lane a delivery keeps its slot in the ring until it is settled,
 * also while it is parked; it is blocked while an earlier one of its key (or any,
 * with strict order) has a slot (I18). Without order a parked one has no slot,
 * and nobody waits for it.
 *
 * So a change of the order has to wait until the rows fit the new rule: towards
 * an order, until all that was begun without has ended; away from it, until every
 * row with a slot is in memory. The change is stored for all partitions in one
 * group, since a restart reads the rows as the cursors say. */
#include "flow/state.h"

/* In a lane without order nobody waits for anybody. Strictly, for all. */
static bool is_behind(const stg_lane *l, const stg_delivery *before,
                      const stg_message *m)
{
    if (l->o.order == STG_ORDER_STRICT)
        return true;
    return m->key != 0 && before->message->key == m->key;
}

bool stg_order_is_blocked(const stg_lane *l, const stg_delivery *d)
{
    const stg_ring *r = &l->cursors[d->message->slot].ring;

    if (l->o.order == STG_ORDER_NONE)
        return false;
    for (uint32_t i = 0; i < r->count; i++) {
        const stg_delivery *other = stg_ring_at(r, r->first + i)->delivery;

        if (other == d)
            return false;
        if (other != NULL && is_behind(l, other, d->message))
            return true;
    }
    return false;
}

static void unblock(stg_flow *f, stg_lane *l, stg_delivery *d)
{
    if (!d->is_blocked)
        return;
    d->is_blocked = false;
    if (d->state == STG_DELIVERY_UNTRIED) {
        l->untried_count--;
        l->pinned -= d->message->size;
        stg_dispatch_untried(d, false);
    }
    stg_lane_wake(f, l);
}

/* In a partition that is revoked all is to wait, but for rows that stay. */
static bool is_denied(const stg_partition *p, const stg_delivery *d)
{
    return p->phase == STG_PHASE_REVOKING && !(p->keeps_rows && d->is_stored);
}

void stg_order_unblock(stg_flow *f, stg_lane *l, const stg_delivery *d)
{
    const stg_partition *p = stg_flow_home(f, d->message);
    const stg_ring *r = &l->cursors[d->message->slot].ring;

    for (uint32_t i = 0; i < r->count; i++) {
        stg_delivery *other = stg_ring_at(r, r->first + i)->delivery;

        if (other != NULL && is_behind(l, d, other->message)) {
            if (!is_denied(p, other))
                unblock(f, l, other);
            return;
        }
    }
}

/* -- after a restart ------------------------------------------------------- */

/* The row has a slot in the ring, or will have when the reader comes there. */
static bool has_cursor(const stg_delivery *d, const stg_partition *p)
{
    const stg_lane_cursor *cursor = stg_delivery_cursor(d);

    return d->message->slot == p->slot && !d->is_released && d->replay == 0 &&
           d->state != STG_DELIVERY_ENDED && !cursor->is_draining &&
           d->message->position >= cursor->loose_below;
}

static stg_delivery *least(stg_delivery *a, stg_delivery *b)
{
    if (a == NULL || a->message->position > b->message->position)
        return b;
    return a;
}

/* The one with the least position among those in memory and not in the ring.
 * What is under way is among them where the partition was assigned again. */
static stg_delivery *find_unattached(const stg_lane *l, const stg_partition *p)
{
    const stg_list *rows = &l->caches[STG_PARKED_RETRIES].rows;
    stg_delivery *first = NULL;

    for (stg_link *at = stg_list_first(rows); at != NULL;
         at = stg_list_next(rows, at)) {
        stg_delivery *d = STG_HOLDER(at, stg_delivery, link);

        if (!d->in_ring && has_cursor(d, p))
            first = least(first, d);
    }
    if (stg_lane_cursor_in(l, p)->restored == NULL)
        return first;
    for (stg_link *at = stg_list_first(&l->busy); at != NULL;
         at = stg_list_next(&l->busy, at)) {
        stg_delivery *d = STG_HOLDER(at, stg_delivery, busy);

        if (!d->in_ring && has_cursor(d, p))
            first = least(first, d);
    }
    return first;
}

bool stg_order_attach(stg_flow *f, stg_lane *l, stg_partition *p,
                      uint64_t below)
{
    stg_lane_cursor *cursor = stg_lane_cursor_in(l, p);
    stg_delivery *d;

    if (l->o.order == STG_ORDER_NONE ||
        (l->caches[STG_PARKED_RETRIES].count == 0 && cursor->restored == NULL))
        return true;
    while ((d = find_unattached(l, p)) != NULL &&
           d->message->position < below) {
        if (!stg_ring_reserve(&cursor->ring, &f->memory))
            return false;
        stg_lane_cursor_enter(l, d);
    }
    return true;
}

static bool is_row_of(const stg_delivery *d, const stg_partition *p)
{
    return d->message->slot == p->slot && d->is_stored && d->replay == 0 &&
           d->state != STG_DELIVERY_ENDED;
}

bool stg_order_has_rows(const stg_lane *l, const stg_partition *p)
{
    const stg_lane_cursor *cursor = stg_lane_cursor_in(l, p);
    const stg_list *rows = &l->caches[STG_PARKED_RETRIES].rows;
    uint64_t missing = cursor->rows - cursor->replays;

    if (stg_lane_is_loaded(l))
        return true;
    for (stg_link *at = stg_list_first(rows); at != NULL;
         at = stg_list_next(rows, at))
        missing -= is_row_of(STG_HOLDER(at, stg_delivery, link), p);
    for (stg_link *at = stg_list_first(&l->busy); at != NULL;
         at = stg_list_next(&l->busy, at))
        missing -= is_row_of(STG_HOLDER(at, stg_delivery, busy), p);
    return missing == 0;
}

/* -- a change -------------------------------------------------------------- */

/* Rows say where they stand by the order that there was. */
void stg_order_restore(stg_flow *f, stg_lane *l, stg_lane_cursor *cursor,
                       const stg_cursor *c)
{
    if (c->parked <= c->replays)
        return;
    if (f->is_started) { // others of its rows may stand otherwise
        cursor->is_draining = c->is_ordered != (l->o.order != STG_ORDER_NONE);
        return;
    }
    if (!c->is_ordered)
        l->o.order = STG_ORDER_NONE;
    else if (l->o.order == STG_ORDER_NONE)
        l->o.order = STG_ORDER_KEY;
}

bool stg_order_has_old_rows(const stg_flow *f, const stg_lane *l)
{
    for (uint32_t i = 0; i < f->partition_count; i++)
        if (stg_lane_cursor_in(l, f->partitions[i])->is_draining)
            return true;
    return false;
}

bool stg_order_is_draining(const stg_lane *l)
{
    return l->o.order == STG_ORDER_NONE && l->order_requested != STG_ORDER_NONE;
}

bool stg_order_is_waiting(const stg_lane *l)
{
    return l->o.order == STG_ORDER_KEY &&
           l->order_requested == STG_ORDER_STRICT;
}

bool stg_order_is_any_taken(const stg_flow *f, const stg_lane *l)
{
    for (uint32_t i = 0; i < f->partition_count; i++)
        if (stg_lane_cursor_in(l, f->partitions[i])->ring.count > 0)
            return true;
    return false;
}

/* Whether every row that has a slot is there. */
static bool is_attached(const stg_flow *f, const stg_lane *l)
{
    for (uint32_t i = 0; i < f->partition_count; i++)
        if (find_unattached(l, f->partitions[i]) != NULL)
            return false;
    return stg_lane_is_loaded(l);
}

static bool may_change(const stg_flow *f, const stg_lane *l)
{
    const stg_parked_cache *cache = &l->caches[STG_PARKED_RETRIES];

    if (cache->is_fetching)
        return false;
    if (l->o.order == STG_ORDER_NONE) // all that was begun without has ended
        return !stg_order_is_any_taken(f, l) && stg_parking_rows(f, l) == 0 &&
               l->in_flight + l->settling == 0;
    if (l->order_requested == STG_ORDER_NONE)
        return is_attached(f, l);
    // Of what is under way some may have to wait.
    return !stg_order_is_waiting(l) || l->in_flight + l->settling == 0;
}

/* Deliveries with a row are settled now, and leave the ring. */
static void release_rows(stg_flow *f, stg_lane *l)
{
    const stg_list *rows = &l->caches[STG_PARKED_RETRIES].rows;

    for (stg_link *at = stg_list_first(rows); at != NULL;
         at = stg_list_next(rows, at))
        stg_lane_cursor_settle(f, STG_HOLDER(at, stg_delivery, link));
    for (stg_link *at = stg_list_first(&l->busy); at != NULL;
         at = stg_list_next(&l->busy, at)) {
        stg_delivery *d = STG_HOLDER(at, stg_delivery, busy);

        if (d->is_stored)
            stg_lane_cursor_settle(f, d);
    }
}

static void block(stg_delivery *d)
{
    d->is_blocked = true;
    if (d->state == STG_DELIVERY_UNTRIED)
        stg_list_remove(&d->link);
}

/* Who waits now, and who no more. */
static void block_anew(stg_flow *f, stg_lane *l, const stg_partition *p)
{
    const stg_ring *r = &stg_lane_cursor_in(l, p)->ring;

    for (uint32_t i = 0; i < r->count; i++) {
        stg_delivery *d = stg_ring_at(r, r->first + i)->delivery;

        if (d == NULL || is_denied(p, d) ||
            stg_order_is_blocked(l, d) == d->is_blocked)
            continue;
        if (d->is_blocked)
            unblock(f, l, d);
        else
            block(d);
    }
}

/* Rows of a partition that is revoked have left memory, and stand in the store as
 * they did: its cursor goes on saying so. */
static bool has_left_rows(const stg_partition *p, const stg_lane_cursor *cursor)
{
    return p->phase == STG_PHASE_REVOKING && !p->keeps_rows &&
           cursor->rows > cursor->replays;
}

void stg_order_change(stg_flow *f, stg_lane *l)
{
    if (l->o.order == l->order_requested || !may_change(f, l))
        return;
    l->o.order = l->order_requested;
    l->caches[STG_PARKED_RETRIES].is_all |= stg_parking_rows(f, l) == 0;
    for (uint32_t i = 0; i < f->partition_count; i++)
        block_anew(f, l, f->partitions[i]);
    // In one group: a restart goes by what the cursors say of all rows.
    stg_lane_cursor_mark_all(f, l, STG_SLICE_MUST);
    if (l->o.order != STG_ORDER_NONE)
        return;
    release_rows(f, l);
    for (uint32_t i = 0; i < f->partition_count; i++) {
        stg_lane_cursor *cursor = stg_lane_cursor_in(l, f->partitions[i]);

        cursor->is_draining = has_left_rows(f->partitions[i], cursor);
    }
    stg_parking_trim(f, &l->caches[STG_PARKED_RETRIES]);
}
