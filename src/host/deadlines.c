/* Many deadlines on one timer of libuv: a heap of them, and the timer set to the
 * first. */
#include "host/deadlines.h"

static void pass(uv_timer_t *timer);

/* The timer counts whole milliseconds of the clock that uv_hrtime() reads. It
 * is rounded up, and so never 0 from within pass(): older versions of libuv run
 * such a one in the same turn, again and again. */
static void arm(stg_deadlines *all, stg_ns at)
{
    uint64_t at_ms = at / STG_MS + (at % STG_MS != 0);
    uint64_t now_ms = uv_now(all->timer.loop);

    all->armed_at = at;
    (void)uv_timer_start(&all->timer, pass, stg_ns_sub(at_ms, now_ms), 0);
}

static stg_deadline *first_of(const stg_deadlines *all)
{
    return (stg_deadline *)all->heap.top; // node is its first field
}

/* What is set meanwhile for now or earlier is put behind this turn by
 * stg_deadline_set(), so the loop has an end. */
static void pass(uv_timer_t *timer)
{
    stg_deadlines *all = timer->data;
    stg_deadline *d;

    all->turn_at = stg_deadlines_now();
    while ((d = first_of(all)) != NULL && d->node.key <= all->turn_at) {
        stg_deadline_clear(all, d);
        d->passed(d);
    }
    all->turn_at = 0;
    all->armed_at = STG_NEVER;
    if (d != NULL && !uv_is_closing((uv_handle_t *)timer))
        arm(all, d->node.key);
}

void stg_deadlines_init(stg_deadlines *all, uv_loop_t *loop)
{
    *all = (stg_deadlines){.armed_at = STG_NEVER};
    (void)uv_timer_init(loop, &all->timer); // cannot fail
    all->timer.data = all;
    uv_unref((uv_handle_t *)&all->timer);
}

static void close_timer(uv_handle_t *handle)
{
    stg_deadlines *all = handle->data;

    all->closed(all->ctx);
}

/* A deadline that is still set must not be cleared behind this: its node
 * points into the heap that is forgotten here. */
void stg_deadlines_close(stg_deadlines *all, void (*closed)(void *ctx),
                         void *ctx)
{
    all->closed = closed;
    all->ctx = ctx;
    all->heap = (stg_heap){NULL};
    uv_close((uv_handle_t *)&all->timer, close_timer);
}

void stg_deadline_set(stg_deadlines *all, stg_deadline *d, stg_ns at)
{
    if (at == STG_NEVER) {
        stg_deadline_clear(all, d);
        return;
    }
    // One that is set for the past while others pass is not to pass in the
    // same turn, or two that set each other would keep the loop.
    if (at <= all->turn_at)
        at = all->turn_at + 1;
    if (all->heap.top == NULL)
        uv_ref((uv_handle_t *)&all->timer);
    stg_heap_put(&all->heap, &d->node, at);
    if (all->turn_at == 0 && at < all->armed_at)
        arm(all, at);
}

void stg_deadline_clear(stg_deadlines *all, stg_deadline *d)
{
    if (!stg_heap_has(&d->node))
        return;
    stg_heap_remove(&all->heap, &d->node);
    if (all->heap.top == NULL)
        uv_unref((uv_handle_t *)&all->timer);
}
