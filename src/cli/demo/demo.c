/* stagger demo: a hub, five targets with five kinds of trouble, and what comes
 * of it. */
#include <dirent.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "admin/admin.h"
#include "cli/commands.h"
#include "cli/demo/audit.h"
#include "cli/demo/post.h"
#include "cli/demo/table.h"
#include "cli/options.h"
#include "host/signals.h"

static const char who[] = "stagger demo";

static const char help[] =
    "usage: stagger demo [--keep]\n"
    "\n"
    "Shows the hub at work, in some ten seconds: 2000 messages to five targets,\n"
    "of which one is well, one fails now and then, one asks for patience, one is\n"
    "slow, and one is down. Then it checks that nothing was lost and nothing was\n"
    "sent twice. Everything stays on this machine, on ports that are free.\n"
    "\n"
    "      --keep   leave the hub's store, and say where it is\n"
    "  -h, --help   this text\n"
    "\n"
    "Exit code: 0 if all is as it should be; 1 if not; 2 for an option that is\n"
    "wrong, or where it cannot begin; 130 after SIGINT.\n";

enum {
    MESSAGES = 2000,
    TICK_MS = 100,
    POSTS_A_TICK = 50,
    PATIENCE_TICKS = 250, /* 25 s; it takes less than half of that */
    EXIT_WRONG = 1,
    EXIT_SIGNAL = 128
};

typedef struct demo {
    uv_loop_t loop;
    uv_timer_t timer;
    stg_signals signals;
    demo_sinks sinks;
    demo_post post;
    demo_table table;
    stg_hub *hub; /* NULL: not open yet, or never */
    char directory[256];
    char store[300];
    unsigned ticks;
    int stopped_by; /* a signal; 0: none */
    bool is_ending;
    bool is_posting; /* the producer is open */
    bool is_clean;
    const char *trouble; /* why it cannot go on; NULL: nothing */
    bool is_kept;
} demo;

/* -- the end, last things first -------------------------------------------- */

static void remove_directory(const demo *d)
{
    DIR *folder = d->directory[0] != '\0' ? opendir(d->directory) : NULL;
    struct dirent *entry;

    if (folder == NULL)
        return;
    while ((entry = readdir(folder)) != NULL)
        if (entry->d_name[0] != '.')
            (void)unlinkat(dirfd(folder), entry->d_name, 0);
    closedir(folder);
    (void)rmdir(d->directory);
}

static void on_sinks_ended(void *ctx)
{
    demo *d = ctx;

    stg_signals_close(&d->signals);
}

static void on_hub_ended(void *ctx, const stg_hub_end *end)
{
    demo *d = ctx;

    d->is_clean = end->is_clean;
    stg_demo_sinks_end(&d->sinks);
}

static void on_post_closed(void *ctx)
{
    demo *d = ctx;

    stg_hub_stop(d->hub);
}

/* The producer, the hub, the sinks. */
static void end(demo *d)
{
    if (d->is_ending)
        return;
    d->is_ending = true;
    uv_close((uv_handle_t *)&d->timer, NULL);
    if (d->is_posting)
        stg_demo_post_close(&d->post, on_post_closed, d);
    else if (d->hub != NULL)
        stg_hub_stop(d->hub);
    else
        stg_demo_sinks_end(&d->sinks);
}

static void give_up(demo *d, const char *trouble)
{
    if (d->trouble == NULL)
        d->trouble = trouble;
    end(d);
}

static void on_signal(void *ctx, int signal)
{
    demo *d = ctx;

    if (d->stopped_by != 0) {
        stg_demo_sinks_kill(&d->sinks);
        remove_directory(d);
        _exit(EXIT_SIGNAL + signal);
    }
    d->stopped_by = signal;
    end(d);
}

static void on_sink_failed(void *ctx)
{
    give_up(ctx, "a target ended by itself");
}

/* -- while it runs --------------------------------------------------------- */

static void draw(demo *d)
{
    char title[128];

    snprintf(title, sizeof title,
             "%4.1f s  %u of %d messages accepted, each for %d targets",
             d->ticks * TICK_MS / 1000.0, d->post.accepted, MESSAGES,
             DEMO_SINKS);
    stg_demo_table_draw(&d->table, d->hub, title);
}

static bool is_over(const demo *d)
{
    stg_target_view v;

    for (size_t i = 0; stg_hub_look_target(d->hub, i, &v) == STG_OK; i++)
        if (v.lane.delivered + v.lane.dead < d->post.accepted)
            return false;
    return d->post.accepted + d->post.refused == MESSAGES;
}

static void tick(uv_timer_t *timer)
{
    demo *d = timer->data;

    if (d->ticks++ < MESSAGES / POSTS_A_TICK)
        stg_demo_post_allow(&d->post, POSTS_A_TICK);
    if (d->table.is_live)
        draw(d);
    if (d->post.refused > 0)
        give_up(d, "the hub has refused a message");
    else if (d->ticks > PATIENCE_TICKS)
        give_up(d, "it takes too long");
    else if (is_over(d))
        end(d);
}

static bool set_up(stg_settings *s, const demo *d)
{
    s->defaults.shed_after = 5 * STG_S;
    s->store.path = d->store;
    s->listen.address = "127.0.0.1:0";
    for (int i = 0; i < DEMO_SINKS; i++) {
        stg_target_settings *t = stg_settings_add_target(s);

        if (t == NULL)
            return false;
        t->name = stg_demo_sinks_name(i);
        t->url = d->sinks.sinks[i].url;
    }
    return true;
}

static bool open_hub(demo *d, stg_error *err)
{
    stg_hub_options o = {.settings = stg_settings_new(),
                         .calls = &stg_admin_calls,
                         .ended = on_hub_ended,
                         .ctx = d};

    snprintf(err->text, sizeof err->text, "there is no memory for a hub");
    if (o.settings != NULL && set_up(o.settings, d) &&
        stg_hub_open(&d->hub, &d->loop, &o, err) == STG_OK)
        return true;
    stg_settings_free(o.settings);
    return false;
}

static void on_sinks_ready(void *ctx)
{
    static stg_error err;
    demo *d = ctx;
    stg_hub_view view;
    bool is_open;

    if (d->is_ending) // what they said before they were ended
        return;
    if (!open_hub(d, &err)) {
        d->hub = NULL;
        give_up(d, err.text);
        return;
    }
    stg_hub_look(d->hub, &view);
    is_open = stg_demo_post_open(&d->post, &d->loop, view.address);
    d->is_posting = d->post.client != NULL;
    if (!is_open) {
        give_up(d, "there is no memory for a producer");
        return;
    }
    stg_demo_table_init(&d->table, uv_hrtime());
    (void)uv_timer_start(&d->timer, tick, 0, TICK_MS);
}

/* -- beginning and end ----------------------------------------------------- */

static void introduce(void)
{
    printf("A hub, %d messages, and five targets:\n\n", MESSAGES);
    for (int i = 0; i < DEMO_SINKS; i++)
        printf("  %-11s %s\n", stg_demo_sinks_name(i), stg_demo_sinks_deed(i));
    printf(
        "\nA failure waits for 1 s and is tried again, three times in all; "
        "a refused\nconnection is a dead letter at once. After three of these "
        "in a row the target's\nmessages are held back, and after 5 s given "
        "up in one row.\n\n");
    fflush(stdout);
}

static int fail(const char *what, const char *why)
{
    stg_options_complain(who, "%s: %s", what, why);
    return STG_EXIT_USAGE;
}

static int make_directory(demo *d)
{
    const char *parent = getenv("TMPDIR");

    if (parent == NULL || *parent == '\0' || strlen(parent) > 200)
        parent = "/tmp";
    snprintf(d->directory, sizeof d->directory, "%s/stagger-demo-XXXXXX",
             parent);
    if (mkdtemp(d->directory) == NULL) {
        d->directory[0] = '\0';
        return fail(parent, "cannot make a directory in it");
    }
    snprintf(d->store, sizeof d->store, "%s/hub.db", d->directory);
    return 0;
}

static int sum_up(demo *d)
{
    demo_audit audit = {.store = d->store,
                        .hub = d->hub,
                        .sinks = &d->sinks,
                        .messages = d->post.accepted,
                        .is_clean = d->is_clean};
    bool holds;

    draw(d);
    holds = stg_demo_audit(&audit);
    if (d->is_kept)
        printf("\nThe store is kept: stagger dead list --store %s\n", d->store);
    return stg_options_finish(who, holds ? 0 : EXIT_WRONG);
}

static int judge(demo *d)
{
    if (d->stopped_by != 0) {
        stg_options_complain(who, "stopped by a signal");
        return EXIT_SIGNAL + d->stopped_by;
    }
    if (d->trouble != NULL) {
        stg_options_complain(who, "%s", d->trouble);
        return d->hub == NULL ? STG_EXIT_USAGE : EXIT_WRONG;
    }
    return sum_up(d);
}

static int run(demo *d)
{
    stg_error err;
    int code;

    if (stg_signals_open(&d->signals, &d->loop, on_signal, d, &err) != STG_OK)
        return fail("signals", err.text);
    (void)uv_timer_init(&d->loop, &d->timer);
    d->timer.data = d;
    d->sinks.ready = on_sinks_ready;
    d->sinks.failed = on_sink_failed;
    d->sinks.ended = on_sinks_ended;
    d->sinks.ctx = d;
    introduce();
    if (!stg_demo_sinks_start(&d->sinks, &d->loop))
        give_up(d, "a target cannot be started");
    uv_run(&d->loop, UV_RUN_DEFAULT);
    code = judge(d);
    if (d->hub != NULL)
        stg_hub_free(d->hub);
    return code;
}

static int read_arguments(demo *d, int argc, char **argv)
{
    static const struct option options[] = {
        {"keep", no_argument, NULL, 'k'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    int option;

    optind = 1;
    while ((option = stg_options_next(argc, argv, "h", options)) != -1) {
        if (option == 'h')
            return -1;
        d->is_kept = option == 'k';
        if (option == '?') {
            fputs("See stagger demo --help.\n", stderr);
            return STG_EXIT_USAGE;
        }
    }
    if (optind == argc)
        return 0;
    return fail(argv[optind], "wanted options only");
}

static int run_in_directory(demo *d)
{
    int code = make_directory(d);

    if (code != 0)
        return code;
    signal(SIGPIPE, SIG_IGN);
    if (uv_loop_init(&d->loop) != 0) {
        code = fail("loop", "the system has no room for one");
    } else {
        code = run(d);
        uv_loop_close(&d->loop);
    }
    if (!d->is_kept)
        remove_directory(d);
    return code;
}

int stg_cli_demo(int argc, char **argv)
{
    demo *d = calloc(1, sizeof *d); // large: buffers are inside
    int code;

    if (d == NULL)
        return fail("memory", "there is none left");
    code = read_arguments(d, argc, argv);
    if (code == -1) {
        fputs(help, stdout);
        code = stg_options_finish(who, 0);
    } else if (code == 0) {
        code = run_in_directory(d);
    }
    free(d);
    return code;
}
