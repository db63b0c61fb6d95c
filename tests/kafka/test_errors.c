/* The log `kafka` when things go wrong: each error of a cluster with what must
 * come of it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <malloc.h>

#include "core/codes.h"
#include "tests/harness.h"
#include "tests/kafka/cluster.h"

/* librdkafka's own name of each of its errors, as policies and filters read it;
 * what it calls UNKNOWN is UNKNOWN_SERVER_ERROR. */
TEST(kafka_errors, are_read_by_the_names_of_librdkafka)
{
    for (int code = -200; code < 200; code++) {
        const char *name = rd_kafka_err2name((rd_kafka_resp_err_t)code);
        char text[100];
        int size = snprintf(text, sizeof text, "kafka:%s", name);
        stg_rule rule;

        if (code == 0 || code == -1 || strncmp(name, "ERR_", 4) == 0)
            continue;
        CHECK_STR(stg_spelling_read((stg_reader){text, text + size}, &rule)
                      ? name
                      : "not read",
                  name);
        CHECK_INT(rule.code_kind, STG_CODE_KAFKA);
        CHECK_INT((int32_t)rule.value, code);
    }
}

static bool is_assigned(const reader *r)
{
    return r->assigned > 0;
}

static bool is_assigned_again(const reader *r)
{
    return r->parts[0].assigned > 1 && r->parts[0].is_there;
}

static bool is_away(const reader *r)
{
    return reader_told(r, STG_KAFKA_AWAY) != NULL;
}

static bool is_back(const reader *r)
{
    return reader_told(r, STG_KAFKA_BACK) != NULL;
}

/* -- brokers --------------------------------------------------------------- */

TEST(kafka_errors, goes_on_when_the_leader_changes)
{
    cluster c;
    reader r;

    cluster_open(&c, 3);
    cluster_topic(&c, "t", 1);
    rd_kafka_mock_partition_set_leader(c.mock, "t", 0, 1);
    cluster_send_many(&c, "t", 0, 0, 100);
    reader_begin(&r, &c, "t");
    reader_set(&r, "topic.metadata.refresh.interval.ms", "1000");
    reader_open(&r);
    reader_until_messages(&r, 100);
    for (unsigned i = 1; i <= 3; i++) {
        rd_kafka_mock_partition_set_leader(c.mock, "t", 0, 1 + (int)i % 3);
        cluster_send_many(&c, "t", 0, i * 100, 100);
        reader_until_messages(&r, (i + 1) * 100);
    }
    CHECK_U64(r.parts[0].messages, 400);
    CHECK_U64(r.parts[0].twice, 0);
    CHECK_U64(r.lost, 0);
    reader_close(&r);
    cluster_close(&c);
}

TEST(kafka_errors, goes_on_after_requests_that_failed_or_took_too_long)
{
    cluster c;
    reader r;

    cluster_open(&c, 1);
    cluster_topic(&c, "t", 2);
    cluster_send_many(&c, "t", 0, 0, 100);
    reader_begin(&r, &c, "t");
    reader_open(&r);
    reader_until_messages(&r, 100);
    rd_kafka_mock_push_request_errors(
        c.mock, API_FETCH, 4, RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT,
        RD_KAFKA_RESP_ERR__TRANSPORT,
        RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION,
        RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
    cluster_send_many(&c, "t", 0, 100, 100);
    cluster_send_many(&c, "t", 1, 0, 100);
    reader_until_messages(&r, 300);
    CHECK_U64(r.parts[0].twice + r.parts[1].twice, 0);
    CHECK_U64(r.lost, 0);
    reader_close(&r);
    cluster_close(&c);
}

TEST(kafka_errors, tells_that_no_broker_can_be_reached_and_when_one_is_back)
{
    cluster c;
    reader r;

    cluster_open(&c, 1);
    cluster_topic(&c, "t", 1);
    cluster_send_many(&c, "t", 0, 0, 100);
    reader_begin(&r, &c, "t");
    reader_open(&r);
    reader_until_messages(&r, 100);
    rd_kafka_mock_broker_set_down(c.mock, 1);
    reader_until(&r, is_away);
    reader_run_for(&r, 500);
    CHECK(!is_back(&r));
    rd_kafka_mock_broker_set_up(c.mock, 1);
    reader_until(&r, is_back);
    cluster_send_many(&c, "t", 0, 100, 50);
    while (r.parts[0].next < 150)
        reader_run_for(&r, 20);
    reader_close(&r);
    cluster_close(&c);
}

TEST(kafka_errors, needs_no_broker_to_open_and_to_close)
{
    cluster c = {.brokers = "127.0.0.1:1"};
    reader r;

    reader_begin(&r, &c, "t");
    reader_open(&r);
    reader_until(&r, is_away);
    reader_close(&r);
}

/* -- topics ---------------------------------------------------------------- */

static bool is_gone(const reader *r)
{
    return reader_told(r, STG_KAFKA_GONE) != NULL;
}

static bool is_found(const reader *r)
{
    return reader_told(r, STG_KAFKA_FOUND) != NULL;
}

TEST(kafka_errors, waits_for_a_topic_that_is_not_there)
{
    cluster c;
    reader r;

    cluster_open(&c, 1);
    cluster_topic(&c, "other", 1);
    reader_begin(&r, &c, "t");
    r.topics[1] = "other";
    reader_set(&r, "topic.metadata.refresh.interval.ms", "1000");
    reader_set(&r, "session.timeout.ms", "6000");
    // The mock makes a topic that is asked for, unless it is told not to.
    rd_kafka_mock_topic_set_error(c.mock, "t",
                                  RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
    reader_open(&r);
    reader_until(&r, is_gone);
    CHECK_STR(reader_told(&r, STG_KAFKA_GONE)->tp.topic, "t");
    CHECK(!is_found(&r));
    rd_kafka_mock_topic_set_error(c.mock, "t", RD_KAFKA_RESP_ERR_NO_ERROR);
    reader_until(&r, is_found);
    cluster_send_many(&c, "t", 0, 0, 10);
    reader_until_messages(&r, 10);
    reader_close(&r);
    cluster_close(&c);
}

/* The mock keeps 5 MB of a partition. */
static void send_much(cluster *c, int partition, unsigned count)
{
    char *body = calloc(1, 100000);

    CHECK(body != NULL);
    for (unsigned i = 0; i < count; i++) {
        cluster_send(c, "t", partition, NULL, body, 100000, NULL);
        cluster_flush(c);
    }
    free(body);
}

static bool is_expired(const reader *r)
{
    return reader_told(r, STG_KAFKA_EXPIRED) != NULL;
}

TEST(kafka_errors, reads_on_from_the_begin_where_messages_have_expired)
{
    cluster c;
    reader r;
    stg_topic_partition p;
    const stg_kafka_report *told;

    cluster_open(&c, 1);
    cluster_topic(&c, "t", 1);
    send_much(&c, 0, 80);
    reader_begin(&r, &c, "t");
    r.begins = false;
    reader_open(&r);
    reader_until(&r, is_assigned);
    CHECK(r.parts[0].given.begin > 0);
    CHECK_U64(r.parts[0].given.end, 80);
    p = reader_place(&r, 0);
    stg_kafka_begin(r.kafka, &p, 3, 1);
    reader_until(&r, is_expired);
    told = reader_told(&r, STG_KAFKA_EXPIRED);
    CHECK_U64(told->position, 3);
    CHECK_U64(told->begin, r.parts[0].given.begin);
    CHECK_U64(told->tp.assignment, p.assignment);
    reader_until_messages(&r, 80 - told->begin);
    CHECK_U64(r.parts[0].first, told->begin);
    CHECK_U64(r.lost, 0);

    // The same for a lane that catches up: it is told, and answered with nothing.
    r.told_count = 0;
    reader_read_behind(&r, 0, 4, 1000);
    reader_until(&r, is_expired);
    while (r.is_behind)
        reader_run_for(&r, 10);
    CHECK_U64(r.behind_count, 0);
    CHECK_U64(r.behind_next, 4);
    reader_read_behind(&r, 0, told->begin, 1000);
    while (r.is_behind)
        reader_run_for(&r, 10);
    CHECK_U64(r.behind_count, 1);
    // A replay is not told, and passes over it.
    r.told_count = 0;
    reader_read_again(&r, 0, 4, 1);
    while (r.is_behind)
        reader_run_for(&r, 10);
    CHECK_U64(r.behind_count, 0);
    CHECK_U64(r.behind_next, r.parts[0].given.begin);
    CHECK(!is_expired(&r));
    reader_close(&r);
    cluster_close(&c);
}

static bool is_refused(const reader *r)
{
    return reader_told(r, STG_KAFKA_REFUSED) != NULL;
}

TEST(kafka_errors, does_not_read_on_where_that_is_an_error)
{
    cluster c;
    reader r;
    stg_topic_partition p;

    cluster_open(&c, 1);
    cluster_topic(&c, "t", 2);
    send_much(&c, 0, 80);
    reader_begin(&r, &c, "t");
    r.begins = false;
    r.options.stops_expired = true;
    reader_open(&r);
    reader_until(&r, is_assigned);
    p = reader_place(&r, 0);
    stg_kafka_begin(r.kafka, &p, 3, 1);
    p = reader_place(&r, 1);
    stg_kafka_begin(r.kafka, &p, 0, 1);
    reader_until(&r, is_refused);
    CHECK_U64(reader_told(&r, STG_KAFKA_REFUSED)->position, 3);
    // The other one goes on.
    cluster_send_many(&c, "t", 1, 0, 10);
    reader_until_messages(&r, 10);
    CHECK_U64(r.parts[0].messages, 0);
    reader_close(&r);
    cluster_close(&c);
}

static bool is_renewed(const reader *r)
{
    return reader_told(r, STG_KAFKA_RENEWED) != NULL && r->lost > 0 &&
           r->parts[0].assigned == 2;
}

TEST(kafka_errors, assigns_anew_what_ends_below_where_it_was_read)
{
    cluster c;
    reader r;
    stg_topic_partition p;

    cluster_open(&c, 1);
    cluster_topic(&c, "t", 2);
    cluster_send_many(&c, "t", 0, 0, 10);
    reader_begin(&r, &c, "t");
    r.begins = false;
    reader_open(&r);
    reader_until(&r, is_assigned);
    p = reader_place(&r, 0);
    stg_kafka_begin(r.kafka, &p, 500, 1);
    reader_until(&r, is_renewed);
    CHECK_U64(r.parts[0].lost, 1);
    CHECK_U64(r.parts[1].lost, 0);
    CHECK(reader_place(&r, 0).assignment > p.assignment);
    CHECK_U64(r.parts[0].given.end, 10);
    stg_kafka_commit(r.kafka, &p, 500); // too late: it was lost
    p = reader_place(&r, 0);
    stg_kafka_begin(r.kafka, &p, 0, 2);
    reader_until_messages(&r, 10);
    reader_run_for(&r, 200);
    CHECK(cluster_committed(&c, "g", "t", 0) <= 10);
    reader_close(&r);
    cluster_close(&c);
}

/* -- the group ------------------------------------------------------------- */

TEST(kafka_errors, commits_again_what_was_refused)
{
    cluster c;
    reader r;

    cluster_open(&c, 1);
    cluster_topic(&c, "t", 1);
    cluster_send_many(&c, "t", 0, 0, 100);
    reader_begin(&r, &c, "t");
    rd_kafka_mock_push_request_errors(
        c.mock, API_OFFSET_COMMIT, 4, RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT,
        RD_KAFKA_RESP_ERR_COORDINATOR_NOT_AVAILABLE,
        RD_KAFKA_RESP_ERR_NOT_COORDINATOR,
        RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED);
    reader_open(&r);
    reader_until_messages(&r, 100);
    while (cluster_committed(&c, "g", "t", 0) < 100)
        reader_run_for(&r, 100);
    CHECK(reader_told(&r, STG_KAFKA_TROUBLE) != NULL);
    reader_close(&r);
    cluster_close(&c);
}

/* The group has moved on: nothing is asked again before it has said so. */
TEST(kafka_errors, gives_up_a_commit_of_an_older_generation)
{
    rd_kafka_resp_err_t errors[20];
    cluster c;
    reader r;

    for (unsigned i = 0; i < 20; i++)
        errors[i] = RD_KAFKA_RESP_ERR_ILLEGAL_GENERATION;
    cluster_open(&c, 1);
    cluster_topic(&c, "t", 1);
    cluster_send_many(&c, "t", 0, 0, 100);
    reader_begin(&r, &c, "t");
    rd_kafka_mock_push_request_errors_array(c.mock, API_OFFSET_COMMIT, 20,
                                            errors);
    reader_open(&r);
    reader_until_messages(&r, 100);
    while (reader_told(&r, STG_KAFKA_TROUBLE) == NULL)
        reader_run_for(&r, 50);
    CHECK(strstr(reader_told(&r, STG_KAFKA_TROUBLE)->text, "given up") != NULL);
    reader_close(&r);
    CHECK(cluster_committed(&c, "g", "t", 0) < 100);
    cluster_close(&c);
}

TEST(kafka_errors, finds_the_coordinator_where_it_has_gone)
{
    cluster c;
    reader r;

    cluster_open(&c, 3);
    cluster_topic(&c, "t", 1);
    rd_kafka_mock_partition_set_leader(c.mock, "t", 0, 1);
    rd_kafka_mock_coordinator_set(c.mock, "group", "g", 2);
    cluster_send_many(&c, "t", 0, 0, 100);
    reader_begin(&r, &c, "t");
    reader_open(&r);
    reader_until_messages(&r, 100);
    rd_kafka_mock_broker_set_down(c.mock, 2);
    rd_kafka_mock_coordinator_set(c.mock, "group", "g", 3);
    cluster_send_many(&c, "t", 0, 100, 100);
    while (r.parts[0].next < 200 || cluster_committed(&c, "g", "t", 0) < 200)
        reader_run_for(&r, 100);
    rd_kafka_mock_broker_set_up(c.mock, 2);
    reader_close(&r);
    cluster_close(&c);
}

static bool has_lost(const reader *r)
{
    return r->parts[0].lost > 0;
}

TEST(kafka_errors, commits_nothing_of_what_was_lost)
{
    cluster c;
    reader r;
    stg_topic_partition p;

    cluster_open(&c, 1);
    cluster_topic(&c, "t", 1);
    cluster_send_many(&c, "t", 0, 0, 100);
    reader_begin(&r, &c, "t");
    reader_set(&r, "session.timeout.ms", "6000");
    r.commits = false;
    reader_open(&r);
    reader_until_messages(&r, 100);
    p = reader_place(&r, 0);
    rd_kafka_mock_push_request_errors(c.mock, API_HEARTBEAT, 1,
                                      RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID);
    reader_until(&r, has_lost);
    CHECK_U64(r.parts[0].revoked, 0);
    stg_kafka_commit(r.kafka, &p, 100);
    reader_until(&r, is_assigned_again);
    CHECK(reader_place(&r, 0).assignment > p.assignment);
    CHECK(!r.parts[0].given.has_committed);
    stg_kafka_commit(r.kafka, &p, 100);
    reader_run_for(&r, 300);
    CHECK_INT(cluster_committed(&c, "g", "t", 0), -1);
    // And it is read again, from where nothing was settled.
    reader_until_messages(&r, 200);
    reader_close(&r);
    CHECK_INT(cluster_committed(&c, "g", "t", 0), -1);
    cluster_close(&c);
}

static bool is_reopened(const reader *r)
{
    return reader_told(r, STG_KAFKA_REOPENED) != NULL;
}

TEST(kafka_errors, joins_anew_after_it_was_fenced)
{
    cluster c;
    reader r;

    cluster_open(&c, 1);
    cluster_topic(&c, "t", 1);
    cluster_send_many(&c, "t", 0, 0, 100);
    reader_begin(&r, &c, "t");
    reader_set(&r, "session.timeout.ms", "6000");
    r.commits = false;
    reader_set(&r, "group.instance.id", "me");
    reader_open(&r);
    reader_until_messages(&r, 100);
    rd_kafka_mock_push_request_errors(c.mock, API_HEARTBEAT, 1,
                                      RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID);
    reader_until(&r, is_reopened);
    CHECK_U64(r.parts[0].lost, 1);
    reader_until(&r, is_assigned_again);
    reader_until_messages(&r, 200);
    CHECK_INT(cluster_committed(&c, "g", "t", 0), -1);
    reader_close(&r);
    cluster_close(&c);
}

TEST(kafka_errors, learns_the_ends_when_a_broker_tells_them)
{
    cluster c;
    reader r;

    cluster_open(&c, 1);
    cluster_topic(&c, "t", 3);
    cluster_send_many(&c, "t", 2, 0, 100);
    rd_kafka_mock_push_request_errors(
        c.mock, API_LIST_OFFSETS, 3, RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE,
        RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT,
        RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION);
    rd_kafka_mock_push_request_errors(
        c.mock, API_OFFSET_FETCH, 2, RD_KAFKA_RESP_ERR_NOT_COORDINATOR,
        RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS);
    reader_begin(&r, &c, "t");
    reader_open(&r);
    reader_until_messages(&r, 100);
    CHECK_U64(r.parts[2].given.end, 100);
    reader_close(&r);
    cluster_close(&c);
}

/* -- memory ---------------------------------------------------------------- */

static size_t heap(void)
{
    struct mallinfo2 m = mallinfo2();

    return m.uordblks + m.hblkhd;
}

/* I6: what librdkafka reads ahead is bounded for all partitions together, while
 * nobody reads. */
TEST(kafka_errors, reads_ahead_within_its_limit_whatever_the_partitions)
{
    enum { PARTS = 16, EACH = 45, BODY = 100000 };
    const size_t limit = 4 << 20;
    cluster c;
    reader r;
    size_t before, grown = 0;

    cluster_open(&c, 1);
    cluster_topic(&c, "t", PARTS);
    for (int p = 0; p < PARTS; p++)
        send_much(&c, p, EACH);
    reader_begin(&r, &c, "t");
    r.reads = false;
    r.options.queue_max = limit;
    before = heap();
    reader_open(&r);
    reader_until(&r, is_assigned);
    for (unsigned turns = 0; grown < limit / 2; turns++) {
        CHECK(turns < 600);
        reader_run_for(&r, 100);
        grown = heap() - before;
    }
    reader_run_for(&r, 2000);
    grown = heap() - before;
    // One answer on top of it, and what the threads need.
    CHECK(grown < limit + limit / 2 + (2 << 20));
    // And none of it is missing.
    r.reads = true;
    reader_read(&r);
    reader_until_messages(&r, PARTS * EACH);
    for (int p = 0; p < PARTS; p++)
        CHECK_U64(r.parts[p].messages, EACH);
    reader_close(&r);
    cluster_close(&c);
}
