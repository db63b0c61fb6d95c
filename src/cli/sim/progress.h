/* progress.h - how far a simulation is, and how long it will take: a line on
 * stderr where that is a terminal, after the first second. Any thread may tell
 * of it. */
#ifndef STAGGER_CLI_SIM_PROGRESS_H
#define STAGGER_CLI_SIM_PROGRESS_H

#include <pthread.h>
#include <stdbool.h>

#include <stagger/ns.h>

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

#endif
