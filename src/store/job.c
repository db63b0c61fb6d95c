#include "store/job.h"

#include <stdlib.h>

stg_job *stg_job_new(stg_job_kind kind, void *ctx, size_t answers)
{
    stg_job *job = calloc(1, sizeof *job + answers * sizeof(stg_append_answer));

    if (job != NULL) {
        job->kind = kind;
        job->ctx = ctx;
    }
    return job;
}

void stg_job_free(stg_job *job)
{
    if (job->kind == STG_JOB_GROUP)
        free(job->group.fenced);
    if (job->kind == STG_JOB_READ)
        stg_chunk_free(&job->read.found);
    if (job->kind == STG_JOB_FETCH)
        stg_fetched_free(&job->fetch.found);
    if (job->kind == STG_JOB_FETCH)
        free(job->fetch.claimed);
    if (job->kind == STG_JOB_LANE) {
        free(job->lane.name);
        free(job->lane.url);
    }
    if (job->kind == STG_JOB_REQUEST)
        job->request->free(job->request);
    if (job->kind == STG_JOB_TROUBLE)
        free(job->trouble.error);
    if (job->kind == STG_JOB_BROKEN)
        free(job->error);
    free(job);
}

void stg_jobs_free(stg_list *jobs)
{
    stg_link *link;

    while ((link = stg_list_shift(jobs)) != NULL)
        stg_job_free(STG_HOLDER(link, stg_job, link));
}

void stg_jobs_move(stg_list *to, stg_list *from)
{
    stg_link *first = stg_list_first(from), *last = stg_list_last(from);

    if (first == NULL)
        return;
    first->prev = to->ends.prev;
    to->ends.prev->next = first;
    last->next = &to->ends;
    to->ends.prev = last;
    stg_list_init(from);
}
