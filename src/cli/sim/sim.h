/* sim.h - the subcommands of `stagger sim`: a function, a usage and a file for
 * each.
 *
 * argv[0] is "stagger sim SUBCOMMAND", which messages start with; options follow.
 * Returns the exit code.
 *
 * And what they share: policies, memory, progress and interruption. */
#ifndef STAGGER_CLI_SIM_SIM_H
#define STAGGER_CLI_SIM_SIM_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <stagger/ns.h>
#include <stagger/text.h>

#include "base/memory.h"
#include "cli/options.h"

/* -- subcommands ------------------------------------------------------------ */

int stg_sim_contention(int argc, char **argv);
int stg_sim_overload(int argc, char **argv);
int stg_sim_advise(int argc, char **argv);
int stg_sim_delivery(int argc, char **argv);

/* `stagger sim --help` shows them all. */
extern const stg_usage stg_sim_contention_usage;
extern const stg_usage stg_sim_overload_usage;
extern const stg_usage stg_sim_advise_usage;
extern const stg_usage stg_sim_delivery_usage;

enum {
    STG_EXIT_INTERRUPTED = 130, /* only a part of the results was printed */
};

/* -- policies --------------------------------------------------------------- */

enum {
    STG_SIM_POLICIES_MAX = 32,
    STG_SIM_NAME_MAX = 41,  /* as it is given */
    STG_SIM_LABEL_MAX = 96, /* with what a sweep adds */
};

typedef struct stg_sim_policy {
    char name[STG_SIM_LABEL_MAX]; /* name to show; a long policy text is cut */
    char text[STG_POLICY_TEXT_MAX]; /* canonical */
    stg_policy policy;
} stg_sim_policy;

typedef struct stg_sim_policies {
    size_t count;
    stg_sim_policy at[STG_SIM_POLICIES_MAX];
} stg_sim_policies;

/* Adds the one that word says. Returns 0, or complains in the name of who and
 * returns an exit code. */
int stg_sim_policies_add(stg_sim_policies *p, const char *who,
                         const char *word);

/* -- memory ----------------------------------------------------------------- */

/* malloc() and free(), with the system's huge pages for what is large; for any
 * thread. */
stg_memory stg_sim_memory(void);

/* Bytes that this process may take besides what it has: what the system has
 * left, or the least of the limits that are set for it. UINT64_MAX: unknown. */
uint64_t stg_sim_memory_left(void);

/* -- progress --------------------------------------------------------------- */

typedef struct stg_sim_progress {
    pthread_mutex_t lock;
    double total, done; /* work, in any unit */
    stg_ns begun_at, shown_at;
    bool is_shown;     /* a terminal is there */
    bool is_line_open; /* the line stands */
} stg_sim_progress;

void stg_sim_progress_begin(stg_sim_progress *p, double total);

/* So much more work is done. */
void stg_sim_progress_add(stg_sim_progress *p, double work);

/* The line goes, if there is one. */
void stg_sim_progress_end(stg_sim_progress *p);

/* -- interruption ----------------------------------------------------------- */

/* From now on SIGINT and SIGTERM set what is returned, and a second one ends
 * the program. Signals that were ignored stay so. */
const atomic_bool *stg_sim_stop_watch(void);

#endif
