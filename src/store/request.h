/* request.h - what the loop asks of a thread of the store, beside the calls
 * that have a job kind of their own: it runs there, and is told here.
 *
 * A request is the first field of a struct of its own, which is given away to
 * the store by the call, and comes back to tell() once; then free() is called.
 * If the store breaks, or closes before it came to it, only free() is. */
#ifndef STAGGER_STORE_REQUEST_H
#define STAGGER_STORE_REQUEST_H

#include "base/list.h"
#include "store/sql.h"
#include "store/store.h"

typedef struct stg_store_request stg_store_request;
typedef struct stg_store_writer stg_store_writer;

struct stg_store_request {
    stg_link link;
    /* One of them. Looks: on the query thread, in no transaction. Writes: on
     * the writer's thread, in a transaction; counts for nothing if is_full. They
     * return SQLite's code. */
    int (*look)(stg_store_request *e, stg_db *db);
    int (*write)(stg_store_request *e, stg_store_writer *w);
    void (*tell)(stg_store_request *e); /* on the loop */
    void (*free)(stg_store_request *e);
    uint64_t at;   /* looks: not before, by uv_hrtime() */
    bool is_paced; /* writes: others come first, and have a pause behind it */
    bool is_full;  /* writes: it did not fit, and nothing was written */
};

/* False: no memory; the store breaks, and e is freed. */
bool stg_store_request_send(stg_store *s, stg_store_request *e);

#endif
