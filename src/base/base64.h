/* base64.h - Base64 with padding, of bytes and to bytes.
 *
 * Source: RFC 4648, section 4. */
#ifndef STAGGER_BASE_BASE64_H
#define STAGGER_BASE_BASE64_H

#include "base/span.h"

/* The characters for `size` bytes; size is below SIZE_MAX / 2. */
static inline size_t stg_base64_size(size_t size)
{
    return (size + 2) / 3 * 4;
}

/* Writes stg_base64_size(bytes.size) characters to `to`, without a zero at
 * their end, and returns where they end. */
char *stg_base64_put(char *to, stg_span bytes);

/* Writes the bytes that a text stands for to `to`, which has room for three
 * quarters of its size and may be where the text is. Strict: whole groups, and
 * no bits that stand for nothing. False: it is no Base64. */
bool stg_base64_read(char *to, stg_span text, size_t *size);

#endif
