/* The clients: what core decides about their operations. */
#include "sim/overload_internal.h"

#include <string.h>

#include "sim/random.h"

enum { OPERATIONS_FIRST = 1024 };

/* -- slots ----------------------------------------------------------------- */

static bool grow(stg_overload_world *w)
{
    uint32_t count =
        w->operation_count == 0 ? OPERATIONS_FIRST : w->operation_count * 2;
    stg_overload_operation *all;

    if (count > w->options->live_max)
        count = w->options->live_max;
    if (count <= w->operation_count)
        return false;
    all = w->memory->allocate(w->memory->ctx, count * sizeof *all);
    if (all == NULL)
        return false;
    if (w->operations != NULL) {
        memcpy(all, w->operations, w->operation_count * sizeof *all);
        w->memory->release(w->memory->ctx, w->operations);
    }
    for (uint32_t i = count; i-- > w->operation_count;) {
        all[i] = (stg_overload_operation){.next = w->operation_free};
        w->operation_free = i;
    }
    w->operations = all;
    w->operation_count = count;
    return true;
}

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

static void wait_until(stg_overload_world *w, uint32_t id, stg_waiting waiting,
                       stg_ns due_at)
{
    w->operations[id].waiting = (uint8_t)waiting;
    w->operations[id].due_at = due_at;
    stg_overload_push(w, due_at, STG_EVENT_OPERATION, id);
}

/* -- one operation --------------------------------------------------------- */

static void think(stg_overload_world *w, uint32_t id)
{
    const stg_trigger *t = &w->options->trigger;
    stg_ns time = stg_distribution_draw(&w->options->load.think, &w->of_think);

    if (w->is_in_trigger && t->kind == STG_TRIGGER_SPIKE)
        time = (stg_ns)((double)time * 1000 / t->factor);
    wait_until(w, id, STG_WAITING_THOUGHT, stg_ns_add(w->now, time));
}

static void end(stg_overload_world *w, uint32_t id, stg_why why)
{
    stg_overload_count_end(w, w->operations[id].begun_at, why);
    if (w->options->load.is_closed)
        think(w, id);
    else
        drop(w, id);
}

static void send(stg_overload_world *w, uint32_t id)
{
    stg_overload_operation *op = &w->operations[id];
    stg_ns timeout =
        stg_ns_min(stg_retry_timeout(&op->retry, w->now), w->options->timeout);

    op->request = stg_overload_send(w, id);
    if (op->request == STG_SIM_NONE)
        return;
    stg_overload_count_sent(w, op->has_sent);
    op->has_sent = true;
    wait_until(w, id, STG_WAITING_ANSWER, stg_ns_add(w->now, timeout));
}

/* Whether the client lets the attempt out. */
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

static void follow(stg_overload_world *w, uint32_t id, stg_decision d)
{
    if (d.next == STG_GO && !pass_throttle(w, id))
        d = hold_back(w, id);
    switch (d.next) {
    case STG_GO:
        send(w, id);
        break;
    case STG_WAIT:
        wait_until(w, id, STG_WAITING_RETRY, d.due_at);
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

static void begin(stg_overload_world *w, uint32_t id, uint32_t process)
{
    stg_overload_operation *op = &w->operations[id];

    op->begun_at = w->now;
    op->process = process;
    op->request = STG_SIM_NONE;
    op->has_sent = false;
    stg_overload_count_begun(w);
    (void)stg_retry_start(&op->retry, &w->options->policy, &w->withs[process],
                          w->now);
    admit(w, id);
}

void stg_overload_report(stg_overload_world *w, uint32_t id,
                         const stg_outcome *o)
{
    const stg_outcome ok = stg_ok();
    stg_overload_operation *op = &w->operations[id];

    op->request = STG_SIM_NONE;
    op->waiting = STG_WAITING_NOT;
    if (w->throttles != NULL && (o->fault == STG_FAULT_NONE || o->code == 500))
        stg_throttle_report(&w->throttles[op->process], &ok, w->now, w->now);
    follow(w, id, stg_retry_step(&op->retry, o, w->now, &w->of_jitter));
}

static void time_out(stg_overload_world *w, uint32_t id)
{
    stg_outcome o = stg_failed(STG_FAULT_TIMEOUT);

    stg_overload_count_timeout(w);
    stg_overload_leave(w, w->operations[id].request);
    stg_overload_report(w, id, &o);
}

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
        time_out(w, id);
        break;
    }
}

/* -- the load -------------------------------------------------------------- */

void stg_overload_redraw_load(stg_overload_world *w)
{
    const stg_overload_load *load = &w->options->load;
    const stg_trigger *t = &w->options->trigger;
    double gap = 1e12 / (double)load->rate;

    if (load->is_closed)
        return;
    if (w->is_in_trigger && t->kind == STG_TRIGGER_SPIKE)
        gap = gap * 1000 / t->factor;
    if (!load->is_regular)
        gap *= stg_random_exponential(&w->of_load);
    w->begin_at = stg_ns_add(w->now, (stg_ns)(gap + 0.5));
    stg_overload_push(w, w->begin_at, STG_EVENT_BEGIN, 0);
}

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
        wait_until(w, id, STG_WAITING_THOUGHT,
                   stg_rng_upto(&w->of_think, time));
    }
}
