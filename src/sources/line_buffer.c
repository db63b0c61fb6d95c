#include "sources/line_buffer.h"

#include <stdlib.h>
#include <string.h>

void stg_line_buffer_init(stg_line_buffer *b, size_t line_max)
{
    *b = (stg_line_buffer){.line_max = line_max};
}

void stg_line_buffer_free(stg_line_buffer *b)
{
    free(b->bytes);
    b->bytes = NULL;
}

/* What was taken goes: cheap, as it is more than what stays, or all. */
static void compact(stg_line_buffer *b)
{
    size_t held = stg_line_buffer_held(b);

    if (b->from < held)
        return;
    if (held > 0)
        memmove(b->bytes, b->bytes + b->from, held);
    b->size -= b->from;
    b->scanned -= b->from;
    b->from = 0;
}

bool stg_line_buffer_add(stg_line_buffer *b, const char *bytes, size_t size)
{
    size_t room = b->room == 0 ? 4096 : b->room;
    char *more;

    if (size == 0)
        return true;
    compact(b);
    while (room - b->size < size)
        room *= 2;
    if (room > b->room) {
        more = realloc(b->bytes, room);
        if (more == NULL)
            return false;
        b->bytes = more;
        b->room = room;
    }
    memcpy(b->bytes + b->size, bytes, size);
    b->size += size;
    return true;
}

/* The bytes up to `end` are taken; `next` begins behind them. */
static stg_span take(stg_line_buffer *b, size_t end, size_t next)
{
    stg_span line = {b->bytes + b->from, end - b->from};

    b->from = b->scanned = next;
    if (line.size > 0 && line.at[line.size - 1] == '\r')
        line.size--;
    return line;
}

/* Where the line at `from` ends; false: not yet. */
static bool find_end(stg_line_buffer *b, bool is_end, size_t *end, size_t *next)
{
    const char *newline =
        b->scanned == b->size
            ? NULL
            : memchr(b->bytes + b->scanned, '\n', b->size - b->scanned);

    if (newline != NULL) {
        *end = (size_t)(newline - b->bytes);
        *next = *end + 1;
        return true;
    }
    *end = *next = b->scanned = b->size;
    return is_end && (b->from < b->size || b->is_skipping);
}

/* What is there of a line that is too long already is dropped; it may end in
 * the "\r" of its end. */
static void skip_long(stg_line_buffer *b)
{
    if (stg_line_buffer_held(b) <= b->line_max + 1 && !b->is_skipping)
        return;
    b->is_skipping = true;
    b->from = b->scanned = b->size;
}

stg_line stg_line_buffer_next(stg_line_buffer *b, bool is_end, stg_span *line)
{
    size_t end, next;

    while (find_end(b, is_end, &end, &next)) {
        bool was_skipping = b->is_skipping;

        *line = take(b, end, next);
        b->number++;
        b->is_skipping = false;
        if (was_skipping || line->size > b->line_max)
            return STG_LINE_TOO_LONG;
        if (line->size > 0)
            return STG_LINE;
    }
    skip_long(b);
    return STG_LINE_NONE;
}
