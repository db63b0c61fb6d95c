/* The producer of copies of dead letters.
 *
 * Rows go out together. The count of rows that are written is that of the first
 * ones without a gap; rows behind one that failed are sent again, even those
 * that the topic has, so that each partition has all rows in their order at the
 * end. A row that is refused goes alone, in smaller and smaller forms, and is
 * left out at last: one bad row must not hold up all that follow.
 *
 * The trap: librdkafka holds a pointer to the `sending` of each row that is not
 * answered. After a failure the producer is closed before they are freed, and
 * the next write opens another one. */
#include "kafka/letters.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/refuse.h"
#include "kafka/internal.h"
#include "kafka/topic.h"

enum { POLL_MS = 100 };

/* A row, while librdkafka has it. */
typedef struct sending {
    rd_kafka_resp_err_t result; /* IN_PROGRESS: no answer yet */
    int32_t partition;          /* of its source; -1: it has none */
} sending;

struct stg_kafka_letters {
    stg_kafka_options o; /* brokers, the topic, properties */
    const char *topic;
    stg_ns timeout;
    rd_kafka_t *rk; /* NULL: after a failure, and before the first write */
    rd_kafka_queue_t *events;
    atomic_bool is_ending;

    atomic_uint_fast64_t written, cut, left_out; /* rows, for a look */

    /* -- of the write that is under way */
    stg_ns until;
    bool refuses_batches;        /* a broker has refused a row, or its batch */
    size_t waiting;              /* rows without an answer */
    struct sending *sendings;    /* of each row */
    rd_kafka_resp_err_t refusal; /* of the row that is sent by itself */
    rd_kafka_resp_err_t error;   /* that is not one row's */
    char why[256];               /* what a broker's trouble was last */
};

stg_kafka_letters_options stg_kafka_letters_options_default(void)
{
    return (stg_kafka_letters_options){.timeout = 30 * STG_S};
}

/* -- what brokers say -------------------------------------------------------
 * */

static void note_result(stg_kafka_letters *l, sending *s,
                        rd_kafka_resp_err_t err)
{
    s->result = err;
    if (err != RD_KAFKA_RESP_ERR_NO_ERROR && !stg_kafka_is_refusal(err))
        l->error = err;
}

/* A broker may refuse a whole batch of librdkafka's for one record in it: which
 * one it was is not known, so later rows go alone. */
static void take_reports(stg_kafka_letters *l, rd_kafka_event_t *ev)
{
    const rd_kafka_message_t *m;

    while ((m = rd_kafka_event_message_next(ev)) != NULL) {
        l->waiting--;
        l->refuses_batches |= stg_kafka_is_refusal(m->err);
        note_result(l, m->_private, m->err);
    }
}

static void take_event(stg_kafka_letters *l, rd_kafka_event_t *ev)
{
    switch (rd_kafka_event_type(ev)) {
    case RD_KAFKA_EVENT_DR:
        take_reports(l, ev);
        break;
    case RD_KAFKA_EVENT_ERROR:
        snprintf(l->why, sizeof l->why, "%s", rd_kafka_event_error_string(ev));
        if (rd_kafka_event_error_is_fatal(ev))
            l->error = RD_KAFKA_RESP_ERR__FATAL;
        break;
    default:
        break;
    }
}

static void poll(stg_kafka_letters *l, int wait_ms)
{
    rd_kafka_event_t *ev = rd_kafka_queue_poll(l->events, wait_ms);

    take_event(l, ev);
    rd_kafka_event_destroy(ev);
}

static bool is_over(const stg_kafka_letters *l)
{
    return l->error != 0 || atomic_load(&l->is_ending) ||
           stg_kafka_now() >= l->until;
}

/* -- sending --------------------------------------------------------------- */

/* Why a row is not sent whole; NULL: it is. */
static const char *words_of(rd_kafka_resp_err_t refusal)
{
    return refusal == RD_KAFKA_RESP_ERR_NO_ERROR ? NULL
                                                 : rd_kafka_err2str(refusal);
}

/* The partition of the record: whatever had sent it there, records that were in
 * one partition, and all copies of a row, are in one here, in their order.
 * Where there are fewer, several share one. A message of no topic goes by its
 * key, as Java's producers do it. Also called by a thread of librdkafka's. */
static int32_t partition_of(const rd_kafka_topic_t *topic, const void *key,
                            size_t key_size, int32_t count, void *ctx,
                            void *row)
{
    const sending *s = row;

    return s->partition >= 0 ? s->partition % count
                             : rd_kafka_msg_partitioner_murmur2_random(
                                   topic, key, key_size, count, ctx, row);
}

/* The bytes that the record had; at is NULL: none. */
static stg_span key_of(const stg_letter *r)
{
    if (r->source_key.at != NULL || r->key == NULL)
        return r->source_key;
    return (stg_span){r->key[0] == '\0' ? NULL : r->key, strlen(r->key)};
}

static rd_kafka_resp_err_t produce_once(stg_kafka_letters *l,
                                        const stg_letter *r,
                                        stg_kafka_letter_form form, sending *s)
{
    stg_span key = key_of(r);
    rd_kafka_headers_t *h =
        stg_kafka_letter_headers(r, form, words_of(l->refusal));
    const void *value = r->payload.at;
    rd_kafka_vu_t parts[] = {
        {.vtype = RD_KAFKA_VTYPE_TOPIC, .u.cstr = l->topic},
        {.vtype = RD_KAFKA_VTYPE_MSGFLAGS, .u.i = RD_KAFKA_MSG_F_COPY},
        {.vtype = RD_KAFKA_VTYPE_HEADERS, .u.headers = h},
        {.vtype = RD_KAFKA_VTYPE_OPAQUE, .u.ptr = s},
        {.vtype = RD_KAFKA_VTYPE_VALUE},
        {.vtype = RD_KAFKA_VTYPE_KEY,
         .u.mem = {(void *)(uintptr_t)key.at, key.size}},
    };
    rd_kafka_resp_err_t err;

    if (value == NULL && r->has_payload)
        value = ""; // an empty one is not none
    if (form == STG_KAFKA_LETTER_WHOLE) {
        parts[4].u.mem.ptr = (void *)(uintptr_t)value;
        parts[4].u.mem.size = r->payload.size;
    }
    s->partition = r->topic != NULL ? (int32_t)r->topic_partition : -1;
    err = stg_kafka_code_of(
        rd_kafka_produceva(l->rk, parts, sizeof parts / sizeof *parts));
    if (err != RD_KAFKA_RESP_ERR_NO_ERROR)
        rd_kafka_headers_destroy(h);
    return err;
}

/* A full queue is waited for, within the time of the whole write. Any other
 * error of the client is the row's, or ends the write. */
static void produce(stg_kafka_letters *l, const stg_letter *r,
                    stg_kafka_letter_form form, sending *s)
{
    rd_kafka_resp_err_t err;

    while (!is_over(l)) {
        err = produce_once(l, r, form, s);
        if (err == RD_KAFKA_RESP_ERR_NO_ERROR) {
            l->waiting++;
            return;
        }
        if (err != RD_KAFKA_RESP_ERR__QUEUE_FULL) {
            note_result(l, s, err);
            return;
        }
        poll(l, POLL_MS);
    }
}

/* Up to the first that the client itself refuses. Returns how many, from the
 * first one on, the topic has. */
static size_t send_rows(stg_kafka_letters *l, const stg_letter *rows,
                        size_t count, stg_kafka_letter_form form)
{
    size_t there = 0;
    bool is_any_refused = false;

    for (size_t i = 0; i < count; i++)
        l->sendings[i].result = RD_KAFKA_RESP_ERR__IN_PROGRESS;
    for (size_t i = 0; i < count && l->error == 0 && !is_any_refused; i++) {
        produce(l, &rows[i], form, &l->sendings[i]);
        is_any_refused = stg_kafka_is_refusal(l->sendings[i].result);
    }
    while (l->waiting > 0 && !is_over(l))
        poll(l, POLL_MS);
    while (there < count &&
           l->sendings[there].result == RD_KAFKA_RESP_ERR_NO_ERROR)
        there++;
    return there;
}

/* -- what is refused --------------------------------------------------------
 * */

/* Words are made for the first such row of a write only; the others count. */
static void note_cut(stg_kafka_letters *l, stg_letter_report *report,
                     const stg_letter *r, bool is_left_out)
{
    if (report->cut + report->left_out == 0)
        stg_hub_refuse(&report->why, STG_OK,
                       "topic %.100s: letter %" PRIu64 " (%" PRIu64
                       " bytes) was copied %s: %s",
                       l->topic, r->id, r->payload_size,
                       is_left_out ? "in no form" : "without its body",
                       rd_kafka_err2str(l->refusal));
    if (is_left_out)
        report->left_out++;
    else
        report->cut++;
}

/* By itself: in each form, until one is taken. False: nothing is known of it,
 * and it is to be sent again. */
static bool send_alone(stg_kafka_letters *l, const stg_letter *r,
                       stg_letter_report *report)
{
    bool is_there = false;

    l->refusal = RD_KAFKA_RESP_ERR_NO_ERROR;
    for (int form = STG_KAFKA_LETTER_WHOLE;
         form < STG_KAFKA_LETTER_FORMS && !is_there; form++) {
        is_there = send_rows(l, r, 1, (stg_kafka_letter_form)form) == 1;
        if (!is_there && !stg_kafka_is_refusal(l->sendings[0].result))
            return false;
        if (!is_there)
            l->refusal = l->sendings[0].result;
    }
    if (l->refusal != RD_KAFKA_RESP_ERR_NO_ERROR)
        note_cut(l, report, r, !is_there);
    l->refusal = RD_KAFKA_RESP_ERR_NO_ERROR;
    return true;
}

/* What a broker has refused may have been the batch: from there on each row
 * goes by itself. */
static size_t send_all(stg_kafka_letters *l, const stg_letter *rows,
                       size_t count, stg_letter_report *report)
{
    size_t there = 0, sent;

    while (there < count) {
        sent =
            send_rows(l, rows + there, count - there, STG_KAFKA_LETTER_WHOLE);
        there += sent;
        if (there == count || !stg_kafka_is_refusal(l->sendings[sent].result) ||
            is_over(l))
            return there;
        do {
            if (!send_alone(l, &rows[there], report))
                return there;
            there++;
        } while (there < count && l->refuses_batches);
    }
    return there;
}

/* -- the producer ---------------------------------------------------------- */

/* Again after an error that librdkafka could not get over; by partition_of(). */
static bool open_producer(stg_kafka_letters *l, stg_error *err)
{
    char why[256];
    rd_kafka_conf_t *conf;

    if (l->rk != NULL)
        return true;
    conf = stg_kafka_conf_producer(l->o.brokers, l->o.properties,
                                   l->o.property_count, partition_of, err);
    if (conf == NULL)
        return false;
    rd_kafka_conf_set_events(conf, RD_KAFKA_EVENT_DR | RD_KAFKA_EVENT_ERROR |
                                       RD_KAFKA_EVENT_LOG);
    l->rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof why);
    if (l->rk == NULL) {
        rd_kafka_conf_destroy(conf);
        stg_hub_refuse(err, STG_INVALID, "kafka: %s", why);
        return false;
    }
    (void)rd_kafka_set_log_queue(l->rk, NULL);
    l->events = rd_kafka_queue_get_main(l->rk);
    return true;
}

static void close_producer(stg_kafka_letters *l)
{
    if (l->rk == NULL)
        return;
    rd_kafka_queue_destroy(l->events);
    (void)rd_kafka_purge(l->rk,
                         RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
    stg_kafka_destroy(l->rk);
    l->events = NULL;
    l->rk = NULL;
}

static void count_rows(stg_kafka_letters *l, const stg_letter_report *report)
{
    atomic_fetch_add(&l->written, report->written - report->left_out);
    atomic_fetch_add(&l->cut, report->cut);
    atomic_fetch_add(&l->left_out, report->left_out);
}

/* A producer that has failed is not asked again: what it still has on its way
 * would come between, and an idempotent one may be stuck. */
static void fail(stg_kafka_letters *l, stg_error *err)
{
    const char *what = l->error != 0 ? rd_kafka_err2str(l->error)
                       : atomic_load(&l->is_ending)
                           ? "the hub stops"
                           : "no broker has acknowledged it in time";

    close_producer(l);
    stg_hub_refuse(err, STG_IO,
                   "topic %.100s: dead letters cannot be copied: %s%s%s",
                   l->topic, what, l->why[0] == '\0' ? "" : "; ", l->why);
}

/* Opened here for its properties alone: that no broker answers is no error yet. */
stg_status stg_kafka_letters_open(stg_kafka_letters **letters,
                                  const stg_kafka_letters_options *o,
                                  stg_error *err)
{
    const char *topics[] = {o->topic, NULL};
    stg_kafka_options all = {.brokers = o->brokers,
                             .topics = topics,
                             .group = "",
                             .properties = o->properties,
                             .property_count = o->property_count};
    stg_kafka_letters *l;

    if (o->topic == NULL ||
        !stg_topic_is_name((stg_span){o->topic, strlen(o->topic)}))
        return stg_hub_refuse(err, STG_INVALID,
                              "kafka: \"%.80s\" cannot be the name of a topic",
                              o->topic == NULL ? "" : o->topic);
    l = stg_kafka_memory(1, sizeof *l);
    l->o = stg_kafka_options_copy(&all);
    l->topic = l->o.topics[0];
    l->timeout = o->timeout;
    atomic_init(&l->is_ending, false);
    atomic_init(&l->written, 0);
    atomic_init(&l->cut, 0);
    atomic_init(&l->left_out, 0);
    if (open_producer(l, err)) {
        *letters = l;
        return STG_OK;
    }
    stg_kafka_letters_close(l);
    return STG_INVALID;
}

/* Returns how many were acknowledged, from the first on: the store asks for the rest
 * again. */
stg_status stg_kafka_letters_write(stg_kafka_letters *l, const stg_letter *rows,
                                   size_t count, stg_letter_report *report,
                                   stg_error *err)
{
    *report = (stg_letter_report){.written = 0};
    if (!open_producer(l, err))
        return STG_IO;
    l->until = stg_ns_add(stg_kafka_now(), l->timeout);
    l->waiting = 0;
    l->refuses_batches = false;
    l->error = l->refusal = RD_KAFKA_RESP_ERR_NO_ERROR;
    l->why[0] = '\0';
    l->sendings = stg_kafka_memory(count + 1, sizeof *l->sendings);
    report->written = send_all(l, rows, count, report);
    count_rows(l, report);
    if (report->written < count)
        fail(l, err);
    free(l->sendings);
    l->sendings = NULL;
    return report->written == count ? STG_OK : STG_IO;
}

stg_kafka_letters_counts stg_kafka_letters_look(const stg_kafka_letters *l)
{
    return (stg_kafka_letters_counts){.written = atomic_load(&l->written),
                                      .cut = atomic_load(&l->cut),
                                      .left_out = atomic_load(&l->left_out)};
}

void stg_kafka_letters_end_soon(stg_kafka_letters *l)
{
    atomic_store(&l->is_ending, true);
}

void stg_kafka_letters_close(stg_kafka_letters *l)
{
    close_producer(l);
    stg_kafka_options_free(&l->o);
    free(l);
}
