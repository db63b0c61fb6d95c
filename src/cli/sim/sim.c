/* stagger sim: reads the second word, and leaves the rest to it. */
#include "cli/sim/sim.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/options.h"

static const struct {
    const char *name;
    char title[32]; /* argv[0], and getopt's word for it */
    int (*run)(int argc, char **argv);
    const char *help;
} words[] = {
    {"contention", "stagger sim contention", stg_sim_contention,
     stg_sim_contention_help},
    {"overload", "stagger sim overload", stg_sim_overload,
     stg_sim_overload_help},
    {"advise", "stagger sim advise", stg_sim_advise, stg_sim_advise_help},
};

enum { WORDS = sizeof words / sizeof *words };

static const char help[] =
    "What a retry policy does to a system, before it does it: the very code\n"
    "of the library, in virtual time. The same seed gives the same output.\n";

static int show_help(void)
{
    for (size_t i = 0; i < WORDS; i++)
        printf("%s%s", i > 0 ? "\n" : "", words[i].help);
    printf("\n%s", help);
    return stg_options_finish("stagger sim", 0);
}

static int refuse_word(const char *word)
{
    const char *names[WORDS + 1] = {NULL};
    char hint[STG_SUGGESTION_MAX];

    for (size_t i = 0; i < WORDS; i++)
        names[i] = words[i].name;
    stg_options_complain("stagger sim", "%s: wanted what to simulate%s", word,
                         stg_options_hint(hint, word, names));
    fputs("See stagger sim --help.\n", stderr);
    return STG_EXIT_USAGE;
}

int stg_cli_sim(int argc, char **argv)
{
    if (argc < 2) {
        stg_options_complain("stagger sim", "wanted what to simulate");
        fputs("See stagger sim --help.\n", stderr);
        return STG_EXIT_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        return show_help();
    for (size_t i = 0; i < WORDS; i++)
        if (strcmp(argv[1], words[i].name) == 0) {
            char title[sizeof words[i].title];

            memcpy(title, words[i].title, sizeof title);
            argv[1] = title;
            return words[i].run(argc - 1, argv + 1);
        }
    return refuse_word(argv[1]);
}
