/* queue_ladder.h - a radix queue of 64-bit keys. Part of queue.h.
 *
 * The keys up to `floor` are near: sorted, or in a small heap if they came
 * after the sorting. All others lie in buckets, by the highest digit (of 6
 * bits) in which they differ from the floor, and by what that digit is. So
 * buckets have an order, and the keys of one have none. When nothing is near,
 * the first bucket is: if it holds few keys they are sorted, else they are
 * dealt out to buckets of lower digits. A key moves down eleven times at most,
 * and some three times where a million keys are spread over seconds. */
#ifndef STAGGER_SIM_QUEUE_LADDER_H
#define STAGGER_SIM_QUEUE_LADDER_H

#include "sim/queue_heap.h"

enum {
    STG_LADDER_BITS = 6, /* of a digit */
    STG_LADDER_DIGITS = 1 << STG_LADDER_BITS,
    STG_LADDER_LEVELS = 11, /* 66 bits */
    STG_LADDER_CHUNK = 30,  /* keys; a chunk is four cache lines */
    STG_LADDER_FEW = 4 * STG_LADDER_CHUNK, /* below 256 */
    STG_LADDER_PAGE = 31,                  /* chunks */
};

typedef struct stg_ladder_chunk {
    struct stg_ladder_chunk *next; /* full ones of the same bucket, or free */
    uint32_t count;
    uint32_t behind; /* keys of those */
    uint64_t keys[STG_LADDER_CHUNK];
} stg_ladder_chunk;

typedef struct stg_ladder_page {
    struct stg_ladder_page *next;
    stg_ladder_chunk chunks[STG_LADDER_PAGE];
} stg_ladder_page;

/* What belongs to a key lies in two arrays, by the key's lowest bits. */
typedef struct stg_ladder_fetch {
    uint64_t mask;
    const char *one, *other; /* NULL: nothing does */
    size_t one_size, other_size;
} stg_ladder_fetch;

typedef struct stg_sim_ladder {
    uint64_t floor;
    size_t count;
    size_t near_count;
    uint64_t near[STG_LADDER_FEW]; /* the least is the last */
    stg_sim_heap late;             /* up to the floor, too */
    stg_ladder_fetch fetch;
    uint32_t levels; /* a bit each: has a bucket that is used */
    uint64_t used[STG_LADDER_LEVELS];
    stg_ladder_chunk *free;
    stg_ladder_page *pages;
    const stg_memory *memory;
    /* A bucket is its chunks. Only the first may not be full. */
    stg_ladder_chunk *buckets[STG_LADDER_LEVELS << STG_LADDER_BITS];
} stg_sim_ladder;

void stg_sim_ladder_init(stg_sim_ladder *l, const stg_memory *memory);
void stg_sim_ladder_close(stg_sim_ladder *l);

/* Forgets all keys, and begins at 0 again. */
void stg_sim_ladder_clear(stg_sim_ladder *l);

/* Which bucket it lies in, by the highest digit in which it differs from the
 * floor, and by that digit. */
static inline size_t stg_sim_ladder_place(uint64_t floor, uint64_t key)
{
    unsigned bit = 63 - (unsigned)__builtin_clzll(key ^ floor);
    unsigned level = bit / STG_LADDER_BITS;
    uint64_t digit = key >> (STG_LADDER_BITS * level);

    return (size_t)level << STG_LADDER_BITS |
           (size_t)(digit & (STG_LADDER_DIGITS - 1));
}

/* The same where there is no room in the first chunk. */
bool stg_sim_ladder_put_new(stg_sim_ladder *l, size_t place, uint64_t key);

/* Into its bucket, or among the late ones; it is not counted. */
static inline bool stg_sim_ladder_put(stg_sim_ladder *l, uint64_t key)
{
    stg_ladder_chunk *c;
    size_t place;

    if (key <= l->floor)
        return stg_sim_heap_push(&l->late, key);
    place = stg_sim_ladder_place(l->floor, key);
    c = l->buckets[place];
    if (c == NULL || c->count == STG_LADDER_CHUNK)
        return stg_sim_ladder_put_new(l, place, key);
    c->keys[c->count++] = key;
    return true;
}

/* Returns false if there is no memory: nothing has changed. */
static inline bool stg_sim_ladder_push(stg_sim_ladder *l, uint64_t key)
{
    l->count++;
    if (stg_sim_ladder_put(l, key))
        return true;
    l->count--;
    return false;
}

/* Makes the next keys near. Returns false if there is no memory, or no key. */
bool stg_sim_ladder_refill(stg_sim_ladder *l);

/* The least key, which it leaves in; some are near. */
static inline uint64_t stg_sim_ladder_top(const stg_sim_ladder *l)
{
    if (l->near_count == 0)
        return l->late.keys[0];
    if (l->late.count > 0 && l->late.keys[0] < l->near[l->near_count - 1])
        return l->late.keys[0];
    return l->near[l->near_count - 1];
}

/* Takes the least key; some are near. */
static inline uint64_t stg_sim_ladder_pop(stg_sim_ladder *l)
{
    l->count--;
    if (l->near_count == 0 ||
        (l->late.count > 0 && l->late.keys[0] < l->near[l->near_count - 1]))
        return stg_sim_heap_pop(&l->late);
    return l->near[--l->near_count];
}

static inline bool stg_sim_ladder_has_near(const stg_sim_ladder *l)
{
    return l->near_count > 0 || l->late.count > 0;
}

#endif
