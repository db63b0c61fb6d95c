#include "sim/queue_ladder.h"

#include <string.h>

void stg_sim_ladder_init(stg_sim_ladder *l, const stg_memory *memory)
{
    *l = (stg_sim_ladder){.memory = memory};
    stg_sim_heap_init(&l->late, memory);
}

void stg_sim_ladder_close(stg_sim_ladder *l)
{
    stg_ladder_page *page = l->pages, *next;

    for (; page != NULL; page = next) {
        next = page->next;
        l->memory->release(l->memory->ctx, page);
    }
    stg_sim_heap_close(&l->late);
    stg_sim_ladder_init(l, l->memory);
}

static unsigned lowest_bit(uint64_t bits)
{
    return (unsigned)__builtin_ctzll(bits);
}

/* The highest digit in which they differ; they do. */
static unsigned find_level(uint64_t a, uint64_t b)
{
    return (63 - (unsigned)__builtin_clzll(a ^ b)) / STG_LADDER_BITS;
}

static bool add_page(stg_sim_ladder *l)
{
    stg_ladder_page *page = l->memory->allocate(l->memory->ctx, sizeof *page);

    if (page == NULL)
        return false;
    page->next = l->pages;
    l->pages = page;
    for (size_t i = STG_LADDER_PAGE; i-- > 0;) {
        page->chunks[i].next = l->free;
        l->free = &page->chunks[i];
    }
    return true;
}

static void free_chunk(stg_sim_ladder *l, stg_ladder_chunk *c)
{
    c->next = l->free;
    l->free = c;
}

/* Another chunk for the bucket, or NULL: no memory. */
static stg_ladder_chunk *open_chunk(stg_sim_ladder *l, unsigned level,
                                    unsigned digit)
{
    stg_ladder_bucket *b = &l->buckets[level][digit];
    stg_ladder_chunk *c;

    if (l->free == NULL && !add_page(l))
        return NULL;
    c = l->free;
    l->free = c->next;
    c->next = b->first;
    c->count = 0;
    b->first = c;
    l->used[level] |= (uint64_t)1 << digit;
    l->levels |= (uint32_t)1 << level;
    return c;
}

/* Into its bucket, or among the late ones. */
static bool put(stg_sim_ladder *l, uint64_t key)
{
    unsigned level, digit;
    stg_ladder_bucket *b;
    stg_ladder_chunk *c;

    if (key <= l->floor)
        return stg_sim_heap_push(&l->late, key);
    level = find_level(key, l->floor);
    digit = key >> (STG_LADDER_BITS * level) & (STG_LADDER_DIGITS - 1);
    b = &l->buckets[level][digit];
    c = b->first;
    if (c == NULL || c->count == STG_LADDER_CHUNK) {
        c = open_chunk(l, level, digit);
        if (c == NULL)
            return false;
    }
    c->keys[c->count++] = key;
    b->count++;
    return true;
}

bool stg_sim_ladder_push(stg_sim_ladder *l, uint64_t key)
{
    if (!put(l, key))
        return false;
    l->count++;
    return true;
}

void stg_sim_ladder_clear(stg_sim_ladder *l)
{
    for (; l->levels != 0; l->levels &= l->levels - 1) {
        unsigned level = lowest_bit(l->levels);

        for (; l->used[level] != 0; l->used[level] &= l->used[level] - 1) {
            stg_ladder_bucket *b =
                &l->buckets[level][lowest_bit(l->used[level])];

            b->count = 0;
            while (b->first != NULL) {
                stg_ladder_chunk *c = b->first;

                b->first = c->next;
                free_chunk(l, c);
            }
        }
    }
    l->floor = 0;
    l->count = 0;
    l->near_count = 0;
    stg_sim_heap_clear(&l->late);
}

/* By insertion: they are few. The least comes last. */
static void sort_near(stg_sim_ladder *l)
{
    uint64_t *near = l->near;

    for (uint32_t i = 1; i < l->near_count; i++) {
        uint64_t key = near[i];
        uint32_t j = i;

        for (; j > 0 && near[j - 1] < key; j--)
            near[j] = near[j - 1];
        near[j] = key;
    }
}

/* A bucket of few keys, whole. */
static void take_near(stg_sim_ladder *l, stg_ladder_chunk *c)
{
    while (c != NULL) {
        stg_ladder_chunk *next = c->next;

        memcpy(l->near + l->near_count, c->keys, c->count * sizeof *c->keys);
        l->near_count += c->count;
        free_chunk(l, c);
        c = next;
    }
    sort_near(l);
}

/* A bucket of many keys, to buckets of lower digits. The floor is the least
 * key that it can hold. What there was no memory for stays in the bucket, where
 * it was in order before and is not now: the queue is lost then, as it says. */
static bool deal_out(stg_sim_ladder *l, stg_ladder_chunk *c)
{
    while (c != NULL) {
        stg_ladder_chunk *next = c->next;

        for (uint32_t i = 0; i < c->count; i++)
            if (!put(l, c->keys[i]))
                return false;
        free_chunk(l, c);
        c = next;
    }
    return true;
}

/* The first bucket of all, which is not in the ladder any more. */
static stg_ladder_bucket take_bucket(stg_sim_ladder *l, unsigned *level)
{
    unsigned digit;
    stg_ladder_bucket b;

    *level = lowest_bit(l->levels);
    digit = lowest_bit(l->used[*level]);
    b = l->buckets[*level][digit];
    l->buckets[*level][digit] = (stg_ladder_bucket){0};
    l->used[*level] &= l->used[*level] - 1;
    if (l->used[*level] == 0)
        l->levels &= l->levels - 1;
    return b;
}

/* They come out before long. */
static void fetch(const stg_sim_ladder *l, const stg_ladder_chunk *c)
{
    const stg_ladder_fetch *f = &l->fetch;

    for (; c != NULL; c = c->next)
        for (uint32_t i = 0; i < c->count; i++) {
            size_t id = (size_t)(c->keys[i] & f->mask);

            __builtin_prefetch(f->one + id * f->one_size, 1);
            __builtin_prefetch(f->other + id * f->other_size, 1);
        }
}

bool stg_sim_ladder_refill(stg_sim_ladder *l)
{
    while (!stg_sim_ladder_has_near(l)) {
        stg_ladder_bucket b;
        unsigned level;
        uint64_t width;

        if (l->levels == 0)
            return false;
        b = take_bucket(l, &level);
        width = ((uint64_t)1 << (STG_LADDER_BITS * level)) - 1;
        if (b.count <= STG_LADDER_FEW) {
            l->floor = b.first->keys[0] | width;
            take_near(l, b.first);
            continue;
        }
        if (l->fetch.one != NULL && b.count <= STG_LADDER_SOON)
            fetch(l, b.first);
        l->floor = b.first->keys[0] & ~width;
        if (!deal_out(l, b.first))
            return false;
    }
    return true;
}
