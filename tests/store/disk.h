/* disk.h - a VFS of SQLite: the real one, and somebody who is asked before each
 * read, write, truncation and sync of the store's file and its write-ahead log.
 */
#ifndef TESTS_STORE_DISK_H
#define TESTS_STORE_DISK_H

#include <stddef.h>

typedef enum disk_file { DISK_STORE, DISK_LOG, DISK_OTHER } disk_file;

typedef enum disk_deed {
    DISK_READ,
    DISK_WRITE,
    DISK_TRUNCATE, /* size: the new one */
    DISK_SYNC
} disk_deed;

/* On any thread. Returns SQLITE_OK, or the error that it is to end with, and
 * then nothing is done. bytes: of a write. */
typedef int disk_fn(disk_file file, disk_deed deed, size_t at, size_t size,
                    const void *bytes);

/* From now on, for the stores that are opened; of DISK_OTHER nothing is asked. */
void disk_watch(disk_fn *before);
/* When those are closed. */
void disk_unwatch(void);

#endif
