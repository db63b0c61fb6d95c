/* tally.h - how often each value came: counts by size, for percentiles.
 *
 * Whole numbers below 2^bits have a count of their own; above that each power
 * of two has 2^bits / 2 of them, so that a value is known to 2 / 2^bits of
 * itself. Only whole numbers are added up, so the order in which values come,
 * or in which tallies are merged, changes nothing. Pure. */
#ifndef STAGGER_SIM_TALLY_H
#define STAGGER_SIM_TALLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"

typedef struct stg_sim_tally {
    unsigned bits;
    uint64_t count;
    uint64_t least, most;       /* exact; 0 while there is none */
    uint64_t sum_high, sum_low; /* 128 bits */
    uint64_t *counts;           /* by size; NULL until there is one */
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

#endif
