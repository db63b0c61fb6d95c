/* seal.h - texts that the store keeps encrypted, with keys from a file.
 *
 * AES-256-GCM with a random nonce of 96 bits. The name of what the text belongs to
 * is authenticated with it, so that a row which somebody gives another name is
 * refused. A sealed text is "sealed:1:", the key's id, ":", and Base64 of nonce,
 * ciphertext and tag. An id is eight hexadecimal digits of the key's SHA-256: it
 * tells keys apart, and nothing about them.
 *
 * A file of keys has a key a line, 32 bytes in hexadecimal or Base64; `#` begins
 * a comment. The first key encrypts, all of them decrypt.
 *
 * Source: NIST SP 800-38D, section 8.2.2: up to 2^32 random nonces a key. */
#ifndef STAGGER_STORE_SEAL_H
#define STAGGER_STORE_SEAL_H

#include <stdbool.h>

#include <stagger/status.h>

#include "base/span.h"

enum { STG_SEAL_KEYS_MAX = 16, STG_SEAL_ID_MAX = 9 };

typedef struct stg_seal_keys stg_seal_keys;

/* Blocks. Returns STG_INVALID for a file that others may use or that has a wrong
 * line, STG_IO if it cannot be read; with words that name path and line, and
 * never quote one. */
stg_status stg_seal_keys_load(stg_seal_keys **keys, const char *path,
                              stg_error *err);

/* The same of the text of such a file. */
stg_status stg_seal_keys_parse(stg_seal_keys **keys, stg_span text,
                               const char *path, stg_error *err);
void stg_seal_keys_free(stg_seal_keys *keys); /* NULL is none */

/* Whether both have the same keys, in the same order. */
bool stg_seal_keys_equal(const stg_seal_keys *a, const stg_seal_keys *b);

/* The id of the key that encrypts. */
const char *stg_seal_key(const stg_seal_keys *keys);

/* Whether a text is a sealed one, and whether it is of the key that encrypts. */
bool stg_seal_is(const char *text);
bool stg_seal_is_current(const stg_seal_keys *keys, const char *text);

/* The sealed text of `name`, to be freed. NULL: no memory, or no random
 * numbers. */
char *stg_seal_put(const stg_seal_keys *keys, const char *name,
                   const char *text);

/* The text again, to be freed. Returns STG_INVALID with words, which end a
 * sentence that begins with what it is, where no key fits (keys NULL: there is
 * none), or the text was changed or is another name's; STG_IO: no memory. */
stg_status stg_seal_take(const stg_seal_keys *keys, const char *name,
                         const char *sealed, char **text, stg_error *err);

#endif
