#include <stagger/peer.h>

#include "core/options.h"
#include "core/writer.h"

static const uint32_t made = 0x73746770;

stg_status stg_peer_init(stg_peer *peer, const stg_policy *policy)
{
    if (peer == NULL)
        return STG_INVALID;
    peer->mark = 0;
    if (policy == NULL || policy->attempts_max == 0 ||
        stg_budget_init(&peer->budget, &policy->budget) != STG_OK ||
        stg_breaker_init(&peer->breaker, &policy->breaker) != STG_OK ||
        stg_limiter_init(&peer->limiter, policy->rate, 0, NULL) != STG_OK ||
        stg_bulkhead_init(&peer->bulkhead, &policy->bulkhead) != STG_OK ||
        stg_throttle_init(&peer->throttle, &policy->throttle) != STG_OK)
        return STG_INVALID;
    peer->latencies = (stg_latencies){.count = 0};
    peer->rate = policy->rate;
    peer->mark = made;
    return STG_OK;
}

stg_status stg_peer_limit(stg_peer *peer, uint32_t rate, uint32_t burst,
                          stg_error *err)
{
    if (peer == NULL || peer->mark != made)
        return stg_refuse(err, "peer was not made by stg_peer_init()");
    return stg_limiter_init(&peer->limiter, rate, burst, err);
}

stg_misfit stg_peer_misfit(const stg_peer *peer, const stg_policy *policy)
{
    if (peer == NULL || policy == NULL || peer->mark != made)
        return STG_NOT_MADE;
    if (policy->budget.kind != STG_BUDGET_NONE &&
        !stg_budget_options_equal(&peer->budget.options, &policy->budget))
        return STG_OTHER_BUDGET;
    if (stg_policy_parts(policy) == 0) // as most
        return STG_FITS;
    if (policy->rate != 0 && policy->rate != peer->rate)
        return STG_OTHER_RATE;
    if (policy->bulkhead.max != 0 &&
        !stg_bulkhead_options_equal(&peer->bulkhead.options, &policy->bulkhead))
        return STG_OTHER_BULKHEAD;
    if (policy->throttle.kind != STG_THROTTLE_NONE &&
        !stg_throttle_options_equal(&peer->throttle.options, &policy->throttle))
        return STG_OTHER_THROTTLE;
    if (policy->breaker.rule != STG_BREAKER_NONE &&
        !stg_breaker_options_equal(&peer->breaker.options, &policy->breaker))
        return STG_OTHER_BREAKER;
    return STG_FITS;
}

bool stg_policy_needs_peer(const stg_policy *policy)
{
    return policy != NULL && stg_policy_is_shared(policy);
}

bool stg_peer_fits(const stg_peer *peer, const stg_policy *policy)
{
    return stg_peer_misfit(peer, policy) == STG_FITS;
}
