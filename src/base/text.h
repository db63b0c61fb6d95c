/* text.h - bytes that grow: a line, a page, a body while it is made; and Base64.
 *
 * Zeroed before use. Without memory what is added is lost and is_short stays
 * true until the text is cleared: add on, and look once at the end. No NUL
 * stands behind the bytes. */
#ifndef STAGGER_BASE_TEXT_H
#define STAGGER_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/span.h"

typedef struct stg_text {
    char *at; /* from malloc(); who takes it zeroes the text */
    size_t size, room;
    bool is_short; /* there was no memory: what is there is no use */
} stg_text;

/* Room for `more` bytes behind those that are there, which count when size has
 * been raised by the caller. NULL: the text is short. */
char *stg_text_reserve(stg_text *t, size_t more);

void stg_text_add(stg_text *t, const char *bytes, size_t size);
void stg_text_put(stg_text *t, const char *text);
void stg_text_put_number(stg_text *t, uint64_t number);

/* Keeps the memory for the next text. */
void stg_text_clear(stg_text *t);
void stg_text_free(stg_text *t);

/* The ending of a noun behind a count: "" of one, else "s". */
static inline const char *stg_plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

/* -- Base64 with padding, of bytes and to bytes -------------------------------
 *
 * Source: RFC 4648, section 4. */

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

void stg_text_put_base64(stg_text *t, stg_span bytes);

/* "%2F" */
void stg_text_put_escape(stg_text *t, char c);

/* Percent-encoded but for letters, digits and -._~: RFC 3986, section 2.3. */
void stg_text_put_percent(stg_text *t, stg_span bytes);

#endif
