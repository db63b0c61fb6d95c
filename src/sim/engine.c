#include "sim/engine.h"

enum { LOOK_EVERY = 65536 }; /* events */

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
    e->look_at = 0;
    e->end = STG_END_NONE;
}

void stg_engine_push(stg_engine *e, stg_ns at, uint32_t id)
{
    if (stg_sim_queue_push(&e->queue, at, id))
        return;
    e->end = STG_END_MEMORY;
    e->look_at = 0;
}

static bool finish(stg_engine *e, stg_engine_end end)
{
    e->end = end;
    e->look_at = 0; // from now on it ends at once
    return false;
}

/* Whether it goes on; and for how long without a look. */
static bool look(stg_engine *e)
{
    if (e->end != STG_END_NONE)
        return false;
    if (e->events >= e->events_max)
        return finish(e, STG_END_EVENTS);
    if (e->stop != NULL && atomic_load_explicit(e->stop, memory_order_relaxed))
        return finish(e, STG_END_STOPPED);
    e->look_at = stg_ns_min(e->events + LOOK_EVERY, e->events_max);
    return true;
}

bool stg_engine_next(stg_engine *e, uint32_t *id)
{
    stg_ns at;

    if (e->events >= e->look_at && !look(e))
        return false;
    if (!stg_sim_queue_pop(&e->queue, &at, id))
        return finish(e, stg_sim_queue_count(&e->queue) == 0 ? STG_END_EMPTY
                                                             : STG_END_MEMORY);
    if (at >= e->until_at)
        return finish(e, STG_END_TIME);
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
