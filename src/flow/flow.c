#include "flow/flow.h"

#include <assert.h>
#include <string.h>

#include "core/options.h"
#include "flow/state.h"

/* The flow as a whole: its memory, its clock, its stop, and the order in which it
 * gives out actions.
 *
 * Messages are counted by references and bounded by memory_max. Room is made by
 * what can be read again: first parked rows (the store has them), then the oldest
 * messages of the largest window (the log has them). What an attempt needs is
 * never evicted.
 *
 * stg_flow_next() asks the parts in a fixed order, so that a run depends on its
 * input alone. Checkpoints come after starts, for what a start settles joins the
 * group; they are asked once more at the end, since the parts between may have
 * made one due. */

/* -- memory and time ------------------------------------------------------- */

void *stg_flow_allocate(stg_flow *f, size_t size)
{
    return f->memory.allocate(f->memory.ctx, size);
}

void stg_flow_release(stg_flow *f, void *bytes)
{
    if (bytes != NULL)
        f->memory.release(f->memory.ctx, bytes);
}

/* Within an incarnation the wall clock is the monotonic one, moved: no step of
 * the real one matters. */
stg_ns stg_flow_wall(const stg_flow *f, stg_ns at)
{
    return stg_ns_add(f->o.wall_at, stg_ns_sub(at, f->origin_at));
}

stg_ns stg_flow_from_wall(const stg_flow *f, stg_ns wall_at)
{
    if (wall_at < f->o.wall_at)
        return stg_ns_sub(f->origin_at, f->o.wall_at - wall_at);
    return stg_ns_add(f->origin_at, wall_at - f->o.wall_at);
}

/* The message in one piece with its bytes, which count as held until the last lane
 * has let go of it. */
stg_message *stg_flow_message(stg_flow *f, const stg_partition *p,
                              const stg_record *r)
{
    stg_message *m = stg_flow_allocate(f, sizeof *m + r->size);

    if (m == NULL)
        return NULL;
    m->position = r->position;
    m->key = r->key;
    m->partition = p->number;
    m->slot = p->slot;
    m->headers_lost = r->headers_lost;
    m->true_size =
        (uint32_t)(r->true_size < UINT32_MAX ? r->true_size : UINT32_MAX);
    m->refs = 1;
    m->in_flight = 0;
    m->lost_from = m->lost_end = 0;
    m->created_at = r->created_at;
    m->not_before = r->not_before;
    m->expires_at = r->expires_at;
    m->size = r->size;
    if (r->size > 0)
        memcpy(m->bytes, r->bytes, r->size);
    f->held += r->size;
    return m;
}

void stg_flow_drop(stg_flow *f, stg_message *m)
{
    if (m == NULL || --m->refs > 0)
        return;
    f->held -= m->size;
    stg_flow_release(f, m);
}

static bool evict_rows(stg_flow *f)
{
    if (f->parked_count == 0)
        return false;
    for (uint32_t i = 0; i < f->lane_capacity; i++) {
        stg_lane *l;

        f->evicted = (f->evicted + 1) % f->lane_capacity;
        l = f->lanes[f->evicted];
        if (l != NULL && stg_parking_evict(f, l)) {
            stg_lane_wake(f, l);
            return true;
        }
    }
    return false;
}

/* Not what the furthest lane is still to take. */
static bool evict_message(stg_flow *f)
{
    stg_partition *largest = NULL;

    for (uint32_t i = 0; i < f->partition_count; i++) {
        stg_partition *p = f->partitions[i];
        uint64_t count = p->furthest - p->window.first;

        if (p->window.first < p->furthest &&
            (largest == NULL ||
             count > largest->furthest - largest->window.first))
            largest = p;
    }
    if (largest == NULL)
        return false;
    stg_flow_drop(f, stg_window_shift(&largest->window));
    return true;
}

bool stg_flow_make_room(stg_flow *f, size_t bytes)
{
    while (f->held + bytes > f->o.memory_max)
        if (!evict_rows(f) && !evict_message(f))
            return false;
    return true;
}

/* A tell is a favour: without memory there is none. */
stg_notice *stg_flow_tell(stg_flow *f, uint32_t lane, uint32_t partition,
                          stg_tell what, uint64_t count, stg_ns until_at)
{
    stg_notice *t = stg_flow_allocate(f, sizeof *t);

    if (t == NULL)
        return NULL;
    *t = (stg_notice){.lane = lane,
                      .partition = partition,
                      .what = what,
                      .count = count,
                      .until_at = until_at};
    stg_list_push(&f->notices, &t->link);
    return t;
}

/* -- a flow ---------------------------------------------------------------- */

stg_flow_options stg_flow_options_default(void)
{
    return (stg_flow_options){.memory_max = (size_t)64 << 20,
                              .in_flight_max = 10000,
                              .drain = 10 * STG_S,
                              .budget_waits = true};
}

stg_status stg_flow_refuse(stg_error *err, stg_status status, const char *why)
{
    if (err != NULL) {
        *err = (stg_error){.line = 0};
        memcpy(err->text, why, strlen(why) + 1);
    }
    return status;
}

stg_status stg_flow_options_check(const stg_flow_options *o, stg_error *err)
{
    if (o->memory_max < (1 << 20) || (o->memory_max - 1) >> 20 >= 1 << 20)
        return stg_flow_refuse(err, STG_INVALID,
                               "memory_max: expected 1 MiB to 1 TiB");
    if (o->in_flight_max < 1 || o->in_flight_max > 1000000)
        return stg_flow_refuse(err, STG_INVALID,
                               "in_flight_max: expected 1 to 1000000");
    return stg_budget_check(&o->budget, err);
}

stg_status stg_flow_new(stg_flow **flow, const stg_memory *memory,
                        const stg_flow_options *o, stg_ns now, stg_error *err)
{
    stg_list *lists[13];
    stg_flow *f;

    if (stg_flow_options_check(o, err) != STG_OK)
        return STG_INVALID;
    f = memory->allocate(memory->ctx, sizeof *f);
    if (f == NULL)
        return stg_flow_refuse(err, STG_IO, "there is no memory for a flow");
    *f = (stg_flow){.o = *o,
                    .memory = *memory,
                    .rng = stg_rng_seed(o->seed),
                    .origin_at = now,
                    .message_max = o->memory_max / 16,
                    .average = 1024};
    stg_budget_init(&f->budget, &o->budget);
    lists[0] = &f->ready;
    lists[1] = &f->idle;
    lists[2] = &f->no_memory;
    lists[3] = &f->catching_up;
    lists[4] = &f->fetches;
    lists[5] = &f->cancels;
    lists[6] = &f->notices;
    lists[7] = &f->removed;
    lists[8] = &f->checkpoint.pending;
    lists[9] = &f->added;
    lists[10] = &f->uplink.lanes;
    lists[11] = &f->proxies;
    lists[12] = &f->uplinks_down;
    for (size_t i = 0; i < sizeof lists / sizeof(stg_list *); i++)
        stg_list_init(lists[i]);
    stg_list_init(&f->checkpoint.in_group);
    *flow = f;
    return STG_OK;
}

/* All of them, but for what flow was made with. */
static void flow_take_options(stg_flow *f, const stg_flow_options *o)
{
    const stg_flow_options old = f->o;

    f->o = *o;
    f->o.memory_max = old.memory_max;
    f->o.wall_at = old.wall_at;
    f->o.seed = old.seed;
}

stg_status stg_flow_change(stg_flow *f, const stg_flow_options *o, stg_ns now,
                           stg_error *err)
{
    stg_budget budget;

    if (stg_flow_options_check(o, err) != STG_OK)
        return STG_INVALID;
    stg_budget_init(&budget, &o->budget);
    if (stg_budget_options_equal(&o->budget, &f->o.budget))
        budget = f->budget;
    else
        stg_budget_keep(&budget, &f->budget, now);
    for (uint32_t i = 0; i < f->lane_capacity; i++)
        if (f->lanes[i] != NULL && o->budget.kind != f->o.budget.kind)
            stg_lane_adopt(f->lanes[i], &budget);
    f->budget = budget;
    flow_take_options(f, o);
    f->is_lowered = f->shared > o->in_flight_max;
    for (uint32_t i = 0; i < f->lane_capacity; i++)
        if (f->lanes[i] != NULL)
            stg_lane_ask_budget(f, f->lanes[i]); // there may be more slots, too
    return STG_OK;
}

void stg_flow_free(stg_flow *f)
{
    stg_link *at;
    void *delivery;

    for (uint32_t i = 0; i < f->lane_capacity; i++)
        if (f->lanes[i] != NULL)
            stg_lane_free(f, f->lanes[i]);
    while (f->partition_count > 0)
        stg_partition_free(f, f->partitions[0]);
    while ((at = stg_list_shift(&f->notices)) != NULL)
        stg_flow_release(f, STG_HOLDER(at, stg_notice, link));
    stg_checkpoint_free(f);
    while ((delivery = stg_pool_take(&f->deliveries)) != NULL)
        stg_flow_release(f, delivery);
    stg_flow_release(f, f->partitions);
    stg_flow_release(f, f->slots);
    stg_flow_release(f, f->lanes);
    stg_flow_release(f, f);
}

/* -- the end --------------------------------------------------------------- */

void stg_flow_stop(stg_flow *f, stg_ns now)
{
    if (f->stop != STG_STOP_NOT)
        return;
    f->stop = STG_STOP_DRAINING;
    f->drain_at = stg_ns_add(now, f->o.drain);
}

/* The drain is over: attempts under way are cancelled. What classify_cut() says of
 * them is in settle.c. */
static void cut(stg_flow *f)
{
    if (f->in_flight > 0)
        f->stop = STG_STOP_CUT;
    for (uint32_t i = 0; i < f->lane_capacity; i++) {
        stg_lane *l = f->lanes[i];

        if (l == NULL)
            continue;
        for (stg_link *at = stg_list_first(&l->busy); at != NULL;
             at = stg_list_next(&l->busy, at)) {
            stg_delivery *d = STG_HOLDER(at, stg_delivery, busy);

            if (d->state != STG_DELIVERY_IN_FLIGHT)
                continue;
            d->is_cut = true;
            if (!stg_list_has(&d->change))
                stg_list_push(&f->cancels, &d->change);
        }
    }
}

/* Nothing is left to do; or what is left has no room in the store, where at
 * least the cursors are tried once more. */
static bool is_over(stg_flow *f)
{
    stg_checkpoint *c = &f->checkpoint;

    if (f->stop == STG_STOP_NOT || f->in_flight > 0 ||
        c->state != STG_GROUP_NONE)
        return false;
    // A refused group is marked again: else stg_checkpoint_resume().
    assert(!c->is_full || c->marks != 0);
    if (c->is_full && !f->is_last_bare) {
        f->is_last_bare = true;
        c->is_bare_due = c->pending_count > 0;
        c->retry_at = 0;
        return false;
    }
    if (c->is_full && !c->is_bare_due)
        return true;
    return c->pending_count == 0 && c->marks == 0;
}

static bool stop_next(stg_flow *f, stg_action *action)
{
    if (f->stop == STG_STOP_DONE || !is_over(f))
        return false;
    *action = (stg_action){.kind = STG_ACTION_STOPPED};
    action->is_clean = f->stop != STG_STOP_CUT &&
                       f->checkpoint.pending_count == 0 &&
                       !f->checkpoint.is_full;
    f->stop = STG_STOP_DONE;
    return true;
}

/* -- actions --------------------------------------------------------------- */

static bool tell_next(stg_flow *f, stg_action *action)
{
    stg_notice *t = STG_HOLDER(stg_list_shift(&f->notices), stg_notice, link);

    if (t == NULL)
        return false;
    *action = (stg_action){
        .kind = STG_ACTION_TELL, .lane = t->lane, .partition = t->partition};
    action->tell.what = t->what;
    action->tell.count = t->count;
    action->tell.until_at = t->until_at;
    action->tell.proxy = t->proxy;
    stg_flow_release(f, t);
    return true;
}

static bool cancel_next(stg_flow *f, stg_action *action)
{
    stg_delivery *d =
        STG_HOLDER(stg_list_shift(&f->cancels), stg_delivery, change);

    if (d == NULL)
        return false;
    *action = (stg_action){.kind = STG_ACTION_CANCEL, .lane = d->lane->number};
    action->cancel.delivery = d;
    action->cancel.attempt = d->attempt;
    return true;
}

/* A lane that was added, and whose beginning is durable: STG_ACTION_ADDED. A
 * partition may have come since: then it is said later. */
static bool tell_added(stg_flow *f, stg_action *action)
{
    stg_link *at;

    while ((at = stg_list_shift(&f->added)) != NULL) {
        stg_lane *l = STG_HOLDER(at, stg_lane, added);

        if (stg_lane_is_durable(f, l)) {
            *action = (stg_action){.kind = STG_ACTION_ADDED, .lane = l->number};
            return true;
        }
        l->is_new = true;
    }
    return false;
}

/* A group that is out may name the lane once more, and its number may be given to
 * another: both wait for the answer. */
static bool remove_next(stg_flow *f, stg_action *action)
{
    stg_lane *l = STG_HOLDER(stg_list_first(&f->removed), stg_lane, link);

    if (l == NULL || f->checkpoint.state != STG_GROUP_NONE)
        return false;
    *action = (stg_action){.kind = STG_ACTION_REMOVED, .lane = l->number};
    stg_lane_free(f, l);
    stg_watermark_raise_all(f);
    return true;
}

bool stg_flow_next(stg_flow *f, stg_action *action, stg_ns now)
{
    f->now = now;
    if (f->stop == STG_STOP_DRAINING && now >= f->drain_at)
        cut(f);
    if (f->revoking > 0) {
        stg_revoke_cut(f, now);
        stg_checkpoint_strip(f);
    }
    return tell_next(f, action) || cancel_next(f, action) ||
           stg_dispatch_next(f, action, now) || tell_added(f, action) ||
           remove_next(f, action) || stg_checkpoint_next(f, action, now) ||
           stg_watermark_next(f, action) || stg_revoke_next(f, action, now) ||
           stg_reader_next(f, action, now) || stop_next(f, action) ||
           stg_checkpoint_next(f, action, now) || tell_next(f, action);
}

bool stg_flow_next_start(stg_flow *f, stg_action *action, stg_ns now)
{
    f->now = now;
    return stg_dispatch_next(f, action, now);
}

stg_ns stg_flow_wake_at(const stg_flow *f)
{
    stg_ns at = stg_checkpoint_at(f);

    if (f->stop == STG_STOP_DRAINING && f->in_flight > 0)
        at = stg_ns_min(at, f->drain_at);
    if (f->stop == STG_STOP_NOT && f->timers.top != NULL)
        at = stg_ns_min(at, f->timers.top->key);
    if (f->stop == STG_STOP_NOT)
        at = stg_ns_min(at, stg_uplink_at(f));
    if (f->stop == STG_STOP_NOT && f->read_at > f->now)
        at = stg_ns_min(at, f->read_at);
    return f->revoking > 0 ? stg_ns_min(at, stg_revoke_at(f)) : at;
}
