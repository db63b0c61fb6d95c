/* budget_counts.h - the two budgets that are no bucket of tokens, but counts: a
 * ratio of the last ten seconds, a share of what is under way. Private. */
#ifndef STAGGER_CORE_BUDGET_COUNTS_H
#define STAGGER_CORE_BUDGET_COUNTS_H

#include <stagger/budget.h>

/* -- a ratio of retries to first attempts */

void stg_ratio_attempt(stg_budget *b, stg_ns now);
void stg_ratio_withdraw(stg_budget *b, stg_ns started_at);
bool stg_ratio_take(stg_budget *b, stg_ns now);
void stg_ratio_give_back(stg_budget *b, stg_ns paid_at);

/* In thousandths of a retry. */
uint64_t stg_ratio_left(const stg_budget *b, stg_ns now);

/* -- a share: attempts and retries under way, one word */

/* An attempt has begun, or ended; one that is_retry has a place since
 * stg_share_take(). */
void stg_share_begin(stg_budget *b);
void stg_share_end(stg_budget *b, bool is_retry);

bool stg_share_take(stg_budget *b);

/* The place of a retry that did not begin. */
void stg_share_give_back(stg_budget *b);

/* An attempt that began before b was made. */
void stg_share_adopt(stg_budget *b, bool is_retry);

/* In thousandths of a retry. */
uint64_t stg_share_left(const stg_budget *b);

#endif
