/* The clients: what core decides about their operations.
 *
 * An operation is a slot, and waits for one thing at a time: a thought, a retry
 * or an answer. `due_at` says when, and an event that comes at another time is
 * an old one and is ignored. With hedges it is the earliest time of its round.
 *
 * take() may move the array of operations, so a pointer to one must not be held
 * over it. Sending and reporting do not call take(): there pointers are good.
 * In a closed load a client keeps its slot for the whole run; in an open one
 * the slot is dropped at the end of the operation, and used again. */
#include "sim/overload_internal.h"

#include <string.h>

enum { OPERATIONS_FIRST = 1024 };

/* -- slots ----------------------------------------------------------------- */

/* An array of `count` slots in place of the old one; NULL, and the old one
 * stays, if there is no memory. Copies operation_count of them. */
static void *enlarge(const stg_overload_world *w, void *old, uint32_t count,
                     size_t size)
{
    void *all = w->memory->allocate(w->memory->ctx, count * size);

    if (all != NULL && old != NULL) {
        memcpy(all, old, w->operation_count * size);
        w->memory->release(w->memory->ctx, old);
    }
    return all;
}

static bool grow_rounds(stg_overload_world *w, uint32_t count)
{
    stg_overload_round *rounds;

    if (!stg_overload_hedges(w->options))
        return true;
    rounds = enlarge(w, w->rounds, count, sizeof *rounds);
    if (rounds != NULL)
        w->rounds = rounds;
    return rounds != NULL;
}

/* Doubles the slots up to live_max. Rounds grow first: if the operations then
 * have no memory, there are more rounds than operations, which harms nothing.
 * The count is set last, as enlarge() copies by it. */
static bool grow(stg_overload_world *w)
{
    uint32_t count =
        w->operation_count == 0 ? OPERATIONS_FIRST : w->operation_count * 2;
    stg_overload_operation *all;

    if (count > w->options->live_max)
        count = w->options->live_max;
    if (count <= w->operation_count || !grow_rounds(w, count))
        return false;
    all = enlarge(w, w->operations, count, sizeof *all);
    if (all == NULL)
        return false;
    for (uint32_t i = count; i-- > w->operation_count;) {
        all[i] = (stg_overload_operation){.next = w->operation_free};
        w->operation_free = i;
    }
    w->operations = all;
    w->operation_count = count;
    return true;
}

/* Without a slot the run is cut: leaving out the operation would lower the
 * load, and the figures would look better than they are. */
static uint32_t take(stg_overload_world *w)
{
    uint32_t id;

    if (w->operation_free == STG_SIM_NONE && !grow(w)) {
        w->result->is_cut = true;
        return STG_SIM_NONE;
    }
    id = w->operation_free;
    w->operation_free = w->operations[id].next;
    return id;
}

static void drop(stg_overload_world *w, uint32_t id)
{
    w->operations[id].waiting = STG_WAITING_NOT;
    w->operations[id].next = w->operation_free;
    w->operation_free = id;
}

void stg_overload_wait_until(stg_overload_world *w, uint32_t id,
                             stg_waiting waiting, stg_ns due_at)
{
    w->operations[id].waiting = (uint8_t)waiting;
    w->operations[id].due_at = due_at;
    stg_overload_push(w, due_at, STG_EVENT_OPERATION, id);
}

/* -- one operation --------------------------------------------------------- */

/* A spike shortens thoughts that begin in it. One that has begun before is not
 * changed, so a closed load takes a thought's time to follow. */
static void think(stg_overload_world *w, uint32_t id)
{
    const stg_trigger *t = &w->options->trigger;
    stg_ns time = stg_distribution_draw(&w->options->load.think, &w->of_think);

    if (w->is_in_trigger && t->kind == STG_TRIGGER_SPIKE)
        time = (stg_ns)((double)time * 1000 / t->factor);
    stg_overload_wait_until(w, id, STG_WAITING_THOUGHT,
                            stg_ns_add(w->now, time));
}

/* Of a service's operation: what it is for is answered. */
static void end_serving(stg_overload_world *w, uint32_t id, stg_why why)
{
    uint32_t request = w->operations[id].serves;

    drop(w, id);
    stg_overload_serve_end(w, request, why == STG_WHY_DONE);
}

static void end(stg_overload_world *w, uint32_t id, stg_why why)
{
    if (w->operations[id].layer > 0) {
        end_serving(w, id, why);
        return;
    }
    stg_overload_count_end(w, &w->operations[id], why);
    if (w->options->load.is_closed)
        think(w, id);
    else
        drop(w, id);
}

stg_ns stg_overload_timeout(const stg_overload_world *w, uint32_t id)
{
    stg_ns timeout = stg_retry_timeout(&w->operations[id].retry, w->now);

    return stg_ns_add(w->now, stg_ns_min(timeout, w->options->timeout));
}

/* Without a slot for a request nothing is sent and nothing waits: the run is
 * cut, and this was its last event. */
static void send(stg_overload_world *w, uint32_t id)
{
    stg_overload_operation *op = &w->operations[id];
    uint32_t request = stg_overload_send(w, id);

    if (request == STG_SIM_NONE)
        return;
    stg_overload_count_sent(w, op, op->has_sent);
    op->has_sent = true;
    if (w->rounds != NULL) {
        stg_overload_begin_round(w, id, request);
        return;
    }
    op->request = request;
    stg_overload_wait_until(w, id, STG_WAITING_ANSWER,
                            stg_overload_timeout(w, id));
}

/* Whether the client lets the attempt out. This throttle is the process's own
 * and comes on top of the policy's, which core has asked by now. */
static bool pass_throttle(stg_overload_world *w, uint32_t id)
{
    uint32_t process = w->operations[id].process;

    return w->throttles == NULL ||
           stg_throttle_enter(&w->throttles[process], w->now, &w->of_throttle,
                              NULL);
}

/* Refused by the client itself, and at once: it is told "not now", and does not
 * ask again. */
static stg_decision hold_back(stg_overload_world *w, uint32_t id)
{
    stg_outcome o = stg_answered(429);

    o.permanent = true;
    o.unsent = true;
    stg_overload_count_held(w);
    return stg_retry_step(&w->operations[id].retry, &o, w->now, &w->of_jitter);
}

/* Carries out a decision. The throttle is asked last, so that an attempt that
 * core refuses does not count in it. */
static void follow(stg_overload_world *w, uint32_t id, stg_decision d)
{
    if (d.next == STG_GO && !pass_throttle(w, id))
        d = hold_back(w, id);
    switch (d.next) {
    case STG_GO:
        send(w, id);
        break;
    case STG_WAIT:
        stg_overload_wait_until(w, id, STG_WAITING_RETRY, d.due_at);
        break;
    case STG_DONE:
    case STG_GIVE_UP:
        end(w, id, d.why);
        break;
    }
}

static void admit(stg_overload_world *w, uint32_t id)
{
    stg_overload_operation *op = &w->operations[id];
    uint32_t attempts = op->retry.attempts;
    stg_decision d = stg_retry_admit(&op->retry, w->now, &w->of_jitter);

    if ((d.next != STG_GO && op->retry.attempts > attempts) ||
        (d.next == STG_GIVE_UP && d.why == STG_WHY_THROTTLE))
        stg_overload_count_held(w); // by the breaker or the policy's throttle
    follow(w, id, d);
}

static void start(stg_overload_world *w, uint32_t id, const stg_policy *policy,
                  uint32_t process)
{
    stg_overload_operation *op = &w->operations[id];

    op->begun_at = w->now;
    op->process = process;
    op->request = STG_SIM_NONE;
    (void)stg_retry_start(&op->retry, policy, &w->withs[process], w->now);
    admit(w, id);
}

static void begin(stg_overload_world *w, uint32_t id, uint32_t process)
{
    stg_overload_operation *op = &w->operations[id];
    const stg_policy *policy = stg_overload_policy(w->options, process);

    op->layer = 0;
    op->has_sent = false;
    op->is_other = policy != &w->options->policy;
    stg_overload_count_begun(w, op->is_other);
    start(w, id, policy, process);
}

/* -- services that call ----------------------------------------------------- */

/* Until when the caller waits for this request, for which it still does. */
static stg_ns find_patience(const stg_overload_world *w, uint32_t request)
{
    uint32_t caller = w->service.requests[request].caller, i = 0;

    if (w->rounds == NULL)
        return w->operations[caller].due_at;
    while (w->rounds[caller].requests[i] != request)
        i++;
    return w->rounds[caller].timeouts_at[i];
}

/* The request stays until the operation that it makes has ended, whether its
 * caller still waits then or not. One that nobody waits for begins nothing where
 * deadlines are propagated; a process's deadline is there for the start alone. */
void stg_overload_serve(stg_overload_world *w, uint32_t request)
{
    const stg_sim_request q = w->service.requests[request];
    const stg_overload_options *o = w->options;
    uint32_t layer = q.layer + 1U, process = layer * o->processes, id;
    stg_ns until_at = 0;

    if (o->propagates && q.is_gone) {
        stg_sim_service_drop(&w->service, request);
        return;
    }
    if (o->propagates)
        until_at = find_patience(w, request);
    if (o->processes > 1)
        process += (uint32_t)stg_rng_upto(&w->of_process, o->processes - 1);
    id = take(w);
    if (id == STG_SIM_NONE)
        return;
    w->operations[id].layer = (uint8_t)layer;
    w->operations[id].serves = request;
    w->operations[id].has_sent = q.is_again;
    w->operations[id].is_other = false;
    w->withs[process].deadline_at = until_at;
    start(w, id, stg_overload_inner(o, layer), process);
    w->withs[process].deadline_at = 0;
}

/* -- an attempt and its end ------------------------------------------------- */

/* STG_GO: the other attempts of its round go on. */
static stg_decision step(stg_overload_world *w, uint32_t id, uint32_t request,
                         const stg_outcome *o)
{
    stg_overload_operation *op = &w->operations[id];

    if (w->rounds != NULL)
        return stg_overload_step_round(w, id, request, o);
    op->request = STG_SIM_NONE;
    return stg_retry_step(&op->retry, o, w->now, &w->of_jitter);
}

static void tell(const stg_overload_world *w, uint32_t id, const stg_outcome *o)
{
    const stg_retry *r = &w->operations[id].retry;
    stg_overload_attempt attempt = {.client = id,
                                    .attempt = r->attempts,
                                    .begun_at = r->since_at,
                                    .ended_at = w->now,
                                    .outcome = o};

    w->options->on_attempt(w->options->ctx, &attempt);
}

/* The throttle counts what the service accepted, not what succeeded: a 500 was
 * accepted. What is not reported (503, timeout, refused) stays a request
 * without an accept, which is what makes the throttle refuse. */
void stg_overload_report(stg_overload_world *w, uint32_t id, uint32_t request,
                         const stg_outcome *o)
{
    const stg_outcome ok = stg_ok();
    stg_overload_operation *op = &w->operations[id];
    stg_decision d;

    if (w->options->on_attempt != NULL)
        tell(w, id, o);
    if (w->throttles != NULL && (o->fault == STG_FAULT_NONE || o->code == 500))
        stg_throttle_report(&w->throttles[op->process], &ok, w->now, w->now);
    d = step(w, id, request, o);
    if (d.next == STG_GO)
        return;
    op->waiting = STG_WAITING_NOT;
    follow(w, id, d);
}

void stg_overload_time_out(stg_overload_world *w, uint32_t id, uint32_t request)
{
    stg_outcome o = stg_failed(STG_FAULT_TIMEOUT);

    stg_overload_count_timeout(w);
    stg_overload_leave(w, request);
    stg_overload_report(w, id, request, &o);
}

/* A client of a closed load belongs to one process for the whole run, since its
 * slot does. */
void stg_overload_wake(stg_overload_world *w, uint32_t id)
{
    stg_overload_operation *op = &w->operations[id];

    if (op->due_at != w->now)
        return;
    switch ((stg_waiting)op->waiting) {
    case STG_WAITING_NOT:
        break;
    case STG_WAITING_THOUGHT:
        begin(w, id, id % w->options->processes);
        break;
    case STG_WAITING_RETRY:
        admit(w, id);
        break;
    case STG_WAITING_ANSWER:
        if (w->rounds == NULL)
            stg_overload_time_out(w, id, op->request);
        else
            stg_overload_wake_round(w, id);
        break;
    }
}

/* -- the load -------------------------------------------------------------- */

/* The next arrival is drawn before this operation does anything: arrivals do
 * not depend on what becomes of operations. That is what an open load is. */
void stg_overload_begin(stg_overload_world *w)
{
    uint32_t processes = w->options->processes, process = 0, id;

    if (w->begin_at != w->now)
        return;
    stg_overload_redraw_load(w);
    if (processes > 1)
        process = (uint32_t)stg_rng_upto(&w->of_process, processes - 1);
    id = take(w);
    if (id != STG_SIM_NONE)
        begin(w, id, process);
}

/* Clients do not begin together: each is somewhere in a thought. */
void stg_overload_begin_load(stg_overload_world *w)
{
    if (!w->options->load.is_closed) {
        stg_overload_redraw_load(w);
        return;
    }
    for (uint32_t i = 0; i < w->options->load.clients; i++) {
        uint32_t id = take(w);
        stg_ns time =
            stg_distribution_draw(&w->options->load.think, &w->of_think);

        if (id == STG_SIM_NONE)
            return;
        stg_overload_wait_until(w, id, STG_WAITING_THOUGHT,
                                stg_rng_upto(&w->of_think, time));
    }
}
