/* wait.h - what an outcome says of the wait after it: the base, and what the
 * server asked for. Private. */
#ifndef STAGGER_CORE_WAIT_H
#define STAGGER_CORE_WAIT_H

#include <stagger/policy.h>

#include "core/codes.h"

enum { STG_BASES = STG_CATEGORY_OTHER + 1 };

static inline stg_ns stg_base_after(const stg_policy *p, const stg_outcome *o)
{
    stg_ns base = p->base_for[stg_fault_category(o->fault)];

    return base == 0 ? p->backoff.base : base;
}

/* Of all that the policy has. */
static inline stg_ns stg_base_longest(const stg_policy *p)
{
    stg_ns longest = p->backoff.base;

    for (unsigned i = 0; i < STG_BASES; i++)
        longest = stg_ns_max(longest, p->base_for[i]);
    return longest;
}

/* What an unset cap is no shorter than. */
static inline stg_ns stg_cap_least(const stg_policy *p)
{
    return stg_ns_max(stg_base_longest(p),
                      stg_ns_max(p->backoff.floor, p->backoff.offset));
}

/* Of the delay that came with the outcome, what the policy heeds. That of an
 * open breaker is no server's. */
static inline stg_ns stg_wait_asked(const stg_policy *p, const stg_outcome *o)
{
    if (p->retry_after == STG_RETRY_AFTER_IGNORE &&
        o->fault != STG_FAULT_CIRCUIT_OPEN)
        return 0;
    return stg_ns_min(o->delay, p->retry_after_max);
}

#endif
