/* A product of 128 bits, which the compiler asks for where a multiplication is
 * checked for overflow, and which the machine has not. */
#include <stdint.h>

typedef struct wide {
    uint64_t low, high;
} wide;

wide __multi3(uint64_t a_low, uint64_t a_high, uint64_t b_low, uint64_t b_high);

/* All of a times b, from four products of 32 bits. */
static wide multiply(uint64_t a, uint64_t b)
{
    uint64_t a0 = (uint32_t)a, a1 = a >> 32;
    uint64_t b0 = (uint32_t)b, b1 = b >> 32;
    uint64_t low = a0 * b0;
    uint64_t middle = a1 * b0 + (low >> 32);
    uint64_t other = a0 * b1 + (uint32_t)middle;

    return (wide){
        .low = other << 32 | (uint32_t)low,
        .high = a1 * b1 + (middle >> 32) + (other >> 32),
    };
}

wide __multi3(uint64_t a_low, uint64_t a_high, uint64_t b_low, uint64_t b_high)
{
    wide product = multiply(a_low, b_low);

    product.high += a_high * b_low + a_low * b_high;
    return product;
}
