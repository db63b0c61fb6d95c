#include "tests/harness.h"

#include "sim/throttle.h"

/* How many of a hundred go out. */
static int count_passes(stg_sim_throttle *t, stg_ns now, stg_rng *rng)
{
    int passes = 0;

    for (int i = 0; i < 100; i++)
        passes += stg_sim_throttle_pass(t, 2000, now, rng);
    return passes;
}

TEST(throttle, lets_all_out_while_half_of_them_are_accepted)
{
    stg_sim_throttle t = {0};
    stg_rng rng = stg_rng_seed(1);

    for (stg_ns i = 0; i < 1000; i++) {
        stg_ns now = i * 100 * STG_MS;

        CHECK(i < 2 || stg_sim_throttle_pass(&t, 2000, now, &rng));
        if (i % 2 == 0 || i < 2)
            stg_sim_throttle_accept(&t, now);
    }
}

/* With nothing accepted the n-th goes out with probability 1/n: 5.2 of the
 * first hundred, on average. */
TEST(throttle, lets_few_out_when_none_is_accepted)
{
    double sum = 0;

    for (uint64_t seed = 0; seed < 400; seed++) {
        stg_sim_throttle t = {0};
        stg_rng rng = stg_rng_seed(seed);

        sum += count_passes(&t, 0, &rng);
    }
    CHECK(sum / 400 > 4.9 && sum / 400 < 5.5);
}

TEST(throttle, forgets_after_two_minutes)
{
    stg_sim_throttle t = {0};
    stg_rng rng = stg_rng_seed(1);

    CHECK(count_passes(&t, 0, &rng) < 20);
    CHECK(!stg_sim_throttle_pass(&t, 2000, 119 * STG_S, &rng) ||
          !stg_sim_throttle_pass(&t, 2000, 119 * STG_S, &rng));
    t = (stg_sim_throttle){0};
    CHECK(count_passes(&t, 0, &rng) < 20);
    CHECK(stg_sim_throttle_pass(&t, 2000, 120 * STG_S, &rng));
    CHECK(stg_sim_throttle_pass(&t, 2000, STG_HOUR, &rng));
}
