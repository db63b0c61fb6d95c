#include "tests/ingress/producer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ingress/internal.h"
#include "tests/harness.h"

static const char whole[] =
    "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\n"
    "Content-Length: 2\r\n\r\nhi";

static bool has_no_file;        /* accept4() finds none ... */
static const stg_httpd *holder; /* ... but where this one gave up its reserve */
static bool is_last_file;       /* the next one is accepted with the last */
static unsigned accepts;        /* calls of accept4() */
static unsigned unaccepted;     /* calls that found no file */

static void begin(market *m)
{
    market_begin(m);
    market_open(m);
}

/* -- slow callers ------------------------------------------------------------ */

/* What a caller got before it was cut. */
static const char *last_words(caller *c)
{
    caller_run_until_closed(c);
    c->in[c->in_size] = '\0';
    return c->in;
}

static void begin_hasty(market *m)
{
    market_begin(m);
    m->options.idle_timeout = 50 * STG_MS;
    m->options.request_timeout = 200 * STG_MS;
    market_open(m);
}

TEST(ingress, cuts_one_who_says_nothing_with_408)
{
    market m;
    caller *c;
    stg_ingress_view view;

    begin_hasty(&m);
    c = caller_new(&m);
    CHECK_INT(status_of(last_words(c)), 408);
    stg_ingress_look(m.ingress, &view);
    CHECK_U64(view.cut, 1);
    caller_free(c);
    market_end(&m);
}

TEST(ingress, cuts_one_whose_header_does_not_end_with_408)
{
    market m;
    caller *c;

    begin_hasty(&m);
    c = caller_new(&m);
    caller_say(c, "POST /v1/messages HTTP/1.1\r\nHost: loc");
    CHECK_INT(status_of(last_words(c)), 408);
    CHECK_STR(header_of(c->in, "Content-Type"), "application/problem+json");
    CHECK(strstr(c->in, "\"status\":408") != NULL);
    caller_free(c);
    market_end(&m);
}

TEST(ingress, cuts_one_whose_body_does_not_come_with_408)
{
    market m;
    caller *c;
    stg_ingress_view view;

    begin_hasty(&m);
    c = caller_new(&m);
    caller_say(c,
               "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\n"
               "Content-Length: 10\r\n\r\nhi");
    CHECK_INT(status_of(last_words(c)), 408);
    stg_ingress_look(m.ingress, &view);
    CHECK_INT(view.pending, 0);
    CHECK_INT(m.appends, 0);
    caller_free(c);
    market_end(&m);
}

/* However busy it is: one byte at a time is no way. */
TEST(ingress, cuts_one_who_trickles_with_408)
{
    market m;
    caller *c;

    market_begin(&m);
    m.options.idle_timeout = STG_MIN;
    m.options.request_timeout = 100 * STG_MS;
    market_open(&m);
    c = caller_new(&m);
    caller_say(c,
               "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\n"
               "Content-Length: 1000000\r\n\r\n");
    for (int i = 0; !c->is_closed && i < 5000; i++) {
        caller_say(c, "x");
        caller_flush(c);
        market_run(&m);
        usleep(1000);
    }
    CHECK(c->is_closed);
    CHECK_INT(status_of(last_words(c)), 408);
    caller_free(c);
    market_end(&m);
}

TEST(ingress, closes_a_connection_that_is_not_used_any_more)
{
    market m;
    caller *c;
    stg_ingress_view view;

    begin_hasty(&m);
    c = caller_new(&m);
    caller_say(c, whole);
    CHECK_INT(status_of(caller_answer(c)), 202);
    CHECK_STR(last_words(c), "");
    stg_ingress_look(m.ingress, &view);
    CHECK_U64(view.cut, 0);
    CHECK_INT(view.connections, 0);
    caller_free(c);
    market_end(&m);
}

TEST(ingress, does_not_cut_one_who_waits_for_the_commit)
{
    market m;
    caller *c;

    begin_hasty(&m);
    m.holds = true;
    c = caller_new(&m);
    caller_say(c, whole);
    caller_flush(c);
    market_run_until_waiting(&m, 1);
    market_run_for(&m, 150 * STG_MS);
    market_settle(&m);
    CHECK_INT(status_of(caller_answer(c)), 202);
    caller_free(c);
    market_end(&m);
}

/* -- many callers ------------------------------------------------------------ */

TEST(ingress, answers_a_thousand_who_post_at_once)
{
    enum { CALLERS = 500, ROUNDS = 2 };
    market m;
    caller *c[CALLERS];
    stg_ingress_view view;

    market_begin(&m);
    m.options.address_connections_max = CALLERS;
    market_open(&m);
    for (int i = 0; i < CALLERS; i++)
        c[i] = caller_new(&m);
    for (int round = 0; round < ROUNDS; round++) {
        m.holds = true;
        for (int i = 0; i < CALLERS; i++) {
            caller_say(c[i], whole);
            caller_flush(c[i]);
        }
        market_run_until_waiting(&m, CALLERS);
        while (m.waiting_count > 0)
            market_settle(&m);
        for (int i = 0; i < CALLERS; i++)
            CHECK_INT(status_of(caller_answer(c[i])), 202);
    }
    stg_ingress_look(m.ingress, &view);
    CHECK_U64(view.accepted, CALLERS * ROUNDS);
    CHECK_INT(view.connections, CALLERS);
    CHECK_INT(view.waiting, 0);
    CHECK_INT(view.pending, 0);
    for (int i = 0; i < CALLERS; i++)
        caller_free(c[i]);
    market_end(&m);
}

/* I32: of an address that has its share, whoever asks nothing makes room. */
TEST(ingress, closes_the_idle_one_for_another_of_its_address)
{
    market m;
    caller *c[3];

    market_begin(&m);
    m.options.address_connections_max = 2;
    market_open(&m);
    for (int i = 0; i < 3; i++) {
        c[i] = caller_new(&m);
        caller_say(c[i], whole);
        CHECK_INT(status_of(caller_answer(c[i])), 202);
    }
    caller_run_until_closed(c[0]);
    CHECK_INT(c[0]->in_size, 0);
    caller_say(c[1], whole);
    CHECK_INT(status_of(caller_answer(c[1])), 202);
    for (int i = 0; i < 3; i++)
        caller_free(c[i]);
    market_end(&m);
}

static caller *begin_one(market *m)
{
    caller *c = caller_new(m);

    caller_say(c, whole);
    caller_flush(c);
    market_run_until_waiting(m, m->waiting_count + 1);
    return c;
}

static void check_two_of_an_address(uint32_t most, uint32_t of_address,
                                    bool changes)
{
    market m;
    caller *c[3];

    market_begin(&m);
    m.options.connections_max = most;
    m.options.address_connections_max = of_address;
    market_open(&m);
    if (changes)
        CHECK(market_change(&m) == STG_OK);
    m.holds = true;
    c[0] = begin_one(&m);
    c[1] = begin_one(&m);
    c[2] = caller_new(&m);
    caller_run_until_closed(c[2]);
    CHECK_INT(c[2]->in_size, 0);
    for (int i = 0; i < 2; i++) {
        market_settle(&m);
        CHECK_INT(status_of(caller_answer(c[i])), 202);
    }
    for (int i = 0; i < 3; i++)
        caller_free(c[i]);
    market_end(&m);
}

TEST(ingress, refuses_another_of_an_address_whose_connections_are_busy)
{
    check_two_of_an_address(1024, 2, false);
}

/* I32: 48 connections are half of those that are wanted. */
TEST(ingress, gives_an_address_its_share_of_fewer_connections)
{
    struct rlimit before, files;

    CHECK(getrlimit(RLIMIT_NOFILE, &before) == 0);
    files = before;
    files.rlim_cur = 128;
    CHECK(setrlimit(RLIMIT_NOFILE, &files) == 0);
    check_two_of_an_address(96, 4, false);
    check_two_of_an_address(96, 5, true);
    CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0);
}

/* Asks once, and keeps the connection. */
static caller *keep_one(market *m)
{
    caller *c = caller_new(m);

    caller_say(c, whole);
    CHECK_INT(status_of(caller_answer(c)), 202);
    return c;
}

static void change_connections(market *m, uint32_t in_all, uint32_t of_client)
{
    m->options.connections_max = in_all;
    m->options.address_connections_max = of_client;
    CHECK_INT(market_change(m), STG_OK);
}

static stg_ingress_view look(const market *m)
{
    stg_ingress_view v;

    stg_ingress_look(m->ingress, &v);
    return v;
}

/* I35: a change applies both limits, in both directions. */
TEST(ingress, takes_more_connections_after_a_change_and_fewer_after_another)
{
    market m;
    caller *c[6];

    market_begin(&m);
    m.options.connections_max = 2;
    m.options.address_connections_max = 2;
    market_open(&m);
    change_connections(&m, 6, 5);
    CHECK_U64(look(&m).connections_max, 6);
    for (int i = 0; i < 5; i++)
        c[i] = keep_one(&m);
    CHECK_U64(look(&m).connections, 5);
    c[5] = keep_one(&m); // the client's oldest makes room
    CHECK_U64(look(&m).connections, 5);
    caller_run_until_closed(c[0]);

    change_connections(&m, 3, 3);
    CHECK_U64(look(&m).connections_max, 3);
    CHECK_U64(look(&m).connections, 3);
    caller_run_until_closed(c[1]);
    caller_run_until_closed(c[2]);
    caller_say(c[5], whole);
    CHECK_INT(status_of(caller_answer(c[5])), 202);
    for (int i = 0; i < 6; i++)
        caller_free(c[i]);
    market_end(&m);
}

/* I32: whoever has said nothing goes before one that has been answered. */
TEST(ingress, closes_the_silent_one_before_the_idle_one)
{
    market m;
    caller *idle, *silent, *third;

    market_begin(&m);
    m.options.connections_max = 2;
    market_open(&m);
    idle = caller_new(&m);
    caller_say(idle, whole);
    CHECK_INT(status_of(caller_answer(idle)), 202);
    silent = caller_new(&m);
    market_run_for(&m, 150 * STG_MS);
    third = caller_new(&m);
    caller_say(third, whole);
    CHECK_INT(status_of(caller_answer(third)), 202);
    caller_run_until_closed(silent);
    caller_say(idle, whole);
    CHECK_INT(status_of(caller_answer(idle)), 202);
    caller_free(idle);
    caller_free(silent);
    caller_free(third);
    market_end(&m);
}

/* They wait until one of the others ends, for those are busy. */
/* I32. Beyond the limit a few are answered, once each. */
TEST(ingress, takes_so_many_connections_and_no_more)
{
    enum { BUSY = 1 + STG_SHORT_MAX };
    market m;
    caller *c[BUSY + 1];
    stg_ingress_view view;

    market_begin(&m);
    m.options.connections_max = 1;
    market_open(&m);
    m.holds = true;
    for (int i = 0; i < BUSY; i++)
        c[i] = begin_one(&m);
    c[BUSY] = caller_new(&m);
    caller_say(c[BUSY], whole);
    caller_flush(c[BUSY]);
    market_run(&m);
    stg_ingress_look(m.ingress, &view);
    CHECK_INT(view.connections, BUSY);
    CHECK_INT(m.appends, BUSY);
    m.holds = false;
    for (int i = 0; i < BUSY; i++)
        market_settle(&m);
    for (int i = 0; i <= BUSY; i++) {
        const char *answer = caller_answer(c[i]);

        CHECK_INT(status_of(answer), 202);
        CHECK((header_of(answer, "Connection") != NULL) == (0 < i && i < BUSY));
        caller_free(c[i]);
    }
    market_end(&m);
}

static const char half[] =
    "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\n"
    "Content-Length: 10\r\n\r\nhi";

static caller *begin_half(market *m)
{
    caller *c = caller_new(m);

    caller_say(c, half);
    caller_flush(c);
    market_run_for(m, 10 * STG_MS);
    return c;
}

/* One who has his answer, and does not close. */
static caller *begin_healthy(market *m)
{
    caller *c = caller_new(m);

    caller_say(c, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
    CHECK_INT(status_of(caller_answer(c)), 200);
    return c;
}

static void check_made_room(caller *c)
{
    CHECK_INT(status_of(last_words(c)), 503);
    CHECK(strstr(c->in, "too many connections") != NULL);
    CHECK_STR(header_of(c->in, "Retry-After"), "5");
    CHECK_STR(header_of(c->in, "Connection"), "close");
    caller_free(c);
}

/* I32: neither those whose bodies do not end, nor those who do not close. */
TEST(ingress, answers_above_its_connections_whoever_waits)
{
    market m;
    caller *busy, *halves[STG_SHORT_MAX], *c[2 * STG_SHORT_MAX];
    uint64_t began_at;

    market_begin(&m);
    m.options.connections_max = 1;
    market_open(&m);
    m.holds = true;
    busy = begin_one(&m);
    for (int i = 0; i < STG_SHORT_MAX; i++)
        halves[i] = begin_half(&m);
    began_at = uv_hrtime();
    for (int i = 0; i < 2 * STG_SHORT_MAX; i++)
        c[i] = begin_healthy(&m);
    CHECK(uv_hrtime() - began_at < 2 * STG_S); // each may linger as long
    check_made_room(halves[0]);
    for (int i = 1; i < STG_SHORT_MAX; i++)
        caller_free(halves[i]);
    for (int i = 0; i < 2 * STG_SHORT_MAX; i++)
        caller_free(c[i]);
    market_settle(&m);
    CHECK_INT(status_of(caller_answer(busy)), 202);
    caller_free(busy);
    market_end(&m);
}

/* Who has his answer goes before one who still speaks. */
TEST(ingress, lets_one_above_its_connections_end_its_body)
{
    market m;
    caller *busy, *half_one, *c[STG_SHORT_MAX];

    market_begin(&m);
    m.options.connections_max = 1;
    market_open(&m);
    m.holds = true;
    busy = begin_one(&m);
    half_one = begin_half(&m);
    for (int i = 0; i < STG_SHORT_MAX; i++)
        c[i] = begin_healthy(&m);
    caller_say(half_one, "and more");
    caller_flush(half_one);
    market_run_until_waiting(&m, 2);
    market_settle(&m);
    market_settle(&m);
    CHECK_INT(status_of(caller_answer(busy)), 202);
    CHECK_INT(status_of(last_words(half_one)), 202);
    for (int i = 0; i < STG_SHORT_MAX; i++)
        caller_free(c[i]);
    caller_free(half_one);
    caller_free(busy);
    market_end(&m);
}

TEST(ingress, gives_one_above_its_connections_a_second)
{
    market m;
    caller *busy, *c;
    uint64_t began_at = uv_hrtime();

    market_begin(&m);
    m.options.connections_max = 1;
    market_open(&m);
    m.holds = true;
    busy = begin_one(&m);
    c = begin_half(&m);
    caller_say(c, "and more");
    caller_flush(c);
    market_run_until_waiting(&m, 2);
    market_settle(&m);
    market_settle(&m);
    CHECK_INT(status_of(caller_answer(busy)), 202);
    CHECK_INT(status_of(last_words(c)), 202);
    caller_free(c);
    caller_say(busy, whole);
    caller_flush(busy);
    market_run_until_waiting(&m, 1);
    c = begin_half(&m);
    CHECK_INT(status_of(last_words(c)), 408);
    CHECK(uv_hrtime() - began_at < 5 * STG_S); // others have 10 s
    caller_free(c);
    market_settle(&m);
    caller_free(busy);
    market_end(&m);
}

/* -- shares of bytes ---------------------------------------------------------- */

/* One who has sent so much of a body, and then says no more. */
static caller *begin_large(market *m, const char *headers, size_t size)
{
    caller *c = caller_new(m);
    char head[512], *body = calloc(1, size);

    CHECK(body != NULL);
    snprintf(head, sizeof head,
             "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\n%s"
             "Content-Length: %zu\r\n\r\n",
             headers, size + 1);
    caller_say(c, head);
    caller_send(c, body, size);
    free(body);
    caller_flush(c);
    market_run_for(m, 20 * STG_MS);
    return c;
}

static size_t pending_of(const market *m)
{
    stg_ingress_view view;

    stg_ingress_look(m->ingress, &view);
    return view.pending;
}

static void begin_little(market *m)
{
    market_begin(m);
    m->options.message_max = m->options.batch_max = 400000;
    m->options.pending_max = 800000;
}

/* I32: bodies that do not end are one client's own trouble. */
TEST(ingress, takes_small_messages_while_large_ones_trickle)
{
    market m;
    caller *c[8];

    begin_little(&m);
    market_open(&m);
    for (int i = 0; i < 8; i++)
        c[i] = begin_large(&m, "", 300000);
    // Half of what may wait is the most of one client.
    CHECK(0 < pending_of(&m) && pending_of(&m) <= 400000);
    CHECK_INT(status_of(ask(&m, "GET /healthz", "", "")), 200);
    caller_say(c[0], "x");
    CHECK_INT(status_of(caller_answer(c[0])), 202);
    for (int i = 0; i < 8; i++)
        caller_free(c[i]);
    market_run(&m);
    CHECK_INT(pending_of(&m), 0);
    CHECK_INT(status_of(ask(&m, "POST /v1/messages", "", "hi")), 202);
    market_end(&m);
}

#define AS(token) "Authorization: Bearer " token "-12345678901\r\n"

static void write_three_tokens(const char *path)
{
    static const char *const tokens[] = {"anna-12345678901", "bert-12345678901",
                                         "carl-12345678901"};
    FILE *f = fopen(path, "w");
    char line[STG_TOKEN_LINE_MAX];

    CHECK(f != NULL);
    for (int i = 0; i < 3; i++) {
        CHECK(stg_token_print(tokens[i], STG_ROLE_PUBLISH, "", line));
        CHECK(fputs(line, f) >= 0);
    }
    CHECK(fclose(f) == 0 && chmod(path, 0600) == 0);
}

/* I32: a client is its token, wherever it connects from. */
TEST(ingress, has_a_share_for_each_token)
{
    char path[] = "/tmp/stagger-tokens-XXXXXX";
    market m;
    caller *c[4];

    CHECK(close(mkstemp(path)) == 0);
    write_three_tokens(path);
    begin_little(&m);
    m.options.token_file = path;
    m.options.address_connections_max = 3;
    m.options.address_waiting_max = 1;
    market_open(&m);
    c[0] = begin_large(&m, AS("anna"), 200000);
    c[1] = begin_large(&m, AS("bert"), 200000);
    c[2] = begin_large(&m, AS("carl"), 200000);
    // More than one client may have, and nearly all that large ones may.
    CHECK_INT(pending_of(&m), 3 * 200001);
    CHECK_INT(status_of(ask(&m, "POST /v1/messages", AS("anna"), "hi")), 202);
    m.holds = true;
    c[3] = caller_new(&m);
    caller_say(c[3], "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\n" AS(
                         "bert") "Content-Length: 2\r\n\r\nhi");
    caller_flush(c[3]);
    market_run_until_waiting(&m, 1);
    CHECK(strstr(ask(&m, "POST /v1/messages", AS("bert"), "hi"),
                 "1 messages of this token wait") != NULL);
    m.holds = false;
    CHECK_INT(status_of(ask(&m, "POST /v1/messages", AS("anna"), "hi")), 202);
    market_settle(&m);
    CHECK_INT(status_of(caller_answer(c[3])), 202);
    for (int i = 0; i < 4; i++)
        caller_free(c[i]);
    CHECK(unlink(path) == 0);
    market_end(&m);
}

/* Those of one token, though the address has room for more. */
TEST(ingress, closes_the_idle_one_for_another_of_its_token)
{
    static const char with_token[] =
        "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\n" AS(
            "anna") "Content-Length: 2\r\n\r\nhi";
    char path[] = "/tmp/stagger-tokens-XXXXXX";
    market m;
    caller *c[3], *other;

    CHECK(close(mkstemp(path)) == 0);
    write_three_tokens(path);
    market_begin(&m);
    m.options.token_file = path;
    m.options.address_connections_max = 2;
    market_open(&m);
    other = caller_new(&m);
    caller_say(other, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
    CHECK_INT(status_of(caller_answer(other)), 200);
    for (int i = 0; i < 3; i++) {
        c[i] = caller_new(&m);
        caller_say(c[i], with_token);
        CHECK_INT(status_of(caller_answer(c[i])), 202);
    }
    caller_run_until_closed(c[0]);
    caller_say(c[1], with_token);
    CHECK_INT(status_of(caller_answer(c[1])), 202);
    caller_say(other, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
    CHECK_INT(status_of(caller_answer(other)), 200);
    m.holds = true;
    for (int i = 1; i < 3; i++) {
        caller_say(c[i], with_token);
        caller_flush(c[i]);
        market_run_until_waiting(&m, (size_t)i);
    }
    CHECK(strstr(ask(&m, "POST /v1/messages", AS("anna"), "hi"),
                 "too many connections of this token") != NULL);
    m.holds = false;
    market_settle(&m);
    market_settle(&m);
    for (int i = 0; i < 3; i++)
        caller_free(c[i]);
    caller_free(other);
    CHECK(unlink(path) == 0);
    market_end(&m);
}

/* -- the stop ---------------------------------------------------------------- */

/* I14. */
TEST(ingress, answers_those_who_wait_when_it_stops_and_refuses_others)
{
    market m;
    caller *waits, *idle;
    const char *answer;

    begin(&m);
    idle = caller_new(&m);
    caller_say(idle, whole);
    CHECK_INT(status_of(caller_answer(idle)), 202);
    m.holds = true;
    waits = begin_one(&m);
    market_stop(&m);
    answer = ask(&m, "POST /v1/messages", "", "hi");
    CHECK_INT(status_of(answer), 503);
    CHECK(strstr(answer, "the hub is stopping") != NULL);
    CHECK_STR(header_of(answer, "Connection"), "close");
    CHECK_STR(header_of(answer, "Retry-After"), "5");
    caller_say(idle, whole);
    answer = caller_answer(idle);
    CHECK_INT(status_of(answer), 503);
    CHECK_STR(header_of(answer, "Connection"), "close");
    caller_run_until_closed(idle);
    market_run_for(&m, 10 * STG_MS);
    CHECK(!m.is_stopped);
    CHECK_INT(m.waiting_count, 1);

    market_settle(&m);
    answer = caller_answer(waits);
    CHECK_INT(status_of(answer), 202);
    CHECK_STR(header_of(answer, "Connection"), "close");
    caller_run_until_closed(waits);
    market_run_until(&m, &m.is_stopped);
    caller_free(idle);
    caller_free(waits);
    market_end(&m);
}

TEST(ingress, refuses_what_had_begun_before_it_stopped)
{
    market m;
    caller *c;

    begin(&m);
    c = caller_new(&m);
    caller_say(c,
               "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\n"
               "Content-Length: 4\r\n\r\nhi");
    caller_flush(c);
    market_run(&m);
    market_stop(&m);
    caller_say(c, "hi");
    CHECK_INT(status_of(caller_answer(c)), 503);
    CHECK_INT(m.appends, 0);
    caller_free(c);
    market_run_until(&m, &m.is_stopped);
    market_end(&m);
}

TEST(ingress, stops_at_once_when_nobody_waits)
{
    market m;

    begin(&m);
    market_stop(&m);
    market_run_until(&m, &m.is_stopped);
    market_end(&m);
}

static void set(void *ctx)
{
    *(bool *)ctx = true;
}

TEST(ingress, closes_while_messages_wait_for_their_commit)
{
    market m;
    caller *c[3];
    bool is_closed = false;

    begin(&m);
    m.holds = true;
    for (int i = 0; i < 3; i++)
        c[i] = begin_one(&m);
    stg_ingress_close(m.ingress, set, &is_closed);
    m.ingress = NULL;
    market_run_until(&m, &is_closed);
    for (int i = 0; i < 3; i++) {
        caller_run_until_closed(c[i]);
        CHECK_INT(c[i]->in_size, 0);
        caller_free(c[i]);
    }
    while (m.waiting_count > 0)
        market_settle(&m);
    market_end(&m);
}

/* One who does not wait for the answer has still published. */
TEST(ingress, goes_on_when_a_caller_is_gone_before_the_commit)
{
    market m;
    caller *c;
    stg_ingress_view view;

    begin(&m);
    m.holds = true;
    c = begin_one(&m);
    caller_free(c);
    market_run(&m);
    market_settle(&m);
    market_run(&m);
    stg_ingress_look(m.ingress, &view);
    CHECK_U64(view.accepted, 1);
    CHECK_INT(view.connections, 0);
    CHECK_INT(view.waiting, 0);
    m.holds = false;
    CHECK_INT(status_of(ask(&m, "POST /v1/messages", "", "hi")), 202);
    market_end(&m);
}

/* Else targets and the store would have no files left. */
TEST(ingress, leaves_the_targets_their_quarter_of_the_open_files)
{
    struct rlimit before, files;
    stg_ingress_view view;
    market m;

    CHECK(getrlimit(RLIMIT_NOFILE, &before) == 0);
    files = before;
    files.rlim_cur = 128;
    CHECK(setrlimit(RLIMIT_NOFILE, &files) == 0);
    market_begin(&m);
    m.options.connections_max = 49; // 64 files are neither's
    market_open(&m);
    stg_ingress_look(m.ingress, &view);
    CHECK_INT(view.connections_max, 48);
    market_end(&m);
    market_begin(&m);
    m.options.connections_max = 48;
    market_open(&m);
    stg_ingress_look(m.ingress, &view);
    CHECK_INT(view.connections_max, 48);
    market_end(&m);
    CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0);
}

static bool evict_target(void *ctx)
{
    stg_files *files = ctx;

    files->targets--;
    return true;
}

static caller *be_idle(market *m)
{
    caller *c = caller_new(m);

    caller_say(c, whole);
    CHECK_INT(status_of(caller_answer(c)), 202);
    return c;
}

/* Of 16 files each side owns four, and gives back what it has of the others. */
TEST(ingress, shares_its_files_with_the_connections_to_targets)
{
    enum { CALLERS = 6 };
    stg_files files = {.limit = 32, .targets = 12};
    caller *c[CALLERS];
    market m;

    files.evict_target = evict_target;
    files.targets_ctx = &files;
    market_begin(&m);
    m.options.files = &files;
    market_open(&m);
    for (uint64_t i = 0; i < CALLERS; i++) {
        c[i] = be_idle(&m);
        CHECK_U64(files.callers, i + 1);
        CHECK_U64(files.targets, i < 4 ? 12 : 15 - i);
    }
    stg_files_ask_callers(&files);
    CHECK_U64(files.callers, 5);
    caller_run_until_closed(c[0]);
    stg_files_ask_callers(&files);
    caller_run_until_closed(c[1]);
    // What it owns it keeps.
    stg_files_ask_callers(&files);
    CHECK_U64(files.callers, 4);
    // Where the targets give nothing back, an idle caller makes room.
    files.evict_target = NULL;
    files.targets = 12;
    caller_free(be_idle(&m));
    caller_run_until_closed(c[2]);
    caller_say(c[3], whole);
    CHECK_INT(status_of(caller_answer(c[3])), 202);
    for (size_t i = 0; i < CALLERS; i++)
        caller_free(c[i]);
    market_end(&m);
}

/* The server calls it in place of the system's. A limit of the process is
 * not enough, for valgrind accepts above it and closes what it got. */
__attribute__((visibility("default"))) int
accept4(int fd, struct sockaddr *address, socklen_t *size, int flags);
int accept4(int fd, struct sockaddr *address, socklen_t *size, int flags)
{
    accepts++;
    if (has_no_file &&
        (holder == NULL || holder->reserve >= 0 || holder->shorts > 0)) {
        unaccepted++;
        errno = EMFILE;
        return -1;
    }
    fd = (int)syscall(SYS_accept4, fd, address, size, flags);
    has_no_file = has_no_file || (is_last_file && fd >= 0);
    return fd;
}

static void raise_flag(uv_timer_t *timer)
{
    bool *is_over = timer->data;

    *is_over = true;
}

TEST(ingress, does_not_spin_without_a_file_for_its_first_connection)
{
    bool is_over = false;
    unsigned turns = 0;
    uv_timer_t timer;
    market m;
    caller *c;

    begin(&m);
    market_run(&m);
    c = caller_new(&m); // it waits to be accepted
    has_no_file = true;
    CHECK(uv_timer_init(&m.loop, &timer) == 0);
    timer.data = &is_over;
    CHECK(uv_timer_start(&timer, raise_flag, 350, 0) == 0);
    while (!is_over) {
        (void)uv_run(&m.loop, UV_RUN_ONCE);
        turns++;
    }
    uv_close((uv_handle_t *)&timer, NULL);
    has_no_file = false;
    CHECK(0 < unaccepted && turns < 40);
    caller_say(c, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
    CHECK_INT(status_of(caller_answer(c)), 200);
    caller_free(c);
    market_end(&m);
}

TEST(ingress, asks_once_whether_another_waits)
{
    market m;
    caller *c;

    begin(&m);
    accepts = 0;
    c = be_idle(&m);
    CHECK_U64(accepts, 2);
    caller_free(c);
    market_end(&m);
}

/* The system says that there is no file before it says that nobody waits. */
TEST(ingress, closes_no_idle_one_where_nobody_waits_for_its_file)
{
    caller *idle, *last;
    market m;

    begin(&m);
    idle = be_idle(&m);
    unaccepted = 0;
    is_last_file = true;
    last = be_idle(&m);
    is_last_file = has_no_file = false;
    CHECK_U64(unaccepted, 1);
    caller_say(idle, whole);
    CHECK_INT(status_of(caller_answer(idle)), 202);
    caller_free(idle);
    caller_free(last);
    market_end(&m);
}

/* I29: whoever has a connection is busy, and still the hub tells its health. */
TEST(ingress, answers_by_its_reserve_when_there_is_no_file)
{
    market m;
    caller *busy, *half_one, *c;
    const char *answer;

    begin(&m);
    m.holds = true;
    busy = begin_one(&m);
    holder = &m.ingress->server;
    has_no_file = true;
    half_one = begin_half(&m);
    for (int i = 0; i < 3; i++) {
        c = caller_new(&m);
        caller_say(c, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
        answer = caller_answer(c);
        CHECK_INT(status_of(answer), 200);
        CHECK_STR(header_of(answer, "Connection"), "close");
        caller_run_until_closed(c);
        caller_free(c);
        market_run(&m);
        CHECK(holder->reserve >= 0);
    }
    CHECK(unaccepted > 0);
    check_made_room(half_one);
    has_no_file = false;
    holder = NULL;
    market_settle(&m);
    CHECK_INT(status_of(caller_answer(busy)), 202);
    caller_free(busy);
    market_end(&m);
}

/* -- those who close their half ----------------------------------------------- */

static const char *answer_half_closed(market *m, caller *c, const char *text,
                                      size_t size)
{
    caller_send(c, text, size);
    caller_flush(c);
    CHECK(shutdown(c->fd, SHUT_WR) == 0);
    if (m->holds) {
        market_run_until_waiting(m, 1);
        market_run(m);
        market_settle(m);
    }
    return last_words(c);
}

TEST(ingress, answers_one_who_has_closed_his_half)
{
    market m;
    stg_ingress_view view;

    begin(&m);
    for (int i = 0; i < 20; i++) {
        caller *c = caller_new(&m);

        m.holds = i % 2 == 1;
        m.is_repeat = i % 4 == 3;
        CHECK_INT(status_of(answer_half_closed(&m, c, whole, sizeof whole - 1)),
                  202);
        CHECK(strncmp(c->in, "HTTP/1.1 202 Accepted\r\n", 23) == 0);
        CHECK(strncmp(body_of(c->in), "{\"id\":\"", 7) == 0);
        CHECK((header_of(c->in, "Stagger-Repeat") != NULL) == m.is_repeat);
        caller_free(c);
    }
    CHECK_INT(m.appends, 20);
    stg_ingress_look(m.ingress, &view);
    CHECK_U64(view.requests, 20);
    CHECK_INT(view.waiting, 0);
    market_end(&m);
}

TEST(ingress, tells_one_who_has_closed_his_half_what_went_wrong)
{
    market m;
    caller *c;

    begin(&m);
    m.holds = true;
    m.answer = STG_APPEND_FULL;
    c = caller_new(&m);
    CHECK_INT(status_of(answer_half_closed(&m, c, whole, sizeof whole - 1)),
              503);
    CHECK_STR(header_of(c->in, "Retry-After"), "5");
    CHECK(strstr(c->in, "the log is full") != NULL);
    caller_free(c);
    market_end(&m);
}

/* It would hold a connection until its time is up, 30 s. */
TEST(ingress, lets_go_of_one_who_has_closed_his_half)
{
    static const char *const texts[] = {
        "POST /none HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\nhi",
        "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "POST /v1/messages HTTP/1.1\r\nHost: loc",
        ("POST /v1/messages HTTP/1.1\r\nHost: localhost\r\n"
         "Content-Length: 10\r\n\r\nhi"),
        "",
    };
    market m;

    begin(&m);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        caller *c = caller_new(&m);
        uint64_t began_at = uv_hrtime();

        answer_half_closed(&m, c, texts[i], strlen(texts[i]));
        CHECK(uv_hrtime() - began_at < 15 * STG_S);
        caller_free(c);
    }
    market_end(&m);
}

/* -- bytes that are no text ----------------------------------------------------- */

#define HEAD "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\n"
#define LENGTH "Content-Length: 2\r\n"
#define BYTES(text)            \
    {                          \
        text, sizeof(text) - 1 \
    }

TEST(ingress, refuses_zeros_in_a_header_with_400)
{
    static const struct {
        const char *text;
        size_t size;
    } refused[] = {
        BYTES(HEAD "Idempotency-Key: a\0b\r\n" LENGTH "\r\nhi"),
        BYTES(HEAD "Idempotency-Key: a\0\r\n" LENGTH "\r\nhi"),
        BYTES(HEAD "Idempotency-Key: a\0\0\0\r\n" LENGTH "\r\nhi"),
        BYTES(HEAD "Idempotency-Key: \0a\r\n" LENGTH "\r\nhi"),
        BYTES(HEAD LENGTH "Idempotency-Key: a\0b\r\n\r\nhi"),
        BYTES(HEAD LENGTH "Idempotency-Key: a\0\0\0\0b\r\n\r\nhi"),
        BYTES(HEAD LENGTH "Idempotency-Key: a\0\r\n\r\nhi"),
        BYTES(HEAD LENGTH "X-Other: a\0b\r\n\r\nhi"),
        BYTES("POST /v1/messages\0/other HTTP/1.1\r\nHost: localhost\r\n" LENGTH
              "\r\nhi"),
        BYTES("POST /v1/messages?a\0b HTTP/1.1\r\nHost: localhost\r\n" LENGTH
              "\r\nhi"),
        BYTES(HEAD "Idempotency-Key: a\r\n b\r\n" LENGTH "\r\nhi"),
    };
    market m;

    begin(&m);
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        caller *c = caller_new(&m);
        const char *answer;

        caller_send(c, refused[i].text, refused[i].size);
        answer = caller_answer(c);
        if (status_of(answer) != 400)
            harness_fail(__FILE__, __LINE__, "number %zu: %s", i, answer);
        CHECK_STR(header_of(answer, "Content-Type"),
                  "application/problem+json");
        CHECK(strstr(answer, "a zero byte in the header") != NULL);
        caller_free(c);
    }
    CHECK_INT(m.appends, 0);
    market_end(&m);
}

TEST(ingress, refuses_a_request_without_a_host_or_with_a_blank_in_its_path)
{
    static const struct {
        const char *text, *words;
    } refused[] = {
        {"GET /healthz HTTP/1.1\r\n\r\n", "expected a Host"},
        {"GET /health z HTTP/1.1\r\nHost: localhost\r\n\r\n", "a blank"},
    };
    market m;

    begin(&m);
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        caller *c = caller_new(&m);
        const char *answer;

        caller_say(c, refused[i].text);
        answer = caller_answer(c);
        CHECK_INT(status_of(answer), 400);
        CHECK_STR(header_of(answer, "Content-Type"),
                  "application/problem+json");
        CHECK(strstr(answer, refused[i].words) != NULL);
        caller_free(c);
    }
    CHECK_INT(status_of(ask(&m, "GET /healthz", "", "")), 200);
    market_end(&m);
}

/* Source: RFC 9110, 9.3.2; of what was asked before, it is no matter. */
TEST(ingress, sends_no_body_to_head_that_is_refused)
{
    static char too_long[20000] = "HEAD /";
    static const struct {
        const char *text;
        int status;
    } refused[] = {
        {"HEAD / HTTP/1.1\r\n\r\n", 400},
        {"HEAD / HTTP/1.1\n", 400},
        {"HEAD \r\n\r\n", 400},
        {"HEAD / HTTP/2.0\r\n\r\n", 505},
        {too_long, 431},
        {"HEAD / HTTP/1.1\r\nHo", 408},
    };
    market m;
    caller *c;
    const char *words;

    memset(too_long + 6, 'x', sizeof too_long - 7);
    market_begin(&m);
    m.options.header_timeout = 500 * STG_MS;
    market_open(&m);
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        c = caller_new(&m);
        caller_say(c, refused[i].text);
        words = last_words(c);
        CHECK_INT(status_of(words), refused[i].status);
        CHECK(strstr(words, "Content-Length: 0\r\n") == NULL);
        CHECK_STR(strstr(words, "\r\n\r\n"), "\r\n\r\n");
        caller_free(c);
    }
    // Only a blank behind it says that the method is HEAD.
    c = caller_new(&m);
    caller_say(c, "HEAD");
    words = last_words(c);
    CHECK_INT(status_of(words), 408);
    CHECK(strstr(words, "\r\n\r\n{") != NULL);
    caller_free(c);
    c = caller_new(&m);
    caller_say(c,
               "HEAD /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
               "GET / HTTP/1.1\r\n\r\n");
    CHECK(strstr(last_words(c), "expected a Host") != NULL);
    caller_free(c);
    market_end(&m);
}

/* However it comes, and wherever it lies. */
TEST(ingress, takes_headers_that_come_in_pieces_for_what_they_are)
{
    static const char text[] = HEAD
        "Cookie: a=b; c=d\r\nAccept: */*  \r\nX-Long: "
        "0123456789012345678901234567890123456789\r\n"
        "Idempotency-Key:\t k \r\nX-Empty:\r\n" LENGTH "\r\nhi";
    market m;
    caller *c;

    begin(&m);
    c = caller_new(&m);
    for (size_t step = 1; step < sizeof text; step += 7) {
        for (size_t at = 0; at < sizeof text - 1; at += step) {
            size_t left = sizeof text - 1 - at;

            caller_send(c, text + at, left < step ? left : step);
            caller_flush(c);
            (void)uv_run(&m.loop, UV_RUN_NOWAIT);
        }
        CHECK_INT(status_of(caller_answer(c)), 202);
    }
    CHECK_STR(m.stored[0].idempotency_key, "k");
    caller_say(
        c, "POST /v1/messages?a=%20b&c HTTP/1.1\r\nHost: localhost\r\n" LENGTH
           "\r\nhi");
    CHECK_INT(status_of(caller_answer(c)), 202);
    caller_say(c,
               "POST /v1/messages HTTP/1.1\nHost: localhost\n"
               "Content-Length: 2\n\nhi");
    CHECK_INT(status_of(caller_answer(c)), 400);
    caller_free(c);
    market_end(&m);
}
