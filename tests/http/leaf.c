#include "tests/http/leaf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness.h"

struct leaf_guest {
    uv_tcp_t tcp;
    leaf *leaf;
    const leaf_step *step;
    SSL *ssl;
    char *heard; /* since the last whole request */
    size_t heard_size, heard_room;
    size_t slot;
    bool is_closing;
};

typedef struct saying {
    uv_write_t request;
    char bytes[];
} saying;

static void forget(uv_handle_t *handle)
{
    leaf_guest *g = handle->data;

    g->leaf->guests[g->slot] = NULL;
    g->leaf->open--;
    SSL_free(g->ssl);
    free(g->heard);
    free(g);
}

static void part(leaf_guest *g, bool is_reset)
{
    if (g->is_closing)
        return;
    g->is_closing = true;
    if (!is_reset || uv_tcp_close_reset(&g->tcp, forget) != 0)
        uv_close((uv_handle_t *)&g->tcp, forget);
}

/* -- out ------------------------------------------------------------------- */

static void said(uv_write_t *request, int status)
{
    (void)status;
    free(request->data);
}

static void send_bytes(leaf_guest *g, const char *bytes, size_t size)
{
    saying *s = malloc(sizeof *s + size);
    uv_buf_t part_of;

    CHECK(s != NULL);
    memcpy(s->bytes, bytes, size);
    s->request.data = s;
    part_of = uv_buf_init(s->bytes, (unsigned)size);
    CHECK(uv_write(&s->request, (uv_stream_t *)&g->tcp, &part_of, 1, said) ==
          0);
}

static void flush(leaf_guest *g)
{
    char bytes[4096];
    int size;

    while ((size = BIO_read(SSL_get_wbio(g->ssl), bytes, sizeof bytes)) > 0)
        send_bytes(g, bytes, (size_t)size);
}

static void say(leaf_guest *g, const char *bytes, size_t size)
{
    if (g->ssl == NULL) {
        send_bytes(g, bytes, size);
        return;
    }
    if (size > 0)
        CHECK(SSL_write(g->ssl, bytes, (int)size) > 0);
    flush(g);
}

/* -- in -------------------------------------------------------------------- */

static void hear(leaf_guest *g, const char *bytes, size_t size)
{
    leaf *l = g->leaf;
    size_t room;

    if (g->heard_room < g->heard_size + size + 1) {
        g->heard_room = 2 * (g->heard_size + size + 1);
        g->heard = realloc(g->heard, g->heard_room);
        CHECK(g->heard != NULL);
    }
    memcpy(g->heard + g->heard_size, bytes, size);
    g->heard_size += size;
    g->heard[g->heard_size] = '\0';
    room = sizeof l->heard - 1;
    l->heard_size = g->heard_size < room ? g->heard_size : room;
    memcpy(l->heard, g->heard, l->heard_size);
    l->heard[l->heard_size] = '\0';
}

/* True if a whole request was there, which is gone then. */
static bool take_request(leaf_guest *g)
{
    static const char name[] = "Content-Length: ";
    const char *end = g->heard ? strstr(g->heard, "\r\n\r\n") : NULL;
    const char *length = g->heard ? strstr(g->heard, name) : NULL;
    bool has_body = g->heard && strncmp(g->heard, "CONNECT ", 8) != 0;
    size_t size;

    if (end == NULL || (has_body && length == NULL))
        return false;
    size = (size_t)(end - g->heard) + 4;
    if (has_body)
        size += strtoul(length + strlen(name), NULL, 10);
    if (g->heard_size < size)
        return false;
    memmove(g->heard, g->heard + size, g->heard_size - size + 1);
    g->heard_size -= size;
    g->leaf->requests++;
    return true;
}

static void take_tls(leaf_guest *g, const char *bytes, size_t size)
{
    char plain[16384];
    int count;

    CHECK(BIO_write(SSL_get_rbio(g->ssl), bytes, (int)size) == (int)size);
    while ((count = SSL_read(g->ssl, plain, sizeof plain)) > 0)
        hear(g, plain, (size_t)count);
    flush(g);
    // A failed handshake is what some tests are about; its alert is sent.
    count = SSL_get_error(g->ssl, count);
    ERR_clear_error();
    if (count != SSL_ERROR_WANT_READ)
        part(g, false);
}

static void take(uv_stream_t *stream, ssize_t size, const uv_buf_t *buf)
{
    leaf_guest *g = stream->data;

    if (size < 0)
        part(g, false);
    else if (size > 0 && g->ssl != NULL)
        take_tls(g, buf->base, (size_t)size);
    else if (size > 0)
        hear(g, buf->base, (size_t)size);
    free(buf->base);
}

static void lend(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    (void)handle;
    *buf = uv_buf_init(malloc(suggested), (unsigned)suggested);
}

/* -- turns ----------------------------------------------------------------- */

static void hang_up(leaf_guest *g)
{
    if (g->ssl != NULL) {
        (void)SSL_shutdown(g->ssl);
        flush(g);
    }
    part(g, false);
}

static void act(leaf_guest *g)
{
    const leaf_step *step = g->step;

    if (g->is_closing || (g->ssl != NULL && !SSL_is_init_finished(g->ssl)))
        return;
    switch (step->act) {
    case LEAF_END:
        return;
    case LEAF_HEAR:
        if (!take_request(g))
            return;
        break;
    case LEAF_SAY:
        say(g, step->bytes, step->size);
        break;
    case LEAF_LAST:
        say(g, step->bytes, step->size);
        hang_up(g);
        break;
    case LEAF_CLOSE:
        hang_up(g);
        break;
    case LEAF_CUT:
        part(g, false);
        break;
    case LEAF_RESET:
        part(g, true);
        break;
    case LEAF_DEAF:
        (void)uv_read_stop((uv_stream_t *)&g->tcp);
        break;
    }
    g->step++;
}

void leaf_turn(leaf *l)
{
    for (size_t i = 0; i < LEAF_GUESTS_MAX; i++)
        if (l->guests[i] != NULL)
            act(l->guests[i]);
}

static void turn(uv_idle_t *idle)
{
    leaf_turn(idle->data);
}

static void note_from(leaf *l, const uv_tcp_t *tcp)
{
    struct sockaddr_storage from = {.ss_family = AF_UNSPEC};
    int size = sizeof from;

    l->from[0] = '\0';
    (void)uv_tcp_getpeername(tcp, (struct sockaddr *)&from, &size);
    if (from.ss_family == AF_INET)
        (void)uv_ip4_name((const struct sockaddr_in *)&from, l->from,
                          sizeof l->from);
}

static const leaf_step *script_of(const leaf *l)
{
    size_t i =
        l->accepted < l->scripts_count ? l->accepted : l->scripts_count - 1;

    return l->scripts[i];
}

static void welcome(uv_stream_t *listener, int status)
{
    leaf *l = listener->data;
    leaf_guest *g = calloc(1, sizeof *g);
    size_t slot = 0;

    CHECK(status == 0 && g != NULL);
    while (l->guests[slot] != NULL)
        slot++;
    CHECK(slot < LEAF_GUESTS_MAX);
    l->guests[slot] = g;
    g->slot = slot;
    g->leaf = l;
    g->step = script_of(l);
    l->accepted++;
    l->open++;
    CHECK(uv_tcp_init(listener->loop, &g->tcp) == 0);
    g->tcp.data = g;
    CHECK(uv_accept(listener, (uv_stream_t *)&g->tcp) == 0);
    note_from(l, &g->tcp);
    (void)uv_tcp_nodelay(&g->tcp, 1);
    if (l->tls != NULL) {
        g->ssl = SSL_new(l->tls);
        CHECK(g->ssl != NULL);
        SSL_set_bio(g->ssl, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
        SSL_set_accept_state(g->ssl);
    }
    CHECK(uv_read_start((uv_stream_t *)&g->tcp, lend, take) == 0);
}

static bool bind_to(leaf *l, const char *address)
{
    struct sockaddr_storage at = {0};
    int size = sizeof at;

    if (uv_ip4_addr(address, 0, (struct sockaddr_in *)&at) != 0)
        CHECK(uv_ip6_addr(address, 0, (struct sockaddr_in6 *)&at) == 0);
    if (uv_tcp_bind(&l->listener, (struct sockaddr *)&at, 0) != 0 ||
        uv_listen((uv_stream_t *)&l->listener, 128, welcome) != 0)
        return false;
    CHECK(uv_tcp_getsockname(&l->listener, (struct sockaddr *)&at, &size) == 0);
    // The port is at the same place in both.
    l->port = ntohs(((struct sockaddr_in *)&at)->sin_port);
    return true;
}

bool leaf_open(leaf *l, uv_loop_t *loop, const char *address, SSL_CTX *tls,
               const leaf_step *const *scripts, size_t count)
{
    *l = (leaf){.tls = tls, .scripts = scripts, .scripts_count = count};
    CHECK(uv_tcp_init(loop, &l->listener) == 0);
    CHECK(uv_idle_init(loop, &l->turn) == 0);
    l->listener.data = l;
    l->turn.data = l;
    CHECK(uv_idle_start(&l->turn, turn) == 0);
    return bind_to(l, address);
}

void leaf_close(leaf *l)
{
    for (size_t i = 0; i < LEAF_GUESTS_MAX; i++)
        if (l->guests[i] != NULL)
            part(l->guests[i], false);
    uv_close((uv_handle_t *)&l->listener, NULL);
    uv_close((uv_handle_t *)&l->turn, NULL);
}
