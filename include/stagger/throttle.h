/* throttle.h - a client that holds itself back while its remote asks for less.
 *
 * sre: refuse the next attempt with the probability
 *
 *     max(0, (requests - K * accepts) / (requests + 1))
 *
 * over the last two minutes, so that about K requests go out for each one that
 * the remote accepts. Requests are all that the client wanted, those that it
 * refused itself included; accepted is what stg_breaker_classify() calls a
 * success, but for RESOURCE_EXHAUSTED.
 * Source: "Handling Overload", chapter 21 of Beyer et al., "Site Reliability
 * Engineering", 2016.
 *
 * aws: no limit until the remote throttles (what stg_budget_charge() says so
 * of: 429, RESOURCE_EXHAUSTED). Then a token bucket of a second's rate: after a
 * throttling answer seven tenths of the rate so far, the measured one or the
 * bucket's if that is less; after any other answer what CUBIC makes of the time
 * since, 0.4 (t - K)^3 + max with K = (max * 0.3 / 0.4)^(1/3), in seconds; but no
 * more than twice the measured rate, and no less than 0.5/s. The rate is
 * measured in half seconds, a new one weighs 0.8. An attempt without a token
 * waits for one. Source: the adaptive retry mode of the AWS SDKs
 * (botocore.retries.adaptive, throttling, bucket).
 *
 * A stg_throttle belongs to the caller; any number of threads use it at once,
 * without locks. Of two threads that report at once the rate may be that of
 * either. */
#ifndef STAGGER_THROTTLE_H
#define STAGGER_THROTTLE_H

#include <stdbool.h>

#include <stagger/ns.h>
#include <stagger/outcome.h>
#include <stagger/rng.h>
#include <stagger/status.h>

STG_DECLS_BEGIN

typedef enum stg_throttle_kind {
    STG_THROTTLE_NONE,
    STG_THROTTLE_SRE,
    STG_THROTTLE_AWS,
} stg_throttle_kind;

typedef struct stg_throttle_options {
    stg_throttle_kind kind;
    uint32_t k; /* sre: K in thousandths, 1000 to 100000; else 0 */
} stg_throttle_options;

#define STG_THROTTLE_SLICES 12 /* of 10 s */

typedef struct stg_throttle {
    stg_throttle_options options;
    stg_word newest; /* sre: the slice; aws: when the bucket is full */
    stg_word requests[STG_THROTTLE_SLICES]; /* sre */
    stg_word accepts[STG_THROTTLE_SLICES];  /* sre */
    stg_word rate;     /* aws, in thousandths a second: the bucket's, 0: not
                          limited yet */
    stg_word measured; /* aws: the rate of answers, likewise */
    stg_word counted;  /* aws: 36 bits half second, 28 bits answers in it */
    stg_word peak;     /* aws: 36 bits time of the last throttling answer in
                          units of 1048576 ns, 28 bits the rate before it */
} stg_throttle;

/* Checks the ranges above. Returns STG_INVALID with a text in err that names
 * what was found and what was expected. */
STG_API stg_status stg_throttle_check(const stg_throttle_options *o,
                                      stg_error *err);

/* Makes one that has seen nothing, before any thread uses it. Returns
 * STG_INVALID for options that do not pass the check. */
STG_API stg_status stg_throttle_init(stg_throttle *t,
                                     const stg_throttle_options *o);

/* Whether an attempt may go out now. If not, *due_at is when to ask again, or
 * STG_NEVER: it is refused. sre draws once from rng, unless nothing is to be
 * refused; rng may be NULL for the other kinds. */
STG_API bool stg_throttle_enter(stg_throttle *t, stg_ns now, stg_rng *rng,
                                stg_ns *due_at);

/* Reports how the attempt ended that went out at started_at. An outcome that
 * says nothing of the remote (cancelled, no-ports ...) counts as no request. */
STG_API void stg_throttle_report(stg_throttle *t, const stg_outcome *o,
                                 stg_ns started_at, stg_ns now);

/* The attempt that went out at started_at was not made, or not waited for. */
STG_API void stg_throttle_withdraw(stg_throttle *t, stg_ns started_at);

/* Whether an attempt could be held back now. */
STG_API bool stg_throttle_is_active(const stg_throttle *t, stg_ns now);

/* aws: the rate that it keeps to, in thousandths a second; 0: no limit, and of
 * the other kinds. For people and metrics. */
STG_API uint32_t stg_throttle_rate(const stg_throttle *t);

STG_DECLS_END

#endif
