/* The rounds of `stagger sim advise --resource`: successive halving, with a search
 * beside the best, as for overload (advise_rounds.c). All runs of one number have
 * the same seed, so that differences are those of the candidates. */
#include "cli/sim/advise.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/options.h"
#include "sim/parallel.h"

enum {
    FIRST = 134,    // candidates of the first round, about
    SEARCHES = 3,   // rounds of neighbours
    PARENTS = 5,    // whose neighbours are tried
    SEMIFINAL = 24, // those that go through all scenarios once
    CHEAP = 3,      // finalists that are there for few calls
};

typedef struct job {
    stg_drain *drain;
    size_t first, scenarios; /* of the field */
    uint32_t reps;
    stg_contention_run *runs; /* by candidate, scenario, repetition */
    stg_memory memory;
    atomic_bool is_lost;
} job;

/* -- runs ------------------------------------------------------------------ */

/* A run of its own contention, so that the result does not depend on threads. */
static void do_run(void *ctx, size_t number, unsigned worker)
{
    job *j = ctx;
    size_t scenario = number / j->reps % j->scenarios;
    const stg_drained *each =
        &j->drain->field[j->first + number / j->reps / j->scenarios];
    stg_contention_options o = stg_drain_options(&j->drain->question, scenario);
    stg_contention *c;

    (void)worker;
    if (atomic_load(j->drain->stop))
        return;
    o.policy = &each->candidate.policy;
    o.start_spread = each->candidate.start;
    o.seed = j->drain->ask->run.seed;
    o.stop = j->drain->stop;
    if (stg_contention_new(&c, &j->memory, &o, NULL) != STG_OK) {
        atomic_store(&j->is_lost, true);
        return;
    }
    if (!stg_contention_repeat(c, number % j->reps, &j->runs[number], NULL))
        atomic_store(&j->is_lost, true);
    stg_contention_free(c);
    stg_sim_progress_add(&j->drain->progress, o.clients);
}

/* Runs those of the field from `first` on, and judges them. Where the runs are
 * kept, each has its own; *kept is to be freed. */
static stg_status hold(stg_drain *d, size_t first, size_t scenarios,
                       uint32_t reps, stg_contention_run **kept, stg_error *err)
{
    size_t each = scenarios * reps, count = (d->count - first) * each;
    job j = {.drain = d,
             .first = first,
             .scenarios = scenarios,
             .reps = reps,
             .memory = stg_sim_memory(),
             .runs = calloc(count + 1, sizeof *j.runs)};

    if (j.runs != NULL)
        stg_parallel_run(count, d->ask->run.threads, do_run, &j);
    if (j.runs == NULL || atomic_load(&j.is_lost)) {
        free(j.runs);
        snprintf(err->text, sizeof err->text, "out of memory");
        return STG_IO;
    }
    d->is_stopped = atomic_load(d->stop);
    for (size_t i = first; i < d->count && !d->is_stopped; i++) {
        d->field[i].runs = &j.runs[(i - first) * each];
        d->field[i].verdict =
            stg_drain_judge(&d->question, d->field[i].runs, scenarios, reps);
        if (kept == NULL)
            d->field[i].runs = NULL;
    }
    if (kept != NULL)
        *kept = j.runs;
    else
        free(j.runs);
    return STG_OK;
}

/* -- who is in a round ----------------------------------------------------- */

static bool has(const stg_drain *d, const stg_drain_candidate *c)
{
    for (size_t i = 0; i < d->count; i++)
        if (d->field[i].candidate.start == c->start &&
            stg_policy_equal(&d->field[i].candidate.policy, &c->policy))
            return true;
    return false;
}

static void add(stg_drain *d, const stg_drain_candidate *c)
{
    stg_drained *each = &d->field[d->count];

    if (d->count == STG_DRAIN_FIELD_MAX || has(d, c))
        return;
    *each =
        (stg_drained){.candidate = *c, .is_plain = d->count < STG_DRAIN_PLAIN};
    stg_drain_name(c, each->name);
    d->count++;
}

/* The best first. qsort() keeps no order; of equals the one with a bound on its
 * attempts is the safer one, and then the names decide. */
static int compare(const void *left, const void *right)
{
    const stg_drained *a = left, *b = right;
    int order = stg_drain_compare(&a->verdict, &b->verdict);
    uint64_t more = a->candidate.policy.attempts_max,
             less = b->candidate.policy.attempts_max;

    if (order == 0)
        order = (more > less) - (more < less);
    return order != 0 ? order : strcmp(a->name, b->name);
}

static void sort(stg_drain *d)
{
    qsort(d->field, d->count, sizeof *d->field, compare);
}

/* Whether one that was chosen came to the very same. */
static bool has_same(const stg_drained *chosen, size_t count,
                     const stg_drained *each)
{
    for (size_t i = 0; i < count; i++)
        if (chosen[i].verdict.time == each->verdict.time &&
            chosen[i].verdict.missed == each->verdict.missed &&
            chosen[i].verdict.calls == each->verdict.calls)
            return true;
    return false;
}

/* Fewer calls than all that were chosen, and none of them missed by more. */
static bool is_cheap(const stg_drained *chosen, size_t count,
                     const stg_drained *each)
{
    for (size_t i = 0; i < count; i++)
        if (chosen[i].verdict.calls <= each->verdict.calls * 1.05 ||
            chosen[i].verdict.missed < each->verdict.missed)
            return false;
    return true;
}

/* Chooses from the sorted field: those for comparison; the best; the best with the
 * starts at once, and with a spread of them; those with fewer and fewer calls; and
 * the next best. */
static void choose(stg_drain *d, size_t most)
{
    stg_drained *chosen = calloc(STG_DRAIN_FIELD_MAX, sizeof *chosen);
    bool has_start[2] = {false, false};
    size_t count = 0, cheap = 0;

    if (chosen == NULL)
        return; // the round is larger, that is all
    for (size_t i = 0; i < d->count; i++) {
        const stg_drained *each = &d->field[i];
        bool is_spread = each->candidate.start > 0;

        if (each->is_plain || !has_start[is_spread] ||
            (cheap < CHEAP && is_cheap(chosen, count, each))) {
            cheap += !each->is_plain && has_start[is_spread];
            has_start[is_spread] |= !each->is_plain;
            chosen[count++] = *each;
        }
    }
    for (size_t i = 0; i < d->count && count < most; i++)
        if (!has_same(chosen, count, &d->field[i]))
            chosen[count++] = d->field[i];
    memcpy(d->field, chosen, count * sizeof *chosen);
    d->count = count;
    free(chosen);
    sort(d);
}

/* -- all rounds ------------------------------------------------------------ */

static stg_status hold_first(stg_drain *d, stg_error *err)
{
    stg_drain_candidate c;
    stg_status status;
    size_t before = 0;

    for (size_t i = 0; stg_drain_make(&d->question, i, &c); i++)
        add(d, &c);
    for (int i = 0;; i++) {
        status = hold(d, before, STG_DRAIN_SCENARIOS_FIRST, 1, NULL, err);
        if (status != STG_OK || d->is_stopped)
            return status;
        sort(d);
        before = d->count;
        if (i == SEARCHES)
            return STG_OK;
        for (size_t k = 0; k < PARENTS && k < before; k++)
            for (size_t n = 0; n < STG_DRAIN_NEIGHBOURS; n++)
                if (!d->field[k].is_plain &&
                    stg_drain_near(&d->question, &d->field[k].candidate, n, &c))
                    add(d, &c);
    }
}

/* Puts the one with fewest calls in front of those whose time is within 2 % of the
 * shortest and that miss no more: a step of stg_drain_compare() may divide
 * them. */
static void prefer_few_calls(stg_drain *d)
{
    size_t best = 0, fastest = 0;
    stg_drained chosen;

    for (size_t i = 0; i < d->count; i++)
        if (d->field[i].verdict.missed <= d->field[0].verdict.missed &&
            d->field[i].verdict.time < d->field[fastest].verdict.time)
            fastest = i;
    for (size_t i = 0; i < d->count; i++)
        if (d->field[i].verdict.missed <= d->field[0].verdict.missed &&
            d->field[i].verdict.time <= 1.02 * d->field[fastest].verdict.time &&
            (d->field[i].verdict.calls < d->field[best].verdict.calls ||
             d->field[best].verdict.time >
                 1.02 * d->field[fastest].verdict.time))
            best = i;
    chosen = d->field[best];
    memmove(&d->field[1], &d->field[0], best * sizeof chosen);
    d->field[0] = chosen;
}

static stg_status find(stg_drain *d, stg_contention_run **runs, stg_error *err)
{
    stg_status status = hold_first(d, err);

    d->tried = d->count;
    if (status != STG_OK || d->is_stopped)
        return status;
    choose(d, SEMIFINAL);
    status = hold(d, 0, STG_DRAIN_SCENARIOS, 1, NULL, err);
    if (status != STG_OK || d->is_stopped)
        return status;
    sort(d);
    choose(d, STG_DRAINED_MAX);
    status = hold(d, 0, STG_DRAIN_SCENARIOS, d->ask->reps, runs, err);
    if (status != STG_OK || d->is_stopped)
        return status;
    sort(d);
    prefer_few_calls(d);
    return STG_OK;
}

/* In clients; the searches may be shorter. */
static double work_of(const stg_drain *d)
{
    double first = 0, all = 0;

    for (size_t i = 0; i < STG_DRAIN_SCENARIOS; i++) {
        double clients = stg_drain_options(&d->question, i).clients;

        first += i < STG_DRAIN_SCENARIOS_FIRST ? clients : 0;
        all += clients;
    }
    return first * (FIRST + SEARCHES * PARENTS * STG_DRAIN_GENES) +
           all * (SEMIFINAL + STG_DRAINED_MAX * d->ask->reps);
}

int stg_drain_answer(stg_drain *d, const char *who)
{
    stg_contention_run *runs = NULL;
    stg_error err;
    stg_status status;
    int code;

    d->stop = stg_sim_stop_watch();
    stg_sim_progress_begin(&d->progress, work_of(d));
    status = find(d, &runs, &err);
    stg_sim_progress_end(&d->progress);
    if (status != STG_OK) {
        stg_options_complain(who, "%s", err.text);
        code = STG_EXIT_USAGE;
    } else if (d->is_stopped) {
        stg_options_complain(who, "interrupted before there was an answer");
        code = STG_EXIT_INTERRUPTED;
    } else {
        code = stg_drain_show(d, who);
        if (code == 0 && d->field[0].verdict.unfinished > 0)
            code = 1;
    }
    free(runs);
    return code;
}
