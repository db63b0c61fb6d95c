/* Tells a failure of our own network from failures of targets: when enough
 * lanes fail to dial at the same time, the uplink is down, and lanes wait
 * without using up attempts.
 *
 * While it is down the lanes are woken once a second, and the first that
 * starts is the probe. Pure; called by flow at the start and the end of
 * attempts. */
#include "flow/uplink.h"

#include <errno.h>

#include "flow/state.h"

static const stg_ns looks_back = 2 * STG_S, probes_every = STG_S;
enum { LANES_MIN = 3 };

/* Whether a dial that ended so may have met a network of ours that is away. */
static bool is_cut_off(const stg_outcome *o)
{
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

static void enlist(stg_flow *f, stg_lane *l, stg_ns now)
{
    if (stg_list_has(&l->uplink.link))
        return;
    l->uplink.since_at = now;
    stg_list_push(&f->uplink.lanes, &l->uplink.link);
    f->uplink.count++;
}

void stg_uplink_leave(stg_flow *f, stg_lane *l)
{
    f->uplink.count -= stg_list_has(&l->uplink.link);
    stg_list_remove(&l->uplink.link);
}

/* -- down, and up again ---------------------------------------------------- */

/* How many lanes must have failed: those that are dead by themselves say
 * nothing. */
static uint32_t count_needed(const stg_flow *f)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < f->lane_capacity && count < LANES_MIN; i++) {
        const stg_lane *l = f->lanes[i];

        count += l != NULL && !l->is_paused && !l->is_gated &&
                 !l->is_removing && !l->uplink.is_own;
    }
    return count > 0 ? count : 1;
}

/* All suspects are of the last 2 s: older ones have left. */
static void decide(stg_flow *f, uint32_t lane, stg_ns now)
{
    stg_uplink *u = &f->uplink;

    if (u->reached_at != 0 && stg_ns_add(u->reached_at, looks_back) > now)
        return;
    if (u->count < LANES_MIN && u->count < count_needed(f))
        return;
    u->is_down = true;
    u->down_at = now;
    u->suspect_at = lane_at(stg_list_first(&u->lanes))->uplink.since_at;
    u->probe_at = stg_ns_add(now, probes_every);
    u->may_probe = false;
    stg_flow_tell(f, lane, 0, STG_TELL_UPLINK_DOWN, u->count, 0);
}

/* Those that wait go on; is_own: what they meet from now on is their own. */
static void release(stg_flow *f, const stg_lane *but, stg_ns before,
                    bool is_own)
{
    stg_link *at = stg_list_first(&f->uplink.lanes), *next;

    for (; at != NULL; at = next) {
        stg_lane *l = lane_at(at);

        next = stg_list_next(&f->uplink.lanes, at);
        if (l->uplink.since_at >= before)
            continue;
        l->uplink.is_own = is_own && l != but;
        stg_uplink_leave(f, l);
        stg_lane_wake(f, l);
    }
}

/* A dial of the lane ended otherwise, at `at`. */
static void reach(stg_flow *f, stg_lane *l, stg_ns at)
{
    stg_uplink *u = &f->uplink;

    l->uplink.is_own = false;
    u->reached_at = stg_ns_max(u->reached_at, at);
    if (!u->is_down) {
        release(f, l, at, true);
    } else if (at > u->suspect_at) {
        u->is_down = false;
        stg_flow_tell(f, l->number, 0, STG_TELL_UPLINK_UP, u->count,
                      u->down_at);
        release(f, l, STG_NEVER, false);
    }
}

/* -- what flow asks -------------------------------------------------------- */

bool stg_uplink_ended(stg_flow *f, stg_lane *l, const stg_end *end, stg_ns now)
{
    const stg_outcome *o = &end->outcome;
    bool is_local = stg_fault_about(o->fault)->category == STG_CATEGORY_LOCAL;

    if (is_local)
        l->gate_at = stg_ns_max(l->gate_at, stg_ns_add(now, 100 * STG_MS));
    if (end->dialed_at == 0 || o->fault == STG_FAULT_CANCELLED)
        return is_local;
    if (!is_cut_off(o)) {
        if (!is_local)
            reach(f, l, end->dialed_at);
        return is_local;
    }
    if (l->uplink.is_own && !f->uplink.is_down)
        return is_local;
    enlist(f, l, now);
    if (!f->uplink.is_down)
        decide(f, l->number, now);
    return true;
}

bool stg_uplink_holds(stg_flow *f, stg_lane *l, stg_ns now, stg_ns *at)
{
    stg_ns until_at = stg_ns_add(l->uplink.since_at, looks_back);

    if (!stg_list_has(&l->uplink.link))
        return false;
    if (!f->uplink.is_down && now >= until_at) {
        decide(f, l->number, now);
        if (!f->uplink.is_down) {
            l->uplink.is_own = true;
            stg_uplink_leave(f, l);
            return false;
        }
    }
    if (f->uplink.is_down)
        return !f->uplink.may_probe;
    *at = stg_ns_min(*at, until_at);
    return true;
}

void stg_uplink_start(stg_flow *f, stg_lane *l, stg_ns now)
{
    stg_uplink *u = &f->uplink;

    if (!stg_list_has(&l->uplink.link))
        return;
    u->may_probe = false;
    u->probe_at = stg_ns_add(now, probes_every);
    stg_list_remove(&l->uplink.link);
    stg_list_push(&u->lanes, &l->uplink.link);
}

/* All are woken, in turn: the first that has something to send dials. */
void stg_uplink_probe(stg_flow *f, stg_ns now)
{
    stg_uplink *u = &f->uplink;

    if (!u->is_down || u->may_probe || now < u->probe_at)
        return;
    u->may_probe = true;
    for (stg_link *at = stg_list_first(&u->lanes); at != NULL;
         at = stg_list_next(&u->lanes, at))
        stg_lane_wake(f, lane_at(at));
}

stg_ns stg_uplink_at(const stg_flow *f)
{
    const stg_uplink *u = &f->uplink;

    return u->is_down && !u->may_probe && u->count > 0 ? u->probe_at
                                                       : STG_NEVER;
}
