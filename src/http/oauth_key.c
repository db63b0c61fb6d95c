/* The client's own key, and the JWTs that it signs: RFC 7515 in its compact form,
 * RFC 7518 section 3 for the algorithms, and RFC 8037 for EdDSA. */
#include <stdlib.h>
#include <string.h>

#include <jansson.h>
#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/objects.h>
#include <openssl/pem.h>

#include "base/refuse.h"
#include "http/oauth.h"

enum { RSA_BITS_MIN = 2048, P256_SIZE = 32, LIFETIME = 300 /* seconds */ };

static char no_passphrase[] = "";

static bool is_p256(const EVP_PKEY *key)
{
#if OPENSSL_VERSION_NUMBER >= 0x30000000L
    char curve[32] = "";
    size_t size;

    return EVP_PKEY_get_group_name(key, curve, sizeof curve, &size) == 1 &&
           strcmp(curve, SN_X9_62_prime256v1) == 0;
#else
    const EC_KEY *ec = EVP_PKEY_get0_EC_KEY((EVP_PKEY *)key);

    return EC_GROUP_get_curve_name(EC_KEY_get0_group(ec)) ==
           NID_X9_62_prime256v1;
#endif
}

/* NULL: it cannot be used. */
static const char *algorithm_of(const EVP_PKEY *key)
{
    switch (EVP_PKEY_base_id(key)) {
    case EVP_PKEY_RSA:
        return EVP_PKEY_bits(key) >= RSA_BITS_MIN ? "RS256" : NULL;
    case EVP_PKEY_EC:
        return is_p256(key) ? "ES256" : NULL;
    case EVP_PKEY_ED25519:
        return "EdDSA";
    default:
        return NULL;
    }
}

stg_status stg_oauth_key_read(EVP_PKEY **key, const char *text, stg_error *err)
{
    BIO *from = BIO_new_mem_buf(text, -1);

    *key = from == NULL
               ? NULL
               : PEM_read_bio_PrivateKey(from, NULL, NULL, no_passphrase);
    BIO_free(from);
    ERR_clear_error();
    if (*key == NULL)
        return stg_hub_refuse(err, STG_INVALID,
                              "private-key: it has no key that can be used; "
                              "expected one in PEM, without a passphrase");
    if (algorithm_of(*key) != NULL)
        return STG_OK;
    EVP_PKEY_free(*key);
    *key = NULL;
    return stg_hub_refuse(err, STG_INVALID,
                          "private-key: another kind of key; expected RSA of "
                          "2048 bits or more, P-256 or Ed25519");
}

/* -- a signature ----------------------------------------------------------- */

/* Both numbers of ECDSA, of a fixed size: RFC 7518, section 3.4. Of DER, in
 * place. */
static bool unpack(unsigned char *signature, size_t *size)
{
    const unsigned char *at = signature;
    ECDSA_SIG *both = d2i_ECDSA_SIG(NULL, &at, (long)*size);
    bool is_good =
        both != NULL &&
        BN_bn2binpad(ECDSA_SIG_get0_r(both), signature, P256_SIZE) > 0 &&
        BN_bn2binpad(ECDSA_SIG_get0_s(both), signature + P256_SIZE, P256_SIZE) >
            0;

    ECDSA_SIG_free(both);
    *size = 2 * P256_SIZE;
    return is_good;
}

/* To be freed; NULL: no memory. */
static unsigned char *sign(EVP_PKEY *key, const stg_text *text, size_t *size)
{
    const unsigned char *bytes = (const unsigned char *)text->at;
    bool is_plain = EVP_PKEY_base_id(key) == EVP_PKEY_ED25519;
    EVP_MD_CTX *work = EVP_MD_CTX_new();
    unsigned char *signature = NULL;
    bool is_good =
        work != NULL &&
        EVP_DigestSignInit(work, NULL, is_plain ? NULL : EVP_sha256(), NULL,
                           key) == 1 &&
        EVP_DigestSign(work, NULL, size, bytes, text->size) == 1;

    if (is_good && *size < 2 * P256_SIZE)
        *size = 2 * P256_SIZE;
    if (is_good)
        signature = malloc(*size);
    is_good = signature != NULL &&
              EVP_DigestSign(work, signature, size, bytes, text->size) == 1;
    if (is_good && EVP_PKEY_base_id(key) == EVP_PKEY_EC)
        is_good = unpack(signature, size);
    EVP_MD_CTX_free(work);
    ERR_clear_error();
    if (is_good)
        return signature;
    free(signature);
    return NULL;
}

/* -- a JWT ----------------------------------------------------------------- */

/* Base64url without padding: RFC 7515, section 2. */
static void put_base64url(stg_text *to, const void *bytes, size_t size)
{
    size_t from = to->size;

    stg_text_put_base64(to, (stg_span){bytes, size});
    while (to->size > from && to->at[to->size - 1] == '=')
        to->size--;
    for (size_t i = from; i < to->size; i++)
        to->at[i] = to->at[i] == '+' ? '-' : to->at[i] == '/' ? '_' : to->at[i];
}

/* json is given. */
static void put_json(stg_text *to, json_t *json)
{
    char *text = json_dumps(json, JSON_COMPACT);

    if (text != NULL)
        put_base64url(to, text, strlen(text));
    else
        to->is_short = true;
    free(text);
    json_decref(json);
}

char *stg_oauth_assertion(const stg_oauth_options *o, EVP_PKEY *key,
                          uint64_t seconds, const char *id)
{
    const char *audience =
        o->assertion_audience != NULL ? o->assertion_audience : o->token_url;
    stg_text jwt = {.at = NULL};
    unsigned char *signature = NULL;
    size_t size;

    put_json(&jwt, json_pack("{s:s,s:s,s:s*}", "alg", algorithm_of(key), "typ",
                             "JWT", "kid", o->key_id));
    stg_text_put(&jwt, ".");
    put_json(&jwt, json_pack("{s:s,s:s,s:s,s:s,s:I,s:I}", "iss", o->client_id,
                             "sub", o->client_id, "aud", audience, "jti", id,
                             "iat", (json_int_t)seconds, "exp",
                             (json_int_t)seconds + LIFETIME));
    if (!jwt.is_short)
        signature = sign(key, &jwt, &size);
    if (signature != NULL) {
        stg_text_put(&jwt, ".");
        put_base64url(&jwt, signature, size);
        stg_text_add(&jwt, "", 1);
        free(signature);
        if (!jwt.is_short)
            return jwt.at;
    }
    stg_text_free(&jwt);
    return NULL;
}
