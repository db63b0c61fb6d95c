/* A load that changes. */
#include "tests/sim/overload_help.h"

enum { BINS = 20, REPETITIONS = 400 };

/* Twenty seconds of a service that has time for all, in bins of one. */
static stg_overload_options idle_under(const char *rate)
{
    stg_overload_options o = stg_overload_default();

    CHECK(stg_overload_set(&o, "rate", rate, NULL) == STG_OK);
    o.policy = help_policy("attempts=1");
    o.trigger = (stg_trigger){.kind = STG_TRIGGER_NONE};
    o.service.workers = 100;
    o.service.time = (stg_distribution){.a = STG_MS};
    o.end_at = BINS * STG_S;
    o.bin = STG_S;
    o.warmup = 0;
    return o;
}

static void read_rates(stg_overload_options *o, const char *text)
{
    static stg_load_point points[STG_LOAD_POINTS_MAX];
    stg_error err;

    if (stg_load_parse(text, strlen(text), points, &o->load.point_count,
                       &err) != STG_OK)
        harness_fail(__FILE__, __LINE__, "%s", err.text);
    o->load.points = points;
}

/* The integral of the rate from a to b seconds, by many small steps. */
static double area(double (*rate)(double), double a, double b)
{
    double sum = 0, step = (b - a) / 1000;

    for (int i = 0; i < 1000; i++)
        sum += rate(a + (i + 0.5) * step) * step;
    return sum;
}

static double ramp(double t)
{
    return 100 + 20 * t;
}

static double file(double t)
{
    return t < 5    ? 200
           : t < 8  ? 0
           : t < 12 ? 100 * (t - 8)
                    : 400 - 45 * (t - 12);
}

static const char rates[] =
    "time,rate\n"
    "# as a plan has it\n"
    "0,200\n"
    "5s, 200\r\n"
    "5 ,0\n"
    "\n"
    "8000ms,0\n"
    "12,400\n"
    "20,40";

/* At even distances the n-th comes where the sum reaches n. */
TEST(overload_load, follows_its_rate_at_even_distances)
{
    static double (*const expected[])(double) = {ramp, file};

    for (size_t k = 0; k < 2; k++) {
        stg_overload_options o = idle_under("100..500");
        stg_overload_result r;
        double begun = 0, sum = 0;

        if (k == 1)
            read_rates(&o, rates);
        o.load.is_regular = true;
        r = help_run(&o, 0);
        for (int i = 0; i < BINS; i++) {
            begun += r.bins[i].begun;
            sum += area(expected[k], i, i + 1);
            CHECK_FROM(i, fabs(begun - sum) < 1.5);
        }
        CHECK(fabs(stg_load_total(&o) - sum) < 1e-6 * sum);
        CHECK(stg_load_most(&o.load) == (k == 0 ? 500 : 400));
        stg_overload_free(&r, &help_memory);
    }
}

/* A Poisson process whose rate changes: what begins in a bin has a Poisson
 * distribution, so mean and variance are the integral of the rate. */
TEST(overload_load, is_a_poisson_process_of_its_rate)
{
    static double (*const expected[])(double) = {ramp, file};

    for (size_t k = 0; k < 2; k++) {
        help_sample begun[BINS] = {{0}};
        stg_overload_options o = idle_under("100..500");

        if (k == 1)
            read_rates(&o, rates);
        for (uint64_t n = 0; n < REPETITIONS; n++) {
            stg_overload_result r = help_run(&o, n);

            for (int i = 0; i < BINS; i++)
                help_add(&begun[i], r.bins[i].begun);
            stg_overload_free(&r, &help_memory);
        }
        for (int i = 0; i < BINS; i++) {
            double mean = area(expected[k], i, i + 1), apart;

            if (mean < 1) {
                CHECK(begun[i].sum == 0);
                continue;
            }
            CHECK_NEAR(begun[i], mean, 0.02);
            apart = help_se(&begun[i]) * help_se(&begun[i]) * REPETITIONS;
            CHECK_FROM(i, fabs(apart / mean - 1) <
                              4 * sqrt(2.0 / (REPETITIONS - 1)));
        }
    }
}

TEST(overload_load, has_its_spike_on_top)
{
    stg_overload_options o = idle_under("100..500");
    stg_overload_result r;

    o.load.is_regular = true;
    o.trigger = (stg_trigger){.kind = STG_TRIGGER_SPIKE,
                              .factor = 3000,
                              .from_at = 5 * STG_S,
                              .until_at = 10 * STG_S};
    r = help_run(&o, 0);
    for (int i = 0; i < BINS; i++)
        CHECK_FROM(i, fabs(r.bins[i].begun - (i >= 5 && i < 10 ? 3 : 1) *
                                                 area(ramp, i, i + 1)) < 3);
    stg_overload_free(&r, &help_memory);
}

/* Where the load falls of itself, goodput is back when what begins succeeds. */
TEST(overload_load, may_fall_without_a_failure_to_recover)
{
    static const char *const loads[] = {"900..300", "300..900"};

    for (size_t i = 0; i < 2; i++) {
        stg_overload_options o = stg_overload_default();
        stg_overload_result r;

        o.policy = help_policy("attempts=1");
        CHECK(stg_overload_set(&o, "rate", loads[i], NULL) == STG_OK);
        r = help_run(&o, 0);
        CHECK_FROM(i, r.recovery.is_recovered);
        stg_overload_free(&r, &help_memory);
        // Half of them fail for good, which is no recovery.
        CHECK(stg_overload_set(&o, "return", "2:1d", NULL) == STG_OK);
        CHECK(stg_overload_set(&o, "rate", i == 0 ? "950..500" : "400..950",
                               NULL) == STG_OK);
        o.service.workers = i == 0 ? 10 : 8;
        r = help_run(&o, 0);
        CHECK_FROM(i, !r.recovery.is_recovered);
        stg_overload_free(&r, &help_memory);
    }
}

static void check_refused(const char *text, const char *words)
{
    static stg_load_point points[STG_LOAD_POINTS_MAX];
    uint32_t count = 7;
    stg_error err;

    CHECK(stg_load_parse(text, strlen(text), points, &count, &err) ==
          STG_INVALID);
    CHECK_STR(err.text, words);
    CHECK_INT(count, 7);
    CHECK(stg_load_parse(text, strlen(text), points, &count, NULL) ==
          STG_INVALID);
}

TEST(overload_load, refuses_what_is_no_file_of_rates)
{
    static char many[16 * (STG_LOAD_POINTS_MAX + 1)];

    check_refused("", "line 1: expected a rate above 0");
    check_refused("time,rate\n", "line 1: expected a rate above 0");
    check_refused("0,0\n5,0\n", "line 1: expected a rate above 0");
    check_refused("0,1\n5\n", "line 2: expected a time and a rate, as 90s,700");
    check_refused("0,1\n5,x\n",
                  "line 2: expected a time and a rate, as 90s,700");
    check_refused("0,1\n5,-1\n",
                  "line 2: expected a time and a rate, as 90s,700");
    check_refused("0,1\nlater,1\n",
                  "line 2: expected a time and a rate, as 90s,700");
    check_refused("0,1\n5,1,1\n",
                  "line 2: expected a time and a rate, as 90s,700");
    check_refused("0,4000001\n",
                  "line 1: expected a time and a rate, as 90s,700");
    check_refused("9,1\n5,1\n", "line 2: is earlier than the one before");
    for (int i = 0; i <= STG_LOAD_POINTS_MAX; i++)
        strcat(many + (i == 0 ? 0 : 4 * i), "1,1\n");
    check_refused(many, "line 10001: expected at most 10000 rates");
}

TEST(overload_load, is_undone_by_another_load)
{
    stg_overload_options o = idle_under("100..500");

    CHECK_U64(o.load.rate_end, 500000);
    read_rates(&o, rates);
    CHECK(stg_overload_set(&o, "rate", "12/s..13/s", NULL) == STG_OK);
    CHECK(o.load.points == NULL && o.load.point_count == 0);
    CHECK(o.load.rate == 12000 && o.load.rate_end == 13000);
    CHECK(stg_overload_set(&o, "rate", "12", NULL) == STG_OK);
    CHECK(!stg_load_changes(&o.load));
    read_rates(&o, rates);
    CHECK(stg_overload_set(&o, "clients", "12", NULL) == STG_OK);
    CHECK(!stg_load_changes(&o.load) && o.load.is_closed);
    CHECK(stg_overload_set(&o, "rate", "..5", NULL) == STG_INVALID);
    CHECK(stg_overload_set(&o, "rate", "5..", NULL) == STG_INVALID);
    CHECK(stg_overload_set(&o, "rate", "1..2..3", NULL) == STG_INVALID);
}
