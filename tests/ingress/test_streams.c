#include "ingress/internal.h"

#include <stdlib.h>

#include "tests/harness.h"
#include "tests/ingress/producer.h"

enum { STREAMS_MAX = 4 };

/* A handler that answers with streams. */
typedef struct station {
    market market;
    stg_stream *streams[STREAMS_MAX];
    size_t count, left;
} station;

static void note_left(void *ctx)
{
    station *s = ctx;

    s->left++;
}

static void open_stream(void *ctx, stg_ask *a)
{
    station *s = ctx;
    stg_stream *stream = stg_ask_stream(a, note_left, s);

    if (stream != NULL)
        s->streams[s->count++ % STREAMS_MAX] = stream;
}

static const stg_route routes[] = {
    {"GET", "/v1/news", STG_ROLE_VIEW, STG_BODY_NONE, NULL, open_stream, false},
};

static void begin(station *s)
{
    market_begin(&s->market);
    s->count = s->left = 0;
}

static void serve(station *s)
{
    market_open(&s->market);
    stg_ingress_serve(s->market.ingress, routes, 1, s);
}

static void send_text(station *s, size_t i, const char *text)
{
    stg_stream_send(s->streams[i], (stg_span){text, strlen(text)});
}

#define NEWS "GET /v1/news HTTP/1.1\r\nHost: localhost\r\n\r\n"
#define HEALTH "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
#define END "\r\n0\r\n\r\n"

/* One who follows, and has got his first bytes. */
static caller *follow(station *s)
{
    caller *c = caller_new(&s->market);

    caller_say(c, NEWS);
    caller_run_until(c, "retry: ");
    return c;
}

static void run_until_left(station *s, size_t left)
{
    for (uint64_t end_at = uv_hrtime() + 20 * STG_S; s->left < left;) {
        market_run(&s->market);
        CHECK(uv_hrtime() < end_at);
    }
    CHECK_U64(s->left, left);
}

static uint32_t cut_count(const station *s)
{
    stg_ingress_view view;

    stg_ingress_look(s->market.ingress, &view);
    return (uint32_t)view.cut;
}

/* -- what comes -------------------------------------------------------------- */

TEST(stream, sends_events_in_chunks)
{
    station s;
    caller *c;
    long retry;

    begin(&s);
    serve(&s);
    c = follow(&s);
    CHECK_INT(status_of(c->in), 200);
    CHECK_STR(header_of(c->in, "Content-Type"), "text/event-stream");
    CHECK_STR(header_of(c->in, "Transfer-Encoding"), "chunked");
    CHECK_STR(header_of(c->in, "Cache-Control"), "no-store");
    CHECK(header_of(c->in, "Content-Length") == NULL);
    CHECK(strncmp(body_of(c->in), "d\r\nretry: ", 10) == 0);
    retry = atol(body_of(c->in) + 10);
    CHECK(retry >= 1000 && retry < 5000);
    // Two of one turn are one chunk.
    send_text(&s, 0, "{\"n\":1}");
    send_text(&s, 0, "{\"n\":2}");
    caller_run_until(c, "{\"n\":2}\n\n\r\n");
    CHECK(strstr(c->in, "1e\r\ndata: {\"n\":1}\n\ndata: {\"n\":2}\n\n\r\n") !=
          NULL);
    send_text(&s, 0, "3");
    caller_run_until(c, "9\r\ndata: 3\n\n\r\n");
    caller_free(c);
    run_until_left(&s, 1);
    market_end(&s.market);
}

TEST(stream, goes_up_to_the_end_of_the_connection_in_http_1_0)
{
    station s;
    caller *c;

    begin(&s);
    serve(&s);
    c = caller_new(&s.market);
    caller_say(c, "GET /v1/news HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    caller_run_until(c, "retry: ");
    send_text(&s, 0, "1");
    caller_run_until(c, "\n\ndata: 1\n\n");
    CHECK(header_of(c->in, "Transfer-Encoding") == NULL);
    CHECK(header_of(c->in, "Content-Length") == NULL);
    CHECK_STR(header_of(c->in, "Connection"), "close");
    CHECK(strncmp(body_of(c->in), "retry: ", 7) == 0);
    market_stop(&s.market);
    caller_run_until_closed(c);
    CHECK(c->in_size > 9 &&
          memcmp(c->in + c->in_size - 9, "data: 1\n\n", 9) == 0);
    caller_free(c);
    run_until_left(&s, 1);
    market_end(&s.market);
}

TEST(stream, of_a_head_is_its_header)
{
    station s;
    caller *c;

    begin(&s);
    serve(&s);
    c = caller_new(&s.market);
    caller_say(c, "HEAD /v1/news HTTP/1.1\r\nHost: localhost\r\n\r\n");
    caller_run_until(c, "\r\n\r\n");
    CHECK_INT(status_of(c->in), 200);
    CHECK_STR(header_of(c->in, "Transfer-Encoding"), "chunked");
    CHECK_STR(body_of(c->in), "");
    CHECK_U64(s.left, 1);
    c->in_size = 0;
    caller_say(c, HEALTH);
    CHECK_STR(body_of(caller_answer(c)), "ok\n");
    caller_free(c);
    market_end(&s.market);
}

TEST(stream, says_something_now_and_then)
{
    station s;
    caller *c;

    begin(&s);
    s.market.options.stream_pause = 5 * STG_MS;
    // What is not read is no reason to be cut, and nor is time.
    s.market.options.idle_timeout = 20 * STG_MS;
    serve(&s);
    c = follow(&s);
    caller_run_until(c, "3\r\n:\n\n\r\n3\r\n:\n\n\r\n");
    market_run_for(&s.market, 60 * STG_MS);
    send_text(&s, 0, "1");
    caller_run_until(c, "data: 1\n\n");
    CHECK_U64(cut_count(&s), 0);
    caller_free(c);
    run_until_left(&s, 1);
    market_end(&s.market);
}

/* -- its end ----------------------------------------------------------------- */

TEST(stream, ends_with_its_reader)
{
    station s;
    caller *c;

    begin(&s);
    serve(&s);
    c = follow(&s);
    caller_free(c);
    run_until_left(&s, 1);
    CHECK_U64(cut_count(&s), 0);
    market_end(&s.market);
}

TEST(stream, ends_where_the_other_side_has_ended_before)
{
    station s;
    caller *c;

    begin(&s);
    serve(&s);
    c = caller_new(&s.market);
    caller_say(c, NEWS);
    caller_flush(c);
    CHECK_INT(shutdown(c->fd, SHUT_WR), 0);
    caller_run_until_closed(c);
    run_until_left(&s, 1);
    caller_free(c);
    market_end(&s.market);
}

TEST(stream, ends_for_a_stop)
{
    station s;
    caller *c;

    begin(&s);
    serve(&s);
    c = follow(&s);
    send_text(&s, 0, "last");
    market_stop(&s.market);
    market_run_until(&s.market, &s.market.is_stopped);
    CHECK_U64(s.left, 1);
    caller_run_until_closed(c);
    CHECK(memcmp(c->in + c->in_size - 13, "last\n\n" END, 13) == 0);
    caller_free(c);
    market_end(&s.market);
}

TEST(stream, ends_for_a_change_and_its_connection_goes_on)
{
    station s;
    caller *c;

    begin(&s);
    serve(&s);
    c = follow(&s);
    CHECK_INT(market_change(&s.market), STG_OK);
    caller_run_until(c, END);
    CHECK_U64(s.left, 1);
    c->in_size = 0;
    caller_say(c, HEALTH);
    CHECK_STR(body_of(caller_answer(c)), "ok\n");
    caller_free(c);
    market_end(&s.market);
}

TEST(stream, ends_with_the_ingress)
{
    station s;
    caller *c;

    begin(&s);
    serve(&s);
    c = follow(&s);
    send_text(&s, 0, "never sent");
    market_end(&s.market);
    CHECK_U64(s.left, 1);
    caller_free(c);
}

/* A request that came behind it is answered when it has ended. */
TEST(stream, is_followed_by_what_was_asked_behind_it)
{
    station s;
    caller *c;

    begin(&s);
    serve(&s);
    c = caller_new(&s.market);
    caller_say(c, NEWS HEALTH);
    caller_run_until(c, "retry: ");
    CHECK(strstr(c->in, "ok\n") == NULL);
    CHECK_INT(market_change(&s.market), STG_OK);
    caller_run_until(c, "\r\n\r\nok\n");
    caller_free(c);
    market_end(&s.market);
}

/* -- limits ------------------------------------------------------------------ */

TEST(stream, has_a_limit_of_its_own)
{
    station s;
    caller *first, *second;
    const char *answer;

    begin(&s);
    s.market.options.streams_max = 2;
    s.market.options.asks_max = 1;
    serve(&s);
    first = follow(&s);
    second = follow(&s);
    answer = ask(&s.market, "GET /v1/news", "", "");
    CHECK_INT(status_of(answer), 429);
    CHECK(strstr(body_of(answer), "2 streams are open") != NULL);
    CHECK(header_of(answer, "Retry-After") != NULL);
    caller_free(first);
    run_until_left(&s, 1);
    first = follow(&s);
    caller_free(first);
    caller_free(second);
    run_until_left(&s, 3);
    market_end(&s.market);
}

static void send_much(station *s, size_t size)
{
    char *text = malloc(size + 1);

    CHECK(text != NULL);
    memset(text, 'x', size);
    text[size] = '\0';
    send_text(s, 0, text);
    free(text);
}

TEST(stream, cuts_a_reader_who_leaves_too_much_unread)
{
    enum { PIECE = 100 * 1024, PIECES = 1000 };
    station s;
    caller *c;

    begin(&s);
    serve(&s);
    c = follow(&s);
    for (int i = 0; i < PIECES && s.left == 0; i++) {
        send_much(&s, PIECE);
        market_run(&s.market);
    }
    CHECK_U64(s.left, 1);
    CHECK_U64(cut_count(&s), 1);
    caller_free(c);
    market_end(&s.market);
}

TEST(stream, cuts_a_reader_for_whom_too_much_waits_in_one_turn)
{
    station s;
    caller *c;

    begin(&s);
    serve(&s);
    c = follow(&s);
    for (int i = 0; i < 5; i++)
        send_much(&s, 100 * 1024);
    CHECK_U64(s.left, 0);
    run_until_left(&s, 1);
    CHECK_U64(cut_count(&s), 1);
    caller_free(c);
    market_end(&s.market);
}

/* Bytes that wait for the only caller. */
static size_t unsent(const station *s)
{
    const stg_list *all = &s->market.ingress->server.connections;

    return stg_inbound_unsent(
        STG_HOLDER(stg_list_first(all), stg_inbound, link));
}

TEST(stream, is_closed_by_a_stop_where_its_reader_is_behind)
{
    station s;
    caller *c;

    begin(&s);
    serve(&s);
    c = follow(&s);
    while (s.left == 0 && unsent(&s) == 0) {
        send_much(&s, 100 * 1024);
        market_run(&s.market);
    }
    CHECK_U64(s.left, 0);
    market_stop(&s.market);
    market_run_until(&s.market, &s.market.is_stopped);
    CHECK_U64(s.left, 1);
    caller_free(c);
    market_end(&s.market);
}
