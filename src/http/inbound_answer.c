/* Answers: whole, or as a stream of pieces. An answer goes out at once as far
 * as the system takes it; only the rest is copied and queued. A body that is
 * `given` is freed here in every case; one that is not is lent for the call.
 *
 * The head says `close` where the server stops, where the connection had no
 * place but for this answer, and where the request was not whole: what follows
 * could not be told from its body. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "host/wall.h"
#include "http/server.h"

/* A body that goes out in one piece with its head: one copy costs the system
 * less than two pieces do. */
enum { SMALL = 256 };

/* What the system did not take of an answer at once. */
typedef struct outgoing {
    uv_write_t request;
    char *given;
    char rest[];
} outgoing;

static void written(uv_write_t *request, int status)
{
    stg_inbound *c = request->handle->data;
    outgoing *o = (outgoing *)request;

    free(o->given);
    free(o);
    if (c->phase == STG_INBOUND_CLOSED)
        return;
    if (status != 0)
        stg_inbound_close(c);
    else if (c->phase == STG_INBOUND_ANSWER && stg_inbound_unsent(c) == 0)
        stg_inbound_sent(c);
}

/* skip: bytes of the head, and then of the body, that are sent. */
static int put_off(stg_inbound *c, uv_buf_t parts[2], size_t skip,
                   bool is_given)
{
    size_t head = skip < parts[0].len ? parts[0].len - skip : 0;
    size_t at = skip > parts[0].len ? skip - parts[0].len : 0;
    size_t body = parts[1].len - at;
    outgoing *o = malloc(sizeof *o + head + (is_given ? 0 : body));
    uv_buf_t left[2];

    if (o == NULL)
        return UV_ENOMEM;
    o->given = is_given ? parts[1].base : NULL;
    memcpy(o->rest, parts[0].base + parts[0].len - head, head);
    left[0] = uv_buf_init(o->rest, (unsigned)head);
    left[1] = (uv_buf_t){.base = parts[1].base + at, .len = body};
    if (!is_given && body > 0) {
        memcpy(o->rest + head, parts[1].base + at, body);
        left[1].base = o->rest + head;
    }
    if (uv_write(&o->request, &c->as.stream, left, 2, written) == 0)
        return 0;
    free(o);
    return UV_EPIPE;
}

/* Returns how many bytes the system took, or an error of libuv. */
static int send_now(stg_inbound *c, const uv_buf_t *parts, unsigned count)
{
    int sent = uv_try_write(&c->as.stream, parts, count);

    return sent == UV_EAGAIN ? 0 : sent;
}

static void send_securely(stg_inbound *c, uv_buf_t parts[2], bool is_given)
{
    int sent;

    stg_inbound_enter(c, STG_INBOUND_ANSWER);
    sent = stg_secure_answer(c, parts, is_given);
    if (sent == 0)
        return;
    if (is_given)
        free(parts[1].base);
    if (sent > 0)
        stg_inbound_sent(c);
    else
        stg_inbound_close(c);
}

/* A given body is freed once: by written() where some of the answer was
 * queued, here in all other cases. */
static void send_answer(stg_inbound *c, uv_buf_t parts[2], bool is_given)
{
    int sent;
    bool is_whole;

    if (c->secure != NULL) {
        send_securely(c, parts, is_given);
        return;
    }
    sent = send_now(c, parts, parts[1].len > 0 ? 2 : 1);
    is_whole = sent >= 0 && (size_t)sent == parts[0].len + parts[1].len;

    if (sent >= 0 && !is_whole) {
        stg_inbound_enter(c, STG_INBOUND_ANSWER);
        sent = put_off(c, parts, (size_t)sent, is_given);
        if (sent == 0)
            return;
    }
    if (is_given)
        free(parts[1].base);
    if (is_whole)
        stg_inbound_sent(c);
    else
        stg_inbound_close(c);
}

void stg_inbound_send(stg_inbound *c, const char *text, size_t size,
                      bool is_last)
{
    uv_buf_t parts[2] = {{.base = (char *)(uintptr_t)text, .len = size},
                         {.len = 0}};

    c->is_last = is_last;
    send_answer(c, parts, false);
}

/* Printed once a second, not once an answer. */
static const char *date_of(stg_httpd *s)
{
    int64_t now = (int64_t)(stg_wall_now() / STG_S);

    if (now != s->date_s)
        stg_response_print_date(now, s->date);
    s->date_s = now;
    return s->date;
}

/* What the head of the answer says, of what was decided of its connection. */
static stg_response begin_response(stg_inbound *c, int status, const char *type,
                                   const char *more)
{
    c->is_last = c->is_last || c->request.is_last || stg_inbound_is_short(c) ||
                 c->phase < STG_INBOUND_WAIT || c->server->is_stopping;
    if (c->phase < STG_INBOUND_WAIT)
        stg_inbound_enter(c, STG_INBOUND_WAIT);
    return (stg_response){
        .status = status,
        .type = type,
        .more = more,
        .is_last = c->is_last,
        .is_kept = c->request.is_old && !c->is_last,
    };
}

void stg_inbound_answer(stg_inbound *c, int status, const char *type,
                        const char *more, const char *body, size_t size,
                        bool is_given)
{
    char head[STG_RESPONSE_HEAD_MAX + SMALL] STG_UNINITIALIZED;
    stg_response r = begin_response(c, status, type, more);
    uv_buf_t parts[2];

    r.size = size;
    parts[0] = (uv_buf_t){
        .base = head, .len = stg_response_print(&r, date_of(c->server), head)};
    parts[1] = (uv_buf_t){.base = (char *)(uintptr_t)body, .len = size};
    // The head alone, with the size that the body would have.
    if (c->request.is_head) {
        if (is_given)
            free(parts[1].base);
        is_given = false;
        parts[1].len = 0;
    }
    if (!is_given && parts[1].len > 0 && parts[1].len <= SMALL) {
        memcpy(head + parts[0].len, body, parts[1].len);
        parts[0].len += parts[1].len;
        parts[1].len = 0;
    }
    send_answer(c, parts, is_given);
}

/* -- streams --------------------------------------------------------------- */

size_t stg_inbound_unsent(const stg_inbound *c)
{
    return uv_stream_get_write_queue_size(&c->as.stream);
}

/* Bytes of a stream; what the system does not take at once is copied. */
static void send_bytes(stg_inbound *c, const char *bytes, size_t size)
{
    uv_buf_t parts[2] = {{.base = (char *)(uintptr_t)bytes, .len = size},
                         {.len = 0}};
    int sent;

    if (c->secure != NULL) {
        sent = stg_secure_write(c, bytes, size);
    } else {
        sent = send_now(c, parts, 1);
        if (sent >= 0)
            sent = (size_t)sent == size
                       ? 0
                       : put_off(c, parts, (size_t)sent, false);
    }
    if (sent != 0)
        stg_inbound_close(c);
}

void stg_inbound_begin_stream(stg_inbound *c, int status, const char *type,
                              const char *more)
{
    char head[STG_RESPONSE_HEAD_MAX];
    stg_response r;

    // HTTP/1.0 knows no chunks: the end is the connection's.
    c->is_last = c->is_last || c->request.is_old;
    r = begin_response(c, status, type, more);
    r.body = c->request.is_old ? STG_RESPONSE_TO_END : STG_RESPONSE_CHUNKED;
    stg_inbound_enter(c, STG_INBOUND_STREAM);
    send_bytes(c, head, stg_response_print(&r, date_of(c->server), head));
    if (c->phase != STG_INBOUND_STREAM)
        return;
    if (c->request.is_head)
        stg_inbound_end_stream(c);
    else if (c->is_ended)
        stg_inbound_close(c);
}

static bool is_chunked(const stg_inbound *c)
{
    return !c->request.is_old && !c->request.is_head;
}

static void send_chunk(stg_inbound *c, const char *bytes, size_t size)
{
    enum { AROUND = 24 };
    char *chunk = malloc(size + AROUND);
    size_t head;

    if (chunk == NULL) {
        stg_inbound_close(c);
        return;
    }
    head = (size_t)sprintf(chunk, "%zx\r\n", size);
    memcpy(chunk + head, bytes, size);
    chunk[head + size] = '\r';
    chunk[head + size + 1] = '\n';
    send_bytes(c, chunk, head + size + 2);
    free(chunk);
}

/* A client that does not read is cut: what waits for it is memory. */
void stg_inbound_send_piece(stg_inbound *c, const char *bytes, size_t size)
{
    if (stg_inbound_unsent(c) > STG_INBOUND_UNSENT_MAX)
        stg_inbound_cut(c);
    else if (is_chunked(c))
        send_chunk(c, bytes, size);
    else
        send_bytes(c, bytes, size);
}

void stg_inbound_end_stream(stg_inbound *c)
{
    c->is_last = c->is_last || c->server->is_stopping;
    if (is_chunked(c))
        send_bytes(c, "0\r\n\r\n", 5);
    if (c->phase != STG_INBOUND_STREAM)
        return;
    stg_inbound_enter(c, STG_INBOUND_ANSWER);
    if (stg_inbound_unsent(c) == 0)
        stg_inbound_sent(c);
}
