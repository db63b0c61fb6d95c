/* Tells a failure of our own network from failures of targets: when enough
 * lanes fail to dial at the same time, the uplink is down, and lanes wait
 * without using up attempts.
 *
 * While it is down the lanes are woken once a second, and the first that
 * starts is the probe. Pure; called by flow at the start and the end of
 * attempts. */
#include "flow/lane.h"

#include <errno.h>

#include "flow/state.h"

static const stg_ns looks_back = 2 * STG_S, probes_every = STG_S;
enum { LANES_MIN = 3 };

/* Whether a dial that ended so may have met a network of ours that is away. */
static bool is_cut_off(const stg_uplink *u, const stg_outcome *o)
{
    if (u->proxy != 0)
        return o->fault == STG_FAULT_PROXY ||
               o->fault == STG_FAULT_CONNECT_TIMEOUT;
    switch (o->fault) {
    case STG_FAULT_DNS_TEMPORARY:
    case STG_FAULT_NO_PORTS:
        return true;
    case STG_FAULT_UNREACHABLE:
        return o->code_kind == STG_CODE_ERRNO &&
               (o->code == ENETUNREACH || o->code == ENETDOWN);
    default:
        return false;
    }
}

static stg_lane *lane_at(stg_link *link)
{
    return STG_HOLDER(link, stg_lane, uplink.link);
}

static void enlist(stg_lane *l, bool is_sure, stg_ns now)
{
    bool is_listed = stg_list_has(&l->uplink.link);

    l->uplink.is_sure = is_sure || (is_listed && l->uplink.is_sure);
    if (is_listed)
        return;
    l->uplink.since_at = now;
    stg_list_push(&l->uplink.of->lanes, &l->uplink.link);
    l->uplink.of->count++;
}

void stg_uplink_leave(stg_lane *l)
{
    l->uplink.of->count -= stg_list_has(&l->uplink.link);
    stg_list_remove(&l->uplink.link);
}

/* -- down, and up again ---------------------------------------------------- */

/* How many lanes must have failed: those that are dead by themselves say
 * nothing. */
static uint32_t count_needed(const stg_flow *f, const stg_uplink *u)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < f->lane_capacity && count < LANES_MIN; i++) {
        const stg_lane *l = f->lanes[i];

        count += l != NULL && l->uplink.of == u && !l->is_paused &&
                 !l->is_gated && !l->is_removing && !l->uplink.is_own;
    }
    return count;
}

static void tell(stg_flow *f, uint32_t lane, const stg_uplink *u)
{
    stg_tell what = u->is_down ? STG_TELL_UPLINK_DOWN : STG_TELL_UPLINK_UP;
    stg_notice *t;

    if (u->proxy != 0)
        what = u->is_down ? STG_TELL_PROXY_DOWN : STG_TELL_PROXY_UP;
    t = stg_flow_tell(f, lane, 0, what, u->count, u->is_down ? 0 : u->down_at);
    if (t != NULL)
        t->proxy = u->proxy;
}

/* All suspects are of the last 2 s: older ones have left. */
static void decide(stg_flow *f, const stg_lane *l, stg_ns now)
{
    stg_uplink *u = l->uplink.of;

    if (u->reached_at != 0 && stg_ns_add(u->reached_at, looks_back) > now)
        return;
    if (!l->uplink.is_sure && u->count < LANES_MIN &&
        u->count < count_needed(f, u))
        return;
    u->is_down = true;
    u->down_at = now;
    u->suspect_at = lane_at(stg_list_first(&u->lanes))->uplink.since_at;
    u->probe_at = stg_ns_add(now, probes_every);
    u->may_probe = false;
    stg_list_push(&f->uplinks_down, &u->down);
    tell(f, l->number, u);
}

static void end_down(stg_flow *f, stg_uplink *u, uint32_t lane)
{
    u->is_down = false;
    stg_list_remove(&u->down);
    tell(f, lane, u);
}

/* Those that wait go on; is_own: what they meet from now on is their own. */
static void release(stg_flow *f, const stg_lane *but, stg_ns before,
                    bool is_own)
{
    stg_list *lanes = &but->uplink.of->lanes;
    stg_link *at = stg_list_first(lanes), *next;

    for (; at != NULL; at = next) {
        stg_lane *l = lane_at(at);

        next = stg_list_next(lanes, at);
        if (l->uplink.since_at >= before)
            continue;
        l->uplink.is_own = is_own && l != but;
        stg_uplink_leave(l);
        stg_lane_wake(f, l);
    }
}

/* A dial of the lane ended otherwise, at `at`. */
static void reach(stg_flow *f, stg_lane *l, stg_ns at)
{
    stg_uplink *u = l->uplink.of;

    l->uplink.is_own = false;
    u->reached_at = stg_ns_max(u->reached_at, at);
    if (!u->is_down) {
        release(f, l, at, true);
    } else if (at > u->suspect_at) {
        end_down(f, u, l->number);
        release(f, l, STG_NEVER, false);
    }
}

/* -- what flow asks -------------------------------------------------------- */

bool stg_uplink_ended(stg_flow *f, stg_lane *l, const stg_end *end, stg_ns now)
{
    const stg_outcome *o = &end->outcome;
    const stg_uplink *u = l->uplink.of;
    bool is_local = stg_fault_about(o->fault)->category == STG_CATEGORY_LOCAL;
    bool is_sure = o->fault == STG_FAULT_PROXY;

    if (is_local)
        l->gate_at = stg_ns_max(l->gate_at, stg_ns_add(now, 100 * STG_MS));
    if (end->dialed_at == 0 || o->fault == STG_FAULT_CANCELLED)
        return is_local;
    if (!is_cut_off(u, o)) {
        if (!is_local)
            reach(f, l, end->dialed_at);
        return is_local;
    }
    if (l->uplink.is_own && !u->is_down && !is_sure)
        return is_local;
    enlist(l, is_sure, now);
    if (!u->is_down)
        decide(f, l, now);
    return true;
}

bool stg_uplink_holds(stg_flow *f, stg_lane *l, stg_ns now, stg_ns *at)
{
    stg_ns until_at = stg_ns_add(l->uplink.since_at, looks_back);
    const stg_uplink *u = l->uplink.of;

    if (!stg_list_has(&l->uplink.link))
        return false;
    if (!u->is_down && now >= until_at) {
        decide(f, l, now);
        if (!u->is_down) {
            l->uplink.is_own = true;
            stg_uplink_leave(l);
            return false;
        }
    }
    if (u->is_down)
        return !u->may_probe;
    *at = stg_ns_min(*at, until_at);
    return true;
}

void stg_uplink_start(stg_lane *l, stg_ns now)
{
    stg_uplink *u = l->uplink.of;

    if (!stg_list_has(&l->uplink.link))
        return;
    u->may_probe = false;
    u->probe_at = stg_ns_add(now, probes_every);
    stg_list_remove(&l->uplink.link);
    stg_list_push(&u->lanes, &l->uplink.link);
}

static stg_uplink *down_at(stg_link *down)
{
    return STG_HOLDER(down, stg_uplink, down);
}

/* All are woken, in turn: the first that has something to send dials. */
static void let_probe(stg_flow *f, stg_uplink *u, stg_ns now)
{
    if (u->may_probe || now < u->probe_at)
        return;
    u->may_probe = true;
    for (stg_link *at = stg_list_first(&u->lanes); at != NULL;
         at = stg_list_next(&u->lanes, at))
        stg_lane_wake(f, lane_at(at));
}

void stg_uplink_probe(stg_flow *f, stg_ns now)
{
    for (stg_link *at = stg_list_first(&f->uplinks_down); at != NULL;
         at = stg_list_next(&f->uplinks_down, at))
        let_probe(f, down_at(at), now);
}

stg_ns stg_uplink_at(const stg_flow *f)
{
    stg_ns due_at = STG_NEVER;

    for (stg_link *at = stg_list_first(&f->uplinks_down); at != NULL;
         at = stg_list_next(&f->uplinks_down, at)) {
        const stg_uplink *u = down_at(at);

        if (!u->may_probe && u->count > 0)
            due_at = stg_ns_min(due_at, u->probe_at);
    }
    return due_at;
}

/* -- proxies --------------------------------------------------------------- */

static stg_uplink *find(const stg_flow *f, uint64_t proxy)
{
    for (stg_link *at = stg_list_first(&f->proxies); at != NULL;
         at = stg_list_next(&f->proxies, at)) {
        stg_uplink *u = STG_HOLDER(at, stg_uplink, link);

        if (u->proxy == proxy)
            return u;
    }
    return NULL;
}

stg_uplink *stg_uplink_take(stg_flow *f, uint64_t proxy)
{
    stg_uplink *u = &f->uplink;

    if (proxy != 0)
        u = find(f, proxy);
    if (u == NULL) {
        u = stg_flow_allocate(f, sizeof *u);
        if (u == NULL)
            return NULL;
        *u = (stg_uplink){.proxy = proxy};
        stg_list_init(&u->lanes);
        stg_list_unshift(&f->proxies, &u->link);
    }
    u->users++;
    return u;
}

void stg_uplink_give_back(stg_flow *f, stg_uplink *u, uint32_t lane)
{
    if (--u->users > 0 || u->proxy == 0)
        return;
    if (u->is_down)
        end_down(f, u, lane);
    stg_list_remove(&u->link);
    stg_flow_release(f, u);
}

/* Without memory for another one the lane has the old one still: callers rely on a
 * change of what they have checked. */
void stg_uplink_change(stg_flow *f, stg_lane *l, uint64_t proxy)
{
    stg_uplink *other = stg_uplink_take(f, proxy);

    stg_uplink_leave(l);
    l->uplink.is_own = false;
    if (other == NULL)
        return;
    stg_uplink_give_back(f, l->uplink.of, l->number);
    l->uplink.of = other;
}

uint32_t stg_flow_view_proxy(const stg_flow *f, uint64_t proxy)
{
    const stg_uplink *u = find(f, proxy);

    return u != NULL && u->is_down ? u->count : 0;
}
