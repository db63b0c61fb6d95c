/* ring.h - the deliveries that a lane has taken above its base, in the log's
 * order, each settled or not.
 *
 * Grows as it fills up; what holds nothing has no memory. */
#ifndef STAGGER_FLOW_RING_H
#define STAGGER_FLOW_RING_H

#include <stdbool.h>

#include "flow/flow.h"

typedef struct stg_slot {
    uint64_t position;
    stg_delivery *delivery; /* NULL: settled */
} stg_slot;

typedef struct stg_ring {
    stg_slot *slots;
    uint32_t capacity; /* 0 or a power of two */
    uint32_t first;    /* slots are numbered on and on, and wrap */
    uint32_t count;
} stg_ring;

static inline stg_slot *stg_ring_at(const stg_ring *r, uint32_t slot)
{
    return &r->slots[slot & (r->capacity - 1)];
}

/* Room for one more; false: no memory. */
bool stg_ring_reserve(stg_ring *r, const stg_memory *memory);

/* Puts in behind the last, above its position; there is room. Returns the
 * slot. */
uint32_t stg_ring_push(stg_ring *r, uint64_t position, stg_delivery *d);

/* The slot is settled. What is settled at the front leaves, and an empty ring
 * gives its memory back. */
void stg_ring_settle(stg_ring *r, uint32_t slot, const stg_memory *memory);

void stg_ring_free(stg_ring *r, const stg_memory *memory);

#endif
