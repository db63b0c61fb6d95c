/* intake.h - where messages come in: the ingress, lines of a file, or both.
 *
 * Zeroed before it is opened. */
#ifndef STAGGER_HUB_INTAKE_H
#define STAGGER_HUB_INTAKE_H

#include "hub/hub.h"
#include "ingress/ingress.h"
#include "sources/lines.h"

typedef struct stg_intake {
    stg_hub *hub;
    stg_ingress *ingress; /* NULL: none */
    stg_lines *lines;     /* NULL: none */
    unsigned stopping;    /* parts that were told to stop and have not */
    uint64_t accepted;    /* messages, of what is closed */
    bool is_ended;        /* all lines of the input are durable */
    uint64_t end;         /* the position behind all that came in */
    char address[120];    /* of the ingress; "": none */
    uint16_t port;
    /* the batch of lines that is with the store: one at a time */
    stg_append_fn *appended;
    size_t appending;
    void *appended_ctx;
} stg_intake;

/* The largest body of a message. */
size_t stg_intake_message_max(uint64_t memory_max);

/* The hub's store is open. What has been opened is to be closed, also after an
 * error; *parts counts it. */
stg_status stg_intake_open(stg_intake *in, stg_hub *hub, const stg_settings *o,
                           unsigned *parts, stg_error *err);

/* What of these settings can change while it is open: all of it or nothing, as
 * stg_ingress_change() says. */
stg_status stg_intake_change(stg_intake *in, const stg_settings *o,
                             stg_error *err);

/* No message is taken from here on. stg_hub_finish() is called when all were
 * answered. */
void stg_intake_stop(stg_intake *in);

/* Closes all of it, stopped or not; closed is called for each part. */
void stg_intake_close(stg_intake *in, void (*closed)(void *ctx), void *ctx);

/* Why the hub takes no messages now; NULL: it does. For /readyz and status. */
const char *stg_intake_missing(const stg_hub *h);

/* Messages taken so far. */
uint64_t stg_intake_accepted(const stg_intake *in);

#endif
