/* internal.h - what the files of the Kafka log share. Private to them.
 *
 *     kafka.c    the loop's side: open, close, calls, callbacks
 *     conf.c     what librdkafka is told
 *     mail.c     what goes between the loop and the threads
 *     batch.c    records on their way to the loop
 *     ends.c     where a partition begins and ends
 *     topics.c   names of topics, and those that patterns match
 *     record.c   a message as a parcel
 *     headers.c  the headers of a message, as they are
 *     letter.c   a dead letter as a record
 *     letters.c  the producer of dead letters
 *     producer.c the producer of what is posted to the hub
 *     errors.c   which errors are the same trouble
 *     end.c      the end of an instance of librdkafka
 *     compare.c  whether a log is the one that it was
 *     catch_up.c the catch-up reader, with its own thread
 *
 * member.h has the member of the group, and its files.
 *
 * Without memory these end the process, as librdkafka itself does. */
#ifndef STAGGER_KAFKA_INTERNAL_H
#define STAGGER_KAFKA_INTERNAL_H

#include <librdkafka/rdkafka.h>

#include <stagger/rng.h>

#include "base/list.h"
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

/* -- batch.c --------------------------------------------------------- */

/* Records of many partitions, as they are handed to the loop. Filled by one thread
 * in the order that messages come in, closed into runs by partition, read and freed
 * by another. */
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

/* -- take.c: a batch is filled from messages that wait here ------------ */

enum {
    STG_KAFKA_PENDING_MAX = 256
}; /* messages taken from librdkafka at once */

/* Messages that were taken and not packed yet. */
typedef struct stg_kafka_pending {
    rd_kafka_message_t *at[STG_KAFKA_PENDING_MAX];
    size_t first, count;
    size_t bytes; /* of all messages since brokers were last asked */
} stg_kafka_pending;

void stg_kafka_pending_drop(stg_kafka_pending *h);

/* The next message, or NULL when there is none now. */
rd_kafka_message_t *stg_kafka_pending_next(stg_kafka_pending *h,
                                           rd_kafka_queue_t *queue,
                                           size_t most);
/* True each time half of a queue of queue_max bytes was taken: then librdkafka is
 * to fetch on. */
bool stg_kafka_pending_is_half(stg_kafka_pending *h, size_t queue_max);

/* Lets librdkafka see at once that its queue has room for records of these
 * partitions. Their offsets are written over. */
void stg_kafka_fetch_on(rd_kafka_t *rk, rd_kafka_topic_partition_list_t *list);

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

/* -- watch.c --------------------------------------------------------- */

/* A line of librdkafka's own log. */
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

/* Keeps both, which are the consumer's. Needs no broker, and makes nothing yet.
 * Freed by free(), after its end. */
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
