#include "store/query_thread.h"

#include <stdlib.h>

#include "host/thread_name.h"

/* The first that may be looked at, or when there will be one. At the end nobody
 * waits. */
static stg_job *first_due(stg_request_queue *in, uint64_t now, uint64_t *at)
{
    *at = UINT64_MAX;
    for (stg_link *link = stg_list_first(&in->looks); link != NULL;
         link = stg_list_next(&in->looks, link)) {
        stg_job *job = STG_HOLDER(link, stg_job, link);

        if (job->request->at <= now || in->is_closing) {
            stg_list_remove(link);
            return job;
        }
        *at = stg_ns_min(*at, job->request->at);
    }
    return NULL;
}

/* NULL: it is over. */
static stg_job *take(stg_request_queue *in)
{
    stg_job *job = NULL;
    uint64_t at, now;

    uv_mutex_lock(&in->lock);
    while (!in->is_broken) {
        now = uv_hrtime();
        job = first_due(in, now, &at);
        if (job != NULL || (in->is_closing && in->is_written))
            break;
        if (at == UINT64_MAX)
            uv_cond_wait(&in->query_wake, &in->lock);
        else
            uv_cond_timedwait(&in->query_wake, &in->lock, at - now);
    }
    uv_mutex_unlock(&in->lock);
    return job;
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

static void end(stg_query_thread *d)
{
    stg_job *job = stg_job_new(STG_JOB_ENDED, NULL, 0);

    stg_sql_close(d->db);
    d->db = NULL;
    if (job == NULL)
        abort();
    uv_mutex_lock(&d->in->lock);
    d->in->has_query_thread = false;
    uv_cond_signal(&d->in->writer_wake);
    uv_mutex_unlock(&d->in->lock);
    stg_request_queue_answer(d->in, job);
}

void stg_query_thread_run(void *query_thread)
{
    stg_query_thread *d = query_thread;
    stg_error why;
    stg_job *job;

    stg_thread_name("store-query");
    while ((job = take(d->in)) != NULL) {
        int rc = look(d, job->request);

        if (rc != SQLITE_OK)
            stg_job_free(job);
        if (rc == STG_SQL_AWAY)
            break;
        if (rc != SQLITE_OK) {
            stg_sql_words(&why, d->o->path, "cannot be read", d->db, rc);
            stg_request_queue_break(d->in, &why);
            break;
        }
        stg_request_queue_answer(d->in, job);
    }
    end(d);
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
