/* trial.h - a test message through each receiver, and whether it accepted it.
 *
 * One attempt a receiver, all side by side (mails one after the other), with
 * receivers of its own: what waits in those of a hub is not touched. All on the
 * loop's thread. */
#ifndef STAGGER_ALERTS_TRIAL_H
#define STAGGER_ALERTS_TRIAL_H

#include "alerts/receiver.h"

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

/* What is tried, and where; borrowed but for the parts of world. */
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

#endif
