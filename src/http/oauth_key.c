/* The client's own key, and the JWTs that it signs: RFC 7515 in its compact form,
 * RFC 7518 section 3 for the algorithms, and RFC 8037 for EdDSA. */
#include <stdlib.h>
#include <string.h>

#include <jansson.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>

#include "base/refuse.h"
#include "http/oauth.h"
#include "http/sign_key.h"

enum { LIFETIME = 300 /* seconds */ };

static char no_passphrase[] = "";

/* NULL: it cannot be used. */
static const char *algorithm_of(EVP_PKEY *key)
{
    static const char *const names[] = {[STG_PAIR_ED25519] = "EdDSA",
                                        [STG_PAIR_P256] = "ES256",
                                        [STG_PAIR_RSA] = "RS256",
                                        [STG_PAIR_RSA_PSS] = NULL};

    return names[stg_pair_of(key)];
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
                          "2048 to 8192 bits, P-256 or Ed25519");
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
    unsigned char signature[STG_PAIR_SIGNATURE_MAX];
    EVP_MD_CTX *work = EVP_MD_CTX_new();
    bool is_made;
    size_t size;

    put_json(&jwt, json_pack("{s:s,s:s,s:s*}", "alg", algorithm_of(key), "typ",
                             "JWT", "kid", o->key_id));
    stg_text_put(&jwt, ".");
    put_json(&jwt, json_pack("{s:s,s:s,s:s,s:s,s:I,s:I}", "iss", o->client_id,
                             "sub", o->client_id, "aud", audience, "jti", id,
                             "iat", (json_int_t)seconds, "exp",
                             (json_int_t)seconds + LIFETIME));
    is_made = work != NULL && !jwt.is_short &&
              stg_pair_sign(key, stg_pair_of(key), work,
                            (stg_span){jwt.at, jwt.size}, signature, &size);
    EVP_MD_CTX_free(work);
    if (is_made) {
        stg_text_put(&jwt, ".");
        put_base64url(&jwt, signature, size);
        stg_text_add(&jwt, "", 1);
        if (!jwt.is_short)
            return jwt.at;
    }
    stg_text_free(&jwt);
    return NULL;
}
