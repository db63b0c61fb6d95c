/* peer.h - what the operations on one remote share.
 *
 * The levels of its budget, breaker and rate limiter. One for each remote that
 * you call (a database, a service), made once from the policy, used by any
 * number of threads and kept for as long as they run. */
#ifndef STAGGER_PEER_H
#define STAGGER_PEER_H

#include <stagger/limiter.h>
#include <stagger/policy.h>

STG_DECLS_BEGIN

typedef struct stg_peer {
    stg_budget budget;
    stg_breaker breaker;
    stg_limiter limiter; /* no limit unless stg_peer_limit() set one */
    uint32_t mark;       /* set by stg_peer_init(); a zeroed peer is refused */
} stg_peer;

/* Makes the levels, full and closed, for policies with the budget and breaker
 * of this one. Returns STG_INVALID for a policy that is none. */
STG_API stg_status stg_peer_init(stg_peer *peer, const stg_policy *policy);

/* Limits all attempts on the peer: rate in thousandths a second, burst at
 * once. Before any thread uses the peer. Returns STG_INVALID if out of range,
 * with words in err. */
STG_API stg_status stg_peer_limit(stg_peer *peer, uint32_t rate, uint32_t burst,
                                  stg_error *err);

/* Whether peer was made for policies with this one's budget and breaker. */
STG_API bool stg_peer_fits(const stg_peer *peer, const stg_policy *policy);

STG_DECLS_END

#endif
