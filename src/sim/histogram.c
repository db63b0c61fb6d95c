#include "sim/histogram.h"

enum { LEAST = 10 };  // 2^10 ns
enum { EIGHTHS = 3 }; // bits of a bucket within its octave

/* The octave's number is the highest bit, the next three are the bucket's. */
static unsigned find_bucket(stg_ns ns)
{
    unsigned octave, bucket;

    if (ns < (stg_ns)1 << LEAST)
        return 0;
    octave = 63 - (unsigned)__builtin_clzll(ns);
    bucket = (unsigned)(ns >> (octave - EIGHTHS)) & 7;
    bucket += (octave - LEAST) << EIGHTHS;
    return bucket < STG_SIM_HISTOGRAM_BUCKETS ? bucket
                                              : STG_SIM_HISTOGRAM_BUCKETS - 1;
}

/* Where a bucket begins; that of the first is 0. */
static stg_ns find_start(unsigned bucket)
{
    if (bucket == 0)
        return 0;
    return (stg_ns)(8 + (bucket & 7)) << (LEAST - EIGHTHS + (bucket >> 3));
}

void stg_sim_histogram_add(stg_sim_histogram *h, stg_ns ns)
{
    uint32_t *n = &h->buckets[find_bucket(ns)];

    h->count++;
    if (*n < UINT32_MAX)
        ++*n;
}

void stg_sim_histogram_merge(stg_sim_histogram *h,
                             const stg_sim_histogram *other)
{
    h->count += other->count;
    for (unsigned i = 0; i < STG_SIM_HISTOGRAM_BUCKETS; i++)
        h->buckets[i] = h->buckets[i] > UINT32_MAX - other->buckets[i]
                            ? UINT32_MAX
                            : h->buckets[i] + other->buckets[i];
}

stg_ns stg_sim_histogram_at(const stg_sim_histogram *h, uint32_t share)
{
    uint64_t wanted = (h->count * share + 999) / 1000, below = 0;

    if (wanted == 0)
        wanted = 1;
    for (unsigned i = 0; i < STG_SIM_HISTOGRAM_BUCKETS; i++) {
        uint32_t n = h->buckets[i];

        if (n > 0 && below + n >= wanted) {
            stg_ns from = find_start(i), width = find_start(i + 1) - from;

            return from +
                   (stg_ns)((double)width * ((double)(wanted - below) / n));
        }
        below += n;
    }
    return 0;
}
