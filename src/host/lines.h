/* lines.h - a file to which whole lines are appended: a copy of dead letters or of
 * receipts, the audit log.
 *
 * Others may rename, remove, replace or truncate the file at any time, as logrotate
 * does, and tell nobody. So the path is opened anew for each batch, and a batch is
 * in the file only if path and descriptor still lead to one file (device, inode)
 * when all of it is written; else it is written again, so that some lines may be in
 * two files. Nothing here ever renames or removes the file, and none is shortened
 * but by the part of a line of ours that a crash or a full disk has left at its end.
 *
 * All calls block. One thread at a time. */
#ifndef STAGGER_HOST_LINES_H
#define STAGGER_HOST_LINES_H

#include <stdbool.h>
#include <sys/stat.h>

#include "base/span.h"

/* Zeroed but for the first four: closed. */
typedef struct stg_lines {
    const char *path; /* borrowed, for as long as this is used */
    /* Static: how each line of ours begins, '#' standing for digits. NULL: an
     * unfinished line at the end of the file is never cut, only ended. */
    const char *begins;
    /* Tells whether a file is another one of ours, to which no line may be added.
     * Asked before the file is opened: closing a descriptor of SQLite's file would
     * end its locks. NULL: no file is. */
    bool (*is_taken)(void *ctx, const struct stat *file);
    void *taken_ctx;

    bool is_open, is_regular;
    bool
        is_short; /* somebody has truncated the file behind a line of this batch */
    int fd;
    dev_t device; /* identity of the file that was opened last */
    ino_t inode;
    off_t end; /* offset behind the last line of this batch */
} stg_lines;

/* Opens the file, or makes it with mode 0600, to see that lines can be added; a
 * pipe that nobody reads yet is fine. Where it ends in an unfinished line of ours
 * that is cut off, and another one is ended. False: errno says why. */
bool stg_lines_check(stg_lines *l);

/* Appends what `write` writes by stg_lines_write(): from its first line on again
 * where the file was replaced meanwhile. True: all of it is in the file that the
 * path names, and synced if is_synced. False: errno says why, for
 * stg_lines_error(); some of it may be there. */
bool stg_lines_append(stg_lines *l, bool is_synced, void (*write)(void *ctx),
                      void *ctx);

/* Appends whole lines. False, and errno: none of them is in the file. (Of a pipe or
 * a terminal a part may be there.) */
bool stg_lines_write(stg_lines *l, stg_span lines);

/* Closes what is open between two batches: a pipe or a terminal. */
void stg_lines_close(stg_lines *l);

/* Returns words for the errno of a failed call. Static, or strerror()'s. */
const char *stg_lines_error(int error);

#endif
