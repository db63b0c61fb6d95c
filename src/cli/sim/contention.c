/* stagger sim contention: clients that compete for one resource. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/options.h"
#include "cli/sim/contention.h"
#include "cli/sim/memory.h"
#include "cli/sim/sim.h"
#include "cli/sim/stop.h"
#include "core/reader.h"
#include "sim/parallel.h"

static const char who[] = "stagger sim contention";

const char stg_sim_contention_help[] =
    "usage: stagger sim contention [OPTIONS]\n"
    "\n"
    "N clients begin at once, and each wants one success of one resource. What\n"
    "do their retries cost, and how long does it take? Without options: the\n"
    "experiment that made jitter known, five policies with 10 to 190 clients.\n"
    "\n"
    "  -n, --clients LIST    how many, as 100, 10,100,1000 or 10..190/10\n"
    "  -p, --policy P        a preset, a text, or NAME=TEXT; may be repeated\n"
    "  -r, --resource TEXT   what they compete for (optimistic):\n"
    "                          optimistic\n"
    "                          lock hold=10ms\n"
    "                          rate=100/1s retry-after=yes\n"
    "                          workers=8 service=exponential:50ms queue=100\n"
    "                          round=40ms\n"
    "                        fault=503 says what a refusal is to the policy\n"
    "      --network TIME    what each message takes (normal:10ms:2ms); as 10ms,\n"
    "                        uniform:5ms:15ms or exponential:10ms, too\n"
    "      --reps N          repetitions, 1 to 1000000 (100)\n"
    "      --seed N          of chance, 0 to 4294967295 (1)\n"
    "      --until TIME      ends a repetition that takes longer (365d)\n"
    "      --calls-max N     ends a repetition with more calls, in millions\n"
    "                        (1000)\n"
    "      --threads N       how many at once (as many as there are cores); the\n"
    "                        output does not depend on it\n"
    "      --json[=FILE]     every number, for programs\n"
    "      --csv FILE        a line for each policy and number of clients\n"
    "      --html FILE       a page with all pictures, for any browser\n"
    "      --svg DIR         the pictures, each in a file\n"
    "  -h, --help            this text\n"
    "\n"
    "  stagger sim contention\n"
    "  stagger sim contention -n 1000 -p backend -p 'client attempts=9'\n"
    "  stagger sim contention -r 'workers=4 service=50ms queue=20' -p client\n"
    "\n"
    "Exit code: 0; 2 for options that are wrong, and what does not fit memory;\n"
    "130 when it was interrupted, and what was printed is a part.\n";

/* The experiment's own: in a text the first window is the base, where the
 * original had twice the base. */
static const char *const usual[] = {
    "none=fixed base=0 jitter=none attempts=unlimited deadline=none",
    "exponential=exponential base=10ms cap=2s jitter=none attempts=unlimited "
    "deadline=none",
    "equal=exponential base=10ms cap=2s jitter=equal attempts=unlimited "
    "deadline=none",
    "full=exponential base=10ms cap=2s jitter=full attempts=unlimited "
    "deadline=none",
    "decorrelated=exponential base=5ms cap=2s jitter=decorrelated "
    "attempts=unlimited deadline=none",
};

static int refuse(const char *option, const char *value, const char *wanted)
{
    stg_options_complain(who, "%s=%s: wanted %s", option, value, wanted);
    return STG_EXIT_USAGE;
}

/* -- numbers of clients */

static bool add_clients(stg_study_options *s, uint32_t clients)
{
    if (s->client_count == STG_STUDY_CLIENTS_MAX || clients < 1 ||
        clients > STG_CONTENTION_CLIENTS_MAX)
        return false;
    s->clients[s->client_count++] = clients;
    return true;
}

/* "100" or "10..190/10"; without a step it is 1. */
static bool read_range(stg_study_options *s, stg_reader *r)
{
    uint32_t from, to, step = 1;

    if (!stg_read_int(r, &from))
        return false;
    to = from;
    if (stg_read_text(r, "..") && !stg_read_int(r, &to))
        return false;
    if (stg_read_text(r, "/") && !stg_read_int(r, &step))
        return false;
    if (!stg_reader_is_empty(r) || step == 0 || to < from)
        return false;
    for (uint64_t n = from; n <= to; n += step)
        if (!add_clients(s, (uint32_t)n))
            return false;
    return true;
}

static int read_clients(stg_study_options *s, const char *text)
{
    stg_reader rest = {text, text + strlen(text)};

    s->client_count = 0;
    do {
        stg_reader part = stg_read_until(&rest, ',');

        if (!read_range(s, &part))
            return refuse("--clients", text,
                          "numbers from 1 to 100000000, 1000 of them at most, "
                          "as 100, 10,100,1000 or 10..190/10");
    } while (!stg_reader_is_empty(&rest));
    return 0;
}

/* -- options */

static int fail(const char *option, const stg_error *err)
{
    stg_options_complain(who, "%s: %s", option, err->text);
    return STG_EXIT_USAGE;
}

static int read_until(stg_study_options *s, const char *text)
{
    stg_reader r = {text, text + strlen(text)};

    if (!stg_read_duration(&r, &s->each.until_at) || !stg_reader_is_empty(&r) ||
        s->each.until_at == 0)
        return refuse("--until", text, "a time above 0, up to 365d");
    return 0;
}

static int read_number(const char *option, const char *text, uint32_t least,
                       uint32_t most, uint32_t *number)
{
    char wanted[40];

    if (stg_options_read_int(text, least, most, number))
        return 0;
    snprintf(wanted, sizeof wanted, "%u to %u", least, most);
    return refuse(option, text, wanted);
}

enum {
    NETWORK = 256,
    REPS,
    SEED,
    UNTIL,
    CALLS_MAX,
    THREADS,
};

static int read_run_option(stg_contention_settings *s, int option)
{
    uint32_t number = 0;
    int code;

    switch (option) {
    case REPS:
        return read_number("--reps", optarg, 1, STG_STUDY_REPS_MAX,
                           &s->study.reps);
    case SEED:
        code = read_number("--seed", optarg, 0, UINT32_MAX, &number);
        s->study.each.seed = number;
        return code;
    case UNTIL:
        return read_until(&s->study, optarg);
    case CALLS_MAX:
        code = read_number("--calls-max", optarg, 1, 1000000, &number);
        s->study.each.calls_max = (uint64_t)number * 1000000;
        return code;
    default:
        code = read_number("--threads", optarg, 1, 1024, &number);
        s->study.threads = number;
        return code;
    }
}

static int add_policy(stg_contention_settings *s, const char *word)
{
    stg_sim_policies *all = &s->study.policies;
    int code = stg_sim_policies_add(all, who, word);
    stg_error err;

    if (code != 0 || stg_contention_check_policy(
                         &all->at[all->count - 1].policy, &err) == STG_OK)
        return code;
    return fail("--policy", &err);
}

static int read_option(void *ctx, int option)
{
    stg_contention_settings *s = ctx;
    stg_error err;

    switch (option) {
    case 'n':
        return read_clients(&s->study, optarg);
    case 'p':
        return add_policy(s, optarg);
    case 'r':
        return stg_resource_parse(&s->study.each.resource, optarg, &err) ==
                       STG_OK
                   ? 0
                   : fail("--resource", &err);
    case NETWORK:
        return stg_distribution_parse(&s->study.each.network, optarg, &err) ==
                       STG_OK
                   ? 0
                   : fail("--network", &err);
    case 'h':
        s->is_help = true;
        return 0;
    default:
        return stg_sim_output_option(&s->output, option, optarg)
                   ? 0
                   : read_run_option(s, option);
    }
}

static int read_options(stg_contention_settings *s, int argc, char **argv)
{
    static const struct option options[] = {
        {"clients", required_argument, NULL, 'n'},
        {"policy", required_argument, NULL, 'p'},
        {"resource", required_argument, NULL, 'r'},
        {"network", required_argument, NULL, NETWORK},
        {"reps", required_argument, NULL, REPS},
        {"seed", required_argument, NULL, SEED},
        {"until", required_argument, NULL, UNTIL},
        {"calls-max", required_argument, NULL, CALLS_MAX},
        {"threads", required_argument, NULL, THREADS},
        STG_SIM_OUTPUT_OPTIONS,
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    int code = stg_options_walk(argc, argv, "n:p:r:h", options, read_option, s);

    if (code == 0 && optind < argc && !s->is_help) {
        stg_options_complain(who, "%s: no arguments are wanted", argv[optind]);
        code = STG_EXIT_USAGE;
    }
    return code;
}

/* What was not said. */
static int complete(stg_contention_settings *s)
{
    int code = 0;

    if (s->study.policies.count == 0)
        for (size_t i = 0; i < sizeof usual / sizeof *usual && code == 0; i++)
            code = stg_sim_policies_add(&s->study.policies, who, usual[i]);
    return code;
}

static stg_contention_settings *make_settings(void)
{
    enum { MILLION = 1000000, SLICES = 60000 };
    stg_contention_settings *s = calloc(1, sizeof *s);

    if (s == NULL)
        return NULL;
    s->study.reps = 100;
    s->study.threads = stg_parallel_cores();
    s->study.each = stg_contention_options_default();
    s->study.each.until_at = 365 * STG_DAY;
    s->study.each.calls_max = (uint64_t)1000 * MILLION;
    s->study.slice = 10 * STG_MS;
    s->study.slices = SLICES;
    s->study.memory_max = stg_sim_memory_left();
    (void)read_clients(&s->study, "10..190/10");
    return s;
}

static int run(stg_contention_settings *s)
{
    stg_study study;
    stg_error err;
    int code;

    s->study.each.stop = stg_sim_stop_watch();
    if (stg_study_run(&study, &s->study, &err) == STG_OK) {
        code = stg_contention_show(s, &study);
        if (study.is_partial)
            stg_options_complain(who, "interrupted: this is a part of it");
        if (study.is_partial && code == 0)
            code = STG_EXIT_INTERRUPTED;
    } else {
        stg_options_complain(who, "%s", err.text);
        code = STG_EXIT_USAGE;
    }
    stg_study_close(&study);
    return code;
}

int stg_sim_contention(int argc, char **argv)
{
    stg_contention_settings *s = make_settings();
    int code;

    if (s == NULL) {
        stg_options_complain(who, "there is no memory left");
        return STG_EXIT_USAGE;
    }
    code = read_options(s, argc, argv);
    if (code == 0 && s->is_help) {
        fputs(stg_sim_contention_help, stdout);
        code = stg_options_finish(who, 0);
    } else if (code == 0) {
        s->argc = argc;
        s->argv = argv;
        code = complete(s);
        if (code == 0)
            code = stg_sim_output_check(&s->output, who);
        if (code == 0)
            code = run(s);
    }
    free(s);
    return code;
}
