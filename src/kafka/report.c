/* Reports of the consumer: each is a line of the log, an alert where an
 * operator has to do something, a count for the metrics, and an event of flow
 * where messages have expired. What librdkafka repeats is one trouble
 * (trouble.c), logged when it begins, goes on and is over. */
#include <stdio.h>
#include <string.h>

#include "kafka/assignment.h"

/* One alert for all that keeps Kafka from being read. */
static void alert(stg_kafka_source *s, const char *why)
{
    const stg_source_host *h = stg_kafka_source_host(s);

    if (why != NULL || !(s->base.is_away || s->topics_missing > 0))
        h->alert(h->ctx, why);
}

static void log_event(const stg_kafka_source *s, stg_log_level level,
                      const char *event, const stg_kafka_report *t)
{
    if (t->tp.topic == NULL)
        STG_LOG(s->base.host->log, level, event,
                stg_field_text("detail", t->text));
    else
        STG_LOG(s->base.host->log, level, event,
                stg_field_text("topic", t->tp.topic),
                stg_field_text("detail", t->text));
}

/* -- what is repeated ------------------------------------------ */

static void log_trouble(void *ctx, const stg_kafka_trouble *one, bool is_over)
{
    const stg_kafka_source *s = ctx;
    const char *topic = one->topic[0] != '\0' ? one->topic : NULL;
    uint64_t more = one->count - one->told;

    if (is_over)
        STG_LOG(s->base.host->log, STG_LOG_INFO, "kafka-trouble-over",
                stg_field_text("topic", topic),
                stg_field_number("errors", one->count),
                stg_field_time("lasted", one->last_at - one->began_at),
                stg_field_text("detail", one->text));
    else
        STG_LOG(s->base.host->log, STG_LOG_WARN, "kafka-trouble-goes-on",
                stg_field_text("topic", topic),
                stg_field_number("errors", more),
                stg_field_text("detail", one->text));
}

static void look_at_troubles(stg_kafka_source *s);

static void trouble_is_due(stg_deadline *d)
{
    look_at_troubles(STG_HEAP_HOLDER(d, stg_kafka_source, trouble));
}

/* Logs what is due and sets the timer for the next; none while all is calm. */
static void look_at_troubles(stg_kafka_source *s)
{
    stg_ns next = stg_kafka_troubles_tick(&s->troubles, stg_deadlines_now(),
                                          log_trouble, s);

    s->trouble.passed = trouble_is_due;
    if (next == STG_NEVER)
        stg_deadline_clear(s->base.host->deadlines, &s->trouble);
    else
        stg_deadline_set(s->base.host->deadlines, &s->trouble, next);
}

static void note_trouble(stg_kafka_source *s, const stg_kafka_report *t)
{
    char text[600];

    if (stg_kafka_troubles_note(&s->troubles, t->trouble, t->tp.topic, t->text,
                                stg_deadlines_now())) {
        snprintf(text, sizeof text, "%s%s%s", t->text,
                 t->advice != NULL ? ": " : "",
                 t->advice != NULL ? t->advice : "");
        STG_LOG(s->base.host->log, STG_LOG_WARN, "kafka-trouble",
                stg_field_text("topic", t->tp.topic),
                stg_field_text("detail", text));
    }
    look_at_troubles(s);
}

/* -- the rest -------------------------------------------------------------- */

/* Of one partition, at a position. */
static void log_at(const stg_kafka_source *s, stg_log_level level,
                   const char *event, const stg_kafka_report *t)
{
    STG_LOG(s->base.host->log, level, event,
            stg_field_text("topic", t->tp.topic),
            stg_field_number("partition", t->tp.partition),
            stg_field_number("position", t->position),
            stg_field_text("detail", t->text));
}

/* Of a partition it is one trouble, however many records have it. */
static void log_headers(const stg_kafka_source *s, const stg_kafka_report *t)
{
    STG_LOG_REPEAT(s->base.host->log, STG_LOG_WARN, "headers-lost", 2,
                   stg_field_text("topic", t->tp.topic),
                   stg_field_number("partition", t->tp.partition),
                   stg_field_number("position", t->position),
                   stg_field_number("headers", t->count),
                   stg_field_text("detail", t->text));
}

/* Flow hears of it only while it has the partition: its lanes then pass over
 * what expired. Positions are counted, not messages: there may be gaps. */
static void note_expired(stg_kafka_source *s, const stg_kafka_report *t)
{
    const stg_kafka_assignment *p = stg_kafka_assignment_find(s, &t->tp);

    log_at(s, STG_LOG_ERROR, "log-expired", t);
    s->counts.expired += stg_ns_sub(t->begin, t->position);
    if (p == NULL || p->state != STG_ASSIGNMENT_READING)
        return;
    stg_flow_expired(s->base.host->flow, p->number, t->begin,
                     stg_deadlines_now());
    stg_kafka_source_wake(s);
}

/* The number that it has now is over, whatever its end will be. */
static void note_renewed(stg_kafka_source *s, const stg_kafka_report *t)
{
    const stg_source_host *h = stg_kafka_source_host(s);
    stg_kafka_assignment *p = stg_kafka_assignment_find(s, &t->tp);

    log_at(s, STG_LOG_WARN, "topic-recreated", t);
    h->alert(h->ctx, t->text);
    if (p != NULL)
        p->is_recreated = p->number != STG_NO_PARTITION;
}

static void note_away(stg_kafka_source *s, const stg_kafka_report *t,
                      bool is_away)
{
    s->base.is_away = is_away;
    if (is_away)
        log_event(s, STG_LOG_ERROR, "kafka-away", t);
    else
        log_event(s, STG_LOG_INFO, "kafka-back", t);
    alert(s, is_away ? t->text : NULL);
}

/* Topics that a pattern matches may come and go. */
static void note_topic(stg_kafka_source *s, const stg_kafka_report *t,
                       bool is_gone)
{
    if (t->is_matched) {
        log_event(s, STG_LOG_INFO, is_gone ? "topic-vanished" : "topic-found",
                  t);
        return;
    }
    if (is_gone) {
        s->topics_missing++;
        log_event(s, STG_LOG_ERROR, "topic-gone", t);
    } else {
        s->topics_missing -= s->topics_missing > 0;
        log_event(s, STG_LOG_INFO, "topic-found", t);
    }
    alert(s, is_gone ? t->text : NULL);
}

/* Its levels are syslog's: 3 error, 4 warning, 6 info. */
static void log_line(const stg_kafka_source *s, const stg_kafka_report *t)
{
    if (t->level <= 3)
        log_event(s, STG_LOG_ERROR, "librdkafka", t);
    else if (t->level == 4)
        log_event(s, STG_LOG_WARN, "librdkafka", t);
    else
        log_event(s, STG_LOG_DEBUG, "librdkafka", t);
}

/* What the threads have noticed, as log events, alerts and counts. */
void stg_kafka_source_report(void *source, const stg_kafka_report *t)
{
    stg_kafka_source *s = source;

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
        log_at(s, STG_LOG_INFO, "topic-check", t);
        stg_kafka_source_suspect(s, &t->tp);
        break;
    case STG_KAFKA_REFUSED:
        log_at(s, STG_LOG_ERROR, "partition-refused", t);
        alert(s, t->text);
        break;
    case STG_KAFKA_HEADERS_LOST:
        log_headers(s, t);
        break;
    case STG_KAFKA_TOO_LARGE:
        log_at(s, STG_LOG_WARN, "message-too-large", t);
        break;
    case STG_KAFKA_ADDED:
        log_event(s, STG_LOG_INFO, "partitions-added", t);
        s->counts.added += stg_ns_sub(t->count, t->before);
        break;
    case STG_KAFKA_STARTED:
        STG_LOG(s->base.host->log, STG_LOG_INFO, "topic-started",
                stg_field_text("topic", t->tp.topic),
                stg_field_number("older", t->older),
                stg_field_text("detail", t->text));
        break;
    case STG_KAFKA_TROUBLE:
        note_trouble(s, t);
        break;
    case STG_KAFKA_REOPENED:
        log_event(s, STG_LOG_WARN, "kafka-reopened", t);
        break;
    case STG_KAFKA_COOPERATIVE:
        log_event(s, STG_LOG_WARN, "kafka-config-warning", t);
        break;
    case STG_KAFKA_LOG:
        log_line(s, t);
        break;
    }
}
