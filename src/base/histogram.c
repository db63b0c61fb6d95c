#include "base/histogram.h"

#define TENTHS_OF_MS(n) ((n) * (STG_MS / 10))

const stg_ns stg_histogram_bounds[STG_HISTOGRAM_BOUNDS] = {
    TENTHS_OF_MS(5),
    TENTHS_OF_MS(10),
    TENTHS_OF_MS(25),
    TENTHS_OF_MS(50),
    TENTHS_OF_MS(100),
    TENTHS_OF_MS(250),
    TENTHS_OF_MS(500),
    TENTHS_OF_MS(1000),
    TENTHS_OF_MS(2500),
    500 * STG_MS,
    STG_S,
    2500 * STG_MS,
    5 * STG_S,
    10 * STG_S,
    30 * STG_S,
    STG_MIN,
    5 * STG_MIN,
    STG_HOUR,
};

void stg_histogram_add(stg_histogram *h, stg_ns took)
{
    uint32_t bucket = 0;

    // Most attempts are short: found after a step or two.
    while (bucket < STG_HISTOGRAM_BOUNDS && took > stg_histogram_bounds[bucket])
        bucket++;
    h->counts[bucket]++;
    h->sum = stg_ns_add(h->sum, took);
}

/* Both have the same bounds, so the sum is exact. */
void stg_histogram_merge(stg_histogram *h, const stg_histogram *other)
{
    for (uint32_t i = 0; i <= STG_HISTOGRAM_BOUNDS; i++)
        h->counts[i] += other->counts[i];
    h->sum = stg_ns_add(h->sum, other->sum);
}
