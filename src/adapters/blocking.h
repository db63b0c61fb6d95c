/* blocking.h - what the two blocking adapters share. Private. */
#ifndef STAGGER_ADAPTERS_BLOCKING_H
#define STAGGER_ADAPTERS_BLOCKING_H

#include <stagger/operation.h>

#include "base/compiler.h"

/* As stg_operation_begin(), inside parent unless with names another one. */
stg_status stg_operation_begin_in(stg_operation *op, const stg_policy *policy,
                                  const stg_with *with,
                                  const stg_retry *parent);

/* Whether anything of the operation depends on when it begins. with may be
 * NULL. */
bool stg_operation_needs_clock(const stg_policy *policy, const stg_with *with);

/* Makes an operation of one whose first attempt is under way, since r->since_at
 * on the system's clock if is_timed. */
void stg_operation_adopt(stg_operation *op, const stg_retry *r, bool is_timed);

/* Waits as long as the operation wants to. Returns whether to make an
 * attempt. */
bool stg_operation_again(stg_operation *op);

#endif
