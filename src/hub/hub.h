/* hub.h - every message to every target: flow in the real world.
 *
 * One loop: flow decides, the store keeps, the client sends, and the intake
 * (an ingress, lines of a file, or both) brings what is to be sent. A hub is
 * opened in a loop of the caller's and runs while the loop does:
 *
 *     stg_hub_open(&hub, loop, &options, &err);
 *     uv_run(loop, UV_RUN_DEFAULT);     // until options.ended was called
 *     stg_hub_free(hub);
 *
 * All on the loop's thread. */
#ifndef STAGGER_HUB_HUB_H
#define STAGGER_HUB_HUB_H

#include <uv.h>

#include "flow/flow.h"
#include "hub/log.h"

typedef struct stg_hub stg_hub;

#define STG_TARGET_NAME_MAX 65 /* the terminator included */

typedef struct stg_hub_target {
    const char *name; /* 1 to 64 of A-Z a-z 0-9 . _ -; NULL: made from the URL,
                         see stg_target_name() */
    const char *url;
} stg_hub_target;

/* How a hub has ended. */
typedef struct stg_hub_end {
    bool is_clean;  /* nothing was cut, everything is in the store */
    bool is_broken; /* the store had an error: a restart recovers */
    bool is_short;  /* lines of the input were not taken: too long, or they
                       could not be read */
    uint64_t dead;  /* what became a dead letter while it ran */
} stg_hub_end;

typedef struct stg_hub_options {
    const stg_hub_target *targets;
    size_t target_count; /* 1 or more */
    const char *ca_file; /* for https; NULL: the system's */

    const char *policy; /* of all lanes; NULL: see lane_policy.h */
    stg_order order;
    uint32_t in_flight_max; /* of a target, 1 to 10000: 64 */
    uint32_t rate;          /* of a target, thousandths a second; 0: no limit */
    stg_ns hold;            /* 10 m; STG_NEVER: it never sheds */

    const char *store; /* path: "stagger.db" */
    uint64_t quota;    /* bytes of it: see store.h */
    stg_ns retention;
    const char *letters; /* a file for copies of dead letters; NULL: none */

    const char *listen;     /* of the ingress; NULL: there is none */
    const char *token_file; /* NULL: none */
    int input;              /* a descriptor of lines; -1: none. Without an
                               ingress the hub ends when all of it is settled */

    uint64_t
        memory_max; /* bytes of messages in memory, 8 MiB to 1 TiB: 128 MiB.
                            A message is a thirty-second of it at most */
    stg_ns drain; /* what attempts have to end after a stop, up to 1 d: 10 s */

    stg_log *log;    /* kept; may be NULL */
    bool is_verbose; /* log successes, too */

    /* The hub has ended, and nothing of it is in the loop. */
    void (*ended)(void *ctx, const stg_hub_end *end);
    void *ctx;
} stg_hub_options;

/* The values above; no target, no intake, no log. */
stg_hub_options stg_hub_options_default(void);

/* Opens the store, listens, and logs `ready`. Options are borrowed. Returns
 * STG_INVALID or STG_IO with words that say what and what to do; then the loop
 * has been run until nothing of the hub was in it, and ended is not called. */
stg_status stg_hub_open(stg_hub **hub, uv_loop_t *loop,
                        const stg_hub_options *o, stg_error *err);

/* Intake stops at once, attempts under way have the drain time; then what is
 * settled is made durable, and ended is called. Again: nothing. */
void stg_hub_stop(stg_hub *h);

/* After ended was called; what was looked at is gone then. */
void stg_hub_free(stg_hub *h);

/* -- a look, for people and metrics; until stg_hub_free() ------------------- */

typedef struct stg_hub_view {
    stg_flow_view flow;
    const char *address; /* of the ingress, "127.0.0.1:8080"; NULL: none */
    uint16_t port;       /* of it */
    uint64_t accepted;   /* messages, by both intakes */
    size_t targets;      /* with those that only the store knows */
    bool is_stopping;
} stg_hub_view;
void stg_hub_look(const stg_hub *h, stg_hub_view *view);

typedef struct stg_target_view {
    const char *name;
    const char *url;
    uint32_t lane_number;
    bool is_known; /* the settings have it; else only the store does */
    stg_lane_view lane;
    uint64_t attempts; /* that have ended, since the start */
    stg_ns p50, p99;   /* of attempts that succeeded; 0: none has */
    const char *fault; /* cause of the last failure, "HTTP_503"; "": none */
    uint64_t failures; /* attempts */
} stg_target_view;

/* The target number i from 0: first those of the settings, in their order.
 * STG_NOT_FOUND: there are no more. */
stg_status stg_hub_look_target(const stg_hub *h, size_t i,
                               stg_target_view *view);

#endif
