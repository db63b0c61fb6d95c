#include "tests/ingress/producer.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ingress/batch.h"
#include "tests/harness.h"

static const char ndjson[] = "Content-Type: application/x-ndjson\r\n";

/* A market whose ingress is as it comes. */
static void begin(market *m)
{
    market_begin(m);
    market_open(m);
}

/* -- what is accepted -------------------------------------------------------- */

TEST(ingress, answers_202_and_the_id_of_a_message)
{
    market m;
    const char *answer;

    begin(&m);
    m.next = 42;
    answer = ask(&m, "POST /v1/messages", "", "hello");
    CHECK_INT(status_of(answer), 202);
    CHECK_STR(header_of(answer, "Content-Type"), "application/json");
    CHECK_STR(body_of(answer), "{\"id\":\"0000000000c0ffee-42\"}\n");
    CHECK(header_of(answer, "Stagger-Repeat") == NULL);
    CHECK_INT(m.stored_count, 1);
    CHECK_STR(m.stored[0].body, "hello");
    CHECK_STR(m.stored[0].content_type, "");
    CHECK_STR(m.stored[0].headers, "");
    CHECK_STR(m.stored[0].key, "");
    CHECK_STR(m.stored[0].idempotency_key, "");
    market_end(&m);
}

TEST(ingress, keeps_the_bytes_the_type_the_keys_and_chosen_headers)
{
    market m;
    caller *c;
    const char *answer;

    begin(&m);
    c = caller_new(&m);
    caller_say(c,
               "POST /v1/messages HTTP/1.1\r\nHost: 127.0.0.1:80\r\n"
               "Content-Type: application/octet-stream\r\n"
               "Stagger-Key: order 7\r\nIdempotency-Key: \"a-1\"\r\n"
               "traceparent: 00-ab\r\nX-Source:   till  \r\n"
               "x-dropped: 1\r\nConnection: X-Dropped, keep-alive\r\n"
               "Authorization: Bearer t\r\nCookie: a=b\r\nAccept: */*\r\n"
               "Stagger-Other: 1\r\nContent-Length: 5\r\n\r\n");
    caller_send(c, "a\0\r\n\xff", 5);
    answer = caller_answer(c);
    CHECK_INT(status_of(answer), 202);
    CHECK_STR(m.stored[0].content_type, "application/octet-stream");
    CHECK_STR(m.stored[0].key, "order 7");
    CHECK_STR(m.stored[0].idempotency_key, "a-1");
    CHECK_STR(m.stored[0].headers, "traceparent: 00-ab\r\nX-Source: till\r\n");
    CHECK_INT(m.stored[0].body_size, 5);
    CHECK(memcmp(m.stored[0].body, "a\0\r\n\xff", 5) == 0);
    caller_free(c);
    market_end(&m);
}

TEST(ingress, accepts_an_empty_message)
{
    market m;

    begin(&m);
    CHECK_INT(status_of(ask(&m, "POST /v1/messages", "", "")), 202);
    CHECK_INT(m.stored[0].body_size, 0);
    market_end(&m);
}

/* I9. */
TEST(ingress, answers_nothing_before_the_commit)
{
    market m;
    stg_ingress_view view;
    caller *c;

    begin(&m);
    m.holds = true;
    c = caller_new(&m);
    caller_say(c,
               "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\n"
               "Content-Length: 2\r\n\r\nhi");
    caller_flush(c);
    market_run_until_waiting(&m, 1);
    market_run(&m);
    stg_ingress_look(m.ingress, &view);
    CHECK_INT(view.waiting, 1);
    CHECK(view.pending >= 2);
    CHECK(recv(c->fd, c->in, sizeof c->in, MSG_DONTWAIT) < 0);
    market_settle(&m);
    CHECK_INT(status_of(caller_answer(c)), 202);
    stg_ingress_look(m.ingress, &view);
    CHECK_INT(view.waiting, 0);
    CHECK_INT(view.pending, 0);
    CHECK_INT(view.accepted, 1);
    caller_free(c);
    market_end(&m);
}

TEST(ingress, keeps_a_connection_for_many_messages)
{
    market m;
    stg_ingress_view view;
    caller *c;

    begin(&m);
    c = caller_new(&m);
    for (int i = 0; i < 100; i++) {
        caller_say(c,
                   "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\n"
                   "Content-Length: 2\r\n\r\nhi");
        CHECK_INT(status_of(caller_answer(c)), 202);
    }
    // And for those that do not wait for the answer before.
    for (int i = 0; i < 10; i++)
        caller_say(c,
                   "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\n"
                   "Content-Length: 2\r\n\r\nho");
    for (int i = 0; i < 10; i++)
        CHECK_INT(status_of(caller_answer(c)), 202);
    stg_ingress_look(m.ingress, &view);
    CHECK_U64(view.accepted, 110);
    CHECK_INT(view.connections, 1);
    caller_free(c);
    market_end(&m);
}

TEST(ingress, takes_a_body_in_chunks)
{
    market m;
    caller *c;

    begin(&m);
    c = caller_new(&m);
    caller_say(c,
               "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\n"
               "Transfer-Encoding: chunked\r\n\r\n"
               "5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n");
    CHECK_INT(status_of(caller_answer(c)), 202);
    CHECK_STR(m.stored[0].body, "hello world");
    caller_free(c);
    market_end(&m);
}

/* A body that breaks off is no message. */
TEST(ingress, accepts_nothing_of_a_body_that_breaks_off)
{
    static const char *const broken[] = {
        "Content-Length: 10\r\n\r\nhello",
        "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
        "Transfer-Encoding: chunked\r\n\r\n9\r\nhello",
        "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n",
    };
    market m;

    begin(&m);
    for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++) {
        caller *c = caller_new(&m);

        caller_say(c, "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\n");
        caller_say(c, broken[i]);
        caller_flush(c);
        market_run(&m);
        CHECK(shutdown(c->fd, SHUT_WR) == 0);
        caller_run_until_closed(c);
        caller_free(c);
    }
    CHECK_INT(m.appends, 0);
    market_end(&m);
}

TEST(ingress, asks_for_the_body_of_one_who_expects_it)
{
    market m;
    caller *c;

    begin(&m);
    c = caller_new(&m);
    caller_say(c,
               "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\n"
               "Expect: 100-continue\r\nContent-Length: 2\r\n\r\n");
    CHECK_INT(status_of(caller_answer(c)), 100);
    caller_say(c, "hi");
    CHECK_INT(status_of(caller_answer(c)), 202);
    caller_free(c);

    c = caller_new(&m);
    caller_say(c,
               "POST /v1/message HTTP/1.1\r\nHost: localhost\r\n"
               "Expect: 100-continue\r\nContent-Length: 2\r\n\r\n");
    CHECK_INT(status_of(caller_answer(c)), 404);
    caller_run_until_closed(c);
    caller_free(c);
    market_end(&m);
}

/* I10. */
TEST(ingress, says_that_a_message_is_a_repeat)
{
    market m;
    stg_ingress_view view;
    const char *answer;

    begin(&m);
    m.is_repeat = true;
    m.next = 7;
    answer = ask(&m, "POST /v1/messages", "Idempotency-Key: a\r\n", "hi");
    CHECK_INT(status_of(answer), 202);
    CHECK_STR(header_of(answer, "Stagger-Repeat"), "true");
    CHECK_STR(body_of(answer), "{\"id\":\"0000000000c0ffee-7\"}\n");
    stg_ingress_look(m.ingress, &view);
    CHECK_U64(view.repeats, 1);
    CHECK_U64(view.accepted, 0);
    market_end(&m);
}

TEST(ingress, answers_a_batch_with_an_id_for_each_line)
{
    market m;
    const char *answer;

    begin(&m);
    answer = ask(&m, "POST /v1/messages/batch", ndjson,
                 "{\"body\": \"a\", \"key\": \"k\"}\n\n"
                 "{\"body_base64\": \"AP8=\", \"idempotency_key\": \"i\"}\r\n"
                 "{\"json\": {\"n\": 1.50}, \"headers\": {\"X-A\": \"b\"}}");
    CHECK_INT(status_of(answer), 202);
    CHECK_STR(body_of(answer),
              "{\"ids\":[\"0000000000c0ffee-1\","
              "\"0000000000c0ffee-2\","
              "\"0000000000c0ffee-3\"]}\n");
    CHECK_INT(m.appends, 1);
    CHECK_INT(m.stored_count, 3);
    CHECK_STR(m.stored[0].body, "a");
    CHECK_STR(m.stored[0].key, "k");
    CHECK_STR(m.stored[0].content_type, "text/plain; charset=utf-8");
    CHECK_INT(m.stored[1].body_size, 2);
    CHECK(memcmp(m.stored[1].body, "\0\xff", 2) == 0);
    CHECK_STR(m.stored[1].idempotency_key, "i");
    CHECK_STR(m.stored[1].content_type, "");
    CHECK_STR(m.stored[2].body, "{\"n\": 1.50}");
    CHECK_STR(m.stored[2].content_type, "application/json");
    CHECK_STR(m.stored[2].headers, "X-A: b\r\n");
    market_end(&m);
}

/* -- what is refused --------------------------------------------------------- */

/* Checks status and words of a problem document; nothing was appended. */
static void check_problem(const char *answer, int status, const char *title,
                          const char *detail)
{
    char start[128];

    CHECK_INT(status_of(answer), status);
    CHECK_STR(header_of(answer, "Content-Type"), "application/problem+json");
    snprintf(start, sizeof start,
             "{\"type\":\"about:blank\",\"title\":\"%s\",\"status\":%d,", title,
             status);
    CHECK(strncmp(body_of(answer), start, strlen(start)) == 0);
    if (strstr(body_of(answer), detail) == NULL)
        CHECK_STR(body_of(answer), detail);
}

TEST(ingress, refuses_unknown_paths_with_404)
{
    market m;

    begin(&m);
    check_problem(ask(&m, "POST /v1/message", "", "hi"), 404, "Not Found",
                  "/v1/messages");
    check_problem(ask(&m, "GET /", "", ""), 404, "Not Found", "/v1/messages");
    check_problem(ask(&m, "POST /v1/messages/", "", "hi"), 404, "Not Found",
                  "/v1/messages");
    CHECK_INT(m.appends, 0);
    market_end(&m);
}

TEST(ingress, refuses_other_methods_with_405_and_the_allowed_ones)
{
    static const char *const asked[][2] = {
        {"GET /v1/messages", "POST"},       {"PUT /v1/messages", "POST"},
        {"GET /v1/messages/batch", "POST"}, {"POST /healthz", "GET, HEAD"},
        {"OPTIONS /readyz", "GET, HEAD"},
    };
    market m;

    begin(&m);
    for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++) {
        const char *answer = ask(&m, asked[i][0], "", "");

        check_problem(answer, 405, "Method Not Allowed", asked[i][1]);
        CHECK_STR(header_of(answer, "Allow"), asked[i][1]);
    }
    market_end(&m);
}

TEST(ingress, refuses_a_body_without_a_length_with_411)
{
    market m;
    caller *c;

    begin(&m);
    c = caller_new(&m);
    caller_say(c, "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\n\r\n");
    check_problem(caller_answer(c), 411, "Length Required", "Content-Length");
    caller_free(c);
    market_end(&m);
}

TEST(ingress, refuses_a_second_host_origin_or_hops_with_400)
{
    static const char *const headers[] = {
        "Host: example.org\r\n",
        "Origin: http://localhost\r\nOrigin: http://example.org\r\n",
        "Stagger-Hops: 1\r\nStagger-Hops: 8\r\n"};
    market m;

    begin(&m);
    for (size_t i = 0; i < sizeof headers / sizeof headers[0]; i++) {
        caller *c = caller_new(&m);

        caller_say(c, "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\n");
        caller_say(c, headers[i]);
        caller_say(c, "Content-Length: 2\r\n\r\nhi");
        check_problem(caller_answer(c), 400, "Bad Request", "one Host");
        caller_free(c);
    }
    CHECK_INT(m.appends, 0);
    market_end(&m);
}

/* Two readers must not see two ends of a body. */
TEST(ingress, refuses_a_body_with_two_lengths_with_400)
{
    static const char *const framings[] = {
        "Content-Length: 2\r\nContent-Length: 2\r\n\r\nhi",
        "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n"
         "0\r\n\r\n"),
        // A blank before the colon: some read the name without it.
        "Content-Length : 5\r\nContent-Length: 2\r\n\r\nhi",
        "Transfer-Encoding : chunked\r\nContent-Length: 2\r\n\r\nhi",
        "Content-Length: +2\r\n\r\nhi",
        "Content-Length: 2, 2\r\n\r\nhi",
    };
    market m;

    begin(&m);
    for (size_t i = 0; i < sizeof framings / sizeof framings[0]; i++) {
        caller *c = caller_new(&m);

        caller_say(c, "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\n");
        caller_say(c, framings[i]);
        CHECK_INT(status_of(caller_answer(c)), 400);
        caller_free(c);
    }
    CHECK_INT(m.appends, 0);
    market_end(&m);
}

TEST(ingress, refuses_other_codings_with_501)
{
    market m;
    caller *c;

    begin(&m);
    c = caller_new(&m);
    caller_say(c,
               "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\n"
               "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n");
    check_problem(caller_answer(c), 501, "Not Implemented", "chunked");
    caller_free(c);
    market_end(&m);
}

TEST(ingress, refuses_keys_that_are_none_with_400)
{
    static const char *const wrong[] = {
        "Idempotency-Key:\r\n",
        "Idempotency-Key: a\r\nIdempotency-Key: a\r\n",
        "Stagger-Key: \r\n",
        "Stagger-Key: a\r\nStagger-Key: b\r\n",
        "Content-Type: a/b\r\nContent-Type: c/d\r\n",
    };
    char longest[400];
    market m;

    begin(&m);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        check_problem(ask(&m, "POST /v1/messages", wrong[i], "hi"), 400,
                      "Bad Request", "expected one ");
    snprintf(longest, sizeof longest, "Idempotency-Key: %0*d\r\n",
             STG_KEY_SIZE_MAX, 1);
    CHECK_INT(status_of(ask(&m, "POST /v1/messages", longest, "hi")), 202);
    snprintf(longest, sizeof longest, "Idempotency-Key: %0*d\r\n",
             STG_KEY_SIZE_MAX + 1, 1);
    CHECK_INT(status_of(ask(&m, "POST /v1/messages", longest, "hi")), 400);
    market_end(&m);
}

/* I10. */
TEST(ingress, refuses_a_key_with_another_body_with_409)
{
    market m;

    begin(&m);
    m.answer = STG_APPEND_CONFLICT;
    check_problem(ask(&m, "POST /v1/messages", "Idempotency-Key: a\r\n", "hi"),
                  409, "Conflict", "another message");
    m.wrong = 1;
    check_problem(ask(&m, "POST /v1/messages/batch", ndjson,
                      "{\"body\":\"a\"}\n\n{\"body\":\"b\"}\n"),
                  409, "Conflict", "\"line\":3,\"detail\":\"line 3: ");
    market_end(&m);
}

TEST(ingress, refuses_what_is_too_large_with_413)
{
    market m;
    caller *c;
    char *body;

    market_begin(&m);
    m.options.message_max = 100000;
    m.options.batch_max = 150000;
    market_open(&m);
    body = calloc(1, 300001);
    CHECK(body != NULL);
    memset(body, 'a', 300000);

    // By its length, when it came: who sends it reads the answer then.
    c = caller_new(&m);
    caller_say(c,
               "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\n"
               "Content-Length: 100001\r\n\r\n");
    caller_send(c, body, 100001);
    check_problem(caller_answer(c), 413, "Content Too Large",
                  "a body of 100001 bytes; the most is 100000");
    caller_say(c, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
    CHECK_INT(status_of(caller_answer(c)), 200);
    caller_free(c);

    // Before it comes, if it is too much to wait for.
    c = caller_new(&m);
    caller_say(c,
               "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\n"
               "Content-Length: 150001\r\n\r\n");
    check_problem(caller_answer(c), 413, "Content Too Large",
                  "a body of 150001 bytes; the most is 100000");
    caller_run_until_closed(c);
    caller_free(c);

    // In chunks, as it comes.
    c = caller_new(&m);
    caller_say(c,
               "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\n"
               "Transfer-Encoding: chunked\r\n\r\n186a1\r\n");
    caller_send(c, body, 100001);
    caller_say(c, "\r\n0\r\n\r\n");
    check_problem(caller_answer(c), 413, "Content Too Large",
                  "more than 100000 bytes");
    caller_free(c);

    // And one that does not end is told, and cut.
    c = caller_new(&m);
    caller_say(c,
               "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\n"
               "Transfer-Encoding: chunked\r\n\r\n493e0\r\n");
    caller_send(c, body, 300000);
    caller_run_until_closed(c);
    caller_free(c);

    body[100000] = '\0';
    CHECK_INT(status_of(ask(&m, "POST /v1/messages", "", body)), 202);
    CHECK_INT(m.stored[0].body_size, 100000);
    free(body);
    market_end(&m);
}

TEST(ingress, refuses_a_batch_of_another_type_with_415)
{
    market m;

    begin(&m);
    check_problem(ask(&m, "POST /v1/messages/batch", "", "{\"body\":\"a\"}"),
                  415, "Unsupported Media Type", "application/x-ndjson");
    check_problem(ask(&m, "POST /v1/messages/batch",
                      "Content-Type: application/json\r\n", "{\"body\":\"a\"}"),
                  415, "Unsupported Media Type", "application/x-ndjson");
    CHECK_INT(status_of(ask(&m, "POST /v1/messages/batch",
                            "Content-Type: Application/X-NDJSON; a=b\r\n",
                            "{\"body\":\"a\"}")),
              202);
    market_end(&m);
}

TEST(ingress, names_the_line_of_a_batch_that_is_wrong)
{
    market m;

    begin(&m);
    check_problem(ask(&m, "POST /v1/messages/batch", ndjson,
                      "{\"body\":\"a\"}\n{\"body\":1}\n"),
                  400, "Bad Request", "\"line\":2,\"detail\":\"line 2: ");
    check_problem(ask(&m, "POST /v1/messages/batch", ndjson, "\n"), 400,
                  "Bad Request", "without a message");
    CHECK_INT(m.appends, 0);
    market_end(&m);
}

TEST(ingress, refuses_a_long_header_with_431)
{
    market m;
    char header[6000];

    market_begin(&m);
    m.options.header_max = 2048;
    market_open(&m);
    snprintf(header, sizeof header, "X-Long: %03000d\r\n", 1);
    check_problem(ask(&m, "POST /v1/messages", header, "hi"), 431,
                  "Request Header Fields Too Large", "the most is 2048");
    market_end(&m);
}

TEST(ingress, refuses_a_header_that_never_ends_with_431)
{
    market m;
    caller *c;
    char *header = malloc(65536);

    CHECK(header != NULL);
    memset(header, 'a', 65536);
    begin(&m);
    c = caller_new(&m);
    caller_say(c, "POST /v1/messages HTTP/1.1\r\nX-Long: ");
    caller_send(c, header, 65536);
    check_problem(caller_answer(c), 431, "Request Header Fields Too Large",
                  "the most is 16384");
    caller_run_until_closed(c);
    caller_free(c);
    free(header);
    market_end(&m);
}

TEST(ingress, answers_503_and_when_to_come_back_while_the_log_is_full)
{
    market m;
    const char *answer;

    begin(&m);
    m.answer = STG_APPEND_FULL;
    answer = ask(&m, "POST /v1/messages", "", "hi");
    check_problem(answer, 503, "Service Unavailable", "the log is full");
    CHECK_STR(header_of(answer, "Retry-After"), "5");
    market_end(&m);
}

/* I9. */
TEST(ingress, answers_503_when_a_commit_is_unknown)
{
    market m;
    const char *answer;

    begin(&m);
    m.answer = STG_APPEND_UNKNOWN;
    answer = ask(&m, "POST /v1/messages", "", "hi");
    check_problem(answer, 503, "Service Unavailable", "may be there, or not");
    CHECK_STR(header_of(answer, "Retry-After"), "5");
    market_end(&m);
}

TEST(ingress, answers_503_while_something_is_missing)
{
    market m;

    begin(&m);
    m.missing = "the store is not open";
    check_problem(ask(&m, "POST /v1/messages", "", "hi"), 503,
                  "Service Unavailable", "the store is not open");
    CHECK_INT(m.appends, 0);
    market_end(&m);
}

/* I6. */
TEST(ingress, answers_503_when_too_many_bytes_wait)
{
    market m;
    caller *first;
    char *body = calloc(1, 60001);

    CHECK(body != NULL);
    memset(body, 'a', 60000);
    market_begin(&m);
    m.options.message_max = m.options.batch_max = 100000;
    m.options.pending_max = 100000;
    market_open(&m);
    m.holds = true;
    first = caller_new(&m);
    caller_say(first,
               "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\n"
               "Content-Length: 60000\r\n\r\n");
    caller_say(first, body);
    caller_flush(first);
    market_run_until_waiting(&m, 1);
    check_problem(ask(&m, "POST /v1/messages", "", body), 503,
                  "Service Unavailable", "too many bytes");
    CHECK_INT(m.waiting_count, 1);
    market_settle(&m);
    CHECK_INT(status_of(caller_answer(first)), 202);
    m.holds = false;
    CHECK_INT(status_of(ask(&m, "POST /v1/messages", "", body)), 202);
    caller_free(first);
    free(body);
    market_end(&m);
}

/* One whose message waits for its commit. */
static caller *begin_one(market *m)
{
    caller *c = caller_new(m);

    caller_say(c,
               "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\n"
               "Content-Length: 2\r\n\r\nhi");
    caller_flush(c);
    market_run_until_waiting(m, m->waiting_count + 1);
    return c;
}

TEST(ingress, answers_429_when_too_many_messages_wait)
{
    market m;
    caller *c[2];
    const char *answer;

    market_begin(&m);
    m.options.waiting_max = 2;
    market_open(&m);
    m.holds = true;
    c[0] = begin_one(&m);
    check_problem(ask(&m, "POST /v1/messages/batch", ndjson,
                      "{\"body\":\"a\"}\n{\"body\":\"b\"}\n"),
                  429, "Too Many Requests", "too many messages");
    c[1] = begin_one(&m);
    answer = ask(&m, "POST /v1/messages", "", "hi");
    check_problem(answer, 429, "Too Many Requests", "2 messages wait");
    CHECK_STR(header_of(answer, "Retry-After"), "5");
    market_settle(&m);
    market_settle(&m);
    for (int i = 0; i < 2; i++) {
        CHECK_INT(status_of(caller_answer(c[i])), 202);
        caller_free(c[i]);
    }
    market_end(&m);
}

TEST(ingress, answers_429_when_too_many_of_one_address_wait)
{
    market m;
    caller *c[2];

    market_begin(&m);
    m.options.address_waiting_max = 2;
    market_open(&m);
    m.holds = true;
    c[0] = begin_one(&m);
    check_problem(ask(&m, "POST /v1/messages/batch", ndjson,
                      "{\"body\":\"a\"}\n{\"body\":\"b\"}\n"),
                  429, "Too Many Requests", "too many messages");
    c[1] = begin_one(&m);
    check_problem(ask(&m, "POST /v1/messages", "", "hi"), 429,
                  "Too Many Requests", "2 messages of this address wait");
    for (int i = 0; i < 2; i++) {
        market_settle(&m);
        CHECK_INT(status_of(caller_answer(c[i])), 202);
        caller_free(c[i]);
    }
    market_end(&m);
}

/* -- who may ----------------------------------------------------------------- */

TEST(ingress, refuses_pages_of_other_origins_with_403)
{
    static const char *const refused[] = {
        "http://example.org",
        "null",
        "https://localhost.example.org",
        "http://127.0.0.1.example.org",
        "http://[::2]",
        "http://",
    };
    static const char *const allowed[] = {
        "http://localhost",
        "https://localhost:3000",
        "http://127.0.0.1:80",
        "http://[::1]:99",
    };
    market m;
    char header[128];

    begin(&m);
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        snprintf(header, sizeof header, "Origin: %s\r\n", refused[i]);
        check_problem(ask(&m, "POST /v1/messages", header, "hi"), 403,
                      "Forbidden", "another origin");
    }
    CHECK_INT(m.appends, 0);
    for (size_t i = 0; i < sizeof allowed / sizeof allowed[0]; i++) {
        snprintf(header, sizeof header, "Origin: %s\r\n", allowed[i]);
        CHECK_INT(status_of(ask(&m, "POST /v1/messages", header, "hi")), 202);
    }
    market_end(&m);
}

TEST(ingress, refuses_hosts_that_are_not_loopback_with_403)
{
    static const char *const refused[] = {"evil.example:8080", "10.0.0.1",
                                          "[::2]:80", "localhost.evil"};
    market m;
    char text[256];

    begin(&m);
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        caller *c = caller_new(&m);

        snprintf(text, sizeof text,
                 "POST /v1/messages HTTP/1.1\r\nHost: %s\r\n"
                 "Content-Length: 2\r\n\r\nhi",
                 refused[i]);
        caller_say(c, text);
        check_problem(caller_answer(c), 403, "Forbidden", "loopback");
        caller_free(c);
    }
    CHECK_INT(m.appends, 0);
    market_end(&m);
}

#define TOKEN "0123456789abcdef0123456789abcdef"

/* The line of a token file. */
static const char *line_of(const char *token, unsigned roles, const char *name)
{
    static char lines[4][STG_TOKEN_LINE_MAX];
    static unsigned at;
    char *line = lines[at++ % 4];

    CHECK(stg_token_print(token, roles, name, line));
    return line;
}

static void write_file(const char *path, const char *text, mode_t mode)
{
    FILE *f = fopen(path, "w");

    CHECK(f != NULL);
    CHECK(fputs(text, f) >= 0 && fclose(f) == 0);
    CHECK(chmod(path, mode) == 0);
}

TEST(ingress, refuses_those_without_a_token_with_401)
{
    static const char *const refused[] = {
        "",
        "Authorization: Bearer\r\n",
        "Authorization: Bearer 0123456789abcdef0123456789abcdee\r\n",
        "Authorization: Basic " TOKEN "\r\n",
        "Authorization: " TOKEN "\r\n",
        "Authorization: Bearer " TOKEN "a\r\n",
    };
    char path[] = "/tmp/stagger-tokens-XXXXXX", text[1024];
    market m;
    caller *c;

    CHECK(close(mkstemp(path)) == 0);
    snprintf(text, sizeof text, "# of the till\n%s%s%s",
             line_of("other-token-12345", STG_ROLE_PUBLISH, "till-3"),
             line_of("looking-only-12345", STG_ROLE_VIEW, ""),
             line_of(TOKEN, STG_ROLE_VIEW | STG_ROLE_PUBLISH, ""));
    write_file(path, text, 0600);
    market_begin(&m);
    m.options.token_file = path;
    market_open(&m);
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        const char *answer = ask(&m, "POST /v1/messages", refused[i], "hi");

        check_problem(answer, 401, "Unauthorized",
                      refused[i][0] == '\0' ? "expected Authorization: Bearer"
                                            : "not one of the tokens");
        CHECK_STR(header_of(answer, "WWW-Authenticate"), "Bearer");
    }
    CHECK_INT(m.appends, 0);
    CHECK_INT(status_of(ask(&m, "POST /v1/messages",
                            "Authorization: Bearer " TOKEN "\r\n", "hi")),
              202);
    CHECK_INT(
        status_of(ask(&m, "POST /v1/messages",
                      "authorization: bearer other-token-12345\r\n", "hi")),
        202);
    CHECK_INT(status_of(ask(&m, "GET /healthz", "", "")), 200);
    check_problem(ask(&m, "POST /v1/messages",
                      "Authorization: Bearer looking-only-12345\r\n", "hi"),
                  403, "Forbidden", "not the role publish");

    // Who has a token may call us by any name.
    c = caller_new(&m);
    caller_say(c,
               "POST /v1/messages HTTP/1.1\r\nHost: hub.example\r\n"
               "Authorization: Bearer " TOKEN
               "\r\nContent-Length: 2\r\n\r\nhi");
    CHECK_INT(status_of(caller_answer(c)), 202);
    caller_free(c);
    CHECK(unlink(path) == 0);
    market_end(&m);
}

/* -- health ------------------------------------------------------------------ */

TEST(ingress, is_healthy_and_ready)
{
    market m;
    const char *answer;

    begin(&m);
    answer = ask(&m, "GET /healthz", "", "");
    CHECK_INT(status_of(answer), 200);
    CHECK_STR(body_of(answer), "ok\n");
    answer = ask(&m, "GET /readyz", "", "");
    CHECK_INT(status_of(answer), 200);
    CHECK_STR(body_of(answer), "ready\n");
    market_end(&m);
}

/* Of the second one half had come while the first waited for its answer. */
TEST(ingress, reads_on_in_a_body_that_began_before_an_answer)
{
    caller *c;
    market m;

    begin(&m);
    m.holds = true;
    c = caller_new(&m);
    caller_say(c,
               "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\n"
               "Content-Length: 5\r\n\r\nfirst"
               "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\n"
               "Content-Length: 6\r\n\r\nsec");
    caller_flush(c);
    market_run_until_waiting(&m, 1);
    market_run(&m);
    market_settle(&m);
    CHECK_INT(status_of(caller_answer(c)), 202);
    caller_say(c, "ond");
    caller_flush(c);
    market_run_until_waiting(&m, 1);
    market_settle(&m);
    CHECK_INT(status_of(caller_answer(c)), 202);
    CHECK_STR(m.stored[0].body, "first");
    CHECK_STR(m.stored[1].body, "second");
    caller_free(c);
    market_end(&m);
}

TEST(ingress, is_not_ready_while_something_is_missing)
{
    market m;

    begin(&m);
    m.missing = "the store is not open";
    check_problem(ask(&m, "GET /readyz", "", ""), 503, "Service Unavailable",
                  "the store is not open");
    CHECK_INT(status_of(ask(&m, "GET /healthz", "", "")), 200);
    market_stop(&m);
    check_problem(ask(&m, "GET /readyz", "", ""), 503, "Service Unavailable",
                  "stopping");
    CHECK_INT(status_of(ask(&m, "GET /healthz", "", "")), 200);
    market_end(&m);
}

/* -- what cannot be opened --------------------------------------------------- */

static void check_refused(market *m, stg_status status, const char *words)
{
    CHECK_INT(stg_ingress_open(&m->ingress, &m->loop, &m->options, &m->err),
              status);
    CHECK(m->ingress == NULL);
    if (strstr(m->err.text, words) == NULL)
        CHECK_STR(m->err.text, words);
}

TEST(ingress, tells_that_a_port_is_in_use)
{
    market m, other;
    char listen[64];

    begin(&m);
    market_begin(&other);
    snprintf(listen, sizeof listen, "127.0.0.1:%u",
             (unsigned)stg_ingress_port(m.ingress));
    CHECK_STR(stg_ingress_address(m.ingress), listen);
    other.options.listen = listen;
    check_refused(&other, STG_IO, "another program listens there");
    market_end(&other);
    market_end(&m);
}

TEST(ingress, refuses_to_be_reached_by_others_without_a_token)
{
    market m;

    market_begin(&m);
    m.options.listen = "0.0.0.0:0";
    check_refused(&m, STG_INVALID, "it has no token file");
    m.options.listen = "[::]:0";
    check_refused(&m, STG_INVALID, "it has no token file");
    market_end(&m);
}

TEST(ingress, refuses_a_token_file_that_cannot_be_used)
{
    char path[] = "/tmp/stagger-tokens-XXXXXX", text[1024];
    market m;

    CHECK(close(mkstemp(path)) == 0);
    market_begin(&m);
    m.options.token_file = path;
    write_file(path, TOKEN "\n", 0660);
    check_refused(&m, STG_INVALID, "chmod 600");
    write_file(path, TOKEN "\n", 0604);
    check_refused(&m, STG_INVALID, "(mode 604)");
    write_file(path, "# none\n\n", 0600);
    check_refused(&m, STG_INVALID, "no token in it");
    snprintf(text, sizeof text, "%s" TOKEN "\n",
             line_of(TOKEN, STG_ROLE_PUBLISH, ""));
    write_file(path, text, 0600);
    check_refused(&m, STG_INVALID, ":2: expected ROLE[,ROLE] sha256:HASH");
    CHECK_INT(m.err.line, 2);
    m.options.token_file = "/tmp";
    check_refused(&m, STG_INVALID, "it is a directory");
    CHECK(unlink(path) == 0);
    m.options.token_file = path;
    check_refused(&m, STG_INVALID, "No such file");
    market_end(&m);
}

TEST(ingress, refuses_options_that_cannot_be_used)
{
    static const char *const cookie[] = {"Cookie", NULL};
    market m;

    market_begin(&m);
    m.options.headers = cookie;
    check_refused(&m, STG_INVALID, "headers=Cookie: this header is never kept");
    market_end(&m);
    market_begin(&m);
    m.options.listen = "8080";
    check_refused(&m, STG_INVALID, "expected address:port");
    market_end(&m);
    market_begin(&m);
    m.options.message_max = 0;
    check_refused(&m, STG_INVALID, "a limit is 0");
    market_end(&m);
    market_begin(&m);
    m.options.pending_max = m.options.message_max - 1;
    check_refused(&m, STG_INVALID, "does not fit");
    market_end(&m);
}

TEST(ingress, listens_on_ipv6)
{
    market m;

    market_begin(&m);
    m.options.listen = "[::1]:0";
    if (stg_ingress_open(&m.ingress, &m.loop, &m.options, &m.err) == STG_OK)
        CHECK(strncmp(stg_ingress_address(m.ingress), "[::1]:", 6) == 0);
    else // a machine without it
        CHECK(strstr(m.err.text, "this machine has no") != NULL);
    market_end(&m);
}

/* -- another log than the queue ---------------------------------------------- */

TEST(ingress, answers_with_the_ids_that_a_log_has_of_its_own)
{
    market m;
    const char *answer;

    begin(&m);
    m.id = "orders.eu.3.18446744073709551615";
    answer = ask(&m, "POST /v1/messages", "", "hi");
    CHECK_INT(status_of(answer), 202);
    CHECK_STR(body_of(answer),
              "{\"id\":\"orders.eu.3.18446744073709551615\"}\n");
    answer = ask(&m, "POST /v1/messages/batch", ndjson,
                 "{\"body\":\"a\"}\n{\"body\":\"b\"}");
    CHECK_STR(body_of(answer),
              "{\"ids\":[\"orders.eu.3.18446744073709551615\","
              "\"orders.eu.3.18446744073709551615\"]}\n");
    market_end(&m);
}

TEST(ingress, passes_on_the_topic_of_the_query)
{
    static const char *const wrong[] = {"?topic", "?topic=%2", "?topic=%00",
                                        "?topic=a&topic=b"};
    market m;
    char line[64];

    begin(&m);
    CHECK_INT(status_of(ask(&m, "POST /v1/messages", "", "hi")), 202);
    CHECK_STR(m.topic, "-");
    CHECK_INT(status_of(ask(&m, "POST /v1/messages?a=b&c&topicc=d", "", "hi")),
              202);
    CHECK_STR(m.topic, "-");
    CHECK_INT(
        status_of(ask(&m, "POST /v1/messages?a=b&topic=or%64ers", "", "hi")),
        202);
    CHECK_STR(m.topic, "orders");
    CHECK_INT(status_of(ask(&m, "POST /v1/messages/batch?topic=", ndjson,
                            "{\"body\":\"a\"}")),
              202);
    CHECK_STR(m.topic, "");
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        snprintf(line, sizeof line, "POST /v1/messages%s", wrong[i]);
        CHECK_INT(status_of(ask(&m, line, "", "hi")), 400);
    }
    market_end(&m);
}

TEST(ingress, says_why_a_log_has_not_taken_a_message)
{
    static const struct {
        stg_appended how;
        int status;
        const char *one, *line; /* the begin of what is told of a batch */
    } all[] = {
        {STG_APPEND_CONFLICT, 409, "the idempotency key came", "line 3: "},
        {STG_APPEND_FULL, 503, "the log is full", "the log is full"},
        {STG_APPEND_UNKNOWN, 503, "the commit failed", "the commit failed"},
        {STG_APPEND_KEYED, 400, "a hub whose source is Kafka", "line 3: "},
        {STG_APPEND_NO_TOPIC, 404, "there is no such topic", "there is no"},
        {STG_APPEND_WHICH_TOPIC, 400, "the hub reads several", "the hub reads"},
        {STG_APPEND_TOO_LARGE, 413, "larger than its topic takes",
         "line 3: larger than its topic takes (max.message.bytes); other "
         "lines may be there"},
        {STG_APPEND_REFUSED, 400, "its topic refuses it", "line 3: "},
        {STG_APPEND_BUSY, 503, "too many messages", "too many messages"},
        {STG_APPEND_AWAY, 503, "no broker has taken", "no broker has taken"},
        {STG_APPEND_UNACKNOWLEDGED, 503, "no broker has acknowledged",
         "no broker has acknowledged the message in time: it may be there, or "
         "not; with an Idempotency-Key it is safe to send it again; other lines "
         "may be there"},
    };
    market m;
    const char *answer;
    char detail[300];

    begin(&m);
    m.wrong = 1; // the second message, in line 3
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        m.answer = all[i].how;
        snprintf(detail, sizeof detail, "\"detail\":\"%s", all[i].one);
        answer = ask(&m, "POST /v1/messages", "", "hi");
        CHECK_INT(status_of(answer), all[i].status);
        CHECK(strstr(body_of(answer), detail) != NULL);
        CHECK((header_of(answer, "Retry-After") != NULL) ==
              (all[i].status == 503));
        snprintf(detail, sizeof detail, "\"detail\":\"%s", all[i].line);
        answer = ask(&m, "POST /v1/messages/batch", ndjson,
                     "{\"body\":\"a\"}\n\n{\"body\":\"b\"}");
        CHECK_INT(status_of(answer), all[i].status);
        CHECK(strstr(body_of(answer), detail) != NULL);
    }
    market_end(&m);
}
