/* The server of a sink: connections, each with a parser, an answer that may have
 * to wait, and its buffers; and the socket that takes them. One thread has all
 * of it. */
#include "cli/sink/sink.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/refuse.h"
#include "http/header.h"
#include "http/server.h"
#include "ingress/address.h"
#include "ingress/ask.h"

/* -- a connection ----------------------------------------------------------- */

/* A client, with one request at a time. */
typedef struct caller {
    stg_inbound in;    /* its first field */
    stg_deadline wait; /* for the answer */
    const sink_reply *reply;
    EVP_MD_CTX *digest; /* of the body, where there is a log; or NULL */
    stg_text body;      /* where it is verified */
} caller;

static caller *caller_of(stg_inbound *in)
{
    return (caller *)in; // its first field
}

static sink *sink_of(const caller *c)
{
    return c->in.server->ctx;
}

/* -- a request ------------------------------------------------------------- */

static uint64_t const HASH_BEGIN = 14695981039346656037ULL;
static uint64_t const HASH_PRIME = 1099511628211ULL;

/* Source: Fowler, Noll, Vo, FNV-1a. */
static uint64_t hash_of(stg_span text)
{
    uint64_t hash = HASH_BEGIN;

    for (size_t i = 0; i < text.size; i++)
        hash = (hash ^ (unsigned char)text.at[i]) * HASH_PRIME;
    return hash;
}

/* With its query, which is behind it. */
static stg_span path_of(const stg_request *r)
{
    stg_span path = r->parts[STG_PART_PATH], query = r->parts[STG_PART_QUERY];

    if (query.at != NULL)
        path.size += 1 + query.size;
    return path;
}

/* Which message it is: Stagger-Message, or else Idempotency-Key, in any order
 * of the headers. Lines whose name has another length are skipped before they
 * are parsed: this runs for every request. */
static void read_names(const stg_request *r, stg_span *id, stg_span *key)
{
    enum { ID_NAME = 15, KEY_NAME = 11 };
    stg_span lines = r->parts[STG_PART_LINES], line, name, value;
    bool has_message = false;

    *id = *key = (stg_span){"", 0};
    while ((line = stg_header_next(&lines)).size > 0) {
        bool may_be_id = line.size > ID_NAME && line.at[ID_NAME] == ':';

        if (!may_be_id && (line.size <= KEY_NAME || line.at[KEY_NAME] != ':'))
            continue;
        (void)stg_request_line(&line, &name, &value);
        if (stg_header_equal(name, "stagger-message")) {
            *id = value;
            has_message = true;
        } else if (!has_message && stg_header_equal(name, "idempotency-key")) {
            *id = value;
        } else if (stg_header_equal(name, "stagger-key")) {
            *key = value;
        }
    }
}

/* Of path and id: which delivery it is. */
static uint64_t mix(uint64_t path, uint64_t id)
{
    uint64_t hash = path;

    // One after the other and well mixed: two FNVs that are added up collide
    // as soon as there are some hundred thousand of them.
    hash = (hash ^ hash >> 32) * UINT64_C(0x9e3779b97f4a7c15);
    hash += id;
    hash = (hash ^ hash >> 29) * UINT64_C(0xbf58476d1ce4e5b9);
    return hash ^ hash >> 32;
}

static void log_receipt(sink *s, const caller *c, sink_receipt r,
                        const sink_reply *reply)
{
    char name[SINK_ANSWERED_MAX];
    unsigned char digest[32] = {0};
    unsigned size = sizeof digest;

    if (c->digest != NULL)
        (void)EVP_DigestFinal_ex(c->digest, digest, &size);
    r.method = c->in.request.parts[STG_PART_METHOD];
    r.answered = stg_sink_reply_name(reply, name);
    r.size = c->in.body_size;
    r.sha256 = digest;
    stg_sink_log_add(&s->log, &r);
    stg_sink_log_flush(&s->log);
    if (s->log.error != 0)
        uv_stop(s->http.loop);
}

/* Answers 401 to a request whose signature is wrong. The request is counted,
 * but is not an attempt of its delivery. */
static void refuse_signature(sink *s, caller *c, const char *why)
{
    static const sink_reply reply = {.deed = SINK_ANSWER, .status = 401};
    sink_receipt r = {.path = path_of(&c->in.request)};
    char text[STG_PROBLEM_TEXT_MAX];
    stg_problem p;

    read_names(&c->in.request, &r.id, &r.key);
    stg_sink_tally_add(&s->tally, &reply);
    s->tally.bytes += c->in.body_size;
    if (stg_sink_log_is_open(&s->log))
        log_receipt(s, c, r, &reply);
    (void)stg_problem_set(&p, reply.status, 0, "%s", why);
    stg_inbound_answer(&c->in, reply.status, "application/problem+json", NULL,
                       text, stg_problem_print(&p, text), false);
}

/* Counts the request, and finds what it gets. */
static const sink_reply *receive(sink *s, const caller *c)
{
    sink_receipt r = {.path = path_of(&c->in.request)};
    sink_delivery *d = NULL;
    const sink_reply *reply;

    read_names(&c->in.request, &r.id, &r.key);
    if (r.id.size > 0) {
        d = stg_sink_seen_count(&s->seen, mix(hash_of(r.path), hash_of(r.id)));
        r.attempt = d->attempts;
    } else {
        r.attempt = ++s->tally.unnamed;
    }
    reply = stg_sink_replies_choose(&s->replies, r.attempt, &s->rng);
    stg_sink_tally_add(&s->tally, reply);
    s->tally.bytes += c->in.body_size;
    if (d != NULL) {
        s->tally.duplicates += d->is_delivered;
        if (reply->status >= 200 && reply->status <= 299)
            d->is_delivered = 1;
    }
    if (stg_sink_log_is_open(&s->log))
        log_receipt(s, c, r, reply);
    return reply;
}

/* -- what it gets ---------------------------------------------------------- */

/* A linger time of 0 makes close() send RST and drop what is unsent. */
static void reset(caller *c)
{
    struct linger at_once = {.l_onoff = 1, .l_linger = 0};
    uv_os_fd_t fd;

    if (uv_fileno(&c->in.as.handle, &fd) == 0)
        (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    stg_inbound_close(&c->in);
}

static void carry_out(sink *s, caller *c, const sink_reply *reply)
{
    bool is_last =
        s->o->is_closing || c->in.request.is_last || c->in.request.is_old;
    const sink_answer *a;

    if (reply->deed == SINK_RESET) {
        reset(c);
    } else if (reply->deed == SINK_HANG) {
        stg_inbound_hang(&c->in);
    } else {
        a = stg_sink_replies_answer(&s->replies, reply, is_last);
        stg_inbound_send(&c->in, a->text, a->size, is_last);
    }
}

static void pass_wait(stg_deadline *d)
{
    caller *c = STG_HOLDER((void *)d, caller, wait);

    carry_out(sink_of(c), c, c->reply);
}

/* A hang needs no delay. The delay is uniform in [delay_min, delay_max]. */
static void respond(stg_inbound *in)
{
    caller *c = caller_of(in);
    sink *s = sink_of(c);
    const sink_options *o = s->o;
    stg_error why;

    if (stg_sink_is_done(s)) { // all wanted requests have come: no answer
        stg_inbound_hang(in);
        return;
    }
    if (s->verifier_count > 0 &&
        !stg_sink_verify(s, &in->request, &c->body, &why)) {
        refuse_signature(s, c, why.text);
        return;
    }
    c->reply = receive(s, c);
    if (o->delay_max == 0 || c->reply->deed == SINK_HANG) {
        carry_out(s, c, c->reply);
        return;
    }
    stg_deadline_set(
        &s->http.deadlines, &c->wait,
        stg_ns_add(stg_deadlines_now(),
                   o->delay_min +
                       stg_rng_upto(&s->rng, o->delay_max - o->delay_min)));
}

/* -- what the server calls ------------------------------------------------- */

/* The digest is made for the connection and used again for each of its
 * requests. Without memory for it the request is received all the same, and
 * logged with a digest of zeros. */
static void begin(stg_inbound *in)
{
    caller *c = caller_of(in);

    c->wait.passed = pass_wait;
    stg_text_clear(&c->body);
    if (!stg_sink_log_is_open(&sink_of(c)->log))
        return;
    if (c->digest == NULL)
        c->digest = EVP_MD_CTX_new();
    if (c->digest != NULL &&
        EVP_DigestInit_ex(c->digest, EVP_sha256(), NULL) != 1)
        stg_inbound_close(in);
}

static void take_body(stg_inbound *in, stg_span piece)
{
    caller *c = caller_of(in);

    if (c->digest != NULL)
        (void)EVP_DigestUpdate(c->digest, piece.at, piece.size);
    if (sink_of(c)->verifier_count > 0)
        stg_text_add(&c->body, piece.at, piece.size);
}

/* A request that is no HTTP gets a problem document as the hub would send it,
 * and counts as broken, not as a receipt. */
static void refuse(stg_inbound *in, int status, const char *why)
{
    char text[STG_PROBLEM_TEXT_MAX];
    stg_problem p;

    sink_of(caller_of(in))->tally.broken++;
    (void)stg_problem_set(&p, status, 0, "%s", why);
    stg_inbound_answer(in, status, "application/problem+json", NULL, text,
                       stg_problem_print(&p, text), false);
}

static void end(stg_inbound *in)
{
    caller *c = caller_of(in);

    stg_deadline_clear(&c->in.server->deadlines, &c->wait);
}

/* A client that left with a request half sent is counted; one that left between
 * two requests, or before its answer, is not. */
static void leave(stg_inbound *in)
{
    caller *c = caller_of(in);

    if (in->phase <= STG_INBOUND_BODY && stg_request_has_begun(&in->request))
        sink_of(c)->tally.broken++;
    EVP_MD_CTX_free(c->digest);
    stg_text_free(&c->body);
}

/* --count ends the run here and not in respond(), so that the last answer is
 * written first. */
static void calm(stg_httpd *http)
{
    if (stg_sink_is_done(http->ctx))
        uv_stop(http->loop);
}

const stg_httpd_hooks stg_sink_hooks = {
    .size = sizeof(caller),
    .head = begin,
    .body = take_body,
    .whole = respond,
    .refused = refuse,
    .ended = end,
    .closed = leave,
    .calm = calm,
};

/* -- the server ------------------------------------------------------------- */

/* How often the live line is written. */
enum { SHOW_EVERY_MS = 250 };

/* -- where to listen ------------------------------------------------------- */

/* [ADDRESS:]PORT */
static stg_status read_address(stg_listen_address *a, const char *text)
{
    char whole[128];
    bool is_port =
        text[0] != '\0' && strspn(text, "0123456789") == strlen(text);
    int size = snprintf(whole, sizeof whole, "%s%s",
                        is_port ? "127.0.0.1:" : "", text);

    return (size_t)size < sizeof whole ? stg_address_parse(a, whole, NULL)
                                       : STG_INVALID;
}

static stg_status open_listener(sink *s, int *fd, stg_error *err)
{
    const char *text = s->o->listen;
    stg_error why;

    if (read_address(&s->address, text) != STG_OK)
        return stg_hub_refuse(
            err, STG_INVALID,
            "--listen=%.200s: expected a port, or ADDRESS:PORT with a "
            "numeric address, like 127.0.0.1:9000 or [::1]:9000",
            text);
    errno = 0;
    if (stg_address_listen(&s->address, fd, &why) == STG_OK)
        return STG_OK;
    return stg_hub_refuse(err, STG_IO, "--%.350s", why.text);
}

/* Scripts read this line, so it is there before anything else happens. */
static void tell_address(const sink *s)
{
    char text[STG_ADDRESS_TEXT_MAX];

    printf("stagger sink: listening on %s%s\n",
           stg_address_is_path(&s->address) ? ""
           : s->o->tls_cert != NULL         ? "https://"
                                            : "http://",
           stg_address_print(&s->address, text));
    fflush(stdout);
}

/* -- open ------------------------------------------------------------------ */

/* Each connection is a file; a failure is not told, as the usual limit may be
 * enough. */
static void allow_many_files(void)
{
    struct rlimit files;

    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
}

static void stop(void *ctx, int signal)
{
    sink *s = ctx;

    (void)signal;
    uv_stop(&s->loop);
}

/* The sink sets no limits: neither of connections nor of time. */
static stg_httpd_options http_options(sink *s)
{
    static const stg_tls_names names = {"--tls-cert", "--tls-key", ""};

    s->files.limit = UINT32_MAX;
    return (stg_httpd_options){
        .connections_max = UINT32_MAX,
        .address_connections_max = UINT32_MAX,
        .header_max = SINK_HEADER_MAX,
        .header_timeout = STG_NEVER,
        .idle_timeout = STG_NEVER,
        .request_timeout = STG_NEVER,
        .files = &s->files,
        .tls = {.names = &names,
                .certificate_file = s->o->tls_cert,
                .key_file = s->o->tls_key},
    };
}

static void closed(void *ctx)
{
    (void)ctx;
}

/* But for the signals. */
static void close_rest(sink *s)
{
    uv_close((uv_handle_t *)&s->timer, NULL);
    stg_httpd_close(&s->http, closed, s);
    uv_run(&s->loop, UV_RUN_DEFAULT);
    stg_address_leave(&s->address);
    uv_loop_close(&s->loop);
}

stg_status stg_sink_server_open(sink *s, stg_error *err)
{
    stg_httpd_options o = http_options(s);
    int fd = -1;
    stg_status status = open_listener(s, &fd, err);

    if (status != STG_OK)
        return status;
    if (uv_loop_init(&s->loop) != 0) {
        close(fd);
        return stg_hub_refuse(err, STG_IO, "out of memory");
    }
    (void)uv_timer_init(&s->loop, &s->timer);
    s->timer.data = s;
    allow_many_files();
    status =
        stg_httpd_open(&s->http, &s->loop, fd, &stg_sink_hooks, s, &o, err);
    if (status == STG_OK)
        status = stg_signals_open(&s->signals, &s->loop, stop, s, err);
    if (status == STG_OK)
        tell_address(s);
    else
        close_rest(s);
    return status;
}

/* -- run ------------------------------------------------------------------- */

/* The live line is for a terminal: in a log it would be one line without an
 * end. */
static bool is_shown(const sink *s)
{
    return !s->o->is_quiet && isatty(STDERR_FILENO) == 1;
}

static void show(uv_timer_t *timer)
{
    sink *s = timer->data;

    stg_sink_tally_show(&s->tally, stg_deadlines_now());
}

/* A log that cannot be written ends the run, since a test that reads it would
 * draw wrong conclusions. */
stg_status stg_sink_server_run(sink *s, stg_error *err)
{
    bool shows = is_shown(s);

    s->tally.shown_at = stg_deadlines_now();
    if (shows) {
        show(&s->timer);
        (void)uv_timer_start(&s->timer, show, SHOW_EVERY_MS, SHOW_EVERY_MS);
    }
    uv_run(&s->loop, UV_RUN_DEFAULT);
    if (s->log.error != 0)
        return stg_hub_refuse(err, STG_IO, "%.200s: %s", s->o->log,
                              strerror(s->log.error));
    if (shows)
        show(&s->timer);
    return STG_OK;
}

void stg_sink_server_close(sink *s)
{
    stg_signals_close(&s->signals);
    close_rest(s);
}
