#include <stagger/retry.h>

#include <string.h>

#include "core/retry_inside.h"

static const stg_with nothing;

static flaw find_flaw(const stg_policy *p, const stg_with *with)
{
    if (p == NULL)
        return NO_POLICY;
    if (p->attempts_max == 0)
        return ZEROED_POLICY;
    if (with->peer != NULL)
        return stg_peer_fits(with->peer, p) ? NO_FLAW : STRANGE_PEER;
    if (p->budget.kind != STG_BUDGET_NONE ||
        p->breaker.rule != STG_BREAKER_NONE)
        return NO_PEER;
    return NO_FLAW;
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
            "the policy has a budget or a breaker, and with.peer is "
            "NULL",
        [STRANGE_PEER] =
            "with.peer was not made by stg_peer_init() for a "
            "policy with this budget and breaker",
        [NO_ATTEMPT] = "the progress to resume has no attempt",
    };

    return texts[r == NULL || r->flags == 0 ? NOT_STARTED : r->flaw];
}

static bool is_method_repeatable(const char *method)
{
    static const char *const methods[] = {"GET",   "HEAD", "OPTIONS",
                                          "TRACE", "PUT",  "DELETE"};

    if (method == NULL)
        return true;
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        if (strcmp(method, methods[i]) == 0)
            return true;
    return false;
}

/* From this moment on. */
stg_ns stg_retry_deadline(const stg_policy *p, const stg_with *with, stg_ns now)
{
    stg_ns deadline_at = stg_ns_add(now, p->deadline);

    return with->deadline_at == 0 ? deadline_at
                                  : stg_ns_min(deadline_at, with->deadline_at);
}

static uint8_t find_depth(const stg_with *with)
{
    if (with->parent == NULL)
        return 0;
    return with->parent->depth < UINT8_MAX ? (uint8_t)(with->parent->depth + 1)
                                           : UINT8_MAX;
}

/* Nothing is shared, watched or timed: most operations, and most of those
 * succeed at once. They are spared the questions. */
static bool is_plain(const stg_with *with, stg_ns deadline_at)
{
    return deadline_at == STG_NEVER && with->peer == NULL &&
           with->shared_budget == NULL && with->cancel == NULL &&
           with->hook == NULL;
}

static unsigned find_flags(const stg_policy *p, const stg_with *with,
                           stg_ns deadline_at)
{
    bool is_repeatable =
        p->unsafe || with->has_key || is_method_repeatable(with->method);

    return STARTED | (is_repeatable ? REPEATABLE : 0U) |
           (is_plain(with, deadline_at) ? PLAIN : 0U);
}

/* Starts it, unless it has a flaw. */
static stg_status start(stg_retry *r, const stg_policy *policy,
                        const stg_with *with, flaw f, stg_ns now)
{
    stg_ns deadline_at;

    if (f != NO_FLAW) {
        *r = (stg_retry){.policy = policy,
                         .with = with,
                         .flags = ENDED,
                         .why = STG_WHY_INVALID,
                         .flaw = (uint8_t)f};
        return STG_INVALID;
    }
    deadline_at = stg_retry_deadline(policy, with, now);
    *r = (stg_retry){
        .policy = policy,
        .with = with,
        .deadline_at = deadline_at,
        .since_at = now,
        .last = policy->backoff.base,
        .flags = (uint16_t)find_flags(policy, with, deadline_at),
        .depth = find_depth(with),
    };
    return STG_OK;
}

stg_status stg_retry_start(stg_retry *r, const stg_policy *policy,
                           const stg_with *with, stg_ns now)
{
    if (with == NULL)
        with = &nothing;
    if (r == NULL)
        return STG_INVALID;
    return start(r, policy, with, find_flaw(policy, with), now);
}

stg_progress stg_progress_begin(const stg_policy *policy)
{
    return (stg_progress){.last = policy->backoff.base};
}

void stg_retry_save(const stg_retry *r, stg_progress *progress)
{
    *progress = (stg_progress){
        .last = r->last, .attempts = r->attempts, .own_waits = r->own_waits};
    memcpy(progress->limited, r->limited, sizeof progress->limited);
}

stg_status stg_retry_resume(stg_retry *r, const stg_policy *policy,
                            const stg_with *with, const stg_progress *progress,
                            stg_ns began_at, stg_ns attempt_at)
{
    flaw f;

    if (with == NULL)
        with = &nothing;
    if (r == NULL)
        return STG_INVALID;
    f = find_flaw(policy, with);
    if (f == NO_PEER)
        f = NO_FLAW;
    if (f == NO_FLAW && progress->attempts == 0)
        f = NO_ATTEMPT;
    if (start(r, policy, with, f, began_at) != STG_OK)
        return STG_INVALID;
    r->last = progress->last;
    r->attempts = progress->attempts;
    r->own_waits = progress->own_waits;
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
    if (r == NULL || r->flags == 0)
        return (stg_decision){.next = STG_GIVE_UP, .why = STG_WHY_INVALID};
    return (stg_decision){
        .next = r->why == STG_WHY_DONE ? STG_DONE : STG_GIVE_UP,
        .why = (stg_why)r->why,
    };
}

/* A retry that was paid and does not start costs nothing. */
void stg_retry_release_payment(stg_retry *r, stg_ns now)
{
    const stg_with *with = r->with;

    if (!has(r, HELD))
        return;
    clear(r, HELD);
    if (with->peer != NULL)
        stg_budget_give_back(&with->peer->budget, r->paid, r->since_at, now);
    if (with->shared_budget != NULL)
        stg_budget_give_back(with->shared_budget, r->shared_paid, r->since_at,
                             now);
}

void stg_retry_release_place(stg_retry *r, stg_ns now)
{
    // While a payment is held, the place's instant is not known any more.
    stg_ns from_at = has(r, HELD) ? now : r->since_at;

    if (has(r, PLACED))
        stg_limiter_give_back(&r->with->peer->limiter, from_at, now);
    clear(r, PLACED);
}

void stg_retry_release_probe(stg_retry *r, stg_ns now)
{
    if (has(r, PROBE))
        stg_breaker_abandon(&r->with->peer->breaker, now);
}

static void release(stg_retry *r, stg_ns now)
{
    stg_retry_release_place(r, now);
    stg_retry_release_payment(r, now);
    stg_retry_release_probe(r, now);
}

stg_decision stg_retry_end(stg_retry *r, stg_why why, const stg_outcome *o,
                           stg_ns now)
{
    stg_decision d;

    if (has(r, HELD | PLACED | PROBE))
        release(r, now);
    r->flags = ENDED;
    r->why = (uint8_t)why;
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

stg_ns stg_retry_timeout(const stg_retry *r, stg_ns now)
{
    stg_ns left;

    if (r == NULL || r->flags == 0 || r->flaw != NO_FLAW)
        return 0;
    left = r->deadline_at == STG_NEVER ? STG_NEVER
                                       : stg_ns_sub(r->deadline_at, now);
    return stg_ns_min(r->policy->attempt_timeout, left);
}
