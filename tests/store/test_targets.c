/* Rows of targets that calls have added. */
#include <stdio.h>
#include <string.h>

#include "store/target_rows.h"
#include "tests/harness.h"
#include "tests/store/fixture.h"

static const char all[] = "SELECT name, settings FROM targets ORDER BY name";

typedef struct written {
    bool is_done;
    stg_target_write how;
    uint64_t version;
} written;

static void note(void *ctx, stg_target_write how, uint64_t version)
{
    *(written *)ctx = (written){true, how, version};
}

/* Waits. */
static written put(fixture *s, const char *name, const char *settings,
                   uint64_t expected)
{
    written w = {.is_done = false};

    stg_store_write_target(s->store, name, settings, expected, note, &w);
    FIXTURE_UNTIL(s, w.is_done);
    return w;
}

TEST(store_targets, are_written_once_for_a_version)
{
    written a, b;
    fixture s;

    fixture_make(&s);
    fixture_open(&s);
    a = put(&s, "a", "{\"url\":1}", 0);
    CHECK_INT(a.how, STG_TARGET_WRITTEN);
    CHECK_INT(put(&s, "a", "{}", 0).how, STG_TARGET_DIFFERS);
    CHECK_INT(put(&s, "a", "{}", a.version + 1).how, STG_TARGET_DIFFERS);
    CHECK_STR(fixture_ask(&s, all), "a|{\"url\":1}");
    b = put(&s, "a", "{}", a.version);
    CHECK_INT(b.how, STG_TARGET_WRITTEN);
    CHECK(b.version > a.version);
    CHECK_INT(put(&s, "a", NULL, a.version).how, STG_TARGET_DIFFERS);
    CHECK_STR(fixture_ask(&s, all), "a|{}");
    fixture_end(&s);
}

TEST(store_targets, have_another_version_when_they_come_back)
{
    written first, second;
    fixture s;

    fixture_make(&s);
    fixture_open(&s);
    first = put(&s, "a", "{}", 0);
    CHECK_INT(put(&s, "a", NULL, first.version).how, STG_TARGET_WRITTEN);
    CHECK_STR(fixture_ask(&s, all), "");
    second = put(&s, "a", "{}", 0);
    CHECK(second.version > first.version);
    fixture_end(&s);
}

static void join(void *ctx, const stg_target_row *rows, size_t count)
{
    char *text = ctx;

    for (size_t i = 0; i < count; i++)
        sprintf(text + strlen(text), "%s=%s ", rows[i].name, rows[i].settings);
}

TEST(store_targets, are_read_in_the_order_of_their_versions)
{
    char text[200] = "";
    stg_error err;
    written b;
    fixture s;

    fixture_make(&s);
    fixture_open(&s);
    b = put(&s, "b", "{}", 0);
    put(&s, "a", "{\"x\":\"\303\244\"}", 0);
    put(&s, "b", "", b.version);
    fixture_reopen(&s);
    CHECK_INT(stg_store_target_rows(s.store, join, text, &err), STG_OK);
    CHECK_STR(text, "a={\"x\":\"\303\244\"} b= ");
    fixture_end(&s);
}
