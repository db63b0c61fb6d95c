/* stagger plan: what a policy does, before it does it. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/options.h"
#include "cli/plan.h"
#include "cli/plan_policies.h"
#include "cli/verbs.h"

static const char help[] =
    "usage: stagger plan [OPTIONS] [PRESET|TEXT|NAME]...\n"
    "\n"
    "Shows what a retry policy does, before it does it: each wait, the worst\n"
    "time and load, what each fault gets, and mistakes with what to change.\n"
    "Several policies stand side by side; none is the default one. A TEXT is\n"
    "one argument, so quote it.\n"
    "\n"
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
    "A text is a preset, or exponential, linear, fixed or list=1s,5s,1m, and\n"
    "settings: attempts= base= cap= factor= jitter= deadline= attempt-timeout=\n"
    "retry-after-max= reset-after= retry= once= at-most= never= budget=\n"
    "budget-empty= breaker= unsafe= nested=.\n"
    "\n"
    "  stagger plan backend\n"
    "  stagger plan 'backend attempts=3 deadline=10s'\n"
    "  stagger plan --plot jitter=full jitter=equal jitter=20%\n"
    "  stagger plan --strict --file policies.conf\n"
    "  stagger plan --json webhook | jq '.policies[0].waits'\n"
    "\n"
    "Exit code: 0; 1 with --strict and warnings; 2 for a policy, a file or an\n"
    "option that is wrong, and for an output that cannot be written.\n"
    "\n"
    "COLUMNS is the width to fit (80), NO_COLOR turns colour off. Waits are\n"
    "the policy's own: what a server asks for (Retry-After) comes on top.\n";

typedef struct settings {
    const char *file;
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
        {"clients", required_argument, NULL, 'c'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    int option, code;

    optind = 1;
    while ((option = getopt_long(argc, argv, "f:h", options, NULL)) != -1)
        if ((code = read_option(s, argv[0], option)) != 0)
            return code;
    if (s->is_plot && s->is_json)
        return refuse(argv[0], "--plot and --json do not go together");
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
    stg_answers_list(&plan->answers, &plan->policy);
    stg_forecast_make(&plan->forecast, &plan->policy,
                      stg_answers_retries_max(&plan->answers));
    stg_lint_check(&plan->lint, &facts);
}

int stg_cli_plan(int argc, char **argv)
{
    settings s = {0};
    stg_plans plans = {0};
    stg_terminal t = stg_terminal_look();
    int code = read_options(&s, argc, argv);
    bool has_warnings = false;

    if (code != 0)
        return code;
    if (s.is_help)
        return show_help(&t);
    code = stg_plan_read(&plans, s.file, argc - optind, argv + optind);
    plans.clients = s.clients;
    for (size_t i = 0; i < plans.count; i++) {
        work_out(&plans.at[i], s.clients);
        has_warnings |= plans.at[i].lint.count > 0;
    }
    if (code == 0) {
        show(&s, &plans, &t);
        code = stg_options_finish(argv[0], s.is_strict && has_warnings ? 1 : 0);
    }
    stg_plan_free(&plans);
    return code;
}
