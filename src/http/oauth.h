/* oauth.h - access tokens of OAuth 2.0, by client credentials: what is asked of a
 * token endpoint, and what its answer says.
 *
 *     grant_type=client_credentials, scope and audience   RFC 6749, section 4.4
 *     auth basic   Authorization: Basic ID:SECRET         section 2.3.1
 *          body    client_id and client_secret
 *          a private key: client_assertion, a JWT         RFC 7523, section 2.2
 *
 * Pure: no clock, no file, no socket. Whatever an answer says goes no further than
 * a token of RFC 6750 and words that a line of a log may have. */
#ifndef STAGGER_HTTP_OAUTH_H
#define STAGGER_HTTP_OAUTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <openssl/evp.h>

#include <stagger/ns.h>
#include <stagger/status.h>

#include "base/span.h"
#include "base/text.h"

typedef enum stg_oauth_auth {
    STG_OAUTH_BASIC,
    STG_OAUTH_BODY,
} stg_oauth_auth;

/* Texts are those of whoever made it, which a token copies; NULL: there is none. */
typedef struct stg_oauth_options {
    const char *token_url;       /* of the token endpoint */
    const char *token_url_shown; /* to people; NULL: as token_url */
    const char *client_id;
    const char *client_secret; /* this, or */
    const char *private_key;   /* this: PEM of an RSA key of 2048 to 8192 bits
                                  (RS256), of P-256 (ES256) or Ed25519 (EdDSA) */
    const char *key_id;        /* its `kid`, for the server */
    const char *assertion_audience; /* `aud` of the JWT; NULL: token_url */
    const char *scope;              /* those wanted, with blanks between them */
    const char *audience;
    stg_oauth_auth auth; /* with client_secret */
    const char *ca_file; /* of the server; NULL: the system's */
} stg_oauth_options;

/* Whether both ask for the same token in the same way: by the texts. */
bool stg_oauth_same(const stg_oauth_options *a, const stg_oauth_options *b);

/* Checks all but the file. Returns STG_INVALID with words that begin with the
 * setting ("client-secret: ...") and do not repeat a secret. */
stg_status stg_oauth_check(const stg_oauth_options *o, stg_error *err);

/* The key of a PEM text, to be freed by EVP_PKEY_free(). Returns STG_INVALID with
 * words that do not repeat it. */
stg_status stg_oauth_key_read(EVP_PKEY **key, const char *text, stg_error *err);

/* A JWT that says who the client is, valid for 5 minutes from `seconds` (since
 * 1970). id is its jti, which is not used again. To be freed; NULL: no memory. */
char *stg_oauth_assertion(const stg_oauth_options *o, EVP_PKEY *key,
                          uint64_t seconds, const char *id);

/* Adds the lines of a request's head, and its body. assertion: of the above, with a
 * private key; else NULL. Both hold secrets: wipe them. */
void stg_oauth_request(const stg_oauth_options *o, const char *assertion,
                       stg_text *headers, stg_text *body);

enum { STG_OAUTH_ANSWER_MAX = 64 << 10, STG_OAUTH_TOKEN_MAX = 16 << 10 };

typedef struct stg_oauth_answer {
    char *token;     /* to be freed */
    stg_ns lifetime; /* expires_in, 365 d at most; 0: it does not say */
} stg_oauth_answer;

/* Reads the answer of a status and body. Returns STG_INVALID with words for one
 * line, without anything that may be a token, such as "answered 401
 * invalid_client (no such client)"; STG_IO without memory. */
stg_status stg_oauth_answer_read(stg_oauth_answer *a, int status, stg_span body,
                                 stg_error *err);

#endif
