/* stagger: reads the verb, and leaves the rest to it. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <stagger/stagger.h>

#include "base/suggest.h"
#include "cli/options.h"
#include "cli/verbs.h"

typedef int verb_fn(int argc, char **argv);

static const struct {
    const char *name;
    char title[16]; /* argv[0] of the verb, and getopt's word for it */
    verb_fn *run;
} verbs[] = {
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

enum { VERBS = sizeof verbs / sizeof *verbs };

static const char help[] =
    "usage: stagger VERB [OPTIONS] [ARGUMENT]...\n"
    "       stagger --help | --version | help [VERB]\n"
    "\n"
    "Retries that do not trample: one policy, in a C library and here.\n"
    "\n"
    "  plan     what a retry policy does, before it does it\n"
    "  run      a command, until it succeeds or the policy gives up\n"
    "  sim      what a policy does to a system, in virtual time\n"
#ifdef STAGGER_HUB
    "  alert    a test message to those whom a hub tells of trouble\n"
    "  check    what is wrong with a settings file of the hub, or unwise\n"
    "  dead     what a hub could not deliver, why, and again\n"
    "  demo     the hub at work, with targets in five kinds of trouble\n"
    "  hub      every message to every target, and again where it fails\n"
    "  send     a file, or each of its lines, to a hub\n"
    "  pause    nothing more is sent to a target\n"
    "  reload   the hub reads its settings again\n"
    "  resume   a target is sent to again\n"
    "  sink     a target to try things on, which answers as it is told\n"
    "  status   where it hangs, target by target\n"
    "  store    a hub's store: backup, restore, verify\n"
    "  targets  which there are, and the end of one\n"
    "  token    makes the tokens that a hub knows people and programs by\n"
#endif
    "\n"
    "  stagger plan backend\n"
    "  stagger plan --plot 'exponential base=1s cap=40s attempts=9' webhook\n"
    "  stagger run --policy 'attempts=5 base=1s' -- curl -fsS example.org\n"
    "\n"
    "stagger VERB --help says more.\n";

/* Verbs of the hub, in a build that was made without it. */
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
    for (size_t i = 0; i < VERBS; i++)
        fprintf(stderr, " %s%s", verbs[i].name, i + 1 < VERBS ? "," : ".\n");
}

static int refuse_verb(const char *name)
{
    const char *names[VERBS + 2] = {"help"};
    const char *near = find_elsewhere(name);

    for (size_t i = 0; i < VERBS; i++)
        names[i + 1] = verbs[i].name;
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

/* argv[0] becomes the verb's title, which is what messages start with. */
static int run_verb(const char *name, int argc, char **argv)
{
    for (size_t i = 0; i < VERBS; i++)
        if (strcmp(name, verbs[i].name) == 0) {
            char title[sizeof verbs[i].title];

            memcpy(title, verbs[i].title, sizeof title);
            argv[0] = title;
            return verbs[i].run(argc, argv);
        }
    return refuse_verb(name);
}

static int show(const char *text)
{
    fputs(text, stdout);
    return stg_options_finish("stagger", 0);
}

/* help, --help VERB and VERB --help are all the same. */
static int run_help(int argc, char **argv)
{
    char option[] = "--help", *arguments[] = {NULL, option, NULL};

    if (argc < 2)
        return show(help);
    if (strcmp(argv[1], "help") == 0)
        return show(help);
    return run_verb(argv[1], 2, arguments);
}

static bool is_one_of(const char *word, const char *name, const char *letter)
{
    return strcmp(word, name) == 0 || strcmp(word, letter) == 0;
}

int main(int argc, char **argv)
{
    static const char *const names[] = {"--help", "--version", NULL};
    const char *word = argc > 1 ? argv[1] : NULL;
    char hint[STG_HINT_MAX];

    if (word == NULL) {
        fputs(help, stderr);
        return STG_EXIT_USAGE;
    }
    if (is_one_of(word, "--help", "-h") || strcmp(word, "help") == 0)
        return run_help(argc - 1, argv + 1);
    if (is_one_of(word, "--version", "-V"))
        return show("stagger " STG_VERSION "\n");
    if (word[0] == '-') {
        stg_options_complain("stagger", "%s: no such option before the verb%s",
                             word, stg_options_hint(hint, word, names));
        fputs("See stagger --help.\n", stderr);
        return STG_EXIT_USAGE;
    }
    return run_verb(word, argc - 1, argv + 1);
}
