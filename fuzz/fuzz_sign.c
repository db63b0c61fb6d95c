/* Any secret: what it signs it verifies, and another one does not. Any headers: a
 * receiver reads them, and takes none whose signature it cannot have made.
 *
 * The input is a secret, a line, and behind it the headers, an empty line and the
 * body. */
#include <string.h>

#include "fuzz/fuzz.h"
#include "http/header.h"
#include "http/sign.h"
#include "http/verify.h"

enum { NOW = 1614265330 };

static const char other[] = "whsec_plJ3nmyCDGBKInavdOK15jsl9FmxTQsE";

/* Also with bytes of 0 behind it, which are the same key to an HMAC: RFC 2104,
 * section 2. */
static bool is_other(const char *secret)
{
    return strncmp(secret, other, sizeof other - 1) == 0 ||
           strncmp(secret, other + 6, sizeof other - 7) == 0;
}

static bool verify(const char *secret, stg_span lines, stg_span body)
{
    stg_verifier *v;
    bool is_right;

    if (stg_verifier_new_any(&v, secret, NULL) != STG_OK)
        return false;
    is_right =
        stg_verifier_check(v,
                           &(stg_verify_request){.lines = lines,
                                                 .body = body,
                                                 .method = {"POST", 4},
                                                 .path = {"/in", 3},
                                                 .query = {"a=b", 3},
                                                 .host = {"shop.test", 9}},
                           NOW, NULL) == STG_SIGNATURE_RIGHT;
    stg_verifier_free(v);
    return is_right;
}

static void check_signed(const stg_sign_options *o, const char *secret,
                         stg_span body)
{
    static const char sent[] = "Idempotency-Key: 0123456789abcdef-7\r\n";
    const stg_sign_request r = {.id = {"0123456789abcdef-7", 18},
                                .seconds = NOW,
                                .body = body,
                                .method = "POST",
                                .url = "http://shop.test/in?a=b"};
    stg_signer *s;
    char *lines, *mine, *end;
    stg_span whole;

    HOLDS(stg_signer_new(&s, o, &secret, 1, NULL) == STG_OK);
    lines = malloc(sizeof sent - 1 + stg_signer_room(s, r.id.size));
    memcpy(lines, sent, sizeof sent - 1);
    mine = lines + sizeof sent - 1;
    end = stg_signer_put(s, mine, &r);
    HOLDS(end != NULL && (size_t)(end - mine) <= stg_signer_room(s, r.id.size));
    whole = (stg_span){lines, (size_t)(end - lines)};
    if (o->scheme != STG_SIGN_CUSTOM) {
        HOLDS(verify(secret, whole, body));
        HOLDS(is_other(secret) || !verify(other, whole, body));
    }
    stg_signer_free(s);
    free(lines);
}

/* Schemes without pairs take the text of one as a text. */
static bool is_pair(const char *secret)
{
    return (strncmp(secret, "wh", 2) == 0 &&
            strncmp(secret, "whsec_", 6) != 0) ||
           strncmp(secret, "-----BEGIN ", 11) == 0;
}

/* All schemes; one of a custom has the body as what it signs, if that may be. */
static void check_secret(const char *secret, stg_span body)
{
    char *signs = strndup(body.at, body.size);

    for (int scheme = STG_SIGN_STANDARD; scheme <= STG_SIGN_CUSTOM; scheme++) {
        stg_sign_options o = {.scheme = (stg_sign_scheme)scheme,
                              .header = "X-Signature",
                              .time_header = "X-Time",
                              .signs = signs};

        if (is_pair(secret) && scheme != STG_SIGN_STANDARD &&
            scheme != STG_SIGN_MESSAGE)
            continue;
        if (stg_sign_check(&o, NULL) == STG_OK &&
            stg_sign_check_secret(&o, secret, NULL) == STG_OK)
            check_signed(&o, secret, body);
    }
    free(signs);
}

/* A line as the parser of requests gives it. */
static bool is_line(stg_span line)
{
    enum { AROUND = 3 }; // ":" and "\r\n"
    stg_span name = stg_header_name(line);

    return name.size > 0 && line.size >= name.size + AROUND &&
           line.at[line.size - 1] == '\n' && line.at[line.size - 2] == '\r';
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    stg_span left = {(const char *)data, size}, line = stg_header_next(&left);
    size_t end = line.size > 0 && line.at[line.size - 1] == '\n';
    char *secret = strndup(size > 0 ? line.at : "", line.size - end);
    char *headers = malloc(size + 1);
    stg_span lines = {headers, 0};

    while ((line = stg_header_next(&left)).size > 2)
        if (is_line(line)) {
            memcpy(headers + lines.size, line.at, line.size);
            lines.size += line.size;
        }
    HOLDS(!verify(other, lines, left));
    (void)verify(secret, lines, left);
    check_secret(secret, left);
    free(headers);
    free(secret);
    return 0;
}
