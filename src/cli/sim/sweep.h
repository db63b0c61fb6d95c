/* sweep.h - "budget=none,ratio:0.1": a setting with several values, of the
 * model or of the policy. Several sweeps are all combinations. */
#ifndef STAGGER_CLI_SIM_SWEEP_H
#define STAGGER_CLI_SIM_SWEEP_H

#include "cli/sim/policies.h"
#include "cli/sim/trials.h"

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

#endif
