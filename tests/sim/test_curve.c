/* How many have come by when, and how sure that is. */
#include "sim/statistics.h"

#include <stdlib.h>

#include <stagger/rng.h>

#include "tests/harness.h"
#include "tests/sim/memory.h"

enum { RUNS = 12, EACH = 50 };

static int compare(const void *a, const void *b)
{
    const stg_ns *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

/* The same by the totals: all values of all repetitions, counted up to each
 * point. */
static stg_estimate count_by_hand(stg_ns times[RUNS][EACH], size_t runs,
                                  stg_ns at)
{
    double values[RUNS];

    for (size_t r = 0; r < runs; r++) {
        values[r] = 0;
        for (size_t i = 0; i < EACH; i++)
            values[r] += times[r][i] <= at;
    }
    return stg_estimate_make(values, runs);
}

static bool is_near(double a, double b)
{
    return a - b < 1e-6 && b - a < 1e-6;
}

TEST(curve, is_the_mean_and_its_error_over_the_repetitions)
{
    for (uint64_t seed = 0; seed < seeds(50); seed++) {
        static stg_ns times[RUNS][EACH];
        static stg_sim_curve_point points[RUNS * EACH];
        stg_rng rng = stg_rng_seed(seed);
        size_t runs = 1 + (size_t)stg_rng_upto(&rng, RUNS - 1), count;
        test_memory told;
        stg_memory memory = test_memory_of(&told);
        stg_sim_curve parts[2];

        stg_sim_curve_init(&parts[0], &memory);
        stg_sim_curve_init(&parts[1], &memory);
        for (size_t r = 0; r < runs; r++) {
            // Clients of a repetition have something in common.
            stg_ns late = stg_rng_upto(&rng, STG_S);

            for (size_t i = 0; i < EACH; i++) {
                times[r][i] = late + stg_rng_upto(&rng, STG_S);
                CHECK_FROM(seed, stg_sim_curve_add(&parts[r % 2], times[r][i]));
            }
            stg_sim_curve_finish(&parts[r % 2]);
            // One that was stopped leaves nothing.
            CHECK_FROM(seed, stg_sim_curve_add(&parts[r % 2], STG_MS));
            stg_sim_curve_drop(&parts[r % 2]);
            qsort(times[r], EACH, sizeof times[r][0], compare);
        }
        CHECK_FROM(seed, stg_sim_curve_merge(&parts[0], &parts[1]));
        CHECK_FROM(seed, parts[0].runs == runs);
        count = stg_sim_curve_read(&parts[0], NULL);
        CHECK_FROM(seed, count > 0 && count <= RUNS * EACH);
        CHECK_FROM(seed, stg_sim_curve_read(&parts[0], points) == count);
        for (size_t i = 0; i < count; i++) {
            stg_estimate e = count_by_hand(times, runs, points[i].at);

            CHECK_FROM(seed, is_near(points[i].count.mean, e.mean));
            CHECK_FROM(seed, is_near(points[i].count.se, e.se));
            CHECK_FROM(seed, i == 0 || points[i].at > points[i - 1].at);
        }
        CHECK_FROM(seed, is_near(points[count - 1].count.mean, EACH));
        CHECK_FROM(seed, is_near(points[count - 1].count.se, 0));
        stg_sim_curve_close(&parts[0]);
        stg_sim_curve_close(&parts[1]);
        CHECK_FROM(seed, told.held == 0);
    }
}

/* A time is known to a 64th of itself. */
TEST(curve, knows_when)
{
    for (uint64_t seed = 0; seed < seeds(200); seed++) {
        stg_rng rng = stg_rng_seed(seed);
        stg_ns at = stg_rng_next(&rng) >> stg_rng_upto(&rng, 63);
        test_memory told;
        stg_memory memory = test_memory_of(&told);
        stg_sim_curve c;
        stg_sim_curve_point point;

        stg_sim_curve_init(&c, &memory);
        CHECK_FROM(seed, stg_sim_curve_add(&c, at));
        stg_sim_curve_finish(&c);
        CHECK_FROM(seed, stg_sim_curve_read(&c, &point) == 1);
        CHECK_FROM(seed, point.at >= at && point.at - at <= at / 64);
        CHECK_FROM(seed, point.count.mean == 1 && point.count.se == 0);
        CHECK_FROM(seed, told.held <= stg_sim_curve_size());
        stg_sim_curve_close(&c);
    }
}

TEST(curve, of_nothing_has_no_points_and_ends_without_memory)
{
    test_memory told;
    stg_memory memory = test_memory_of(&told);
    stg_sim_curve c, other;

    stg_sim_curve_init(&c, &memory);
    stg_sim_curve_init(&other, &memory);
    CHECK_INT(stg_sim_curve_read(&c, NULL), 0);
    stg_sim_curve_finish(&c); // a repetition in which nobody came
    CHECK_INT(stg_sim_curve_read(&c, NULL), 0);
    CHECK(stg_sim_curve_merge(&c, &other));
    CHECK_U64(c.runs, 1);
    for (size_t left = 0; left < 3; left++) {
        told.left = left;
        CHECK(!stg_sim_curve_add(&c, STG_S));
        CHECK_INT(told.held, 0);
    }
    told.left = 3;
    CHECK(stg_sim_curve_add(&other, STG_S));
    stg_sim_curve_finish(&other);
    CHECK(!stg_sim_curve_merge(&c, &other));
    CHECK_U64(c.runs, 1);
    stg_sim_curve_close(&other);
    CHECK_INT(told.held, 0);
}
