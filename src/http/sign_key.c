/* Keys that requests are signed with, by OpenSSL. What a text stands for is
 * wiped when the key is made of it. */
#include "http/sign_key.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rand.h>

#include "base/refuse.h"
#include "base/text.h"

enum {
    BLOCK_MAX = 128, /* of SHA-512 */
    ED25519_SIZE = 32,
    PAIR_SIZE = 2 * ED25519_SIZE /* the seed, and behind it the public key */
};

static const char symmetric[] = "whsec_", private_[] = "whsk_",
                  public_[] = "whpk_";

static stg_status refuse_memory(stg_error *err)
{
    ERR_clear_error();
    return stg_hub_refuse(err, STG_IO,
                          "OpenSSL cannot use it, or has no memory");
}

/* -- an HMAC --------------------------------------------------------------- */

/* The state behind the key's block, each byte with `pad`. NULL: no memory. */
static EVP_MD_CTX *begin(const unsigned char *block, size_t size,
                         unsigned char pad, const EVP_MD *hash)
{
    unsigned char padded[BLOCK_MAX];
    EVP_MD_CTX *state = EVP_MD_CTX_new();
    bool is_good;

    for (size_t i = 0; i < size; i++)
        padded[i] = block[i] ^ pad;
    is_good = state != NULL && EVP_DigestInit_ex(state, hash, NULL) == 1 &&
              EVP_DigestUpdate(state, padded, size) == 1;
    OPENSSL_cleanse(padded, sizeof padded);
    if (is_good)
        return state;
    EVP_MD_CTX_free(state);
    return NULL;
}

/* A key that is longer than a block is hashed first. */
static stg_status take_bytes(stg_sign_key *k, stg_span bytes,
                             const EVP_MD *hash, stg_error *err)
{
    enum { INNER = 0x36, OUTER = 0x5c };
    unsigned char block[BLOCK_MAX] = {0};
    size_t size = (size_t)EVP_MD_block_size(hash);
    bool is_good = true;

    if (bytes.size > size)
        is_good =
            EVP_Digest(bytes.at, bytes.size, block, NULL, hash, NULL) == 1;
    else
        memcpy(block, bytes.at, bytes.size);
    if (is_good) {
        k->inner = begin(block, size, INNER, hash);
        k->outer = begin(block, size, OUTER, hash);
        k->size = (size_t)EVP_MD_get_size(hash);
    }
    OPENSSL_cleanse(block, sizeof block);
    return k->inner != NULL && k->outer != NULL ? STG_OK : refuse_memory(err);
}

static bool hash_pieces(const stg_sign_key *k, EVP_MD_CTX *work,
                        const stg_span *pieces, size_t count,
                        unsigned char *hash, size_t *size)
{
    unsigned made;

    if (EVP_MD_CTX_copy_ex(work, k->inner) != 1)
        return false;
    for (size_t i = 0; i < count; i++)
        if (EVP_DigestUpdate(work, pieces[i].at, pieces[i].size) != 1)
            return false;
    if (EVP_DigestFinal_ex(work, hash, &made) != 1 ||
        EVP_MD_CTX_copy_ex(work, k->outer) != 1 ||
        EVP_DigestUpdate(work, hash, made) != 1 ||
        EVP_DigestFinal_ex(work, hash, &made) != 1)
        return false;
    *size = made;
    return true;
}

/* -- Ed25519 --------------------------------------------------------------- */

static void take(stg_sign_key *k, EVP_PKEY *pair)
{
    k->pair = pair;
    k->kind = pair == NULL ? STG_PAIR_NONE : stg_pair_of(pair);
    k->size = pair == NULL ? 0 : (size_t)EVP_PKEY_get_size(pair);
}

/* One that has its public key behind it must have its own: whoever signs with
 * another gives the private key away. */
static bool is_pair(const EVP_PKEY *pair, stg_span bytes)
{
    unsigned char public_key[ED25519_SIZE];
    size_t size = sizeof public_key;

    return bytes.size == ED25519_SIZE ||
           (EVP_PKEY_get_raw_public_key(pair, public_key, &size) == 1 &&
            memcmp(public_key, bytes.at + ED25519_SIZE, size) == 0);
}

static stg_status take_pair(stg_sign_key *k, stg_span bytes, stg_error *err)
{
    const unsigned char *raw = (const unsigned char *)bytes.at;

    if (bytes.size != ED25519_SIZE && (k->is_public || bytes.size != PAIR_SIZE))
        return stg_hub_refuse(
            err, STG_INVALID,
            "a key of Ed25519 has %s bytes, and this one %zu; `stagger secret "
            "new --ed25519` makes a pair",
            k->is_public ? "32" : "32 or 64", bytes.size);
    take(k, k->is_public ? EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL,
                                                       raw, ED25519_SIZE)
                         : EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL,
                                                        raw, ED25519_SIZE));
    if (k->pair == NULL)
        return refuse_memory(err);
    if (k->is_public || is_pair(k->pair, bytes))
        return STG_OK;
    return stg_hub_refuse(err, STG_INVALID,
                          "the second half of the private key is not its "
                          "public key; expected all of what `stagger secret "
                          "new --ed25519` prints after whsk_");
}

/* Ed25519 reads a message twice, so it must be in one piece. NULL: no memory. */
static char *join(const stg_span *pieces, size_t count, size_t *size)
{
    char *whole, *at;

    *size = 0;
    for (size_t i = 0; i < count; i++)
        *size += pieces[i].size;
    at = whole = malloc(*size + 1);
    for (size_t i = 0; whole != NULL && i < count; i++)
        if (pieces[i].size > 0) {
            memcpy(at, pieces[i].at, pieces[i].size);
            at += pieces[i].size;
        }
    return whole;
}

/* -- texts ----------------------------------------------------------------- */

static bool begins_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

static stg_status refuse_short(stg_error *err, size_t size)
{
    return stg_hub_refuse(err, STG_INVALID,
                          "the secret has %zu bytes; expected %d at least: "
                          "`stagger secret new` makes one",
                          size, STG_SIGN_KEY_LEAST);
}

static stg_status take_standard(stg_sign_key *k, const char *text,
                                stg_span bytes, stg_error *err)
{
    k->is_public = begins_with(text, public_);
    if (k->is_public || begins_with(text, private_))
        return take_pair(k, bytes, err);
    if (bytes.size < STG_SIGN_KEY_LEAST)
        return refuse_short(err, bytes.size);
    return take_bytes(k, bytes, EVP_sha256(), err);
}

stg_status stg_sign_key_read(stg_sign_key *k, const char *text, stg_error *err)
{
    size_t start = begins_with(text, symmetric) ? strlen(symmetric)
                   : begins_with(text, private_) || begins_with(text, public_)
                       ? strlen(private_)
                       : 0;
    stg_span encoded = {text + start, strlen(text + start)};
    char *bytes = malloc(encoded.size + 1);
    size_t size;
    stg_status status;

    *k = (stg_sign_key){.is_public = false};
    if (bytes == NULL)
        return refuse_memory(err);
    if (stg_base64_read(bytes, encoded, &size) && size > 0)
        status = take_standard(k, text, (stg_span){bytes, size}, err);
    else
        status = stg_hub_refuse(
            err, STG_INVALID,
            "the secret is not Base64 (with its = at the end); expected "
            "whsec_ or whsk_ and Base64, as `stagger secret new` prints it");
    OPENSSL_cleanse(bytes, encoded.size + 1);
    free(bytes);
    return status;
}

/* Nobody is asked for a passphrase. */
// NOLINTNEXTLINE(readability-non-const-parameter): it is a pem_password_cb
static int refuse_passphrase(char *text, int size, int is_writing, void *ctx)
{
    (void)text, (void)size, (void)is_writing, (void)ctx;
    return -1;
}

static stg_status read_pem(stg_sign_key *k, const char *text, stg_error *err)
{
    BIO *bio = BIO_new_mem_buf(text, -1);

    k->is_public = strstr(text, "PRIVATE KEY") == NULL;
    if (bio != NULL)
        take(k,
             k->is_public
                 ? PEM_read_bio_PUBKEY(bio, NULL, refuse_passphrase, NULL)
                 : PEM_read_bio_PrivateKey(bio, NULL, refuse_passphrase, NULL));
    BIO_free(bio);
    ERR_clear_error();
    if (k->kind != STG_PAIR_NONE)
        return STG_OK;
    return stg_hub_refuse(err, STG_INVALID,
                          "expected a key of Ed25519, of ECDSA on P-256, or of "
                          "RSA of 2048 to 8192 bits, in PEM and without a "
                          "passphrase");
}

/* A key that says itself that it is of PSS makes nothing else. */
static stg_status choose_rsa(stg_sign_key *k, stg_pair rsa, stg_error *err)
{
    bool takes_both = k->kind == STG_PAIR_RSA;

    if (rsa != STG_PAIR_NONE && !takes_both && k->kind != rsa)
        return stg_hub_refuse(err, STG_INVALID,
                              "the algorithm is %s; expected a key of RSA in "
                              "PEM that may be used with it",
                              stg_pair_name(rsa));
    if (takes_both) {
        k->kind = rsa != STG_PAIR_NONE ? rsa : STG_PAIR_RSA_PSS;
        k->other = rsa != STG_PAIR_NONE ? STG_PAIR_NONE : STG_PAIR_RSA;
    }
    return STG_OK;
}

static stg_status read_any(stg_sign_key *k, const char *text, stg_error *err)
{
    if (begins_with(text, symmetric) || begins_with(text, private_) ||
        begins_with(text, public_))
        return stg_sign_key_read(k, text, err);
    if (!begins_with(text, "-----BEGIN "))
        return stg_sign_key_take(k, text, EVP_sha256(), err);
    *k = (stg_sign_key){.is_public = false};
    return read_pem(k, text, err);
}

stg_status stg_sign_key_read_any(stg_sign_key *k, const char *text,
                                 stg_pair rsa, stg_error *err)
{
    stg_status status = read_any(k, text, err);

    return status == STG_OK ? choose_rsa(k, rsa, err) : status;
}

stg_status stg_sign_key_take(stg_sign_key *k, const char *text,
                             const EVP_MD *hash, stg_error *err)
{
    stg_span bytes = {text, strlen(text)};

    *k = (stg_sign_key){.is_public = false};
    if (bytes.size < STG_SIGN_KEY_LEAST)
        return refuse_short(err, bytes.size);
    return take_bytes(k, bytes, hash, err);
}

void stg_sign_key_close(stg_sign_key *k)
{
    EVP_MD_CTX_free(k->inner);
    EVP_MD_CTX_free(k->outer);
    EVP_PKEY_free(k->pair);
    *k = (stg_sign_key){.inner = NULL};
}

/* -- signatures ------------------------------------------------------------ */

bool stg_sign_key_sign(const stg_sign_key *k, EVP_MD_CTX *work,
                       const stg_span *pieces, size_t count,
                       unsigned char signature[STG_SIGNATURE_MAX], size_t *size)
{
    char *whole;
    size_t whole_size;
    bool is_made;

    if (k->pair == NULL)
        return hash_pieces(k, work, pieces, count, signature, size);
    whole = k->is_public ? NULL : join(pieces, count, &whole_size);
    is_made = whole != NULL &&
              stg_pair_sign(k->pair, k->kind, work,
                            (stg_span){whole, whole_size}, signature, size);
    free(whole);
    return is_made;
}

const char *stg_sign_key_algorithm(const stg_sign_key *k)
{
    return k->pair == NULL ? "hmac-sha256" : stg_pair_name(k->kind);
}

static bool verify_hash(const stg_sign_key *k, EVP_MD_CTX *work,
                        const stg_span *pieces, size_t count,
                        stg_span signature)
{
    unsigned char hash[STG_SIGNATURE_MAX];
    size_t size;

    return hash_pieces(k, work, pieces, count, hash, &size) &&
           signature.size == size &&
           CRYPTO_memcmp(signature.at, hash, size) == 0;
}

static bool may_be(const char *name, stg_span algorithm)
{
    return algorithm.at == NULL || stg_span_is(algorithm, name);
}

bool stg_sign_key_verify(const stg_sign_key *k, EVP_MD_CTX *work,
                         const stg_span *pieces, size_t count,
                         stg_span signature, stg_span algorithm)
{
    const stg_pair pairs[] = {k->kind, k->other};
    size_t size;
    char *whole;
    bool is_right = false;

    if (k->pair == NULL)
        return may_be(stg_sign_key_algorithm(k), algorithm) &&
               verify_hash(k, work, pieces, count, signature);
    whole = join(pieces, count, &size);
    for (size_t i = 0; whole != NULL && !is_right && i < 2; i++)
        is_right = pairs[i] != STG_PAIR_NONE &&
                   may_be(stg_pair_name(pairs[i]), algorithm) &&
                   stg_pair_verify(k->pair, pairs[i], work,
                                   (stg_span){whole, size}, signature);
    free(whole);
    return is_right;
}

/* -- new ones -------------------------------------------------------------- */

static void print(char text[STG_SECRET_TEXT_MAX], const char *start,
                  const unsigned char *bytes, size_t size)
{
    size_t at = strlen(start);

    memcpy(text, start, at);
    *stg_base64_put(text + at, (stg_span){(const char *)bytes, size}) = '\0';
}

bool stg_secret_make(char text[STG_SECRET_TEXT_MAX])
{
    unsigned char bytes[32];
    bool is_made = RAND_bytes(bytes, sizeof bytes) == 1;

    if (is_made)
        print(text, symmetric, bytes, sizeof bytes);
    OPENSSL_cleanse(bytes, sizeof bytes);
    return is_made;
}

bool stg_secret_make_hex(char text[STG_SECRET_TEXT_MAX])
{
    unsigned char bytes[32];
    bool is_made = RAND_bytes(bytes, sizeof bytes) == 1;

    for (size_t i = 0; is_made && i < sizeof bytes; i++)
        snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    OPENSSL_cleanse(bytes, sizeof bytes);
    return is_made;
}

bool stg_secret_make_pair(char private_key[STG_SECRET_TEXT_MAX],
                          char public_key[STG_SECRET_TEXT_MAX])
{
    unsigned char bytes[PAIR_SIZE];
    size_t size = ED25519_SIZE;
    EVP_PKEY *pair = NULL;
    bool is_made = RAND_bytes(bytes, ED25519_SIZE) == 1;

    if (is_made)
        pair = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, bytes,
                                            ED25519_SIZE);
    is_made = pair != NULL && EVP_PKEY_get_raw_public_key(
                                  pair, bytes + ED25519_SIZE, &size) == 1;
    if (is_made) {
        print(private_key, private_, bytes, sizeof bytes);
        print(public_key, public_, bytes + ED25519_SIZE, ED25519_SIZE);
    }
    EVP_PKEY_free(pair);
    OPENSSL_cleanse(bytes, sizeof bytes);
    return is_made;
}
