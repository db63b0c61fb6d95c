/* engine.h - virtual time: what happens next, until nothing does, or enough
 * has.
 *
 *     stg_engine_init(&e, STG_SIM_QUEUE_AUTO, clients, &memory);
 *     stg_engine_push(&e, at, id);
 *     while (stg_engine_next(&e, &id))
 *         what happens to id at e.now; stg_engine_push() more of it
 *     e.end says why there is no next
 *
 * What touches no state that others see need be no event. Pure; one engine
 * belongs to one thread, but stop may be set by any. */
#ifndef STAGGER_SIM_ENGINE_H
#define STAGGER_SIM_ENGINE_H

#include <stdatomic.h>

#include "sim/queue.h"

typedef enum stg_engine_end {
    STG_END_NONE,    /* not yet */
    STG_END_EMPTY,   /* nothing is left to happen */
    STG_END_TIME,    /* the next event is at until_at or later */
    STG_END_EVENTS,  /* events_max have happened */
    STG_END_STOPPED, /* somebody asked for it */
    STG_END_MEMORY,  /* there was none for an event: the run is lost */
    STG_END_INSTANT, /* time stands still: nothing that happens takes any */
} stg_engine_end;

typedef struct stg_engine {
    stg_sim_queue queue;
    stg_ns now;
    uint64_t events;         /* that have happened */
    stg_ns until_at;         /* STG_NEVER: no limit */
    uint64_t events_max;     /* UINT64_MAX: no limit */
    uint64_t look_at;        /* at so many events: at stop and limits */
    stg_ns instant;          /* when it last looked */
    uint64_t instant_most;   /* events that may have happened at its end */
    const atomic_bool *stop; /* looked at now and then; or NULL */
    stg_engine_end end;
} stg_engine;

/* An engine at time 0 without limits, for ids below `ids`. memory is kept. */
void stg_engine_init(stg_engine *e, stg_sim_queue_kind kind, uint32_t ids,
                     const stg_memory *memory);
void stg_engine_close(stg_engine *e);

/* Back to time 0, without events; limits and memory stay. */
void stg_engine_clear(stg_engine *e);

/* What pushing and taking events rarely need. */
void stg_engine_lose(stg_engine *e);
bool stg_engine_look(stg_engine *e);
void stg_engine_run_dry(stg_engine *e);
void stg_engine_finish(stg_engine *e, stg_engine_end end);

/* id has an event at `at`, now or later. If there is no memory for it the next
 * event is the end. */
static inline void stg_engine_push(stg_engine *e, stg_ns at, uint32_t id)
{
    if (!stg_sim_queue_push(&e->queue, at, id))
        stg_engine_lose(e);
}

/* The next event: now is its time. Returns false at the end, and from then
 * on. */
static inline bool stg_engine_next(stg_engine *e, uint32_t *id)
{
    stg_ns at;

    if (e->events >= e->look_at && !stg_engine_look(e))
        return false;
    if (!stg_sim_queue_pop(&e->queue, &at, id)) {
        stg_engine_run_dry(e);
        return false;
    }
    if (at >= e->until_at) {
        stg_engine_finish(e, STG_END_TIME);
        return false;
    }
    e->now = at;
    e->events++;
    return true;
}

/* "nothing is left", "the time is over" ... to print. Static. */
const char *stg_engine_end_text(stg_engine_end end);

#endif
