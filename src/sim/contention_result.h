/* contention_result.h - what the repetitions of a contention came to, in
 * estimates, and as rows of a table: the same for the command and for a page in
 * a browser. Pure. */
#ifndef STAGGER_SIM_CONTENTION_RESULT_H
#define STAGGER_SIM_CONTENTION_RESULT_H

#include "chart/chart_set.h"
#include "chart/table.h"
#include "sim/contention.h"
#include "sim/estimate.h"

typedef struct stg_contention_result {
    stg_estimate calls, wasted, successes, given_up, completion_ms, peak;
    uint32_t reps; /* that have ended */
    uint32_t cut;  /* of these, that a limit ended */
} stg_contention_result;

/* Of `count` runs, those that have ended: the others have STG_END_NONE or
 * STG_END_STOPPED. memory is for the moment. Returns false if there is none. */
bool stg_contention_judge(const stg_contention_run *runs, uint32_t count,
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

#endif
