#include <stagger/operation.h>

#include <stdio.h>

#include "tests/adapters/story.h"
#include "tests/harness.h"

/* Begins op on the story's clock, and its first attempt. */
static void admit(stg_operation *op)
{
    bool is_first = op == NULL || op->decision.due_at == 0;

    stg_operation_admit(op, op == NULL ? 0
                            : is_first ? op->begun_at
                                       : stg_operation_now(op));
}

static void start(stg_operation *op, const stg_policy *policy, stg_with with,
                  story *s)
{
    with.env = &s->env;
    CHECK(stg_operation_begin(op, policy, &with) == STG_OK);
    admit(op);
}

static void report(stg_operation *op, int status)
{
    stg_outcome o = stg_answered(status);

    stg_operation_report(op, &o);
}

static const char *text_of(const stg_operation *op)
{
    static char text[STG_REPORT_TEXT_MAX];
    stg_report r = stg_operation_result(op);

    return stg_report_text(&r, text);
}

static const char unjittered[] = "fixed base=100ms jitter=none attempts=3";

TEST(operation, waits_for_its_first_admission_from_the_start)
{
    stg_policy policy = policy_of(unjittered);
    stg_operation op;
    story s;

    story_begin(&s, "");
    CHECK(stg_operation_begin(&op, &policy, &(stg_with){.env = &s.env}) ==
          STG_OK);
    CHECK_INT(op.decision.next, STG_WAIT);
    CHECK(!stg_operation_has_ended(&op));
    CHECK_STR(text_of(&op), "not ended after 0 attempts");
    admit(&op);
    CHECK_INT(op.decision.next, STG_GO);
    CHECK_STR(text_of(&op), "not ended after 1 attempt");
}

TEST(operation, counts_the_time_of_a_first_attempt_that_began_later)
{
    stg_policy policy = policy_of(unjittered);
    stg_operation op;
    story s;

    story_begin(&s, "");
    CHECK(stg_operation_begin(&op, &policy, &(stg_with){.env = &s.env}) ==
          STG_OK);
    s.now += 3 * STG_MS; // the loop had other things to do
    stg_operation_admit(&op, s.now);
    s.now += 40 * STG_MS;
    report(&op, 200);
    CHECK_STR(text_of(&op), "done after 1 attempt in 43 ms");
}

TEST(operation, says_after_each_call_what_to_do_next)
{
    stg_policy policy = policy_of(unjittered);
    stg_operation op;
    story s;

    story_begin(&s, "");
    start(&op, &policy, (stg_with){0}, &s);
    s.now += 20 * STG_MS;
    report(&op, 503);
    CHECK_INT(op.decision.next, STG_WAIT);
    CHECK_INT(op.decision.why, STG_WHY_BACKOFF);
    CHECK_U64(op.decision.due_at, 120 * STG_MS);
    s.now = op.decision.due_at;
    admit(&op);
    CHECK_INT(op.decision.next, STG_GO);
    report(&op, 200);
    CHECK_INT(op.decision.next, STG_DONE);
    CHECK(stg_operation_has_ended(&op));
    CHECK_STR(text_of(&op), "done after 2 attempts in 120 ms");
}

TEST(operation, reports_what_it_took_and_what_it_waited)
{
    stg_policy policy = policy_of(unjittered);
    stg_operation op;
    stg_report r;
    story s;

    story_begin(&s, "");
    s.now = STG_HOUR;
    start(&op, &policy, (stg_with){0}, &s);
    for (int i = 0; i < 3; i++) {
        s.now += 7 * STG_MS;
        report(&op, 500 + i);
        s.now = stg_ns_max(s.now, op.decision.due_at + STG_MS); // a bit late
        admit(&op);
    }
    r = stg_operation_result(&op);
    CHECK_INT(r.next, STG_GIVE_UP);
    CHECK_INT(r.why, STG_WHY_ATTEMPTS);
    CHECK_INT(r.attempts, 3);
    CHECK_U64(r.waited, 202 * STG_MS);
    CHECK_U64(r.took, 223 * STG_MS);
    CHECK_INT(r.last.code, 502);
    CHECK(r.flaw == NULL);
    CHECK_STR(text_of(&op),
              "gave up after 3 attempts in 223 ms: 502 "
              "(attempts)");
}

TEST(operation, that_succeeds_at_once_reads_the_clock_once_and_draws_nothing)
{
    stg_policy policy = policy_of("backend breaker=none");
    stg_peer peer = peer_of(&policy);
    stg_operation op;
    story s;

    story_begin(&s, "");
    start(&op, &policy, (stg_with){.peer = &peer}, &s);
    report(&op, 200);
    CHECK_INT(s.clocks, 1);
    CHECK_INT(s.draws, 0);
    CHECK_INT(s.sleeps, 0);
    CHECK_STR(text_of(&op), "done after 1 attempt");
}

/* The breaker and a hook are told when an attempt ended. */
TEST(operation, reads_the_clock_at_the_end_for_who_wants_to_know)
{
    stg_policy plain = policy_of("fixed"), broken = policy_of("breaker=5:1s");
    stg_peer peer = peer_of(&broken);
    stg_operation op;
    story s;

    story_begin(&s, "");
    start(&op, &broken, (stg_with){.peer = &peer}, &s);
    report(&op, 200);
    CHECK_INT(s.clocks, 2);

    story_begin(&s, "");
    start(&op, &plain, (stg_with){.hook = &s.hook}, &s);
    s.now += 5 * STG_MS;
    report(&op, 200);
    CHECK_INT(s.clocks, 2);
    CHECK_STR(text_of(&op), "done after 1 attempt in 5 ms");
}

TEST(operation, asks_for_chance_once_a_wait)
{
    stg_policy policy = policy_of("fixed base=1s attempts=4");
    stg_operation op;
    story s;

    story_begin(&s, "");
    start(&op, &policy, (stg_with){0}, &s);
    for (unsigned waits = 1; waits <= 3; waits++) {
        report(&op, 503);
        CHECK_INT(s.draws, waits);
        s.now = op.decision.due_at;
        admit(&op);
        CHECK_INT(s.draws, waits);
    }
    report(&op, 200);
    CHECK_INT(s.draws, 3);
}

/* Whatever the entropy, the wait is the one that core draws from it. */
TEST(operation, waits_as_its_entropy_says)
{
    stg_policy policy = policy_of("fixed base=1s jitter=full");

    for (uint64_t seed = 0; seed < seeds(1000); seed++) {
        stg_rng rng = stg_rng_seed(seed);
        stg_operation op;
        story s;

        story_begin(&s, "");
        s.bits = seed;
        start(&op, &policy, (stg_with){0}, &s);
        report(&op, 503);
        CHECK_FROM(seed, op.decision.due_at == stg_rng_upto(&rng, STG_S));
    }
}

TEST(operation, ignores_what_is_said_out_of_turn)
{
    stg_policy policy = policy_of(unjittered);
    stg_operation op;
    story s;

    story_begin(&s, "");
    start(&op, &policy, (stg_with){0}, &s);
    admit(&op); // in an attempt
    CHECK_INT(op.decision.next, STG_GO);
    report(&op, 503);
    report(&op, 200); // in a wait
    CHECK_INT(op.decision.next, STG_WAIT);
    s.now = op.decision.due_at;
    admit(&op);
    report(&op, 404);
    CHECK_INT(op.decision.why, STG_WHY_PERMANENT);
    report(&op, 200); // after the end
    admit(&op);
    stg_operation_cancel(&op);
    CHECK_INT(op.decision.why, STG_WHY_PERMANENT);
    CHECK_STR(text_of(&op),
              "gave up after 2 attempts in 100 ms: 404 "
              "(permanent)");
}

TEST(operation, takes_no_outcome_for_an_unknown_error)
{
    stg_policy policy = policy_of("fixed");
    stg_operation op;
    story s;

    story_begin(&s, "");
    start(&op, &policy, (stg_with){0}, &s);
    stg_operation_report(&op, NULL);
    CHECK_STR(text_of(&op), "gave up after 1 attempt: error (permanent)");
}

TEST(operation, copies_what_is_optional)
{
    stg_policy policy = policy_of(unjittered);
    stg_operation op;
    stg_with with;
    story s;

    story_begin(&s, "");
    with = (stg_with){.env = &s.env, .hook = &s.hook};
    CHECK(stg_operation_begin(&op, &policy, &with) == STG_OK);
    with = (stg_with){.method = "gone"};
    admit(&op);
    report(&op, 503);
    CHECK_TRACE(s.trace,
                "     0 ms  | attempt, -: go\n"
                "     0 ms  | decision, 503: wait 100 ms (backoff)\n");
}

TEST(operation, needs_nothing_that_is_optional)
{
    stg_policy policy = policy_of("fixed base=0 deadline=none");
    stg_operation op;

    CHECK(stg_operation_begin(&op, &policy, NULL) == STG_OK);
    admit(&op);
    report(&op, 503);
    admit(&op);
    report(&op, 200);
    CHECK_INT(stg_operation_result(&op).attempts, 2);
    CHECK_INT(op.decision.next, STG_DONE);
}

/* Nothing needs to know when such a one began, and no clock is read for it. */
TEST(operation, without_a_limit_is_timed_from_its_first_failure)
{
    stg_policy policy = policy_of("fixed base=1ms jitter=none deadline=none");
    stg_operation op;
    stg_report r;

    CHECK(stg_operation_begin(&op, &policy, NULL) == STG_OK);
    admit(&op);
    CHECK_U64(stg_operation_result(&op).took, 0);
    report(&op, 503);
    CHECK_U64(stg_operation_result(&op).took, 0);
    stg_env_system()->sleep(NULL, op.decision.due_at, NULL);
    admit(&op);
    report(&op, 200);
    r = stg_operation_result(&op);
    CHECK(r.waited >= STG_MS && r.took >= r.waited && r.took < STG_MIN);

    CHECK(stg_operation_begin(&op, &policy, NULL) == STG_OK);
    stg_operation_cancel(&op);
    CHECK_U64(stg_operation_result(&op).took, 0);
    CHECK_U64(stg_operation_result(&op).waited, 0);
}

TEST(operation, may_bring_its_own_chance_to_the_systems_clock)
{
    stg_policy policy = policy_of("fixed base=1s");
    stg_operation op;
    story s;
    stg_env env;

    story_begin(&s, "");
    env = (stg_env){.random = s.env.random, .ctx = &s};
    CHECK(stg_operation_begin(&op, &policy, &(stg_with){.env = &env}) ==
          STG_OK);
    admit(&op);
    report(&op, 503);
    CHECK_INT(op.decision.next, STG_WAIT);
    CHECK_INT(s.draws, 1);
    CHECK_INT(s.clocks, 0);
}

TEST(operation, survives_a_clock_that_steps_back)
{
    stg_policy policy = policy_of(unjittered);
    stg_operation op;
    stg_report r;
    story s;

    story_begin(&s, "");
    s.now = STG_S;
    start(&op, &policy, (stg_with){0}, &s);
    report(&op, 503);
    s.now = STG_MS;
    admit(&op);
    report(&op, 404);
    r = stg_operation_result(&op);
    CHECK_U64(r.waited, 0);
    CHECK_U64(r.took, 0);
}

/* -- what cannot be used */

static void check_refused(const stg_policy *policy, const stg_with *with,
                          const char *flaw)
{
    stg_operation op;
    char text[STG_REPORT_TEXT_MAX];

    CHECK(stg_operation_begin(&op, policy, with) == STG_INVALID);
    CHECK(stg_operation_has_ended(&op));
    admit(&op);
    report(&op, 200);
    stg_operation_cancel(&op);
    CHECK_STR(op.flaw, flaw);
    CHECK_STR(stg_operation_result(&op).flaw, flaw);
    CHECK_INT(stg_operation_result(&op).attempts, 0);
    snprintf(text, sizeof text,
             "refused before the first attempt: %s (invalid)", flaw);
    CHECK_STR(text_of(&op), text);
}

TEST(operation, refuses_a_policy_that_is_none)
{
    stg_policy zeroed = {0};

    check_refused(NULL, NULL, "the policy is NULL");
    check_refused(&zeroed, NULL,
                  "the policy is zeroed: start from a text or "
                  "stg_policy_default()");
    CHECK(stg_operation_begin(NULL, &zeroed, NULL) == STG_INVALID);
}

TEST(operation, refuses_a_budget_or_breaker_without_its_peer)
{
    static const char no_peer[] =
        "the policy needs a peer, see stg_policy_needs_peer(), and "
        "with.peer is NULL";
    static const char strange[] = "with.peer was not made by stg_peer_init()";
    stg_policy backend = policy_of("backend"), aws = policy_of("aws");
    stg_policy broken = policy_of("breaker=5:1s");
    stg_peer zeroed = {.mark = 0}, peer = peer_of(&aws);

    check_refused(&backend, NULL, no_peer);
    check_refused(&broken, &(stg_with){0}, no_peer);
    check_refused(&backend, &(stg_with){.peer = &zeroed}, strange);
    check_refused(&backend, &(stg_with){.peer = &peer},
                  "with.peer was made for another budget than the policy's: "
                  "they must be equal, or the policy's none");
}

TEST(operation, refuses_half_a_clock)
{
    static const char half[] =
        "with.env has a clock without a sleep, or a sleep without a clock";
    stg_policy policy = policy_of("fixed");
    stg_env clock_only, sleep_only;
    story s;

    story_begin(&s, "");
    clock_only = sleep_only = s.env;
    clock_only.sleep = NULL;
    sleep_only.now = NULL;
    check_refused(&policy, &(stg_with){.env = &clock_only}, half);
    check_refused(&policy, &(stg_with){.env = &sleep_only}, half);
    CHECK_INT(s.clocks, 0);
}

TEST(operation, can_be_refused_by_an_adapter)
{
    stg_policy policy = policy_of("fixed");
    stg_operation op;

    CHECK(stg_operation_begin(&op, &policy, NULL) == STG_OK);
    stg_operation_refuse(&op, "the socket is NULL");
    admit(&op);
    CHECK_STR(text_of(&op),
              "refused before the first attempt: the socket is "
              "NULL (invalid)");
}

/* -- what an operation holds of its peer */

TEST(operation, that_is_cancelled_in_a_wait_gives_its_token_back)
{
    stg_policy policy = policy_of("fixed base=1s budget=tokens:2:0.001/s");
    stg_peer peer = peer_of(&policy);
    stg_operation op;
    stg_report r;
    story s;

    story_begin(&s, "");
    start(&op, &policy, (stg_with){.peer = &peer, .hook = &s.hook}, &s);
    report(&op, 503);
    CHECK_U64(stg_budget_left(&peer.budget, s.now), 1000);
    s.now += 300 * STG_MS;
    stg_operation_cancel(&op);
    CHECK_U64(stg_budget_left(&peer.budget, s.now), 2000);
    r = stg_operation_result(&op);
    CHECK_INT(r.why, STG_WHY_CANCELLED);
    CHECK_U64(r.took, 300 * STG_MS);
    CHECK_U64(r.waited, 300 * STG_MS);
    CHECK_STR(text_of(&op),
              "gave up after 1 attempt in 300 ms: 503 "
              "(cancelled)");
}

TEST(operation, waits_for_an_empty_budget_when_its_policy_says_so)
{
    stg_policy policy = policy_of(
        "fixed base=100ms jitter=none attempts=3 "
        "budget=tokens:1:1/s budget-empty=wait");
    stg_peer peer = peer_of(&policy);
    stg_operation op;
    story s;

    story_begin(&s, "");
    start(&op, &policy, (stg_with){.peer = &peer, .hook = &s.hook}, &s);
    for (int i = 0; i < 2; i++) {
        report(&op, 503);
        s.now = op.decision.due_at;
        admit(&op);
    }
    report(&op, 200);
    CHECK_TRACE(s.trace,
                "     0 ms  | attempt, -: go\n"
                "     0 ms  | decision, 503: wait 100 ms (backoff)\n"
                "   100 ms  | attempt, -: go\n"
                "   100 ms  | decision, 503: wait 900 ms (budget)\n"
                "  1000 ms  | attempt, -: go\n"
                "  1000 ms  | decision, ok: done\n"
                "  1000 ms  | end, ok: done\n");
}

/* aws has no tokens to wait for: the operation asks again, by its window, and
 * draws anew for each time. */
TEST(operation, draws_for_each_wait_for_a_budget)
{
    stg_policy policy = policy_of(
        "fixed base=1s jitter=full attempts=3 "
        "budget=aws budget-empty=wait");
    stg_peer peer = peer_of(&policy);
    stg_operation op;
    story s;

    while (stg_budget_take(&peer.budget, STG_CHARGE_RETRY, 0).granted)
        ;
    story_begin(&s, "");
    start(&op, &policy, (stg_with){.peer = &peer}, &s);
    report(&op, 503);
    for (unsigned draws = 1; draws < 10; draws++) {
        CHECK_INT(op.decision.why, STG_WHY_BUDGET);
        CHECK_INT(s.draws, draws);
        s.now = op.decision.due_at;
        admit(&op);
    }
    stg_budget_succeed(&peer.budget, STG_CHARGE_TIMEOUT);
    s.now = op.decision.due_at;
    admit(&op);
    CHECK_INT(op.decision.next, STG_GO);
}

TEST(operation, waits_at_the_gate_of_its_peer)
{
    stg_policy policy = policy_of(unjittered);
    stg_peer peer = peer_of(&policy);
    stg_operation first, second;
    stg_report r;
    story s;

    CHECK(stg_peer_limit(&peer, 1000, 1, NULL) == STG_OK);
    story_begin(&s, "");
    start(&first, &policy, (stg_with){.peer = &peer}, &s);
    s.now += 400 * STG_MS;
    start(&second, &policy, (stg_with){.peer = &peer, .hook = &s.hook}, &s);
    s.now = second.decision.due_at;
    admit(&second);
    report(&second, 200);
    CHECK_TRACE(s.trace,
                "   400 ms  | decision, -: wait 600 ms (gate)\n"
                "  1000 ms  | attempt, -: go\n"
                "  1000 ms  | decision, ok: done\n"
                "  1000 ms  | end, ok: done\n");
    r = stg_operation_result(&second);
    CHECK_INT(r.attempts, 1);
    CHECK_U64(r.waited, 600 * STG_MS);
    CHECK_STR(text_of(&second), "done after 1 attempt in 600 ms");
}

TEST(operation, gives_up_where_the_breaker_is_open)
{
    stg_policy policy = policy_of(
        "fixed attempts=5 jitter=none base=100ms "
        "breaker=2:30s");
    stg_peer peer = peer_of(&policy);
    stg_operation op;
    story s;

    story_begin(&s, "");
    start(&op, &policy, (stg_with){.peer = &peer, .hook = &s.hook}, &s);
    for (int i = 0; i < 2; i++) {
        report(&op, 503);
        s.now = op.decision.due_at;
        admit(&op);
    }
    CHECK_TRACE(s.trace,
                "     0 ms  | attempt, -: go\n"
                "     0 ms  | decision, 503: wait 100 ms (backoff)\n"
                "   100 ms  | attempt, -: go\n"
                "   100 ms  | decision, 503: wait 100 ms (backoff)\n"
                "   200 ms  | decision, circuit-open: give up (circuit-open)\n"
                "   200 ms  | end, circuit-open: give up (circuit-open)\n");

    start(&op, &policy, (stg_with){.peer = &peer}, &s);
    CHECK_STR(text_of(&op),
              "gave up after 1 attempt: the breaker is "
              "open (circuit-open)");
}

TEST(operation, waits_for_the_breaker_when_its_policy_says_so)
{
    stg_policy policy = policy_of(
        "fixed attempts=5 jitter=full base=100ms "
        "breaker=1:30s retry=default,circuit-open");
    stg_peer peer = peer_of(&policy);
    stg_rng rng = stg_rng_seed(1);
    stg_operation op;
    story s;

    stg_breaker_report(&peer.breaker, false, STG_BREAKER_FAILURE, 0, 0);
    story_begin(&s, "");
    start(&op, &policy, (stg_with){.peer = &peer}, &s);
    CHECK_INT(op.decision.why, STG_WHY_SERVER_DELAY);
    CHECK_INT(s.draws, 1);
    CHECK_U64((op.decision.due_at - stg_rng_upto(&rng, 100 * STG_MS)) / STG_MS,
              30 * STG_S / STG_MS);
    s.now = op.decision.due_at;
    admit(&op);
    CHECK_INT(op.decision.next, STG_GO);
    report(&op, 200);
    CHECK_INT(stg_breaker_look(&peer.breaker, s.now, NULL), STG_BREAKER_CLOSED);
}

/* A success at once is timed where the breaker wants to know. */
TEST(operation, tells_the_breaker_how_long_it_took)
{
    stg_policy policy =
        policy_of("attempts=1 breaker=50%/2/1m:30s breaker-slow=100%/2s");
    stg_peer peer = peer_of(&policy);
    stg_operation op;
    story s;

    story_begin(&s, "");
    for (int i = 0; i < 4; i++) {
        CHECK_INT(stg_breaker_look(&peer.breaker, s.now, NULL),
                  STG_BREAKER_CLOSED);
        if (i == 2) // the quick ones have left the window
            s.now += STG_HOUR;
        start(&op, &policy, (stg_with){.peer = &peer}, &s);
        s.now += i < 2 ? 2 * STG_S - 1 : 2 * STG_S;
        report(&op, 200);
        CHECK_INT(op.decision.next, STG_DONE);
    }
    CHECK_INT(stg_breaker_look(&peer.breaker, s.now, NULL), STG_BREAKER_OPEN);
}
