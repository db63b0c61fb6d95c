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

#include <uv.h>

#include <stagger/outcome.h>
#include <stagger/policy.h>
#include <stagger/rng.h>

#include "alerts/digest.h"
#include "alerts/options.h"
#include "base/list.h"
#include "host/deadlines.h"
#include "host/log.h"
#include "http/client.h"
#include "http/egress.h"

/* -- mails --------------------------------------------------------------- */

/* One mail at a time, by libcurl, in libuv's thread pool.
 *
 * One at a time, so that a server that hangs holds one thread of the pool, for
 * one timeout at most, and names go on being resolved in the others. The server
 * is checked (TLS 1.2 or later, its name and its chain); proxies and .netrc of
 * the environment are ignored; no connection is made to an address that egress
 * forbids. All calls on the loop's thread. */

typedef struct stg_mailer stg_mailer;
typedef struct stg_mail stg_mail;

/* NULL: there is no memory. egress is copied, and may be NULL: what it allows
 * by itself. */
stg_mailer *stg_mailer_new(uv_loop_t *loop, const stg_egress *egress);

/* Another rule from the next mail on, which the mailer holds. */
void stg_mailer_use_egress(stg_mailer *m, stg_egress_rule *egress);

/* Nothing is under way, nothing waits. */
void stg_mailer_free(stg_mailer *m);

typedef struct stg_mail_order {
    const stg_alert_receiver_options *receiver; /* copied what it needs */
    const char *password;                       /* copied; NULL: no login */
    const char *text; /* of stg_mail_print(); copied */
    bool is_strict;   /* no recipient may be refused; else one is enough */
} stg_mail_order;

/* What came of it, on the loop's thread. detail is a line for people, with the
 * server's own words; lent. */
typedef void stg_mail_fn(void *ctx, const stg_outcome *outcome,
                         const char *detail);

/* Sends it when those before it are through; done is called once, never from
 * within this call. NULL: there is no memory. */
stg_mail *stg_mailer_send(stg_mailer *m, const stg_mail_order *o,
                          stg_mail_fn *done, void *ctx);

/* Ends it: done is called within a second or two. */
void stg_mail_cancel(stg_mail *mail);

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

/* A number for where it sends to: type, URL, key, and recipients of a mail. Headers,
 * passwords and filters do not count. */
uint64_t stg_alert_receiver_destination(const stg_alert_receiver *s);

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

/* Frees those that were made and are not to replace any. */
void stg_alert_receivers_drop(stg_alert_receiver **made, size_t count);

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

/* -- receiver_open.c ----------------------------------------------------- */

/* What a receiver needs before it can send: its secrets, and the
 * endpoint of its URL with its headers. */

/* Copies of what options point to. Zeroed, there are none. */
typedef struct stg_receiver_kept {
    char **texts;
    size_t count;
    stg_alert_header *headers;
    const char **to;
} stg_receiver_kept;

/* From here on o has texts of its own, but for secrets and their files, and for
 * what says which alerts it wants. False: no memory. To be freed in any case. */
bool stg_receiver_keep(stg_receiver_kept *k, stg_alert_receiver_options *o);
void stg_receiver_kept_free(stg_receiver_kept *k);

/* "alerts: receiver NAME: WORDS". Returns status. */
stg_status stg_receiver_refuse(stg_error *err, stg_status status,
                               const char *name, const char *words);

/* To be given to stg_secret_free(). */
stg_status stg_receiver_read_secret(const char *name, const char *path,
                                    char **secret, stg_error *err);

/* Its endpoint; reads what it needs out of files, but the key. event: what is
 * sent, where its URL depends on that; NULL: an alert that begins. Returns
 * STG_INVALID or STG_IO with words that name the receiver, and no secret. */
stg_status stg_receiver_open(const stg_alert_world *w,
                             const stg_alert_receiver_options *o,
                             const char *key, const stg_digest *event,
                             stg_endpoint **endpoint, stg_error *err);

/* The text of a digest as its type sends it, to be freed by stg_secret_free(). id: of
 * a mail. NULL: no memory. */
char *stg_receiver_print(const stg_alert_receiver_options *o, const char *key,
                         const stg_digest *d, uint64_t id);

/* -- owner.c: owners of targets ------------------------------------------ */

/* What is told to the owner of one target, and to nobody else: a mail
 * address or a URL that takes JSON, with a receiver made for that one message. */

/* Messages under way at once; more are not sent, and logged. */
enum { STG_ALERT_OWNERS_MAX = 1000 };

typedef struct stg_alert_owners {
    stg_alert_world world; /* of these receivers */
    stg_list letters;
    size_t count;
    void (*idle)(void *ctx); /* none is under way any more */
    void *ctx;
} stg_alert_owners;

/* w: that of a hub's receivers. It is retried as they do, and then given up. */
void stg_alert_owners_init(stg_alert_owners *all, const stg_alert_world *w,
                           void (*idle)(void *ctx), void *ctx);

/* o: whose first receiver of type mail says how mails go. What is not sent is
 * logged, with the target's name. */
void stg_alert_owners_tell(stg_alert_owners *all, const stg_alert_options *o,
                           const char *owner, const char *target,
                           const stg_digest *d);

/* There is no later. */
void stg_alert_owners_end_soon(stg_alert_owners *all);
/* idle() may be called from within. */
void stg_alert_owners_cancel(stg_alert_owners *all);

/* -- signing.c ----------------------------------------------------------- */

/* Signatures of alerts that go to webhooks: as those of targets
 * (http/sign.h). */

/* Checks scheme and secrets. Returns STG_INVALID with the setting and words that
 * repeat no secret. */
stg_status stg_alert_signing_check(const stg_alert_receiver_options *o,
                                   const char **field, stg_error *err);

/* NULL: it does not sign. o has been checked. */
stg_status stg_alert_signing_open(const stg_alert_receiver_options *o,
                                  stg_signer **signer, stg_error *err);

/* The headers, and behind them those of the signature, by the time of now: of a POST
 * of a body of that type to url. To be freed; NULL: no memory. */
char *stg_alert_signing_put(const stg_signer *s, const char *headers,
                            const char *url, const char *type, const char *id,
                            const char *body);

#endif
