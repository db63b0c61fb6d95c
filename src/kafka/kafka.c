/* The loop's side: calls become commands to the threads, their events become
 * callbacks.
 *
 * All of it runs on the loop's thread, and nothing here calls librdkafka but
 * for the checks before the threads start. Names of topics are exchanged for
 * those of stg_kafka_topics, which stay as long as the consumer: a command may
 * be read long after the caller's text is gone.
 *
 * The trap is the end: events still come while the threads flush and leave the
 * group. From stg_kafka_close() on only ENDED counts, and what the producer still
 * has to report. After the last one the threads are joined, then the handle is
 * closed, and then the memory goes. */
#include "kafka/kafka.h"

#include <stdlib.h>

#include "base/refuse.h"
#include "kafka/member.h"

struct stg_kafka {
    stg_kafka_options o;
    stg_kafka_topics topics;
    stg_kafka_events to_loop;
    stg_kafka_member member;
    stg_kafka_catch_up catch_up;
    stg_kafka_producer *producer; /* NULL: nothing was published */
    stg_kafka_read_fn *read, *read_catch_up;
    void *read_ctx, *read_catch_up_ctx;
    stg_kafka_batch
        *held[2];     /* read, until it is known what are second records:
                                 of the member, of the catch-up reader */
    unsigned running; /* its threads, and the producer */
    bool is_closing;
    void (*closed)(void *ctx);
    void *closed_ctx;
};

/* -- the end --------------------------------------------------------------- */

static void free_kafka(stg_kafka *k)
{
    stg_link *link;

    while ((link = stg_list_shift(&k->to_loop.list)) != NULL)
        stg_kafka_event_free(STG_HOLDER(link, stg_kafka_event, link));
    uv_mutex_destroy(&k->to_loop.lock);
    stg_kafka_member_free(&k->member);
    stg_kafka_commands_free(&k->catch_up.commands);
    stg_kafka_topics_free(&k->topics);
    stg_kafka_options_free(&k->o);
    stg_kafka_batch_free(k->held[0]);
    stg_kafka_batch_free(k->held[1]);
    free(k->producer);
    free(k);
}

static void handle_closed(uv_handle_t *handle)
{
    stg_kafka *k = handle->data;
    void (*closed)(void *ctx) = k->closed;
    void *ctx = k->closed_ctx;

    free_kafka(k);
    if (closed != NULL)
        closed(ctx);
}

static void note_ended(void *kafka)
{
    stg_kafka *k = kafka;

    if (--k->running > 0)
        return;
    (void)uv_thread_join(&k->member.thread);
    (void)uv_thread_join(&k->catch_up.thread);
    uv_close((uv_handle_t *)&k->to_loop.arrived, handle_closed);
}

/* -- what the threads tell ------------------------------------------------- */

/* `done` is cleared first: the callback may ask for the next read. */
static void hand_over(const stg_kafka_batch *b, stg_kafka_read_fn **done,
                      void *ctx)
{
    stg_kafka_read_fn *read = *done;

    *done = NULL;
    if (read != NULL)
        read(ctx, b->runs, b->run_count);
}

static void hand_over_of(stg_kafka *k, bool is_catch_up,
                         const stg_kafka_batch *b)
{
    if (is_catch_up)
        hand_over(b, &k->read_catch_up, k->read_catch_up_ctx);
    else
        hand_over(b, &k->read, k->read_ctx);
}

static void ask_places(stg_kafka *k, bool is_catch_up, const stg_kafka_batch *b)
{
    stg_reserved *all = stg_kafka_memory(b->id_count, sizeof *all);

    for (size_t i = 0; i < b->id_count; i++) {
        const stg_topic_partition *tp = &b->runs[b->ids[i].run].tp;

        all[i] = (stg_reserved){.topic = tp->topic,
                                .id = b->ids[i].id,
                                .partition = tp->partition,
                                .position = b->ids[i].position};
    }
    k->o.place(k->o.ctx, is_catch_up, all, b->id_count);
    free(all);
}

/* Each of the two readers has one read at a time: so one batch of each is held at
 * most. What becomes of its partitions meanwhile is as if it had come later. */
static void take_batch(stg_kafka *k, bool is_catch_up, stg_kafka_event *n)
{
    stg_kafka_batch *b = n->batch;

    if (b->id_count == 0 || k->o.place == NULL) {
        hand_over_of(k, is_catch_up, b);
        return;
    }
    n->batch = NULL;
    k->held[is_catch_up] = b;
    ask_places(k, is_catch_up, b);
}

/* Events of the threads become the callbacks of the options, on the loop. */
static void take_note(stg_kafka *k, stg_kafka_event *n)
{
    switch (n->kind) {
    case STG_KAFKA_EVENT_ASSIGNED:
        k->o.assigned(k->o.ctx, n->assigned, n->count);
        break;
    case STG_KAFKA_EVENT_REVOKED:
        k->o.revoked(k->o.ctx, n->places, n->count);
        break;
    case STG_KAFKA_EVENT_LOST:
        k->o.lost(k->o.ctx, n->places, n->count);
        break;
    case STG_KAFKA_EVENT_REPORT:
        k->o.report(k->o.ctx, &n->report);
        break;
    case STG_KAFKA_EVENT_READ:
        take_batch(k, false, n);
        break;
    case STG_KAFKA_EVENT_CATCH_UP:
        take_batch(k, true, n);
        break;
    case STG_KAFKA_EVENT_COMPARED:
        k->o.compared(k->o.ctx, n->compared, n->count);
        break;
    case STG_KAFKA_EVENT_ENDED:
        break;
    }
}

/* Takes all events before the first callback, which runs without the lock. A
 * callback may close the consumer: what is left of the list is then freed
 * without being told. */
static void take_notes(uv_async_t *arrived)
{
    stg_kafka *k = arrived->data;
    stg_link *link;
    stg_list notes;

    stg_list_init(&notes);
    uv_mutex_lock(&k->to_loop.lock);
    while ((link = stg_list_shift(&k->to_loop.list)) != NULL)
        stg_list_push(&notes, link);
    uv_mutex_unlock(&k->to_loop.lock);
    while ((link = stg_list_shift(&notes)) != NULL) {
        stg_kafka_event *n = STG_HOLDER(link, stg_kafka_event, link);

        if (n->kind == STG_KAFKA_EVENT_ENDED)
            note_ended(k);
        else if (!k->is_closing)
            take_note(k, n);
        stg_kafka_event_free(n);
    }
    if (k->producer != NULL)
        stg_kafka_producer_take(k->producer);
}

/* -- open ------------------------------------------------------------------ */

static void tell_bugs(stg_kafka *k)
{
    static const stg_kafka_sizes sizes = {
        .queue_max = 16 << 20, .answer_max = 8 << 20, .piece_max = 1 << 20};
    rd_kafka_conf_t *conf = stg_kafka_conf(&k->o, &sizes, NULL);

    if (conf == NULL)
        return;
    if (stg_kafka_has_bugs(conf))
        stg_kafka_events_report(
            &k->to_loop,
            &(stg_kafka_report){.what = STG_KAFKA_COOPERATIVE, .level = 4},
            "partition.assignment.strategy is cooperative, which has bugs in "
            "librdkafka %s; take range or roundrobin, or librdkafka 2.10",
            stg_kafka_version());
    rd_kafka_conf_destroy(conf);
}

/* False: no memory, no descriptor. */
static bool init(stg_kafka *k, uv_loop_t *loop)
{
    stg_list_init(&k->to_loop.list);
    k->member.o = k->catch_up.o = &k->o;
    k->member.to_loop = k->catch_up.to_loop = &k->to_loop;
    k->member.topics = &k->topics;
    if (!stg_kafka_topics_init(&k->topics, &k->o))
        return false;
    if (uv_mutex_init(&k->to_loop.lock) != 0)
        goto no_lock;
    if (!stg_kafka_member_init(&k->member))
        goto no_member;
    if (!stg_kafka_commands_init(&k->catch_up.commands))
        goto no_box;
    if (uv_async_init(loop, &k->to_loop.arrived, take_notes) == 0) {
        k->to_loop.arrived.data = k;
        return true;
    }
    stg_kafka_commands_free(&k->catch_up.commands);
no_box:
    stg_kafka_member_free(&k->member);
no_member:
    uv_mutex_destroy(&k->to_loop.lock);
no_lock:
    stg_kafka_topics_free(&k->topics);
    return false;
}

/* Where the second thread cannot be started, the first one is ended and joined
 * here; the caller closes the handle, which frees all. */
static bool start(stg_kafka *k)
{
    if (uv_thread_create(&k->member.thread, stg_kafka_member_run, &k->member) !=
        0)
        return false;
    k->running++;
    if (uv_thread_create(&k->catch_up.thread, stg_kafka_catch_up_run,
                         &k->catch_up) == 0) {
        k->running++;
        return true;
    }
    stg_kafka_commands_close(&k->member.commands);
    (void)uv_thread_join(&k->member.thread);
    return false;
}

/* Once the handle is open, a failure frees all in its close callback. */
stg_status stg_kafka_open(stg_kafka **kafka, uv_loop_t *loop,
                          const stg_kafka_options *o, stg_error *err)
{
    stg_status status = stg_kafka_check(o, err);
    stg_kafka *k;

    if (status != STG_OK)
        return status;
    k = stg_kafka_memory(1, sizeof *k);
    k->o = stg_kafka_options_copy(o);
    if (!init(k, loop)) {
        stg_kafka_options_free(&k->o);
        free(k);
        return stg_hub_refuse(err, STG_IO, "kafka: no memory for it");
    }
    tell_bugs(k);
    if (!start(k)) {
        uv_close((uv_handle_t *)&k->to_loop.arrived, handle_closed);
        return stg_hub_refuse(err, STG_IO, "kafka: no thread can be started");
    }
    *kafka = k;
    return STG_OK;
}

void stg_kafka_close(stg_kafka *k, void (*done)(void *ctx), void *ctx)
{
    k->is_closing = true;
    k->closed = done;
    k->closed_ctx = ctx;
    if (k->producer != NULL)
        stg_kafka_producer_end(k->producer, note_ended, k);
    stg_kafka_commands_close(&k->member.commands);
    stg_kafka_commands_close(&k->catch_up.commands);
}

/* -- calls ----------------------------------------------------------------- */

/* Ignores a topic that is not of the options: nobody reads it. */
static void post(stg_kafka *k, stg_kafka_command_kind kind,
                 const stg_topic_partition *p, uint64_t position, uint64_t tag)
{
    stg_kafka_command ask = {
        .kind = kind, .tp = *p, .position = position, .tag = tag};

    ask.tp.topic = stg_kafka_topic(&k->topics, p->topic);
    if (ask.tp.topic != NULL)
        stg_kafka_commands_post(&k->member.commands, &ask);
}

void stg_kafka_begin(stg_kafka *k, const stg_topic_partition *p, uint64_t from,
                     uint64_t tag)
{
    post(k, STG_KAFKA_COMMAND_BEGIN, p, from, tag);
}

void stg_kafka_let_go(stg_kafka *k, const stg_topic_partition *p)
{
    post(k, STG_KAFKA_COMMAND_LET_GO, p, 0, 0);
}

void stg_kafka_commit(stg_kafka *k, const stg_topic_partition *p,
                      uint64_t offset)
{
    post(k, STG_KAFKA_COMMAND_COMMIT, p, offset, 0);
}

void stg_kafka_compare(stg_kafka *k, const stg_topic_partition *p,
                       const stg_fingerprint *print)
{
    stg_kafka_command ask = {
        .kind = STG_KAFKA_COMMAND_COMPARE, .tp = *p, .print = *print};

    ask.tp.topic = stg_kafka_topic(&k->topics, p->topic);
    if (ask.tp.topic != NULL)
        stg_kafka_commands_post(&k->catch_up.commands, &ask);
}

void stg_kafka_resume(stg_kafka *k, const stg_topic_partition *p)
{
    post(k, STG_KAFKA_COMMAND_RESUME, p, 0, 0);
}

void stg_kafka_renew(stg_kafka *k, const stg_topic_partition *p)
{
    post(k, STG_KAFKA_COMMAND_RENEW, p, 0, 0);
}

void stg_kafka_read(stg_kafka *k, size_t bytes_max, stg_kafka_read_fn *done,
                    void *ctx)
{
    stg_kafka_command ask = {.kind = STG_KAFKA_COMMAND_READ,
                             .bytes_max = bytes_max};

    k->read = done;
    k->read_ctx = ctx;
    stg_kafka_commands_post(&k->member.commands, &ask);
}

/* bytes_max of 0 is read as 1: a read is answered with one message at least. */
static void ask_catch_up(stg_kafka *k, stg_kafka_command *ask,
                         stg_kafka_read_fn *done, void *ctx)
{
    ask->kind = STG_KAFKA_COMMAND_READ;
    ask->tp.topic = stg_kafka_topic(&k->topics, ask->tp.topic);
    ask->bytes_max = ask->bytes_max > 0 ? ask->bytes_max : 1;
    k->read_catch_up = done;
    k->read_catch_up_ctx = ctx;
    stg_kafka_commands_post(&k->catch_up.commands, ask);
}

void stg_kafka_read_catch_up(stg_kafka *k, const stg_topic_partition *p,
                             uint64_t from, size_t bytes_max, uint64_t tag,
                             stg_kafka_read_fn *done, void *ctx)
{
    stg_kafka_command ask = {
        .tp = *p, .position = from, .tag = tag, .bytes_max = bytes_max};

    ask_catch_up(k, &ask, done, ctx);
}

void stg_kafka_read_again(stg_kafka *k, const stg_topic_partition *p,
                          uint64_t from, size_t bytes_max, size_t count_max,
                          stg_kafka_read_fn *done, void *ctx)
{
    stg_kafka_command ask = {.tp = *p,
                             .position = from,
                             .bytes_max = bytes_max,
                             .count_max = count_max,
                             .is_again = true};

    ask_catch_up(k, &ask, done, ctx);
}

/* A record is the message where the store says that it is; another record with the
 * same id is a repetition of its producer, and is left out. */
size_t stg_kafka_placed(stg_kafka *k, bool is_catch_up, const stg_reserved *all,
                        size_t count)
{
    stg_kafka_batch *b = k->held[is_catch_up];
    size_t dropped = 0;

    if (b == NULL)
        return 0;
    for (size_t i = 0; all != NULL && i < count; i++) {
        size_t run = b->ids[i].run;

        if (all[i].partition == b->runs[run].tp.partition &&
            all[i].position == b->ids[i].position)
            continue;
        stg_kafka_batch_drop(b, run, b->ids[i].position);
        dropped++;
    }
    k->held[is_catch_up] = NULL;
    hand_over_of(k, is_catch_up, b);
    stg_kafka_batch_free(b);
    return dropped;
}

/* -- publishing ------------------------------------------------------------ */

const char *stg_kafka_find_topic(stg_kafka *k, const char *name)
{
    return stg_kafka_topic(&k->topics, name);
}

void stg_kafka_publish(stg_kafka *k, const char *topic,
                       const stg_append *messages, const stg_record_id *ids,
                       size_t count, stg_kafka_publish_fn *done, void *ctx)
{
    if (k->producer == NULL) {
        k->producer = stg_kafka_producer_new(&k->o, &k->to_loop);
        k->running++;
    }
    stg_kafka_producer_post(k->producer, topic, messages, ids, count, done,
                            ctx);
}

void stg_kafka_give_up(stg_kafka *k)
{
    if (k->producer != NULL)
        stg_kafka_producer_give_up(k->producer);
}

void stg_kafka_look(stg_kafka *k, stg_kafka_counts *counts,
                    void (*each)(void *ctx, const stg_kafka_view *v), void *ctx)
{
    stg_kafka_member *m = &k->member;

    uv_mutex_lock(&m->look_lock);
    *counts = m->seen_counts;
    for (size_t i = 0; each != NULL && i < m->seen_count; i++)
        each(ctx, &m->seen[i]);
    uv_mutex_unlock(&m->look_lock);
}
