/* The deliveries that a lane has taken, against a plain array. */
#include <stdlib.h>

#include "flow/lane.h"
#include "tests/harness.h"

#include <stagger/rng.h>

static size_t allocated;

static void *allocate(void *ctx, size_t size)
{
    const bool *is_empty = ctx;

    if (is_empty != NULL && *is_empty)
        return NULL;
    allocated++;
    return malloc(size);
}

static void release(void *ctx, void *bytes)
{
    (void)ctx;
    allocated--;
    free(bytes);
}

static stg_delivery *const some = (stg_delivery *)(uintptr_t)64;

TEST(ring, has_no_memory_while_it_holds_nothing)
{
    stg_memory memory = {allocate, release, NULL};
    stg_ring r = {0};
    uint32_t slots[100];

    for (uint32_t i = 0; i < 100; i++) {
        CHECK(stg_ring_reserve(&r, &memory));
        slots[i] = stg_ring_push(&r, i, some);
    }
    for (uint32_t i = 0; i < 100; i++)
        stg_ring_settle(&r, slots[99 - i], &memory);
    CHECK_U64(r.count, 0);
    CHECK_U64(allocated, 0);
}

TEST(ring, is_as_it_was_when_there_is_no_memory)
{
    bool is_empty = false;
    stg_memory memory = {allocate, release, &is_empty};
    stg_ring r = {0};
    uint32_t count = 0;

    do {
        CHECK(stg_ring_reserve(&r, &memory));
        stg_ring_push(&r, count++, some);
    } while (r.count < r.capacity);
    is_empty = true;
    CHECK(!stg_ring_reserve(&r, &memory));
    CHECK_U64(r.count, count);
    for (uint32_t i = 0; i < count; i++)
        CHECK_U64(stg_ring_at(&r, r.first + i)->position, i);
    stg_ring_free(&r, &memory);
    CHECK_U64(allocated, 0);
}

/* What is settled at the front leaves, whatever the order; slots keep their
 * numbers while others come and go, and wrap. */
TEST(ring, loses_what_is_settled_at_its_front)
{
    enum { MOST = 3000 };
    stg_memory memory = {allocate, release, NULL};
    uint32_t *slots = calloc(MOST, sizeof *slots);
    bool *is_settled = calloc(MOST, sizeof *is_settled);

    for (uint64_t seed = 0; seed < seeds(20); seed++) {
        stg_rng rng = stg_rng_seed(seed);
        stg_ring r = {.first = UINT32_MAX - 100}; // numbers wrap
        uint32_t front = 0, end = 0;

        memset(is_settled, 0, MOST * sizeof *is_settled);
        while (front < MOST) {
            if (end < MOST && stg_rng_upto(&rng, 9) < 5) {
                CHECK(stg_ring_reserve(&r, &memory));
                slots[end] = stg_ring_push(&r, end, some);
                end++;
            } else if (front < end) {
                uint32_t n =
                    front + (uint32_t)stg_rng_upto(&rng, end - front - 1);

                if (is_settled[n])
                    n = front;
                is_settled[n] = true;
                stg_ring_settle(&r, slots[n], &memory);
                while (front < end && is_settled[front])
                    front++;
            }
            CHECK_FROM(seed, r.count == end - front);
            CHECK_FROM(seed, r.count == 0 ||
                                 stg_ring_at(&r, r.first)->position == front);
        }
        stg_ring_free(&r, &memory);
        CHECK_FROM(seed, allocated == 0);
    }
    free(slots);
    free(is_settled);
}
