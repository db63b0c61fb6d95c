/* Dead letters as messages of a topic, on librdkafka's mock of a cluster. */
#include "hub/logs/kafka_letters.h"

#include <stdio.h>
#include <string.h>

#include "tests/harness.h"
#include "tests/hub/cluster.h"

static stg_kafka_letters *open_letters(const cluster *c, stg_ns timeout)
{
    stg_kafka_letters_options o = stg_kafka_letters_options_default();
    stg_kafka_property quick[] = {{"message.timeout.ms", "60000"},
                                  {"log_level", "3"}};
    stg_kafka_letters *l;
    stg_error err;

    o.brokers = c->brokers;
    o.topic = "dead";
    o.properties = quick;
    o.property_count = 2;
    o.timeout = timeout;
    CHECK_INT(stg_kafka_letters_open(&l, &o, &err), STG_OK);
    return l;
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
        .content_type = "application/json",
        .headers = "X-Shop: 7\r\n",
        .key = "k1",
        .has_payload = payload != NULL,
        .payload = {payload, payload == NULL ? 0 : strlen(payload)},
        .payload_size = payload == NULL ? 0 : strlen(payload),
    };
}

/* The headers of the last message of a topic, as they are there: "a=b;". */
static void read_raw(cluster *c, unsigned wanted, char *text, size_t size,
                     char *value, size_t value_size)
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
    rd_kafka_topic_partition_list_add(list, "dead", 0)->offset =
        RD_KAFKA_OFFSET_BEGINNING;
    CHECK_INT(rd_kafka_assign(rk, list), 0);
    rd_kafka_topic_partition_list_destroy(list);
    for (int empty = 0; seen < wanted;) {
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
                             (int)bytes, (const char *)at);
                }
            snprintf(value, value_size, "%.*s|%.*s", (int)m->key_len,
                     m->key == NULL ? "" : (char *)m->key,
                     m->payload == NULL ? 4 : (int)m->len,
                     m->payload == NULL ? "null" : (char *)m->payload);
        }
        rd_kafka_message_destroy(m);
    }
    rd_kafka_destroy_flags(rk, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
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
    CHECK_INT(stg_kafka_letters_write(l, rows, 1, &err), STG_OK);
    read_raw(&c, 1, text, sizeof text, value, sizeof value);
    CHECK_STR(text,
              "stagger-id=1;stagger-message=orders.3.17;"
              "stagger-target=shop;stagger-state=dead;"
              "stagger-cause=HTTP_503;stagger-category=B;"
              "stagger-attempts=4;stagger-topic=orders;"
              "stagger-partition=3;stagger-position=17;"
              "stagger-status=503;stagger-detail=it said no;"
              "stagger-created-at=2026-03-01T12:00:00Z;"
              "content-type=application/json;X-Shop=7;");
    CHECK_STR(value, "k1|{}");

    // A range row has no payload; an empty one is one.
    rows[0] = letter(2, "");
    rows[1] = letter(3, NULL);
    rows[1].last_position = 40;
    rows[1].count = 20;
    rows[1].key = NULL;
    CHECK_INT(stg_kafka_letters_write(l, rows, 1, &err), STG_OK);
    read_raw(&c, 2, text, sizeof text, value, sizeof value);
    CHECK_STR(value, "k1|");
    CHECK_INT(stg_kafka_letters_write(l, rows + 1, 1, &err), STG_OK);
    read_raw(&c, 3, text, sizeof text, value, sizeof value);
    CHECK_STR(value, "|null");
    CHECK(strstr(text, "stagger-last-position=40;stagger-count=20;") != NULL);
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
        CHECK_INT(stg_kafka_letters_write(l, rows, ROWS, &err), STG_OK);
    }
    read_raw(&c, 4 * ROWS, text, sizeof text, value, sizeof value);
    CHECK(strncmp(text, "stagger-id=1024;", 16) == 0);
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
    CHECK_INT(stg_kafka_letters_write(l, &row, 1, &err), STG_IO);
    CHECK(strstr(err.text, "topic dead: dead letters cannot be copied") !=
          NULL);
    rd_kafka_mock_broker_set_up(c.mock, 1);
    for (int turns = 0; turns < 20; turns++)
        if (stg_kafka_letters_write(l, &row, 1, &err) == STG_OK)
            break;
    read_raw(&c, 1, text, sizeof text, value, sizeof value);
    CHECK_STR(value, "k1|x");
    stg_kafka_letters_close(l);
    cluster_close(&c);
}

static void hurry(void *letters)
{
    stg_kafka_letters_hurry(letters);
}

TEST(kafka_letters, ends_soon_when_the_hub_stops)
{
    cluster c = {.brokers = "127.0.0.1:1"};
    stg_kafka_letters *l = open_letters(&c, STG_HOUR);
    stg_letter row = letter(1, "x");
    stg_error err;
    uv_thread_t other;

    CHECK_INT(uv_thread_create(&other, hurry, l), 0);
    CHECK_INT(stg_kafka_letters_write(l, &row, 1, &err), STG_IO);
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
