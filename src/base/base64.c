#include "base/base64.h"

#include <stdint.h>

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
