/* rng_draw.h - the generator's step, for those who take it often enough to feel
 * a call. Private. */
#ifndef STAGGER_CORE_RNG_DRAW_H
#define STAGGER_CORE_RNG_DRAW_H

#include <stagger/rng.h>

#include <stddef.h>

#include "core/wide.h"

static inline uint64_t stg_rng_rotate(uint64_t x, unsigned count)
{
    return x << count | x >> (64 - count);
}

/* stg_rng_next(). */
static inline uint64_t stg_rng_draw(stg_rng *rng)
{
    uint64_t *s, result, shifted;

    if (rng == NULL)
        return UINT64_MAX;
    s = rng->s;
    result = stg_rng_rotate(s[0] + s[3], 23) + s[0];
    shifted = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= shifted;
    s[3] = stg_rng_rotate(s[3], 45);
    return result;
}

/* stg_rng_upto(). */
static inline uint64_t stg_rng_draw_upto(stg_rng *rng, uint64_t limit)
{
    uint64_t draw = stg_rng_draw(rng);

    return limit == UINT64_MAX ? draw : stg_wide_high(draw, limit + 1);
}

#endif
