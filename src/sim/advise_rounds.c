/* The rounds of advice: successive halving, with a search beside the
 * best. All candidates go through the scenarios that tell most apart, once; so do
 * the neighbours of the best; the better ones and their neighbours go through all
 * scenarios once, and the finalists several times. All runs of one number have
 * the same seed, so that differences are those of the policies.
 *
 * Plain policies stay in for comparison, so that the answer shows what it gains. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/advise_rounds.h"

enum {
    PLAIN = 2,        // the first two are for comparison
    FIRST = 175,      // candidates of the first round, about
    PART = 25,        // candidates at a time
    SEARCHES = 2,     // rounds of neighbours, in the first scenarios and in all
    PARENTS = 5,      // whose neighbours are tried
    LAST_PARENTS = 2, // in all scenarios
    SEMIFINAL = 20,   // those that go through all scenarios once
    OF_A_KIND = 3,    // finalists at most; twice as many in the round before
};

typedef struct field {
    const stg_advice *advice;
    stg_advised all[STG_CANDIDATES_MAX];
    size_t count;
} field;

/* -- one round ------------------------------------------------------------- */

/* The policy may be changed for the simulated scale; the candidate keeps the
 * one that is advised. */
void stg_advice_make_trial(const stg_advice *a, stg_scenario s,
                           const stg_advised *advised, stg_trial *trial)
{
    const stg_policy *policy = &advised->candidate.policy;

    trial->options = stg_scenario_options(&a->question, s);
    trial->options.policy = stg_question_policy(&a->question, policy);
    stg_overload_settle(&trial->options);
    memcpy(trial->name, advised->name, sizeof trial->name);
}

stg_status stg_advice_run(stg_advice *a, stg_trials *t, stg_error *err)
{
    a->prepare(a->ctx, t);
    for (size_t i = 0; i < t->count; i++)
        if (stg_overload_check(&t->all[i].options, err) != STG_OK)
            return STG_INVALID;
    return stg_trials_run(t, err);
}

/* Runs trials of `count` candidates in the first scenarios, a candidate's
 * together. */
static stg_status try_out(stg_advice *a, const stg_advised *all, size_t count,
                          size_t scenarios, uint32_t reps, stg_error *err)
{
    stg_trials *t = &a->trials;

    *t = (stg_trials){.reps = reps,
                      .all = calloc(count * scenarios + 1, sizeof *t->all)};
    if (t->all == NULL) {
        snprintf(err->text, sizeof err->text, "out of memory");
        return STG_IO;
    }
    for (; t->count < count * scenarios; t->count++)
        stg_advice_make_trial(a, stg_scenario_at(t->count % scenarios),
                              &all[t->count / scenarios], &t->all[t->count]);
    return stg_advice_run(a, t, err);
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

static bool has_runs(const stg_trial *trials, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (trials[i].summary.runs > 0)
            return true;
    return false;
}

/* all[i].trials points into t, which has to outlive it. Of one that an
 * interruption left without a run what was known before stays. */
static void evaluate(const stg_advice *a, const stg_trials *t, stg_advised *all,
                     size_t count, size_t scenarios)
{
    for (size_t i = 0; i < count; i++) {
        const stg_trial *trials = &t->all[i * scenarios];

        if (!has_runs(trials, scenarios))
            continue;
        all[i].verdict = stg_verdict_begin();
        all[i].trials = trials;
        for (size_t k = 0; k < scenarios; k++)
            stg_verdict_add(&all[i].verdict, &a->question, k,
                            &trials[k].summary);
    }
}

/* How much less of the operations one lost than another one. */
static stg_estimate gain_of(const stg_advised *with, const stg_advised *without)
{
    const stg_overload_summary *left[STG_SCENARIOS], *right[STG_SCENARIOS];

    for (size_t k = 0; k < STG_SCENARIOS; k++) {
        left[k] = &with->trials[k].summary;
        right[k] = &without->trials[k].summary;
    }
    return stg_verdict_gain(left, right, STG_SCENARIOS);
}

/* The best first. qsort() keeps no order, so of equals the names decide. */
static int compare(const void *left, const void *right)
{
    const stg_advised *a = left, *b = right;
    int order = stg_verdict_compare(&a->verdict, &b->verdict);

    return order != 0 ? order : strcmp(a->name, b->name);
}

/* Those that ran, if there is not to be more of the round. */
static void keep_part(stg_advice *a, const stg_advised *all, size_t count,
                      size_t scenarios)
{
    a->is_partial = true;
    a->scenarios = scenarios;
    a->count = 0;
    for (size_t i = 0; i < count; i++)
        if (all[i].verdict.runs > 0)
            a->finalists[a->count++] = all[i];
}

/* Some of a round, once each. Their trials end with it, unless it was
 * interrupted. */
static stg_status hold_part(stg_advice *a, stg_advised *all, size_t count,
                            size_t scenarios, stg_error *err)
{
    stg_status status = try_out(a, all, count, scenarios, 1, err);

    if (status != STG_OK)
        return status;
    evaluate(a, &a->trials, all, count, scenarios);
    if (a->trials.is_partial)
        return STG_OK;
    end(&a->trials);
    for (size_t i = 0; i < count; i++)
        all[i].trials = NULL;
    return STG_OK;
}

/* A round of those from `first` on, once each: a part at a time, for the memory
 * that it takes. Then all are in order. */
static stg_status hold_round(stg_advice *a, field *f, size_t first,
                             size_t scenarios, stg_error *err)
{
    stg_status status = STG_OK;

    for (size_t at = first; at < f->count && status == STG_OK; at += PART) {
        size_t left = f->count - at;

        status = hold_part(a, &f->all[at], left < PART ? left : PART, scenarios,
                           err);
        if (status == STG_OK && a->trials.is_partial) {
            keep_part(a, f->all, f->count, scenarios);
            return STG_OK;
        }
    }
    qsort(f->all, f->count, sizeof *f->all, compare);
    return status;
}

/* -- who is in a round ----------------------------------------------------- */

static bool has(const field *f, const stg_candidate *c)
{
    for (size_t i = 0; i < f->count; i++)
        if (stg_policy_equal(&f->all[i].candidate.policy, &c->policy))
            return true;
    return false;
}

static void add(field *f, const stg_candidate *c)
{
    stg_advised *advised = &f->all[f->count];

    if (f->count == STG_CANDIDATES_MAX || has(f, c))
        return;
    *advised = (stg_advised){.candidate = *c, .is_plain = f->count < PLAIN};
    stg_candidate_name(c, advised->name);
    if (f->count == 1)
        memcpy(advised->name, "no budget", sizeof "no budget");
    f->count++;
}

static void add_all(field *f)
{
    stg_candidate c;

    for (size_t i = 0; stg_candidate_make(&f->advice->question, i, &c); i++)
        add(f, &c);
}

/* Those beside the best. The parents are in order, in front. */
static void add_neighbours(field *f, size_t parents)
{
    stg_candidate c;

    for (size_t k = 0; k < parents && k < f->count; k++)
        for (size_t i = 0; i < STG_NEIGHBOURS; i++)
            if (stg_candidate_near(&f->advice->question, &f->all[k].candidate,
                                   i, &c))
                add(f, &c);
}

/* Whether one is in that came to the very same. */
static bool has_same(const stg_advice *a, const stg_advised *each)
{
    for (size_t i = 0; i < a->count; i++)
        if (stg_verdict_equal(&a->finalists[i].verdict, &each->verdict))
            return true;
    return false;
}

static size_t count_kind(const stg_advice *a, const stg_advised *each)
{
    size_t count = 0;

    for (size_t i = 0; i < a->count; i++)
        count += stg_candidate_kind(&a->finalists[i].candidate) ==
                 stg_candidate_kind(&each->candidate);
    return count;
}

/* Those for comparison, whatever they came to; and the best `most`, some of each
 * kind, for ten that differ in nothing that matters are no choice. */
static void choose(stg_advice *a, const field *f, size_t most, size_t of_a_kind)
{
    a->count = 0;
    for (size_t i = 0; i < f->count; i++)
        if (f->all[i].is_plain)
            a->finalists[a->count++] = f->all[i];
    for (size_t i = 0; i < f->count && a->count < most; i++)
        if (!f->all[i].is_plain && !has_same(a, &f->all[i]) &&
            count_kind(a, &f->all[i]) < of_a_kind)
            a->finalists[a->count++] = f->all[i];
}

/* -- do not retry ---------------------------------------------------------- */

/* Whether one recovers as often as one that does not retry and loses less, by
 * more than chance makes. */
static bool beats(const stg_advised *each, const stg_advised *none)
{
    return each->verdict.failed <= none->verdict.failed &&
           stg_verdict_is_gain(gain_of(each, none));
}

/* The first that does not retry; a->count: all do. */
static size_t find_none(const stg_advice *a)
{
    size_t i = 0;

    while (i < a->count && a->finalists[i].candidate.policy.attempts_max > 1)
        i++;
    return i;
}

/* Puts the first in front that beats those that do not retry, or these, if there is
 * none: what was ahead of them by chance does nothing for anybody. */
static void prefer_none(stg_advice *a)
{
    size_t none = find_none(a), i = 0;
    stg_advised chosen;

    if (none == a->count ||
        a->finalists[0].verdict.failed < a->finalists[none].verdict.failed)
        return;
    while (i < none && !beats(&a->finalists[i], &a->finalists[none]))
        i++;
    chosen = a->finalists[i];
    memmove(&a->finalists[1], &a->finalists[0], i * sizeof chosen);
    a->finalists[0] = chosen;
}

/* -- all rounds ------------------------------------------------------------ */

/* The neighbours of the best few, and theirs, as long as there are new ones. */
static stg_status search(stg_advice *a, field *f, size_t parents,
                         size_t scenarios, stg_error *err)
{
    stg_status status = STG_OK;

    for (int i = 0; i < SEARCHES && status == STG_OK && !a->is_partial; i++) {
        size_t before = f->count;

        add_neighbours(f, parents);
        if (f->count == before)
            return STG_OK;
        status = hold_round(a, f, before, scenarios, err);
    }
    return status;
}

/* All candidates, then those beside the best, in the first scenarios. */
static stg_status hold_first(stg_advice *a, field *f, stg_error *err)
{
    stg_status status;

    add_all(f);
    status = hold_round(a, f, 0, STG_SCENARIOS_FIRST, err);
    if (status == STG_OK && !a->is_partial)
        status = search(a, f, PARENTS, STG_SCENARIOS_FIRST, err);
    a->tried = f->count;
    return status;
}

/* The better ones in all scenarios, once, and those beside the best. */
static stg_status hold_semifinal(stg_advice *a, field *f, stg_error *err)
{
    stg_status status;

    choose(a, f, SEMIFINAL, 2 * OF_A_KIND);
    memcpy(f->all, a->finalists, a->count * sizeof *f->all);
    f->count = a->count;
    status = hold_round(a, f, 0, STG_SCENARIOS, err);
    if (status == STG_OK && !a->is_partial)
        status = search(a, f, LAST_PARENTS, STG_SCENARIOS, err);
    return status;
}

/* The trials stay until the answer is shown: verdicts and charts point into
 * them. */
static stg_status hold_final(stg_advice *a, field *f, stg_error *err)
{
    stg_status status;

    choose(a, f, STG_ADVISED_MAX, OF_A_KIND);
    a->scenarios = STG_SCENARIOS;
    status = try_out(a, a->finalists, a->count, STG_SCENARIOS, a->reps, err);
    if (status != STG_OK)
        return status;
    evaluate(a, &a->trials, a->finalists, a->count, STG_SCENARIOS);
    if (a->trials.is_partial) {
        keep_part(a, a->finalists, a->count, STG_SCENARIOS);
        return STG_OK;
    }
    qsort(a->finalists, a->count, sizeof *a->finalists, compare);
    prefer_none(a);
    return STG_OK;
}

double stg_advice_work(const stg_advice *a)
{
    double work[2] = {0, 0}; // in the first scenarios, in all

    for (size_t i = 0; i < STG_SCENARIOS; i++) {
        stg_overload_options o =
            stg_scenario_options(&a->question, stg_scenario_at(i));

        work[0] += i < STG_SCENARIOS_FIRST ? stg_trial_work(&o) : 0;
        work[1] += stg_trial_work(&o);
    }
    return work[0] * FIRST + work[0] * SEARCHES * PARENTS * STG_GENES +
           work[1] * SEMIFINAL + work[1] * SEARCHES * LAST_PARENTS * STG_GENES +
           work[1] * STG_ADVISED_MAX * a->reps;
}

stg_status stg_advice_find(stg_advice *a, stg_error *err)
{
    field *f = calloc(1, sizeof *f);
    stg_status status;

    if (f == NULL) {
        snprintf(err->text, sizeof err->text, "out of memory");
        return STG_IO;
    }
    f->advice = a;
    status = hold_first(a, f, err);
    if (status == STG_OK && !a->is_partial)
        status = hold_semifinal(a, f, err);
    if (status == STG_OK && !a->is_partial)
        status = hold_final(a, f, err);
    if (status == STG_OK && !a->is_partial)
        status = stg_advice_find_cliffs(a, err);
    free(f);
    return status;
}

void stg_advice_end(stg_advice *a)
{
    end(&a->trials);
}

stg_advice_report stg_advice_report_on(const stg_advice *a,
                                       stg_advice_case cases[STG_ADVISED_MAX])
{
    stg_advice_report r = {.question = &a->question,
                           .cases = cases,
                           .count = a->count,
                           .tried = a->tried};

    memcpy(r.cliffs, a->cliffs, sizeof r.cliffs);
    for (size_t i = 0; i < a->count; i++) {
        const stg_advised *each = &a->finalists[i];

        cases[i] = (stg_advice_case){
            .name = each->name,
            .retries = each->candidate.policy.attempts_max > 1,
            .is_plain = each->is_plain,
            .verdict = &each->verdict,
            .gain = gain_of(&a->finalists[0], each)};
    }
    return r;
}
