/* The catch-up reader: a second consumer, in no group, that reads one place at
 * a time for lanes that catch up, and messages that are sent again. It is opened when it
 * is first needed, and holds nothing while it is not. At the end of a partition
 * it stops: librdkafka has one fetch under way a broker, and one that waits
 * there for records that are still to come would hold up the next partition. */
#include <stdlib.h>

#include "host/process.h"
#include "kafka/internal.h"

enum {
    POLL_S = 1,
    PATIENCE_S = 5, /* until it says that it knows nothing more */
    RETRY_MS = 500, /* the same after an error: not in a tight loop */
    IDLE_S = 5,     /* before it lets go of what it has read ahead */
    QUEUE_MAX = 8 << 20,
    ANSWER_MAX = 4 << 20,
};

/* -- librdkafka's side ----------------------------------------------------- */

/* Opened when somebody needs it: most hubs never do, and a second consumer costs
 * connections to all brokers. */
static bool open_consumer(stg_kafka_catch_up *b)
{
    static const stg_kafka_sizes sizes = {.queue_max = QUEUE_MAX,
                                          .answer_max = ANSWER_MAX,
                                          .piece_max = ANSWER_MAX,
                                          .is_hasty = true};
    stg_kafka_report report =
        stg_kafka_trouble_of(RD_KAFKA_RESP_ERR__INVALID_ARG, NULL);
    rd_kafka_conf_t *conf;
    stg_error err;

    if (b->rk != NULL)
        return true;
    conf = stg_kafka_conf(b->o, &sizes, &err);
    b->rk = conf == NULL ? NULL : stg_kafka_consumer(conf, &err);
    if (b->rk == NULL) {
        stg_kafka_events_report(
            b->to_loop, &report,
            "nothing can be read for lanes that catch up: %s; tried again",
            err.text);
        b->again_at = stg_kafka_now() + PATIENCE_S * STG_S;
        return false;
    }
    b->events = rd_kafka_queue_get_consumer(b->rk);
    rd_kafka_queue_cb_event_enable(b->events, stg_kafka_commands_wake,
                                   &b->commands);
    return true;
}

static void close_records(stg_kafka_catch_up *b)
{
    stg_kafka_pending_drop(&b->pending);
    if (b->records == NULL)
        return;
    rd_kafka_queue_cb_event_enable(b->records, NULL, NULL);
    rd_kafka_queue_destroy(b->records);
    b->records = NULL;
}

/* On its return it has stopped: see group.c. */
static void rest(stg_kafka_catch_up *b)
{
    rd_kafka_topic_partition_list_t *list;

    if (b->rk != NULL && b->is_assigned) {
        (void)rd_kafka_assign(b->rk, NULL);
        if (rd_kafka_assignment(b->rk, &list) == RD_KAFKA_RESP_ERR_NO_ERROR)
            rd_kafka_topic_partition_list_destroy(list);
    }
    close_records(b);
    b->is_assigned = false;
}

static void close_consumer(stg_kafka_catch_up *b)
{
    rest(b);
    if (b->rk == NULL)
        return;
    rd_kafka_queue_cb_event_enable(b->events, NULL, NULL);
    rd_kafka_queue_destroy(b->events);
    stg_kafka_destroy(b->rk);
    b->rk = NULL;
    b->events = NULL;
}

static void forward(stg_kafka_catch_up *b)
{
    rd_kafka_queue_t *own = rd_kafka_queue_get_partition(
        b->rk, b->at.topic, (int32_t)b->at.partition);

    b->records = rd_kafka_queue_new(b->rk);
    rd_kafka_queue_cb_event_enable(b->records, stg_kafka_commands_wake,
                                   &b->commands);
    if (own == NULL)
        return;
    rd_kafka_queue_forward(own, b->records);
    rd_kafka_queue_destroy(own);
}

/* Reads from where it is asked to, if it does not already. */
/* Topics are compared by pointer: both names are of stg_kafka_topics. A read
 * that goes on where the last one ended keeps what librdkafka has read
 * ahead. */
static bool place(stg_kafka_catch_up *b)
{
    rd_kafka_topic_partition_list_t *list;
    rd_kafka_resp_err_t err;

    if (b->is_assigned && b->at.topic == b->ask.tp.topic &&
        b->at.partition == b->ask.tp.partition && b->next == b->ask.position)
        return true;
    rest(b);
    b->at = b->ask.tp;
    b->next = b->ask.position;
    b->end = 0;
    forward(b);
    list = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(list, b->at.topic,
                                      (int32_t)b->at.partition)
        ->offset = (int64_t)b->next;
    err = rd_kafka_assign(b->rk, list);
    rd_kafka_topic_partition_list_destroy(list);
    b->is_assigned = err == RD_KAFKA_RESP_ERR_NO_ERROR;
    return b->is_assigned;
}

/* -- answers --------------------------------------------------------------- */

/* Every request is answered once, with one run, which may have no records. An
 * answer that got no further after an error delays the next read (again_at),
 * for the caller asks again at once. At the end of the partition reading
 * stops. */
static void answer(stg_kafka_catch_up *b, stg_kafka_batch *batch)
{
    stg_kafka_event *note = stg_kafka_event_new(STG_KAFKA_EVENT_CATCH_UP);
    stg_kafka_run run = {.tp = b->ask.tp, .tag = b->ask.tag};
    int64_t low, high;

    run.next = b->is_assigned || b->is_passing ? b->next : b->ask.position;
    if (b->is_assigned &&
        rd_kafka_get_watermark_offsets(b->rk, b->at.topic,
                                       (int32_t)b->at.partition, &low,
                                       &high) == RD_KAFKA_RESP_ERR_NO_ERROR &&
        high > 0)
        b->end = (uint64_t)high;
    run.end = b->end > run.next ? b->end : run.next;
    stg_kafka_batch_close(batch, &run, 1);
    note->batch = batch;
    b->is_needed = b->is_passing = false;
    b->idle_at = stg_kafka_now() + IDLE_S * STG_S;
    b->again_at = b->is_assigned || run.next > b->ask.position
                      ? 0
                      : stg_kafka_now() + RETRY_MS * STG_MS;
    if (b->end > 0 && run.next >= b->end)
        rest(b);
    stg_kafka_events_send(b->to_loop, note);
}

/* The messages have expired: told, and the lanes pass over them. What is to be
 * sent again passes by itself. */
static void skip_expired(stg_kafka_catch_up *b)
{
    stg_kafka_ends ends;
    rd_kafka_resp_err_t err;

    rest(b);
    if (!stg_kafka_ends_ask(b->rk, &b->at, 1, &ends, false, &err) ||
        ends.begin < 0 || b->next >= (uint64_t)ends.begin)
        return;
    if (b->ask.is_again) {
        b->next = (uint64_t)ends.begin;
        b->is_passing = true;
        return;
    }
    stg_kafka_events_report(
        b->to_loop,
        &(stg_kafka_report){.what = STG_KAFKA_EXPIRED,
                            .tp = b->ask.tp,
                            .position = b->next,
                            .begin = (uint64_t)ends.begin,
                            .level = 4},
        "%s/%u: position %llu is not there any more: the topic begins at %lld",
        b->at.topic, (unsigned)b->at.partition, (unsigned long long)b->next,
        (long long)ends.begin);
}

/* True: there is nothing more to wait for. */
static bool take_error(stg_kafka_catch_up *b, const rd_kafka_message_t *m)
{
    stg_kafka_report report = stg_kafka_trouble_of(m->err, b->at.topic);

    switch (m->err) {
    case RD_KAFKA_RESP_ERR__PARTITION_EOF:
        if (m->offset >= 0 && (uint64_t)m->offset > b->next)
            b->next = (uint64_t)m->offset;
        return true;
    case RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET:
    case RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE:
        skip_expired(b);
        return true;
    default:
        stg_kafka_events_report(b->to_loop, &report, "%s/%u, for %s: %s",
                                b->at.topic, (unsigned)b->at.partition,
                                b->ask.is_again ? "a replay"
                                                : "a lane that catches up",
                                rd_kafka_message_errstr(m));
        return false;
    }
}

static void take_message(stg_kafka_catch_up *b, stg_kafka_batch *batch,
                         const rd_kafka_message_t *m)
{
    stg_record record;
    uint32_t lost; // the member tells

    if (m->offset < 0 || (uint64_t)m->offset < b->next)
        return;
    b->next = (uint64_t)m->offset + 1;
    if (!stg_kafka_record(b->o, batch, m, &record, &lost))
        return;
    stg_kafka_batch_add(batch, 0, &record);
    stg_kafka_identify(b->o, batch, 0, m);
}

/* The first record of a batch always fits: a read is answered with one at
 * least. One that is too large is taken, too, because its body is not
 * packed. */
static bool fits(const stg_kafka_catch_up *b, const stg_kafka_batch *batch,
                 const rd_kafka_message_t *m)
{
    return batch->count == 0 || m->err != 0 || m->len > b->o->message_max ||
           m->len <= b->ask.bytes_max - batch->size;
}

static bool has_room(const stg_kafka_catch_up *b, const stg_kafka_batch *batch)
{
    return batch->size < b->ask.bytes_max &&
           (b->ask.count_max == 0 || batch->count < b->ask.count_max);
}

/* True: no more is to be waited for. */
static bool fill(stg_kafka_catch_up *b, stg_kafka_batch *batch)
{
    bool is_over = false;

    while (!is_over && has_room(b, batch)) {
        rd_kafka_message_t *m = stg_kafka_pending_next(&b->pending, b->records,
                                                       STG_KAFKA_PENDING_MAX);

        if (m == NULL)
            return false;
        if (!fits(b, batch, m))
            break;
        b->pending.first++;
        if (m->err != 0)
            is_over = take_error(b, m);
        else
            take_message(b, batch, m);
        rd_kafka_message_destroy(m);
    }
    return true;
}

static void fetch_on(stg_kafka_catch_up *b)
{
    rd_kafka_topic_partition_list_t *list =
        rd_kafka_topic_partition_list_new(1);

    rd_kafka_topic_partition_list_add(list, b->at.topic,
                                      (int32_t)b->at.partition);
    stg_kafka_fetch_on(b->rk, list);
    rd_kafka_topic_partition_list_destroy(list);
}

/* Answers as soon as there is anything, or the position moved over a gap;
 * without either, when PATIENCE_S has passed. */
static void read_some(stg_kafka_catch_up *b)
{
    stg_kafka_batch *batch;
    uint64_t before;

    if (!b->is_needed || stg_kafka_now() < b->again_at)
        return;
    if (!open_consumer(b) || !place(b)) {
        if (stg_kafka_now() >= b->answer_at)
            answer(b, stg_kafka_batch_new());
        return;
    }
    before = b->next;
    batch = stg_kafka_batch_new();
    if (fill(b, batch) || batch->count > 0 || b->next > before ||
        stg_kafka_now() >= b->answer_at)
        answer(b, batch);
    else
        stg_kafka_batch_free(batch);
    if (stg_kafka_pending_is_half(&b->pending, QUEUE_MAX))
        fetch_on(b);
}

/* -- the thread ------------------------------------------------------------ */

/* One read is under way at a time (catch_up_queue.c sees to it), so that a new
 * one takes the place of one that was answered. Comparisons are gathered and
 * done together. */
static bool take_asks(stg_kafka_catch_up *b)
{
    stg_list asks;
    stg_link *link;
    bool goes_on;

    stg_list_init(&asks);
    goes_on = stg_kafka_commands_take(&b->commands, &asks);
    while ((link = stg_list_shift(&asks)) != NULL) {
        stg_kafka_command *a = STG_HOLDER(link, stg_kafka_command, link);

        if (a->kind == STG_KAFKA_COMMAND_COMPARE) {
            stg_list_push(&b->compares, &a->link);
            continue;
        }
        b->ask = *a;
        b->is_needed = true;
        b->answer_at = stg_kafka_now() + PATIENCE_S * STG_S;
        free(a);
    }
    return goes_on;
}

static void take_events(stg_kafka_catch_up *b)
{
    rd_kafka_event_t *ev;

    while (b->rk != NULL && (ev = rd_kafka_queue_poll(b->events, 0)) != NULL) {
        // The member tells of trouble with brokers, too.
        if (rd_kafka_event_type(ev) == RD_KAFKA_EVENT_LOG)
            stg_kafka_report_log(b->to_loop, ev);
        rd_kafka_event_destroy(ev);
    }
}

static stg_ns next_wake(const stg_kafka_catch_up *b, stg_ns now)
{
    stg_ns at = stg_ns_add(now, POLL_S * STG_S);

    if (b->is_needed && b->answer_at < at)
        at = b->answer_at;
    if (b->is_needed && now < b->again_at && b->again_at < at)
        at = b->again_at;
    return at;
}

/* The thread: it waits until it is asked, or librdkafka has something, or what it
 * does is to be given up. */
void stg_kafka_catch_up_run(void *catch_up)
{
    stg_kafka_catch_up *b = catch_up;
    stg_link *link;

    stg_thread_name("kafka-catch-up");
    stg_list_init(&b->compares);
    while (take_asks(b)) {
        stg_ns now;

        stg_kafka_compare_all(b->o, b->to_loop, &b->compares);
        now = stg_kafka_now();
        take_events(b);
        read_some(b);
        if (!b->is_needed && b->is_assigned && now >= b->idle_at)
            rest(b);
        stg_kafka_commands_wait(&b->commands, next_wake(b, now));
    }
    while ((link = stg_list_shift(&b->compares)) != NULL)
        free(STG_HOLDER(link, stg_kafka_command, link));
    close_consumer(b);
    stg_kafka_events_send(b->to_loop,
                          stg_kafka_event_new(STG_KAFKA_EVENT_ENDED));
}
