/* HTTP Message Signatures: the examples of RFC 9421, appendix B, and what a receiver
 * takes and refuses. */
#include <stdio.h>
#include <string.h>

#include "http/sign.h"
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
              "expected a key of Ed25519 or of ECDSA on P-256, in "
              "PEM and without a passphrase");
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
