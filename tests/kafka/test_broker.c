/* The log `kafka` on a real broker: what a mock of it cannot do. By
 * kafka_broker.py, which starts one and says where it is. */
#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness.h"
#include "tests/kafka/cluster.h"

enum { MANY = 5000, WAIT_MS = 30000 };

/* -- what an administrator does -------------------------------------------- */

static void join(cluster *c)
{
    const char *brokers = getenv("STAGGER_BROKERS");

    if (brokers == NULL)
        harness_fail(__FILE__, __LINE__, "no STAGGER_BROKERS");
    cluster_join(c, brokers);
}

/* A name that was never there. */
static const char *new_topic(char name[64])
{
    snprintf(name, 64, "t-%" PRIx64, (uint64_t)uv_hrtime());
    return name;
}

static rd_kafka_event_t *result(rd_kafka_queue_t *queue)
{
    rd_kafka_event_t *ev = rd_kafka_queue_poll(queue, WAIT_MS);

    rd_kafka_queue_destroy(queue);
    CHECK(ev != NULL);
    CHECK_INT(rd_kafka_event_error(ev), 0);
    return ev;
}

static void make(cluster *c, const char *topic, int partitions)
{
    rd_kafka_queue_t *queue = rd_kafka_queue_new(c->rk);
    rd_kafka_NewTopic_t *new =
        rd_kafka_NewTopic_new(topic, partitions, 1, NULL, 0);

    rd_kafka_CreateTopics(c->rk, &new, 1, NULL, queue);
    rd_kafka_event_destroy(result(queue));
    rd_kafka_NewTopic_destroy(new);
}

static void grow(cluster *c, const char *topic, size_t partitions)
{
    rd_kafka_queue_t *queue = rd_kafka_queue_new(c->rk);
    rd_kafka_NewPartitions_t *new =
        rd_kafka_NewPartitions_new(topic, partitions, NULL, 0);

    CHECK(new != NULL);
    rd_kafka_CreatePartitions(c->rk, &new, 1, NULL, queue);
    rd_kafka_event_destroy(result(queue));
    rd_kafka_NewPartitions_destroy(new);
}

static void delete (cluster *c, const char *topic)
{
    rd_kafka_queue_t *queue = rd_kafka_queue_new(c->rk);
    rd_kafka_DeleteTopic_t *old = rd_kafka_DeleteTopic_new(topic);

    rd_kafka_DeleteTopics(c->rk, &old, 1, NULL, queue);
    rd_kafka_event_destroy(result(queue));
    rd_kafka_DeleteTopic_destroy(old);
}

static void expire(cluster *c, const char *topic, int64_t before)
{
    rd_kafka_queue_t *queue = rd_kafka_queue_new(c->rk);
    rd_kafka_topic_partition_list_t *list =
        rd_kafka_topic_partition_list_new(1);
    rd_kafka_DeleteRecords_t *old;

    rd_kafka_topic_partition_list_add(list, topic, 0)->offset = before;
    old = rd_kafka_DeleteRecords_new(list);
    rd_kafka_DeleteRecords(c->rk, &old, 1, NULL, queue);
    rd_kafka_event_destroy(result(queue));
    rd_kafka_DeleteRecords_destroy(old);
    rd_kafka_topic_partition_list_destroy(list);
}

/* Each reader of a test in a group of its own. */
static void begin(reader *r, const cluster *c, const char *topic)
{
    reader_begin(r, c, topic);
    r->options.group = topic;
    reader_set(r, "topic.metadata.refresh.interval.ms", "1000");
    reader_set(r, "session.timeout.ms", "10000");
}

static bool is_assigned(const reader *r)
{
    return r->assigned > 0;
}

/* -- groups ---------------------------------------------------------------- */

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

TEST(kafka_broker, commits_what_it_owes_before_it_lets_go)
{
    cluster c;
    char name[64];
    reader a, b, *both[] = {&a, &b};

    join(&c);
    make(&c, new_topic(name), 4);
    for (int p = 0; p < 4; p++)
        cluster_send_many(&c, name, p, 0, 50);
    begin(&a, &c, name);
    begin(&b, &c, name);
    a.options.commit_every = STG_HOUR; // nothing but what is let go
    reader_open(&a);
    reader_until_messages(&a, 200);
    reader_open(&b);
    readers_until(both, 2, have_two_each);
    for (int p = 0; p < 4; p++)
        CHECK_INT(cluster_committed(&c, name, name, p), 50);
    CHECK_U64(b.messages, 0);
    reader_close(&b);
    reader_close(&a);
    cluster_close(&c);
}

/* (The mock waits a session's length for a group that was left.) */
TEST(kafka_broker, leaves_the_group_when_it_is_closed)
{
    cluster c;
    char name[64];
    reader a, b;
    uint64_t began;

    join(&c);
    make(&c, new_topic(name), 1);
    begin(&a, &c, name);
    begin(&b, &c, name);
    reader_set(&a, "session.timeout.ms", "45000");
    reader_set(&b, "session.timeout.ms", "45000");
    reader_open(&a);
    reader_until(&a, is_assigned);
    reader_close(&a);
    began = uv_hrtime();
    reader_open(&b);
    reader_until(&b, is_assigned);
    CHECK(uv_hrtime() - began < 30 * STG_S);
    reader_close(&b);
    cluster_close(&c);
}

/* How often each position was read, by whomever. */
typedef struct census {
    unsigned char seen[4][MANY];
} census;

static void count(void *ctx, uint32_t partition, uint64_t position)
{
    census *all = ctx;

    CHECK(position < MANY);
    all->seen[partition][position]++;
}

static bool is_complete(const census *all)
{
    for (size_t p = 0; p < 4; p++)
        for (size_t i = 0; i < MANY; i++)
            if (all->seen[p][i] == 0)
                return false;
    return true;
}

/* I1: members come and go while messages come. */
static void move_partitions(const char *strategy)
{
    cluster c;
    char name[64];
    reader a, b;
    census *all = calloc(1, sizeof *all);
    unsigned sent = 0;
    bool has_b = false;

    CHECK(all != NULL);
    join(&c);
    make(&c, new_topic(name), 4);
    begin(&a, &c, name);
    begin(&b, &c, name);
    reader_set(&a, "partition.assignment.strategy", strategy);
    reader_set(&b, "partition.assignment.strategy", strategy);
    a.saw = b.saw = count;
    a.ctx = b.ctx = all;
    reader_open(&a);
    for (unsigned turn = 0; sent < MANY || !is_complete(all); turn++) {
        CHECK(turn < 1200);
        if (sent < MANY) {
            for (int p = 0; p < 4; p++)
                cluster_send_many(&c, name, p, sent, 50);
            sent += 50;
        }
        if (turn % 40 == 20 && !has_b) {
            reader_open(&b);
            has_b = true;
        } else if (turn % 40 == 0 && has_b) {
            reader_close(&b);
            has_b = false;
        }
        reader_run_for(&a, 50);
        if (has_b)
            reader_run_for(&b, 50);
    }
    CHECK(a.revoked > 0);
    CHECK(b.messages > 0);
    if (has_b)
        reader_close(&b);
    reader_close(&a);
    cluster_close(&c);
    free(all);
}

TEST(kafka_broker, loses_nothing_when_partitions_move)
{
    move_partitions("range");
}

TEST(kafka_broker, loses_nothing_when_they_move_one_by_one)
{
    move_partitions("cooperative-sticky");
}

/* -- topics ---------------------------------------------------------------- */

static bool is_grown(const reader *r)
{
    return reader_told(r, STG_KAFKA_ADDED) != NULL && r->parts[2].is_there;
}

TEST(kafka_broker, reads_partitions_that_are_added)
{
    cluster c;
    char name[64];
    reader r;

    join(&c);
    make(&c, new_topic(name), 2);
    cluster_send_many(&c, name, 0, 0, 10);
    begin(&r, &c, name);
    reader_open(&r);
    reader_until_messages(&r, 10);
    grow(&c, name, 3);
    reader_until(&r, is_grown);
    CHECK_INT(reader_told(&r, STG_KAFKA_ADDED)->before, 2);
    CHECK_INT(reader_told(&r, STG_KAFKA_ADDED)->count, 3);
    cluster_send_many(&c, name, 2, 0, 10);
    while (r.parts[2].messages < 10)
        reader_run_for(&r, 20);
    CHECK_U64(r.parts[2].first, 0);
    CHECK_U64(r.lost, 0);
    reader_close(&r);
    cluster_close(&c);
}

static bool is_gone(const reader *r)
{
    return reader_told(r, STG_KAFKA_GONE) != NULL && !r->parts[0].is_there;
}

static bool is_made_again(const reader *r)
{
    return reader_told(r, STG_KAFKA_FOUND) != NULL && r->parts[0].is_there;
}

/* Who writes makes a topic that is not there; an administrator does not. */
static void administer(cluster *c)
{
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    char why[256];

    rd_kafka_conf_set(conf, "bootstrap.servers", c->brokers, why, sizeof why);
    rd_kafka_conf_set(conf, "group.id", "admin", why, sizeof why);
    c->rk = rd_kafka_new(RD_KAFKA_CONSUMER, conf, why, sizeof why);
    CHECK(c->rk != NULL);
}

TEST(kafka_broker, reads_a_topic_that_is_made_again_from_its_begin)
{
    cluster c, admin;
    char name[64];
    reader r;

    join(&c);
    admin = c;
    administer(&admin);
    make(&admin, new_topic(name), 1);
    cluster_send_many(&c, name, 0, 0, 100);
    cluster_close(&c);
    begin(&r, &c, name);
    reader_open(&r);
    reader_until_messages(&r, 100);
    delete (&admin, name);
    reader_until(&r, is_gone);
    make(&admin, name, 1);
    reader_until(&r, is_made_again);
    CHECK_U64(r.parts[0].given.begin, 0);
    join(&c);
    cluster_send_many(&c, name, 0, 0, 10);
    reader_until_messages(&r, 110);
    CHECK_U64(r.parts[0].first, 0);
    reader_close(&r);
    rd_kafka_destroy_flags(admin.rk, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
    cluster_close(&c);
}

static bool is_renewed(const reader *r)
{
    return reader_told(r, STG_KAFKA_RENEWED) != NULL && r->parts[0].is_there;
}

/* I31: so quickly, and with so many records, that a consumer goes on at its
 * offset as if nothing had been. */
TEST(kafka_broker, begins_anew_when_a_topic_is_made_again_at_once)
{
    cluster c, admin;
    char name[64];
    reader r;

    join(&c);
    admin = c;
    administer(&admin);
    make(&admin, new_topic(name), 1);
    cluster_send_many(&c, name, 0, 0, 100);
    cluster_close(&c);
    begin(&r, &c, name);
    r.commits = false; // a hub knows that they are of the old one
    reader_open(&r);
    reader_until_messages(&r, 100);
    reader_run_for(&r, 500);
    delete (&admin, name);
    make(&admin, name, 1);
    join(&c);
    cluster_send_many(&c, name, 0, 0, 300);
    reader_until(&r, is_renewed);
    CHECK_INT(r.compared.how, STG_KAFKA_OTHER);
    while (r.parts[0].next < 300)
        reader_until_messages(&r, r.messages + 1);
    CHECK_U64(r.parts[0].first, 0);
    reader_close(&r);
    rd_kafka_destroy_flags(admin.rk, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
    cluster_close(&c);
}

static bool is_expired(const reader *r)
{
    return reader_told(r, STG_KAFKA_EXPIRED) != NULL;
}

TEST(kafka_broker, tells_what_has_expired)
{
    cluster c;
    char name[64];
    reader r;
    stg_topic_partition p;

    join(&c);
    make(&c, new_topic(name), 1);
    cluster_send_many(&c, name, 0, 0, 100);
    expire(&c, name, 60);
    begin(&r, &c, name);
    r.begins = false;
    reader_open(&r);
    reader_until(&r, is_assigned);
    CHECK_U64(r.parts[0].given.begin, 60);
    p = reader_place(&r, 0);
    stg_kafka_begin(r.kafka, &p, 10, 1);
    reader_until(&r, is_expired);
    CHECK_U64(reader_told(&r, STG_KAFKA_EXPIRED)->begin, 60);
    reader_until_messages(&r, 40);
    CHECK_U64(r.parts[0].first, 60);
    reader_close(&r);
    cluster_close(&c);
}

static bool is_at_end(const reader *r)
{
    return r->parts[0].next == 13 && r->parts[0].end == 13;
}

/* The marker of a transaction is a position that no message has. */
TEST(kafka_broker, passes_the_marks_of_transactions)
{
    cluster c;
    char name[64], why[256];
    reader r;
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    rd_kafka_t *rk;
    char x[] = "x";

    join(&c);
    make(&c, new_topic(name), 1);
    rd_kafka_conf_set(conf, "bootstrap.servers", c.brokers, why, sizeof why);
    rd_kafka_conf_set(conf, "transactional.id", name, why, sizeof why);
    rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof why);
    CHECK(rk != NULL);
    CHECK(rd_kafka_init_transactions(rk, WAIT_MS) == NULL);
    for (int t = 0; t < 3; t++) {
        CHECK(rd_kafka_begin_transaction(rk) == NULL);
        for (int i = 0; i < 3 + (t == 1); i++) {
            rd_kafka_topic_t *topic = rd_kafka_topic_new(rk, name, NULL);

            CHECK_INT(rd_kafka_produce(topic, 0, RD_KAFKA_MSG_F_COPY, x, 1,
                                       NULL, 0, NULL),
                      0);
            rd_kafka_topic_destroy(topic);
        }
        CHECK_INT(rd_kafka_flush(rk, WAIT_MS), 0);
        if (t == 1)
            CHECK(rd_kafka_abort_transaction(rk, WAIT_MS) == NULL);
        else
            CHECK(rd_kafka_commit_transaction(rk, WAIT_MS) == NULL);
    }
    rd_kafka_destroy(rk);
    begin(&r, &c, name);
    reader_open(&r);
    reader_until(&r, is_at_end);
    CHECK_U64(r.messages, 6); // of two, and not of the one that was aborted
    while (cluster_committed(&c, name, name, 0) < 13)
        reader_run_for(&r, 50);
    reader_read_behind(&r, 0, 8, 1000);
    while (r.is_behind)
        reader_run_for(&r, 10);
    CHECK_U64(r.behind_count, 3);
    reader_close(&r);
    cluster_close(&c);
}

/* -- memory ---------------------------------------------------------------- */

static size_t heap(void)
{
    struct mallinfo2 m = mallinfo2();

    return m.uordblks + m.hblkhd;
}

/* I6, with answers of many messages, as a real broker gives them. */
TEST(kafka_broker, reads_ahead_within_its_limit_whatever_the_partitions)
{
    enum { PARTS = 64, EACH = 1500, BODY = 1000 };
    const size_t limit = 8 << 20;
    static char body[BODY];
    cluster c;
    char name[64];
    reader r;
    size_t before, grown, most = 0;
    uint64_t began;

    join(&c);
    make(&c, new_topic(name), PARTS);
    for (int p = 0; p < PARTS; p++) {
        for (unsigned i = 0; i < EACH; i++)
            cluster_send(&c, name, p, NULL, body, BODY, NULL);
        cluster_flush(&c);
    }
    begin(&r, &c, name);
    r.reads = false;
    r.options.queue_max = limit;
    before = heap();
    reader_open(&r);
    reader_until(&r, is_assigned);
    for (int i = 0; i < 60 || most < limit / 2; i++) {
        CHECK(i < 1200);
        reader_run_for(&r, 50);
        grown = heap() - before;
        most = grown > most ? grown : most;
    }
    CHECK(most < 2 * limit);
    began = uv_hrtime();
    r.reads = true;
    reader_read(&r);
    reader_until_messages(&r, PARTS * EACH);
    printf(
        "    of %d MB in %d partitions %.1f MiB were read ahead (limit "
        "%.1f), all in %.2f s\n",
        PARTS * EACH * BODY / 1000000, PARTS, (double)most / (1 << 20),
        (double)limit / (1 << 20), (double)(uv_hrtime() - began) / 1e9);
    reader_close(&r);
    cluster_close(&c);
}

/* A reader that takes less at once than brokers could give. librdkafka alone looks
 * once a second whether a queue that was full has room: so all of it would be ten
 * seconds and more, and those behind it three. */
TEST(kafka_broker, reads_many_times_its_limit_within_seconds)
{
    enum { EACH = 40000, BODY = 1000, LIMIT = 2 << 20, PIECE = 256 << 10 };
    static char body[BODY];
    cluster c;
    char name[64];
    reader r;
    uint64_t began;
    double ahead, behind;

    join(&c);
    make(&c, new_topic(name), 1);
    for (unsigned i = 0; i < EACH; i++)
        cluster_send(&c, name, 0, NULL, body, BODY, NULL);
    cluster_flush(&c);
    begin(&r, &c, name);
    r.reads = false;
    r.bytes_max = PIECE;
    r.options.queue_max = LIMIT;
    reader_open(&r);
    reader_until(&r, is_assigned);
    began = uv_hrtime();
    while (r.messages < EACH) {
        if (!r.is_reading)
            reader_read(&r);
        reader_run_for(&r, 5);
    }
    ahead = (double)(uv_hrtime() - began) / 1e9;

    // And for lanes that catch up.
    began = uv_hrtime();
    for (uint64_t from = 0; from < EACH; from = r.behind_next) {
        reader_read_behind(&r, 0, from, 4 * PIECE);
        while (r.is_behind)
            reader_run_for(&r, 1);
    }
    behind = (double)(uv_hrtime() - began) / 1e9;
    printf("    %d MB with a limit of %d MiB in %.2f s, behind in %.2f s\n",
           EACH * BODY / 1000000, LIMIT >> 20, ahead, behind);
    CHECK(ahead < 6);
    CHECK(behind < 2.5);
    reader_close(&r);
    cluster_close(&c);
}
