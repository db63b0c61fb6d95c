/* wide.h - products wider than 64 bits, from 32-bit parts. Private. */
#ifndef STAGGER_CORE_WIDE_H
#define STAGGER_CORE_WIDE_H

#include <stdint.h>

/* The high 64 bits of a * b. */
static inline uint64_t stg_wide_high(uint64_t a, uint64_t b)
{
    uint64_t a_low = a & UINT32_MAX, a_high = a >> 32;
    uint64_t b_low = b & UINT32_MAX, b_high = b >> 32;
    uint64_t middle = a_high * b_low + (a_low * b_low >> 32);
    uint64_t other;

    if (b_high == 0) // as most are: a range of less than 4.3 s in ns
        return middle >> 32;
    other = a_low * b_high + (middle & UINT32_MAX);
    return a_high * b_high + (middle >> 32) + (other >> 32);
}

/* a * b / d, rounded down, where that and b * (d - 1) fit into 64 bits: so do
 * the products, then. */
static inline uint64_t stg_wide_share(uint64_t a, uint64_t b, uint64_t d)
{
    return a / d * b + a % d * b / d;
}

#endif
