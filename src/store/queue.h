/* queue.h - the embedded log: messages by position.
 *
 * The writer's side appends, finds what is too old or too much, and deletes; the
 * reader's side reads forward.
 *
 * Positions are cut into segments, a table each: messages_0, messages_1, ... (the
 * view `messages` is all of them). A segment that has ended is emptied as a whole,
 * which frees its pages without writing them; a page from which rows are deleted
 * is written once more, and moved by a checkpoint. */
#ifndef STAGGER_STORE_QUEUE_H
#define STAGGER_STORE_QUEUE_H

#include "flow/group.h"
#include "store/sql.h"
#include "store/store.h"

/* Bytes of a page of the file. Larger than SQLite's own: a leaf with more
 * messages is opened and closed less often, and costs less for each. */
enum { STG_PAGE = 16384 };

/* Tables for segments. */
enum { STG_SEGMENTS = 16 };

/* A segment begins with its first message. */
typedef struct stg_segment {
    unsigned table;
    uint64_t first;
    uint64_t filled; /* before it, of all messages */
} stg_segment;

/* Which messages there are. Sizes are known when they are written: each row has, in
 * filled_before, the bytes of the file that all messages before it have filled,
 * those that are gone, too. So what any range fills is a difference, and no row is
 * read for it. */
typedef struct stg_queue_extent {
    uint64_t next;   /* the position that is given next */
    uint64_t first;  /* of the first message; next if there is none */
    uint64_t filled; /* before next; about */
    uint64_t gone;   /* before first */
    size_t count;
    stg_segment
        segments[STG_SEGMENTS]; /* by position; the last is written to */
} stg_queue_extent;

/* The statements of a table, made when they are asked for. */
typedef struct stg_queue_table {
    stg_stmt *add, *at, *remove, *empty;
} stg_queue_table;

typedef struct stg_queue {
    stg_db *db;
    uint64_t segment_min; /* bytes that a segment has when it ends */
    stg_queue_extent is;
    stg_queue_table tables[STG_SEGMENTS];
    stg_stmt *note_next, *needed;
} stg_queue;

/* SQLITE_CORRUPT: next_position is not above all messages. */
int stg_queue_load(stg_queue *q, stg_db *db, uint64_t segment_min);

/* Bytes of the file that messages fill: about. */
uint64_t stg_queue_bytes(const stg_queue *q);

/* The bytes that a message takes in the file: its share of a page, or pages. */
uint64_t stg_queue_cost(const stg_parcel *p);

/* In a transaction; *position is its place. stg_queue_note() then stores next.
 * After a rollback q->is is the caller's to set back. */
int stg_queue_add(stg_queue *q, const stg_parcel *p, stg_ns wall,
                  uint64_t *position);
int stg_queue_note(stg_queue *q);

/* Where the segments end that are all below `limit` and are not written to any
 * more; the first position if none is. */
uint64_t stg_queue_ended(const stg_queue *q, uint64_t limit);

/* Deletes messages below `limit` from the front: a segment if it is all below, or
 * rows_max of its messages, and then no more than about bytes_max.
 * stg_ranges_expire() is told of it. In a transaction; after a rollback set q->is
 * back. */
int stg_queue_trim(stg_queue *q, uint64_t limit, size_t rows_max,
                   uint64_t bytes_max);

/* Where a message is. */
typedef struct stg_queue_place {
    uint64_t position;
    uint64_t created_at; /* in ms since 1970 */
    uint64_t filled;     /* before it */
} stg_queue_place;

/* The first message from `from` on. There is none: next, made at UINT64_MAX. */
int stg_queue_at(stg_queue *q, uint64_t from, stg_queue_place *place);

/* The first position that is younger than `age`, or next. */
int stg_queue_younger(stg_queue *q, stg_ns wall, stg_ns age,
                      uint64_t *position);

/* The first position before which messages fill `bytes`, or next. */
int stg_queue_behind(stg_queue *q, uint64_t bytes, uint64_t *position);

/* The first position that a dead bulk row needs; UINT64_MAX: none. */
int stg_queue_needed(stg_queue *q, uint64_t *position);

/* -- the reader's side ----------------------------------------------------- */

/* The reader's statements. Zeroed. */
typedef struct stg_queue_reader {
    stg_db *db;
    stg_stmt *segments;
    stg_stmt *read[STG_SEGMENTS]; /* made when they are asked for */
} stg_queue_reader;

int stg_queue_reader_prepare(stg_queue_reader *r, stg_db *db);

typedef struct stg_chunk {
    stg_record *records; /* point into bytes */
    size_t count, room;
    unsigned char *bytes;
    size_t size, bytes_room;
} stg_chunk;

/* Reads messages from position `from` on: as many as fit into bytes_max, but the
 * first one whatever its size; none at the end of the log (SQLITE_OK, count 0).
 * b is zeroed, and the caller's to free by stg_chunk_free(). */
int stg_queue_read(stg_queue_reader *r, uint64_t from, size_t bytes_max,
                   stg_chunk *b);
void stg_chunk_free(stg_chunk *b);

#endif
