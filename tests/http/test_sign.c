/* Signatures of requests: the published examples of each scheme, and what a
 * receiver takes and refuses. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http/sign.h"
#include "http/sign_key.h"
#include "http/verify.h"
#include "tests/harness.h"

enum { LINES_MAX = 4096 };

static stg_span span(const char *text)
{
    return (stg_span){text, strlen(text)};
}

/* The lines of a request, in text. */
static const char *sign(const stg_sign_options *o, const char *const *secrets,
                        size_t count, const char *id, uint64_t seconds,
                        stg_span body, char text[LINES_MAX])
{
    stg_signer *s;
    char *end;

    CHECK(stg_sign_check(o, NULL) == STG_OK);
    CHECK(stg_signer_new(&s, o, secrets, count, NULL) == STG_OK);
    end = stg_signer_put(
        s, text,
        &(stg_sign_request){.id = span(id),
                            .seconds = seconds,
                            .body = body,
                            .content_type = span("application/json"),
                            .method = "POST",
                            .url = "https://Shop.example:443/in?a=b"});
    CHECK(end != NULL);
    CHECK((size_t)(end - text) <= stg_signer_room(s, strlen(id)));
    *end = '\0';
    stg_signer_free(s);
    return text;
}

static const stg_sign_options standard = {.scheme = STG_SIGN_STANDARD},
                              github = {.scheme = STG_SIGN_GITHUB},
                              stripe = {.scheme = STG_SIGN_STRIPE};

static const char id[] = "msg_p5jXN8AQM9LWM0D4loKWxJek",
                  payload[] = "{\"test\": 2432232314}",
                  secret[] = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
                  private_key[] =
                      "whsk_6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbfVKIDij2"
                      "HKpMKkioLlX0dRqSKJp4AJ6p9lMicMFs6Kvg==",
                  public_key[] =
                      "whpk_1SiA4o9hyqTCpIqC5V9HUakiiaeACeqfZTInDBbOir4=";

static const uint64_t at = 1614265330;

/* Source: the tests of the Standard Webhooks libraries. */
TEST(sign, signs_as_standard_webhooks_does)
{
    const char *const secrets[] = {secret};
    char text[LINES_MAX];

    CHECK_STR(sign(&standard, secrets, 1, id, at, span(payload), text),
              "Webhook-Id: msg_p5jXN8AQM9LWM0D4loKWxJek\r\n"
              "Webhook-Timestamp: 1614265330\r\n"
              "Webhook-Signature: "
              "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=\r\n");
}

/* Source: the same key pair and message as in Svix's tests of v1a. */
TEST(sign, signs_with_all_secrets_and_keys_of_ed25519)
{
    const char *const secrets[] = {secret + 6, private_key};
    char text[LINES_MAX];

    CHECK_STR(sign(&standard, secrets, 2, id, at, span(payload), text),
              "Webhook-Id: msg_p5jXN8AQM9LWM0D4loKWxJek\r\n"
              "Webhook-Timestamp: 1614265330\r\n"
              "Webhook-Signature: "
              "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE= "
              "v1a,hnO3f9T8Ytu9HwrXslvumlUpqtNVqkhqw/enGzPCXe5BdqzCInXqYXFymVJ"
              "aA7AZdpXwVLPo3mNl8EM+m7TBAg==\r\n");
}

/* Source: GitHub, "Validating webhook deliveries". */
TEST(sign, signs_as_github_does)
{
    const char *const secrets[] = {"It's a Secret to Everybody"};
    char text[LINES_MAX];

    CHECK_STR(sign(&github, secrets, 1, id, at, span("Hello, World!"), text),
              "X-Hub-Signature-256: sha256=757107ea0eb2509fc211221cce984b8a3757"
              "0b6d7586c22c46f4379c8b043e17\r\n");
}

/* The key is the whole text, whsec_ too. The digests are Python's
 * hmac.new(secret, b"1614265330.{}", "sha256").hexdigest(). */
TEST(sign, signs_as_stripe_does)
{
    const char *const secrets[] = {"whsec_0123456789abcdefghij",
                                   "another secret, of 31 bytes ..."};
    char text[LINES_MAX];

    CHECK_STR(
        sign(&stripe, secrets, 2, id, at, span("{}"), text),
        "Stripe-Signature: t=1614265330,v1=76eeca06dea26c9a950b5319477422e4a7011483213e24f111304106031b0d2c,v1=f274820515d8655ccffad1b3eee25331c99016f7aff6f7e78c78199c23bc5c16\r\n");
}

/* As Slack, and as Shopify. */
TEST(sign, signs_as_it_is_told)
{
    const stg_sign_options slack = {.scheme = STG_SIGN_CUSTOM,
                                    .header = "X-Slack-Signature",
                                    .time_header = "X-Slack-Request-Timestamp",
                                    .signs = "v0:{timestamp}:{body}",
                                    .prefix = "v0="};
    const stg_sign_options shopify = {.scheme = STG_SIGN_CUSTOM,
                                      .header = "X-Shopify-Hmac-Sha256",
                                      .encoding = STG_SIGN_BASE64};
    const stg_sign_options large = {.scheme = STG_SIGN_CUSTOM,
                                    .header = "X-S",
                                    .signs = "{id}{body}{x",
                                    .algorithm = STG_SIGN_SHA512};
    const char *const secrets[] = {"It's a Secret to Everybody"};
    char text[LINES_MAX];

    CHECK_STR(
        sign(&slack, secrets, 1, id, at, span("{}"), text),
        "X-Slack-Request-Timestamp: 1614265330\r\n"
        "X-Slack-Signature: v0=c2cb3bc1b870a2de829c24acd50bc34dff5a4b82add931df7a0d2afb17c5ab39\r\n");
    CHECK_STR(
        sign(&shopify, secrets, 1, id, at, span("{}"), text),
        "X-Shopify-Hmac-Sha256: ULASPm5EQw0sQ+zKDuUg2WH/0yZCXAeFn3ClcWHD680=\r\n");
    CHECK_STR(
        sign(&large, secrets, 1, "7", at, span("{}"), text),
        "X-S: ebe45840a3318026c099a49d1b26b92c987322184fdfc6d76c3a86d5697a1b93fd69f6d4fc8d613234231f299aa9badde971c587f67b38c8c67daab101d82e19\r\n");
}

/* -- what is refused ------------------------------------------------------- */

static void check_refused(const stg_sign_options *o, const char *text,
                          const char *words)
{
    stg_error err;

    CHECK(stg_sign_check_secret(o, text, &err) == STG_INVALID);
    CHECK(strstr(err.text, words) != NULL);
    if (strlen(text) > 6)
        CHECK(strstr(err.text, text + 6) == NULL);
}

TEST(sign, refuses_secrets_that_are_none)
{
    check_refused(&standard, "whsec_not base64 at all", "is not Base64");
    check_refused(&standard, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS",
                  "is not Base64");
    check_refused(&standard, "", "is not Base64");
    check_refused(&standard, "whsec_", "is not Base64");
    check_refused(&standard, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaQ=",
                  "has 23 bytes; expected 24 at least: `stagger secret new`");
    check_refused(&standard, "whsk_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
                  "a key of Ed25519 has 32 or 64 bytes, and this one 24");
    check_refused(&standard,
                  "whsk_6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbfVKIDij2"
                  "HKpMKkioLlX0dRqSKJp4AJ6p9lMicMFs6Kvw==",
                  "the second half of the private key is not its public key");
    check_refused(&standard, public_key, "whpk_ begins a public key");
    check_refused(&github, "23 bytes are too short.", "has 23 bytes");
    CHECK(stg_sign_check_secret(&standard, secret, NULL) == STG_OK);
    CHECK(stg_sign_check_secret(&standard, private_key, NULL) == STG_OK);
    CHECK(stg_sign_check_secret(&github, "24 bytes are just enough", NULL) ==
          STG_OK);
}

static void check_custom(stg_sign_options o, const char *words)
{
    stg_error err;

    o.scheme = STG_SIGN_CUSTOM;
    CHECK(stg_sign_check(&o, &err) == STG_INVALID);
    CHECK(strstr(err.text, words) != NULL);
}

TEST(sign, refuses_a_custom_scheme_that_says_nothing)
{
    check_custom((stg_sign_options){.header = NULL}, "header: the custom");
    check_custom((stg_sign_options){.header = "X Y"}, "header: `X Y` cannot");
    check_custom((stg_sign_options){.header = "Host"}, "header: `Host`");
    check_custom((stg_sign_options){.header = "webhook_x"}, "header: `webh");
    check_custom((stg_sign_options){.header = "Content-Type"}, "header: `Con");
    check_custom((stg_sign_options){.header = "X-S", .time_header = "x_s"},
                 "timestamp-header: it is the signature's");
    check_custom((stg_sign_options){.header = "X-S", .time_header = "TE"},
                 "timestamp-header: `TE`");
    check_custom((stg_sign_options){.header = "X-S", .prefix = "a\nb"},
                 "prefix: it cannot");
    check_custom((stg_sign_options){.header = "X-S", .signs = "{id}"},
                 "signs: it is without {body}");
    check_custom(
        (stg_sign_options){.header = "X-S", .signs = "{timestamp}{body}"},
        "signs: a {timestamp}, and no `timestamp-header`");
    check_custom(
        (stg_sign_options){.header = "X-S", .signs = "{body}{{{{{{{{{{{{{{{{"},
        "signs: more than 16 parts");
}

TEST(sign, knows_its_headers)
{
    CHECK(stg_sign_sets(&standard, span("webhook_id")));
    CHECK(stg_sign_sets(&github, span("x-hub-signature-256")));
    CHECK(!stg_sign_sets(&github, span("x-hub-signature")));
    CHECK(stg_sign_sets(&stripe, span("STRIPE-SIGNATURE")));
    CHECK(!stg_sign_sets(&(stg_sign_options){.scheme = STG_SIGN_NONE},
                         span("Webhook-Id")));
}

/* What is signed on another thread is the same; a key pair is what takes long. */
TEST(sign, signs_aside_what_takes_long)
{
    static const char *const shared[] = {secret}, *const pair[] = {private_key};
    const stg_sign_request r = {
        .id = span(id), .seconds = at, .body = span(payload)};
    char text[LINES_MAX], again[LINES_MAX];
    stg_signer *s;
    char *end;

    CHECK_INT(stg_signer_new(&s, &standard, pair, 1, NULL), STG_OK);
    CHECK(stg_signer_is_slow(s));
    CHECK(stg_signer_sets(s, span("webhook-id")));
    CHECK(!stg_signer_sets(s, span("webhook")));
    CHECK(stg_signer_hold(s) == s);
    stg_signer_free(s);
    end = stg_signer_put(s, text, &r);
    CHECK_INT(stg_signer_put_aside(s, again, &r) - again, end - text);
    CHECK(memcmp(text, again, (size_t)(end - text)) == 0);
    stg_signer_free(s);
    CHECK_INT(stg_signer_new(&s, &standard, shared, 1, NULL), STG_OK);
    CHECK(!stg_signer_is_slow(s));
    stg_signer_free(s);
}

TEST(sign, has_several_secrets_where_a_header_can_have_several_signatures)
{
    const stg_sign_secret secrets[] = {{.value = "a"}, {.value = "b"}};
    const char **texts = stg_sign_secret_texts(secrets, 2);

    CHECK_STR(texts[0], "a");
    CHECK_STR(texts[1], "b");
    CHECK(texts[2] == NULL);
    free(texts);
    CHECK_U64(stg_sign_secrets_max(STG_SIGN_STANDARD), 8);
    CHECK_U64(stg_sign_secrets_max(STG_SIGN_STRIPE), 8);
    CHECK_U64(stg_sign_secrets_max(STG_SIGN_GITHUB), 1);
    CHECK_U64(stg_sign_secrets_max(STG_SIGN_CUSTOM), 1);
    CHECK_U64(stg_sign_secrets_max(STG_SIGN_MESSAGE), 1);
}

/* -- receivers ------------------------------------------------------------- */

static bool verify(const char *with, const char *lines, stg_span body,
                   uint64_t now, stg_error *why)
{
    stg_verifier *v;
    bool is_right;

    CHECK(stg_verifier_new_any(&v, with, NULL) == STG_OK);
    is_right = stg_verifier_check(
                   v, &(stg_verify_request){.lines = span(lines), .body = body},
                   now, why) == STG_SIGNATURE_RIGHT;
    stg_verifier_free(v);
    return is_right;
}

static void check_unverified(const char *with, const char *lines,
                             const char *body, uint64_t now, const char *words)
{
    stg_error why;

    CHECK(!verify(with, lines, span(body), now, &why));
    CHECK(strstr(why.text, words) != NULL);
}

TEST(verify, takes_what_was_signed_with_the_secret_alone)
{
    static const stg_sign_options *const schemes[] = {&standard, &github,
                                                      &stripe};
    const char *const secrets[] = {secret};
    const char *other = "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
    char text[LINES_MAX];

    for (size_t i = 0; i < 3; i++) {
        sign(schemes[i], secrets, 1, id, at, span(payload), text);
        CHECK(verify(secret, text, span(payload), at, NULL));
        check_unverified(other, text, payload, at, "no signature in ");
        check_unverified(secret, text, "{\"test\": 2432232315}", at,
                         "no signature in ");
        check_unverified(secret, text, "", at, "no signature in ");
    }
}

TEST(verify, takes_either_secret_while_both_are_used)
{
    const char *const secrets[] = {"whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
                                   secret, private_key};
    char text[LINES_MAX];

    sign(&standard, secrets, 3, id, at, span(payload), text);
    for (size_t i = 0; i < 3; i++)
        CHECK(verify(secrets[i], text, span(payload), at, NULL));
    CHECK(verify(public_key, text, span(payload), at, NULL));
    check_unverified(public_key, text, "other", at, "no signature in ");
    sign(&stripe, secrets, 2, id, at, span(payload), text);
    CHECK(verify(secrets[0], text, span(payload), at, NULL));
    CHECK(verify(secrets[1], text, span(payload), at, NULL));
}

TEST(verify, refuses_what_is_five_minutes_away)
{
    const char *const secrets[] = {secret};
    char text[LINES_MAX];

    for (size_t i = 0; i < 2; i++) {
        sign(i == 0 ? &standard : &stripe, secrets, 1, id, at, span(payload),
             text);
        CHECK(verify(secret, text, span(payload), at + 300, NULL));
        CHECK(verify(secret, text, span(payload), at - 300, NULL));
        check_unverified(secret, text, payload, at + 301, "301 s old");
        check_unverified(secret, text, payload, at - 301, "301 s ahead");
    }
}

/* Each byte of lines and body, changed by one bit. */
TEST(verify, refuses_a_single_changed_byte)
{
    static const stg_sign_options *const schemes[] = {&standard, &github,
                                                      &stripe};
    const char *const secrets[] = {secret, private_key};
    char text[LINES_MAX], body[sizeof payload];

    for (size_t i = 0; i < 6; i++) {
        const char *with = secrets[i / 3];

        if (i == 4 || i == 5)
            continue; // only one scheme has pairs
        sign(schemes[i % 3], &with, 1, id, at, span(payload), text);
        strcpy(body, payload);
        for (size_t c = 0; body[c] != '\0'; c++) {
            body[c] ^= 1;
            CHECK(!verify(with, text, span(body), at, NULL));
            body[c] ^= 1;
        }
        for (size_t c = 0; text[c] != '\0'; c++) {
            bool is_text = strchr("\r\n ", text[c]) == NULL;

            text[c] ^= 1;
            CHECK(!is_text || !verify(with, text, span(payload), at, NULL));
            text[c] ^= 1;
        }
    }
}

static stg_signature verify_as(const stg_sign_options *o,
                               const char *const *secrets, size_t count,
                               const char *lines, uint64_t now)
{
    const stg_verify_request r = {.lines = span(lines), .body = span(payload)};
    stg_verifier *v;
    stg_signature how, head;
    stg_error why;

    CHECK(stg_verify_check(o, &why) == STG_OK);
    CHECK(stg_verifier_new(&v, o, secrets, count, 60, NULL) == STG_OK);
    how = stg_verifier_check(v, &r, now, &why);
    head = stg_verifier_check_head(v, &r, now, &why);
    CHECK(head == (how == STG_SIGNATURE_WRONG ? STG_SIGNATURE_RIGHT : how));
    stg_verifier_free(v);
    return how;
}

TEST(verify, takes_one_scheme_by_any_of_its_secrets)
{
    static const stg_sign_options *const schemes[] = {&standard, &github,
                                                      &stripe};
    const char *const one[] = {secret},
                      *const two[] = {"whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
                                      secret};
    char text[LINES_MAX];

    for (size_t i = 0; i < 3; i++) {
        bool has_time = schemes[i] != &github;
        const stg_sign_options *other = schemes[(i + 1) % 3];

        sign(schemes[i], one, 1, id, at, span(payload), text);
        CHECK_INT(verify_as(schemes[i], two, 2, text, at + 60),
                  STG_SIGNATURE_RIGHT);
        CHECK_INT(verify_as(schemes[i], two, 1, text, at), STG_SIGNATURE_WRONG);
        CHECK_INT(verify_as(schemes[i], two, 2, text, at + 61),
                  has_time ? STG_SIGNATURE_STALE : STG_SIGNATURE_RIGHT);
        CHECK_INT(verify_as(other, two, 2, text, at), STG_SIGNATURE_MISSING);
    }
    sign(&standard, (const char *const[]){private_key}, 1, id, at,
         span(payload), text);
    CHECK_INT(
        verify_as(&standard, (const char *const[]){public_key}, 1, text, at),
        STG_SIGNATURE_RIGHT);
    CHECK_INT(verify_as(&standard, one, 1, text, at), STG_SIGNATURE_WRONG);
}

TEST(verify, takes_a_custom_scheme)
{
    const stg_sign_options o = {.scheme = STG_SIGN_CUSTOM,
                                .header = "X-S",
                                .time_header = "X-T",
                                .id_header = "X-I",
                                .signs = "{id}:{timestamp}:{body}",
                                .encoding = STG_SIGN_BASE64};
    const char *const secrets[] = {secret};
    char text[LINES_MAX];

    sign(&o, secrets, 1, id, at, span(payload), text);
    CHECK_INT(verify_as(&o, secrets, 1, text, at), STG_SIGNATURE_RIGHT);
    *strchr(text, '_') = '-'; // in the id
    CHECK_INT(verify_as(&o, secrets, 1, text, at), STG_SIGNATURE_WRONG);
    CHECK_INT(verify_as(&o, secrets, 1, strchr(text, '\n') + 1, at),
              STG_SIGNATURE_MISSING);
}

/* A sender may leave it out, and a receiver cannot know it then. */
TEST(verify, asks_for_the_header_of_an_id_that_is_signed)
{
    stg_sign_options o = {
        .scheme = STG_SIGN_CUSTOM, .header = "X-S", .signs = "{id}.{body}"};
    stg_error err;

    CHECK_INT(stg_sign_check(&o, &err), STG_OK);
    CHECK_INT(stg_verify_check(&o, &err), STG_INVALID);
    CHECK(strstr(err.text, "no `id-header` says") != NULL);
    o.id_header = "X-I";
    CHECK_INT(stg_verify_check(&o, &err), STG_OK);
}

/* A request could have many, and each would cost a look. */
TEST(verify, looks_at_eight_signatures)
{
    const char *const secrets[] = {secret};
    char text[LINES_MAX], more[LINES_MAX];
    char *first;

    sign(&stripe, secrets, 1, id, at, span(payload), text);
    first = strstr(text, "v1=");
    for (int wrong = 7; wrong <= 8; wrong++) {
        char *to = more + sprintf(more, "%.*s", (int)(first - text), text);

        for (int i = 0; i < wrong; i++)
            to += sprintf(to, "v1=00,");
        strcpy(to, first);
        CHECK_INT(verify_as(&stripe, secrets, 1, more, at),
                  wrong < 8 ? STG_SIGNATURE_RIGHT : STG_SIGNATURE_WRONG);
    }
}

TEST(verify, says_what_is_missing)
{
    static const char id_line[] = "Webhook-Id: 1\r\n",
                      time_line[] = "Webhook-Timestamp: 1614265330\r\n",
                      signed_line[] = "Webhook-Signature: v1,AAAA\r\n";
    char text[LINES_MAX];

    check_unverified(secret, "", payload, at, "it is not signed");
    check_unverified(secret, signed_line, payload, at,
                     "Webhook-Id is not there");
    snprintf(text, sizeof text, "%s%s", id_line, signed_line);
    check_unverified(secret, text, payload, at,
                     "Webhook-Timestamp is not there");
    snprintf(text, sizeof text, "%s%s%s%s", id_line, time_line, signed_line,
             signed_line);
    check_unverified(secret, text, payload, at,
                     "Webhook-Signature comes twice");
    snprintf(text, sizeof text, "%s%s%s", id_line, time_line, signed_line);
    check_unverified(secret, text, payload, at, "no signature in ");
    check_unverified(public_key, text, payload, at,
                     "has no signature for a secret of this kind");
    snprintf(text, sizeof text, "%sWebhook-Timestamp: -1\r\n%s", id_line,
             signed_line);
    check_unverified(secret, text, payload, at, "not a number of seconds");
    check_unverified(secret, "Stripe-Signature: v1=00\r\n", payload, at,
                     "not a number of seconds");
    check_unverified(public_key, "X-Hub-Signature-256: sha256=00\r\n", payload,
                     at, "the secret is not one of an HMAC");
    check_unverified("a secret with 24 characters", signed_line, payload, at,
                     "the secret is not one of Standard Webhooks");
}

TEST(sign, makes_secrets_that_work)
{
    char one[STG_SECRET_TEXT_MAX], two[STG_SECRET_TEXT_MAX],
        public_one[STG_SECRET_TEXT_MAX], text[LINES_MAX];
    const char *secrets[] = {one, two};

    CHECK(stg_secret_make(one) && stg_secret_make_pair(two, public_one));
    CHECK(strlen(one) == 6 + 44 && strlen(two) == 5 + 88 &&
          strlen(public_one) == 5 + 44);
    sign(&standard, secrets, 2, id, at, span(payload), text);
    CHECK(verify(one, text, span(payload), at, NULL));
    CHECK(verify(public_one, text, span(payload), at, NULL));
    CHECK(stg_secret_make_hex(one) && stg_secret_make_hex(two));
    CHECK(strlen(one) == 64 && strspn(one, "0123456789abcdef") == 64);
    CHECK(strcmp(one, two) != 0);
}

TEST(sign, keeps_no_text_of_the_options)
{
    char header[] = "X-Sig", signs[] = "{timestamp}.{body}", time[] = "X-Time",
         prefix[] = "p=", text[LINES_MAX], again[LINES_MAX];
    const stg_sign_options o = {.scheme = STG_SIGN_CUSTOM,
                                .header = header,
                                .time_header = time,
                                .signs = signs,
                                .prefix = prefix};
    const stg_sign_request r = {
        .id = span(id), .seconds = at, .body = span(payload)};
    static const char *const word[] = {secret};
    stg_signer *s;
    char *end;

    CHECK_INT(stg_signer_new(&s, &o, word, 1, NULL), STG_OK);
    end = stg_signer_put(s, text, &r);
    memset(header, '#', sizeof header - 1);
    memset(signs, '#', sizeof signs - 1);
    memset(time, '#', sizeof time - 1);
    memset(prefix, '#', sizeof prefix - 1);
    CHECK_U64((size_t)(stg_signer_put(s, again, &r) - again),
              (size_t)(end - text));
    CHECK(memcmp(text, again, (size_t)(end - text)) == 0);
    stg_signer_free(s);
}

/* A reload keeps what signs only where nothing of it is new. */
TEST(sign, is_the_same_where_all_of_it_is)
{
    static const char *const covers[] = {"@method"};
    const stg_sign_options o = {.scheme = STG_SIGN_MESSAGE,
                                .header = "h",
                                .time_header = "t",
                                .id_header = "i",
                                .signs = "{body}",
                                .prefix = "p",
                                .covers = covers,
                                .cover_count = 1,
                                .key_id = "k"};
    stg_sign_options others[11];

    for (size_t i = 0; i < 11; i++)
        others[i] = o;
    CHECK(stg_sign_same(&o, &others[0]));
    others[0].scheme = STG_SIGN_CUSTOM;
    others[1].header = NULL;
    others[2].time_header = NULL;
    others[3].id_header = NULL;
    others[4].signs = NULL;
    others[5].prefix = NULL;
    others[6].algorithm++;
    others[7].encoding++;
    others[8].covers = NULL;
    others[9].cover_count = 0;
    others[10].key_id = NULL;
    for (size_t i = 0; i < 11; i++)
        CHECK_FROM(i, !stg_sign_same(&o, &others[i]));
}
