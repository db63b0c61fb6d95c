/* bytes.c - prints what contention comes to, to the last digit, for
 * same_bytes.py. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <stagger/text.h>

#include "sim/contention.h"
#include "sim/statistics.h"

enum { RUNS = 20, SLICES = 100 };

static void *allocate(void *ctx, size_t size)
{
    (void)ctx;
    return malloc(size);
}

static void release(void *ctx, void *bytes)
{
    (void)ctx;
    free(bytes);
}

static void print_estimate(const char *name, stg_estimate e)
{
    printf("  %s %a +- %a\n", name, e.mean, e.se);
}

static void print(const stg_contention_run *runs,
                  const stg_contention_totals *totals)
{
    double calls[RUNS], completion[RUNS], se;

    for (int i = 0; i < RUNS; i++) {
        printf("  %" PRIu64 " calls, %" PRIu64 " successes, %" PRIu64
               " gave up, %" PRIu64 " in 100 ms, %" PRIu64 " ns\n",
               runs[i].calls, runs[i].successes, runs[i].given_up, runs[i].peak,
               runs[i].completion);
        calls[i] = (double)runs[i].calls;
        completion[i] = (double)runs[i].completion / 1e6;
    }
    print_estimate("calls", stg_estimate_make(calls, RUNS));
    print_estimate("completion", stg_estimate_make(completion, RUNS));
    for (int i = 0; i <= 20; i++)
        printf("  %d %%: %" PRIu64 " ns, %" PRIu64 " calls\n", 5 * i,
               stg_sim_tally_quantile(&totals->done, i / 20.0),
               stg_sim_tally_quantile(&totals->attempts, i / 20.0));
    for (size_t i = 0; i < 10; i++) {
        printf("  %a", stg_sim_series_mean(&totals->calls, i, &se));
        printf(" +- %a\n", se);
    }
}

static int run(const char *resource, const char *network, const char *text)
{
    stg_memory memory = {allocate, release, NULL};
    stg_contention_options o = stg_contention_options_default();
    stg_contention_run runs[RUNS];
    stg_contention_totals totals;
    stg_contention *c;
    stg_policy policy;
    stg_error err;

    printf("%s, %s, %s\n", resource, network, text);
    if (stg_policy_parse(&policy, text, &err) != STG_OK ||
        stg_resource_parse(&o.resource, resource, &err) != STG_OK ||
        stg_distribution_parse(&o.network, network, &err) != STG_OK) {
        printf("%s\n", err.text);
        return 1;
    }
    o.policy = &policy;
    if (stg_contention_new(&c, &memory, &o, &err) != STG_OK)
        return 1;
    stg_contention_totals_init(&totals, 10 * STG_MS, SLICES, &memory);
    for (int i = 0; i < RUNS; i++)
        if (!stg_contention_repeat(c, (uint64_t)i, &runs[i], &totals))
            return 1;
    print(runs, &totals);
    stg_contention_totals_close(&totals);
    stg_contention_free(c);
    return 0;
}

int main(void)
{
    return run("optimistic", "normal:10ms:2ms",
               "exponential base=10ms cap=2s jitter=full "
               "attempts=unlimited") ||
           run("optimistic", "normal:10ms:2ms",
               "exponential base=5ms cap=2s jitter=decorrelated "
               "attempts=unlimited") ||
           run("lock hold=exponential:3ms", "uniform:1ms:9ms",
               "exponential base=1ms factor=1.7 cap=1s jitter=equal "
               "attempts=unlimited") ||
           run("rate=20/1s retry-after=yes", "exponential:10ms",
               "linear base=50ms jitter=30% attempts=20") ||
           run("workers=3 service=normal:5ms:5ms queue=20", "10ms",
               "fixed base=5ms attempts=unlimited attempt-timeout=60ms") ||
           run("round=25ms", "normal:1ms:1ms",
               "backend attempts=9 breaker=5:1s");
}
