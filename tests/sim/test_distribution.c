#include "tests/harness.h"

#include "sim/distribution.h"

static const char *const texts[] = {
    "0",
    "10ms",
    "exponential:10ms",
    "uniform:5ms:15ms",
    "uniform:0:15ms",
    "mix:10%:0:1s",
    "normal:10ms:2ms",
    "erlang:4:10ms",
    "mix:5%:200ms:8ms",
    "mix:0.1%:3s:1us",
};

TEST(distribution, reads_what_it_prints)
{
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char text[STG_DISTRIBUTION_TEXT_MAX];
        stg_distribution distribution;

        CHECK_INT(stg_distribution_parse(&distribution, texts[i], NULL),
                  STG_OK);
        CHECK_STR(stg_distribution_print(&distribution, text), texts[i]);
    }
}

TEST(distribution, refuses_what_says_no_time)
{
    static const char *const bad[] = {
        "",
        "10",
        "10ms ",
        "exponential:",
        "uniform:15ms:5ms",
        "uniform:5ms",
        "normal:10ms",
        "erlang:0:10ms",
        "erlang:1001:10ms",
        "erlang:10ms",
        "mix:0%:1ms:2ms",
        "mix:100%:1ms:2ms",
        "mix:5:1ms:2ms",
        "mix:0.05%:1ms:2ms",
        "gamma:10ms",
    };

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        stg_distribution distribution = {.a = 7};
        stg_error err;

        CHECK_FROM(i, stg_distribution_parse(&distribution, bad[i], &err) ==
                          STG_INVALID);
        CHECK_FROM(i, strstr(err.text, "expected a time as 10ms") != NULL);
        CHECK_U64(distribution.a, 7);
    }
}

/* Mean and variance of 200000 draws, within five standard errors. */
TEST(distribution, draws_with_its_mean_and_variance)
{
    static const struct {
        const char *text;
        double mean, variance; /* ms, ms^2 */
    } cases[] = {
        {"10ms", 10, 0},
        {"exponential:10ms", 10, 100},
        {"uniform:5ms:15ms", 10, 100 / 12.0},
        {"normal:10ms:2ms", 10, 4},
        {"erlang:4:10ms", 10, 25},
        {"mix:10%:55ms:5ms", 10, 2 * (302.5 + 22.5) - 100},
    };
    enum { DRAWS = 200000 };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        stg_rng rng = stg_rng_seed(i);
        double sum = 0, squares = 0, mean, variance, off;
        stg_distribution distribution;

        CHECK(stg_distribution_parse(&distribution, cases[i].text, NULL) ==
              STG_OK);
        CHECK_U64(stg_distribution_mean(&distribution), 10 * STG_MS);
        for (int n = 0; n < DRAWS; n++) {
            double ms =
                (double)stg_distribution_draw(&distribution, &rng) / 1e6;

            sum += ms;
            squares += ms * ms;
        }
        mean = sum / DRAWS;
        variance = squares / DRAWS - mean * mean;
        off = mean - cases[i].mean;
        CHECK_FROM(i, off * off <= 25 * cases[i].variance / DRAWS + 1e-18);
        off = variance - cases[i].variance;
        CHECK_FROM(i, off * off <= 1e-3 * variance * variance + 1e-9);
    }
}

/* Takes more draws than are made ahead at once, so that the rare draws that
 * take several random numbers are among them. */
TEST(distribution, draws_ahead_what_it_would_draw_one_by_one)
{
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        stg_rng rng = stg_rng_seed(i);
        stg_distribution_ahead ahead;
        stg_distribution distribution;

        CHECK(stg_distribution_parse(&distribution, texts[i], NULL) == STG_OK);
        stg_distribution_ahead_init(&ahead, &distribution, rng);
        for (int n = 0; n < 10000; n++)
            CHECK_FROM(i, stg_distribution_ahead_draw(&ahead) ==
                              stg_distribution_draw(&distribution, &rng));
    }
}
