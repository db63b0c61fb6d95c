/* stagger alert test: whether a test message reaches each receiver, sent by the
 * hub that runs, or from here as a settings file says. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alerts/alerts.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/remote.h"
#include "cli/say.h"
#include "config/load.h"

static const char who[] = "stagger alert";

enum { RECEIVER = STG_REMOTE_NEXT };

static const stg_subcommand subcommands[] = {
    {"test", "send a test message through each receiver of the alerts", 0},
    {NULL, NULL, 0},
};

static const stg_option options[] = {
    {"-c, --config FILE",
     "send from here, as this settings file says; no hub needs to run", 0,
     NULL},
    {"--receiver NAME", "only through this receiver", RECEIVER, NULL},
    STG_REMOTE_OPTIONS(NULL),
    {.flag = NULL},
};

static const stg_usage usage = {
    .head =
        "usage: stagger alert test [OPTIONS]\n"
        "\n"
        "Sends a test message through each receiver of a hub's alerts, one attempt\n"
        "each, and prints whether the receiver accepted it: with the answer of its\n"
        "server, or what went wrong.\n"
        "\n",
    .subcommands = subcommands,
    .options = options,
    .tail =
        "\n"
        "Exit code: 0 if all receivers accepted it; 1 if one did not, or the hub does\n"
        "not answer; 2 for bad options or settings.\n"
        "\n"
        "  stagger alert test\n"
        "  stagger alert test -c /etc/stagger/stagger.yaml --receiver mail\n",
};

typedef struct choice {
    const char *file, *receiver;
    stg_remote_options remote;
} choice;

/* Both ways print the same line, so that scripts need not know which was
 * used. */
static void print_result(const char *name, const char *type, bool is_sent,
                         const char *detail)
{
    stg_say(stdout, "%-12s %-8s %s: %s\n", name, type,
            is_sent ? "accepted" : "NOT ACCEPTED", detail);
}

/* -- by the hub ------------------------------------------------------------ */

/* Returns whether all accepted it; of an empty list, all did. */
static bool print_receivers(const json_t *answer)
{
    const json_t *receivers = json_object_get(answer, "receivers"), *receiver;
    bool are_all = true;
    size_t i;

    json_array_foreach(receivers, i, receiver)
    {
        bool is_told = json_is_true(json_object_get(receiver, "is_told"));

        print_result(stg_json_text_of(receiver, "name"),
                     stg_json_text_of(receiver, "type"), is_told,
                     stg_json_text_of(receiver, "detail"));
        are_all = are_all && is_told;
    }
    return are_all;
}

static int ask(stg_remote *r, const char *receiver)
{
    char path[512] = "/v1/alerts/test", name[256];
    json_t *answer = NULL;
    int code;

    if (receiver != NULL)
        snprintf(path, sizeof path, "/v1/alerts/test?receiver=%s",
                 stg_remote_escape(receiver, name, sizeof name));
    if (!stg_remote_call(r, "POST", path, NULL, &answer))
        return stg_remote_complain(r);
    code = print_receivers(answer) ? 0 : 1;
    json_decref(answer);
    return stg_options_finish(who, code);
}

static int ask_hub(const choice *c)
{
    stg_remote *r = stg_remote_open(who, &c->remote);
    int code;

    if (r == NULL)
        return STG_EXIT_USAGE;
    code = ask(r, c->receiver);
    stg_remote_close(r);
    return code;
}

/* -- from here ------------------------------------------------------------- */

/* The trial is that of the hub (alerts/alerts.h), on a loop, a client and a mailer of
 * our own, and under the file's `egress`. So what a receiver answers here is what it
 * would answer to a hub on this machine. */

/* What a receiver stands on. */
typedef struct ground {
    uv_loop_t loop;
    stg_deadlines deadlines;
    stg_alert_world world;
    bool has_ended, are_all;
} ground;

static int complain_memory(void)
{
    stg_options_complain(who, "there is no memory");
    return 1;
}

/* Called once, from the loop, when each receiver has answered or failed. */
static void print(void *ctx, const stg_alert_result *results, size_t count)
{
    ground *g = ctx;

    g->are_all = count > 0;
    for (size_t i = 0; i < count; i++) {
        const stg_alert_result *r = &results[i];

        print_result(r->name, stg_receiver_type_name(r->type), r->is_sent,
                     r->detail != NULL ? r->detail : "");
        g->are_all = g->are_all && r->is_sent;
    }
    g->has_ended = true;
}

/* As the hub does: what it may not connect to is not connected to. */
static stg_status open_ground(ground *g, const stg_settings *s)
{
    const stg_egress *egress = &s->egress;

    *g = (ground){.has_ended = false};
    if (uv_loop_init(&g->loop) != 0)
        return STG_IO;
    stg_deadlines_init(&g->deadlines, &g->loop);
    g->world = (stg_alert_world){.loop = &g->loop,
                                 .deadlines = &g->deadlines,
                                 .rng = stg_rng_seed(uv_hrtime())};
    g->world.mailer = stg_mailer_new(&g->loop, egress);
    if (g->world.mailer == NULL)
        return STG_IO;
    if (stg_client_new(&g->world.client, &g->loop, NULL) != STG_OK)
        return STG_IO;
    return stg_client_set_egress(g->world.client, egress, NULL);
}

static void nothing(void *ctx)
{
    (void)ctx;
}

/* Also after an open_ground() that failed half way: what was not made is
 * NULL. */
static void close_ground(ground *g)
{
    if (g->world.client != NULL)
        stg_client_close(g->world.client, NULL, NULL);
    stg_deadlines_close(&g->deadlines, nothing, NULL);
    (void)uv_run(&g->loop, UV_RUN_DEFAULT);
    stg_mailer_free(g->world.mailer);
    (void)uv_loop_close(&g->loop);
}

static void refuse_receiver(const stg_alert_options *o, const char *receiver)
{
    const char **names = calloc(o->receiver_count + 1, sizeof(char *));
    char suggestion[STG_SUGGESTION_MAX] = "";

    for (size_t i = 0, k = 0; names != NULL && i < o->receiver_count; i++)
        if (o->receivers[i].name != NULL)
            names[k++] = o->receivers[i].name;
    if (names != NULL)
        stg_options_suggest(suggestion, receiver, names);
    free(names);
    stg_options_complain(who, "%s: the settings have no such receiver%s",
                         receiver, suggestion);
}

/* Not found means two things: the receiver that was named, or any at all. */
static int run(ground *g, const stg_alert_options *o, const char *receiver)
{
    stg_alert_trial_options t = {
        .alerts = o, .receiver = receiver, .world = &g->world};
    stg_alert_trial *trial;
    stg_status status = stg_alert_trial_start(&trial, &t, print, g);

    if (status == STG_NOT_FOUND && receiver != NULL)
        refuse_receiver(o, receiver);
    else if (status == STG_NOT_FOUND)
        stg_options_complain(who,
                             "the settings have no receiver: alerts.receivers");
    if (status == STG_NOT_FOUND)
        return STG_EXIT_USAGE;
    if (status != STG_OK)
        return complain_memory();
    while (!g->has_ended)
        (void)uv_run(&g->loop, UV_RUN_ONCE);
    return stg_options_finish(who, g->are_all ? 0 : 1);
}

/* The ground is closed even if it was not opened as a whole. */
static int send_all(const stg_settings *s, const char *receiver)
{
    ground g;
    int code;

    if (open_ground(&g, s) == STG_OK)
        code = run(&g, &s->alerts, receiver);
    else
        code = complain_memory();
    close_ground(&g);
    return code;
}

/* The settings live until the trial has ended: the options are part of them. */
static int send_from_here(const char *file, const char *receiver)
{
    stg_diagnostics c = {.all = NULL};
    stg_settings *s = NULL;
    stg_status status = stg_settings_load(file, &s, &c);
    int code = STG_EXIT_USAGE;

    if (status == STG_OK)
        code = send_all(s, receiver);
    else
        stg_diagnostics_print(&c, file, stderr);
    stg_diagnostics_free(&c);
    stg_settings_free(s);
    return code;
}

/* -- options --------------------------------------------------------------- */

static int read_option(void *ctx, int option)
{
    choice *c = ctx;

    if (option == 'c')
        c->file = optarg;
    else if (option == RECEIVER)
        c->receiver = optarg;
    else if (!stg_remote_take(&c->remote, option, optarg))
        return STG_EXIT_USAGE;
    return 0;
}

/* The two ways test different things: by the hub, its network and its settings
 * as they are loaded; from here, the file as it is now. */
int stg_cli_alert(int argc, char **argv)
{
    choice c = {.file = NULL};
    stg_arguments none;
    int code = stg_options_read(&usage, argc, argv, read_option, &c, &none);

    if (code != 0)
        return code;
    if (c.file != NULL && (c.remote.hub != NULL || c.remote.token_file))
        return stg_options_refuse(who,
                                  "--config: sends from here, and asks no hub: "
                                  "not together with --hub or --token-file");
    return c.file != NULL ? send_from_here(c.file, c.receiver) : ask_hub(&c);
}
