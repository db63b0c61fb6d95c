/* The counters of attempts under way: slots, replays, bytes and budgets,
 * of its lane and of all. What begins here ends here. */
#include "flow/state.h"

/* Bodies in flight stay in memory until their attempts end, and a target that hangs
 * puts that off. A lane may have as much of half the memory in flight as all lanes together
 * leave free of it: one alone a quarter of the memory, and n at different places each
 * an (n + 1)th of the half, so that as much is free for others. (The dynamic
 * threshold of Choudhury and Hahne, "Dynamic queue length thresholds for
 * shared-memory packet switches", 1998.) */
bool stg_flight_has_memory(const stg_flow *f, const stg_lane *l)
{
    size_t half = f->o.memory_max / 2;

    return f->flying < half && l->flying < half - f->flying;
}

static void begin_probe(stg_lane *l, const stg_delivery *d)
{
    uint32_t attempts = d->progress.attempts;

    l->probing++;
    if (!l->has_probed_most && attempts >= l->probe_depth)
        l->probe_depth =
            (uint32_t)stg_ns_min(2 * (uint64_t)attempts, UINT32_MAX);
    l->has_probed_most = !l->has_probed_most && d->is_stored;
}

/* As many are under way as the limit allows. Of replays that is a share. It is so
 * until the next start: the answers that come before that were all part of it. */
static bool uses_limit(const stg_lane *l, const stg_delivery *d)
{
    return l->in_flight >= l->peer->limit.value ||
           (d->replay > 0 && l->replaying >= stg_lane_replays_max(l));
}

void stg_flight_begin(stg_flow *f, stg_lane *l, stg_delivery *d, stg_ns now)
{
    stg_lane_cursor *cursor = stg_delivery_cursor(d);

    stg_dispatch_leave(f, l, d);
    if (!d->is_stored) {
        cursor->waiting--;
        cursor->in_flight++;
    }
    if (l->in_flight == 0 && !l->is_failing)
        l->trying_at = now;
    f->shared += l->in_flight > 0; // its first is on its own slot
    l->in_flight++;
    l->replaying += d->replay > 0;
    l->is_limit_used = uses_limit(l, d);
    l->flying += d->message->size;
    f->flying += d->message->in_flight++ == 0 ? d->message->size : 0;
    f->in_flight++;
    stg_budget_begin(&l->peer->budget);
    stg_budget_begin(&f->budget);
    l->starts++;
    l->retries += d->progress.attempts > 0;
    if (d->is_probe)
        begin_probe(l, d);
    if (d->progress.attempts == 0)
        d->began_at = stg_flow_wall(f, now);
    d->progress.attempts++;
    d->attempt_at = now;
    d->attempt = NULL;
    d->state = STG_DELIVERY_IN_FLIGHT;
    stg_list_push(&l->busy, &d->busy);
}

void stg_flight_leave(stg_flow *f, stg_lane *l, stg_delivery *d)
{
    stg_lane_cursor *cursor = stg_delivery_cursor(d);

    if (!d->is_stored) {
        cursor->in_flight--;
        cursor->waiting++;
    }
    stg_list_remove(&d->busy);
    stg_list_remove(&d->change); // a cancel that was not given out yet
    l->in_flight--;
    l->replaying -= d->replay > 0;
    l->flying -= d->message->size;
    f->flying -= --d->message->in_flight == 0 ? d->message->size : 0;
    f->in_flight--;
    stg_budget_end(&l->peer->budget, d->paid);
    stg_budget_end(&f->budget, d->paid);
    f->shared -= l->in_flight > 0;
    f->is_lowered = f->is_lowered && f->shared > f->o.in_flight_max;
    d->attempt = NULL;
    if (!stg_list_is_empty(&f->no_memory))
        stg_lane_wake(
            f, STG_HOLDER(stg_list_first(&f->no_memory), stg_lane, link));
}
