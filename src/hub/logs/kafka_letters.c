#include "hub/logs/kafka_letters.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hub/logs/kafka_inside.h"
#include "hub/refuse.h"

enum { POLL_MS = 100 };

struct stg_kafka_letters {
    stg_kafka_options o; /* brokers, the topic, properties */
    const char *topic;
    stg_ns timeout;
    rd_kafka_t *rk; /* NULL: after a failure, and before the first write */
    rd_kafka_queue_t *events;
    atomic_bool is_hurried;

    /* -- of the write that is under way */
    size_t waiting; /* rows without an answer */
    rd_kafka_resp_err_t error;
    char why[256]; /* what a broker's trouble was last */
};

stg_kafka_letters_options stg_kafka_letters_options_default(void)
{
    return (stg_kafka_letters_options){.timeout = 30 * STG_S};
}

/* -- a row as a message ---------------------------------------------------- */

static void add(rd_kafka_headers_t *h, const char *name, stg_span value)
{
    (void)rd_kafka_header_add(h, name, -1, value.at, (ssize_t)value.size);
}

static void add_text(rd_kafka_headers_t *h, const char *name, const char *text)
{
    if (text != NULL)
        add(h, name, (stg_span){text, strlen(text)});
}

static void add_number(rd_kafka_headers_t *h, const char *name, uint64_t number)
{
    char text[24];

    snprintf(text, sizeof text, "%" PRIu64, number);
    add_text(h, name, text);
}

/* "Name: value\r\n" each. */
static void add_lines(rd_kafka_headers_t *h, const char *lines)
{
    char name[260];

    while (lines != NULL && *lines != '\0') {
        const char *end = strstr(lines, "\r\n");
        const char *colon = strstr(lines, ": ");

        if (end == NULL || colon == NULL || colon > end)
            return;
        if ((size_t)(colon - lines) < sizeof name) {
            snprintf(name, sizeof name, "%.*s", (int)(colon - lines), lines);
            add(h, name, (stg_span){colon + 2, (size_t)(end - colon - 2)});
        }
        lines = end + 2;
    }
}

static rd_kafka_headers_t *headers_of(const stg_letter *r)
{
    rd_kafka_headers_t *h = rd_kafka_headers_new(24);

    add_number(h, "stagger-id", r->id);
    add_text(h, "stagger-message", r->message_id);
    add_text(h, "stagger-target", r->target);
    add_text(h, "stagger-state", r->state);
    add_text(h, "stagger-cause", r->cause);
    add_text(h, "stagger-category", r->category);
    add_number(h, "stagger-attempts", r->attempts);
    add_text(h, "stagger-topic", r->topic);
    add_number(h, "stagger-partition",
               r->topic != NULL ? r->topic_partition : r->partition);
    add_number(h, "stagger-position", r->position);
    if (r->last_position > 0) {
        add_number(h, "stagger-last-position", r->last_position);
        add_number(h, "stagger-count", r->count);
    }
    if (r->http_status > 0)
        add_number(h, "stagger-status", r->http_status);
    add_text(h, "stagger-detail", r->detail);
    if (r->replay > 0)
        add_number(h, "stagger-replay", r->replay);
    add_text(h, "stagger-created-at", r->created_at);
    add_text(h, "content-type", r->content_type);
    add_lines(h, r->headers);
    return h;
}

/* -- writing --------------------------------------------------------------- */

static void take_reports(stg_kafka_letters *l, rd_kafka_event_t *ev)
{
    const rd_kafka_message_t *m;

    while ((m = rd_kafka_event_message_next(ev)) != NULL) {
        l->waiting--;
        if (m->err != 0)
            l->error = m->err;
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

static bool is_over(const stg_kafka_letters *l, stg_ns until)
{
    return l->error != 0 || atomic_load(&l->is_hurried) ||
           stg_kafka_now() >= until;
}

static rd_kafka_resp_err_t code_of(rd_kafka_error_t *error)
{
    rd_kafka_resp_err_t code =
        error == NULL ? RD_KAFKA_RESP_ERR_NO_ERROR : rd_kafka_error_code(error);

    rd_kafka_error_destroy(error);
    return code;
}

static rd_kafka_resp_err_t produce_once(stg_kafka_letters *l,
                                        const stg_letter *r)
{
    rd_kafka_headers_t *h = headers_of(r);
    const void *value = r->payload.at;
    rd_kafka_vu_t parts[] = {
        {.vtype = RD_KAFKA_VTYPE_TOPIC, .u.cstr = l->topic},
        {.vtype = RD_KAFKA_VTYPE_MSGFLAGS, .u.i = RD_KAFKA_MSG_F_COPY},
        {.vtype = RD_KAFKA_VTYPE_HEADERS, .u.headers = h},
        {.vtype = RD_KAFKA_VTYPE_VALUE},
        {.vtype = RD_KAFKA_VTYPE_KEY},
    };
    size_t count = sizeof parts / sizeof *parts;
    rd_kafka_resp_err_t err;

    if (value == NULL && r->has_payload)
        value = ""; // an empty one is not none
    parts[3].u.mem.ptr = (void *)(uintptr_t)value;
    parts[3].u.mem.size = r->payload.size;
    parts[4].u.mem.ptr = (void *)(uintptr_t)r->key;
    parts[4].u.mem.size = r->key == NULL ? 0 : strlen(r->key);
    err = code_of(rd_kafka_produceva(
        l->rk, parts, parts[4].u.mem.size > 0 ? count : count - 1));
    if (err != RD_KAFKA_RESP_ERR_NO_ERROR)
        rd_kafka_headers_destroy(h);
    return err;
}

static void produce(stg_kafka_letters *l, const stg_letter *r, stg_ns until)
{
    rd_kafka_resp_err_t err;

    while (!is_over(l, until)) {
        err = produce_once(l, r);
        if (err == RD_KAFKA_RESP_ERR_NO_ERROR) {
            l->waiting++;
            return;
        }
        if (err != RD_KAFKA_RESP_ERR__QUEUE_FULL) {
            l->error = err;
            return;
        }
        poll(l, POLL_MS);
    }
}

/* -- the producer ---------------------------------------------------------- */

static bool open_producer(stg_kafka_letters *l, stg_error *err)
{
    char why[256];
    rd_kafka_conf_t *conf;

    if (l->rk != NULL)
        return true;
    conf = stg_kafka_conf_producer(l->o.brokers, l->o.properties,
                                   l->o.property_count, err);
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

/* A producer that has failed is not asked again: what it still has on its way
 * would come between, and an idempotent one may be stuck. */
static stg_status fail(stg_kafka_letters *l, stg_error *err)
{
    const char *what = l->error != 0 ? rd_kafka_err2str(l->error)
                       : atomic_load(&l->is_hurried)
                           ? "the hub stops"
                           : "no broker has acknowledged it in time";

    close_producer(l);
    return stg_hub_refuse(
        err, STG_IO, "topic %.100s: dead letters cannot be copied: %s%s%s",
        l->topic, what, l->why[0] == '\0' ? "" : "; ", l->why);
}

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

    if (o->topic == NULL || !stg_kafka_is_topic(o->topic))
        return stg_hub_refuse(err, STG_INVALID,
                              "kafka: \"%.80s\" cannot be the name of a topic",
                              o->topic == NULL ? "" : o->topic);
    l = stg_kafka_memory(1, sizeof *l);
    l->o = stg_kafka_options_copy(&all);
    l->topic = l->o.topics[0];
    l->timeout = o->timeout;
    atomic_init(&l->is_hurried, false);
    if (open_producer(l, err)) {
        *letters = l;
        return STG_OK;
    }
    stg_kafka_letters_close(l);
    return STG_INVALID;
}

stg_status stg_kafka_letters_write(stg_kafka_letters *l, const stg_letter *rows,
                                   size_t count, stg_error *err)
{
    stg_ns until = stg_ns_add(stg_kafka_now(), l->timeout);

    if (!open_producer(l, err))
        return STG_IO;
    l->waiting = 0;
    l->error = RD_KAFKA_RESP_ERR_NO_ERROR;
    l->why[0] = '\0';
    for (size_t i = 0; i < count && l->error == 0; i++)
        produce(l, &rows[i], until);
    while (l->waiting > 0 && !is_over(l, until))
        poll(l, POLL_MS);
    return l->error == 0 && l->waiting == 0 && !atomic_load(&l->is_hurried)
               ? STG_OK
               : fail(l, err);
}

void stg_kafka_letters_hurry(stg_kafka_letters *l)
{
    atomic_store(&l->is_hurried, true);
}

void stg_kafka_letters_close(stg_kafka_letters *l)
{
    close_producer(l);
    stg_kafka_options_free(&l->o);
    free(l);
}
