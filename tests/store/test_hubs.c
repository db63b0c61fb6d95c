/* Several hubs and one store in PostgreSQL; and a server that goes away. By
 * tests/store/on_postgres.sh, which has one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libpq-fe.h>

#include "host/wall.h"
#include "store/dead_letters.h"
#include "store/postgres/open.h"
#include "store/published.h"
#include "store/rewinds.h"
#include "store/target_rows.h"
#include "tests/harness.h"
#include "tests/store/fixture.h"

#define CHECK_HAS(text, expected) CHECK(strstr((text), (expected)) != NULL)

/* -- calls */

typedef struct claiming {
    bool is_done;
    uint32_t number;
    uint64_t generation, bases[4];
    size_t count;
} claiming;

static void on_claimed(void *ctx, const stg_claimed *claimed)
{
    claiming *c = ctx;

    CHECK_INT(claimed->status, STG_OK);
    c->is_done = true;
    c->number = claimed->number;
    c->generation = claimed->generation;
    c->count = claimed->count;
    for (size_t i = 0; i < claimed->count && i < 4; i++)
        c->bases[i] = claimed->cursors[i].base;
}

static claiming claim(fixture *s, uint32_t partition)
{
    stg_claim_ask ask = {.log = "kafka",
                         .topic = "orders",
                         .partition = partition,
                         .end = STG_NO_POSITION,
                         .committed = STG_NO_POSITION,
                         .previous = STG_NO_PARTITION};
    claiming c = {.is_done = false};

    ask.ctx = &c;
    stg_store_claim(s->store, &ask, 1, on_claimed);
    FIXTURE_UNTIL(s, c.is_done);
    return c;
}

/* So many at once; status[i] is the answer's for partition i, -1 at first. */
enum { MANY = 64 };

typedef struct many {
    fixture *s;
    size_t answered;
    struct one {
        struct many *all;
        int status;
        uint64_t generation;
    } one[MANY];
} many;

static void on_one(void *ctx, const stg_claimed *claimed)
{
    struct one *one = ctx;

    CHECK_INT(one->status, -1);
    one->status = (int)claimed->status;
    if (claimed->status == STG_OK)
        one->generation = claimed->generation;
    one->all->answered++;
}

static void begin_many(fixture *s, many *m)
{
    stg_claim_ask asks[MANY];

    *m = (many){.s = s};
    for (uint32_t i = 0; i < MANY; i++) {
        m->one[i] = (struct one){.all = m, .status = -1};
        asks[i] = (stg_claim_ask){.log = "kafka",
                                  .topic = "orders",
                                  .partition = i,
                                  .end = STG_NO_POSITION,
                                  .committed = STG_NO_POSITION,
                                  .previous = STG_NO_PARTITION,
                                  .ctx = &m->one[i]};
    }
    stg_store_claim(s->store, asks, MANY, on_one);
}

static stg_stored stand(fixture *s, const claiming *c, uint32_t lane,
                        uint64_t base)
{
    stg_cursor cursor = {.lane = lane, .partition = c->number, .base = base};
    stg_claim mine = {c->number, c->generation};

    return fixture_store(s, &(stg_group){.cursors = &cursor,
                                         .cursor_count = 1,
                                         .claims = &mine,
                                         .claim_count = 1});
}

/* As flow does: what was not answered is sent again. */
static stg_stored stand_at_last(fixture *s, const claiming *c, uint32_t lane,
                                uint64_t base)
{
    stg_stored how;

    do
        how = stand(s, c, lane, base);
    while (how == STG_STORED_UNKNOWN);
    return how;
}

static stg_stored write_change(fixture *s, stg_change change)
{
    stg_stored how;

    do
        how = fixture_change(s, &change);
    while (how == STG_STORED_UNKNOWN);
    return how;
}

static stg_change dead(fixture *s, uint32_t number, uint64_t position,
                       const stg_failure *failure)
{
    return (stg_change){.kind = STG_CHANGE_DEAD,
                        .partition = number,
                        .position = position,
                        .message = fixture_message(s, position, "body"),
                        .failure = failure};
}

/* -- the server */

static void serve(const char *verb)
{
    char command[600];

    snprintf(command, sizeof command, "%s %s %s >/dev/null",
             getenv("STAGGER_TEST_SCRIPT"), verb,
             getenv("STAGGER_TEST_SERVER"));
    CHECK_INT(system(command), 0);
}

/* Of the password, as the URL has it. */
static const char *password(const fixture *s)
{
    static char text[64];
    const char *from = strstr(s->server, "stagger:") + strlen("stagger:");

    snprintf(text, sizeof text, "%.*s", (int)strcspn(from, "@"), from);
    CHECK(strlen(text) > 8);
    return text;
}

static void ignore_rows(void *ctx, uint32_t lane, bool is_replay,
                        const stg_parked_row *rows, size_t count, bool is_all)
{
    (void)ctx;
    (void)lane;
    (void)is_replay;
    (void)rows;
    (void)count;
    (void)is_all;
}

/* The lock that a claim is made under, held by somebody else until it ends. */
static PGconn *begin_lock(const fixture *s)
{
    PGconn *conn = PQconnectdb(s->path);
    PGresult *r =
        PQexec(conn,
               "BEGIN; SELECT pg_advisory_xact_lock(hashtext('stagger'),"
               " hashtext(current_schema()))");

    CHECK_INT(PQresultStatus(r), PGRES_TUPLES_OK);
    PQclear(r);
    return conn;
}

/* It need not answer. */
static void ask_reader(fixture *s)
{
    stg_mark mark = {.due_at = 0};

    stg_store_fetch(s->store, 0, false, &mark, 9, ignore_rows, NULL);
}

TEST(store_hubs, wait_for_a_server_that_is_away)
{
    stg_mark mark = {.due_at = 0};
    claiming c;
    fixture s;

    fixture_make(&s);
    fixture_open(&s);
    fixture_lane(&s, "a");
    c = claim(&s, 0);
    CHECK_INT(stand(&s, &c, 0, 5), STG_STORED);
    serve("kill");
    while (s.times_troubled == 0) {
        // The first finds out, the next one waits.
        stg_cursor cursor = {.partition = c.number, .base = 6};
        stg_group g = {.cursors = &cursor, .cursor_count = 1};

        if (s.times_untroubled == 0 && s.fenced_count == 0)
            fixture_begin_store(&s, &g);
        FIXTURE_POLL(&s, !s.is_storing || s.times_troubled > 0);
        if (s.is_storing) {
            CHECK(strstr(s.words, "away") != NULL);
            CHECK(strstr(s.words, password(&s)) == NULL);
            serve("start");
            FIXTURE_UNTIL(&s, !s.is_storing);
        }
    }
    CHECK_INT(stand_at_last(&s, &c, 0, 7), STG_STORED);
    FIXTURE_UNTIL(&s, s.times_untroubled == s.times_troubled);
    CHECK_STR(fixture_stands(&s), "0/1 7 [] 0=0+0+0+0\n");
    CHECK_STR(fixture_fetch(&s, 0, &mark, 9), "");
    CHECK_INT(s.times_broken, 0);
    fixture_end(&s);
}

TEST(store_hubs, lose_nothing_when_their_connections_are_killed)
{
    stg_failure failure = fixture_failure(503, STG_WHY_BACKOFF);
    fixture s;

    fixture_make(&s);
    fixture_open(&s);
    fixture_lane(&s, "a");
    for (uint64_t i = 1; i <= 12; i++) {
        stg_mark mark = {.due_at = 0};
        stg_change park = {.kind = STG_CHANGE_PARK,
                           .partition = 1,
                           .position = i,
                           .message = fixture_message(&s, i, "b"),
                           .failure = &failure,
                           .due_at = 100};
        claiming c;

        fixture_ask(&s,
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                    " WHERE application_name = 'stagger'");
        c = claim(&s, 0);
        CHECK_U64(c.number, 1);
        CHECK_INT(write_change(&s, park), STG_STORED);
        CHECK_INT(stand_at_last(&s, &c, 0, i), STG_STORED);
        fixture_fetch(&s, 0, &mark, 99);
        CHECK_U64(mark.position, i);
    }
    CHECK_STR(fixture_ask(&s, "SELECT count(*) FROM parked"), "12");
    CHECK_U64(claim(&s, 0).bases[0], 12);
    CHECK_INT(s.times_broken, 0);
    fixture_end(&s);
}

/* From the next session on. */
static void set_read_only(fixture *s, const char *how)
{
    char text[200];

    snprintf(text, sizeof text,
             "BEGIN READ WRITE; ALTER DATABASE stagger SET"
             " default_transaction_read_only = %s; COMMIT",
             how);
    fixture_ask(s, text);
    fixture_ask(s,
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE backend_type = 'client backend'"
                " AND pid <> pg_backend_pid()"); // also those that just begin
}

/* As in a failover: it lets everybody in, and refuses all that is written. */
TEST(store_hubs, rest_and_tell_while_a_server_refuses_what_is_stored)
{
    unsigned tries = 0;
    uint64_t until;
    claiming c;
    fixture s;

    fixture_make(&s);
    fixture_open(&s);
    fixture_lane(&s, "a");
    c = claim(&s, 0);
    CHECK_INT(stand(&s, &c, 0, 5), STG_STORED);
    set_read_only(&s, "on");
    until = uv_hrtime() + 1500 * STG_MS;
    while (uv_hrtime() < until || s.times_troubled == 0) {
        CHECK_INT(stand(&s, &c, 0, 6), STG_STORED_UNKNOWN);
        tries++;
    }
    CHECK(tries < 10);
    CHECK_HAS(s.words, "refuses what is stored: cannot execute");
    CHECK_HAS(s.words, "in a read-only transaction");
    CHECK_INT(s.times_untroubled, 0);
    // Nothing more is asked, and its end is told all the same.
    set_read_only(&s, "off");
    FIXTURE_UNTIL(&s, s.times_untroubled == 1);
    CHECK_INT(stand_at_last(&s, &c, 0, 6), STG_STORED);
    CHECK_INT(s.times_troubled, 1);
    CHECK_INT(s.times_broken, 0);
    fixture_end(&s);
}

TEST(store_hubs, wait_where_a_new_session_is_refused_for_now)
{
    stg_cursor cursor = {.base = 6};
    stg_claim mine = {.generation = 0};
    stg_group g = {.cursors = &cursor,
                   .cursor_count = 1,
                   .claims = &mine,
                   .claim_count = 1};
    PGconn *lock;
    claiming c;
    fixture s;

    fixture_make(&s);
    strcat(s.path, "%20-c%20lock_timeout%3D50");
    fixture_open(&s);
    fixture_lane(&s, "a");
    c = claim(&s, 0);
    lock = begin_lock(&s);
    fixture_ask(&s,
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE application_name = 'stagger'");
    cursor.partition = mine.partition = c.number;
    mine.generation = c.generation;
    // The first finds out that its session is gone.
    while (s.times_troubled == 0) {
        if (!s.is_storing)
            fixture_begin_store(&s, &g);
        fixture_turn(&s);
    }
    CHECK_HAS(s.words, "canceling statement due to lock timeout");
    PQfinish(lock);
    FIXTURE_UNTIL(&s, !s.is_storing);
    CHECK_INT(stand_at_last(&s, &c, 0, 6), STG_STORED);
    FIXTURE_UNTIL(&s, s.times_untroubled == 1);
    CHECK_INT(s.times_broken, 0);
    fixture_end(&s);
}

TEST(store_closing, takes_no_longer_while_the_server_is_away)
{
    claiming c;
    fixture s;

    fixture_make(&s);
    fixture_open(&s);
    fixture_lane(&s, "a");
    c = claim(&s, 0);
    CHECK_INT(stand(&s, &c, 0, 5), STG_STORED);
    serve("kill");
    fixture_close(&s);
    serve("start");
    fixture_open(&s);
    CHECK_STR(fixture_stands(&s), "0/1 5 [] 0=0+0+0+0\n");
    fixture_end(&s);
}

/* Its connections stay, and nothing comes by them: who waits for an answer is
 * told, asks for nothing more, and closes all the same. */
TEST(store_closing, takes_no_longer_while_the_server_hangs)
{
    stg_cursor cursor = {.base = 6};
    stg_group g = {.cursors = &cursor, .cursor_count = 1};
    uint32_t lane;
    stg_error err;
    claiming c;
    fixture s;

    fixture_make(&s);
    fixture_open(&s);
    fixture_lane(&s, "a");
    c = claim(&s, 0);
    CHECK_INT(stand(&s, &c, 0, 5), STG_STORED);
    cursor.partition = c.number;
    serve("freeze");
    fixture_begin_store(&s, &g);
    ask_reader(&s);
    FIXTURE_UNTIL(&s, s.times_troubled == 1);
    CHECK_HAS(s.words, "does not answer");
    CHECK_INT(stg_store_lane(s.store, "b", "http://b/", &lane, &err), STG_IO);
    CHECK_HAS(err.text, "does not answer");
    fixture_close(&s);
    strcat(s.path, "&connect_timeout=2");
    CHECK_HAS(fixture_refused(&s, STG_IO), "does not answer");
    serve("thaw");
    fixture_open(&s);
    CHECK_INT(s.times_untroubled, 0);
    fixture_end(&s);
}

/* The fixture's schema has a clock of its own, two hours behind: as for a hub whose
 * machine is ahead. All that is stored has the server's time. */
TEST(store_hubs, keep_times_by_the_clock_of_the_server)
{
    stg_failure failure = fixture_failure(400, STG_WHY_PERMANENT);
    stg_ns wall, store;
    claiming c;
    fixture s;

    fixture_make(&s);
    fixture_ask(&s,
                "CREATE FUNCTION clock_timestamp() RETURNS timestamptz"
                " LANGUAGE sql AS $$SELECT pg_catalog.clock_timestamp()"
                " - interval '2 hours'$$");
    strcat(s.path, ",pg_catalog");
    fixture_open(&s);
    fixture_lane(&s, "a");
    store = stg_store_now(s.store);
    wall = stg_wall_now() - 2 * STG_HOUR;
    CHECK(store < wall + STG_MIN && wall < store + STG_MIN);
    c = claim(&s, 0);
    CHECK_INT(write_change(&s, dead(&s, c.number, 5, &failure)), STG_STORED);
    CHECK_STR(fixture_ask(&s,
                          "SELECT now() - created_at::timestamptz"
                          " BETWEEN '119 min' AND '121 min',"
                          " extract(epoch FROM now()) - version / 1e9"
                          " BETWEEN 7140 AND 7260"
                          " FROM failed_broadcast_logs"),
              "1|1");
    fixture_end(&s);
}

/* -- two hubs */

TEST(store_hubs, take_over_from_each_other)
{
    stg_failure failure = fixture_failure(503, STG_WHY_BACKOFF);
    stg_mark mark = {.due_at = 0};
    claiming one, two;
    fixture a, b;

    fixture_make(&a);
    fixture_open(&a);
    fixture_share(&b, &a);
    fixture_open(&b);
    CHECK_INT(fixture_lane(&a, "x"), 0);
    CHECK_INT(fixture_lane(&b, "y"), 1);
    CHECK_INT(fixture_lane(&a, "y"), 1);
    one = claim(&a, 0);
    CHECK_INT(stand(&a, &one, 0, 10), STG_STORED);
    CHECK_INT(stand(&a, &one, 1, 20), STG_STORED);
    CHECK_INT(
        write_change(&a, (stg_change){.kind = STG_CHANGE_PARK,
                                      .partition = one.number,
                                      .position = 3,
                                      .message = fixture_message(&a, 3, "p"),
                                      .failure = &failure,
                                      .due_at = 100}),
        STG_STORED);
    CHECK_STR(fixture_fetch(&b, 0, &mark, 9), "");
    two = claim(&b, 0);
    CHECK_U64(two.number, one.number);
    CHECK_U64(two.count, 2);
    CHECK_U64(two.bases[0], 10);
    CHECK_U64(two.bases[1], 20);
    CHECK_STR(fixture_fetch(&b, 0, &mark, 9), "3@100:p");
    // Whoever is late writes nothing.
    CHECK_INT(stand(&a, &one, 0, 11), STG_STORED_FENCED);
    // A lane that the writer does not know stays in the row.
    CHECK_INT(stand(&b, &two, 0, 12), STG_STORED);
    CHECK_STR(fixture_stands(&b),
              "0/1 12 [] 0=0+0+0+1\n"
              "1/1 20 [] 0=0+0+0+0\n");
    // And back again, with what the other has written.
    one = claim(&a, 0);
    CHECK_U64(one.bases[0], 12);
    CHECK_INT(stand(&a, &one, 1, 21), STG_STORED);
    CHECK_STR(fixture_stands(&a),
              "0/1 12 [] 0=0+0+0+1\n"
              "1/1 21 [] 0=0+0+0+0\n");
    fixture_end(&b);
    fixture_end(&a);
}

/* As the group revokes partitions, and gives them to others, while their claims
 * still wait for a slow database: what came late would fence the new owner. */
TEST(store_hubs, take_back_what_was_revoked_while_the_lock_was_waited_for)
{
    many late, next, old;
    PGconn *lock;
    fixture a, b;

    fixture_make(&a);
    fixture_open(&a);
    fixture_share(&b, &a);
    fixture_open(&b);
    begin_many(&a, &old);
    FIXTURE_UNTIL(&a, old.answered == MANY);
    lock = begin_lock(&a);
    begin_many(&a, &late);
    // The other hub may have something to delete just now, and wait for it, too.
    FIXTURE_POLL(&a, strcmp(fixture_ask(&a,
                                        "SELECT count(*) FROM pg_locks"
                                        " WHERE locktype = 'advisory'"
                                        " AND NOT granted"),
                            "0") != 0);
    for (size_t i = 0; i < MANY / 2; i++)
        stg_store_take_back(a.store, &late.one[i]);
    begin_many(&b, &next);
    PQfinish(lock);
    FIXTURE_UNTIL(&a, late.answered == MANY);
    FIXTURE_UNTIL(&b, next.answered == MANY);
    for (size_t i = 0; i < MANY; i++) {
        bool is_back = i < MANY / 2;

        CHECK_INT(old.one[i].status, STG_OK);
        CHECK_INT(late.one[i].status, is_back ? STG_NOT_FOUND : STG_OK);
        CHECK_INT(next.one[i].status, STG_OK);
        CHECK_U64(next.one[i].generation,
                  old.one[i].generation + (is_back ? 1 : 2));
    }
    // It is forgotten with the answer: who takes it again has it.
    begin_many(&a, &late);
    FIXTURE_UNTIL(&a, late.answered == MANY);
    CHECK_INT(late.one[0].status, STG_OK);
    fixture_end(&b);
    fixture_end(&a);
}

/* Each transaction is a number of the server's. */
TEST(store_hubs, claim_all_partitions_of_an_assignment_in_one_transaction)
{
    many m;
    fixture s;

    fixture_make(&s);
    fixture_open(&s);
    for (int round = 0; round < 2; round++) {
        begin_many(&s, &m);
        FIXTURE_UNTIL(&s, m.answered == MANY);
        CHECK_STR(
            fixture_ask(&s, "SELECT count(DISTINCT xmin::text) FROM claims"),
            "1");
    }
    CHECK_STR(fixture_ask(&s,
                          "SELECT count(*), min(number), max(number),"
                          " max(generation) FROM claims"),
              "64|1|64|2");
    fixture_end(&s);
}

static void on_sum(void *ctx, const stg_letters_sum *sum)
{
    CHECK_INT(sum->end, STG_LETTERS_DONE);
    CHECK_U64(sum->letters, 2);
    *(bool *)ctx = true;
}

typedef struct told {
    uint64_t count;
    uint32_t partition;
} told;

static told replayed_a;

static void on_replayed(void *ctx, uint32_t lane, uint32_t partition,
                        uint64_t count, bool is_again)
{
    (void)ctx;
    (void)is_again;
    CHECK_INT(lane, 0);
    replayed_a.partition = partition;
    replayed_a.count += count;
}

TEST(store_hubs, replay_a_letter_by_whoever_has_its_partition)
{
    stg_failure failure = fixture_failure(400, STG_WHY_PERMANENT);
    bool is_done = false;
    stg_mark mark = {.due_at = 0};
    claiming c;
    fixture a, b;

    replayed_a = (told){.count = 0};
    fixture_make(&a);
    a.options.replayed = on_replayed;
    fixture_open(&a);
    fixture_share(&b, &a);
    fixture_open(&b);
    fixture_lane(&a, "x");
    c = claim(&a, 0);
    CHECK_INT(write_change(&a, dead(&a, c.number, 5, &failure)), STG_STORED);
    CHECK_INT(write_change(&a, dead(&a, c.number, 6, &failure)), STG_STORED);
    stg_store_replay(b.store, &(stg_letter_filter){.target = "x"}, false,
                     on_sum, &is_done);
    FIXTURE_UNTIL(&b, is_done);
    while (replayed_a.count < 2) {
        fixture_turn(&a);
        fixture_turn(&b);
    }
    CHECK_INT(replayed_a.partition, c.number);
    CHECK_STR(fixture_ask(&a,
                          "SELECT count(*) FROM failed_broadcast_logs"
                          " WHERE state = 'replayed'"),
              "2");
    fixture_fetch_replays(&a, 0, &mark, 9);
    CHECK_U64(mark.position, 6);
    fixture_end(&b);
    fixture_end(&a);
}

/* A topic with a message at each position below 10. */
static void read_topic(void *ctx, uint32_t number, uint64_t from,
                       size_t bytes_max, size_t count_max, stg_read_fn *done,
                       void *done_ctx)
{
    stg_record records[10];
    size_t count = 0;

    (void)number;
    (void)bytes_max;
    for (uint64_t at = from; at < 10 && count < count_max; at++) {
        const stg_message *m = fixture_message(ctx, at, "body");

        records[count++] = (stg_record){.position = at,
                                        .key = m->key,
                                        .bytes = m->bytes,
                                        .size = m->size,
                                        .created_at = at * STG_S};
    }
    done(done_ctx, records, count,
         from + count >= 10 ? UINT64_MAX : from + count);
}

static void on_rewound(void *ctx, stg_rewound how, uint64_t number)
{
    CHECK_INT(how, STG_REWOUND);
    CHECK_U64(number, 1);
    *(bool *)ctx = true;
}

static void on_resent(void *ctx, stg_resent how)
{
    CHECK_INT(how, STG_RESENT_ELSEWHERE);
    *(bool *)ctx = true;
}

static void await_replayed(fixture *a, fixture *b, uint64_t count)
{
    while (replayed_a.count < count) {
        fixture_turn(a);
        fixture_turn(b);
    }
}

/* I33: b is called, and a has the partition. */
TEST(store_hubs, rewind_by_whoever_has_the_partition)
{
    const stg_rewind_start since = {.since = 6 * STG_S};
    bool is_done = false;
    claiming c;
    fixture a, b;

    replayed_a = (told){.count = 0};
    fixture_make(&a);
    a.options.replayed = on_replayed;
    a.options.read = read_topic;
    fixture_open(&a);
    fixture_share(&b, &a);
    fixture_open(&b);
    fixture_lane(&a, "x");
    fixture_lane(&b, "x");
    c = claim(&a, 0);
    CHECK_INT(stand_at_last(&a, &c, 0, 9), STG_STORED);
    stg_store_start_rewinds(a.store);
    stg_store_start_rewinds(b.store);
    stg_store_rewind(b.store, &since, on_rewound, &is_done);
    FIXTURE_UNTIL(&b, is_done);
    await_replayed(&a, &b, 3);
    CHECK_STR(fixture_ask(&a, "SELECT position, replay FROM parked ORDER BY 1"),
              "6|256\n7|256\n8|256");
    while (strcmp(fixture_ask(&a, "SELECT state FROM rewinds"), "done") != 0)
        fixture_turn(&a);
    is_done = false;
    stg_store_resend(b.store, 0, c.number, 2, on_resent, &is_done);
    FIXTURE_UNTIL(&b, is_done);
    await_replayed(&a, &b, 4);
    CHECK_STR(fixture_ask(&a, "SELECT replay FROM parked WHERE position = 2"),
              "512");
    CHECK_HAS(fixture_ask(&a, "SELECT lanes FROM cursors"), "\"routed\": 4");
    fixture_end(&b);
    fixture_end(&a);
}

static void on_noted(void *ctx, bool is_full)
{
    CHECK(!is_full);
    *(bool *)ctx = true;
}

/* A hub that did not know the target, and then has it: by a reload. */
TEST(store_hubs, know_of_a_pause_that_another_was_called_for)
{
    bool is_done = false;
    fixture a, b;

    fixture_make(&a);
    fixture_open(&a);
    fixture_share(&b, &a);
    fixture_open(&b);
    stg_store_pause(a.store, fixture_lane(&a, "x"), STG_PAUSE_DISABLED,
                    on_noted, &is_done);
    FIXTURE_UNTIL(&a, is_done);
    CHECK_INT(stg_store_paused(b.store, fixture_lane(&b, "x")),
              STG_PAUSE_DISABLED);
    CHECK_INT(stg_store_paused(b.store, fixture_lane(&b, "y")), STG_PAUSE_NONE);
    fixture_end(&b);
    fixture_end(&a);
}

/* Somebody else has all of a table until it ends. */
static PGconn *begin_table_lock(const fixture *s)
{
    PGconn *conn = PQconnectdb(s->path);
    PGresult *r = PQexec(conn, "BEGIN; LOCK TABLE lanes");

    CHECK_INT(PQresultStatus(r), PGRES_COMMAND_OK);
    PQclear(r);
    return conn;
}

static unsigned times_targets; /* were told */

static void on_targets(void *ctx, const stg_target_row *rows, size_t count)
{
    (void)ctx;
    CHECK_INT(count, 1);
    CHECK_STR(rows->name, "x");
    times_targets++;
}

static void on_written(void *ctx, stg_target_write how, uint64_t version)
{
    (void)version;
    CHECK_INT(how, STG_TARGET_WRITTEN);
    *(bool *)ctx = true;
}

/* The question comes behind the look, and before the next one. */
static void on_no_letter(void *ctx, const stg_letter *l)
{
    CHECK(l == NULL);
    CHECK_U64(times_targets, 0);
    *(bool *)ctx = true;
}

/* A look for what others did began before a change of the hub's own, and is
 * answered after it: what it found may be older, and is left to the next one. */
TEST(store_hubs, leave_a_look_that_began_before_a_change_of_their_own)
{
    bool is_written = false, is_asked = false;
    PGconn *lock;
    fixture s;

    times_targets = 0;
    fixture_make(&s);
    s.options.targets = on_targets;
    fixture_open(&s);
    lock = begin_table_lock(&s);
    FIXTURE_POLL(&s, strcmp(fixture_ask(&s,
                                        "SELECT count(*) FROM pg_locks"
                                        " WHERE NOT granted AND relation ="
                                        " CAST('lanes' AS regclass)"),
                            "1") == 0);
    stg_store_write_target(s.store, "x", "{}", 0, on_written, &is_written);
    FIXTURE_UNTIL(&s, is_written);
    stg_store_letter(s.store, 1, on_no_letter, &is_asked);
    PQfinish(lock);
    FIXTURE_UNTIL(&s, is_asked);
    FIXTURE_UNTIL(&s, times_targets == 1);
    fixture_end(&s);
}

TEST(store_hubs, agree_on_the_number_of_shards)
{
    claiming one, two;
    fixture a, b;

    fixture_make(&a);
    a.options.shard_of = 2;
    fixture_open(&a);
    fixture_share(&b, &a);
    b.options.shard_of = 3;
    CHECK_HAS(fixture_refused(&b, STG_INVALID), "2 shards");
    b.options.shard_of = 2;
    b.options.shard = 1;
    fixture_open(&b);
    fixture_lane(&a, "x");
    fixture_lane(&b, "y");
    // Each has the partition for its own targets.
    one = claim(&a, 0);
    two = claim(&b, 0);
    CHECK_U64(one.number, two.number);
    CHECK_INT(stand(&a, &one, 0, 5), STG_STORED);
    CHECK_INT(stand(&b, &two, 1, 6), STG_STORED);
    fixture_close(&a);
    // A lane that moves to another shard goes on from the furthest.
    two = claim(&b, 0);
    CHECK_U64(two.count, 2);
    CHECK_U64(two.bases[0], 5);
    CHECK_INT(stand(&b, &two, 0, 9), STG_STORED);
    CHECK_U64(claim(&b, 0).bases[0], 9);
    fixture_close(&b);
    b.options.shard_of = 3;
    fixture_open(&b);
    fixture_end(&b);
    fixture_end(&a);
}

/* The server lets go of a hub that has ended only when it notices. */
TEST(store_hubs, wait_for_the_shards_of_a_hub_that_has_just_ended)
{
    fixture a;
    PGconn *ended;

    fixture_make(&a);
    fixture_open(&a);
    fixture_close(&a);
    ended = PQconnectdb(a.path);
    PQclear(PQexec(ended,
                   "SELECT pg_advisory_lock_shared(hashtext('stagger"
                   " shards of ' || current_schema()), 2)"));
    CHECK_INT(PQsendQuery(ended, "SELECT pg_sleep(0.3)"), 1);
    CHECK_INT(PQflush(ended), 0);
    PQfinish(ended);
    a.options.shard_of = 3;
    fixture_open(&a);
    fixture_end(&a);
}

/* -- opening */

static void check_refused(fixture *s, const char *path, stg_status status,
                          const char *words)
{
    char copy[400];
    const char *words_told;

    snprintf(copy, sizeof copy, "%s", path);
    s->options.path = copy;
    words_told = fixture_refused(s, status);
    CHECK_HAS(words_told, words);
    CHECK(strstr(words_told, "secret") == NULL);
    s->options.path = s->path;
}

TEST(store_hubs, are_told_what_is_wrong_with_their_store)
{
    const char *host;
    char url[400];
    fixture s;

    fixture_make(&s);
    host = strstr(s.server, "@");
    snprintf(url, sizeof url, "postgres://stagger:wr0ng-secret%s", host);
    check_refused(&s, url, STG_INVALID, "password authentication failed");
    snprintf(url, sizeof url, "postgres://stagger:%s@/nothing%s", password(&s),
             strchr(host, '?'));
    check_refused(&s, url, STG_INVALID, "does not exist");
    check_refused(&s, "postgres://stagger@/x?host=/nowhere", STG_IO,
                  "does not answer");
    check_refused(&s, "postgres://u:p@ss@host/x", STG_INVALID, "%40");
    check_refused(&s, "postgres://u:secret@h/x?sslmod=require", STG_INVALID,
                  "is no URL");
    fixture_end(&s);
}

/* Who may be a hub's user: by another name, with a password of its own. */
static void make_role(fixture *s, const char *name, const char *more, char *url,
                      size_t size)
{
    char text[400];

    snprintf(text, sizeof text,
             "DROP ROLE IF EXISTS %s; CREATE ROLE %s LOGIN PASSWORD 'secret'"
             " %s; GRANT USAGE, CREATE ON SCHEMA %s TO %s",
             name, name, more, s->schema, name);
    fixture_ask(s, text);
    snprintf(url, size, "postgres://%s:secret@%s", name,
             strchr(s->path, '@') + 1);
}

/* What ends by itself is no mistake of the settings: the service manager starts
 * the hub again. */
TEST(store_hubs, are_refused_for_now_by_what_ends_by_itself)
{
    char url[400];
    PGconn *lock;
    fixture s;

    fixture_make(&s);
    make_role(&s, "few", "CONNECTION LIMIT 0", url, sizeof url);
    check_refused(&s, url, STG_IO, "too many connections for role");
    snprintf(url, sizeof url, "%s%%20-c%%20default_transaction_read_only%%3Don",
             s.path);
    check_refused(&s, url, STG_IO, "in a read-only transaction");
    lock = begin_lock(&s);
    snprintf(url, sizeof url, "%s%%20-c%%20lock_timeout%%3D50", s.path);
    check_refused(&s, url, STG_IO, "due to lock timeout");
    PQfinish(lock);
    fixture_open(&s);
    fixture_end(&s);
}

TEST(store_hubs, are_told_which_rights_and_tables_lack_before_they_start)
{
    char url[400], text[500];
    fixture s;

    fixture_make(&s);
    fixture_open(&s);
    fixture_close(&s);
    make_role(&s, "reader", "", url, sizeof url);
    snprintf(text, sizeof text,
             "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA %s"
             " TO reader; REVOKE INSERT ON %s.claims FROM reader;"
             " REVOKE DELETE ON %s.parked FROM reader",
             s.schema, s.schema, s.schema);
    fixture_ask(&s, text);
    check_refused(&s, url, STG_INVALID,
                  "lacks in the store: INSERT on claims, DELETE on parked;");
    fixture_ask(&s, "DROP TABLE claims");
    CHECK_HAS(fixture_refused(&s, STG_INVALID), "there is no table claims");
    snprintf(text, sizeof text, "DROP OWNED BY reader; DROP ROLE reader");
    fixture_ask(&s, text);
    fixture_end(&s);
}

TEST(store_hubs, are_told_which_passfile_has_no_password)
{
    char url[400];
    fixture s;

    fixture_make(&s);
    snprintf(url, sizeof url, "postgres://stagger@%s&passfile=/nowhere/pass",
             strchr(s.path, '@') + 1);
    check_refused(&s, url, STG_INVALID,
                  "none in the passfile /nowhere/pass: No such file");
    fixture_end(&s);
}

/* I23: libpq says what of a URL is secret, and it is shown nowhere. */
TEST(store_hubs, show_nothing_secret_of_their_url)
{
    static const struct {
        const char *url, *name;
        bool has_secret;
    } all[] = {
        {"postgres://u@h:5/d", "postgres://u@h:5/d", false},
        {"postgresql://u:pw@h,k/d?sslmode=require", "postgres://u@h,k/d", true},
        {"postgres://u:p%40pw@h/d", "postgres://u@h/d", true},
        {"postgres://u@h/d?pass%77ord=pw", "postgres://u@h/d", true},
        {"postgres://u@h/d?sslpassword=pw", "postgres://u@h/d", true},
        {"postgres://u@h/d?passfile=/etc/pw", "postgres://u@h/d", false},
        {"postgres:///d?user=u&password=pw&host=h", "postgres://u@h/d", true},
        {"postgres://u@/d?host=/run/x", "postgres://u@/d", false},
        // What libpq would take for a host, and cannot read.
        {"postgres://u:p@pw@h/d", "postgres", false},
        {"postgres://u:pw%zz@h/d", "postgres", false},
        {"postgres://u@h/d?pasword=pw", "postgres", false},
        {"postgres://u%3Apw@h/d", "postgres", false},
    };

    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        char *name = stg_pg_url_name(all[i].url);
        stg_error err = {.text = ""};

        CHECK_STR(name, all[i].name);
        CHECK_INT(stg_pg_url_has_secret(all[i].url), all[i].has_secret);
        (void)stg_pg_url_check(all[i].url, &err);
        CHECK(strstr(err.text, "pw") == NULL);
        free(name);
    }
}

TEST(store_hubs, refuse_a_store_of_another_version)
{
    fixture s;

    fixture_make(&s);
    fixture_open(&s);
    fixture_close(&s);
    fixture_ask(&s, "UPDATE stagger SET version = 99");
    CHECK_HAS(fixture_refused(&s, STG_INVALID), "version 99");
    fixture_end(&s);
}

/* -- the command */

/* What it prints about the store, whose password is in a file; static. */
static const char *ask_command(const fixture *s, const char *words)
{
    static char text[8192];
    const char *password = strchr(strstr(s->path, "//"), ':');
    char command[1024];
    FILE *out;
    size_t size;

    CHECK(getenv("STAGGER") != NULL);
    CHECK(password != NULL && getenv("STAGGER_TEST_SERVER") != NULL);
    snprintf(command, sizeof command,
             "export PGPASSFILE=\"$STAGGER_TEST_SERVER/passfile\"; "
             "dead() { word=$1; shift; "
             "\"$STAGGER\" dead $word --store '%.*s%s' \"$@\"; }; "
             "dead %s 2>&1",
             (int)(password - s->path), s->path, strchr(password, '@'), words);
    out = popen(command, "r");
    CHECK(out != NULL);
    size = fread(text, 1, sizeof text - 1, out);
    text[size] = '\0';
    if (pclose(out) != 0)
        CHECK_STR(text, "");
    return text;
}

TEST(store_command, shows_letters_of_a_shared_store)
{
    stg_failure failure = fixture_failure(503, STG_WHY_ATTEMPTS);
    fixture s;

    fixture_make(&s);
    fixture_open(&s);
    fixture_lane(&s, "a");
    claim(&s, 3);
    for (uint64_t i = 1; i <= 120; i++)
        CHECK_INT(write_change(&s, dead(&s, 1, i, &failure)), STG_STORED);
    CHECK_HAS(ask_command(&s, "list --summary"), "120 dead letters");
    CHECK_HAS(ask_command(&s, "list --limit 2"), "HTTP_503");
    CHECK_HAS(ask_command(&s, "show 120 --json"), "\"topic\": \"orders\"");
    CHECK_HAS(ask_command(&s, "show 120 --json"), "\"payload\": \"body\"");
    CHECK_HAS(ask_command(&s, "show 7"), "orders.3.7");
    CHECK_HAS(ask_command(&s, "export --target a | tail -1"), "orders.3.120");
    CHECK(strstr(ask_command(&s, "list --cause HTTP_404"), "orders") == NULL);
    fixture_end(&s);
}

/* -- the file of dead letters */

static unsigned count_lines(const fixture *s)
{
    FILE *file = fopen(s->letters, "r");
    unsigned lines = 0;
    int c;

    if (file == NULL)
        return 0;
    while ((c = fgetc(file)) != EOF)
        lines += c == '\n';
    fclose(file);
    return lines;
}

TEST(store_hubs, copy_the_letters_of_their_partitions)
{
    stg_failure failure = fixture_failure(400, STG_WHY_PERMANENT);
    claiming one, two;
    fixture a, b;

    fixture_make(&a);
    a.options.letters = a.letters;
    fixture_open(&a);
    fixture_share(&b, &a);
    b.options.letters = b.letters;
    fixture_open(&b);
    fixture_lane(&a, "x");
    one = claim(&a, 0);
    two = claim(&b, 1);
    CHECK_INT(write_change(&a, dead(&a, one.number, 5, &failure)), STG_STORED);
    CHECK_INT(write_change(&b, dead(&b, two.number, 6, &failure)), STG_STORED);
    CHECK_INT(write_change(&b, dead(&b, two.number, 7, &failure)), STG_STORED);
    FIXTURE_POLL(&a, count_lines(&a) == 1);
    FIXTURE_POLL(&b, count_lines(&b) == 2);
    FIXTURE_POLL(&b, strcmp(fixture_ask(&a,
                                        "SELECT count(*)"
                                        " FROM failed_broadcast_logs"
                                        " WHERE version <> sent_version"),
                            "0") == 0);
    fixture_end(&b);
    // What the other had is copied no second time.
    claim(&a, 1);
    CHECK_INT(write_change(&a, dead(&a, two.number, 8, &failure)), STG_STORED);
    FIXTURE_POLL(&a, count_lines(&a) == 2);
    fixture_end(&a);
}

/* -- keys of what is published to another log ------------------------------- */

typedef struct keyed {
    bool is_done;
    stg_reserved all[4];
} keyed;

static void on_reserved(void *ctx, const stg_reserved *all, size_t count)
{
    keyed *k = ctx;

    CHECK(count <= 4);
    memcpy(k->all, all, count * sizeof *all);
    k->is_done = true;
}

static keyed reserve_all(fixture *s, const stg_key_ask *asks, size_t count)
{
    keyed k = {.is_done = false};

    stg_store_reserve(s->store, asks, count, on_reserved, &k);
    FIXTURE_UNTIL(s, k.is_done);
    return k;
}

static stg_reserved reserve_one(fixture *s, const char *topic, const char *key,
                                const char *body)
{
    stg_append m = fixture_text(key, body);

    return reserve_all(s, &(stg_key_ask){topic, &m}, 1).all[0];
}

static stg_reserved place_one(fixture *s, const char *topic, stg_record_id id,
                              uint32_t partition, uint64_t position)
{
    stg_reserved one = {
        .topic = topic, .id = id, .partition = partition, .position = position};
    keyed k = {.is_done = false};

    stg_store_place(s->store, &one, 1, on_reserved, &k);
    FIXTURE_UNTIL(s, k.is_done);
    return k.all[0];
}

static bool is_same(const stg_reserved *a, const stg_reserved *b)
{
    return memcmp(&a->id, &b->id, sizeof a->id) == 0;
}

TEST(store_hubs, reserve_a_key_once_and_agree_on_its_place)
{
    stg_reserved one, two, at;
    fixture a, b;

    fixture_make(&a);
    fixture_open(&a);
    fixture_share(&b, &a);
    fixture_open(&b);
    CHECK(stg_store_keeps_keys(a.store));
    one = reserve_one(&a, "orders", "k", "x");
    CHECK(!one.is_other && !stg_record_id_is_none(&one.id));
    CHECK_U64(one.position, STG_NO_POSITION);
    two = reserve_one(&b, "orders", "k", "x"); // of its record nobody knows
    CHECK(!two.is_other && is_same(&one, &two));
    CHECK_U64(two.position, STG_NO_POSITION);
    CHECK(reserve_one(&b, "orders", "k", "y").is_other);
    CHECK(reserve_one(&b, "refunds", "k", "x").is_other);
    two = reserve_one(&b, "orders", "k2", "x");
    CHECK(!two.is_other && !is_same(&one, &two));

    // The first place counts, whoever says it; and not that of a copy.
    at = place_one(&b, "mirror", one.id, 1, 5);
    CHECK_U64(at.position, 5);
    at = place_one(&b, "orders", one.id, 3, 17);
    CHECK_U64(at.position, 17);
    at = place_one(&a, "orders", one.id, 2, 9);
    CHECK_U64(at.partition, 3);
    CHECK_U64(at.position, 17);
    at = place_one(&a, "mirror", one.id, 1, 6);
    CHECK_U64(at.position, 6);
    at = reserve_one(&a, "orders", "k", "x");
    CHECK(is_same(&at, &one));
    CHECK_U64(at.partition, 3);
    CHECK_U64(at.position, 17);
    memset(&two.id, 7, sizeof two.id); // of no row
    at = place_one(&a, "orders", two.id, 1, 4);
    CHECK_U64(at.position, 4);
    fixture_end(&b);
    fixture_end(&a);
}

TEST(store_hubs, reserve_many_keys_of_one_call)
{
    stg_append m[] = {fixture_text("a", "1"), fixture_text("b", "2"),
                      fixture_text("a", "1"), fixture_text("b", "3")};
    stg_key_ask asks[] = {
        {"t", &m[0]}, {"t", &m[1]}, {"t", &m[2]}, {"u", &m[3]}};
    fixture s;
    keyed k;

    fixture_make(&s);
    fixture_open(&s);
    k = reserve_all(&s, asks, 4);
    CHECK(!k.all[0].is_other && !k.all[1].is_other && !k.all[2].is_other);
    CHECK(k.all[3].is_other);
    CHECK(is_same(&k.all[0], &k.all[2]) && is_same(&k.all[1], &k.all[3]));
    CHECK(!is_same(&k.all[0], &k.all[1]));
    CHECK_STR(fixture_ask(&s, "SELECT count(*) FROM published"), "2");
    fixture_end(&s);
}

TEST(store_hubs, forget_keys_that_are_too_old)
{
    stg_reserved one, two;
    fixture s;

    fixture_make(&s);
    fixture_open(&s);
    one = reserve_one(&s, "t", "k", "x");
    (void)place_one(&s, "t", one.id, 0, 1);
    (void)reserve_one(&s, "t", "old", "x");
    (void)fixture_ask(&s,
                      "UPDATE published SET at = at - 86400000000001"
                      " RETURNING 1");
    two = reserve_one(&s, "t", "k", "other");
    CHECK(!two.is_other && !is_same(&one, &two));
    CHECK_U64(two.position, STG_NO_POSITION);
    CHECK_STR(fixture_ask(&s, "SELECT count(*) FROM published"), "1");
    fixture_end(&s);
}
