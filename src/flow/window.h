/* window.h - the recent messages of a partition, in memory for all lanes.
 *
 * Messages have a number here, counted from the first that was ever put in:
 * numbers count, positions only order. The window covers the positions from
 * start to next: whatever the log has in there is in it. */
#ifndef STAGGER_FLOW_WINDOW_H
#define STAGGER_FLOW_WINDOW_H

#include <stdbool.h>

#include "flow/flow.h"

typedef struct stg_window {
    stg_message **messages; /* number n is at n & (capacity - 1) */
    uint32_t capacity;      /* 0 or a power of two */
    uint64_t first, end;    /* numbers of the oldest, and of the next to come */
    uint64_t start, next;   /* positions */
} stg_window;

/* Covers nothing yet, and begins at a position. */
static inline void stg_window_init(stg_window *w, uint64_t position)
{
    *w = (stg_window){.start = position, .next = position};
}

static inline stg_message *stg_window_at(const stg_window *w, uint64_t number)
{
    return w->messages[number & (w->capacity - 1)];
}

/* The position that number n stands for: of its message, or where the next one
 * will come from. */
static inline uint64_t stg_window_position(const stg_window *w, uint64_t n)
{
    return n == w->end ? w->next : stg_window_at(w, n)->position;
}

/* The first number whose message is at position or above. */
uint64_t stg_window_find(const stg_window *w, uint64_t position);

/* Makes room for so many more. False: there is no memory. */
bool stg_window_reserve(stg_window *w, size_t count, const stg_memory *memory);

/* Puts in a message (given), for which there is room. */
void stg_window_push(stg_window *w, stg_message *m);

/* Takes the oldest out; its reference is the caller's. */
stg_message *stg_window_shift(stg_window *w);

#endif
