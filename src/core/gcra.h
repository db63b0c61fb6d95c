/* gcra.h - a token bucket as one virtual time. Private.
 *
 * The word holds the instant at which the bucket is full again. A token moves
 * it by an interval; it may be taken as soon as that leaves the instant within
 * burst intervals of now. Full is any instant that is past.
 *
 * Source: the Generic Cell Rate Algorithm, ITU-T I.371. */
#ifndef STAGGER_CORE_GCRA_H
#define STAGGER_CORE_GCRA_H

#include "core/word.h"

#include <stagger/ns.h>

/* rate is in thousandths a second and not 0. Rounded up: never more than the
 * rate. At the fastest, 1000 ns, that is 0.1 % less at most. */
static inline stg_ns stg_gcra_interval(uint32_t rate)
{
    return (1000 * STG_S + rate - 1) / rate;
}

typedef struct stg_gcra_call {
    stg_ns interval;
    stg_ns span; /* burst intervals */
    stg_ns now;
    stg_ns until_at;
    stg_ns from_at; /* out: when the token is there */
} stg_gcra_call;

static inline bool stg_gcra_move(uint64_t seen, uint64_t *next, void *arg)
{
    stg_gcra_call *c = arg;

    *next = stg_ns_add(stg_ns_max(seen, c->now), c->interval);
    c->from_at = stg_ns_max(c->now, stg_ns_sub(*next, c->span));
    return c->from_at < c->until_at;
}

/* Takes the next token if it is there before until_at; writes its instant to
 * *from_at either way. */
static inline bool stg_gcra_reserve(stg_word *word, uint32_t rate,
                                    uint32_t burst, stg_ns now, stg_ns until_at,
                                    stg_ns *from_at)
{
    stg_ns interval = stg_gcra_interval(rate);
    stg_gcra_call c = {.interval = interval,
                       .span = interval * burst,
                       .now = now,
                       .until_at = until_at};
    bool is_taken = stg_word_change(word, stg_gcra_move, &c);

    *from_at = c.from_at;
    return is_taken;
}

/* A token goes back while nobody has one of the future, or if ours is the last
 * of those: else two would be promised the same instant. */
static inline bool stg_gcra_move_back(uint64_t seen, uint64_t *next, void *arg)
{
    const stg_gcra_call *c = arg;

    *next = stg_ns_sub(seen, c->interval);
    return seen <= stg_ns_add(c->now, c->span) ||
           seen == stg_ns_add(c->from_at, c->span);
}

/* from_at is what stg_gcra_reserve() wrote. */
static inline void stg_gcra_give_back(stg_word *word, uint32_t rate,
                                      uint32_t burst, stg_ns from_at,
                                      stg_ns now)
{
    stg_ns interval = stg_gcra_interval(rate);
    stg_gcra_call c = {.interval = interval,
                       .span = interval * burst,
                       .now = now,
                       .from_at = from_at};

    stg_word_change(word, stg_gcra_move_back, &c);
}

#endif
