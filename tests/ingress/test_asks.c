#include "ingress/ask.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/harness.h"
#include "tests/ingress/producer.h"

enum { MUCH = 256 * 1024 };

/* Handlers that answer as they are told. */
typedef struct fixture {
    market market;
    stg_ask *waiting[8];
    size_t count, much; /* bytes of an answer */
    char seen[256];     /* of the last request */
} fixture;

static void answer_words(void *ctx, stg_ask *a)
{
    fixture *d = ctx;
    const char *limit = stg_ask_option(a, "limit");
    stg_span body = stg_ask_body(a);

    snprintf(d->seen, sizeof d->seen, "%s/%s limit=%s who=%s from=%s %.*s",
             stg_ask_word(a, 0), stg_ask_word(a, 1),
             limit == NULL ? "(none)" : limit, stg_ask_who(a), stg_ask_from(a),
             (int)body.size, body.size == 0 ? "" : body.at);
    stg_ask_answer_json(a, 200, json_pack("{s:s}", "seen", d->seen));
}

static void answer_later(void *ctx, stg_ask *a)
{
    fixture *d = ctx;

    CHECK(d->count < 8);
    d->waiting[d->count++] = a;
}

static void answer_much(void *ctx, stg_ask *a)
{
    const fixture *d = ctx;
    size_t size = d->much;
    char *text = malloc(size);

    CHECK(text != NULL);
    memset(text, 'x', size);
    stg_ask_answer(a, 200, "text/plain", text, size);
}

static void refuse(void *ctx, stg_ask *a)
{
    (void)ctx;
    stg_ask_refuse(a, 409, "%s is busy", stg_ask_word(a, 0));
}

static const char *const options[] = {"limit", "cursor", NULL};

static const stg_route routes[] = {
    {"GET", "/v1/things", STG_ROLE_VIEW, STG_BODY_NONE, options, answer_words,
     false},
    {"GET", "/v1/things/{name}", STG_ROLE_VIEW, STG_BODY_NONE, NULL,
     answer_words, false},
    {"POST", "/v1/things/{name}/x/{id}", STG_ROLE_OPERATE, STG_BODY_JSON, NULL,
     answer_words, false},
    {"POST", "/v1/things/{name}/stop", STG_ROLE_OPERATE, STG_BODY_NONE, NULL,
     refuse, false},
    {"GET", "/v1/later", STG_ROLE_VIEW, STG_BODY_NONE, NULL, answer_later,
     false},
    {"GET", "/v1/much", STG_ROLE_VIEW, STG_BODY_NONE, NULL, answer_much, false},
    {"GET", "/v1/always", STG_ROLE_VIEW, STG_BODY_NONE, NULL, answer_words,
     true},
};

static void serve(fixture *d)
{
    market_open(&d->market);
    stg_ingress_serve(d->market.ingress, routes, sizeof routes / sizeof *routes,
                      d);
    d->count = 0;
    d->much = MUCH;
    d->seen[0] = '\0';
}

static void begin(fixture *d)
{
    market_begin(&d->market);
    serve(d);
}

static void check_problem(const char *answer, int status, const char *words)
{
    CHECK_INT(status_of(answer), status);
    CHECK_STR(header_of(answer, "Content-Type"), "application/problem+json");
    if (strstr(body_of(answer), words) == NULL)
        CHECK_STR(body_of(answer), words);
}

static void run_until_asked(fixture *d, size_t count)
{
    for (uint64_t end_at = uv_hrtime() + 20 * STG_S; d->count < count;) {
        market_run(&d->market);
        CHECK(uv_hrtime() < end_at);
    }
}

/* -- a request, and its answer ------------------------------------------------ */

TEST(ask, has_the_words_the_query_and_the_body)
{
    fixture d;
    const char *answer;

    begin(&d);
    answer = ask(&d.market, "GET /v1/things?limit=7", "", "");
    CHECK_INT(status_of(answer), 200);
    CHECK_STR(header_of(answer, "Content-Type"), "application/json");
    CHECK_STR(header_of(answer, "Cache-Control"), "no-store");
    CHECK_STR(body_of(answer),
              "{\"seen\":\"/ limit=7 who= from=127.0.0.1 \"}\n");
    ask(&d.market, "GET /v1/things/a%2eb", "", "");
    CHECK_STR(d.seen, "a.b/ limit=(none) who= from=127.0.0.1 ");
    answer = ask(&d.market, "POST /v1/things/a/x/9",
                 "Content-Type: application/json; charset=utf-8\r\n", "{}");
    CHECK_INT(status_of(answer), 200);
    CHECK_STR(d.seen, "a/9 limit=(none) who= from=127.0.0.1 {}");
    market_end(&d.market);
}

TEST(ask, may_be_refused_by_its_handler)
{
    fixture d;

    begin(&d);
    check_problem(ask(&d.market, "POST /v1/things/a/stop", "", ""), 409,
                  "\"detail\":\"a is busy\"");
    market_end(&d.market);
}

TEST(ask, is_refused_where_it_is_wrong)
{
    static const char json[] = "Content-Type: application/json\r\n";
    static const struct {
        const char *line, *headers, *body;
        int status;
        const char *words;
    } asked[] = {
        {"GET /v1/things?limt=7", "", "", 400, "?limt: there is no such"},
        {"GET /v1/things?limit=7&limit=8", "", "", 400, "?limit: it is there"},
        {"GET /v1/things?limit", "", "", 400, "?limit: it has no value"},
        {"GET /v1/things?limit=7%008", "", "", 400, "zero byte"},
        {"GET /v1/things/a?limit=7", "", "", 400, "?limit: there is no such"},
        {"GET /v1/things/a%00b", "", "", 400, "zero byte"},
        {"GET /v1/things/", "", "", 404, "no such path"},
        {"POST /v1/things", "", "", 405, "expected GET, HEAD"},
        {"GET /v1/things/a/stop", "", "", 405, "expected POST"},
        {"GET /v1/things", "", "body", 413, "the most is 0"},
        {"POST /v1/things/a/x/9", "", "{}", 415, "application/json"},
        {"POST /v1/things/a/x/9", json, NULL, 413, "the most is 65536"},
        {"GET /v1/things", "Origin: http://evil.example\r\n", "", 403,
         "another origin"},
        {"GET /healthz", "Origin: http://evil.example\r\n", "", 403,
         "another origin"},
    };
    static char much[STG_JSON_BODY_MAX + 2];
    fixture d;

    memset(much, ' ', sizeof much - 1);
    begin(&d);
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++)
        check_problem(ask(&d.market, asked[i].line, asked[i].headers,
                          asked[i].body == NULL ? much : asked[i].body),
                      asked[i].status, asked[i].words);
    CHECK_STR(d.seen, "");
    market_end(&d.market);
}

/* -- roles ------------------------------------------------------------------- */

static const char *as(const char *token)
{
    static char header[128];

    snprintf(header, sizeof header,
             "Content-Type: application/json\r\n"
             "Authorization: Bearer %s\r\n",
             token);
    return header;
}

static void write_tokens(const char *path, const char *name)
{
    FILE *f = fopen(path, "w");
    char line[STG_TOKEN_LINE_MAX];

    CHECK(f != NULL);
    CHECK(stg_token_print("publishing-123456", STG_ROLE_PUBLISH, "", line));
    fputs(line, f);
    CHECK(stg_token_print("viewing-12345678", STG_ROLE_VIEW, name, line));
    fputs(line, f);
    CHECK(stg_token_print("operating-123456", STG_ROLE_OPERATE, "anna", line));
    fputs(line, f);
    CHECK(fclose(f) == 0 && chmod(path, 0600) == 0);
}

static int status_as(fixture *d, const char *line, const char *token)
{
    return status_of(ask(&d->market, line, token == NULL ? "" : as(token),
                         line[0] == 'P' ? "{}" : ""));
}

TEST(ask, wants_a_token_with_the_role)
{
    static const char view[] = "GET /v1/things";
    static const char operate[] = "POST /v1/things/a/x/9";
    char path[] = "/tmp/stagger-tokens-XXXXXX";
    fixture d;

    CHECK(close(mkstemp(path)) == 0);
    write_tokens(path, "dashboard");
    market_begin(&d.market);
    d.market.options.token_file = path;
    serve(&d);
    CHECK_INT(status_as(&d, view, NULL), 401);
    CHECK_INT(status_as(&d, view, "nobodys-12345678"), 401);
    CHECK_INT(status_as(&d, view, "publishing-123456"), 403);
    CHECK_INT(status_as(&d, operate, "publishing-123456"), 403);
    CHECK_INT(status_as(&d, operate, "viewing-12345678"), 403);
    CHECK_INT(status_as(&d, "POST /v1/messages", "operating-123456"), 403);
    CHECK_INT(status_as(&d, "GET /healthz", NULL), 200);
    CHECK_STR(d.seen, "");
    CHECK_INT(status_as(&d, view, "viewing-12345678"), 200);
    CHECK_STR(d.seen, "/ limit=(none) who=dashboard from=127.0.0.1 ");
    CHECK_INT(status_as(&d, view, "operating-123456"), 200);
    CHECK_INT(status_as(&d, operate, "operating-123456"), 200);
    CHECK_STR(d.seen, "a/9 limit=(none) who=anna from=127.0.0.1 {}");
    CHECK(unlink(path) == 0);
    market_end(&d.market);
}

TEST(ask, knows_other_tokens_after_a_change_and_none_of_a_wrong_one)
{
    static const char view[] = "GET /v1/things";
    char path[] = "/tmp/stagger-tokens-XXXXXX";
    fixture d;
    FILE *f;

    CHECK(close(mkstemp(path)) == 0);
    write_tokens(path, "before");
    market_begin(&d.market);
    d.market.options.token_file = path;
    serve(&d);
    write_tokens(path, "behind");
    CHECK_INT(status_as(&d, view, "viewing-12345678"), 200);
    CHECK(strstr(d.seen, "who=before") != NULL);
    CHECK_INT(market_change(&d.market), STG_OK);
    CHECK_INT(status_as(&d, view, "viewing-12345678"), 200);
    CHECK(strstr(d.seen, "who=behind") != NULL);

    f = fopen(path, "w");
    CHECK(f != NULL && fputs("nonsense\n", f) >= 0 && fclose(f) == 0);
    CHECK_INT(market_change(&d.market), STG_INVALID);
    CHECK_INT(status_as(&d, view, "viewing-12345678"), 200);
    d.market.options.token_file = NULL; // on loopback it may
    CHECK_INT(market_change(&d.market), STG_OK);
    CHECK_INT(status_as(&d, view, NULL), 200);
    CHECK(unlink(path) == 0);
    market_end(&d.market);
}

/* -- later ------------------------------------------------------------------- */

static caller *ask_later(fixture *d)
{
    caller *c = caller_new(&d->market);

    caller_say(c, "GET /v1/later HTTP/1.1\r\nHost: localhost\r\n\r\n");
    caller_flush(c);
    run_until_asked(d, d->count + 1);
    return c;
}

TEST(ask, may_be_answered_later)
{
    fixture d;
    caller *one, *two;

    begin(&d);
    one = ask_later(&d);
    two = ask_later(&d);
    CHECK(stg_ask_is_open(d.waiting[0]));
    stg_ask_answer_json(d.waiting[1], 200, json_pack("{s:i}", "number", 2));
    CHECK_STR(body_of(caller_answer(two)), "{\"number\":2}\n");
    // The connection goes on.
    caller_say(two, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
    CHECK_INT(status_of(caller_answer(two)), 200);
    stg_ask_refuse(d.waiting[0], 503, "not now");
    check_problem(caller_answer(one), 503, "not now");
    caller_free(one);
    caller_free(two);
    market_end(&d.market);
}

TEST(ask, is_refused_with_429_when_too_many_wait)
{
    fixture d;
    caller *one;

    market_begin(&d.market);
    d.market.options.asks_max = 1;
    serve(&d);
    one = ask_later(&d);
    check_problem(ask(&d.market, "GET /v1/things", "", ""), 429,
                  "1 requests are being answered");
    // Who looks whether the hub is well is told.
    CHECK_INT(status_of(ask(&d.market, "GET /healthz", "", "")), 200);
    CHECK_INT(status_of(ask(&d.market, "GET /v1/always", "", "")), 200);
    stg_ask_answer(d.waiting[0], 200, "text/plain", strdup("x"), 1);
    CHECK_STR(body_of(caller_answer(one)), "x");
    CHECK_INT(status_of(ask(&d.market, "GET /v1/things", "", "")), 200);
    caller_free(one);
    market_end(&d.market);
}

/* It could wait for what is being stopped. */
TEST(ask, is_answered_by_a_stop)
{
    fixture d;
    caller *c;

    begin(&d);
    c = ask_later(&d);
    market_stop(&d.market);
    check_problem(caller_answer(c), 503, "may have been done, or not");
    caller_run_until_closed(c);
    market_run_until(&d.market, &d.market.is_stopped);
    CHECK(!stg_ask_is_open(d.waiting[0]));
    // Looking is allowed until the end, changing is not.
    CHECK_INT(status_of(ask(&d.market, "GET /v1/things", "", "")), 200);
    check_problem(ask(&d.market, "POST /v1/things/a/stop", "", ""), 503,
                  "the hub is stopping");
    stg_ask_answer(d.waiting[0], 200, "text/plain", strdup("x"), 1);
    caller_free(c);
    market_end(&d.market);
}

TEST(ask, outlives_the_ingress)
{
    fixture d;
    caller *one, *two;

    begin(&d);
    one = ask_later(&d);
    two = ask_later(&d);
    market_end(&d.market);
    CHECK(!stg_ask_is_open(d.waiting[0]));
    stg_ask_answer_json(d.waiting[0], 200, json_pack("{}"));
    stg_ask_refuse(d.waiting[1], 503, "too late");
    caller_free(one);
    caller_free(two);
}

/* Answers that nobody takes are memory. */
TEST(ask, is_refused_when_too_many_answers_are_on_their_way)
{
    fixture d;

    market_begin(&d.market);
    d.market.options.answers_max = MUCH + 1000;
    serve(&d);
    for (int i = 0; i < 3; i++) // what was sent does not count any more
        CHECK_INT(status_of(ask(&d.market, "GET /v1/much", "", "")), 200);
    market_end(&d.market);
    market_begin(&d.market);
    d.market.options.answers_max = MUCH - 1;
    serve(&d);
    check_problem(ask(&d.market, "GET /v1/much", "", ""), 503,
                  "too many answers");
    market_end(&d.market);
}

static const char much[] = "GET /v1/much HTTP/1.1\r\nHost: localhost\r\n\r\n";

/* Sends what it is to say, and reads nothing. */
static void run_until_cut(fixture *d, const caller *c, stg_ingress_view *view)
{
    CHECK(send(c->fd, c->out, c->out_size, MSG_NOSIGNAL) > 0);
    for (uint64_t end_at = uv_hrtime() + 20 * STG_S; view->cut == 0;) {
        market_run(&d->market);
        stg_ingress_look(d->market.ingress, view);
        CHECK(uv_hrtime() < end_at);
    }
    CHECK_U64(view->cut, 1);
}

/* What is on its way to one who does not read is bounded, and not for ever. */
TEST(ask, is_cut_when_its_answer_is_not_taken)
{
    stg_ingress_view view = {.cut = 0};
    fixture d;
    caller *c;

    market_begin(&d.market);
    d.market.options.idle_timeout = 200 * STG_MS;
    d.market.options.answers_max = MUCH;
    serve(&d);
    c = caller_new(&d.market);
    for (int i = 0; i < 200; i++) // more than the system holds
        caller_say(c, much);
    run_until_cut(&d, c, &view);
    CHECK(0 < view.requests && view.requests < 200);
    // It does not count any more.
    CHECK_INT(status_of(ask(&d.market, "GET /v1/much", "", "")), 200);
    caller_free(c);
    market_end(&d.market);
}

/* One above the limit of connections has a second, and not the 30 s of others. */
TEST(ask, is_cut_soon_when_there_was_no_place_for_it)
{
    stg_ingress_view view = {.cut = 0};
    fixture d;
    caller *waits, *c;

    market_begin(&d.market);
    d.market.options.connections_max = 1;
    serve(&d);
    waits = ask_later(&d);
    d.much = 32u << 20; // more than the system holds
    c = caller_new(&d.market);
    caller_say(c, much);
    run_until_cut(&d, c, &view);
    stg_ask_refuse(d.waiting[0], 503, "not now");
    check_problem(caller_answer(waits), 503, "not now");
    caller_free(waits);
    caller_free(c);
    market_end(&d.market);
}
