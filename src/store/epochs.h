/* epochs.h - which epoch a message has, and so which id.
 *
 * A log's positions are never used twice, and its epoch makes them good for all
 * time: two stores have two. A restore goes back in time, and what is appended
 * from then on must not have the ids of what was appended after the backup was
 * made: so it begins a new epoch, for positions from there on. What is older
 * keeps its id. */
#ifndef STAGGER_STORE_EPOCHS_H
#define STAGGER_STORE_EPOCHS_H

#include "store/sql.h"

typedef struct stg_epoch {
    uint64_t below; /* of messages below this position, and not below the one
                       before; UINT64_MAX: of the others */
    uint64_t epoch;
} stg_epoch;

typedef struct stg_epochs {
    stg_epoch *all; /* rising; the last one is of now */
    size_t count;
} stg_epochs;

/* e is zeroed. SQLITE_CORRUPT: there is none. */
int stg_epochs_load(stg_epochs *e, stg_db *db);
void stg_epochs_free(stg_epochs *e);

/* A store without a queue: one of its own for each time it is opened. e is
 * zeroed. False: no memory. */
bool stg_epochs_make(stg_epochs *e);

/* In the caller's transaction: those from `from` on have a new one. */
int stg_epochs_begin(stg_db *db, uint64_t from);

uint64_t stg_epochs_now(const stg_epochs *e);
uint64_t stg_epochs_at(const stg_epochs *e, uint64_t position);

#endif
