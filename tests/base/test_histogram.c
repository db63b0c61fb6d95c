#include "base/histogram.h"

#include "tests/harness.h"

TEST(histogram, counts_each_time_in_the_bucket_that_ends_with_it)
{
    for (uint32_t i = 0; i < STG_HISTOGRAM_BOUNDS; i++) {
        stg_histogram h = {.sum = 0};

        stg_histogram_add(&h, stg_histogram_bounds[i]);
        stg_histogram_add(&h, stg_histogram_bounds[i] + 1);
        CHECK_U64(h.counts[i], 1);
        CHECK_U64(h.counts[i + 1], 1);
        CHECK_U64(h.sum, 2 * stg_histogram_bounds[i] + 1);
    }
}

TEST(histogram, has_bounds_that_rise)
{
    for (uint32_t i = 1; i < STG_HISTOGRAM_BOUNDS; i++)
        CHECK(stg_histogram_bounds[i - 1] < stg_histogram_bounds[i]);
}

TEST(histogram, takes_any_time)
{
    stg_histogram h = {.sum = 0};

    stg_histogram_add(&h, 0);
    stg_histogram_add(&h, STG_NEVER);
    stg_histogram_add(&h, STG_NEVER);
    CHECK_U64(h.counts[0], 1);
    CHECK_U64(h.counts[STG_HISTOGRAM_BOUNDS], 2);
    CHECK_U64(h.sum, STG_NEVER);
}

TEST(histogram, adds_up)
{
    stg_histogram a = {.sum = 0}, b = {.sum = 0};

    stg_histogram_add(&a, STG_MS);
    stg_histogram_add(&b, STG_MS);
    stg_histogram_add(&b, STG_S);
    stg_histogram_merge(&a, &b);
    CHECK_U64(a.counts[1], 2);
    CHECK_U64(a.counts[10], 1);
    CHECK_U64(a.sum, STG_S + 2 * STG_MS);
}
