/* retry_internal.h - what the files of a retry do for each other: its beginning
 * and end (retry.c), what is decided about a failure (retry_decide.c), and when
 * an attempt is admitted (retry_admit.c). Private. */
#ifndef STAGGER_CORE_RETRY_INTERNAL_H
#define STAGGER_CORE_RETRY_INTERNAL_H

#include <stagger/retry.h>

/* Where the operation stands and what it holds: stg_retry.flags. */
enum {
    IN_ATTEMPT = 1,
    ENDED = 2,
    PROBE = 4,          /* the attempt is the breaker's probe */
    HELD = 8,           /* paid for a retry that has not started */
    OWES = 16,          /* the retry is not paid yet: the budget was empty */
    PLACED = 32,        /* holds a place of the rate limit */
    PLAIN = 64,         /* no peer, shared budget, cancel, hook or deadline */
    STARTED = 128,      /* by stg_retry_start(): a zeroed one is refused */
    COUNTED = 256,      /* the budgets know of its first attempt */
    PAYING = 512,       /* there is a budget, its own or a shared one */
    IN_BULKHEAD = 1024, /* holds a place of the bulkhead */
    THROTTLED = 4096,   /* the throttle counts its attempt */
    QUEUED = 2048,      /* waits for one, since shared_at */
    IN_SHARE = 8192,    /* a share budget counts its attempt */
};

/* Beside ENDED stands only why it did: a stg_why, from this bit on. */
enum { WHY_BIT = 8 };

typedef enum stg_flaw {
    NO_FLAW,
    NOT_STARTED,
    NO_POLICY,
    ZEROED_POLICY,
    NO_PEER,
    ZEROED_PEER,
    OTHER_BUDGET,
    OTHER_BREAKER,
    OTHER_RATE,
    OTHER_BULKHEAD,
    OTHER_THROTTLE,
    ZEROED_BUDGET,
    NO_ATTEMPT,
} stg_flaw;

static inline bool has(const stg_retry *r, unsigned flags)
{
    return (r->flags & flags) != 0;
}

static inline void set(stg_retry *r, unsigned flags)
{
    r->flags = (uint16_t)(r->flags | flags);
}

static inline void clear(stg_retry *r, unsigned flags)
{
    r->flags = (uint16_t)(r->flags & ~flags);
}

static inline bool is_running(const stg_retry *r)
{
    return r != NULL && (r->flags & (STARTED | ENDED)) == STARTED;
}

/* The peer's, for a policy that has one; else NULL, which budget.h takes as
 * none. */
static inline stg_budget *own_budget(const stg_retry *r)
{
    return r->with->peer == NULL || r->policy->budget.kind == STG_BUDGET_NONE
               ? NULL
               : &r->with->peer->budget;
}

static inline bool is_share(const stg_budget *b)
{
    return b != NULL && b->options.kind == STG_BUDGET_SHARE;
}

/* Whether it hears of attempts that begin. */
static inline bool counts_attempts(const stg_budget *b)
{
    return b != NULL && (b->options.kind == STG_BUDGET_RATIO ||
                         b->options.kind == STG_BUDGET_SHARE);
}

static inline bool fits_deadline(const stg_retry *r, stg_ns due_at)
{
    return stg_ns_add(due_at, r->with->expected) < r->deadline_at;
}

/* -- retry.c --------------------------------------------------------------- */

/* Of an operation, or a new series of attempts, from now on. */
stg_ns stg_retry_deadline(const stg_policy *p, const stg_with *with,
                          stg_ns now);

/* The answer to all that comes before the start or after the end. */
stg_decision stg_retry_ended(const stg_retry *r);

/* Ends it; o is what its last attempt came to, or NULL. */
stg_decision stg_retry_end(stg_retry *r, stg_why why, const stg_outcome *o,
                           stg_ns now);

/* A retry that was paid and does not start costs nothing. */
void stg_retry_release_payment(stg_retry *r, stg_ns now);
void stg_retry_release_place(stg_retry *r, stg_ns now);
void stg_retry_leave_bulkhead(stg_retry *r);
void stg_retry_leave_throttle(stg_retry *r, stg_ns now);
void stg_retry_leave_share(stg_retry *r);
void stg_retry_release_probe(stg_retry *r, stg_ns now);

void stg_retry_call_hook(const stg_retry *r, stg_event_kind kind,
                         const stg_outcome *o, stg_decision decision,
                         stg_ns now);

static inline void tell(const stg_retry *r, stg_event_kind kind,
                        const stg_outcome *o, stg_decision decision, stg_ns now)
{
    if (r->with->hook != NULL)
        stg_retry_call_hook(r, kind, o, decision, now);
}

/* -- retry_decide.c -------------------------------------------------------- */

bool stg_retry_is_cancelled(const stg_retry *r);

bool stg_retry_is_repeatable(const stg_retry *r);

/* A failure that may be retried, or asked for none: budgets that count them. */
void stg_retry_count_failure(const stg_retry *r, const stg_outcome *o);

/* The peer hears what an attempt came to, and its place is free. */
void stg_retry_report(stg_retry *r, const stg_outcome *o, stg_ns now);

/* What comes after an attempt of which the peer has heard. */
stg_decision stg_retry_conclude(stg_retry *r, const stg_outcome *o, stg_ns now,
                                stg_rng *rng);

/* After a failure. */
stg_decision stg_retry_decide(stg_retry *r, const stg_outcome *o, stg_ns now,
                              stg_rng *rng);

/* Pays what r->paid says, of the peer's budget and the shared one, or neither.
 * Granted: from_at is when both are good for it. */
stg_grant stg_retry_pay(stg_retry *r, stg_ns now);

/* A wait that the operation is about to begin. */
stg_decision stg_retry_begin_wait(const stg_retry *r, stg_ns due_at,
                                  stg_why why, const stg_outcome *o,
                                  stg_ns now);

#endif
