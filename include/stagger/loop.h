/* loop.h - the retry as a loop around your own code. Blocks while it waits.
 *
 *     stg_loop r;
 *     int fd = -1;
 *
 *     stg_loop_begin(&r, &policy, &(stg_with){.peer = &db});
 *     while (stg_loop_again(&r)) {
 *         fd = connect_to("db", 5432);
 *         stg_loop_report(&r, fd >= 0 ? stg_ok() : stg_failed_errno(errno));
 *     }
 *     if (fd < 0)
 *         puts(stg_loop_text(&r));
 *
 * A stg_loop is the caller's, stays where it is, and belongs to one thread. To
 * leave the loop early (break, goto) call stg_loop_end(), or what the
 * operation holds of a shared budget is lost. */
#ifndef STAGGER_LOOP_H
#define STAGGER_LOOP_H

#include <stagger/operation.h>

STG_DECLS_BEGIN

typedef struct stg_loop {
    stg_operation op; /* op.retry is the parent of operations inside */
    char text[STG_REPORT_TEXT_MAX];
} stg_loop;

/* Begins. with may be NULL, and is copied. What cannot be used (see
 * stg_retry_start()) is told by stg_loop_again(), which is then false at once,
 * and by stg_loop_text(). */
STG_API void stg_loop_begin(stg_loop *l, const stg_policy *policy,
                            const stg_with *with);

/* Waits if there is a wait, and says whether to make an attempt. An attempt
 * that was not reported ends the operation as invalid, and its text says so. */
STG_API bool stg_loop_again(stg_loop *l);

/* Reports how the attempt ended. Once for each attempt; other calls do
 * nothing. */
STG_API void stg_loop_report(stg_loop *l, stg_outcome outcome);

/* How long the current attempt may take, from now; STG_NEVER: no limit. */
STG_API stg_ns stg_loop_timeout(const stg_loop *l);

/* Ends the operation early, as cancelled. After its end it does nothing. */
STG_API void stg_loop_end(stg_loop *l);

/* How it went, any time. */
STG_API stg_report stg_loop_result(const stg_loop *l);

/* The same as a sentence, in the loop's own text. */
STG_API const char *stg_loop_text(stg_loop *l);

STG_DECLS_END

#endif
