/* I33: a lane reads the log again: nothing twice, nothing lost, in its order, and
 * the books balance. */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "store/dead_letters.h"
#include "store/rewinds.h"
#include "tests/harness.h"
#include "tests/store/fixture.h"

typedef struct told {
    fixture fixture; /* first: the store's ctx is a fixture */
    uint64_t again, ended, sent, room, next;
    unsigned room_asks;
    uint64_t pieces; /* that are on their way to the writer, or were */
    stg_order order;
    /* of a topic */
    uint64_t first, end;
    unsigned reads, aways;
} told;

static void on_replayed(void *ctx, uint32_t lane, uint32_t partition,
                        uint64_t count, bool is_again)
{
    (void)lane;
    (void)partition;
    CHECK(is_again);
    ((told *)ctx)->again += count;
}

static uint64_t room(void *ctx, uint32_t lane)
{
    (void)lane;
    ((told *)ctx)->room_asks++;
    return ((told *)ctx)->room;
}

static stg_order order(void *ctx, uint32_t lane)
{
    (void)lane;
    ((told *)ctx)->pieces++;
    return ((told *)ctx)->order;
}

static uint64_t next(void *ctx, uint32_t lane, uint32_t partition)
{
    (void)lane;
    (void)partition;
    return ((told *)ctx)->next;
}

static void on_rewound(void *ctx, uint32_t lane, uint32_t partition,
                       uint64_t messages)
{
    (void)lane;
    (void)partition;
    ((told *)ctx)->sent += messages;
    ((told *)ctx)->ended++;
}

/* Every second position of the topic has a record, a second after the one before
 * it. */
static void read_topic(void *ctx, uint32_t number, uint64_t from,
                       size_t bytes_max, size_t count_max, stg_read_fn *done,
                       void *done_ctx)
{
    told *t = ctx;
    stg_record records[4];
    size_t count = 0;
    uint64_t at = from < t->first ? t->first : from;

    (void)number;
    (void)bytes_max;
    t->reads++;
    if (t->aways > 0) {
        t->aways--;
        done(done_ctx, NULL, 0, from);
        return;
    }
    for (; at < t->end && count < 4 && count < count_max; at++)
        if (at % 2 == 0) {
            const stg_message *m = fixture_message(&t->fixture, at, "body");

            records[count++] = (stg_record){.position = at,
                                            .key = m->key,
                                            .bytes = m->bytes,
                                            .size = m->size,
                                            .created_at = at * STG_S};
        }
    done(done_ctx, records, count, at == t->end ? UINT64_MAX : at);
}

static void make(told *t)
{
    *t = (told){.room = 1000};
    fixture_make(&t->fixture);
    t->fixture.options.keep = STG_DAY;
    t->fixture.options.replayed = on_replayed;
    t->fixture.options.room = room;
    t->fixture.options.order = order;
    t->fixture.options.next = next;
    t->fixture.options.rewound = on_rewound;
    t->fixture.options.read = read_topic;
    fixture_open(&t->fixture);
    CHECK_INT(fixture_lane(&t->fixture, "a"), 0);
}

static void stand(fixture *s, uint64_t base)
{
    const stg_cursor c = {
        .lane = 0, .base = base, .routed = base - 1, .delivered = base - 1};

    CHECK_INT(fixture_cursors(s, &c, 1), STG_STORED);
}

/* Messages at positions from 1 on, all delivered. */
static void fill(told *t, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        fixture_put(&t->fixture, NULL, "body");
    stand(&t->fixture, count + 1);
    stg_store_commit(t->fixture.store, count + 1);
}

typedef struct answer {
    bool is_done, is_known;
    int how;
    uint64_t number;
    stg_rewind_view view;
    size_t count;
} answer;

static void on_begun(void *ctx, stg_rewound how, uint64_t number)
{
    *(answer *)ctx =
        (answer){.is_done = true, .how = (int)how, .number = number};
}

static void on_resent(void *ctx, stg_resent how)
{
    *(answer *)ctx = (answer){.is_done = true, .how = (int)how};
}

static void on_cancelled(void *ctx, bool is_known, bool is_full)
{
    CHECK(!is_full);
    *(answer *)ctx = (answer){.is_done = true, .is_known = is_known};
}

static void on_views(void *ctx, const stg_rewind_view *all, size_t count)
{
    *(answer *)ctx = (answer){.is_done = true, .count = count};
    if (count > 0)
        ((answer *)ctx)->view = all[0];
}

static int rewind_to(fixture *s, const stg_rewind_start *start)
{
    answer a = {.is_done = false};

    stg_store_rewind(s->store, start, on_begun, &a);
    FIXTURE_UNTIL(s, a.is_done);
    return a.how;
}

static const stg_rewind_start all = {.partition = STG_NO_PARTITION};

static int resend(fixture *s, uint32_t partition, uint64_t position)
{
    answer a = {.is_done = false};

    stg_store_resend(s->store, 0, partition, position, on_resent, &a);
    FIXTURE_UNTIL(s, a.is_done);
    return a.how;
}

static stg_rewind_view newest(fixture *s)
{
    answer a = {.is_done = false};

    stg_store_rewinds(s->store, 0, on_views, &a);
    FIXTURE_UNTIL(s, a.is_done);
    CHECK(a.count > 0);
    return a.view;
}

static const char parked[] =
    "SELECT position, replay FROM parked ORDER BY position";

/* Reports a parked message as delivered. */
static void deliver(fixture *s, uint64_t position, uint32_t replay)
{
    CHECK_INT(fixture_change(s, &(stg_change){.kind = STG_CHANGE_DELIVERED,
                                              .position = position,
                                              .replay = replay}),
              STG_STORED);
}

TEST(store_rewind, parks_all_up_to_where_the_lane_stood)
{
    told t;
    fixture *s = &t.fixture;
    stg_rewind_view v;

    make(&t);
    fill(&t, 3);
    fixture_put(s, NULL, "later");
    CHECK_INT(rewind_to(s, &all), STG_REWOUND);
    FIXTURE_UNTIL(s, t.ended == 1);
    CHECK_U64(t.again, 3);
    CHECK_STR(fixture_ask(s, parked), "1|256\n2|256\n3|256");
    CHECK_STR(fixture_stands(s), "0/0 4 [] 6=3+0+0+3\n");
    v = newest(s);
    CHECK(!v.is_running && !v.is_cancelled);
    CHECK_U64(v.number, 1);
    CHECK_U64(v.messages, 3);
    CHECK_U64(v.passed, 3);
    CHECK_U64(v.sent, 3);
    CHECK(v.ended_at >= v.began_at && v.began_at > 0);
    fixture_end(s);
}

/* The loop knows better than the store where the lane is. */
TEST(store_rewind, ends_where_the_lane_reads_on_here)
{
    told t;
    fixture *s = &t.fixture;

    make(&t);
    fill(&t, 2);
    fixture_put(s, NULL, "taken, and not stored yet");
    t.next = 4;
    CHECK_INT(rewind_to(s, &all), STG_REWOUND);
    FIXTURE_UNTIL(s, t.ended == 1);
    CHECK_U64(t.again, 3);
    fixture_end(s);
}

TEST(store_rewind, begins_at_a_position_or_a_time)
{
    told t;
    fixture *s = &t.fixture;

    make(&t);
    fill(&t, 5);
    CHECK_INT(rewind_to(s, &(stg_rewind_start){.position = 4}), STG_REWOUND);
    FIXTURE_UNTIL(s, t.ended == 1);
    CHECK_STR(fixture_ask(s, parked), "4|256\n5|256");
    fixture_ask(s, "UPDATE messages_0 SET created_at = position * 1000");
    CHECK_INT(rewind_to(s, &(stg_rewind_start){.since = 2001 * STG_MS}),
              STG_REWOUND);
    FIXTURE_UNTIL(s, t.ended == 2);
    // What waits anyway is passed over.
    CHECK_STR(fixture_ask(s, parked), "3|512\n4|256\n5|256");
    CHECK_U64(newest(s).sent, 1);
    fixture_end(s);
}

TEST(store_rewind, is_one_at_a_time_and_only_where_the_lane_stands)
{
    told t;
    fixture *s = &t.fixture;

    make(&t);
    CHECK_INT(rewind_to(s, &all), STG_REWOUND_NOTHING);
    fill(&t, 3);
    CHECK_INT(rewind_to(s, &(stg_rewind_start){.partition = 9}),
              STG_REWOUND_NOTHING);
    t.room = 0;
    CHECK_INT(rewind_to(s, &all), STG_REWOUND);
    CHECK_INT(rewind_to(s, &all), STG_REWOUND_RUNNING);
    CHECK_U64(newest(s).number, 1);
    fixture_end(s);
}

TEST(store_rewind, begins_when_there_is_room_again)
{
    told t;
    fixture *s = &t.fixture;

    make(&t);
    fill(&t, 3);
    t.room = 0;
    CHECK_INT(rewind_to(s, &all), STG_REWOUND);
    FIXTURE_UNTIL(s, t.room_asks > 0);
    CHECK_U64(t.again, 0);
    t.room = 1000;
    FIXTURE_UNTIL(s, t.ended == 1);
    CHECK_U64(t.again, 3);
    fixture_end(s);
}

TEST(store_rewind, goes_on_where_it_was_after_a_restart)
{
    told t;
    fixture *s = &t.fixture;

    make(&t);
    fill(&t, 10);
    t.room = 4;
    CHECK_INT(rewind_to(s, &all), STG_REWOUND);
    FIXTURE_UNTIL(s, t.again == 4);
    t.room = 0;
    fixture_reopen(s);
    CHECK(newest(s).is_running);
    t.room = 1000;
    stg_store_start_rewinds(s->store);
    FIXTURE_UNTIL(s, t.ended == 1);
    CHECK_U64(t.again, 10);
    CHECK_STR(fixture_stands(s), "0/0 11 [] 20=10+0+0+10\n");
    fixture_end(s);
}

TEST(store_rewind, ends_when_it_is_cancelled)
{
    answer a = {.is_done = false};
    told t;
    fixture *s = &t.fixture;

    make(&t);
    fill(&t, 10);
    t.room = 4;
    CHECK_INT(rewind_to(s, &all), STG_REWOUND);
    FIXTURE_UNTIL(s, t.again == 4);
    t.room = 0;
    stg_store_cancel_rewind(s->store, 0, on_cancelled, &a);
    FIXTURE_UNTIL(s, a.is_done);
    CHECK(a.is_known);
    CHECK(newest(s).is_cancelled);
    CHECK(!newest(s).is_running);
    t.room = 1000;
    a.is_done = false;
    stg_store_cancel_rewind(s->store, 0, on_cancelled, &a);
    FIXTURE_UNTIL(s, a.is_done);
    CHECK(!a.is_known);
    // And another may begin.
    CHECK_INT(rewind_to(s, &all), STG_REWOUND);
    FIXTURE_UNTIL(s, t.ended == 1);
    CHECK_U64(t.again, 10);
    fixture_end(s);
}

TEST(store_rewind, sends_nothing_to_a_target_that_is_forgotten)
{
    told t;
    fixture *s = &t.fixture;

    make(&t);
    fill(&t, 10);
    t.room = 0;
    CHECK_INT(rewind_to(s, &all), STG_REWOUND);
    CHECK_INT(fixture_change(s, &(stg_change){.kind = STG_CHANGE_FORGET}),
              STG_STORED);
    t.room = 1000;
    for (int i = 0; i < 500; i++)
        fixture_turn(s);
    CHECK_U64(t.again, 0);
    CHECK_INT(fixture_lane(s, "a"), 1);
    CHECK_INT(rewind_to(s, &(stg_rewind_start){.lane = 1,
                                               .partition = STG_NO_PARTITION}),
              STG_REWOUND_NOTHING);
    fixture_end(s);
}

/* -- order */

static void put_key(fixture *s, const char *key)
{
    appending a = {.is_done = false};

    a.messages[0] = fixture_text(NULL, "body");
    a.messages[0].parcel.key = (stg_span){key, strlen(key)};
    fixture_start(s, &a, 1);
    FIXTURE_UNTIL(s, a.is_done);
    CHECK_INT(a.how, STG_APPENDED);
}

TEST(store_rewind, parks_a_key_when_the_one_before_it_has_ended)
{
    static const char *const keys[] = {"x", "y", "x", "z"};
    told t;
    fixture *s = &t.fixture;

    make(&t);
    t.order = STG_ORDER_KEY;
    for (size_t i = 0; i < 4; i++)
        put_key(s, keys[i]);
    stand(s, 5);
    stg_store_commit(s->store, 5);
    CHECK_INT(rewind_to(s, &all), STG_REWOUND);
    FIXTURE_UNTIL(s, t.again == 2);
    CHECK_STR(fixture_ask(s, parked), "1|256\n2|256");
    deliver(s, 2, 256);
    for (int i = 0; i < 100; i++)
        fixture_turn(s);
    CHECK_U64(t.again, 2);
    deliver(s, 1, 256);
    FIXTURE_UNTIL(s, t.ended == 1);
    CHECK_STR(fixture_ask(s, parked), "3|256\n4|256");
    s->is_made_up = true;
    fixture_end(s);
}

TEST(store_rewind, parks_one_at_a_time_in_strict_order)
{
    told t;
    fixture *s = &t.fixture;

    make(&t);
    t.order = STG_ORDER_STRICT;
    fill(&t, 3);
    CHECK_INT(rewind_to(s, &all), STG_REWOUND);
    for (uint64_t i = 1; i <= 3; i++) {
        FIXTURE_UNTIL(s, t.again == i);
        CHECK_STR(fixture_ask(s, "SELECT count(*) FROM parked"), "1");
        deliver(s, i, 256);
    }
    FIXTURE_UNTIL(s, t.ended == 1);
    s->is_made_up = true;
    fixture_end(s);
}

/* -- books */

/* Flow made this group before it heard of what was parked, and after it had
 * heard of a call that parked nothing. */
TEST(store_rewind, keeps_the_books_beside_a_group_that_comes_late)
{
    const stg_cursor before = {
        .lane = 0, .base = 3, .routed = 3, .delivered = 2, .parked = 1};
    const stg_group late = {.cursors = &before, .cursor_count = 1};
    answer a = {.is_done = false};
    told t;
    fixture *s = &t.fixture;

    make(&t);
    fill(&t, 2);
    CHECK_INT(resend(s, 0, 1), STG_RESENT);
    CHECK_INT(resend(s, 0, 1), STG_RESENT_WAITS);
    t.pieces = 0;
    stg_store_resend(s->store, 0, 0, 2, on_resent, &a);
    FIXTURE_UNTIL(s, t.pieces > 0);
    // The loop does not turn any more: it hears of the row later.
    while (strcmp(fixture_ask(s, "SELECT count(*) FROM parked"), "2") != 0)
        usleep(1000);
    fixture_begin_store(s, &late);
    FIXTURE_UNTIL(s, a.is_done && !s->is_storing);
    CHECK_INT(a.how, STG_RESENT);
    CHECK_STR(fixture_stands(s), "0/0 3 [] 4=2+0+0+2\n");
    fixture_end(s);
}

/* -- one message */

TEST(store_rewind, sends_one_message_again_or_says_why_not)
{
    told t;
    fixture *s = &t.fixture;

    make(&t);
    fill(&t, 3);
    CHECK_INT(resend(s, 0, 2), STG_RESENT);
    CHECK_INT(resend(s, 0, 2), STG_RESENT_WAITS);
    deliver(s, 2, 256);
    CHECK_INT(resend(s, 0, 2), STG_RESENT);
    // Each has a number of its own: a delivery of before deletes no row of now.
    CHECK_STR(fixture_ask(s, parked), "2|768");
    CHECK_INT(resend(s, 0, 9), STG_RESENT_GONE);
    CHECK_U64(t.again, 2);
    s->is_made_up = true;
    fixture_end(s);
}

/* -- a topic */

static void on_claimed(void *ctx, const stg_claimed *claimed)
{
    *(uint32_t *)ctx = claimed->number;
}

/* A topic's partition, and the lane's cursor in it. */
static uint32_t open_topic(told *t, uint64_t base)
{
    const stg_claim_ask ask = {.log = "kafka",
                               .topic = "orders",
                               .end = STG_NO_POSITION,
                               .committed = STG_NO_POSITION,
                               .previous = STG_NO_PARTITION};
    uint32_t number = 0;
    stg_claim_ask mine = ask;
    stg_cursor c = {.lane = 0, .base = base};
    stg_claim claim = {.generation = 1};

    mine.ctx = &number;
    stg_store_claim(t->fixture.store, &mine, 1, on_claimed);
    FIXTURE_UNTIL(&t->fixture, number > 0);
    c.partition = claim.partition = number;
    CHECK_INT(fixture_store(&t->fixture, &(stg_group){.cursors = &c,
                                                      .cursor_count = 1,
                                                      .claims = &claim,
                                                      .claim_count = 1}),
              STG_STORED);
    return number;
}

TEST(store_rewind, finds_a_time_in_a_topic_by_halving)
{
    char expected[64];
    told t;
    fixture *s = &t.fixture;
    uint32_t number;

    make(&t);
    t.first = 7;
    t.end = 1000000;
    t.aways = 2;
    number = open_topic(&t, 800001);
    CHECK_INT(rewind_to(s, &(stg_rewind_start){.since = 799993 * STG_S}),
              STG_REWOUND);
    FIXTURE_UNTIL(s, t.ended == 1);
    snprintf(expected, sizeof expected, "%" PRIu32 "|4|799994|800000", number);
    CHECK_STR(fixture_ask(s,
                          "SELECT partition, count(*), min(position),"
                          " max(position) FROM parked GROUP BY partition"),
              expected);
    CHECK(t.reads < 40);
    fixture_end(s);
}

/* Records are at 8, 10 ... 20, each made so many seconds after 1970. */
TEST(store_rewind, begins_in_a_topic_with_the_first_that_is_not_older)
{
    static const struct {
        uint64_t since_s, count;
        const char *parked;
    } rows[] = {
        {1, 7, "7|8|20"},   {8, 7, "7|8|20"},   {9, 6, "6|10|20"},
        {10, 6, "6|10|20"}, {13, 4, "4|14|20"}, {19, 1, "1|20|20"},
        {20, 1, "1|20|20"}, {21, 0, "0||"},     {99, 0, "0||"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        told t;
        fixture *s = &t.fixture;
        stg_rewind_start start = {.since = rows[i].since_s * STG_S};

        make(&t);
        t.first = 7;
        t.end = 40;
        open_topic(&t, 21);
        CHECK_INT(rewind_to(s, &start), STG_REWOUND);
        FIXTURE_UNTIL(s, t.ended == 1);
        CHECK_U64(t.sent, rows[i].count);
        CHECK_U64(t.again, rows[i].count);
        CHECK_STR(fixture_ask(s,
                              "SELECT count(*), min(position), max(position)"
                              " FROM parked"),
                  rows[i].parked);
        fixture_end(s);
    }
}

/* The queue's part has ended while the topic's cannot be read yet. */
TEST(store_rewind, says_how_far_each_of_its_partitions_is)
{
    const stg_rewind_start start = {.since = 8 * STG_S,
                                    .partition = STG_NO_PARTITION};
    told t;
    fixture *s = &t.fixture;
    stg_rewind_view v;

    make(&t);
    fill(&t, 3);
    t.first = 7;
    t.end = 40;
    t.aways = UINT_MAX;
    open_topic(&t, 21);
    CHECK_INT(rewind_to(s, &start), STG_REWOUND);
    FIXTURE_UNTIL(s, t.ended == 1);
    v = newest(s);
    CHECK(v.is_running && !v.is_cancelled);
    CHECK_U64(v.since, 8 * STG_S);
    CHECK_U64(v.partitions, 2);
    CHECK_U64(v.begun, 1);
    CHECK_U64(v.messages, 3);
    CHECK_U64(v.passed, 3);
    CHECK_U64(v.sent, 3);
    CHECK(v.began_at > 1772366400 * STG_S && v.ended_at == 0);
    t.aways = 0;
    FIXTURE_UNTIL(s, t.ended == 2);
    v = newest(s);
    CHECK(!v.is_running && !v.is_cancelled);
    CHECK_U64(v.begun, 2);
    // Positions 0 to 20, of which seven have a record.
    CHECK_U64(v.messages, 3 + 21);
    CHECK_U64(v.passed, 3 + 21);
    CHECK_U64(v.sent, 3 + 7);
    CHECK(v.ended_at >= v.began_at);
    fixture_end(s);
}

TEST(store_rewind, reads_a_topic_from_its_first_message)
{
    told t;
    fixture *s = &t.fixture;
    uint32_t number;

    make(&t);
    t.first = 7;
    t.end = 20;
    number = open_topic(&t, 20);
    CHECK_INT(rewind_to(s, &all), STG_REWOUND);
    FIXTURE_UNTIL(s, t.ended == 1);
    CHECK_U64(t.again, 6);
    CHECK_INT(resend(s, number, 9), STG_RESENT_GONE);
    CHECK_INT(resend(s, number, 8), STG_RESENT_WAITS);
    t.aways = 9;
    CHECK_INT(resend(s, number, 10), STG_RESENT_AWAY);
    fixture_end(s);
}
