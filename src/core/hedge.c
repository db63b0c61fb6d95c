/* A round: one attempt of stg_retry and its hedges, which the policy and the
 * operation see as one attempt. hedge.h has the order of the questions; a hedge
 * that is refused gives back what it took before, in the reverse order. What
 * the round came to is told to stg_retry once, by end_round(). */
#include <stagger/hedge.h>
#include <stagger/retry.h>

#include "core/retry_internal.h"
#include "core/rule.h"
#include "core/writer.h"

stg_status stg_hedge_check(const stg_hedge_options *o, stg_error *err)
{
    if (o == NULL)
        return stg_refuse(err, "hedge options are NULL");
    if (o->max > STG_HEDGES_MAX)
        return stg_refuse_number(err, "hedge", o->max,
                                 "1 to 3 further attempts, or none");
    if (o->percentile != 0 && (o->percentile < 50 || o->percentile > 99))
        return stg_refuse_number(err, "hedge percentile", o->percentile,
                                 "50 to 99");
    if (o->delay != 0 && (o->max == 0 || o->percentile != 0))
        return stg_refuse_duration(err, "hedge delay", o->delay,
                                   "0 without hedges, or with a percentile");
    if (o->percentile != 0 && o->max == 0)
        return stg_refuse_number(err, "hedge percentile", o->percentile,
                                 "0 without hedges");
    if (o->max != 0 && o->percentile == 0 &&
        (o->delay < STG_MS || o->delay > STG_BACKOFF_MAX))
        return stg_refuse_duration(err, "hedge delay", o->delay, "1ms to 365d");
    return STG_OK;
}

/* The attempt that r is in has a round. */
static bool is_in_round(const stg_hedge *h, const stg_retry *r)
{
    return h != NULL && h->under_way != 0 && is_running(r) &&
           has(r, IN_ATTEMPT);
}

/* STG_NEVER: no hedge. A percentile needs the latencies of a peer, and enough
 * of them. */
static stg_ns find_delay(const stg_retry *r)
{
    const stg_hedge_options *o = &r->policy->hedge;

    if (o->max == 0)
        return STG_NEVER;
    if (o->percentile == 0)
        return o->delay;
    return r->with->peer == NULL
               ? STG_NEVER
               : stg_latencies_percentile(&r->with->peer->latencies,
                                          o->percentile);
}

/* Without hedges the round has one attempt, and no further moment. */
void stg_hedge_begin(stg_hedge *h, const stg_retry *r, stg_ns now)
{
    if (h == NULL)
        return;
    *h = (stg_hedge){.due_at = STG_NEVER};
    if (!is_running(r) || !has(r, IN_ATTEMPT))
        return;
    h->delay = find_delay(r);
    h->due_at = stg_ns_add(now, h->delay);
    h->under_way = 1;
}

/* -- may one start? ---------------------------------------------------------- */

/* Hedges of operations inside each other would multiply. */
static bool is_left_to_outer(const stg_retry *r)
{
    const stg_retry *outer = r->with->parent;

    if (r->policy->nested != STG_NESTED_ONCE)
        return false;
    while (outer != NULL &&
           !(is_running(outer) && outer->policy->hedge.max != 0))
        outer = outer->with == NULL ? NULL : outer->with->parent;
    return outer != NULL;
}

/* A hedge is more load: none goes to a peer that is broken, being probed, or
 * throttled. */
static bool is_peer_at_rest(const stg_retry *r, stg_ns now)
{
    const stg_peer *peer = r->with->peer;

    if (has(r, PROBE))
        return false;
    if (r->policy->breaker.rule != STG_BREAKER_NONE &&
        stg_breaker_look(&peer->breaker, now, NULL) != STG_BREAKER_CLOSED)
        return false;
    return r->policy->throttle.kind == STG_THROTTLE_NONE ||
           !stg_throttle_is_active(&peer->throttle, now);
}

/* As a retry does, but without a wait. */
static bool pay(stg_retry *r, stg_ns now)
{
    stg_budget *own = own_budget(r);
    stg_grant first;

    if (!has(r, PAYING))
        return true;
    first = stg_budget_take(own, STG_CHARGE_RETRY, now);
    if (!first.granted)
        return false;
    if (!stg_budget_take(r->with->shared_budget, STG_CHARGE_RETRY, now)
             .granted) {
        stg_budget_give_back(own, STG_CHARGE_RETRY, first.from_at, now);
        return false;
    }
    stg_budget_begin(own);
    stg_budget_begin(r->with->shared_budget);
    return true;
}

/* The hedge that was paid has ended. */
static void leave_budgets(const stg_retry *r)
{
    if (!has(r, PAYING))
        return;
    stg_budget_end(own_budget(r), STG_CHARGE_RETRY);
    stg_budget_end(r->with->shared_budget, STG_CHARGE_RETRY);
}

/* A place and a token of the peer, and the payment: all of them or none. */
static bool take_all(stg_retry *r, stg_ns now)
{
    stg_peer *peer = r->with->peer;
    stg_ns from_at;

    if (peer == NULL)
        return pay(r, now);
    if (!stg_bulkhead_enter(&peer->bulkhead))
        return false;
    if (stg_limiter_take(&peer->limiter, now, &from_at)) {
        if (pay(r, now))
            return true;
        stg_limiter_give_back(&peer->limiter, from_at, now);
    }
    stg_bulkhead_leave(&peer->bulkhead);
    return false;
}

static bool may_begin(stg_retry *r, stg_ns now)
{
    if (stg_retry_is_cancelled(r) || !fits_deadline(r, now) ||
        !stg_retry_is_repeatable(r) || is_left_to_outer(r))
        return false;
    if (r->with->peer != NULL && !is_peer_at_rest(r, now))
        return false;
    return take_all(r, now);
}

/* The throttle was at rest, and draws nothing; if another thread has changed
 * that just now, the hedge goes out all the same. */
static void count_at_throttle(const stg_retry *r, stg_ns now)
{
    stg_rng rng = stg_rng_seed(now);

    if (r->policy->throttle.kind != STG_THROTTLE_NONE && r->with->peer != NULL)
        (void)stg_throttle_enter(&r->with->peer->throttle, now, &rng, NULL);
}

/* The moment is used up even where the hedge is refused: it is not asked for
 * again. */
bool stg_hedge_admit(stg_hedge *h, stg_retry *r, stg_ns now, uint32_t *index)
{
    if (!is_in_round(h, r) || now < h->due_at)
        return false;
    h->due_at = STG_NEVER;
    if (!may_begin(r, now))
        return false;
    count_at_throttle(r, now);
    h->begun_at[h->made++] = now;
    h->under_way = (uint8_t)(h->under_way | 1U << h->made);
    if (h->made < r->policy->hedge.max)
        h->due_at = stg_ns_add(now, h->delay);
    if (index != NULL)
        *index = h->made;
    tell(r, STG_EVENT_HEDGE, NULL, (stg_decision){.next = STG_GO}, now);
    return true;
}

/* -- what attempts come to ------------------------------------------------- */

static bool is_under_way(const stg_hedge *h, uint32_t index)
{
    return index <= STG_HEDGES_MAX && (h->under_way >> index & 1) != 0;
}

/* The peer hears of a hedge; of the first attempt it does by stg_retry. */
static void report_hedge(const stg_hedge *h, const stg_retry *r, uint32_t index,
                         const stg_outcome *o, stg_ns now)
{
    stg_peer *peer = r->with->peer;

    leave_budgets(r);
    if (peer == NULL)
        return;
    stg_bulkhead_leave(&peer->bulkhead);
    if (r->policy->breaker.rule != STG_BREAKER_NONE)
        stg_breaker_report(&peer->breaker, false, stg_breaker_classify(o),
                           h->begun_at[index - 1], now);
    if (r->policy->throttle.kind != STG_THROTTLE_NONE)
        stg_throttle_report(&peer->throttle, o, h->begun_at[index - 1], now);
}

/* The hedges that are under way are waited for no more. The first attempt
 * withdraws with the end of the operation. */
static void withdraw(stg_hedge *h, const stg_retry *r)
{
    stg_peer *peer = r->with->peer;

    for (uint32_t i = 1; i <= STG_HEDGES_MAX; i++) {
        if (!is_under_way(h, i))
            continue;
        leave_budgets(r);
        if (peer == NULL)
            continue;
        stg_bulkhead_leave(&peer->bulkhead);
        if (r->policy->throttle.kind != STG_THROTTLE_NONE)
            stg_throttle_withdraw(&peer->throttle, h->begun_at[i - 1]);
    }
    h->under_way = 0;
    h->due_at = STG_NEVER;
}

/* Nothing that others come to would change it: the policy never retries it.
 * That this machine has no file left says nothing of the others, though. */
static bool is_final(const stg_retry *r, const stg_outcome *o)
{
    if (o->fault == STG_FAULT_NONE || o->fault == STG_FAULT_CANCELLED ||
        o->permanent || stg_retry_is_cancelled(r))
        return true;
    return stg_rule_find(r->policy, o).retries_max == 0 &&
           stg_fault_category(o->fault) != STG_CATEGORY_LOCAL;
}

/* A time-out is noted, too: without it the percentile would know fast answers
 * only. */
static void note_latency(const stg_retry *r, const stg_outcome *o, stg_ns now)
{
    if (r->policy->hedge.percentile != 0 && r->with->peer != NULL &&
        (o->fault == STG_FAULT_TIMEOUT ||
         stg_breaker_classify(o) == STG_BREAKER_SUCCESS))
        stg_latencies_add(&r->with->peer->latencies,
                          stg_ns_sub(now, r->since_at));
}

/* The round has come to this. */
static stg_decision end_round(stg_hedge *h, stg_retry *r, const stg_outcome *o,
                              stg_ns now, stg_rng *rng)
{
    stg_outcome last = *o;

    // The longest wait that any attempt of the round was asked for.
    last.delay = stg_ns_max(o->delay, stg_ns_sub(h->not_before_at, now));
    withdraw(h, r);
    note_latency(r, o, now);
    // A success gives back what was paid last; a share, what the first one paid.
    stg_retry_leave_share(r);
    if (h->made > 0 && has(r, PAYING))
        r->paid = STG_CHARGE_RETRY;
    return stg_retry_conclude(r, &last, now, rng);
}

/* One has failed, and others are under way. */
static stg_decision go_on(stg_hedge *h, const stg_retry *r,
                          const stg_outcome *o, stg_ns now)
{
    const stg_decision go = {.next = STG_GO};
    stg_ns asked = stg_wait_asked(r->policy, o);

    if (has(r, PAYING))
        stg_retry_count_failure(r, o);
    h->not_before_at = stg_ns_max(h->not_before_at, stg_ns_add(now, asked));
    // stg_fault_category(o->fault) == STG_CATEGORY_OVERLOAD)| The server asks
    // for less: no further hedge goes out.
    if (o->delay > 0 || stg_fault_category(o->fault) == STG_CATEGORY_OVERLOAD)
        h->due_at = STG_NEVER;
    tell(r, STG_EVENT_DECISION, o, go, now);
    return go;
}

/* An attempt that is not under way was withdrawn, or has reported before: its
 * report changes nothing. */
stg_decision stg_hedge_step(stg_hedge *h, stg_retry *r, uint32_t index,
                            const stg_outcome *o, stg_ns now, stg_rng *rng)
{
    static const stg_outcome unknown = {.fault = STG_FAULT_ERROR};

    if (o == NULL)
        o = &unknown;
    if (!is_running(r))
        return stg_retry_ended(r);
    if (!is_in_round(h, r))
        return (stg_decision){.next = STG_GIVE_UP, .why = STG_WHY_INVALID};
    if (!is_under_way(h, index))
        return (stg_decision){.next = STG_GO};
    h->under_way = (uint8_t)(h->under_way & ~(1U << index));
    if (index == 0)
        stg_retry_report(r, o, now);
    else
        report_hedge(h, r, index, o, now);
    return h->under_way == 0 || is_final(r, o) ? end_round(h, r, o, now, rng)
                                               : go_on(h, r, o, now);
}

stg_decision stg_hedge_cancel(stg_hedge *h, stg_retry *r, stg_ns now)
{
    if (is_in_round(h, r))
        withdraw(h, r);
    return stg_retry_cancel(r, now);
}
