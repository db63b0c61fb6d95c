/* letters.h - dead letters as messages of a topic:
 * `dead-letters.copy: kafka:TOPIC`.
 *
 * A producer of librdkafka's, idempotent, acks=all. The store's thread of dead
 * letters calls it behind its durable cursor: a row is there at least once, as
 * it is at that moment, and again when its state changes, always with its id.
 *
 *   key        the bytes of the record's key, if it had one
 *   value      the payload as it was published; none for a bulk row, and for one
 *              whose payload is gone
 *   headers    all of the record, as they were; or, where these were not kept,
 *              those that were to go out. Behind them stagger-dead-letter-id,
 *              stagger-message, stagger-target, stagger-state, stagger-cause,
 *              stagger-category, stagger-attempts, stagger-topic,
 *              stagger-partition and stagger-position; where there are any
 *              stagger-last-position, stagger-count, stagger-status,
 *              stagger-detail, stagger-replay, stagger-headers-left-out (how
 *              many of the record's had no room)
 *   partition  that of the record, modulo the number of those of the topic. The
 *              property `partitioner` overrules it
 *
 * A row that the topic refuses (it is too large, or not allowed in another way)
 * is written without its body, marked by stagger-left-out (why) and
 * stagger-payload-size (of the body, in bytes); if it is refused again, without
 * the message's headers; and then it is left out.
 *
 * One thread at a time. */
#ifndef STAGGER_KAFKA_LETTERS_H
#define STAGGER_KAFKA_LETTERS_H

#include "kafka/kafka.h"
#include "store/dead_letters.h"

typedef struct stg_kafka_letters stg_kafka_letters;

typedef struct stg_kafka_letters_options {
    const char *brokers;
    const char *topic;
    const stg_kafka_property *properties; /* as of stg_kafka_options; those of a
                                             consumer alone are left out */
    size_t property_count;
    stg_ns timeout; /* of stg_kafka_letters_write(): 30 s */
} stg_kafka_letters_options;

stg_kafka_letters_options stg_kafka_letters_options_default(void);

/* Needs no broker. Options are copied. Returns STG_INVALID as
 * stg_kafka_check(), STG_IO: no memory. */
stg_status stg_kafka_letters_open(stg_kafka_letters **letters,
                                  const stg_kafka_letters_options *o,
                                  stg_error *err);

/* Blocks until every row is acknowledged by the topic or left out, or returns
 * STG_IO with words that say what and what to do: those from report->written on
 * are to be written again, and any of them may be there already. Rows are in
 * the topic in this order, in each partition of it. */
stg_status stg_kafka_letters_write(stg_kafka_letters *l, const stg_letter *rows,
                                   size_t count, stg_letter_report *report,
                                   stg_error *err);

/* Since it was opened; by any thread. */
typedef struct stg_kafka_letters_counts {
    uint64_t written, cut, left_out; /* rows; cut: without their body */
} stg_kafka_letters_counts;

stg_kafka_letters_counts stg_kafka_letters_look(const stg_kafka_letters *l);

/* By another thread: a write that is under way ends soon, with STG_IO. */
void stg_kafka_letters_end_soon(stg_kafka_letters *l);

void stg_kafka_letters_close(stg_kafka_letters *l);

#endif
