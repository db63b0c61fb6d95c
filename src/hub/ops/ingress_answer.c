#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "hub/ops/ingress_id.h"
#include "hub/ops/ingress_inside.h"

/* -- headers ----------------------------------------------------------------- */

static bool add(struct MHD_Response *r, const char *name, const char *value)
{
    return MHD_add_response_header(r, name, value) == MHD_YES;
}

/* Whole seconds, one at least. */
static const char *print_retry_after(const stg_caller *c, char text[24])
{
    stg_ns wait = c->ingress->options.retry_after;
    stg_ns seconds = wait / STG_S + (wait % STG_S != 0);

    snprintf(text, 24, "%" PRIu64, seconds == 0 ? 1 : seconds);
    return text;
}

static bool add_problem_headers(const stg_caller *c, struct MHD_Response *r)
{
    char wait[24];

    switch (c->problem.status) {
    case 401:
        return add(r, "WWW-Authenticate", "Bearer");
    case 405:
        return add(r, "Allow", c->match.allowed);
    case 429:
    case 503:
        return add(r, "Retry-After", print_retry_after(c, wait));
    default:
        return true;
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
    STG_LOG_REPEAT(c->ingress->options.log, STG_LOG_WARN, "request-refused", 3,
                   stg_field_text("from", stg_origin_print(c->origin, from)),
                   stg_field_number("status", (uint64_t)c->problem.status),
                   stg_field_text("why", c->problem.detail));
}

/* With the headers that every answer has. NULL: no memory; then text is
 * freed, if it was to be. */
static struct MHD_Response *make(const stg_caller *c, char *text, size_t size,
                                 const char *type,
                                 enum MHD_ResponseMemoryMode mode)
{
    struct MHD_Response *r = MHD_create_response_from_buffer(size, text, mode);

    if (r == NULL) {
        if (mode == MHD_RESPMEM_MUST_FREE)
            free(text);
        return NULL;
    }
    if (add(r, "Content-Type", type) &&
        (stg_request_is_published(c) ||
         (add(r, "Cache-Control", "no-store") &&
          add(r, "X-Content-Type-Options", "nosniff"))))
        return r;
    MHD_destroy_response(r);
    return NULL;
}

static struct MHD_Response *make_problem(const stg_caller *c)
{
    char text[STG_PROBLEM_TEXT_MAX];
    size_t size = stg_problem_print(&c->problem, text);
    struct MHD_Response *r =
        make(c, text, size, "application/problem+json", MHD_RESPMEM_MUST_COPY);

    tell(c);
    if (r == NULL || add_problem_headers(c, r))
        return r;
    MHD_destroy_response(r);
    return NULL;
}

static struct MHD_Response *make_reply(stg_caller *c)
{
    struct MHD_Response *r = make(c, c->reply.text, c->reply.size,
                                  c->reply.type, MHD_RESPMEM_MUST_FREE);

    c->reply.text = NULL;
    if (r == NULL || !c->reply.is_repeat || add(r, "Stagger-Repeat", "true"))
        return r;
    MHD_destroy_response(r);
    return NULL;
}

enum MHD_Result stg_answer(stg_caller *c)
{
    bool is_problem = c->problem.status != 0;
    int status = is_problem ? c->problem.status : c->reply.status;
    enum MHD_Result result = MHD_YES;
    struct MHD_Response *r;

    if (c->is_cut)
        return MHD_NO;
    r = is_problem ? make_problem(c) : make_reply(c);

    if (r == NULL)
        return MHD_NO;
    if (c->is_last || c->ingress->view.is_stopping)
        result = add(r, "Connection", "close") ? MHD_YES : MHD_NO;
    stg_caller_enter(c, STG_PHASE_ANSWER);
    if (result == MHD_YES)
        result = MHD_queue_response(c->connection, (unsigned)status, r);
    MHD_destroy_response(r);
    count(&c->ingress->view, (unsigned)status);
    return result;
}

void stg_answer_drop(stg_caller *c)
{
    free(c->reply.text);
    c->reply = (stg_reply){.status = 0};
    c->ingress->answering -= c->answering;
    c->answering = 0;
}

/* A whole answer of little, at once. */
static void send_raw(const stg_caller *c, int status, const char *type,
                     const char *more, const char *body, size_t size)
{
    char head[512];
    int length = snprintf(head, sizeof head,
                          "HTTP/1.1 %d %s\r\n"
                          "Content-Type: %s\r\n"
                          "%s"
                          "Content-Length: %zu\r\n"
                          "Connection: close\r\n\r\n",
                          status, stg_problem_title(status), type, more, size);
    struct iovec pieces[] = {{head, (size_t)length},
                             {(void *)(uintptr_t)body, size}};
    const struct msghdr m = {.msg_iov = pieces, .msg_iovlen = 2};

    (void)sendmsg(c->fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
    count(&c->ingress->view, (unsigned)status);
}

void stg_answer_raw(const stg_caller *c, const stg_problem *p)
{
    char body[STG_PROBLEM_TEXT_MAX], more[48] = "", wait[24];
    size_t size = stg_problem_print(p, body);

    if (p->status == 429 || p->status == 503)
        snprintf(more, sizeof more, "Retry-After: %s\r\n",
                 print_retry_after(c, wait));
    send_raw(c, p->status, "application/problem+json", more, body, size);
}

/* The other end has closed its half, and libmicrohttpd would take that for the
 * end of the connection. What the socket does not take at once is lost. */
static void answer_half_closed(stg_caller *c)
{
    const stg_reply *r = &c->reply;

    if (c->problem.status != 0) {
        tell(c);
        stg_answer_raw(c, &c->problem);
    } else {
        send_raw(c, r->status, r->type,
                 r->is_repeat ? "Stagger-Repeat: true\r\n" : "", r->text,
                 r->size);
    }
    stg_caller_cut(c);
}

void stg_answer_resume(stg_caller *c)
{
    if (!c->is_cut && stg_caller_is_half_closed(c))
        answer_half_closed(c);
    MHD_resume_connection(c->connection);
    // Without a thread of its own it does not wake itself.
    stg_deadline_set(&c->ingress->deadlines, &c->ingress->turn, 0);
}

/* -- ids --------------------------------------------------------------------- */

static size_t print_id(const stg_publication *p, const stg_append_answer *a,
                       char *out)
{
    char id[STG_ID_TEXT_MAX];

    return (size_t)sprintf(
        out, "\"%s\"",
        stg_id_print(a->epoch != 0 ? a->epoch : p->ingress->options.epoch,
                     a->position, id));
}

static size_t print_ids(const stg_publication *p,
                        const stg_append_answer *answers, char *text)
{
    char *out = text;

    if (p->messages == &p->one) {
        out += sprintf(out, "{\"id\":");
        out += print_id(p, &answers[0], out);
        out += sprintf(out, "}\n");
        return (size_t)(out - text);
    }
    out += sprintf(out, "{\"ids\":[");
    for (size_t i = 0; i < p->count; i++) {
        if (i > 0)
            *out++ = ',';
        out += print_id(p, &answers[i], out);
    }
    out += sprintf(out, "]}\n");
    return (size_t)(out - text);
}

static bool is_all_repeats(const stg_publication *p,
                           const stg_append_answer *answers)
{
    for (size_t i = 0; i < p->count; i++)
        if (!answers[i].is_repeat)
            return false;
    return true;
}

bool stg_answer_ids(const stg_publication *p, const stg_append_answer *answers)
{
    char *text = malloc(16 + p->count * (STG_ID_TEXT_MAX + 3));

    if (text == NULL)
        return false;
    p->caller->reply = (stg_reply){.status = MHD_HTTP_ACCEPTED,
                                   .type = "application/json",
                                   .text = text,
                                   .size = print_ids(p, answers, text),
                                   .is_repeat = is_all_repeats(p, answers)};
    return true;
}
