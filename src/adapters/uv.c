#include <stagger/uv.h>

#include <stddef.h>

/* stg_uv.phase */
enum { ENDED, WAITING, IN_ATTEMPT };

/* The data of our handles, by which they know each other among others. */
static const char mark;

static bool is_virtual(const stg_uv *op)
{
    return op->op.with.env != NULL && op->op.with.env->now != NULL;
}

static stg_uv *op_of(uv_handle_t *handle)
{
    return (stg_uv *)(void *)((char *)handle - offsetof(stg_uv, handle));
}

static void wake(stg_uv *op, stg_ns now);

static void on_timer(uv_timer_t *timer)
{
    stg_uv *op = op_of((uv_handle_t *)timer);

    wake(op, stg_operation_now(&op->op));
}

static bool is_cancelled(const stg_uv *op)
{
    return op->phase == WAITING && op->op.with.cancel != NULL &&
           stg_cancel_is_set(op->op.with.cancel);
}

/* For a walk over the loop's handles: the earliest due_at on one clock. */
typedef struct search {
    const stg_env *env;
    stg_ns due_at;
} search;

static void find_earliest(uv_handle_t *handle, void *arg)
{
    search *s = arg;
    stg_uv *op;

    if (handle->data != &mark)
        return;
    op = op_of(handle);
    if (op->op.with.env != s->env)
        return;
    op->is_looked_at = true;
    // One that has ended is told so at this instant; one that is cancelled
    // ends at this instant.
    if (op->phase == ENDED || is_cancelled(op))
        s->due_at = 0;
    else if (uv_is_active(handle))
        s->due_at = stg_ns_min(s->due_at, op->due_at);
}

/* Once a turn of the loop. Time stands still while anyone is due. */
static void on_idle(uv_idle_t *idle)
{
    stg_uv *op = op_of((uv_handle_t *)idle);
    const stg_env *env = op->op.with.env;
    search s = {.env = env, .due_at = STG_NEVER};
    stg_ns now = stg_operation_now(&op->op);

    if (now < op->due_at && !op->is_looked_at) {
        uv_walk(idle->loop, find_earliest, &s);
        if (s.due_at != STG_NEVER && s.due_at > now)
            env->sleep(env->ctx, s.due_at, NULL);
        now = stg_operation_now(&op->op);
    }
    op->is_looked_at = false;
    wake(op, now);
}

/* A cancel may be set from anywhere, and cannot wake the loop. */
static stg_ns limit_nap(const stg_uv *op, stg_ns nap)
{
    bool is_watched = op->phase == WAITING && op->op.with.cancel != NULL;

    return is_watched ? stg_ns_min(nap, 50 * STG_MS) : nap;
}

/* Whole ms, rounded up. A retry waits for one at least: libuv runs a timer of
 * none again in the same turn, and nothing else would have its turn. */
static uint64_t to_ms(const stg_uv *op, stg_ns nap)
{
    uint64_t ms = nap / STG_MS + (nap % STG_MS != 0);

    return ms == 0 && op->attempt > 0 ? 1 : ms;
}

/* Waits for due_at. */
static void arm(stg_uv *op, stg_ns now)
{
    stg_ns nap = limit_nap(op, stg_ns_sub(op->due_at, now));

    if (is_virtual(op) && op->due_at != STG_NEVER)
        uv_idle_start(&op->handle.idle, on_idle);
    else if (is_virtual(op))
        uv_idle_stop(&op->handle.idle);
    else if (op->due_at == STG_NEVER)
        uv_timer_stop(&op->handle.timer);
    else
        uv_timer_start(&op->handle.timer, on_timer, to_ms(op, nap), 0);
}

static void on_close(uv_handle_t *handle)
{
    stg_uv *op = op_of(handle);

    op->done(op, &op->report);
}

/* Carries out the operation's decision. */
static void follow(stg_uv *op)
{
    stg_ns now = op->op.changed_at;

    switch (op->op.decision.next) {
    case STG_GO:
        op->phase = IN_ATTEMPT;
        op->due_at = stg_ns_add(now, stg_retry_timeout(&op->op.retry, now));
        arm(op, now);
        op->start(op, ++op->attempt);
        break;
    case STG_WAIT:
        op->phase = WAITING;
        op->due_at = op->op.decision.due_at;
        arm(op, now);
        break;
    case STG_DONE:
    case STG_GIVE_UP:
        op->phase = ENDED;
        op->report = stg_operation_result(&op->op);
        uv_close(&op->handle.any, on_close);
        break;
    }
}

static void abandon(stg_uv *op)
{
    bool is_under_way = op->phase == IN_ATTEMPT;

    op->phase = WAITING; // what is reported from now on is ignored
    if (is_under_way && op->abandon != NULL)
        op->abandon(op, op->attempt);
}

/* Time has passed: is what we wait for there? */
static void wake(stg_uv *op, stg_ns now)
{
    stg_outcome timeout = stg_failed(STG_FAULT_TIMEOUT);

    if (now < op->due_at && !is_cancelled(op)) {
        arm(op, now);
        return;
    }
    if (op->phase == WAITING) {
        stg_operation_admit(&op->op, now);
    } else {
        abandon(op);
        if (op->phase == ENDED)
            return;
        stg_operation_report(&op->op, &timeout);
    }
    follow(op);
}

stg_status stg_uv_retry(uv_loop_t *loop, stg_uv *op, const stg_policy *policy,
                        const stg_with *with, stg_uv_start_fn *start,
                        stg_uv_done_fn *done)
{
    if (op == NULL)
        return STG_INVALID;
    op->phase = ENDED;
    op->attempt = 0;
    op->is_looked_at = false;
    op->start = start;
    op->done = done;
    if (stg_operation_begin(&op->op, policy, with) == STG_OK &&
        (loop == NULL || start == NULL || done == NULL))
        stg_operation_refuse(&op->op, "loop, start or done is NULL");
    op->report = stg_operation_result(&op->op);
    if (op->op.flaw != NULL)
        return STG_INVALID;

    if (is_virtual(op))
        uv_idle_init(loop, &op->handle.idle);
    else
        uv_timer_init(loop, &op->handle.timer);
    op->handle.any.data = (void *)&mark;
    op->phase = WAITING;
    op->due_at = op->op.begun_at;
    arm(op, op->op.begun_at);
    return STG_OK;
}

void stg_uv_report(stg_uv *op, uint32_t attempt, stg_outcome outcome)
{
    if (op == NULL || op->phase != IN_ATTEMPT || attempt != op->attempt)
        return;
    stg_operation_report(&op->op, &outcome);
    follow(op);
}

void stg_uv_cancel(stg_uv *op)
{
    if (op == NULL || op->phase == ENDED)
        return;
    abandon(op);
    if (op->phase == ENDED)
        return;
    stg_operation_cancel(&op->op);
    follow(op);
}
