#include <stagger/bulkhead.h>

#include "tests/harness.h"

static stg_bulkhead places(uint32_t max)
{
    stg_bulkhead b;
    stg_bulkhead_options o = {.max = max};

    CHECK_INT(stg_bulkhead_init(&b, &o), STG_OK);
    return b;
}

TEST(bulkhead, has_so_many_places_and_no_more)
{
    stg_bulkhead b = places(2);

    CHECK_U64(stg_bulkhead_taken(&b), 0);
    CHECK(stg_bulkhead_enter(&b));
    CHECK(stg_bulkhead_enter(&b));
    CHECK(!stg_bulkhead_enter(&b));
    CHECK_U64(stg_bulkhead_taken(&b), 2);
    stg_bulkhead_leave(&b);
    CHECK_U64(stg_bulkhead_taken(&b), 1);
    CHECK(stg_bulkhead_enter(&b));
    CHECK(!stg_bulkhead_enter(&b));
}

TEST(bulkhead, has_no_more_places_when_more_leave_than_entered)
{
    stg_bulkhead b = places(1);

    stg_bulkhead_leave(&b);
    CHECK_U64(stg_bulkhead_taken(&b), 0);
    CHECK(stg_bulkhead_enter(&b));
    CHECK(!stg_bulkhead_enter(&b));
}

TEST(bulkhead, lets_all_in_without_a_limit)
{
    stg_bulkhead b = places(0);

    for (int i = 0; i < 100; i++)
        CHECK(stg_bulkhead_enter(&b));
    CHECK_U64(stg_bulkhead_taken(&b), 0);
    CHECK(stg_bulkhead_enter(NULL));
    stg_bulkhead_leave(NULL);
    CHECK_U64(stg_bulkhead_taken(NULL), 0);
}

TEST(bulkhead, refuses_options_out_of_range_and_names_them)
{
    static const struct {
        stg_bulkhead_options options;
        const char *text;
    } rows[] = {
        {{1000001, 0},
         "bulkhead=1000001 is out of range, expected 1 to 1000000 attempts at "
         "once, or none"},
        {{0, 1},
         "bulkhead wait=1ns is out of range, expected 0 without a limit"},
        {{1, 365 * STG_DAY + 1},
         "bulkhead wait=31536000000000001ns is out of range, expected 0 to "
         "365d"},
    };
    static const stg_bulkhead_options ends[] = {
        {0, 0}, {1, 0}, {1, 1}, {1000000, 365 * STG_DAY}};
    stg_bulkhead b;
    stg_error err;

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CHECK_INT(stg_bulkhead_check(&rows[i].options, &err), STG_INVALID);
        CHECK_STR(err.text, rows[i].text);
        CHECK_INT(stg_bulkhead_init(&b, &rows[i].options), STG_INVALID);
    }
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        CHECK_INT(stg_bulkhead_check(&ends[i], NULL), STG_OK);
        CHECK_INT(stg_bulkhead_init(&b, &ends[i]), STG_OK);
        CHECK_U64(b.options.wait, ends[i].wait);
    }
    CHECK_INT(stg_bulkhead_check(NULL, &err), STG_INVALID);
    CHECK_STR(err.text, "bulkhead options are NULL");
    CHECK_INT(stg_bulkhead_init(&b, NULL), STG_INVALID);
    CHECK_INT(stg_bulkhead_init(NULL, &ends[0]), STG_INVALID);
}
