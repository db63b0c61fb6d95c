/* latency.h - how long things took: quantiles out of counts, in little memory.
 *
 * Four buckets an octave from 16 us to an hour, so what it says is at most a
 * quarter too long. A stg_latency is plain data; zeroed, it is empty. Counts
 * stop at their end. */
#ifndef STAGGER_HUB_LATENCY_H
#define STAGGER_HUB_LATENCY_H

#include <stagger/ns.h>

enum { STG_LATENCY_BUCKETS = 4 * 28 };

typedef struct stg_latency {
    uint32_t counts[STG_LATENCY_BUCKETS];
} stg_latency;

void stg_latency_add(stg_latency *l, stg_ns took);

/* The time that `permille` of 1000 took at most: 500 is the median. 0: nothing
 * was counted. l may be NULL, which is empty. */
stg_ns stg_latency_quantile(const stg_latency *l, uint32_t permille);

#endif
