#include <stagger/retry.h>

#include <stagger/cancel.h>

#include <string.h>

/* Where the operation stands and what it holds: stg_retry.flags. */
enum {
    IN_ATTEMPT = 1,
    ENDED = 2,
    PROBE = 4,           /* the attempt is the breaker's probe */
    HELD = 8,            /* paid for a retry that has not started */
    OWES = 16,           /* the retry is not paid yet: the budget was empty */
    PLACED = 32,         /* holds a place of the rate limit */
    REPEATABLE = 64,     /* may be repeated, whatever became of the attempt */
    AFTER_TIMEOUT = 128, /* the last failure was a timeout */
    PLAIN = 256,         /* no peer, shared budget, cancel, hook or deadline */
    STARTED = 512,       /* by stg_retry_start(): a zeroed one is refused */
    COUNTED = 1024,      /* the budgets know of its first attempt */
};

typedef enum flaw {
    NO_FLAW,
    NOT_STARTED,
    NO_POLICY,
    ZEROED_POLICY,
    NO_PEER,
    STRANGE_PEER,
    NO_ATTEMPT,
} flaw;

static const stg_with nothing;

static bool has(const stg_retry *r, unsigned flags)
{
    return (r->flags & flags) != 0;
}

static void set(stg_retry *r, unsigned flags)
{
    r->flags = (uint16_t)(r->flags | flags);
}

static void clear(stg_retry *r, unsigned flags)
{
    r->flags = (uint16_t)(r->flags & ~flags);
}

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
static stg_ns find_deadline(const stg_policy *p, const stg_with *with,
                            stg_ns now)
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
    deadline_at = find_deadline(policy, with, now);
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

static void call_hook(const stg_retry *r, stg_event_kind kind,
                      const stg_outcome *o, stg_decision decision, stg_ns now)
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

static inline void tell(const stg_retry *r, stg_event_kind kind,
                        const stg_outcome *o, stg_decision decision, stg_ns now)
{
    if (r->with->hook != NULL)
        call_hook(r, kind, o, decision, now);
}

static const stg_decision invalid = {.next = STG_GIVE_UP,
                                     .why = STG_WHY_INVALID};

static bool is_running(const stg_retry *r)
{
    return r != NULL && (r->flags & (STARTED | ENDED)) == STARTED;
}

/* The answer to all that comes before the start or after the end. */
static stg_decision ended(const stg_retry *r)
{
    if (r == NULL || r->flags == 0)
        return invalid;
    return (stg_decision){
        .next = r->why == STG_WHY_DONE ? STG_DONE : STG_GIVE_UP,
        .why = (stg_why)r->why,
    };
}

/* A retry that was paid and does not start costs nothing. */
static void release_payment(stg_retry *r, stg_ns now)
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

static void release_place(stg_retry *r, stg_ns now)
{
    // While a payment is held, the place's instant is not known any more.
    stg_ns from_at = has(r, HELD) ? now : r->since_at;

    if (has(r, PLACED))
        stg_limiter_give_back(&r->with->peer->limiter, from_at, now);
    clear(r, PLACED);
}

static void release_probe(stg_retry *r, stg_ns now)
{
    if (has(r, PROBE))
        stg_breaker_abandon(&r->with->peer->breaker, now);
}

static void release(stg_retry *r, stg_ns now)
{
    release_place(r, now);
    release_payment(r, now);
    release_probe(r, now);
}

static stg_decision end(stg_retry *r, stg_why why, const stg_outcome *o,
                        stg_ns now)
{
    stg_decision d;

    if (has(r, HELD | PLACED | PROBE))
        release(r, now);
    r->flags = ENDED;
    r->why = (uint8_t)why;
    d = ended(r);
    if (o != NULL)
        tell(r, STG_EVENT_DECISION, o, d, now);
    tell(r, STG_EVENT_END, o, d, now);
    return d;
}

static bool is_cancelled(const stg_retry *r)
{
    return r->with->cancel != NULL && stg_cancel_is_set(r->with->cancel);
}

/* The server never saw the request, or said that it did not take it. A host
 * that is unreachable is not among them: the system reports that of a
 * connection in use, too. */
static bool is_unprocessed(const stg_outcome *o)
{
    switch (o->fault) {
    case STG_FAULT_REFUSED:
    case STG_FAULT_DNS:
    case STG_FAULT_DNS_TEMPORARY:
    case STG_FAULT_CONNECT_TIMEOUT:
    case STG_FAULT_TLS:
    case STG_FAULT_EGRESS:
    case STG_FAULT_CIRCUIT_OPEN:
        return true;
    case STG_FAULT_OVERLOAD:
        return o->unsent || o->code == 425 || o->code == 429;
    default:
        return o->unsent;
    }
}

/* The order of the questions is the policy: the first that holds is the
 * reason. STG_WHY_DONE: none does. */
static stg_why find_refusal(const stg_retry *r, const stg_outcome *o,
                            uint16_t retries_max, int limited)
{
    const stg_policy *p = r->policy;

    if (o->fault == STG_FAULT_CANCELLED || is_cancelled(r))
        return STG_WHY_CANCELLED;
    if (o->fault == STG_FAULT_CIRCUIT_OPEN && retries_max == 0)
        return STG_WHY_CIRCUIT_OPEN;
    if (o->permanent || retries_max == 0)
        return STG_WHY_PERMANENT;
    if (!has(r, REPEATABLE) && !is_unprocessed(o))
        return STG_WHY_NOT_IDEMPOTENT;
    if (r->depth > 0 && p->nested == STG_NESTED_ONCE)
        return STG_WHY_NESTED;
    if (limited >= 0 && r->limited[limited] >= retries_max)
        return STG_WHY_FAULT_LIMIT;
    if (r->attempts >= p->attempts_max)
        return STG_WHY_ATTEMPTS;
    return STG_WHY_DONE;
}

/* Whether a retry that starts at due_at can end before the deadline. A moment
 * that never comes is past any. */
static bool fits_deadline(const stg_retry *r, stg_ns due_at)
{
    return stg_ns_add(due_at, r->with->expected) < r->deadline_at;
}

/* The wait, and whether it is the policy's own or what the server asked. */
static stg_ns find_wait(stg_retry *r, const stg_outcome *o, stg_rng *rng,
                        stg_why *why)
{
    const stg_backoff *b = &r->policy->backoff;
    stg_ns floor = stg_ns_min(o->delay, r->policy->retry_after_max);
    uint32_t n = r->own_waits < UINT32_MAX ? r->own_waits + 1 : UINT32_MAX;

    *why = STG_WHY_SERVER_DELAY;
    if (floor > 0 &&
        (b->jitter != STG_JITTER_NONE || floor > stg_backoff_window(b, n)))
        return stg_backoff_wait_after(b, n, floor, rng);
    *why = STG_WHY_BACKOFF;
    r->own_waits = n;
    return stg_backoff_wait(b, n, &r->last, rng);
}

static stg_grant ask(stg_budget *b, const stg_retry *r, stg_ns now)
{
    bool after_timeout = has(r, AFTER_TIMEOUT);

    if (b == NULL)
        return (stg_grant){.granted = true, .from_at = now};
    if (!r->policy->budget_waits)
        return stg_budget_take(b, after_timeout, now);
    return stg_budget_reserve(b, after_timeout, now,
                              stg_ns_sub(r->deadline_at, r->with->expected));
}

/* Pays the peer's budget and the shared one, or neither. Granted: from_at is
 * when both are good for it. */
static stg_grant pay(stg_retry *r, stg_ns now)
{
    const stg_with *with = r->with;
    stg_budget *own = with->peer == NULL ? NULL : &with->peer->budget;
    stg_grant first = ask(own, r, now), second;

    if (!first.granted)
        return first;
    second = ask(with->shared_budget, r, now);
    if (!second.granted) {
        if (own != NULL)
            stg_budget_give_back(own, first.paid, first.from_at, now);
        return second;
    }
    r->since_at = first.from_at;
    r->paid = (uint8_t)first.paid;
    r->shared_paid = (uint8_t)second.paid;
    set(r, HELD);
    second.from_at = stg_ns_max(first.from_at, second.from_at);
    return second;
}

/* A wait that the operation is about to begin. */
static stg_decision begin_wait(const stg_retry *r, stg_ns due_at, stg_why why,
                               const stg_outcome *o, stg_ns now)
{
    stg_decision d = {.next = STG_WAIT, .why = why, .due_at = due_at};

    tell(r, STG_EVENT_DECISION, o, d, now);
    return d;
}

/* Everything else says retry at due_at: can the budget afford it? One that
 * knows when it could, and that is too late, is not asked again. */
static stg_decision pay_and_wait(stg_retry *r, stg_ns due_at, stg_why why,
                                 const stg_outcome *o, stg_ns now)
{
    stg_grant g = pay(r, now);

    if (!g.granted && (!r->policy->budget_waits || g.from_at != STG_NEVER))
        return end(r, STG_WHY_BUDGET, o, now);
    if (!g.granted)
        set(r, OWES);
    if (!g.granted || g.from_at > due_at)
        why = STG_WHY_BUDGET;
    if (g.granted)
        due_at = stg_ns_max(due_at, g.from_at);
    return begin_wait(r, due_at, why, o, now);
}

/* An attempt that ran long enough to be a success in itself: what follows is a
 * new series, of which this failure is the first attempt. */
static void reset_if_long(stg_retry *r, stg_ns now)
{
    if (stg_ns_sub(now, r->since_at) < r->policy->reset_after)
        return;
    r->attempts = 1;
    r->own_waits = 0;
    r->last = r->policy->backoff.base;
    memset(r->limited, 0, sizeof r->limited);
    r->deadline_at = find_deadline(r->policy, r->with, now);
}

static stg_decision succeed(stg_retry *r, const stg_outcome *o, stg_ns now)
{
    if (r->with->peer != NULL)
        stg_budget_succeed(&r->with->peer->budget, r->paid);
    if (r->with->shared_budget != NULL)
        stg_budget_succeed(r->with->shared_budget, r->shared_paid);
    return end(r, STG_WHY_DONE, o, now);
}

static void count_failure(stg_retry *r, const stg_outcome *o)
{
    if (stg_fault_about(o->fault)->category == STG_CATEGORY_OWN)
        return;
    if (r->with->peer != NULL)
        stg_budget_fail(&r->with->peer->budget);
    if (r->with->shared_budget != NULL)
        stg_budget_fail(r->with->shared_budget);
}

/* After a failure. */
static stg_decision decide(stg_retry *r, const stg_outcome *o, stg_ns now,
                           stg_rng *rng)
{
    int limited;
    uint16_t retries_max;
    stg_why why;
    stg_ns due_at;

    reset_if_long(r, now);
    retries_max = stg_policy_retries(r->policy, o, &limited);
    if (retries_max != 0)
        count_failure(r, o);
    why = find_refusal(r, o, retries_max, limited);
    if (why != STG_WHY_DONE)
        return end(r, why, o, now);

    due_at = stg_ns_add(now, find_wait(r, o, rng, &why));
    if (!fits_deadline(r, due_at))
        return end(r, STG_WHY_DEADLINE, o, now);
    clear(r, AFTER_TIMEOUT);
    if (o->fault == STG_FAULT_TIMEOUT || o->fault == STG_FAULT_CONNECT_TIMEOUT)
        set(r, AFTER_TIMEOUT);
    if (limited >= 0)
        r->limited[limited]++;
    return pay_and_wait(r, due_at, why, o, now);
}

/* By us, or by gRPC's CANCELLED. */
static bool is_outcome_cancelled(const stg_outcome *o)
{
    enum { GRPC_CANCELLED = 1 };

    return o->fault == STG_FAULT_CANCELLED ||
           (o->fault == STG_FAULT_GRPC && o->code == GRPC_CANCELLED);
}

static void report_to_breaker(stg_retry *r, const stg_outcome *o, stg_ns now)
{
    stg_breaker *b = &r->with->peer->breaker;

    if (is_outcome_cancelled(o))
        release_probe(r, now);
    else
        stg_breaker_report(b, has(r, PROBE), stg_breaker_judge(o), now);
    clear(r, PROBE);
}

stg_decision stg_retry_step(stg_retry *r, const stg_outcome *o, stg_ns now,
                            stg_rng *rng)
{
    static const stg_outcome unknown = {.fault = STG_FAULT_ERROR};
    const stg_outcome *outcome = o == NULL ? &unknown : o;

    if (!is_running(r))
        return ended(r);
    if (!has(r, IN_ATTEMPT))
        return invalid;
    if (has(r, PLAIN) && outcome->fault == STG_FAULT_NONE) {
        r->flags = ENDED;
        return (stg_decision){.next = STG_DONE};
    }
    clear(r, IN_ATTEMPT);
    if (r->policy->breaker.rule != STG_BREAKER_NONE && r->with->peer != NULL)
        report_to_breaker(r, outcome, now);
    return outcome->fault == STG_FAULT_NONE ? succeed(r, outcome, now)
                                            : decide(r, outcome, now, rng);
}

static void count_attempt(stg_retry *r, stg_ns now)
{
    if (r->attempts < UINT32_MAX)
        r->attempts++;
    r->since_at = now;
}

/* The breaker is open: an attempt that was not made, and failed. */
static stg_decision refuse_passage(stg_retry *r, stg_ns reopen_at, stg_ns now,
                                   stg_rng *rng)
{
    stg_outcome o = {.fault = STG_FAULT_CIRCUIT_OPEN,
                     .delay = stg_ns_sub(reopen_at, now)};

    release_place(r, now);
    release_payment(r, now);
    count_attempt(r, now);
    return decide(r, &o, now, rng);
}

/* What was held is used now. */
static stg_decision begin_attempt(stg_retry *r, stg_ns now)
{
    stg_decision go = {.next = STG_GO};
    const stg_with *with = r->with;

    r->flags = (uint16_t)((r->flags & ~(HELD | PLACED)) | IN_ATTEMPT);
    count_attempt(r, now);
    if (!has(r, COUNTED) && with->peer != NULL)
        stg_budget_attempt(&with->peer->budget, now);
    if (!has(r, COUNTED) && with->shared_budget != NULL)
        stg_budget_attempt(with->shared_budget, now);
    set(r, COUNTED);
    tell(r, STG_EVENT_ATTEMPT, NULL, go, now);
    return go;
}

/* The limiter has a place later only: take it and wait. Otherwise STG_GO. */
static stg_decision find_place(stg_retry *r, stg_ns now)
{
    stg_limiter *limiter = &r->with->peer->limiter;
    stg_ns until_at = stg_ns_sub(r->deadline_at, r->with->expected);
    stg_ns from_at;

    if (has(r, PLACED))
        return (stg_decision){.next = STG_GO};
    from_at = stg_limiter_reserve(limiter, now, until_at);
    if (from_at == STG_NEVER)
        return end(r, STG_WHY_DEADLINE, NULL, now);
    set(r, PLACED);
    if (from_at <= now)
        return (stg_decision){.next = STG_GO};
    if (!has(r, HELD))
        r->since_at = from_at;
    return begin_wait(r, from_at, STG_WHY_GATE, NULL, now);
}

/* The budget was empty: ask again, or wait again by the policy's window. */
static stg_decision settle_debt(stg_retry *r, stg_ns now, stg_rng *rng)
{
    const stg_ns least = 10 * STG_MS; // a base of 0 is no reason to spin
    stg_grant g = pay(r, now);
    stg_ns last = r->last, wait, due_at;

    if (g.granted) {
        clear(r, OWES);
        if (g.from_at <= now)
            return (stg_decision){.next = STG_GO};
        return begin_wait(r, g.from_at, STG_WHY_BUDGET, NULL, now);
    }
    wait = stg_backoff_wait(&r->policy->backoff, r->own_waits, &last, rng);
    due_at = stg_ns_add(now, stg_ns_max(least, wait));
    if (g.from_at != STG_NEVER || !fits_deadline(r, due_at))
        return end(r, STG_WHY_BUDGET, NULL, now);
    return begin_wait(r, due_at, STG_WHY_BUDGET, NULL, now);
}

static stg_decision pass_breaker(stg_retry *r, stg_ns now, stg_rng *rng)
{
    stg_ns reopen_at;
    stg_passage passage =
        stg_breaker_enter(&r->with->peer->breaker, now, &reopen_at);

    if (passage == STG_PASSAGE_CLOSED)
        return refuse_passage(r, reopen_at, now, rng);
    if (passage == STG_PASSAGE_PROBE)
        set(r, PROBE);
    return begin_attempt(r, now);
}

stg_decision stg_retry_admit(stg_retry *r, stg_ns now, stg_rng *rng)
{
    stg_decision d = {.next = STG_GO};

    if (!is_running(r))
        return ended(r);
    if (has(r, IN_ATTEMPT))
        return d;
    if (has(r, PLAIN)) {
        set(r, IN_ATTEMPT);
        count_attempt(r, now);
        return d;
    }
    if (is_cancelled(r))
        return end(r, STG_WHY_CANCELLED, NULL, now);
    if (now >= r->deadline_at)
        return end(r, STG_WHY_DEADLINE, NULL, now);
    if (has(r, OWES))
        d = settle_debt(r, now, rng);
    if (d.next == STG_GO && r->with->peer != NULL &&
        r->with->peer->limiter.rate != 0)
        d = find_place(r, now);
    if (d.next != STG_GO)
        return d;
    return r->policy->breaker.rule == STG_BREAKER_NONE
               ? begin_attempt(r, now)
               : pass_breaker(r, now, rng);
}

stg_decision stg_retry_cancel(stg_retry *r, stg_ns now)
{
    if (!is_running(r))
        return ended(r);
    return end(r, STG_WHY_CANCELLED, NULL, now);
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
