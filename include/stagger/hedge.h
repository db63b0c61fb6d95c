/* hedge.h - a further attempt while the first one is slow; the first good answer
 * wins.
 *
 * A round is an attempt of stg_retry and its hedges. A caller that can have
 * several attempts under way (an event loop) puts these calls around those of
 * retry.h; one that does not makes no hedges, and nothing else changes:
 *
 *     stg_retry_admit(&r, now, &rng) == STG_GO:
 *         stg_hedge_begin(&h, &r, now);           // start attempt 0
 *     at h.due_at:
 *         if (stg_hedge_admit(&h, &r, now, &i))   // start attempt i, too
 *     attempt i has ended:
 *         d = stg_hedge_step(&h, &r, i, &outcome, now, &rng);
 *         STG_GO: others are under way; go on
 *         else as after stg_retry_step(), and what is under way is cancelled
 *
 * The order of the questions before a hedge: is one due, and does the deadline
 * leave time? is the operation repeatable, whatever became of an attempt? does
 * no operation around it hedge (policy.nested)? are breaker and throttle at
 * rest? then a place in the bulkhead, a token of the rate limit, and the budgets,
 * which it pays as a retry does. One that is refused costs nothing, and ends the
 * hedges of its round; nothing else changes.
 *
 * A good answer ends the round, and so does one that the policy never retries
 * (but a fault of this machine, such as no-files). A failure that may be
 * retried waits for the others; the last one is what the round came to, and the
 * retry goes on as if one attempt had failed so. An answer that asks for a
 * delay, or one of category overload, stops further hedges. The limit of
 * attempts counts rounds. Budget, breaker, throttle and bulkhead hear of each
 * attempt once; one that is cancelled, because another one won, withdraws.
 *
 * Sources: Dean and Barroso, "The Tail at Scale", Communications of the ACM 56
 * (2013); gRFC A6, hedging. */
#ifndef STAGGER_HEDGE_H
#define STAGGER_HEDGE_H

#include <stdbool.h>

#include <stagger/event.h>
#include <stagger/rng.h>
#include <stagger/status.h>

STG_DECLS_BEGIN

#define STG_HEDGES_MAX 3

typedef struct stg_hedge_options {
    uint32_t max;        /* hedges of a round, to STG_HEDGES_MAX; 0: none */
    uint32_t percentile; /* 50 to 99: after so many in 100 of the latencies that
                            the peer has seen; 0: after delay */
    stg_ns delay;        /* before the first hedge, and then before each one:
                            1 ms to 365 d; 0 with a percentile, or without
                            hedges */
} stg_hedge_options;

/* Checks the ranges above. Returns STG_INVALID with a text in err that names
 * what was found and what was expected. */
STG_API stg_status stg_hedge_check(const stg_hedge_options *o, stg_error *err);

/* -- the latencies of a peer: how long its rounds took, from the begin of the
 * first attempt on, also where a hedge won: so a hedge does not hide how slow
 * the first one is. Good answers and timeouts count. About the last 750 rounds,
 * in 96 counters, each for latencies that differ by a quarter at most, from
 * 16 us to 9 minutes. Any number of threads, without locks; zeroed is empty. */

#define STG_LATENCY_WORDS 24

typedef struct stg_latencies {
    stg_word count;
    stg_word counters[STG_LATENCY_WORDS]; /* four in each */
} stg_latencies;

STG_API void stg_latencies_add(stg_latencies *l, stg_ns took);

/* The latency that no more than 100 - percentile in 100 exceed, rounded up to
 * the end of its counter; STG_NEVER while fewer than 100 are known. percentile
 * is 1 to 100. */
STG_API stg_ns stg_latencies_percentile(const stg_latencies *l,
                                        uint32_t percentile);

/* -- the round of one operation. The caller's, beside its stg_retry, and like
 * that for one thread at a time; it holds nothing to free. Zeroed, there is
 * no round. */

struct stg_retry;

typedef struct stg_hedge {
    stg_ns due_at; /* when to ask for the next hedge; STG_NEVER: never */
    stg_ns delay;
    stg_ns not_before_at; /* what the remote asked for in this round */
    stg_ns begun_at[STG_HEDGES_MAX];
    uint8_t made;      /* hedges of this round */
    uint8_t under_way; /* bit i: attempt i; the first is 0 */
} stg_hedge;

/* The attempt that r is in began at now: with it a round. */
STG_API void stg_hedge_begin(stg_hedge *h, const struct stg_retry *r,
                             stg_ns now);

/* May a hedge start now? Then it has begun, and *index is its number in the
 * round, from 1. Before due_at it is false, and changes nothing. */
STG_API bool stg_hedge_admit(stg_hedge *h, struct stg_retry *r, stg_ns now,
                             uint32_t *index);

/* Attempt `index` of the round came to this (NULL reads as STG_FAULT_ERROR).
 * STG_GO: others are under way, and the round goes on; so also for an
 * attempt that is not under way, which changes nothing. Else the round has
 * ended, and the answer is that of stg_retry_step(). */
STG_API stg_decision stg_hedge_step(stg_hedge *h, struct stg_retry *r,
                                    uint32_t index, const stg_outcome *o,
                                    stg_ns now, stg_rng *rng);

/* stg_retry_cancel(), in or out of a round. */
STG_API stg_decision stg_hedge_cancel(stg_hedge *h, struct stg_retry *r,
                                      stg_ns now);

STG_DECLS_END

#endif
