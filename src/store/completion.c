/* Answers: what the threads have done, told on the loop. */
#include "store/internal.h"

/* The name of a lane that is no more is free; its number is not. */
static void forget_lanes(stg_store *s, const stg_group *g)
{
    for (size_t i = 0; i < g->change_count; i++)
        if (g->changes[i].kind == STG_CHANGE_FORGET)
            stg_lanes_forget(&s->lanes, g->changes[i].lane);
}

/* A message from before a restore has an id of its time. */
static void name_repeats(const stg_store *s, stg_job *job)
{
    for (size_t i = 0; i < job->append.count && s->epochs.count > 1; i++)
        if (job->append.how == STG_APPENDED && job->answers[i].is_repeat)
            job->answers[i].epoch =
                stg_epochs_at(&s->epochs, job->answers[i].position);
}

/* What was let go since it was asked for. */
static void drop_unclaimed(const stg_store *s, stg_fetched *f)
{
    size_t kept = 0;

    for (size_t i = 0; i < f->count; i++) {
        const stg_partition_row *p =
            stg_partitions_get(&s->partitions, f->rows[i].partition);

        if (f->rows[i].partition == 0 || (p != NULL && p->is_claimed))
            f->rows[kept++] = f->rows[i];
    }
    f->count = kept;
}

/* How a call ended; the job's own memory is lent for it. */
static void call_back(stg_store *s, stg_job *job)
{
    switch (job->kind) {
    case STG_JOB_APPEND:
        name_repeats(s, job);
        job->append.done(job->ctx, job->append.how, job->answers,
                         job->append.at);
        break;
    case STG_JOB_GROUP:
        if (job->group.how == STG_STORED)
            forget_lanes(s, job->group.group);
        job->group.done(job->ctx, job->group.how, job->group.fenced,
                        job->group.fenced_count);
        break;
    case STG_JOB_READ:
        job->read.done(
            job->ctx, job->read.found.records, job->read.found.count,
            job->read.found.count == 0
                ? job->read.from
                : job->read.found.records[job->read.found.count - 1].position +
                      1);
        break;
    case STG_JOB_FETCH:
        if (s->url != NULL)
            drop_unclaimed(s, &job->fetch.found);
        job->fetch.done(job->ctx, job->fetch.lane, job->fetch.is_replay,
                        job->fetch.found.rows, job->fetch.found.count,
                        job->fetch.found.is_all);
        break;
    case STG_JOB_PING:
        job->ponged(job->ctx);
        break;
    case STG_JOB_REQUEST:
        job->request->tell(job->request);
        break;
    case STG_JOB_RETAINING:
        if (s->o.retaining != NULL)
            s->o.retaining(s->o.ctx, job->position);
        break;
    case STG_JOB_TROUBLE:
        if (job->trouble.what == STG_STORE_AWAY)
            s->is_away = job->trouble.error != NULL;
        if (s->o.troubled != NULL)
            s->o.troubled(s->o.ctx, job->trouble.what, job->trouble.error);
        break;
    case STG_JOB_LANE:
    case STG_JOB_BROKEN:
    case STG_JOB_ENDED:
        break;
    }
}

/* Answers the requests that came in since it broke, then tells the end. */
static void end_broken(stg_store *s, const stg_error *why)
{
    stg_list appends;
    stg_link *link;

    stg_list_init(&appends);
    uv_mutex_lock(&s->in.lock);
    stg_jobs_move(&appends, &s->in.appends);
    uv_mutex_unlock(&s->in.lock);
    while ((link = stg_list_shift(&appends)) != NULL) {
        stg_job *job = STG_HOLDER(link, stg_job, link);

        job->append.how = STG_APPEND_UNKNOWN;
        call_back(s, job);
        stg_job_free(job);
    }
    s->is_over = true;
    if (s->o.broken != NULL)
        s->o.broken(s->o.ctx, why);
}

static void handle(stg_store *s, stg_job *job)
{
    if (job->kind == STG_JOB_ENDED)
        s->threads--;
    else if (s->is_over)
        ; // nothing else is told
    else if (job->kind == STG_JOB_BROKEN)
        end_broken(s, job->error);
    else
        call_back(s, job);
    stg_job_free(job);
}

/* Everything, also what comes while it calls back: one signal may stand for
 * many answers. */
void stg_store_answer(uv_async_t *async)
{
    stg_store *s = async->data;
    stg_list answers;
    stg_link *link;

    stg_list_init(&answers);
    for (;;) {
        uv_mutex_lock(&s->in.lock);
        stg_jobs_move(&answers, &s->in.answers);
        s->first = s->in.view.first;
        s->next = s->in.next;
        uv_mutex_unlock(&s->in.lock);
        if (stg_list_first(&answers) == NULL)
            break;
        while ((link = stg_list_shift(&answers)) != NULL)
            handle(s, STG_HOLDER(link, stg_job, link));
    }
    if (s->threads == 0 && s->closed != NULL)
        stg_store_end(s);
}
