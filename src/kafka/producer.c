/* The producer of what is posted to the hub.
 *
 * It has no thread of its own: librdkafka's wake the loop, and everything here
 * runs on the loop's thread and does not block. Nothing is made before the first
 * message is posted.
 *
 * A message is sent where it lies, without a copy, so a posting lives until
 * each of its messages has its report; an instance is ended only when it has
 * none on its way, and purged before, so that the reports come.
 *
 * The trap: a broker refuses a whole batch of librdkafka's for one record in it
 * that is too large. So what was refused for its size is sent once more by an
 * instance that makes batches of one: only what that one is told is the
 * message's own answer. */
#include <stdlib.h>
#include <string.h>

#include "kafka/internal.h"

/* A producer that has failed is not opened again before. */
static const stg_ns REOPEN_PAUSE = STG_S;

/* An instance of librdkafka's. */
typedef struct instance {
    stg_link link;
    stg_kafka_producer *producer;
    rd_kafka_t *rk;
    rd_kafka_queue_t *events;
    uv_work_t work; /* its end, which may take its time */
    size_t waiting; /* messages without a report */
    bool is_alone;  /* each message is a batch by itself */
    bool is_over;   /* it takes none any more, and ends when nothing waits */
} instance;

struct stg_kafka_producer {
    const stg_kafka_options *o;
    stg_kafka_events *to_loop;
    stg_list instances; /* those that end among them */
    stg_ns open_at;     /* not before */
    void (*ended)(void *ctx);
    void *ended_ctx;
};

typedef struct posting posting;

/* A message, while librdkafka has it. */
typedef struct sent {
    posting *posting;
    const stg_append *message;
    const stg_record_id *id; /* NULL: none */
} sent;

/* A call. Its results come behind what librdkafka points to. */
struct posting {
    const char *topic;
    stg_kafka_publish_fn *done;
    void *ctx;
    stg_kafka_published *results;
    size_t count, waiting;
    sent sent[];
};

/* -- what brokers say ------------------------------------------------------ */

/* What publishers are told. An error that came after the record was sent is no proof
 * that it is not there. */
static stg_appended outcome_of(rd_kafka_resp_err_t err, bool is_possibly_there)
{
    switch (err) {
    case RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE:
    case RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE:
    case RD_KAFKA_RESP_ERR_INVALID_MSG_SIZE:
        return STG_APPEND_TOO_LARGE;
    case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART:
    case RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION:
    case RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC:
    case RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION:
        return STG_APPEND_NO_TOPIC;
    case RD_KAFKA_RESP_ERR__QUEUE_FULL:
        return STG_APPEND_BUSY;
    default:
        if (stg_kafka_is_refusal(err))
            return STG_APPEND_REFUSED;
        return is_possibly_there ? STG_APPEND_UNACKNOWLEDGED : STG_APPEND_AWAY;
    }
}

static void tell(const stg_kafka_producer *p, rd_kafka_resp_err_t err,
                 const char *topic, const char *words)
{
    stg_kafka_report report = stg_kafka_trouble_of(err, topic);

    stg_kafka_events_report(p->to_loop, &report,
                            "%s%smessages that are posted "
                            "to the hub: %s",
                            topic != NULL ? topic : "",
                            topic != NULL ? ": " : "", words);
}

/* Of what is wrong with a message its producer is told; of the rest those who
 * look after the hub, too. */
static bool is_trouble(rd_kafka_resp_err_t err)
{
    stg_appended how = outcome_of(err, false);

    return err != RD_KAFKA_RESP_ERR_NO_ERROR &&
           err != RD_KAFKA_RESP_ERR__PURGE_QUEUE &&
           err != RD_KAFKA_RESP_ERR__PURGE_INFLIGHT &&
           how != STG_APPEND_TOO_LARGE && how != STG_APPEND_REFUSED;
}

/* -- instances ------------------------------------------------------------- */

static void wake(rd_kafka_t *rk, void *to_loop)
{
    (void)rk;
    (void)uv_async_send(&((stg_kafka_events *)to_loop)->arrived);
}

static rd_kafka_t *make(const stg_kafka_producer *p, bool is_alone,
                        stg_error *err)
{
    rd_kafka_conf_t *conf = stg_kafka_conf_producer(
        p->o->brokers, p->o->properties, p->o->property_count, NULL, err);
    rd_kafka_t *rk;

    if (conf == NULL)
        return NULL;
    if (is_alone)
        (void)rd_kafka_conf_set(conf, "batch.num.messages", "1", NULL, 0);
    rd_kafka_conf_set_events(conf, RD_KAFKA_EVENT_DR | RD_KAFKA_EVENT_ERROR |
                                       RD_KAFKA_EVENT_LOG);
    rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, err->text, sizeof err->text);
    if (rk == NULL)
        rd_kafka_conf_destroy(conf);
    return rk;
}

/* NULL: there is none, and that was told. */
static instance *open_instance(stg_kafka_producer *p, bool is_alone)
{
    rd_kafka_t *rk;
    stg_error err;
    instance *n;

    rk = make(p, is_alone, &err);
    if (rk == NULL) {
        p->open_at = stg_ns_add(stg_kafka_now(), REOPEN_PAUSE);
        tell(p, RD_KAFKA_RESP_ERR__INVALID_ARG, NULL, err.text);
        return NULL;
    }
    n = stg_kafka_memory(1, sizeof *n);
    n->producer = p;
    n->rk = rk;
    n->is_alone = is_alone;
    (void)rd_kafka_set_log_queue(rk, NULL);
    n->events = rd_kafka_queue_get_main(rk);
    // It is called when the queue was empty: what was said before is to be taken.
    rd_kafka_queue_cb_event_enable(n->events, wake, p->to_loop);
    wake(rk, p->to_loop);
    stg_list_push(&p->instances, &n->link);
    return n;
}

static instance *instance_of(stg_link *link)
{
    return link == NULL ? NULL : STG_HOLDER(link, instance, link);
}

/* NULL: there is none for now. */
static instance *find_instance(stg_kafka_producer *p, bool is_alone)
{
    for (stg_link *at = stg_list_first(&p->instances); at != NULL;
         at = stg_list_next(&p->instances, at)) {
        instance *n = instance_of(at);

        if (!n->is_over && n->is_alone == is_alone)
            return n;
    }
    if (p->ended != NULL || stg_kafka_now() < p->open_at)
        return NULL;
    return open_instance(p, is_alone);
}

/* It takes nothing more. What it has on its way is reported soon, most of it as
 * possibly there. */
static void give_up(instance *n)
{
    if (n->is_over)
        return;
    n->is_over = true;
    (void)rd_kafka_purge(n->rk, RD_KAFKA_PURGE_F_QUEUE |
                                    RD_KAFKA_PURGE_F_INFLIGHT |
                                    RD_KAFKA_PURGE_F_NON_BLOCKING);
}

static void tell_ended(const stg_kafka_producer *p)
{
    if (p->ended != NULL && stg_list_is_empty(&p->instances))
        p->ended(p->ended_ctx);
}

static void destroy(uv_work_t *work)
{
    stg_kafka_destroy(((instance *)work->data)->rk);
}

static void destroyed(uv_work_t *work, int status)
{
    instance *n = work->data;
    stg_kafka_producer *p = n->producer;

    (void)status;
    stg_list_remove(&n->link);
    free(n);
    tell_ended(p);
}

static void end_if_over(instance *n)
{
    if (!n->is_over || n->waiting > 0 || n->events == NULL)
        return;
    rd_kafka_queue_cb_event_enable(n->events, NULL, NULL);
    rd_kafka_queue_destroy(n->events);
    n->events = NULL;
    n->work.data = n;
    (void)uv_queue_work(n->producer->to_loop->arrived.loop, &n->work, destroy,
                        destroyed); // cannot fail
}

/* -- sending --------------------------------------------------------------- */

static void add_id(rd_kafka_headers_t *h, const stg_record_id *id)
{
    char text[STG_KAFKA_ID_TEXT_MAX];

    if (id != NULL && !stg_record_id_is_none(id))
        stg_kafka_headers_add(h, STG_KAFKA_ID_HEADER,
                              stg_kafka_id_print(id, text));
}

static rd_kafka_headers_t *headers_of(const stg_parcel *p)
{
    rd_kafka_headers_t *h = rd_kafka_headers_new(8);

    if (p->content_type.size > 0)
        stg_kafka_headers_add(h, "content-type", p->content_type);
    stg_kafka_headers_add_lines(h, p->headers);
    return h;
}

/* An empty body is a value; none would be a tombstone. */
static rd_kafka_resp_err_t produce(instance *n, sent *s)
{
    const stg_parcel *p = &s->message->parcel;
    const char *body = p->body.size > 0 ? p->body.at : "";
    rd_kafka_headers_t *h = headers_of(p);
    rd_kafka_vu_t parts[] = {
        {.vtype = RD_KAFKA_VTYPE_TOPIC, .u.cstr = s->posting->topic},
        {.vtype = RD_KAFKA_VTYPE_MSGFLAGS, .u.i = 0},
        {.vtype = RD_KAFKA_VTYPE_HEADERS, .u.headers = h},
        {.vtype = RD_KAFKA_VTYPE_OPAQUE, .u.ptr = s},
        {.vtype = RD_KAFKA_VTYPE_VALUE,
         .u.mem = {(void *)(uintptr_t)body, p->body.size}},
        {.vtype = RD_KAFKA_VTYPE_KEY,
         .u.mem = {p->key.size > 0 ? (void *)(uintptr_t)p->key.at : NULL,
                   p->key.size}},
    };
    rd_kafka_resp_err_t err;

    add_id(h, s->id);
    err = stg_kafka_code_of(
        rd_kafka_produceva(n->rk, parts, sizeof parts / sizeof *parts));

    if (err != RD_KAFKA_RESP_ERR_NO_ERROR)
        rd_kafka_headers_destroy(h);
    return err;
}

static stg_kafka_published *result_of(const sent *s)
{
    return &s->posting->results[s - s->posting->sent];
}

/* False: it is not on its way; result_of() says why. */
static bool send_one(instance *n, sent *s)
{
    rd_kafka_resp_err_t err =
        n == NULL ? RD_KAFKA_RESP_ERR__STATE : produce(n, s);

    if (err == RD_KAFKA_RESP_ERR_NO_ERROR) {
        n->waiting++;
        s->posting->waiting++;
        return true;
    }
    result_of(s)->how = outcome_of(err, false);
    if (n != NULL && is_trouble(err))
        tell(n->producer, err, s->posting->topic, rd_kafka_err2str(err));
    return false;
}

static void let_go(posting *p)
{
    if (--p->waiting > 0)
        return;
    p->done(p->ctx, p->results, p->count);
    free(p->results);
    free(p);
}

void stg_kafka_producer_post(stg_kafka_producer *p, const char *topic,
                             const stg_append *messages,
                             const stg_record_id *ids, size_t count,
                             stg_kafka_publish_fn *done, void *ctx)
{
    posting *all = stg_kafka_memory(1, sizeof *all + count * sizeof *all->sent);
    instance *n = find_instance(p, false);
    bool goes_on = true;

    *all = (posting){.topic = topic,
                     .done = done,
                     .ctx = ctx,
                     .results = stg_kafka_memory(count, sizeof *all->results),
                     .count = count,
                     .waiting = 1}; // until all are sent
    for (size_t i = 0; i < count; i++) {
        all->sent[i] = (sent){all, &messages[i], ids == NULL ? NULL : &ids[i]};
        all->results[i].how = STG_APPEND_AWAY;
        // What comes behind one that is refused would be there without it.
        goes_on = goes_on && send_one(n, &all->sent[i]);
    }
    let_go(all);
}

/* -- reports --------------------------------------------------------------- */

/* A broker may not say where a message is that it had already: then it is there,
 * and has no id to be answered with. */
static void note_result(instance *n, sent *s, const rd_kafka_message_t *m)
{
    bool is_possibly_there =
        rd_kafka_message_status(m) != RD_KAFKA_MSG_STATUS_NOT_PERSISTED;
    stg_kafka_published *r = result_of(s);

    r->how = outcome_of(m->err, is_possibly_there);
    if (m->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
        r->how = m->offset < 0 ? STG_APPEND_UNACKNOWLEDGED : STG_APPENDED;
        r->partition = (uint32_t)m->partition;
        r->offset = (uint64_t)m->offset;
    }
    if (r->how == STG_APPEND_TOO_LARGE && !n->is_alone)
        (void)send_one(find_instance(n->producer, true), s);
    let_go(s->posting);
}

/* Of many that failed at once the last one is told. */
static void take_reports(instance *n, rd_kafka_event_t *ev)
{
    rd_kafka_resp_err_t err = RD_KAFKA_RESP_ERR_NO_ERROR;
    const char *topic = NULL;
    const rd_kafka_message_t *m;

    while ((m = rd_kafka_event_message_next(ev)) != NULL) {
        sent *s = m->_private;

        n->waiting--;
        if (is_trouble(m->err)) {
            err = m->err;
            topic = s->posting->topic;
        }
        note_result(n, s, m);
    }
    if (topic != NULL)
        tell(n->producer, err, topic, rd_kafka_err2str(err));
}

/* Of trouble with brokers the member tells; only what ends an instance is its
 * own. */
static void take_event(instance *n, rd_kafka_event_t *ev)
{
    switch (rd_kafka_event_type(ev)) {
    case RD_KAFKA_EVENT_DR:
        take_reports(n, ev);
        break;
    case RD_KAFKA_EVENT_ERROR:
        if (!rd_kafka_event_error_is_fatal(ev))
            break;
        tell(n->producer, rd_kafka_event_error(ev), NULL,
             rd_kafka_event_error_string(ev));
        n->producer->open_at = stg_ns_add(stg_kafka_now(), REOPEN_PAUSE);
        give_up(n);
        break;
    case RD_KAFKA_EVENT_LOG:
        stg_kafka_report_log(n->producer->to_loop, ev);
        break;
    default:
        break;
    }
}

static void take_events(instance *n)
{
    rd_kafka_event_t *ev;

    while (n->events != NULL &&
           (ev = rd_kafka_queue_poll(n->events, 0)) != NULL) {
        take_event(n, ev);
        rd_kafka_event_destroy(ev);
    }
    end_if_over(n);
}

/* -- its life -------------------------------------------------------------- */

stg_kafka_producer *stg_kafka_producer_new(const stg_kafka_options *o,
                                           stg_kafka_events *to_loop)
{
    stg_kafka_producer *p = stg_kafka_memory(1, sizeof *p);

    p->o = o;
    p->to_loop = to_loop;
    stg_list_init(&p->instances);
    return p;
}

/* A report may open another instance, behind all that are there. */
void stg_kafka_producer_take(stg_kafka_producer *p)
{
    for (stg_link *at = stg_list_first(&p->instances), *next; at != NULL;
         at = next) {
        take_events(instance_of(at));
        next = stg_list_next(&p->instances, at);
    }
}

void stg_kafka_producer_give_up(stg_kafka_producer *p)
{
    for (stg_link *at = stg_list_first(&p->instances); at != NULL;
         at = stg_list_next(&p->instances, at))
        give_up(instance_of(at));
    (void)uv_async_send(&p->to_loop->arrived);
}

void stg_kafka_producer_end(stg_kafka_producer *p, void (*ended)(void *ctx),
                            void *ctx)
{
    p->ended = ended;
    p->ended_ctx = ctx;
    stg_kafka_producer_give_up(p);
    tell_ended(p);
}
