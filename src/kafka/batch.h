/* batch.h - records of many partitions, as they are handed to the loop.
 *
 * Filled by one thread in the order that messages come in, closed into runs by
 * partition, read and freed by another. */
#ifndef STAGGER_KAFKA_BATCH_H
#define STAGGER_KAFKA_BATCH_H

#include "kafka/kafka.h"

typedef struct stg_kafka_batch {
    stg_kafka_run *runs; /* when it is closed */
    size_t run_count;
    stg_record *records;
    size_t count;
    size_t size; /* bytes of the records */

    /* -- while it is filled */
    struct stg_kafka_entry {
        size_t slot;
        stg_record record;
    } * entries;
    size_t room;
    struct stg_kafka_block *blocks;

    /* Records that say which message they are, of any number. */
    struct stg_kafka_identified {
        size_t run;
        uint64_t position;
        stg_record_id id;
    } * ids;
    size_t id_count, id_room;
} stg_kafka_batch;

stg_kafka_batch *stg_kafka_batch_new(void);
void stg_kafka_batch_free(stg_kafka_batch *b); /* may be NULL */

/* Room for the bytes of a record, as long as the batch is there. */
void *stg_kafka_batch_bytes(stg_kafka_batch *b, size_t size);

/* A record of partition number `slot`, whatever numbers those are. */
void stg_kafka_batch_add(stg_kafka_batch *b, size_t slot,
                         const stg_record *record);

/* The record that was added last, of that partition, says which message it is. */
void stg_kafka_batch_identify(stg_kafka_batch *b, size_t slot,
                              const stg_record_id *id);

/* A run for each of slots[0 ... count), which are not to be touched but for
 * `records` and `count`: in their order. Records keep theirs. */
void stg_kafka_batch_close(stg_kafka_batch *b, const stg_kafka_run *slots,
                           size_t count);

/* Of a closed one: leaves out the record at a position of a run. */
void stg_kafka_batch_drop(stg_kafka_batch *b, size_t run, uint64_t position);

#endif
