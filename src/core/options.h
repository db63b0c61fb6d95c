/* options.h - shared levels under other settings: whether these are the same,
 * and what is kept if not. Private. */
#ifndef STAGGER_CORE_OPTIONS_H
#define STAGGER_CORE_OPTIONS_H

#include <stagger/policy.h>

bool stg_budget_options_equal(const stg_budget_options *a,
                              const stg_budget_options *b);
bool stg_breaker_options_equal(const stg_breaker_options *a,
                               const stg_breaker_options *b);

/* b is new and of a kind; what was used up of old stays used up, as far as
 * their kinds have it in common: tokens that are left (no more than b may have),
 * or what was counted. While no other thread uses either. */
void stg_budget_keep(stg_budget *b, const stg_budget *old, stg_ns now);

/* The new breaker is open for as long as the old one, or has counted as much,
 * if both count the same. */
void stg_breaker_keep(stg_breaker *b, const stg_breaker *old);

#endif
