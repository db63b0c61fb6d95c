/* Partitions of a topic: their numbers, claims, epochs, ids. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "host/wall.h"
#include "store/dead_letters.h"
#include "tests/harness.h"
#include "tests/store/fixture.h"

typedef struct claiming {
    bool is_done;
    stg_claimed claimed;
    stg_cursor cursors[8];
    uint32_t before; /* the newest number of those */
} claiming;

static void on_claimed(void *ctx, const stg_claimed *claimed)
{
    claiming *c = ctx;

    c->claimed = *claimed;
    for (size_t i = 0; i < claimed->count && i < 8; i++)
        c->cursors[i] = claimed->cursors[i];
    if (claimed->before_count > 0)
        c->before = claimed->before[0].number;
    c->is_done = true;
}

static stg_claim_ask topic(const char *name, uint32_t partition)
{
    return (stg_claim_ask){.log = "kafka",
                           .topic = name,
                           .partition = partition,
                           .end = 1000,
                           .committed = STG_NO_POSITION,
                           .previous = STG_NO_PARTITION};
}

static claiming claim(fixture *s, stg_claim_ask ask)
{
    claiming c = {.is_done = false};

    ask.ctx = &c;
    stg_store_claim(s->store, &ask, 1, on_claimed);
    FIXTURE_UNTIL(s, c.is_done);
    return c;
}

/* A cursor of a lane in a number, written under a generation. */
static stg_stored stand(fixture *s, const claiming *c, uint32_t lane,
                        uint64_t base)
{
    stg_cursor cursor = {
        .lane = lane, .partition = c->claimed.number, .base = base};
    stg_claim mine = {.partition = c->claimed.number,
                      .generation = c->claimed.generation};

    return fixture_store(s, &(stg_group){.cursors = &cursor,
                                         .cursor_count = 1,
                                         .claims = &mine,
                                         .claim_count = 1});
}

TEST(store_claims, gives_each_partition_a_number_for_ever)
{
    claiming a, b, c;
    fixture s;

    fixture_make(&s);
    fixture_open(&s);
    a = claim(&s, topic("orders", 0));
    b = claim(&s, topic("orders", 7));
    c = claim(&s, topic("returns", 0));
    CHECK_INT(a.claimed.status, STG_OK);
    CHECK_U64(a.claimed.number, 1); // 0 is the queue
    CHECK_U64(b.claimed.number, 2);
    CHECK_U64(c.claimed.number, 3);
    CHECK_U64(a.claimed.epoch, 0);
    CHECK(!a.claimed.was_reset);
    CHECK_U64(a.claimed.count, 0);
    fixture_reopen(&s);
    CHECK_U64(claim(&s, topic("returns", 0)).claimed.number, 3);
    CHECK_U64(claim(&s, topic("orders", 0)).claimed.number, 1);
    CHECK_U64(claim(&s, topic("orders", 1)).claimed.number, 4);
    fixture_end(&s);
}

TEST(store_claims, give_the_cursors_of_the_number)
{
    claiming a, b;
    uint32_t lane;
    fixture s;

    fixture_make(&s);
    fixture_open(&s);
    lane = fixture_lane(&s, "a");
    a = claim(&s, topic("orders", 0));
    b = claim(&s, topic("orders", 1));
    CHECK_INT(stand(&s, &a, lane, 40), STG_STORED);
    CHECK_INT(stand(&s, &b, lane, 90), STG_STORED);
    a = claim(&s, topic("orders", 0));
    CHECK_U64(a.claimed.count, 1);
    CHECK_U64(a.cursors[0].lane, lane);
    CHECK_U64(a.cursors[0].base, 40);
    CHECK_U64(a.cursors[0].partition, a.claimed.number);
    fixture_end(&s);
}

/* Only a database has other hubs in it. */
static stg_stored refused(const fixture *s)
{
    return s->schema[0] != '\0' ? STG_STORED_FENCED : STG_STORED;
}

TEST(store_claims, refuse_whoever_had_the_partition_before)
{
    claiming old, new;
    uint32_t lane;
    fixture s;

    fixture_make(&s);
    fixture_open(&s);
    lane = fixture_lane(&s, "a");
    old = claim(&s, topic("orders", 0));
    CHECK_INT(stand(&s, &old, lane, 40), STG_STORED);
    new = claim(&s, topic("orders", 0));
    CHECK(new.claimed.generation > old.claimed.generation);
    CHECK_U64(new.claimed.number, old.claimed.number);
    CHECK_INT(stand(&s, &old, lane, 45), refused(&s));
    if (refused(&s) == STG_STORED_FENCED) {
        CHECK_U64(s.fenced_count, 1);
        CHECK_U64(s.fenced[0], old.claimed.number);
        CHECK_STR(fixture_stands(&s), "0/1 40 [] 0=0+0+0+0\n");
    } else { // its rows went on while the hub claimed it anew
        CHECK_U64(s.fenced_count, 0);
        CHECK_STR(fixture_stands(&s), "0/1 45 [] 0=0+0+0+0\n");
    }
    CHECK_INT(stand(&s, &new, lane, 50), STG_STORED);
    CHECK_STR(fixture_stands(&s), "0/1 50 [] 0=0+0+0+0\n");
    fixture_end(&s);
}

TEST(store_claims, refuse_all_of_a_group_for_one_partition)
{
    claiming a, b;
    fixture s;

    fixture_make(&s);
    fixture_open(&s);
    fixture_lane(&s, "a");
    a = claim(&s, topic("orders", 0));
    b = claim(&s, topic("orders", 1));
    claim(&s, topic("orders", 1));
    {
        stg_cursor cursors[] = {{.partition = 1, .base = 5},
                                {.partition = 2, .base = 6}};
        stg_claim claims[] = {{1, a.claimed.generation},
                              {2, b.claimed.generation}};
        stg_group g = {.cursors = cursors,
                       .cursor_count = 2,
                       .claims = claims,
                       .claim_count = 2};

        CHECK_INT(fixture_store(&s, &g), refused(&s));
        if (refused(&s) == STG_STORED_FENCED) {
            CHECK_U64(s.fenced_count, 1);
            CHECK_U64(s.fenced[0], 2);
            CHECK_STR(fixture_stands(&s), "");
        }
        g.cursor_count = g.claim_count = 1;
        CHECK_INT(fixture_store(&s, &g), STG_STORED);
    }
    fixture_end(&s);
}

/* -- epochs */

TEST(store_claims, begin_a_new_epoch_when_a_cursor_is_above_the_end)
{
    claiming a, b, c;
    stg_claim_ask ask = topic("orders", 0);
    fixture s;

    fixture_make(&s);
    fixture_open(&s);
    fixture_lane(&s, "a");
    a = claim(&s, ask);
    CHECK_INT(stand(&s, &a, 0, 1000), STG_STORED);
    b = claim(&s, ask); // at the end is not above it
    CHECK(!b.claimed.was_reset);
    CHECK_U64(b.claimed.number, a.claimed.number);
    ask.end = 999;
    b = claim(&s, ask);
    CHECK(b.claimed.was_reset);
    CHECK_U64(b.claimed.number, 2);
    CHECK(b.claimed.epoch != 0);
    CHECK_U64(b.claimed.count, 0);
    // Once.
    c = claim(&s, ask);
    CHECK(!c.claimed.was_reset);
    CHECK_U64(c.claimed.number, 2);
    CHECK_U64(c.claimed.epoch, b.claimed.epoch);
    fixture_end(&s);
}

/* The end is of the assignment; a hub that was frozen since claims with an old
 * one, when another has read beyond it. Records that were read tell better. */
TEST(store_claims, keep_the_epoch_of_a_fingerprint_whatever_the_end)
{
    claiming a, b;
    stg_claim_ask ask = topic("orders", 0);
    stg_known_log known = {
        .print = {.first = {.position = 5, .hash = 7},
                  .last = {.position = 1900, .at_ms = 3, .hash = 9}}};
    fixture s;

    fixture_make(&s);
    fixture_open(&s);
    fixture_lane(&s, "a");
    a = claim(&s, ask);
    known.number = a.claimed.number;
    stg_store_put_fingerprints(s.store, &known, 1);
    CHECK_INT(stand(&s, &a, 0, 2000), STG_STORED);
    b = claim(&s, ask); // its end is 1000
    CHECK(!b.claimed.was_reset);
    CHECK_U64(b.claimed.number, a.claimed.number);
    CHECK_U64(b.cursors[0].base, 2000);
    // Where they do not tell, the end does.
    ask.is_unsure = true;
    b = claim(&s, ask);
    CHECK(b.claimed.was_reset);
    CHECK_U64(b.claimed.number, 2);
    fixture_end(&s);
}

TEST(store_claims, begin_a_new_epoch_when_they_are_told_that_one_is_over)
{
    claiming a, b;
    stg_claim_ask ask = topic("orders", 0);
    fixture s;

    fixture_make(&s);
    fixture_open(&s);
    a = claim(&s, ask);
    ask.previous = a.claimed.number;
    b = claim(&s, ask);
    CHECK(b.claimed.was_reset);
    CHECK(b.claimed.number != a.claimed.number);
    // Somebody was quicker.
    CHECK_U64(claim(&s, ask).claimed.number, b.claimed.number);
    fixture_end(&s);
}

TEST(store_claims, say_where_the_group_is_if_that_is_of_the_epoch)
{
    stg_claim_ask ask = topic("orders", 0);
    claiming a;
    fixture s;

    fixture_make(&s);
    fixture_open(&s);
    fixture_lane(&s, "a");
    CHECK_U64(claim(&s, ask).claimed.floor, 0);
    ask.committed = 700;
    a = claim(&s, ask);
    CHECK_U64(a.claimed.floor, 700);
    CHECK_INT(stand(&s, &a, 0, 700), STG_STORED);
    // Cursors that hubs share count alone, where there are some.
    a = claim(&s, ask);
    CHECK_U64(a.claimed.floor, s.is_postgres ? 0 : 700);
    ask.end = 10;
    CHECK_U64(claim(&s, ask).claimed.floor, 0);
    // What was committed is of the old one, though it could be of this one.
    ask.end = 5000;
    CHECK_U64(claim(&s, ask).claimed.floor, 0);
    ask.committed = 20;
    a = claim(&s, ask);
    CHECK_U64(a.claimed.floor, 20);
    CHECK_INT(stand(&s, &a, 0, 20), STG_STORED);
    CHECK_U64(claim(&s, ask).claimed.floor, s.is_postgres ? 0 : 20);
    fixture_end(&s);
}

/* -- fingerprints */

typedef struct known {
    bool is_done;
    size_t count;
    char topics[100][8];
    stg_known_log all[100];
} known;

static void on_known(void *ctx, const stg_known_log *all, size_t count)
{
    known *k = ctx;

    k->is_done = true;
    k->count = count;
    for (size_t i = 0; i < count && i < 100; i++) {
        snprintf(k->topics[i], sizeof k->topics[i], "%s", all[i].topic);
        k->all[i] = all[i];
    }
}

static const known *known_logs(fixture *s)
{
    static known k;

    k.is_done = false;
    stg_store_known_logs(s->store, "kafka", on_known, &k);
    FIXTURE_UNTIL(s, k.is_done);
    return &k;
}

TEST(store_claims, keep_the_fingerprint_of_the_newest_number)
{
    stg_claim_ask ask = topic("b", 1);
    stg_known_log log = {.print = {.begin = 5,
                                   .first = {7, 70, UINT64_MAX - 1},
                                   .last = {9, 90, 900}}};
    const known *k;
    fixture s;

    fixture_make(&s);
    fixture_open(&s);
    CHECK_U64(known_logs(&s)->count, 0);
    log.number = claim(&s, ask).claimed.number;
    for (uint32_t i = 0; i < 69; i++)
        claim(&s, topic("c", i));
    stg_store_put_fingerprints(s.store, &log, 1);
    log.print.last.position = 10;
    stg_store_put_fingerprints(s.store, &log, 1);
    FIXTURE_POLL(&s, known_logs(&s)->all[0].print.last.position == 10);
    k = known_logs(&s);
    CHECK_U64(k->count, 70);
    CHECK_STR(k->topics[0], "b");
    CHECK_U64(k->all[0].partition, 1);
    CHECK_U64(k->all[0].number, log.number);
    CHECK(memcmp(&k->all[0].print, &log.print, sizeof log.print) == 0);
    CHECK_STR(k->topics[69], "c");
    CHECK_U64(k->all[69].partition, 68);
    CHECK(!stg_fingerprint_is_known(&k->all[69].print));
    // Of a topic that was made again there is none yet.
    ask.previous = log.number;
    log.number = claim(&s, ask).claimed.number;
    k = known_logs(&s);
    CHECK_U64(k->count, 70);
    CHECK_U64(k->all[0].number, log.number);
    CHECK(!stg_fingerprint_is_known(&k->all[0].print));
    fixture_end(&s);
}

/* -- ids */

TEST(store_claims, make_ids_that_are_found_again)
{
    char id[STG_MESSAGE_ID_MAX], expected[STG_MESSAGE_ID_MAX];
    stg_claim_ask ask = topic("orders.eu-1", 3);
    uint64_t position = 0;
    uint32_t number = 0;
    claiming b;
    fixture s;

    fixture_make(&s);
    fixture_open(&s);
    ask.previous = claim(&s, ask).claimed.number;
    b = claim(&s, ask);
    CHECK_STR(stg_store_id(s.store, 1, 1042, id), "orders.eu-1.3.1042");
    snprintf(expected, sizeof expected, "orders.eu-1.3.0.%016" PRIx64,
             b.claimed.epoch);
    CHECK_STR(stg_store_id(s.store, 2, 0, id), expected);
    CHECK(stg_store_find_id(s.store, "orders.eu-1.3.1042", &number, &position));
    CHECK_U64(number, 1);
    CHECK_U64(position, 1042);
    CHECK(stg_store_find_id(s.store, expected, &number, &position));
    // Of a record that was not read yet: by the newest number, or the first.
    CHECK_STR(stg_store_record_id(s.store, ask.log, ask.topic, 4, 7, id),
              "orders.eu-1.4.7");
    CHECK_STR(stg_store_record_id(s.store, ask.log, ask.topic, 3, 0, id),
              expected);
    CHECK_U64(number, 2);
    CHECK_U64(position, 0);
    CHECK(!stg_store_find_id(s.store, "orders.eu-1.4.1", &number, &position));
    CHECK(!stg_store_find_id(s.store, "orders.3.1", &number, &position));
    CHECK(!stg_store_find_id(s.store, "orders.eu-1.3.", &number, &position));
    CHECK(!stg_store_find_id(s.store, "orders.eu-1.3.007", &number, &position));
    CHECK(!stg_store_find_id(s.store, "orders.eu-1.3.1.00000000000000aa",
                             &number, &position));
    CHECK(!stg_store_find_id(s.store, "orders.eu-1.3.1x", &number, &position));
    fixture_end(&s);
}

typedef struct listing {
    char text[512];
} listing;

static void list(void *ctx, const stg_store_partition *p)
{
    listing *l = ctx;
    size_t size = strlen(l->text);

    snprintf(l->text + size, sizeof l->text - size, "%u=%s/%s.%u ", p->number,
             p->log, p->topic, p->partition);
}

TEST(store_claims, are_known_after_a_restart)
{
    listing l = {.text = ""};
    fixture s;

    fixture_make(&s);
    fixture_open(&s);
    claim(&s, topic("b", 1));
    claim(&s, topic("a", 0));
    fixture_reopen(&s);
    stg_store_partitions(s.store, list, &l);
    CHECK_STR(l.text, "1=kafka/b.1 2=kafka/a.0 ");
    fixture_end(&s);
}

TEST(store_claims, name_dead_letters_by_topic_and_offset)
{
    stg_failure failure = fixture_failure(400, STG_WHY_PERMANENT);
    claiming a;
    fixture s;

    fixture_make(&s);
    fixture_open(&s);
    fixture_lane(&s, "a");
    a = claim(&s, topic("orders", 4));
    CHECK_INT(fixture_change(
                  &s, &(stg_change){.kind = STG_CHANGE_DEAD,
                                    .partition = a.claimed.number,
                                    .position = 17,
                                    .message = fixture_message(&s, 17, "body"),
                                    .failure = &failure}),
              STG_STORED);
    CHECK_STR(fixture_ask(&s, "SELECT message_id FROM failed_broadcast_logs"),
              "orders.4.17");
    fixture_end(&s);
}

TEST(store_claims, note_what_the_log_had_lost)
{
    stg_change lost = {.kind = STG_CHANGE_RANGE,
                       .partition = 1,
                       .position = 10,
                       .last_position = 19,
                       .count = 10,
                       .replay = STG_REPLAY_LOST,
                       .is_expired = true};
    fixture s;

    fixture_make(&s);
    fixture_open(&s);
    fixture_lane(&s, "a");
    claim(&s, topic("orders", 4));
    CHECK_INT(fixture_change(&s, &lost), STG_STORED);
    lost.last_position = 24;
    lost.count = 15;
    CHECK_INT(fixture_change(&s, &lost), STG_STORED);
    CHECK_STR(fixture_ask(&s,
                          "SELECT state, why, cause, position, last_position,"
                          " count, message_id FROM failed_broadcast_logs"),
              "expired|expired|EXPIRED|10|24|15|orders.4.10");
    fixture_end(&s);
}

static void count_letters(void *ctx, const stg_letter *letters, size_t count,
                          uint64_t next)
{
    (void)next;
    for (size_t i = 0; i < count; i++)
        CHECK_U64(letters[i].replay, 0);
    *(size_t *)ctx = count;
}

/* A message that was shed, or that died, may be where the loss begins. */
TEST(store_claims, note_what_the_log_had_lost_beside_what_ended_there)
{
    stg_failure failure = fixture_failure(500, STG_WHY_PERMANENT);
    stg_change shed = {.kind = STG_CHANGE_RANGE,
                       .partition = 1,
                       .position = 10,
                       .last_position = 14,
                       .count = 5};
    stg_change lost = {.kind = STG_CHANGE_RANGE,
                       .partition = 1,
                       .position = 10,
                       .last_position = 19,
                       .count = 10,
                       .replay = STG_REPLAY_LOST,
                       .is_expired = true};
    stg_change dead = {.kind = STG_CHANGE_DEAD,
                       .partition = 1,
                       .position = 30,
                       .failure = &failure};
    size_t count = SIZE_MAX;
    fixture s;

    fixture_make(&s);
    fixture_open(&s);
    fixture_lane(&s, "a");
    claim(&s, topic("orders", 4));
    CHECK_INT(fixture_change(&s, &shed), STG_STORED);
    CHECK_INT(fixture_change(&s, &lost), STG_STORED);
    CHECK_INT(fixture_change(&s, &lost), STG_STORED); // a second time
    dead.message = fixture_message(&s, 30, "body");
    CHECK_INT(fixture_change(&s, &dead), STG_STORED);
    lost.position = 30;
    lost.last_position = 39;
    CHECK_INT(fixture_change(&s, &lost), STG_STORED);
    CHECK_STR(fixture_ask(&s,
                          "SELECT state, position, last_position, count, replay"
                          " FROM failed_broadcast_logs ORDER BY id"),
              "dead|10|14|5|0\n"
              "expired|10|19|10|2147483647\n"
              "dead|30||1|0\n"
              "expired|30|39|10|2147483647");
    // The number is no replay, and nobody is shown it.
    stg_store_letters(s.store, &(stg_letter_filter){.id_count = 0}, 0, 9, false,
                      count_letters, &count);
    FIXTURE_UNTIL(&s, count != SIZE_MAX);
    CHECK_U64(count, 4);
    fixture_end(&s);
}

/* -- rows */

static void park(fixture *s, uint32_t number, uint64_t position, stg_ns due_at)
{
    stg_failure failure = fixture_failure(503, STG_WHY_BACKOFF);
    stg_change c = {.kind = STG_CHANGE_PARK,
                    .partition = number,
                    .position = position,
                    .message = fixture_message(s, position, "body"),
                    .failure = &failure,
                    .progress = {.attempts = 1},
                    .wait = 60 * STG_S,
                    .due_at = due_at};

    CHECK_INT(fixture_change(s, &c), STG_STORED);
}

TEST(store_claims, have_rows_wait_no_longer_than_decided_by_a_clock_set_back)
{
    stg_ns wall = stg_wall_now();
    stg_mark mark = {.due_at = 0};
    fixture s;

    fixture_make(&s);
    fixture_open(&s);
    fixture_lane(&s, "a");
    claim(&s, topic("orders", 0));
    park(&s, 1, 5, wall + 3600 * STG_S);
    park(&s, 1, 6, wall + 30 * STG_S);
    park(&s, 1, 7, 100);
    fixture_reopen(&s);
    claim(&s, topic("orders", 0));
    fixture_fetch(&s, 0, &mark, 9);
    CHECK_U64(mark.position, 5);
    // Its wait is a minute, from the moment of opening.
    CHECK(mark.due_at >= wall + 60 * STG_S && mark.due_at < wall + STG_HOUR);
    mark = (stg_mark){.due_at = 0};
    fixture_fetch(&s, 0, &mark, 2);
    CHECK_U64(mark.due_at, wall + 30 * STG_S);
    fixture_end(&s);
}

TEST(store_claims, leave_rows_to_whoever_has_the_partition)
{
    stg_mark mark = {.due_at = 0};
    fixture s;

    fixture_make(&s);
    fixture_open(&s);
    fixture_lane(&s, "a");
    claim(&s, topic("orders", 0));
    claim(&s, topic("orders", 1));
    park(&s, 1, 5, 100);
    park(&s, 2, 6, 101);
    CHECK_STR(fixture_fetch(&s, 0, &mark, 9), "5@100:body 6@101:body");
    stg_store_unclaim(s.store, 1);
    mark = (stg_mark){.due_at = 0};
    CHECK_STR(fixture_fetch(&s, 0, &mark, 9),
              s.is_postgres ? "6@101:body" : "5@100:body 6@101:body");
    fixture_reopen(&s);
    mark = (stg_mark){.due_at = 0};
    CHECK_STR(fixture_fetch(&s, 0, &mark, 9),
              s.is_postgres ? "" : "5@100:body 6@101:body");
    CHECK_U64(claim(&s, topic("orders", 1)).claimed.number, 2);
    mark = (stg_mark){.due_at = 0};
    CHECK_STR(fixture_fetch(&s, 0, &mark, 9),
              s.is_postgres ? "6@101:body" : "5@100:body 6@101:body");
    fixture_end(&s);
}

TEST(store_claims, bring_the_rows_of_epochs_that_are_over)
{
    stg_claim_ask ask = topic("orders", 0);
    stg_mark mark = {.due_at = 0};
    claiming a;
    fixture s;

    fixture_make(&s);
    fixture_open(&s);
    fixture_lane(&s, "a");
    ask.previous = claim(&s, ask).claimed.number;
    park(&s, 1, 5, 100);
    a = claim(&s, ask);
    CHECK_U64(a.claimed.number, 2);
    CHECK_U64(a.claimed.before_count, s.is_postgres ? 1 : 0);
    CHECK_U64(a.before, s.is_postgres ? 1 : 0);
    fixture_reopen(&s);
    claim(&s, topic("orders", 0));
    CHECK_STR(fixture_fetch(&s, 0, &mark, 9), "5@100:body");
    fixture_end(&s);
}

TEST(store_claims, bring_the_letters_of_epochs_that_are_over_to_be_sent_again)
{
    stg_failure failure = fixture_failure(500, STG_WHY_PERMANENT);
    stg_claim_ask ask = topic("orders", 0);
    stg_change dead = {.kind = STG_CHANGE_DEAD,
                       .partition = 1,
                       .position = 5,
                       .failure = &failure};
    fixture s;

    fixture_make(&s);
    fixture_open(&s);
    fixture_lane(&s, "a");
    ask.previous = claim(&s, ask).claimed.number;
    dead.message = fixture_message(&s, 5, "body");
    CHECK_INT(fixture_change(&s, &dead), STG_STORED);
    CHECK_U64(claim(&s, ask).claimed.before_count, 0);
    if (s.is_postgres) { // there it is asked for in the row
        fixture_ask(&s, "UPDATE failed_broadcast_logs SET is_requested = 1");
        CHECK_U64(claim(&s, topic("orders", 0)).before, 1);
        FIXTURE_POLL(&s, strcmp(fixture_ask(&s, "SELECT count(*) FROM parked"),
                                "1") == 0);
    }
    fixture_end(&s);
}
