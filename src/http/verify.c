/* Verifies signatures of requests. A header that comes twice is refused: one
 * program may read the first of them, and another the last. */
#include "http/verify.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/digits.h"
#include "base/refuse.h"
#include "base/text.h"
#include "http/header.h"
#include "http/request.h"
#include "http/sign_layout.h"

struct stg_verifier {
    EVP_MD_CTX *work;
    stg_sign_key standard, raw; /* raw: the secret's bytes as they are */
    bool has_standard, has_raw;
};

static bool fail(stg_error *why, const char *words)
{
    (void)stg_hub_refuse(why, STG_INVALID, "%s", words);
    return false;
}

/* -- the secret ------------------------------------------------------------ */

/* Either key alone is enough, but a key of a pair is nothing else. */
static stg_status read_keys(stg_verifier *v, const char *secret, stg_error *err)
{
    bool is_pair =
        strncmp(secret, "whsk_", 5) == 0 || strncmp(secret, "whpk_", 5) == 0;
    stg_status status = stg_sign_key_read(&v->standard, secret, err);

    v->has_standard = status == STG_OK;
    if (is_pair)
        return status;
    v->has_raw =
        stg_sign_key_take(&v->raw, secret, EVP_sha256(), NULL) == STG_OK;
    return v->has_raw ? STG_OK : status;
}

stg_status stg_verifier_new(stg_verifier **v, const char *secret,
                            stg_error *err)
{
    stg_verifier *made = calloc(1, sizeof *made);
    stg_status status;

    if (made == NULL)
        return stg_hub_refuse(err, STG_IO, "no memory for a key");
    made->work = EVP_MD_CTX_new();
    status = made->work == NULL
                 ? stg_hub_refuse(err, STG_IO, "no memory for a key")
                 : read_keys(made, secret, err);
    if (status == STG_OK)
        *v = made;
    else
        stg_verifier_free(made);
    return status;
}

void stg_verifier_free(stg_verifier *v)
{
    if (v == NULL)
        return;
    stg_sign_key_close(&v->standard);
    stg_sign_key_close(&v->raw);
    EVP_MD_CTX_free(v->work);
    free(v);
}

/* -- headers --------------------------------------------------------------- */

/* How often the header comes; value is that of the last. */
static size_t find(stg_span lines, const char *name, stg_span *value)
{
    stg_span line, each, found;
    size_t count = 0;

    *value = (stg_span){"", 0};
    while (name != NULL && (line = stg_header_next(&lines)).size > 0) {
        (void)stg_request_line(&line, &each, &found);
        if (!stg_header_equal(each, name))
            continue;
        *value = found;
        count++;
    }
    return count;
}

/* What a signature is checked with. */
typedef struct given {
    stg_span id, time, signatures;
} given;

static bool read_header(stg_span lines, const char *name, stg_span *value,
                        stg_error *why)
{
    size_t count = name == NULL ? 0 : find(lines, name, value);

    if (name == NULL || count == 1)
        return true;
    (void)stg_hub_refuse(why, STG_INVALID, "%s %s", name,
                         count == 0 ? "is not there" : "comes twice");
    return false;
}

/* The next of a list; of size 0 there is none. */
static stg_span take_part(stg_span *list, const char *separator)
{
    stg_span part = {list->at, 0};

    while (part.size < list->size &&
           (separator == NULL || part.at[part.size] != *separator))
        part.size++;
    list->at += part.size + (part.size < list->size);
    list->size -= part.size + (part.size < list->size);
    return part;
}

/* False: it does not begin so. */
static bool take_prefix(stg_span *text, const char *prefix)
{
    size_t size = prefix == NULL ? 0 : strlen(prefix);

    if (size == 0 || text->size < size || memcmp(text->at, prefix, size) != 0)
        return false;
    *text = (stg_span){text->at + size, text->size - size};
    return true;
}

/* The time of a value that has it: t=TIME. */
static void find_time(const stg_sign_layout *l, given *g)
{
    stg_span list = g->signatures;

    while (l->time != NULL && list.size > 0) {
        stg_span part = take_part(&list, l->separator);

        if (take_prefix(&part, l->time))
            g->time = part;
    }
}

static bool check_time(stg_span time, uint64_t now, stg_error *why)
{
    uint64_t seconds = 0, apart;

    if (time.size == 0 || time.size > 12)
        return fail(why, "the timestamp is not a number of seconds");
    for (size_t i = 0; i < time.size; i++) {
        if (time.at[i] < '0' || time.at[i] > '9')
            return fail(why, "the timestamp is not a number of seconds");
        seconds = seconds * 10 + (uint64_t)(time.at[i] - '0');
    }
    apart = seconds > now ? seconds - now : now - seconds;
    if (apart <= STG_VERIFY_WINDOW)
        return true;
    (void)stg_hub_refuse(why, STG_INVALID,
                         "the timestamp is %" PRIu64
                         " s %s; expected %d s at "
                         "most",
                         apart, seconds > now ? "ahead" : "old",
                         STG_VERIFY_WINDOW);
    return false;
}

/* -- signatures ------------------------------------------------------------ */

static bool read_hex(char *to, stg_span text, size_t *size)
{
    *size = text.size / 2;
    for (size_t i = 0; i < *size; i++) {
        int high = stg_hex_digit(text.at[2 * i]);
        int low = stg_hex_digit(text.at[2 * i + 1]);

        if (high < 0 || low < 0)
            return false;
        to[i] = (char)(high << 4 | low);
    }
    return text.size % 2 == 0;
}

static bool read_signature(const stg_sign_layout *l, stg_span text, char *to,
                           size_t *size)
{
    *size = 0;
    if (l->encoding == STG_SIGN_HEX)
        return text.size <= (size_t)2 * STG_SIGNATURE_MAX &&
               read_hex(to, text, size);
    return text.size <= stg_base64_size(STG_SIGNATURE_MAX) &&
           stg_base64_read(to, text, size);
}

/* Whether a signature, without its prefix, is the key's. */
static bool is_right(const stg_verifier *v, const stg_sign_layout *l,
                     const stg_sign_key *k, stg_span text,
                     const stg_sign_pieces *p)
{
    char bytes[STG_SIGNATURE_MAX + 3] = {0}; // Base64 is read by threes
    size_t size;

    return read_signature(l, text, bytes, &size) &&
           stg_sign_key_verify(k, v->work, p->at, p->count,
                               (stg_span){bytes, size});
}

/* One that is right among those of the key's kind is enough: a sender signs with
 * an old and a new secret for a while. */
static bool check_signatures(const stg_verifier *v, const stg_sign_layout *l,
                             const stg_sign_key *k, const given *g,
                             stg_span body, stg_error *why)
{
    const char *prefix = k->pair != NULL ? l->pair_prefix : l->prefix;
    stg_span list = g->signatures;
    stg_sign_pieces p;
    size_t count = 0;

    if (!stg_sign_pieces_make(&p, l->signs, g->id, g->time, body))
        return fail(why, "it has too many parts");
    while (list.size > 0) {
        stg_span part = take_part(&list, l->separator);

        if (!take_prefix(&part, prefix))
            continue;
        if (is_right(v, l, k, part, &p))
            return true;
        count++;
    }
    (void)stg_hub_refuse(
        why, STG_INVALID,
        count > 0 ? "no signature in %s is right: another secret, or the "
                    "request was changed on its way"
                  : "%s has no signature for a secret of this kind",
        l->header);
    return false;
}

static bool check(const stg_verifier *v, const stg_sign_layout *l,
                  const stg_sign_key *k, stg_span lines, stg_span body,
                  uint64_t now, stg_error *why)
{
    given g = {.id = {"", 0}, .time = {"", 0}};

    if (!read_header(lines, l->id_header, &g.id, why) ||
        !read_header(lines, l->time_header, &g.time, why) ||
        !read_header(lines, l->header, &g.signatures, why))
        return false;
    find_time(l, &g);
    if ((l->time_header != NULL || l->time != NULL) &&
        !check_time(g.time, now, why))
        return false;
    return check_signatures(v, l, k, &g, body, why);
}

bool stg_verifier_check(const stg_verifier *v, stg_span lines, stg_span body,
                        uint64_t now, stg_error *why)
{
    static const stg_sign_scheme schemes[] = {STG_SIGN_STANDARD,
                                              STG_SIGN_GITHUB, STG_SIGN_STRIPE};
    stg_span value;

    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++) {
        stg_sign_layout l =
            stg_sign_layout_of(&(stg_sign_options){.scheme = schemes[i]});
        bool is_standard = schemes[i] == STG_SIGN_STANDARD;

        if (find(lines, l.header, &value) == 0)
            continue;
        if (!(is_standard ? v->has_standard : v->has_raw))
            return fail(why, is_standard ? "the secret is not one of Standard "
                                           "Webhooks"
                                         : "the secret is not one of an HMAC");
        return check(v, &l, is_standard ? &v->standard : &v->raw, lines, body,
                     now, why);
    }
    return fail(why,
                "it is not signed: neither Webhook-Signature nor "
                "X-Hub-Signature-256 nor Stripe-Signature is there");
}
