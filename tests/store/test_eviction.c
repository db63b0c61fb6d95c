/* I30: how letters leave the store, in a file and in PostgreSQL. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "host/wall.h"
#include "store/dead_letters.h"
#include "store/sql.h"
#include "tests/harness.h"
#include "tests/store/fixture.h"

static const char *const letters =
    "SELECT target, why, cause, state, count FROM failed_broadcast_logs"
    " ORDER BY why, target, cause DESC, id";

static void die_of(fixture *s, uint32_t lane, uint64_t position, int status,
                   const char *body)
{
    stg_failure failure = fixture_failure(status, STG_WHY_PERMANENT);
    stg_change c = {.kind = STG_CHANGE_DEAD,
                    .lane = lane,
                    .position = position,
                    .message = fixture_message(s, position, body),
                    .failure = &failure,
                    .progress = {.attempts = 3}};

    CHECK_INT(fixture_change(s, &c), STG_STORED);
}

static void die(fixture *s, uint32_t lane, uint64_t position, int status)
{
    die_of(s, lane, position, status, "body");
}

static void shed(fixture *s, uint32_t lane, uint64_t first, uint64_t last)
{
    stg_change c = {.kind = STG_CHANGE_RANGE,
                    .lane = lane,
                    .position = first,
                    .last_position = last,
                    .count = last - first + 1};

    CHECK_INT(fixture_change(s, &c), STG_STORED);
}

static void on_sum(void *ctx, const stg_letters_sum *sum)
{
    CHECK_INT(sum->end, STG_LETTERS_DONE);
    *(stg_letters_sum *)ctx = *sum;
    ((stg_letters_sum *)ctx)->held = "done";
}

static stg_letters_sum drop(fixture *s, const stg_letter_filter *f)
{
    stg_letters_sum sum = {.held = NULL};

    stg_store_drop(s->store, f, false, on_sum, &sum);
    FIXTURE_UNTIL(s, sum.held != NULL);
    return sum;
}

static stg_letters_sum replay(fixture *s, const stg_letter_filter *f)
{
    stg_letters_sum sum = {.held = NULL};

    stg_store_replay(s->store, f, false, on_sum, &sum);
    FIXTURE_UNTIL(s, sum.held != NULL);
    return sum;
}

static void check_letters(fixture *s, const char *expected)
{
    FIXTURE_POLL(s, strcmp(fixture_ask(s, letters), expected) == 0);
}

static void check_deleted(fixture *s, const char *expected)
{
    CHECK_STR(fixture_ask(s,
                          "SELECT lane, dead, cancelled FROM deleted_letters"
                          " ORDER BY lane"),
              expected);
}

/* By a clock that is set: the rows turn older. */
static void make_older(fixture *s, const char *condition)
{
    char text[400];

    snprintf(text, sizeof text,
             "UPDATE failed_broadcast_logs SET"
             " created_at = '2026-01-01T00:00:00.000Z',"
             " last_attempt_at = '2026-01-01T00:00:00.000Z', changed_at ="
             " CASE WHEN state = 'dead' THEN NULL ELSE"
             " '2026-01-01T00:00:00.000Z' END WHERE %s",
             condition);
    fixture_ask(s, text);
}

TEST(store_eviction, deletes_what_ended_a_day_ago_and_the_books_count_it)
{
    const uint64_t ids[] = {1, 3};
    stg_change cancel = {.kind = STG_CHANGE_CANCEL, .lane = 1};
    fixture s;

    fixture_make(&s);
    fixture_open(&s);
    fixture_lane(&s, "a");
    fixture_lane(&s, "b");
    for (uint64_t i = 1; i <= 4; i++)
        die(&s, 0, i, 500);
    fixture_park(&s, 1, 9, 5, "x");
    CHECK_INT(fixture_change(&s, &cancel), STG_STORED);
    CHECK_U64(drop(&s, &(stg_letter_filter){.ids = ids, .id_count = 2}).letters,
              2);
    fixture_close(&s);
    make_older(&s, "id <> 3");
    fixture_open(&s);
    check_letters(&s,
                  "a|permanent|HTTP_500|dead|1\n"
                  "a|permanent|HTTP_500|dropped|1\n"
                  "a|permanent|HTTP_500|dead|1");
    check_deleted(&s, "0|1|0\n1|0|1");
    fixture_end(&s);
}

TEST(store_eviction, counts_the_oldest_beyond_a_number_by_target_and_cause)
{
    stg_letters_sum sum;
    fixture s;

    fixture_make(&s);
    s.options.dead.max = 2;
    fixture_open(&s);
    fixture_lane(&s, "a");
    fixture_lane(&s, "b");
    die(&s, 0, 1, 500);
    die(&s, 0, 2, 404);
    die(&s, 1, 1, 500);
    die(&s, 0, 3, 500);
    die(&s, 1, 2, 404);
    die(&s, 1, 3, 404);
    if (s.is_postgres)
        fixture_reopen(&s); // it is counted now and then
    check_letters(&s,
                  "a|evicted|HTTP_500|dead|2\n"
                  "a|evicted|HTTP_404|dead|1\n"
                  "b|evicted|HTTP_500|dead|1\n"
                  "b|permanent|HTTP_404|dead|1\n"
                  "b|permanent|HTTP_404|dead|1");
    check_deleted(&s, "0|3|0\n1|1|0");
    // Nothing of them can be sent again.
    sum = replay(&s, &(stg_letter_filter){.target = "a"});
    CHECK_U64(sum.letters, 0);
    CHECK_U64(sum.expired, 3);
    sum = drop(&s, &(stg_letter_filter){.cause = "HTTP_500"});
    CHECK_U64(sum.letters, 2);
    CHECK_U64(sum.messages, 3);
    fixture_close(&s);
    make_older(&s, "state = 'dropped'");
    fixture_open(&s);
    check_letters(&s,
                  "a|evicted|HTTP_404|dead|1\n"
                  "b|permanent|HTTP_404|dead|1\n"
                  "b|permanent|HTTP_404|dead|1");
    check_deleted(&s, "0|3|0\n1|1|0");
    fixture_end(&s);
}

TEST(store_eviction, counts_what_is_older_than_it_is_kept)
{
    fixture s;

    fixture_make(&s);
    s.options.dead.keep = STG_HOUR;
    fixture_open(&s);
    fixture_lane(&s, "a");
    for (uint64_t i = 1; i <= 300; i++) // more than a piece
        die(&s, 0, i, 500);
    fixture_close(&s);
    make_older(&s, "id < 300");
    fixture_open(&s);
    check_letters(&s,
                  "a|evicted|HTTP_500|dead|299\n"
                  "a|permanent|HTTP_500|dead|1");
    fixture_end(&s);
}

/* Flow names the newest row of a lane and partition, and lengthens it. */
TEST(store_eviction, spares_a_range_row_that_may_grow)
{
    fixture s;

    fixture_make(&s);
    s.options.dead.keep = STG_HOUR;
    fixture_open(&s);
    fixture_lane(&s, "a");
    shed(&s, 0, 10, 19);
    shed(&s, 0, 30, 34);
    fixture_close(&s);
    make_older(&s, "id > 0");
    fixture_open(&s);
    check_letters(&s, "a|evicted|SHED|dead|10\na|shed|SHED|dead|5");
    shed(&s, 0, 30, 39);
    CHECK_STR(fixture_ask(&s, letters),
              "a|evicted|SHED|dead|10\na|shed|SHED|dead|10");
    fixture_end(&s);
}

TEST(store_eviction, spares_a_range_row_that_a_replay_has_bitten_into)
{
    char now[STG_SQL_TIME_MAX], text[200];
    fixture s;

    fixture_make(&s);
    s.options.dead.keep = STG_HOUR;
    fixture_open(&s);
    fixture_lane(&s, "a");
    shed(&s, 0, 10, 19);
    shed(&s, 0, 20, 29);
    shed(&s, 0, 30, 39);
    fixture_close(&s);
    make_older(&s, "id > 0");
    snprintf(text, sizeof text,
             "UPDATE failed_broadcast_logs SET eaten = 3, count = 7,"
             " changed_at = '%s' WHERE id = 1",
             stg_sql_time(stg_wall_now(), now));
    fixture_ask(&s, text);
    fixture_open(&s);
    check_letters(&s,
                  "a|evicted|SHED|dead|10\na|shed|SHED|dead|7\n"
                  "a|shed|SHED|dead|10");
    fixture_end(&s);
}

/* -- the copy */

static uint64_t copied_to; /* ids up to here */

static stg_status take_some(void *ctx, const stg_letter *rows, size_t count,
                            stg_letter_report *report, stg_error *err)
{
    (void)ctx;
    *report = (stg_letter_report){.written = 0};
    snprintf(err->text, sizeof err->text, "no more room in the test");
    while (report->written < count && rows[report->written].id <= copied_to)
        report->written++;
    return report->written < count ? STG_IO : STG_OK;
}

TEST(store_eviction, waits_for_the_copy)
{
    fixture s;

    fixture_make(&s);
    copied_to = 0;
    s.options.dead.max = 1;
    s.options.sink = (stg_letter_sink){.write = take_some};
    fixture_open(&s);
    fixture_lane(&s, "a");
    for (uint64_t i = 1; i <= 3; i++)
        die(&s, 0, i, 500);
    FIXTURE_UNTIL(&s, s.times_troubled > 0);
    CHECK_STR(fixture_ask(&s, "SELECT count(*) FROM failed_broadcast_logs"),
              "3");
    copied_to = 3;
    if (s.is_postgres)
        fixture_reopen(&s);
    check_letters(&s,
                  "a|evicted|HTTP_500|dead|2\n"
                  "a|permanent|HTTP_500|dead|1");
    fixture_end(&s);
}

/* Ids and versions are never given twice, though the newest rows are gone. */
TEST(store_eviction, never_gives_an_id_or_a_version_twice)
{
    fixture s;

    fixture_make(&s);
    copied_to = 100;
    s.options.sink = (stg_letter_sink){.write = take_some};
    fixture_open(&s);
    fixture_lane(&s, "a");
    die(&s, 0, 1, 500);
    die(&s, 0, 2, 500);
    drop(&s, &(stg_letter_filter){.target = "a"});
    fixture_close(&s);
    make_older(&s, "id > 0");
    fixture_open(&s);
    check_letters(&s, "");
    fixture_close(&s);
    copied_to = 0;
    fixture_open(&s);
    s.times_troubled = 0;
    die(&s, 0, 3, 500);
    FIXTURE_UNTIL(&s, s.times_troubled > 0); // it comes to the copy
    CHECK_STR(fixture_ask(&s, "SELECT id FROM failed_broadcast_logs"), "3");
    copied_to = 3;
    fixture_end(&s);
}

/* -- the share of a file's quota; PostgreSQL has none */

static char *body_of(size_t size)
{
    char *body = malloc(size + 1);

    CHECK(body != NULL);
    memset(body, 'x', size);
    body[size] = '\0';
    return body;
}

TEST(store_share, is_kept_to_and_told_at_half_and_nine_tenths)
{
    char *body = body_of(40000);
    stg_store_view v;
    fixture s;

    fixture_make(&s);
    s.options.quota = 16 << 20;
    s.options.dead.share = 5;
    fixture_open(&s);
    fixture_lane(&s, "a");
    for (uint64_t i = 1; i <= 9; i++)
        die_of(&s, 0, i, 500, body);
    CHECK_INT(s.times_troubled, 0);
    for (uint64_t i = 10; i <= 12; i++)
        die_of(&s, 0, i, 500, body);
    FIXTURE_UNTIL(&s, s.times_troubled == 1);
    CHECK(strstr(s.words, "of store.quota") != NULL);
    for (uint64_t i = 13; i <= 60; i++)
        die_of(&s, 0, i, 500, body);
    FIXTURE_UNTIL(&s, s.times_troubled == 2);
    FIXTURE_POLL(&s, (stg_store_look(s.store, &v), v.letter_bytes) <
                         v.quota / 100 * 5);
    CHECK(v.used - v.wal < v.quota / 10);
    CHECK_STR(fixture_ask(&s, "SELECT sum(count) FROM failed_broadcast_logs"),
              "60");
    // What was dropped has left its room at once.
    drop(&s, &(stg_letter_filter){.target = "a"});
    FIXTURE_UNTIL(&s, s.times_untroubled == 2);
    FIXTURE_POLL(&s,
                 (stg_store_look(s.store, &v), v.used - v.wal) < v.quota / 16);
    fixture_end(&s);
    free(body);
}

TEST(store_share, evicts_nothing_where_the_store_refuses)
{
    char *body = body_of(40000);
    fixture s;

    fixture_make(&s);
    s.options.quota = 16 << 20;
    s.options.dead.share = 1;
    s.options.is_refusing = true;
    fixture_open(&s);
    fixture_lane(&s, "a");
    for (uint64_t i = 1; i <= 20; i++)
        die_of(&s, 0, i, 500, body);
    fixture_close(&s);
    CHECK_STR(fixture_ask(&s, "SELECT count(*) FROM failed_broadcast_logs"),
              "20");
    CHECK_INT(s.times_troubled, 0);
    fixture_end(&s);
    free(body);
}
