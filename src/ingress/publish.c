/* Messages of a request to the log, and what comes of them: an answer with ids, or
 * why there are none. */
#include <string.h>

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

/* What is answered. `is_ones`: it is the message's own fault, and of a batch its
 * line is told. `is_partly`: other lines of a batch may be there. */
typedef struct refusal {
    int status;
    bool is_ones, is_partly;
    const char *why;
} refusal;

static const refusal refusals[] = {
    [STG_APPEND_CONFLICT] = {409, true, false,
                             "the idempotency key came before, with another "
                             "message"},
    [STG_APPEND_FULL] = {503, false, false, "the log is full"},
    [STG_APPEND_UNKNOWN] = {503, false, false,
                            "the commit failed: the message may be there, or "
                            "not; with an Idempotency-Key it is safe to send "
                            "it again"},
    [STG_APPEND_KEYED] = {400, true, false,
                          "a hub whose source is Kafka keeps idempotency keys "
                          "in PostgreSQL only, and this one has a file: leave "
                          "the key out (stagger send: --no-id), or see "
                          "store.path"},
    [STG_APPEND_NO_TOPIC] = {404, false, false,
                             "there is no such topic: expected one that the "
                             "hub reads, in ?topic="},
    [STG_APPEND_WHICH_TOPIC] = {400, false, false,
                                "the hub reads several topics: expected one of "
                                "them in ?topic="},
    [STG_APPEND_TOO_LARGE] =
        {413, true, true, "larger than its topic takes (max.message.bytes)"},
    [STG_APPEND_REFUSED] = {400, true, true,
                            "its topic refuses it: a record without a key in a "
                            "compacted topic, or against a policy of the "
                            "brokers"},
    [STG_APPEND_BUSY] = {503, false, true,
                         "too many messages wait for the brokers"},
    [STG_APPEND_AWAY] = {503, false, true,
                         "no broker has taken the message: it is not there; "
                         "see kafka-trouble in the hub's log"},
    [STG_APPEND_UNACKNOWLEDGED] =
        {503, false, true,
         "no broker has acknowledged the message in "
         "time: it may be there, or not; with an "
         "Idempotency-Key it is safe to send it again"},
};

static void refuse(const stg_publication *p, stg_appended how, size_t at)
{
    const refusal *r = &refusals[how];
    stg_problem *why = &p->caller->problem;
    const char *others =
        r->is_partly && p->count > 1 ? "; other lines may be there" : "";

    if (r->is_ones && p->batch.count > 0)
        stg_problem_set(why, r->status, p->batch.lines[at], "line %zu: %s%s",
                        p->batch.lines[at], r->why, others);
    else
        stg_problem_set(why, r->status, 0, "%s%s", r->why, others);
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

/* The value of ?topic=, decoded into the ingress' scratch: it was checked.
 * NULL: there is none. */
static const char *topic_of(const stg_caller *c)
{
    stg_span query = c->in.request.parts[STG_PART_QUERY], name, value;
    char *text = stg_ingress_of(c)->path;
    size_t size = 0;

    while (stg_query_take(&query, &name, &value)) {
        if (!(name.size == 5 && memcmp(name.at, "topic", 5) == 0))
            continue;
        (void)stg_request_decode(value, true, text, &size);
        text[size] = '\0';
        return text;
    }
    return NULL;
}

/* p lives until done(), however soon its caller goes. */
void stg_publish(stg_publication *p)
{
    stg_ingress *g = p->ingress;
    const stg_webhook *w = p->caller->webhook;
    const char *topic = w != NULL ? w->topic : topic_of(p->caller);

    p->caller->publication = p;
    stg_list_push(&g->publications, &p->link);
    count_waiting(p);
    g->options.append(g->options.ctx, topic, p->messages, p->count, done, p);
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
