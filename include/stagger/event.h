/* event.h - a hook that sees each attempt, decision and end: to log, count and
 * trace. Called by the thread that runs the operation, in the middle of it: be
 * brief, and call nothing of the same operation. */
#ifndef STAGGER_EVENT_H
#define STAGGER_EVENT_H

#include <stagger/outcome.h>

STG_DECLS_BEGIN

struct stg_retry;

/* The next step of an operation. */
typedef enum stg_next {
    STG_GO,      /* make an attempt now */
    STG_WAIT,    /* until due_at, then ask stg_retry_admit() */
    STG_DONE,    /* it succeeded */
    STG_GIVE_UP, /* it did not, and why */
} stg_next;

/* Why. Those that end an operation stand in the order in which they are asked;
 * the first that holds is the reason. */
typedef enum stg_why {
    STG_WHY_DONE,
    STG_WHY_CANCELLED,
    STG_WHY_CIRCUIT_OPEN,
    STG_WHY_PERMANENT,
    STG_WHY_NOT_IDEMPOTENT,
    STG_WHY_NESTED,
    STG_WHY_FAULT_LIMIT,
    STG_WHY_ATTEMPTS,
    STG_WHY_DEADLINE,
    STG_WHY_BUDGET,   /* also a wait: for the budget, when the policy says so */
    STG_WHY_THROTTLE, /* the client holds itself back; also a wait */
    STG_WHY_BULKHEAD, /* as many attempts under way as may be; also a wait */
    STG_WHY_INVALID,  /* refused before the first attempt: the call is wrong */
    STG_WHY_BACKOFF,  /* the waits: the policy's own */
    STG_WHY_SERVER_DELAY, /* what the server asked for */
    STG_WHY_GATE,         /* the peer's rate limit */
    STG_WHY_COUNT         /* how many there are; no reason */
} stg_why;

typedef struct stg_decision {
    stg_next next;
    stg_why why;
    stg_ns due_at; /* of STG_WAIT; else 0 */
} stg_decision;

typedef enum stg_event_kind {
    STG_EVENT_ATTEMPT,  /* one starts */
    STG_EVENT_DECISION, /* what one came to, and what then; without an outcome:
                           it has to wait before it starts; STG_GO: others of
                           its round are under way (hedge.h) */
    STG_EVENT_END,      /* done, or given up */
    STG_EVENT_FALLBACK, /* after an end: the fallback has answered; from the
                           adapters */
    STG_EVENT_HEDGE,    /* a further attempt starts, since the first is slow */
} stg_event_kind;

typedef struct stg_event {
    stg_event_kind kind;
    stg_ns at;
    const struct stg_retry *retry; /* its attempts and policy */
    const stg_outcome *outcome;    /* NULL where there is none */
    stg_decision decision;
} stg_event;

typedef struct stg_hook {
    void (*on)(void *ctx, const stg_event *event);
    void *ctx;
} stg_hook;

/* A hook that is ready to use: {.on = stg_event_to_stderr}. When an attempt has
 * failed and will be repeated, it prints to stderr, in one write,
 *
 *     Retry 1 after 131 ms
 *
 * the number of the retry, and the wait before it in whole milliseconds, rounded
 * down. ctx is not used. Any number of threads may share the hook. */
STG_API void stg_event_to_stderr(void *ctx, const stg_event *event);

/* "backoff", "server-delay", "attempts" ... Static; never NULL. */
STG_API const char *stg_why_name(stg_why why);

/* The same as a sentence for people. Static; never NULL. */
STG_API const char *stg_why_sentence(stg_why why);

STG_DECLS_END

#endif
