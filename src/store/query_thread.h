/* query_thread.h - the thread that answers what people ask: lists of dead
 * letters, what became of a message. It has a connection of its own, so that
 * what takes long is in nobody's way. */
#ifndef STAGGER_STORE_QUERY_THREAD_H
#define STAGGER_STORE_QUERY_THREAD_H

#include "store/read_retry.h"

typedef struct stg_query_thread {
    stg_request_queue *in;
    const stg_store_options *o;
    const char *url; /* of PostgreSQL; NULL: a file */
    stg_db *db;
    stg_read_retry again;
    uv_thread_t thread;
} stg_query_thread;

/* Of a zeroed query thread with in and o. */
int stg_query_thread_open(stg_query_thread *d);
void stg_query_thread_free(stg_query_thread *d);

/* The thread. */
void stg_query_thread_run(void *query_thread);

#endif
