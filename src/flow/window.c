#include "flow/window.h"

#include <assert.h>

uint64_t stg_window_find(const stg_window *w, uint64_t position)
{
    uint64_t low = w->first, high = w->end;

    while (low < high) {
        uint64_t middle = low + (high - low) / 2;

        if (stg_window_at(w, middle)->position < position)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool grow(stg_window *w, uint32_t capacity, const stg_memory *memory)
{
    stg_message **messages =
        memory->allocate(memory->ctx, capacity * sizeof(stg_message *));

    if (messages == NULL)
        return false;
    for (uint64_t n = w->first; n < w->end; n++)
        messages[n & (capacity - 1)] = stg_window_at(w, n);
    if (w->messages != NULL)
        memory->release(memory->ctx, w->messages);
    w->messages = messages;
    w->capacity = capacity;
    return true;
}

bool stg_window_reserve(stg_window *w, size_t count, const stg_memory *memory)
{
    uint64_t needed = w->end - w->first + count;
    uint32_t capacity = w->capacity == 0 ? 64 : w->capacity;

    if (needed > UINT32_C(1) << 30)
        return false;
    while (capacity < needed)
        capacity *= 2;
    return capacity == w->capacity || grow(w, capacity, memory);
}

void stg_window_push(stg_window *w, stg_message *m)
{
    assert(w->end - w->first < w->capacity);
    w->messages[w->end++ & (w->capacity - 1)] = m;
}

stg_message *stg_window_shift(stg_window *w)
{
    stg_message *m = stg_window_at(w, w->first++);

    w->start = m->position + 1;
    return m;
}
