/* stagger alert test: would anybody hear of it? */
#include "cli/alert/alert.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/remote.h"
#include "cli/say.h"

static const char who[] = "stagger alert";

static const char help[] =
    "usage: stagger alert test [OPTIONS]\n"
    "\n"
    "Sends a test message through each sink of a hub's alerts, one attempt each,\n"
    "and says whether it was accepted: with what its server said, or what was\n"
    "wrong.\n"
    "\n"
    "  -c, --config FILE    send from here, as this settings file says; no hub\n"
    "                       need run\n"
    "      --sink NAME      only through this one\n" STG_REMOTE_HELP
    "  -h, --help           this text\n"
    "\n"
    "Exit code: 0 if all accepted; 1 if one did not, or the hub is not there; 2\n"
    "for bad options or settings.\n"
    "\n"
    "  stagger alert test\n"
    "  stagger alert test -c /etc/stagger/stagger.yaml --sink night-mail\n";

enum { SINK = STG_REMOTE_NEXT };

static const struct option options[] = {
    {"config", required_argument, NULL, 'c'},
    {"sink", required_argument, NULL, SINK},
    STG_REMOTE_LONG_OPTIONS,
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

typedef struct choice {
    const char *file, *sink;
    stg_remote_options remote;
} choice;

static int refuse(const char *what, const char *words)
{
    if (what != NULL)
        stg_options_complain(who, "%s: %s", what, words);
    fprintf(stderr, "See %s --help.\n", who);
    return STG_EXIT_USAGE;
}

static int refuse_word(const char *word)
{
    static const char *const names[] = {"test", NULL};
    char hint[STG_SUGGESTION_MAX], words[128];

    snprintf(words, sizeof words, "wanted test%s",
             stg_options_hint(hint, word, names));
    return refuse(word, words);
}

void stg_alert_print(const char *name, const char *type, bool is_sent,
                     const char *detail)
{
    stg_say(stdout, "%-12s %-8s %s: %s\n", name, type,
            is_sent ? "accepted" : "NOT ACCEPTED", detail);
}

/* -- by the hub ------------------------------------------------------------ */

static bool print_sinks(const json_t *answer)
{
    const json_t *sinks = json_object_get(answer, "sinks"), *sink;
    bool are_all = true;
    size_t i;

    json_array_foreach(sinks, i, sink)
    {
        bool is_told = json_is_true(json_object_get(sink, "is_told"));

        stg_alert_print(stg_json_text_of(sink, "name"),
                        stg_json_text_of(sink, "type"), is_told,
                        stg_json_text_of(sink, "detail"));
        are_all = are_all && is_told;
    }
    return are_all;
}

static int ask(stg_remote *r, const char *sink)
{
    char path[512] = "/v1/alerts/test", name[256];
    json_t *answer = NULL;
    int code;

    if (sink != NULL)
        snprintf(path, sizeof path, "/v1/alerts/test?sink=%s",
                 stg_remote_escape(sink, name, sizeof name));
    if (!stg_remote_call(r, "POST", path, NULL, &answer))
        return stg_remote_complain(r);
    code = print_sinks(answer) ? 0 : 1;
    json_decref(answer);
    return stg_options_finish(who, code);
}

static int ask_hub(const choice *c)
{
    stg_remote *r = stg_remote_open(who, &c->remote);
    int code;

    if (r == NULL)
        return STG_EXIT_USAGE;
    code = ask(r, c->sink);
    stg_remote_close(r);
    return code;
}

/* -- options --------------------------------------------------------------- */

/* 0, or an exit code; -1: the help was asked for. */
static int read_options(choice *c, int argc, char **argv)
{
    int option;

    optind = 1;
    while ((option = stg_options_next(argc, argv, "c:h", options)) != -1) {
        if (option == 'h')
            return -1;
        if (option == 'c')
            c->file = optarg;
        else if (option == SINK)
            c->sink = optarg;
        else if (!stg_remote_take(&c->remote, option, optarg))
            return refuse(NULL, NULL);
    }
    if (optind == argc)
        return refuse("no word", "wanted: test");
    if (strcmp(argv[optind], "test") != 0)
        return refuse_word(argv[optind]);
    if (optind + 1 < argc)
        return refuse(argv[optind + 1], "is a word too many");
    if (c->file != NULL && (c->remote.hub != NULL || c->remote.token_file))
        return refuse("--config",
                      "sends from here, and asks no hub: not "
                      "together with --hub or --token-file");
    return 0;
}

int stg_cli_alert(int argc, char **argv)
{
    choice c = {.file = NULL};
    int code = read_options(&c, argc, argv);

    if (code == -1) {
        fputs(help, stdout);
        return stg_options_finish(who, 0);
    }
    if (code != 0)
        return code;
    return c.file != NULL ? stg_alert_send(who, c.file, c.sink) : ask_hub(&c);
}
