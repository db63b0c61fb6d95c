/* receipts.h - a row of each attempt that has ended, for people who ask what became
 * of a message.
 *
 * No delivery is decided by them: they are written after the attempts, a batch a
 * transaction, and those of the last batch are lost in a crash. Rows go in the
 * order in which they came, at the end of their time or of their room, so that
 * what is there is all that came since the oldest row. */
#ifndef STAGGER_STORE_RECEIPTS_H
#define STAGGER_STORE_RECEIPTS_H

#include <stagger/outcome.h>

#include "store/sql.h"
#include "store/store.h"

/* Bytes that a receipt takes of a store, about, with its part of the index: what
 * the quota of receipts is counted in. */
enum { STG_RECEIPT_COST = 80 };

typedef struct stg_receipt {
    uint64_t position;
    uint32_t partition, lane;
    uint64_t number; /* of the attempt, from 1, all replays counted */
    stg_ns at;       /* when it ended, since 1970 */
    stg_ns took;
    stg_fault fault; /* NONE: delivered */
    stg_code_kind code_kind;
    uint32_t
        code; /* of a delivery, too: the status that it was answered with */
} stg_receipt;

/* Stores them, and frees the rows, which are of malloc(). done: on the loop, whether
 * they are durable; else the store is full. Not called if the store breaks. */
typedef void stg_receipts_fn(void *ctx, size_t count, bool is_stored);
void stg_store_write_receipts(stg_store *s, stg_receipt *rows, size_t count,
                              stg_receipts_fn *done, void *ctx);

/* -- for the store --------------------------------------------------------- */

/* While some come, the table is looked at so often. */
#define STG_RECEIPT_PAUSE (10 * STG_S)

/* What the writer's thread has for them. Zeroed. */
typedef struct stg_receipt_table {
    stg_db *db;
    stg_stmt *add, *trim;
    stg_ns keep;       /* 0: none is kept */
    uint64_t rows_max; /* ids, as far as others do not leave gaps */
    uint64_t tend_at;  /* by uv_hrtime(); UINT64_MAX: there are none */
} stg_receipt_table;

int stg_receipt_table_prepare(stg_receipt_table *t, stg_db *db,
                              const stg_store_options *o, bool is_shared);

/* Deletes up to a piece of what is too old or too much, in the caller's
 * transaction. *wait: until it is to be called again; 0: there may be more of
 * it; STG_NEVER: the table is empty. */
int stg_receipt_table_trim(stg_receipt_table *t, stg_ns wall, stg_ns *wait);

/* The receipts of one message by lane, and of a lane in the order in which they
 * came; `add` copies.
 * *since: when the oldest of all messages came; 0: there are none. */
typedef int stg_receipt_fn(void *ctx, const stg_receipt *r);
int stg_receipts_read(stg_db *db, uint32_t partition, uint64_t position,
                      stg_receipt_fn *add, void *ctx, stg_ns *since);

#endif
