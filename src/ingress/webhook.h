/* webhook.h - webhooks that others send: POST /v1/in/NAME.
 *
 * A request that is signed as the webhook says is a message, and needs no token. It
 * is stored once by the id that its sender gave the delivery, within the time that
 * idempotency keys are kept: a redelivery with that id is a repeat, also if other
 * bytes came with it. Ids of two webhooks have nothing to do with each other.
 *
 *     scheme            the id of a delivery
 *     standard-webhooks Webhook-Id
 *     github            X-GitHub-Delivery
 *     stripe            "id" of the body
 *     custom            sign.id_header, else Idempotency-Key */
#ifndef STAGGER_INGRESS_WEBHOOK_H
#define STAGGER_INGRESS_WEBHOOK_H

#include <stagger/ns.h>

#include "http/verify.h"

enum { STG_WEBHOOKS_MAX = 100 };

/* Texts, lists and verifier are the settings' that it is of. */
typedef struct stg_webhook {
    const char *name;
    stg_sign_options sign;
    stg_ns tolerance;           /* of the timestamp: 1 s to 1 d */
    const char *topic;          /* of a log of several; NULL: it has one */
    const char *const *headers; /* those kept of a message; NULL: those of
                                   stg_ingress_options */
    const stg_verifier *verifier;
} stg_webhook;

#endif
