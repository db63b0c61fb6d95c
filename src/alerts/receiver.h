/* receiver.h - one way to alert: what waits, the attempt, and its retries.
 *
 * A receiver sends one digest at a time and has one more that waits: what comes
 * meanwhile is merged into that. So it is bounded, whatever its server does. One
 * that is told each alert by itself sends event by event (alerts/event.h). An
 * attempt that fails is retried by a policy of our own (stg_retry; Retry-After
 * is kept). A digest that is given up is put off: it goes with the next one, or
 * by itself after the interval. That is logged and told to nobody else: a
 * receiver's trouble is never an alert. Slack and webhooks go by our own HTTP
 * client, mail by the mailer's thread. All on the loop's thread. */
#ifndef STAGGER_ALERTS_RECEIVER_H
#define STAGGER_ALERTS_RECEIVER_H

#include <stagger/policy.h>
#include <stagger/rng.h>

#include "alerts/digest.h"
#include "alerts/mailer.h"
#include "host/deadlines.h"
#include "host/log.h"
#include "http/client.h"

typedef struct stg_alert_receiver stg_alert_receiver;

/* What all receivers stand on; kept. */
typedef struct stg_alert_world {
    uv_loop_t *loop;
    stg_client *client;
    stg_deadlines *deadlines;
    stg_mailer *mailer;
    stg_log *log; /* NULL: none */
    stg_policy policy;
    stg_ns interval; /* what was given up is tried again after it; 0: never */
    stg_rng rng;
    bool is_strict; /* no recipient of a mail may be refused */
    /* A digest was accepted, or was given up for good; detail is lent. May be
     * NULL. */
    void (*ended)(void *ctx, stg_alert_receiver *s, bool is_sent,
                  const char *detail);
    /* Nothing is under way in s and nothing waits; s may be freed. */
    void (*idle)(void *ctx, stg_alert_receiver *s);
    void *ctx;
} stg_alert_world;

/* For an hour, more and more rarely; a redirect, a 4xx and a 5yz of SMTP are
 * for good. */
stg_policy stg_alert_policy(void);

/* Reads the receiver's secrets and makes ready. o has been checked; what it points
 * to is copied, but for targets and tags, which stg_alert_receiver_options_of() has
 * as they are. Returns STG_INVALID or STG_IO with words that name the receiver,
 * and no secret. */
stg_status stg_alert_receiver_new(stg_alert_receiver **receiver,
                                  stg_alert_world *w,
                                  const stg_alert_receiver_options *o,
                                  stg_error *err);

/* It is idle. NULL is none. */
void stg_alert_receiver_free(stg_alert_receiver *s);

const stg_alert_receiver_options *
stg_alert_receiver_options_of(const stg_alert_receiver *s);

/* Sends d, which is copied, when it is its turn. */
void stg_alert_receiver_push(stg_alert_receiver *s, const stg_digest *d);

/* What waits for an attempt of `from`, and its counts. An attempt of `from`
 * that is under way stays where it is, and is the last one. */
void stg_alert_receiver_inherit(stg_alert_receiver *s,
                                stg_alert_receiver *from);

/* There is no later: what waits is tried at once, and an attempt that fails is
 * the last one. */
void stg_alert_receiver_end_soon(stg_alert_receiver *s);

/* Gives up all. It is idle within a second or two. */
void stg_alert_receiver_cancel(stg_alert_receiver *s);

bool stg_alert_receiver_is_idle(const stg_alert_receiver *s);

typedef struct stg_alert_receiver_view {
    const char *name;
    stg_receiver_type type;
    uint64_t sent;     /* digests that were accepted */
    uint64_t failed;   /* attempts */
    uint64_t given_up; /* digests, put off or lost as the hub ended */
    uint64_t merged;   /* digests that went in another one */
    uint32_t waiting;  /* digests, with the one that is under way */
} stg_alert_receiver_view;

void stg_alert_receiver_look(const stg_alert_receiver *s,
                             stg_alert_receiver_view *view);

/* -- all of a hub: receivers.c --------------------------------------------- */

/* Zeroed, there are none. */
typedef struct stg_alert_receivers {
    stg_alert_receiver **all; /* as the options have them */
    size_t count;
    stg_alert_receiver **ending; /* of options before, not idle yet */
    size_t ending_count;
    stg_alert_receiver_view gone; /* counts of those that were freed */
} stg_alert_receivers;

/* Makes those of o, for stg_alert_receivers_replace(): all, or none. Returns
 * what stg_alert_receiver_new() does. */
stg_status stg_alert_receivers_make(stg_alert_receivers *r, stg_alert_world *w,
                                    const stg_alert_options *o,
                                    stg_alert_receiver ***made, stg_error *err);

/* made is given. What waits goes to the receiver of the same name, and is
 * given up where there is none. */
void stg_alert_receivers_replace(stg_alert_receivers *r,
                                 stg_alert_receiver **made, size_t count);

/* For idle() of the world: frees s if it is one that ends. */
void stg_alert_receivers_note_idle(stg_alert_receivers *r,
                                   stg_alert_receiver *s);

bool stg_alert_receivers_are_idle(const stg_alert_receivers *r);

/* All of them. idle() may be called from within. */
void stg_alert_receivers_cancel(stg_alert_receivers *r);

/* All are idle. */
void stg_alert_receivers_free(stg_alert_receivers *r);

/* The sums, with those that were freed. */
void stg_alert_receivers_look(const stg_alert_receivers *r,
                              stg_alert_receiver_view *view);

#endif
