/* Counts, and the series.
 *
 * Everything is counted twice: in the bin of now, whenever it is, and from the
 * warm-up on in the result. There an operation counts by when it began and a
 * request by when it is sent: amplification has some requests of operations
 * that began in the warm-up.
 *
 * stg_overload_pass() closes bins up to an event's time and must come before
 * the event is handled, or that is counted in the bin before. */
#include "sim/overload_internal.h"

/* Adds, as the end of the warm-up closes its bin in the middle. Integrals of
 * the service, in requests times ns, become means over the bin. */
static void close_bin(stg_overload_world *w)
{
    const stg_sim_service_counts *c = &w->service.counts;
    double width = (double)w->options->bin;
    double queued = c->queued - w->queued_before;
    double present = c->present - w->present_before;

    w->bin->queue += queued / width;
    w->bin->busy += (present - queued) / width;
    w->queued_before = c->queued;
    w->present_before = c->present;
}

static void open_bin(stg_overload_world *w)
{
    if (w->bin_end_at >= w->options->end_at)
        return; // the last one
    w->bin++;
    w->bin_end_at += w->options->bin;
}

/* What has been counted so far was the warm-up; the bin keeps its part. */
static void begin_to_count(stg_overload_world *w)
{
    w->is_counting = true;
    close_bin(w);
    stg_sim_service_count_from(&w->service, w->options->warmup);
    w->queued_before = w->present_before = 0;
}

void stg_overload_pass(stg_overload_world *w, stg_ns at)
{
    while (!w->is_counting || w->bin_end_at <= at) {
        bool is_warm = !w->is_counting && w->options->warmup <= w->bin_end_at;
        stg_ns next = is_warm ? w->options->warmup : w->bin_end_at;

        if (next > at)
            return;
        stg_sim_service_count(&w->service, next);
        if (is_warm) {
            begin_to_count(w);
            continue;
        }
        close_bin(w);
        if (w->bin_end_at >= w->options->end_at)
            return;
        open_bin(w);
    }
}

static bool counts(const stg_overload_world *w)
{
    return w->now >= w->options->warmup;
}

void stg_overload_count_begun(stg_overload_world *w, bool is_other)
{
    if (is_other)
        w->result->others_begun += counts(w);
    w->bin->begun++;
    w->result->begun += counts(w);
    w->result->trigger_begun += w->is_in_trigger;
}

void stg_overload_count_sent(stg_overload_world *w,
                             const stg_overload_operation *op, bool is_retry)
{
    if (w->layers > 1) {
        w->result->sent_to[op->layer] += counts(w);
        if (op->layer + 1U < w->layers)
            return;
    }
    if (op->is_other)
        w->result->others_sent += counts(w);
    w->bin->sent++;
    w->bin->retried += is_retry;
    w->result->sent += counts(w);
    w->result->retried += is_retry && counts(w);
}

/* A hedge is a request, and no retry. */
void stg_overload_count_hedge(stg_overload_world *w,
                              const stg_overload_operation *op, bool is_sent)
{
    if (!is_sent) {
        w->bin->hedges_refused++;
        w->result->hedges_refused += counts(w);
        return;
    }
    stg_overload_count_sent(w, op, false);
    w->bin->hedged++;
    w->result->hedged += counts(w);
}

void stg_overload_count_win(stg_overload_world *w)
{
    w->bin->hedges_won++;
    w->result->hedges_won += counts(w);
}

void stg_overload_count_held(stg_overload_world *w)
{
    w->bin->held++;
    w->result->held += counts(w);
}

void stg_overload_count_refused(stg_overload_world *w)
{
    w->bin->refused++;
    w->result->refused += counts(w);
}

void stg_overload_count_timeout(stg_overload_world *w)
{
    w->bin->timeouts++;
    w->result->timeouts += counts(w);
}

void stg_overload_count_for_nobody(stg_overload_world *w)
{
    w->bin->for_nobody++;
    w->result->for_nobody += counts(w);
}

/* An operation that began in the trigger counts as saved also when it ends
 * after it; one that began in the warm-up never counts in the result. */
static void count_success(stg_overload_world *w, stg_ns begun_at)
{
    stg_ns took = w->now - begun_at;
    const stg_trigger *t = &w->options->trigger;

    w->bin->succeeded++;
    stg_sim_histogram_add(&w->bin->latency, took);
    if (begun_at >= t->from_at && begun_at < t->until_at)
        w->result->trigger_saved++;
    if (begun_at < w->options->warmup)
        return;
    w->result->saved++;
    w->result->latency_sum += (double)took;
    stg_sim_histogram_add(&w->result->latency, took);
}

/* saved and lost are of the bin in which the operation began, succeeded and
 * given_up of the bin of now. */
void stg_overload_count_end(stg_overload_world *w,
                            const stg_overload_operation *op, stg_why why)
{
    stg_ns begun_at = op->begun_at;
    stg_overload_bin *began_in = &w->result->bins[begun_at / w->options->bin];

    if (op->is_other && begun_at >= w->options->warmup) {
        w->result->others_saved += why == STG_WHY_DONE;
        w->result->others_lost += why != STG_WHY_DONE;
    }
    if (why == STG_WHY_DONE) {
        began_in->saved++;
        count_success(w, begun_at);
    } else {
        began_in->lost++;
        w->bin->given_up++;
        w->result->lost += begun_at >= w->options->warmup;
    }
    if (begun_at >= w->options->warmup)
        w->result->whys[why]++;
}
