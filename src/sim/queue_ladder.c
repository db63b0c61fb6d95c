#include "sim/queue.h"

#include <string.h>

/* The radix queue that queue.h describes. Three facts hold between calls: keys
 * up to the floor are in `near` or in `late`; a bucket's keys are all above the
 * floor; and buckets are in order of their place, so the first one used has the
 * least key. The floor never goes down, except by a clear.
 *
 * Whoever changes the floor must empty the first bucket in the same step: keys
 * that stay in a bucket are found by their difference to the old floor. All
 * other buckets keep their place, because they differ from the old and from the
 * new floor in the same highest digit. */

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

static void free_chunks(stg_sim_ladder *l, stg_ladder_chunk *c)
{
    for (stg_ladder_chunk *next; c != NULL; c = next) {
        next = c->next;
        free_chunk(l, c);
    }
}

bool stg_sim_ladder_put_new(stg_sim_ladder *l, size_t place, uint64_t key)
{
    stg_ladder_chunk *c, *full = l->buckets[place];
    size_t level = place >> STG_LADDER_BITS;

    if (l->free == NULL && !add_page(l))
        return false;
    c = l->free;
    l->free = c->next;
    c->next = full;
    c->behind = full == NULL ? 0 : full->behind + STG_LADDER_CHUNK;
    c->count = 1;
    c->keys[0] = key;
    l->buckets[place] = c;
    l->used[level] |= (uint64_t)1 << (place & (STG_LADDER_DIGITS - 1));
    l->levels |= (uint32_t)1 << level;
    return true;
}

/* Where the first bucket of all is; there is one. */
static size_t first_place(const stg_sim_ladder *l)
{
    unsigned level = lowest_bit(l->levels);

    return (size_t)level << STG_LADDER_BITS | lowest_bit(l->used[level]);
}

/* Unlinks and returns the first bucket. `x & (x - 1)` clears the lowest bit,
 * which is the one that first_place() found. */
static stg_ladder_chunk *take_bucket(stg_sim_ladder *l, unsigned *level)
{
    size_t place = first_place(l);
    stg_ladder_chunk *c = l->buckets[place];

    *level = (unsigned)(place >> STG_LADDER_BITS);
    l->buckets[place] = NULL;
    l->used[*level] &= l->used[*level] - 1;
    if (l->used[*level] == 0)
        l->levels &= l->levels - 1;
    return c;
}

void stg_sim_ladder_clear(stg_sim_ladder *l)
{
    unsigned level;

    while (l->levels != 0)
        free_chunks(l, take_bucket(l, &level));
    l->floor = 0;
    l->count = 0;
    l->near_count = 0;
    stg_sim_heap_clear(&l->late);
}

/* -- few keys: they are sorted */

/* How many keys have each digit, a byte each; and then, how many have it or a
 * lesser one. A byte is enough, as STG_LADDER_FEW is below 256. */
typedef struct digits {
    uint64_t counts[STG_LADDER_DIGITS / 8];
} digits;

/* Prefix sums of the eight bytes of each word at once: a multiplication by
 * 0x0101... adds to each byte all those below it. */
static void add_up(digits *d)
{
    const uint64_t each = 0x0101010101010101;
    uint64_t before = 0;

    for (size_t i = 0; i < STG_LADDER_DIGITS / 8; i++) {
        d->counts[i] = (d->counts[i] + before) * each;
        before = d->counts[i] >> 56;
    }
}

static void count_digit(digits *d, unsigned digit)
{
    d->counts[digit / 8] += (uint64_t)1 << digit % 8 * 8;
}

/* The number of keys that are left up to this digit, which becomes one less. */
static size_t take_place(digits *d, unsigned digit)
{
    unsigned shift = digit % 8 * 8;
    size_t place = d->counts[digit / 8] >> shift & UINT8_MAX;

    d->counts[digit / 8] -= (uint64_t)1 << shift;
    return place;
}

/* By insertion, which is quick where they are nearly in order. The least comes
 * last. */
static void sort_near(stg_sim_ladder *l)
{
    uint64_t *near = l->near;

    for (size_t i = 1; i < l->near_count; i++) {
        uint64_t key = near[i];
        size_t j = i;

        for (; j > 0 && near[j - 1] < key; j--)
            near[j] = near[j - 1];
        near[j] = key;
    }
}

/* To places by their next digit, at which most are in order. */
static void spread_near(stg_sim_ladder *l, const stg_ladder_chunk *first,
                        unsigned level)
{
    unsigned shift = level == 0 ? 0 : STG_LADDER_BITS * (level - 1);
    size_t count = l->near_count;
    digits d = {{0}};

    for (const stg_ladder_chunk *c = first; c != NULL; c = c->next)
        for (size_t i = 0; i < c->count; i++)
            count_digit(&d, c->keys[i] >> shift & (STG_LADDER_DIGITS - 1));
    add_up(&d);
    for (const stg_ladder_chunk *c = first; c != NULL; c = c->next)
        for (size_t i = 0; i < c->count; i++) {
            unsigned digit = c->keys[i] >> shift & (STG_LADDER_DIGITS - 1);

            l->near[count - take_place(&d, digit)] = c->keys[i];
        }
}

/* A bucket of few keys, whole. */
static void take_near(stg_sim_ladder *l, stg_ladder_chunk *c, unsigned level)
{
    enum { SOME = 6 }; // below it is not worth it

    l->near_count = c->behind + c->count;
    if (l->near_count < SOME)
        memcpy(l->near, c->keys, l->near_count * sizeof *c->keys);
    else
        spread_near(l, c, level);
    sort_near(l);
}

/* What belongs to the keys of the next bucket is wanted soon, and there is time
 * until then to fetch it from memory. */
static void fetch_next(const stg_sim_ladder *l)
{
    const stg_ladder_fetch *f = &l->fetch;
    const stg_ladder_chunk *c;

    if (l->levels == 0)
        return;
    c = l->buckets[first_place(l)];
    if (c->behind + c->count > STG_LADDER_FEW)
        return;
    for (; c != NULL; c = c->next)
        for (size_t i = 0; i < c->count; i++) {
            size_t id = (size_t)(c->keys[i] & f->mask);

            __builtin_prefetch(f->one + id * f->one_size, 1);
            __builtin_prefetch(f->other + id * f->other_size, 1);
        }
}

/* -- many: they go to buckets of lower digits */

/* The floor is the least key that the bucket can hold. What there was no memory
 * for is lost, and the queue with it, as it says. */
static bool deal_out(stg_sim_ladder *l, stg_ladder_chunk *c)
{
    while (c != NULL) {
        stg_ladder_chunk *next = c->next;

        __builtin_prefetch(next);
        for (uint32_t i = 0; i < c->count; i++)
            if (!stg_sim_ladder_put(l, c->keys[i]))
                return false;
        free_chunk(l, c);
        c = next;
    }
    return true;
}

bool stg_sim_ladder_refill(stg_sim_ladder *l)
{
    while (!stg_sim_ladder_has_near(l)) {
        stg_ladder_chunk *first;
        unsigned level;
        uint64_t width;

        if (l->levels == 0)
            return false;
        first = take_bucket(l, &level);
        width = ((uint64_t)1 << (STG_LADDER_BITS * level)) - 1;
        if (first->behind + first->count > STG_LADDER_FEW) {
            l->floor = first->keys[0] & ~width;
            if (!deal_out(l, first))
                return false;
            continue;
        }
        l->floor = first->keys[0] | width;
        take_near(l, first, level);
        free_chunks(l, first);
        if (l->fetch.one != NULL)
            fetch_next(l);
    }
    return true;
}
