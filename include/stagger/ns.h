/* ns.h - time: unsigned 64-bit nanoseconds, instants and durations alike.
 *
 * An instant counts from an origin that the caller chooses and keeps (the
 * system's monotonic clock, or 0 in a simulation). No arithmetic wraps: sums
 * stop at STG_NEVER and differences at 0, so a deadline too far away is never,
 * and a clock that stepped back reads as no time passed. */
#ifndef STAGGER_NS_H
#define STAGGER_NS_H

#include <stddef.h>

#include <stagger/api.h>

STG_DECLS_BEGIN

typedef uint64_t stg_ns;

#define STG_US ((stg_ns)1000)
#define STG_MS (1000 * STG_US)
#define STG_S (1000 * STG_MS)
#define STG_MIN (60 * STG_S)
#define STG_HOUR (60 * STG_MIN)
#define STG_DAY (24 * STG_HOUR)
#define STG_NEVER UINT64_MAX /* an instant: never; a duration: no limit */

/* a + b, at most STG_NEVER. */
static inline stg_ns stg_ns_add(stg_ns a, stg_ns b)
{
    return a > STG_NEVER - b ? STG_NEVER : a + b;
}

/* a - b, at least 0. */
static inline stg_ns stg_ns_sub(stg_ns a, stg_ns b)
{
    return a > b ? a - b : 0;
}

/* a * b, at most STG_NEVER. */
static inline stg_ns stg_ns_mul(stg_ns a, uint64_t b)
{
    return b != 0 && a > STG_NEVER / b ? STG_NEVER : a * b;
}

static inline stg_ns stg_ns_min(stg_ns a, stg_ns b)
{
    return a < b ? a : b;
}

static inline stg_ns stg_ns_max(stg_ns a, stg_ns b)
{
    return a > b ? a : b;
}

#define STG_NS_TEXT_MAX 16

/* Writes ns for people, rounded to what they read: "0", "3.1 s", "250 ms",
 * "1.5 h", "365 d", "never" for STG_NEVER. Returns text, which has room for
 * STG_NS_TEXT_MAX bytes and is always terminated. */
STG_API const char *stg_ns_text(stg_ns ns, char text[STG_NS_TEXT_MAX]);

STG_DECLS_END

#endif
