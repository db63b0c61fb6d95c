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
 * A log's positions are never used twice, and its epoch makes them good for all
 * time: two stores have two. A restore goes back in time, and what is appended
 * from then on must not have the ids of what was appended after the backup was
 * made: so it begins a new epoch, for positions from there on. What is older
 * keeps its id. */
#ifndef STAGGER_STORE_IDS_H
#define STAGGER_STORE_IDS_H

#include "store/partitions.h"
#include "store/sql.h"
#include "store/store.h"

/* -- epochs ---------------------------------------------------------------- */

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

/* For a store in PostgreSQL, which has no queue: makes one random epoch, in
 * memory, each time the store is opened. e is zeroed. False: no memory. */
bool stg_epochs_make(stg_epochs *e);

/* In the caller's transaction: those from `from` on have a new one. */
int stg_epochs_begin(stg_db *db, uint64_t from);

uint64_t stg_epochs_now(const stg_epochs *e);
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
