/* stagger plan: what a policy does, before it does it. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/plan/plan.h"
#include "cli/plan/policies.h"

static const char help[] =
    "usage: stagger plan [OPTIONS] [PRESET|TEXT|NAME]...\n"
    "\n"
    "Shows what a retry policy does, before it does it: each wait, the worst\n"
    "time and load, what each fault gets, and mistakes with what to change.\n"
    "Several policies stand side by side; none is the default one. A TEXT is\n"
    "one argument, so quote it.\n"
    "\n"
    "  -c, --config FILE  with --target: the settings file of a hub\n"
    "      --target NAME  the policy of this target, as the hub applies it: with\n"
    "                     its default, and with the budget that it adds. May be\n"
    "                     repeated\n"
    "  -f, --file FILE    policies with names, a line each (`db: backend`); an\n"
    "                     argument may be such a NAME, and without arguments\n"
    "                     all of them are shown\n"
    "      --plot         draw where the waits may fall\n"
    "      --json         every number, for programs\n"
    "      --strict       exit with 1 if there are warnings\n"
    "      --clients N    how many clients use the policy at once: says how\n"
    "                     many come back together; 1 needs no jitter\n"
    "  -h, --help         this text\n"
    "\n"
    "Presets:\n";

static const char help_text[] =
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
    "the policy's own: what a server asks for (Retry-After) comes on top.\n";

enum { CLIENTS = 256, TARGET };

typedef struct settings {
    const char *file;
    const char *config;
    const char **targets; /* names of the config's */
    size_t target_count;
    uint32_t clients;
    bool is_plot;
    bool is_json;
    bool is_strict;
    bool is_help;
} settings;

static int refuse(const char *who, const char *what)
{
    stg_options_complain(who, "%s", what);
    fprintf(stderr, "See %s --help.\n", who);
    return STG_EXIT_USAGE;
}

static int show_help(const stg_terminal *t)
{
    const stg_preset *preset;
    char label[32];

    fputs(help, stdout);
    for (size_t i = 0; (preset = stg_preset_at(i)) != NULL; i++) {
        snprintf(label, sizeof label, "  %s", preset->name);
        stg_terminal_wrap(t, 18, label, STG_STYLE_PLAIN, preset->use);
    }
    fputs(help_text, stdout);
    return stg_options_finish("stagger plan", 0);
}

/* Returns 0 or an exit code. */
static int read_option(settings *s, const char *who, int option)
{
    switch (option) {
    case 'f':
        s->file = optarg;
        return 0;
    case 'p':
        s->is_plot = true;
        return 0;
    case 'j':
        s->is_json = true;
        return 0;
    case 's':
        s->is_strict = true;
        return 0;
    case 'c':
        s->config = optarg;
        return 0;
    case TARGET:
        s->targets[s->target_count++] = optarg;
        return 0;
    case CLIENTS:
        if (stg_options_read_int(optarg, 1, 100000000, &s->clients))
            return 0;
        stg_options_complain(who, "--clients=%s: wanted 1 to 100000000",
                             optarg);
        return STG_EXIT_USAGE;
    case 'h':
        s->is_help = true;
        return 0;
    default: // getopt has said what is wrong
        fprintf(stderr, "See %s --help.\n", who);
        return STG_EXIT_USAGE;
    }
}

static int read_options(settings *s, int argc, char **argv)
{
    static const struct option options[] = {
        {"file", required_argument, NULL, 'f'},
        {"plot", no_argument, NULL, 'p'},
        {"json", no_argument, NULL, 'j'},
        {"strict", no_argument, NULL, 's'},
        {"clients", required_argument, NULL, CLIENTS},
        {"config", required_argument, NULL, 'c'},
        {"target", required_argument, NULL, TARGET},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    int option, code;

    optind = 1;
    while ((option = stg_options_next(argc, argv, "c:f:h", options)) != -1)
        if ((code = read_option(s, argv[0], option)) != 0)
            return code;
    if (s->is_plot && s->is_json)
        return refuse(argv[0], "--plot and --json do not go together");
    if ((s->config == NULL) != (s->target_count == 0))
        return refuse(argv[0], "-c FILE and --target NAME go together");
    if (s->config != NULL && (s->file != NULL || optind < argc))
        return refuse(argv[0],
                      "the policy of a target stands by itself: wanted neither "
                      "--file nor another policy beside it");
    return 0;
}

static void show(const settings *s, const stg_plans *plans,
                 const stg_terminal *t)
{
    if (s->is_json)
        stg_plan_show_json(plans);
    else if (s->is_plot)
        stg_plan_show_plot(plans, t);
    else if (plans->count > 1)
        stg_plan_show_columns(plans, t);
    else
        stg_plan_show_table(plans, t);
}

/* All that there is to know of a policy. */
static void work_out(stg_plan *plan, uint32_t clients)
{
    stg_lint_facts facts = {
        .policy = &plan->policy,
        .forecast = &plan->forecast,
        .answers = &plan->answers,
        .clients = clients,
    };

    (void)stg_policy_print(&plan->policy, plan->text);
    stg_answers_list(&plan->answers, &plan->policy, plan->is_of_target);
    stg_forecast_make(&plan->forecast, &plan->policy,
                      stg_answers_retries_max(&plan->answers));
    stg_lint_check(&plan->lint, &facts);
}

static int make(const settings *s, const char *who, int count, char **words,
                const stg_terminal *t)
{
    stg_plans plans = {.clients = s->clients};
    bool has_warnings = false;
    int code = s->config != NULL
                   ? stg_plan_read_targets(&plans, s->config, s->targets,
                                           s->target_count)
                   : stg_plan_read(&plans, s->file, count, words);

    plans.clients = s->clients;
    for (size_t i = 0; i < plans.count; i++) {
        work_out(&plans.at[i], s->clients);
        has_warnings |= plans.at[i].lint.count > 0;
    }
    if (code == 0) {
        show(s, &plans, t);
        code = stg_options_finish(who, s->is_strict && has_warnings ? 1 : 0);
    }
    stg_plan_free(&plans);
    return code;
}

int stg_cli_plan(int argc, char **argv)
{
    settings s = {.targets = calloc((size_t)argc + 1, sizeof(char *))};
    stg_terminal t = stg_terminal_look();
    int code;

    if (s.targets == NULL)
        return refuse(argv[0], "out of memory");
    code = read_options(&s, argc, argv);
    if (code == 0)
        code = s.is_help ? show_help(&t)
                         : make(&s, argv[0], argc - optind, argv + optind, &t);
    free(s.targets);
    return code;
}
