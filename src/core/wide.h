/* wide.h - integer arithmetic beyond 64 bits: products from 32-bit parts, and
 * base * (factor / 1000)^exponent. Private. */
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

/* For 0 < base < limit and factor > 1000; any exponent. */
uint64_t stg_power_multiply(uint64_t base, uint32_t factor, uint32_t exponent,
                            uint64_t limit);

/* Rounded down, at most limit; factor is in thousandths, and less than 1000
 * reads as 1000. Exact where the result is a whole number, else low by at most
 * 1 + result / 2^70. */
static inline uint64_t stg_power(uint64_t base, uint32_t factor,
                                 uint32_t exponent, uint64_t limit)
{
    if (factor == 2000 && exponent < 64) // nearly all policies: no division
        return base > limit >> exponent ? limit : base << exponent;
    if (base >= limit)
        return limit;
    if (base == 0 || factor <= 1000 || exponent == 0)
        return base;
    return stg_power_multiply(base, factor, exponent, limit);
}

#endif
