/* Receipts of attempts: stored, read with a message, and trimmed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/wall.h"
#include "store/dead_letters.h"
#include "store/receipts.h"
#include "tests/harness.h"
#include "tests/store/fixture.h"

static const char all[] =
    "SELECT position, lane, number, took, fault, code"
    " FROM receipts ORDER BY id";
static const char count[] = "SELECT count(*) FROM receipts";

/* As one of a delivery that took 3 ms, or of a 503. */
static stg_receipt receipt(uint64_t position, uint64_t number, int status,
                           stg_ns at)
{
    return (stg_receipt){.position = position,
                         .partition = 0,
                         .lane = 7,
                         .number = number,
                         .at = at,
                         .took = 3 * STG_MS,
                         .fault =
                             status == 200 ? STG_FAULT_NONE : STG_FAULT_5XX,
                         .code_kind = STG_CODE_STATUS,
                         .code = (uint32_t)status};
}

static void note(void *ctx, size_t rows, bool is_stored)
{
    CHECK(is_stored);
    *(size_t *)ctx += rows;
}

/* Copies of one, and waits until they are durable. */
static void put(fixture *s, stg_receipt r, size_t copies)
{
    stg_receipt *rows = malloc(copies * sizeof *rows);
    size_t stored = 0;

    CHECK(rows != NULL);
    for (size_t i = 0; i < copies; i++)
        rows[i] = r;
    stg_store_write_receipts(s->store, rows, copies, note, &stored);
    FIXTURE_UNTIL(s, stored > 0);
    CHECK_INT(stored, copies);
}

static void note_round(void *ctx, size_t rows, bool is_stored)
{
    CHECK(is_stored && rows == 0);
    *(bool *)ctx = true;
}

/* Two of the writer: in the first one it has tended. */
static void await_rounds(fixture *s)
{
    for (int i = 0; i < 2; i++) {
        bool is_done = false;

        stg_store_write_receipts(s->store, NULL, 0, note_round, &is_done);
        FIXTURE_UNTIL(s, is_done);
    }
}

static void open_for(fixture *s, stg_ns keep, uint64_t quota)
{
    fixture_make(s);
    s->options.receipts.keep = keep;
    s->options.receipts.quota = quota;
    fixture_open(s);
}

TEST(store_receipts, are_there_after_a_restart)
{
    char expected[80];
    fixture s;

    snprintf(expected, sizeof expected, "5|7|1|3000|%d|503\n5|7|2|3000|0|200",
             STG_FAULT_5XX);
    open_for(&s, STG_DAY, 1 << 20);
    put(&s, receipt(5, 1, 503, stg_wall_now()), 1);
    put(&s, receipt(5, 2, 200, stg_wall_now()), 1);
    fixture_reopen(&s);
    CHECK_STR(fixture_ask(&s, all), expected);
    fixture_end(&s);
}

TEST(store_receipts, go_at_the_end_of_their_time)
{
    stg_ns now = stg_wall_now();
    fixture s;

    open_for(&s, STG_HOUR, 1 << 20);
    put(&s, receipt(1, 1, 200, now - 2 * STG_HOUR), 5000);
    put(&s, receipt(2, 1, 200, now), 2);
    fixture_reopen(&s); // it looks at once
    FIXTURE_POLL(&s, strcmp(fixture_ask(&s, count), "2") == 0);
    fixture_end(&s);
}

TEST(store_receipts, go_at_the_end_of_their_room)
{
    fixture s;

    open_for(&s, STG_DAY, (uint64_t)1000 * STG_RECEIPT_COST);
    put(&s, receipt(1, 1, 200, stg_wall_now()), 5500);
    put(&s, receipt(2, 1, 200, stg_wall_now()), 900);
    fixture_reopen(&s);
    FIXTURE_POLL(&s, strcmp(fixture_ask(&s, count), "1000") == 0);
    CHECK_STR(fixture_ask(&s,
                          "SELECT count(*) FROM receipts"
                          " WHERE position = 2"),
              "900");
    fixture_end(&s);
}

TEST(store_receipts, go_where_none_are_wanted_any_more)
{
    fixture s;

    open_for(&s, STG_DAY, 1 << 20);
    put(&s, receipt(1, 1, 200, stg_wall_now()), 5000);
    s.options.receipts.keep = 0;
    fixture_reopen(&s);
    if (s.is_postgres) { // other hubs may want them
        await_rounds(&s);
        CHECK_STR(fixture_ask(&s, count), "5000");
    } else {
        FIXTURE_POLL(&s, strcmp(fixture_ask(&s, count), "0") == 0);
    }
    fixture_end(&s);
}

typedef struct seen {
    bool is_done;
    size_t count;
    stg_receipt first, last;
    stg_ns since;
} seen;

static void look(void *ctx, const stg_message_status *m)
{
    seen *l = ctx;

    CHECK(m->is_known);
    *l = (seen){
        .is_done = true, .count = m->receipt_count, .since = m->receipts_since};
    if (m->receipt_count == 0)
        return;
    l->first = m->receipts[0];
    l->last = m->receipts[m->receipt_count - 1];
}

TEST(store_receipts, are_read_with_their_message)
{
    // Times are kept in ms.
    stg_ns then = (stg_wall_now() - STG_MIN) / STG_MS * STG_MS;
    char id[STG_MESSAGE_ID_MAX];
    uint64_t position;
    seen l = {.is_done = false};
    fixture s;

    fixture_make(&s);
    if (s.is_postgres) { // it has no queue
        fixture_end(&s);
        return;
    }
    s.options.receipts.keep = STG_DAY;
    s.options.receipts.quota = 1 << 20;
    fixture_open(&s);
    position = fixture_put(&s, NULL, "x");
    put(&s, receipt(position + 1, 1, 200, then), 1);
    put(&s, receipt(position, 1, 503, then + STG_S), 1);
    put(&s, receipt(position, 2, 200, then + 2 * STG_S), 1);
    stg_store_message(s.store, stg_store_id(s.store, 0, position, id), look,
                      &l);
    FIXTURE_UNTIL(&s, l.is_done);
    CHECK_INT(l.count, 2);
    CHECK_INT(l.since, then);
    CHECK_INT(l.first.fault, STG_FAULT_5XX);
    CHECK_INT(l.first.code, 503);
    CHECK_INT(l.last.number, 2);
    CHECK_INT(l.last.lane, 7);
    CHECK_INT(l.last.at, then + 2 * STG_S);
    CHECK_INT(l.last.took, 3 * STG_MS);
    CHECK_INT(l.last.code, 200);
    fixture_end(&s);
}
