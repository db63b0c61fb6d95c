/* The queue: appending, reading, keys, the quota, trimming. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include <sqlite3.h>

#include "store/keys.h"
#include "store/sqlite.h"
#include "tests/harness.h"
#include "tests/store/fixture.h"

/* How many messages there are. */
static uint64_t rows(fixture *s)
{
    return strtoull(fixture_ask(s, "SELECT count(*) FROM messages"), NULL, 10);
}

/* -- appending and reading */

TEST(store, reads_what_was_appended_in_order)
{
    fixture s;

    fixture_make(&s);
    fixture_open(&s);
    CHECK_U64(fixture_next(&s), 1);
    CHECK_U64(stg_store_first(s.store), 1);
    CHECK_U64(fixture_put(&s, NULL, "a"), 1);
    CHECK_U64(fixture_put(&s, NULL, "b"), 2);
    CHECK_U64(fixture_put(&s, NULL, "c"), 3);
    CHECK_STR(fixture_read(&s, 1, 1000), "1:a 2:b 3:c, next 4");
    CHECK_STR(fixture_read(&s, 3, 1000), "3:c, next 4");
    CHECK_STR(fixture_read(&s, 4, 1000), ", next 4");
    CHECK_U64(fixture_next(&s), 4);
    fixture_end(&s);
}

static void keep_read(void *ctx, const stg_record *records, size_t count,
                      uint64_t next)
{
    stg_parcel p;

    CHECK_INT(count, 1);
    CHECK_U64(next, 2);
    CHECK_U64(records[0].key, stg_parcel_hash((stg_span){"key", 3}));
    CHECK(stg_parcel_unpack(&p, records[0].bytes, records[0].size));
    CHECK_INT(p.body.size, 5);
    CHECK_INT(memcmp(p.body.at, "a\0b\xff\n", 5), 0);
    CHECK_INT(p.content_type.size, 3);
    CHECK_INT(memcmp(p.content_type.at, "a/b", 3), 0);
    CHECK_INT(p.headers.size, 8);
    CHECK_INT(memcmp(p.headers.at, "X-A: b\r\n", 8), 0);
    CHECK_INT(p.key.size, 3);
    *(bool *)ctx = true;
}

TEST(store, gives_back_every_part_of_a_message)
{
    stg_append m = {.parcel = {.content_type = {"a/b", 3},
                               .headers = {"X-A: b\r\n", 8},
                               .key = {"key", 3},
                               .body = {"a\0b\xff\n", 5}}};
    bool is_done = false;
    fixture s;

    fixture_make(&s);
    fixture_open(&s);
    CHECK_INT(fixture_try(&s, &m), STG_APPENDED);
    stg_store_read(s.store, 1, 100, true, keep_read, &is_done);
    FIXTURE_UNTIL(&s, is_done);
    fixture_end(&s);
}

TEST(store, reads_no_more_bytes_than_asked_but_one_message)
{
    fixture s;

    fixture_make(&s);
    fixture_open(&s);
    for (int i = 0; i < 4; i++)
        fixture_put(&s, NULL, "0123456789");
    // A parcel has a head of its own.
    CHECK_STR(fixture_read(&s, 1, 1), "1:0123456789, next 2");
    CHECK_STR(fixture_read(&s, 1, 60), "1:0123456789 2:0123456789, next 3");
    fixture_end(&s);
}

static void count_read(void *ctx, const stg_record *records, size_t count,
                       uint64_t next)
{
    (void)count;
    (void)next;
    *(uint64_t *)ctx = records[0].position;
}

TEST(store, answers_a_read_that_waits_when_there_is_something)
{
    uint64_t waited = 0;
    fixture s;

    fixture_make(&s);
    fixture_open(&s);
    stg_store_read(s.store, 1, 100, true, count_read, &waited);
    // Others pass it.
    CHECK_STR(fixture_read(&s, 1, 100), ", next 1");
    CHECK_U64(waited, 0);
    CHECK_U64(fixture_put(&s, NULL, "a"), 1);
    FIXTURE_UNTIL(&s, waited == 1);
    fixture_end(&s);
}

static void keep_logs(void *ctx, const stg_known_log *all, size_t count)
{
    (void)all;
    CHECK_INT(count, 0);
    *(bool *)ctx = true;
}

/* I32: readers have all of their files when the store has opened. */
TEST(store, reads_when_no_file_is_left)
{
    bool has_looked = false;
    struct rlimit old, none;
    fixture s;
    int next;

    fixture_make(&s);
    fixture_open(&s);
    CHECK_U64(fixture_put(&s, NULL, "a"), 1);
    next = dup(0);
    close(next);
    CHECK_INT(getrlimit(RLIMIT_NOFILE, &old), 0);
    none = old;
    none.rlim_cur = (rlim_t)next;
    CHECK_INT(setrlimit(RLIMIT_NOFILE, &none), 0);
    CHECK_STR(fixture_read(&s, 1, 1000), "1:a, next 2");
    stg_store_known_logs(s.store, "topic", keep_logs, &has_looked);
    FIXTURE_UNTIL(&s, has_looked);
    CHECK_INT(setrlimit(RLIMIT_NOFILE, &old), 0);
    fixture_end(&s);
}

TEST(store, leaves_a_read_that_waits_unanswered_at_its_end)
{
    uint64_t waited = 0;
    fixture s;

    fixture_make(&s);
    fixture_open(&s);
    stg_store_read(s.store, 1, 100, true, count_read, &waited);
    fixture_close(&s);
    CHECK_U64(waited, 0);
    fixture_end(&s);
}

TEST(store, answers_what_was_asked_before_it_closes)
{
    appending a[8] = {{.is_done = false}};
    fixture s;

    fixture_make(&s);
    fixture_open(&s);
    for (int i = 0; i < 8; i++) {
        a[i].messages[0] = fixture_text(NULL, "a");
        fixture_start(&s, &a[i], 1);
    }
    fixture_close(&s);
    for (uint64_t i = 0; i < 8; i++) {
        CHECK(a[i].is_done);
        CHECK_U64(a[i].answers[0].position, i + 1);
    }
    fixture_open(&s);
    CHECK_U64(fixture_next(&s), 9);
    fixture_end(&s);
}

/* -- keys */

/* How many keys it has in memory, when its round is over. */
static uint64_t keys(fixture *s)
{
    stg_store_view view;

    stg_store_look(s->store, &view);
    return view.keys;
}

TEST(store, gives_one_position_to_one_key_and_body)
{
    appending a = {.messages = {fixture_text("k", "a")}};
    fixture s;

    fixture_make(&s);
    fixture_open(&s);
    CHECK_U64(fixture_put(&s, "k", "a"), 1);
    CHECK_U64(fixture_put(&s, "other", "a"), 2);
    fixture_start(&s, &a, 1);
    FIXTURE_UNTIL(&s, a.is_done);
    CHECK_U64(a.answers[0].position, 1);
    CHECK(a.answers[0].is_repeat);
    CHECK_STR(fixture_read(&s, 1, 1000), "1:a 2:a, next 3");
    fixture_end(&s);
}

TEST(store, refuses_a_key_with_another_body_or_type)
{
    stg_append other = fixture_text("k", "b"), type = fixture_text("k", "a");
    fixture s;

    type.parcel.content_type = (stg_span){"a/b", 3};
    fixture_make(&s);
    fixture_open(&s);
    fixture_put(&s, "k", "a");
    CHECK_INT(fixture_try(&s, &other), STG_APPEND_CONFLICT);
    CHECK_INT(fixture_try(&s, &type), STG_APPEND_CONFLICT);
    CHECK_STR(fixture_read(&s, 1, 1000), "1:a, next 2");
    fixture_end(&s);
}

TEST(store, knows_a_key_after_its_message_was_trimmed_and_a_restart)
{
    stg_append other = fixture_text("k", "b");
    fixture s;

    fixture_make(&s);
    fixture_open(&s);
    fixture_put(&s, "k", "a");
    stg_store_commit(s.store, 2);
    FIXTURE_POLL(&s, rows(&s) == 0);
    CHECK_U64(fixture_put(&s, "k", "a"), 1);
    fixture_reopen(&s);
    CHECK_U64(fixture_put(&s, "k", "a"), 1);
    CHECK_INT(fixture_try(&s, &other), STG_APPEND_CONFLICT);
    CHECK_U64(fixture_put(&s, NULL, "c"), 2);
    fixture_end(&s);
}

TEST(store, takes_a_key_twice_in_one_call_for_one_message)
{
    appending a = {.messages = {fixture_text("k", "a"), fixture_text(NULL, "b"),
                                fixture_text("k", "a")}};
    fixture s;

    fixture_make(&s);
    fixture_open(&s);
    fixture_start(&s, &a, 3);
    FIXTURE_UNTIL(&s, a.is_done);
    CHECK_INT(a.how, STG_APPENDED);
    CHECK_U64(a.answers[2].position, a.answers[0].position);
    CHECK(a.answers[2].is_repeat && !a.answers[0].is_repeat);
    CHECK_STR(fixture_read(&s, 1, 1000), "1:a 2:b, next 3");
    fixture_end(&s);
}

TEST(store, appends_nothing_of_a_call_with_a_conflict)
{
    appending a = {.messages = {fixture_text("k", "a"), fixture_text("m", "b"),
                                fixture_text("k", "c")}};
    fixture s;

    fixture_make(&s);
    fixture_open(&s);
    fixture_start(&s, &a, 3);
    FIXTURE_UNTIL(&s, a.is_done);
    CHECK_INT(a.how, STG_APPEND_CONFLICT);
    CHECK_INT(a.at, 2);
    CHECK_STR(fixture_read(&s, 1, 1000), ", next 1");
    // Its keys were never used.
    CHECK_U64(fixture_put(&s, "k", "c"), 1);
    CHECK_U64(fixture_put(&s, "m", "d"), 2);
    CHECK_STR(fixture_ask(&s, "SELECT position FROM idempotency_keys"), "1\n2");
    FIXTURE_POLL(&s, keys(&s) == 2);
    fixture_end(&s);
}

TEST(store, forgets_a_key_that_is_too_old)
{
    fixture s;

    fixture_make(&s);
    s.options.keys_kept = 0;
    fixture_open(&s);
    CHECK_U64(fixture_put(&s, "k", "a"), 1);
    CHECK_U64(fixture_put(&s, "k", "a"), 2);
    CHECK_U64(fixture_put(&s, "k", "b"), 3);
    fixture_end(&s);
}

TEST(store, keeps_the_newest_keys_up_to_their_number)
{
    char key[16];
    fixture s;

    fixture_make(&s);
    s.options.keys_max = 10;
    fixture_open(&s);
    for (uint64_t i = 1; i <= 40; i++) {
        snprintf(key, sizeof key, "k%d", (int)i);
        CHECK_U64(fixture_put(&s, key, "a"), i);
    }
    FIXTURE_POLL(&s, strcmp(fixture_ask(&s,
                                        "SELECT count(*) FROM"
                                        " idempotency_keys"),
                            "10") == 0);
    CHECK_U64(fixture_put(&s, "k40", "a"), 40);
    CHECK_U64(fixture_put(&s, "k31", "a"), 31);
    CHECK(fixture_put(&s, "k30", "a") > 40);
    fixture_reopen(&s);
    CHECK_U64(fixture_put(&s, "k40", "a"), 40);
    fixture_end(&s);
}

static stg_keys load_keys(stg_db *db)
{
    stg_keys k = {.count_max = 1000};

    CHECK_INT(stg_keys_load(&k, db), SQLITE_OK);
    return k;
}

/* A producer must not know which of its keys share a slot. */
TEST(store, lays_its_keys_out_differently_each_time)
{
    stg_keys first, second;
    stg_db *db;

    CHECK_INT(stg_sqlite_open(
                  &db, ":memory:", SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE),
              SQLITE_OK);
    CHECK_INT(stg_sql_exec(db,
                           "CREATE TABLE idempotency_keys ("
                           " position INTEGER PRIMARY KEY, key BLOB,"
                           " body BLOB, at INTEGER);"
                           "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL"
                           " SELECT i + 1 FROM n WHERE i < 100)"
                           "INSERT INTO idempotency_keys SELECT i,"
                           " randomblob(16), randomblob(16), 0 FROM n"),
              SQLITE_OK);
    first = load_keys(db);
    second = load_keys(db);
    CHECK_U64(first.count, 100);
    CHECK_U64(second.count, 100);
    CHECK_U64(first.slot_count, second.slot_count);
    CHECK(memcmp(first.slots, second.slots, first.slot_count * 16) != 0);
    stg_keys_free(&first);
    stg_keys_free(&second);
    stg_sql_close(db);
}

/* Against a list, over many keys that come again and age out. */
TEST(store, finds_every_key_it_keeps)
{
    enum { KEYS = 3000 };
    static uint64_t positions[KEYS];
    char key[16];
    fixture s;

    fixture_make(&s);
    fixture_open(&s);
    for (int i = 0; i < KEYS; i += 50) {
        static appending a;

        for (int j = 0; j < 50; j++)
            a.messages[j] = fixture_text(NULL, "b");
        static char keys[50][16];
        for (int j = 0; j < 50; j++) {
            snprintf(keys[j], sizeof keys[j], "key %d", i + j);
            a.messages[j].idempotency_key =
                (stg_span){keys[j], strlen(keys[j])};
        }
        fixture_start(&s, &a, 50);
        FIXTURE_UNTIL(&s, a.is_done);
        for (int j = 0; j < 50; j++)
            positions[i + j] = a.answers[j].position;
    }
    fixture_reopen(&s);
    for (int i = 0; i < KEYS; i += 7) {
        snprintf(key, sizeof key, "key %d", i);
        CHECK_U64(fixture_put(&s, key, "b"), positions[i]);
    }
    fixture_end(&s);
}

/* -- trimming */

TEST(store, deletes_what_is_committed_and_nothing_else)
{
    fixture s;

    fixture_make(&s);
    fixture_open(&s);
    for (int i = 0; i < 600; i++)
        fixture_put(&s, NULL, "a");
    stg_store_commit(s.store, 551);
    FIXTURE_POLL(&s, rows(&s) == 50);
    CHECK_STR(fixture_read(&s, 1, 30), "551:a 552:a, next 553");
    fixture_put(&s, NULL, "b");
    CHECK_U64(stg_store_first(s.store), 551);
    fixture_reopen(&s);
    CHECK_U64(stg_store_first(s.store), 551);
    fixture_end(&s);
}

TEST(store, never_gives_a_position_twice)
{
    fixture s;

    fixture_make(&s);
    fixture_open(&s);
    for (int i = 0; i < 3; i++)
        fixture_put(&s, NULL, "a");
    stg_store_commit(s.store, 4);
    FIXTURE_POLL(&s, rows(&s) == 0);
    fixture_reopen(&s);
    CHECK_U64(fixture_next(&s), 4);
    CHECK_U64(stg_store_first(s.store), 4);
    CHECK_U64(fixture_put(&s, NULL, "b"), 4);
    fixture_end(&s);
}

/* -- the quota */

static char big[65536];

static stg_append big_message(void)
{
    memset(big, 'x', sizeof big);
    return (stg_append){.parcel = {.body = {big, sizeof big}}};
}

/* A shortage is told at once, and a change of it a second later at the earliest. */
TEST(store, refuses_at_the_quota_and_goes_on_when_there_is_room)
{
    stg_append m = big_message();
    uint64_t appended = 0, before, began_at = uv_hrtime();
    stg_store_view view;
    fixture s;

    fixture_make(&s);
    s.options.quota = 16 << 20;
    fixture_open(&s);
    for (int round = 0; round < 3; round++) {
        before = appended;
        while (fixture_try(&s, &m) == STG_APPENDED)
            appended++;
        // 80 % of 16 MiB, in messages of 64 KiB and a bit.
        CHECK(appended - before > 180 && appended - before < 206);
        CHECK_INT(fixture_try(&s, &m), STG_APPEND_FULL);
        stg_store_look(s.store, &view);
        CHECK(view.used <= view.quota / 5 * 4);
        FIXTURE_POLL(&s, s.times_troubled > 0);
        CHECK(strstr(s.words, "four fifths of store.quota") != NULL);
        stg_store_commit(s.store, appended + 1);
        FIXTURE_POLL(&s, rows(&s) == 0);
    }
    CHECK(s.times_troubled + s.times_untroubled <=
          1 + (uv_hrtime() - began_at) / STG_S);
    fixture_end(&s);
}

/* As the writer shows it, when it has these positions. */
static stg_store_view look(fixture *s, uint64_t first, uint64_t next)
{
    stg_store_view view;

    FIXTURE_POLL(s, (stg_store_look(s->store, &view),
                     view.first == first && view.next == next));
    return view;
}

/* A call with 64 of them. */
static void put_many(fixture *s, const stg_append *m)
{
    static appending a;

    for (size_t i = 0; i < 64; i++)
        a.messages[i] = *m;
    fixture_start(s, &a, 64);
    FIXTURE_UNTIL(s, a.is_done);
    CHECK_INT(a.how, STG_APPENDED);
}

TEST(store, knows_what_messages_of_any_size_fill)
{
    static const size_t sizes[] = {0,     100,   1000,  4000,  8000,  9000,
                                   16000, 16300, 16400, 17000, 20000, 26000,
                                   33000, 40000, 50000, 60000, 65536};
    stg_append m = big_message();
    uint64_t next = 1, told, used, slack;
    fixture s;

    fixture_make(&s);
    fixture_open(&s);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        size_t calls = sizes[i] < 4000 ? 48 : 1;

        m.parcel.body.size = sizes[i];
        told = look(&s, 1, next).message_bytes;
        used = look(&s, 1, next).used - look(&s, 1, next).wal;
        for (size_t n = 0; n < calls; n++)
            put_many(&s, &m);
        next += 64 * calls;
        told = look(&s, 1, next).message_bytes - told;
        used = look(&s, 1, next).used - look(&s, 1, next).wal - used;
        // Within a tenth, two pages of the tree, and 12 bytes a message.
        slack = used / 10 + 32768;
        CHECK_FROM(sizes[i], told <= used + slack + calls * 64 * 12);
        CHECK_FROM(sizes[i], used <= told + slack);
    }
    fixture_end(&s);
}

TEST(store, knows_what_messages_fill_after_a_restart_and_a_trim)
{
    stg_append m = big_message();
    uint64_t all, each, large;
    fixture s;

    fixture_make(&s);
    fixture_open(&s);
    for (int i = 0; i < 100; i++)
        fixture_put(&s, NULL, "a");
    each = look(&s, 1, 101).message_bytes / 100;
    CHECK(each > 0);
    CHECK_INT(fixture_try(&s, &m), STG_APPENDED);
    all = look(&s, 1, 102).message_bytes;
    large = all - 100 * each;
    CHECK(large > sizeof big);
    fixture_reopen(&s);
    CHECK_U64(look(&s, 1, 102).message_bytes, all);
    stg_store_commit(s.store, 31);
    CHECK_U64(look(&s, 31, 102).message_bytes, all - 30 * each);
    fixture_reopen(&s);
    CHECK_U64(look(&s, 31, 102).message_bytes, all - 30 * each);
    stg_store_commit(s.store, 101);
    CHECK_U64(look(&s, 101, 102).message_bytes, large);
    stg_store_commit(s.store, 102);
    CHECK_U64(look(&s, 102, 102).message_bytes, 0);
    fixture_reopen(&s);
    CHECK_U64(look(&s, 102, 102).message_bytes, 0);
    CHECK_U64(fixture_put(&s, NULL, "a"), 102);
    CHECK_U64(look(&s, 102, 103).message_bytes, each);
    fixture_end(&s);
}

TEST(store, keeps_the_rest_of_the_quota_for_rows)
{
    stg_append m = big_message();
    fixture s;

    fixture_make(&s);
    s.options.quota = 16 << 20;
    fixture_open(&s);
    while (fixture_try(&s, &m) == STG_APPENDED)
        ;
    for (uint64_t i = 0; i < 20; i++)
        fixture_park(&s, 1, i + 1, 100, "a");
    CHECK_STR(fixture_ask(&s, "SELECT count(*) FROM parked"), "20");
    s.is_made_up = true;
    fixture_end(&s);
}

TEST(store, says_that_a_group_does_not_fit_and_writes_nothing_of_it)
{
    stg_append m = big_message();
    stg_cursor cursor = {.lane = 1, .base = 9};
    stg_change changes[2] = {{.kind = STG_CHANGE_PARK, .lane = 1},
                             {.kind = STG_CHANGE_PARK, .lane = 1}};
    stg_group g = {.changes = changes,
                   .change_count = 2,
                   .cursors = &cursor,
                   .cursor_count = 1};
    char *body = malloc(4 << 20);
    stg_stored how;
    fixture s;

    fixture_make(&s);
    s.options.quota = 16 << 20;
    fixture_open(&s);
    fixture_lane(&s, "a");
    fixture_lane(&s, "b");
    while (fixture_try(&s, &m) == STG_APPENDED)
        ;
    memset(body, 'y', (4 << 20) - 1);
    body[(4 << 20) - 1] = '\0';
    changes[0].message = fixture_message(&s, 1, "small");
    changes[1].message = fixture_message(&s, 2, body);
    changes[0].position = 1;
    changes[1].position = 2;
    how = fixture_store(&s, &g);
    CHECK_INT(how, STG_STORED_FULL);
    CHECK_STR(fixture_ask(&s, "SELECT count(*) FROM parked"), "0");
    CHECK_STR(fixture_stands(&s), "");
    // In two: the cursors, and the row that fits.
    cursor.base = 1;
    g.change_count = 0;
    CHECK_INT(fixture_store(&s, &g), STG_STORED);
    g.change_count = 1;
    CHECK_INT(fixture_store(&s, &g), STG_STORED);
    CHECK_STR(fixture_stands(&s), "1/0 1 [] 0=0+0+0+1\n");
    CHECK_INT(s.times_broken, 0);
    free(body);
    s.is_made_up = true;
    fixture_end(&s);
}

/* -- retention */

TEST(store, tells_what_is_too_old_and_trims_it_when_it_is_settled)
{
    fixture s;

    fixture_make(&s);
    s.options.retention = STG_MIN;
    fixture_open(&s);
    for (int i = 0; i < 5; i++)
        fixture_put(&s, NULL, "a");
    fixture_close(&s);
    fixture_ask(&s,
                "UPDATE messages_0 SET created_at = created_at - 61000"
                " WHERE position <= 3");
    fixture_open(&s);
    FIXTURE_UNTIL(&s, s.times_retaining > 0);
    CHECK_U64(s.retaining, 4);
    // Not before flow has settled it.
    CHECK_INT(rows(&s), 5);
    stg_store_commit(s.store, 4);
    FIXTURE_POLL(&s, rows(&s) == 2);
    CHECK_INT(s.times_retaining, 1);
    fixture_end(&s);
}

static bool keeps_from(fixture *s, uint64_t first)
{
    stg_store_view v;

    stg_store_look(s->store, &v);
    return v.first == first;
}

/* Both what is settled and too old, and what is settled and too much, goes. */
TEST(store, keeps_what_is_settled_for_as_long_as_it_is_told_to)
{
    fixture s;

    fixture_make(&s);
    s.options.keep = STG_MIN;
    fixture_open(&s);
    for (int i = 0; i < 5; i++)
        fixture_put(&s, NULL, "a");
    stg_store_commit(s.store, 6);
    fixture_close(&s);
    CHECK_STR(fixture_ask(&s, "SELECT count(*) FROM messages"), "5");
    fixture_ask(&s,
                "UPDATE messages_0 SET created_at = created_at - 61000"
                " WHERE position <= 3");
    fixture_open(&s);
    // Not before flow has settled it.
    fixture_put(&s, NULL, "a");
    CHECK(keeps_from(&s, 1));
    stg_store_commit(s.store, 6);
    FIXTURE_POLL(&s, keeps_from(&s, 4));
    CHECK_INT(rows(&s), 3);
    CHECK_INT(s.times_retaining, 0);
    fixture_end(&s);
}

TEST(store, keeps_what_is_settled_only_while_there_is_room)
{
    stg_append m = big_message();
    fixture s;

    fixture_make(&s);
    s.options.quota = 16 << 20;
    s.options.keep = STG_DAY;
    fixture_open(&s);
    for (int i = 0; i < 200; i++) {
        FIXTURE_POLL(&s, fixture_try(&s, &m) == STG_APPENDED);
        stg_store_commit(s.store, 1000);
    }
    FIXTURE_POLL(&s, rows(&s) < 130);
    CHECK(rows(&s) > 50);
    fixture_end(&s);
}

TEST(store, tells_what_is_too_much)
{
    stg_append m = big_message();
    fixture s;

    fixture_make(&s);
    s.options.quota = 16 << 20;
    fixture_open(&s);
    for (int i = 0; i < 150; i++)
        CHECK_INT(fixture_try(&s, &m), STG_APPENDED);
    FIXTURE_UNTIL(&s, s.times_retaining > 0 && s.retaining > 10);
    CHECK(s.retaining < 60);
    fixture_end(&s);
}

static const stg_change range = {.kind = STG_CHANGE_RANGE,
                                 .lane = 0,
                                 .position = 2,
                                 .last_position = 3,
                                 .count = 2};

TEST(store, keeps_what_range_rows_need)
{
    fixture s;

    fixture_make(&s);
    fixture_open(&s);
    fixture_lane(&s, "a");
    for (int i = 0; i < 600; i++)
        fixture_put(&s, NULL, "a");
    CHECK_INT(fixture_change(&s, &range), STG_STORED);
    stg_store_commit(s.store, 601);
    FIXTURE_POLL(&s, rows(&s) == 599);
    CHECK_STR(fixture_ask(&s, "SELECT state FROM failed_broadcast_logs"),
              "dead");
    fixture_end(&s);
}

TEST(store, lets_the_bodies_of_range_rows_go_when_they_are_too_old)
{
    fixture s;

    fixture_make(&s);
    fixture_open(&s);
    fixture_lane(&s, "a");
    for (int i = 0; i < 5; i++)
        fixture_put(&s, NULL, "a");
    CHECK_INT(fixture_change(&s, &range), STG_STORED);
    fixture_close(&s);
    // Half of the row's.
    fixture_ask(&s, "UPDATE messages_0 SET created_at = 1 WHERE position <= 2");
    fixture_open(&s);
    stg_store_commit(s.store, 6);
    FIXTURE_POLL(&s, rows(&s) == 3);
    CHECK_STR(fixture_ask(&s, "SELECT state FROM failed_broadcast_logs"),
              "dead");
    fixture_close(&s);
    fixture_ask(&s, "UPDATE messages_0 SET created_at = 1");
    fixture_open(&s);
    stg_store_commit(s.store, 6);
    FIXTURE_POLL(&s, rows(&s) == 0);
    CHECK_STR(fixture_ask(&s, "SELECT state FROM failed_broadcast_logs"),
              "expired");
    fixture_end(&s);
}

static void set(void *ctx)
{
    *(bool *)ctx = true;
}

TEST(store, tells_its_name_its_time_and_that_its_writer_lives)
{
    bool is_alive = false;
    fixture s;

    fixture_make(&s);
    fixture_open(&s);
    CHECK_STR(stg_store_name(s.store), s.path);
    CHECK(stg_store_now(s.store) > 1772366400 * STG_S);
    CHECK(!stg_store_has_lane(s.store, "a"));
    fixture_lane(&s, "a");
    CHECK(stg_store_has_lane(s.store, "a"));
    CHECK(!stg_store_has_lane(s.store, "b"));
    stg_store_ping(s.store, set, &is_alive);
    CHECK(!is_alive);
    FIXTURE_UNTIL(&s, is_alive);
    fixture_end(&s);
}
