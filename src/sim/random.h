/* random.h - chance in a simulation: a generator stream for each concern, and
 * draws by our own tables, so that the same seed gives the same bytes on every
 * machine and by every compiler.
 *
 * The generators are those of core (rng.h). The draws use doubles, and of these
 * only + - * / and comparisons, which IEEE 754 defines to the last bit; compile
 * with -ffp-contract=off. Pure; one generator belongs to one thread at a time.
 *
 * Source: Marsaglia and Tsang, "The ziggurat method for generating random
 * variables", Journal of Statistical Software 5(8), 2000. */
#ifndef STAGGER_SIM_RANDOM_H
#define STAGGER_SIM_RANDOM_H

#include <stdbool.h>

#include <stagger/rng.h>

#include "core/rng_draw.h"

/* What is drawn for. Each has a stream of its own, so that another draw of one
 * moves no other, and policies meet the same network. */
typedef enum stg_concern {
    STG_CONCERN_NETWORK,
    STG_CONCERN_BACKOFF,
    STG_CONCERN_SERVICE,
    STG_CONCERN_ARRIVALS,
    STG_CONCERN_CHOICE, /* whatever else is left to chance */
} stg_concern;

/* The generator of a concern in a repetition: of any seed, by mixing the three
 * as splitmix64 does. */
stg_rng stg_random_stream(uint64_t seed, uint64_t repetition,
                          stg_concern concern);

/* In [0, 1): a multiple of 2^-53. One draw. */
double stg_random_uniform(stg_rng *rng);

/* How far the layers of the ziggurat reach; [0] is the lowest. */
extern const double stg_random_normal_x[257];

/* What is not wholly below the density. draw is what was drawn for it. */
double stg_random_normal_edge(stg_rng *rng, uint64_t draw);

/* Whether what was drawn is wholly below the density, with *z then: 98.8 % are.
 * Its lowest 8 bits choose a layer, and its highest 54 a place in it, with the
 * sign. */
static inline bool stg_random_normal_inside(uint64_t draw, double *z)
{
    unsigned layer = draw & 255;
    double x = (double)((int64_t)draw >> 10) * 0x1p-53;

    *z = x * stg_random_normal_x[layer];
    return __builtin_fabs(*z) < stg_random_normal_x[layer + 1];
}

/* Mean 0 and variance 1. One draw, rarely more. */
static inline double stg_random_normal(stg_rng *rng)
{
    uint64_t draw = stg_rng_draw(rng);
    double z;

    return stg_random_normal_inside(draw, &z)
               ? z
               : stg_random_normal_edge(rng, draw);
}

/* Mean 1. One draw in 98.9 % of the calls, else more. */
double stg_random_exponential(stg_rng *rng);

/* exp(-x) for x in [0, 32], within 1e-12 of itself; beyond, ever less. */
double stg_random_exp(double x);

#endif
