/* mailer.h - one mail at a time, by libcurl, in libuv's thread pool.
 *
 * One at a time, so that a server that hangs holds one thread of the pool, for
 * one timeout at most, and names go on being resolved in the others. The server
 * is checked (TLS 1.2 or later, its name and its chain); proxies and .netrc of
 * the environment are ignored; no connection is made to an address that egress
 * forbids. All calls on the loop's thread. */
#ifndef STAGGER_ALERTS_MAILER_H
#define STAGGER_ALERTS_MAILER_H

#include <uv.h>

#include <stagger/outcome.h>

#include "alerts/options.h"
#include "base/list.h"
#include "http/egress.h"

typedef struct stg_mailer stg_mailer;
typedef struct stg_mail stg_mail;

/* NULL: there is no memory. egress is copied, and may be NULL: what it allows
 * by itself. */
stg_mailer *stg_mailer_new(uv_loop_t *loop, const stg_egress *egress);

/* Another rule from the next mail on. False: there is no memory. */
bool stg_mailer_set_egress(stg_mailer *m, const stg_egress *egress);

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

#endif
