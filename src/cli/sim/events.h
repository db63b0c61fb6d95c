/* events.h - --events FILE: what happened to each client, as a trace that Perfetto
 * and chrome://tracing open. Private to cli/sim. */
#ifndef STAGGER_CLI_SIM_EVENTS_H
#define STAGGER_CLI_SIM_EVENTS_H

#include <stdint.h>
#include <stdio.h>

#include <stagger/outcome.h>

enum { STG_SIM_EVENTS_MAX = 100000 }; /* in a file */

typedef struct stg_sim_events {
    FILE *file;
    unsigned process;         /* the one of now, from 1 */
    uint64_t most, left, cut; /* of a process: events, and those beyond */
} stg_sim_events;

/* Begins a file for so many processes, which share the events evenly. Returns 0, or
 * complains in the name of who and returns an exit code. */
int stg_sim_events_open(stg_sim_events *e, const char *path, size_t processes,
                        const char *who);

/* The next process; all that follows is its own. */
void stg_sim_events_begin(stg_sim_events *e, const char *name);

/* An attempt of a client. */
void stg_sim_events_attempt(stg_sim_events *e, uint32_t client,
                            uint32_t attempt, stg_ns begun_at, stg_ns ended_at,
                            const stg_outcome *outcome);

/* Ends the file. The same as of opening. */
int stg_sim_events_close(stg_sim_events *e, const char *path, const char *who);

#endif
