/* wasm_internal.h - what a page's handle holds. Private to sim/wasm*.c. */
#ifndef STAGGER_SIM_WASM_INTERNAL_H
#define STAGGER_SIM_WASM_INTERNAL_H

#include <stagger/text.h>

#include "chart/text_buffer.h"
#include "core/writer.h"
#include "plan/plan.h"
#include "sim/contention.h"
#include "sim/overload_report.h"
#include "sim/wasm.h"

enum {
    STG_WASM_ANSWER = 4096,
    STG_WASM_NAME_MAX = 64, /* the terminator included; more is cut */
};

/* A policy of the run. */
typedef struct stg_wasm_side {
    char name[STG_WASM_NAME_MAX];
    stg_policy policy;
    stg_contention *contention;
    stg_contention_totals totals;
    stg_contention_run *runs; /* results of the repetitions so far */
    uint32_t count;
} stg_wasm_side;

/* An overload of the run. */
typedef struct stg_wasm_storm {
    char name[STG_WASM_NAME_MAX];
    stg_overload_options options;
    stg_overload_summary summary;
    double *series; /* of the first run: bins times STG_WASM_BIN_FIELDS */
    uint32_t bins;
} stg_wasm_storm;

struct stg_wasm {
    stg_memory memory;
    stg_contention_options options; /* but for the policy */
    uint32_t repetitions;
    stg_wasm_side sides[STG_WASM_POLICIES_MAX];
    uint32_t count;
    double sums[STG_WASM_SUMS];
    stg_wasm_storm storms[STG_WASM_STORMS_MAX];
    uint32_t storm_count, storm_runs;
    double storm_sums[STG_WASM_STORM_SUMS];
    stg_plan plan;          /* the last one: large */
    stg_text_buffer buffer; /* of the last chart, or plan */
    char answer[STG_WASM_ANSWER];
};

/* Forgets the last run: its policies, or its storms. */
void stg_wasm_forget(stg_wasm *w);
void stg_wasm_storms_forget(stg_wasm *w);

/* The storms for a report; 0 while one of them has no run. */
uint32_t stg_wasm_storm_cases(const stg_wasm *w,
                              stg_overload_case cases[STG_WASM_STORMS_MAX]);

/* A writer on the answer, which is empty then. */
stg_writer stg_wasm_answer(stg_wasm *w);

/* "error 13 policy:1:13: ..." as the answer. */
const char *stg_wasm_refuse(stg_wasm *w, const stg_error *err);

/* A line of an answer. */
void stg_wasm_put_text(stg_writer *out, const char *key, const char *value);
void stg_wasm_put_number(stg_writer *out, const char *key, uint64_t value);

#endif
