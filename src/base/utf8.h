/* utf8.h - where the next character of UTF-8 ends, and whether all are some. */
#ifndef STAGGER_BASE_UTF8_H
#define STAGGER_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The bytes of the character at `at`, 1 to 4; 0 if it is none: cut off, too
 * long for its value, a surrogate, above U+10FFFF. size is 1 or more.
 *
 * Source: The Unicode Standard, table 3-7. */
static inline size_t stg_utf8_length(const char *at, size_t size)
{
    const unsigned char *c = (const unsigned char *)at;
    size_t length = c[0] < 0xe0 ? 2 : c[0] < 0xf0 ? 3 : 4;
    unsigned least = c[0] == 0xe0 ? 0xa0 : c[0] == 0xf0 ? 0x90 : 0x80;
    unsigned most = c[0] == 0xed ? 0x9f : c[0] == 0xf4 ? 0x8f : 0xbf;

    if (c[0] < 0x80)
        return 1;
    if (c[0] < 0xc2 || c[0] > 0xf4 || size < length)
        return 0;
    if (c[1] < least || c[1] > most)
        return 0;
    for (size_t i = 2; i < length; i++)
        if (c[i] < 0x80 || c[i] > 0xbf)
            return 0;
    return length;
}

/* Whether `size` bytes are UTF-8; none are. */
static inline bool stg_utf8_is_text(const char *at, size_t size)
{
    for (size_t i = 0, length; i < size; i += length) {
        length = stg_utf8_length(at + i, size - i);
        if (length == 0)
            return false;
    }
    return true;
}

#endif
