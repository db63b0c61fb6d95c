/* cluster.h - librdkafka's mock of a Kafka cluster, who writes to it, and who
 * reads from it as the hub does. */
#ifndef TESTS_KAFKA_CLUSTER_H
#define TESTS_KAFKA_CLUSTER_H

#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

#include "kafka/kafka.h"
#include "store/parcel.h"

/* Kinds of requests, for errors of the mock: the protocol's API keys. */
enum {
    API_PRODUCE = 0,
    API_FETCH = 1,
    API_LIST_OFFSETS = 2,
    API_METADATA = 3,
    API_OFFSET_COMMIT = 8,
    API_OFFSET_FETCH = 9,
    API_FIND_COORDINATOR = 10,
    API_JOIN_GROUP = 11,
    API_HEARTBEAT = 12,
};

/* -- a cluster ------------------------------------------------------------- */

typedef struct cluster {
    rd_kafka_t *rk; /* a producer, and the mock's owner */
    rd_kafka_mock_cluster_t *mock;
    const char *brokers;
} cluster;

void cluster_open(cluster *c, int brokers);
/* A real one, that is there already. */
void cluster_join(cluster *c, const char *brokers);
void cluster_topic(cluster *c, const char *topic, int partitions);
void cluster_close(cluster *c);

/* Any of key, value may be NULL; a header "name: value" or NULL. */
void cluster_send(cluster *c, const char *topic, int partition, const char *key,
                  const char *value, size_t size, const char *header);
/* "m0" ... to a partition, from number `from` on. */
void cluster_send_many(cluster *c, const char *topic, int partition,
                       unsigned from, unsigned count);
void cluster_flush(cluster *c);

/* What the group has committed; -1: nothing. */
int64_t cluster_committed(cluster *c, const char *group, const char *topic,
                          int partition);

/* -- a reader -------------------------------------------------------------- */

enum { PARTS_MAX = 64, TOLD_MAX = 64 };

typedef struct part {
    bool is_there;
    stg_kafka_assigned given;
    uint64_t first; /* position that was read; UINT64_MAX: none */
    uint64_t next;  /* of the last run */
    uint64_t end;   /* likewise */
    uint64_t tag;   /* likewise */
    stg_fingerprint print;
    uint64_t messages; /* read */
    uint64_t twice;    /* of them, at a position that was read before */
    unsigned assigned, revoked, lost;
} part;

typedef struct reader {
    uv_loop_t loop;
    stg_kafka *kafka;
    stg_kafka_options options;
    const char *topics[8];
    stg_kafka_property properties[8];
    stg_error err;

    /* -- what it does by itself */
    bool begins; /* where the group has committed, or at the begin */
    bool reads;
    bool commits; /* what it has read */
    bool lets_go;
    size_t bytes_max;
    uint64_t tag;

    /* -- what it has seen */
    part parts[PARTS_MAX]; /* of the topic `topics[0]` */
    stg_kafka_report told[TOLD_MAX];
    char texts[TOLD_MAX][512];
    unsigned told_count, assigned, revoked, lost, batches;
    stg_kafka_compared compared; /* the last one */
    uint64_t messages;
    /* Each position that is read of the topic `topics[0]`; NULL: none. */
    void (*saw)(void *ctx, uint32_t partition, uint64_t position);
    void *ctx;
    bool is_reading, is_behind, is_closed;
    /* of the last one */
    stg_parcel parcel;
    char *bytes;
    stg_record record;
    /* of the last read behind */
    uint64_t behind_count, behind_first, behind_next;
    unsigned behind_answers;
} reader;

/* Options for the group "g", to be changed before reader_open(). All of what it
 * does by itself is on. */
void reader_begin(reader *r, const cluster *c, const char *topic);
void reader_open(reader *r);
/* Leaves the group. It may begin again after that. */
void reader_close(reader *r);

void reader_set(reader *r, const char *property, const char *value);

/* Runs until claim(r), for 60 s at most: then it fails the test. */
void reader_until(reader *r, bool (*claim)(const reader *r));
void reader_until_messages(reader *r, uint64_t messages);
/* Of readers in one group, of which any may have them. */
void readers_until(reader **rs, size_t count, bool (*claim)(reader **rs));
void reader_run_for(reader *r, unsigned ms);

/* Whether it was told of that; the last time. */
const stg_kafka_report *reader_told(const reader *r,
                                    stg_kafka_report_kind what);

void reader_read(reader *r);
void reader_read_behind(reader *r, uint32_t partition, uint64_t from,
                        size_t bytes_max);
void reader_read_again(reader *r, uint32_t partition, uint64_t from,
                       size_t count_max);
stg_topic_partition reader_place(const reader *r, uint32_t partition);

#endif
