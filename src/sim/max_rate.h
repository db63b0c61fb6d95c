/* max_rate.h - the most events in any window of time.
 *
 * Time is cut into slices of 33 us, and the window is whole slices, so however
 * many events there are, some thousand numbers hold them. Time is cut into
 * blocks of a window's length, too: a window lies in two of them at most, and
 * where these two have fewer events together than the most so far nothing needs
 * to be looked at. Pure. */
#ifndef STAGGER_SIM_MAX_RATE_H
#define STAGGER_SIM_MAX_RATE_H

#include <stdbool.h>

#include <stagger/ns.h>

#include "base/memory.h"

enum { STG_MAX_RATE_SLICE_BITS = 15 }; /* of 2^15 ns */

typedef struct stg_max_rate_slice {
    uint32_t number; /* in its block */
    uint32_t count;
} stg_max_rate_slice;

typedef struct stg_max_rate_block {
    uint64_t begin;             /* its first slice */
    uint64_t count;             /* of events */
    stg_max_rate_slice *slices; /* that have any, in order */
    uint32_t used, room;
} stg_max_rate_block;

typedef struct stg_sim_max_rate {
    uint32_t width; /* of the window, in slices */
    uint64_t most;  /* of the blocks that are over */
    uint64_t last;  /* the slice of the last event */
    stg_max_rate_block before, now;
    const stg_memory *memory;
} stg_sim_max_rate;

/* For windows of width, which is rounded to slices: 1 ms to 1 h. memory is
 * kept. */
void stg_sim_max_rate_init(stg_sim_max_rate *p, stg_ns width,
                           const stg_memory *memory);
void stg_sim_max_rate_close(stg_sim_max_rate *p);

/* Forgets all events, and keeps the memory. */
void stg_sim_max_rate_clear(stg_sim_max_rate *p);

/* Room for a slice that is not in the last block, or not in its array. Returns
 * false if there is no memory. */
bool stg_sim_max_rate_make_room(stg_sim_max_rate *p, uint64_t slice);

/* An event, not before the last one. Returns false if there is no memory. */
static inline bool stg_sim_max_rate_add(stg_sim_max_rate *p, stg_ns at)
{
    uint64_t slice = at >> STG_MAX_RATE_SLICE_BITS;
    stg_max_rate_block *now = &p->now;

    if (slice != p->last) {
        if ((slice - now->begin >= p->width || now->used == now->room) &&
            !stg_sim_max_rate_make_room(p, slice))
            return false;
        now->slices[now->used].number = (uint32_t)(slice - now->begin);
        now->slices[now->used++].count = 1;
        p->last = slice;
    } else {
        now->slices[now->used - 1].count++;
    }
    now->count++;
    return true;
}

/* The most in any window. */
uint64_t stg_sim_max_rate_most(stg_sim_max_rate *p);

#endif
