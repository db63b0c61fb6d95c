/* queue.h - the embedded log: messages by position.
 *
 * The writer's side appends, finds what is too old or too much, and deletes in
 * pieces; the reader's side reads forward. */
#ifndef STAGGER_HUB_STORES_QUEUE_H
#define STAGGER_HUB_STORES_QUEUE_H

#include "flow/message.h"
#include "hub/store.h"
#include "hub/stores/sql.h"

enum { STG_PAGE = 4096 };

typedef struct stg_queue {
    stg_db *db;
    uint64_t next;  /* the position that is given next */
    uint64_t first; /* of the first message; next if there is none */
    uint64_t bytes; /* of the file, that messages fill: about */
    stg_stmt *add, *note_next, *note_bytes, *sizes, *remove, *created, *needed;
} stg_queue;

/* SQLITE_CORRUPT: next_position is not above all messages. */
int stg_queue_load(stg_queue *q, stg_db *db);

/* The bytes that a message takes in the file: its share of a page, or pages. */
uint64_t stg_queue_cost(const stg_parcel *p);

/* In a transaction; *position is its place. stg_queue_note() then stores next
 * and bytes. After a rollback next and bytes are the caller's to set back. */
int stg_queue_add(stg_queue *q, const stg_parcel *p, stg_ns wall,
                  uint64_t *position);
int stg_queue_note(stg_queue *q);

/* Deletes messages below `limit` from the front: rows_max of them, and then no
 * more than about bytes_max. stg_ranges_expire() is told of it. In a transaction;
 * after a rollback set first and bytes back. */
int stg_queue_trim(stg_queue *q, uint64_t limit, size_t rows_max,
                   uint64_t bytes_max);

/* The first message from `from` on, and when it was made, in ms since 1970; next
 * and UINT64_MAX if there is none. */
int stg_queue_at(stg_queue *q, uint64_t from, uint64_t *position,
                 uint64_t *created_at);

/* The first position that is younger than `age`, or next. */
int stg_queue_younger(stg_queue *q, stg_ns wall, stg_ns age,
                      uint64_t *position);

/* The position up to which messages fill `bytes`, after rows_max at most. */
int stg_queue_behind(stg_queue *q, uint64_t bytes, size_t rows_max,
                     uint64_t *position);

/* The first position that a dead bulk row needs; UINT64_MAX: none. */
int stg_queue_needed(stg_queue *q, uint64_t *position);

/* -- the reader's side ----------------------------------------------------- */

int stg_queue_prepare_read(stg_db *db, stg_stmt **st);

typedef struct stg_chunk {
    stg_record *records; /* point into bytes */
    size_t count, room;
    unsigned char *bytes;
    size_t size, bytes_room;
} stg_chunk;

/* From a position on, as many as bytes_max, one at least. b is zeroed, and the
 * caller's to free by stg_chunk_free(). */
int stg_queue_read(stg_stmt *st, uint64_t from, size_t bytes_max, stg_chunk *b);
void stg_chunk_free(stg_chunk *b);

#endif
