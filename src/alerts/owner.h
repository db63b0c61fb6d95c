/* owner.h - what is told to the owner of one target, and to nobody else: a mail
 * address or a URL that takes JSON, with a receiver made for that one message. */
#ifndef STAGGER_ALERTS_OWNER_H
#define STAGGER_ALERTS_OWNER_H

#include "alerts/receiver.h"

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

#endif
