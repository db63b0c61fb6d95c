/* signing.h - signatures that take long, made on libuv's threads.
 *
 * Those that were asked for in a turn of the loop go to the threads together, in
 * batches, so that the loop pays for a batch and not for each. */
#ifndef STAGGER_HUB_SIGNING_H
#define STAGGER_HUB_SIGNING_H

#include <uv.h>

#include "base/list.h"
#include "http/sign.h"

typedef struct stg_signing stg_signing;

/* The lines of a signature, lent for the call; at is NULL: there was no memory. */
typedef void stg_signed_fn(void *ctx, stg_span lines);

typedef struct stg_signings {
    uv_loop_t *loop;
    stg_list asked; /* in this turn */
    size_t count;   /* of them */
} stg_signings;

void stg_signings_init(stg_signings *all, uv_loop_t *loop);

/* Asks for one. Body and type of the request are kept until `done`, which is called
 * once, in a later turn, and cannot be taken back; the rest is copied. The signer is
 * held. False: there is no memory. */
bool stg_signings_ask(stg_signings *all, stg_signer *s,
                      const stg_sign_request *r, stg_signed_fn *done,
                      void *ctx);

/* Sends those of this turn to the threads. */
void stg_signings_flush(stg_signings *all);

#endif
