/* libcurl's transfers against real peers that fail; the waits between them take
 * virtual time. */
#include <stagger/curl.h>

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <stagger/call.h>

#include "tests/adapters/sink.h"
#include "tests/adapters/story.h"
#include "tests/harness.h"

/* -- a transfer, and what became of it */

static CURL *easy;
static story world;
static stg_report report;
static char answer[4096]; /* what the write function got */

static size_t keep_answer(char *data, size_t size, size_t count, void *unused)
{
    size_t length = strlen(answer);

    (void)unused;
    CHECK(length + size * count < sizeof answer);
    memcpy(answer + length, data, size * count);
    answer[length + size * count] = '\0';
    return size * count;
}

/* A new handle for such a URL. */
static CURL *open_url(const char *url)
{
    curl_easy_cleanup(easy);
    easy = curl_easy_init();
    CHECK(easy != NULL);
    answer[0] = '\0';
    curl_easy_setopt(easy, CURLOPT_URL, url);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, keep_answer);
    curl_easy_setopt(easy, CURLOPT_NOPROXY, "*");
    return easy;
}

__attribute__((destructor)) static void close_easy(void)
{
    curl_easy_cleanup(easy);
}

/* Of the handle, under such a policy, on virtual time. */
static CURLcode perform(const char *text, stg_curl_with with)
{
    stg_policy policy = policy_of(text);

    story_begin(&world, "");
    with.with.env = &world.env;
    return stg_curl_perform(easy, &policy, &with, &report);
}

#define WITH(...) ((stg_curl_with){__VA_ARGS__})

static const char *words(void)
{
    static char text[STG_REPORT_TEXT_MAX];

    return stg_report_text(&report, text);
}

static long status(void)
{
    long value = -1;

    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &value);
    return value;
}

static double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

#define STEADY "fixed base=100ms jitter=none "

/* -- answers */

TEST(curl, transfers_until_it_succeeds)
{
    open_url(sink_start("--reply 503x2,200"));
    CHECK_INT(perform(STEADY, WITH(0)), CURLE_OK);
    CHECK_STR(words(), "done after 3 attempts in 200 ms");
    CHECK_INT(status(), 200);
    CHECK_STR(sink_stop(), "GET / 503 0 -\nGET / 503 0 -\nGET / 200 0 -\n");
}

TEST(curl, does_what_curl_easy_perform_does_when_that_succeeds)
{
    open_url(sink_start(""));
    CHECK_INT(
        stg_curl_perform(easy, &(stg_policy){.attempts_max = 0}, NULL, NULL),
        CURLE_BAD_FUNCTION_ARGUMENT);
    CHECK_INT(perform("none", WITH(0)), CURLE_OK);
    CHECK_STR(words(), "done after 1 attempt");
    CHECK_STR(sink_stop(), "GET / 200 0 -\n");
}

TEST(curl, returns_the_last_answer_when_it_gives_up)
{
    open_url(sink_start("--reply 503"));
    CHECK_INT(perform(STEADY "attempts=2", WITH(0)), CURLE_OK);
    CHECK_STR(words(), "gave up after 2 attempts in 100 ms: 503 (attempts)");
    CHECK_INT(status(), 503);
    curl_easy_setopt(easy, CURLOPT_FAILONERROR, 1L);
    CHECK_INT(perform(STEADY "attempts=2", WITH(0)), CURLE_HTTP_RETURNED_ERROR);
    CHECK_STR(words(), "gave up after 2 attempts in 100 ms: 503 (attempts)");
    open_url(sink_start("--reply 404"));
    CHECK_INT(perform(STEADY, WITH(0)), CURLE_OK);
    CHECK_STR(words(), "gave up after 1 attempt: 404 (permanent)");
}

static bool is_told(void *ctx, const stg_report *r)
{
    return stg_report_text(r, ctx) != NULL;
}

/* The code and the handle are those of the last transfer. */
TEST(curl, is_answered_by_its_fallback_when_it_gives_up)
{
    char told[STG_REPORT_TEXT_MAX] = "";
    stg_fallback fallback = {.answer = is_told, .ctx = told};

    open_url(sink_start("--reply 503x2,200"));
    CHECK_INT(perform(STEADY "attempts=2", WITH(.with.fallback = &fallback)),
              CURLE_OK);
    CHECK_STR(told, "gave up after 2 attempts in 100 ms: 503 (attempts)");
    CHECK(report.fell_back);
    CHECK_INT(report.next, STG_GIVE_UP);
    CHECK_INT(status(), 503);
    CHECK_INT(perform(STEADY, WITH(.with.fallback = &fallback)), CURLE_OK);
    CHECK(!report.fell_back);
    CHECK_INT(status(), 200);
}

TEST(curl, waits_as_long_as_the_server_asks)
{
    open_url(sink_start("--reply 503,429,200 --retry-after 7"));
    CHECK_INT(perform(STEADY, WITH(0)), CURLE_OK);
    CHECK_STR(words(), "done after 3 attempts in 14 s");
    open_url(sink_start("--reply 503,200 --retry-after 7"));
    curl_easy_setopt(easy, CURLOPT_FAILONERROR, 1L);
    CHECK_INT(perform(STEADY, WITH(0)), CURLE_OK);
    CHECK_STR(words(), "done after 2 attempts in 7 s");
    open_url(sink_start("--reply 503,200 --retry-after date:7"));
    CHECK_INT(perform(STEADY, WITH(0)), CURLE_OK);
    CHECK(report.waited >= 6 * STG_S && report.waited <= 8 * STG_S);
}

TEST(curl, reads_a_delay_in_milliseconds_against_the_answers_own_clock)
{
    static const char *const answers[] = {
        "HTTP/1.1 503 No\r\nretry-after-ms: 350\r\nContent-Length: 0\r\n"
        "Connection: close\r\n\r\n",
        "HTTP/1.1 503 No\r\nRetry-After: Sun, 06 Nov 1994 08:49:40 GMT\r\n"
        "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\nContent-Length: 0\r\n"
        "Connection: close\r\n\r\n",
        "HTTP/1.1 204 Done\r\nConnection: close\r\n\r\n",
    };

    open_url(canned_start(answers, 3));
    CHECK_INT(perform(STEADY, WITH(0)), CURLE_OK);
    CHECK_U64(report.waited, 3350 * STG_MS);
    canned_stop();
}

TEST(curl, waits_for_the_reset_of_a_rate_limit)
{
    static const char *const answers[] = {
        "HTTP/1.1 429 No\r\nX-RateLimit-Remaining: 0\r\n"
        "X-RateLimit-Reset: 1372700903\r\n"
        "Date: Mon, 01 Jul 2013 17:47:53 GMT\r\nContent-Length: 0\r\n"
        "Connection: close\r\n\r\n",
        ("HTTP/1.1 503 No\r\nRateLimit: \"a\";r=0;t=7\r\n"
         "Content-Length: 0\r\nConnection: close\r\n\r\n"),
        "HTTP/1.1 204 Done\r\nConnection: close\r\n\r\n",
    };

    open_url(canned_start(answers, 3));
    CHECK_INT(perform(STEADY, WITH(0)), CURLE_OK);
    CHECK_U64(report.waited, 37 * STG_S);
    canned_stop();
}

/* -- methods and keys */

static void post(const char *url, const char *body)
{
    open_url(url);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, body);
}

TEST(curl, does_not_repeat_a_post_that_has_no_key)
{
    post(sink_start("--reply 503,200"), "order");
    CHECK_INT(perform(STEADY, WITH(0)), CURLE_OK);
    CHECK_STR(words(), "gave up after 1 attempt: 503 (not-idempotent)");
    CHECK_STR(sink_stop(), "POST / 503 5 -\n");
    post(sink_start("--reply 503,200"), "order");
    CHECK_INT(perform(STEADY "unsafe=yes", WITH(0)), CURLE_OK);
    CHECK_STR(sink_stop(), "POST / 503 5 -\nPOST / 200 5 -\n");
}

TEST(curl, knows_the_method_of_any_request)
{
    open_url(sink_start("--reply 503x3,200"));
    curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, "PATCH");
    CHECK_INT(perform(STEADY, WITH(0)), CURLE_OK);
    CHECK_INT(report.why, STG_WHY_NOT_IDEMPOTENT);
    curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, "DELETE");
    CHECK_INT(perform(STEADY, WITH(0)), CURLE_OK);
    CHECK_INT(report.attempts, 3);
    CHECK_STR(sink_stop(),
              "PATCH / 503 0 -\nDELETE / 503 0 -\n"
              "DELETE / 503 0 -\nDELETE / 200 0 -\n");
}

TEST(curl, believes_a_method_that_it_is_given)
{
    open_url(sink_start("--reply 503"));
    CHECK_INT(perform(STEADY, WITH(.with.method = "POST")), CURLE_OK);
    CHECK_INT(report.why, STG_WHY_NOT_IDEMPOTENT);
}

TEST(curl, makes_a_key_that_stays_the_same_over_the_attempts)
{
    post(sink_start("--reply 503x2,200"), "order");
    CHECK_INT(perform(STEADY, WITH(.make_key = true)), CURLE_OK);
    CHECK_INT(report.next, STG_DONE);
    CHECK_INT(perform(STEADY, WITH(.make_key = true)), CURLE_OK);
    CHECK_INT(curl_easy_perform(easy), CURLE_OK); // and it is gone again
    CHECK_STR(sink_stop(),
              "POST / 503 5 a\nPOST / 503 5 a\nPOST / 200 5 a\n"
              "POST / 503 5 b\nPOST / 503 5 b\nPOST / 200 5 b\n"
              "POST / 503 5 -\n");
}

TEST(curl, sends_the_key_that_it_is_given_beside_the_headers)
{
    static const char *const answers[] = {
        "HTTP/1.1 503 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
        "HTTP/1.1 200 Done\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
    };
    struct curl_slist mine = {.data = (char[]){"Accept: text/plain"}};

    post(canned_start(answers, 2), "order");
    CHECK_INT(perform(STEADY, WITH(.key = "order-17", .headers = &mine)),
              CURLE_OK);
    CHECK_INT(report.attempts, 2);
    canned_stop();
}

TEST(curl, knows_a_key_among_the_headers)
{
    struct curl_slist key = {.data = (char[]){"idempotency-key: order-17"}};
    struct curl_slist other = {.data = (char[]){"Accept: */*"}, .next = &key};
    struct curl_slist empty = {.data = (char[]){"Idempotency-Key:"}};

    post(sink_start("--reply 503,200,503"), "order");
    CHECK_INT(perform(STEADY, WITH(.headers = &other, .key = "unused")),
              CURLE_OK);
    CHECK_INT(curl_easy_perform(easy), CURLE_OK); // they stay
    CHECK_STR(sink_stop(), "POST / 503 5 a\nPOST / 200 5 a\nPOST / 503 5 a\n");
    post(sink_start("--reply 503"), "order");
    CHECK_INT(perform(STEADY, WITH(.headers = &empty)), CURLE_OK);
    CHECK_INT(report.why, STG_WHY_NOT_IDEMPOTENT);
}

TEST(curl, refuses_what_is_no_key_or_no_handle)
{
    static const char *const keys[] = {"", "two words", "a\r\nb", "\xc3\xa9"};
    char longest[STG_CURL_KEY_MAX + 2];

    post(sink_start(""), "order");
    for (unsigned i = 0; i < sizeof keys / sizeof *keys; i++) {
        CHECK_INT(perform(STEADY, WITH(.key = keys[i])),
                  CURLE_BAD_FUNCTION_ARGUMENT);
        CHECK_STR(words(),
                  "refused before the first attempt: the key is no 1 "
                  "to 255 characters of visible ASCII (invalid)");
    }
    memset(longest, 'k', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    CHECK_INT(perform(STEADY, WITH(.key = longest)),
              CURLE_BAD_FUNCTION_ARGUMENT);
    CHECK_INT(perform(STEADY, WITH(.key = longest + 1)), CURLE_OK);
    CHECK_STR(sink_stop(), "POST / 200 5 a\n");
    CHECK_INT(stg_curl_perform(NULL, &(stg_policy){0}, NULL, &report),
              CURLE_BAD_FUNCTION_ARGUMENT);
    CHECK_INT(report.why, STG_WHY_INVALID);
}

/* -- bodies that are sent */

typedef struct body {
    const char *text;
    size_t at;
    bool is_stuck;
} body;

static size_t read_body(char *into, size_t size, size_t count, void *data)
{
    body *b = data;
    size_t left = strlen(b->text) - b->at;

    if (left > size * count)
        left = size * count;
    memcpy(into, b->text + b->at, left);
    b->at += left;
    return left;
}

static int seek_body(void *data, curl_off_t offset, int origin)
{
    body *b = data;

    CHECK(offset == 0 && origin == SEEK_SET);
    b->at = 0;
    return b->is_stuck ? CURL_SEEKFUNC_CANTSEEK : CURL_SEEKFUNC_OK;
}

static void upload(const char *url, body *b)
{
    open_url(url);
    curl_easy_setopt(easy, CURLOPT_UPLOAD, 1L);
    curl_easy_setopt(easy, CURLOPT_READFUNCTION, read_body);
    curl_easy_setopt(easy, CURLOPT_READDATA, b);
    curl_easy_setopt(easy, CURLOPT_INFILESIZE_LARGE,
                     (curl_off_t)strlen(b->text));
}

TEST(curl, sends_a_body_of_a_read_function_again_from_its_begin)
{
    body b = {.text = "hello"};

    upload(sink_start("--reply 503x2,200"), &b);
    CHECK_INT(perform(STEADY, WITH(.seek = seek_body, .seek_data = &b)),
              CURLE_OK);
    CHECK_STR(sink_stop(), "PUT / 503 5 -\nPUT / 503 5 -\nPUT / 200 5 -\n");
}

TEST(curl, does_not_repeat_a_body_that_it_cannot_send_again)
{
    body b = {.text = "hello"}, stuck = {.text = "hello", .is_stuck = true};

    upload(sink_start("--reply 503"), &b);
    CHECK_INT(perform(STEADY, WITH(0)), CURLE_OK);
    CHECK_STR(words(),
              "gave up after 1 attempt: the body comes from a read function, "
              "and there is no seek to send it again (invalid)");
    CHECK_STR(sink_stop(), "PUT / 503 5 -\n");
    upload(sink_start("--reply 503"), &stuck);
    perform(STEADY, WITH(.seek = seek_body, .seek_data = &stuck));
    CHECK_STR(words(),
              "gave up after 1 attempt: seek cannot go back to the "
              "begin of the body (invalid)");
    CHECK_STR(sink_stop(), "PUT / 503 5 -\n");
}

TEST(curl, repeats_an_upload_that_was_not_begun)
{
    body b = {.text = "hello"};

    upload(nobody(), &b);
    CHECK_INT(perform(STEADY, WITH(0)), CURLE_COULDNT_CONNECT);
    CHECK_STR(words(),
              "gave up after 3 attempts in 200 ms: refused (attempts)");
}

TEST(curl, tells_a_body_in_memory_from_one_that_is_read)
{
    body b = {.text = "hello"};

    post(sink_start("--reply 503,200"), "order");
    curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, "PUT");
    CHECK_INT(perform(STEADY, WITH(0)), CURLE_OK);
    CHECK_STR(sink_stop(), "PUT / 503 5 -\nPUT / 200 5 -\n");
    upload(sink_start("--reply 503,200"), &b);
    curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, "POST");
    CHECK_INT(perform(STEADY, WITH(.make_key = true)), CURLE_OK);
    CHECK_INT(report.why, STG_WHY_INVALID);
    b.at = 0;
    CHECK_INT(curl_easy_perform(easy), CURLE_OK); // still a POST
    CHECK_STR(sink_stop(), "POST / 503 5 a\nPOST / 503 5 -\n");
    // A POST of a length that nobody knows.
    b.at = 0;
    open_url(sink_start("--reply 503"));
    curl_easy_setopt(easy, CURLOPT_POST, 1L);
    curl_easy_setopt(easy, CURLOPT_READFUNCTION, read_body);
    curl_easy_setopt(easy, CURLOPT_READDATA, &b);
    CHECK_INT(
        perform(STEADY,
                WITH(.make_key = true,
                     .headers =
                         &(struct curl_slist){
                             .data = (char[]){"Transfer-Encoding: chunked"}})),
        CURLE_OK);
    CHECK_INT(report.why, STG_WHY_INVALID);
    CHECK_STR(sink_stop(), "POST / 503 5 a\n");
}

TEST(curl, sends_the_parts_of_a_form_again)
{
    curl_mime *form;
    curl_mimepart *part;

    open_url(sink_start("--reply 503,200"));
    form = curl_mime_init(easy);
    part = curl_mime_addpart(form);
    curl_mime_name(part, "a");
    curl_mime_data(part, "hello", CURL_ZERO_TERMINATED);
    curl_easy_setopt(easy, CURLOPT_MIMEPOST, form);
    CHECK_INT(perform(STEADY, WITH(.make_key = true)), CURLE_OK);
    CHECK_STR(words(), "done after 2 attempts in 100 ms");
    sink_stop();
    curl_mime_free(form);
}

/* -- bodies that are read */

static void take_back(void *data)
{
    char *text = data;

    text[0] = '\0';
}

#define CUT "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nfive!"
#define FULL "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nfive!nine"
#define BUSY \
    "HTTP/1.1 503 No\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbusy"

TEST(curl, takes_back_what_was_written_of_an_attempt_that_failed)
{
    static const char *const answers[] = {BUSY, CUT, FULL};

    open_url(canned_start(answers, 3));
    CHECK_INT(perform(STEADY, WITH(.reset = take_back, .reset_data = answer)),
              CURLE_OK);
    CHECK_STR(words(), "done after 3 attempts in 200 ms");
    CHECK_STR(answer, "five!nine");
    canned_stop();
}

TEST(curl, does_not_go_on_behind_a_body_that_broke_off)
{
    static const char *const answers[] = {BUSY, CUT};

    open_url(canned_start(answers, 2));
    CHECK_INT(perform(STEADY, WITH(0)), CURLE_PARTIAL_FILE);
    CHECK_STR(words(),
              "gave up after 2 attempts: the answer's body broke off, "
              "and there is no reset to take back what was written of it "
              "(invalid)");
    CHECK_STR(answer, "busyfive!");
    canned_stop();
}

/* -- connections */

/* The first request leaves a connection, which dies in the second one. */
TEST(curl, has_one_request_in_an_attempt)
{
    open_url(sink_start("--reply 200,reset,200"));
    CHECK_INT(curl_easy_perform(easy), CURLE_OK);
    CHECK_INT(curl_easy_perform(easy), CURLE_OK);
    CHECK_STR(sink_stop(), // libcurl sends it twice, and does not say so
              "GET / 200 0 -\nGET / reset 0 -\nGET / 200 0 -\n");

    open_url(sink_start("--reply 200,reset,200"));
    CHECK_INT(perform("none", WITH(0)), CURLE_OK);
    CHECK_INT(perform("none", WITH(0)), CURLE_GOT_NOTHING);
    CHECK_STR(words(), "gave up after 1 attempt: reset (attempts)");
    CHECK_STR(sink_stop(), "GET / 200 0 -\nGET / reset 0 -\n");

    post(sink_start("--reply 200,reset,200"), "order");
    CHECK_INT(perform(STEADY, WITH(0)), CURLE_OK);
    CHECK_INT(perform(STEADY, WITH(0)), CURLE_GOT_NOTHING);
    CHECK_STR(words(), "gave up after 1 attempt: reset (not-idempotent)");
    CHECK_STR(sink_stop(), "POST / 200 5 -\nPOST / reset 5 -\n");

    post(sink_start("--reply 200,reset,200"), "order");
    curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, "PUT");
    CHECK_INT(perform(STEADY, WITH(0)), CURLE_OK);
    CHECK_INT(perform(STEADY, WITH(0)), CURLE_OK);
    CHECK_STR(words(), "done after 2 attempts in 100 ms");
    CHECK_STR(sink_stop(), "PUT / 200 5 -\nPUT / reset 5 -\nPUT / 200 5 -\n");
}

/* The connection that libcurl then tries is refused, and that says nothing of
 * the request on the one before. */
TEST(curl, does_not_take_a_post_for_unsent_that_went_out_before)
{
    static const char *const answers[] = {
        "HTTP/1.1 307 There\r\nLocation: http://127.0.0.1:1/\r\n"
        "Content-Length: 0\r\nConnection: close\r\n\r\n"};

    post(canned_start(answers, 1), "order");
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 1L);
    CHECK_INT(perform(STEADY, WITH(0)), CURLE_COULDNT_CONNECT);
    CHECK_STR(words(), "gave up after 1 attempt: reset (not-idempotent)");
    canned_stop();
}

TEST(curl, follows_redirects_and_answers_to_challenges)
{
    static const char *const answers[] = {
        "HTTP/1.1 302 There\r\nLocation: /b\r\nContent-Length: 0\r\n"
        "Connection: close\r\n\r\n",
        "HTTP/1.1 401 Who\r\nWWW-Authenticate: Digest realm=\"r\", "
        "nonce=\"n\", qop=\"auth\", algorithm=MD5\r\nContent-Length: 0\r\n"
        "Connection: close\r\n\r\n",
        FULL};

    open_url(canned_start(answers, 3));
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 1L);
    curl_easy_setopt(easy, CURLOPT_HTTPAUTH, (long)CURLAUTH_DIGEST);
    curl_easy_setopt(easy, CURLOPT_USERPWD, "me:secret");
    CHECK_INT(perform("none", WITH(0)), CURLE_OK);
    CHECK_STR(words(), "done after 1 attempt");
    CHECK_STR(canned_stop(),
              "GET / HTTP/1.1\nGET /b HTTP/1.1\nGET /b HTTP/1.1\n");
}

TEST(curl, repeats_a_post_that_found_no_connection)
{
    post(nobody(), "order");
    CHECK_INT(perform(STEADY, WITH(0)), CURLE_COULDNT_CONNECT);
    CHECK_STR(words(),
              "gave up after 3 attempts in 200 ms: refused (attempts)");
    CHECK_INT(report.last.code_kind, STG_CODE_ERRNO);
    CHECK_INT(report.last.code, ECONNREFUSED);
}

TEST(curl, says_of_a_post_without_a_key_that_a_reset_may_have_done_it)
{
    post(sink_start("--reply reset"), "order");
    CHECK_INT(perform(STEADY, WITH(0)), CURLE_RECV_ERROR);
    CHECK_STR(words(), "gave up after 1 attempt: reset (not-idempotent)");
    CHECK_STR(sink_stop(), "POST / reset 5 -\n");
}

/* -- time */

TEST(curl, ends_an_attempt_that_takes_too_long)
{
    open_url(sink_start("--reply hang,200"));
    CHECK_INT(perform(STEADY "attempt-timeout=50ms", WITH(0)), CURLE_OK);
    CHECK_STR(words(), "done after 2 attempts in 100 ms");
    CHECK_INT(report.last.fault, STG_FAULT_TIMEOUT);
    post(sink_start("--reply hang"), "order");
    CHECK_INT(perform(STEADY "attempt-timeout=50ms", WITH(0)),
              CURLE_OPERATION_TIMEDOUT);
    CHECK_STR(words(), "gave up after 1 attempt: timeout (not-idempotent)");
}

TEST(curl, ends_an_attempt_at_the_deadline)
{
    stg_policy policy = policy_of(STEADY "deadline=150ms");
    double start = seconds();

    open_url(sink_start("--reply hang"));
    CHECK_INT(stg_curl_perform(easy, &policy, NULL, &report),
              CURLE_OPERATION_TIMEDOUT);
    CHECK_INT(report.why, STG_WHY_DEADLINE);
    CHECK(report.took >= 150 * STG_MS);
    CHECK(seconds() - start < 60);
}

TEST(curl, keeps_to_a_timeout_of_the_callers_own_and_leaves_it)
{
    open_url(sink_start("--reply hang"));
    CHECK_INT(perform(STEADY "attempts=2", WITH(.timeout = 50 * STG_MS)),
              CURLE_OPERATION_TIMEDOUT);
    CHECK_INT(report.attempts, 2);
    CHECK_INT(curl_easy_perform(easy), CURLE_OPERATION_TIMEDOUT);
}

TEST(curl, says_how_far_an_attempt_got_that_timed_out)
{
    post(silent_start("https"), "order");
    CHECK_INT(
        perform("attempts=1 attempt-timeout=80ms retry=tls-timeout", WITH(0)),
        CURLE_OPERATION_TIMEDOUT);
    CHECK_STR(words(), "gave up after 1 attempt: tls-timeout (attempts)");
    CHECK(report.last.unsent);
}

static stg_cancel stop;

static void *stop_later(void *unused)
{
    (void)unused;
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    stg_cancel_set(&stop);
    return NULL;
}

TEST(curl, can_be_cancelled_in_an_attempt)
{
    pthread_t thread;
    double start = seconds();

    stop = (stg_cancel){0};
    open_url(sink_start("--reply hang"));
    CHECK(pthread_create(&thread, NULL, stop_later, NULL) == 0);
    CHECK_INT(perform(STEADY, WITH(.with.cancel = &stop)),
              CURLE_ABORTED_BY_CALLBACK);
    CHECK_INT(report.why, STG_WHY_CANCELLED);
    CHECK_INT(report.attempts, 1);
    CHECK(seconds() - start < 60);
    pthread_join(thread, NULL);
    CHECK_INT(perform(STEADY, WITH(.with.cancel = &stop)),
              CURLE_ABORTED_BY_CALLBACK);
    CHECK_INT(report.attempts, 0);
}

/* -- with others */

TEST(curl, asks_the_peers_breaker)
{
    stg_policy policy = policy_of("attempts=1 breaker=1:30s");
    stg_peer peer = peer_of(&policy);

    open_url(sink_start("--reply 503"));
    CHECK_INT(perform("attempts=1 breaker=1:30s", WITH(.with.peer = &peer)),
              CURLE_OK);
    CHECK_INT(perform("attempts=1 breaker=1:30s", WITH(.with.peer = &peer)),
              CURLE_ABORTED_BY_CALLBACK);
    CHECK_INT(report.why, STG_WHY_CIRCUIT_OPEN);
    CHECK_STR(sink_stop(), "GET / 503 0 -\n");
}

static stg_outcome perform_inside(void *unused)
{
    (void)unused;
    perform("fixed base=0 attempts=2", WITH(0));
    return report.last;
}

TEST(curl, leaves_its_retries_to_a_call_around_it)
{
    stg_policy policy = policy_of("fixed base=0 attempts=2");

    open_url(sink_start("--reply 503"));
    CHECK(!stg_call(&policy, NULL, perform_inside, NULL, NULL));
    CHECK_STR(sink_stop(), // two by the last one, which has it to itself
              "GET / 503 0 -\nGET / 503 0 -\nGET / 503 0 -\n");
}

TEST(curl, counts_what_sends_a_body_by_another_protocol_as_a_post)
{
    body b = {.text = "hello"};

    open_url("file:///dev/null");
    CHECK_INT(perform(STEADY, WITH(0)), CURLE_OK);
    CHECK_STR(words(), "done after 1 attempt");
    open_url("file:///nonexistent/file");
    CHECK_INT(perform(STEADY "retry=error", WITH(0)),
              CURLE_FILE_COULDNT_READ_FILE);
    CHECK_INT(report.attempts, 3);
    upload("file:///nonexistent/file", &b);
    CHECK_INT(perform(STEADY "retry=error", WITH(0)), CURLE_WRITE_ERROR);
    CHECK_STR(words(), "gave up after 1 attempt: error (not-idempotent)");
}
