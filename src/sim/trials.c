/* Runs of overloads, in batches over threads. Run number i of each trial has the
 * same seed, so that policies are compared under the same arrivals. Results are
 * added up in order after each batch, so that sums of floating point do not
 * depend on the threads; a run that was stopped counts only where there is no
 * whole one. */
#include "sim/trials.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "sim/parallel.h"

enum {
    RUNS_PER_THREAD = 4, // that wait to be added up
    SERIES_MAX =
        RUNS_PER_THREAD * STG_OVERLOAD_BINS_MAX * (int)sizeof(stg_overload_bin),
};

/* Some runs that are done together, in order of their numbers: the first run of
 * each trial, then the second of each ... */
typedef struct batch {
    stg_trials *trials;
    size_t first, count;
    stg_overload_result *results;
    stg_status *status;
} batch;

static const stg_trial *trial_of(const stg_trials *t, size_t number)
{
    return &t->all[number % t->count];
}

/* In operations. A closed load has one for each client in a think time and a
 * millisecond. It is for the share on the terminal only. */
double stg_trial_work(const stg_overload_options *o)
{
    double each = (double)stg_distribution_mean(&o->load.think);

    if (!o->load.is_closed)
        return stg_load_total(o);
    return o->load.clients * ((double)o->end_at / (each + (double)STG_MS));
}

/* Called from several threads: each writes only to its own place of the
 * results. */
static void do_run(void *ctx, size_t number, unsigned worker)
{
    batch *b = ctx;
    const stg_trials *t = b->trials;
    size_t run = b->first + number;
    const stg_trial *trial = trial_of(t, run);

    (void)worker;
    b->status[number] =
        stg_overload_run(&trial->options, t->seed, run / t->count, t->stop,
                         &t->memory, &b->results[number]);
    if (t->on_run != NULL)
        t->on_run(t->ctx, stg_trial_work(&trial->options));
}

static bool is_stopped(const stg_trials *t)
{
    return t->stop != NULL && atomic_load(t->stop);
}

/* A run that was stopped is taken where there is nothing better. */
static bool is_counted(const stg_trials *t, const stg_trial *trial,
                       const stg_overload_result *r)
{
    if (!r->is_cut || !is_stopped(t))
        return true;
    return trial->summary.runs == 0 && r->bin_count > 0;
}

/* After an error the others are still freed. */
static stg_status add_up(batch *b)
{
    const stg_trials *t = b->trials;
    stg_status status = STG_OK;

    for (size_t i = 0; i < b->count; i++) {
        stg_trial *trial = &t->all[(b->first + i) % t->count];
        stg_overload_result *r = &b->results[i];

        if (b->status[i] != STG_OK) {
            status = b->status[i];
            continue;
        }
        if (is_counted(t, trial, r))
            stg_overload_summary_add(&trial->summary, r);
        stg_overload_free(r, &t->memory);
    }
    return status;
}

/* As many runs at a time as results fit: a few for each thread. */
static stg_status do_all(stg_trials *t, unsigned threads)
{
    size_t room = (size_t)threads * RUNS_PER_THREAD;
    size_t total = t->count * t->reps;
    stg_status status = STG_OK;
    batch b = {.trials = t};

    b.results = calloc(room, sizeof *b.results);
    b.status = calloc(room, sizeof *b.status);
    if (b.results == NULL || b.status == NULL)
        status = STG_IO;
    while (status == STG_OK && b.first < total && !is_stopped(t)) {
        b.count = total - b.first < room ? total - b.first : room;
        stg_parallel_run(b.count, threads, do_run, &b);
        status = add_up(&b);
        b.first += b.count;
    }
    free(b.results);
    free(b.status);
    return status;
}

/* -- what it takes */

/* All threads may be in the largest trial at once. */
static uint64_t largest_run(const stg_trials *t)
{
    uint64_t most = 0;

    for (size_t i = 0; i < t->count; i++) {
        uint64_t size = stg_overload_memory(&t->all[i].options);

        if (size > most)
            most = size;
    }
    return most;
}

/* They exist all the time, whereas results of runs go after each batch. */
static uint64_t all_summaries(const stg_trials *t)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < t->count; i++)
        sum += stg_overload_summary_memory(&t->all[i].options, t->reps);
    return sum;
}

/* How many threads fit; 0: not even one. */
static unsigned fit_threads(const stg_trials *t)
{
    uint64_t each = largest_run(t) + SERIES_MAX;
    uint64_t shared = all_summaries(t), fit;

    if (t->memory_max < shared)
        return 0;
    fit = (t->memory_max - shared) / each;
    return fit < t->threads ? (unsigned)fit : t->threads;
}

static stg_status refuse_size(const stg_trials *t, stg_error *err)
{
    uint64_t needed = largest_run(t) + SERIES_MAX + all_summaries(t);

    snprintf(err->text, sizeof err->text,
             "this needs up to %" PRIu64
             " MiB of memory, and there are %" PRIu64
             ": a lower rate, fewer clients, a shorter deadline or fewer runs "
             "fit",
             (needed >> 20) + 1, t->memory_max >> 20);
    return STG_INVALID;
}

/* stg_trials_close() is due in either case: all summaries are zeroed first. */
stg_status stg_trials_run(stg_trials *t, stg_error *err)
{
    unsigned threads = fit_threads(t);
    stg_status status = STG_OK;

    for (size_t i = 0; i < t->count; i++)
        t->all[i].summary = (stg_overload_summary){0};
    if (threads == 0)
        return refuse_size(t, err);
    for (size_t i = 0; i < t->count && status == STG_OK; i++)
        status = stg_overload_summary_init(
            &t->all[i].summary, &t->all[i].options, t->reps, &t->memory);
    if (status == STG_OK)
        status = do_all(t, threads);
    for (size_t i = 0; i < t->count; i++)
        t->is_partial |= is_stopped(t) && (t->all[i].summary.runs < t->reps ||
                                           t->all[i].summary.is_cut);
    if (status != STG_OK)
        snprintf(err->text, sizeof err->text, "out of memory");
    return status;
}

void stg_trials_close(stg_trials *t)
{
    for (size_t i = 0; i < t->count; i++)
        stg_overload_summary_close(&t->all[i].summary);
}
