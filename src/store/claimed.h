/* claimed.h - numbers of partitions that are taken together, and their cursors: on
 * the writer's thread, in its transaction. */
#ifndef STAGGER_STORE_CLAIMED_H
#define STAGGER_STORE_CLAIMED_H

#include "store/arena.h"
#include "store/writer.h"

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
