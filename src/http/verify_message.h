/* verify_message.h - verifies HTTP Message Signatures. Private to verify.c. */
#ifndef STAGGER_HTTP_VERIFY_MESSAGE_H
#define STAGGER_HTTP_VERIFY_MESSAGE_H

#include "http/sign_message.h"
#include "http/verify.h"

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
