/* By squaring, on a mantissa of 96 bits with a binary exponent, each product
 * rounded down. 64 bits are too few: 1.001^44383 is still below 2^64, and the
 * error of the factor itself grows with the exponent, to 2^-47. */
#include "core/wide.h"

#include <stdbool.h>
#include <stddef.h>

enum { LIMBS = 3 };

/* limb[0] is the lowest; the top bit of the highest is set. The value is the
 * mantissa * 2^exponent. */
typedef struct wide_float {
    uint32_t limb[LIMBS];
    int64_t exponent;
} wide_float;

static uint32_t greatest_common_divisor(uint32_t a, uint32_t b)
{
    while (b != 0) {
        uint32_t rest = a % b;

        a = b;
        b = rest;
    }
    return a;
}

static wide_float product(const wide_float *a, const wide_float *b)
{
    uint32_t limb[2 * LIMBS] = {0};
    wide_float p = {.exponent = a->exponent + b->exponent + 32 * LIMBS};
    unsigned shift;

    for (size_t i = 0; i < LIMBS; i++) {
        uint64_t carry = 0;

        for (size_t j = 0; j < LIMBS; j++) {
            carry += (uint64_t)a->limb[i] * b->limb[j] + limb[i + j];
            limb[i + j] = (uint32_t)carry;
            carry >>= 32;
        }
        limb[i + LIMBS] = (uint32_t)carry;
    }
    // Two normal mantissas: the top bit of the product is the highest or next.
    shift = limb[2 * LIMBS - 1] >> 31 ? 0 : 1;
    p.exponent -= shift;
    for (size_t i = 0; i < LIMBS; i++)
        p.limb[i] =
            limb[i + LIMBS] << shift | (limb[i + LIMBS - 1] >> 31 & shift);
    return p;
}

/* numerator / denominator, both at least 1 and below 2^32, rounded down. */
static wide_float quotient(uint32_t numerator, uint32_t denominator)
{
    wide_float q = {.exponent = -32 * LIMBS};
    uint64_t rest = numerator;
    uint32_t whole = (uint32_t)(rest / denominator);

    for (size_t i = LIMBS; i-- > 0; rest %= denominator) {
        rest <<= 32;
        q.limb[i] = (uint32_t)(rest / denominator);
    }
    // Bring the whole part in from above, a bit at a time.
    for (uint32_t left = whole; left != 0; left >>= 1) {
        for (size_t i = 0; i + 1 < LIMBS; i++)
            q.limb[i] = q.limb[i] >> 1 | q.limb[i + 1] << 31;
        q.limb[LIMBS - 1] = q.limb[LIMBS - 1] >> 1 | left << 31;
        q.exponent++;
    }
    return q;
}

/* base * f rounded down, at most limit. */
static uint64_t scale(uint64_t base, const wide_float *f, uint64_t limit)
{
    wide_float b = {.exponent = -32};
    wide_float p;
    uint64_t top;

    b.limb[2] = (uint32_t)(base >> 32);
    b.limb[1] = (uint32_t)base;
    while (b.limb[2] >> 31 == 0) {
        b.limb[2] = b.limb[2] << 1 | b.limb[1] >> 31;
        b.limb[1] <<= 1;
        b.exponent--;
    }
    p = product(&b, f);
    // The value is p.limb / 2^96 * 2^(exponent + 96), so up to 64 bits of it
    // are whole.
    if (p.exponent + 32 > 0)
        return limit;
    top = (uint64_t)p.limb[2] << 32 | p.limb[1];
    top >>= -(p.exponent + 32);
    return top < limit ? top : limit;
}

/* base * (p / q)^exponent where that is no whole number, at most limit. By
 * squaring, from the lowest bit of the exponent. */
static uint64_t broken_power(uint64_t base, uint32_t p, uint32_t q,
                             uint32_t exponent, uint64_t limit)
{
    wide_float square = quotient(p, q), power = square;
    bool is_one = true;

    for (;; square = product(&square, &square)) {
        if (exponent & 1) {
            power = is_one ? square : product(&power, &square);
            is_one = false;
        }
        exponent >>= 1;
        if (exponent == 0)
            return scale(base, &power, limit);
    }
}

uint64_t stg_power_multiply(uint64_t base, uint32_t factor, uint32_t exponent,
                            uint64_t limit)
{
    uint32_t divisor = greatest_common_divisor(factor, 1000);
    uint32_t p = factor / divisor, q = 1000 / divisor;

    // As long as q divides it, the result is a whole number; once it does not
    // (p has no factor in common with it), it never is one again.
    for (; exponent > 0 && base % q == 0; exponent--) {
        if (base / q > limit / p)
            return limit;
        base = base / q * p;
    }
    return exponent == 0 ? base : broken_power(base, p, q, exponent, limit);
}
