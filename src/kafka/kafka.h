/* kafka.h - topics of Apache Kafka as the log: what a member of a consumer
 * group is given, is read here and handed to the loop.
 *
 * Two consumers of librdkafka, with a thread each that makes every call of it;
 * and a producer, once something is published.
 * The member of the group has joined it, reads ahead of the furthest lane, and
 * commits. The catch-up reader stands outside of the group (under the same
 * group.id, so that no other right is needed), reads for lanes that catch up, one place at
 * a time, and never commits. Calls are made on the loop's thread, do not block,
 * and are answered by callbacks on it; what a callback is given is lent for its
 * time, but for names of topics, which stay; what a call is given is copied.
 *
 *   assigned   the group gave partitions: each is claimed in the store and
 *              given to flow, then stg_kafka_begin() says where to read from
 *   revoked    the group wants partitions back: they are not read any more;
 *              what is in flight ends, its checkpoint becomes durable, the last
 *              stg_kafka_commit(), then stg_kafka_let_go()
 *   lost       the group has them no longer for us: nothing of them is
 *              committed any more, whatever is asked
 *
 * A partition that is given is an *assignment*, a number that is never given
 * twice in a process. What is reported of an older one is too late, and ignored.
 *
 * A topic that was made again or cut off above the position that was read is
 * lost, and assigned again with other ends. A broker that cannot be reached needs
 * nothing: librdkafka goes on by itself, and it is told. After an error that
 * librdkafka cannot get over (another member has the same group.instance.id)
 * all is lost, and the consumer is opened anew after a wait that grows. */
#ifndef STAGGER_KAFKA_KAFKA_H
#define STAGGER_KAFKA_KAFKA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <uv.h>

#include <stagger/ns.h>
#include <stagger/status.h>

#include "flow/group.h"
#include "sources/source.h"
#include "store/fingerprint.h"
#include "store/published.h"

typedef struct stg_kafka stg_kafka;

/* A partition as it was given once. */
typedef struct stg_topic_partition {
    const char *topic;
    uint32_t partition;
    uint64_t assignment; /* from 1 */
} stg_topic_partition;

/* -- what comes of itself -------------------------------------------------- */

typedef struct stg_kafka_assigned {
    stg_topic_partition tp;
    uint64_t begin; /* the oldest position that the topic still has */
    uint64_t end;   /* the next that it will give: not below begin */
    bool has_committed;
    uint64_t committed; /* by the group */
} stg_kafka_assigned;

/* What people may want to know. In each, text says it in one line. */
typedef enum stg_kafka_report_kind {
    STG_KAFKA_AWAY,    /* no broker can be reached; until BACK */
    STG_KAFKA_BACK,    /* one answers again */
    STG_KAFKA_TROUBLE, /* something failed, and is tried again: topic, if it
                              is about one */
    STG_KAFKA_EXPIRED, /* position could not be read any more: the topic
                              begins at begin now, and is read from there.
                              For stg_flow_expired() */
    STG_KAFKA_RENEWED, /* position is above its end: the topic was made
                              again, or cut off. lost and assigned come next */
    STG_KAFKA_SUSPECT, /* the partition is not read for now: a broker did not
                              know the topic, or not the position, and now it
                              does. For stg_kafka_compare(); until
                              stg_kafka_resume() or stg_kafka_renew() */
    STG_KAFKA_REFUSED, /* as one of these two, but it is to stop: the
                              partition is not read on */
    STG_KAFKA_HEADERS_LOST, /* the record at position has headers that cannot
                              be sent: count; at most once a second of a
                              partition */
    STG_KAFKA_TOO_LARGE, /* the value at position is above message_max: size */
    STG_KAFKA_ADDED,     /* a topic has more partitions: `before`, `count` */
    STG_KAFKA_GONE,    /* a topic is not there, or none that a pattern matches;
                            until FOUND */
    STG_KAFKA_FOUND,   /* a topic that was GONE is there */
    STG_KAFKA_STARTED, /* the group begins the topic: `older` messages, at
                            most, are not read */
    STG_KAFKA_COOPERATIVE, /* the assignor that is asked for has bugs in this
                              version of librdkafka; once, at the start */
    STG_KAFKA_REOPENED,    /* after an error that it could not get over */
    STG_KAFKA_LOG,         /* a line of librdkafka's own: level */
} stg_kafka_report_kind;

typedef struct stg_kafka_report {
    stg_kafka_report_kind what;
    const char *text;
    stg_topic_partition tp; /* EXPIRED, RENEWED, SUSPECT, REFUSED, TOO_LARGE,
                              HEADERS_LOST; of the
                              others topic alone, NULL: of none */
    uint64_t position, begin;
    uint64_t size;
    uint32_t before, count;
    uint64_t older;     /* STARTED: messages, at most */
    bool is_matched;    /* GONE, FOUND: only a pattern wants it */
    int trouble;        /* TROUBLE: errors of one number and topic are one */
    const char *advice; /* TROUBLE: what to do; static, NULL: nothing */
    int level; /* as syslog has them: 3 error, 4 warning, 6 info, 7 debug */
} stg_kafka_report;

/* Whether the log is the one that a fingerprint was taken of. */
typedef enum stg_kafka_sameness {
    STG_KAFKA_SAME,
    STG_KAFKA_OTHER,     /* the topic was made again */
    STG_KAFKA_UNSURE,    /* nothing that was noted is there, and what is proves
                            nothing */
    STG_KAFKA_NO_ANSWER, /* no broker has said it in time: to be asked again */
} stg_kafka_sameness;

/* The answer to stg_kafka_compare(). */
typedef struct stg_kafka_compared {
    stg_topic_partition tp;
    stg_kafka_sameness how;
    const char *why; /* static */
} stg_kafka_compared;

/* -- options --------------------------------------------------------------- */

/* The treatment of a message without a value. */
typedef enum stg_kafka_null {
    STG_KAFKA_NULL_SKIP,  /* no message */
    STG_KAFKA_NULL_EMPTY, /* one with an empty body */
} stg_kafka_null;

/* Where the group begins a topic that neither it nor the store knows. */
typedef enum stg_kafka_start {
    STG_KAFKA_START_NONE, /* the caller begins where it likes */
    STG_KAFKA_START_LATEST,
    STG_KAFKA_START_EARLIEST,
    STG_KAFKA_START_TIME,
} stg_kafka_start;

/* A property of librdkafka's. */
typedef struct stg_kafka_property {
    const char *name, *value;
} stg_kafka_property;

typedef struct stg_kafka_options {
    const char *brokers; /* "host:9092,host2:9092" */
    /* Names, or patterns (kafka/topic.h), ended by NULL; one at least. */
    const char *const *topics;
    const char *group;
    /* Handed to librdkafka behind our own, so that they win; but for those
     * that stg_kafka_check() refuses. */
    const stg_kafka_property *properties;
    size_t property_count;
    const char *const *headers; /* the rules of http/header.h, ended by NULL:
                                   which headers are kept */
    const char *content_type;   /* of a message without a header content-type;
                                 NULL: none */
    size_t message_max;         /* bytes of a value: 1 MiB */
    stg_kafka_null null;
    bool keeps_headers;    /* a record with headers that cannot be sent is not
                           sent without them: stg_record.headers_lost */
    bool keeps_source;     /* the headers of a record go on with it as they are,
                              beside those that are sent, for a copy of its dead
                              letter: stg_parcel.source_headers. Of these and its
                              key as much as half of message_max */
    bool stops_expired;    /* what is not there any more: REFUSED; else it is
                              read from its first record, and that is told. (What
                              a lane that catches up has not read in time has expired in any
                              case.) */
    stg_kafka_start start; /* once a topic, before anything of it is assigned:
                              resolved to offsets, which are committed for all
                              of its partitions; STARTED */
    uint64_t start_ms;     /* of START_TIME: since 1970 */
    const char *const *known; /* topics that the store knows, ended by NULL:
                                 they have begun. NULL: none */
    size_t queue_max;         /* bytes that librdkafka reads ahead: 16 MiB. Some
                            answers of brokers may come on top of it, 8 MiB
                            each */
    stg_ns hold;         /* a revoked partition is let go after it, whatever is
                            missing: 5 s */
    stg_ns commit_every; /* commits are gathered so long: 200 ms */
    uint64_t seed;       /* of the jitter of waits */

    /* See above. Partitions are told of as soon as a broker has said where they
     * begin and end; so those of one assignment may come in several calls. */
    void (*assigned)(void *ctx, const stg_kafka_assigned *assigned,
                     size_t count);
    void (*revoked)(void *ctx, const stg_topic_partition *places, size_t count);
    void (*lost)(void *ctx, const stg_topic_partition *places, size_t count);
    void (*compared)(void *ctx, const stg_kafka_compared *all, size_t count);
    void (*report)(void *ctx, const stg_kafka_report *report);
    /* What was read has records with an id (stagger-id), and is handed over when
     * stg_kafka_placed() has said which of them are second ones. NULL: ids are
     * not looked at. */
    void (*place)(void *ctx, bool is_catch_up, const stg_reserved *all,
                  size_t count);
    void *ctx;
} stg_kafka_options;

/* Everything above that has a number; headers as stg_headers_default; the rest
 * is NULL or 0. */
stg_kafka_options stg_kafka_options_default(void);

/* Whether it could be opened, as far as that can be said without a broker.
 * Returns STG_INVALID with words: no topic, a name that Kafka does not allow, a
 * property that librdkafka does not know, a value that it does not take, or one
 * that is the hub's own (enable.auto.commit, group.id, auto.offset.reset ...);
 * and what an instance of librdkafka finds out when it is made, as this does: a
 * certificate that cannot be read, a password without a user. STG_INVALID too
 * where the program was built without librdkafka. Values are not in the words:
 * they may be secrets. */
stg_status stg_kafka_check(const stg_kafka_options *o, stg_error *err);

/* One property by itself. Without a value (NULL) its name alone. STG_OK where the
 * program was built without librdkafka. */
stg_status stg_kafka_check_property(const char *name, const char *value,
                                    stg_error *err);

/* Of librdkafka, "2.0.2"; NULL where the program was built without it. */
const char *stg_kafka_version(void);

/* -- a consumer ------------------------------------------------------------ */

/* Joins the group; assigned comes when a broker has answered, however long that
 * takes. Options are copied. Returns STG_INVALID as stg_kafka_check(), or STG_IO:
 * no memory, no threads. */
stg_status stg_kafka_open(stg_kafka **kafka, uv_loop_t *loop,
                          const stg_kafka_options *o, stg_error *err);

/* Nothing is reported or answered any more. What was asked to be committed is
 * committed (for 5 s at most), the group is left, the threads end; then done is
 * called. */
void stg_kafka_close(stg_kafka *k, void (*done)(void *ctx), void *ctx);

/* Reads the partition from a position on. Once for each assignment, and again
 * to read from elsewhere: tag is the caller's own, and comes back with what is
 * read from here on. */
void stg_kafka_begin(stg_kafka *k, const stg_topic_partition *p, uint64_t from,
                     uint64_t tag);

/* A revoked partition has nothing more to commit. When all that were revoked
 * together are let go, their commits are awaited, and then they go. */
void stg_kafka_let_go(stg_kafka *k, const stg_topic_partition *p);

/* Everything below offset is settled for good: see STG_ACTION_COMMIT. What is
 * not above what was asked before is ignored. */
void stg_kafka_commit(stg_kafka *k, const stg_topic_partition *p,
                      uint64_t offset);

/* -- the same log? --------------------------------------------------------- */

/* Reads the records of the fingerprint again; `compared` answers, within some
 * ten seconds. The partition need not have begun. */
void stg_kafka_compare(stg_kafka *k, const stg_topic_partition *p,
                       const stg_fingerprint *print);

/* It is the same: a partition that was reported as SUSPECT is read on. */
void stg_kafka_resume(stg_kafka *k, const stg_topic_partition *p);

/* It is another one: RENEWED, lost and assigned come next. */
void stg_kafka_renew(stg_kafka *k, const stg_topic_partition *p);

/* -- reading --------------------------------------------------------------- */

/* Records of one partition, in their order: key is the hash of the ordering
 * key, bytes a packed parcel; of one above message_max without its body, and
 * true_size is that of its value. */
typedef struct stg_kafka_run {
    stg_topic_partition tp;
    uint64_t tag;
    const stg_record *records;
    size_t count;      /* may be 0: there were only gaps */
    uint64_t next;     /* all below it was read */
    uint64_t end;      /* the next that the topic will give, as far as is known;
                      not below next */
    stg_log_mark mark; /* of one of the records, about once a second; hash 0:
                          none. Not of the catch-up reader */
} stg_kafka_run;

/* Partitions by topic and number, each once. */
typedef void stg_kafka_read_fn(void *ctx, const stg_kafka_run *runs,
                               size_t count);

/* What there is of all partitions that have begun, as much as fits into
 * bytes_max (as packed), but one message at least; waits until there is
 * something. One at a time. */
void stg_kafka_read(stg_kafka *k, size_t bytes_max, stg_kafka_read_fn *done,
                    void *ctx);

/* The same of one partition, from a position on, by the catch-up reader; without
 * waiting for what the topic does not have: then there is one run with no
 * records and next is from (or above it, where there was a gap up to the end).
 * The same where brokers do not answer within some seconds: so next == from says
 * nothing of what there is.
 * One at a time. Where the partition is let go or lost meanwhile, it is answered
 * all the same. */
void stg_kafka_read_catch_up(stg_kafka *k, const stg_topic_partition *p,
                             uint64_t from, size_t bytes_max, uint64_t tag,
                             stg_kafka_read_fn *done, void *ctx);

/* The same for what is to be sent again, and count_max records at most. What has
 * expired is not told, but passed over: next is then where the topic begins. The
 * reader is the same one, and has one call at a time. */
void stg_kafka_read_again(stg_kafka *k, const stg_topic_partition *p,
                          uint64_t from, size_t bytes_max, size_t count_max,
                          stg_kafka_read_fn *done, void *ctx);

/* The places of the messages that `place` has asked for, in its order; a record
 * that is elsewhere is left out. NULL: nothing is known, and none is. Returns how
 * many are. */
size_t stg_kafka_placed(stg_kafka *k, bool is_catch_up, const stg_reserved *all,
                        size_t count);

/* -- publishing ------------------------------------------------------------ */

/* The name of a topic that is read, or would be if there were one of it: as it is
 * among the options, or matched by a pattern of theirs. It stays. NULL: none. */
const char *stg_kafka_find_topic(stg_kafka *k, const char *name);

/* What became of a message. */
typedef struct stg_kafka_published {
    stg_appended how;
    uint32_t partition; /* STG_APPENDED: where it is */
    uint64_t offset;
} stg_kafka_published;

/* results[i] for messages[i]. */
typedef void stg_kafka_publish_fn(void *ctx, const stg_kafka_published *results,
                                  size_t count);

/* Writes messages to a topic, each to the partition of its key, in their order
 * there; done comes when each of them is acknowledged by all replicas in sync, or
 * is known not to be, or `message.timeout.ms` is over (30 s). It may come from
 * within; it comes in any case, after stg_kafka_close(), too, and before that is
 * done. topic is from stg_kafka_find_topic(). The messages are not
 * copied: they are the caller's, and stay until then, and so do ids: ids[i] goes
 * with messages[i], in its header stagger-id; NULL: none has one. */
void stg_kafka_publish(stg_kafka *k, const char *topic,
                       const stg_append *messages, const stg_record_id *ids,
                       size_t count, stg_kafka_publish_fn *done, void *ctx);

/* What is published and not acknowledged yet is given up: it is answered soon,
 * what a broker may have got already as STG_APPEND_UNACKNOWLEDGED. */
void stg_kafka_give_up(stg_kafka *k);

/* -- a look, for metrics --------------------------------------------------- */

typedef struct stg_kafka_view {
    stg_topic_partition tp;
    uint64_t next;      /* handed to the loop up to there */
    uint64_t end;       /* as in a run */
    uint64_t committed; /* that a broker has confirmed, of ours; 0: none yet */
} stg_kafka_view;

typedef struct stg_kafka_counts {
    bool is_away;
    uint64_t commits, commit_failures; /* lists, not partitions */
    uint64_t rebalances;               /* assigned, revoked and lost */
    uint64_t too_large, skipped;       /* messages; skipped: without a value */
    uint64_t headers_lost;             /* that could not be sent */
} stg_kafka_counts;

/* Each partition that is ours, as of about a second ago at most. */
void stg_kafka_look(stg_kafka *k, stg_kafka_counts *counts,
                    void (*each)(void *ctx, const stg_kafka_view *v),
                    void *ctx);

/* -- as a source --------------------------------------------------------- */

/* Topics of Kafka as a source: see sources/source.h. */

typedef struct stg_kafka_source_options {
    stg_kafka_options consumer; /* but its callbacks. Texts and lists are the
                                   caller's, and kept until the source is freed */
    const char *letters; /* the topic of copies of dead letters; NULL: none */
} stg_kafka_source_options;

/* Checks all that can be checked without a broker. Returns STG_INVALID with
 * words as stg_kafka_check() does, STG_IO: no memory. */
stg_status stg_source_new_kafka(stg_source **source,
                                const stg_kafka_source_options *o,
                                stg_error *err);

#endif
