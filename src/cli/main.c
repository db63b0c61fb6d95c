/* stagger: reads the command, and leaves the rest to it. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <stagger/stagger.h>

#include "base/suggest.h"
#include "cli/commands.h"
#include "cli/options.h"

typedef int command_fn(int argc, char **argv);

static const struct {
    const char *name;
    char title[16]; /* argv[0] of the command, and getopt's word for it */
    command_fn *run;
} commands[] = {
    {"plan", "stagger plan", stg_cli_plan},
    {"run", "stagger run", stg_cli_run},
    {"sim", "stagger sim", stg_cli_sim},
#ifdef STAGGER_HUB
    {"alert", "stagger alert", stg_cli_alert},
    {"check", "stagger check", stg_cli_check},
    {"dead", "stagger dead", stg_cli_dead},
    {"demo", "stagger demo", stg_cli_demo},
    {"hub", "stagger hub", stg_cli_hub},
    {"pause", "stagger pause", stg_cli_pause},
    {"reload", "stagger reload", stg_cli_reload},
    {"resume", "stagger resume", stg_cli_resume},
    {"send", "stagger send", stg_cli_send},
    {"sink", "stagger sink", stg_cli_sink},
    {"status", "stagger status", stg_cli_status},
    {"store", "stagger store", stg_cli_store},
    {"targets", "stagger targets", stg_cli_targets},
    {"token", "stagger token", stg_cli_token},
#endif
};

enum { COMMANDS = sizeof commands / sizeof *commands };

static const char help[] =
    "usage: stagger COMMAND [OPTIONS] [ARGUMENT]...\n"
    "       stagger --help | --version | help [COMMAND]\n"
    "\n"
    "Retries that do not trample: a retry policy library, an HTTP fan-out hub and a\n"
    "simulator, with one policy for all three.\n"
    "\n"
    "  plan     show what a retry policy does: waits, limits, totals\n"
    "  run      run a command, again by a policy until it succeeds\n"
    "  sim      simulate what a policy does to a system, in virtual time\n"
#ifdef STAGGER_HUB
    "  alert    send a test message to the receivers of a hub's alerts\n"
    "  check    find mistakes, and what is unwise, in a hub's settings\n"
    "  dead     list, show, replay and drop dead letters\n"
    "  demo     run a hub with targets in five kinds of trouble\n"
    "  hub      deliver every message to every target\n"
    "  send     publish a file, or each of its lines, to a hub\n"
    "  pause    stop sending to a target; its messages wait\n"
    "  reload   make a hub read its settings again\n"
    "  resume   send to a paused target again\n"
    "  sink     run a target to try things on, which answers as it is told\n"
    "  status   state of each target: rate, backlog, errors\n"
    "  store    back up, restore and verify a hub's store\n"
    "  targets  list the targets of a hub, or forget one\n"
    "  token    make the tokens by which a hub knows its callers\n"
#endif
    "\n"
    "  stagger plan backend\n"
    "  stagger plan --plot 'exponential base=1s cap=40s attempts=9' webhook\n"
    "  stagger run --policy 'attempts=5 base=1s' -- curl -fsS example.org\n"
    "\n"
    "stagger COMMAND --help says more.\n";

/* Commands of the hub, in a build that was made without it. */
static bool is_left_out(const char *name)
{
#ifdef STAGGER_HUB
    (void)name;
#else
    static const char *const left_out[] = {
        "alert",  "check", "dead", "demo",   "hub",   "pause",   "reload",
        "resume", "send",  "sink", "status", "store", "targets", "token"};

    for (size_t i = 0; i < sizeof left_out / sizeof *left_out; i++)
        if (strcmp(name, left_out[i]) == 0)
            return true;
#endif
    return false;
}

/* The command that the name stands for elsewhere; NULL: none is known. */
static const char *find_elsewhere(const char *name)
{
    static const char *const elsewhere[][2] = {
        {"backup", "store backup"}, {"drop", "dead drop"},
        {"export", "dead export"},  {"forget", "targets forget"},
        {"list", "dead list"},      {"publish", "send"},
        {"replay", "dead replay"},  {"restore", "store restore"},
        {"retry", "run"},           {"show", "dead show"},
        {"simulate", "sim"},        {"start", "hub"},
        {"validate", "check"},      {"verify", "store verify"},
    };

    for (size_t i = 0; i < sizeof elsewhere / sizeof *elsewhere; i++)
        if (strcmp(name, elsewhere[i][0]) == 0)
            return elsewhere[i][1];
    return NULL;
}

static void list_all(void)
{
    fputs("The commands are", stderr);
    for (size_t i = 0; i < COMMANDS; i++)
        fprintf(stderr, " %s%s", commands[i].name,
                i + 1 < COMMANDS ? "," : ".\n");
}

static int refuse_command(const char *name)
{
    const char *names[COMMANDS + 2] = {"help"};
    const char *near = find_elsewhere(name);

    for (size_t i = 0; i < COMMANDS; i++)
        names[i + 1] = commands[i].name;
    if (near == NULL)
        near = stg_suggest(name, names);
    if (is_left_out(name))
        stg_options_complain("stagger",
                             "%s needs the hub, which this build was made "
                             "without",
                             name);
    else if (near != NULL)
        stg_options_complain("stagger",
                             "there is no command %s, did you mean stagger "
                             "%s?",
                             name, near);
    else
        stg_options_complain("stagger", "there is no command %s", name);
    if (near == NULL)
        list_all();
    fputs("See stagger --help.\n", stderr);
    return STG_EXIT_USAGE;
}

/* argv[0] becomes the command's title, which is what messages start with. */
static int run_command(const char *name, int argc, char **argv)
{
    for (size_t i = 0; i < COMMANDS; i++)
        if (strcmp(name, commands[i].name) == 0) {
            char title[sizeof commands[i].title];

            memcpy(title, commands[i].title, sizeof title);
            argv[0] = title;
            return commands[i].run(argc, argv);
        }
    return refuse_command(name);
}

static int show(const char *text)
{
    fputs(text, stdout);
    return stg_options_finish("stagger", 0);
}

/* help, --help COMMAND and COMMAND --help are all the same. */
static int run_help(int argc, char **argv)
{
    char option[] = "--help", *arguments[] = {NULL, option, NULL};

    if (argc < 2)
        return show(help);
    if (strcmp(argv[1], "help") == 0)
        return show(help);
    return run_command(argv[1], 2, arguments);
}

static bool is_one_of(const char *word, const char *name, const char *letter)
{
    return strcmp(word, name) == 0 || strcmp(word, letter) == 0;
}

int main(int argc, char **argv)
{
    static const char *const names[] = {"--help", "--version", NULL};
    const char *word = argc > 1 ? argv[1] : NULL;
    char hint[STG_SUGGESTION_MAX];

    if (word == NULL) {
        fputs(help, stderr);
        return STG_EXIT_USAGE;
    }
    if (is_one_of(word, "--help", "-h") || strcmp(word, "help") == 0)
        return run_help(argc - 1, argv + 1);
    if (is_one_of(word, "--version", "-V"))
        return show("stagger " STG_VERSION "\n");
    if (word[0] == '-') {
        stg_options_complain("stagger",
                             "%s: no such option before the command%s", word,
                             stg_options_hint(hint, word, names));
        fputs("See stagger --help.\n", stderr);
        return STG_EXIT_USAGE;
    }
    return run_command(word, argc - 1, argv + 1);
}
