/* read_retry.h - what a thread that reads does when the store does not answer: it
 * asks again. */
#ifndef STAGGER_STORE_READ_RETRY_H
#define STAGGER_STORE_READ_RETRY_H

#include "store/request.h"

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

#endif
