/* The query thread: requests that look, for operators, and those that are to
 * look later (request.at).
 *
 * It has a connection of its own, and each look is repeated from its start
 * where the server went away: a look must begin by forgetting what it found. */
#include "store/reader.h"

#include "host/process.h"

/* Takes the first request whose time has come; *at is when there will be one.
 * When the store closes, those that wait are taken at once: so their owners
 * hear of the end. */
static stg_store_request *first_due(stg_request_queue *in, uint64_t now,
                                    uint64_t *at)
{
    *at = UINT64_MAX;
    for (stg_link *link = stg_list_first(&in->looks); link != NULL;
         link = stg_list_next(&in->looks, link)) {
        stg_store_request *e = STG_HOLDER(link, stg_store_request, link);

        if (e->at <= now || in->stage >= STG_QUEUE_CLOSING) {
            stg_list_remove(link);
            return e;
        }
        *at = stg_ns_min(*at, e->at);
    }
    return NULL;
}

/* NULL: it is over. */
static stg_store_request *take(stg_request_queue *in)
{
    stg_store_request *e = NULL;
    uint64_t at, now;

    uv_mutex_lock(&in->lock);
    while (!in->is_broken) {
        now = uv_hrtime();
        e = first_due(in, now, &at);
        if (e != NULL || in->stage == STG_QUEUE_WRITTEN)
            break;
        if (at == UINT64_MAX)
            uv_cond_wait(&in->query_wake, &in->lock);
        else
            uv_cond_timedwait(&in->query_wake, &in->lock, at - now);
    }
    uv_mutex_unlock(&in->lock);
    return e;
}

/* Where it does not answer: from the start again. */
static int look(stg_query_thread *d, stg_store_request *e)
{
    int rc;

    do
        rc = e->look(e, d->db);
    while (rc != SQLITE_OK && stg_store_again(&d->again, d->db, rc));
    return rc;
}

/* The thread: one question after the other, in a connection of its own. A long look
 * blocks other looks, and nothing else. */
void stg_query_thread_run(void *query_thread)
{
    stg_query_thread *d = query_thread;
    stg_error why;
    stg_store_request *e;

    stg_thread_name("store-query");
    while ((e = take(d->in)) != NULL) {
        int rc = look(d, e);

        if (rc != SQLITE_OK)
            e->free(e);
        if (rc == STG_SQL_AWAY)
            break;
        if (rc != SQLITE_OK) {
            stg_sql_words(&why, d->o->path, "cannot be read", d->db, rc);
            stg_request_queue_break(d->in, &why);
            break;
        }
        stg_request_queue_answer(d->in, e);
    }
    stg_sql_close(d->db);
    d->db = NULL;
    stg_request_queue_leave(d->in);
}

int stg_query_thread_open(stg_query_thread *d)
{
    return stg_store_connect_again(&d->again, d->in, &d->db, d->url,
                                   d->o->path);
}

void stg_query_thread_free(stg_query_thread *d)
{
    stg_sql_close(d->db);
}
