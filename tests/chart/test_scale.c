#include "chart/svg_internal.h"

#include <math.h>
#include <stdio.h>

#include "tests/harness.h"
#include "tests/sim/memory.h"

#include <stagger/rng.h>

static test_memory told;

/* "0 50 100 | ms", the ticks as they are labelled, and the unit. */
static const char *ticks(const stg_chart_axis *axis, double from, double to,
                         int room, bool is_tight)
{
    static char text[400];
    stg_memory memory = test_memory_of(&told);
    stg_text_buffer p = stg_text_buffer_on(&memory);
    stg_extent e = {.from = from, .to = to};
    stg_scale s = stg_scale_make(axis, &e, room, is_tight);

    for (int i = 0; i < s.tick_count; i++) {
        stg_scale_put_tick(&s, s.ticks[i], &p);
        stg_text_buffer_put_char(&p, ' ');
    }
    stg_text_buffer_form(&p, "| %s", s.unit_name);
    snprintf(text, sizeof text, "%s", p.text);
    stg_text_buffer_free(&p);
    return text;
}

TEST(scale, marks_what_people_count_by)
{
    stg_chart_axis axis = {.unit = "calls"};

    CHECK_STR(ticks(&axis, 0, 187, 5, false), "0 50 100 150 200 | calls");
    CHECK_STR(ticks(&axis, 10, 190, 6, true), "50 100 150 | calls");
    CHECK_STR(ticks(&axis, 0, 0.7, 5, false), "0 0.2 0.4 0.6 0.8 | calls");
    CHECK_STR(ticks(&axis, -3, 3, 5, false), "-4 -2 0 2 4 | calls");
}

TEST(scale, chooses_the_unit_of_times)
{
    stg_chart_axis axis = {.is_time = true};

    CHECK_STR(ticks(&axis, 0, 900, 5, true), "0 200 400 600 800 | ms");
    CHECK_STR(ticks(&axis, 0, 8000, 5, true), "0 2 4 6 8 | s");
    CHECK_STR(ticks(&axis, 0, 120e3, 5, true), "0 30 60 90 120 | s");
    CHECK_STR(ticks(&axis, 0, 1800e3, 5, true), "0 10 20 30 | min");
    CHECK_STR(ticks(&axis, 0, 0.9, 5, true), "0 200 400 600 800 | us");
}

TEST(scale, marks_decades_and_what_is_between_where_there_is_room)
{
    stg_chart_axis axis = {.unit = "calls", .is_log = true};
    stg_chart_axis time = {.is_time = true, .is_log = true};

    CHECK_STR(ticks(&axis, 30, 40000, 5, false), "100 1,000 10,000 | calls");
    CHECK_STR(ticks(&axis, 30, 450, 6, false), "20 50 100 200 500 | calls");
    CHECK_STR(ticks(&axis, 1e-3, 1e9, 5, false),
              "0.001 1 1,000 1,000,000 1,000,000,000 | calls");
    CHECK_STR(ticks(&time, 40, 20000, 4, false), "100 ms 1 s 10 s | s");
}

TEST(scale, is_never_empty)
{
    stg_chart_axis line = {.unit = "calls"};
    stg_chart_axis log = {.unit = "calls", .is_log = true};
    stg_extent none = {.is_empty = true};
    stg_extent one = {.from = 7, .to = 7};

    CHECK(stg_scale_make(&line, &none, 5, true).tick_count >= 2);
    CHECK(stg_scale_make(&log, &none, 5, true).tick_count >= 2);
    CHECK(stg_scale_make(&line, &one, 5, false).tick_count >= 2);
    CHECK(stg_scale_make(&log, &one, 5, false).tick_count >= 1);
}

/* Whatever the range, an axis has ticks, in order and in it, and not too
 * many. */
TEST(scale, has_ticks_for_any_range)
{
    for (uint64_t seed = 0; seed < seeds(20000); seed++) {
        stg_rng rng = stg_rng_seed(seed);
        double from = ldexp((double)stg_rng_upto(&rng, 1000) - 500,
                            (int)stg_rng_upto(&rng, 60) - 30);
        double range = ldexp((double)stg_rng_upto(&rng, 1000) + 1,
                             (int)stg_rng_upto(&rng, 60) - 30);
        stg_chart_axis axis = {.is_time = seed % 3 == 0,
                               .is_log = seed % 2 == 0};
        bool is_tight = seed % 5 < 2;
        int room = 2 + (int)(seed % 9);
        stg_extent e = {.from = axis.is_log ? fabs(from) + 1e-6 : from};
        double slack;
        stg_scale s;

        range = range < fabs(from) * 1e-6 ? fabs(from) * 1e-6 : range;
        e.to = e.from + range;
        slack = 1e-6 * range + 2e-9 * fabs(e.to);
        s = stg_scale_make(&axis, &e, room, is_tight);
        CHECK_FROM(seed, s.tick_count <= room + 3);
        CHECK_FROM(seed, s.tick_count >= 1 || is_tight || axis.is_log);
        CHECK_FROM(seed,
                   s.from <= e.from * (1 + 1e-9) + 1e-9 * range || e.from < 0);
        for (int i = 0; i < s.tick_count; i++) {
            CHECK_FROM(seed, i == 0 || s.ticks[i] > s.ticks[i - 1]);
            CHECK_FROM(seed, s.ticks[i] >= s.from - slack);
            CHECK_FROM(seed, s.ticks[i] <= s.to + slack);
        }
    }
}

TEST(scale, takes_logarithms_without_libm)
{
    for (uint64_t seed = 0; seed < seeds(20000); seed++) {
        stg_rng rng = stg_rng_seed(seed);
        double x = ldexp((double)(stg_rng_next(&rng) >> 11) + 1,
                         (int)stg_rng_upto(&rng, 2000) - 1053);
        double expected = log10(x);

        CHECK_FROM(seed, fabs(stg_log10(x) - expected) <=
                             1e-12 + 1e-12 * fabs(expected));
    }
}

TEST(scale, places_numbers_between_the_ends)
{
    stg_chart_axis log = {.is_log = true};
    stg_extent e = {.from = 1, .to = 10000};
    stg_scale s = stg_scale_make(&log, &e, 5, false);

    s.at_from = 400;
    s.at_to = 0;
    CHECK_INT(stg_scale_place(&s, 1), 400);
    CHECK_INT(lround(stg_scale_place(&s, 100)), 200);
    CHECK_INT(stg_scale_place(&s, 1e9), 0);
}
