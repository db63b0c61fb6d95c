#include "sim/max_rate.h"

#include <string.h>

#define NO_SLICE UINT64_MAX /* no time is in it */

void stg_sim_max_rate_init(stg_sim_max_rate *p, stg_ns width,
                           const stg_memory *memory)
{
    stg_ns half = (stg_ns)1 << (STG_MAX_RATE_SLICE_BITS - 1);

    *p = (stg_sim_max_rate){
        .width = (uint32_t)((width + half) >> STG_MAX_RATE_SLICE_BITS),
        .last = NO_SLICE,
        .memory = memory,
    };
}

static void close_block(const stg_sim_max_rate *p, stg_max_rate_block *b)
{
    if (b->slices != NULL)
        p->memory->release(p->memory->ctx, b->slices);
    *b = (stg_max_rate_block){0};
}

void stg_sim_max_rate_close(stg_sim_max_rate *p)
{
    close_block(p, &p->before);
    close_block(p, &p->now);
    stg_sim_max_rate_clear(p);
}

static void begin_block(stg_max_rate_block *b, uint64_t begin)
{
    b->begin = begin;
    b->count = 0;
    b->used = 0;
}

void stg_sim_max_rate_clear(stg_sim_max_rate *p)
{
    begin_block(&p->before, 0);
    begin_block(&p->now, 0);
    p->most = 0;
    p->last = NO_SLICE;
}

static bool grow(const stg_sim_max_rate *p, stg_max_rate_block *b)
{
    uint32_t room = b->room == 0 ? 64 : 2 * b->room;
    stg_max_rate_slice *slices;

    if (room > p->width)
        room = p->width;
    slices = p->memory->allocate(p->memory->ctx, room * sizeof *slices);
    if (slices == NULL)
        return false;
    if (b->slices != NULL) {
        memcpy(slices, b->slices, b->used * sizeof *slices);
        p->memory->release(p->memory->ctx, b->slices);
    }
    b->slices = slices;
    b->room = room;
    return true;
}

/* The windows that end in a slice of this block and begin in the one before:
 * the latter's slices leave, one by one, as the former's come. */
static uint64_t find_most(const stg_sim_max_rate *p)
{
    const stg_max_rate_block *before = &p->before, *now = &p->now;
    uint64_t count = before->count, most = 0;
    uint32_t left = 0;

    for (uint32_t i = 0; i < now->used; i++) {
        // Both blocks are as long as the window, so the same number a block
        // ago is where it begins.
        while (left < before->used &&
               before->slices[left].number <= now->slices[i].number)
            count -= before->slices[left++].count;
        count += now->slices[i].count;
        if (count > most)
            most = count;
    }
    return most;
}

uint64_t stg_sim_max_rate_most(stg_sim_max_rate *p)
{
    if (p->before.count + p->now.count > p->most) {
        uint64_t most = find_most(p);

        if (most > p->most)
            p->most = most;
    }
    return p->most;
}

/* The block is over: the next one has this slice. */
static void turn(stg_sim_max_rate *p, uint64_t slice)
{
    uint64_t begin = slice - slice % p->width;
    stg_max_rate_block old = p->before;

    (void)stg_sim_max_rate_most(p);
    p->before = p->now;
    p->now = old;
    if (p->before.begin + p->width != begin)
        begin_block(&p->before, 0);
    begin_block(&p->now, begin);
}

bool stg_sim_max_rate_make_room(stg_sim_max_rate *p, uint64_t slice)
{
    if (slice - p->now.begin >= p->width)
        turn(p, slice);
    return p->now.used < p->now.room || grow(p, &p->now);
}
