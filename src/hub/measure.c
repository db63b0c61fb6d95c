/* The facts of a hub for its metrics: fills in the rows and the snapshot when
 * metrics/metrics.c asks, on the loop.
 *
 * Names and topics are copied, because the snapshot is printed by a thread
 * while a reload may change them. Lags by partition are lanes times partitions,
 * and are left out beyond LAGS_MAX. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hub/hub_internal.h"

static size_t count_targets(void *ctx, uint64_t *changes)
{
    const stg_hub *h = ctx;

    *changes = h->targets.changes;
    return h->targets.count;
}

static void look_at(const stg_hub *h, stg_target *t, stg_snapshot_row *row,
                    stg_ns wall_at)
{
    stg_lane_view *lane = &row->lane;

    *row = (stg_snapshot_row){.targets = 1};
    memcpy(row->name, t->name, strlen(t->name) + 1);
    row->lane_number = t->lane;
    if (t->endpoint != NULL)
        stg_endpoint_look(t->endpoint, &row->sockets);
    if (stg_hub_look_lane(h, t->lane, lane, stg_deadlines_now()) != STG_OK)
        return; // it has ended
    row->states[stg_target_state(t, lane->state)] = 1;
    row->catching_up = lane->is_catching_up;
    row->breakers_open = lane->breaker != STG_BREAKER_CLOSED;
    if (lane->oldest_at > 0)
        row->lag_time = stg_ns_sub(wall_at, lane->oldest_at);
    if (t->meter.counters != NULL)
        stg_counters_note(t->meter.counters, lane->budget_refused,
                          row->sockets.connects);
}

static stg_meter *look_target(void *ctx, size_t i, stg_snapshot_row *row,
                              stg_ns wall_at)
{
    stg_hub *h = ctx;
    stg_target *t = h->targets.all[i];

    if (row != NULL)
        look_at(h, t, row, wall_at);
    return &t->meter;
}

static stg_meter *meter_of(void *ctx, uint32_t lane)
{
    const stg_hub *h = ctx;
    stg_target *t = stg_targets_at(&h->targets, lane);

    return t == NULL ? NULL : &t->meter;
}

static void look_alerts(const stg_alerts *a, stg_snapshot *p)
{
    stg_alerts_look(a, &p->alerts);
    for (p->receiver_count = 0; p->receiver_count < STG_ALERT_RECEIVERS_MAX;
         p->receiver_count++) {
        stg_snapshot_receiver *receiver = &p->receivers[p->receiver_count];

        if (stg_alerts_look_receiver(a, p->receiver_count, &receiver->view) !=
            STG_OK)
            return;
        (void)snprintf(receiver->name, sizeof receiver->name, "%s",
                       receiver->view.name);
        receiver->view.name = NULL;
    }
}

/* -- partitions of the source ----------------------------------------------- */

/* Lanes times partitions, each with its lag: a page of a few MB. */
enum { LAGS_MAX = 20000 };

static size_t count_partitions(const stg_source *s)
{
    stg_source_view v;
    size_t count = 0;

    while (s->ops->look(s, count, &v))
        count++;
    return count;
}

/* A row has the number of its lane only once it is complete. */
static void take_lags(stg_snapshot *p, const stg_flow *flow, size_t i,
                      uint32_t number)
{
    stg_snapshot_source *k = &p->source;
    stg_lane_cursor_view v;

    for (size_t row = 0; row < stg_snapshot_own_rows(p); row++)
        if (stg_flow_view_cursor(flow, p->rows[row].lane_number, number, &v) ==
            STG_OK)
            k->lags[row * k->count + i] =
                stg_ns_sub(k->partitions[i].end, v.next);
}

/* Lags by target and partition are a product of the two: above LAGS_MAX they are left
 * out, and the metrics have those of targets alone. */
static void look_partitions(const stg_hub *h, stg_snapshot *p)
{
    const stg_source *s = h->source;
    stg_snapshot_source *k = &p->source;
    size_t count = count_partitions(s);
    stg_source_view v;

    k->partitions = calloc(count + 1, sizeof *k->partitions);
    if (k->partitions == NULL)
        return;
    k->count = count;
    if (count > 0 && stg_snapshot_own_rows(p) <= LAGS_MAX / count)
        k->lags = calloc(stg_snapshot_own_rows(p) * count + 1, sizeof *k->lags);
    for (size_t i = 0; i < count && s->ops->look(s, i, &v); i++) {
        v.topic = strdup(v.topic);
        k->partitions[i] = v;
        if (k->lags != NULL)
            take_lags(p, h->flow, i, v.number);
    }
}

/* When the rows are complete. */
static void look_source(const stg_hub *h, stg_snapshot *p)
{
    const stg_source_ops *ops = h->source->ops;

    p->source = (stg_snapshot_source){.name = ops->name};
    if (ops->facts != NULL)
        p->source.fact_count = ops->facts(h->source, p->source.facts);
    if (ops->look != NULL)
        look_partitions(h, p);
}

/* -- the hub ----------------------------------------------------------------- */

/* The picture that a scrape prints: taken at one moment, on the loop. */
static void look_hub(void *ctx, stg_snapshot *p)
{
    stg_hub *h = ctx;
    stg_hub_view view;

    stg_hub_look(h, &view);
    p->flow = view.flow;
    p->accepted = view.accepted;
    p->filtered = stg_verdicts_look(h->verdicts);
    p->is_stopping = view.is_stopping;
    stg_store_look(h->store, &p->store);
    p->has_ingress = h->intake.ingress != NULL;
    if (p->has_ingress)
        stg_ingress_look(h->intake.ingress, &p->ingress);
    p->known = h->targets.known;
    p->unknown = h->targets.count - h->targets.known;
    p->receipts.stored = h->receipts.stored;
    p->receipts.dropped = h->receipts.dropped;
    p->receipts.copied = h->receipts.copy.copied;
    p->receipts.uncopied = h->receipts.copy.dropped;
    p->tokens.fetches = h->oauth.fetches;
    p->tokens.failures = h->oauth.failures;
    p->tokens.refused = h->oauth.refused;
    p->tokens.gated = h->oauth.gated;
    p->spans.exported = h->spans.exported;
    p->spans.full = h->spans.dropped[STG_SPANS_FULL];
    p->spans.refused = h->spans.dropped[STG_SPANS_REFUSED];
    p->spans.unsent = h->spans.dropped[STG_SPANS_UNSENT];
    p->spans.waiting = h->spans.count + h->spans.sending;
    look_source(h, p);
    look_alerts(h->watch.alerts, p);
    p->log_dropped = stg_log_dropped(h->log);
    p->memory_max = h->settings->memory_max;
}

void stg_measure_open(stg_hub *h)
{
    stg_metrics_open(
        &h->metrics,
        &(stg_metrics_facts){.count = count_targets,
                             .look = look_target,
                             .meter = meter_of,
                             .complete = look_hub,
                             .loop = h->loop,
                             .deadlines = &h->deadlines,
                             .labelled_max = h->settings->metrics.targets_max,
                             .ctx = h});
}
