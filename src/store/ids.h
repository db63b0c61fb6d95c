/* ids.h - message ids: the same over attempts, crashes, hubs and replays, and
 * never of two messages; and the epochs that make them so.
 *
 *     00c0ffee00c0ffee-42                    of the queue: its epoch, position
 *     orders.3.1042                          of a topic: partition, offset
 *     orders.3.17.5f0e6a2b9c0d1e2f           of a topic that was made again:
 *                                            its epoch, too
 *
 * What begins a number of a topic has no epoch to be told by, so that hubs with
 * stores of their own agree.
 *
 * A life of a store's file gives no position twice. But the file may be a copy,
 * or be put back as it was, and then two lives give the same positions. So each
 * life, from an opening on, has an epoch of its own for the positions that it
 * gives; a message keeps the id of the life that accepted it. */
#ifndef STAGGER_STORE_IDS_H
#define STAGGER_STORE_IDS_H

#include "store/partitions.h"
#include "store/sql.h"
#include "store/store.h"

/* -- epochs ---------------------------------------------------------------- */

typedef struct stg_epoch {
    uint64_t first; /* position of the epoch; the next one's ends it */
    uint64_t epoch;
} stg_epoch;

/* Epochs by rising position; the last one is of now. Nothing changes once the
 * store is open, so every thread of the store reads it without a lock. */
typedef struct stg_epochs {
    stg_epoch *all; /* from realloc(), freed with the struct */
    size_t count, room;
} stg_epochs;

/* Reads the epochs of a store in a file, deletes those of which nothing is left
 * (but the newest 1024), and draws one for positions from next_position on: in
 * the caller's transaction, which need not be durable. e is zeroed.
 * SQLITE_CORRUPT, SQLITE_DONE: the table, or next_position, is not a store's. */
int stg_epochs_open(stg_epochs *e, stg_db *db);

/* Writes the epoch of now, in the transaction that appends its first message. */
int stg_epochs_store(const stg_epochs *e, stg_db *db);

/* For a store in PostgreSQL, which has no queue: makes one random epoch, in
 * memory, each time the store is opened. e is zeroed. False: out of memory. */
bool stg_epochs_make(stg_epochs *e);
void stg_epochs_free(stg_epochs *e);

uint64_t stg_epochs_now(const stg_epochs *e);

/* Tells whether the position's epoch is known. False: nothing is left of its
 * message. */
bool stg_epochs_have(const stg_epochs *e, uint64_t position);

/* Returns the epoch of a position by bisection; the oldest for one that
 * stg_epochs_have() denies. */
uint64_t stg_epochs_at(const stg_epochs *e, uint64_t position);

/* -- ids ------------------------------------------------------------------- */

typedef struct stg_ids {
    const stg_epochs *epochs;
    const stg_partitions *partitions;
} stg_ids;

const char *stg_ids_print(const stg_ids *ids, uint32_t number,
                          uint64_t position, char text[STG_MESSAGE_ID_MAX]);

/* The id of a record of a partition. Returns text. */
const char *stg_ids_print_record(const stg_partition_row *p, uint64_t position,
                                 char text[STG_MESSAGE_ID_MAX]);

/* False: it is no id, or not one of these. */
bool stg_ids_parse(const stg_ids *ids, const char *id, uint32_t *number,
                   uint64_t *position);

#endif
