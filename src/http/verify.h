/* verify.h - whether a request was signed with a secret: what a receiver does.
 *
 * The schemes are those of sign.h. Secrets and signatures are several, for both
 * sides may be in rotation: one pair that fits is enough. What an unsigned request
 * costs is bounded: a hash of the body for each secret, and 8 signatures. Pure: no
 * clock, no file. A verifier is used by one thread at a time. */
#ifndef STAGGER_HTTP_VERIFY_H
#define STAGGER_HTTP_VERIFY_H

#include <stdbool.h>
#include <stdint.h>

#include <stagger/status.h>

#include "base/span.h"
#include "http/sign.h"

/* How far a timestamp may be from now, in seconds. */
enum { STG_VERIFY_WINDOW = 300 };

typedef enum stg_signature {
    STG_SIGNATURE_RIGHT,
    STG_SIGNATURE_MISSING, /* a header of it is missing, double or unreadable */
    STG_SIGNATURE_STALE,   /* its timestamp is too far from now */
    STG_SIGNATURE_WRONG,   /* none is right for a secret */
} stg_signature;

typedef struct stg_verifier stg_verifier;

/* Checks what is custom, and a secret, which may be a public key. As
 * stg_sign_check() and stg_sign_check_secret(), but that the headers are the
 * sender's, which may use names that are the hub's own. */
stg_status stg_verify_check(const stg_sign_options *o, stg_error *err);
stg_status stg_verify_check_secret(const stg_sign_options *o,
                                   const char *secret, stg_error *err);

/* Of requests of one scheme. window: in seconds. Options and secrets have passed
 * the checks above; the options' texts are the caller's, and kept as long as the
 * verifier. Returns STG_IO without memory. */
stg_status stg_verifier_new(stg_verifier **v, const stg_sign_options *o,
                            const char *const *secrets, size_t count,
                            uint64_t window, stg_error *err);

/* Of requests of any scheme but STG_SIGN_CUSTOM, by the header with a signature:
 * Webhook-Signature, X-Hub-Signature-256, Stripe-Signature or Signature-Input.
 * Returns STG_INVALID
 * with words that do not repeat the secret: one that is too short, or a key of
 * Ed25519 that is none. */
stg_status stg_verifier_new_any(stg_verifier **v, const char *secret,
                                stg_error *err);
void stg_verifier_free(stg_verifier *v); /* NULL is none */

/* A request, of which only STG_SIGN_MESSAGE needs more than lines and body. */
typedef struct stg_verify_request {
    stg_span lines; /* STG_PART_LINES of it, and so on */
    stg_span body;
    stg_span method, path, query, host;
} stg_verify_request;

struct stg_request;
stg_verify_request stg_verify_request_of(const struct stg_request *r,
                                         stg_span body);

/* Whether it has a signature of the body that is right, and not too old at `now`,
 * seconds since 1970. why says why not. */
stg_signature stg_verifier_check(const stg_verifier *v,
                                 const stg_verify_request *r, uint64_t now,
                                 stg_error *why);

/* The same before the body is there: STG_SIGNATURE_RIGHT says that a signature
 * may be. Only of one that has a scheme. */
stg_signature stg_verifier_check_head(const stg_verifier *v,
                                      const stg_verify_request *r, uint64_t now,
                                      stg_error *why);

#endif
