#include "cli/sink/server.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/refuse.h"
#include "cli/sink/connection.h"
#include "ingress/address.h"

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
        return stg_hub_refuse(err, STG_IO, "there is no memory");
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

static bool is_shown(const sink *s)
{
    return !s->o->is_quiet && isatty(STDERR_FILENO) == 1;
}

static void show(uv_timer_t *timer)
{
    sink *s = timer->data;

    stg_sink_tally_show(&s->tally, stg_deadlines_now());
}

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
