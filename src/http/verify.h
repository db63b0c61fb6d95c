/* verify.h - whether a request was signed with a secret: what a receiver does.
 *
 * The scheme is that of the header with a signature: Webhook-Signature,
 * X-Hub-Signature-256 or Stripe-Signature (sign.h). Pure: no clock, no file. */
#ifndef STAGGER_HTTP_VERIFY_H
#define STAGGER_HTTP_VERIFY_H

#include <stdbool.h>
#include <stdint.h>

#include <stagger/status.h>

#include "base/span.h"

/* How far a timestamp may be from now, in seconds. */
enum { STG_VERIFY_WINDOW = 300 };

typedef struct stg_verifier stg_verifier;

/* Returns STG_INVALID with words that do not repeat the secret: one that is too
 * short, or a key of Ed25519 that is none. */
stg_status stg_verifier_new(stg_verifier **v, const char *secret,
                            stg_error *err);
void stg_verifier_free(stg_verifier *v); /* NULL is none */

/* Whether lines, STG_PART_LINES of a request, have a signature of the body that is
 * right, and not too old at `now`, seconds since 1970. False: why says why. */
bool stg_verifier_check(const stg_verifier *v, stg_span lines, stg_span body,
                        uint64_t now, stg_error *why);

#endif
