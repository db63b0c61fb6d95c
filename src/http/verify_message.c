/* Verifies signatures as RFC 9421 has them.
 *
 *     Signature-Input: LABEL=("@method" "content-digest");created=TIME;keyid="..."
 *     Signature: LABEL=:BASE64:
 *
 * The base is made of the request as it came, and of the text behind LABEL= as it
 * stands there. A component with parameters is not known here, and a signature with
 * one is passed over. A proxy may have taken TLS off: @target-uri, @scheme and
 * @authority are tried with https and with http. */
#include "http/sign_message.h"

#include <string.h>
#include <strings.h>

#include <openssl/crypto.h>

#include "base/refuse.h"
#include "http/header.h"
#include "http/request.h"

enum { SIGNATURES_MAX = 4 };

stg_sign_message stg_verify_message_of(const stg_sign_options *o)
{
    static const char *const digest[] = {"content-digest"};
    stg_sign_message m = {o->covers, o->cover_count, NULL};

    if (m.count == 0) {
        m.covers = digest;
        m.count = 1;
    }
    return m;
}

static stg_signature fail(stg_error *why, stg_signature how, const char *words)
{
    (void)stg_hub_refuse(why, STG_INVALID, "%s", words);
    return how;
}

/* -- lists of the fields: RFC 8941 ------------------------------------------ */

/* A member of a dictionary. */
typedef struct member {
    stg_span label, value;
} member;

/* The bytes up to one of `ends` that is in no string. */
static stg_span take_until(stg_span *text, const char *ends)
{
    bool is_string = false;
    stg_span taken = {text->at, 0};

    for (; taken.size < text->size; taken.size++) {
        char c = text->at[taken.size];

        if (c == '"')
            is_string = !is_string;
        else if (!is_string && strchr(ends, c) != NULL && c != '\0')
            break;
    }
    text->at += taken.size;
    text->size -= taken.size;
    return taken;
}

/* False: there is none any more. */
static bool take_member(stg_span *list, member *m)
{
    stg_span whole;

    if (list->size == 0)
        return false;
    whole = take_until(list, ",");
    if (list->size > 0)
        *list = (stg_span){list->at + 1, list->size - 1};
    whole = stg_span_trim(whole);
    m->label = take_until(&whole, "=");
    m->value = whole.size > 0 ? (stg_span){whole.at + 1, whole.size - 1}
                              : (stg_span){"", 0};
    return true;
}

static bool is_same(stg_span a, stg_span b)
{
    return a.size == b.size && memcmp(a.at, b.at, a.size) == 0;
}

/* The value of a label that is there once. */
static bool find_member(stg_span list, stg_span label, stg_span *value)
{
    size_t count = 0;
    member m;

    while (take_member(&list, &m))
        if (is_same(m.label, label)) {
            *value = m.value;
            count++;
        }
    return count == 1;
}

/* Without its quotes; it may have none in it. False: it is none. */
static bool unquote(stg_span *text)
{
    if (text->size < 2 || text->at[0] != '"' ||
        text->at[text->size - 1] != '"' ||
        memchr(text->at, '\\', text->size) != NULL)
        return false;
    *text = (stg_span){text->at + 1, text->size - 2};
    return true;
}

/* Of :BASE64: the bytes. */
static bool read_bytes(stg_span text, char *bytes, size_t room, size_t *size)
{
    if (text.size < 2 || text.at[0] != ':' || text.at[text.size - 1] != ':' ||
        text.size - 2 > stg_base64_size(room))
        return false;
    return stg_base64_read(bytes, (stg_span){text.at + 1, text.size - 2}, size);
}

/* -- one signature --------------------------------------------------------- */

typedef struct signature {
    stg_span params; /* ("..." ...);created=... */
    stg_span covers[STG_COVERS_MAX];
    size_t count;
    stg_span created, expires, algorithm;
    char bytes[STG_SIGNATURE_MAX + 3]; // Base64 is read by threes
    size_t size;
} signature;

static bool read_covers(signature *s, stg_span list)
{
    while (list.size > 0) {
        stg_span name = stg_span_trim(take_until(&list, " "));

        if (list.size > 0)
            list = (stg_span){list.at + 1, list.size - 1};
        if (name.size == 0)
            continue;
        if (s->count == STG_COVERS_MAX || !unquote(&name))
            return false; // or a component with parameters
        for (size_t i = 0; i < s->count; i++)
            if (is_same(s->covers[i], name))
                return false;
        s->covers[s->count++] = name;
    }
    return true;
}

static void read_params(signature *s, stg_span rest)
{
    while (rest.size > 0) {
        stg_span one, name;

        rest = (stg_span){rest.at + 1, rest.size - 1}; // the semicolon
        one = stg_span_trim(take_until(&rest, ";"));
        name = take_until(&one, "=");
        if (one.size > 0)
            one = (stg_span){one.at + 1, one.size - 1};
        if (stg_span_is(name, "created"))
            s->created = one;
        else if (stg_span_is(name, "expires"))
            s->expires = one;
        else if (stg_span_is(name, "alg") && unquote(&one))
            s->algorithm = one;
    }
}

/* False: it is none that is understood. */
static bool read_signature(signature *s, stg_span params, stg_span bytes)
{
    stg_span list, rest = params;

    *s = (signature){.params = params};
    list = take_until(&rest, ")");
    if (list.size == 0 || *list.at != '(' || rest.size == 0)
        return false;
    list = (stg_span){list.at + 1, list.size - 1};
    rest = (stg_span){rest.at + 1, rest.size - 1};
    if ((rest.size > 0 && *rest.at != ';') || !read_covers(s, list))
        return false;
    read_params(s, rest);
    return read_bytes(bytes, s->bytes, STG_SIGNATURE_MAX, &s->size);
}

static bool does_cover(const signature *s, const char *name)
{
    for (size_t i = 0; i < s->count; i++)
        if (stg_span_is(s->covers[i], name))
            return true;
    return false;
}

static stg_signature check_covers(const stg_sign_message *m, const signature *s,
                                  stg_error *why)
{
    for (size_t i = 0; i < m->count; i++)
        if (!does_cover(s, m->covers[i])) {
            (void)stg_hub_refuse(why, STG_INVALID,
                                 "the signature does not cover %.60s",
                                 m->covers[i]);
            return STG_SIGNATURE_WRONG;
        }
    return STG_SIGNATURE_RIGHT;
}

static stg_signature check_times(const signature *s, uint64_t window,
                                 uint64_t now, stg_error *why)
{
    stg_signature how = stg_verify_time(s->created, window, now, why);
    uint64_t until;

    if (how != STG_SIGNATURE_RIGHT || s->expires.size == 0)
        return how;
    if (!stg_request_number(s->expires, &until) || until < now)
        return fail(why, STG_SIGNATURE_STALE, "the signature has expired");
    return STG_SIGNATURE_RIGHT;
}

/* -- the base -------------------------------------------------------------- */

/* All lines of the field, with commas between them. Source: section 2.1. */
static bool add_field(stg_text *base, stg_span field, stg_span lines)
{
    stg_text value = {.at = NULL};
    stg_span name, each;
    bool is_there = false;

    while (stg_request_line(&lines, &name, &each)) {
        if (name.size != field.size ||
            strncasecmp(name.at, field.at, name.size) != 0)
            continue;
        if (is_there)
            stg_text_put(&value, ", ");
        stg_text_add(&value, each.at, each.size);
        is_there = true;
    }
    stg_sign_message_field(base, field, (stg_span){value.at, value.size});
    is_there = is_there && !value.is_short;
    stg_text_free(&value);
    return is_there;
}

/* False: a component is not there, or not known. */
static bool make_base(const signature *s, const stg_verify_request *r,
                      bool is_tls, stg_text *base)
{
    const stg_sign_target t = {.method = r->method,
                               .authority = r->host,
                               .path = r->path,
                               .query = r->query,
                               .is_tls = is_tls};

    stg_text_clear(base);
    for (size_t i = 0; i < s->count; i++) {
        stg_span name = s->covers[i];

        if (name.size > 0 && *name.at == '@'
                ? !stg_sign_message_derive(base, name, &t)
                : !add_field(base, name, r->lines))
            return false;
    }
    stg_text_put(base, "\"@signature-params\": ");
    stg_text_add(base, s->params.at, s->params.size);
    return !base->is_short;
}

/* An HMAC is compared in constant time (sign_key.c). */
static bool is_right(const signature *s, const stg_sign_key *keys, size_t count,
                     EVP_MD_CTX *work, stg_span base)
{
    for (size_t i = 0; i < count; i++)
        if (stg_sign_key_verify(&keys[i], work, &base, 1,
                                (stg_span){s->bytes, s->size}, s->algorithm))
            return true;
    return false;
}

/* Behind a proxy that ends TLS the request came by http, and was signed as https:
 * where a component depends on the scheme, both are tried. */
static stg_signature check_one(const stg_sign_message *m, const signature *s,
                               const stg_sign_key *keys, size_t count,
                               EVP_MD_CTX *work, const stg_verify_request *r,
                               stg_error *why)
{
    stg_signature how = check_covers(m, s, why);
    stg_text base = {.at = NULL};
    bool is_found = false;
    int least = does_cover(s, "@target-uri") || does_cover(s, "@scheme") ||
                        does_cover(s, "@authority")
                    ? 0
                    : 1;

    if (how != STG_SIGNATURE_RIGHT)
        return how;
    for (int is_tls = 1; !is_found && is_tls >= least; is_tls--)
        is_found =
            make_base(s, r, is_tls, &base) &&
            is_right(s, keys, count, work, (stg_span){base.at, base.size});
    stg_text_free(&base);
    return is_found ? STG_SIGNATURE_RIGHT
                    : fail(why, STG_SIGNATURE_WRONG,
                           "no signature in Signature is right: another "
                           "secret, or the request was changed on its way");
}

/* -- the body -------------------------------------------------------------- */

/* Those of RFC 9530 that are not out of date. */
static const struct {
    const char *label;
    const EVP_MD *(*hash)(void);
    size_t size;
} digests[] = {{"sha-256", EVP_sha256, STG_DIGEST_SIZE},
               {"sha-512", EVP_sha512, STG_DIGEST_MAX}};

enum { DIGESTS = sizeof digests / sizeof *digests };

static bool is_digest(size_t i, stg_span value, EVP_MD_CTX *work, stg_span body)
{
    unsigned char hash[STG_DIGEST_MAX];
    char bytes[STG_DIGEST_MAX + 3];
    size_t size;

    return read_bytes(value, bytes, STG_DIGEST_MAX, &size) &&
           size == digests[i].size &&
           stg_sign_message_hash(work, digests[i].hash(), body, hash) &&
           CRYPTO_memcmp(hash, bytes, size) == 0;
}

/* Each that is there and known has to be right. */
static stg_signature check_digest(const signature *s, EVP_MD_CTX *work,
                                  const stg_verify_request *r, stg_error *why)
{
    stg_span field, value;
    size_t found = 0;

    if (!does_cover(s, "content-digest"))
        return STG_SIGNATURE_RIGHT;
    if (!stg_verify_header(r->lines, "Content-Digest", &field, why))
        return STG_SIGNATURE_MISSING;
    for (size_t i = 0; i < DIGESTS; i++) {
        if (!find_member(field, stg_span_of(digests[i].label), &value))
            continue;
        found++;
        if (!is_digest(i, value, work, r->body))
            return fail(why, STG_SIGNATURE_WRONG,
                        "the body is not that of Content-Digest");
    }
    return found > 0 ? STG_SIGNATURE_RIGHT
                     : fail(why, STG_SIGNATURE_MISSING,
                            "Content-Digest has no sha-256 and no sha-512");
}

/* One of several signatures is enough: while keys change, a sender signs with both. */
stg_signature stg_verify_message(const stg_sign_message *m,
                                 const stg_sign_key *keys, size_t count,
                                 EVP_MD_CTX *work, const stg_verify_request *r,
                                 uint64_t window, uint64_t now, stg_error *why)
{
    stg_signature how = fail(why, STG_SIGNATURE_MISSING,
                             "Signature-Input has no signature that is "
                             "understood");
    stg_span inputs, values, value;
    member input;

    if (!stg_verify_header(r->lines, "Signature-Input", &inputs, why) ||
        !stg_verify_header(r->lines, "Signature", &values, why))
        return STG_SIGNATURE_MISSING;
    for (size_t i = 0; i < SIGNATURES_MAX && take_member(&inputs, &input);
         i++) {
        signature s;

        if (!find_member(values, input.label, &value) ||
            !read_signature(&s, input.value, value))
            continue;
        how = check_times(&s, window, now, why);
        if (how == STG_SIGNATURE_RIGHT)
            how = check_one(m, &s, keys, count, work, r, why);
        if (how == STG_SIGNATURE_RIGHT)
            return check_digest(&s, work, r, why);
    }
    return how;
}
