#include "sim/overload_interval.h"

uint32_t stg_overload_interval_bins(uint32_t bins)
{
    return bins == 0 ? 1 : (bins + STG_STRETCHES_MAX - 1) / STG_STRETCHES_MAX;
}

void stg_overload_bins_mean(const stg_overload_bin *bins, uint32_t count,
                            stg_ns width, double means[STG_SERIES_COUNT])
{
    double begun = 0, sent = 0, retried = 0, succeeded = 0, queue = 0;
    double seconds = (double)width * count / 1e9;

    for (uint32_t i = 0; i < count; i++) {
        begun += bins[i].begun;
        sent += bins[i].sent;
        retried += bins[i].retried;
        succeeded += bins[i].succeeded;
        queue += bins[i].queue;
    }
    means[STG_SERIES_GOODPUT] = succeeded / seconds;
    means[STG_SERIES_OFFERED] = sent / seconds;
    means[STG_SERIES_RETRIED] = retried / seconds;
    means[STG_SERIES_BEGUN] = begun / seconds;
    means[STG_SERIES_AMPLIFICATION] = begun > 0 ? sent / begun : 0;
    means[STG_SERIES_QUEUE] = queue / count;
}

static void add_value(stg_overload_sum *s, double value)
{
    s->sum += value;
    s->squares += value * value;
    s->count++;
}

void stg_overload_interval_add(stg_overload_interval *s,
                               const stg_overload_bin *bins, uint32_t count,
                               stg_ns width)
{
    static const uint32_t shares[STG_WAIT_COUNT] = {500, 990};
    stg_sim_histogram latency = {0};
    double means[STG_SERIES_COUNT];

    stg_overload_bins_mean(bins, count, width, means);
    for (int i = 0; i < STG_SERIES_COUNT; i++)
        add_value(&s->series[i], means[i]);
    for (uint32_t i = 0; i < count; i++)
        stg_sim_histogram_merge(&latency, &bins[i].latency);
    for (int i = 0; i < STG_WAIT_COUNT && latency.count > 0; i++)
        add_value(&s->waits[i],
                  (double)stg_sim_histogram_at(&latency, shares[i]) / 1e6);
}

stg_estimate stg_overload_sum_estimate(const stg_overload_sum *s)
{
    double n = s->count, variance;
    stg_estimate e = {0};

    if (s->count == 0)
        return e;
    e.mean = s->sum / n;
    variance = s->squares / n - e.mean * e.mean;
    if (s->count > 1 && variance > 0)
        e.se = stg_estimate_root(variance / (n - 1));
    return e;
}
