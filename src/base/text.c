#include "base/text.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_ROOM = 1024 };

/* A text that was short once stays short: a later, smaller piece must not
 * stand behind a gap. */
char *stg_text_reserve(stg_text *t, size_t more)
{
    size_t room = t->room == 0 ? FIRST_ROOM : t->room;
    char *at;

    if (t->is_short)
        return NULL;
    if (t->room - t->size >= more && t->room > 0)
        return t->at + t->size;
    while (room - t->size < more && room <= SIZE_MAX / 2)
        room *= 2;
    at = room - t->size < more ? NULL : realloc(t->at, room);
    t->is_short = at == NULL;
    if (at == NULL)
        return NULL;
    t->at = at;
    t->room = room;
    return at + t->size;
}

void stg_text_add(stg_text *t, const char *bytes, size_t size)
{
    char *to = size == 0 ? NULL : stg_text_reserve(t, size);

    if (to == NULL)
        return;
    memcpy(to, bytes, size);
    t->size += size;
}

void stg_text_put(stg_text *t, const char *text)
{
    stg_text_add(t, text, strlen(text));
}

void stg_text_put_number(stg_text *t, uint64_t number)
{
    char digits[20];
    size_t at = sizeof digits;

    do
        digits[--at] = (char)('0' + number % 10);
    while ((number /= 10) != 0);
    stg_text_add(t, digits + at, sizeof digits - at);
}

void stg_text_clear(stg_text *t)
{
    t->size = 0;
    t->is_short = false;
}

void stg_text_free(stg_text *t)
{
    free(t->at);
    *t = (stg_text){.size = 0};
}
