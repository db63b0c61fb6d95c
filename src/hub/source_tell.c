/* What the consumer says, for people: a line of the log, and an alert where
 * somebody has to do something. */
#include <stdio.h>
#include <string.h>

#include "hub/hub_inside.h"

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

/* Of one partition, at a position. */
static void tell_at(const stg_source *s, stg_log_level level, const char *event,
                    const stg_kafka_told *t)
{
    STG_LOG(s->hub->log, level, event, stg_field_text("topic", t->place.topic),
            stg_field_number("partition", t->place.partition),
            stg_field_number("position", t->position),
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

    tell_at(s, STG_LOG_WARN, "log-renewed", t);
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

static void note_topic(stg_source *s, const stg_kafka_told *t, bool is_gone)
{
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
    case STG_KAFKA_REFUSED:
        tell_at(s, STG_LOG_ERROR, "partition-refused", t);
        alert(s, t->text);
        break;
    case STG_KAFKA_TOO_LARGE:
        tell_at(s, STG_LOG_WARN, "message-too-large", t);
        break;
    case STG_KAFKA_ADDED:
        tell(s, STG_LOG_INFO, "partitions-added", t);
        s->counts.added += stg_ns_sub(t->count, t->before);
        break;
    case STG_KAFKA_TROUBLE:
        tell(s, STG_LOG_WARN, "kafka-trouble", t);
        break;
    case STG_KAFKA_REOPENED:
        tell(s, STG_LOG_WARN, "kafka-reopened", t);
        break;
    case STG_KAFKA_COOPERATIVE:
        tell(s, STG_LOG_WARN, "kafka-unwise", t);
        break;
    case STG_KAFKA_LOG:
        tell_line(s, t);
        break;
    }
}
