/* budget.h - what retries may cost, over all operations that share it.
 *
 * A budget bounds the extra load that retries put on a remote: when it is
 * empty, failures are given up instead of repeated. First attempts never pay.
 *
 *   tokens  a bucket: capacity, refilled at a rate; a retry takes one. As one
 *           virtual time (GCRA): ITU-T I.371, and Turner 1986.
 *   ratio   retries in the last 10 s <= ratio * first attempts in the last
 *           10 s + 10 * floor a second. Source: Finagle's RetryBudget.
 *   aws     tokens: a retry costs some, other numbers after a timeout and after
 *           an answer that throttles; a success after retries returns the last
 *           cost, a first-try success 1. The SDKs of AWS have 500 tokens and
 *           5, 10 and 5, the newer ones 14, 14 and 5.
 *           Source: the standard retry mode, with its retry quota, in "Retry
 *           behavior", AWS SDKs and Tools Reference Guide (2020; 2026).
 *   grpc    M tokens; a retryable failure takes 1, a success gives q; retries
 *           only while more than M / 2 are left. Source: gRFC A6.
 *   share   retries under way, those that wait for their attempt included, <=
 *           ratio * attempts under way, first ones and retries; or a floor,
 *           whichever is more. Source: Envoy's retry_budget (budget_percent 20,
 *           min_retry_concurrency 3).
 *
 * A stg_budget holds levels and belongs to the caller; any number of threads
 * use it at once, without locks: each decision is a compare-and-swap on one
 * 64-bit word. `now` may differ by thread and step back; no level rises by it.
 * The exception is ratio, whose levels are ten one-second buckets each of
 * attempts and retries: a retry is counted, then weighed, and taken back if it
 * was one too many. A race can refuse a retry that fitted, never grant one
 * that did not. */
#ifndef STAGGER_BUDGET_H
#define STAGGER_BUDGET_H

#include <stdbool.h>

#include <stagger/outcome.h>
#include <stagger/status.h>

STG_DECLS_BEGIN

typedef enum stg_budget_kind {
    STG_BUDGET_NONE,
    STG_BUDGET_TOKENS,
    STG_BUDGET_RATIO,
    STG_BUDGET_SHARE,
    STG_BUDGET_AWS,
    STG_BUDGET_GRPC,
} stg_budget_kind;

/* Fields that a kind does not use are 0. Thousandths: 1500 is 1.5. */
typedef struct stg_budget_options {
    stg_budget_kind kind;
    uint32_t capacity;     /* tokens, aws: 1 to 1000000; grpc: 1 to 1000; share:
                          the floor, retries at once, 1 to 1000000 */
    uint32_t rate;         /* thousandths a second. tokens: 1 to 1000000000;
                          ratio: the floor, 0 to 1000000000 */
    uint32_t ratio;        /* thousandths. ratio: 0 to 10000, not 0 with rate 0;
                          grpc: 1 to 1000000; share: 0 to 1000 */
    uint32_t cost;         /* aws: of a retry, 1 to capacity */
    uint32_t timeout_cost; /* aws: after a timeout, 1 to capacity */
    uint32_t throttle_cost; /* aws: after being throttled, 1 to capacity */
} stg_budget_options;

#define STG_BUDGET_SECONDS 10

typedef struct stg_budget {
    stg_budget_options options;
    stg_word level; /* tokens: virtual time; aws, grpc: thousandths used;
                       ratio: the newest second seen; share: attempts << 32
                       | retries, those under way */
    stg_word attempts[STG_BUDGET_SECONDS]; /* ratio: second << 28 | count */
    stg_word retries[STG_BUDGET_SECONDS];
} stg_budget;

STG_API stg_status stg_budget_check(const stg_budget_options *o,
                                    stg_error *err);

/* Makes a full budget, before any thread uses it. Returns STG_INVALID for
 * options that do not pass the check. */
STG_API stg_status stg_budget_init(stg_budget *b, const stg_budget_options *o);

/* These take NULL for a budget that there is not: it grants all. */

/* A first attempt was started. */
STG_API void stg_budget_attempt(stg_budget *b, stg_ns now);

/* An attempt failed with a fault that its policy retries, or its server said
 * not to retry it (a negative pushback, whatever the code). */
STG_API void stg_budget_fail(stg_budget *b);

/* Which of its costs a budget charges: only aws has more than one. */
typedef enum stg_charge {
    STG_CHARGE_NONE,     /* nothing was paid */
    STG_CHARGE_RETRY,    /* of what has none of its own */
    STG_CHARGE_TIMEOUT,  /* after timeout, connect-timeout, tls-timeout */
    STG_CHARGE_THROTTLE, /* after 429, pushback, gRPC's RESOURCE_EXHAUSTED */
} stg_charge;

/* Any attempt, a first one or a retry, is under way from here on: a share counts
 * it until stg_budget_end(). */
STG_API void stg_budget_begin(stg_budget *b);

/* The attempt has ended, whatever its outcome. paid is what it was charged,
 * STG_CHARGE_NONE for a first attempt. */
STG_API void stg_budget_end(stg_budget *b, stg_charge paid);

/* Nothing of the attempt that began at started_at, and has ended, went out: a
 * first one was none, and what a retry paid is given back. */
STG_API void stg_budget_withdraw(stg_budget *b, stg_charge paid,
                                 stg_ns started_at, stg_ns now);

/* That of a retry after this failure; never STG_CHARGE_NONE. NULL reads as
 * STG_FAULT_ERROR. */
STG_API stg_charge stg_budget_charge(const stg_outcome *o);

/* An operation succeeded. paid is the charge of its last retry,
 * STG_CHARGE_NONE if it made none. */
STG_API void stg_budget_succeed(stg_budget *b, stg_charge paid);

/* The answer of stg_budget_take() and its kin. */
typedef struct stg_grant {
    bool granted;
    stg_ns from_at; /* granted: the retry may start then, now or later; else
                       when it could be asked again, STG_NEVER if unknown */
} stg_grant;

/* Pays for one retry, now, or refuses. charge is that of the failure before;
 * STG_CHARGE_NONE reads as STG_CHARGE_RETRY. */
STG_API stg_grant stg_budget_take(stg_budget *b, stg_charge charge, stg_ns now);

/* The same, but tokens that are not there yet are reserved, if they come
 * before until_at: from_at says when. Kinds other than tokens cannot know when
 * they will have some, and refuse. */
STG_API stg_grant stg_budget_reserve(stg_budget *b, stg_charge charge,
                                     stg_ns now, stg_ns until_at);

/* Returns what a retry paid that was granted for from_at and did not start.
 * Never makes the level higher than full. A token is lost where others have
 * reserved tokens behind it: theirs stay as they are. */
STG_API void stg_budget_give_back(stg_budget *b, stg_charge paid,
                                  stg_ns from_at, stg_ns now);

/* The balance, in thousandths of a retry (tokens, ratio) or of a token (aws,
 * grpc); UINT64_MAX for STG_BUDGET_NONE. For people and metrics. */
STG_API uint64_t stg_budget_left(const stg_budget *b, stg_ns now);

STG_DECLS_END

#endif
