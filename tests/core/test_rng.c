/* The generator: the published numbers, borders, and whether it is even. */
#include <stagger/rng.h>

#include <stdlib.h>

#include "tests/harness.h"

#define COUNT(table) (sizeof(table) / sizeof *(table))

/* A state whose next number is this one: rotl(0 + s3, 23) + 0. */
static stg_rng about_to_draw(uint64_t number)
{
    return (stg_rng){{0, 0, 0, number >> 23 | number << 41}};
}

/* The numbers of the authors' C code from the state 1, 2, 3, 4. */
TEST(rng, draws_the_published_numbers_of_xoshiro256_plus_plus)
{
    static const uint64_t numbers[] = {
        UINT64_C(41943041),
        UINT64_C(58720359),
        UINT64_C(3588806011781223),
        UINT64_C(3591011842654386),
        UINT64_C(9228616714210784205),
        UINT64_C(9973669472204895162),
        UINT64_C(14011001112246962877),
        UINT64_C(12406186145184390807),
        UINT64_C(15849039046786891736),
        UINT64_C(10450023813501588000),
    };
    stg_rng rng = {{1, 2, 3, 4}};

    for (size_t i = 0; i < COUNT(numbers); i++)
        CHECK_U64(stg_rng_next(&rng), numbers[i]);
}

/* The state is the first four numbers of the seed's splitmix64. */
TEST(rng, is_seeded_by_the_published_numbers_of_splitmix64)
{
    static const struct {
        uint64_t seed;
        uint64_t state[4];
    } rows[] = {
        {0,
         {UINT64_C(0xe220a8397b1dcdaf), UINT64_C(0x6e789e6aa1b965f4),
          UINT64_C(0x06c45d188009454f), UINT64_C(0xf88bb8a8724c81ec)}},
        {1234567,
         {UINT64_C(6457827717110365317), UINT64_C(3203168211198807973),
          UINT64_C(9817491932198370423), UINT64_C(4593380528125082431)}},
        {UINT64_C(1477776061723855037),
         {UINT64_C(1985237415132408290), UINT64_C(2979275885539914483),
          UINT64_C(13511426838097143398), UINT64_C(8488337342461049707)}},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        stg_rng rng = stg_rng_seed(rows[i].seed);

        for (int j = 0; j < 4; j++)
            CHECK_U64(rng.s[j], rows[i].state[j]);
    }
}

TEST(rng, draws_the_same_from_the_same_seed_and_other_numbers_from_others)
{
    for (uint64_t seed = 0; seed < seeds(1000); seed++) {
        stg_rng a = stg_rng_seed(seed), b = stg_rng_seed(seed);
        stg_rng other = stg_rng_seed(seed + 1);
        int equal = 0;

        for (int i = 0; i < 16; i++) {
            uint64_t number = stg_rng_next(&a);

            CHECK_FROM(seed, stg_rng_next(&b) == number);
            equal += stg_rng_next(&other) == number;
        }
        CHECK_FROM(seed, equal == 0);
    }
}

#ifdef __SIZEOF_INT128__
__extension__ typedef unsigned __int128 u128;

TEST(rng, puts_the_draw_into_its_range_as_the_formula_says)
{
    for (uint64_t seed = 0; seed < seeds(20000); seed++) {
        stg_rng rng = stg_rng_seed(seed);
        uint64_t limit = stg_rng_next(&rng) >> stg_rng_upto(&rng, 63);
        stg_rng copy = rng;
        u128 product = (u128)stg_rng_next(&copy) * ((u128)limit + 1);

        CHECK_FROM(seed,
                   stg_rng_upto(&rng, limit) == (uint64_t)(product >> 64));
        // From one draw, no more.
        CHECK_FROM(seed, memcmp(&rng, &copy, sizeof rng) == 0);
    }
}
#endif

TEST(rng, reaches_both_ends_of_every_range)
{
    static const uint64_t limits[] = {0,
                                      1,
                                      2,
                                      999,
                                      UINT32_MAX - 1,
                                      UINT32_MAX,
                                      UINT64_C(1) << 32,
                                      UINT64_C(1) << 63,
                                      UINT64_MAX - 1,
                                      UINT64_MAX};

    for (size_t i = 0; i < COUNT(limits); i++) {
        stg_rng least = about_to_draw(0), most = about_to_draw(UINT64_MAX);

        CHECK_U64(stg_rng_upto(&least, limits[i]), 0);
        CHECK_U64(stg_rng_upto(&most, limits[i]), limits[i]);
    }
}

/* L5: nonsense for a state draws nonsense, but within the range. */
TEST(rng, stays_in_range_from_a_hostile_state)
{
    static const stg_rng states[] = {
        {{0, 0, 0, 0}},
        {{UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX}},
        {{1, 0, 0, 0}},
        {{0, 0, 0, UINT64_MAX}},
        {{UINT64_C(1) << 63, 0, UINT64_C(1) << 63, 0}},
    };

    for (size_t i = 0; i < COUNT(states); i++) {
        stg_rng rng = states[i];

        for (uint64_t limit = 0; limit < 1000; limit++)
            CHECK_FROM(i, stg_rng_upto(&rng, limit) <= limit);
    }
}

TEST(rng, draws_zero_for_ever_from_zeros)
{
    stg_rng rng = {{0, 0, 0, 0}};

    for (int i = 0; i < 10; i++) {
        CHECK_U64(stg_rng_next(&rng), 0);
        CHECK_U64(stg_rng_upto(&rng, UINT64_MAX), 0);
    }
}

/* Pearson's statistic of draws from [0, cells - 1]. */
static double chi_square(uint64_t seed, uint64_t cells, uint64_t draws)
{
    uint64_t counts[128] = {0};
    double expected = (double)draws / (double)cells, sum = 0;
    stg_rng rng = stg_rng_seed(seed);

    for (uint64_t i = 0; i < draws; i++)
        counts[stg_rng_upto(&rng, cells - 1)]++;
    for (uint64_t i = 0; i < cells; i++) {
        double off = (double)counts[i] - expected;

        sum += off * off / expected;
    }
    return sum;
}

/* The limits are the points that a true generator passes once in 100000
 * times; the seeds are fixed. */
TEST(rng, fills_small_ranges_evenly)
{
    static const struct {
        uint64_t cells;
        double limit;
    } rows[] = {{2, 19.6}, {3, 23.1}, {7, 33.2}, {10, 39.4}, {100, 173.0}};

    for (uint64_t seed = 0; seed < seeds(20); seed++)
        for (size_t i = 0; i < COUNT(rows); i++)
            CHECK_FROM(seed,
                       chi_square(seed, rows[i].cells, 20000) < rows[i].limit);
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* Kolmogorov and Smirnov: the largest gap between the share of draws below x
 * and x, squared, times their number. */
static double squared_gap(uint64_t seed, uint64_t limit)
{
    enum { DRAWS = 5000 };
    static uint64_t draws[DRAWS];
    stg_rng rng = stg_rng_seed(seed);
    double largest = 0;

    for (int i = 0; i < DRAWS; i++)
        draws[i] = stg_rng_upto(&rng, limit);
    qsort(draws, DRAWS, sizeof *draws, compare);
    for (int i = 0; i < DRAWS; i++) {
        double share = (double)draws[i] / (double)limit;
        double above = (double)(i + 1) / DRAWS - share;
        double below = share - (double)i / DRAWS;

        largest = above > largest ? above : largest;
        largest = below > largest ? below : largest;
    }
    return largest * largest * DRAWS;
}

TEST(rng, fills_large_ranges_evenly)
{
    static const uint64_t limits[] = {UINT64_MAX, UINT64_C(3) << 62,
                                      UINT64_C(30000000000)};

    // sqrt(n) D > 2.47 has the probability 2 exp(-2 * 6.1) = 1 in 100000.
    for (uint64_t seed = 0; seed < seeds(20); seed++)
        for (size_t i = 0; i < COUNT(limits); i++)
            CHECK_FROM(seed, squared_gap(seed, limits[i]) < 6.1);
}
