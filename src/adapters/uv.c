#include <stagger/uv.h>

#include <assert.h>
#include <stddef.h>

#include "adapters/internal.h"
#include "base/heap.h"

/* An operation on a loop of libuv: one timer for its waits and for the
 * time-outs of its attempts, and functions of the application.
 *
 * The application may do anything in its functions: report, cancel, begin
 * others. So the state is set before one is called, and looked at again
 * behind it. Each attempt has a number that does not come again in an
 * operation; a report of one that was abandoned finds no such number and is
 * ignored. done is called when the handle is closed, so that the struct may
 * be freed there. */

/* stg_uv.phase */
enum { ENDED, WAITING, IN_ATTEMPT };

/* The data of our handles, by which they know each other among others. */
static const char mark;

static bool is_virtual(const stg_uv *op)
{
    return stg_env_is_virtual(op->op.with.env);
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
    return op->phase != ENDED && op->op.with.cancel != NULL &&
           stg_cancel_is_set(op->op.with.cancel);
}

/* -- virtual time
 *
 * Of the operations on one loop with one env, one is the keeper of their clock:
 * it has a heap of those that wait, and its idle handle alone is active, once a
 * turn. One that has just begun has no keeper, and an idle handle that is active
 * until its first turn: it then looks through all handles, once for all that
 * have begun meanwhile. libuv runs the idle handle first that was started last,
 * so that those are known when the keeper moves the clock. */

static_assert(sizeof((stg_uv *)NULL)->place == sizeof(stg_node),
              "a place is a node");

static stg_node *place_of(stg_uv *op)
{
    return (stg_node *)(void *)&op->place;
}

static stg_uv *op_at(stg_node *place)
{
    return (stg_uv *)(void *)((char *)place - offsetof(stg_uv, place));
}

/* Those that wait, by due_at. */
static stg_heap *waiting(stg_uv *keeper)
{
    return (stg_heap *)(void *)&keeper->clock.waiting;
}

/* The operations that have their turn, in the order in which they were placed:
 * libuv's timers that end at once have that order, too. */
static stg_heap *woken(stg_uv *keeper)
{
    return (stg_heap *)(void *)&keeper->clock.woken;
}

static void unplace(stg_uv *op)
{
    stg_heap_remove(op->is_woken ? woken(op->keeper) : waiting(op->keeper),
                    place_of(op));
}

static void have_turn(stg_uv *op)
{
    unplace(op);
    op->is_woken = true;
    stg_heap_put(woken(op->keeper), place_of(op), op->number);
}

static void on_idle(uv_idle_t *idle);

/* The loop goes on while anybody waits, or may be cancelled by a flag. */
static void keep_on(stg_uv *keeper)
{
    uv_idle_t *idle = &keeper->handle.idle;
    bool is_needed = waiting(keeper)->top != NULL ||
                     woken(keeper)->top != NULL ||
                     keeper->clock.looked_at != NULL;

    if (uv_is_closing(&keeper->handle.any))
        return;
    if (!is_needed) {
        uv_idle_stop(idle);
    } else if (!uv_is_active(&keeper->handle.any)) {
        keeper->clock.is_new = true;
        uv_idle_start(idle, on_idle);
    }
}

static void place(stg_uv *op)
{
    unplace(op);
    op->is_woken = false;
    op->number = op->keeper->clock.numbers++;
    if (op->due_at != STG_NEVER)
        stg_heap_put(waiting(op->keeper), place_of(op), op->due_at);
    keep_on(op->keeper);
}

static void begin_to_look(stg_uv *op)
{
    stg_uv **first = &op->keeper->clock.looked_at;

    op->prev_looked_at = NULL;
    op->next_looked_at = *first;
    if (*first != NULL)
        (*first)->prev_looked_at = op;
    *first = op;
}

static void end_to_look(stg_uv *op)
{
    if (op->prev_looked_at != NULL)
        op->prev_looked_at->next_looked_at = op->next_looked_at;
    else
        op->keeper->clock.looked_at = op->next_looked_at;
    if (op->next_looked_at != NULL)
        op->next_looked_at->prev_looked_at = op->prev_looked_at;
}

/* For a walk over the loop's handles. */
typedef struct search {
    const stg_env *env;
    stg_uv *keeper; /* that there is, or that ends */
    stg_uv *best;   /* to be the next one */
} search;

/* NULL for a handle of something else. */
static stg_uv *find(uv_handle_t *handle, const search *s)
{
    stg_uv *op = handle->data == &mark ? op_of(handle) : NULL;

    return op != NULL && op->op.with.env == s->env ? op : NULL;
}

/* Chance decides, so that the keeper seldom is the first to end: it changes
 * ln n times until n operations have ended in any order of their own. */
static uint64_t rank(const stg_uv *op)
{
    return (op->phase == ENDED ? 0 : UINT64_C(1) << 63) |
           (uint64_t)(uintptr_t)op * UINT64_C(0x9e3779b97f4a7c15) >> 1;
}

static void find_best(uv_handle_t *handle, void *arg)
{
    search *s = arg;
    stg_uv *op = find(handle, s);

    if (op == NULL)
        return;
    if (op->keeper != NULL && s->keeper == NULL)
        s->keeper = op->keeper;
    if (s->best == NULL || rank(op) > rank(s->best))
        s->best = op;
}

static void enter(uv_handle_t *handle, void *arg)
{
    search *s = arg;
    stg_uv *op = find(handle, s);

    if (op == NULL || op->keeper != NULL)
        return;
    op->keeper = s->keeper;
    if (op->op.with.cancel != NULL)
        begin_to_look(op);
    if (op != op->keeper)
        uv_idle_stop(&op->handle.idle);
    place(op);
}

/* All that have begun and have no keeper get one. */
static void enter_all(stg_uv *op)
{
    search s = {.env = op->op.with.env};

    uv_walk(op->handle.any.loop, find_best, &s);
    if (s.keeper == NULL)
        s.keeper = s.best;
    uv_walk(op->handle.any.loop, enter, &s);
}

static void follow_best(uv_handle_t *handle, void *arg)
{
    const search *s = arg;
    stg_uv *op = find(handle, s);

    if (op != NULL && op->keeper == s->keeper)
        op->keeper = s->best;
}

/* The keeper has ended. */
static void hand_over(stg_uv *keeper)
{
    search s = {.env = keeper->op.with.env, .keeper = keeper};

    uv_walk(keeper->handle.any.loop, find_best, &s);
    if (s.best == NULL)
        return;
    s.best->clock = keeper->clock;
    uv_walk(keeper->handle.any.loop, follow_best, &s);
    keep_on(s.best);
}

/* Before its handle is closed. Time stands still until it is told. */
static void leave(stg_uv *op)
{
    unplace(op);
    if (op->op.with.cancel != NULL)
        end_to_look(op);
    op->keeper->clock.ending++;
    keep_on(op->keeper);
}

/* When its handle is closed. */
static void left(stg_uv *op)
{
    op->keeper->clock.ending--;
    if (op->keeper == op)
        hand_over(op);
}

/* Time stands still while anyone is due. */
static void pass_until_due(stg_uv *keeper)
{
    const stg_env *env = keeper->op.with.env;
    stg_node *first = waiting(keeper)->top;

    if (first == NULL || woken(keeper)->top != NULL ||
        keeper->clock.ending > 0 || keeper->clock.is_new ||
        first->key <= stg_operation_now(&keeper->op))
        return;
    if (!env->sleep(env->ctx, first->key, NULL))
        stg_uv_cancel(op_at(first));
}

/* Once a turn of the loop. */
static void on_idle(uv_idle_t *idle)
{
    stg_uv *op = op_of((uv_handle_t *)idle), *keeper;
    stg_ns now;

    if (op->keeper == NULL)
        enter_all(op);
    keeper = op->keeper;
    if (keeper != op)
        return;
    for (op = keeper->clock.looked_at; op != NULL; op = op->next_looked_at)
        if (is_cancelled(op))
            have_turn(op);
    pass_until_due(keeper);
    keeper->clock.is_new = false;
    now = stg_operation_now(&keeper->op);
    while (waiting(keeper)->top != NULL && waiting(keeper)->top->key <= now)
        have_turn(op_at(waiting(keeper)->top));
    while (woken(keeper)->top != NULL) {
        op = op_at(woken(keeper)->top);
        unplace(op);
        wake(op, stg_operation_now(&op->op));
    }
}

static void begin_virtual(uv_loop_t *loop, stg_uv *op)
{
    static const stg_uv none;

    op->keeper = NULL;
    op->place = none.place;
    op->clock = none.clock;
    op->is_woken = false;
    uv_idle_init(loop, &op->handle.idle);
    uv_idle_start(&op->handle.idle, on_idle);
}

/* -- both */

/* When to look again. A cancel may be set from anywhere, and cannot wake the
 * loop. */
static stg_ns look_at(const stg_uv *op, stg_ns now)
{
    return op->op.with.cancel == NULL
               ? op->due_at
               : stg_ns_min(op->due_at, stg_ns_add(now, 50 * STG_MS));
}

/* Whole ms, rounded up. A retry waits for one at least: libuv runs a timer of
 * none again in the same turn, and nothing else would have its turn. */
static uint64_t to_ms(const stg_uv *op, stg_ns nap)
{
    uint32_t ms = stg_to_ms(nap);

    return ms == 0 && op->attempt > 0 ? 1 : ms;
}

/* Waits for due_at. */
static void arm(stg_uv *op, stg_ns now)
{
    stg_ns until_at = look_at(op, now);

    if (is_virtual(op))
        place(op);
    else if (until_at == STG_NEVER)
        uv_timer_stop(&op->handle.timer);
    else
        uv_timer_start(&op->handle.timer, on_timer,
                       to_ms(op, stg_ns_sub(until_at, now)), 0);
}

enum { ATTEMPTS = 1 + STG_HEDGES_MAX };

/* Waits for the attempts that are under way, and for the next hedge. */
static void await_attempts(stg_uv *op, stg_ns now)
{
    op->due_at = op->op.hedge.due_at;
    for (int i = 0; i < ATTEMPTS; i++)
        if (op->attempts[i].number != 0)
            op->due_at = stg_ns_min(op->due_at, op->attempts[i].due_at);
    arm(op, now);
}

/* start may report, and end the operation, before it returns: nothing is done
 * behind it. */
static void begin_attempt(stg_uv *op, uint32_t index, stg_uv_start_fn *start,
                          stg_ns now)
{
    op->attempts[index].number = ++op->attempt;
    op->attempts[index].due_at =
        stg_ns_add(now, stg_retry_timeout(&op->op.retry, now));
    await_attempts(op, now);
    start(op, op->attempt);
}

static void on_close(uv_handle_t *handle)
{
    stg_uv *op = op_of(handle);

    if (is_virtual(op))
        left(op);
    op->done(op, &op->report);
}

/* Carries out the operation's decision. */
static void follow(stg_uv *op)
{
    stg_ns now = op->op.changed_at;

    switch (op->op.decision.next) {
    case STG_GO:
        op->phase = IN_ATTEMPT;
        if (op->op.retry.policy->hedge.max != 0 && op->hedge != NULL)
            stg_operation_begin_round(&op->op);
        begin_attempt(op, 0, op->start, now);
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
        if (is_virtual(op))
            leave(op);
        uv_close(&op->handle.any, on_close);
        break;
    }
}

/* What it reports from now on is ignored. */
static void abandon(stg_uv *op, int index)
{
    uint32_t number = op->attempts[index].number;

    op->attempts[index].number = 0;
    if (number != 0 && op->abandon != NULL)
        op->abandon(op, number);
}

/* It may end in the caller's function. */
static void abandon_all(stg_uv *op)
{
    op->phase = WAITING;
    for (int i = 0; i < ATTEMPTS; i++)
        abandon(op, i);
}

/* Attempt `index` has ended. */
static void report(stg_uv *op, int index, const stg_outcome *outcome)
{
    op->attempts[index].number = 0;
    if (op->op.hedge.under_way != 0)
        stg_operation_report_attempt(&op->op, (uint32_t)index, outcome);
    else
        stg_operation_report(&op->op, outcome);
    if (op->op.decision.next == STG_GO) {
        await_attempts(op, op->op.changed_at);
        return;
    }
    abandon_all(op);
    if (op->phase != ENDED)
        follow(op);
}

/* Time has passed for the attempts of a round: one is too late, or it is time
 * for another one. The caller's functions may end it meanwhile. */
static void wake_attempts(stg_uv *op, stg_ns now)
{
    const stg_outcome timeout = stg_failed(STG_FAULT_TIMEOUT);
    uint32_t index;

    for (int i = 0; i < ATTEMPTS; i++) {
        if (op->attempts[i].number == 0 || now < op->attempts[i].due_at)
            continue;
        abandon(op, i);
        if (op->phase == IN_ATTEMPT)
            report(op, i, &timeout);
        if (op->phase != IN_ATTEMPT)
            return;
    }
    index = stg_operation_hedge(&op->op, now);
    if (index != 0)
        begin_attempt(op, index, op->hedge, now);
    else
        await_attempts(op, now);
}

/* Time has passed: is what we wait for there? */
static void wake(stg_uv *op, stg_ns now)
{
    if (now < op->due_at && !is_cancelled(op)) {
        arm(op, now);
        return;
    }
    if (is_cancelled(op)) {
        stg_uv_cancel(op);
        return;
    }
    if (op->phase == IN_ATTEMPT) {
        wake_attempts(op, now);
        return;
    }
    stg_operation_admit(&op->op, now);
    follow(op);
}

/* All fields are set first, for an operation that was refused can be asked about,
 * too. */
stg_status stg_uv_retry(uv_loop_t *loop, stg_uv *op, const stg_policy *policy,
                        const stg_with *with, stg_uv_start_fn *start,
                        stg_uv_done_fn *done)
{
    if (op == NULL)
        return STG_INVALID;
    op->phase = ENDED;
    op->attempt = 0;
    for (int i = 0; i < ATTEMPTS; i++)
        op->attempts[i].number = 0;
    op->start = start;
    op->done = done;
    if (stg_operation_begin(&op->op, policy, with) == STG_OK &&
        (loop == NULL || start == NULL || done == NULL))
        stg_operation_refuse(&op->op, "loop, start or done is NULL");
    op->report = stg_operation_result(&op->op);
    if (op->op.flaw != NULL)
        return STG_INVALID;

    op->phase = WAITING;
    op->due_at = op->op.begun_at;
    if (is_virtual(op)) {
        begin_virtual(loop, op);
    } else {
        uv_timer_init(loop, &op->handle.timer);
        arm(op, op->op.begun_at);
    }
    op->handle.any.data = (void *)&mark;
    return STG_OK;
}

void stg_uv_report(stg_uv *op, uint32_t attempt, stg_outcome outcome)
{
    if (op == NULL || op->phase != IN_ATTEMPT || attempt == 0)
        return;
    for (int i = 0; i < ATTEMPTS; i++)
        if (op->attempts[i].number == attempt) {
            report(op, i, &outcome);
            return;
        }
}

/* An operation without a keeper gets one first, for leave() counts at the
 * keeper. */
void stg_uv_cancel(stg_uv *op)
{
    if (op == NULL || op->phase == ENDED)
        return;
    if (is_virtual(op) && op->keeper == NULL)
        enter_all(op);
    abandon_all(op);
    if (op->phase == ENDED)
        return;
    stg_operation_cancel(&op->op);
    follow(op);
}
