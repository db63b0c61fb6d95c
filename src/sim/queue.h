/* queue.h - what happens when: the queues of events. */
#ifndef STAGGER_SIM_QUEUE_H
#define STAGGER_SIM_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include <stagger/ns.h>

#include "base/memory.h"

/* -- the heap: the reference ----------------------------------------------- */

/* A heap of 64-bit keys: the reference queue. Part of queue.h.
 *
 * Four children a node: half as deep as two, and they share a cache line. */

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

/* -- the ladder ------------------------------------------------------------ */

/* A radix queue of 64-bit keys. Part of queue.h.
 *
 * The keys up to `floor` are near: sorted, or in a small heap if they came
 * after the sorting. All others lie in buckets, by the highest digit (of 6
 * bits) in which they differ from the floor, and by what that digit is. So
 * buckets have an order, and the keys of one have none. When nothing is near,
 * the first bucket is: if it holds few keys they are sorted, else they are
 * dealt out to buckets of lower digits. A key moves down eleven times at most,
 * and some three times where a million keys are spread over seconds. */

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

/* -- a queue --------------------------------------------------------------- */

/* What happens next: the events of a simulation, by time.
 *
 * An event is a time and an id. Those of one time come out by id, so the order
 * is total, and whoever keeps the events, they come out the same:
 *
 *   heap     one heap of packed keys; the reference, and best for few events
 *   ladder   a radix queue: an event goes where its key first differs from
 *            now's, and is sorted when it is among the next few; best for many
 *
 * A key is (time - origin) << id_bits | id in 64 bits. What does not fit waits
 * beyond the horizon, in a heap with its full time: with a million ids that is
 * what is more than 4.9 hours ahead of the origin. When nothing is left before
 * the horizon the origin moves to the next event.
 *
 * Pure: memory comes from a hook. One queue belongs to one thread at a time.
 *
 * Source: Ahuja, Mehlhorn, Orlin and Tarjan, "Faster algorithms for the
 * shortest path problem", JACM 37(2), 1990 (the radix heap). */

typedef enum stg_sim_queue_kind {
    STG_SIM_QUEUE_AUTO, /* the faster kind for the number of ids */
    STG_SIM_QUEUE_HEAP,
    STG_SIM_QUEUE_LADDER,
} stg_sim_queue_kind;

/* With its full time: beyond the horizon. */
typedef struct stg_sim_far {
    stg_ns at;
    uint32_t id;
} stg_sim_far;

typedef struct stg_sim_queue {
    stg_sim_queue_kind kind; /* heap or ladder */
    unsigned id_bits;
    uint64_t id_mask;
    stg_ns span; /* how far ahead of the origin the horizon is */
    stg_ns origin;
    stg_sim_heap heap;
    stg_sim_ladder ladder;
    const stg_memory *memory;
    stg_sim_far *far; /* a heap */
    size_t far_count, far_room;
} stg_sim_queue;

/* An empty queue for ids below `ids` (1 to 2^32 - 1), times from 0 on. memory
 * is kept. Holds nothing yet, so it cannot fail. */
void stg_sim_queue_init(stg_sim_queue *q, stg_sim_queue_kind kind, uint32_t ids,
                        const stg_memory *memory);

/* Gives back all memory; the queue may be used again after an init. */
void stg_sim_queue_close(stg_sim_queue *q);

/* Forgets all events and keeps the memory. */
void stg_sim_queue_clear(stg_sim_queue *q);

/* Room in a heap for so many events before the horizon, without slack; a ladder
 * takes pages when it needs them. Returns false if there is no memory. It is
 * not needed: a queue grows. */
bool stg_sim_queue_reserve(stg_sim_queue *q, size_t events);

/* An event beyond the horizon. */
bool stg_sim_queue_push_far(stg_sim_queue *q, stg_ns at, uint32_t id);

/* Puts an event in; an id may have any number of them. at is not before the
 * last time that came out. Returns false if there is no memory: nothing has
 * changed. */
static inline bool stg_sim_queue_push(stg_sim_queue *q, stg_ns at, uint32_t id)
{
    stg_ns ahead = at - q->origin;

    if (ahead > q->span)
        return stg_sim_queue_push_far(q, at, id);
    if (q->kind == STG_SIM_QUEUE_HEAP)
        return stg_sim_heap_push(&q->heap, ahead << q->id_bits | id);
    return stg_sim_ladder_push(&q->ladder, ahead << q->id_bits | id);
}

/* Makes some events near; the rest of what a pop may have to do. */
bool stg_sim_queue_prepare(stg_sim_queue *q);

/* Takes the next event out. Returns false if there is none, or none that
 * there is memory for (stg_sim_queue_count() tells them apart): nothing has
 * been written. */
static inline bool stg_sim_queue_pop(stg_sim_queue *q, stg_ns *at, uint32_t *id)
{
    bool is_heap = q->kind == STG_SIM_QUEUE_HEAP;
    uint64_t key;

    if ((is_heap ? q->heap.count : q->ladder.near_count) == 0 &&
        !stg_sim_queue_prepare(q))
        return false;
    key = is_heap ? stg_sim_heap_pop(&q->heap) : stg_sim_ladder_pop(&q->ladder);
    *at = q->origin + (key >> q->id_bits);
    *id = (uint32_t)(key & q->id_mask);
    return true;
}

/* The same, and leaves it in. */
bool stg_sim_queue_top(stg_sim_queue *q, stg_ns *at, uint32_t *id);

/* How many there are. */
size_t stg_sim_queue_count(const stg_sim_queue *q);

/* What belongs to id i lies at one + i * one_size, and at other + i * other_size
 * (NULL: nothing): a ladder has it fetched from memory before the event's turn
 * comes. Borrowed until the close. It changes nothing but the time that
 * simulating takes. */
void stg_sim_queue_fetch(stg_sim_queue *q, const void *one, size_t one_size,
                         const void *other, size_t other_size);

#endif
