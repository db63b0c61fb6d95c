/* script.h - all that happens to a world, as lines of text that replay it: its
 * settings, the faults of its targets, and what is done to it, in order.
 *
 *     world seed=7 partitions=3 group=shared size=100
 *     lane policy=48213 order=key in-flight=3 parked-max=20
 *     fault kind=reset every=12 took=80ms processed=50
 *     publish partition=0 count=40
 *     start
 *     events count=212
 *     crash after=300ms
 *
 * A line is a kind of step and its numbers, by name; those that are left out
 * are 0. Any script can be carried out: a number of a lane, a partition or a
 * message that there is none of counts from the first one again. So a script
 * stays one when lines are taken out of it. */
#ifndef STAGGER_SIM_DELIVERY_SCRIPT_H
#define STAGGER_SIM_DELIVERY_SCRIPT_H

#include <stddef.h>
#include <stdint.h>

#include <stagger/status.h>

typedef enum stg_step_kind {
    STG_STEP_WORLD,
    STG_STEP_FLOW,
    STG_STEP_LANE,
    STG_STEP_FAULT,
    STG_STEP_PUBLISH,
    STG_STEP_START,
    STG_STEP_EVENTS,  /* so many events of the world pass */
    STG_STEP_ACTIONS, /* so many actions of flow's; the next ones wait */
    STG_STEP_RUN,     /* so much time */
    STG_STEP_CRASH,
    STG_STEP_STOP, /* in order, and a start after it */
    STG_STEP_CLOCK,
    STG_STEP_STORE,
    STG_STEP_UNREAD,
    STG_STEP_MEMORY,
    STG_STEP_PAUSE,
    STG_STEP_GATE,
    STG_STEP_PROBE,
    STG_STEP_TARGET, /* it fails always, or no more */
    STG_STEP_REMOVE, /* or adds again what was removed */
    STG_STEP_JOIN,
    STG_STEP_CHANGE,
    STG_STEP_REPLAY,
    STG_STEP_REWIND,
    STG_STEP_RETAIN,
    STG_STEP_ASSIGN, /* this and all below: of a group of hubs */
    STG_STEP_REVOKE,
    STG_STEP_LOSE,
    STG_STEP_FENCE,
    STG_STEP_ELSEWHERE,
    STG_STEP_EXPIRE,
    STG_STEP_COUNT,
} stg_step_kind;

/* Places of the numbers of a step, as script.c names them. */
enum { STG_WORLD_SEED, STG_WORLD_PARTITIONS, STG_WORLD_GROUP };
enum {
    STG_WORLD_BYTES = STG_WORLD_GROUP + 1,
    STG_WORLD_KEYS,
    STG_WORLD_TIMES,
    STG_WORLD_TOO_LARGE,
    STG_WORLD_ASK_EVENTS,
    STG_WORLD_ASK_ENDS,
    STG_WORLD_CHECKS,
};
enum {
    STG_FLOW_KIB,
    STG_FLOW_IN_FLIGHT,
    STG_FLOW_DRAIN,
    STG_FLOW_BUDGET,
    STG_FLOW_CAPACITY,
    STG_FLOW_RATE,
    STG_FLOW_WAITS,
};
enum {                  /* of LANE, JOIN and CHANGE */
       STG_LANE_NUMBER, /* CHANGE */
       STG_LANE_POLICY, /* CHANGE: 0: the same */
       STG_LANE_ORDER,
       STG_LANE_IN_FLIGHT,
       STG_LANE_PARKED_MAX,
       STG_LANE_SHED_AFTER,
       STG_LANE_BURST,
       STG_LANE_BATCH,   /* attempts of so long are one request */
       STG_LANE_FILTER,  /* not of CHANGE, and so are all below */
       STG_LANE_IGNORES, /* bit p: it does not follow partition p */
       STG_LANE_PROXY,
       STG_LANE_DIALS,
       STG_LANE_SIGNS_IN,
       STG_LANE_EARLIEST, /* JOIN */
       STG_STEP_NUMBERS,
};
enum {
    STG_FAULT_KIND,
    STG_FAULT_EVERY,     /* one attempt in so many; 0: none */
    STG_FAULT_TOOK,      /* at most */
    STG_FAULT_WAIT,      /* Retry-After, at most */
    STG_FAULT_PROCESSED, /* percent: the target has the message all the same */
};

/* What a target does in an attempt, but to answer 200. */
typedef enum stg_leaf_fault {
    STG_LEAF_REFUSED,
    STG_LEAF_DNS,
    STG_LEAF_DNS_TEMPORARY,
    STG_LEAF_NO_PORTS,
    STG_LEAF_NO_FILES,
    STG_LEAF_CONNECT_TIMEOUT,
    STG_LEAF_TLS,
    STG_LEAF_PROXY, /* the proxy fails; only for lanes with one */
    STG_LEAF_RESET,
    STG_LEAF_PROTOCOL,
    STG_LEAF_HANG,
    STG_LEAF_SLOW, /* 200, late */
    STG_LEAF_LIE,  /* 2xx, and it has not got the message */
    STG_LEAF_401,
    STG_LEAF_404,
    STG_LEAF_429,
    STG_LEAF_500,
    STG_LEAF_503,
    STG_LEAF_COUNT,
} stg_leaf_fault;

enum { STG_SCRIPT_MAX = 1024 };

typedef struct stg_step {
    stg_step_kind kind;
    uint64_t at[STG_STEP_NUMBERS];
} stg_step;

typedef struct stg_script {
    size_t count;
    stg_step steps[STG_SCRIPT_MAX];
} stg_script;

/* Nothing where the script is full. */
void stg_script_add(stg_script *s, const stg_step *e);

/* A step on each line. Blank lines, and what stands behind #, are passed over.
 * STG_INVALID: words in err, with the line. */
stg_status stg_script_read(stg_script *s, const char *text, size_t size,
                           stg_error *err);

/* One step as it is read, without an end of line. Returns text. */
enum { STG_STEP_TEXT_MAX = 400 };
const char *stg_step_print(const stg_step *e, char text[STG_STEP_TEXT_MAX]);

/* A policy for each number: growth, jitter, attempts, timeouts, faults, budget,
 * breaker and rate, out of lists. Returns text. */
enum { STG_DRAWN_POLICY_MAX = 320 };
const char *stg_script_policy(uint64_t number, char text[STG_DRAWN_POLICY_MAX]);

#endif
