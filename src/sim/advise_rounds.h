/* advise_rounds.h - finds the policy to advise: rounds of candidates (advise.h),
 * each of which is tried by simulation (trials.h). */
#ifndef STAGGER_SIM_ADVISE_ROUNDS_H
#define STAGGER_SIM_ADVISE_ROUNDS_H

#include "sim/advise.h"
#include "sim/trials.h"

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
    /* Says how trials are run: all but what they are, and how many runs. */
    void (*prepare)(void *ctx, stg_trials *t);
    void *ctx;
    /* Those of the last round, STG_ADVISED_MAX at most, the best first; where
     * a round was interrupted, those of it that ran at all. */
    stg_advised finalists[STG_CANDIDATES_MAX];
    size_t count;
    size_t tried;     /* candidates, before the semifinal */
    size_t scenarios; /* that the round has, from the first on */
    bool is_partial;
    stg_trials trials;            /* of the finalists */
    stg_cliff cliffs[STG_CLIFFS]; /* of the best */
} stg_advice;

/* What all rounds will take, as stg_trial_work() says it. An upper bound: searches
 * may be shorter. */
double stg_advice_work(const stg_advice *a);

/* Holds the rounds. stg_advice_end() is due in any case. */
stg_status stg_advice_find(stg_advice *a, stg_error *err);
void stg_advice_end(stg_advice *a);

/* What can be said of the answer, which is whole. cases is kept. */
stg_advice_report stg_advice_report_on(const stg_advice *a,
                                       stg_advice_case cases[STG_ADVISED_MAX]);

/* -- for advise_cliff.c ------------------------------------------------------ */

/* A candidate in a scenario, by the model. */
void stg_advice_make_trial(const stg_advice *a, stg_scenario s,
                           const stg_advised *advised, stg_trial *trial);

/* Checks and runs trials that are made. They are to be closed in any case. */
stg_status stg_advice_run(stg_advice *a, stg_trials *t, stg_error *err);

/* Where the recovery of the best ends, by runs of its own. */
stg_status stg_advice_find_cliffs(stg_advice *a, stg_error *err);

#endif
