/* stagger sim contention: clients that begin at once and compete for one
 * resource. Without options it repeats the experiment of the AWS article on
 * jitter, with five policies and 10 to 190 clients. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/options.h"
#include "cli/sim/contention.h"
#include "cli/sim/sim.h"
#include "core/reader.h"
#include "sim/parallel.h"

static const char who[] = "stagger sim contention";

enum { NETWORK = 256, START, SWEEP, SERIES, EVENTS, REPS, UNTIL, CALLS_MAX };

static const stg_option options[] = {
    {"-n, --clients LIST", "how many, as 100, 10,100,1000 or 10..190/10", 0,
     NULL},
    {"-p, --policy P", "a preset, a text, or NAME=TEXT; may be repeated", 0,
     NULL},
    {"-r, --resource TEXT",
     "what they compete for (optimistic); fault=503 says which "
     "fault a refusal is to the policy"
     "\n  optimistic"
     "\n  lock hold=10ms"
     "\n  rate=100/1s retry-after=yes"
     "\n  workers=8 service=exponential:50ms queue=100"
     "\n  round=40ms",
     0, NULL},
    {"--network TIME",
     "of each message (normal:10ms:2ms); also 10ms, uniform:5ms:15ms "
     "or exponential:10ms",
     NETWORK, NULL},
    {"--start TIME",
     "spread the starts of the clients over so long, as jitter of scheduled jobs "
     "does (0: all at once)",
     START, NULL},
    {"--sweep KEY=LIST",
     "each of the values, up to 32: of a policy's setting (base, cap, jitter, ...), of "
     "the resource's (workers, service, queue, hold, rate, round, fault), network, "
     "start, or resource; may be repeated (then all combinations)",
     SWEEP, NULL},
    {"--reps N", "repetitions, 1 to 1000000 (100)", REPS, NULL},
    {"--until TIME", "end a repetition that takes longer (365d)", UNTIL, NULL},
    {"--calls-max N", "end a repetition with more than N million calls (1000)",
     CALLS_MAX, NULL},
    STG_SIM_OPTIONS("a row for each policy and number of clients"),
    {"--series FILE",
     "calls and successes over time as CSV: a row for each policy, number of "
     "clients and stretch of time; --json has them, too",
     SERIES, NULL},
    {"--events FILE",
     "what happens to each client in the first repetition, for Perfetto or "
     "chrome://tracing: 100000 attempts at most",
     EVENTS, NULL},
    {.flag = NULL},
};

const stg_usage stg_sim_contention_usage = {
    .head =
        "usage: stagger sim contention [OPTIONS]\n"
        "\n"
        "N clients begin together, and each needs one success from one resource. What do\n"
        "their retries cost, and how long does it take? Without options: the experiment\n"
        "that made jitter known, five policies with 10 to 190 clients.\n"
        "\n",
    .options = options,
    .tail =
        "\n"
        "  stagger sim contention\n"
        "  stagger sim contention -n 1000 -p backend -p 'client attempts=9'\n"
        "  stagger sim contention -r 'workers=4 service=50ms queue=20' -p client\n"
        "  stagger sim contention -n 10000 -r 'workers=50 service=100ms' --start 60s\n"
        "  stagger sim contention -n 200 -r 'workers=4' -p client --sweep "
        "workers=2..8/2\n"
        "\n"
        "Exit code: 0; 2 for bad options, and for what does not fit memory; 130 when\n"
        "it was interrupted: what it printed then is a part.\n",
};

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

static int refuse(const char *option, const char *value, const char *expected)
{
    stg_options_complain(who, "%s=%s: expected %s", option, value, expected);
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

/* "100" or "10..190/10"; without a step it is 1. n has 64 bits: in 32 the loop
 * would not end for a `to` near 2^32. */
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

/* Replaces the list, so that the last --clients counts, and the default
 * none. */
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
    if (!stg_options_read_duration(text, &s->each.until_at) ||
        s->each.until_at == 0)
        return refuse("--until", text, "a time above 0, up to 365d");
    return 0;
}

static int read_start(stg_study_options *s, const char *text)
{
    if (!stg_options_read_duration(text, &s->each.start_spread))
        return refuse("--start", text, "a time, up to 365d");
    return 0;
}

static int read_calls_max(stg_contention_settings *s)
{
    uint32_t millions = 0;
    int code = stg_sim_number(who, "--calls-max", 1, 1000000, &millions);

    s->study.each.calls_max = (uint64_t)millions * 1000000;
    return code;
}

/* What the model has no notion of, it refuses; see
 * stg_contention_check_policy(). */
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
    case START:
        return read_start(&s->study, optarg);
    case SWEEP:
        return stg_sweeps_add(&s->sweeps, who, optarg);
    case EVENTS:
        s->output.events = optarg;
        return 0;
    case SERIES:
        s->output.series = optarg;
        return 0;
    case REPS:
        return stg_sim_number(who, "--reps", 1, STG_STUDY_REPS_MAX,
                              &s->study.reps);
    case UNTIL:
        return read_until(&s->study, optarg);
    case CALLS_MAX:
        return read_calls_max(s);
    default:
        return stg_sim_option(&s->output, &s->run, who, option);
    }
}

/* What was not said. */
static int complete(stg_contention_settings *s)
{
    int code = 0;

    if (s->study.policies.count == 0)
        for (size_t i = 0; i < sizeof usual / sizeof *usual && code == 0; i++)
            code = stg_sim_policies_add(&s->study.policies, who, usual[i]);
    return code != 0 ? code : stg_contention_sweep(&s->study, &s->sweeps, who);
}

/* Slices of 10 ms for ten minutes of a chart. Time and calls are bounded, so
 * that a case ends in which clients never get done. */
static stg_contention_settings *make_settings(void)
{
    enum { MILLION = 1000000, SLICES = 60000 };
    stg_contention_settings *s = calloc(1, sizeof *s);

    if (s == NULL)
        return NULL;
    s->study.reps = 100;
    s->run = (stg_sim_run){1, stg_parallel_cores()};
    s->study.each = stg_contention_options_default();
    s->study.each.until_at = 365 * STG_DAY;
    s->study.each.calls_max = (uint64_t)1000 * MILLION;
    s->study.slice = 10 * STG_MS;
    s->study.slices = SLICES;
    s->study.memory_max = stg_sim_memory_left();
    (void)read_clients(&s->study, "10..190/10");
    return s;
}

/* An interrupted study is shown, and its exit code says so. */
static int run(stg_contention_settings *s)
{
    stg_study study;
    stg_error err;
    int code;

    s->study.each.stop = stg_sim_stop_watch();
    s->study.each.seed = s->run.seed;
    s->study.threads = s->run.threads;
    if (stg_study_run(&study, &s->study, &err) == STG_OK) {
        code = stg_contention_show(s, &study);
        if (study.is_partial)
            stg_options_complain(who,
                                 "interrupted: the results are incomplete");
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
    stg_arguments none;
    int code;

    if (s == NULL) {
        stg_options_complain(who, "out of memory");
        return STG_EXIT_USAGE;
    }
    s->argc = argc;
    s->argv = argv;
    code = stg_options_read(&stg_sim_contention_usage, argc, argv, read_option,
                            s, &none);
    if (code == 0)
        code = complete(s);
    if (code == 0)
        code = stg_sim_output_check(&s->output, who);
    if (code == 0)
        code = run(s);
    free(s);
    return code;
}
