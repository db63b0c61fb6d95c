/* bulkhead.h - no more attempts at once than a number: a remote that hangs
 * takes so many threads, connections and buffers, and no more.
 *
 * A bulkhead counts attempts, not operations: one that waits for its next
 * attempt takes nothing of the remote, and holds no place. An attempt that finds
 * no place is refused, or waits for one for a bounded time; those that wait have
 * no order.
 *
 * A stg_bulkhead belongs to the caller; any number of threads use it at once,
 * without locks: what is taken is one 64-bit word.
 *
 * Source: Nygard, "Release It!", 2007; the two numbers are resilience4j's
 * maxConcurrentCalls and maxWaitDuration. */
#ifndef STAGGER_BULKHEAD_H
#define STAGGER_BULKHEAD_H

#include <stdbool.h>

#include <stagger/ns.h>
#include <stagger/status.h>

STG_DECLS_BEGIN

typedef struct stg_bulkhead_options {
    uint32_t max; /* attempts at once, 1 to 1000000; 0: no limit */
    stg_ns wait;  /* the longest wait for a place, 0 to 365 d; 0 without max */
} stg_bulkhead_options;

typedef struct stg_bulkhead {
    stg_bulkhead_options options;
    stg_word taken;
} stg_bulkhead;

/* Checks the ranges above. Returns STG_INVALID with a text in err that names
 * what was found and what was expected. */
STG_API stg_status stg_bulkhead_check(const stg_bulkhead_options *o,
                                      stg_error *err);

/* Makes an empty one, before any thread uses it. Returns STG_INVALID for
 * options that do not pass the check. */
STG_API stg_status stg_bulkhead_init(stg_bulkhead *b,
                                     const stg_bulkhead_options *o);

/* Takes a place if there is one: always, where there is no limit. */
STG_API bool stg_bulkhead_enter(stg_bulkhead *b);

/* Returns a place that stg_bulkhead_enter() gave. */
STG_API void stg_bulkhead_leave(stg_bulkhead *b);

/* How many places are taken now; 0 where there is no limit. */
STG_API uint32_t stg_bulkhead_taken(const stg_bulkhead *b);

STG_DECLS_END

#endif
