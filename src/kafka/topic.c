/* Topics and properties as settings say them: whether they may be, and which topics a
 * pattern means. Needs no librdkafka, so that a build without it checks the same. */
#include "kafka/topic.h"

#include <regex.h>
#include <string.h>

#include "base/refuse.h"

bool stg_topic_is_name(stg_span text)
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyz"
        "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    bool is_dots = (text.size == 1 && text.at[0] == '.') ||
                   (text.size == 2 && memcmp(text.at, "..", 2) == 0);

    if (text.size == 0 || text.size > STG_TOPIC_MAX || is_dots)
        return false;
    for (size_t i = 0; i < text.size; i++)
        if (memchr(allowed, text.at[i], sizeof allowed - 1) == NULL)
            return false;
    return true;
}

bool stg_topic_is_pattern(const char *text)
{
    return text[0] == '^';
}

/* 0: it can be used, and regfree() is due. */
static int compile(regex_t *re, const char *pattern)
{
    return regcomp(re, pattern, REG_EXTENDED | REG_NOSUB);
}

/* A pattern is compiled to be checked, by the same function that librdkafka uses. */
stg_status stg_topic_check(const char *text, stg_error *err)
{
    char why[120];
    regex_t re;
    int rc;

    if (!stg_topic_is_pattern(text))
        return stg_topic_is_name((stg_span){text, strlen(text)})
                   ? STG_OK
                   : stg_hub_refuse(
                         err, STG_INVALID,
                         "`%.80s` cannot be the name of a topic; expected 1 to "
                         "%d of A-Z a-z 0-9 . _ -, or a pattern that begins "
                         "with ^",
                         text, STG_TOPIC_MAX);
    rc = compile(&re, text);
    if (rc == 0) {
        regfree(&re);
        return STG_OK;
    }
    regerror(rc, &re, why, sizeof why);
    return stg_hub_refuse(err, STG_INVALID,
                          "`%.80s` is no regular expression (POSIX extended): "
                          "%s",
                          text, why);
}

bool stg_topic_matches(const char *text, const char *topic)
{
    bool is_match;
    regex_t re;

    if (!stg_topic_is_pattern(text))
        return strcmp(text, topic) == 0;
    if (compile(&re, text) != 0)
        return false;
    is_match = regexec(&re, topic, 0, NULL, 0) == 0;
    regfree(&re);
    return is_match;
}

/* -- properties ------------------------------------------------------------ */

/* A consumer that commits by itself, or begins elsewhere, loses messages; and a
 * producer must tell what has arrived, once and in order. */
const char *stg_kafka_reserved(const char *name)
{
    static const struct {
        const char *name, *why;
    } reserved[] = {
        {"bootstrap.servers", "is `kafka.brokers`; expected it there"},
        {"metadata.broker.list", "is `kafka.brokers`; expected it there"},
        {"group.id", "is `kafka.group`; expected it there"},
        {"auto.offset.reset",
         "is `kafka.start` and `kafka.expired`; expected it there"},
        {"topic.auto.offset.reset",
         "is `kafka.start` and `kafka.expired`; expected it there"},
        {"enable.auto.commit", "is the hub's own; expected none"},
        {"auto.commit.enable", "is the hub's own; expected none"},
        {"auto.commit.interval.ms", "is the hub's own; expected none"},
        {"enable.auto.offset.store", "is the hub's own; expected none"},
        {"enable.partition.eof", "is the hub's own; expected none"},
        {"queued.max.messages.kbytes", "is part of `memory`; expected none"},
        {"queued.min.messages", "is the hub's own; expected none"},
        {"offset.store.method", "is the hub's own; expected none"},
        {"offset.store.path", "is the hub's own; expected none"},
        {"offset.store.sync.interval.ms", "is the hub's own; expected none"},
        {"group.protocol", "is the hub's own: classic; expected none"},
        {"group.remote.assignor", "is the hub's own; expected none"},
        {"log.queue", "is the hub's own; expected none"},
        {"enabled_events", "is the hub's own; expected none"},
        {"internal.termination.signal", "is the hub's own; expected none"},
        {"enable.idempotence", "is the hub's own; expected none"},
        {"acks", "is the hub's own: all; expected none"},
        {"request.required.acks", "is the hub's own: all; expected none"},
        {"transactional.id", "is the hub's own; expected none"},
        {"delivery.report.only.error", "is the hub's own; expected none"},
        {"plugin.library.paths", "would load code into the hub; expected none"},
        {"ssl.engine.location", "would load code into the hub; expected none"},
        {"ssl.providers", "would load code into the hub; expected none"},
        {"sasl.kerberos.kinit.cmd", "would run a command; expected none"},
    };

    for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++)
        if (strcmp(reserved[i].name, name) == 0)
            return reserved[i].why;
    return NULL;
}
