/* What became of an attempt, and of its delivery. */
#include "flow/state.h"

/* The hub's messages have an idempotency key: they may be repeated. */
static const stg_with with = {.has_key = true};

/* Of a delivery that neither waits nor is in flight any more. */
void stg_settle(stg_flow *f, stg_delivery *d, stg_change_kind kind)
{
    stg_lane *l = d->lane;

    if (!stg_list_has(&d->busy))
        stg_list_push(&l->busy, &d->busy);
    d->state = STG_DELIVERY_SETTLING;
    d->kind = kind;
    l->settling++;
    l->parking += kind == STG_CHANGE_PARK && !d->is_stored;
    stg_list_push(&f->checkpoint.pending, &d->change);
    f->checkpoint.pending_count++;
    stg_place_mark(f, l, stg_flow_home(f, d->message), STG_SLICE_MUST);
    if (f->checkpoint.is_full)
        l->is_store_full = true;
}

/* Over for good. What a fetch may still bring back is kept until it has. */
static void finish(stg_flow *f, stg_delivery *d)
{
    stg_place_settle(f, d);
    if (stg_parking_shelf(d)->is_fetching && d->is_stored) {
        if (!stg_list_has(&d->busy))
            stg_list_push(&d->lane->busy, &d->busy);
        d->state = STG_DELIVERY_GONE;
        return;
    }
    stg_delivery_free(f, d);
}

/* Its partition goes, and its row with it. */
static bool is_leaving(const stg_flow *f, const stg_delivery *d)
{
    const stg_partition *p = stg_flow_home(f, d->message);

    return p->phase == STG_PHASE_GOING && !p->keeps_rows;
}

static void park(stg_flow *f, stg_delivery *d)
{
    d->is_stored = true;
    // Parked is settled; but in an ordered lane it keeps its place.
    if (d->lane->o.order == STG_ORDER_NONE)
        stg_place_settle(f, d);
    if (is_leaving(f, d))
        stg_going_leave(f, d);
    else
        stg_parking_put(f, d);
}

/* A row is new, replaced or gone. */
static void book(stg_place *place, const stg_delivery *d)
{
    if (!d->is_stored)
        place->waiting--;
    if (!d->is_stored && d->kind == STG_CHANGE_PARK)
        place->rows++;
    if (d->is_stored && d->kind != STG_CHANGE_PARK) {
        place->rows--;
        place->replays -= d->replay > 0;
    }
    place->delivered += d->kind == STG_CHANGE_DELIVERED;
    place->dead += d->kind == STG_CHANGE_DEAD;
}

void stg_settle_durable(stg_flow *f, stg_delivery *d)
{
    stg_lane *l = d->lane;

    l->settling--;
    l->parking -= d->kind == STG_CHANGE_PARK && !d->is_stored;
    book(stg_delivery_place(d), d);
    stg_list_remove(&d->busy);
    stg_going_note(f, d);
    if (d->kind == STG_CHANGE_PARK)
        park(f, d);
    else
        finish(f, d);
    stg_lane_wake(f, l);
}

/* -- the end of an attempt ------------------------------------------------- */

static void leave_flight(stg_flow *f, stg_lane *l, stg_delivery *d)
{
    stg_place *place = stg_delivery_place(d);

    if (!d->is_stored) {
        place->in_flight--;
        place->waiting++;
    }
    stg_list_remove(&d->busy);
    stg_list_remove(&d->change); // a cancel that was not told yet
    l->in_flight--;
    l->replaying -= d->replay > 0;
    f->in_flight--;
    f->shared -= l->in_flight > 0;
    f->is_lowered = f->is_lowered && f->shared > f->o.in_flight_max;
    d->attempt = NULL;
    if (!stg_list_is_empty(&f->starved))
        stg_lane_wake(f,
                      STG_HOLDER(stg_list_first(&f->starved), stg_lane, link));
}

/* Whether the target has trouble, which asks for fewer attempts at once. */
static bool is_trouble(const stg_outcome *o)
{
    stg_category c = stg_fault_about(o->fault)->category;

    return c == STG_CATEGORY_CONNECT || c == STG_CATEGORY_SERVER ||
           c == STG_CATEGORY_OVERLOAD;
}

void stg_settle_note_open(stg_flow *f, stg_lane *l, stg_ns now)
{
    stg_ns reopen_at = 0;
    bool is_open = stg_breaker_look(&l->peer.breaker, now, &reopen_at) !=
                   STG_BREAKER_CLOSED;

    if (is_open && !l->is_open) {
        l->is_open = true;
        l->opened_at = now;
        l->openings++;
        stg_flow_tell(f, l->number, 0, STG_TELL_OPENED, 0, reopen_at);
    } else if (!is_open && l->is_open) {
        l->is_open = false;
        stg_flow_tell(f, l->number, 0, STG_TELL_CLOSED, 0, 0);
        stg_shed_end(f, l);
        stg_limit_start(&l->limit, l->o.in_flight_max, now);
    }
}

static void report(stg_flow *f, stg_lane *l, stg_delivery *d,
                   const stg_outcome *o, bool is_used, stg_ns now)
{
    stg_breaker *b = &l->peer.breaker;

    if (o->fault == STG_FAULT_CANCELLED) {
        if (d->is_probe)
            stg_breaker_abandon(b, now);
    } else {
        stg_breaker_report(b, d->is_probe, stg_breaker_judge(o), now);
    }
    if (d->is_probe)
        l->is_probing = false;
    stg_settle_note_open(f, l, now);
    l->is_failing = is_trouble(o);
    if (o->fault == STG_FAULT_NONE) {
        l->trying_at = now;
        stg_limit_succeed(&l->limit, is_used);
    } else if (l->is_failing) {
        stg_limit_fail(&l->limit, d->attempt_at, now);
    }
}

/* As it was before the attempt. */
static void put_back(stg_flow *f, stg_lane *l, stg_delivery *d, stg_ns now)
{
    d->progress.attempts--;
    d->is_probe = false;
    if (is_leaving(f, d) ||
        (!d->is_stored &&
         !stg_partition_is_given(stg_flow_home(f, d->message)))) {
        stg_going_leave(f, d);
    } else if (d->is_stored) {
        d->due_at = stg_ns_min(d->due_at, now);
        stg_parking_put(f, d);
    } else {
        stg_dispatch_untried(d, true);
    }
    stg_lane_wake(f, l);
}

/* The answer asks to wait: the whole lane does. */
static void close_gate(stg_lane *l, const stg_outcome *o, stg_ns now)
{
    stg_ns delay = stg_ns_min(o->delay, l->o.policy->retry_after_max);

    if (delay > 0 && (o->fault == STG_FAULT_OVERLOAD ||
                      (o->fault == STG_FAULT_5XX && o->code == 503)))
        l->gate_at = stg_ns_max(l->gate_at, stg_ns_add(now, delay));
}

static void count_failure(stg_flow *f, stg_lane *l, const stg_outcome *o)
{
    int limited;

    if (stg_fault_about(o->fault)->category == STG_CATEGORY_OWN ||
        stg_policy_retries(l->o.policy, o, &limited) == 0)
        return;
    stg_budget_fail(&l->peer.budget);
    stg_budget_fail(&f->budget);
}

/* What the policy says, and what of it is to be stored. */
static stg_decision decide(stg_flow *f, stg_lane *l, stg_delivery *d,
                           const stg_outcome *o, stg_ns now)
{
    stg_retry r;
    stg_decision decision;

    stg_retry_resume(&r, l->o.policy, &with, &d->progress, d->began_at,
                     d->attempt_at);
    decision = stg_retry_step(&r, o, now, &f->rng);
    // A new series of attempts begins, and its deadline.
    if (r.attempts < d->progress.attempts)
        d->began_at = now;
    stg_retry_save(&r, &d->progress);
    if (decision.next != STG_WAIT)
        return decision;
    d->due_at = decision.due_at;
    d->due_wall = stg_flow_wall(f, d->due_at);
    d->wait = stg_ns_sub(decision.due_at, now);
    return decision;
}

static void succeed(stg_flow *f, stg_lane *l, stg_delivery *d)
{
    stg_place *place = stg_delivery_place(d);

    stg_budget_succeed(&l->peer.budget, d->paid);
    stg_budget_succeed(&f->budget, d->all_paid);
    if (d->is_stored) {
        stg_settle(f, d, STG_CHANGE_DELIVERED);
        return;
    }
    place->waiting--;
    place->delivered++;
    stg_going_note(f, d);
    finish(f, d);
}

/* As it was stored, if it was: it may be older than this boot's clock. */
static stg_ns find_first(const stg_flow *f, const stg_delivery *d)
{
    return d->has_failure ? d->failure.first_attempt_at
                          : stg_flow_wall(f, d->began_at);
}

static void fail(stg_flow *f, stg_lane *l, stg_delivery *d, const stg_end *end,
                 stg_verdict *v, stg_ns now)
{
    stg_failure failure = {
        .outcome = end->outcome,
        .first_attempt_at = find_first(f, d),
        .last_attempt_at = stg_flow_wall(f, d->attempt_at),
        .detail = end->detail,
        .answer = end->answer,
        .answer_size = end->answer_size,
    };

    close_gate(l, &end->outcome, now);
    count_failure(f, l, &end->outcome);
    v->decision = decide(f, l, d, &end->outcome, now);
    v->attempts = d->attempts_before + d->progress.attempts;
    failure.why = v->decision.why;
    stg_delivery_note(f, d, &failure);
    v->failure = &d->failure;
    stg_settle(
        f, d, v->decision.next == STG_WAIT ? STG_CHANGE_PARK : STG_CHANGE_DEAD);
}

/* An attempt that the hub cut at its stop may have arrived: a timeout. */
static void judge_cut(const stg_delivery *d, bool is_going, stg_end *end)
{
    if (!d->is_cut || end->outcome.fault != STG_FAULT_CANCELLED)
        return;
    end->outcome = stg_failed(STG_FAULT_TIMEOUT);
    end->detail = is_going ? "cut when its partition was taken away"
                           : "cut when the hub stopped, after the drain time";
}

/* Nothing was sent: neither the probe of an open breaker nor what was under way
 * when it opened is used up by that. And a lane that is removed has its own
 * end for all that it holds. */
static bool is_as_before(const stg_lane *l, const stg_delivery *d,
                         const stg_outcome *o, bool was_open)
{
    if (o->fault == STG_FAULT_CANCELLED)
        return true;
    return (d->is_probe || was_open) &&
           stg_fault_about(o->fault)->category == STG_CATEGORY_CONNECT &&
           l->o.policy->breaker.rule != STG_BREAKER_NONE;
}

/* As many as it allows were under way. Of replays that is a share. */
static bool is_limit_used(const stg_lane *l, const stg_delivery *d)
{
    return l->in_flight >= l->limit.value ||
           (d->replay > 0 && l->replaying >= stg_lane_replays_max(l));
}

static bool is_lost(const stg_flow *f, const stg_delivery *d)
{
    return stg_flow_home(f, d->message)->phase == STG_PHASE_LOST;
}

/* Another hub has it, whatever came of it here. */
static stg_decision lose(stg_flow *f, stg_delivery *d, const stg_outcome *o)
{
    stg_going_drop(f, d);
    if (o->fault == STG_FAULT_NONE)
        return (stg_decision){.next = STG_DONE};
    return (stg_decision){.next = STG_WAIT, .why = STG_WHY_CANCELLED};
}

stg_verdict stg_flow_ended(stg_flow *f, stg_delivery *d, const stg_end *ended,
                           stg_ns now)
{
    stg_lane *l = d->lane;
    stg_end end = *ended;
    bool was_open = l->is_open;
    bool is_used = is_limit_used(l, d);
    stg_verdict v = {.attempts = d->attempts_before + d->progress.attempts};

    judge_cut(d, d->is_going, &end);
    leave_flight(f, l, d);
    report(f, l, d, &end.outcome, is_used, now);
    stg_lane_wake(f, l);
    if (is_lost(f, d)) {
        v.decision = lose(f, d, &end.outcome);
    } else if (end.outcome.fault == STG_FAULT_NONE) {
        v.decision = (stg_decision){.next = STG_DONE};
        succeed(f, l, d);
    } else if (is_as_before(l, d, &end.outcome, was_open)) {
        stg_ns reopen_at = now;

        stg_breaker_look(&l->peer.breaker, now, &reopen_at);
        v.decision = (stg_decision){
            .next = STG_WAIT, .why = STG_WHY_CIRCUIT_OPEN, .due_at = reopen_at};
        put_back(f, l, d, now);
    } else {
        fail(f, l, d, &end, &v, now);
    }
    return v;
}
