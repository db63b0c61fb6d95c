/* claim.h - one hub a store: the lock file PATH-lock, and the file itself.
 *
 * The lock ends with the process, whatever became of it; its file stays, and
 * holds the number of the process that had it last. */
#ifndef STAGGER_HUB_STORES_CLAIM_H
#define STAGGER_HUB_STORES_CLAIM_H

#include <stagger/status.h>

/* Takes the store at path for this process, and makes an empty file of mode
 * 0600 if there is none. Takes back what a restore began that did not end
 * (copy.c). *lock: to be given to stg_claim_end(). Returns
 * STG_IO with words. */
stg_status stg_claim_begin(int *lock, const char *path, stg_error *err);

/* -1: nothing. */
void stg_claim_end(int lock);

#endif
