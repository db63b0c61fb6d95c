/* from.h - where messages come from, and where they are kept, as a text:
 *
 *     queue
 *     stdin, or -
 *     kafka
 *     kafka://HOST:PORT,HOST:PORT/TOPIC,TOPIC?group=GROUP
 *
 * The last one says in one what the settings `kafka.brokers`, `kafka.topics` and
 * `kafka.group` say; a port left out is 9092, a group is `stagger`. */
#ifndef STAGGER_HUB_SETTINGS_FROM_H
#define STAGGER_HUB_SETTINGS_FROM_H

#include "hub/parcel.h"
#include "hub/settings/settings.h"

/* Sets s->source and, of a text with kafka://, s->kafka. The text is copied.
 * Returns STG_INVALID with words ("it has no topic"), and
 * nothing has changed; STG_IO when there is no memory. */
stg_status stg_from_read(stg_settings *s, const char *text, stg_error *err);

/* host, host:port or [v6]:port. */
bool stg_from_is_broker(stg_span text);

/* 1 to 249 of A-Z a-z 0-9 . _ - and neither . nor .. : Kafka's rule. */
bool stg_from_is_topic(stg_span text);

/* Whether a store is a database: postgres:// or postgresql://. */
bool stg_from_is_postgres(const char *store);

/* Whether its URL has a password, before the host or as a parameter. */
bool stg_from_has_password(const char *store);

#endif
