/* histogram.h - how many durations fell where, within 9 %.
 *
 * Eight buckets to an octave, from 1 us (shorter ones count as that) to 73
 * minutes (longer ones too). Plain data; zeroed it is empty. */
#ifndef STAGGER_SIM_HISTOGRAM_H
#define STAGGER_SIM_HISTOGRAM_H

#include <stagger/ns.h>

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

#endif
