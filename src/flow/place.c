/* A lane's cursor in one partition. */
#include "flow/state.h"

uint64_t stg_place_next(const stg_flow *f, const stg_lane *l, uint32_t p)
{
    const stg_place *place = &l->places[p];
    const stg_window *w = &f->partitions[p].window;

    if (place->is_laggard || place->number < w->first)
        return place->next;
    return stg_window_position(w, place->number);
}

uint64_t stg_place_base(const stg_flow *f, const stg_lane *l, uint32_t p)
{
    const stg_ring *r = &l->places[p].ring;

    return r->count > 0 ? stg_ring_at(r, r->first)->position
                        : stg_place_next(f, l, p);
}

void stg_place_mark(stg_flow *f, const stg_lane *l, uint32_t p, uint8_t mark)
{
    f->partitions[p].slices[l->number / STG_SLICE] |= mark;
    f->checkpoint.is_dirty = true;
    if (mark & STG_SLICE_MUST)
        f->checkpoint.is_must = true;
}

static bool is_any_laggard(const stg_flow *f, const stg_lane *l)
{
    for (uint32_t p = 0; p < f->partition_count; p++)
        if (l->places[p].is_laggard)
            return true;
    return false;
}

/* Below what was committed the log may be trimmed at any time. */
void stg_place_begin(const stg_flow *f, stg_lane *l, uint32_t p)
{
    const stg_partition *partition = &f->partitions[p];
    uint64_t oldest = stg_ns_max(partition->begin, partition->committed);

    l->places[p].next = l->places[p].durable =
        l->o.is_from_oldest ? stg_ns_min(oldest, partition->window.next)
                            : partition->window.next;
}

void stg_place_join(stg_flow *f, stg_lane *l, uint32_t p)
{
    stg_place *place = &l->places[p];
    const stg_window *w = &f->partitions[p].window;

    if (place->next >= w->start) {
        place->number = stg_window_find(w, place->next);
        place->is_laggard = false;
        if (!is_any_laggard(f, l) && stg_list_has(&l->laggard)) {
            stg_list_remove(&l->laggard);
            stg_flow_tell(f, l->number, p, STG_TELL_JOINED, 0, 0);
        }
        return;
    }
    if (!place->is_laggard)
        stg_flow_tell(f, l->number, p, STG_TELL_LAGGARD, 0, 0);
    place->is_laggard = true;
    if (!stg_list_has(&l->laggard))
        stg_list_push(&f->laggards, &l->laggard);
}

static bool is_restored(stg_flow *f, stg_place *place, uint64_t position)
{
    while (place->restored_at < place->restored_count &&
           place->restored[place->restored_at] < position)
        place->restored_at++;
    if (place->restored_at == place->restored_count) {
        stg_flow_release(f, place->restored);
        place->restored = NULL;
        place->restored_at = place->restored_count = 0;
        return false;
    }
    return place->restored[place->restored_at] == position;
}

/* In a lane without order nobody waits for anybody. Strictly, for all. */
static bool is_behind(const stg_lane *l, const stg_delivery *before,
                      const stg_message *m)
{
    if (l->o.order == STG_ORDER_STRICT)
        return true;
    return m->key != 0 && before->message->key == m->key;
}

static bool is_blocked(const stg_lane *l, const stg_message *m)
{
    const stg_ring *r = &l->places[m->partition].ring;

    if (l->o.order == STG_ORDER_NONE)
        return false;
    for (uint32_t i = 0; i < r->count; i++) {
        const stg_delivery *d = stg_ring_at(r, r->first + i)->delivery;

        if (d != NULL && is_behind(l, d, m))
            return true;
    }
    return false;
}

static void enter_ring(stg_lane *l, stg_delivery *d)
{
    stg_place *place = stg_delivery_place(d);

    d->is_blocked = is_blocked(l, d->message);
    d->slot = stg_ring_push(&place->ring, d->message->position, d);
    d->in_ring = true;
    place->taken = d->message->position;
    l->in_ring += d->message->size;
}

/* The one with the least position among those in memory and not in the ring. */
static stg_delivery *find_unattached(const stg_lane *l, uint32_t p)
{
    const stg_list *rows = &l->shelves[STG_SHELF_FIRST].rows;
    stg_delivery *first = NULL;

    for (stg_link *at = stg_list_first(rows); at != NULL;
         at = stg_list_next(rows, at)) {
        stg_delivery *d = STG_HOLDER(at, stg_delivery, link);

        if (d->in_ring || d->is_released || d->message->partition != p)
            continue;
        if (first == NULL || d->message->position < first->message->position)
            first = d;
    }
    return first;
}

void stg_place_attach(stg_flow *f, stg_lane *l, uint32_t p, uint64_t below)
{
    if (l->o.order == STG_ORDER_NONE)
        return;
    for (;;) {
        stg_delivery *d = find_unattached(l, p);

        if (d == NULL || d->message->position >= below ||
            !stg_ring_reserve(&l->places[p].ring, &f->memory))
            return;
        enter_ring(l, d);
    }
}

static bool is_attached_now(stg_flow *f, stg_lane *l, const stg_message *m)
{
    uint32_t p = m->partition;
    const stg_delivery *d;

    if (l->o.order == STG_ORDER_NONE || l->shelves[STG_SHELF_FIRST].count == 0)
        return false;
    stg_place_attach(f, l, p, m->position);
    d = find_unattached(l, p);
    if (d == NULL || d->message->position != m->position)
        return false;
    stg_place_attach(f, l, p, m->position + 1);
    return true;
}

/* The ring has room for one. */
bool stg_place_skips(stg_flow *f, stg_lane *l, const stg_message *m)
{
    stg_place *place = &l->places[m->partition];

    if (place->restored != NULL && is_restored(f, place, m->position)) {
        place->taken = m->position;
        if (place->ring.count > 0)
            stg_ring_push(&place->ring, m->position, NULL);
        return true;
    }
    if (is_attached_now(f, l, m))
        return true;
    return l->o.accepts != NULL && !l->o.accepts(l->o.ctx, m);
}

bool stg_place_take(stg_flow *f, stg_lane *l, stg_message *m)
{
    stg_place *place = &l->places[m->partition];
    stg_delivery *d;

    if (!stg_ring_reserve(&place->ring, &f->memory))
        return false;
    d = stg_delivery_new(l, f, m);
    if (d == NULL)
        return false;
    m->refs++;
    enter_ring(l, d);
    place->routed++;
    place->waiting++;
    if (d->is_blocked) {
        l->untried_count++;
        l->pinned += m->size;
    } else {
        stg_dispatch_untried(d, false);
    }
    return true;
}

void stg_place_lead(stg_flow *f, const stg_lane *l, uint32_t p)
{
    stg_partition *partition = &f->partitions[p];

    while (partition->furthest < l->places[p].number)
        partition->ahead -=
            stg_window_at(&partition->window, partition->furthest++)->size;
}

/* A lane that sheds is quick, and would leave the others behind. */
void stg_place_advance(stg_flow *f, stg_lane *l, uint32_t p)
{
    stg_place *place = &l->places[p];
    const stg_window *w = &f->partitions[p].window;

    place->behind_at = stg_window_at(w, place->number)->created_at;
    place->next = stg_window_at(w, place->number++)->position + 1;
    if (!l->is_shedding)
        stg_place_lead(f, l, p);
    stg_place_mark(f, l, p, STG_SLICE_DIRTY);
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

/* The first of those that waited for d may go. */
static void unblock_next(stg_flow *f, stg_lane *l, const stg_delivery *d)
{
    const stg_ring *r = &l->places[d->message->partition].ring;

    for (uint32_t i = 0; i < r->count; i++) {
        stg_delivery *other = stg_ring_at(r, r->first + i)->delivery;

        if (other != NULL && other != d && is_behind(l, d, other->message)) {
            unblock(f, l, other);
            return;
        }
    }
}

void stg_place_settle(stg_flow *f, stg_delivery *d)
{
    stg_lane *l = d->lane;
    stg_place *place = stg_delivery_place(d);

    stg_place_mark(f, l, d->message->partition, STG_SLICE_DIRTY);
    if (!d->in_ring)
        return;
    d->in_ring = false;
    stg_shed_break(l, place, d->message->position);
    l->in_ring -= d->message->size;
    stg_ring_settle(&place->ring, d->slot, &f->memory);
    if (l->o.order != STG_ORDER_NONE)
        unblock_next(f, l, d);
}
