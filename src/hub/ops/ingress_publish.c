#include "hub/ops/ingress_inside.h"

static void count_waiting(stg_publication *p)
{
    p->ingress->view.waiting += (uint32_t)p->count;
    p->caller->origin->waiting += (uint32_t)p->count;
}

static void uncount_waiting(stg_publication *p)
{
    p->ingress->view.waiting -= (uint32_t)p->count;
    p->caller->origin->waiting -= (uint32_t)p->count;
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

static void tell_accepted(stg_publication *p, const stg_append_answer *answers)
{
    stg_caller *c = p->caller;

    count_messages(&p->ingress->view, p, answers);
    // It is there; the producer finds out by its key.
    if (!stg_answer_ids(p, answers))
        stg_problem_set(&c->problem, 503, 0,
                        "accepted, and no memory to say so");
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

static void settle(stg_publication *p, stg_appended how,
                   const stg_append_answer *answers, size_t at)
{
    switch (how) {
    case STG_APPENDED:
        tell_accepted(p, answers);
        break;
    case STG_APPEND_CONFLICT:
        refuse_conflict(p, at);
        break;
    case STG_APPEND_FULL:
        stg_problem_set(&p->caller->problem, 503, 0, "the log is full");
        break;
    case STG_APPEND_UNKNOWN:
        stg_problem_set(&p->caller->problem, 503, 0,
                        "the commit failed: the message may be there, or not; "
                        "with an Idempotency-Key it is safe to send it again");
        break;
    }
}

static void done(void *ctx, stg_appended how, const stg_append_answer *answers,
                 size_t at)
{
    stg_publication *p = ctx;
    stg_caller *c = p->caller;

    if (c != NULL) {
        settle(p, how, answers, at);
        uncount_waiting(p);
        c->publication = NULL;
        stg_answer_resume(c);
    }
    stg_publication_free(p);
}

void stg_publish(stg_publication *p)
{
    stg_ingress *g = p->ingress;
    stg_caller *c = p->caller;

    c->publication = p;
    count_waiting(p);
    stg_caller_enter(c, STG_PHASE_WAIT);
    MHD_suspend_connection(c->connection);
    g->options.append(g->options.ctx, p->messages, p->count, done, p);
}

void stg_publication_leave(stg_publication *p)
{
    uncount_waiting(p);
    stg_ingress_release(p->ingress, p->held);
    p->held = 0;
    p->caller->publication = NULL;
    p->caller = NULL;
    p->ingress = NULL;
}
