/* policy.h - what to do about faults: plain constant data.
 *
 * A policy holds parameters only: no levels, no pointers. Make one from text
 * (text.h) or from stg_policy_default() and assignments followed by
 * stg_policy_check(); then any number of operations and threads share it,
 * unchanged, for as long as they run. A zeroed policy is refused. */
#ifndef STAGGER_POLICY_H
#define STAGGER_POLICY_H

#include <stdbool.h>

#include <stagger/backoff.h>
#include <stagger/breaker.h>
#include <stagger/budget.h>
#include <stagger/bulkhead.h>
#include <stagger/hedge.h>
#include <stagger/outcome.h>
#include <stagger/throttle.h>

STG_DECLS_BEGIN

/* Rules. Each outcome has a chain of links, from the most specific:
 *
 *     code, name, family, category, any
 *
 * (503: 503, -, 5xx, server, any; 40P01: sqlstate:40P01, deadlock, -,
 * database, any). The first link that has a rule decides; none: never. */
typedef enum stg_link_kind {
    STG_LINK_CODE,     /* value: the code, code_kind: what it is */
    STG_LINK_NAME,     /* value: a stg_fault */
    STG_LINK_FAMILY,   /* value: a stg_family */
    STG_LINK_CATEGORY, /* value: a stg_category */
    STG_LINK_ANY,      /* value: 0 */
} stg_link_kind;

typedef enum stg_family {
    STG_FAMILY_NONE,
    STG_FAMILY_3XX,
    STG_FAMILY_4XX, /* 408, 425 and 429 too */
    STG_FAMILY_5XX,
    STG_FAMILY_GRPC,
} stg_family;

#define STG_ALWAYS UINT16_MAX
#define STG_RETRIES_MAX 255 /* of a limited rule */
#define STG_RULES_MAX 64
#define STG_LIMITED_MAX 8 /* limited rules of a policy */

typedef struct stg_rule {
    uint8_t link;         /* stg_link_kind */
    uint8_t code_kind;    /* of STG_LINK_CODE: not errno, resolver, tls or
                          exit; else 0 */
    uint16_t retries_max; /* 0 never, 1 to 255 at most so many, STG_ALWAYS */
    uint32_t value;
} stg_rule;

typedef enum stg_nested {
    STG_NESTED_ONCE, /* inside another operation that would repeat what failed:
                        one attempt */
    STG_NESTED_FULL, /* as everywhere */
} stg_nested;

/* The effect of a delay that a server asks for. */
typedef enum stg_retry_after {
    STG_RETRY_AFTER_FLOOR,  /* no wait is shorter */
    STG_RETRY_AFTER_EXACT,  /* it is the wait, also in place of a longer one */
    STG_RETRY_AFTER_IGNORE, /* nothing */
} stg_retry_after;

#define STG_UNLIMITED UINT64_MAX

typedef struct stg_policy {
    uint64_t attempts_max; /* first try included: 1 to 2^32 - 1, or
                              STG_UNLIMITED */
    stg_ns deadline; /* of the operation, from its start; STG_NEVER none */
    stg_ns attempt_timeout; /* of an attempt; STG_NEVER none */
    stg_ns reset_after;     /* an attempt that ran that long before it failed
                               starts all anew; STG_NEVER none */
    stg_ns retry_after_max; /* longer server delays are cut to it; 0 ignores
                               them. These five: at most 365 d. */
    stg_backoff backoff;
    stg_ns base_for[STG_CATEGORY_OTHER + 1]; /* after a fault of this category
                              the base of the wait, to 365 d and to the cap;
                              0: the backoff's. None of categories that rules
                              do not know, nor of a list */
    stg_budget_options budget;
    uint32_t rate; /* of the peer: attempts, first ones and retries alike, in
                      thousandths a second, 1 to 1000000000; 0: no limit */
    stg_bulkhead_options bulkhead; /* of the peer: attempts at once */
    stg_throttle_options throttle;
    stg_hedge_options hedge; /* only where several attempts can be under way:
                                libuv, a loop of your own; others make none */
    stg_breaker_options breaker;
    bool budget_waits; /* wait for an empty budget instead of giving up */
    bool breaks_retries_only; /* an open breaker lets first attempts pass */
    bool unsafe;              /* repeat POST and PATCH without a key, too */
    bool default_rules;       /* the default's rules hold, under those below */
    stg_nested nested;
    stg_retry_after retry_after;
    uint32_t rule_count;
    stg_rule rules[STG_RULES_MAX]; /* no two on one link; unused ones are 0 */
} stg_policy;

/* exponential base=200ms factor=2 cap=30s jitter=full attempts=3 deadline=2m
 * retry=default retry-after-max=1h, no budget, no rate, no bulkhead,
 * no throttle, no hedges, no breaker. */
STG_API stg_policy stg_policy_default(void);

/* Checks every range, and that the policy can be written as a text. Returns
 * STG_OK, or STG_INVALID with a text in err that names the setting, what it is
 * and what was expected. NULL is invalid. */
STG_API stg_status stg_policy_check(const stg_policy *p, stg_error *err);

/* Whether both say the same, field by field. */
STG_API bool stg_policy_equal(const stg_policy *a, const stg_policy *b);

/* The retries that the policy allows after an outcome: 0, 1 to 255, or
 * STG_ALWAYS. *limited, if not NULL, is the index among the limited rules of
 * the one that decides, or -1. */
STG_API uint16_t stg_policy_retries(const stg_policy *p, const stg_outcome *o,
                                    int *limited);

/* The family of an outcome. */
STG_API stg_family stg_outcome_family(const stg_outcome *o);

STG_DECLS_END

#endif
