/* A caller's connection: one request at a time, its body, its answer.
 *
 * Each phase has a deadline that is only moved to be earlier; a body has to
 * come at a least rate (slow loris). Bytes that come before the answer is out
 * are kept, up to what was read at once, and reading stops. After the last
 * answer the other end closes first, or its time is up: a close with unread
 * bytes could take the answer away from it. */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "http/server.h"

/* How long the other end has to read its last answer and to close: closed at
 * once by us, with something of it unread, the answer itself could be lost. */
#define LINGER (2 * STG_S)

/* -- phases and time ------------------------------------------------------- */

static bool is_busy(stg_inbound_phase phase)
{
    return phase >= STG_INBOUND_WAIT && phase <= STG_INBOUND_STREAM;
}

/* Bytes that come are thrown away. */
static bool is_draining(stg_inbound_phase phase)
{
    return phase == STG_INBOUND_LINGER || phase == STG_INBOUND_HUNG;
}

/* A body has its grace, and then as long as its bytes at the least rate take. */
static stg_ns body_due(const stg_inbound *c)
{
    const stg_httpd_options *o = &c->server->options;
    stg_ns slowest =
        o->body_rate == 0
            ? STG_NEVER
            : stg_ns_add(o->body_grace,
                         stg_ns_mul(c->body_size, STG_S) / o->body_rate);

    return stg_ns_add(c->phase_at, stg_ns_min(slowest, o->request_timeout));
}

static stg_ns find_due(const stg_inbound *c)
{
    const stg_httpd_options *o = &c->server->options;

    // It is only answered, and others wait for its file: each phase has a
    // second.
    if (stg_inbound_is_short(c) && c->phase <= STG_INBOUND_ANSWER &&
        c->phase != STG_INBOUND_WAIT)
        return stg_ns_add(c->phase_at, STG_S);
    switch (c->phase) {
    case STG_INBOUND_IDLE:
    case STG_INBOUND_ANSWER:
        return stg_ns_add(c->phase_at, o->idle_timeout);
    case STG_INBOUND_HEAD:
        return stg_ns_add(c->phase_at, o->header_timeout);
    case STG_INBOUND_BODY:
        return body_due(c);
    case STG_INBOUND_LINGER:
        return stg_ns_add(c->phase_at, LINGER);
    default: // who answers has a time of his own
        return STG_NEVER;
    }
}

/* Into the lists of those that may make room for others, or out of them. */
static void queue(stg_inbound *c)
{
    bool is_idle = c->phase == STG_INBOUND_IDLE;

    stg_list_remove(&c->queue);
    stg_list_remove(&c->origin_queue);
    if (stg_inbound_is_short(c) &&
        (c->phase == STG_INBOUND_BODY || is_draining(c->phase)))
        stg_list_push(&c->server->passing, &c->queue);
    if (!is_idle && c->phase != STG_INBOUND_HEAD)
        return;
    stg_list_push(is_idle ? &c->server->idle : &c->server->heading, &c->queue);
    stg_list_push(is_idle ? &c->client->idle : &c->client->heading,
                  &c->origin_queue);
}

/* The deadline is only moved to be earlier: a connection that is in use costs the
 * heap nothing. */
void stg_inbound_enter(stg_inbound *c, stg_inbound_phase phase)
{
    stg_httpd *s = c->server;
    bool was_busy = is_busy(c->phase);
    stg_ns due;

    c->phase = phase;
    c->phase_at = stg_deadlines_now();
    queue(c);
    due = find_due(c);
    if (due < stg_deadline_at(&c->deadline))
        stg_deadline_set(&s->deadlines, &c->deadline, due);
    s->busy += (uint32_t)is_busy(phase);
    s->busy -= (uint32_t)was_busy;
    if (was_busy && s->busy == 0 && s->hooks->calm != NULL)
        s->hooks->calm(s);
}

/* -- the end --------------------------------------------------------------- */

static bool has_request(const stg_inbound *c)
{
    return c->phase >= STG_INBOUND_BODY && c->phase <= STG_INBOUND_STREAM;
}

static void free_inbound(uv_handle_t *handle)
{
    stg_inbound *c = handle->data;
    stg_httpd *s = c->server;

    stg_origin_release(c->origin);
    stg_origin_release(c->client);
    stg_secure_free(c->secure);
    free(c);
    stg_httpd_release(s);
}

/* Tells the user while the connection can be looked at; it is freed when libuv
 * has closed the handle. */
void stg_inbound_close(stg_inbound *c)
{
    stg_httpd *s = c->server;

    if (c->phase == STG_INBOUND_CLOSED)
        return;
    if (has_request(c))
        s->hooks->ended(c);
    if (s->hooks->closed != NULL)
        s->hooks->closed(c);
    if (c->secure != NULL)
        stg_secure_end(c);
    stg_inbound_enter(c, STG_INBOUND_CLOSED);
    stg_deadline_clear(&s->deadlines, &c->deadline);
    stg_list_remove(&c->link);
    c->client->connections--;
    stg_request_close(&c->request);
    free(c->rest);
    c->rest = NULL;
    uv_close(&c->as.handle, free_inbound);
    stg_httpd_left(s, c);
}

/* Nothing more can come: the other end has said so. */
static bool is_through(const stg_inbound *c)
{
    return c->is_ended || (c->request.is_last && c->rest == NULL &&
                           stg_request_is_whole(&c->request));
}

static void read_on(stg_inbound *c);

/* What is unread would have the system take the answer back, where it was not
 * read yet. So the other end closes first, or its time is up. */
static void end(stg_inbound *c)
{
    bool is_over = is_through(c);
    uv_os_fd_t fd;

    stg_inbound_enter(c, STG_INBOUND_LINGER);
    if (is_over || uv_fileno(&c->as.handle, &fd) != 0) {
        stg_inbound_close(c);
        return;
    }
    if (c->secure != NULL)
        stg_secure_end(c);
    (void)shutdown(fd, SHUT_WR);
    free(c->rest);
    c->rest = NULL;
    read_on(c);
}

/* -- behind an answer ------------------------------------------------------ */

static void feed(stg_inbound *c, stg_span in);

/* Bytes that came while a request waited for its answer. */
static void go_on(stg_inbound *c)
{
    char *rest = c->rest;

    c->rest = NULL;
    if (rest != NULL)
        feed(c, (stg_span){rest, c->rest_size});
    free(rest);
    if (c->phase > STG_INBOUND_BODY)
        return;
    if (c->is_ended)
        stg_inbound_close(c);
    else
        read_on(c);
}

/* From within feed() the next request is read by the loop there, so that a row
 * of requests is no recursion. */
void stg_inbound_sent(stg_inbound *c)
{
    c->server->hooks->ended(c);
    if (c->is_last) {
        end(c);
        return;
    }
    stg_request_begin(&c->request);
    c->body_size = 0;
    stg_inbound_enter(c, STG_INBOUND_IDLE);
    if (!c->is_feeding)
        go_on(c);
}

/* No answer comes: the connection stays open until the other end closes it. */
void stg_inbound_hang(stg_inbound *c)
{
    c->server->hooks->ended(c);
    stg_inbound_enter(c, STG_INBOUND_HUNG);
    free(c->rest);
    c->rest = NULL;
    if (c->is_ended)
        stg_inbound_close(c);
    else
        read_on(c);
}

/* -- bytes of requests ----------------------------------------------------- */

/* Refuses a request. The rest of it is not read, so the connection ends with
 * the answer. */
void stg_inbound_refuse(stg_inbound *c, int status, const char *why)
{
    c->is_last = true;
    stg_inbound_enter(c, STG_INBOUND_WAIT);
    c->server->hooks->refused(c, status, why);
}

/* Makes room: one whose body still comes is told so, any other is closed. */
void stg_inbound_make_room(stg_inbound *c)
{
    if (c->phase == STG_INBOUND_BODY)
        stg_inbound_refuse(c, 503, "too many connections");
    else
        stg_inbound_close(c);
}

/* The other end waits for a word before its body. These 25 bytes fit into any
 * socket that is in order; where they do not, it is closed. */
static void encourage(stg_inbound *c)
{
    static const char text[] = "HTTP/1.1 100 Continue\r\n\r\n";
    uv_buf_t part = {.base = (char *)(uintptr_t)text, .len = sizeof text - 1};

    c->request.wants_go_on = false;
    if (c->secure != NULL
            ? stg_secure_write(c, text, part.len) != 0
            : uv_try_write(&c->as.stream, &part, 1) != (int)part.len)
        stg_inbound_close(c);
}

/* All bytes are taken, and what they are will go. */
static void keep(stg_inbound *c)
{
    if (c->phase == STG_INBOUND_IDLE && stg_request_has_begun(&c->request))
        stg_inbound_enter(c, STG_INBOUND_HEAD);
    if (c->phase != STG_INBOUND_BODY)
        return;
    if (!stg_request_keep(&c->request))
        stg_inbound_refuse(c, 503, "no memory");
    else if (c->request.wants_go_on)
        encourage(c);
}

/* More of it than what was read at once comes through TLS, in its records. */
static void keep_rest(stg_inbound *c, stg_span in)
{
    size_t kept = c->rest != NULL ? c->rest_size : 0;
    char *rest = realloc(c->rest, kept + in.size);

    if (rest == NULL) {
        stg_inbound_close(c);
        return;
    }
    memcpy(rest + kept, in.at, in.size);
    c->rest = rest;
    c->rest_size = kept + in.size;
    (void)uv_read_stop(&c->as.stream);
    c->is_stopped = true;
}

/* One thing of the request. False: all bytes are taken. */
static bool take_event(stg_inbound *c, stg_span *in)
{
    const stg_httpd_hooks *hooks = c->server->hooks;
    stg_span piece;

    switch (stg_request_next(&c->request, in, &piece)) {
    case STG_REQUEST_MORE:
        keep(c);
        return false;
    case STG_REQUEST_HEAD:
        stg_inbound_enter(c, STG_INBOUND_BODY);
        hooks->head(c);
        return true;
    case STG_REQUEST_BODY:
        c->body_size += piece.size;
        hooks->body(c, piece);
        return true;
    case STG_REQUEST_WHOLE:
        stg_inbound_enter(c, STG_INBOUND_WAIT);
        hooks->whole(c);
        return true;
    default:
        stg_inbound_refuse(c, c->request.status, c->request.why);
        return true;
    }
}

static void feed(stg_inbound *c, stg_span in)
{
    c->is_feeding = true;
    while (c->phase <= STG_INBOUND_BODY && take_event(c, &in))
        ;
    c->is_feeding = false;
    if (in.size > 0 && is_busy(c->phase))
        keep_rest(c, in);
}

/* From here on the connection counts for its token, and not for its address.
 * False: the token has as many as it may. */
bool stg_inbound_identify(stg_inbound *c, const void *key)
{
    stg_httpd *s = c->server;
    stg_origin *client = stg_origin_hold_key(&s->origins, key);

    // Without memory for it, it stays its address's.
    if (client == NULL || client == c->client) {
        if (client != NULL)
            stg_origin_release(client);
        return true;
    }
    if (stg_httpd_is_full_of(s, client)) {
        stg_origin_release(client);
        return false;
    }
    c->client->connections--;
    stg_origin_release(c->client);
    c->client = client;
    client->connections++;
    return true;
}

/* -- reading --------------------------------------------------------------- */

/* Bytes of a body that lie where the user wants them. */
static void take_body(stg_inbound *c, size_t size, const char *at)
{
    stg_request_event event = stg_request_skip(&c->request, size);

    c->body_size += size;
    c->server->hooks->body(c, (stg_span){at, size});
    if (event != STG_REQUEST_WHOLE || c->phase != STG_INBOUND_BODY)
        return;
    stg_inbound_enter(c, STG_INBOUND_WAIT);
    c->server->hooks->whole(c);
}

/* Who has closed one direction still gets an answer that is being made. */
static void lose(stg_inbound *c, ssize_t error)
{
    c->is_ended = true;
    if (error != UV_EOF || !is_busy(c->phase) || c->phase == STG_INBOUND_STREAM)
        stg_inbound_close(c);
}

/* Bytes in the shared buffer go to the parser. All others were read to the
 * room that the user lent for a body, and are only counted. */
void stg_inbound_take(stg_inbound *c, ssize_t size, const uv_buf_t *buf)
{
    if (size == 0 || c->phase == STG_INBOUND_CLOSED)
        return;
    if (size < 0)
        lose(c, size);
    else if (is_draining(c->phase))
        return;
    else if (buf->base != c->server->read)
        take_body(c, (size_t)size, buf->base);
    else if (is_busy(c->phase))
        keep_rest(c, (stg_span){buf->base, (size_t)size});
    else
        feed(c, (stg_span){buf->base, (size_t)size});
}

/* All connections share one buffer, for what is read is taken at once; a body
 * is read to where it is wanted. */
uv_buf_t stg_inbound_lend(stg_inbound *c)
{
    stg_httpd *s = c->server;
    bool is_body = c->phase == STG_INBOUND_BODY;
    uv_buf_t buf = {.len = 0};

    if (is_body && c->request.length != UINT64_MAX && s->hooks->room != NULL)
        buf = s->hooks->room(c);
    if (buf.len == 0)
        buf = (uv_buf_t){.base = s->read,
                         .len = is_body ? STG_INBOUND_BODY_READ
                                        : STG_INBOUND_READ};
    else if (buf.len > c->request.left)
        buf.len = (size_t)c->request.left;
    return buf;
}

static void take(uv_stream_t *stream, ssize_t size, const uv_buf_t *buf)
{
    stg_inbound_take(stream->data, size, buf);
}

static void lend(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    (void)suggested;
    *buf = stg_inbound_lend(handle->data);
}

/* If it had stopped. */
static void read_on(stg_inbound *c)
{
    int error;

    if (!c->is_stopped)
        return;
    c->is_stopped = false;
    error = c->secure != NULL ? stg_secure_read(c)
                              : uv_read_start(&c->as.stream, lend, take);
    if (error != 0)
        stg_inbound_close(c);
}

/* -- time ------------------------------------------------------------------ */

static const char *name_phase(stg_inbound_phase phase)
{
    switch (phase) {
    case STG_INBOUND_HEAD:
        return "header";
    case STG_INBOUND_BODY:
        return "body";
    case STG_INBOUND_STREAM:
        return "stream";
    default:
        return "answer";
    }
}

/* 408 where no answer has begun; else there is nothing to be said but the
 * end. */
void stg_inbound_cut(stg_inbound *c)
{
    char from[INET6_ADDRSTRLEN];

    if (c->secure != NULL && !stg_secure_is_up(c)) {
        stg_secure_note(c, "it did not end in time");
        stg_inbound_close(c);
        return;
    }
    c->server->cut++;
    STG_LOG_REPEAT(c->server->options.log, STG_LOG_WARN, "request-cut", 1,
                   stg_field_text("from", stg_origin_print(c->origin, from)),
                   stg_field_text("phase", name_phase(c->phase)));
    if (is_busy(c->phase))
        stg_inbound_close(c);
    else
        stg_inbound_refuse(c, 408, "the request did not come in time");
}

static void pass(stg_deadline *d)
{
    stg_inbound *c = STG_HOLDER((void *)d, stg_inbound, deadline);
    stg_ns due = find_due(c);

    if (due > stg_deadlines_now())
        stg_deadline_set(&c->server->deadlines, d, due);
    else if (c->phase == STG_INBOUND_IDLE || c->phase == STG_INBOUND_LINGER)
        stg_inbound_close(c);
    else
        stg_inbound_cut(c);
}

bool stg_inbound_open(stg_inbound *c)
{
    c->as.handle.data = c;
    c->deadline.passed = pass;
    c->phase = STG_INBOUND_IDLE;
    stg_request_init(&c->request, c->server->options.header_max);
    stg_inbound_enter(c, STG_INBOUND_HEAD);
    c->is_stopped = true;
    read_on(c);
    return c->phase != STG_INBOUND_CLOSED;
}
