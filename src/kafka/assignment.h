/* assignment.h - the loop's side of Kafka as a source: what its files share.
 * Private to them. They need no librdkafka: what they ask of it goes by kafka.h.
 *
 * A partition's life is in two tables, an assignment here and flow's partition:
 *
 *     assigned  ->  the same log?  ->  claim in the store  ->  assign to flow
 *                       ->  begin to read
 *     revoked   ->  flow ends it  ->  STG_ACTION_REVOKED  ->  let go
 *     lost, fenced  ->  flow drops it  ->  STG_ACTION_REVOKED; claimed anew if it
 *                       is still ours
 *
 * The consumer's thread has a list of its own (stg_kafka_slot), of what
 * librdkafka is to do next: the two are of one partition where topic, partition
 * and assignment are the same. No thread sees the other's; commands and events go
 * between them, and what is late is known by the number of its assignment.
 *
 *     source.c          the table of sources/source.h; reading, looks
 *     assignment.c      the table of assignments
 *     claim.c           partitions that come and go
 *     log_check.c       whether a partition's log is the one that it was
 *     catch_up_queue.c  who has the catch-up reader next
 *     publish.c         what is posted to the hub
 *     keyed.c           the same with idempotency keys
 *     report.c          what the consumer says, for operators */
#ifndef STAGGER_KAFKA_ASSIGNMENT_H
#define STAGGER_KAFKA_ASSIGNMENT_H

#include <stdbool.h>
#include <stdint.h>

#include <stagger/ns.h>

#include "base/list.h"
#include "kafka/kafka.h"
#include "kafka/letters.h"
#include "sources/source.h"

/* -- trouble.c ----------------------------------------------------------- */

/* What librdkafka says again and again, as one trouble: told
 * when it begins, how often it came at intervals, and when it is over.
 *
 * Errors are the same trouble by a number of their kind and their topic. One that
 * was silent for STG_KAFKA_CALM is over: librdkafka itself repeats the same error
 * once in half a minute at most. Pure: `now` is an argument. */

enum { STG_KAFKA_TROUBLES = 16 };

#define STG_KAFKA_CALM (90 * STG_S)
#define STG_KAFKA_REMIND (5 * STG_MIN)

typedef struct stg_kafka_trouble {
    int kind;
    char topic[256]; /* "": of none */
    char text[256];  /* of the last one */
    stg_ns began_at, last_at, told_at;
    uint64_t count; /* of errors; 0: free */
    uint64_t told;  /* of them, by told_at */
} stg_kafka_trouble;

/* Zeroed before. The trouble that is silent for longest gives way to one more. */
typedef struct stg_kafka_troubles {
    stg_kafka_trouble all[STG_KAFKA_TROUBLES];
} stg_kafka_troubles;

/* An error. topic: NULL, of none. True: a trouble begins, and is to be told. */
bool stg_kafka_troubles_note(stg_kafka_troubles *t, int kind, const char *topic,
                             const char *text, stg_ns now);

/* is_over: it has ended; else it goes on, and count - told is new. */
typedef void stg_kafka_trouble_fn(void *ctx, const stg_kafka_trouble *one,
                                  bool is_over);

/* Tells what is due. Returns when to be called again; STG_NEVER: there is
 * none. */
stg_ns stg_kafka_troubles_tick(stg_kafka_troubles *t, stg_ns now,
                               stg_kafka_trouble_fn *each, void *ctx);

typedef struct stg_kafka_source stg_kafka_source;

typedef enum stg_assignment_state {
    STG_ASSIGNMENT_WAITING, /* until flow has released the assignment before it,
                                 or until it is claimed once more */
    STG_ASSIGNMENT_UNCHECKED, /* the store is to be asked for its fingerprint, */
    STG_ASSIGNMENT_LOOKED_UP, /* was asked, */
    STG_ASSIGNMENT_COMPARING, /* and the topic is compared with it */
    STG_ASSIGNMENT_CHECKED,   /* that is known: it is to be claimed */
    STG_ASSIGNMENT_CLAIMING,  /* the store owes an answer */
    STG_ASSIGNMENT_READING,   /* flow has it */
    STG_ASSIGNMENT_REVOKING,  /* flow ends it */
    STG_ASSIGNMENT_REVOKED,   /* flow has released its number, and not yet those
                                 of earlier epochs */
    STG_ASSIGNMENT_RECREATED, /* it has ended; its number is kept for the one that
                                 replaces it */
    STG_ASSIGNMENT_REFUSED, /* it is ours, and cannot be read: that was logged */
    STG_ASSIGNMENT_DROPPED, /* its memory goes soon */
} stg_assignment_state;

/* What follows when flow has released it. */
typedef enum stg_assignment_end {
    STG_ASSIGNMENT_DROP,   /* nothing: the group has it no longer for us */
    STG_ASSIGNMENT_LET_GO, /* the consumer waits for it */
    STG_ASSIGNMENT_CLAIM,  /* another hub had it in the store: claimed anew */
} stg_assignment_end;

typedef struct stg_kafka_assignment {
    stg_link link;
    stg_kafka_source *source;
    stg_assignment_state state;
    stg_assignment_end then; /* REVOKING, REVOKED */
    stg_topic_partition tp;  /* its topic is the consumer's */
    uint64_t begin, end;     /* of the log, as is known */
    uint64_t committed;      /* by the group, when it was assigned;
                                STG_NO_POSITION: none */
    uint32_t number;   /* that the store gave it; STG_NO_PARTITION: none yet */
    uint32_t previous; /* the number that it replaces; or the same */
    stg_fingerprint print; /* of its log, as far as it is known */
    uint32_t known;        /* the number that the fingerprint is of */
    const char *why_other; /* it is another log; static, or NULL */
    /* Numbers of earlier epochs, whose rows flow has: they go with it. */
    uint32_t before[STG_CLAIMED_BEFORE_MAX];
    size_t before_count;
    bool is_unsure;    /* its fingerprint does not tell whether it is the log */
    bool is_marked;    /* its fingerprint is to be stored */
    bool is_recreated; /* the topic was made again: its number ends with it */
    stg_deadline retry; /* when it is claimed, or compared, once more */
} stg_kafka_assignment;

/* What is counted, since the start. */
typedef struct stg_partition_counts {
    uint64_t taken, fenced, renewed; /* partitions */
    uint64_t expired;                /* positions that were lost, at most */
    uint64_t added;                  /* partitions of topics that grew */
} stg_partition_counts;

/* What became of messages that were posted to the hub, for the metrics. */
enum { STG_KAFKA_PUBLISHED_FACTS = 4 };

/* Publications that want the same of the store: those that wait are asked for
 * together, when it has answered the ones before. */
typedef struct stg_kafka_key_queue {
    stg_list waiting, asked;
} stg_kafka_key_queue;

struct stg_kafka_source {
    stg_source base;
    stg_kafka_options options;
    stg_kafka *kafka;           /* NULL: not open yet, or closed */
    stg_kafka_letters *letters; /* copies of dead letters; NULL: none */

    stg_list assignments; /* by topic and partition, the older one first */
    stg_list dropped;     /* freed by the next event */
    stg_list orphans;     /* dropped while the store was asked: freed then */

    /* -- catch_up_queue.c */
    stg_list rereads;                /* of the store, that wait */
    struct stg_kafka_reread *reread; /* and the one under way */
    stg_action catch_up_read;        /* what flow's catch-up reader wants */
    bool has_catch_up;               /* it waits for that */
    bool was_catch_up;               /* who had the reader last */
    bool is_catching_up;             /* it reads, for one of them */

    bool is_looking_up; /* the store is asked for fingerprints */
    stg_deadline save;  /* of fingerprints */
    stg_kafka_troubles troubles;
    stg_deadline trouble; /* when they are to be logged */
    size_t topics_missing;
    stg_partition_counts counts;
    uint64_t published[STG_KAFKA_PUBLISHED_FACTS]; /* see publish.c */
    stg_kafka_key_queue reserving, placing;        /* see keyed.c */
    uint64_t repeated; /* second records that were left out */
};

static inline const stg_source_host *
stg_kafka_source_host(const stg_kafka_source *s)
{
    return s->base.host;
}

/* Flow was told something. */
static inline void stg_kafka_source_wake(const stg_kafka_source *s)
{
    s->base.host->wake(s->base.host->ctx);
}

/* The tag of what is read for flow: flow's own number of the assignment, and
 * below it the partition's. */
enum { STG_KAFKA_NUMBER_BITS = 16 };

static inline uint64_t stg_kafka_source_tag(uint64_t assignment,
                                            uint32_t number)
{
    return assignment << STG_KAFKA_NUMBER_BITS | number;
}

/* -- source.c -------------------------------------------------------------- */

/* A run of the consumer, for flow. */
void stg_kafka_source_take_run(stg_kafka_source *s, const stg_kafka_run *run,
                               bool is_catch_up);

/* -- assignment.c ---------------------------------------------------------- */

/* The next one; the first of NULL. NULL: there are no more. */
stg_kafka_assignment *stg_kafka_assignment_next(const stg_kafka_source *s,
                                                const stg_kafka_assignment *p);

/* Whether it is of this partition, whatever its assignment. */
bool stg_kafka_assignment_is_of(const stg_kafka_assignment *p,
                                const char *topic, uint32_t partition);

/* NULL: none that is so. By number: of those that flow has. */
stg_kafka_assignment *stg_kafka_assignment_find(const stg_kafka_source *s,
                                                const stg_topic_partition *tp);
stg_kafka_assignment *
stg_kafka_assignment_find_number(const stg_kafka_source *s, uint32_t number);

/* Another assignment of the same partition. */
bool stg_kafka_assignment_is_twin(const stg_kafka_assignment *p,
                                  const stg_kafka_assignment *other);

/* Flow has it, or has it still. */
bool stg_kafka_assignment_is_flows(const stg_kafka_assignment *p);

/* A new one, behind those of its partition; NULL: there is no memory. */
stg_kafka_assignment *stg_kafka_assignment_add(stg_kafka_source *s,
                                               const stg_kafka_assigned *a);

/* Who called may still look at it: it is freed by the next event, or by the
 * answer that the store owes. */
void stg_kafka_assignment_drop(stg_kafka_assignment *p);

/* Of the table, or dropped. */
void stg_kafka_assignment_free(stg_kafka_assignment *p);

/* A new event: nobody looks at those that were dropped before. */
void stg_kafka_assignments_free_dropped(stg_kafka_source *s);

/* Frees all of them; the store is closed. */
void stg_kafka_assignments_free(stg_kafka_source *s);

/* -- claim.c --------------------------------------------------------------- */

/* For stg_kafka_options. */
void stg_kafka_source_assigned(void *source, const stg_kafka_assigned *assigned,
                               size_t count);
void stg_kafka_source_revoked(void *source, const stg_topic_partition *tps,
                              size_t count);
void stg_kafka_source_lost(void *source, const stg_topic_partition *tps,
                           size_t count);

/* For stg_source_ops. */
void stg_kafka_source_release(stg_source *source, uint32_t number);
void stg_kafka_source_fenced(stg_source *source, const uint32_t *numbers,
                             size_t count);

/* Claims all that are CHECKED, in one transaction. */
void stg_kafka_source_claim_checked(stg_kafka_source *s);

/* The process leaves the group: what the store was asked for is not claimed any
 * more. */
void stg_kafka_source_cancel_claims(stg_kafka_source *s);

/* -- log_check.c ----------------------------------------------------------- */

/* It is to be checked, by the next stg_kafka_source_check_all(). Then it is
 * claimed; as another log than before, if that is so. */
void stg_kafka_assignment_check(stg_kafka_assignment *p);
void stg_kafka_source_check_all(stg_kafka_source *s);

/* For stg_kafka_options. */
void stg_kafka_source_compared(void *source, const stg_kafka_compared *all,
                               size_t count);

/* The partition is not read until it is known whether its log is the same. */
void stg_kafka_source_suspect(stg_kafka_source *s,
                              const stg_topic_partition *tp);

/* A record of it was read. */
void stg_kafka_assignment_mark(stg_kafka_assignment *p,
                               const stg_log_mark *mark);

/* Stores the fingerprints that have changed. */
void stg_kafka_source_save_prints(stg_kafka_source *s);

/* -- catch_up_queue.c ------------------------------------------------------ */

/* For stg_source_ops. */
void stg_kafka_source_catch_up(stg_source *source, const stg_action *a);
void stg_kafka_source_reread(stg_source *source, uint32_t number, uint64_t from,
                             size_t bytes_max, size_t count_max,
                             stg_read_fn *done, void *done_ctx);

/* Nothing is read any more: each reread is answered that nothing could be. */
void stg_kafka_source_end_rereads(stg_kafka_source *s);

/* -- publish.c ------------------------------------------------------------- */

/* For stg_source_ops. */
void stg_kafka_source_copy(stg_source *source, const char *topic,
                           const stg_append *records, size_t count,
                           stg_copied_fn *done, void *done_ctx);
void stg_kafka_source_publish(stg_source *source, const char *topic,
                              const stg_append *messages, size_t count,
                              stg_append_fn *done, void *done_ctx);
void stg_kafka_source_give_up(stg_source *source);

/* A call of it, until it is answered. */
typedef struct stg_kafka_publication {
    stg_link link; /* keyed.c */
    stg_kafka_source *source;
    const char *topic;
    const stg_append *messages;
    size_t count;
    stg_append_fn *done;
    void *done_ctx;
    stg_kafka_published *results; /* of each message */
    stg_reserved *reserved;       /* of each, where any has a key; else NULL */
    stg_append *written;          /* those that are written, with keys, and */
    stg_record_id *ids;           /* their ids; else NULL */
} stg_kafka_publication;

/* Counts what was written, for the metrics. */
void stg_kafka_source_count_published(stg_kafka_source *s,
                                      const stg_kafka_published *results,
                                      size_t count);

/* Answers it by its results, and frees it. */
void stg_kafka_publication_end(stg_kafka_publication *p);

/* Messages of it have keys, and the store keeps them. */
void stg_kafka_publication_begin_keyed(stg_kafka_publication *p);

/* For stg_kafka_options, where the store keeps keys. */
void stg_kafka_source_place(void *source, bool is_catch_up,
                            const stg_reserved *all, size_t count);

/* The source is freed: those that the store has never answered. */
void stg_kafka_source_end_keyed(stg_kafka_source *s);

/* Fills in STG_KAFKA_PUBLISHED_FACTS, and returns that. */
size_t stg_kafka_source_put_published(const stg_kafka_source *s,
                                      stg_source_fact *to);

/* -- report.c -------------------------------------------------------------- */

/* For stg_kafka_options: a report of the consumer goes to the log, to the host's
 * alert, and to flow where it is about messages. */
void stg_kafka_source_report(void *source, const stg_kafka_report *report);

#endif
