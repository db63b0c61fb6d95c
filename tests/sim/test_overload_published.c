/* What others have published of overload, and the model's word on it. */
#include "tests/sim/overload_help.h"

static void set(stg_overload_options *o, const char *name, const char *value)
{
    stg_error err;

    if (stg_overload_set(o, name, value, &err) != STG_OK)
        harness_fail(__FILE__, __LINE__, "%s", err.text);
}

/* -- a metastable failure --------------------------------------------------- */

/* A database that does 300 queries a second in 100 ms each, and clients that
 * wait for a second and ask again once; 10 s without an answer. */
static stg_overload_options database(const char *rate, bool has_trouble)
{
    stg_overload_options o = stg_overload_default();

    o.policy = help_policy("fixed base=0 jitter=none attempts=2 deadline=none");
    set(&o, "rate", rate);
    set(&o, "workers", "30");
    set(&o, "service", "100ms");
    set(&o, "queue", "1000000");
    set(&o, "timeout", "1s");
    o.end_at = 600 * STG_S;
    o.bin = 2 * STG_S;
    o.trigger = (stg_trigger){.kind = STG_TRIGGER_STALL,
                              .from_at = 20 * STG_S,
                              .until_at = 30 * STG_S};
    if (!has_trouble)
        o.trigger = (stg_trigger){.kind = STG_TRIGGER_NONE};
    return o;
}

/* Bronson et al., "Metastable Failures in Distributed Systems", HotOS 2021,
 * section 2.1: 280 queries a second are fine until the trouble, and are 560 ever
 * after it. Half of the capacity is the load below which it recovers: up to 150
 * it is stable, from there to 300 vulnerable. */
TEST(overload_published, has_the_stable_and_the_vulnerable_load_of_bronson)
{
    static const struct {
        const char *rate;
        bool recovers;
    } loads[] = {{"100", true}, {"140", true}, {"160", false}, {"280", false}};

    for (size_t i = 0; i < sizeof loads / sizeof *loads; i++) {
        stg_overload_options calm = database(loads[i].rate, false);
        stg_overload_options o = database(loads[i].rate, true);
        stg_overload_result r = help_run(&calm, 0);
        double rate = strtod(loads[i].rate, NULL), late = 0;

        CHECK_FROM(i, r.saved + r.lost > 0 && r.lost == 0);
        stg_overload_free(&r, &help_memory);
        r = help_run(&o, 0);
        CHECK_FROM(i, r.recovery.is_recovered == loads[i].recovers);
        for (uint32_t k = 250; k < 300; k++)
            late += r.bins[k].sent / 100.0;
        CHECK_FROM(i, fabs(late / rate - (loads[i].recovers ? 1 : 2)) < 0.1);
        stg_overload_free(&r, &help_memory);
    }
}

/* -- hedges ----------------------------------------------------------------- */

/* Dean and Barroso, "The Tail at Scale", CACM 56(2), 2013: a hedge that waits
 * for the 95th percentile adds 5 % of load, and cuts the tail. With independent
 * times of mean m and a hedge after d the latency exceeds t with probability
 * exp(-t / m) before d, and exp(-d / m) exp(-2 (t - d) / m) after it: its mean is
 * m (1 - exp(-d / m)) + m exp(-d / m) / 2. */
TEST(overload_published, has_the_latency_and_load_of_hedged_requests)
{
    static const struct {
        const char *policy;
        double delay; /* ms */
    } cases[] = {{"attempts=1 deadline=none hedge=5ms", 5},
                 {"attempts=1 deadline=none hedge=30ms", 30}, // 95 % of 10 ms
                 {"attempts=1 deadline=none hedge=46ms", 46}};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        stg_overload_options o = stg_overload_default();
        double mean = 10, beyond = exp(-cases[i].delay / mean), p99, base;
        help_sample latency = {0}, hedged = {0}, tail = {0};

        o.policy = help_policy(cases[i].policy);
        o.trigger = (stg_trigger){.kind = STG_TRIGGER_NONE};
        o.timeout = STG_NEVER;
        set(&o, "network", "0");
        set(&o, "workers", "1000");
        for (uint64_t n = 0; n < 20; n++) {
            stg_overload_result r = help_run(&o, n);

            help_add(&latency, r.latency_sum / 1e6 / (double)r.saved);
            help_add(&hedged, (double)r.hedged / (double)r.begun);
            help_add(&tail,
                     (double)stg_sim_histogram_at(&r.latency, 990) / 1e6);
            stg_overload_free(&r, &help_memory);
        }
        CHECK_NEAR(latency, mean * (1 - beyond) + mean * beyond / 2, 0.01);
        CHECK_NEAR(hedged, beyond, 0.02);
        // P(t) = 0.01, by either branch; known to 9 %.
        base = mean * log(100);
        p99 = beyond < 0.01 ? base
                            : cases[i].delay +
                                  mean / 2 * (log(100) - cases[i].delay / mean);
        CHECK_FROM(i, fabs(help_mean(&tail) / p99 - 1) < 0.09);
    }
}

/* -- a breaker of retries --------------------------------------------------- */

#define RETRIES "exponential base=100ms jitter=full attempts=4 "
#define BREAKER "breaker=10%/20/1s:1s-5s "

/* Brooker, "Fixing retries with token buckets and circuit breakers", 2022: where
 * failures are few a breaker that stops retries has the success of retries; where
 * all fails, the load of none. One that stops all attempts has no success left
 * where a share fails. */
TEST(overload_published, stops_retries_alone_where_a_share_fails)
{
    static const struct {
        const char *policy, *errors;
        double sent_least, sent_most, success_least, success_most;
    } cases[] = {
        {RETRIES, "2%", 1.015, 1.025, 0.999, 1},
        {RETRIES BREAKER "breaker-scope=retries", "2%", 1.005, 1.025, 0.995, 1},
        {RETRIES, "100%", 3.9, 4.1, 0, 0},
        {RETRIES BREAKER "breaker-scope=retries", "100%", 1, 1.1, 0, 0},
        {RETRIES BREAKER, "100%", 0, 0.1, 0, 0},
        {RETRIES BREAKER "breaker-scope=retries", "30%", 1, 1.2, 0.69, 0.8},
        {RETRIES BREAKER, "30%", 0, 0.6, 0, 0.6},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        stg_overload_options o = stg_overload_default();
        stg_overload_result r;
        double sent, success;

        o.policy = help_policy(cases[i].policy);
        o.trigger = (stg_trigger){.kind = STG_TRIGGER_NONE};
        set(&o, "errors", cases[i].errors);
        r = help_run(&o, 0);
        sent = (double)r.sent / (double)r.begun;
        success = (double)r.saved / (double)(r.saved + r.lost);
        CHECK_FROM(i,
                   sent >= cases[i].sent_least && sent <= cases[i].sent_most);
        CHECK_FROM(i, success >= cases[i].success_least);
        CHECK_FROM(i, success <= cases[i].success_most);
        stg_overload_free(&r, &help_memory);
    }
}

/* It ends a storm as a budget does. */
TEST(overload_published, ends_a_storm_by_a_breaker_of_retries)
{
    for (int has = 0; has < 2; has++) {
        stg_overload_options o = stg_overload_default();
        stg_overload_result r;

        o.policy = help_policy(has ? RETRIES BREAKER "breaker-scope=retries"
                                   : RETRIES);
        set(&o, "trigger", "stall");
        r = help_run(&o, 0);
        CHECK_FROM(has, r.recovery.is_recovered == has);
        stg_overload_free(&r, &help_memory);
    }
}
