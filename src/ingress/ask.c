#include "ingress/ask.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http/header.h"
#include "ingress/internal.h"

/* A request for a handler, from the whole request to its answer.
 *
 * The caller may be gone before the answer is there (`caller` is NULL then,
 * and the answer is dropped). So what a handler may need later is copied:
 * words of the path, the query, who asks. The body is the caller's, and goes
 * with it. `is_inside` tells an answer from within the handler: it is only put
 * down, and sent by stg_ask_begin() when the handler has returned, so that no
 * handler has its connection closed under it.
 *
 * Requests that wait, and bytes of answers on their way, are limited:
 * asks_max, answers_max. */

enum { WORDS = 2 };

struct stg_ask {
    stg_caller *caller; /* NULL: it is closed */
    bool is_inside;     /* of its handler */
    char words[WORDS][STG_WORD_MAX];
    char who[STG_WHO_MAX];
    unsigned roles;
    char from[STG_FROM_MAX];
    char if_match[STG_TAG_MAX];
    bool is_for_new;
    size_t size;    /* of the query: "name", '\0', "value", '\0' ... */
    char options[]; /* decoded */
};

/* -- the request ------------------------------------------------------------- */

bool stg_ask_is_open(const stg_ask *a)
{
    return a->caller != NULL;
}

const char *stg_ask_word(const stg_ask *a, size_t i)
{
    return i < WORDS ? a->words[i] : "";
}

const char *stg_ask_option(const stg_ask *a, const char *name)
{
    const char *at = a->options, *end = at + a->size;

    while (at < end) {
        const char *value = at + strlen(at) + 1;

        if (strcmp(at, name) == 0)
            return value;
        at = value + strlen(value) + 1;
    }
    return NULL;
}

stg_span stg_ask_body(const stg_ask *a)
{
    return stg_caller_body(a->caller);
}

const char *stg_ask_if_match(const stg_ask *a)
{
    return a->if_match;
}

bool stg_ask_is_for_new(const stg_ask *a)
{
    return a->is_for_new;
}

const char *stg_ask_who(const stg_ask *a)
{
    return a->who;
}

unsigned stg_ask_roles(const stg_ask *a)
{
    return a->roles;
}

const char *stg_ask_from(const stg_ask *a)
{
    return a->from;
}

/* -- the answer -------------------------------------------------------------- */

/* The ask ends. What the caller has now is its answer. */
static void settle(stg_ask *a)
{
    stg_caller *c = a->caller;

    if (c != NULL) {
        c->ask = NULL;
        if (!a->is_inside) {
            stg_ingress_of(c)->asks--;
            stg_answer_caller(c);
        }
    }
    free(a);
}

/* Answers that nobody reads are memory, too. */
static bool reserve(stg_caller *c, size_t size)
{
    stg_ingress *g = stg_ingress_of(c);

    if (size > g->options.answers_max - g->answering)
        return false;
    g->answering += size;
    c->answering = size;
    return true;
}

static void set_reply(stg_caller *c, int status, const char *type, char *text,
                      size_t size)
{
    if (text == NULL) {
        stg_problem_set(&c->problem, 503, 0, "no memory for the answer");
    } else if (!reserve(c, size)) {
        stg_problem_set(&c->problem, 503, 0,
                        "too many answers are on their way");
        free(text);
    } else {
        c->reply = (stg_ingress_reply){
            .status = status, .type = type, .text = text, .size = size};
    }
}

void stg_ask_answer(stg_ask *a, int status, const char *type, char *text,
                    size_t size)
{
    if (a->caller != NULL)
        set_reply(a->caller, status, type, text, size);
    else
        free(text);
    settle(a);
}

static void answer_json(stg_ask *a, int status, const char *type, json_t *json)
{
    char *text = NULL, *whole = NULL;
    size_t size = 0;

    if (json != NULL && a->caller != NULL)
        text = json_dumps(json, JSON_COMPACT | JSON_REAL_PRECISION(15));
    json_decref(json);
    if (text != NULL) {
        size = strlen(text) + 1;
        whole = realloc(text, size + 1);
    }
    if (whole != NULL)
        memcpy(whole + size - 1, "\n", 2);
    else
        free(text);
    stg_ask_answer(a, status, type, whole, size);
}

void stg_ask_answer_json(stg_ask *a, int status, json_t *json)
{
    answer_json(a, status, "application/json", json);
}

void stg_ask_answer_problem(stg_ask *a, int status, json_t *json)
{
    answer_json(a, status, "application/problem+json", json);
}

void stg_ask_refuse(stg_ask *a, int status, const char *format, ...)
{
    char why[sizeof a->caller->problem.detail];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(why, sizeof why, format, arguments);
    va_end(arguments);
    if (a->caller != NULL)
        stg_problem_set(&a->caller->problem, status, 0, "%s", why);
    settle(a);
}

void stg_ask_set_tag(stg_ask *a, const char *tag)
{
    if (a->caller != NULL)
        snprintf(a->caller->tag, sizeof a->caller->tag, "%s", tag);
}

/* In every case the ask ends here: with a stream, or with a problem. */
stg_stream *stg_ask_stream(stg_ask *a, void (*left)(void *ctx), void *ctx)
{
    const stg_ingress *g = stg_ingress_of(a->caller);
    stg_stream *s = NULL;

    if (g->streams >= g->options.streams_max)
        stg_problem_set(&a->caller->problem, 429, 0, "%u streams are open",
                        (unsigned)g->streams);
    else if (stg_inbound_is_short(&a->caller->in))
        stg_problem_set(&a->caller->problem, 503, 0,
                        "no place is left for a stream");
    else if ((s = stg_stream_new(a->caller, left, ctx)) == NULL)
        stg_problem_set(&a->caller->problem, 503, 0, "no memory");
    settle(a);
    return s;
}

/* -- from and to its caller -------------------------------------------------- */

/* They were checked: there is a value, and it can be decoded. */
static void read_options(stg_ask *a, stg_span query)
{
    stg_span name, value;
    size_t size;

    while (stg_query_take(&query, &name, &value)) {
        memcpy(a->options + a->size, name.at, name.size);
        a->size += name.size;
        a->options[a->size++] = '\0';
        (void)stg_request_decode(value, true, a->options + a->size, &size);
        a->size += size;
        a->options[a->size++] = '\0';
    }
}

/* Two lines of If-Match are no value of ours. */
static void read_conditions(stg_ask *a, const stg_request *r)
{
    stg_span lines = r->parts[STG_PART_LINES], name, value;

    while (stg_request_line(&lines, &name, &value)) {
        bool fits = a->if_match[0] == '\0' && value.size < STG_TAG_MAX;

        if (stg_header_equal(name, "If-Match"))
            snprintf(a->if_match, sizeof a->if_match, "%.*s",
                     fits ? (int)value.size : 1, fits ? value.at : "?");
        else if (stg_header_equal(name, "If-None-Match"))
            a->is_for_new = value.size == 1 && *value.at == '*';
    }
}

/* Decoded, the query is not longer than it came; each option has two
 * terminators in place of '=' and '&'. */
static stg_ask *make(stg_caller *c)
{
    stg_span query = c->in.request.parts[STG_PART_QUERY];
    stg_ask *a = calloc(1, sizeof *a + query.size + 2);

    if (a == NULL)
        return NULL;
    a->caller = c;
    (void)stg_request_read_path(c);
    for (size_t i = 0; i < WORDS; i++)
        stg_route_word(c->match.route->path, stg_ingress_of(c)->path, i,
                       a->words[i], sizeof a->words[i]);
    memcpy(a->who, c->who, sizeof a->who);
    a->roles = c->roles;
    stg_origin_print(c->in.origin, a->from);
    read_options(a, query);
    read_conditions(a, &c->in.request);
    return a;
}

/* Whether the hub is well is answered all the same, for just then it matters:
 * what gets no answer is restarted, and nobody sees why. */
static bool is_too_many(const stg_caller *c)
{
    const stg_ingress *g = stg_ingress_of(c);

    return g->asks >= g->options.asks_max && !c->match.route->is_always;
}

/* A body that is lent is gone after this turn. */
static bool keep_body(stg_caller *c)
{
    stg_span lent = c->lent;

    c->lent.size = 0;
    if (lent.size == 0)
        return true;
    c->body = malloc(lent.size);
    if (c->body == NULL)
        return false;
    memcpy(c->body, lent.at, lent.size);
    c->size = lent.size;
    return true;
}

/* The handler may answer from within, and then the ask is over when it returns; else
 * it counts among those that are being answered. */
void stg_ask_begin(stg_caller *c)
{
    stg_ask *a;

    if (is_too_many(c)) {
        stg_problem_set(&c->problem, 429, 0, "%u requests are being answered",
                        (unsigned)stg_ingress_of(c)->asks);
        stg_answer_caller(c);
        return;
    }
    a = keep_body(c) ? make(c) : NULL;
    if (a == NULL) {
        stg_problem_set(&c->problem, 503, 0, "no memory");
        stg_answer_caller(c);
        return;
    }
    c->ask = a;
    a->is_inside = true;
    c->match.route->handle(c->match.ctx, a);
    if (c->ask == NULL) {
        stg_answer_caller(c);
        return;
    }
    a->is_inside = false;
    stg_ingress_of(c)->asks++;
}

/* Its caller has gone, or has been answered because the hub stops. */
void stg_ask_leave(stg_caller *c)
{
    c->ask->caller = NULL;
    c->ask = NULL;
    stg_ingress_of(c)->asks--;
}
