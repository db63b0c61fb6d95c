#include "chart/chart.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/harness.h"
#include "tests/sim/golden.h"
#include "tests/sim/memory.h"
#include "tests/sim/samples.h"

static test_memory told;
static stg_memory memory;

static stg_text_buffer draw(const stg_chart *chart, int width)
{
    stg_svg_options options = stg_svg_options_default();
    stg_text_buffer p;

    memory = test_memory_of(&told);
    p = stg_text_buffer_on(&memory);
    options.width = width;
    stg_chart_svg(chart, &options, &p);
    CHECK(!p.is_short);
    return p;
}

/* A picture is the same bytes with every compiler and at every optimisation:
 * those of the golden files. */
TEST(svg, draws_the_charts_of_the_golden_files)
{
    for (int i = 0; i < SAMPLES; i++) {
        static const int widths[] = {760, 360};

        for (int k = 0; k < 2; k++) {
            stg_text_buffer p = draw(test_sample(i), widths[k]);
            char name[80];

            snprintf(name, sizeof name, "%s-%d.svg", test_sample(i)->name,
                     widths[k]);
            golden_check(name, p.text);
            stg_text_buffer_free(&p);
        }
    }
}

static stg_chart one_line(const stg_chart_series *series)
{
    static const stg_chart_panel panel = {.y = {.label = "y", .unit = "u"}};

    return (stg_chart){.name = "x",
                       .title = "a < b",
                       .x = {.label = "x", .unit = "v"},
                       .panels = &panel,
                       .panel_count = 1,
                       .series = series,
                       .series_count = 1};
}

TEST(svg, leaves_out_what_is_not_finite)
{
    stg_chart_point points[] = {{.x = 1, .y = 1},
                                {.x = 2, .y = NAN},
                                {.x = 3, .y = INFINITY},
                                {.x = 4, .y = 2},
                                {.x = NAN, .y = 2}};

    for (int mark = STG_MARK_LINE; mark <= STG_MARK_RANGE; mark++) {
        stg_chart_series series = {"line", (stg_chart_mark)mark, 0, 0, points,
                                   5};
        stg_chart chart = one_line(&series);
        stg_text_buffer p = draw(&chart, 400);

        CHECK(strstr(strstr(p.text, "</style>"), "none") == NULL);
        stg_text_buffer_free(&p);
    }
}

TEST(svg, draws_a_chart_of_nothing)
{
    stg_chart_series series = {"nothing", STG_MARK_LINE, 0, 0, NULL, 0};
    stg_chart chart = one_line(&series);
    stg_text_buffer p = draw(&chart, 400);

    CHECK(strstr(p.text, "aria-label=\"a &lt; b\"") != NULL);
    CHECK(strstr(p.text, "</svg>\n") != NULL);
    stg_text_buffer_free(&p);
}

TEST(svg, shows_the_number_of_each_point)
{
    stg_chart_point points[] = {{.x = 1, .y = 1500, .y_se = 2},
                                {.x = 2, .y = 3000}};
    stg_chart_series series = {"a&b", STG_MARK_LINE, 0, 0, points, 2};
    stg_chart chart = one_line(&series);
    stg_text_buffer p = draw(&chart, 700);

    CHECK(strstr(p.text,
                 "<title>1 v\na&amp;b: 1,500 u ± 2 u"
                 "</title>") != NULL);
    CHECK(strstr(p.text, "<title>2 v\na&amp;b: 3,000 u</title>") != NULL);
    stg_text_buffer_free(&p);
}

/* By the levels, whatever the points are: the upper one has gaps then. */
TEST(svg, shows_both_of_two_steps_that_are_one)
{
    stg_chart_point more[9], few[3];
    stg_chart_series series[2] = {{"few", STG_MARK_STEP, 0, 0, few, 3},
                                  {"more", STG_MARK_STEP, 1, 0, more, 9}};
    stg_chart chart = one_line(series);
    stg_text_buffer p;

    chart.series_count = 2;
    for (int i = 0; i < 9; i++)
        more[i] = (stg_chart_point){.x = i, .y = i / 3 * 100};
    for (int i = 0; i < 3; i++)
        few[i] = (stg_chart_point){.x = 3 * i + 0.5, .y = i * 100};
    p = draw(&chart, 700);
    CHECK(strstr(p.text, "\"l k c0\"") != NULL);
    CHECK(strstr(p.text, "\"l k c1\"") == NULL);
    stg_text_buffer_free(&p);
    few[1].y = few[2].y = 150;
    p = draw(&chart, 700);
    CHECK(strstr(p.text, "\"l k") == NULL);
    stg_text_buffer_free(&p);
}

/* A million dots make no picture of a hundred megabytes. */
TEST(svg, draws_a_crowd_once)
{
    static stg_chart_point crowd[1000000];
    stg_chart_series series = {"crowd", STG_MARK_DOTS, 0, 0, crowd, 1000000};
    stg_chart chart = one_line(&series);
    stg_text_buffer p;

    for (int i = 0; i < 1000000; i++)
        crowd[i] = (stg_chart_point){.x = i % 997, .y = i % 1009};
    p = draw(&chart, 700);
    CHECK(p.length < 2000000);
    stg_text_buffer_free(&p);
}

TEST(svg, says_when_memory_ran_out)
{
    stg_svg_options options = stg_svg_options_default();
    bool is_short = true;

    memory = test_memory_of(&told);
    for (size_t left = 0; is_short; left++) {
        stg_text_buffer p = stg_text_buffer_on(&memory);

        told.left = left;
        stg_chart_svg(test_sample(0), &options, &p);
        is_short = p.is_short;
        stg_text_buffer_free(&p);
        CHECK_INT(told.held, 0);
        CHECK(left > 0 || is_short);
        CHECK(is_short || left < 20);
    }
}
