/* When an attempt may begin: budget, throttle, rate limit, bulkhead and
 * breaker. ask_all() has their order: cancel, deadline, a debt to the budget,
 * throttle, rate limit, bulkhead, breaker. The breaker comes last, so that a
 * probe that it grants goes out at once.
 *
 * What was taken stays held, by its flag, while something behind it makes the
 * operation wait: the next call does not take it again. shared_at has three
 * meanings, by flag: when the shared budget is good for the payment (HELD),
 * when the rate limit has the place (PLACED), since when it waits for the
 * bulkhead (QUEUED). */
#include "core/retry_internal.h"

#include <stdatomic.h>
#include <stddef.h>

#include <stagger/cancel.h>

static void count_attempt(stg_retry *r, stg_ns now)
{
    if (r->attempts < UINT32_MAX)
        r->attempts++;
    r->since_at = now;
}

/* The breaker is open: an attempt that was not made, and failed. */
static stg_decision refuse_permit(stg_retry *r, stg_ns reopen_at, stg_ns now,
                                  stg_rng *rng)
{
    stg_outcome o = {.fault = STG_FAULT_CIRCUIT_OPEN,
                     .delay = stg_ns_sub(reopen_at, now)};

    stg_retry_release_payment(r, now);
    stg_retry_release_place(r, now);
    stg_retry_leave_bulkhead(r);
    stg_retry_leave_throttle(r, now);
    clear(r, QUEUED);
    count_attempt(r, now);
    return stg_retry_decide(r, &o, now, rng);
}

/* A ratio hears of the first attempt, a share of each. Not inlined: few budgets
 * are either. */
__attribute__((noinline)) static void
tell_budgets(stg_retry *r, stg_budget *own, stg_budget *shared, stg_ns now)
{
    if (!has(r, COUNTED)) {
        stg_budget_attempt(own, now);
        stg_budget_attempt(shared, now);
    }
    if (is_share(own) || is_share(shared)) {
        stg_budget_begin(own);
        stg_budget_begin(shared);
        set(r, IN_SHARE);
    }
}

/* What was held is used now. */
static stg_decision begin_attempt(stg_retry *r, stg_ns now)
{
    stg_decision go = {.next = STG_GO};

    r->flags = (uint16_t)((r->flags & ~(HELD | PLACED | QUEUED)) | IN_ATTEMPT);
    count_attempt(r, now);
    if (has(r, PAYING)) {
        stg_budget *own = own_budget(r), *shared = r->with->shared_budget;

        if (counts_attempts(own) || counts_attempts(shared))
            tell_budgets(r, own, shared, now);
    }
    set(r, COUNTED);
    tell(r, STG_EVENT_ATTEMPT, NULL, go, now);
    return go;
}

/* STG_NEVER: it was refused by chance, and no later moment is better. */
static stg_decision pass_throttle(stg_retry *r, stg_ns now, stg_rng *rng)
{
    stg_ns due_at;

    if (stg_throttle_enter(&r->with->peer->throttle, now, rng, &due_at)) {
        set(r, THROTTLED);
        return (stg_decision){.next = STG_GO};
    }
    if (due_at == STG_NEVER)
        return stg_retry_end(r, STG_WHY_THROTTLE, NULL, now);
    if (!fits_deadline(r, due_at))
        return stg_retry_end(r, STG_WHY_DEADLINE, NULL, now);
    return stg_retry_begin_wait(r, due_at, STG_WHY_THROTTLE, NULL, now);
}

/* Both instants of the budgets in one. They are past, but for a caller that
 * came early. Buckets that are refilled need them no more; the other kinds need
 * the moment of the payment, which is the earlier one. */
static void clear_shared_at(stg_retry *r)
{
    if (has(r, HELD))
        r->since_at = stg_ns_min(r->since_at, r->shared_at);
}

/* The limiter has a place later only: take it and wait. Otherwise STG_GO. */
static stg_decision find_place(stg_retry *r, stg_ns now)
{
    stg_limiter *limiter = &r->with->peer->limiter;
    stg_ns until_at = stg_ns_sub(r->deadline_at, r->with->expected);
    stg_ns from_at;

    if (has(r, PLACED | QUEUED))
        return (stg_decision){.next = STG_GO};
    from_at = stg_limiter_reserve(limiter, now, until_at);
    if (from_at == STG_NEVER)
        return stg_retry_end(r, STG_WHY_DEADLINE, NULL, now);
    clear_shared_at(r);
    set(r, PLACED);
    r->shared_at = from_at;
    if (from_at <= now)
        return (stg_decision){.next = STG_GO};
    return stg_retry_begin_wait(r, from_at, STG_WHY_GATE, NULL, now);
}

/* How long one that waits for a place of the bulkhead leaves it alone: places
 * come back when others end, which nobody can tell in advance. */
static stg_ns find_nap(stg_ns wait)
{
    return stg_ns_min(stg_ns_max(wait / 16, STG_MS), 100 * STG_MS);
}

/* A place of the rate limit that it has is used up by that. */
static void begin_queue(stg_retry *r, stg_ns now)
{
    clear_shared_at(r);
    clear(r, PLACED);
    set(r, QUEUED);
    r->shared_at = now;
}

/* The bulkhead has a place, or the operation ends, or asks again soon. */
static stg_decision enter_bulkhead(stg_retry *r, stg_ns now)
{
    stg_bulkhead *b = &r->with->peer->bulkhead;
    stg_ns since_at = has(r, QUEUED) ? r->shared_at : now;
    stg_ns until_at = stg_ns_add(since_at, b->options.wait), due_at;

    if (stg_bulkhead_enter(b)) {
        set(r, IN_BULKHEAD);
        return (stg_decision){.next = STG_GO};
    }
    if (now >= until_at)
        return stg_retry_end(r, STG_WHY_BULKHEAD, NULL, now);
    due_at = stg_ns_min(stg_ns_add(now, find_nap(b->options.wait)), until_at);
    if (!fits_deadline(r, due_at))
        return stg_retry_end(r, STG_WHY_DEADLINE, NULL, now);
    if (has(r, QUEUED)) // and nobody need hear of it again
        return (stg_decision){STG_WAIT, STG_WHY_BULKHEAD, due_at};
    begin_queue(r, now);
    return stg_retry_begin_wait(r, due_at, STG_WHY_BULKHEAD, NULL, now);
}

/* The budget was empty: ask again, or wait again by the policy's window. */
static stg_decision settle_debt(stg_retry *r, stg_ns now, stg_rng *rng)
{
    const stg_ns least = 10 * STG_MS; // a base of 0 is no reason to spin
    stg_grant g = stg_retry_pay(r, now);
    stg_ns last = r->last, wait, due_at;

    if (g.granted) {
        clear(r, OWES);
        if (g.from_at <= now)
            return (stg_decision){.next = STG_GO};
        return stg_retry_begin_wait(r, g.from_at, STG_WHY_BUDGET, NULL, now);
    }
    wait = stg_backoff_wait(&r->policy->backoff, r->attempts, &last, rng);
    due_at = stg_ns_add(now, stg_ns_max(least, wait));
    // !fits_deadline(r, due_at))| Refused with an instant: the budget knows
    // when it could pay, and that is too late.
    if (g.from_at != STG_NEVER || !fits_deadline(r, due_at))
        return stg_retry_end(r, STG_WHY_BUDGET, NULL, now);
    return stg_retry_begin_wait(r, due_at, STG_WHY_BUDGET, NULL, now);
}

/* Whatever limits the peer has, but for its breaker. */
static stg_decision pass_limits(stg_retry *r, stg_ns now, stg_rng *rng)
{
    const stg_peer *peer = r->with->peer;
    stg_decision d = {.next = STG_GO};

    if (r->policy->throttle.kind != STG_THROTTLE_NONE && !has(r, THROTTLED))
        d = pass_throttle(r, now, rng);
    if (d.next == STG_GO && peer->limiter.rate != 0)
        d = find_place(r, now);
    if (d.next == STG_GO && peer->bulkhead.options.max != 0)
        d = enter_bulkhead(r, now);
    return d;
}

/* With breaker-scope=retries an open breaker does not hold the first
 * attempt. */
static stg_decision pass_breaker(stg_retry *r, stg_ns now, stg_rng *rng)
{
    stg_ns reopen_at;
    stg_permit permit =
        stg_breaker_enter(&r->with->peer->breaker, now, &reopen_at);

    if (permit == STG_PERMIT_DENIED &&
        !(r->policy->breaks_retries_only && r->attempts == 0))
        return refuse_permit(r, reopen_at, now, rng);
    if (permit == STG_PERMIT_PROBE)
        set(r, PROBE);
    return begin_attempt(r, now);
}

/* Whatever is shared, watched or timed is asked. Not inlined, for what needs
 * none of it has no registers to save. */
__attribute__((noinline)) static stg_decision ask_all(stg_retry *r, stg_ns now,
                                                      stg_rng *rng)
{
    stg_decision d = {.next = STG_GO};

    if (stg_retry_is_cancelled(r))
        return stg_retry_end(r, STG_WHY_CANCELLED, NULL, now);
    if (now >= r->deadline_at)
        return stg_retry_end(r, STG_WHY_DEADLINE, NULL, now);
    if (has(r, OWES))
        d = settle_debt(r, now, rng);
    if (d.next == STG_GO && r->with->peer != NULL)
        d = pass_limits(r, now, rng);
    if (d.next != STG_GO)
        return d;
    return r->policy->breaker.rule == STG_BREAKER_NONE || r->with->peer == NULL
               ? begin_attempt(r, now)
               : pass_breaker(r, now, rng);
}

stg_decision stg_retry_admit(stg_retry *r, stg_ns now, stg_rng *rng)
{
    if (!is_running(r))
        return stg_retry_ended(r);
    if (has(r, IN_ATTEMPT))
        return (stg_decision){.next = STG_GO};
    if (!has(r, PLAIN))
        return ask_all(r, now, rng);
    set(r, IN_ATTEMPT);
    count_attempt(r, now);
    return (stg_decision){.next = STG_GO};
}

/* -- a cancel flag, which any thread may set */

bool stg_cancel_is_set(const stg_cancel *c)
{
    return c != NULL && atomic_load((stg_flag *)&c->is_set) != 0;
}
