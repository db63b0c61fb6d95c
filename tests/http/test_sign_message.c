/* HTTP Message Signatures: the examples of RFC 9421, appendix B, and what a receiver
 * takes and refuses. */
#include <stdio.h>
#include <string.h>

#include <openssl/hmac.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>

#include "base/text.h"
#include "http/sign.h"
#include "http/sign_key.h"
#include "http/sign_message.h"
#include "http/verify.h"
#include "tests/harness.h"

enum { LINES_MAX = 2048 };

static const char
    shared[] =
        "whsec_uzvJfB4u3N0Jy4T7NZ75MDVcr8zSTInedJtkgcu46YW4XByzNJ"
        "jxBdtjUkdJPBtbmHhIDi6pcl8jsasjlTMtDQ==",
    ed25519_public[] =
        "-----BEGIN PUBLIC KEY-----\n"
        "MCowBQYDK2VwAyEAJrQLj5P/89iXES9+vFgrIy29clF9CC/oPPsw3c5D0"
        "bs=\n-----END PUBLIC KEY-----\n",
    ed25519_private[] =
        "-----BEGIN PRIVATE KEY-----\n"
        "MC4CAQAwBQYDK2VwBCIEIJ+DYvh6SEqVTm50DFtMDoQikTmiCqirVv9mW"
        "G9qfSnF\n-----END PRIVATE KEY-----\n",
    p256_public[] =
        "-----BEGIN PUBLIC KEY-----\n"
        "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEqIVYZVLCrPZHGHjP17CTW"
        "0/+D9Lf\nw0EkjqF7xB4FivAxzic30tMM4GF+hR6Dxh71Z50VGGdldkkD"
        "XZCnTNnoXQ==\n-----END PUBLIC KEY-----\n",
    p256_private[] =
        "-----BEGIN EC PRIVATE KEY-----\n"
        "MHcCAQEEIFKbhfNZfpDsW43+0+JjUr9K+bTeuxopu653+hBaXGA7oAoGC"
        "CqGSM49\nAwEHoUQDQgAEqIVYZVLCrPZHGHjP17CTW0/+D9Lfw0EkjqF7"
        "xB4FivAxzic30tMM\n4GF+hR6Dxh71Z50VGGdldkkDXZCnTNnoXQ==\n"
        "-----END EC PRIVATE KEY-----\n",
    word[] = "a secret of 24 characters",
    decodable[] = "abcdefghijklmnopqrstuvwxyz0123456789ABCD",
    body[] = "{\"hello\": \"world\"}";

static const uint64_t at = 1618884473;

static stg_span span(const char *text)
{
    return (stg_span){text, strlen(text)};
}

static stg_signature verify(const stg_sign_options *o, const char *secret,
                            const stg_verify_request *r, uint64_t now,
                            stg_error *why)
{
    stg_verifier *v;
    stg_signature how;

    CHECK_INT(stg_verifier_new(&v, o, &secret, 1, 300, NULL), STG_OK);
    how = stg_verifier_check(v, r, now, why);
    stg_verifier_free(v);
    return how;
}

/* -- appendix B.2 ---------------------------------------------------------- */

#define REQUEST                                                          \
    "Host: example.com\r\n"                                              \
    "Date: Tue, 20 Apr 2021 02:07:55 GMT\r\n"                            \
    "Content-Type: application/json\r\n"                                 \
    "Content-Digest: sha-512=:WZDPaVn/7XgHaAy8pmojAkGWoRx2UFChF41A2svX+" \
    "TaPm+AbwAgBWnrIiYllu7BNNyealdVLvRwEmTHWXvJwew==:\r\n"               \
    "Content-Length: 18\r\n"

static stg_verify_request example(const char *lines)
{
    return (stg_verify_request){.lines = span(lines),
                                .body = span(body),
                                .method = span("POST"),
                                .path = span("/foo"),
                                .query = span("param=Value&Pet=dog"),
                                .host = span("example.com")};
}

/* The examples do not cover the digest. */
static const char *const date[] = {"date"};
static const stg_sign_options only_date = {
    .scheme = STG_SIGN_MESSAGE, .covers = date, .cover_count = 1};

TEST(message, is_that_of_the_rfc_by_hmac)
{
    stg_verify_request r = example(
        REQUEST
        "Signature-Input: sig-b25=(\"date\" \"@authority\" \"content-type\")"
        ";created=1618884473;keyid=\"test-shared-secret\"\r\n"
        "Signature: sig-b25=:pxcQw6G3AjtMBQjwo8XzkZf/bws5LelbaMk5rGIGtE8=:"
        "\r\n");

    CHECK_INT(verify(&only_date, shared, &r, at, NULL), STG_SIGNATURE_RIGHT);
    r.host = span("example.org");
    CHECK_INT(verify(&only_date, shared, &r, at, NULL), STG_SIGNATURE_WRONG);
}

TEST(message, is_that_of_the_rfc_by_ed25519)
{
    stg_verify_request r = example(
        REQUEST
        "Signature-Input: sig-b26=(\"date\" \"@method\" \"@path\" "
        "\"@authority\" \"content-type\" \"content-length\");"
        "created=1618884473;keyid=\"test-key-ed25519\"\r\n"
        "Signature: sig-b26=:wqcAqbmYJ2ji2glfAMaRy4gruYYnx2nEFN2HN6jrnDnQCK1u"
        "02Gb04v9EDgwUPiu4A0w6vuQv5lIp5WPpBKRCw==:\r\n");

    CHECK_INT(verify(&only_date, ed25519_public, &r, at, NULL),
              STG_SIGNATURE_RIGHT);
    CHECK_INT(verify(&only_date, ed25519_private, &r, at, NULL),
              STG_SIGNATURE_RIGHT);
    CHECK_INT(verify(&only_date, p256_public, &r, at, NULL),
              STG_SIGNATURE_WRONG);
    CHECK_INT(verify(&only_date, ed25519_public, &r, at + 301, NULL),
              STG_SIGNATURE_STALE);
    r.path = span("/");
    CHECK_INT(verify(&only_date, ed25519_public, &r, at, NULL),
              STG_SIGNATURE_WRONG);
}

static const char rsa_public[] =
    "-----BEGIN PUBLIC KEY-----\n"
    "MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAr4tmm3r20Wd/PbqvP1s2\n"
    "+QEtvpuRaV8Yq40gjUR8y2Rjxa6dpG2GXHbPfvMs8ct+Lh1GH45x28Rw3Ry53mm+\n"
    "oAXjyQ86OnDkZ5N8lYbggD4O3w6M6pAvLkhk95AndTrifbIFPNU8PPMO7OyrFAHq\n"
    "gDsznjPFmTOtCEcN2Z1FpWgchwuYLPL+Wokqltd11nqqzi+bJ9cvSKADYdUAAN5W\n"
    "Utzdpiy6LbTgSxP7ociU4Tn0g5I6aDZJ7A8Lzo0KSyZYoA485mqcO0GVAdVw9lq4\n"
    "aOT9v6d+nb4bnNkQVklLQ3fVAvJm+xdDOp9LCNCN48V2pnDOkFV6+U9nV5oyc6XI\n"
    "2wIDAQAB\n-----END PUBLIC KEY-----\n";

/* B.2.1 covers nothing, which no verifier takes. */
TEST(message, is_that_of_the_rfc_by_rsa_where_nothing_is_covered)
{
    static const char signature[] =
        "d2pmTvmbncD3xQm8E9ZV2828BjQWGgiwAaw5bAkgibUopemLJcWDy/lkbbHAve4cRAtx31"
        "Iq786U7it++wgGxbtRxf8Udx7zFZsckzXaJMkA7ChG52eSkFxykJeNqsrWH5S+oxNFlD4d"
        "zVuwe8DhTSja8xxbR/Z2cOGdCbzR72rgFWhzx2VjBqJzsPLMIQKhO4DGezXehhWwE56YCE"
        "+O6c0mKZsfxVrogUvA4HELjVKWmAvtl6UnCh8jYzuVG5WSb/QEVPnP5TmcAnLH1g+s++v6"
        "d4s8m0gCw1fV5/SITLq9mhho8K3+7EPYTU8IU1bLhdxO5Nyt8C8ssinQ98Xw9Q==";
    const stg_span base = span(
        "\"@signature-params\": ();created=1618884473;keyid=\"test-key-rsa-pss\""
        ";nonce=\"b3k2pp5k7z-50gnwp.yemd\"");
    static const struct {
        const char *algorithm;
        stg_pair rsa;
        bool is_right;
    } expected[] = {{NULL, STG_PAIR_NONE, true},
                    {NULL, STG_PAIR_RSA_PSS, true},
                    {NULL, STG_PAIR_RSA, false},
                    {"rsa-pss-sha512", STG_PAIR_NONE, true},
                    {"rsa-v1_5-sha256", STG_PAIR_NONE, false},
                    {"", STG_PAIR_NONE, false}};
    EVP_MD_CTX *work = EVP_MD_CTX_new();
    char bytes[sizeof signature];
    size_t size;

    CHECK(stg_base64_read(bytes, span(signature), &size));
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        const char *name = expected[i].algorithm;
        stg_span algorithm = {name, name == NULL ? 0 : strlen(name)};
        stg_sign_key k;

        CHECK_INT(stg_sign_key_read_any(&k, rsa_public, expected[i].rsa, NULL),
                  STG_OK);
        CHECK_INT(stg_sign_key_verify(&k, work, &base, 1,
                                      (stg_span){bytes, size}, algorithm),
                  expected[i].is_right);
        CHECK(!stg_sign_key_verify(&k, work, &base, 1,
                                   (stg_span){bytes, size - 1}, algorithm));
        stg_sign_key_close(&k);
    }
    EVP_MD_CTX_free(work);
}

/* B.2.3, whose digest is of SHA-512. */
TEST(message, is_that_of_the_rfc_by_rsa)
{
    stg_verify_request r = example(
        REQUEST
        "Signature-Input: sig-b23=(\"date\" \"@method\" \"@path\" \"@query\" "
        "\"@authority\" \"content-type\" \"content-digest\" "
        "\"content-length\");created=1618884473;keyid=\"test-key-rsa-pss\"\r\n"
        "Signature: sig-b23=:bbN8oArOxYoyylQQUU6QYwrTuaxLwjAC9fbY2F6SVWvh0yBiM"
        "IRGOnMYwZ/5MR6fb0Kh1rIRASVxFkeGt683+qRpRRU5p2voTp768ZrCUb38K0fUxN0O0i"
        "C59DzYx8DFll5GmydPxSmme9v6ULbMFkl+V5B1TP/yPViV7KsLNmvKiLJH1pFkh/aYA2H"
        "XXZzNBXmIkoQoLd7YfW91kE9o/CCoC1xMy7JA1ipwvKvfrs65ldmlu9bpG6A9BmzhuzF8"
        "Eim5f8ui9eH8LZH896+QIF61ka39VBrohr9iyMUJpvRX2Zbhl5ZJzSRxpJyoEZAFL2FUo"
        "5fTIztsDZKEgM4cUA==:\r\n");
    stg_sign_options other = only_date;
    stg_error why;

    CHECK_INT(verify(&only_date, rsa_public, &r, at, NULL),
              STG_SIGNATURE_RIGHT);
    other.algorithm = STG_SIGN_RSA;
    CHECK_INT(verify(&other, rsa_public, &r, at, NULL), STG_SIGNATURE_WRONG);
    r.body = span("{\"hello\": \"World\"}");
    CHECK_INT(verify(&only_date, rsa_public, &r, at, &why),
              STG_SIGNATURE_WRONG);
    CHECK_STR(why.text, "the body is not that of Content-Digest");
    r.body = span(body);
    r.query = span("param=value");
    CHECK_INT(verify(&only_date, rsa_public, &r, at, NULL),
              STG_SIGNATURE_WRONG);
}

/* -- the hub's own --------------------------------------------------------- */

static const stg_sign_options message = {.scheme = STG_SIGN_MESSAGE,
                                         .key_id = "hub-1"};

static const stg_sign_request request = {
    .id = {"msg_1", 5},
    .seconds = 1618884473,
    .body = {body, sizeof body - 1},
    .content_type = {"application/json", 16},
    .method = "POST",
    .url = "https://Shop.example:443/in?a=b"};

static const char *sign(const stg_sign_options *o, const char *secret,
                        const stg_sign_request *r, char text[LINES_MAX])
{
    stg_signer *s;
    char *end = NULL;

    CHECK_INT(stg_sign_check(o, NULL), STG_OK);
    CHECK_INT(stg_sign_check_secret(o, secret, NULL), STG_OK);
    CHECK_INT(stg_signer_new(&s, o, &secret, 1, NULL), STG_OK);
    for (int i = 0; i < 2; i++) { // the second finds what the first has left
        end = stg_signer_put(s, text, r);
        CHECK(end != NULL);
    }
    CHECK((size_t)(end - text) <= stg_signer_room(s, r->id.size));
    *end = '\0';
    stg_signer_free(s);
    return text;
}

TEST(message, is_signed_as_the_rfc_says)
{
    char text[LINES_MAX];

    CHECK_STR(
        sign(&message, word, &request, text),
        "Content-Digest: sha-256=:X48E9qOokqqrvdts8nOJRJN3OWDUoyWxBf7kbu9DBPE=:\r\n"
        "Signature-Input: sig=(\"@method\" \"@target-uri\" "
        "\"content-digest\" \"content-type\" \"idempotency-key\");"
        "created=1618884473;keyid=\"hub-1\";alg=\"hmac-sha256\"\r\n"
        "Signature: sig=:cGj1hBOzhmIKiokJliJLisSYRhU5R2bleIteW3FPx1k=:\r\n");
}

/* What a receiver has: the lines, and those that the hub sends besides. */
static stg_verify_request received(const char *lines, char text[LINES_MAX])
{
    snprintf(text, LINES_MAX,
             "Host: shop.example\r\nIdempotency-Key: msg_1\r\n"
             "Content-Type: application/json\r\n%s",
             lines);
    return (stg_verify_request){.lines = span(text),
                                .body = span(body),
                                .method = span("POST"),
                                .path = span("/in"),
                                .query = span("a=b"),
                                .host = span("shop.example")};
}

TEST(message, is_verified_with_each_kind_of_key)
{
    static const char *const pairs[][2] = {{word, word},
                                           {decodable, decodable},
                                           {shared, shared},
                                           {ed25519_private, ed25519_public},
                                           {p256_private, p256_public},
                                           {p256_private, p256_private}};
    char lines[LINES_MAX], text[LINES_MAX];

    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        stg_verify_request r =
            received(sign(&message, pairs[i][0], &request, lines), text);
        stg_verifier *v;

        CHECK_INT(verify(&message, pairs[i][1], &r, at, NULL),
                  STG_SIGNATURE_RIGHT);
        CHECK_INT(verify(&message, pairs[(i + 3) % 6][1], &r, at, NULL),
                  STG_SIGNATURE_WRONG);
        CHECK_INT(stg_verifier_new_any(&v, pairs[i][1], NULL), STG_OK);
        CHECK_INT(stg_verifier_check(v, &r, at, NULL), STG_SIGNATURE_RIGHT);
        CHECK_INT(stg_verifier_check(v, &r, at + 301, NULL),
                  STG_SIGNATURE_STALE);
        stg_verifier_free(v);
    }
}

enum { PEM_MAX = 8192 };

/* PEM of a new pair; public_key NULL: of its private key alone. hash: the only one
 * that it may be used with; NULL: any. */
static void make_pair(int type, int bits, const EVP_MD *hash,
                      char private_key[PEM_MAX], char public_key[PEM_MAX])
{
    EVP_PKEY_CTX *maker = EVP_PKEY_CTX_new_id(type, NULL);
    EVP_PKEY *pair = NULL;
    BIO *bio = BIO_new(BIO_s_mem());

    CHECK(maker != NULL && bio != NULL && EVP_PKEY_keygen_init(maker) == 1 &&
          EVP_PKEY_CTX_set_rsa_keygen_bits(maker, bits) == 1 &&
          (hash == NULL ||
           EVP_PKEY_CTX_set_rsa_pss_keygen_md(maker, hash) == 1) &&
          EVP_PKEY_keygen(maker, &pair) == 1);
    CHECK(PEM_write_bio_PrivateKey(bio, pair, NULL, NULL, 0, NULL, NULL) == 1);
    private_key[BIO_read(bio, private_key, PEM_MAX - 1)] = '\0';
    CHECK(PEM_write_bio_PUBKEY(bio, pair) == 1);
    if (public_key != NULL)
        public_key[BIO_read(bio, public_key, PEM_MAX - 1)] = '\0';
    BIO_free(bio);
    EVP_PKEY_free(pair);
    EVP_PKEY_CTX_free(maker);
}

static stg_sign_options of_rsa(stg_sign_algorithm algorithm)
{
    stg_sign_options o = message;

    o.algorithm = algorithm;
    return o;
}

TEST(message, is_signed_by_either_algorithm_of_rsa)
{
    static const struct {
        stg_sign_algorithm algorithm, other;
        const char *name;
    } all[] = {{STG_SIGN_SHA256, STG_SIGN_RSA, "alg=\"rsa-pss-sha512\""},
               {STG_SIGN_RSA_PSS, STG_SIGN_RSA, "alg=\"rsa-pss-sha512\""},
               {STG_SIGN_RSA, STG_SIGN_RSA_PSS, "alg=\"rsa-v1_5-sha256\""}};
    static char private_key[PEM_MAX], public_key[PEM_MAX];
    char lines[LINES_MAX], text[LINES_MAX];

    make_pair(EVP_PKEY_RSA, 2048, NULL, private_key, public_key);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        stg_sign_options o = of_rsa(all[i].algorithm);
        stg_sign_options other = of_rsa(all[i].other);
        stg_verify_request r =
            received(sign(&o, private_key, &request, lines), text);
        stg_verifier *v;

        CHECK(strstr(lines, all[i].name) != NULL);
        CHECK_INT(verify(&message, public_key, &r, at, NULL),
                  STG_SIGNATURE_RIGHT);
        CHECK_INT(verify(&o, public_key, &r, at, NULL), STG_SIGNATURE_RIGHT);
        CHECK_INT(verify(&other, public_key, &r, at, NULL),
                  STG_SIGNATURE_WRONG);
        CHECK_INT(verify(&message, rsa_public, &r, at, NULL),
                  STG_SIGNATURE_WRONG);
        CHECK_INT(stg_verifier_new_any(&v, public_key, NULL), STG_OK);
        CHECK_INT(stg_verifier_check(v, &r, at, NULL), STG_SIGNATURE_RIGHT);
        stg_verifier_free(v);
    }
}

TEST(message, is_signed_with_a_key_that_is_of_pss_alone)
{
    static char private_key[PEM_MAX], public_key[PEM_MAX];
    stg_sign_options o = of_rsa(STG_SIGN_RSA);
    char lines[LINES_MAX], text[LINES_MAX];
    stg_verify_request r;
    stg_error why;

    make_pair(EVP_PKEY_RSA_PSS, 2048, NULL, private_key, public_key);
    r = received(sign(&message, private_key, &request, lines), text);
    CHECK_INT(verify(&message, public_key, &r, at, NULL), STG_SIGNATURE_RIGHT);
    CHECK_INT(stg_sign_check_secret(&o, private_key, &why), STG_INVALID);
    CHECK_STR(why.text,
              "the algorithm is rsa-v1_5-sha256; expected a key of "
              "RSA in PEM that may be used with it");
    CHECK_INT(stg_sign_check_secret(&o, ed25519_private, NULL), STG_INVALID);
    CHECK_INT(stg_sign_check_secret(&o, word, NULL), STG_INVALID);
    make_pair(EVP_PKEY_RSA_PSS, 2048, EVP_sha256(), private_key, NULL);
    CHECK_INT(stg_sign_check_secret(&message, private_key, NULL), STG_INVALID);
    make_pair(EVP_PKEY_RSA, 1024, NULL, private_key, NULL);
    CHECK_INT(stg_sign_check_secret(&message, private_key, NULL), STG_INVALID);
}

TEST(message, is_refused_when_anything_that_it_covers_is_another)
{
    char lines[LINES_MAX], text[LINES_MAX];
    stg_verify_request good =
        received(sign(&message, word, &request, lines), text);
    stg_verify_request r[6] = {good, good, good, good, good, good};
    stg_error why;

    r[0].method = span("PUT");
    r[1].path = span("/out");
    r[2].query = (stg_span){NULL, 0};
    r[3].host = span("shop.example:8080");
    for (size_t i = 0; i < 4; i++)
        CHECK_INT(verify(&message, word, &r[i], at, &why), STG_SIGNATURE_WRONG);
    r[4].body = span("{\"hello\": \"World\"}");
    CHECK_INT(verify(&message, word, &r[4], at, &why), STG_SIGNATURE_WRONG);
    CHECK_STR(why.text, "the body is not that of Content-Digest");
    for (char *c = text; *c != '\0'; c++) {
        bool is_text = strchr("\r\n \"", *c) == NULL &&
                       (c < strstr(text, "Host") || c > strstr(text, "Idem"));

        *c ^= 1;
        CHECK(!is_text ||
              verify(&message, word, &r[5], at, NULL) != STG_SIGNATURE_RIGHT);
        *c ^= 1;
    }
    CHECK_INT(verify(&message, word, &r[5], at, NULL), STG_SIGNATURE_RIGHT);
}

TEST(message, has_to_cover_what_is_wanted)
{
    static const char *const covers[] = {"@path", "content-digest"},
                             *const wanted[] = {"content-digest", "@method"},
                             *const none[] = {"@method"};
    const stg_sign_options less = {
        .scheme = STG_SIGN_MESSAGE, .covers = covers, .cover_count = 2};
    const stg_sign_options more = {
        .scheme = STG_SIGN_MESSAGE, .covers = wanted, .cover_count = 2};
    const stg_sign_options bodiless = {
        .scheme = STG_SIGN_MESSAGE, .covers = none, .cover_count = 1};
    char lines[LINES_MAX], text[LINES_MAX];
    stg_verify_request r = received(sign(&less, word, &request, lines), text);
    stg_error why;

    CHECK_INT(verify(&message, word, &r, at, NULL), STG_SIGNATURE_RIGHT);
    CHECK_INT(verify(&more, word, &r, at, &why), STG_SIGNATURE_WRONG);
    CHECK_STR(why.text, "the signature does not cover @method");
    CHECK_INT(stg_verify_check(&bodiless, &why), STG_INVALID);
    CHECK_INT(stg_sign_check(&bodiless, &why), STG_INVALID);
}

TEST(message, is_not_signed_with_a_public_key_or_one_of_another_kind)
{
    stg_error why;

    CHECK_INT(stg_sign_check_secret(&message, p256_public, &why), STG_INVALID);
    CHECK_STR(why.text,
              "it is a public key, which receivers verify with; "
              "expected its private one");
    CHECK_INT(stg_verify_check_secret(&message, p256_public, &why), STG_OK);
    CHECK_INT(
        stg_verify_check_secret(&message, "-----BEGIN PUBLIC KEY-----\n", &why),
        STG_INVALID);
    CHECK_STR(why.text,
              "expected a key of Ed25519, of ECDSA on P-256, or of RSA of 2048 "
              "to 8192 bits, in PEM and without a passphrase");
}

static void check_missing(const char *lines, const char *words)
{
    char text[LINES_MAX];
    stg_verify_request r = received(lines, text);
    stg_error why;

    CHECK_INT(verify(&message, word, &r, at, &why), STG_SIGNATURE_MISSING);
    CHECK_STR(why.text, words);
}

TEST(message, says_what_is_missing)
{
    static const char none[] =
        "Signature-Input has no signature that is understood";
#define VALUE "Signature: sig=:AAAA:\r\n"

    check_missing(VALUE, "Signature-Input is not there");
    check_missing("Signature-Input: sig=()\r\n", "Signature is not there");
    check_missing(VALUE VALUE "Signature-Input: sig=()\r\n",
                  "Signature comes twice");
    check_missing(VALUE "Signature-Input: sig\r\n", none);
    check_missing(VALUE "Signature-Input: sig=\r\n", none);
    check_missing(VALUE "Signature-Input: =()\r\n", none);
    check_missing(VALUE "Signature-Input: sig=(\r\n", none);
    check_missing(VALUE "Signature-Input: sig=(\"a)\r\n", none);
    check_missing(VALUE "Signature-Input: sig=(a)\r\n", none);
    check_missing(VALUE "Signature-Input: sig=(\"a\" \"a\")\r\n", none);
    check_missing(VALUE "Signature-Input: sig=(\"a\";req)\r\n", none);
    check_missing(VALUE "Signature-Input: sig=();\r\n",
                  "the timestamp is not a number of seconds");
    check_missing(VALUE "Signature-Input: other=();created=1\r\n", none);
    check_missing(
        "Signature: sig=AAAA\r\n"
        "Signature-Input: sig=();created=1\r\n",
        none);
}

/* -- components ------------------------------------------------------------ */

TEST(message, derives_its_components_as_the_rfc_says)
{
    static const struct {
        const char *name, *authority, *path, *query;
        bool is_tls;
        const char *value; /* NULL: there is no such component */
    } rows[] = {
        {"@method", "a.example", "/in", NULL, false, "POST"},
        {"@scheme", "a.example", "/in", NULL, false, "http"},
        {"@scheme", "a.example", "/in", NULL, true, "https"},
        {"@authority", "A.Example:80", "/in", NULL, false, "a.example"},
        {"@authority", "A.Example:80", "/in", NULL, true, "a.example:80"},
        {"@authority", "a.example:443", "/in", NULL, true, "a.example"},
        {"@authority", ":80", "/in", NULL, false, ":80"},
        {"@path", "a", "/in", "q=1", false, "/in"},
        {"@path", "a", "", NULL, false, "/"},
        {"@query", "a", "/in", "q=1", false, "?q=1"},
        {"@query", "a", "/in", "", false, "?"},
        {"@query", "a", "/in", NULL, false, "?"},
        {"@request-target", "a", "/in", "q=1", false, "/in?q=1"},
        {"@request-target", "a", "/in", NULL, false, "/in"},
        {"@target-uri", "a:80", "", "q", true, "https://a:80/?q"},
        {"@target-uri", "a:80", "/x", NULL, false, "http://a/x"},
        {"@status", "a", "/in", NULL, false, NULL},
        {"content-digest", "a", "/in", NULL, false, NULL},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const stg_sign_target t = {.method = span("POST"),
                                   .authority = span(rows[i].authority),
                                   .path = span(rows[i].path),
                                   .query = rows[i].query == NULL
                                                ? (stg_span){NULL, 0}
                                                : span(rows[i].query),
                                   .is_tls = rows[i].is_tls};
        stg_text base = {.at = NULL};
        char expected[128];

        CHECK_FROM(i, stg_sign_message_derive(&base, span(rows[i].name), &t) ==
                          (rows[i].value != NULL));
        snprintf(expected, sizeof expected, "\"%s\": %s\n", rows[i].name,
                 rows[i].value == NULL ? "" : rows[i].value);
        if (rows[i].value != NULL)
            CHECK_FROM(i, base.size == strlen(expected) &&
                              memcmp(base.at, expected, base.size) == 0);
        stg_text_free(&base);
    }
}

/* The hub knows the values of some; a receiver has any header, in lower case. */
TEST(message, covers_what_it_knows_once_each)
{
    static const struct {
        const char *covers[3];
        const char *key_id;
        const char *ours, *theirs; /* NULL: it is right */
    } rows[] = {
        {{"content-digest"}, "key 1", NULL, NULL},
        {{"@method", "@path", "content-digest"}, NULL, NULL, NULL},
        {{"content-digest", "date"}, NULL, "`date` is none", NULL},
        {{"content-digest", "Date"}, NULL, "`Date` is none", "`Date` is none"},
        {{"content-digest", "daTE"}, NULL, "`daTE` is none", "`daTE` is none"},
        {{"content-digest", "da te"}, NULL, "`da te` is none", "is none"},
        {{"content-digest", "@status"}, NULL, "is none", "is none"},
        {{"@path", "@path"}, NULL, "`@path` comes twice", "comes twice"},
        {{"@path"}, NULL, "without content-digest", "without content-digest"},
        {{"content-digest"}, "a\"b", "key-id: expected", "key-id: expected"},
        {{"content-digest"}, "a\\b", "key-id: expected", "key-id: expected"},
        {{"content-digest"}, "a\x7f", "key-id: expected", "key-id: expected"},
        {{"content-digest"}, "a\tb", "key-id: expected", "key-id: expected"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int is_ours = 0; is_ours < 2; is_ours++) {
            const char *words = is_ours ? rows[i].ours : rows[i].theirs;
            stg_sign_options o = {.scheme = STG_SIGN_MESSAGE,
                                  .covers = rows[i].covers,
                                  .key_id = rows[i].key_id};
            stg_error err = {.text = ""};

            while (o.cover_count < 3 && o.covers[o.cover_count] != NULL)
                o.cover_count++;
            CHECK_FROM(i, stg_sign_message_check(&o, is_ours, &err) ==
                              (words == NULL ? STG_OK : STG_INVALID));
            CHECK_FROM(i, strstr(err.text, words == NULL ? "" : words) != NULL);
        }
}

/* A signature may say until when it holds; all of a field's lines are one value. */
TEST(message, holds_until_it_expires_over_all_lines_of_a_field)
{
    static const char *const covers[] = {"x-list"};
    static const stg_sign_options o = {
        .scheme = STG_SIGN_MESSAGE, .covers = covers, .cover_count = 1};
    static const char params[] =
        "(\"x-list\");created=1618884473;expires=1618884500";
    char base[256], lines[LINES_MAX], sum[64];
    unsigned char hash[32];
    stg_verify_request r;
    stg_error why;

    snprintf(base, sizeof base,
             "\"x-list\": one, two\n\"@signature-params\": %s", params);
    CHECK(HMAC(EVP_sha256(), word, (int)strlen(word), (unsigned char *)base,
               strlen(base), hash, NULL) != NULL);
    EVP_EncodeBlock((unsigned char *)sum, hash, sizeof hash);
    snprintf(lines, sizeof lines,
             "X-List: one\r\nX-List2: no\r\nx-list: two\r\n"
             "Signature-Input: s=%s\r\nSignature: s=:%s:\r\n",
             params, sum);
    r = example(lines);
    CHECK_INT(verify(&o, word, &r, 1618884500, NULL), STG_SIGNATURE_RIGHT);
    CHECK_INT(verify(&o, word, &r, 1618884501, &why), STG_SIGNATURE_STALE);
    CHECK_STR(why.text, "the signature has expired");
}
