/* reader.h - the threads that read: the reader answers reads of the queue and
 * fetches of parked rows; the query thread answers what operators ask (lists of
 * dead letters, the status of a message), so that what takes long is in nobody's
 * way. Each has a connection of its own.
 *
 * No read transaction outlives a request. A store that does not answer is asked
 * again, until it closes. */
#ifndef STAGGER_STORE_READER_H
#define STAGGER_STORE_READER_H

#include "store/queue.h"
#include "store/request.h"

/* -- asking again ---------------------------------------------------------- */

/* How long such a thread has waited. */
typedef struct stg_read_retry {
    stg_request_queue *in;
    uint64_t closing_at; /* that it has seen; 0: not yet */
} stg_read_retry;

/* Whether what failed with rc is to be done again; a connection that was gone is
 * there again then. False with STG_SQL_AWAY: the store closes, and it was waited
 * for long enough. */
bool stg_store_again(stg_read_retry *a, stg_db *db, int rc);

/* A connection of a thread's own, by the url, or to the file at `path` if that
 * is NULL. */
int stg_store_connect(stg_db **db, const char *url, const char *path);

/* The same for such a thread: a server that hangs is not waited for when the
 * store closes. a is kept. */
int stg_store_connect_again(stg_read_retry *a, stg_request_queue *in,
                            stg_db **db, const char *url, const char *path);

/* -- the reader ------------------------------------------------------------ */

struct stg_store_reader {
    stg_request_queue *in;
    const stg_store_options *o;
    const char *url; /* of PostgreSQL; NULL: a file */
    stg_db *db;
    stg_read_retry again;
    stg_queue_reader queue;
    stg_stmt *fetch, *fetch_replays;
    uv_thread_t thread;
};

/* Of a zeroed reader with in and o. */
int stg_store_reader_open(stg_store_reader *r);
void stg_store_reader_free(stg_store_reader *r);

/* The thread. */
void stg_store_reader_run(void *reader);

/* -- the query thread ------------------------------------------------------ */

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
