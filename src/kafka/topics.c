/* The topics that are read: those of the options, and those that a pattern of
 * them matches, which come and go.
 *
 * Two tables. Names, under a lock and for any thread: each text is there once
 * and stays as long as the consumer, so that events and commands carry a
 * pointer, and the catch-up reader compares topics by it. And what the member's
 * thread knows of each topic (stg_kafka_known), which is that thread's alone.
 *
 * The trap is `is_late`: where a topic begins depends on whether it was there
 * when the hub was. A late one is read from its first record, whatever
 * `kafka.start` says, so a new topic that is wrongly late sends all of its
 * past. A pointer to a stg_kafka_known is good until the next one is added. */
#include <stdlib.h>
#include <string.h>

#include "kafka/member.h"
#include "kafka/topic.h"

enum { LIST_MS = 2000 };

/* -- names ----------------------------------------------------------------- */

bool stg_kafka_topics_init(stg_kafka_topics *t, const stg_kafka_options *o)
{
    *t = (stg_kafka_topics){.o = o};
    return uv_mutex_init(&t->lock) == 0;
}

void stg_kafka_topics_free(stg_kafka_topics *t)
{
    for (size_t i = 0; i < t->count; i++)
        free(t->names[i]);
    free(t->names);
    uv_mutex_destroy(&t->lock);
}

static bool is_selected(const stg_kafka_options *o, const char *name)
{
    for (size_t i = 0; o->topics[i] != NULL; i++)
        if (stg_topic_matches(o->topics[i], name))
            return true;
    return false;
}

static const char *add_name(stg_kafka_topics *t, const char *name)
{
    if (t->count == t->room) {
        t->room = t->room == 0 ? 16 : 2 * t->room;
        t->names = realloc(t->names, t->room * sizeof *t->names);
        if (t->names == NULL)
            abort();
    }
    t->names[t->count] = stg_kafka_text(name);
    return t->names[t->count++];
}

const char *stg_kafka_topic(stg_kafka_topics *t, const char *name)
{
    const char *found = NULL;

    uv_mutex_lock(&t->lock);
    for (size_t i = 0; i < t->count && found == NULL; i++)
        if (strcmp(t->names[i], name) == 0)
            found = t->names[i];
    if (found == NULL && is_selected(t->o, name))
        found = add_name(t, name);
    uv_mutex_unlock(&t->lock);
    return found;
}

/* -- what the member knows of them ----------------------------------------- */

void stg_kafka_report_topic(stg_kafka_member *m, const stg_kafka_known *k,
                            stg_kafka_report_kind what, int level,
                            const char *words)
{
    stg_kafka_events_report(m->to_loop,
                            &(stg_kafka_report){.what = what,
                                                .tp = {.topic = k->name},
                                                .is_matched = k->is_matched,
                                                .level = level},
                            "%s: %s", k->name, words);
}

stg_kafka_known *stg_kafka_known_find(const stg_kafka_member *m,
                                      const char *topic)
{
    for (size_t i = 0; i < m->known_count; i++)
        if (!m->known[i].is_pattern && strcmp(m->known[i].name, topic) == 0)
            return &m->known[i];
    return NULL;
}

static stg_kafka_known *add(stg_kafka_member *m, const char *name)
{
    m->known =
        realloc(m->known, (m->known_count + 1) * sizeof(stg_kafka_known));
    if (m->known == NULL)
        abort();
    m->known[m->known_count] = (stg_kafka_known){.name = name};
    return &m->known[m->known_count++];
}

/* A pattern has begun when the store knows a topic of it. */
static bool has_stored(const stg_kafka_options *o, const char *pattern)
{
    for (size_t i = 0; o->known != NULL && o->known[i] != NULL; i++)
        if (stg_topic_matches(pattern, o->known[i]))
            return true;
    return false;
}

/* Without a pattern there is nothing to list, and has_listed is true from the
 * start: then brokers are asked only for the topics of the options. */
void stg_kafka_known_init(stg_kafka_member *m)
{
    m->has_listed = true;
    for (size_t i = 0; m->o->topics[i] != NULL; i++) {
        stg_kafka_known *k = add(m, m->o->topics[i]);

        k->is_pattern = stg_topic_is_pattern(k->name);
        if (!k->is_pattern)
            continue;
        k->has_begun = has_stored(m->o, k->name);
        m->has_listed = false;
    }
}

/* A handle makes librdkafka ask brokers for the topic. A missing topic of a
 * pattern gets none until the group assigns it again. */
void stg_kafka_known_open(stg_kafka_member *m, stg_kafka_known *k)
{
    if (k->topic == NULL && !k->is_pattern && !(k->is_matched && k->is_gone))
        k->topic = rd_kafka_topic_new(m->rk, k->name, NULL);
}

void stg_kafka_known_close(stg_kafka_known *k)
{
    if (k->topic != NULL)
        rd_kafka_topic_destroy(k->topic);
    k->topic = NULL;
}

/* Patterns that had no topic have one. True: one of them has begun. */
static bool note_patterns(stg_kafka_member *m, const char *topic)
{
    bool has_begun = false;

    for (size_t i = 0; i < m->known_count; i++) {
        stg_kafka_known *k = &m->known[i];

        if (!k->is_pattern || !stg_topic_matches(k->name, topic))
            continue;
        has_begun |= k->has_begun;
        if (k->is_gone)
            stg_kafka_report_topic(m, k, STG_KAFKA_FOUND, 6, "has a topic now");
        k->is_gone = false;
    }
    return has_begun;
}

/* A new topic is late when it came after the first listing; or in that listing,
 * when the pattern has topics in the store: it was made while no hub ran. */
void stg_kafka_known_note(stg_kafka_member *m, const char *topic)
{
    stg_kafka_known *k = stg_kafka_known_find(m, topic);
    bool has_begun;

    if (k == NULL) {
        has_begun = note_patterns(m, topic);
        k = add(m, topic);
        k->is_matched = true;
        k->is_late = m->has_listed || has_begun;
    } else if (k->is_matched && k->is_gone) {
        stg_kafka_report_topic(m, k, STG_KAFKA_FOUND, 6, "is there again");
        k->is_gone = false;
    }
    stg_kafka_known_open(m, k);
}

/* -- what there is of patterns --------------------------------------------- */

/* A pattern that matches no topic is told, for it may be misspelt; a topic may come
 * later. */
void stg_kafka_known_list(stg_kafka_member *m,
                          const struct rd_kafka_metadata *md)
{
    for (int i = 0; i < md->topic_cnt; i++) {
        const char *name = stg_kafka_topic(m->topics, md->topics[i].topic);

        if (name != NULL &&
            md->topics[i].err != RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART)
            stg_kafka_known_note(m, name);
    }
    m->has_listed = true;
    for (size_t i = 0; i < m->known_count; i++) {
        stg_kafka_known *k = &m->known[i];
        bool has_any = false;

        for (size_t j = 0; j < m->known_count; j++)
            has_any |= m->known[j].is_matched &&
                       stg_topic_matches(k->name, m->known[j].name);
        if (!k->is_pattern || has_any)
            continue;
        k->is_gone = true;
        stg_kafka_report_topic(m, k, STG_KAFKA_GONE, 4,
                               "no topic matches this pattern; waits for one");
    }
}

bool stg_kafka_known_ask(stg_kafka_member *m)
{
    const struct rd_kafka_metadata *md;

    if (m->has_listed)
        return true;
    if (rd_kafka_metadata(m->rk, 1, NULL, &md, LIST_MS) !=
        RD_KAFKA_RESP_ERR_NO_ERROR)
        return false;
    stg_kafka_known_list(m, md);
    rd_kafka_metadata_destroy(md);
    return true;
}
