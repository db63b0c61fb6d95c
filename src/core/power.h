/* power.h - base * (factor / 1000)^exponent in integers. Private. */
#ifndef STAGGER_CORE_POWER_H
#define STAGGER_CORE_POWER_H

#include <stdint.h>

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
