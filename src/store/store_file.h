/* store_file.h - a store in a file: its lock, opening it, a copy of it (the way
 * there, and the way back), and whether what is in it fits together.
 *
 * One hub a store: the lock file PATH-lock, and the file itself. The lock ends
 * with the process, whatever became of it; its file stays, and holds the number
 * of the process that had it last. What is there is looked at before it is
 * touched: what is missing is made, what is of another version is refused.
 * Copies and checks are for commands of their own: they block, and take no part
 * in a hub that has the store open. */
#ifndef STAGGER_STORE_STORE_FILE_H
#define STAGGER_STORE_STORE_FILE_H

#include <stdbool.h>
#include <sys/types.h>

#include <stagger/status.h>

#include "store/ids.h"
#include "store/sql.h"
#include "store/store.h"

/* -- the lock -------------------------------------------------------------- */

/* Two locks of the process: one on PATH-lock, and one on the store's own file,
 * which holds where PATH-lock was removed or replaced, or where the file has
 * another path for another process. */
typedef struct stg_store_lock {
    int beside; /* descriptor of PATH-lock; -1: none */
    int file;   /* descriptor of the store, never read or written; -1: none */
} stg_store_lock;

#define STG_STORE_LOCK_NONE ((stg_store_lock){-1, -1})

/* Takes the store at path for this process, and makes an empty file of mode
 * 0600 if there is none. Takes back what a restore began that did not end
 * (copy.c). *lock: to be given to stg_store_lock_end(). *is_new: there was none.
 * Returns, with words, STG_INVALID where path, its rights or its
 * lock file are wrong, and STG_IO where another start may succeed; then it
 * leaves no file where there was none. */
stg_status stg_store_lock_begin(stg_store_lock *lock, bool *is_new,
                                const char *path, stg_error *err);

/* Removes a store that this process made and has no use for, with its lock,
 * which is held and still to be ended. Its connections are closed. */
void stg_store_lock_remove(const char *path);

/* Comes behind the close of each connection of this process: the system drops
 * SQLite's locks on a file with any descriptor of it that closes. */
void stg_store_lock_end(stg_store_lock *lock);

/* -- its place ------------------------------------------------------------- */

enum {
    STG_STORE_FILE_OWN,
    STG_STORE_FILE_LOG,
    STG_STORE_FILE_LOCKS,
    STG_STORE_FILES
};

typedef struct stg_file_id {
    dev_t device;
    ino_t inode;
    uint64_t size; /* bytes, when it was looked at; part of no comparison */
} stg_file_id;

/* Where the files of an open store are; owned by its writer. Zeroed: none, and
 * every look finds it in its place. */
typedef struct stg_store_files {
    char *names[STG_STORE_FILES]; /* owned */
    stg_file_id ids[STG_STORE_FILES];
    uint64_t log_size; /* bytes of the write-ahead log, by the last look */
    bool is_known;
} stg_store_files;

/* Notes the files of the store at path, which a connection has open. Returns
 * STG_IO with words; to be ended in any case. */
stg_status stg_store_files_begin(stg_store_files *p, const char *path,
                                 stg_error *err);

/* Returns whether all names still lead to the files of the begin; false: why
 * names the one that does not. Three calls of stat(). */
bool stg_store_files_look(stg_store_files *p, stg_error *why);

/* Returns whether the name of the write-ahead log leads to ours: SQLite removes
 * what has the name when its last connection closes. */
bool stg_store_files_has_log(const stg_store_files *p);

/* Says which other process reads the store: "process 4321 (sqlite3)", or "another
 * process" where the system does not tell. */
void stg_store_files_reader(const stg_store_files *p, char *who, size_t size);

void stg_store_files_end(stg_store_files *p);

/* -- opening --------------------------------------------------------------- */

/* The connection of the writer, on a file that stg_store_lock_begin() took: in WAL,
 * synchronous=FULL, with the quota's number of pages. Returns STG_IO or
 * STG_INVALID with words, and then *db is still to be closed if it is not
 * NULL. */
stg_status stg_opening_open(stg_db **db, const stg_store_options *o,
                            stg_epochs *epochs, stg_error *err);

/* -- copies ---------------------------------------------------------------- */

/* Copies the store at path to the file `to`, as it is at one moment, also while
 * a hub writes to it: all that was committed until then is there. `to` is
 * complete and durable when it appears under its name, with mode 0600; what was
 * there before is replaced. Returns STG_IO or STG_INVALID with words. */
stg_status stg_copy_backup(const char *path, const char *to, stg_error *err);

typedef struct stg_restored {
    char replaced[512]; /* where the store that was there is now; "": nowhere */
} stg_restored;

/* Makes the backup `from` the store at path. Messages, cursors, rows and
 * idempotency keys are as they were, with their ids; new dead letters get ids
 * that none had before. Refuses a backup that is not sound, a
 * store that a hub has, and, unless it is forced, one that is there: that is
 * kept under another name. The store and its lock belong to whom the store that
 * was there belonged to; where there was none, to whom the folder belongs, with
 * mode 0600. At every moment, also of a power cut, the path has the
 * one store or the other, unless its file system has no hard links. Returns
 * STG_IO or STG_INVALID with words. */
stg_status stg_copy_restore(const char *from, const char *path, bool is_forced,
                            stg_restored *done, stg_error *err);

/* -- a check --------------------------------------------------------------- */

typedef struct stg_verified {
    uint64_t messages, lanes, parked, keys;
    uint64_t letters; /* rows, in whatever state: these are */
    uint64_t dead, replayed, dropped, expired, cancelled;
    uint64_t flaws;
} stg_verified;

/* A flaw in words: what, and where. Lent. */
typedef void stg_flaw_fn(void *ctx, const char *words);

/* STG_OK also when there are flaws: see v->flaws. Else it could not be read, or
 * is no store: STG_IO or STG_INVALID with words. each may be NULL. */
stg_status stg_verify(const char *path, stg_verified *v, stg_flaw_fn *each,
                      void *ctx, stg_error *err);

#endif
