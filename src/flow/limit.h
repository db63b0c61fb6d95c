/* limit.h - how many attempts a lane has under way at once: as many as its
 * target turns out to bear.
 *
 * Starts at 1 and doubles each round (one more for each success) up to a
 * threshold, then grows by one a round. A fault or timeout halves it, once for
 * all attempts that were under way together.
 *
 * Source: Jacobson, "Congestion avoidance and control", SIGCOMM 1988. */
#ifndef STAGGER_FLOW_LIMIT_H
#define STAGGER_FLOW_LIMIT_H

#include <stdbool.h>

#include <stagger/ns.h>

typedef struct stg_limit {
    uint32_t value;     /* attempts at once, 1 to max */
    uint32_t max;       /* 1 to 10000 */
    uint32_t threshold; /* below it: slow start */
    uint32_t credit;    /* successes since it last grew by one */
    stg_ns lowered_at;  /* attempts begun before do not lower it again */
} stg_limit;

/* The slow start of a lane that is new, or whose target has come back. */
void stg_limit_start(stg_limit *l, uint32_t max, stg_ns now);

/* is_used: as many were under way as it allows; else it tells nothing. */
void stg_limit_succeed(stg_limit *l, bool is_used);

/* An attempt that began at attempt_at failed for the target's trouble. */
void stg_limit_fail(stg_limit *l, stg_ns attempt_at, stg_ns now);

#endif
