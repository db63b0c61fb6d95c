#include <stagger/call.h>

#include "adapters/blocking.h"

static _Thread_local const stg_retry *current;

const stg_retry *stg_call_current(void)
{
    return current;
}

static stg_outcome attempt(const stg_retry *r, stg_call_fn *fn, void *ctx)
{
    const stg_retry *around = current;
    stg_outcome outcome;

    current = r;
    outcome = fn(ctx);
    current = around;
    return outcome;
}

/* Nothing looks at the operation or its time: then the first attempt can be
 * made before all that a second one needs is set up. */
static bool is_unwatched(const stg_policy *p, const stg_with *with)
{
    return with == NULL && current == NULL && p != NULL &&
           p->deadline == STG_NEVER && p->attempt_timeout == STG_NEVER &&
           p->reset_after == STG_NEVER;
}

/* Makes that attempt: STG_DONE, STG_GIVE_UP if the call cannot be used, or
 * STG_WAIT with the outcome that an operation is to begin with. */
static stg_next try_at_once(const stg_policy *policy, stg_call_fn *fn,
                            void *ctx, stg_outcome *outcome)
{
    stg_retry r STG_UNINITIALIZED;

    if (stg_retry_start(&r, policy, NULL, 0) != STG_OK)
        return STG_GIVE_UP;
    (void)stg_retry_admit(&r, 0, NULL); // nothing can refuse it
    *outcome = attempt(&r, fn, ctx);
    return outcome->fault == STG_FAULT_NONE ? STG_DONE : STG_WAIT;
}

/* The whole operation. It begins with an attempt that was made already, if
 * first is STG_WAIT, which came to outcome. */
static bool run(const stg_policy *policy, const stg_with *with, stg_call_fn *fn,
                void *ctx, stg_next first, stg_outcome outcome,
                stg_report *report)
{
    stg_operation op STG_UNINITIALIZED;

    (void)stg_operation_begin_in(&op, policy, with, current); // told by again
    while (stg_operation_again(&op)) {
        if (first != STG_WAIT)
            outcome = attempt(&op.retry, fn, ctx);
        first = STG_GO;
        stg_operation_report(&op, &outcome);
    }
    if (report != NULL)
        *report = stg_operation_result(&op);
    return op.decision.next == STG_DONE;
}

bool stg_call(const stg_policy *policy, const stg_with *with, stg_call_fn *fn,
              void *ctx, stg_report *report)
{
    stg_report nothing = {.next = STG_GIVE_UP,
                          .why = STG_WHY_INVALID,
                          .flaw = "the function to call is NULL"};
    stg_outcome outcome = {.fault = STG_FAULT_NONE};
    stg_next first = STG_GO;

    if (fn == NULL) {
        if (report != NULL)
            *report = nothing;
        return false;
    }
    if (is_unwatched(policy, with))
        first = try_at_once(policy, fn, ctx, &outcome);
    if (first != STG_DONE)
        return run(policy, with, fn, ctx, first, outcome, report);
    if (report != NULL)
        *report = (stg_report){.next = STG_DONE, .attempts = 1};
    return true;
}
