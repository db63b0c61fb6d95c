#include <stagger/loop.h>

#include "tests/adapters/story.h"
#include "tests/harness.h"

/* Runs the script in a loop on the story's clock, and ends the trace with the
 * loop's own sentence. */
static stg_report play(story *s, const stg_policy *policy, stg_with with)
{
    stg_loop r;

    with.env = &s->env;
    stg_loop_begin(&r, policy, &with);
    while (stg_loop_again(&r))
        stg_loop_report(&r, story_attempt(s));
    CHECK(!stg_loop_again(&r));
    story_say(s, "%s", stg_loop_text(&r));
    return stg_loop_result(&r);
}

/* The trace of a script under the policy of a text. */
static const char *trace(const char *text, const char *script)
{
    static story s;
    stg_policy policy = policy_of(text);

    story_begin(&s, script);
    play(&s, &policy, (stg_with){0});
    return s.trace;
}

TEST(loop, makes_one_attempt_when_it_succeeds)
{
    CHECK_TRACE(trace("client", "200"),
                "     0 ms  200\n"
                "     0 ms  done after 1 attempt\n");
}

TEST(loop, waits_longer_after_each_failure)
{
    CHECK_TRACE(trace("base=100ms jitter=none attempts=5", "503 503 503 200"),
                "     0 ms  503\n"
                "   100 ms  503\n"
                "   300 ms  503\n"
                "   700 ms  200\n"
                "   700 ms  done after 4 attempts in 700 ms\n");
}

TEST(loop, counts_a_wait_from_the_end_of_an_attempt)
{
    CHECK_TRACE(trace("fixed base=100ms jitter=none", "+30ms 503 +50ms 200"),
                "    30 ms  503\n"
                "   180 ms  200\n"
                "   180 ms  done after 2 attempts in 180 ms\n");
}

/* Whatever its reason, a sleep that was left early ends the operation. */
static bool stay_awake(void *ctx, stg_ns until_at, const stg_cancel *cancel)
{
    (void)ctx;
    (void)until_at;
    (void)cancel;
    return false;
}

TEST(loop, is_cancelled_when_its_sleep_says_so)
{
    stg_policy policy = policy_of("fixed base=1s jitter=none");
    stg_loop l;
    story s;

    story_begin(&s, "503 503");
    s.env.sleep = stay_awake;
    stg_loop_begin(&l, &policy, &(stg_with){.env = &s.env});
    while (stg_loop_again(&l))
        stg_loop_report(&l, story_attempt(&s));
    CHECK_STR(stg_loop_text(&l), "gave up after 1 attempt: 503 (cancelled)");
}

TEST(loop, gives_up_when_all_attempts_are_made)
{
    CHECK_TRACE(trace("fixed base=1s jitter=none attempts=3",
                      "refused refused refused"),
                "     0 ms  refused\n"
                "  1000 ms  refused\n"
                "  2000 ms  refused\n"
                "  2000 ms  gave up after 3 attempts in 2 s: refused "
                "(attempts)\n");
}

TEST(loop, gives_up_at_once_on_what_is_not_retried)
{
    CHECK_TRACE(trace("client", "404"),
                "     0 ms  404\n"
                "     0 ms  gave up after 1 attempt: 404 (permanent)\n");
}

TEST(loop, gives_up_when_the_next_attempt_would_come_too_late)
{
    CHECK_TRACE(trace("base=100ms jitter=none attempts=9 deadline=500ms",
                      "503 +10ms 503 503"),
                "     0 ms  503\n"
                "   110 ms  503\n"
                "   310 ms  503\n"
                "   310 ms  gave up after 3 attempts in 310 ms: 503 "
                "(deadline)\n");
}

TEST(loop, keeps_the_deadline_of_its_caller_too)
{
    stg_policy policy = policy_of("fixed base=100ms jitter=none attempts=9");
    story s;

    story_begin(&s, "503 503 503");
    play(&s, &policy, (stg_with){.deadline_at = 250 * STG_MS});
    CHECK_TRACE(s.trace,
                "     0 ms  503\n"
                "   100 ms  503\n"
                "   200 ms  503\n"
                "   200 ms  gave up after 3 attempts in 200 ms: 503 "
                "(deadline)\n");

    story_begin(&s, "503 503");
    play(&s, &policy,
         (stg_with){.deadline_at = 250 * STG_MS, .expected = 60 * STG_MS});
    CHECK_TRACE(s.trace,
                "     0 ms  503\n"
                "   100 ms  503\n"
                "   100 ms  gave up after 2 attempts in 100 ms: 503 "
                "(deadline)\n");

    story_begin(&s, "");
    s.now = STG_S;
    play(&s, &policy, (stg_with){.deadline_at = STG_S});
    CHECK_TRACE(s.trace,
                "  1000 ms  gave up before the first attempt: the "
                "next attempt would come too late (deadline)\n");
}

TEST(loop, is_done_when_it_succeeds_behind_its_deadline)
{
    CHECK_TRACE(trace("fixed deadline=1s", "+5s 200"),
                "  5000 ms  200\n"
                "  5000 ms  done after 1 attempt\n");
}

TEST(loop, retries_a_fault_as_often_as_its_rule_says)
{
    CHECK_TRACE(trace("fixed base=1s jitter=none attempts=9 once=timeout "
                      "at-most=2:503",
                      "timeout 503 503 503"),
                "     0 ms  timeout\n"
                "  1000 ms  503\n"
                "  2000 ms  503\n"
                "  3000 ms  503\n"
                "  3000 ms  gave up after 4 attempts in 3 s: 503 "
                "(fault-limit)\n");
}

TEST(loop, waits_as_the_server_asks)
{
    CHECK_TRACE(trace("fixed base=100ms jitter=none attempts=4 "
                      "retry-after-max=5s",
                      "429:2s 503:1m 503 200"),
                "     0 ms  429:2s\n"
                "  2000 ms  503:1m\n"
                "  7000 ms  503\n"
                "  7100 ms  200\n"
                "  7100 ms  done after 4 attempts in 7.1 s\n");
}

TEST(loop, repeats_no_post_that_may_have_arrived)
{
    stg_policy policy = policy_of("fixed base=1s jitter=none");
    story s;

    story_begin(&s, "refused 503");
    play(&s, &policy, (stg_with){.method = "POST"});
    CHECK_TRACE(s.trace,
                "     0 ms  refused\n"
                "  1000 ms  503\n"
                "  1000 ms  gave up after 2 attempts in 1 s: 503 "
                "(not-idempotent)\n");

    story_begin(&s, "503 200");
    play(&s, &policy, (stg_with){.method = "POST", .has_key = true});
    CHECK_TRACE(s.trace,
                "     0 ms  503\n"
                "  1000 ms  200\n"
                "  1000 ms  done after 2 attempts in 1 s\n");
}

TEST(loop, starts_anew_after_a_long_attempt)
{
    CHECK_TRACE(trace("base=1s jitter=none attempts=2 reset-after=1m "
                      "deadline=90s",
                      "503 +80s 503 503"),
                "     0 ms  503\n"
                " 81000 ms  503\n"
                " 82000 ms  503\n"
                " 82000 ms  gave up after 2 attempts in 1.4 min: 503 "
                "(attempts)\n");
}

TEST(loop, does_not_sleep_where_there_is_no_wait)
{
    stg_policy policy = policy_of("fixed base=0 attempts=3");
    story s;

    story_begin(&s, "503 503 200");
    play(&s, &policy, (stg_with){0});
    CHECK_INT(s.sleeps, 0);
    CHECK_TRACE(s.trace,
                "     0 ms  503\n"
                "     0 ms  503\n"
                "     0 ms  200\n"
                "     0 ms  done after 3 attempts\n");
}

TEST(loop, asks_the_clock_once_and_nothing_else_when_it_succeeds_at_once)
{
    stg_policy policy = policy_of("client");
    stg_report report;
    story s;

    story_begin(&s, "200");
    report = play(&s, &policy, (stg_with){0});
    CHECK_INT(s.clocks, 1);
    CHECK_INT(s.draws, 0);
    CHECK_INT(s.sleeps, 0);
    CHECK_INT(report.next, STG_DONE);
    CHECK_INT(report.attempts, 1);
    CHECK_U64(report.took, 0);
    CHECK_U64(report.waited, 0);
    CHECK_INT(report.last.fault, STG_FAULT_NONE);
}

TEST(loop, reports_its_numbers)
{
    stg_policy policy = policy_of("base=100ms jitter=none attempts=9");
    stg_report report;
    story s;

    story_begin(&s, "+5ms refused +5ms 502 +5ms 200");
    report = play(&s, &policy, (stg_with){0});
    CHECK_INT(report.next, STG_DONE);
    CHECK_INT(report.attempts, 3);
    CHECK_U64(report.waited, 300 * STG_MS);
    CHECK_U64(report.took, 315 * STG_MS);
    CHECK_INT(report.last.code, 502); // the last failure, though it succeeded
}

TEST(loop, sleeps_once_a_wait)
{
    stg_policy policy = policy_of("fixed base=1s attempts=5");
    story s;

    story_begin(&s, "503 503 503 503 200");
    play(&s, &policy, (stg_with){0});
    CHECK_INT(s.sleeps, 4);
    CHECK_INT(s.draws, 4);
    CHECK_INT(s.attempts, 5);
}

TEST(loop, is_not_run_at_all_for_what_cannot_be_used)
{
    stg_policy backend = policy_of("backend"), zeroed = {0};
    stg_env half;
    stg_loop r;
    story s;

    story_begin(&s, "");
    CHECK_INT(play(&s, &backend, (stg_with){0}).why, STG_WHY_INVALID);
    play(&s, &zeroed, (stg_with){0});
    play(&s, NULL, (stg_with){0});
    CHECK_TRACE(s.trace,
                "     0 ms  refused before the first attempt: the policy "
                "needs a peer, see stg_policy_needs_peer(), and with.peer is "
                "NULL (invalid)\n"
                "     0 ms  refused before the first attempt: the policy is "
                "zeroed: start from a text or stg_policy_default() (invalid)\n"
                "     0 ms  refused before the first attempt: the policy is "
                "NULL (invalid)\n");
    CHECK_INT(s.attempts, 0);

    half = (stg_env){.now = s.env.now, .ctx = &s};
    backend = policy_of("client");
    stg_loop_begin(&r, &backend, &(stg_with){.env = &half});
    CHECK(!stg_loop_again(&r));
    CHECK_U64(stg_loop_timeout(&r), 0);
    CHECK_STR(stg_loop_text(&r),
              "refused before the first attempt: with.env has a clock without "
              "a sleep, or a sleep without a clock (invalid)");
}

TEST(loop, may_be_without_anything_optional)
{
    stg_policy policy = policy_of("none");
    stg_loop r;

    stg_loop_begin(&r, &policy, NULL);
    CHECK(stg_loop_again(&r));
    stg_loop_report(&r, stg_ok());
    CHECK(!stg_loop_again(&r));
    CHECK_STR(stg_loop_text(&r), "done after 1 attempt");
}

TEST(loop, that_was_never_begun_does_nothing)
{
    stg_loop r = {0};

    CHECK(!stg_loop_again(&r));
    r = (stg_loop){0};
    stg_loop_end(&r);
    r = (stg_loop){0};
    stg_loop_report(&r, stg_ok());
    CHECK(!stg_loop_again(&r));
    r = (stg_loop){0};
    CHECK_U64(stg_loop_timeout(&r), 0);
}

/* -- what the caller forgets, or does early */

TEST(loop, ends_as_invalid_when_an_attempt_is_not_reported)
{
    stg_policy policy = policy_of("retry=any");
    stg_report report;
    stg_loop r;
    story s;

    story_begin(&s, "");
    stg_loop_begin(&r, &policy, &(stg_with){.env = &s.env});
    CHECK(stg_loop_again(&r));
    CHECK(!stg_loop_again(&r));
    report = stg_loop_result(&r);
    CHECK_INT(report.next, STG_GIVE_UP);
    CHECK_INT(report.why, STG_WHY_INVALID);
    CHECK_STR(stg_loop_text(&r),
              "gave up after 1 attempt: the attempt was not reported, see "
              "stg_loop_report() (invalid)");
}

TEST(loop, takes_the_first_report_of_an_attempt)
{
    stg_policy policy = policy_of("fixed base=1s jitter=none");
    stg_loop r;
    story s;

    story_begin(&s, "");
    stg_loop_begin(&r, &policy, &(stg_with){.env = &s.env});
    stg_loop_report(&r, stg_ok()); // too early
    CHECK(stg_loop_again(&r));
    stg_loop_report(&r, stg_failed(STG_FAULT_REFUSED));
    stg_loop_report(&r, stg_ok());
    CHECK(stg_loop_again(&r));
    stg_loop_report(&r, stg_ok());
    stg_loop_report(&r, stg_failed(STG_FAULT_REFUSED));
    CHECK(!stg_loop_again(&r));
    CHECK_STR(stg_loop_text(&r), "done after 2 attempts in 1 s");
}

TEST(loop, tells_how_it_goes_at_any_time)
{
    stg_policy policy = policy_of("fixed base=1s jitter=none");
    stg_loop r;
    story s;

    story_begin(&s, "");
    stg_loop_begin(&r, &policy, &(stg_with){.env = &s.env});
    CHECK_STR(stg_loop_text(&r), "not ended after 0 attempts");
    CHECK(stg_loop_again(&r));
    CHECK_STR(stg_loop_text(&r), "not ended after 1 attempt");
    stg_loop_report(&r, stg_failed(STG_FAULT_RESET));
    CHECK(stg_loop_again(&r));
    CHECK_STR(stg_loop_text(&r), "not ended after 2 attempts in 1 s");
}

TEST(loop, that_is_left_early_gives_its_token_back)
{
    stg_policy policy = policy_of("fixed base=1s budget=tokens:5:0.001/s");
    stg_peer peer = peer_of(&policy);
    stg_budget shared;
    stg_loop r;
    story s;

    CHECK(stg_budget_init(&shared, &policy.budget) == STG_OK);
    story_begin(&s, "");
    stg_loop_begin(
        &r, &policy,
        &(stg_with){.env = &s.env, .peer = &peer, .shared_budget = &shared});
    CHECK(stg_loop_again(&r));
    stg_loop_report(&r, stg_failed(STG_FAULT_REFUSED));
    CHECK_U64(stg_budget_left(&peer.budget, 0), 4000);
    CHECK_U64(stg_budget_left(&shared, 0), 4000);
    stg_loop_end(&r);
    stg_loop_end(&r);
    CHECK_U64(stg_budget_left(&peer.budget, 0), 5000);
    CHECK_U64(stg_budget_left(&shared, 0), 5000);
    CHECK(!stg_loop_again(&r));
    CHECK_STR(stg_loop_text(&r),
              "gave up after 1 attempt: refused (cancelled)");
}

TEST(loop, that_is_left_early_frees_the_place_of_the_probe)
{
    stg_policy policy = policy_of("fixed attempts=1 breaker=1:30s");
    stg_peer peer = peer_of(&policy);
    stg_with with = {.peer = &peer};
    stg_loop r;
    story s;

    story_begin(&s, "503");
    play(&s, &policy, with);
    with.env = &s.env;
    s.now = 31 * STG_S;
    stg_loop_begin(&r, &policy, &with);
    CHECK(stg_loop_again(&r)); // the probe
    stg_loop_end(&r);

    s.script = "200";
    play(&s, &policy, with);
    CHECK_TRACE(s.trace,
                "     0 ms  503\n"
                "     0 ms  gave up after 1 attempt: 503 (attempts)\n"
                " 31000 ms  200\n"
                " 31000 ms  done after 1 attempt\n");
}

TEST(loop, that_was_left_before_it_began_holds_nothing)
{
    stg_policy policy = policy_of("client");
    stg_loop r;
    story s;

    story_begin(&s, "");
    stg_loop_begin(&r, &policy, &(stg_with){.env = &s.env});
    stg_loop_end(&r);
    CHECK(!stg_loop_again(&r));
    CHECK_STR(stg_loop_text(&r),
              "gave up before the first attempt: it was "
              "cancelled (cancelled)");
}

/* -- how long an attempt may take */

TEST(loop, gives_an_attempt_its_time_or_what_is_left)
{
    stg_policy policy = policy_of(
        "fixed base=1s jitter=none attempts=9 "
        "attempt-timeout=3s deadline=5s");
    stg_loop r;
    story s;

    story_begin(&s, "");
    stg_loop_begin(&r, &policy, &(stg_with){.env = &s.env});
    CHECK(stg_loop_again(&r));
    CHECK_U64(stg_loop_timeout(&r), 3 * STG_S);
    s.now += 1500 * STG_MS;
    stg_loop_report(&r, stg_failed(STG_FAULT_TIMEOUT));
    CHECK(stg_loop_again(&r));
    CHECK_U64(stg_loop_timeout(&r), 2500 * STG_MS);
    s.now += 4 * STG_S;
    CHECK_U64(stg_loop_timeout(&r), 0);
}

TEST(loop, gives_an_attempt_all_time_without_a_limit)
{
    stg_policy policy = policy_of("deadline=none");
    stg_loop r;

    stg_loop_begin(&r, &policy, NULL);
    CHECK(stg_loop_again(&r));
    CHECK_U64(stg_loop_timeout(&r), STG_NEVER);
    stg_loop_report(&r, stg_ok());
}

/* -- cancelled */

TEST(loop, makes_no_attempt_when_it_is_cancelled_before)
{
    stg_policy policy = policy_of("client");
    story s;

    story_begin(&s, "");
    stg_cancel_set(&s.cancel);
    play(&s, &policy, (stg_with){.cancel = &s.cancel});
    CHECK_TRACE(s.trace,
                "     0 ms  gave up before the first attempt: it was "
                "cancelled (cancelled)\n");
}

TEST(loop, that_is_cancelled_in_an_attempt_ends_with_it)
{
    stg_policy policy = policy_of("client");
    story s;

    story_begin(&s, "+5ms cancel +5ms 503");
    play(&s, &policy, (stg_with){.cancel = &s.cancel});
    CHECK_TRACE(s.trace,
                "     5 ms  cancel\n"
                "    10 ms  503\n"
                "    10 ms  gave up after 1 attempt in 10 ms: 503 "
                "(cancelled)\n");
    CHECK_INT(s.sleeps, 0);

    story_begin(&s, "cancel 200");
    play(&s, &policy, (stg_with){.cancel = &s.cancel});
    CHECK_TRACE(s.trace,
                "     0 ms  cancel\n"
                "     0 ms  200\n"
                "     0 ms  done after 1 attempt\n");
}

/* A sleep in which somebody sets the cancel, after 300 ms. */
static bool disturbed(void *ctx, stg_ns until_at, const stg_cancel *cancel)
{
    story *s = ctx;

    CHECK(cancel == &s->cancel && until_at > s->now + 300 * STG_MS);
    s->now += 300 * STG_MS;
    stg_cancel_set(&s->cancel);
    return false;
}

TEST(loop, that_is_cancelled_in_a_wait_ends_there)
{
    stg_policy policy = policy_of(
        "fixed base=1s jitter=none "
        "budget=tokens:5:0.001/s");
    stg_peer peer = peer_of(&policy);
    story s;

    story_begin(&s, "503");
    s.env.sleep = disturbed;
    CHECK_U64(play(&s, &policy, (stg_with){.cancel = &s.cancel, .peer = &peer})
                  .waited,
              300 * STG_MS);
    CHECK_TRACE(s.trace,
                "     0 ms  503\n"
                "   300 ms  gave up after 1 attempt in 300 ms: 503 "
                "(cancelled)\n");
    CHECK_U64(stg_budget_left(&peer.budget, s.now), 5000);
}

/* -- nested */

TEST(loop, is_nested_when_it_is_told_its_parent)
{
    stg_policy once = policy_of("fixed base=1s jitter=none");
    stg_policy full = policy_of("fixed base=1s jitter=none nested=full");
    stg_loop outer;
    story s;

    story_begin(&s, "503 503 200 503 200");
    stg_loop_begin(&outer, &once, &(stg_with){.env = &s.env});
    CHECK(stg_loop_again(&outer));
    play(&s, &once, (stg_with){.parent = &outer.op.retry});
    play(&s, &full, (stg_with){.parent = &outer.op.retry});
    play(&s, &once, (stg_with){0});
    stg_loop_report(&outer, stg_ok());
    CHECK_TRACE(s.trace,
                "     0 ms  503\n"
                "     0 ms  gave up after 1 attempt: 503 (nested)\n"
                "     0 ms  503\n"
                "  1000 ms  200\n"
                "  1000 ms  done after 2 attempts in 1 s\n"
                "  1000 ms  503\n"
                "  2000 ms  200\n"
                "  2000 ms  done after 2 attempts in 1 s\n");
}

/* -- what a hook sees */

static const char *events(const char *text, const char *script, stg_with with)
{
    static story s;
    stg_policy policy = policy_of(text);

    story_begin(&s, script);
    with.hook = &s.hook;
    with.cancel = &s.cancel;
    play(&s, &policy, with);
    return s.trace;
}

TEST(loop, tells_of_a_success)
{
    CHECK_TRACE(events("client", "+3ms 200", (stg_with){0}),
                "     0 ms  | attempt, -: go\n"
                "     3 ms  200\n"
                "     3 ms  | decision, ok: done\n"
                "     3 ms  | end, ok: done\n"
                "     3 ms  done after 1 attempt in 3 ms\n");
}

TEST(loop, tells_of_each_decision_to_wait)
{
    CHECK_TRACE(
        events("base=100ms jitter=none", "503 429:5s 200", (stg_with){0}),
        "     0 ms  | attempt, -: go\n"
        "     0 ms  503\n"
        "     0 ms  | decision, 503: wait 100 ms (backoff)\n"
        "   100 ms  | attempt, -: go\n"
        "   100 ms  429:5s\n"
        "   100 ms  | decision, 429: wait 5 s (server-delay)\n"
        "  5100 ms  | attempt, -: go\n"
        "  5100 ms  200\n"
        "  5100 ms  | decision, ok: done\n"
        "  5100 ms  | end, ok: done\n"
        "  5100 ms  done after 3 attempts in 5.1 s\n");
}

TEST(loop, tells_why_it_gives_up)
{
    CHECK_TRACE(events("none", "refused", (stg_with){0}),
                "     0 ms  | attempt, -: go\n"
                "     0 ms  refused\n"
                "     0 ms  | decision, refused: give up (attempts)\n"
                "     0 ms  | end, refused: give up (attempts)\n"
                "     0 ms  gave up after 1 attempt: refused (attempts)\n");
}

TEST(loop, tells_of_the_end_of_what_never_began)
{
    stg_policy policy = policy_of("client");
    story s;

    story_begin(&s, "");
    stg_cancel_set(&s.cancel);
    play(&s, &policy, (stg_with){.hook = &s.hook, .cancel = &s.cancel});
    CHECK_TRACE(s.trace,
                "     0 ms  | end, -: give up (cancelled)\n"
                "     0 ms  gave up before the first attempt: it was "
                "cancelled (cancelled)\n");
}

TEST(loop, tells_when_it_is_cancelled)
{
    CHECK_TRACE(events("client", "cancel 503", (stg_with){0}),
                "     0 ms  | attempt, -: go\n"
                "     0 ms  cancel\n"
                "     0 ms  503\n"
                "     0 ms  | decision, 503: give up (cancelled)\n"
                "     0 ms  | end, 503: give up (cancelled)\n"
                "     0 ms  gave up after 1 attempt: 503 (cancelled)\n");
}

TEST(loop, tells_when_its_budget_is_empty)
{
    stg_policy policy = policy_of("budget=tokens:1:0.001/s");
    stg_peer peer = peer_of(&policy);

    CHECK(stg_budget_take(&peer.budget, STG_CHARGE_RETRY, 0).granted);
    CHECK_TRACE(
        events("budget=tokens:1:0.001/s", "503", (stg_with){.peer = &peer}),
        "     0 ms  | attempt, -: go\n"
        "     0 ms  503\n"
        "     0 ms  | decision, 503: give up (budget)\n"
        "     0 ms  | end, 503: give up (budget)\n"
        "     0 ms  gave up after 1 attempt: 503 (budget)\n");
}

TEST(loop, may_have_a_hook_that_does_nothing)
{
    stg_policy policy = policy_of("none");
    stg_hook hook = {0};
    stg_loop r;

    stg_loop_begin(&r, &policy, &(stg_with){.hook = &hook});
    CHECK(stg_loop_again(&r));
    stg_loop_report(&r, stg_ok());
    CHECK(!stg_loop_again(&r));
}

static bool give_seven(void *ctx, const stg_report *report)
{
    *(int *)ctx = report->why == STG_WHY_PERMANENT ? 7 : 0;
    return true;
}

TEST(loop, is_answered_by_its_fallback_when_it_gives_up)
{
    stg_policy policy = policy_of("client");
    int value = 0;
    stg_fallback fallback = {.answer = give_seven, .ctx = &value};
    story s;

    story_begin(&s, "404");
    CHECK(play(&s, &policy, (stg_with){.fallback = &fallback}).fell_back);
    CHECK_INT(value, 7);
    CHECK_TRACE(s.trace,
                "     0 ms  404\n"
                "     0 ms  gave up after 1 attempt: 404 (permanent); the "
                "fallback answered\n");
}
