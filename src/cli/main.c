/* stagger: reads the command, and leaves the rest to it.
 *
 * One table has every command, also those that a build without the hub lacks:
 * asked for, it says so instead of "there is no such command". The help, the
 * completions and the manuals' test are made of the table. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <stagger/stagger.h>

#include "base/suggest.h"
#include "cli/commands.h"
#include "cli/options.h"

typedef int command_fn(int argc, char **argv);

#ifdef STAGGER_HUB
#define HUB(run) run
#else
#define HUB(run) NULL
#endif

static const struct {
    const char *name;
    command_fn *run; /* NULL: this build is without the hub */
    const char *says;
} commands[] = {
    {"plan", stg_cli_plan,
     "show what a retry policy does: waits, limits, totals"},
    {"run", stg_cli_run, "run a command, and retry it until it succeeds"},
    {"sim", stg_cli_sim,
     "simulate what a policy does to a system, in virtual time"},
    {"alert", HUB(stg_cli_alert),
     "send a test message to the receivers of a hub's alerts"},
    {"check", HUB(stg_cli_check),
     "find mistakes and risks in a hub's settings"},
    {"dead", HUB(stg_cli_dead),
     "list, show, export, replay and drop dead letters"},
    {"demo", HUB(stg_cli_demo),
     "run a hub and targets that fail, are slow or are down, for a look"},
    {"hub", HUB(stg_cli_hub), "deliver every message to every target"},
    {"pause", HUB(stg_cli_pause),
     "stop sending to a target; its messages wait"},
    {"reload", HUB(stg_cli_reload), "make a hub read its settings again"},
    {"resend", HUB(stg_cli_resend), "send one message to a target again"},
    {"resume", HUB(stg_cli_resume), "send to a paused target again"},
    {"secret", HUB(stg_cli_secret),
     "make secrets that a hub signs requests with"},
    {"send", HUB(stg_cli_send),
     "publish a file, or each of its lines, to a hub"},
    {"sink", HUB(stg_cli_sink),
     "run a test target with the answers that you choose"},
    {"status", HUB(stg_cli_status),
     "state of each target: rate, backlog, errors"},
    {"store", HUB(stg_cli_store), "back up, restore and verify a hub's store"},
    {"targets", HUB(stg_cli_targets),
     "list, add, change, rewind, remove and forget targets of a hub"},
    {"token", HUB(stg_cli_token), "make tokens for the callers of a hub"},
};

enum { COMMANDS = sizeof commands / sizeof *commands };

static const char head[] =
    "usage: stagger COMMAND [OPTIONS] [ARGUMENT]...\n"
    "       stagger --help | --version | help [COMMAND]\n"
    "\n"
    "Retries that do not trample: a retry policy library in C, an HTTP fan-out hub\n"
    "for Kafka and a simulator, with one policy for all three.\n"
    "\n";

static const char tail[] =
    "\n"
    "  stagger plan backend\n"
    "  stagger plan --plot 'exponential base=1s cap=40s attempts=9' webhook\n"
    "  stagger run --policy 'attempts=5 base=1s' -- curl -fsS example.org\n"
    "\n"
    "stagger COMMAND --help says more.\n";

static void print_help(FILE *to)
{
    fputs(head, to);
    for (size_t i = 0; i < COMMANDS; i++)
        if (commands[i].run != NULL)
            fprintf(to, "  %-8s %s\n", commands[i].name, commands[i].says);
    fputs(tail, to);
}

/* The command that does what is called so in other programs; NULL: none. */
static const char *find_elsewhere(const char *name)
{
    static const char *const elsewhere[][2] = {
        {"backup", "store backup"}, {"drop", "dead drop"},
        {"export", "dead export"},  {"forget", "targets forget"},
        {"list", "dead list"},      {"publish", "send"},
        {"replay", "dead replay"},  {"restore", "store restore"},
        {"retry", "run"},           {"rewind", "targets rewind"},
        {"show", "dead show"},      {"simulate", "sim"},
        {"start", "hub"},           {"validate", "check"},
        {"verify", "store verify"},
    };

    for (size_t i = 0; i < sizeof elsewhere / sizeof *elsewhere; i++)
        if (strcmp(name, elsewhere[i][0]) == 0)
            return elsewhere[i][1];
    return NULL;
}

static void list_all(void)
{
    const char *comma = "";

    fputs("The commands are", stderr);
    for (size_t i = 0; i < COMMANDS; i++)
        if (commands[i].run != NULL) {
            fprintf(stderr, "%s %s", comma, commands[i].name);
            comma = ",";
        }
    fputs(".\n", stderr);
}

/* A word of another program comes first ("publish"), then a slip of the finger,
 * then the list of all commands. */
static int refuse_command(const char *name)
{
    const char *names[COMMANDS + 2] = {"help"};
    const char *near = find_elsewhere(name);
    size_t count = 1;

    for (size_t i = 0; i < COMMANDS; i++)
        if (commands[i].run != NULL)
            names[count++] = commands[i].name;
    if (near == NULL)
        near = stg_suggest(name, names);
    if (near != NULL)
        return stg_options_refuse("stagger",
                                  "there is no command %s, did you mean "
                                  "stagger %s?",
                                  name, near);
    stg_options_complain("stagger", "there is no command %s", name);
    list_all();
    fputs("See stagger --help.\n", stderr);
    return STG_EXIT_USAGE;
}

/* argv[0] becomes "stagger COMMAND", which messages start with. It points into
 * this frame, which outlives the command. STG_HELPED is 0 to the shell, but not
 * to a command, which must not go on after --help. */
static int run_command(const char *name, int argc, char **argv)
{
    for (size_t i = 0; i < COMMANDS; i++)
        if (strcmp(name, commands[i].name) == 0) {
            char title[32];
            int code;

            if (commands[i].run == NULL)
                return stg_options_refuse("stagger",
                                          "%s needs the hub, which this "
                                          "build was made without",
                                          name);
            snprintf(title, sizeof title, "stagger %s", name);
            argv[0] = title;
            code = commands[i].run(argc, argv);
            return code == STG_HELPED ? 0 : code;
        }
    return refuse_command(name);
}

/* help, --help COMMAND and COMMAND --help are all the same. */
static int run_help(int argc, char **argv)
{
    char option[] = "--help", *arguments[] = {NULL, option, NULL};

    if (argc >= 2 && strcmp(argv[1], "help") != 0)
        return run_command(argv[1], 2, arguments);
    print_help(stdout);
    return stg_options_finish("stagger", 0);
}

static bool is_one_of(const char *word, const char *name, const char *letter)
{
    return strcmp(word, name) == 0 || strcmp(word, letter) == 0;
}

/* Without a word the help goes to stderr and the code is 2: in a script that is
 * a mistake. */
int main(int argc, char **argv)
{
    static const char *const names[] = {"--help", "--version", NULL};
    const char *word = argc > 1 ? argv[1] : NULL;
    char suggestion[STG_SUGGESTION_MAX];

    if (word == NULL) {
        print_help(stderr);
        return STG_EXIT_USAGE;
    }
    if (is_one_of(word, "--help", "-h") || strcmp(word, "help") == 0)
        return run_help(argc - 1, argv + 1);
    if (is_one_of(word, "--version", "-V")) {
        puts("stagger " STG_VERSION);
        return stg_options_finish("stagger", 0);
    }
    if (word[0] == '-')
        return stg_options_refuse(
            "stagger", "%s: no such option before the command%s", word,
            stg_options_suggest(suggestion, word, names));
    return run_command(word, argc - 1, argv + 1);
}
