/* queue_heap.h - a heap of 64-bit keys: the reference queue. Part of queue.h.
 *
 * Four children a node: half as deep as two, and they share a cache line. */
#ifndef STAGGER_SIM_QUEUE_HEAP_H
#define STAGGER_SIM_QUEUE_HEAP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/memory.h"

typedef struct stg_sim_heap {
    uint64_t *keys;
    size_t count, room;
    const stg_memory *memory;
} stg_sim_heap;

void stg_sim_heap_init(stg_sim_heap *h, const stg_memory *memory);
void stg_sim_heap_close(stg_sim_heap *h);

/* Forgets all keys, and keeps the memory. */
void stg_sim_heap_clear(stg_sim_heap *h);

/* Room for so many keys. Returns false if there is no memory. */
bool stg_sim_heap_reserve(stg_sim_heap *h, size_t room);

/* Returns false if there is no memory. */
bool stg_sim_heap_push(stg_sim_heap *h, uint64_t key);

/* Takes the least key; there is one. */
uint64_t stg_sim_heap_pop(stg_sim_heap *h);

#endif
