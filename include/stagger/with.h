/* with.h - everything optional about an operation, in one struct.
 *
 * NULL, or all zeros, is the default. What the pointers point to is kept: it
 * outlives the operation. The struct itself is kept by core (retry.h); the
 * adapters copy it, and a compound literal will do. */
#ifndef STAGGER_WITH_H
#define STAGGER_WITH_H

#include <stagger/event.h>
#include <stagger/peer.h>

STG_DECLS_BEGIN

struct stg_cancel;
struct stg_env;

struct stg_report;

/* An answer for an operation that has given up: a cached value, a default, an
 * error page. answer() is called once, by the thread that runs the operation,
 * with the report that is to be made, before anybody else hears of the end; ctx
 * is the caller's, and a place for the answer. Returns whether it has one. It is
 * not called for an operation that was cancelled, nor for a call that is
 * invalid. */
typedef struct stg_fallback {
    bool (*answer)(void *ctx, const struct stg_report *report);
    void *ctx;
} stg_fallback;

typedef struct stg_with {
    stg_peer *peer; /* needed by a policy with budget, breaker, rate or
                       bulkhead */
    stg_budget *shared_budget; /* asked after the peer's own; for a global one;
                                  made by stg_budget_init(), of some kind */
    struct stg_cancel *cancel; /* ends the operation from outside */
    const stg_hook *hook;      /* sees attempts, decisions and the end */
    const stg_fallback *fallback; /* adapters: answers when all is given up */
    const struct stg_env *env; /* adapters: another clock, sleep and chance */
    const struct stg_retry *parent; /* the operation this one is part of: its
                                       retries go before ours (policy.nested) */
    const char *method; /* "POST"; NULL: may be repeated. GET HEAD OPTIONS TRACE
                           PUT DELETE may be, others need a key. Read when an
                           attempt has failed */
    bool has_key;       /* an idempotency key goes with each attempt */
    stg_ns deadline_at; /* an instant of the operation's clock, besides the
                           policy's deadline; 0: none. In 5 s, say, is
                           stg_env_system()->now(NULL) + 5 * STG_S */
    stg_ns expected;    /* how long an attempt takes, for the deadline; 0:
                           unknown */
} stg_with;

STG_DECLS_END

#endif
