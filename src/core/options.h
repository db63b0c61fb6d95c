/* options.h - whether two settings of a shared level are the same. Private. */
#ifndef STAGGER_CORE_OPTIONS_H
#define STAGGER_CORE_OPTIONS_H

#include <stagger/policy.h>

bool stg_budget_options_equal(const stg_budget_options *a,
                              const stg_budget_options *b);
bool stg_breaker_options_equal(const stg_breaker_options *a,
                               const stg_breaker_options *b);

#endif
