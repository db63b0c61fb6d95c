/* An operation with a clock: stg_retry of core, told the time and its chance.
 * All adapters stand on it. A mistake of the caller (a flaw) is kept, and told
 * by the calls that follow, so that no caller has to look at the status of each
 * one. */
#include <stagger/operation.h>

#include "adapters/internal.h"
#include "core/retry_internal.h"

static const char *find_env_flaw(const stg_env *env)
{
    if (env == NULL || (env->now == NULL) == (env->sleep == NULL))
        return NULL;
    return "with.env has a clock without a sleep, or a sleep without a clock";
}

/* Where none of these is set, no decision depends on the time, and a first
 * success is spared the call. */
bool stg_operation_needs_clock(const stg_policy *policy, const stg_with *with)
{
    if (policy->deadline != STG_NEVER || policy->attempt_timeout != STG_NEVER ||
        policy->reset_after != STG_NEVER || policy->hedge.max != 0)
        return true;
    return with != NULL && (with->deadline_at != 0 || with->peer != NULL ||
                            with->shared_budget != NULL || with->hook != NULL ||
                            with->env != NULL);
}

static void forget_hedges(stg_operation *op)
{
    op->hedge.due_at = STG_NEVER;
    op->hedge.under_way = 0;
    op->hedges = 0;
}

static const stg_with nothing;

/* The clock is read only where something depends on it: most calls end with their
 * first attempt. */
stg_status stg_operation_begin_in(stg_operation *op, const stg_policy *policy,
                                  const stg_with *with, const stg_retry *parent)
{
    const char *flaw;

    op->with = *(with == NULL ? &nothing : with);
    if (op->with.parent == NULL)
        op->with.parent = parent;
    op->decision = (stg_decision){.next = STG_WAIT};
    op->last = (stg_outcome){.fault = STG_FAULT_NONE};
    op->begun_at = op->waited = 0;
    op->flaw = NULL;
    op->fell_back = false;
    forget_hedges(op);
    flaw = find_env_flaw(op->with.env);
    op->is_timed = policy != NULL && flaw == NULL &&
                   stg_operation_needs_clock(policy, &op->with);
    if (op->is_timed)
        op->begun_at = stg_env_now(op->with.env);
    op->changed_at = op->begun_at;
    if (stg_retry_start(&op->retry, policy, &op->with, op->begun_at) != STG_OK)
        flaw = stg_retry_flaw(&op->retry);
    if (flaw == NULL)
        return STG_OK;
    stg_operation_refuse(op, flaw);
    return STG_INVALID;
}

stg_status stg_operation_begin(stg_operation *op, const stg_policy *policy,
                               const stg_with *with)
{
    return op == NULL ? STG_INVALID
                      : stg_operation_begin_in(op, policy, with, NULL);
}

/* The operation points to its own copy of r->with: the caller's may end
 * before. */
void stg_operation_adopt(stg_operation *op, const stg_retry *r, bool is_timed)
{
    op->retry = *r;
    op->with = *r->with;
    op->retry.with = &op->with;
    op->decision = (stg_decision){.next = STG_GO};
    op->last = (stg_outcome){.fault = STG_FAULT_NONE};
    op->begun_at = op->changed_at = r->since_at;
    op->waited = 0;
    op->is_timed = is_timed;
    op->flaw = NULL;
    op->fell_back = false;
    forget_hedges(op);
}

void stg_operation_refuse(stg_operation *op, const char *flaw)
{
    if (op == NULL)
        return;
    op->flaw = flaw == NULL ? "it was refused" : flaw;
    op->decision = (stg_decision){.next = STG_GIVE_UP, .why = STG_WHY_INVALID};
}

/* Refuses an operation that is NULL or zeroed. */
static bool is_begun(stg_operation *op)
{
    if (op == NULL)
        return false;
    if (op->retry.policy == NULL && op->flaw == NULL)
        stg_operation_refuse(op, "the operation was not begun");
    return op->flaw == NULL;
}

/* Whether the peer hears of each attempt, and may refuse one. */
static bool is_guarded(const stg_operation *op)
{
    const stg_policy *p = op->retry.policy;

    return p->breaker.rule != STG_BREAKER_NONE ||
           p->throttle.kind != STG_THROTTLE_NONE;
}

/* Whether core may draw before an attempt: at a breaker, at a throttle, for an
 * empty budget. */
static bool may_draw_to_admit(const stg_operation *op)
{
    return op->decision.why == STG_WHY_BUDGET || is_guarded(op);
}

/* Entropy is a system call, and an admission mostly needs none: it is asked
 * when core is about to draw. (A breaker that opens in this very moment, or a
 * throttle that begins, draws from the time and the address.) */
static stg_rng rng_to_admit(const stg_operation *op, stg_ns now)
{
    const stg_peer *peer = op->with.peer;

    if (op->decision.why == STG_WHY_BUDGET ||
        stg_breaker_look(&peer->breaker, now, NULL) != STG_BREAKER_CLOSED ||
        stg_throttle_is_active(&peer->throttle, now))
        return stg_rng_seed(stg_env_random(op->with.env));
    return (stg_rng){{now, (uintptr_t)op, ~now, 1}};
}

static void count_wait(stg_operation *op, stg_ns now)
{
    op->waited = stg_ns_add(op->waited, stg_ns_sub(now, op->changed_at));
}

/* Of an operation that was cancelled nobody wants an answer. */
static void fall_back(stg_operation *op)
{
    const stg_fallback *fallback = op->with.fallback;
    stg_report report;

    if (fallback->answer == NULL || op->decision.next != STG_GIVE_UP ||
        op->decision.why == STG_WHY_CANCELLED)
        return;
    report = stg_operation_result(op);
    op->fell_back = fallback->answer(fallback->ctx, &report);
    if (op->fell_back)
        tell(&op->retry, STG_EVENT_FALLBACK,
             op->last.fault == STG_FAULT_NONE ? NULL : &op->last, op->decision,
             op->changed_at);
}

STG_NOINLINE static stg_decision admit_by_chance(stg_operation *op, stg_ns now)
{
    stg_rng rng = rng_to_admit(op, now);

    return stg_retry_admit(&op->retry, now, &rng);
}

void stg_operation_admit(stg_operation *op, stg_ns now)
{
    if (!is_begun(op) || op->decision.next != STG_WAIT)
        return;
    if (op->decision.due_at !=
        0) // it is not the first, which waits for nothing
        count_wait(op, now);
    op->changed_at = now;
    op->decision = may_draw_to_admit(op)
                       ? admit_by_chance(op, now)
                       : stg_retry_admit(&op->retry, now, NULL);
    if (op->with.fallback != NULL)
        fall_back(op);
}

static stg_ns read_end(stg_operation *op)
{
    stg_ns now = stg_env_now(op->with.env);

    if (!op->is_timed)
        op->begun_at = op->changed_at = now; // what we know of it
    op->is_timed = true;
    return now;
}

static void succeed(stg_operation *op, const stg_outcome *outcome)
{
    bool is_watched = op->with.hook != NULL || is_guarded(op);
    // Its begin was not its first attempt's: in a loop with much to do.
    bool is_late = op->is_timed && op->changed_at != op->begun_at;

    // A success at once asks nothing of the clock, and is spared the call.
    if (op->retry.attempts > 1 || is_watched || is_late)
        op->changed_at = read_end(op);
    op->decision = stg_retry_step(&op->retry, outcome, op->changed_at, NULL);
}

/* Not inlined: a success, which has no array, needs no guard of the stack. */
STG_NOINLINE static void fail(stg_operation *op, const stg_outcome *outcome)
{
    stg_ns now = read_end(op);
    stg_rng rng = stg_rng_seed(stg_env_random(op->with.env));

    op->last = *outcome;
    op->changed_at = now;
    op->decision = stg_retry_step(&op->retry, outcome, now, &rng);
    if (op->with.fallback != NULL)
        fall_back(op);
}

static const stg_outcome unknown = {.fault = STG_FAULT_ERROR};

void stg_operation_begin_round(stg_operation *op)
{
    if (is_begun(op) && op->decision.next == STG_GO &&
        op->retry.policy->hedge.max != 0)
        stg_hedge_begin(&op->hedge, &op->retry, op->changed_at);
}

uint32_t stg_operation_hedge(stg_operation *op, stg_ns now)
{
    uint32_t index;

    if (!is_begun(op) || op->decision.next != STG_GO ||
        !stg_hedge_admit(&op->hedge, &op->retry, now, &index))
        return 0;
    op->hedges++;
    return index;
}

static bool is_under_way(const stg_operation *op, uint32_t index)
{
    return index <= STG_HEDGES_MAX && (op->hedge.under_way >> index & 1) != 0;
}

/* rng is drawn for failures only; a success uses no chance. */
void stg_operation_report_attempt(stg_operation *op, uint32_t index,
                                  const stg_outcome *outcome)
{
    stg_rng rng;

    if (!is_begun(op) || !is_under_way(op, index))
        return;
    if (outcome == NULL)
        outcome = &unknown;
    op->changed_at = read_end(op);
    if (outcome->fault != STG_FAULT_NONE) {
        op->last = *outcome;
        rng = stg_rng_seed(stg_env_random(op->with.env));
    }
    op->decision = stg_hedge_step(&op->hedge, &op->retry, index, outcome,
                                  op->changed_at, &rng);
    if (op->with.fallback != NULL)
        fall_back(op);
}

void stg_operation_report(stg_operation *op, const stg_outcome *outcome)
{
    if (!is_begun(op) || op->decision.next != STG_GO)
        return;
    if (op->hedge.under_way != 0) {
        stg_operation_report_attempt(op, 0, outcome);
        return;
    }
    if (outcome == NULL)
        outcome = &unknown;
    if (outcome->fault == STG_FAULT_NONE)
        succeed(op, outcome);
    else
        fail(op, outcome);
}

void stg_operation_cancel(stg_operation *op)
{
    stg_ns now;

    if (!is_begun(op) || stg_operation_has_ended(op))
        return;
    now = read_end(op);
    if (op->decision.next == STG_WAIT)
        count_wait(op, now);
    op->changed_at = now;
    op->decision = stg_hedge_cancel(&op->hedge, &op->retry, op->changed_at);
}

/* To the end of the wait, or until it is cancelled. */
static void wait(stg_operation *op)
{
    stg_ns due_at = op->decision.due_at;

    if (due_at == 0) // the first attempt follows begin at once
        stg_operation_admit(op, op->begun_at);
    else if (due_at > op->changed_at &&
             !stg_env_sleep(op->with.env, due_at, op->with.cancel))
        stg_operation_cancel(op);
    else
        stg_operation_admit(op, stg_env_now(op->with.env));
}

bool stg_operation_again(stg_operation *op)
{
    if (!is_begun(op))
        return false;
    while (op->decision.next == STG_WAIT)
        wait(op);
    return op->decision.next == STG_GO;
}

stg_ns stg_operation_now(const stg_operation *op)
{
    return op == NULL ? 0 : stg_env_now(op->with.env);
}

bool stg_operation_has_ended(const stg_operation *op)
{
    return op == NULL || op->decision.next == STG_DONE ||
           op->decision.next == STG_GIVE_UP;
}

/* Without a clock `took` is 0, which a report leaves out. */
stg_report stg_operation_result(const stg_operation *op)
{
    if (op == NULL)
        return (stg_report){.next = STG_GIVE_UP,
                            .why = STG_WHY_INVALID,
                            .flaw = "the operation is NULL"};
    return (stg_report){
        .next = op->decision.next,
        .why = op->decision.why,
        .attempts = op->retry.attempts,
        .hedges = op->hedges,
        .waited = op->waited,
        .took = op->is_timed ? stg_ns_sub(op->changed_at, op->begun_at) : 0,
        .last = op->last,
        .flaw = op->flaw,
        .fell_back = op->fell_back,
    };
}
