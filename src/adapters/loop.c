/* Attempts in a loop of the caller: stg_loop_again() waits, stg_loop_report() says what
 * came of the attempt. All is the operation's; here is what a caller may do wrong. */
#include <stagger/loop.h>

#include "adapters/internal.h"

void stg_loop_begin(stg_loop *l, const stg_policy *policy, const stg_with *with)
{
    if (l == NULL)
        return;
    l->text[0] = '\0';
    (void)stg_operation_begin(&l->op, policy, with); // told by the next calls
}

/* An attempt that was not reported is a mistake of the caller, and ends the
 * operation: a loop without stg_loop_report() would have no end. */
bool stg_loop_again(stg_loop *l)
{
    if (l == NULL)
        return false;
    if (l->op.decision.next == STG_GO && l->op.retry.policy != NULL) {
        stg_operation_cancel(&l->op);
        stg_operation_refuse(&l->op,
                             "the attempt was not reported, see "
                             "stg_loop_report()");
    }
    return stg_operation_again(&l->op);
}

void stg_loop_report(stg_loop *l, stg_outcome outcome)
{
    if (l != NULL)
        stg_operation_report(&l->op, &outcome);
}

stg_ns stg_loop_timeout(const stg_loop *l)
{
    return l == NULL || l->op.flaw != NULL
               ? 0
               : stg_retry_timeout(&l->op.retry, stg_operation_now(&l->op));
}

void stg_loop_end(stg_loop *l)
{
    if (l != NULL)
        stg_operation_cancel(&l->op);
}

stg_report stg_loop_result(const stg_loop *l)
{
    return stg_operation_result(l == NULL ? NULL : &l->op);
}

const char *stg_loop_text(stg_loop *l)
{
    stg_report report = stg_loop_result(l);

    return l == NULL ? "" : stg_report_text(&report, l->text);
}
