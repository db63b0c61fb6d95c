/* breaker_window.h - what a breaker counts: while it is closed, the calls of a
 * window of time; while it is half open, a round of probes. Private. */
#ifndef STAGGER_CORE_BREAKER_WINDOW_H
#define STAGGER_CORE_BREAKER_WINDOW_H

#include <stagger/breaker.h>

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

#endif
