/* Replay and drop, and the books meanwhile. */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "store/dead_letters.h"
#include "tests/harness.h"
#include "tests/store/fixture.h"

/* What the store told, and what it is told. */
typedef struct told {
    fixture fixture; /* first: the store's ctx is a fixture */
    uint64_t replayed[4];
    uint64_t room;
    unsigned times_asked; /* for it */
    bool is_unknown;      /* target b */
    bool is_paused;       /* likewise */
    const char *unwanted; /* key of messages that targets do not want */
    bool gains_filter;    /* of bodies, while the first messages are read */
    int bodies_asked;
} told;

static void on_replayed(void *ctx, uint32_t lane, uint32_t partition,
                        uint64_t count, bool is_again)
{
    told *t = ctx;

    CHECK(!is_again);
    CHECK(lane < 4);
    CHECK_INT(partition, 0);
    t->replayed[lane] += count;
}

static uint64_t room(void *ctx, uint32_t lane)
{
    told *t = ctx;
    uint64_t used = lane < 4 ? t->replayed[lane] : 0;

    t->times_asked++;

    return t->room > used ? t->room - used : 0;
}

static bool knows(void *ctx, uint32_t lane)
{
    return lane != 1 || !((const told *)ctx)->is_unknown;
}

static bool is_paused(void *ctx, uint32_t lane)
{
    return lane == 1 && ((const told *)ctx)->is_paused;
}

static bool wants(void *ctx, uint32_t lane, const stg_parcel *p)
{
    const told *t = ctx;

    (void)lane;
    CHECK_INT(p->body.size, t->gains_filter ? 4 : 0);
    return t->unwanted == NULL || p->key.size != strlen(t->unwanted) ||
           memcmp(p->key.at, t->unwanted, p->key.size) != 0;
}

/* From the second time on, as after a reload. */
static bool wants_body(void *ctx, uint32_t lane)
{
    told *t = ctx;

    (void)lane;
    return t->gains_filter && t->bodies_asked++ > 0;
}

static void make(told *t)
{
    memset(t, 0, sizeof *t);
    fixture_make(&t->fixture);
    t->room = UINT64_MAX;
    t->fixture.options.replayed = on_replayed;
    t->fixture.options.room = room;
    t->fixture.options.knows = knows;
    t->fixture.options.is_paused = is_paused;
    t->fixture.options.wants = wants;
    t->fixture.options.wants_body = wants_body;
    fixture_open(&t->fixture);
    CHECK_INT(fixture_lane(&t->fixture, "a"), 0);
    CHECK_INT(fixture_lane(&t->fixture, "b"), 1);
}

static stg_change dead(fixture *s, uint32_t lane, uint64_t position,
                       const stg_failure *failure)
{
    return (stg_change){.kind = STG_CHANGE_DEAD,
                        .lane = lane,
                        .position = position,
                        .message = fixture_message(s, position, "body"),
                        .failure = failure,
                        .progress = {.attempts = 3}};
}

/* Dead letters of a lane at positions from 1 on, and its books. */
static void die(fixture *s, uint32_t lane, uint64_t count)
{
    stg_failure failure = fixture_failure(500, STG_WHY_PERMANENT);
    stg_cursor c = {
        .lane = lane, .base = count + 1, .routed = count, .dead = count};
    stg_change changes[200];

    CHECK(count <= 200);
    for (uint64_t i = 0; i < count; i++)
        changes[i] = dead(s, lane, i + 1, &failure);
    CHECK_INT(fixture_store(s, &(stg_group){.changes = changes,
                                            .change_count = count,
                                            .cursors = &c,
                                            .cursor_count = 1}),
              STG_STORED);
}

typedef struct sum {
    bool is_done;
    stg_letters_sum s;
    char text[160];
} sum;

static const char *const ends[] = {[STG_LETTERS_DONE] = "done",
                                   [STG_LETTERS_HELD] = "held",
                                   [STG_LETTERS_AWAY] = "away",
                                   [STG_LETTERS_FULL] = "full",
                                   [STG_LETTERS_STOPPED] = "stopped"};

static void on_sum(void *ctx, const stg_letters_sum *s)
{
    sum *to = ctx;

    to->is_done = true;
    to->s = *s;
    snprintf(to->text, sizeof to->text,
             "%s%s%s: %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64,
             ends[s->end], s->held == NULL ? "" : " ",
             s->held == NULL ? "" : s->held, s->letters, s->messages,
             s->expired, s->forgotten);
    if (s->orphaned > 0 || s->paused > 0)
        snprintf(
            to->text + strlen(to->text), sizeof to->text - strlen(to->text),
            ", orphaned %" PRIu64 ", paused %" PRIu64, s->orphaned, s->paused);
}

static const char *replay(fixture *s, const stg_letter_filter *f, bool is_dry)
{
    static sum done;

    done.is_done = false;
    stg_store_replay(s->store, f, is_dry, on_sum, &done);
    FIXTURE_UNTIL(s, done.is_done);
    return done.text;
}

static const char *drop(fixture *s, const stg_letter_filter *f, bool is_dry)
{
    static sum done;

    done.is_done = false;
    stg_store_drop(s->store, f, is_dry, on_sum, &done);
    FIXTURE_UNTIL(s, done.is_done);
    return done.text;
}

static const stg_letter_filter any = {.id_count = 0};

static const char states[] =
    "SELECT state, count(*), sum(count), count(payload)"
    " FROM failed_broadcast_logs GROUP BY state ORDER BY state";

static const char parked[] =
    "SELECT lane, position, replay, attempts, attempts_before, has_failure,"
    " CAST(body AS TEXT), key, content_type FROM parked ORDER BY lane, position";

/* -- one by one */

TEST(store_replay, parks_a_letter_anew_with_all_that_it_was)
{
    stg_mark mark = {.due_at = 0};
    told t;
    fixture *s = &t.fixture;

    make(&t);
    die(s, 0, 2);
    CHECK_STR(
        replay(s, &(stg_letter_filter){.ids = (uint64_t[]){2}, .id_count = 1},
               false),
        "done: 1 1 0 0");
    CHECK_U64(t.replayed[0], 1);
    CHECK_STR(fixture_ask(s, states), "dead|1|1|1\nreplayed|1|1|0");
    CHECK_STR(fixture_ask(s, parked), "0|2|1|0|3|0|body|k|text/plain");
    // Due now.
    CHECK(strstr(fixture_fetch_replays(s, 0, &mark, 9), ":body") != NULL);
    CHECK(mark.due_at > 1700000000 * STG_S);
    CHECK_STR(fixture_stands(s), "0/0 3 [] 2=0+1+0+1\n");
    fixture_end(s);
}

TEST(store_replay, counts_attempts_over_all_replays)
{
    stg_failure failure = fixture_failure(503, STG_WHY_ATTEMPTS);
    told t;
    fixture *s = &t.fixture;
    stg_change c;

    make(&t);
    die(s, 0, 1);
    replay(s, &any, false);
    c = dead(s, 0, 1, &failure);
    c.replay = 1;
    c.progress.attempts = 2;
    c.attempts_before = 3;
    // It is parked once more before.
    c.kind = STG_CHANGE_PARK;
    CHECK_INT(fixture_change(s, &c), STG_STORED);
    CHECK_STR(fixture_ask(s, "SELECT attempts, attempts_before FROM parked"),
              "2|3");
    c.kind = STG_CHANGE_DEAD;
    CHECK_INT(fixture_change(s, &c), STG_STORED);
    CHECK_STR(fixture_ask(s,
                          "SELECT id, replay, attempts, state"
                          " FROM failed_broadcast_logs"),
              "1|0|3|replayed\n2|1|5|dead");
    CHECK_STR(replay(s, &any, false), "done: 1 1 0 0");
    CHECK_STR(fixture_ask(s, parked), "0|1|2|0|5|0|body|k|text/plain");
    fixture_end(s);
}

TEST(store_replay, finds_nothing_to_do_the_second_time)
{
    told t;
    fixture *s = &t.fixture;

    make(&t);
    die(s, 0, 3);
    CHECK_STR(replay(s, &any, false), "done: 3 3 0 0");
    CHECK_STR(replay(s, &any, false), "done: 0 0 0 0");
    CHECK_STR(drop(s, &any, false), "done: 0 0 0 0");
    CHECK_STR(replay(s, &(stg_letter_filter){.state = "replayed"}, false),
              "done: 0 0 0 0");
    CHECK_U64(t.replayed[0], 3);
    fixture_end(s);
}

/* Of 300 letters, more than are found at once, ten are sent. */
static void begin_large(told *t, sum *done)
{
    fixture *s = &t->fixture;

    *done = (sum){.is_done = false};
    make(t);
    die(s, 0, 200);
    die(s, 1, 100);
    t->room = 10;
    stg_store_replay(s->store, &any, false, on_sum, done);
    FIXTURE_UNTIL(s, t->replayed[0] == 10);
}

/* The first of what was sent is dead again. */
static void end_large(told *t, sum *done, const char *text)
{
    stg_failure failure = fixture_failure(503, STG_WHY_ATTEMPTS);
    fixture *s = &t->fixture;
    stg_change c = dead(s, 0, 1, &failure);

    c.replay = 1;
    CHECK_INT(fixture_change(s, &c), STG_STORED);
    t->room = UINT64_MAX;
    FIXTURE_UNTIL(s, done->is_done);
    CHECK_STR(done->text, text);
    CHECK_STR(fixture_ask(s,
                          "SELECT id, replay FROM failed_broadcast_logs"
                          " WHERE state = 'dead'"),
              "301|1");
    s->is_made_up = true;
    fixture_end(s);
}

/* What is sent again ends badly, and would be sent again without an end. */
TEST(store_replay, leaves_letters_alone_that_were_made_since_it_began)
{
    sum done;
    told t;

    begin_large(&t, &done);
    end_large(&t, &done, "done: 300 300 0 0");
}

/* Also where nothing else is left of a page: 256 are found at once, and the other ones
 * are dropped meanwhile. */
TEST(store_replay, ends_where_only_letters_are_left_that_are_newer)
{
    uint64_t ids[44];
    sum done;
    told t;

    for (uint64_t i = 0; i < 44; i++)
        ids[i] = 257 + i;
    begin_large(&t, &done);
    CHECK_STR(drop(&t.fixture, &(stg_letter_filter){.ids = ids, .id_count = 44},
                   false),
              "done: 44 44 0 0");
    end_large(&t, &done, "done: 256 256 0 0");
}

/* Otherwise the message would be sent once for both, and the letter would be gone. */
TEST(store_replay, leaves_a_letter_whose_message_waits_already)
{
    stg_failure failure = fixture_failure(503, STG_WHY_BACKOFF);
    told t;
    fixture *s = &t.fixture;
    stg_change c;

    make(&t);
    die(s, 0, 2);
    c = dead(s, 0, 1, &failure);
    c.kind = STG_CHANGE_PARK;
    c.replay = 1;
    CHECK_INT(fixture_change(s, &c), STG_STORED);
    CHECK_STR(replay(s, &any, false), "done: 1 1 0 0");
    CHECK_U64(t.replayed[0], 1);
    CHECK_STR(fixture_ask(s,
                          "SELECT id, state FROM failed_broadcast_logs"
                          " ORDER BY id"),
              "1|dead\n2|replayed");
    CHECK_STR(fixture_ask(s, "SELECT count(*) FROM parked"), "2");
    s->is_made_up = true;
    fixture_end(s);
}

TEST(store_replay, changes_nothing_when_it_is_dry)
{
    told t;
    fixture *s = &t.fixture;

    make(&t);
    die(s, 0, 3);
    die(s, 1, 2);
    CHECK_STR(replay(s, &any, true), "done: 5 5 0 0");
    CHECK_STR(replay(s, &(stg_letter_filter){.target = "b"}, true),
              "done: 2 2 0 0");
    CHECK_STR(drop(s, &any, true), "done: 5 5 0 0");
    CHECK_STR(fixture_ask(s, states), "dead|5|5|5");
    CHECK_STR(fixture_ask(s, parked), "");
    fixture_end(s);
}

TEST(store_replay, does_nothing_for_a_target_that_was_removed)
{
    stg_change forget = {.kind = STG_CHANGE_FORGET, .lane = 0};
    told t;
    fixture *s = &t.fixture;

    make(&t);
    die(s, 0, 2);
    die(s, 1, 1);
    CHECK_INT(fixture_change(s, &forget), STG_STORED);
    CHECK_STR(replay(s, &any, true), "done: 1 1 0 2");
    CHECK_STR(replay(s, &any, false), "done: 1 1 0 2");
    CHECK_STR(drop(s, &any, false), "done: 2 2 0 0");
    fixture_end(s);
}

TEST(store_replay, that_is_watched_has_its_sum_so_far)
{
    sum all = {.is_done = false};
    stg_letters_sum so_far = {.letters = 0};
    told t;
    fixture *s = &t.fixture;

    make(&t);
    die(s, 0, 200);
    t.room = 150;
    stg_store_replay_watched(s->store, &any, &so_far, on_sum, &all);
    FIXTURE_UNTIL(s, so_far.letters == 150);
    CHECK(!all.is_done);
    CHECK_U64(so_far.messages, 150);
    t.room = UINT64_MAX;
    FIXTURE_UNTIL(s, all.is_done);
    CHECK_STR(all.text, "done: 200 200 0 0");
    CHECK(so_far.held == NULL);
    fixture_end(s);
}

TEST(store_replay, or_drop_takes_a_letter_and_not_both)
{
    sum sums[3] = {{.is_done = false}};
    uint64_t ids[100];
    told t;
    fixture *s = &t.fixture;

    make(&t);
    die(s, 0, 200);
    for (uint64_t i = 0; i < 100; i++)
        ids[i] = 101 + i;
    // A double click, and somebody who drops the second half meanwhile, a part
    // of which there is no room to replay.
    t.room = 150;
    stg_store_replay(s->store, &any, false, on_sum, &sums[0]);
    stg_store_replay(s->store, &any, false, on_sum, &sums[1]);
    stg_store_drop(s->store, &(stg_letter_filter){.ids = ids, .id_count = 100},
                   false, on_sum, &sums[2]);
    FIXTURE_UNTIL(s, sums[2].is_done);
    t.room = UINT64_MAX;
    for (int i = 0; i < 2; i++)
        FIXTURE_UNTIL(s, sums[i].is_done);
    CHECK_U64(sums[0].s.letters + sums[1].s.letters, t.replayed[0]);
    CHECK_U64(t.replayed[0] + sums[2].s.letters, 200);
    CHECK(t.replayed[0] >= 100 && t.replayed[0] <= 150);
    CHECK_STR(fixture_ask(s,
                          "SELECT (SELECT count(*) FROM parked) ="
                          " (SELECT count(*) FROM failed_broadcast_logs"
                          " WHERE state = 'replayed'), (SELECT count(*) FROM"
                          " failed_broadcast_logs WHERE state = 'dead')"),
              "1|0");
    fixture_end(s);
}

/* -- drop */

TEST(store_replay, drop_gives_up_letters_with_their_payload)
{
    told t;
    fixture *s = &t.fixture;

    make(&t);
    die(s, 0, 3);
    CHECK_STR(
        drop(s, &(stg_letter_filter){.ids = (uint64_t[]){1, 3}, .id_count = 2},
             false),
        "done: 2 2 0 0");
    CHECK_STR(fixture_ask(s, states), "dead|1|1|1\ndropped|2|2|0");
    // They stay among the dead of the books.
    CHECK_STR(fixture_stands(s), "0/0 4 [] 3=0+3+0+0\n");
    CHECK_STR(fixture_ask(s, parked), "");
    fixture_end(s);
}

/* -- what a record of a topic was */

static void say_source(char text[64], stg_span key, stg_span headers)
{
    size_t at = 0;

    for (size_t i = 0; i < key.size; i++)
        at += (size_t)sprintf(text + at, "%02x", (unsigned char)key.at[i]);
    snprintf(text + at, 64 - at, " %s%.*s", headers.at == NULL ? "none" : "",
             (int)headers.size, headers.at == NULL ? "" : headers.at);
}

static void on_source(void *ctx, const stg_letter *l)
{
    CHECK(l != NULL);
    say_source(ctx, l->source_key, l->source_headers);
}

static const char *source_of_letter(fixture *s, uint64_t id)
{
    static char text[64];

    text[0] = '\0';
    stg_store_letter(s->store, id, on_source, text);
    FIXTURE_UNTIL(s, text[0] != '\0');
    return text;
}

static void on_sources(void *ctx, uint32_t lane, bool is_replay,
                       const stg_parked_row *rows, size_t count, bool is_all)
{
    stg_parcel p;

    (void)lane;
    (void)is_replay;
    (void)is_all;
    CHECK_INT(count, 1);
    CHECK(stg_parcel_unpack(&p, rows->record.bytes, rows->record.size));
    say_source(ctx, p.source_key, p.source_headers);
}

static const char *source_of_parked(fixture *s, bool is_replay)
{
    static char text[64];

    text[0] = '\0';
    stg_store_fetch(s->store, 0, is_replay, &(stg_mark){.due_at = 0}, 9,
                    on_sources, text);
    FIXTURE_UNTIL(s, text[0] != '\0');
    return text;
}

/* As it is parked, dies, is replayed, and dies again; over a restart. */
TEST(store_replay, keeps_the_key_and_the_headers_of_a_record)
{
    stg_failure failure = fixture_failure(503, STG_WHY_ATTEMPTS);
    told t;
    fixture *s = &t.fixture;
    stg_change c;

    make(&t);
    c = dead(s, 0, 1, &failure);
    c.kind = STG_CHANGE_PARK;
    c.message = fixture_record(s, 1, "body", "headers");
    CHECK_INT(fixture_change(s, &c), STG_STORED);
    CHECK_STR(source_of_parked(s, false), "00ff0a headers");
    fixture_reopen(s);
    c.kind = STG_CHANGE_DEAD;
    CHECK_INT(fixture_change(s, &c), STG_STORED);
    CHECK_STR(source_of_letter(s, 1), "00ff0a headers");
    CHECK_STR(replay(s, &any, false), "done: 1 1 0 0");
    CHECK_STR(source_of_parked(s, true), "00ff0a headers");
    c.replay = 1;
    CHECK_INT(fixture_change(s, &c), STG_STORED);
    CHECK_STR(source_of_letter(s, 2), "00ff0a headers");
    // Nothing of it is left but its key, and so the partition of its copy.
    CHECK_STR(drop(s, &any, false), "done: 1 1 0 0");
    CHECK_STR(source_of_letter(s, 2), "00ff0a none");
    // One that was never parked, and had no headers; and one that had no record.
    c = dead(s, 0, 2, &failure);
    c.message = fixture_record(s, 2, "body", "");
    CHECK_INT(fixture_change(s, &c), STG_STORED);
    CHECK_STR(source_of_letter(s, 3), "00ff0a ");
    c = dead(s, 0, 3, &failure);
    CHECK_INT(fixture_change(s, &c), STG_STORED);
    CHECK_STR(source_of_letter(s, 4), " none");
    fixture_end(s);
}

/* -- bulk rows */

static void shed(fixture *s, uint32_t lane, uint64_t first, uint64_t last,
                 uint64_t count)
{
    stg_change c = {.kind = STG_CHANGE_RANGE,
                    .lane = lane,
                    .position = first,
                    .last_position = last,
                    .count = count};
    stg_cursor cursor = {
        .lane = lane, .base = last + 1, .routed = count, .dead = count};

    CHECK_INT(fixture_store(s, &(stg_group){.changes = &c,
                                            .change_count = 1,
                                            .cursors = &cursor,
                                            .cursor_count = 1}),
              STG_STORED);
}

static void put(fixture *s, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        fixture_put(s, NULL, "body");
}

static const char ranges[] =
    "SELECT position, last_position, count, state FROM failed_broadcast_logs"
    " WHERE last_position IS NOT NULL ORDER BY id";

TEST(queue_replay, eats_a_range_row_from_its_front)
{
    told t;
    fixture *s = &t.fixture;

    make(&t);
    put(s, 600);
    shed(s, 0, 11, 590, 580);
    CHECK_STR(replay(s, &any, true), "done: 1 580 0 0");
    CHECK_STR(replay(s, &any, false), "done: 1 580 0 0");
    CHECK_U64(t.replayed[0], 580);
    CHECK_STR(fixture_ask(s, "SELECT state, count FROM failed_broadcast_logs"),
              "replayed|580");
    CHECK_STR(fixture_ask(s,
                          "SELECT count(*), min(position), max(position),"
                          " count(DISTINCT position), max(replay),"
                          " CAST(min(body) AS TEXT) FROM parked"),
              "580|11|590|580|1|body");
    CHECK_STR(fixture_stands(s), "0/0 591 [] 580=0+0+0+580\n");
    fixture_end(s);
}

TEST(queue_replay, shows_bodies_to_a_filter_that_came_while_it_read)
{
    told t;
    fixture *s = &t.fixture;

    make(&t);
    t.gains_filter = true;
    put(s, 20);
    shed(s, 0, 11, 20, 10);
    CHECK_STR(replay(s, &any, false), "done: 1 10 0 0");
    CHECK_U64(t.replayed[0], 10);
    fixture_end(s);
}

TEST(queue_replay, finds_what_never_reached_its_target_once)
{
    const stg_letter_filter unreached = {.is_unreached = true};
    stg_failure answered = fixture_failure(503, STG_WHY_ATTEMPTS);
    stg_failure refused = fixture_failure(0, STG_WHY_PERMANENT);
    told t;
    fixture *s = &t.fixture;
    stg_change c;

    make(&t);
    put(s, 20);
    refused.outcome = stg_failed(STG_FAULT_REFUSED);
    c = dead(s, 0, 1, &answered);
    CHECK_INT(fixture_change(s, &c), STG_STORED);
    c = dead(s, 0, 2, &refused);
    CHECK_INT(fixture_change(s, &c), STG_STORED);
    c = dead(s, 0, 3, &refused);
    c.replay = 1;
    CHECK_INT(fixture_change(s, &c), STG_STORED);
    shed(s, 0, 11, 20, 10);
    CHECK_STR(replay(s, &unreached, false), "done: 2 11 0 0");
    CHECK_STR(fixture_ask(s,
                          "SELECT position FROM failed_broadcast_logs"
                          " WHERE state = 'dead' ORDER BY position"),
              "1\n3");
    CHECK_STR(replay(s, &unreached, false), "done: 0 0 0 0");
    s->is_made_up = true;
    fixture_end(s);
}

/* Of a row of one message, or of many. */
TEST(queue_replay, ends_after_so_many_messages)
{
    const stg_letter_filter one = {.messages_max = 1},
                            three = {.messages_max = 3};
    told t;
    fixture *s = &t.fixture;

    make(&t);
    put(s, 20);
    die(s, 0, 2);
    shed(s, 0, 3, 20, 18);
    CHECK_STR(replay(s, &one, false), "done: 1 1 0 0");
    CHECK_STR(replay(s, &three, false), "done: 2 3 0 0");
    CHECK_STR(replay(s, &one, false), "done: 1 1 0 0");
    CHECK_STR(fixture_ask(s, ranges), "6|20|15|dead");
    CHECK_STR(replay(s, &any, false), "done: 1 15 0 0");
    s->is_made_up = true;
    fixture_end(s);
}

TEST(queue_replay, stops_in_a_range_row_where_its_lane_has_enough)
{
    told t;
    fixture *s = &t.fixture;

    make(&t);
    put(s, 20);
    shed(s, 0, 1, 20, 20);
    t.room = 7;
    CHECK_STR(replay(s, &any, false), "held a: 1 7 0 0");
    CHECK_STR(fixture_ask(s, ranges), "8|20|13|dead");
    CHECK_STR(fixture_stands(s), "0/0 21 [] 20=0+13+0+7\n");
    t.room = UINT64_MAX;
    CHECK_STR(replay(s, &any, false), "done: 1 13 0 0");
    CHECK_STR(fixture_ask(s,
                          "SELECT count(*), count(DISTINCT position)"
                          " FROM parked"),
              "20|20");
    CHECK_STR(fixture_ask(s, "SELECT state, count FROM failed_broadcast_logs"),
              "replayed|20");
    fixture_end(s);
}

/* What was trimmed is not replayable, and the row says so. */
TEST(queue_replay, says_what_of_a_range_row_has_expired)
{
    told t;
    fixture *s = &t.fixture;

    make(&t);
    put(s, 20);
    shed(s, 0, 1, 20, 20);
    fixture_close(s);
    fixture_ask(s, "DELETE FROM messages_0 WHERE position <= 5");
    fixture_open(s);
    CHECK_STR(replay(s, &any, true), "done: 1 15 5 0");
    CHECK_STR(replay(s, &any, false), "done: 1 15 5 0");
    CHECK_STR(fixture_ask(s, "SELECT state, count FROM failed_broadcast_logs"),
              "expired|5");
    CHECK_STR(fixture_stands(s), "0/0 21 [] 20=0+5+0+15\n");
    CHECK_STR(replay(s, &any, false), "done: 0 0 0 0");
    fixture_end(s);
}

TEST(queue_replay, of_a_range_row_leaves_out_what_was_not_in_it)
{
    stg_failure failure = fixture_failure(500, STG_WHY_PERMANENT);
    appending a = {.messages = {fixture_text(NULL, "other")}};
    told t;
    fixture *s = &t.fixture;
    stg_change c;

    make(&t);
    put(s, 3);
    // The filter refused this one,
    a.messages[0].parcel.key = (stg_span){"no", 2};
    fixture_start(s, &a, 1);
    FIXTURE_UNTIL(s, a.is_done);
    put(s, 4);
    // this one was tried and died,
    c = dead(s, 0, 2, &failure);
    CHECK_INT(fixture_change(s, &c), STG_STORED);
    // and this one is parked.
    fixture_park(s, 0, 6, 100, "body");
    shed(s, 0, 1, 8, 5);
    t.unwanted = "no";
    CHECK_STR(replay(s, &(stg_letter_filter){.cause = "SHED"}, false),
              "done: 1 5 0 0");
    CHECK_STR(fixture_ask(s,
                          "SELECT group_concat(position) FROM"
                          " (SELECT position FROM parked WHERE replay = 1"
                          " ORDER BY position)"),
              "1,3,5,7,8");
    s->is_made_up = true;
    fixture_end(s);
}

/* Flow goes on with the same range while it is replayed. */
TEST(queue_replay, of_a_range_row_that_grows_keeps_what_came)
{
    told t;
    fixture *s = &t.fixture;

    make(&t);
    put(s, 30);
    shed(s, 0, 1, 20, 20);
    CHECK_STR(replay(s, &any, false), "done: 1 20 0 0");
    // It has heard of the replay, or so the store thinks.
    CHECK_INT(
        fixture_store(
            s, &(stg_group){.changes = &(stg_change){.kind = STG_CHANGE_RANGE,
                                                     .position = 1,
                                                     .last_position = 30,
                                                     .count = 30},
                            .change_count = 1,
                            .cursors = &(stg_cursor){.base = 31,
                                                     .routed = 30,
                                                     .dead = 10,
                                                     .parked = 20},
                            .cursor_count = 1}),
        STG_STORED);
    CHECK_STR(fixture_ask(s,
                          "SELECT state, position, last_position, count"
                          " FROM failed_broadcast_logs ORDER BY id"),
              "replayed|1|20|20\ndead|21|30|10");
    CHECK_STR(replay(s, &any, false), "done: 1 10 0 0");
    CHECK_STR(fixture_ask(s,
                          "SELECT count(*), count(DISTINCT position)"
                          " FROM parked"),
              "30|30");
    CHECK_STR(fixture_stands(s), "0/0 31 [] 30=0+0+0+30\n");
    fixture_end(s);
}

/* One that the target does not want any more is what is left of the row. What was
 * sent again is in the log still, and nothing tells that it was delivered. */
TEST(queue_replay, of_a_range_row_that_grows_takes_nothing_a_second_time)
{
    appending a = {.messages = {fixture_text(NULL, "other")}};
    told t;
    fixture *s = &t.fixture;

    make(&t);
    a.messages[0].parcel.key = (stg_span){"no", 2};
    fixture_start(s, &a, 1);
    FIXTURE_UNTIL(s, a.is_done);
    put(s, 29);
    shed(s, 0, 1, 20, 20);
    t.unwanted = "no";
    CHECK_STR(replay(s, &any, false), "done: 1 19 1 0");
    for (uint64_t at = 2; at <= 20; at++)
        CHECK_INT(fixture_change(s, &(stg_change){.kind = STG_CHANGE_DELIVERED,
                                                  .position = at,
                                                  .replay = 1}),
                  STG_STORED);
    CHECK_INT(
        fixture_store(
            s, &(stg_group){.changes = &(stg_change){.kind = STG_CHANGE_RANGE,
                                                     .position = 1,
                                                     .last_position = 30,
                                                     .count = 30},
                            .change_count = 1,
                            .cursors = &(stg_cursor){.base = 31,
                                                     .routed = 30,
                                                     .delivered = 19,
                                                     .dead = 11},
                            .cursor_count = 1}),
        STG_STORED);
    CHECK_STR(fixture_ask(s, ranges), "1|20|1|expired\n21|30|10|dead");
    CHECK_STR(replay(s, &any, false), "done: 1 10 0 0");
    CHECK_STR(fixture_ask(s,
                          "SELECT count(*), min(position), max(position)"
                          " FROM parked"),
              "10|21|30");
    CHECK_STR(fixture_stands(s), "0/0 31 [] 30=19+1+0+10\n");
    fixture_end(s);
}

/* Nothing would be sent, and who forgets the target would cancel them. */
TEST(queue_replay, leaves_letters_of_a_target_that_is_not_known)
{
    told t;
    fixture *s = &t.fixture;

    make(&t);
    put(s, 20);
    die(s, 1, 2);
    shed(s, 1, 3, 20, 9);
    shed(s, 0, 1, 20, 20);
    t.is_unknown = true;
    for (int is_dry = 1; is_dry >= 0; is_dry--)
        CHECK_STR(replay(s, &any, is_dry),
                  "done: 1 20 0 0, orphaned 3, paused 0");
    CHECK_STR(fixture_ask(s, ranges), "3|20|9|dead\n1|20|20|replayed");
    CHECK_STR(drop(s, &any, true), "done: 3 11 0 0");
    t.is_unknown = false;
    CHECK_STR(replay(s, &any, false), "done: 3 11 0 0");
    s->is_made_up = true;
    fixture_end(s);
}

TEST(queue_replay, counts_what_waits_in_a_lane_that_is_paused)
{
    told t;
    fixture *s = &t.fixture;

    make(&t);
    put(s, 20);
    die(s, 0, 1);
    die(s, 1, 2);
    shed(s, 1, 3, 20, 9);
    t.is_paused = true;
    for (int is_dry = 1; is_dry >= 0; is_dry--)
        CHECK_STR(replay(s, &any, is_dry),
                  "done: 4 12 0 0, orphaned 0, paused 11");
    s->is_made_up = true;
    fixture_end(s);
}

/* -- the books */

typedef struct storing {
    bool is_done;
} storing;

static void on_stored(void *ctx, stg_stored how, const uint32_t *fenced,
                      size_t count)
{
    (void)fenced;
    (void)count;
    CHECK_INT(how, STG_STORED);
    ((storing *)ctx)->is_done = true;
}

/* A group that was made before flow heard of a replay, and comes after it. */
TEST(store_replay, puts_right_the_books_of_a_group_that_knows_nothing_of_it)
{
    const stg_cursor old = {
        .lane = 0, .base = 9, .routed = 8, .dead = 5, .delivered = 3};
    const stg_group g = {.cursors = &old, .cursor_count = 1};
    storing stored = {.is_done = false};
    sum done = {.is_done = false};
    told t;
    fixture *s = &t.fixture;

    make(&t);
    die(s, 0, 5);
    stg_store_replay(s->store, &any, false, on_sum, &done);
    // Once it is on its way to the writer the loop does not turn: it has not heard
    // of what is committed.
    FIXTURE_UNTIL(s, t.times_asked > 0);
    while (fixture_ask(s, parked)[0] == '\0')
        usleep(1000);
    CHECK_U64(t.replayed[0], 0);
    stg_store_group(s->store, &g, on_stored, &stored);
    FIXTURE_UNTIL(s, stored.is_done);
    CHECK_STR(fixture_ask(s, "SELECT lanes FROM cursors"),
              "{\n\"0\": {\"base\": 9, \"routed\": 8, \"delivered\": 3,"
              " \"parked\": 5}\n}");
    FIXTURE_UNTIL(s, done.is_done);
    CHECK_STR(fixture_stands(s), "0/0 9 [] 8=3+0+0+5\n");
    // What knows of it is taken as it is.
    CHECK_INT(
        fixture_cursors(
            s,
            &(stg_cursor){
                .base = 9, .routed = 8, .dead = 1, .delivered = 3, .parked = 4},
            1),
        STG_STORED);
    CHECK_STR(fixture_ask(s, "SELECT lanes FROM cursors"),
              "{\n\"0\": {\"base\": 9, \"routed\": 8, \"delivered\": 3,"
              " \"dead\": 1, \"parked\": 4}\n}");
    s->is_made_up = true;
    fixture_end(s);
}

/* Its answer was lost, and by the time it comes again flow has heard of the
 * replay: its books are still those of before. */
TEST(store_replay, puts_right_the_books_of_a_group_that_comes_again)
{
    const stg_cursor old = {
        .lane = 0, .base = 9, .routed = 8, .dead = 5, .delivered = 3};
    stg_group g = {.cursors = &old, .cursor_count = 1, .number = 1};
    sum done = {.is_done = false};
    told t;
    fixture *s = &t.fixture;

    make(&t);
    die(s, 0, 5);
    CHECK_INT(fixture_store(s, &g), STG_STORED);
    stg_store_replay(s->store, &any, false, on_sum, &done);
    FIXTURE_UNTIL(s, done.is_done);
    CHECK_INT(fixture_store(s, &g), STG_STORED);
    CHECK_STR(fixture_stands(s), "0/0 9 [] 8=3+0+0+5\n");
    // Another one was made later, and knows of it.
    CHECK_INT(
        fixture_store(s, &(stg_group){.cursors = &(stg_cursor){.base = 9,
                                                               .routed = 8,
                                                               .delivered = 3,
                                                               .parked = 5},
                                      .cursor_count = 1,
                                      .number = 2}),
        STG_STORED);
    CHECK_STR(fixture_stands(s), "0/0 9 [] 8=3+0+0+5\n");
    fixture_end(s);
}

/* -- room, faults, ends */

TEST(store_replay, waits_for_room_and_goes_on)
{
    sum done = {.is_done = false};
    told t;
    fixture *s = &t.fixture;

    make(&t);
    die(s, 0, 100);
    t.room = 10;
    stg_store_replay(s->store, &any, false, on_sum, &done);
    FIXTURE_UNTIL(s, t.replayed[0] == 10);
    t.room = 50;
    FIXTURE_UNTIL(s, t.replayed[0] == 50);
    CHECK(!done.is_done);
    t.room = UINT64_MAX;
    FIXTURE_UNTIL(s, done.is_done);
    CHECK_STR(done.text, "done: 100 100 0 0");
    fixture_end(s);
}

TEST(store_replay, ends_when_the_store_closes)
{
    sum done = {.is_done = false};
    told t;
    fixture *s = &t.fixture;

    make(&t);
    die(s, 0, 100);
    t.room = 10;
    stg_store_replay(s->store, &any, false, on_sum, &done);
    FIXTURE_UNTIL(s, t.replayed[0] == 10);
    fixture_close(s);
    CHECK(done.is_done);
    CHECK_STR(done.text, "stopped: 10 10 0 0");
    fixture_end(s);
}

/* Killed at any moment: what is parked is replayed, and what is not is dead. */
TEST(queue_replay, loses_and_doubles_nothing_when_it_is_killed)
{
    told t;
    fixture *s = &t.fixture;
    int kills = 0;

    make(&t);
    put(s, 150);
    die(s, 0, 150);
    shed(s, 1, 1, 150, 150);
    fixture_close(s);
    for (int i = 0; i < 12; i++) {
        pid_t child = fork();
        int status;

        CHECK(child >= 0);
        if (child == 0) {
            // Its loop is its own; the parent's has nothing open.
            sum done = {.is_done = false};

            if (uv_loop_fork(&s->loop) != 0)
                _exit(2);
            fixture_open(s);
            t.room = 30;
            stg_store_replay(s->store, &any, false, on_sum, &done);
            while (!done.is_done && t.replayed[0] + t.replayed[1] < 25)
                uv_run(&s->loop, UV_RUN_ONCE);
            _exit(0);
        }
        usleep((useconds_t)(3000 * (i + 1)));
        kill(child, SIGKILL);
        CHECK_INT(waitpid(child, &status, 0), child);
        kills += WIFSIGNALED(status);
        fixture_open(s);
        CHECK_STR(fixture_ask(s,
                              "SELECT (SELECT total(count) FROM"
                              " failed_broadcast_logs WHERE state = 'dead')"
                              " + (SELECT count(*) FROM parked),"
                              " (SELECT count(*) FROM parked) ="
                              " (SELECT count(DISTINCT lane * 1000 + position)"
                              " FROM parked)"),
                  "300.0|1");
        CHECK_STR(fixture_ask(s,
                              "SELECT (SELECT total(json_extract(value,"
                              " '$.dead')) FROM cursors, json_each(lanes)) ="
                              " (SELECT total(count) FROM failed_broadcast_logs"
                              " WHERE state = 'dead')"),
                  "1");
        fixture_close(s);
    }
    CHECK(kills > 0);
    fixture_open(s);
    replay(s, &any, false);
    CHECK_STR(fixture_ask(s,
                          "SELECT lane, count(*), count(DISTINCT position)"
                          " FROM parked GROUP BY lane"),
              "0|150|150\n1|150|150");
    CHECK_STR(fixture_stands(s),
              "0/0 151 [] 150=0+0+0+150\n1/0 151 [] 150=0+0+0+150\n");
    fixture_end(s);
}

/* -- bulk rows of a topic */

typedef struct topic_log {
    fixture *s;
    uint64_t end;   /* the first position that it does not have */
    uint64_t begin; /* what is below has expired */
    unsigned aways; /* reads that are answered by nothing; UINT_MAX: all */
    unsigned reads;
    bool is_silent; /* no read is answered */
} topic_log;

static topic_log topic;

/* Every second position has a message. */
static void read_topic(void *ctx, uint32_t number, uint64_t from,
                       size_t bytes_max, size_t count_max, stg_read_fn *done,
                       void *done_ctx)
{
    stg_record records[4];
    size_t count = 0;
    uint64_t next = from < topic.begin ? topic.begin : from;

    (void)ctx;
    (void)bytes_max;
    CHECK_INT(number, 1);
    CHECK(count_max > 0);
    topic.reads++;
    if (topic.is_silent)
        return;
    if (topic.aways > 0) {
        topic.aways -= topic.aways < UINT_MAX;
        done(done_ctx, NULL, 0, from);
        return;
    }
    for (; next < topic.end && count < 4 && count < count_max; next++)
        if (next % 2 == 0) {
            const stg_message *m =
                fixture_record(topic.s, next, "of the topic", "headers");

            records[count++] = (stg_record){.position = next,
                                            .key = m->key,
                                            .bytes = m->bytes,
                                            .size = m->size,
                                            .created_at = STG_S};
        }
    done(done_ctx, records, count, next == from ? UINT64_MAX : next);
}

static void on_claimed(void *ctx, const stg_claimed *claimed)
{
    CHECK_INT(claimed->number, 1);
    *(bool *)ctx = true;
}

static void shed_of_topic(fixture *s, uint64_t first, uint64_t last,
                          uint64_t count)
{
    bool is_claimed = false;
    stg_claim_ask ask = {.log = "kafka",
                         .topic = "orders",
                         .end = STG_NO_POSITION,
                         .committed = STG_NO_POSITION,
                         .previous = STG_NO_PARTITION,
                         .ctx = &is_claimed};
    stg_cursor c = {
        .partition = 1, .base = last + 1, .routed = count, .dead = count};
    stg_change shed = {.kind = STG_CHANGE_RANGE,
                       .partition = 1,
                       .position = first,
                       .last_position = last,
                       .count = count};

    stg_store_claim(s->store, &ask, 1, on_claimed);
    FIXTURE_UNTIL(s, is_claimed);
    CHECK_INT(fixture_store(s, &(stg_group){.changes = &shed,
                                            .change_count = 1,
                                            .cursors = &c,
                                            .cursor_count = 1}),
              STG_STORED);
}

/* A store of a lane whose topic is read so; its fixture is set here. */
static void open_topic(fixture *s, topic_log log)
{
    fixture_make(s);
    s->options.read = read_topic;
    topic = log;
    topic.s = s;
    fixture_open(s);
    CHECK_INT(fixture_lane(s, "a"), 0);
}

TEST(store_replay, reads_the_bodies_of_a_topic_from_its_log)
{
    stg_mark mark = {.due_at = 0};
    fixture s;

    open_topic(&s, (topic_log){.end = 100});
    shed_of_topic(&s, 10, 29, 10);
    CHECK_STR(replay(&s, &(stg_letter_filter){.target = "a"}, false),
              "done: 1 10 0 0");
    CHECK(topic.reads >= 3);
    CHECK_STR(fixture_ask(&s,
                          "SELECT count(*), min(position), max(position),"
                          " min(created_at), sum(length(source_key)),"
                          " sum(length(source_headers))"
                          " FROM parked WHERE replay = 1"),
              "10|10|28|1000000000|30|70");
    CHECK_STR(fixture_ask(&s,
                          "SELECT state, position, count"
                          " FROM failed_broadcast_logs"),
              "replayed|10|10");
    CHECK_STR(fixture_stands(&s), "0/1 30 [] 10=0+0+0+10\n");
    fixture_fetch_replays(&s, 0, &mark, 99);
    CHECK_U64(mark.position, 28);
    fixture_end(&s);
}

TEST(store_replay, says_what_the_log_of_a_topic_has_lost)
{
    fixture s;

    open_topic(&s, (topic_log){.end = 20});
    shed_of_topic(&s, 10, 29, 10);
    CHECK_STR(replay(&s, &(stg_letter_filter){.target = "a"}, false),
              "done: 1 5 5 0");
    CHECK_STR(fixture_ask(&s, "SELECT state, count FROM failed_broadcast_logs"),
              "expired|5");
    CHECK_STR(fixture_stands(&s), "0/1 30 [] 10=0+5+0+5\n");
    fixture_end(&s);
}

TEST(store_replay, passes_over_what_has_expired_in_front)
{
    fixture s;

    open_topic(&s, (topic_log){.begin = 20, .end = 100});
    shed_of_topic(&s, 10, 29, 10);
    CHECK_STR(replay(&s, &(stg_letter_filter){.target = "a"}, false),
              "done: 1 5 5 0");
    CHECK_STR(fixture_ask(&s, "SELECT state, count FROM failed_broadcast_logs"),
              "expired|5");
    CHECK_STR(
        fixture_ask(&s, "SELECT min(position), max(position) FROM parked"),
        "20|28");
    CHECK_STR(fixture_stands(&s), "0/1 30 [] 10=0+5+0+5\n");
    fixture_end(&s);
}

TEST(store_replay, leaves_range_rows_of_a_topic_that_cannot_be_read_now)
{
    unsigned reads;
    fixture s;

    open_topic(&s, (topic_log){.end = 100, .aways = UINT_MAX});
    shed_of_topic(&s, 10, 19, 5);
    CHECK_STR(replay(&s, &(stg_letter_filter){.target = "a"}, false),
              "away a: 0 0 0 0");
    reads = topic.reads;
    CHECK(reads > 0);
    // For another row of the partition it is not asked any more.
    shed_of_topic(&s, 30, 39, 5);
    CHECK_STR(replay(&s, &(stg_letter_filter){.target = "a"}, false),
              "away a: 0 0 0 0");
    CHECK_U64(topic.reads, 2 * reads);
    CHECK_STR(fixture_ask(&s, "SELECT state, count FROM failed_broadcast_logs"),
              "dead|5\ndead|5");
    // Once is no harm; and later all of them go.
    topic.aways = 1;
    CHECK_STR(replay(&s, &(stg_letter_filter){.target = "a"}, false),
              "done: 2 10 0 0");
    CHECK_STR(fixture_ask(&s, "SELECT count(*) FROM parked"), "10");
    s.is_made_up = true;
    fixture_end(&s);
}

TEST(store_replay, leaves_range_rows_of_a_topic_that_nobody_reads)
{
    fixture s;

    fixture_make(&s);
    fixture_open(&s);
    CHECK_INT(fixture_lane(&s, "a"), 0);
    shed_of_topic(&s, 10, 29, 10);
    CHECK_STR(replay(&s, &(stg_letter_filter){.target = "a"}, false),
              "away a: 0 0 0 0");
    CHECK_STR(fixture_ask(&s, "SELECT state, count FROM failed_broadcast_logs"),
              "dead|10");
    fixture_end(&s);
}

/* A replay that waits is freed, which asan watches. */
TEST(store_replay, ends_with_its_store_while_a_log_does_not_answer)
{
    sum done = {.is_done = false};
    fixture s;

    open_topic(&s, (topic_log){.is_silent = true});
    shed_of_topic(&s, 10, 29, 10);
    stg_store_replay(s.store, &any, false, on_sum, &done);
    FIXTURE_UNTIL(&s, topic.reads > 0);
    fixture_end(&s);
    CHECK(!done.is_done);
}
