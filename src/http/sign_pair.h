/* sign_pair.h - signatures by pairs of keys: which key makes which, and what they
 * look like on the wire. By OpenSSL; whoever signs or verifies brings the EVP_MD_CTX
 * to work in, which no other thread has meanwhile. */
#ifndef STAGGER_HTTP_SIGN_PAIR_H
#define STAGGER_HTTP_SIGN_PAIR_H

#include <stdbool.h>
#include <stddef.h>

#include <openssl/evp.h>

#include "base/span.h"

/* P256 is ECDSA with SHA-256: the two numbers of 32 bytes each, as RFC 9421 and RFC
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

/* Its name in RFC 9421: "ed25519". */
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

#endif
