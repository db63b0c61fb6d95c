/* digits.h - numbers in bytes: as decimal digits without printf, from hexadecimal
 * digits, and as four bytes. */
#ifndef STAGGER_BASE_DIGITS_H
#define STAGGER_BASE_DIGITS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/compiler.h"

enum { STG_DIGITS_MAX = 20 };

/* Up to STG_DIGITS_MAX bytes, without a '\0'. Returns the end. */
static inline char *stg_digits_put(char *to, uint64_t number)
{
    char digits[STG_DIGITS_MAX] STG_UNINITIALIZED;
    size_t at = sizeof digits;

    do
        digits[--at] = (char)('0' + number % 10);
    while ((number /= 10) > 0);
    memcpy(to, digits + at, sizeof digits - at);
    return to + (sizeof digits - at);
}

/* -- hexadecimal ------------------------------------------------------------- */

/* The value of a hexadecimal digit. */

/* Of 0 to 9 and a to f; -1: it is none. */
static inline int stg_hex_lower(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* And of A to F. */
static inline int stg_hex_digit(char c)
{
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : stg_hex_lower(c);
}

/* Reads 2 * size digits. False: one is none, and `to` is not whole. */
static inline bool stg_hex_read(unsigned char *to, size_t size,
                                const char *digits)
{
    for (size_t i = 0; i < size; i++) {
        int high = stg_hex_digit(digits[2 * i]);
        int low = stg_hex_digit(digits[2 * i + 1]);

        if (high < 0 || low < 0)
            return false;
        to[i] = (unsigned char)(high << 4 | low);
    }
    return true;
}

/* -- numbers of 32 bits in bytes, little end first, on any machine ------------ */

/* Writes four bytes. */
static inline void stg_little_put(void *to, uint32_t number)
{
    unsigned char *at = to;

    for (int i = 0; i < 4; i++)
        at[i] = (unsigned char)(number >> (8 * i));
}

/* Reads four bytes. */
static inline uint32_t stg_little_get(const void *from)
{
    const unsigned char *at = from;
    uint32_t number = 0;

    for (int i = 0; i < 4; i++)
        number |= (uint32_t)at[i] << (8 * i);
    return number;
}

#endif
