#include "chart/chart.h"

#include "tests/harness.h"
#include "tests/sim/memory.h"

static test_memory told;

/* The third is beaten by the second; the fourth is the same as the first, and
 * neither beats the other. */
static const stg_chart_spot spots[] = {
    {.name = "dear", .colour = 0, .point = {.x = 3, .y = 1, .y_se = 0.5}},
    {.name = "slow", .colour = 1, .point = {.x = 1, .y = 4}},
    {.name = "worse", .colour = 2, .point = {.x = 1, .y = 5}},
    {.name = "same", .colour = 3, .point = {.x = 3, .y = 1}},
};

enum { COUNT = sizeof spots / sizeof *spots };

TEST(frontier, joins_the_spots_that_none_beats_in_both)
{
    stg_memory memory = test_memory_of(&told);
    stg_chart_set set = stg_chart_set_on(&memory);
    stg_chart_series series[COUNT + 1] = {{0}};
    const stg_chart_series *line = &series[COUNT];

    stg_chart_set_frontier(&set, spots, COUNT, 1, 10, series);
    CHECK(!set.is_short);
    CHECK_STR(series[2].name, "worse");
    CHECK_INT(series[2].mark, STG_MARK_SPOT);
    CHECK_INT(series[2].colour, 2);
    CHECK(series[0].points[0].y_se == 0.5);
    CHECK_INT(line->mark, STG_MARK_LINE);
    CHECK_INT(line->colour, 10);
    CHECK_INT(line->panel, 1);
    CHECK_INT(line->count, 3);
    CHECK(line->points[0].x == 1 && line->points[0].y == 4);
    CHECK(line->points[1].x == 3 && line->points[2].x == 3);
    CHECK(line->points[1].y_se == 0); // a line has no errors
    stg_chart_set_free(&set);
    CHECK_INT(told.held, 0);
}

TEST(frontier, has_no_line_without_memory)
{
    stg_memory memory = test_memory_of(&told);
    stg_chart_set set = stg_chart_set_on(&memory);
    stg_chart_series series[COUNT + 1] = {{0}};

    told.left = 2;
    stg_chart_set_frontier(&set, spots, COUNT, 0, 10, series);
    CHECK(set.is_short);
    CHECK_INT(series[COUNT].count, 0);
    stg_chart_set_free(&set);
}
