/* contention.h - what `stagger sim contention` was asked for, and how it is
 * shown. Private to cli/sim_contention*.c. */
#ifndef STAGGER_CLI_SIM_CONTENTION_H
#define STAGGER_CLI_SIM_CONTENTION_H

#include "cli/sim/output.h"
#include "cli/sim/study.h"

typedef struct stg_contention_settings {
    stg_study_options study;
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
