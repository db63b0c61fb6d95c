#include "hub/ops/ingress.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hub/ops/ingress_headers.h"
#include "hub/ops/ingress_inside.h"
#include "hub/refuse.h"

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
        .idle_timeout = 30 * STG_S,
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

/* Messages have no handler here: see ingress_publish.c. */
static const stg_route own[] = {
    {"POST", "/v1/messages", STG_ROLE_PUBLISH, STG_BODY_MESSAGE, NULL, NULL,
     false},
    {"POST", "/v1/messages/batch", STG_ROLE_PUBLISH, STG_BODY_BATCH, NULL, NULL,
     false},
    {"GET", "/healthz", STG_ROLE_ANYBODY, STG_BODY_NONE, NULL, answer_health,
     true},
    {"GET", "/readyz", STG_ROLE_ANYBODY, STG_BODY_NONE, NULL, answer_ready,
     true},
};

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

/* -- the daemon in the loop -------------------------------------------------- */

/* Whether the daemon has something left that its epoll gives no sign of. It
 * never waits for a time: all its timeouts are ours. */
static bool wants_more(const stg_ingress *g)
{
    MHD_UNSIGNED_LONG_LONG wait_ms;

    return MHD_get_timeout(g->daemon, &wait_ms) == MHD_YES;
}

/* libmicrohttpd's log is for its developers. One line is for us: there was no
 * file for a connection, and it accepts none until another has ended. */
__attribute__((format(printf, 2, 0))) static void
hear(void *ctx, const char *format, va_list arguments)
{
    stg_ingress *g = ctx;

    (void)arguments;
    if (strstr(format, "resource limit") != NULL)
        g->is_short = true;
}

static void poll_daemon(uv_poll_t *poll, int status, int events);

/* Without a file for its first connection the daemon would be told of it again
 * and again: it looks anew in a moment. */
static void rest(stg_ingress *g)
{
    g->is_resting = true;
    (void)uv_poll_stop(&g->poll);
    stg_deadline_set(&g->deadlines, &g->turn,
                     stg_ns_add(stg_deadlines_now(), 100 * STG_MS));
}

/* A deadline comes a millisecond late, so we go on here for a while. */
static void turn(stg_ingress *g)
{
    enum { RUNS = 8 };

    if (g->is_resting)
        (void)uv_poll_start(&g->poll, UV_READABLE, poll_daemon);
    g->is_resting = false;
    stg_deadline_clear(&g->deadlines, &g->turn);
    for (int i = 0; i < RUNS; i++) {
        MHD_run(g->daemon);
        if (!wants_more(g))
            break;
    }
    if (wants_more(g))
        stg_deadline_set(&g->deadlines, &g->turn, 0);
    if (g->is_short && !stg_callers_relieve(g) &&
        stg_list_is_empty(&g->callers))
        rest(g);
    if (g->stopped != NULL && g->busy == 0)
        stg_deadline_set(&g->deadlines, &g->stopping, 0);
}

static void pass_turn(stg_deadline *d)
{
    turn(STG_HOLDER((void *)d, stg_ingress, turn));
}

static void poll_daemon(uv_poll_t *poll, int status, int events)
{
    (void)status;
    (void)events;
    turn(poll->data);
}

/* The targets' quarter is theirs alone; the half that is shared is looked at
 * when a connection comes. */
static void cap_connections(stg_ingress *g)
{
    uint32_t wanted = g->options.connections_max;
    uint64_t room = stg_files_room(g->files), most = room - room / 4;

    if (most >= wanted)
        return;
    g->options.connections_max = (uint32_t)most;
    STG_LOG(g->options.log, STG_LOG_WARN, "connections-capped",
            stg_field_number("wanted", wanted),
            stg_field_number("connections", most),
            stg_field_number("open_files", room),
            stg_field_text("next",
                           "three quarters of the files that are left for "
                           "connections may be producers': raise the limit "
                           "(LimitNOFILE=, ulimit -n)"));
}

static struct MHD_Daemon *start_daemon(stg_ingress *g, int fd)
{
    return MHD_start_daemon(
        MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG, 0,
        stg_caller_admit, g, stg_request_handle, g, MHD_OPTION_EXTERNAL_LOGGER,
        hear, g, MHD_OPTION_LISTEN_SOCKET, fd,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)STG_CONNECTION_BYTES,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)g->options.connections_max,
        MHD_OPTION_CONNECTION_TIMEOUT, 0U, MHD_OPTION_URI_LOG_CALLBACK,
        stg_caller_begin, g, MHD_OPTION_NOTIFY_CONNECTION, stg_caller_notice, g,
        MHD_OPTION_NOTIFY_COMPLETED, stg_caller_complete, g, MHD_OPTION_END);
}

static stg_status start_poll(stg_ingress *g, stg_error *err)
{
    int fd = MHD_get_daemon_info(g->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
    int error = uv_poll_init(g->loop, &g->poll, fd);

    if (error != 0)
        return stg_hub_refuse(err, STG_IO, "ingress: %s", uv_strerror(error));
    g->poll.data = g;
    g->handles++;
    (void)uv_poll_start(&g->poll, UV_READABLE, poll_daemon); // cannot fail
    return STG_OK;
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

static stg_status start(stg_ingress *g, stg_error *err)
{
    int fd;
    stg_status status = stg_address_listen(&g->address, &fd, err);

    if (status != STG_OK)
        return status;
    stg_address_print(&g->address, g->address_text);
    cap_connections(g);
    g->view.connections_max = g->options.connections_max;
    g->daemon = start_daemon(g, fd);
    // It may have closed the socket by then, so that we do not.
    if (g->daemon == NULL)
        return stg_hub_refuse(err, STG_IO,
                              "listen=%.60s: the server does not start: %s",
                              g->address_text, strerror(errno));
    status = start_poll(g, err);
    if (status != STG_OK)
        MHD_stop_daemon(g->daemon);
    return status;
}

static bool relieve(void *ingress)
{
    return stg_callers_relieve(ingress);
}

stg_status stg_ingress_open(stg_ingress **ingress, uv_loop_t *loop,
                            const stg_ingress_options *o, stg_error *err)
{
    stg_ingress *g = calloc(1, sizeof *g);
    stg_status status;

    if (g == NULL)
        return stg_hub_refuse(err, STG_IO, "ingress: no memory");
    g->loop = loop;
    g->options = *o;
    g->files = o->files != NULL ? o->files : &g->own_files;
    g->turn.passed = pass_turn;
    g->stopping.passed = pass_stopping;
    stg_ingress_serve(g, own, sizeof own / sizeof *own, g);
    stg_list_init(&g->callers);
    g->origin_seed = stg_hash_seed_draw(stg_env_system());
    for (size_t i = 0; i < STG_ORIGIN_SLOTS; i++)
        stg_list_init(&g->origins[i]);
    status = stg_ingress_read_options(g, err);
    if (status == STG_OK)
        status = start(g, err);
    if (status != STG_OK) {
        free_ingress(g);
        return status;
    }
    g->files->relieve_callers = relieve;
    g->files->callers_ctx = g;
    // What it pointed to was copied, or is not needed any more.
    g->options.listen = g->options.token_file = NULL;
    g->options.headers = NULL;
    stg_deadlines_init(&g->deadlines, loop);
    g->handles++;
    turn(g);
    *ingress = g;
    return STG_OK;
}

/* -- stop and close ---------------------------------------------------------- */

/* Those that wait for a handler wait no longer: it may take its time, or have
 * to do with what is being stopped. */
static void leave_asks(stg_ingress *g)
{
    for (stg_link *at = stg_list_first(&g->callers); at != NULL;
         at = stg_list_next(&g->callers, at)) {
        stg_caller *c = STG_HOLDER(at, stg_caller, link);

        if (c->ask == NULL)
            continue;
        stg_ask_leave(c);
        stg_problem_set(&c->problem, 503, 0,
                        "the hub is stopping; what was asked for may have "
                        "been done, or not");
        stg_answer_resume(c);
    }
}

void stg_ingress_stop(stg_ingress *g, void (*stopped)(void *ctx), void *ctx)
{
    g->view.is_stopping = true;
    g->stopped = stopped;
    g->stopped_ctx = ctx;
    leave_asks(g);
    stg_deadline_set(&g->deadlines, &g->turn, 0);
}

static void close_handle(void *ctx)
{
    stg_ingress *g = ctx;
    void (*closed)(void *ctx) = g->closed;
    void *closed_ctx = g->closed_ctx;

    if (--g->handles > 0)
        return;
    free_ingress(g);
    closed(closed_ctx);
}

static void close_poll(uv_handle_t *handle)
{
    close_handle(handle->data);
}

/* Those that wait get no answer: the connection ends before it could go out. */
static void leave_publications(stg_ingress *g)
{
    for (stg_link *at = stg_list_first(&g->callers); at != NULL;
         at = stg_list_next(&g->callers, at)) {
        stg_caller *c = STG_HOLDER(at, stg_caller, link);

        if (c->publication == NULL)
            continue;
        stg_publication_leave(c->publication);
        stg_problem_set(&c->problem, 503, 0, "the hub has ended");
        stg_caller_cut(c);
        MHD_resume_connection(c->connection);
    }
}

void stg_ingress_close(stg_ingress *g, void (*done)(void *ctx), void *ctx)
{
    g->closed = done;
    g->closed_ctx = ctx;
    g->stopped = NULL;
    g->view.is_stopping = true;
    leave_asks(g);
    leave_publications(g);
    uv_poll_stop(&g->poll);
    MHD_stop_daemon(g->daemon); // with all its connections
    g->files->relieve_callers = NULL;
    uv_close((uv_handle_t *)&g->poll, close_poll);
    stg_deadlines_close(&g->deadlines, close_handle, g);
}
