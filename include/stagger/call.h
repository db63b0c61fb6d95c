/* call.h - the retry as one call of a function of yours. Blocks.
 *
 * An operation that is called inside another one, on the same thread, is
 * nested in it, without being told: by default it makes one attempt, if the
 * outer one would repeat what it failed by. (This thread-local is the only one
 * that stagger has; loops and handles of an event loop can be left early, so
 * they are nested only by with.parent.) */
#ifndef STAGGER_CALL_H
#define STAGGER_CALL_H

#include <stagger/operation.h>

STG_DECLS_BEGIN

/* One attempt. It returns to its caller: no longjmp(), no exception. */
typedef stg_outcome stg_call_fn(void *ctx);

/* Calls fn until it succeeds or the policy gives up. Returns whether there is an
 * answer: it succeeded, or with.fallback answered, as report->fell_back tells.
 * report may be NULL. */
STG_API bool stg_call(const stg_policy *policy, const stg_with *with,
                      stg_call_fn *fn, void *ctx, stg_report *report);

/* The innermost stg_call() of this thread: its attempts, its timeout
 * (stg_retry_timeout()), a parent for loops. NULL outside one. */
STG_API const stg_retry *stg_call_current(void);

STG_DECLS_END

#endif
