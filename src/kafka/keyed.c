/* What is posted with idempotency keys: reserved in the store, written with the id
 * of the reservation, and placed there. See store/published.h.
 *
 *     reserving   what has a place is a repeat, and not written again; what has
 *                 none is written, also if it was reserved before: of that write
 *                 nobody knows what became
 *     writing     by the producer
 *     placing     the first place of an id is the message's, whoever wrote it
 *
 * Whoever reads a record with an id places it, too, before it is delivered: so a
 * second record is left out, whichever was read or acknowledged first.
 *
 * Calls that come while the store works on others are asked for together. A call
 * is in one list from its begin to its end, but for the time when the producer has
 * it, which answers in any case; the store need not: what it has not answered
 * ends with the source. */
#include <stdlib.h>
#include <string.h>

#include "kafka/assignment.h"

static stg_kafka_publication *publication_of(stg_link *link)
{
    return STG_HOLDER(link, stg_kafka_publication, link);
}

static bool has_key(const stg_kafka_publication *p, size_t i)
{
    return p->messages[i].idempotency_key.size > 0;
}

static bool is_there(const stg_kafka_publication *p, size_t i)
{
    return has_key(p, i) && p->reserved[i].position != STG_NO_POSITION;
}

/* It is to be placed. */
static bool is_new(const stg_kafka_publication *p, size_t i)
{
    return has_key(p, i) && !is_there(p, i) &&
           p->results[i].how == STG_APPENDED;
}

static void fail(stg_kafka_publication *p, stg_appended how)
{
    for (size_t i = 0; i < p->count; i++)
        p->results[i].how = how;
    stg_kafka_publication_end(p);
}

/* How many of those that wait the store is to be asked for. */
static size_t count_all(const stg_list *l,
                        bool (*is_asked)(const stg_kafka_publication *p,
                                         size_t i))
{
    size_t count = 0;

    for (stg_link *at = stg_list_first(l); at != NULL;
         at = stg_list_next(l, at)) {
        const stg_kafka_publication *p = publication_of(at);

        for (size_t i = 0; i < p->count; i++)
            count += is_asked(p, i);
    }
    return count;
}

static void fail_all(stg_list *l, stg_appended how)
{
    stg_link *link;

    while ((link = stg_list_shift(l)) != NULL)
        fail(publication_of(link), how);
}

/* -- placing --------------------------------------------------------------- */

static void ask_places(stg_kafka_source *s);

/* Taken from the list first, here and for keys: an answer may bring the next call,
 * which is asked for at once. */

/* all NULL: the store could not say where they are, and who published them does not
 * know either. */
static void placed(void *ctx, const stg_reserved *all, size_t count)
{
    stg_kafka_source *s = ctx;
    stg_list ready;
    size_t next = 0;
    stg_link *link;

    (void)count;
    stg_list_init(&ready);
    stg_list_move(&ready, &s->placing.asked);
    while ((link = stg_list_shift(&ready)) != NULL) {
        stg_kafka_publication *p = publication_of(link);

        for (size_t i = 0; all != NULL && i < p->count; i++)
            if (is_new(p, i)) {
                p->results[i].partition = all[next].partition;
                p->results[i].offset = all[next++].position;
            }
        if (all != NULL)
            stg_kafka_publication_end(p);
        else
            fail(p, STG_APPEND_UNACKNOWLEDGED);
    }
    ask_places(s);
}

static void put_places(const stg_kafka_publication *p, stg_reserved **to)
{
    for (size_t i = 0; i < p->count; i++)
        if (is_new(p, i))
            *(*to)++ = (stg_reserved){.topic = p->topic,
                                      .id = p->reserved[i].id,
                                      .partition = p->results[i].partition,
                                      .position = p->results[i].offset};
}

/* One question at a time, for all that have come since the last one. */
static void ask_places(stg_kafka_source *s)
{
    size_t count = count_all(&s->placing.waiting, is_new);
    stg_reserved *all, *to;

    if (!stg_list_is_empty(&s->placing.asked) || count == 0)
        return;
    if (s->kafka == NULL || (all = calloc(count, sizeof *all)) == NULL) {
        fail_all(&s->placing.waiting, STG_APPEND_UNACKNOWLEDGED);
        return;
    }
    to = all;
    stg_list_move(&s->placing.asked, &s->placing.waiting);
    for (stg_link *at = stg_list_first(&s->placing.asked); at != NULL;
         at = stg_list_next(&s->placing.asked, at))
        put_places(publication_of(at), &to);
    stg_store_place(s->base.host->store, all, count, placed, s);
    free(all);
}

/* -- writing --------------------------------------------------------------- */

/* Those that were there have no result here. */
static void written(void *ctx, const stg_kafka_published *results, size_t count)
{
    stg_kafka_publication *p = ctx;
    stg_kafka_source *s = p->source;
    bool is_any_new = false;
    size_t next = 0;

    stg_kafka_source_count_published(s, results, count);
    for (size_t i = 0; i < p->count; i++) {
        if (!is_there(p, i))
            p->results[i] = results[next++];
        is_any_new |= is_new(p, i);
    }
    if (!is_any_new) {
        stg_kafka_publication_end(p);
        return;
    }
    stg_list_push(&s->placing.waiting, &p->link);
    ask_places(s);
}

/* The first message whose key came with another one; `count`: none. */
static size_t find_other(const stg_kafka_publication *p)
{
    size_t i = 0;

    while (i < p->count && !p->reserved[i].is_other)
        i++;
    return i;
}

/* How many are to be written; those that are there have their results. */
static size_t choose(stg_kafka_publication *p)
{
    size_t count = 0;

    for (size_t i = 0; i < p->count; i++)
        if (is_there(p, i)) {
            p->results[i] =
                (stg_kafka_published){.partition = p->reserved[i].partition,
                                      .offset = p->reserved[i].position};
        } else {
            p->written[count] = p->messages[i];
            p->ids[count++] = p->reserved[i].id;
        }
    return count;
}

/* A conflict refuses the call whole, and nothing of it is written. */
static void write_new(stg_kafka_publication *p)
{
    size_t other = find_other(p), count;

    if (other < p->count) {
        p->results[other].how = STG_APPEND_CONFLICT;
        stg_kafka_publication_end(p);
        return;
    }
    p->written = calloc(p->count + 1, sizeof *p->written);
    p->ids = calloc(p->count + 1, sizeof *p->ids);
    if (p->source->kafka == NULL || p->written == NULL || p->ids == NULL) {
        fail(p, STG_APPEND_AWAY);
        return;
    }
    count = choose(p);
    if (count == 0)
        stg_kafka_publication_end(p);
    else
        stg_kafka_publish(p->source->kafka, p->topic, p->written, p->ids, count,
                          written, p);
}

/* -- reserving ------------------------------------------------------------- */

static void ask_keys(stg_kafka_source *s);

/* all NULL: no key is reserved, and nothing was written. */
static void reserved(void *ctx, const stg_reserved *all, size_t count)
{
    stg_kafka_source *s = ctx;
    stg_list ready;
    size_t next = 0;
    stg_link *link;

    (void)count;
    stg_list_init(&ready);
    stg_list_move(&ready, &s->reserving.asked);
    while ((link = stg_list_shift(&ready)) != NULL) {
        stg_kafka_publication *p = publication_of(link);

        for (size_t i = 0; all != NULL && i < p->count; i++)
            if (has_key(p, i))
                p->reserved[i] = all[next++];
        if (all != NULL)
            write_new(p);
        else
            fail(p, STG_APPEND_FULL);
    }
    ask_keys(s);
}

static void put_keys(const stg_kafka_publication *p, stg_key_ask **to)
{
    for (size_t i = 0; i < p->count; i++)
        if (has_key(p, i))
            *(*to)++ = (stg_key_ask){p->topic, &p->messages[i]};
}

/* One transaction at a time, for all that have come since the last one. */
static void ask_keys(stg_kafka_source *s)
{
    size_t count = count_all(&s->reserving.waiting, has_key);
    stg_key_ask *all, *to;

    if (!stg_list_is_empty(&s->reserving.asked) || count == 0)
        return;
    if (s->kafka == NULL || (all = calloc(count, sizeof *all)) == NULL) {
        fail_all(&s->reserving.waiting, STG_APPEND_AWAY);
        return;
    }
    to = all;
    stg_list_move(&s->reserving.asked, &s->reserving.waiting);
    for (stg_link *at = stg_list_first(&s->reserving.asked); at != NULL;
         at = stg_list_next(&s->reserving.asked, at))
        put_keys(publication_of(at), &to);
    stg_store_reserve(s->base.host->store, all, count, reserved, s);
    free(all);
}

void stg_kafka_publication_begin_keyed(stg_kafka_publication *p)
{
    p->reserved = calloc(p->count + 1, sizeof *p->reserved);
    if (p->reserved == NULL) {
        fail(p, STG_APPEND_BUSY);
        return;
    }
    stg_list_push(&p->source->reserving.waiting, &p->link);
    ask_keys(p->source);
}

/* -- reading --------------------------------------------------------------- */

/* The places of what was read, by the member or the catch-up reader. Once the
 * source is closed nobody waits for them. */
static void take_places(stg_kafka_source *s, bool is_catch_up,
                        const stg_reserved *all, size_t count)
{
    if (s->kafka != NULL)
        s->repeated += stg_kafka_placed(s->kafka, is_catch_up, all, count);
}

static void take_ahead(void *ctx, const stg_reserved *all, size_t count)
{
    take_places(ctx, false, all, count);
}

static void take_catch_up(void *ctx, const stg_reserved *all, size_t count)
{
    take_places(ctx, true, all, count);
}

void stg_kafka_source_place(void *source, bool is_catch_up,
                            const stg_reserved *all, size_t count)
{
    stg_kafka_source *s = source;

    stg_store_place(s->base.host->store, all, count,
                    is_catch_up ? take_catch_up : take_ahead, s);
}

void stg_kafka_source_end_keyed(stg_kafka_source *s)
{
    fail_all(&s->reserving.waiting, STG_APPEND_AWAY);
    fail_all(&s->reserving.asked, STG_APPEND_AWAY);
    fail_all(&s->placing.waiting, STG_APPEND_UNACKNOWLEDGED);
    fail_all(&s->placing.asked, STG_APPEND_UNACKNOWLEDGED);
}
