/* Signs requests. A scheme is a row of data, and a custom one is made of its
 * options, so that there is one way to write a signature. */
#include "http/sign.h"

#include <stdlib.h>
#include <string.h>

#include "base/digits.h"
#include "base/refuse.h"
#include "base/text.h"
#include "http/header.h"
#include "http/sign_layout.h"
#include "http/sign_message.h"

struct stg_signer {
    stg_sign_layout layout;
    stg_sign_message message; /* of STG_SIGN_MESSAGE */
    char *texts;              /* that the two above point into */
    const char *covers[STG_COVERS_MAX];
    EVP_MD_CTX *work;
    size_t holders;
    size_t room; /* of the lines, without ids */
    size_t count;
    stg_sign_key keys[];
};

const char *const stg_sign_schemes[] = {
    "none", "standard-webhooks", "github", "stripe", "rfc9421", "custom", NULL};
const char *const stg_sign_algorithms[] = {"sha256", "sha512", "rsa-pss-sha512",
                                           "rsa-v1_5-sha256", NULL};
const char *const stg_sign_encodings[] = {"hex", "base64", NULL};

/* -- layouts --------------------------------------------------------------- */

static const stg_sign_layout layouts[] = {
    [STG_SIGN_STANDARD] = {.id_header = "Webhook-Id",
                           .time_header = "Webhook-Timestamp",
                           .header = "Webhook-Signature",
                           .signs = "{id}.{timestamp}.{body}",
                           .prefix = "v1,",
                           .pair_prefix = "v1a,",
                           .separator = " ",
                           .encoding = STG_SIGN_BASE64},
    [STG_SIGN_GITHUB] = {.header = "X-Hub-Signature-256",
                         .signs = "{body}",
                         .prefix = "sha256=",
                         .encoding = STG_SIGN_HEX},
    [STG_SIGN_MESSAGE] = {.header = "Signature", .is_message = true},
    [STG_SIGN_STRIPE] = {.header = "Stripe-Signature",
                         .signs = "{timestamp}.{body}",
                         .time = "t=",
                         .prefix = "v1=",
                         .separator = ",",
                         .encoding = STG_SIGN_HEX},
};

stg_sign_layout stg_sign_layout_of(const stg_sign_options *o)
{
    if (o->scheme != STG_SIGN_CUSTOM) {
        stg_sign_layout l = layouts[o->scheme];

        l.rsa = o->algorithm == STG_SIGN_RSA_PSS ? STG_PAIR_RSA_PSS
                : o->algorithm == STG_SIGN_RSA   ? STG_PAIR_RSA
                                                 : STG_PAIR_NONE;
        return l;
    }
    return (stg_sign_layout){
        .id_header = o->id_header,
        .time_header = o->time_header,
        .header = o->header,
        .signs = o->signs != NULL ? o->signs : "{body}",
        .prefix = o->prefix != NULL ? o->prefix : "",
        .algorithm = o->algorithm,
        .encoding = o->encoding,
    };
}

stg_status stg_sign_layout_key(const stg_sign_layout *l, stg_sign_key *k,
                               const char *secret, stg_error *err)
{
    if (l->is_message)
        return stg_sign_key_read_any(k, secret, l->rsa, err);
    if (l->pair_prefix != NULL)
        return stg_sign_key_read(k, secret, err);
    return stg_sign_key_take(
        k, secret,
        l->algorithm == STG_SIGN_SHA512 ? EVP_sha512() : EVP_sha256(), err);
}

bool stg_sign_same(const stg_sign_options *a, const stg_sign_options *b)
{
    return a->scheme == b->scheme && a->header == b->header &&
           a->time_header == b->time_header && a->id_header == b->id_header &&
           a->signs == b->signs && a->prefix == b->prefix &&
           a->algorithm == b->algorithm && a->encoding == b->encoding &&
           a->covers == b->covers && a->cover_count == b->cover_count &&
           a->key_id == b->key_id;
}

/* -- what is signed -------------------------------------------------------- */

/* The field that a text begins with. False: it begins with none. */
static bool take_field(const char **text, const stg_span values[3],
                       stg_span *value)
{
    static const char *const fields[] = {"{id}", "{timestamp}", "{body}"};

    for (size_t i = 0; i < 3; i++)
        if (strncmp(*text, fields[i], strlen(fields[i])) == 0) {
            *text += strlen(fields[i]);
            *value = values[i];
            return true;
        }
    return false;
}

bool stg_sign_pieces_make(stg_sign_pieces *p, const char *signs, stg_span id,
                          stg_span time, stg_span body)
{
    const stg_span values[] = {id, time, body};

    for (p->count = 0; *signs != '\0'; p->count++) {
        if (p->count == STG_SIGN_PIECES_MAX)
            return false;
        if (!take_field(&signs, values, &p->at[p->count])) {
            size_t size = 1 + strcspn(signs + 1, "{");

            p->at[p->count] = (stg_span){signs, size};
            signs += size;
        }
    }
    return true;
}

/* -- checks ---------------------------------------------------------------- */

/* NULL is none, and fine. is_ours: it is the hub that says it. */
static stg_status check_header(const char *field, const char *name,
                               bool is_ours, stg_error *err)
{
    stg_span text = {name, name == NULL ? 0 : strlen(name)};

    if (name == NULL ||
        (stg_header_is_name(text) && !stg_header_is_framing(text) &&
         !(is_ours && stg_header_is_hubs(text)) &&
         !stg_header_matches("Content-Type", text)))
        return STG_OK;
    return stg_hub_refuse(
        err, STG_INVALID,
        "%s: `%.60s` cannot be; expected the name of a header "
        "that is not the connection's, the hub's or the "
        "message's own, like X-Signature",
        field, name);
}

static stg_status check_signs(const stg_sign_options *o, stg_error *err)
{
    static const stg_span none = {"", 0};
    stg_sign_pieces p;

    if (o->signs == NULL)
        return STG_OK;
    if (strstr(o->signs, "{body}") == NULL)
        return stg_hub_refuse(err, STG_INVALID,
                              "signs: it is without {body}, so that any body "
                              "would do; expected it in there, like "
                              "`{timestamp}.{body}`");
    if (!stg_sign_pieces_make(&p, o->signs, none, none, none))
        return stg_hub_refuse(err, STG_INVALID,
                              "signs: more than %d parts; expected fewer",
                              STG_SIGN_PIECES_MAX);
    if (strstr(o->signs, "{timestamp}") != NULL && o->time_header == NULL)
        return stg_hub_refuse(
            err, STG_INVALID,
            "signs: a {timestamp}, and no `timestamp-header` says which it was; "
            "expected both");
    return STG_OK;
}

stg_status stg_sign_layout_check(const stg_sign_options *o, bool is_ours,
                                 stg_error *err)
{
    if (o->scheme == STG_SIGN_MESSAGE)
        return stg_sign_message_check(o, is_ours, err);
    if (o->scheme != STG_SIGN_CUSTOM)
        return STG_OK;
    if (o->header == NULL)
        return stg_hub_refuse(err, STG_INVALID,
                              "header: the custom scheme needs one; expected "
                              "the name of a header, like X-Signature");
    if (check_header("header", o->header, is_ours, err) != STG_OK ||
        check_header("timestamp-header", o->time_header, is_ours, err) !=
            STG_OK ||
        check_header("id-header", o->id_header, is_ours, err) != STG_OK)
        return STG_INVALID;
    if (o->time_header != NULL &&
        stg_header_same((stg_span){o->header, strlen(o->header)},
                        (stg_span){o->time_header, strlen(o->time_header)}))
        return stg_hub_refuse(err, STG_INVALID,
                              "timestamp-header: it is the signature's, too; "
                              "expected another");
    if (o->prefix != NULL &&
        !stg_header_is_value((stg_span){o->prefix, strlen(o->prefix)}))
        return stg_hub_refuse(err, STG_INVALID,
                              "prefix: it cannot be sent in a header");
    return check_signs(o, err);
}

stg_status stg_sign_check(const stg_sign_options *o, stg_error *err)
{
    return stg_sign_layout_check(o, true, err);
}

const char **stg_sign_secret_texts(const stg_sign_secret *secrets, size_t count)
{
    const char **texts = calloc(count + 1, sizeof *texts);

    for (size_t i = 0; texts != NULL && i < count; i++)
        texts[i] = secrets[i].value;
    return texts;
}

size_t stg_sign_secrets_max(stg_sign_scheme scheme)
{
    enum { SECRETS_MAX = 8 };

    return scheme == STG_SIGN_STANDARD || scheme == STG_SIGN_STRIPE
               ? SECRETS_MAX
               : 1;
}

stg_status stg_sign_check_secret(const stg_sign_options *o, const char *secret,
                                 stg_error *err)
{
    stg_sign_layout l = stg_sign_layout_of(o);
    stg_sign_key key;
    stg_status status = stg_sign_layout_key(&l, &key, secret, err);
    bool is_public = key.is_public;

    stg_sign_key_close(&key);
    if (status == STG_OK && is_public && *secret == '-')
        return stg_hub_refuse(err, STG_INVALID,
                              "it is a public key, which receivers verify "
                              "with; expected its private one");
    if (status == STG_OK && is_public)
        return stg_hub_refuse(err, STG_INVALID,
                              "whpk_ begins a public key, which receivers "
                              "verify with; expected its private one, which "
                              "begins with whsk_");
    return status;
}

/* -- signers --------------------------------------------------------------- */

static size_t size_of(const char *text)
{
    return text == NULL ? 0 : strlen(text);
}

/* Of the lines without ids: names, colons and ends, times, and for each key a
 * signature, in hexadecimal. */
static size_t room_of(const stg_signer *s)
{
    enum { AROUND = 4 };
    const stg_sign_layout *l = &s->layout;
    size_t room = size_of(l->id_header) + size_of(l->time_header) +
                  size_of(l->header) + size_of(l->time) + 3 * AROUND +
                  2 * STG_DIGITS_MAX;

    if (l->is_message)
        return stg_sign_message_room(&s->message, &s->keys[0]);
    for (size_t i = 0; i < s->count; i++)
        room += 2 * s->keys[i].size + size_of(l->prefix) +
                size_of(l->pair_prefix) + 1 + size_of(l->separator);
    return room;
}

/* o, whose texts are from here on the signer's own: whoever holds it may do so
 * for longer than the settings are there. False: no memory. */
static bool own_texts(stg_signer *s, stg_sign_options *o)
{
    const char **texts[STG_COVERS_MAX + 6] = {&o->header,    &o->time_header,
                                              &o->id_header, &o->signs,
                                              &o->prefix,    &o->key_id};
    size_t count = 6, size = 1;
    char *to;

    if (o->scheme != STG_SIGN_MESSAGE)
        o->cover_count = 0;
    for (size_t i = 0; i < o->cover_count; i++) {
        s->covers[i] = o->covers[i];
        texts[count++] = &s->covers[i];
    }
    o->covers = s->covers;
    for (size_t i = 0; i < count; i++)
        size += size_of(*texts[i]) + 1;
    to = s->texts = malloc(size);
    for (size_t i = 0; to != NULL && i < count; i++) {
        if (*texts[i] == NULL)
            continue;
        size = strlen(*texts[i]) + 1;
        *texts[i] = memcpy(to, *texts[i], size);
        to += size;
    }
    return to != NULL;
}

stg_status stg_signer_new(stg_signer **signer, const stg_sign_options *o,
                          const char *const *secrets, size_t count,
                          stg_error *err)
{
    stg_signer *s = calloc(1, sizeof *s + count * sizeof *s->keys);
    stg_sign_options own = *o;
    stg_status status = STG_OK;

    if (s == NULL || !own_texts(s, &own)) {
        free(s);
        return stg_hub_refuse(err, STG_IO, "no memory for a key");
    }
    s->holders = 1;
    s->layout = stg_sign_layout_of(&own);
    s->message = stg_sign_message_of(&own);
    s->work = EVP_MD_CTX_new();
    if (s->work == NULL)
        status = stg_hub_refuse(err, STG_IO, "no memory for a key");
    for (; status == STG_OK && s->count < count; s->count++)
        status = stg_sign_layout_key(&s->layout, &s->keys[s->count],
                                     secrets[s->count], err);
    if (status == STG_OK) {
        s->room = room_of(s);
        *signer = s;
    } else {
        stg_signer_free(s);
    }
    return status;
}

void stg_signer_free(stg_signer *s)
{
    if (s == NULL || --s->holders > 0)
        return;
    for (size_t i = 0; i < s->count; i++)
        stg_sign_key_close(&s->keys[i]);
    EVP_MD_CTX_free(s->work);
    free(s->texts);
    free(s);
}

stg_signer *stg_signer_hold(stg_signer *s)
{
    s->holders++;
    return s;
}

bool stg_signer_is_slow(const stg_signer *s)
{
    for (size_t i = 0; i < s->count; i++)
        if (s->keys[i].pair != NULL)
            return true;
    return false;
}

static bool is_named(const char *header, stg_span name)
{
    return header != NULL &&
           stg_header_same(name, (stg_span){header, strlen(header)});
}

static bool sets(const stg_sign_layout *l, stg_span name)
{
    return is_named(l->header, name) || is_named(l->id_header, name) ||
           is_named(l->time_header, name) ||
           (l->is_message && (is_named("Signature-Input", name) ||
                              is_named("Content-Digest", name)));
}

bool stg_sign_sets(const stg_sign_options *o, stg_span name)
{
    stg_sign_layout l = stg_sign_layout_of(o);

    return sets(&l, name);
}

bool stg_signer_sets(const stg_signer *s, stg_span name)
{
    return sets(&s->layout, name);
}

size_t stg_signer_room(const stg_signer *s, size_t id_size)
{
    return s->room + id_size;
}

/* -- lines ----------------------------------------------------------------- */

static char *put(char *to, const char *text)
{
    size_t size = size_of(text);

    if (size > 0)
        memcpy(to, text, size);
    return to + size;
}

static char *put_line(char *to, const char *name, stg_span value)
{
    if (name == NULL)
        return to;
    to = put(put(to, name), ": ");
    if (value.size > 0)
        memcpy(to, value.at, value.size);
    return put(to + value.size, "\r\n");
}

static char *put_hex(char *to, const unsigned char *bytes, size_t size)
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < size; i++) {
        *to++ = digits[bytes[i] >> 4];
        *to++ = digits[bytes[i] & 15];
    }
    return to;
}

/* NULL: no memory. */
static char *put_signature(char *to, const stg_signer *s, EVP_MD_CTX *work,
                           const stg_sign_key *k, const stg_sign_pieces *p)
{
    const stg_sign_layout *l = &s->layout;
    unsigned char bytes[STG_SIGNATURE_MAX];
    size_t size;

    if (!stg_sign_key_sign(k, work, p->at, p->count, bytes, &size))
        return NULL;
    to = put(to, k->pair != NULL ? l->pair_prefix : l->prefix);
    if (l->encoding == STG_SIGN_HEX)
        return put_hex(to, bytes, size);
    return stg_base64_put(to, (stg_span){(const char *)bytes, size});
}

static char *put_lines(const stg_signer *s, EVP_MD_CTX *work, char *to,
                       const stg_sign_request *r)
{
    const stg_sign_layout *l = &s->layout;
    char digits[STG_DIGITS_MAX];
    stg_span time = {digits,
                     (size_t)(stg_digits_put(digits, r->seconds) - digits)};
    stg_sign_pieces p;

    if (l->is_message)
        return stg_sign_message_put(&s->message, &s->keys[0], work, to, r);
    if (!stg_sign_pieces_make(&p, l->signs, r->id, time, r->body))
        return NULL;
    to = put_line(to, l->id_header, r->id);
    to = put_line(to, l->time_header, time);
    to = put(put(put(to, l->header), ": "), l->time);
    if (l->time != NULL) {
        memcpy(to, time.at, time.size);
        to = put(to + time.size, l->separator);
    }
    for (size_t i = 0; to != NULL && i < s->count; i++)
        to = put_signature(i > 0 ? put(to, l->separator) : to, s, work,
                           &s->keys[i], &p);
    return to == NULL ? NULL : put(to, "\r\n");
}

char *stg_signer_put(const stg_signer *s, char *to, const stg_sign_request *r)
{
    return put_lines(s, s->work, to, r);
}

char *stg_signer_put_aside(const stg_signer *s, char *to,
                           const stg_sign_request *r)
{
    EVP_MD_CTX *work = EVP_MD_CTX_new();
    char *end = work == NULL ? NULL : put_lines(s, work, to, r);

    EVP_MD_CTX_free(work);
    return end;
}
