/* Decides whether a request may be asked: path, route and query, who asks,
 * length and type of the body, hops, and room.
 *
 * stg_request_check() runs when the head is whole, before any of the body is
 * kept. The order of the checks is a rule: whoever has no valid token learns
 * nothing about the state of the hub. Each check that fails sets the caller's
 * problem and returns false. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/suggest.h"
#include "http/header.h"
#include "ingress/internal.h"

static stg_span part_of(const stg_caller *c, stg_request_part part)
{
    return c->in.request.parts[part];
}

stg_body stg_request_body(const stg_caller *c)
{
    return c->match.route == NULL ? STG_BODY_NONE : c->match.route->body;
}

bool stg_request_is_published(const stg_caller *c)
{
    stg_body body = stg_request_body(c);

    return body == STG_BODY_MESSAGE || body == STG_BODY_BATCH ||
           body == STG_BODY_WEBHOOK;
}

size_t stg_request_body_max(const stg_caller *c)
{
    const stg_ingress_options *o = &stg_ingress_of(c)->options;

    switch (stg_request_body(c)) {
    case STG_BODY_MESSAGE:
    case STG_BODY_WEBHOOK:
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

bool stg_request_read_path(const stg_caller *c)
{
    char *path = stg_ingress_of(c)->path;
    size_t size;

    if (!stg_request_decode(part_of(c, STG_PART_PATH), false, path, &size))
        return false;
    path[size] = '\0';
    return true;
}

/* One that is decoded somewhere would end a text there. */
static bool has_zero(stg_span text)
{
    for (size_t i = 0; i + 2 < text.size; i++)
        if (memcmp(text.at + i, "%00", 3) == 0)
            return true;
    return false;
}

/* Decodes into a buffer of the ingress, which check_value() uses again: who needs
 * the path later decodes it anew. */
static bool check_path(stg_caller *c)
{
    if (has_zero(part_of(c, STG_PART_PATH)) ||
        has_zero(part_of(c, STG_PART_QUERY)))
        return stg_problem_set(&c->problem, 400, 0, "a path with a zero byte");
    return stg_request_read_path(c) ||
           stg_problem_set(&c->problem, 400, 0,
                           "a path with a %% that no two digits follow");
}

/* A path that is known but not with this method says which methods it has. */
static bool check_route(stg_caller *c, const char *method)
{
    const stg_ingress *g = stg_ingress_of(c);

    if (!check_path(c))
        return false;
    stg_routes_match(g->tables, g->table_count, g->path, method, &c->match);
    if (c->match.route != NULL && g->options.elsewhere != NULL &&
        stg_request_is_published(c))
        return stg_problem_set(&c->problem, 404, 0, "%s", g->options.elsewhere);
    if (c->match.route != NULL)
        return true;
    if (c->match.allowed[0] != '\0')
        return stg_problem_set(&c->problem, 405, 0, "expected %s",
                               c->match.allowed);
    return stg_problem_set(&c->problem, 404, 0,
                           "there is no such path; messages go to "
                           "/v1/messages");
}

/* An empty part, as in `a=1&&b=2`, is skipped. value.at is NULL where there is
 * no '='. */
bool stg_query_take(stg_span *query, stg_span *name, stg_span *value)
{
    while (query->size > 0) {
        const char *end = memchr(query->at, '&', query->size), *equals;
        size_t size = end == NULL ? query->size : (size_t)(end - query->at);

        *name = (stg_span){query->at, size};
        query->at += size + (end != NULL);
        query->size -= size + (end != NULL);
        if (size == 0)
            continue;
        equals = memchr(name->at, '=', size);
        *value = (stg_span){NULL, 0};
        if (equals == NULL)
            return true;
        name->size = (size_t)(equals - name->at);
        *value = (stg_span){equals + 1, size - name->size - 1};
        return true;
    }
    return false;
}

static bool blame(stg_caller *c, stg_span name, const char *why)
{
    return stg_problem_set(&c->problem, 400, 0, "?%.*s: %s",
                           (int)(name.size < 31 ? name.size : 31), name.at,
                           why);
}

static bool blame_unknown(stg_caller *c, stg_span name)
{
    const char *const *options = c->match.route->options;
    stg_suggestion near = stg_suggestion_begin(name.at, name.size);
    char why[120];

    for (size_t i = 0; options != NULL && options[i] != NULL; i++)
        stg_suggestion_try(&near, options[i]);
    snprintf(why, sizeof why, "there is no such option%s%.60s%s",
             near.name != NULL ? "; did you mean " : "",
             near.name != NULL ? near.name : "", near.name != NULL ? "?" : "");
    return blame(c, name, why);
}

/* The option's number; -1: there is none of that name. */
static int find_option(const char *const *options, stg_span name)
{
    for (int i = 0; options != NULL && options[i] != NULL; i++)
        if (stg_span_is(name, options[i]))
            return i;
    return -1;
}

static bool check_value(stg_caller *c, stg_span name, stg_span value)
{
    char *scratch = stg_ingress_of(c)->path;
    size_t size;

    if (value.at == NULL)
        return blame(c, name, "it has no value");
    return stg_request_decode(value, true, scratch, &size) ||
           blame(c, name, "it has a % that no two digits follow");
}

/* An option that was mistyped would choose something else; but of what is
 * published others were always passed over. */
static bool check_query(stg_caller *c)
{
    stg_span query = part_of(c, STG_PART_QUERY), name, value;
    // A bit for each option: no route has 64.
    uint64_t seen = 0;

    while (stg_query_take(&query, &name, &value)) {
        int option = find_option(c->match.route->options, name);

        if (option < 0 && stg_request_is_published(c))
            continue;
        if (option < 0)
            return blame_unknown(c, name);
        if ((seen >> option & 1) != 0)
            return blame(c, name, "it is there twice");
        if (!check_value(c, name, value))
            return false;
        seen |= UINT64_C(1) << option;
    }
    return true;
}

/* -- who asks ---------------------------------------------------------------- */

/* The host of host:port or [host]:port, lower case aside. */
static bool is_loopback_host(stg_span host)
{
    char text[STG_ADDRESS_TEXT_MAX];
    const char *colon = memchr(host.at, ':', host.size);
    stg_listen_address a;

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

/* Whether a page of this origin may ask: one of this machine, or the hub's own
 * console, which the browser has from the very host that it asks. */
static bool is_known_origin(stg_span origin, stg_span host)
{
    for (size_t i = 0; i + 3 <= origin.size; i++)
        if (memcmp(origin.at + i, "://", 3) == 0) {
            stg_span from = {origin.at + i + 3, origin.size - i - 3};
            return is_loopback_host(from) ||
                   (from.size == host.size &&
                    memcmp(from.at, host.at, host.size) == 0);
        }
    return false;
}

/* A browser on this machine reaches loopback, whoever wrote its page: pages of
 * others are told by Origin, and those that have a name of theirs resolve to
 * 127.0.0.1 (DNS rebinding) by Host, see below. */
static bool check_origin(stg_caller *c)
{
    stg_span origin = part_of(c, STG_PART_ORIGIN);
    stg_span host = part_of(c, STG_PART_HOST);

    return origin.at == NULL || is_known_origin(origin, host) ||
           stg_problem_set(&c->problem, 403, 0,
                           "requests of pages of another origin are refused");
}

/* Without tokens it has to be loopback, but for webhooks: a proxy passes on the
 * host that their sender knows, and a page cannot sign. */
static bool check_host(stg_caller *c)
{
    const stg_ingress *g = stg_ingress_of(c);
    stg_span host = part_of(c, STG_PART_HOST);

    if (host.at != NULL && g->tokens == NULL && !is_loopback_host(host) &&
        stg_request_body(c) != STG_BODY_WEBHOOK)
        return stg_problem_set(&c->problem, 403, 0,
                               "without a token the Host must be loopback, "
                               "like localhost");
    return true;
}

/* Longer than this is no token of ours. */
static const stg_token *find_token(const stg_caller *c)
{
    stg_span given = part_of(c, STG_PART_AUTHORIZATION);
    char text[512];

    if (given.at == NULL || given.size >= sizeof text)
        return NULL;
    memcpy(text, given.at, given.size);
    text[given.size] = '\0';
    return stg_tokens_find(stg_ingress_of(c)->tokens, text);
}

/* Without tokens everybody may do everything: then nobody but this machine
 * reaches the listener (options.c). */
static bool check_token(stg_caller *c)
{
    const stg_route *r = c->match.route;
    char words[STG_ROLES_TEXT_MAX];
    const stg_token *token;

    c->who[0] = '\0';
    c->roles = STG_ROLE_PUBLISH | STG_ROLE_VIEW | STG_ROLE_OPERATE;
    if (stg_ingress_of(c)->tokens == NULL || r->role == STG_ROLE_ANYBODY)
        return true;
    token = find_token(c);
    if (token == NULL)
        return stg_problem_set(&c->problem, 401, 0,
                               part_of(c, STG_PART_AUTHORIZATION).at == NULL
                                   ? "expected Authorization: Bearer TOKEN"
                                   : "not one of the tokens");
    memcpy(c->who, token->name, sizeof c->who);
    c->roles = token->roles;
    if (!stg_inbound_identify(&c->in, token))
        return stg_problem_set(&c->problem, 429, 0,
                               "too many connections of this token");
    return (token->roles & r->role) != 0 ||
           stg_problem_set(&c->problem, 403, 0,
                           "this token has not the role %s",
                           stg_roles_print(r->role, words));
}

/* Who watches (the audit log) is told of refused callers; that a token has too
 * many connections is no question of who asks. */
static bool check_caller(stg_caller *c, const char *method)
{
    const stg_ingress *g = stg_ingress_of(c);
    char from[STG_FROM_MAX];

    if (stg_request_body(c) == STG_BODY_WEBHOOK)
        return stg_webhook_check(c, false);
    if (check_token(c))
        return true;
    stg_origin_print(c->in.origin, from);
    if (g->refused != NULL && c->problem.status != 429)
        g->refused(g->refused_ctx,
                   &(stg_refused_call){c->problem.status, c->who, from, method,
                                       g->path, c->problem.detail});
    return false;
}

/* -- how much ---------------------------------------------------------------- */

/* Without a length of any kind an empty message and one that was lost on its
 * way look the same. */
static bool check_length(stg_caller *c)
{
    const stg_request *r = &c->in.request;
    size_t most = stg_request_body_max(c);

    if (!r->has_length && most > 0)
        return stg_problem_set(&c->problem, 411, 0,
                               "expected a Content-Length (0 is an empty "
                               "message), or Transfer-Encoding: chunked");
    if (r->length == UINT64_MAX || r->length <= most)
        return true;
    return stg_problem_set(&c->problem, 413, 0,
                           "a body of %" PRIu64 " bytes; the most is %zu",
                           r->length, most);
}

/* Parameters of the media type are not looked at. */
static bool check_type(stg_caller *c)
{
    stg_span media = part_of(c, STG_PART_CONTENT_TYPE);
    bool is_batch = stg_request_body(c) == STG_BODY_BATCH;
    size_t size = 0;

    if (!is_batch && stg_request_body(c) != STG_BODY_JSON)
        return true;
    while (size < media.size && strchr("; \t", media.at[size]) == NULL)
        size++;
    media.size = size;
    if (is_batch ? stg_header_equal(media, "application/x-ndjson") ||
                       stg_header_equal(media, "application/ndjson") ||
                       stg_header_equal(media, "application/jsonl")
                 : stg_header_equal(media, "application/json"))
        return true;
    return stg_problem_set(&c->problem, 415, 0, "expected Content-Type: %s",
                           is_batch ? "application/x-ndjson"
                                    : "application/json");
}

/* -- how far it has come ---------------------------------------------------- */

/* Hubs in a circle would send each message for ever: after STG_HOPS_MAX it is
 * refused. */
static bool check_hops(stg_caller *c)
{
    stg_span text = part_of(c, STG_PART_HOPS);
    uint64_t hops = 0;

    c->hops = 0;
    if (text.at == NULL || !stg_request_is_published(c))
        return true;
    if (!stg_request_number(text, &hops))
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

/* What reads is answered until the end; what writes is not begun any more. */
bool stg_request_check_stop(stg_caller *c)
{
    unsigned role = c->match.route->role;

    if (!stg_ingress_of(c)->view.is_stopping ||
        (role != STG_ROLE_PUBLISH && role != STG_ROLE_OPERATE &&
         !stg_request_is_published(c)))
        return true;
    return stg_problem_set(&c->problem, 503, 0, "the hub is stopping");
}

/* Two limits: of all that wait, and of one client's, so that no client has all
 * places. */
static bool check_room(stg_caller *c)
{
    const stg_ingress *g = stg_ingress_of(c);
    const stg_ingress_options *o = &g->options;
    const char *missing;

    if (!stg_request_is_published(c))
        return true;
    missing = o->missing == NULL ? NULL : o->missing(o->ctx);
    if (missing == NULL && o->unwanted != NULL)
        missing = o->unwanted(o->ctx);
    if (missing != NULL)
        return stg_problem_set(&c->problem, 503, 0, "%s", missing);
    if (g->view.waiting >= o->waiting_max)
        return stg_problem_set(&c->problem, 429, 0,
                               "%u messages wait for their commit",
                               (unsigned)g->view.waiting);
    if (c->in.client->waiting >= o->address_waiting_max)
        return stg_problem_set(
            &c->problem, 429, 0, "%u messages of this %s wait for their commit",
            (unsigned)c->in.client->waiting, stg_caller_kind(c));
    return true;
}

/* Answers to a stranger come first: he learns nothing of the state. */
void stg_request_check(stg_caller *c)
{
    stg_span name = part_of(c, STG_PART_METHOD);
    char method[24] = ""; // a longer one is none of ours

    if (name.size < sizeof method)
        memcpy(method, name.at, name.size);
    c->match.route = NULL;
    c->match.allowed[0] = '\0';
    c->problem.status = 0;
    c->tag[0] = '\0';
    c->webhook = NULL;
    (void)(check_origin(c) && check_route(c, method) && check_host(c) &&
           check_caller(c, method) && check_hops(c) && check_query(c) &&
           check_type(c) && check_length(c) && stg_request_check_stop(c) &&
           check_room(c));
}
