/* A study: each policy with each number of clients, repeated. Repetitions are
 * blocks of about a 32nd of all the work, the largest first, spread over threads;
 * totals are merged under a lock. Each repetition has a seed of its own, so that
 * the result does not depend on the threads. What would not fit memory is refused
 * before it begins. */
#include "cli/sim/contention.h"

#include <stdio.h>
#include <stdlib.h>

#include "cli/sim/sim.h"
#include "sim/parallel.h"

/* Repetitions of a cell that a thread does with one workplace. */
typedef struct block {
    stg_study_cell *cell;
    uint32_t first, count;
} block;

typedef struct work {
    stg_study *study;
    block *blocks;
    size_t count;
    stg_sim_progress progress;
    pthread_mutex_t lock; /* of the cells' books */
    atomic_bool is_lost;  /* there was no memory */
} work;

/* -- what it takes */

stg_contention_options stg_study_options_of(const stg_study *s,
                                            const stg_study_cell *cell)
{
    const stg_study_model *model =
        &s->options.models[cell->policy - s->options.policies.at];
    stg_contention_options o = s->options.each;

    o.resource = model->resource;
    o.network = model->network;
    o.start_spread = model->start_spread;
    o.clients = cell->clients;
    o.policy = &cell->policy->policy;
    return o;
}

/* An upper bound for one set of totals: tallies, a curve, and 40 bytes for each
 * slice of time. It must follow stg_contention_totals. */
static uint64_t book_size(const stg_study *s)
{
    enum { TALLIES = 400 * 1024 };

    return TALLIES + stg_sim_curve_size() +
           2 * s->options.slices * (2 * sizeof(uint64_t) + 4);
}

static uint64_t largest_size(const stg_study *s)
{
    uint64_t most = 0;

    for (size_t i = 0; i < s->count; i++) {
        stg_contention_options o = stg_study_options_of(s, &s->cells[i]);
        uint64_t size = stg_contention_size(&o);

        if (size > most)
            most = size;
    }
    return most + book_size(s);
}

/* How many threads fit; 0: not even one. */
static unsigned fit_threads(const stg_study *s)
{
    uint64_t each = largest_size(s);
    uint64_t shared =
        s->count *
        (book_size(s) + (uint64_t)s->options.reps * sizeof(stg_contention_run));
    uint64_t left = s->options.memory_max, fit;

    if (left < shared)
        return 0;
    fit = (left - shared) / each;
    return fit < s->options.threads ? (unsigned)fit : s->options.threads;
}

/* With one thread: that is the least that would do. */
static stg_status refuse_size(const stg_study *s, stg_error *err)
{
    uint64_t needed =
        largest_size(s) +
        s->count * (book_size(s) +
                    (uint64_t)s->options.reps * sizeof(stg_contention_run));

    snprintf(err->text, sizeof err->text,
             "this needs %ju MiB of memory, and there are %ju: fewer clients, "
             "policies or repetitions fit",
             (uintmax_t)(needed >> 20) + 1,
             (uintmax_t)(s->options.memory_max >> 20));
    return STG_INVALID;
}

/* -- the work */

/* In any unit: calls grow faster than clients do. */
static double work_of(const stg_study_cell *cell)
{
    return (double)cell->clients * (20 + (double)cell->clients);
}

/* The run number is the number within the cell, and the seed follows from it: a
 * repetition gives the same result in whichever block it is. */
static bool repeat(work *w, const block *b, stg_contention *c,
                   stg_contention_totals *totals)
{
    stg_contention_run *runs = b->cell->runs;

    for (uint32_t i = b->first; i < b->first + b->count; i++) {
        stg_contention_run *run = &runs[i];

        if (w->study->options.each.stop != NULL &&
            atomic_load(w->study->options.each.stop))
            break;
        if (!stg_contention_repeat(c, i, run, totals))
            return false;
        stg_sim_progress_add(&w->progress, work_of(b->cell));
    }
    return true;
}

static bool merge(work *w, stg_study_cell *cell, stg_contention_totals *totals)
{
    bool is_ok;

    (void)pthread_mutex_lock(&w->lock);
    is_ok = stg_contention_totals_merge(&cell->totals, totals);
    (void)pthread_mutex_unlock(&w->lock);
    return is_ok;
}

/* Totals of its own, merged at the end: the lock is taken once a block. */
static void do_block(void *ctx, size_t number, unsigned worker)
{
    work *w = ctx;
    const block *b = &w->blocks[number];
    const stg_study *s = w->study;
    stg_contention_options o = stg_study_options_of(s, b->cell);
    stg_contention_totals totals;
    stg_contention *c;

    (void)worker;
    if (stg_contention_new(&c, &s->memory, &o, NULL) != STG_OK) {
        atomic_store(&w->is_lost, true);
        return;
    }
    stg_contention_totals_init(&totals, s->options.slice, s->options.slices,
                               &s->memory);
    if (!repeat(w, b, c, &totals) || !merge(w, b->cell, &totals))
        atomic_store(&w->is_lost, true);
    stg_contention_totals_close(&totals);
    stg_contention_free(c);
}

/* How many repetitions a block of the cell has: as many as are a 32nd of all
 * the work, or all of the cell's. Each block costs empty totals, and the adding
 * up of a full one. */
static uint32_t block_of(const stg_study *s, const stg_study_cell *cell,
                         double total)
{
    double share = total / 32 / work_of(cell);

    if (share >= s->options.reps)
        return s->options.reps;
    return share < 1 ? 1 : (uint32_t)share;
}

/* The largest cells first, so that no thread is left with one at the end. */
static bool make_blocks(work *w, double total)
{
    const stg_study *s = w->study;
    uint32_t reps = s->options.reps;
    size_t room = 1; // calloc() of none may be NULL

    for (size_t i = 0; i < s->count; i++)
        room += reps / block_of(s, &s->cells[i], total) + 1;
    w->blocks = calloc(room, sizeof *w->blocks);
    if (w->blocks == NULL)
        return false;
    for (size_t i = s->count; i-- > 0;) {
        uint32_t each = block_of(s, &s->cells[i], total);

        for (uint32_t first = 0; first < reps; first += each)
            w->blocks[w->count++] = (block){
                .cell = &s->cells[i],
                .first = first,
                .count = reps - first < each ? reps - first : each,
            };
    }
    return true;
}

static stg_status do_all(stg_study *s, stg_error *err)
{
    work w = {.study = s};
    double total = 0;

    for (size_t i = 0; i < s->count; i++)
        total += work_of(&s->cells[i]) * s->options.reps;
    if (!make_blocks(&w, total))
        goto out;
    (void)pthread_mutex_init(&w.lock, NULL);
    stg_sim_progress_begin(&w.progress, total);
    stg_parallel_run(w.count, s->options.threads, do_block, &w);
    stg_sim_progress_end(&w.progress);
    (void)pthread_mutex_destroy(&w.lock);
    free(w.blocks);
    if (!atomic_load(&w.is_lost))
        return STG_OK;
out:
    snprintf(err->text, sizeof err->text, "out of memory");
    return STG_IO;
}

/* -- the study */

/* The policies of one number of clients stand together; contention_show.c takes
 * them in such groups. */
static bool make_cells(stg_study *s)
{
    const stg_study_options *o = &s->options;

    s->count = o->client_count * o->policies.count;
    s->cells = calloc(s->count, sizeof *s->cells);
    if (s->cells == NULL)
        return false;
    for (size_t i = 0; i < s->count; i++) {
        stg_study_cell *cell = &s->cells[i];

        cell->clients = o->clients[i / o->policies.count];
        cell->policy = &o->policies.at[i % o->policies.count];
        stg_contention_totals_init(&cell->totals, o->slice, o->slices,
                                   &s->memory);
    }
    return true;
}

static bool make_runs(stg_study *s)
{
    for (size_t i = 0; i < s->count; i++) {
        s->cells[i].runs = calloc(s->options.reps, sizeof *s->cells[i].runs);
        if (s->cells[i].runs == NULL)
            return false;
    }
    return true;
}

/* A run that was stopped, or never begun, is left out of the results. */
static bool has_ended(const stg_contention_run *run)
{
    return run->end != STG_END_NONE && run->end != STG_END_STOPPED;
}

/* After an error stg_study_close() is due, too. A repetition counts only if it
 * ended by itself. */
stg_status stg_study_run(stg_study *s, const stg_study_options *options,
                         stg_error *err)
{
    stg_status status;

    *s = (stg_study){.options = *options, .memory = stg_sim_memory()};
    if (!make_cells(s))
        goto out;
    s->options.threads = fit_threads(s);
    if (s->options.threads == 0)
        return refuse_size(s, err);
    if (!make_runs(s))
        goto out;
    status = do_all(s, err);
    for (size_t i = 0; i < s->count; i++) {
        stg_study_cell *cell = &s->cells[i];

        for (uint32_t j = 0; j < s->options.reps; j++)
            cell->reps += has_ended(&cell->runs[j]) ? 1 : 0;
        s->is_partial |= cell->reps < s->options.reps;
    }
    return status;
out:
    snprintf(err->text, sizeof err->text, "out of memory");
    return STG_IO;
}

/* Also after a stg_study_run() that failed half way. */
void stg_study_close(stg_study *s)
{
    for (size_t i = 0; s->cells != NULL && i < s->count; i++) {
        stg_contention_totals_close(&s->cells[i].totals);
        free(s->cells[i].runs);
    }
    free(s->cells);
    s->cells = NULL;
}

bool stg_study_evaluate(const stg_study *s, const stg_study_cell *cell,
                        stg_contention_result *result)
{
    return stg_contention_estimate(cell->runs, s->options.reps, &s->memory,
                                   result);
}
