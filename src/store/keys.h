/* keys.h - idempotency keys: which position a key has, and of which message.
 *
 * Kept for a time and in a number, oldest out first. The table is in the order
 * of the log, so that it grows at its end; an index in memory (16 bytes a key,
 * at most half of it free) finds a key there. */
#ifndef STAGGER_STORE_KEYS_H
#define STAGGER_STORE_KEYS_H

#include "base/hash.h"
#include "store/parcel.h"
#include "store/sql.h"

enum { STG_KEY_SIZE = 16 }; /* of SHA-256, the first half */

typedef struct stg_key {
    unsigned char key[STG_KEY_SIZE];
    unsigned char body[STG_KEY_SIZE]; /* of the message: content type, ordering
                                         key, headers but those that are passing
                                         (see http/header.h), body */
} stg_key;

typedef struct stg_key_slot stg_key_slot;

typedef struct stg_keys {
    stg_ns kept;
    uint64_t count_max;
    stg_hash_seed seed;
    stg_key_slot *slots;
    size_t count, slot_count;
    void *digest, *context; /* OpenSSL's */
    stg_stmt *find, *add, *oldest, *remove;
} stg_keys;

/* kept and count_max set, the rest zeroed. Reads the table. */
int stg_keys_load(stg_keys *k, stg_db *db);

/* Zeroed: for hashes alone. False: OpenSSL failed (no memory). */
bool stg_keys_begin(stg_keys *k);
void stg_keys_free(stg_keys *k);

/* p NULL: of any message, which the key alone names. False: OpenSSL failed (no
 * memory). */
bool stg_keys_hash(stg_keys *k, stg_key *hash, stg_span key,
                   const stg_parcel *p);

/* What belongs to the message, too. */
bool stg_keys_hash_topic(stg_keys *k, stg_key *hash, stg_span topic);

typedef enum stg_key_found {
    STG_KEY_NEW,
    STG_KEY_REPEATED, /* the same message: *position is its */
    STG_KEY_OTHER,    /* another message */
} stg_key_found;

int stg_keys_find(stg_keys *k, const stg_key *hash, stg_ns wall,
                  stg_key_found *found, uint64_t *position);

/* In the transaction of the message. */
int stg_keys_add(stg_keys *k, const stg_key *hash, uint64_t position,
                 stg_ns wall);

/* Forgets in memory a key that was added, for it was rolled back. */
void stg_keys_drop(stg_keys *k, const stg_key *hash, uint64_t position);

/* The same of all that were added from a position on.
 * Slow: looks at every key. */
void stg_keys_undo(stg_keys *k, uint64_t from);

/* Deletes the oldest that are too old or too many, `most` at most; *removed:
 * how many. In the caller's transaction; if that is rolled back, they are gone
 * from memory only, which harms nobody. */
int stg_keys_expire(stg_keys *k, stg_ns wall, size_t most, size_t *removed);

#endif
