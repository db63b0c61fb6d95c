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

#include "config/settings.h"
#include "flow/flow.h"
#include "host/log.h"
#include "ingress/ingress.h"

typedef struct stg_hub stg_hub;
struct stg_letters_sum;

/* How a hub has ended. */
typedef struct stg_hub_end {
    bool is_clean;  /* nothing was cut, everything is in the store */
    bool is_broken; /* the store had an error: a restart recovers */
    uint64_t dead;  /* what became a dead letter while it ran */
} stg_hub_end;

/* The admin API as a part of the hub: admin/admin.h fills it in, and the hub does
 * not include it. open() makes the part before the hub listens; serve() adds
 * its routes to the ingress; note() reports changes that did not come through
 * it, as by SIGHUP; replayed() a replay that a recovery began; close() comes
 * last. part: what open() made. */
typedef struct stg_hub_calls {
    stg_status (*open)(void **part, stg_hub *h, const char *audit,
                       stg_error *err);
    void (*serve)(void *part, stg_ingress *g);
    void (*note)(void *part, const char *action, const char *who, bool is_done,
                 const char *detail);
    void (*replayed)(void *part, const char *target, stg_ns started_at,
                     const struct stg_letters_sum *sum);
    void (*close)(void *part, void (*closed)(void *ctx), void *ctx);
    void (*free)(void *part);
} stg_hub_calls;

typedef struct stg_hub_options {
    stg_settings *settings; /* given, once the hub is open: it frees them at a
                               reload, or at its end */
    stg_log *log;           /* kept; may be NULL. At the level debug of the
                               settings, successes are logged, too */
    /* Given, if the hub is opened or not: what it reads instead of what the
     * settings name; sources/source.h. NULL: none. */
    struct stg_source *source;
    const stg_hub_calls *calls; /* kept; NULL: nobody can call */
    bool is_service; /* tells the service manager how it is: host/notify.h */

    /* The hub has ended, and nothing of it is in the loop. */
    void (*ended)(void *ctx, const stg_hub_end *end);
    void *ctx;
} stg_hub_options;

/* Opens the store, listens, and logs `ready`. Returns STG_INVALID or STG_IO
 * with words that say what and what to do; then the loop has been run until
 * nothing of the hub was in it, and ended is not called. */
stg_status stg_hub_open(stg_hub **hub, uv_loop_t *loop,
                        const stg_hub_options *o, stg_error *err);

/* Opens what stg_hub_open() opens before it makes a file, and closes it: endpoints with
 * their certificates, receivers with their secrets, tokens, the source's options.
 * Nothing is listened to, written or sent, and only `settings` of the options count;
 * they stay the caller's. Returns what a start would be refused for. */
stg_status stg_hub_rehearse(uv_loop_t *loop, const stg_hub_options *o,
                            stg_error *err);

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
    uint64_t
        accepted; /* messages, accepted by the intake, or read from the source */
    size_t targets; /* with those that only the store knows */
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
    uint64_t failures; /* attempts */
    stg_outcome last;  /* of the last of them; no fault: there was none */
    stg_ns failed_at;  /* when that was, by the loop's clock; 0: never */
} stg_target_view;

/* The target number i from 0: first those of the settings, in their order.
 * STG_NOT_FOUND: there are no more. */
stg_status stg_hub_look_target(const stg_hub *h, size_t i,
                               stg_target_view *view);

#endif
