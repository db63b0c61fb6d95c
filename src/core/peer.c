/* What many operations on one target share: a rate limit (GCRA), a bulkhead,
 * and the peer that holds both beside a budget, a breaker and a throttle.
 *
 * Atomic words, no locks: any thread may call. */
#include <stagger/peer.h>

#include "core/options.h"
#include "core/word.h"
#include "core/writer.h"

/* -- the rate limit */

/* The standard burst is what the rate gives in 100 ms, 1 at least. */
stg_status stg_limiter_init(stg_limiter *l, uint32_t rate, uint32_t burst,
                            stg_error *err)
{
    if (l == NULL)
        return stg_refuse(err, "limiter is NULL");
    if (rate > 1000000000)
        return stg_refuse_number(err, "rate", rate,
                                 "0 (no limit) to 1000000000 thousandths");
    if (rate == 0 && burst != 0)
        return stg_refuse_number(err, "burst", burst, "0 with no rate");
    if (burst > 1000000)
        return stg_refuse_number(err, "burst", burst, "0 to 1000000");
    if (rate != 0 && burst == 0)
        burst = (uint32_t)stg_ns_max(rate / 10000, 1);
    *l = (stg_limiter){.rate = rate, .burst = burst};
    return STG_OK;
}

bool stg_limiter_take(stg_limiter *l, stg_ns now, stg_ns *due_at)
{
    stg_ns from_at = now;
    bool is_taken = l == NULL || l->rate == 0 ||
                    stg_gcra_reserve(&l->level, l->rate, l->burst, now,
                                     stg_ns_add(now, 1), &from_at);

    if (due_at != NULL)
        *due_at = from_at;
    return is_taken;
}

stg_ns stg_limiter_reserve(stg_limiter *l, stg_ns now, stg_ns until_at)
{
    stg_ns from_at = now;

    if (l == NULL || l->rate == 0)
        return now < until_at ? now : STG_NEVER;
    return stg_gcra_reserve(&l->level, l->rate, l->burst, now, until_at,
                            &from_at)
               ? from_at
               : STG_NEVER;
}

void stg_limiter_give_back(stg_limiter *l, stg_ns from_at, stg_ns now)
{
    if (l != NULL && l->rate != 0)
        stg_gcra_give_back(&l->level, l->rate, l->burst, from_at, now);
}

/* -- the bulkhead */

stg_status stg_bulkhead_check(const stg_bulkhead_options *o, stg_error *err)
{
    if (o == NULL)
        return stg_refuse(err, "bulkhead options are NULL");
    if (o->max > 1000000)
        return stg_refuse_number(err, "bulkhead", o->max,
                                 "1 to 1000000 attempts at once, or none");
    if (o->max == 0 && o->wait != 0)
        return stg_refuse_duration(err, "bulkhead wait", o->wait,
                                   "0 without a limit");
    if (o->wait > 365 * STG_DAY)
        return stg_refuse_duration(err, "bulkhead wait", o->wait, "0 to 365d");
    return STG_OK;
}

stg_status stg_bulkhead_init(stg_bulkhead *b, const stg_bulkhead_options *o)
{
    if (b == NULL || stg_bulkhead_check(o, NULL) != STG_OK)
        return STG_INVALID;
    *b = (stg_bulkhead){.options = *o};
    return STG_OK;
}

static bool take_one(uint64_t seen, uint64_t *next, void *max)
{
    *next = seen + 1;
    return seen < *(uint32_t *)max;
}

bool stg_bulkhead_enter(stg_bulkhead *b)
{
    return b == NULL || b->options.max == 0 ||
           stg_word_change(&b->taken, take_one, &b->options.max);
}

static bool return_one(uint64_t seen, uint64_t *next, void *none)
{
    (void)none;
    *next = seen - 1;
    return seen != 0;
}

void stg_bulkhead_leave(stg_bulkhead *b)
{
    if (b != NULL)
        stg_word_change(&b->taken, return_one, NULL);
}

uint32_t stg_bulkhead_taken(const stg_bulkhead *b)
{
    return b == NULL ? 0 : (uint32_t)stg_word_read(&b->taken);
}

/* -- the peer, which has these, a budget, a breaker and a throttle */

/* stg_peer.mark of a peer that was initialised. A zeroed one is refused. */
static const uint32_t made = 0x73746770;

/* The mark is written last: a peer of which a part was refused stays
 * unusable. */
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

/* Only parts that the policy has are compared: a policy without a breaker may
 * share a peer that has one. */
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
