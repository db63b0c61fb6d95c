/* partitions.h - the numbers of partitions: which log, topic, partition and
 * epoch each one is of, and who has claimed it.
 *
 * A number is given once and never again; 0 is the queue's, and in no table. A
 * topic that was truncated, or made again, has new numbers: positions of the old
 * ones would name other messages now. What is in memory belongs to one thread;
 * the writer and the loop have one each. */
#ifndef STAGGER_HUB_STORES_PARTITIONS_H
#define STAGGER_HUB_STORES_PARTITIONS_H

#include "hub/store.h"
#include "hub/stores/sql.h"

typedef struct stg_partition {
    char *log, *topic;
    uint64_t epoch;
    uint64_t generation; /* of our shard, as far as it is known here */
    uint64_t stale; /* what the group had committed in the epoch before: it says
                       nothing of this one; STG_NO_POSITION: nothing */
    uint32_t number;
    uint32_t partition;
    bool is_claimed; /* in the loop's */
} stg_partition;

typedef struct stg_partitions {
    stg_partition **all; /* by number; NULL: none */
    uint32_t count, room;
} stg_partitions;

/* Zeroed before, or loaded: then what is new is added. */
int stg_partitions_load(stg_partitions *p, stg_db *db, uint32_t shard);
void stg_partitions_free(stg_partitions *p);

/* NULL: no such number. */
stg_partition *stg_partitions_get(const stg_partitions *p, uint32_t number);

/* A copy of `one`; what is known of its number is replaced. NULL: no memory. */
stg_partition *stg_partitions_set(stg_partitions *p, const stg_partition *one);

/* -- the tables, in the caller's transaction -------------------------------- */

/* The newest number of (log, topic, partition); SQLITE_DONE: there is none.
 * to->log and to->topic are not set. */
int stg_partitions_newest(stg_db *db, const stg_claim_ask *ask,
                          stg_partition *to);

/* Gives the next number; SQLITE_TOOBIG: none is left. */
int stg_partitions_add(stg_db *db, const stg_claim_ask *ask, stg_partition *to);

/* The numbers of earlier epochs of `of` that have parked rows, or dead letters
 * that are to be sent again: at most `most`, the newest. Of a database. */
int stg_partitions_before(stg_db *db, const stg_claim_ask *ask, uint32_t of,
                          stg_partition *all, size_t most, size_t *count);

/* Raises the generation of a number for a shard. */
int stg_partitions_raise(stg_db *db, uint32_t number, uint32_t shard,
                         uint64_t *generation);

/* Those of the claims that others have by now: their generation is higher.
 * fenced has room for all. st: as it was prepared; NULL: there are no others. */
int stg_partitions_prepare_fence(stg_db *db, stg_stmt **st);
int stg_partitions_fence(stg_stmt *st, uint32_t shard, const stg_claim *claims,
                         size_t count, uint32_t *fenced, size_t *fenced_count);

#endif
