/* retry.h - one operation: outcome and time in, decision out.
 *
 *     stg_retry_start(&r, &policy, with, now);
 *     for (;;) {
 *         d = stg_retry_admit(&r, now, &rng);        // may an attempt start?
 *         if (d.next == STG_GO)
 *             d = stg_retry_step(&r, &outcome, now, &rng);  // what now?
 *         if (d.next == STG_WAIT)
 *             sleep until d.due_at;
 *         else
 *             break;                                 // done, or given up
 *     }
 *
 * That is all of stagger's core; the adapters (loop.h, call.h, uv.h, curl.h)
 * are this loop with a clock. Pure: same state, outcome, now and generator, same
 * decision. A stg_retry is the caller's and belongs to one thread at a time;
 * it holds nothing to free. Policy and with are kept. */
#ifndef STAGGER_RETRY_H
#define STAGGER_RETRY_H

#include <stagger/with.h>

STG_DECLS_BEGIN

typedef struct stg_retry {
    const stg_policy *policy;
    const stg_with *with;
    stg_ns deadline_at; /* of the whole operation; STG_NEVER: none */
    stg_ns since_at;    /* when the attempt began; in a wait, the instant that
                          it has of the peer's budget */
    stg_ns shared_at;   /* in a wait: since when it waits for the bulkhead, or
                          the instant that it has of the limiter, or, as long as
                          it has neither, of the shared budget */
    stg_ns last;        /* the s of decorrelated jitter, the u of Polly's */
    uint32_t attempts;  /* begun, first try included; the wait after the n-th is
                          wait number n, whoever asked for it */
    uint8_t limited[STG_LIMITED_MAX]; /* retries by limited rule */
    uint16_t flags; /* where it stands, what it holds, how it ended */
    uint8_t paid; /* the stg_charge of the last retry; of an operation that was
                     refused, the reason */
} stg_retry;

/* Begins an operation at now. policy has passed stg_policy_check() (texts and
 * presets have). with may be NULL. Returns STG_INVALID, and an operation that
 * gives up at once, for a NULL or zeroed policy, a policy with budget, breaker,
 * rate or bulkhead and no peer, a peer that does not serve the policy
 * (stg_peer_fits()), and a shared budget that is zeroed or of no kind. */
STG_API stg_status stg_retry_start(stg_retry *r, const stg_policy *policy,
                                   const stg_with *with, stg_ns now);

/* May an attempt start now? STG_GO: yes, and it has begun. STG_WAIT: ask again
 * at due_at (asked sooner, it starts sooner: the wait is the caller's to
 * keep). STG_GIVE_UP: never. Asked during an attempt it answers STG_GO and
 * changes nothing; after the end it says how that was. */
STG_API stg_decision stg_retry_admit(stg_retry *r, stg_ns now, stg_rng *rng);

/* The attempt came to this: STG_DONE, STG_WAIT or STG_GIVE_UP. NULL reads as
 * STG_FAULT_ERROR. Without an attempt under way it changes nothing: the answer
 * is how the operation ended, or STG_GIVE_UP, invalid. */
STG_API stg_decision stg_retry_step(stg_retry *r, const stg_outcome *o,
                                    stg_ns now, stg_rng *rng);

/* Ends the operation, in an attempt or a wait: what it holds of the budget,
 * the limiter and the breaker goes back. */
STG_API stg_decision stg_retry_cancel(stg_retry *r, stg_ns now);

/* How long the attempt that begins at now may take: the policy's attempt
 * timeout or the time left, whichever is less; STG_NEVER: no limit. */
STG_API stg_ns stg_retry_timeout(const stg_retry *r, stg_ns now);

/* The progress of an operation, to be stored, and gone on with later or
 * elsewhere. */
typedef struct stg_progress {
    stg_ns last;                      /* that of stg_backoff_wait() */
    uint32_t attempts;                /* begun, first try included */
    uint8_t limited[STG_LIMITED_MAX]; /* retries by limited rule */
} stg_progress;

/* That of an operation that has not begun. */
STG_API stg_progress stg_progress_begin(const stg_policy *policy);

/* Writes what r has done so far. */
STG_API void stg_retry_save(const stg_retry *r, stg_progress *progress);

/* Goes on where progress was saved, in its attempt number progress->attempts,
 * which began at attempt_at; the operation itself began at began_at. What comes
 * next is stg_retry_step(). with.peer may be NULL whatever the policy: budget,
 * breaker and rate are then the caller's to ask. Returns STG_INVALID as
 * stg_retry_start() does, and for a progress without an attempt. */
STG_API stg_status stg_retry_resume(stg_retry *r, const stg_policy *policy,
                                    const stg_with *with,
                                    const stg_progress *progress,
                                    stg_ns began_at, stg_ns attempt_at);

/* Words for STG_WHY_INVALID: what is wrong with the call. Static; "" for an
 * operation that was not refused. */
STG_API const char *stg_retry_flaw(const stg_retry *r);

STG_DECLS_END

#endif
