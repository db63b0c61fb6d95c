/* histogram.h - how long things took, as Prometheus counts it: how many there
 * were in each of some fixed buckets, and the sum of all.
 *
 * Buckets from half a millisecond to an hour. A stg_histogram is plain data;
 * zeroed, it is empty; a copy of it is a picture of it. */
#ifndef STAGGER_BASE_HISTOGRAM_H
#define STAGGER_BASE_HISTOGRAM_H

#include <stagger/ns.h>

enum { STG_HISTOGRAM_BOUNDS = 18 };

/* Where the buckets end, rising; what took just so long is inside. */
extern const stg_ns stg_histogram_bounds[STG_HISTOGRAM_BOUNDS];

typedef struct stg_histogram {
    stg_ns sum; /* beside the buckets that count most */
    /* in each bucket by itself; the last: longer than all bounds */
    uint64_t counts[STG_HISTOGRAM_BOUNDS + 1];
} stg_histogram;

void stg_histogram_add(stg_histogram *h, stg_ns took);

/* Adds all that another one has counted. */
void stg_histogram_merge(stg_histogram *h, const stg_histogram *other);

#endif
