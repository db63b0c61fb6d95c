/* contention_summary.h - what the repetitions of a policy with so many clients
 * came to: means with standard errors, and the clients' own times.
 *
 * Pure; the same runs and book give the same bytes. */
#ifndef STAGGER_SIM_CONTENTION_SUMMARY_H
#define STAGGER_SIM_CONTENTION_SUMMARY_H

#include "sim/contention.h"
#include "sim/estimate.h"

#define STG_CONTENTION_SLICE (10 * STG_MS) /* of calls over time */

typedef struct stg_contention_summary {
    uint64_t reps; /* that have ended */
    uint64_t cut;  /* of these: ended by a limit */
    stg_estimate calls, wasted, successes, given_up, completion_ms, peak;
    /* Over the clients of all repetitions: when one succeeded, and how many
     * calls one made. */
    double client_ms_p50, client_ms_p95, client_ms_max;
    uint64_t client_calls_p50, client_calls_p95, client_calls_max;
} stg_contention_summary;

/* Whether a run has ended, by itself or by a limit. */
static inline bool stg_contention_has_ended(const stg_contention_run *run)
{
    return run->end != STG_END_NONE && run->end != STG_END_STOPPED &&
           run->end != STG_END_MEMORY;
}

/* Of those of `count` runs that have ended, and of their book. */
stg_contention_summary stg_contention_sum(const stg_contention_run *runs,
                                          size_t count,
                                          const stg_contention_book *book);

#endif
