/* Requests: on the way, in the service; and what the trigger does to it.
 *
 * The slot of a request is dropped exactly once: when its answer arrives, or
 * when the service is done with it and the client has gone, or with skips_gone
 * when it leaves the queue or arrives for a client that has gone. Whoever drops
 * it must not look at it again: the next request may have the slot, and sending
 * one may move the whole array.
 *
 * A client that gives up only sets is_gone. What is on its way or at a worker
 * goes on, and costs the service as much as any other: work for nobody. */
#include "sim/overload_internal.h"

static bool is_trigger_on(const stg_overload_world *w, stg_trigger_kind kind)
{
    return w->is_in_trigger && w->options->trigger.kind == kind;
}

/* When what leaves now has crossed the network. */
static stg_ns cross(stg_overload_world *w)
{
    return stg_ns_add(
        w->now, stg_distribution_draw(&w->options->network, &w->of_network));
}

uint32_t stg_overload_send(stg_overload_world *w, uint32_t operation)
{
    uint32_t request = stg_sim_service_take(&w->service, operation);

    if (request == STG_SIM_NONE) {
        w->result->is_cut = true;
        return request;
    }
    if (w->layers > 1) {
        const stg_overload_operation *op = &w->operations[operation];
        stg_sim_request *q = &w->service.requests[request];

        q->layer = op->layer;
        q->is_again = op->has_sent;
    }
    stg_overload_push(w, cross(w), STG_EVENT_REACH, request);
    return request;
}

/* No caller waits for the answer to a request that was given up. */
static void reply(stg_overload_world *w, uint32_t request,
                  stg_answer_kind answer)
{
    stg_sim_request *q = &w->service.requests[request];

    q->answer = (uint8_t)answer;
    if (q->is_gone)
        stg_sim_service_drop(&w->service, request);
    else
        stg_overload_push(w, cross(w), STG_EVENT_ANSWER, request);
}

void stg_overload_serve_end(stg_overload_world *w, uint32_t request, bool is_ok)
{
    reply(w, request, is_ok ? STG_ANSWER_OK : STG_ANSWER_FAILED);
}

void stg_overload_refuse(stg_overload_world *w, uint32_t request)
{
    stg_overload_count_refused(w);
    reply(w, request, STG_ANSWER_FULL);
}

/* A service that is down answers too: the refusal takes the way back over the
 * network. A client that has gone is not noticed unless skips_gone is set. */
void stg_overload_reach(stg_overload_world *w, uint32_t request)
{
    if (w->layers > 1 && w->service.requests[request].layer + 1U < w->layers) {
        stg_overload_serve(w, request);
        return;
    }
    if (is_trigger_on(w, STG_TRIGGER_OUTAGE)) {
        reply(w, request, STG_ANSWER_REFUSED);
        return;
    }
    if (w->service.requests[request].is_gone &&
        w->options->service.skips_gone) {
        stg_sim_service_drop(&w->service, request);
        return;
    }
    if (stg_sim_service_reach(&w->service, request, w->now) !=
        STG_RECEPTION_REFUSED)
        return;
    stg_overload_refuse(w, request);
}

static bool draws(stg_rng *rng, uint32_t millionths)
{
    return millionths > 0 && stg_rng_upto(rng, 999999) < millionths;
}

/* The second number is drawn also where the first one hit: how many a run draws
 * does not depend on their results. A factor is in thousandths. */
static bool is_error(stg_overload_world *w)
{
    bool found = draws(&w->of_errors, w->options->errors);

    if (is_trigger_on(w, STG_TRIGGER_ERRORS) &&
        draws(&w->of_errors, w->options->trigger.factor * 1000))
        found = true;
    return found;
}

/* The event of a worker whose request was lost in an outage, or that was
 * stalled since, still comes; is_due tells. */
void stg_overload_finish(stg_overload_world *w, uint32_t worker)
{
    uint32_t request;

    if (!stg_sim_service_is_due(&w->service, worker, w->now))
        return;
    request = stg_sim_service_finish(&w->service, worker, w->now);
    if (w->service.requests[request].is_gone)
        stg_overload_count_for_nobody(w);
    reply(w, request, is_error(w) ? STG_ANSWER_ERROR : STG_ANSWER_OK);
}

/* What the client's policy sees. Only FULL may say when to come back: a service
 * that is down cannot. */
static stg_outcome find_outcome(const stg_overload_world *w, uint8_t answer)
{
    switch ((stg_answer_kind)answer) {
    case STG_ANSWER_OK:
        break;
    case STG_ANSWER_ERROR:
        return stg_answered(500);
    case STG_ANSWER_FULL:
        return stg_answered_after(503, w->options->retry_after);
    case STG_ANSWER_FAILED:
        return stg_answered(503);
    case STG_ANSWER_REFUSED:
        return stg_failed(STG_FAULT_REFUSED);
    case STG_ANSWER_RESET:
        return stg_failed(STG_FAULT_RESET);
    }
    return stg_ok();
}

/* Works on a copy, and drops the slot first: the report may send a retry at
 * once, which takes a slot and may move the array. */
void stg_overload_answer(stg_overload_world *w, uint32_t request)
{
    stg_sim_request q = w->service.requests[request];
    stg_outcome o = find_outcome(w, q.answer);

    stg_sim_service_drop(&w->service, request);
    if (!q.is_gone)
        stg_overload_report(w, q.caller, request, &o);
}

void stg_overload_leave(stg_overload_world *w, uint32_t request)
{
    if (stg_sim_service_leave(&w->service, request, w->now))
        stg_sim_service_drop(&w->service, request);
}

/* Everything inside, queued or at a worker, is answered with a reset; what is
 * on the network is not inside and arrives later. */
static void lose_all(stg_overload_world *w)
{
    uint32_t request;

    while ((request = stg_sim_service_clear(&w->service, w->now)) !=
           STG_SIM_NONE)
        reply(w, request, STG_ANSWER_RESET);
}

/* At least one worker is back with the first step, and all with the last. */
void stg_overload_return(stg_overload_world *w, uint32_t steps)
{
    const stg_overload_options *o = w->options;
    uint64_t back = (uint64_t)o->service.workers * steps / o->return_steps;

    stg_sim_service_staff(&w->service, back > 0 ? (uint32_t)back : 1, w->now);
    if (steps < o->return_steps)
        stg_overload_push(w, stg_ns_add(w->now, o->return_step),
                          STG_EVENT_RETURN, steps + 1);
}

/* What was down is back, all at once or in steps, and may be cold. */
static void come_back(stg_overload_world *w)
{
    if (w->options->return_steps != 0)
        stg_overload_return(w, 1);
    if (w->options->cold.factor != 0)
        stg_sim_service_chill(&w->service, &w->options->cold, w->now);
}

/* SLOW is of what workers start from now on; what they have keeps its time.
 * ERRORS needs nothing at all: is_trigger_on() is asked for each request. */
void stg_overload_change(stg_overload_world *w, bool begins)
{
    const stg_trigger *t = &w->options->trigger;

    w->is_in_trigger = begins;
    switch (t->kind) {
    case STG_TRIGGER_OUTAGE:
        if (begins)
            lose_all(w);
        else
            come_back(w);
        break;
    case STG_TRIGGER_STALL:
        if (begins) {
            stg_sim_service_stall(&w->service, w->now);
            break;
        }
        come_back(w); // fewer workers first, or all would start what waits
        stg_sim_service_resume(&w->service, w->now);
        break;
    case STG_TRIGGER_SLOW:
        w->service.slowness = begins ? t->factor : 1000;
        break;
    case STG_TRIGGER_SPIKE:
        stg_overload_redraw_load(w);
        break;
    case STG_TRIGGER_NONE:
    case STG_TRIGGER_ERRORS:
        break;
    }
}
