/* advise.h - what `stagger sim advise` was asked, what it found, and how
 * that is shown. Private to cli/sim_advise*.c. */
#ifndef STAGGER_CLI_SIM_ADVISE_H
#define STAGGER_CLI_SIM_ADVISE_H

#include "cli/sim/output.h"
#include "cli/sim/overload.h"
#include "sim/advise.h"

enum {
    STG_FINALISTS = 8,
    STG_ADVISED_MAX = STG_FINALISTS + 2,
    STG_CANDIDATES_MAX = 128,
};

/* A candidate in a round. */
typedef struct stg_advised {
    stg_candidate candidate;
    stg_advice_verdict verdict;
    bool is_plain; /* in the last round for comparison, whatever it came to */
    const stg_trial *trials; /* one for each scenario of the round, in order */
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
    size_t scenarios; /* that the round has, from the first on */
    bool is_partial;
    stg_trials trials; /* of the finalists */
} stg_advice;

/* Shows it in all the ways that are asked for. Returns an exit code. */
int stg_advice_show(const stg_advice *a, const char *who);

#endif
