#include "tests/kafka/cluster.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness.h"

enum { PATIENCE_S = 60, STEP_MS = 20 };

/* -- a cluster ------------------------------------------------------------- */

static void set(rd_kafka_conf_t *conf, const char *name, const char *value)
{
    char why[256];

    if (rd_kafka_conf_set(conf, name, value, why, sizeof why) !=
        RD_KAFKA_CONF_OK)
        harness_fail(__FILE__, __LINE__, "%s", why);
}

static void open_producer(cluster *c, const char *name, const char *value)
{
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    char why[256];

    set(conf, name, value);
    set(conf, "linger.ms", "1");
    set(conf, "batch.num.messages", "200");
    set(conf, "message.max.bytes", "4000000");
    set(conf, "topic.metadata.refresh.interval.ms", "500");
    set(conf, "log_level", "0");
    c->rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof why);
    CHECK(c->rk != NULL);
}

void cluster_open(cluster *c, int brokers)
{
    char number[16];

    snprintf(number, sizeof number, "%d", brokers);
    open_producer(c, "test.mock.num.brokers", number);
    c->mock = rd_kafka_handle_mock_cluster(c->rk);
    CHECK(c->mock != NULL);
    c->brokers = rd_kafka_mock_cluster_bootstraps(c->mock);
}

void cluster_join(cluster *c, const char *brokers)
{
    open_producer(c, "bootstrap.servers", brokers);
    c->mock = NULL;
    c->brokers = brokers;
}

void cluster_topic(cluster *c, const char *topic, int partitions)
{
    CHECK_INT(rd_kafka_mock_topic_create(c->mock, topic, partitions, 1), 0);
}

void cluster_close(cluster *c)
{
    rd_kafka_destroy(c->rk);
}

static rd_kafka_resp_err_t send_once(cluster *c, const char *topic,
                                     int partition, const char *key,
                                     const char *value, size_t size,
                                     const char *header)
{
    rd_kafka_headers_t *h = rd_kafka_headers_new(1);
    rd_kafka_vu_t parts[6] = {
        {.vtype = RD_KAFKA_VTYPE_TOPIC, .u.cstr = topic},
        {.vtype = RD_KAFKA_VTYPE_PARTITION, .u.i32 = partition},
        {.vtype = RD_KAFKA_VTYPE_MSGFLAGS,
         .u.i = RD_KAFKA_MSG_F_COPY | RD_KAFKA_MSG_F_BLOCK},
        {.vtype = RD_KAFKA_VTYPE_HEADERS, .u.headers = h},
        {.vtype = RD_KAFKA_VTYPE_VALUE},
        {.vtype = RD_KAFKA_VTYPE_KEY},
    };
    const char *colon = header == NULL ? NULL : strstr(header, ": ");
    rd_kafka_resp_err_t err = RD_KAFKA_RESP_ERR_NO_ERROR;
    rd_kafka_error_t *error;

    parts[4].u.mem.ptr = (void *)(uintptr_t)value;
    parts[4].u.mem.size = size;
    parts[5].u.mem.ptr = (void *)(uintptr_t)key;
    parts[5].u.mem.size = key == NULL ? 0 : strlen(key);
    if (colon != NULL)
        rd_kafka_header_add(h, header, colon - header, colon + 2, -1);
    error = rd_kafka_produceva(c->rk, parts, 6);
    if (error != NULL) {
        err = rd_kafka_error_code(error);
        rd_kafka_error_destroy(error);
        rd_kafka_headers_destroy(h);
    }
    return err;
}

void cluster_send(cluster *c, const char *topic, int partition, const char *key,
                  const char *value, size_t size, const char *header)
{
    uint64_t until = uv_hrtime() + PATIENCE_S * STG_S;
    rd_kafka_resp_err_t err;

    // A partition that is new is known to a producer after a while.
    do {
        err = send_once(c, topic, partition, key, value, size, header);
        if (err == RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION ||
            err == RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC)
            rd_kafka_poll(c->rk, 100);
    } while ((err == RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION ||
              err == RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC) &&
             uv_hrtime() < until);
    CHECK_INT(err, 0);
}

void cluster_send_many(cluster *c, const char *topic, int partition,
                       unsigned from, unsigned count)
{
    char text[24];

    for (unsigned i = from; i < from + count; i++) {
        snprintf(text, sizeof text, "m%u", i);
        cluster_send(c, topic, partition, NULL, text, strlen(text), NULL);
        rd_kafka_poll(c->rk, 0);
    }
    cluster_flush(c);
}

void cluster_flush(cluster *c)
{
    CHECK_INT(rd_kafka_flush(c->rk, PATIENCE_S * 1000), 0);
}

int64_t cluster_committed(cluster *c, const char *group, const char *topic,
                          int partition)
{
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    rd_kafka_topic_partition_list_t *list =
        rd_kafka_topic_partition_list_new(1);
    rd_kafka_t *rk;
    int64_t offset;
    char why[256];

    set(conf, "bootstrap.servers", c->brokers);
    set(conf, "group.id", group);
    set(conf, "log_level", "0");
    rk = rd_kafka_new(RD_KAFKA_CONSUMER, conf, why, sizeof why);
    CHECK(rk != NULL);
    rd_kafka_topic_partition_list_add(list, topic, partition);
    CHECK_INT(rd_kafka_committed(rk, list, PATIENCE_S * 1000), 0);
    offset = list->elems[0].offset;
    rd_kafka_topic_partition_list_destroy(list);
    rd_kafka_destroy_flags(rk, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
    return offset < 0 ? -1 : offset;
}

/* -- what a reader is told ------------------------------------------------- */

static part *part_of(reader *r, const stg_topic_partition *p)
{
    static part other;

    if (strcmp(p->topic, r->topics[0]) != 0)
        return &other;
    CHECK(p->partition < PARTS_MAX);
    return &r->parts[p->partition];
}

static void begin(reader *r, const stg_kafka_assigned *g)
{
    uint64_t from =
        g->has_committed && g->committed >= g->begin ? g->committed : g->begin;

    stg_kafka_begin(r->kafka, &g->tp, from, r->tag);
}

static void on_assigned(void *ctx, const stg_kafka_assigned *given,
                        size_t count)
{
    reader *r = ctx;

    r->assigned++;
    for (size_t i = 0; i < count; i++) {
        part *p = part_of(r, &given[i].tp);

        CHECK(!p->is_there || p->given.tp.assignment < given[i].tp.assignment);
        p->is_there = true;
        p->given = given[i];
        p->assigned++;
        p->first = UINT64_MAX;
        p->next = 0;
        if (r->begins)
            begin(r, &given[i]);
    }
    if (r->reads && !r->is_reading)
        reader_read(r);
}

static void on_revoked(void *ctx, const stg_topic_partition *places,
                       size_t count)
{
    reader *r = ctx;

    r->revoked++;
    for (size_t i = 0; i < count; i++) {
        part *p = part_of(r, &places[i]);

        CHECK(p->is_there);
        p->is_there = false;
        p->revoked++;
        if (r->commits && p->next > 0)
            stg_kafka_commit(r->kafka, &places[i], p->next);
        if (r->lets_go)
            stg_kafka_let_go(r->kafka, &places[i]);
    }
}

static void on_lost(void *ctx, const stg_topic_partition *places, size_t count)
{
    reader *r = ctx;

    r->lost++;
    for (size_t i = 0; i < count; i++) {
        part *p = part_of(r, &places[i]);

        p->is_there = false;
        p->lost++;
    }
}

/* Reads the fingerprint again, as the hub does. */
static void compare(reader *r, const stg_topic_partition *p)
{
    const stg_fingerprint *print = &part_of(r, p)->print;

    if (stg_fingerprint_is_known(print))
        stg_kafka_compare(r->kafka, p, print);
    else
        stg_kafka_resume(r->kafka, p);
}

static void on_compared(void *ctx, const stg_kafka_compared *c, size_t count)
{
    reader *r = ctx;

    CHECK_U64(count, 1);
    r->compared = *c;
    if (c->how == STG_KAFKA_NO_ANSWER)
        compare(r, &c->tp);
    else if (c->how == STG_KAFKA_OTHER)
        stg_kafka_renew(r->kafka, &c->tp);
    else
        stg_kafka_resume(r->kafka, &c->tp);
}

static void on_told(void *ctx, const stg_kafka_report *told)
{
    reader *r = ctx;
    unsigned i = r->told_count;

    if (told->what == STG_KAFKA_SUSPECT)
        compare(r, &told->tp);

    CHECK(told->text != NULL);
    if (getenv("STAGGER_VERBOSE") != NULL)
        fprintf(stderr, "%.1f told %d: %s\n", (double)uv_hrtime() / 1e9,
                (int)told->what, told->text);
    if (told->what == STG_KAFKA_LOG || i == TOLD_MAX)
        return;
    r->told_count++;
    r->told[i] = *told;
    snprintf(r->texts[i], sizeof r->texts[i], "%s", told->text);
    r->told[i].text = r->texts[i];
}

/* -- reading --------------------------------------------------------------- */

static void keep_last(reader *r, const stg_record *last)
{
    free(r->bytes);
    r->bytes = malloc(last->size);
    CHECK(r->bytes != NULL);
    memcpy(r->bytes, last->bytes, last->size);
    r->record = *last;
    CHECK(stg_parcel_unpack(&r->parcel, r->bytes, last->size));
}

/* In order, and none from before. */
static void take_run(reader *r, const stg_kafka_run *run)
{
    part *p = part_of(r, &run->tp);
    uint64_t at = p->next;

    CHECK(run->tp.assignment <= p->given.tp.assignment);
    if (run->mark.hash != 0)
        stg_fingerprint_add(&p->print, &run->mark, p->given.begin);
    for (size_t i = 0; i < run->count; i++) {
        const stg_record *record = &run->records[i];

        p->twice += record->position < at;
        CHECK(i == 0 || record->position >= at);
        at = record->position + 1;
        if (r->saw != NULL)
            r->saw(r->ctx, run->tp.partition, record->position);
        if (p->first == UINT64_MAX)
            p->first = record->position;
    }
    CHECK(run->next >= at);
    CHECK(run->end >= run->next);
    p->messages += run->count;
    r->messages += run->count;
    p->next = run->next;
    p->end = run->end;
    p->tag = run->tag;
    if (run->count > 0)
        keep_last(r, &run->records[run->count - 1]);
    if (r->commits && p->is_there)
        stg_kafka_commit(r->kafka, &run->tp, run->next);
}

static void on_read(void *ctx, const stg_kafka_run *runs, size_t count)
{
    reader *r = ctx;

    CHECK(count > 0);
    r->is_reading = false;
    r->batches++;
    for (size_t i = 0; i < count; i++)
        take_run(r, &runs[i]);
    if (r->reads)
        reader_read(r);
}

static void on_read_behind(void *ctx, const stg_kafka_run *runs, size_t count)
{
    reader *r = ctx;

    CHECK_U64(count, 1);
    r->is_behind = false;
    r->behind_answers++;
    r->behind_next = runs->next;
    r->behind_count = runs->count;
    if (runs->count > 0)
        r->behind_first = runs->records[0].position;
}

void reader_read(reader *r)
{
    CHECK(!r->is_reading);
    r->is_reading = true;
    stg_kafka_read(r->kafka, r->bytes_max, on_read, r);
}

stg_topic_partition reader_place(const reader *r, uint32_t partition)
{
    return r->parts[partition].given.tp;
}

void reader_read_behind(reader *r, uint32_t partition, uint64_t from,
                        size_t bytes_max)
{
    stg_topic_partition p = reader_place(r, partition);

    r->is_behind = true;
    stg_kafka_read_catch_up(r->kafka, &p, from, bytes_max, 77, on_read_behind,
                            r);
}

void reader_read_again(reader *r, uint32_t partition, uint64_t from,
                       size_t count_max)
{
    stg_topic_partition p = reader_place(r, partition);

    r->is_behind = true;
    stg_kafka_read_again(r->kafka, &p, from, 1 << 20, count_max, on_read_behind,
                         r);
}

/* -- open, run, close ------------------------------------------------------ */

void reader_set(reader *r, const char *property, const char *value)
{
    for (size_t i = 0; i < r->options.property_count; i++)
        if (strcmp(r->properties[i].name, property) == 0) {
            r->properties[i].value = value;
            return;
        }
    CHECK(r->options.property_count < 8);
    r->properties[r->options.property_count++] =
        (stg_kafka_property){property, value};
}

void reader_begin(reader *r, const cluster *c, const char *topic)
{
    *r = (reader){.begins = true,
                  .reads = true,
                  .commits = true,
                  .lets_go = true,
                  .bytes_max = 1 << 20,
                  .tag = 5};
    r->topics[0] = topic;
    r->options = stg_kafka_options_default();
    r->options.brokers = c->brokers;
    r->options.topics = r->topics;
    r->options.group = "g";
    r->options.properties = r->properties;
    r->options.assigned = on_assigned;
    r->options.revoked = on_revoked;
    r->options.lost = on_lost;
    r->options.compared = on_compared;
    r->options.report = on_told;
    r->options.ctx = r;
    r->options.commit_every = 20 * STG_MS;
    // No session ends because the machine is busy. (The mock's rebalances but
    // the first take as long: where there are any a test sets it lower.)
    reader_set(r, "heartbeat.interval.ms", "200");
    reader_set(r, "session.timeout.ms", "30000");
    reader_set(r, "fetch.wait.max.ms", "50");
    reader_set(r, "log_level", "3");
}

void reader_open(reader *r)
{
    CHECK_INT(uv_loop_init(&r->loop), 0);
    r->is_closed = r->is_reading = r->is_behind = false;
    if (stg_kafka_open(&r->kafka, &r->loop, &r->options, &r->err) != STG_OK)
        harness_fail(__FILE__, __LINE__, "%s", r->err.text);
}

static void on_closed(void *ctx)
{
    ((reader *)ctx)->is_closed = true;
}

static void on_tick(uv_timer_t *timer)
{
    (void)timer;
}

static void step(reader *r)
{
    uv_timer_t timer;

    uv_timer_init(&r->loop, &timer);
    // It repeats: one that had passed before the loop waits would not wake it.
    uv_timer_start(&timer, on_tick, STEP_MS, STEP_MS);
    uv_run(&r->loop, UV_RUN_ONCE);
    uv_close((uv_handle_t *)&timer, NULL);
    uv_run(&r->loop, UV_RUN_NOWAIT);
}

void reader_close(reader *r)
{
    uint64_t until = uv_hrtime() + PATIENCE_S * STG_S;

    stg_kafka_close(r->kafka, on_closed, r);
    while (!r->is_closed) {
        CHECK(uv_hrtime() < until);
        step(r);
    }
    r->kafka = NULL;
    uv_run(&r->loop, UV_RUN_DEFAULT);
    CHECK_INT(uv_loop_close(&r->loop), 0);
    free(r->bytes);
    r->bytes = NULL;
    for (size_t i = 0; i < PARTS_MAX; i++)
        r->parts[i] = (part){.is_there = false};
}

void reader_until(reader *r, bool (*claim)(const reader *r))
{
    uint64_t until = uv_hrtime() + PATIENCE_S * STG_S;

    while (!claim(r)) {
        if (uv_hrtime() >= until)
            harness_fail(__FILE__, __LINE__,
                         "it did not come true: %u assigned, %u revoked, %u "
                         "lost, %ju messages; told last: %s",
                         r->assigned, r->revoked, r->lost,
                         (uintmax_t)r->messages,
                         r->told_count == 0 ? "" : r->texts[r->told_count - 1]);
        step(r);
    }
}

void reader_until_messages(reader *r, uint64_t messages)
{
    uint64_t until = uv_hrtime() + PATIENCE_S * STG_S;

    while (r->messages < messages) {
        if (uv_hrtime() >= until)
            harness_fail(__FILE__, __LINE__, "%ju of %ju messages; %s",
                         (uintmax_t)r->messages, (uintmax_t)messages,
                         r->told_count == 0 ? "" : r->texts[r->told_count - 1]);
        step(r);
    }
}

void readers_until(reader **rs, size_t count, bool (*claim)(reader **rs))
{
    uint64_t until = uv_hrtime() + PATIENCE_S * STG_S;

    while (!claim(rs)) {
        if (uv_hrtime() >= until)
            harness_fail(__FILE__, __LINE__, "it did not come true");
        for (size_t i = 0; i < count; i++)
            step(rs[i]);
    }
}

void reader_run_for(reader *r, unsigned ms)
{
    uint64_t until = uv_hrtime() + ms * STG_MS;

    while (uv_hrtime() < until)
        step(r);
}

const stg_kafka_report *reader_told(const reader *r, stg_kafka_report_kind what)
{
    for (unsigned i = r->told_count; i-- > 0;)
        if (r->told[i].what == what)
            return &r->told[i];
    return NULL;
}
