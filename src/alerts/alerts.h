/* alerts.h - the engine that decides when to alert, and the receivers.
 *
 *     stg_alerts_open(&a, &options, &world, &err);
 *     stg_alerts_stored(a, change, now);              // facts, cheap
 *     stg_alerts_close(a, closed, ctx);
 *
 * What fires is known where there is no receiver, too, so that one that comes by
 * a reload is told of it. A fact costs some 50 ns, and nothing is a fact of a
 * message that is delivered. No call waits for a receiver. A NULL stg_alerts takes
 * facts, and ignores them. All on the loop's thread. */
#ifndef STAGGER_ALERTS_ALERTS_H
#define STAGGER_ALERTS_ALERTS_H

#include "alerts/receiver.h"

/* -- a trial ------------------------------------------------------------- */

/* A test message through each receiver, and whether it accepted it.
 *
 * One attempt a receiver, all side by side (mails one after the other), with
 * receivers of its own: what waits in those of a hub is not touched. All on the
 * loop's thread. */

typedef struct stg_alert_trial stg_alert_trial;

typedef struct stg_alert_result {
    char *name;
    stg_receiver_type type;
    bool is_sent;
    char *detail; /* a line: what the server said, or what was wrong */
} stg_alert_result;

/* In the order of the options; lent for the call. The trial is gone then. */
typedef void stg_alert_trial_fn(void *ctx, const stg_alert_result *results,
                                size_t count);

/* A trial message to a receiver, or to all; borrowed but for the parts of world. */
typedef struct stg_alert_trial_options {
    const stg_alert_options *alerts; /* checked; there until the end */
    const char *receiver;            /* its name; NULL: all of them */
    const stg_alert_world *world;    /* loop, client, deadlines and mailer */
} stg_alert_trial_options;

/* done is called once, never from within this call. Returns STG_NOT_FOUND if
 * there is no such receiver, or none at all; STG_IO when there is no memory. */
stg_status stg_alert_trial_start(stg_alert_trial **trial,
                                 const stg_alert_trial_options *o,
                                 stg_alert_trial_fn *done, void *ctx);

/* Receivers give up; done is called soon. */
void stg_alert_trial_cancel(stg_alert_trial *trial);

/* "slack", "mail" ... */
const char *stg_receiver_type_name(stg_receiver_type type);

typedef struct stg_alerts stg_alerts;

/* The hub's parts that alerts need: kept, and there until the close, but for
 * egress, which is lent. */
typedef struct stg_alerts_place {
    uv_loop_t *loop;
    stg_client *client;
    stg_deadlines *deadlines;
    stg_log *log;
    const stg_egress *egress; /* for mail; NULL: see stg_mailer_new() */
    void (*describe)(void *ctx, uint32_t lane, stg_alert_target *target);
    bool (*has_tag)(void *ctx, uint32_t lane, const char *name,
                    const char *value);
    void *ctx;
} stg_alerts_place;

/* -- audience.c ------------------------------------------------------------ */

/* The receiver that a digest is made for; all of it is borrowed for the call. */
typedef struct stg_alert_audience {
    const stg_alerts_place *place;
    uint32_t alerts; /* STG_ALERT_BIT()s that are told at all */
    const stg_alert_receiver_options *receiver;
} stg_alert_audience;

/* Tells whether the receiver wants an alert of a lane; ctx is its
 * stg_alert_audience. */
bool stg_alert_audience_wants(void *ctx, stg_alert alert, uint32_t lane);

/* Fills in, for each of the next receivers, the bits of those in `all` with the
 * same destination, and with the same name. True: a destination is new. */
bool stg_alert_audience_change(const stg_alert_receivers *all,
                               stg_alert_receiver *const *next, size_t count,
                               stg_alert_successor from[STG_ALERT_READERS_MAX]);

/* -- all of it ------------------------------------------------------------- */

/* o has been checked. Its texts and lists are the caller's, and kept until other
 * options are in use, or the close. Returns STG_INVALID or STG_IO with words that name the receiver: a
 * secret or a certificate that cannot be read, no memory. */
stg_status stg_alerts_open(stg_alerts **a, const stg_alert_options *o,
                           const stg_alerts_place *place, stg_error *err);

/* Other options from now on, all or nothing. What is known is kept, and what
 * waits in a receiver goes on in the one of the same name. */
stg_status stg_alerts_change(stg_alerts *a, const stg_alert_options *o,
                             stg_error *err);

/* Targets or options have changed, and what holds now was said: receivers are soon
 * told of what fires and was not told to them. What was told at the same
 * destination is not told again. */
void stg_alerts_catch_up(stg_alerts *a, stg_ns now);

/* The same in two steps. The first one does all that can fail, and changes nothing;
 * *next is for one of the two calls behind it, before `a` is changed or closed. */
typedef struct stg_alerts_next stg_alerts_next;
stg_status stg_alerts_prepare(stg_alerts *a, const stg_alert_options *o,
                              stg_alerts_next **next, stg_error *err);
void stg_alerts_use(stg_alerts *a, stg_alerts_next *next);
void stg_alerts_drop(stg_alerts_next *next); /* NULL is none */

/* Holds the rule for mails from now on. */
void stg_alerts_use_egress(stg_alerts *a, stg_egress_rule *egress);

/* What is known is told at once, and receivers have STG_ALERTS_LAST for it;
 * then closed is called, perhaps from within this call, and a is gone. NULL is
 * closed at once. */
#define STG_ALERTS_LAST (5 * STG_S)
void stg_alerts_close(stg_alerts *a, void (*closed)(void *ctx), void *ctx);

/* Sends a test message through each receiver, or one (its name): see stg_alert_trial.
 * One trial at a time. Returns STG_NOT_FOUND if there is no such receiver, or
 * none at all; STG_INVALID while another one is under way; STG_IO when there is
 * no memory. */
stg_status stg_alerts_try(stg_alerts *a, const char *receiver,
                          stg_alert_trial_fn *done, void *ctx);

/* What a hub is called in messages. */
void stg_alerts_hub_name(const stg_alert_options *o,
                         char name[STG_DIGEST_NAME_MAX]);

/* -- facts: see engine.h --------------------------------------------------- */

void stg_alerts_stored(stg_alerts *a, const stg_change *c, stg_ns now);
void stg_alerts_raise(stg_alerts *a, stg_alert alert, uint32_t lane,
                      const stg_alert_detail *detail, stg_ns now);
void stg_alerts_clear(stg_alerts *a, stg_alert alert, uint32_t lane,
                      stg_ns now);
bool stg_alerts_is_raised(const stg_alerts *a, stg_alert alert, uint32_t lane);
void stg_alerts_leave(stg_alerts *a, uint32_t lane, stg_ns now);
void stg_alerts_forget(stg_alerts *a, uint32_t lane, const char *name,
                       stg_ns now);

/* Tells the owner of a target (see stg_alert_owner_options()), and nobody else, of a
 * condition of the lane that has begun at `since`. Where there is no receiver, too. */
void stg_alerts_tell_owner(stg_alerts *a, const char *owner, stg_alert alert,
                           uint32_t lane, const stg_alert_detail *detail,
                           stg_ns now);

/* These compare with what the options say: raised at it, cleared at half. */

/* So many messages behind; and the oldest waits for so long. */
void stg_alerts_lag(stg_alerts *a, uint32_t lane, uint64_t messages, stg_ns age,
                    stg_ns now);

/* Until when a certificate is valid, and what time it is, in ns since 1970. */
void stg_alerts_certificate(stg_alerts *a, uint32_t lane, uint64_t until,
                            uint64_t utc, stg_ns now);

/* How much of what the log may keep is kept for the lane, in percent. */
void stg_alerts_retention(stg_alerts *a, uint32_t lane, uint64_t percent,
                          stg_ns now);

/* Facts are taken: there is a hub, and it does not end. */
bool stg_alerts_are_on(const stg_alerts *a);

/* -- a look ---------------------------------------------------------------- */

typedef struct stg_alerts_view {
    uint32_t firing[STG_ALERT_COUNT]; /* what holds now */
    uint64_t digests;                 /* since the start */
    uint64_t sent, failed, given_up,
        merged;       /* of all receivers, with those that are no more */
    uint32_t waiting; /* of all receivers */
    size_t receivers;
} stg_alerts_view;

void stg_alerts_look(const stg_alerts *a, stg_alerts_view *view);

/* The receiver number i from 0. STG_NOT_FOUND: there are no more. */
stg_status stg_alerts_look_receiver(const stg_alerts *a, size_t i,
                                    stg_alert_receiver_view *view);

#endif
