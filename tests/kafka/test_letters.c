/* Dead letters as messages of a topic, on librdkafka's mock of a cluster. */
#include "kafka/letters.h"

#include <stdio.h>
#include <string.h>

#include "tests/harness.h"
#include "tests/kafka/cluster.h"

static stg_kafka_letters *open_limited(const cluster *c, stg_ns timeout,
                                       const char *bytes_max)
{
    stg_kafka_letters_options o = stg_kafka_letters_options_default();
    stg_kafka_property quick[] = {{"message.timeout.ms", "60000"},
                                  {"log_level", "3"},
                                  {"message.max.bytes", bytes_max}};
    stg_kafka_letters *l;
    stg_error err;

    o.brokers = c->brokers;
    o.topic = "dead";
    o.properties = quick;
    o.property_count = 3;
    o.timeout = timeout;
    CHECK_INT(stg_kafka_letters_open(&l, &o, &err), STG_OK);
    return l;
}

static stg_kafka_letters *open_letters(const cluster *c, stg_ns timeout)
{
    return open_limited(c, timeout, "1000000");
}

static stg_letter_report report; /* of the last write */

static stg_status write_rows(stg_kafka_letters *l, const stg_letter *rows,
                             size_t count, stg_error *err)
{
    return stg_kafka_letters_write(l, rows, count, &report, err);
}

static stg_letter letter(uint64_t id, const char *payload)
{
    return (stg_letter){
        .id = id,
        .message_id = "orders.3.17",
        .target = "shop",
        .state = "dead",
        .category = "B",
        .cause = "HTTP_503",
        .detail = "it said no",
        .http_status = 503,
        .attempts = 4,
        .created_at = "2026-03-01T12:00:00Z",
        .topic = "orders",
        .topic_partition = 3,
        .position = 17,
        .count = 1,
        .content_type = "application/json",
        .headers = "X-Shop: 7\r\n",
        .key = "k1",
        .has_payload = payload != NULL,
        .payload = {payload, payload == NULL ? 0 : strlen(payload)},
        .payload_size = payload == NULL ? 0 : strlen(payload),
    };
}

/* The headers of the last of so many messages of a partition, as they are
 * there: "a=b;"; and "KEY|VALUE". What is none is "null". */
static void read_partition(cluster *c, int32_t partition, unsigned expected,
                           char *text, size_t size, char *value,
                           size_t value_size)
{
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    rd_kafka_topic_partition_list_t *list =
        rd_kafka_topic_partition_list_new(1);
    char why[256];
    unsigned seen = 0;
    rd_kafka_t *rk;

    rd_kafka_conf_set(conf, "bootstrap.servers", c->brokers, why, sizeof why);
    rd_kafka_conf_set(conf, "group.id", "raw", why, sizeof why);
    rd_kafka_conf_set(conf, "log_level", "0", why, sizeof why);
    rk = rd_kafka_new(RD_KAFKA_CONSUMER, conf, why, sizeof why);
    CHECK(rk != NULL);
    rd_kafka_topic_partition_list_add(list, "dead", partition)->offset =
        RD_KAFKA_OFFSET_BEGINNING;
    CHECK_INT(rd_kafka_assign(rk, list), 0);
    rd_kafka_topic_partition_list_destroy(list);
    for (int empty = 0; seen < expected;) {
        rd_kafka_message_t *m = rd_kafka_consumer_poll(rk, 1000);
        rd_kafka_headers_t *headers;
        const char *name;
        const void *at;
        size_t bytes;

        if (m == NULL) {
            CHECK(++empty < 60);
            continue;
        }
        if (m->err == 0) {
            seen++;
            text[0] = '\0';
            if (rd_kafka_message_headers(m, &headers) == 0)
                for (size_t i = 0; rd_kafka_header_get_all(headers, i, &name,
                                                           &at, &bytes) == 0;
                     i++) {
                    size_t used = strlen(text);

                    snprintf(text + used, size - used, "%s=%.*s;", name,
                             at == NULL ? 4 : (int)bytes,
                             at == NULL ? "null" : (const char *)at);
                }
            snprintf(value, value_size, "%.*s|%.*s",
                     m->key == NULL ? 4 : (int)m->key_len,
                     m->key == NULL ? "null" : (char *)m->key,
                     m->payload == NULL ? 4 : (int)m->len,
                     m->payload == NULL ? "null" : (char *)m->payload);
        }
        rd_kafka_message_destroy(m);
    }
    rd_kafka_destroy_flags(rk, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
}

static void read_raw(cluster *c, unsigned expected, char *text, size_t size,
                     char *value, size_t value_size)
{
    read_partition(c, 0, expected, text, size, value, value_size);
}

TEST(kafka_letters, writes_a_row_with_all_that_is_known_of_it)
{
    cluster c;
    stg_kafka_letters *l;
    stg_letter rows[3];
    stg_error err;
    char text[2048] = "", value[256] = "";

    cluster_open(&c, 1);
    cluster_topic(&c, "dead", 1);
    l = open_letters(&c, 30 * STG_S);
    rows[0] = letter(1, "{}");
    CHECK_INT(write_rows(l, rows, 1, &err), STG_OK);
    read_raw(&c, 1, text, sizeof text, value, sizeof value);
    CHECK_STR(text,
              "content-type=application/json;X-Shop=7;"
              "stagger-dead-letter-id=1;stagger-message=orders.3.17;"
              "stagger-target=shop;stagger-state=dead;stagger-category=B;"
              "stagger-cause=HTTP_503;stagger-status=503;"
              "stagger-detail=it said no;stagger-attempts=4;"
              "stagger-created-at=2026-03-01T12:00:00Z;"
              "stagger-topic=orders;stagger-partition=3;"
              "stagger-position=17;");
    CHECK_STR(value, "k1|{}");

    // A bulk row has no payload; an empty one is one.
    rows[0] = letter(2, "");
    rows[1] = letter(3, NULL);
    rows[1].last_position = 40;
    rows[1].count = 20;
    rows[1].key = NULL;
    CHECK_INT(write_rows(l, rows, 1, &err), STG_OK);
    read_raw(&c, 2, text, sizeof text, value, sizeof value);
    CHECK_STR(value, "k1|");
    CHECK_INT(write_rows(l, rows + 1, 1, &err), STG_OK);
    read_raw(&c, 3, text, sizeof text, value, sizeof value);
    CHECK_STR(value, "null|null");
    CHECK(strstr(text, "stagger-last-position=40;stagger-count=20;") != NULL);

    // Of the queue it has no partition; and a bulk row of evicted letters has no
    // place in a log, and no message.
    rows[0] = letter(4, NULL);
    rows[0].topic = NULL;
    rows[0].message_id = NULL;
    rows[0].is_evicted = true;
    rows[0].count = 20;
    CHECK_INT(write_rows(l, rows, 1, &err), STG_OK);
    read_raw(&c, 4, text, sizeof text, value, sizeof value);
    CHECK(strstr(text, "stagger-dead-letter-id=4;") != NULL);
    CHECK(strstr(text, "stagger-count=20;") != NULL);
    CHECK(strstr(text, "stagger-message=") == NULL);
    CHECK(strstr(text, "stagger-topic=") == NULL);
    CHECK(strstr(text, "stagger-partition=") == NULL);
    CHECK(strstr(text, "stagger-position=") == NULL);
    stg_kafka_letters_close(l);
    cluster_close(&c);
}

/* Headers are in the record's order, with those that HTTP does not allow; ours
 * follow. The key is bytes, and an empty key is not the same as no key. */
TEST(kafka_letters, has_the_key_and_the_headers_of_its_source)
{
    static const char packed[] =
        "\2\0\0\0"
        "\1\0\0\0\2\0\0\0b\1\xfe"
        "\1\0\0\0\xff\xff\xff\xff"
        "a"
        "\1\0\0\0\0\0\0\0b"
        "\x16\0\0\0\2\0\0\0stagger-dead-letter-idme";
    cluster c;
    stg_kafka_letters *l;
    stg_letter row = letter(1, "{}");
    stg_error err;
    char text[2048] = "", value[256] = "";

    cluster_open(&c, 1);
    cluster_topic(&c, "dead", 1);
    l = open_letters(&c, 30 * STG_S);
    row.topic_partition = 0;
    row.source_key = (stg_span){"\xff\n", 2};
    row.source_headers = (stg_span){packed, sizeof packed - 1};
    CHECK_INT(write_rows(l, &row, 1, &err), STG_OK);
    read_raw(&c, 1, text, sizeof text, value, sizeof value);
    CHECK_STR(value, "\xff\n|{}");
    CHECK(strstr(text,
                 "b=\1\xfe;a=null;b=;stagger-dead-letter-id=me;"
                 "stagger-headers-left-out=2;stagger-dead-letter-id=1;") ==
          text);
    CHECK(strstr(text, "content-type") == NULL);
    // It had none; and what was cut off is none.
    row.source_key = (stg_span){"", 0};
    row.source_headers = (stg_span){packed + 4, 0};
    CHECK_INT(write_rows(l, &row, 1, &err), STG_OK);
    read_raw(&c, 2, text, sizeof text, value, sizeof value);
    CHECK_STR(value, "|{}");
    CHECK(strncmp(text, "stagger-dead-letter-id=1;", 25) == 0);
    row.source_headers = (stg_span){packed, 14};
    CHECK_INT(write_rows(l, &row, 1, &err), STG_OK);
    read_raw(&c, 3, text, sizeof text, value, sizeof value);
    CHECK(strncmp(text, "stagger-headers-left-out=2;stagger-dead-letter-id=1;",
                  52) == 0);
    stg_kafka_letters_close(l);
    cluster_close(&c);
}

/* Also without a key. Where there are fewer partitions, two share one. */
TEST(kafka_letters, goes_to_the_partition_of_its_source)
{
    cluster c;
    stg_kafka_letters *l;
    stg_letter rows[9];
    stg_error err;
    char text[2048] = "", value[256] = "";

    cluster_open(&c, 1);
    cluster_topic(&c, "dead", 4);
    l = open_letters(&c, 30 * STG_S);
    for (unsigned i = 0; i < 8; i++) {
        rows[i] = letter(i + 1, "x");
        rows[i].key = i < 4 ? NULL : "k1";
        rows[i].topic_partition = 5 - i % 4;
    }
    // Of none: as Java's producers do.
    rows[8] = letter(9, "x");
    rows[8].key = "foobar";
    rows[8].topic = NULL;
    CHECK_INT(write_rows(l, rows, 9, &err), STG_OK);
    read_partition(&c, 0, 2, text, sizeof text, value, sizeof value);
    CHECK(strstr(text, ";stagger-dead-letter-id=6;") != NULL); // of 4
    read_partition(&c, 1, 2, text, sizeof text, value, sizeof value);
    CHECK(strstr(text, ";stagger-dead-letter-id=5;") != NULL); // of 5
    read_partition(&c, 3, 2, text, sizeof text, value, sizeof value);
    CHECK(strstr(text, ";stagger-dead-letter-id=7;") != NULL);
    CHECK_STR(value, "k1|x");
    read_partition(&c, 2, 3, text, sizeof text, value, sizeof value);
    CHECK(strstr(text, ";stagger-dead-letter-id=9;") != NULL);
    CHECK_STR(value, "foobar|x");
    stg_kafka_letters_close(l);
    cluster_close(&c);
}

TEST(kafka_letters, writes_many_rows_in_their_order)
{
    enum { ROWS = 256 };
    cluster c;
    stg_kafka_letters *l;
    stg_letter rows[ROWS];
    stg_error err;
    char text[2048] = "", value[256] = "";

    cluster_open(&c, 1);
    cluster_topic(&c, "dead", 1);
    l = open_letters(&c, 30 * STG_S);
    for (unsigned turn = 0; turn < 4; turn++) {
        for (unsigned i = 0; i < ROWS; i++)
            rows[i] = letter(turn * ROWS + i + 1, "x");
        CHECK_INT(write_rows(l, rows, ROWS, &err), STG_OK);
    }
    read_raw(&c, 4 * ROWS, text, sizeof text, value, sizeof value);
    CHECK(strstr(text, ";stagger-dead-letter-id=1024;") != NULL);
    stg_kafka_letters_close(l);
    cluster_close(&c);
}

TEST(kafka_letters, fails_with_words_and_goes_on_when_a_broker_is_back)
{
    cluster c;
    stg_kafka_letters *l;
    stg_letter row = letter(1, "x");
    stg_error err;
    char text[2048] = "", value[256] = "";

    cluster_open(&c, 1);
    cluster_topic(&c, "dead", 1);
    l = open_letters(&c, 2 * STG_S);
    rd_kafka_mock_broker_set_down(c.mock, 1);
    CHECK_INT(write_rows(l, &row, 1, &err), STG_IO);
    CHECK(strstr(err.text, "topic dead: dead letters cannot be copied") !=
          NULL);
    rd_kafka_mock_broker_set_up(c.mock, 1);
    for (int turns = 0; turns < 20; turns++)
        if (write_rows(l, &row, 1, &err) == STG_OK)
            break;
    read_raw(&c, 1, text, sizeof text, value, sizeof value);
    CHECK_STR(value, "k1|x");
    stg_kafka_letters_close(l);
    cluster_close(&c);
}

/* Both of the client's own limit, and of the broker's word. Its neighbours are
 * there once, in their order. */
TEST(kafka_letters, writes_what_is_too_large_without_its_body)
{
    cluster c;
    stg_kafka_letters *l;
    stg_letter rows[3];
    stg_error err;
    char text[2048] = "", value[256] = "", large[2001] = "";

    cluster_open(&c, 1);
    cluster_topic(&c, "dead", 1);
    memset(large, 'x', sizeof large - 1);
    l = open_limited(&c, 30 * STG_S, "1000");
    for (unsigned i = 0; i < 3; i++)
        rows[i] = letter(i + 1, i == 1 ? large : "x");
    CHECK_INT(write_rows(l, rows, 3, &err), STG_OK);
    CHECK_U64(report.written, 3);
    CHECK_U64(report.cut, 1);
    CHECK_U64(report.left_out, 0);
    CHECK(strstr(report.why.text, "topic dead: letter 2 (") != NULL);
    CHECK(strstr(report.why.text, "without its body: Broker: Message size") !=
          NULL);
    read_raw(&c, 2, text, sizeof text, value, sizeof value);
    CHECK(strstr(text, ";stagger-dead-letter-id=2;") != NULL);
    CHECK(strstr(text,
                 ";stagger-left-out=Broker: Message size too large;"
                 "stagger-payload-size=2000;") != NULL);
    CHECK(strstr(text, ";X-Shop=7;") != NULL);
    CHECK_STR(value, "k1|null");
    read_raw(&c, 3, text, sizeof text, value, sizeof value);
    CHECK(strstr(text, ";stagger-dead-letter-id=3;") != NULL);
    CHECK_U64(stg_kafka_letters_look(l).written, 3);
    CHECK_U64(stg_kafka_letters_look(l).cut, 1);
    stg_kafka_letters_close(l);
    cluster_close(&c);
}

/* The whole batch is refused for one of them, then by itself, then without its
 * body: all of them come in the end. */
TEST(kafka_letters, writes_alone_what_was_refused_together)
{
    static const rd_kafka_resp_err_t too_large[] = {
        RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE,
        RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE};
    cluster c;
    stg_kafka_letters *l;
    stg_letter rows[3];
    stg_error err;
    char text[2048] = "", value[256] = "";

    cluster_open(&c, 1);
    cluster_topic(&c, "dead", 1);
    l = open_letters(&c, 30 * STG_S);
    for (unsigned i = 0; i < 3; i++)
        rows[i] = letter(i + 1, "x");
    CHECK_INT(write_rows(l, rows, 1, &err), STG_OK);
    rd_kafka_mock_push_request_errors_array(c.mock, API_PRODUCE, 2, too_large);
    CHECK_INT(write_rows(l, rows, 3, &err), STG_OK);
    CHECK_U64(report.written, 3);
    CHECK_U64(report.cut, 1);
    read_raw(&c, 4, text, sizeof text, value, sizeof value);
    CHECK(strstr(text, ";stagger-dead-letter-id=3;") != NULL);
    CHECK_STR(value, "k1|x");
    stg_kafka_letters_close(l);
    cluster_close(&c);
}

/* What the topic takes in no form is passed. */
TEST(kafka_letters, leaves_out_what_is_refused_in_every_form)
{
    static const rd_kafka_resp_err_t invalid[] = {
        RD_KAFKA_RESP_ERR_INVALID_RECORD, RD_KAFKA_RESP_ERR_INVALID_RECORD,
        RD_KAFKA_RESP_ERR_INVALID_RECORD, RD_KAFKA_RESP_ERR_INVALID_RECORD};
    cluster c;
    stg_kafka_letters *l;
    stg_letter rows[2];
    stg_error err;
    char text[2048] = "", value[256] = "";

    cluster_open(&c, 1);
    cluster_topic(&c, "dead", 1);
    l = open_letters(&c, 30 * STG_S);
    rows[0] = letter(1, "x");
    rows[1] = letter(2, "y");
    rd_kafka_mock_push_request_errors_array(c.mock, API_PRODUCE, 4, invalid);
    CHECK_INT(write_rows(l, rows, 2, &err), STG_OK);
    CHECK_U64(report.written, 2);
    CHECK_U64(report.left_out, 1);
    CHECK(strstr(report.why.text, "in no form") != NULL);
    read_raw(&c, 1, text, sizeof text, value, sizeof value);
    CHECK_STR(value, "k1|y");
    CHECK_U64(stg_kafka_letters_look(l).written, 1);
    CHECK_U64(stg_kafka_letters_look(l).left_out, 1);
    stg_kafka_letters_close(l);
    cluster_close(&c);
}

static void end_soon(void *letters)
{
    stg_kafka_letters_end_soon(letters);
}

TEST(kafka_letters, ends_soon_when_the_hub_stops)
{
    cluster c = {.brokers = "127.0.0.1:1"};
    stg_kafka_letters *l = open_letters(&c, STG_HOUR);
    stg_letter row = letter(1, "x");
    stg_error err;
    uv_thread_t other;

    CHECK_INT(uv_thread_create(&other, end_soon, l), 0);
    CHECK_INT(write_rows(l, &row, 1, &err), STG_IO);
    CHECK(strstr(err.text, "the hub stops") != NULL);
    uv_thread_join(&other);
    stg_kafka_letters_close(l);
}

TEST(kafka_letters, refuses_what_cannot_be)
{
    stg_kafka_letters_options o = stg_kafka_letters_options_default();
    stg_kafka_property wrong[] = {{"no.such", "1"}};
    stg_kafka_letters *l;
    stg_error err;

    o.brokers = "127.0.0.1:1";
    CHECK_INT(stg_kafka_letters_open(&l, &o, &err), STG_INVALID);
    o.topic = "a b";
    CHECK_INT(stg_kafka_letters_open(&l, &o, &err), STG_INVALID);
    o.topic = "dead";
    o.properties = wrong;
    o.property_count = 1;
    CHECK_INT(stg_kafka_letters_open(&l, &o, &err), STG_INVALID);
    CHECK(strstr(err.text, "no.such") != NULL);
}
