/* rows.h - parked rows and dead letters: writing what a group says, reading
 * parked rows back. A group written twice has the effect of once. */
#ifndef STAGGER_STORE_ROWS_H
#define STAGGER_STORE_ROWS_H

#include "flow/group.h"
#include "store/ids.h"
#include "store/sql.h"

/* Of bulk rows: see ranges.c. */
typedef struct stg_ranges {
    stg_stmt *find, *add, *extend, *is_taken, *grown, *renew, *spent, *expire;
    bool has_grown; /* some may have, since the letters had them */
} stg_ranges;

typedef struct stg_rows {
    stg_ids ids;
    uint64_t version; /* the last that a letter was given */
    bool is_shared;   /* with other hubs */
    stg_db *db;
    stg_stmt *park, *unpark, *insert_dead, *of_lane, *clear, *forget;
    stg_ranges ranges;
    uint32_t *seen; /* changes of a group by their rows, from 1; 0: none */
    size_t seen_room;
} stg_rows;

/* r is zeroed. */
int stg_rows_prepare(stg_rows *r, stg_db *db);
void stg_rows_free(stg_rows *r);

/* The next version of a letter: it rises; with other hubs, by the server's
 * clock. */
uint64_t stg_rows_version(stg_rows *r);

/* The changes of a group, in the caller's transaction; in their order, as far
 * as they are of the same row. wall: when rows are made. */
int stg_rows_write(stg_rows *r, const stg_change *changes, size_t count,
                   stg_ns wall);

/* When the store is opened: cuts each due time to wall + wait, so that a clock
 * that was set back meanwhile does not delay a retry. */
int stg_rows_pull_in(stg_db *db, stg_ns wall);

/* The same for partitions that are claimed (PostgreSQL); partitions: a list as
 * stg_sql_list() makes it. */
int stg_rows_pull_in_of(stg_db *db, const char *partitions, stg_ns wall);

/* -- bulk rows ------------------------------------------------------------ */

int stg_ranges_prepare(stg_ranges *r, stg_db *db);
int stg_ranges_write(stg_rows *r, const stg_change *c, stg_ns wall);

/* Gives a new version to some of those that have grown. */
int stg_ranges_renew(stg_rows *r, bool *is_more);

/* The log has nothing below `first` any more: rows whose last message went turn
 * expired, and the file of dead letters hears of it. In a transaction. */
int stg_ranges_expire(stg_rows *r, uint64_t first, stg_ns wall);

/* *position: the first from there on that names no letter of the lane with this
 * replay. */
int stg_ranges_free_name(stg_ranges *r, uint32_t lane, uint32_t partition,
                         uint32_t replay, uint64_t *position);

/* -- parked rows as columns ------------------------------------------------ */

/* The values of a row of `parked`, which a row of failed_broadcast_logs needs,
 * too. */
typedef struct stg_parked {
    uint64_t key_hash;
    stg_parcel parcel;
    stg_progress progress;
    stg_failure failure;
    bool has_failure;
    stg_ns wait, due_at;
    uint64_t attempts_before;
    stg_ns began_at;
    stg_ns created_at; /* the message */
    uint64_t position;
    uint32_t partition, replay;
} stg_parked;

/* The columns that stg_parked_read() wants, in its order. */
#define STG_PARKED_COLUMNS                                                    \
    "partition, position, replay, due_at, wait, attempts,"                    \
    " last_wait, limited, has_failure, fault, code_kind, code, is_permanent," \
    " is_unsent, delay, why, first_attempt_at, last_attempt_at, detail,"      \
    " answer, key_hash, content_type, headers, key, body, attempts_before,"   \
    " began_at, created_at, source_key, source_headers"

/* Points into the row. */
void stg_parked_read(stg_parked *p, stg_stmt *st);

/* -- the reader's side ----------------------------------------------------- */

int stg_rows_prepare_fetch(stg_db *db, bool is_replay, stg_stmt **st);

typedef struct stg_fetched {
    stg_parked_row *rows;
    size_t count;
    bool is_all;
    struct stg_fetched_piece *pieces; /* what the rows point to */
} stg_fetched;

/* The lane's rows above the mark, rows_max at most, and no more than 16 MiB but
 * for the first. st: of stg_rows_prepare_fetch(), for its kind of rows. claimed:
 * the partitions that are ours, as a list; NULL, with a file: all. f is zeroed, and
 * the caller's to free. */
int stg_rows_fetch(stg_stmt *st, uint32_t lane, const stg_mark *after,
                   uint32_t rows_max, const char *claimed, stg_fetched *f);
void stg_fetched_free(stg_fetched *f);

/* -- replays and drops of one letter: the writer's side -------------------- */

typedef struct stg_replays {
    stg_stmt *look, *park, *over, *drop, *eat, *feed, *shorten, *end;
    stg_stmt *eat_again, *feed_again;
} stg_replays;

int stg_replays_prepare(stg_replays *r, stg_db *db);

/* The result of a replay. */
typedef struct stg_replayed {
    bool is_done;      /* it was dead, and something was done */
    bool is_forgotten; /* its target was removed: it stays as it is */
    uint32_t lane, partition;
    uint64_t messages; /* parked anew, or dropped */
    uint64_t expired;  /* of a bulk row that is over: those whose bodies are
                          gone */
    uint64_t next;     /* a bulk row goes on from here; 0: it is over */
} stg_replayed;

/* A letter for one message is parked, due at `wall`. */
int stg_replays_letter(stg_replays *r, stg_rows *rows, uint64_t id, stg_ns wall,
                       stg_replayed *out);

/* A piece of a bulk row's front. */
typedef struct stg_bite {
    uint64_t id;
    uint64_t from;             /* where the row must begin, or it has changed */
    const uint64_t *positions; /* messages to be parked; rising */
    const stg_record *records; /* they, of a log that is not the queue; NULL:
                                  they are in the store */
    size_t count;
    uint64_t to; /* nothing else up to here is needed */
} stg_bite;

/* A piece of the log that is sent again: no bulk row stands for it. */
typedef struct stg_again_bite {
    const stg_bite *bite;
    uint32_t replay; /* of the rows that it parks */
    stg_order order;
    const uint64_t *keys; /* hashes of the messages' keys */
    uint64_t *waiting;    /* and of those that are parked of it already */
    size_t waiting_count;
} stg_again_bite;

/* At its end the row is replayed, or expired if some of its messages were not
 * there any more. */
int stg_replays_range(stg_replays *r, stg_rows *rows, const stg_bite *bite,
                      stg_ns wall, stg_replayed *out);

/* Parks the messages of b that do not wait for the lane anyway, up to the first
 * that must wait for another one. out has lane and partition; next: what is below
 * is parked or passed over. */
int stg_replays_again(stg_replays *r, const stg_again_bite *b, stg_ns wall,
                      stg_replayed *out);

int stg_replays_drop(stg_replays *r, stg_rows *rows, uint64_t id, stg_ns wall,
                     stg_replayed *out);

#endif
