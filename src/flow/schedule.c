/* The message's own times: not before, and no longer than.
 *
 * A delivery whose turn comes too early is parked until its time, as if it had been
 * tried and had to wait, but with no attempt counted: so the store has it, and the
 * lane goes on. (In an ordered lane it keeps its slot, as all that is parked.) One
 * whose turn comes too late is dead, with the answer of its last attempt if there
 * was one. */
#include "flow/state.h"

static void park(stg_flow *f, stg_lane *l, stg_delivery *d, stg_ns now)
{
    stg_dispatch_leave(f, l, d);
    d->is_probe = false;
    d->due_wall = d->message->not_before;
    d->wait = stg_ns_sub(d->due_wall, stg_flow_wall(f, now));
    d->due_at = stg_ns_add(now, d->wait);
    // Nothing else can be a probe until then, but in another partition.
    if (l->o.order == STG_ORDER_STRICT && f->partition_count == 1)
        l->probed_from = d->due_at;
    stg_settle(f, d, STG_CHANGE_PARK);
}

static void expire(stg_flow *f, stg_lane *l, stg_delivery *d)
{
    const stg_failure untried = {
        .outcome = stg_failed(STG_FAULT_MESSAGE_EXPIRED), .detail = ""};

    stg_dispatch_leave(f, l, d);
    if (!d->has_failure)
        stg_delivery_note(f, d, &untried);
    d->failure.outcome.fault = STG_FAULT_MESSAGE_EXPIRED;
    d->failure.why = STG_WHY_DEADLINE;
    stg_settle(f, d, STG_CHANGE_DEAD);
}

bool stg_schedule_holds(stg_flow *f, stg_lane *l, stg_delivery *d, stg_ns now)
{
    const stg_message *m = d->message;
    stg_ns wall_at;

    if ((m->not_before | m->expires_at) == 0)
        return false;
    wall_at = stg_flow_wall(f, now);
    if (stg_schedule_ends_before(m, stg_ns_max(wall_at, m->not_before)))
        expire(f, l, d);
    else if (wall_at < m->not_before)
        park(f, l, d, now);
    else
        return false;
    return true;
}
