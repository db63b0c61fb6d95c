/* Rounds: an attempt of an operation and its hedges, as hedge.h has them.
 *
 * Each attempt is a request of its own, with its own timeout. The client waits
 * for whatever is due first. When a round has ended nobody waits for what is
 * under way: those requests fare like those whose clients have timed out. */
#include "sim/overload_internal.h"

static void wait_for_first(stg_overload_world *w, uint32_t id)
{
    const stg_overload_round *round = &w->rounds[id];
    const stg_overload_operation *op = &w->operations[id];
    stg_ns due_at = round->hedge.due_at;

    for (int i = 0; i < STG_ROUND_ATTEMPTS; i++)
        if (round->requests[i] != STG_SIM_NONE)
            due_at = stg_ns_min(due_at, round->timeouts_at[i]);
    if (op->waiting != STG_WAITING_ANSWER || op->due_at != due_at)
        stg_overload_wait_until(w, id, STG_WAITING_ANSWER, due_at);
}

static void add_attempt(stg_overload_world *w, uint32_t id, uint32_t index,
                        uint32_t request)
{
    w->rounds[id].requests[index] = request;
    w->rounds[id].timeouts_at[index] = stg_overload_timeout(w, id);
    wait_for_first(w, id);
}

void stg_overload_begin_round(stg_overload_world *w, uint32_t id,
                              uint32_t request)
{
    stg_overload_round *round = &w->rounds[id];

    for (int i = 0; i < STG_ROUND_ATTEMPTS; i++)
        round->requests[i] = STG_SIM_NONE;
    stg_hedge_begin(&round->hedge, &w->operations[id].retry, w->now);
    add_attempt(w, id, 0, request);
}

/* -- hedges ---------------------------------------------------------------- */

/* Of the throttle beside the policy's a hedge asks what it asks of that one,
 * and counts there, too. */
static bool admit(stg_overload_world *w, uint32_t id, uint32_t *index)
{
    stg_overload_operation *op = &w->operations[id];
    stg_hedge *hedge = &w->rounds[id].hedge;
    stg_throttle *throttle =
        w->throttles == NULL ? NULL : &w->throttles[op->process];

    if (throttle != NULL && stg_throttle_is_active(throttle, w->now)) {
        hedge->due_at = STG_NEVER;
        return false;
    }
    if (!stg_hedge_admit(hedge, &op->retry, w->now, index))
        return false;
    if (throttle != NULL)
        (void)stg_throttle_enter(throttle, w->now, &w->of_throttle, NULL);
    return true;
}

static void make_hedge(stg_overload_world *w, uint32_t id)
{
    uint32_t index, request;

    if (!admit(w, id, &index)) {
        stg_overload_count_hedge(w, &w->operations[id], false);
        wait_for_first(w, id);
        return;
    }
    request = stg_overload_send(w, id);
    if (request == STG_SIM_NONE)
        return;
    stg_overload_count_hedge(w, &w->operations[id], true);
    add_attempt(w, id, index, request);
}

void stg_overload_wake_round(stg_overload_world *w, uint32_t id)
{
    const stg_overload_operation *op = &w->operations[id];
    const stg_overload_round *round = &w->rounds[id];

    for (int i = 0; i < STG_ROUND_ATTEMPTS; i++) {
        if (round->requests[i] == STG_SIM_NONE ||
            round->timeouts_at[i] > w->now)
            continue;
        stg_overload_time_out(w, id, round->requests[i]);
        if (op->waiting != STG_WAITING_ANSWER)
            return; // that was the end of the round
    }
    if (round->hedge.due_at <= w->now)
        make_hedge(w, id);
}

/* -- the end --------------------------------------------------------------- */

/* The throttle takes them for not made; core has counted the policy's own. */
static void leave_losers(stg_overload_world *w, uint32_t id)
{
    const stg_overload_operation *op = &w->operations[id];
    stg_overload_round *round = &w->rounds[id];

    for (int i = 0; i < STG_ROUND_ATTEMPTS; i++) {
        if (round->requests[i] == STG_SIM_NONE)
            continue;
        stg_overload_leave(w, round->requests[i]);
        round->requests[i] = STG_SIM_NONE;
        if (w->throttles != NULL)
            stg_throttle_withdraw(&w->throttles[op->process],
                                  i == 0 ? op->retry.since_at
                                         : round->hedge.begun_at[i - 1]);
    }
}

stg_decision stg_overload_step_round(stg_overload_world *w, uint32_t id,
                                     uint32_t request, const stg_outcome *o)
{
    stg_overload_round *round = &w->rounds[id];
    uint32_t index = 0;
    stg_decision d;

    while (round->requests[index] != request)
        index++;
    round->requests[index] = STG_SIM_NONE;
    d = stg_hedge_step(&round->hedge, &w->operations[id].retry, index, o,
                       w->now, &w->of_jitter);
    if (d.next == STG_GO) {
        wait_for_first(w, id);
        return d;
    }
    if (d.next == STG_DONE && index > 0)
        stg_overload_count_win(w);
    leave_losers(w, id);
    return d;
}
