#include <stagger/throttle.h>

#include <inttypes.h>

#include "tests/harness.h"

static stg_throttle of_kind(stg_throttle_kind kind, uint32_t k)
{
    stg_throttle t;

    CHECK_INT(stg_throttle_init(&t, &(stg_throttle_options){kind, k}), STG_OK);
    return t;
}

/* -- sre */

static int count_passes(stg_throttle *t, stg_ns now, stg_rng *rng)
{
    int passes = 0;

    for (int i = 0; i < 1000; i++)
        passes += stg_throttle_enter(t, now, rng, NULL);
    return passes;
}

TEST(throttle, lets_all_out_while_half_of_them_are_accepted)
{
    stg_throttle t = of_kind(STG_THROTTLE_SRE, 2000);
    stg_rng rng = stg_rng_seed(1);
    stg_outcome ok = stg_ok();

    for (int i = 0; i < 100000; i++) {
        stg_ns now = (stg_ns)i * 10 * STG_MS;

        CHECK(i < 2 || stg_throttle_enter(&t, now, &rng, NULL));
        CHECK(i < 2 || !stg_throttle_is_active(&t, now) || i % 2 == 0);
        if (i % 2 == 0)
            stg_throttle_report(&t, &ok, now, now);
    }
}

/* Of those that the client wants, one in a thousand or so gets out. */
TEST(throttle, lets_few_out_when_none_is_accepted)
{
    for (uint64_t seed = 0; seed < seeds(100); seed++) {
        stg_rng rng = stg_rng_seed(seed);
        stg_throttle t = of_kind(STG_THROTTLE_SRE, 2000);
        stg_ns due_at = 0;
        int passes = count_passes(&t, STG_S, &rng);

        CHECK_FROM(seed, passes >= 1 && passes <= 30);
        CHECK_FROM(seed, stg_throttle_is_active(&t, STG_S));
        CHECK_FROM(seed, stg_throttle_enter(&t, STG_S, &rng, &due_at) ||
                             due_at == STG_NEVER);
    }
}

TEST(throttle, forgets_after_two_minutes)
{
    stg_throttle t = of_kind(STG_THROTTLE_SRE, 2000);
    stg_rng rng = stg_rng_seed(3);

    count_passes(&t, 0, &rng);
    CHECK(stg_throttle_is_active(&t, 119 * STG_S));
    CHECK(!stg_throttle_is_active(&t, 120 * STG_S));
    CHECK(stg_throttle_enter(&t, 120 * STG_S, &rng, NULL));
    CHECK(stg_throttle_enter(&t, STG_HOUR, &rng, NULL));
}

/* Four outcomes of a remote, and one that says nothing of it. */
TEST(throttle, takes_what_works_for_accepted_and_nothing_of_our_own)
{
    static const struct {
        stg_fault fault;
        uint32_t code;
        uint64_t requests, accepts;
    } rows[] = {{STG_FAULT_NONE, 0, 1, 1},      {STG_FAULT_4XX, 404, 1, 1},
                {STG_FAULT_5XX, 503, 1, 0},     {STG_FAULT_TIMEOUT, 0, 1, 0},
                {STG_FAULT_REFUSED, 0, 1, 0},   {STG_FAULT_OVERLOAD, 429, 1, 0},
                {STG_FAULT_CANCELLED, 0, 0, 0}, {STG_FAULT_NO_FILES, 0, 0, 0}};
    const uint64_t mask = (1 << 28) - 1;

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        stg_throttle t = of_kind(STG_THROTTLE_SRE, 2000);
        stg_rng rng = stg_rng_seed(i);
        stg_outcome o = stg_failed(rows[i].fault);

        if (rows[i].fault == STG_FAULT_NONE)
            o = stg_ok();
        o.code = rows[i].code;
        CHECK(stg_throttle_enter(&t, 15 * STG_S, &rng, NULL));
        stg_throttle_report(&t, &o, 15 * STG_S, 25 * STG_S);
        CHECK_U64(t.requests[1] & mask, rows[i].requests);
        CHECK_U64(t.accepts[2] & mask, rows[i].accepts);
    }
    // gRPC's RESOURCE_EXHAUSTED is an answer, and no acceptance.
    {
        stg_throttle t = of_kind(STG_THROTTLE_SRE, 2000);
        stg_outcome o = stg_failed_grpc(8, NULL);

        stg_throttle_report(&t, &o, 0, 0);
        CHECK_U64(t.accepts[0] & mask, 0);
    }
}

/* Of ten requests four were accepted: too few for K = 2, enough for 2.5. */
TEST(throttle, lets_k_requests_out_for_each_one_that_is_accepted)
{
    static const struct {
        uint32_t k;
        bool is_active;
    } rows[] = {{2000, true}, {2499, true}, {2500, false}, {3000, false}};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        stg_throttle t = of_kind(STG_THROTTLE_SRE, rows[i].k);

        t.requests[0] = 10;
        t.accepts[0] = 4;
        CHECK_INT(stg_throttle_is_active(&t, 0), rows[i].is_active);
    }
}

TEST(throttle, counts_no_request_that_is_withdrawn)
{
    stg_throttle t = of_kind(STG_THROTTLE_SRE, 1000);
    stg_rng rng = stg_rng_seed(5);

    CHECK(stg_throttle_enter(&t, 0, &rng, NULL));
    CHECK(stg_throttle_is_active(&t, 0));
    stg_throttle_withdraw(&t, 0);
    CHECK(!stg_throttle_is_active(&t, 0));
    stg_throttle_withdraw(&t, 0);
    CHECK(stg_throttle_enter(&t, 0, &rng, NULL));
    CHECK_U64(stg_throttle_rate(&t), 0);
}

/* With chance at its least and at its most: out of 3 requests none is accepted,
 * and the next is refused with 3/4. */
TEST(throttle, refuses_with_the_books_probability)
{
    for (uint64_t seed = 0; seed < seeds(20); seed++) {
        stg_rng rng = stg_rng_seed(seed);
        uint64_t passes = 0, count = 4000;

        for (uint64_t i = 0; i < count; i++) {
            stg_throttle t = of_kind(STG_THROTTLE_SRE, 2000);

            t.requests[0] = 3;
            passes += stg_throttle_enter(&t, 0, &rng, NULL);
        }
        CHECK_FROM(seed, passes > count / 5 && passes < count * 3 / 10);
    }
}

/* -- aws */

/* Ten answers a second for 24 s; from 3 s to 7 s each fourth says 429. The rates
 * are those of botocore 1.x (retries.adaptive.ClientRateLimiter), in thousandths
 * a second. */
TEST(throttle, has_the_rates_of_the_aws_sdk)
{
    static const struct {
        int answer;
        uint32_t rate;
    } rows[] = {
        {5, 0},       {13, 0},      {21, 0},     {29, 0},      {32, 7000},
        {36, 5725},   {37, 6106},   {40, 4721},  {44, 3925},   {45, 4219},
        {48, 3290},   {52, 2779},   {53, 3010},  {56, 2366},   {60, 2029},
        {61, 2215},   {64, 1753},   {68, 1525},  {69, 1677},   {77, 2170},
        {85, 2235},   {93, 3103},   {101, 6002}, {109, 12160}, {117, 20000},
        {125, 20000}, {239, 20000},
    };
    stg_throttle t = of_kind(STG_THROTTLE_AWS, 0);
    size_t row = 0;

    for (int i = 0; i < 240; i++) {
        stg_ns now = 1000 * STG_S + (stg_ns)i * 100 * STG_MS;
        stg_outcome o = i >= 30 && i < 70 && i % 4 == 0 ? stg_answered(429)
                                                        : stg_answered(200);

        stg_throttle_report(&t, &o, now, now);
        if (rows[row].answer != i)
            continue;
        CHECK_FROM(row, stg_throttle_rate(&t) + 12 + rows[row].rate / 500 >=
                            rows[row].rate);
        CHECK_FROM(row, stg_throttle_rate(&t) <=
                            rows[row].rate + 12 + rows[row].rate / 500);
        CHECK_INT(stg_throttle_is_active(&t, now), rows[row].rate != 0);
        row++;
    }
    CHECK_U64(row, sizeof rows / sizeof *rows);
}

TEST(throttle, waits_for_a_token_once_it_was_throttled)
{
    stg_throttle t = of_kind(STG_THROTTLE_AWS, 0);
    stg_outcome o = stg_answered(429);
    stg_ns due_at = 7;

    for (int i = 0; i < 1000; i++)
        CHECK(stg_throttle_enter(&t, 0, NULL, &due_at));
    CHECK_U64(due_at, 0);
    // Nothing is measured yet: half an attempt a second, the least.
    stg_throttle_report(&t, &o, 0, STG_S);
    CHECK_U64(stg_throttle_rate(&t), 500);
    CHECK(stg_throttle_enter(&t, STG_S, NULL, &due_at));
    CHECK(!stg_throttle_enter(&t, STG_S, NULL, &due_at));
    CHECK_U64(due_at, 3 * STG_S);
    CHECK(!stg_throttle_enter(&t, 3 * STG_S - 1, NULL, NULL));
    CHECK(stg_throttle_enter(&t, 3 * STG_S, NULL, &due_at));
}

/* A second's rate at once, as the bucket of the SDKs. */
TEST(throttle, lets_a_seconds_rate_go_at_once)
{
    stg_throttle t = of_kind(STG_THROTTLE_AWS, 0);
    stg_ns due_at;

    t.rate = 999;
    CHECK(stg_throttle_enter(&t, STG_DAY, NULL, &due_at));
    CHECK(!stg_throttle_enter(&t, STG_DAY, NULL, &due_at));
    t = of_kind(STG_THROTTLE_AWS, 0);
    t.rate = 5500;
    for (int i = 0; i < 5; i++)
        CHECK(stg_throttle_enter(&t, STG_DAY, NULL, &due_at));
    CHECK(!stg_throttle_enter(&t, STG_DAY, NULL, &due_at));
    CHECK_U64(due_at, STG_DAY + 181818182);
}

/* A thread that lags behind, and years without a throttling answer. */
TEST(throttle, has_a_rate_whatever_the_clock_says)
{
    stg_throttle t = of_kind(STG_THROTTLE_AWS, 0);
    stg_outcome bad = stg_answered(429), ok = stg_ok();
    stg_ns now = UINT64_MAX / 2;
    uint32_t rate;

    for (int i = 0; i < 100; i++)
        stg_throttle_report(&t, &ok, 0, now += 100 * STG_MS);
    stg_throttle_report(&t, &bad, 0, now);
    rate = stg_throttle_rate(&t);
    CHECK(rate > 6500 && rate < 7500);
    stg_throttle_report(&t, &ok, 0, now - STG_S);
    // Within what a cube root in whole ms loses.
    CHECK(stg_throttle_rate(&t) + 5 >= rate &&
          stg_throttle_rate(&t) <= rate + 5);
    stg_throttle_report(&t, &ok, 0, now + 300 * STG_DAY);
    // Twice the measured rate, of which this is all that is left.
    CHECK_U64(stg_throttle_rate(&t), 2 * t.measured);
    // A cancel is no answer.
    ok = stg_failed(STG_FAULT_CANCELLED);
    rate = stg_throttle_rate(&t);
    stg_throttle_report(&t, &ok, 0, now + 301 * STG_DAY);
    CHECK_U64(stg_throttle_rate(&t), rate);
}

/* 0.288/s before it was throttled: K is 600 ms, to the millisecond. */
TEST(throttle, finds_a_cube_root_that_is_exact)
{
    stg_throttle t = of_kind(STG_THROTTLE_AWS, 0);
    stg_outcome ok = stg_ok();

    t.rate = 1;
    t.peak = 288;
    t.measured = 300000000;
    stg_throttle_report(&t, &ok, 0, UINT64_C(95940) << 20); // 100600.4 ms
    CHECK_U64(stg_throttle_rate(&t), 400000288);
}

/* The time since the peak counts for a year: the rate is out of all bounds then, but
 * for twice the measured one. */
TEST(throttle, has_no_bounds_long_after_the_peak)
{
    stg_throttle t = of_kind(STG_THROTTLE_AWS, 0);
    stg_outcome ok = stg_ok();

    t.rate = 1;
    t.peak = 288;
    t.measured = 300000000;
    stg_throttle_report(&t, &ok, 0, 365 * STG_DAY);
    CHECK_U64(stg_throttle_rate(&t), 600000000);
}

TEST(throttle, begins_to_count_in_the_half_second_of_the_first_answer)
{
    stg_throttle t = of_kind(STG_THROTTLE_AWS, 0);
    stg_outcome ok = stg_ok();

    stg_throttle_report(&t, &ok, 0, STG_HOUR);
    CHECK_U64(t.counted, (UINT64_C(7200) << 28) | 1);
    CHECK_U64(t.measured, 0);
}

TEST(throttle, saturates_at_any_rate_of_answers)
{
    stg_throttle t = of_kind(STG_THROTTLE_AWS, 0);
    stg_outcome bad = stg_answered(429), ok = stg_ok();

    t.counted = (UINT64_C(7) << 28) | ((1 << 28) - 2);
    stg_throttle_report(&t, &ok, 0, 7 * STG_S / 2);
    CHECK_U64(t.counted, (UINT64_C(7) << 28) | ((1 << 28) - 1));
    stg_throttle_report(&t, &ok, 0, 7 * STG_S / 2); // no room to count it
    CHECK_U64(t.counted, (UINT64_C(7) << 28) | ((1 << 28) - 1));
    stg_throttle_report(&t, &bad, 0, 4 * STG_S);
    CHECK_U64(stg_throttle_rate(&t), (uint64_t)((1 << 28) - 1) * 7 / 10);
    stg_throttle_report(&t, &ok, 0, STG_HOUR);
    CHECK(stg_throttle_rate(&t) <= 1000000000);
}

/* -- both */

TEST(throttle, of_no_kind_lets_all_out)
{
    stg_throttle t = of_kind(STG_THROTTLE_NONE, 0);
    stg_outcome o = stg_answered(429);
    stg_ns due_at = 0;

    for (int i = 0; i < 100; i++) {
        CHECK(stg_throttle_enter(&t, 5, NULL, &due_at));
        stg_throttle_report(&t, &o, 5, 5);
    }
    CHECK_U64(due_at, 5);
    CHECK(!stg_throttle_is_active(&t, 5));
    CHECK(stg_throttle_enter(NULL, 9, NULL, &due_at));
    CHECK_U64(due_at, 9);
    stg_throttle_report(NULL, &o, 5, 5);
    stg_throttle_withdraw(NULL, 5);
    CHECK(!stg_throttle_is_active(NULL, 5));
    CHECK_U64(stg_throttle_rate(NULL), 0);
}

TEST(throttle, refuses_options_out_of_range_and_names_them)
{
    static const struct {
        stg_throttle_options options;
        const char *text;
    } rows[] = {
        {{STG_THROTTLE_SRE, 999},
         "throttle k=0.999 is out of range, expected 1 to 100"},
        {{STG_THROTTLE_SRE, 100001},
         "throttle k=100.001 is out of range, expected 1 to 100"},
        {{STG_THROTTLE_AWS, 1},
         "throttle k=0.001 is out of range, expected 0 for this kind"},
        {{STG_THROTTLE_NONE, 1},
         "throttle k=0.001 is out of range, expected 0 for this kind"},
        {{(stg_throttle_kind)3, 0},
         "throttle=3 is out of range, expected one of stg_throttle_kind"},
    };
    stg_throttle t = of_kind(STG_THROTTLE_SRE, 1000);
    stg_error err;

    t = of_kind(STG_THROTTLE_SRE, 100000);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CHECK_INT(stg_throttle_check(&rows[i].options, &err), STG_INVALID);
        CHECK_STR(err.text, rows[i].text);
        CHECK_INT(stg_throttle_init(&t, &rows[i].options), STG_INVALID);
    }
    CHECK_INT(stg_throttle_check(NULL, &err), STG_INVALID);
    CHECK_STR(err.text, "throttle options are NULL");
    CHECK_INT(stg_throttle_init(NULL, &rows[0].options), STG_INVALID);
}
