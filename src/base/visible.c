/* Text for people and terminals: bytes that are no UTF-8, control characters, and
 * characters that nobody sees but that change what is seen (bidi, tags) are shown as
 * '?' or as escapes. */
#include "base/visible.h"

#include <string.h>

typedef struct span {
    uint32_t first, last;
} span;

/* Source: the Unicode Character Database, general categories Cc, Cf, Zl and Zp.
 * The joiners U+200C and U+200D stay: scripts and emoji need them. */
static const span hidden[] = {
    {0x0000, 0x001f},   {0x007f, 0x009f}, // controls, C0 and C1
    {0x061c, 0x061c},                     // Arabic letter mark
    {0x180e, 0x180e},                     // Mongolian vowel separator
    {0x200b, 0x200b},                     // zero width space
    {0x200e, 0x200f},                     // left-to-right, right-to-left marks
    {0x2028, 0x202e},                     // separators, bidi embeddings
    {0x2060, 0x206f},                     // invisible operators, bidi isolates
    {0xfeff, 0xfeff},                     // byte order mark
    {0xfff9, 0xfffb},                     // interlinear annotations
    {0xe0000, 0xe007f},                   // tags
};

static uint32_t decode(const char *at, size_t size)
{
    static const unsigned char leads[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    uint32_t code = (unsigned char)at[0] & leads[size];

    for (size_t i = 1; i < size; i++)
        code = code << 6 | ((unsigned char)at[i] & 0x3f);
    return code;
}

static bool is_visible(uint32_t code, stg_visible_in in)
{
    if (code == '\n' || code == '\t')
        return in == STG_VISIBLE_IN_TEXT;
    if (code > '~' && in == STG_VISIBLE_IN_COLUMN)
        return false;
    for (size_t i = 0; i < sizeof hidden / sizeof *hidden; i++)
        if (code >= hidden[i].first && code <= hidden[i].last)
            return false;
    return true;
}

stg_visible_char stg_visible_next(const char *at, size_t size,
                                  stg_visible_in in)
{
    size_t length = stg_utf8_length(at, size);
    uint32_t code;

    if (length == 0)
        return (stg_visible_char){.size = 1, .code = 0xfffd};
    code = decode(at, length);
    return (stg_visible_char){.size = length,
                              .code = code,
                              .is_valid = true,
                              .is_visible = is_visible(code, in)};
}

/* In place: `to` never passes `i`, for a '?' is no longer than what it
 * replaces. */
size_t stg_visible_clean(char *text, size_t size, stg_visible_in in)
{
    size_t to = 0;

    for (size_t i = 0; i < size;) {
        stg_visible_char c = stg_visible_next(text + i, size - i, in);
        bool ends_line = c.code == '\r' && i + 1 < size && text[i + 1] == '\n';

        if (c.is_visible) {
            memmove(text + to, text + i, c.size);
            to += c.size;
        } else if (in != STG_VISIBLE_IN_TEXT || !ends_line) {
            text[to++] = '?';
        }
        i += c.size;
    }
    return to;
}

char *stg_visible_string(char *text, stg_visible_in in)
{
    text[stg_visible_clean(text, strlen(text), in)] = '\0';
    return text;
}

static size_t put_unit(uint32_t unit, char *to)
{
    static const char digits[] = "0123456789abcdef";

    to[0] = '\\';
    to[1] = 'u';
    for (int i = 0; i < 4; i++)
        to[2 + i] = digits[unit >> (12 - 4 * i) & 15];
    return 6;
}

/* Above U+FFFF two halves of UTF-16 (RFC 8259, section 7). */
size_t stg_visible_escape(uint32_t code, char to[STG_VISIBLE_ESCAPE_MAX])
{
    size_t size;

    if (code <= 0xffff)
        return put_unit(code, to);
    size = put_unit(0xd800 + ((code - 0x10000) >> 10), to);
    return size + put_unit(0xdc00 + ((code - 0x10000) & 0x3ff), to + size);
}
