/* options.h - shared levels under other settings: whether these are the same,
 * and what is kept if not. Private. */
#ifndef STAGGER_CORE_OPTIONS_H
#define STAGGER_CORE_OPTIONS_H

#include <stagger/peer.h>

#include <string.h>

/* `aws` by itself. */
extern const stg_budget_options stg_budget_aws;

_Static_assert(sizeof(stg_budget_options) == 28,
               "options have no padding, and are compared as bytes");

static inline bool stg_budget_options_equal(const stg_budget_options *a,
                                            const stg_budget_options *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

static inline bool stg_bulkhead_options_equal(const stg_bulkhead_options *a,
                                              const stg_bulkhead_options *b)
{
    return a->max == b->max && a->wait == b->wait;
}

static inline bool stg_throttle_options_equal(const stg_throttle_options *a,
                                              const stg_throttle_options *b)
{
    return a->kind == b->kind && a->k == b->k;
}

static inline bool stg_hedge_options_equal(const stg_hedge_options *a,
                                           const stg_hedge_options *b)
{
    return a->max == b->max && a->percentile == b->percentile &&
           a->delay == b->delay;
}

bool stg_breaker_options_equal(const stg_breaker_options *a,
                               const stg_breaker_options *b);

/* Not 0 where the policy has anything beside a budget that only a peer can
 * keep: as one number it is one question. */
static inline uint32_t stg_policy_parts(const stg_policy *p)
{
    return (unsigned)p->breaker.rule | p->rate | p->bulkhead.max |
           (unsigned)p->throttle.kind | p->hedge.percentile;
}

/* The same, or a budget. */
static inline bool stg_policy_is_shared(const stg_policy *p)
{
    return ((unsigned)p->budget.kind | stg_policy_parts(p)) != 0;
}

/* Why a peer does not serve a policy. */
typedef enum stg_misfit {
    STG_FITS,
    STG_NOT_MADE, /* by stg_peer_init() */
    STG_OTHER_BUDGET,
    STG_OTHER_BREAKER,
    STG_OTHER_RATE,
    STG_OTHER_BULKHEAD,
    STG_OTHER_THROTTLE,
} stg_misfit;

stg_misfit stg_peer_misfit(const stg_peer *peer, const stg_policy *policy);

/* b is new and of a kind; what was used up of old stays used up, as far as
 * their kinds have it in common: tokens that are left (no more than b may have),
 * or what was counted. While no other thread uses either. */
void stg_budget_keep(stg_budget *b, const stg_budget *old, stg_ns now);

/* Counts an attempt under way that began before b was made. */
void stg_budget_adopt(stg_budget *b, stg_charge paid);

/* Whether a share counts just these, as it must; true of all other kinds. */
bool stg_budget_counts(const stg_budget *b, uint32_t attempts,
                       uint32_t retries);

/* The new breaker is open for as long as the old one, or has counted as much,
 * if both count the same. */
void stg_breaker_keep(stg_breaker *b, const stg_breaker *old);

/* The next probe may start now, if the breaker is open and no probe is under
 * way; what the breaker does when it fails is as ever. */
void stg_breaker_probe_now(stg_breaker *b, stg_ns now);

#endif
