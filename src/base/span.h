/* span.h - bytes that are lent: where they begin, and how many there are.
 *
 * The bytes are not terminated; who owns them is said where a span is. */
#ifndef STAGGER_BASE_SPAN_H
#define STAGGER_BASE_SPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

typedef struct stg_span {
    const char *at;
    size_t size;
} stg_span;

static inline stg_span stg_span_of(const char *text)
{
    return (stg_span){text, strlen(text)};
}

static inline bool stg_span_is(stg_span bytes, const char *text)
{
    return bytes.size == strlen(text) &&
           memcmp(bytes.at, text, bytes.size) == 0;
}

static inline bool stg_span_is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* Without blanks, tabs and carriage returns at both ends. */
static inline stg_span stg_span_trim(stg_span text)
{
    while (text.size > 0 && stg_span_is_blank(text.at[0]))
        text = (stg_span){text.at + 1, text.size - 1};
    while (text.size > 0 && stg_span_is_blank(text.at[text.size - 1]))
        text.size--;
    return text;
}

/* The line at the start of text, without its end; text moves behind it. */
static inline stg_span stg_span_take_line(stg_span *text)
{
    const char *end = memchr(text->at, '\n', text->size);
    size_t size = end == NULL ? text->size : (size_t)(end - text->at);
    size_t whole = end == NULL ? size : size + 1;
    stg_span line = {text->at, size};

    *text = (stg_span){text->at + whole, text->size - whole};
    return line;
}

#endif
