/* The jitter of Polly, against its formula in long double. */
#include "core/backoff_draw.h"

#include <math.h>
#include <stdlib.h>

#include "tests/harness.h"

static stg_backoff polly(stg_ns base, stg_ns cap)
{
    stg_backoff b = stg_backoff_default();

    b.jitter = STG_JITTER_POLLY;
    b.base = base;
    b.cap = cap;
    return b;
}

static stg_rng zeros(void)
{
    return (stg_rng){{0, 0, 0, 0}};
}

static stg_rng ones(void)
{
    return (stg_rng){{0, 1, 1, UINT64_MAX}};
}

/* F(t) = 2^t tanh(sqrt(4 t)) / 1.4 */
static long double formula(long double t)
{
    return exp2l(t) * tanhl(sqrtl(4 * t)) / 1.4L;
}

static long double at(uint32_t k, uint64_t u)
{
    return (long double)k + ldexpl((long double)u, -56);
}

static uint64_t any_u(stg_rng *rng)
{
    return stg_rng_upto(rng, STG_POLLY_U_MAX) >> stg_rng_upto(rng, 55);
}

static bool is_near(stg_ns found, long double expected, long double scale)
{
    return fabsl((long double)found - expected) <= 1 + scale / 1e8L;
}

TEST(polly, is_the_formula_within_a_hundred_millionth)
{
    for (uint64_t seed = 0; seed < seeds(100000); seed++) {
        stg_rng rng = stg_rng_seed(seed);
        stg_ns base =
            stg_rng_upto(&rng, STG_BACKOFF_MAX) >> stg_rng_upto(&rng, 54);
        uint32_t k = (uint32_t)stg_rng_upto(&rng, 70);
        uint64_t u = any_u(&rng);
        long double expected = (long double)base * formula(at(k, u));
        stg_ns sum = stg_polly_sum(base, k, u);

        if (expected > 1.8e19L)
            CHECK_FROM(seed, sum == STG_NEVER || sum > 17 * (STG_NEVER / 18));
        else
            CHECK_FROM(seed, is_near(sum, expected,
                                     ldexpl((long double)base, (int)k)));
    }
}

/* By 60 digits, and not by this machine's libm. */
TEST(polly, is_the_formula_by_figures)
{
    static const struct {
        uint32_t k;
        uint64_t u; /* in hundredths */
        const char *sum;
    } rows[] = {
        {0, 0, "0.000000"},
        {0, 1, "141962981.531921"},
        {0, 25, "646923706.433634"},
        {0, 50, "897404935.579199"},
        {0, 99, "1366654748.568824"},
        {1, 0, "1377182257.251167"},
        {1, 50, "1990408482.960878"},
        {2, 75, "4792493061.986132"},
        {3, 10, "6113726817.392572"},
        {5, 0, "22851178723.876430"},
        {9, 33, "459703205935.273481"},
        {20, 66, "1183454767970228.881641"},
        {30, 99, "1523321352851414662.632082"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint64_t u = rows[i].u * ((STG_POLLY_U_MAX + 1) / 100);
        long double expected = strtold(rows[i].sum, NULL);

        CHECK(is_near(stg_polly_sum(STG_S, rows[i].k, u), expected,
                      ldexpl(1e9L, (int)rows[i].k)));
    }
}

TEST(polly, never_falls_as_the_time_rises)
{
    for (uint64_t seed = 0; seed < seeds(50000); seed++) {
        stg_rng rng = stg_rng_seed(seed);
        stg_ns base = stg_rng_next(&rng) >> stg_rng_upto(&rng, 63);
        uint32_t k = (uint32_t)stg_rng_upto(&rng, 110);
        uint64_t u = stg_rng_upto(&rng, STG_POLLY_U_MAX - 1);
        stg_ns sum = stg_polly_sum(base, k, u);

        CHECK_FROM(seed, sum <= stg_polly_sum(base, k, u + 1));
        CHECK_FROM(seed, sum <= stg_polly_sum(base, k + 1, 0));
        CHECK_FROM(seed, stg_polly_sum(base, k, STG_POLLY_U_MAX) <=
                             stg_polly_sum(base, k + 1, 0));
    }
}

TEST(polly, saturates)
{
    CHECK_U64(stg_polly_sum(0, UINT32_MAX, STG_POLLY_U_MAX), 0);
    CHECK_U64(stg_polly_sum(STG_NEVER, 0, 0), 0);
    CHECK(stg_polly_sum(1, 63, 0) < STG_NEVER / 2);
    CHECK(stg_polly_sum(1, 64, 0) < STG_NEVER / 4 * 3);
    CHECK_U64(stg_polly_sum(1, 64, STG_POLLY_U_MAX), STG_NEVER);
    CHECK_U64(stg_polly_sum(1, 65, 0), STG_NEVER);
    CHECK_U64(stg_polly_sum(1, UINT32_MAX, 0), STG_NEVER);
    CHECK_U64(stg_polly_sum(STG_NEVER, 1, 0), STG_NEVER);
    // Whatever the wait before: nobody knows what is left.
    CHECK_U64(stg_polly_wait(1, 66, 0, STG_POLLY_U_MAX), STG_NEVER);
    CHECK_U64(stg_polly_wait(0, UINT32_MAX, 0, 0), 0);
}

TEST(polly, waits_for_what_the_sum_has_grown_by)
{
    uint64_t u = STG_POLLY_U_MAX / 3, v = STG_POLLY_U_MAX / 2;

    CHECK_U64(stg_polly_wait(STG_S, 1, u, v), stg_polly_sum(STG_S, 0, u));
    CHECK_U64(stg_polly_wait(STG_S, 0, u, v), stg_polly_sum(STG_S, 0, u));
    CHECK_U64(stg_polly_wait(STG_S, 4, u, v),
              stg_polly_sum(STG_S, 3, u) - stg_polly_sum(STG_S, 2, v));
    // What another policy has kept is no u.
    CHECK_U64(stg_polly_wait(STG_S, 4, UINT64_MAX, UINT64_MAX),
              stg_polly_wait(STG_S, 4, STG_POLLY_U_MAX, STG_POLLY_U_MAX));
}

/* The first n waits of an operation add up to the sum. */
TEST(polly, adds_up)
{
    for (uint64_t seed = 0; seed < seeds(5000); seed++) {
        stg_rng rng = stg_rng_seed(seed);
        stg_backoff b = polly(STG_MS + stg_rng_upto(&rng, STG_S), STG_NEVER);
        stg_ns last = b.base, total = 0;

        for (uint32_t n = 1; n <= 20; n++) {
            total += stg_backoff_wait(&b, n, &last, &rng);
            CHECK_FROM(seed, total == stg_polly_sum(b.base, n - 1, last));
        }
    }
}

TEST(polly, is_cut_to_the_cap)
{
    stg_backoff b = polly(STG_S, 3 * STG_S);
    stg_rng low = zeros(), high = ones();
    stg_ns last = b.base;

    CHECK_U64(stg_backoff_wait(&b, 1, &last, &low), 0);
    CHECK_U64(last, 0);
    CHECK_U64(stg_backoff_wait(&b, 2, &last, &high),
              stg_polly_sum(STG_S, 1, STG_POLLY_U_MAX));
    CHECK_U64(last, STG_POLLY_U_MAX);
    last = 0;
    high = ones();
    CHECK_U64(stg_backoff_wait(&b, 9, &last, &high), 3 * STG_S);
    CHECK_U64(last, STG_POLLY_U_MAX);
    high = ones();
    CHECK_U64(stg_backoff_wait(&b, 99, NULL, &high), 3 * STG_S);
}

/* From what of its waits is not below the delay; and else after it. */
TEST(polly, takes_the_server_delay_as_a_floor)
{
    stg_backoff b = polly(STG_S, 30 * STG_S);
    stg_ns most = stg_polly_wait(STG_S, 3, STG_POLLY_U_MAX, 7), last = 7;
    stg_rng low = zeros(), high = ones();
    stg_ns wait = stg_backoff_wait_after(&b, 3, &last, 2 * STG_S, &low);

    CHECK(wait >= 2 * STG_S && wait <= 2 * STG_S + 100);
    CHECK_U64(wait, stg_polly_wait(STG_S, 3, last, 7));
    CHECK(stg_polly_wait(STG_S, 3, last - 1, 7) < 2 * STG_S);
    last = 7;
    CHECK_U64(stg_backoff_wait_after(&b, 3, &last, 2 * STG_S, &high), most);
    CHECK_U64(last, STG_POLLY_U_MAX);
    last = 7;
    low = zeros();
    CHECK_U64(stg_backoff_wait_after(&b, 3, &last, most, &low), most);
    last = 7;
    low = zeros();
    CHECK_U64(stg_backoff_wait_after(&b, 3, &last, most + 1, &low), most + 1);
    CHECK_U64(last, STG_POLLY_U_MAX); // as after the longest own wait
    last = 7;
    high = ones();
    CHECK_U64(stg_backoff_wait_after(&b, 3, &last, STG_MIN, &high),
              STG_MIN + most);
}

/* Of the waits that are long enough, each is as likely as before. */
TEST(polly, keeps_its_distribution_above_a_delay)
{
    enum { DRAWS = 20000 };
    stg_backoff b = polly(STG_S, STG_NEVER);
    stg_rng rng = stg_rng_seed(3);
    long double all = 0, above = 0;
    int count = 0;

    for (int i = 0; i < DRAWS; i++) {
        stg_ns last = STG_POLLY_U_MAX / 4, wait;

        wait = stg_backoff_wait(&b, 3, &last, &rng);
        if (wait >= 2 * STG_S) {
            all += (long double)wait;
            count++;
        }
        last = STG_POLLY_U_MAX / 4;
        wait = stg_backoff_wait_after(&b, 3, &last, 2 * STG_S, &rng);
        CHECK(wait >= 2 * STG_S);
        above += (long double)wait;
    }
    CHECK(count > DRAWS / 4 && count < DRAWS / 4 * 3);
    CHECK(fabsl(above / DRAWS - all / count) < 0.02L * STG_S);
}

/* Mean and spread of each wait are those of the formula over other draws. */
TEST(polly, has_the_mean_and_the_spread_of_the_formula)
{
    enum { WAITS = 6 };
    uint64_t draws = seeds(40000);
    stg_backoff b = polly(STG_S, STG_NEVER);
    stg_rng rng = stg_rng_seed(1), other = stg_rng_seed(2);
    long double sum[2][WAITS + 1] = {{0}}, square[2][WAITS + 1] = {{0}};

    for (uint64_t i = 0; i < draws; i++) {
        stg_ns last = b.base;
        long double before = 0;

        for (uint32_t n = 1; n <= WAITS; n++) {
            long double next =
                formula(n - 1 + ldexpl((long double)stg_rng_next(&other), -64));
            long double ours =
                (long double)stg_backoff_wait(&b, n, &last, &rng) / STG_S;

            sum[0][n] += ours;
            square[0][n] += ours * ours;
            sum[1][n] += next - before;
            square[1][n] += (next - before) * (next - before);
            before = next;
        }
    }
    for (int n = 1; n <= WAITS; n++) {
        long double count = (long double)draws;
        long double mean = sum[0][n] / count, expected = sum[1][n] / count;
        long double spread = sqrtl(square[0][n] / count - mean * mean);
        long double other_spread =
            sqrtl(square[1][n] / count - expected * expected);

        CHECK(fabsl(mean / expected - 1) < 8 / sqrtl(count));
        CHECK(fabsl(spread / other_spread - 1) < 8 / sqrtl(count));
    }
}

/* A floor has no meaning for it, which no check has said here: it is no reason to
 * come earlier than asked. */
TEST(polly, is_never_earlier_than_asked)
{
    stg_backoff b = polly(STG_S, STG_HOUR);
    stg_rng rng = zeros();
    stg_ns last = STG_POLLY_U_MAX;

    b.floor = STG_MIN;
    CHECK(stg_polly_wait(b.base, 2, STG_POLLY_U_MAX, last) < 30 * STG_S);
    CHECK_U64(stg_backoff_wait_after(&b, 2, &last, 30 * STG_S, &rng),
              30 * STG_S);
}

/* Where an operation goes on with another policy's s, or from a struct that no
 * check has seen. */
TEST(polly, survives_any_numbers)
{
    for (uint64_t seed = 0; seed < seeds(20000); seed++) {
        stg_rng rng = stg_rng_seed(seed);
        stg_backoff b = polly(stg_rng_next(&rng), stg_rng_next(&rng));
        stg_ns last = stg_rng_next(&rng), delay, wait;
        uint32_t n = (uint32_t)(stg_rng_next(&rng) >> stg_rng_upto(&rng, 63));

        b.floor = stg_rng_next(&rng) >> stg_rng_upto(&rng, 63);
        delay = stg_rng_next(&rng) >> stg_rng_upto(&rng, 63);
        wait = stg_backoff_wait_after(&b, n, &last, delay, &rng);
        CHECK_FROM(seed, wait >= stg_ns_min(delay, b.cap));
        CHECK_FROM(seed, last <= STG_POLLY_U_MAX);
    }
}
