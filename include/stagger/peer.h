/* peer.h - what the operations on one remote share.
 *
 * The levels of its budget, breaker, rate limiter, bulkhead and
 * throttle, and the latencies that hedge=p95 looks at. One for each remote that
 * you call (a database, a service), made once from a policy, used by any number
 * of threads and kept for as long as they run.
 *
 * Several policies may share one peer: one for reads and one for writes, say.
 * A policy that has a budget has the peer's, number for number, and likewise a
 * policy that has a breaker, a rate, a bulkhead or a throttle; one without a
 * budget (or breaker, or throttle) neither pays nor counts in the peer's, and
 * always fits. So make the peer from a policy that has all that any of them
 * has. Rate limit and bulkhead hold for all. */
#ifndef STAGGER_PEER_H
#define STAGGER_PEER_H

#include <stagger/limiter.h>
#include <stagger/policy.h>

STG_DECLS_BEGIN

typedef struct stg_peer {
    stg_budget budget;
    stg_breaker breaker;
    stg_limiter limiter; /* of the policy's rate, or of stg_peer_limit() */
    stg_bulkhead bulkhead;
    stg_throttle throttle;
    stg_latencies latencies; /* seen by policies that hedge by a percentile */
    uint32_t rate;           /* the policy's */
    uint32_t mark; /* set by stg_peer_init(); a zeroed peer is refused */
} stg_peer;

/* Makes the levels, full and closed, of this policy's budget, breaker,
 * rate, bulkhead and throttle;
 * of the rate a tenth of a second's, 1 at least, may go at once. Returns
 * STG_INVALID for a policy that is none. */
STG_API stg_status stg_peer_init(stg_peer *peer, const stg_policy *policy);

/* Limits all attempts on the peer, whatever the rate of its policies: rate in
 * thousandths a second, 0 for no limit, burst at once, 0 for a tenth of a
 * second's. Before any thread uses the peer. Returns STG_INVALID if out of
 * range, with words in err. */
STG_API stg_status stg_peer_limit(stg_peer *peer, uint32_t rate, uint32_t burst,
                                  stg_error *err);

/* Whether the policy has anything that its operations share, and so needs a
 * peer: a budget, a breaker, a rate, a bulkhead, a throttle, or hedges by a
 * percentile. */
STG_API bool stg_policy_needs_peer(const stg_policy *policy);

/* Whether the peer serves this policy: it was made, of a policy with the same
 * budget, breaker, rate, bulkhead and throttle, as far as this one has them. */
STG_API bool stg_peer_fits(const stg_peer *peer, const stg_policy *policy);

STG_DECLS_END

#endif
