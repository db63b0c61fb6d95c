/* The verdict on a candidate: sums up its runs, and compares two candidates. */
#include "sim/advise.h"

stg_advice_verdict stg_verdict_begin(void)
{
    stg_advice_verdict v = {0};

    for (int i = 0; i < STG_SCENARIOS; i++)
        v.recovery_ms[i] = v.longest_ms[i] = -1;
    return v;
}

static double mean_of(const stg_overload_summary *s, stg_figure figure)
{
    return stg_overload_summary_figure(s, figure, NULL).mean;
}

static double most_of(const stg_overload_summary *s, stg_figure figure)
{
    const double *values = s->values + (size_t)figure * s->runs_max;
    double most = -1;

    for (uint32_t i = 0; i < s->runs; i++)
        most = values[i] > most ? values[i] : most;
    return most;
}

/* One run's weight in a mean is that of any other. */
static void mix(double *mean, double before, double value, double runs)
{
    *mean = (*mean * before + value * runs) / (before + runs);
}

/* Runs in which nothing succeeded have none. */
static void add_latency(stg_advice_verdict *v, const stg_overload_summary *s)
{
    uint32_t has;
    stg_estimate p99 = stg_overload_summary_figure(s, STG_FIGURE_P99, &has);

    if (has > 0)
        mix(&v->p99_ms, v->p99_runs, p99.mean, has);
    v->p99_runs += has;
}

/* A run has failed if it did not recover, or was not well before the trouble.
 * It is known how many were each, not which: the smaller count is taken for
 * those that were both. */
void stg_verdict_add(stg_advice_verdict *v, const stg_question *q, size_t i,
                     const stg_overload_summary *s)
{
    double runs = s->runs, before = v->runs;
    double rate = (double)s->options->load.rate;
    double capacity = rate / stg_scenario_load(q, stg_scenario_at(i));
    double peak, lost;
    uint32_t has;
    stg_estimate after =
        stg_overload_summary_figure(s, STG_FIGURE_RECOVERY, &has);

    if (s->runs == 0)
        return;
    lost = 1 - mean_of(s, STG_FIGURE_SUCCESS);
    peak = mean_of(s, STG_FIGURE_PEAK) / capacity;
    if (has > 0) {
        v->recovery_ms[i] = after.mean;
        v->longest_ms[i] = most_of(s, STG_FIGURE_RECOVERY);
    }
    mix(&v->lost, before, lost, runs);
    if (i < STG_SCENARIOS_ASKED)
        mix(&v->lost_asked, before, lost, runs);
    mix(&v->load, before, mean_of(s, STG_FIGURE_AMPLIFICATION), runs);
    add_latency(v, s);
    v->peak = peak > v->peak ? peak : v->peak;
    v->runs += s->runs;
    v->unwell += s->runs - s->healthy;
    v->failed_in[i] =
        s->runs - (s->recovered < s->healthy ? s->recovered : s->healthy);
    v->failed += v->failed_in[i];
}

double stg_verdict_worst(const stg_advice_verdict *v, size_t scenarios,
                         stg_trigger_kind kind)
{
    double most = 0;

    for (size_t i = 0; i < scenarios; i++) {
        if (stg_scenario_at(i).kind != kind)
            continue;
        if (v->failed_in[i] > 0 || v->recovery_ms[i] < 0)
            return -1;
        most = v->recovery_ms[i] > most ? v->recovery_ms[i] : most;
    }
    return most;
}

/* Success comes before speed, and recovery before all. */
int stg_verdict_compare(const stg_advice_verdict *a,
                        const stg_advice_verdict *b)
{
    // Shares, for one may have been tried more often.
    double failed = (double)a->failed * b->runs - (double)b->failed * a->runs;

    if (failed != 0)
        return failed < 0 ? -1 : 1;
    if (a->lost != b->lost)
        return a->lost < b->lost ? -1 : 1;
    if (a->load != b->load)
        return a->load < b->load ? -1 : 1;
    return 0;
}

bool stg_verdict_equal(const stg_advice_verdict *a, const stg_advice_verdict *b)
{
    for (int i = 0; i < STG_SCENARIOS; i++)
        if (a->recovery_ms[i] != b->recovery_ms[i])
            return false;
    return a->runs == b->runs && a->failed == b->failed && a->lost == b->lost &&
           a->load == b->load && a->peak == b->peak;
}

/* The mean difference of success in a scenario, run by run: a run has the same
 * seed with both policies, so most of the noise cancels. */
static stg_estimate gain_in(const stg_overload_summary *with,
                            const stg_overload_summary *without)
{
    const double *a =
        with->values + (size_t)STG_FIGURE_SUCCESS * with->runs_max;
    const double *b =
        without->values + (size_t)STG_FIGURE_SUCCESS * without->runs_max;
    double n = with->runs, sum = 0, spread = 0;
    stg_estimate e = {0};

    for (uint32_t i = 0; i < with->runs; i++)
        sum += a[i] - b[i];
    e.mean = sum / n;
    for (uint32_t i = 0; i < with->runs; i++)
        spread += (a[i] - b[i] - e.mean) * (a[i] - b[i] - e.mean);
    e.se = stg_estimate_root(spread / (n - 1) / n);
    return e;
}

/* Scenarios weigh the same. Their variances are added up: they share seeds, but
 * hardly a draw. */
stg_estimate stg_verdict_gain(const stg_overload_summary *const *with,
                              const stg_overload_summary *const *without,
                              size_t scenarios)
{
    double squares = 0;
    stg_estimate all = {0};

    for (size_t k = 0; k < scenarios; k++) {
        stg_estimate e = gain_in(with[k], without[k]);

        all.mean += e.mean / (double)scenarios;
        squares += e.se * e.se;
    }
    all.se = stg_estimate_root(squares) / (double)scenarios;
    return all;
}

bool stg_verdict_is_gain(stg_estimate gain)
{
    return gain.mean > 3 * gain.se;
}
