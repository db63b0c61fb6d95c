/* copy.h - a store as another file: the way there, and the way back.
 *
 * For a command of its own: these block, and take no part in a hub that has the
 * store open. */
#ifndef STAGGER_STORE_COPY_H
#define STAGGER_STORE_COPY_H

#include "store/sql.h"

/* Copies the store at path to the file `to`, as it is at one moment, also while
 * a hub writes to it: all that was committed until then is there. `to` is
 * complete and durable when it appears under its name, with mode 0600; what was
 * there before is replaced. Returns STG_IO or STG_INVALID with words. */
stg_status stg_copy_backup(const char *path, const char *to, stg_error *err);

typedef struct stg_restored {
    uint64_t epoch;     /* of messages from now on */
    uint64_t next;      /* their first position */
    char replaced[512]; /* where the store that was there is now; "": nowhere */
} stg_restored;

/* Makes the backup `from` the store at path. What is appended from then on has
 * another epoch, so that no id names two messages; what the backup has keeps its
 * ids, cursors, rows and idempotency keys. Refuses a backup that is not sound, a
 * store that a hub has, and, unless it is forced, one that is there: that is
 * kept under another name. At every moment, also of a power cut, the path has the
 * one store or the other, unless its file system has no hard links. Returns
 * STG_IO or STG_INVALID with words. */
stg_status stg_copy_restore(const char *from, const char *path, bool is_forced,
                            stg_restored *done, stg_error *err);

#endif
