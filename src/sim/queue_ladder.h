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
    STG_LADDER_CHUNK = 14,  /* keys; a chunk is two cache lines */
    STG_LADDER_FEW = 5 * STG_LADDER_CHUNK,
    STG_LADDER_PAGE = 63,   /* chunks */
    STG_LADDER_SOON = 2048, /* keys of a bucket that is dealt out, at most, to
                               have what belongs to them fetched */
};

typedef struct stg_ladder_chunk {
    struct stg_ladder_chunk *next; /* full ones of the same bucket, or free */
    uint32_t count;
    uint64_t keys[STG_LADDER_CHUNK];
} stg_ladder_chunk;

typedef struct stg_ladder_bucket {
    stg_ladder_chunk *first; /* the only one that may not be full */
    size_t count;            /* of keys */
} stg_ladder_bucket;

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
    stg_ladder_fetch fetch;
    uint64_t floor;
    size_t count;
    uint32_t near_count;
    uint64_t near[STG_LADDER_FEW]; /* the least is the last */
    stg_sim_heap late;             /* up to the floor, too */
    uint32_t levels;               /* a bit each: has a bucket that is used */
    uint64_t used[STG_LADDER_LEVELS];
    stg_ladder_bucket buckets[STG_LADDER_LEVELS][STG_LADDER_DIGITS];
    stg_ladder_chunk *free;
    stg_ladder_page *pages;
    const stg_memory *memory;
} stg_sim_ladder;

void stg_sim_ladder_init(stg_sim_ladder *l, const stg_memory *memory);
void stg_sim_ladder_close(stg_sim_ladder *l);

/* Forgets all keys, and begins at 0 again. */
void stg_sim_ladder_clear(stg_sim_ladder *l);

/* Returns false if there is no memory: nothing has changed. */
bool stg_sim_ladder_push(stg_sim_ladder *l, uint64_t key);

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
