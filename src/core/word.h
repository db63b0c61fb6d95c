/* word.h - how core decides about something that threads share: one 64-bit
 * word, and a pure function from what it was to what it shall be. Private. */
#ifndef STAGGER_CORE_WORD_H
#define STAGGER_CORE_WORD_H

#include <stdatomic.h>
#include <stdbool.h>

#include <stagger/api.h>

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

#endif
