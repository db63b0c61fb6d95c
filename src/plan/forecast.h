/* forecast.h - what a policy's waits come to, before anybody waits.
 *
 * Pure integer arithmetic on a checked policy; saturating, so that STG_NEVER
 * reads as "never ends". A mean is rounded down to the ns. Waits are the
 * policy's own: what a server asks for (Retry-After) comes on top. Rows are of
 * the backoff's base; the bounds below them, of any base that the policy has. */
#ifndef STAGGER_PLAN_FORECAST_H
#define STAGGER_PLAN_FORECAST_H

#include <stagger/policy.h>

typedef struct stg_wait_range {
    stg_ns least;
    stg_ns mean;
    stg_ns most;
} stg_wait_range;

typedef struct stg_forecast_wait {
    uint64_t retry; /* from 1 */
    stg_ns window;  /* w(n); of jitters that have none, the most */
    stg_wait_range wait;
    stg_wait_range total;  /* of this wait and those before it */
    bool is_mean_estimate; /* decorrelated past its cap; Polly's */
    bool is_past_deadline; /* never made: the least total is too much */
} stg_forecast_wait;

#define STG_FORECAST_ROWS 32

/* Numbers without a bound are STG_UNLIMITED, times STG_NEVER. */
typedef struct stg_forecast {
    uint32_t wait_count; /* each retry up to 32; of unlimited ones, until the
                            windows stop growing, and two more */
    stg_forecast_wait waits[STG_FORECAST_ROWS];
    stg_forecast_wait last; /* the last retry of all; zeros if there is none */
    bool is_truncated;      /* there are more than wait_count */
    uint64_t retries_max;   /* by attempts alone */
    uint64_t retries_in_time; /* of them, with the least waits, in the deadline;
                                 by then attempts have taken no time */
    uint64_t retries_usual;   /* the same with mean waits */
    stg_ns wait_total_most;   /* of retries_max */
    stg_ns time_total_most;   /* waits and attempts, within the deadline */
    uint64_t attempts_max; /* that one operation can come to: by attempts, the
                              deadline, and the limits of faults */
    uint64_t requests_max; /* the same with its hedges */
    uint64_t sustained;    /* attempts an operation while everything fails, in
                              thousandths; without a ratio as requests_max */
    uint64_t per_second; /* retries a second that the budget allows for good, in
                            thousandths; STG_UNLIMITED: none, or it depends */
} stg_forecast;

/* rules_max: stg_answers_retries_max(). */
void stg_forecast_make(stg_forecast *f, const stg_policy *p,
                       uint64_t rules_max);

/* Retry n from 1: a row that is listed, or one behind them. */
stg_forecast_wait stg_forecast_row(const stg_forecast *f, const stg_policy *p,
                                   uint64_t n);

/* How long an attempt and its hedges may take; STG_NEVER: no bound. A hedge
 * starts only while another one is under way. */
stg_ns stg_forecast_round(const stg_policy *p);

#endif
