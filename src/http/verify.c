/* Verifies signatures of requests. A header that comes twice is refused: one
 * program may read the first of them, and another the last. */
#include "http/verify.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/crypto.h>

#include "base/digits.h"
#include "base/refuse.h"
#include "base/text.h"
#include "http/header.h"
#include "http/request.h"
#include "http/sign_layout.h"
#include "http/sign_message.h"

enum { SIGNATURES_MAX = 8 }; /* of a request that are looked at */

/* With a layout all keys are of its scheme. Without one, keys[STANDARD] is the
 * secret as Standard Webhooks has it, keys[RAW] its bytes as they are,
 * keys[MESSAGE] as RFC 9421 has it; inner and pair NULL: it is none of these. */
struct stg_verifier {
    EVP_MD_CTX *work;
    uint64_t window;
    bool is_any;
    stg_sign_layout layout;
    stg_sign_message message; /* of STG_SIGN_MESSAGE: what has to be covered */
    size_t count;
    stg_sign_key keys[];
};

enum { STANDARD, RAW, MESSAGE, KINDS };

static stg_signature fail(stg_error *why, stg_signature how, const char *words)
{
    (void)stg_hub_refuse(why, STG_INVALID, "%s", words);
    return how;
}

/* -- options and secrets --------------------------------------------------- */

stg_status stg_verify_check(const stg_sign_options *o, stg_error *err)
{
    stg_status status = stg_sign_layout_check(o, false, err);

    if (status == STG_OK && o->scheme == STG_SIGN_CUSTOM && o->signs != NULL &&
        strstr(o->signs, "{id}") != NULL && o->id_header == NULL)
        status = stg_hub_refuse(err, STG_INVALID,
                                "signs: an {id}, and no `id-header` says which "
                                "it was; expected both");
    return status;
}

stg_status stg_verify_check_secret(const stg_sign_options *o,
                                   const char *secret, stg_error *err)
{
    stg_sign_layout l = stg_sign_layout_of(o);
    stg_sign_key key;
    stg_status status = stg_sign_layout_key(&l, &key, secret, err);

    stg_sign_key_close(&key);
    return status;
}

static stg_verifier *make(size_t count, uint64_t window, stg_error *err)
{
    stg_verifier *v = calloc(1, sizeof *v + count * sizeof *v->keys);

    if (v != NULL) {
        v->window = window;
        v->work = EVP_MD_CTX_new();
    }
    if (v != NULL && v->work != NULL)
        return v;
    free(v);
    (void)stg_hub_refuse(err, STG_IO, "no memory for a key");
    return NULL;
}

static stg_status finish(stg_verifier **v, stg_verifier *made,
                         stg_status status)
{
    if (status == STG_OK)
        *v = made;
    else
        stg_verifier_free(made);
    return status;
}

stg_status stg_verifier_new(stg_verifier **v, const stg_sign_options *o,
                            const char *const *secrets, size_t count,
                            uint64_t window, stg_error *err)
{
    stg_verifier *made = make(count, window, err);
    stg_status status = STG_OK;

    if (made == NULL)
        return STG_IO;
    made->layout = stg_sign_layout_of(o);
    made->message = stg_verify_message_of(o);
    for (; status == STG_OK && made->count < count; made->count++)
        status = stg_sign_layout_key(&made->layout, &made->keys[made->count],
                                     secrets[made->count], err);
    return finish(v, made, status);
}

static bool is_key(const stg_sign_key *k)
{
    return k->inner != NULL || k->pair != NULL;
}

/* One kind of key is enough, but a key of a pair is nothing else. */
stg_status stg_verifier_new_any(stg_verifier **v, const char *secret,
                                stg_error *err)
{
    bool is_pair = strncmp(secret, "-----BEGIN ", 11) == 0 ||
                   strncmp(secret, "whsk_", 5) == 0 ||
                   strncmp(secret, "whpk_", 5) == 0;
    stg_verifier *made = make(KINDS, STG_VERIFY_WINDOW, err);
    stg_status status;

    if (made == NULL)
        return STG_IO;
    made->is_any = true;
    made->count = KINDS;
    made->message =
        stg_verify_message_of(&(stg_sign_options){.cover_count = 0});
    status =
        stg_sign_key_read_any(&made->keys[MESSAGE], secret, STG_PAIR_NONE, err);
    (void)stg_sign_key_read(&made->keys[STANDARD], secret, NULL);
    if (!is_pair && stg_sign_key_take(&made->keys[RAW], secret, EVP_sha256(),
                                      NULL) == STG_OK)
        status = STG_OK;
    return finish(v, made, status);
}

void stg_verifier_free(stg_verifier *v)
{
    if (v == NULL)
        return;
    for (size_t i = 0; i < v->count; i++)
        stg_sign_key_close(&v->keys[i]);
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

bool stg_verify_header(stg_span lines, const char *name, stg_span *value,
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

    if (prefix == NULL || text->size < size ||
        memcmp(text->at, prefix, size) != 0)
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

/* Seconds since 1970, within the window to both sides: clocks go wrong to both. */
stg_signature stg_verify_time(stg_span time, uint64_t window, uint64_t now,
                              stg_error *why)
{
    static const char words[] = "the timestamp is not a number of seconds";
    uint64_t seconds = 0, apart;

    if (time.size == 0 || time.size > 12)
        return fail(why, STG_SIGNATURE_MISSING, words);
    for (size_t i = 0; i < time.size; i++) {
        if (time.at[i] < '0' || time.at[i] > '9')
            return fail(why, STG_SIGNATURE_MISSING, words);
        seconds = seconds * 10 + (uint64_t)(time.at[i] - '0');
    }
    apart = seconds > now ? seconds - now : now - seconds;
    if (apart <= window)
        return STG_SIGNATURE_RIGHT;
    (void)stg_hub_refuse(why, STG_INVALID,
                         "the timestamp is %" PRIu64 " s %s; expected %" PRIu64
                         " s at most",
                         apart, seconds > now ? "ahead" : "old", window);
    return STG_SIGNATURE_STALE;
}

/* -- signatures ------------------------------------------------------------ */

static bool read_hex(char *to, stg_span text, size_t *size)
{
    *size = text.size / 2;
    return text.size % 2 == 0 &&
           stg_hex_read((unsigned char *)to, *size, text.at);
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

/* Whether one of the list is the key's; *count: how many are of its kind, of which
 * a few are looked at. The hash of an HMAC is made once, however many there are. */
static bool has_right(const stg_verifier *v, const stg_sign_layout *l,
                      const stg_sign_key *k, stg_span list,
                      const stg_sign_pieces *p, size_t *count)
{
    const char *prefix = k->pair != NULL ? l->pair_prefix : l->prefix;
    unsigned char hash[STG_SIGNATURE_MAX];
    size_t hash_size = 0, size;

    *count = 0;
    if (k->pair == NULL &&
        !stg_sign_key_sign(k, v->work, p->at, p->count, hash, &hash_size))
        return false;
    while (list.size > 0 && *count < SIGNATURES_MAX) {
        stg_span part = take_part(&list, l->separator);
        char bytes[STG_SIGNATURE_MAX + 3] = {0}; // Base64 is read by threes

        if (!take_prefix(&part, prefix))
            continue;
        ++*count;
        if (!read_signature(l, part, bytes, &size))
            continue;
        if (k->pair != NULL
                ? stg_sign_key_verify(k, v->work, p->at, p->count,
                                      (stg_span){bytes, size},
                                      (stg_span){NULL, 0})
                : size == hash_size && CRYPTO_memcmp(bytes, hash, size) == 0)
            return true;
    }
    return false;
}

/* One that is right among those of a key's kind is enough: a sender signs with
 * an old and a new secret for a while. */
static stg_signature check_signatures(const stg_verifier *v,
                                      const stg_sign_layout *l,
                                      const stg_sign_key *keys, size_t count,
                                      const given *g, stg_span body,
                                      stg_error *why)
{
    stg_sign_pieces p;
    size_t found, all = 0;

    if (!stg_sign_pieces_make(&p, l->signs, g->id, g->time, body))
        return fail(why, STG_SIGNATURE_MISSING, "it has too many parts");
    for (size_t i = 0; i < count; i++) {
        if (has_right(v, l, &keys[i], g->signatures, &p, &found))
            return STG_SIGNATURE_RIGHT;
        all += found;
    }
    (void)stg_hub_refuse(
        why, STG_INVALID,
        all > 0 ? "no signature in %s is right: another secret, or the "
                  "request was changed on its way"
                : "%s has no signature for a secret of this kind",
        l->header);
    return STG_SIGNATURE_WRONG;
}

static stg_signature read_given(const stg_verifier *v, const stg_sign_layout *l,
                                stg_span lines, uint64_t now, given *g,
                                stg_error *why)
{
    *g = (given){.id = {"", 0}, .time = {"", 0}};
    if (!stg_verify_header(lines, l->id_header, &g->id, why) ||
        !stg_verify_header(lines, l->time_header, &g->time, why) ||
        !stg_verify_header(lines, l->header, &g->signatures, why))
        return STG_SIGNATURE_MISSING;
    find_time(l, g);
    if (l->time_header == NULL && l->time == NULL)
        return STG_SIGNATURE_RIGHT;
    return stg_verify_time(g->time, v->window, now, why);
}

static stg_signature check(const stg_verifier *v, const stg_sign_layout *l,
                           const stg_sign_key *keys, size_t count,
                           const stg_verify_request *r, uint64_t now,
                           stg_error *why)
{
    given g;
    stg_signature how;

    if (l->is_message)
        return stg_verify_message(&v->message, keys, count, v->work, r,
                                  v->window, now, why);
    how = read_given(v, l, r->lines, now, &g, why);
    return how == STG_SIGNATURE_RIGHT
               ? check_signatures(v, l, keys, count, &g, r->body, why)
               : how;
}

/* By the first header that is there: a sender that signs in two ways is checked by
 * one of them. */
static stg_signature check_any(const stg_verifier *v,
                               const stg_verify_request *r, uint64_t now,
                               stg_error *why)
{
    static const struct {
        stg_sign_scheme scheme;
        int kind;
    } ways[] = {{STG_SIGN_STANDARD, STANDARD},
                {STG_SIGN_GITHUB, RAW},
                {STG_SIGN_STRIPE, RAW},
                {STG_SIGN_MESSAGE, MESSAGE}};
    stg_span value;

    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        stg_sign_layout l =
            stg_sign_layout_of(&(stg_sign_options){.scheme = ways[i].scheme});
        const stg_sign_key *k = &v->keys[ways[i].kind];

        if (find(r->lines, l.header, &value) == 0)
            continue;
        if (!is_key(k))
            return fail(why, STG_SIGNATURE_WRONG,
                        ways[i].kind == STANDARD
                            ? "the secret is not one of Standard Webhooks"
                            : "the secret is not one of an HMAC");
        return check(v, &l, k, 1, r, now, why);
    }
    return fail(why, STG_SIGNATURE_MISSING,
                "it is not signed: neither Webhook-Signature nor "
                "X-Hub-Signature-256 nor Stripe-Signature nor Signature is "
                "there");
}

stg_verify_request stg_verify_request_of(const stg_request *r, stg_span body)
{
    return (stg_verify_request){.lines = r->parts[STG_PART_LINES],
                                .body = body,
                                .method = r->parts[STG_PART_METHOD],
                                .path = r->parts[STG_PART_PATH],
                                .query = r->parts[STG_PART_QUERY],
                                .host = r->parts[STG_PART_HOST]};
}

stg_signature stg_verifier_check(const stg_verifier *v,
                                 const stg_verify_request *r, uint64_t now,
                                 stg_error *why)
{
    return v->is_any ? check_any(v, r, now, why)
                     : check(v, &v->layout, v->keys, v->count, r, now, why);
}

/* Of a message the signatures alone are read: the body's digest may be wrong. */
stg_signature stg_verifier_check_head(const stg_verifier *v,
                                      const stg_verify_request *r, uint64_t now,
                                      stg_error *why)
{
    given g;
    stg_span value;

    if (!v->layout.is_message)
        return read_given(v, &v->layout, r->lines, now, &g, why);
    return stg_verify_header(r->lines, "Signature-Input", &value, why) &&
                   stg_verify_header(r->lines, "Signature", &value, why)
               ? STG_SIGNATURE_RIGHT
               : STG_SIGNATURE_MISSING;
}
