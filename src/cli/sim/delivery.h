/* delivery.h - `stagger sim delivery`, in files. Private to cli/sim. */
#ifndef STAGGER_CLI_SIM_DELIVERY_H
#define STAGGER_CLI_SIM_DELIVERY_H

#include <stagger/ns.h>

#include "chart/text_buffer.h"
#include "cli/sim/output.h"
#include "sim/delivery/scenario.h"

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

/* A scenario that was asked for. Numbers that are 0 were not given. */
typedef struct stg_world_scenario_ask {
    const char *who;
    const char *file; /* of the settings, or of the scenario */
    stg_sim_run run;
    stg_sim_output output;
    uint32_t rate, size;
    stg_ns load, latency;
    stg_world_scenario_fault faults[STG_WORLD_SCENARIO_FAULTS_MAX];
    size_t fault_count;
    int argc;
    char **argv;
} stg_world_scenario_ask;

/* One that an alert would have told. */
typedef struct stg_world_scenario_alert {
    stg_ns at; /* since the beginning */
    char target[STG_WORLD_SCENARIO_NAME_MAX];
    char text[512];
} stg_world_scenario_alert;

enum { STG_WORLD_SCENARIO_ALERTS_MAX = 200 };

/* A scenario's result, and what alerts would have told. */
typedef struct stg_world_scenario_found {
    const stg_world_scenario *scenario;
    stg_world_scenario_result result;
    stg_world_scenario_alert alerts[STG_WORLD_SCENARIO_ALERTS_MAX];
    size_t alert_count, alerts_cut;
    bool has_receiver; /* somebody would have been told */
    bool has_filters;  /* which were not asked */
} stg_world_scenario_found;

/* Returns the exit code. */
int stg_world_scenario_file(stg_world_scenario_ask *ask);
int stg_world_scenario_show(const stg_world_scenario_ask *ask,
                            const stg_world_scenario_found *f);

/* Members of the JSON, behind the table: "series", "rate", "faults", "alerts" ... */
void stg_world_scenario_put_json(const stg_world_scenario_found *f,
                                 stg_text_buffer *p);

/* Return the exit code. */
int stg_swarm_seeds(const stg_swarm_ask *ask);
int stg_swarm_script(const stg_swarm_ask *ask);

#endif
