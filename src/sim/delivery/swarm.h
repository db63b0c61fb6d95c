/* swarm.h - random worlds of flow: a seed draws a script (script.h), a script is
 * run in a world (world.h), and one that fails is made small.
 *
 * A script is run in three phases: what it says; then all faults end, and
 * nothing is paused, full or away; then all that is pending has to end within
 * STG_SWARM_HEALS virtual time (I20), and the world's books are judged.
 *
 * The same script gives the same trace, on every machine. Pure; memory comes
 * from a hook. */
#ifndef STAGGER_SIM_DELIVERY_SWARM_H
#define STAGGER_SIM_DELIVERY_SWARM_H

#include "sim/delivery/script.h"
#include "sim/delivery/world.h"

/* Draws may not go beyond. */
typedef struct stg_swarm_bounds {
    uint32_t lanes, partitions, messages, steps; /* 1 at least */
} stg_swarm_bounds;

/* 200 lanes, 32 partitions, 4000 deliveries of a publication, 60 steps. */
stg_swarm_bounds stg_swarm_bounds_default(void);

void stg_swarm_draw(stg_script *s, uint64_t seed, const stg_swarm_bounds *most);

enum { STG_SWARM_LINES = 50, STG_SWARM_LINE_MAX = 120 };
#define STG_SWARM_HEALS STG_HOUR

typedef struct stg_swarm_run {
    bool has_failed;
    stg_world_failure failure;
    size_t step;   /* which had failed; count: in the end */
    uint64_t hash; /* of the trace */
    stg_ns lasted; /* virtual time */
    stg_world_totals sum;
    uint64_t lines;                                 /* of the trace */
    char last[STG_SWARM_LINES][STG_SWARM_LINE_MAX]; /* by line % LINES */
    /* Set before the run: called with each line. NULL: not. */
    void (*line)(void *ctx, const char *line);
    void *ctx;
} stg_swarm_run;

/* False: no memory for the world itself, or a script without a world. */
bool stg_swarm_play(const stg_script *s, const stg_memory *memory,
                    stg_swarm_run *run);

/* Takes out steps and makes numbers smaller, as long as the invariant of `run`
 * does not hold; with at most so many runs. `run` is then that of what is
 * left. */
void stg_swarm_shrink(stg_script *s, const stg_memory *memory,
                      stg_swarm_run *run, uint32_t runs_max);

/* -- a script that is being run: private to swarm*.c ------------------------ */

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
    uint32_t own_faults; /* of this machine's ports and files, in this step */
    stg_step faults[STG_LEAF_COUNT]; /* by kind; every 0: there is none */
    stg_swarm_lane lanes[STG_SCRIPT_MAX];
} stg_swarm_state;

/* As the steps so far have it. */
stg_world_answer stg_swarm_answer(stg_world *w, uint32_t lane,
                                  uint64_t position, uint64_t attempt);
stg_world_answer stg_swarm_answer_well(stg_world *w, uint32_t lane,
                                       uint64_t position, uint64_t attempt);

#endif
