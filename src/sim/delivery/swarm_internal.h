/* swarm_internal.h - a script that is being run. */
#ifndef STAGGER_SIM_DELIVERY_SWARM_INTERNAL_H
#define STAGGER_SIM_DELIVERY_SWARM_INTERNAL_H

#include "sim/delivery/swarm.h"

typedef struct stg_swarm_lane {
    uint64_t mode; /* of TARGET: 0: by the faults that exist */
    stg_ns batch;
    bool has_proxy, signs_in;
} stg_swarm_lane;

typedef struct stg_swarm_state {
    stg_swarm_run *run;
    stg_world *world;
    uint64_t seed;
    stg_ns stepped; /* by so much in all the wall clock was set */
    bool is_group, has_started;
    stg_step faults[STG_LEAF_COUNT]; /* by kind; every 0: there is none */
    stg_swarm_lane lanes[STG_SCRIPT_MAX];
} stg_swarm_state;

/* As the steps so far have it. */
stg_world_answer stg_swarm_answer(stg_world *w, uint32_t lane,
                                  uint64_t position, uint64_t attempt);
stg_world_answer stg_swarm_answer_well(stg_world *w, uint32_t lane,
                                       uint64_t position, uint64_t attempt);

#endif
