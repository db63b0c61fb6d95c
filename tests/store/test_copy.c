/* Backup, restore and verify, of a store that has some of all: ten messages, two
 * dead letters, a bulk row and a parked row. */
#include <fcntl.h>
#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/store_file.h"
#include "tests/harness.h"
#include "tests/store/fixture.h"

#define CHECK_HAS(text, part) CHECK(strstr((text), (part)) != NULL)

enum { MESSAGES = 10, PATH_ROOM = 300 };

typedef struct copies {
    fixture fixture;
    char copy[PATH_ROOM]; /* of the store */
    char words[2048];     /* flaws, a line each */
    stg_verified v;
} copies;

static void fill(fixture *s)
{
    stg_failure failure = fixture_failure(503, STG_WHY_ATTEMPTS);
    stg_cursor c = {.base = MESSAGES + 1,
                    .routed = MESSAGES,
                    .delivered = 3,
                    .dead = 6,
                    .parked = 1};
    stg_change changes[] = {
        {.kind = STG_CHANGE_DEAD, .position = 1, .failure = &failure},
        {.kind = STG_CHANGE_DEAD, .position = 2, .failure = &failure},
        {.kind = STG_CHANGE_RANGE,
         .position = 4,
         .last_position = 7,
         .count = 4},
    };

    fixture_lane(s, "a");
    fixture_lane(s, "b");
    for (int i = 0; i < MESSAGES; i++)
        fixture_put(s, i == 0 ? "key" : NULL, "body");
    for (size_t i = 0; i < 2; i++)
        changes[i].message = fixture_message(s, i + 1, "body");
    fixture_park(s, 0, 3, 100, "body");
    CHECK_INT(fixture_store(s, &(stg_group){.changes = changes,
                                            .change_count = 3,
                                            .cursors = &c,
                                            .cursor_count = 1}),
              STG_STORED);
}

static void make(copies *c)
{
    memset(c, 0, sizeof *c);
    fixture_make(&c->fixture);
    snprintf(c->copy, sizeof c->copy, "%s/copy.db", c->fixture.folder);
    fixture_open(&c->fixture);
    fill(&c->fixture);
}

static void on_flaw(void *ctx, const char *words)
{
    copies *c = ctx;
    size_t at = strlen(c->words);

    snprintf(c->words + at, sizeof c->words - at, "%s\n", words);
}

/* The flaws of a file, or why it cannot be read. */
static const char *verify(copies *c, const char *path)
{
    stg_error err = {.text = ""};

    c->words[0] = '\0';
    if (stg_verify(path, &c->v, on_flaw, c, &err) != STG_OK)
        snprintf(c->words, sizeof c->words, "%s", err.text);
    return c->words;
}

/* "": it was made. Static. */
static const char *backup(const char *path, const char *to)
{
    static stg_error err;

    err.text[0] = '\0';
    CHECK((stg_copy_backup(path, to, &err) == STG_OK) == (err.text[0] == '\0'));
    return err.text;
}

static const char *restore(const char *from, const char *path, bool is_forced,
                           stg_restored *done)
{
    static stg_error err;

    err.text[0] = '\0';
    CHECK((stg_copy_restore(from, path, is_forced, done, &err) == STG_OK) ==
          (err.text[0] == '\0'));
    return err.text;
}

/* Asks another file than the fixture's. */
static const char *ask(copies *c, const char *path, const char *sql)
{
    fixture other = c->fixture;

    CHECK(strlen(path) < sizeof other.path);
    strcpy(other.path, path);
    return fixture_ask(&other, sql);
}

/* How many names the folder has that match. */
static int count_names(copies *c, const char *pattern)
{
    char command[PATH_ROOM];
    int count = -1;
    FILE *out;

    snprintf(command, sizeof command, "ls -d %s/%s 2>/dev/null | wc -l",
             c->fixture.folder, pattern);
    out = popen(command, "r");
    CHECK(out != NULL && fscanf(out, "%d", &count) == 1);
    pclose(out);
    return count;
}

/* -- backup */

TEST(store_copy, of_an_open_store_is_whole_and_private)
{
    static const char counts[] =
        "SELECT (SELECT count(*) FROM messages),"
        " (SELECT count(*) FROM failed_broadcast_logs),"
        " (SELECT count(*) FROM parked)";
    struct stat st;
    copies c;

    make(&c);
    CHECK_STR(backup(c.fixture.path, c.copy), "");
    CHECK_STR(ask(&c, c.copy, counts), "10|3|1");
    CHECK_INT(stat(c.copy, &st), 0);
    CHECK_INT(st.st_mode & 0777, 0600);
    CHECK_STR(verify(&c, c.copy), "");
    // One plain file, in place of the one that was there.
    fixture_put(&c.fixture, NULL, "since");
    CHECK_STR(backup(c.fixture.path, c.copy), "");
    CHECK_STR(ask(&c, c.copy, "SELECT count(*) FROM messages"), "11");
    CHECK_STR(ask(&c, c.copy, "PRAGMA journal_mode"), "delete");
    CHECK_INT(count_names(&c, "copy*"), 1);
    fixture_end(&c.fixture);
}

TEST(store_copy, is_refused_with_the_name_that_is_wrong)
{
    char link[PATH_ROOM], missing[PATH_ROOM], other[PATH_ROOM];
    copies c;

    make(&c);
    snprintf(link, sizeof link, "%s/link", c.fixture.folder);
    snprintf(missing, sizeof missing, "%s/no/copy.db", c.fixture.folder);
    snprintf(other, sizeof other, "%s/other", c.fixture.folder);
    CHECK_INT(symlink(c.fixture.path, link), 0);
    CHECK_INT(system(strcat(strcpy(c.words, "echo none > "), other)), 0);
    CHECK_HAS(backup(missing, c.copy), "no/copy.db: cannot be read");
    CHECK_HAS(backup(c.fixture.path, link), "is the store itself");
    CHECK_HAS(backup(c.fixture.path, c.fixture.folder), "is no file");
    CHECK_HAS(backup(c.fixture.path, missing), "cannot be made");
    CHECK_HAS(backup(other, c.copy), "other: cannot be read");
    CHECK_STR(backup(link, other), "");
    CHECK_INT(count_names(&c, "copy*"), 0);
    CHECK_INT(count_names(&c, "*part*"), 0);
    fixture_end(&c.fixture);
}

/* -- restore */

/* A key that the store has is of the message of then, under its id. */
static void check_repeat(fixture *s, uint64_t epoch)
{
    appending a = {.is_done = false};

    a.messages[0] = fixture_text("key", "body");
    fixture_start(s, &a, 1);
    FIXTURE_UNTIL(s, a.is_done);
    CHECK(a.how == STG_APPENDED && a.answers[0].is_repeat);
    CHECK_U64(a.answers[0].position, 1);
    CHECK_U64(a.answers[0].epoch, epoch);
}

/* Ids of messages and letters never come twice. */
TEST(store_copy, goes_on_in_an_epoch_of_its_own)
{
    uint64_t before;
    stg_restored r;
    copies c;

    make(&c);
    before = stg_store_epoch(c.fixture.store);
    CHECK_STR(backup(c.fixture.path, c.copy), "");
    fixture_put(&c.fixture, NULL, "lost");
    fixture_close(&c.fixture);
    CHECK_INT(system(strcat(strcpy(c.words, "rm "), c.fixture.path)), 0);
    CHECK_STR(restore(c.copy, c.fixture.path, false, &r), "");
    CHECK_STR(r.replaced, "");
    CHECK_STR(verify(&c, c.fixture.path), "");
    CHECK_STR(ask(&c, c.fixture.path,
                  "SELECT seq > 1000000 FROM sqlite_sequence"
                  " WHERE name = 'failed_broadcast_logs'"),
              "1");
    fixture_open(&c.fixture);
    CHECK(stg_store_epoch(c.fixture.store) != before);
    CHECK_U64(stg_store_epoch_at(c.fixture.store, MESSAGES), before);
    CHECK_U64(fixture_put(&c.fixture, NULL, "new"), MESSAGES + 1);
    check_repeat(&c.fixture, before);
    fixture_end(&c.fixture);
}

/* The id of a message that is appended now. */
static void put(fixture *s, char id[STG_MESSAGE_ID_MAX])
{
    stg_store_id(s->store, 0, fixture_put(s, NULL, "body"), id);
}

static bool has_id(fixture *s, const char *id, uint64_t position)
{
    uint32_t number;
    uint64_t found;

    return stg_store_find_id(s->store, id, &number, &found) && number == 0 &&
           found == position;
}

static void copy_file(const char *from, const char *to)
{
    char command[3 * PATH_ROOM];

    snprintf(command, sizeof command, "cp %s %s", from, to);
    CHECK_INT(system(command), 0);
}

/* I11, I36: nothing in a file tells that it is a copy. */
TEST(store_copy, that_was_put_back_by_hand_gives_no_id_twice)
{
    char old[STG_MESSAGE_ID_MAX], lost[STG_MESSAGE_ID_MAX],
        new[STG_MESSAGE_ID_MAX], now[STG_MESSAGE_ID_MAX];
    uint64_t before;
    copies c;

    make(&c);
    before = stg_store_epoch(c.fixture.store);
    stg_store_id(c.fixture.store, 0, 1, old);
    fixture_close(&c.fixture);
    copy_file(c.fixture.path, c.copy);
    fixture_open(&c.fixture);
    put(&c.fixture, lost);
    fixture_close(&c.fixture);
    copy_file(c.copy, c.fixture.path);
    fixture_open(&c.fixture);
    check_repeat(&c.fixture, before);
    put(&c.fixture, new);
    CHECK(strcmp(new, lost) != 0);
    CHECK(has_id(&c.fixture, new, MESSAGES + 1));
    CHECK(!has_id(&c.fixture, lost, MESSAGES + 1));
    CHECK(has_id(&c.fixture, old, 1));
    // A life later all of them are as they were.
    fixture_reopen(&c.fixture);
    CHECK_STR(stg_store_id(c.fixture.store, 0, 1, now), old);
    CHECK_STR(stg_store_id(c.fixture.store, 0, MESSAGES + 1, now), new);
    CHECK(!has_id(&c.fixture, lost, MESSAGES + 1));
    fixture_end(&c.fixture);
}

TEST(store_copy, replaces_a_store_only_by_force_and_keeps_it)
{
    struct stat old, kept, now;
    stg_restored r;
    copies c;

    make(&c);
    CHECK_STR(backup(c.fixture.path, c.copy), "");
    fixture_put(&c.fixture, NULL, "since");
    CHECK_HAS(restore(c.copy, c.fixture.path, true, &r), "another hub has it");
    fixture_close(&c.fixture);
    CHECK_HAS(restore(c.copy, c.fixture.path, false, &r), "--force");
    CHECK_INT(stat(c.fixture.path, &old), 0);
    CHECK_STR(restore(c.copy, c.fixture.path, true, &r), "");
    CHECK_INT(stat(r.replaced, &kept), 0);
    CHECK_INT(stat(c.fixture.path, &now), 0);
    CHECK(old.st_ino == kept.st_ino && old.st_ino != now.st_ino);
    CHECK_INT(kept.st_nlink, 1);
    CHECK_STR(ask(&c, r.replaced, "SELECT count(*) FROM messages"), "11");
    CHECK_STR(ask(&c, c.fixture.path, "SELECT count(*) FROM messages"), "10");
    CHECK_INT(count_names(&c, "*.restore"), 0);
    fixture_end(&c.fixture);
}

TEST(store_copy, is_not_restored_unless_it_is_sound)
{
    char missing[PATH_ROOM];
    stg_restored r;
    copies c;

    make(&c);
    snprintf(missing, sizeof missing, "%s/none", c.fixture.folder);
    CHECK_STR(backup(c.fixture.path, c.copy), "");
    fixture_close(&c.fixture);
    CHECK_HAS(restore(missing, c.fixture.path, true, &r),
              "none: cannot be read");
    CHECK_HAS(restore(c.fixture.path, c.fixture.path, true, &r),
              "is the store itself");
    ask(&c, c.copy, "UPDATE meta SET value = 1 WHERE name = 'next_position'");
    CHECK_HAS(restore(c.copy, c.fixture.path, true, &r), "is not sound");
    CHECK_STR(verify(&c, c.fixture.path), "");
    CHECK_INT(count_names(&c, "store.db*replaced*"), 0);
    fixture_end(&c.fixture);
}

TEST(store_copy, that_cannot_be_put_in_its_place_leaves_no_store)
{
    char path[PATH_ROOM], part[PATH_ROOM];
    stg_restored r;
    copies c;

    make(&c);
    CHECK_STR(backup(c.fixture.path, c.copy), "");
    snprintf(path, sizeof path, "%s/new.db", c.fixture.folder);
    snprintf(part, sizeof part, "%s/new.db.restore", c.fixture.folder);
    CHECK_INT(mkdir(part, 0700), 0);
    CHECK_HAS(restore(c.copy, path, false, &r), "new.db.restore");
    CHECK_INT(count_names(&c, "new.db*"), 1);
    // What is left of one that did not end is in nobody's way.
    CHECK_INT(rmdir(part), 0);
    CHECK_INT(system(strcat(strcpy(c.words, "echo half > "), part)), 0);
    CHECK_STR(restore(c.copy, path, false, &r), "");
    CHECK_STR(verify(&c, path), "");
    fixture_end(&c.fixture);
}

/* SQLite would read the log of a store that was taken away into this one. */
TEST(store_copy, puts_a_log_aside_that_has_lost_its_store)
{
    char command[3 * PATH_ROOM];
    stg_restored r;
    copies c;

    make(&c);
    CHECK_STR(backup(c.fixture.path, c.copy), "");
    fixture_put(&c.fixture, NULL, "in the log");
    snprintf(command, sizeof command, "cp %s-wal %s/wal", c.fixture.path,
             c.fixture.folder);
    CHECK_INT(system(command), 0);
    fixture_close(&c.fixture);
    snprintf(command, sizeof command, "rm %s && mv %s/wal %s-wal",
             c.fixture.path, c.fixture.folder, c.fixture.path);
    CHECK_INT(system(command), 0);
    CHECK_STR(restore(c.copy, c.fixture.path, false, &r), "");
    CHECK_STR(r.replaced, "");
    CHECK_INT(count_names(&c, "store.db.replaced-*-wal"), 1);
    CHECK_STR(ask(&c, c.fixture.path, "SELECT count(*) FROM messages"), "10");
    fixture_end(&c.fixture);
}

/* As a power cut leaves it: the store has two names, its log was moved, and
 * nothing has taken its place. */
TEST(store_copy, is_taken_back_where_its_restore_did_not_end)
{
    char command[4 * PATH_ROOM];
    copies c;

    make(&c);
    snprintf(command, sizeof command,
             "cd %s && cp store.db old && cp store.db-wal log",
             c.fixture.folder);
    CHECK_INT(system(command), 0);
    fixture_close(&c.fixture);
    snprintf(command, sizeof command,
             "cd %s && rm -f store.db store.db-wal store.db-shm"
             " && mv old store.db && ln store.db"
             " store.db.replaced-20260301T120000Z"
             " && mv log store.db.replaced-20260301T120000Z-wal",
             c.fixture.folder);
    CHECK_INT(system(command), 0);
    fixture_open(&c.fixture);
    CHECK_INT(count_names(&c, "*replaced*"), 0);
    CHECK_STR(fixture_ask(&c.fixture, "SELECT count(*) FROM messages"), "10");
    fixture_end(&c.fixture);
}

/* A tool has taken the WAL away, and a crash has ended its transaction: the journal
 * has what was there before. */
TEST(store_copy, is_taken_back_with_the_journal_that_mends_it)
{
    char command[4 * PATH_ROOM], *words = NULL;
    sqlite3 *db = NULL;
    copies c;

    make(&c);
    fixture_close(&c.fixture);
    CHECK_INT(sqlite3_open(c.fixture.path, &db), SQLITE_OK);
    // Pages are written to the file before the end, for there is room for one.
    sqlite3_exec(db,
                 "PRAGMA journal_mode = DELETE; PRAGMA cache_size = 1; BEGIN;"
                 " DELETE FROM failed_broadcast_logs; CREATE TABLE t (x);"
                 " INSERT INTO t SELECT zeroblob(100000)",
                 NULL, NULL, &words);
    CHECK_STR(words, NULL);
    snprintf(command, sizeof command,
             "cd %s && cp store.db old && cp store.db-journal journal",
             c.fixture.folder);
    CHECK_INT(system(command), 0);
    sqlite3_close(db);
    snprintf(command, sizeof command,
             "cd %s && mv old store.db && ln store.db"
             " store.db.replaced-20260301T120000Z"
             " && mv journal store.db.replaced-20260301T120000Z-journal",
             c.fixture.folder);
    CHECK_INT(system(command), 0);
    fixture_open(&c.fixture);
    CHECK_INT(count_names(&c, "*replaced*"), 0);
    CHECK_STR(
        fixture_ask(&c.fixture, "SELECT count(*) FROM failed_broadcast_logs"),
        "3");
    fixture_end(&c.fixture);
}

/* -- verify */

TEST(store_verify, counts_what_is_there)
{
    copies c;

    make(&c);
    CHECK_STR(verify(&c, c.fixture.path), "");
    CHECK_U64(c.v.messages, MESSAGES);
    CHECK_U64(c.v.lanes, 2);
    CHECK_U64(c.v.parked, 1);
    CHECK_U64(c.v.keys, 1);
    CHECK_U64(c.v.letters, 3);
    CHECK_U64(c.v.dead, 3);
    CHECK_U64(c.v.replayed + c.v.dropped + c.v.expired + c.v.cancelled, 0);
    ask(&c, c.fixture.path,
        "UPDATE failed_broadcast_logs SET state = CASE id WHEN 1"
        " THEN 'dropped' WHEN 2 THEN 'expired' ELSE 'cancelled' END");
    verify(&c, c.fixture.path);
    CHECK_U64(c.v.dead, 0);
    CHECK_U64(c.v.dropped, 1);
    CHECK_U64(c.v.expired, 1);
    CHECK_U64(c.v.cancelled, 1);
    ask(&c, c.fixture.path,
        "UPDATE failed_broadcast_logs SET state = 'replayed'");
    verify(&c, c.fixture.path);
    CHECK_U64(c.v.replayed, 3);
    c.fixture.is_made_up = true;
    fixture_end(&c.fixture);
}

/* Each change of a sound store, and what is said of it: that alone. */
TEST(store_verify, finds_each_rule_that_is_broken)
{
    static const struct {
        const char *change, *said;
    } rows[] = {
        {"UPDATE meta SET value = 10 WHERE name = 'next_position'",
         "1 messages have a position that was not given yet, or none\n"
         "lane 0: its cursor is beyond the log\n"},
        {"DELETE FROM meta WHERE name = 'incarnations'",
         "meta has no incarnations\n"},
        {"DELETE FROM meta WHERE name = 'letters_version'",
         "meta has no letters_version\n"},
        {"UPDATE messages_0 SET filled_before = 0 WHERE position = 7",
         "1 messages do not say what those before them fill\n"},
        {"UPDATE idempotency_keys SET position = 11",
         "1 idempotency keys name a position"},
        {"UPDATE idempotency_keys SET position = 0",
         "1 idempotency keys name a position"},
        {"UPDATE idempotency_keys SET key = x'00'",
         "1 idempotency keys name a position"},
        {"UPDATE lanes SET name = 'a'", "1 targets have the name of another"},
        {"UPDATE parked SET lane = 7",
         "1 parked rows are of no lane, or of one that was forgotten\n"
         "lane 0: 10 were routed, and delivered, dead, cancelled and parked "
         "are 9\n"},
        {"UPDATE parked SET partition = 7",
         "1 parked rows are of a partition that has no number\n"
         "lane 0: 10 were routed"},
        {"UPDATE failed_broadcast_logs SET lane = 7 WHERE id = 2",
         "1 dead letters are of no lane\n"
         "lane 0: its books have 6 dead, its letters are 5\n"},
        {"UPDATE failed_broadcast_logs SET state = 'cancelled' WHERE id = 2",
         "lane 0: its books have 6 dead, its letters are 5\n"
         "lane 0: its books have 0 cancelled, its letters are 1\n"},
        {"UPDATE failed_broadcast_logs SET state = 'dead?' WHERE id = 2",
         "1 dead letters have no such state\n"},
        {"UPDATE failed_broadcast_logs SET payload = NULL WHERE id = 2",
         "1 dead letters for one message have no payload\n"},
        {"UPDATE failed_broadcast_logs SET position = -1 WHERE id = 2",
         "1 bulk rows of evicted letters have another form\n"},
        {"UPDATE letter_totals SET letters = letters + 1",
         "1 totals of dead letters are not what their rows are\n"},
        {"UPDATE letter_totals SET dead = dead + 1",
         "1 totals of dead letters are not what their rows are\n"},
        {"UPDATE failed_broadcast_logs SET last_position = 3"
         " WHERE position = 4",
         "1 bulk rows end before they begin\n"},
        {"INSERT INTO epochs VALUES (11, '00c0ffee00c0ffee')",
         "1 epochs begin at a position that was not given yet, or none\n"},
        {"INSERT INTO epochs VALUES (0, '00c0ffee00c0ffee')",
         "1 epochs begin at a position that was not given yet, or none\n"},
        {"INSERT INTO epochs VALUES (10, '00C0FFEE00C0FFEE')",
         "1 epochs are not 16 hexadecimal digits\n"},
        {"INSERT INTO epochs VALUES (10, '00c0ffee')",
         "1 epochs are not 16 hexadecimal digits\n"},
        {"UPDATE epochs SET first = 2",
         "3 rows are of a message that has no epoch\n"},
        {"INSERT INTO epochs VALUES (2, '00c0ffee00c0ffee')",
         "1 dead letters have another id than their message\n"},
        {"DELETE FROM lanes WHERE name = 'a';"
         "UPDATE cursors SET lanes = replace(lanes, '\"routed\": 10',"
         " '\"routed\": 9')",
         "lane 0: has a cursor, and there is no such target\n"
         "lane 0: 9 were routed, and delivered, dead, cancelled and parked "
         "are 10\n"},
        {"UPDATE cursors SET lanes = '{'",
         "the cursors of partition 0, slice 0 cannot be read\n"},
        {"UPDATE cursors SET lanes = replace(lanes, '\"base\": 11',"
         " '\"base\": 12')",
         "lane 0: its cursor is beyond the log\n"},
        {"UPDATE cursors SET lanes = replace(lanes, '\"base\": 11',"
         " '\"base\": 5, \"settled\": [[8, 8], [7, 7]]')",
         "the cursors of partition 0, slice 0 cannot be read\n"},
        {"UPDATE cursors SET lanes = replace(lanes, '\"base\": 11',"
         " '\"base\": 5, \"settled\": [[6, 7], [8, 8]]')",
         "the cursors of partition 0, slice 0 cannot be read\n"},
        {"UPDATE cursors SET lanes = replace(lanes, '\"base\": 11',"
         " '\"base\": 5, \"settled\": [[4, 7]]')",
         "the cursors of partition 0, slice 0 cannot be read\n"},
        {"UPDATE cursors SET lanes = replace(lanes, '\"base\": 11',"
         " '\"base\": 5, \"settled\": [[7, 99]]')",
         "lane 0: its cursor is beyond the log\n"},
        {"UPDATE cursors SET lanes = replace(lanes, '\"base\": 11',"
         " '\"base\": 5, \"settled\": [[8, 7]]')",
         "the cursors of partition 0, slice 0 cannot be read\n"},
        {"UPDATE cursors SET lanes = replace(lanes, '\"base\": 11',"
         " '\"base\": 5, \"settled\": [7, 8]')",
         "the cursors of partition 0, slice 0 cannot be read\n"},
        {"UPDATE cursors SET lanes = replace(lanes, '\"routed\": 10',"
         " '\"routed\": 9')",
         "lane 0: 9 were routed, and delivered, dead, cancelled and parked "
         "are 10\n"},
    };
    char flawed[PATH_ROOM];
    copies c;

    make(&c);
    snprintf(flawed, sizeof flawed, "%s/flawed.db", c.fixture.folder);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CHECK_STR(backup(c.fixture.path, flawed), "");
        ask(&c, flawed, rows[i].change);
        verify(&c, flawed);
        if (strstr(c.words, rows[i].said) == NULL)
            CHECK_STR(c.words, rows[i].said);
    }
    fixture_end(&c.fixture);
}

TEST(store_verify, finds_damage_and_refuses_what_is_no_store)
{
    char damage[8192];
    off_t root;
    copies c;
    int fd;

    make(&c);
    CHECK_STR(backup(c.fixture.path, c.copy), "");
    root = atoi(ask(&c, c.copy,
                    "SELECT rootpage FROM sqlite_master"
                    " WHERE name = 'messages_0'"));
    memset(damage, 0xff, sizeof damage);
    fd = open(c.copy, O_WRONLY);
    CHECK_INT(pwrite(fd, damage, sizeof damage,
                     (root - 1) * atoi(ask(&c, c.copy, "PRAGMA page_size"))),
              sizeof damage);
    close(fd);
    CHECK_HAS(verify(&c, c.copy), "the file is damaged");
    CHECK(c.v.flaws > 0);
    CHECK_INT(truncate(c.copy, 0), 0);
    CHECK_HAS(verify(&c, c.copy), "no store");
    CHECK_HAS(verify(&c, c.fixture.folder), "cannot be read");
    fixture_end(&c.fixture);
}
