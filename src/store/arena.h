/* arena.h - copies of texts that go at once, all together. */
#ifndef STAGGER_STORE_ARENA_H
#define STAGGER_STORE_ARENA_H

#include "store/sql.h"

/* Zeroed: empty. */
typedef struct stg_arena {
    struct stg_arena_piece *pieces;
    bool is_short; /* there was no memory: what is there is no use */
} stg_arena;

void stg_arena_free(stg_arena *a);

/* NULL: no memory. */
void *stg_arena_bytes(stg_arena *a, size_t size);
/* Copies text. NULL if text is, or where there is no memory: then is_short is
 * set. */
const char *stg_arena_text(stg_arena *a, const char *text);

/* A column, with a zero behind it; at is NULL for NULL. */
stg_span stg_arena_column(stg_arena *a, stg_stmt *st, int column);

#endif
