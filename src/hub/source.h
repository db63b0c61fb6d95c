/* source.h - opens the source that the settings name, and gives it what it needs
 * of the hub. Flow's actions go to it by its table: see sources/source.h.
 *
 * All on the loop's thread. */
#ifndef STAGGER_HUB_SOURCE_H
#define STAGGER_HUB_SOURCE_H

#include "config/targets.h"
#include "hub/hub.h"
#include "kafka/kafka.h"
#include "sources/source.h"

/* What the hub has for its source. Zeroed before it is made. */
typedef struct stg_hub_source {
    stg_source_host host;
    bool is_open;
    stg_deadline retention; /* of what waits for targets that are gone */

    /* -- texts that a Kafka source keeps */
    char *brokers; /* "host:port,host:port" */
    stg_kafka_property *properties;
    char group[STG_SHARD_GROUP_MAX];
} stg_hub_source;

/* Before the store is opened, which is to know who reads bodies again and who
 * writes copies of dead letters. Makes what the settings name, unless the hub was
 * given one. Returns what the source's own function does. */
stg_status stg_hub_source_make(stg_hub *h, const stg_settings *o,
                               stg_store_options *store, stg_error *err);

/* Before flow's cursors are restored: assigns what is the source's from the
 * start, and the rows that a file has of partitions which are not this hub's
 * now. */
stg_status stg_hub_source_restore(stg_hub *h, stg_error *err);

/* Begins to read; *parts counts what is to be closed. */
stg_status stg_hub_source_open(stg_hub *h, unsigned *parts, stg_error *err);

/* closed is called once for what stg_hub_source_open() has counted. */
void stg_hub_source_close(stg_hub *h, void (*closed)(void *ctx), void *ctx);

/* The store is closed. */
void stg_hub_source_free(stg_hub *h);

/* Whether the messages of this partition are of one of the topics; all of them
 * where there are none. */
bool stg_hub_source_is_of(const stg_hub *h, uint32_t partition,
                          const stg_texts *topics);

#endif
