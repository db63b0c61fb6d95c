/* stagger plan: reads policies, works out what they do, and shows that as a
 * table, side by side, as a plot or as JSON. Nothing is simulated: waits,
 * bounds and answers are computed (plan/plan.h), and known mistakes
 * found. */
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/plan/internal.h"

static const char who[] = "stagger plan";

enum { CLIENTS = 256, TARGET, PLOT, JSON, STRICT };

static const stg_option options[] = {
    {"-c, --config FILE", "with --target: the settings file of a hub", 0, NULL},
    {"--target NAME",
     "the policy of this target, as the hub applies it: with the "
     "hub's defaults and its budget. May be repeated",
     TARGET, NULL},
    {"-f, --file FILE",
     "named policies, one a line (`db: backend`); an argument may be "
     "such a NAME, and without arguments all of them are shown",
     0, NULL},
    {"--plot", "draw where the waits may fall", PLOT, NULL},
    {"--json", "every number, for programs", JSON, NULL},
    {"--strict", "exit with 1 if there are warnings", STRICT, NULL},
    {"--clients N",
     "how many clients use the policy at once: shows how many retry "
     "in the same moment; 1 needs no jitter",
     CLIENTS, NULL},
    {.flag = NULL},
};

static void print_presets(void)
{
    const stg_terminal t = stg_terminal_look();
    const stg_preset *preset;
    char label[32];

    puts("\nPresets:");
    for (size_t i = 0; (preset = stg_preset_at(i)) != NULL; i++) {
        snprintf(label, sizeof label, "  %s", preset->name);
        stg_terminal_wrap(&t, 18, label, STG_STYLE_PLAIN, preset->use);
    }
}

static const stg_usage usage = {
    .head =
        "usage: stagger plan [OPTIONS] [PRESET|TEXT|NAME]...\n"
        "\n"
        "Shows what a retry policy will do: each wait, the worst time and load, what\n"
        "happens on each fault, and mistakes with what to change. Several policies\n"
        "stand side by side; without one the default policy is shown. A TEXT is one\n"
        "argument, so quote it.\n"
        "\n",
    .options = options,
    .print_tail = print_presets,
    .tail =
        "\n"
        "A text is a preset, or exponential, linear, polynomial, fixed or\n"
        "list=1s,5s,1m, and settings: attempts= base= base-for= cap= floor= factor=\n"
        "power= offset= count-from= jitter= deadline= attempt-timeout=\n"
        "retry-after-max= retry-after= reset-after= retry= once= at-most= never=\n"
        "budget= budget-empty= rate= bulkhead= throttle= hedge= breaker=\n"
        "breaker-connect= breaker-probes= breaker-slow= breaker-scope=\n"
        "unsafe= nested=.\n"
        "\n"
        "  stagger plan backend\n"
        "  stagger plan 'backend attempts=3 deadline=10s'\n"
        "  stagger plan --plot jitter=full jitter=equal jitter=20%\n"
        "  stagger plan --strict --file policies.conf\n"
        "  stagger plan -c /etc/stagger/stagger.yaml --target billing\n"
        "  stagger plan --json webhook | jq '.policies[0].waits'\n"
        "\n"
        "Exit code: 0; 1 with --strict and warnings; 2 for a policy, a file or an\n"
        "option that is wrong, and for an output that cannot be written.\n"
        "\n"
        "COLUMNS is the width to fit (80), NO_COLOR turns colour off. Waits are\n"
        "the policy's own: what a server asks for (Retry-After) comes on top.\n",
    .arguments_max = INT_MAX,
};

typedef struct settings {
    const char *file;
    const char *config;
    const char **targets; /* names of the config's */
    size_t target_count;
    uint32_t clients;
    bool is_plot;
    bool is_json;
    bool is_strict;
} settings;

/* Returns 0 or an exit code. */
static int read_option(void *ctx, int option)
{
    settings *s = ctx;

    switch (option) {
    case 'f':
        s->file = optarg;
        return 0;
    case PLOT:
        s->is_plot = true;
        return 0;
    case JSON:
        s->is_json = true;
        return 0;
    case STRICT:
        s->is_strict = true;
        return 0;
    case 'c':
        s->config = optarg;
        return 0;
    case TARGET:
        s->targets[s->target_count++] = optarg;
        return 0;
    default: // CLIENTS
        if (stg_options_read_int(optarg, 1, 100000000, &s->clients))
            return 0;
        stg_options_complain(who, "--clients=%s: expected 1 to 100000000",
                             optarg);
        return STG_EXIT_USAGE;
    }
}

/* --target is the policy as a hub applies it, so it cannot be mixed with
 * policies that are not a hub's. */
static int read_options(settings *s, int argc, char **argv,
                        stg_arguments *words)
{
    int code = stg_options_read(&usage, argc, argv, read_option, s, words);

    if (code != 0)
        return code;
    if (s->is_plot && s->is_json)
        return stg_options_refuse(who, "--plot and --json exclude each other");
    if ((s->config == NULL) != (s->target_count == 0))
        return stg_options_refuse(who,
                                  "-c FILE and --target NAME need each other");
    if (s->config != NULL && (s->file != NULL || words->count > 0))
        return stg_options_refuse(
            who, "with --target there can be no other policy and no --file");
    return 0;
}

/* Programs read the fields, which are only ever added to. */
static void show_json(const stg_plans *plans)
{
    stg_json j = {0};

    stg_json_open(&j, NULL, '{');
    stg_json_open(&j, "policies", '[');
    for (size_t i = 0; i < plans->count; i++)
        stg_plan_write(&plans->at[i], plans->clients, &j);
    stg_json_close(&j, ']');
    stg_json_close(&j, '}');
}

/* One policy has a table at length; several have columns to compare. */
static void show(const settings *s, const stg_plans *plans,
                 const stg_terminal *t)
{
    if (s->is_json)
        show_json(plans);
    else if (s->is_plot)
        stg_plan_show_plot(plans, t);
    else if (plans->count > 1)
        stg_plan_show_columns(plans, t);
    else
        stg_plan_show_table(plans, t);
}

/* plans may be partly filled after a mistake, and is freed in either case. */
static int make(const settings *s, const stg_arguments *words)
{
    const stg_terminal t = stg_terminal_look();
    stg_plans plans = {.clients = s->clients};
    bool has_warnings = false;
    int code = s->config != NULL
                   ? stg_plan_read_targets(&plans, s->config, s->targets,
                                           s->target_count)
                   : stg_plan_read(&plans, s->file, words->count, words->at);

    plans.clients = s->clients;
    for (size_t i = 0; i < plans.count; i++) {
        stg_plan_work_out(&plans.at[i], s->clients);
        has_warnings |= plans.at[i].lint.count > 0;
    }
    if (code == 0) {
        show(s, &plans, &t);
        code = stg_options_finish(who, s->is_strict && has_warnings ? 1 : 0);
    }
    stg_plan_free(&plans);
    return code;
}

/* argc bounds how many --target there can be. */
int stg_cli_plan(int argc, char **argv)
{
    settings s = {.targets = calloc((size_t)argc + 1, sizeof(char *))};
    stg_arguments words;
    int code;

    if (s.targets == NULL) {
        stg_options_complain(who, "out of memory");
        return STG_EXIT_USAGE;
    }
    code = read_options(&s, argc, argv, &words);
    if (code == 0)
        code = make(&s, &words);
    free(s.targets);
    return code;
}
