/* reserved.h - properties of librdkafka that are the hub's own. */
#ifndef STAGGER_KAFKA_RESERVED_H
#define STAGGER_KAFKA_RESERVED_H

/* Why, with what to do: "is the hub's own; expected none". NULL: it can be
 * set. */
const char *stg_kafka_reserved(const char *name);

#endif
