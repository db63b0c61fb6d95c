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

#include <stdbool.h>
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

/* -- a table of texts ---------------------------------------------------------
 *
 * From texts to numbers, for names that may be many. Zeroed before use; texts
 * are kept. */

typedef struct stg_text_place {
    const char *text; /* NULL: free */
    size_t number;
} stg_text_place;

typedef struct stg_text_table {
    stg_text_place *at;
    size_t room, count;
    stg_hash_seed seed; /* zeros: drawn for the first text */
} stg_text_table;

/* Adds text with a number, unless the table has the text. *found, which may be
 * NULL, becomes the text's number. Returns false if out of memory. */
bool stg_text_table_add(stg_text_table *t, const char *text, size_t number,
                        size_t *found);

/* Whether text is there; its number. */
bool stg_text_table_find(const stg_text_table *t, const char *text,
                         size_t *number);

/* Nothing where it is not there. */
void stg_text_table_remove(stg_text_table *t, const char *text);

void stg_text_table_free(stg_text_table *t);

#endif
