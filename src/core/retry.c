#include <stagger/retry.h>

#include <string.h>

#include "core/options.h"
#include "core/retry_internal.h"

/* The beginning and the end of an operation.
 *
 * An operation may hold things of others: a payment, a place of the rate
 * limit, of the bulkhead or of the throttle, the breaker's probe, a part of a
 * share. Each has a flag (retry_internal.h), and stg_retry_end() gives back
 * all that is held, in whatever state the operation ends. A new thing to hold
 * needs a flag, a line in release(), and a place in the mask of
 * stg_retry_end().
 *
 * A call that is wrong (a flaw) ends the operation before its first attempt;
 * the flaw is kept in `paid`, which has no other use then. */

static const stg_with nothing;

/* Returns what is wrong with the policy of an operation that has no peer, or
 * NO_FLAW. */
static stg_flaw find_own_flaw(const stg_policy *p)
{
    if (p == NULL)
        return NO_POLICY;
    if (p->attempts_max == 0)
        return ZEROED_POLICY;
    return stg_policy_is_shared(p) ? NO_PEER : NO_FLAW;
}

/* The policy's own flaws come first. That the policy needs a peer is a flaw
 * only where none was given. */
static stg_flaw find_flaw(const stg_policy *p, const stg_with *with)
{
    static const stg_flaw misfits[] = {
        [STG_FITS] = NO_FLAW,
        [STG_NOT_MADE] = ZEROED_PEER,
        [STG_OTHER_BUDGET] = OTHER_BUDGET,
        [STG_OTHER_BREAKER] = OTHER_BREAKER,
        [STG_OTHER_RATE] = OTHER_RATE,
        [STG_OTHER_BULKHEAD] = OTHER_BULKHEAD,
        [STG_OTHER_THROTTLE] = OTHER_THROTTLE,
    };
    stg_flaw f = find_own_flaw(p);

    if (f != NO_FLAW && f != NO_PEER)
        return f;
    if (with->shared_budget != NULL &&
        with->shared_budget->options.kind == STG_BUDGET_NONE)
        return ZEROED_BUDGET;
    return with->peer == NULL ? f : misfits[stg_peer_misfit(with->peer, p)];
}

/* Why it ended takes the bits of the other flags: an ended operation holds
 * nothing. */
static unsigned flags_of_end(stg_why why)
{
    return ENDED | (unsigned)why << WHY_BIT;
}

static bool is_refused(const stg_retry *r)
{
    return r->flags == flags_of_end(STG_WHY_INVALID);
}

const char *stg_retry_flaw(const stg_retry *r)
{
    static const char *const texts[] = {
        [NO_FLAW] = "",
        [NOT_STARTED] = "the operation was not started",
        [NO_POLICY] = "the policy is NULL",
        [ZEROED_POLICY] =
            "the policy is zeroed: start from a text or "
            "stg_policy_default()",
        [NO_PEER] =
            "the policy needs a peer, see stg_policy_needs_peer(), and "
            "with.peer is NULL",
        [ZEROED_PEER] = "with.peer was not made by stg_peer_init()",
        [OTHER_BUDGET] =
            "with.peer was made for another budget than the policy's: they "
            "must be equal, or the policy's none",
        [OTHER_BREAKER] =
            "with.peer was made for another breaker than the policy's: they "
            "must be equal, or the policy's none",
        [OTHER_RATE] =
            "with.peer was made for another rate than the policy's: they "
            "must be equal, or the policy's none",
        [OTHER_BULKHEAD] =
            "with.peer was made for another bulkhead than the policy's: they "
            "must be equal, or the policy's none",
        [OTHER_THROTTLE] =
            "with.peer was made for another throttle than the policy's: they "
            "must be equal, or the policy's none",
        [ZEROED_BUDGET] =
            "with.shared_budget was not made by stg_budget_init(), or is none",
        [NO_ATTEMPT] = "the progress to resume has no attempt",
    };

    if (r == NULL || r->flags == 0)
        return texts[NOT_STARTED];
    return texts[is_refused(r) ? r->paid : NO_FLAW];
}

/* From this moment on. */
stg_ns stg_retry_deadline(const stg_policy *p, const stg_with *with, stg_ns now)
{
    stg_ns deadline_at = stg_ns_add(now, p->deadline);

    return with->deadline_at == 0 ? deadline_at
                                  : stg_ns_min(deadline_at, with->deadline_at);
}

static bool is_sharing(const stg_with *with)
{
    return with->peer != NULL || with->shared_budget != NULL;
}

/* PLAIN, where nothing is shared, watched or timed: most operations, and most
 * of those succeed at once. They are spared the questions. */
static unsigned find_kind(const stg_policy *p, const stg_with *with,
                          stg_ns deadline_at)
{
    if (!is_sharing(with))
        return deadline_at == STG_NEVER && with->cancel == NULL &&
                       with->hook == NULL
                   ? PLAIN
                   : 0U;
    return with->shared_budget != NULL || p->budget.kind != STG_BUDGET_NONE
               ? PAYING
               : 0U;
}

/* Starts it, unless it has a flaw. */
static stg_status start(stg_retry *r, const stg_policy *policy,
                        const stg_with *with, stg_flaw f, stg_ns now)
{
    stg_ns deadline_at;

    if (f != NO_FLAW) {
        *r = (stg_retry){.policy = policy,
                         .with = with,
                         .flags = (uint16_t)flags_of_end(STG_WHY_INVALID),
                         .paid = (uint8_t)f};
        return STG_INVALID;
    }
    deadline_at = stg_retry_deadline(policy, with, now);
    *r = (stg_retry){
        .policy = policy,
        .with = with,
        .deadline_at = deadline_at,
        .since_at = now,
        .last = policy->backoff.base,
        .flags = (uint16_t)(STARTED | find_kind(policy, with, deadline_at)),
    };
    return STG_OK;
}

/* Not inlined: the others have no registers to save. */
__attribute__((noinline)) static stg_status
start_sharing(stg_retry *r, const stg_policy *policy, const stg_with *with,
              stg_ns now)
{
    return start(r, policy, with, find_flaw(policy, with), now);
}

stg_status stg_retry_start(stg_retry *r, const stg_policy *policy,
                           const stg_with *with, stg_ns now)
{
    if (with == NULL)
        with = &nothing;
    if (r == NULL)
        return STG_INVALID;
    if (is_sharing(with))
        return start_sharing(r, policy, with, now);
    return start(r, policy, with, find_own_flaw(policy), now);
}

stg_progress stg_progress_begin(const stg_policy *policy)
{
    return (stg_progress){.last = policy == NULL ? 0 : policy->backoff.base};
}

/* Saves what the policy's next decision depends on, but no instants: after a
 * restart of the machine its clock counts from another origin. */
void stg_retry_save(const stg_retry *r, stg_progress *progress)
{
    if (progress == NULL)
        return;
    if (r == NULL) {
        *progress = (stg_progress){.last = 0};
        return;
    }
    *progress = (stg_progress){.last = r->last, .attempts = r->attempts};
    memcpy(progress->limited, r->limited, sizeof progress->limited);
}

/* The attempt is under way, and its peer is not asked again: so a policy that
 * needs a peer may go without one here. */
stg_status stg_retry_resume(stg_retry *r, const stg_policy *policy,
                            const stg_with *with, const stg_progress *progress,
                            stg_ns began_at, stg_ns attempt_at)
{
    stg_flaw f;

    if (with == NULL)
        with = &nothing;
    if (r == NULL)
        return STG_INVALID;
    f = find_flaw(policy, with);
    if (f == NO_PEER)
        f = NO_FLAW;
    if (f == NO_FLAW && (progress == NULL || progress->attempts == 0))
        f = NO_ATTEMPT;
    if (start(r, policy, with, f, began_at) != STG_OK)
        return STG_INVALID;
    r->last = progress->last;
    r->attempts = progress->attempts;
    memcpy(r->limited, progress->limited, sizeof r->limited);
    r->since_at = attempt_at;
    set(r, IN_ATTEMPT | COUNTED);
    return STG_OK;
}

void stg_retry_call_hook(const stg_retry *r, stg_event_kind kind,
                         const stg_outcome *o, stg_decision decision,
                         stg_ns now)
{
    const stg_hook *hook = r->with->hook;
    stg_event event = {.kind = kind,
                       .at = now,
                       .retry = r,
                       .outcome = o,
                       .decision = decision};

    if (hook->on != NULL)
        hook->on(hook->ctx, &event);
}

/* The answer to all that comes before the start or after the end. */
stg_decision stg_retry_ended(const stg_retry *r)
{
    stg_why why;

    if (r == NULL || r->flags == 0)
        return (stg_decision){.next = STG_GIVE_UP, .why = STG_WHY_INVALID};
    why = (stg_why)(r->flags >> WHY_BIT);
    return (stg_decision){
        .next = why == STG_WHY_DONE ? STG_DONE : STG_GIVE_UP,
        .why = why,
    };
}

/* A retry that was paid and does not start costs nothing. */
void stg_retry_release_payment(stg_retry *r, stg_ns now)
{
    if (!has(r, HELD))
        return;
    clear(r, HELD);
    stg_budget_give_back(own_budget(r), r->paid, r->since_at, now);
    if (r->with->shared_budget != NULL)
        stg_budget_give_back(
            // With a place or in a queue shared_at has another meaning, and
            // since_at stands for both: clear_shared_at().
            r->with->shared_budget, r->paid,
            has(r, PLACED | QUEUED) ? r->since_at : r->shared_at, now);
}

void stg_retry_release_place(stg_retry *r, stg_ns now)
{
    if (has(r, PLACED))
        stg_limiter_give_back(&r->with->peer->limiter, r->shared_at, now);
    clear(r, PLACED);
}

void stg_retry_release_probe(stg_retry *r, stg_ns now)
{
    if (has(r, PROBE))
        stg_breaker_abandon(&r->with->peer->breaker, now);
}

void stg_retry_leave_bulkhead(stg_retry *r)
{
    if (has(r, IN_BULKHEAD))
        stg_bulkhead_leave(&r->with->peer->bulkhead);
    clear(r, IN_BULKHEAD);
}

/* The attempt was not made, or nobody waits for it. */
void stg_retry_leave_throttle(stg_retry *r, stg_ns now)
{
    if (has(r, THROTTLED))
        stg_throttle_withdraw(&r->with->peer->throttle,
                              has(r, IN_ATTEMPT) ? r->since_at : now);
    clear(r, THROTTLED);
}

/* The attempt is over. */
void stg_retry_leave_share(stg_retry *r)
{
    if (has(r, IN_SHARE)) {
        stg_budget_end(own_budget(r), r->paid);
        stg_budget_end(r->with->shared_budget, r->paid);
    }
    clear(r, IN_SHARE);
}

static void release(stg_retry *r, stg_ns now)
{
    if (has(r, IN_BULKHEAD | THROTTLED | IN_SHARE)) {
        stg_retry_leave_share(r);
        stg_retry_leave_bulkhead(r);
        stg_retry_leave_throttle(r, now);
    }
    stg_retry_release_payment(r, now);
    stg_retry_release_place(r, now);
    stg_retry_release_probe(r, now);
}

stg_decision stg_retry_end(stg_retry *r, stg_why why, const stg_outcome *o,
                           stg_ns now)
{
    stg_decision d;

    if (has(r, HELD | PLACED | PROBE | IN_BULKHEAD | THROTTLED | IN_SHARE))
        release(r, now);
    r->flags = (uint16_t)flags_of_end(why);
    d = stg_retry_ended(r);
    if (o != NULL)
        tell(r, STG_EVENT_DECISION, o, d, now);
    tell(r, STG_EVENT_END, o, d, now);
    return d;
}

stg_decision stg_retry_cancel(stg_retry *r, stg_ns now)
{
    if (!is_running(r))
        return stg_retry_ended(r);
    return stg_retry_end(r, STG_WHY_CANCELLED, NULL, now);
}

/* 0 for an operation that was never started, or was refused: no attempt of it
 * may take any time. */
stg_ns stg_retry_timeout(const stg_retry *r, stg_ns now)
{
    stg_ns left;

    if (r == NULL || r->flags == 0 || is_refused(r))
        return 0;
    left = r->deadline_at == STG_NEVER ? STG_NEVER
                                       : stg_ns_sub(r->deadline_at, now);
    return stg_ns_min(r->policy->attempt_timeout, left);
}
