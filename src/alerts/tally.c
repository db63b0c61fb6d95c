#include "alerts/tally.h"

#include <stdbool.h>
#include <string.h>

enum { ROOM = STG_TALLY_SLICES + 1 };

static uint64_t slice_at(stg_ns window, stg_ns now)
{
    return now / (window / STG_TALLY_SLICES);
}

/* The number of the oldest slice that still counts; unless all have. */
static uint64_t oldest(const stg_tally *t)
{
    return t->latest < STG_TALLY_SLICES ? 0 : t->latest - STG_TALLY_SLICES;
}

uint64_t stg_tally_pass(stg_tally *t, stg_ns window, stg_ns now)
{
    uint64_t number = slice_at(window, now), before = t->total;

    if (number <= t->latest)
        return 0;
    if (number - t->latest >= ROOM || before == 0) {
        memset(t->slices, 0, sizeof t->slices);
        t->total = 0;
        t->latest = number;
    }
    while (t->latest < number) {
        uint32_t *slice = &t->slices[++t->latest % ROOM];

        t->total -= *slice;
        *slice = 0;
    }
    return before - t->total;
}

void stg_tally_add(stg_tally *t, stg_ns window, uint64_t count, stg_ns now)
{
    uint32_t *slice, room;

    (void)stg_tally_pass(t, window, now);
    slice = &t->slices[t->latest % ROOM];
    room = UINT32_MAX - *slice;
    if (count > room)
        count = room;
    *slice += (uint32_t)count;
    t->total += count;
}

void stg_tally_take(stg_tally *t, uint64_t count)
{
    for (uint64_t n = t->latest; count > 0 && t->total > 0; n--) {
        uint32_t *slice = &t->slices[n % ROOM];
        uint64_t taken = count < *slice ? count : *slice;

        *slice -= (uint32_t)taken;
        t->total -= taken;
        count -= taken;
        if (n == oldest(t))
            return;
    }
}

/* The first slice that has some; the latest if none has. */
static uint64_t first(const stg_tally *t)
{
    uint64_t n = oldest(t);

    while (n < t->latest && t->slices[n % ROOM] == 0)
        n++;
    return n;
}

stg_ns stg_tally_next(const stg_tally *t, stg_ns window)
{
    if (t->total == 0)
        return STG_NEVER;
    return (first(t) + ROOM) * (window / STG_TALLY_SLICES);
}

stg_ns stg_tally_since(const stg_tally *t, stg_ns window)
{
    return first(t) * (window / STG_TALLY_SLICES);
}
