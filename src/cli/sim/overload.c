/* stagger sim overload: a service in trouble, and the retries of its clients.
 * */
#include "cli/sim/overload.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/options.h"
#include "cli/sim/memory.h"
#include "cli/sim/sim.h"
#include "cli/sim/stop.h"
#include "cli/sim/sweep.h"
#include "sim/overload_text.h"
#include "sim/parallel.h"

static const char who[] = "stagger sim overload";

const char stg_sim_overload_help[] =
    "usage: stagger sim overload [OPTIONS]\n"
    "\n"
    "A service gets into trouble for a while, and its clients retry. Does it\n"
    "recover when the trouble is over, and when? Without options: ten seconds\n"
    "of outage of a service at 70 % of its capacity, which never ends for\n"
    "clients without a budget.\n"
    "\n"
    "  -p, --policy P        of the clients: a preset, a text, or NAME=TEXT; may\n"
    "                        be repeated\n"
    "      --sweep KEY=LIST  the same with each of these values, as\n"
    "                        budget=none,ratio:0.1 or queue=10,1000: a setting of\n"
    "                        a policy (backoff= is its kind), or an option below\n"
    "                        but reps, seed and threads; may be repeated\n"
    "\n"
    "The load:\n"
    "      --rate N          operations that begin a second, open load (700)\n"
    "      --arrivals HOW    poisson (default) or regular\n"
    "      --clients N       closed load: clients with one operation at a time\n"
    "      --think TIME      closed load: between two operations of one (1s)\n"
    "      --processes N     that the clients live in: each has one budget, one\n"
    "                        breaker and one throttle (10)\n"
    "      --timeout TIME    of an attempt, or none (500ms)\n"
    "      --throttle K      clients refuse what would be more than K times what\n"
    "                        the service accepts (none)\n"
    "\n"
    "The service:\n"
    "      --workers N       how many requests at once (10)\n"
    "      --service TIME    what a worker takes (exponential:10ms); as 10ms,\n"
    "                        uniform:5ms:15ms, normal:10ms:2ms, erlang:4:10ms or\n"
    "                        mix:5%:200ms:8ms, too\n"
    "      --queue N         places to wait in; who finds none gets 503 (1000)\n"
    "      --order HOW       fifo (default) or lifo: the last to come is first\n"
    "      --skip-gone HOW   yes: who has timed out leaves the queue (no)\n"
    "      --retry-after TIME  what a 503 asks for (0: nothing)\n"
    "      --errors PERCENT  of its answers are a 500, whatever the load (0%)\n"
    "      --network TIME    what each message takes (1ms)\n"
    "\n"
    "The trouble:\n"
    "      --trigger KIND    outage (default), stall, slow:FACTOR, spike:FACTOR,\n"
    "                        errors:PERCENT or none\n"
    "      --from TIME       when it begins (20s)\n"
    "      --to TIME         when it ends (30s)\n"
    "      --duration TIME   of the simulation (90s)\n"
    "      --warmup TIME     before this nothing counts (half of --from)\n"
    "      --bin TIME        width of the series (1/400 of the duration or more)\n"
    "\n"
    "      --reps N          runs of each, 1 to 10000 (10)\n"
    "      --seed N          of chance, 0 to 4294967295 (1)\n"
    "      --threads N       how many at once (as many as there are cores); the\n"
    "                        output does not depend on it\n"
    "      --json[=FILE]     every number, for programs\n"
    "      --csv FILE        a line for each case\n"
    "      --html FILE       a page with the charts and the table\n"
    "      --svg DIR         each chart in a file of its own\n"
    "  -h, --help            this text\n"
    "\n"
    "  stagger sim overload\n"
    "  stagger sim overload -p client --sweep budget=none,tokens:100:10/s,ratio:0.1\n"
    "  stagger sim overload -p backend --trigger slow:3 --sweep order=fifo,lifo\n"
    "  stagger sim overload --clients 5000 --think 5s --html overload.html\n"
    "\n"
    "Exit code: 0; 2 for options that are wrong, and what does not fit memory;\n"
    "130 when it was interrupted, and what was printed is a part.\n";

#define USUAL "exponential base=500ms cap=5s attempts=6 jitter="

static const char *const usual[] = {
    "unjittered=" USUAL "none",
    "jittered=" USUAL "full",
    "budgeted=" USUAL "full budget=ratio:0.1",
};

static int read_number(const char *option, uint32_t least, uint32_t most,
                       uint32_t *number)
{
    if (stg_options_read_int(optarg, least, most, number))
        return 0;
    stg_options_complain(who, "%s=%s: wanted %u to %u", option, optarg, least,
                         most);
    return STG_EXIT_USAGE;
}

enum {
    SWEEP = 256,
    REPS,
    SEED,
    THREADS,
    SETTINGS = 1024, /* and those behind it: the model's own */
};

static const struct option options[] = {
    {"policy", required_argument, NULL, 'p'},
    {"sweep", required_argument, NULL, SWEEP},
    {"reps", required_argument, NULL, REPS},
    {"seed", required_argument, NULL, SEED},
    {"threads", required_argument, NULL, THREADS},
    STG_SIM_OUTPUT_OPTIONS,
    {"help", no_argument, NULL, 'h'},
};

enum { OPTIONS = sizeof options / sizeof *options, OPTIONS_MAX = 64 };

static int read_setting(stg_overload_ask *s, int option)
{
    const stg_overload_setting *about =
        stg_overload_setting_at((size_t)(option - SETTINGS));
    stg_error err;

    if (about == NULL)
        return STG_EXIT_USAGE;
    if (stg_overload_set(&s->options, about->name, optarg, &err) == STG_OK)
        return 0;
    stg_options_complain(who, "--%s", err.text);
    return STG_EXIT_USAGE;
}

static int read_sweep(stg_overload_ask *s)
{
    if (s->sweep_count == STG_SWEEPS_MAX) {
        stg_options_complain(who, "--sweep: more than %d", STG_SWEEPS_MAX);
        return STG_EXIT_USAGE;
    }
    return stg_sweep_read(&s->sweeps[s->sweep_count++], who, optarg);
}

static int read_option(void *ctx, int option)
{
    stg_overload_ask *s = ctx;
    uint32_t number = 0;
    int code = 0;

    switch (option) {
    case 'p':
        return stg_sim_policies_add(&s->policies, who, optarg);
    case SWEEP:
        return read_sweep(s);
    case REPS:
        return read_number("--reps", 1, 10000, &s->reps);
    case SEED:
        code = read_number("--seed", 0, UINT32_MAX, &number);
        s->seed = number;
        return code;
    case THREADS:
        code = read_number("--threads", 1, 1024, &number);
        s->threads = number;
        return code;
    case 'h':
        s->is_help = true;
        return 0;
    default:
        return stg_sim_output_option(&s->output, option, optarg)
                   ? 0
                   : read_setting(s, option);
    }
}

/* Our own, and one for each setting of the model. */
static int read_options(stg_overload_ask *s, int argc, char **argv)
{
    struct option all[OPTIONS_MAX] = {0};
    const stg_overload_setting *about;
    int count = OPTIONS, code;

    memcpy(all, options, sizeof options);
    for (size_t i = 0; (about = stg_overload_setting_at(i)) != NULL; i++)
        all[count++] = (struct option){about->name, required_argument, NULL,
                                       SETTINGS + (int)i};
    code = stg_options_walk(argc, argv, "p:h", all, read_option, s);
    if (code == 0 && optind < argc && !s->is_help) {
        stg_options_complain(who, "%s: no arguments are wanted", argv[optind]);
        code = STG_EXIT_USAGE;
    }
    return code;
}

/* What was not said: with a sweep one policy is enough. */
static int complete(stg_overload_ask *s)
{
    size_t first = s->sweep_count > 0 ? 1 : 0;
    size_t until = s->sweep_count > 0 ? 2 : sizeof usual / sizeof *usual;
    int code = 0;

    if (s->policies.count == 0)
        for (size_t i = first; i < until && code == 0; i++)
            code = stg_sim_policies_add(&s->policies, who, usual[i]);
    return code;
}

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
    s->seed = 1;
    s->threads = stg_parallel_cores();
    return s;
}

static int finish(const stg_overload_ask *s, const stg_trials *t)
{
    int code = stg_overload_show(s, who, t);

    if (!t->is_partial)
        return code;
    stg_options_complain(who, "interrupted: this is a part of it");
    return code == 0 ? STG_EXIT_INTERRUPTED : code;
}

static int run(stg_overload_ask *s, stg_trial *trials, size_t count)
{
    stg_sim_progress progress;
    stg_trials t = {
        .all = trials,
        .count = count,
        .reps = s->reps,
        .seed = s->seed,
        .threads = s->threads,
        .memory_max = stg_sim_memory_left(),
        .stop = stg_sim_stop_watch(),
        .progress = &progress,
        .memory = stg_sim_memory(),
    };
    double total = 0;
    stg_status status;
    stg_error err;
    int code = STG_EXIT_USAGE;

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

static int prepare_and_run(stg_overload_ask *s)
{
    stg_trial *trials = NULL;
    size_t count;
    int code = complete(s);

    if (code == 0)
        code = stg_sweep_combine(s->sweeps, s->sweep_count, &s->policies,
                                 &s->options, who, &trials, &count);
    if (code == 0)
        code = stg_sim_output_check(&s->output, who);
    if (code == 0)
        code = run(s, trials, count);
    free(trials);
    return code;
}

int stg_sim_overload(int argc, char **argv)
{
    stg_overload_ask *s = make_settings();
    int code;

    if (s == NULL) {
        stg_options_complain(who, "there is no memory left");
        return STG_EXIT_USAGE;
    }
    s->argc = argc;
    s->argv = argv;
    code = read_options(s, argc, argv);
    if (code == 0 && s->is_help) {
        fputs(stg_sim_overload_help, stdout);
        code = stg_options_finish(who, 0);
    } else if (code == 0) {
        code = prepare_and_run(s);
    }
    free(s);
    return code;
}
