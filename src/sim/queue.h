/* queue.h - what happens next: the events of a simulation, by time.
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
#ifndef STAGGER_SIM_QUEUE_H
#define STAGGER_SIM_QUEUE_H

#include <stdbool.h>

#include <stagger/ns.h>

#include "base/memory.h"
#include "sim/queue_heap.h"
#include "sim/queue_ladder.h"

typedef enum stg_sim_queue_kind {
    STG_SIM_QUEUE_AUTO, /* what is faster for so many ids */
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
