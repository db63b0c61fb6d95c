/* Copies of texts that are freed together: a page of letters, a step of a
 * replay.
 *
 * Only the newest piece is filled, so the end of one that was left is wasted:
 * at most one copy's size. What is larger than a piece has one of its own. */
#include "store/sql.h"

#include <stdlib.h>
#include <string.h>

enum { PIECE = 16384 };

struct stg_arena_piece {
    struct stg_arena_piece *next;
    size_t used, room;
    max_align_t bytes[];
};

/* Every copy is aligned for any type. */
static size_t round_up(size_t size)
{
    size_t unit = sizeof(max_align_t);

    return (size + unit - 1) / unit * unit;
}

/* is_short stays set: the caller asks once, when all is copied. */
static struct stg_arena_piece *add_piece(stg_arena *a, size_t size)
{
    size_t room = size > PIECE ? size : PIECE;
    struct stg_arena_piece *piece = malloc(sizeof *piece + room);

    if (piece == NULL) {
        a->is_short = true;
        return NULL;
    }
    piece->next = a->pieces;
    piece->used = 0;
    piece->room = room;
    a->pieces = piece;
    return piece;
}

void *stg_arena_bytes(stg_arena *a, size_t size)
{
    struct stg_arena_piece *piece = a->pieces;
    void *bytes;

    size = round_up(size);
    if (piece == NULL || piece->room - piece->used < size)
        piece = add_piece(a, size);
    if (piece == NULL)
        return NULL;
    bytes = (char *)piece->bytes + piece->used;
    piece->used += size;
    return bytes;
}

const char *stg_arena_text(stg_arena *a, const char *text)
{
    size_t size;
    char *copy;

    if (text == NULL)
        return NULL;
    size = strlen(text) + 1;
    copy = stg_arena_bytes(a, size);
    return copy == NULL ? NULL : memcpy(copy, text, size);
}

/* With a zero behind it, so that it serves as a string, too. */
stg_span stg_arena_column(stg_arena *a, stg_stmt *st, int column)
{
    stg_span lent = stg_sql_column_span(st, column);
    char *copy;

    if (stg_sql_is_null(st, column))
        return (stg_span){NULL, 0};
    copy = stg_arena_bytes(a, lent.size + 1);
    if (copy == NULL)
        return (stg_span){NULL, 0};
    memcpy(copy, lent.at, lent.size);
    copy[lent.size] = '\0';
    return (stg_span){copy, lent.size};
}

void stg_arena_free(stg_arena *a)
{
    while (a->pieces != NULL) {
        struct stg_arena_piece *next = a->pieces->next;

        free(a->pieces);
        a->pieces = next;
    }
}
