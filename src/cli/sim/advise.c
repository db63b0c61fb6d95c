/* stagger sim advise: which policy? Two rounds: all candidates through the
 * scenarios that tell most apart, with few runs, then the best of them through
 * all, with more. Plain policies stay in for comparison, so that the answer
 * shows what it gains. */
#include "cli/sim/advise.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/options.h"
#include "cli/sim/sim.h"
#include "core/reader.h"
#include "sim/overload.h"
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
    {"--reps N", "runs of each of the last ten candidates, 1 to 100 (4)", REPS,
     NULL},
    STG_SIM_OPTIONS("a row for each of the last ten candidates"),
    {.flag = NULL},
};

const stg_usage stg_sim_advise_usage = {
    .head =
        "usage: stagger sim advise [OPTIONS]\n"
        "\n"
        "Which policy? Simulates some sixty of them, where the service is down and\n"
        "where it hangs, with the load as it is and with more. Prints the best as a\n"
        "text to paste, why it is the best, and what the others cost.\n"
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
        return stg_sim_number(who, "--reps", 1, 100, &a->reps);
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

/* -- two rounds ------------------------------------------------------------ */

/* What all candidates go through before the best of them go through all. */
static const stg_scenario first_round[] = {STG_SCENARIO_OUTAGE,
                                           STG_SCENARIO_STALL};

enum { FIRST = sizeof first_round / sizeof *first_round };

typedef struct field {
    stg_advised all[STG_CANDIDATES_MAX];
    size_t count;
} field;

/* The policy may be changed for the simulated scale; the candidate keeps the
 * one that is advised. */
static void make_trial(stg_trial *trial, const stg_question *q,
                       stg_scenario scenario, const stg_candidate *c)
{
    trial->options = stg_scenario_options(q, scenario);
    trial->options.policy = stg_question_policy(q, &c->policy);
    stg_overload_settle(&trial->options);
    memcpy(trial->name, c->name, sizeof c->name);
}

/* Runs trials for `count` candidates in `scenarios`, a candidate's together. */
static stg_status try_out(const stg_advice *a, stg_trials *t,
                          const stg_advised *all, size_t count,
                          const stg_scenario *scenarios, size_t scenario_count,
                          stg_sim_progress *progress, stg_error *err)
{
    t->all = calloc(count * scenario_count, sizeof *t->all);
    t->count = count * scenario_count;
    t->seed = a->run.seed;
    t->threads = a->run.threads;
    t->memory_max = stg_sim_memory_left();
    t->stop = stg_sim_stop_watch();
    t->progress = progress;
    t->memory = stg_sim_memory();
    if (t->all == NULL) {
        t->count = 0;
        snprintf(err->text, sizeof err->text, "out of memory");
        return STG_IO;
    }
    for (size_t i = 0; i < t->count; i++)
        make_trial(&t->all[i], &a->question, scenarios[i % scenario_count],
                   &all[i / scenario_count].candidate);
    for (size_t i = 0; i < t->count; i++)
        if (stg_overload_check(&t->all[i].options, err) != STG_OK)
            return STG_INVALID;
    return stg_trials_run(t, err);
}

/* May be called twice, and before anything was tried. */
static void end(stg_trials *t)
{
    if (t->all != NULL)
        stg_trials_close(t);
    free(t->all);
    t->all = NULL;
    t->count = 0;
}

/* The best first. Of equals a budget comes first: it holds on other days, too.
 * qsort() keeps no order, so then the names decide. */
static int compare(const void *left, const void *right)
{
    const stg_advised *a = left, *b = right;
    int order = stg_verdict_compare(&a->verdict, &b->verdict);
    int has_budget = a->candidate.policy.budget.kind != STG_BUDGET_NONE;
    int has_other = b->candidate.policy.budget.kind != STG_BUDGET_NONE;

    if (order == 0)
        order = has_other - has_budget;
    return order != 0 ? order : strcmp(a->candidate.name, b->candidate.name);
}

/* all[i].trials points into t, which has to outlive it. */
static void evaluate(const stg_advice *a, const stg_trials *t, stg_advised *all,
                     size_t count, const stg_scenario *scenarios,
                     size_t scenario_count)
{
    for (size_t i = 0; i < count; i++) {
        all[i].verdict = stg_verdict_begin();
        all[i].trials = &t->all[i * scenario_count];
        for (size_t k = 0; k < scenario_count; k++)
            stg_verdict_add(&all[i].verdict, &a->question, scenarios[k],
                            &all[i].trials[k].summary);
    }
    if (!t->is_partial) // else there is no best
        qsort(all, count, sizeof *all, compare);
}

/* Whether the best is no better than one for comparison, which recovers as
 * often: what it loses less may be chance. */
static bool does_nothing(const stg_advised *best, const stg_advised *plain)
{
    const stg_overload_summary *with[STG_SCENARIO_COUNT];
    const stg_overload_summary *without[STG_SCENARIO_COUNT];

    for (size_t k = 0; k < STG_SCENARIO_COUNT; k++) {
        with[k] = &best->trials[k].summary;
        without[k] = &plain->trials[k].summary;
    }
    return best->verdict.failed == plain->verdict.failed &&
           !stg_verdict_is_gain(
               stg_verdict_gain(with, without, STG_SCENARIO_COUNT));
}

/* Puts those that do not retry first, if the best does nothing for anybody. */
static void prefer_none(stg_advice *a)
{
    size_t i = 0;
    stg_advised none;

    while (i < a->count && a->finalists[i].candidate.policy.attempts_max > 1)
        i++;
    if (i == 0 || i == a->count ||
        !does_nothing(&a->finalists[0], &a->finalists[i]))
        return;
    none = a->finalists[i];
    memmove(&a->finalists[1], &a->finalists[0], i * sizeof none);
    a->finalists[0] = none;
}

/* Family 0 is that of candidates without relatives: it never counts as
 * taken. */
static bool has_family(const stg_advice *a, uint32_t family)
{
    for (size_t i = 0; i < a->count; i++)
        if (family != 0 && a->finalists[i].candidate.family == family)
            return true;
    return false;
}

/* Whether it is in, or one that came to the very same. */
static bool has_same(const stg_advice *a, const stg_advised *each)
{
    for (size_t i = 0; i < a->count; i++) {
        const stg_advised *other = &a->finalists[i];

        if (stg_policy_equal(&other->candidate.policy, &each->candidate.policy))
            return true;
        if (!other->is_plain &&
            stg_verdict_equal(&other->verdict, &each->verdict))
            return true;
    }
    return false;
}

/* Those for comparison, whatever they came to; and the best of each family, for
 * ten that differ in nothing that matters are no choice. */
static void choose(stg_advice *a, const field *f)
{
    for (size_t i = 0; i < f->count; i++)
        if (f->all[i].is_plain)
            a->finalists[a->count++] = f->all[i];
    for (size_t i = 0; i < f->count && a->count < STG_ADVISED_MAX; i++) {
        const stg_advised *each = &f->all[i];

        if (!each->is_plain && !has_family(a, each->candidate.family) &&
            !has_same(a, each))
            a->finalists[a->count++] = *each;
    }
}

/* Those that ran, if there is not to be more of the round. */
static void keep_part(stg_advice *a, const stg_advised *all, size_t count)
{
    a->is_partial = true;
    a->count = 0;
    for (size_t i = 0; i < count; i++)
        if (all[i].verdict.runs > 0)
            a->finalists[a->count++] = all[i];
}

/* One run each: it only has to choose ten of some sixty. */
static stg_status hold_first_round(stg_advice *a, field *f,
                                   stg_sim_progress *progress, stg_error *err)
{
    stg_trials *t = &a->trials;
    stg_status status;

    *t = (stg_trials){.reps = 1};
    a->scenarios = FIRST;
    status = try_out(a, t, f->all, f->count, first_round, FIRST, progress, err);
    if (status != STG_OK)
        return status;
    evaluate(a, t, f->all, f->count, first_round, FIRST);
    if (t->is_partial) {
        keep_part(a, f->all, f->count);
        return STG_OK;
    }
    choose(a, f);
    end(t);
    return STG_OK;
}

/* The trials stay until the answer is shown: verdicts and charts point into
 * them. */
static stg_status hold_last_round(stg_advice *a, stg_sim_progress *progress,
                                  stg_error *err)
{
    static const stg_scenario all[] = {STG_SCENARIO_OUTAGE, STG_SCENARIO_STALL,
                                       STG_SCENARIO_OUTAGE_MORE,
                                       STG_SCENARIO_STALL_MORE};
    stg_status status;

    a->trials = (stg_trials){.reps = a->reps};
    a->scenarios = STG_SCENARIO_COUNT;
    status = try_out(a, &a->trials, a->finalists, a->count, all,
                     STG_SCENARIO_COUNT, progress, err);
    if (status == STG_OK) {
        evaluate(a, &a->trials, a->finalists, a->count, all,
                 STG_SCENARIO_COUNT);
        if (a->trials.is_partial)
            keep_part(a, a->finalists, a->count);
        else
            prefer_none(a);
    }
    return status;
}

/* The first two candidates are those for comparison (stg_candidate_make). The
 * total of the work is an upper bound: there may be fewer finalists. */
static stg_status hold_rounds(stg_advice *a, stg_error *err)
{
    field *f = calloc(1, sizeof *f);
    stg_sim_progress progress;
    stg_overload_options o = stg_scenario_options(&a->question, 0);
    stg_status status;

    if (f == NULL) {
        snprintf(err->text, sizeof err->text, "out of memory");
        return STG_IO;
    }
    while (f->count < STG_CANDIDATES_MAX &&
           stg_candidate_make(&a->question, f->count,
                              &f->all[f->count].candidate)) {
        f->all[f->count].is_plain = f->count < 2;
        f->count++;
    }
    stg_sim_progress_begin(
        &progress,
        stg_trial_work(&o) *
            (double)(f->count * FIRST +
                     STG_ADVISED_MAX * STG_SCENARIO_COUNT * (size_t)a->reps));
    status = hold_first_round(a, f, &progress, err);
    if (status == STG_OK && !a->is_partial)
        status = hold_last_round(a, &progress, err);
    stg_sim_progress_end(&progress);
    free(f);
    return status;
}

/* -- the command ----------------------------------------------------------- */

/* A best policy that failed in some runs is shown, too, but ends with 1. */
static int answer(stg_advice *a)
{
    stg_error err;
    int code = STG_EXIT_USAGE;

    if (hold_rounds(a, &err) != STG_OK) {
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
    end(&a->trials);
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
