#include "sim/peak.h"

void stg_sim_peak_init(stg_sim_peak *p, stg_ns width, const stg_memory *memory)
{
    *p = (stg_sim_peak){.width = width, .memory = memory};
}

void stg_sim_peak_close(stg_sim_peak *p)
{
    if (p->times != NULL)
        p->memory->release(p->memory->ctx, p->times);
    stg_sim_peak_init(p, p->width, p->memory);
}

void stg_sim_peak_clear(stg_sim_peak *p)
{
    p->first = p->count = p->most = 0;
    p->last_at = 0;
}

static bool grow(stg_sim_peak *p)
{
    size_t room = p->room == 0 ? 64 : 2 * p->room;
    uint32_t *times;

    if (room > SIZE_MAX / sizeof *times)
        return false;
    times = p->memory->allocate(p->memory->ctx, room * sizeof *times);
    if (times == NULL)
        return false;
    for (size_t i = 0; i < p->count; i++)
        times[i] = p->times[(p->first + i) & (p->room - 1)];
    if (p->times != NULL)
        p->memory->release(p->memory->ctx, p->times);
    p->times = times;
    p->room = room;
    p->first = 0;
    return true;
}

bool stg_sim_peak_add(stg_sim_peak *p, stg_ns at)
{
    if (at - p->last_at >= p->width)
        p->count = 0;
    p->last_at = at;
    while (p->count > 0 && (uint32_t)at - p->times[p->first] >= p->width) {
        p->first = (p->first + 1) & (p->room - 1);
        p->count--;
    }
    if (p->count == p->room && !grow(p))
        return false;
    p->times[(p->first + p->count) & (p->room - 1)] = (uint32_t)at;
    p->count++;
    if (p->count > p->most)
        p->most = p->count;
    return true;
}
