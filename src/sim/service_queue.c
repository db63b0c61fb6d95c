/* The queue of a service: a list through its requests, in the order of their
 * arrival, and what is shed of it.
 *
 * Sources: Nichols, Jacobson, McGregor and Iyengar, "Controlled Delay Active
 * Queue Management", RFC 8289, 2018; Maurer, "Fail at Scale", ACM Queue 13(8),
 * 2015: short waits only where a queue stands, and then the last come first. */
#include "sim/service_internal.h"
#include "sim/statistics.h"

/* Whether the queue has not been empty for that long. */
static bool stands(const stg_sim_service *s, stg_ns span, stg_ns now)
{
    return s->queued > 0 && now - s->stands_from > span;
}

static uint32_t take_next(stg_sim_service *s, stg_ns now)
{
    bool is_last = s->options.order == STG_SIM_ORDER_LIFO ||
                   (s->options.order == STG_SIM_ORDER_ADAPTIVE &&
                    stands(s, s->options.stands_after, now));
    uint32_t id = is_last ? s->last : s->first;

    if (id != STG_SIM_NONE)
        stg_sim_queue_take_out(s, id);
    return id;
}

/* Of a request that is not in the queue any more. */
static void shed(stg_sim_service *s, uint32_t id, stg_ns now)
{
    stg_sim_service_count_stay(s, &s->requests[id], now);
    s->counts.shed++;
    s->on_shed(s->ctx, id);
}

/* -- a longest wait --------------------------------------------------------- */

/* Whoever is served next, those at the front have waited longest. */
static void shed_late(stg_sim_service *s, stg_ns now)
{
    const stg_sim_service_options *o = &s->options;
    stg_ns most = o->shed_target;

    if (o->shed_interval != 0 && !stands(s, o->shed_interval, now))
        most = o->shed_interval;
    while (s->queued > 0 && now - s->requests[s->first].reached_at > most) {
        uint32_t id = s->first;

        stg_sim_queue_take_out(s, id);
        shed(s, id, now);
    }
}

/* -- CoDel ------------------------------------------------------------------ */

/* When the next one is dropped: the distance is the interval over the root of
 * how many were. */
static stg_ns control(const stg_sim_service *s, stg_ns at, uint32_t count)
{
    double gap = (double)s->options.shed_interval / stg_estimate_root(count);

    return stg_ns_add(at, (stg_ns)gap);
}

/* Takes one out. *is_late: it may be dropped, for waits have been above the
 * target for an interval. The RFC's "no more than a packet in the queue" is here
 * a queue with nobody left. */
static uint32_t take_for_codel(stg_sim_service *s, stg_ns now, bool *is_late)
{
    stg_codel *c = &s->codel;
    uint32_t id = take_next(s, now);

    *is_late = false;
    if (id == STG_SIM_NONE || s->queued == 0 ||
        now - s->requests[id].reached_at < s->options.shed_target)
        c->first_above_at = 0;
    else if (c->first_above_at == 0)
        c->first_above_at = stg_ns_add(now, s->options.shed_interval);
    else
        *is_late = now >= c->first_above_at;
    return id;
}

/* The waits are too long: from now on some are dropped, at once as often as was
 * needed if that is not long ago. */
static void begin_to_drop(stg_sim_service *s, stg_ns now)
{
    stg_codel *c = &s->codel;
    uint32_t more = c->count - c->last_count;

    c->is_dropping = true;
    c->count = 1;
    if (more > 1 && stg_ns_sub(now, c->drop_next) <
                        stg_ns_mul(s->options.shed_interval, 16))
        c->count = more;
    c->drop_next = control(s, now, c->count);
    c->last_count = c->count;
}

/* deque() of RFC 8289, section 5.5. */
static uint32_t next_by_codel(stg_sim_service *s, stg_ns now)
{
    stg_codel *c = &s->codel;
    bool is_late;
    uint32_t id = take_for_codel(s, now, &is_late);

    if (!c->is_dropping && is_late) {
        shed(s, id, now);
        id = take_for_codel(s, now, &is_late);
        begin_to_drop(s, now);
        return id;
    }
    c->is_dropping = c->is_dropping && is_late;
    while (c->is_dropping && now >= c->drop_next) {
        shed(s, id, now);
        c->count++;
        id = take_for_codel(s, now, &is_late);
        c->is_dropping = is_late;
        if (is_late)
            c->drop_next = control(s, c->drop_next, c->count);
    }
    return id;
}

/* -- the next one ----------------------------------------------------------- */

uint32_t stg_sim_queue_next(stg_sim_service *s, stg_ns now)
{
    if (s->options.shed == STG_SIM_SHED_CODEL)
        return next_by_codel(s, now);
    if (s->options.shed == STG_SIM_SHED_WAIT)
        shed_late(s, now);
    return take_next(s, now);
}

/* To CoDel its wait was 0. */
void stg_sim_queue_pass(stg_sim_service *s)
{
    s->codel.first_above_at = 0;
    s->codel.is_dropping = false;
}
