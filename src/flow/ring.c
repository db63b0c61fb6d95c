#include "flow/ring.h"

#include <assert.h>

enum { SMALLEST = 8 };

bool stg_ring_reserve(stg_ring *r, const stg_memory *memory)
{
    uint32_t capacity = r->capacity == 0 ? SMALLEST : 2 * r->capacity;
    stg_slot *slots;

    if (r->count < r->capacity)
        return true;
    slots = memory->allocate(memory->ctx, capacity * sizeof *slots);
    if (slots == NULL)
        return false;
    for (uint32_t i = 0; i < r->count; i++)
        slots[(r->first + i) & (capacity - 1)] = *stg_ring_at(r, r->first + i);
    if (r->slots != NULL)
        memory->release(memory->ctx, r->slots);
    r->slots = slots;
    r->capacity = capacity;
    return true;
}

uint32_t stg_ring_push(stg_ring *r, uint64_t position, stg_delivery *d)
{
    uint32_t slot = r->first + r->count;

    assert(r->count < r->capacity);
    assert(r->count == 0 || stg_ring_at(r, slot - 1)->position < position);
    *stg_ring_at(r, slot) = (stg_slot){position, d};
    r->count++;
    return slot;
}

void stg_ring_settle(stg_ring *r, uint32_t slot, const stg_memory *memory)
{
    stg_ring_at(r, slot)->delivery = NULL;
    while (r->count > 0 && stg_ring_at(r, r->first)->delivery == NULL) {
        r->first++;
        r->count--;
    }
    // A small one stays: most lanes come and go by one or two.
    if (r->count == 0 && r->capacity > SMALLEST)
        stg_ring_free(r, memory);
}

void stg_ring_free(stg_ring *r, const stg_memory *memory)
{
    if (r->slots != NULL)
        memory->release(memory->ctx, r->slots);
    *r = (stg_ring){.slots = NULL};
}
