/* eviction.h - letters that leave the store.
 *
 * A letter that ended (replayed, dropped, expired, cancelled) is deleted. One
 * that is still dead is evicted: a bulk row of its lane and cause counts it, and
 * its body is gone. Both go oldest first, a piece at a time, in the caller's
 * transaction; deleted_letters counts them for the books (I17, I30).
 *
 * Not deleted is the newest bulk row of a lane in a partition, which flow may
 * still lengthen; a row that the copy of the dead letters has not got yet, unless
 * the caller says so; and a bulk row that a replay has bitten into just now. */
#ifndef STAGGER_STORE_EVICTION_H
#define STAGGER_STORE_EVICTION_H

#include "store/sql.h"

/* In `replay`, of a bulk row that counts evicted letters; its `position` is
 * below 0, and no place in a log. */
#define STG_REPLAY_EVICTED (INT32_MAX - 1)
#define STG_EVICTED "2147483646"

/* Whether it is one, by its `why`; NULL: no. */
bool stg_letter_is_evicted(const char *why);

/* Of both stores: what leaves first; and the one bulk row of a lane and cause. */
#define STG_EVICTION_INDEXES                                                \
    "CREATE INDEX failed_broadcast_logs_dead ON failed_broadcast_logs (id)" \
    " WHERE state = 'dead' AND last_position IS NULL"                       \
    " AND replay <> " STG_EVICTED                                           \
    ";"                                                                     \
    "CREATE INDEX failed_broadcast_logs_ended ON failed_broadcast_logs"     \
    " (coalesce(changed_at, created_at))"                                   \
    " WHERE state <> 'dead' AND last_position IS NULL;"                     \
    "CREATE UNIQUE INDEX failed_broadcast_logs_evicted"                     \
    " ON failed_broadcast_logs (lane, cause)"                               \
    " WHERE replay = " STG_EVICTED " AND state = 'dead';"

/* Which letters: those for one message, or bulk rows. */
typedef enum stg_eviction_kind {
    STG_EVICTION_ENDED,
    STG_EVICTION_ENDED_RANGES,
    STG_EVICTION_DEAD,
    STG_EVICTION_DEAD_RANGES,
    STG_EVICTION_KINDS
} stg_eviction_kind;

typedef struct stg_eviction {
    stg_db *db;
    stg_stmt *totals; /* of a file; of PostgreSQL the dead are counted */
    stg_stmt *choose[STG_EVICTION_KINDS];
    stg_stmt *note, *fold, *remove;
    uint64_t letters, bytes; /* of a file: rows, and what they fill, about */
    uint64_t dead;           /* rows that are dead, but for bulk rows */
} stg_eviction;

/* e is zeroed. */
int stg_eviction_prepare(stg_eviction *e, stg_db *db);

/* Reads the totals: of a file at once, of PostgreSQL by going over an index. */
int stg_eviction_look(stg_eviction *e);

enum { STG_EVICTION_MOST = 4096 }; /* rows of a piece */

typedef struct stg_eviction_piece {
    stg_eviction_kind kind;
    stg_ns before;   /* those that ended, or were made, before; by the wall */
    uint64_t copied; /* of a file: the version up to which the copy has them;
                        of PostgreSQL 0: those that it has, else all */
    size_t rows_max; /* up to STG_EVICTION_MOST */
    size_t rows;     /* that went */
} stg_eviction_piece;

/* In the caller's transaction. */
int stg_eviction_run(stg_eviction *e, stg_eviction_piece *p, stg_ns wall);

#endif
