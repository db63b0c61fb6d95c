/* breaker.h - stop calling a remote that fails, and find out when it is back.
 *
 * Closed: every attempt passes. After enough failures it opens: nothing passes
 * for a time. Then one attempt, the probe, may pass; its success closes the
 * breaker, its failure opens it again for twice the time, up to a limit. A
 * probe that never reports does not block: an interval later the next may try.
 * Of several probes so many may be under way; it closes when enough of them
 * were good, and opens again when they cannot be enough any more.
 *
 * The breaker sees attempts, not operations, so it sits inside the retry.
 *
 * A breaker by share may count slow calls, too: those that take a time or
 * longer, whatever they came to. It opens when their share of the same window
 * is reached; a probe that is slow counts as in resilience4j, below.
 *
 * Beside its rule it may count connects: a remote that nothing connects to has
 * gone, and says so much sooner than one that fails. It then opens after so
 * many faults of category connect in a row, once nothing has connected for 100
 * ms: one dead backend of three behind a balancer is no reason to open, however
 * often it is met.
 *
 * A stg_breaker belongs to the caller; any number of threads use it at once,
 * without locks: state, doublings and time are one 64-bit word, the connect
 * faults in a row and the time of the last connect another. Times are kept in
 * units of 1024 ns; with several probes under way in units of 8388608 ns, of
 * 268435456 ns where slow ones count; that of the last connect in units of
 * 1048576 ns.
 *
 * Source: Nygard, "Release It!", 2007; the two rules are those of Envoy
 * (consecutive failures) and resilience4j (a share of a window); several probes
 * those of Failsafe (withSuccessThreshold(good, of)) and resilience4j
 * (permittedNumberOfCallsInHalfOpenState). Slow calls: resilience4j,
 * slowCallRateThreshold and slowCallDurationThreshold. */
#ifndef STAGGER_BREAKER_H
#define STAGGER_BREAKER_H

#include <stdbool.h>

#include <stagger/backoff.h>
#include <stagger/outcome.h>
#include <stagger/status.h>

STG_DECLS_BEGIN

typedef enum stg_breaker_rule {
    STG_BREAKER_NONE,
    STG_BREAKER_ROW,   /* opens after `failures` in a row */
    STG_BREAKER_SHARE, /* opens when `percent` of at least `calls` calls in the
                          last `window` failed, or `slow_percent` of them
                          were slow */
} stg_breaker_rule;

#define STG_PROBES_MAX 31

/* Fields that a rule does not use are 0. */
typedef struct stg_breaker_options {
    stg_breaker_rule rule;
    uint32_t failures; /* 1 to 1000000 */
    uint32_t percent;  /* 1 to 100 */
    uint32_t calls;    /* 1 to 10000 */
    uint32_t connects; /* 0: not counted; else opens also after so many faults
                          of category connect in a row, 1 to 1000000 */
    uint16_t probes;   /* under way at once: 2 to 31; 0: one */
    uint16_t probes_good;  /* of them that close it: 1 to probes; 0 with one */
    uint32_t slow_percent; /* share: of slow calls, 1 to 100; 0: not counted */
    stg_ns slow_after; /* a call that takes so long is slow: 1 us to 365 d; 0
                          where they are not counted */
    stg_ns window;     /* 10 ms to 1 d; counted in ten slices. A slice with
                          more than 262143 calls keeps their share, and halves
                          their weight: later calls count for more */
    stg_ns open;       /* 1 ms to 365 d */
    stg_ns open_max;   /* open to 365 d */
} stg_breaker_options;

#define STG_BREAKER_SLICES 10

typedef struct stg_breaker {
    stg_breaker_options options;
    stg_word state; /* 2 bits state, 6 bits doublings, 56 bits time or count;
                       with several probes under way 41 bits time, and three
                       counts of 5 bits: begun, good, bad; where slow ones
                       count 36 bits time, and a fourth: slow */
    stg_word reach; /* 44 bits time of the last connect, 20 bits connect faults
                       in a row since */
    stg_word slices[STG_BREAKER_SLICES]; /* share: slice, calls, failures */
    stg_word slow_slices[STG_BREAKER_SLICES]; /* slice, calls, slow ones */
} stg_breaker;

typedef enum stg_breaker_state {
    STG_BREAKER_CLOSED,
    STG_BREAKER_OPEN,      /* nothing passes before reopen_at */
    STG_BREAKER_HALF_OPEN, /* the next attempt is, or one now is, a probe */
} stg_breaker_state;

/* What an outcome says of the remote. */
typedef enum stg_breaker_verdict {
    STG_BREAKER_SUCCESS,
    STG_BREAKER_FAILURE,
    STG_BREAKER_NEITHER,
    STG_BREAKER_UNREACHED, /* a failure: no connection was made */
    STG_BREAKER_BUSY,      /* neither; but the remote was reached */
} stg_breaker_verdict;

STG_API stg_status stg_breaker_check(const stg_breaker_options *o,
                                     stg_error *err);

/* Makes a closed breaker, before any thread uses it. Returns STG_INVALID for
 * options that do not pass the check. */
STG_API stg_status stg_breaker_init(stg_breaker *b,
                                    const stg_breaker_options *o);

/* Failures are the categories connect (unreached) and server, connection-lost,
 * too-many-connections and gRPC's UNAVAILABLE. 429, 408, 425 (busy) and what was
 * our own doing (cancelled, circuit-open, no-ports, unclassified ...) are
 * neither. Any other answer shows that the remote works. */
STG_API stg_breaker_verdict stg_breaker_classify(const stg_outcome *o);

typedef enum stg_permit {
    STG_PERMIT_GRANTED, /* pass */
    STG_PERMIT_PROBE,   /* pass, and report as the probe */
    STG_PERMIT_DENIED,  /* do not pass before *reopen_at */
} stg_permit;

/* May an attempt start now? Writes *reopen_at for STG_PERMIT_DENIED only. */
STG_API stg_permit stg_breaker_enter(stg_breaker *b, stg_ns now,
                                     stg_ns *reopen_at);

/* Reports how the attempt ended that began at started_at. While the breaker is
 * open, only reports of probes count. A success or a failure is slow or not; an
 * outcome that is neither counts as no call. A slow probe opens the breaker
 * again where one probe is enough; of several, when the share of slow ones is
 * reached, and they close it when that share cannot be reached any more. */
STG_API void stg_breaker_report(stg_breaker *b, bool is_probe,
                                stg_breaker_verdict verdict, stg_ns started_at,
                                stg_ns now);

/* A probe was cancelled before it was answered: the next one may start. */
STG_API void stg_breaker_abandon(stg_breaker *b, stg_ns now);

/* For people and metrics. Writes *reopen_at for STG_BREAKER_OPEN only; it may
 * be NULL. */
STG_API stg_breaker_state stg_breaker_look(const stg_breaker *b, stg_ns now,
                                           stg_ns *reopen_at);

STG_DECLS_END

#endif
