/* Which attempt starts next: the lanes take turns, one attempt a turn.
 *
 * Each lane is in one list: ready, idle (no messages), without a shared slot, or
 * in none, and then its timer, the end of an attempt or a stored group wakes it.
 * A lane that is not ready costs nothing, so that a thousand dead targets do not
 * slow one that is well.
 *
 * Whatever could refuse an attempt is asked in an order in which nothing is spent
 * in vain: slot, delivery, deadline, rate, breaker, budget. What the later ones
 * refuse, the earlier ones get back (return_rate, return_permit).
 *
 * Live messages come before parked ones, but one start in four is for a parked
 * one that is due: neither waits for ever behind the other. */
#include <assert.h>

#include "core/rule.h"
#include "flow/state.h"

#define MEMORY_WAIT (100 * STG_MS) /* before it is asked for again */

/* The result of a lane's turn. */
typedef enum turn {
    STARTED,
    BLOCKED, /* something will wake it: an end, its timer, a stored group */
    NO_SLOT, /* no shared slot is free */
    IDLE,    /* no message waits */
} turn;

void stg_dispatch_untried(stg_delivery *d, bool is_first)
{
    stg_lane *l = d->lane;

    d->state = STG_DELIVERY_UNTRIED;
    if (is_first)
        stg_list_unshift(&l->untried, &d->link);
    else
        stg_list_push(&l->untried, &d->link);
    l->untried_count++;
    l->pinned += d->message->size;
}

static void wake_at(stg_flow *f, stg_lane *l, stg_ns at)
{
    if (at != STG_NEVER)
        stg_heap_put(&f->timers, &l->timer, at);
}

/* -- may the lane start anything at all? ----------------------------------- */

/* Rows of another order wait for no other: where all of them do not fit into
 * memory at once, those that do go first. */
static bool has_rows(const stg_flow *f, const stg_lane *l)
{
    return stg_lane_is_loaded(l) || (l->caches[STG_PARKED_RETRIES].count > 0 &&
                                     stg_order_has_old_rows(f, l));
}

static bool is_off(const stg_flow *f, const stg_lane *l)
{
    return !f->is_started || l->is_paused || l->is_gated || l->is_removing ||
           l->is_store_full || !has_rows(f, l) ||
           l->caches[STG_PARKED_RETRIES].is_unread || stg_order_is_waiting(l);
}

/* Its own slot, or a shared one. */
static turn find_slot(stg_flow *f, const stg_lane *l, stg_ns now)
{
    if (l->in_flight == 0)
        return STARTED;
    if (l->in_flight >= l->peer->limit.value || !stg_flight_has_memory(f, l) ||
        stg_lane_is_unresponsive(l, now))
        return BLOCKED;
    return f->shared < f->o.in_flight_max ? STARTED : NO_SLOT;
}

/* An ordered lane has no more rows than its ring has slots; and replays are
 * what somebody asked for. */
static void open_parked_gate(stg_flow *f, stg_lane *l)
{
    bool is_max = l->o.order == STG_ORDER_NONE &&
                  stg_parking_rows(f, l) + l->parking >= l->o.parked_max;

    if (is_max != l->is_parked_max)
        stg_flow_tell(f, l->number, 0,
                      is_max ? STG_TELL_PARKED_MAX : STG_TELL_PARKED_BELOW_MAX,
                      0, 0);
    l->is_parked_max = is_max;
}

/* -- what could it start? -------------------------------------------------- */

/* In an ordered lane what waits behind a head is held in memory, too: no more
 * than its share. */
static bool has_ring_room(stg_flow *f, const stg_lane *l, stg_partition *p)
{
    return stg_lane_may_take(f, l) &&
           stg_lane_cursor_in(l, p)->ring.count < stg_lane_ahead(l);
}

/* Takes from the window until something can start. False: the window has no
 * more for it, or there is no room. */
static bool take_live(stg_flow *f, stg_lane *l, stg_partition *p, bool *is_idle,
                      bool *wants_merged)
{
    stg_lane_cursor *cursor = stg_lane_cursor_in(l, p);
    const stg_window *w = &p->window;
    uint32_t count;

    if (!stg_partition_is_assigned(p) || stg_lane_cursor_is_draining(cursor) ||
        !stg_order_has_rows(l, p))
        return false;
    if (!cursor->is_catching_up && cursor->number < w->first)
        stg_lane_cursor_join(f, l, p);
    if (cursor->is_catching_up)
        return false;
    while (cursor->number < w->end) {
        stg_message *m = stg_window_at(w, cursor->number);

        *is_idle = false;
        if (!has_ring_room(f, l, p))
            return false;
        if (!stg_lane_cursor_take(f, l, m))
            return false;
        stg_lane_cursor_advance(f, l, p);
        if (!stg_list_is_empty(&l->untried))
            return true;
    }
    cursor->next = w->next;
    *wants_merged |= p->is_merged;
    count = cursor->ring.count;
    // There may be memory later, or what came into the ring may be due.
    if (!stg_order_attach(f, l, p, w->next) || cursor->ring.count > count)
        *is_idle = false;
    return false;
}

/* The first untried one: taken already, or from a window. */
static stg_delivery *find_untried(stg_flow *f, stg_lane *l, bool *is_idle)
{
    stg_link *first = stg_list_first(&l->untried);
    bool wants_merged = false;

    for (uint32_t i = 0; first == NULL && i < f->partition_count; i++) {
        uint32_t at = (l->starts + i) % f->partition_count;

        if (take_live(f, l, f->partitions[at], is_idle, &wants_merged))
            first = stg_list_first(&l->untried);
    }
    if (first == NULL && wants_merged && !l->awaits_read) {
        l->awaits_read = true;
        f->awaiting_read++;
    }
    return STG_HOLDER(first, stg_delivery, link);
}

/* A retry before a replay; of four turns of theirs one is the replay's. */
static stg_delivery *find_due(const stg_flow *f, const stg_lane *l, stg_ns now,
                              stg_ns *at)
{
    const stg_parked_cache *first = &l->caches[STG_PARKED_RETRIES];
    stg_delivery *retry, *replay = NULL;

    if (f->parked_count == 0) // no lane has rows in memory
        return NULL;
    retry = stg_parking_due(l, first, now, at);
    if (l->replaying < stg_lane_replays_max(l))
        replay = stg_parking_due(l, &l->caches[STG_PARKED_REPLAYS], now, at);
    if (replay != NULL && (retry == NULL || l->starts % 16 == 15))
        return replay;
    return retry;
}

/* The next delivery of this lane. Live first; one start in four is for what was
 * parked. */
static stg_delivery *pick_live(stg_flow *f, stg_lane *l, stg_ns now, stg_ns *at,
                               bool *is_idle)
{
    stg_delivery *due = find_due(f, l, now, at), *untried = NULL;

    if (due != NULL && l->starts % 4 == 3)
        return due;
    if (!l->is_parked_max)
        untried = find_untried(f, l, is_idle);
    return untried != NULL ? untried : due;
}

/* The parked ones that may be the next probe: the one tried most, and the one
 * that is due longest. NULL: none is due. */
typedef struct probes {
    stg_delivery *most, *longest;
} probes;

/* Of what is due: the delivery that was tried most, up to the lane's depth, and the
 * one that waits longest. Where no delivery is below the depth, both are the latter. */
static probes find_probes(const stg_lane *l, stg_ns now, stg_ns *at)
{
    bool may_replay = l->replaying < stg_lane_replays_max(l);
    probes p = {NULL, NULL};

    for (int i = 0; i < STG_PARKED_CACHES; i++) {
        const stg_parked_cache *cache = &l->caches[i];
        stg_delivery *due;

        if (i == STG_PARKED_REPLAYS && !may_replay)
            continue;
        due = stg_parking_due(l, cache, now, at);
        if (due != NULL &&
            (p.longest == NULL || due->due_at < p.longest->due_at))
            p.longest = due;
        due = stg_parking_most_tried(l, cache, l->probe_depth, now);
        if (due != NULL && (p.most == NULL ||
                            due->progress.attempts > p.most->progress.attempts))
            p.most = due;
    }
    if (p.most == NULL)
        p.most = p.longest;
    return p;
}

/* I26 The probes of an open breaker are by turns the parked one that was tried
 * most, and a new one, or without one that which is due longest. So a message
 * that no attempt helps does not keep out new ones, and one that needs several
 * attempts gets them.
 *
 * Where attempts have no end, the one tried most might be tried for ever. At
 * probe_depth attempts it gives way to those tried less; when all in memory
 * have come so far, the depth doubles. */
static stg_delivery *pick_probe(stg_flow *f, stg_lane *l, stg_ns now,
                                stg_ns *at, bool *is_idle)
{
    probes p = find_probes(l, now, at);
    stg_delivery *untried = NULL;

    if (p.most != NULL && !l->has_probed_most)
        return p.most;
    if (!l->is_parked_max)
        untried = find_untried(f, l, is_idle);
    return untried != NULL ? untried : p.longest;
}

static stg_delivery *pick(stg_flow *f, stg_lane *l, stg_ns now, stg_ns *at,
                          bool *is_idle)
{
    return l->is_open ? pick_probe(f, l, now, at, is_idle)
                      : pick_live(f, l, now, at, is_idle);
}

/* -- what holds it back? --------------------------------------------------- */

static bool pass_rate(stg_lane *l, stg_ns now, stg_ns *at)
{
    stg_ns due_at = 0;

    if (l->peer->limiter.rate == 0 ||
        stg_limiter_take(&l->peer->limiter, now, &due_at))
        return true;
    l->rate_at = due_at;
    *at = stg_ns_min(*at, due_at);
    return false;
}

static void return_rate(stg_lane *l, stg_ns now)
{
    if (l->peer->limiter.rate != 0)
        stg_limiter_give_back(&l->peer->limiter, now, now);
}

/* What is denied is not asked again before the breaker may let a probe through. */
static bool pass_breaker(stg_lane *l, stg_delivery *d, stg_ns now, stg_ns *at)
{
    stg_ns reopen_at = STG_NEVER;
    stg_permit permit;

    d->is_probe = false;
    if (l->o.policy->breaker.rule == STG_BREAKER_NONE)
        return true;
    permit = stg_breaker_enter(&l->peer->breaker, now, &reopen_at);
    d->is_probe = permit == STG_PERMIT_PROBE;
    if (permit != STG_PERMIT_DENIED)
        return true;
    *at = stg_ns_min(*at, reopen_at);
    return false;
}

/* The answer of a budget that refuses a retry. */
typedef struct refusal {
    stg_ns from_at; /* it may be asked again; STG_NEVER: it cannot say */
    bool waits;     /* the retry does; else it is given up */
} refusal;

/* A first attempt is counted, a retry paid: by the lane's budget and the
 * global one, or by neither. */
static bool pass_budget(stg_flow *f, stg_lane *l, stg_delivery *d, stg_ns now,
                        refusal *why)
{
    stg_charge charge =
        stg_budget_charge(d->has_failure ? &d->failure.outcome : NULL);
    stg_grant own, all;

    if (d->progress.attempts == 0) {
        stg_budget_attempt(&l->peer->budget, now);
        stg_budget_attempt(&f->budget, now);
        return true;
    }
    own = stg_budget_take(&l->peer->budget, charge, now);
    *why = (refusal){own.from_at, l->o.policy->budget_waits};
    if (!own.granted)
        return false;
    all = stg_budget_take(&f->budget, charge, now);
    *why = (refusal){all.from_at, f->o.budget_waits};
    f->budget_refused += !all.granted;
    if (!all.granted)
        stg_budget_give_back(&l->peer->budget, charge, own.from_at, now);
    else
        d->paid = charge;
    return all.granted;
}

void stg_dispatch_leave(stg_flow *f, stg_lane *l, stg_delivery *d)
{
    if (d->state == STG_DELIVERY_PARKED) {
        stg_parking_take(f, d);
        return;
    }
    stg_list_remove(&d->link);
    l->untried_count--;
    l->pinned -= d->message->size;
}

static void return_permit(stg_lane *l, stg_delivery *d, stg_ns now)
{
    return_rate(l, now);
    if (d->is_probe)
        stg_breaker_abandon(&l->peer->breaker, now);
    d->is_probe = false;
}

static void give_up(stg_flow *f, stg_lane *l, stg_delivery *d, stg_why why)
{
    stg_dispatch_leave(f, l, d);
    d->failure.why = why;
    stg_settle(f, d, STG_CHANGE_DEAD);
}

/* Of its deadline. */
static stg_ns find_left(const stg_flow *f, const stg_policy *p,
                        const stg_delivery *d, stg_ns now)
{
    stg_ns deadline_at = stg_ns_add(d->began_at, p->deadline);

    return deadline_at == STG_NEVER
               ? STG_NEVER
               : stg_ns_sub(deadline_at, stg_flow_wall(f, now));
}

/* It may have waited for a gate, a probe or a restart. */
static bool is_too_late(const stg_flow *f, const stg_lane *l,
                        const stg_delivery *d, stg_ns now)
{
    return d->progress.attempts > 0 && find_left(f, l->o.policy, d, now) == 0;
}

/* The budget refused: the delivery is given up, or all retries of the lane
 * wait. Kinds that cannot say when are asked again soon. */
static void refuse_retry(stg_flow *f, stg_lane *l, stg_delivery *d,
                         const refusal *why, stg_ns now)
{
    return_permit(l, d, now);
    l->budget_refused++;
    if (why->waits) {
        l->budget_at = why->from_at == STG_NEVER
                           ? stg_ns_add(now, 100 * STG_MS)
                           : stg_ns_max(why->from_at, stg_ns_add(now, STG_MS));
        return;
    }
    give_up(f, l, d, STG_WHY_BUDGET);
}

/* -- a start --------------------------------------------------------------- */

static void describe(const stg_flow *f, const stg_lane *l,
                     const stg_delivery *d, stg_action *action, stg_ns now)
{
    *action = (stg_action){.kind = STG_ACTION_START, .lane = l->number};
    action->start.delivery = (stg_delivery *)d;
    action->start.message = d->message;
    action->start.attempt = d->attempts_before + d->progress.attempts;
    action->start.attempts_max =
        l->o.policy->attempts_max == STG_UNLIMITED
            ? STG_UNLIMITED
            : d->attempts_before + l->o.policy->attempts_max;
    action->start.replay = d->replay;
    action->start.is_retry = d->progress.attempts > 1;
    action->start.timeout = stg_ns_min(l->o.policy->attempt_timeout,
                                       find_left(f, l->o.policy, d, now));
    action->start.is_probe = d->is_probe;
}

/* An open breaker: when the next probe may start, and when to begin to shed.
 * True: nothing can start now. */
static bool is_denied(stg_flow *f, stg_lane *l, stg_ns now, stg_ns *at)
{
    stg_ns reopen_at = STG_NEVER;

    if (!l->is_open)
        return false;
    if (!l->is_shedding && l->o.shed_after != STG_NEVER && !l->is_paused &&
        !l->is_gated) {
        stg_ns shed_at;

        if (!stg_shed_is_due(l, now, &shed_at))
            *at = stg_ns_min(*at, shed_at);
        else if (l->in_flight == 0) // nothing is put back behind the range
            stg_shed_begin(f, l);
    }
    if (l->probing >= stg_lane_probes_max(l))
        return true;
    if (stg_breaker_look(&l->peer->breaker, now, &reopen_at) !=
        STG_BREAKER_OPEN)
        return false;
    *at = stg_ns_min(*at, reopen_at);
    return true;
}

static turn try_start(stg_flow *f, stg_lane *l, stg_action *action, stg_ns now,
                      stg_ns *at)
{
    stg_delivery *d;
    refusal why;
    bool is_idle = true;
    turn slot;

    for (;;) {
        slot = find_slot(f, l, now);
        if (slot != STARTED)
            return slot;
        d = pick(f, l, now, at, &is_idle);
        if (d == NULL && is_idle)
            return IDLE;
        if (d == NULL) {
            // The ring is full, or there was no memory.
            *at = stg_ns_min(*at, stg_ns_add(now, MEMORY_WAIT));
            return BLOCKED;
        }
        if (stg_schedule_holds(f, l, d, now)) {
            open_parked_gate(f, l);
            continue;
        }
        if (is_too_late(f, l, d, now)) {
            give_up(f, l, d, STG_WHY_DEADLINE);
            continue;
        }
        if (!stg_lane_make_peer(f, l, now)) {
            *at = stg_ns_min(*at, stg_ns_add(now, MEMORY_WAIT));
            return BLOCKED;
        }
        if (!pass_rate(l, now, at))
            return BLOCKED;
        if (!pass_breaker(l, d, now, at)) {
            return_rate(l, now);
            return BLOCKED;
        }
        if (pass_budget(f, l, d, now, &why)) {
            stg_flight_begin(f, l, d, now);
            stg_uplink_start(l, now);
            describe(f, l, d, action, now);
            return STARTED;
        }
        refuse_retry(f, l, d, &why, now);
    }
}

/* The last that is stored of a removed lane, in each partition. */
static void end_lane(stg_flow *f, stg_lane *l)
{
    l->is_ending = true;
    stg_lane_cursor_mark_all(f, l, STG_SLICE_MUST);
}

/* One lane's turn. */
static turn take_turn(stg_flow *f, stg_lane *l, stg_action *action, stg_ns now,
                      stg_ns *at)
{
    stg_ns gate_at = l->gate_at;

    f->awaiting_read -= l->awaits_read;
    l->awaits_read = false;
    if (f->stop != STG_STOP_NOT)
        return IDLE;
    open_parked_gate(f, l);
    stg_order_change(f, l);
    l->is_denied = is_denied(f, l, now, at);
    if (l->is_shedding || l->is_removing || l->is_expiring)
        stg_shed_all(f, l);
    assert(!l->is_ending); // then it has no more turns
    if (l->is_removing && stg_lane_is_settled(f, l))
        end_lane(f, l);
    if (l->is_denied || is_off(f, l))
        return IDLE;
    if (stg_uplink_holds(f, l, now, at))
        return BLOCKED;
    if (gate_at > now) {
        *at = stg_ns_min(*at, gate_at);
        return BLOCKED;
    }
    return try_start(f, l, action, now, at);
}

static const stg_lane_list next_list[] = {
    [STARTED] = STG_IN_READY,
    [BLOCKED] = STG_IN_NONE,
    [NO_SLOT] = STG_IN_NO_MEMORY,
    [IDLE] = STG_IN_IDLE,
};

/* A lane that has started as many as it may have under way, and has nothing
 * else to do: its next turn would only find that, and an end wakes it. */
static bool is_sated(const stg_flow *f, const stg_lane *l)
{
    bool is_plain = !l->is_open && !l->is_expiring && !l->awaits_read;

    return l->in_flight >= l->peer->limit.value && is_plain &&
           l->o.order == l->order_requested && !is_off(f, l) &&
           !stg_list_has(&l->uplink.link);
}

bool stg_dispatch_next(stg_flow *f, stg_action *action, stg_ns now)
{
    stg_link *at;

    if (f->stop == STG_STOP_NOT)
        stg_uplink_probe(f, now);
    while (f->timers.top != NULL && f->timers.top->key <= now) {
        stg_lane *l = STG_HEAP_HOLDER(f->timers.top, stg_lane, timer);

        stg_heap_remove(&f->timers, &l->timer);
        stg_lane_wake(f, l);
    }
    while ((at = stg_list_first(&f->ready)) != NULL) {
        stg_lane *l = STG_HOLDER(at, stg_lane, link);
        stg_ns wake = STG_NEVER;
        turn t = take_turn(f, l, action, now, &wake);
        bool is_done = l->is_ending || (t == STARTED && is_sated(f, l));

        stg_lane_move(f, l, is_done ? STG_IN_NONE : next_list[t]);
        if (l->is_ending)
            stg_lane_note(f, l); // without any partition it is removed at once
        stg_parking_want(f, l, now, &wake);
        wake_at(f, l, wake);
        if (t == STARTED)
            return true;
    }
    return false;
}
