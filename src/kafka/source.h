/* source.h - topics of Kafka as a source: see sources/source.h. */
#ifndef STAGGER_KAFKA_SOURCE_H
#define STAGGER_KAFKA_SOURCE_H

#include "kafka/kafka.h"
#include "sources/source.h"

typedef struct stg_kafka_source_options {
    stg_kafka_options consumer; /* but its callbacks. Texts are kept until the
                                   source is freed */
    const char *letters; /* the topic of copies of dead letters; NULL: none */
} stg_kafka_source_options;

/* Checks all that can be checked without a broker. Returns STG_INVALID with
 * words as stg_kafka_check() does, STG_IO: no memory. */
stg_status stg_source_new_kafka(stg_source **source,
                                const stg_kafka_source_options *o,
                                stg_error *err);

#endif
