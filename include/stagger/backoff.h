/* backoff.h - how long to wait before the next attempt.
 *
 * Pure integer arithmetic: no clock, no allocation. A stg_backoff is plain
 * data, holds no pointers and may be copied, shared and read by any thread.
 *
 * A wait has a window, which grows with the number of waits, and falls in it
 * by jitter. The window is capped first and the jitter goes down from it: a
 * jittered wait that is cut afterwards has lost its spread. */
#ifndef STAGGER_BACKOFF_H
#define STAGGER_BACKOFF_H

#include <stagger/ns.h>
#include <stagger/rng.h>
#include <stagger/status.h>

STG_DECLS_BEGIN

/* The window w(n) of wait number n = 1, 2, ... from base b, cap c, factor f,
 * offset o, power p; k is n, or n - 1 where waits are counted from 0. */
typedef enum stg_growth {
    STG_FIXED,       /* b */
    STG_LINEAR,      /* min(c, o + b k) */
    STG_EXPONENTIAL, /* min(c, b f^(n-1)) */
    STG_LIST,        /* the n-th of the list; the last one repeats */
    STG_POLYNOMIAL,  /* min(c, o + b k^p) */
} stg_growth;

/* Where in its window w a wait falls; U[x, y] is uniform on whole ns. */
typedef enum stg_jitter {
    STG_JITTER_NONE,  /* w */
    STG_JITTER_FULL,  /* U[0, w] */
    STG_JITTER_EQUAL, /* w/2 + U[0, w/2]; the most is w, if w is odd too */
    STG_JITTER_DECORRELATED, /* s = min(c, U[b, 3 s]); s starts at b and is
                                kept; the growth plays no part */
    STG_JITTER_PERCENT, /* U[m - p m, m + q m], m = min(w, c / (1 + q)), for p
                           below and q above; a fixed or listed window has no
                           c */
    STG_JITTER_UP,      /* m + U[0, a], m = min(w, c - a); likewise */
    STG_JITTER_POLLY,   /* min(c, F(n - 1 + u) - F(n - 2 + v)), the first
                           without v: F(t) = b 2^t tanh(sqrt(4 t)) / 1.4, u is
                           U[0, 1), v the u before. For STG_EXPONENTIAL with
                           factor 2000 and no floor. Each within 1 ns +
                           b 2^n / 10^8 */
} stg_jitter;

#define STG_LIST_MAX 64
#define STG_POWER_MAX 10
#define STG_BACKOFF_MAX (365 * STG_DAY) /* the longest duration of a setting */

typedef struct stg_backoff {
    stg_growth growth;
    stg_jitter jitter;
    uint32_t below;  /* of STG_JITTER_PERCENT: p and q in hundredths, 0 to */
    uint32_t above;  /* 100, not both 0; else 0 */
    uint32_t factor; /* in thousandths, 1000 to 100000 */
    uint16_t power;  /* of STG_POLYNOMIAL: 2 to STG_POWER_MAX; else 0 */
    uint16_t counts_from_0; /* 1: k is n - 1, for STG_LINEAR and
                               STG_POLYNOMIAL; else 0 */
    stg_ns base;            /* 0 to 365 d */
    stg_ns cap;             /* base to 365 d, above 0; or STG_NEVER, no cap */
    stg_ns up;              /* of STG_JITTER_UP: a, above 0, to 365 d; else 0 */
    stg_ns floor;        /* no own wait is shorter: 0 to 365 d, at most cap */
    stg_ns offset;       /* of STG_LINEAR and STG_POLYNOMIAL: o, 0 to 365 d, at
                        most cap; else 0 */
    uint32_t list_count; /* of STG_LIST, 1 to STG_LIST_MAX; else 0 */
    stg_ns list[STG_LIST_MAX]; /* each 0 to 365 d; unused ones are 0 */
} stg_backoff;

/* exponential base=200ms factor=2 cap=30s jitter=full. */
STG_API stg_backoff stg_backoff_default(void);

/* Checks the ranges above. Returns STG_OK, or STG_INVALID with a text in err
 * that names the setting, what it is and what was expected. */
STG_API stg_status stg_backoff_check(const stg_backoff *b, stg_error *err);

/* w(n), saturating. Right for every n; 0 is read as 1. The power is exact
 * where the result is a whole number below 2^64, else low by at most
 * 1 ns + w / 2^70.
 * Reads any b without harm; means something for one that passed the check. */
STG_API stg_ns stg_backoff_window(const stg_backoff *b, uint32_t n);

/* The own wait number n: w(n) and its jitter, drawn from what of the interval
 * is not below the floor; the floor itself where that is nothing. *last is the
 * s of decorrelated jitter, or the v of Polly's in 2^-56: the caller keeps it for
 * each operation and starts it at b->base; other jitters leave it alone. Draws
 * once from rng, or not at all for STG_JITTER_NONE.
 *
 * Source: Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog,
 * 2015. Its exponent is the attempt; ours is one less, so that the first
 * window is the base. A random time on top is that of Google's truncated
 * exponential backoff, -25 % to +50 % librdkafka's (reconnect.backoff.ms).
 * k^4 and an offset are Sidekiq's and Active Job's polynomial backoff. Polly's
 * jitter is that of Polly.Contrib.WaitAndRetry, DecorrelatedJitterBackoffV2, and
 * of Polly 8 (Exponential with UseJitter): b is its median first delay. */
STG_API stg_ns stg_backoff_wait(const stg_backoff *b, uint32_t n, stg_ns *last,
                                stg_rng *rng);

/* The same when the server asked for floor: never earlier, not all at once, and
 * the backoff goes on. If the own wait may be as long as floor, it is drawn from
 * what of its interval is not below floor; else it is floor without jitter, and
 * floor + U[0, h] with any, h being the longest own wait. *last becomes the own
 * wait that was drawn, or h (of Polly's jitter: its u). A floor of 0 is none.
 * One draw, or none, as above. */
STG_API stg_ns stg_backoff_wait_after(const stg_backoff *b, uint32_t n,
                                      stg_ns *last, stg_ns floor, stg_rng *rng);

STG_DECLS_END

#endif
