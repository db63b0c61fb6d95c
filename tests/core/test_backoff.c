#include <stagger/backoff.h>

#include <stdbool.h>
#include <stdlib.h>

#include "tests/harness.h"

/* One draw of all zeros, and one of all ones: u = 0 and u = 1. */
static stg_rng zeros(void)
{
    return (stg_rng){{0, 0, 0, 0}};
}

static stg_rng ones(void)
{
    return (stg_rng){{0, 1, 1, UINT64_MAX}};
}

static stg_backoff steady(stg_growth growth, stg_ns base, stg_ns cap)
{
    stg_backoff b = stg_backoff_default();

    b.growth = growth;
    b.jitter = STG_JITTER_NONE;
    b.base = base;
    b.cap = cap;
    return b;
}

static stg_ns wait_with(const stg_backoff *b, uint32_t n, stg_rng rng)
{
    stg_ns last = b->base;

    return stg_backoff_wait(b, n, &last, &rng);
}

/* With u = 0 and u = 1. */
static void check_ends(const stg_backoff *b, uint32_t n, stg_ns low,
                       stg_ns high)
{
    CHECK_U64(wait_with(b, n, zeros()), low);
    CHECK_U64(wait_with(b, n, ones()), high);
}

TEST(backoff, has_generators_for_both_ends)
{
    stg_rng low = zeros(), high = ones();

    CHECK_U64(stg_rng_next(&low), 0);
    CHECK_U64(stg_rng_next(&high), UINT64_MAX);
}

TEST(backoff, grows_as_each_growth_says)
{
    stg_backoff fixed = steady(STG_FIXED, 100, 1000);
    stg_backoff linear = steady(STG_LINEAR, 100, 1000);
    stg_backoff doubling = steady(STG_EXPONENTIAL, 100, 10000);
    stg_backoff list = steady(STG_LIST, 1, 1000);

    list.list_count = 3;
    list.list[0] = 5;
    list.list[2] = 7;
    for (uint32_t n = 1; n <= 5; n++) {
        CHECK_U64(stg_backoff_window(&fixed, n), 100);
        CHECK_U64(stg_backoff_window(&linear, n), 100 * n);
        CHECK_U64(stg_backoff_window(&doubling, n), 100U << (n - 1));
    }
    CHECK_U64(stg_backoff_window(&list, 1), 5);
    CHECK_U64(stg_backoff_window(&list, 2), 0);
    CHECK_U64(stg_backoff_window(&list, 3), 7);
    CHECK_U64(stg_backoff_window(&list, 4), 7);
    CHECK_U64(stg_backoff_window(&list, UINT32_MAX), 7);
}

/* Sidekiq's n^4 + 15 from 0, River's n^4 and Active Job's n^4 + 2 from 1; a
 * line with a start of its own. */
TEST(backoff, grows_by_a_power_and_from_an_offset)
{
    stg_backoff b = steady(STG_POLYNOMIAL, STG_S, STG_NEVER);
    static const uint64_t powers[] = {0, 1, 16, 81, 256, 625};

    b.power = 4;
    for (uint32_t n = 1; n <= 5; n++)
        CHECK_U64(stg_backoff_window(&b, n), powers[n] * STG_S);
    b.offset = 15 * STG_S;
    for (uint32_t n = 1; n <= 5; n++)
        CHECK_U64(stg_backoff_window(&b, n), (powers[n] + 15) * STG_S);
    b.counts_from_0 = 1;
    for (uint32_t n = 1; n <= 6; n++)
        CHECK_U64(stg_backoff_window(&b, n), (powers[n - 1] + 15) * STG_S);
    b.cap = 31 * STG_S;
    CHECK_U64(stg_backoff_window(&b, 2), 16 * STG_S);
    CHECK_U64(stg_backoff_window(&b, 3), 31 * STG_S);
    CHECK_U64(stg_backoff_window(&b, 4), 31 * STG_S);
    CHECK_U64(stg_backoff_window(&b, UINT32_MAX), 31 * STG_S);
    b.growth = STG_LINEAR;
    CHECK_U64(stg_backoff_window(&b, 0), 15 * STG_S);
    CHECK_U64(stg_backoff_window(&b, 1), 15 * STG_S);
    CHECK_U64(stg_backoff_window(&b, 3), 17 * STG_S);
    CHECK_U64(stg_backoff_window(&b, 99), 31 * STG_S);
    b.counts_from_0 = 0;
    CHECK_U64(stg_backoff_window(&b, 3), 18 * STG_S);
}

TEST(backoff, l2_saturates_by_a_power)
{
    stg_backoff b = steady(STG_POLYNOMIAL, 1, STG_NEVER);

    b.power = 10;
    CHECK_U64(stg_backoff_window(&b, 84), UINT64_C(17490122876598091776));
    CHECK_U64(stg_backoff_window(&b, 85), STG_NEVER);
    CHECK_U64(stg_backoff_window(&b, UINT32_MAX), STG_NEVER);
    b.power = 2;
    CHECK_U64(stg_backoff_window(&b, UINT32_MAX),
              (uint64_t)UINT32_MAX * UINT32_MAX);
    b.offset = 365 * STG_DAY;
    b.base = 365 * STG_DAY;
    CHECK_U64(stg_backoff_window(&b, UINT32_MAX), STG_NEVER);
}

TEST(backoff, reads_wait_zero_as_the_first)
{
    stg_backoff linear = steady(STG_LINEAR, 100, 1000);
    stg_backoff doubling = steady(STG_EXPONENTIAL, 100, 10000);

    CHECK_U64(stg_backoff_window(&linear, 0), 100);
    CHECK_U64(stg_backoff_window(&doubling, 0), 100);
}

TEST(backoff, doubles_to_the_cap_and_stays_there)
{
    stg_backoff b = steady(STG_EXPONENTIAL, STG_S, 40 * STG_S);
    static const uint64_t seconds[] = {1, 2, 4, 8, 16, 32, 40, 40};

    for (uint32_t n = 1; n <= 8; n++)
        CHECK_U64(stg_backoff_window(&b, n), seconds[n - 1] * STG_S);
    CHECK_U64(stg_backoff_window(&b, UINT32_MAX), 40 * STG_S);
}

TEST(backoff, l2_saturates_without_a_cap)
{
    stg_backoff doubling = steady(STG_EXPONENTIAL, STG_S, STG_NEVER);
    stg_backoff linear = steady(STG_LINEAR, 365 * STG_DAY, STG_NEVER);

    CHECK_U64(stg_backoff_window(&doubling, 35), STG_S << 34);
    CHECK_U64(stg_backoff_window(&doubling, 36), STG_NEVER);
    CHECK_U64(stg_backoff_window(&doubling, UINT32_MAX), STG_NEVER);
    CHECK_U64(stg_backoff_window(&linear, UINT32_MAX), STG_NEVER);
    CHECK_U64(stg_backoff_window(&linear, 500), 500 * 365 * STG_DAY);
}

TEST(backoff, draws_within_the_window_of_each_jitter)
{
    stg_backoff b = steady(STG_FIXED, 1001, 2000);

    b.jitter = STG_JITTER_FULL;
    CHECK_U64(wait_with(&b, 1, zeros()), 0);
    CHECK_U64(wait_with(&b, 1, ones()), 1001);
    b.jitter = STG_JITTER_EQUAL;
    CHECK_U64(wait_with(&b, 1, zeros()), 500);
    CHECK_U64(wait_with(&b, 1, ones()), 1001);
    b.jitter = STG_JITTER_PERCENT;
    b.below = b.above = 20;
    CHECK_U64(wait_with(&b, 1, zeros()), 801);
    CHECK_U64(wait_with(&b, 1, ones()), 1201);
}

TEST(backoff, keeps_a_percentage_below_the_cap_of_what_grows)
{
    stg_backoff b = steady(STG_EXPONENTIAL, 1000, 1200);

    b.jitter = STG_JITTER_PERCENT;
    b.below = b.above = 50;
    // m = 1200 / 1.5 = 800, from the first window on
    CHECK_U64(wait_with(&b, 1, zeros()), 400);
    CHECK_U64(wait_with(&b, 1, ones()), 1200);
    b.below = b.above = 100;
    CHECK_U64(wait_with(&b, 9, zeros()), 0);
    CHECK_U64(wait_with(&b, 9, ones()), 1200);
    b.growth = STG_LINEAR;
    CHECK_U64(wait_with(&b, 9, ones()), 1200);
    b.growth = STG_FIXED; // has no cap
    CHECK_U64(wait_with(&b, 9, ones()), 2000);
}

TEST(backoff, decorrelates_from_the_wait_before)
{
    stg_backoff b = steady(STG_EXPONENTIAL, 100, 2000);
    stg_ns last = b.base;
    stg_rng rng;

    b.jitter = STG_JITTER_DECORRELATED;
    rng = ones();
    CHECK_U64(stg_backoff_wait(&b, 1, &last, &rng), 300);
    CHECK_U64(last, 300);
    rng = ones();
    CHECK_U64(stg_backoff_wait(&b, 2, &last, &rng), 900);
    rng = ones();
    CHECK_U64(stg_backoff_wait(&b, 3, &last, &rng), 2000); // 2700, cut
    CHECK_U64(last, 2000);                                 // and kept so
    rng = zeros();
    CHECK_U64(stg_backoff_wait(&b, 4, &last, &rng), 100);
    CHECK_U64(last, 100);
}

TEST(backoff, decorrelates_without_overflow)
{
    stg_backoff b = steady(STG_FIXED, 365 * STG_DAY, STG_NEVER);
    stg_ns last = STG_NEVER / 2;
    stg_rng rng = ones();

    b.jitter = STG_JITTER_DECORRELATED;
    CHECK_U64(stg_backoff_wait(&b, 1, &last, &rng), STG_NEVER);
    b.base = 1000;
    last = 0; // never so by itself: it starts at the base
    rng = ones();
    CHECK_U64(stg_backoff_wait(&b, 1, &last, &rng), 1000);
}

/* Not the same below as above; the cap bounds the longer side. */
TEST(backoff, has_a_percentage_for_each_side)
{
    stg_backoff b = steady(STG_EXPONENTIAL, 1000, 3000);

    b.jitter = STG_JITTER_PERCENT;
    b.below = 25;
    b.above = 50;
    check_ends(&b, 1, 750, 1500);
    check_ends(&b, 2, 1500, 3000);
    check_ends(&b, 9, 1500, 3000);
    b.below = 0;
    check_ends(&b, 1, 1000, 1500);
    b.below = 100;
    b.above = 0;
    check_ends(&b, 1, 0, 1000);
    check_ends(&b, 9, 0, 3000);
    b.growth = STG_FIXED;
    b.above = 100;
    check_ends(&b, 9, 0, 2000);
}

/* Up to so much on top, below the cap of what grows. */
TEST(backoff, adds_a_random_time)
{
    stg_backoff b = steady(STG_EXPONENTIAL, 1000, 5000);

    b.jitter = STG_JITTER_UP;
    b.up = 1500;
    check_ends(&b, 1, 1000, 2500);
    check_ends(&b, 2, 2000, 3500);
    check_ends(&b, 3, 3500, 5000);
    b.growth = STG_LINEAR;
    check_ends(&b, 9, 3500, 5000);
    b.up = 5000;
    check_ends(&b, 1, 0, 5000);
    b.up = 6000;
    check_ends(&b, 1, 0, 5000);
    b.growth = STG_FIXED;
    check_ends(&b, 1, 1000, 7000);
    b.growth = STG_EXPONENTIAL;
    b.cap = STG_NEVER;
    check_ends(&b, 99, STG_NEVER - 6000, STG_NEVER);
}

TEST(backoff, has_a_floor_under_its_own_waits)
{
    stg_backoff b = steady(STG_EXPONENTIAL, 100, 1000);

    b.floor = 150;
    check_ends(&b, 1, 150, 150);
    check_ends(&b, 2, 200, 200);
    b.jitter = STG_JITTER_FULL;
    check_ends(&b, 1, 150, 150);
    check_ends(&b, 2, 150, 200);
    check_ends(&b, 9, 150, 1000);
    b.jitter = STG_JITTER_EQUAL;
    check_ends(&b, 2, 150, 200);
    check_ends(&b, 3, 200, 400);
    b.jitter = STG_JITTER_PERCENT;
    b.below = b.above = 50;
    check_ends(&b, 1, 150, 150);
    check_ends(&b, 2, 150, 300);
    check_ends(&b, 9, 333, 999);
    CHECK_U64(stg_backoff_window(&b, 1), 100); // the window is as it was
    b.growth = STG_LIST;
    b.below = b.above = 0;
    b.jitter = STG_JITTER_FULL;
    b.list_count = 2;
    b.list[1] = 500;
    check_ends(&b, 1, 150, 150);
    check_ends(&b, 2, 150, 500);
}

TEST(backoff, decorrelates_from_its_floor_up)
{
    stg_backoff b = steady(STG_EXPONENTIAL, 100, 2000);
    stg_ns last = b.base;
    stg_rng rng = ones();

    b.jitter = STG_JITTER_DECORRELATED;
    b.floor = 400;
    CHECK_U64(stg_backoff_wait(&b, 1, &last, &rng), 400);
    CHECK_U64(last, 400);
    rng = ones();
    CHECK_U64(stg_backoff_wait(&b, 2, &last, &rng), 1200);
    rng = zeros();
    CHECK_U64(stg_backoff_wait(&b, 3, &last, &rng), 400);
}

TEST(backoff, draws_nothing_without_jitter_and_once_with_any)
{
    for (unsigned jitter = 0; jitter <= STG_JITTER_UP; jitter++) {
        stg_backoff b = steady(STG_LINEAR, 100, 1000);
        stg_rng rng = stg_rng_seed(1), expected = stg_rng_seed(1);
        stg_ns last = b.base;

        b.jitter = (stg_jitter)jitter;
        b.below = b.above = jitter == STG_JITTER_PERCENT ? 10 : 0;
        b.up = jitter == STG_JITTER_UP ? 10 : 0;
        stg_backoff_wait(&b, 3, &last, &rng);
        if (b.jitter != STG_JITTER_NONE)
            stg_rng_next(&expected);
        CHECK_U64(rng.s[0], expected.s[0]);
        stg_backoff_wait_after(&b, 3, &last, 50, &rng);
        if (b.jitter != STG_JITTER_NONE)
            stg_rng_next(&expected);
        CHECK_U64(rng.s[0], expected.s[0]);
        CHECK(b.jitter == STG_JITTER_DECORRELATED || last == b.base);
    }
}

static stg_ns after(const stg_backoff *b, stg_ns floor, stg_rng rng)
{
    stg_ns last = b->base;

    return stg_backoff_wait_after(b, 2, &last, floor, &rng);
}

TEST(backoff, takes_the_server_delay_as_a_floor)
{
    stg_backoff b = steady(STG_EXPONENTIAL, 100, 1000);

    CHECK_U64(after(&b, 150, ones()), 200);
    CHECK_U64(after(&b, 250, ones()), 250);
    CHECK_U64(after(&b, STG_NEVER, ones()), STG_NEVER);
    for (unsigned jitter = STG_JITTER_FULL; jitter <= STG_JITTER_EQUAL;
         jitter++) {
        b.jitter = (stg_jitter)jitter;
        CHECK_U64(after(&b, 150, zeros()), 150);
        CHECK_U64(after(&b, 150, ones()), 200);
        CHECK_U64(after(&b, 200, ones()), 200);
        CHECK_U64(after(&b, 201, zeros()), 201);
        CHECK_U64(after(&b, 201, ones()), 401);
        CHECK_U64(after(&b, STG_NEVER, ones()), STG_NEVER);
    }
    b.jitter = STG_JITTER_EQUAL; // 100 to 200: no floor below that is felt
    CHECK_U64(after(&b, 1, zeros()), 100);
    b.jitter = STG_JITTER_PERCENT;
    b.below = b.above = 10; // 180 to 220
    CHECK_U64(after(&b, 1, zeros()), 180);
    CHECK_U64(after(&b, 190, zeros()), 190);
    CHECK_U64(after(&b, 190, ones()), 220);
    CHECK_U64(after(&b, 300, zeros()), 300);
    CHECK_U64(after(&b, 300, ones()), 520);
}

TEST(backoff, keeps_the_own_wait_of_decorrelated_jitter_never_the_delay)
{
    stg_backoff b = steady(STG_EXPONENTIAL, 100, 1000);
    stg_rng low = zeros(), high = ones();
    stg_ns last = b.base;

    b.jitter = STG_JITTER_DECORRELATED; // 100 to 300
    CHECK_U64(stg_backoff_wait_after(&b, 1, &last, 200, &low), 200);
    CHECK_U64(last, 200); // 100 to 600
    CHECK_U64(stg_backoff_wait_after(&b, 2, &last, 5000, &high), 5600);
    CHECK_U64(last, 600); // 100 to 1800, cut to 1000
    CHECK_U64(stg_backoff_wait_after(&b, 3, &last, 1000, &high), 1000);
    CHECK_U64(last, 1000);
    CHECK_U64(stg_backoff_wait_after(&b, 4, &last, 1001, &low), 1001);
    CHECK_U64(last, 1000);
}

#ifdef __SIZEOF_INT128__

static stg_backoff random_backoff(stg_rng *rng)
{
    stg_backoff b = {
        .growth = (stg_growth)stg_rng_upto(rng, STG_POLYNOMIAL),
        .jitter = (stg_jitter)stg_rng_upto(rng, STG_JITTER_UP),
        .factor = 1000 + (uint32_t)stg_rng_upto(rng, 99000),
        .base = stg_rng_upto(rng, 365 * STG_DAY) >> stg_rng_upto(rng, 60),
    };

    b.cap = stg_ns_max(1, b.base + stg_rng_upto(rng, 365 * STG_DAY - b.base));
    if (stg_rng_upto(rng, 1) == 0)
        b.floor = stg_rng_upto(rng, b.cap) >> stg_rng_upto(rng, 60);
    if (b.growth == STG_POLYNOMIAL)
        b.power = 2 + (uint16_t)stg_rng_upto(rng, STG_POWER_MAX - 2);
    if (b.growth == STG_POLYNOMIAL || b.growth == STG_LINEAR) {
        b.counts_from_0 = stg_rng_upto(rng, 1) == 0;
        b.offset = stg_rng_upto(rng, b.cap) >> stg_rng_upto(rng, 60);
    }
    if (stg_rng_upto(rng, 3) == 0)
        b.cap = STG_NEVER;
    if (b.jitter == STG_JITTER_PERCENT) {
        b.below = (uint32_t)stg_rng_upto(rng, 100);
        b.above = b.below == 0 ? 1 : (uint32_t)stg_rng_upto(rng, 100);
    }
    if (b.jitter == STG_JITTER_UP)
        b.up = 1 + (stg_rng_upto(rng, 364 * STG_DAY) >> stg_rng_upto(rng, 60));
    if (b.growth == STG_LIST)
        b.list_count = 1 + (uint32_t)stg_rng_upto(rng, STG_LIST_MAX - 1);
    for (uint32_t i = 0; i < b.list_count; i++)
        b.list[i] = stg_rng_upto(rng, 365 * STG_DAY) >> stg_rng_upto(rng, 60);
    return b;
}

/* The least and most wait of each jitter, in 128 bits. */
typedef unsigned __int128 wide;

static wide least_of(wide a, wide b)
{
    return a < b ? a : b;
}

static wide middle(const stg_backoff *b, wide window, bool grows)
{
    return grows ? least_of(window, (wide)b->cap * 100 / (100 + b->above))
                 : window;
}

static wide unfloored_least(const stg_backoff *b, stg_ns window)
{
    wide m = window;
    bool grows = b->growth != STG_FIXED && b->growth != STG_LIST;

    switch (b->jitter) {
    case STG_JITTER_NONE:
        return window;
    case STG_JITTER_FULL:
        return 0;
    case STG_JITTER_EQUAL:
        return m / 2;
    case STG_JITTER_DECORRELATED:
        return b->base;
    case STG_JITTER_PERCENT:
        m = middle(b, m, grows);
        return m - m * b->below / 100;
    case STG_JITTER_UP:
        return grows && m + b->up > b->cap ? b->cap - least_of(b->up, b->cap)
                                           : m;
    case STG_JITTER_POLLY: // see test_polly.c
        break;
    }
    return 0;
}

static wide unfloored_most(const stg_backoff *b, stg_ns window, stg_ns last)
{
    wide m = window;
    bool grows = b->growth != STG_FIXED && b->growth != STG_LIST;

    if (b->jitter == STG_JITTER_DECORRELATED) {
        m = (wide)3 * last;
        if (m < b->base)
            m = b->base;
        return m < b->cap ? m : b->cap;
    }
    if (b->jitter == STG_JITTER_UP)
        return grows ? least_of(m + b->up, b->cap) : m + b->up;
    if (b->jitter != STG_JITTER_PERCENT)
        return m;
    m = middle(b, m, grows);
    return m + m * b->above / 100;
}

static wide least(const stg_backoff *b, stg_ns window)
{
    wide w = unfloored_least(b, window);

    return w > b->floor ? w : b->floor;
}

static wide most(const stg_backoff *b, stg_ns window, stg_ns last)
{
    wide w = unfloored_most(b, window, last);

    return w > b->floor ? w : b->floor;
}

/* Any hostile generator too: L5. */
static stg_rng any_rng(uint64_t seed)
{
    return seed % 4 == 0   ? zeros()
           : seed % 4 == 1 ? ones()
                           : stg_rng_seed(seed);
}

TEST(backoff, l3_l5_stays_within_its_bounds_whatever_the_generator)
{
    for (uint64_t seed = 0; seed < seeds(100000); seed++) {
        stg_rng rng = stg_rng_seed(seed), draw;
        stg_backoff b = random_backoff(&rng);
        uint32_t n = (uint32_t)(stg_rng_next(&rng) >> stg_rng_upto(&rng, 63));
        stg_ns last = b.base + stg_rng_upto(&rng, b.cap - b.base);
        stg_ns before = last, window = stg_backoff_window(&b, n), wait, floor;
        stg_ns longest;

        CHECK_FROM(seed, stg_backoff_check(&b, NULL) == STG_OK);
        draw = any_rng(seed);
        wait = stg_backoff_wait(&b, n, &last, &draw);
        CHECK_FROM(seed, wait >= least(&b, window));
        CHECK_FROM(seed, wait <= most(&b, window, before));
        draw = any_rng(seed);
        last = before;
        floor = stg_rng_next(&rng) >> stg_rng_upto(&rng, 63);
        wait = stg_backoff_wait_after(&b, n, &last, floor, &draw);
        longest = (stg_ns)most(&b, window, before);
        CHECK_FROM(seed, wait >= floor && wait >= least(&b, window));
        CHECK_FROM(seed, wait <= (floor > longest ? stg_ns_add(floor, longest)
                                                  : longest));
        CHECK_FROM(seed, last == (b.jitter != STG_JITTER_DECORRELATED ? before
                                  : floor > longest                   ? longest
                                                                      : wait));
    }
}

/* Without a floor it is the own wait, to the bit. */
TEST(backoff, is_the_own_wait_without_a_floor)
{
    for (uint64_t seed = 0; seed < seeds(20000); seed++) {
        stg_rng rng = stg_rng_seed(seed), draw = any_rng(seed), same = draw;
        stg_backoff b = random_backoff(&rng);
        uint32_t n = 1 + (uint32_t)stg_rng_upto(&rng, 100);
        stg_ns last = b.base, also = b.base;

        CHECK_FROM(seed, stg_backoff_wait_after(&b, n, &last, 0, &draw) ==
                             stg_backoff_wait(&b, n, &also, &same));
        CHECK_FROM(seed, last == also && draw.s[0] == same.s[0]);
    }
}

/* Both ends are reached: with u = 0 and u = 1 the bounds are exact. */
TEST(backoff, reaches_both_ends_of_its_bounds)
{
    for (uint64_t seed = 0; seed < seeds(20000); seed++) {
        stg_rng rng = stg_rng_seed(seed), low = zeros(), high = ones();
        stg_backoff b = random_backoff(&rng);
        uint32_t n = 1 + (uint32_t)stg_rng_upto(&rng, 100);
        stg_ns window = stg_backoff_window(&b, n);
        stg_ns from_low = b.base, from_high = b.base;

        CHECK_FROM(seed, stg_backoff_wait(&b, n, &from_low, &low) ==
                             least(&b, window));
        CHECK_FROM(seed, stg_backoff_wait(&b, n, &from_high, &high) ==
                             most(&b, window, b.base));
    }
}

#endif

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double greater(double a, double b)
{
    return a > b ? a : b;
}

/* The Kolmogorov-Smirnov distance of waits from the uniform distribution. */
static double distance(const stg_backoff *b, stg_ns low, stg_ns high)
{
    enum { DRAWS = 10000 };
    static double waits[DRAWS];
    stg_rng rng = stg_rng_seed(42);
    double worst = 0;

    for (int i = 0; i < DRAWS; i++) {
        stg_ns last = b->base;

        waits[i] = (double)(stg_backoff_wait(b, 3, &last, &rng) - low) /
                   (double)(high - low);
    }
    qsort(waits, DRAWS, sizeof *waits, compare);
    for (int i = 0; i < DRAWS; i++) {
        worst = greater(worst, waits[i] - (double)i / DRAWS);
        worst = greater(worst, (double)(i + 1) / DRAWS - waits[i]);
    }
    return worst;
}

/* 1.63 / sqrt(10000): a right one fails one time in a hundred, and the seed is
 * fixed. */
TEST(backoff, l3_has_the_stated_distribution)
{
    stg_backoff b = steady(STG_EXPONENTIAL, STG_S, 30 * STG_S);
    const double critical = 0.0163;

    b.jitter = STG_JITTER_FULL;
    CHECK(distance(&b, 0, 4 * STG_S) < critical);
    b.jitter = STG_JITTER_EQUAL;
    CHECK(distance(&b, 2 * STG_S, 4 * STG_S) < critical);
    b.jitter = STG_JITTER_DECORRELATED;
    CHECK(distance(&b, STG_S, 3 * STG_S) < critical);
    b.jitter = STG_JITTER_PERCENT;
    b.below = b.above = 25;
    CHECK(distance(&b, 3 * STG_S, 5 * STG_S) < critical);
    CHECK(distance(&b, 3 * STG_S, 6 * STG_S) > critical); // it can fail
    b.above = 50;
    CHECK(distance(&b, 3 * STG_S, 6 * STG_S) < critical);
    b.below = b.above = 0;
    b.jitter = STG_JITTER_UP;
    b.up = 2 * STG_S;
    CHECK(distance(&b, 4 * STG_S, 6 * STG_S) < critical);
}

/* 500 agents fail together at 0, and again whenever they come back. How many
 * come within 100 ms at retry k? (Means of 400 runs and more; the spread of
 * full jitter is why it is the default.) */
enum { AGENTS = 500, RETRIES = 6 };

static int compare_ns(const void *a, const void *b)
{
    stg_ns x = *(const stg_ns *)a, y = *(const stg_ns *)b;

    return (x > y) - (x < y);
}

static int most_within_100_ms(stg_ns *at)
{
    int best = 0;

    qsort(at, AGENTS, sizeof *at, compare_ns);
    for (int first = 0, last = 0; last < AGENTS; last++) {
        while (at[last] - at[first] >= 100 * STG_MS)
            first++;
        if (last - first + 1 > best)
            best = last - first + 1;
    }
    return best;
}

static void crowd(stg_jitter jitter, int runs, double means[RETRIES])
{
    stg_backoff b = steady(STG_EXPONENTIAL, STG_S, 40 * STG_S);
    static stg_ns at[AGENTS];
    stg_rng rng = stg_rng_seed(7);

    b.jitter = jitter;
    memset(means, 0, RETRIES * sizeof *means);
    for (int run = 0; run < runs; run++) {
        memset(at, 0, sizeof at);
        for (uint32_t n = 1; n <= RETRIES; n++) {
            for (int i = 0; i < AGENTS; i++) {
                stg_ns last = b.base;

                at[i] += stg_backoff_wait(&b, n, &last, &rng);
            }
            means[n - 1] += (double)most_within_100_ms(at) / runs;
        }
    }
}

static void check_crowd(stg_jitter jitter, const double expected[RETRIES])
{
    int runs = (int)(seeds(400) < 40 ? 40 : seeds(400));
    double tolerance = runs < 400 ? 0.08 : 0.03;
    double means[RETRIES];

    crowd(jitter, runs, means);
    for (int i = 0; i < RETRIES; i++)
        CHECK(means[i] > expected[i] * (1 - tolerance) &&
              means[i] < expected[i] * (1 + tolerance));
}

TEST(backoff, spreads_a_crowd_as_its_jitter_promises)
{
    static const double none[] = {500, 500, 500, 500, 500, 500};
    static const double equal[] = {118.7, 64.5, 36.9, 22.2, 14.1, 9.6};
    static const double full[] = {65.9, 37.2, 22.4, 14.1, 9.6, 6.8};

    check_crowd(STG_JITTER_NONE, none);
    check_crowd(STG_JITTER_EQUAL, equal);
    check_crowd(STG_JITTER_FULL, full);
}

/* Whatever is in the struct, nothing breaks. */
TEST(backoff, survives_a_struct_that_no_check_has_seen)
{
    for (uint64_t seed = 0; seed < seeds(10000); seed++) {
        stg_rng rng = stg_rng_seed(seed);
        stg_backoff b;
        stg_ns last = stg_rng_next(&rng);

        for (size_t i = 0; i < sizeof b; i++)
            ((unsigned char *)&b)[i] = (unsigned char)stg_rng_next(&rng);
        b.growth = (stg_growth)stg_rng_upto(&rng, STG_LIST);
        b.jitter = (stg_jitter)stg_rng_upto(&rng, STG_JITTER_UP);
        stg_backoff_wait(&b, (uint32_t)seed, &last, &rng);
        stg_backoff_wait_after(&b, (uint32_t)seed, &last, last, &rng);
    }
    CHECK(stg_backoff_window(&(stg_backoff){.growth = STG_LIST}, 1) == 0);
}

typedef struct refusal {
    stg_backoff b;
    const char *text;
} refusal;

TEST(backoff, refuses_what_is_out_of_range_and_names_it)
{
    const refusal refusals[] = {
        {{.jitter = STG_JITTER_POLLY, .factor = 2000, .cap = 1},
         "jitter=polly is for exponential with factor=2"},
        {{.jitter = STG_JITTER_POLLY,
          .growth = STG_EXPONENTIAL,
          .factor = 2001,
          .cap = 1},
         "jitter=polly is for exponential with factor=2"},
        {{.jitter = STG_JITTER_POLLY,
          .growth = STG_EXPONENTIAL,
          .factor = 2000,
          .floor = 1,
          .cap = 1},
         "floor has no meaning for jitter=polly"},
        {{.growth = (stg_growth)5},
         "growth=5 is out of range, expected one of "
         "stg_growth"},
        {{.jitter = (stg_jitter)7},
         "jitter=7 is out of range, expected one of "
         "stg_jitter"},
        {{.jitter = STG_JITTER_PERCENT},
         "jitter=0% is out of range, expected 1% to 100%"},
        {{.jitter = STG_JITTER_PERCENT, .below = 101},
         "jitter=101% is out of range, expected 1% to 100%"},
        {{.jitter = STG_JITTER_PERCENT, .below = 1, .above = 102},
         "jitter=102% is out of range, expected 1% to 100%"},
        {{.jitter = STG_JITTER_UP},
         "jitter=0 is out of range, expected up: and more than 0, to 365d"},
        {{.jitter = STG_JITTER_UP, .up = 366 * STG_DAY},
         "jitter=366d is out of range, expected up: and more than 0, to 365d"},
        {{.up = 1},
         "jitter=1ns is out of range, expected no time with another jitter"},
        {{.above = 1},
         "jitter=1% is out of range, expected no percentage with "
         "another jitter"},
        {{.below = 1},
         "jitter=1% is out of range, expected no percentage with "
         "another jitter"},
        {{.factor = 999}, "factor=0.999 is out of range, expected 1 to 100"},
        {{.factor = 100001},
         "factor=100.001 is out of range, expected 1 to 100"},
        {{.factor = 1000, .base = 365 * STG_DAY + 1},
         "base=31536000000000001ns is out of range, expected 0 to 365d"},
        {{.factor = 1000},
         "cap=0 is out of range, expected more than 0, to 365d, or none"},
        {{.factor = 1000, .cap = 366 * STG_DAY},
         "cap=366d is out of range, expected more than 0, to 365d, or none"},
        {{.factor = 1000, .base = 2, .cap = 1}, "cap=1ns is below base=2ns"},
        {{.factor = 1000, .floor = 2, .cap = 1}, "cap=1ns is below floor=2ns"},
        {{.factor = 1000, .floor = 366 * STG_DAY, .cap = STG_NEVER},
         "floor=366d is out of range, expected 0 to 365d"},
        {{.factor = 1000, .cap = 1, .growth = STG_POLYNOMIAL},
         "power=0 is out of range, expected 2 to 10"},
        {{.factor = 1000, .cap = 1, .growth = STG_POLYNOMIAL, .power = 1},
         "power=1 is out of range, expected 2 to 10"},
        {{.factor = 1000, .cap = 1, .growth = STG_POLYNOMIAL, .power = 11},
         "power=11 is out of range, expected 2 to 10"},
        {{.factor = 1000, .cap = 1, .growth = STG_LINEAR, .power = 2},
         "power=2 is out of range, expected none but for polynomial"},
        {{.factor = 1000, .cap = 1, .growth = STG_LINEAR, .counts_from_0 = 2},
         "count-from is neither 0 nor 1"},
        {{.factor = 1000, .cap = 1, .counts_from_0 = 1},
         "count-from is for linear and polynomial"},
        {{.factor = 1000, .cap = 1, .growth = STG_EXPONENTIAL, .offset = 1},
         "offset=1ns is out of range, expected none but for linear and "
         "polynomial"},
        {{.factor = 1000,
          .cap = STG_NEVER,
          .growth = STG_LINEAR,
          .offset = 366 * STG_DAY},
         "offset=366d is out of range, expected 0 to 365d"},
        {{.factor = 1000, .cap = 1, .growth = STG_LINEAR, .offset = 2},
         "cap=1ns is below offset=2ns"},
        {{.factor = 1000, .cap = 1, .growth = STG_LIST},
         "list_count=0 is out of range, expected 1 to 64"},
        {{.factor = 1000,
          .cap = 1,
          .growth = STG_LIST,
          .list_count = STG_LIST_MAX + 1},
         "list_count=65 is out of range, expected 1 to 64"},
        {{.factor = 1000, .cap = 1, .list_count = 1},
         "list_count=1 is out of range, expected 0 where there is no list"},
        {{.factor = 1000,
          .cap = 1,
          .growth = STG_LIST,
          .list_count = 1,
          .list = {366 * STG_DAY}},
         "list=366d is out of range, expected 0 to 365d"},
        {{.factor = 1000,
          .cap = 1,
          .growth = STG_LIST,
          .list_count = 1,
          .list = {1, 2}},
         "list=2ns is out of range, expected 0 behind the end of the list"},
    };
    stg_error err;

    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        CHECK_INT(stg_backoff_check(&refusals[i].b, &err), STG_INVALID);
        CHECK_STR(err.text, refusals[i].text);
        CHECK_INT(stg_backoff_check(&refusals[i].b, NULL), STG_INVALID);
    }
    CHECK_INT(stg_backoff_check(NULL, &err), STG_INVALID);
    CHECK_STR(err.text, "backoff is NULL");
}

TEST(backoff, accepts_the_ends_of_its_ranges)
{
    stg_backoff b = stg_backoff_default();

    CHECK_INT(stg_backoff_check(&b, NULL), STG_OK);
    b.base = b.cap = b.floor = 365 * STG_DAY;
    b.factor = 100000;
    b.jitter = STG_JITTER_PERCENT;
    b.below = b.above = 100;
    CHECK_INT(stg_backoff_check(&b, NULL), STG_OK);
    b.base = 0;
    b.cap = 1;
    b.floor = 1;
    b.factor = 1000;
    b.below = b.above = 1;
    CHECK_INT(stg_backoff_check(&b, NULL), STG_OK);
    b.cap = STG_NEVER;
    b.growth = STG_LIST;
    b.list_count = STG_LIST_MAX;
    b.list[STG_LIST_MAX - 1] = 365 * STG_DAY;
    CHECK_INT(stg_backoff_check(&b, NULL), STG_OK);
    b = steady(STG_POLYNOMIAL, 1, 365 * STG_DAY);
    b.power = 2;
    b.counts_from_0 = 1;
    b.offset = 365 * STG_DAY;
    CHECK_INT(stg_backoff_check(&b, NULL), STG_OK);
    b.power = STG_POWER_MAX;
    CHECK_INT(stg_backoff_check(&b, NULL), STG_OK);
    b.growth = STG_LINEAR;
    b.power = 0;
    CHECK_INT(stg_backoff_check(&b, NULL), STG_OK);
}
