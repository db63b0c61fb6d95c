/* statistics.h - what many values come to. Pure. */
#ifndef STAGGER_SIM_STATISTICS_H
#define STAGGER_SIM_STATISTICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <stagger/ns.h>

#include "base/memory.h"

/* -- an estimate ----------------------------------------------------------- */

/* A mean of several runs, and how far it may be off.
 *
 * The values are added in the order in which they are given; + - * / alone, so
 * that it is the same everywhere. Pure. */

typedef struct stg_estimate {
    double mean;
    double se; /* the standard error of the mean; 0 for a single value */
} stg_estimate;

/* Of `count` values; of none it is 0. */
stg_estimate stg_estimate_make(const double *values, size_t count);

/* Whether they differ by more than two standard errors of their difference. */
bool stg_estimate_is_apart(stg_estimate a, stg_estimate b);

/* The square root of x >= 0, to the last bit or the one before it. */
double stg_estimate_root(double x);

/* -- a histogram ----------------------------------------------------------- */

/* How many durations fell where, within 9 %.
 *
 * Eight buckets to an octave, from 1 us (shorter ones count as that) to 73
 * minutes (longer ones too). Plain data; zeroed it is empty. */

#define STG_SIM_HISTOGRAM_BUCKETS 256

typedef struct stg_sim_histogram {
    uint64_t count;
    uint32_t buckets[STG_SIM_HISTOGRAM_BUCKETS]; /* each stops at 2^32 - 1 */
} stg_sim_histogram;

void stg_sim_histogram_add(stg_sim_histogram *h, stg_ns ns);

/* Adds all of other. */
void stg_sim_histogram_merge(stg_sim_histogram *h,
                             const stg_sim_histogram *other);

/* What `share` thousandths (0 to 1000) of them do not exceed, spread evenly
 * over its bucket; 0 of an empty one. */
stg_ns stg_sim_histogram_at(const stg_sim_histogram *h, uint32_t share);

/* -- a tally --------------------------------------------------------------- */

/* How often each value came: counts by size, for percentiles.
 *
 * Whole numbers below 2^bits have a count of their own; above that each power
 * of two has 2^bits / 2 of them, so that a value is known to 2 / 2^bits of
 * itself. Only whole numbers are added up, so the order in which values come,
 * or in which tallies are merged, changes nothing. Pure. */

typedef struct stg_sim_tally {
    unsigned bits;
    uint64_t count;
    uint64_t least, most;       /* exact; 0 while there is none */
    uint64_t sum_high, sum_low; /* 128 bits */
    uint64_t *counts;           /* values counted by size; NULL: none so far */
    const stg_memory *memory;
} stg_sim_tally;

/* An empty tally with bits from 2 to 12. memory is kept. */
void stg_sim_tally_init(stg_sim_tally *t, unsigned bits,
                        const stg_memory *memory);
void stg_sim_tally_close(stg_sim_tally *t);

/* Returns false if there is no memory: nothing has changed. */
bool stg_sim_tally_add(stg_sim_tally *t, uint64_t value);

/* Adds what another one with the same bits has. */
bool stg_sim_tally_merge(stg_sim_tally *t, const stg_sim_tally *other);

/* The mean, 0 if there is none. */
double stg_sim_tally_mean(const stg_sim_tally *t);

/* The value that `share` of all (0 to 1) do not exceed, 0 if there is none. 1 is
 * the greatest. */
uint64_t stg_sim_tally_quantile(const stg_sim_tally *t, double share);

/* Where a tally of so many bits counts a value, how many such places there
 * are, and the greatest value of one. */
size_t stg_sim_tally_place(unsigned bits, uint64_t value);
size_t stg_sim_tally_places(unsigned bits);
uint64_t stg_sim_tally_value(unsigned bits, size_t place);

/* How many are at most value; between counts, all of the count. */
uint64_t stg_sim_tally_below(const stg_sim_tally *t, uint64_t value);

/* -- the highest rate ------------------------------------------------------ */

/* The most events in any window of time.
 *
 * Time is cut into slices of 33 us, and the window is whole slices, so however
 * many events there are, some thousand numbers hold them. Time is cut into
 * blocks of a window's length, too: a window lies in two of them at most, and
 * where these two have fewer events together than the most so far nothing needs
 * to be looked at. Pure. */

enum { STG_MAX_RATE_SLICE_BITS = 15 }; /* of 2^15 ns */

typedef struct stg_max_rate_slice {
    uint32_t number; /* in its block */
    uint32_t count;
} stg_max_rate_slice;

typedef struct stg_max_rate_block {
    uint64_t begin;             /* its first slice */
    uint64_t count;             /* of events */
    stg_max_rate_slice *slices; /* that have any, in order */
    uint32_t used, room;
} stg_max_rate_block;

typedef struct stg_sim_max_rate {
    uint32_t width; /* of the window, in slices */
    uint64_t most;  /* of the blocks that are over */
    uint64_t last;  /* the slice of the last event */
    stg_max_rate_block before, now;
    const stg_memory *memory;
} stg_sim_max_rate;

/* For windows of width, which is rounded to slices: 1 ms to 1 h. memory is
 * kept. */
void stg_sim_max_rate_init(stg_sim_max_rate *p, stg_ns width,
                           const stg_memory *memory);
void stg_sim_max_rate_close(stg_sim_max_rate *p);

/* Forgets all events, and keeps the memory. */
void stg_sim_max_rate_clear(stg_sim_max_rate *p);

/* Room for a slice that is not in the last block, or not in its array. Returns
 * false if there is no memory. */
bool stg_sim_max_rate_make_room(stg_sim_max_rate *p, uint64_t slice);

/* An event, not before the last one. Returns false if there is no memory. */
static inline bool stg_sim_max_rate_add(stg_sim_max_rate *p, stg_ns at)
{
    uint64_t slice = at >> STG_MAX_RATE_SLICE_BITS;
    stg_max_rate_block *now = &p->now;

    if (slice != p->last) {
        if ((slice - now->begin >= p->width || now->used == now->room) &&
            !stg_sim_max_rate_make_room(p, slice))
            return false;
        now->slices[now->used].number = (uint32_t)(slice - now->begin);
        now->slices[now->used++].count = 1;
        p->last = slice;
    } else {
        now->slices[now->used - 1].count++;
    }
    now->count++;
    return true;
}

/* The most in any window. */
uint64_t stg_sim_max_rate_most(stg_sim_max_rate *p);

/* -- a curve --------------------------------------------------------------- */

/* How many have come by a time, over several repetitions: the mean,
 * and its standard error.
 *
 * What happens within a repetition is not independent: a late client was late
 * because of the others. So how many have come by a time is one value a
 * repetition. Times are counted in the places of a tally (sim/tally.h), each a
 * 64th of its power of two wide, or less.
 *
 * Only whole numbers are added up, so curves can be merged in any order. Pure;
 * a curve belongs to one thread while it is written. */

typedef struct stg_sim_curve {
    uint64_t runs;       /* repetitions */
    uint64_t *steps;     /* by place: what comes there, over repetitions */
    uint64_t *squares;   /* by place: by how much the squares of what each
                            repetition has so far rise there */
    uint32_t *now;       /* by place: of this repetition */
    size_t first, after; /* the places that this repetition has; first ==
                            after: none */
    const stg_memory *memory;
} stg_sim_curve;

void stg_sim_curve_init(stg_sim_curve *c, const stg_memory *memory);
void stg_sim_curve_close(stg_sim_curve *c);

/* What a curve takes at most, in bytes. */
size_t stg_sim_curve_size(void);

/* One of this repetition. Returns false if there is no memory. */
bool stg_sim_curve_add(stg_sim_curve *c, stg_ns at);

/* The repetition has ended and counts; or was stopped and does not. */
void stg_sim_curve_finish(stg_sim_curve *c);
void stg_sim_curve_drop(stg_sim_curve *c);

bool stg_sim_curve_merge(stg_sim_curve *c, const stg_sim_curve *other);

typedef struct stg_sim_curve_point {
    stg_ns at;          /* the last moment of a place */
    stg_estimate count; /* how many have come by then, in a repetition */
} stg_sim_curve_point;

/* Where the curve rises, in order of time. points may be NULL to ask how many
 * there are; else it has room for all of them. */
size_t stg_sim_curve_read(const stg_sim_curve *c, stg_sim_curve_point *points);

#endif
