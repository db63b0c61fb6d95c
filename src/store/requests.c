/* The queue between the loop and the threads of a store, and what comes back.
 *
 * The loop hears of answers by one handle, and one signal may stand for many of
 * them: so it takes all that there are, again and again, until none is left. Only
 * then it looks whether the store broke, or all threads have ended: whatever was
 * answered before is told before. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "store/internal.h"

/* What was made is unmade in the opposite order. */
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
        goto no_query_wake;
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
no_query_wake:
    uv_cond_destroy(&in->letters_wake);
no_letters_wake:
    uv_cond_destroy(&in->reader_wake);
no_reader_wake:
    uv_cond_destroy(&in->writer_wake);
no_writer_wake:
    uv_mutex_destroy(&in->lock);
    return false;
}

/* Nobody is told: free() alone is what a request that was not answered gets. */
void stg_store_requests_free(stg_list *requests)
{
    stg_link *link;

    while ((link = stg_list_shift(requests)) != NULL) {
        stg_store_request *e = STG_HOLDER(link, stg_store_request, link);

        e->free(e);
    }
}

/* All threads have ended, and the loop's handle is closed. */
void stg_request_queue_free(stg_request_queue *in)
{
    stg_store_requests_free(&in->appends);
    stg_store_requests_free(&in->lanes);
    stg_store_requests_free(&in->writes);
    stg_store_requests_free(&in->looks);
    stg_store_requests_free(&in->pings);
    stg_store_requests_free(&in->reads);
    stg_store_requests_free(&in->answers);
    if (in->group != NULL)
        in->group->request.free(&in->group->request);
    free(in->claimed);
    free(in->backs);
    uv_cond_destroy(&in->query_wake);
    uv_cond_destroy(&in->letters_wake);
    uv_cond_destroy(&in->reader_wake);
    uv_cond_destroy(&in->writer_wake);
    uv_mutex_destroy(&in->lock);
}

/* The list decides the thread: a request that looks goes to the query thread,
 * and any other to the writer. */
void stg_store_request_send(stg_store *s, stg_store_request *e)
{
    bool looks = e->look != NULL;

    uv_mutex_lock(&s->in.lock);
    stg_list_push(looks ? &s->in.looks : &s->in.writes, &e->link);
    uv_cond_signal(looks ? &s->in.query_wake : &s->in.writer_wake);
    uv_mutex_unlock(&s->in.lock);
}

/* Letters of partitions that are new may wait to be copied: dead_groups rises,
 * so that their thread looks again. */
void stg_request_queue_set_claimed(stg_request_queue *in, char *claimed)
{
    uv_mutex_lock(&in->lock);
    free(in->claimed);
    in->claimed = claimed;
    in->dead_groups++;
    uv_cond_signal(&in->letters_wake);
    uv_mutex_unlock(&in->lock);
}

/* Kept until the claim is answered: tell_claims() calls
 * stg_request_queue_forget_back(). */
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

/* All marks with this ctx go: a ctx may be claimed, and taken back, again. */
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

/* The signal may be one with others': the loop takes all that there is. */
void stg_request_queue_answer(stg_request_queue *in, stg_store_request *e)
{
    uv_mutex_lock(&in->lock);
    stg_list_push(&in->answers, &e->link);
    uv_mutex_unlock(&in->lock);
    uv_async_send(&in->answered);
}

void stg_request_queue_answer_all(stg_request_queue *in, stg_list *requests)
{
    uv_mutex_lock(&in->lock);
    stg_list_move(&in->answers, requests);
    uv_mutex_unlock(&in->lock);
    uv_async_send(&in->answered);
}

/* By the writer alone, also within a wait: whoever pings wants to know that its
 * thread comes around. */
void stg_request_queue_answer_pings(stg_request_queue *in)
{
    if (stg_list_is_empty(&in->pings))
        return;
    stg_list_move(&in->answers, &in->pings);
    uv_async_send(&in->answered);
}

/* The loop joins the threads before it closes its handle: so it is still there
 * for the signal. */
void stg_request_queue_leave(stg_request_queue *in)
{
    uv_mutex_lock(&in->lock);
    in->threads--;
    uv_cond_signal(&in->writer_wake);
    uv_mutex_unlock(&in->lock);
    uv_async_send(&in->answered);
}

/* The first reason is kept, for others follow from it. All threads are woken,
 * and end; the writer tells the loop when it has answered what it had. */
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

/* -- troubles -------------------------------------------------------------- */

typedef struct trouble {
    stg_store_request request;
    stg_store_trouble what;
    bool is_over;
    stg_error why;
} trouble;

/* is_away is the loop's copy, so that ask_lane() does not wait for a server
 * that is known to be away. */
static void tell_trouble(stg_store_request *e)
{
    const trouble *t = STG_HOLDER(&e->link, trouble, request.link);
    stg_store *s = e->s;

    if (t->what == STG_STORE_AWAY)
        s->is_away = !t->is_over;
    if (s->o.troubled != NULL)
        s->o.troubled(s->o.ctx, t->what, t->is_over ? NULL : &t->why);
}

static void free_trouble(stg_store_request *e)
{
    free(STG_HOLDER(&e->link, trouble, request.link));
}

/* Without memory it is not told: it is tried again, and told another time. */
void stg_request_queue_tell(stg_request_queue *in, stg_store_trouble what,
                            const char *format, ...)
{
    trouble *t = calloc(1, sizeof *t);
    va_list args;

    if (t == NULL)
        return;
    t->request.tell = tell_trouble;
    t->request.free = free_trouble;
    t->what = what;
    t->is_over = format == NULL;
    if (format != NULL) {
        va_start(args, format);
        vsnprintf(t->why.text, sizeof t->why.text, format, args);
        va_end(args);
    }
    stg_request_queue_answer(in, &t->request);
}

bool stg_request_queue_is_broken(stg_request_queue *in)
{
    bool is_broken;

    uv_mutex_lock(&in->lock);
    is_broken = in->is_broken;
    uv_mutex_unlock(&in->lock);
    return is_broken;
}

/* -- on the loop ----------------------------------------------------------- */

/* Answers the appends that came in since it broke, then tells the end. Nothing
 * is promised of them: the process ends, and whoever sent them sends again. */
static void end_broken(stg_store *s)
{
    stg_list appends;
    stg_link *link;

    stg_list_init(&appends);
    uv_mutex_lock(&s->in.lock);
    stg_list_move(&appends, &s->in.appends);
    uv_mutex_unlock(&s->in.lock);
    while ((link = stg_list_shift(&appends)) != NULL) {
        stg_append_request *a =
            STG_HOLDER(link, stg_append_request, request.link);

        a->how = STG_APPEND_UNKNOWN;
        a->request.s = s;
        a->request.tell(&a->request);
        a->request.free(&a->request);
    }
    s->is_over = true;
    if (s->o.broken != NULL)
        s->o.broken(s->o.ctx, &s->in.broken);
}

/* After the store broke nothing is told any more, and requests are freed. */
static void tell(stg_store *s, stg_store_request *e)
{
    e->s = s;
    if (!s->is_over)
        e->tell(e);
    e->free(e);
}

/* The state is read with the last, empty list, under one lock: an answer that
 * was given before it cannot be missed. */
void stg_store_deliver(uv_async_t *async)
{
    stg_store *s = async->data;
    bool has_broken, has_ended;
    stg_list answers;
    stg_link *link;

    stg_list_init(&answers);
    for (;;) {
        uv_mutex_lock(&s->in.lock);
        stg_list_move(&answers, &s->in.answers);
        s->first = s->in.view.first;
        s->next = s->in.next;
        has_broken = s->in.is_answered;
        has_ended = s->in.threads == 0;
        uv_mutex_unlock(&s->in.lock);
        if (stg_list_is_empty(&answers))
            break;
        while ((link = stg_list_shift(&answers)) != NULL)
            tell(s, STG_HOLDER(link, stg_store_request, link));
    }
    if (has_broken && !s->is_over)
        end_broken(s);
    if (has_ended && s->closed != NULL)
        stg_store_end(s);
}
