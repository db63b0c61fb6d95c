/* sign_message.h - HTTP Message Signatures: RFC 9421, with the digest of the body
 * of RFC 9530. What both sides have in common: components, and the signature base
 * that they make. Private to sign.c and verify.c. */
#ifndef STAGGER_HTTP_SIGN_MESSAGE_H
#define STAGGER_HTTP_SIGN_MESSAGE_H

#include "base/text.h"
#include "http/sign.h"
#include "http/sign_key.h"
#include "http/verify.h"

enum {
    STG_COVERS_MAX = 16,
    STG_DIGEST_SIZE = 32, /* of SHA-256 */
    STG_DIGEST_MAX = 64   /* of SHA-512 */
};

/* Options, with what stands for none. */
typedef struct stg_sign_message {
    const char *const *covers;
    size_t count;
    const char *key_id;
} stg_sign_message;

stg_sign_message stg_sign_message_of(const stg_sign_options *o);

/* is_ours: the hub signs, so that it has to know each component's value. */
stg_status stg_sign_message_check(const stg_sign_options *o, bool is_ours,
                                  stg_error *err);

/* How many bytes its three lines have at most. */
size_t stg_sign_message_room(const stg_sign_message *m, const stg_sign_key *k);

/* See stg_signer_put(). */
char *stg_sign_message_put(const stg_sign_message *m, const stg_sign_key *k,
                           EVP_MD_CTX *work, char *to,
                           const stg_sign_request *r);

/* False: there is no memory. */
bool stg_sign_message_hash(EVP_MD_CTX *work, const EVP_MD *by, stg_span body,
                           unsigned char hash[STG_DIGEST_MAX]);

/* Where a request goes, for the components that begin with '@'. Path and query are
 * as in the request line; query.at NULL: there is no '?'. */
typedef struct stg_sign_target {
    stg_span method, authority, path, query;
    bool is_tls;
} stg_sign_target;

/* Adds the component's line, "\"@path\": /in\n". False: there is no such
 * component. */
bool stg_sign_message_derive(stg_text *base, stg_span name,
                             const stg_sign_target *t);

/* Adds the line of a field. */
void stg_sign_message_field(stg_text *base, stg_span name, stg_span value);

/* -- verify_message.c ---------------------------------------------------- */

/* Verifies HTTP Message Signatures. Private to verify.c. */

/* What a signature has to cover, at least: o->covers, else content-digest. */
stg_sign_message stg_verify_message_of(const stg_sign_options *o);

/* Whether one of the request's signatures is that of one of the keys, and the body
 * that of its digest. */
stg_signature stg_verify_message(const stg_sign_message *m,
                                 const stg_sign_key *keys, size_t count,
                                 EVP_MD_CTX *work, const stg_verify_request *r,
                                 uint64_t window, uint64_t now, stg_error *why);

/* -- verify.c -------------------------------------------------------------- */

/* The value of a header that is there once. False: it is not, and why says so. */
bool stg_verify_header(stg_span lines, const char *name, stg_span *value,
                       stg_error *why);

/* Whether a number of seconds is within the window. */
stg_signature stg_verify_time(stg_span time, uint64_t window, uint64_t now,
                              stg_error *why);

#endif
