/* What is decided about an attempt that has ended. */
#include <stagger/cancel.h>

#include <string.h>

#include "core/backoff_draw.h"
#include "core/retry_inside.h"
#include "core/rule.h"

bool stg_retry_is_cancelled(const stg_retry *r)
{
    return r->with->cancel != NULL && stg_cancel_is_set(r->with->cancel);
}

/* The server never saw the request, or said that it did not take it. A host
 * that is unreachable is not among them: the system reports that of a
 * connection in use, too. */
static bool is_unprocessed(const stg_outcome *o)
{
    switch (o->fault) {
    case STG_FAULT_REFUSED:
    case STG_FAULT_DNS:
    case STG_FAULT_DNS_TEMPORARY:
    case STG_FAULT_CONNECT_TIMEOUT:
    case STG_FAULT_TLS:
    case STG_FAULT_EGRESS:
    case STG_FAULT_CIRCUIT_OPEN:
        return true;
    case STG_FAULT_OVERLOAD:
        return o->unsent || o->code == 425 || o->code == 429;
    default:
        return o->unsent;
    }
}

/* The order of the questions is the policy: the first that holds is the
 * reason. STG_WHY_DONE: none does. */
static stg_why find_refusal(const stg_retry *r, const stg_outcome *o,
                            stg_ruling ruling)
{
    const stg_policy *p = r->policy;
    uint16_t retries_max = ruling.retries_max;

    if (o->fault == STG_FAULT_CANCELLED || stg_retry_is_cancelled(r))
        return STG_WHY_CANCELLED;
    if (o->fault == STG_FAULT_CIRCUIT_OPEN && retries_max == 0)
        return STG_WHY_CIRCUIT_OPEN;
    if (o->permanent || retries_max == 0)
        return STG_WHY_PERMANENT;
    if (!has(r, REPEATABLE) && !is_unprocessed(o))
        return STG_WHY_NOT_IDEMPOTENT;
    if (r->depth > 0 && p->nested == STG_NESTED_ONCE)
        return STG_WHY_NESTED;
    if (ruling.limited >= 0 && r->limited[ruling.limited] >= retries_max)
        return STG_WHY_FAULT_LIMIT;
    if (r->attempts >= p->attempts_max)
        return STG_WHY_ATTEMPTS;
    return STG_WHY_DONE;
}

/* The wait, and whether it is the policy's own or what the server asked. */
static stg_ns find_wait(stg_retry *r, const stg_outcome *o, stg_rng *rng,
                        stg_why *why)
{
    const stg_backoff *b = &r->policy->backoff;
    stg_ns floor = stg_ns_min(o->delay, r->policy->retry_after_max);
    uint32_t n = r->own_waits < UINT32_MAX ? r->own_waits + 1 : UINT32_MAX;

    *why = STG_WHY_SERVER_DELAY;
    if (floor > 0 &&
        (b->jitter != STG_JITTER_NONE || floor > stg_backoff_window(b, n)))
        return stg_backoff_wait_after(b, n, floor, rng);
    *why = STG_WHY_BACKOFF;
    r->own_waits = n;
    return stg_backoff_draw(b, n, &r->last, rng);
}

static stg_grant ask(stg_budget *b, const stg_retry *r, stg_ns now)
{
    bool after_timeout = has(r, AFTER_TIMEOUT);

    if (b == NULL)
        return (stg_grant){.granted = true, .from_at = now};
    if (!r->policy->budget_waits)
        return stg_budget_take(b, after_timeout, now);
    return stg_budget_reserve(b, after_timeout, now,
                              stg_ns_sub(r->deadline_at, r->with->expected));
}

/* Pays the peer's budget and the shared one, or neither. Granted: from_at is
 * when both are good for it. */
stg_grant stg_retry_pay(stg_retry *r, stg_ns now)
{
    const stg_with *with = r->with;
    stg_budget *own = with->peer == NULL ? NULL : &with->peer->budget;
    stg_grant first = ask(own, r, now), second;

    if (!first.granted)
        return first;
    second = ask(with->shared_budget, r, now);
    if (!second.granted) {
        if (own != NULL)
            stg_budget_give_back(own, first.paid, first.from_at, now);
        return second;
    }
    r->since_at = first.from_at;
    r->paid = (uint8_t)first.paid;
    r->shared_paid = (uint8_t)second.paid;
    set(r, HELD);
    second.from_at = stg_ns_max(first.from_at, second.from_at);
    return second;
}

/* A wait that the operation is about to begin. */
stg_decision stg_retry_begin_wait(const stg_retry *r, stg_ns due_at,
                                  stg_why why, const stg_outcome *o, stg_ns now)
{
    stg_decision d = {.next = STG_WAIT, .why = why, .due_at = due_at};

    tell(r, STG_EVENT_DECISION, o, d, now);
    return d;
}

/* Everything else says retry at due_at: can the budget afford it? One that
 * knows when it could, and that is too late, is not asked again. */
static stg_decision pay_and_wait(stg_retry *r, stg_ns due_at, stg_why why,
                                 const stg_outcome *o, stg_ns now)
{
    stg_grant g;

    if (r->with->peer == NULL && r->with->shared_budget == NULL)
        return stg_retry_begin_wait(r, due_at, why, o, now);
    g = stg_retry_pay(r, now);
    if (!g.granted && (!r->policy->budget_waits || g.from_at != STG_NEVER))
        return stg_retry_end(r, STG_WHY_BUDGET, o, now);
    if (!g.granted)
        set(r, OWES);
    if (!g.granted || g.from_at > due_at)
        why = STG_WHY_BUDGET;
    if (g.granted)
        due_at = stg_ns_max(due_at, g.from_at);
    return stg_retry_begin_wait(r, due_at, why, o, now);
}

/* An attempt that ran long enough to be a success in itself: what follows is a
 * new series, of which this failure is the first attempt. */
static void reset_if_long(stg_retry *r, stg_ns now)
{
    if (stg_ns_sub(now, r->since_at) < r->policy->reset_after)
        return;
    r->attempts = 1;
    r->own_waits = 0;
    r->last = r->policy->backoff.base;
    memset(r->limited, 0, sizeof r->limited);
    r->deadline_at = stg_retry_deadline(r->policy, r->with, now);
}

static stg_decision succeed(stg_retry *r, const stg_outcome *o, stg_ns now)
{
    if (r->with->peer != NULL)
        stg_budget_succeed(&r->with->peer->budget, r->paid);
    if (r->with->shared_budget != NULL)
        stg_budget_succeed(r->with->shared_budget, r->shared_paid);
    return stg_retry_end(r, STG_WHY_DONE, o, now);
}

static void count_failure(const stg_with *with, const stg_outcome *o)
{
    if (with->peer == NULL && with->shared_budget == NULL)
        return;
    if (stg_fault_about(o->fault)->category == STG_CATEGORY_OWN)
        return;
    if (with->peer != NULL)
        stg_budget_fail(&with->peer->budget);
    if (with->shared_budget != NULL)
        stg_budget_fail(with->shared_budget);
}

/* After a failure. */
stg_decision stg_retry_decide(stg_retry *r, const stg_outcome *o, stg_ns now,
                              stg_rng *rng)
{
    stg_ruling ruling;
    stg_why why;
    stg_ns due_at;

    reset_if_long(r, now);
    ruling = stg_rule_find(r->policy, o);
    if (ruling.retries_max != 0)
        count_failure(r->with, o);
    why = find_refusal(r, o, ruling);
    if (why != STG_WHY_DONE)
        return stg_retry_end(r, why, o, now);

    due_at = stg_ns_add(now, find_wait(r, o, rng, &why));
    if (!fits_deadline(r, due_at))
        return stg_retry_end(r, STG_WHY_DEADLINE, o, now);
    clear(r, IN_ATTEMPT | AFTER_TIMEOUT);
    if (o->fault == STG_FAULT_TIMEOUT || o->fault == STG_FAULT_CONNECT_TIMEOUT)
        set(r, AFTER_TIMEOUT);
    if (ruling.limited >= 0)
        r->limited[ruling.limited]++;
    return pay_and_wait(r, due_at, why, o, now);
}

/* By us, or by gRPC's CANCELLED. */
static bool is_outcome_cancelled(const stg_outcome *o)
{
    enum { GRPC_CANCELLED = 1 };

    return o->fault == STG_FAULT_CANCELLED ||
           (o->fault == STG_FAULT_GRPC && o->code == GRPC_CANCELLED);
}

static void report_to_breaker(stg_retry *r, const stg_outcome *o, stg_ns now)
{
    stg_breaker *b = &r->with->peer->breaker;

    if (is_outcome_cancelled(o))
        stg_retry_release_probe(r, now);
    else
        stg_breaker_report(b, has(r, PROBE), stg_breaker_judge(o), now);
    clear(r, PROBE);
}

/* Of an operation that shares something, or is watched or timed. Not inlined:
 * the others have no registers to save. */
__attribute__((noinline)) static stg_decision
step_whole(stg_retry *r, const stg_outcome *o, stg_ns now, stg_rng *rng)
{
    if (r->policy->breaker.rule != STG_BREAKER_NONE && r->with->peer != NULL)
        report_to_breaker(r, o, now);
    return o->fault == STG_FAULT_NONE ? succeed(r, o, now)
                                      : stg_retry_decide(r, o, now, rng);
}

/* No attempt is under way. */
static stg_decision refuse_step(const stg_retry *r)
{
    if (!is_running(r))
        return stg_retry_ended(r);
    return (stg_decision){.next = STG_GIVE_UP, .why = STG_WHY_INVALID};
}

stg_decision stg_retry_step(stg_retry *r, const stg_outcome *o, stg_ns now,
                            stg_rng *rng)
{
    static const stg_outcome unknown = {.fault = STG_FAULT_ERROR};
    const stg_outcome *outcome = o == NULL ? &unknown : o;

    if (r == NULL || !has(r, IN_ATTEMPT)) // nor has one that is not running
        return refuse_step(r);
    if (!has(r, PLAIN))
        return step_whole(r, outcome, now, rng);
    if (outcome->fault != STG_FAULT_NONE)
        return stg_retry_decide(r, outcome, now, rng);
    r->flags = ENDED;
    return (stg_decision){.next = STG_DONE};
}
