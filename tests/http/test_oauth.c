/* Requests for tokens as RFC 6749 and RFC 7523 have them, and what is taken of an
 * answer. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>

#include "http/oauth.h"
#include "tests/harness.h"

static const stg_oauth_options basic = {.token_url =
                                            "https://idp.example/token",
                                        .client_id = "hub",
                                        .client_secret = "s3cret"};

/* Head and body of a request, a blank line between them. */
static const char *request(const stg_oauth_options *o, const char *assertion,
                           char text[2048])
{
    stg_text headers = {.at = NULL}, body = {.at = NULL};

    stg_oauth_request(o, assertion, &headers, &body);
    CHECK(!headers.is_short && !body.is_short);
    snprintf(text, 2048, "%.*s\n%.*s", (int)headers.size, headers.at,
             (int)body.size, body.at);
    stg_text_free(&headers);
    stg_text_free(&body);
    return text;
}

TEST(oauth, asks_with_basic_credentials)
{
    char text[2048];

    CHECK_STR(request(&basic, NULL, text),
              "Accept: application/json\r\n"
              "Content-Type: application/x-www-form-urlencoded\r\n"
              "Authorization: Basic aHViOnMzY3JldA==\r\n\n"
              "grant_type=client_credentials");
}

/* Encoded before they are joined, as RFC 6749 wants it: a%3Ab, p%25+%C3%BC. */
TEST(oauth, encodes_credentials_before_they_are_joined)
{
    stg_oauth_options o = basic;
    char text[2048];

    o.client_id = "a:b";
    o.client_secret = "p% \xc3\xbc";
    CHECK(strstr(request(&o, NULL, text),
                 "Basic YSUzQWI6cCUyNSslQzMlQkM=\r\n") != NULL);
}

TEST(oauth, asks_with_credentials_in_the_body)
{
    stg_oauth_options o = basic;
    char text[2048];

    o.auth = STG_OAUTH_BODY;
    o.client_secret = "a&b=c+d";
    o.scope = "orders:write orders:read";
    o.audience = "https://shop.example/";
    CHECK_STR(request(&o, NULL, text),
              "Accept: application/json\r\n"
              "Content-Type: application/x-www-form-urlencoded\r\n\n"
              "grant_type=client_credentials"
              "&scope=orders%3Awrite+orders%3Aread"
              "&audience=https%3A%2F%2Fshop.example%2F"
              "&client_id=hub&client_secret=a%26b%3Dc%2Bd");
}

TEST(oauth, asks_with_an_assertion)
{
    stg_oauth_options o = basic;
    char text[2048];

    o.client_secret = NULL;
    o.private_key = "a key";
    CHECK_STR(request(&o, "a.b.c", text),
              "Accept: application/json\r\n"
              "Content-Type: application/x-www-form-urlencoded\r\n\n"
              "grant_type=client_credentials&client_id=hub"
              "&client_assertion_type=urn%3Aietf%3Aparams%3Aoauth%3Aclient-"
              "assertion-type%3Ajwt-bearer&client_assertion=a.b.c");
}

/* -- keys and assertions ----------------------------------------------------- */

static EVP_PKEY *make_key(int kind, int curve_or_bits)
{
    EVP_PKEY_CTX *c = EVP_PKEY_CTX_new_id(kind, NULL);
    EVP_PKEY *key = NULL;

    CHECK(EVP_PKEY_keygen_init(c) == 1);
    if (kind == EVP_PKEY_EC)
        CHECK(EVP_PKEY_CTX_set_ec_paramgen_curve_nid(c, curve_or_bits) == 1);
    if (kind == EVP_PKEY_RSA)
        CHECK(EVP_PKEY_CTX_set_rsa_keygen_bits(c, curve_or_bits) == 1);
    CHECK(EVP_PKEY_keygen(c, &key) == 1);
    EVP_PKEY_CTX_free(c);
    return key;
}

/* To be freed. */
static char *pem_of(EVP_PKEY *key)
{
    BIO *to = BIO_new(BIO_s_mem());
    char *at, *text;
    long size;

    CHECK(PEM_write_bio_PrivateKey(to, key, NULL, NULL, 0, NULL, NULL) == 1);
    size = BIO_get_mem_data(to, &at);
    text = strndup(at, (size_t)size);
    BIO_free(to);
    return text;
}

/* The bytes of a part in Base64url. */
static size_t read_part(const char *from, const char *end, char to[2048])
{
    size_t size = (size_t)(end - from), bytes;

    memcpy(to, from, size);
    for (size_t i = 0; i < size; i++)
        to[i] = to[i] == '-' ? '+' : to[i] == '_' ? '/' : to[i];
    while (size % 4 != 0)
        to[size++] = '=';
    CHECK(stg_base64_read(to, (stg_span){to, size}, &bytes));
    to[bytes] = '\0';
    return bytes;
}

/* Of ECDSA in DER again, as OpenSSL verifies it. */
static size_t pack(char signature[2048], size_t size)
{
    const unsigned char *at = (const unsigned char *)signature;
    ECDSA_SIG *both = ECDSA_SIG_new();
    unsigned char *der = NULL;
    int der_size;

    CHECK_U64(size, 64);
    CHECK(ECDSA_SIG_set0(both, BN_bin2bn(at, 32, NULL),
                         BN_bin2bn(at + 32, 32, NULL)) == 1);
    der_size = i2d_ECDSA_SIG(both, &der);
    memcpy(signature, der, (size_t)der_size);
    OPENSSL_free(der);
    ECDSA_SIG_free(both);
    return (size_t)der_size;
}

static void check_assertion(EVP_PKEY *key, const char *header)
{
    stg_oauth_options o = basic;
    char *pem = pem_of(key), *jwt, part[2048];
    const char *dot, *last;
    EVP_MD_CTX *work = EVP_MD_CTX_new();
    bool is_ed = EVP_PKEY_base_id(key) == EVP_PKEY_ED25519;
    size_t size;
    EVP_PKEY *read;

    o.client_secret = NULL;
    o.private_key = pem;
    o.key_id = "k1";
    CHECK(stg_oauth_check(&o, NULL) == STG_OK);
    CHECK(stg_oauth_key_read(&read, pem, NULL) == STG_OK);
    jwt = stg_oauth_assertion(&o, read, 1700000000, "once");
    CHECK(jwt != NULL);
    dot = strchr(jwt, '.');
    last = strrchr(jwt, '.');
    read_part(jwt, dot, part);
    CHECK_STR(part, header);
    read_part(dot + 1, last, part);
    CHECK_STR(part,
              "{\"iss\":\"hub\",\"sub\":\"hub\","
              "\"aud\":\"https://idp.example/token\",\"jti\":\"once\","
              "\"iat\":1700000000,\"exp\":1700000300}");
    size = read_part(last + 1, jwt + strlen(jwt), part);
    if (EVP_PKEY_base_id(key) == EVP_PKEY_EC)
        size = pack(part, size);
    CHECK(EVP_DigestVerifyInit(work, NULL, is_ed ? NULL : EVP_sha256(), NULL,
                               key) == 1);
    CHECK(EVP_DigestVerify(work, (unsigned char *)part, size,
                           (unsigned char *)jwt, (size_t)(last - jwt)) == 1);
    EVP_MD_CTX_free(work);
    EVP_PKEY_free(read);
    EVP_PKEY_free(key);
    free(jwt);
    free(pem);
}

TEST(oauth, signs_assertions)
{
    check_assertion(make_key(EVP_PKEY_RSA, 2048),
                    "{\"alg\":\"RS256\",\"typ\":\"JWT\",\"kid\":\"k1\"}");
    check_assertion(make_key(EVP_PKEY_ED25519, 0),
                    "{\"alg\":\"EdDSA\",\"typ\":\"JWT\",\"kid\":\"k1\"}");
}

/* Numbers that begin with zeros are as long as the others. */
TEST(oauth, signs_with_numbers_of_one_length)
{
    for (uint64_t i = 0; i < seeds(100); i++)
        check_assertion(make_key(EVP_PKEY_EC, NID_X9_62_prime256v1),
                        "{\"alg\":\"ES256\",\"typ\":\"JWT\",\"kid\":\"k1\"}");
}

static void check_refused_key(EVP_PKEY *key)
{
    char *pem = pem_of(key);
    EVP_PKEY *read;
    stg_error err;

    CHECK(stg_oauth_key_read(&read, pem, &err) == STG_INVALID);
    CHECK(read == NULL);
    CHECK(strncmp(err.text, "private-key: ", 13) == 0);
    EVP_PKEY_free(key);
    free(pem);
}

TEST(oauth, refuses_keys_that_no_algorithm_takes)
{
    EVP_PKEY *read;

    check_refused_key(make_key(EVP_PKEY_EC, NID_secp384r1));
    check_refused_key(make_key(EVP_PKEY_RSA, 1024));
    check_refused_key(make_key(EVP_PKEY_RSA_PSS, 2048));
    CHECK(stg_oauth_key_read(&read, "no key", NULL) == STG_INVALID);
}

/* -- options ----------------------------------------------------------------- */

static void check_refused(const stg_oauth_options *o, const char *field)
{
    stg_error err;

    CHECK(stg_oauth_check(o, &err) == STG_INVALID);
    CHECK(strncmp(err.text, field, strlen(field)) == 0);
    CHECK(err.text[strlen(field)] == ':');
}

TEST(oauth, wants_one_way_to_say_who_it_is)
{
    stg_oauth_options o = basic;

    CHECK(stg_oauth_check(&o, NULL) == STG_OK);
    o.key_id = "k";
    check_refused(&o, "key-id");
    o = basic;
    o.assertion_audience = "x";
    check_refused(&o, "assertion-audience");
    o = basic;
    o.private_key = "x";
    check_refused(&o, "private-key");
    o.client_secret = NULL;
    check_refused(&o, "private-key");
    o.private_key = NULL;
    check_refused(&o, "client-secret");
    o = basic;
    o.client_id = NULL;
    check_refused(&o, "client-id");
    o = basic;
    o.token_url = "ftp://idp.example/";
    check_refused(&o, "token-url");
    o = basic;
    o.scope = "a\"b";
    check_refused(&o, "scope");
    o.scope = "a\\b";
    check_refused(&o, "scope");
    o.scope = "a\x7f";
    check_refused(&o, "scope");
    o.scope = "a\tb";
    check_refused(&o, "scope");
    o.scope = "!~ b";
    CHECK(stg_oauth_check(&o, NULL) == STG_OK);
}

TEST(oauth, is_the_same_by_its_texts)
{
    char secret[] = "s3cret";
    stg_oauth_options a = basic, b = basic;

    b.client_secret = secret;
    CHECK(stg_oauth_same(&a, &b));
    secret[0] = 'S';
    CHECK(!stg_oauth_same(&a, &b));
    b = basic;
    b.scope = "x";
    CHECK(!stg_oauth_same(&a, &b));
    b = basic;
    b.auth = STG_OAUTH_BODY;
    CHECK(!stg_oauth_same(&a, &b));
}

/* -- answers ------------------------------------------------------------------- */

static void check_taken(const char *body, const char *token, stg_ns lifetime)
{
    stg_oauth_answer a;

    CHECK(stg_oauth_answer_read(&a, 200, (stg_span){body, strlen(body)},
                                NULL) == STG_OK);
    CHECK_STR(a.token, token);
    CHECK_U64(a.lifetime, lifetime);
    free(a.token);
}

TEST(oauth, takes_a_token)
{
    check_taken(
        "{\"access_token\":\"2YotnFZFEjr1zCsicMWpAA\","
        "\"token_type\":\"Bearer\",\"expires_in\":3600,\"x\":[]}",
        "2YotnFZFEjr1zCsicMWpAA", STG_HOUR);
    check_taken(
        "{\"access_token\":\"a.b-c_d~e+f/g==\",\"token_type\":\"bearer\","
        "\"expires_in\":\"60\"}",
        "a.b-c_d~e+f/g==", STG_MIN);
    check_taken("{\"access_token\":\"a\",\"token_type\":\"bEaReR\"}", "a", 0);
    check_taken(
        "{\"access_token\":\"a\",\"token_type\":\"Bearer\","
        "\"expires_in\":1e300}",
        "a", 365 * STG_DAY);
    check_taken(
        "{\"access_token\":\"a\",\"token_type\":\"Bearer\","
        "\"expires_in\":1.5}",
        "a", 1500 * STG_MS);
}

static void check_words(int status, const char *body, const char *words)
{
    stg_oauth_answer a;
    stg_error err;

    CHECK(stg_oauth_answer_read(&a, status, (stg_span){body, strlen(body)},
                                &err) == STG_INVALID);
    CHECK(a.token == NULL);
    CHECK_STR(err.text, words);
}

#define TOKEN(text) "{\"access_token\":\"" text "\",\"token_type\":\"Bearer\"}"

/* Whatever a server sends, no header is made of it that says more. */
TEST(oauth, refuses_what_is_no_token)
{
    static const char none[] =
        "answered 200 with an access_token that no header may have";

    check_words(200, TOKEN("a\\r\\nX: y"), none);
    check_words(200, TOKEN("a b"), none);
    check_words(200, TOKEN(""), none);
    check_words(200, TOKEN("\xc3\xa4"), none);
    check_words(200, TOKEN("=a"), none);
    check_words(200, TOKEN("a\\u0000b"),
                "answered 200 without an object of JSON");
    check_words(200, "{\"access_token\":7,\"token_type\":\"Bearer\"}",
                "answered 200 without an access_token");
    check_words(200, "{\"access_token\":\"a\",\"token_type\":\"mac\"}",
                "answered 200 with a token_type that is not Bearer");
    check_words(200, "{\"access_token\":\"a\"}",
                "answered 200 with a token_type that is not Bearer");
    check_words(200, "<html>", "answered 200 without an object of JSON");
    check_words(200, "", "answered 200 without an object of JSON");
    check_words(200, "[]", "answered 200 without an object of JSON");
    check_words(200,
                "{\"access_token\":\"a\",\"access_token\":\"b\","
                "\"token_type\":\"Bearer\"}",
                "answered 200 without an object of JSON");
}

TEST(oauth, refuses_an_end_that_is_none)
{
    static const char *const ends[] = {"0",       "-1",   "\"\"", "\"soon\"",
                                       "\"-60\"", "[60]", "true", "\"1e9\""};
    char body[200];

    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        snprintf(body, sizeof body,
                 "{\"access_token\":\"a\",\"token_type\":\"Bearer\","
                 "\"expires_in\":%s}",
                 ends[i]);
        check_words(200, body,
                    "answered 200 with an expires_in that is no number of "
                    "seconds");
    }
}

TEST(oauth, refuses_what_is_too_large)
{
    stg_oauth_answer a;
    char *body = calloc(1, STG_OAUTH_ANSWER_MAX + 1);

    memset(body, ' ', STG_OAUTH_ANSWER_MAX);
    check_words(200, body, "answered 200 with more than 64 KiB");
    memcpy(body, "{\"access_token\":\"", 17);
    memset(body + 17, 'a', STG_OAUTH_TOKEN_MAX + 1);
    memcpy(body + 17 + STG_OAUTH_TOKEN_MAX + 1, "\",\"token_type\":\"Bearer\"}",
           24);
    body[17 + STG_OAUTH_TOKEN_MAX + 1 + 24] = '\0';
    check_words(200, body, "answered 200 with an access_token above 16 KiB");
    memmove(body + 17, body + 18, strlen(body + 18) + 1);
    CHECK(stg_oauth_answer_read(&a, 200, (stg_span){body, strlen(body)},
                                NULL) == STG_OK);
    CHECK(strlen(a.token) == STG_OAUTH_TOKEN_MAX);
    free(a.token);
    free(body);
}

/* What the server says is shown, and what a terminal would obey is not. */
TEST(oauth, says_what_the_server_says)
{
    check_words(401, "{\"error\":\"invalid_client\"}",
                "answered 401 invalid_client");
    check_words(400,
                "{\"error\":\"invalid_scope\","
                "\"error_description\":\"no \\u001b[31m\\r\\nscope\"}",
                "answered 400 invalid_scope (no ?[31m??scope)");
    check_words(500, "oops", "answered 500");
    check_words(302, TOKEN("a"), "answered 302");
}
