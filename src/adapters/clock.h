/* clock.h - the env that an operation runs on, with its gaps filled. Private.
 *
 * env.c is the only file that reads a clock or entropy. */
#ifndef STAGGER_ADAPTERS_CLOCK_H
#define STAGGER_ADAPTERS_CLOCK_H

#include <stagger/env.h>

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

#endif
