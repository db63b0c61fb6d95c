/* hash.h - a hash for tables whose keys come from outside: SipHash-2-4.
 *
 * Producers choose idempotency keys, addresses and the texts of log events.
 * With a hash that they can compute they choose those that share a slot, and
 * each look at the table walks over all of them. This one depends on a secret,
 * which a table draws when it is made; so its values are not to be stored.
 *
 * Source: Aumasson, Bernstein, "SipHash: a fast short-input PRF", INDOCRYPT
 * 2012. */
#ifndef STAGGER_BASE_HASH_H
#define STAGGER_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#include <stagger/env.h>

/* 128 random bits; plain data, read by any thread. */
typedef struct stg_hash_seed {
    uint64_t at[2];
} stg_hash_seed;

/* Two draws of env->random, which is not NULL; in the hub of stg_env_system(). */
stg_hash_seed stg_hash_seed_draw(const stg_env *env);

/* All 64 bits are good, so the lowest ones are a slot. `bytes` is borrowed, and
 * may be NULL if the size is 0. */
uint64_t stg_hash(const stg_hash_seed *seed, const void *bytes, size_t size);

#endif
