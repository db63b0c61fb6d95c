/* lanes.h - the names of targets and the numbers of their lanes.
 *
 * In memory, for the loop's thread; the writer keeps the table of them. Numbers
 * rise from 0 and are never given to another name; a name that was forgotten
 * and comes back has another number, for rows of the first are still there. */
#ifndef STAGGER_STORE_LANES_H
#define STAGGER_STORE_LANES_H

#include "base/hash.h"
#include "base/text.h"
#include "flow/group.h"
#include "store/sql.h"
#include "store/store.h"

enum { STG_LANES_MAX = 1000000 }; /* flow's */

typedef struct stg_lane_name {
    char *name; /* NULL: a number that was skipped */
    char *url;
    bool is_forgotten;
    stg_pause pause;
} stg_lane_name;

typedef struct stg_lanes {
    stg_lane_name *names; /* by number */
    uint32_t count, room;
    stg_text_table numbers; /* by name, of those that are not forgotten */
} stg_lanes;

/* All zeros is an empty one. */
int stg_lanes_load(stg_lanes *l, stg_db *db);
void stg_lanes_free(stg_lanes *l);

/* UINT32_MAX: no such name. */
uint32_t stg_lanes_find(const stg_lanes *l, const char *name);

/* Sets the url of a number's name, known or new. False: no memory. */
bool stg_lanes_set(stg_lanes *l, uint32_t number, const char *name,
                   const char *url);

/* Undoes stg_lanes_set() for a new number, of which nothing was stored. */
void stg_lanes_drop(stg_lanes *l, uint32_t number);

/* The name is free again, and the number is not. */
void stg_lanes_forget(stg_lanes *l, uint32_t number);

/* -- cursors ----------------------------------------------------------------- */

/* Where lanes stand: STG_SLICE lanes of a partition a row.
 *
 *     {
 *     "7": {"base": 42, "settled": [[44, 45]], "routed": 44, "delivered": 43,
 *           "dead": 1},
 *     "8": ...
 *     }
 *
 * a line a lane; settled are the first and last position of ranges above the
 * base; what is 0, empty or false is left out. Bases only rise: a lane that
 * comes with a lower one, or not at all, keeps what is stored. So that few rows
 * are ever read, the writer has the bases in memory. */

/* Calls each for the cursors of a row's text; false: it is none. */
typedef void stg_cursor_each(void *ctx, const stg_cursor *c);
bool stg_cursors_parse(stg_span text, uint32_t partition, uint32_t slice,
                       stg_cursor_each *each, void *ctx);

/* Every stored cursor of some partitions, see stg_sql_list(), or of all of them
 * (NULL); of a lane that several shards have, the furthest. counts: with parked as
 * the table of parked rows has it. */
int stg_cursors_read(stg_db *db, const char *partitions, bool counts,
                     stg_cursor_each *each, void *ctx);

typedef struct stg_slice stg_slice;

/* Rows that were parked: of dead letters; or of messages that are routed again,
 * see rewinds.h. */
typedef struct stg_move {
    uint64_t number; /* of the transaction; they rise from 1 */
    uint32_t lane, partition;
    uint64_t count;
    bool is_again;
} stg_move;

/* The writer's knowledge of the table. */
typedef struct stg_cursors {
    uint32_t shard;    /* whose rows are written */
    bool is_shared;    /* with other hubs */
    stg_slice **slots; /* by partition and slice */
    size_t count, slot_count;
    stg_stmt *read, *write, *begin;
    stg_move *moves; /* those that a group may come without */
    size_t move_count, move_room;
    uint64_t replays; /* transactions with moves so far */
    stg_text text;    /* of a row, while it is made */
} stg_cursors;

/* Zeroed before, but for the shard; also reads all anew, after a rollback: of a
 * replay, too. */
int stg_cursors_load(stg_cursors *c, stg_db *db);
void stg_cursors_free(stg_cursors *c);

/* Others may have written the rows of these partitions. */
int stg_cursors_reload(stg_cursors *c, stg_db *db, const uint32_t *partitions,
                       size_t count);

/* Writes a group's cursors but those of the lanes that it forgets, and drops
 * these. told: the number of the last replay that flow knew of when it made the
 * group; what was replayed after it is put right. In the caller's transaction. */
int stg_cursors_write(stg_cursors *c, const stg_group *g, uint64_t told);

/* Moves m->count from dead to parked in a lane's books, or routes it again, in the
 * caller's transaction (the rows are made by stg_replays_*); and counts it when
 * that is durable. m->number is set here. */
int stg_cursors_replay(stg_cursors *c, const stg_move *m);
void stg_cursors_replayed(stg_cursors *c);

#endif
