/* desk.h - the thread that answers what people ask: lists of dead letters, what
 * became of a message. It has a connection of its own, so that what takes long
 * is in nobody's way. */
#ifndef STAGGER_STORE_DESK_H
#define STAGGER_STORE_DESK_H

#include "store/again.h"

typedef struct stg_desk {
    stg_inbox *in;
    const stg_store_options *o;
    const char *url; /* of PostgreSQL; NULL: a file */
    stg_db *db;
    stg_again again;
    uv_thread_t thread;
} stg_desk;

/* Of a zeroed desk with in and o. */
int stg_desk_open(stg_desk *d);
void stg_desk_free(stg_desk *d);

/* The thread. */
void stg_desk_run(void *desk);

#endif
