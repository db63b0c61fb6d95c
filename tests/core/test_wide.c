/* Products wider than 64 bits, against a type that has as many. */
#include "core/wide.h"

#include <stagger/rng.h>

#include "tests/harness.h"

__extension__ typedef unsigned __int128 u128;

/* Ones from some bit on, zeros, or chance: where carries are lost. */
static uint64_t awkward(stg_rng *rng)
{
    uint64_t number = stg_rng_next(rng);

    switch (stg_rng_upto(rng, 3)) {
    case 0:
        return UINT64_MAX << stg_rng_upto(rng, 63);
    case 1:
        return UINT64_MAX >> stg_rng_upto(rng, 63);
    case 2:
        return number >> stg_rng_upto(rng, 63);
    default:
        return number;
    }
}

TEST(wide, has_the_high_half_of_a_product)
{
    CHECK_U64(stg_wide_high(UINT64_MAX, UINT64_MAX), UINT64_MAX - 1);
    CHECK_U64(stg_wide_high(UINT64_MAX, 1), 0);
    CHECK_U64(stg_wide_high(0, UINT64_MAX), 0);
    CHECK_U64(stg_wide_high(UINT64_C(1) << 32, UINT64_C(1) << 32), 1);

    for (uint64_t seed = 0; seed < seeds(50000); seed++) {
        stg_rng rng = stg_rng_seed(seed);
        uint64_t a = awkward(&rng), b = awkward(&rng);

        CHECK_FROM(seed, stg_wide_high(a, b) == (uint64_t)((u128)a * b >> 64));
    }
}

/* For b <= d, and products of the rest that fit. */
TEST(wide, has_a_share_without_a_wide_product)
{
    CHECK_U64(stg_wide_share(UINT64_MAX, 1, 1), UINT64_MAX);
    CHECK_U64(stg_wide_share(UINT64_MAX, 0, 7), 0);
    CHECK_U64(stg_wide_share(UINT64_MAX, 200, 200), UINT64_MAX);
    CHECK_U64(stg_wide_share(101, 1, 2), 50);

    for (uint64_t seed = 0; seed < seeds(50000); seed++) {
        stg_rng rng = stg_rng_seed(seed);
        uint64_t a = awkward(&rng);
        uint64_t d = 1 + (awkward(&rng) & UINT32_MAX);
        uint64_t b = stg_rng_upto(&rng, d);

        CHECK_FROM(seed,
                   stg_wide_share(a, b, d) == (uint64_t)((u128)a * b / d));
    }
}
