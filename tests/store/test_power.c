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
#include "tests/store/fixture.h"

enum { SECTOR = 512, MESSAGES = 300, KEPT = 20, BODY = 16000 };
enum { CUTS = 40, STEPS_MAX = 65536 };

/* The files that are watched. */
enum { STORE, LOG, FILES, OTHER = FILES };

typedef enum step_kind { WRITE, TRUNCATE, SYNC } step_kind;

typedef struct step {
    int file;
    step_kind what;
    size_t at, size; /* TRUNCATE: size is the new one */
    unsigned char *bytes;
} step;

/* SQLite hands nothing of ours to a VFS but this. */
static struct {
    sqlite3_vfs vfs, *real;
    uv_mutex_t lock;
    step steps[STEPS_MAX];
    size_t count;
} disk;

static void note(int file, step_kind what, size_t at, size_t size,
                 const void *bytes)
{
    step *s;

    if (file == OTHER)
        return;
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
}

static size_t noted(void)
{
    size_t count;

    uv_mutex_lock(&disk.lock);
    count = disk.count;
    uv_mutex_unlock(&disk.lock);
    return count;
}

static size_t count_writes(int file, size_t from)
{
    size_t writes = 0;

    uv_mutex_lock(&disk.lock);
    for (size_t i = from; i < disk.count; i++)
        writes += disk.steps[i].file == file && disk.steps[i].what == WRITE;
    uv_mutex_unlock(&disk.lock);
    return writes;
}

/* -- the VFS: the real one, and a note ------------------------------------- */

/* The real file stands behind it. */
typedef struct noted_file {
    sqlite3_file base;
    sqlite3_io_methods methods;
    int file;
} noted_file;

static sqlite3_file *real_of(sqlite3_file *f)
{
    return (sqlite3_file *)((noted_file *)f + 1);
}

static int file_of(sqlite3_file *f)
{
    return ((noted_file *)f)->file;
}

#define REAL(f) real_of(f)->pMethods

static int x_close(sqlite3_file *f)
{
    return REAL(f)->xClose(real_of(f));
}

static int x_read(sqlite3_file *f, void *to, int size, sqlite3_int64 at)
{
    return REAL(f)->xRead(real_of(f), to, size, at);
}

static int x_write(sqlite3_file *f, const void *from, int size,
                   sqlite3_int64 at)
{
    note(file_of(f), WRITE, (size_t)at, (size_t)size, from);
    return REAL(f)->xWrite(real_of(f), from, size, at);
}

static int x_truncate(sqlite3_file *f, sqlite3_int64 size)
{
    note(file_of(f), TRUNCATE, 0, (size_t)size, NULL);
    return REAL(f)->xTruncate(real_of(f), size);
}

static int x_sync(sqlite3_file *f, int flags)
{
    int rc = REAL(f)->xSync(real_of(f), flags);

    note(file_of(f), SYNC, 0, 0, NULL);
    return rc;
}

static int x_size(sqlite3_file *f, sqlite3_int64 *size)
{
    return REAL(f)->xFileSize(real_of(f), size);
}

static int x_lock(sqlite3_file *f, int how)
{
    return REAL(f)->xLock(real_of(f), how);
}

static int x_unlock(sqlite3_file *f, int how)
{
    return REAL(f)->xUnlock(real_of(f), how);
}

static int x_check(sqlite3_file *f, int *is_locked)
{
    return REAL(f)->xCheckReservedLock(real_of(f), is_locked);
}

static int x_control(sqlite3_file *f, int op, void *arg)
{
    return REAL(f)->xFileControl(real_of(f), op, arg);
}

static int x_sector(sqlite3_file *f)
{
    return REAL(f)->xSectorSize(real_of(f));
}

static int x_traits(sqlite3_file *f)
{
    return REAL(f)->xDeviceCharacteristics(real_of(f));
}

static int x_map(sqlite3_file *f, int page, int size, int extends,
                 void volatile **to)
{
    return REAL(f)->xShmMap(real_of(f), page, size, extends, to);
}

static int x_shm_lock(sqlite3_file *f, int offset, int n, int flags)
{
    return REAL(f)->xShmLock(real_of(f), offset, n, flags);
}

static void x_barrier(sqlite3_file *f)
{
    REAL(f)->xShmBarrier(real_of(f));
}

static int x_unmap(sqlite3_file *f, int removes)
{
    return REAL(f)->xShmUnmap(real_of(f), removes);
}

static const sqlite3_io_methods methods = {
    2,          x_close,   x_read,  x_write,   x_truncate, x_sync,   x_size,
    x_lock,     x_unlock,  x_check, x_control, x_sector,   x_traits, x_map,
    x_shm_lock, x_barrier, x_unmap, NULL,      NULL};

static int x_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *f,
                  int flags, int *out)
{
    noted_file *one = (noted_file *)f;
    int rc;

    (void)vfs;
    memset(one, 0, sizeof *one);
    one->file = (flags & SQLITE_OPEN_MAIN_DB) != 0 ? STORE
                : (flags & SQLITE_OPEN_WAL) != 0   ? LOG
                                                   : OTHER;
    rc = disk.real->xOpen(disk.real, name, real_of(f), flags, out);
    // What has no methods is not closed.
    if (real_of(f)->pMethods != NULL) {
        one->methods = methods;
        one->base.pMethods = &one->methods;
    }
    return rc;
}

static void watch(void)
{
    disk.real = sqlite3_vfs_find(NULL);
    CHECK(disk.real != NULL);
    CHECK_INT(uv_mutex_init(&disk.lock), 0);
    disk.count = 0;
    disk.vfs = *disk.real;
    disk.vfs.zName = "noted";
    disk.vfs.pNext = NULL;
    disk.vfs.szOsFile += (int)sizeof(noted_file);
    disk.vfs.xOpen = x_open;
    CHECK_INT(sqlite3_vfs_register(&disk.vfs, 1), SQLITE_OK);
}

static void unwatch(void)
{
    CHECK_INT(sqlite3_vfs_unregister(&disk.vfs), SQLITE_OK);
    CHECK_INT(sqlite3_vfs_register(disk.real, 1), SQLITE_OK);
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
    if (s->what == WRITE)
        put(m, s->at, s->bytes, s->size);
    else if (s->what == TRUNCATE && s->size < m->size) {
        memset(m->bytes + s->size, 0, m->size - s->size);
        m->size = s->size;
    }
}

/* Some of its sectors, or it did not come at all. */
static void apply_torn(image *m, const step *s, stg_rng *rng)
{
    if (s->what != WRITE) {
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
static void write_file(const char *path, int file, size_t end, stg_rng *rng)
{
    image m = {NULL, 0, 0};
    size_t synced = 0;
    FILE *to = fopen(path, "wb");

    for (size_t i = 0; i < end; i++)
        if (disk.steps[i].file == file && disk.steps[i].what == SYNC)
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
 * and what was not settled has not been trimmed. */
static void check_cut(uint64_t seed, size_t end, const size_t *said)
{
    stg_rng rng = stg_rng_seed(seed);
    uint64_t durable = 0, first, last;
    char log[400];
    fixture s;

    while (durable < MESSAGES && said[durable] <= end)
        durable++;
    fixture_make(&s);
    s.options.quota = 16 << 20;
    write_file(s.path, STORE, end, &rng);
    snprintf(log, sizeof log, "%s-wal", s.path);
    write_file(log, LOG, end, &rng);
    fixture_open(&s);
    last = fixture_next(&s) - 1;
    first = stg_store_first(s.store);
    CHECK_FROM(seed, last >= durable && last <= durable + 1);
    CHECK_FROM(seed, first <= (durable <= KEPT ? 1 : durable + 1 - KEPT));
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
    size_t begun;
    fixture s;

    watch();
    fixture_make(&s);
    s.options.quota = 16 << 20;
    fixture_open(&s);
    begun = noted();
    for (uint64_t i = 1; i <= MESSAGES; i++) {
        publish(&s, i);
        said[i - 1] = noted();
        if (i > KEPT)
            stg_store_commit(s.store, i - KEPT + 1);
    }
    // The log went into the file in between, and messages were trimmed.
    CHECK(count_writes(STORE, begun) > 100);
    CHECK(stg_store_first(s.store) > 1);
    fixture_end(&s);
    unwatch();
    for (uint64_t seed = 0; seed < seeds(CUTS); seed++)
        check_cut(seed, begun + stg_rng_upto(&rng, disk.count - begun), said);
    for (size_t i = 0; i < disk.count; i++)
        free(disk.steps[i].bytes);
    uv_mutex_destroy(&disk.lock);
}
