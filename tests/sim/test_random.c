#include "sim/random.h"

#include "sim/distribution.h"
#include "tests/harness.h"

TEST(random, gives_each_concern_and_repetition_a_stream_of_its_own)
{
    uint64_t firsts[3 * 3 * 5];
    size_t count = 0;

    for (uint64_t seed = 0; seed < 3; seed++)
        for (uint64_t repetition = 0; repetition < 3; repetition++)
            for (int c = STG_CONCERN_NETWORK; c <= STG_CONCERN_CHOICE; c++) {
                stg_rng rng =
                    stg_random_stream(seed, repetition, (stg_concern)c);

                firsts[count] = stg_rng_next(&rng);
                for (size_t i = 0; i < count; i++)
                    CHECK(firsts[i] != firsts[count]);
                count++;
            }
}

/* The same numbers by every compiler, and for ever. */
TEST(random, draws_the_same_on_every_machine)
{
    stg_rng rng = stg_random_stream(1, 0, STG_CONCERN_NETWORK);

    CHECK(stg_random_normal(&rng) == 0x1.f37a2461c2d7bp-2);
    CHECK(stg_random_exponential(&rng) == 0x1.6665462402f6ep-1);
    CHECK(stg_random_uniform(&rng) == 0x1.e8acaf27cb9b1p-1);
}

TEST(random, inlined_draws_are_those_of_core)
{
    stg_rng a = stg_rng_seed(7), b = a;

    for (int i = 0; i < 1000; i++)
        CHECK_U64(stg_rng_draw(&a), stg_rng_next(&b));
}

TEST(random, knows_the_exponential_function)
{
    static const struct {
        double x, y;
    } known[] = {
        {0, 1},
        {1e-9, 0.9999999990000000005},
        {0.5, 0.60653065971263342},
        {1, 0.36787944117144233},
        {6.676, 0.0012608111440847696},
        {20, 2.0611536224385578e-9},
        {32, 1.2664165549094176e-14},
    };

    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        double off = stg_random_exp(known[i].x) / known[i].y - 1;

        CHECK(-1e-12 < off && off < 1e-12);
    }
}

/* -- distributions, by how many draws are below some points: a share p of n
 * varies by sqrt(n p (1 - p)) */

typedef struct point {
    double at, share;
} point;

static void compare_shares(const point *points, size_t count,
                           double (*draw)(stg_rng *), uint64_t n)
{
    stg_rng rng = stg_rng_seed(n);
    uint64_t below[32] = {0};

    for (uint64_t i = 0; i < n; i++) {
        double x = draw(&rng);

        for (size_t j = 0; j < count; j++)
            below[j] += x < points[j].at;
    }
    for (size_t j = 0; j < count; j++) {
        double p = points[j].share, expected = p * (double)n;
        double off = (double)below[j] - expected, variance = expected * (1 - p);

        if (off * off >= 16 * variance)
            harness_fail(__FILE__, __LINE__, "%g of %g are below %g, not %g",
                         (double)below[j], (double)n, points[j].at, expected);
    }
}

TEST(random, normal_draws_follow_the_distribution_into_its_tails)
{
    // The last two lie beyond the layers.
    static const point points[] = {
        {-3.9, 4.8096344e-5}, {-3.0, 1.3498980e-3}, {-2.0, 2.2750132e-2},
        {-1.0, 0.15865525},   {-0.5, 0.30853754},   {-0.1, 0.46017216},
        {0.0, 0.5},           {0.2, 0.57925971},    {0.7, 0.75803635},
        {1.3, 0.90319952},    {2.2, 0.98609655},    {3.3, 0.99951658},
        {3.7, 0.99989220},    {4.0, 0.99996833},
    };

    compare_shares(points, sizeof points / sizeof *points, stg_random_normal,
                   seeds(3000000));
}

TEST(random, exponential_draws_follow_the_distribution_into_its_tail)
{
    static const point points[] = {
        {0.01, 9.9501663e-3}, {0.1, 9.5162582e-2}, {0.5, 0.39346934},
        {1.0, 0.63212056},    {2.0, 0.86466472},   {4.0, 0.98168436},
        {7.0, 0.99908812},    {8.0, 0.99966454},   {10.0, 0.99995460},
    };

    compare_shares(points, sizeof points / sizeof *points,
                   stg_random_exponential, seeds(3000000));
}

TEST(random, uniform_draws_lie_from_0_to_below_1)
{
    static const point points[] = {
        {0.0, 0}, {0.001, 0.001}, {0.25, 0.25}, {0.9, 0.9}, {1.0, 1},
    };
    stg_rng rng = stg_rng_seed(3);

    for (int i = 0; i < 1000; i++) {
        double u = stg_random_uniform(&rng);

        CHECK(u >= 0 && u < 1);
    }
    compare_shares(points + 1, 3, stg_random_uniform, seeds(1000000));
}

TEST(distribution, normal_times_are_never_negative)
{
    stg_distribution distribution = {
        .kind = STG_DISTRIBUTION_NORMAL, .a = STG_MS, .b = 10 * STG_MS};
    stg_rng rng = stg_rng_seed(4);
    double sum = 0;

    for (int i = 0; i < 100000; i++) {
        stg_ns t = stg_distribution_draw(&distribution, &rng);

        CHECK(t < STG_S);
        sum += (double)t / 1e6;
    }
    // The mean of |N(1, 10)| is 8.019, and its error here 0.02.
    CHECK(7.94 < sum / 100000 && sum / 100000 < 8.1);
}
