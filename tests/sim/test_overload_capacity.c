/* A capacity that depends: on how many are inside, and on how long ago the
 * service was down. */
#include "tests/sim/overload_help.h"

enum { REPETITIONS = 20, PLACES = 20 };

static void set(stg_overload_options *o, const char *name, const char *value)
{
    stg_error err;

    if (stg_overload_set(o, name, value, &err) != STG_OK)
        harness_fail(__FILE__, __LINE__, "%s", err.text);
}

/* Nobody retries, and nothing is lost of time. */
static stg_overload_options plain(void)
{
    stg_overload_options o = stg_overload_default();

    o.policy = help_policy("attempts=1 deadline=none");
    o.trigger = (stg_trigger){.kind = STG_TRIGGER_NONE};
    o.timeout = STG_NEVER;
    o.network = (stg_distribution){.kind = STG_DISTRIBUTION_FIXED};
    o.service.workers = 1;
    return o;
}

/* -- drag ------------------------------------------------------------------- */

/* The mean of a service that starts when `left` were left behind by the one
 * before it. */
static double service_of(int left, double drag)
{
    return 0.010 * (1 + drag * (left > 1 ? left - 1 : 0));
}

/* The share of departures that leave so many: the chain at departures of M/M/1/K
 * with a rate that is chosen when a service starts. So many come in an
 * exponential service of mean s: geometric, p = l s / (1 + l s). */
static void solve(double lambda, double drag, double share[PLACES + 1])
{
    double next[PLACES + 1];

    for (int i = 0; i <= PLACES; i++)
        share[i] = 1.0 / (PLACES + 1);
    for (int n = 0; n < 20000; n++) {
        memset(next, 0, sizeof next);
        for (int i = 0; i <= PLACES; i++) {
            double load = lambda * service_of(i, drag);
            double more = load / (1 + load), rest = 1;
            int k = i > 0 ? i - 1 : 0;

            for (; k < PLACES; k++) {
                next[k] += share[i] * rest * (1 - more);
                rest *= more;
            }
            next[PLACES] += share[i] * rest;
        }
        memcpy(share, next, sizeof next);
    }
}

TEST(overload_capacity, has_the_chain_of_a_service_that_others_slow)
{
    static const double drags[] = {0, 0.05, 0.1};
    static const char *const texts[] = {"0%", "5%", "10%"};

    for (size_t i = 0; i < sizeof drags / sizeof *drags; i++) {
        stg_overload_options o = plain();
        double share[PLACES + 1], service = 0, throughput, lambda = 60;
        help_sample served = {0}, busy = {0}, refused = {0};

        o.load.rate = 60 * 1000;
        o.service.queue_max = PLACES;
        o.warmup = 20 * STG_S;
        o.end_at = 220 * STG_S;
        o.bin = STG_S;
        set(&o, "drag", texts[i]);
        solve(lambda, drags[i], share);
        for (int k = 0; k <= PLACES; k++)
            service += share[k] * service_of(k, drags[i]);
        throughput = 1 / (service + share[0] / lambda);
        for (uint64_t n = 0; n < REPETITIONS; n++) {
            stg_overload_result r = help_run(&o, n);
            const stg_sim_service_counts *c = &r.service;

            help_add(&served, (double)c->served / ((double)r.counted / 1e9));
            help_add(&busy, (c->present - c->queued) / (double)r.counted);
            help_add(&refused, (double)c->refused / (double)c->reached);
            stg_overload_free(&r, &help_memory);
        }
        CHECK_NEAR(served, throughput, 0.02);
        CHECK_NEAR(busy, throughput * service, 0.02);
        if (drags[i] > 0.07) // else hardly any is
            CHECK_NEAR(refused, 1 - throughput / lambda, 0.1);
    }
}

/* -- cold ------------------------------------------------------------------- */

/* Down from 1 s to 2 s, and asked for more than it can do. */
static stg_overload_options asked_for_all(void)
{
    stg_overload_options o = plain();

    o.service.time = (stg_distribution){.a = STG_MS};
    o.service.queue_max = 10;
    o.load.rate = 3000 * 1000;
    o.load.is_regular = true;
    o.trigger = (stg_trigger){
        .kind = STG_TRIGGER_OUTAGE, .from_at = STG_S, .until_at = 2 * STG_S};
    o.warmup = STG_S / 2;
    o.end_at = 32 * STG_S;
    o.bin = 500 * STG_MS;
    return o;
}

/* What was done in the first `seconds` after the outage. */
static double served_in(const stg_overload_options *o, int seconds)
{
    stg_overload_result r = help_run(o, 0);
    double sum = 0;

    for (int i = 4; i < 4 + 2 * seconds; i++)
        sum += r.bins[i].succeeded;
    stg_overload_free(&r, &help_memory);
    return sum;
}

/* dk/dt = C / (1 + (F - 1) exp(-k / N)), so C t = k + (F - 1) N (1 - exp(-k / N));
 * with time in place of requests k = C T log((exp(t / T) + F - 1) / F). */
TEST(overload_capacity, warms_up_as_its_cold_says)
{
    static const int times[] = {1, 3, 5, 10, 20, 30};

    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        stg_overload_options o = asked_for_all();
        double t = times[i], by_requests, by_time;

        set(&o, "cold", "10:1000");
        by_requests = served_in(&o, times[i]);
        CHECK_FROM(i, fabs(by_requests +
                           9 * 1000 * (1 - exp(-by_requests / 1000)) -
                           1000 * t) < 15);
        set(&o, "cold", "10:5s");
        by_time = served_in(&o, times[i]);
        CHECK_FROM(i, fabs(by_time - 5000 * log((exp(t / 5) + 9) / 10)) < 15);
        set(&o, "cold", "none");
        CHECK_FROM(i, fabs(served_in(&o, times[i]) - 1000 * t) < 15);
    }
}

/* Huang et al., "Metastable Failures in the Wild", OSDI 2022, with a cache: the
 * load that a warm one bears is too much for a cold one, and what it serves
 * comes too late to anybody. No retry is needed for it. */
TEST(overload_capacity, does_not_warm_up_where_all_come_too_late)
{
    static const struct {
        const char *cold, *rate;
        bool recovers;
    } cases[] = {{"none", "700", true},
                 {"20:5000", "700", false},
                 {"20:5000", "40", true},
                 {"1.2:5000", "700", true}};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        stg_overload_options o = stg_overload_default();
        stg_overload_result r;

        o.policy = help_policy("attempts=1");
        set(&o, "cold", cases[i].cold);
        set(&o, "rate", cases[i].rate);
        r = help_run(&o, 0);
        CHECK_FROM(i, r.recovery.is_recovered == cases[i].recovers);
        CHECK_FROM(i, r.retried == 0);
        stg_overload_free(&r, &help_memory);
    }
}

/* -- return ----------------------------------------------------------------- */

TEST(overload_capacity, comes_back_step_by_step)
{
    static const char *const triggers[] = {"outage", "stall"};

    for (size_t k = 0; k < 2; k++) {
        stg_overload_options o = asked_for_all();
        stg_overload_result r;

        o.service.workers = 10; // of 2 ms: 5000 a second
        o.service.time.a = 2 * STG_MS;
        o.load.rate = 8000 * 1000;
        set(&o, "trigger", triggers[k]);
        set(&o, "return", "4:3s");
        r = help_run(&o, 0);
        for (int second = 0; second < 20; second++) {
            int step = second / 3 < 4 ? second / 3 + 1 : 4;
            int workers = 10 * step / 4;
            double served = r.bins[4 + 2 * second].succeeded + // 500 ms each
                            r.bins[5 + 2 * second].succeeded;

            CHECK_FROM(second, fabs(served - 500.0 * workers) < 25);
        }
        stg_overload_free(&r, &help_memory);
    }
}

TEST(overload_capacity, has_one_worker_with_the_first_step_at_least)
{
    stg_overload_options o = asked_for_all();

    set(&o, "return", "1000:20ms");
    CHECK(fabs(served_in(&o, 10) - 10000) < 15);
}

/* -- settings --------------------------------------------------------------- */

static void check_refused(const stg_overload_options *o, const char *words)
{
    stg_error err;

    CHECK(stg_overload_check(o, &err) == STG_INVALID);
    CHECK_STR(err.text, words);
}

TEST(overload_capacity, refuses_a_return_of_what_was_not_away)
{
    stg_overload_options o = stg_overload_default();

    set(&o, "return", "4:10s");
    CHECK(o.return_steps == 4 && o.return_step == 10 * STG_S);
    CHECK(stg_overload_check(&o, NULL) == STG_OK);
    set(&o, "trigger", "stall");
    CHECK(stg_overload_check(&o, NULL) == STG_OK);
    set(&o, "trigger", "slow:3");
    check_refused(&o,
                  "return is of workers that an outage or a stall took: "
                  "expected trigger=outage or stall");
    set(&o, "return", "none");
    set(&o, "cold", "2.5:100");
    CHECK(o.cold.factor == 2500 && o.cold.starts == 100 && o.cold.time == 0);
    set(&o, "cold", "10:100ms");
    CHECK(o.cold.factor == 10000 && o.cold.starts == 0 &&
          o.cold.time == 100 * STG_MS);
    check_refused(&o,
                  "cold is of caches that an outage has emptied: expected "
                  "trigger=outage");
    set(&o, "trigger", "outage");
    CHECK(stg_overload_check(&o, NULL) == STG_OK);
    o.cold.time = 0;
    check_refused(&o, "cold=0 is out of range, expected 1us to 1d");
    CHECK(stg_overload_set(&o, "cold", "0.5:100", NULL) == STG_INVALID);
    CHECK(stg_overload_set(&o, "cold", "10", NULL) == STG_INVALID);
    CHECK(stg_overload_set(&o, "return", "1:10s", NULL) == STG_INVALID);
    CHECK(stg_overload_set(&o, "drag", "101%", NULL) == STG_INVALID);
}
