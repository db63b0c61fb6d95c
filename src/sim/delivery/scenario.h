/* scenario.h - what a hub would do: lanes with the settings of targets, a steady
 * load, and targets that fail as told for a while; in virtual time.
 *
 * The code that decides is the hub's own (flow/flow.h) in a world of its own
 * (world.h). Messages come at random, `rate` a second on the average, and each is
 * for all targets. A target takes half to one and a half times `latency` to
 * answer. When all messages have been published, time goes on until each has its
 * end, or for STG_WORLD_SCENARIO_TAIL at most. Pure: the same scenario gives the same
 * result on every machine. */
#ifndef STAGGER_SIM_DELIVERY_SCENARIO_H
#define STAGGER_SIM_DELIVERY_SCENARIO_H

#include "sim/delivery/world.h"

#define STG_WORLD_SCENARIO_TAIL (7 * STG_DAY)
#define STG_WORLD_SCENARIO_LATE (10 * STG_S)

enum {
    STG_WORLD_SCENARIO_FAULTS_MAX = 64,
    STG_WORLD_SCENARIO_NAME_MAX = 65,
    STG_WORLD_SCENARIO_DELIVERIES_MAX = 10000000,
    STG_WORLD_SCENARIO_INTERVALS = 240, /* at most */
    STG_WORLD_SCENARIO_RATE_MAX = 100000 * 1000,
    STG_WORLD_SCENARIO_SIZE_MAX = 1 << 20,
};

/* What a target answers for a while, in place of 200. */
typedef struct stg_world_scenario_fault {
    char target[STG_WORLD_SCENARIO_NAME_MAX]; /* its name, or "*": each */
    char answer[16];                          /* as it was given: "503" */
    bool is_timed;                            /* took was given */
    stg_world_answer
        what;           /* took: STG_NEVER, for ever; 0: as the target takes */
    stg_ns from, until; /* since the beginning; STG_NEVER: to the end of the
                              load */
    uint32_t share;     /* of the attempts, in percent: 1 to 100 */
} stg_world_scenario_fault;

/* Reads `TARGET ANSWER [from=TIME] [for=TIME] [took=TIME] [share=PERCENT]`, as in
 * `leaf3 503 from=5m for=10m share=50%`; the answers are those of
 * stg_world_read_answer(). Without `from` it begins after a minute, and without
 * `for` it lasts. STG_INVALID, with words. */
stg_status stg_world_scenario_read_fault(const char *text,
                                         stg_world_scenario_fault *fault,
                                         stg_error *err);

/* Reads "50" or "0.1", messages a second: 0.001 to 100000. */
bool stg_world_scenario_read_rate(const char *text, uint32_t *rate);

typedef struct stg_world_scenario_target {
    const char *name;
    stg_lane_options lane; /* its filter is not asked: it takes each message */
} stg_world_scenario_target;

/* All that it points to is borrowed until the result is there. */
typedef struct stg_world_scenario {
    stg_flow_options flow;
    const stg_world_scenario_target *targets;
    size_t target_count; /* 1 at least */
    const stg_world_scenario_fault *faults;
    size_t fault_count;
    uint32_t rate;    /* messages in 1,000 seconds: 1 at least */
    stg_ns load;      /* how long they come: up to 365 d */
    size_t size;      /* bytes of each */
    stg_ns latency;   /* of a target that is well */
    stg_ns retention; /* what is older becomes a dead letter; STG_NEVER */
    uint64_t seed;
} stg_world_scenario;

/* When it ends, since the beginning. */
static inline stg_ns stg_world_scenario_end(const stg_world_scenario *s,
                                            const stg_world_scenario_fault *f)
{
    return f->until == STG_NEVER ? s->load : f->until;
}

/* Whether it is of the target of that number, and holds so long after the
 * beginning. */
bool stg_world_scenario_holds(const stg_world_scenario *s,
                              const stg_world_scenario_fault *f, size_t target,
                              stg_ns since);

/* STG_INVALID, with words: a fault is of no target, or begins after the load; there
 * is no target; or there are too many deliveries. */
stg_status stg_world_scenario_check(const stg_world_scenario *s,
                                    stg_error *err);

/* Of a target, in an interval; waiting is what there is at its end. */
typedef struct stg_world_scenario_interval {
    uint64_t starts, delivered, dead, waiting;
    stg_ns slowest; /* the longest delay of a message that came in it */
} stg_world_scenario_interval;

typedef struct stg_world_scenario_sum {
    uint64_t messages, delivered, dead, starts;
    uint64_t shed,
        expired;       /* of the dead, never tried: the breaker was open for
                               longer than `shed-after`; older than the retention */
    uint64_t openings; /* of the breaker */
    uint64_t waiting_most;
    uint64_t waiting;         /* when it ended; 0: all have their ends */
    stg_ns p50, p99, slowest; /* delays of what was delivered */
    stg_ns late, late_until;  /* for how long its oldest message had waited
                                    for more than STG_WORLD_SCENARIO_LATE, and
                                    when that was last, since the beginning */
} stg_world_scenario_sum;

/* What happens, as it does; `now` is of flow's clock. looked: once in each second of
 * virtual time, what a lane has not taken or not settled and for how long, as the
 * hub asks it for its alerts (what is parked is settled). NULL: nobody wants to
 * know. */
typedef struct stg_world_scenario_hooks {
    stg_memory memory;
    void (*told)(void *ctx, const stg_action *notice, stg_ns now);
    void (*stored)(void *ctx, const stg_group *group, stg_ns now);
    void (*looked)(void *ctx, uint32_t lane, uint64_t waiting, stg_ns oldest,
                   stg_ns now);
    bool (*passed)(void *ctx, stg_ns now); /* after those; false: that is all */
    void *ctx;
} stg_world_scenario_hooks;

typedef struct stg_world_scenario_result {
    stg_ns began_at; /* start of the run, by flow's clock */
    stg_ns lasted;   /* until all had their ends, or it was given up */
    stg_ns interval;
    size_t interval_count;
    stg_world_scenario_interval
        *intervals;               /* of target t in i: [i * targets + t] */
    uint64_t *held;               /* bytes of memory, the most in each */
    stg_world_scenario_sum *sums; /* of each target */
    stg_world_scenario_sum all;
    bool is_interrupted;
    stg_world_failure failure; /* invariant NULL: none */
} stg_world_scenario_result;

/* Runs it. STG_INVALID: see stg_world_scenario_check(); STG_IO: no memory. The result is to be freed in any case. */
stg_status stg_world_scenario_run(const stg_world_scenario *s,
                                  const stg_world_scenario_hooks *hooks,
                                  stg_world_scenario_result *r, stg_error *err);
void stg_world_scenario_free(stg_world_scenario_result *r,
                             const stg_memory *memory);

#endif
