/* slices.h - counts of the last slices of time, each one word: slice << 28 |
 * count, so that a count never outlives its slice. Private. */
#ifndef STAGGER_CORE_SLICES_H
#define STAGGER_CORE_SLICES_H

#include "core/word.h"

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

#endif
