/* Commands and events between the loop and the threads that speak to Kafka.
 *
 * A thread has one queue of commands and sleeps on it; both threads send events
 * to one queue of the loop. Both are first in, first out, so that what the loop
 * hears of a partition is in the order in which it happened.
 *
 * The trap: a wake-up must not be lost between two sleeps. is_woken stays set
 * until the commands are taken, and librdkafka's callback sets it, too, without
 * a command. uv_async_send() may merge calls: the loop takes all events at
 * once. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kafka/internal.h"

/* Ends the process without memory, as librdkafka itself does: no caller has to
 * go on with half an event. */
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

bool stg_kafka_commands_init(stg_kafka_commands *b)
{
    stg_list_init(&b->list);
    if (uv_mutex_init(&b->lock) != 0)
        return false;
    if (uv_cond_init(&b->wake) == 0)
        return true;
    uv_mutex_destroy(&b->lock);
    return false;
}

void stg_kafka_commands_free(stg_kafka_commands *b)
{
    stg_link *link;

    while ((link = stg_list_shift(&b->list)) != NULL)
        free(STG_HOLDER(link, stg_kafka_command, link));
    uv_cond_destroy(&b->wake);
    uv_mutex_destroy(&b->lock);
}

void stg_kafka_commands_post(stg_kafka_commands *b,
                             const stg_kafka_command *ask)
{
    stg_kafka_command *copy = stg_kafka_memory(1, sizeof *copy);

    *copy = *ask;
    copy->link = (stg_link){NULL, NULL};
    uv_mutex_lock(&b->lock);
    stg_list_push(&b->list, &copy->link);
    b->is_woken = true;
    uv_cond_signal(&b->wake);
    uv_mutex_unlock(&b->lock);
}

/* Commands that were posted before are still taken: the last commits are among
 * them. */
void stg_kafka_commands_close(stg_kafka_commands *b)
{
    uv_mutex_lock(&b->lock);
    b->is_closing = b->is_woken = true;
    uv_cond_signal(&b->wake);
    uv_mutex_unlock(&b->lock);
}

void stg_kafka_commands_wake(rd_kafka_t *rk, void *box)
{
    stg_kafka_commands *b = box;

    (void)rk;
    uv_mutex_lock(&b->lock);
    b->is_woken = true;
    uv_cond_signal(&b->wake);
    uv_mutex_unlock(&b->lock);
}

bool stg_kafka_commands_take(stg_kafka_commands *b, stg_list *asks)
{
    stg_link *link;
    bool goes_on;

    uv_mutex_lock(&b->lock);
    while ((link = stg_list_shift(&b->list)) != NULL)
        stg_list_push(asks, link);
    b->is_woken = false;
    goes_on = !b->is_closing;
    uv_mutex_unlock(&b->lock);
    return goes_on;
}

void stg_kafka_commands_wait(stg_kafka_commands *b, stg_ns until)
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

stg_kafka_event *stg_kafka_event_new(stg_kafka_event_kind kind)
{
    stg_kafka_event *n = stg_kafka_memory(1, sizeof *n);

    n->kind = kind;
    return n;
}

void stg_kafka_event_free(stg_kafka_event *n)
{
    stg_kafka_batch_free(n->batch);
    free(n->assigned);
    free(n->places);
    free(n->compared);
    free(n->text);
    free(n);
}

void stg_kafka_events_send(stg_kafka_events *p, stg_kafka_event *n)
{
    uv_mutex_lock(&p->lock);
    stg_list_push(&p->list, &n->link);
    uv_mutex_unlock(&p->lock);
    uv_async_send(&p->arrived);
}

/* By any thread. A text of more than 511 bytes is cut off. */
void stg_kafka_events_report(stg_kafka_events *p,
                             const stg_kafka_report *report, const char *format,
                             ...)
{
    stg_kafka_event *n = stg_kafka_event_new(STG_KAFKA_EVENT_REPORT);
    char text[512];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    n->report = *report;
    n->text = stg_kafka_text(text);
    n->report.text = n->text;
    stg_kafka_events_send(p, n);
}
