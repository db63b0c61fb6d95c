/* stagger sim advise: which policy? Its options, and the command. */
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
    CLIENTS = 256,
    PROCESSES,
    CAPACITY,
    LOAD,
    OUTAGE,
    PATIENCE,
    SERVICE,
    QUEUE,
    REPS,
};

static const stg_option options[] = {
    {"--clients N", "that call the service, up to 10000000 (5000)", CLIENTS,
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
    {"--patience TIME", "how long a client may wait, up to 1h (10s)", PATIENCE,
     NULL},
    {"--service TIME", "of a request that does not have to wait (20ms)",
     SERVICE, NULL},
    {"--queue N",
     "places to wait in (for twice as long as an attempt may take, so that "
     "a retry storm can persist)",
     QUEUE, NULL},
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
        "the others cost.\n"
        "\n",
    .options = options,
    .tail =
        "\n"
        "  stagger sim advise --clients 5000 --capacity 800\n"
        "  stagger sim advise --clients 200 --processes 4 --outage 5m --patience 1m\n"
        "\n"
        "Exit code: 0; 1 if no policy survives; 2 for bad options, and for what does\n"
        "not fit memory; 130 when it was interrupted.\n",
};

/* -- options --------------------------------------------------------------- */

static int refuse(const char *option, const char *expected)
{
    stg_options_complain(who, "%s=%s: expected %s", option, optarg, expected);
    return STG_EXIT_USAGE;
}

static int read_time(const char *option, stg_ns *ns)
{
    stg_reader r = {optarg, optarg + strlen(optarg)};

    if (stg_read_duration(&r, ns) && stg_reader_is_empty(&r))
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

static int read_option(void *ctx, int option)
{
    stg_advice *a = ctx;
    stg_question *q = &a->question;

    switch (option) {
    case CLIENTS:
        return stg_sim_number(who, "--clients", 1, 10000000, &q->clients);
    case PROCESSES:
        return stg_sim_number(who, "--processes", 1, 10000000, &q->processes);
    case CAPACITY:
        return read_capacity(q);
    case LOAD:
        return read_load(q);
    case OUTAGE:
        return read_time("--outage", &q->outage);
    case PATIENCE:
        return read_time("--patience", &q->patience);
    case SERVICE:
        return read_time("--service", &q->service);
    case QUEUE:
        return stg_sim_number(who, "--queue", 0, 10000000, &q->queue);
    case REPS:
        return stg_sim_number(who, "--reps", 2, 100, &a->reps);
    default:
        return stg_sim_option(&a->output, &a->run, who, option);
    }
}

/* Without --processes each client is a process of its own, with a budget and a
 * breaker of its own. */
static int read_options(stg_advice *a, int argc, char **argv)
{
    stg_arguments none;
    stg_error err;
    int code = stg_options_read(&stg_sim_advise_usage, argc, argv, read_option,
                                a, &none);

    if (code != 0)
        return code;
    if (a->question.processes == 0)
        a->question.processes = a->question.clients;
    if (stg_question_check(&a->question, &err) == STG_OK)
        return 0;
    stg_options_complain(who, "%s", err.text);
    return STG_EXIT_USAGE;
}

/* -- the command ----------------------------------------------------------- */

/* A best policy that failed in some runs is shown, too, but ends with 1. */
static int answer(stg_advice *a)
{
    stg_error err;
    int code = STG_EXIT_USAGE;

    if (stg_advice_find(a, &err) != STG_OK) {
        stg_options_complain(who, "%s", err.text);
    } else if (a->count == 0) {
        stg_options_complain(who, "interrupted before there was an answer");
        code = STG_EXIT_INTERRUPTED;
    } else {
        code = stg_advice_show(a, who);
        if (a->is_partial)
            stg_options_complain(who,
                                 "interrupted: the results are incomplete");
        if (code == 0 && a->is_partial)
            code = STG_EXIT_INTERRUPTED;
        else if (code == 0 && a->finalists[0].verdict.failed > 0)
            code = 1;
    }
    stg_advice_end(a);
    return code;
}

int stg_sim_advise(int argc, char **argv)
{
    stg_advice *a = calloc(1, sizeof *a);
    int code;

    if (a == NULL) {
        stg_options_complain(who, "out of memory");
        return STG_EXIT_USAGE;
    }
    a->question = stg_question_default();
    a->question.processes = 0;
    a->reps = 4;
    a->run = (stg_sim_run){1, stg_parallel_cores()};
    a->argc = argc;
    a->argv = argv;
    code = read_options(a, argc, argv);
    if (code == 0)
        code = stg_sim_output_check(&a->output, who);
    if (code == 0)
        code = answer(a);
    free(a);
    return code;
}
