#include "sim/overload_summary.h"

#include <string.h>

/* A summary adds up runs of one overload: figures of each run, and the series
 * cut into intervals that are as wide as a reader can tell apart.
 *
 * A figure that a run does not have is -1, and is in no mean: no figure is
 * negative otherwise. The values of a figure lie together, runs_max apart from
 * the next one's.
 *
 * A run that was cut has fewer bins, and shortens the series of all: what
 * earlier runs have added behind its end stays in memory and is not shown.
 * Runs must be added in the order of their numbers, as sums of doubles
 * depend on it. */

/* -- intervals ------------------------------------------------------------- */

uint32_t stg_overload_interval_bins(uint32_t bins)
{
    return bins == 0 ? 1 : (bins + STG_INTERVALS_MAX - 1) / STG_INTERVALS_MAX;
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

/* Quantiles are of the merged histogram of the interval: a mean of the
 * quantiles of its bins would be none. */
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

/* From sum and squares, in one pass: rounding may make the variance of equal
 * values less than 0, which is taken for 0. */
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

/* -- a summary ------------------------------------------------------------- */

stg_status stg_overload_summary_init(stg_overload_summary *s,
                                     const stg_overload_options *o,
                                     uint32_t runs_max,
                                     const stg_memory *memory)
{
    uint32_t bins = (uint32_t)(o->end_at / o->bin);
    size_t values = (size_t)STG_FIGURE_COUNT * runs_max * sizeof *s->values;
    size_t points = bins * sizeof *s->points;

    *s = (stg_overload_summary){.options = o,
                                .memory = memory,
                                .runs_max = runs_max,
                                .bin_count = bins,
                                .interval_bins =
                                    stg_overload_interval_bins(bins)};
    s->values = memory->allocate(memory->ctx, values);
    s->points = memory->allocate(memory->ctx, points);
    if (s->values == NULL || s->points == NULL) {
        stg_overload_summary_close(s);
        return STG_IO;
    }
    memset(s->values, 0, values);
    memset(s->points, 0, points);
    return STG_OK;
}

void stg_overload_summary_close(stg_overload_summary *s)
{
    if (s->values != NULL)
        s->memory->release(s->memory->ctx, s->values);
    if (s->points != NULL)
        s->memory->release(s->memory->ctx, s->points);
    s->values = NULL;
    s->points = NULL;
}

uint64_t stg_overload_summary_memory(const stg_overload_options *o,
                                     uint32_t runs_max)
{
    return (uint64_t)STG_FIGURE_COUNT * runs_max * sizeof(double) +
           o->end_at / o->bin * sizeof(stg_overload_point);
}

/* 0 of nothing. */
static double share(double part, double whole)
{
    return whole > 0 ? part / whole : 0;
}

static double find_peak(const stg_overload_result *r, stg_ns bin)
{
    uint32_t most = 0;

    for (uint32_t i = 0; i < r->bin_count; i++)
        if (r->bins[i].sent > most)
            most = r->bins[i].sent;
    return most * 1e9 / (double)bin;
}

/* -1: nothing succeeded. */
static double find_ms(const stg_sim_histogram *h, uint32_t thousandths)
{
    return h->count == 0 ? -1
                         : (double)stg_sim_histogram_at(h, thousandths) / 1e6;
}

/* Of a run that was cut nobody knows whether goodput would have stayed. */
static bool has_recovered(const stg_overload_result *r)
{
    return r->recovery.is_recovered && !r->is_cut;
}

static void work_out_hedges(const stg_overload_options *o,
                            const stg_overload_result *r, double seconds,
                            double v[STG_FIGURE_COUNT])
{
    bool has = stg_overload_hedges(o);

    v[STG_FIGURE_HEDGED] = has ? share((double)r->hedged, seconds) : -1;
    v[STG_FIGURE_HEDGES_WON] = has ? share((double)r->hedges_won, seconds) : -1;
    v[STG_FIGURE_HEDGES_REFUSED] =
        has ? share((double)r->hedges_refused, seconds) : -1;
}

/* A part without an operation has no figures. */
static void work_out_part(uint64_t begun, uint64_t saved, uint64_t lost,
                          uint64_t sent, double v[2])
{
    v[0] =
        saved + lost == 0 ? -1 : share((double)saved, (double)(saved + lost));
    v[1] = begun == 0 ? -1 : share((double)sent, (double)begun);
}

static void work_out_parts(const stg_overload_options *o,
                           const stg_overload_result *r,
                           double v[STG_FIGURE_COUNT])
{
    double *own = &v[STG_FIGURE_OWN_SUCCESS];
    double *others = &v[STG_FIGURE_OTHERS_SUCCESS];

    own[0] = own[1] = others[0] = others[1] = -1;
    if (!o->has_others)
        return;
    work_out_part(r->begun - r->others_begun, r->saved - r->others_saved,
                  r->lost - r->others_lost, r->sent - r->others_sent, own);
    work_out_part(r->others_begun, r->others_saved, r->others_lost,
                  r->others_sent, others);
}

/* All figures of a run, in their order. Success is of the operations that
 * ended: what was under way at the end is neither saved nor lost. */
static void work_out(const stg_overload_options *o,
                     const stg_overload_result *r, double *v)
{
    const stg_sim_service_counts *c = &r->service;
    double counted = (double)r->counted, seconds = counted / 1e9;
    double busy = share(c->present - c->queued, counted);

    v[STG_FIGURE_GOODPUT] = share((double)r->saved, seconds);
    v[STG_FIGURE_BEGUN] = share((double)r->begun, seconds);
    v[STG_FIGURE_OFFERED] = share((double)r->sent, seconds);
    v[STG_FIGURE_RETRIED] = share((double)r->retried, seconds);
    work_out_hedges(o, r, seconds, v);
    work_out_parts(o, r, v);
    for (uint32_t i = 0; i < STG_LAYERS_MAX; i++)
        v[STG_FIGURE_TO_1 + i] = o->layers > 1 && i < o->layers && r->begun > 0
                                     ? (double)r->sent_to[i] / (double)r->begun
                                     : -1;
    v[STG_FIGURE_AMPLIFICATION] = share((double)r->sent, (double)r->begun);
    v[STG_FIGURE_SUCCESS] =
        share((double)r->saved, (double)(r->saved + r->lost));
    v[STG_FIGURE_SAVED] = r->trigger_begun == 0 ? -1
                                                : (double)r->trigger_saved /
                                                      (double)r->trigger_begun;
    v[STG_FIGURE_PEAK] = find_peak(r, o->bin);
    v[STG_FIGURE_QUEUE] = share(c->queued, counted);
    v[STG_FIGURE_QUEUE_MOST] = c->queued_most;
    v[STG_FIGURE_BUSY] = busy / o->service.workers;
    v[STG_FIGURE_REFUSED] = share((double)r->refused, seconds);
    v[STG_FIGURE_TIMEOUTS] = share((double)r->timeouts, seconds);
    v[STG_FIGURE_FOR_NOBODY] =
        share((double)c->served_for_nobody, (double)c->served);
    v[STG_FIGURE_HELD] = share((double)r->held, seconds);
    v[STG_FIGURE_LATENCY] =
        r->saved == 0 ? -1 : r->latency_sum / 1e6 / (double)r->saved;
    v[STG_FIGURE_P50] = find_ms(&r->latency, 500);
    v[STG_FIGURE_P95] = find_ms(&r->latency, 950);
    v[STG_FIGURE_P99] = find_ms(&r->latency, 990);
    v[STG_FIGURE_BEFORE] =
        o->trigger.kind == STG_TRIGGER_NONE ? -1 : r->recovery.before;
    v[STG_FIGURE_RECOVERY] =
        o->trigger.kind == STG_TRIGGER_NONE || !has_recovered(r)
            ? -1
            : (double)r->recovery.after / 1e6;
}

/* Goodput, p50 and p99 of the whole bins in a span. A bin in the middle of
 * which the trigger begins or ends is in no span. */
static void work_out_span(const stg_overload_options *o,
                          const stg_overload_result *r, stg_ns from,
                          stg_ns until, double v[3])
{
    uint32_t first = (uint32_t)((from + o->bin - 1) / o->bin);
    uint32_t last = (uint32_t)(until / o->bin);
    stg_sim_histogram latency = {0};
    double succeeded = 0;

    last = last < r->bin_count ? last : r->bin_count;
    v[0] = v[1] = v[2] = -1;
    if (o->trigger.kind == STG_TRIGGER_NONE || first >= last)
        return;
    for (uint32_t i = first; i < last; i++) {
        succeeded += r->bins[i].succeeded;
        stg_sim_histogram_merge(&latency, &r->bins[i].latency);
    }
    v[0] = succeeded * 1e9 / ((double)(last - first) * (double)o->bin);
    v[1] = find_ms(&latency, 500);
    v[2] = find_ms(&latency, 990);
}

static void work_out_spans(const stg_overload_options *o,
                           const stg_overload_result *r,
                           double v[STG_FIGURE_COUNT])
{
    work_out_span(o, r, o->warmup, o->trigger.from_at,
                  &v[STG_FIGURE_BEFORE_GOODPUT]);
    work_out_span(o, r, o->trigger.from_at, o->trigger.until_at,
                  &v[STG_FIGURE_IN_GOODPUT]);
    work_out_span(o, r, o->trigger.until_at, o->end_at,
                  &v[STG_FIGURE_AFTER_GOODPUT]);
}

static void add_point(stg_overload_point *p, const stg_overload_bin *b,
                      stg_ns width)
{
    double values[STG_SERIES_COUNT];

    stg_overload_bins_mean(b, 1, width, values);
    for (int i = 0; i < STG_SERIES_COUNT; i++) {
        p->series[i].sum += values[i];
        p->series[i].squares += values[i] * values[i];
        p->series[i].count++;
    }
    stg_sim_histogram_merge(&p->latency, &b->latency);
}

void stg_overload_summary_add(stg_overload_summary *s,
                              const stg_overload_result *r)
{
    double values[STG_FIGURE_COUNT];

    work_out(s->options, r, values);
    work_out_spans(s->options, r, values);
    for (int i = 0; i < STG_FIGURE_COUNT; i++)
        s->values[(size_t)i * s->runs_max + s->runs] = values[i];
    s->runs++;
    s->recovered += has_recovered(r);
    s->healthy += r->recovery.was_healthy;
    s->is_cut |= r->is_cut;
    s->events += r->events;
    if (r->bin_count < s->bin_count)
        s->bin_count = r->bin_count;
    for (uint32_t i = 0; i < s->bin_count; i++)
        add_point(&s->points[i], &r->bins[i], s->options->bin);
    for (uint32_t i = 0; i < stg_overload_summary_stretches(s); i++)
        stg_overload_interval_add(&s->intervals[i],
                                  &r->bins[i * s->interval_bins],
                                  s->interval_bins, s->options->bin);
    stg_sim_histogram_merge(&s->latency, &r->latency);
    for (int i = 0; i < STG_OVERLOAD_WHYS; i++)
        s->whys[i] += r->whys[i];
}

/* Two passes over the values, for figures that are large and differ little. */
stg_estimate stg_overload_summary_figure(const stg_overload_summary *s,
                                         stg_figure figure, uint32_t *has)
{
    const double *v = s->values + (size_t)figure * s->runs_max;
    double sum = 0, squares = 0, count = 0;
    stg_estimate e = {0};

    for (uint32_t i = 0; i < s->runs; i++)
        if (v[i] >= 0) {
            sum += v[i];
            count++;
        }
    e.mean = share(sum, count);
    for (uint32_t i = 0; i < s->runs; i++)
        if (v[i] >= 0)
            squares += (v[i] - e.mean) * (v[i] - e.mean);
    if (count > 1)
        e.se = stg_estimate_root(squares / (count * (count - 1)));
    if (has != NULL)
        *has = (uint32_t)count;
    return e;
}

stg_estimate stg_overload_summary_point(const stg_overload_summary *s,
                                        uint32_t bin,
                                        stg_overload_series series)
{
    return stg_overload_sum_estimate(&s->points[bin].series[series]);
}

uint32_t stg_overload_summary_stretches(const stg_overload_summary *s)
{
    return s->bin_count / s->interval_bins;
}

double stg_overload_summary_begin(const stg_overload_summary *s,
                                  uint32_t interval)
{
    return (double)interval * s->interval_bins * (double)s->options->bin / 1e6;
}
