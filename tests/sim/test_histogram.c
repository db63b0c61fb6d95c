#include "tests/harness.h"

#include "sim/statistics.h"

TEST(histogram, is_empty_when_zeroed)
{
    stg_sim_histogram h = {0};

    CHECK_U64(stg_sim_histogram_at(&h, 500), 0);
}

TEST(histogram, knows_any_duration_within_nine_percent)
{
    for (stg_ns ns = 2 * STG_US; ns < STG_HOUR; ns = ns * 11 / 10 + 1) {
        stg_sim_histogram h = {0};
        stg_ns found;

        stg_sim_histogram_add(&h, ns);
        found = stg_sim_histogram_at(&h, 1000);
        CHECK_FROM(ns, found >= ns && found - ns <= ns * 126 / 1000);
    }
}

TEST(histogram, takes_what_is_too_short_and_too_long)
{
    stg_sim_histogram h = {0};

    stg_sim_histogram_add(&h, 0);
    stg_sim_histogram_add(&h, STG_NEVER);
    CHECK_U64(h.count, 2);
    CHECK(stg_sim_histogram_at(&h, 500) <= 2 * STG_US);
    CHECK(stg_sim_histogram_at(&h, 1000) > STG_HOUR);
}

TEST(histogram, finds_the_shares_of_many)
{
    stg_sim_histogram h = {0};

    for (stg_ns ms = 1; ms <= 1000; ms++)
        stg_sim_histogram_add(&h, ms * STG_MS);
    for (uint32_t share = 100; share <= 900; share += 100) {
        stg_ns found = stg_sim_histogram_at(&h, share);

        CHECK_FROM(share, found > share * STG_MS * 96 / 100);
        CHECK_FROM(share, found < share * STG_MS * 104 / 100);
    }
}

TEST(histogram, merges_as_if_all_had_been_added_to_one)
{
    stg_sim_histogram a = {0}, b = {0}, both = {0};

    for (stg_ns i = 1; i < 100; i++) {
        stg_sim_histogram_add(i % 3 == 0 ? &a : &b, i * i * STG_US);
        stg_sim_histogram_add(&both, i * i * STG_US);
    }
    stg_sim_histogram_merge(&a, &b);
    CHECK_U64(a.count, both.count);
    CHECK(memcmp(&a, &both, sizeof a) == 0);
}
