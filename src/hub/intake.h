/* intake.h - the hub's ingress, connected to its store.
 *
 * Zeroed before it is opened. */
#ifndef STAGGER_HUB_INTAKE_H
#define STAGGER_HUB_INTAKE_H

#include "hub/hub.h"
#include "ingress/ingress.h"

typedef struct stg_intake {
    stg_hub *hub;
    stg_ingress *ingress; /* NULL: not open */
    bool is_stopping;     /* was told to stop and has not */
    uint64_t accepted;    /* messages, of what is closed */
    char address[120];    /* of the ingress; "": none */
    uint16_t port;
} stg_intake;

/* The largest body of a message. */
size_t stg_intake_message_max(uint64_t memory_max);

/* The hub's store is open. Adds one to *parts if the intake is to be closed. */
stg_status stg_intake_open(stg_intake *in, stg_hub *hub, const stg_settings *o,
                           unsigned *parts, stg_error *err);

/* What of these settings can change while it is open: all of it or nothing, as
 * stg_ingress_change() says. */
stg_status stg_intake_change(stg_intake *in, const stg_settings *o,
                             stg_error *err);

/* No message is taken from here on. stg_hub_finish() is called when all were
 * answered. */
void stg_intake_stop(stg_intake *in);

/* Closes it, stopped or not; closed is called if it was open. */
void stg_intake_close(stg_intake *in, void (*closed)(void *ctx), void *ctx);

/* Why the hub takes no messages now; NULL: it does. For /readyz and status. */
const char *stg_intake_missing(const stg_hub *h);

/* Messages taken so far. */
uint64_t stg_intake_accepted(const stg_intake *in);

#endif
