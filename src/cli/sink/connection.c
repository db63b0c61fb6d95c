#include "cli/sink/connection.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cli/sink/request.h"

/* How long a client has to close behind its last answer: closed at once by us,
 * with something of it unread, the answer itself could be lost. */
#define LINGER (2 * STG_S)

/* Reads in a row before others have their turn. */
enum { READS_MAX = 16 };

typedef enum phase {
    READING,
    WAITING,   /* with an answer, for its time */
    HANGING,   /* without one, for the client to go */
    LINGERING, /* all is said: input is thrown away */
    RESETTING,
} phase;

struct sink_connection {
    stg_link link;
    stg_node timer;
    int socket;
    phase phase;
    bool is_readable; /* epoll said so, and we have not read it all since */
    bool has_hung_up; /* epoll said so: the end is behind what can be read */
    bool is_ended;    /* and we have read it */
    bool is_closing;  /* with the answer under way */
    const sink_reply *reply; /* the one that waits */
    char *rest;              /* input behind the request that is waited for */
    size_t rest_size;
    char *unsent; /* answers that the socket did not take */
    size_t unsent_size, unsent_at;
    sink_request request;
};

static void close_connection(sink *s, sink_connection *c)
{
    if (c->phase == WAITING || c->unsent != NULL)
        s->unanswered--;
    if (c->phase == READING && c->request.is_under_way)
        s->tally.broken++;
    stg_heap_remove(&s->timers, &c->timer);
    stg_list_remove(&c->link);
    close(c->socket);
    stg_sink_request_close(&c->request);
    free(c->rest);
    free(c->unsent);
    free(c);
}

static void reset_connection(sink *s, sink_connection *c)
{
    struct linger at_once = {.l_onoff = 1, .l_linger = 0};

    setsockopt(c->socket, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    close_connection(s, c);
}

/* -- writing --------------------------------------------------------------- */

static void linger(sink *s, sink_connection *c)
{
    c->phase = LINGERING;
    shutdown(c->socket, SHUT_WR);
    stg_heap_put(&s->timers, &c->timer, stg_ns_add(s->now, LINGER));
}

/* Sends bytes, or as many as the socket takes: returns how many, -1 if the
 * connection is lost. */
static ssize_t send_some(int socket, const char *bytes, size_t size)
{
    ssize_t sent;

    do
        sent = send(socket, bytes, size, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        return 0;
    return sent;
}

static bool keep_unsent(sink *s, sink_connection *c, const char *bytes,
                        size_t size)
{
    assert(c->unsent == NULL); // or it would not have been asked to answer
    c->unsent = malloc(size);
    if (c->unsent == NULL)
        return false;
    memcpy(c->unsent, bytes, size);
    c->unsent_size = size;
    c->unsent_at = 0;
    s->unanswered++;
    return true;
}

/* Writes the answers that were gathered; the log's lines go first. False: the
 * connection is lost. */
static bool flush(sink *s, sink_connection *c)
{
    size_t size = s->output_size;
    ssize_t sent;

    s->output_size = 0;
    stg_sink_log_flush(&s->log);
    if (size == 0)
        return true;
    sent = send_some(c->socket, s->output, size);
    if (sent < 0)
        return false;
    return (size_t)sent == size ||
           keep_unsent(s, c, s->output + sent, size - (size_t)sent);
}

/* Goes on with what the socket did not take before. */
static bool send_rest(sink *s, sink_connection *c)
{
    ssize_t sent = send_some(c->socket, c->unsent + c->unsent_at,
                             c->unsent_size - c->unsent_at);

    if (sent < 0)
        return false;
    c->unsent_at += (size_t)sent;
    if (c->unsent_at < c->unsent_size)
        return true;
    free(c->unsent);
    c->unsent = NULL;
    s->unanswered--;
    return true;
}

static bool put_output(sink *s, sink_connection *c, const char *bytes,
                       size_t size)
{
    memcpy(s->output + s->output_size, bytes, size);
    s->output_size += size;
    return s->output_size <= sizeof s->output - SINK_ANSWER_MAX || flush(s, c);
}

static bool answer(sink *s, sink_connection *c, const sink_reply *reply)
{
    const sink_answer *a =
        stg_sink_replies_answer(&s->replies, reply, c->is_closing);

    c->phase = c->is_closing ? LINGERING : READING;
    return put_output(s, c, a->text, a->size);
}

/* -- a request ------------------------------------------------------------- */

static void log_receipt(sink *s, sink_request *r, uint64_t attempt,
                        const sink_reply *reply)
{
    char name[SINK_ANSWERED_MAX];
    unsigned char digest[32];

    stg_sink_request_digest(r, digest);
    stg_sink_log_add(
        &s->log,
        &(sink_receipt){.method = llhttp_method_name(
                            (llhttp_method_t)llhttp_get_method(&r->parser)),
                        .path = &r->path,
                        .id = &r->id,
                        .key = &r->key,
                        .attempt = attempt,
                        .answered = stg_sink_reply_name(reply, name),
                        .size = r->size,
                        .sha256 = digest});
}

/* Counts the request, and finds what it gets. */
static const sink_reply *receive(sink *s, sink_request *r)
{
    sink_delivery *d = NULL;
    uint64_t attempt;
    const sink_reply *reply;

    if (r->has_id) {
        d = stg_sink_seen_count(&s->seen, stg_sink_request_hash(r));
        attempt = d->attempts;
    } else {
        attempt = ++s->tally.unnamed;
    }
    reply = stg_sink_replies_choose(&s->replies, attempt, &s->rng);
    stg_sink_tally_add(&s->tally, reply);
    s->tally.bytes += r->size;
    if (d != NULL) {
        s->tally.duplicates += d->is_delivered;
        if (reply->status >= 200 && reply->status <= 299)
            d->is_delivered = 1;
    }
    if (stg_sink_log_is_open(&s->log))
        log_receipt(s, r, attempt, reply);
    return reply;
}

static void wait_for_it(sink *s, sink_connection *c, const sink_reply *reply)
{
    const sink_options *o = s->o;
    stg_ns wait =
        o->delay_min + stg_rng_upto(&s->rng, o->delay_max - o->delay_min);

    c->phase = WAITING;
    c->reply = reply;
    s->unanswered++;
    stg_heap_put(&s->timers, &c->timer, stg_ns_add(s->now, wait));
}

static bool carry_out(sink *s, sink_connection *c, const sink_reply *reply)
{
    if (reply->deed == SINK_ANSWER)
        return answer(s, c, reply);
    c->phase = reply->deed == SINK_RESET ? RESETTING : HANGING;
    return true;
}

static bool respond(sink *s, sink_connection *c)
{
    const sink_reply *reply = receive(s, &c->request);

    c->is_closing = s->o->is_closing || c->request.is_last;
    if (s->o->delay_max > 0 && reply->deed != SINK_HANG) {
        wait_for_it(s, c, reply);
        return true;
    }
    return carry_out(s, c, reply);
}

static bool refuse(sink *s, sink_connection *c)
{
    static const char text[] =
        "HTTP/1.1 400 Bad Request\r\n"
        "Content-Length: 0\r\nConnection: close\r\n\r\n";

    s->tally.broken++;
    c->request.is_under_way = false;
    c->phase = LINGERING;
    return put_output(s, c, text, sizeof text - 1);
}

/* The request is read, and the client waits for a word before its body. */
static bool encourage(sink *s, sink_connection *c)
{
    static const char text[] = "HTTP/1.1 100 Continue\r\n\r\n";

    if (!c->request.expects || !c->request.is_under_way || c->request.size > 0)
        return true;
    c->request.expects = false;
    return put_output(s, c, text, sizeof text - 1);
}

/* -- reading --------------------------------------------------------------- */

static bool can_read(const sink *s, const sink_connection *c)
{
    if (c->is_ended || c->unsent != NULL)
        return false;
    return c->phase == LINGERING ||
           (c->phase == READING && !stg_sink_is_done(s));
}

static bool keep_rest(sink_connection *c, const char *bytes, size_t size)
{
    c->rest = malloc(size);
    if (c->rest == NULL)
        return false;
    memcpy(c->rest, bytes, size);
    c->rest_size = size;
    return true;
}

/* Requests, one after the other, as long as they can be answered; what is left
 * is kept. False: the connection is lost. */
static bool take(sink *s, sink_connection *c, const char *bytes, size_t size)
{
    bool is_well = true;
    size_t used;

    while (is_well && size > 0 && can_read(s, c) && c->phase == READING) {
        switch (stg_sink_request_parse(&c->request, bytes, size, &used)) {
        case SINK_PARSED_REQUEST:
            is_well = respond(s, c);
            break;
        case SINK_PARSED_PART:
            is_well = encourage(s, c);
            break;
        default:
            is_well = refuse(s, c);
        }
        bytes += used;
        size -= used;
    }
    if (is_well && size > 0 && c->phase != LINGERING)
        return keep_rest(c, bytes, size);
    return is_well;
}

static bool take_rest(sink *s, sink_connection *c)
{
    char *rest = c->rest;
    bool is_well;

    if (rest == NULL)
        return true;
    c->rest = NULL;
    is_well = take(s, c, rest, c->rest_size);
    free(rest);
    return is_well;
}

/* Asks epoll to say once more what it has said. */
static void come_back(sink *s, sink_connection *c)
{
    struct epoll_event e = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
                            .data.ptr = c};

    epoll_ctl(s->epoll, EPOLL_CTL_MOD, c->socket, &e);
}

/* One read, and what it brings. False: the connection is lost. */
static bool read_once(sink *s, sink_connection *c)
{
    ssize_t size;

    do
        size = read(c->socket, s->input, sizeof s->input);
    while (size < 0 && errno == EINTR);
    if (size < 0) {
        c->is_readable = false;
        return errno == EAGAIN || errno == EWOULDBLOCK;
    }
    // Less than there was room for is all there was, but for the end.
    c->is_readable =
        size > 0 && ((size_t)size == sizeof s->input || c->has_hung_up);
    c->is_ended = size == 0;
    return take(s, c, s->input, (size_t)size);
}

static bool read_on(sink *s, sink_connection *c)
{
    for (int reads = 0; reads < READS_MAX; reads++) {
        if (!c->is_readable || !can_read(s, c))
            return true;
        if (!read_once(s, c))
            return false;
    }
    come_back(s, c);
    return true;
}

/* All that can be done for it now. */
static void go_on(sink *s, sink_connection *c)
{
    bool is_well = take_rest(s, c) && read_on(s, c);

    // What was answered before goes out all the same.
    is_well = flush(s, c) && is_well;
    if (c->phase == RESETTING)
        reset_connection(s, c);
    else if (!is_well ||
             (c->is_ended && c->phase != WAITING && c->unsent == NULL))
        close_connection(s, c);
    else if (c->phase == LINGERING && c->unsent == NULL &&
             !stg_heap_has(&c->timer))
        linger(s, c);
}

/* -- what the server calls ------------------------------------------------- */

void stg_sink_connection_open(sink *s, int socket)
{
    struct epoll_event e = {.events =
                                EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET};
    sink_connection *c = calloc(1, sizeof *c);

    if (c == NULL) {
        close(socket);
        return;
    }
    c->socket = socket;
    e.data.ptr = c;
    stg_list_push(&s->connections, &c->link);
    if (!stg_sink_request_init(&c->request, stg_sink_log_is_open(&s->log)) ||
        epoll_ctl(s->epoll, EPOLL_CTL_ADD, socket, &e) != 0)
        close_connection(s, c);
}

void stg_sink_connection_serve(sink *s, sink_connection *c, uint32_t events)
{
    bool is_over = (events & (EPOLLERR | EPOLLHUP)) != 0;

    if ((events & EPOLLRDHUP) != 0)
        c->has_hung_up = true;
    if ((events & EPOLLIN) != 0) // the end of the input, too
        c->is_readable = true;
    if (c->phase == HANGING && c->has_hung_up)
        is_over = true;
    if (c->unsent != NULL && !is_over)
        is_over = !send_rest(s, c);
    if (is_over)
        close_connection(s, c);
    else if (c->unsent == NULL && c->phase != WAITING && c->phase != HANGING)
        go_on(s, c);
}

void stg_sink_connection_wake(sink *s, stg_node *timer)
{
    sink_connection *c =
        (sink_connection *)((char *)timer - offsetof(sink_connection, timer));

    stg_heap_remove(&s->timers, timer);
    if (c->phase != WAITING) {
        close_connection(s, c);
        return;
    }
    s->unanswered--;
    c->phase = READING;
    if (carry_out(s, c, c->reply))
        go_on(s, c);
    else
        close_connection(s, c);
}

void stg_sink_connection_close_all(sink *s)
{
    stg_link *link;

    while ((link = stg_list_first(&s->connections)) != NULL)
        close_connection(s, STG_HOLDER(link, sink_connection, link));
}
