/* Many transfers of libcurl at once, against real peers that fail, in loops of
 * three kinds; the waits take virtual time unless a test is about the time. */
#include <stagger/curl.h>

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "tests/adapters/sink.h"
#include "tests/adapters/story.h"
#include "tests/harness.h"

#define STEADY "fixed base=100ms jitter=none "
#define WITH(...) (&(stg_curl_with){__VA_ARGS__})

/* -- a loop around a CURLM */

typedef enum loop_kind { BY_POLL, BY_ASKING, BY_TIMER } loop_kind;

static struct {
    loop_kind kind;
    CURLM *curl;
    stg_curl_multi multi;
    int epoll;
    stg_ns fires_at; /* the timer of BY_TIMER */
    bool is_early;   /* it fires half-way */
    unsigned others; /* messages of handles that are not ours */
} loop = {.epoll = -1};

static story world;

/* libcurl lacks memory for the next so many handles. */
static int lacks;

/* In place of libcurl's own. */
CURLMcode curl_multi_add_handle(CURLM *multi, CURL *easy)
{
    CURLMcode (*add_handle)(CURLM *, CURL *);
    void *symbol = dlsym(RTLD_NEXT, "curl_multi_add_handle");

    if (lacks > 0) {
        lacks--;
        return CURLM_OUT_OF_MEMORY;
    }
    memcpy(&add_handle, &symbol, sizeof symbol); // ISO C casts none
    return add_handle(multi, easy);
}

static stg_ns now(void)
{
    return stg_env_system()->now(NULL);
}

static int on_timer(CURLM *curl, long ms, void *data)
{
    stg_ns *fires_at = data;

    CHECK(curl == loop.curl);
    if (loop.is_early && ms > 0)
        ms /= 2;
    *fires_at = ms < 0 ? STG_NEVER : now() + (stg_ns)ms * STG_MS;
    return 0;
}

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *data,
                     void *known)
{
    struct epoll_event event = {.data.fd = fd};

    (void)easy;
    (void)data;
    if (what == CURL_POLL_REMOVE) {
        epoll_ctl(loop.epoll, EPOLL_CTL_DEL, fd, NULL);
        return 0;
    }
    event.events = (what & CURL_POLL_IN ? EPOLLIN : 0U) |
                   (what & CURL_POLL_OUT ? EPOLLOUT : 0U);
    if (known == NULL || epoll_ctl(loop.epoll, EPOLL_CTL_MOD, fd, &event) != 0)
        CHECK(epoll_ctl(loop.epoll, EPOLL_CTL_ADD, fd, &event) == 0);
    curl_multi_assign(loop.curl, fd, &loop);
    return 0;
}

static void close_loop(void)
{
    if (loop.curl == NULL)
        return;
    stg_curl_multi_close(&loop.multi);
    CHECK(curl_multi_cleanup(loop.curl) == CURLM_OK);
    close(loop.epoll);
    loop.curl = NULL;
}

__attribute__((destructor)) static void clean(void)
{
    close_loop();
}

static void open_loop(loop_kind kind)
{
    close_loop();
    story_begin(&world, "");
    loop.kind = kind;
    loop.curl = curl_multi_init();
    loop.epoll = epoll_create1(EPOLL_CLOEXEC);
    loop.fires_at = STG_NEVER;
    loop.is_early = false;
    loop.others = 0;
    CHECK(loop.curl != NULL && loop.epoll >= 0);
    if (kind != BY_POLL)
        curl_multi_setopt(loop.curl, CURLMOPT_SOCKETFUNCTION, on_socket);
    CHECK(stg_curl_multi_init(&loop.multi, loop.curl,
                              kind == BY_TIMER ? on_timer : NULL,
                              &loop.fires_at) == STG_OK);
}

static void read_all(void)
{
    CURLMsg *message;

    while ((message = stg_curl_multi_read(&loop.multi)) != NULL) {
        CHECK(message->msg == CURLMSG_DONE);
        curl_multi_remove_handle(loop.curl, message->easy_handle);
        loop.others++;
    }
}

static void turn_by_poll(void)
{
    int running;

    curl_multi_poll(loop.curl, NULL, 0,
                    stg_curl_multi_timeout(&loop.multi, 1000), NULL);
    CHECK(curl_multi_perform(loop.curl, &running) == CURLM_OK);
    read_all();
}

static int how_long(void)
{
    stg_ns at = now();

    if (loop.kind == BY_ASKING)
        return stg_curl_multi_timeout(&loop.multi, -1);
    if (loop.fires_at == STG_NEVER)
        return -1;
    return at >= loop.fires_at
               ? 0
               : (int)((loop.fires_at - at + STG_MS - 1) / STG_MS);
}

static void turn_by_socket(void)
{
    struct epoll_event events[64];
    int count = epoll_wait(loop.epoll, events, 64, how_long());
    int running;

    for (int i = 0; i < count; i++) {
        int what =
            (events[i].events & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
            (events[i].events & ~(uint32_t)EPOLLOUT ? CURL_CSELECT_IN : 0);

        curl_multi_socket_action(loop.curl, events[i].data.fd, what, &running);
        read_all();
    }
    if (how_long() != 0)
        return;
    loop.fires_at = STG_NEVER; // it fires once
    curl_multi_socket_action(loop.curl, CURL_SOCKET_TIMEOUT, 0, &running);
    read_all();
}

static void turn(void)
{
    if (loop.kind == BY_POLL)
        turn_by_poll();
    else
        turn_by_socket();
}

static void run(void)
{
    while (stg_curl_multi_running(&loop.multi) > 0)
        turn();
}

/* -- a transfer, and what became of it */

typedef struct request {
    stg_curl_transfer transfer;
    CURL *easy;
    CURLcode code;
    stg_report report;
    char words[STG_REPORT_TEXT_MAX];
    unsigned ended;
    size_t answered; /* bytes */
    unsigned resets;
    stg_curl_transfer *cancels; /* when it gets an answer */
} request;

static size_t take(char *data, size_t size, size_t count, void *ctx)
{
    request *r = ctx;

    (void)data;
    r->answered += size * count;
    stg_curl_multi_cancel(r->cancels);
    return size * count;
}

static void take_back(void *ctx)
{
    request *r = ctx;

    r->resets++;
    r->answered = 0;
}

static void done(stg_curl_transfer *t, CURLcode code, const stg_report *report)
{
    request *r = t->data;

    CHECK(t == &r->transfer);
    r->ended++;
    r->code = code;
    r->report = *report;
    stg_report_text(report, r->words);
}

/* With a new handle for such a URL. */
static void make(request *r, const char *url)
{
    *r = (request){.easy = curl_easy_init()};
    CHECK(r->easy != NULL);
    r->transfer.data = r;
    curl_easy_setopt(r->easy, CURLOPT_URL, url);
    curl_easy_setopt(r->easy, CURLOPT_WRITEFUNCTION, take);
    curl_easy_setopt(r->easy, CURLOPT_WRITEDATA, r);
    curl_easy_setopt(r->easy, CURLOPT_NOPROXY, "*");
}

static void drop(request *r)
{
    curl_easy_cleanup(r->easy);
    r->easy = NULL;
}

static stg_status add_on(request *r, const char *text, stg_curl_with *with,
                         const stg_env *env)
{
    static stg_policy policies[8]; // they are kept
    static unsigned count;
    stg_policy *policy = &policies[count++ % 8];

    *policy = policy_of(text);
    with->with.env = env;
    return stg_curl_multi_add(&loop.multi, &r->transfer, r->easy, policy, with,
                              done);
}

static void add(request *r, const char *text, stg_curl_with *with)
{
    CHECK_INT(add_on(r, text, with, &world.env), STG_OK);
}

/* On time that passes. */
static void add_real(request *r, const char *text, stg_curl_with *with)
{
    CHECK_INT(add_on(r, text, with, NULL), STG_OK);
}

/* One alone, to its end. */
static void perform(request *r, const char *text, stg_curl_with *with)
{
    add(r, text, with);
    run();
    CHECK_INT(r->ended, 1);
}

static void post(request *r, const char *url, const char *body)
{
    make(r, url);
    curl_easy_setopt(r->easy, CURLOPT_POSTFIELDS, body);
}

static long status_of(const request *r)
{
    long value = -1;

    curl_easy_getinfo(r->easy, CURLINFO_RESPONSE_CODE, &value);
    return value;
}

/* -- as the blocking form */

TEST(curl_multi, repeats_in_any_loop_until_it_succeeds)
{
    for (loop_kind kind = BY_POLL; kind <= BY_TIMER; kind++) {
        request r;

        open_loop(kind);
        make(&r, sink_start("--reply 503x2,200"));
        perform(&r, STEADY, WITH(0));
        CHECK_STR(r.words, "done after 3 attempts in 200 ms");
        CHECK_INT(r.code, CURLE_OK);
        CHECK_INT(status_of(&r), 200);
        CHECK_STR(sink_stop(), "GET / 503 0 -\nGET / 503 0 -\nGET / 200 0 -\n");
        drop(&r);
    }
}

static bool is_told(void *ctx, const stg_report *r)
{
    return stg_report_text(r, ctx) != NULL;
}

TEST(curl_multi, is_answered_by_its_fallback_before_it_is_done)
{
    char told[STG_REPORT_TEXT_MAX] = "";
    stg_fallback fallback = {.answer = is_told, .ctx = told};
    request r;

    open_loop(BY_TIMER);
    make(&r, sink_start("--reply 503"));
    perform(&r, STEADY "attempts=2", WITH(.with.fallback = &fallback));
    CHECK_STR(told, "gave up after 2 attempts in 100 ms: 503 (attempts)");
    CHECK_STR(r.words,
              "gave up after 2 attempts in 100 ms: 503 (attempts); the "
              "fallback answered");
    CHECK_INT(status_of(&r), 503);
    drop(&r);
}

TEST(curl_multi, waits_as_long_as_the_server_asks)
{
    request r;

    open_loop(BY_TIMER);
    make(&r, sink_start("--reply 503,429,200 --retry-after 7"));
    perform(&r, STEADY, WITH(0));
    CHECK_STR(r.words, "done after 3 attempts in 14 s");
    drop(&r);
}

TEST(curl_multi, hands_over_what_the_last_transfer_did)
{
    request r;

    open_loop(BY_TIMER);
    make(&r, sink_start("--reply 503"));
    curl_easy_setopt(r.easy, CURLOPT_FAILONERROR, 1L);
    perform(&r, STEADY "attempts=2", WITH(0));
    CHECK_INT(r.code, CURLE_HTTP_RETURNED_ERROR);
    CHECK_STR(r.words, "gave up after 2 attempts in 100 ms: 503 (attempts)");
    CHECK_INT(status_of(&r), 503);
    drop(&r);
    make(&r, nobody());
    perform(&r, STEADY, WITH(0));
    CHECK_INT(r.code, CURLE_COULDNT_CONNECT);
    CHECK_STR(r.words,
              "gave up after 3 attempts in 200 ms: refused (attempts)");
    CHECK_INT(r.report.last.code, ECONNREFUSED);
    drop(&r);
}

TEST(curl_multi, keeps_a_key_over_the_attempts_and_needs_one_for_a_post)
{
    request r;

    open_loop(BY_TIMER);
    post(&r, sink_start("--reply 503x2,200,503"), "order");
    perform(&r, STEADY, WITH(.make_key = true));
    CHECK_STR(r.words, "done after 3 attempts in 200 ms");
    r.ended = 0; // the same transfer and handle, anew
    perform(&r, STEADY, WITH(0));
    CHECK_STR(r.words, "gave up after 1 attempt: 503 (not-idempotent)");
    CHECK_STR(sink_stop(),
              "POST / 503 5 a\nPOST / 503 5 a\nPOST / 200 5 a\n"
              "POST / 503 5 -\n");
    drop(&r);
}

typedef struct body {
    const char *at;
    const char *all;
} body;

static size_t read_body(char *into, size_t size, size_t count, void *data)
{
    body *b = data;
    size_t most = size * count, length = strnlen(b->at, most);

    memcpy(into, b->at, length);
    b->at += length;
    return length;
}

static int seek_body(void *data, curl_off_t offset, int origin)
{
    body *b = data;

    CHECK(offset == 0 && origin == SEEK_SET);
    b->at = b->all;
    return CURL_SEEKFUNC_OK;
}

static void upload(request *r, const char *url, body *b)
{
    make(r, url);
    curl_easy_setopt(r->easy, CURLOPT_UPLOAD, 1L);
    curl_easy_setopt(r->easy, CURLOPT_READFUNCTION, read_body);
    curl_easy_setopt(r->easy, CURLOPT_READDATA, b);
    curl_easy_setopt(r->easy, CURLOPT_INFILESIZE, (long)strlen(b->all));
}

TEST(curl_multi, sends_a_body_again_from_its_begin_or_not_at_all)
{
    static const char text[] = "hello";
    body b = {text, text};
    request r;

    open_loop(BY_TIMER);
    upload(&r, sink_start("--reply 503,200,503"), &b);
    perform(&r, STEADY, WITH(.seek = seek_body, .seek_data = &b));
    CHECK_STR(r.words, "done after 2 attempts in 100 ms");
    b.at = text;
    r.ended = 0;
    perform(&r, STEADY, WITH(0));
    CHECK_INT(r.report.why, STG_WHY_INVALID);
    CHECK_STR(sink_stop(), "PUT / 503 5 -\nPUT / 200 5 -\nPUT / 503 5 -\n");
    drop(&r);
}

TEST(curl_multi, takes_back_what_was_written_of_an_attempt_that_failed)
{
    static const char *const answers[] = {
        "HTTP/1.1 503 No\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbusy",
        "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nfive!",
        "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nfive!nine"};
    request r;

    open_loop(BY_TIMER);
    make(&r, canned_start(answers, 3));
    perform(&r, STEADY, WITH(.reset = take_back, .reset_data = &r));
    CHECK_STR(r.words, "done after 3 attempts in 200 ms");
    CHECK_INT(r.resets, 2);
    CHECK_INT(r.answered, 9);
    canned_stop();
    drop(&r);
}

TEST(curl_multi, has_one_request_in_an_attempt)
{
    request r;

    open_loop(BY_TIMER);
    post(&r, sink_start("--reply 200,reset,200"), "order");
    perform(&r, STEADY, WITH(0));
    r.ended = 0;
    perform(&r, STEADY, WITH(0)); // on the connection of the one before
    CHECK_INT(r.code, CURLE_GOT_NOTHING);
    CHECK_STR(r.words, "gave up after 1 attempt: reset (not-idempotent)");
    CHECK_STR(sink_stop(), "POST / 200 5 -\nPOST / reset 5 -\n");
    drop(&r);
}

TEST(curl_multi, leaves_the_handle_as_it_was)
{
    request r;

    open_loop(BY_TIMER);
    post(&r, sink_start("--reply 503"), "order");
    perform(&r, STEADY "attempt-timeout=1s", WITH(.key = "order-17"));
    CHECK_INT(curl_easy_perform(r.easy), CURLE_OK);
    CHECK_STR(sink_stop(),
              "POST / 503 5 a\nPOST / 503 5 a\nPOST / 503 5 a\n"
              "POST / 503 5 -\n");
    drop(&r);
}

/* -- many */

enum { MANY = 1000 };

/* Half of them are answered 503 first; some are cancelled on the way. */
TEST(curl_multi, has_a_thousand_transfers_at_once)
{
    request *all = calloc(MANY, sizeof *all);
    unsigned succeeded = 0, cancelled = 0, attempts = 0;
    const char *url;

    CHECK(all != NULL);
    open_loop(BY_TIMER);
    curl_multi_setopt(loop.curl, CURLMOPT_MAX_TOTAL_CONNECTIONS, 100L);
    url = sink_start("--reply 503x500,200");
    for (int i = 0; i < MANY; i++) {
        make(&all[i], url);
        add(&all[i], STEADY "attempts=9", WITH(0));
    }
    CHECK_INT(stg_curl_multi_running(&loop.multi), MANY);
    turn();
    for (int i = 0; i < MANY; i += 10)
        stg_curl_multi_cancel(&all[i].transfer);
    run();
    for (int i = 0; i < MANY; i++) {
        CHECK_INT(all[i].ended, 1);
        succeeded += all[i].report.next == STG_DONE;
        cancelled += all[i].report.why == STG_WHY_CANCELLED;
        attempts += all[i].report.attempts;
        drop(&all[i]);
    }
    CHECK_INT(cancelled, MANY / 10);
    CHECK_INT(succeeded, MANY - MANY / 10);
    CHECK(attempts >= succeeded + 500);
    free(all);
}

static void free_all(stg_curl_transfer *t, CURLcode code,
                     const stg_report *report)
{
    request *r = t->data;

    CHECK(code == CURLE_OK && report->next == STG_DONE);
    drop(r);
    free(r);
}

TEST(curl_multi, lets_go_of_what_has_ended)
{
    static stg_policy policy;
    const char *url = sink_start("--reply 503x7,200");

    policy = policy_of(STEADY "attempts=9");
    open_loop(BY_TIMER);
    for (int i = 0; i < 20; i++) {
        request *r = malloc(sizeof *r);

        CHECK(r != NULL);
        make(r, url);
        CHECK(stg_curl_multi_add(&loop.multi, &r->transfer, r->easy, &policy,
                                 WITH(.with.env = &world.env),
                                 free_all) == STG_OK);
    }
    run();
    CHECK_INT(stg_curl_multi_running(&loop.multi), 0);
}

static unsigned links;

static void add_again(stg_curl_transfer *t, CURLcode code,
                      const stg_report *report)
{
    request *r = t->data;

    done(t, code, report);
    CHECK(stg_curl_multi_read(&loop.multi) == NULL);
    if (++links < 5)
        CHECK_INT(stg_curl_multi_add(&loop.multi, t, r->easy,
                                     t->op.retry.policy,
                                     WITH(.with.env = &world.env), add_again),
                  STG_OK);
}

TEST(curl_multi, can_begin_the_next_where_one_has_ended)
{
    static stg_policy policy;
    request r;

    links = 0;
    policy = policy_of(STEADY);
    open_loop(BY_ASKING);
    make(&r, sink_start(""));
    CHECK(stg_curl_multi_add(&loop.multi, &r.transfer, r.easy, &policy,
                             WITH(.with.env = &world.env),
                             add_again) == STG_OK);
    run();
    CHECK_INT(r.ended, 5);
    drop(&r);
}

TEST(curl_multi, leaves_other_handles_of_the_loop_to_the_caller)
{
    request r, other;

    open_loop(BY_TIMER);
    make(&r, sink_start("--reply 503x2,200"));
    make(&other, nobody());
    CHECK(curl_multi_add_handle(loop.curl, other.easy) == CURLM_OK);
    perform(&r, STEADY "attempts=4", WITH(0));
    CHECK_INT(r.report.next, STG_DONE);
    while (loop.others == 0)
        turn();
    CHECK_INT(loop.others, 1);
    CHECK_INT(other.ended, 0);
    drop(&r);
    drop(&other);
}

/* -- time */

TEST(curl_multi, ends_an_attempt_that_takes_too_long)
{
    request r;

    open_loop(BY_TIMER);
    make(&r, sink_start("--reply hang,200"));
    perform(&r, STEADY "attempt-timeout=50ms", WITH(0));
    CHECK_STR(r.words, "done after 2 attempts in 100 ms");
    CHECK_INT(r.report.last.fault, STG_FAULT_TIMEOUT);
    drop(&r);
}

TEST(curl_multi, ends_an_attempt_at_the_deadline)
{
    stg_ns begun_at = now();
    request r;

    open_loop(BY_ASKING);
    make(&r, sink_start("--reply hang"));
    add_real(&r, STEADY "deadline=150ms", WITH(0));
    run();
    CHECK_INT(r.code, CURLE_OPERATION_TIMEDOUT);
    CHECK_INT(r.report.why, STG_WHY_DEADLINE);
    CHECK(r.report.took >= 150 * STG_MS);
    CHECK(now() - begun_at < STG_MIN);
    drop(&r);
}

/* Two at once on real time: the long wait of one does not hold up the other. */
TEST(curl_multi, says_how_long_the_loop_may_wait)
{
    request slow, quick;
    stg_ns begun_at = now();
    int ms;

    for (loop_kind kind = BY_POLL; kind <= BY_TIMER; kind++) {
        open_loop(kind);
        CHECK_INT(stg_curl_multi_timeout(&loop.multi, -1), -1);
        CHECK_INT(stg_curl_multi_timeout(&loop.multi, 70), 70);
        make(&slow, nobody());
        make(&quick, nobody());
        add_real(&slow, "fixed base=1h jitter=none deadline=none", WITH(0));
        add_real(&quick, "fixed base=20ms jitter=none", WITH(0));
        CHECK_INT(stg_curl_multi_timeout(&loop.multi, -1), 0);
        while (quick.ended == 0)
            turn();
        CHECK_INT(slow.ended, 0);
        CHECK_STR(quick.words + strlen(quick.words) - 20,
                  ": refused (attempts)");
        while (stg_curl_multi_timeout(&loop.multi, -1) < 3000000)
            turn();
        ms = stg_curl_multi_timeout(&loop.multi, -1);
        CHECK(ms <= 3600000);
        CHECK_INT(stg_curl_multi_timeout(&loop.multi, 70), 70);
        if (kind == BY_TIMER)
            CHECK(loop.fires_at > begun_at + 3000 * STG_S);
        stg_curl_multi_close(&loop.multi);
        CHECK_INT(slow.report.why, STG_WHY_CANCELLED);
        CHECK_INT(slow.code, CURLE_COULDNT_CONNECT);
        drop(&slow);
        drop(&quick);
    }
    CHECK(now() - begun_at < STG_MIN);
}

/* libcurl does not say that a time-out was its last one. */
TEST(curl_multi, lets_the_loop_sleep_while_nothing_happens)
{
    for (loop_kind kind = BY_ASKING; kind <= BY_TIMER; kind++) {
        request hanging, alarm;
        unsigned turns = 0;

        open_loop(kind);
        make(&hanging, sink_start("--reply 200,hang"));
        add_real(&hanging, "none deadline=none", WITH(0));
        run();
        make(&alarm, nobody());
        add_real(&alarm, "fixed base=100ms jitter=none attempts=2", WITH(0));
        while (alarm.transfer.op.last.fault == STG_FAULT_NONE)
            turn();
        // On the same connection, so that libcurl has no time-out of its own.
        add_real(&hanging, "none deadline=none", WITH(0));
        while (alarm.ended == 0) {
            turn();
            turns++;
        }
        CHECK_INT(hanging.ended, 1);
        CHECK(turns < 30);
        close_loop();
        drop(&hanging);
        drop(&alarm);
    }
}

/* As libuv's does, whose loop has its own idea of what time it is. */
TEST(curl_multi, does_not_mind_a_timer_that_fires_early)
{
    request r;

    open_loop(BY_TIMER);
    loop.is_early = true;
    make(&r, nobody());
    add_real(&r, "fixed base=30ms jitter=none", WITH(0));
    run();
    CHECK_STR(r.words + strlen(r.words) - 20, ": refused (attempts)");
    CHECK(r.report.waited >= 60 * STG_MS);
    drop(&r);
}

/* -- cancelled */

TEST(curl_multi, can_be_cancelled_in_an_attempt_and_in_a_wait)
{
    request hanging, waiting, unbegun;

    open_loop(BY_TIMER);
    make(&hanging, silent_start("http"));
    make(&waiting, nobody());
    make(&unbegun, nobody());
    add_real(&hanging, STEADY, WITH(0));
    add_real(&waiting, "fixed base=1h deadline=none", WITH(0));
    while (waiting.transfer.op.retry.attempts == 0 ||
           waiting.transfer.op.decision.next != STG_WAIT)
        turn();
    add_real(&unbegun, STEADY, WITH(0));
    stg_curl_multi_cancel(&hanging.transfer);
    stg_curl_multi_cancel(&waiting.transfer);
    stg_curl_multi_cancel(&unbegun.transfer);
    CHECK_INT(hanging.ended + waiting.ended + unbegun.ended, 0);
    run();
    CHECK_INT(hanging.report.why, STG_WHY_CANCELLED);
    CHECK_INT(hanging.code, CURLE_ABORTED_BY_CALLBACK);
    CHECK_INT(hanging.report.attempts, 1);
    CHECK_INT(waiting.report.why, STG_WHY_CANCELLED);
    CHECK_INT(waiting.code, CURLE_COULDNT_CONNECT);
    CHECK_INT(unbegun.report.why, STG_WHY_CANCELLED);
    CHECK_INT(unbegun.report.attempts, 0);
    CHECK_INT(hanging.ended + waiting.ended + unbegun.ended, 3);
    stg_curl_multi_cancel(&hanging.transfer); // which has ended
    drop(&hanging);
    drop(&waiting);
    drop(&unbegun);
}

TEST(curl_multi, can_be_cancelled_from_inside_of_a_callback_of_libcurl)
{
    static const char *const answers[] = {
        "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\nstop"};
    request r, other;

    open_loop(BY_TIMER);
    make(&other, silent_start("http"));
    make(&r, canned_start(answers, 1));
    r.cancels = &other.transfer;
    add_real(&other, STEADY, WITH(0));
    add_real(&r, STEADY, WITH(0));
    run();
    CHECK_INT(r.report.next, STG_DONE);
    CHECK_INT(other.report.why, STG_WHY_CANCELLED);
    canned_stop();
    drop(&r);
    drop(&other);
}

static stg_cancel stop;

static void *stop_later(void *unused)
{
    (void)unused;
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    stg_cancel_set(&stop);
    return NULL;
}

TEST(curl_multi, is_ended_by_a_flag_that_another_thread_sets)
{
    for (loop_kind kind = BY_POLL; kind <= BY_TIMER; kind++) {
        stg_ns begun_at = now();
        request hanging, waiting;
        pthread_t thread;

        stop = (stg_cancel){0};
        open_loop(kind);
        make(&hanging, silent_start("http"));
        make(&waiting, nobody());
        add_real(&hanging, STEADY, WITH(.with.cancel = &stop));
        add_real(&waiting, "fixed base=1h deadline=none",
                 WITH(.with.cancel = &stop));
        CHECK(pthread_create(&thread, NULL, stop_later, NULL) == 0);
        run();
        CHECK_INT(hanging.report.why, STG_WHY_CANCELLED);
        CHECK_INT(waiting.report.why, STG_WHY_CANCELLED);
        CHECK(now() - begun_at < STG_MIN);
        pthread_join(thread, NULL);
        drop(&hanging);
        drop(&waiting);
    }
}

static void refuse_another(stg_curl_transfer *t, CURLcode code,
                           const stg_report *report)
{
    request late;

    done(t, code, report);
    make(&late, nobody());
    CHECK_INT(add_on(&late, STEADY, WITH(0), NULL), STG_INVALID);
    CHECK_STR(late.transfer.report.flaw, "the stg_curl_multi is being closed");
    drop(&late);
}

TEST(curl_multi, ends_all_when_it_is_closed)
{
    static stg_policy policy;
    request all[5];

    policy = policy_of(STEADY);
    open_loop(BY_TIMER);
    for (int i = 0; i < 5; i++) {
        make(&all[i], silent_start("http"));
        CHECK(stg_curl_multi_add(&loop.multi, &all[i].transfer, all[i].easy,
                                 &policy, NULL, refuse_another) == STG_OK);
        if (i == 2)
            turn();
    }
    stg_curl_multi_close(&loop.multi);
    CHECK_INT(stg_curl_multi_running(&loop.multi), 0);
    CHECK_U64(loop.fires_at, STG_NEVER);
    for (int i = 0; i < 5; i++) {
        CHECK_INT(all[i].ended, 1);
        CHECK_INT(all[i].report.why, STG_WHY_CANCELLED);
        drop(&all[i]);
    }
}

/* -- with others */

TEST(curl_multi, asks_the_peers_breaker_and_budget)
{
    stg_policy policy = policy_of("attempts=1 breaker=1:30s");
    stg_peer peer = peer_of(&policy), poor;
    request r;

    open_loop(BY_TIMER);
    make(&r, sink_start("--reply 503"));
    perform(&r, "attempts=1 breaker=1:30s", WITH(.with.peer = &peer));
    CHECK_INT(r.code, CURLE_OK);
    r.ended = 0;
    perform(&r, "attempts=1 breaker=1:30s", WITH(.with.peer = &peer));
    CHECK_INT(r.code, CURLE_ABORTED_BY_CALLBACK);
    CHECK_INT(r.report.why, STG_WHY_CIRCUIT_OPEN);
    CHECK_STR(sink_stop(), "GET / 503 0 -\n");
    drop(&r);

    policy = policy_of(STEADY "budget=1:0.001/s");
    poor = peer_of(&policy);
    make(&r, nobody());
    perform(&r, STEADY "budget=1:0.001/s", WITH(.with.peer = &poor));
    CHECK_STR(r.words, "gave up after 2 attempts in 100 ms: refused (budget)");
    drop(&r);
}

/* Each waits for the rate of all. */
TEST(curl_multi, keeps_to_the_rate_of_its_peer)
{
    stg_policy policy = policy_of("none rate=10/s");
    stg_peer peer = peer_of(&policy);
    request all[4];
    const char *url = sink_start("");

    open_loop(BY_TIMER);
    for (int i = 0; i < 4; i++) {
        make(&all[i], url);
        add(&all[i], "none rate=10/s", WITH(.with.peer = &peer));
    }
    run();
    CHECK_U64(world.now, 300 * STG_MS);
    for (int i = 0; i < 4; i++) {
        CHECK_INT(all[i].report.next, STG_DONE);
        drop(&all[i]);
    }
}

TEST(curl_multi, is_nested_in_its_parent)
{
    stg_policy policy = policy_of("fixed base=0 attempts=2");
    stg_operation outer;
    request r;

    open_loop(BY_TIMER);
    CHECK(stg_operation_begin(&outer, &policy, NULL) == STG_OK);
    stg_operation_admit(&outer, 0);
    make(&r, sink_start("--reply 503"));
    perform(&r, "fixed base=0 attempts=2", WITH(.with.parent = &outer.retry));
    CHECK_STR(r.words, "gave up after 1 attempt: 503 (nested)");
    CHECK_STR(sink_stop(), "GET / 503 0 -\n");
    drop(&r);
}

/* -- refused */

static bool refuse_to_sleep(void *ctx, stg_ns until_at,
                            const stg_cancel *cancel)
{
    (void)ctx;
    (void)until_at;
    (void)cancel;
    return false;
}

TEST(curl_multi, ends_as_cancelled_where_a_sleep_breaks_off)
{
    request r;

    open_loop(BY_TIMER);
    world.env.sleep = refuse_to_sleep;
    make(&r, nobody());
    perform(&r, STEADY, WITH(0));
    CHECK_STR(r.words, "gave up after 1 attempt: refused (cancelled)");
    drop(&r);
}

static void check_refused(request *r, const char *text, stg_curl_with *with,
                          const char *flaw)
{
    CHECK_INT(add_on(r, text, with, &world.env), STG_INVALID);
    CHECK_INT(r->transfer.report.why, STG_WHY_INVALID);
    CHECK_STR(r->transfer.report.flaw, flaw);
    stg_curl_multi_cancel(&r->transfer);
    CHECK_INT(r->ended, 0);
}

/* Out of memory is a failure that may pass, and is retried: it is not a mistake
 * of the caller's, and nothing was sent. */
TEST(curl_multi, tries_again_when_libcurl_has_no_memory)
{
    request r;

    open_loop(BY_TIMER);
    post(&r, sink_start(""), "a body");
    lacks = 2;
    perform(&r, STEADY, WITH(0));
    CHECK_STR(r.words, "done after 3 attempts in 200 ms");
    CHECK_STR(sink_stop(), "POST / 200 6 -\n");
    drop(&r);
    make(&r, nobody());
    lacks = 9;
    perform(&r, STEADY "retry=503", WITH(0));
    lacks = 0;
    CHECK_STR(r.words, "gave up after 1 attempt: no-buffers (permanent)");
    CHECK_INT(r.code, CURLE_OUT_OF_MEMORY);
    drop(&r);
}

TEST(curl_multi, refuses_what_cannot_be_used)
{
    request r, again, elsewhere;
    stg_policy policy = policy_of(STEADY);
    CURLM *other = curl_multi_init();

    open_loop(BY_TIMER);
    CHECK_INT(stg_curl_multi_init(&loop.multi, NULL, NULL, NULL), STG_INVALID);
    make(&r, nobody());
    check_refused(&r, STEADY, WITH(0),
                  "the stg_curl_multi is NULL or was not begun, or done is "
                  "NULL");
    open_loop(BY_TIMER);
    CHECK_INT(stg_curl_multi_add(&loop.multi, &r.transfer, r.easy, &policy,
                                 NULL, NULL),
              STG_INVALID);
    CHECK_INT(
        stg_curl_multi_add(&loop.multi, NULL, r.easy, &policy, NULL, done),
        STG_INVALID);
    check_refused(&r, STEADY, WITH(.key = "two words"),
                  "the key is no 1 to 255 characters of visible ASCII");
    add(&r, STEADY, WITH(0));

    again = (request){.easy = r.easy};
    check_refused(&again, STEADY, WITH(0),
                  "the handle is in this stg_curl_multi already");
    make(&elsewhere, nobody());
    CHECK_INT(add_on(&elsewhere, STEADY, WITH(0), NULL), STG_INVALID);
    CHECK_STR(elsewhere.transfer.report.flaw,
              "with.env is not that of the other transfers");
    CHECK(curl_multi_add_handle(other, elsewhere.easy) == CURLM_OK);
    elsewhere.transfer.data = &elsewhere;
    add(&elsewhere, STEADY, WITH(0));
    run();
    CHECK_INT(r.report.attempts, 3);
    CHECK_INT(elsewhere.code, CURLE_BAD_FUNCTION_ARGUMENT);
    CHECK_STR(elsewhere.report.flaw, curl_multi_strerror(CURLM_ADDED_ALREADY));
    curl_multi_remove_handle(other, elsewhere.easy);
    curl_multi_cleanup(other);
    drop(&r);
    drop(&elsewhere);
}
