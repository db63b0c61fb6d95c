/* Signatures by pairs of keys. ECDSA's are two numbers, which OpenSSL has in DER,
 * and everybody else behind each other. */
#include "http/sign_key.h"

#include <string.h>

#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/obj_mac.h>
#include <openssl/rsa.h>

enum { NUMBER = 32, P256_SIZE = 2 * NUMBER, DER_MAX = 80 };

/* -- kinds ----------------------------------------------------------------- */

/* The curve is asked for by its name, for a key of another is no P-256. */
static bool is_p256(const EVP_PKEY *key)
{
    char group[32] = "";

    return EVP_PKEY_get_group_name(key, group, sizeof group, NULL) == 1 &&
           strcmp(group, SN_X9_62_prime256v1) == 0;
}

static bool is_of_size(const EVP_PKEY *key)
{
    int bits = EVP_PKEY_get_bits(key);

    return STG_PAIR_RSA_BITS_MIN <= bits && bits <= STG_PAIR_RSA_BITS_MAX;
}

static const struct {
    const char *name;
    const EVP_MD *(*hash)(void); /* NULL: its own */
    int padding;                 /* of RSA; else 0 */
} kinds[] = {
    [STG_PAIR_ED25519] = {"ed25519", NULL, 0},
    [STG_PAIR_P256] = {"ecdsa-p256-sha256", EVP_sha256, 0},
    [STG_PAIR_RSA] = {"rsa-v1_5-sha256", EVP_sha256, RSA_PKCS1_PADDING},
    [STG_PAIR_RSA_PSS] = {"rsa-pss-sha512", EVP_sha512, RSA_PKCS1_PSS_PADDING},
};

const char *stg_pair_name(stg_pair kind)
{
    return kinds[kind].name;
}

typedef int init_fn(EVP_MD_CTX *work, EVP_PKEY_CTX **options,
                    const EVP_MD *hash, ENGINE *engine, EVP_PKEY *key);

static bool begin(init_fn *init, EVP_MD_CTX *work, EVP_PKEY *key, stg_pair kind)
{
    const EVP_MD *hash = kinds[kind].hash == NULL ? NULL : kinds[kind].hash();
    int padding = kinds[kind].padding;
    EVP_PKEY_CTX *options = NULL;

    (void)EVP_MD_CTX_reset(work);
    return init(work, &options, hash, NULL, key) == 1 &&
           (padding == 0 ||
            EVP_PKEY_CTX_set_rsa_padding(options, padding) > 0) &&
           (padding != RSA_PKCS1_PSS_PADDING ||
            EVP_PKEY_CTX_set_rsa_pss_saltlen(options, RSA_PSS_SALTLEN_DIGEST) >
                0);
}

/* A key may be of PSS with another hash alone. */
static bool takes_pss(EVP_PKEY *key)
{
    EVP_MD_CTX *work = EVP_MD_CTX_new();
    bool takes = work != NULL &&
                 begin(EVP_DigestVerifyInit, work, key, STG_PAIR_RSA_PSS);

    EVP_MD_CTX_free(work);
    ERR_clear_error();
    return takes;
}

stg_pair stg_pair_of(EVP_PKEY *key)
{
    switch (EVP_PKEY_get_base_id(key)) {
    case EVP_PKEY_ED25519:
        return STG_PAIR_ED25519;
    case EVP_PKEY_EC:
        return is_p256(key) ? STG_PAIR_P256 : STG_PAIR_NONE;
    case EVP_PKEY_RSA:
        return is_of_size(key) ? STG_PAIR_RSA : STG_PAIR_NONE;
    case EVP_PKEY_RSA_PSS:
        return is_of_size(key) && takes_pss(key) ? STG_PAIR_RSA_PSS
                                                 : STG_PAIR_NONE;
    default:
        return STG_PAIR_NONE;
    }
}

/* -- both numbers of ECDSA ------------------------------------------------- */

/* Of DER, in place. */
static bool unpack(unsigned char *signature, size_t *size)
{
    const unsigned char *at = signature;
    ECDSA_SIG *s = d2i_ECDSA_SIG(NULL, &at, (long)*size);
    bool is_read =
        s != NULL &&
        BN_bn2binpad(ECDSA_SIG_get0_r(s), signature, NUMBER) == NUMBER &&
        BN_bn2binpad(ECDSA_SIG_get0_s(s), signature + NUMBER, NUMBER) == NUMBER;

    ECDSA_SIG_free(s);
    *size = P256_SIZE;
    return is_read;
}

/* Writes a signature as DER. Returns its size; 0: out of memory, or the bytes
 * are not a signature. */
static size_t pack(stg_span signature, unsigned char der[DER_MAX])
{
    const unsigned char *at = (const unsigned char *)signature.at;
    bool is_whole = signature.size == P256_SIZE;
    ECDSA_SIG *s = is_whole ? ECDSA_SIG_new() : NULL;
    BIGNUM *a = is_whole ? BN_bin2bn(at, NUMBER, NULL) : NULL,
           *b = is_whole ? BN_bin2bn(at + NUMBER, NUMBER, NULL) : NULL;
    int size = 0;

    if (s != NULL && a != NULL && b != NULL && ECDSA_SIG_set0(s, a, b) == 1) {
        size = i2d_ECDSA_SIG(s, &der);
    } else {
        BN_free(a);
        BN_free(b);
    }
    ECDSA_SIG_free(s);
    return size > 0 ? (size_t)size : 0;
}

/* -- signatures ------------------------------------------------------------ */

bool stg_pair_sign(EVP_PKEY *key, stg_pair kind, EVP_MD_CTX *work,
                   stg_span text,
                   unsigned char signature[STG_PAIR_SIGNATURE_MAX],
                   size_t *size)
{
    bool is_made;

    *size = STG_PAIR_SIGNATURE_MAX;
    is_made = begin(EVP_DigestSignInit, work, key, kind) &&
              EVP_DigestSign(work, signature, size,
                             (const unsigned char *)text.at, text.size) == 1 &&
              (kind != STG_PAIR_P256 || unpack(signature, size));
    ERR_clear_error();
    return is_made;
}

bool stg_pair_verify(EVP_PKEY *key, stg_pair kind, EVP_MD_CTX *work,
                     stg_span text, stg_span signature)
{
    unsigned char der[DER_MAX];
    bool is_right;

    if (kind == STG_PAIR_P256)
        signature = (stg_span){(const char *)der, pack(signature, der)};
    is_right = signature.size > 0 &&
               begin(EVP_DigestVerifyInit, work, key, kind) &&
               EVP_DigestVerify(work, (const unsigned char *)signature.at,
                                signature.size, (const unsigned char *)text.at,
                                text.size) == 1;
    ERR_clear_error();
    return is_right;
}
