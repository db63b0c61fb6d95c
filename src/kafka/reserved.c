#include "kafka/reserved.h"

#include <stddef.h>
#include <string.h>

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
