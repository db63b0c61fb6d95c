/* Power cuts: what was said to be durable is there afterwards.
 *
 * A VFS of SQLite notes each write and each sync of the store's file and of its
 * write-ahead log. A cut at any moment leaves what had been synced, and of what
 * came later any sectors, in any order: such files are made, and opened. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sqlite3.h>

#include <stagger/rng.h>

#include "tests/harness.h"
#include "tests/store/disk.h"
#include "tests/store/fixture.h"

enum { SECTOR = 512, MESSAGES = 300, KEPT = 20, BODY = 16000 };
enum { CUTS = 40, STEPS_MAX = 65536 };

typedef struct step {
    disk_file file;
    disk_deed what;
    size_t at, size; /* DISK_TRUNCATE: size is the new one */
    unsigned char *bytes;
} step;

/* What the VFS was told to do. */
static struct {
    uv_mutex_t lock;
    step steps[STEPS_MAX];
    size_t count;
} disk;

static int note(disk_file file, disk_deed what, size_t at, size_t size,
                const void *bytes)
{
    step *s;

    if (what == DISK_READ)
        return SQLITE_OK;
    uv_mutex_lock(&disk.lock);
    CHECK(disk.count < STEPS_MAX);
    s = &disk.steps[disk.count++];
    *s = (step){.file = file, .what = what, .at = at, .size = size};
    if (bytes != NULL) {
        s->bytes = malloc(size);
        CHECK(s->bytes != NULL);
        memcpy(s->bytes, bytes, size);
    }
    uv_mutex_unlock(&disk.lock);
    return SQLITE_OK;
}

static size_t noted(void)
{
    size_t count;

    uv_mutex_lock(&disk.lock);
    count = disk.count;
    uv_mutex_unlock(&disk.lock);
    return count;
}

static size_t count_writes(disk_file file, size_t from)
{
    size_t writes = 0;

    uv_mutex_lock(&disk.lock);
    for (size_t i = from; i < disk.count; i++)
        writes +=
            disk.steps[i].file == file && disk.steps[i].what == DISK_WRITE;
    uv_mutex_unlock(&disk.lock);
    return writes;
}

/* -- what a cut leaves ----------------------------------------------------- */

typedef struct image {
    unsigned char *bytes;
    size_t size, room;
} image;

static void put(image *m, size_t at, const void *bytes, size_t size)
{
    if (size == 0)
        return;
    if (m->bytes == NULL || at + size > m->room) {
        size_t room = 2 * (at + size);

        m->bytes = realloc(m->bytes, room);
        if (m->bytes == NULL)
            abort();
        memset(m->bytes + m->room, 0, room - m->room);
        m->room = room;
    }
    memcpy(m->bytes + at, bytes, size);
    if (at + size > m->size)
        m->size = at + size;
}

static void apply(image *m, const step *s)
{
    if (s->what == DISK_WRITE)
        put(m, s->at, s->bytes, s->size);
    else if (s->what == DISK_TRUNCATE && s->size < m->size) {
        memset(m->bytes + s->size, 0, m->size - s->size);
        m->size = s->size;
    }
}

/* Some of its sectors, or it did not come at all. */
static void apply_torn(image *m, const step *s, stg_rng *rng)
{
    if (s->what != DISK_WRITE) {
        if (stg_rng_upto(rng, 1) == 0)
            apply(m, s);
        return;
    }
    for (size_t at = 0; at < s->size; at += SECTOR)
        if (stg_rng_upto(rng, 1) == 0)
            put(m, s->at + at, s->bytes + at,
                s->size - at < SECTOR ? s->size - at : SECTOR);
}

/* The file as a cut before the step `end` leaves it. */
static void write_file(const char *path, disk_file file, size_t end,
                       stg_rng *rng)
{
    image m = {NULL, 0, 0};
    size_t synced = 0;
    FILE *to = fopen(path, "wb");

    for (size_t i = 0; i < end; i++)
        if (disk.steps[i].file == file && disk.steps[i].what == DISK_SYNC)
            synced = i;
    for (size_t i = 0; i < end; i++) {
        if (disk.steps[i].file != file)
            continue;
        if (i < synced)
            apply(&m, &disk.steps[i]);
        else
            apply_torn(&m, &disk.steps[i], rng);
    }
    CHECK(to != NULL && fwrite(m.bytes, 1, m.size, to) == m.size);
    CHECK_INT(fclose(to), 0);
    free(m.bytes);
}

/* -- messages -------------------------------------------------------------- */

/* It begins with its position. */
static void publish(fixture *s, uint64_t position)
{
    char body[BODY + 1];
    int length = snprintf(body, sizeof body, "%08u", (unsigned)position);

    memset(body + length, 'x', BODY - (size_t)length);
    body[BODY] = '\0';
    CHECK_U64(fixture_put(s, NULL, body), position);
}

static uint64_t ask(fixture *s, const char *sql)
{
    return strtoull(fixture_ask(s, sql), NULL, 10);
}

/* Opens what a cut has left. At least what was said by then is there, and whole,
 * under its id, and what was not settled has not been trimmed. */
static void check_cut(uint64_t seed, size_t end, const size_t *said,
                      uint64_t epoch)
{
    stg_rng rng = stg_rng_seed(seed);
    uint64_t durable = 0, first, last;
    char log[400];
    fixture s;

    while (durable < MESSAGES && said[durable] <= end)
        durable++;
    fixture_make(&s);
    s.options.quota = 16 << 20;
    write_file(s.path, DISK_STORE, end, &rng);
    snprintf(log, sizeof log, "%s-wal", s.path);
    write_file(log, DISK_LOG, end, &rng);
    fixture_open(&s);
    last = fixture_next(&s) - 1;
    first = stg_store_first(s.store);
    CHECK_FROM(seed, last >= durable && last <= durable + 1);
    CHECK_FROM(seed, first <= (durable <= KEPT ? 1 : durable + 1 - KEPT));
    CHECK_FROM(seed, last == 0 || stg_store_epoch_at(s.store, 1) == epoch);
    CHECK_FROM(seed, last == 0 || stg_store_epoch_at(s.store, last) == epoch);
    fixture_close(&s);
    CHECK_FROM(seed,
               ask(&s, "SELECT count(*) FROM messages") == last + 1 - first);
    CHECK_FROM(seed, ask(&s,
                         "SELECT count(*) FROM messages WHERE"
                         " length(body) <> 16000 OR"
                         " CAST(substr(body, 1, 8) AS INTEGER)"
                         " <> position") == 0);
    CHECK_STR(fixture_ask(&s, "PRAGMA integrity_check"), "ok");
    fixture_end(&s);
}

TEST(store_power, keeps_what_was_said_to_be_durable)
{
    static size_t said[MESSAGES]; // steps that came before
    stg_rng rng = stg_rng_seed(1);
    uint64_t epoch;
    size_t begun;
    fixture s;

    CHECK_INT(uv_mutex_init(&disk.lock), 0);
    disk.count = 0;
    disk_watch(note);
    fixture_make(&s);
    s.options.quota = 16 << 20;
    fixture_open(&s);
    begun = noted();
    epoch = stg_store_epoch(s.store);
    for (uint64_t i = 1; i <= MESSAGES; i++) {
        publish(&s, i);
        said[i - 1] = noted();
        if (i > KEPT)
            stg_store_commit(s.store, i - KEPT + 1);
    }
    // The log went into the file in between, and messages were trimmed.
    CHECK(count_writes(DISK_STORE, begun) > 100);
    CHECK(stg_store_first(s.store) > 1);
    fixture_end(&s);
    disk_unwatch();
    for (uint64_t seed = 0; seed < seeds(CUTS); seed++)
        check_cut(seed, begun + stg_rng_upto(&rng, disk.count - begun), said,
                  epoch);
    for (size_t i = 0; i < disk.count; i++)
        free(disk.steps[i].bytes);
    uv_mutex_destroy(&disk.lock);
}
