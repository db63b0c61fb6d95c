/* Polly's decorrelated jitter, version 2, in integers: wait n is the difference of two
 * points of a smooth curve, 2^t tanh(sqrt(4 t)), at random places of their steps.
 *
 * No floating point, so that all machines draw the same waits: 2^x by its series, the
 * root by Newton's steps, tanh by both. */
#include "core/backoff_draw.h"

#include <stddef.h>

#include "core/rng_draw.h"

#define ONE (UINT64_C(1) << 62)

enum { U_BITS = 56, K_MAX = 100 };

/* 2^x for x in [0, 1), of which this is 2^64: the series of e^(x ln 2) to its
 * 12th term. In [1, 2), of which 2^62 is 1; low by at most 2^-38. */
static uint64_t exp2_of(uint64_t x)
{
    static const uint64_t per_factorial[] = {
        ONE / 39916800, ONE / 3628800, ONE / 362880, ONE / 40320,
        ONE / 5040,     ONE / 720,     ONE / 120,    ONE / 24,
        ONE / 6,        ONE / 2,       ONE,          ONE,
    };
    const uint64_t ln_2 = UINT64_C(0xb17217f7d1cf79ab); // 2^64 ln 2
    uint64_t power = stg_wide_high(x, ln_2), sum = ONE / 479001600;

    for (size_t i = 0; i < sizeof per_factorial / sizeof *per_factorial; i++)
        sum = per_factorial[i] + stg_wide_high(power, sum);
    return sum;
}

/* The square root, rounded down, of x above 0 and below 2^63: Newton's steps from
 * a power of two that is not below it. */
static uint64_t root_of(uint64_t x)
{
    uint64_t root = UINT64_C(1) << 32, next;

    while ((root >> 1) * (root >> 1) >= x)
        root >>= 1;
    while ((next = (root + x / root) / 2) < root)
        root = next;
    return root;
}

/* tanh(sqrt(4 t)) = (1 - e) / (1 + e), where e = 2^-(4 sqrt(t) / ln 2). t is in
 * 2^-56, above 0 and below 2^63; the result in 2^-31. The root has 28 binary
 * places: it is the most that is lost. */
static uint64_t tanh_of(uint64_t t)
{
    const uint64_t per_ln_2 = UINT64_C(0x171547652); // 2^32 / ln 2
    uint64_t exponent = 0 - root_of(t) * per_ln_2;   // 64 less it, in 2^-58
    uint64_t e = exp2_of(exponent << 6) >> (64 - (exponent >> 58));

    return (ONE - e) / ((ONE + e) >> 31);
}

/* x 2^exponent, rounded down, at most STG_NEVER. */
static uint64_t scale(uint64_t x, int exponent)
{
    if (exponent < 0)
        return x >> -exponent;
    if (exponent >= 64 || x > STG_NEVER >> exponent)
        return STG_NEVER;
    return x << exponent;
}

stg_ns stg_polly_sum(stg_ns base, uint32_t k, uint64_t u)
{
    uint64_t t, mantissa;
    int exponent = 2;

    if (k > K_MAX) // for ever, whatever the base
        k = K_MAX;
    t = k * (STG_POLLY_U_MAX + 1) + u;
    if (base == 0 || t == 0)
        return 0;
    for (; base < UINT64_C(1) << 63; base <<= 1)
        exponent--;
    mantissa =
        stg_wide_high(exp2_of(u << (64 - U_BITS)) << 1, tanh_of(t) << 32);
    // 5 / 7 is the 1 / 1.4 of the formula.
    mantissa = stg_wide_share(stg_wide_high(base, mantissa), 5, 7);
    return scale(mantissa, exponent + (int)k);
}

static uint64_t limit_u(uint64_t u)
{
    return u < STG_POLLY_U_MAX ? u : STG_POLLY_U_MAX;
}

stg_ns stg_polly_wait(stg_ns base, uint32_t n, uint64_t u, uint64_t v)
{
    uint32_t k = n == 0 ? 0 : n - 1;
    stg_ns sum = stg_polly_sum(base, k, limit_u(u));

    if (k == 0 || sum == STG_NEVER)
        return sum;
    return stg_ns_sub(sum, stg_polly_sum(base, k - 1, limit_u(v)));
}

/* The least u whose wait is not below low. A binary search, since waits never
 * fall as u rises. */
static uint64_t least_u(const stg_backoff *b, uint32_t n, uint64_t v,
                        stg_ns low)
{
    uint64_t least = 0, most = STG_POLLY_U_MAX;

    while (least < most) {
        uint64_t middle = least + (most - least) / 2;

        if (stg_polly_wait(b->base, n, middle, v) >= low)
            most = middle;
        else
            least = middle + 1;
    }
    return least;
}

stg_ns stg_polly_draw(const stg_backoff *b, uint32_t n, stg_ns *last,
                      stg_ns low, stg_rng *rng)
{
    uint64_t v = *last, least = low == 0 ? 0 : least_u(b, n, v, low);

    *last = least + stg_rng_draw_upto(rng, STG_POLLY_U_MAX - least);
    // Of a policy that no check has seen, all waits may be below low.
    return stg_ns_max(low,
                      stg_ns_min(b->cap, stg_polly_wait(b->base, n, *last, v)));
}
