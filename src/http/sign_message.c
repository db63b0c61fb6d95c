/* Signs requests as RFC 9421 has it, with one signature, `sig`. The base is made
 * anew for each: lines of the covered components, and behind them what was covered,
 * when, and by which key. */
#include "http/sign_message.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/digits.h"
#include "base/refuse.h"
#include "http/header.h"
#include "http/url.h"

static const char *const standard[] = {"@method", "@target-uri",
                                       "content-digest", "content-type",
                                       "idempotency-key"};
/* All that the hub can sign. */
static const char *const known[] = {
    "@method",         "@target-uri",     "@authority", "@scheme",
    "@request-target", "@path",           "@query",     "content-digest",
    "content-type",    "idempotency-key",
};

enum { KNOWN = sizeof known / sizeof *known, DERIVED = 7 };

stg_sign_message stg_sign_message_of(const stg_sign_options *o)
{
    stg_sign_message m = {o->covers, o->cover_count, o->key_id};

    if (m.count == 0) {
        m.covers = standard;
        m.count = sizeof standard / sizeof *standard;
    }
    return m;
}

/* -- the check ------------------------------------------------------------- */

static bool is_known(const char *name, bool is_ours)
{
    for (size_t i = 0; i < KNOWN; i++)
        if (strcmp(known[i], name) == 0)
            return true;
    if (is_ours || *name == '@' || !stg_header_is_name(stg_span_of(name)))
        return false;
    for (; *name != '\0'; name++)
        if (isupper((unsigned char)*name))
            return false;
    return true;
}

static bool is_repeated(const stg_sign_options *o, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (strcmp(o->covers[k], o->covers[i]) == 0)
            return true;
    return false;
}

static bool has_digest(const stg_sign_options *o)
{
    for (size_t i = 0; i < o->cover_count; i++)
        if (strcmp(o->covers[i], "content-digest") == 0)
            return true;
    return o->cover_count == 0;
}

stg_status stg_sign_message_check(const stg_sign_options *o, bool is_ours,
                                  stg_error *err)
{
    if (o->cover_count > STG_COVERS_MAX)
        return stg_hub_refuse(err, STG_INVALID,
                              "covers: %zu components; expected %d at most",
                              o->cover_count, STG_COVERS_MAX);
    for (size_t i = 0; i < o->cover_count; i++)
        if (!is_known(o->covers[i], is_ours) || is_repeated(o, i))
            return stg_hub_refuse(
                err, STG_INVALID,
                "covers: `%.60s` %s; expected components once each: @method, "
                "@target-uri, @authority, @scheme, @request-target, @path, "
                "@query, content-digest, content-type, idempotency-key%s",
                o->covers[i],
                is_known(o->covers[i], is_ours) ? "comes twice" : "is none",
                is_ours ? "" : ", or another header in lower case");
    if (!has_digest(o))
        return stg_hub_refuse(err, STG_INVALID,
                              "covers: it is without content-digest, so that "
                              "any body would do; expected it, too");
    for (const char *c = o->key_id; c != NULL && *c != '\0'; c++)
        if (*c < ' ' || *c > '~' || *c == '"' || *c == '\\')
            return stg_hub_refuse(err, STG_INVALID,
                                  "key-id: expected printable ASCII without "
                                  "quotes and backslashes");
    return STG_OK;
}

/* -- the base -------------------------------------------------------------- */

static void add(stg_text *t, stg_span text)
{
    stg_text_add(t, text.at, text.size);
}

static void begin_line(stg_text *base, stg_span name)
{
    stg_text_put(base, "\"");
    add(base, name);
    stg_text_put(base, "\": ");
}

void stg_sign_message_field(stg_text *base, stg_span name, stg_span value)
{
    begin_line(base, name);
    add(base, value);
    stg_text_put(base, "\n");
}

/* In lower case, and without the scheme's own port. Source: section 2.2.3. */
static void add_authority(stg_text *base, const stg_sign_target *t)
{
    const char *port = t->is_tls ? ":443" : ":80";
    stg_span host = t->authority;

    if (host.size > strlen(port) &&
        memcmp(host.at + host.size - strlen(port), port, strlen(port)) == 0)
        host.size -= strlen(port);
    for (size_t i = 0; i < host.size; i++) {
        char c = (char)tolower((unsigned char)host.at[i]);

        stg_text_add(base, &c, 1);
    }
}

static void add_path(stg_text *base, const stg_sign_target *t)
{
    if (t->path.size == 0)
        stg_text_put(base, "/");
    add(base, t->path);
}

static void add_query(stg_text *base, const stg_sign_target *t)
{
    if (t->query.at == NULL)
        return;
    stg_text_put(base, "?");
    add(base, t->query);
}

bool stg_sign_message_derive(stg_text *base, stg_span name,
                             const stg_sign_target *t)
{
    size_t i = 0;

    while (i < DERIVED && !stg_span_is(name, known[i]))
        i++;
    if (i == DERIVED)
        return false;
    begin_line(base, name);
    if (stg_span_is(name, "@method"))
        add(base, t->method);
    if (stg_span_is(name, "@scheme") || stg_span_is(name, "@target-uri"))
        stg_text_put(base, t->is_tls ? "https" : "http");
    if (stg_span_is(name, "@target-uri"))
        stg_text_put(base, "://");
    if (stg_span_is(name, "@authority") || stg_span_is(name, "@target-uri"))
        add_authority(base, t);
    if (stg_span_is(name, "@path") || stg_span_is(name, "@request-target") ||
        stg_span_is(name, "@target-uri"))
        add_path(base, t);
    if (stg_span_is(name, "@query") && t->query.at == NULL)
        stg_text_put(base, "?"); // section 2.2.7
    if (stg_span_is(name, "@query") || stg_span_is(name, "@request-target") ||
        stg_span_is(name, "@target-uri"))
        add_query(base, t);
    stg_text_put(base, "\n");
    return true;
}

/* -- a signature ----------------------------------------------------------- */

enum { AROUND = 192, EACH = 24 };

size_t stg_sign_message_room(const stg_sign_message *m, const stg_sign_key *k)
{
    return AROUND + STG_DIGITS_MAX + m->count * EACH +
           (m->key_id != NULL ? strlen(m->key_id) : 0) +
           stg_base64_size(STG_DIGEST_SIZE) + stg_base64_size(k->size);
}

/* authority is the room for it. */
static bool read_target(const stg_sign_request *r, char authority[300],
                        stg_sign_target *t)
{
    stg_url url;
    const char *mark;

    if (stg_url_parse(&url, r->url, NULL) != STG_OK ||
        stg_url_print_peer(&url, true, authority, 300) >= 300)
        return false;
    mark = memchr(url.path.at, '?', url.path.size);
    *t = (stg_sign_target){.method = stg_span_of(r->method),
                           .authority = stg_span_of(authority),
                           .path = url.path,
                           .is_tls = url.is_tls};
    if (mark != NULL) {
        t->path.size = (size_t)(mark - url.path.at);
        t->query = (stg_span){mark + 1, url.path.size - t->path.size - 1};
    }
    return true;
}

/* What is left of a signature by a pair would be taken for this one's. */
bool stg_sign_message_hash(EVP_MD_CTX *work, const EVP_MD *by, stg_span body,
                           unsigned char hash[STG_DIGEST_MAX])
{
    (void)EVP_MD_CTX_reset(work);
    return EVP_DigestInit_ex(work, by, NULL) == 1 &&
           EVP_DigestUpdate(work, body.at, body.size) == 1 &&
           EVP_DigestFinal_ex(work, hash, NULL) == 1;
}

static bool put_digest(stg_text *value, EVP_MD_CTX *work, stg_span body)
{
    unsigned char hash[STG_DIGEST_MAX];

    if (!stg_sign_message_hash(work, EVP_sha256(), body, hash))
        return false;
    stg_text_put(value, "sha-256=:");
    stg_text_put_base64(value, (stg_span){(const char *)hash, STG_DIGEST_SIZE});
    stg_text_put(value, ":");
    return true;
}

/* The values that the request has; empty: it has none, and the component is left
 * out. */
static stg_span value_of(const stg_sign_request *r, stg_span digest,
                         const char *name)
{
    return strcmp(name, "content-digest") == 0 ? digest
           : strcmp(name, "content-type") == 0 ? r->content_type
                                               : r->id;
}

/* ("@method" ...);created=... */
static void cover(const stg_sign_message *m, const stg_sign_key *k,
                  const stg_sign_request *r, stg_span digest,
                  const stg_sign_target *t, stg_text *base, stg_text *params)
{
    const char *before = "(\"";

    for (size_t i = 0; i < m->count; i++) {
        stg_span name = stg_span_of(m->covers[i]), value;

        if (!stg_sign_message_derive(base, name, t)) {
            value = value_of(r, digest, m->covers[i]);
            if (value.size == 0)
                continue;
            stg_sign_message_field(base, name, value);
        }
        stg_text_put(params, before);
        add(params, name);
        stg_text_put(params, "\"");
        before = " \"";
    }
    stg_text_put(params, ");created=");
    stg_text_put_number(params, r->seconds);
    if (m->key_id != NULL) {
        stg_text_put(params, ";keyid=\"");
        stg_text_put(params, m->key_id);
        stg_text_put(params, "\"");
    }
    stg_text_put(params, ";alg=\"");
    stg_text_put(params, stg_sign_key_algorithm(k));
    stg_text_put(params, "\"");
}

static char *put_span(char *to, stg_span text)
{
    memcpy(to, text.at, text.size);
    return to + text.size;
}

static char *put_line(char *to, const char *start, stg_span value,
                      const char *end)
{
    return put_span(put_span(put_span(to, stg_span_of(start)), value),
                    stg_span_of(end));
}

static bool sign(const stg_sign_message *m, const stg_sign_key *k,
                 EVP_MD_CTX *work, const stg_sign_request *r, stg_text text[4])
{
    stg_text *digest = &text[0], *params = &text[1], *signature = &text[2],
             *base = &text[3];
    unsigned char bytes[STG_SIGNATURE_MAX];
    char authority[300];
    stg_sign_target t;
    stg_span whole;
    size_t size;

    if (!read_target(r, authority, &t) || !put_digest(digest, work, r->body))
        return false;
    cover(m, k, r, (stg_span){digest->at, digest->size}, &t, base, params);
    stg_text_put(base, "\"@signature-params\": ");
    stg_text_add(base, params->at, params->size);
    whole = (stg_span){base->at, base->size};
    if (digest->is_short || params->is_short || base->is_short ||
        !stg_sign_key_sign(k, work, &whole, 1, bytes, &size))
        return false;
    stg_text_put_base64(signature, (stg_span){(const char *)bytes, size});
    return !signature->is_short;
}

char *stg_sign_message_put(const stg_sign_message *m, const stg_sign_key *k,
                           EVP_MD_CTX *work, char *to,
                           const stg_sign_request *r)
{
    stg_text text[4] = {{.at = NULL}};

    if (!sign(m, k, work, r, text)) {
        to = NULL;
    } else {
        to = put_line(to,
                      "Content-Digest: ", (stg_span){text[0].at, text[0].size},
                      "\r\n");
        to = put_line(to, "Signature-Input: sig=",
                      (stg_span){text[1].at, text[1].size}, "\r\n");
        to = put_line(to,
                      "Signature: sig=:", (stg_span){text[2].at, text[2].size},
                      ":\r\n");
    }
    for (size_t i = 0; i < 4; i++)
        stg_text_free(&text[i]);
    return to;
}
