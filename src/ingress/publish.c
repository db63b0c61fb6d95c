#include "ingress/internal.h"

static void count_waiting(stg_publication *p)
{
    p->ingress->view.waiting += (uint32_t)p->count;
    p->client->waiting += (uint32_t)p->count;
}

static void uncount_waiting(stg_publication *p)
{
    p->ingress->view.waiting -= (uint32_t)p->count;
    p->client->waiting -= (uint32_t)p->count;
}

static void count_messages(stg_ingress_view *v, const stg_publication *p,
                           const stg_append_answer *answers)
{
    for (size_t i = 0; i < p->count; i++)
        if (answers[i].is_repeat)
            v->repeats++;
        else
            v->accepted++;
}

/* Without memory for the ids the message is stored all the same: a 503 has the
 * producer send it again, and its key makes that a repeat. */
static void tell_accepted(const stg_publication *p,
                          const stg_append_answer *answers)
{
    if (stg_answer_ids(p->caller, p, answers))
        return;
    // It is there; the producer finds out by its key.
    stg_problem_set(&p->caller->problem, 503, 0,
                    "accepted, and no memory to say so");
    stg_answer_caller(p->caller);
}

static void refuse_conflict(const stg_publication *p, size_t at)
{
    static const char why[] =
        "the idempotency key came before, with another message";
    size_t line = p->batch.count > 0 ? p->batch.lines[at] : 0;

    if (line > 0)
        stg_problem_set(&p->caller->problem, 409, line, "line %zu: %s", line,
                        why);
    else
        stg_problem_set(&p->caller->problem, 409, 0, "%s", why);
}

/* After a failed commit nobody knows whether the message is stored: the answer
 * says so, and does not guess. */
static void refuse(const stg_publication *p, stg_appended how, size_t at)
{
    stg_problem *why = &p->caller->problem;

    if (how == STG_APPEND_CONFLICT)
        refuse_conflict(p, at);
    else if (how == STG_APPEND_FULL)
        stg_problem_set(why, 503, 0, "the log is full");
    else
        stg_problem_set(why, 503, 0,
                        "the commit failed: the message may be there, or not; "
                        "with an Idempotency-Key it is safe to send it again");
    stg_answer_caller(p->caller);
}

/* Its caller may be gone by now, and has published all the same. */
static void settle(stg_publication *p, stg_appended how,
                   const stg_append_answer *answers, size_t at)
{
    uncount_waiting(p);
    stg_list_remove(&p->link);
    if (how == STG_APPENDED)
        count_messages(&p->ingress->view, p, answers);
    if (p->caller == NULL)
        return;
    p->caller->publication = NULL;
    if (how == STG_APPENDED)
        tell_accepted(p, answers);
    else
        refuse(p, how, at);
}

/* p->ingress is NULL where the ingress was closed before the store was done. */
static void done(void *ctx, stg_appended how, const stg_append_answer *answers,
                 size_t at)
{
    stg_publication *p = ctx;
    stg_ingress *g = p->ingress;

    if (g != NULL)
        settle(p, how, answers, at);
    stg_publication_free(p);
    if (g != NULL)
        stg_ingress_settle(g);
}

/* p lives until done(), however soon its caller goes. */
void stg_publish(stg_publication *p)
{
    stg_ingress *g = p->ingress;

    p->caller->publication = p;
    stg_list_push(&g->publications, &p->link);
    count_waiting(p);
    g->options.append(g->options.ctx, p->messages, p->count, done, p);
}

/* The store still reads the messages, so p stays until done(); the ingress and
 * the client do not. */
void stg_publication_leave(stg_publication *p)
{
    uncount_waiting(p);
    stg_ingress_release(p->ingress, p->client, p->held);
    p->held = 0;
    stg_list_remove(&p->link);
    stg_origin_release(p->client);
    if (p->caller != NULL)
        p->caller->publication = NULL;
    p->caller = NULL;
    p->ingress = NULL;
}
