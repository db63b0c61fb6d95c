/* digits.h - a number as decimal digits, without printf. */
#ifndef STAGGER_BASE_DIGITS_H
#define STAGGER_BASE_DIGITS_H

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

#endif
