#include "tests/ingress/producer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/harness.h"

static const uint64_t patience = 20 * STG_S;

/* -- the store --------------------------------------------------------------- */

static char *text_of(stg_span span)
{
    char *text = malloc(span.size + 1);

    CHECK(text != NULL);
    if (span.size > 0)
        memcpy(text, span.at, span.size);
    text[span.size] = '\0';
    return text;
}

static void keep(market *m, const stg_append *a)
{
    stored *s;

    if (m->stored_count == STORED_MAX)
        return;
    s = &m->stored[m->stored_count++];
    s->content_type = text_of(a->parcel.content_type);
    s->headers = text_of(a->parcel.headers);
    s->key = text_of(a->parcel.key);
    s->body = text_of(a->parcel.body);
    s->body_size = a->parcel.body.size;
    s->idempotency_key = text_of(a->idempotency_key);
}

static void answer_append(market *m, const waiting *w)
{
    stg_append_answer *answers = calloc(w->count, sizeof *answers);

    CHECK(answers != NULL);
    for (size_t i = 0; i < w->count; i++) {
        answers[i] = (stg_append_answer){
            .position = m->next++, .is_repeat = m->is_repeat, .id = m->id};
        if (m->answer == STG_APPENDED)
            keep(m, &w->messages[i]);
    }
    w->done(w->done_ctx, m->answer, m->answer == STG_APPENDED ? answers : NULL,
            m->wrong);
    free(answers);
}

static void append(void *ctx, const char *topic, const stg_append *messages,
                   size_t count, stg_append_fn *done, void *done_ctx)
{
    market *m = ctx;
    waiting w = {messages, count, done, done_ctx};

    m->appends++;
    snprintf(m->topic, sizeof m->topic, "%s", topic == NULL ? "-" : topic);
    if (!m->holds) {
        answer_append(m, &w);
        return;
    }
    CHECK(m->waiting_count < WAITING_MAX);
    m->waiting[m->waiting_count++] = w;
}

void market_settle(market *m)
{
    waiting w = m->waiting[0];

    CHECK(m->waiting_count > 0);
    m->waiting_count--;
    memmove(&m->waiting[0], &m->waiting[1],
            m->waiting_count * sizeof m->waiting[0]);
    answer_append(m, &w);
}

static const char *missing(void *ctx)
{
    return ((market *)ctx)->missing;
}

/* -- the ingress ------------------------------------------------------------- */

void market_begin(market *m)
{
    memset(m, 0, sizeof *m);
    CHECK_INT(uv_loop_init(&m->loop), 0);
    m->next = 1;
    m->options = stg_ingress_options_default();
    m->options.listen = "127.0.0.1:0";
    m->options.epoch = 0xc0ffee;
    m->options.append = append;
    m->options.missing = missing;
    m->options.ctx = m;
}

void market_open(market *m)
{
    if (stg_ingress_open(&m->ingress, &m->loop, &m->options, &m->err) != STG_OK)
        harness_fail(__FILE__, __LINE__, "%s", m->err.text);
}

stg_status market_change(market *m)
{
    stg_ingress_next *next;
    stg_status status =
        stg_ingress_prepare(m->ingress, &m->options, &next, &m->err);

    if (status == STG_OK)
        stg_ingress_use(m->ingress, next);
    return status;
}

static void set(void *ctx)
{
    *(bool *)ctx = true;
}

void market_stop(market *m)
{
    stg_ingress_stop(m->ingress, set, &m->is_stopped);
    CHECK(!m->is_stopped);
}

void market_end(market *m)
{
    if (m->ingress != NULL) {
        stg_ingress_close(m->ingress, set, &m->is_closed);
        while (m->waiting_count > 0)
            market_settle(m);
        market_run_until(m, &m->is_closed);
    }
    CHECK_INT(uv_run(&m->loop, UV_RUN_DEFAULT), 0);
    CHECK_INT(uv_loop_close(&m->loop), 0);
    for (size_t i = 0; i < m->stored_count; i++) {
        free(m->stored[i].content_type);
        free(m->stored[i].headers);
        free(m->stored[i].key);
        free(m->stored[i].body);
        free(m->stored[i].idempotency_key);
    }
}

void market_run(market *m)
{
    // Enough turns for a request to go all the way.
    for (int i = 0; i < 20; i++)
        (void)uv_run(&m->loop, UV_RUN_NOWAIT);
}

void market_run_for(market *m, stg_ns time)
{
    uint64_t end_at = uv_hrtime() + time;

    while (uv_hrtime() < end_at)
        (void)uv_run(&m->loop, UV_RUN_NOWAIT);
}

void market_run_until_waiting(market *m, size_t appends)
{
    uint64_t end_at = uv_hrtime() + patience;

    while (m->waiting_count < appends) {
        (void)uv_run(&m->loop, UV_RUN_NOWAIT);
        CHECK(uv_hrtime() < end_at);
    }
}

/* Waits for the loop or a caller, not long. */
static void wait_for(market *m, const caller *c)
{
    struct pollfd p[2] = {{.fd = uv_backend_fd(&m->loop), .events = POLLIN},
                          {.fd = -1}};
    int timeout_ms = uv_backend_timeout(&m->loop);

    if (c != NULL && !c->is_closed)
        p[1] = (struct pollfd){
            .fd = c->fd,
            .events = (short)(POLLIN | (c->sent < c->out_size ? POLLOUT : 0))};
    if (timeout_ms < 0 || timeout_ms > 50)
        timeout_ms = 50;
    (void)poll(p, 2, timeout_ms);
}

void market_run_until(market *m, const bool *what)
{
    uint64_t end_at = uv_hrtime() + patience;

    while (!*what) {
        (void)uv_run(&m->loop, UV_RUN_NOWAIT);
        if (!*what)
            wait_for(m, NULL);
        CHECK(uv_hrtime() < end_at);
    }
}

/* -- callers ----------------------------------------------------------------- */

caller *caller_new(market *m)
{
    caller *c = calloc(1, sizeof *c);
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                             .sin_port = htons(stg_ingress_port(m->ingress))};

    CHECK(c != NULL);
    c->market = m;
    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(c->fd >= 0);
    CHECK(connect(c->fd, (struct sockaddr *)&at, sizeof at) == 0);
    CHECK(fcntl(c->fd, F_SETFL, O_NONBLOCK) == 0);
    if (m->tls != NULL) {
        c->tls = SSL_new(m->tls);
        CHECK(c->tls != NULL && SSL_set_fd(c->tls, c->fd) == 1);
        SSL_set_connect_state(c->tls);
    }
    return c;
}

void caller_free(caller *c)
{
    close(c->fd);
    SSL_free(c->tls);
    free(c->out);
    free(c);
}

void caller_send(caller *c, const char *bytes, size_t size)
{
    c->out = realloc(c->out, c->out_size + size);
    CHECK(c->out != NULL);
    memcpy(c->out + c->out_size, bytes, size);
    c->out_size += size;
}

void caller_say(caller *c, const char *text)
{
    caller_send(c, text, strlen(text));
}

/* What send() and recv() would say of this. */
static ssize_t answer_of(const caller *c, int n)
{
    int error = n > 0 ? 0 : SSL_get_error(c->tls, n);

    errno = error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE
                ? EAGAIN
                : EPIPE;
    return n > 0 ? n : -1;
}

static ssize_t put(caller *c, const char *bytes, size_t size)
{
    return c->tls != NULL ? answer_of(c, SSL_write(c->tls, bytes, (int)size))
                          : send(c->fd, bytes, size, MSG_NOSIGNAL);
}

static ssize_t get(caller *c, char *bytes, size_t size)
{
    return c->tls != NULL ? answer_of(c, SSL_read(c->tls, bytes, (int)size))
                          : recv(c->fd, bytes, size, 0);
}

static void move_bytes(caller *c)
{
    ssize_t n;

    if (c->sent < c->out_size) {
        n = put(c, c->out + c->sent, c->out_size - c->sent);
        if (n > 0)
            c->sent += (size_t)n;
        else if (n < 0 && errno != EAGAIN)
            c->sent = c->out_size; // nobody listens any more
    }
    while (!c->is_closed) {
        CHECK(c->in_size < sizeof c->in - 1);
        n = get(c, c->in + c->in_size, sizeof c->in - 1 - c->in_size);
        if (n < 0 && errno == EAGAIN)
            return;
        if (n <= 0)
            c->is_closed = true;
        else
            c->in_size += (size_t)n;
    }
}

void caller_flush(caller *c)
{
    uint64_t end_at = uv_hrtime() + patience;

    while (move_bytes(c), c->sent < c->out_size) {
        CHECK(uv_hrtime() < end_at);
        (void)uv_run(&c->market->loop, UV_RUN_NOWAIT);
        wait_for(c->market, c);
    }
}

/* The bytes of the first answer in `in`, 0: it is not whole. */
static size_t whole_answer(caller *c)
{
    const char *end, *length;
    size_t size;

    c->in[c->in_size] = '\0';
    end = strstr(c->in, "\r\n\r\n");
    if (end == NULL)
        return 0;
    size = (size_t)(end - c->in) + 4;
    if (status_of(c->in) == 100)
        return size;
    length = header_of(c->in, "Content-Length");
    CHECK(length != NULL);
    size += (size_t)atol(length);
    return size <= c->in_size ? size : 0;
}

static char answer_text[1 << 20];

const char *caller_answer(caller *c)
{
    uint64_t end_at = uv_hrtime() + patience;
    size_t size;

    while (move_bytes(c), (size = whole_answer(c)) == 0) {
        CHECK(!c->is_closed);
        CHECK(uv_hrtime() < end_at);
        (void)uv_run(&c->market->loop, UV_RUN_NOWAIT);
        move_bytes(c);
        if (whole_answer(c) == 0)
            wait_for(c->market, c);
    }
    memcpy(answer_text, c->in, size);
    answer_text[size] = '\0';
    c->in_size -= size;
    memmove(c->in, c->in + size, c->in_size);
    return answer_text;
}

void caller_run_until_closed(caller *c)
{
    uint64_t end_at = uv_hrtime() + patience;

    while (move_bytes(c), !c->is_closed) {
        CHECK(uv_hrtime() < end_at);
        (void)uv_run(&c->market->loop, UV_RUN_NOWAIT);
        wait_for(c->market, c);
    }
}

static bool has_words(caller *c, const char *words)
{
    c->in[c->in_size] = '\0';
    return strstr(c->in, words) != NULL;
}

void caller_run_until(caller *c, const char *words)
{
    uint64_t end_at = uv_hrtime() + patience;

    while (move_bytes(c), !has_words(c, words)) {
        CHECK(!c->is_closed);
        CHECK(uv_hrtime() < end_at);
        (void)uv_run(&c->market->loop, UV_RUN_NOWAIT);
        move_bytes(c);
        if (!has_words(c, words))
            wait_for(c->market, c);
    }
}

/* -- answers ----------------------------------------------------------------- */

int status_of(const char *answer)
{
    return strncmp(answer, "HTTP/1.1 ", 9) == 0 ? atoi(answer + 9) : 0;
}

const char *body_of(const char *answer)
{
    return strstr(answer, "\r\n\r\n") + 4;
}

const char *header_of(const char *answer, const char *name)
{
    static char value[512];
    const char *end = strstr(answer, "\r\n\r\n");

    for (const char *at = strstr(answer, "\r\n"); at != end && at != NULL;
         at = strstr(at, "\r\n")) {
        at += 2;
        if (strncasecmp(at, name, strlen(name)) != 0 || at[strlen(name)] != ':')
            continue;
        at += strlen(name) + 1;
        at += strspn(at, " ");
        snprintf(value, sizeof value, "%.*s", (int)strcspn(at, "\r"), at);
        return value;
    }
    return NULL;
}

const char *ask(market *m, const char *line, const char *headers,
                const char *body)
{
    caller *c = caller_new(m);
    char head[4096];
    const char *answer;

    snprintf(head, sizeof head,
             "%s HTTP/1.1\r\nHost: localhost\r\nContent-Length: "
             "%zu\r\n%s\r\n",
             line, strlen(body), headers);
    caller_say(c, head);
    caller_say(c, body);
    answer = caller_answer(c);
    caller_free(c);
    return answer;
}
