/* sim.h - the subcommands of `stagger sim`: a function, a usage and a file for
 * each.
 *
 * argv[0] is "stagger sim SUBCOMMAND", which messages start with; options follow.
 * Returns the exit code. */
#ifndef STAGGER_CLI_SIM_SIM_H
#define STAGGER_CLI_SIM_SIM_H

#include "cli/options.h"

int stg_sim_contention(int argc, char **argv);
int stg_sim_overload(int argc, char **argv);
int stg_sim_advise(int argc, char **argv);

/* `stagger sim --help` shows them all. */
extern const stg_usage stg_sim_contention_usage;
extern const stg_usage stg_sim_overload_usage;
extern const stg_usage stg_sim_advise_usage;

enum {
    STG_EXIT_INTERRUPTED = 130, /* what was printed is a part */
};

#endif
