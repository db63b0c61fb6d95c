/* internal.h - what the adapters share: the env that an operation runs on, with
 * its gaps filled, and the operation of those that block. Private.
 *
 * env.c is the only file that reads a clock or entropy. */
#ifndef STAGGER_ADAPTERS_INTERNAL_H
#define STAGGER_ADAPTERS_INTERNAL_H

#include <stagger/env.h>
#include <stagger/operation.h>

#include "base/compiler.h"

stg_ns stg_env_now(const stg_env *env);
bool stg_env_sleep(const stg_env *env, stg_ns until_at,
                   const stg_cancel *cancel);
uint64_t stg_env_random(const stg_env *env);

/* In whole ms, rounded up, and no more than fits into an int. */
static inline uint32_t stg_to_ms(stg_ns duration)
{
    return (uint32_t)stg_ns_min(duration / STG_MS + (duration % STG_MS != 0),
                                INT32_MAX);
}

/* Whether it has a clock of its own, which its sleep moves. */
static inline bool stg_env_is_virtual(const stg_env *env)
{
    return env != NULL && env->now != NULL;
}

/* -- of the two that block: calls and loops */

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
