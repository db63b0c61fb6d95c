/* overload.h - what `stagger sim overload` was asked for, and how trials are
 * shown. Private to cli/sim_overload*.c and cli/sim_advise*.c. */
#ifndef STAGGER_CLI_SIM_OVERLOAD_H
#define STAGGER_CLI_SIM_OVERLOAD_H

#include "cli/sim/output.h"
#include "cli/sim/sweep.h"
#include "sim/overload_words.h"

typedef struct stg_overload_ask {
    stg_sim_policies policies;
    stg_sweep sweeps[STG_SWEEPS_MAX];
    size_t sweep_count;
    stg_overload_options options; /* but the policy */
    uint32_t reps;
    stg_sim_run run;
    stg_sim_output output;
    int argc; /* as it was asked */
    char **argv;
} stg_overload_ask;

/* Shows what came of it in all the ways that are asked for. Returns an exit
 * code. */
int stg_overload_show(const stg_overload_ask *ask, const char *who,
                      const stg_trials *t);

/* Those that have a run, in order; cases has room for all. Returns how many. */
size_t stg_trials_cases(const stg_trials *t, stg_overload_case *cases);

#endif
