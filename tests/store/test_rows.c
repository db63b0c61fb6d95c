/* Flow's rows: parked, dead, ranges, cursors; groups; fetching. */
#include <stdio.h>
#include <stdlib.h>

#include "host/wall.h"
#include "store/sqlite.h"
#include "store/store.h"
#include "tests/harness.h"
#include "tests/store/fixture.h"

static const char all_dead[] =
    "SELECT target, position, replay, state, why, category, cause, http_status,"
    " attempts, CAST(payload AS TEXT) FROM failed_broadcast_logs ORDER BY id";

static stg_change change(stg_change_kind kind, uint64_t position)
{
    return (stg_change){.kind = kind, .position = position};
}

/* -- parked rows */

static void keep_row(void *ctx, uint32_t lane, bool is_replay,
                     const stg_parked_row *rows, size_t count, bool is_all)
{
    const stg_parked_row *r = rows;
    stg_parcel p;

    CHECK_INT(lane, 0);
    CHECK(!is_replay);
    CHECK_INT(count, 1);
    CHECK(is_all);
    CHECK(stg_parcel_unpack(&p, r->record.bytes, r->record.size));
    CHECK_INT(p.body.size, 1);
    CHECK_INT(p.content_type.size, 10);
    CHECK_INT(p.headers.size, 8);
    CHECK_U64(r->record.key, stg_parcel_hash((stg_span){"k", 1}));
    CHECK_U64(r->record.position, 5);
    CHECK_U64(r->progress.last, 7);
    CHECK_INT(r->progress.attempts, 2);
    CHECK_U64(r->attempts_before, 5);
    CHECK_U64(r->began_at, 1600000000 * STG_S);
    CHECK_INT(r->progress.limited[3], 4);
    CHECK(r->has_failure);
    CHECK_INT(r->failure.outcome.fault, STG_FAULT_5XX);
    CHECK_INT(r->failure.outcome.code, 503);
    CHECK_INT(r->failure.outcome.code_kind, STG_CODE_STATUS);
    CHECK_INT(r->failure.why, STG_WHY_BACKOFF);
    CHECK_U64(r->failure.first_attempt_at, 1000 * STG_S);
    CHECK_U64(r->failure.last_attempt_at, 1060 * STG_S + 5 * STG_MS);
    CHECK_STR(r->failure.detail, "it said no");
    CHECK_INT(r->failure.answer_size, 4);
    CHECK_INT(memcmp(r->failure.answer, "busy", 4), 0);
    CHECK_U64(r->wait, 60 * STG_S);
    CHECK_U64(r->due_at, 100);
    *(bool *)ctx = true;
}

TEST(store_rows, give_back_all_that_was_parked)
{
    bool is_done = false;
    fixture s;

    fixture_make(&s);
    fixture_open(&s);
    fixture_park(&s, fixture_lane(&s, "a"), 5, 100, "x");
    fixture_reopen(&s);
    stg_store_fetch(s.store, 0, false, &(stg_mark){.due_at = 0}, 10, keep_row,
                    &is_done);
    FIXTURE_UNTIL(&s, is_done);
    fixture_end(&s);
}

TEST(store_rows, come_in_the_order_of_the_mark_page_by_page)
{
    stg_mark mark = {.due_at = 0};
    fixture s;

    fixture_make(&s);
    fixture_open(&s);
    fixture_park(&s, 1, 9, 100, "a");
    fixture_park(&s, 1, 3, 200, "b");
    fixture_park(&s, 1, 4, 100, "c");
    fixture_park(&s, 2, 1, 50, "other");
    fixture_park(&s, 1, 7, 0, "d");
    CHECK_STR(fixture_fetch(&s, 1, &mark, 2), "7@0:d 4@100:c ...");
    CHECK_STR(fixture_fetch(&s, 1, &mark, 2), "9@100:a 3@200:b");
    CHECK_STR(fixture_fetch(&s, 1, &mark, 2), "");
    s.is_made_up = true;
    fixture_end(&s);
}

/* Five rows of 4 MiB: what is fetched at once stays within 16. */
TEST(store_rows, come_in_pieces_that_memory_has_room_for)
{
    enum { SIZE = 4 << 20 };
    char *body = malloc(SIZE);
    stg_mark mark = {.due_at = 0};
    fixture s;

    fixture_make(&s);
    fixture_open(&s);
    memset(body, 'x', SIZE);
    body[SIZE - 1] = '\0';
    for (uint64_t i = 1; i <= 5; i++)
        fixture_park(&s, 1, i, i, i == 5 ? "last" : body);
    fixture_fetch(&s, 1, &mark, 10);
    CHECK_U64(mark.position, 3);
    fixture_fetch(&s, 1, &mark, 10);
    CHECK_U64(mark.position, 5);
    free(body);
    s.is_made_up = true;
    fixture_end(&s);
}

TEST(store_rows, that_are_parked_again_keep_their_message)
{
    stg_change again = change(STG_CHANGE_PARK, 5);
    stg_mark mark = {.due_at = 0};
    fixture s;

    fixture_make(&s);
    fixture_open(&s);
    fixture_park(&s, 1, 5, 100, "a");
    again.lane = 1;
    again.message = fixture_message(&s, 5, "b");
    again.due_at = 300;
    again.progress.attempts = 3;
    CHECK_INT(fixture_change(&s, &again), STG_STORED);
    CHECK_STR(fixture_fetch(&s, 1, &mark, 9), "5@300:a");
    CHECK_STR(fixture_ask(&s, "SELECT attempts, has_failure FROM parked"),
              "3|0");
    s.is_made_up = true;
    fixture_end(&s);
}

TEST(store_rows, go_when_they_are_delivered)
{
    stg_change c = change(STG_CHANGE_DELIVERED, 5);
    fixture s;

    fixture_make(&s);
    fixture_open(&s);
    fixture_park(&s, 0, 5, 100, "a");
    fixture_park(&s, 0, 6, 100, "b");
    c.partition = 1;
    CHECK_INT(fixture_change(&s, &c), STG_STORED);
    CHECK_STR(fixture_ask(&s, "SELECT position FROM parked"), "5\n6");
    c.partition = 0;
    CHECK_INT(fixture_change(&s, &c), STG_STORED);
    CHECK_STR(fixture_ask(&s, "SELECT position FROM parked"), "6");
    s.is_made_up = true;
    fixture_end(&s);
}

/* -- dead letters */

TEST(store_rows, turn_into_dead_letters_with_all_that_is_known)
{
    stg_failure f = fixture_failure(404, STG_WHY_PERMANENT);
    stg_change c = change(STG_CHANGE_DEAD, 5);
    char id[64], first[32];
    fixture s;

    fixture_make(&s);
    fixture_open(&s);
    fixture_park(&s, fixture_lane(&s, "a"), 5, 100, "x");
    c.message = fixture_message(&s, 5, "x");
    c.failure = &f;
    c.progress.attempts = 3;
    CHECK_INT(fixture_change(&s, &c), STG_STORED);
    CHECK_STR(fixture_ask(&s, all_dead),
              "a|5|0|dead|permanent|C|HTTP_404|404|3|x");
    snprintf(id, sizeof id, "%016jx-5", (uintmax_t)stg_store_epoch(s.store));
    CHECK_STR(fixture_ask(&s, "SELECT message_id FROM failed_broadcast_logs"),
              id);
    CHECK_STR(fixture_ask(&s,
                          "SELECT target_url, content_type, key, detail,"
                          " CAST(answer AS TEXT), count, partition"
                          " FROM failed_broadcast_logs"),
              "http://a.example/|text/plain|k|it said no|busy|1|0");
    CHECK_STR(fixture_ask(&s,
                          "SELECT first_attempt_at, last_attempt_at"
                          " FROM failed_broadcast_logs"),
              "1970-01-01T00:16:40.000Z|1970-01-01T00:17:40.005Z");
    snprintf(first, sizeof first, "%s",
             fixture_ask(&s, "SELECT created_at FROM failed_broadcast_logs"));
    CHECK(strcmp(first, "2020") > 0 && first[23] == 'Z');
    CHECK_STR(fixture_ask(&s, "SELECT count(*) FROM parked"), "0");
    fixture_end(&s);
}

TEST(store_rows, die_without_having_been_parked)
{
    stg_failure f = {.outcome = stg_failed(STG_FAULT_REFUSED),
                     .why = STG_WHY_ATTEMPTS};
    stg_change c = change(STG_CHANGE_DEAD, 5);
    fixture s;

    fixture_make(&s);
    fixture_open(&s);
    fixture_lane(&s, "a");
    c.partition = 2;
    c.message = fixture_message(&s, 5, "x");
    c.failure = &f;
    CHECK_INT(fixture_change(&s, &c), STG_STORED);
    CHECK_STR(fixture_ask(&s, all_dead),
              "a|5|0|dead|attempts|A|CONNECTION_REFUSED||0|x");
    CHECK(
        strstr(fixture_ask(&s, "SELECT message_id FROM failed_broadcast_logs"),
               "2-5") != NULL);
    fixture_end(&s);
}

TEST(store_rows, are_cancelled_all_together_with_their_last_failure)
{
    stg_change c = change(STG_CHANGE_CANCEL, 0);
    fixture s;

    fixture_make(&s);
    fixture_open(&s);
    fixture_lane(&s, "a");
    fixture_lane(&s, "b");
    fixture_park(&s, 0, 5, 100, "x");
    fixture_park(&s, 0, 6, 100, "y");
    fixture_park(&s, 1, 5, 100, "z");
    CHECK_INT(fixture_change(&s, &c), STG_STORED);
    CHECK_STR(fixture_ask(&s, all_dead),
              "a|5|0|cancelled|cancelled|B|HTTP_503|503|7|x\n"
              "a|6|0|cancelled|cancelled|B|HTTP_503|503|7|y");
    CHECK_STR(fixture_ask(&s, "SELECT lane FROM parked"), "1");
    fixture_end(&s);
}

TEST(store_rows, of_ranges_are_one_and_grow)
{
    static const char ask[] =
        "SELECT position, last_position, count, state,"
        " why, payload FROM failed_broadcast_logs";
    stg_change c = change(STG_CHANGE_RANGE, 5);
    fixture s;

    fixture_make(&s);
    fixture_open(&s);
    fixture_lane(&s, "a");
    c.last_position = 7;
    c.count = 2;
    CHECK_INT(fixture_change(&s, &c), STG_STORED);
    CHECK_STR(fixture_ask(&s, ask), "5|7|2|dead|shed|");
    c.last_position = 20;
    c.count = 11;
    CHECK_INT(fixture_change(&s, &c), STG_STORED);
    CHECK_STR(fixture_ask(&s, ask), "5|20|11|dead|shed|");
    // An older one changes nothing.
    c.last_position = 7;
    c.count = 2;
    CHECK_INT(fixture_change(&s, &c), STG_STORED);
    CHECK_STR(fixture_ask(&s, ask), "5|20|11|dead|shed|");
    c.position = 21;
    c.last_position = 22;
    c.is_cancelled = true;
    CHECK_INT(fixture_change(&s, &c), STG_STORED);
    CHECK_STR(fixture_ask(&s, ask),
              "5|20|11|dead|shed|\n21|22|2|cancelled|cancelled|");
    fixture_end(&s);
}

/* Each that joins is noted, one that comes late is not. */
TEST(store_rows, of_ranges_know_when_their_newest_message_came)
{
    static const char ask[] =
        "SELECT created_at < '2026', last_attempt_at > '2026',"
        " first_attempt_at FROM failed_broadcast_logs";
    static const char make_old[] =
        "UPDATE failed_broadcast_logs SET created_at = '2025',"
        " last_attempt_at = '2025'";
    stg_change c = change(STG_CHANGE_RANGE, 5);
    fixture s;

    fixture_make(&s);
    fixture_open(&s);
    fixture_lane(&s, "a");
    c.last_position = 7;
    c.count = 2;
    CHECK_INT(fixture_change(&s, &c), STG_STORED);
    CHECK_STR(fixture_ask(&s,
                          "SELECT created_at = last_attempt_at"
                          " FROM failed_broadcast_logs"),
              "1");
    fixture_ask(&s, make_old);
    CHECK_INT(fixture_change(&s, &c), STG_STORED);
    CHECK_STR(fixture_ask(&s, ask), "1|0|");
    c.last_position = 20;
    c.count = 11;
    CHECK_INT(fixture_change(&s, &c), STG_STORED);
    CHECK_STR(fixture_ask(&s, ask), "1|1|");
    fixture_end(&s);
}

/* -- groups */

/* Everything there is, to compare. */
static char *dump(fixture *s)
{
    static const char *const tables[] = {
        "SELECT * FROM parked ORDER BY lane, position",
        "SELECT id, position, state, count FROM failed_broadcast_logs",
        "SELECT * FROM cursors"};
    char *all = calloc(1, 65536);

    for (size_t i = 0; i < 3; i++) {
        strcat(all, fixture_ask(s, tables[i]));
        strcat(all, "\n--\n");
    }
    return all;
}

/* A server hears of all rows of a kind at once, but not across these. */
TEST(store_rows, that_a_group_has_twice_end_as_it_says_last)
{
    stg_failure f = fixture_failure(503, STG_WHY_ATTEMPTS);
    stg_mark mark = {.due_at = 0};
    stg_change changes[] = {
        change(STG_CHANGE_PARK, 5),  change(STG_CHANGE_PARK, 5),
        change(STG_CHANGE_PARK, 6),  change(STG_CHANGE_DELIVERED, 6),
        change(STG_CHANGE_PARK, 7),  change(STG_CHANGE_DEAD, 7),
        change(STG_CHANGE_PARK, 8),  change(STG_CHANGE_CANCEL, 0),
        change(STG_CHANGE_PARK, 9),  change(STG_CHANGE_PARK, 9),
        change(STG_CHANGE_PARK, 10), change(STG_CHANGE_DELIVERED, 10),
        change(STG_CHANGE_PARK, 10), change(STG_CHANGE_DELIVERED, 99),
        change(STG_CHANGE_PARK, 11), change(STG_CHANGE_PARK, 11)};
    size_t count = sizeof changes / sizeof *changes;
    fixture s;

    fixture_make(&s);
    fixture_open(&s);
    fixture_lane(&s, "a");
    fixture_lane(&s, "b");
    for (size_t i = 0; i < count; i++)
        changes[i].due_at = 100 + i;
    for (size_t i = 0; i < count; i++)
        if (changes[i].kind == STG_CHANGE_PARK ||
            changes[i].kind == STG_CHANGE_DEAD)
            changes[i].message = fixture_message(&s, changes[i].position, "x");
    changes[5].failure = &f;
    // The others' row is another one.
    changes[7].lane = changes[8].lane = changes[9].lane = 1;
    CHECK_INT(fixture_store(
                  &s, &(stg_group){.changes = changes, .change_count = count}),
              STG_STORED);
    CHECK_STR(fixture_fetch(&s, 0, &mark, 9),
              "5@101:x 8@106:x 10@112:x 11@115:x");
    mark = (stg_mark){.due_at = 0};
    CHECK_STR(fixture_fetch(&s, 1, &mark, 9), "9@109:x");
    CHECK_STR(fixture_ask(&s, all_dead),
              "a|7|0|dead|attempts|B|HTTP_503|503|0|x");
    fixture_end(&s);
}

/* More than fits into a command, one of them alone. */
TEST(store_rows, of_a_large_group_are_all_written)
{
    enum { ROWS = 2500, LARGE = 3 << 20 };
    stg_failure f = fixture_failure(503, STG_WHY_ATTEMPTS);
    stg_change *changes = calloc(ROWS, sizeof *changes);
    stg_group g = {.changes = changes, .change_count = ROWS};
    char *large = calloc(1, LARGE + 1);
    const stg_message *small;
    fixture s;

    fixture_make(&s);
    fixture_open(&s);
    fixture_lane(&s, "a");
    memset(large, 'y', LARGE);
    for (uint64_t i = 0; i < ROWS; i++)
        changes[i] = change(STG_CHANGE_PARK, i);
    small = fixture_message(&s, 0, "x");
    for (uint64_t i = 0; i < ROWS; i++)
        changes[i].message = small;
    changes[99].message = fixture_message(&s, 99, large);
    CHECK_INT(fixture_store(&s, &g), STG_STORED);
    CHECK_STR(fixture_ask(&s,
                          "SELECT count(*), sum(position),"
                          " sum(length(body)) FROM parked"),
              "2500|3123750|3148227");
    for (uint64_t i = 0; i < ROWS; i++) {
        changes[i] =
            change(i % 2 == 0 ? STG_CHANGE_DEAD : STG_CHANGE_DELIVERED, i);
        changes[i].message = i % 2 == 0 ? small : NULL;
        changes[i].failure = i % 2 == 0 ? &f : NULL;
    }
    CHECK_INT(fixture_store(&s, &g), STG_STORED);
    CHECK_STR(fixture_ask(&s, "SELECT count(*) FROM parked"), "0");
    CHECK_STR(fixture_ask(&s,
                          "SELECT count(*), sum(position), max(state)"
                          " FROM failed_broadcast_logs"),
              "1250|1561250|dead");
    free(large);
    free(changes);
    fixture_end(&s);
}

TEST(store_rows, of_a_group_written_twice_are_as_of_one_written_once)
{
    stg_failure f = fixture_failure(503, STG_WHY_ATTEMPTS);
    stg_cursor cursors[] = {
        {.lane = 0, .base = 10, .routed = 9, .delivered = 6, .dead = 3}};
    stg_change changes[] = {
        change(STG_CHANGE_PARK, 5),  change(STG_CHANGE_DEAD, 6),
        change(STG_CHANGE_DEAD, 7),  change(STG_CHANGE_DELIVERED, 8),
        change(STG_CHANGE_RANGE, 9),
    };
    stg_group g = {.changes = changes,
                   .change_count = 5,
                   .cursors = cursors,
                   .cursor_count = 1};
    char *once, *twice;
    fixture s;

    fixture_make(&s);
    fixture_open(&s);
    fixture_lane(&s, "a");
    fixture_park(&s, 0, 7, 100, "parked, then dead");
    fixture_park(&s, 0, 8, 100, "parked, then delivered");
    changes[0].message = fixture_message(&s, 5, "parked");
    changes[0].failure = changes[1].failure = changes[2].failure = &f;
    changes[1].message = fixture_message(&s, 6, "dead");
    changes[2].message = fixture_message(&s, 7, "parked, then dead");
    changes[4].last_position = 9;
    changes[4].count = 1;
    CHECK_INT(fixture_store(&s, &g), STG_STORED);
    once = dump(&s);
    CHECK_INT(fixture_store(&s, &g), STG_STORED);
    twice = dump(&s);
    CHECK_STR(twice, once);
    CHECK_STR(fixture_ask(&s, "SELECT count(*) FROM failed_broadcast_logs"),
              "3");
    CHECK_STR(fixture_ask(&s, "SELECT count(*) FROM parked"), "1");
    free(once);
    free(twice);
    s.is_made_up = true;
    fixture_end(&s);
}

TEST(store_rows, that_were_replayed_are_not_dead_again)
{
    stg_failure f = fixture_failure(503, STG_WHY_ATTEMPTS);
    stg_change c = change(STG_CHANGE_DEAD, 6);
    fixture s;

    fixture_make(&s);
    fixture_open(&s);
    fixture_lane(&s, "a");
    c.message = fixture_message(&s, 6, "x");
    c.failure = &f;
    CHECK_INT(fixture_change(&s, &c), STG_STORED);
    fixture_ask(&s, "UPDATE failed_broadcast_logs SET state = 'replayed'");
    CHECK_INT(fixture_change(&s, &c), STG_STORED);
    CHECK_STR(fixture_ask(&s, "SELECT state FROM failed_broadcast_logs"),
              "replayed");
    c.replay = 1;
    CHECK_INT(fixture_change(&s, &c), STG_STORED);
    CHECK_STR(fixture_ask(&s, "SELECT state FROM failed_broadcast_logs"),
              "replayed\ndead");
    fixture_end(&s);
}

/* -- cursors */

/* A shard that had the lane before has its cursor still. */
TEST(store_rows, of_cursors_in_two_shards_tell_the_one_that_was_handed_more)
{
    static const char *const shards[][2] = {{"0", "1"}, {"1", "0"}};

    for (size_t i = 0; i < 2; i++) {
        char change[500];
        fixture s;

        fixture_make(&s);
        fixture_open(&s);
        fixture_close(&s);
        snprintf(change, sizeof change,
                 "INSERT INTO cursors (partition, shard, slice, lanes) VALUES"
                 " (0, %s, 0, '{\"0\": {\"base\": 5, \"settled\": [[7, 8]],"
                 " \"routed\": 7, \"delivered\": 7}}'),"
                 " (0, %s, 0, '{\"0\": {\"base\": 5, \"settled\": [[7, 20]],"
                 " \"routed\": 19, \"delivered\": 19}}')",
                 shards[i][0], shards[i][1]);
        fixture_ask(&s, change);
        s.is_made_up = true;
        fixture_open(&s);
        CHECK_STR(fixture_stands(&s), "0/0 5 [7-20] 19=19+0+0+0\n");
        fixture_end(&s);
    }
}

TEST(store_rows, of_cursors_are_readable_and_come_back)
{
    static const stg_positions settled[] = {{13, 13}, {17, 19}};
    stg_cursor cursors[] = {
        {.lane = 0,
         .base = 12,
         .routed = 13,
         .delivered = 11,
         .dead = 2,
         .settled = settled,
         .settled_count = 2},
        {.lane = STG_SLICE - 1, .base = 3},
        {.lane = STG_SLICE, .base = 4, .cancelled = 4, .routed = 4},
        {.lane = 1, .partition = 1, .base = 5},
    };
    fixture s;

    fixture_make(&s);
    fixture_open(&s);
    CHECK_INT(fixture_cursors(&s, cursors, 4), STG_STORED);
    fixture_ask(&s,
                "INSERT INTO lanes (number, name, url) VALUES (31, 'z', '')");
    fixture_park(&s, 31, 2, 100, "a");
    CHECK_STR(
        fixture_ask(&s,
                    "SELECT * FROM cursors WHERE slice = 0"
                    " AND partition = 0"),
        "0|0|0|{\n\"0\": {\"base\": 12, \"settled\": [[13, 13], [17, 19]],"
        " \"routed\": 13, \"delivered\": 11, \"dead\": 2},\n"
        "\"31\": {\"base\": 3}\n}");
    fixture_reopen(&s);
    CHECK_STR(fixture_stands(&s),
              "0/0 12 [13-13 17-19] 13=11+2+0+0\n"
              "31/0 3 [] 0=0+0+0+1\n"
              "32/0 4 [] 4=0+0+4+0\n"
              "1/1 5 [] 0=0+0+0+0\n");
    s.is_made_up = true;
    fixture_end(&s);
}

TEST(store_rows, of_cursors_only_rise)
{
    stg_cursor cursors[] = {{.lane = 1, .base = 12, .routed = 1},
                            {.lane = 2, .base = 12, .routed = 2}};
    fixture s;

    fixture_make(&s);
    fixture_open(&s);
    CHECK_INT(fixture_cursors(&s, cursors, 2), STG_STORED);
    cursors[0].base = 11;
    cursors[1].base = 13;
    cursors[0].routed = cursors[1].routed = 3;
    CHECK_INT(fixture_cursors(&s, cursors, 2), STG_STORED);
    CHECK_STR(fixture_stands(&s), "1/0 12 [] 1=0+0+0+0\n2/0 13 [] 3=0+0+0+0\n");
    // Nor after a restart.
    fixture_reopen(&s);
    cursors[0].base = 12;
    cursors[1].base = 1;
    CHECK_INT(fixture_cursors(&s, cursors, 2), STG_STORED);
    CHECK_STR(fixture_stands(&s), "1/0 12 [] 3=0+0+0+0\n2/0 13 [] 3=0+0+0+0\n");
    s.is_made_up = true;
    fixture_end(&s);
}

/* More rows than their table begins with, in memory and after a restart. */
TEST(store_rows, of_many_slices_are_all_known)
{
    enum { SLICES = 150 };
    static char expected[SLICES * 32];
    stg_cursor cursors[SLICES];
    size_t at = 0;
    fixture s;

    for (uint32_t i = 0; i < SLICES; i++) {
        cursors[i] = (stg_cursor){
            .lane = STG_SLICE * i, .base = 1000 + i, .is_ordered = i % 3 == 0};
        at +=
            (size_t)snprintf(expected + at, sizeof expected - at,
                             "%u/0 %u [] 0=0+0+0+0\n", STG_SLICE * i, 1000 + i);
    }
    fixture_make(&s);
    fixture_open(&s);
    CHECK_INT(fixture_cursors(&s, cursors, SLICES), STG_STORED);
    for (int turn = 0; turn < 2; turn++) {
        CHECK_STR(fixture_stands(&s), expected);
        for (uint32_t i = 0; i < SLICES; i++)
            cursors[i].base = 1;
        CHECK_INT(fixture_cursors(&s, cursors, SLICES), STG_STORED);
        CHECK_STR(fixture_stands(&s), expected);
        CHECK_STR(fixture_ask(&s,
                              "SELECT count(*) FROM cursors WHERE lanes LIKE"
                              " '%\"ordered\": true%'"),
                  "50");
        fixture_reopen(&s);
    }
    s.is_made_up = true;
    fixture_end(&s);
}

TEST(store_rows, of_lanes_that_flow_does_not_have_stay)
{
    stg_cursor cursors[] = {{.lane = 1, .base = 12}, {.lane = 2, .base = 9}};
    fixture s;

    fixture_make(&s);
    fixture_open(&s);
    CHECK_INT(fixture_cursors(&s, cursors, 2), STG_STORED);
    cursors[1].base = 10;
    CHECK_INT(fixture_cursors(&s, cursors + 1, 1), STG_STORED);
    CHECK_STR(fixture_stands(&s), "1/0 12 [] 0=0+0+0+0\n2/0 10 [] 0=0+0+0+0\n");
    s.is_made_up = true;
    fixture_end(&s);
}

static void say_lane(void *ctx, uint32_t lane, const char *name,
                     const char *url)
{
    char *text = ctx;

    sprintf(text + strlen(text), "%u %s %s\n", lane, name, url);
}

static const char *lanes(fixture *s)
{
    static char text[1024];

    text[0] = '\0';
    CHECK_INT(stg_store_lanes(s->store, say_lane, text, NULL), STG_OK);
    return text;
}

TEST(store_rows, of_a_lane_that_is_forgotten_go_and_its_number_stays_used)
{
    stg_cursor cursors[] = {{.lane = 0, .base = 12},
                            {.lane = 1, .base = 9},
                            {.lane = 0, .partition = 1, .base = 3}};
    stg_change c = change(STG_CHANGE_FORGET, 0);
    fixture s;

    fixture_make(&s);
    fixture_open(&s);
    CHECK_INT(fixture_lane(&s, "a"), 0);
    CHECK_INT(fixture_lane(&s, "b"), 1);
    CHECK_INT(fixture_cursors(&s, cursors, 3), STG_STORED);
    CHECK_INT(fixture_change(&s, &c), STG_STORED);
    // In a store that others use, what was not claimed is not ours to write.
    CHECK_STR(fixture_stands(&s),
              s.is_postgres ? "1/0 9 [] 0=0+0+0+0\n0/1 3 [] 0=0+0+0+0\n"
                            : "1/0 9 [] 0=0+0+0+0\n");
    CHECK_STR(lanes(&s), "1 b http://b.example/\n");
    fixture_reopen(&s);
    CHECK_STR(lanes(&s), "1 b http://b.example/\n");
    CHECK_INT(fixture_lane(&s, "c"), 2);
    // The same name may come back, and is another lane.
    CHECK_INT(fixture_lane(&s, "a"), 3);
    CHECK_STR(lanes(&s),
              "1 b http://b.example/\n2 c http://c.example/\n"
              "3 a http://a.example/\n");
    fixture_reopen(&s);
    CHECK_STR(lanes(&s),
              "1 b http://b.example/\n2 c http://c.example/\n"
              "3 a http://a.example/\n");
    fixture_end(&s);
}

static void on_noted(void *ctx, bool is_full)
{
    CHECK(!is_full);
    *(bool *)ctx = true;
}

TEST(store_rows, of_lanes_keep_that_they_were_paused)
{
    bool is_done = false;
    fixture s;

    fixture_make(&s);
    fixture_open(&s);
    fixture_lane(&s, "a");
    fixture_lane(&s, "b");
    stg_store_pause(s.store, 1, STG_PAUSE_DISABLED, on_noted, &is_done);
    FIXTURE_UNTIL(&s, is_done);
    CHECK_INT(stg_store_paused(s.store, 1), STG_PAUSE_DISABLED);
    fixture_reopen(&s);
    CHECK_INT(stg_store_paused(s.store, 0), STG_PAUSE_NONE);
    CHECK_INT(stg_store_paused(s.store, 1), STG_PAUSE_DISABLED);
    CHECK_INT(stg_store_paused(s.store, 9), STG_PAUSE_NONE);
    is_done = false;
    stg_store_pause(s.store, 1, STG_PAUSE_NONE, on_noted, &is_done);
    FIXTURE_UNTIL(&s, is_done);
    fixture_reopen(&s);
    CHECK_INT(stg_store_paused(s.store, 1), STG_PAUSE_NONE);
    fixture_end(&s);
}

typedef struct noted {
    bool is_done;
    stg_ns since;
} noted;

static void on_lanes_noted(void *ctx, const stg_lane_note *notes, size_t count)
{
    CHECK_INT(count, 1);
    *(noted *)ctx = (noted){true, notes[0].failing_since};
}

/* Since when lane 1 only fails, with what has just happened. */
static stg_ns note_lane(fixture *s, bool has_succeeded)
{
    stg_lane_note *note = malloc(sizeof *note);
    noted n = {.is_done = false};

    CHECK(note != NULL);
    *note = (stg_lane_note){.lane = 1, .has_succeeded = has_succeeded};
    stg_store_note_lanes(s->store, note, 1, on_lanes_noted, &n);
    FIXTURE_UNTIL(s, n.is_done);
    return n.since;
}

TEST(store_rows, of_lanes_keep_since_when_they_only_fail)
{
    stg_ns began = stg_wall_now(), since;
    bool is_done = false;
    fixture s;

    fixture_make(&s);
    fixture_open(&s);
    fixture_lane(&s, "a");
    fixture_lane(&s, "b");
    CHECK_U64(note_lane(&s, true), 0);
    since = note_lane(&s, false);
    CHECK(since + STG_MS > began && since <= stg_wall_now() + STG_S);
    fixture_reopen(&s);
    CHECK_U64(note_lane(&s, false), since);
    CHECK_U64(note_lane(&s, true), 0);
    CHECK(note_lane(&s, false) > 0);
    // Who resumes it gives it another try.
    stg_store_pause(s.store, 1, STG_PAUSE_NONE, on_noted, &is_done);
    FIXTURE_UNTIL(&s, is_done);
    CHECK_STR(fixture_ask(&s,
                          "SELECT failing_since FROM lanes"
                          " WHERE number = 1"),
              "");
    fixture_end(&s);
}

TEST(store_rows, of_lanes_keep_number_and_newest_url)
{
    uint32_t lane;
    fixture s;

    fixture_make(&s);
    fixture_open(&s);
    for (int i = 0; i < 300; i++) {
        char name[32];

        snprintf(name, sizeof name, "target-%d", i);
        CHECK_INT(fixture_lane(&s, name), i);
    }
    CHECK_INT(stg_store_lane(s.store, "target-7", "http://new/", &lane, NULL),
              STG_OK);
    CHECK_INT(lane, 7);
    fixture_reopen(&s);
    CHECK_INT(fixture_lane(&s, "target-299"), 299);
    CHECK_STR(fixture_ask(&s, "SELECT url FROM lanes WHERE number = 7"),
              "http://new/");
    CHECK_STR(fixture_ask(&s, "SELECT count(*) FROM lanes"), "300");
    fixture_end(&s);
}

/* Numbers as "0 1 2 "; and whether they will do. */
typedef struct numbers {
    const stg_lane_begin *lanes;
    char text[32];
    bool is_refused;
} numbers;

static stg_status look_at_numbers(void *ctx, stg_error *err)
{
    numbers *n = ctx;
    size_t used = 0;

    for (size_t i = 0; i < 3; i++)
        used += (size_t)snprintf(n->text + used, sizeof n->text - used, "%u ",
                                 (unsigned)n->lanes[i].number);
    strcpy(err->text, "for the test");
    return n->is_refused ? STG_IO : STG_OK;
}

TEST(store_rows, of_lanes_begin_all_or_none)
{
    static const char rows[] =
        "SELECT number, name, url FROM lanes ORDER BY number";
    stg_lane_begin lanes[] = {{.name = "a", .url = "http://new/"},
                              {.name = "b", .url = "http://b/"},
                              {.name = "c", .url = "http://c/"}};
    numbers n = {.lanes = lanes, .is_refused = true};
    stg_error err;
    fixture s;

    fixture_make(&s);
    fixture_open(&s);
    CHECK_INT(fixture_lane(&s, "a"), 0);
    for (int i = 0; i < 2; i++) {
        CHECK_INT(
            stg_store_begin_lanes(s.store, lanes, 3, look_at_numbers, &n, &err),
            STG_IO);
        CHECK_STR(err.text, "for the test");
        CHECK_STR(n.text, "0 1 2 ");
        CHECK(!stg_store_has_lane(s.store, "b"));
    }
    fixture_reopen(&s);
    CHECK_STR(fixture_ask(&s, rows), "0|a|http://a.example/");

    n.is_refused = false;
    CHECK_INT(
        stg_store_begin_lanes(s.store, lanes, 3, look_at_numbers, &n, &err),
        STG_OK);
    CHECK_STR(n.text, "0 1 2 ");
    CHECK_INT(fixture_lane(&s, "d"), 3);
    fixture_reopen(&s);
    CHECK_STR(fixture_ask(&s, rows),
              "0|a|http://new/\n1|b|http://b/\n"
              "2|c|http://c/\n3|d|http://d.example/");
    CHECK_INT(stg_store_begin_lanes(s.store, lanes, 3, NULL, NULL, &err),
              STG_OK);
    CHECK_INT(lanes[2].number, 2);
    fixture_end(&s);
}

/* -- bulk rows that somebody has touched */

static void shed(fixture *s, uint64_t first, uint64_t last, uint64_t count)
{
    stg_change c = change(STG_CHANGE_RANGE, first);

    c.last_position = last;
    c.count = count;
    CHECK_INT(fixture_change(s, &c), STG_STORED);
}

static const char ranges[] =
    "SELECT position, last_position, count, state FROM failed_broadcast_logs"
    " ORDER BY id";

TEST(store_rows, of_a_range_that_was_dropped_do_not_grow)
{
    fixture s;

    fixture_make(&s);
    fixture_open(&s);
    shed(&s, 5, 9, 4);
    fixture_ask(&s, "UPDATE failed_broadcast_logs SET state = 'dropped'");
    // The same again, and late.
    shed(&s, 5, 9, 4);
    shed(&s, 5, 8, 3);
    CHECK_STR(fixture_ask(&s, ranges), "5|9|4|dropped");
    shed(&s, 5, 12, 7);
    shed(&s, 5, 14, 9);
    CHECK_STR(fixture_ask(&s, ranges), "5|9|4|dropped\n10|14|5|dead");
    s.is_made_up = true;
    fixture_end(&s);
}

TEST(store_rows, of_a_range_that_is_being_replayed_keep_what_is_left)
{
    fixture s;

    fixture_make(&s);
    fixture_open(&s);
    shed(&s, 5, 9, 5);
    // Two of them, as a replay does.
    fixture_ask(&s,
                "UPDATE failed_broadcast_logs SET position = 7, eaten = 2,"
                " count = 3");
    shed(&s, 5, 11, 7);
    CHECK_STR(fixture_ask(&s, ranges), "7|11|5|dead");
    fixture_ask(&s,
                "UPDATE failed_broadcast_logs SET position = 12, eaten = 7,"
                " count = 7, state = 'replayed'");
    shed(&s, 5, 11, 7);
    CHECK_STR(fixture_ask(&s, ranges), "12|11|7|replayed");
    // What comes is another row; its place has a name already.
    fixture_ask(&s, "UPDATE failed_broadcast_logs SET position = 12");
    shed(&s, 5, 15, 10);
    CHECK_STR(fixture_ask(&s, ranges), "12|11|7|replayed\n13|15|3|dead");
    s.is_made_up = true;
    fixture_end(&s);
}
