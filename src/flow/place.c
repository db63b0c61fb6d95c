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

bool stg_place_is_in_window(const stg_flow *f, const stg_lane *l, uint32_t p)
{
    const stg_place *place = &l->places[p];

    return !place->is_laggard && place->number >= f->partitions[p].window.first;
}

stg_ns stg_place_oldest(const stg_flow *f, const stg_lane *l, uint32_t p)
{
    const stg_place *place = &l->places[p];
    const stg_window *w = &f->partitions[p].window;
    const stg_ring *r = &place->ring;

    if (r->count > 0)
        return stg_ring_at(r, r->first)->delivery->message->created_at;
    if (!stg_place_is_in_window(f, l, p))
        return place->behind_at;
    return place->number < w->end ? stg_window_at(w, place->number)->created_at
                                  : 0;
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
    stg_place *place = &l->places[m->partition];

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
    stg_place_enter(l, d);
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
        stg_order_unblock(f, l, d);
}
