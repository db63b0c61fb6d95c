/* Topics and brokers that come and go, and what librdkafka says of itself.
 *
 * The member asks the brokers for metadata every few seconds. The answer says
 * which topics are missing, which have more partitions and whether any broker
 * answers. Only a change is reported: GONE and FOUND, AWAY and BACK come in
 * turn.
 *
 * The trap: the question blocks the member's thread, which also reads, commits
 * and takes part in rebalances. So its timeouts are short, and shorter still
 * while no broker answers. All topics of the cluster are asked for only until
 * patterns were listed, later those that librdkafka knows:
 * stg_kafka_known.topic is a handle for that. */
#include <stdlib.h>
#include <string.h>

#include "kafka/member.h"

enum {
    AWAY_S = 1, /* between two looks, while no broker answers */
    GONE_S = 3, /* while a topic is not there */
    CALM_S = 2,
    AWAY_MS = 200, /* for an answer: nothing else happens meanwhile */
    ANSWER_MS = 1000,
    PATIENCE = 3, /* looks without an answer, until it is said */
};

void stg_kafka_watch_begin(stg_kafka_member *m)
{
    for (size_t i = 0; i < m->known_count; i++)
        stg_kafka_known_open(m, &m->known[i]);
    m->watch_at = stg_kafka_now() + GONE_S * STG_S;
}

void stg_kafka_watch_end(stg_kafka_member *m)
{
    for (size_t i = 0; i < m->known_count; i++)
        stg_kafka_known_close(&m->known[i]);
}

/* Reports that a topic grew. The first count (after 0) is no growth: it is that
 * of a topic that was found, or found again. */
static void note_partitions(stg_kafka_member *m, stg_kafka_known *k,
                            uint32_t count)
{
    if (k->partitions > 0 && count > k->partitions)
        stg_kafka_events_report(m->to_loop,
                                &(stg_kafka_report){.what = STG_KAFKA_ADDED,
                                                    .tp = {.topic = k->name},
                                                    .before = k->partitions,
                                                    .count = count,
                                                    .level = 6},
                                "%s: has %u partitions now, and had %u",
                                k->name, (unsigned)count,
                                (unsigned)k->partitions);
    k->partitions = count;
}

/* The next topic of its name may be another one. */
static void suspect_all(stg_kafka_member *m, const char *topic)
{
    for (size_t i = 0; i < m->slots.count; i++) {
        stg_kafka_slot *s = &m->slots.at[i];

        if (s->state == STG_KAFKA_SLOT_READING &&
            strcmp(s->tp.topic, topic) == 0)
            stg_kafka_member_suspect(m, s, "the topic is not there");
    }
}

/* Other errors than "no such topic" change nothing: a topic without a leader is
 * still there, and one that may not be described is unknown. */
static void note_topic(stg_kafka_member *m, stg_kafka_known *k,
                       const rd_kafka_metadata_topic_t *topic)
{
    bool is_gone = topic->err == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART ||
                   topic->err == RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC;

    if (topic->err != 0 && !is_gone)
        return; // it has no leader right now, or may not be seen
    if (is_gone && !k->is_gone)
        stg_kafka_report_topic(m, k, STG_KAFKA_GONE, 4,
                               "there is no such topic (any more)");
    if (!is_gone && k->is_gone)
        stg_kafka_report_topic(m, k, STG_KAFKA_FOUND, 6, "is there again");
    if (is_gone)
        suspect_all(m, k->name);
    k->is_gone = is_gone;
    k->is_late |= is_gone;
    if (is_gone)
        k->partitions = 0;
    else
        note_partitions(m, k, (uint32_t)topic->partition_cnt);
    if (is_gone && k->is_matched)
        stg_kafka_known_close(k); // until it is given again
}

static void note_topics(stg_kafka_member *m, const struct rd_kafka_metadata *md)
{
    for (int t = 0; t < md->topic_cnt; t++) {
        stg_kafka_known *k = stg_kafka_known_find(m, md->topics[t].topic);

        if (k != NULL)
            note_topic(m, k, &md->topics[t]);
    }
}

static void note_away(stg_kafka_member *m, const char *why)
{
    if (!m->is_away)
        stg_kafka_events_report(
            m->to_loop, &(stg_kafka_report){.what = STG_KAFKA_AWAY, .level = 3},
            "%s: %s", m->o->brokers, why);
    m->is_away = true;
}

/* Of brokers whose connections are open, and who are silent, librdkafka says
 * nothing for a long time. */
static void note_answer(stg_kafka_member *m, bool answers)
{
    if (answers && m->is_away)
        stg_kafka_events_report(
            m->to_loop, &(stg_kafka_report){.what = STG_KAFKA_BACK, .level = 6},
            "%s: a broker answers again", m->o->brokers);
    if (answers)
        m->is_away = false;
    m->unanswered = answers ? 0 : m->unanswered + 1;
    if (m->unanswered == PATIENCE)
        note_away(m, "no broker answers");
}

/* A topic that only a pattern matched has no handle while it is missing: nobody
 * waits for it, so it does not change how often brokers are asked. */
static bool has_gone(const stg_kafka_member *m)
{
    for (size_t i = 0; i < m->known_count; i++)
        if (m->known[i].is_gone && m->known[i].topic != NULL)
            return true;
    return false;
}

static unsigned next_watch(const stg_kafka_member *m, bool answers)
{
    if (m->is_away)
        return AWAY_S;
    return has_gone(m) || !answers ? GONE_S : CALM_S;
}

void stg_kafka_member_watch(stg_kafka_member *m, stg_ns now)
{
    const struct rd_kafka_metadata *md;
    bool answers;

    if (m->rk == NULL || now < m->watch_at)
        return;
    answers = rd_kafka_metadata(m->rk, !m->has_listed, NULL, &md,
                                m->is_away ? AWAY_MS : ANSWER_MS) ==
              RD_KAFKA_RESP_ERR_NO_ERROR;
    note_answer(m, answers);
    if (answers) {
        if (!m->has_listed)
            stg_kafka_known_list(m, md);
        note_topics(m, md);
        rd_kafka_metadata_destroy(md);
        stg_kafka_member_probe(m);
    }
    m->watch_at = stg_kafka_now() + next_watch(m, answers) * STG_S;
}

/* -- events ---------------------------------------------------------------- */

/* Any other error is reported as a trouble, about a topic where librdkafka
 * names one that is read. */
static void tell_trouble(stg_kafka_member *m, rd_kafka_event_t *ev)
{
    rd_kafka_topic_partition_t *p = rd_kafka_event_topic_partition(ev);
    stg_kafka_report report = stg_kafka_trouble_of(
        rd_kafka_event_error(ev),
        p != NULL ? stg_kafka_topic(m->topics, p->topic) : NULL);

    stg_kafka_events_report(m->to_loop, &report, "%s",
                            rd_kafka_event_error_string(ev));
    if (p != NULL)
        rd_kafka_topic_partition_destroy(p);
}

/* A fatal error only sets a flag: librdkafka is closed by the thread's turn,
 * after this event is freed. A missing topic is not reported here: asking at
 * once is what finds and reports it, once. */
void stg_kafka_member_error(stg_kafka_member *m, rd_kafka_event_t *ev)
{
    if (rd_kafka_event_error_is_fatal(ev)) {
        m->is_failed = true;
        return;
    }
    switch (rd_kafka_event_error(ev)) {
    case RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN:
        note_away(m, rd_kafka_event_error_string(ev));
        m->watch_at = stg_kafka_now() + AWAY_S * STG_S;
        break;
    case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART:
    case RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC:
    case RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION:
        m->watch_at = 0; // and that says it
        break;
    default:
        tell_trouble(m, ev);
        break;
    }
}

void stg_kafka_report_log(stg_kafka_events *post, rd_kafka_event_t *ev)
{
    const char *facility, *text;
    int level;

    if (rd_kafka_event_log(ev, &facility, &text, &level) != 0)
        return;
    if (strcmp(facility, "FAIL") == 0)
        level = 7; // of a connection: the member's errors say the same
    stg_kafka_events_report(
        post, &(stg_kafka_report){.what = STG_KAFKA_LOG, .level = level},
        "%s: %s", facility, text);
}
