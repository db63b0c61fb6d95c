/* The log `kafka` on librdkafka's mock of a cluster: what is read, given, taken
 * and committed when all goes well. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kafka/internal.h"
#include "tests/harness.h"
#include "tests/kafka/cluster.h"

static bool is_assigned(const reader *r)
{
    return r->assigned > 0;
}

static bool is_behind_answered(const reader *r)
{
    return !r->is_behind;
}

static void check_span(stg_span span, const char *text)
{
    char copy[1024];

    snprintf(copy, sizeof copy, "%.*s", (int)span.size,
             span.at == NULL ? "" : span.at);
    CHECK_STR(copy, text);
}

TEST(kafka, reads_each_partition_in_its_order)
{
    cluster c;
    reader r;

    cluster_open(&c, 3);
    cluster_topic(&c, "t", 3);
    for (int p = 0; p < 3; p++)
        cluster_send_many(&c, "t", p, 0, 500);
    reader_begin(&r, &c, "t");
    reader_open(&r);
    reader_until_messages(&r, 1500);
    cluster_send_many(&c, "t", 1, 500, 100);
    reader_until_messages(&r, 1600);
    for (int p = 0; p < 3; p++) {
        CHECK_U64(r.parts[p].first, 0);
        CHECK_U64(r.parts[p].twice, 0);
        CHECK_U64(r.parts[p].tag, 5);
    }
    CHECK_U64(r.parts[1].messages, 600);
    CHECK_U64(r.parts[1].next, 600);
    reader_close(&r);
    cluster_close(&c);
}

TEST(kafka, makes_a_parcel_of_a_message)
{
    cluster c;
    reader r;

    cluster_open(&c, 1);
    cluster_topic(&c, "t", 1);
    reader_begin(&r, &c, "t");
    r.options.content_type = "text/plain";
    reader_open(&r);
    cluster_send(&c, "t", 0, "k1", "body", 4, "X-Shop: 7");
    reader_until_messages(&r, 1);
    check_span(r.parcel.key, "k1");
    check_span(r.parcel.body, "body");
    check_span(r.parcel.headers, "X-Shop: 7\r\n");
    check_span(r.parcel.content_type, "text/plain");
    CHECK(r.record.key != 0);
    CHECK(r.record.created_at > UINT64_C(1600000000) * STG_S);
    CHECK_U64(r.record.true_size, 0);

    cluster_send(&c, "t", 0, NULL, "{}", 2, "content-type: application/json");
    reader_until_messages(&r, 2);
    check_span(r.parcel.content_type, "application/json");
    check_span(r.parcel.headers, "");
    CHECK_U64(r.record.key, 0);

    // As HTTP has it.
    cluster_send(&c, "t", 0, NULL, "{}", 2, "ce_type: a");
    reader_until_messages(&r, 3);
    check_span(r.parcel.headers, "ce-type: a\r\n");

    // Never kept, not asked for, or not fit for HTTP.
    cluster_send(&c, "t", 0, "", "x", 1, "Authorization: secret");
    cluster_send(&c, "t", 0, "", "x", 1, "other: 1");
    cluster_send(&c, "t", 0, "a\nb", "x", 1, "X-Bad: a\r\nX-More: b");
    reader_until_messages(&r, 6);
    check_span(r.parcel.headers, "");
    check_span(r.parcel.key, "base64:YQpi");
    reader_close(&r);
    cluster_close(&c);
}

TEST(kafka, names_attributes_of_events_as_kafka_does)
{
    static const char lines[] = "Ce-Type: t\r\nX-A: b\r\nX-Inbound: c\r\n";
    rd_kafka_headers_t *h = rd_kafka_headers_new(3);
    const void *value;
    size_t size;

    stg_kafka_headers_add_lines(h, (stg_span){lines, sizeof lines - 1});
    CHECK_INT(rd_kafka_header_get_last(h, "Ce_Type", &value, &size),
              RD_KAFKA_RESP_ERR_NO_ERROR);
    CHECK(size == 1 && memcmp(value, "t", 1) == 0);
    CHECK_INT(rd_kafka_header_get_last(h, "X-A", &value, &size),
              RD_KAFKA_RESP_ERR_NO_ERROR);
    CHECK_INT(rd_kafka_header_get_last(h, "stagger-inbound", &value, &size),
              RD_KAFKA_RESP_ERR_NO_ERROR);
    rd_kafka_headers_destroy(h);
}

TEST(kafka, tells_a_key_that_is_long_by_its_hash)
{
    cluster c;
    reader r;
    char key[400];

    memset(key, 'k', sizeof key - 1);
    key[sizeof key - 1] = '\0';
    cluster_open(&c, 1);
    cluster_topic(&c, "t", 1);
    cluster_send(&c, "t", 0, key, "x", 1, NULL);
    reader_begin(&r, &c, "t");
    reader_open(&r);
    reader_until_messages(&r, 1);
    CHECK_U64(r.parcel.key.size, 7 + 64);
    CHECK(memcmp(r.parcel.key.at, "sha256:", 7) == 0);
    reader_close(&r);
    cluster_close(&c);
}

static void check_header(stg_span packed, size_t size, const char *end)
{
    size_t end_size = strlen(end);

    CHECK_U64(packed.size, size);
    CHECK(memcmp(packed.at + size - end_size, end, end_size) == 0);
}

/* The key where its text is not its bytes, in any case; the headers where that is
 * asked for: 4 bytes, and 8 and their own for each. Together they have half of
 * the largest message. */
TEST(kafka, keeps_what_a_dead_letter_needs_of_a_record)
{
    char *value = calloc(1, 1100);
    cluster c;
    reader r;

    CHECK(value != NULL);
    memset(value, 'v', 1099);
    memcpy(value, "X-A: ", 5);
    cluster_open(&c, 1);
    cluster_topic(&c, "t", 1);
    reader_begin(&r, &c, "t");
    r.options.message_max = 2000;
    r.options.keeps_source = true;
    reader_open(&r);
    cluster_send(&c, "t", 0, "k1", "x", 1, "other: a\1b");
    reader_until_messages(&r, 1);
    CHECK(r.parcel.source_key.at == NULL);
    check_header(r.parcel.source_headers, 4 + 8 + 8, "othera\1b");
    cluster_send(&c, "t", 0, "\xff", "x", 1, NULL);
    reader_until_messages(&r, 2);
    check_span(r.parcel.key, "\xff");
    check_span(r.parcel.source_key, "\xff"); // it is no UTF-8
    check_header(r.parcel.source_headers, 4, "");
    cluster_send(&c, "t", 0, "a\nb", "x", 1, value);
    reader_until_messages(&r, 3);
    check_span(r.parcel.source_key, "a\nb");
    check_header(r.parcel.source_headers, 4, ""); // one has no room
    CHECK_INT(r.parcel.source_headers.at[0], 1);
    memset(value, 'k', 1001);
    value[1001] = '\0';
    cluster_send(&c, "t", 0, value, "x", 1, "b: 1");
    reader_until_messages(&r, 4);
    CHECK(r.parcel.source_key.at == NULL);
    check_header(r.parcel.source_headers, 4 + 8 + 2, "b1");
    reader_close(&r);

    reader_begin(&r, &c, "t");
    r.begins = true;
    reader_open(&r);
    cluster_send(&c, "t", 0, "a\nb", "x", 1, "other: 1");
    reader_until_messages(&r, 1);
    check_span(r.parcel.source_key, "a\nb");
    CHECK(r.parcel.source_headers.at == NULL);
    reader_close(&r);
    cluster_close(&c);
    free(value);
}

TEST(kafka, leaves_out_a_body_above_the_largest)
{
    cluster c;
    reader r;
    char *body = calloc(1, 3000);

    CHECK(body != NULL);
    memset(body, 'b', 3000);
    cluster_open(&c, 1);
    cluster_topic(&c, "t", 1);
    cluster_send(&c, "t", 0, "k", body, 2000, NULL);
    cluster_send(&c, "t", 0, "k", body, 2001, "X-A: 1");
    reader_begin(&r, &c, "t");
    r.options.message_max = 2000;
    reader_open(&r);
    reader_until_messages(&r, 2);
    CHECK_U64(r.record.true_size, 2001);
    CHECK_U64(r.parcel.body.size, 0);
    check_span(r.parcel.headers, "X-A: 1\r\n");
    CHECK(reader_told(&r, STG_KAFKA_TOO_LARGE) != NULL);
    CHECK_U64(reader_told(&r, STG_KAFKA_TOO_LARGE)->position, 1);
    CHECK_U64(reader_told(&r, STG_KAFKA_TOO_LARGE)->size, 2001);
    reader_close(&r);
    cluster_close(&c);
    free(body);
}

/* What follows a value that is none has its place, and the lane's lag ends. */
static bool has_passed_both(const reader *r)
{
    return r->parts[0].next == 2;
}

TEST(kafka, skips_what_has_no_value_or_sends_it_empty)
{
    cluster c;
    reader r;

    cluster_open(&c, 1);
    cluster_topic(&c, "t", 1);
    cluster_send(&c, "t", 0, "k", "x", 1, NULL);
    cluster_send(&c, "t", 0, "k", NULL, 0, NULL);
    cluster_flush(&c);
    reader_begin(&r, &c, "t");
    r.commits = false;
    reader_open(&r);
    reader_until(&r, has_passed_both);
    CHECK_U64(r.messages, 1);
    reader_close(&r);

    r.messages = 0;
    r.options.group = "another"; // the mock lets it join sooner
    r.options.null = STG_KAFKA_NULL_EMPTY;
    reader_open(&r);
    reader_until(&r, has_passed_both);
    CHECK_U64(r.messages, 2);
    CHECK_U64(r.parcel.body.size, 0);
    reader_close(&r);
    cluster_close(&c);
}

TEST(kafka, hands_over_no_more_than_is_wanted)
{
    cluster c;
    reader r;
    char body[1000] = "";

    cluster_open(&c, 1);
    cluster_topic(&c, "t", 2);
    for (int i = 0; i < 200; i++)
        cluster_send(&c, "t", i % 2, NULL, body, sizeof body, NULL);
    cluster_flush(&c);
    reader_begin(&r, &c, "t");
    r.bytes_max = 10000;
    r.reads = false;
    reader_open(&r);
    reader_until(&r, is_assigned);
    for (uint64_t seen = 0; seen < 200; seen = r.messages) {
        reader_read(&r);
        while (r.is_reading)
            reader_run_for(&r, 1);
        CHECK(r.messages > seen);
        CHECK(r.messages - seen <= 10);
    }
    reader_close(&r);
    cluster_close(&c);
}

TEST(kafka, begins_where_it_is_told_and_again_elsewhere)
{
    cluster c;
    reader r;
    stg_topic_partition p;

    cluster_open(&c, 1);
    cluster_topic(&c, "t", 1);
    cluster_send_many(&c, "t", 0, 0, 100);
    reader_begin(&r, &c, "t");
    r.begins = false;
    reader_open(&r);
    reader_until(&r, is_assigned);
    CHECK_U64(r.parts[0].given.begin, 0);
    CHECK_U64(r.parts[0].given.end, 100);
    CHECK(!r.parts[0].given.has_committed);
    p = reader_place(&r, 0);
    stg_kafka_begin(r.kafka, &p, 90, 1);
    reader_until_messages(&r, 10);
    CHECK_U64(r.parts[0].first, 90);
    CHECK_U64(r.parts[0].tag, 1);

    stg_kafka_begin(r.kafka, &p, 50, 2);
    reader_until_messages(&r, 60);
    CHECK_U64(r.parts[0].tag, 2);
    CHECK_U64(r.parts[0].next, 100);

    // Nothing is read for an assignment that does not exist.
    p.assignment++;
    stg_kafka_begin(r.kafka, &p, 0, 3);
    reader_run_for(&r, 300);
    CHECK_U64(r.messages, 60);
    reader_close(&r);
    cluster_close(&c);
}

TEST(kafka, commits_what_it_is_told_and_nothing_else)
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
    reader_run_for(&r, 300);
    CHECK_INT(cluster_committed(&c, "g", "t", 0), -1);

    p = reader_place(&r, 0);
    stg_kafka_commit(r.kafka, &p, 40);
    stg_kafka_commit(r.kafka, &p, 30); // never back
    while (cluster_committed(&c, "g", "t", 0) < 40)
        reader_run_for(&r, 50);
    p.assignment++; // of another assignment
    stg_kafka_commit(r.kafka, &p, 70);
    reader_run_for(&r, 300);
    CHECK_INT(cluster_committed(&c, "g", "t", 0), 40);

    // The last one goes out with the close.
    p.assignment--;
    stg_kafka_commit(r.kafka, &p, 60);
    reader_close(&r);
    CHECK_INT(cluster_committed(&c, "g", "t", 0), 60);
    r.messages = 0;
    reader_open(&r);
    reader_until_messages(&r, 40);
    CHECK(r.parts[0].given.has_committed);
    CHECK_U64(r.parts[0].given.committed, 60);
    CHECK_U64(r.parts[0].first, 60);
    reader_close(&r);
    cluster_close(&c);
}

/* -- two in a group -------------------------------------------------------- */

static unsigned parts_of(const reader *r)
{
    unsigned count = 0;

    for (size_t i = 0; i < PARTS_MAX; i++)
        count += r->parts[i].is_there;
    return count;
}

static bool have_two_each(reader **rs)
{
    return parts_of(rs[0]) == 2 && parts_of(rs[1]) == 2;
}

static bool has_committed_all(cluster *c)
{
    for (int p = 0; p < 4; p++)
        if (cluster_committed(c, "g", "t", p) < 50)
            return false;
    return true;
}

/* (The mock takes no commits while members join, which a broker does.) */
TEST(kafka, shares_partitions_and_none_is_read_twice)
{
    cluster c;
    reader a, b, *both[] = {&a, &b};

    cluster_open(&c, 1);
    cluster_topic(&c, "t", 4);
    for (int p = 0; p < 4; p++)
        cluster_send_many(&c, "t", p, 0, 50);
    reader_begin(&a, &c, "t");
    reader_begin(&b, &c, "t");
    reader_set(&a, "session.timeout.ms", "6000");
    reader_set(&b, "session.timeout.ms", "6000");
    reader_open(&a);
    reader_until_messages(&a, 200);
    while (!has_committed_all(&c))
        reader_run_for(&a, 50);
    reader_open(&b);
    readers_until(both, 2, have_two_each);
    CHECK(a.revoked > 0);
    CHECK_INT(a.lost, 0);
    for (int p = 0; p < 4; p++)
        cluster_send_many(&c, "t", p, 50, 10);
    while (a.messages + b.messages < 240) {
        reader_run_for(&a, 10);
        reader_run_for(&b, 10);
    }
    // None twice: what b got began where a had ended.
    CHECK_U64(a.messages + b.messages, 240);
    CHECK_U64(b.messages, 20);
    reader_close(&b);
    reader_close(&a);
    cluster_close(&c);
}

static bool has_all_four(reader **rs)
{
    return parts_of(rs[0]) == 4;
}

static bool have_let_go(reader **rs)
{
    return parts_of(rs[0]) + parts_of(rs[1]) == 4 && parts_of(rs[1]) == 2;
}

TEST(kafka, lets_go_by_itself_and_goes_on_when_another_leaves)
{
    cluster c;
    reader a, b, *both[] = {&a, &b};

    cluster_open(&c, 1);
    cluster_topic(&c, "t", 4);
    for (int p = 0; p < 4; p++)
        cluster_send_many(&c, "t", p, 0, 50);
    reader_begin(&a, &c, "t");
    reader_begin(&b, &c, "t");
    reader_set(&a, "session.timeout.ms", "6000");
    reader_set(&b, "session.timeout.ms", "6000");
    a.lets_go = false;
    a.options.hold = 300 * STG_MS;
    reader_open(&a);
    reader_until_messages(&a, 200);
    reader_open(&b);
    readers_until(both, 2, have_let_go);
    reader_close(&b); // it leaves at once, and not by a timeout
    readers_until(both, 1, has_all_four);
    cluster_send_many(&c, "t", 3, 50, 10);
    while (a.parts[3].next < 60)
        reader_run_for(&a, 10);
    CHECK_INT(a.lost, 0);
    reader_close(&a);
    cluster_close(&c);
}

/* -- the reader behind ----------------------------------------------------- */

TEST(kafka, reads_for_a_lane_that_catches_up_beside_the_rest)
{
    cluster c;
    reader r;

    cluster_open(&c, 1);
    cluster_topic(&c, "t", 2);
    cluster_send_many(&c, "t", 0, 0, 1000);
    reader_begin(&r, &c, "t");
    reader_open(&r);
    reader_until_messages(&r, 1000);

    // In chunks, one behind the other, to the end.
    for (uint64_t from = 300; from < 1000; from = r.behind_next) {
        reader_read_behind(&r, 0, from, 2000);
        reader_until(&r, is_behind_answered);
        CHECK(r.behind_count > 0);
        CHECK(r.behind_count < 200);
        CHECK_U64(r.behind_first, from);
        CHECK_U64(r.behind_next, from + r.behind_count);
    }
    // There is nothing: that is an answer, too.
    reader_read_behind(&r, 0, 1000, 2000);
    reader_until(&r, is_behind_answered);
    CHECK_U64(r.behind_count, 0);
    CHECK_U64(r.behind_next, 1000);
    // Back, and in the middle of what was read.
    reader_read_behind(&r, 0, 17, 1);
    reader_until(&r, is_behind_answered);
    CHECK_U64(r.behind_count, 1);
    CHECK_U64(r.behind_first, 17);
    // As many as are wanted, and on from there.
    for (uint64_t from = 40; from < 70; from = r.behind_next) {
        reader_read_again(&r, 0, from, 10);
        reader_until(&r, is_behind_answered);
        CHECK(r.behind_count > 0 && r.behind_count <= 10);
        CHECK_U64(r.behind_first, from);
        CHECK_U64(r.behind_next, from + r.behind_count);
    }

    // The rest of the topic went on meanwhile, and nothing was committed.
    cluster_send_many(&c, "t", 1, 0, 10);
    reader_until_messages(&r, 1010);
    CHECK_U64(r.parts[0].twice, 0);
    reader_close(&r);
    CHECK_INT(cluster_committed(&c, "g", "t", 0), 1000);
    cluster_close(&c);
}

/* A lane that is behind in many partitions, as after a move, has them one behind
 * the other: where one ends, no broker waits for more before it gives the next.
 * (It would wait for longer than the reader does, who then has nothing.) */
TEST(kafka, reads_the_next_partition_without_waiting_at_the_end_of_one)
{
    enum { PARTITIONS = 8 };
    cluster c;
    reader r;

    cluster_open(&c, 1);
    cluster_topic(&c, "t", PARTITIONS);
    for (int p = 0; p < PARTITIONS; p++)
        cluster_send_many(&c, "t", p, 0, 100);
    reader_begin(&r, &c, "t");
    reader_set(&r, "fetch.wait.max.ms", "20000");
    reader_set(&r, "fetch.min.bytes", "1000000");
    r.begins = r.reads = false;
    reader_open(&r);
    reader_until(&r, is_assigned);
    for (uint32_t p = 0; p < PARTITIONS; p++) {
        // An answer has what has come so far, and none of them is empty.
        for (uint64_t from = 40; from < 100; from = r.behind_next) {
            reader_read_behind(&r, p, from, 1 << 20);
            reader_until(&r, is_behind_answered);
            CHECK(r.behind_count > 0);
            CHECK_U64(r.behind_next, from + r.behind_count);
        }
    }
    reader_close(&r);
    cluster_close(&c);
}

/* -- options --------------------------------------------------------------- */

static stg_status check(reader *r, const char *property, const char *value)
{
    if (property != NULL) {
        r->options.property_count = 0;
        reader_set(r, property, value);
    }
    return stg_kafka_check(&r->options, &r->err);
}

/* Each by its name, whatever the value: also the one that it has anyway. */
/* -- the same log? --------------------------------------------------------- */

static bool has_compared(const reader *r)
{
    return r->compared.why != NULL;
}

static stg_kafka_sameness compare(reader *r, const stg_fingerprint *print)
{
    stg_topic_partition p = reader_place(r, 0);

    r->compared.why = NULL;
    stg_kafka_compare(r->kafka, &p, print);
    reader_until(r, has_compared);
    CHECK_INT(r->compared.tp.partition, 0);
    return r->compared.how;
}

/* I31 */
TEST(kafka, tells_a_log_by_the_records_that_were_read_of_it)
{
    cluster c;
    reader r;
    stg_fingerprint print, other;

    cluster_open(&c, 1);
    cluster_topic(&c, "t", 1);
    cluster_send(&c, "t", 0, "k", "v", 1, "h=1");
    cluster_send_many(&c, "t", 0, 0, 4);
    reader_begin(&r, &c, "t");
    reader_open(&r);
    reader_until_messages(&r, 5);
    print = r.parts[0].print;
    CHECK_U64(print.first.position, 0);
    CHECK(print.first.at_ms > 0);
    CHECK_INT(compare(&r, &print), STG_KAFKA_SAME);

    other = print; // another record is there
    other.last.hash++;
    CHECK_INT(compare(&r, &other), STG_KAFKA_OTHER);
    other = print; // what was read last is the same, what was read first is not
    other.first.position = other.last.position + 1;
    CHECK_INT(compare(&r, &other), STG_KAFKA_OTHER);
    other = print; // it began later
    other.begin = 1;
    CHECK_INT(compare(&r, &other), STG_KAFKA_OTHER);
    other = print; // it is shorter, and its begin is the same
    other.last.position = 50;
    CHECK_INT(compare(&r, &other), STG_KAFKA_SAME);
    other.first.position = 40; // nothing of it is there
    CHECK_INT(compare(&r, &other), STG_KAFKA_OTHER);
    reader_close(&r);
    cluster_close(&c);
}

TEST(kafka, refuses_properties_that_are_the_hubs_own)
{
    static const char *const owned[][2] = {
        {"bootstrap.servers", "h:1"},
        {"metadata.broker.list", "h:1"},
        {"group.id", "g"},
        {"group.protocol", "consumer"},
        {"group.remote.assignor", "uniform"},
        {"auto.offset.reset", "error"},
        {"topic.auto.offset.reset", "latest"},
        {"enable.auto.commit", "false"},
        {"auto.commit.enable", "true"},
        {"auto.commit.interval.ms", "1000"},
        {"enable.auto.offset.store", "false"},
        {"enable.partition.eof", "true"},
        {"queued.max.messages.kbytes", "16384"},
        {"queued.min.messages", "1"},
        {"offset.store.method", "file"},
        {"offset.store.path", "/tmp"},
        {"offset.store.sync.interval.ms", "1"},
        {"plugin.library.paths", "x.so"},
        {"log.queue", "false"},
        {"enabled_events", "0"},
        {"internal.termination.signal", "15"},
        {"enable.idempotence", "false"},
        {"transactional.id", "x"},
        {"delivery.report.only.error", "true"},
    };
    cluster c = {.brokers = "127.0.0.1:1"};
    reader r;

    reader_begin(&r, &c, "t");
    for (size_t i = 0; i < sizeof owned / sizeof *owned; i++) {
        CHECK_INT(check(&r, owned[i][0], owned[i][1]), STG_INVALID);
        CHECK(strstr(r.err.text, owned[i][0]) != NULL);
        CHECK(strstr(r.err.text, "no property") == NULL);
        CHECK_INT(stg_kafka_check_property(owned[i][0], owned[i][1], &r.err),
                  STG_INVALID);
    }
}

/* What librdkafka says only when an instance is made, and never again. */
TEST(kafka, refuses_properties_that_do_not_go_together)
{
    static const struct {
        stg_kafka_property all[2];
        const char *words;
    } wrong[] = {
        {{{"security.protocol", "ssl"}, {"ssl.ca.location", "/no/such"}},
         "ssl.ca.location"},
        {{{"security.protocol", "sasl_plaintext"}, {"sasl.mechanism", "PLAIN"}},
         "sasl.username"},
        {{{"security.protocol", "sasl_ssl"}, {"sasl.mechanism", "hunter2"}},
         "SASL mechanism"},
        {{{"receive.message.max.bytes", "1000"}}, "receive.message.max.bytes"},
        {{{"session.timeout.ms", "600000"}}, "session.timeout.ms"},
    };
    cluster c = {.brokers = "127.0.0.1:1"};
    reader r;

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        reader_begin(&r, &c, "t");
        for (size_t j = 0; j < 2 && wrong[i].all[j].name != NULL; j++)
            reader_set(&r, wrong[i].all[j].name, wrong[i].all[j].value);
        CHECK_INT(stg_kafka_check(&r.options, &r.err), STG_INVALID);
        CHECK(strstr(r.err.text, wrong[i].words) != NULL);
    }
}

TEST(kafka, judges_a_property_by_itself)
{
    stg_error err;

    CHECK_INT(stg_kafka_check_property("sasl.password", NULL, &err), STG_OK);
    CHECK_INT(stg_kafka_check_property("client.id", "x", &err), STG_OK);
    CHECK_INT(stg_kafka_check_property("no.such", NULL, &err), STG_INVALID);
    CHECK(strstr(err.text, "no.such") != NULL);
    CHECK_INT(stg_kafka_check_property("session.timeout.ms", "soon", &err),
              STG_INVALID);
    CHECK(strstr(err.text, "session.timeout.ms") != NULL);
}

TEST(kafka, refuses_what_cannot_be)
{
    cluster c = {.brokers = "127.0.0.1:1"};
    reader r;

    reader_begin(&r, &c, "t");
    CHECK_INT(check(&r, NULL, NULL), STG_OK);
    CHECK_INT(check(&r, "session.timeout.ms", "45000"), STG_OK);
    CHECK_INT(check(&r, "sesion.timeout.ms", "1"), STG_INVALID);
    CHECK(strstr(r.err.text, "no property \"sesion.timeout.ms\"") != NULL);
    CHECK_INT(check(&r, "security.protocol", "hunter2"), STG_INVALID);
    CHECK(strstr(r.err.text, "security.protocol") != NULL);
    CHECK(strstr(r.err.text, "hunter2") == NULL);
    r.options.property_count = 0;
    r.topics[1] = "a b";
    CHECK_INT(check(&r, NULL, NULL), STG_INVALID);
    r.topics[1] = "^a.(";
    CHECK_INT(check(&r, NULL, NULL), STG_INVALID);
    CHECK(strstr(r.err.text, "`^a.(` is no regular expression") != NULL);
    r.topics[1] = "^a.*";
    CHECK_INT(check(&r, NULL, NULL), STG_OK);
    r.topics[1] = "t";
    CHECK_INT(check(&r, NULL, NULL), STG_INVALID);
    r.topics[0] = NULL;
    CHECK_INT(check(&r, NULL, NULL), STG_INVALID);
    r.topics[0] = "t";
    r.topics[1] = NULL;
    r.options.group = "";
    CHECK_INT(check(&r, NULL, NULL), STG_INVALID);
    CHECK(stg_kafka_version() != NULL);
}
