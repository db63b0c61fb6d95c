/* advise.h - what `stagger sim advise` was asked, what it found, and how
 * that is shown. Private to cli/sim/advise*.c. */
#ifndef STAGGER_CLI_SIM_ADVISE_H
#define STAGGER_CLI_SIM_ADVISE_H

#include "cli/sim/output.h"
#include "cli/sim/overload.h"
#include "cli/sim/sim.h"
#include "sim/advise.h"
#include "sim/drain.h"

enum {
    STG_ADVISED_MAX = 10,
    STG_CANDIDATES_MAX = 512,
};

/* A candidate in a round. */
typedef struct stg_advised {
    stg_candidate candidate;
    char name[STG_CANDIDATE_NAME_MAX];
    stg_advice_verdict verdict;
    bool is_plain; /* in the last round for comparison, whatever it came to */
    const stg_trial *trials; /* one for each scenario of the round, in order;
                                NULL: they are no longer there */
} stg_advised;

typedef struct stg_advice {
    stg_question question;
    uint32_t reps; /* runs of each finalist in each scenario */
    stg_sim_run run;
    stg_sim_output output;
    int argc; /* as it was asked */
    char **argv;
    /* Those of the last round, STG_ADVISED_MAX at most, the best first; where
     * a round was interrupted, those of it that ran at all. */
    stg_advised finalists[STG_CANDIDATES_MAX];
    size_t count;
    size_t tried;     /* candidates, before the semifinal */
    size_t scenarios; /* that the round has, from the first on */
    bool is_partial;
    stg_trials trials;            /* of the finalists */
    stg_cliff cliffs[STG_CLIFFS]; /* of the best */
    stg_sim_progress progress;
} stg_advice;

/* Holds the rounds. stg_advice_end() is due in any case. */
stg_status stg_advice_find(stg_advice *a, stg_error *err);
void stg_advice_end(stg_advice *a);

/* How much less of the operations one lost than another one, in the last round. */
stg_estimate stg_advised_gain(const stg_advised *with,
                              const stg_advised *without);

/* A candidate in a scenario, by the model. */
void stg_advice_make_trial(const stg_advice *a, stg_scenario s,
                           const stg_advised *advised, stg_trial *trial);

/* Checks and runs trials that are made. They are to be closed in any case. */
stg_status stg_advice_run(stg_advice *a, stg_trials *t, stg_error *err);

/* Where the recovery of the best ends, by runs of its own. */
stg_status stg_advice_find_cliffs(stg_advice *a, stg_error *err);

/* Shows it in all the ways that are asked for. Returns an exit code. */
int stg_advice_show(const stg_advice *a, const char *who);

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
    uint32_t reps; /* runs of each finalist in each scenario */
    stg_sim_run run;
    stg_sim_output output;
    int argc; /* as it was asked */
    char **argv;
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
