/* reader.h - the thread that answers reads of the queue and fetches of parked
 * rows, with a connection of its own. No read transaction outlives a request. */
#ifndef STAGGER_STORE_READER_H
#define STAGGER_STORE_READER_H

#include "store/read_retry.h"

struct stg_store_reader {
    stg_request_queue *in;
    const stg_store_options *o;
    const char *url; /* of PostgreSQL; NULL: a file */
    stg_db *db;
    stg_read_retry again;
    stg_stmt *read, *fetch, *fetch_replays;
    uv_thread_t thread;
};

/* Of a zeroed reader with in and o. */
int stg_store_reader_open(stg_store_reader *r);
void stg_store_reader_free(stg_store_reader *r);

/* The thread. */
void stg_store_reader_run(void *reader);

#endif
