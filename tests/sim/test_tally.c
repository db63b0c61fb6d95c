/* What counts: tallies, series, peaks and estimates. */
#include "sim/statistics.h"

#include <stdlib.h>

#include <stagger/ns.h>
#include <stagger/rng.h>

#include "sim/contention.h"
#include "tests/harness.h"
#include "tests/sim/memory.h"

static int compare(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

/* Any magnitude. */
static uint64_t draw(stg_rng *rng)
{
    return stg_rng_next(rng) >> stg_rng_upto(rng, 63);
}

TEST(tally, knows_quantiles_to_two_parts_in_its_precision)
{
    enum { VALUES = 2000 };

    for (uint64_t seed = 0; seed < seeds(100); seed++) {
        stg_rng rng = stg_rng_seed(seed);
        test_memory counts;
        stg_memory memory = test_memory_of(&counts);
        unsigned bits = 2 + (unsigned)stg_rng_upto(&rng, 10);
        uint64_t values[VALUES];
        stg_sim_tally t;

        stg_sim_tally_init(&t, bits, &memory);
        for (size_t i = 0; i < VALUES; i++) {
            values[i] = draw(&rng);
            CHECK_FROM(seed, stg_sim_tally_add(&t, values[i]));
        }
        qsort(values, VALUES, sizeof *values, compare);
        CHECK_FROM(seed, t.least == values[0]);
        CHECK_FROM(seed, t.most == values[VALUES - 1]);
        for (size_t i = 0; i < VALUES; i++) {
            double share = (double)(i + 1) / VALUES;
            uint64_t found = stg_sim_tally_quantile(&t, share);
            uint64_t off = values[i] >> (bits - 1);

            CHECK_FROM(seed, found >= values[i] && found - values[i] <= off);
            CHECK_FROM(seed, stg_sim_tally_below(&t, found) > i);
        }
        CHECK_FROM(seed, stg_sim_tally_quantile(&t, 1) == t.most);
        stg_sim_tally_close(&t);
        CHECK_FROM(seed, counts.held == 0);
    }
}

TEST(tally, does_not_care_for_the_order_or_for_how_it_is_merged)
{
    enum { PARTS = 3 };
    stg_rng rng = stg_rng_seed(1);
    test_memory counts;
    stg_memory memory = test_memory_of(&counts);
    stg_sim_tally whole, parts[PARTS];

    stg_sim_tally_init(&whole, 7, &memory);
    for (size_t i = 0; i < PARTS; i++)
        stg_sim_tally_init(&parts[i], 7, &memory);
    for (int i = 0; i < 5000; i++) {
        uint64_t value = draw(&rng);

        CHECK(stg_sim_tally_add(&whole, value));
        CHECK(stg_sim_tally_add(&parts[stg_rng_upto(&rng, 1)], value));
    }
    // The last part is empty.
    CHECK(stg_sim_tally_merge(&parts[2], &parts[1]));
    CHECK(stg_sim_tally_merge(&parts[2], &parts[0]));
    CHECK_U64(parts[2].count, whole.count);
    CHECK_U64(parts[2].least, whole.least);
    CHECK_U64(parts[2].most, whole.most);
    CHECK(stg_sim_tally_mean(&parts[2]) == stg_sim_tally_mean(&whole));
    for (int i = 0; i <= 100; i++)
        CHECK_U64(stg_sim_tally_quantile(&parts[2], i / 100.0),
                  stg_sim_tally_quantile(&whole, i / 100.0));
    stg_sim_tally_close(&whole);
    for (size_t i = 0; i < PARTS; i++)
        stg_sim_tally_close(&parts[i]);
    CHECK_INT(counts.held, 0);
}

TEST(tally, of_nothing_is_0)
{
    test_memory counts;
    stg_memory memory = test_memory_of(&counts);
    stg_sim_tally t;

    stg_sim_tally_init(&t, 8, &memory);
    CHECK_U64(stg_sim_tally_quantile(&t, 0.5), 0);
    CHECK_U64(stg_sim_tally_below(&t, 5), 0);
    CHECK(stg_sim_tally_mean(&t) == 0);
    counts.left = 0;
    CHECK(!stg_sim_tally_add(&t, 1));
    CHECK_U64(t.count, 0);
}

TEST(tally, adds_up_past_64_bits)
{
    test_memory counts;
    stg_memory memory = test_memory_of(&counts);
    stg_sim_tally t;

    stg_sim_tally_init(&t, 8, &memory);
    for (int i = 0; i < 4; i++)
        CHECK(stg_sim_tally_add(&t, UINT64_MAX));
    CHECK(stg_sim_tally_mean(&t) == 0x1p64);
    CHECK_U64(stg_sim_tally_quantile(&t, 0.5), UINT64_MAX);
    stg_sim_tally_close(&t);
}

/* -- series */

TEST(series, has_means_and_their_errors_by_slice)
{
    test_memory counts;
    stg_memory memory = test_memory_of(&counts);
    stg_sim_series one, two;
    double se;

    stg_sim_series_init(&one, 10 * STG_MS, 100, &memory);
    stg_sim_series_init(&two, 10 * STG_MS, 100, &memory);
    // Slice 0 has 1, 2 and 3 events, slice 7 only in the last run.
    for (int run = 1; run <= 3; run++) {
        stg_sim_series *s = run < 3 ? &one : &two;

        for (int i = 0; i < run; i++)
            CHECK(stg_sim_series_add(s, (stg_ns)i));
        if (run == 3)
            CHECK(stg_sim_series_add(s, 79 * STG_MS));
        CHECK(stg_sim_series_add(s, STG_S));
        stg_sim_series_finish(s);
    }
    CHECK(stg_sim_series_merge(&one, &two));
    CHECK_U64(one.runs, 3);
    CHECK_U64(one.beyond, 3);
    CHECK_INT(one.used, 8);
    CHECK(stg_sim_series_mean(&one, 0, &se) == 2);
    CHECK(0.57735 < se && se < 0.57736); // 1 / sqrt 3
    CHECK(stg_sim_series_mean(&one, 7, &se) > 0.333);
    CHECK(0.3333 < se && se < 0.3334);
    CHECK(stg_sim_series_mean(&one, 8, &se) == 0 && se == 0);
    stg_sim_series_close(&one);
    stg_sim_series_close(&two);
    CHECK_INT(counts.held, 0);
}

/* -- peaks */

static uint64_t count_most(const uint64_t *slices, size_t count, uint64_t width)
{
    size_t first = 0, most = 0;

    for (size_t i = 0; i < count; i++) {
        while (slices[i] - slices[first] >= width)
            first++;
        if (i + 1 - first > most)
            most = i + 1 - first;
    }
    return most;
}

TEST(peak, is_the_most_in_any_window)
{
    enum { EVENTS = 3000 };

    for (uint64_t seed = 0; seed < seeds(300); seed++) {
        stg_rng rng = stg_rng_seed(seed);
        stg_ns at = draw(&rng) >> 8, step = (stg_ns)1 << stg_rng_upto(&rng, 36);
        test_memory counts;
        stg_memory memory = test_memory_of(&counts);
        uint64_t slices[EVENTS];
        stg_sim_max_rate p;

        stg_sim_max_rate_init(&p, 100 * STG_MS, &memory);
        for (int round = 0; round < 2; round++) {
            stg_sim_max_rate_clear(&p);
            CHECK_FROM(seed, stg_sim_max_rate_most(&p) == 0);
            for (size_t i = 0; i < EVENTS; i++) {
                // Now and then a crowd, or a long silence.
                if (stg_rng_upto(&rng, 9) > 0)
                    at += stg_rng_upto(&rng, step);
                if (stg_rng_upto(&rng, 200) == 0)
                    at += stg_rng_upto(&rng, 3 * STG_S);
                slices[i] = at >> STG_MAX_RATE_SLICE_BITS;
                CHECK_FROM(seed, stg_sim_max_rate_add(&p, at));
            }
            CHECK_FROM(seed, stg_sim_max_rate_most(&p) ==
                                 count_most(slices, EVENTS, p.width));
        }
        stg_sim_max_rate_close(&p);
        CHECK_FROM(seed, counts.held == 0);
    }
}

/* -- estimates */

TEST(estimate, takes_roots_to_the_last_bit_but_one)
{
    stg_rng rng = stg_rng_seed(2);

    CHECK(stg_estimate_root(0) == 0);
    CHECK(stg_estimate_root(1) == 1);
    CHECK(stg_estimate_root(144) == 12);
    CHECK(stg_estimate_root(0x1p-1000) == 0x1p-500);
    for (int i = 0; i < 10000; i++) {
        double x = (double)draw(&rng), root = stg_estimate_root(x);
        double off = x > 0 ? (root * root - x) / x : 0;

        CHECK(-1e-15 < off && off < 1e-15);
    }
}

TEST(estimate, is_the_mean_and_its_error)
{
    static const double values[] = {2, 4, 4, 4, 5, 5, 7, 9};
    stg_estimate e = stg_estimate_make(values, 8);

    CHECK(e.mean == 5);
    CHECK(0.7559289 < e.se && e.se < 0.7559290); // sqrt(32 / 7 / 8)
    CHECK(stg_estimate_make(values, 1).se == 0);
    CHECK(stg_estimate_make(values, 0).mean == 0);
}
