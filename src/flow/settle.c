/* The end of an attempt, and what follows for its delivery.
 *
 * A first attempt that succeeds is settled at once and nothing is stored but the
 * cursor, later: the path of nearly all messages. Everything else needs a row that
 * is written, replaced or deleted, and is settled when the store has said so
 * (stg_settle_durable).
 *
 * Breaker, limit, budget and gate each hear of the end, with one exception: what
 * the hub's own network, its stop or an old credential caused is no fault of the
 * target, and the delivery is put back as it was (is_ours, is_as_before). */
#include <assert.h>

#include "core/rule.h"
#include "flow/state.h"

/* The hub's messages have an idempotency key: they may be repeated. */
static const stg_with with = {.has_key = true};

/* Of a delivery that neither waits nor is in flight any more. */
void stg_settle(stg_flow *f, stg_delivery *d, stg_change_kind kind)
{
    stg_lane *l = d->lane;

    assert(!stg_list_has(&d->busy));
    stg_list_push(&l->busy, &d->busy);
    d->state = STG_DELIVERY_SETTLING;
    d->kind = kind;
    l->settling++;
    l->parking += kind == STG_CHANGE_PARK && !d->is_stored;
    stg_list_push(&f->checkpoint.pending, &d->change);
    f->checkpoint.pending_count++;
    stg_lane_cursor_mark(f, l, stg_flow_home(f, d->message), STG_SLICE_MUST);
    if (f->checkpoint.is_full)
        l->is_store_full = true;
}

/* Over for good. What a fetch may still bring back is kept until it has. */
static void finish(stg_flow *f, stg_delivery *d)
{
    stg_lane_cursor_settle(f, d);
    if (d->is_stored && stg_parking_cache(d)->is_fetching) {
        assert(!stg_list_has(&d->busy));
        stg_list_push(&d->lane->busy, &d->busy);
        d->state = STG_DELIVERY_ENDED;
        return;
    }
    stg_delivery_free(f, d);
}

/* Its partition is revoked, and its row leaves with it. */
static bool is_leaving(const stg_flow *f, const stg_delivery *d)
{
    const stg_partition *p = stg_flow_home(f, d->message);

    return p->phase == STG_PHASE_REVOKING && !p->keeps_rows;
}

static void park(stg_flow *f, stg_delivery *d)
{
    d->is_stored = true;
    // Parked is settled; but in an ordered lane it keeps its slot.
    if (d->lane->o.order == STG_ORDER_NONE)
        stg_lane_cursor_settle(f, d);
    if (is_leaving(f, d))
        stg_revoke_leave(f, d);
    else
        stg_parking_put(f, d);
}

/* A row is new, replaced or deleted. */
static void book(stg_lane_cursor *cursor, const stg_delivery *d)
{
    if (!d->is_stored)
        cursor->waiting--;
    if (!d->is_stored && d->kind == STG_CHANGE_PARK)
        cursor->rows++;
    if (d->is_stored && d->kind != STG_CHANGE_PARK) {
        cursor->rows--;
        cursor->replays -= d->replay > 0;
    }
    cursor->delivered += d->kind == STG_CHANGE_DELIVERED;
    cursor->dead += d->kind == STG_CHANGE_DEAD;
}

void stg_settle_durable(stg_flow *f, stg_delivery *d)
{
    stg_lane *l = d->lane;

    l->settling--;
    l->parking -= d->kind == STG_CHANGE_PARK && !d->is_stored;
    book(stg_delivery_cursor(d), d);
    stg_list_remove(&d->busy);
    stg_revoke_note(f, d);
    if (d->kind == STG_CHANGE_PARK)
        park(f, d);
    else
        finish(f, d);
    stg_lane_wake(f, l);
}

/* -- the end of an attempt ------------------------------------------------- */

/* Whether the target has trouble. */
static bool is_trouble(const stg_outcome *o)
{
    stg_category c = stg_fault_about(o->fault)->category;

    return c == STG_CATEGORY_CONNECT || c == STG_CATEGORY_SERVER ||
           c == STG_CATEGORY_OVERLOAD;
}

/* The breaker opens and closes by itself, with time and with each report; the lane
 * notes the change here, tells of it, and stops shedding when it has closed. */
void stg_settle_note_open(stg_flow *f, stg_lane *l, stg_ns now)
{
    stg_ns reopen_at = 0;
    bool is_open = l->peer != NULL &&
                   stg_breaker_look(&l->peer->breaker, now, &reopen_at) !=
                       STG_BREAKER_CLOSED;

    if (is_open && !l->is_open) {
        l->is_open = true;
        l->opened_at = now;
        l->has_probed_most = false;
        l->probe_depth = STG_PROBE_DEPTH;
        l->openings++;
        stg_flow_tell(f, l->number, 0, STG_TELL_OPENED, 0, reopen_at);
    } else if (!is_open && l->is_open) {
        l->is_open = false;
        stg_parking_release(f, l);
        stg_flow_tell(f, l->number, 0, STG_TELL_CLOSED, 0, 0);
        stg_shed_end(f, l);
        stg_lane_start_limit(l, now);
    }
}

/* A target that had failed for a timeout's length is back: it has its slow
 * start, as behind a breaker. */
static void report_load(stg_lane *l, const stg_delivery *d,
                        const stg_outcome *o, stg_ns now)
{
    stg_load load = stg_load_of(o, l->o.policy->breaker.connects > 0);

    if (o->fault == STG_FAULT_CANCELLED)
        return;
    if (load == STG_LOAD_SERVED) {
        if (l->is_failing && stg_lane_is_unresponsive(l, now))
            stg_lane_start_limit(l, now);
        l->trying_at = now;
    }
    if (!l->o.is_limit_fixed)
        stg_limit_end(&l->peer->limit, load, l->is_limit_used, d->attempt_at,
                      now);
}

/* A fault of our own side says nothing of the target: a probe that ended so is taken
 * back, and the next one may start. */
static void report(stg_flow *f, stg_lane *l, stg_delivery *d,
                   const stg_outcome *o, bool is_ours, stg_ns now)
{
    stg_breaker *b = &l->peer->breaker;

    if (o->fault == STG_FAULT_CANCELLED || is_ours) {
        if (d->is_probe)
            stg_breaker_abandon(b, now);
    } else {
        stg_breaker_report(b, d->is_probe, stg_breaker_classify(o),
                           d->attempt_at, now);
    }
    l->probing -= d->is_probe;
    stg_settle_note_open(f, l, now);
    if (is_ours)
        return;
    report_load(l, d, o, now);
    l->is_failing = is_trouble(o);
}

/* The budgets and the rate have back what the attempt took of them. */
static void give_back(stg_flow *f, stg_lane *l, stg_delivery *d, stg_ns now)
{
    stg_limiter_give_back(&l->peer->limiter, d->attempt_at, now);
    stg_budget_withdraw(&l->peer->budget, d->paid, d->attempt_at, now);
    stg_budget_withdraw(&f->budget, d->paid, d->attempt_at, now);
    d->paid = STG_CHARGE_NONE;
}

/* As it was before the attempt. */
static void put_back(stg_flow *f, stg_lane *l, stg_delivery *d, stg_ns now)
{
    d->progress.attempts--;
    give_back(f, l, d, now);
    if (is_leaving(f, d) ||
        (!d->is_stored &&
         !stg_partition_is_assigned(stg_flow_home(f, d->message)))) {
        stg_revoke_leave(f, d);
    } else if (d->is_stored) {
        d->due_at = stg_ns_min(d->due_at, now);
        stg_parking_put(f, d);
    } else {
        stg_dispatch_untried(d, true);
    }
}

/* For how long the answer asks the whole lane to wait. */
static stg_ns find_gate(const stg_lane *l, const stg_outcome *o)
{
    bool is_asked = o->fault == STG_FAULT_OVERLOAD ||
                    (o->fault == STG_FAULT_5XX && o->code == 503);

    return is_asked ? stg_wait_asked(l->o.policy, o) : 0;
}

static void close_gate(stg_lane *l, const stg_outcome *o, stg_ns now)
{
    stg_ns delay = find_gate(l, o);

    if (delay > 0)
        l->gate_at = stg_ns_max(l->gate_at, stg_ns_add(now, delay));
}

void stg_settle_reclose(stg_lane *l, const stg_delivery *d)
{
    stg_ns delay = find_gate(l, &d->failure.outcome);

    // Its wait began at the end of the attempt, and is no shorter.
    if (delay > 0)
        l->gate_at = stg_ns_max(
            l->gate_at, stg_ns_sub(stg_ns_add(d->due_at, delay), d->wait));
}

static void count_failure(stg_flow *f, stg_lane *l, const stg_outcome *o)
{
    int limited;

    if (stg_fault_about(o->fault)->category == STG_CATEGORY_OWN ||
        stg_policy_retries(l->o.policy, o, &limited) == 0)
        return;
    stg_budget_fail(&l->peer->budget);
    stg_budget_fail(&f->budget);
}

/* The decision of the policy, and the part of it that is stored. */
static stg_decision decide(stg_flow *f, stg_lane *l, stg_delivery *d,
                           const stg_outcome *o, stg_ns now)
{
    stg_ns wall_at = stg_flow_wall(f, now), deadline_at;
    stg_retry r;
    stg_decision decision;

    stg_retry_resume(&r, l->o.policy, &with, &d->progress, d->began_at,
                     stg_flow_wall(f, d->attempt_at));
    deadline_at = r.deadline_at;
    decision = stg_retry_step(&r, o, wall_at, &f->rng);
    // A new series has begun, see reset-after: this attempt is its first.
    if (r.attempts < d->progress.attempts || r.deadline_at != deadline_at) {
        d->attempts_before += d->progress.attempts - r.attempts;
        d->began_at = wall_at;
    }
    stg_retry_save(&r, &d->progress);
    if (decision.next != STG_WAIT)
        return decision;
    d->due_wall = decision.due_at;
    d->wait = stg_ns_sub(decision.due_at, wall_at);
    d->due_at = decision.due_at = stg_ns_add(now, d->wait);
    return decision;
}

static void succeed(stg_flow *f, stg_lane *l, stg_delivery *d)
{
    stg_lane_cursor *cursor = stg_delivery_cursor(d);

    stg_budget_succeed(&l->peer->budget, d->paid);
    stg_budget_succeed(&f->budget, d->paid);
    if (d->is_stored) {
        stg_settle(f, d, STG_CHANGE_DELIVERED);
        return;
    }
    cursor->waiting--;
    cursor->delivered++;
    stg_revoke_note(f, d);
    finish(f, d);
}

/* Core decides whether it is tried again; a message that would expire before its next
 * attempt is given up now, with that as its cause. */
static void fail(stg_flow *f, stg_lane *l, stg_delivery *d, const stg_end *end,
                 stg_verdict *v, stg_ns now)
{
    stg_failure failure = {
        .outcome = end->outcome,
        .first_attempt_at =
            d->has_failure ? d->failure.first_attempt_at : d->began_at,
        .last_attempt_at = stg_flow_wall(f, d->attempt_at),
        .detail = end->detail,
        .answer = end->answer,
        .answer_size = end->answer_size,
    };

    close_gate(l, &end->outcome, now);
    count_failure(f, l, &end->outcome);
    v->decision = decide(f, l, d, &end->outcome, now);
    if (v->decision.next == STG_WAIT &&
        stg_schedule_ends_before(d->message, d->due_wall)) {
        v->decision =
            (stg_decision){.next = STG_GIVE_UP, .why = STG_WHY_DEADLINE};
        failure.outcome.fault = STG_FAULT_MESSAGE_EXPIRED;
    }
    v->attempts = d->attempts_before + d->progress.attempts;
    failure.why = v->decision.why;
    stg_delivery_note(f, d, &failure);
    v->failure = &d->failure;
    stg_settle(
        f, d, v->decision.next == STG_WAIT ? STG_CHANGE_PARK : STG_CHANGE_DEAD);
}

/* An attempt that the hub cut at its stop may have arrived: a timeout. One of
 * which nothing was sent has not, and is none. */
static void classify_cut(const stg_delivery *d, bool is_awaited, stg_end *end)
{
    if (!d->is_cut || end->outcome.fault != STG_FAULT_CANCELLED ||
        end->outcome.unsent)
        return;
    end->outcome = stg_failed(STG_FAULT_TIMEOUT);
    end->detail = is_awaited ? "cut when its partition was taken away"
                             : "cut when the hub stopped, after the drain time";
}

/* Whether the attempt leaves its delivery as it was: a cancelled one does, and
 * the probe of an open breaker that could not connect. Any other attempt is
 * used up, also one that was under way when the breaker opened. */
static bool is_as_before(const stg_delivery *d, const stg_outcome *o)
{
    if (o->fault == STG_FAULT_CANCELLED)
        return true;
    return d->is_probe &&
           stg_fault_about(o->fault)->category == STG_CATEGORY_CONNECT;
}

static bool is_lost(const stg_flow *f, const stg_delivery *d)
{
    return stg_flow_home(f, d->message)->phase == STG_PHASE_LOST;
}

/* Another hub has it, whatever came of it here. */
static stg_decision lose(stg_flow *f, stg_delivery *d, const stg_outcome *o)
{
    stg_revoke_drop(f, d);
    if (o->fault == STG_FAULT_NONE)
        return (stg_decision){.next = STG_DONE};
    return (stg_decision){.next = STG_WAIT, .why = STG_WHY_CANCELLED};
}

/* The order matters: the delivery leaves the counters first, so that breaker, limit
 * and budget see the lane without it. Of what ended four things may come: it is lost
 * with its partition, put back uncounted, settled, or a failure that core decides
 * about. */
stg_verdict stg_flow_ended(stg_flow *f, stg_delivery *d, const stg_end *ended,
                           stg_ns now)
{
    stg_lane *l = d->lane;
    stg_end end = *ended;
    bool is_again, is_ours;
    stg_verdict v = {.attempts = d->attempts_before + d->progress.attempts};

    classify_cut(d, d->is_awaited, &end);
    stg_flight_leave(f, l, d);
    is_again = end.is_unauthorized && !d->was_unauthorized;
    d->was_unauthorized = is_again;
    is_ours = stg_uplink_ended(f, l, &end, now) || is_again;
    report(f, l, d, &end.outcome, is_ours, now);
    if (l->is_open && !is_ours && is_trouble(&end.outcome))
        stg_note_failure(f, l, &end, d->attempt_at);
    stg_lane_wake(f, l);
    if (is_lost(f, d)) {
        v.decision = lose(f, d, &end.outcome);
    } else if (is_ours) {
        v.decision = (stg_decision){
            .next = STG_WAIT, .why = STG_WHY_GATE, .due_at = now};
        put_back(f, l, d, now);
    } else if (end.outcome.fault == STG_FAULT_NONE) {
        v.decision = (stg_decision){.next = STG_DONE};
        succeed(f, l, d);
    } else if (is_as_before(d, &end.outcome)) {
        stg_ns reopen_at = now;

        stg_breaker_look(&l->peer->breaker, now, &reopen_at);
        v.decision = (stg_decision){
            .next = STG_WAIT, .why = STG_WHY_CIRCUIT_OPEN, .due_at = reopen_at};
        put_back(f, l, d, now);
    } else {
        fail(f, l, d, &end, &v, now);
    }
    return v;
}
