#include "sim/queue_heap.h"

#include <string.h>

void stg_sim_heap_init(stg_sim_heap *h, const stg_memory *memory)
{
    *h = (stg_sim_heap){.memory = memory};
}

void stg_sim_heap_close(stg_sim_heap *h)
{
    if (h->keys != NULL)
        h->memory->release(h->memory->ctx, h->keys);
    *h = (stg_sim_heap){.memory = h->memory};
}

bool stg_sim_heap_reserve(stg_sim_heap *h, size_t room)
{
    uint64_t *keys;

    if (room <= h->room)
        return true;
    if (room > SIZE_MAX / sizeof *keys)
        return false;
    keys = h->memory->allocate(h->memory->ctx, room * sizeof *keys);
    if (keys == NULL)
        return false;
    if (h->keys != NULL) {
        memcpy(keys, h->keys, h->count * sizeof *keys);
        h->memory->release(h->memory->ctx, h->keys);
    }
    h->keys = keys;
    h->room = room;
    return true;
}

bool stg_sim_heap_push(stg_sim_heap *h, uint64_t key)
{
    size_t i = h->count;

    if (i == h->room && !stg_sim_heap_reserve(h, i < 32 ? 64 : 2 * i))
        return false;
    h->count++;
    while (i > 0) {
        size_t parent = (i - 1) / 4;

        if (h->keys[parent] <= key)
            break;
        h->keys[i] = h->keys[parent];
        i = parent;
    }
    h->keys[i] = key;
    return true;
}

/* The least of the children from `first` on, of which there is one. */
static size_t find_least(const uint64_t *keys, size_t first, size_t count)
{
    size_t end = first + 4 < count ? first + 4 : count, least = first;

    for (size_t i = first + 1; i < end; i++)
        if (keys[i] < keys[least])
            least = i;
    return least;
}

uint64_t stg_sim_heap_pop(stg_sim_heap *h)
{
    uint64_t *keys = h->keys, top = keys[0];
    uint64_t last = keys[--h->count];
    size_t i = 0;

    for (size_t child; (child = 4 * i + 1) < h->count; i = child) {
        child = find_least(keys, child, h->count);
        if (keys[child] >= last)
            break;
        keys[i] = keys[child];
    }
    keys[i] = last;
    return top;
}
