/* share.h - the level of a share budget: attempts and retries under way, one
 * word. Private. */
#ifndef STAGGER_CORE_SHARE_H
#define STAGGER_CORE_SHARE_H

#include <stagger/budget.h>

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
