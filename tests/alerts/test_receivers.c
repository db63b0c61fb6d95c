/* Receivers against servers on loopback that do as they are told. */
#include "alerts/alerts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <stagger/text.h>

#include "tests/harness.h"
#include "tests/http/leaf.h"

#define OK_200 SAY("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
#define BAD_500 SAY("HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n")
#define BUSY_429                                                  \
    SAY("HTTP/1.1 429 Slow\r\nRetry-After: 1\r\nContent-Length: " \
        "0\r\n\r\n")
#define GONE_404 SAY("HTTP/1.1 404 No\r\nContent-Length: 10\r\n\r\nno_service")

/* -- a bench: a loop, a leaf, a receiver ----------------------------------- */

typedef struct bench {
    uv_loop_t loop;
    uv_prepare_t alive; /* a loop without an active handle would not sleep */
    stg_deadlines deadlines;
    stg_alert_world world;
    leaf leaf;
    char url[64], path[32];
    stg_alert_receiver *receiver;
    unsigned ended, sent, idle;
    char detail[512];
    unsigned closed;
} bench;

static void note_end(void *ctx, stg_alert_receiver *s, bool is_sent,
                     const char *detail)
{
    bench *b = ctx;

    (void)s;
    b->ended++;
    b->sent += is_sent;
    snprintf(b->detail, sizeof b->detail, "%s", detail);
}

static void note_idle(void *ctx, stg_alert_receiver *s)
{
    bench *b = ctx;

    CHECK(stg_alert_receiver_is_idle(s));
    b->idle++;
}

static void sleep_on(uv_prepare_t *alive)
{
    (void)alive;
}

static void open_bench(bench *b, const leaf_step *const *scripts, size_t count)
{
    *b = (bench){.ended = 0};
    CHECK(uv_loop_init(&b->loop) == 0);
    CHECK(uv_prepare_init(&b->loop, &b->alive) == 0);
    CHECK(uv_prepare_start(&b->alive, sleep_on) == 0);
    stg_deadlines_init(&b->deadlines, &b->loop);
    CHECK(leaf_open(&b->leaf, &b->loop, "127.0.0.1", NULL, scripts, count));
    snprintf(b->url, sizeof b->url, "http://127.0.0.1:%d/hook/secret",
             b->leaf.port);
    b->world = (stg_alert_world){.loop = &b->loop,
                                 .deadlines = &b->deadlines,
                                 .policy = stg_alert_policy(),
                                 .rng = stg_rng_seed(1),
                                 .ended = note_end,
                                 .idle = note_idle,
                                 .ctx = b};
    // As the real one, but quick.
    b->world.policy.backoff.base = 10 * STG_MS;
    b->world.policy.backoff.cap = 20 * STG_MS;
    b->world.mailer = stg_mailer_new(&b->loop, NULL);
    CHECK(stg_client_new(&b->world.client, &b->loop, NULL) == STG_OK);
}

#define BENCH(b, ...)                               \
    bench b;                                        \
    const leaf_step *b##_scripts[] = {__VA_ARGS__}; \
    open_bench(&b, b##_scripts, sizeof b##_scripts / sizeof *b##_scripts)

static stg_alert_receiver_options webhook(const bench *b)
{
    stg_alert_receiver_options o =
        stg_alert_receiver_options_default(STG_RECEIVER_WEBHOOK);

    o.name = "hook";
    o.url = b->url;
    return o;
}

static void use(bench *b, const stg_alert_receiver_options *o)
{
    stg_error err = {.text = ""};

    (void)stg_alert_receiver_new(&b->receiver, &b->world, o, &err);
    CHECK_STR(err.text, "");
}

static void use_webhook(bench *b)
{
    stg_alert_receiver_options o = webhook(b);

    use(b, &o);
}

static void note_closed(void *ctx)
{
    bench *b = ctx;

    b->closed++;
}

static void close_bench(bench *b)
{
    stg_alert_receiver_free(b->receiver);
    stg_client_close(b->world.client, note_closed, b);
    stg_deadlines_close(&b->deadlines, note_closed, b);
    leaf_close(&b->leaf);
    uv_close((uv_handle_t *)&b->alive, NULL);
    CHECK(uv_run(&b->loop, UV_RUN_DEFAULT) == 0);
    CHECK_INT(b->closed, 2);
    stg_mailer_free(b->world.mailer);
    CHECK(uv_loop_close(&b->loop) == 0);
}

static void push(bench *b, const char *target)
{
    stg_digest d = {.hub = "box", .item_count = 1};

    d.items[0] = (stg_digest_item){.alert = STG_ALERT_BREAKER, .count = 1};
    snprintf(d.items[0].target, sizeof d.items[0].target, "%s", target);
    stg_alert_receiver_push(b->receiver, &d);
}

static void wait_ends(bench *b, unsigned count)
{
    while (b->ended < count)
        (void)uv_run(&b->loop, UV_RUN_ONCE);
    CHECK_INT(b->ended, count);
}

static stg_alert_receiver_view look(const bench *b)
{
    stg_alert_receiver_view v;

    stg_alert_receiver_look(b->receiver, &v);
    return v;
}

/* -- one message ----------------------------------------------------------- */

TEST(receiver, sends_json_with_its_headers)
{
    static const stg_alert_header headers[] = {{"X-Team", "ops", NULL}};
    BENCH(b, SCRIPT(HEAR, OK_200));
    stg_alert_receiver_options o = webhook(&b);

    o.headers = headers;
    o.header_count = 1;
    use(&b, &o);
    push(&b, "a");
    wait_ends(&b, 1);
    CHECK_INT(b.sent, 1);
    CHECK_INT(b.idle, 1);
    CHECK(strstr(b.leaf.heard, "POST /hook/secret HTTP/1.1\r\n") != NULL);
    CHECK(strstr(b.leaf.heard, "\r\nX-Team: ops\r\n") != NULL);
    CHECK(strstr(b.leaf.heard, "\r\nUser-Agent: stagger/") != NULL);
    CHECK(strstr(b.leaf.heard, "\r\nContent-Type: application/json\r\n") !=
          NULL);
    CHECK(strstr(b.leaf.heard, "\"target\":\"a\"") != NULL);
    CHECK_U64(look(&b).sent, 1);
    close_bench(&b);
}

/* Settings go with a reload, and one that is told ends by itself. */
TEST(receiver, keeps_what_it_needs_of_its_options)
{
    char body[] = "{\"text\": \"{title}\"}", name[] = "X-Team", value[] = "ops",
         url[64];
    stg_alert_header headers[] = {{name, value, NULL}};
    BENCH(b, SCRIPT(HEAR, OK_200));
    stg_alert_receiver_options o = webhook(&b);

    snprintf(url, sizeof url, "%s", b.url);
    o.type = STG_RECEIVER_TEMPLATE;
    o.url = url;
    o.body = body;
    o.headers = headers;
    o.header_count = 1;
    use(&b, &o);
    memset(body, '#', sizeof body - 1);
    memset(name, '#', sizeof name - 1);
    memset(value, '#', sizeof value - 1);
    memset(url, '#', sizeof url - 1);
    headers[0] = (stg_alert_header){NULL, NULL, NULL};
    push(&b, "a");
    wait_ends(&b, 1);
    CHECK_INT(b.sent, 1);
    CHECK(strstr(b.leaf.heard, "\r\nX-Team: ops\r\n") != NULL);
    CHECK(strstr(b.leaf.heard, "{\"text\": \"") != NULL);
    close_bench(&b);
}

/* The signature of the request with this type as the receiver has it, made of what
 * was heard of it. */
static void check_signed(const bench *b, const stg_alert_receiver_options *o,
                         const char *type)
{
    const char *heard = b->leaf.heard, *body = strstr(heard, "\r\n\r\n") + 4,
               *id = strstr(heard, "\r\nIdempotency-Key: ") + 19,
               *created = strstr(heard, ";created=") + 9;
    stg_sign_request r = {.id = {id, strcspn(id, "\r")},
                          .seconds = strtoull(created, NULL, 10),
                          .body = {body, strlen(body)},
                          .content_type = {type, strlen(type)},
                          .method = "POST",
                          .url = b->url};
    char lines[2048], *end;
    stg_signer *s;

    CHECK_INT(stg_signer_new(&s, &o->sign, &o->secrets[0].value, 1, NULL),
              STG_OK);
    end = stg_signer_put(s, lines, &r);
    CHECK(end != NULL);
    *end = '\0';
    stg_signer_free(s);
    CHECK(strstr(heard, lines) != NULL);
}

TEST(receiver, signs_the_type_that_it_sends)
{
    static const char word[] = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    static const stg_sign_secret secret = {word, NULL};
    static const char *const types[] = {"application/json", "text/x-alert"};

    for (size_t i = 0; i < 2; i++) {
        const stg_alert_header header = {"content-type", types[i], NULL};
        BENCH(b, SCRIPT(HEAR, OK_200));
        stg_alert_receiver_options o = webhook(&b);

        o.sign.scheme = STG_SIGN_MESSAGE;
        o.secrets = &secret;
        o.secret_count = 1;
        o.headers = &header;
        o.header_count = i; // the first has none
        use(&b, &o);
        push(&b, "a");
        wait_ends(&b, 1);
        check_signed(&b, &o, types[i]);
        close_bench(&b);
    }
}

TEST(receiver, tries_again_after_500)
{
    BENCH(b, SCRIPT(HEAR, BAD_500, HEAR, BAD_500, HEAR, OK_200));

    use_webhook(&b);
    push(&b, "a");
    wait_ends(&b, 1);
    CHECK_INT(b.sent, 1);
    CHECK_U64(look(&b).failed, 2);
    CHECK_U64(look(&b).sent, 1);
    CHECK_U64(look(&b).given_up, 0);
    close_bench(&b);
}

TEST(receiver, waits_as_long_as_it_is_asked_to)
{
    BENCH(b, SCRIPT(HEAR, BUSY_429, HEAR, OK_200));
    stg_ns begun_at = stg_deadlines_now();

    use_webhook(&b);
    push(&b, "a");
    wait_ends(&b, 1);
    CHECK_INT(b.sent, 1);
    CHECK(stg_deadlines_now() - begun_at >= STG_S);
    close_bench(&b);
}

TEST(receiver, gives_up_at_once_what_is_for_good)
{
    BENCH(b, SCRIPT(HEAR, GONE_404, HEAR, OK_200));

    use_webhook(&b);
    push(&b, "a");
    wait_ends(&b, 1);
    CHECK_INT(b.sent, 0);
    CHECK_STR(b.detail, "HTTP 404: no_service");
    CHECK_U64(look(&b).given_up, 1);
    // The next one has its own chance.
    push(&b, "b");
    wait_ends(&b, 2);
    CHECK_INT(b.sent, 1);
    close_bench(&b);
}

TEST(receiver, tries_until_its_hour_is_over)
{
    BENCH(b, SCRIPT(RESET));

    CHECK_U64(b.world.policy.attempts_max, STG_UNLIMITED);
    CHECK_U64(b.world.policy.deadline, STG_HOUR);
    b.world.policy.deadline = STG_S; // for dozens, on a busy machine too
    use_webhook(&b);
    push(&b, "a");
    wait_ends(&b, 1);
    CHECK_INT(b.sent, 0);
    CHECK(look(&b).failed > 10);
    CHECK_U64(look(&b).given_up, 1);
    close_bench(&b);
}

TEST(receiver, gives_up_at_once_at_a_redirect)
{
    BENCH(b, SCRIPT(HEAR, SAY("HTTP/1.1 307 X\r\nLocation: /\r\n"
                              "Content-Length: 0\r\n\r\n")));

    use_webhook(&b);
    push(&b, "a");
    wait_ends(&b, 1);
    CHECK_STR(b.detail, "HTTP 307");
    CHECK_U64(look(&b).failed, 1);
    close_bench(&b);
}

TEST(receiver, tells_again_by_itself_what_it_could_not_tell)
{
    BENCH(b, SCRIPT(HEAR, GONE_404, HEAR, OK_200));

    b.world.interval = 50 * STG_MS;
    use_webhook(&b);
    push(&b, "a");
    wait_ends(&b, 1);
    CHECK_INT(b.sent, 1);
    CHECK_U64(look(&b).given_up, 1);
    CHECK(strstr(b.leaf.heard, "\"target\":\"a\"") != NULL);
    CHECK(stg_alert_receiver_is_idle(b.receiver));
    close_bench(&b);
}

TEST(receiver, tells_with_the_next_what_it_could_not_tell)
{
    BENCH(b, SCRIPT(HEAR, GONE_404, HEAR, OK_200));

    b.world.interval = STG_HOUR;
    use_webhook(&b);
    push(&b, "a");
    while (look(&b).given_up == 0)
        (void)uv_run(&b.loop, UV_RUN_ONCE);
    CHECK(!stg_alert_receiver_is_idle(b.receiver));
    push(&b, "b");
    wait_ends(&b, 1);
    CHECK_INT(b.sent, 1);
    CHECK(strstr(b.leaf.heard, "\"target\":\"a\"") != NULL);
    CHECK(strstr(b.leaf.heard, "\"target\":\"b\"") != NULL);
    CHECK_U64(look(&b).merged, 1);
    close_bench(&b);
}

TEST(receiver, tries_what_was_put_off_once_more_at_the_end)
{
    BENCH(b, SCRIPT(HEAR, GONE_404, HEAR, GONE_404));

    b.world.interval = STG_HOUR;
    use_webhook(&b);
    push(&b, "a");
    while (look(&b).given_up == 0)
        (void)uv_run(&b.loop, UV_RUN_ONCE);
    stg_alert_receiver_end_soon(b.receiver);
    wait_ends(&b, 1);
    CHECK_INT(b.sent, 0);
    CHECK_INT(b.idle, 1);
    CHECK_U64(look(&b).given_up, 2);
    close_bench(&b);
}

TEST(receiver, drops_what_was_put_off_when_it_is_cancelled)
{
    BENCH(b, SCRIPT(HEAR, GONE_404));

    b.world.interval = STG_HOUR;
    use_webhook(&b);
    push(&b, "a");
    while (look(&b).given_up == 0)
        (void)uv_run(&b.loop, UV_RUN_ONCE);
    stg_alert_receiver_cancel(b.receiver);
    CHECK_INT(b.idle, 1);
    CHECK(stg_alert_receiver_is_idle(b.receiver));
    close_bench(&b);
}

TEST(receiver, does_not_wait_for_a_server_that_hangs)
{
    BENCH(b, SCRIPT(HEAR), SCRIPT(HEAR, OK_200));
    stg_alert_receiver_options o = webhook(&b);

    o.timeout = 100 * STG_MS;
    use(&b, &o);
    push(&b, "a");
    wait_ends(&b, 1);
    CHECK_INT(b.sent, 1);
    CHECK_U64(look(&b).failed, 1);
    close_bench(&b);
}

/* -- what waits ------------------------------------------------------------ */

TEST(receiver, merges_what_comes_while_it_is_busy)
{
    BENCH(b, SCRIPT(HEAR, OK_200, HEAR, OK_200));

    use_webhook(&b);
    for (int i = 0; i < 10; i++) {
        char name[16];

        snprintf(name, sizeof name, "t%d", i);
        push(&b, name);
        CHECK(look(&b).waiting <= 2);
    }
    wait_ends(&b, 2);
    CHECK_INT(b.sent, 2);
    CHECK_INT(b.idle, 1);
    CHECK_U64(look(&b).merged, 8);
    CHECK(strstr(b.leaf.heard, "\"merged\":8}") != NULL);
    close_bench(&b);
}

TEST(receiver, tries_only_once_when_there_is_no_later)
{
    BENCH(b, SCRIPT(HEAR, BUSY_429, HEAR, BAD_500, HEAR, OK_200));

    use_webhook(&b);
    push(&b, "a");
    push(&b, "b");
    while (look(&b).failed == 0)
        (void)uv_run(&b.loop, UV_RUN_ONCE);
    stg_alert_receiver_end_soon(b.receiver); // the wait of a second is cut
    wait_ends(&b, 2);
    CHECK_U64(look(&b).failed, 2);
    CHECK_U64(look(&b).given_up, 1);
    CHECK_U64(look(&b).sent, 1);
    close_bench(&b);
}

TEST(receiver, gives_up_all_when_it_is_cancelled)
{
    BENCH(b, SCRIPT(HEAR));

    use_webhook(&b);
    push(&b, "a");
    push(&b, "b");
    while (b.leaf.requests == 0)
        (void)uv_run(&b.loop, UV_RUN_ONCE);
    stg_alert_receiver_cancel(b.receiver);
    wait_ends(&b, 1);
    CHECK_INT(b.idle, 1);
    CHECK_U64(look(&b).given_up, 2);
    close_bench(&b);
}

TEST(receiver, hands_what_waits_to_its_heir)
{
    BENCH(b, SCRIPT(HEAR, OK_200), SCRIPT(HEAR, OK_200));
    stg_alert_receiver *old;

    use_webhook(&b);
    old = b.receiver;
    push(&b, "a"); // under way
    push(&b, "b"); // waits
    use_webhook(&b);
    stg_alert_receiver_inherit(b.receiver, old);
    wait_ends(&b, 2);
    CHECK_INT(b.sent, 2);
    CHECK_U64(look(&b).sent, 1);
    CHECK(stg_alert_receiver_is_idle(old));
    stg_alert_receiver_free(old);
    close_bench(&b);
}

/* -- secrets --------------------------------------------------------------- */

static void write_file(bench *b, const char *text)
{
    int fd;

    strcpy(b->path, "/tmp/stagger-secret-XXXXXX");
    fd = mkstemp(b->path);
    CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    close(fd);
}

TEST(receiver, takes_a_url_and_headers_from_their_files)
{
    BENCH(b, SCRIPT(HEAR, GONE_404, HEAR,
                    SAY("HTTP/1.1 404 No\r\nContent-Length: 12\r\n\r\n"
                        "/hook/secret")));
    stg_alert_receiver_options o = webhook(&b);

    write_file(&b, b.url);
    o.type = STG_RECEIVER_SLACK;
    o.url_file = b.path;
    o.url = NULL;
    use(&b, &o);
    unlink(b.path);
    push(&b, "a");
    wait_ends(&b, 1);
    CHECK(strstr(b.leaf.heard, "POST /hook/secret HTTP/1.1\r\n") != NULL);
    CHECK(strstr(b.leaf.heard, "\"mrkdwn\":false") != NULL);
    CHECK_STR(b.detail, "HTTP 404: no_service");
    // An answer that repeats the URL is not shown.
    push(&b, "b");
    wait_ends(&b, 2);
    CHECK_STR(b.detail, "HTTP 404");
    close_bench(&b);
}

TEST(receiver, is_refused_without_its_secret_being_shown)
{
    BENCH(b, SCRIPT(HEAR));
    stg_alert_receiver_options o = webhook(&b);
    stg_error err;

    o.url_file = "/nowhere/at/all";
    o.url = NULL;
    CHECK_INT(stg_alert_receiver_new(&b.receiver, &b.world, &o, &err), STG_IO);
    CHECK_STR(err.text,
              "alerts: receiver hook: /nowhere/at/all: No such file or "
              "directory");
    write_file(&b, "https://user:hunter2@hooks.example.org/hunter2");
    o.url_file = b.path;
    CHECK_INT(stg_alert_receiver_new(&b.receiver, &b.world, &o, &err),
              STG_INVALID);
    CHECK_STR(err.text,
              "alerts: receiver hook: url-file: it has no URL of http:// "
              "or https://");
    unlink(b.path);
    b.receiver = NULL;
    close_bench(&b);
}

/* -- mail: what needs no server of its own; the rest is in alerts.py ------- */

static const char *const to[] = {"ops@example.org"};

static stg_alert_receiver_options mail(bench *b)
{
    stg_alert_receiver_options o =
        stg_alert_receiver_options_default(STG_RECEIVER_MAIL);

    snprintf(b->url, sizeof b->url, "smtp://127.0.0.1:%d", b->leaf.port);
    o.name = "mail";
    o.url = b->url;
    o.from = "hub@example.org";
    o.to = to;
    o.to_count = 1;
    o.starttls = STG_STARTTLS_NONE;
    o.timeout = 500 * STG_MS;
    return o;
}

TEST(mail, is_tried_again_when_the_server_has_no_time)
{
    BENCH(b, SCRIPT(LAST("421 come again\r\n")));
    stg_alert_receiver_options o = mail(&b);

    o.timeout = STG_MIN;
    b.world.policy.attempts_max = 3;
    use(&b, &o);
    push(&b, "a");
    wait_ends(&b, 1);
    CHECK_U64(look(&b).failed, 3);
    CHECK(strstr(b.detail, "421 come again") != NULL);
    close_bench(&b);
}

TEST(mail, is_given_up_when_the_server_says_never)
{
    BENCH(b, SCRIPT(LAST("554 not you\r\n")));
    stg_alert_receiver_options o = mail(&b);

    use(&b, &o);
    push(&b, "a");
    wait_ends(&b, 1);
    CHECK_U64(look(&b).failed, 1);
    CHECK(strstr(b.detail, "554 not you") != NULL);
    close_bench(&b);
}

TEST(mail, does_not_hold_the_loop_while_a_server_hangs)
{
    BENCH(b, SCRIPT(SAY("")));
    stg_alert_receiver_options o = mail(&b);
    unsigned turns = 0;

    b.world.policy.attempts_max = 1;
    use(&b, &o);
    push(&b, "a");
    while (b.ended < 1) {
        turns++;
        (void)uv_run(&b.loop, UV_RUN_NOWAIT);
        (void)usleep(1000);
    }
    CHECK(turns > 10);
    CHECK_INT(b.sent, 0);
    close_bench(&b);
}

TEST(mail, is_cancelled_while_its_server_hangs)
{
    BENCH(b, SCRIPT(SAY("220 hello\r\n")));
    stg_alert_receiver_options o = mail(&b);
    stg_ns begun_at = stg_deadlines_now();

    o.timeout = STG_MIN;
    use(&b, &o);
    push(&b, "a");
    while (b.leaf.accepted == 0)
        (void)uv_run(&b.loop, UV_RUN_ONCE);
    stg_alert_receiver_cancel(b.receiver);
    wait_ends(&b, 1);
    CHECK(stg_deadlines_now() - begun_at < 30 * STG_S);
    CHECK_INT(b.idle, 1);
    close_bench(&b);
}

TEST(mail, goes_to_no_forbidden_address)
{
    static const stg_cidr loopback = {.bits = 8, .address = {127}};
    BENCH(b, SCRIPT(SAY("220 hello\r\n")));
    stg_alert_receiver_options o = mail(&b);
    stg_egress egress = {.deny = &loopback, .deny_count = 1};
    stg_egress_rule *rule = stg_egress_rule_new(&egress);

    CHECK(rule != NULL);
    stg_mailer_use_egress(b.world.mailer, rule);
    stg_egress_rule_release(rule);
    b.world.policy.attempts_max = 1;
    use(&b, &o);
    push(&b, "a");
    wait_ends(&b, 1);
    CHECK_INT(b.sent, 0);
    CHECK_INT(b.leaf.accepted, 0);
    CHECK(strstr(b.detail, "denied by 127.0.0.0/8") != NULL);
    close_bench(&b);
}

/* -- all of alerts --------------------------------------------------------- */

static void describe(void *ctx, uint32_t lane, stg_alert_target *target)
{
    (void)ctx;
    target->name = lane == 1 ? "a" : "b";
}

static bool has_tag(void *ctx, uint32_t lane, const char *name,
                    const char *value)
{
    (void)ctx;
    return lane == 2 && strcmp(name, "team") == 0 && strcmp(value, "ops") == 0;
}

static stg_alerts *open_alerts(bench *b, const stg_alert_options *o)
{
    stg_alerts_place place = {.loop = &b->loop,
                              .client = b->world.client,
                              .deadlines = &b->deadlines,
                              .describe = describe,
                              .has_tag = has_tag};
    stg_error err = {.text = ""};
    stg_alerts *a = NULL;

    (void)stg_alerts_open(&a, o, &place, &err);
    CHECK_STR(err.text, "");
    return a;
}

static stg_alerts_view view_of(const stg_alerts *a)
{
    stg_alerts_view v;

    stg_alerts_look(a, &v);
    return v;
}

static void wait_sent(bench *b, const stg_alerts *a, uint64_t count)
{
    while (view_of(a).sent < count)
        (void)uv_run(&b->loop, UV_RUN_ONCE);
}

static const stg_alert_detail none = {.number = 0};

static void open_breaker(stg_alerts *a, uint32_t lane)
{
    stg_alerts_raise(a, STG_ALERT_BREAKER, lane, &none, stg_deadlines_now());
}

static void close_alerts(bench *b, stg_alerts *a)
{
    unsigned closed = b->closed;

    stg_alerts_close(a, note_closed, b);
    while (b->closed == closed)
        (void)uv_run(&b->loop, UV_RUN_ONCE);
    b->closed = 0;
}

TEST(alerts, go_to_the_receivers_that_want_them)
{
    static const stg_alert_tag ops = {"team", "ops"};
    static const char *const a_only[] = {"a"};
    BENCH(b, SCRIPT(HEAR, OK_200, HEAR, OK_200));
    stg_alert_options o = stg_alert_options_default();
    stg_alert_receiver_options receivers[] = {webhook(&b), webhook(&b),
                                              webhook(&b)};
    stg_alerts *a;
    stg_alert_receiver_view v;

    o.group_wait = 0;
    o.receivers = receivers;
    o.receiver_count = 3;
    receivers[0].name = "tagged";
    receivers[0].tags = &ops;
    receivers[0].tag_count = 1;
    receivers[1].name = "named";
    receivers[1].targets = a_only;
    receivers[1].target_count = 1;
    receivers[2].name = "other";
    receivers[2].alerts = STG_ALERT_BIT(STG_ALERT_STORE);
    a = open_alerts(&b, &o);
    open_breaker(a, 1);
    wait_sent(&b, a, 1);
    CHECK_INT(stg_alerts_look_receiver(a, 1, &v), STG_OK);
    CHECK_U64(v.sent, 1);
    CHECK(strstr(b.leaf.heard, "\"target\":\"a\"") != NULL);
    CHECK_INT(view_of(a).firing[STG_ALERT_BREAKER], 1);
    CHECK_INT(stg_alerts_look_receiver(a, 3, &v), STG_NOT_FOUND);
    close_alerts(&b, a);
    close_bench(&b);
}

static stg_alert_options no_receivers(const stg_alert_options *o)
{
    stg_alert_options quiet = *o;

    quiet.receiver_count = 0;
    return quiet;
}

static stg_alert_receiver_view look_receiver(const stg_alerts *a, size_t i)
{
    stg_alert_receiver_view v = {.name = NULL};

    CHECK_INT(stg_alerts_look_receiver(a, i, &v), STG_OK);
    return v;
}

static void change_alerts(stg_alerts *a, const stg_alert_options *o)
{
    CHECK_INT(stg_alerts_change(a, o, NULL), STG_OK);
    stg_alerts_catch_up(a, stg_deadlines_now());
}

/* A receiver that comes is told of what began before there was any. */
TEST(alerts, are_known_where_nobody_listens)
{
    BENCH(b, SCRIPT(HEAR, OK_200));
    stg_alert_options o = stg_alert_options_default();
    stg_alert_receiver_options s = webhook(&b);
    stg_alerts *a = open_alerts(&b, &o);

    open_breaker(a, 1);
    open_breaker(NULL, 1);
    CHECK(stg_alerts_are_on(a));
    CHECK(!stg_alerts_are_on(NULL));
    CHECK_INT(view_of(a).firing[STG_ALERT_BREAKER], 1);
    o.group_wait = 0;
    o.receivers = &s;
    o.receiver_count = 1;
    change_alerts(a, &o);
    wait_sent(&b, a, 1);
    CHECK(strstr(b.leaf.heard, "\"phase\":\"began\"") != NULL);
    o = no_receivers(&o);
    change_alerts(a, &o);
    CHECK_INT(view_of(a).firing[STG_ALERT_BREAKER], 1);
    o.alerts = STG_ALERT_BIT(STG_ALERT_STORE);
    change_alerts(a, &o);
    CHECK_INT(view_of(a).firing[STG_ALERT_BREAKER], 0);
    close_alerts(&b, a);
    close_bench(&b);
}

TEST(alerts, are_told_before_the_end)
{
    BENCH(b, SCRIPT(HEAR, OK_200));
    stg_alert_options o = stg_alert_options_default();
    stg_alert_receiver_options s = webhook(&b);
    stg_alerts *a;

    o.receivers = &s;
    o.receiver_count = 1;
    a = open_alerts(&b, &o);
    open_breaker(a, 1);
    close_alerts(&b, a); // long before the group is over
    CHECK_INT(b.leaf.requests, 1);
    close_bench(&b);
}

TEST(alerts, do_not_wait_long_for_a_receiver_that_hangs)
{
    BENCH(b, SCRIPT(HEAR));
    stg_alert_options o = stg_alert_options_default();
    stg_alert_receiver_options s = webhook(&b);
    stg_ns begun_at;
    stg_alerts *a;

    o.receivers = &s;
    o.receiver_count = 1;
    s.timeout = STG_MIN;
    a = open_alerts(&b, &o);
    open_breaker(a, 1);
    begun_at = stg_deadlines_now();
    close_alerts(&b, a);
    CHECK(stg_deadlines_now() - begun_at < 30 * STG_S);
    close_bench(&b);
}

TEST(alerts, keep_what_they_know_when_options_change)
{
    BENCH(b, SCRIPT(HEAR, OK_200), SCRIPT(HEAR, OK_200));
    stg_alert_options o = stg_alert_options_default(), other, bad;
    stg_alert_receiver_options s = webhook(&b), t = webhook(&b), broken;
    stg_error err;
    stg_alerts *a;

    o.group_wait = 0;
    o.receivers = &s;
    o.receiver_count = 1;
    a = open_alerts(&b, &o);
    open_breaker(a, 1);
    wait_sent(&b, a, 1);
    bad = o;
    broken = s;
    broken.ca_file = "/nowhere/at/all";
    broken.url = "https://127.0.0.1/";
    bad.receivers = &broken;
    CHECK(stg_alerts_change(a, &bad, &err) != STG_OK);
    CHECK(strstr(err.text, "alerts: receiver hook: ca /nowhere/at/all: ") ==
          err.text);
    other = o;
    other.resolve_after = 0;
    other.min_interval = 0;
    other.receivers = &t;
    CHECK_INT(stg_alerts_change(a, &other, NULL), STG_OK);
    CHECK(stg_alerts_is_raised(a, STG_ALERT_BREAKER, 1));
    memset(&s, 0, sizeof s); // it is looked at no more
    stg_alerts_clear(a, STG_ALERT_BREAKER, 1, stg_deadlines_now());
    wait_sent(&b, a, 2);
    CHECK(strstr(b.leaf.heard, "\"phase\":\"ended\"") != NULL);
    other.receiver_count = 0;
    CHECK_INT(stg_alerts_change(a, &other, NULL), STG_OK);
    CHECK_INT(view_of(a).receivers, 0);
    CHECK_U64(view_of(a).sent, 2);
    close_alerts(&b, a);
    close_bench(&b);
}

/* Each reload brings a receiver to a destination of its own, or not. */
TEST(alerts, are_told_to_a_new_destination_alone)
{
    BENCH(b, SCRIPT(HEAR, OK_200), SCRIPT(HEAR, OK_200), SCRIPT(HEAR, OK_200),
          SCRIPT(HEAR, OK_200));
    stg_alert_options o = stg_alert_options_default();
    stg_alert_receiver_options s[] = {webhook(&b), webhook(&b)};
    char url[80];
    stg_alerts *a;

    o.group_wait = o.min_interval = 0;
    o.receivers = s;
    o.receiver_count = 1;
    s[1].alerts = STG_ALERT_BIT(STG_ALERT_STORE);
    a = open_alerts(&b, &o);
    open_breaker(a, 1);
    wait_sent(&b, a, 1);
    change_alerts(a, &o); // nothing is other than before
    s[0].name = "renamed";
    s[0].timeout = 20 * STG_S;
    change_alerts(a, &o);
    o.receiver_count = 2;
    s[1].name = "other";
    snprintf(url, sizeof url, "%s/other", s[0].url);
    s[1].url = url;
    change_alerts(a, &o); // which does not want it
    s[1].alerts = STG_ALERT_ALL;
    change_alerts(a, &o); // and now it does
    wait_sent(&b, a, 2);
    CHECK_U64(look_receiver(a, 1).sent, 1);
    CHECK(strstr(b.leaf.heard, "\"phase\":\"began\"") != NULL);
    s[1].url = s[0].url; // a destination where all was told
    change_alerts(a, &o);
    s[0].url = url;
    change_alerts(a, &o);
    CHECK_INT(b.leaf.requests, 2);
    open_breaker(a, 2);
    close_alerts(&b, a);
    CHECK_INT(b.leaf.requests, 4); // both, of the second breaker alone
    close_bench(&b);
}

TEST(alerts, compare_lag_and_certificates_with_the_options)
{
    BENCH(b, SCRIPT(HEAR));
    stg_alert_options o = stg_alert_options_default();
    stg_alert_receiver_options s = webhook(&b);
    stg_alerts *a;

    o.group_wait = 10 * STG_MIN;
    o.receivers = &s;
    o.receiver_count = 1;
    s.alerts = STG_ALERT_BIT(STG_ALERT_STORE);
    a = open_alerts(&b, &o);
    stg_alerts_lag(a, 1, 99999, 10 * STG_MIN - 1, 0);
    CHECK(!stg_alerts_is_raised(a, STG_ALERT_LAG, 1));
    stg_alerts_lag(a, 1, 100000, 0, 0);
    CHECK(stg_alerts_is_raised(a, STG_ALERT_LAG, 1));
    stg_alerts_lag(a, 1, 50001, 0, 0);
    CHECK(stg_alerts_is_raised(a, STG_ALERT_LAG, 1));
    stg_alerts_lag(a, 1, 50000, 5 * STG_MIN, 0);
    CHECK(!stg_alerts_is_raised(a, STG_ALERT_LAG, 1));
    stg_alerts_lag(a, 1, 0, 10 * STG_MIN, 0);
    CHECK(stg_alerts_is_raised(a, STG_ALERT_LAG, 1));
    stg_alerts_certificate(a, 1, 100 * STG_DAY, 86 * STG_DAY, 0);
    CHECK(!stg_alerts_is_raised(a, STG_ALERT_CERTIFICATE, 1));
    stg_alerts_certificate(a, 1, 100 * STG_DAY, 86 * STG_DAY + 1, 0);
    CHECK(stg_alerts_is_raised(a, STG_ALERT_CERTIFICATE, 1));
    stg_alerts_certificate(a, 1, 400 * STG_DAY, 86 * STG_DAY, 0);
    CHECK(!stg_alerts_is_raised(a, STG_ALERT_CERTIFICATE, 1));
    stg_alerts_retention(a, 1, 49, 0);
    CHECK(!stg_alerts_is_raised(a, STG_ALERT_RETENTION, 1));
    stg_alerts_retention(a, 1, 50, 0);
    stg_alerts_retention(a, 1, 40, 0);
    CHECK(stg_alerts_is_raised(a, STG_ALERT_RETENTION, 1));
    stg_alerts_retention(a, 1, 39, 0);
    CHECK(!stg_alerts_is_raised(a, STG_ALERT_RETENTION, 1));
    close_alerts(&b, a);
    close_bench(&b);
}

/* -- a trial --------------------------------------------------------------- */

typedef struct tried {
    unsigned times;
    size_t count;
    char text[1024];
} tried;

static void note_tried(void *ctx, const stg_alert_result *results, size_t count)
{
    tried *t = ctx;
    size_t size = 0;

    t->times++;
    t->count = count;
    for (size_t i = 0; i < count; i++)
        size += (size_t)snprintf(t->text + size, sizeof t->text - size,
                                 "%s %s %d %s\n", results[i].name,
                                 stg_receiver_type_name(results[i].type),
                                 results[i].is_sent, results[i].detail);
}

TEST(trial, says_of_each_receiver_whether_it_accepted)
{
    BENCH(b, SCRIPT(HEAR, OK_200));
    stg_alert_options o = stg_alert_options_default();
    stg_alert_receiver_options receivers[] = {webhook(&b), webhook(&b)};
    stg_alert_trial_options t = {.alerts = &o, .world = &b.world};
    stg_alert_trial *trial;
    tried seen = {.times = 0};

    CHECK_INT(stg_alert_trial_start(&trial, &t, note_tried, &seen),
              STG_NOT_FOUND);
    o.receivers = receivers;
    o.receiver_count = 2;
    receivers[1].name = "bad";
    receivers[1].url = NULL;
    receivers[1].url_file = "/nowhere/at/all";
    CHECK_INT(stg_alert_trial_start(&trial, &t, note_tried, &seen), STG_OK);
    while (seen.times == 0)
        (void)uv_run(&b.loop, UV_RUN_ONCE);
    CHECK_TRACE(seen.text,
                "hook webhook 1 HTTP 200\n"
                "bad webhook 0 alerts: receiver bad: /nowhere/at/all: "
                "No such file or directory\n");
    CHECK(strstr(b.leaf.heard, "\"test\":true") != NULL);
    t.receiver = "none";
    CHECK_INT(stg_alert_trial_start(&trial, &t, note_tried, &seen),
              STG_NOT_FOUND);
    close_bench(&b);
}

TEST(trial, ends_when_it_is_cancelled)
{
    BENCH(b, SCRIPT(HEAR));
    stg_alert_options o = stg_alert_options_default();
    stg_alert_receiver_options s = webhook(&b);
    stg_alert_trial_options t = {
        .alerts = &o, .world = &b.world, .receiver = "hook"};
    stg_alert_trial *trial;
    tried seen = {.times = 0};

    o.receivers = &s;
    o.receiver_count = 1;
    CHECK_INT(stg_alert_trial_start(&trial, &t, note_tried, &seen), STG_OK);
    while (b.leaf.requests == 0)
        (void)uv_run(&b.loop, UV_RUN_ONCE);
    stg_alert_trial_cancel(trial);
    while (seen.times == 0)
        (void)uv_run(&b.loop, UV_RUN_ONCE);
    CHECK_INT(seen.count, 1);
    close_bench(&b);
}

/* Another reload came in the turn in which it was asked for. */
TEST(trial, ends_when_it_is_cancelled_before_it_begins)
{
    BENCH(b, SCRIPT(HEAR));
    stg_alert_options o = stg_alert_options_default();
    stg_alert_receiver_options s = webhook(&b);
    tried seen = {.times = 0};
    stg_ns until;
    stg_alerts *a;

    o.receivers = &s;
    o.receiver_count = 1;
    a = open_alerts(&b, &o);
    CHECK_INT(stg_alerts_try(a, NULL, note_tried, &seen), STG_OK);
    CHECK_INT(stg_alerts_change(a, &o, NULL), STG_OK);
    until = stg_deadlines_now() + 5 * STG_S;
    while (seen.times == 0 && stg_deadlines_now() < until)
        (void)uv_run(&b.loop, UV_RUN_ONCE);
    CHECK_INT(seen.times, 1);
    CHECK_TRACE(seen.text, "hook webhook 0 cancelled\n");
    close_alerts(&b, a);
    CHECK_INT(b.leaf.requests, 0);
    close_bench(&b);
}
