/* stagger alert test: whether a test message reaches each receiver, sent by the
 * hub that runs, or from here as a settings file says. */
#include "cli/alert/alert.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/remote.h"
#include "cli/say.h"

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
void stg_alert_print(const char *name, const char *type, bool is_sent,
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

        stg_alert_print(stg_json_text_of(receiver, "name"),
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
    return c.file != NULL ? stg_alert_send(who, c.file, c.receiver)
                          : ask_hub(&c);
}
