/* From a question about many clients that begin together to a model, and what a
 * candidate came to. Where workers (or the calls of a window) are many, the model
 * has fewer of them and as many fewer clients: the time to drain stays the same. */
#include "sim/drain.h"

#include <string.h>

#include "core/writer.h"

enum {
    MODEL_CLIENTS = 20000, // of the scenario with most, about
    MODEL_COUNT = 4,       // workers at least
    LONG = 20,             // usual times: then a run ends
};

stg_drain_question stg_drain_question_default(void)
{
    stg_contention_options o = stg_contention_options_default();

    return (stg_drain_question){.clients = o.clients,
                                .resource = o.resource,
                                .network = o.network,
                                .patience = STG_NEVER,
                                .start_max = STG_NEVER};
}

/* Whether there are workers, or calls of a window, that can be fewer. */
static bool is_counted(const stg_drain_question *q)
{
    return q->resource.kind == STG_RESOURCE_WORKERS ||
           q->resource.kind == STG_RESOURCE_RATE;
}

stg_status stg_drain_question_check(const stg_drain_question *q, stg_error *err)
{
    if (q->clients < 1 || q->clients > STG_DRAIN_CLIENTS_MAX)
        return stg_refuse_number(err, "clients", q->clients, "1 to 10000000");
    if (!is_counted(q) && q->clients > STG_DRAIN_CLIENTS_WHOLE)
        return stg_refuse_number(err, "clients", q->clients,
                                 "1 to 100000 with this resource");
    if (q->timeout != 0 && q->timeout != STG_NEVER && q->timeout < STG_MS)
        return stg_refuse_duration(err, "timeout", q->timeout,
                                   "1ms to 365d, or none");
    if (q->patience < 10 * STG_MS)
        return stg_refuse_duration(err, "patience", q->patience,
                                   "10ms to 365d");
    return STG_OK;
}

stg_ns stg_drain_timeout(const stg_drain_question *q)
{
    stg_ns timeout = q->timeout;

    if (timeout == 0)
        timeout = stg_ns_max(2 * STG_S,
                             10 * stg_distribution_mean(&q->resource.service));
    return stg_ns_min(timeout, q->patience);
}

/* -- scenarios ------------------------------------------------------------- */

uint32_t stg_drain_clients(const stg_drain_question *q, size_t i)
{
    static const uint32_t shares[STG_DRAIN_SCENARIOS] = {1000, 2000, 500, 700,
                                                         1400};
    uint64_t clients = (uint64_t)q->clients * shares[i] / 1000;

    return clients < 1 ? 1 : (uint32_t)clients;
}

/* What a message takes at least. */
static stg_ns least_of(const stg_distribution *d)
{
    return d->kind == STG_DISTRIBUTION_FIXED ||
                   d->kind == STG_DISTRIBUTION_UNIFORM
               ? d->a
               : 0;
}

/* Between two writes that succeed lies the answer to a read, and the write. */
static double time_of(const stg_drain_question *q, uint32_t clients,
                      stg_ns message)
{
    const stg_resource *r = &q->resource;
    double service = (double)stg_distribution_mean(&r->service);
    uint32_t windows;

    switch (r->kind) {
    case STG_RESOURCE_OPTIMISTIC:
        return 2.0 * (double)message * clients;
    case STG_RESOURCE_LOCK:
        return service * clients;
    case STG_RESOURCE_RATE:
        windows = (clients - 1) / r->count; // whole ones
        return (double)windows * (double)r->width;
    case STG_RESOURCE_WORKERS:
        return clients < r->count ? service : service * clients / r->count;
    case STG_RESOURCE_ROUND:
        return (double)r->width * clients;
    }
    return 0;
}

double stg_drain_least(const stg_drain_question *q, uint32_t clients)
{
    return time_of(q, clients, least_of(&q->network));
}

double stg_drain_usual(const stg_drain_question *q, uint32_t clients)
{
    double message = (double)stg_distribution_mean(&q->network);
    double time = time_of(q, clients, (stg_ns)message);

    return time + 2 * message + (double)STG_MS;
}

/* -- the model ------------------------------------------------------------- */

/* Workers, or calls of a window. */
static uint32_t count_of(const stg_drain_question *q)
{
    uint32_t most = stg_drain_clients(q, 1), count = q->resource.count;
    uint64_t fewer = (uint64_t)count * MODEL_CLIENTS / most;

    if (!is_counted(q) || most <= MODEL_CLIENTS || count <= MODEL_COUNT)
        return count;
    return fewer < MODEL_COUNT ? MODEL_COUNT : (uint32_t)fewer;
}

double stg_drain_scale(const stg_drain_question *q)
{
    return is_counted(q) ? (double)q->resource.count / count_of(q) : 1;
}

stg_contention_options stg_drain_options(const stg_drain_question *q, size_t i)
{
    stg_contention_options o = stg_contention_options_default();
    uint32_t clients = stg_drain_clients(q, i), count = count_of(q);
    double usual = stg_drain_usual(q, clients);

    o.resource = q->resource;
    o.network = q->network;
    o.clients = clients;
    if (count != q->resource.count) {
        o.resource.count = count;
        o.clients = (uint32_t)((uint64_t)clients * count / q->resource.count);
        if (o.resource.queue != UINT32_MAX)
            o.resource.queue = (uint32_t)((uint64_t)q->resource.queue * count /
                                          q->resource.count);
    }
    o.calls_max = (uint64_t)o.clients * STG_DRAIN_CALLS_MAX;
    o.until_at = usual * LONG < (double)(365 * STG_DAY)
                     ? (stg_ns)(usual * LONG) + STG_S
                     : 365 * STG_DAY;
    return o;
}

/* -- verdicts -------------------------------------------------------------- */

typedef double measure(const stg_contention_run *run, double usual,
                       uint32_t clients);

static double missed_of(const stg_contention_run *run, double usual,
                        uint32_t clients)
{
    (void)usual;
    return 1 - (double)run->successes / clients;
}

static double time_in(const stg_contention_run *run, double usual,
                      uint32_t clients)
{
    (void)clients;
    return (double)run->completion / usual;
}

static double calls_of(const stg_contention_run *run, double usual,
                       uint32_t clients)
{
    (void)usual, (void)clients;
    return (double)run->calls /
           (run->successes > 0 ? (double)run->successes : 1);
}

static double mean_of(const stg_contention_run *runs, uint32_t reps, measure *m,
                      double usual, uint32_t clients)
{
    double sum = 0;

    for (uint32_t i = 0; i < reps; i++)
        sum += m(&runs[i], usual, clients);
    return sum / reps;
}

/* The mean completion, and its standard error. */
static stg_estimate completion_of(const stg_contention_run *runs, uint32_t reps)
{
    double mean = mean_of(runs, reps, time_in, 1e6, 1), spread = 0;

    for (uint32_t i = 0; i < reps; i++) {
        double off = (double)runs[i].completion / 1e6 - mean;

        spread += off * off;
    }
    return (stg_estimate){
        mean, reps < 2 ? 0 : stg_estimate_root(spread / (reps - 1) / reps)};
}

/* A run that stopped before its clients did has as many that missed. */
stg_drain_verdict stg_drain_judge(const stg_drain_question *q,
                                  const stg_contention_run *runs,
                                  size_t scenarios, uint32_t reps)
{
    stg_drain_verdict v = {.runs = (uint32_t)scenarios * reps};
    double n = (double)scenarios;

    for (size_t s = 0; s < scenarios; s++) {
        const stg_contention_run *at = &runs[s * reps];
        uint32_t clients = stg_drain_options(q, s).clients;
        double usual = stg_drain_usual(q, stg_drain_clients(q, s));

        v.missed += mean_of(at, reps, missed_of, usual, clients) / n;
        v.time += mean_of(at, reps, time_in, usual, clients) / n;
        v.each[s] = mean_of(at, reps, calls_of, usual, clients);
        v.calls += v.each[s] / n;
        v.done_ms[s] = completion_of(at, reps);
        for (uint32_t i = 0; i < reps; i++) {
            v.unfinished += at[i].successes < clients;
            v.cut += at[i].end != STG_END_EMPTY;
            if (s == 0)
                v.peak_ms100 += (double)at[i].peak * stg_drain_scale(q) / reps;
        }
    }
    return v;
}

static int order_of(double a, double b)
{
    return (a > b) - (a < b);
}

/* In steps of 2 %, so that the order is one. */
static int step_of(double time)
{
    double at = 1;
    int step = 0;

    for (; at < time && step < 1000; step++)
        at *= 1.02;
    return step;
}

int stg_drain_compare(const stg_drain_verdict *a, const stg_drain_verdict *b)
{
    int order = order_of(a->missed, b->missed);

    if (order == 0)
        order = step_of(a->time) - step_of(b->time);
    return order != 0 ? order : order_of(a->calls, b->calls);
}

/* Scenarios weigh the same; a run has the same seed in both. */
static stg_estimate difference_of(const stg_drain_question *q,
                                  const stg_contention_run *more,
                                  const stg_contention_run *less, uint32_t reps,
                                  measure *m)
{
    stg_estimate all = {0};
    double squares = 0, n = reps;

    for (size_t s = 0; s < STG_DRAIN_SCENARIOS; s++) {
        const stg_contention_run *a = &more[s * reps], *b = &less[s * reps];
        uint32_t clients = stg_drain_options(q, s).clients;
        double usual = stg_drain_usual(q, stg_drain_clients(q, s));
        double mean = mean_of(a, reps, m, usual, clients) -
                      mean_of(b, reps, m, usual, clients);

        for (uint32_t i = 0; i < reps; i++) {
            double off =
                m(&a[i], usual, clients) - m(&b[i], usual, clients) - mean;

            squares += off * off / (n - 1) / n;
        }
        all.mean += mean / STG_DRAIN_SCENARIOS;
    }
    all.se = stg_estimate_root(squares) / STG_DRAIN_SCENARIOS;
    return all;
}

stg_drain_difference stg_drain_compare_runs(const stg_drain_question *q,
                                            const stg_contention_run *more,
                                            const stg_contention_run *less,
                                            uint32_t reps)
{
    return (stg_drain_difference){
        .missed = difference_of(q, more, less, reps, missed_of),
        .time = difference_of(q, more, less, reps, time_in),
        .calls = difference_of(q, more, less, reps, calls_of)};
}
