/* Opening, refusing, breaking, crashing; the file of dead letters. */
#include <fcntl.h>
#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/dead_letters.h"
#include "store/internal.h"
#include "store/sqlite.h"
#include "tests/harness.h"
#include "tests/store/fixture.h"

static void write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");

    CHECK(f != NULL);
    fputs(text, f);
    fclose(f);
}

static char *read_file(const char *path)
{
    static char text[65536];
    FILE *f = fopen(path, "r");
    size_t size;

    if (f == NULL)
        return NULL;
    size = fread(text, 1, sizeof text - 1, f);
    text[size] = '\0';
    fclose(f);
    return text;
}

#define CHECK_HAS(text, part) CHECK(strstr((text), (part)) != NULL)

/* -- opening */

TEST(store_life, begins_with_a_private_file)
{
    struct stat st;
    fixture s;

    fixture_make(&s);
    umask(0);
    fixture_open(&s);
    umask(022);
    CHECK_INT(stat(s.path, &st), 0);
    CHECK_INT(st.st_mode & 0777, 0600);
    fixture_reopen(&s);
    CHECK_STR(fixture_ask(&s,
                          "SELECT value FROM meta"
                          " WHERE name = 'incarnations'"),
              "2");
    CHECK_STR(fixture_ask(&s, "PRAGMA journal_mode"), "wal");
    fixture_end(&s);
}

/* -- epochs */

enum { OPENINGS = 100000, KEPT = 1024 };

static const char *ask_epochs(fixture *s)
{
    return fixture_ask(s, "SELECT first, epoch FROM epochs ORDER BY first");
}

/* The row of the table for an epoch. */
static const char *row_of(uint64_t first, uint64_t epoch)
{
    static char row[64];

    snprintf(row, sizeof row, "%" PRIu64 "|%016" PRIx64, first, epoch);
    return row;
}

/* A message that is answered has a durable epoch. */
TEST(store_life, stores_an_epoch_with_the_first_message_of_an_opening)
{
    appending a = {.is_done = false};
    uint64_t first, second, before;
    fixture s;

    fixture_make(&s);
    fixture_open(&s);
    CHECK_STR(ask_epochs(&s), "");
    before = stg_store_epoch(s.store);
    fixture_reopen(&s);
    first = stg_store_epoch(s.store);
    CHECK(first != before);
    CHECK_U64(fixture_put(&s, "key", "a"), 1);
    CHECK_STR(ask_epochs(&s), row_of(1, first));
    CHECK_U64(fixture_put(&s, NULL, "b"), 2);
    fixture_reopen(&s);
    second = stg_store_epoch(s.store);
    CHECK(second != first);
    // A repeat, and a call that is taken back, accept nothing.
    CHECK_U64(fixture_put(&s, "key", "a"), 1);
    a.messages[0] = fixture_text(NULL, "c");
    a.messages[1] = fixture_text("key", "another");
    fixture_start(&s, &a, 2);
    FIXTURE_UNTIL(&s, a.is_done);
    CHECK_INT(a.how, STG_APPEND_CONFLICT);
    CHECK_STR(ask_epochs(&s), row_of(1, first));
    CHECK_U64(fixture_put(&s, NULL, "c"), 3);
    CHECK_U64(fixture_put(&s, NULL, "d"), 4);
    CHECK_STR(fixture_ask(&s, "SELECT count(*) FROM epochs"), "2");
    CHECK_STR(fixture_ask(&s, "SELECT * FROM epochs WHERE first > 1"),
              row_of(3, second));
    CHECK_U64(stg_store_epoch_at(s.store, 2), first);
    CHECK_U64(stg_store_epoch_at(s.store, 3), second);
    fixture_end(&s);
}

/* Epochs of as many openings, each with one message, of which something is left
 * at the positions 7 to 12. */
static void make_openings(fixture *s)
{
    stg_cursor c = {.base = OPENINGS + 1, .routed = 1, .delivered = 1};

    s->is_made_up = true;
    s->options.receipts.keep = STG_HOUR;
    fixture_open(s);
    fixture_lane(s, "a");
    fixture_put(s, NULL, "body");
    fixture_park(s, 0, 1, 100, "body");
    fixture_cursors(s, &c, 1);
    fixture_close(s);
    fixture_ask(
        s,
        "DELETE FROM epochs; WITH RECURSIVE n (at) AS (SELECT 1 UNION ALL"
        " SELECT at + 1 FROM n WHERE at < 100000) INSERT INTO epochs"
        " SELECT at, printf('%016x', at) FROM n;"
        "UPDATE meta SET value = 100001 WHERE name = 'next_position';"
        "INSERT INTO idempotency_keys VALUES (7, zeroblob(16), zeroblob(16),"
        " strftime('%s') * 1000000000);"
        "INSERT INTO receipts SELECT 1, 1, 2, 0, 1, strftime('%s') * 1000,"
        " 0, 0, 0, 0 UNION ALL SELECT 2, 0, 8, 0, 1, strftime('%s') * 1000,"
        " 0, 0, 0, 0;"
        "UPDATE parked SET position = 9;"
        "INSERT INTO failed_broadcast_logs (message_id, target, target_url,"
        " lane, partition, position, replay, count, state, why, attempts,"
        " created_at, payload) VALUES ('000000000000000a-10', 'a', '', 0, 0,"
        " 10, 0, 1, 'dead', '', 1, '', ''), ('', 'a', '', 0, 0, -5, 2147483646,"
        " 1, 'dead', '', 1, '', '');"
        "UPDATE cursors SET lanes = replace(lanes, '100001', '11');"
        "UPDATE messages_0 SET position = 12");
}

static void check_openings(fixture *s, uint64_t oldest)
{
    char id[64];
    uint32_t number;
    uint64_t position;

    fixture_open(s);
    for (uint64_t i = oldest; i <= OPENINGS; i++)
        CHECK_FROM(i, stg_store_epoch_at(s->store, i) == i);
    snprintf(id, sizeof id, "%016" PRIx64 "-%" PRIu64, oldest, oldest);
    CHECK(stg_store_find_id(s->store, id, &number, &position));
    snprintf(id, sizeof id, "%016" PRIx64 "-%" PRIu64, oldest, oldest - 1);
    CHECK(!stg_store_find_id(s->store, id, &number, &position));
    fixture_close(s);
    snprintf(id, sizeof id, "%" PRIu64, oldest);
    CHECK_STR(fixture_ask(s, "SELECT min(first) FROM epochs"), id);
}

TEST(store_life, keeps_the_epochs_of_all_that_is_left)
{
    static const char *const gone[] = {
        "DELETE FROM idempotency_keys",
        "DELETE FROM receipts WHERE partition = 0",
        "DELETE FROM parked",
        "DELETE FROM failed_broadcast_logs WHERE position = 10",
        "UPDATE cursors SET lanes = replace(lanes, '11', '100001')",
        "DELETE FROM messages_0"};
    fixture s;

    fixture_make(&s);
    make_openings(&s);
    for (size_t i = 0; i < sizeof gone / sizeof *gone; i++) {
        check_openings(&s, 7 + i);
        fixture_ask(&s, gone[i]);
    }
    check_openings(&s, OPENINGS - KEPT + 1);
    check_openings(&s, OPENINGS - KEPT + 1);
    fixture_end(&s);
}

TEST(store_life, refuses_options_out_of_range)
{
    fixture s;

    fixture_make(&s);
    s.options.quota = 1000;
    CHECK_HAS(fixture_refused(&s, STG_INVALID), "quota=1000 is out of range");
    s.options.quota = 16 << 20;
    s.options.retention = STG_S;
    CHECK_HAS(fixture_refused(&s, STG_INVALID), "retention is out of range");
    fixture_end(&s);
}

TEST(store_life, refuses_a_directory_that_is_missing)
{
    char path[400];
    fixture s;

    fixture_make(&s);
    snprintf(path, sizeof path, "%s/no/store.db", s.folder);
    s.options.path = path;
    CHECK_HAS(fixture_refused(&s, STG_INVALID), "there is no such directory");
    s.options.path = s.folder;
    CHECK_HAS(fixture_refused(&s, STG_INVALID), "it is a directory");
    snprintf(path, sizeof path, "%s/file", s.folder);
    CHECK(fclose(fopen(path, "w")) == 0);
    snprintf(path, sizeof path, "%s/file/store.db", s.folder);
    s.options.path = path;
    CHECK_HAS(fixture_refused(&s, STG_INVALID), "a part of the path is a file");
    fixture_end(&s);
}

TEST(store_life, refuses_what_it_may_not_write)
{
    fixture s;

    if (geteuid() == 0)
        return; // who may write everything
    fixture_make(&s);
    chmod(s.folder, 0500);
    CHECK_HAS(fixture_refused(&s, STG_INVALID), "must be writable");
    chmod(s.folder, 0700);
    fixture_end(&s);
}

TEST(store_life, refuses_a_second_hub_and_names_the_first)
{
    char pid[32];
    const char *words;
    fixture s;

    fixture_make(&s);
    fixture_open(&s);
    words = fixture_refused(&s, STG_IO);
    snprintf(pid, sizeof pid, "process %ld", (long)getpid());
    CHECK_HAS(words, "another hub has it");
    CHECK_HAS(words, pid);
    fixture_put(&s, NULL, "a");
    fixture_end(&s);
}

/* SQLite follows a link, and so does the lock. */
TEST(store_life, refuses_a_second_hub_by_another_name)
{
    char link[512];
    fixture s;

    fixture_make(&s);
    fixture_open(&s);
    snprintf(link, sizeof link, "%s/link.db", s.folder);
    CHECK(symlink(s.options.path, link) == 0);
    s.options.path = link;
    CHECK_HAS(fixture_refused(&s, STG_IO), "another hub has it");
    fixture_end(&s);
}

/* Somebody took the file away while a hub has it. */
TEST(store_life, makes_no_file_for_a_second_hub)
{
    struct stat st;
    fixture s;

    fixture_make(&s);
    fixture_open(&s);
    CHECK(unlink(s.path) == 0);
    CHECK_HAS(fixture_refused(&s, STG_IO), "another hub has it");
    CHECK(stat(s.path, &st) != 0);
    fixture_end(&s);
}

/* The link leads to a file that is not there yet. */
TEST(store_life, refuses_a_second_hub_by_a_link_to_a_new_file)
{
    char link[512];
    const char *path;
    fixture s;

    fixture_make(&s);
    path = s.options.path;
    snprintf(link, sizeof link, "%s/link.db", s.folder);
    CHECK(symlink(path, link) == 0);
    s.options.path = link;
    fixture_open(&s);
    s.options.path = path;
    CHECK_HAS(fixture_refused(&s, STG_IO), "another hub has it");
    fixture_put(&s, NULL, "a");
    CHECK(unlink(path) == 0);
    s.options.path = link;
    CHECK_HAS(fixture_refused(&s, STG_IO), "another hub has it");
    CHECK(access(path, F_OK) != 0);
    s.options.path = path;
    fixture_end(&s);
}

/* What the lock's name leads to is somebody else's, and is not written to. */
TEST(store_life, refuses_a_lock_that_is_a_link)
{
    int (*const links[])(const char *, const char *) = {symlink, link};
    char name[512], other[512], text[8] = "";
    fixture s;

    fixture_make(&s);
    snprintf(name, sizeof name, "%s-lock", s.path);
    snprintf(other, sizeof other, "%s/other", s.folder);
    for (size_t i = 0; i < 2; i++) {
        FILE *file = fopen(other, "w");

        CHECK(file != NULL && fputs("mine", file) >= 0 && fclose(file) == 0);
        CHECK((i == 0 || unlink(name) == 0) && links[i](other, name) == 0);
        CHECK_HAS(fixture_refused(&s, STG_INVALID), "-lock is a link");
        CHECK(access(s.path, F_OK) != 0);
        file = fopen(other, "r");
        CHECK(file != NULL && fgets(text, sizeof text, file) != NULL);
        CHECK_STR(text, "mine");
        CHECK(fclose(file) == 0);
    }
    CHECK(unlink(name) == 0 && unlink(other) == 0);
    fixture_open(&s);
    fixture_end(&s);
}

TEST(store_life, refuses_a_file_with_two_names)
{
    char other[512];
    fixture s;

    fixture_make(&s);
    fixture_open(&s);
    fixture_close(&s);
    snprintf(other, sizeof other, "%s/other.db", s.folder);
    CHECK(link(s.path, other) == 0);
    CHECK_HAS(fixture_refused(&s, STG_INVALID), "hard link");
    CHECK(unlink(other) == 0);
    fixture_open(&s);
    fixture_end(&s);
}

/* A start that is refused leaves nothing where there was nothing. */
static void check_no_store(const fixture *s)
{
    static const char *const ends[] = {"", "-wal", "-shm", "-lock"};
    char path[sizeof s->path + 8];
    struct stat st;

    if (s->is_postgres)
        return;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        (void)snprintf(path, sizeof path, "%s%s", s->path, ends[i]);
        CHECK_FROM(i, stat(path, &st) != 0);
    }
}

/* SQLite's locks as files have no shared memory, and so no WAL. */
TEST(store_life, refuses_a_place_without_a_write_ahead_log)
{
    sqlite3_vfs *usual = sqlite3_vfs_find(NULL);
    sqlite3_vfs *plain = sqlite3_vfs_find("unix-dotfile");
    const char *words;
    fixture s;

    CHECK(plain != NULL);
    fixture_make(&s);
    CHECK_INT(sqlite3_vfs_register(plain, 1), SQLITE_OK);
    words = fixture_refused(&s, STG_IO);
    CHECK_INT(sqlite3_vfs_register(usual, 1), SQLITE_OK);
    CHECK_HAS(words, "cannot have a write-ahead log there");
    check_no_store(&s);
    fixture_end(&s);
}

/* -- another process that writes, and does not end */

static sqlite3 *occupy(fixture *s)
{
    sqlite3 *db;

    CHECK_INT(sqlite3_open(s->path, &db), SQLITE_OK);
    sqlite3_busy_timeout(db, 10000); // the store may be writing what it began
    CHECK_INT(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    return db;
}

TEST(store_life, tells_of_another_process_and_goes_on_when_it_ends)
{
    appending a = {.messages = {fixture_text(NULL, "a")}};
    sqlite3 *other;
    fixture s;

    fixture_make(&s);
    fixture_open(&s);
    other = occupy(&s);
    fixture_start(&s, &a, 1);
    FIXTURE_UNTIL(&s, s.times_troubled > 0);
    CHECK_HAS(s.words, "another process writes to it");
    CHECK(!a.is_done);
    sqlite3_close(other);
    FIXTURE_UNTIL(&s, a.is_done);
    CHECK_INT(a.how, STG_APPENDED);
    CHECK_INT(s.times_troubled, 1);
    CHECK_INT(s.times_untroubled, 1);
    fixture_end(&s);
}

TEST(store_life, does_not_wait_for_another_process_for_ever_at_its_end)
{
    appending a = {.messages = {fixture_text(NULL, "a")}};
    sqlite3 *other;
    fixture s;

    fixture_make(&s);
    fixture_open(&s);
    other = occupy(&s);
    fixture_start(&s, &a, 1);
    stg_store_end_soon(s.store);
    FIXTURE_UNTIL(&s, a.is_done);
    CHECK_INT(a.how, STG_APPEND_UNKNOWN);
    FIXTURE_UNTIL(&s, s.times_broken > 0);
    CHECK_HAS(s.words, "another process is writing to it, end it");
    sqlite3_close(other);
    fixture_end(&s);
}

TEST(store_life, refuses_a_file_that_is_no_database)
{
    fixture s;

    fixture_make(&s);
    write_file(s.path,
               "This is a text, and long enough to be no header at "
               "all of any database, whoever looks at it ......\n"
               "and more of it");
    CHECK_HAS(fixture_refused(&s, STG_INVALID), "no SQLite database");
    // What it is was left alone.
    CHECK_HAS(read_file(s.path), "This is a text");
    fixture_end(&s);
}

TEST(store_life, refuses_a_database_of_another_program)
{
    fixture s;

    fixture_make(&s);
    fixture_ask(&s, "CREATE TABLE t (x)");
    CHECK_HAS(fixture_refused(&s, STG_INVALID), "no store of stagger");
    CHECK_STR(fixture_ask(&s, "PRAGMA journal_mode"), "delete");
    fixture_end(&s);
}

TEST(store_life, refuses_a_store_of_another_version)
{
    fixture s;

    fixture_make(&s);
    fixture_open(&s);
    fixture_close(&s);
    fixture_ask(&s, "PRAGMA user_version = 99");
    CHECK_HAS(fixture_refused(&s, STG_INVALID), "version 99");
    fixture_ask(&s, "PRAGMA user_version = 0");
    CHECK_HAS(fixture_refused(&s, STG_INVALID), "version 0");
    fixture_ask(&s, "PRAGMA user_version = 1");
    fixture_open(&s);
    fixture_end(&s);
}

static void check_damaged(const char *sql)
{
    fixture s;

    fixture_make(&s);
    fixture_open(&s);
    fixture_put(&s, NULL, "a");
    fixture_close(&s);
    fixture_ask(&s, sql);
    CHECK_HAS(fixture_refused(&s, STG_IO), "damaged");
    fixture_end(&s);
}

TEST(store_life, refuses_what_contradicts_itself)
{
    check_damaged("UPDATE epochs SET epoch = 'x'");
    check_damaged("UPDATE epochs SET first = 0");
    check_damaged("UPDATE epochs SET first = 2");
    check_damaged("DELETE FROM epochs");
    check_damaged("DELETE FROM meta WHERE name = 'next_position'");
    check_damaged("UPDATE meta SET value = 1 WHERE name = 'next_position'");
    check_damaged("INSERT INTO cursors VALUES (0, 0, 0, '{\"0\": 7}')");
    check_damaged("INSERT INTO cursors VALUES (0, 0, 0, '{')");
    check_damaged(
        "INSERT INTO lanes (number, name, url) VALUES (1000000, 'a', 'b')");
}

TEST(store_life, leaves_one_file_and_its_lock_when_it_closes)
{
    char path[400];
    struct stat st;
    fixture s;

    fixture_make(&s);
    s.options.letters = s.letters;
    for (int i = 0; i < 10; i++) {
        fixture_open(&s);
        fixture_put(&s, NULL, "a");
        fixture_close(&s);
        snprintf(path, sizeof path, "%s-wal", s.path);
        CHECK(stat(path, &st) != 0);
    }
    fixture_end(&s);
}

TEST(store_life, refuses_a_file_that_is_torn)
{
    fixture s;

    fixture_make(&s);
    fixture_open(&s);
    fixture_close(&s);
    CHECK_INT(truncate(s.path, 4096 + 100), 0);
    CHECK_HAS(fixture_refused(&s, STG_IO), "damaged");
    fixture_end(&s);
}

/* -- tables */

TEST(store_life, makes_its_tables_once)
{
    stg_schema_kind kind;
    uint64_t version;
    stg_db *db;

    CHECK_INT(stg_sqlite_open(
                  &db, ":memory:", SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE),
              SQLITE_OK);
    CHECK_INT(stg_schema_look(db, &kind, &version), SQLITE_OK);
    CHECK_INT(kind, STG_SCHEMA_EMPTY);
    CHECK_INT(stg_schema_make(db), SQLITE_OK);
    CHECK_INT(stg_schema_look(db, &kind, &version), SQLITE_OK);
    CHECK_INT(kind, STG_SCHEMA_OURS);
    CHECK_U64(version, STG_SCHEMA_VERSION);
    CHECK_INT(stg_schema_make(db), SQLITE_ERROR);
    stg_sql_close(db);
}

/* -- breaking */

TEST(store_life, tells_once_that_it_is_broken_and_answers_appends)
{
    appending a = {.messages = {fixture_text(NULL, "a")}}, b = a;
    fixture s;

    fixture_make(&s);
    fixture_open(&s);
    fixture_ask(&s,
                "CREATE TRIGGER t BEFORE INSERT ON messages_0"
                " BEGIN SELECT RAISE(ABORT, 'broken by a test'); END");
    fixture_start(&s, &a, 1);
    fixture_start(&s, &b, 1);
    FIXTURE_UNTIL(&s, s.times_broken > 0);
    CHECK(a.is_done && b.is_done);
    CHECK_INT(a.how, STG_APPEND_UNKNOWN);
    CHECK_INT(b.how, STG_APPEND_UNKNOWN);
    CHECK_HAS(s.words, "broken by a test");
    // Nothing more is written or told.
    a.is_done = false;
    fixture_start(&s, &a, 1);
    fixture_close(&s);
    CHECK(!a.is_done);
    CHECK_INT(s.times_broken, 1);
    CHECK_STR(fixture_ask(&s, "SELECT count(*) FROM messages"), "0");
    fixture_end(&s);
}

/* The writer has ended, and the loop does not know it yet. */
TEST(store_life, answers_appends_that_come_while_it_breaks)
{
    appending a = {.messages = {fixture_text(NULL, "a")}}, b = a;
    fixture s;

    fixture_make(&s);
    fixture_open(&s);
    fixture_ask(&s,
                "CREATE TRIGGER t BEFORE INSERT ON messages_0"
                " BEGIN SELECT RAISE(ABORT, 'broken by a test'); END");
    fixture_start(&s, &a, 1);
    while (!stg_request_queue_is_broken(&s.store->in))
        usleep(500);
    fixture_start(&s, &b, 1);
    FIXTURE_UNTIL(&s, s.times_broken > 0);
    CHECK(a.is_done && b.is_done);
    CHECK_INT(b.how, STG_APPEND_UNKNOWN);
    fixture_end(&s);
}

static int revive_at_once(stg_db *db, bool (*is_over)(void *ctx), void *ctx)
{
    (void)db;
    (void)is_over;
    (void)ctx;
    return SQLITE_OK;
}

/* Ten seconds, from when a thread that reads has seen it close. */
TEST(store_life, waits_for_a_server_that_is_away_for_a_time_when_it_closes)
{
    static const stg_sql_calls calls = {.revive = revive_at_once};
    stg_db db = {.calls = &calls};
    stg_request_queue in = {.stage = STG_QUEUE_ENDING};
    stg_read_retry a = {.in = &in};
    uint64_t before = uv_hrtime(), seen;

    CHECK_INT(uv_mutex_init(&in.lock), 0);
    CHECK(stg_store_again(&a, &db, STG_SQL_AWAY));
    CHECK_U64(a.closing_at, 0);
    in.stage = STG_QUEUE_CLOSING;
    CHECK(stg_store_again(&a, &db, STG_SQL_AWAY));
    seen = a.closing_at;
    CHECK(seen >= before);
    CHECK(stg_store_again(&a, &db, STG_SQL_AWAY));
    CHECK_U64(a.closing_at, seen);
    // As if it had been ten seconds ago.
    a.closing_at -= 10 * STG_S;
    CHECK(!stg_store_again(&a, &db, STG_SQL_AWAY));
    uv_mutex_destroy(&in.lock);
}

static void never(void *ctx, stg_stored how, const uint32_t *fenced,
                  size_t count)
{
    (void)fenced;
    (void)count;
    (void)ctx;
    (void)how;
    CHECK(false);
}

TEST(store_life, is_broken_by_a_group_that_fails)
{
    stg_cursor cursor = {.lane = 1, .base = 2};
    stg_group g = {.cursors = &cursor, .cursor_count = 1};
    fixture s;

    fixture_make(&s);
    fixture_open(&s);
    fixture_ask(&s,
                "CREATE TRIGGER t BEFORE INSERT ON cursors"
                " BEGIN SELECT RAISE(ABORT, 'broken by a test'); END");
    stg_store_group(s.store, &g, never, NULL);
    FIXTURE_UNTIL(&s, s.times_broken > 0);
    CHECK_HAS(s.words, "broken by a test");
    fixture_end(&s);
}

static void never_read(void *ctx, const stg_record *records, size_t count,
                       uint64_t next)
{
    (void)ctx;
    (void)records;
    (void)count;
    (void)next;
    CHECK(false);
}

TEST(store_life, is_broken_by_a_page_that_is_corrupt)
{
    char junk[4096];
    fixture s;
    int fd;

    fixture_make(&s);
    fixture_open(&s);
    for (int i = 0; i < 10; i++)
        fixture_put(&s, NULL, "a");
    fixture_close(&s);
    memset(junk, 0x55, sizeof junk);
    fd = open(s.path, O_WRONLY);
    // The page that the table begins with; pages are of 16 KB.
    CHECK_INT(pwrite(fd, junk, sizeof junk,
                     16384 * (atol(fixture_ask(&s,
                                               "SELECT rootpage FROM"
                                               " sqlite_master WHERE name ="
                                               " 'messages_0'")) -
                              1)),
              sizeof junk);
    close(fd);
    CHECK_HAS(fixture_refused(&s, STG_IO), "damaged");
    s.is_made_up = true;
    fixture_end(&s);

    // The same while it runs.
    fixture_make(&s);
    fixture_open(&s);
    fixture_ask(&s,
                "PRAGMA writable_schema = ON;"
                "UPDATE sqlite_master SET rootpage = 2"
                " WHERE name = 'messages_0';"
                "PRAGMA schema_version = 1000;");
    stg_store_read(s.store, 0, 100, false, never_read, NULL);
    FIXTURE_UNTIL(&s, s.times_broken > 0);
    s.is_made_up = true;
    fixture_end(&s);
}

/* -- crashing */

static void copy(fixture *s, const char *suffix)
{
    char command[512];

    snprintf(command, sizeof command, "cp %s%s %s/copy.db%s", s->path, suffix,
             s->folder, suffix);
    CHECK_INT(system(command), 0);
}

/* What a kill leaves behind is the file and its WAL as they are. */
TEST(store_life, finds_all_that_was_answered_after_a_crash)
{
    static appending a[40];
    char path[400];
    uint64_t last = 0;
    fixture s;

    fixture_make(&s);
    fixture_open(&s);
    fixture_park(&s, fixture_lane(&s, "a"), 1, 100, "parked");
    for (int i = 0; i < 40; i++) {
        a[i].messages[0] = fixture_text(NULL, "a");
        fixture_start(&s, &a[i], 1);
    }
    FIXTURE_UNTIL(&s, a[9].is_done);
    for (int i = 0; i < 40; i++)
        if (a[i].is_done)
            last = a[i].answers[0].position;
    // The WAL first: what it has is not yet gone from it into the file.
    copy(&s, "-wal");
    copy(&s, "");
    FIXTURE_UNTIL(&s, a[39].is_done);
    fixture_close(&s);
    snprintf(path, sizeof path, "%s/copy.db", s.folder);
    strcpy(s.path, path);
    fixture_open(&s);
    CHECK(fixture_next(&s) > last);
    CHECK_STR(fixture_ask(&s, "SELECT count(*) FROM parked, lanes"), "1");
    CHECK_STR(fixture_ask(&s, "PRAGMA integrity_check"), "ok");
    fixture_end(&s);
}

TEST(store_life, keeps_the_wal_short)
{
    static char big[60000];
    stg_append m = {.parcel = {.body = {big, sizeof big}}};
    stg_store_view view;
    struct stat st;
    char path[400];
    fixture s;

    fixture_make(&s);
    s.options.quota = 64 << 20;
    fixture_open(&s);
    for (int i = 0; i < 600; i++)
        CHECK_INT(fixture_try(&s, &m), STG_APPENDED);
    stg_store_look(s.store, &view);
    CHECK(view.used > 600 * sizeof big);
    CHECK(view.checkpoints.sum > 0 && view.checkpoints.sum < STG_HOUR);
    CHECK(view.commits.sum > 0 && view.commits.sum < STG_HOUR);
    snprintf(path, sizeof path, "%s-wal", s.path);
    CHECK_INT(stat(path, &st), 0);
    // An eighth of the quota, and what came in one round.
    CHECK(st.st_size < 10 << 20);
    fixture_end(&s);
}

/* -- letters */

static void die(fixture *s, uint64_t position, const char *body)
{
    stg_failure f = fixture_failure(404, STG_WHY_PERMANENT);
    stg_change c = {.kind = STG_CHANGE_DEAD,
                    .position = position,
                    .message = fixture_message(s, position, body),
                    .failure = &f,
                    .progress = {.attempts = 1}};

    CHECK_INT(fixture_change(s, &c), STG_STORED);
}

static size_t count_lines(const char *text)
{
    size_t lines = 0;

    for (; text != NULL && *text != '\0'; text++)
        lines += *text == '\n';
    return lines;
}

TEST(store_life, copies_dead_letters_to_a_file)
{
    const char *text;
    fixture s;

    fixture_make(&s);
    s.options.letters = s.letters;
    fixture_open(&s);
    fixture_lane(&s, "a");
    die(&s, 5, "say \"x\"\n\xc3\xa9");
    die(&s, 6, "\xff\xfe z");
    FIXTURE_POLL(&s, count_lines(read_file(s.letters)) == 2);
    text = read_file(s.letters);
    CHECK_HAS(text, "{\"id\": 1, \"message_id\": ");
    CHECK_HAS(text, "\"payload\": \"say \\\"x\\\"\\n\xc3\xa9\"}\n");
    CHECK_HAS(text, "\"payload_base64\": \"//4geg==\"}\n");
    CHECK_HAS(text, "\"cause\": \"HTTP_404\", \"http_status\": 404");
    // From where it was, and each once.
    fixture_reopen(&s);
    die(&s, 7, "c");
    fixture_close(&s);
    CHECK_INT(count_lines(read_file(s.letters)), 3);
    CHECK_STR(fixture_ask(&s,
                          "SELECT value FROM meta"
                          " WHERE name = 'letters_version'"),
              "3");
    fixture_end(&s);
}

static void on_dropped(void *ctx, const stg_letters_sum *sum)
{
    CHECK_U64(sum->letters, 1);
    *(bool *)ctx = true;
}

/* Its id is the same, its state another one. */
TEST(store_life, copies_a_dead_letter_again_when_it_changes)
{
    stg_change range = {.kind = STG_CHANGE_RANGE,
                        .position = 3,
                        .last_position = 5,
                        .count = 3};
    bool is_done = false;
    const char *text;
    fixture s;

    fixture_make(&s);
    s.options.letters = s.letters;
    fixture_open(&s);
    die(&s, 1, "a");
    CHECK_INT(fixture_change(&s, &range), STG_STORED);
    FIXTURE_POLL(&s, count_lines(read_file(s.letters)) == 2);
    stg_store_drop(s.store,
                   &(stg_letter_filter){.ids = (uint64_t[]){1}, .id_count = 1},
                   false, on_dropped, &is_done);
    FIXTURE_UNTIL(&s, is_done);
    FIXTURE_POLL(&s, count_lines(read_file(s.letters)) == 3);
    // What has grown comes at the next start at the latest.
    range.last_position = 9;
    range.count = 7;
    CHECK_INT(fixture_change(&s, &range), STG_STORED);
    fixture_reopen(&s);
    FIXTURE_POLL(&s, count_lines(read_file(s.letters)) == 4);
    text = strstr(read_file(s.letters), "\"state\": \"dropped\"");
    CHECK(text != NULL);
    CHECK_HAS(text, "{\"id\": 2, ");
    CHECK_HAS(text, "\"count\": 7");
    s.is_made_up = true;
    fixture_end(&s);
}

/* Also one that has grown just before, and with its last count. */
TEST(store_life, tells_the_file_of_a_range_row_that_expired)
{
    stg_change shed = {.kind = STG_CHANGE_RANGE, .position = 1, .count = 2};
    const char *text;
    fixture s;

    fixture_make(&s);
    s.options.letters = s.letters;
    fixture_open(&s);
    fixture_lane(&s, "a");
    for (int i = 0; i < 5; i++)
        fixture_put(&s, NULL, "a");
    shed.last_position = 2;
    CHECK_INT(fixture_change(&s, &shed), STG_STORED);
    FIXTURE_POLL(&s, count_lines(read_file(s.letters)) == 1);
    shed.last_position = 4;
    shed.count = 4;
    CHECK_INT(fixture_change(&s, &shed), STG_STORED);
    fixture_close(&s);
    fixture_ask(&s, "UPDATE messages_0 SET created_at = 1");
    fixture_open(&s);
    stg_store_commit(s.store, 6);
    FIXTURE_POLL(&s, strstr(read_file(s.letters), "\"expired\"") != NULL);
    text = strstr(read_file(s.letters), "\"expired\"");
    CHECK_HAS(text, "\"count\": 4");
    CHECK(strstr(text, "\"changed_at\": null") == NULL);
    fixture_end(&s);
}

/* A crash cut a line off: its row comes again, in a line of its own. */
TEST(store_life, begins_a_line_behind_whole_ones)
{
    const char half[] = "{\"id\": 0, \"message_id\": \"\"}\n{\"id\": 1, \"mess";
    const char *text;
    FILE *file;
    fixture s;

    fixture_make(&s);
    s.options.letters = s.letters;
    file = fopen(s.letters, "w");
    CHECK(file != NULL && fputs(half, file) >= 0 && fclose(file) == 0);
    fixture_open(&s);
    fixture_lane(&s, "a");
    die(&s, 5, "a");
    FIXTURE_POLL(&s, count_lines(read_file(s.letters)) == 2);
    text = read_file(s.letters);
    CHECK_HAS(text,
              "{\"id\": 0, \"message_id\": \"\"}\n"
              "{\"id\": 1, \"message_id\": ");
    fixture_end(&s);
}

/* Between two files there may be none for a moment. */
static bool has_text(const char *path, const char *part)
{
    const char *text = read_file(path);

    return text != NULL && strstr(text, part) != NULL;
}

/* Makes a file that is large, and takes no room: a hole, and a line's end. */
static void make_large(const char *path, off_t size)
{
    int fd = open(path, O_WRONLY | O_CREAT, 0600);

    CHECK(fd >= 0 && pwrite(fd, "\n", 1, size - 1) == 1 && close(fd) == 0);
}

TEST(store_life, never_rotates_the_file_of_dead_letters)
{
    const off_t large = (off_t)70 << 20;
    char path[400];
    struct stat st;
    fixture s;

    fixture_make(&s);
    s.options.letters = s.letters;
    make_large(s.letters, large);
    snprintf(path, sizeof path, "%s.5", s.letters);
    make_large(path, 8);
    fixture_open(&s);
    fixture_lane(&s, "a");
    die(&s, 1, "body");
    fixture_close(&s);
    CHECK(stat(s.letters, &st) == 0 && st.st_size > large);
    CHECK(stat(path, &st) == 0 && st.st_size == 8);
    snprintf(path, sizeof path, "%s.1", s.letters);
    CHECK(stat(path, &st) != 0);
    fixture_end(&s);
}

/* Whether that version is noted as copied. */
static bool has_noted(fixture *s, const char *version)
{
    const char *is = fixture_ask(s,
                                 "SELECT value FROM meta"
                                 " WHERE name = 'letters_version'");

    return is != NULL && strcmp(is, version) == 0;
}

TEST(store_life, copies_to_the_file_that_the_path_names)
{
    char moved[400];
    fixture s;

    fixture_make(&s);
    snprintf(moved, sizeof moved, "%s.moved", s.letters);
    s.options.letters = s.letters;
    fixture_open(&s);
    fixture_lane(&s, "a");
    die(&s, 1, "a");
    FIXTURE_POLL(&s, has_text(s.letters, "\"id\": 1,"));
    CHECK(rename(s.letters, moved) == 0);
    die(&s, 2, "b");
    FIXTURE_POLL(&s, has_text(s.letters, "\"id\": 2,"));
    CHECK(!has_text(moved, "\"id\": 2,"));
    CHECK(unlink(s.letters) == 0);
    die(&s, 3, "c");
    FIXTURE_POLL(&s, has_text(s.letters, "\"id\": 3,"));
    // A file of somebody else's, whose last line has no end.
    write_file(moved, "{\"id\": 9");
    CHECK(rename(moved, s.letters) == 0);
    die(&s, 4, "d");
    FIXTURE_POLL(&s, has_text(s.letters, "\"id\": 4,"));
    // The row before may come again, where it was on its way.
    CHECK_HAS(read_file(s.letters), "{\"id\": 9\n{\"id\": ");
    CHECK_INT(s.times_troubled, 0);
    fixture_end(&s);
}

TEST(store_life, writes_no_copy_into_the_store)
{
    fixture s;

    fixture_make(&s);
    s.options.letters = s.letters;
    fixture_open(&s);
    fixture_lane(&s, "a");
    die(&s, 1, "a");
    FIXTURE_POLL(&s, has_text(s.letters, "\"id\": 1,"));
    CHECK(unlink(s.letters) == 0 && symlink(s.path, s.letters) == 0);
    die(&s, 2, "b");
    FIXTURE_POLL(&s, s.times_troubled > 0);
    CHECK_HAS(s.words, "a file of the store");
    CHECK(!has_noted(&s, "2"));
    CHECK(unlink(s.letters) == 0);
    FIXTURE_POLL(&s, has_text(s.letters, "\"id\": 2,"));
    fixture_end(&s);
}

TEST(store_life, refuses_a_file_of_dead_letters_that_cannot_be_written)
{
    fixture s;

    fixture_make(&s);
    s.options.letters = "/nonexistent/letters";
    CHECK_HAS(fixture_refused(&s, STG_INVALID),
              "dead letters cannot be written");
    check_no_store(&s);
    s.options.letters = NULL;
    fixture_open(&s);
    fixture_close(&s);
    s.options.letters = "/nonexistent/letters";
    CHECK_HAS(fixture_refused(&s, STG_INVALID),
              "dead letters cannot be written");
    s.options.letters = NULL;
    fixture_open(&s); // what was there before is still there
    CHECK_STR(
        fixture_ask(&s, "SELECT value FROM meta WHERE name = 'incarnations'"),
        "3");
    fixture_end(&s);
}

TEST(store_life, tells_of_letters_that_fail_later_and_tries_again)
{
    fixture s;

    fixture_make(&s);
    s.options.letters = s.letters;
    fixture_open(&s);
    fixture_lane(&s, "a");
    // A directory in its place.
    CHECK(unlink(s.letters) == 0 && mkdir(s.letters, 0700) == 0);
    die(&s, 1, "a");
    die(&s, 2, "b");
    FIXTURE_POLL(&s, s.times_troubled > 0);
    CHECK_HAS(s.words, "dead letters cannot be copied");
    CHECK(rmdir(s.letters) == 0);
    FIXTURE_POLL(&s, has_text(s.letters, "\"id\": 2,"));
    CHECK_INT(s.times_troubled, 1);
    CHECK_INT(s.times_broken, 0);
    fixture_end(&s);
}
