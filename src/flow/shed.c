/* Messages that a lane settles without an attempt: into one bulk row, durably,
 * with its cursor.
 *
 * A lane does so while its circuit is open for longer than shed-after, when
 * retention passes it, and when it is removed (then they are cancelled). A row is
 * a range of positions of one partition, with one cause; its first position is
 * its name in the store. So positions are folded in their order, and whatever
 * else settles between two of them closes the range (stg_shed_break): a replay
 * reads the whole range from the log again, and may not repeat what was
 * delivered (I16). */
#include "flow/state.h"

void stg_shed_break(const stg_lane *l, stg_lane_cursor *p, uint64_t position)
{
    if (p->bulk.count > 0 && position > p->bulk.last && !l->is_removing)
        p->bulk.is_closed = true;
}

static stg_shed_reason reason_of(const stg_lane *l)
{
    if (l->is_paused)
        return STG_SHED_PAUSED;
    if (l->is_shedding)
        return STG_SHED_OPEN;
    return l->is_open ? STG_SHED_DOWN : STG_SHED_SLOW;
}

/* A row has one cause. */
static bool has_other_reason(const stg_lane *l, const stg_bulk_row *r)
{
    stg_shed_reason reason = reason_of(l);
    bool is_fault = reason == STG_SHED_OPEN || reason == STG_SHED_DOWN;

    return !l->is_removing &&
           (r->reason != reason || (is_fault && r->opening != l->openings));
}

/* Its first position is the row's name in the store, and does not change. */
static bool needs_another(const stg_lane *l, stg_lane_cursor *p,
                          uint64_t position)
{
    const stg_bulk_row *r = &p->bulk;

    if (position > p->taken)
        stg_shed_break(l, p, p->taken);
    if (position > p->lost)
        stg_shed_break(l, p, p->lost);
    return r->count > 0 &&
           (r->is_closed || position < r->first ||
            r->is_cancelled != l->is_removing || has_other_reason(l, r));
}

bool stg_shed_wants(const stg_lane *l, stg_lane_cursor *p, uint64_t position)
{
    // Its rows come first: a message may have one.
    if (!stg_lane_is_loaded(l))
        return false;
    // Attempts that are cancelled come back before anything else is cancelled.
    if (l->is_removing && l->in_flight + l->settling > 0)
        return false;
    if (needs_another(l, p, position) &&
        (p->bulk.is_dirty || p->bulk.is_in_group))
        return false;
    if (position < p->shed_below)
        return true;
    return l->is_shedding && l->is_denied && l->probing == 0 && !l->is_paused &&
           !l->is_gated;
}

/* One row stands for neighbours that were given up for the same reason while the same
 * breaker was open; anything else begins another row. */
static void fold(stg_flow *f, stg_lane *l, stg_partition *p, uint64_t position)
{
    stg_lane_cursor *cursor = stg_lane_cursor_in(l, p);
    stg_bulk_row *r = &cursor->bulk;

    if (needs_another(l, cursor, position)) {
        cursor->taken = stg_ns_max(cursor->taken, r->last);
        *r = (stg_bulk_row){.count = 0};
    }
    if (r->count == 0)
        *r = (stg_bulk_row){.first = position, .last = position};
    if (position > r->last)
        r->last = position;
    r->is_cancelled = l->is_removing;
    r->reason = reason_of(l);
    r->opening = l->openings;
    r->count++;
    r->is_dirty = true;
    if (l->is_removing)
        cursor->cancelled++;
    else
        cursor->dead++;
    l->shed_count++;
    stg_lane_cursor_mark(f, l, p, STG_SLICE_MUST);
}

bool stg_shed_pass(stg_flow *f, stg_lane *l, const stg_message *m)
{
    stg_partition *p = stg_flow_home(f, m);

    if (!stg_order_attach(f, l, p, m->position + 1))
        return false;
    if (stg_lane_cursor_pass_known(f, l, m))
        return true;
    if (!stg_shed_wants(l, stg_lane_cursor_in(l, p), m->position))
        return false; // there is a hole before it
    stg_lane_cursor_in(l, p)->routed++;
    fold(f, l, p, m->position);
    stg_lane_cursor_in(l, p)->passed = m->position;
    stg_lane_cursor_in(l, p)->has_hole = true; // of what is in the ring
    return true;
}

/* An untried one leaves the ring into the range. */
static void fold_delivery(stg_flow *f, stg_lane *l, stg_delivery *d)
{
    stg_lane_cursor *cursor = stg_delivery_cursor(d);

    cursor->waiting--;
    l->untried_count--;
    l->pinned -= d->message->size;
    fold(f, l, stg_flow_home(f, d->message), d->message->position);
    stg_lane_cursor_settle(f, d);
    stg_delivery_free(f, d);
}

/* One slot of the ring. What stays there ends the range; so does what comes
 * next and was settled otherwise, and which leaves the ring together with a
 * first one that is folded. */
static void fold_slot(stg_flow *f, stg_lane *l, stg_lane_cursor *cursor,
                      uint32_t slot)
{
    const stg_ring *r = &cursor->ring;
    const stg_slot at = *stg_ring_at(r, slot);
    bool is_last = slot + 1 - r->first == r->count;
    stg_slot next = {0, at.delivery};

    if (!is_last)
        next = *stg_ring_at(r, slot + 1);
    if (at.delivery != NULL && at.delivery->after_hole)
        stg_shed_break(l, cursor, at.position - 1);
    if (at.delivery == NULL || at.delivery->state != STG_DELIVERY_UNTRIED ||
        !stg_shed_wants(l, cursor, at.position)) {
        stg_shed_break(l, cursor, at.position);
        return;
    }
    fold_delivery(f, l, at.delivery);
    if (next.delivery == NULL)
        stg_shed_break(l, cursor, next.position);
}

/* In the order of the ring, for the first is what names the range. */
static void fold_ring(stg_flow *f, stg_lane *l, stg_partition *p)
{
    stg_lane_cursor *cursor = stg_lane_cursor_in(l, p);
    uint32_t slot = cursor->ring.first;
    uint32_t end = cursor->ring.first + cursor->ring.count;

    for (; slot != end && cursor->ring.count > 0; slot++)
        if (slot - cursor->ring.first < cursor->ring.count) // it has not left
            fold_slot(f, l, cursor, slot);
}

static void fold_window(stg_flow *f, stg_lane *l, stg_partition *p)
{
    stg_lane_cursor *cursor = stg_lane_cursor_in(l, p);
    const stg_window *w = &p->window;

    while (!cursor->is_catching_up && cursor->number < w->end) {
        const stg_message *m = stg_window_at(w, cursor->number);

        if (!stg_shed_wants(l, cursor, m->position) ||
            cursor->ring.count >= stg_lane_ahead(l) || !stg_shed_pass(f, l, m))
            return;
        stg_lane_cursor_advance(f, l, p);
    }
}

/* In an ordered lane what is parked keeps its slot, and never leaves it when
 * the lane is removed. Its row is durable, and is cancelled at the end. */
static void release_heads(stg_flow *f, stg_lane *l)
{
    const stg_list *rows = &l->caches[STG_PARKED_RETRIES].rows;

    if (!l->is_removing || l->in_flight + l->settling > 0)
        return;
    for (stg_link *at = stg_list_first(rows); at != NULL;
         at = stg_list_next(rows, at)) {
        stg_delivery *d = STG_HOLDER(at, stg_delivery, link);

        d->is_released |= d->in_ring;
        if (d->in_ring)
            stg_lane_cursor_settle(f, d);
    }
}

void stg_shed_all(stg_flow *f, stg_lane *l)
{
    bool is_expiring = false;

    for (uint32_t i = 0; i < f->partition_count; i++) {
        stg_partition *p = f->partitions[i];
        stg_lane_cursor *cursor = stg_lane_cursor_in(l, p);

        if (!stg_partition_is_assigned(p) ||
            stg_lane_cursor_is_draining(cursor))
            continue;
        release_heads(f, l);
        fold_ring(f, l, p);
        if (!cursor->is_catching_up && cursor->number < p->window.first)
            stg_lane_cursor_join(f, l, p);
        fold_window(f, l, p);
        release_heads(f, l);
        fold_window(f, l, p);
        is_expiring |= stg_lane_cursor_next(l, p) < cursor->shed_below;
    }
    l->is_expiring = is_expiring;
}

void stg_shed_begin(stg_flow *f, stg_lane *l)
{
    l->is_shedding = true;
    f->shedding_count++;
    l->shed_count = 0;
    stg_flow_tell(f, l->number, 0, STG_TELL_SHEDDING, 0, 0);
}

bool stg_shed_is_due(const stg_lane *l, stg_ns now, stg_ns *at)
{
    stg_ns from = stg_ns_max(l->opened_at, l->probed_from);

    *at = stg_ns_add(from, l->o.shed_after);
    return l->o.shed_after != STG_NEVER && *at <= now;
}

void stg_shed_reconsider(stg_flow *f, stg_lane *l, stg_ns now)
{
    stg_ns at;

    if (l->is_shedding && !stg_shed_is_due(l, now, &at))
        stg_shed_end(f, l);
}

/* The next time it sheds it is into another row. */
void stg_shed_end(stg_flow *f, stg_lane *l)
{
    if (!l->is_shedding)
        return;
    l->is_shedding = false;
    f->shedding_count--;
    stg_flow_tell(f, l->number, 0, STG_TELL_SHED, l->shed_count, 0);
    for (uint32_t i = 0; i < f->partition_count; i++) {
        stg_partition *p = f->partitions[i];

        stg_lane_cursor_in(l, p)->bulk.is_closed = true;
        if (stg_partition_is_assigned(p) &&
            !stg_lane_cursor_in(l, p)->is_catching_up)
            stg_lane_cursor_lead(f, l, p);
    }
}

void stg_flow_retain(stg_flow *f, uint32_t partition, uint64_t position,
                     stg_ns now)
{
    stg_partition *p = stg_flow_partition(f, partition);

    (void)now;
    if (p == NULL || !stg_partition_is_assigned(p))
        return;
    for (uint32_t i = 0; i < f->lane_capacity; i++) {
        stg_lane *l = f->lanes[i];

        if (l == NULL || stg_lane_cursor_base(l, p) >= position ||
            stg_lane_cursor_in(l, p)->shed_below >= position)
            continue;
        stg_lane_cursor_in(l, p)->shed_below = position;
        l->is_expiring = true;
        stg_flow_tell(f, i, partition, STG_TELL_EXPIRING, 0, 0);
        stg_lane_wake(f, l);
    }
}

bool stg_flow_retain_lane(stg_flow *f, uint32_t lane, stg_ns now)
{
    stg_lane *l = stg_flow_lane(f, lane);
    bool has_any = false;

    (void)now;
    for (uint32_t i = 0; l != NULL && i < f->partition_count; i++) {
        stg_partition *p = f->partitions[i];
        uint64_t end = p->window.next;

        if (!stg_partition_is_assigned(p) ||
            stg_lane_cursor_base(l, p) >= end ||
            stg_lane_cursor_base(l, p) < stg_lane_cursor_in(l, p)->shed_below)
            continue;
        stg_lane_cursor_in(l, p)->shed_below = end;
        has_any = true;
    }
    if (!has_any)
        return false;
    l->is_expiring = true;
    stg_lane_wake(f, l);
    return true;
}
