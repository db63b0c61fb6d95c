/* lanes.h - the names of targets and the numbers of their lanes.
 *
 * In memory, for the loop's thread; the writer keeps the table of them. Numbers
 * rise from 0 and are never given to another name; a name that was forgotten
 * and comes back has another number, for rows of the first are still there. */
#ifndef STAGGER_STORE_LANES_H
#define STAGGER_STORE_LANES_H

#include "base/text_table.h"
#include "store/sql.h"

enum { STG_LANES_MAX = 1000000 }; /* flow's */

typedef struct stg_lane_name {
    char *name; /* NULL: a number that was skipped */
    char *url;
    bool is_forgotten;
    bool is_paused; /* by a call */
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

/* The name is free again, and the number is not. */
void stg_lanes_forget(stg_lanes *l, uint32_t number);

#endif
