/* overload.h - what `stagger sim overload` was asked for and shows. Private to
 * cli/sim. */
#ifndef STAGGER_CLI_SIM_OVERLOAD_H
#define STAGGER_CLI_SIM_OVERLOAD_H

#include <stdbool.h>
#include <stdint.h>

#include <stagger/status.h>

#include "cli/sim/output.h"
#include "cli/sim/sim.h"
#include "cli/sim/sweep.h"
#include "sim/overload.h"
#include "sim/overload_report.h"
#include "sim/trials.h"

/* -- sweeps ----------------------------------------------------------------- */

/* Changes a setting of the model, or one of the policy. Returns 0, or complains in
 * the name of who, of `option`, and returns an exit code. */
int stg_sweep_set(stg_overload_options *o, const char *key, const char *value,
                  const char *who, const char *option);

/* The same of a trial, which then goes on for as long after its trouble as before;
 * and what that leaves open. The same. */
int stg_trial_vary(stg_trial *trial, const char *key, const char *value,
                   const char *who, const char *option);
int stg_trial_settle(stg_trial *trial, const char *who, const char *option);

/* Makes the trials of all combinations: the policies, on options, with what the
 * sweeps change. They are the caller's, from calloc(). Returns 0, or complains
 * in the name of who and returns an exit code. */
int stg_sweeps_combine(const stg_sweeps *sweeps,
                       const stg_sim_policies *policies,
                       const stg_overload_options *options, const char *who,
                       stg_trial **trials, size_t *count);

/* -- edges ------------------------------------------------------------------ */

/* Where recovery ends: a setting, and the values between which it is looked
 * for. */
typedef struct stg_edge {
    char key[64]; /* "": no edge is asked for */
    stg_range range;
} stg_edge;

/* A setting and its values on each of two axes. */
typedef struct stg_map {
    stg_edge x, y;
} stg_map;

/* Reads KEY=FROM..TO, of option. Returns 0, or complains in the name of who and returns an
 * exit code. */
int stg_edge_read(stg_edge *edge, const char *who, const char *option,
                  const char *text);

/* Reads KEY=FROM..TO/STEP,KEY=FROM..TO/STEP; a step that is left out is a tenth
 * about. The same. */
int stg_map_read(stg_map *map, const char *who, const char *text);

/* -- the command ------------------------------------------------------------ */

/* As the command's options say, and until a signal: seed, threads, memory. The
 * progress is told of each run; NULL: nobody is. */
void stg_trials_prepare(stg_trials *t, const stg_sim_run *run,
                        stg_sim_progress *progress);

typedef struct stg_overload_ask {
    stg_sim_policies policies;
    stg_sweeps sweeps;
    stg_edge edge;
    stg_map map;
    stg_overload_options options;              /* but the policy */
    stg_load_point rates[STG_LOAD_POINTS_MAX]; /* of a file */
    const char *trace_path;                    /* NULL: none */
    stg_sim_trace trace;
    bool has_load, has_service, has_duration; /* which options were given */
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

/* Finds the edge of each trial, by runs of its own, and shows it. Returns an exit
 * code. */
int stg_edge_find(const stg_overload_ask *ask, const char *who,
                  const stg_trial *trials, size_t count);

/* Runs each trial at each place of the map, and shows it. The same. */
int stg_map_draw(const stg_overload_ask *ask, const char *who,
                 const stg_trial *trials, size_t count);

/* Those that have a run, in order; cases has room for all. Returns how many. */
size_t stg_trials_cases(const stg_trials *t, stg_overload_case *cases);

/* -- --trace FILE ----------------------------------------------------------- */

/* Reads an access log, the hub's JSON log, or CSV. Returns STG_OK; STG_INVALID with
 * "FILE:LINE: ..." in err; STG_IO if the file cannot be read, or there is no
 * memory. To be freed in any case. */
stg_status stg_trace_read(stg_sim_trace *t, const char *path, stg_error *err);
void stg_trace_free(stg_sim_trace *t);

#endif
