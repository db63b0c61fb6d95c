/* I33: a lane reads the log again: nothing twice, nothing lost, in its order, and
 * the books balance. */
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "store/dead_letters.h"
#include "store/rewinds.h"
#include "tests/harness.h"
#include "tests/store/shelf.h"

typedef struct told {
    shelf shelf; /* first: the store's ctx is a shelf */
    uint64_t again, ended, room, next, cancelled;
    unsigned rooms, holds; /* asked */
    bool is_busy;    /* something of what is to be cancelled is under way */
    uint64_t pieces; /* that are on their way to the writer, or were */
    stg_order order;
    /* of a topic */
    uint64_t first, end;
    unsigned reads, aways;
} told;

static void on_replayed(void *ctx, uint32_t lane, uint32_t partition,
                        uint64_t count, bool is_again)
{
    told *t = ctx;

    (void)lane;
    (void)partition;
    CHECK(is_again);
    t->again += count;
    t->room -= t->room < count ? t->room : count;
}

static uint64_t room(void *ctx, uint32_t lane)
{
    (void)lane;
    ((told *)ctx)->rooms++;
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
                       uint64_t messages, uint64_t cancelled)
{
    (void)lane;
    (void)partition;
    CHECK(cancelled <= messages);
    ((told *)ctx)->ended++;
}

static bool hold(void *ctx, uint32_t lane, uint32_t replay)
{
    told *t = ctx;

    (void)lane;
    CHECK_U64(replay, 256);
    t->holds++;
    return !t->is_busy;
}

static void on_rows_cancelled(void *ctx, uint32_t lane, uint32_t partition,
                              uint32_t replay, uint64_t count)
{
    (void)lane;
    (void)partition;
    CHECK_U64(replay, 256);
    ((told *)ctx)->cancelled += count;
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
            const stg_message *m = shelf_message(&t->shelf, at, "body");

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
    shelf_make(&t->shelf);
    t->shelf.options.keep = STG_DAY;
    t->shelf.options.replayed = on_replayed;
    t->shelf.options.room = room;
    t->shelf.options.order = order;
    t->shelf.options.next = next;
    t->shelf.options.rewound = on_rewound;
    t->shelf.options.hold = hold;
    t->shelf.options.cancelled = on_rows_cancelled;
    t->shelf.options.read = read_topic;
    shelf_open(&t->shelf);
    CHECK_INT(shelf_lane(&t->shelf, "a"), 0);
}

static void stand(shelf *s, uint64_t base)
{
    const stg_cursor c = {
        .lane = 0, .base = base, .routed = base - 1, .delivered = base - 1};

    CHECK_INT(shelf_cursors(s, &c, 1), STG_STORED);
}

/* Messages at positions from 1 on, all delivered. */
static void fill(told *t, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        shelf_put(&t->shelf, NULL, "body");
    stand(&t->shelf, count + 1);
    stg_store_commit(t->shelf.store, count + 1);
}

typedef struct answer {
    bool is_done, is_known;
    int how;
    uint64_t number, waiting;
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

static void on_cancelled(void *ctx, bool is_known, uint64_t waiting,
                         bool is_full)
{
    CHECK(!is_full);
    *(answer *)ctx =
        (answer){.is_done = true, .is_known = is_known, .waiting = waiting};
}

static void on_views(void *ctx, const stg_rewind_view *all, size_t count)
{
    *(answer *)ctx = (answer){.is_done = true, .count = count};
    if (count > 0)
        ((answer *)ctx)->view = all[0];
}

static int rewind_to(shelf *s, const stg_rewind_start *start)
{
    answer a = {.is_done = false};

    stg_store_rewind(s->store, start, on_begun, &a);
    SHELF_UNTIL(s, a.is_done);
    return a.how;
}

static const stg_rewind_start all = {.partition = STG_NO_PARTITION};

static int resend(shelf *s, uint32_t partition, uint64_t position)
{
    answer a = {.is_done = false};

    stg_store_resend(s->store, 0, partition, position, on_resent, &a);
    SHELF_UNTIL(s, a.is_done);
    return a.how;
}

static stg_rewind_view newest(shelf *s)
{
    answer a = {.is_done = false};

    stg_store_rewinds(s->store, 0, on_views, &a);
    SHELF_UNTIL(s, a.is_done);
    CHECK(a.count > 0);
    return a.view;
}

/* How many messages it had parked; UINT64_MAX: nothing was under way. */
static uint64_t cancel(shelf *s)
{
    answer a = {.is_done = false};

    stg_store_cancel_rewind(s->store, 0, on_cancelled, &a);
    SHELF_UNTIL(s, a.is_done);
    return a.is_known ? a.waiting : UINT64_MAX;
}

static const char parked[] =
    "SELECT position, replay FROM parked ORDER BY position";

/* What is parked of the lane has been delivered. */
static void deliver(shelf *s, uint64_t position, uint32_t replay)
{
    CHECK_INT(shelf_change(s, &(stg_change){.kind = STG_CHANGE_DELIVERED,
                                            .position = position,
                                            .replay = replay}),
              STG_STORED);
}

TEST(store_rewind, parks_all_up_to_where_the_lane_stood)
{
    told t;
    shelf *s = &t.shelf;
    stg_rewind_view v;

    make(&t);
    fill(&t, 3);
    shelf_put(s, NULL, "later");
    CHECK_INT(rewind_to(s, &all), STG_REWOUND);
    SHELF_UNTIL(s, t.again == 3);
    CHECK_STR(shelf_ask(s, parked), "1|256\n2|256\n3|256");
    CHECK_STR(shelf_stands(s), "0/0 4 [] 6=3+0+0+3\n");
    v = newest(s);
    CHECK(v.is_running);
    CHECK_U64(v.number, 1);
    CHECK_U64(v.messages, 3);
    CHECK_U64(v.passed, 3);
    CHECK_U64(v.waiting, 3);
    CHECK_U64(v.sent, 0);
    CHECK(v.ended_at == 0 && v.began_at > 0);
    shelf_end(s);
}

/* Also over a restart: a dead letter has ended, too. */
TEST(store_rewind, runs_until_all_that_it_has_parked_has_ended)
{
    stg_failure failure = shelf_failure(404, STG_WHY_PERMANENT);
    told t;
    shelf *s = &t.shelf;
    stg_rewind_view v;

    make(&t);
    fill(&t, 3);
    CHECK_INT(rewind_to(s, &all), STG_REWOUND);
    SHELF_UNTIL(s, t.again == 3);
    deliver(s, 1, 256);
    v = newest(s);
    CHECK(v.is_running);
    CHECK_U64(v.waiting, 2);
    CHECK_U64(v.sent, 1);
    shelf_reopen(s);
    stg_store_start_rewinds(s->store);
    CHECK_INT(rewind_to(s, &all), STG_REWOUND_RUNNING);
    CHECK_INT(
        shelf_change(s, &(stg_change){.kind = STG_CHANGE_DEAD,
                                      .position = 3,
                                      .replay = 256,
                                      .message = shelf_message(s, 3, "body"),
                                      .failure = &failure}),
        STG_STORED);
    CHECK_INT(rewind_to(s, &all), STG_REWOUND_RUNNING);
    CHECK_U64(t.ended, 0);
    deliver(s, 2, 256);
    SHELF_UNTIL(s, t.ended == 1);
    v = newest(s);
    CHECK(!v.is_running && !v.is_cancelled);
    CHECK_U64(v.waiting, 0);
    CHECK_U64(v.sent, 3);
    CHECK(v.ended_at >= v.began_at);
    CHECK_INT(rewind_to(s, &all), STG_REWOUND);
    shelf_end(s);
}

/* The loop knows better than the store where the lane is. */
TEST(store_rewind, ends_where_the_lane_reads_on_here)
{
    told t;
    shelf *s = &t.shelf;

    make(&t);
    fill(&t, 2);
    shelf_put(s, NULL, "taken, and not stored yet");
    t.next = 4;
    CHECK_INT(rewind_to(s, &all), STG_REWOUND);
    SHELF_UNTIL(s, t.again == 3);
    CHECK_U64(newest(s).messages, 3);
    shelf_end(s);
}

TEST(store_rewind, begins_at_a_position_or_a_time)
{
    told t;
    shelf *s = &t.shelf;

    make(&t);
    fill(&t, 5);
    CHECK_INT(rewind_to(s, &(stg_rewind_start){.position = 4}), STG_REWOUND);
    SHELF_UNTIL(s, t.again == 2);
    CHECK_STR(shelf_ask(s, parked), "4|256\n5|256");
    deliver(s, 4, 256);
    deliver(s, 5, 256);
    SHELF_UNTIL(s, t.ended == 1);
    CHECK_INT(resend(s, 0, 5), STG_RESENT);
    shelf_ask(s, "UPDATE messages SET created_at = position * 1000");
    CHECK_INT(rewind_to(s, &(stg_rewind_start){.since = 2001 * STG_MS}),
              STG_REWOUND);
    SHELF_UNTIL(s, t.again == 5);
    // What waits anyway is passed over.
    CHECK_STR(shelf_ask(s, parked), "3|768\n4|768\n5|512");
    CHECK_U64(newest(s).waiting, 2);
    shelf_end(s);
}

TEST(store_rewind, is_one_at_a_time_and_only_where_the_lane_stands)
{
    told t;
    shelf *s = &t.shelf;

    make(&t);
    CHECK_INT(rewind_to(s, &all), STG_REWOUND_NOTHING);
    fill(&t, 3);
    CHECK_INT(rewind_to(s, &(stg_rewind_start){.partition = 9}),
              STG_REWOUND_NOTHING);
    t.room = 0;
    CHECK_INT(rewind_to(s, &all), STG_REWOUND);
    CHECK_INT(rewind_to(s, &all), STG_REWOUND_RUNNING);
    CHECK_U64(newest(s).number, 1);
    shelf_end(s);
}

TEST(store_rewind, goes_on_where_it_was_after_a_restart)
{
    told t;
    shelf *s = &t.shelf;

    make(&t);
    fill(&t, 10);
    t.room = 4;
    CHECK_INT(rewind_to(s, &all), STG_REWOUND);
    SHELF_UNTIL(s, t.again == 4);
    t.room = 0;
    shelf_reopen(s);
    CHECK(newest(s).is_running);
    t.room = 1000;
    stg_store_start_rewinds(s->store);
    SHELF_UNTIL(s, t.again == 10);
    CHECK_STR(shelf_stands(s), "0/0 11 [] 20=10+0+0+10\n");
    shelf_end(s);
}

TEST(store_rewind, takes_back_what_it_has_parked_when_it_is_cancelled)
{
    told t;
    shelf *s = &t.shelf;
    stg_rewind_view v;

    make(&t);
    fill(&t, 10);
    t.room = 4;
    CHECK_INT(rewind_to(s, &all), STG_REWOUND);
    SHELF_UNTIL(s, t.again == 4);
    t.room = 0;
    deliver(s, 1, 256);
    CHECK_U64(cancel(s), 3);
    SHELF_UNTIL(s, t.ended == 1);
    CHECK_U64(t.cancelled, 3);
    v = newest(s);
    CHECK(v.is_cancelled);
    CHECK(!v.is_running && !v.is_cancelling);
    CHECK_U64(v.waiting, 0);
    CHECK_U64(v.cancelled, 3);
    CHECK_U64(v.sent, 1);
    CHECK_STR(shelf_ask(s, parked), "");
    CHECK_STR(shelf_ask(s, "SELECT cancelled FROM deleted_letters"), "3");
    CHECK_U64(cancel(s), UINT64_MAX);
    // And another may begin.
    t.room = 1000;
    CHECK_INT(rewind_to(s, &all), STG_REWOUND);
    SHELF_UNTIL(s, t.again == 14);
    shelf_end(s);
}

/* Flow made this group before it heard of the cancel. */
TEST(store_rewind, keeps_the_books_of_a_cancel_beside_a_group_that_comes_late)
{
    const stg_cursor before = {
        .lane = 0, .base = 3, .routed = 4, .delivered = 2, .parked = 2};
    const stg_group late = {.cursors = &before, .cursor_count = 1};
    told t;
    shelf *s = &t.shelf;

    make(&t);
    fill(&t, 2);
    CHECK_INT(rewind_to(s, &all), STG_REWOUND);
    SHELF_UNTIL(s, t.again == 2);
    t.is_busy = true;
    CHECK_U64(cancel(s), 2);
    SHELF_UNTIL(s, t.holds > 0);
    t.is_busy = false;
    SHELF_UNTIL(s, t.holds > 1);
    // The loop does not turn any more: it hears of the rows later.
    while (strcmp(shelf_ask(s, "SELECT count(*) FROM parked"), "0") != 0)
        usleep(1000);
    shelf_begin_store(s, &late);
    SHELF_UNTIL(s, t.ended == 1 && !s->is_storing);
    CHECK_STR(shelf_stands(s), "0/0 3 [] 4=2+0+2+0\n");
    shelf_end(s);
}

/* What is under way of it ends first, also over a restart. */
TEST(store_rewind, is_cancelled_when_nothing_of_it_is_under_way)
{
    told t;
    shelf *s = &t.shelf;

    make(&t);
    fill(&t, 3);
    CHECK_INT(rewind_to(s, &all), STG_REWOUND);
    SHELF_UNTIL(s, t.again == 3);
    t.is_busy = true;
    CHECK_U64(cancel(s), 3);
    SHELF_UNTIL(s, t.holds == 1);
    CHECK(newest(s).is_cancelling);
    CHECK_INT(rewind_to(s, &all), STG_REWOUND_RUNNING);
    CHECK_U64(cancel(s), 3);
    shelf_reopen(s);
    stg_store_start_rewinds(s->store);
    t.holds = 0;
    SHELF_UNTIL(s, t.holds == 1);
    t.is_busy = false;
    deliver(s, 2, 256);
    SHELF_UNTIL(s, t.ended == 1);
    CHECK_U64(t.cancelled, 2);
    CHECK_STR(shelf_ask(s, parked), "");
    CHECK(newest(s).is_cancelled);
    CHECK_U64(newest(s).sent, 1);
    shelf_end(s);
}

/* One look a second is all. */
TEST(store_rewind, asks_for_room_when_something_has_ended_and_not_by_the_clock)
{
    uint64_t until;
    told t;
    shelf *s = &t.shelf;

    make(&t);
    fill(&t, 10);
    t.room = 4;
    CHECK_INT(rewind_to(s, &all), STG_REWOUND);
    SHELF_UNTIL(s, t.again == 4);
    t.room = 0;
    t.rooms = 0;
    until = uv_hrtime() + 800 * STG_MS;
    while (uv_hrtime() < until)
        shelf_turn(s);
    CHECK(t.rooms <= 3);
    t.room = 1000;
    deliver(s, 1, 256);
    SHELF_UNTIL(s, t.again == 10);
    shelf_end(s);
}

TEST(store_rewind, sends_nothing_to_a_target_that_is_forgotten)
{
    told t;
    shelf *s = &t.shelf;

    make(&t);
    fill(&t, 10);
    t.room = 0;
    CHECK_INT(rewind_to(s, &all), STG_REWOUND);
    CHECK_INT(shelf_change(s, &(stg_change){.kind = STG_CHANGE_FORGET}),
              STG_STORED);
    t.room = 1000;
    for (int i = 0; i < 500; i++)
        shelf_turn(s);
    CHECK_U64(t.again, 0);
    CHECK_INT(shelf_lane(s, "a"), 1);
    CHECK_INT(rewind_to(s, &(stg_rewind_start){.lane = 1,
                                               .partition = STG_NO_PARTITION}),
              STG_REWOUND_NOTHING);
    shelf_end(s);
}

/* -- order */

static void put_key(shelf *s, const char *key)
{
    appending a = {.is_done = false};

    a.messages[0] = shelf_text(NULL, "body");
    a.messages[0].parcel.key = (stg_span){key, strlen(key)};
    shelf_start(s, &a, 1);
    SHELF_UNTIL(s, a.is_done);
    CHECK_INT(a.how, STG_APPENDED);
}

TEST(store_rewind, parks_a_key_when_the_one_before_it_has_ended)
{
    static const char *const keys[] = {"x", "y", "x", "z"};
    told t;
    shelf *s = &t.shelf;

    make(&t);
    t.order = STG_ORDER_KEY;
    for (size_t i = 0; i < 4; i++)
        put_key(s, keys[i]);
    stand(s, 5);
    stg_store_commit(s->store, 5);
    CHECK_INT(rewind_to(s, &all), STG_REWOUND);
    SHELF_UNTIL(s, t.again == 2);
    CHECK_STR(shelf_ask(s, parked), "1|256\n2|256");
    deliver(s, 2, 256);
    for (int i = 0; i < 100; i++)
        shelf_turn(s);
    CHECK_U64(t.again, 2);
    deliver(s, 1, 256);
    SHELF_UNTIL(s, t.again == 4);
    CHECK_STR(shelf_ask(s, parked), "3|256\n4|256");
    shelf_end(s);
}

TEST(store_rewind, parks_one_at_a_time_in_strict_order)
{
    told t;
    shelf *s = &t.shelf;

    make(&t);
    t.order = STG_ORDER_STRICT;
    fill(&t, 3);
    CHECK_INT(rewind_to(s, &all), STG_REWOUND);
    for (uint64_t i = 1; i <= 3; i++) {
        SHELF_UNTIL(s, t.again == i);
        CHECK_STR(shelf_ask(s, "SELECT count(*) FROM parked"), "1");
        deliver(s, i, 256);
    }
    SHELF_UNTIL(s, t.ended == 1);
    shelf_end(s);
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
    shelf *s = &t.shelf;

    make(&t);
    fill(&t, 2);
    CHECK_INT(resend(s, 0, 1), STG_RESENT);
    CHECK_INT(resend(s, 0, 1), STG_RESENT_WAITS);
    t.pieces = 0;
    stg_store_resend(s->store, 0, 0, 2, on_resent, &a);
    SHELF_UNTIL(s, t.pieces > 0);
    // The loop does not turn any more: it hears of the row later.
    while (strcmp(shelf_ask(s, "SELECT count(*) FROM parked"), "2") != 0)
        usleep(1000);
    shelf_begin_store(s, &late);
    SHELF_UNTIL(s, a.is_done && !s->is_storing);
    CHECK_INT(a.how, STG_RESENT);
    CHECK_STR(shelf_stands(s), "0/0 3 [] 4=2+0+0+2\n");
    shelf_end(s);
}

/* -- one message */

TEST(store_rewind, sends_one_message_again_or_says_why_not)
{
    told t;
    shelf *s = &t.shelf;

    make(&t);
    fill(&t, 3);
    CHECK_INT(resend(s, 0, 2), STG_RESENT);
    CHECK_INT(resend(s, 0, 2), STG_RESENT_WAITS);
    deliver(s, 2, 256);
    CHECK_INT(resend(s, 0, 2), STG_RESENT);
    // Each has a number of its own: a delivery of before deletes no row of now.
    CHECK_STR(shelf_ask(s, parked), "2|768");
    CHECK_INT(resend(s, 0, 9), STG_RESENT_GONE);
    CHECK_U64(t.again, 2);
    shelf_end(s);
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
    stg_store_claim(t->shelf.store, &mine, 1, on_claimed);
    SHELF_UNTIL(&t->shelf, number > 0);
    c.partition = claim.partition = number;
    CHECK_INT(shelf_store(&t->shelf, &(stg_group){.cursors = &c,
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
    shelf *s = &t.shelf;
    uint32_t number;

    make(&t);
    t.first = 7;
    t.end = 1000000;
    t.aways = 2;
    number = open_topic(&t, 800001);
    CHECK_INT(rewind_to(s, &(stg_rewind_start){.since = 799993 * STG_S}),
              STG_REWOUND);
    SHELF_UNTIL(s, t.again == 4);
    snprintf(expected, sizeof expected, "%" PRIu32 "|4|799994|800000", number);
    CHECK_STR(shelf_ask(s,
                        "SELECT partition, count(*), min(position),"
                        " max(position) FROM parked GROUP BY partition"),
              expected);
    CHECK(t.reads < 40);
    shelf_end(s);
}

TEST(store_rewind, reads_a_topic_from_its_first_message)
{
    told t;
    shelf *s = &t.shelf;
    uint32_t number;

    make(&t);
    t.first = 7;
    t.end = 20;
    number = open_topic(&t, 20);
    CHECK_INT(rewind_to(s, &all), STG_REWOUND);
    SHELF_UNTIL(s, t.again == 6);
    SHELF_POLL(s, newest(s).passed == 20);
    CHECK_INT(resend(s, number, 9), STG_RESENT_GONE);
    CHECK_INT(resend(s, number, 8), STG_RESENT_WAITS);
    t.aways = 9;
    CHECK_INT(resend(s, number, 10), STG_RESENT_AWAY);
    shelf_end(s);
}
