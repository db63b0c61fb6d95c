/* key.h - idempotency keys: one name for all attempts of an operation.
 *
 * Send it with each attempt (the header Idempotency-Key) and the server can
 * tell a repetition from a second order. Pure: time and bytes are arguments. */
#ifndef STAGGER_KEY_H
#define STAGGER_KEY_H

#include <stagger/api.h>

STG_DECLS_BEGIN

#define STG_KEY_MAX 37 /* 36 letters and the terminator */

/* A UUID version 7 (RFC 9562, section 5.7): 48 bits of unix_ms, then 74 of the
 * 80 random bits. Keys of later milliseconds sort later. unix_ms beyond 48
 * bits keeps its low ones. Returns text. */
STG_API const char *stg_key_make(char text[STG_KEY_MAX], uint64_t unix_ms,
                                 const uint8_t random[10]);

STG_DECLS_END

#endif
