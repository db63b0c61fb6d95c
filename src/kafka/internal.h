/* internal.h - what the files of the Kafka log share. Private to them.
 *
 *     kafka.c          the loop's side: open, close, calls, callbacks
 *     conf.c     what librdkafka is told
 *     mail.c     what goes between the loop and the threads
 *     member.c   the member's thread
 *     group.c    how the group gives and takes
 *     slots.c    the partitions that are ours
 *     ends.c     where a partition begins and ends
 *     topics.c   names of topics, and those that patterns match
 *     start.c    where the group begins a topic
 *     commits.c  what is settled, told to the group
 *     take.c     from librdkafka's queue into batches
 *     batch.c    a batch
 *     record.c   a message as a parcel
 *     headers.c  the headers of a message, as they are
 *     letter.c   a dead letter as a record
 *     letters.c  the producer of dead letters
 *     producer.c the producer of what is posted to the hub
 *     watch.c    topics and brokers that come and go
 *     errors.c   which errors are the same trouble
 *     probe.c    topics that have become others
 *     end.c      the end of an instance of librdkafka
 *     compare.c  whether a log is the one that it was
 *     catch_up.c   the catch-up reader, with its own thread
 *
 * Without memory these end the process, as librdkafka itself does. */
#ifndef STAGGER_KAFKA_INTERNAL_H
#define STAGGER_KAFKA_INTERNAL_H

#include <librdkafka/rdkafka.h>

#include <stagger/rng.h>

#include "base/list.h"
#include "kafka/batch.h"
#include "kafka/kafka.h"
#include "store/dead_letters.h"

/* Never NULL. Zeroed. */
void *stg_kafka_memory(size_t count, size_t size);
char *stg_kafka_text(const char *text);

/* Monotonic, for the threads. */
static inline stg_ns stg_kafka_now(void)
{
    return (stg_ns)uv_hrtime();
}

/* -- mail.c ---------------------------------------------------------- */

/* A command to a thread. */
typedef enum stg_kafka_command_kind {
    STG_KAFKA_COMMAND_BEGIN,
    STG_KAFKA_COMMAND_LET_GO,
    STG_KAFKA_COMMAND_COMMIT,
    STG_KAFKA_COMMAND_READ,
    STG_KAFKA_COMMAND_COMPARE, /* of the catch-up reader */
    STG_KAFKA_COMMAND_RESUME,
    STG_KAFKA_COMMAND_RENEW,
} stg_kafka_command_kind;

typedef struct stg_kafka_command {
    stg_link link;
    stg_kafka_command_kind kind;
    stg_topic_partition tp; /* all but READ of the member */
    uint64_t position;      /* BEGIN, COMMIT, READ of the catch-up reader */
    uint64_t tag;
    size_t bytes_max;
    size_t count_max;      /* READ of the catch-up reader; 0: any number */
    bool is_again;         /* the same: it is to be sent again */
    stg_fingerprint print; /* COMPARE */
} stg_kafka_command;

/* An event from a thread. */
typedef enum stg_kafka_event_kind {
    STG_KAFKA_EVENT_ASSIGNED,
    STG_KAFKA_EVENT_REVOKED,
    STG_KAFKA_EVENT_LOST,
    STG_KAFKA_EVENT_REPORT,
    STG_KAFKA_EVENT_READ,
    STG_KAFKA_EVENT_CATCH_UP,
    STG_KAFKA_EVENT_COMPARED,
    STG_KAFKA_EVENT_ENDED, /* a thread has */
} stg_kafka_event_kind;

typedef struct stg_kafka_event {
    stg_link link;
    stg_kafka_event_kind kind;
    stg_kafka_assigned *assigned;
    stg_topic_partition *places;
    stg_kafka_compared *compared;
    size_t count;
    stg_kafka_report report;
    char *text;
    stg_kafka_batch *batch;
} stg_kafka_event;

/* One thread's queue of commands: many may post, it alone waits. */
typedef struct stg_kafka_commands {
    uv_mutex_t lock;
    uv_cond_t wake;
    stg_list list;
    bool is_woken;
    bool is_closing;
} stg_kafka_commands;

bool stg_kafka_commands_init(stg_kafka_commands *b);
void stg_kafka_commands_free(stg_kafka_commands *b);
void stg_kafka_commands_post(stg_kafka_commands *b,
                             const stg_kafka_command *ask);
void stg_kafka_commands_close(stg_kafka_commands *b);

/* For rd_kafka_queue_cb_event_enable(): by any thread, quick. */
void stg_kafka_commands_wake(rd_kafka_t *rk, void *box);

/* All that was asked, into an empty list. False: it is closing. */
bool stg_kafka_commands_take(stg_kafka_commands *b, stg_list *asks);

/* Until something was posted, it was woken, or a time has come. */
void stg_kafka_commands_wait(stg_kafka_commands *b, stg_ns until);

/* The way back to the loop, from all threads. */
typedef struct stg_kafka_events {
    uv_mutex_t lock;
    uv_async_t arrived;
    stg_list list;
} stg_kafka_events;

stg_kafka_event *stg_kafka_event_new(stg_kafka_event_kind kind);
void stg_kafka_event_free(stg_kafka_event *n);
void stg_kafka_events_send(stg_kafka_events *p, stg_kafka_event *n);

/* report is copied; text is made of the format. */
__attribute__((format(printf, 3, 4))) void
stg_kafka_events_report(stg_kafka_events *p, const stg_kafka_report *report,
                        const char *format, ...);

/* -- errors.c -------------------------------------------------------- */

/* The report of an error that is not the end. topic: NULL, of none. */
stg_kafka_report stg_kafka_trouble_of(rd_kafka_resp_err_t err,
                                      const char *topic);

/* What is wrong is the record, and it is wrong again when it is sent again. */
bool stg_kafka_is_refusal(rd_kafka_resp_err_t err);

/* The error's code; NO_ERROR of NULL. The error is given. */
rd_kafka_resp_err_t stg_kafka_code_of(rd_kafka_error_t *error);

/* -- conf.c ---------------------------------------------------------- */

/* Of our own copy of the options. Texts in it are ours. */
stg_kafka_options stg_kafka_options_copy(const stg_kafka_options *o);
void stg_kafka_options_free(stg_kafka_options *o);

typedef struct stg_kafka_sizes {
    size_t queue_max;  /* bytes of queued.max.messages.kbytes */
    size_t answer_max; /* fetch.max.bytes */
    size_t piece_max;  /* fetch.message.max.bytes */
    bool is_hasty;     /* a broker answers at once, whatever it has: a partition
                      that is assigned next is not asked for before */
} stg_kafka_sizes;

/* A consumer's. NULL with words: see stg_kafka_check(). */
rd_kafka_conf_t *stg_kafka_conf(const stg_kafka_options *o,
                                const stg_kafka_sizes *sizes, stg_error *err);

/* How librdkafka asks for the partition of a message. */
typedef int32_t stg_kafka_partitioner(const rd_kafka_topic_t *topic,
                                      const void *key, size_t key_size,
                                      int32_t count, void *ctx, void *opaque);

/* A producer's; the properties may have another partitioner. NULL: that of
 * Java's producers. */
rd_kafka_conf_t *stg_kafka_conf_producer(const char *brokers,
                                         const stg_kafka_property *properties,
                                         size_t count,
                                         stg_kafka_partitioner *partitioner,
                                         stg_error *err);

/* Opens a consumer; conf is given. Its events go to its own queue. */
rd_kafka_t *stg_kafka_consumer(rd_kafka_conf_t *conf, stg_error *err);

/* Waits until it is gone, a few seconds at most. Its queues and topics were
 * destroyed before. */
void stg_kafka_destroy(rd_kafka_t *rk);

/* Whether conf asks for an assignor that moves partitions one by one; and
 * whether this version of librdkafka has bugs there. */
bool stg_kafka_is_cooperative(const rd_kafka_conf_t *conf);
bool stg_kafka_has_bugs(const rd_kafka_conf_t *conf);

/* -- headers.c ------------------------------------------------------- */

/* The headers of a message, as long as they fit into `most` bytes. Of malloc().
 * */
stg_span stg_kafka_headers_pack(const rd_kafka_message_t *m, size_t most);

/* Adds them to others. Returns how many had no room when they were packed. */
uint32_t stg_kafka_headers_unpack(stg_span packed, rd_kafka_headers_t *to);

/* A header; and one for each line, "Name: value\r\n". */
void stg_kafka_headers_add(rd_kafka_headers_t *to, const char *name,
                           stg_span value);
void stg_kafka_headers_add_lines(rd_kafka_headers_t *to, stg_span lines);

/* X-Inbound in a record. Who only passes on headers of HTTP requests to a topic
 * cannot write it. */
#define STG_KAFKA_WEBHOOK_HEADER "stagger-inbound"

/* Of a message with an idempotency key: which message it is, whatever record of
 * it. As 32 hexadecimal digits. */
#define STG_KAFKA_ID_HEADER "stagger-id"
enum { STG_KAFKA_ID_TEXT_MAX = 2 * STG_RECORD_ID_SIZE };

stg_span stg_kafka_id_print(const stg_record_id *id,
                            char text[STG_KAFKA_ID_TEXT_MAX]);

/* False: it is none. */
bool stg_kafka_id_read(stg_span text, stg_record_id *id);

/* -- letter.c -------------------------------------------------------- */

/* The parts of a dead letter that its record has. */
typedef enum stg_kafka_letter_form {
    STG_KAFKA_LETTER_WHOLE,
    STG_KAFKA_LETTER_CUT,  /* without the body */
    STG_KAFKA_LETTER_BARE, /* and without the message's own headers */
    STG_KAFKA_LETTER_FORMS,
} stg_kafka_letter_form;

/* refusal: why it is not whole, in librdkafka's words; else NULL. The caller
 * destroys them, or gives them to librdkafka. */
rd_kafka_headers_t *stg_kafka_letter_headers(const stg_letter *r,
                                             stg_kafka_letter_form form,
                                             const char *refusal);

/* -- record.c -------------------------------------------------------- */

/* A message as a record, its bytes in b. False: it is none (no value). *lost:
 * how many of its headers should go on and cannot. */
bool stg_kafka_record(const stg_kafka_options *o, stg_kafka_batch *b,
                      const rd_kafka_message_t *m, stg_record *record,
                      uint32_t *lost);

/* The record was added to the batch: notes its stagger-id, if it has one and
 * somebody wants to know. */
void stg_kafka_identify(const stg_kafka_options *o, stg_kafka_batch *b,
                        size_t slot, const rd_kafka_message_t *m);

/* -- slots.c --------------------------------------------------------- */

typedef enum stg_kafka_slot_state {
    STG_KAFKA_SLOT_NEW,          /* where it begins and ends is to be asked */
    STG_KAFKA_SLOT_GIVEN,        /* the loop knows; where to begin is awaited */
    STG_KAFKA_SLOT_READING,      /* or about to */
    STG_KAFKA_SLOT_OUT_OF_RANGE, /* read from where the topic has nothing: where
                                    it
                               begins and ends is to be asked */
    STG_KAFKA_SLOT_SUSPECT,      /* whether its log is the same is awaited */
    STG_KAFKA_SLOT_REFUSED,      /* it strayed, and that is an error */
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

/* -- batch.h: a batch is filled from messages that wait here --------- */

enum {
    STG_KAFKA_PENDING_MAX = 256
}; /* messages taken from librdkafka at once */

/* Messages that were taken and not packed yet. */
typedef struct stg_kafka_pending {
    rd_kafka_message_t *at[STG_KAFKA_PENDING_MAX];
    size_t first, count;
} stg_kafka_pending;

void stg_kafka_pending_drop(stg_kafka_pending *h);

/* The next message, or NULL when there is none now. */
rd_kafka_message_t *stg_kafka_pending_next(stg_kafka_pending *h,
                                           rd_kafka_queue_t *queue,
                                           size_t most);

/* -- topics.c: names ------------------------------------------------- */

/* Names that were asked for, whose texts stay until it is freed: by any thread.
 * */
typedef struct stg_kafka_topics {
    uv_mutex_t lock;
    const stg_kafka_options *o;
    char **names;
    size_t count, room;
} stg_kafka_topics;

bool stg_kafka_topics_init(stg_kafka_topics *t, const stg_kafka_options *o);
void stg_kafka_topics_free(stg_kafka_topics *t);

/* The name of a topic that is in the options, or that a pattern of theirs
 * matches; NULL: none of them. */
const char *stg_kafka_topic(stg_kafka_topics *t, const char *name);

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

/* Where partitions begin, end, and what the group has committed. One for
 * each of a list of places, in its order; -1: not known. */
typedef struct stg_kafka_ends {
    int64_t begin, end, committed;
} stg_kafka_ends;

/* Blocks for a few seconds at most. False: nothing was learnt of any of them;
 * what is in err then. An ends whose begin or end is below 0 is not known. */
bool stg_kafka_ends_ask(rd_kafka_t *rk, const stg_topic_partition *places,
                        size_t count, stg_kafka_ends *ends, bool with_committed,
                        rd_kafka_resp_err_t *err);

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
void stg_kafka_report_log(stg_kafka_events *post, rd_kafka_event_t *ev);

/* -- compare.c ------------------------------------------------------- */

stg_log_mark stg_kafka_mark(const rd_kafka_message_t *m);

/* Answers all of them, and frees them. Blocks for some seconds at most. */
void stg_kafka_compare_all(const stg_kafka_options *o, stg_kafka_events *post,
                           stg_list *asks);

/* -- catch_up.c -------------------------------------------------------- */

typedef struct stg_kafka_catch_up {
    const stg_kafka_options *o;
    stg_kafka_events *to_loop;
    stg_kafka_commands commands;
    uv_thread_t thread;
    rd_kafka_t *rk; /* NULL: not needed yet, or no more */
    rd_kafka_queue_t *events, *records;
    bool is_needed;
    stg_kafka_command ask;
    stg_list compares; /* of stg_kafka_command */
    stg_ns answer_at;  /* at the latest */
    stg_ns again_at;   /* after an error: not before */
    bool is_assigned;  /* to `at`, and what comes next is `next` */
    bool is_passing;   /* what is below `next` has expired */
    stg_topic_partition at;
    uint64_t next, end;
    stg_ns idle_at;
    stg_kafka_pending pending;
} stg_kafka_catch_up;

void stg_kafka_catch_up_run(void *catch_up);

/* -- producer.c ------------------------------------------------------ */

typedef struct stg_kafka_producer stg_kafka_producer;

/* Both are kept. Needs no broker, and makes nothing yet. Freed by free(), after
 * its end. */
stg_kafka_producer *stg_kafka_producer_new(const stg_kafka_options *o,
                                           stg_kafka_events *to_loop);

/* As stg_kafka_publish(). */
void stg_kafka_producer_post(stg_kafka_producer *p, const char *topic,
                             const stg_append *messages,
                             const stg_record_id *ids, size_t count,
                             stg_kafka_publish_fn *done, void *ctx);

/* to_loop was woken: takes what there is. */
void stg_kafka_producer_take(stg_kafka_producer *p);

/* As stg_kafka_give_up(). */
void stg_kafka_producer_give_up(stg_kafka_producer *p);

/* The same, and nothing is sent any more. ended is called once, later or from
 * within, when nothing of librdkafka's is left. */
void stg_kafka_producer_end(stg_kafka_producer *p, void (*ended)(void *ctx),
                            void *ctx);

#endif
