/* What is posted to a hub and written to a topic, on librdkafka's mock of a
 * cluster. */
#include <stdio.h>
#include <string.h>

#include "tests/harness.h"
#include "tests/kafka/cluster.h"

enum { API_INIT_PRODUCER_ID = 22, MESSAGES_MAX = 100 };

static bool is_text(stg_span span, const char *text)
{
    return span.size == strlen(text) && memcmp(span.at, text, span.size) == 0;
}

/* A call. */
typedef struct call {
    stg_append messages[MESSAGES_MAX];
    stg_kafka_published results[MESSAGES_MAX];
    size_t count;
    bool is_done;
} call;

static call *waits_for; /* of reader_until() */

static void note(void *ctx, const stg_kafka_published *results, size_t count)
{
    call *c = ctx;

    CHECK(!c->is_done);
    CHECK_INT(count, c->count);
    memcpy(c->results, results, count * sizeof *results);
    c->is_done = true;
}

static void post(reader *r, call *c, size_t count, const char *body)
{
    memset(c, 0, sizeof *c);
    c->count = count;
    for (size_t i = 0; i < count; i++)
        c->messages[i].parcel.body = (stg_span){body, strlen(body)};
    stg_kafka_publish(r->kafka, stg_kafka_find_topic(r->kafka, "t"),
                      c->messages, NULL, count, note, c);
}

static bool is_answered(const reader *r)
{
    (void)r;
    return waits_for->is_done;
}

static void await(reader *r, call *c)
{
    waits_for = c;
    reader_until(r, is_answered);
}

static stg_appended posted(reader *r, const char *body)
{
    call c;

    post(r, &c, 1, body);
    await(r, &c);
    return c.results[0].how;
}

static void begin(cluster *c, reader *r, const char *timeout_ms)
{
    cluster_open(c, 1);
    cluster_topic(c, "t", 2);
    reader_begin(r, c, "t");
    reader_set(r, "message.timeout.ms", timeout_ms);
    reader_open(r);
}

static void end(cluster *c, reader *r)
{
    reader_close(r);
    cluster_close(c);
}

static void refuse_next(cluster *c, int api, rd_kafka_resp_err_t err)
{
    rd_kafka_mock_push_request_errors(c->mock, (int16_t)api, 1, err);
}

TEST(kafka_publish, writes_a_message_that_the_group_reads)
{
    cluster c;
    reader r;
    call one;

    begin(&c, &r, "30000");
    memset(&one, 0, sizeof one);
    one.count = 1;
    one.messages[0].parcel =
        (stg_parcel){.content_type = {"text/x", 6},
                     .headers = {"Stagger-Hops: 7\r\nX-A: b: c\r\nX-Empty: \r\n"
                                 "ce-type: t\r\n",
                                 52},
                     .key = {"k", 1},
                     .body = {"\0a", 2}};
    stg_kafka_publish(r.kafka, stg_kafka_find_topic(r.kafka, "t"), one.messages,
                      NULL, 1, note, &one);
    await(&r, &one);
    CHECK_INT(one.results[0].how, STG_APPENDED);
    CHECK_INT(one.results[0].offset, 0);
    CHECK(one.results[0].partition < 2);
    reader_until_messages(&r, 1);
    CHECK_INT(r.record.position, 0);
    CHECK(is_text(r.parcel.content_type, "text/x"));
    CHECK(is_text(r.parcel.headers,
                  "Stagger-Hops: 7\r\nX-A: b: c\r\nX-Empty: \r\n"
                  "ce-type: t\r\n"));
    CHECK(is_text(r.parcel.key, "k"));
    CHECK_INT(r.parcel.body.size, 2);
    end(&c, &r);
}

/* An instance that librdkafka gives up takes nothing more: there is another one,
 * not at once. */
TEST(kafka_publish, opens_another_producer_after_a_fatal_error)
{
    cluster c;
    reader r;

    begin(&c, &r, "30000");
    refuse_next(&c, API_INIT_PRODUCER_ID,
                RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED);
    CHECK_INT(posted(&r, "a"), STG_APPEND_AWAY);
    CHECK(strstr(reader_told(&r, STG_KAFKA_TROUBLE)->advice,
                 "IdempotentWrite") != NULL);
    CHECK_INT(posted(&r, "b"), STG_APPEND_AWAY); // within the pause
    reader_run_for(&r, 1100);
    CHECK_INT(posted(&r, "c"), STG_APPENDED);
    end(&c, &r);
}

TEST(kafka_publish, says_what_a_broker_says_of_a_message)
{
    static const struct {
        rd_kafka_resp_err_t err;
        stg_appended how;
    } all[] = {
        {RD_KAFKA_RESP_ERR_INVALID_RECORD, STG_APPEND_REFUSED},
        {RD_KAFKA_RESP_ERR_POLICY_VIOLATION, STG_APPEND_REFUSED},
        {RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, STG_APPENDED},  // once more
        {RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS, STG_APPENDED}, // tried again
    };
    cluster c;
    reader r;

    begin(&c, &r, "30000");
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        refuse_next(&c, API_PRODUCE, all[i].err);
        CHECK_INT(posted(&r, "x"), all[i].how);
    }
    refuse_next(&c, API_PRODUCE, RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE);
    refuse_next(&c, API_PRODUCE, RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE);
    CHECK_INT(posted(&r, "x"), STG_APPEND_TOO_LARGE);
    // librdkafka takes its time to ask again.
    refuse_next(&c, API_PRODUCE, RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED);
    CHECK_INT(posted(&r, "x"), STG_APPEND_AWAY);
    CHECK(strstr(reader_told(&r, STG_KAFKA_TROUBLE)->advice, "Write") != NULL);
    end(&c, &r);
}

TEST(kafka_publish, gives_up_what_no_broker_takes_in_time)
{
    cluster c;
    reader r;

    begin(&c, &r, "1000");
    CHECK_INT(posted(&r, "a"), STG_APPENDED);
    rd_kafka_mock_broker_set_down(c.mock, 1);
    CHECK(posted(&r, "b") != STG_APPENDED);
    rd_kafka_mock_broker_set_up(c.mock, 1);
    while (posted(&r, "c") != STG_APPENDED)
        reader_run_for(&r, 50);
    end(&c, &r);
}

TEST(kafka_publish, answers_what_is_on_its_way_when_it_is_told_to)
{
    cluster c;
    reader r;
    call all;

    begin(&c, &r, "60000");
    CHECK_INT(posted(&r, "a"), STG_APPENDED);
    rd_kafka_mock_broker_set_down(c.mock, 1);
    post(&r, &all, MESSAGES_MAX, "b");
    reader_run_for(&r, 50);
    CHECK(!all.is_done);
    stg_kafka_give_up(r.kafka);
    await(&r, &all);
    for (size_t i = 0; i < MESSAGES_MAX; i++)
        CHECK(all.results[i].how == STG_APPEND_AWAY ||
              all.results[i].how == STG_APPEND_UNACKNOWLEDGED);
    rd_kafka_mock_broker_set_up(c.mock, 1);
    CHECK_INT(posted(&r, "c"), STG_APPENDED); // by another instance
    end(&c, &r);
}

/* And what they point to is not looked at any more. */
TEST(kafka_publish, answers_what_is_on_its_way_before_it_is_closed)
{
    cluster c;
    reader r;
    call all;

    begin(&c, &r, "60000");
    rd_kafka_mock_broker_set_down(c.mock, 1);
    post(&r, &all, MESSAGES_MAX, "b");
    reader_close(&r);
    CHECK(all.is_done);
    cluster_close(&c);
}

TEST(kafka_publish, has_no_topic_that_is_not_read)
{
    cluster c;
    reader r;

    begin(&c, &r, "30000");
    CHECK(stg_kafka_find_topic(r.kafka, "u") == NULL);
    CHECK_STR(stg_kafka_find_topic(r.kafka, "t"), "t");
    end(&c, &r);
}

/* Stops at the first one that cannot be sent: those behind it are not there
 * without it. */
TEST(kafka_publish, sends_nothing_behind_a_message_that_is_too_large)
{
    static const char large[3000];
    cluster c;
    reader r;
    call all;

    cluster_open(&c, 1);
    cluster_topic(&c, "t", 1);
    reader_begin(&r, &c, "t");
    reader_set(&r, "message.max.bytes", "2000");
    reader_open(&r);
    memset(&all, 0, sizeof all);
    all.count = 3;
    for (size_t i = 0; i < 3; i++)
        all.messages[i].parcel.body = (stg_span){"x", 1};
    all.messages[1].parcel.body = (stg_span){large, sizeof large};
    stg_kafka_publish(r.kafka, stg_kafka_find_topic(r.kafka, "t"), all.messages,
                      NULL, 3, note, &all);
    await(&r, &all);
    CHECK_INT(all.results[0].how, STG_APPENDED);
    CHECK_INT(all.results[1].how, STG_APPEND_TOO_LARGE);
    CHECK_INT(all.results[2].how, STG_APPEND_AWAY);
    end(&c, &r);
}

static bool has_assigned(const reader *r)
{
    return r->assigned > 0;
}

/* The loop is woken by a queue that was empty: what librdkafka has said before
 * anybody listened (that a property is none of a producer's) must not keep its
 * reports from being heard, where nothing else wakes the loop. */
TEST(kafka_publish, hears_reports_behind_what_was_said_at_the_start)
{
    cluster c;
    reader r;

    cluster_open(&c, 1);
    cluster_topic(&c, "t", 1);
    reader_begin(&r, &c, "t");
    reader_set(&r, "session.timeout.ms", "10000");
    reader_set(&r, "log_level", "6");
    r.reads = false;
    reader_open(&r);
    reader_until(&r, has_assigned);
    reader_run_for(&r, 300);
    CHECK_INT(posted(&r, "x"), STG_APPENDED);
    end(&c, &r);
}

/* -- second records ---------------------------------------------------------- */

#define ID "stagger-id: 00112233445566778899aabbccddeeff"

static unsigned asked_ids;

/* The first record that has an id is the one at position 1. */
static void place(void *ctx, bool is_catch_up, const stg_reserved *all,
                  size_t count)
{
    reader *r = ctx;
    stg_reserved places[8];

    CHECK(count <= 8);
    for (size_t i = 0; i < count; i++) {
        CHECK_INT(all[i].id.at[1], 0x11);
        CHECK_STR(all[i].topic, "t");
        places[i] = (stg_reserved){.partition = 0, .position = 1};
    }
    asked_ids += (unsigned)count;
    (void)stg_kafka_placed(r->kafka, is_catch_up, places, count);
}

static bool has_read_behind(const reader *r)
{
    return r->behind_answers == 1;
}

/* Of records with an id; of others and of those whose id is none nobody asks. A
 * read of nothing but second ones ends where they end. */
TEST(kafka_publish, leaves_out_second_records_of_a_message)
{
    static const char *const headers[] = {
        NULL, ID, "X: 1", ID, "stagger-id: none", ID};
    cluster c;
    reader r;

    asked_ids = 0;
    cluster_open(&c, 1);
    cluster_topic(&c, "t", 2);
    for (int i = 0; i < 6; i++)
        cluster_send(&c, "t", 0, NULL, "x", 1, headers[i]);
    cluster_send(&c, "t", 1, NULL, "x", 1, ID);
    cluster_flush(&c);
    reader_begin(&r, &c, "t");
    r.options.place = place;
    reader_open(&r);
    reader_until_messages(&r, 4); // 0, 1, 2, 4
    reader_run_for(&r, 300);
    CHECK_U64(r.messages, 4);
    CHECK_U64(r.parts[0].next, 6);
    CHECK_U64(r.parts[1].next, 1);
    CHECK_U64(r.parts[1].messages, 0);
    CHECK_INT(asked_ids, 4);
    reader_read_behind(&r, 0, 1, 1 << 20);
    reader_until(&r, has_read_behind);
    CHECK_U64(r.behind_count, 3);
    CHECK_U64(r.behind_first, 1);
    CHECK_U64(r.behind_next, 6);
    end(&c, &r);
}
