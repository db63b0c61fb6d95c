/* stagger sim: reads the subcommand, and leaves the rest to it. */
#include "cli/sim/sim.h"

#include <stdio.h>
#include <string.h>

#include "cli/commands.h"

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
    const stg_usage *usage;
} subcommands[] = {
    {"contention", stg_sim_contention, &stg_sim_contention_usage},
    {"overload", stg_sim_overload, &stg_sim_overload_usage},
    {"advise", stg_sim_advise, &stg_sim_advise_usage},
};

enum { SUBCOMMANDS = sizeof subcommands / sizeof *subcommands };

static int show_help(const char *who)
{
    for (size_t i = 0; i < SUBCOMMANDS; i++) {
        fputs(i > 0 ? "\n" : "", stdout);
        stg_options_print(subcommands[i].usage);
    }
    fputs(
        "\n"
        "The simulator runs the code of the library itself, in virtual time. The same\n"
        "seed gives the same output.\n",
        stdout);
    return stg_options_finish(who, STG_HELPED);
}

static int refuse(const char *who, const char *word)
{
    const char *names[SUBCOMMANDS + 1] = {NULL};
    char hint[STG_SUGGESTION_MAX] = "";

    for (size_t i = 0; i < SUBCOMMANDS; i++)
        names[i] = subcommands[i].name;
    return stg_options_refuse(
        who, "%s%sexpected contention, overload or advise%s",
        word != NULL ? word : "", word != NULL ? ": " : "",
        word != NULL ? stg_options_hint(hint, word, names) : hint);
}

int stg_cli_sim(int argc, char **argv)
{
    if (argc < 2)
        return refuse(argv[0], NULL);
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        return show_help(argv[0]);
    for (size_t i = 0; i < SUBCOMMANDS; i++)
        if (strcmp(argv[1], subcommands[i].name) == 0) {
            char title[40];

            snprintf(title, sizeof title, "stagger sim %s", argv[1]);
            argv[1] = title;
            return subcommands[i].run(argc - 1, argv + 1);
        }
    return refuse(argv[0], argv[1]);
}
