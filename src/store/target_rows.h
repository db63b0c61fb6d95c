/* target_rows.h - targets that were added by calls: a row each, which has the
 * target's settings, in JSON or encrypted. What is in that text is the hub's; the
 * store keeps it.
 *
 * A version is a number that rises with each write of any row, and is about the
 * time of the write in nanoseconds since 1970: no two texts of a name have the
 * same, also where a name is removed and comes back. */
#ifndef STAGGER_STORE_TARGET_ROWS_H
#define STAGGER_STORE_TARGET_ROWS_H

#include "store/sql.h"
#include "store/store.h"

struct stg_target_row {
    const char *name;
    const char *settings; /* "": it is being removed */
    uint64_t version;
};

/* All of them, in the order of their versions; lent. */
typedef void stg_target_rows_fn(void *ctx, const stg_target_row *rows,
                                size_t count);

/* Blocks: at the start. Returns STG_IO with words, and each is not called. */
stg_status stg_store_target_rows(stg_store *s, stg_target_rows_fn *each,
                                 void *ctx, stg_error *err);

typedef enum stg_target_write {
    STG_TARGET_WRITTEN, /* durable */
    STG_TARGET_DIFFERS, /* the row had another version, and stays */
    STG_TARGET_FULL,    /* the store is, and the row stays */
} stg_target_write;

/* Writes a row whose version is `expected`; 0: which is not there. settings are
 * copied; NULL: the row goes. version: the row's, if it was written. At any
 * time. */
typedef void stg_target_written_fn(void *ctx, stg_target_write how,
                                   uint64_t version);
void stg_store_write_target(stg_store *s, const char *name,
                            const char *settings, uint64_t expected,
                            stg_target_written_fn *done, void *ctx);

/* Other settings for the row of this version, which stays its version, for they
 * say the same: they were encrypted with another key. done as above. */
void stg_store_rewrite_target(stg_store *s, const char *name,
                              const char *settings, uint64_t version,
                              stg_target_written_fn *done, void *ctx);

/* -- for the store --------------------------------------------------------- */

/* Rows, and the memory of their texts. Zeroed: empty. */
typedef struct stg_target_table {
    stg_target_row *rows;
    size_t count, room;
    stg_arena texts;
} stg_target_table;

int stg_target_table_read(stg_target_table *t, stg_db *db);
void stg_target_table_free(stg_target_table *t);

/* Two numbers that tell whether the table is as it was. */
typedef struct stg_target_mark {
    uint64_t count, newest;
} stg_target_mark;

int stg_target_mark_read(stg_target_mark *m, stg_db *db);

#endif
