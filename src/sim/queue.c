#include "sim/queue.h"

#include <string.h>

/* A queue has two parts: packed 64-bit keys before the horizon, in a heap or a
 * ladder, and events with their full time beyond it. The origin moves only
 * when nothing is left before the horizon, so every event beyond it is later
 * than every event before it, and the two parts are never compared.
 *
 * An event before the origin would wrap to a huge distance and be put beyond
 * the horizon: callers must not push a time before the last one popped. */

enum {
    /* From so many ids on the ladder is faster than the heap. Measured. */
    LADDER_FROM = 64,
};

/* How many bits an id below `ids` takes. */
static unsigned count_bits(uint32_t ids)
{
    unsigned bits = 0;

    while (bits < 32 && ((uint64_t)1 << bits) < ids)
        bits++;
    return bits;
}

void stg_sim_queue_init(stg_sim_queue *q, stg_sim_queue_kind kind, uint32_t ids,
                        const stg_memory *memory)
{
    if (kind == STG_SIM_QUEUE_AUTO)
        kind = ids < LADDER_FROM ? STG_SIM_QUEUE_HEAP : STG_SIM_QUEUE_LADDER;
    q->kind = kind;
    q->id_bits = count_bits(ids);
    q->id_mask = ((uint64_t)1 << q->id_bits) - 1;
    q->span = UINT64_MAX >> q->id_bits;
    q->origin = 0;
    q->memory = memory;
    q->far = NULL;
    q->far_count = q->far_room = 0;
    stg_sim_heap_init(&q->heap, memory);
    stg_sim_ladder_init(&q->ladder, memory);
}

void stg_sim_queue_close(stg_sim_queue *q)
{
    stg_sim_heap_close(&q->heap);
    stg_sim_ladder_close(&q->ladder);
    if (q->far != NULL)
        q->memory->release(q->memory->ctx, q->far);
    q->far = NULL;
    q->far_count = q->far_room = 0;
}

void stg_sim_queue_clear(stg_sim_queue *q)
{
    q->origin = 0;
    stg_sim_heap_clear(&q->heap);
    q->far_count = 0;
    stg_sim_ladder_clear(&q->ladder);
}

bool stg_sim_queue_reserve(stg_sim_queue *q, size_t events)
{
    return q->kind != STG_SIM_QUEUE_HEAP ||
           stg_sim_heap_reserve(&q->heap, events);
}

/* -- beyond the horizon: a binary heap */

static bool is_before(const stg_sim_far *a, const stg_sim_far *b)
{
    return a->at < b->at || (a->at == b->at && a->id < b->id);
}

static bool grow_far(stg_sim_queue *q)
{
    size_t room = q->far_room < 32 ? 64 : q->far_room * 2;
    stg_sim_far *grown;

    if (room > SIZE_MAX / sizeof *grown)
        return false;
    grown = q->memory->allocate(q->memory->ctx, room * sizeof *grown);
    if (grown == NULL)
        return false;
    if (q->far != NULL) {
        memcpy(grown, q->far, q->far_count * sizeof *grown);
        q->memory->release(q->memory->ctx, q->far);
    }
    q->far = grown;
    q->far_room = room;
    return true;
}

bool stg_sim_queue_push_far(stg_sim_queue *q, stg_ns at, uint32_t id)
{
    stg_sim_far event = {.at = at, .id = id};
    size_t i = q->far_count;

    if (i == q->far_room && !grow_far(q))
        return false;
    q->far_count++;
    for (size_t parent; i > 0; i = parent) {
        parent = (i - 1) / 2;
        if (!is_before(&event, &q->far[parent]))
            break;
        q->far[i] = q->far[parent];
    }
    q->far[i] = event;
    return true;
}

static stg_sim_far pop_far(stg_sim_queue *q)
{
    stg_sim_far *far = q->far, top = far[0], last = far[--q->far_count];
    size_t i = 0;

    for (size_t child; (child = 2 * i + 1) < q->far_count; i = child) {
        if (child + 1 < q->far_count && is_before(&far[child + 1], &far[child]))
            child++;
        if (!is_before(&far[child], &last))
            break;
        far[i] = far[child];
    }
    far[i] = last;
    return top;
}

/* -- before it */

/* The ladder's count includes its buckets: "near" means before the horizon
 * here, and the sorted keys in queue_ladder.c. */
static size_t count_near(const stg_sim_queue *q)
{
    return q->kind == STG_SIM_QUEUE_HEAP ? q->heap.count : q->ladder.count;
}

/* Moves the origin to the next event, when nothing is left before the horizon.
 * Each event is pushed before it is popped from beyond the horizon: without
 * memory for the push it is still there, and the count stays true. The ladder
 * is cleared because its floor is a key of the old origin. */
static bool move_origin(stg_sim_queue *q)
{
    if (q->far_count == 0)
        return false;
    q->origin = q->far[0].at;
    stg_sim_ladder_clear(&q->ladder);
    while (q->far_count > 0 && q->far[0].at - q->origin <= q->span) {
        stg_sim_far event = q->far[0];

        if (!stg_sim_queue_push(q, event.at, event.id))
            return false;
        (void)pop_far(q);
    }
    return true;
}

bool stg_sim_queue_prepare(stg_sim_queue *q)
{
    if (count_near(q) == 0 && !move_origin(q))
        return false;
    return q->kind == STG_SIM_QUEUE_HEAP ||
           stg_sim_ladder_has_near(&q->ladder) ||
           stg_sim_ladder_refill(&q->ladder);
}

bool stg_sim_queue_top(stg_sim_queue *q, stg_ns *at, uint32_t *id)
{
    uint64_t key;

    if (!stg_sim_queue_prepare(q))
        return false;
    key = q->kind == STG_SIM_QUEUE_HEAP ? q->heap.keys[0]
                                        : stg_sim_ladder_top(&q->ladder);
    *at = q->origin + (key >> q->id_bits);
    *id = (uint32_t)(key & q->id_mask);
    return true;
}

size_t stg_sim_queue_count(const stg_sim_queue *q)
{
    return count_near(q) + q->far_count;
}

void stg_sim_queue_fetch(stg_sim_queue *q, const void *one, size_t one_size,
                         const void *other, size_t other_size)
{
    q->ladder.fetch = (stg_ladder_fetch){
        .mask = q->id_mask,
        .one = one,
        .other = other == NULL ? one : other,
        .one_size = one_size,
        .other_size = other == NULL ? one_size : other_size,
    };
}
