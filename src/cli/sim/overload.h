/* overload.h - what `stagger sim overload` was asked for, with the values that it
 * is to be repeated with, and how trials are shown. Private to cli/sim. */
#ifndef STAGGER_CLI_SIM_OVERLOAD_H
#define STAGGER_CLI_SIM_OVERLOAD_H

#include "cli/sim/output.h"
#include "cli/sim/sim.h"
#include "cli/sim/trials.h"
#include "sim/overload_words.h"

/* -- sweeps ----------------------------------------------------------------- */

enum {
    STG_SWEEPS_MAX = 4,
    STG_SWEEP_VALUES_MAX = 32,
    STG_SWEEP_TEXT_MAX = 512
};

typedef struct stg_sweep {
    char text[STG_SWEEP_TEXT_MAX]; /* what was given, cut into pieces */
    const char *key;
    const char *values[STG_SWEEP_VALUES_MAX];
    size_t count;
} stg_sweep;

/* Reads KEY=VALUE,VALUE,... (or with ; between values that have a comma).
 * Returns 0, or complains in the name of who and returns an exit code. */
int stg_sweep_read(stg_sweep *sweep, const char *who, const char *text);

/* The policy's text with one setting changed. Returns STG_OK, or STG_INVALID
 * with words in err. */
stg_status stg_sweep_set_policy(stg_policy *policy, const char *key,
                                const char *value, stg_error *err);

/* Makes the trials of all combinations: the policies, on options, with what the
 * sweeps change. They are the caller's, from calloc(). Returns 0, or complains
 * in the name of who and returns an exit code. */
int stg_sweep_combine(const stg_sweep *sweeps, size_t sweep_count,
                      const stg_sim_policies *policies,
                      const stg_overload_options *options, const char *who,
                      stg_trial **trials, size_t *count);

/* -- the command ------------------------------------------------------------ */

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
