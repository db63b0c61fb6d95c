#include "hub/target.h"

enum { LEAST = 14 /* 2^14 ns: 16 us */, STEPS = 4 };

/* Four steps of equal length from a power of two to the next. */
static uint32_t bucket_of(stg_ns took)
{
    uint32_t octave, bucket;

    if (took >> LEAST == 0)
        return 0;
    octave = 63 - (uint32_t)__builtin_clzll(took);
    bucket =
        (octave - LEAST) * STEPS + (uint32_t)(took >> (octave - 2)) % STEPS;
    return bucket < STG_LATENCY_BUCKETS ? bucket : STG_LATENCY_BUCKETS - 1;
}

/* The longest time that a bucket has: quantiles say at most this. */
static stg_ns end_of(uint32_t bucket)
{
    stg_ns octave = (stg_ns)1 << (LEAST + bucket / STEPS);

    return octave + octave / STEPS * (bucket % STEPS + 1);
}

void stg_latency_add(stg_latency *l, stg_ns took)
{
    uint32_t *count = &l->counts[bucket_of(took)];

    *count += *count < UINT32_MAX;
}

stg_ns stg_latency_quantile(const stg_latency *l, uint32_t permille)
{
    uint64_t all = 0, below = 0, needed;

    for (uint32_t i = 0; l != NULL && i < STG_LATENCY_BUCKETS; i++)
        all += l->counts[i];
    needed = (all * permille + 999) / 1000;
    if (all == 0)
        return 0;
    for (uint32_t i = 0; i < STG_LATENCY_BUCKETS; i++) {
        below += l->counts[i];
        if (below >= needed && below > 0)
            return end_of(i);
    }
    return end_of(STG_LATENCY_BUCKETS - 1);
}
