/* advise.h - what `stagger sim advise` was asked, and how what it found is shown.
 * Private to cli/sim/advise*.c and drain*.c. */
#ifndef STAGGER_CLI_SIM_ADVISE_H
#define STAGGER_CLI_SIM_ADVISE_H

#include "cli/sim/output.h"
#include "cli/sim/overload.h"
#include "cli/sim/sim.h"
#include "sim/advise_rounds.h"
#include "sim/drain.h"

/* The part that both questions have. */
typedef struct stg_advise_ask {
    uint32_t reps; /* runs of each finalist in each scenario */
    stg_sim_run run;
    stg_sim_output output;
    int argc; /* as it was asked */
    char **argv;
} stg_advise_ask;

/* Shows the answer in all the ways that are asked for. Returns an exit code. */
int stg_advice_show(const stg_advice *a, const stg_advise_ask *ask,
                    const char *who);

/* -- of clients that begin together ----------------------------------------- */

enum { STG_DRAINED_MAX = 10, STG_DRAIN_FIELD_MAX = 384 };

/* A candidate in a round. */
typedef struct stg_drained {
    stg_drain_candidate candidate;
    char name[STG_DRAIN_NAME_MAX];
    stg_drain_verdict verdict;
    bool is_plain;
    stg_contention_run *runs; /* of the last round, by scenario; else NULL */
} stg_drained;

typedef struct stg_drain {
    stg_drain_question question;
    const stg_advise_ask *ask;
    stg_drained field[STG_DRAIN_FIELD_MAX]; /* after the last round its
                                               finalists, the advised one first */
    size_t count;
    size_t tried;
    bool is_stopped;
    const atomic_bool *stop;
    stg_sim_progress progress;
} stg_drain;

/* Asks the question and shows the answer. Returns an exit code. */
int stg_drain_answer(stg_drain *d, const char *who);

/* Shows it in all the ways that are asked for. Returns an exit code. */
int stg_drain_show(const stg_drain *d, const char *who);

#endif
