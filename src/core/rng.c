#include <stagger/rng.h>

#include "core/rng_draw.h"

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
    return stg_rng_draw(rng);
}

uint64_t stg_rng_upto(stg_rng *rng, uint64_t limit)
{
    return stg_rng_draw_upto(rng, limit);
}
