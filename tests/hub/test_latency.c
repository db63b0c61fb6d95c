#include "hub/target.h"

#include "tests/harness.h"

/* What one time alone reads as. */
static stg_ns read_as(stg_ns took)
{
    stg_latency l = {.counts = {0}};

    stg_latency_add(&l, took);
    return stg_latency_quantile(&l, 500);
}

TEST(latency, says_nothing_of_nothing)
{
    CHECK_U64(stg_latency_quantile(&(stg_latency){.counts = {0}}, 500), 0);
}

TEST(latency, is_at_most_a_quarter_too_long_and_never_too_short)
{
    for (stg_ns took = 20 * STG_US; took < STG_HOUR; took += took / 50) {
        CHECK_FROM(took, read_as(took) > took);
        CHECK_FROM(took, read_as(took) <= took + took / 4 + 1);
    }
}

TEST(latency, takes_what_is_out_of_its_range)
{
    CHECK_U64(read_as(0), 20480); // the first bucket's end
    CHECK(read_as(STG_NEVER) >= STG_HOUR);
}

TEST(latency, knows_its_quantiles)
{
    stg_latency l = {.counts = {0}};

    for (stg_ns ms = 1; ms <= 100; ms++)
        stg_latency_add(&l, ms * STG_MS);
    CHECK(stg_latency_quantile(&l, 500) > 50 * STG_MS);
    CHECK(stg_latency_quantile(&l, 500) < 63 * STG_MS);
    CHECK(stg_latency_quantile(&l, 990) > 99 * STG_MS);
    CHECK(stg_latency_quantile(&l, 990) < 124 * STG_MS);
    CHECK(stg_latency_quantile(&l, 0) < 2 * STG_MS);
    CHECK(stg_latency_quantile(&l, 1000) > 99 * STG_MS);
}
