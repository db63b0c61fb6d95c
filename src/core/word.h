/* word.h - how core decides about something that threads share: one 64-bit
 * word, and a pure function from what it was to what it shall be. On it stand
 * counts of the last slices of time, and token buckets. Private. */
#ifndef STAGGER_CORE_WORD_H
#define STAGGER_CORE_WORD_H

#include <stdatomic.h>
#include <stdbool.h>

#include <stagger/api.h>
#include <stagger/ns.h>

/* Writes *next and returns true, or returns false to leave the word alone. May
 * be called again, with another `seen`, when a thread came between. */
typedef bool stg_change(uint64_t seen, uint64_t *next, void *arg);

static inline uint64_t stg_word_read(const stg_word *word)
{
    return atomic_load((stg_word *)word);
}

/* Whether the change was made. */
static inline bool stg_word_change(stg_word *word, stg_change *change,
                                   void *arg)
{
    uint64_t seen = stg_word_read(word), next;

    do {
        if (!change(seen, &next, arg))
            return false;
    } while (!atomic_compare_exchange_strong(word, &seen,
                                             next)); // gcov-excl: a lost race
    return true;
}

/* -- counts of the last slices of time, each one word: slice << 28 | count, so
 * that a count never outlives its slice */

enum { STG_SLICE_BITS = 28 };
#define STG_SLICE_COUNT_MAX ((UINT64_C(1) << STG_SLICE_BITS) - 1)

static inline bool stg_slice_raise(uint64_t seen, uint64_t *next, void *slice)
{
    *next = *(uint64_t *)slice;
    return seen < *next;
}

/* This slice, or the newest that any thread has seen. */
static inline uint64_t stg_slices_now(stg_word *newest, uint64_t slice)
{
    return stg_word_change(newest, stg_slice_raise, &slice)
               ? slice
               : stg_word_read(newest);
}

static inline bool stg_slice_add_one(uint64_t seen, uint64_t *next, void *slice)
{
    uint64_t start = *(uint64_t *)slice << STG_SLICE_BITS;

    if (seen < start)
        seen = start;
    *next = seen + 1;
    return (seen & STG_SLICE_COUNT_MAX) < STG_SLICE_COUNT_MAX;
}

static inline bool stg_slice_take_one(uint64_t seen, uint64_t *next,
                                      void *slice)
{
    *next = seen - 1;
    return seen >> STG_SLICE_BITS == *(uint64_t *)slice &&
           (seen & STG_SLICE_COUNT_MAX) > 0;
}

/* Returns false when the slice is full. */
static inline bool stg_slices_count(stg_word *slices, unsigned count,
                                    uint64_t slice)
{
    return stg_word_change(&slices[slice % count], stg_slice_add_one, &slice);
}

/* Nothing where the slice is over. */
static inline void stg_slices_uncount(stg_word *slices, unsigned count,
                                      uint64_t slice)
{
    stg_word_change(&slices[slice % count], stg_slice_take_one, &slice);
}

/* The counts of as many slices as there are, this one the last. */
static inline uint64_t stg_slices_sum(const stg_word *slices, unsigned count,
                                      uint64_t slice)
{
    uint64_t total = 0;

    for (unsigned i = 0; i < count; i++) {
        uint64_t word = stg_word_read(&slices[i]);

        if ((word >> STG_SLICE_BITS) + count > slice)
            total += word & STG_SLICE_COUNT_MAX;
    }
    return total;
}

/* -- a token bucket as one virtual time
 *
 * The word holds the instant at which the bucket is full again. A token moves
 * it by an interval; it may be taken as soon as that leaves the instant within
 * burst intervals of now. Full is any instant that is past.
 *
 * Source: the Generic Cell Rate Algorithm, ITU-T I.371. */

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
