/* Any bytes for an answer, in any pieces: one reply, that is what the bytes
 * say however they are cut, and no connection used again that is not clean.
 *
 * The first byte of the input is the size of the pieces, the second says how
 * it ends (an even one: the connection is closed) and whether it is the answer
 * to HEAD; the rest is what the server sends. */
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fuzz/fuzz.h"
#include "http/internal.h"

enum { BODY_MAX = 300, EXCERPT_MAX = 40, SIZE_MAX_ = 8192 };

typedef struct bench {
    uv_loop_t loop;
    stg_client *client;
    stg_endpoint *post, *head;
} bench;

typedef struct input {
    const char *bytes;
    size_t size, piece;
    bool is_to_head, is_closed;
} input;

typedef struct told {
    int times;
    stg_reply reply;
    char excerpt[EXCERPT_MAX];
} told;

static stg_endpoint *make_endpoint(stg_client *c, const char *method)
{
    stg_endpoint_options o = stg_endpoint_options_default("http://127.0.0.1:9");
    stg_endpoint *e = NULL;

    o.method = method;
    o.answer_max = BODY_MAX;
    o.excerpt_max = EXCERPT_MAX;
    HOLDS(stg_endpoint_new(&e, c, &o, NULL) == STG_OK);
    return e;
}

static bench *the_bench(void)
{
    static bench b;

    if (b.client != NULL)
        return &b;
    HOLDS(uv_loop_init(&b.loop) == 0);
    HOLDS(stg_client_new(&b.client, &b.loop, NULL) == STG_OK);
    b.post = make_endpoint(b.client, "POST");
    b.head = make_endpoint(b.client, "HEAD");
    return &b;
}

/* -- the bytes alone ------------------------------------------------------- */

static void feed(stg_answer *a, const input *in, size_t piece)
{
    stg_answer_begin(a, BODY_MAX, EXCERPT_MAX, in->is_to_head);
    for (size_t at = 0; at < in->size; at += piece) {
        size_t size = in->size - at < piece ? in->size - at : piece;
        char *copy = malloc(size);

        HOLDS(copy != NULL);
        memcpy(copy, in->bytes + at, size);
        (void)stg_answer_feed(a, copy, size);
        free(copy);
        HOLDS(a->body_size <= BODY_MAX && a->excerpt_size <= EXCERPT_MAX);
        HOLDS(a->head_size <= STG_ANSWER_HEAD_MAX + piece);
    }
}

static void check_same(const stg_answer *a, const stg_answer *b)
{
    HOLDS(a->state == b->state);
    if (a->state == STG_ANSWER_BROKEN)
        return;
    HOLDS(a->status == b->status);
    HOLDS(a->body_size == b->body_size);
    HOLDS(a->state == STG_ANSWER_CUT || a->has_leftover == b->has_leftover);
    HOLDS(a->keeps_alive == b->keeps_alive);
    HOLDS(a->excerpt_size == b->excerpt_size);
    HOLDS(a->excerpt_size == 0 ||
          memcmp(a->excerpt, b->excerpt, a->excerpt_size) == 0);
    HOLDS(stg_answer_delay(a, 784111777) == stg_answer_delay(b, 784111777));
}

/* -- over a socket --------------------------------------------------------- */

/* A connection over a pair of sockets, in the pool. Returns the other end. */
static int pool_connection(bench *b, stg_endpoint *e)
{
    stg_ns now = stg_deadlines_now();
    stg_connection *c = stg_connection_new(e, now);
    stg_socket *s = calloc(1, sizeof *s);
    int ends[2];

    HOLDS(c != NULL && s != NULL);
    HOLDS(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    HOLDS(uv_tcp_init(&b->loop, &s->tcp) == 0);
    HOLDS(uv_tcp_open(&s->tcp, ends[0]) == 0);
    s->tcp.data = c;
    s->is_open = true;
    b->client->files.targets++;
    c->handles++;
    c->socket = s;
    HOLDS(stg_wire_open(c) == 0);
    stg_endpoint_keep(e, c, now);
    return ends[1];
}

static void tell(void *ctx, const stg_reply *reply)
{
    told *t = ctx;

    t->times++;
    t->reply = *reply;
    HOLDS(reply->answer.size <= EXCERPT_MAX);
    HOLDS(reply->detail != NULL && strlen(reply->detail) < STG_DETAIL_MAX);
    memcpy(t->excerpt, reply->answer.at, reply->answer.size);
}

static stg_endpoint_view view_of(const stg_endpoint *e)
{
    stg_endpoint_view view;

    stg_endpoint_look(e, &view);
    return view;
}

static void take_request(int fd)
{
    char request[512];
    ssize_t size = recv(fd, request, sizeof request, 0);

    HOLDS(size > 8 && memcmp(request + size - 4, "body", 4) == 0);
}

/* The other side says it all; it may find that we hang up. */
static void answer(bench *b, int fd, const input *in)
{
    for (size_t at = 0; at < in->size; at += in->piece) {
        size_t size = in->size - at < in->piece ? in->size - at : in->piece;

        if (send(fd, in->bytes + at, size, MSG_NOSIGNAL) < 0) {
            HOLDS(errno == EPIPE || errno == ECONNRESET);
            return;
        }
        (void)uv_run(&b->loop, UV_RUN_NOWAIT);
    }
}

/* As the hub reads a status, RFC 5842's "Loop Detected" among them. */
static stg_fault fault_of(uint16_t status)
{
    stg_fault fault = stg_answered(status).fault;

    if (status == 508)
        return STG_FAULT_LOOP;
    return fault == STG_FAULT_INVALID ? STG_FAULT_PROTOCOL : fault;
}

/* What the model says is what was told. */
static void check_told(const told *t, const stg_answer *model)
{
    stg_fault fault = t->reply.outcome.fault;

    HOLDS(t->times == 1);
    switch (model->state) {
    case STG_ANSWER_WHOLE:
    case STG_ANSWER_CUT:
        HOLDS(t->reply.status == model->status);
        HOLDS(fault == fault_of(model->status));
        HOLDS(t->reply.answer.size == model->excerpt_size);
        HOLDS(model->excerpt_size == 0 ||
              memcmp(t->excerpt, model->excerpt, model->excerpt_size) == 0);
        break;
    case STG_ANSWER_BROKEN:
        HOLDS(fault ==
              (model->size > 0 ? STG_FAULT_PROTOCOL : STG_FAULT_RESET));
        break;
    default:
        HOLDS(fault == STG_FAULT_CANCELLED);
    }
}

static void exchange(const input *in, stg_answer *model)
{
    bench *b = the_bench();
    stg_endpoint *e = in->is_to_head ? b->head : b->post;
    told t = {.times = 0};
    int fd = pool_connection(b, e);
    stg_exchange *x =
        stg_endpoint_send(e, (stg_span){"A: 1\r\n", 6}, (stg_span){"body", 4},
                          STG_HOUR, tell, &t);
    bool is_clean = model->state == STG_ANSWER_WHOLE && model->keeps_alive &&
                    !model->has_leftover;

    HOLDS(x != NULL && t.times == 0);
    take_request(fd);
    answer(b, fd, in);
    // Whatever is left over came with its end, or while it was idle.
    HOLDS(view_of(e).idle == (is_clean ? 1u : 0u));
    HOLDS(view_of(e).busy == (t.times == 0 ? 1u : 0u));
    if (in->is_closed) {
        (void)close(fd);
        (void)stg_answer_end(model, true);
    } else if (t.times == 0) {
        stg_exchange_cancel(x);
    }
    while (t.times == 0)
        (void)uv_run(&b->loop, UV_RUN_ONCE);
    if (!in->is_closed)
        (void)close(fd);
    for (int i = 0; i < 3; i++) // what is idle, and what closes, goes
        (void)uv_run(&b->loop, UV_RUN_NOWAIT);
    HOLDS(view_of(e).idle == 0 && view_of(e).busy == 0);
    // Only the client's timer and its idle handle are still open.
    HOLDS(b->client->open == 2 && b->client->files.targets == 0);
    check_told(&t, model);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    input in;
    stg_answer whole, pieces;

    if (size < 3 || size > SIZE_MAX_)
        return 0;
    in = (input){.bytes = (const char *)data + 2,
                 .size = size - 2,
                 .piece = 1 + (size_t)data[0] * 4,
                 .is_to_head = (data[1] & 2) != 0,
                 .is_closed = (data[1] & 1) == 0};
    if (in.size / in.piece > 64)
        in.piece = in.size / 64 + 1; // a turn of the loop each
    feed(&whole, &in, in.size);
    feed(&pieces, &in, in.piece);
    check_same(&whole, &pieces);
    stg_answer_close(&pieces);
    feed(&pieces, &in, 1);
    check_same(&whole, &pieces);
    stg_answer_close(&pieces);
    exchange(&in, &whole);
    stg_answer_close(&whole);
    return 0;
}
