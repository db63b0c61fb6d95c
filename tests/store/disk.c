#include "tests/store/disk.h"

#include <string.h>

#include <sqlite3.h>

#include "tests/harness.h"

/* SQLite hands nothing of ours to a VFS but this. */
static struct {
    sqlite3_vfs vfs, *real;
    disk_fn *before;
} disk;

/* The real file stands behind it. */
typedef struct watched_file {
    sqlite3_file base;
    sqlite3_io_methods methods;
    disk_file file;
} watched_file;

static sqlite3_file *real_of(sqlite3_file *f)
{
    return (sqlite3_file *)((watched_file *)f + 1);
}

static int ask(sqlite3_file *f, disk_deed deed, sqlite3_int64 at,
               sqlite3_int64 size, const void *bytes)
{
    disk_file file = ((watched_file *)f)->file;

    return file == DISK_OTHER
               ? SQLITE_OK
               : disk.before(file, deed, (size_t)at, (size_t)size, bytes);
}

#define REAL(f) real_of(f)->pMethods

static int x_close(sqlite3_file *f)
{
    return REAL(f)->xClose(real_of(f));
}

static int x_read(sqlite3_file *f, void *to, int size, sqlite3_int64 at)
{
    int rc = ask(f, DISK_READ, at, size, NULL);

    return rc != SQLITE_OK ? rc : REAL(f)->xRead(real_of(f), to, size, at);
}

static int x_write(sqlite3_file *f, const void *from, int size,
                   sqlite3_int64 at)
{
    int rc = ask(f, DISK_WRITE, at, size, from);

    return rc != SQLITE_OK ? rc : REAL(f)->xWrite(real_of(f), from, size, at);
}

static int x_truncate(sqlite3_file *f, sqlite3_int64 size)
{
    int rc = ask(f, DISK_TRUNCATE, 0, size, NULL);

    return rc != SQLITE_OK ? rc : REAL(f)->xTruncate(real_of(f), size);
}

static int x_sync(sqlite3_file *f, int flags)
{
    int rc = ask(f, DISK_SYNC, 0, 0, NULL);

    return rc != SQLITE_OK ? rc : REAL(f)->xSync(real_of(f), flags);
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
    watched_file *one = (watched_file *)f;
    int rc;

    (void)vfs;
    memset(one, 0, sizeof *one);
    one->file = (flags & SQLITE_OPEN_MAIN_DB) != 0 ? DISK_STORE
                : (flags & SQLITE_OPEN_WAL) != 0   ? DISK_LOG
                                                   : DISK_OTHER;
    rc = disk.real->xOpen(disk.real, name, real_of(f), flags, out);
    // What has no methods is not closed.
    if (real_of(f)->pMethods != NULL) {
        one->methods = methods;
        one->base.pMethods = &one->methods;
    }
    return rc;
}

void disk_watch(disk_fn *before)
{
    disk.real = sqlite3_vfs_find(NULL);
    CHECK(disk.real != NULL);
    disk.before = before;
    disk.vfs = *disk.real;
    disk.vfs.zName = "watched";
    disk.vfs.pNext = NULL;
    disk.vfs.szOsFile += (int)sizeof(watched_file);
    disk.vfs.xOpen = x_open;
    CHECK_INT(sqlite3_vfs_register(&disk.vfs, 1), SQLITE_OK);
}

void disk_unwatch(void)
{
    CHECK_INT(sqlite3_vfs_unregister(&disk.vfs), SQLITE_OK);
    CHECK_INT(sqlite3_vfs_register(disk.real, 1), SQLITE_OK);
}
