/* Hedges of simulated clients: what they gain, cost, and can do to a service. */
#include "tests/sim/memory.h"
#include "tests/sim/overload_help.h"

/* Two requests in a hundred take 300 ms in the mean, the others 8. */
static stg_overload_options slow_tail(const char *policy)
{
    stg_overload_options o = stg_overload_default();

    o.policy = help_policy(policy);
    o.trigger = (stg_trigger){.kind = STG_TRIGGER_NONE};
    o.load.rate = 300 * 1000;
    o.service.workers = 20;
    o.service.time = (stg_distribution){.kind = STG_DISTRIBUTION_MIX,
                                        .a = 300 * STG_MS,
                                        .b = 8 * STG_MS,
                                        .count = 20};
    return o;
}

static stg_overload_options slowed(const char *policy)
{
    stg_overload_options o = stg_overload_default();

    o.policy = help_policy(policy);
    o.trigger.kind = STG_TRIGGER_SLOW;
    o.trigger.factor = 3000;
    return o;
}

static double p99_of(const stg_overload_result *r)
{
    return (double)stg_sim_histogram_at(&r->latency, 990);
}

/* Dean and Barroso, "The Tail at Scale": the tail is cut for some percent of
 * the load. */
TEST(overload_hedges, cut_a_slow_tail_for_a_little_load)
{
    static const char *const hedged[] = {
        "attempts=2 hedge=40ms", "attempts=2 hedge=40ms budget=ratio:0.1",
        "attempts=2 hedge=p95 budget=ratio:0.1"};
    stg_overload_options plain = slow_tail("attempts=2");
    stg_overload_result bare = help_run(&plain, 0);

    CHECK_U64(bare.hedged + bare.hedges_won + bare.hedges_refused, 0);
    for (size_t i = 0; i < sizeof hedged / sizeof *hedged; i++) {
        stg_overload_options o = slow_tail(hedged[i]);
        stg_overload_result r = help_run(&o, 0);

        CHECK_U64(r.begun, bare.begun);
        CHECK_FROM(i, p99_of(&r) < p99_of(&bare) / 2);
        CHECK_FROM(i, r.hedged > r.begun / 100);
        CHECK_FROM(i, r.hedges_won > r.hedged / 2);
        CHECK_FROM(i, r.sent < r.begun * 106 / 100);
        CHECK_FROM(i, r.saved > bare.saved * 999 / 1000);
        stg_overload_free(&r, &help_memory);
    }
    stg_overload_free(&bare, &help_memory);
}

/* One that is slow for all is asked for twice as much by hedges that nothing
 * limits; they keep it there when the trigger is gone. */
TEST(overload_hedges, make_a_storm_unless_a_budget_pays_them)
{
    stg_overload_options without = slowed("attempts=1 hedge=40ms");
    stg_overload_options with =
        slowed("attempts=1 hedge=40ms budget=ratio:0.1");

    for (uint64_t n = 0; n < seeds(2); n++) {
        stg_overload_result storm = help_run(&without, n);
        stg_overload_result calm = help_run(&with, n);

        CHECK_FROM(n, storm.recovery.was_healthy);
        CHECK_FROM(n, !storm.recovery.is_recovered);
        CHECK_U64(storm.hedges_refused, 0);
        CHECK_FROM(n, calm.recovery.is_recovered);
        CHECK_FROM(n, calm.hedges_refused > calm.hedged);
        CHECK_FROM(n, calm.hedged < calm.begun / 9);
        stg_overload_free(&storm, &help_memory);
        stg_overload_free(&calm, &help_memory);
    }
}

/* Whatever the policy: each request is a first attempt, a retry or a hedge, and
 * what goes in comes out. */
TEST(overload_hedges, balance_their_books)
{
    static const char *const policies[] = {
        "attempts=1 hedge=5ms:3", "attempts=4 hedge=20ms:2 base=10ms",
        "backend hedge=p90", "attempts=3 hedge=10ms breaker=5:1s budget=aws",
        "attempts=3 hedge=10ms throttle=sre:2 attempt-timeout=30ms"};

    for (uint64_t i = 0; i < 30; i++) {
        stg_overload_options o = slowed(policies[i % 5]);
        uint64_t sent = 0, hedged = 0, won = 0, refused = 0, ended = 0;
        stg_overload_result r;

        o.trigger.kind = (stg_trigger_kind)(i % 6);
        o.trigger.factor = i % 6 == 5 ? 500 : i % 6 >= 3 ? 2500 : 0;
        o.warmup = 0;
        o.end_at = 30 * STG_S;
        o.trigger.from_at = 5 * STG_S;
        o.trigger.until_at = 15 * STG_S;
        o.throttle = i % 7 == 0 ? 2000 : 0;
        o.errors = i % 3 == 0 ? 10000 : 0;
        r = help_run(&o, i);
        for (uint32_t b = 0; b < r.bin_count; b++) {
            sent += r.bins[b].sent;
            hedged += r.bins[b].hedged;
            won += r.bins[b].hedges_won;
            refused += r.bins[b].hedges_refused;
            CHECK_FROM(i, r.bins[b].busy <= o.service.workers + 1e-9);
        }
        for (int why = 0; why < STG_OVERLOAD_WHYS; why++)
            ended += r.whys[why];
        CHECK_U64(r.sent, sent);
        CHECK_U64(r.hedged, hedged);
        CHECK_U64(r.hedges_won, won);
        CHECK_U64(r.hedges_refused, refused);
        CHECK_U64(ended, r.saved + r.lost);
        CHECK_FROM(i, r.hedged > 0);
        CHECK_FROM(i, r.hedges_won <= r.hedged && r.hedges_won <= r.saved);
        // A first attempt that the client held back has sent nothing.
        CHECK_FROM(i, r.sent - r.retried - r.hedged <= r.begun);
        stg_overload_free(&r, &help_memory);
    }
}

/* The budget pays one a second of more that are due, and the others of these
 * operations fare as they would without. */
TEST(overload_hedges, do_no_harm_where_they_are_refused)
{
    stg_overload_options without = slow_tail("attempts=1");
    stg_overload_options with =
        slow_tail("attempts=1 hedge=20ms budget=tokens:1:1/s");
    stg_overload_result a, b;

    without.processes = with.processes = 1;
    a = help_run(&without, 0);
    b = help_run(&with, 0);
    CHECK(b.hedged < b.begun / 250); // one a second, of 300
    CHECK(b.hedges_refused > b.begun / 100);
    CHECK_U64(a.begun, b.begun);
    CHECK(a.saved <= b.saved + 2 && b.saved <= a.saved + 2);
    CHECK(fabs(p99_of(&a) - p99_of(&b)) < p99_of(&a) / 10);
    stg_overload_free(&a, &help_memory);
    stg_overload_free(&b, &help_memory);
}

TEST(overload_hedges, say_when_there_is_no_memory)
{
    stg_overload_options o = slowed("attempts=4 hedge=5ms:3");
    stg_overload_result whole;
    int cuts = 0;

    o.warmup = 0;
    o.trigger.from_at = STG_S;
    o.trigger.until_at = 2 * STG_S;
    o.end_at = 4 * STG_S;
    o.load.rate = 2000 * 1000;
    whole = help_run(&o, 0);
    for (int pieces = 0; pieces < 60; pieces++) {
        test_memory counts;
        stg_memory memory = test_memory_of(&counts);
        stg_overload_result r;

        counts.left = (size_t)pieces;
        if (stg_overload_run(&o, 7, 0, NULL, &memory, &r) == STG_OK) {
            CHECK_FROM(pieces, r.is_cut || r.begun == whole.begun);
            cuts += r.is_cut;
            stg_overload_free(&r, &memory);
        }
        CHECK_U64(counts.held, 0);
    }
    CHECK(cuts > 5);
    stg_overload_free(&whole, &help_memory);
}

TEST(overload_hedges, are_in_what_a_run_takes)
{
    stg_overload_options with = slowed("attempts=1 hedge=40ms:3");
    stg_overload_options without = slowed("attempts=1");

    CHECK(stg_overload_memory(&with) > stg_overload_memory(&without));
}
