#include <stagger/retry.h>

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <stagger/cancel.h>
#include <stagger/text.h>

#include "tests/harness.h"
#include "tests/policy_of.h"

static stg_policy parse(const char *text)
{
    stg_policy p;
    stg_error err = {0};

    if (stg_policy_parse(&p, text, &err) != STG_OK)
        CHECK_STR(err.text, "");
    return p;
}

static stg_peer peer_of(const stg_policy *p)
{
    stg_peer peer;

    CHECK_INT(stg_peer_init(&peer, p), STG_OK);
    return peer;
}

static stg_rng zeros(void)
{
    return (stg_rng){{0, 0, 0, 0}};
}

static stg_rng ones(void)
{
    return (stg_rng){{0, 1, 1, UINT64_MAX}};
}

/* -- stories: an operation as a text
 *
 * A script has a word for each attempt: a status, or the name of a fault; then
 * perhaps "@" and a delay in ms, and "+" and how long it took in ms. */

typedef struct story {
    char text[1 << 17];
    size_t length;
    stg_ns now;
} story;

static void say(story *s, const char *format, ...)
{
    va_list arguments;
    int length;

    va_start(arguments, format);
    length = vsnprintf(s->text + s->length, sizeof s->text - s->length, format,
                       arguments);
    va_end(arguments);
    s->length += (size_t)length;
    CHECK(s->length < sizeof s->text);
}

static stg_outcome outcome_of(const char *word)
{
    char name[32];

    sscanf(word, "%31[a-z0-9-]", name);
    if (strcmp(name, "200") == 0)
        return stg_ok();
    if (atoi(name) != 0)
        return stg_answered(atoi(name));
    for (unsigned i = 1; i < STG_FAULT_COUNT; i++)
        if (strcmp(stg_fault_about((stg_fault)i)->name, name) == 0)
            return stg_failed((stg_fault)i);
    CHECK_STR(name, "the name of a fault");
    return stg_ok();
}

/* One attempt of the script; moves *script behind it. */
static stg_outcome play(story *s, const char **script)
{
    char word[64] = "";
    stg_outcome o;
    char *at, *plus;

    sscanf(*script, " %63s", word);
    CHECK(word[0] != '\0'); // the policy wants more attempts than there are
    *script = strstr(*script, word) + strlen(word);
    o = outcome_of(word);
    if ((at = strchr(word, '@')) != NULL)
        o.delay = strtoull(at + 1, NULL, 10) * STG_MS;
    if ((plus = strchr(word, '+')) != NULL)
        s->now += strtoull(plus + 1, NULL, 10) * STG_MS;
    say(s, "%5" PRIu64 " ms  %s  ", s->now / STG_MS, word);
    return o;
}

static void tell(story *s, stg_decision d)
{
    switch (d.next) {
    case STG_WAIT:
        say(s, "wait %" PRIu64 " ms (%s)\n", (d.due_at - s->now) / STG_MS,
            stg_why_name(d.why));
        s->now = d.due_at;
        break;
    case STG_DONE:
        say(s, "done\n");
        break;
    case STG_GIVE_UP:
        say(s, "give up (%s)\n", stg_why_name(d.why));
        break;
    case STG_GO:
        break;
    }
}

/* Runs one operation to its end. rng stays as it is: each draw is the same. */
static const char *run(story *s, const stg_policy *p, const stg_with *with,
                       stg_rng rng, const char *script)
{
    stg_retry r;
    stg_decision d;

    s->length = 0;
    stg_retry_start(&r, p, with, s->now);
    do {
        stg_rng draw = rng;

        d = stg_retry_admit(&r, s->now, &draw);
        if (d.next == STG_GO) {
            stg_outcome o = play(s, &script);

            draw = rng;
            d = stg_retry_step(&r, &o, s->now, &draw);
        } else {
            say(s, "%5" PRIu64 " ms  -  ", s->now / STG_MS);
        }
        tell(s, d);
    } while (d.next == STG_WAIT);
    return s->text;
}

static const char *trace(const char *policy, const char *script)
{
    static story s;
    stg_policy p = parse(policy);

    s.now = 0;
    return run(&s, &p, NULL, ones(), script);
}

/* -- the stories */

TEST(retry, is_done_after_a_success_at_once)
{
    CHECK_TRACE(trace("client", "200"), "    0 ms  200  done\n");
}

TEST(retry, waits_twice_as_long_after_each_failure)
{
    CHECK_TRACE(trace("base=100ms jitter=none attempts=5", "503 503 503 200"),
                "    0 ms  503  wait 100 ms (backoff)\n"
                "  100 ms  503  wait 200 ms (backoff)\n"
                "  300 ms  503  wait 400 ms (backoff)\n"
                "  700 ms  200  done\n");
}

TEST(retry, l4_stops_at_its_attempts)
{
    CHECK_TRACE(trace("fixed base=1s jitter=none attempts=3", "503 503 503"),
                "    0 ms  503  wait 1000 ms (backoff)\n"
                " 1000 ms  503  wait 1000 ms (backoff)\n"
                " 2000 ms  503  give up (attempts)\n");
    CHECK_TRACE(trace("none", "503"), "    0 ms  503  give up (attempts)\n");
}

TEST(retry, gives_up_at_once_what_is_permanent)
{
    CHECK_TRACE(trace("client", "404"), "    0 ms  404  give up (permanent)\n");
    CHECK_TRACE(trace("client", "dns"), "    0 ms  dns  give up (permanent)\n");
    CHECK_TRACE(trace("client never=5xx", "503"),
                "    0 ms  503  give up (permanent)\n");
}

TEST(retry, limits_a_fault_over_the_whole_operation)
{
    const char *policy =
        "fixed base=1s jitter=none attempts=9 once=timeout at-most=2:429";

    CHECK_TRACE(trace(policy, "timeout 429 503 429 503 429"),
                "    0 ms  timeout  wait 1000 ms (backoff)\n"
                " 1000 ms  429  wait 1000 ms (backoff)\n"
                " 2000 ms  503  wait 1000 ms (backoff)\n"
                " 3000 ms  429  wait 1000 ms (backoff)\n"
                " 4000 ms  503  wait 1000 ms (backoff)\n"
                " 5000 ms  429  give up (fault-limit)\n");
    CHECK_TRACE(trace(policy, "timeout 503 timeout"),
                "    0 ms  timeout  wait 1000 ms (backoff)\n"
                " 1000 ms  503  wait 1000 ms (backoff)\n"
                " 2000 ms  timeout  give up (fault-limit)\n");
}

TEST(retry, counts_each_of_eight_limited_rules_by_itself)
{
    const char *policy =
        "base=0 jitter=none attempts=99 retry=none "
        "once=500,501,502,503,504,505,506,507";

    CHECK_TRACE(trace(policy, "500 501 502 503 504 505 506 507 503"),
                "    0 ms  500  wait 0 ms (backoff)\n"
                "    0 ms  501  wait 0 ms (backoff)\n"
                "    0 ms  502  wait 0 ms (backoff)\n"
                "    0 ms  503  wait 0 ms (backoff)\n"
                "    0 ms  504  wait 0 ms (backoff)\n"
                "    0 ms  505  wait 0 ms (backoff)\n"
                "    0 ms  506  wait 0 ms (backoff)\n"
                "    0 ms  507  wait 0 ms (backoff)\n"
                "    0 ms  503  give up (fault-limit)\n");
}

TEST(retry, waits_as_long_as_the_server_asks)
{
    CHECK_TRACE(trace("base=100ms jitter=none attempts=9",
                      "503@500 503@50 503 503@250 200"),
                "    0 ms  503@500  wait 500 ms (server-delay)\n"
                "  500 ms  503@50  wait 200 ms (backoff)\n"
                "  700 ms  503  wait 400 ms (backoff)\n"
                " 1100 ms  503@250  wait 800 ms (backoff)\n"
                " 1900 ms  200  done\n");
}

/* The backoff goes on, however little the server asks for: 51 s in
 * eight waits, and then 30 s each. */
TEST(retry, goes_on_with_its_backoff_whatever_the_server_asks)
{
    static const char *const kinds[] = {"jitter=none", "jitter=full",
                                        "jitter=equal", "jitter=decorrelated"};
    const stg_outcome tiny = {.fault = STG_FAULT_OVERLOAD,
                              .code_kind = STG_CODE_STATUS,
                              .code = 429,
                              .delay = STG_MS};

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        stg_policy p = parse(
            "exponential base=200ms cap=30s deadline=none "
            "attempts=40");
        stg_decision d;
        stg_retry r;
        stg_ns now = 0;

        p.backoff.jitter = (stg_jitter)i;
        stg_retry_start(&r, &p, NULL, now);
        while ((d = stg_retry_admit(&r, now, NULL)).next == STG_GO &&
               (d = stg_retry_step(&r, &tiny, now, NULL)).next == STG_WAIT) {
            CHECK_INT(d.why, STG_WHY_BACKOFF);
            now = d.due_at;
        }
        CHECK_INT(d.why, STG_WHY_ATTEMPTS);
        CHECK_INT(r.attempts, 40);
        if (i < STG_JITTER_DECORRELATED)
            CHECK_U64(now, 981 * STG_S);
        else
            CHECK(now >= 1000 * STG_S);
    }
}

/* In place of longer and shorter waits; n goes on. */
TEST(retry, takes_the_server_at_its_word)
{
    CHECK_TRACE(trace("base=100ms jitter=none attempts=9 retry-after=exact "
                      "retry-after-max=2s",
                      "503@1 429@500 503 503@0 429@9000 200"),
                "    0 ms  503@1  wait 1 ms (server-delay)\n"
                "    1 ms  429@500  wait 500 ms (server-delay)\n"
                "  501 ms  503  wait 400 ms (backoff)\n"
                "  901 ms  503@0  wait 800 ms (backoff)\n"
                " 1701 ms  429@9000  wait 2000 ms (server-delay)\n"
                " 3701 ms  200  done\n");
    CHECK_TRACE(trace("base=100ms jitter=decorrelated attempts=9 "
                      "retry-after=exact",
                      "503@1 503 200"), // u = 1: s went from 300 to 900
                "    0 ms  503@1  wait 1 ms (server-delay)\n"
                "    1 ms  503  wait 900 ms (backoff)\n"
                "  901 ms  200  done\n");
}

/* The second wait, "503  wait 123 ms", where the server asked for the first one. */
static uint64_t second_wait(const char *script)
{
    static story s;
    stg_policy p = parse(
        "base=100ms jitter=decorrelated attempts=9 "
        "retry-after=exact");
    const char *at;
    uint64_t wait = 0;

    s.now = 0;
    at = strstr(run(&s, &p, NULL, stg_rng_seed(7), script), "503  wait ");
    CHECK(at != NULL && sscanf(at, "503  wait %" SCNu64, &wait) == 1);
    return wait;
}

TEST(retry, backs_off_the_same_however_long_the_server_asked)
{
    CHECK_INT(second_wait("503@9000 503 200"), second_wait("503@1 503 200"));
}

TEST(retry, ignores_what_the_server_asks)
{
    CHECK_TRACE(trace("base=100ms jitter=none attempts=9 retry-after=ignore",
                      "503@5000 429@5000 200"),
                "    0 ms  503@5000  wait 100 ms (backoff)\n"
                "  100 ms  429@5000  wait 200 ms (backoff)\n"
                "  300 ms  200  done\n");
}

/* An open breaker is no server: its time is a floor. */
TEST(retry, waits_for_the_reopening_however_servers_are_heard)
{
    static const char *const hows[] = {"floor", "exact", "ignore"};

    for (size_t i = 0; i < 3; i++) {
        char text[96];
        stg_policy p;
        stg_peer peer;
        stg_with with = {.peer = &peer};
        stg_outcome o = stg_answered(503);
        stg_decision d;
        stg_retry r;

        snprintf(text, sizeof text,
                 "base=9s jitter=none retry=any,circuit-open breaker=1:5s "
                 "retry-after=%s",
                 hows[i]);
        p = parse(text);
        stg_peer_init(&peer, &p);
        stg_retry_start(&r, &p, &with, 0);
        stg_retry_admit(&r, 0, NULL);
        d = stg_retry_step(&r, &o, 0, NULL);
        CHECK_U64(d.due_at, 9 * STG_S);
        stg_breaker_report(&peer.breaker, false, STG_BREAKER_FAILURE, 0, 0);
        p.backoff.base = p.backoff.cap = STG_S;
        d = stg_retry_admit(&r, STG_S, NULL); // too early
        CHECK_INT(d.next, STG_WAIT);
        CHECK_INT(d.why, STG_WHY_SERVER_DELAY);
        CHECK_U64(d.due_at / STG_MS, 5000);
    }
}

/* n goes on, whichever the base: the third wait is four bases long. */
TEST(retry, begins_its_waits_where_the_category_of_the_fault_says)
{
    CHECK_TRACE(trace("base=50ms base-for=1s:overload base-for=2ms:connect "
                      "jitter=none attempts=9",
                      "503 429 503 refused 429 200"),
                "    0 ms  503  wait 50 ms (backoff)\n"
                "   50 ms  429  wait 2000 ms (backoff)\n"
                " 2050 ms  503  wait 200 ms (backoff)\n"
                " 2250 ms  refused  wait 16 ms (backoff)\n"
                " 2266 ms  429  wait 16000 ms (backoff)\n"
                "18266 ms  200  done\n");
    CHECK_TRACE(trace("base=50ms base-for=1s:overload jitter=decorrelated "
                      "attempts=9",
                      "429 503 429 200"), // u = 1
                "    0 ms  429  wait 1000 ms (backoff)\n"
                " 1000 ms  503  wait 3000 ms (backoff)\n"
                " 4000 ms  429  wait 9000 ms (backoff)\n"
                "13000 ms  200  done\n");
}

/* With u = 1 a jittered wait is at the end of its window. */
TEST(retry, spreads_what_the_server_asked_upwards)
{
    CHECK_TRACE(trace("base=100ms jitter=full attempts=9",
                      "429@500 429@500 503 429@500 200"),
                "    0 ms  429@500  wait 600 ms (server-delay)\n"
                "  600 ms  429@500  wait 700 ms (server-delay)\n"
                " 1300 ms  503  wait 400 ms (backoff)\n"
                " 1700 ms  429@500  wait 800 ms (backoff)\n"
                " 2500 ms  200  done\n");
}

TEST(retry, cuts_a_server_delay_to_its_maximum)
{
    CHECK_TRACE(trace("fixed base=0 jitter=none retry-after-max=2s "
                      "deadline=none",
                      "503@3600000 200"),
                "    0 ms  503@3600000  wait 2000 ms (server-delay)\n"
                " 2000 ms  200  done\n");
    CHECK_TRACE(
        trace("fixed base=1s jitter=none retry-after-max=0", "503@5000 200"),
        "    0 ms  503@5000  wait 1000 ms (backoff)\n"
        " 1000 ms  200  done\n");
}

TEST(retry, gives_up_at_once_when_the_server_asks_for_too_long)
{
    CHECK_TRACE(trace("client deadline=10s", "503@200000"),
                "    0 ms  503@200000  give up (deadline)\n");
}

TEST(retry, l4_stops_at_its_deadline)
{
    CHECK_TRACE(trace("fixed base=1s jitter=none attempts=9 deadline=3s",
                      "503 503 503"),
                "    0 ms  503  wait 1000 ms (backoff)\n"
                " 1000 ms  503  wait 1000 ms (backoff)\n"
                " 2000 ms  503  give up (deadline)\n");
    CHECK_TRACE(trace("fixed base=1s jitter=none attempts=9 deadline=3001ms",
                      "503 503 503 503"),
                "    0 ms  503  wait 1000 ms (backoff)\n"
                " 1000 ms  503  wait 1000 ms (backoff)\n"
                " 2000 ms  503  wait 1000 ms (backoff)\n"
                " 3000 ms  503  give up (deadline)\n");
    CHECK_TRACE(trace("fixed base=1s jitter=none deadline=3s", "503+5000"),
                " 5000 ms  503+5000  give up (deadline)\n");
}

TEST(retry, is_done_when_it_succeeds_after_the_deadline)
{
    CHECK_TRACE(trace("client deadline=3s", "200+5000"),
                " 5000 ms  200+5000  done\n");
}

TEST(retry, leaves_time_for_the_attempt_that_it_expects)
{
    story s = {.now = 0};
    stg_policy p =
        parse("fixed base=1s jitter=none attempts=9 deadline=3001ms");
    stg_with with = {.expected = STG_S};

    CHECK_TRACE(run(&s, &p, &with, ones(), "503 503 503"),
                "    0 ms  503  wait 1000 ms (backoff)\n"
                " 1000 ms  503  wait 1000 ms (backoff)\n"
                " 2000 ms  503  give up (deadline)\n");
}

TEST(retry, keeps_to_the_earlier_of_two_deadlines)
{
    story s = {.now = 5 * STG_S};
    stg_policy p = parse("fixed base=1s jitter=none attempts=9 deadline=1m");
    stg_with with = {.deadline_at = 7 * STG_S};

    CHECK_TRACE(run(&s, &p, &with, ones(), "503 503"),
                " 5000 ms  503  wait 1000 ms (backoff)\n"
                " 6000 ms  503  give up (deadline)\n");
    s.now = 7 * STG_S;
    CHECK_TRACE(run(&s, &p, &with, ones(), ""),
                " 7000 ms  -  give up (deadline)\n");
    p = parse("fixed base=1s jitter=none attempts=9 deadline=2s");
    with.deadline_at = STG_HOUR;
    CHECK_TRACE(run(&s, &p, &with, ones(), "503 503"),
                " 7000 ms  503  wait 1000 ms (backoff)\n"
                " 8000 ms  503  give up (deadline)\n");
}

TEST(retry, gives_up_when_it_is_woken_after_the_deadline)
{
    stg_policy p = parse("fixed base=1s jitter=none deadline=10s");
    stg_outcome o = stg_answered(503);
    stg_rng rng = zeros();
    stg_retry r;

    stg_retry_start(&r, &p, NULL, 0);
    CHECK_INT(stg_retry_admit(&r, 0, &rng).next, STG_GO);
    CHECK_U64(stg_retry_step(&r, &o, 0, &rng).due_at, STG_S);
    CHECK_INT(stg_retry_admit(&r, 10 * STG_S, &rng).why, STG_WHY_DEADLINE);
    CHECK_INT(r.attempts, 1);
}

TEST(retry, never_waits_until_never)
{
    CHECK_TRACE(trace("exponential base=1s cap=none factor=100 jitter=none "
                      "deadline=none attempts=unlimited",
                      "503 503 503 503 503 503 503"),
                "    0 ms  503  wait 1000 ms (backoff)\n"
                " 1000 ms  503  wait 100000 ms (backoff)\n"
                "101000 ms  503  wait 10000000 ms (backoff)\n"
                "10101000 ms  503  wait 1000000000 ms (backoff)\n"
                "1010101000 ms  503  wait 100000000000 ms (backoff)\n"
                "101010101000 ms  503  wait 10000000000000 ms (backoff)\n"
                "10101010101000 ms  503  give up (deadline)\n");
}

TEST(retry, starts_anew_after_an_attempt_that_ran_long)
{
    const char *policy =
        "base=100ms jitter=none attempts=3 deadline=10s "
        "reset-after=1m once=timeout";

    CHECK_TRACE(trace(policy, "timeout reset reset+60000 timeout reset"),
                "    0 ms  timeout  wait 100 ms (backoff)\n"
                "  100 ms  reset  wait 200 ms (backoff)\n"
                "60300 ms  reset+60000  wait 100 ms (backoff)\n"
                "60400 ms  timeout  wait 200 ms (backoff)\n"
                "60600 ms  reset  give up (attempts)\n");
    CHECK_TRACE(trace(policy, "reset reset reset+5000"),
                "    0 ms  reset  wait 100 ms (backoff)\n"
                "  100 ms  reset  wait 200 ms (backoff)\n"
                " 5300 ms  reset+5000  give up (attempts)\n");
    CHECK_TRACE(trace("attempts=1 reset-after=1s", "reset+999"),
                "  999 ms  reset+999  give up (attempts)\n");
}

TEST(retry, starts_its_decorrelated_waits_anew_too)
{
    const char *policy =
        "base=1s cap=1m jitter=decorrelated attempts=9 "
        "deadline=none reset-after=1h";

    CHECK_TRACE(trace(policy, "503 503 503+3600000 503 200"),
                "    0 ms  503  wait 3000 ms (backoff)\n"
                " 3000 ms  503  wait 9000 ms (backoff)\n"
                "3612000 ms  503+3600000  wait 3000 ms (backoff)\n"
                "3615000 ms  503  wait 9000 ms (backoff)\n"
                "3624000 ms  200  done\n");
}

/* -- reasons */

static stg_why why_of(const char *policy, const stg_with *with,
                      stg_outcome outcome)
{
    stg_policy p = parse(policy);
    stg_rng rng = zeros();
    stg_retry r;
    stg_decision d;

    CHECK_INT(stg_retry_start(&r, &p, with, 0), STG_OK);
    CHECK_INT(stg_retry_admit(&r, 0, &rng).next, STG_GO);
    d = stg_retry_step(&r, &outcome, 0, &rng);
    return d.why;
}

TEST(retry, repeats_a_post_only_with_a_key_or_when_it_was_not_processed)
{
    static const char *const safe[] = {"GET",   "HEAD", "OPTIONS",
                                       "TRACE", "PUT",  "DELETE"};
    static const char *const not_safe[] = {"POST", "PATCH", "get", "", "GETS"};
    static const stg_fault unsent[] = {STG_FAULT_REFUSED,
                                       STG_FAULT_DNS_TEMPORARY,
                                       STG_FAULT_CONNECT_TIMEOUT,
                                       STG_FAULT_DNS,
                                       STG_FAULT_TLS,
                                       STG_FAULT_TLS_TIMEOUT,
                                       STG_FAULT_TLS_HANDSHAKE,
                                       STG_FAULT_EGRESS,
                                       STG_FAULT_NO_FILES,
                                       STG_FAULT_NO_PORTS,
                                       STG_FAULT_NO_BUFFERS,
                                       STG_FAULT_INTERRUPTED};
    stg_outcome flagged = stg_answered(503);

    flagged.unsent = true;
    for (size_t i = 0; i < sizeof safe / sizeof *safe; i++)
        CHECK_INT(
            why_of("client", &(stg_with){.method = safe[i]}, stg_answered(503)),
            STG_WHY_BACKOFF);
    for (size_t i = 0; i < sizeof not_safe / sizeof *not_safe; i++) {
        stg_with with = {.method = not_safe[i]};
        stg_with with_key = {.method = not_safe[i], .has_key = true};

        CHECK_INT(why_of("client", &with, stg_answered(503)),
                  STG_WHY_NOT_IDEMPOTENT);
        CHECK_INT(why_of("client", &with, stg_failed(STG_FAULT_TIMEOUT)),
                  STG_WHY_NOT_IDEMPOTENT);
        CHECK_INT(why_of("client", &with, stg_failed(STG_FAULT_UNREACHABLE)),
                  STG_WHY_NOT_IDEMPOTENT);
        CHECK_INT(why_of("client", &with, stg_answered(408)),
                  STG_WHY_NOT_IDEMPOTENT);
        CHECK_INT(why_of("client", &with_key, stg_answered(503)),
                  STG_WHY_BACKOFF);
        CHECK_INT(why_of("client unsafe=yes", &with, stg_answered(503)),
                  STG_WHY_BACKOFF);
        CHECK_INT(why_of("client", &with, stg_answered(429)), STG_WHY_BACKOFF);
        CHECK_INT(why_of("client", &with, stg_answered(425)), STG_WHY_BACKOFF);
        CHECK_INT(why_of("client", &with, flagged), STG_WHY_BACKOFF);
        for (size_t j = 0; j < sizeof unsent / sizeof *unsent; j++)
            CHECK_INT(why_of("client retry=any,local,egress", &with,
                             stg_failed(unsent[j])),
                      STG_WHY_BACKOFF);
    }
    flagged = stg_answered(408);
    flagged.unsent = true;
    CHECK_INT(why_of("client", &(stg_with){.method = "POST"}, flagged),
              STG_WHY_BACKOFF);
}

/* As an adapter does that learns it in the attempt. */
TEST(retry, looks_at_the_method_when_the_attempt_has_failed)
{
    stg_policy policy = parse("client");
    stg_with with = {.method = NULL};
    stg_rng rng = ones();
    stg_outcome o = stg_answered(503);
    stg_retry r;

    CHECK_INT(stg_retry_start(&r, &policy, &with, 0), STG_OK);
    CHECK_INT(stg_retry_admit(&r, 0, &rng).next, STG_GO);
    with.method = "POST";
    CHECK_INT(stg_retry_step(&r, &o, 0, &rng).why, STG_WHY_NOT_IDEMPOTENT);
}

TEST(retry, believes_an_outcome_that_says_permanent)
{
    stg_outcome o = stg_answered(503);

    o.permanent = true;
    CHECK_INT(why_of("client", NULL, o), STG_WHY_PERMANENT);
}

/* An operation in its first attempt. */
static stg_retry running(const stg_policy *p, const stg_with *with)
{
    stg_retry r;

    CHECK_INT(stg_retry_start(&r, p, with, 0), STG_OK);
    CHECK_INT(stg_retry_admit(&r, 0, NULL).next, STG_GO);
    return r;
}

TEST(retry, makes_one_attempt_inside_another_operation)
{
    stg_policy p = parse("client");
    stg_retry outer = running(&p, NULL);
    stg_with with = {.parent = &outer};

    CHECK_INT(why_of("client", &with, stg_answered(503)), STG_WHY_NESTED);
    CHECK_INT(why_of("client nested=full", &with, stg_answered(503)),
              STG_WHY_BACKOFF);
    CHECK_INT(why_of("client", NULL, stg_answered(503)), STG_WHY_BACKOFF);
}

TEST(retry, retries_what_the_operation_around_it_would_not)
{
    static const char *const unwilling[] = {
        "attempts=1",               // has no attempt left
        "attempts=3 retry=refused", // does not retry that
        "attempts=3 at-most=1:503", // has done so often enough
        "attempts=3 deadline=1ms",  // has no time
        "attempts=3 retry=default", // is a POST
        "attempts=3 retry=default", // has ended
        "attempts=3 retry=default", // is zeroed
    };
    enum { LIMITED = 2, LATE, POST, OVER, ZEROED };
    const stg_with post = {.method = "POST"};

    for (int i = 0; i < 7; i++) {
        stg_policy p = parse(unwilling[i]), own = parse("client");
        stg_retry outer = running(&p, i == POST ? &post : NULL);
        stg_with with = {.parent = &outer};
        stg_retry r = running(&own, &with);
        stg_outcome o = stg_answered(503);

        if (i == LIMITED)
            outer.limited[0] = 1;
        if (i == OVER)
            stg_retry_cancel(&outer, 0);
        if (i == ZEROED)
            outer = (stg_retry){0};
        CHECK_INT(stg_retry_step(&r, &o, STG_MS, NULL).why, STG_WHY_BACKOFF);
    }
}

TEST(retry, leaves_it_to_the_outermost_that_would)
{
    stg_policy p = parse("attempts=3"), last = parse("attempts=1");
    stg_retry outer = running(&p, NULL);
    stg_with inside = {.parent = &outer};
    stg_retry middle = running(&last, &inside);
    stg_with with = {.parent = &middle};

    CHECK_INT(why_of("client", &with, stg_answered(503)), STG_WHY_NESTED);
    outer.attempts = 3;
    CHECK_INT(why_of("client", &with, stg_answered(503)), STG_WHY_BACKOFF);
}

TEST(retry, knows_the_limits_and_the_method_of_the_operation_around_it)
{
    stg_policy p = parse("attempts=9 once=503");
    const stg_with post = {.method = "POST"};
    stg_retry outer = running(&p, NULL);
    stg_with with = {.parent = &outer};
    stg_outcome unsent = stg_answered(503);

    CHECK_INT(why_of("client", &with, stg_answered(503)), STG_WHY_NESTED);
    outer.limited[0] = 1;
    CHECK_INT(why_of("client", &with, stg_answered(503)), STG_WHY_BACKOFF);
    outer = running(&p, &post);
    CHECK_INT(why_of("client", &with, stg_answered(503)), STG_WHY_BACKOFF);
    unsent.unsent = true;
    CHECK_INT(why_of("client", &with, unsent), STG_WHY_NESTED);
}

/* Each reason goes before all that follow it: from a call for which all hold,
 * they are taken away one by one. */
TEST(retry, gives_the_first_reason_that_holds)
{
    stg_policy around = parse("client");
    stg_retry outer = running(&around, NULL);
    stg_cancel cancel = {0};
    stg_with with = {.parent = &outer, .method = "POST", .cancel = &cancel};
    stg_outcome o = stg_answered(503);
    const char *all =
        "attempts=1 deadline=1ms once=503 nested=once budget=none";
    stg_policy p = parse(all);
    stg_rng rng = ones();
    stg_retry r;
    int step;

    o.permanent = true;
    for (step = 0; step < 8; step++) {
        static const stg_why whys[] = {
            STG_WHY_CANCELLED, STG_WHY_PERMANENT,   STG_WHY_NOT_IDEMPOTENT,
            STG_WHY_NESTED,    STG_WHY_FAULT_LIMIT, STG_WHY_ATTEMPTS,
            STG_WHY_DEADLINE,  STG_WHY_BACKOFF};

        stg_retry_start(&r, &p, &with, 0);
        cancel.is_set = 0;
        CHECK_INT(stg_retry_admit(&r, 0, &rng).next, STG_GO);
        cancel.is_set = step < 1;
        r.limited[0] = step < 5;
        o.permanent = step < 2;
        if (step >= 3) {
            with.has_key = true;
            r.flags |= 64; // as stg_retry_start() would have it
        }
        if (step >= 4)
            outer.attempts = 4;
        if (step >= 6)
            p.attempts_max = 2;
        if (step >= 7)
            r.deadline_at = STG_HOUR;
        rng = ones();
        CHECK_INT(stg_retry_step(&r, &o, 0, &rng).why, whys[step]);
    }
}

TEST(retry, asks_the_budget_last_so_that_no_other_refusal_costs_a_token)
{
    static const char *const policies[] = {
        "budget=1:0.001/s attempts=1", "budget=1:0.001/s never=5xx",
        "budget=1:0.001/s deadline=1ms jitter=none",
        "budget=1:0.001/s attempts=2 once=503"};

    for (size_t i = 0; i < 4; i++) {
        stg_policy p = parse(policies[i]);
        stg_peer peer = peer_of(&p);
        story s = {.now = 0};

        if (i == 3) { // one retry is allowed, and paid
            run(&s, &p, &(stg_with){.peer = &peer}, zeros(), "503 503");
            CHECK_U64(stg_budget_left(&peer.budget, s.now), 0);
            continue;
        }
        run(&s, &p, &(stg_with){.peer = &peer}, zeros(), "503");
        CHECK_U64(stg_budget_left(&peer.budget, 0), 1000);
    }
}

/* -- budgets */

TEST(retry, gives_up_when_the_budget_is_empty)
{
    stg_policy p = parse(
        "fixed base=100ms jitter=none attempts=9 "
        "budget=2:0.001/s");
    stg_peer peer = peer_of(&p);
    story s = {.now = 0};

    CHECK_TRACE(run(&s, &p, &(stg_with){.peer = &peer}, ones(), "503 503 503"),
                "    0 ms  503  wait 100 ms (backoff)\n"
                "  100 ms  503  wait 100 ms (backoff)\n"
                "  200 ms  503  give up (budget)\n");
    // It never holds back a first attempt.
    CHECK_TRACE(run(&s, &p, &(stg_with){.peer = &peer}, ones(), "200"),
                "  200 ms  200  done\n");
}

TEST(retry, waits_for_a_token_when_the_policy_says_so)
{
    stg_policy p = parse(
        "fixed base=100ms jitter=none attempts=9 "
        "budget=1:1/s budget-empty=wait deadline=5s");
    stg_peer peer = peer_of(&p);
    story s = {.now = 0};

    CHECK_TRACE(run(&s, &p, &(stg_with){.peer = &peer}, ones(),
                    "503 503 503 503 503 503"),
                "    0 ms  503  wait 100 ms (backoff)\n"
                "  100 ms  503  wait 900 ms (budget)\n"
                " 1000 ms  503  wait 1000 ms (budget)\n"
                " 2000 ms  503  wait 1000 ms (budget)\n"
                " 3000 ms  503  wait 1000 ms (budget)\n"
                " 4000 ms  503  give up (budget)\n"); // at 5 s is too late
}

TEST(retry, gives_up_a_debt_that_would_be_paid_too_late)
{
    stg_policy p = parse(
        "fixed base=100ms jitter=none attempts=9 "
        "budget=ratio:1 budget-empty=wait deadline=5s");
    stg_peer peer = peer_of(&p);
    stg_budget shared;
    stg_with with = {.peer = &peer, .shared_budget = &shared};
    stg_budget_options tokens = {
        .kind = STG_BUDGET_TOKENS, .capacity = 1, .rate = 1};
    stg_outcome o = stg_answered(503);
    stg_rng rng = zeros();
    stg_retry r;

    // The ratio is used up, so it waits; then it grants, and the shared one
    // would not before 1000 s.
    CHECK_INT(stg_budget_init(&shared, &tokens), STG_OK);
    stg_retry_start(&r, &p, &with, 0);
    stg_retry_admit(&r, 0, &rng);
    CHECK(stg_budget_take(&peer.budget, STG_CHARGE_RETRY, 0).granted);
    CHECK_INT(stg_retry_step(&r, &o, 0, &rng).why, STG_WHY_BUDGET);
    stg_budget_attempt(&peer.budget, 0);
    CHECK(stg_budget_take(&shared, STG_CHARGE_RETRY, 0).granted);
    CHECK_INT(stg_retry_admit(&r, STG_S, &rng).next, STG_GIVE_UP);
    CHECK_U64(stg_budget_left(&peer.budget, 0), 1000);
}

TEST(retry, waits_on_for_a_reserved_token_when_its_debt_is_settled)
{
    stg_policy p = parse(
        "fixed base=100ms jitter=none attempts=9 "
        "budget=ratio:1 budget-empty=wait deadline=5s");
    stg_peer peer = peer_of(&p);
    stg_budget shared;
    stg_with with = {.peer = &peer, .shared_budget = &shared};
    stg_budget_options tokens = {
        .kind = STG_BUDGET_TOKENS, .capacity = 1, .rate = 500};
    stg_outcome o = stg_answered(503);
    stg_rng rng = zeros();
    stg_decision d;
    stg_retry r;

    CHECK_INT(stg_budget_init(&shared, &tokens), STG_OK);
    stg_retry_start(&r, &p, &with, 0);
    stg_retry_admit(&r, 0, &rng);
    CHECK(stg_budget_take(&peer.budget, STG_CHARGE_RETRY, 0).granted);
    CHECK_INT(stg_retry_step(&r, &o, 0, &rng).why, STG_WHY_BUDGET);
    stg_budget_attempt(&peer.budget, 0);
    CHECK(stg_budget_take(&shared, STG_CHARGE_RETRY, STG_S).granted);
    d = stg_retry_admit(&r, STG_S, &rng);
    CHECK_INT(d.why, STG_WHY_BUDGET);
    CHECK_U64(d.due_at, 3 * STG_S);
    CHECK_INT(stg_retry_admit(&r, d.due_at, &rng).next, STG_GO);
}

TEST(retry, promises_no_reserved_token_twice)
{
    stg_policy p = parse(
        "fixed base=0 jitter=none attempts=9 "
        "budget=1:1/s budget-empty=wait deadline=1h");
    stg_peer peer = peer_of(&p);
    stg_with with = {.peer = &peer};
    stg_outcome o = stg_answered(503);
    stg_rng rng = zeros();
    stg_retry r[4];

    for (uint64_t i = 0; i < 4; i++) {
        stg_retry_start(&r[i], &p, &with, 0);
        stg_retry_admit(&r[i], 0, &rng);
        if (i == 3)
            stg_retry_cancel(&r[1], 0); // its token was for 1 s
        CHECK_U64(stg_retry_step(&r[i], &o, 0, &rng).due_at, i * STG_S);
    }
    stg_retry_cancel(&r[3], 0); // the last one's comes back
    stg_retry_start(&r[3], &p, &with, 0);
    stg_retry_admit(&r[3], 0, &rng);
    CHECK_U64(stg_retry_step(&r[3], &o, 0, &rng).due_at, 3 * STG_S);
}

TEST(retry, counts_its_first_attempt_although_the_breaker_was_open)
{
    stg_policy p = parse(
        "fixed base=0 jitter=none attempts=9 breaker=1:1s "
        "budget=ratio:1 retry=default,circuit-open "
        "budget-empty=wait");
    stg_peer peer = peer_of(&p);
    stg_rng rng = zeros();
    stg_retry r;

    stg_breaker_report(&peer.breaker, false, STG_BREAKER_FAILURE, 0, 0);
    stg_retry_start(&r, &p, &(stg_with){.peer = &peer}, 0);
    CHECK_INT(stg_retry_admit(&r, 0, &rng).next, STG_WAIT);
    CHECK_INT(stg_retry_admit(&r, 2 * STG_S, &rng).next, STG_GO);
    CHECK_INT(r.attempts, 2);
    CHECK_U64(stg_budget_left(&peer.budget, 2 * STG_S), 1000);
}

/* gRFC A6: "do not retry" is a failure for the throttle, whatever the code. */
TEST(retry, counts_a_negative_pushback_though_its_code_is_not_retried)
{
    stg_policy p = parse("attempts=3 budget=grpc:10:0.1");
    stg_peer peer = peer_of(&p);
    const stg_with with = {.peer = &peer};
    const stg_outcome pushed = stg_failed_grpc(3, "-1");
    const stg_outcome plain = stg_failed_grpc(3, NULL);
    stg_retry r = running(&p, &with);

    CHECK_INT(stg_retry_step(&r, &plain, 0, NULL).why, STG_WHY_PERMANENT);
    CHECK_U64(stg_budget_left(&peer.budget, 0), 10000);
    r = running(&p, &with);
    CHECK_INT(stg_retry_step(&r, &pushed, 0, NULL).why, STG_WHY_PERMANENT);
    CHECK_U64(stg_budget_left(&peer.budget, 0), 9000);
}

TEST(retry, counts_failures_against_a_shared_budget_alone)
{
    stg_policy of = parse("budget=grpc:10:0.1"), p = parse("attempts=3");
    const stg_outcome o = stg_answered(503);
    stg_outcome final = stg_answered(404);
    stg_peer peer = peer_of(&p);
    stg_budget shared;
    stg_with with = {.shared_budget = &shared};
    stg_retry r;

    CHECK_INT(stg_budget_init(&shared, &of.budget), STG_OK);
    r = running(&p, &with);
    CHECK_INT(stg_retry_step(&r, &o, 0, NULL).next, STG_WAIT);
    CHECK_U64(stg_budget_left(&shared, 0), 9000);
    final.permanent = true; // not by gRPC
    r = running(&p, &with);
    CHECK_INT(stg_retry_step(&r, &final, 0, NULL).next, STG_GIVE_UP);
    CHECK_U64(stg_budget_left(&shared, 0), 9000);
    with.peer = &peer; // of a policy without one
    r = running(&p, &with);
    CHECK_INT(stg_retry_step(&r, &o, 0, NULL).next, STG_WAIT);
    CHECK_U64(stg_budget_left(&shared, 0), 8000);
}

TEST(retry, asks_again_for_a_budget_that_cannot_say_when)
{
    stg_policy p = parse(
        "fixed base=0 jitter=none attempts=9 "
        "budget=ratio:0+0.1/s budget-empty=wait deadline=15s");
    stg_peer peer = peer_of(&p);
    static story s;
    static const char start[] =
        "    0 ms  503  wait 0 ms (backoff)\n"
        "    0 ms  503  wait 0 ms (budget)\n"
        "    0 ms  -  wait 10 ms (budget)\n"
        "   10 ms  -  wait 10 ms (budget)\n";
    const char *text;

    // One retry in ten seconds; asked every 10 ms although the base is 0.
    text = run(&s, &p, &(stg_with){.peer = &peer}, ones(), "503 503 200");
    CHECK(strncmp(text, start, strlen(start)) == 0);
    CHECK(strstr(text, "10000 ms  200  done\n") != NULL);
}

TEST(retry, asks_again_no_longer_than_its_deadline)
{
    stg_policy p = parse(
        "fixed base=400ms jitter=none attempts=9 "
        "budget=ratio:1 budget-empty=wait deadline=1s");
    stg_peer peer = peer_of(&p);
    story s = {.now = 0};

    stg_budget_attempt(&peer.budget, 0);
    while (stg_budget_take(&peer.budget, STG_CHARGE_RETRY, 0).granted)
        continue;
    CHECK_TRACE(run(&s, &p, &(stg_with){.peer = &peer}, ones(), "503 503"),
                "    0 ms  503  wait 400 ms (backoff)\n"
                "  400 ms  503  wait 400 ms (budget)\n"
                "  800 ms  -  give up (budget)\n");
}

TEST(retry, pays_both_budgets_or_neither)
{
    stg_policy p = parse(
        "fixed base=0 jitter=none attempts=9 "
        "budget=5:0.001/s");
    stg_peer peer = peer_of(&p);
    stg_budget shared;
    story s = {.now = 0};
    stg_with with = {.peer = &peer, .shared_budget = &shared};

    CHECK_INT(stg_budget_init(&shared,
                              &(stg_budget_options){.kind = STG_BUDGET_TOKENS,
                                                    .capacity = 1,
                                                    .rate = 1}),
              STG_OK);
    CHECK_TRACE(run(&s, &p, &with, ones(), "503 503"),
                "    0 ms  503  wait 0 ms (backoff)\n"
                "    0 ms  503  give up (budget)\n");
    CHECK_U64(stg_budget_left(&peer.budget, 0), 4000);
    CHECK_U64(stg_budget_left(&shared, 0), 0);
    // Without a peer the shared one alone is asked.
    p = parse("fixed base=0 jitter=none attempts=9");
    with.peer = NULL;
    CHECK_TRACE(run(&s, &p, &with, ones(), "503"),
                "    0 ms  503  give up (budget)\n");
}

/* A retry that was paid by the shared budget alone, and does not start. */
TEST(retry, gives_back_to_a_shared_budget_without_a_peer)
{
    stg_policy p = parse("fixed base=1s jitter=none attempts=9");
    const stg_outcome o = stg_answered(503);
    stg_budget shared;
    stg_with with = {.shared_budget = &shared};
    stg_retry r;
    stg_rng rng = ones();

    CHECK_INT(stg_budget_init(&shared,
                              &(stg_budget_options){.kind = STG_BUDGET_TOKENS,
                                                    .capacity = 2,
                                                    .rate = 1}),
              STG_OK);
    CHECK_INT(stg_retry_start(&r, &p, &with, 0), STG_OK);
    CHECK_INT(stg_retry_admit(&r, 0, &rng).next, STG_GO);
    CHECK_INT(stg_retry_step(&r, &o, 0, &rng).next, STG_WAIT);
    CHECK_U64(stg_budget_left(&shared, 0), 1000);
    CHECK_INT(stg_retry_cancel(&r, 0).next, STG_GIVE_UP);
    CHECK_U64(stg_budget_left(&shared, 0), 2000);
}

/* Others wait behind the retry that is cancelled: only its own instant says
 * that it was the last. */
TEST(retry, gives_back_the_instants_that_it_waits_for)
{
    stg_policy p = parse(
        "fixed base=0 jitter=none attempts=9 deadline=none "
        "budget=tokens:1:1/s budget-empty=wait");
    const stg_outcome o = stg_answered(503);
    stg_peer peer = peer_of(&p);
    stg_budget shared;
    stg_with with = {.peer = &peer, .shared_budget = &shared};
    stg_retry r[3];

    CHECK_INT(stg_budget_init(&shared,
                              &(stg_budget_options){.kind = STG_BUDGET_TOKENS,
                                                    .capacity = 1,
                                                    .rate = 500}),
              STG_OK);
    for (int i = 0; i < 3; i++) {
        CHECK_INT(stg_retry_start(&r[i], &p, &with, 0), STG_OK);
        CHECK_INT(stg_retry_admit(&r[i], 0, NULL).next, STG_GO);
        CHECK_U64(stg_retry_step(&r[i], &o, 0, NULL).due_at,
                  2 * (stg_ns)i * STG_S);
    }
    for (int i = 2; i >= 0; i--)
        stg_retry_cancel(&r[i], 0);
    CHECK_U64(stg_budget_left(&peer.budget, 0), 1000);
    CHECK_U64(stg_budget_left(&shared, 0), 1000);
}

TEST(retry, gives_back_its_place_and_what_it_paid_before)
{
    stg_policy p = parse(
        "fixed base=1s jitter=none attempts=9 deadline=none "
        "budget=tokens:2:1/s");
    const stg_outcome o = stg_answered(503);
    stg_peer peer = peer_of(&p);
    stg_with with = {.peer = &peer};
    stg_retry r[2];

    for (int i = 0; i < 2; i++) {
        CHECK_INT(stg_retry_start(&r[i], &p, &with, 0), STG_OK);
        CHECK_INT(stg_retry_admit(&r[i], 0, NULL).next, STG_GO);
        CHECK_U64(stg_retry_step(&r[i], &o, 0, NULL).due_at, STG_S);
    }
    CHECK_INT(stg_peer_limit(&peer, 100, 1, NULL), STG_OK); // 0.1/s
    CHECK(stg_limiter_take(&peer.limiter, STG_S, NULL));
    CHECK_U64(stg_retry_admit(&r[0], STG_S, NULL).due_at, 11 * STG_S);
    CHECK_U64(stg_retry_admit(&r[1], STG_S, NULL).due_at, 21 * STG_S);
    stg_retry_cancel(&r[1], STG_S);
    stg_retry_cancel(&r[0], STG_S);
    CHECK(stg_limiter_take(&peer.limiter, 11 * STG_S, NULL));
    CHECK_U64(stg_budget_left(&peer.budget, STG_S), 2000);
}

/* The peer's token is there at 1 s, the shared retry was counted at 0. */
TEST(retry, gives_back_two_budgets_while_it_waits_for_a_place)
{
    stg_policy p = parse(
        "fixed base=0 jitter=none attempts=9 deadline=none "
        "budget=tokens:1:1/s budget-empty=wait");
    const stg_outcome o = stg_answered(503);
    stg_peer peer = peer_of(&p);
    stg_budget shared;
    stg_with with = {.peer = &peer, .shared_budget = &shared};
    stg_retry r;

    CHECK_INT(
        stg_budget_init(&shared, &(stg_budget_options){.kind = STG_BUDGET_RATIO,
                                                       .rate = 100}),
        STG_OK);
    CHECK(stg_budget_take(&peer.budget, STG_CHARGE_RETRY, 0).granted);
    CHECK_INT(stg_retry_start(&r, &p, &with, 0), STG_OK);
    CHECK_INT(stg_retry_admit(&r, 0, NULL).next, STG_GO);
    CHECK_U64(stg_retry_step(&r, &o, 0, NULL).due_at, STG_S);
    CHECK_U64(stg_budget_left(&shared, STG_S), 0);
    CHECK_INT(stg_peer_limit(&peer, 100, 1, NULL), STG_OK); // 0.1/s
    CHECK(stg_limiter_take(&peer.limiter, STG_S, NULL));
    CHECK_U64(stg_retry_admit(&r, STG_S, NULL).due_at, 11 * STG_S);
    stg_retry_cancel(&r, STG_S);
    CHECK(stg_limiter_take(&peer.limiter, 11 * STG_S, NULL));
    CHECK_U64(stg_budget_left(&peer.budget, STG_S), 1000);
    CHECK_U64(stg_budget_left(&shared, STG_S), 1000);
}

TEST(retry, shares_a_peer_with_policies_that_have_less)
{
    stg_policy full = parse(
        "fixed base=0 jitter=none attempts=9 "
        "budget=tokens:1:0.001/s breaker=2:10s");
    stg_policy free = parse("fixed base=0 jitter=none attempts=4");
    stg_peer peer = peer_of(&full);
    stg_with with = {.peer = &peer};
    story s = {.now = 0};

    // It pays nothing, and is nothing to the breaker.
    run(&s, &free, &with, ones(), "503 503 503 503");
    CHECK_U64(stg_budget_left(&peer.budget, 0), 1000);
    CHECK_INT(stg_breaker_look(&peer.breaker, 0, NULL), STG_BREAKER_CLOSED);
    CHECK_TRACE(run(&s, &full, &with, ones(), "503 503"),
                "    0 ms  503  wait 0 ms (backoff)\n"
                "    0 ms  503  give up (budget)\n");
    // An open breaker does not hold it back, nor an empty budget.
    CHECK_TRACE(run(&s, &free, &with, ones(), "503 503 200"),
                "    0 ms  503  wait 0 ms (backoff)\n"
                "    0 ms  503  wait 0 ms (backoff)\n"
                "    0 ms  200  done\n");
}

TEST(retry, tells_its_budget_of_first_attempts_failures_and_successes)
{
    stg_policy p = parse("fixed base=0 jitter=none budget=ratio:1");
    stg_peer peer = peer_of(&p);
    story s = {.now = 0};
    stg_budget shared;
    stg_with with = {.peer = &peer, .shared_budget = &shared};
    stg_budget_options options = {.kind = STG_BUDGET_RATIO, .ratio = 2000};

    CHECK_INT(stg_budget_init(&shared, &options), STG_OK);
    run(&s, &p, &with, ones(), "503 200"); // one first attempt, one retry
    CHECK_U64(stg_budget_left(&peer.budget, 0), 0);
    CHECK_U64(stg_budget_left(&shared, 0), 1000);
    run(&s, &p, &with, ones(), "200");
    CHECK_U64(stg_budget_left(&peer.budget, 0), 1000);

    options = (stg_budget_options){
        .kind = STG_BUDGET_GRPC, .capacity = 10, .ratio = 500};
    CHECK_INT(stg_budget_init(&shared, &options), STG_OK);
    p = parse("fixed base=0 jitter=none budget=grpc:10:0.5");
    peer = peer_of(&p);
    run(&s, &p, &with, ones(), "503 200");
    CHECK_U64(stg_budget_left(&peer.budget, 0), 9500);
    CHECK_U64(stg_budget_left(&shared, 0), 9500);
    run(&s, &p, &with, ones(), "404"); // not retryable: not counted
    CHECK_U64(stg_budget_left(&peer.budget, 0), 9500);
    run(&s, &p, &with, ones(), "503 503 503");
    CHECK_U64(stg_budget_left(&peer.budget, 0), 6500);
}

TEST(retry, counts_failures_of_the_remote_and_not_our_own_against_a_budget)
{
    stg_policy p = parse(
        "fixed base=0 jitter=none budget=grpc:10:0.5 "
        "retry=any,invalid,nested attempts=2");
    stg_peer peer = peer_of(&p);
    story s = {.now = 0};
    stg_outcome o = stg_answered(503);
    stg_rng rng = zeros();
    stg_retry r;

    run(&s, &p, &(stg_with){.peer = &peer}, ones(), "invalid nested");
    CHECK_U64(stg_budget_left(&peer.budget, 0), 10000);
    o.permanent = true; // as a negative pushback is
    stg_retry_start(&r, &p, &(stg_with){.peer = &peer}, 0);
    stg_retry_admit(&r, 0, &rng);
    stg_retry_step(&r, &o, 0, &rng);
    CHECK_U64(stg_budget_left(&peer.budget, 0), 9000);
}

/* By hand, of 500: 14 for the 503, 14 for the timeout, 5 for the 429. */
TEST(retry, pays_by_what_failed_before)
{
    stg_policy p =
        parse("fixed base=1s jitter=none attempts=9 budget=aws:500:14:14:5");
    stg_peer peer = peer_of(&p);
    stg_with with = {.peer = &peer};
    story s = {.now = 0};

    CHECK_TRACE(run(&s, &p, &with, ones(), "503 timeout 429 200"),
                "    0 ms  503  wait 1000 ms (backoff)\n"
                " 1000 ms  timeout  wait 1000 ms (backoff)\n"
                " 2000 ms  429  wait 1000 ms (backoff)\n"
                " 3000 ms  200  done\n");
    CHECK_U64(stg_budget_left(&peer.budget, 0), 472000); // the 5 came back
    run(&s, &p, &with, ones(), "429 503 200");
    CHECK_U64(stg_budget_left(&peer.budget, 0), 467000);
    run(&s, &p, &with, ones(), "429 404");
    CHECK_U64(stg_budget_left(&peer.budget, 0), 462000);
}

/* Both have the cost of the same failure back, each by its own numbers. */
TEST(retry, gives_both_budgets_back_what_the_retry_cost)
{
    stg_policy p =
        parse("fixed base=1s jitter=none attempts=9 budget=aws:100:1:20:70");
    stg_outcome o = stg_answered(429);
    stg_peer peer = peer_of(&p);
    stg_budget shared;
    stg_with with = {.peer = &peer, .shared_budget = &shared};
    stg_rng rng = ones();
    stg_retry r;

    CHECK(stg_budget_init(&shared, &(stg_budget_options){.kind = STG_BUDGET_AWS,
                                                         .capacity = 10,
                                                         .cost = 1,
                                                         .timeout_cost = 2,
                                                         .throttle_cost = 3}) ==
          STG_OK);
    stg_retry_start(&r, &p, &with, 0);
    stg_retry_admit(&r, 0, &rng);
    CHECK_INT(stg_retry_step(&r, &o, 0, &rng).next, STG_WAIT);
    CHECK_U64(stg_budget_left(&peer.budget, 0), 30000);
    CHECK_U64(stg_budget_left(&shared, 0), 7000);
    stg_retry_cancel(&r, 0);
    CHECK_U64(stg_budget_left(&peer.budget, 0), 100000);
    CHECK_U64(stg_budget_left(&shared, 0), 10000);
}

/* 429 costs 3 of 10, which are there when others have succeeded. */
TEST(retry, owes_what_its_own_failure_costs)
{
    stg_policy p = parse(
        "fixed base=1s jitter=none attempts=9 budget=aws:10:10:10:3 "
        "budget-empty=wait");
    stg_outcome o = stg_answered(429);
    stg_peer peer = peer_of(&p);
    stg_with with = {.peer = &peer};
    stg_rng rng = ones();
    stg_decision d;
    stg_retry r;

    CHECK(stg_budget_take(&peer.budget, STG_CHARGE_RETRY, 0).granted);
    stg_retry_start(&r, &p, &with, 0);
    stg_retry_admit(&r, 0, &rng);
    d = stg_retry_step(&r, &o, 0, &rng);
    CHECK_INT(d.why, STG_WHY_BUDGET);
    for (int i = 0; i < 3; i++) {
        d = stg_retry_admit(&r, d.due_at, &rng);
        CHECK_INT(d.next, STG_WAIT);
        stg_budget_succeed(&peer.budget, STG_CHARGE_NONE);
    }
    CHECK_INT(stg_retry_admit(&r, d.due_at, &rng).next, STG_GO);
    CHECK_U64(stg_budget_left(&peer.budget, 0), 0);
    o = stg_ok();
    stg_retry_step(&r, &o, d.due_at, &rng);
    CHECK_U64(stg_budget_left(&peer.budget, 0), 3000);
}

TEST(retry, spends_and_regains_aws_tokens)
{
    stg_policy p = parse("aws attempts=5 jitter=none");
    stg_peer peer = peer_of(&p);
    stg_with with = {.peer = &peer};
    story s = {.now = 0};

    CHECK_TRACE(run(&s, &p, &with, ones(), "503 503 503 503 503"),
                "    0 ms  503  wait 1000 ms (backoff)\n"
                " 1000 ms  503  wait 2000 ms (backoff)\n"
                " 3000 ms  503  wait 4000 ms (backoff)\n"
                " 7000 ms  503  wait 8000 ms (backoff)\n"
                "15000 ms  503  give up (attempts)\n");
    CHECK_U64(stg_budget_left(&peer.budget, 0), 480000);
    run(&s, &p, &with, ones(), "503 timeout 200"); // 5 and 10, 10 come back
    CHECK_U64(stg_budget_left(&peer.budget, 0), 475000);
    run(&s, &p, &with, ones(), "connect-timeout 503 200");
    CHECK_U64(stg_budget_left(&peer.budget, 0), 465000 + 5000 - 5000);
    run(&s, &p, &with, ones(), "200");
    CHECK_U64(stg_budget_left(&peer.budget, 0), 466000);
    run(&s, &p, &with, ones(), "timeout 404");
    CHECK_U64(stg_budget_left(&peer.budget, 0), 456000);
    run(&s, &p, &with, ones(), "timeout 503 404"); // 10 and 5
    CHECK_U64(stg_budget_left(&peer.budget, 0), 441000);
    while (stg_budget_take(&peer.budget, STG_CHARGE_RETRY, 0).granted)
        continue;
    stg_budget_succeed(&peer.budget, STG_CHARGE_RETRY);
    stg_budget_give_back(&peer.budget, STG_CHARGE_RETRY, 0, 0);
    CHECK_U64(stg_budget_left(&peer.budget, 0), 11000);
    run(&s, &p, &with, ones(), "timeout timeout");
    CHECK_U64(stg_budget_left(&peer.budget, 0), 1000);
    s.now = 0;
    CHECK_TRACE(run(&s, &p, &with, ones(), "503"),
                "    0 ms  503  give up (budget)\n");
}

/* -- breaker, limiter, cancel */

TEST(retry, does_not_call_through_an_open_breaker)
{
    stg_policy p = parse(
        "fixed base=100ms jitter=none attempts=9 "
        "breaker=3:10s");
    stg_peer peer = peer_of(&p);
    stg_with with = {.peer = &peer};
    story s = {.now = 0};

    CHECK_TRACE(run(&s, &p, &with, ones(), "503 503 503"),
                "    0 ms  503  wait 100 ms (backoff)\n"
                "  100 ms  503  wait 100 ms (backoff)\n"
                "  200 ms  503  wait 100 ms (backoff)\n"
                "  300 ms  -  give up (circuit-open)\n");
    s.now = 11 * STG_S;
    CHECK_TRACE(run(&s, &p, &with, ones(), "200"), "11000 ms  200  done\n");
    CHECK_INT(stg_breaker_look(&peer.breaker, s.now, NULL), STG_BREAKER_CLOSED);
}

TEST(retry, begins_but_does_not_retry_through_a_breaker_for_retries)
{
    stg_policy p = parse(
        "fixed base=100ms jitter=none attempts=3 "
        "breaker=3:10s breaker-scope=retries");
    stg_peer peer = peer_of(&p);
    stg_with with = {.peer = &peer};
    story s = {.now = 0};

    CHECK_TRACE(run(&s, &p, &with, ones(), "503 503 503"),
                "    0 ms  503  wait 100 ms (backoff)\n"
                "  100 ms  503  wait 100 ms (backoff)\n"
                "  200 ms  503  give up (attempts)\n");
    CHECK_INT(stg_breaker_look(&peer.breaker, s.now, NULL), STG_BREAKER_OPEN);
    s.now = STG_S;
    CHECK_TRACE(run(&s, &p, &with, ones(), "503"),
                " 1000 ms  503  wait 100 ms (backoff)\n"
                " 1100 ms  -  give up (circuit-open)\n");
    // Its success is not the probe's.
    s.now = 2 * STG_S;
    CHECK_TRACE(run(&s, &p, &with, ones(), "200"), " 2000 ms  200  done\n");
    CHECK_INT(stg_breaker_look(&peer.breaker, s.now, NULL), STG_BREAKER_OPEN);
    // The first attempt is the probe.
    s.now = 11 * STG_S;
    CHECK_TRACE(run(&s, &p, &with, ones(), "200"), "11000 ms  200  done\n");
    CHECK_INT(stg_breaker_look(&peer.breaker, s.now, NULL), STG_BREAKER_CLOSED);
}

TEST(retry, waits_for_the_reopening_when_it_retries_circuit_open)
{
    stg_policy p = parse(
        "fixed base=100ms jitter=none attempts=4 "
        "breaker=2:10s retry=default,circuit-open");
    stg_peer peer = peer_of(&p);
    stg_with with = {.peer = &peer};
    story s = {.now = 0};

    // It uses up an attempt, and the probe goes after its time.
    CHECK_TRACE(run(&s, &p, &with, ones(), "503 503 503"),
                "    0 ms  503  wait 100 ms (backoff)\n"
                "  100 ms  503  wait 100 ms (backoff)\n"
                "  200 ms  -  wait 9900 ms (server-delay)\n"
                "10100 ms  503  give up (attempts)\n");
    CHECK_INT(stg_breaker_look(&peer.breaker, s.now, NULL), STG_BREAKER_OPEN);
}

TEST(retry, pays_nothing_for_an_attempt_that_the_breaker_refused)
{
    stg_policy p = parse(
        "fixed base=100ms jitter=none attempts=9 breaker=1:10s "
        "budget=5:0.001/s");
    stg_peer peer = peer_of(&p);
    story s = {.now = 0};

    stg_peer_limit(&peer, 1000, 5, NULL);
    CHECK(stg_budget_take(&peer.budget, STG_CHARGE_RETRY, 0).granted);
    CHECK(stg_budget_take(&peer.budget, STG_CHARGE_RETRY, 0).granted);
    CHECK_TRACE(run(&s, &p, &(stg_with){.peer = &peer}, ones(), "503"),
                "    0 ms  503  wait 100 ms (backoff)\n"
                "  100 ms  -  give up (circuit-open)\n");
    CHECK_U64(stg_budget_left(&peer.budget, 0), 3000);
    for (int i = 0; i < 4; i++)
        CHECK(stg_limiter_take(&peer.limiter, 0, NULL));
    CHECK(!stg_limiter_take(&peer.limiter, 0, NULL));
}

/* While it waits for the reopening, its place of the rate limit is others'. */
TEST(retry, holds_no_place_while_it_waits_for_the_reopening)
{
    stg_policy p = parse(
        "fixed base=0 jitter=none attempts=9 breaker=1:10s "
        "retry=default,circuit-open");
    stg_peer peer = peer_of(&p);
    stg_rng rng = ones();
    stg_retry r;

    stg_peer_limit(&peer, 1000, 1, NULL);
    stg_breaker_report(&peer.breaker, false, STG_BREAKER_FAILURE, 0, 0);
    CHECK_INT(stg_retry_start(&r, &p, &(stg_with){.peer = &peer}, 0), STG_OK);
    CHECK_INT(stg_retry_admit(&r, 0, &rng).next, STG_WAIT);
    CHECK(stg_limiter_take(&peer.limiter, 0, NULL));
    CHECK(!stg_limiter_take(&peer.limiter, 0, NULL));
}

/* A policy without a budget fits a peer of another policy, that has one. */
TEST(retry, leaves_the_budget_of_a_peer_alone_that_its_policy_has_not)
{
    stg_policy other = parse("attempts=9 budget=5:0.001/s");
    stg_policy p = parse("fixed base=0 jitter=none attempts=9");
    stg_peer peer = peer_of(&other);
    const stg_outcome o = stg_answered(503);
    stg_budget shared;
    stg_with with = {.peer = &peer, .shared_budget = &shared};
    stg_retry r;
    stg_rng rng = ones();

    CHECK_INT(stg_budget_init(&shared,
                              &(stg_budget_options){.kind = STG_BUDGET_TOKENS,
                                                    .capacity = 2,
                                                    .rate = 1}),
              STG_OK);
    CHECK_INT(stg_retry_start(&r, &p, &with, 0), STG_OK);
    CHECK_INT(stg_retry_admit(&r, 0, &rng).next, STG_GO);
    CHECK_INT(stg_retry_step(&r, &o, 0, &rng).next, STG_WAIT);
    CHECK_U64(stg_budget_left(&shared, 0), 1000);
    CHECK_U64(stg_budget_left(&peer.budget, 0), 5000);
}

TEST(retry, pays_nothing_for_a_first_request_that_waited_for_the_breaker)
{
    stg_policy p = parse(
        "fixed base=100ms jitter=none attempts=9 breaker=1:10s "
        "budget=1:0.001/s retry=default,circuit-open");
    stg_peer peer = peer_of(&p);
    story s = {.now = 0};

    stg_breaker_report(&peer.breaker, false, STG_BREAKER_FAILURE, 0, 0);
    CHECK(stg_budget_take(&peer.budget, STG_CHARGE_RETRY, 0)
              .granted); // now it is empty
    CHECK_TRACE(run(&s, &p, &(stg_with){.peer = &peer}, ones(), "503"),
                "    0 ms  -  wait 10000 ms (server-delay)\n"
                "10000 ms  503  give up (budget)\n");
}

TEST(retry, pays_once_although_it_waits_for_the_reopening)
{
    stg_policy p = parse(
        "fixed base=100ms jitter=none attempts=9 breaker=1:10s "
        "budget=5:0.001/s retry=default,circuit-open");
    stg_peer peer = peer_of(&p);
    story s = {.now = 0};

    CHECK_TRACE(run(&s, &p, &(stg_with){.peer = &peer}, ones(), "503 200"),
                "    0 ms  503  wait 100 ms (backoff)\n"
                "  100 ms  -  wait 9900 ms (server-delay)\n"
                "10000 ms  200  done\n");
    CHECK_U64(stg_budget_left(&peer.budget, 0) / 100, 39); // 4, and a unit
}

TEST(retry, frees_the_probe_when_it_is_cancelled)
{
    stg_policy p = parse(
        "fixed base=1s jitter=none breaker=1:10s attempts=9 "
        "retry=any");
    stg_peer peer = peer_of(&p);
    stg_with with = {.peer = &peer};
    stg_outcome o = stg_failed(STG_FAULT_CANCELLED);
    story s = {.now = 0};
    stg_rng rng = zeros();
    stg_retry r;

    run(&s, &p, &with, ones(), "503 cancelled");
    s.now = 20 * STG_S;
    stg_breaker_report(&peer.breaker, false, STG_BREAKER_FAILURE, s.now, s.now);
    for (int i = 0; i < 2; i++) {
        s.now += 20 * STG_S;
        stg_retry_start(&r, &p, &with, s.now);
        CHECK_INT(stg_retry_admit(&r, s.now, &rng).next, STG_GO);
        if (i == 0)
            stg_retry_cancel(&r, s.now);
        else
            CHECK_INT(stg_retry_step(&r, &o, s.now, &rng).why,
                      STG_WHY_CANCELLED);
        // The next one is the probe, at once.
        stg_retry_start(&r, &p, &with, s.now);
        CHECK_INT(stg_retry_admit(&r, s.now, &rng).next, STG_GO);
        stg_retry_cancel(&r, s.now);
    }
}

TEST(retry, frees_the_probe_that_grpc_calls_cancelled)
{
    stg_policy p = parse("fixed base=0 jitter=none breaker=1:10s attempts=1");
    stg_peer peer = peer_of(&p);
    stg_with with = {.peer = &peer};
    stg_rng rng = zeros();
    stg_retry r;

    stg_breaker_report(&peer.breaker, false, STG_BREAKER_FAILURE, 0, 0);
    for (int code = 1; code <= 2; code++) {
        stg_outcome o = stg_failed_grpc(code, NULL);

        stg_retry_start(&r, &p, &with, 11 * STG_S);
        CHECK_INT(stg_retry_admit(&r, 11 * STG_S, &rng).next, STG_GO);
        stg_retry_step(&r, &o, 11 * STG_S, &rng);
    }
    // The first freed the place, the second was an answer: closed.
    CHECK_INT(stg_breaker_look(&peer.breaker, 11 * STG_S, NULL),
              STG_BREAKER_CLOSED);
}

TEST(retry, leaves_the_place_of_a_probe_that_was_answered)
{
    stg_policy p = parse("fixed base=0 jitter=none breaker=1:10s attempts=1");
    stg_peer peer = peer_of(&p);
    stg_with with = {.peer = &peer};
    story s = {.now = 0};

    run(&s, &p, &with, ones(), "503");
    s.now = 11 * STG_S;
    // A 429 is neither: the next probe waits for the next interval.
    CHECK_TRACE(run(&s, &p, &with, ones(), "429"),
                "11000 ms  429  give up (attempts)\n");
    CHECK_TRACE(run(&s, &p, &with, ones(), ""),
                "11000 ms  -  give up (circuit-open)\n");
}

TEST(retry, reports_each_attempt_to_the_breaker)
{
    stg_policy p = parse("fixed base=0 jitter=none breaker=3:10s attempts=9");
    stg_peer peer = peer_of(&p);
    stg_with with = {.peer = &peer};
    story s = {.now = 0};

    run(&s, &p, &with, ones(), "503 503 429 200");
    run(&s, &p, &with, ones(), "503 503 404"); // an answer like any other
    run(&s, &p, &with, ones(), "503 503 200");
    CHECK_INT(stg_breaker_look(&peer.breaker, 0, NULL), STG_BREAKER_CLOSED);
}

TEST(retry, is_held_back_by_the_rate_limit)
{
    stg_policy p = parse("fixed base=100ms jitter=none attempts=3 deadline=3s");
    stg_peer peer = peer_of(&p);
    stg_with with = {.peer = &peer};
    story s = {.now = 0};

    stg_peer_limit(&peer, 1000, 1, NULL);
    CHECK_TRACE(run(&s, &p, &with, ones(), "503 503 503"),
                "    0 ms  503  wait 100 ms (backoff)\n"
                "  100 ms  -  wait 900 ms (gate)\n"
                " 1000 ms  503  wait 100 ms (backoff)\n"
                " 1100 ms  -  wait 900 ms (gate)\n"
                " 2000 ms  503  give up (attempts)\n");
    p = parse("fixed base=100ms jitter=none attempts=3 deadline=900ms");
    CHECK_TRACE(run(&s, &p, &with, ones(), ""),
                " 2000 ms  -  give up (deadline)\n");
    // The place that it could not use is still there.
    CHECK(stg_limiter_take(&peer.limiter, 3 * STG_S, NULL));
}

/* A first attempt waits as a retry does; 20/s lets two go at once. */
TEST(retry, is_held_back_by_the_rate_of_its_policy)
{
    stg_policy p = parse("fixed base=10ms jitter=none attempts=4 rate=20/s");
    stg_peer peer = peer_of(&p);
    stg_with with = {.peer = &peer};
    story s = {.now = 0};

    CHECK_TRACE(run(&s, &p, &with, ones(), "503 503 503 200"),
                "    0 ms  503  wait 10 ms (backoff)\n"
                "   10 ms  503  wait 10 ms (backoff)\n"
                "   20 ms  -  wait 30 ms (gate)\n"
                "   50 ms  503  wait 10 ms (backoff)\n"
                "   60 ms  -  wait 40 ms (gate)\n"
                "  100 ms  200  done\n");
    CHECK_TRACE(run(&s, &p, &with, ones(), "200"),
                "  100 ms  -  wait 50 ms (gate)\n"
                "  150 ms  200  done\n");
}

/* An attempt that is under way, or the reason why it is not. */
static stg_decision admit_at(stg_retry *r, const stg_policy *p,
                             const stg_with *with, stg_ns now)
{
    stg_rng rng = zeros();

    CHECK_INT(stg_retry_start(r, p, with, now), STG_OK);
    return stg_retry_admit(r, now, &rng);
}

TEST(retry, is_refused_where_the_bulkhead_has_no_place)
{
    stg_policy p = parse(
        "fixed base=1s jitter=none bulkhead=2 budget=9:0.001/s breaker=1:1s");
    stg_peer peer = peer_of(&p);
    stg_with with = {.peer = &peer};
    stg_outcome ok = stg_ok(), failure = stg_answered(429);
    stg_rng rng = zeros();
    stg_retry first, second, third;
    stg_decision d;

    CHECK_INT(admit_at(&first, &p, &with, 0).next, STG_GO);
    CHECK_INT(admit_at(&second, &p, &with, 0).next, STG_GO);
    CHECK_INT(stg_retry_admit(&second, 0, &rng).next, STG_GO); // the same one
    d = admit_at(&third, &p, &with, 0);
    CHECK_INT(d.next, STG_GIVE_UP);
    CHECK_INT(d.why, STG_WHY_BULKHEAD);
    // A refusal by the bulkhead is not an attempt, and the breaker ignores it.
    CHECK_INT(third.attempts, 0);
    CHECK_INT(stg_breaker_look(&peer.breaker, 0, NULL), STG_BREAKER_CLOSED);
    CHECK_U64(stg_bulkhead_taken(&peer.bulkhead), 2);

    // Whatever ends an attempt makes room: a success, a failure, a cancel.
    CHECK_INT(stg_retry_step(&first, &ok, 0, &rng).next, STG_DONE);
    CHECK_U64(stg_bulkhead_taken(&peer.bulkhead), 1);
    CHECK_INT(stg_retry_step(&second, &failure, 0, &rng).next, STG_WAIT);
    CHECK_U64(stg_bulkhead_taken(&peer.bulkhead), 0);
    CHECK_INT(admit_at(&first, &p, &with, 0).next, STG_GO);
    CHECK_INT(admit_at(&third, &p, &with, 0).next, STG_GO);

    // A retry that finds no place gets back what it paid.
    CHECK_U64(stg_budget_left(&peer.budget, 0), 8000);
    d = stg_retry_admit(&second, STG_S, &rng);
    CHECK_INT(d.why, STG_WHY_BULKHEAD);
    CHECK_INT(second.attempts, 1);
    CHECK_U64(stg_budget_left(&peer.budget, 0), 9000);
    CHECK_INT(stg_retry_cancel(&third, STG_S).why, STG_WHY_CANCELLED);
    CHECK_INT(stg_retry_cancel(&third, STG_S).why, STG_WHY_CANCELLED);
    CHECK_U64(stg_bulkhead_taken(&peer.bulkhead), 1);
}

/* The bulkhead is the peer's: a policy without one is held back, too. */
TEST(retry, waits_for_a_place_of_the_bulkhead_for_a_time)
{
    stg_policy p = parse("fixed base=1s jitter=none bulkhead=1:64ms");
    stg_policy none = parse("fixed base=1s jitter=none deadline=none");
    stg_policy brief = parse("fixed base=1s jitter=none deadline=10ms");
    stg_peer peer = peer_of(&p);
    stg_with with = {.peer = &peer}, slow = with;
    stg_outcome ok = stg_ok();
    stg_rng rng = zeros();
    stg_retry busy, r;
    stg_decision d;
    stg_ns now;

    slow.expected = 6 * STG_MS;
    CHECK_INT(admit_at(&busy, &none, &with, 0).next, STG_GO);
    d = admit_at(&r, &none, &with, STG_MS);
    for (now = STG_MS; d.next == STG_WAIT;) {
        CHECK_INT(d.why, STG_WHY_BULKHEAD);
        CHECK_U64(d.due_at, now + 4 * STG_MS);
        now = d.due_at;
        d = stg_retry_admit(&r, now, &rng);
    }
    CHECK_U64(now, 65 * STG_MS);
    CHECK_INT(d.why, STG_WHY_BULKHEAD);

    // A deadline is no longer than it is; the last wait is what is left.
    CHECK_INT(admit_at(&r, &brief, &with, 0).next, STG_WAIT);
    CHECK_INT(stg_retry_admit(&r, 4 * STG_MS, &rng).next, STG_WAIT);
    CHECK_INT(stg_retry_admit(&r, 8 * STG_MS, &rng).why, STG_WHY_DEADLINE);
    CHECK_INT(admit_at(&r, &brief, &slow, 0).why, STG_WHY_DEADLINE);
    CHECK_INT(admit_at(&r, &p, &with, 0).next, STG_WAIT);
    CHECK_U64(stg_retry_admit(&r, 63 * STG_MS, &rng).due_at, 64 * STG_MS);

    // A place that is free is taken, and the next wait begins anew.
    CHECK_INT(stg_retry_step(&busy, &ok, 63 * STG_MS, &rng).next, STG_DONE);
    CHECK_INT(stg_retry_admit(&r, 64 * STG_MS, &rng).next, STG_GO);
    CHECK_INT(admit_at(&busy, &p, &with, 64 * STG_MS).next, STG_WAIT);
    CHECK_INT(stg_retry_cancel(&r, 65 * STG_MS).why, STG_WHY_CANCELLED);
    CHECK_INT(stg_retry_admit(&busy, 68 * STG_MS, &rng).next, STG_GO);
    ok = stg_answered(503);
    d = stg_retry_step(&busy, &ok, 70 * STG_MS, &rng);
    CHECK_U64(d.due_at, 70 * STG_MS + STG_S);
    CHECK_INT(admit_at(&r, &p, &with, STG_S).next, STG_GO);
    d = stg_retry_admit(&busy, 70 * STG_MS + STG_S, &rng);
    CHECK_INT(d.why, STG_WHY_BULKHEAD);
    CHECK_U64(d.due_at, 74 * STG_MS + STG_S);
    // One that gives up its wait has no place to give back.
    CHECK_INT(stg_retry_cancel(&busy, 2 * STG_S).why, STG_WHY_CANCELLED);
    CHECK_U64(stg_bulkhead_taken(&peer.bulkhead), 1);
}

TEST(retry, asks_a_full_bulkhead_again_in_a_millisecond_to_a_tenth_of_a_second)
{
    static const struct {
        const char *text;
        stg_ns due_at;
    } rows[] = {{"bulkhead=1:1us", STG_US},
                {"bulkhead=1:2ms", STG_MS},
                {"bulkhead=1:160ms", 10 * STG_MS},
                {"bulkhead=1:1.6s", 100 * STG_MS},
                {"bulkhead=1:90s", 100 * STG_MS}};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        stg_policy p = parse(rows[i].text);
        stg_peer peer = peer_of(&p);
        stg_with with = {.peer = &peer};
        stg_retry busy, r;

        CHECK_INT(admit_at(&busy, &p, &with, 0).next, STG_GO);
        CHECK_U64(admit_at(&r, &p, &with, 0).due_at, rows[i].due_at);
    }
}

static void count_event(void *ctx, const stg_event *event)
{
    *(int *)ctx += event->kind == STG_EVENT_DECISION;
}

TEST(retry, tells_once_that_it_waits_for_the_bulkhead)
{
    stg_policy p = parse("fixed base=1s bulkhead=1:64ms");
    stg_peer peer = peer_of(&p);
    int events = 0;
    stg_hook hook = {.on = count_event, .ctx = &events};
    stg_with with = {.peer = &peer}, watched = {.peer = &peer, .hook = &hook};
    stg_rng rng = zeros();
    stg_retry busy, r;

    CHECK_INT(admit_at(&busy, &p, &with, 0).next, STG_GO);
    CHECK_INT(admit_at(&r, &p, &watched, 0).next, STG_WAIT);
    for (stg_ns now = 4; now < 64; now += 4)
        CHECK_INT(stg_retry_admit(&r, now * STG_MS, &rng).next, STG_WAIT);
    CHECK_INT(events, 1);
}

static uint64_t requests_of(const stg_peer *peer)
{
    return peer->throttle.requests[0] & ((1 << 28) - 1);
}

/* K is 1: without an accepted one of two requests the third is refused where
 * chance is at its least. */
TEST(retry, is_refused_by_its_throttle_and_counts_no_attempt)
{
    stg_policy p = parse(
        "fixed base=1s jitter=none throttle=sre:1 budget=9:0.001/s "
        "deadline=none");
    stg_policy none = parse("fixed base=1s");
    stg_peer peer = peer_of(&p);
    stg_with with = {.peer = &peer};
    stg_outcome failure = stg_answered(503), ok = stg_ok();
    stg_rng rng = zeros();
    stg_retry r, other;
    stg_decision d;

    CHECK_INT(admit_at(&r, &p, &with, 0).next, STG_GO);
    CHECK_INT(stg_retry_step(&r, &failure, 0, &rng).next, STG_WAIT);
    CHECK_U64(stg_budget_left(&peer.budget, 0), 8000);
    CHECK_INT(admit_at(&other, &none, &with, 0).next, STG_GO); // pays nothing
    CHECK_U64(requests_of(&peer), 1);
    d = stg_retry_admit(&r, STG_S, &rng);
    CHECK_INT(d.next, STG_GIVE_UP);
    CHECK_INT(d.why, STG_WHY_THROTTLE);
    CHECK_INT(r.attempts, 1);
    CHECK_U64(stg_budget_left(&peer.budget, 0), 9000);
    CHECK_U64(requests_of(&peer), 2); // what it refused counts, too

    // A cancelled attempt says nothing; a success is accepted.
    peer = peer_of(&p);
    CHECK_INT(admit_at(&r, &p, &with, 0).next, STG_GO);
    CHECK_U64(requests_of(&peer), 1);
    CHECK_INT(stg_retry_cancel(&r, 5 * STG_S).why, STG_WHY_CANCELLED);
    CHECK_U64(requests_of(&peer), 0);
    CHECK_INT(admit_at(&r, &p, &with, 0).next, STG_GO);
    CHECK_INT(stg_retry_step(&r, &ok, 0, &rng).next, STG_DONE);
    CHECK(!stg_throttle_is_active(&peer.throttle, 0));
    CHECK_U64(requests_of(&peer), 1);
}

/* Whatever refuses an attempt after the throttle let it out takes it back. */
TEST(retry, is_no_request_of_the_throttle_where_it_is_refused_elsewhere)
{
    stg_policy p = parse(
        "fixed base=1s attempts=1 throttle=sre:1 bulkhead=1 breaker=1:1s");
    stg_peer peer = peer_of(&p);
    stg_with with = {.peer = &peer};
    stg_outcome failure = stg_answered(429), broken = stg_answered(503);
    stg_rng rng = zeros();
    stg_retry r, busy;

    peer.throttle.accepts[0] = 100;
    CHECK_INT(admit_at(&busy, &p, &with, 0).next, STG_GO);
    CHECK_INT(admit_at(&r, &p, &with, 0).why, STG_WHY_BULKHEAD);
    CHECK_U64(requests_of(&peer), 1);
    CHECK_INT(stg_retry_step(&busy, &failure, 0, &rng).why, STG_WHY_ATTEMPTS);
    CHECK_INT(admit_at(&busy, &p, &with, 0).next, STG_GO);
    CHECK_INT(stg_retry_step(&busy, &broken, 0, &rng).why, STG_WHY_ATTEMPTS);
    CHECK_INT(admit_at(&r, &p, &with, 0).why, STG_WHY_CIRCUIT_OPEN);
    CHECK_U64(requests_of(&peer), 2);
}

TEST(retry, waits_for_the_rate_that_its_throttle_found)
{
    stg_policy p =
        parse("fixed base=10ms jitter=none throttle=aws deadline=5s rate=9/s");
    stg_policy brief = parse("fixed throttle=aws deadline=1s");
    stg_peer peer = peer_of(&p);
    stg_with with = {.peer = &peer};
    story s = {.now = 0};

    CHECK_TRACE(run(&s, &p, &with, ones(), "429 429 200"),
                "    0 ms  429  wait 10 ms (backoff)\n"
                "   10 ms  -  wait 101 ms (gate)\n"
                "  111 ms  429  wait 10 ms (backoff)\n"
                "  121 ms  -  wait 1888 ms (throttle)\n"
                " 2010 ms  200  done\n");
    CHECK_TRACE(run(&s, &brief, &with, ones(), ""),
                " 2010 ms  -  give up (deadline)\n");
}

/* Whatever it holds while it waits, it gives back: what it paid to two budgets,
 * with a rate limit before the bulkhead or without. */
TEST(retry, gives_back_what_it_paid_when_it_finds_no_place)
{
    static const char *const rates[] = {"", " rate=10/s"};

    for (size_t i = 0; i < 2; i++) {
        char text[128];
        stg_policy p;
        stg_budget shared;
        stg_outcome failure = stg_answered(503);
        stg_rng rng = zeros();
        stg_retry busy, r;
        stg_peer peer;
        stg_with with = {.peer = &peer, .shared_budget = &shared};

        snprintf(text, sizeof text,
                 "fixed base=2s jitter=none bulkhead=1:64ms "
                 "budget=ratio:1%s",
                 rates[i]);
        p = parse(text);
        peer = peer_of(&p);
        CHECK_INT(stg_budget_init(&shared, &p.budget), STG_OK);
        CHECK_INT(admit_at(&r, &p, &with, STG_S).next, STG_GO);
        CHECK_INT(stg_retry_step(&r, &failure, STG_S, &rng).next, STG_WAIT);
        CHECK_INT(admit_at(&busy, &p, &with, 2 * STG_S).next, STG_GO);
        CHECK_U64(stg_budget_left(&shared, 3 * STG_S), 1000);
        CHECK_INT(stg_retry_admit(&r, 3 * STG_S, &rng).why, STG_WHY_BULKHEAD);
        CHECK_INT(stg_retry_admit(&r, 4 * STG_S, &rng).next, STG_GIVE_UP);
        CHECK_U64(stg_budget_left(&shared, 4 * STG_S), 2000);
        CHECK_U64(stg_budget_left(&peer.budget, 4 * STG_S), 2000);
    }
}

/* A wait for the bulkhead spends the place of the rate limit that came before
 * it: it is not asked for a second one. */
TEST(retry, waits_for_the_rate_and_then_for_the_bulkhead)
{
    stg_policy p = parse("fixed base=1s attempts=1 rate=10/s bulkhead=1:1s");
    stg_peer peer = peer_of(&p);
    stg_with with = {.peer = &peer};
    stg_outcome ok = stg_ok();
    stg_rng rng = zeros();
    stg_retry busy, r;
    stg_decision d;

    CHECK_INT(admit_at(&busy, &p, &with, 0).next, STG_GO);
    d = admit_at(&r, &p, &with, 0);
    CHECK_INT(d.why, STG_WHY_GATE);
    CHECK_U64(d.due_at, 100 * STG_MS);
    d = stg_retry_admit(&r, d.due_at, &rng);
    CHECK_INT(d.why, STG_WHY_BULKHEAD);
    CHECK_U64(d.due_at, 162500 * STG_US);
    stg_retry_step(&busy, &ok, 120 * STG_MS, &rng);
    CHECK_INT(stg_retry_admit(&r, d.due_at, &rng).next, STG_GO);
    CHECK_INT(admit_at(&busy, &p, &with, d.due_at).why, STG_WHY_GATE);
    CHECK_INT(stg_retry_cancel(&busy, d.due_at).why, STG_WHY_CANCELLED);
    CHECK_INT(stg_retry_step(&r, &ok, 190 * STG_MS, &rng).next, STG_DONE);
    CHECK_INT(admit_at(&busy, &p, &with, 200 * STG_MS).next, STG_GO);
    // Refused at once, it has its place of the rate limit back.
    p = parse("fixed base=1s attempts=1 rate=10/s bulkhead=1");
    peer = peer_of(&p);
    CHECK_INT(admit_at(&busy, &p, &with, 0).next, STG_GO);
    CHECK_INT(admit_at(&r, &p, &with, 100 * STG_MS).why, STG_WHY_BULKHEAD);
    CHECK(stg_limiter_take(&peer.limiter, 100 * STG_MS, NULL));
}

/* The place is taken before the breaker is asked; what is refused then begins
 * its next wait anew. */
TEST(retry, leaves_the_bulkhead_when_the_breaker_refuses_it)
{
    stg_policy p = parse("fixed base=1s attempts=1 bulkhead=1 breaker=1:10s");
    stg_peer peer = peer_of(&p);
    stg_with with = {.peer = &peer};
    stg_outcome failure = stg_answered(503);
    stg_rng rng = zeros();
    stg_retry r;

    CHECK_INT(admit_at(&r, &p, &with, 0).next, STG_GO);
    CHECK_INT(stg_retry_step(&r, &failure, 0, &rng).next, STG_GIVE_UP);
    CHECK_INT(admit_at(&r, &p, &with, 0).why, STG_WHY_CIRCUIT_OPEN);
    CHECK_U64(stg_bulkhead_taken(&peer.bulkhead), 0);
}

TEST(retry, gives_everything_back_when_it_is_cancelled)
{
    stg_policy p = parse("fixed base=1s jitter=none budget=1:0.001/s");
    stg_peer peer = peer_of(&p);
    stg_cancel cancel = {0};
    stg_budget shared;
    stg_with with = {
        .peer = &peer, .cancel = &cancel, .shared_budget = &shared};
    stg_outcome o = stg_answered(503);
    stg_rng rng = zeros();
    stg_retry r;

    CHECK_INT(stg_budget_init(&shared, &p.budget), STG_OK);
    stg_peer_limit(&peer, 1, 1, NULL); // one at once, then every 1000 s
    stg_retry_start(&r, &p, &with, 0);
    CHECK_INT(stg_retry_admit(&r, 0, &rng).next, STG_GO);
    CHECK_INT(stg_retry_step(&r, &o, 0, &rng).next, STG_WAIT);
    CHECK_U64(stg_budget_left(&peer.budget, 0), 0);
    cancel.is_set = 1;
    CHECK_INT(stg_retry_admit(&r, STG_S, &rng).why, STG_WHY_CANCELLED);
    CHECK_U64(stg_budget_left(&peer.budget, 0), 1000);
    CHECK_U64(stg_budget_left(&shared, 0), 1000);

    cancel.is_set = 0; // and in a wait for the gate
    p = parse("fixed base=1s jitter=none budget=1:0.001/s deadline=none");
    stg_retry_start(&r, &p, &with, STG_S);
    CHECK_INT(stg_retry_admit(&r, STG_S, &rng).why, STG_WHY_GATE);
    CHECK_INT(stg_retry_cancel(&r, 2 * STG_S).why, STG_WHY_CANCELLED);
    CHECK_INT(stg_retry_cancel(&r, 2 * STG_S).why, STG_WHY_CANCELLED);
    CHECK(stg_limiter_take(&peer.limiter, 1000 * STG_S, NULL));
}

/* A ratio counts by the second: back goes what was paid with the decision. */
TEST(retry, gives_back_what_it_paid_when_it_paid_it)
{
    stg_policy p = parse("fixed base=1s jitter=none budget=ratio:0+0.1/s");
    stg_peer peer = peer_of(&p);
    stg_outcome o = stg_answered(503);
    stg_rng rng = zeros();
    stg_retry r;

    stg_retry_start(&r, &p, &(stg_with){.peer = &peer}, 0);
    stg_retry_admit(&r, 0, &rng);
    CHECK_INT(stg_retry_step(&r, &o, 5 * STG_S, &rng).next, STG_WAIT);
    CHECK_U64(stg_budget_left(&peer.budget, 5 * STG_S), 0);
    stg_retry_cancel(&r, 6 * STG_S);
    CHECK_U64(stg_budget_left(&peer.budget, 6 * STG_S), 1000);
}

TEST(retry, keeps_what_it_has_spent_when_it_is_cancelled_in_an_attempt)
{
    stg_policy p = parse("fixed base=1s jitter=none budget=5:0.001/s");
    stg_peer peer = peer_of(&p);
    stg_outcome o = stg_answered(503);
    stg_rng rng = zeros();
    stg_retry r;

    stg_retry_start(&r, &p, &(stg_with){.peer = &peer}, 0);
    stg_retry_admit(&r, 0, &rng);
    stg_retry_step(&r, &o, 0, &rng);
    CHECK_INT(stg_retry_admit(&r, STG_S, &rng).next, STG_GO);
    stg_retry_cancel(&r, STG_S);
    CHECK_U64(stg_budget_left(&peer.budget, 0), 4000);
}

TEST(retry, succeeds_although_it_was_cancelled_meanwhile)
{
    stg_policy p = parse("client");
    stg_cancel cancel = {0};
    stg_with with = {.cancel = &cancel};
    stg_outcome o = stg_ok(), failure = stg_answered(503);
    stg_rng rng = zeros();
    stg_retry r;

    stg_retry_start(&r, &p, &with, 0);
    stg_retry_admit(&r, 0, &rng);
    cancel.is_set = 1;
    CHECK_INT(stg_retry_step(&r, &o, 0, &rng).next, STG_DONE);
    cancel.is_set = 0;
    stg_retry_start(&r, &p, &with, 0);
    stg_retry_admit(&r, 0, &rng);
    cancel.is_set = 1;
    CHECK_INT(stg_retry_step(&r, &failure, 0, &rng).why, STG_WHY_CANCELLED);
    stg_retry_start(&r, &p, &with, 0);
    CHECK_INT(stg_retry_admit(&r, 0, &rng).why, STG_WHY_CANCELLED);
}

/* -- the door */

TEST(retry, refuses_what_it_cannot_use_and_says_why)
{
    stg_policy p = parse("backend"), client = parse("client"), zeroed = {0};
    stg_policy breaker = parse("client breaker=5");
    stg_policy other_breaker = parse("client breaker=6");
    stg_policy rate = parse("client rate=50/s");
    stg_policy bulkhead = parse("client bulkhead=5");
    stg_policy throttle = parse("client throttle=aws");
    stg_peer peer = peer_of(&breaker), empty = {0};
    stg_budget no_budget = {.options = {.kind = STG_BUDGET_NONE}};
    stg_rng rng = zeros();
    stg_outcome o = stg_ok();
    const struct {
        const stg_policy *policy;
        stg_with with;
        const char *flaw;
    } calls[] = {
        {NULL, {0}, "the policy is NULL"},
        {&zeroed,
         {0},
         "the policy is zeroed: start from a text or "
         "stg_policy_default()"},
        {&p,
         {0},
         "the policy needs a peer, see stg_policy_needs_peer(), and "
         "with.peer is NULL"},
        {&breaker,
         {0},
         "the policy needs a peer, see stg_policy_needs_peer(), and "
         "with.peer is NULL"},
        {&rate,
         {0},
         "the policy needs a peer, see stg_policy_needs_peer(), and "
         "with.peer is NULL"},
        {&rate,
         {.peer = &peer},
         "with.peer was made for another rate than the policy's: they must be "
         "equal, or the policy's none"},
        {&bulkhead,
         {0},
         "the policy needs a peer, see stg_policy_needs_peer(), and "
         "with.peer is NULL"},
        {&bulkhead,
         {.peer = &peer},
         "with.peer was made for another bulkhead than the policy's: they must "
         "be equal, or the policy's none"},
        {&throttle,
         {.peer = &peer},
         "with.peer was made for another throttle than the policy's: they must "
         "be equal, or the policy's none"},
        {&p,
         {.peer = &peer},
         "with.peer was made for another budget than the policy's: they must "
         "be equal, or the policy's none"},
        {&other_breaker,
         {.peer = &peer},
         "with.peer was made for another breaker than the policy's: they must "
         "be equal, or the policy's none"},
        {&client,
         {.peer = &empty},
         "with.peer was not made by stg_peer_init()"},
        {&client,
         {.shared_budget = &no_budget},
         "with.shared_budget was not made by stg_budget_init(), or is none"},
    };

    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        stg_retry r;

        CHECK_INT(stg_retry_start(&r, calls[i].policy, &calls[i].with, 0),
                  STG_INVALID);
        CHECK_STR(stg_retry_flaw(&r), calls[i].flaw);
        CHECK_INT(stg_retry_admit(&r, 0, &rng).next, STG_GIVE_UP);
        CHECK_INT(stg_retry_admit(&r, 0, &rng).why, STG_WHY_INVALID);
        CHECK_INT(stg_retry_step(&r, &o, 0, &rng).why, STG_WHY_INVALID);
        CHECK_INT(stg_retry_cancel(&r, 0).why, STG_WHY_INVALID);
        CHECK_U64(stg_retry_timeout(&r, 0), 0);
        CHECK_INT(r.attempts, 0);
        if (calls[i].with.peer == NULL && calls[i].policy != &zeroed &&
            calls[i].policy != NULL && calls[i].with.shared_budget == NULL)
            continue; // it may go on without its peer
        CHECK_INT(stg_retry_resume(&r, calls[i].policy, &calls[i].with,
                                   &(stg_progress){.attempts = 1}, 0, 0),
                  STG_INVALID);
        CHECK_STR(stg_retry_flaw(&r), calls[i].flaw);
    }
    CHECK_INT(stg_retry_start(NULL, &p, NULL, 0), STG_INVALID);
}

TEST(retry, refuses_to_go_on_with_what_was_never_started)
{
    stg_retry zeroed = {0}, *both[] = {&zeroed, NULL};
    stg_outcome o = stg_ok();
    stg_rng rng = zeros();

    for (int i = 0; i < 2; i++) {
        CHECK_INT(stg_retry_admit(both[i], 0, &rng).why, STG_WHY_INVALID);
        CHECK_INT(stg_retry_step(both[i], &o, 0, &rng).why, STG_WHY_INVALID);
        CHECK_INT(stg_retry_cancel(both[i], 0).why, STG_WHY_INVALID);
        CHECK_INT(stg_retry_cancel(both[i], 0).next, STG_GIVE_UP);
        CHECK_U64(stg_retry_timeout(both[i], 0), 0);
        CHECK_STR(stg_retry_flaw(both[i]), "the operation was not started");
    }
}

TEST(retry, answers_calls_out_of_turn_without_a_change)
{
    stg_policy p = parse("client jitter=none");
    stg_outcome failure = stg_answered(503), success = stg_ok();
    stg_rng rng = zeros();
    stg_retry r;

    CHECK_INT(stg_retry_start(&r, &p, NULL, 0), STG_OK);
    CHECK_STR(stg_retry_flaw(&r), "");
    CHECK_INT(stg_retry_step(&r, &success, 0, &rng).why, STG_WHY_INVALID);
    CHECK_INT(stg_retry_admit(&r, 0, &rng).next, STG_GO);
    CHECK_INT(stg_retry_admit(&r, 0, &rng).next, STG_GO);
    CHECK_INT(r.attempts, 1);
    CHECK_INT(stg_retry_step(&r, &failure, 0, &rng).next, STG_WAIT);
    CHECK_INT(stg_retry_step(&r, &success, 0, &rng).next, STG_GIVE_UP);
    CHECK_INT(stg_retry_admit(&r, STG_S, &rng).next, STG_GO);
    CHECK_INT(stg_retry_step(&r, &success, STG_S, &rng).next, STG_DONE);
    CHECK_INT(stg_retry_step(&r, &failure, STG_S, &rng).next, STG_DONE);
    CHECK_INT(stg_retry_admit(&r, STG_S, &rng).next, STG_DONE);
    CHECK_INT(stg_retry_cancel(&r, STG_S).next, STG_DONE);
    CHECK_INT(r.attempts, 2);
}

/* With nothing to ask, too. */
TEST(retry, is_over_after_its_success)
{
    stg_policy p = parse("attempts=unlimited deadline=none");
    stg_rng rng = stg_rng_seed(1);
    stg_outcome ok = stg_ok(), failed = stg_failed(STG_FAULT_RESET);
    stg_retry r;

    CHECK_INT(stg_retry_start(&r, &p, NULL, 0), STG_OK);
    CHECK_INT(stg_retry_admit(&r, 0, &rng).next, STG_GO);
    CHECK_INT(stg_retry_step(&r, &ok, 1, &rng).next, STG_DONE);
    CHECK_INT(stg_retry_step(&r, &failed, 2, &rng).next, STG_DONE);
    CHECK_INT(stg_retry_admit(&r, 3, &rng).next, STG_DONE);
}

TEST(retry, reads_no_outcome_as_an_unclassified_error)
{
    stg_policy p = parse("client retry=error");
    stg_rng rng = zeros();
    stg_retry r;

    stg_retry_start(&r, &p, NULL, 0);
    stg_retry_admit(&r, 0, &rng);
    CHECK_INT(stg_retry_step(&r, NULL, 0, &rng).next, STG_WAIT);
}

TEST(retry, limits_an_attempt_by_its_timeout_and_the_time_left)
{
    stg_policy p = parse("client attempt-timeout=10s deadline=15s");
    stg_retry r;

    stg_retry_start(&r, &p, NULL, STG_S);
    CHECK_U64(stg_retry_timeout(&r, STG_S), 10 * STG_S);
    CHECK_U64(stg_retry_timeout(&r, 8 * STG_S), 8 * STG_S);
    CHECK_U64(stg_retry_timeout(&r, 20 * STG_S), 0);
    p = parse("client deadline=none");
    stg_retry_start(&r, &p, NULL, STG_S);
    CHECK_U64(stg_retry_timeout(&r, 2 * STG_S), STG_NEVER);
}

TEST(retry, fits_into_64_bytes)
{
    CHECK(sizeof(stg_retry) <= 64);
}

/* -- events */

typedef struct listener {
    char text[2048];
    size_t length;
} listener;

static void listen(void *ctx, const stg_event *e)
{
    static const char *const kinds[] = {"attempt", "decision", "end"};
    static const char *const nexts[] = {"go", "wait", "done", "give up"};
    listener *l = ctx;
    char name[STG_CAUSE_MAX] = "-";

    if (e->outcome != NULL)
        stg_outcome_name(e->outcome, name);
    l->length += (size_t)snprintf(
        l->text + l->length, sizeof l->text - l->length,
        "%" PRIu64 " %s %" PRIu32 " %s %s (%s)\n", e->at / STG_MS,
        kinds[e->kind], e->retry->attempts, name, nexts[e->decision.next],
        stg_why_name(e->decision.why));
}

TEST(retry, tells_its_hook_each_attempt_decision_and_end)
{
    stg_policy p =
        parse("fixed base=100ms jitter=none attempts=3 breaker=2:1s");
    stg_peer peer = peer_of(&p);
    listener l = {.length = 0};
    stg_hook hook = {.on = listen, .ctx = &l}, silent = {.on = NULL};
    stg_with with = {.peer = &peer, .hook = &hook};
    story s = {.now = 0};

    run(&s, &p, &with, ones(), "503 200");
    CHECK_TRACE(l.text,
                "0 attempt 1 - go (done)\n"
                "0 decision 1 503 wait (backoff)\n"
                "100 attempt 2 - go (done)\n"
                "100 decision 2 ok done (done)\n"
                "100 end 2 ok done (done)\n");
    l.length = 0;
    run(&s, &p, &with, ones(), "503 503");
    CHECK_TRACE(l.text,
                "100 attempt 1 - go (done)\n"
                "100 decision 1 503 wait (backoff)\n"
                "200 attempt 2 - go (done)\n"
                "200 decision 2 503 wait (backoff)\n"
                "300 decision 3 circuit-open give up (circuit-open)\n"
                "300 end 3 circuit-open give up (circuit-open)\n");
    with.hook = &silent;
    s.now = STG_HOUR;
    run(&s, &p, &with, ones(), "200");
}

/* Without a deadline, what is left of the optional things is still seen. */
TEST(retry, asks_whatever_watches_it_without_a_deadline)
{
    stg_policy p = parse("client deadline=none jitter=none");
    stg_budget_options options = {.kind = STG_BUDGET_RATIO, .ratio = 1000};
    stg_cancel cancel = {0};
    stg_budget shared;
    listener l = {.length = 0};
    stg_hook hook = {.on = listen, .ctx = &l};
    story s = {.now = 0};

    run(&s, &p, &(stg_with){.hook = &hook}, ones(), "200");
    CHECK_TRACE(l.text,
                "0 attempt 1 - go (done)\n"
                "0 decision 1 ok done (done)\n"
                "0 end 1 ok done (done)\n");
    CHECK_INT(stg_budget_init(&shared, &options), STG_OK);
    run(&s, &p, &(stg_with){.shared_budget = &shared}, ones(), "200");
    CHECK_U64(stg_budget_left(&shared, 0), 1000);
    cancel.is_set = 1;
    CHECK_TRACE(run(&s, &p, &(stg_with){.cancel = &cancel}, ones(), ""),
                "    0 ms  -  give up (cancelled)\n");
    CHECK_TRACE(run(&s, &p, NULL, ones(), "503 503 200"),
                "    0 ms  503  wait 1000 ms (backoff)\n"
                " 1000 ms  503  wait 2000 ms (backoff)\n"
                " 3000 ms  200  done\n");
}

TEST(retry, tells_its_hook_of_gates_and_cancels)
{
    stg_policy p = parse("client");
    stg_peer peer = peer_of(&p);
    listener l = {.length = 0};
    stg_hook hook = {.on = listen, .ctx = &l};
    stg_with with = {.peer = &peer, .hook = &hook};
    stg_rng rng = zeros();
    stg_retry r;

    stg_peer_limit(&peer, 1000, 1, NULL);
    CHECK(stg_limiter_take(&peer.limiter, 0, NULL));
    stg_retry_start(&r, &p, &with, 0);
    stg_retry_admit(&r, 0, &rng);
    stg_retry_cancel(&r, 10 * STG_MS);
    CHECK_TRACE(l.text,
                "0 decision 0 - wait (gate)\n"
                "10 end 0 - give up (cancelled)\n");
}

/* -- properties */

/* Random operations against a model: the bounds of L4, and the state stays
 * sound, with hostile generators too (L5). */
TEST(retry, l2_l4_l5_stops_within_its_attempts_and_deadline)
{
    static const char *const policies[] = {
        "client",
        "interactive",
        "unjittered",
        "webhook breaker=none",
        "none",
        "fixed base=1s jitter=50% attempts=7 deadline=10s",
        "linear base=1s cap=5s jitter=equal attempts=20 deadline=30s",
        "base=1s cap=1m jitter=decorrelated attempts=unlimited deadline=5m",
        "base=1ns cap=none factor=100 attempts=4294967295 deadline=365d"};

    for (uint64_t seed = 0; seed < seeds(20000); seed++) {
        stg_rng rng = stg_rng_seed(seed), draw = stg_rng_seed(seed + 1);
        stg_policy p = parse(policies[seed % 9]);
        stg_ns now = stg_rng_upto(&rng, STG_DAY), start = now;
        stg_retry r;
        stg_decision d;
        uint64_t count = 0;

        stg_retry_start(&r, &p, NULL, now);
        do {
            static const int statuses[] = {500, 503, 429, 200, 404};
            stg_outcome o = stg_answered(
                statuses[stg_rng_upto(&rng, 4) * (stg_rng_upto(&rng, 9) == 0)]);

            if (seed % 3 == 0)
                draw = ones();
            else if (seed % 3 == 1)
                draw = zeros();
            d = stg_retry_admit(&r, now, &draw);
            CHECK_FROM(seed, d.next == STG_GO);
            count++;
            now += stg_rng_upto(&rng, 100 * STG_MS);
            o.delay =
                stg_rng_upto(&rng, 4) == 0 ? stg_rng_upto(&rng, STG_S) : 0;
            d = stg_retry_step(&r, &o, now, &draw);
            if (d.next == STG_WAIT) {
                CHECK_FROM(seed, d.due_at >= stg_ns_add(now, o.delay));
                CHECK_FROM(seed, d.due_at < stg_ns_add(start, p.deadline));
                now = d.due_at;
            }
        } while (d.next == STG_WAIT && count < 5000);
        CHECK_FROM(seed, count <= p.attempts_max);
        CHECK_FROM(seed, count == r.attempts);
        CHECK_FROM(seed, d.why != STG_WHY_ATTEMPTS || count == p.attempts_max);
    }
}

TEST(retry, l1_decides_the_same_from_the_same)
{
    for (uint64_t seed = 0; seed < seeds(2000); seed++) {
        stg_rng rng = stg_rng_seed(seed), again = rng;
        stg_policy p = parse("interactive at-most=3:503");
        stg_outcome o = stg_answered(503);
        stg_retry r, twin;
        stg_decision d, e;

        stg_retry_start(&r, &p, NULL, seed);
        stg_retry_admit(&r, seed, &rng);
        twin = r;
        again = rng;
        d = stg_retry_step(&r, &o, seed, &rng);
        e = stg_retry_step(&twin, &o, seed, &again);
        CHECK_FROM(seed, d.next == e.next && d.due_at == e.due_at &&
                             d.why == e.why &&
                             memcmp(&r, &twin, sizeof r) == 0);
    }
}

TEST(retry, l2_counts_to_the_last_attempt_and_stays_there)
{
    stg_policy p =
        parse("attempts=4294967295 base=0 deadline=none jitter=none");
    stg_policy unlimited =
        parse("attempts=unlimited base=0 deadline=none jitter=none");
    stg_outcome o = stg_answered(503);
    stg_rng rng = zeros();
    stg_retry r;

    stg_retry_start(&r, &p, NULL, 0);
    r.attempts = UINT32_MAX - 2;
    CHECK_INT(stg_retry_admit(&r, 0, &rng).next, STG_GO);
    CHECK_INT(stg_retry_step(&r, &o, 0, &rng).next, STG_WAIT);
    CHECK_INT(stg_retry_admit(&r, 0, &rng).next, STG_GO);
    CHECK_INT(stg_retry_step(&r, &o, 0, &rng).why, STG_WHY_ATTEMPTS);

    stg_retry_start(&r, &unlimited, NULL, 0);
    r.attempts = UINT32_MAX - 1;
    for (int i = 0; i < 5; i++) {
        CHECK_INT(stg_retry_admit(&r, 0, &rng).next, STG_GO);
        CHECK_INT(stg_retry_step(&r, &o, 0, &rng).next, STG_WAIT);
        CHECK_U64(r.attempts, UINT32_MAX);
    }
}

/* -- saved, and gone on with ----------------------------------------------- */

/* L1: whoever goes on where it was saved decides as if it had never been. */
TEST(retry, goes_on_where_it_was_saved)
{
    static const char *const texts[] = {
        "exponential base=100ms cap=5s jitter=full attempts=7 deadline=1m",
        "fixed base=1s jitter=decorrelated cap=9s attempts=5 once=timeout",
        "linear base=1s jitter=20% attempts=6 deadline=none reset-after=2s",
    };

    for (uint64_t seed = 0; seed < seeds(300); seed++) {
        stg_policy p = policy_of(texts[seed % 3]);
        stg_rng chance = stg_rng_seed(seed), one = stg_rng_seed(seed + 1);
        stg_rng other = one;
        stg_with with = {.has_key = true};
        stg_ns now = STG_S, attempt_at = now, began_at = now;
        stg_retry whole, parted;
        stg_decision d;

        CHECK(stg_retry_start(&whole, &p, &with, now) == STG_OK);
        do {
            stg_outcome o = stg_rng_upto(&chance, 2) == 0
                                ? stg_failed(STG_FAULT_TIMEOUT)
                                : stg_answered(503);
            stg_progress progress;
            stg_decision again;

            stg_retry_admit(&whole, now, &one);
            attempt_at = now;
            stg_retry_save(&whole, &progress);
            now += stg_rng_upto(&chance, 3 * STG_S);
            CHECK(stg_retry_resume(&parted, &p, &with, &progress, began_at,
                                   attempt_at) == STG_OK);
            d = stg_retry_step(&whole, &o, now, &one);
            again = stg_retry_step(&parted, &o, now, &other);
            CHECK_FROM(seed, d.next == again.next && d.why == again.why &&
                                 d.due_at == again.due_at);
            // A new series has another deadline.
            if (whole.attempts < progress.attempts)
                began_at = now;
            now = d.due_at;
        } while (d.next == STG_WAIT);
    }
}

TEST(retry, resumes_without_a_peer_and_leaves_the_budget_to_the_caller)
{
    stg_policy p = policy_of("attempts=3 budget=tokens:1:1/s breaker=1:1s");
    stg_progress progress = stg_progress_begin(&p);
    stg_outcome o = stg_answered(503);
    stg_rng rng = stg_rng_seed(1);
    stg_retry r;

    CHECK(stg_retry_start(&r, &p, NULL, 0) == STG_INVALID);
    progress.attempts = 2;
    CHECK(stg_retry_resume(&r, &p, NULL, &progress, 0, 0) == STG_OK);
    CHECK(stg_retry_step(&r, &o, 0, &rng).next == STG_WAIT);
    stg_retry_save(&r, &progress);
    CHECK_U64(progress.attempts, 2);
    progress.attempts = 3;
    CHECK(stg_retry_resume(&r, &p, NULL, &progress, 0, 0) == STG_OK);
    CHECK(stg_retry_step(&r, &o, 0, &rng).why == STG_WHY_ATTEMPTS);
}

TEST(retry, resumes_without_a_peer_and_leaves_the_breaker_to_the_caller)
{
    stg_policy p = policy_of("attempts=3 jitter=none breaker=1:1s");
    stg_progress progress = {.last = STG_MS, .attempts = 1};
    stg_outcome o = stg_answered(503);
    stg_rng rng = stg_rng_seed(1);
    stg_decision d;
    stg_retry r;

    CHECK(stg_retry_resume(&r, &p, NULL, &progress, 0, 0) == STG_OK);
    d = stg_retry_step(&r, &o, 0, &rng);
    CHECK(d.next == STG_WAIT);
    CHECK(stg_retry_admit(&r, d.due_at, &rng).next == STG_GO);
    CHECK(stg_retry_step(&r, &o, d.due_at, &rng).next == STG_WAIT);
    CHECK(stg_retry_cancel(&r, d.due_at).why == STG_WHY_CANCELLED);
}

TEST(retry, draws_the_longest_wait_without_a_generator)
{
    stg_policy p = policy_of("attempts=3 jitter=full base=1s");
    stg_outcome o = stg_answered(503);
    stg_retry r;

    CHECK(stg_retry_start(&r, &p, NULL, 0) == STG_OK);
    CHECK(stg_retry_admit(&r, 0, NULL).next == STG_GO);
    CHECK_U64(stg_retry_step(&r, &o, 0, NULL).due_at, STG_S);
}

TEST(retry, does_not_resume_what_never_began)
{
    stg_policy p = policy_of("attempts=3"), zeroed = {.attempts_max = 0};
    stg_progress progress = stg_progress_begin(&p);
    stg_retry r;

    CHECK(stg_retry_resume(&r, &p, NULL, &progress, 0, 0) == STG_INVALID);
    CHECK_STR(stg_retry_flaw(&r), "the progress to resume has no attempt");
    CHECK(stg_retry_resume(&r, NULL, NULL, &progress, 0, 0) == STG_INVALID);
    CHECK(stg_retry_resume(&r, &zeroed, NULL, &progress, 0, 0) == STG_INVALID);
    CHECK(stg_retry_resume(NULL, &p, NULL, &progress, 0, 0) == STG_INVALID);
}
