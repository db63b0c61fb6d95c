/* A disk whose n-th write, sync, truncation or read fails, once or from then on:
 * the store answers or breaks, says so once, and what it said to be durable is
 * there when it is opened again. And files of it that somebody moves. */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sqlite3.h>

#include <stagger/rng.h>

#include "tests/harness.h"
#include "tests/store/disk.h"
#include "tests/store/fixture.h"

enum { MESSAGES = 40, KEPT = 10, BODY = 16000, PARKS = 3, RUNS = 20 };

/* Which call to the disk fails, and with what. */
static struct {
    disk_deed deed;
    int error;
    long from, until; // of those calls, counted from 0
    atomic_long count, failed;
} fault;

static int fail(disk_file file, disk_deed deed, size_t at, size_t size,
                const void *bytes)
{
    long n;

    (void)file;
    (void)at;
    (void)size;
    (void)bytes;
    if (deed != fault.deed)
        return SQLITE_OK;
    n = atomic_fetch_add(&fault.count, 1);
    if (n < fault.from || n >= fault.until)
        return SQLITE_OK;
    atomic_fetch_add(&fault.failed, 1);
    return fault.error;
}

/* What the store has said of it. */
typedef struct account {
    uint64_t appended, asked; // positions up to these
    uint64_t parked, asked_to_park;
    uint64_t read_to;
    uint64_t epochs[MESSAGES + 4]; // by position, of those that are appended
    bool is_answered;
    stg_stored how;
} account;

static void on_stored(void *ctx, stg_stored how, const uint32_t *fenced,
                      size_t count)
{
    account *a = ctx;

    (void)fenced;
    (void)count;
    a->is_answered = true;
    a->how = how;
}

/* Each message begins with its position. */
static void on_read(void *ctx, const stg_record *records, size_t count,
                    uint64_t next)
{
    account *a = ctx;

    for (size_t i = 0; i < count; i++) {
        stg_parcel p;

        CHECK(stg_parcel_unpack(&p, records[i].bytes, records[i].size));
        CHECK_U64(p.body.size, BODY);
        CHECK_U64(strtoull(p.body.at, NULL, 10), records[i].position);
        CHECK_U64(records[i].position, a->read_to + i);
    }
    CHECK_U64(next, a->read_to + count);
    a->read_to = next;
    a->is_answered = true;
}

static void read_some(fixture *s, account *a)
{
    a->is_answered = false;
    stg_store_read(s->store, a->read_to, 1 << 20, false, on_read, a);
    FIXTURE_UNTIL(s, a->is_answered || s->times_broken > 0);
}

static void append(fixture *s, account *a)
{
    static char body[BODY + 1];
    appending one;
    int length = snprintf(body, sizeof body, "%08u", (unsigned)a->asked + 1);

    memset(body + length, 'x', BODY - (size_t)length);
    one = (appending){.messages = {fixture_text(NULL, body)}};
    a->asked++;
    fixture_start(s, &one, 1);
    FIXTURE_UNTIL(s, one.is_done);
    if (one.how == STG_APPENDED) {
        a->appended = one.answers[0].position;
        CHECK(a->appended <= a->asked);
        a->epochs[a->appended] = stg_store_epoch(s->store);
    } else if (one.how == STG_APPEND_FULL) {
        a->asked--; // nothing of it is there
    } else {
        CHECK_INT(one.how, STG_APPEND_UNKNOWN);
    }
}

static void park(fixture *s, account *a, uint32_t lane, uint64_t position)
{
    stg_failure failure = fixture_failure(503, STG_WHY_BACKOFF);
    stg_change c = {.kind = STG_CHANGE_PARK,
                    .lane = lane,
                    .position = position,
                    .message = fixture_message(s, position, "row"),
                    .failure = &failure,
                    .progress = {.attempts = 1},
                    .attempts_before = 0,
                    .began_at = 1600000000 * STG_S,
                    .wait = 60 * STG_S,
                    .due_at = 1700000000 * STG_S};
    stg_group g = {.changes = &c, .change_count = 1};

    a->asked_to_park++;
    a->is_answered = false;
    stg_store_group(s->store, &g, on_stored, a);
    FIXTURE_UNTIL(s, a->is_answered || s->times_broken > 0);
    if (a->is_answered && a->how == STG_STORED)
        a->parked++;
    else if (a->is_answered && a->how == STG_STORED_FULL)
        a->asked_to_park--;
}

/* A hub's life, until the store breaks or it ends. */
static void live(fixture *s, account *a, uint32_t lane)
{
    for (int i = 1; i <= MESSAGES && s->times_broken == 0; i++) {
        append(s, a);
        if (i % PARKS == 0 && s->times_broken == 0)
            park(s, a, lane, a->appended);
        if (s->times_broken == 0 && a->appended > KEPT) {
            a->read_to = a->appended - KEPT + 1;
            read_some(s, a);
            if (s->times_broken == 0)
                stg_store_commit(s->store, a->appended - KEPT + 1);
        }
    }
}

/* By a disk that is well again. */
static void check_kept(fixture *s, account *a, uint64_t seed)
{
    uint64_t last, rows, settled = a->appended <= KEPT ? 0 : a->appended - KEPT;

    s->times_broken = 0;
    fixture_open(s);
    last = fixture_next(s) - 1;
    CHECK_FROM(seed, last >= a->appended && last <= a->asked);
    for (uint64_t i = 1; i <= a->appended; i++)
        CHECK_FROM(seed, stg_store_epoch_at(s->store, i) == a->epochs[i]);
    a->read_to = stg_store_first(s->store);
    CHECK_FROM(seed, a->read_to <= settled + 1);
    while (a->read_to <= last)
        read_some(s, a);
    a->asked = last;
    append(s, a);
    CHECK_U64(a->appended, last + 1);
    fixture_close(s);
    rows = strtoull(fixture_ask(s, "SELECT count(*) FROM parked"), NULL, 10);
    CHECK_FROM(seed, rows >= a->parked && rows <= a->asked_to_park);
    CHECK_STR(fixture_ask(s, "PRAGMA integrity_check"), "ok");
}

/* Returns how often the fault came; until is 0: how many such calls there are. */
static long run(disk_deed deed, int error, long from, long until, uint64_t seed)
{
    stg_error err = {.text = ""};
    account a = {.appended = 0};
    fixture s;

    fixture_make(&s);
    s.options.quota = 16 << 20;
    // The file and its lane are there: what is tried is a life, from its start.
    fixture_open(&s);
    (void)fixture_lane(&s, "a");
    append(&s, &a);
    fixture_close(&s);
    fault.deed = deed;
    fault.error = error;
    fault.from = from;
    fault.until = until;
    atomic_store(&fault.count, 0);
    atomic_store(&fault.failed, 0);
    disk_watch(fail);
    if (stg_store_open(&s.store, &s.loop, &s.options, &err) == STG_OK) {
        live(&s, &a, fixture_lane(&s, "a"));
        CHECK_FROM(seed, s.times_broken <= 1);
        CHECK_FROM(seed, s.times_broken == 0 || s.words[0] != '\0');
        fixture_close(&s);
    } else {
        CHECK_FROM(seed, err.text[0] != '\0');
        s.store = NULL;
    }
    disk_unwatch();
    check_kept(&s, &a, seed);
    fixture_end(&s);
    return until == 0 ? fault.count : fault.failed;
}

static void try_all(disk_deed deed, int error, bool may_last)
{
    long calls = run(deed, error, 0, 0, 0), failed = 0;

    for (uint64_t seed = 1; seed <= seeds(RUNS); seed++) {
        stg_rng rng = stg_rng_seed(seed);
        long from = (long)stg_rng_upto(&rng, (uint64_t)calls - 1);
        long until = from + 1;

        if (may_last && stg_rng_upto(&rng, 1) == 0)
            until = INT32_MAX;
        failed += run(deed, error, from, until, seed) > 0;
    }
    CHECK(failed >= (long)seeds(RUNS) / 2);
}

TEST(store_failing, keeps_what_it_said_whichever_write_fails)
{
    try_all(DISK_WRITE, SQLITE_IOERR_WRITE, true);
}

TEST(store_failing, keeps_what_it_said_whichever_write_has_no_room)
{
    try_all(DISK_WRITE, SQLITE_FULL, false);
}

TEST(store_failing, keeps_what_it_said_whichever_sync_fails)
{
    try_all(DISK_SYNC, SQLITE_IOERR_FSYNC, true);
}

TEST(store_failing, keeps_what_it_said_whichever_truncation_fails)
{
    try_all(DISK_TRUNCATE, SQLITE_IOERR_TRUNCATE, true);
}

TEST(store_failing, keeps_what_it_said_whichever_read_fails)
{
    try_all(DISK_READ, SQLITE_IOERR_READ, true);
}

/* -- files that are not in their place ------------------------------------- */

typedef enum deed { REMOVES, RENAMES, REPLACES, LINKS, DEEDS } deed;

static void name_file(const fixture *s, const char *end, char name[400])
{
    snprintf(name, 400, "%s%s", s->path, end);
}

/* Does what people do with a file of a store that a hub has. */
static void take_away(const fixture *s, const char *end, deed how)
{
    char name[400], other[400];
    int fd;

    name_file(s, end, name);
    name_file(s, ".away", other);
    CHECK_INT(how == REMOVES ? unlink(name) : rename(name, other), 0);
    if (how == REPLACES) {
        fd = open(name, O_WRONLY | O_CREAT, 0600);
        CHECK_INT(write(fd, "theirs", 6), 6);
        CHECK_INT(close(fd), 0);
    } else if (how == LINKS) {
        CHECK_INT(symlink("nowhere", name), 0);
    }
}

/* A file with a message in it, and its WAL. */
static void make_store(fixture *s)
{
    fixture_make(s);
    fixture_open(s);
    fixture_put(s, NULL, "before");
    s->was_open = false;
}

static void check_broken(fixture *s, const char *end, deed how)
{
    char name[400];

    name_file(s, end, name);
    FIXTURE_UNTIL(s, s->times_broken > 0);
    CHECK(strncmp(s->words, name, strlen(name)) == 0);
    CHECK(strstr(s->words, how == REPLACES ? "was replaced" : "is gone") !=
          NULL);
    fixture_close(s);
    CHECK_INT(s->times_broken, 1);
}

static const char *const ends[] = {"", "-wal", "-shm"};

static void each_file(void (*one)(const char *end, deed how))
{
    for (int i = 0; i < 3; i++)
        for (deed how = REMOVES; how < DEEDS; how++)
            one(ends[i], how);
}

static void append_without(const char *end, deed how)
{
    appending one = {.messages = {fixture_text(NULL, "after")}};
    fixture s;

    make_store(&s);
    take_away(&s, end, how);
    fixture_start(&s, &one, 1);
    FIXTURE_UNTIL(&s, one.is_done);
    CHECK_INT(one.how, STG_APPEND_UNKNOWN);
    check_broken(&s, end, how);
    fixture_end(&s);
}

TEST(store_failing, accepts_nothing_once_a_file_is_not_in_its_place)
{
    each_file(append_without);
}

static void end_without(const char *end, deed how)
{
    fixture s;

    make_store(&s);
    take_away(&s, end, how);
    fixture_close(&s);
    CHECK_INT(s.times_broken, 1);
    fixture_end(&s);
}

TEST(store_failing, says_at_its_end_that_a_file_is_not_in_its_place)
{
    each_file(end_without);
}

TEST(store_failing, looks_after_its_files_while_nothing_is_stored)
{
    fixture s;

    make_store(&s);
    take_away(&s, "", RENAMES);
    check_broken(&s, "", RENAMES);
    fixture_end(&s);
}

/* SQLite finds a file of somebody else under the name of the WAL when it closes; and
 * where only the WAL was taken away, all that was stored is in the file. */
TEST(store_failing, keeps_what_it_had_and_leaves_what_is_not_its_own)
{
    char name[400], text[8] = "";
    fixture s;
    int fd;

    make_store(&s);
    take_away(&s, "-wal", REPLACES);
    fixture_close(&s);
    name_file(&s, "-wal", name);
    fd = open(name, O_RDONLY);
    CHECK_INT(read(fd, text, 7), 6);
    CHECK_STR(text, "theirs");
    CHECK_INT(close(fd), 0);
    CHECK_INT(unlink(name), 0);
    s.times_broken = 0;
    fixture_open(&s);
    CHECK_STR(fixture_read(&s, 1, 100), "1:before, next 2");
    fixture_end(&s);
}
