#include <stagger/rng.h>

#include "core/wide.h"

static uint64_t rotate_left(uint64_t x, unsigned count)
{
    return x << count | x >> (64 - count);
}

stg_rng stg_rng_seed(uint64_t seed)
{
    stg_rng rng;

    for (int i = 0; i < 4; i++) {
        uint64_t z = seed += 0x9e3779b97f4a7c15;

        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
        z = (z ^ z >> 27) * 0x94d049bb133111eb;
        rng.s[i] = z ^ z >> 31;
    }
    return rng;
}

uint64_t stg_rng_next(stg_rng *rng)
{
    uint64_t *s = rng->s;
    uint64_t result = rotate_left(s[0] + s[3], 23) + s[0];
    uint64_t shifted = s[1] << 17;

    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= shifted;
    s[3] = rotate_left(s[3], 45);
    return result;
}

uint64_t stg_rng_upto(stg_rng *rng, uint64_t limit)
{
    uint64_t draw = stg_rng_next(rng);

    return limit == UINT64_MAX ? draw : stg_wide_high(draw, limit + 1);
}
