/* What the consumer says, for people: a line of the log, and an alert where
 * somebody has to do something. */
#include <stdio.h>
#include <string.h>

#include "hub/hub_internal.h"

/* One alert for all that keeps Kafka from being read. */
static void alert(stg_source *s, const char *why)
{
    if (why == NULL && (s->is_away || s->topics_gone > 0))
        return;
    stg_watch_store(&s->hub->watch, STG_TROUBLE_LOG, why, stg_deadlines_now());
}

static void tell(const stg_source *s, stg_log_level level, const char *event,
                 const stg_kafka_told *t)
{
    if (t->place.topic == NULL)
        STG_LOG(s->hub->log, level, event, stg_field_text("detail", t->text));
    else
        STG_LOG(s->hub->log, level, event,
                stg_field_text("topic", t->place.topic),
                stg_field_text("detail", t->text));
}

/* -- what is told again and again ------------------------------------------ */

static void tell_trouble(void *ctx, const stg_kafka_trouble *one, bool is_over)
{
    const stg_source *s = ctx;
    const char *topic = one->topic[0] != '\0' ? one->topic : NULL;
    uint64_t more = one->count - one->told;

    if (is_over)
        STG_LOG(s->hub->log, STG_LOG_INFO, "kafka-trouble-over",
                stg_field_text("topic", topic),
                stg_field_number("errors", one->count),
                stg_field_time("lasted", one->last_at - one->began_at),
                stg_field_text("detail", one->text));
    else
        STG_LOG(s->hub->log, STG_LOG_WARN, "kafka-trouble-goes-on",
                stg_field_text("topic", topic),
                stg_field_number("errors", more),
                stg_field_text("detail", one->text));
}

static void look_at_troubles(stg_source *s);

static void trouble_is_due(stg_deadline *d)
{
    look_at_troubles(STG_HEAP_HOLDER(d, stg_source, trouble));
}

static void look_at_troubles(stg_source *s)
{
    stg_ns next = stg_kafka_troubles_tick(&s->troubles, stg_deadlines_now(),
                                          tell_trouble, s);

    s->trouble.passed = trouble_is_due;
    if (next == STG_NEVER)
        stg_deadline_clear(&s->hub->deadlines, &s->trouble);
    else
        stg_deadline_set(&s->hub->deadlines, &s->trouble, next);
}

static void note_trouble(stg_source *s, const stg_kafka_told *t)
{
    char text[600];

    if (stg_kafka_troubles_note(&s->troubles, t->trouble, t->place.topic,
                                t->text, stg_deadlines_now())) {
        snprintf(text, sizeof text, "%s%s%s", t->text,
                 t->advice != NULL ? ": " : "",
                 t->advice != NULL ? t->advice : "");
        STG_LOG(s->hub->log, STG_LOG_WARN, "kafka-trouble",
                stg_field_text("topic", t->place.topic),
                stg_field_text("detail", text));
    }
    look_at_troubles(s);
}

/* -- the rest -------------------------------------------------------------- */

/* Of one partition, at a position. */
static void tell_at(const stg_source *s, stg_log_level level, const char *event,
                    const stg_kafka_told *t)
{
    STG_LOG(s->hub->log, level, event, stg_field_text("topic", t->place.topic),
            stg_field_number("partition", t->place.partition),
            stg_field_number("position", t->position),
            stg_field_text("detail", t->text));
}

/* Of a partition it is one trouble, however many records have it. */
static void tell_headers(const stg_source *s, const stg_kafka_told *t)
{
    STG_LOG_REPEAT(s->hub->log, STG_LOG_WARN, "headers-lost", 2,
                   stg_field_text("topic", t->place.topic),
                   stg_field_number("partition", t->place.partition),
                   stg_field_number("position", t->position),
                   stg_field_number("headers", t->count),
                   stg_field_text("detail", t->text));
}

static void note_expired(stg_source *s, const stg_kafka_told *t)
{
    const stg_source_place *p = stg_source_find(s, &t->place);

    tell_at(s, STG_LOG_ERROR, "log-expired", t);
    s->counts.expired += stg_ns_sub(t->begin, t->position);
    if (p == NULL || p->state != STG_SOURCE_GIVEN)
        return;
    stg_flow_expired(s->hub->flow, p->number, t->begin, stg_deadlines_now());
    stg_shell_note(s->hub);
}

/* The number that it has now is over, whatever its end will be. */
static void note_renewed(stg_source *s, const stg_kafka_told *t)
{
    stg_source_place *p = stg_source_find(s, &t->place);

    tell_at(s, STG_LOG_WARN, "topic-recreated", t);
    stg_watch_store(&s->hub->watch, STG_TROUBLE_LOG, t->text,
                    stg_deadlines_now());
    if (p != NULL)
        p->is_over = p->number != STG_NO_PARTITION;
}

static void note_away(stg_source *s, const stg_kafka_told *t, bool is_away)
{
    s->is_away = is_away;
    if (is_away)
        tell(s, STG_LOG_ERROR, "kafka-away", t);
    else
        tell(s, STG_LOG_INFO, "kafka-back", t);
    alert(s, is_away ? t->text : NULL);
}

/* Topics that a pattern matches may come and go. */
static void note_topic(stg_source *s, const stg_kafka_told *t, bool is_gone)
{
    if (t->is_matched) {
        tell(s, STG_LOG_INFO, is_gone ? "topic-vanished" : "topic-found", t);
        return;
    }
    if (is_gone) {
        s->topics_gone++;
        tell(s, STG_LOG_ERROR, "topic-gone", t);
    } else {
        s->topics_gone -= s->topics_gone > 0;
        tell(s, STG_LOG_INFO, "topic-found", t);
    }
    alert(s, is_gone ? t->text : NULL);
}

/* Its levels are syslog's: 3 error, 4 warning, 6 info. */
static void tell_line(const stg_source *s, const stg_kafka_told *t)
{
    if (t->level <= 3)
        tell(s, STG_LOG_ERROR, "librdkafka", t);
    else if (t->level == 4)
        tell(s, STG_LOG_WARN, "librdkafka", t);
    else
        tell(s, STG_LOG_DEBUG, "librdkafka", t);
}

void stg_source_told(void *source, const stg_kafka_told *t)
{
    stg_source *s = source;

    switch (t->what) {
    case STG_KAFKA_AWAY:
    case STG_KAFKA_BACK:
        note_away(s, t, t->what == STG_KAFKA_AWAY);
        break;
    case STG_KAFKA_GONE:
    case STG_KAFKA_FOUND:
        note_topic(s, t, t->what == STG_KAFKA_GONE);
        break;
    case STG_KAFKA_EXPIRED:
        note_expired(s, t);
        break;
    case STG_KAFKA_RENEWED:
        note_renewed(s, t);
        break;
    case STG_KAFKA_SUSPECT:
        tell_at(s, STG_LOG_INFO, "topic-check", t);
        stg_source_suspect(s, &t->place);
        break;
    case STG_KAFKA_REFUSED:
        tell_at(s, STG_LOG_ERROR, "partition-refused", t);
        alert(s, t->text);
        break;
    case STG_KAFKA_HEADERS_LOST:
        tell_headers(s, t);
        break;
    case STG_KAFKA_TOO_LARGE:
        tell_at(s, STG_LOG_WARN, "message-too-large", t);
        break;
    case STG_KAFKA_ADDED:
        tell(s, STG_LOG_INFO, "partitions-added", t);
        s->counts.added += stg_ns_sub(t->count, t->before);
        break;
    case STG_KAFKA_STARTED:
        STG_LOG(s->hub->log, STG_LOG_INFO, "topic-started",
                stg_field_text("topic", t->place.topic),
                stg_field_number("older", t->older),
                stg_field_text("detail", t->text));
        break;
    case STG_KAFKA_TROUBLE:
        note_trouble(s, t);
        break;
    case STG_KAFKA_REOPENED:
        tell(s, STG_LOG_WARN, "kafka-reopened", t);
        break;
    case STG_KAFKA_COOPERATIVE:
        tell(s, STG_LOG_WARN, "kafka-config-warning", t);
        break;
    case STG_KAFKA_LOG:
        tell_line(s, t);
        break;
    }
}
