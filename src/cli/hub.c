/* stagger hub: opens the hub with its settings, and ends as it does. The first
 * SIGTERM or SIGINT drains, the second ends the process at once: what is not
 * durable then is found again at the next start. Exit codes tell a service
 * manager whether another start can help. */
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "admin/admin.h"
#include "cli/commands.h"
#include "cli/internal.h"
#include "cli/options.h"
#include "host/process.h"
#include "hub/control.h"
#include "hub/hub.h"

static const char who[] = "stagger hub";

enum { EXIT_UNCLEAN = 3, EXIT_BROKEN = 4 };

typedef struct running {
    stg_hub *hub;
    stg_log *log; /* outlives the loop's run */
    stg_signals signals;
    stg_hub_end end;
    unsigned signal_count;
} running;

/* The second one is not to wait for anything. What is not durable is found
 * again at the next start. */
static void on_signal(void *ctx, int signal)
{
    running *r = ctx;

    if (signal == SIGHUP) {
        if (r->hub != NULL)
            stg_hub_reload_by_signal(r->hub);
        return;
    }
    if (r->signal_count++ > 0 || r->hub == NULL) {
        stg_log_flush(r->log);
        _exit(128 + signal);
    }
    stg_hub_stop(r->hub);
}

/* The signals keep the loop alive: only without them uv_run() returns. */
static void on_end(void *ctx, const stg_hub_end *end)
{
    running *r = ctx;

    r->end = *end;
    stg_signals_close(&r->signals);
}

static int exit_code(const stg_hub_end *end)
{
    if (end->is_broken)
        return EXIT_BROKEN;
    return end->is_clean ? 0 : EXIT_UNCLEAN;
}

/* What only a change of the settings can mend is told apart from what may be
 * well again at the next start: a service manager tries that one. */
static int refuse(stg_status status, const stg_error *err)
{
    stg_options_complain(who, "%s", err->text);
    return status == STG_IO ? EXIT_BROKEN : STG_EXIT_USAGE;
}

/* Warnings of the file are told once, and the hub runs. */
static void tell_warnings(const hub_options *o, stg_log *log)
{
    for (size_t i = 0; i < o->warnings.count; i++) {
        const stg_diagnostic *one = &o->warnings.all[i];

        if (one->place.line == 0)
            STG_LOG(log, STG_LOG_WARN, "config-warning",
                    stg_field_text("detail", one->text));
        else
            STG_LOG(log, STG_LOG_WARN, "config-warning",
                    stg_field_text("file", o->file),
                    stg_field_number("line", one->place.line),
                    stg_field_text("detail", one->text));
    }
}

/* An open hub owns the settings. Where it was not opened they are still ours,
 * and the loop runs once more so that the handles can close. */
static int run(hub_options *o, uv_loop_t *loop, stg_log *log)
{
    running r = {.hub = NULL, .log = log};
    stg_hub_options h = {.settings = o->settings,
                         .log = log,
                         .calls = &stg_admin_calls,
                         .is_service = true,
                         .ended = on_end,
                         .ctx = &r};
    stg_error err;
    stg_status status = stg_signals_open(&r.signals, loop, on_signal, &r, &err);

    if (status != STG_OK)
        return refuse(status, &err);
    stg_signals_take_hang_up(&r.signals);
    status = stg_hub_open(&r.hub, loop, &h, &err);
    if (status != STG_OK) {
        stg_signals_close(&r.signals);
        uv_run(loop, UV_RUN_DEFAULT);
        return refuse(status, &err);
    }
    o->settings = NULL;
    uv_run(loop, UV_RUN_DEFAULT);
    stg_hub_free(r.hub);
    return exit_code(&r.end);
}

/* A socket for each request and each producer: as many as there may be. */
static void raise_file_limit(void)
{
    struct rlimit files;

    if (getrlimit(RLIMIT_NOFILE, &files) != 0)
        return;
    files.rlim_cur = files.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &files);
}

static stg_log *open_log(const stg_log_settings *s)
{
    stg_log_options l = stg_log_options_default();

    l.least = s->least;
    l.is_json = s->is_json;
    return stg_log_new(&l);
}

/* A peer that closes its connection must not end the process, nor a file that may
 * not grow: both are errors of a call (EPIPE, EFBIG) before the first one. */
int stg_cli_hub(int argc, char **argv)
{
    uv_loop_t loop;
    stg_log *log;
    hub_options o;
    int code = stg_hub_options_read(&o, argc, argv);

    if (code == 0 && uv_loop_init(&loop) != 0) {
        stg_options_complain(who, "cannot create an event loop");
        code = STG_EXIT_USAGE;
    } else if (code == 0) {
        signal(SIGPIPE, SIG_IGN);
        signal(SIGXFSZ, SIG_IGN);
        raise_file_limit();
        log = open_log(&o.settings->log);
        tell_warnings(&o, log);
        code = run(&o, &loop, log);
        uv_loop_close(&loop);
        stg_log_free(log);
    }
    stg_hub_options_close(&o);
    return code;
}
