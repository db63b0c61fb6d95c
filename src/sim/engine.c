#include "sim/engine.h"

enum { STOP_EVERY = 0xffff }; /* events between looks, less 1 */

void stg_engine_init(stg_engine *e, stg_sim_queue_kind kind, uint32_t ids,
                     const stg_memory *memory)
{
    stg_sim_queue_init(&e->queue, kind, ids, memory);
    e->until_at = STG_NEVER;
    e->events_max = UINT64_MAX;
    e->stop = NULL;
    stg_engine_clear(e);
}

void stg_engine_close(stg_engine *e)
{
    stg_sim_queue_close(&e->queue);
}

void stg_engine_clear(stg_engine *e)
{
    stg_sim_queue_clear(&e->queue);
    e->now = 0;
    e->events = 0;
    e->end = STG_END_NONE;
}

void stg_engine_push(stg_engine *e, stg_ns at, uint32_t id)
{
    if (!stg_sim_queue_push(&e->queue, at, id))
        e->end = STG_END_MEMORY;
}

static bool is_stopped(const stg_engine *e)
{
    return (e->events & STOP_EVERY) == 0 && e->stop != NULL &&
           atomic_load_explicit(e->stop, memory_order_relaxed);
}

/* Why nothing was taken out of the queue. */
static stg_engine_end find_end(const stg_engine *e)
{
    return stg_sim_queue_count(&e->queue) == 0 ? STG_END_EMPTY : STG_END_MEMORY;
}

bool stg_engine_next(stg_engine *e, uint32_t *id)
{
    stg_ns at;

    if (e->end != STG_END_NONE)
        return false;
    if (e->events >= e->events_max)
        e->end = STG_END_EVENTS;
    else if (is_stopped(e))
        e->end = STG_END_STOPPED;
    else if (!stg_sim_queue_pop(&e->queue, &at, id))
        e->end = find_end(e);
    else if (at >= e->until_at)
        e->end = STG_END_TIME;
    if (e->end != STG_END_NONE)
        return false;
    e->now = at;
    e->events++;
    return true;
}

const char *stg_engine_end_text(stg_engine_end end)
{
    static const char *const texts[] = {
        [STG_END_NONE] = "it goes on",
        [STG_END_EMPTY] = "nothing was left to happen",
        [STG_END_TIME] = "the time was over",
        [STG_END_EVENTS] = "there were too many calls",
        [STG_END_STOPPED] = "it was interrupted",
        [STG_END_MEMORY] = "there was no memory",
    };

    return texts[end];
}
