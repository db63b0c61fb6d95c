/* watch.h - the hub's facts for its alerts.
 *
 * What happens is said as it happens: a group is durable, flow tells, the store
 * is in trouble, a target answers 410. What grows slowly is looked at, some
 * targets a turn, every STG_WATCH_PAUSE while anything happens or anything
 * waits: lag, what the log keeps for a lane, certificates. An idle hub is not
 * woken. All on the loop's thread. */
#ifndef STAGGER_HUB_WATCH_H
#define STAGGER_HUB_WATCH_H

#include "alerts/alerts.h"
#include "hub/target.h"

#define STG_WATCH_PAUSE (5 * STG_S)

typedef struct stg_watch {
    stg_hub *hub;
    stg_alerts *alerts; /* NULL: there are none */
    stg_deadline look;  /* the next targets */
    size_t at;          /* the next one of them */
    bool is_busy;       /* one of this round has something that waits */
    stg_ns looked_at;   /* when the round began */
} stg_watch;

/* Opens the alerts; the client, the targets and flow are there. Returns what
 * stg_alerts_open() does. Zeroed before; to be closed in any case. */
stg_status stg_watch_open(stg_watch *w, stg_hub *hub,
                          const stg_alert_options *o, stg_error *err);

/* closed is called when sinks have had their time, perhaps from within. */
void stg_watch_close(stg_watch *w, void (*closed)(void *ctx), void *ctx);

/* Something has happened: there may be something to look at. Cheap. */
void stg_watch_note(stg_watch *w, stg_ns now);

/* -- facts ----------------------------------------------------------------- */

/* A group is durable: its dead letters count. */
void stg_watch_stored(stg_watch *w, const stg_group *g, stg_ns now);

/* STG_ACTION_TELL. */
void stg_watch_tell(stg_watch *w, const stg_action *a, stg_ns now);

/* The store is in trouble, or is not any more (why is NULL). */
void stg_watch_store(stg_watch *w, stg_alert_trouble what, const char *why,
                     stg_ns now);

/* The target answered 410; and now it took a message again. */
void stg_watch_gone(stg_watch *w, stg_target *t, stg_ns now);
void stg_watch_back(stg_watch *w, stg_target *t, stg_ns now);

/* It is no more. */
void stg_watch_forget(stg_watch *w, uint32_t lane);

#endif
