/* Kafka, PostgreSQL and shards: what goes with what. */
#include <inttypes.h>
#include <string.h>

#include "hub/settings/from.h"
#include "hub/settings/loading.h"

static bool is_written(const stg_loading *l, const char *path)
{
    return stg_load_hub_place(l, path).line > 0;
}

/* What kafka://... says is not said again elsewhere. */
static void judge_twice(stg_loading *l)
{
    static const char *const paths[] = {"kafka.brokers", "kafka.topics",
                                        "kafka.group"};
    const stg_kafka_settings *k = &l->s->kafka;

    if (k->from == NULL)
        return;
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        if ((i < 2 || strstr(k->from, "?group=") != NULL) &&
            is_written(l, paths[i]))
            stg_complain(l->c, stg_load_hub_place(l, paths[i]),
                         "`%s`, and `source` says it, too; wanted it once",
                         paths[i]);
}

static void judge_source(stg_loading *l)
{
    const stg_kafka_settings *k = &l->s->kafka;
    stg_file_place place = stg_load_hub_place(l, "source");

    judge_twice(l);
    if (k->brokers.count == 0)
        stg_complain(l->c, place,
                     "`source` is kafka, and there are no `kafka.brokers`; "
                     "wanted one at least");
    if (k->topics.count == 0)
        stg_complain(l->c, place,
                     "`source` is kafka, and there are no `kafka.topics`; "
                     "wanted one at least");
}

/* What only Kafka makes sense of. */
static void judge_other(stg_loading *l)
{
    if (is_written(l, "kafka"))
        stg_complain(l->c, stg_load_hub_place(l, "kafka"),
                     "`kafka`, and messages come from elsewhere; wanted "
                     "`source: kafka`, too");
    if (stg_from_is_postgres(l->s->store.path))
        stg_complain(l->c, stg_load_hub_place(l, "store.path"),
                     "`store.path` is a database, which hubs that read from "
                     "Kafka share; wanted a file, or `source: kafka`");
    if (l->s->letters.topic != NULL)
        stg_complain(l->c, stg_load_hub_place(l, "dead-letters"),
                     "`dead-letters` is a topic, and messages do not come from "
                     "Kafka; wanted file:FILE, or `source: kafka`");
    if (l->s->shard.by == STG_SHARD_TARGETS)
        stg_complain(l->c, stg_load_hub_place(l, "shard.by"),
                     "`shard.by` is targets, and messages do not come from "
                     "Kafka: the embedded queue has one hub; wanted `source: "
                     "kafka`");
}

static void judge_shard(stg_loading *l)
{
    const stg_shard_settings *s = &l->s->shard;

    if (s->by == STG_SHARD_PARTITIONS) {
        if (s->of > 1 || s->me > 1)
            stg_complain(l->c, stg_load_hub_place(l, "shard"),
                         "`shard` without `by: targets`; wanted both, or "
                         "neither");
        return;
    }
    if (s->me > s->of)
        stg_complain(l->c, stg_load_hub_place(l, "shard.me"),
                     "`shard.me` is %" PRIu32 ", and there are %" PRIu32
                     " of them; wanted 1 to %" PRIu32,
                     s->me, s->of, s->of);
}

static bool has_topic(const stg_texts *topics, const char *topic)
{
    for (size_t i = 0; i < topics->count; i++)
        if (strcmp(topics->at[i], topic) == 0)
            return true;
    return false;
}

static void judge_letters(stg_loading *l)
{
    const char *topic = l->s->letters.topic;

    if (topic != NULL && has_topic(&l->s->kafka.topics, topic))
        stg_complain(l->c, stg_load_hub_place(l, "dead-letters"),
                     "`dead-letters`: messages come from the topic %.60s, and "
                     "each dead letter would be one; wanted another topic",
                     topic);
}

void stg_judge_kafka(stg_loading *l)
{
    if (l->s->source != STG_SOURCE_KAFKA) {
        judge_other(l);
        return;
    }
    judge_source(l);
    judge_letters(l);
    judge_shard(l);
}

void stg_judge_topics(stg_loading *l, size_t target)
{
    const stg_texts *topics = &l->s->targets[target].topics;

    for (size_t i = 0; i < topics->count; i++)
        if (l->s->source != STG_SOURCE_KAFKA) {
            stg_complain(l->c, stg_load_target_place(l, target, "topics"),
                         "`topics`, and messages do not come from Kafka; "
                         "wanted `source: kafka`");
            return;
        } else if (!has_topic(&l->s->kafka.topics, topics->at[i])) {
            stg_complain(l->c, stg_load_target_place(l, target, "topics"),
                         "`topics`: %.60s is none of `kafka.topics`, so that "
                         "nothing would come from it; wanted one of them",
                         topics->at[i]);
        }
}
