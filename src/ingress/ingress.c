/* The life of the ingress: options, its own routes (health and readiness),
 * open, stop and close.
 *
 * Stopping takes no more messages and waits for the publications that the
 * store has; closing waits for nothing, and callers that wait get no answer.
 * All on the loop's thread. */
#include "ingress/ingress.h"

#include <stdlib.h>
#include <string.h>

#include "base/refuse.h"
#include "http/header.h"
#include "ingress/internal.h"

stg_ingress_options stg_ingress_options_default(void)
{
    return (stg_ingress_options){
        .listen = "127.0.0.1:8080",
        .headers = stg_headers_default,
        .message_max = (size_t)1 << 20,
        .batch_max = (size_t)16 << 20,
        .lines_max = 10000,
        .header_max = 16 * 1024,
        .pending_max = (size_t)64 << 20,
        .waiting_max = 100000,
        .address_waiting_max = 50000,
        .connections_max = 1024,
        .address_connections_max = 512,
        .asks_max = 64,
        .answers_max = (size_t)64 << 20,
        .streams_max = 16,
        .stream_pause = 15 * STG_S,
        .header_timeout = 10 * STG_S,
        .idle_timeout = 30 * STG_S,
        .body_grace = 10 * STG_S,
        .body_rate = 1024,
        .request_timeout = 2 * STG_MIN,
        .retry_after = 5 * STG_S,
    };
}

uint16_t stg_ingress_port(const stg_ingress *g)
{
    return stg_address_port(&g->address);
}

const char *stg_ingress_address(const stg_ingress *g)
{
    return g->address_text;
}

void stg_ingress_look(const stg_ingress *g, stg_ingress_view *view)
{
    *view = g->view;
    view->cut = g->server.cut;
    view->handshakes_failed = g->server.handshakes_failed;
    view->certificate_until = stg_httpd_certificate_until(&g->server);
    view->connections = g->server.count;
}

/* -- its own routes ---------------------------------------------------------- */

static void answer_text(stg_ask *a, const char *text)
{
    stg_ask_answer(a, 200, "text/plain; charset=utf-8", strdup(text),
                   strlen(text));
}

static void answer_health(void *ctx, stg_ask *a)
{
    (void)ctx;
    answer_text(a, "ok\n");
}

/* Unlike health, this is for who sends traffic: not ready is no reason for a
 * restart. */
static void answer_ready(void *ctx, stg_ask *a)
{
    const stg_ingress *g = ctx;
    const char *missing = NULL;

    if (g->options.missing != NULL)
        missing = g->options.missing(g->options.ctx);
    if (g->view.is_stopping)
        missing = "the hub is stopping";
    if (missing == NULL && g->options.unready != NULL)
        missing = g->options.unready(g->options.ctx);
    if (missing == NULL)
        answer_text(a, "ready\n");
    else
        stg_ask_refuse(a, 503, "%s", missing);
}

static const char *const publish_options[] = {"topic", NULL};

/* Messages have no handler here: see publish.c. */
static const stg_route own[] = {
    {"POST", "/v1/messages", STG_ROLE_PUBLISH, STG_BODY_MESSAGE,
     publish_options, NULL, false},
    {"POST", "/v1/messages/batch", STG_ROLE_PUBLISH, STG_BODY_BATCH,
     publish_options, NULL, false},
    {"POST", "/v1/in/{webhook}", STG_ROLE_ANYBODY, STG_BODY_WEBHOOK, NULL, NULL,
     false},
    {"GET", "/healthz", STG_ROLE_ANYBODY, STG_BODY_NONE, NULL, answer_health,
     true},
    {"GET", "/readyz", STG_ROLE_ANYBODY, STG_BODY_NONE, NULL, answer_ready,
     true},
};

/* A table too many is ignored: their number is a matter of the code, and not
 * of the settings. */
void stg_ingress_serve(stg_ingress *g, const stg_route *routes, size_t count,
                       void *ctx)
{
    if (g->table_count < STG_TABLES_MAX)
        g->tables[g->table_count++] = (stg_routes){routes, count, ctx};
}

void stg_ingress_watch(stg_ingress *g, stg_refused_fn *refused, void *ctx)
{
    g->refused = refused;
    g->refused_ctx = ctx;
}

/* -- open -------------------------------------------------------------------- */

static void free_ingress(stg_ingress *g)
{
    stg_ingress_free_headers(g->headers);
    stg_tokens_free(g->tokens);
    free(g);
}

static void pass_stopping(stg_deadline *d)
{
    stg_ingress *g = STG_HOLDER((void *)d, stg_ingress, stopping);
    void (*stopped)(void *ctx) = g->stopped;

    g->stopped = NULL;
    stopped(g->stopped_ctx);
}

/* A head or the grace of a body never takes longer than a connection may be
 * idle. */
static stg_httpd_options server_options(const stg_ingress_options *o)
{
    return (stg_httpd_options){
        .connections_max = o->connections_max,
        .address_connections_max = o->address_connections_max,
        .header_max = o->header_max,
        .header_timeout = stg_ns_min(o->header_timeout, o->idle_timeout),
        .idle_timeout = o->idle_timeout,
        .request_timeout = o->request_timeout,
        .body_grace = stg_ns_min(o->body_grace, o->idle_timeout),
        .body_rate = o->body_rate,
        .files = o->files,
        .log = o->log,
        .tls = o->tls,
    };
}

/* The callback is kept aside, for g is freed before it is called. */
static void close_server(void *ctx)
{
    stg_ingress *g = ctx;
    void (*closed)(void *ctx) = g->closed;
    void *closed_ctx = g->closed_ctx;

    stg_address_leave(&g->address);
    free_ingress(g);
    if (closed != NULL)
        closed(closed_ctx);
}

/* Without STG_OK the ingress goes by itself. */
static stg_status start(stg_ingress *g, stg_error *err)
{
    stg_httpd_options o;
    stg_error why;
    int fd;
    stg_status status = stg_address_listen(&g->address, &fd, err);

    if (status != STG_OK) {
        free_ingress(g);
        return status;
    }
    stg_address_print(&g->address, g->address_text);
    stg_ingress_limit(g, g->options.connections_max,
                      g->options.address_connections_max);
    o = server_options(&g->options);
    status =
        stg_httpd_open(&g->server, g->loop, fd, &stg_caller_hooks, g, &o, &why);
    if (status == STG_OK)
        return STG_OK;
    (void)stg_hub_refuse(err, status, "listen=%.120s: %.300s", g->address_text,
                         why.text);
    stg_httpd_close(&g->server, close_server, g);
    return status;
}

/* Texts and lists of the options are lent for the call, so that no pointer to
 * settings stays which a reload frees. */
static void ingress_forget_lent(stg_ingress *g)
{
    g->options.listen = g->options.token_file = NULL;
    g->options.tls = (stg_tls_options){.names = NULL};
    g->options.headers = NULL;
    g->options.webhooks = NULL;
    g->server.options.tls = g->options.tls;
}

/* The hub's own routes are served first; others are added by stg_ingress_serve(). */
stg_status stg_ingress_open(stg_ingress **ingress, uv_loop_t *loop,
                            const stg_ingress_options *o, stg_error *err)
{
    stg_ingress *g = calloc(1, sizeof *g);
    stg_status status;

    if (g == NULL)
        return stg_hub_refuse(err, STG_IO, "ingress: no memory");
    g->loop = loop;
    g->options = *o;
    g->stopping.passed = pass_stopping;
    stg_ingress_serve(g, own, sizeof own / sizeof *own, g);
    stg_list_init(&g->publications);
    status = stg_ingress_read_options(g, err);
    if (status != STG_OK) {
        free_ingress(g);
        return status;
    }
    status = start(g, err);
    if (status != STG_OK)
        return status;
    ingress_forget_lent(g);
    *ingress = g;
    return STG_OK;
}

/* -- stop and close ---------------------------------------------------------- */

static stg_caller *next_caller(const stg_ingress *g, const stg_link *at)
{
    const stg_list *all = &g->server.connections;

    // `in` is a caller's first field.
    return (stg_caller *)STG_HOLDER(at == NULL ? stg_list_first(all)
                                               : stg_list_next(all, at),
                                    stg_inbound, link);
}

/* Those that wait for a handler wait no longer: it may take its time, or have
 * to do with what is being stopped. */
static void leave_asks(stg_ingress *g)
{
    stg_caller *c, *next;

    for (c = next_caller(g, NULL); c != NULL; c = next) {
        next = next_caller(g, &c->in.link);
        if (c->ask == NULL)
            continue;
        stg_ask_leave(c);
        stg_problem_set(&c->problem, 503, 0,
                        "the hub is stopping; what was asked for may have "
                        "been done, or not");
        stg_answer_caller(c);
    }
}

void stg_ingress_end_streams(stg_ingress *g)
{
    stg_caller *c, *next;

    for (c = next_caller(g, NULL); g->streams > 0 && c != NULL; c = next) {
        next = next_caller(g, &c->in.link);
        if (c->in.phase == STG_INBOUND_STREAM)
            stg_stream_end(c);
    }
}

/* `stopped` is called in a turn of its own: this is called from within
 * answers. */
void stg_ingress_settle(stg_ingress *g)
{
    if (g->stopped != NULL && g->server.busy == 0 &&
        stg_list_is_empty(&g->publications))
        stg_deadline_set(&g->server.deadlines, &g->stopping, 0);
}

/* Handlers are not waited for, streams end, publications are waited for: each
 * of their producers learns whether its message is stored. */
void stg_ingress_stop(stg_ingress *g, void (*stopped)(void *ctx), void *ctx)
{
    g->view.is_stopping = true;
    g->stopped = stopped;
    g->stopped_ctx = ctx;
    stg_httpd_stop(&g->server);
    leave_asks(g);
    stg_ingress_end_streams(g);
    stg_ingress_settle(g);
}

/* Those that wait get no answer: the connection ends before it could go out. */
static void leave_publications(stg_ingress *g)
{
    stg_link *first;

    while ((first = stg_list_first(&g->publications)) != NULL)
        stg_publication_leave(STG_HOLDER(first, stg_publication, link));
}

void stg_ingress_close(stg_ingress *g, void (*done)(void *ctx), void *ctx)
{
    g->closed = done;
    g->closed_ctx = ctx;
    g->stopped = NULL;
    g->view.is_stopping = true;
    stg_httpd_stop(&g->server);
    leave_asks(g);
    stg_ingress_end_streams(g);
    leave_publications(g);
    stg_httpd_close(&g->server, close_server, g);
}
