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

stg_ns stg_latency_end(uint32_t place)
{
    uint32_t bucket = place > 0 ? place - 1 : 0;
    stg_ns octave = (stg_ns)1 << (LEAST + bucket / STEPS);

    return place == 0 ? 0 : octave + octave / STEPS * (bucket % STEPS + 1);
}

void stg_latency_add(stg_latency *l, stg_ns took)
{
    uint32_t *count = &l->counts[bucket_of(took)];

    *count += *count < UINT32_MAX;
}

uint32_t stg_latency_find(const stg_latency *l, uint32_t permille)
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
            return i + 1;
    }
    return STG_LATENCY_BUCKETS;
}

stg_ns stg_latency_quantile(const stg_latency *l, uint32_t permille)
{
    return stg_latency_end(stg_latency_find(l, permille));
}
