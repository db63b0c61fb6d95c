#include "chart/table.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/harness.h"
#include "tests/sim/memory.h"

static test_memory told;
static stg_memory memory;

static const double curve[] = {0, 1, 2, 4, 8, 4, 2, 0};

static const stg_table_column columns[] = {
    {"policy", "policy", .rank = 0},
    {"calls", "calls", .rank = 2},
    {"completion_ms", "done", .is_time = true},
    {"client_ms.p50", "p50", .is_time = true, .rank = 3},
    {"client_ms.max", NULL, .is_time = true},
    {"ok", "ok", .rank = 1},
    {NULL, "over time", .rank = 0},
};

enum { COLUMNS = sizeof columns / sizeof *columns };

/* Two rows, one of them with all that is awkward. */
static stg_table sample(void)
{
    static stg_cell cells[2 * COLUMNS];
    const stg_cell all[] = {
        stg_cell_text("full"),          stg_cell_estimate(1802.25, 3.5),
        stg_cell_estimate(2500, 12),    stg_cell_number(900.5),
        stg_cell_number(2600),          stg_cell_fact(true),
        stg_cell_spark(curve, 8),       stg_cell_text("a,\"b\"\n<c>"),
        stg_cell_estimate(INFINITY, 0), (stg_cell){.kind = STG_CELL_NONE},
        stg_cell_number(NAN),           stg_cell_number(0),
        stg_cell_fact(false),           stg_cell_spark(NULL, 0),
    };

    memcpy(cells, all, sizeof cells);
    return (stg_table){.columns = columns,
                       .column_count = COLUMNS,
                       .cells = cells,
                       .row_count = 2};
}

static const char *take(stg_text_buffer *p)
{
    static char text[4000];

    CHECK(!p->is_short);
    snprintf(text, sizeof text, "%s", p->text == NULL ? "" : p->text);
    stg_text_buffer_free(p);
    CHECK_INT(told.held, 0);
    return text;
}

static stg_text_buffer buffer(void)
{
    memory = test_memory_of(&told);
    return stg_text_buffer_on(&memory);
}

TEST(table, writes_csv)
{
    stg_table t = sample();
    stg_text_buffer p = buffer();

    stg_table_csv(&t, &p);
    CHECK_TRACE(take(&p),
                "policy,calls,calls_se,completion_ms,completion_ms_se,"
                "client_ms_p50,client_ms_max,ok\n"
                "full,1802.25,3.5,2500,12,900.5,2600,true\n"
                "\"a,\"\"b\"\"\n<c>\",,0,,,,0,false\n");
}

TEST(table, writes_json)
{
    stg_table t = sample();
    stg_text_buffer p = buffer();

    stg_table_json(&t, &p);
    CHECK_TRACE(
        take(&p),
        "[\n"
        "    {\"policy\": \"full\", \"calls\": {\"mean\": 1802.25, \"se\": 3.5}"
        ", \"completion_ms\": {\"mean\": 2500, \"se\": 12}, \"client_ms\": "
        "{\"p50\": 900.5, \"max\": 2600}, \"ok\": true},\n"
        "    {\"policy\": \"a,\\\"b\\\"\\u000a<c>\", \"calls\": {\"mean\": null"
        ", \"se\": 0}, \"completion_ms\": null, \"client_ms\": {\"p50\": null, "
        "\"max\": 0}, \"ok\": false}\n"
        "  ]");
}

TEST(table, draws_lines_with_sparklines)
{
    stg_table t = sample();
    stg_text_buffer p = buffer();

    t.row_count = 1;
    stg_table_text(&t, 80, true, &p);
    CHECK_TRACE(take(&p),
                "policy  calls   done     p50   ok  over time\n"
                "full    1,802  2.5 s  901 ms  yes   ▁▂▄█▄▂\n");
    p = buffer();
    stg_table_text(&t, 80, false, &p);
    CHECK_TRACE(take(&p),
                "policy  calls   done     p50   ok  over time\n"
                "full    1,802  2.5 s  901 ms  yes   ..-#-.\n");
}

/* By rank; those of 0 stay, however narrow it is. */
TEST(table, leaves_out_columns_that_do_not_fit)
{
    stg_table t = sample();
    stg_text_buffer p = buffer();

    t.row_count = 1;
    stg_table_text(&t, 37, false, &p);
    CHECK_TRACE(take(&p),
                "policy  calls   done   ok  over time\n"
                "full    1,802  2.5 s  yes   ..-#-.\n");
    p = buffer();
    stg_table_text(&t, 10, false, &p);
    CHECK_TRACE(take(&p),
                "policy   done  over time\n"
                "full    2.5 s   ..-#-.\n");
}

TEST(table, writes_html_that_is_escaped)
{
    stg_table t = sample();
    stg_text_buffer p = buffer();
    const char *text;

    stg_table_html(&t, &p);
    text = take(&p);
    CHECK(strstr(text, "a,&quot;b&quot;\n&lt;c&gt;") != NULL);
    CHECK(strstr(text, "<c>") == NULL);
    CHECK(strstr(text, "1,802 <small>± 3.5</small>") != NULL);
}
