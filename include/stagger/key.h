/* key.h - idempotency keys: one name for all attempts of an operation.
 *
 * Send it with each attempt (the header Idempotency-Key) and the server can
 * tell a repetition from a second order. Keys are UUIDs of version 7 (RFC 9562,
 * section 5.7): those of later milliseconds sort later. */
#ifndef STAGGER_KEY_H
#define STAGGER_KEY_H

#include <stagger/api.h>

STG_DECLS_BEGIN

#define STG_KEY_MAX 37 /* 36 letters and the terminator */

/* A new key, from the system's clock and entropy. Where there is no entropy
 * (early at boot, in some sandboxes) it is made of times and the process's
 * number: other than before, but no secret. Any thread may call it. Returns
 * text. */
STG_API const char *stg_key_new(char text[STG_KEY_MAX]);

/* The same, pure: of 48 bits of unix_ms, whose higher ones play no part, and 74
 * of the 80 random bits. Returns text. */
STG_API const char *stg_key_make(char text[STG_KEY_MAX], uint64_t unix_ms,
                                 const uint8_t random[10]);

STG_DECLS_END

#endif
