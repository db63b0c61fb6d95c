/* The decision about an attempt that has ended. The peer hears of it first
 * (breaker, throttle, bulkhead, share). Then come the questions: is it
 * settled, may it be repeated, when, and can the budget pay. The budget is
 * last, so that a retry which is refused for another reason costs nothing.
 *
 * Functions are kept out of line so that a success at once, which is nearly
 * every call, saves no registers. */
#include <stagger/cancel.h>

#include <string.h>

#include "core/backoff_draw.h"
#include "core/retry_internal.h"
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
    case STG_FAULT_TLS_TIMEOUT:
    case STG_FAULT_TLS_HANDSHAKE:
    case STG_FAULT_EGRESS:
    case STG_FAULT_CIRCUIT_OPEN:
    case STG_FAULT_NO_FILES:
    case STG_FAULT_NO_PORTS:
    case STG_FAULT_NO_BUFFERS:
    case STG_FAULT_INTERRUPTED:
    case STG_FAULT_PROXY:
        return true;
    case STG_FAULT_OVERLOAD:
        return o->unsent || o->code == 425 || o->code == 429;
    default:
        return o->unsent;
    }
}

/* Not inlined, like conclude_with_peer(): most have no method. */
__attribute__((noinline)) static bool is_method_repeatable(const char *method)
{
    static const char *const methods[] = {"GET",   "HEAD", "OPTIONS",
                                          "TRACE", "PUT",  "DELETE"};

    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        if (strcmp(method, methods[i]) == 0)
            return true;
    return false;
}

/* Whatever became of the attempt. Asked after it, for some learn their method
 * in it. */
bool stg_retry_is_repeatable(const stg_retry *r)
{
    const stg_with *with = r->with;

    return with->method == NULL || r->policy->unsafe || with->has_key ||
           is_method_repeatable(with->method);
}

/* Whether an operation that is around another one would repeat what that one
 * failed by. */
static bool would_retry(const stg_retry *r, const stg_outcome *o, stg_ns now)
{
    stg_ruling ruling;

    if (!is_running(r) || r->attempts >= r->policy->attempts_max ||
        now >= r->deadline_at)
        return false;
    ruling = stg_rule_find(r->policy, o);
    return ruling.retries_max != 0 &&
           (ruling.limited < 0 ||
            r->limited[ruling.limited] < ruling.retries_max) &&
           (stg_retry_is_repeatable(r) || is_unprocessed(o));
}

/* One around that is nested itself leaves it to those around it. */
static bool is_left_to_outer(const stg_retry *r, const stg_outcome *o,
                             stg_ns now)
{
    const stg_retry *outer = r->with->parent;

    while (outer != NULL && !would_retry(outer, o, now))
        outer = outer->with == NULL ? NULL : outer->with->parent;
    return outer != NULL;
}

/* The order of the questions is the policy: the first that holds is the
 * reason. STG_WHY_DONE: none does. */
static stg_why find_refusal(const stg_retry *r, const stg_outcome *o,
                            stg_ruling ruling, stg_ns now)
{
    const stg_policy *p = r->policy;
    uint16_t retries_max = ruling.retries_max;

    if (o->fault == STG_FAULT_CANCELLED || stg_retry_is_cancelled(r))
        return STG_WHY_CANCELLED;
    if (o->fault == STG_FAULT_CIRCUIT_OPEN && retries_max == 0)
        return STG_WHY_CIRCUIT_OPEN;
    if (o->permanent || retries_max == 0)
        return STG_WHY_PERMANENT;
    if (!stg_retry_is_repeatable(r) && !is_unprocessed(o))
        return STG_WHY_NOT_IDEMPOTENT;
    if (p->nested == STG_NESTED_ONCE && is_left_to_outer(r, o, now))
        return STG_WHY_NESTED;
    if (ruling.limited >= 0 && r->limited[ruling.limited] >= retries_max)
        return STG_WHY_FAULT_LIMIT;
    if (r->attempts >= p->attempts_max)
        return STG_WHY_ATTEMPTS;
    return STG_WHY_DONE;
}

/* The time of an open breaker is not a server's word, and stays a floor. */
static bool is_exact(const stg_policy *p, const stg_outcome *o)
{
    return p->retry_after == STG_RETRY_AFTER_EXACT &&
           o->fault != STG_FAULT_CIRCUIT_OPEN;
}

/* The wait, and whether it is the policy's own or longer, as the server asked.
 * The backoff goes on either way: a server that asks for 1 ms for ever does not
 * stop it, nor where it is taken at its word. */
static stg_ns find_wait(stg_retry *r, const stg_outcome *o, stg_rng *rng,
                        stg_why *why)
{
    const stg_backoff *b = &r->policy->backoff;
    stg_ns asked = stg_wait_asked(r->policy, o), wait;
    stg_interval i = stg_backoff_interval(b, stg_base_after(r->policy, o),
                                          r->attempts, r->last);
    bool is_theirs = asked > 0 && is_exact(r->policy, o);

    *why = is_theirs || asked > stg_backoff_longest(b, i) ? STG_WHY_SERVER_DELAY
                                                          : STG_WHY_BACKOFF;
    wait = stg_backoff_draw(b, r->attempts, i, &r->last, is_theirs ? 0 : asked,
                            rng);
    return is_theirs ? asked : wait;
}

/* With budget-empty=wait a token of the future will do, if it comes before the
 * deadline. */
static stg_grant ask(stg_budget *b, const stg_retry *r, stg_ns now)
{
    if (!r->policy->budget_waits)
        return stg_budget_take(b, r->paid, now);
    return stg_budget_reserve(b, r->paid, now,
                              stg_ns_sub(r->deadline_at, r->with->expected));
}

/* Pays what r->paid says, of the peer's budget and the shared one, or neither.
 * Granted: from_at is when both are good for it. */
stg_grant stg_retry_pay(stg_retry *r, stg_ns now)
{
    stg_budget *own = own_budget(r), *shared = r->with->shared_budget;
    stg_grant first = ask(own, r, now), second;

    if (!first.granted)
        return first;
    second = shared == NULL ? first : ask(shared, r, now);
    if (!second.granted) {
        stg_budget_give_back(own, r->paid, first.from_at, now);
        return second;
    }
    r->since_at = first.from_at;
    r->shared_at = second.from_at;
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

    // The next attempt may be the first request: so far an open breaker let
    // none out.
    if (!has(r, PAYING) || !has(r, COUNTED))
        return stg_retry_begin_wait(r, due_at, why, o, now);
    r->paid = (uint8_t)stg_budget_charge(o);
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
    r->last = r->policy->backoff.base;
    memset(r->limited, 0, sizeof r->limited);
    r->deadline_at = stg_retry_deadline(r->policy, r->with, now);
}

/* Not inlined, like conclude_with_peer(). */
__attribute__((noinline)) static stg_decision
succeed(stg_retry *r, const stg_outcome *o, stg_ns now)
{
    if (has(r, PAYING)) {
        stg_budget_succeed(own_budget(r), r->paid);
        stg_budget_succeed(r->with->shared_budget, r->paid);
    }
    return stg_retry_end(r, STG_WHY_DONE, o, now);
}

/* gRFC A6: a server that says "do not retry" is overloaded, whatever the code. */
static bool is_pushed_back(const stg_outcome *o)
{
    return o->permanent && o->code_kind == STG_CODE_GRPC;
}

static bool counts_failures(const stg_budget *b)
{
    return b != NULL && b->options.kind == STG_BUDGET_GRPC;
}

static void count_failure(const stg_retry *r, const stg_outcome *o)
{
    stg_budget *own = own_budget(r), *shared = r->with->shared_budget;

    if ((counts_failures(own) || counts_failures(shared)) &&
        stg_fault_category(o->fault) != STG_CATEGORY_OWN) {
        stg_budget_fail(own);
        stg_budget_fail(shared);
    }
}

/* For others: within this file it is inlined. */
void stg_retry_count_failure(const stg_retry *r, const stg_outcome *o)
{
    count_failure(r, o);
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
    // is_pushed_back(o)))| gRFC A6: failures that may be retried drain the
    // budget, and those of which the server said not to.
    if (has(r, PAYING) && (ruling.retries_max != 0 || is_pushed_back(o)))
        count_failure(r, o);
    why = find_refusal(r, o, ruling, now);
    if (why != STG_WHY_DONE)
        return stg_retry_end(r, why, o, now);

    due_at = stg_ns_add(now, find_wait(r, o, rng, &why));
    if (!fits_deadline(r, due_at))
        return stg_retry_end(r, STG_WHY_DEADLINE, o, now);
    clear(r, IN_ATTEMPT);
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
        stg_breaker_report(b, has(r, PROBE), stg_breaker_classify(o),
                           r->since_at, now);
    clear(r, PROBE);
}

/* Whether a breaker hears of the attempt. One that was resumed may have no
 * peer. */
static bool has_breaker(const stg_retry *r)
{
    return r->policy->breaker.rule != STG_BREAKER_NONE && r->with->peer != NULL;
}

static inline stg_decision conclude(stg_retry *r, const stg_outcome *o,
                                    stg_ns now, stg_rng *rng)
{
    return o->fault == STG_FAULT_NONE ? succeed(r, o, now)
                                      : stg_retry_decide(r, o, now, rng);
}

stg_decision stg_retry_conclude(stg_retry *r, const stg_outcome *o, stg_ns now,
                                stg_rng *rng)
{
    return conclude(r, o, now, rng);
}

static inline void report_to_peer(stg_retry *r, const stg_outcome *o,
                                  stg_ns now)
{
    if (has(r, IN_SHARE))
        stg_retry_leave_share(r);
    if (has(r, IN_BULKHEAD))
        stg_retry_leave_bulkhead(r);
    if (has_breaker(r))
        report_to_breaker(r, o, now);
    if (has(r, THROTTLED))
        stg_throttle_report(&r->with->peer->throttle, o, r->since_at, now);
    clear(r, THROTTLED);
}

/* Whether a part of the peer, or a share budget, hears of the attempt. */
static inline bool is_reported(const stg_retry *r)
{
    return has(r, IN_BULKHEAD | THROTTLED | IN_SHARE) || has_breaker(r);
}

void stg_retry_report(stg_retry *r, const stg_outcome *o, stg_ns now)
{
    if (is_reported(r))
        report_to_peer(r, o, now);
}

/* Not inlined: operations without any of them have no registers to save. */
__attribute__((noinline)) static stg_decision
conclude_with_peer(stg_retry *r, const stg_outcome *o, stg_ns now, stg_rng *rng)
{
    report_to_peer(r, o, now);
    return conclude(r, o, now, rng);
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
    if (has(r, PLAIN) && outcome->fault == STG_FAULT_NONE) {
        r->flags = ENDED;
        return (stg_decision){.next = STG_DONE};
    }
    if (is_reported(r))
        return conclude_with_peer(r, outcome, now, rng);
    return conclude(r, outcome, now, rng);
}
