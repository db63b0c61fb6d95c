/* stagger sim advise: which policy? Its options, and the command. With --resource
 * the question is about clients that begin together (drain.c), else about a
 * service that fails (sim/advise_rounds.h); each has options of its own. */
#include "cli/sim/advise.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "cli/options.h"
#include "cli/sim/sim.h"
#include "core/reader.h"
#include "sim/parallel.h"

static const char who[] = "stagger sim advise";

enum {
    PROCESSES = 256,
    CAPACITY,
    LOAD,
    OUTAGE,
    PATIENCE,
    SERVICE,
    QUEUE,
    NETWORK,
    TIMEOUT,
    START,
    REPS,
};

static const stg_option options[] = {
    {"-n, --clients N",
     "that call the service, up to 10000000 (5000; with --resource 100)", 0,
     NULL},
    {"--processes N",
     "that they live in: each has one budget and one breaker (as many "
     "as there are clients)",
     PROCESSES, NULL},
    {"--capacity N", "requests a second that the service can do (800)",
     CAPACITY, NULL},
    {"--load PERCENT", "of the capacity in normal operation, 1% to 95% (70%)",
     LOAD, NULL},
    {"--outage TIME", "to be survived, up to 1h (30s)", OUTAGE, NULL},
    {"--patience TIME",
     "how long a client may wait, up to 1h (10s; with --resource any time)",
     PATIENCE, NULL},
    {"--service TIME", "of a request that does not have to wait (20ms)",
     SERVICE, NULL},
    {"--queue N",
     "places to wait in (for twice as long as an attempt may take, so that "
     "a retry storm can persist)",
     QUEUE, NULL},
    {NULL, "Clients that begin together, in place of a service that fails:", 0,
     NULL},
    {"-r, --resource TEXT",
     "what they compete for, as of stagger sim contention: each wants one "
     "success, and all are to be done soon",
     0, NULL},
    {"--network TIME", "of each message (normal:10ms:2ms)", NETWORK, NULL},
    {"--timeout TIME",
     "how long an attempt waits, or none (2s, or ten times what a call takes)",
     TIMEOUT, NULL},
    {"--start TIME",
     "over how long the starts may be spread; 0: all at once (twice the time "
     "that they take at best)",
     START, NULL},
    {NULL, "", 0, NULL},
    {"--reps N",
     "runs of each of the last ten candidates in each scenario, 2 to 100 (4)",
     REPS, NULL},
    STG_SIM_OPTIONS("a row for each of the last ten candidates"),
    {.flag = NULL},
};

const stg_usage stg_sim_advise_usage = {
    .head =
        "usage: stagger sim advise [OPTIONS]\n"
        "\n"
        "Which policy? Simulates some two hundred of them, where the service is down\n"
        "and where it hangs, for half to four times the outage, with 80 % to 120 % of\n"
        "the load. Prints the best as a text to paste, why it is the best, and what\n"
        "the others cost. With --resource: how should N clients retry that begin\n"
        "together, and over how long should their starts be spread, so that all are\n"
        "done soon?\n"
        "\n",
    .options = options,
    .tail =
        "\n"
        "  stagger sim advise --clients 5000 --capacity 800\n"
        "  stagger sim advise --clients 200 --processes 4 --outage 5m --patience 1m\n"
        "  stagger sim advise -n 10000 -r 'workers=50 service=100ms'\n"
        "\n"
        "Exit code: 0; 1 if no policy survives, or not all clients succeed; 2 for bad options, and for what does\n"
        "not fit memory; 130 when it was interrupted.\n",
};

/* -- options --------------------------------------------------------------- */

/* Both questions, and which one it is. */
typedef struct asked {
    stg_advise_ask ask;
    stg_advice advice;
    stg_drain drain;
    stg_sim_progress progress;
    bool is_drain;
    const char *service_only, *drain_only; /* an option of that kind; or NULL */
} asked;

static int refuse(const char *option, const char *expected)
{
    stg_options_complain(who, "%s=%s: expected %s", option, optarg, expected);
    return STG_EXIT_USAGE;
}

static int read_time(const char *option, stg_ns *ns)
{
    if (stg_options_read_duration(optarg, ns))
        return 0;
    return refuse(option, "a time, such as 30s");
}

/* In thousandths of a request a second; the unit may be left out. */
static int read_capacity(stg_question *q)
{
    stg_reader r = {optarg, optarg + strlen(optarg)};
    uint32_t capacity;

    if (!stg_read_decimal(&r, &capacity))
        return refuse("--capacity", "1 to 4000000 requests a second");
    (void)stg_read_text(&r, "/s");
    q->capacity = capacity;
    return stg_reader_is_empty(&r)
               ? 0
               : refuse("--capacity", "1 to 4000000 requests a second");
}

/* In tenths of a percent; the range is checked with the whole question. */
static int read_load(stg_question *q)
{
    stg_reader r = {optarg, optarg + strlen(optarg)};
    uint32_t percent; // in thousandths

    if (!stg_read_decimal(&r, &percent) || !stg_read_text(&r, "%") ||
        !stg_reader_is_empty(&r) || percent > 100000)
        return refuse("--load", "1% to 95%");
    q->load = percent / 100;
    return 0;
}

static int read_service(asked *a, int option)
{
    stg_question *q = &a->advice.question;

    switch (option) {
    case PROCESSES:
        a->service_only = "--processes";
        return stg_sim_number(who, "--processes", 1, 10000000, &q->processes);
    case CAPACITY:
        a->service_only = "--capacity";
        return read_capacity(q);
    case LOAD:
        a->service_only = "--load";
        return read_load(q);
    case OUTAGE:
        a->service_only = "--outage";
        return read_time("--outage", &q->outage);
    case SERVICE:
        a->service_only = "--service";
        return read_time("--service", &q->service);
    default:
        a->service_only = "--queue";
        return stg_sim_number(who, "--queue", 0, 10000000, &q->queue);
    }
}

static int fail(const char *option, const stg_error *err)
{
    stg_options_complain(who, "%s: %s", option, err->text);
    return STG_EXIT_USAGE;
}

/* 0 would stand for what is usual. */
static int read_timeout(stg_drain_question *q)
{
    q->timeout = STG_NEVER;
    if (strcmp(optarg, "none") == 0)
        return 0;
    return read_time("--timeout", &q->timeout) != 0 ? STG_EXIT_USAGE
           : q->timeout > 0                         ? 0
                            : refuse("--timeout", "1ms to 365d, or none");
}

static int read_drain(asked *a, int option)
{
    stg_drain_question *q = &a->drain.question;
    stg_error err;

    switch (option) {
    case 'r':
        a->is_drain = true;
        return stg_resource_parse(&q->resource, optarg, &err) == STG_OK
                   ? 0
                   : fail("--resource", &err);
    case NETWORK:
        a->drain_only = "--network";
        return stg_distribution_parse(&q->network, optarg, &err) == STG_OK
                   ? 0
                   : fail("--network", &err);
    case TIMEOUT:
        a->drain_only = "--timeout";
        return read_timeout(q);
    default:
        a->drain_only = "--start";
        return read_time("--start", &q->start_max);
    }
}

static int read_option(void *ctx, int option)
{
    asked *a = ctx;
    int code;

    switch (option) {
    case 'n':
        code = stg_sim_number(who, "--clients", 1, 10000000,
                              &a->advice.question.clients);
        a->drain.question.clients = a->advice.question.clients;
        return code;
    case PATIENCE:
        code = read_time("--patience", &a->advice.question.patience);
        a->drain.question.patience = a->advice.question.patience;
        return code;
    case REPS:
        return stg_sim_number(who, "--reps", 2, 100, &a->ask.reps);
    case 'r':
    case NETWORK:
    case TIMEOUT:
    case START:
        return read_drain(a, option);
    default:
        return option < REPS
                   ? read_service(a, option)
                   : stg_sim_option(&a->ask.output, &a->ask.run, who, option);
    }
}

/* Whether the options are of one question. */
static int check_question(asked *a)
{
    stg_question *q = &a->advice.question;
    stg_error err;
    stg_status status;

    if (a->is_drain && a->service_only != NULL) {
        stg_options_complain(who,
                             "%s is of a service that fails, and not for "
                             "--resource",
                             a->service_only);
        return STG_EXIT_USAGE;
    }
    if (!a->is_drain && a->drain_only != NULL) {
        stg_options_complain(who, "%s needs --resource", a->drain_only);
        return STG_EXIT_USAGE;
    }
    if (q->processes == 0)
        q->processes = q->clients;
    status = a->is_drain ? stg_drain_question_check(&a->drain.question, &err)
                         : stg_question_check(q, &err);
    if (status == STG_OK)
        return 0;
    stg_options_complain(who, "%s", err.text);
    return STG_EXIT_USAGE;
}

/* Without --processes each client is a process of its own, with a budget and a
 * breaker of its own. */
static int read_options(asked *a, int argc, char **argv)
{
    stg_arguments none;
    int code = stg_options_read(&stg_sim_advise_usage, argc, argv, read_option,
                                a, &none);

    if (code == 0)
        code = check_question(a);
    return code != 0 ? code : stg_sim_output_check(&a->ask.output, who);
}

/* -- the command ----------------------------------------------------------- */

static void prepare(void *ctx, stg_trials *t)
{
    asked *a = ctx;

    stg_trials_prepare(t, &a->ask.run, &a->progress);
}

static stg_status find(asked *a, stg_error *err)
{
    stg_status status;

    a->advice.reps = a->ask.reps;
    a->advice.prepare = prepare;
    a->advice.ctx = a;
    stg_sim_progress_begin(&a->progress, stg_advice_work(&a->advice));
    status = stg_advice_find(&a->advice, err);
    stg_sim_progress_end(&a->progress);
    return status;
}

/* A best policy that failed in some runs is shown, too, but ends with 1. */
static int answer(asked *a)
{
    stg_advice *advice = &a->advice;
    stg_error err;
    int code = STG_EXIT_USAGE;

    if (find(a, &err) != STG_OK) {
        stg_options_complain(who, "%s", err.text);
    } else if (advice->count == 0) {
        stg_options_complain(who, "interrupted before there was an answer");
        code = STG_EXIT_INTERRUPTED;
    } else {
        code = stg_advice_show(advice, &a->ask, who);
        if (advice->is_partial)
            stg_options_complain(who,
                                 "interrupted: the results are incomplete");
        if (code == 0 && advice->is_partial)
            code = STG_EXIT_INTERRUPTED;
        else if (code == 0 && advice->finalists[0].verdict.failed > 0)
            code = 1;
    }
    stg_advice_end(advice);
    return code;
}

int stg_sim_advise(int argc, char **argv)
{
    asked *a = calloc(1, sizeof *a);
    int code;

    if (a == NULL) {
        stg_options_complain(who, "out of memory");
        return STG_EXIT_USAGE;
    }
    a->advice.question = stg_question_default();
    a->advice.question.processes = 0;
    a->drain.question = stg_drain_question_default();
    a->drain.ask = &a->ask;
    a->ask.reps = 4;
    a->ask.run = (stg_sim_run){1, stg_parallel_cores()};
    a->ask.argc = argc;
    a->ask.argv = argv;
    code = read_options(a, argc, argv);
    if (code == 0)
        code = a->is_drain ? stg_drain_answer(&a->drain, who) : answer(a);
    free(a);
    return code;
}
