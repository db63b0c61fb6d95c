/* sign.c - what a signature costs a request. `make bench` runs it. */
#include <stdio.h>
#include <stdlib.h>

#include <openssl/pem.h>
#include <openssl/rsa.h>

#include "bench/meter.h"
#include "http/sign.h"

enum { SMALL = 1 << 10, LARGE = 1 << 16 };

static stg_signer *signer;
static char body[LARGE], lines[4096];

static void use_with(stg_sign_scheme scheme, const char *secret)
{
    const stg_sign_options o = {.scheme = scheme};

    stg_signer_free(signer);
    if (stg_signer_new(&signer, &o, &secret, 1, NULL) == STG_OK)
        return;
    fputs("sign: no signer\n", stderr);
    exit(1);
}

static void use(const char *secret)
{
    use_with(STG_SIGN_STANDARD, secret);
}

/* With a new key of RSA. */
static void use_rsa(size_t bits)
{
    static char text[8192];
    EVP_PKEY *key = EVP_RSA_gen(bits);
    BIO *bio = BIO_new(BIO_s_mem());
    int size = 0;

    if (key != NULL && bio != NULL &&
        PEM_write_bio_PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL) == 1)
        size = BIO_read(bio, text, sizeof text - 1);
    text[size > 0 ? size : 0] = '\0';
    BIO_free(bio);
    EVP_PKEY_free(key);
    use_with(STG_SIGN_MESSAGE, text);
}

static void sign(size_t n, size_t size)
{
    static const stg_span id = {"0123456789abcdef-1234567", 24};

    for (size_t i = 0; i < n; i++)
        meter_hide(
            stg_signer_put(signer, lines,
                           &(stg_sign_request){.id = id,
                                               .seconds = i,
                                               .body = {body, size},
                                               .method = "POST",
                                               .url = "http://127.0.0.1/"}));
}

static void sign_small(size_t n)
{
    sign(n, SMALL);
}

static void sign_large(size_t n)
{
    sign(n, LARGE);
}

int main(void)
{
    meter_begin("a signature");
    use("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
    meter_compare("HMAC-SHA256 of 1 KB", 3000, NULL, sign_small);
    meter_compare("and of 64 KB", 60000, NULL, sign_large);
    use("whsk_6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbfVKIDij2HKpMKkioLlX0dRqS"
        "KJp4AJ6p9lMicMFs6Kvg==");
    meter_compare("Ed25519 of 1 KB", 0, NULL, sign_small);
    use_rsa(2048);
    meter_compare("RSA of 2048 bits, and 1 KB", 0, NULL, sign_small);
    use_rsa(4096);
    meter_compare("RSA of 4096 bits", 0, NULL, sign_small);
    stg_signer_free(signer);
    return 0;
}
