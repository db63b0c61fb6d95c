#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "hub/http/header.h"
#include "hub/ops/ingress_headers.h"
#include "hub/ops/ingress_inside.h"

const char *stg_request_header(const stg_caller *c, const char *name)
{
    return MHD_lookup_connection_value(c->connection, MHD_HEADER_KIND, name);
}

static stg_span span_of(const char *text)
{
    return (stg_span){text, text == NULL ? 0 : strlen(text)};
}

stg_body stg_request_body(const stg_caller *c)
{
    return c->match.route == NULL ? STG_BODY_NONE : c->match.route->body;
}

bool stg_request_is_published(const stg_caller *c)
{
    stg_body body = stg_request_body(c);

    return body == STG_BODY_MESSAGE || body == STG_BODY_BATCH;
}

size_t stg_request_body_max(const stg_caller *c)
{
    const stg_ingress_options *o = &c->ingress->options;

    switch (stg_request_body(c)) {
    case STG_BODY_MESSAGE:
        return o->message_max;
    case STG_BODY_BATCH:
        return o->batch_max;
    case STG_BODY_JSON:
        return STG_JSON_BODY_MAX;
    default:
        return 0;
    }
}

/* -- which path -------------------------------------------------------------- */

static bool check_route(stg_caller *c, const char *url, const char *method)
{
    const stg_ingress *g = c->ingress;

    if (c->has_odd_uri)
        return stg_problem_set(&c->problem, 400, 0,
                               "a path with a blank or a zero byte");
    stg_routes_match(g->tables, g->table_count, url, method, &c->match);
    if (c->match.route != NULL && g->options.elsewhere != NULL &&
        stg_request_is_published(c))
        return stg_problem_set(&c->problem, 404, 0, "%s", g->options.elsewhere);
    if (c->match.route != NULL)
        return true;
    if (c->match.allowed[0] != '\0')
        return stg_problem_set(&c->problem, 405, 0, "wanted %s",
                               c->match.allowed);
    return stg_problem_set(&c->problem, 404, 0,
                           "there is no such path; messages go to "
                           "/v1/messages");
}

typedef struct query {
    const char *const *options;
    uint64_t seen; /* a bit for each option */
    const char *why;
    char name[32]; /* the option at fault */
} query;

static void blame(query *q, const char *why, const char *name, size_t size)
{
    if (q->why != NULL)
        return;
    q->why = why;
    snprintf(q->name, sizeof q->name, "%.*s", (int)(size < 31 ? size : 31),
             name);
}

static enum MHD_Result check_option(void *ctx, enum MHD_ValueKind kind,
                                    const char *key, size_t key_size,
                                    const char *value, size_t value_size)
{
    query *q = ctx;
    size_t i = 0;

    (void)kind;
    while (q->options != NULL && q->options[i] != NULL &&
           strcmp(q->options[i], key) != 0)
        i++;
    if (q->options == NULL || q->options[i] == NULL)
        blame(q, "there is no such option", key, key_size);
    else if ((q->seen & UINT64_C(1) << i) != 0)
        blame(q, "it is there twice", key, key_size);
    else if (value == NULL || strlen(value) != value_size)
        blame(q, "it has no value", key, key_size);
    q->seen |= UINT64_C(1) << (i & 63);
    return MHD_YES;
}

/* An option that was mistyped would choose something else. */
static bool check_query(stg_caller *c)
{
    query q = {.options = c->match.route->options};

    if (stg_request_is_published(c)) // as it always was
        return true;
    MHD_get_connection_values_n(c->connection, MHD_GET_ARGUMENT_KIND,
                                check_option, &q);
    return q.why == NULL ||
           stg_problem_set(&c->problem, 400, 0, "?%s: %s", q.name, q.why);
}

/* -- who asks ---------------------------------------------------------------- */

/* The host of host:port or [host]:port, lower case aside. */
static bool is_loopback_host(stg_span host)
{
    char text[STG_ADDRESS_TEXT_MAX];
    const char *colon = memchr(host.at, ':', host.size);
    stg_address a;

    if (host.size > 0 && host.at[0] == '[') {
        const char *end = memchr(host.at, ']', host.size);

        if (end == NULL)
            return false;
        host.size = (size_t)(end - host.at) + 1;
    } else if (colon != NULL) {
        host.size = (size_t)(colon - host.at);
    }
    if (stg_header_equal(host, "localhost"))
        return true;
    if (host.size > sizeof text - 3)
        return false;
    memcpy(text, host.at, host.size);
    memcpy(text + host.size, ":0", 3);
    return stg_address_parse(&a, text, NULL) == STG_OK &&
           stg_address_is_loopback(&a);
}

static bool is_loopback_origin(const char *origin)
{
    const char *host = strstr(origin, "://");

    return host != NULL && is_loopback_host(span_of(host + 3));
}

/* A browser on this machine reaches loopback, whoever wrote its page: pages of
 * others are told by Origin, and those that have a name of theirs resolve to
 * 127.0.0.1 (DNS rebinding) by Host. */
static bool check_browser(stg_caller *c)
{
    const stg_ingress *g = c->ingress;
    const char *origin = stg_request_header(c, "Origin");
    const char *host = stg_request_header(c, "Host");

    if (origin != NULL && !is_loopback_origin(origin))
        return stg_problem_set(&c->problem, 403, 0,
                               "requests of pages of another origin are "
                               "refused");
    if (host != NULL && g->tokens == NULL && !is_loopback_host(span_of(host)))
        return stg_problem_set(&c->problem, 403, 0,
                               "without a token the Host must be loopback, "
                               "like localhost");
    return true;
}

static bool check_token(stg_caller *c)
{
    const stg_ingress *g = c->ingress;
    const stg_route *r = c->match.route;
    const char *authorization = stg_request_header(c, "Authorization");
    char words[STG_ROLES_TEXT_MAX];
    const stg_token *token;

    c->who[0] = '\0';
    if (g->tokens == NULL || r->role == STG_ROLE_ANYBODY)
        return true;
    token = stg_tokens_find(g->tokens, authorization);
    if (token == NULL)
        return stg_problem_set(&c->problem, 401, 0,
                               authorization == NULL
                                   ? "wanted Authorization: Bearer TOKEN"
                                   : "not one of the tokens");
    memcpy(c->who, token->name, sizeof c->who);
    return (token->roles & r->role) != 0 ||
           stg_problem_set(&c->problem, 403, 0,
                           "this token has not the role %s",
                           stg_roles_print(r->role, words));
}

static bool check_caller(stg_caller *c, const char *url, const char *method)
{
    const stg_ingress *g = c->ingress;
    char from[STG_FROM_MAX];

    if (check_token(c))
        return true;
    stg_origin_print(c->origin, from);
    if (g->refused != NULL)
        g->refused(g->refused_ctx,
                   &(stg_refused_call){c->problem.status, c->who, from, method,
                                       url, c->problem.detail});
    return false;
}

/* -- how much ---------------------------------------------------------------- */

typedef struct framing {
    unsigned lengths, encodings, hosts, origins, hops;
    bool has_odd_name; /* "Content-Length : 5": some read that, too */
    stg_span length, encoding;
} framing;

static enum MHD_Result count_framing(void *ctx, enum MHD_ValueKind kind,
                                     const char *key, size_t key_size,
                                     const char *value, size_t value_size)
{
    framing *f = ctx;
    stg_span name = {key, key_size};

    (void)kind;
    if (!stg_header_is_name(name))
        f->has_odd_name = true;
    if (stg_header_equal(name, "Content-Length")) {
        f->lengths++;
        f->length = (stg_span){value, value_size};
    } else if (stg_header_equal(name, "Transfer-Encoding")) {
        f->encodings++;
        f->encoding = (stg_span){value, value_size};
    } else if (stg_header_equal(name, "Host")) {
        f->hosts++;
    } else if (stg_header_equal(name, "Origin")) {
        f->origins++;
    } else if (stg_header_equal(name, "Stagger-Hops")) {
        f->hops++;
    }
    return MHD_YES;
}

static bool read_length(stg_span text, uint64_t *length)
{
    *length = 0;
    for (size_t i = 0; i < text.size; i++) {
        uint64_t digit = (uint64_t)(unsigned char)text.at[i] - '0';

        if (digit > 9 || *length > (UINT64_MAX - digit) / 10)
            return false;
        *length = *length * 10 + digit;
    }
    return text.size > 0;
}

static bool check_bytes(stg_caller *c, const char *method, const char *version)
{
    if (stg_request_has_zero(c, method, version))
        return stg_problem_set(&c->problem, 400, 0,
                               "a zero byte in the header, or a line of it "
                               "that goes on in the next one");
    return stg_request_header(c, "Host") != NULL ||
           strcmp(version, "HTTP/1.0") == 0 ||
           stg_problem_set(&c->problem, 400, 0, "wanted a Host");
}

/* A body whose end two readers could see in two places is no body. */
static bool check_framing(stg_caller *c)
{
    framing f = {0};
    uint64_t length = 0;

    // Where it ends is not known, yet.
    c->length = UINT64_MAX;
    c->has_length = false;
    MHD_get_connection_values_n(c->connection, MHD_HEADER_KIND, count_framing,
                                &f);
    if (f.has_odd_name)
        return stg_problem_set(&c->problem, 400, 0,
                               "a name of a header that no header has");
    if (f.lengths > 1 || f.encodings > 1 || (f.lengths > 0 && f.encodings > 0))
        return stg_problem_set(&c->problem, 400, 0,
                               "wanted one Content-Length, or one "
                               "Transfer-Encoding");
    // Of two, who is in front of us may have looked at the other one.
    if (f.hosts > 1 || f.origins > 1 || f.hops > 1)
        return stg_problem_set(&c->problem, 400, 0,
                               "wanted one Host, and one Origin and one "
                               "Stagger-Hops at most");
    if (f.lengths > 0 && !read_length(f.length, &length))
        return stg_problem_set(&c->problem, 400, 0,
                               "Content-Length is no number");
    if (f.encodings > 0 && !stg_header_equal(f.encoding, "chunked"))
        return stg_problem_set(&c->problem, 501, 0,
                               "of Transfer-Encoding only chunked is known");
    c->has_length = f.lengths + f.encodings > 0;
    if (f.encodings == 0)
        c->length = f.lengths == 0 ? 0 : length;
    return true;
}

static bool check_header_size(stg_caller *c)
{
    size_t size = MHD_get_connection_info(
                      c->connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE)
                      ->header_size;

    return size <= c->ingress->options.header_max ||
           stg_problem_set(&c->problem, 431, 0,
                           "a header of %zu bytes; the most is %zu", size,
                           c->ingress->options.header_max);
}

static bool check_length(stg_caller *c)
{
    size_t most = stg_request_body_max(c);

    if (!c->has_length && most > 0)
        return stg_problem_set(&c->problem, 411, 0,
                               "wanted a Content-Length (0 is an empty "
                               "message), or Transfer-Encoding: chunked");
    if (c->length == UINT64_MAX || c->length <= most)
        return true;
    return stg_problem_set(&c->problem, 413, 0,
                           "a body of %" PRIu64 " bytes; the most is %zu",
                           c->length, most);
}

static bool check_type(stg_caller *c)
{
    const char *type = stg_request_header(c, "Content-Type");
    bool is_batch = stg_request_body(c) == STG_BODY_BATCH;
    stg_span media = span_of(type);

    if (!is_batch && stg_request_body(c) != STG_BODY_JSON)
        return true;
    if (type != NULL)
        media.size = strcspn(type, "; \t");
    if (type != NULL &&
        (is_batch ? stg_header_equal(media, "application/x-ndjson") ||
                        stg_header_equal(media, "application/ndjson") ||
                        stg_header_equal(media, "application/jsonl")
                  : stg_header_equal(media, "application/json")))
        return true;
    return stg_problem_set(&c->problem, 415, 0, "wanted Content-Type: %s",
                           is_batch ? "application/x-ndjson"
                                    : "application/json");
}

/* -- how far it has come ---------------------------------------------------- */

static bool check_hops(stg_caller *c)
{
    const char *text = stg_request_header(c, "Stagger-Hops");
    uint64_t hops = 0;

    c->hops = 0;
    if (text == NULL || !stg_request_is_published(c))
        return true;
    if (!read_length(span_of(text), &hops))
        return stg_problem_set(&c->problem, 400, 0,
                               "Stagger-Hops is no number");
    if (hops >= STG_HOPS_MAX)
        return stg_problem_set(&c->problem, 508, 0,
                               "it has come through %" PRIu64
                               " hubs: one of them has this one, or itself, "
                               "among its targets",
                               hops);
    c->hops = (unsigned)hops;
    return true;
}

/* -- whether we can ---------------------------------------------------------- */

bool stg_request_check_stop(stg_caller *c)
{
    unsigned role = c->match.route->role;

    if (!c->ingress->view.is_stopping ||
        (role != STG_ROLE_PUBLISH && role != STG_ROLE_OPERATE))
        return true;
    return stg_problem_set(&c->problem, 503, 0, "the hub is stopping");
}

static bool check_room(stg_caller *c)
{
    const stg_ingress *g = c->ingress;
    const stg_ingress_options *o = &g->options;
    const char *missing;

    if (!stg_request_is_published(c))
        return true;
    missing = o->missing == NULL ? NULL : o->missing(o->ctx);
    if (missing != NULL)
        return stg_problem_set(&c->problem, 503, 0, "%s", missing);
    if (g->view.waiting >= o->waiting_max)
        return stg_problem_set(&c->problem, 429, 0,
                               "%u messages wait for their commit",
                               (unsigned)g->view.waiting);
    if (c->origin->waiting >= o->address_waiting_max)
        return stg_problem_set(&c->problem, 429, 0,
                               "%u messages of this address wait for their "
                               "commit",
                               (unsigned)c->origin->waiting);
    return true;
}

/* Answers to a stranger come first: he learns nothing of the state. */
void stg_request_check(stg_caller *c, const char *url, const char *method,
                       const char *version)
{
    c->match.route = NULL;
    c->match.allowed[0] = '\0';
    c->problem.status = 0;
    (void)(check_bytes(c, method, version) && check_framing(c) &&
           check_header_size(c) && check_browser(c) &&
           check_route(c, url, method) && check_caller(c, url, method) &&
           check_hops(c) && check_query(c) && check_type(c) &&
           check_length(c) && stg_request_check_stop(c) && check_room(c));
}
