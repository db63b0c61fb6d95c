/* overload_interval.h - what runs of an overload came to in stretches of bins,
 * as pictures show them: few enough for a line.
 *
 * An interval of one run is one value, for what is in neighbouring bins of a
 * run is not independent: a queue that is long stays long. Pure. */
#ifndef STAGGER_SIM_OVERLOAD_INTERVAL_H
#define STAGGER_SIM_OVERLOAD_INTERVAL_H

#include "sim/estimate.h"
#include "sim/overload.h"

/* What the series has of each bin. Rates are a second. */
typedef enum stg_overload_series {
    STG_SERIES_GOODPUT,
    STG_SERIES_OFFERED,
    STG_SERIES_RETRIED,
    STG_SERIES_BEGUN,
    STG_SERIES_AMPLIFICATION, /* 0 where nothing began */
    STG_SERIES_QUEUE,
    STG_SERIES_COUNT
} stg_overload_series;

/* Of what succeeded in an interval; none where nothing did. */
typedef enum stg_overload_wait {
    STG_WAIT_MEDIAN, /* latency, ms */
    STG_WAIT_P99,
    STG_WAIT_COUNT
} stg_overload_wait;

/* Values of runs, added up. */
typedef struct stg_overload_sum {
    double sum, squares;
    uint32_t count;
} stg_overload_sum;

enum { STG_STRETCHES_MAX = 180 };

typedef struct stg_overload_interval {
    stg_overload_sum series[STG_SERIES_COUNT];
    stg_overload_sum waits[STG_WAIT_COUNT];
} stg_overload_interval;

/* How many of `bins` bins make an interval, so that there are no more of them
 * than that. */
uint32_t stg_overload_interval_bins(uint32_t bins);

/* All series of `count` bins of one run, 1 at least, each `width` wide. */
void stg_overload_bins_mean(const stg_overload_bin *bins, uint32_t count,
                            stg_ns width, double means[STG_SERIES_COUNT]);

/* One run more: `count` bins of it. */
void stg_overload_interval_add(stg_overload_interval *s,
                               const stg_overload_bin *bins, uint32_t count,
                               stg_ns width);

/* Mean and standard error over the runs that have it. */
stg_estimate stg_overload_sum_estimate(const stg_overload_sum *s);

#endif
