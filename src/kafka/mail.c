/* Commands and events between the loop and the threads that speak to Kafka. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kafka/internal.h"

void *stg_kafka_memory(size_t count, size_t size)
{
    void *bytes = calloc(count, size);

    if (bytes == NULL)
        abort();
    return bytes;
}

char *stg_kafka_text(const char *text)
{
    size_t size = strlen(text) + 1;

    return memcpy(stg_kafka_memory(1, size), text, size);
}

/* -- to a thread ----------------------------------------------------------- */

bool stg_kafka_box_init(stg_kafka_box *b)
{
    stg_list_init(&b->asks);
    if (uv_mutex_init(&b->lock) != 0)
        return false;
    if (uv_cond_init(&b->wake) == 0)
        return true;
    uv_mutex_destroy(&b->lock);
    return false;
}

void stg_kafka_box_free(stg_kafka_box *b)
{
    stg_link *link;

    while ((link = stg_list_shift(&b->asks)) != NULL)
        free(STG_HOLDER(link, stg_kafka_ask, link));
    uv_cond_destroy(&b->wake);
    uv_mutex_destroy(&b->lock);
}

void stg_kafka_box_post(stg_kafka_box *b, const stg_kafka_ask *ask)
{
    stg_kafka_ask *copy = stg_kafka_memory(1, sizeof *copy);

    *copy = *ask;
    copy->link = (stg_link){NULL, NULL};
    uv_mutex_lock(&b->lock);
    stg_list_push(&b->asks, &copy->link);
    b->is_woken = true;
    uv_cond_signal(&b->wake);
    uv_mutex_unlock(&b->lock);
}

void stg_kafka_box_close(stg_kafka_box *b)
{
    uv_mutex_lock(&b->lock);
    b->is_closing = b->is_woken = true;
    uv_cond_signal(&b->wake);
    uv_mutex_unlock(&b->lock);
}

void stg_kafka_box_wake(rd_kafka_t *rk, void *box)
{
    stg_kafka_box *b = box;

    (void)rk;
    uv_mutex_lock(&b->lock);
    b->is_woken = true;
    uv_cond_signal(&b->wake);
    uv_mutex_unlock(&b->lock);
}

bool stg_kafka_box_take(stg_kafka_box *b, stg_list *asks)
{
    stg_link *link;
    bool goes_on;

    uv_mutex_lock(&b->lock);
    while ((link = stg_list_shift(&b->asks)) != NULL)
        stg_list_push(asks, link);
    b->is_woken = false;
    goes_on = !b->is_closing;
    uv_mutex_unlock(&b->lock);
    return goes_on;
}

void stg_kafka_box_wait(stg_kafka_box *b, stg_ns until)
{
    uv_mutex_lock(&b->lock);
    while (!b->is_woken) {
        stg_ns now = stg_kafka_now();

        if (now >= until ||
            uv_cond_timedwait(&b->wake, &b->lock, until - now) == UV_ETIMEDOUT)
            break;
    }
    uv_mutex_unlock(&b->lock);
}

/* -- to the loop ----------------------------------------------------------- */

stg_kafka_note *stg_kafka_note_new(stg_kafka_note_kind kind)
{
    stg_kafka_note *n = stg_kafka_memory(1, sizeof *n);

    n->kind = kind;
    return n;
}

void stg_kafka_note_free(stg_kafka_note *n)
{
    stg_kafka_batch_free(n->batch);
    free(n->given);
    free(n->places);
    free(n->compared);
    free(n->text);
    free(n);
}

void stg_kafka_post_send(stg_kafka_post *p, stg_kafka_note *n)
{
    uv_mutex_lock(&p->lock);
    stg_list_push(&p->notes, &n->link);
    uv_mutex_unlock(&p->lock);
    uv_async_send(&p->arrived);
}

void stg_kafka_post_tell(stg_kafka_post *p, const stg_kafka_told *told,
                         const char *format, ...)
{
    stg_kafka_note *n = stg_kafka_note_new(STG_KAFKA_NOTE_TOLD);
    char text[512];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    n->told = *told;
    n->text = stg_kafka_text(text);
    n->told.text = n->text;
    stg_kafka_post_send(p, n);
}
