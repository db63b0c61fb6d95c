/* Bytes out and in, plain or through TLS.
 *
 * A request is written at once as far as the system takes it; the rest goes out
 * as there is room. All of what was handed over counts as sent, for nobody
 * knows how much of it the other side has read: only a request of which nothing
 * was sent may be sent again without being an attempt. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "http/internal.h"

enum { PARTS = 4 }; /* head, headers, length, body */

static uv_stream_t *stream_of(stg_connection *c)
{
    return (uv_stream_t *)&c->socket->tcp;
}

/* -- out ------------------------------------------------------------------- */

/* What is left to send. Returns how many parts, 0: nothing. */
static unsigned rest_of(stg_connection *c, uv_buf_t parts[PARTS])
{
    const stg_endpoint *e = c->endpoint;
    const stg_exchange *x = &c->exchange;
    const stg_span all[PARTS] = {{e->head, e->head_size},
                                 x->headers,
                                 {x->length, x->length_size},
                                 x->body};
    size_t skip = x->sent;
    unsigned count = 0;

    for (int i = 0; i < PARTS; i++) {
        size_t skipped = skip < all[i].size ? skip : all[i].size;

        skip -= skipped;
        if (skipped < all[i].size)
            parts[count++] = (uv_buf_t){.base = (char *)all[i].at + skipped,
                                        .len = all[i].size - skipped};
    }
    return count;
}

/* The connection is broken, or closed by us. What the other side had said
 * before was read before: the loop reads first, and a connection from the pool
 * was quiet. */
static void fail_write(stg_connection *c, int error)
{
    if (error != UV_ECANCELED)
        stg_connection_fail_later(c, error);
}

static void plain_written(uv_write_t *request, int status)
{
    stg_connection *c = request->handle->data;

    free(request);
    if (c->phase != STG_PHASE_WRITE)
        return;
    if (status != 0)
        fail_write(c, status);
    else
        stg_connection_written(c);
}

/* What the system did not take at once. All of it counts as sent from here on:
 * who knows how much is. */
static void write_later(stg_connection *c)
{
    uv_write_t *request = malloc(sizeof *request);
    uv_buf_t parts[PARTS];
    unsigned count;
    int error = UV_ENOMEM;

    if (request != NULL && stg_connection_keep_headers(c)) {
        count = rest_of(c, parts);
        error = uv_write(request, stream_of(c), parts, count, plain_written);
        for (unsigned i = 0; i < count; i++)
            c->exchange.sent += parts[i].len;
    }
    if (error == 0)
        return;
    free(request);
    fail_write(c, error);
}

static void write_plain(stg_connection *c)
{
    stg_exchange *x = &c->exchange;
    uv_buf_t parts[PARTS];
    unsigned count = rest_of(c, parts);
    int written = uv_try_write(stream_of(c), parts, count);

    if (written < 0 && written != UV_EAGAIN) {
        fail_write(c, written);
        return;
    }
    x->sent += written > 0 ? (size_t)written : 0;
    if (rest_of(c, parts) == 0)
        stg_connection_written(c);
    else
        write_later(c);
}

/* -- out, through TLS ------------------------------------------------------ */

/* Records that the system did not take at once. */
typedef struct backlog {
    uv_write_t request;
    char bytes[];
} backlog;

static int put_off(uv_stream_t *stream, const char *bytes, size_t size,
                   uv_write_cb written)
{
    backlog *b = malloc(sizeof *b + size);
    uv_buf_t part;
    int error;

    if (b == NULL)
        return UV_ENOMEM;
    memcpy(b->bytes, bytes, size);
    part = (uv_buf_t){.base = b->bytes, .len = size};
    b->request.data = b;
    error = uv_write(&b->request, stream, &part, 1, written);
    if (error != 0)
        free(b);
    return error;
}

static int send_bytes(uv_stream_t *stream, const char *bytes, size_t size,
                      uv_write_cb written)
{
    uv_buf_t part = {.base = (char *)(uintptr_t)bytes, .len = size};
    int taken = uv_try_write(stream, &part, 1);

    if (taken == UV_EAGAIN)
        taken = 0;
    if (taken < 0)
        return taken;
    if ((size_t)taken == size)
        return 0;
    return put_off(stream, bytes + taken, size - (size_t)taken, written);
}

int stg_tls_flush(stg_tls *t, uv_stream_t *stream, uv_write_cb written)
{
    size_t size;
    const char *bytes = stg_tls_out(t, &size);
    int error = size == 0 ? 0 : send_bytes(stream, bytes, size, written);

    stg_tls_sent(t);
    return error;
}

static void backlog_written(uv_write_t *request, int status)
{
    stg_connection *c = request->handle->data;

    free(request->data);
    if (status == 0 && c->phase == STG_PHASE_WRITE)
        stg_wire_write(c);
    else if (status != 0 && c->phase <= STG_PHASE_WRITE)
        fail_write(c, status);
}

int stg_wire_send(stg_connection *c, const char *bytes, size_t size)
{
    return send_bytes(stream_of(c), bytes, size, backlog_written);
}

static int flush(stg_connection *c)
{
    return stg_tls_flush(c->tls, stream_of(c), backlog_written);
}

/* The next piece of the request, in one run of bytes. */
static size_t gather(stg_connection *c)
{
    char *to = c->client->plain;
    uv_buf_t parts[PARTS];
    unsigned count = rest_of(c, parts);
    size_t room = sizeof c->client->plain;

    for (unsigned i = 0; i < count && room > 0; i++) {
        size_t size = parts[i].len < room ? parts[i].len : room;

        memcpy(to, parts[i].base, size);
        to += size;
        room -= size;
    }
    return sizeof c->client->plain - room;
}

/* Goes on as long as the system takes all of each record; else
 * backlog_written() does. */
static void write_tls(stg_connection *c)
{
    size_t size, taken;

    while (uv_stream_get_write_queue_size(stream_of(c)) == 0) {
        int error;

        size = gather(c);
        if (size == 0) {
            stg_connection_written(c);
            return;
        }
        if (stg_tls_write(c->tls, c->client->plain, size, &taken) !=
            STG_TLS_DONE) {
            stg_connection_fail_later(c, UV_EPROTO);
            return;
        }
        error = flush(c);
        if (error != 0) {
            fail_write(c, error);
            return;
        }
        c->exchange.sent += taken;
    }
    if (!stg_connection_keep_headers(c))
        fail_write(c, UV_ENOMEM);
}

void stg_wire_write(stg_connection *c)
{
    if (c->tls != NULL)
        write_tls(c);
    else
        write_plain(c);
}

/* -- in -------------------------------------------------------------------- */

static void fail_tls(stg_connection *c)
{
    char why[STG_DETAIL_MAX / 2];
    int alert;

    stg_tls_why(c->tls, why, sizeof why, &alert);
    (void)snprintf(c->client->detail, sizeof c->client->detail, "tls %s: %s",
                   c->endpoint->peer, why);
    stg_connection_fail(c, stg_failed_tls(alert), c->client->detail);
}

/* What TLS has made is sent before its result is looked at: the last message
 * of a handshake, and the alert of one that failed. */
void stg_wire_shake_hands(stg_connection *c)
{
    stg_tls_result result = stg_tls_shake_hands(c->tls);
    int error = flush(c);

    if (result == STG_TLS_FAILED)
        fail_tls(c);
    else if (error != 0)
        fail_write(c, error);
    else if (result == STG_TLS_DONE)
        stg_connection_secured(c);
}

/* The end of what TLS gave, for whatever reason. */
static void settle_tls(stg_connection *c, stg_tls_result result)
{
    bool is_open = c->answer == NULL || c->answer->state == STG_ANSWER_OPEN;

    if (c->phase == STG_PHASE_IDLE) {
        if (result != STG_TLS_WANTS)
            stg_connection_close(c);
        else
            stg_tls_rest(c->tls);
        return;
    }
    if (result == STG_TLS_FAILED && is_open) {
        fail_tls(c);
    } else if (result == STG_TLS_CLOSED && is_open) {
        stg_connection_lost(c, UV_EOF, true);
    } else {
        if (result != STG_TLS_WANTS && c->answer != NULL)
            c->answer->keeps_alive = false;
        if (c->answer != NULL)
            stg_connection_settle(c);
    }
}

/* Bytes on an idle connection are no answer: settle_tls() closes it. */
static void read_tls(stg_connection *c, const char *bytes, size_t size)
{
    char *plain = c->client->plain;
    stg_tls_result result;
    size_t count;

    stg_tls_feed(c->tls, bytes, size);
    if (c->phase == STG_PHASE_TLS)
        stg_wire_shake_hands(c);
    if (c->phase <= STG_PHASE_TLS || c->phase == STG_PHASE_ENDED)
        return;
    while ((result = stg_tls_read(c->tls, plain, STG_PLAIN_MAX, &count)) ==
           STG_TLS_DONE) {
        if (c->phase == STG_PHASE_IDLE)
            break;
        if (stg_answer_feed(stg_connection_answer(c), plain, count) >
            STG_ANSWER_WHOLE)
            break;
    }
    (void)flush(c); // what it says to us of its own, say about new keys
    if (c->phase != STG_PHASE_ENDED)
        settle_tls(c, result);
}

/* Where some bytes and a reset come at once, libuv reads the bytes, sees that
 * the other side is gone, and calls that the end. A reset behind a real end
 * reads as EPIPE, and the end stands. */
static int what_ended(const stg_connection *c)
{
    uv_os_fd_t fd;
    int error = 0;
    socklen_t size = sizeof error;

    if (uv_fileno((const uv_handle_t *)&c->socket->tcp, &fd) == 0 &&
        getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 &&
        error != 0 && error != EPIPE)
        return -error;
    return UV_EOF;
}

static void lose(stg_connection *c, int error)
{
    // The end of TCP says nothing about the end of TLS.
    bool is_in_order = c->tls == NULL;

    if (c->phase == STG_PHASE_IDLE)
        stg_connection_close(c);
    else
        stg_connection_lost(c, error, is_in_order);
}

static void take(uv_stream_t *stream, ssize_t size, const uv_buf_t *buf)
{
    stg_connection *c = stream->data;

    if (size == 0 || c->phase == STG_PHASE_ENDED)
        return;
    c->read_ms = size == STG_READ_MAX ? 0 : uv_now(c->client->loop);
    if (size < 0) {
        lose(c, size == UV_EOF ? what_ended(c) : (int)size);
    } else if (c->tls != NULL) {
        read_tls(c, buf->base, (size_t)size);
    } else if (c->phase == STG_PHASE_IDLE) {
        stg_connection_close(c); // nobody asked
    } else if (c->phase == STG_PHASE_TUNNEL) {
        stg_tunnel_read(c, buf->base, (size_t)size);
    } else {
        (void)stg_answer_feed(stg_connection_answer(c), buf->base,
                              (size_t)size);
        stg_connection_settle(c);
    }
}

/* All connections share one buffer: what is read is taken at once. */
static void lend(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    stg_connection *c = handle->data;

    (void)suggested;
    *buf = (uv_buf_t){.base = c->client->read, .len = STG_READ_MAX};
}

/* What was read dry in this turn of the loop was quiet just now, and is not
 * looked at again, unless its first exchange was the last: some servers close
 * behind an answer without a word of it. */
bool stg_wire_is_quiet(const stg_connection *c)
{
    uv_os_fd_t fd;
    char byte;

    if (c->tls != NULL && !stg_tls_is_quiet(c->tls))
        return false;
    if (c->exchange.is_reused && c->read_ms == uv_now(c->client->loop))
        return true;
    return uv_fileno((const uv_handle_t *)&c->socket->tcp, &fd) == 0 &&
           recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 &&
           (errno == EAGAIN || errno == EWOULDBLOCK);
}

int stg_wire_open(stg_connection *c)
{
    return uv_read_start(stream_of(c), lend, take);
}
