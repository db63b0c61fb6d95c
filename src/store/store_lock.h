/* store_lock.h - one hub a store: the lock file PATH-lock, and the file itself.
 *
 * The lock ends with the process, whatever became of it; its file stays, and
 * holds the number of the process that had it last. */
#ifndef STAGGER_STORE_STORE_LOCK_H
#define STAGGER_STORE_STORE_LOCK_H

#include <stdbool.h>

#include <stagger/status.h>

/* Takes the store at path for this process, and makes an empty file of mode
 * 0600 if there is none. Takes back what a restore began that did not end
 * (copy.c). *lock: to be given to stg_claim_end(). *is_new: there was none.
 * Returns, with words, STG_INVALID where path, its rights or its
 * lock file are wrong, and STG_IO where another start may succeed; then it
 * leaves no file where there was none. */
stg_status stg_claim_begin(int *lock, bool *is_new, const char *path,
                           stg_error *err);

/* Removes a store that this process made and has no use for, with its lock,
 * which is held and still to be ended. Its connections are closed. */
void stg_claim_remove(const char *path);

/* -1: nothing. */
void stg_claim_end(int lock);

#endif
