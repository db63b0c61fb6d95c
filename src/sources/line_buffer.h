/* line_buffer.h - bytes in, lines out.
 *
 * A line ends with "\n" or "\r\n", which are not of it; the last one may end
 * with the input. A line above line_max is told once, by its number, and takes
 * no more memory than line_max. */
#ifndef STAGGER_SOURCES_LINE_BUFFER_H
#define STAGGER_SOURCES_LINE_BUFFER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/span.h"

typedef struct stg_line_buffer {
    size_t line_max;
    char *bytes; /* those before `from` are taken */
    size_t from, size, room;
    size_t scanned;   /* from here on a '\n' was not looked for */
    uint64_t number;  /* of the last line, from 1 */
    bool is_skipping; /* inside of one that is too long */
} stg_line_buffer;

typedef enum stg_line {
    STG_LINE_NONE, /* no line is whole */
    STG_LINE,
    STG_LINE_TOO_LONG,
} stg_line;

void stg_line_buffer_init(stg_line_buffer *b, size_t line_max);
void stg_line_buffer_free(stg_line_buffer *b);

/* False: no memory, and nothing was added. */
bool stg_line_buffer_add(stg_line_buffer *b, const char *bytes, size_t size);

/* The next line, and its number in b->number; it lies in the buffer until
 * bytes are added. is_end: nothing will be added, so what is there is a line.
 * Empty lines are counted and left out. */
stg_line stg_line_buffer_next(stg_line_buffer *b, bool is_end, stg_span *line);

/* The bytes that it holds. */
static inline size_t stg_line_buffer_held(const stg_line_buffer *b)
{
    return b->size - b->from;
}

#endif
