/* contention_totals.h - what many repetitions came to, client by client and
 * over time: whole numbers, so that books can be merged in any order.
 *
 * Pure; totals belong to one thread while they are written. */
#ifndef STAGGER_SIM_CONTENTION_TOTALS_H
#define STAGGER_SIM_CONTENTION_TOTALS_H

#include <stagger/ns.h>

#include "sim/curve.h"
#include "sim/tally.h"

enum {
    STG_TOTALS_WAITS = 16, /* waits by retry; later ones count for the last */
};

/* Events by time, in slices of equal width, of several repetitions. */
typedef struct stg_sim_series {
    stg_ns width;
    uint64_t slice;    /* of the last event */
    stg_ns from;       /* when it begins */
    size_t room;       /* slices at most; 0: none are counted */
    size_t used;       /* the last slice that has any, plus 1 */
    size_t made;       /* of the arrays */
    uint64_t runs;     /* repetitions */
    uint64_t beyond;   /* events after the last slice */
    uint64_t *sums;    /* by slice */
    uint64_t *squares; /* of each repetition's number, by slice */
    uint32_t *now;     /* of this repetition */
    const stg_memory *memory;
} stg_sim_series;

void stg_sim_series_init(stg_sim_series *s, stg_ns width, size_t room,
                         const stg_memory *memory);
void stg_sim_series_close(stg_sim_series *s);

/* An event of this repetition. Returns false if there is no memory. */
bool stg_sim_series_add(stg_sim_series *s, stg_ns at);

/* The repetition has ended: its slices are added up, or forgotten. */
void stg_sim_series_finish(stg_sim_series *s);
void stg_sim_series_drop(stg_sim_series *s);

/* Each `of` slices become one, which is as wide as they were. Exact only for
 * one repetition at most: what several had in two slices together is not kept.
 * */
void stg_sim_series_join(stg_sim_series *s, size_t of);

bool stg_sim_series_merge(stg_sim_series *s, const stg_sim_series *other);

/* The mean number in a slice, and its standard error; *se may not be NULL. */
double stg_sim_series_mean(const stg_sim_series *s, size_t slice, double *se);

typedef struct stg_contention_totals {
    stg_sim_tally done;     /* when clients succeeded, ns */
    stg_sim_curve by_then;  /* how many have succeeded by when */
    stg_sim_tally attempts; /* calls of a client, however it ended */
    stg_sim_tally waits[STG_TOTALS_WAITS]; /* before retry i + 1, ns */
    stg_sim_series calls;                  /* at the resource, over time */
} stg_contention_totals;

/* Empty totals, which count calls in `slices` slices of width. memory is
 * kept. */
void stg_contention_totals_init(stg_contention_totals *b, stg_ns width,
                                size_t slices, const stg_memory *memory);
void stg_contention_totals_close(stg_contention_totals *b);

/* The client succeeded then. Returns false if there is no memory. */
bool stg_contention_totals_succeed(stg_contention_totals *b, stg_ns at);

/* The repetition has ended. One that was stopped counts for the tallies, but
 * is no value of its own: what is known by time and by repetition is without
 * it. */
void stg_contention_totals_finish(stg_contention_totals *b, bool is_whole);

/* Adds all that other has; both count in the same slices. Returns false if
 * there is no memory: the totals are then of no use. */
bool stg_contention_totals_merge(stg_contention_totals *b,
                                 const stg_contention_totals *other);

#endif
