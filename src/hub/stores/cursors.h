/* cursors.h - where lanes stand: 256 lanes of a partition a row.
 *
 *     {
 *     "7": {"base": 42, "settled": [44, 45], "routed": 43, "delivered": 42,
 *           "dead": 1},
 *     "8": ...
 *     }
 *
 * a line a lane; what is 0, empty or false is left out. Bases only rise: a lane that
 * comes with a lower one, or not at all, keeps what is stored. So that few rows
 * are ever read, the writer has the bases in memory. */
#ifndef STAGGER_HUB_STORES_CURSORS_H
#define STAGGER_HUB_STORES_CURSORS_H

#include "flow/group.h"
#include "hub/stores/sqlite.h"

/* Calls each for the cursors of a row's text; false: it is none. */
typedef void stg_cursor_each(void *ctx, const stg_cursor *c);
bool stg_cursors_parse(stg_span text, uint32_t partition, uint32_t slice,
                       stg_cursor_each *each, void *ctx);

/* Every stored cursor, with parked as the table of parked rows has it. */
int stg_cursors_read(sqlite3 *db, stg_cursor_each *each, void *ctx);

typedef struct stg_slice stg_slice;

/* What the writer knows of the table. */
typedef struct stg_cursors {
    stg_slice **slots; /* by partition and slice */
    size_t count, slot_count;
    sqlite3_stmt *read, *write;
    char *text; /* of a row, while it is made */
    size_t text_size, text_room;
} stg_cursors;

/* Zeroed before; also reads all anew, after a rollback. */
int stg_cursors_load(stg_cursors *c, sqlite3 *db);
void stg_cursors_free(stg_cursors *c);

/* Writes a group's cursors but those of the lanes that it forgets, and drops
 * these. In the caller's transaction. */
int stg_cursors_write(stg_cursors *c, const stg_group *g);

#endif
