/* Views of a lane, or of all, for operators and metrics. Cheap: no more than a
 * few numbers of each partition are read.
 *
 * A view changes nothing and may be taken between any two calls. The state of a
 * lane is the gravest thing that holds it back, in the order of find_state(). */
#include "flow/state.h"

const char *stg_lane_state_name(stg_lane_state state)
{
    static const char *const names[] = {
        [STG_LANE_LIVE] = "live",
        [STG_LANE_THROTTLED] = "throttled",
        [STG_LANE_CIRCUIT_OPEN] = "circuit-open",
        [STG_LANE_SHEDDING] = "shedding",
        [STG_LANE_PAUSED] = "paused",
        [STG_LANE_REMOVING] = "removing",
    };

    return names[state];
}

static stg_lane_state find_state(const stg_lane *l, stg_ns now)
{
    if (l->is_removing)
        return STG_LANE_REMOVING;
    if (l->is_paused)
        return STG_LANE_PAUSED;
    if (l->is_shedding)
        return STG_LANE_SHEDDING;
    if (l->is_open)
        return STG_LANE_CIRCUIT_OPEN;
    return l->is_gated || l->is_store_full || l->is_parked_max ||
                   stg_list_has(&l->uplink.link) || l->gate_at > now ||
                   l->rate_at > now
               ? STG_LANE_THROTTLED
               : STG_LANE_LIVE;
}

static stg_ns find_gate(const stg_lane *l, const stg_lane_view *v, stg_ns now)
{
    stg_ns at = stg_ns_max(l->gate_at, l->rate_at);

    if (v->probe_at > 0)
        return v->probe_at;
    return at > now ? at : 0;
}

/* -- a cursor --------------------------------------------------------------- */

static void view_cursor(const stg_lane *l, const stg_partition *p,
                        stg_lane_cursor_view *v)
{
    const stg_lane_cursor *cursor = stg_lane_cursor_in(l, p);
    const stg_window *w = &p->window;
    bool is_in_window = stg_lane_cursor_is_in_window(l, p);

    *v = (stg_lane_cursor_view){
        .is_catching_up = cursor->is_catching_up,
        .next = stg_lane_cursor_next(l, p),
        .base = stg_lane_cursor_base(l, p),
        .lag = w->end - (is_in_window ? cursor->number : w->first),
        .is_lag_exact = is_in_window,
        .oldest_at = stg_lane_cursor_oldest(l, p),
        .waiting = cursor->waiting,
        .parked = cursor->rows};
    if (!stg_partition_is_assigned(p)) // what it does not read it does not lack
        v->is_lag_exact = true;
}

static void add_cursor(const stg_lane *l, const stg_partition *p,
                       stg_lane_view *v)
{
    const stg_lane_cursor *cursor = stg_lane_cursor_in(l, p);
    stg_lane_cursor_view at;

    view_cursor(l, p, &at);
    v->routed += cursor->routed;
    v->delivered += cursor->delivered;
    v->dead += cursor->dead;
    v->cancelled += cursor->cancelled;
    v->waiting += cursor->waiting;
    v->parked += cursor->rows;
    v->replays += cursor->replays;
    if (!cursor->bulk.is_closed)
        v->bulk += cursor->bulk.count;
    v->lag += at.lag;
    v->is_lag_exact &= at.is_lag_exact;
    if (at.oldest_at != 0 && (v->oldest_at == 0 || at.oldest_at < v->oldest_at))
        v->oldest_at = at.oldest_at;
    if (!stg_partition_is_assigned(p))
        return;
    v->next = at.next < v->next ? at.next : v->next;
    v->base = at.base < v->base ? at.base : v->base;
}

stg_status stg_flow_view_cursor(const stg_flow *f, uint32_t lane,
                                uint32_t partition, stg_lane_cursor_view *view)
{
    const stg_lane *l = stg_flow_lane(f, lane);
    const stg_partition *p = stg_flow_partition(f, partition);

    if (l == NULL || p == NULL)
        return STG_NOT_FOUND;
    view_cursor(l, p, view);
    return STG_OK;
}

static stg_partition_state find_partition_state(const stg_partition *p)
{
    switch (p->phase) {
    case STG_PHASE_ASSIGNED:
        return STG_PARTITION_ASSIGNED;
    case STG_PHASE_ROWS:
        return STG_PARTITION_ROWS;
    default:
        return STG_PARTITION_REVOKING;
    }
}

stg_status stg_flow_view_partition(const stg_flow *f, uint32_t partition,
                                   stg_partition_view *view)
{
    const stg_partition *p = stg_flow_partition(f, partition);

    if (p == NULL)
        return STG_NOT_FOUND;
    *view = (stg_partition_view){
        .state = find_partition_state(p),
        .generation = p->generation,
        .assignment = p->assignment,
        .next = p->window.next,
        .committed = p->committed,
        .window = (uint32_t)(p->window.end - p->window.first)};
    return STG_OK;
}

/* -- a lane ---------------------------------------------------------------- */

static void look_at_peer(const stg_lane *l, stg_lane_view *v, stg_ns now)
{
    stg_ns reopen_at = 0;
    stg_budget fresh;

    if (l->peer == NULL) {
        (void)stg_budget_init(&fresh, &l->o.policy->budget);
        v->breaker = STG_BREAKER_CLOSED;
        v->budget_left = stg_budget_left(&fresh, now);
        v->is_slow_start = v->limit < l->o.in_flight_max;
        return;
    }
    v->breaker = stg_breaker_look(&l->peer->breaker, now, &reopen_at);
    v->probe_at = v->breaker == STG_BREAKER_OPEN ? reopen_at : 0;
    v->budget_left = stg_budget_left(&l->peer->budget, now);
    v->is_slow_start = l->peer->limit.value < l->peer->limit.threshold;
}

stg_status stg_flow_view_lane(const stg_flow *f, uint32_t lane,
                              stg_lane_view *view, stg_ns now)
{
    const stg_lane *l = stg_flow_lane(f, lane);
    uint64_t in_flight = 0;

    if (l == NULL)
        return STG_NOT_FOUND;
    *view = (stg_lane_view){.state = find_state(l, now),
                            .is_catching_up = stg_list_has(&l->catch_up_link),
                            .is_gated = l->is_gated,
                            .order = l->o.order,
                            .limit = stg_lane_limit(l),
                            .openings = l->openings,
                            .in_flight = l->in_flight,
                            .is_lag_exact = true,
                            .next = UINT64_MAX,
                            .base = UINT64_MAX,
                            .retries = l->retries,
                            .budget_refused = l->budget_refused};
    for (uint32_t i = 0; i < f->partition_count; i++) {
        add_cursor(l, f->partitions[i], view);
        in_flight += stg_lane_cursor_in(l, f->partitions[i])->in_flight;
    }
    // A row that is being tried again counts as in flight, not as parked.
    view->parked -= l->in_flight - in_flight;
    look_at_peer(l, view, now);
    view->gate_until = find_gate(l, view, now);
    if (view->next == UINT64_MAX) // it reads nothing
        view->next = view->base = 0;
    return STG_OK;
}

/* -- all ------------------------------------------------------------------- */

static uint32_t count_proxies_down(const stg_flow *f)
{
    uint32_t count = 0;

    for (stg_link *at = stg_list_first(&f->uplinks_down); at != NULL;
         at = stg_list_next(&f->uplinks_down, at))
        count++;
    return count - f->uplink.is_down;
}

void stg_flow_view_all(const stg_flow *f, stg_flow_view *view, stg_ns now)
{
    uint64_t window = 0;

    for (uint32_t i = 0; i < f->partition_count; i++)
        window += f->partitions[i]->window.end - f->partitions[i]->window.first;
    *view = (stg_flow_view){
        .held = f->held,
        .memory_max = f->o.memory_max,
        .in_flight = f->in_flight,
        .in_flight_max = f->o.in_flight_max,
        .window = (uint32_t)window,
        .lanes = f->lane_count,
        .partitions = f->partition_count,
        .budget_left = stg_budget_left(&f->budget, now),
        .budget_refused = f->budget_refused,
        .is_store_full = f->checkpoint.is_full,
        .is_uplink_down = f->uplink.is_down,
        .uplink_down_at = f->uplink.is_down ? f->uplink.down_at : 0,
        .uplink_lanes = f->uplink.is_down ? f->uplink.count : 0,
        .proxies_down = count_proxies_down(f),
        .is_stopping = f->stop != STG_STOP_NOT};
}
