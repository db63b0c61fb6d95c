#include "sim/contention_summary.h"

typedef double measure(const stg_contention_run *run);

static double calls_of(const stg_contention_run *run)
{
    return (double)run->calls;
}

static double wasted_of(const stg_contention_run *run)
{
    return (double)stg_contention_wasted(run);
}

static double successes_of(const stg_contention_run *run)
{
    return (double)run->successes;
}

static double given_up_of(const stg_contention_run *run)
{
    return (double)run->given_up;
}

static double completion_of(const stg_contention_run *run)
{
    return (double)run->completion / 1e6;
}

static double peak_of(const stg_contention_run *run)
{
    return (double)run->peak;
}

/* In the order of the repetitions, so that the sum is always the same. */
static stg_estimate estimate(measure *of, const stg_contention_run *runs,
                             size_t count)
{
    double n = 0, sum = 0, spread = 0;
    stg_estimate e = {0};

    for (size_t i = 0; i < count; i++)
        if (stg_contention_has_ended(&runs[i])) {
            sum += of(&runs[i]);
            n++;
        }
    if (!(n > 0))
        return e;
    e.mean = sum / n;
    for (size_t i = 0; i < count; i++)
        if (stg_contention_has_ended(&runs[i])) {
            double off = of(&runs[i]) - e.mean;

            spread += off * off;
        }
    if (n > 1)
        e.se = stg_estimate_root(spread / (n - 1) / n);
    return e;
}

static double ms_of(const stg_sim_tally *t, double share)
{
    return (double)stg_sim_tally_quantile(t, share) / 1e6;
}

stg_contention_summary stg_contention_sum(const stg_contention_run *runs,
                                          size_t count,
                                          const stg_contention_book *book)
{
    stg_contention_summary s = {
        .calls = estimate(calls_of, runs, count),
        .wasted = estimate(wasted_of, runs, count),
        .successes = estimate(successes_of, runs, count),
        .given_up = estimate(given_up_of, runs, count),
        .completion_ms = estimate(completion_of, runs, count),
        .peak = estimate(peak_of, runs, count),
        .client_ms_p50 = ms_of(&book->done, 0.5),
        .client_ms_p95 = ms_of(&book->done, 0.95),
        .client_ms_max = ms_of(&book->done, 1),
        .client_calls_p50 = stg_sim_tally_quantile(&book->attempts, 0.5),
        .client_calls_p95 = stg_sim_tally_quantile(&book->attempts, 0.95),
        .client_calls_max = stg_sim_tally_quantile(&book->attempts, 1),
    };

    for (size_t i = 0; i < count; i++)
        if (stg_contention_has_ended(&runs[i])) {
            s.reps++;
            s.cut += runs[i].end != STG_END_EMPTY ? 1 : 0;
        }
    return s;
}
