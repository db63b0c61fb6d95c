/* What librdkafka is told: our defaults, then what the settings say, then what
 * the hub cannot do without.
 *
 * The order is the rule: `preferred` may be overruled by `kafka.options`,
 * `needed` may not. What is added to `needed` is added to reserved.c, too, so
 * that a setting of it is refused with a reason and not overruled in silence.
 *
 * The trap: a value may be a password. No error of a property prints one, and
 * librdkafka's own text of a refused value is not passed on, for it has the
 * value in it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/refuse.h"
#include "http/header.h"
#include "kafka/internal.h"
#include "kafka/topic.h"

enum { COOPERATIVE_FROM = 0x020a00ff }; /* 2.10: below, its assignor has bugs */

/* -- options --------------------------------------------------------------- */

stg_kafka_options stg_kafka_options_default(void)
{
    return (stg_kafka_options){
        .headers = stg_headers_default,
        .message_max = 1 << 20,
        .queue_max = 16 << 20,
        .hold = 5 * STG_S,
        .commit_every = 200 * STG_MS,
    };
}

static char *copy_text(const char *text)
{
    return text == NULL ? NULL : stg_kafka_text(text);
}

static const char **copy_texts(const char *const *texts)
{
    size_t count = 0;
    const char **copy;

    while (texts != NULL && texts[count] != NULL)
        count++;
    copy = stg_kafka_memory(count + 1, sizeof *copy);
    for (size_t i = 0; i < count; i++)
        copy[i] = stg_kafka_text(texts[i]);
    return copy;
}

/* A deep copy, texts and lists, for the threads: the caller's options may be
 * freed when stg_kafka_open() has returned. */
stg_kafka_options stg_kafka_options_copy(const stg_kafka_options *o)
{
    static const char *const none[] = {NULL};
    stg_kafka_options copy = *o;
    stg_kafka_property *properties =
        stg_kafka_memory(o->property_count + 1, sizeof *properties);

    for (size_t i = 0; i < o->property_count; i++)
        properties[i] = (stg_kafka_property){copy_text(o->properties[i].name),
                                             copy_text(o->properties[i].value)};
    copy.properties = properties;
    copy.brokers = copy_text(o->brokers);
    copy.group = copy_text(o->group);
    copy.content_type = copy_text(o->content_type);
    copy.topics = copy_texts(o->topics);
    copy.known = copy_texts(o->known == NULL ? none : o->known);
    copy.headers =
        copy_texts(o->headers == NULL ? stg_headers_default : o->headers);
    return copy;
}

static void free_text(const char *text)
{
    free((char *)(uintptr_t)text);
}

static void free_texts(const char *const *texts)
{
    for (size_t i = 0; texts[i] != NULL; i++)
        free_text(texts[i]);
    free((void *)(uintptr_t)texts);
}

void stg_kafka_options_free(stg_kafka_options *o)
{
    for (size_t i = 0; i < o->property_count; i++) {
        free_text(o->properties[i].name);
        free_text(o->properties[i].value);
    }
    free((void *)(uintptr_t)o->properties);
    free_text(o->brokers);
    free_text(o->group);
    free_text(o->content_type);
    free_texts(o->topics);
    free_texts(o->known);
    free_texts(o->headers);
}

/* -- properties ------------------------------------------------------------ */

static stg_status set(rd_kafka_conf_t *conf, const char *name,
                      const char *value, stg_error *err)
{
    char why[512];

    // Without a value it is as if nobody had set it, where there is one.
    switch (rd_kafka_conf_set(conf, name, value, why, sizeof why)) {
    case RD_KAFKA_CONF_OK:
        return STG_OK;
    case RD_KAFKA_CONF_UNKNOWN:
        return stg_hub_refuse(err, STG_INVALID,
                              "kafka: librdkafka %s has no property "
                              "\"%.100s\"",
                              stg_kafka_version(), name);
    default:
        // Its words have the value in them, which may be a secret.
        return stg_hub_refuse(err, STG_INVALID,
                              "kafka: the property \"%.100s\" does not take "
                              "the value that was given",
                              name);
    }
}

/* Leaves out a property that this version does not know. */
static void set_if(rd_kafka_conf_t *conf, const char *name, const char *value)
{
    char why[512];

    (void)rd_kafka_conf_set(conf, name, value, why, sizeof why);
}

static stg_status set_number(rd_kafka_conf_t *conf, const char *name,
                             size_t value, stg_error *err)
{
    char text[24];

    snprintf(text, sizeof text, "%zu", value);
    return set(conf, name, text, err);
}

/* Those of the settings, so that they win over what was set before. */
static stg_status set_given(rd_kafka_conf_t *conf,
                            const stg_kafka_property *properties, size_t count,
                            stg_error *err)
{
    stg_status status = STG_OK;

    for (size_t i = 0; i < count && status == STG_OK; i++) {
        const char *why = stg_kafka_reserved(properties[i].name);

        if (why != NULL)
            status = stg_hub_refuse(err, STG_INVALID,
                                    "kafka: the property \"%.100s\" %s",
                                    properties[i].name, why);
        else
            status = set(conf, properties[i].name, properties[i].value, err);
    }
    return status;
}

typedef struct pair {
    const char *name, *value;
} pair;

static stg_status set_pairs(rd_kafka_conf_t *conf, const pair *pairs,
                            size_t count, stg_error *err)
{
    stg_status status = STG_OK;

    for (size_t i = 0; i < count && status == STG_OK; i++)
        status = set(conf, pairs[i].name, pairs[i].value, err);
    return status;
}

#define SET_PAIRS(conf, pairs, err) \
    set_pairs((conf), (pairs), sizeof(pairs) / sizeof *(pairs), (err))

/* -- a consumer ------------------------------------------------------------ */

static const pair preferred[] = {
    {"client.id", "stagger"},
    {"partition.assignment.strategy", "range,roundrobin"},
    // So soon it sees topics and partitions that are new.
    {"topic.metadata.refresh.interval.ms", "10000"},
    // A pattern that matches them would read its own commits for ever.
    {"topic.blacklist", "^__consumer_offsets$,^__transaction_state$"},
    {"socket.keepalive.enable", "true"},
    {"reconnect.backoff.max.ms", "5000"},
    // Brokers close what is idle.
    {"log.connection.close", "false"},
};

/* What is out of range is checked here, and the end of a partition passes the
 * markers of transactions that no message follows. */
static const pair needed[] = {
    {"enable.auto.commit", "false"},    {"enable.auto.offset.store", "false"},
    {"auto.offset.reset", "error"},     {"enable.partition.eof", "true"},
    {"queued.min.messages", "1000000"}, {"log.queue", "true"},
};

/* For the catch-up reader, which reads one partition after another. Not
 * reserved: the settings of these are for the member alone. */
static const pair hasty[] = {
    {"fetch.wait.max.ms", "5"},
    {"fetch.min.bytes", "1"},
};

static stg_status set_sizes(rd_kafka_conf_t *conf, const stg_kafka_sizes *s,
                            stg_error *err)
{
    stg_status status =
        set_number(conf, "fetch.message.max.bytes", s->piece_max, err);

    if (status == STG_OK)
        status = set_number(conf, "fetch.max.bytes", s->answer_max, err);
    // While the queue is full, older ones look again after a second.
    set_if(conf, "fetch.queue.backoff.ms", "50");
    return status;
}

/* In this order: what we prefer, then what the settings give, then what must be so
 * whatever they say. */
static stg_status set_all(rd_kafka_conf_t *conf, const stg_kafka_options *o,
                          const stg_kafka_sizes *sizes, stg_error *err)
{
    stg_status status = SET_PAIRS(conf, preferred, err);

    if (status == STG_OK)
        status = set_sizes(conf, sizes, err);
    if (status == STG_OK)
        status = set_given(conf, o->properties, o->property_count, err);
    if (status == STG_OK)
        status = SET_PAIRS(conf, needed, err);
    if (status == STG_OK && sizes->is_hasty)
        status = SET_PAIRS(conf, hasty, err);
    if (status == STG_OK)
        status = set_number(conf, "queued.max.messages.kbytes",
                            sizes->queue_max / 1024, err);
    if (status == STG_OK)
        status = set(conf, "bootstrap.servers", o->brokers, err);
    if (status == STG_OK)
        status = set(conf, "group.id", o->group, err);
    rd_kafka_conf_set_events(
        conf, RD_KAFKA_EVENT_REBALANCE | RD_KAFKA_EVENT_ERROR |
                  RD_KAFKA_EVENT_LOG | RD_KAFKA_EVENT_OFFSET_COMMIT);
    return status;
}

rd_kafka_conf_t *stg_kafka_conf(const stg_kafka_options *o,
                                const stg_kafka_sizes *sizes, stg_error *err)
{
    rd_kafka_conf_t *conf = rd_kafka_conf_new();

    if (set_all(conf, o, sizes, err) == STG_OK)
        return conf;
    rd_kafka_conf_destroy(conf);
    return NULL;
}

rd_kafka_t *stg_kafka_consumer(rd_kafka_conf_t *conf, stg_error *err)
{
    char why[300];
    rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_CONSUMER, conf, why, sizeof why);

    if (rk == NULL) {
        rd_kafka_conf_destroy(conf);
        stg_hub_refuse(err, STG_INVALID, "kafka: %s", why);
        return NULL;
    }
    (void)rd_kafka_set_log_queue(rk, NULL);
    (void)rd_kafka_poll_set_consumer(rk);
    return rk;
}

bool stg_kafka_is_cooperative(const rd_kafka_conf_t *conf)
{
    char value[256] = "";
    size_t size = sizeof value;

    return rd_kafka_conf_get(conf, "partition.assignment.strategy", value,
                             &size) == RD_KAFKA_CONF_OK &&
           strstr(value, "cooperative") != NULL;
}

/* -- a producer ------------------------------------------------------------ */

/* A callback overrules the property `partitioner`, so it is set only where the
 * settings have none. */
static bool has_partitioner(const stg_kafka_property *properties, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(properties[i].name, "partitioner") == 0 ||
            strcmp(properties[i].name, "topic.partitioner") == 0)
            return true;
    return false;
}

rd_kafka_conf_t *stg_kafka_conf_producer(const char *brokers,
                                         const stg_kafka_property *properties,
                                         size_t count,
                                         stg_kafka_partitioner *partitioner,
                                         stg_error *err)
{
    static const pair ours[] = {
        {"client.id", "stagger"},
        {"linger.ms", "5"},
        {"message.timeout.ms", "30000"},
        {"message.max.bytes", "67108864"},
        {"socket.keepalive.enable", "true"},
        // Else it asks no partitioner about a message without a key.
        {"sticky.partitioning.linger.ms", "0"},
        {"partitioner", "murmur2_random"}, // makes the topic's configuration
    };
    static const pair forced[] = {
        {"enable.idempotence", "true"},
        {"log.queue", "true"},
    };
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    stg_status status = SET_PAIRS(conf, ours, err);

    if (status == STG_OK)
        status = set_given(conf, properties, count, err);
    if (status == STG_OK)
        status = SET_PAIRS(conf, forced, err);
    if (status == STG_OK)
        status = set(conf, "bootstrap.servers", brokers, err);
    if (status != STG_OK) {
        rd_kafka_conf_destroy(conf);
        return NULL;
    }
    if (partitioner != NULL && !has_partitioner(properties, count))
        rd_kafka_topic_conf_set_partitioner_cb(
            rd_kafka_conf_get_default_topic_conf(conf), partitioner);
    return conf;
}

/* -- a check --------------------------------------------------------------- */

static stg_status check_topics(const char *const *topics, stg_error *err)
{
    stg_error why;

    if (topics == NULL || topics[0] == NULL)
        return stg_hub_refuse(err, STG_INVALID,
                              "kafka: no topic; expected one at least");
    for (size_t i = 0; topics[i] != NULL; i++) {
        if (stg_topic_check(topics[i], &why) != STG_OK)
            return stg_hub_refuse(err, STG_INVALID, "kafka: %s", why.text);
        for (size_t j = 0; j < i; j++)
            if (strcmp(topics[i], topics[j]) == 0)
                return stg_hub_refuse(err, STG_INVALID,
                                      "kafka: the topic %.80s is there twice",
                                      topics[i]);
    }
    return STG_OK;
}

/* What only an instance finds out: a certificate that cannot be read, a
 * mechanism that it was built without, numbers that do not go together. */
static stg_status try_instance(rd_kafka_conf_t *conf, stg_error *err)
{
    rd_kafka_t *rk = stg_kafka_consumer(conf, err);

    if (rk == NULL)
        return STG_INVALID;
    stg_kafka_destroy(rk);
    return STG_OK;
}

/* librdkafka says what is wrong with its properties only when an instance is made, so
 * one is made, and goes again: it needs no broker for that. */
stg_status stg_kafka_check(const stg_kafka_options *o, stg_error *err)
{
    static const stg_kafka_sizes sizes = {
        .queue_max = 16 << 20, .answer_max = 8 << 20, .piece_max = 1 << 20};
    stg_status status = check_topics(o->topics, err);
    rd_kafka_conf_t *conf;

    if (status != STG_OK)
        return status;
    if (o->brokers == NULL || o->brokers[0] == '\0')
        return stg_hub_refuse(err, STG_INVALID,
                              "kafka: no broker; expected host:port");
    if (o->group == NULL || o->group[0] == '\0')
        return stg_hub_refuse(err, STG_INVALID,
                              "kafka: no name of the consumer group");
    if (o->headers != NULL &&
        (status = stg_headers_check(o->headers, err)) != STG_OK)
        return status;
    conf = stg_kafka_conf(o, &sizes, err);
    return conf == NULL ? STG_INVALID : try_instance(conf, err);
}

stg_status stg_kafka_check_property(const char *name, const char *value,
                                    stg_error *err)
{
    stg_kafka_property one = {name, value};
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    stg_status status = set_given(conf, &one, 1, err);

    rd_kafka_conf_destroy(conf);
    return status;
}

bool stg_kafka_has_bugs(const rd_kafka_conf_t *conf)
{
    return rd_kafka_version() < COOPERATIVE_FROM &&
           stg_kafka_is_cooperative(conf);
}

const char *stg_kafka_version(void)
{
    return rd_kafka_version_str();
}
