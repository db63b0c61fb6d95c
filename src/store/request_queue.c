#include "store/request_queue.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

bool stg_request_queue_init(stg_request_queue *in, uv_loop_t *loop,
                            uv_async_cb answered)
{
    if (uv_mutex_init(&in->lock) != 0)
        return false;
    if (uv_cond_init(&in->writer_wake) != 0)
        goto no_writer_wake;
    if (uv_cond_init(&in->reader_wake) != 0)
        goto no_reader_wake;
    if (uv_cond_init(&in->letters_wake) != 0)
        goto no_letters_wake;
    if (uv_cond_init(&in->query_wake) != 0)
        goto no_desk_wake;
    stg_list_init(&in->appends);
    stg_list_init(&in->lanes);
    stg_list_init(&in->writes);
    stg_list_init(&in->looks);
    stg_list_init(&in->pings);
    stg_list_init(&in->reads);
    stg_list_init(&in->answers);
    if (uv_async_init(loop, &in->answered, answered) == 0)
        return true;

    uv_cond_destroy(&in->query_wake);
no_desk_wake:
    uv_cond_destroy(&in->letters_wake);
no_letters_wake:
    uv_cond_destroy(&in->reader_wake);
no_reader_wake:
    uv_cond_destroy(&in->writer_wake);
no_writer_wake:
    uv_mutex_destroy(&in->lock);
    return false;
}

void stg_request_queue_free(stg_request_queue *in)
{
    stg_jobs_free(&in->appends);
    stg_jobs_free(&in->lanes);
    stg_jobs_free(&in->writes);
    stg_jobs_free(&in->looks);
    stg_jobs_free(&in->pings);
    stg_jobs_free(&in->reads);
    stg_jobs_free(&in->answers);
    if (in->group != NULL)
        stg_job_free(in->group);
    free(in->claimed);
    free(in->backs);
    uv_cond_destroy(&in->query_wake);
    uv_cond_destroy(&in->letters_wake);
    uv_cond_destroy(&in->reader_wake);
    uv_cond_destroy(&in->writer_wake);
    uv_mutex_destroy(&in->lock);
}

/* There may be letters of those that are new. */
void stg_request_queue_set_claimed(stg_request_queue *in, char *claimed)
{
    uv_mutex_lock(&in->lock);
    free(in->claimed);
    in->claimed = claimed;
    in->dead_groups++;
    uv_cond_signal(&in->letters_wake);
    uv_mutex_unlock(&in->lock);
}

bool stg_request_queue_take_back(stg_request_queue *in, void *ctx)
{
    size_t room = in->back_room == 0 ? 16 : 2 * in->back_room;
    void **backs = in->backs;

    uv_mutex_lock(&in->lock);
    if (in->back_count == in->back_room) {
        backs = realloc(in->backs, room * sizeof *backs);
        if (backs != NULL) {
            in->backs = backs;
            in->back_room = room;
        }
    }
    if (backs != NULL)
        in->backs[in->back_count++] = ctx;
    uv_mutex_unlock(&in->lock);
    return backs != NULL;
}

bool stg_request_queue_is_taken_back(const stg_request_queue *in,
                                     const void *ctx)
{
    for (size_t i = 0; i < in->back_count; i++)
        if (in->backs[i] == ctx)
            return true;
    return false;
}

void stg_request_queue_forget_back(stg_request_queue *in, const void *ctx)
{
    size_t kept = 0;

    uv_mutex_lock(&in->lock);
    for (size_t i = 0; i < in->back_count; i++)
        if (in->backs[i] != ctx)
            in->backs[kept++] = in->backs[i];
    in->back_count = kept;
    uv_mutex_unlock(&in->lock);
}

void stg_request_queue_answer(stg_request_queue *in, stg_job *job)
{
    uv_mutex_lock(&in->lock);
    stg_list_push(&in->answers, &job->link);
    uv_mutex_unlock(&in->lock);
    uv_async_send(&in->answered);
}

void stg_request_queue_answer_all(stg_request_queue *in, stg_list *jobs)
{
    uv_mutex_lock(&in->lock);
    stg_jobs_move(&in->answers, jobs);
    uv_mutex_unlock(&in->lock);
    uv_async_send(&in->answered);
}

void stg_request_queue_answer_pings(stg_request_queue *in)
{
    if (stg_list_first(&in->pings) == NULL)
        return;
    stg_jobs_move(&in->answers, &in->pings);
    uv_async_send(&in->answered);
}

void stg_request_queue_break(stg_request_queue *in, const stg_error *why)
{
    uv_mutex_lock(&in->lock);
    if (!in->is_broken) {
        in->is_broken = true;
        in->broken = *why;
    }
    uv_cond_signal(&in->writer_wake);
    uv_cond_signal(&in->reader_wake);
    uv_cond_signal(&in->letters_wake);
    uv_cond_signal(&in->query_wake);
    uv_mutex_unlock(&in->lock);
}

/* Without memory it is not told: it is tried again, and told another time. */
void stg_request_queue_tell(stg_request_queue *in, stg_store_trouble what,
                            const char *format, ...)
{
    stg_job *notice = stg_job_new(STG_JOB_TROUBLE, NULL, 0);
    va_list args;

    if (notice == NULL)
        return;
    notice->trouble.what = what;
    if (format != NULL) {
        notice->trouble.error = calloc(1, sizeof *notice->trouble.error);
        if (notice->trouble.error == NULL) {
            stg_job_free(notice);
            return;
        }
        va_start(args, format);
        vsnprintf(notice->trouble.error->text,
                  sizeof notice->trouble.error->text, format, args);
        va_end(args);
    }
    stg_request_queue_answer(in, notice);
}

bool stg_request_queue_is_broken(stg_request_queue *in)
{
    bool is_broken;

    uv_mutex_lock(&in->lock);
    is_broken = in->is_broken;
    uv_mutex_unlock(&in->lock);
    return is_broken;
}
