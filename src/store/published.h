/* published.h - idempotency keys of messages that are published to another log
 * than the queue, by any of the hubs that share a store in PostgreSQL.
 *
 * Where a record will be is not known before it is written. So its key is
 * reserved first, with an id that the record then has with it, whoever writes it,
 * and however often: after a write whose end is unknown the same key is written
 * again under the same id. The first place that is stored for an id is where its
 * message is; a record with that id in another place is a second copy, which is
 * not delivered.
 *
 *     reserve   key -> id, and its place if there is one
 *     write     the record, with the id
 *     place     id -> the first place: this one, unless there is one
 *
 * Keys are kept as long as those of the queue (stg_store_options.keys_kept), by the
 * server's clock. */
#ifndef STAGGER_STORE_PUBLISHED_H
#define STAGGER_STORE_PUBLISHED_H

#include "store/keys.h"
#include "store/store.h"

enum { STG_RECORD_ID_SIZE = 16 };

/* All zero: none. */
typedef struct stg_record_id {
    unsigned char at[STG_RECORD_ID_SIZE];
} stg_record_id;

bool stg_record_id_is_none(const stg_record_id *id);

/* Whether it keeps keys of other logs: it is in PostgreSQL. */
bool stg_store_keeps_keys(const stg_store *s);

/* A message with a key. */
typedef struct stg_key_ask {
    const char *topic; /* it is part of the message; lent for the call */
    const stg_append *message; /* lent until the answer */
} stg_key_ask;

typedef struct stg_reserved {
    const char *topic; /* of what is placed; lent for the call */
    bool is_other;     /* the key came with another message before */
    stg_record_id id;
    uint32_t partition; /* where it is */
    uint64_t position;  /* STG_NO_POSITION: it is in no place that is known */
} stg_reserved;

/* all[i] for what was asked; NULL: the database is full, and nothing was stored. On
 * the loop; not called where the store is broken, or closes before. */
typedef void stg_reserved_fn(void *ctx, const stg_reserved *all, size_t count);

/* The asks are copied. */
void stg_store_reserve(stg_store *s, const stg_key_ask *asks, size_t count,
                       stg_reserved_fn *done, void *ctx);

/* Of each an id, and the place where a record with it is. Answered with the
 * place of its message. What has no row any more, or is of another topic (somebody
 * has copied it), keeps the place that it says. Copied. */
void stg_store_place(stg_store *s, const stg_reserved *all, size_t count,
                     stg_reserved_fn *done, void *ctx);

/* -- on the writer's thread -------------------------------------------------- */

typedef struct stg_published_table {
    stg_stmt *expire, *forget, *add, *find, *place, *look;
} stg_published_table;

int stg_published_prepare(stg_published_table *t, stg_db *db);

#endif
