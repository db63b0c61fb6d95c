/* What a policy's waits come to: against numbers worked out by hand, against
 * the library's own waits, and against sums done the long way. */

#include <stdio.h>

#include "plan/plan.h"
#include "tests/harness.h"
#include "tests/policy_of.h"

static stg_forecast forecast_of(const stg_policy *p)
{
    stg_answers answers;
    stg_forecast f;

    stg_answers_list(&answers, p, false);
    stg_forecast_make(&f, p, stg_answers_retries_max(&answers));
    return f;
}

static stg_forecast forecast(const char *text)
{
    stg_policy p = policy_of(text);

    return forecast_of(&p);
}

/* "200 ms 400 ms ...": the windows that are listed. */
static const char *windows(const char *text)
{
    static char words[1024];
    stg_forecast f = forecast(text);
    size_t length = 0;

    words[0] = '\0';
    for (uint32_t i = 0; i < f.wait_count; i++) {
        char ns[STG_NS_TEXT_MAX];

        length += (size_t)snprintf(words + length, sizeof words - length,
                                   "%s%s", i > 0 ? ", " : "",
                                   stg_ns_text(f.waits[i].window, ns));
    }
    return words;
}

TEST(forecast, lists_the_windows_of_each_growth)
{
    CHECK_STR(windows("exponential base=1s cap=40s attempts=9"),
              "1 s, 2 s, 4 s, 8 s, 16 s, 32 s, 40 s, 40 s");
    CHECK_STR(windows("aws attempts=5"), "1 s, 2 s, 4 s, 8 s");
    CHECK_STR(windows("linear base=100ms attempts=6"),
              "100 ms, 200 ms, 300 ms, 400 ms, 500 ms");
    CHECK_STR(windows("exponential base=100ms attempts=6"),
              "100 ms, 200 ms, 400 ms, 800 ms, 1.6 s");
    CHECK_STR(windows("fixed base=3s attempts=4"), "3 s, 3 s, 3 s");
    CHECK_STR(windows("list=5s,1s,2m attempts=6"),
              "5 s, 1 s, 2 min, 2 min, 2 min");
    CHECK_STR(windows("none"), "");
}

TEST(forecast, lists_unlimited_retries_until_the_cap_and_two_more)
{
    CHECK_STR(windows("attempts=unlimited base=1s cap=5s"),
              "1 s, 2 s, 4 s, 5 s, 5 s, 5 s");
    CHECK_STR(windows("attempts=unlimited fixed base=1s"), "1 s, 1 s, 1 s");
    CHECK_STR(windows("attempts=unlimited list=1s,2s"), "1 s, 2 s, 2 s, 2 s");
    CHECK_STR(windows("attempts=unlimited jitter=decorrelated base=1s cap=5s"),
              "3 s, 5 s, 5 s, 5 s");
    CHECK_INT(forecast("attempts=unlimited linear base=1ns cap=1d").wait_count,
              32);
    CHECK(forecast("attempts=unlimited fixed").is_truncated);
    CHECK(forecast("attempts=34 fixed").is_truncated);
    CHECK(!forecast("attempts=33 fixed").is_truncated);
    CHECK_INT(forecast("attempts=33 fixed").wait_count, 32);
}

/* Retry n of a text: "least mean most" in microseconds. */
static const char *span(const char *text, uint32_t n)
{
    static char words[96];
    stg_wait_range s = forecast(text).waits[n - 1].wait;

    snprintf(words, sizeof words, "%ju %ju %ju", (uintmax_t)(s.least / STG_US),
             (uintmax_t)(s.mean / STG_US), (uintmax_t)(s.most / STG_US));
    return words;
}

TEST(forecast, knows_where_each_jitter_lets_a_wait_fall)
{
    CHECK_STR(span("base=1s jitter=none", 2), "2000000 2000000 2000000");
    CHECK_STR(span("base=1s jitter=full", 2), "0 1000000 2000000");
    CHECK_STR(span("base=1s jitter=equal", 2), "1000000 1500000 2000000");
    CHECK_STR(span("base=1s jitter=20%", 2), "1600000 2000000 2400000");
    CHECK_STR(span("base=1s jitter=100%", 2), "0 2000000 4000000");
    // m = min(w, c / (1 + p)): the most is the cap, and no more.
    CHECK_STR(span("base=1s cap=2s jitter=25%", 2), "1200000 1600000 2000000");
    CHECK_STR(span("fixed base=1s cap=1s jitter=25%", 2),
              "750000 1000000 1250000");
    CHECK_STR(span("list=0,8s jitter=25%", 2), "6000000 8000000 10000000");
    CHECK_STR(span("base=0 jitter=equal", 1), "0 0 0");
    CHECK_STR(span("base=1s jitter=-25%:50%", 2), "1500000 2250000 3000000");
    CHECK_STR(span("base=1s cap=3s jitter=-25%:50% attempts=9", 5),
              "1500000 2250000 3000000");
    CHECK_STR(span("base=1s jitter=up:3s", 2), "2000000 3500000 5000000");
    CHECK_STR(span("base=1s cap=4s jitter=up:3s attempts=9", 8),
              "1000000 2500000 4000000");
}

TEST(forecast, keeps_to_the_floor)
{
    CHECK_STR(span("base=1s floor=1500ms jitter=full", 1),
              "1500000 1500000 1500000");
    CHECK_STR(span("base=1s floor=1500ms jitter=full", 2),
              "1500000 1750000 2000000");
}

static bool is_about(stg_ns found, stg_ns expected)
{
    return found > expected / 100 * 99 && found < expected / 100 * 101;
}

/* From U[b, 3 s], cut at the floor f: f; U[f, 3 f], mean 2 f; then a mean of
 * (f + 6 f) / 2. */
TEST(forecast, estimates_the_means_of_decorrelated_jitter_with_a_floor)
{
    stg_forecast f = forecast(
        "base=0 floor=4s cap=none jitter=decorrelated "
        "attempts=4");

    CHECK_U64(f.waits[0].wait.most, 4 * STG_S);
    CHECK_U64(f.waits[0].wait.mean, 4 * STG_S);
    CHECK_U64(f.waits[2].wait.least, 4 * STG_S);
    CHECK_U64(f.waits[2].wait.most, 36 * STG_S);
    CHECK(f.waits[1].is_mean_estimate && f.waits[2].is_mean_estimate);
    CHECK(is_about(f.waits[1].wait.mean, 8 * STG_S));
    CHECK(is_about(f.waits[2].wait.mean, 14 * STG_S));
}

/* F(t) = 2^t tanh(sqrt(4 t)) / 1.4: F(1) = 1377.2 ms, F(2) = 2837.3 ms,
 * F(3) = 5703.0 ms. */
TEST(forecast, knows_where_pollys_jitter_lets_waits_fall)
{
    stg_forecast f = forecast("base=1s cap=none jitter=polly attempts=4");

    CHECK_U64(f.waits[0].wait.most / STG_MS, 1377);
    CHECK_U64(f.waits[1].wait.most / STG_MS, 2837);
    CHECK_U64(f.waits[2].wait.most / STG_MS, 5703 - 1378);
    CHECK_U64(f.waits[2].window, f.waits[2].wait.most);
    CHECK_U64(f.waits[0].wait.least, 0);
    CHECK(f.waits[2].wait.least < STG_US);
    // Waits that are short because of the one before are long together.
    CHECK_U64(f.waits[0].total.least, 0);
    CHECK_U64(f.waits[1].total.least / STG_MS, 1377);
    CHECK_U64(f.waits[2].total.least / STG_MS, 2837);
    CHECK_U64(f.waits[2].total.most / STG_MS, 5703);
    CHECK(f.waits[0].is_mean_estimate);
    CHECK(!forecast("base=0 jitter=polly").waits[0].is_mean_estimate);
    CHECK_U64(forecast("base=0 jitter=polly").waits[0].wait.most, 0);
}

TEST(forecast, bounds_pollys_jitter_past_its_cap)
{
    stg_forecast f =
        forecast("base=1s cap=3s jitter=polly attempts=40 deadline=30s");

    // 1377.2, 1460.1 and 2865.7 ms apart; then the cap, each time.
    CHECK_U64(f.waits[3].total.most / STG_MS, 8703);
    CHECK_U64(f.waits[4].total.most / STG_MS, 11703);
    // None, and the cap, by turns: from F(1), or from the second step.
    CHECK_U64(f.waits[2].total.least / STG_MS, 1460);
    CHECK_U64(f.waits[3].total.least / STG_MS, 4243);
    CHECK_U64(f.waits[4].total.least / STG_MS, 1460 + 3000);
    CHECK_U64(f.waits[5].total.least / STG_MS, 4243 + 3000);
    // 1460.1 + 9 * 3000 ms, at retry 21, is below 30 s; 4243 + 9 * 3000 is not.
    CHECK_U64(f.retries_in_time, 21);
    CHECK_U64(forecast("base=0 jitter=polly attempts=unlimited deadline=1s")
                  .retries_in_time,
              STG_UNLIMITED);
}

TEST(forecast, rounds_means_down)
{
    CHECK_U64(forecast("base=5ns jitter=full").waits[0].wait.mean, 2);
    CHECK_U64(forecast("base=5ns jitter=equal").waits[0].wait.least, 2);
    CHECK_U64(forecast("base=5ns jitter=equal").waits[0].wait.mean, 3);
}

/* e(1) = 2 b, e(2) = 3.5 b, e(3) = 5.75 b, as long as 3^n b is below the cap. */
TEST(forecast, knows_the_means_of_decorrelated_jitter_below_the_cap)
{
    stg_forecast f = forecast("base=1s cap=27s jitter=decorrelated attempts=6");

    CHECK_U64(f.waits[0].wait.mean, 2 * STG_S);
    CHECK_U64(f.waits[1].wait.mean, 3500 * STG_MS);
    CHECK_U64(f.waits[2].wait.mean, 5750 * STG_MS);
    CHECK_U64(f.waits[2].wait.most, 27 * STG_S);
    CHECK(!f.waits[2].is_mean_estimate);
    CHECK(f.waits[3].is_mean_estimate);
    CHECK_U64(f.waits[3].wait.most, 27 * STG_S);
    // Uncut it were 9.125 s.
    CHECK(f.waits[3].wait.mean > 7 * STG_S);
    CHECK(f.waits[3].wait.mean < 9125 * STG_MS);
}

/* The estimate of a wait that is hardly ever cut is near its exact mean. */
TEST(forecast, estimates_means_within_a_hundredth)
{
    stg_policy cut =
        policy_of("base=1s cap=80s jitter=decorrelated attempts=5");
    stg_policy uncut = cut;
    stg_ns estimate, exact;

    uncut.backoff.cap = 81 * STG_S;
    estimate = forecast_of(&cut).waits[3].wait.mean;
    exact = forecast_of(&uncut).waits[3].wait.mean;
    CHECK(forecast_of(&cut).waits[3].is_mean_estimate);
    CHECK(!forecast_of(&uncut).waits[3].is_mean_estimate);
    CHECK_U64(exact, 9125 * STG_MS);
    CHECK(estimate > exact - exact / 100 && estimate < exact + exact / 100);
}

/* -- properties of any policy */

static stg_ns any_time(stg_rng *rng)
{
    return stg_ns_min(stg_rng_next(rng) >> stg_rng_upto(rng, 60),
                      STG_BACKOFF_MAX);
}

static stg_policy any_policy(stg_rng *rng)
{
    stg_policy p = stg_policy_default();
    stg_backoff *b = &p.backoff;

    b->growth = (stg_growth)stg_rng_upto(rng, STG_POLYNOMIAL);
    b->jitter = (stg_jitter)stg_rng_upto(rng, STG_JITTER_UP);
    if (b->jitter == STG_JITTER_PERCENT)
        b->above = 1 + (uint32_t)stg_rng_upto(rng, 99);
    if (b->jitter == STG_JITTER_PERCENT)
        b->below = (uint32_t)stg_rng_upto(rng, 100);
    if (b->jitter == STG_JITTER_UP)
        b->up = 1 + stg_ns_min(any_time(rng), 364 * STG_DAY);
    b->factor =
        1000 + (uint32_t)(stg_rng_upto(rng, 99000) >> stg_rng_upto(rng, 16));
    b->base = any_time(rng);
    b->cap = stg_ns_max(stg_ns_max(b->base, 1), any_time(rng));
    if (stg_rng_upto(rng, 3) == 0)
        b->cap = STG_NEVER;
    if (b->growth == STG_POLYNOMIAL)
        b->power = 2 + (uint16_t)stg_rng_upto(rng, STG_POWER_MAX - 2);
    if (b->growth == STG_POLYNOMIAL || b->growth == STG_LINEAR) {
        b->counts_from_0 = stg_rng_upto(rng, 1) == 0;
        b->offset = stg_ns_min(b->cap, any_time(rng));
    }
    if (stg_rng_upto(rng, 1) == 0)
        b->floor = stg_ns_min(b->cap, any_time(rng));
    if (b->growth == STG_LIST)
        b->list_count = 1 + (uint32_t)stg_rng_upto(rng, STG_LIST_MAX - 1);
    for (uint32_t i = 0; i < b->list_count; i++)
        b->list[i] = any_time(rng);
    p.attempts_max = 2 + stg_rng_upto(rng, 500);
    p.deadline = stg_rng_upto(rng, 1) ? STG_NEVER : 1 + any_time(rng);
    return p;
}

/* The library's wait with a draw of 2^64 - 1 (u = 1), or of 0. */
static stg_ns hostile_wait(const stg_backoff *b, uint32_t n, stg_ns *last,
                           bool is_most)
{
    stg_rng rng = {{0, 0, 0, is_most ? UINT64_MAX : 0}};

    return stg_backoff_wait(b, n, last, &rng);
}

TEST(forecast, agrees_with_the_library_at_both_ends)
{
    for (uint64_t seed = 0; seed < seeds(300); seed++) {
        stg_rng rng = stg_rng_seed(seed);
        stg_policy p = any_policy(&rng);
        stg_forecast f = forecast_of(&p);
        stg_ns low = p.backoff.base, high = p.backoff.base;

        for (uint32_t n = 1; n <= f.wait_count; n++) {
            const stg_wait_range *s = &f.waits[n - 1].wait;

            CHECK_FROM(seed, s->least == hostile_wait(&p.backoff, n, &low, 0));
            CHECK_FROM(seed, s->most == hostile_wait(&p.backoff, n, &high, 1));
            CHECK_FROM(seed, s->least <= s->mean && s->mean <= s->most);
        }
    }
}

TEST(forecast, has_the_mean_of_the_waits_that_the_library_draws)
{
    enum { DRAWS = 4000 };

    for (uint64_t seed = 0; seed < seeds(20); seed++) {
        stg_rng rng = stg_rng_seed(seed);
        stg_policy p = any_policy(&rng);
        stg_forecast f = forecast_of(&p);
        stg_ns sum = 0, mean, width, slack;
        const stg_wait_range *s = &f.waits[f.wait_count - 1].wait;

        for (int i = 0; i < DRAWS; i++) {
            stg_ns last = p.backoff.base, wait = 0;

            for (uint32_t n = 1; n <= f.wait_count; n++)
                wait = stg_backoff_wait(&p.backoff, n, &last, &rng);
            sum += wait / DRAWS;
        }
        // Five standard errors of a uniform wait are under 0.03 of its width.
        mean = s->mean;
        width = s->most - s->least;
        slack = DRAWS + width / 100 * 3;
        CHECK_FROM(seed, mean <= stg_ns_add(sum, slack));
        CHECK_FROM(seed, sum <= stg_ns_add(mean, slack));
    }
}

static stg_policy any_polly(stg_rng *rng)
{
    stg_policy p = stg_policy_default();
    stg_backoff *b = &p.backoff;

    b->jitter = STG_JITTER_POLLY;
    b->base = any_time(rng);
    b->cap = stg_ns_max(stg_ns_max(b->base, 1), any_time(rng));
    if (stg_rng_upto(rng, 3) == 0)
        b->cap = STG_NEVER;
    p.attempts_max = 2 + stg_rng_upto(rng, 100);
    p.deadline = 1 + any_time(rng);
    return p;
}

static stg_ns polly_wait(const stg_backoff *b, uint32_t n, stg_ns last,
                         bool is_most)
{
    return hostile_wait(b, n, &last, is_most);
}

/* Nor is any wait, or what they add up to, beyond the forecast. */
TEST(forecast, agrees_with_the_library_on_pollys_jitter)
{
    for (uint64_t seed = 0; seed < seeds(300); seed++) {
        stg_rng rng = stg_rng_seed(seed);
        stg_policy p = any_polly(&rng);
        stg_forecast f = forecast_of(&p);
        stg_ns last = p.backoff.base, high = 0, all = 0, most = 0;
        uint64_t in_time = 0;

        for (uint32_t n = 1; n < p.attempts_max; n++) {
            stg_forecast_wait row = stg_forecast_row(&f, &p, n);
            stg_ns wait = stg_backoff_wait(&p.backoff, n, &last, &rng);

            CHECK_FROM(seed, row.wait.least ==
                                 polly_wait(&p.backoff, n, STG_NEVER, false));
            CHECK_FROM(seed,
                       row.wait.most == polly_wait(&p.backoff, n, 0, true));
            CHECK_FROM(seed, row.wait.least <= wait && wait <= row.wait.most);
            all = stg_ns_add(all, wait);
            most = stg_ns_add(most, hostile_wait(&p.backoff, n, &high, true));
            CHECK_FROM(seed, row.total.most == most);
            // The longest u is 2^-56 less than the whole.
            CHECK_FROM(seed, all <= stg_ns_add(most, most / 1000000));
            CHECK_FROM(seed, row.total.least <= stg_ns_add(all, all / 1000000));
            in_time += row.total.least < p.deadline;
            CHECK_FROM(seed, row.is_past_deadline == (in_time < n));
        }
        CHECK_FROM(seed, f.retries_in_time == in_time);
        CHECK_FROM(seed, f.wait_total_most == most);
    }
}

TEST(forecast, has_the_mean_of_the_waits_that_pollys_jitter_draws)
{
    enum { DRAWS = 4000 };

    for (uint64_t seed = 0; seed < seeds(20); seed++) {
        stg_rng rng = stg_rng_seed(seed);
        stg_policy p = any_polly(&rng);
        stg_forecast f = forecast_of(&p);
        uint64_t n = 1 + stg_rng_upto(&rng, f.wait_count - 1), sum = 0;
        const stg_wait_range *s = &f.waits[n - 1].wait;

        for (int i = 0; i < DRAWS; i++) {
            stg_ns last = p.backoff.base, wait = 0;

            for (uint32_t k = 1; k <= n; k++)
                wait = stg_backoff_wait(&p.backoff, k, &last, &rng);
            sum += wait / DRAWS;
        }
        CHECK_FROM(seed, s->mean <= stg_ns_add(sum, DRAWS + s->most / 30));
        CHECK_FROM(seed, sum <= stg_ns_add(s->mean, DRAWS + s->most / 30));
    }
}

/* A row, and the retries in time, are found without walking there. */
TEST(forecast, sums_as_if_it_added_each_wait)
{
    for (uint64_t seed = 0; seed < seeds(50); seed++) {
        stg_rng rng = stg_rng_seed(seed);
        stg_policy p = any_policy(&rng);
        stg_forecast f = forecast_of(&p);
        stg_ns least = 0, most = 0, mean = 0;
        uint64_t in_time = 0, usual = 0;

        for (uint64_t n = 1; n <= f.retries_max; n++) {
            stg_forecast_wait row = stg_forecast_row(&f, &p, n);

            least = stg_ns_add(least, row.wait.least);
            mean = stg_ns_add(mean, row.wait.mean);
            most = stg_ns_add(most, row.wait.most);
            in_time += p.deadline == STG_NEVER || least < p.deadline;
            usual += p.deadline == STG_NEVER || mean < p.deadline;
            CHECK_FROM(seed, row.retry == n);
            CHECK_FROM(seed, row.total.least == least);
            CHECK_FROM(seed, row.total.mean == mean);
            CHECK_FROM(seed, row.total.most == most);
            CHECK_FROM(seed, row.is_past_deadline == (in_time < n));
        }
        CHECK_FROM(seed, f.wait_total_most == most);
        CHECK_FROM(seed, f.retries_in_time == in_time);
        CHECK_FROM(seed, f.retries_usual == usual);
    }
}

/* The sum of n from 1 to N is N (N + 1) / 2. */
TEST(forecast, sums_billions_of_linear_waits)
{
    stg_forecast f = forecast(
        "linear base=1ns cap=none jitter=none "
        "attempts=4294967295 deadline=365d");

    CHECK_U64(f.wait_total_most, UINT64_C(9223372030412324865));
    // 251141393 * 251141394 / 2 is the last below 31536000 s.
    CHECK_U64(f.retries_in_time, 251141393);
}

/* The sum of n^2 from 1 to N is N (N + 1) (2 N + 1) / 6, that of n^4 from 0 to
 * N - 1 is (N - 1) N (2 N - 1) (3 N^2 - 3 N - 1) / 30. */
TEST(forecast, sums_millions_of_waits_of_a_polynomial)
{
    stg_forecast f = forecast(
        "polynomial base=1ns cap=none jitter=none attempts=3000001 "
        "deadline=365d");

    CHECK_U64(f.wait_total_most, UINT64_C(9000004500000500000));
    // 455661 * 455662 * 911323 / 6 is the last below 31536000 s.
    CHECK_U64(f.retries_in_time, 455661);
    f = forecast(
        "polynomial power=4 count-from=0 offset=7ns base=1ns cap=none "
        "jitter=none attempts=5001 deadline=none");
    CHECK_U64(f.wait_total_most, UINT64_C(624687541666666500 + 7 * 5000));
    f = forecast("polynomial power=10 base=1s cap=none attempts=4294967295");
    CHECK_U64(f.wait_total_most, STG_NEVER);
}

/* -- what it all comes to */

TEST(forecast, never_makes_a_retry_past_the_deadline)
{
    stg_forecast f = forecast("base=1s cap=40s attempts=9 jitter=none");

    CHECK(!f.waits[6].is_past_deadline); // at 103 s
    CHECK(f.waits[7].is_past_deadline);  // at 143 s
    CHECK_U64(f.retries_in_time, 7);
    CHECK_U64(f.attempts_max, 8);
    // At the deadline is too late.
    CHECK_U64(forecast("fixed base=1m jitter=none deadline=2m").attempts_max,
              2);
    CHECK_U64(forecast("fixed base=1m jitter=none deadline=121s").attempts_max,
              3);
    CHECK_U64(forecast("fixed base=1s jitter=none attempts=unlimited "
                       "deadline=1m")
                  .attempts_max,
              60);
}

TEST(forecast, bounds_what_any_base_comes_to)
{
    stg_forecast f = forecast(
        "base=1s base-for=4s:overload base-for=100ms:connect "
        "jitter=none attempts=9 cap=none deadline=20s attempt-timeout=1s");

    CHECK_U64(f.waits[1].wait.most, 2 * STG_S);
    CHECK_U64(f.wait_total_most, 255 * 4 * STG_S);
    CHECK_U64(f.retries_in_time, 7); // 12.7 s of 100 ms
    CHECK_U64(f.retries_usual, 4);
    CHECK_U64(f.attempts_max, 8);
    f = forecast("fixed base=1s base-for=4s:overload attempt-timeout=1s");
    CHECK_U64(f.time_total_most, 3 * STG_S + 8 * STG_S);
}

TEST(forecast, bounds_the_time)
{
    CHECK_U64(forecast("broadcast").time_total_most, 32 * STG_S);
    CHECK_U64(forecast("backend").time_total_most, 2 * STG_MIN);
    CHECK_U64(forecast("attempts=2 fixed base=1s attempt-timeout=2s "
                       "deadline=1h")
                  .time_total_most,
              5 * STG_S);
    CHECK_U64(forecast("none attempt-timeout=3s").time_total_most, 3 * STG_S);
    CHECK_U64(forecast("attempts=2 fixed base=1s attempt-timeout=2s "
                       "bulkhead=1:5s")
                  .time_total_most,
              15 * STG_S);
    // A hedge begins while another attempt is under way.
    CHECK_U64(forecast("none attempt-timeout=3s hedge=1s:2").time_total_most,
              5 * STG_S);
    CHECK_U64(forecast("none attempt-timeout=3s hedge=9s:2").time_total_most,
              9 * STG_S);
    CHECK_U64(forecast("none attempt-timeout=3s hedge=p95").time_total_most,
              6 * STG_S);
    CHECK_U64(forecast("attempts=4 hedge=p95:3").requests_max, 16);
    CHECK_U64(
        forecast("attempts=unlimited deadline=none hedge=1s").requests_max,
        STG_UNLIMITED);
    CHECK_U64(forecast("deadline=none").time_total_most, STG_NEVER);
    CHECK_U64(forecast("attempts=unlimited deadline=none attempt-timeout=1s")
                  .time_total_most,
              STG_NEVER);
    CHECK_U64(forecast("attempts=unlimited deadline=5m").time_total_most,
              5 * STG_MIN);
}

TEST(forecast, has_no_bound_on_time_where_there_is_none)
{
    const char *waits = "attempt-timeout=1s deadline=none budget-empty=wait";
    const char *resets = "attempt-timeout=9s deadline=1m reset-after=9s";

    CHECK_U64(forecast(waits).time_total_most, 3 * STG_S + 600 * STG_MS);
    CHECK_U64(forecast("attempt-timeout=1s deadline=none budget-empty=wait "
                       "budget=1:1/s")
                  .time_total_most,
              STG_NEVER);
    CHECK_U64(forecast(resets).time_total_most, STG_NEVER);
    CHECK_U64(forecast("attempt-timeout=9s deadline=1m reset-after=10s")
                  .time_total_most,
              27 * STG_S + 600 * STG_MS);
}

TEST(forecast, counts_the_attempts_that_faults_allow)
{
    CHECK_U64(forecast("attempts=9 deadline=none").attempts_max, 9);
    CHECK_U64(forecast("attempts=9 retry=none").attempts_max, 1);
    CHECK_U64(forecast("attempts=9 retry=none once=timeout").attempts_max, 2);
    CHECK_U64(forecast("attempts=9 retry=none once=timeout at-most=3:503,dns")
                  .attempts_max,
              8);
    CHECK_U64(forecast("attempts=4 retry=none once=timeout at-most=3:503,dns")
                  .attempts_max,
              4);
    CHECK_U64(forecast("attempts=unlimited deadline=none").attempts_max,
              STG_UNLIMITED);
    // A cancelled operation is never retried, even by a rule on `any`.
    CHECK_U64(forecast("attempts=9 retry=any never=connect,server,request,"
                       "overload,database,rpc,invalid,nested,circuit-open,"
                       "too-large,loop,exit,error,message-expired,template")
                  .attempts_max,
              1);
}

TEST(forecast, knows_what_the_budget_sustains)
{
    CHECK_U64(forecast("budget=ratio:0.2+10/s").sustained, 1200);
    CHECK_U64(forecast("budget=ratio:5 attempts=3").sustained, 3000);
    CHECK_U64(forecast("budget=ratio:0+2/s").sustained, 1000);
    CHECK_U64(forecast("budget=ratio:0+2/s").per_second, 2000);
    CHECK_U64(forecast("budget=ratio:0.1+2/s").per_second, STG_UNLIMITED);
    CHECK_U64(forecast("backend").sustained, 5000);
    CHECK_U64(forecast("backend").per_second, 10000);
    CHECK_U64(forecast("client").per_second, STG_UNLIMITED);
    CHECK_U64(forecast("attempts=unlimited deadline=none").sustained,
              STG_UNLIMITED);
}
