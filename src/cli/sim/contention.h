/* contention.h - what `stagger sim contention` was asked for, how it is simulated
 * (a study: each policy with each number of clients), and how it is shown.
 * Private to cli/sim. */
#ifndef STAGGER_CLI_SIM_CONTENTION_H
#define STAGGER_CLI_SIM_CONTENTION_H

#include "cli/sim/output.h"
#include "cli/sim/sim.h"
#include "cli/sim/sweep.h"
#include "sim/contention_report.h"

/* -- a study ---------------------------------------------------------------- */

enum { STG_STUDY_CLIENTS_MAX = 1000, STG_STUDY_REPS_MAX = 1000000 };

/* What a sweep may change from policy to policy, besides the policy. */
typedef struct stg_study_model {
    stg_resource resource;
    stg_distribution network;
    stg_ns start_spread;
} stg_study_model;

typedef struct stg_study_options {
    stg_sim_policies policies;
    stg_study_model models[STG_SIM_POLICIES_MAX]; /* a model for each policy */
    size_t client_count; /* 1 to STG_STUDY_CLIENTS_MAX */
    uint32_t clients[STG_STUDY_CLIENTS_MAX];
    uint32_t reps;               /* 1 to STG_STUDY_REPS_MAX */
    unsigned threads;            /* at most */
    stg_contention_options each; /* of a cell, but policy, model, clients */
    stg_ns slice;                /* of the calls over time */
    size_t slices;
    uint64_t memory_max; /* bytes; a study that takes more is refused */
} stg_study_options;

/* A policy at a number of clients. */
typedef struct stg_study_cell {
    const stg_sim_policy *policy;
    uint32_t clients;
    uint32_t reps;            /* that have ended */
    stg_contention_run *runs; /* of each repetition; one that has not ended has
                                 STG_END_NONE or STG_END_STOPPED */
    stg_contention_totals totals; /* sums over the ended repetitions */
} stg_study_cell;

typedef struct stg_study {
    stg_study_options options;
    stg_memory memory;
    size_t count;
    stg_study_cell *cells; /* by clients, then policy */
    bool is_partial;       /* the study was interrupted */
} stg_study;

/* Runs it all. options are copied. Returns STG_OK, also when it was
 * interrupted; STG_INVALID with words in err for what cannot fit memory; STG_IO
 * when there was no memory after all. To be closed in any case. */
stg_status stg_study_run(stg_study *s, const stg_study_options *options,
                         stg_error *err);
void stg_study_close(stg_study *s);

/* What a cell is made of. The policy is borrowed from the study's options. */
stg_contention_options stg_study_options_of(const stg_study *s,
                                            const stg_study_cell *cell);

/* What the repetitions of a cell came to. Returns false if there is no
 * memory. */
bool stg_study_evaluate(const stg_study *s, const stg_study_cell *cell,
                        stg_contention_result *result);

/* -- sweeps ----------------------------------------------------------------- */

/* Each policy of the study becomes one for each combination of the values; its
 * model is that of `each`, but for what they change. Returns 0, or complains in the
 * name of who and returns an exit code. */
int stg_contention_sweep(stg_study_options *s, const stg_sweeps *sweeps,
                         const char *who);

/* -- the command ------------------------------------------------------------ */

typedef struct stg_contention_settings {
    stg_study_options study;
    stg_sweeps sweeps;
    stg_sim_output output;
    stg_sim_run run;
    int argc; /* the command, for its page */
    char *const *argv;
} stg_contention_settings;

/* Shows what came of it in all the ways that are asked for. Returns an exit
 * code. */
int stg_contention_show(const stg_contention_settings *s,
                        const stg_study *study);

#endif
