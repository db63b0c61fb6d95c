#include "flow/lane.h"

#include "core/options.h"
#include "flow/state.h"

/* The life of a lane: added, changed, paused, freed. removal.c has its end.
 *
 * A lane is one target's reader of the log. Its peer (budget, breaker, rate,
 * limit in flight) is made with its first attempt: of 10,000 targets most are
 * idle. A change of its options keeps what was spent: a reload must not refill a
 * budget or close a breaker. */

/* Number of a lane that is made and in no table yet. */
static const uint32_t LANE_NOWHERE = UINT32_MAX;

stg_lane *stg_flow_lane(const stg_flow *f, uint32_t number)
{
    return number < f->lane_capacity ? f->lanes[number] : NULL;
}

void stg_lane_move(stg_flow *f, stg_lane *l, stg_lane_list where)
{
    stg_list *const lists[] = {
        [STG_IN_NONE] = NULL,
        [STG_IN_READY] = &f->ready,
        [STG_IN_IDLE] = &f->idle,
        [STG_IN_NO_MEMORY] = &f->no_memory,
    };

    stg_list_remove(&l->link);
    l->where = where;
    if (lists[where] != NULL)
        stg_list_push(lists[where], &l->link);
}

/* A lane that is ending has nothing left to start: it waits for its cursors to
 * be stored only. */
void stg_lane_wake(stg_flow *f, stg_lane *l)
{
    if (l->where != STG_IN_READY && !l->is_ending)
        stg_lane_move(f, l, STG_IN_READY);
}

/* An ordered lane holds all that it has taken, also what is parked: after a
 * restart these rows have to fit again. */
bool stg_lane_may_take(const stg_flow *f, const stg_lane *l)
{
    size_t share = f->o.memory_max / 2 / f->lane_count;
    size_t pinned = l->o.order == STG_ORDER_NONE ? l->pinned : l->in_ring;

    return (pinned == 0 || pinned < share) && !stg_order_is_draining(l);
}

/* A lane with an order starts nothing before all of its parked rows are in
 * memory: they come before what it reads from the log. */
bool stg_lane_is_loaded(const stg_lane *l)
{
    return l->o.order == STG_ORDER_NONE || l->caches[STG_PARKED_RETRIES].is_all;
}

bool stg_lane_is_unresponsive(const stg_lane *l, stg_ns now)
{
    stg_ns timeout = stg_ns_min(l->o.policy->attempt_timeout, 10 * STG_S);

    return stg_ns_sub(now, l->trying_at) >= timeout;
}

static uint32_t first_limit(const stg_lane *l)
{
    return l->o.is_limit_fixed ? l->o.in_flight_max : 1;
}

uint32_t stg_lane_limit(const stg_lane *l)
{
    return l->peer == NULL ? first_limit(l) : l->peer->limit.value;
}

void stg_lane_start_limit(stg_lane *l, stg_ns now)
{
    stg_limit_start(&l->peer->limit, l->o.in_flight_max, now);
    l->peer->limit.value = first_limit(l);
}

uint32_t stg_lane_replays_max(const stg_lane *l)
{
    uint32_t limit = stg_lane_limit(l);

    return limit < 8 ? 1 : limit / 4;
}

uint32_t stg_lane_probes_max(const stg_lane *l)
{
    uint32_t probes = l->o.policy->breaker.probes;

    return probes == 0 ? 1 : probes;
}

uint32_t stg_lane_ahead(const stg_lane *l)
{
    return 4 * l->o.in_flight_max;
}

/* stg_delivery_free() takes a delivery out of its list, so that the loop
 * ends. */
static void free_all(stg_flow *f, stg_list *list, size_t offset)
{
    stg_link *at;

    while ((at = stg_list_first(list)) != NULL)
        stg_delivery_free(f, stg_list_holder(at, offset));
}

/* A delivery that is in a ring and nowhere else: it waits behind another, or
 * for the end of its partition. */
static void free_blocked(stg_flow *f, stg_ring *r)
{
    for (uint32_t i = 0; i < r->count; i++) {
        stg_delivery *d = stg_ring_at(r, r->first + i)->delivery;

        if (d != NULL && !stg_list_has(&d->link) && !stg_list_has(&d->busy))
            stg_delivery_free(f, d);
    }
}

/* A lane that is freed stands in lists and counters of flow, of partitions and of its
 * uplink: it leaves all of them here. */
void stg_lane_free(stg_flow *f, stg_lane *l)
{
    for (uint32_t i = 0; i < f->partition_count; i++) {
        stg_lane_cursor *cursor = stg_lane_cursor_in(l, f->partitions[i]);

        free_blocked(f, &cursor->ring);
        stg_ring_free(&cursor->ring, &f->memory);
        stg_flow_release(f, cursor->restored);
    }
    free_all(f, &l->untried, offsetof(stg_delivery, link));
    for (int i = 0; i < STG_PARKED_CACHES; i++) {
        f->parked_count -= l->caches[i].count;
        free_all(f, &l->caches[i].rows, offsetof(stg_delivery, link));
        stg_list_remove(&l->caches[i].fetch);
    }
    free_all(f, &l->busy, offsetof(stg_delivery, busy));
    stg_list_remove(&l->link);
    stg_list_remove(&l->catch_up_link);
    stg_list_remove(&l->added);
    stg_uplink_leave(l);
    stg_uplink_give_back(f, l->uplink.of, l->number);
    stg_heap_remove(&f->timers, &l->timer);
    stg_flow_release(f, l->cursors);
    stg_flow_release(f, l->peer);
    stg_note_drop(f, l->note);
    f->shedding_count -= l->is_shedding;
    f->awaiting_read -= l->awaits_read;
    f->lanes[l->number] = NULL;
    f->lane_count--;
    stg_flow_release(f, l);
}

stg_lane_options stg_lane_options_default(const stg_policy *policy)
{
    return (stg_lane_options){.policy = policy,
                              .order = STG_ORDER_NONE,
                              .in_flight_max = 64,
                              .parked_max = 10000,
                              .shed_after = 10 * STG_MIN};
}

static const char *find_flaw(const stg_lane_options *o)
{
    if (o->policy == NULL || stg_policy_check(o->policy, NULL) != STG_OK)
        return "policy: expected one that passes stg_policy_check()";
    if (o->in_flight_max < 1 || o->in_flight_max > 10000)
        return "in_flight_max: expected 1 to 10000";
    if (o->parked_max < 1 || o->parked_max > 1000000)
        return "parked_max: expected 1 to 1000000";
    if (o->shed_after > 365 * STG_DAY && o->shed_after != STG_NEVER)
        return "shed-after: expected 0 to 365 d, or never";
    if ((unsigned)o->order > STG_ORDER_STRICT)
        return "order: expected none, key or strict";
    return NULL;
}

static stg_status refuse(stg_error *err, const char *why)
{
    return stg_flow_refuse(err, STG_INVALID, why);
}

/* Numbers are dense: the table is as long as the highest. */
static bool make_cursor_for(stg_flow *f, uint32_t number)
{
    uint32_t capacity = f->lane_capacity == 0 ? STG_SLICE : f->lane_capacity;
    stg_lane **lanes;

    while (capacity <= number)
        capacity *= 2;
    if (capacity == f->lane_capacity)
        return true;
    lanes = stg_flow_allocate(f, capacity * sizeof(stg_lane *));
    if (lanes == NULL)
        return false;
    for (uint32_t i = 0; i < capacity; i++)
        lanes[i] = i < f->lane_capacity ? f->lanes[i] : NULL;
    for (uint32_t p = 0; p < f->partition_count; p++) {
        uint32_t count = capacity / STG_SLICE;
        uint8_t *slices = stg_flow_allocate(f, count);

        if (slices == NULL) {
            stg_flow_release(f, lanes);
            return false;
        }
        for (uint32_t i = 0; i < count; i++)
            slices[i] = i < f->lane_capacity / STG_SLICE
                            ? f->partitions[p]->slices[i]
                            : 0;
        stg_flow_release(f, f->partitions[p]->slices);
        f->partitions[p]->slices = slices;
    }
    stg_flow_release(f, f->lanes);
    f->lanes = lanes;
    f->lane_capacity = capacity;
    return true;
}

/* The books of the policy: budget, breaker and rate limit. The policy has passed its
 * check, in find_flaw(). */
static stg_status init_peer(stg_lane_peer *peer, const stg_lane_options *o,
                            stg_error *err)
{
    const stg_policy *p = o->policy;

    (void)stg_budget_init(&peer->budget, &p->budget);
    (void)stg_breaker_init(&peer->breaker, &p->breaker);
    return stg_limiter_init(&peer->limiter, p->rate,
                            p->rate == 0 ? 0 : o->burst, err);
}

stg_status stg_lane_options_check(const stg_lane_options *o, stg_error *err)
{
    const char *flaw = find_flaw(o);
    stg_lane_peer peer;

    return flaw != NULL ? refuse(err, flaw) : init_peer(&peer, o, err);
}

bool stg_lane_make_peer(stg_flow *f, stg_lane *l, stg_ns now)
{
    stg_lane_peer *peer;

    if (l->peer != NULL)
        return true;
    peer = stg_flow_allocate(f, sizeof *peer);
    if (peer == NULL)
        return false;
    (void)init_peer(peer, &l->o, NULL); // the options were tried by it
    l->peer = peer;
    stg_lane_start_limit(l, now);
    return true;
}

/* On the way out for want of memory the uplink is given back, since lanes share it. */
static stg_lane *make_lane(stg_flow *f, uint32_t number, uint64_t proxy,
                           stg_ns now)
{
    stg_lane *l = stg_flow_allocate(f, sizeof *l);
    stg_uplink *uplink = l == NULL ? NULL : stg_uplink_take(f, proxy);

    if (uplink == NULL) {
        stg_flow_release(f, l);
        return NULL;
    }
    *l = (stg_lane){.number = number, .is_new = true, .uplink.of = uplink};
    if (!stg_partition_fit(f, l, f->slot_count)) {
        stg_uplink_give_back(f, uplink, number);
        stg_flow_release(f, l);
        return NULL;
    }
    stg_list_init(&l->untried);
    stg_list_init(&l->busy);
    stg_parking_init(l);
    l->trying_at = now;
    return l;
}

/* Where there is no partition there is nothing to be stored. */
static void join_all(stg_flow *f, stg_lane *l)
{
    for (uint32_t i = 0; i < f->partition_count; i++) {
        stg_partition *p = f->partitions[i];

        stg_lane_cursor_follow(l, p);
        stg_lane_cursor_begin(l, p);
        stg_lane_cursor_mark(f, l, p, STG_SLICE_MUST);
        if (!stg_partition_is_assigned(p))
            continue;
        stg_lane_cursor_join(f, l, p);
        stg_lane_cursor_lead(f, l, p);
    }
    stg_lane_note(f, l);
}

stg_status stg_flow_make_lane(stg_flow *f, const stg_lane_options *o,
                              stg_ns now, stg_lane **made, stg_error *err)
{
    stg_status status = stg_lane_options_check(o, err);

    if (status != STG_OK)
        return status;
    *made = make_lane(f, LANE_NOWHERE, o->proxy, now);
    return *made != NULL ? STG_OK
                         : stg_flow_refuse(err, STG_IO, "out of memory");
}

void stg_flow_drop_lane(stg_flow *f, stg_lane *made)
{
    if (made == NULL)
        return;
    stg_uplink_give_back(f, made->uplink.of, LANE_NOWHERE);
    stg_flow_release(f, made->cursors);
    stg_flow_release(f, made);
}

stg_status stg_flow_fit_lane(stg_flow *f, uint32_t lane, stg_error *err)
{
    if (lane >= 1000000 || stg_flow_lane(f, lane) != NULL)
        return refuse(err,
                      "lane: expected a number below 1000000 that no lane "
                      "has");
    return make_cursor_for(f, lane)
               ? STG_OK
               : stg_flow_refuse(err, STG_IO, "out of memory");
}

void stg_flow_place_lane(stg_flow *f, stg_lane *made, uint32_t lane,
                         const stg_lane_options *o)
{
    made->number = lane;
    made->o = *o;
    made->order_requested = o->order;
    made->is_paused = o->is_paused;
    made->is_gated = o->is_gated;
    f->lanes[lane] = made;
    f->lane_count++;
    if (f->is_started)
        join_all(f, made);
    stg_lane_wake(f, made);
}

stg_status stg_flow_add_lane(stg_flow *f, uint32_t lane,
                             const stg_lane_options *o, stg_ns now,
                             stg_error *err)
{
    stg_lane *made;
    stg_status status = stg_flow_fit_lane(f, lane, err);

    if (status == STG_OK)
        status = stg_flow_make_lane(f, o, now, &made, err);
    if (status == STG_OK)
        stg_flow_place_lane(f, made, lane, o);
    return status;
}

void stg_lane_ask_budget(stg_flow *f, stg_lane *l)
{
    l->budget_at = 0;
    stg_lane_wake(f, l);
}

/* Attempts under way were paid from the old budget: one of another kind has not
 * counted them yet. */
void stg_lane_adopt(const stg_lane *l, stg_budget *b)
{
    for (stg_link *at = stg_list_first(&l->busy); at != NULL;
         at = stg_list_next(&l->busy, at)) {
        const stg_delivery *d = STG_HOLDER(at, stg_delivery, busy);

        if (d->state == STG_DELIVERY_IN_FLIGHT)
            stg_budget_adopt(b, d->paid);
    }
}

/* The part of the levels that was used up stays used up. */
static void keep_levels(stg_lane_peer *peer, const stg_lane *l, stg_ns now)
{
    const stg_lane_peer *old = l->peer;

    peer->limit = old->limit;
    peer->limit.max = l->o.in_flight_max;
    if (peer->limit.value > peer->limit.max || l->o.is_limit_fixed)
        peer->limit.value = peer->limit.max;
    if (stg_budget_options_equal(&peer->budget.options, &old->budget.options))
        peer->budget = old->budget;
    else
        stg_budget_keep(&peer->budget, &old->budget, now);
    if (peer->budget.options.kind != old->budget.options.kind)
        stg_lane_adopt(l, &peer->budget);
    stg_breaker_keep(&peer->breaker, &old->breaker);
    if (peer->limiter.rate == old->limiter.rate &&
        peer->limiter.burst == old->limiter.burst)
        peer->limiter = old->limiter;
}

static void follow_all(stg_flow *f, stg_lane *l)
{
    for (uint32_t i = 0; f->is_started && i < f->partition_count; i++) {
        stg_lane_cursor_follow(l, f->partitions[i]);
        stg_lane_cursor_pass(f, l, f->partitions[i]);
    }
}

/* The order is only noted here: order.c changes it, when it can. */
stg_status stg_flow_change_lane(stg_flow *f, uint32_t lane,
                                const stg_lane_options *o, stg_ns now,
                                stg_error *err)
{
    stg_lane *l = stg_flow_lane(f, lane);
    stg_order order;
    stg_lane_peer peer;
    bool has_shed_after; // another one

    if (l == NULL)
        return refuse(err, "lane: there is none of this number");
    if (stg_lane_options_check(o, err) != STG_OK)
        return STG_INVALID;
    (void)init_peer(&peer, o, NULL); // the options were tried by it
    stg_uplink_change(f, l, o->proxy);
    order = l->o.order;
    has_shed_after = l->o.shed_after != o->shed_after;
    l->o = *o;
    l->o.order = order;
    l->order_requested = o->order;
    if (l->peer != NULL) {
        keep_levels(&peer, l, now);
        *l->peer = peer;
    }
    follow_all(f, l);
    stg_settle_note_open(f, l, now);
    if (has_shed_after)
        stg_shed_reconsider(f, l, now);
    l->gate_at =
        stg_ns_min(l->gate_at, stg_ns_add(now, o->policy->retry_after_max));
    stg_lane_ask_budget(f, l);
    stg_flow_pause(f, lane, o->is_paused, now);
    stg_flow_gate(f, lane, o->is_gated, now);
    return STG_OK;
}

void stg_flow_pause(stg_flow *f, uint32_t lane, bool is_paused, stg_ns now)
{
    stg_lane *l = stg_flow_lane(f, lane);

    (void)now;
    if (l == NULL)
        return;
    l->is_paused = is_paused;
    l->o.is_paused = is_paused;
    stg_lane_wake(f, l);
}

void stg_flow_gate(stg_flow *f, uint32_t lane, bool is_gated, stg_ns now)
{
    stg_lane *l = stg_flow_lane(f, lane);

    (void)now;
    if (l == NULL)
        return;
    l->is_gated = is_gated;
    l->o.is_gated = is_gated;
    stg_lane_wake(f, l);
}

/* Whether the window has a message that the lane will take. Without an assignment it
 * is empty. */
static bool has_new(const stg_lane *l, const stg_partition *p)
{
    const stg_lane_cursor *cursor = stg_lane_cursor_in(l, p);
    const stg_window *w = &p->window;
    uint64_t at = stg_ns_max(cursor->number, w->first);

    if (!stg_lane_follows(l, p))
        return false;
    while (at < w->end && l->o.accepts != NULL &&
           !l->o.accepts(l->o.ctx, stg_window_at(w, at)))
        at++;
    return at < w->end;
}

static bool has_messages(const stg_flow *f, const stg_lane *l)
{
    for (uint32_t i = 0; i < f->partition_count; i++) {
        const stg_partition *p = f->partitions[i];
        const stg_lane_cursor *cursor = stg_lane_cursor_in(l, p);

        if (cursor->waiting + cursor->rows + cursor->in_flight > 0 ||
            cursor->is_catching_up || has_new(l, p))
            return true;
    }
    return false;
}

bool stg_flow_probe(stg_flow *f, uint32_t lane, stg_ns now)
{
    stg_lane *l = stg_flow_lane(f, lane);

    if (l == NULL || l->peer == NULL || !l->is_open || l->is_paused ||
        l->is_gated || !has_messages(f, l))
        return false;
    stg_breaker_probe_now(&l->peer->breaker, now);
    stg_lane_wake(f, l);
    return true;
}

void stg_flow_replayed(stg_flow *f, uint32_t lane, uint32_t partition,
                       uint64_t count, bool is_again, stg_ns now)
{
    stg_lane *l = stg_flow_lane(f, lane);
    stg_partition *p = stg_flow_partition(f, partition);
    stg_lane_cursor *cursor;

    (void)now;
    if (l == NULL || p == NULL || p->phase == STG_PHASE_LOST)
        return;
    cursor = stg_lane_cursor_in(l, p);
    if (is_again)
        cursor->routed += count;
    else
        cursor->dead -= count;
    cursor->rows += count;
    cursor->replays += count;
    // Rows are due that memory does not know, and may come before others.
    stg_parking_reset(f, &l->caches[STG_PARKED_REPLAYS]);
    stg_lane_cursor_mark(f, l, p, STG_SLICE_MUST);
    stg_lane_wake(f, l);
}
