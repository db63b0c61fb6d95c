/* text.h - bytes that grow: a line, a page, a body while it is made.
 *
 * Zeroed before use. Without memory what is added is lost and is_short stays
 * true until the text is cleared: add on, and look once at the end. No NUL
 * stands behind the bytes. */
#ifndef STAGGER_BASE_TEXT_H
#define STAGGER_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

#endif
