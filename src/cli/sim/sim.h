/* sim.h - the second words of `stagger sim`: a function, a help text and a file
 * for each.
 *
 * argv[0] is "stagger sim WORD", which messages start with; options follow.
 * Returns the exit code. */
#ifndef STAGGER_CLI_SIM_SIM_H
#define STAGGER_CLI_SIM_SIM_H

int stg_sim_contention(int argc, char **argv);
int stg_sim_overload(int argc, char **argv);
int stg_sim_advise(int argc, char **argv);

/* From "usage:" on; `stagger sim --help` shows them all. */
extern const char stg_sim_contention_help[];
extern const char stg_sim_overload_help[];
extern const char stg_sim_advise_help[];

enum {
    STG_EXIT_INTERRUPTED = 130, /* what was printed is a part */
};

#endif
