/* How many attempts at once: slow start, then one more a round, half on
 * trouble. */
#include "flow/limit.h"
#include "tests/harness.h"

#include <stagger/rng.h>

static uint32_t succeed(stg_limit *l, uint32_t times)
{
    while (times-- > 0)
        stg_limit_succeed(l, true);
    return l->value;
}

TEST(limit, doubles_each_round_up_to_its_most)
{
    stg_limit l;
    uint32_t value = 1;

    stg_limit_start(&l, 100, 0);
    CHECK_U64(l.value, 1);
    for (; value < 64; value *= 2)
        CHECK_U64(succeed(&l, value), 2 * value);
    CHECK_U64(succeed(&l, 1000), 100);
}

TEST(limit, grows_by_one_a_round_after_trouble)
{
    stg_limit l;

    stg_limit_start(&l, 100, 0);
    succeed(&l, 63);
    stg_limit_fail(&l, 10, 20);
    CHECK_U64(l.value, 32);
    CHECK_U64(succeed(&l, 31), 32);
    CHECK_U64(succeed(&l, 1), 33);
    CHECK_U64(succeed(&l, 33), 34);
}

/* What was under way together is one trouble. */
TEST(limit, is_halved_once_for_those_under_way)
{
    stg_limit l;

    stg_limit_start(&l, 100, 0);
    succeed(&l, 63);
    for (stg_ns at = 1; at < 20; at++)
        stg_limit_fail(&l, at, 20);
    CHECK_U64(l.value, 32);
    stg_limit_fail(&l, 20, 30);
    CHECK_U64(l.value, 16);
}

TEST(limit, never_falls_below_one)
{
    stg_limit l;

    stg_limit_start(&l, 8, 0);
    for (stg_ns at = 1; at < 20; at++)
        stg_limit_fail(&l, at, at);
    CHECK_U64(l.value, 1);
}

/* A lane that does not use what it may tells nothing of its target. */
TEST(limit, does_not_grow_unused)
{
    stg_limit l;

    stg_limit_start(&l, 8, 0);
    for (uint32_t i = 0; i < 100; i++)
        stg_limit_succeed(&l, false);
    CHECK_U64(l.value, 1);
}

TEST(limit, stays_within_its_bounds)
{
    for (uint64_t seed = 0; seed < seeds(200); seed++) {
        stg_rng rng = stg_rng_seed(seed);
        uint32_t max = 1 + (uint32_t)stg_rng_upto(&rng, 9999);
        stg_limit l;

        stg_limit_start(&l, max, 0);
        for (stg_ns now = 0; now < 500; now++) {
            uint32_t before = l.value;

            if (stg_rng_upto(&rng, 19) == 0) {
                stg_limit_fail(&l, stg_rng_upto(&rng, now), now);
                CHECK_FROM(seed, l.value == before || l.value == before / 2 ||
                                     before == 1);
            } else {
                stg_limit_succeed(&l, stg_rng_upto(&rng, 3) > 0);
                CHECK_FROM(seed, l.value == before || l.value == before + 1);
            }
            CHECK_FROM(seed, 1 <= l.value && l.value <= max);
        }
    }
}
