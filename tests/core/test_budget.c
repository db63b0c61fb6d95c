#include <stagger/budget.h>
#include <stagger/rng.h>

#include <stdio.h>

#include "core/options.h"
#include "tests/harness.h"

static stg_budget full(stg_budget_options options)
{
    stg_budget b;

    CHECK_INT(stg_budget_init(&b, &options), STG_OK);
    return b;
}

static stg_budget tokens(uint32_t capacity, uint32_t rate)
{
    return full((stg_budget_options){
        .kind = STG_BUDGET_TOKENS, .capacity = capacity, .rate = rate});
}

static stg_budget ratio(uint32_t share, uint32_t floor)
{
    return full((stg_budget_options){
        .kind = STG_BUDGET_RATIO, .ratio = share, .rate = floor});
}

static stg_budget aws(uint32_t capacity, uint32_t cost, uint32_t timeout_cost,
                      uint32_t throttle_cost)
{
    return full((stg_budget_options){.kind = STG_BUDGET_AWS,
                                     .capacity = capacity,
                                     .cost = cost,
                                     .timeout_cost = timeout_cost,
                                     .throttle_cost = throttle_cost});
}

static stg_budget old_aws(void)
{
    return full(stg_budget_aws);
}

static bool take(stg_budget *b, stg_ns now)
{
    return stg_budget_take(b, STG_CHARGE_RETRY, now).granted;
}

/* How many retries it grants at once. */
static unsigned drain(stg_budget *b, stg_ns now)
{
    unsigned count = 0;

    while (count < 100000 && take(b, now))
        count++;
    return count;
}

TEST(budget, has_no_end_where_there_is_none)
{
    stg_budget b = full((stg_budget_options){.kind = STG_BUDGET_NONE});

    CHECK_INT(drain(&b, 0), 100000);
    CHECK(stg_budget_take(&b, STG_CHARGE_TIMEOUT, 0).granted);
    CHECK_U64(stg_budget_left(&b, 0), UINT64_MAX);
    stg_budget_attempt(&b, 0);
    stg_budget_fail(&b);
    stg_budget_succeed(&b, STG_CHARGE_NONE);
    stg_budget_give_back(&b, STG_CHARGE_RETRY, 0, 0);
    CHECK(take(&b, 0));
}

TEST(budget, grants_a_bucket_of_tokens_and_then_its_rate)
{
    stg_budget b = tokens(100, 10000);

    CHECK_U64(stg_budget_left(&b, 0), 100000);
    CHECK_INT(drain(&b, 0), 100);
    CHECK_U64(stg_budget_left(&b, 0), 0);
    CHECK_INT(drain(&b, 99 * STG_MS), 0);
    CHECK_U64(stg_budget_left(&b, 50 * STG_MS), 500);
    CHECK_INT(drain(&b, 100 * STG_MS), 1);
    CHECK_INT(drain(&b, STG_S), 9);
    CHECK_INT(drain(&b, STG_HOUR), 100);
}

TEST(budget, says_when_the_next_token_is_there)
{
    stg_budget b = tokens(1, 4000);
    stg_grant g = stg_budget_take(&b, STG_CHARGE_RETRY, STG_S);

    CHECK(g.granted);
    CHECK_U64(g.from_at, STG_S);
    g = stg_budget_take(&b, STG_CHARGE_RETRY, STG_S);
    CHECK(!g.granted);
    CHECK_U64(g.from_at, STG_S + 250 * STG_MS);
    CHECK(!take(&b, g.from_at - 1));
    CHECK(take(&b, g.from_at));
}

/* Three in a thousand seconds are none in 333.3 s: rounded up, to the ns. */
TEST(budget, never_grants_a_token_a_nanosecond_early)
{
    stg_budget b = tokens(1, 3);

    CHECK(take(&b, 0));
    CHECK_U64(stg_budget_take(&b, STG_CHARGE_RETRY, 0).from_at,
              UINT64_C(333333333334));
}

TEST(budget, reserves_tokens_that_are_still_to_come)
{
    stg_budget b = tokens(2, 1000);
    stg_ns until_at = 10 * STG_S;

    for (uint64_t i = 0; i < 2; i++)
        CHECK_U64(stg_budget_reserve(&b, STG_CHARGE_RETRY, 0, until_at).from_at,
                  0);
    for (uint64_t i = 1; i < 10; i++)
        CHECK_U64(stg_budget_reserve(&b, STG_CHARGE_RETRY, 0, until_at).from_at,
                  i * STG_S);
    CHECK(!stg_budget_reserve(&b, STG_CHARGE_RETRY, 0, until_at)
               .granted); // at 10 s
    CHECK(stg_budget_reserve(&b, STG_CHARGE_RETRY, 0, until_at + 1).granted);
}

TEST(budget, takes_tokens_back_but_never_above_full)
{
    stg_budget b = tokens(3, 1000);

    drain(&b, 0);
    stg_budget_give_back(&b, STG_CHARGE_RETRY, 0, 0);
    CHECK_INT(drain(&b, 0), 1);
    for (int i = 0; i < 10; i++)
        stg_budget_give_back(&b, STG_CHARGE_RETRY, 0, 0);
    CHECK_INT(drain(&b, 0), 3);
    stg_budget_give_back(&b, STG_CHARGE_NONE, 0, 0); // nothing was paid
    CHECK_INT(drain(&b, 0), 0);
}

#ifdef __SIZEOF_INT128__
/* Whatever the callers' clocks: grants number i to j are j - i + 1, and at
 * most capacity + rate * (now of j - now of i). */
TEST(budget, i5_never_grants_more_tokens_than_its_rate_in_any_window)
{
    for (uint64_t seed = 0; seed < seeds(300); seed++) {
        stg_rng rng = stg_rng_seed(seed);
        uint32_t capacity = 1 + (uint32_t)stg_rng_upto(&rng, 20);
        uint32_t rate = 1 + (uint32_t)(stg_rng_next(&rng) % 1000000000 >>
                                       stg_rng_upto(&rng, 29));
        stg_budget b = tokens(capacity, rate);
        stg_ns newest = STG_HOUR, at[200];
        int granted = 0;

        for (int i = 0; i < 400 && granted < 200; i++) {
            stg_ns step = stg_rng_upto(&rng, 2000 * STG_S / rate);
            stg_ns now;

            newest += step;
            now = newest - stg_rng_upto(&rng, step / 2); // some lag
            if (take(&b, now))
                at[granted++] = now;
        }
        CHECK_FROM(seed, granted > (int)capacity);
        for (int i = 0; i < granted; i++)
            for (int j = i; j < granted; j++)
                CHECK_FROM(seed,
                           (__int128)(j - i + 1 - (int)capacity) * 1000 *
                                   (__int128)STG_S <=
                               ((__int128)at[j] - (__int128)at[i]) * rate);
    }
}
#endif

TEST(budget, keeps_its_level_when_a_clock_steps_back)
{
    stg_budget b = tokens(10, 1000);
    stg_budget r = ratio(0, 1000);

    drain(&b, 100 * STG_S);
    drain(&r, 100 * STG_S);
    for (stg_ns now = 100 * STG_S; now > 0; now -= STG_S) {
        CHECK(!take(&b, now));
        CHECK(!take(&r, now));
    }
    CHECK(!take(&b, 0));
    CHECK(!take(&r, 0));
    CHECK_U64(stg_budget_left(&r, 0), 0);
    CHECK_U64(stg_budget_left(&r, 99 * STG_S), 0);
}

TEST(budget, allows_a_share_of_the_first_attempts_of_ten_seconds)
{
    stg_budget b = ratio(200, 0);

    CHECK(!take(&b, 0));
    for (int i = 0; i < 50; i++)
        stg_budget_attempt(&b, 0);
    CHECK_U64(stg_budget_left(&b, 0), 10000);
    CHECK_INT(drain(&b, 5 * STG_S), 10);
    CHECK_INT(drain(&b, 9 * STG_S), 0);
    CHECK_U64(stg_budget_left(&b, 9 * STG_S), 0);
    // The attempts leave the window at 10 s, their retries five later.
    for (int i = 0; i < 50; i++)
        stg_budget_attempt(&b, 10 * STG_S);
    CHECK_INT(drain(&b, 10 * STG_S), 0);
    CHECK_INT(drain(&b, 15 * STG_S), 10);
}

TEST(budget, has_a_floor_of_retries_a_second)
{
    stg_budget b = ratio(100, 2500); // 0.1 + 2.5/s: 25 in ten seconds

    CHECK_U64(stg_budget_left(&b, 0), 25000);
    CHECK_INT(drain(&b, 0), 25);
    stg_budget_attempt(&b, 0);
    CHECK_INT(drain(&b, 0), 0); // a tenth is not enough for one
    for (int i = 0; i < 9; i++)
        stg_budget_attempt(&b, 0);
    CHECK_INT(drain(&b, 0), 1);
    CHECK_INT(drain(&b, 10 * STG_S - 1), 0);
    CHECK_INT(drain(&b, 10 * STG_S), 25);
}

TEST(budget, takes_a_retry_of_a_ratio_back_while_its_second_counts)
{
    stg_budget b = ratio(0, 1000);

    CHECK_INT(drain(&b, 0), 10);
    stg_budget_give_back(&b, STG_CHARGE_RETRY, 500 * STG_MS, 500 * STG_MS);
    CHECK_INT(drain(&b, 3 * STG_S), 1);
    // Paid in a second that is over: nothing comes back.
    CHECK(take(&b, 12 * STG_S));
    drain(&b, 12 * STG_S);
    stg_budget_give_back(&b, STG_CHARGE_RETRY, 2 * STG_S, 2 * STG_S);
    CHECK_INT(drain(&b, 12 * STG_S), 0);
}

static void withdraw_first(stg_budget *b, stg_ns started_at)
{
    stg_budget_withdraw(b, STG_CHARGE_NONE, started_at, 2 * STG_S);
}

TEST(budget, does_not_count_an_attempt_that_was_not_made)
{
    stg_budget b = ratio(1000, 0), t = tokens(1, 1000);

    stg_budget_attempt(&b, 500 * STG_MS);
    stg_budget_attempt(&b, 1500 * STG_MS);
    withdraw_first(&b, 700 * STG_MS); // of the same second
    withdraw_first(&b, 700 * STG_MS); // there was one only
    CHECK_INT(drain(&b, 2 * STG_S), 1);
    // Nothing comes of one whose second is over, nor where none is counted.
    withdraw_first(&b, 11 * STG_S);
    CHECK_U64(stg_budget_left(&b, 2 * STG_S), 0);
    withdraw_first(&t, 0);
    withdraw_first(NULL, 0);
    CHECK_INT(drain(&t, 0), 1);
    // What a retry paid comes back.
    stg_budget_withdraw(&t, STG_CHARGE_RETRY, 0, 0);
    CHECK_INT(drain(&t, 0), 1);
}

TEST(budget, gives_nothing_back_of_a_ratio_that_was_not_taken)
{
    stg_budget b = ratio(0, 1000);

    stg_budget_give_back(&b, STG_CHARGE_RETRY, 0, 0);
    CHECK_INT(drain(&b, 0), 10);
}

TEST(budget, never_grants_more_than_a_ratio_in_ten_seconds)
{
    for (uint64_t seed = 0; seed < seeds(100); seed++) {
        stg_rng rng = stg_rng_seed(seed);
        uint32_t share = (uint32_t)stg_rng_upto(&rng, 2000);
        uint32_t floor = 1 + (uint32_t)stg_rng_upto(&rng, 3000);
        stg_budget b = ratio(share, floor);
        enum { SECONDS = 60 };
        uint64_t attempts[SECONDS] = {0}, retries[SECONDS] = {0};

        for (uint64_t s = 0; s < SECONDS; s++) {
            uint64_t first = 0, again = 0;

            attempts[s] = stg_rng_upto(&rng, 40);
            for (uint64_t i = attempts[s]; i > 0; i--)
                stg_budget_attempt(&b, s * STG_S + stg_rng_upto(&rng, 999));
            for (uint64_t i = stg_rng_upto(&rng, 40); i > 0; i--)
                retries[s] += take(&b, s * STG_S);
            for (uint64_t i = s > 9 ? s - 9 : 0; i <= s; i++) {
                first += attempts[i];
                again += retries[i];
            }
            // Of the moment of the grant: the attempts go before the retries.
            CHECK_FROM(seed, retries[s] == 0 ||
                                 1000 * again <= first * share + 10 * floor);
        }
    }
}

TEST(budget, counts_up_to_its_limit_and_no_further)
{
    stg_budget b = ratio(10000, 0);
    const uint64_t most = (UINT64_C(1) << 28) - 1;

    // As if so many had been counted: more would flow into the second.
    b.attempts[0] = most;
    stg_budget_attempt(&b, 0);
    CHECK_U64(b.attempts[0], most);
    CHECK_U64(stg_budget_left(&b, 0), most * 10000);
    b.retries[0] = most;
    CHECK(!take(&b, 0));
    CHECK_U64(b.retries[0], most);
}

TEST(budget, charges_as_aws_does)
{
    stg_budget b = old_aws();
    static const uint64_t balances[] = {495, 490, 485, 480};

    CHECK_U64(stg_budget_left(&b, 0), 500000);
    for (int i = 0; i < 4; i++) {
        CHECK(stg_budget_take(&b, STG_CHARGE_RETRY, 0).granted);
        CHECK_U64(stg_budget_left(&b, 0), 1000 * balances[i]);
    }
    b = old_aws();
    CHECK(stg_budget_take(&b, STG_CHARGE_TIMEOUT, 0).granted);
    CHECK_U64(stg_budget_left(&b, 0), 490000);
    CHECK(stg_budget_take(&b, STG_CHARGE_TIMEOUT, 0).granted);
    CHECK_U64(stg_budget_left(&b, 0), 480000);
    CHECK(stg_budget_take(&b, STG_CHARGE_THROTTLE, 0).granted);
    CHECK_U64(stg_budget_left(&b, 0), 475000);
}

/* By hand: 500 - 14 - 14 - 5; then all but 5 of 33 * 14 + 5. */
TEST(budget, charges_as_newer_sdks_of_aws_do)
{
    stg_budget b = aws(500, 14, 14, 5);

    CHECK(stg_budget_take(&b, STG_CHARGE_RETRY, 0).granted);
    CHECK_U64(stg_budget_left(&b, 0), 486000);
    CHECK(stg_budget_take(&b, STG_CHARGE_TIMEOUT, 0).granted);
    CHECK_U64(stg_budget_left(&b, 0), 472000);
    CHECK(stg_budget_take(&b, STG_CHARGE_THROTTLE, 0).granted);
    CHECK_U64(stg_budget_left(&b, 0), 467000);
    CHECK_INT(drain(&b, 0), 33);
    CHECK_U64(stg_budget_left(&b, 0), 5000);
    CHECK(!stg_budget_take(&b, STG_CHARGE_TIMEOUT, 0).granted);
    CHECK(stg_budget_take(&b, STG_CHARGE_THROTTLE, 0).granted);
    CHECK(!stg_budget_take(&b, STG_CHARGE_THROTTLE, 0).granted);
    CHECK_U64(stg_budget_left(&b, 0), 0);
}

TEST(budget, charges_and_returns_each_cost_of_aws_by_itself)
{
    static const stg_charge charges[] = {STG_CHARGE_RETRY, STG_CHARGE_TIMEOUT,
                                         STG_CHARGE_THROTTLE};
    static const uint64_t left[] = {99000, 80000, 30000};
    stg_budget b = aws(100, 1, 20, 70);

    for (int i = 0; i < 3; i++) {
        CHECK(stg_budget_take(&b, charges[i], 0).granted);
        CHECK_U64(stg_budget_left(&b, 0), left[i]);
        stg_budget_give_back(&b, charges[i], 0, 0);
        CHECK_U64(stg_budget_left(&b, 0), 100000);
        CHECK(stg_budget_take(&b, charges[i], 0).granted);
        stg_budget_succeed(&b, charges[i]);
        CHECK_U64(stg_budget_left(&b, 0), 100000);
    }
    CHECK(stg_budget_take(&b, STG_CHARGE_NONE, 0).granted);
    CHECK_U64(stg_budget_left(&b, 0), 99000); // as that of a retry
}

/* As much as there is, and no more. */
TEST(budget, grants_what_costs_all_the_aws_balance)
{
    stg_budget b = aws(7, 7, 6, 7);

    CHECK(take(&b, 0));
    CHECK(!take(&b, 0));
    stg_budget_succeed(&b, STG_CHARGE_TIMEOUT);
    CHECK_U64(stg_budget_left(&b, 0), 6000);
    CHECK(!take(&b, 0));
    stg_budget_succeed(&b, STG_CHARGE_NONE);
    CHECK(take(&b, 0));
}

TEST(budget, charges_by_what_the_attempt_came_to)
{
    const struct {
        stg_outcome o;
        stg_charge charge;
    } rows[] = {
        {stg_failed(STG_FAULT_TIMEOUT), STG_CHARGE_TIMEOUT},
        {stg_failed(STG_FAULT_CONNECT_TIMEOUT), STG_CHARGE_TIMEOUT},
        {stg_failed(STG_FAULT_TLS_TIMEOUT), STG_CHARGE_TIMEOUT},
        {stg_failed(STG_FAULT_LOCK_TIMEOUT), STG_CHARGE_RETRY},
        {stg_failed(STG_FAULT_REFUSED), STG_CHARGE_RETRY},
        {stg_answered(429), STG_CHARGE_THROTTLE},
        {stg_answered(408), STG_CHARGE_RETRY},
        {stg_answered(425), STG_CHARGE_RETRY},
        {stg_answered(503), STG_CHARGE_RETRY},
        {stg_failed_grpc(8, NULL), STG_CHARGE_THROTTLE},
        {stg_failed_grpc(8, "100"), STG_CHARGE_THROTTLE},
        {stg_failed_grpc(14, "100"), STG_CHARGE_RETRY},
        {stg_failed_exit(8), STG_CHARGE_RETRY},
        {stg_failed(STG_FAULT_PUSHBACK), STG_CHARGE_THROTTLE},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        CHECK_FROM(i, stg_budget_charge(&rows[i].o) == rows[i].charge);
    CHECK_INT(stg_budget_charge(NULL), STG_CHARGE_RETRY);
}

TEST(budget, refuses_what_costs_more_than_the_aws_balance)
{
    stg_budget b = old_aws();

    CHECK_INT(drain(&b, 0), 100);
    CHECK(!stg_budget_take(&b, STG_CHARGE_RETRY, 0).granted);
    CHECK_U64(stg_budget_take(&b, STG_CHARGE_RETRY, 0).from_at, STG_NEVER);
    for (int i = 0; i < 4; i++)
        stg_budget_succeed(&b, STG_CHARGE_NONE); // first tries, one each
    CHECK(!take(&b, 0));
    CHECK_U64(stg_budget_left(&b, 0), 4000);
    stg_budget_succeed(&b, STG_CHARGE_NONE);
    CHECK(!stg_budget_take(&b, STG_CHARGE_TIMEOUT, 0).granted);
    CHECK(take(&b, 0));
    CHECK_U64(stg_budget_left(&b, 0), 0);
}

TEST(budget, returns_the_last_aws_cost_after_a_retry_that_succeeds)
{
    stg_budget b = old_aws();

    drain(&b, 0);
    stg_budget_succeed(&b, STG_CHARGE_TIMEOUT);
    CHECK_U64(stg_budget_left(&b, 0), 10000);
    stg_budget_give_back(&b, STG_CHARGE_RETRY, 0, 0);
    CHECK_U64(stg_budget_left(&b, 0), 15000);
    for (int i = 0; i < 100; i++)
        stg_budget_succeed(&b, STG_CHARGE_TIMEOUT);
    CHECK_U64(stg_budget_left(&b, 0), 500000);
    stg_budget_succeed(&b, STG_CHARGE_NONE);
    CHECK_U64(stg_budget_left(&b, 0), 500000);
}

TEST(budget, throttles_as_grpc_does)
{
    static const char *const steps[] = {
        "F3y",  "S4",    "F3y",   "F2n",  "F1n",   "F0n",  "F0n",  "S1.6",
        "S3.2", "F2.2y", "F1.2n", "S2.8", "F1.8n", "S3.4", "F2.4y"};
    stg_budget b = full((stg_budget_options){
        .kind = STG_BUDGET_GRPC, .capacity = 4, .ratio = 1600});

    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        bool is_failure = steps[i][0] == 'F';
        uint64_t left;
        char step[16];

        if (is_failure)
            stg_budget_fail(&b);
        else
            stg_budget_succeed(&b, STG_CHARGE_NONE);
        left = stg_budget_left(&b, 0);
        snprintf(step, sizeof step, "%c%g%s", steps[i][0], (double)left / 1000,
                 !is_failure   ? ""
                 : take(&b, 0) ? "y"
                               : "n");
        CHECK_STR(step, steps[i]);
    }
}

TEST(budget, charges_nothing_for_a_retry_of_grpc)
{
    stg_budget b = full((stg_budget_options){
        .kind = STG_BUDGET_GRPC, .capacity = 4, .ratio = 1000});
    stg_grant g = stg_budget_take(&b, STG_CHARGE_TIMEOUT, 7);

    CHECK(g.granted);
    CHECK_U64(g.from_at, 7);
    stg_budget_fail(&b);
    stg_budget_fail(&b);
    CHECK(!take(&b, 0)); // exactly half is left
    stg_budget_give_back(&b, STG_CHARGE_RETRY, 0, 0);
    CHECK(!take(&b, 0));
}

TEST(budget, weighs_grpc_tokens_to_the_thousandth)
{
    stg_budget b = full((stg_budget_options){
        .kind = STG_BUDGET_GRPC, .capacity = 4, .ratio = 1});

    stg_budget_fail(&b);
    stg_budget_fail(&b);
    CHECK(!take(&b, 0)); // 2 of 4 are left
    stg_budget_succeed(&b, STG_CHARGE_NONE);
    CHECK(take(&b, 0)); // 2.001
}

TEST(budget, leaves_other_kinds_alone)
{
    stg_budget b = tokens(5, 1000), a = old_aws();

    stg_budget_fail(&b);
    stg_budget_succeed(&b, STG_CHARGE_RETRY);
    stg_budget_attempt(&b, 0);
    CHECK_INT(drain(&b, 0), 5);
    stg_budget_fail(&a);
    stg_budget_attempt(&a, 0);
    CHECK_INT(drain(&a, 0), 100);
}

TEST(budget, refuses_options_out_of_range_and_names_them)
{
    static const struct {
        stg_budget_options o;
        const char *text;
    } refusals[] = {
        {{.kind = (stg_budget_kind)6},
         "budget kind=6 is out of range, expected one of stg_budget_kind"},
        {{.kind = STG_BUDGET_NONE, .capacity = 1},
         "budget capacity=1 is out of range, expected 0 for this kind"},
        {{.kind = STG_BUDGET_NONE, .cost = 2},
         "budget cost=2 is out of range, expected 0 for this kind"},
        {{.kind = STG_BUDGET_RATIO, .ratio = 1, .timeout_cost = 3},
         "budget timeout cost=3 is out of range, expected 0 for this kind"},
        {{.kind = STG_BUDGET_GRPC,
          .capacity = 9,
          .ratio = 1,
          .throttle_cost = 4},
         "budget throttle cost=4 is out of range, expected 0 for this kind"},
        {{.kind = STG_BUDGET_AWS},
         "budget capacity=0 is out of range, expected 1 to 1000000 tokens"},
        {{.kind = STG_BUDGET_AWS, .capacity = 1000001},
         "budget capacity=1000001 is out of range, expected 1 to 1000000 tokens"},
        {{.kind = STG_BUDGET_AWS, .capacity = 9},
         "budget cost=0 is out of range, expected 1 to the capacity"},
        {{.kind = STG_BUDGET_AWS, .capacity = 9, .cost = 10},
         "budget cost=10 is out of range, expected 1 to the capacity"},
        {{.kind = STG_BUDGET_AWS, .capacity = 9, .cost = 9},
         "budget timeout cost=0 is out of range, expected 1 to the capacity"},
        {{.kind = STG_BUDGET_AWS,
          .capacity = 9,
          .cost = 9,
          .timeout_cost = 9,
          .throttle_cost = 10},
         "budget throttle cost=10 is out of range, expected 1 to the capacity"},
        {{.kind = STG_BUDGET_AWS, .ratio = 1},
         "budget ratio=0.001 is out of range, expected 0 for this kind"},
        {{.kind = STG_BUDGET_AWS, .rate = 1},
         "budget rate=0.001 is out of range, expected 0 for this kind"},
        {{.kind = STG_BUDGET_TOKENS, .capacity = 1, .rate = 1, .ratio = 2},
         "budget ratio=0.002 is out of range, expected 0 for this kind"},
        {{.kind = STG_BUDGET_RATIO, .capacity = 1, .ratio = 2},
         "budget capacity=1 is out of range, expected 0 for this kind"},
        {{.kind = STG_BUDGET_GRPC, .capacity = 1, .ratio = 2, .rate = 1},
         "budget rate=0.001 is out of range, expected 0 for this kind"},
        {{.kind = STG_BUDGET_TOKENS, .rate = 1},
         "budget capacity=0 is out of range, expected 1 to 1000000 tokens"},
        {{.kind = STG_BUDGET_TOKENS, .capacity = 1000001, .rate = 1},
         "budget capacity=1000001 is out of range, expected 1 to 1000000 tokens"},
        {{.kind = STG_BUDGET_TOKENS, .capacity = 1},
         "budget rate=0 is out of range, expected 0.001/s to 1000000/s"},
        {{.kind = STG_BUDGET_TOKENS, .capacity = 1, .rate = 1000000001},
         "budget rate=1000000.001 is out of range, expected 0.001/s to "
         "1000000/s"},
        {{.kind = STG_BUDGET_RATIO},
         "budget ratio and floor are both 0, and would refuse every retry; "
         "expected attempts=1 for that"},
        {{.kind = STG_BUDGET_RATIO, .ratio = 10001},
         "budget ratio=10.001 is out of range, expected 0 to 10"},
        {{.kind = STG_BUDGET_RATIO, .rate = 1000000001},
         "budget rate=1000000.001 is out of range, expected 0/s to 1000000/s"},
        {{.kind = STG_BUDGET_GRPC, .ratio = 1},
         "budget capacity=0 is out of range, expected 1 to 1000 tokens"},
        {{.kind = STG_BUDGET_GRPC, .capacity = 1001, .ratio = 1},
         "budget capacity=1001 is out of range, expected 1 to 1000 tokens"},
        {{.kind = STG_BUDGET_GRPC, .capacity = 1},
         "budget ratio=0 is out of range, expected 0.001 to 1000"},
        {{.kind = STG_BUDGET_GRPC, .capacity = 1, .ratio = 1000001},
         "budget ratio=1000.001 is out of range, expected 0.001 to 1000"},
        {{.kind = STG_BUDGET_SHARE, .ratio = 1000},
         "budget floor=0 is out of range, expected 1 to 1000000 retries at "
         "once"},
        {{.kind = STG_BUDGET_SHARE, .ratio = 1001},
         "budget share=1.001 is out of range, expected 0 to 1, which is 0% to "
         "100%"},
        {{.kind = STG_BUDGET_SHARE, .capacity = 1000001},
         "budget floor=1000001 is out of range, expected 1 to 1000000 retries at "
         "once"},
        {{.kind = STG_BUDGET_SHARE, .capacity = 1, .rate = 1},
         "budget rate=0.001 is out of range, expected 0 for this kind"},
    };
    stg_error err;
    stg_budget b;

    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        CHECK_INT(stg_budget_check(&refusals[i].o, &err), STG_INVALID);
        CHECK_STR(err.text, refusals[i].text);
        CHECK_INT(stg_budget_init(&b, &refusals[i].o), STG_INVALID);
    }
    CHECK_INT(stg_budget_check(NULL, &err), STG_INVALID);
    CHECK_STR(err.text, "budget is NULL");
    CHECK_INT(stg_budget_init(&b, NULL), STG_INVALID);
    CHECK_INT(stg_budget_init(NULL, &refusals[0].o), STG_INVALID);
}

TEST(budget, accepts_the_ends_of_its_ranges)
{
    static const stg_budget_options ends[] = {
        {.kind = STG_BUDGET_TOKENS, .capacity = 1, .rate = 1},
        {.kind = STG_BUDGET_TOKENS, .capacity = 1000000, .rate = 1000000000},
        {.kind = STG_BUDGET_RATIO, .ratio = 10000, .rate = 1000000000},
        {.kind = STG_BUDGET_RATIO, .rate = 1},
        {.kind = STG_BUDGET_RATIO, .ratio = 1},
        {.kind = STG_BUDGET_AWS,
         .capacity = 1,
         .cost = 1,
         .timeout_cost = 1,
         .throttle_cost = 1},
        {.kind = STG_BUDGET_AWS,
         .capacity = 1000000,
         .cost = 1000000,
         .timeout_cost = 1000000,
         .throttle_cost = 1000000},
        {.kind = STG_BUDGET_GRPC, .capacity = 1, .ratio = 1},
        {.kind = STG_BUDGET_GRPC, .capacity = 1000, .ratio = 1000000},
        {.kind = STG_BUDGET_SHARE, .capacity = 1000000},
        {.kind = STG_BUDGET_SHARE, .ratio = 1000, .capacity = 1},
        {.kind = STG_BUDGET_SHARE, .capacity = 1},
    };

    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        stg_budget b = full(ends[i]);

        stg_budget_left(&b, STG_NEVER);
        take(&b, STG_NEVER);
        take(&b, 0);
    }
}

/* The slowest and largest bucket, at the end of time: no sum wraps. */
TEST(budget, l2_never_overflows)
{
    stg_budget b = tokens(1000000, 1);

    CHECK(take(&b, STG_NEVER - 1));
    CHECK(take(&b, STG_NEVER - 1));
    CHECK_U64(stg_budget_left(&b, 0), 0);
    CHECK(stg_budget_left(&b, STG_NEVER) > 0);
    b = tokens(1000000, 1);
    CHECK_INT(drain(&b, 0), 100000);
}

/* -- other options --------------------------------------------------------- */

TEST(budget, keeps_the_tokens_that_are_left)
{
    stg_budget old = tokens(10, 1000), more = tokens(50, 2000);
    stg_budget fewer = tokens(3, 1000);
    stg_ns now = STG_HOUR;

    CHECK(take(&old, now) && take(&old, now) && take(&old, now));
    stg_budget_keep(&more, &old, now);
    stg_budget_keep(&fewer, &old, now);
    CHECK_U64(stg_budget_left(&more, now), 7000);
    CHECK_U64(stg_budget_left(&fewer, now), 3000); // all that it may have
    CHECK_U64(stg_budget_left(&more, now + STG_S), 9000);
    CHECK_INT(drain(&more, now), 7);

    // Half a token is half a token.
    old = tokens(1, 1000);
    fewer = tokens(1, 1000);
    CHECK(take(&old, now));
    stg_budget_keep(&fewer, &old, now + 500 * STG_MS);
    CHECK(!take(&fewer, now + STG_S - 1));
    CHECK(take(&fewer, now + STG_S));
}

/* However much is missing, and at whatever rate it comes back. */
TEST(budget, keeps_its_tokens_to_the_thousandth)
{
    stg_budget old = tokens(1000000, 1000), same = tokens(1000000, 1000);
    stg_budget slow = tokens(1000000, 1);
    stg_ns now = STG_HOUR;

    CHECK_INT(drain(&old, now), 100000);
    CHECK_INT(drain(&old, now), 100000);
    now += STG_MS; // and a thousandth of a token
    CHECK_U64(stg_budget_left(&old, now), 800000001);
    stg_budget_keep(&same, &old, now);
    stg_budget_keep(&slow, &old, now);
    CHECK_U64(same.level, old.level);
    CHECK_U64(stg_budget_left(&same, now), 800000001);
    CHECK_U64(stg_budget_left(&slow, now), 800000001);
    CHECK_U64(stg_budget_left(&slow, now + 1000 * STG_S), 800001001);
}

TEST(budget, keeps_what_it_has_counted)
{
    stg_budget old = ratio(500, 0), other = ratio(100, 0), again;
    stg_budget first = old_aws();
    stg_budget second = old_aws(), fewer = aws(100, 14, 14, 5),
               more = aws(1000, 1, 1, 1),
               a = full((stg_budget_options){
                   .kind = STG_BUDGET_GRPC, .capacity = 10, .ratio = 100});
    stg_budget b = full((stg_budget_options){
        .kind = STG_BUDGET_GRPC, .capacity = 5, .ratio = 100});

    for (int i = 0; i < 100; i++)
        stg_budget_attempt(&old, STG_HOUR);
    stg_budget_keep(&other, &old, STG_HOUR);
    CHECK_INT(drain(&other, STG_HOUR), 10);
    again = ratio(100, 0);
    stg_budget_keep(&again, &other, STG_HOUR);
    CHECK_INT(drain(&again, STG_HOUR), 0); // the ten are spent
    CHECK(take(&first, 0));
    stg_budget_keep(&second, &first, 0);
    CHECK_U64(stg_budget_left(&second, 0), 495000);
    stg_budget_keep(&fewer, &first, 0);
    CHECK_U64(stg_budget_left(&fewer, 0), 100000); // the maximum: 495 were left
    stg_budget_keep(&more, &first, 0);
    CHECK_U64(stg_budget_left(&more, 0), 495000);
    stg_budget_fail(&a);
    stg_budget_fail(&a);
    stg_budget_keep(&b, &a, 0);
    CHECK_U64(stg_budget_left(&b, 0), 5000); // the maximum: 8 were left
    for (int i = 0; i < 5; i++)
        stg_budget_fail(&a);
    stg_budget_keep(&b, &a, 0);
    CHECK_U64(stg_budget_left(&b, 0), 3000);
}

/* What was counted counts for as long as it would have, though the clock of the
 * next caller is behind. */
TEST(budget, keeps_the_retries_of_a_ratio_and_their_second)
{
    stg_budget old = ratio(0, 1000), same = ratio(0, 1000);

    for (int i = 0; i < 4; i++)
        CHECK(take(&old, STG_HOUR));
    stg_budget_keep(&same, &old, STG_HOUR);
    CHECK_INT(drain(&same, STG_HOUR - 5 * STG_S), 6);
    CHECK_INT(drain(&same, STG_HOUR + 9 * STG_S), 0);
    CHECK_INT(drain(&same, STG_HOUR + 10 * STG_S), 10);
}

TEST(budget, keeps_nothing_of_another_kind)
{
    stg_budget old = tokens(10, 1000), other = old_aws();

    drain(&old, STG_HOUR);
    stg_budget_keep(&other, &old, STG_HOUR);
    CHECK_U64(stg_budget_left(&other, STG_HOUR), 500000);
}
