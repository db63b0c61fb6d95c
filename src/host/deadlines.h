/* deadlines.h - all the deadlines of a loop in one heap, with one uv timer.
 *
 * A timer of the loop costs many times what a node in a heap does, so the timer
 * is armed late: only when the earliest deadline is earlier than what it is set
 * for. One that was put off or cleared costs a turn for nothing at most.
 *
 * Instants are uv_hrtime(). All on the loop's thread; nothing here fails. While
 * a deadline is set, the loop is kept alive. */
#ifndef STAGGER_HOST_DEADLINES_H
#define STAGGER_HOST_DEADLINES_H

#include <uv.h>

#include <stagger/ns.h>

#include "base/heap.h"

typedef struct stg_deadline stg_deadline;

/* It has passed, and is not set any more. May set, clear and free any. */
typedef void stg_deadline_fn(stg_deadline *d);

/* Inside of what waits; to be zeroed, and passed to be set, before its use. To
 * be cleared before its memory goes. */
struct stg_deadline {
    stg_node node;
    stg_deadline_fn *passed;
};

typedef struct stg_deadlines {
    uv_timer_t timer;
    stg_heap heap;
    stg_ns armed_at; /* what the timer is set for; STG_NEVER: it is not */
    stg_ns turn_at;  /* while deadlines pass; else 0 */
    void (*closed)(void *ctx);
    void *ctx;
} stg_deadlines;

void stg_deadlines_init(stg_deadlines *all, uv_loop_t *loop);

/* closed is called when the timer's handle is; none is told to pass. */
void stg_deadlines_close(stg_deadlines *all, void (*closed)(void *ctx),
                         void *ctx);

static inline stg_ns stg_deadlines_now(void)
{
    return uv_hrtime();
}

/* The instant for which d is set, or STG_NEVER. */
static inline stg_ns stg_deadline_at(const stg_deadline *d)
{
    return stg_heap_has(&d->node) ? d->node.key : STG_NEVER;
}

/* Sets d, or moves it; STG_NEVER clears it. What is past passes in the loop's
 * next turn, never from within this call. */
void stg_deadline_set(stg_deadlines *all, stg_deadline *d, stg_ns at);

/* Nothing if it is not set. */
void stg_deadline_clear(stg_deadlines *all, stg_deadline *d);

#endif
