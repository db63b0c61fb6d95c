#include <stagger/limiter.h>
#include <stagger/rng.h>

#include "tests/harness.h"

static stg_limiter limit(uint32_t rate, uint32_t burst)
{
    stg_limiter l;

    CHECK_INT(stg_limiter_init(&l, rate, burst, NULL), STG_OK);
    return l;
}

TEST(limiter, passes_a_burst_and_then_its_rate)
{
    stg_limiter l = limit(2000, 3); // 2/s, 3 at once
    stg_ns due_at = 0;

    for (int i = 0; i < 3; i++)
        CHECK(stg_limiter_take(&l, STG_S, NULL));
    CHECK(!stg_limiter_take(&l, STG_S, &due_at));
    CHECK_U64(due_at, STG_S + 500 * STG_MS);
    CHECK(!stg_limiter_take(&l, due_at - 1, NULL));
    CHECK(stg_limiter_take(&l, due_at, &due_at));
    CHECK_U64(due_at, STG_S + 500 * STG_MS);
}

TEST(limiter, passes_everything_without_a_rate)
{
    stg_limiter l = limit(0, 0);
    stg_ns due_at = 0;

    for (int i = 0; i < 1000; i++)
        CHECK(stg_limiter_take(&l, 5, &due_at));
    CHECK_U64(due_at, 5);
    CHECK_U64(stg_limiter_reserve(&l, 5, 6), 5);
    CHECK_U64(stg_limiter_reserve(&l, 5, 5), STG_NEVER);
    stg_limiter_give_back(&l, 0, 0);
    CHECK_U64(l.level, 0);
}

TEST(limiter, reserves_places_in_the_future_one_behind_the_other)
{
    stg_limiter l = limit(1000, 1);

    for (uint64_t i = 0; i < 5; i++)
        CHECK_U64(stg_limiter_reserve(&l, 0, 5 * STG_S), i * STG_S);
    CHECK_U64(stg_limiter_reserve(&l, 0, 5 * STG_S), STG_NEVER);
    CHECK_U64(stg_limiter_reserve(&l, 0, STG_NEVER), 5 * STG_S);
}

TEST(limiter, takes_a_place_back)
{
    stg_limiter l = limit(1000, 1);

    CHECK(stg_limiter_take(&l, 0, NULL));
    CHECK(!stg_limiter_take(&l, 0, NULL));
    stg_limiter_give_back(&l, 0, 0);
    CHECK(stg_limiter_take(&l, 0, NULL));
    stg_limiter_give_back(&l, 0, 0);
    stg_limiter_give_back(&l, 0, 0); // never more than full
    CHECK(stg_limiter_take(&l, 0, NULL));
    CHECK(!stg_limiter_take(&l, 0, NULL));
}

/* Two would be promised the same instant else. */
TEST(limiter, loses_a_place_that_others_stand_behind)
{
    stg_limiter l = limit(1000, 1);

    for (uint64_t i = 0; i < 3; i++)
        CHECK_U64(stg_limiter_reserve(&l, 0, STG_HOUR), i * STG_S);
    stg_limiter_give_back(&l, STG_S, 0);
    CHECK_U64(stg_limiter_reserve(&l, 0, STG_HOUR), 3 * STG_S);
    stg_limiter_give_back(&l, 3 * STG_S, 0); // the last one: nobody is behind
    CHECK_U64(stg_limiter_reserve(&l, 0, STG_HOUR), 3 * STG_S);
}

#ifdef __SIZEOF_INT128__
TEST(limiter, never_passes_more_than_its_rate)
{
    for (uint64_t seed = 0; seed < seeds(300); seed++) {
        stg_rng rng = stg_rng_seed(seed);
        uint32_t burst = 1 + (uint32_t)stg_rng_upto(&rng, 9);
        uint32_t rate = 1 + (uint32_t)(stg_rng_next(&rng) % 1000000000 >>
                                       stg_rng_upto(&rng, 29));
        stg_limiter l = limit(rate, burst);
        stg_ns now = 0;
        uint64_t passed = 0;

        for (int i = 0; i < 300; i++) {
            now += stg_rng_upto(&rng, 1500 * STG_S / rate);
            passed += stg_limiter_take(&l, now, NULL);
            CHECK_FROM(seed, (unsigned __int128)passed * 1000 * STG_S <=
                                 (unsigned __int128)now * rate +
                                     (unsigned __int128)burst * 1000 * STG_S);
        }
        CHECK_FROM(seed, passed > burst);
    }
}
#endif

TEST(limiter, lets_a_tenth_of_a_second_go_at_once_unless_told_otherwise)
{
    static const struct {
        uint32_t rate, burst;
    } rows[] = {{0, 0},     {1, 1},     {19999, 1},
                {20000, 2}, {29999, 2}, {1000000, 100},
                {9999, 1},  {10000, 1}, {1000000000, 100000}};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        CHECK_U64(limit(rows[i].rate, 0).burst, rows[i].burst);
}

TEST(limiter, refuses_what_is_out_of_range)
{
    stg_limiter l;
    stg_error err;

    CHECK_INT(stg_limiter_init(&l, 1000000001, 1, &err), STG_INVALID);
    CHECK_STR(err.text,
              "rate=1000000001 is out of range, expected 0 (no limit) "
              "to 1000000000 thousandths");
    CHECK_INT(stg_limiter_init(&l, 0, 1, &err), STG_INVALID);
    CHECK_STR(err.text, "burst=1 is out of range, expected 0 with no rate");
    CHECK_INT(stg_limiter_init(&l, 1, 1000001, &err), STG_INVALID);
    CHECK_STR(err.text, "burst=1000001 is out of range, expected 0 to 1000000");
    CHECK_INT(stg_limiter_init(NULL, 1, 1, &err), STG_INVALID);
    CHECK_STR(err.text, "limiter is NULL");
    limit(1000000000, 1000000);
    limit(1, 1);
}
