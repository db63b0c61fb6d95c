/* A text that grows, and what is put into it: bytes, numbers, Base64 and
 * percent-encoding.
 *
 * A text that was short of memory once stays short: what is put later is dropped, so
 * that callers ask once, at the end. */
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

#include "base/digits.h"

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
    char digits[STG_DIGITS_MAX];
    const char *end = stg_digits_put(digits, number);

    stg_text_add(t, digits, (size_t)(end - digits));
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

/* -- Base64 ------------------------------------------------------------------ */

char *stg_base64_put(char *to, stg_span bytes)
{
    static const char digits[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
        "abcdefghijklmnopqrstuvwxyz0123456789+/";

    for (size_t i = 0; i < bytes.size; i += 3) {
        size_t left = bytes.size - i < 3 ? bytes.size - i : 3;
        uint32_t three = 0;

        for (size_t j = 0; j < left; j++)
            three |= (uint32_t)(unsigned char)bytes.at[i + j] << (16 - 8 * j);
        for (size_t j = 0; j < 4; j++)
            *to++ = j <= left ? digits[three >> (18 - 6 * j) & 63] : '=';
    }
    return to;
}

/* -1: it is no digit. */
static int sextet(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

bool stg_base64_read(char *to, stg_span text, size_t *size)
{
    size_t pads = 0;
    uint32_t group = 0;

    if (text.size % 4 != 0)
        return false;
    while (pads < 2 && pads < text.size && text.at[text.size - 1 - pads] == '=')
        pads++;
    for (size_t i = 0; i < text.size - pads; i++) {
        int six = sextet(text.at[i]);

        if (six < 0)
            return false;
        group = group << 6 | (uint32_t)six;
        if (i % 4 > 0)
            *to++ = (char)(group >> (6 - 2 * (i % 4)));
    }
    *size = text.size / 4 * 3 - pads;
    // Bits that stand for nothing must be 0: else several texts would be the
    // same bytes.
    return pads == 0 || (group & (pads == 1 ? 3U : 15U)) == 0;
}

void stg_text_put_base64(stg_text *t, stg_span bytes)
{
    char *at = stg_text_reserve(t, stg_base64_size(bytes.size));

    if (at != NULL)
        t->size += (size_t)(stg_base64_put(at, bytes) - at);
}

/* -- percent-encoding ------------------------------------------------------- */

static bool is_unreserved(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_' ||
           c == '~';
}

void stg_text_put_escape(stg_text *t, char c)
{
    static const char digits[] = "0123456789ABCDEF";
    unsigned byte = (unsigned char)c;
    char escape[3] = {'%', digits[byte >> 4], digits[byte & 15]};

    stg_text_add(t, escape, sizeof escape);
}

void stg_text_put_percent(stg_text *t, stg_span bytes)
{
    for (size_t i = 0; i < bytes.size; i++)
        if (is_unreserved((unsigned char)bytes.at[i]))
            stg_text_add(t, bytes.at + i, 1);
        else
            stg_text_put_escape(t, bytes.at[i]);
}
