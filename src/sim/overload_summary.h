/* overload_summary.h - what runs of an overload came to, in figures. Pure. */
#ifndef STAGGER_SIM_OVERLOAD_SUMMARY_H
#define STAGGER_SIM_OVERLOAD_SUMMARY_H

#include "sim/overload.h"
#include "sim/statistics.h"

/* -- intervals ------------------------------------------------------------- */

/* What runs of an overload came to in intervals of bins,
 * as charts show them: few enough for a line.
 *
 * An interval of one run is one value, for what is in neighbouring bins of a
 * run is not independent: a queue that is long stays long. Pure. */

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

enum { STG_INTERVALS_MAX = 180 };

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

/* -- a summary ------------------------------------------------------------- */

/* What several runs of one overload came to: means, their
 * standard errors, and the mean series.
 *
 * Runs are added in the order of their numbers, so that the sums are the same
 * however they were spread over cores. Pure; memory comes from the caller. */

/* The numbers of a run. "A second" is of the time that is counted. */
typedef enum stg_figure {
    STG_FIGURE_GOODPUT, /* operations that succeeded, a second */
    STG_FIGURE_BEGUN,   /* operations, a second */
    STG_FIGURE_OFFERED, /* requests, a second */
    STG_FIGURE_RETRIED, /* of those, retries */
    /* Of those, hedges, a second; such as won their operation; and hedges that
     * were due and not admitted. -1: the policy makes none. */
    STG_FIGURE_HEDGED,
    STG_FIGURE_HEDGES_WON,
    STG_FIGURE_HEDGES_REFUSED,
    STG_FIGURE_AMPLIFICATION, /* requests an operation */
    STG_FIGURE_SUCCESS,       /* share of operations, 0 to 1 */
    STG_FIGURE_SAVED,         /* the same of those that began in the trigger */
    STG_FIGURE_PEAK,          /* most requests a second in any bin */
    STG_FIGURE_QUEUE,         /* mean length */
    STG_FIGURE_QUEUE_MOST,
    STG_FIGURE_BUSY,       /* mean share of workers at work, 0 to 1 */
    STG_FIGURE_REFUSED,    /* requests for want of a place, a second */
    STG_FIGURE_TIMEOUTS,   /* attempts, a second */
    STG_FIGURE_FOR_NOBODY, /* share of what was served, 0 to 1 */
    STG_FIGURE_HELD,       /* attempts that clients kept back, a second */
    STG_FIGURE_LATENCY,    /* mean of operations that succeeded, ms */
    STG_FIGURE_P50,        /* ms */
    STG_FIGURE_P95,
    STG_FIGURE_P99,
    STG_FIGURE_BEFORE,   /* goodput before the trigger, a second */
    STG_FIGURE_RECOVERY, /* ms from the trigger's end; of runs that do */
    /* Before (from the warm-up on), in and after the trigger; -1 without one,
     * and of a span without a whole bin. */
    STG_FIGURE_BEFORE_GOODPUT,
    STG_FIGURE_BEFORE_P50, /* ms; -1 where nothing succeeded, too */
    STG_FIGURE_BEFORE_P99,
    STG_FIGURE_IN_GOODPUT,
    STG_FIGURE_IN_P50,
    STG_FIGURE_IN_P99,
    STG_FIGURE_AFTER_GOODPUT,
    STG_FIGURE_AFTER_P50,
    STG_FIGURE_AFTER_P99,
    /* Figures of each part of a fleet: OWN is the clients with the policy,
     * OTHERS is the rest. -1: there are no others. */
    STG_FIGURE_OWN_SUCCESS, /* share of operations, 0 to 1 */
    STG_FIGURE_OWN_AMPLIFICATION,
    STG_FIGURE_OTHERS_SUCCESS,
    STG_FIGURE_OTHERS_AMPLIFICATION,
    /* Requests to each service of a row, an operation; -1: there is no row, or
     * it is shorter. STG_LAYERS_MAX of them. */
    STG_FIGURE_TO_1,
    STG_FIGURE_TO_2,
    STG_FIGURE_TO_3,
    STG_FIGURE_TO_4,
    STG_FIGURE_COUNT
} stg_figure;

typedef struct stg_overload_point {
    stg_overload_sum series[STG_SERIES_COUNT];
    stg_sim_histogram latency;
} stg_overload_point;

typedef struct stg_overload_summary {
    const stg_overload_options *options; /* kept */
    const stg_memory *memory;            /* kept */
    uint32_t runs, runs_max;
    uint32_t recovered, healthy; /* of the runs; one that was cut has not
                                    recovered, nor failed to */
    bool is_cut;                 /* a run was: it is in, up to then */
    double *values;              /* a figure: runs_max of them; -1: none */
    stg_overload_point *points;
    uint32_t bin_count; /* that all runs have */
    stg_overload_interval intervals[STG_INTERVALS_MAX];
    uint32_t interval_bins; /* bins of each interval; those at the end that make
                              no whole one are in none */
    stg_sim_histogram latency;
    uint64_t whys[STG_OVERLOAD_WHYS];
    uint64_t events;
} stg_overload_summary;

/* Room for so many runs, 1 to 10000. Returns STG_IO if there is no memory, and
 * there is nothing to close. */
stg_status stg_overload_summary_init(stg_overload_summary *s,
                                     const stg_overload_options *o,
                                     uint32_t runs_max,
                                     const stg_memory *memory);
void stg_overload_summary_close(stg_overload_summary *s);

/* What it takes, in bytes. */
uint64_t stg_overload_summary_memory(const stg_overload_options *o,
                                     uint32_t runs_max);

void stg_overload_summary_add(stg_overload_summary *s,
                              const stg_overload_result *r);

/* Of the runs that have it; `has`, if not NULL, is how many. */
stg_estimate stg_overload_summary_figure(const stg_overload_summary *s,
                                         stg_figure figure, uint32_t *has);

/* Mean and standard error over the runs of one bin. */
stg_estimate stg_overload_summary_point(const stg_overload_summary *s,
                                        uint32_t bin,
                                        stg_overload_series series);

/* How many intervals all runs have, and when one begins, in ms. */
uint32_t stg_overload_summary_stretches(const stg_overload_summary *s);
double stg_overload_summary_begin(const stg_overload_summary *s,
                                  uint32_t interval);

#endif
