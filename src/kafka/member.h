/* member.h - the member of the consumer group: what its thread has, and the files
 * that work on it. Private to them, and to kafka.c, which owns it.
 *
 *     member.c   the thread
 *     group.c    how the group assigns and revokes
 *     slots.c    the partitions that are ours
 *     start.c    where the group begins a topic
 *     commits.c  what is settled, told to the group
 *     take.c     from librdkafka's queue into batches
 *     watch.c    topics and brokers that come and go
 *     probe.c    topics that have become others
 *
 * The thread alone touches it, but for what is under look_lock; the loop asks by
 * commands, and hears of it by events (internal.h). */
#ifndef STAGGER_KAFKA_MEMBER_H
#define STAGGER_KAFKA_MEMBER_H

#include "kafka/internal.h"

/* -- slots.c --------------------------------------------------------- */

typedef enum stg_kafka_slot_state {
    STG_KAFKA_SLOT_NEW,          /* where it begins and ends is to be asked */
    STG_KAFKA_SLOT_GIVEN,        /* the loop knows; where to begin is awaited */
    STG_KAFKA_SLOT_READING,      /* or about to */
    STG_KAFKA_SLOT_OUT_OF_RANGE, /* read from where the topic has nothing: where
                                    it
                               begins and ends is to be asked */
    STG_KAFKA_SLOT_SUSPECT,      /* whether its log is the same is awaited */
    STG_KAFKA_SLOT_REFUSED,      /* it was out of range, and that is an error */
    STG_KAFKA_SLOT_REVOKED,      /* until the loop lets it go */
} stg_kafka_slot_state;

/* What the loop has been told of a slot, and has said. */
typedef enum stg_kafka_slot_share {
    STG_KAFKA_SLOT_OURS,   /* the loop has not heard of it */
    STG_KAFKA_SLOT_SHARED, /* it has, and has its own side of it */
    STG_KAFKA_SLOT_LET_GO, /* it has nothing of it any more */
} stg_kafka_slot_share;

/* A partition that is ours, as the member's thread has it: what librdkafka is to
 * read and to commit. The loop's side of it is stg_kafka_assignment; neither
 * thread sees the other's, so tp, end and the state of a revocation are in
 * both. */
typedef struct stg_kafka_slot {
    stg_topic_partition tp;
    stg_kafka_slot_state state;
    stg_kafka_slot_share share;
    bool is_assigned; /* librdkafka reads it */
    unsigned tries;   /* to learn its end */
    uint64_t tag;
    uint64_t next;      /* all below was handed over */
    uint64_t end;       /* as far as is known */
    stg_log_mark mark;  /* to be handed over; hash 0: none */
    stg_ns mark_at;     /* the next one, not before */
    stg_log_mark first; /* the first one of this assignment */
    bool is_disordered; /* timestamps are not in the order of offsets: the probe
                           by time would be a false alarm, and is off */
    uint64_t to_commit;
    uint64_t sent; /* and on its way, or there */
    uint64_t committed;
    stg_ns told_at;   /* headers that were lost: not again within a second */
    bool is_outdated; /* a commit failed since the group has another generation:
                         not tried again before a rebalance */
} stg_kafka_slot;

/* By topic (as the options have them) and partition. */
typedef struct stg_kafka_slots {
    stg_kafka_slot *at;
    size_t count, room;
} stg_kafka_slots;

void stg_kafka_slots_free(stg_kafka_slots *s);
stg_kafka_slot *stg_kafka_slots_find(const stg_kafka_slots *s,
                                     const char *topic, uint32_t partition);
/* That of the same assignment; else NULL. */
stg_kafka_slot *stg_kafka_slots_at(const stg_kafka_slots *s,
                                   const stg_topic_partition *p);
/* A new one, or the one that is there, zeroed but for its partition. */
stg_kafka_slot *stg_kafka_slots_add(stg_kafka_slots *s, const char *topic,
                                    uint32_t partition, uint64_t assignment);
void stg_kafka_slots_remove(stg_kafka_slots *s, stg_kafka_slot *slot);

/* -- the member of the group ----------------------------------------------- */

/* A topic, or a pattern, of the options; or a topic that a pattern matches. */
typedef struct stg_kafka_known {
    const char *name;
    rd_kafka_topic_t *topic; /* so that librdkafka asks for it */
    uint32_t partitions;     /* 0: not known yet */
    bool is_pattern;
    bool is_matched; /* only a pattern wants it: its end is no error */
    bool is_gone;    /* of a pattern: it matches none */
    bool has_begun; /* the group, or the store, knows it; or one of a pattern */
    bool is_late;   /* it was not there when the hub was */
} stg_kafka_known;

/* What the group takes back, one rebalance at a time. */
typedef enum stg_kafka_revocation {
    STG_KAFKA_REVOKES_NOTHING,
    STG_KAFKA_REVOKES,         /* the loop's word is awaited, until let_go_at */
    STG_KAFKA_REVOKES_FLUSHED, /* all was let go; its commits are awaited */
} stg_kafka_revocation;

typedef struct stg_kafka_member {
    const stg_kafka_options *o;
    stg_kafka_topics *topics;
    stg_kafka_events *to_loop;
    stg_kafka_commands commands;
    uv_thread_t thread;

    /* -- librdkafka's; NULL after an error that it could not get over */
    rd_kafka_t *rk;
    rd_kafka_queue_t *events;
    rd_kafka_queue_t *records; /* all partitions' queues are forwarded to it */
    stg_ns reopen_at;
    stg_rng rng;

    /* -- what is ours */
    stg_kafka_slots slots;
    uint64_t assignments; /* given so far */
    stg_ns assign_at;     /* not before, while some have not begun yet */
    stg_ns ask_at;        /* ends, again */
    stg_ns let_go_at;     /* without the loop's word; then: without commits */

    /* -- reading */
    size_t bytes_max; /* requested; 0: nothing is */
    stg_kafka_pending pending;
    stg_ns taken_at; /* the batch that is filled */

    stg_ns commit_at;   /* not before */
    stg_ns outdated_at; /* slots are outdated until a rebalance, or so long */

    /* -- topics */
    stg_ns watch_at;
    stg_kafka_known *known; /* those of the options first */
    size_t known_count;
    bool has_listed; /* topics of patterns are known; later ones are late */

    /* -- for a look: under the lock, but for the thread's own counts */
    uv_mutex_t look_lock;
    stg_ns look_at;
    stg_kafka_counts counts;
    stg_kafka_counts seen_counts;
    stg_kafka_view *seen;
    size_t seen_count;

    stg_kafka_revocation revocation;
    unsigned reopens;    /* in a row */
    unsigned unanswered; /* looks at brokers, in a row */
    bool is_cooperative; /* partitions move one by one */
    bool must_assign;    /* what is read has changed */
    bool is_committing;
    bool is_away;   /* no broker answers */
    bool is_failed; /* an error that librdkafka cannot get over */
} stg_kafka_member;

/* -- member.c: the thread -------------------------------------------- */

/* Of a zeroed one with o and post. */
bool stg_kafka_member_init(stg_kafka_member *m);
void stg_kafka_member_free(stg_kafka_member *m);
void stg_kafka_member_run(void *member);

/* -- ends.c ---------------------------------------------------------- */

/* Asks for all slots that are NEW or OUT_OF_RANGE, if it is time. */
void stg_kafka_member_ask(stg_kafka_member *m, stg_ns now);

/* -- topics.c -------------------------------------------------------- */

void stg_kafka_known_init(stg_kafka_member *m);

/* NULL: not known (yet). Until the next one is noted. */
stg_kafka_known *stg_kafka_known_find(const stg_kafka_member *m,
                                      const char *topic);

/* There is such a topic; name: of stg_kafka_topic(). */
void stg_kafka_known_note(stg_kafka_member *m, const char *topic);

/* All that patterns match, of all topics that there are; once. False: no broker
 * has said it within some seconds. */
bool stg_kafka_known_ask(stg_kafka_member *m);
void stg_kafka_known_list(stg_kafka_member *m,
                          const struct rd_kafka_metadata *md);

void stg_kafka_known_open(stg_kafka_member *m, stg_kafka_known *k);
void stg_kafka_known_close(stg_kafka_known *k);

void stg_kafka_report_topic(stg_kafka_member *m, const stg_kafka_known *k,
                            stg_kafka_report_kind what, int level,
                            const char *words);

/* -- start.c --------------------------------------------------------- */

/* Of topics of these partitions that nobody knows: where they begin is committed.
 * By the member that has partition 0; the others wait for it. Blocks for a few
 * seconds at most. */
void stg_kafka_member_start(stg_kafka_member *m,
                            const stg_topic_partition *places, size_t count);

/* Whether it has. topic: of the options. */
bool stg_kafka_start_is_known(const stg_kafka_member *m, const char *topic);

/* -- group.c --------------------------------------------------------- */

/* librdkafka's side is opened, and closed with all that came of it. */
bool stg_kafka_member_open(stg_kafka_member *m);
void stg_kafka_member_shut(stg_kafka_member *m);

void stg_kafka_member_rebalance(stg_kafka_member *m, rd_kafka_event_t *ev);

/* Lets go of revoked partitions as soon as that may be. */
void stg_kafka_member_let_go(stg_kafka_member *m, stg_ns now);

/* Reads what is to be read, if that has changed. */
void stg_kafka_member_assign(stg_kafka_member *m, stg_ns now);
void stg_kafka_member_change(stg_kafka_member *m);

/* All of it, at once. */
void stg_kafka_member_lose(stg_kafka_member *m);

/* The slot of this partition has another assignment from here on, as NEW; the
 * loop is told that it was lost. */
void stg_kafka_member_renew(stg_kafka_member *m, stg_kafka_slot *slot);

/* The slot is not read until the loop knows whether its log is the same. */
void stg_kafka_member_suspect(stg_kafka_member *m, stg_kafka_slot *slot,
                              const char *why);
void stg_kafka_member_resume(stg_kafka_member *m, const stg_topic_partition *p);
void stg_kafka_member_replace(stg_kafka_member *m,
                              const stg_topic_partition *p);

/* -- probe.c --------------------------------------------------------- */

/* Looks for slots that have become another log. */
void stg_kafka_member_probe(stg_kafka_member *m);

/* -- commits.c ------------------------------------------------------- */

void stg_kafka_member_commit(stg_kafka_member *m, stg_ns now);
void stg_kafka_member_committed(stg_kafka_member *m, rd_kafka_event_t *ev,
                                stg_ns now);
/* The group has moved on: what was refused for that may be committed now. */
void stg_kafka_member_renew_commits(stg_kafka_member *m);
/* Whether something was asked to be committed, and no broker has said that it
 * is. */
bool stg_kafka_member_owes(const stg_kafka_member *m, bool of_revoked);

/* -- take.c ---------------------------------------------------------- */

/* Hands over what there is, if that is wanted. */
void stg_kafka_member_take(stg_kafka_member *m);

/* -- watch.c --------------------------------------------------------- */

/* The topics of the options, in m->rk; and the end of that. */
void stg_kafka_watch_begin(stg_kafka_member *m);
void stg_kafka_watch_end(stg_kafka_member *m);

/* Asks for the topics, if it is time. */
void stg_kafka_member_watch(stg_kafka_member *m, stg_ns now);
void stg_kafka_member_error(stg_kafka_member *m, rd_kafka_event_t *ev);

#endif
