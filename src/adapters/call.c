/* stg_call(): a function is called until it succeeds, or the policy gives up.
 *
 * Each thread notes the operation whose attempt it is in, so that a call inside of
 * that attempt knows that it is nested. Most calls succeed at once: where nobody has
 * to be told, the first attempt is made on a bare stg_retry, and what an operation has
 * beside it is made for the calls that fail. */
#include <stagger/call.h>

#include "adapters/internal.h"

/* The innermost operation of this thread that is in an attempt: an operation
 * that begins within it is nested. */
static _Thread_local const stg_retry *current;

const stg_retry *stg_call_current(void)
{
    return current;
}

/* The one around is put back, so that calls may be nested to any depth. */
static stg_outcome attempt(const stg_retry *r, stg_call_fn *fn, void *ctx)
{
    const stg_retry *around = current;
    stg_outcome outcome;

    current = r;
    outcome = fn(ctx);
    current = around;
    return outcome;
}

static bool report_to(stg_report *report, const stg_operation *op)
{
    if (report != NULL)
        *report = stg_operation_result(op);
    return op->decision.next == STG_DONE || op->fell_back;
}

static void go_on(stg_operation *op, stg_call_fn *fn, void *ctx)
{
    while (stg_operation_again(op)) {
        stg_outcome outcome = attempt(&op->retry, fn, ctx);

        stg_operation_report(op, &outcome);
    }
}

static bool run(const stg_policy *policy, const stg_with *with, stg_call_fn *fn,
                void *ctx, stg_report *report)
{
    stg_operation op STG_UNINITIALIZED;

    (void)stg_operation_begin_in(&op, policy, with, current); // told by again
    go_on(&op, fn, ctx);
    return report_to(report, &op);
}

/* The first attempt failed: now it becomes an operation. */
STG_NOINLINE static bool go_on_from(const stg_retry *r, bool is_timed,
                                    const stg_outcome *first, stg_call_fn *fn,
                                    void *ctx, stg_report *report)
{
    stg_operation op STG_UNINITIALIZED;

    stg_operation_adopt(&op, r, is_timed);
    stg_operation_report(&op, first);
    go_on(&op, fn, ctx);
    return report_to(report, &op);
}

/* Whether nobody must be told when an attempt starts and ends, and nothing can
 * hold the first one back. */
static bool is_simple(const stg_policy *policy, const stg_with *with)
{
    if (policy == NULL || policy->breaker.rule != STG_BREAKER_NONE ||
        policy->throttle.kind != STG_THROTTLE_NONE || current != NULL)
        return false;
    return with == NULL ||
           (with->hook == NULL && with->env == NULL &&
            (with->peer == NULL || (with->peer->limiter.rate |
                                    with->peer->bulkhead.options.max) == 0));
}

/* Most calls are simple, and most of those succeed at once. They are made on a
 * bare stg_retry; what an operation has beside it is for those that fail. */
static bool run_simply(const stg_policy *policy, const stg_with *with,
                       stg_call_fn *fn, void *ctx, stg_report *report)
{
    bool is_timed = stg_operation_needs_clock(policy, with);
    stg_ns now = is_timed ? stg_env_now(NULL) : 0;
    stg_outcome outcome STG_UNINITIALIZED;
    stg_retry r STG_UNINITIALIZED;

    if (stg_retry_start(&r, policy, with, now) != STG_OK ||
        stg_retry_admit(&r, now, NULL).next != STG_GO)
        return run(policy, with, fn, ctx, report); // which says why
    outcome = attempt(&r, fn, ctx);
    if (outcome.fault != STG_FAULT_NONE)
        return go_on_from(&r, is_timed, &outcome, fn, ctx, report);
    if (with != NULL) // or nobody hears of it
        (void)stg_retry_step(&r, &outcome, now, NULL);
    if (report != NULL)
        *report = (stg_report){.next = STG_DONE, .attempts = 1};
    return true;
}

bool stg_call(const stg_policy *policy, const stg_with *with, stg_call_fn *fn,
              void *ctx, stg_report *report)
{
    if (fn != NULL && is_simple(policy, with))
        return run_simply(policy, with, fn, ctx, report);
    if (fn != NULL)
        return run(policy, with, fn, ctx, report);
    if (report != NULL)
        *report = (stg_report){.next = STG_GIVE_UP,
                               .why = STG_WHY_INVALID,
                               .flaw = "the function to call is NULL"};
    return false;
}
