/* ratio.h - the levels of a ratio budget. Private. */
#ifndef STAGGER_CORE_RATIO_H
#define STAGGER_CORE_RATIO_H

#include <stagger/budget.h>

void stg_ratio_attempt(stg_budget *b, stg_ns now);
void stg_ratio_withdraw(stg_budget *b, stg_ns started_at);
bool stg_ratio_take(stg_budget *b, stg_ns now);
void stg_ratio_give_back(stg_budget *b, stg_ns paid_at);

/* In thousandths of a retry. */
uint64_t stg_ratio_left(const stg_budget *b, stg_ns now);

#endif
