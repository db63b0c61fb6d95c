#include <stagger/call.h>

#include <pthread.h>

#include <stagger/loop.h>

#include "tests/adapters/story.h"
#include "tests/harness.h"

static stg_outcome play(void *ctx)
{
    return story_attempt(ctx);
}

/* The trace of a script under the policy of a text, and then the report. */
static const char *trace(const char *text, const char *script)
{
    static story s;
    stg_policy policy = policy_of(text);
    stg_report report;
    char sentence[STG_REPORT_TEXT_MAX];
    bool done;

    story_begin(&s, script);
    done = stg_call(&policy, &(stg_with){.env = &s.env}, play, &s, &report);
    CHECK_INT(done, report.next == STG_DONE);
    story_say(&s, "%s", stg_report_text(&report, sentence));
    return s.trace;
}

TEST(call, calls_until_it_succeeds)
{
    CHECK_TRACE(trace("base=100ms jitter=none", "503 +20ms 503 200"),
                "     0 ms  503\n"
                "   120 ms  503\n"
                "   320 ms  200\n"
                "   320 ms  done after 3 attempts in 320 ms\n");
}

TEST(call, calls_until_the_policy_gives_up)
{
    CHECK_TRACE(trace("fixed base=1s jitter=none attempts=2", "503 reset"),
                "     0 ms  503\n"
                "  1000 ms  reset\n"
                "  1000 ms  gave up after 2 attempts in 1 s: reset "
                "(attempts)\n");
    CHECK_TRACE(trace("client", "404"),
                "     0 ms  404\n"
                "     0 ms  gave up after 1 attempt: 404 (permanent)\n");
}

/* -- fallbacks */

typedef struct answerer {
    story *story;
    bool has_answer;
    int calls;
} answerer;

static bool answer(void *ctx, const stg_report *report)
{
    answerer *s = ctx;
    char sentence[STG_REPORT_TEXT_MAX];

    s->calls++;
    story_say(s->story, "asked: %s", stg_report_text(report, sentence));
    CHECK(!report->fell_back);
    return s->has_answer;
}

TEST(call, is_answered_by_its_fallback_when_it_gives_up)
{
    stg_policy policy = policy_of("fixed base=1s jitter=none attempts=2");
    stg_report report;
    story s;
    answerer spare = {.story = &s, .has_answer = true};
    stg_fallback fallback = {.answer = answer, .ctx = &spare};
    char sentence[STG_REPORT_TEXT_MAX];

    story_begin(&s, "503 reset 200 404 503 503");
    stg_with with = {.env = &s.env, .hook = &s.hook, .fallback = &fallback};

    CHECK(stg_call(&policy, &with, play, &s, &report));
    CHECK_INT(report.next, STG_GIVE_UP);
    CHECK_INT(report.why, STG_WHY_ATTEMPTS);
    CHECK(report.fell_back);
    story_say(&s, "%s", stg_report_text(&report, sentence));
    CHECK_TRACE(s.trace,
                "     0 ms  | attempt, -: go\n"
                "     0 ms  503\n"
                "     0 ms  | decision, 503: wait 1 s (backoff)\n"
                "  1000 ms  | attempt, -: go\n"
                "  1000 ms  reset\n"
                "  1000 ms  | decision, reset: give up (attempts)\n"
                "  1000 ms  | end, reset: give up (attempts)\n"
                "  1000 ms  asked: gave up after 2 attempts in 1 s: reset "
                "(attempts)\n"
                "  1000 ms  | fallback, reset: give up (attempts)\n"
                "  1000 ms  gave up after 2 attempts in 1 s: reset (attempts); "
                "the fallback answered\n");

    with.hook = NULL;
    CHECK(stg_call(&policy, &with, play, &s, &report)); // a success: not asked
    CHECK(!report.fell_back);
    CHECK_INT(spare.calls, 1);
    CHECK(stg_call(&policy, &with, play, &s, &report));
    CHECK_INT(report.why, STG_WHY_PERMANENT);
    CHECK(report.fell_back);
    spare.has_answer = false;
    CHECK(!stg_call(&policy, &with, play, &s, &report));
    CHECK(!report.fell_back);
    CHECK_INT(spare.calls, 3);
}

/* Without an attempt, too; but not where the caller cancels, or calls wrongly. */
TEST(call, falls_back_where_it_was_refused_and_not_where_it_was_cancelled)
{
    stg_policy policy = policy_of("fixed base=1s attempts=2 bulkhead=1");
    stg_policy other = policy_of("backend");
    stg_peer peer = peer_of(&policy);
    stg_report report;
    story s;
    answerer spare = {.story = &s, .has_answer = true};
    stg_fallback fallback = {.answer = answer, .ctx = &spare}, none = {0};

    story_begin(&s, "cancel 503 503 503");
    stg_with with = {.env = &s.env, .peer = &peer, .fallback = &fallback};

    CHECK(stg_bulkhead_enter(&peer.bulkhead));
    CHECK(stg_call(&policy, &with, play, &s, &report));
    CHECK_INT(report.why, STG_WHY_BULKHEAD);
    CHECK(report.fell_back);
    CHECK_INT(report.attempts, 0);
    stg_bulkhead_leave(&peer.bulkhead);
    CHECK_INT(spare.calls, 1);

    with.cancel = &s.cancel;
    CHECK(!stg_call(&policy, &with, play, &s, &report));
    CHECK_INT(report.why, STG_WHY_CANCELLED);
    with.cancel = NULL;
    CHECK(!stg_call(&other, &with, play, &s, &report));
    CHECK_INT(report.why, STG_WHY_INVALID);
    CHECK_INT(spare.calls, 1);
    with.fallback = &none;
    CHECK(!stg_call(&policy, &with, play, &s, &report));
    CHECK(!report.fell_back);
}

TEST(call, asks_the_clock_once_and_nothing_else_when_it_succeeds_at_once)
{
    stg_policy policy = policy_of("client");
    story s;

    story_begin(&s, "200");
    CHECK(stg_call(&policy, &(stg_with){.env = &s.env}, play, &s, NULL));
    CHECK_INT(s.clocks, 1);
    CHECK_INT(s.draws, 0);
    CHECK_INT(s.sleeps, 0);
}

TEST(call, reports_its_numbers)
{
    stg_policy policy = policy_of("base=100ms jitter=none attempts=3");
    stg_report r;
    story s;

    story_begin(&s, "+5ms refused +5ms 502 +5ms 504");
    CHECK(!stg_call(&policy, &(stg_with){.env = &s.env}, play, &s, &r));
    CHECK_INT(r.next, STG_GIVE_UP);
    CHECK_INT(r.why, STG_WHY_ATTEMPTS);
    CHECK_INT(r.attempts, 3);
    CHECK_U64(r.waited, 300 * STG_MS);
    CHECK_U64(r.took, 315 * STG_MS);
    CHECK_INT(r.last.code, 504);
    CHECK(r.flaw == NULL);
}

static stg_outcome never(void *ctx)
{
    (void)ctx;
    harness_fail(__FILE__, __LINE__, "it was called");
}

static void check_refused(const stg_policy *policy, const stg_with *with,
                          stg_call_fn *fn, const char *flaw)
{
    stg_report r;

    CHECK(!stg_call(policy, with, fn, NULL, &r));
    CHECK(!stg_call(policy, with, fn, NULL, NULL));
    CHECK_INT(r.next, STG_GIVE_UP);
    CHECK_INT(r.why, STG_WHY_INVALID);
    CHECK_INT(r.attempts, 0);
    CHECK_STR(r.flaw, flaw);
}

TEST(call, never_calls_for_what_cannot_be_used)
{
    stg_policy backend = policy_of("backend"), broken = policy_of("broadcast");
    stg_policy client = policy_of("client"), zeroed = {0};
    stg_env half = {.sleep = stg_env_system()->sleep};

    check_refused(&backend, NULL, never,
                  "the policy needs a peer, see stg_policy_needs_peer(), and "
                  "with.peer is NULL");
    check_refused(&broken, &(stg_with){0}, never,
                  "the policy needs a peer, see stg_policy_needs_peer(), and "
                  "with.peer is NULL");
    check_refused(&zeroed, NULL, never,
                  "the policy is zeroed: start from a text or "
                  "stg_policy_default()");
    check_refused(NULL, NULL, never, "the policy is NULL");
    check_refused(&client, &(stg_with){.env = &half}, never,
                  "with.env has a clock without a sleep, or a sleep without a "
                  "clock");
    check_refused(&client, NULL, NULL, "the function to call is NULL");
}

TEST(call, needs_nothing_that_is_optional)
{
    stg_policy policy = policy_of("fixed base=0");
    story s;

    story_begin(&s, "503 200");
    CHECK(stg_call(&policy, NULL, play, &s, NULL));
    CHECK_INT(s.attempts, 2);
}

/* -- nested */

typedef struct nest {
    story *s;
    const stg_policy *inner;
    const stg_retry *seen;
} nest;

/* An attempt that is a call itself. */
static stg_outcome call_inside(void *ctx)
{
    nest *n = ctx;
    const stg_retry *around = stg_call_current();
    stg_report r;
    char text[STG_REPORT_TEXT_MAX];
    bool done;

    CHECK(around != NULL);
    n->seen = around;
    done = stg_call(n->inner, &(stg_with){.env = &n->s->env}, play, n->s, &r);
    CHECK(stg_call_current() == around);
    story_say(n->s, "inner: %s", stg_report_text(&r, text));
    return done ? stg_ok() : r.last;
}

static const char *nested(const char *outer_text, const char *inner_text,
                          const char *script)
{
    static story s;
    stg_policy outer = policy_of(outer_text), inner = policy_of(inner_text);
    nest n = {.s = &s, .inner = &inner};

    story_begin(&s, script);
    stg_call(&outer, &(stg_with){.env = &s.env}, call_inside, &n, NULL);
    CHECK(stg_call_current() == NULL);
    return s.trace;
}

TEST(call, makes_one_attempt_inside_another_call)
{
    CHECK_TRACE(nested("fixed base=1s jitter=none", "client", "503 503 200"),
                "     0 ms  503\n"
                "     0 ms  inner: gave up after 1 attempt: 503 (nested)\n"
                "  1000 ms  503\n"
                "  1000 ms  inner: gave up after 1 attempt: 503 (nested)\n"
                "  2000 ms  200\n"
                "  2000 ms  inner: done after 1 attempt\n");
}

TEST(call, makes_all_its_attempts_where_its_policy_says_full)
{
    CHECK_TRACE(nested("fixed base=1s jitter=none attempts=2",
                       "fixed base=10ms jitter=none attempts=2 nested=full",
                       "503 503 503 200"),
                "     0 ms  503\n"
                "    10 ms  503\n"
                "    10 ms  inner: gave up after 2 attempts in 10 ms: 503 "
                "(attempts)\n"
                "  1010 ms  503\n"
                "  1020 ms  200\n"
                "  1020 ms  inner: done after 2 attempts in 10 ms\n");
}

static stg_outcome look(void *ctx)
{
    const stg_retry *current = stg_call_current();

    CHECK(current != NULL);
    CHECK_U64(stg_retry_timeout(current, 0), 3 * STG_S);
    *(uint32_t *)ctx = current->attempts;
    return current->attempts < 3 ? stg_answered(503) : stg_ok();
}

TEST(call, shows_the_attempt_which_one_it_is)
{
    stg_policy policy = policy_of(
        "fixed base=0 deadline=none "
        "attempt-timeout=3s");
    uint32_t attempts = 0;

    CHECK(stg_call_current() == NULL);
    CHECK(stg_call(&policy, NULL, look, &attempts, NULL));
    CHECK_INT(attempts, 3);
    CHECK(stg_call_current() == NULL);
}

/* Three deep, each a call of the next. */
static stg_outcome dig(void *ctx)
{
    static const stg_retry *path[4];
    stg_policy policy = policy_of("none");
    int *depth = ctx;

    path[*depth] = stg_call_current();
    CHECK(path[*depth]->with->parent ==
          (*depth == 0 ? NULL : path[*depth - 1]));
    if (++*depth < 4)
        CHECK(stg_call(&policy, NULL, dig, ctx, NULL));
    CHECK(stg_call_current() == path[--*depth]);
    return stg_ok();
}

TEST(call, knows_the_innermost_call_at_any_depth)
{
    stg_policy policy = policy_of("none");
    int depth = 0;

    CHECK(stg_call(&policy, NULL, dig, &depth, NULL));
    CHECK(stg_call_current() == NULL);
}

/* A parent that is given, here an operation that is not around it, counts
 * instead of the one that is. */
static stg_outcome call_inside_a_loop(void *ctx)
{
    stg_policy policy = policy_of("none"), once = policy_of("fixed base=0");
    stg_loop loop;
    stg_report r;

    stg_loop_begin(&loop, &policy, &(stg_with){.parent = stg_call_current()});
    CHECK(stg_loop_again(&loop));
    CHECK(loop.op.retry.with->parent == stg_call_current());
    stg_call(&once, &(stg_with){.parent = &loop.op.retry}, play, ctx, &r);
    CHECK_INT(r.why, STG_WHY_NESTED);
    stg_loop_report(&loop, stg_ok());
    return stg_ok();
}

TEST(call, takes_the_parent_that_it_is_given)
{
    stg_policy policy = policy_of("client");
    story s;

    story_begin(&s, "503");
    CHECK(stg_call(&policy, NULL, call_inside_a_loop, &s, NULL));
    CHECK_INT(s.attempts, 1);
}

static stg_report run_loop(story *s, const stg_retry *parent)
{
    stg_policy policy = policy_of("fixed base=1s jitter=none");
    stg_loop r;

    stg_loop_begin(&r, &policy, &(stg_with){.env = &s->env, .parent = parent});
    while (stg_loop_again(&r))
        stg_loop_report(&r, story_attempt(s));
    return stg_loop_result(&r);
}

static stg_outcome loop_inside(void *ctx)
{
    stg_report r = run_loop(ctx, NULL);

    CHECK_INT(r.next, STG_DONE);
    CHECK_INT(r.attempts, 2);
    r = run_loop(ctx, stg_call_current());
    CHECK_INT(r.why, STG_WHY_NESTED);
    CHECK_INT(r.attempts, 1);
    return stg_ok();
}

TEST(call, has_no_loop_nested_in_it_that_is_not_told_so)
{
    stg_policy policy = policy_of("client");
    story s;

    story_begin(&s, "503 200 503");
    CHECK(stg_call(&policy, NULL, loop_inside, &s, NULL));
}

/* -- threads */

static void *call_elsewhere(void *ctx)
{
    stg_policy policy = policy_of("fixed base=0 jitter=none");
    stg_report r;

    CHECK(stg_call_current() == NULL);
    CHECK(stg_call(&policy, NULL, play, ctx, &r));
    CHECK_INT(r.attempts, 2);
    CHECK(stg_call_current() == NULL);
    return NULL;
}

static stg_outcome wait_for_thread(void *ctx)
{
    const stg_retry *around = stg_call_current();
    pthread_t thread;

    CHECK(pthread_create(&thread, NULL, call_elsewhere, ctx) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(stg_call_current() == around);
    return stg_ok();
}

TEST(call, is_nested_in_a_call_of_its_own_thread_only)
{
    stg_policy policy = policy_of("none");
    story s;

    story_begin(&s, "503 200");
    CHECK(stg_call(&policy, NULL, wait_for_thread, &s, NULL));
}
