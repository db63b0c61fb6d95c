/* source.h - the log that flow reads: the embedded queue, or topics of Kafka.
 *
 * The shell hands on what flow wants of a log; what the log has goes straight to
 * flow. Of the queue that is partition 0 of the store. Of Kafka it is a
 * partition after the other, as the group gives and takes them:
 *
 *     assigned  ->  the same log?  ->  claim in the store  ->  give to flow  ->  begin to read
 *     revoked   ->  flow ends it  ->  STG_ACTION_REVOKED  ->  let go
 *     lost, fenced  ->  flow drops it  ->  STG_ACTION_REVOKED; claimed anew if it
 *                       is still ours
 *
 *     source.c         both; what flow wants of a log
 *     source_catch_up.c  the reader behind, for laggards and for replays
 *     source_kafka.c   partitions that come and go
 *     source_check.c   whether a partition's log is the one that it was
 *     source_release.c what targets that are gone hold no more
 *     source_epochs.c  their rows of earlier epochs, which go with them
 *     source_tell.c    what the consumer says, for people */
#ifndef STAGGER_HUB_SOURCE_H
#define STAGGER_HUB_SOURCE_H

#include "base/list.h"
#include "host/deadlines.h"
#include "hub/hub.h"
#include "kafka/kafka.h"
#include "kafka/letters.h"
#include "kafka/trouble.h"
#include "metrics/counters.h"
#include "store/store.h"

/* Where a partition of Kafka is on its way. */
typedef enum stg_source_state {
    STG_SOURCE_WAITING,  /* until flow has let go of what it had of it */
    STG_SOURCE_CHECKING, /* whether its log is the same is asked */
    STG_SOURCE_CHECKED,  /* it is known, and it is to be claimed */
    STG_SOURCE_CLAIMING, /* the store was asked */
    STG_SOURCE_GIVEN,    /* flow has it */
    STG_SOURCE_GOING,    /* it was revoked or lost, and flow ends it */
    STG_SOURCE_OVER,     /* it has gone; known for the one that replaces it */
    STG_SOURCE_REFUSED,  /* it is ours, and cannot be read: people were told */
} stg_source_state;

typedef struct stg_source_place {
    stg_link link;
    struct stg_source *source;
    stg_source_state state;
    char *topic;
    uint32_t partition;  /* of the topic */
    uint64_t assignment; /* of the consumer */
    uint64_t begin, end; /* of the log, as is known */
    bool has_committed;  /* by the group, when it was assigned */
    uint64_t committed;
    uint32_t number;   /* that the store gave it; STG_NO_PARTITION: not yet */
    uint32_t previous; /* the number that it replaces; or STG_NO_PARTITION */
    stg_fingerprint print; /* of its log, as far as it is known */
    uint32_t known;        /* the number that the fingerprint is of */
    const char *why_other; /* it is another log; static, or NULL */
    /* Numbers of earlier epochs, whose rows flow has: they go with it. */
    uint32_t before[STG_CLAIMED_BEFORE_MAX];
    size_t before_count;
    bool is_unsure;    /* its fingerprint does not tell whether it is the log */
    bool is_new_check; /* CHECKING: the store is to be asked of it */
    bool is_looked_up; /* the same: the store was asked */
    bool is_marked;    /* its fingerprint is to be stored */
    bool is_taken;     /* flow has let go of its own number */
    bool is_held;      /* the consumer waits until it is let go */
    bool is_over;      /* the topic was made again: its number is done with */
    bool is_fenced;    /* another hub had it meanwhile: to be claimed anew */
    bool is_asking;    /* the store owes an answer: its memory stays */
    bool is_gone;      /* and then it goes */
    stg_deadline again; /* when it is claimed once more */
} stg_source_place;

typedef struct stg_source {
    stg_hub *hub;
    stg_kafka *kafka;           /* NULL: the embedded queue */
    stg_kafka_letters *letters; /* copies of dead letters; NULL: none */
    stg_list places;            /* of stg_source_place */
    stg_list gone;              /* those that are done with */
    stg_list asking;            /* those that went while the store was asked */
    stg_list readings;          /* of the reader behind, for the store: they
                                   wait; and the one that is under way */
    struct stg_source_reading *reading;
    char *brokers;     /* "host:port,host:port" */
    bool keeps_rows;   /* the store is this hub's alone */
    bool is_away;      /* no broker answers */
    bool is_looking;   /* the store is asked for fingerprints */
    stg_deadline save; /* of fingerprints */
    stg_kafka_troubles troubles;
    stg_deadline trouble; /* when they are to be told of */
    stg_deadline release; /* of what targets that are gone hold */
    size_t topics_gone;
    stg_action behind;   /* what flow's catch-up reader wants, or waits for */
    bool has_laggards;   /* it is to be asked for */
    bool was_laggards;   /* who had the reader behind last */
    bool is_behind_busy; /* it reads, for one of them */
    stg_partition_counts counts;
} stg_source;

/* What the store is to be told of it before it is opened: who writes copies of
 * dead letters. Returns STG_INVALID with words for a property that Kafka does
 * not take, or where there is no librdkafka. Zeroed before; to be freed in any
 * case. */
stg_status stg_source_check(stg_source *s, stg_hub *hub, const stg_settings *o,
                            stg_store_options *store, stg_error *err);

/* Before flow's cursors are restored: gives it the queue, or the rows that a file
 * has of partitions which are not this hub's now. */
stg_status stg_source_give(stg_source *s, stg_error *err);

/* The consumer joins its group; *parts counts what is to be closed. */
stg_status stg_source_open(stg_source *s, unsigned *parts, stg_error *err);

/* Nothing comes any more; what was to be committed is. closed is called once
 * for what stg_source_open() has counted. */
void stg_source_close(stg_source *s, void (*closed)(void *ctx), void *ctx);

/* The store is closed. */
void stg_source_free(stg_source *s);

static inline bool stg_source_is_kafka(const stg_source *s)
{
    return s->kafka != NULL;
}

/* -- what flow wants ------------------------------------------------------- */

void stg_source_read(stg_source *s, const stg_action *a);
void stg_source_commit(stg_source *s, uint32_t partition, uint64_t position);
void stg_source_taken(stg_source *s, uint32_t partition);

/* The store refused what was written of these partitions. */
void stg_source_fenced(stg_source *s, const uint32_t *partitions, size_t count);

/* -- for people ------------------------------------------------------------ */

/* A partition that is read, as people see it; topic is lent until the loop goes
 * on. */
typedef struct stg_source_view {
    const char *topic;
    uint32_t partition, number;
    uint64_t begin, end; /* of the log, as is known */
    uint64_t next;       /* where it is read on */
    uint64_t committed;  /* all below it is: 0 at first */
} stg_source_view;

/* That number i from 0, by topic and partition. False: there are no more. */
bool stg_source_look(const stg_source *s, size_t i, stg_source_view *v);

/* Records that a lane has not taken of all its partitions: at most, for there
 * are gaps. */
uint64_t stg_source_lag(const stg_source *s, uint32_t lane);

/* Whether the message of this partition is of one of the topics; all of them
 * where there are none. */
bool stg_source_is_of(const stg_hub *h, uint32_t partition,
                      const stg_texts *topics);

/* -- source.c, for the others ---------------------------------------------- */

/* The tag of what is read for flow: its own number of the assignment, and below
 * it the partition's. */
enum { STG_SOURCE_NUMBER_BITS = 16 };

static inline uint64_t stg_source_tag(uint64_t assignment, uint32_t number)
{
    return assignment << STG_SOURCE_NUMBER_BITS | number;
}

/* As the consumer knows it; its topic is lent. */
static inline stg_kafka_place stg_source_place_of(const stg_source_place *p)
{
    return (stg_kafka_place){.topic = p->topic,
                             .partition = p->partition,
                             .assignment = p->assignment};
}

/* A run of the consumer, for flow. */
void stg_source_take_run(stg_source *s, const stg_kafka_run *run,
                         bool is_catch_up);

/* -- source_catch_up.c ------------------------------------------------------- */

/* What flow's catch-up reader wants of Kafka. */
void stg_source_read_laggards(stg_source *s, const stg_action *a);

/* For stg_store_options.read. */
void stg_source_read_again(void *hub, uint32_t number, uint64_t from,
                           size_t bytes_max, size_t count_max,
                           stg_read_fn *done, void *done_ctx);

/* Nothing is read any more: who waits is told that nothing could be. */
void stg_source_end_readings(stg_source *s);

/* -- source_tell.c --------------------------------------------------------- */

/* For stg_kafka_options: what it says goes to the log, alerts, and flow. */
void stg_source_told(void *source, const stg_kafka_told *told);

/* -- source_kafka.c -------------------------------------------------------- */

void stg_source_assigned(void *source, const stg_kafka_given *given,
                         size_t count);
void stg_source_revoked(void *source, const stg_kafka_place *places,
                        size_t count);
void stg_source_lost(void *source, const stg_kafka_place *places, size_t count);

/* Whether it is of this partition, whatever its assignment. */
bool stg_source_is_same(const stg_source_place *p, const char *topic,
                        uint32_t partition);

/* NULL: none that is so. */
stg_source_place *stg_source_find(const stg_source *s,
                                  const stg_kafka_place *place);
stg_source_place *stg_source_find_number(const stg_source *s, uint32_t number);

/* The name of the log in the store, which is of one cluster and one group. */
#define STG_SOURCE_LOG "kafka"

/* All that are CHECKED. */
void stg_source_claim_checked(stg_source *s);

/* -- source_check.c -------------------------------------------------------- */

/* The place is to be checked, by the next stg_source_check_all(). Then it is
 * claimed; as another log than before, if that is so. */
void stg_source_check_place(stg_source_place *p);
void stg_source_check_all(stg_source *s);

/* For stg_kafka_options. */
void stg_source_compared(void *source, const stg_kafka_compared *all,
                         size_t count);

/* The partition is not read until it is known whether its log is the same. */
void stg_source_suspect(stg_source *s, const stg_kafka_place *place);

/* A record of it was read. */
void stg_source_mark(stg_source_place *p, const stg_log_mark *mark);

/* Stores what was noted. */
void stg_source_save_prints(stg_source *s);

/* -- source_release.c ------------------------------------------------------ */

/* Looks for such targets, again and again, until `release` is cleared. */
void stg_source_watch_release(stg_source *s);

/* -- source_epochs.c ------------------------------------------------------- */

/* Rows of epochs that are over, which this hub has now. */
void stg_source_give_rows(stg_source_place *p, const stg_claimed *c);

/* Others have the partition, or will: its rows in the store are theirs from
 * there on, and what is under way is not stored. STG_ACTION_REVOKED follows for
 * each number. */
void stg_source_lose_rows(stg_source_place *p);

/* Flow has let go of such a number: whose it was; NULL: it is none. */
stg_source_place *stg_source_end_rows(stg_source *s, uint32_t number);

/* What was claimed, and flow does not get. */
void stg_source_unclaim(stg_source *s, const stg_claimed *c);

/* -- source_kafka.c, again ------------------------------------------------- */

/* The group gives all of it to others: what the store was asked for is not claimed
 * any more. */
void stg_source_take_back(stg_source *s);

/* Frees all places; those that wait for the store, too. */
void stg_source_drop_places(stg_source *s);

#endif
