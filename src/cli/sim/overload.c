/* stagger sim overload: a service in trouble for a while, and the retries of its
 * clients. Its options are the settings of the model, by the same names, so that
 * --sweep can vary any of them; without options it shows a metastable failure:
 * retries keep a service down after the outage is over. */
#include "cli/sim/overload.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <stagger/load.h>

#include "cli/options.h"
#include "cli/sim/sim.h"
#include "sim/overload.h"
#include "sim/parallel.h"

static const char who[] = "stagger sim overload";

enum { SWEEP = 256, EDGE, MAP, TRACE, EVENTS, REPS, RATE_FILE };

/* Rows with a value are ours; the others are settings of the model, which are
 * named as theirs is. */
static const stg_option options[] = {
    {"-p, --policy P",
     "of the clients: a preset, a text, or NAME=TEXT; may be "
     "repeated",
     0, NULL},
    {"--sweep KEY=LIST",
     "repeat the simulation with each of these values, such as "
     "budget=none,ratio:0.1 or queue=10,1000: a setting of a "
     "policy (backoff= is its kind), or an option below but rate-file, "
     "reps, seed and threads; or a range, such as rate=100..900/100; may "
     "be repeated",
     SWEEP, NULL},
    {"--edge KEY=FROM..TO",
     "find the value at which recovery ends, such as to=21s..80s or "
     "rate=500..950, of each policy",
     EDGE, NULL},
    {"--map KEY=RANGE,KEY=RANGE",
     "whether it recovers, over two settings, such as "
     "rate=500..950/50,to=21s..40s/1s, as a heat map of each policy",
     MAP, NULL},
    {NULL, "The load:", 0, NULL},
    {"--rate N",
     "open load: operations that begin a second (700); 200..900 goes from "
     "one to the other",
     0, NULL},
    {"--rate-file FILE",
     "open load that follows a file: a time and a rate in each line, such "
     "as 90s,700, with a straight line between them",
     RATE_FILE, NULL},
    {"--arrivals HOW", "poisson or regular (poisson)", 0, NULL},
    {"--clients N", "closed load: clients with one operation at a time", 0,
     NULL},
    {"--think TIME", "closed load: between two operations of a client (1s)", 0,
     NULL},
    {"--trace FILE",
     "operations begin as in an access log, the hub's JSON log, or CSV "
     "(time,duration), and requests take as long as there",
     TRACE, NULL},
    {"--processes N",
     "that the clients live in; each has one budget, one breaker and "
     "one throttle (10)",
     0, NULL},
    {"--layers N",
     "services in a row, each calls the next: 1 to 4; the last one is the one "
     "below, and has the trouble (1, or as many as --inner needs)",
     0, NULL},
    {"--inner POLICIES",
     "by which each of them calls the next, from the first one on, with | "
     "between them; the last is that of all others, too (none: the clients')",
     0, NULL},
    {"--propagate HOW",
     "yes or no (no); with yes, each service is told how long its caller "
     "waits, and stops then",
     0, NULL},
    {"--others POLICY",
     "of a part of the clients, such as those that have not been changed yet "
     "(none)",
     0, NULL},
    {"--share PERCENT", "of the processes have it, with --others (50%)", 0,
     NULL},
    {"--timeout TIME", "of an attempt, or none (500ms)", 0, NULL},
    {"--throttle K",
     "clients refuse what would be more than K times what the service "
     "accepts (none)",
     0, NULL},
    {NULL, "The service:", 0, NULL},
    {"--workers N", "how many requests at once (10)", 0, NULL},
    {"--service TIME",
     "of a request with a worker (exponential:10ms); also 10ms, "
     "uniform:5ms:15ms, normal:10ms:2ms, erlang:4:10ms or "
     "mix:5%:200ms:8ms",
     0, NULL},
    {"--queue N",
     "places to wait in; a request that finds none gets 503 (1000)", 0, NULL},
    {"--order HOW",
     "fifo, lifo or adaptive-lifo (fifo); lifo serves the newest "
     "request first, adaptive-lifo only while a queue stands (for 100ms, "
     "or adaptive-lifo:TIME)",
     0, NULL},
    {"--shedding HOW",
     "requests that get 503 when their turn comes: wait:1s those that "
     "have waited longer, wait:5ms:100ms longer than 5ms while a queue "
     "stands for 100ms (and else than that), codel:5ms:100ms as RFC 8289 "
     "says (none)",
     0, NULL},
    {"--limit HOW",
     "requests inside beyond a limit that adapts get 503: aimd:TIME, so "
     "that they stay no longer (none)",
     0, NULL},
    {"--skip-gone HOW",
     "yes or no (no); with yes, requests that have timed out leave "
     "the queue",
     0, NULL},
    {"--drag PERCENT",
     "each other request inside makes one that begins take so much longer "
     "(0%)",
     0, NULL},
    {"--retry-after TIME", "that a 503 asks for (0: nothing)", 0, NULL},
    {"--errors PERCENT", "of its answers are a 500, whatever the load (0%)", 0,
     NULL},
    {"--network TIME", "of each message (1ms)", 0, NULL},
    {NULL, "The trouble:", 0, NULL},
    {"--trigger KIND",
     "outage (default), stall, slow:FACTOR, spike:FACTOR, "
     "errors:PERCENT or none",
     0, NULL},
    {"--from TIME", "when it begins (20s)", 0, NULL},
    {"--to TIME", "when it ends (30s)", 0, NULL},
    {"--return STEPS:TIME",
     "after an outage or a stall the workers are back in steps: 4:10s a "
     "quarter at once, and another every 10s (none: all at once)",
     0, NULL},
    {"--cold FACTOR:AMOUNT",
     "after an outage caches are cold: requests take FACTOR times as long, "
     "and ever less with each that is served, as 10:5000, or with time, as "
     "10:30s (none)",
     0, NULL},
    {"--duration TIME", "of the simulation (90s)", 0, NULL},
    {"--warmup TIME", "nothing before it is counted (half of --from)", 0, NULL},
    {"--bin TIME", "width of the series (1/400 of the duration or more)", 0,
     NULL},
    {NULL, "", 0, NULL},
    {"--reps N", "runs of each case, 1 to 10000 (10)", REPS, NULL},
    STG_SIM_OPTIONS("a row for each case"),
    {"--events FILE",
     "what happens to each client in the first repetition, for Perfetto or "
     "chrome://tracing: 100000 attempts at most",
     EVENTS, NULL},
    {.flag = NULL},
};

const stg_usage stg_sim_overload_usage = {
    .head =
        "usage: stagger sim overload [OPTIONS]\n"
        "\n"
        "A service is in trouble for a while, and its clients retry. Does it recover\n"
        "when the trouble ends, and when? Without options: ten seconds of outage of a\n"
        "service at 70 % of its capacity, from which it never recovers if the clients\n"
        "have no retry budget.\n"
        "\n",
    .options = options,
    .tail =
        "\n"
        "  stagger sim overload\n"
        "  stagger sim overload -p client --sweep budget=none,tokens:100:10/s,ratio:0.1\n"
        "  stagger sim overload -p backend --trigger slow:3 --sweep order=fifo,lifo\n"
        "  stagger sim overload --edge to=21s..80s\n"
        "  stagger sim overload -p 'attempts=4 base=100ms' --rate 300 --layers 3\n"
        "  stagger sim overload -p new='attempts=6 budget=ratio:0.1' --others attempts=6 --edge share=0%..100%\n"
        "  stagger sim overload --trace access.log --workers 40 --from 60s --to 90s\n"
        "  stagger sim overload --clients 5000 --think 5s --html overload.html\n"
        "\n"
        "Exit code: 0; 2 for bad options, and for what does not fit memory; 130 when\n"
        "it was interrupted: what it printed then is a part.\n",
};

#define USUAL "exponential base=500ms cap=5s attempts=6 jitter="

static const char *const usual[] = {
    "unjittered=" USUAL "none",
    "jittered=" USUAL "full",
    "budgeted=" USUAL "full budget=ratio:0.1",
};

/* "--queue": the setting of the model that is called so. */
static int read_setting(stg_overload_ask *s, size_t row)
{
    char name[STG_OPTION_NAME_MAX];
    stg_error err;

    stg_option_name(&options[row], name);
    s->has_load |= strcmp(name, "rate") == 0 || strcmp(name, "clients") == 0 ||
                   strcmp(name, "arrivals") == 0 || strcmp(name, "think") == 0;
    s->has_service |= strcmp(name, "service") == 0;
    s->has_duration |= strcmp(name, "duration") == 0;
    if (stg_overload_set(&s->options, name, optarg, &err) == STG_OK)
        return 0;
    stg_options_complain(who, "--%s", err.text);
    return STG_EXIT_USAGE;
}

/* The last one of a command line holds. */
static int read_rates(stg_overload_ask *s, const char *path)
{
    stg_overload_load *load = &s->options.load;
    stg_error err;
    size_t size;
    char *text;
    stg_status status = stg_file_read(path, &text, &size, &err);

    if (status != STG_OK) {
        stg_options_complain(who, "--rate-file: %s", err.text);
        return STG_EXIT_USAGE;
    }
    status = stg_load_parse(text, size, s->rates, &load->point_count, &err);
    free(text);
    if (status != STG_OK) {
        stg_options_complain(who, "--rate-file=%s: %s", path, err.text);
        return STG_EXIT_USAGE;
    }
    load->is_closed = false;
    load->points = s->rates;
    load->rate_end = 0;
    load->rate = load->rate > 0 ? load->rate : 1; // it must be one
    load->clients = 0;
    return 0;
}

/* Options of the model have no value in the table and come as row numbers. */
static int read_option(void *ctx, int option)
{
    stg_overload_ask *s = ctx;

    switch (option) {
    case 'p':
        return stg_sim_policies_add(&s->policies, who, optarg);
    case SWEEP: // only split here: what it sets is known with the trials
        return stg_sweeps_add(&s->sweeps, who, optarg);
    case EDGE:
        return stg_edge_read(&s->edge, who, "--edge", optarg);
    case MAP:
        return stg_map_read(&s->map, who, optarg);
    case EVENTS:
        s->output.events = optarg;
        return 0;
    case TRACE:
        s->trace_path = optarg;
        return 0;
    case REPS:
        return stg_sim_number(who, "--reps", 1, 10000, &s->reps);
    case RATE_FILE:
        s->has_load = true;
        return read_rates(s, optarg);
    default:
        return option >= STG_OPTION_ROW
                   ? read_setting(s, (size_t)(option - STG_OPTION_ROW))
                   : stg_sim_option(&s->output, &s->run, who, option);
    }
}

/* What was not said. Without a sweep three policies are compared, which differ
 * in jitter and budget; with a sweep the jittered one alone, as the sweep makes
 * the differences. */
static int complete(stg_overload_ask *s)
{
    size_t first = s->sweeps.count > 0 ? 1 : 0;
    size_t until = s->sweeps.count > 0 ? 2 : sizeof usual / sizeof *usual;
    int code = 0;

    if (s->policies.count == 0)
        for (size_t i = first; i < until && code == 0; i++)
            code = stg_sim_policies_add(&s->policies, who, usual[i]);
    return code;
}

/* STG_NEVER and 0 mean that stg_overload_settle() finds warmup and bin. */
static stg_overload_ask *make_settings(void)
{
    stg_overload_ask *s = calloc(1, sizeof *s);

    if (s == NULL)
        return NULL;
    s->options = stg_overload_default();
    s->options.load.think =
        (stg_distribution){.kind = STG_DISTRIBUTION_FIXED, .a = STG_S};
    s->options.warmup = STG_NEVER;
    s->options.bin = 0;
    s->reps = 10;
    s->run = (stg_sim_run){1, stg_parallel_cores()};
    return s;
}

/* What was simulated until the interruption is shown; the exit code says that
 * it is a part. */
static int finish(const stg_overload_ask *s, const stg_trials *t)
{
    int code = stg_overload_show(s, who, t);

    if (!t->is_partial)
        return code;
    stg_options_complain(who, "interrupted: the results are incomplete");
    return code == 0 ? STG_EXIT_INTERRUPTED : code;
}

static void add_progress(void *ctx, double work)
{
    stg_sim_progress_add(ctx, work);
}

void stg_trials_prepare(stg_trials *t, const stg_sim_run *run,
                        stg_sim_progress *progress)
{
    t->seed = run->seed;
    t->threads = run->threads;
    t->memory_max = stg_sim_memory_left();
    t->stop = stg_sim_stop_watch();
    t->memory = stg_sim_memory();
    t->on_run = progress != NULL ? add_progress : NULL;
    t->ctx = progress;
}

static int run(stg_overload_ask *s, stg_trial *trials, size_t count)
{
    stg_sim_progress progress;
    stg_trials t = {
        .all = trials,
        .count = count,
        .reps = s->reps,
    };
    double total = 0;
    stg_status status;
    stg_error err;
    int code = STG_EXIT_USAGE;

    stg_trials_prepare(&t, &s->run, &progress);
    for (size_t i = 0; i < count; i++)
        total += stg_trial_work(&trials[i].options) * s->reps;
    stg_sim_progress_begin(&progress, total);
    status = stg_trials_run(&t, &err);
    stg_sim_progress_end(&progress);
    if (status == STG_OK)
        code = finish(s, &t);
    else
        stg_options_complain(who, "%s", err.text);
    stg_trials_close(&t);
    return code;
}

/* The mean rate of a trace, which is no shorter than a millisecond. */
static uint64_t rate_of(const stg_sim_trace *t)
{
    double seconds = (double)t->at[t->count - 1] / 1e9;
    double rate = (double)t->count / (seconds > 0.001 ? seconds : 0.001) * 1000;

    return rate < 1 ? 1 : rate > 4e9 ? 4000000000 : (uint64_t)rate;
}

/* Where the times of requests are unknown, --service has to say them; a duration
 * that was not given is the trace's, in whole seconds. */
static int use_trace(stg_overload_ask *s)
{
    stg_overload_options *o = &s->options;
    stg_error err;

    if (s->trace_path == NULL)
        return 0;
    if (s->has_load) {
        stg_options_complain(
            who,
            "--trace: operations begin as in the trace: "
            "leave out --rate, --rate-file, --arrivals, --clients and "
            "--think");
        return STG_EXIT_USAGE;
    }
    if (stg_trace_read(&s->trace, s->trace_path, &err) != STG_OK) {
        stg_options_complain(who, "--trace: %s", err.text);
        return STG_EXIT_USAGE;
    }
    if (s->trace.time_count == 0 && !s->has_service) {
        stg_options_complain(who,
                             "--trace: %s has no durations: say how long "
                             "a request takes, with --service",
                             s->trace_path);
        return STG_EXIT_USAGE;
    }
    o->load.trace = &s->trace;
    o->load.rate = rate_of(&s->trace);
    if (!s->has_service) {
        o->service.times = s->trace.times;
        o->service.time_count = s->trace.time_count;
    }
    if (!s->has_duration)
        o->end_at = (s->trace.at[s->trace.count - 1] / STG_S + 1) * STG_S;
    return 0;
}

/* All mistakes, also of output paths, are found before the first run. */
static int prepare_and_run(stg_overload_ask *s)
{
    stg_trial *trials = NULL;
    size_t count;
    int code = complete(s);

    if (code == 0 && s->output.events != NULL &&
        (s->edge.key[0] != '\0' || s->map.x.key[0] != '\0'))
        code = stg_options_refuse(who,
                                  "--events does not go with --edge and "
                                  "--map");
    if (code == 0)
        code = use_trace(s);
    if (code == 0)
        code = stg_sweeps_combine(&s->sweeps, &s->policies, &s->options, who,
                                  &trials, &count);
    if (code == 0)
        code = stg_sim_output_check(&s->output, who);
    if (code == 0)
        code = s->edge.key[0] != '\0'    ? stg_edge_find(s, who, trials, count)
               : s->map.x.key[0] != '\0' ? stg_map_draw(s, who, trials, count)
                                         : run(s, trials, count);
    free(trials);
    stg_trace_free(&s->trace);
    return code;
}

int stg_sim_overload(int argc, char **argv)
{
    stg_overload_ask *s = make_settings();
    stg_arguments none;
    int code;

    if (s == NULL) {
        stg_options_complain(who, "out of memory");
        return STG_EXIT_USAGE;
    }
    s->argc = argc;
    s->argv = argv;
    code = stg_options_read(&stg_sim_overload_usage, argc, argv, read_option, s,
                            &none);
    if (code == 0)
        code = prepare_and_run(s);
    free(s);
    return code;
}
