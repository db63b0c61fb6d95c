/* sign_key.h - a secret that requests are signed with, or verified: of an HMAC,
 * or a key of a pair.
 *
 * Prepared once: of an HMAC both states behind the key's padded block are kept,
 * so that a message costs two copies of a state and its own bytes. Source:
 * RFC 2104, section 4. A key does not change while it is used; the EVP_MD_CTX
 * that each call works in is the caller's, and no other thread's meanwhile. */
#ifndef STAGGER_HTTP_SIGN_KEY_H
#define STAGGER_HTTP_SIGN_KEY_H

#include <stdbool.h>
#include <stddef.h>

#include <openssl/evp.h>

#include <stagger/status.h>

#include "base/span.h"

/* -- pairs of keys ---------------------------------------------------------- */

/* Whoever signs or verifies brings the EVP_MD_CTX to work in, which no other thread
 * has meanwhile.
 *
 * P256 is ECDSA with SHA-256: the two numbers of 32 bytes each, as RFC 9421 and RFC
 * 7518 have them. RSA is RSASSA-PKCS1-v1_5 with SHA-256; RSA_PSS is RSASSA-PSS with
 * SHA-512 and a salt of 64 bytes (RFC 8017). */
typedef enum stg_pair {
    STG_PAIR_NONE,
    STG_PAIR_ED25519,
    STG_PAIR_P256,
    STG_PAIR_RSA,
    STG_PAIR_RSA_PSS,
} stg_pair;

enum {
    STG_PAIR_RSA_BITS_MIN = 2048,
    STG_PAIR_RSA_BITS_MAX = 8192,
    STG_PAIR_SIGNATURE_MAX = STG_PAIR_RSA_BITS_MAX / 8 /* bytes */
};

/* Returns the kind's name in RFC 9421, such as "ed25519". */
const char *stg_pair_name(stg_pair kind);

/* STG_PAIR_NONE: another kind of key, or RSA of another size or hash. STG_PAIR_RSA: it makes
 * both kinds of RSA. STG_PAIR_RSA_PSS: it says itself that it makes no other. */
stg_pair stg_pair_of(EVP_PKEY *key);

/* False: there is no memory, or the key is public. */
bool stg_pair_sign(EVP_PKEY *key, stg_pair kind, EVP_MD_CTX *work,
                   stg_span text,
                   unsigned char signature[STG_PAIR_SIGNATURE_MAX],
                   size_t *size);

bool stg_pair_verify(EVP_PKEY *key, stg_pair kind, EVP_MD_CTX *work,
                     stg_span text, stg_span signature);

/* -- keys as texts ---------------------------------------------------------- */

enum {
    STG_SIGN_KEY_LEAST = 24, /* bytes, as Standard Webhooks has it */
    STG_SIGNATURE_MAX = STG_PAIR_SIGNATURE_MAX /* bytes */
};

typedef struct stg_sign_key {
    EVP_MD_CTX *inner, *outer; /* of an HMAC; else NULL */
    EVP_PKEY *pair;            /* else NULL */
    stg_pair kind;             /* of it, by which it signs */
    stg_pair other;            /* by which it may verify, too; STG_PAIR_NONE */
    bool is_public;            /* of a pair: it verifies, and cannot sign */
    size_t size;               /* of a signature, at most, in bytes */
} stg_sign_key;

/* A text of Standard Webhooks: whsec_ and Base64 of an HMAC's key, or that
 * Base64 alone; whsk_ and Base64 of a private key of Ed25519 (its seed, or seed
 * and public key); whpk_ and Base64 of a public one. Returns STG_INVALID with
 * words that do not repeat the text, and what to do about it; STG_IO without
 * memory. The key is to be closed in any case. */
stg_status stg_sign_key_read(stg_sign_key *k, const char *text, stg_error *err);

/* A key of RFC 9421: as above, where the text begins with whsec_, whsk_ or whpk_; a
 * private or public key of Ed25519, of ECDSA on P-256 or of RSA in PEM; else an HMAC
 * whose key is the text's own bytes. rsa: the kind that a key of RSA is to be of;
 * STG_PAIR_NONE: it signs by STG_PAIR_RSA_PSS, and verifies by both. */
stg_status stg_sign_key_read_any(stg_sign_key *k, const char *text,
                                 stg_pair rsa, stg_error *err);

/* An HMAC whose key is the text's own bytes. */
stg_status stg_sign_key_take(stg_sign_key *k, const char *text,
                             const EVP_MD *hash, stg_error *err);

void stg_sign_key_close(stg_sign_key *k);

/* What it signs by, as RFC 9421 names it. */
const char *stg_sign_key_algorithm(const stg_sign_key *k);

/* The signature of the pieces, one behind the other. False: there is no memory,
 * or the key is public. */
bool stg_sign_key_sign(const stg_sign_key *k, EVP_MD_CTX *work,
                       const stg_span *pieces, size_t count,
                       unsigned char signature[STG_SIGNATURE_MAX],
                       size_t *size);

/* Whether the signature is that of the pieces; of an HMAC in a time that does
 * not depend on where it differs. algorithm: its name in RFC 9421, which is to be
 * one of the key's; at NULL: any of them. */
bool stg_sign_key_verify(const stg_sign_key *k, EVP_MD_CTX *work,
                         const stg_span *pieces, size_t count,
                         stg_span signature, stg_span algorithm);

/* -- new ones ---------------------------------------------------------------- */

enum { STG_SECRET_TEXT_MAX = 96 };

/* whsec_ and 32 random bytes. False: there are no random numbers. */
bool stg_secret_make(char text[STG_SECRET_TEXT_MAX]);

/* 32 random bytes in hexadecimal. */
bool stg_secret_make_hex(char text[STG_SECRET_TEXT_MAX]);

/* whsk_ and whpk_. */
bool stg_secret_make_pair(char private_key[STG_SECRET_TEXT_MAX],
                          char public_key[STG_SECRET_TEXT_MAX]);

#endif
