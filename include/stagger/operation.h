/* operation.h - one operation with a clock: what every adapter is made of.
 *
 * The loop, the call and the libuv handle are each a way to wait around this;
 * use it to write one for an event loop of your own:
 *
 *     stg_operation_begin(&op, &policy, with);
 *     stg_operation_admit(&op, now);         // at begin, and after each wait
 *     stg_operation_report(&op, outcome);    // after each attempt
 *
 * After each call op.decision says what to do: STG_GO make an attempt, STG_WAIT
 * wait until op.decision.due_at (of stg_operation_now()), else it has ended.
 * An operation is the caller's, stays where it is, and belongs to one thread.
 * It holds nothing to free. */
#ifndef STAGGER_OPERATION_H
#define STAGGER_OPERATION_H

#include <stagger/env.h>
#include <stagger/hedge.h>
#include <stagger/report.h>
#include <stagger/retry.h>

STG_DECLS_BEGIN

typedef struct stg_operation {
    stg_retry retry; /* a parent for operations inside this one */
    stg_with with;   /* copied */
    stg_decision decision;
    stg_outcome last;  /* the last failure */
    stg_ns begun_at;   /* if is_timed */
    stg_ns changed_at; /* of the last decision */
    stg_ns waited;
    bool is_timed;    /* the clock was read at the begin: something needs it */
    const char *flaw; /* why the call is invalid; NULL: it is valid */
    bool fell_back;   /* with.fallback has answered */
    stg_hedge hedge;  /* the round, after stg_operation_begin_round() */
    uint32_t hedges;  /* begun so far */
} stg_operation;

/* Begins: STG_OK, and op->decision is to wait for the first admission, now.
 * Returns STG_INVALID, and the operation has ended, for what stg_retry_start()
 * refuses, and for an env with a clock but no sleep, or the reverse. with may
 * be NULL, and is copied. */
STG_API stg_status stg_operation_begin(stg_operation *op,
                                       const stg_policy *policy,
                                       const stg_with *with);

/* Ends an operation as invalid: one that has not begun an attempt, or has been
 * cancelled. flaw says why; it is kept. */
STG_API void stg_operation_refuse(stg_operation *op, const char *flaw);

/* The wait is over: may an attempt start? now is stg_operation_now(); right
 * after the begin op->begun_at will do, which spares a call of the clock. */
STG_API void stg_operation_admit(stg_operation *op, stg_ns now);

/* Reports how the attempt ended. Does nothing when none is under way. */
STG_API void stg_operation_report(stg_operation *op,
                                  const stg_outcome *outcome);

/* -- several attempts at once (hedge.h), for loops that can have them; one that
 * does not call these makes no hedges:
 *
 *     STG_GO: stg_operation_begin_round(&op);          // attempt 0
 *     at op.hedge.due_at: stg_operation_hedge(&op, now)   // attempt 1 ...
 *     each attempt's end: stg_operation_report_attempt(&op, index, outcome)
 */

/* The attempt that has just begun is the first of a round, if the policy has
 * hedges. */
STG_API void stg_operation_begin_round(stg_operation *op);

/* May a hedge start now? Its number in the round, from 1; 0: not now.
 * op->hedge.due_at says when to ask again. */
STG_API uint32_t stg_operation_hedge(stg_operation *op, stg_ns now);

/* Reports how attempt `index` of the round ended. Does nothing for one that is
 * not under way. As long as op.decision is STG_GO, other attempts are under
 * way; after that they have to be cancelled, and are not reported. */
STG_API void stg_operation_report_attempt(stg_operation *op, uint32_t index,
                                          const stg_outcome *outcome);

/* Ends it as cancelled. After the end it does nothing. */
STG_API void stg_operation_cancel(stg_operation *op);

/* The time on the operation's clock. */
STG_API stg_ns stg_operation_now(const stg_operation *op);

STG_API bool stg_operation_has_ended(const stg_operation *op);

STG_API stg_report stg_operation_result(const stg_operation *op);

STG_DECLS_END

#endif
