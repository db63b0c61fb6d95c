#include "tests/hub/producer.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/harness.h"

static const char whole[] =
    "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\n"
    "Content-Length: 2\r\n\r\nhi";

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

TEST(ingress, refuses_more_connections_of_one_address)
{
    market m;
    caller *c[3];

    market_begin(&m);
    m.options.address_connections_max = 2;
    market_open(&m);
    for (int i = 0; i < 2; i++) {
        c[i] = caller_new(&m);
        caller_say(c[i], whole);
        CHECK_INT(status_of(caller_answer(c[i])), 202);
    }
    c[2] = caller_new(&m);
    caller_run_until_closed(c[2]);
    CHECK_INT(c[2]->in_size, 0);
    caller_free(c[2]);
    caller_free(c[1]);
    market_run(&m);
    CHECK_INT(status_of(ask(&m, "POST /v1/messages", "", "hi")), 202);
    caller_free(c[0]);
    market_end(&m);
}

/* They wait until one of the others ends. */
TEST(ingress, takes_so_many_connections_and_no_more)
{
    market m;
    caller *c[2];
    stg_ingress_view view;

    market_begin(&m);
    m.options.connections_max = 1;
    market_open(&m);
    for (int i = 0; i < 2; i++)
        c[i] = caller_new(&m);
    caller_say(c[0], whole);
    CHECK_INT(status_of(caller_answer(c[0])), 202);
    caller_say(c[1], whole);
    caller_flush(c[1]);
    market_run(&m);
    stg_ingress_look(m.ingress, &view);
    CHECK_INT(view.connections, 1);
    CHECK_INT(m.appends, 1);
    caller_free(c[0]);
    CHECK_INT(status_of(caller_answer(c[1])), 202);
    caller_free(c[1]);
    market_end(&m);
}

/* -- the stop ---------------------------------------------------------------- */

static caller *begin_one(market *m)
{
    caller *c = caller_new(m);

    caller_say(c, whole);
    caller_flush(c);
    market_run_until_waiting(m, m->waiting_count + 1);
    return c;
}

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
