/* little.h - numbers of 32 bits in bytes, little end first, on any machine. */
#ifndef STAGGER_BASE_LITTLE_H
#define STAGGER_BASE_LITTLE_H

#include <stdint.h>

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
