/* rng.h - a seeded generator: chance as an argument.
 *
 * Pure and deterministic: the same seed gives the same numbers on every
 * machine. One generator belongs to one thread at a time. Not for secrets.
 * Without one (NULL) every draw is the greatest: the longest wait.
 *
 * Sources: xoshiro256++ 1.0 and splitmix64, Blackman and Vigna, "Scrambled
 * linear pseudorandom number generators", ACM TOMS 47(4), 2021. */
#ifndef STAGGER_RNG_H
#define STAGGER_RNG_H

#include <stagger/api.h>

STG_DECLS_BEGIN

typedef struct stg_rng {
    uint64_t s[4];
} stg_rng;

/* A generator started from any 64 bits, 0 too. */
STG_API stg_rng stg_rng_seed(uint64_t seed);

/* The next 64 bits. */
STG_API uint64_t stg_rng_next(stg_rng *rng);

/* A whole number in [0, limit], from one draw r and without rejection:
 *
 *     floor(r * (limit + 1) / 2^64)
 *
 * No value is more likely than another by more than (limit + 1) / 2^64.
 * Source: Lemire, "Fast random integer generation in an interval", ACM TOMACS
 * 29(1), 2019, the step before its rejection. */
STG_API uint64_t stg_rng_upto(stg_rng *rng, uint64_t limit);

STG_DECLS_END

#endif
