/* What callers get: receipts with ids, problem documents, answers of handlers
 * and streams; and the count and the log line of each answer.
 *
 * All on the loop's thread. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "ingress/internal.h"
#include "store/parcel.h"

/* -- problem documents ------------------------------------------------------- */

_Bool stg_problem_set(stg_problem *p, int status, size_t line,
                      const char *format, ...)
{
    va_list arguments;

    p->status = status;
    p->line = line;
    va_start(arguments, format);
    vsnprintf(p->detail, sizeof p->detail, format, arguments);
    va_end(arguments);
    for (char *c = p->detail; *c != '\0'; c++)
        if (*c < ' ' || *c > '~')
            *c = '?';
    return 0;
}

/* As inside a JSON string: of printable ASCII only two need help. */
static void escape(const char *text, char *out)
{
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\')
            *out++ = '\\';
        *out++ = *text;
    }
    *out = '\0';
}

size_t stg_problem_print(const stg_problem *p, char text[STG_PROBLEM_TEXT_MAX])
{
    char detail[2 * sizeof p->detail], line[40] = "";

    if (p->line > 0)
        snprintf(line, sizeof line, "\"line\":%zu,", p->line);
    escape(p->detail, detail);
    return (size_t)snprintf(text, STG_PROBLEM_TEXT_MAX,
                            "{\"type\":\"about:blank\",\"title\":\"%s\","
                            "\"status\":%d,%s\"detail\":\"%s\"}\n",
                            stg_response_reason(p->status), p->status, line,
                            detail);
}

/* -- headers ----------------------------------------------------------------- */

/* Lines of the answer's head: they fit, for all are ours. */
typedef struct lines {
    char text[STG_RESPONSE_MORE_MAX];
    size_t size;
} lines;

static void begin(lines *l)
{
    l->text[0] = '\0';
    l->size = 0;
}

static void add(lines *l, const char *name, const char *value)
{
    l->size += (size_t)snprintf(l->text + l->size, sizeof l->text - l->size,
                                "%s: %s\r\n", name, value);
}

/* Whole seconds, one at least. */
static const char *print_retry_after(const stg_caller *c, char text[24])
{
    stg_ns wait = stg_ingress_of(c)->options.retry_after;
    stg_ns seconds = wait / STG_S + (wait % STG_S != 0);

    snprintf(text, 24, "%" PRIu64, seconds == 0 ? 1 : seconds);
    return text;
}

/* 401 and 405 must name what would do (RFC 9110, sections 15.5.2 and 15.5.6);
 * 429 and 503 say when to come again. A signature is no scheme of HTTP's. */
static void add_problem_lines(const stg_caller *c, lines *l)
{
    char wait[24];

    switch (c->problem.status) {
    case 401:
        if (stg_request_body(c) != STG_BODY_WEBHOOK)
            add(l, "WWW-Authenticate", "Bearer");
        break;
    case 405:
        add(l, "Allow", c->match.allowed);
        break;
    case 429:
    case 503:
        add(l, "Retry-After", print_retry_after(c, wait));
        break;
    default:
        break;
    }
}

/* -- answers ----------------------------------------------------------------- */

static void count(stg_ingress_view *v, unsigned status)
{
    v->requests++;
    if (status >= 500)
        v->refused_5xx++;
    else if (status >= 400)
        v->refused_4xx++;
}

/* Health checks come every second of a drain: they are not told. */
static void tell(const stg_caller *c)
{
    const stg_route *r = c->match.route;
    char from[INET6_ADDRSTRLEN];

    if (r != NULL && r->role == STG_ROLE_ANYBODY)
        return;
    STG_LOG_REPEAT(stg_ingress_of(c)->options.log, STG_LOG_WARN,
                   "request-refused", 3,
                   stg_field_text("from", stg_origin_print(c->in.origin, from)),
                   stg_field_number("status", (uint64_t)c->problem.status),
                   stg_field_text("why", c->problem.detail));
}

/* Those of what is no receipt. */
static void add_usual_lines(lines *l)
{
    add(l, "Cache-Control", "no-store");
    add(l, "X-Content-Type-Options", "nosniff");
}

/* With the headers that every answer has. */
static void answer(stg_caller *c, int status, const char *type, lines *more,
                   stg_span body, bool is_given)
{
    if (strcmp(type, STG_ASK_HTML) == 0)
        add(more, "Content-Security-Policy",
            "default-src 'none'; script-src 'self'; style-src 'self'; "
            "connect-src 'self'; img-src data:; base-uri 'none'; "
            "form-action 'none'; frame-ancestors 'none'");
    if (!stg_request_is_published(c))
        add_usual_lines(more);
    if (c->tag[0] != '\0')
        add(more, "ETag", c->tag);
    count(&stg_ingress_of(c)->view, (unsigned)status);
    stg_inbound_answer(&c->in, status, type, more->text, body.at, body.size,
                       is_given);
}

static void send_problem(stg_caller *c)
{
    char text[STG_PROBLEM_TEXT_MAX];
    size_t size = stg_problem_print(&c->problem, text);
    lines more;

    begin(&more);
    tell(c);
    add_problem_lines(c, &more);
    answer(c, c->problem.status, "application/problem+json", &more,
           (stg_span){text, size}, false);
}

static void begin_stream(stg_caller *c)
{
    lines more;

    begin(&more);
    add_usual_lines(&more);
    count(&stg_ingress_of(c)->view, 200);
    stg_stream_begin(c, more.text);
}

/* A problem comes before any answer that was made. Called once for a request:
 * what follows is the next one's. */
void stg_answer_caller(stg_caller *c)
{
    stg_span text = {c->reply.text, c->reply.size};
    lines more STG_UNINITIALIZED;

    if (c->problem.status != 0) {
        send_problem(c);
        return;
    }
    if (c->stream != NULL) {
        begin_stream(c);
        return;
    }
    c->reply.text = NULL; // it is given
    begin(&more);
    answer(c, c->reply.status, c->reply.type, &more, text, true);
}

void stg_answer_drop(stg_caller *c)
{
    free(c->reply.text);
    c->reply.text = NULL;
    c->tag[0] = '\0';
    stg_ingress_of(c)->answering -= c->answering;
    c->answering = 0;
}

/* -- ids --------------------------------------------------------------------- */

static char *put(char *out, const char *text)
{
    while (*text != '\0')
        *out++ = *text++;
    return out;
}

/* The store says in which epoch a repeated message came; all others are of the
 * one that is open. */
static char *print_id(const stg_publication *p, const stg_append_answer *a,
                      char *out)
{
    uint64_t epoch = a->epoch != 0 ? a->epoch : p->ingress->options.epoch;

    *out++ = '"';
    if (a->id != NULL)
        out = put(out, a->id);
    else
        out += strlen(stg_id_print(epoch, a->position, out));
    *out++ = '"';
    return out;
}

/* What print_ids() needs at most. */
static size_t ids_room(const stg_publication *p,
                       const stg_append_answer *answers)
{
    size_t room = 16;

    for (size_t i = 0; i < p->count; i++)
        room += 3 + (answers[i].id == NULL ? STG_ID_TEXT_MAX
                                           : strlen(answers[i].id));
    return room;
}

static size_t print_ids(const stg_publication *p,
                        const stg_append_answer *answers, char *text)
{
    char *out = put(text, "{\"ids\":[");

    for (size_t i = 0; i < p->count; i++) {
        if (i > 0)
            *out++ = ',';
        out = print_id(p, &answers[i], out);
    }
    return (size_t)(put(out, "]}\n") - text);
}

static size_t print_one(const stg_publication *p, const stg_append_answer *a,
                        char text[STG_MESSAGE_ID_MAX + 16])
{
    char *out = print_id(p, a, put(text, "{\"id\":"));

    return (size_t)(put(out, "}\n") - text);
}

static bool is_all_repeats(const stg_publication *p,
                           const stg_append_answer *answers)
{
    for (size_t i = 0; i < p->count; i++)
        if (!answers[i].is_repeat)
            return false;
    return true;
}

/* Without an allocation for one message. In a batch ids stand in the order of
 * the lines, and Stagger-Repeat is said only where all messages came before. */
bool stg_answer_ids(stg_caller *c, const stg_publication *p,
                    const stg_append_answer *answers)
{
    char one[STG_MESSAGE_ID_MAX + 16] STG_UNINITIALIZED, *text = one;
    bool is_batch = p->messages != &p->one;
    lines more STG_UNINITIALIZED;
    size_t size;

    begin(&more);
    if (is_batch)
        text = malloc(ids_room(p, answers));
    if (text == NULL)
        return false;
    size = is_batch ? print_ids(p, answers, text) : print_one(p, answers, text);
    if (is_all_repeats(p, answers))
        add(&more, "Stagger-Repeat", "true");
    answer(c, 202, "application/json", &more, (stg_span){text, size}, is_batch);
    return true;
}
