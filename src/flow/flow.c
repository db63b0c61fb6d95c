#include "flow/flow.h"

#include <string.h>

#include "core/options.h"
#include "flow/state.h"

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
    if (at < f->origin_at)
        return stg_ns_sub(f->o.wall_at, f->origin_at - at);
    return stg_ns_add(f->o.wall_at, at - f->origin_at);
}

stg_ns stg_flow_from_wall(const stg_flow *f, stg_ns wall_at)
{
    if (wall_at < f->o.wall_at)
        return stg_ns_sub(f->origin_at, f->o.wall_at - wall_at);
    return stg_ns_add(f->origin_at, wall_at - f->o.wall_at);
}

stg_message *stg_flow_message(stg_flow *f, uint32_t partition,
                              const stg_record *r)
{
    stg_message *m = stg_flow_allocate(f, sizeof *m + r->size);

    if (m == NULL)
        return NULL;
    m->position = r->position;
    m->key = r->key;
    m->partition = partition;
    m->refs = 1;
    m->created_at = r->created_at;
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

    for (uint32_t p = 0; p < f->partition_count; p++) {
        stg_partition *partition = &f->partitions[p];
        uint64_t count = partition->furthest - partition->window.first;

        if (partition->window.first < partition->furthest &&
            (largest == NULL ||
             count > largest->furthest - largest->window.first))
            largest = partition;
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
void stg_flow_tell(stg_flow *f, uint32_t lane, uint32_t partition,
                   stg_tell what, uint64_t count, stg_ns until_at)
{
    stg_told *t = stg_flow_allocate(f, sizeof *t);

    if (t == NULL)
        return;
    *t = (stg_told){.lane = lane,
                    .partition = partition,
                    .what = what,
                    .count = count,
                    .until_at = until_at};
    stg_list_push(&f->tells, &t->link);
}

/* -- a flow ---------------------------------------------------------------- */

stg_flow_options stg_flow_options_default(void)
{
    return (stg_flow_options){.memory_max = (size_t)64 << 20,
                              .in_flight_max = 10000,
                              .drain = 10 * STG_S};
}

stg_status stg_flow_refuse(stg_error *err, stg_status status, const char *why)
{
    if (err != NULL) {
        *err = (stg_error){.line = 0};
        memcpy(err->text, why, strlen(why) + 1);
    }
    return status;
}

static stg_status check_options(const stg_flow_options *o, stg_error *err)
{
    if (o->memory_max < (1 << 20) || o->memory_max > (UINT64_C(1) << 40))
        return stg_flow_refuse(err, STG_INVALID,
                               "memory_max: wanted 1 MiB to 1 TiB");
    if (o->in_flight_max < 1 || o->in_flight_max > 1000000)
        return stg_flow_refuse(err, STG_INVALID,
                               "in_flight_max: wanted 1 to 1000000");
    return stg_budget_check(&o->budget, err);
}

stg_status stg_flow_new(stg_flow **flow, const stg_memory *memory,
                        const stg_flow_options *o, stg_ns now, stg_error *err)
{
    stg_list *lists[10];
    stg_flow *f;

    if (check_options(o, err) != STG_OK)
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
    lists[2] = &f->starved;
    lists[3] = &f->laggards;
    lists[4] = &f->fetches;
    lists[5] = &f->cancels;
    lists[6] = &f->tells;
    lists[7] = &f->removed;
    lists[8] = &f->checkpoint.pending;
    lists[9] = &f->added;
    for (size_t i = 0; i < sizeof lists / sizeof(stg_list *); i++)
        stg_list_init(lists[i]);
    stg_list_init(&f->checkpoint.in_group);
    *flow = f;
    return STG_OK;
}

stg_status stg_flow_change(stg_flow *f, const stg_flow_options *o, stg_ns now,
                           stg_error *err)
{
    stg_budget budget;

    if (check_options(o, err) != STG_OK)
        return STG_INVALID;
    stg_budget_init(&budget, &o->budget);
    if (stg_budget_options_equal(&o->budget, &f->o.budget))
        budget = f->budget;
    else
        stg_budget_keep(&budget, &f->budget, now);
    f->budget = budget;
    f->o.budget = o->budget;
    f->o.in_flight_max = o->in_flight_max;
    f->o.drain = o->drain;
    f->is_lowered = f->shared > o->in_flight_max;
    for (uint32_t i = 0; i < f->lane_capacity; i++)
        if (f->lanes[i] != NULL)
            stg_lane_wake(f, f->lanes[i]); // there may be more slots
    return STG_OK;
}

static void free_partition(stg_flow *f, stg_partition *partition)
{
    while (partition->window.first < partition->window.end)
        stg_flow_drop(f, stg_window_shift(&partition->window));
    stg_flow_release(f, partition->window.messages);
    stg_flow_release(f, partition->slices);
}

void stg_flow_free(stg_flow *f)
{
    stg_link *at;

    for (uint32_t i = 0; i < f->lane_capacity; i++)
        if (f->lanes[i] != NULL)
            stg_lane_free(f, f->lanes[i]);
    for (uint32_t p = 0; p < f->partition_count; p++)
        free_partition(f, &f->partitions[p]);
    while ((at = stg_list_shift(&f->tells)) != NULL)
        stg_flow_release(f, STG_HOLDER(at, stg_told, link));
    stg_checkpoint_free(f);
    stg_flow_release(f, f->partitions);
    stg_flow_release(f, f->lanes);
    stg_flow_release(f, f);
}

/* -- at the start ---------------------------------------------------------- */

stg_status stg_flow_give(stg_flow *f, const stg_gift *g, stg_ns now,
                         stg_error *err)
{
    uint32_t partition = g->partition;
    uint64_t begin = g->begin;
    stg_partition *partitions;

    (void)now;
    if (partition != f->partition_count || partition >= STG_PARTITIONS_MAX ||
        f->lane_count > 0 || f->is_started)
        return stg_flow_refuse(err, STG_INVALID,
                               "partition: wanted the next number");
    partitions = stg_flow_allocate(f, (partition + 1) * sizeof(stg_partition));
    if (partitions == NULL)
        return STG_IO;
    if (partition > 0)
        memcpy(partitions, f->partitions, partition * sizeof *partitions);
    partitions[partition] = (stg_partition){.begin = begin};
    stg_window_init(&partitions[partition].window, begin);
    stg_flow_release(f, f->partitions);
    f->partitions = partitions;
    f->partition_count++;
    return STG_OK;
}

uint64_t stg_flow_assignment(const stg_flow *f, uint32_t partition)
{
    return partition < f->partition_count ? partition + 1 : 0;
}

stg_status stg_flow_restore(stg_flow *f, const stg_cursor *c)
{
    stg_lane *l = stg_flow_lane(f, c->lane);
    stg_place *place;

    if (l == NULL || c->partition >= f->partition_count || f->is_started)
        return STG_INVALID;
    place = &l->places[c->partition];
    if (c->settled_count > 0) {
        place->restored =
            stg_flow_allocate(f, c->settled_count * sizeof *c->settled);
        if (place->restored == NULL)
            return STG_IO;
        memcpy(place->restored, c->settled,
               c->settled_count * sizeof *c->settled);
    }
    place->restored_count = c->settled_count;
    place->next = place->durable = c->base;
    place->is_restored = true;
    place->routed = c->routed;
    place->delivered = c->delivered;
    place->dead = c->dead;
    place->cancelled = c->cancelled;
    place->rows = c->parked;
    place->replays = c->replays;
    place->behind_at = c->oldest_at;
    stg_order_restore(l, c);
    if (c->parked > c->replays)
        l->shelves[STG_SHELF_FIRST].is_all = false;
    if (c->replays > 0)
        l->shelves[STG_SHELF_REPLAYS].is_all = false;
    return STG_OK;
}

/* The furthest of those that the store knows; what the log has lost nobody
 * reads. */
static uint64_t find_start(const stg_flow *f, uint32_t p)
{
    uint64_t furthest = f->partitions[p].window.next;

    for (uint32_t i = 0; i < f->lane_capacity; i++)
        if (f->lanes[i] != NULL && f->lanes[i]->places[p].is_restored)
            furthest = stg_ns_max(furthest, f->lanes[i]->places[p].next);
    return furthest;
}

static bool is_restored(const stg_flow *f, const stg_lane *l)
{
    for (uint32_t p = 0; p < f->partition_count; p++)
        if (!l->places[p].is_restored)
            return false;
    return true;
}

void stg_flow_start(stg_flow *f, stg_ns now)
{
    (void)now;
    f->is_started = true;
    for (uint32_t p = 0; p < f->partition_count; p++) {
        uint64_t start = find_start(f, p);

        stg_window_init(&f->partitions[p].window, start);
        for (uint32_t i = 0; i < f->lane_capacity; i++) {
            stg_lane *l = f->lanes[i];

            if (l == NULL)
                continue;
            if (!l->places[p].is_restored) {
                stg_place_begin(f, l, p);
                stg_place_mark(f, l, p, STG_SLICE_MUST);
            }
            stg_place_join(f, l, p);
            stg_lane_wake(f, l);
        }
    }
    for (uint32_t i = 0; i < f->lane_capacity; i++)
        if (f->lanes[i] != NULL)
            f->lanes[i]->is_new = !is_restored(f, f->lanes[i]);
    stg_watermark_raise(f);
}

/* -- the end --------------------------------------------------------------- */

void stg_flow_stop(stg_flow *f, stg_ns now)
{
    if (f->is_stopping)
        return;
    f->is_stopping = true;
    f->drain_at = stg_ns_add(now, f->o.drain);
}

static void cut(stg_flow *f)
{
    f->is_cut = f->in_flight > 0;
    f->was_cut = f->is_cut;
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

    if (!f->is_stopping || f->in_flight > 0 || c->is_out)
        return false;
    if (c->is_full && c->is_dirty && !f->is_last_bare) {
        f->is_last_bare = c->is_bare_due = true;
        c->retry_at = 0;
        return false;
    }
    if (c->is_full && !c->is_bare_due)
        return true;
    return c->pending_count == 0 && !c->is_dirty && !c->is_must;
}

static bool stop_next(stg_flow *f, stg_action *action)
{
    if (f->is_stopped || !is_over(f))
        return false;
    f->is_stopped = true;
    *action = (stg_action){.kind = STG_ACTION_STOPPED};
    action->is_clean = !f->was_cut && f->checkpoint.pending_count == 0;
    return true;
}

/* -- actions --------------------------------------------------------------- */

static bool tell_next(stg_flow *f, stg_action *action)
{
    stg_told *t = STG_HOLDER(stg_list_shift(&f->tells), stg_told, link);

    if (t == NULL)
        return false;
    *action = (stg_action){
        .kind = STG_ACTION_TELL, .lane = t->lane, .partition = t->partition};
    action->tell.what = t->what;
    action->tell.count = t->count;
    action->tell.until_at = t->until_at;
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

static bool add_next(stg_flow *f, stg_action *action)
{
    stg_lane *l = STG_HOLDER(stg_list_shift(&f->added), stg_lane, added);

    if (l == NULL)
        return false;
    *action = (stg_action){.kind = STG_ACTION_ADDED, .lane = l->number};
    return true;
}

static bool remove_next(stg_flow *f, stg_action *action)
{
    stg_lane *l = STG_HOLDER(stg_list_first(&f->removed), stg_lane, link);

    if (l == NULL)
        return false;
    *action = (stg_action){.kind = STG_ACTION_REMOVED, .lane = l->number};
    stg_lane_free(f, l);
    return true;
}

bool stg_flow_next(stg_flow *f, stg_action *action, stg_ns now)
{
    if (f->is_stopping && !f->is_cut && now >= f->drain_at)
        cut(f);
    return tell_next(f, action) || cancel_next(f, action) ||
           stg_dispatch_next(f, action, now) || add_next(f, action) ||
           remove_next(f, action) || stg_checkpoint_next(f, action, now) ||
           stg_watermark_next(f, action) || stg_reader_next(f, action, now) ||
           stop_next(f, action) || stg_checkpoint_next(f, action, now);
}

stg_ns stg_flow_wake_at(const stg_flow *f)
{
    stg_ns at = stg_checkpoint_at(f);

    if (f->is_stopping && f->in_flight > 0 && !f->is_cut)
        at = stg_ns_min(at, f->drain_at);
    if (!f->is_stopping && f->timers.top != NULL)
        at = stg_ns_min(at, f->timers.top->key);
    return at;
}
