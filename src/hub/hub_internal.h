/* hub_internal.h - what the files of the hub share. Private to them.
 *
 *     hub.c       options; open, stop and close, each in its order
 *     shell.c     the loop and the switch: events to flow, its actions out
 *     filter.c    which messages a target takes
 *     attempt.c, attempt_headers.c   one delivery on its way
 *     target.c    names, lanes, endpoints
 *     batch.c, batch_request.c   many of them in one request
 *     oauth.c     their access tokens
 *     intake.c    the ingress
 *     source.c    opens the source that the settings name
 *     reload.c, reload_plan.c, reload_lanes.c, reload_parts.c    other settings
 *     tell.c      what is logged
 *     service.c   what the service manager is told
 *     target_control.c    pause, resume, forget, probe
 *     target_change.c     targets that calls add, change and remove
 *     target_stored.c     those of them that the store has
 *     target_seal.c       and how it keeps their settings
 *     measure.c   facts for the metrics
 *     history.c   what targets did in the last hour
 *     recent.c    their last attempts
 *     disable.c   stops targets that only fail
 *     recovery.c  dead letters that are sent again after an outage
 *     spans.c  attempts for a collector of traces
 *     receipts.c  attempts for the store, where it keeps receipts */
#ifndef STAGGER_HUB_HUB_INTERNAL_H
#define STAGGER_HUB_HUB_INTERNAL_H

#include "filter/verdicts.h"
#include "host/deadlines.h"
#include "host/notify.h"
#include "hub/control.h"
#include "hub/history.h"
#include "hub/hub.h"
#include "hub/parts.h"
#include "metrics/metrics.h"
#include "store/seal.h"

/* A lane that is being forgotten. */
typedef struct stg_forgetting stg_forgetting;

/* A reload that is under way. */
typedef struct stg_reload {
    bool is_under_way;
    stg_deadline turn; /* of the loop, in which it is carried out */
    size_t starting;   /* new lanes whose beginning is not durable yet */
    stg_reloaded result;
    char *detail;                /* of the result; may be NULL */
    stg_diagnostics diagnostics; /* of the result */
    stg_reload_fn *done;
    void *ctx;
} stg_reload;

/* What a hub has come to, in this order; one that could not be opened goes from
 * the first to STG_HUB_CLOSING. */
typedef enum stg_hub_phase {
    STG_HUB_OPENING,
    STG_HUB_SERVING,
    STG_HUB_STOPPING, /* nothing new is taken in */
    STG_HUB_STOPPED,  /* flow has stopped */
    STG_HUB_ALERTING, /* the last alerts are sent */
    STG_HUB_CLOSING,  /* its parts are, and when they have, */
    STG_HUB_CLOSING_CALLS,
} stg_hub_phase;

/* A proxy that has failed: see proxies.c. */
typedef struct stg_hub_proxy {
    stg_link link; /* hub.proxies */
    uint64_t number;
    bool is_down;   /* flow says so */
    bool is_used;   /* by a target that is tried, as a round has seen it */
    stg_ns down_at; /* is_down: since then */
    char name[300]; /* "10.0.0.1:3128" */
    char why[512];  /* the last failure's detail */
} stg_hub_proxy;

struct stg_hub {
    uv_loop_t *loop;
    stg_log *log;
    stg_settings *settings; /* the hub's: those in force, which a reload frees.
                               NULL: it was not opened */
    stg_settings *fixed; /* the hub's, to its end: copy of what only a restart
                            changes, into which `settings` points */
    stg_policy policy;   /* of lanes that only the store knows */
    stg_flow *flow;
    stg_store *store;
    stg_client *client;
    stg_targets targets;
    stg_verdicts *verdicts; /* of the patterns of their filters */
    stg_oauth oauth;
    stg_attempts attempts;
    uint64_t groups_stored;
    bool has_recoveries; /* one at least is STG_RECOVERY_AGAIN */
    stg_hub_receipts receipts;
    stg_spans spans;
    stg_intake intake;
    stg_source *source; /* what flow reads */
    stg_hub_source source_part;
    stg_metrics metrics;
    stg_watch watch;            /* its alerts */
    stg_list proxies;           /* stg_hub_proxy */
    stg_recorder recorder;      /* of what its targets did in the last hour */
    stg_deadline failing;       /* when disable.c looks at its targets */
    const stg_hub_calls *calls; /* NULL: nobody can call */
    void *calls_part;           /* NULL: not opened yet */
    stg_forgetting *forgetting; /* one after the other */
    stg_target_change *changes; /* of targets by calls, that have not ended */
    stg_seal_keys *keys;        /* of their settings in the store; NULL: none */
    uint64_t rekeying, rekeyed; /* rows that get the first key: on their way */
    uint64_t dead_before;       /* rows, when the hub was opened */

    /* -- the shell */
    uv_prepare_t prepare; /* acts, once a turn of the loop */
    stg_deadlines deadlines;
    stg_deadline wake; /* when flow has something without an event */
    stg_deadline tick; /* when the log may have something to tell */
    bool has_ticked;   /* in this turn */
    bool is_due;       /* something has happened: ask flow */
    uint32_t ends;     /* of attempts, since flow was asked what to start */
    void (*shell_closed)(void *ctx);
    void *shell_ctx;

    stg_reload reload;

    /* -- the service manager */
    stg_notify notify;

    /* -- the end */
    stg_hub_phase phase;
    bool is_open;       /* it was opened, and its end is to be told */
    bool is_rehearsed;  /* parts are opened that make and reach nothing */
    bool is_broken;     /* the store is; flow is not asked any more */
    bool is_store_away; /* its database stores nothing for now */
    unsigned handles;   /* parts that are open in the loop */
    stg_hub_end end;
    void (*ended)(void *ctx, const stg_hub_end *end);
    void *ctx;
};

/* Nothing new is begun: by a call, a reload or an ingress. */
static inline bool stg_hub_is_stopping(const stg_hub *h)
{
    return h->phase >= STG_HUB_STOPPING || h->is_broken;
}

/* Its parts may be gone. */
static inline bool stg_hub_is_closing(const stg_hub *h)
{
    return h->phase >= STG_HUB_CLOSING;
}

/* -- hub.c ----------------------------------------------------------------- */

/* Closes all once nothing is left to wait for. */
void stg_hub_finish(stg_hub *h);

/* A lane as flow sees it, with what only the log knows of its lag. */
stg_status stg_hub_look_lane(const stg_hub *h, uint32_t lane,
                             stg_lane_view *view, stg_ns now);

/* Everything that was taken in is delivered or dead, durably. */
bool stg_hub_is_settled(const stg_hub *h);

/* malloc() and free(). */
extern const stg_memory stg_hub_memory;

/* What its lane is told: of the settings' target, or of one that only the store
 * knows. */
stg_lane_options stg_hub_lane(const stg_hub *h, stg_target *t);

/* Gives a target, which has its settings, its lane in store and flow. One that
 * the store knew before is not new: flow goes on where it was. On an error the
 * target is in no table of lanes; a lane of the store stays. */
stg_status stg_hub_begin_lane(stg_hub *h, stg_target *t, stg_error *err);

stg_status stg_target_refuse_memory(stg_error *err);

/* -- filter.c -------------------------------------------------------------- */

/* Its pattern of bodies is that of its settings from now on, or none. */
void stg_hub_filter(const stg_hub *h, stg_target *t);

/* Sets what flow asks of a target with settings, where their headers alone do
 * not decide. */
void stg_hub_filter_lane(stg_target *t, stg_lane_options *l);

/* -- reload.c -------------------------------------------------------------- */

/* Nothing of the target is sent from here on; what it has waits for its name. */
void stg_reload_leave(const stg_hub *h, stg_target *t);

/* STG_ACTION_ADDED. */
void stg_reload_lane_begun(stg_hub *h, uint32_t lane);

/* One that is under way ends here, refused. */
void stg_reload_close(stg_hub *h);

/* -- shell.c --------------------------------------------------------------- */

void stg_shell_open(stg_hub *h);
void stg_shell_close(stg_hub *h, void (*closed)(void *ctx), void *ctx);

/* Something has happened: flow is asked before the loop waits again. */
static inline void stg_shell_note(stg_hub *h)
{
    h->is_due = true;
}

/* An attempt has ended, was told of, and nothing of it is used any more: others
 * may start from within this call. */
void stg_shell_ended(stg_hub *h);

/* For stg_store_options. */
void stg_shell_break(void *hub, const stg_error *why);
void stg_shell_trouble(void *hub, stg_store_trouble what, const stg_error *why);
void stg_shell_retain(void *hub, uint64_t position);
void stg_shell_replay(void *hub, uint32_t lane, uint32_t partition,
                      uint64_t count, bool is_again);
uint64_t stg_shell_room(void *hub, uint32_t lane);
bool stg_shell_knows(void *hub, uint32_t lane);
bool stg_shell_is_paused(void *hub, uint32_t lane);
bool stg_shell_wants(void *hub, uint32_t lane, const stg_parcel *message);
bool stg_shell_wants_body(void *hub, uint32_t lane);
stg_order stg_rewind_order(void *hub, uint32_t lane);
uint64_t stg_rewind_next(void *hub, uint32_t lane, uint32_t partition);
void stg_rewind_ended(void *hub, uint32_t lane, uint32_t partition,
                      uint64_t messages);

/* -- target_control.c ------------------------------------------------------ */

/* Flow has no such lane any more. */
void stg_target_control_removed(stg_hub *h, uint32_t lane);

/* Pauses a target, whoever wants that, or ends it. */
void stg_target_control_pause(stg_hub *h, stg_target *t, stg_pause pause,
                              stg_target_control_fn *done, void *ctx);

/* Whether the lane is being forgotten. */
bool stg_target_control_forgets(const stg_hub *h, uint32_t lane);

/* For stg_store_options: another hub was called. */
void stg_target_control_paused(void *hub, uint32_t lane, stg_pause pause);
bool stg_target_control_forgotten(void *hub, uint32_t lane);

/* Those who wait for a forget are told that the hub stops first. */
void stg_target_control_close(stg_hub *h);

/* -- proxies.c ------------------------------------------------------------- */

/* An attempt has failed; perhaps by its proxy. Before flow is told. */
void stg_proxies_note(stg_hub *h, const stg_target *t,
                      const stg_outcome *outcome, const char *detail);

/* STG_TELL_PROXY_DOWN and _UP, and no other. */
void stg_proxies_tell(stg_hub *h, const stg_action *a, stg_ns now);

/* Those that are down: the next one behind p, or the first; NULL: no more. */
const stg_hub_proxy *stg_proxies_next(const stg_hub *h, const stg_hub_proxy *p);

/* A round of the watch: it begins, sees a target that is tried, and has ended. An
 * alert says which proxies are down that such a target goes through. */
void stg_proxies_begin_round(stg_hub *h);
void stg_proxies_see(stg_hub *h, const stg_target *t);
void stg_proxies_end_round(stg_hub *h, stg_ns now);

void stg_proxies_close(stg_hub *h);

/* -- disable.c -------------------------------------------------------------- */

/* Attempts may have ended: within ten seconds they are looked at. Cheap. */
void stg_disable_note(stg_hub *h, stg_ns now);

/* The hub is open: what was disabled before is told. */
void stg_disable_open(stg_hub *h);

/* The target's pause is another one. */
void stg_disable_paused(stg_hub *h, stg_target *t);

/* -- recovery.c ------------------------------------------------------------- */

/* Its circuit has opened. */
void stg_recovery_opened(stg_target *t);
bool stg_recovery_is_wanted(const stg_target *t);

/* Its circuit is open, and no message waits that could be the probe: one of its
 * dead letters is sent again, if it is to be anyway. */
void stg_recovery_probe(stg_hub *h, const stg_target *t, stg_probe_fn *done,
                        void *ctx);

/* It is due, and has taken a message, or its circuit has closed. */
void stg_recovery_note(stg_hub *h, stg_target *t);

/* A group is stored. */
void stg_recovery_stored(stg_hub *h);

/* -- target_change.c ------------------------------------------------------- */

/* Whether calls may change the target, t, or add it, where that is NULL. Returns
 * STG_INVALID with words for one of the settings, and for one that is being
 * forgotten. */
stg_status stg_target_change_may(const stg_hub *h, const stg_target *t,
                                 stg_error *err);

/* What the store has of a target is made true here. *made: it, where it has a new
 * lane. A version that is here already is nothing. Returns STG_INVALID with words
 * where the name is the settings file's, or is being forgotten, or the text is
 * not valid; STG_NOT_FOUND: another shard has it. */
stg_status stg_target_change_apply(stg_hub *h, const char *name,
                                   const char *text, uint64_t version,
                                   stg_target **made, stg_error *err);

/* From now on only the store knows it. */
void stg_target_change_drop(stg_hub *h, stg_target *t, uint64_t version);

/* A removal that a restart has cut short: stg_target_changes_start() carries it
 * on. False: no memory. */
bool stg_target_change_resume(stg_hub *h, const char *name, uint64_t version);

/* -- target_stored.c ------------------------------------------------------- */

/* Makes the targets that the store has of calls; those of the settings and the
 * store are open. Returns STG_INVALID with words for one that the settings have,
 * too, or whose own are not valid beside them. */
stg_status stg_target_changes_open(stg_hub *h, stg_error *err);

/* For stg_store_options: other hubs were called. */
void stg_target_changes_seen(void *hub, const stg_target_row *rows,
                             size_t count);

/* -- target_seal.c --------------------------------------------------------- */

/* Loads the keys that the settings name, or a credential of the service. */
stg_status stg_target_keys_open(stg_hub *h, stg_error *err);

/* Warns of keys in the file that are others than the hub's. */
void stg_target_keys_check(const stg_hub *h, const stg_settings *next,
                           stg_diagnostics *c);

/* What the store is to keep of a target's settings, to be freed; NULL: no
 * memory. */
char *stg_target_seal(const stg_hub *h, const char *name, const char *text);

/* The settings that a row has, to be freed. Returns STG_INVALID with words where
 * they cannot be decrypted. */
stg_status stg_target_unseal(const stg_hub *h, const stg_target_row *row,
                             char **text, stg_error *err);

/* Writes the row again where it is not encrypted with the first key; text: what
 * it says. */
void stg_target_rekey(stg_hub *h, const stg_target_row *row, const char *text);

/* -- target_change.c: all of them ------------------------------------------ */

/* Flow has started: removals that a restart has cut short go on. */
void stg_target_changes_start(stg_hub *h);

/* Settings that were read again for a target of calls; a is empty before. Returns
 * STG_INVALID with words; STG_NOT_FOUND: another shard has it. */
stg_status stg_target_added_load(stg_added *a, const stg_settings *base,
                                 const char *text, uint64_t version,
                                 stg_error *err);

/* Whether a call adds a target of that name now. */
bool stg_target_changes_have(const stg_hub *h, const char *name);

/* The beginning of the target's lane is durable: who has added it is told. */
void stg_target_change_begun(stg_target *t);

/* Those who wait are told that the hub stops first. */
void stg_target_changes_close(stg_hub *h);
void stg_target_changes_free(stg_hub *h);

/* -- measure.c ------------------------------------------------------------- */

/* Its metrics, whose facts the hub gives. */
void stg_measure_open(stg_hub *h);

/* -- service.c ------------------------------------------------------------- */

/* The hub serves. From here on the manager hears of it until the notify is
 * closed; a reload is between stg_notify_reloading() and stg_notify_ready(). */
void stg_service_open(stg_hub *h);

/* It is about to end. */
void stg_service_stop(stg_hub *h);

/* -- tell.c ---------------------------------------------------------------- */

void stg_tell_ready(const stg_hub *h, const char *store);
void stg_tell_unknown(const stg_hub *h, const stg_target *t);

/* What waits for such a target has outlived the retention. */
void stg_tell_released(const stg_hub *h, const stg_target *t);

/* Tells what the store is short of; why NULL: nothing any more. */
void stg_tell_shortage(const stg_hub *h, const stg_error *why);

/* Dead letters have so much of their room; why NULL: not any more. */
void stg_tell_dead_room(const stg_hub *h, stg_store_trouble what,
                        const stg_error *why);
void stg_tell_attempt(const stg_hub *h, const stg_attempt_end *e, stg_ns now);
void stg_tell_action(const stg_hub *h, const stg_action *action, stg_ns now);
void stg_tell_reloaded(const stg_hub *h, const stg_reloaded *r);
void stg_tell_end(const stg_hub *h);

#endif
