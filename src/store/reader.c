#include "store/reader.h"

#include <stdlib.h>

#include "host/thread_name.h"

/* A read that waits is for what is not there yet. */
static bool is_ready(const stg_request_queue *in, const stg_job *job)
{
    return job->kind == STG_JOB_FETCH || !job->read.waits ||
           (job->read.from < in->next && job->read.seen < in->next);
}

/* The first job that can be done: those behind a read that waits pass it. */
static stg_job *first_ready(stg_request_queue *in)
{
    for (stg_link *link = stg_list_first(&in->reads); link != NULL;
         link = stg_list_next(&in->reads, link)) {
        stg_job *job = STG_HOLDER(link, stg_job, link);

        if (!is_ready(in, job))
            continue;
        stg_list_remove(link);
        if (job->kind == STG_JOB_READ)
            job->read.seen = in->next;
        return job;
    }
    return NULL;
}

/* NULL: it is over. */
static stg_job *take(stg_request_queue *in)
{
    stg_job *job = NULL;

    uv_mutex_lock(&in->lock);
    while (!in->is_broken && (job = first_ready(in)) == NULL &&
           !(in->is_closing && in->is_written))
        uv_cond_wait(&in->reader_wake, &in->lock);
    uv_mutex_unlock(&in->lock);
    return job;
}

static void put_back(stg_request_queue *in, stg_job *job)
{
    uv_mutex_lock(&in->lock);
    stg_list_push(&in->reads, &job->link);
    uv_mutex_unlock(&in->lock);
}

static int run(stg_store_reader *r, stg_job *job)
{
    if (job->kind == STG_JOB_FETCH)
        return stg_rows_fetch(
            job->fetch.is_replay ? r->fetch_replays : r->fetch, job->fetch.lane,
            &job->fetch.after, job->fetch.rows_max, job->fetch.claimed,
            &job->fetch.found);
    return stg_queue_read(r->read, job->read.from, job->read.bytes_max,
                          &job->read.found);
}

/* Flow hears of a replay before it sees its rows. */
static void answer(stg_request_queue *in, stg_job *job)
{
    if (job->kind == STG_JOB_FETCH) {
        uv_mutex_lock(&in->lock);
        while (in->is_replaying && !in->is_broken)
            uv_cond_wait(&in->reader_wake, &in->lock);
        uv_mutex_unlock(&in->lock);
    }
    stg_request_queue_answer(in, job);
}

void stg_store_reader_run(void *reader)
{
    stg_store_reader *r = reader;
    stg_error why;
    stg_job *job;

    stg_thread_name("store-reader");
    while ((job = take(r->in)) != NULL) {
        int rc;

        do
            rc = run(r, job);
        while (rc != SQLITE_OK && stg_store_again(&r->again, r->db, rc));
        if (rc != SQLITE_OK)
            stg_job_free(job);
        if (rc == STG_SQL_AWAY)
            break;
        if (rc != SQLITE_OK) {
            stg_sql_words(&why, r->o->path, "cannot be read", r->db, rc);
            stg_request_queue_break(r->in, &why);
            break;
        }
        if (job->kind == STG_JOB_READ && job->read.waits &&
            job->read.found.count == 0)
            put_back(r->in, job);
        else
            answer(r->in, job);
    }
    stg_sql_close(r->db);
    r->db = NULL;
    job = stg_job_new(STG_JOB_ENDED, NULL, 0);
    if (job == NULL)
        abort();
    uv_mutex_lock(&r->in->lock);
    r->in->has_reader = false;
    uv_cond_signal(&r->in->writer_wake);
    uv_mutex_unlock(&r->in->lock);
    stg_request_queue_answer(r->in, job);
}

int stg_store_reader_open(stg_store_reader *r)
{
    int rc =
        stg_store_connect_again(&r->again, r->in, &r->db, r->url, r->o->path);

    if (rc == SQLITE_OK && r->url == NULL)
        rc = stg_queue_prepare_read(r->db, &r->read);
    if (rc == SQLITE_OK)
        rc = stg_rows_prepare_fetch(r->db, false, &r->fetch);
    return rc == SQLITE_OK
               ? stg_rows_prepare_fetch(r->db, true, &r->fetch_replays)
               : rc;
}

void stg_store_reader_free(stg_store_reader *r)
{
    stg_sql_close(r->db);
}
