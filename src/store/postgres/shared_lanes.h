/* shared_lanes.h - the number of a lane in a store that others write to, too.
 *
 * Nobody but the database can give it: the call asks, and waits for the answer,
 * two seconds at most. Names that were known at the start, or asked for before,
 * are in memory. */
#ifndef STAGGER_STORE_POSTGRES_SHARED_LANES_H
#define STAGGER_STORE_POSTGRES_SHARED_LANES_H

#include "store/lanes.h"

/* The number of a name, new if there is none; notes the url. The row is durable
 * before what anybody commits later. is_paused: by a call, of any hub. */
int stg_shared_lanes_find(stg_db *db, const char *name, const char *url,
                          uint32_t *number, bool *is_paused);

#endif
