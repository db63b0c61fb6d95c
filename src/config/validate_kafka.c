/* Kafka, PostgreSQL and shards: which settings need each other, and which exclude
 * each other. What only Kafka has (topics, groups, shards) is a mistake with the
 * embedded queue, rather than ignored. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/suggest.h"
#include "config/from.h"
#include "config/loading.h"
#include "kafka/topic.h"

/* Line 0 is a setting that the file does not have. */
static bool is_written(const stg_loading *l, const char *path)
{
    return stg_load_hub_place(l, path).line > 0;
}

/* What kafka://... says is not said again elsewhere. */
static void check_twice(stg_loading *l)
{
    static const char *const paths[] = {"kafka.brokers", "kafka.topics",
                                        "kafka.group", "kafka.start"};
    static const char *const parameters[] = {"", "", "group=", "start="};
    const stg_kafka_settings *k = &l->s->kafka;

    // An option of the command (--from) may say other ones.
    if (k->from == NULL || stg_load_is_option(l, "source"))
        return;
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        if (strstr(k->from, parameters[i]) != NULL && is_written(l, paths[i]))
            stg_complain(l->c, stg_load_hub_place(l, paths[i]),
                         "`%s`, and `source` says it, too; expected it once",
                         paths[i]);
}

static void check_start(stg_loading *l)
{
    static const char *const words[] = {"latest", "earliest", NULL};
    const char *text = l->s->kafka.start, *near = stg_suggest(text, words);
    stg_start_kind kind;
    uint64_t at_ms;

    if (!stg_from_read_start(text, &kind, &at_ms))
        stg_complain(l->c, stg_load_hub_place(l, "kafka.start"),
                     "`kafka.start`: `%.40s` is none of them; expected latest, "
                     "earliest or a time such as 2026-03-01T12:00:00Z%s%s%s",
                     text, near != NULL ? "; did you mean " : "",
                     near != NULL ? near : "", near != NULL ? "?" : "");
}

static void check_source(stg_loading *l)
{
    const stg_kafka_settings *k = &l->s->kafka;
    stg_file_place place = stg_load_hub_place(l, "source");

    check_twice(l);
    check_start(l);
    if (k->brokers.count == 0)
        stg_complain(l->c, place,
                     "`source` is kafka, and there are no `kafka.brokers`; "
                     "expected one at least");
    if (k->topics.count == 0)
        stg_complain(l->c, place,
                     "`source` is kafka, and there are no `kafka.topics`; "
                     "expected one at least");
}

static void check_copy_without_kafka(stg_loading *l, const char *path,
                                     const stg_letters_settings *copy)
{
    if (copy->topic != NULL)
        stg_complain(l->c, stg_load_hub_place(l, path),
                     "`%s` is a topic, and messages do not come from Kafka; "
                     "expected file:FILE, or `source: kafka`",
                     path);
}

/* What only Kafka makes sense of. */
static void check_other(stg_loading *l)
{
    if (is_written(l, "kafka") && !stg_load_is_option(l, "source"))
        stg_complain(l->c, stg_load_hub_place(l, "kafka"),
                     "`kafka`, and messages come from elsewhere; expected "
                     "`source: kafka`, too");
    if (stg_from_is_postgres(l->s->store.path))
        stg_complain(l->c, stg_load_hub_place(l, "store.path"),
                     "`store.path` is a database, which hubs that read from "
                     "Kafka share; expected a file, or `source: kafka`");
    check_copy_without_kafka(l, "dead-letters.copy", &l->s->letters);
    check_copy_without_kafka(l, "receipts.copy", &l->s->receipts.copy);
    if (l->s->shard.mode == STG_SHARD_TARGETS)
        stg_complain(l->c, stg_load_hub_place(l, "shard.mode"),
                     "`shard.mode` is targets, and messages do not come from "
                     "Kafka: the embedded queue has one hub; expected `source: "
                     "kafka`");
}

/* With `mode: partitions` Kafka shares out the work: a count would have no
 * effect, which is refused rather than ignored. */
static void check_shard(stg_loading *l)
{
    const stg_shard_settings *s = &l->s->shard;

    if (s->mode == STG_SHARD_PARTITIONS) {
        if (s->count > 1 || s->index > 1)
            stg_complain(l->c, stg_load_hub_place(l, "shard"),
                         "`shard` without `mode: targets`; expected both, or "
                         "neither");
        return;
    }
    if (s->index > s->count)
        stg_complain(l->c, stg_load_hub_place(l, "shard.index"),
                     "`shard.index` is %" PRIu32 ", and there are %" PRIu32
                     " of them; expected 1 to %" PRIu32,
                     s->index, s->count, s->count);
}

/* The hub's own list may have patterns: a name is in it if one of them
 * matches. */
bool stg_validate_has_topic(const stg_texts *topics, const char *topic)
{
    for (size_t i = 0; i < topics->count; i++)
        if (stg_topic_matches(topics->at[i], topic))
            return true;
    return false;
}

/* Whether a target's choice can have something of the topics. What two patterns
 * have in common nobody can say. */
static bool has_choice(const stg_texts *topics, const char *choice)
{
    if (!stg_topic_is_pattern(choice))
        return stg_validate_has_topic(topics, choice);
    for (size_t i = 0; i < topics->count; i++)
        if (stg_topic_is_pattern(topics->at[i]) ||
            stg_topic_matches(choice, topics->at[i]))
            return true;
    return false;
}

/* Patterns of a list are checked with it; those of kafka://... here. */
static void check_patterns(stg_loading *l)
{
    const stg_kafka_settings *k = &l->s->kafka;
    stg_error err;

    for (size_t i = 0; k->from != NULL && i < k->topics.count; i++)
        if (stg_topic_check(k->topics.at[i], &err) != STG_OK)
            stg_complain(l->c, stg_load_hub_place(l, "source"), "`source`: %s",
                         err.text);
}

/* what: "dead letter" */
static void check_copy(stg_loading *l, const char *path,
                       const stg_letters_settings *copy, const char *what)
{
    if (copy->topic != NULL &&
        stg_validate_has_topic(&l->s->kafka.topics, copy->topic))
        stg_complain(l->c, stg_load_hub_place(l, path),
                     "`%s`: messages come from the topic %.60s, and each %s "
                     "would be one; expected another topic",
                     path, copy->topic, what);
}

/* A number of `kafka.options`, or what librdkafka has without it. */
static uint64_t option_of(const stg_kafka_settings *k, const char *name,
                          uint64_t otherwise)
{
    for (size_t i = 0; i < k->option_count; i++)
        if (strcmp(k->options[i].name, name) == 0)
            return strtoull(k->options[i].value, NULL, 10);
    return otherwise;
}

/* One heartbeat that is late must not cost the hub its partitions. */
static void check_session(stg_loading *l)
{
    const stg_kafka_settings *k = &l->s->kafka;
    uint64_t session = option_of(k, "session.timeout.ms", 45000),
             heartbeat = option_of(k, "heartbeat.interval.ms", 3000);

    if (session / 3 < heartbeat)
        stg_warn(l->c, stg_load_hub_place(l, "kafka.options"),
                 "`session.timeout.ms` is %" PRIu64
                 ", and `heartbeat.interval.ms` %" PRIu64
                 ": a heartbeat or two that are late cost the hub its "
                 "partitions; expected three heartbeats a session at least",
                 session, heartbeat);
}

/* Called with values that may not have been read; defaults stand in their
 * place. */
void stg_validate_kafka(stg_loading *l)
{
    if (l->s->source != STG_SOURCE_KAFKA) {
        check_other(l);
        return;
    }
    check_source(l);
    check_patterns(l);
    check_copy(l, "dead-letters.copy", &l->s->letters, "dead letter");
    check_copy(l, "receipts.copy", &l->s->receipts.copy, "receipt");
    check_session(l);
    check_shard(l);
}

/* A target's `topics` choose among the hub's: a topic that the hub does not
 * read would never bring a message. */
void stg_validate_topics(stg_loading *l, size_t target)
{
    const stg_texts *topics = &l->s->targets[target].topics;

    for (size_t i = 0; i < topics->count; i++)
        if (l->s->source != STG_SOURCE_KAFKA) {
            stg_complain(l->c, stg_load_target_place(l, target, "topics"),
                         "`topics`, and messages do not come from Kafka; "
                         "expected `source: kafka`");
            return;
        } else if (!has_choice(&l->s->kafka.topics, topics->at[i])) {
            stg_complain(l->c, stg_load_target_place(l, target, "topics"),
                         "`topics`: %.60s is none of `kafka.topics`, so that "
                         "nothing would come from it; expected one of them",
                         topics->at[i]);
        }
}
