#include "sim/engine.h"

/* The rare part of the loop over events; what each event needs is inline in the
 * header. Everything that may end a run is looked at only when `events` reaches
 * `look_at`: every LOOK_EVERY events, at the limit of events, or at once after
 * stg_engine_finish(), which sets it to 0. */

enum {
    LOOK_EVERY = 65536,     /* events */
    INSTANT_MOST = 1 << 22, /* that one instant has, and some for each of
                               those that wait: all may come at one */
    INSTANT_EACH = 8,
};

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
    e->instant = 0;
    e->instant_most = UINT64_MAX;
    e->end = STG_END_NONE;
}

/* From now on it ends at once. */
void stg_engine_finish(stg_engine *e, stg_engine_end end)
{
    e->end = end;
    e->look_at = 0;
}

/* There was no memory for an event. */
void stg_engine_lose(stg_engine *e)
{
    stg_engine_finish(e, STG_END_MEMORY);
}

/* No event came out. */
void stg_engine_run_dry(stg_engine *e)
{
    bool is_empty = stg_sim_queue_count(&e->queue) == 0;

    stg_engine_finish(e, is_empty ? STG_END_EMPTY : STG_END_MEMORY);
}

/* Whether one instant has had more events than an honest model makes in it.
 * Checked at looks only, so an instant is found some LOOK_EVERY events late. */
static bool stands_still(stg_engine *e)
{
    if (e->now == e->instant && e->instant_most != UINT64_MAX)
        return e->events > e->instant_most;
    e->instant = e->now;
    e->instant_most = e->events + INSTANT_MOST +
                      INSTANT_EACH * (uint64_t)stg_sim_queue_count(&e->queue);
    return false;
}

/* Whether it goes on; and for how long without a look. */
bool stg_engine_look(stg_engine *e)
{
    if (e->end != STG_END_NONE)
        return false;
    if (e->events >= e->events_max)
        stg_engine_finish(e, STG_END_EVENTS);
    else if (e->stop != NULL &&
             atomic_load_explicit(e->stop, memory_order_relaxed))
        stg_engine_finish(e, STG_END_STOPPED);
    else if (stands_still(e))
        stg_engine_finish(e, STG_END_INSTANT);
    else
        e->look_at = stg_ns_min(e->events + LOOK_EVERY, e->events_max);
    return e->end == STG_END_NONE;
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
        [STG_END_INSTANT] = "nothing took any time",
    };

    return texts[end];
}
