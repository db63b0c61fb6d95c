/* rule.h - what a policy says of an outcome: which rule decides about it, and
 * what the wait after it begins with. Private. */
#ifndef STAGGER_CORE_RULE_H
#define STAGGER_CORE_RULE_H

#include <stagger/policy.h>

#include "core/codes.h"

/* A name that policies may write: not "ok", and not one that stands for an HTTP
 * status or a gRPC code, which have families. */
bool stg_fault_has_name(stg_fault fault);

bool stg_rule_same_link(const stg_rule *a, const stg_rule *b);
bool stg_rule_is_limited(const stg_rule *r);

/* Checks one rule by itself. */
stg_status stg_rule_check(const stg_rule *r, stg_error *err);

/* Writes the link as policies do: "503", "sqlstate:40P01", "5xx", "any". */
struct stg_writer;
void stg_rule_write(struct stg_writer *w, const stg_rule *r);

/* What a policy says of an outcome: stg_policy_retries(). */
typedef struct stg_ruling {
    uint16_t retries_max;
    int16_t limited; /* of the rule, among the limited ones; or -1 */
} stg_ruling;

enum { STG_NO_LINK = STG_LINK_ANY + 1 };

/* On which link of the outcome the default has a rule; all its rules are
 * "always". */
static inline unsigned stg_rule_default_link(const stg_outcome *o)
{
    if (o->fault == STG_FAULT_GRPC) // DEADLINE_EXCEEDED, ABORTED, UNAVAILABLE
        return o->code == 4 || o->code == 10 || o->code == 14 ? STG_LINK_CODE
                                                              : STG_NO_LINK;
    switch (o->fault) {
    case STG_FAULT_REFUSED:
    case STG_FAULT_UNREACHABLE:
    case STG_FAULT_DNS_TEMPORARY:
    case STG_FAULT_CONNECT_TIMEOUT:
    case STG_FAULT_TLS_TIMEOUT:
    case STG_FAULT_TLS_HANDSHAKE:
    case STG_FAULT_TIMEOUT:
    case STG_FAULT_RESET:
    case STG_FAULT_PROTOCOL:
    case STG_FAULT_DEADLOCK:
    case STG_FAULT_SERIALIZATION:
    case STG_FAULT_LOCK_TIMEOUT:
    case STG_FAULT_TOO_MANY_CONNECTIONS:
    case STG_FAULT_CONNECTION_LOST:
    case STG_FAULT_OUTCOME_UNKNOWN:
    case STG_FAULT_PUSHBACK:
    case STG_FAULT_TRANSIENT:
    case STG_FAULT_NO_FILES:
    case STG_FAULT_NO_PORTS:
    case STG_FAULT_NO_BUFFERS:
    case STG_FAULT_INTERRUPTED:
    case STG_FAULT_PROXY:
        return STG_LINK_NAME;
    case STG_FAULT_5XX:
        return STG_LINK_FAMILY;
    case STG_FAULT_OVERLOAD: // 408, 425, 429
        return STG_LINK_CODE;
    default:
        return STG_NO_LINK;
    }
}

/* Of a policy that has rules of its own, over one that was found on the link
 * `best`. */
stg_ruling stg_rule_find_own(const stg_policy *p, const stg_outcome *o,
                             stg_ruling found, unsigned best);

static inline stg_ruling stg_rule_find(const stg_policy *p,
                                       const stg_outcome *o)
{
    unsigned best = p->default_rules ? stg_rule_default_link(o) : STG_NO_LINK;
    stg_ruling found = {.retries_max = best == STG_NO_LINK ? 0 : STG_ALWAYS,
                        .limited = -1};

    return p->rule_count == 0 ? found : stg_rule_find_own(p, o, found, best);
}

/* "3xx", "4xx", "5xx", "grpc"; "" for none. */
const char *stg_family_name(stg_family family);

/* -- the wait after it: the base, and what the server asked for ---------------- */

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
