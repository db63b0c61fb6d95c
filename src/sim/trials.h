/* trials.h - overloads side by side.
 *
 * A trial is a setting of the model; several runs of each are spread over the
 * cores (parallel.h). What comes out does not depend on how many threads there
 * are, nor in what order the runs end. */
#ifndef STAGGER_SIM_TRIALS_H
#define STAGGER_SIM_TRIALS_H

#include "sim/overload.h"
#include "sim/overload_summary.h"

enum { STG_TRIAL_NAME_MAX = 96 };

typedef struct stg_trial {
    char name[STG_TRIAL_NAME_MAX]; /* for people */
    stg_overload_options options;
    stg_overload_summary summary; /* of runs 0 to reps - 1 */
} stg_trial;

typedef struct stg_trials {
    stg_trial *all; /* the caller's: names and options are filled in */
    size_t count;
    uint32_t reps;
    uint64_t seed;
    unsigned threads;        /* at most */
    uint64_t memory_max;     /* bytes; what takes more is refused */
    const atomic_bool *stop; /* NULL: never */
    /* A run is done, which took so much work: from any thread. NULL: not told. */
    void (*on_run)(void *ctx, double work);
    void *ctx;
    stg_memory memory;
    bool is_partial; /* it was stopped */
} stg_trials;

/* Makes the summaries and runs it all. Returns STG_OK, also if it was stopped:
 * a trial has the runs that were done by then. STG_INVALID with words in err for
 * what cannot fit memory; STG_IO if there was none after all. To be closed in
 * any case. */
stg_status stg_trials_run(stg_trials *t, stg_error *err);
void stg_trials_close(stg_trials *t);

/* What a run of it will take, in events, about: for progress. */
double stg_trial_work(const stg_overload_options *o);

#endif
