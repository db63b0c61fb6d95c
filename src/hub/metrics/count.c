/* What is counted, where it happens. */
#include <stdlib.h>
#include <time.h>

#include "hub/hub_inside.h"

static stg_ns wall_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return (stg_ns)t.tv_sec * STG_S + (stg_ns)t.tv_nsec;
}

void stg_metrics_start(stg_target *t, bool is_retry)
{
    // Made at the first attempt: most of ten thousand targets may be idle.
    // Without memory the target is not counted.
    if (t->counters == NULL)
        t->counters = calloc(1, sizeof *t->counters);
    if (t->counters == NULL)
        return;
    t->counters->started++;
    t->counters->retries += is_retry;
}

void stg_metrics_end(stg_target *t, const stg_outcome *o, const stg_verdict *v,
                     stg_ns took, stg_ns accepted_at)
{
    stg_counters *c = t->counters;

    if (c == NULL)
        return;
    // As flow judged it: what the hub cut at its stop is a timeout.
    stg_counters_attempt(c, v->failure != NULL ? &v->failure->outcome : o,
                         took);
    stg_counters_decision(c, &v->decision, v->failure == NULL);
    if (v->decision.next == STG_DONE && accepted_at > 0)
        stg_histogram_add(&c->latency, stg_ns_sub(wall_now(), accepted_at));
}

void stg_metrics_opened(stg_target *t)
{
    if (t != NULL && t->counters != NULL)
        t->counters->openings++;
}

/* -- groups ---------------------------------------------------------------- */

void stg_metrics_store(stg_metrics *m, const stg_group *g, stg_ns now)
{
    m->group = g;
    m->group_at = now;
}

static void count_change(const stg_metrics *m, const stg_change *change)
{
    stg_target *t = stg_targets_at(&m->hub->targets, change->lane);

    if (t == NULL || t->counters == NULL)
        return;
    if (change->kind == STG_CHANGE_DEAD)
        stg_counters_dead(t->counters, change->failure);
    else if (change->kind == STG_CHANGE_RANGE && !change->is_cancelled)
        t->counters->shed += change->count;
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

void stg_metrics_forget(stg_metrics *m, stg_target *t)
{
    if (t->label == STG_LABEL_OWN)
        m->labelled--;
    else if (t->label == STG_LABEL_OTHERS && t->counters != NULL)
        stg_counters_merge(&m->gone, t->counters);
    free(t->counters);
    t->counters = NULL;
}
