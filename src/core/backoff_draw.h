/* backoff_draw.h - stg_backoff_window() and stg_backoff_wait(), for those who
 * wait often enough to feel a call. Private. */
#ifndef STAGGER_CORE_BACKOFF_DRAW_H
#define STAGGER_CORE_BACKOFF_DRAW_H

#include <stagger/backoff.h>

#include "core/power.h"
#include "core/rng_draw.h"

/* The window's length for the list, which is no formula. */
stg_ns stg_backoff_listed(const stg_backoff *b, uint32_t n);

/* Percent's place in the window. */
stg_ns stg_backoff_spread(const stg_backoff *b, stg_ns window, stg_rng *rng);

/* stg_backoff_window(). */
static inline stg_ns stg_backoff_reach(const stg_backoff *b, uint32_t n)
{
    uint32_t retry = n == 0 ? 1 : n;

    switch (b->growth) {
    case STG_FIXED:
        return b->base;
    case STG_LINEAR:
        return stg_ns_min(b->cap, stg_ns_mul(b->base, retry));
    case STG_EXPONENTIAL:
        return stg_power(b->base, b->factor, retry - 1, b->cap);
    case STG_LIST:
        return stg_backoff_listed(b, retry);
    }
    return b->base; // gcov-excl: no such growth
}

/* stg_backoff_wait(). */
static inline stg_ns stg_backoff_draw(const stg_backoff *b, uint32_t n,
                                      stg_ns *last, stg_rng *rng)
{
    stg_ns window, most;

    if (b->jitter == STG_JITTER_DECORRELATED) { // has no window
        most = stg_ns_max(b->base, stg_ns_mul(*last, 3));
        *last = stg_ns_min(b->cap,
                           b->base + stg_rng_draw_upto(rng, most - b->base));
        return *last;
    }
    window = stg_backoff_reach(b, n);
    switch (b->jitter) {
    case STG_JITTER_FULL:
        return stg_rng_draw_upto(rng, window);
    case STG_JITTER_EQUAL:
        return window / 2 + stg_rng_draw_upto(rng, window - window / 2);
    case STG_JITTER_PERCENT:
        return stg_backoff_spread(b, window, rng);
    default: // none
        return window;
    }
}

#endif
