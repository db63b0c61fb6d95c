/* Counting, where it happens. */
#include <stdlib.h>

#include "host/wall.h"
#include "metrics/metrics.h"

/* Made when there is something to count: most of ten thousand targets may be
 * idle. NULL: there is no memory, and the target is not counted. */
static stg_counters *counters_of(stg_meter *t)
{
    if (t->counters == NULL)
        t->counters = calloc(1, sizeof *t->counters);
    return t->counters;
}

void stg_metrics_start(stg_meter *t, bool is_retry)
{
    stg_counters *c = counters_of(t);

    if (c == NULL)
        return;
    c->started++;
    c->retries += is_retry;
}

/* accepted_at is the wall clock, 0 if unknown; latency is only counted for a
 * message that was delivered. */
void stg_metrics_end(stg_meter *t, const stg_outcome *o, const stg_verdict *v,
                     stg_ns took, stg_ns accepted_at)
{
    stg_counters *c = t->counters;

    if (c == NULL)
        return;
    // As flow judged it: what the hub cut at its stop is a timeout. Of what was
    // cancelled before anything was sent nothing is counted.
    if (v->failure != NULL || o->fault != STG_FAULT_CANCELLED || !o->unsent)
        stg_counters_attempt(c, v->failure != NULL ? &v->failure->outcome : o,
                             took);
    stg_counters_decision(c, &v->decision, v->failure == NULL);
    if (v->decision.next == STG_DONE && accepted_at > 0)
        stg_histogram_add(&c->latency, stg_ns_sub(stg_wall_now(), accepted_at));
}

/* NULL: there is no such target, or no memory. */
static stg_counters *counters_at(const stg_metrics *m, uint32_t lane)
{
    stg_meter *t = m->facts.meter(m->facts.ctx, lane);

    return t == NULL ? NULL : counters_of(t);
}

void stg_metrics_opened(stg_metrics *m, uint32_t lane)
{
    stg_counters *c = counters_at(m, lane);

    if (c != NULL)
        c->openings++;
}

void stg_metrics_replayed(stg_metrics *m, uint32_t lane, uint64_t count)
{
    stg_counters *c = counters_at(m, lane);

    if (c != NULL)
        c->replayed += count;
}

/* -- groups ---------------------------------------------------------------- */

/* One group is under way at a time. Its dead letters count when it is durable,
 * and not when they are decided: a crash in between would count them twice. */
void stg_metrics_store(stg_metrics *m, const stg_group *g, stg_ns now)
{
    m->group = g;
    m->group_at = now;
}

/* Counted when it is stored, as a row, and not when it was decided. */
static void count_change(const stg_metrics *m, const stg_change *change)
{
    bool is_range = change->kind == STG_CHANGE_RANGE && !change->is_cancelled;
    stg_counters *c;

    if (change->kind != STG_CHANGE_DEAD && !is_range)
        return;
    c = counters_at(m, change->lane);
    if (c == NULL)
        return;
    if (is_range)
        stg_counters_shed(c, change);
    else
        stg_counters_dead(c, change->failure);
}

void stg_metrics_stored(stg_metrics *m, stg_ns now)
{
    const stg_group *g = m->group;

    if (g == NULL)
        return;
    m->group = NULL;
    stg_histogram_add(&m->groups, stg_ns_sub(now, m->group_at));
    for (size_t i = 0; i < g->change_count; i++)
        count_change(m, &g->changes[i]);
}

/* What a target without a label of its own has counted stays in the sum of the
 * others, which must never fall. */
void stg_metrics_forget(stg_metrics *m, stg_meter *t)
{
    if (t->label == STG_LABEL_OWN)
        m->labelled--;
    else if (t->label == STG_LABEL_OTHERS && t->counters != NULL)
        stg_counters_merge(&m->gone, t->counters);
    free(t->counters);
    t->counters = NULL;
}
