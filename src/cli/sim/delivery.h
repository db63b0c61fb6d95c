/* delivery.h - `stagger sim delivery`, in files. Private to cli/sim. */
#ifndef STAGGER_CLI_SIM_DELIVERY_H
#define STAGGER_CLI_SIM_DELIVERY_H

#include <stagger/ns.h>

#include "cli/sim/output.h"

typedef struct stg_swarm_ask {
    const char *who;
    stg_sim_run run;
    uint32_t count;     /* seeds */
    stg_ns most;        /* of real time; 0: no bound */
    const char *events; /* a script to run instead; NULL: seeds */
    const char *shrink; /* a file for the small script; NULL: none */
    bool is_script;     /* prints the seed's script alone */
    bool is_trace;      /* prints each event, of one seed or a script */
} stg_swarm_ask;

/* Return the exit code. */
int stg_swarm_seeds(const stg_swarm_ask *ask);
int stg_swarm_script(const stg_swarm_ask *ask);

#endif
