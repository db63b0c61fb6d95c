#include "sim/contention.h"

#include <string.h>

#include "sim/statistics.h"

/* What many repetitions of a contention add up to. A series counts calls by
 * slice of time. The run under way is counted in `now`, and moves to the sums
 * when it is finished: the square of a whole run's count is needed for the
 * standard error, and a stopped run can be dropped (only `beyond` keeps
 * its calls).
 *
 * Sums are integers, so that merging the totals of threads gives the same
 * numbers in any order. Only a finished series may be merged or joined: both
 * leave `now` out. */

void stg_sim_series_init(stg_sim_series *s, stg_ns width, size_t room,
                         const stg_memory *memory)
{
    *s = (stg_sim_series){.width = width, .room = room, .memory = memory};
}

static void release(const stg_sim_series *s, void *bytes)
{
    if (bytes != NULL)
        s->memory->release(s->memory->ctx, bytes);
}

void stg_sim_series_close(stg_sim_series *s)
{
    release(s, s->sums);
    release(s, s->squares);
    release(s, s->now);
    stg_sim_series_init(s, s->width, s->room, s->memory);
}

/* A longer array with what the old one has, and zeros. */
static void *grow_array(const stg_sim_series *s, const void *old, size_t made,
                        size_t needed, size_t size)
{
    char *grown = s->memory->allocate(s->memory->ctx, needed * size);

    if (grown == NULL)
        return NULL;
    if (old != NULL)
        memcpy(grown, old, made * size);
    memset(grown + made * size, 0, (needed - made) * size);
    return grown;
}

/* Room for `slices` of them, at most room. */
/* All three arrays grow, or none does. */
static bool reach(stg_sim_series *s, size_t slices)
{
    size_t needed = s->made == 0 ? 64 : s->made;
    uint64_t *sums, *squares;
    uint32_t *now;

    if (slices <= s->made)
        return true;
    while (needed < slices)
        needed *= 2;
    if (needed > s->room)
        needed = s->room;
    sums = grow_array(s, s->sums, s->made, needed, sizeof *sums);
    squares = grow_array(s, s->squares, s->made, needed, sizeof *squares);
    now = grow_array(s, s->now, s->made, needed, sizeof *now);
    if (sums == NULL || squares == NULL || now == NULL) {
        release(s, sums);
        release(s, squares);
        release(s, now);
        return false;
    }
    release(s, s->sums);
    release(s, s->squares);
    release(s, s->now);
    s->sums = sums;
    s->squares = squares;
    s->now = now;
    s->made = needed;
    return true;
}

bool stg_sim_series_add(stg_sim_series *s, stg_ns at)
{
    uint64_t slice;

    if (s->room == 0)
        return true;
    if (at - s->from >= s->width) { // another one than the last: a division
        s->slice = at / s->width;
        s->from = s->slice * s->width;
    }
    slice = s->slice;
    if (slice >= s->room) {
        s->beyond++;
        return true;
    }
    if (slice >= s->made && !reach(s, (size_t)slice + 1))
        return false;
    s->now[slice]++;
    if (slice >= s->used)
        s->used = (size_t)slice + 1;
    return true;
}

void stg_sim_series_finish(stg_sim_series *s)
{
    for (size_t i = 0; i < s->used; i++) {
        uint64_t n = s->now[i];

        s->sums[i] += n;
        s->squares[i] += n * n;
        s->now[i] = 0;
    }
    s->runs++;
}

void stg_sim_series_drop(stg_sim_series *s)
{
    for (size_t i = 0; i < s->used; i++)
        s->now[i] = 0;
}

/* The squares of wider slices cannot be had from those of narrow ones, as
 * counts of neighbours are not independent. The square of the sum is right for
 * a single run only. */
void stg_sim_series_join(stg_sim_series *s, size_t of)
{
    size_t used = (s->used + of - 1) / of;

    for (size_t i = 0; i < used; i++) {
        uint64_t sum = 0;

        for (size_t k = i * of; k < (i + 1) * of && k < s->used; k++)
            sum += s->sums[k];
        s->sums[i] = sum;
        s->squares[i] = sum * sum;
    }
    for (size_t i = used; i < s->used; i++)
        s->sums[i] = s->squares[i] = 0;
    s->used = used;
    s->width *= of;
    s->slice = s->from = 0;
}

bool stg_sim_series_merge(stg_sim_series *s, const stg_sim_series *other)
{
    if (!reach(s, other->used))
        return false;
    for (size_t i = 0; i < other->used; i++) {
        s->sums[i] += other->sums[i];
        s->squares[i] += other->squares[i];
    }
    if (other->used > s->used)
        s->used = other->used;
    s->runs += other->runs;
    s->beyond += other->beyond;
    return true;
}

/* The variance is (sum of squares - mean * sum) / (runs - 1), and the error of
 * the mean its root over runs. Rounding can make it less than 0: that is 0. */
double stg_sim_series_mean(const stg_sim_series *s, size_t slice, double *se)
{
    double runs = (double)s->runs, mean, spread;

    *se = 0;
    if (slice >= s->used || s->runs == 0)
        return 0;
    mean = (double)s->sums[slice] / runs;
    spread = (double)s->squares[slice] - mean * (double)s->sums[slice];
    if (s->runs > 1 && spread > 0)
        *se = stg_estimate_root(spread / (runs - 1) / runs);
    return mean;
}

/* `done` is the finest tally, for its quantiles are in tables; waits are
 * coarse, as there is one for each retry. */
void stg_contention_totals_init(stg_contention_totals *b, stg_ns width,
                                size_t slices, const stg_memory *memory)
{
    enum { FINE = 10, PLAIN = 8, COARSE = 5 };

    stg_sim_tally_init(&b->done, FINE, memory);
    stg_sim_curve_init(&b->by_then, memory);
    stg_sim_tally_init(&b->attempts, PLAIN, memory);
    for (size_t i = 0; i < STG_TOTALS_WAITS; i++)
        stg_sim_tally_init(&b->waits[i], COARSE, memory);
    stg_sim_series_init(&b->calls, width, slices, memory);
    stg_sim_series_init(&b->successes, width, slices, memory);
}

void stg_contention_totals_close(stg_contention_totals *b)
{
    stg_sim_tally_close(&b->done);
    stg_sim_curve_close(&b->by_then);
    stg_sim_tally_close(&b->attempts);
    for (size_t i = 0; i < STG_TOTALS_WAITS; i++)
        stg_sim_tally_close(&b->waits[i]);
    stg_sim_series_close(&b->calls);
    stg_sim_series_close(&b->successes);
}

bool stg_contention_totals_succeed(stg_contention_totals *b, stg_ns at)
{
    return stg_sim_tally_add(&b->done, at) &&
           stg_sim_curve_add(&b->by_then, at) &&
           stg_sim_series_add(&b->successes, at);
}

/* A run that was stopped leaves curve and series; tallies have counted it. */
void stg_contention_totals_finish(stg_contention_totals *b, bool is_whole)
{
    if (is_whole) {
        stg_sim_curve_finish(&b->by_then);
        stg_sim_series_finish(&b->calls);
        stg_sim_series_finish(&b->successes);
    } else {
        stg_sim_curve_drop(&b->by_then);
        stg_sim_series_drop(&b->calls);
        stg_sim_series_drop(&b->successes);
    }
}

bool stg_contention_totals_merge(stg_contention_totals *b,
                                 const stg_contention_totals *other)
{
    bool is_ok = stg_sim_tally_merge(&b->done, &other->done) &&
                 stg_sim_curve_merge(&b->by_then, &other->by_then) &&
                 stg_sim_tally_merge(&b->attempts, &other->attempts) &&
                 stg_sim_series_merge(&b->calls, &other->calls) &&
                 stg_sim_series_merge(&b->successes, &other->successes);

    for (size_t i = 0; i < STG_TOTALS_WAITS; i++)
        is_ok = is_ok && stg_sim_tally_merge(&b->waits[i], &other->waits[i]);
    return is_ok;
}
