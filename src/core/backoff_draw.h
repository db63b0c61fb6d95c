/* backoff_draw.h - stg_backoff_window() and stg_backoff_wait(), for those who
 * wait often enough to feel a call. Private. */
#ifndef STAGGER_CORE_BACKOFF_DRAW_H
#define STAGGER_CORE_BACKOFF_DRAW_H

#include <stdbool.h>

#include <stagger/backoff.h>

#include "core/rng_draw.h"
#include "core/wide.h"

/* -- the decorrelated jitter of Polly, in integers.
 *
 *     F(t) = 2^t tanh(sqrt(4 t))
 *     wait number n = b (F(n - 1 + u) - F(n - 2 + v)) / 1.4, the first without v
 *
 * u is drawn, in 2^-56; v is the u of the wait before. So waits add up: the
 * first n of them to b F(n - 1 + u) / 1.4.
 *
 * Source: Polly.Contrib.WaitAndRetry, DecorrelatedJitterBackoffV2, by George
 * Polevoy; the same in Polly 8, RetryHelper (Exponential with UseJitter). */

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

/* -- all kinds of jitter */

/* The window's length for the list, which is no formula. */
stg_ns stg_backoff_listed(const stg_backoff *b, uint32_t n);

/* The window's length for STG_LINEAR, whose power is 1, and STG_POLYNOMIAL. */
stg_ns stg_backoff_polynomial(const stg_backoff *b, stg_ns base, uint32_t power,
                              uint32_t n);

/* Whether windows get longer and end at the cap. */
static inline bool stg_backoff_grows(const stg_backoff *b)
{
    return b->growth != STG_FIXED && b->growth != STG_LIST;
}

/* Whether waits depend on the base. */
static inline bool stg_backoff_has_base(const stg_backoff *b)
{
    return b->growth != STG_LIST || b->jitter == STG_JITTER_DECORRELATED;
}

/* From where to where a wait is drawn. */
typedef struct stg_interval {
    stg_ns low;
    stg_ns high;
} stg_interval;

/* The intervals of the jitters that may go above their window. */
stg_interval stg_backoff_spread(const stg_backoff *b, stg_ns window);
stg_interval stg_backoff_raise(const stg_backoff *b, stg_ns window);

/* stg_backoff_window(), from any base. */
static inline stg_ns stg_backoff_reach(const stg_backoff *b, stg_ns base,
                                       uint32_t n)
{
    uint32_t retry = n == 0 ? 1 : n;

    switch (b->growth) {
    case STG_FIXED:
        return base;
    case STG_LINEAR:
        return stg_backoff_polynomial(b, base, 1, retry);
    case STG_EXPONENTIAL:
        return stg_power(base, b->factor, retry - 1, b->cap);
    case STG_LIST:
        return stg_backoff_listed(b, retry);
    case STG_POLYNOMIAL:
        return stg_backoff_polynomial(b, base, b->power, retry);
    }
    return base; // gcov-excl: no such growth
}

/* Whether waits depend on those before them, by what *last keeps. */
static inline bool stg_backoff_keeps_last(const stg_backoff *b)
{
    return b->jitter == STG_JITTER_DECORRELATED ||
           b->jitter == STG_JITTER_POLLY;
}

/* *last after the longest own wait there is. */
static inline stg_ns stg_backoff_last_of(const stg_backoff *b, stg_ns longest)
{
    return b->jitter == STG_JITTER_POLLY ? STG_POLLY_U_MAX : longest;
}

/* Of wait number n, as its jitter has it. */
static inline stg_interval
stg_backoff_jittered(const stg_backoff *b, stg_ns base, uint32_t n, stg_ns last)
{
    stg_ns window;

    if (b->jitter == STG_JITTER_DECORRELATED)
        return (stg_interval){base, stg_ns_max(base, stg_ns_mul(last, 3))};
    window = stg_backoff_reach(b, base, n);
    if (b->jitter == STG_JITTER_FULL) // nearly all
        return (stg_interval){0, window};
    switch (b->jitter) {
    case STG_JITTER_EQUAL:
        return (stg_interval){window / 2, window};
    case STG_JITTER_PERCENT:
        return stg_backoff_spread(b, window);
    case STG_JITTER_UP:
        return stg_backoff_raise(b, window);
    case STG_JITTER_POLLY:
        return (stg_interval){
            stg_polly_wait(base, n, 0, last),
            stg_polly_wait(base, n, STG_POLLY_U_MAX, last),
        };
    default: // none
        return (stg_interval){window, window};
    }
}

/* The same above the floor. Where waits depend on those before them, what is
 * drawn from this is cut to the cap afterwards. */
static inline stg_interval
stg_backoff_interval(const stg_backoff *b, stg_ns base, uint32_t n, stg_ns last)
{
    stg_interval i = stg_backoff_jittered(b, base, n, last);

    return (stg_interval){stg_ns_max(i.low, b->floor),
                          stg_ns_max(i.high, b->floor)};
}

/* The longest own wait in the interval. */
static inline stg_ns stg_backoff_longest(const stg_backoff *b, stg_interval i)
{
    return stg_backoff_keeps_last(b) ? stg_ns_min(b->cap, i.high) : i.high;
}

/* stg_backoff_wait_after(), from its interval. */
static inline stg_ns stg_backoff_draw(const stg_backoff *b, uint32_t n,
                                      stg_interval i, stg_ns *last,
                                      stg_ns floor, stg_rng *rng)
{
    stg_ns longest = stg_backoff_longest(b, i), wait;
    bool is_kept = stg_backoff_keeps_last(b);

    if (b->jitter == STG_JITTER_NONE)
        return stg_ns_max(longest, floor);
    if (floor > longest) { // not all at once, and no earlier than asked
        if (is_kept)
            *last = stg_backoff_last_of(b, longest);
        return stg_ns_add(floor, stg_rng_draw_upto(rng, longest));
    }
    if (b->jitter == STG_JITTER_POLLY)
        return stg_polly_draw(b, n, last, floor, rng);
    i.low = stg_ns_max(i.low, floor);
    wait = i.low + stg_rng_draw_upto(rng, i.high - i.low);
    if (is_kept)
        *last = wait = stg_ns_min(b->cap, wait);
    return wait;
}

#endif
