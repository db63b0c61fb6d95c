/* What is posted to the hub, for a topic of Kafka: which topic, what became of it,
 * and the ids that it has from now on.
 *
 * The producer is made with the first message, and answers each call once, also
 * when the source is closed by then: the store is gone then, and is not asked for
 * ids any more. */
#include <stdlib.h>
#include <string.h>

#include "kafka/assignment.h"
#include "kafka/topic.h"

/* -- what became of it ----------------------------------------------------- */

/* The rows of the metric. */
typedef enum outcome { WRITTEN, REFUSED, FAILED, UNKNOWN } outcome;

static outcome outcome_of(stg_appended how)
{
    switch (how) {
    case STG_APPENDED:
        return WRITTEN;
    case STG_APPEND_TOO_LARGE:
    case STG_APPEND_REFUSED:
        return REFUSED;
    case STG_APPEND_UNACKNOWLEDGED:
        return UNKNOWN;
    default:
        return FAILED;
    }
}

size_t stg_kafka_source_put_published(const stg_kafka_source *s,
                                      stg_source_fact *to)
{
    static const char name[] = "stagger_kafka_published_total",
                      help[] =
                          "Messages posted to the hub: written to their topic, "
                          "refused by it, failed (not there), or unknown.";
    static const char *const results[STG_KAFKA_PUBLISHED_FACTS] = {
        [WRITTEN] = "ok",
        [REFUSED] = "refused",
        [FAILED] = "failed",
        [UNKNOWN] = "unknown"};

    for (size_t i = 0; i < STG_KAFKA_PUBLISHED_FACTS; i++)
        to[i] =
            (stg_source_fact){name, help, results[i], true, s->published[i]};
    return STG_KAFKA_PUBLISHED_FACTS;
}

/* Ids of one topic have about its length. */
static size_t id_room(const char *topic)
{
    enum {
        NUMBERS = sizeof ".4294967295.18446744073709551615.0123456789abcdef"
    };

    return strlen(topic) + NUMBERS;
}

/* Whether it was there before the call. */
static bool is_repeat(const stg_kafka_publication *p, size_t i)
{
    return p->reserved != NULL && p->messages[i].idempotency_key.size > 0 &&
           p->reserved[i].position != STG_NO_POSITION;
}

static void put_answers(const stg_kafka_publication *p,
                        stg_append_answer *answers, char *ids)
{
    const stg_source *source = &p->source->base;
    char id[STG_MESSAGE_ID_MAX];

    for (size_t i = 0; i < p->count; i++) {
        const stg_kafka_published *r = &p->results[i];

        (void)stg_store_record_id(source->host->store, source->ops->name,
                                  p->topic, r->partition, r->offset, id);
        memcpy(ids, id, strlen(id) + 1);
        answers[i] = (stg_append_answer){
            .position = r->offset, .is_repeat = is_repeat(p, i), .id = ids};
        ids += id_room(p->topic);
    }
}

/* Without memory for the ids, or without a store that knows them, it is not known
 * what to say. */
static void tell_written(const stg_kafka_publication *p)
{
    stg_append_answer *answers =
        p->source->kafka == NULL
            ? NULL
            : malloc(1 + p->count * (sizeof *answers + id_room(p->topic)));

    if (answers == NULL) {
        p->done(p->done_ctx, STG_APPEND_UNACKNOWLEDGED, NULL, 0);
        return;
    }
    put_answers(p, answers, (char *)(answers + p->count));
    p->done(p->done_ctx, STG_APPENDED, answers, 0);
    free(answers);
}

/* Of several messages the first one that failed is told of. */
void stg_kafka_publication_end(stg_kafka_publication *p)
{
    size_t failed = 0;

    while (failed < p->count && p->results[failed].how == STG_APPENDED)
        failed++;
    if (failed == p->count)
        tell_written(p);
    else
        p->done(p->done_ctx, p->results[failed].how, NULL, failed);
    free(p->results);
    free(p->reserved);
    free(p->written);
    free(p->ids);
    free(p);
}

void stg_kafka_source_count_published(stg_kafka_source *s,
                                      const stg_kafka_published *results,
                                      size_t count)
{
    for (size_t i = 0; i < count; i++)
        s->published[outcome_of(results[i].how)]++;
}

static void published(void *ctx, const stg_kafka_published *results,
                      size_t count)
{
    stg_kafka_publication *p = ctx;

    stg_kafka_source_count_published(p->source, results, count);
    memcpy(p->results, results, count * sizeof *results);
    stg_kafka_publication_end(p);
}

/* -- the call -------------------------------------------------------------- */

/* NULL: *how says why. */
static const char *choose_topic(const stg_kafka_source *s, const char *asked,
                                stg_appended *how)
{
    const char *const *all = s->options.topics;

    *how = STG_APPEND_NO_TOPIC;
    if (asked == NULL && (all[1] != NULL || stg_topic_is_pattern(all[0]))) {
        *how = STG_APPEND_WHICH_TOPIC;
        return NULL;
    }
    if (asked == NULL)
        asked = all[0];
    return stg_topic_is_name((stg_span){asked, strlen(asked)})
               ? stg_kafka_find_topic(s->kafka, asked)
               : NULL;
}

/* The first message that has a key; `count`: none has. */
static size_t find_keyed(const stg_append *messages, size_t count)
{
    size_t i = 0;

    while (i < count && messages[i].idempotency_key.size == 0)
        i++;
    return i;
}

static stg_kafka_publication *make(stg_kafka_source *s, const char *topic,
                                   const stg_append *messages, size_t count)
{
    stg_kafka_publication *p = calloc(1, sizeof *p);

    if (p == NULL)
        return NULL;
    p->source = s;
    p->topic = topic;
    p->messages = messages;
    p->count = count;
    p->results = calloc(count + 1, sizeof *p->results);
    if (p->results != NULL)
        return p;
    free(p);
    return NULL;
}

/* Messages with a key go by the store first (keyed.c), which knows those of before;
 * the others are written at once. */
void stg_kafka_source_publish(stg_source *source, const char *topic,
                              const stg_append *messages, size_t count,
                              stg_append_fn *done, void *done_ctx)
{
    stg_kafka_source *s = (stg_kafka_source *)source;
    size_t keyed = find_keyed(messages, count);
    stg_appended how = STG_APPEND_AWAY;
    const char *found = s->kafka == NULL ? NULL : choose_topic(s, topic, &how);
    stg_kafka_publication *p;

    if (found != NULL && keyed < count &&
        !stg_store_keeps_keys(source->host->store)) {
        done(done_ctx, STG_APPEND_KEYED, NULL, keyed);
        return;
    }
    p = found == NULL ? NULL : make(s, found, messages, count);
    if (p == NULL) {
        done(done_ctx, found == NULL ? how : STG_APPEND_BUSY, NULL, 0);
        return;
    }
    p->done = done;
    p->done_ctx = done_ctx;
    if (keyed < count)
        stg_kafka_publication_begin_keyed(p);
    else
        stg_kafka_publish(s->kafka, found, messages, NULL, count, published, p);
}

void stg_kafka_source_give_up(stg_source *source)
{
    const stg_kafka_source *s = (const stg_kafka_source *)source;

    if (s->kafka != NULL)
        stg_kafka_give_up(s->kafka);
}

/* -- copies ---------------------------------------------------------------- */

typedef struct copying {
    stg_copied_fn *done;
    void *ctx;
} copying;

static void have_copied(void *ctx, const stg_kafka_published *results,
                        size_t count)
{
    copying *c = ctx;
    size_t copied = 0;

    for (size_t i = 0; i < count; i++)
        copied += results[i].how == STG_APPENDED;
    c->done(c->ctx, copied);
    free(c);
}

void stg_kafka_source_copy(stg_source *source, const char *topic,
                           const stg_append *records, size_t count,
                           stg_copied_fn *done, void *done_ctx)
{
    const stg_kafka_source *s = (const stg_kafka_source *)source;
    copying *c = s->kafka == NULL ? NULL : malloc(sizeof *c);

    if (c == NULL) {
        done(done_ctx, 0);
        return;
    }
    *c = (copying){done, done_ctx};
    stg_kafka_publish(s->kafka, topic, records, NULL, count, have_copied, c);
}
