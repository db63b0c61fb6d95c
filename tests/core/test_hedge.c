#include <stagger/hedge.h>

#include <stdio.h>
#include <string.h>

#include <stagger/cancel.h>
#include <stagger/retry.h>
#include <stagger/text.h>

#include "tests/harness.h"

static stg_policy parse(const char *text)
{
    stg_policy p;
    stg_error err = {0};

    if (stg_policy_parse(&p, text, &err) != STG_OK)
        CHECK_STR(err.text, "");
    return p;
}

/* Byte by byte: what belongs to the library, and is copied as a whole. */
static bool equal(const void *a, const void *b, size_t size)
{
    return memcmp(a, b, size) == 0;
}

/* -- an operation on a peer of its own, at ms that the test says */

typedef struct scene {
    stg_policy policy;
    stg_peer peer;
    stg_budget shared;
    stg_with with;
    stg_retry r;
    stg_hedge h;
    stg_rng rng;
} scene;

static void begin(scene *s, const char *policy)
{
    *s = (scene){.policy = parse(policy), .rng = stg_rng_seed(1)};
    CHECK_INT(stg_peer_init(&s->peer, &s->policy), STG_OK);
    s->with.peer = &s->peer;
    CHECK_INT(stg_retry_start(&s->r, &s->policy, &s->with, 0), STG_OK);
}

/* An attempt, and its round. */
static void go(scene *s, stg_ns ms)
{
    CHECK_INT(stg_retry_admit(&s->r, ms * STG_MS, &s->rng).next, STG_GO);
    stg_hedge_begin(&s->h, &s->r, ms * STG_MS);
}

static void begin_at_once(scene *s, const char *policy)
{
    begin(s, policy);
    go(s, 0);
}

/* So many good answers at 0: a throttle has something to allow. */
static void accept(stg_throttle *t, int n)
{
    for (int i = 0; i < n; i++)
        stg_throttle_report(t, &(stg_outcome){.code = 0}, 0, 0);
}

/* The index of the hedge, or 0. */
static uint32_t hedge(scene *s, stg_ns ms)
{
    uint32_t index = 0;
    bool may = stg_hedge_admit(&s->h, &s->r, ms * STG_MS, &index);

    CHECK_INT(may, index != 0);
    return index;
}

static stg_decision end(scene *s, uint32_t index, stg_outcome o, stg_ns ms)
{
    return stg_hedge_step(&s->h, &s->r, index, &o, ms * STG_MS, &s->rng);
}

#define CHECK_END(decision, next_, why_) \
    do {                                 \
        stg_decision d_ = (decision);    \
        CHECK_INT(d_.next, (next_));     \
        CHECK_INT(d_.why, (why_));       \
    } while (0)

static uint32_t taken(const scene *s)
{
    return stg_bulkhead_taken(&s->peer.bulkhead);
}

TEST(hedge, begins_after_its_delay_and_so_often)
{
    scene s;

    begin_at_once(&s, "hedge=100ms:2 bulkhead=9");
    CHECK_U64(s.h.due_at, 100 * STG_MS);
    CHECK_U64(hedge(&s, 99), 0);
    CHECK_U64(s.h.due_at, 100 * STG_MS);
    CHECK_U64(hedge(&s, 100), 1);
    CHECK_U64(s.h.due_at, 200 * STG_MS);
    CHECK_U64(hedge(&s, 230), 2);
    CHECK_U64(s.h.due_at, STG_NEVER);
    CHECK_U64(hedge(&s, 10000), 0);
    CHECK(!stg_hedge_admit(&s.h, &s.r, STG_NEVER, NULL));
    CHECK_U64(taken(&s), 3);
    CHECK_U64(s.r.attempts, 1);
}

TEST(hedge, leaves_the_first_good_answer_to_win)
{
    for (uint32_t winner = 0; winner < 3; winner++) {
        scene s;

        begin_at_once(&s, "hedge=100ms:2 bulkhead=9 throttle=sre:100");
        accept(&s.peer.throttle, 1);
        hedge(&s, 100);
        hedge(&s, 200);
        CHECK_END(end(&s, winner, stg_ok(), 210), STG_DONE, STG_WHY_DONE);
        CHECK_U64(taken(&s), 0);
        CHECK_U64(s.h.due_at, STG_NEVER);
        // The losers come too late.
        for (uint32_t i = 0; i < 3; i++)
            CHECK_END(end(&s, i, stg_answered(503), 220), STG_DONE,
                      STG_WHY_DONE);
        CHECK_U64(hedge(&s, 300), 0);
        CHECK_U64(taken(&s), 0);
    }
}

TEST(hedge, waits_for_the_others_after_a_failure_and_retries_after_the_last)
{
    static const uint32_t orders[][3] = {{0, 1, 2}, {1, 0, 2}, {2, 1, 0}};

    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
        scene s;
        stg_decision d;

        begin_at_once(&s,
                      "fixed base=1s jitter=none attempts=2 bulkhead=3 "
                      "hedge=100ms:2");
        hedge(&s, 100);
        hedge(&s, 200);
        CHECK_INT(end(&s, orders[i][0], stg_answered(503), 300).next, STG_GO);
        CHECK_U64(taken(&s), 2);
        // Twice the same changes nothing.
        CHECK_INT(end(&s, orders[i][0], stg_ok(), 310).next, STG_GO);
        CHECK_INT(end(&s, orders[i][1], stg_answered(503), 350).next, STG_GO);
        d = end(&s, orders[i][2], stg_answered(503), 400);
        CHECK_END(d, STG_WAIT, STG_WHY_BACKOFF);
        CHECK_U64(d.due_at, 1400 * STG_MS);
        CHECK_U64(taken(&s), 0);
        CHECK_INT(end(&s, 0, stg_ok(), 410).why, STG_WHY_INVALID);
        CHECK_U64(hedge(&s, 500), 0);

        go(&s, 1400); // the second and last, though four were made
        CHECK_U64(hedge(&s, 1500), 1);
        CHECK_INT(end(&s, 0, stg_answered(503), 1510).next, STG_GO);
        CHECK_END(end(&s, 1, stg_answered(503), 1520), STG_GIVE_UP,
                  STG_WHY_ATTEMPTS);
        CHECK_U64(taken(&s), 0);
    }
}

TEST(hedge, leaves_an_answer_that_is_never_retried_to_end_the_round)
{
    const stg_outcome pushed_back = stg_failed_grpc(14, "-1");
    const stg_outcome ends[] = {stg_answered(404),
                                stg_failed(STG_FAULT_CANCELLED), pushed_back};
    const stg_why whys[] = {STG_WHY_PERMANENT, STG_WHY_CANCELLED,
                            STG_WHY_PERMANENT};

    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        for (uint32_t index = 0; index < 2; index++) {
            scene s;

            begin_at_once(&s, "hedge=100ms bulkhead=2 breaker=5");
            hedge(&s, 100);
            CHECK_END(end(&s, index, ends[i], 150), STG_GIVE_UP, whys[i]);
            CHECK_U64(taken(&s), 0);
        }
}

TEST(hedge, outlives_a_fault_of_this_machine)
{
    scene s;

    begin_at_once(&s, "hedge=100ms retry=5xx");
    hedge(&s, 100);
    CHECK_INT(end(&s, 1, stg_failed(STG_FAULT_NO_FILES), 100).next, STG_GO);
    CHECK_END(end(&s, 0, stg_failed(STG_FAULT_NO_FILES), 120), STG_GIVE_UP,
              STG_WHY_PERMANENT);
}

TEST(hedge, ends_with_a_failure_when_the_operation_is_cancelled)
{
    stg_cancel cancel = {0};
    scene s;

    begin_at_once(&s, "hedge=100ms bulkhead=3");
    s.with.cancel = &cancel;
    hedge(&s, 100);
    stg_cancel_set(&cancel);
    CHECK_END(end(&s, 0, stg_answered(503), 110), STG_GIVE_UP,
              STG_WHY_CANCELLED);
    CHECK_U64(taken(&s), 0);

    begin_at_once(&s, "hedge=100ms:2 bulkhead=3 throttle=sre:3");
    accept(&s.peer.throttle, 1);
    hedge(&s, 100);
    hedge(&s, 200);
    CHECK_END(stg_hedge_cancel(&s.h, &s.r, 250 * STG_MS), STG_GIVE_UP,
              STG_WHY_CANCELLED);
    CHECK_U64(taken(&s), 0);
    CHECK_U64(s.h.under_way, 0);

    // In a wait, too.
    begin_at_once(&s, "hedge=100ms bulkhead=3");
    CHECK_INT(end(&s, 0, stg_answered(503), 10).next, STG_WAIT);
    CHECK_END(stg_hedge_cancel(&s.h, &s.r, 20 * STG_MS), STG_GIVE_UP,
              STG_WHY_CANCELLED);
}

TEST(hedge, stops_when_an_answer_asks_for_time)
{
    const stg_outcome o[] = {stg_answered(429), stg_answered_after(503, 1)};

    for (size_t i = 0; i < 2; i++) {
        scene s;

        begin_at_once(&s, "hedge=100ms:3 retry-after=ignore");
        hedge(&s, 100);
        CHECK_U64(s.h.due_at, 200 * STG_MS);
        CHECK_INT(end(&s, 1, o[i], 150).next, STG_GO);
        CHECK_U64(s.h.due_at, STG_NEVER);
    }
}

TEST(hedge, goes_on_after_a_failure_that_asks_for_nothing)
{
    scene s;

    begin_at_once(&s, "hedge=100ms:3");
    hedge(&s, 100);
    CHECK_INT(end(&s, 1, stg_answered(503), 150).next, STG_GO);
    CHECK_U64(s.h.due_at, 200 * STG_MS);
    CHECK_U64(hedge(&s, 200), 2);
    CHECK_END(end(&s, 2, stg_ok(), 250), STG_DONE, STG_WHY_DONE);
    CHECK_U64(s.h.due_at, STG_NEVER);
}

TEST(hedge, heeds_what_any_of_the_round_was_asked_for)
{
    scene s;
    stg_decision d;

    begin_at_once(&s, "fixed base=10ms jitter=none hedge=100ms:2");
    hedge(&s, 100);
    hedge(&s, 200);
    CHECK_INT(end(&s, 0, stg_answered_after(503, 2 * STG_S), 300).next, STG_GO);
    CHECK_INT(end(&s, 1, stg_answered_after(503, STG_S), 300).next, STG_GO);
    d = end(&s, 2, stg_failed(STG_FAULT_RESET), 500);
    CHECK_END(d, STG_WAIT, STG_WHY_SERVER_DELAY);
    CHECK_U64(d.due_at, 2300 * STG_MS);
    go(&s, 2300); // and no longer
    d = end(&s, 0, stg_failed(STG_FAULT_RESET), 2310);
    CHECK_END(d, STG_WAIT, STG_WHY_BACKOFF);
}

/* -- refused, and nothing else changes */

/* A full bucket may be full since any time up to now. */
static void check_same_peer(const stg_peer *a, const stg_peer *b, stg_ns now)
{
    CHECK_U64(stg_budget_left(&a->budget, now),
              stg_budget_left(&b->budget, now));
    CHECK(equal(&a->breaker, &b->breaker, sizeof a->breaker));
    CHECK_U64(stg_ns_max(a->limiter.level, now),
              stg_ns_max(b->limiter.level, now));
    CHECK(equal(&a->bulkhead, &b->bulkhead, sizeof a->bulkhead));
    CHECK(equal(&a->throttle, &b->throttle, sizeof a->throttle));
}

/* No hedge now; the round goes on, and none is asked for again. */
static void check_refused(scene *s, stg_ns ms)
{
    stg_peer before = s->peer;
    stg_retry r = s->r;

    CHECK_U64(hedge(s, ms), 0);
    check_same_peer(&s->peer, &before, ms * STG_MS);
    CHECK(equal(&s->r, &r, sizeof r));
    CHECK_U64(s->h.due_at, STG_NEVER);
    CHECK_U64(s->h.under_way, 1);
    CHECK_INT(stg_retry_admit(&s->r, ms * STG_MS, &s->rng).next, STG_GO);
}

TEST(hedge, is_refused_where_the_operation_is_not_repeatable)
{
    scene s;

    begin_at_once(&s, "hedge=100ms");
    s.with.method = "POST";
    check_refused(&s, 100);

    begin_at_once(&s, "hedge=100ms");
    s.with.method = "POST";
    s.with.has_key = true;
    CHECK_U64(hedge(&s, 100), 1);

    begin_at_once(&s, "hedge=100ms unsafe=yes");
    s.with.method = "POST";
    CHECK_U64(hedge(&s, 100), 1);

    begin_at_once(&s, "hedge=100ms");
    s.with.method = "GET";
    CHECK_U64(hedge(&s, 100), 1);
}

TEST(hedge, is_refused_when_it_comes_too_late)
{
    scene s;

    begin(&s, "hedge=100ms deadline=200ms");
    s.with.expected = 100 * STG_MS;
    go(&s, 0);
    check_refused(&s, 100);

    begin(&s, "hedge=100ms deadline=200ms");
    s.with.expected = 100 * STG_MS - 1;
    go(&s, 0);
    CHECK_U64(hedge(&s, 100), 1);
}

TEST(hedge, is_refused_when_the_operation_is_cancelled)
{
    stg_cancel cancel = {0};
    scene s;

    begin_at_once(&s, "hedge=100ms");
    s.with.cancel = &cancel;
    stg_cancel_set(&cancel);
    check_refused(&s, 100);
}

TEST(hedge, is_refused_without_a_place_in_the_bulkhead)
{
    scene s;

    begin_at_once(&s, "hedge=100ms bulkhead=1:1s budget=1:1/s");
    check_refused(&s, 100);
    CHECK_U64(taken(&s), 1);
}

TEST(hedge, is_refused_beyond_the_rate)
{
    scene s;

    begin_at_once(&s, "hedge=100ms rate=1/s bulkhead=2 budget=1:1/s");
    check_refused(&s, 100);

    begin_at_once(&s, "hedge=1s rate=1/s bulkhead=2 budget=1:1/s");
    CHECK_U64(hedge(&s, 1000), 1);
    CHECK_U64(taken(&s), 2);
    CHECK(!stg_limiter_take(&s.peer.limiter, STG_S, NULL));
}

TEST(hedge, is_a_retry_of_a_share_until_it_ends)
{
    stg_budget_options half = {
        .kind = STG_BUDGET_SHARE, .capacity = 1, .ratio = 500};
    scene s;

    for (uint32_t winner = 0; winner < 2; winner++) {
        begin_at_once(&s, "hedge=100ms:2 budget=share:50%+1");
        CHECK_U64(hedge(&s, 100), 1);
        CHECK_U64(stg_budget_left(&s.peer.budget, 0), 0);
        CHECK_U64(hedge(&s, 200), 0);
        CHECK_END(end(&s, winner, stg_ok(), 210), STG_DONE, STG_WHY_DONE);
        CHECK_U64(s.peer.budget.level, 0);
    }
    // It failed first: its place is free.
    begin_at_once(&s, "hedge=100ms budget=share:50%+1");
    CHECK_U64(hedge(&s, 100), 1);
    CHECK_END(end(&s, 1, stg_answered(503), 110), STG_GO, STG_WHY_DONE);
    CHECK_U64(stg_budget_left(&s.peer.budget, 0), 1000);
    CHECK_INT(stg_hedge_cancel(&s.h, &s.r, 120 * STG_MS).next, STG_GIVE_UP);
    CHECK_U64(s.peer.budget.level, 0);
    // Of a shared budget, without a peer, and cancelled.
    begin(&s, "hedge=100ms");
    CHECK_INT(stg_budget_init(&s.shared, &half), STG_OK);
    s.with = (stg_with){.shared_budget = &s.shared};
    CHECK_INT(stg_retry_start(&s.r, &s.policy, &s.with, 0), STG_OK);
    go(&s, 0);
    CHECK_U64(hedge(&s, 100), 1);
    CHECK_U64(stg_budget_left(&s.shared, 0), 0);
    CHECK_INT(stg_hedge_cancel(&s.h, &s.r, 120 * STG_MS).next, STG_GIVE_UP);
    CHECK_U64(s.shared.level, 0);
}

TEST(hedge, is_paid_as_a_retry_and_refused_by_an_empty_budget)
{
    scene s;
    stg_budget_options one = {
        .kind = STG_BUDGET_TOKENS, .capacity = 1, .rate = 1};

    begin_at_once(&s, "hedge=100ms:2 budget=1:0.001/s rate=100/s bulkhead=9");
    CHECK_U64(hedge(&s, 100), 1);
    CHECK_U64(stg_budget_left(&s.peer.budget, 0), 0);
    CHECK_U64(hedge(&s, 200), 0);
    CHECK_U64(taken(&s), 2);

    begin_at_once(&s, "hedge=100ms budget=1:0.001/s rate=1000/s bulkhead=9");
    stg_budget_take(&s.peer.budget, STG_CHARGE_RETRY, 0);
    check_refused(&s, 100);

    // The shared one has none: the own one gets its token back.
    begin(&s, "hedge=100ms budget=1:0.001/s");
    CHECK_INT(stg_budget_init(&s.shared, &one), STG_OK);
    stg_budget_take(&s.shared, STG_CHARGE_RETRY, 0);
    s.with.shared_budget = &s.shared;
    CHECK_INT(stg_retry_start(&s.r, &s.policy, &s.with, 0), STG_OK);
    go(&s, 0);
    CHECK_U64(hedge(&s, 100), 0);
    CHECK_U64(stg_budget_left(&s.peer.budget, 100 * STG_MS), 1000);

    // Without a peer, as a shared budget has it.
    begin(&s, "hedge=100ms");
    CHECK_INT(stg_budget_init(&s.shared, &one), STG_OK);
    s.with = (stg_with){.shared_budget = &s.shared};
    CHECK_INT(stg_retry_start(&s.r, &s.policy, &s.with, 0), STG_OK);
    go(&s, 0);
    CHECK_U64(hedge(&s, 100), 1);
    CHECK_U64(stg_budget_left(&s.shared, 0), 0);
    CHECK_END(end(&s, 1, stg_ok(), 110), STG_DONE, STG_WHY_DONE);
}

/* 5 of 500 for the hedge, which come back; a first try that succeeds alone would
 * give back 1. */
TEST(hedge, has_what_it_paid_returned_by_a_success)
{
    scene s;

    begin_at_once(&s, "hedge=100ms budget=aws");
    stg_budget_take(&s.peer.budget, STG_CHARGE_TIMEOUT, 0);
    CHECK_U64(hedge(&s, 100), 1);
    CHECK_U64(stg_budget_left(&s.peer.budget, 0), 485000);
    CHECK_END(end(&s, 0, stg_ok(), 110), STG_DONE, STG_WHY_DONE);
    CHECK_U64(stg_budget_left(&s.peer.budget, 0), 490000);

    // Without a hedge nothing was paid.
    begin_at_once(&s, "hedge=100ms budget=aws");
    stg_budget_take(&s.peer.budget, STG_CHARGE_TIMEOUT, 0);
    CHECK_END(end(&s, 0, stg_ok(), 50), STG_DONE, STG_WHY_DONE);
    CHECK_U64(stg_budget_left(&s.peer.budget, 0), 491000);
}

TEST(hedge, counts_failures_of_a_round_as_grpc_does)
{
    scene s;

    begin_at_once(&s, "hedge=100ms budget=grpc:10:0.5");
    CHECK_U64(hedge(&s, 100), 1);
    CHECK_INT(end(&s, 0, stg_answered(503), 110).next, STG_GO);
    CHECK_U64(stg_budget_left(&s.peer.budget, 0), 9000);
    CHECK_INT(end(&s, 1, stg_answered(503), 110).next, STG_WAIT);
    CHECK_U64(stg_budget_left(&s.peer.budget, 0), 8000);
}

TEST(hedge, is_refused_unless_the_breaker_is_closed)
{
    scene s;

    begin(&s, "hedge=100ms breaker=1:1s breaker-scope=retries");
    stg_breaker_report(&s.peer.breaker, false, STG_BREAKER_FAILURE, 0, 0);
    go(&s, 0); // a first attempt passes
    check_refused(&s, 100);

    // The breaker's probe.
    begin(&s, "hedge=100ms breaker=1:1s");
    stg_breaker_report(&s.peer.breaker, false, STG_BREAKER_FAILURE, 0, 0);
    go(&s, 1100);
    check_refused(&s, 1200);
    // Another one has closed it meanwhile.
    go(&s, 1200);
    stg_breaker_report(&s.peer.breaker, true, STG_BREAKER_SUCCESS, 1, 1);
    CHECK_INT(stg_breaker_look(&s.peer.breaker, 1, NULL), STG_BREAKER_CLOSED);
    check_refused(&s, 1300);

    // A policy without a breaker does not look at the peer's.
    begin(&s, "hedge=100ms breaker=1:1s");
    s.policy.breaker = (stg_breaker_options){.rule = STG_BREAKER_NONE};
    CHECK_INT(stg_retry_start(&s.r, &s.policy, &s.with, 0), STG_OK);
    stg_breaker_report(&s.peer.breaker, false, STG_BREAKER_FAILURE, 0, 0);
    go(&s, 0);
    CHECK_U64(hedge(&s, 100), 1);
    CHECK_INT(end(&s, 1, stg_answered(503), 120).next, STG_GO);
}

TEST(hedge, tells_the_breaker_of_each_attempt_that_has_ended)
{
    scene s;

    begin_at_once(&s, "hedge=100ms:2 breaker=3:1s");
    hedge(&s, 100);
    hedge(&s, 200);
    end(&s, 0, stg_answered(503), 210);
    end(&s, 1, stg_answered(503), 210);
    CHECK_INT(stg_breaker_look(&s.peer.breaker, 0, NULL), STG_BREAKER_CLOSED);
    end(&s, 2, stg_answered(503), 210);
    CHECK_INT(stg_breaker_look(&s.peer.breaker, 0, NULL), STG_BREAKER_OPEN);

    // Of each the time that it took itself.
    begin_at_once(&s,
                  "hedge=100ms:2 breaker=100%/3/10s:1s breaker-slow=70%/1s");
    hedge(&s, 100);
    hedge(&s, 200);
    end(&s, 1, stg_answered(503), 1099);
    end(&s, 2, stg_answered(503), 1199);
    end(&s, 0, stg_ok(), 1200);
    CHECK_INT(stg_breaker_look(&s.peer.breaker, 0, NULL), STG_BREAKER_CLOSED);
    begin_at_once(&s,
                  "hedge=100ms:2 breaker=100%/3/10s:1s breaker-slow=60%/1s");
    hedge(&s, 100);
    hedge(&s, 200);
    end(&s, 1, stg_answered(503), 1100);
    end(&s, 2, stg_answered(503), 1199);
    CHECK_INT(stg_breaker_look(&s.peer.breaker, 0, NULL), STG_BREAKER_CLOSED);
    end(&s, 0, stg_ok(), 1200);
    CHECK_INT(stg_breaker_look(&s.peer.breaker, 0, NULL), STG_BREAKER_OPEN);

    // The last hedge has no moment of another behind its own.
    begin_at_once(&s, "hedge=100ms breaker=100%/2/10s:1s breaker-slow=60%/1s");
    hedge(&s, 100);
    end(&s, 1, stg_answered(503), 1099);
    end(&s, 0, stg_ok(), 1200);
    CHECK_INT(stg_breaker_look(&s.peer.breaker, 0, NULL), STG_BREAKER_CLOSED);

    // A late answer is not that of another operation's probe.
    begin_at_once(&s, "hedge=100ms breaker=1:1s");
    hedge(&s, 100);
    stg_breaker_report(&s.peer.breaker, false, STG_BREAKER_FAILURE, 0, 0);
    CHECK_INT(stg_breaker_enter(&s.peer.breaker, 2 * STG_S, NULL),
              STG_PERMIT_PROBE);
    end(&s, 1, stg_answered(503), 2100);
    CHECK_INT(stg_breaker_look(&s.peer.breaker, 2100 * STG_MS, NULL),
              STG_BREAKER_HALF_OPEN);

    // Those that were cancelled say nothing.
    begin_at_once(&s, "hedge=100ms:2 breaker=3:1s");
    stg_breaker_report(&s.peer.breaker, false, STG_BREAKER_FAILURE, 0, 0);
    hedge(&s, 100);
    hedge(&s, 200);
    end(&s, 1, stg_answered(503), 210);
    stg_hedge_cancel(&s.h, &s.r, 220);
    stg_breaker_report(&s.peer.breaker, false, STG_BREAKER_FAILURE, 0, 0);
    CHECK_INT(stg_breaker_look(&s.peer.breaker, 0, NULL), STG_BREAKER_OPEN);
}

TEST(hedge, is_refused_while_the_throttle_holds_back)
{
    scene s;

    begin(&s, "hedge=100ms throttle=sre:1");
    for (int i = 0; i < 9; i++)
        stg_throttle_enter(&s.peer.throttle, 0, &s.rng, NULL);
    do // by chance
        CHECK_INT(stg_retry_start(&s.r, &s.policy, &s.with, 0), STG_OK);
    while (stg_retry_admit(&s.r, 0, &s.rng).next != STG_GO);
    go(&s, 0);
    check_refused(&s, 100);

    begin_at_once(&s, "hedge=100ms throttle=aws");
    stg_throttle_report(&s.peer.throttle, &(stg_outcome){.code = 0}, 0, 0);
    stg_throttle_report(&s.peer.throttle,
                        &(stg_outcome){.fault = STG_FAULT_PUSHBACK}, 0, STG_S);
    CHECK(stg_throttle_rate(&s.peer.throttle) != 0);
    check_refused(&s, 1100);
}

/* The shadow counts by hand what the throttle has to count. */
TEST(hedge, counts_and_withdraws_each_attempt_at_the_throttle)
{
    scene s;
    stg_throttle shadow;
    stg_outcome bad = stg_answered(503), local = stg_failed(STG_FAULT_NO_FILES);

    begin_at_once(&s, "hedge=20s:3 throttle=sre:100");
    accept(&s.peer.throttle, 1);
    shadow = s.peer.throttle;
    CHECK_U64(hedge(&s, 20000), 1);
    CHECK_U64(hedge(&s, 40000), 2);
    CHECK_U64(hedge(&s, 60000), 3);
    for (stg_ns at = 20; at <= 60; at += 20)
        stg_throttle_enter(&shadow, at * STG_S, &s.rng, NULL);
    CHECK(equal(&s.peer.throttle, &shadow, sizeof shadow));
    end(&s, 1, bad, 61000);
    end(&s, 2, local, 61000);
    stg_throttle_report(&shadow, &bad, 20 * STG_S, 61 * STG_S);
    stg_throttle_report(&shadow, &local, 40 * STG_S, 61 * STG_S);
    CHECK(equal(&s.peer.throttle, &shadow, sizeof shadow));
    end(&s, 0, stg_ok(), 62000); // the third withdraws
    stg_throttle_report(&shadow, &(stg_outcome){.code = 0}, 0, 62 * STG_S);
    stg_throttle_withdraw(&shadow, 60 * STG_S);
    CHECK(equal(&s.peer.throttle, &shadow, sizeof shadow));
}

TEST(hedge, is_left_to_the_operation_around)
{
    scene outer, s;

    begin_at_once(&outer, "hedge=100ms");
    begin_at_once(&s, "hedge=100ms");
    s.with.parent = &outer.r;
    check_refused(&s, 100);

    // As long as that one runs, and unless each is to be for itself.
    begin_at_once(&s, "hedge=100ms nested=full");
    s.with.parent = &outer.r;
    CHECK_U64(hedge(&s, 100), 1);
    end(&outer, 0, stg_ok(), 0);
    begin_at_once(&s, "hedge=100ms");
    s.with.parent = &outer.r;
    CHECK_U64(hedge(&s, 100), 1);

    // An operation that does not hedge may run inside one that does.
    {
        scene middle;

        begin_at_once(&outer, "hedge=100ms");
        begin_at_once(&middle, "client");
        begin_at_once(&s, "hedge=100ms");
        s.with.parent = &middle.r;
        CHECK_U64(hedge(&s, 100), 1);
        middle.with.parent = &outer.r;
        begin_at_once(&s, "hedge=100ms");
        s.with.parent = &middle.r;
        check_refused(&s, 100);
    }
    {
        const stg_retry zeroed = {.policy = NULL};

        begin_at_once(&s, "hedge=100ms");
        s.with.parent = &zeroed;
        CHECK_U64(hedge(&s, 100), 1);
    }
}

TEST(hedge, is_not_there_without_its_setting_and_outside_a_round)
{
    scene s;
    uint32_t index = 7;

    begin_at_once(&s, "client");
    CHECK_U64(s.h.due_at, STG_NEVER);
    CHECK_U64(hedge(&s, 1000000), 0);
    CHECK_END(end(&s, 0, stg_ok(), 100), STG_DONE, STG_WHY_DONE);

    begin(&s, "hedge=100ms");
    stg_hedge_begin(&s.h, &s.r, 0); // before its attempt
    CHECK_U64(s.h.due_at, STG_NEVER);
    CHECK_U64(hedge(&s, 100), 0);
    CHECK_INT(end(&s, 0, stg_ok(), 100).why, STG_WHY_INVALID);
    s.h = (stg_hedge){.due_at = 0};
    CHECK_U64(hedge(&s, 100), 0);
    go(&s, 0);
    CHECK_INT(end(&s, 4, stg_ok(), 100).next, STG_GO);
    CHECK_INT(end(&s, 32, stg_ok(), 100).next, STG_GO);
    CHECK_INT(end(&s, UINT32_MAX, stg_ok(), 100).next, STG_GO);
    CHECK_INT(end(&s, 1, stg_ok(), 100).next, STG_GO);
    CHECK(stg_hedge_admit(&s.h, &s.r, 100 * STG_MS, NULL));
    CHECK(!stg_hedge_admit(NULL, &s.r, 0, &index));
    CHECK(!stg_hedge_admit(&s.h, NULL, 0, &index));
    CHECK_U64(index, 7);
    CHECK_INT(stg_hedge_step(NULL, &s.r, 0, NULL, 0, &s.rng).why,
              STG_WHY_INVALID);
    CHECK_INT(stg_hedge_step(&s.h, NULL, 0, NULL, 0, &s.rng).why,
              STG_WHY_INVALID);
    stg_hedge_begin(NULL, &s.r, 0);
    CHECK_INT(stg_hedge_cancel(NULL, &s.r, 0).why, STG_WHY_CANCELLED);
    CHECK_INT(stg_hedge_cancel(&s.h, NULL, 0).why, STG_WHY_INVALID);
    stg_hedge_begin(&s.h, NULL, 0);
    CHECK_U64(s.h.due_at, STG_NEVER);
}

/* A caller that ends the attempt by itself has no round any more. */
TEST(hedge, is_over_with_the_attempt)
{
    const stg_outcome o = stg_answered(503);
    scene s;

    begin_at_once(&s, "hedge=100ms");
    CHECK_INT(stg_retry_step(&s.r, &o, 0, &s.rng).next, STG_WAIT);
    CHECK_U64(hedge(&s, 100), 0);
    CHECK_INT(end(&s, 0, o, 100).why, STG_WHY_INVALID);
}

TEST(hedge, reads_no_outcome_as_an_error)
{
    scene s;

    begin_at_once(&s, "hedge=100ms retry=error once=503");
    hedge(&s, 100);
    CHECK_INT(stg_hedge_step(&s.h, &s.r, 0, NULL, 0, &s.rng).next, STG_GO);
    CHECK_INT(stg_hedge_step(&s.h, &s.r, 1, NULL, 0, &s.rng).next, STG_WAIT);
}

/* What resumes without a peer asks none. */
TEST(hedge, needs_no_peer_to_go_on)
{
    scene s;
    stg_progress progress = {.attempts = 1};
    const stg_with no_peer = {.peer = NULL};

    begin(&s, "hedge=100ms breaker=2 throttle=sre");
    CHECK_INT(stg_retry_resume(&s.r, &s.policy, &no_peer, &progress, 0, 0),
              STG_OK);
    stg_hedge_begin(&s.h, &s.r, 0);
    CHECK_U64(hedge(&s, 100), 1);
    CHECK_INT(end(&s, 0, stg_answered(503), 110).next, STG_GO);
    CHECK_INT(end(&s, 1, stg_answered(503), 110).next, STG_WAIT);

    s.policy = parse("hedge=p95 breaker=2");
    CHECK_INT(stg_retry_resume(&s.r, &s.policy, &no_peer, &progress, 0, 0),
              STG_OK);
    stg_hedge_begin(&s.h, &s.r, 0);
    CHECK_U64(s.h.due_at, STG_NEVER);
    CHECK_END(end(&s, 0, stg_ok(), 110), STG_DONE, STG_WHY_DONE);
}

/* -- events */

typedef struct watcher {
    char text[256];
    size_t length;
} watcher;

static void watch(void *ctx, const stg_event *e)
{
    static const char *const kinds[] = {
        [STG_EVENT_ATTEMPT] = "attempt ",
        [STG_EVENT_DECISION] = "decision",
        [STG_EVENT_END] = "end ",
        [STG_EVENT_HEDGE] = "hedge ",
    };
    static const char *const nexts[] = {":go ", ":wait ", ":done ",
                                        ":give-up "};
    watcher *w = ctx;

    w->length += (size_t)snprintf(
        w->text + w->length, sizeof w->text - w->length, "%s%s", kinds[e->kind],
        e->kind == STG_EVENT_DECISION ? nexts[e->decision.next] : "");
}

TEST(hedge, tells_the_hook)
{
    watcher w = {.length = 0};
    const stg_hook hook = {watch, &w};
    scene s;

    begin(&s, "hedge=100ms");
    s.with.hook = &hook;
    CHECK_INT(stg_retry_start(&s.r, &s.policy, &s.with, 0), STG_OK);
    go(&s, 0);
    hedge(&s, 100);
    end(&s, 0, stg_answered(503), 110);
    end(&s, 1, stg_ok(), 110);
    CHECK_STR(w.text, "attempt hedge decision:go decision:done end ");
}

/* -- latencies */

TEST(latencies, has_no_percentile_of_few)
{
    stg_latencies l = {.count = 0};

    CHECK_U64(stg_latencies_percentile(NULL, 50), STG_NEVER);
    stg_latencies_add(NULL, STG_MS);
    for (int i = 0; i < 99; i++)
        stg_latencies_add(&l, STG_MS);
    CHECK_U64(stg_latencies_percentile(&l, 50), STG_NEVER);
    stg_latencies_add(&l, STG_MS);
    CHECK(stg_latencies_percentile(&l, 50) < 1250 * STG_US);
    CHECK_U64(stg_latencies_percentile(&l, 0), STG_NEVER);
    CHECK_U64(stg_latencies_percentile(&l, 101), STG_NEVER);
    CHECK(stg_latencies_percentile(&l, 100) < 1250 * STG_US);
}

/* Each counter ends above what it holds, by a quarter at most, or by 16 us. */
TEST(latencies, knows_a_latency_to_a_quarter)
{
    const stg_ns longest = (UINT64_C(1) << 39) - 1;

    for (stg_ns at = 1; at < longest; at += 1 + at / 20) {
        const stg_ns both[] = {at - 1, at};

        for (int i = 0; i < 2; i++) {
            stg_latencies l = {.count = 0};
            stg_ns found;

            for (int n = 0; n < 100; n++)
                stg_latencies_add(&l, both[i]);
            found = stg_latencies_percentile(&l, 95);
            CHECK(found > both[i]);
            CHECK(found <= both[i] + stg_ns_max(both[i] / 4, 1 << 14) + 1);
            CHECK_U64(stg_latencies_percentile(&l, 1), found);
            CHECK_U64(stg_latencies_percentile(&l, 99), found);
        }
    }
    {
        stg_latencies l = {.count = 0};

        for (int n = 0; n < 100; n++)
            stg_latencies_add(&l, n % 2 == 0 ? STG_NEVER : longest);
        CHECK_U64(stg_latencies_percentile(&l, 50), longest + 1);
    }
}

/* Another thread has counted one, and not told where. */
TEST(latencies, bears_a_count_that_is_ahead)
{
    const stg_latencies l = {.count = 100};

    CHECK_U64(stg_latencies_percentile(&l, 95), 1 << 14);
}

/* By hand, of 100: 1 to 94 take 1 ms, the others 1 s. */
TEST(latencies, finds_what_so_many_exceed)
{
    stg_latencies l = {.count = 0};

    for (int i = 1; i <= 100; i++)
        stg_latencies_add(&l, i <= 94 ? STG_MS : STG_S);
    CHECK(stg_latencies_percentile(&l, 94) < 2 * STG_MS);
    CHECK(stg_latencies_percentile(&l, 95) > STG_S);
    // Seven are more than six: an odd count is read to the last one.
    l = (stg_latencies){.count = 0};
    for (int i = 1; i <= 100; i++)
        stg_latencies_add(&l, i <= 93 ? STG_MS : STG_S);
    CHECK(stg_latencies_percentile(&l, 93) < 2 * STG_MS);
    CHECK(stg_latencies_percentile(&l, 94) > STG_S);
}

/* Four latencies that share a word, so many of each. */
static void add_four(stg_latencies *l, const int many[4])
{
    for (unsigned i = 0; i < 4; i++)
        for (int n = 0; n < many[i]; n++)
            stg_latencies_add(l, (stg_ns)i << 14);
}

/* None is halved into another, and each is rounded up every other time. */
TEST(latencies, halves_each_counter_of_a_word_by_itself)
{
    stg_latencies l = {.count = 0};

    add_four(&l, (const int[]){251, 251, 249, 249});
    CHECK_U64(l.counters[0], UINT64_C(0x007d007c007e007d));
    add_four(&l, (const int[]){126, 125, 125, 124});
    CHECK_U64(l.counters[0], UINT64_C(0x007c007d007d007e));
}

/* However long it goes on, a tail keeps its share, and what ended is
 * forgotten. */
TEST(latencies, keeps_the_share_of_a_tail_and_forgets)
{
    stg_latencies l = {.count = 0};
    stg_rng rng = stg_rng_seed(1);

    for (int i = 1; i < 200000; i++) {
        stg_ns took = STG_MS;

        if (stg_rng_upto(&rng, 999) < 80) // 8 %, in many counters
            took = (100 + stg_rng_upto(&rng, 300)) * STG_MS;
        stg_latencies_add(&l, took);
        if (i < 1000)
            continue;
        CHECK(stg_latencies_percentile(&l, 85) < 2 * STG_MS);
        CHECK(stg_latencies_percentile(&l, 96) > 100 * STG_MS);
    }
    for (int i = 0; i < 20000; i++)
        stg_latencies_add(&l, 10 * STG_MS);
    CHECK(stg_latencies_percentile(&l, 100) < 13 * STG_MS);
    for (int i = 0; i < 20000; i++)
        stg_latencies_add(&l, 0);
    for (int i = 0; i < 20000; i++)
        stg_latencies_add(&l, 10 * STG_MS);
    CHECK(stg_latencies_percentile(&l, 1) > 9 * STG_MS);
}

TEST(latencies, count_good_answers_and_timeouts_from_the_first_attempt_on)
{
    static const struct {
        stg_fault fault;
        bool counts;
    } rows[] = {{STG_FAULT_NONE, true},
                {STG_FAULT_TIMEOUT, true},
                {STG_FAULT_REFUSED, false}};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        scene s;
        stg_outcome o = {.fault = rows[i].fault};

        begin(&s, "attempts=unlimited hedge=p90 deadline=none");
        for (int n = 0; n < 100; n++) {
            CHECK_INT(stg_retry_start(&s.r, &s.policy, &s.with, 0), STG_OK);
            go(&s, 50);
            CHECK_U64(s.h.due_at, STG_NEVER);
            end(&s, 0, o, 150);
        }
        CHECK_INT(stg_retry_start(&s.r, &s.policy, &s.with, 0), STG_OK);
        go(&s, 1000);
        if (!rows[i].counts) {
            CHECK_U64(s.h.due_at, STG_NEVER);
            continue;
        }
        CHECK(s.h.due_at >= 1100 * STG_MS && s.h.due_at <= 1126 * STG_MS);
        // A hedge that wins after 1 ms was waited for 200 ms.
        memset(&s.peer.latencies, 0, sizeof s.peer.latencies);
        CHECK_U64(hedge(&s, 1199), 1);
        end(&s, 1, stg_ok(), 1200);
        for (int n = 0; n < 99; n++)
            stg_latencies_add(&s.peer.latencies, 0);
        CHECK(stg_latencies_percentile(&s.peer.latencies, 99) < STG_MS);
        stg_latencies_add(&s.peer.latencies, 200 * STG_MS);
        CHECK(stg_latencies_percentile(&s.peer.latencies, 99) > 200 * STG_MS);
    }
}

TEST(latencies, are_kept_for_policies_with_a_percentile_alone)
{
    scene s;

    begin_at_once(&s, "hedge=100ms");
    end(&s, 0, stg_ok(), 50);
    CHECK_U64(s.peer.latencies.count, 0);
    begin_at_once(&s, "hedge=p50");
    end(&s, 0, stg_ok(), 50);
    CHECK_U64(s.peer.latencies.count, 1);
    CHECK(stg_policy_needs_peer(&s.policy));
    s.policy = parse("hedge=100ms");
    CHECK(!stg_policy_needs_peer(&s.policy));
}

/* -- options */

TEST(hedge, refuses_options_out_of_range_and_names_them)
{
    static const struct {
        stg_hedge_options options;
        const char *text;
    } rows[] = {
        {{4, 0, STG_S},
         "hedge=4 is out of range, expected 1 to 3 further attempts, or none"},
        {{1, 49, 0}, "hedge percentile=49 is out of range, expected 50 to 99"},
        {{1, 100, 0},
         "hedge percentile=100 is out of range, expected 50 to 99"},
        {{0, 50, 0},
         "hedge percentile=50 is out of range, expected 0 without hedges"},
        {{0, 0, 1},
         "hedge delay=1ns is out of range, expected 0 without hedges, or with a "
         "percentile"},
        {{1, 50, 1},
         "hedge delay=1ns is out of range, expected 0 without hedges, or with a "
         "percentile"},
        {{1, 0, 0}, "hedge delay=0 is out of range, expected 1ms to 365d"},
        {{1, 0, STG_MS - 1},
         "hedge delay=999999ns is out of range, expected 1ms to 365d"},
        {{1, 0, 365 * STG_DAY + 1},
         "hedge delay=31536000000000001ns is out of range, expected 1ms to 365d"},
    };
    static const stg_hedge_options good[] = {{0, 0, 0},
                                             {1, 50, 0},
                                             {3, 99, 0},
                                             {1, 0, STG_MS},
                                             {3, 0, 365 * STG_DAY}};
    stg_error err = {0};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CHECK_INT(stg_hedge_check(&rows[i].options, &err), STG_INVALID);
        CHECK_STR(err.text, rows[i].text);
        CHECK_INT(stg_hedge_check(&rows[i].options, NULL), STG_INVALID);
    }
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        CHECK_INT(stg_hedge_check(&good[i], &err), STG_OK);
    CHECK_INT(stg_hedge_check(NULL, &err), STG_INVALID);
    CHECK_STR(err.text, "hedge options are NULL");
}

/* -- worlds: operations on one peer, each with random attempts */

enum { OPS = 6, ATTEMPTS = STG_HEDGES_MAX + 1 };

typedef struct actor {
    stg_with with;
    stg_retry r;
    stg_hedge h;
    stg_ns due_at; /* of its start or of the end of its wait */
    stg_ns begun_at;
    struct {
        bool is_under_way;
        stg_ns end_at, begun_at;
        stg_outcome outcome;
    } attempts[ATTEMPTS];
    bool has_ended;
} actor;

typedef struct world {
    stg_policy policy;
    stg_peer peer;
    stg_throttle throttle; /* the shadow: what has to be counted */
    actor actors[OPS];
    stg_rng rng, of_core;
    stg_ns now;
    uint64_t seed, hedges, retries, begun, ended;
    bool can_hedge;
} world;

static stg_outcome any_outcome(stg_rng *rng)
{
    static const stg_fault faults[] = {STG_FAULT_RESET, STG_FAULT_TIMEOUT,
                                       STG_FAULT_REFUSED, STG_FAULT_NO_FILES,
                                       STG_FAULT_DNS};

    switch (stg_rng_upto(rng, 9)) {
    case 0:
    case 1:
        return stg_failed(faults[stg_rng_upto(rng, 4)]);
    case 2:
        return stg_answered(404);
    case 3:
        return stg_answered(503);
    case 4:
        return stg_answered_after(429, stg_rng_upto(rng, STG_S));
    default:
        return stg_ok();
    }
}

static void begin_attempt(world *w, actor *a, uint32_t index)
{
    stg_ns took = stg_rng_upto(&w->rng, 400 * STG_MS);
    stg_ns limit = stg_retry_timeout(&a->r, w->now);
    stg_rng unused = stg_rng_seed(1);

    CHECK_FROM(w->seed, !a->attempts[index].is_under_way);
    CHECK_FROM(w->seed, w->now < a->r.deadline_at);
    a->attempts[index].is_under_way = true;
    a->attempts[index].begun_at = w->now;
    a->attempts[index].outcome = any_outcome(&w->rng);
    if (took >= limit) {
        took = limit;
        a->attempts[index].outcome = stg_failed(STG_FAULT_TIMEOUT);
    }
    a->attempts[index].end_at = w->now + took;
    w->begun++;
    stg_throttle_enter(&w->throttle, w->now, &unused, NULL);
}

static void follow(world *w, actor *a, stg_decision d)
{
    switch (d.next) {
    case STG_GO:
        break;
    case STG_WAIT:
        a->due_at = d.due_at;
        break;
    case STG_DONE:
    case STG_GIVE_UP:
        CHECK_FROM(w->seed, !a->has_ended);
        CHECK_FROM(w->seed, w->now <= a->r.deadline_at);
        a->has_ended = true;
        a->due_at = STG_NEVER;
        break;
    }
}

static void admit(world *w, actor *a)
{
    stg_decision d = stg_retry_admit(&a->r, w->now, &w->of_core);

    a->due_at = STG_NEVER;
    if (d.next == STG_GO) {
        w->retries += a->r.attempts > 1;
        stg_hedge_begin(&a->h, &a->r, w->now);
        begin_attempt(w, a, 0);
    }
    follow(w, a, d);
}

/* The others are cancelled. */
static void end_round(world *w, actor *a)
{
    for (uint32_t i = 0; i < ATTEMPTS; i++) {
        if (!a->attempts[i].is_under_way)
            continue;
        a->attempts[i].is_under_way = false;
        w->ended++;
        stg_throttle_withdraw(&w->throttle, a->attempts[i].begun_at);
    }
}

static void end_attempt(world *w, actor *a, uint32_t index)
{
    const stg_outcome *o = &a->attempts[index].outcome;
    stg_decision d;

    a->attempts[index].is_under_way = false;
    w->ended++;
    stg_throttle_report(&w->throttle, o, a->attempts[index].begun_at, w->now);
    d = stg_hedge_step(&a->h, &a->r, index, o, w->now, &w->of_core);
    if (d.next != STG_GO)
        end_round(w, a);
    follow(w, a, d);
}

static void ask_hedge(world *w, actor *a)
{
    uint32_t index;

    if (!w->can_hedge || !stg_hedge_admit(&a->h, &a->r, w->now, &index)) {
        a->h.due_at = STG_NEVER;
        return;
    }
    w->hedges++;
    begin_attempt(w, a, index);
}

static void check_world(const world *w)
{
    uint64_t under_way = 0;

    for (int i = 0; i < OPS; i++) {
        const actor *a = &w->actors[i];
        uint32_t own = 0;

        for (uint32_t k = 0; k < ATTEMPTS; k++) {
            own += a->attempts[k].is_under_way;
            CHECK_FROM(w->seed, a->attempts[k].is_under_way ==
                                    ((a->h.under_way >> k & 1) != 0));
        }
        CHECK_FROM(w->seed, own <= 1 + w->policy.hedge.max);
        CHECK_FROM(w->seed, own == 0 || !a->has_ended);
        under_way += own;
    }
    CHECK_FROM(w->seed, under_way == w->begun - w->ended);
    if (w->policy.bulkhead.max != 0) {
        CHECK_FROM(w->seed, under_way <= w->policy.bulkhead.max);
        CHECK_FROM(w->seed, under_way == stg_bulkhead_taken(&w->peer.bulkhead));
    }
    if (w->policy.throttle.k == 100000)
        CHECK_FROM(w->seed,
                   equal(&w->throttle, &w->peer.throttle, sizeof w->throttle));
    if (w->policy.budget.kind == STG_BUDGET_SHARE)
        CHECK_FROM(w->seed, under_way == w->peer.budget.level >> 32);
    if (w->policy.budget.kind == STG_BUDGET_TOKENS) // none comes back
        CHECK_FROM(w->seed,
                   w->hedges + w->retries <= w->policy.budget.capacity);
}

/* The next event: false, there is none. */
static bool step(world *w)
{
    stg_ns at = STG_NEVER;

    for (int i = 0; i < OPS; i++) {
        const actor *a = &w->actors[i];

        at = stg_ns_min(at, a->due_at);
        for (uint32_t k = 0; k < ATTEMPTS; k++)
            if (a->attempts[k].is_under_way)
                at = stg_ns_min(at, a->attempts[k].end_at);
        if (a->h.under_way != 0)
            at = stg_ns_min(at, a->h.due_at);
    }
    if (at == STG_NEVER)
        return false;
    w->now = at;
    for (int i = 0; i < OPS; i++) {
        actor *a = &w->actors[i];

        for (uint32_t k = 0; k < ATTEMPTS; k++)
            if (a->attempts[k].is_under_way && a->attempts[k].end_at == at) {
                end_attempt(w, a, k);
                return true;
            }
        if (a->h.under_way != 0 && a->h.due_at == at) {
            ask_hedge(w, a);
            return true;
        }
        if (a->due_at == at) {
            admit(w, a);
            return true;
        }
    }
    return false;
}

static void make_world(world *w, uint64_t seed, const char *text)
{
    *w = (world){.seed = seed,
                 .rng = stg_rng_seed(seed),
                 .of_core = stg_rng_seed(~seed),
                 .can_hedge = true};
    w->policy = parse(text);
    CHECK_INT(stg_peer_init(&w->peer, &w->policy), STG_OK);
    if (w->policy.throttle.k == 100000)
        accept(&w->peer.throttle, 1); // it never refuses
    w->throttle = w->peer.throttle;
    for (int i = 0; i < OPS; i++) {
        actor *a = &w->actors[i];

        a->h.due_at = STG_NEVER;
        a->begun_at = a->due_at = stg_rng_upto(&w->rng, 2 * STG_S);
        a->with = (stg_with){.peer = &w->peer};
        CHECK_INT(stg_retry_start(&a->r, &w->policy, &a->with, a->begun_at),
                  STG_OK);
    }
}

TEST(hedge, never_makes_more_than_it_may_and_counts_each_attempt_once)
{
    static const char *const policies[] = {
        "hedge=50ms:3 deadline=2s bulkhead=24 throttle=sre:100",
        "hedge=50ms deadline=1s budget=5:0.001/s attempts=5 base=20ms",
        "hedge=100ms:2 deadline=3s breaker=3:100ms retry=default,circuit-open "
        "attempts=9 attempt-timeout=200ms",
        "hedge=1ms:3 deadline=none rate=20/s bulkhead=3 "
        "budget=20:0.001/s attempts=4",
        "hedge=p50:3 deadline=10s attempts=9 bulkhead=20",
        "hedge=50ms:3 deadline=3s attempts=5 budget=share:50%+3",
    };
    uint64_t hedges = 0, retries = 0;

    for (uint64_t seed = 0; seed < seeds(1000); seed++)
        for (size_t i = 0; i < sizeof policies / sizeof *policies; i++) {
            world w;

            make_world(&w, seed, policies[i]);
            for (stg_ns n = 0; n < 100 && w.policy.hedge.percentile != 0; n++)
                stg_latencies_add(&w.peer.latencies, n * STG_MS);
            do
                check_world(&w);
            while (step(&w));
            check_world(&w);
            CHECK_FROM(seed, w.begun == w.ended);
            if (w.policy.budget.kind == STG_BUDGET_SHARE) // none under way
                CHECK_FROM(seed, w.peer.budget.level == 0);
            for (int a = 0; a < OPS; a++)
                CHECK_FROM(seed, w.actors[a].has_ended);
            hedges += w.hedges;
            retries += w.retries;
        }
    CHECK(hedges > seeds(1000) && retries > seeds(1000));
}

/* One world asks for hedges and gets none, the other does not ask. */
TEST(hedge, changes_nothing_where_it_is_refused)
{
    static const char *const policies[] = {
        "unsafe=no bulkhead=4:1s throttle=sre:1.5 breaker=4:300ms "
        "budget=9:1/s rate=9/s attempts=5 hedge=1ms:3",
        "budget=ratio:0.5 breaker=50%/5/1s:100ms bulkhead=3 attempts=5 "
        "hedge=20ms",
        "budget=aws throttle=aws rate=30/s attempts=5 hedge=20ms:2",
        "budget=grpc:10:0.1 breaker=3:100ms attempts=5 hedge=20ms:2",
    };

    for (uint64_t seed = 0; seed < seeds(1000); seed++)
        for (size_t i = 0; i < sizeof policies / sizeof *policies; i++) {
            world a, b;
            bool goes_on;

            make_world(&a, seed, policies[i]);
            make_world(&b, seed, policies[i]);
            for (int n = 0; n < OPS; n++)
                a.actors[n].with.method = b.actors[n].with.method = "POST";
            b.can_hedge = false;
            do {
                goes_on = step(&a);
                CHECK_FROM(seed, step(&b) == goes_on);
                check_same_peer(&a.peer, &b.peer, a.now);
                CHECK_FROM(seed, a.now == b.now);
                CHECK_FROM(seed,
                           equal(&a.of_core, &b.of_core, sizeof a.of_core));
            } while (goes_on);
            CHECK_FROM(seed, a.hedges == 0);
        }
}
