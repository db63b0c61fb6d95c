/* sign.h - signs requests: header lines made of secrets, an id, a time and a
 * body.
 *
 *     scheme            lines                                   what is signed
 *     standard-webhooks Webhook-Id, Webhook-Timestamp,          ID.TIME.BODY
 *                       Webhook-Signature: v1,BASE64 v1a,BASE64
 *     github            X-Hub-Signature-256: sha256=HEX         BODY
 *     stripe            Stripe-Signature: t=TIME,v1=HEX,v1=HEX  TIME.BODY
 *     rfc9421           Content-Digest, Signature-Input,        what is covered
 *                       Signature
 *     custom            HEADER: PREFIX and HEX or BASE64        as it says
 *
 * TIME is in seconds since 1970. Sources: the Standard Webhooks specification
 * 1.0.0; GitHub and Stripe, the documentation of their webhooks. A signer's keys
 * are prepared when it is made. Pure: no clock, no file. A signer is used by one
 * thread at a time, but for what says otherwise. */
#ifndef STAGGER_HTTP_SIGN_H
#define STAGGER_HTTP_SIGN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <stagger/status.h>

#include "base/span.h"

typedef enum stg_sign_scheme {
    STG_SIGN_NONE,
    STG_SIGN_STANDARD, /* Standard Webhooks: HMAC-SHA256 and Ed25519 */
    STG_SIGN_GITHUB,
    STG_SIGN_STRIPE,
    STG_SIGN_MESSAGE, /* RFC 9421, HTTP Message Signatures */
    STG_SIGN_CUSTOM,
} stg_sign_scheme;

/* Of STG_SIGN_CUSTOM the hash of an HMAC, the first two; of STG_SIGN_MESSAGE what a
 * key of RSA is used by, the last two. */
typedef enum stg_sign_algorithm {
    STG_SIGN_SHA256,
    STG_SIGN_SHA512,
    STG_SIGN_RSA_PSS,
    STG_SIGN_RSA,
} stg_sign_algorithm;

typedef enum stg_sign_encoding {
    STG_SIGN_HEX,
    STG_SIGN_BASE64,
} stg_sign_encoding;

/* Their words, in the order of the enums; ended by NULL. */
extern const char *const stg_sign_schemes[], *const stg_sign_algorithms[],
                                                 *const stg_sign_encodings[];

/* The scheme that an algorithm is of. */
static inline stg_sign_scheme stg_sign_algorithm_scheme(stg_sign_algorithm a)
{
    return a <= STG_SIGN_SHA512 ? STG_SIGN_CUSTOM : STG_SIGN_MESSAGE;
}

/* All but the scheme is of STG_SIGN_CUSTOM, or of STG_SIGN_MESSAGE. A
 * verifier keeps the texts, a signer does not. */
typedef struct stg_sign_options {
    stg_sign_scheme scheme;
    const char *header;      /* of the signature */
    const char *time_header; /* of the time; NULL: there is none */
    const char *id_header;   /* of the id; NULL: there is none */
    const char *signs;       /* a text with {id}, {timestamp} and {body}, of
                                which {body} is needed; NULL: {body} */
    const char *prefix;      /* of the header's value; NULL: none */
    stg_sign_algorithm algorithm;
    stg_sign_encoding encoding;

    /* -- of STG_SIGN_MESSAGE */
    const char *const *covers; /* components: "@method", "content-digest" */
    size_t cover_count;        /* 0: those that sign_message.c has */
    const char *key_id;        /* NULL: none is said */
} stg_sign_options;

/* What is signed. Of schemes but STG_SIGN_MESSAGE id, time and body alone. */
typedef struct stg_sign_request {
    stg_span id;
    uint64_t seconds; /* since 1970 */
    stg_span body;
    stg_span content_type;    /* empty: it has none */
    const char *method, *url; /* of the request, as stg_url_parse() takes it */
} stg_sign_request;

/* A secret of the settings; it is never shown. */
typedef struct stg_sign_secret {
    const char *value;
    const char *file; /* where it came from; NULL: from the settings */
} stg_sign_secret;

/* Their values, as an array to be freed. NULL: no memory. */
const char **stg_sign_secret_texts(const stg_sign_secret *secrets,
                                   size_t count);

typedef struct stg_signer stg_signer;

/* Whether they have the same words and the same texts, by where these are. */
bool stg_sign_same(const stg_sign_options *a, const stg_sign_options *b);

/* Checks what is custom, all but secrets. Returns STG_INVALID with words that
 * begin with the field. */
stg_status stg_sign_check(const stg_sign_options *o, stg_error *err);

/* How many secrets a request of the scheme can be signed with. */
size_t stg_sign_secrets_max(stg_sign_scheme scheme);

/* Checks a secret for the scheme. Returns STG_INVALID with words about what to
 * do, which do not repeat it. */
stg_status stg_sign_check_secret(const stg_sign_options *o, const char *secret,
                                 stg_error *err);

/* Options, texts and secrets are not kept; they have passed the checks above. Returns
 * STG_IO without memory. */
stg_status stg_signer_new(stg_signer **signer, const stg_sign_options *o,
                          const char *const *secrets, size_t count,
                          stg_error *err);
void stg_signer_free(stg_signer *s); /* NULL is none */

/* Takes one more reference, which stg_signer_free() gives back; the last one
 * frees the signer. All holders are on one thread. Returns s. */
stg_signer *stg_signer_hold(stg_signer *s);

/* Whether it has a key of a pair, which takes fifty times as long as an HMAC, and of
 * RSA a thousand times. */
bool stg_signer_is_slow(const stg_signer *s);

/* Whether the scheme has a header of this name. */
bool stg_sign_sets(const stg_sign_options *o, stg_span name);
bool stg_signer_sets(const stg_signer *s, stg_span name);

/* How many bytes the lines have at most, with an id of this size. */
size_t stg_signer_room(const stg_signer *s, size_t id_size);

/* Writes the lines to `to`, which has that room, and returns their end. NULL:
 * there was no memory. */
char *stg_signer_put(const stg_signer *s, char *to, const stg_sign_request *r);

/* The same on any thread, beside other calls. */
char *stg_signer_put_aside(const stg_signer *s, char *to,
                           const stg_sign_request *r);

#endif
