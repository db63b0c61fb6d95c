#include "sim/resource.h"

/* What clients contend for, as one call in and one answer out. Calls come in
 * the order of time, so the answer to a call, and when it comes, is known at
 * its arrival: a lock is the time until which it is held, workers are a heap
 * of the times at which each is free, a rate is a counter of one window.
 *
 * A call out of order would be answered from a later state. The optimistic
 * resource is inline, in the header; it is the hot one. */

const stg_outcome stg_server_success = {.fault = STG_FAULT_NONE};

bool stg_server_init(stg_server *s, const stg_resource *resource,
                     const stg_memory *memory)
{
    size_t ring = 0;

    *s = (stg_server){.resource = *resource, .memory = memory};
    stg_sim_heap_init(&s->free_at, memory);
    if (resource->kind == STG_RESOURCE_WORKERS) {
        if (resource->queue != UINT32_MAX)
            ring = resource->queue;
        if (ring > 0)
            s->starts = memory->allocate(memory->ctx, ring * sizeof *s->starts);
        if ((ring > 0 && s->starts == NULL) ||
            !stg_sim_heap_reserve(&s->free_at, resource->count)) {
            stg_server_close(s);
            return false;
        }
    }
    return true;
}

void stg_server_close(stg_server *s)
{
    stg_sim_heap_close(&s->free_at);
    if (s->starts != NULL)
        s->memory->release(s->memory->ctx, s->starts);
    s->starts = NULL;
}

void stg_server_clear(stg_server *s, stg_rng rng)
{
    s->rng = rng;
    s->changed_at = 0;
    s->window = UINT64_MAX;
    s->used = 0;
    s->first = s->waiting = 0;
    stg_sim_heap_clear(&s->free_at);
    if (s->resource.kind == STG_RESOURCE_WORKERS)
        for (uint32_t i = 0; i < s->resource.count; i++)
            (void)stg_sim_heap_push(&s->free_at, 0); // there is room
}

static stg_resource_answer succeed(stg_ns at)
{
    return (stg_resource_answer){true, at, &stg_server_success};
}

static stg_resource_answer refuse(const stg_server *s, stg_ns at)
{
    return (stg_resource_answer){.at = at, .outcome = &s->resource.fault};
}

static stg_resource_answer take_lock(stg_server *s, stg_ns at)
{
    if (at < s->changed_at)
        return refuse(s, at);
    s->changed_at =
        stg_ns_add(at, stg_distribution_draw(&s->resource.service, &s->rng));
    return succeed(s->changed_at);
}

/* Windows are fixed and begin at multiples of the width, so twice the count may
 * pass around a border. Retry-After (says_when) is the rest of the window. */
static stg_resource_answer count_call(stg_server *s, stg_ns at)
{
    uint64_t window = at / s->resource.width;
    stg_resource_answer refused;

    if (window != s->window)
        s->used = 0;
    s->window = window;
    if (s->used < s->resource.count) {
        s->used++;
        return succeed(at);
    }
    refused = refuse(s, at);
    if (s->resource.says_when) {
        s->late = s->resource.fault;
        s->late.delay = s->resource.width - (at - window * s->resource.width);
        refused.outcome = &s->late;
    }
    return refused;
}

/* Those whose work has begun wait no more. */
static void leave_queue(stg_server *s, stg_ns at)
{
    while (s->waiting > 0 && s->starts[s->first] <= at) {
        s->first = s->first + 1 < s->resource.queue ? s->first + 1 : 0;
        s->waiting--;
    }
}

static void join_queue(stg_server *s, stg_ns start_at)
{
    uint64_t last = (uint64_t)s->first + s->waiting;

    s->starts[last % s->resource.queue] = start_at;
    s->waiting++;
}

/* Service is first come, first served, so the start of each is known when it
 * comes: the earliest time at which a worker is free. Without a bound of the
 * queue nobody is counted; with one, the ring holds the starts of those that
 * wait, which never go down. */
static stg_resource_answer work(stg_server *s, stg_ns at)
{
    stg_ns free_at = s->free_at.keys[0], end_at;
    bool waits = free_at > at;
    uint32_t queue = s->resource.queue;

    if (s->waiting > 0)
        leave_queue(s, at);
    if (waits && queue != UINT32_MAX && s->waiting >= queue)
        return refuse(s, at);
    if (waits && queue != UINT32_MAX)
        join_queue(s, free_at);
    (void)stg_sim_heap_pop(&s->free_at);
    end_at = stg_ns_add(stg_ns_max(at, free_at),
                        stg_distribution_draw(&s->resource.service, &s->rng));
    (void)stg_sim_heap_push(&s->free_at, end_at); // there is room
    return succeed(end_at);
}

double stg_resource_capacity(const stg_resource *resource)
{
    double service = (double)stg_distribution_mean(&resource->service) / 1e9;

    switch (resource->kind) {
    case STG_RESOURCE_WORKERS:
        return service > 0 ? resource->count / service : 0;
    case STG_RESOURCE_LOCK:
        return service > 0 ? 1 / service : 0;
    case STG_RESOURCE_RATE:
        return resource->count / ((double)resource->width / 1e9);
    case STG_RESOURCE_ROUND:
        return 1 / ((double)resource->width / 1e9);
    case STG_RESOURCE_OPTIMISTIC:
        break;
    }
    return 0;
}

static stg_resource_answer enter_round(stg_server *s, stg_ns at)
{
    uint64_t window = at / s->resource.width;
    stg_ns end_at =
        stg_ns_mul(s->resource.width, window + 1 > 0 ? window + 1 : window);

    if (window == s->window)
        return refuse(s, end_at);
    s->window = window;
    return succeed(end_at);
}

stg_resource_answer stg_server_call_other(stg_server *s, stg_ns at)
{
    switch (s->resource.kind) {
    case STG_RESOURCE_OPTIMISTIC: // where it is called
        break;
    case STG_RESOURCE_LOCK:
        return take_lock(s, at);
    case STG_RESOURCE_RATE:
        return count_call(s, at);
    case STG_RESOURCE_WORKERS:
        return work(s, at);
    case STG_RESOURCE_ROUND:
        return enter_round(s, at);
    }
    return refuse(s, at);
}
