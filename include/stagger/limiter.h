/* limiter.h - no more attempts than a rate, first ones and retries alike.
 *
 * A token bucket as one virtual time (GCRA): burst attempts at once, then one
 * every 1 / rate. Any number of threads use one at once, without locks. */
#ifndef STAGGER_LIMITER_H
#define STAGGER_LIMITER_H

#include <stdbool.h>

#include <stagger/ns.h>
#include <stagger/status.h>

STG_DECLS_BEGIN

typedef struct stg_limiter {
    uint32_t rate;  /* thousandths a second, 1 to 1000000000; 0: no limit */
    uint32_t burst; /* 1 to 1000000; 0 with rate 0 */
    stg_word level;
} stg_limiter;

/* Makes a full bucket, before any thread uses it. rate 0 is no limit; burst 0 is
 * a tenth of a second's rate, 1 at least. Returns STG_INVALID, with the range in
 * err, for numbers out of range. */
STG_API stg_status stg_limiter_init(stg_limiter *l, uint32_t rate,
                                    uint32_t burst, stg_error *err);

/* Takes a place if there is one now. If not, *due_at says when there will be,
 * should nobody else take it; due_at may be NULL. */
STG_API bool stg_limiter_take(stg_limiter *l, stg_ns now, stg_ns *due_at);

/* Takes the next place, now or in the future, and returns its instant; or
 * STG_NEVER, and takes nothing, if that is at until_at or later. */
STG_API stg_ns stg_limiter_reserve(stg_limiter *l, stg_ns now, stg_ns until_at);

/* Returns a place that was not used: from_at is the instant that it was for.
 * It is lost where others have places behind it: theirs stay as they are. */
STG_API void stg_limiter_give_back(stg_limiter *l, stg_ns from_at, stg_ns now);

STG_DECLS_END

#endif
