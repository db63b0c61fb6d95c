#include "chart/chart.h"

#include <stdlib.h>
#include <string.h>

#include "tests/harness.h"
#include "tests/sim/golden.h"
#include "tests/sim/memory.h"
#include "tests/sim/samples.h"

static test_memory told;
static stg_memory memory;

static stg_page sample(void)
{
    static const stg_chart *charts[2];
    static const stg_table_column columns[] = {{"policy", "policy", .rank = 0},
                                               {"calls", "calls", .rank = 0}};
    static stg_cell cells[2];
    static stg_table table = {.title = "All of it",
                              .columns = columns,
                              .column_count = 2,
                              .cells = cells,
                              .row_count = 1};

    cells[0] = stg_cell_text("a<b");
    cells[1] = stg_cell_estimate(1802, 3);
    charts[0] = test_sample(3);
    charts[1] = test_sample(7);
    return (stg_page){
        .title = "What <retries> cost",
        .lead = "Made up & small.\n\n    fixed base=<1s>\nThat is all.",
        .command = "stagger sim contention -p 'a=b'",
        .tables = &table,
        .table_count = 1,
        .charts = charts,
        .chart_count = 2};
}

TEST(page, is_the_golden_one)
{
    stg_page page = sample();
    stg_text_buffer p;

    memory = test_memory_of(&told);
    p = stg_text_buffer_on(&memory);
    stg_page_html(&page, &p);
    CHECK(!p.is_short);
    golden_check("page.html", p.text);
    stg_text_buffer_free(&p);
    CHECK_INT(told.held, 0);
}

TEST(page, says_nothing_twice)
{
    stg_page page = {.title = "All recover",
                     .lead = "A setting.\nAll recover.\nAll recover, too.\n"};
    stg_text_buffer p;

    memory = test_memory_of(&told);
    p = stg_text_buffer_on(&memory);
    stg_page_html(&page, &p);
    CHECK(strstr(p.text, "<p>A setting.</p>") != NULL);
    CHECK(strstr(p.text, "<p>All recover.</p>") == NULL);
    CHECK(strstr(p.text, "<p>All recover, too.</p>") != NULL);
    stg_text_buffer_free(&p);
    CHECK_INT(told.held, 0);
}

/* It is for any machine, for ever: no script, and nothing from elsewhere. */
TEST(page, needs_nothing_else)
{
    stg_page page = sample();
    stg_text_buffer p;

    memory = test_memory_of(&told);
    p = stg_text_buffer_on(&memory);
    stg_page_html(&page, &p);
    CHECK(strstr(p.text, "<script") == NULL);
    CHECK(strstr(p.text, "url(") == NULL);
    CHECK(strstr(p.text, "src=") == NULL);
    for (const char *at = p.text; (at = strstr(at, "http")) != NULL; at++)
        CHECK(strncmp(at, "http-equiv", 10) == 0 ||
              strncmp(at, "http://www.w3.org/2000/svg", 26) == 0);
    stg_text_buffer_free(&p);
}

TEST(charts, keeps_what_charts_point_to)
{
    stg_chart_set a;
    stg_chart_draft draft;
    stg_text_buffer p;

    memory = test_memory_of(&told);
    a = stg_chart_set_on(&memory);
    p = stg_text_buffer_on(&memory);
    CHECK(stg_chart_set_add(&a, "x", 1, 2, &draft));
    stg_text_buffer_put(&p, "a title");
    draft.chart->title = stg_chart_set_text(&a, &p);
    CHECK(stg_chart_set_points(&a, &draft.series[0], 3) != NULL);
    CHECK_INT(draft.chart->series[0].count, 3);
    CHECK_STR(a.charts[0]->title, "a title");
    CHECK_INT(p.length, 0);
    stg_text_buffer_free(&p);
    stg_chart_set_free(&a);
    CHECK_INT(told.held, 0);
}

TEST(charts, says_when_memory_ran_out)
{
    for (size_t left = 0; left < 3; left++) {
        stg_chart_set a;
        stg_chart_draft draft;

        memory = test_memory_of(&told);
        told.left = left;
        a = stg_chart_set_on(&memory);
        CHECK(!stg_chart_set_add(&a, "x", 1, 1, &draft));
        CHECK(a.is_short);
        CHECK(stg_chart_set_take(&a, 1) == NULL);
        stg_chart_set_free(&a);
        CHECK_INT(told.held, 0);
    }
}
