/* Topics and brokers that come and go, and what librdkafka says of itself. */
#include <stdlib.h>
#include <string.h>

#include "hub/logs/kafka_inside.h"

enum {
    AWAY_S = 1, /* between two looks, while no broker answers */
    GONE_S = 3, /* while a topic is not there */
    CALM_S = 5,
    AWAY_MS = 200, /* for an answer: nothing else happens meanwhile */
    ANSWER_MS = 1000,
    PATIENCE = 3, /* looks without an answer, until it is said */
};

void stg_kafka_watch_begin(stg_kafka_member *m)
{
    for (size_t i = 0; m->o->topics[i] != NULL; i++)
        m->known[i].topic = rd_kafka_topic_new(m->rk, m->o->topics[i], NULL);
    m->watch_at = stg_kafka_now() + GONE_S * STG_S;
}

void stg_kafka_watch_end(stg_kafka_member *m)
{
    for (size_t i = 0; m->o->topics[i] != NULL; i++) {
        if (m->known[i].topic != NULL)
            rd_kafka_topic_destroy(m->known[i].topic);
        m->known[i].topic = NULL;
    }
}

static void tell_topic(stg_kafka_member *m, size_t i, stg_kafka_tell what,
                       int level, const char *words)
{
    stg_kafka_post_tell(m->post,
                        &(stg_kafka_told){.what = what,
                                          .place = {.topic = m->o->topics[i]},
                                          .level = level},
                        "%s: %s", m->o->topics[i], words);
}

static void note_partitions(stg_kafka_member *m, size_t i, uint32_t count)
{
    struct stg_kafka_known *k = &m->known[i];

    if (k->partitions > 0 && count > k->partitions)
        stg_kafka_post_tell(
            m->post,
            &(stg_kafka_told){.what = STG_KAFKA_ADDED,
                              .place = {.topic = m->o->topics[i]},
                              .before = k->partitions,
                              .count = count,
                              .level = 6},
            "%s: has %u partitions now, and had %u", m->o->topics[i],
            (unsigned)count, (unsigned)k->partitions);
    k->partitions = count;
}

static void note_topic(stg_kafka_member *m, size_t i,
                       const rd_kafka_metadata_topic_t *topic)
{
    struct stg_kafka_known *k = &m->known[i];
    bool is_gone = topic->err == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART ||
                   topic->err == RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC;

    if (topic->err != 0 && !is_gone)
        return; // it has no leader right now, or may not be seen
    if (is_gone && !k->is_gone)
        tell_topic(m, i, STG_KAFKA_GONE, 4,
                   "there is no such topic (any more)");
    if (!is_gone && k->is_gone)
        tell_topic(m, i, STG_KAFKA_FOUND, 6, "is there again");
    k->is_gone = is_gone;
    if (is_gone)
        k->partitions = 0;
    else
        note_partitions(m, i, (uint32_t)topic->partition_cnt);
}

static void note_topics(stg_kafka_member *m, const struct rd_kafka_metadata *md)
{
    for (int t = 0; t < md->topic_cnt; t++)
        for (size_t i = 0; m->o->topics[i] != NULL; i++)
            if (strcmp(m->o->topics[i], md->topics[t].topic) == 0)
                note_topic(m, i, &md->topics[t]);
}

static void note_away(stg_kafka_member *m, const char *why)
{
    if (!m->is_away)
        stg_kafka_post_tell(
            m->post, &(stg_kafka_told){.what = STG_KAFKA_AWAY, .level = 3},
            "%s: %s", m->o->brokers, why);
    m->is_away = true;
}

/* Of brokers whose connections are open, and who are silent, librdkafka says
 * nothing for a long time. */
static void note_answer(stg_kafka_member *m, bool answers)
{
    if (answers && m->is_away)
        stg_kafka_post_tell(
            m->post, &(stg_kafka_told){.what = STG_KAFKA_BACK, .level = 6},
            "%s: a broker answers again", m->o->brokers);
    if (answers)
        m->is_away = false;
    m->unanswered = answers ? 0 : m->unanswered + 1;
    if (m->unanswered == PATIENCE)
        note_away(m, "no broker answers");
}

static bool has_gone(const stg_kafka_member *m)
{
    for (size_t i = 0; m->o->topics[i] != NULL; i++)
        if (m->known[i].is_gone)
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
    answers = rd_kafka_metadata(m->rk, 0, NULL, &md,
                                m->is_away ? AWAY_MS : ANSWER_MS) ==
              RD_KAFKA_RESP_ERR_NO_ERROR;
    note_answer(m, answers);
    if (answers) {
        note_topics(m, md);
        rd_kafka_metadata_destroy(md);
    }
    m->watch_at = stg_kafka_now() + next_watch(m, answers) * STG_S;
}

/* -- events ---------------------------------------------------------------- */

static void tell_trouble(stg_kafka_member *m, rd_kafka_event_t *ev)
{
    rd_kafka_topic_partition_t *p = rd_kafka_event_topic_partition(ev);
    stg_kafka_told told = {.what = STG_KAFKA_TROUBLE, .level = 4};

    if (p != NULL)
        told.place.topic = stg_kafka_topic(m->o, p->topic);
    stg_kafka_post_tell(m->post, &told, "%s", rd_kafka_event_error_string(ev));
    if (p != NULL)
        rd_kafka_topic_partition_destroy(p);
}

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

void stg_kafka_tell_log(stg_kafka_post *post, rd_kafka_event_t *ev)
{
    const char *facility, *text;
    int level;

    if (rd_kafka_event_log(ev, &facility, &text, &level) == 0)
        stg_kafka_post_tell(
            post, &(stg_kafka_told){.what = STG_KAFKA_LOG, .level = level},
            "%s: %s", facility, text);
}
