/* breaker_round.h - several probes of a breaker that is half open: as many as
 * have begun, and what came of them, in the 56 bits that its word has for a
 * value. One probe is a round, too, whose counts are kept nowhere. Private. */
#ifndef STAGGER_CORE_BREAKER_ROUND_H
#define STAGGER_CORE_BREAKER_ROUND_H

#include "core/breaker_window.h"

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
