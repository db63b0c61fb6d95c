#include "sim/queue.h"

#include <string.h>

/* Behind the last key lie three that no key is above, so that every node which
 * has a child has four. */
enum { ARITY = 4, BEHIND = ARITY - 1 };

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

void stg_sim_heap_clear(stg_sim_heap *h)
{
    for (size_t i = 0; i < h->count; i++)
        h->keys[i] = UINT64_MAX;
    h->count = 0;
}

bool stg_sim_heap_reserve(stg_sim_heap *h, size_t room)
{
    uint64_t *keys;

    if (room <= h->room)
        return true;
    if (room > SIZE_MAX / sizeof *keys - BEHIND)
        return false;
    keys = h->memory->allocate(h->memory->ctx, (room + BEHIND) * sizeof *keys);
    if (keys == NULL)
        return false;
    if (h->keys != NULL) {
        memcpy(keys, h->keys, h->count * sizeof *keys);
        h->memory->release(h->memory->ctx, h->keys);
    }
    for (size_t i = h->count; i < room + BEHIND; i++)
        keys[i] = UINT64_MAX;
    h->keys = keys;
    h->room = room;
    return true;
}

/* From place i, which is empty, up to where it belongs. */
static void put_up(uint64_t *keys, size_t i, uint64_t key)
{
    while (i > 0) {
        size_t parent = (i - 1) / ARITY;

        if (keys[parent] <= key)
            break;
        keys[i] = keys[parent];
        i = parent;
    }
    keys[i] = key;
}

bool stg_sim_heap_push(stg_sim_heap *h, uint64_t key)
{
    size_t i = h->count;

    if (i == h->room && !stg_sim_heap_reserve(h, i < 32 ? 64 : 2 * i))
        return false;
    h->count++;
    put_up(h->keys, i, key);
    return true;
}

/* The least of four children, the first of equal ones; without branches that
 * nobody can foresee. */
static size_t find_least(const uint64_t *keys, size_t first)
{
    size_t one = first + (keys[first + 1] < keys[first]);
    size_t other = first + 2 + (keys[first + 3] < keys[first + 2]);

    return keys[other] < keys[one] ? other : one;
}

/* The hole at the top goes down to the end, and the last key up from there:
 * it rarely has far to go. */
uint64_t stg_sim_heap_pop(stg_sim_heap *h)
{
    uint64_t *keys = h->keys, top = keys[0];
    size_t count = --h->count, i = 0;
    uint64_t last = keys[count];

    keys[count] = UINT64_MAX;
    if (count == 0)
        return top;
    for (size_t child; (child = ARITY * i + 1) < count; i = child) {
        child = find_least(keys, child);
        keys[i] = keys[child];
    }
    put_up(keys, i, last);
    return top;
}
