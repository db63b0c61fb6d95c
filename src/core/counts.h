/* counts.h - what a breaker counts (breaker_window.c): while it is closed, the calls of
 * a window of time; while it is half open, a round of probes. And the two budgets that
 * are counts (budget_counts.c). Private. */
#ifndef STAGGER_CORE_COUNTS_H
#define STAGGER_CORE_COUNTS_H

#include <stagger/breaker.h>
#include <stagger/budget.h>

/* -- the calls that a breaker by share has seen lately: how many of them failed,
 * and how many were slow */

typedef struct stg_breaker_ending {
    bool is_failure;
    bool is_slow;
} stg_breaker_ending;

/* Counts a call that ended at now. Returns whether it is a failure, and their
 * share is reached, or slow, and theirs is: in the window, or in as much of it
 * as is later than closed_at (0: all of it). */
bool stg_breaker_window_add(stg_breaker *b, stg_breaker_ending call,
                            stg_ns closed_at, stg_ns now);

/* What old has seen counts on in b, as far as both count the same. While no
 * other thread uses either. */
void stg_breaker_window_keep(stg_breaker *b, const stg_breaker *old);

/* -- several probes of a breaker that is half open: as many as have begun, and
 * what came of them, in the 56 bits that its word has for a value. One probe is
 * a round, too, whose counts are kept nowhere. */

typedef struct stg_breaker_round {
    uint64_t until; /* from which the next one may start, in units of its own */
    unsigned begun, good, bad; /* 0 to 31 */
    unsigned slow;             /* of the good and the bad ones */
} stg_breaker_round;

/* Words of rounds differ where these do. */
bool stg_breaker_round_is_alike(const stg_breaker_options *o,
                                const stg_breaker_options *other);

uint64_t stg_breaker_round_pack(const stg_breaker_options *o,
                                stg_breaker_round r);
stg_breaker_round stg_breaker_round_read(const stg_breaker_options *o,
                                         uint64_t value);

/* `until` as an instant, and back: the first unit from at on. */
stg_ns stg_breaker_round_until(const stg_breaker_options *o,
                               stg_breaker_round r);
uint64_t stg_breaker_round_unit(const stg_breaker_options *o, stg_ns at);

void stg_breaker_round_count(stg_breaker_round *r, stg_breaker_ending probe);

/* Too many have failed, or were slow. */
bool stg_breaker_round_is_bad(const stg_breaker_options *o,
                              stg_breaker_round r);

/* Enough were good, and those that have not reported cannot be too slow. */
bool stg_breaker_round_is_good(const stg_breaker_options *o,
                               stg_breaker_round r);

/* -- budgets ------------------------------------------------------------- */

/* The two budgets that are no bucket of tokens, but counts: a
 * ratio of the last ten seconds, a share of what is under way. Private. */

/* -- a ratio of retries to first attempts */

void stg_ratio_attempt(stg_budget *b, stg_ns now);
void stg_ratio_withdraw(stg_budget *b, stg_ns started_at);
bool stg_ratio_take(stg_budget *b, stg_ns now);
void stg_ratio_give_back(stg_budget *b, stg_ns paid_at);

/* In thousandths of a retry. */
uint64_t stg_ratio_left(const stg_budget *b, stg_ns now);

/* -- a share: attempts and retries under way, one word */

/* An attempt has begun, or ended; one that is_retry has a place since
 * stg_share_take(). */
void stg_share_begin(stg_budget *b);
void stg_share_end(stg_budget *b, bool is_retry);

bool stg_share_take(stg_budget *b);

/* The place of a retry that did not begin. */
void stg_share_give_back(stg_budget *b);

/* An attempt that began before b was made. */
void stg_share_adopt(stg_budget *b, bool is_retry);

/* In thousandths of a retry. */
uint64_t stg_share_left(const stg_budget *b);

#endif
