/* contention_report.h - what contentions came to, for readers: figures, tables,
 * charts. Pure. */
#ifndef STAGGER_SIM_CONTENTION_REPORT_H
#define STAGGER_SIM_CONTENTION_REPORT_H

#include "chart/chart.h"
#include "chart/table.h"
#include "sim/contention.h"
#include "sim/statistics.h"

/* -- figures and tables ---------------------------------------------------- */

/* The results of a contention's repetitions, as estimates and as rows of a
 * table: the same for the command and for a page in a browser. Pure. */

typedef struct stg_contention_result {
    stg_estimate calls, wasted, successes, given_up, completion_ms, peak;
    uint32_t reps; /* repetitions that have ended */
    uint32_t cut;  /* ended repetitions that a limit cut short */
} stg_contention_result;

/* Of `count` runs, those that have ended: the others have STG_END_NONE or
 * STG_END_STOPPED. memory is for the moment. Returns false if there is none. */
bool stg_contention_estimate(const stg_contention_run *runs, uint32_t count,
                             const stg_memory *memory,
                             stg_contention_result *result);

/* A policy at a number of clients. */
typedef struct stg_contention_row {
    const char *policy; /* its name */
    const char *text;   /* canonical */
    uint32_t clients;
    uint64_t seed;
    stg_contention_result result;
    const stg_contention_totals *totals;
} stg_contention_row;

/* Makes a table of rows. What it points to is the set's and the rows' own.
 * Returns false if there was no memory. */
bool stg_contention_table(stg_chart_set *a, const stg_contention_row *rows,
                          size_t count, stg_table *table);

/* -- series ---------------------------------------------------------------- */

/* Calls at the resource and successes that clients heard of, mean of the
 * repetitions, by time: "series" of the JSON, and rows for CSV. The same rows. */
void stg_contention_put_series(const stg_contention_row *rows, size_t count,
                               stg_text_buffer *p);
bool stg_contention_series_table(stg_chart_set *a,
                                 const stg_contention_row *rows, size_t count,
                                 stg_table *table);

/* -- charts ---------------------------------------------------------------- */

/* What contention came to, in charts.
 *
 * Each function adds a chart to a chart set, and its title says what was found;
 * false if there was no memory. One that has nothing to show adds nothing.
 * Pure, so that a page in a browser draws the same. */

/* A policy at a number of clients. */
typedef struct stg_contention_case {
    const char *policy; /* its name */
    unsigned colour;    /* the policy's */
    uint32_t clients;
    uint32_t reps; /* 1 at least; of one nothing is said */
    stg_estimate calls, completion_ms;
    stg_estimate successes;              /* of the clients */
    const stg_contention_totals *totals; /* of all repetitions */
} stg_contention_case;

/* One repetition, call by call: x is ms, y the client from 1 on. */
typedef struct stg_contention_trace {
    const char *policy;
    unsigned colour;
    uint32_t clients;
    const stg_chart_point *calls;
    size_t count;
} stg_contention_trace;

/* Cases by clients, and for the same clients by policy, all with the same
 * policies in the same order. note: what was simulated, in a sentence; both
 * lent as long as the set. */
typedef struct stg_contention_found {
    const stg_contention_case *cases;
    size_t count;
    size_t policies; /* 1 at least; count is a multiple of it */
    double capacity; /* calls that the resource can say yes to in a second; 0:
                        not known, or not the same for all */
    const char *note;
} stg_contention_found;

/* Over the numbers of clients, where there are several. */
bool stg_contention_chart_calls(stg_chart_set *a,
                                const stg_contention_found *f);
bool stg_contention_chart_completion(stg_chart_set *a,
                                     const stg_contention_found *f);

/* Of the largest number of clients. */
bool stg_contention_chart_work(stg_chart_set *a, const stg_contention_found *f);
bool stg_contention_chart_time(stg_chart_set *a, const stg_contention_found *f);
bool stg_contention_chart_done(stg_chart_set *a, const stg_contention_found *f);
bool stg_contention_chart_waits(stg_chart_set *a,
                                const stg_contention_found *f);
bool stg_contention_chart_traces(stg_chart_set *a,
                                 const stg_contention_trace *traces,
                                 size_t count, const char *note);

/* Of those who succeeded, when half had; with its standard error, 0 of too few
 * to tell. Milliseconds. */
stg_estimate stg_contention_half(const stg_contention_case *c);

/* What `say` says, as a title; of one repetition, just that it is
 * one. */
const char *stg_contention_title(stg_chart_set *a,
                                 const stg_contention_found *f,
                                 void (*say)(const stg_contention_found *f,
                                             stg_text_buffer *p));

/* The policy's name in quotes, and which share of its clients gives up, if any;
 * for titles. */
void stg_contention_put_policy(stg_text_buffer *buffer,
                               const stg_contention_case *c);

#endif
