/* power.h - base * (factor / 1000)^exponent in integers. Private. */
#ifndef STAGGER_CORE_POWER_H
#define STAGGER_CORE_POWER_H

#include <stdint.h>

/* Rounded down, at most limit; factor is in thousandths, and less than 1000
 * reads as 1000. Exact where the result is a whole number, else low by at most
 * 1 + result / 2^70. */
uint64_t stg_power(uint64_t base, uint32_t factor, uint32_t exponent,
                   uint64_t limit);

#endif
