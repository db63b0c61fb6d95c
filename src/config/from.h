/* from.h - where messages come from, and where they are kept, as a text:
 *
 *     queue
 *     kafka
 *     kafka://HOST:PORT,HOST:PORT/TOPIC,TOPIC?group=GROUP&start=START
 *
 * The last one says in one what the settings `kafka.brokers`, `kafka.topics`,
 * `kafka.group` and `kafka.start` say; a port left out is 9092, a group is
 * `stagger`, a start is `latest`. A topic may be a pattern (kafka/topic.h),
 * without a comma or a question mark. */
#ifndef STAGGER_CONFIG_FROM_H
#define STAGGER_CONFIG_FROM_H

#include <stdint.h>

#include "base/span.h"
#include "config/settings.h"

/* Sets s->source and, of a text with kafka://, s->kafka. The text is copied.
 * Returns STG_INVALID with words ("it has no topic"), and
 * nothing has changed; STG_IO when there is no memory. */
stg_status stg_from_read(stg_settings *s, const char *text, stg_error *err);

/* Where a group begins, as a text: latest, earliest, or a time. */
typedef enum stg_start_kind {
    STG_START_LATEST,
    STG_START_EARLIEST,
    STG_START_TIME,
} stg_start_kind;

/* False: it is none. *at_ms: of a time, since 1970. */
bool stg_from_read_start(const char *text, stg_start_kind *kind,
                         uint64_t *at_ms);

/* host, host:port or [v6]:port. */
bool stg_from_is_broker(stg_span text);

/* Whether a store is a database: postgres:// or postgresql://. */
bool stg_from_is_postgres(const char *store);

/* Whether its URL has a password, before the host or as a parameter. */
bool stg_from_has_password(const char *store);

#endif
