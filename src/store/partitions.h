/* partitions.h - the numbers of partitions: which log, topic, partition and
 * epoch each one is of, and who has claimed it.
 *
 * A number is given once and never again; 0 is the queue's, and in no table. A
 * topic that was truncated, or made again, has new numbers: positions of the old
 * ones would name other messages now. What is in memory belongs to one thread;
 * the writer and the loop have one each. */
#ifndef STAGGER_STORE_PARTITIONS_H
#define STAGGER_STORE_PARTITIONS_H

#include "store/sql.h"
#include "store/store.h"

typedef struct stg_store_writer stg_store_writer;

typedef struct stg_partition_row {
    char *log, *topic;
    uint64_t epoch;
    uint64_t generation; /* of our shard, as far as it is known here */
    /* The group's committed offset when this epoch began: it is one of the
     * deleted topic, and is ignored. STG_NO_POSITION: there is none. */
    uint64_t stale;
    uint32_t number;
    uint32_t partition;
    bool is_claimed; /* in the loop's */
} stg_partition_row;

typedef struct stg_partitions {
    stg_partition_row **all; /* by number; NULL: none */
    uint32_t count, room;
    uint32_t
        loaded; /* numbers below were read from the table; what is set above
                        may be of a transaction that was rolled back */
} stg_partitions;

/* Zeroed before, or loaded: then only what is new since is read, and stands for
 * whatever was set above. */
int stg_partitions_load(stg_partitions *p, stg_db *db, uint32_t shard);
void stg_partitions_free(stg_partitions *p);

/* NULL: no such number. */
stg_partition_row *stg_partitions_get(const stg_partitions *p, uint32_t number);

/* A copy of `one`; what is known of its number is replaced. NULL: no memory. */
stg_partition_row *stg_partitions_set(stg_partitions *p,
                                      const stg_partition_row *one);

/* The newest number below `below` of (log, topic, partition); NULL: none. */
const stg_partition_row *stg_partitions_newest(const stg_partitions *p,
                                               const stg_claim_ask *ask,
                                               uint32_t below);

/* -- the tables, in the caller's transaction -------------------------------- */

/* Gives the next number; SQLITE_TOOBIG: none is left. */
int stg_partitions_add(stg_db *db, const stg_claim_ask *ask,
                       stg_partition_row *to);

typedef void stg_partitions_each(void *ctx, uint32_t number,
                                 uint64_t generation);

/* Those of a list (see stg_sql_list()) that have parked rows, or dead letters
 * that are to be sent again; generation is 0. */
int stg_partitions_with_rows(stg_db *db, const char *list,
                             stg_partitions_each *each, void *ctx);

/* The statement of stg_partitions_fence(); NULL for a store in a file, which one
 * hub has. */
int stg_partitions_prepare_fence(stg_db *db, stg_stmt **st);
/* Puts into fenced the partitions that this hub does not own any more: their
 * generation in the table of claims is another one. Locks these rows, so that no
 * other hub can claim them before this transaction ends. st NULL: none is.
 * fenced has room for count numbers. */
int stg_partitions_fence(stg_stmt *st, uint32_t shard, const stg_claim *claims,
                         size_t count, uint32_t *fenced, size_t *fenced_count);

/* -- numbers that are taken together, and their cursors -------------------- */

/* A number, with its cursors; zeroed before. */
typedef struct stg_taken {
    stg_partition_row p; /* its texts are the caller's */
    stg_cursor *cursors;
    size_t count, room;
    uint64_t furthest; /* base */
    bool is_short;     /* of memory */
    stg_arena texts;
} stg_taken;

void stg_taken_clear(stg_taken *t);
void stg_taken_free(stg_taken *t);

/* Raises the generations of their numbers, each once, and reads their cursors. */
int stg_taken_take(stg_taken *const *all, size_t count, stg_store_writer *w);

#endif
