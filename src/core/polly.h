/* polly.h - the decorrelated jitter of Polly, in integers. Private.
 *
 *     F(t) = 2^t tanh(sqrt(4 t))
 *     wait number n = b (F(n - 1 + u) - F(n - 2 + v)) / 1.4, the first without v
 *
 * u is drawn, in 2^-56; v is the u of the wait before. So waits add up: the
 * first n of them to b F(n - 1 + u) / 1.4.
 *
 * Source: Polly.Contrib.WaitAndRetry, DecorrelatedJitterBackoffV2, by George
 * Polevoy; the same in Polly 8, RetryHelper (Exponential with UseJitter). */
#ifndef STAGGER_CORE_POLLY_H
#define STAGGER_CORE_POLLY_H

#include <stagger/backoff.h>

#define STG_POLLY_U_MAX ((UINT64_C(1) << 56) - 1)

/* b F(k + u) / 1.4, at most STG_NEVER: within 1 ns + b 2^k / 10^8 of it. It
 * never falls as k and u rise. */
__attribute__((const)) stg_ns stg_polly_sum(stg_ns base, uint32_t k,
                                            uint64_t u);

/* Wait number n, not cut to any cap; STG_NEVER where the sum is. 0 is read as
 * 1, and a larger u or v as STG_POLLY_U_MAX. */
__attribute__((const)) stg_ns stg_polly_wait(stg_ns base, uint32_t n,
                                             uint64_t u, uint64_t v);

/* Draws one that is no shorter than low, which is not above the longest, and
 * keeps its u in *last, whose v it replaces. */
stg_ns stg_polly_draw(const stg_backoff *b, uint32_t n, stg_ns *last,
                      stg_ns low, stg_rng *rng);

#endif
