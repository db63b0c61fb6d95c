/* The recent messages of a partition, against a plain list. */
#include <stdlib.h>

#include "flow/state.h"
#include "tests/harness.h"

#include <stagger/rng.h>

static void *allocate(void *ctx, size_t size)
{
    bool *is_empty = ctx;

    return *is_empty ? NULL : malloc(size);
}

static void release(void *ctx, void *bytes)
{
    (void)ctx;
    free(bytes);
}

static stg_message *make_message(uint64_t position)
{
    stg_message *m = calloc(1, sizeof *m);

    m->position = position;
    m->refs = 1;
    return m;
}

TEST(window, covers_nothing_at_first)
{
    stg_window w;

    stg_window_init(&w, 17);
    CHECK_U64(w.start, 17);
    CHECK_U64(w.next, 17);
    CHECK_U64(stg_window_find(&w, 0), w.end);
    CHECK_U64(stg_window_find(&w, 1000), w.end);
    CHECK_U64(stg_window_position(&w, w.end), 17);
}

TEST(window, is_as_it_was_when_there_is_no_memory)
{
    bool is_empty = false;
    stg_memory memory = {allocate, release, &is_empty};
    stg_window w;

    stg_window_init(&w, 0);
    CHECK(stg_window_reserve(&w, 1, &memory));
    while (w.end - w.first < w.capacity)
        stg_window_push(&w, make_message(w.end));
    is_empty = true;
    CHECK(!stg_window_reserve(&w, 1, &memory));
    CHECK(!stg_window_reserve(&w, SIZE_MAX / 2, &memory));
    for (uint64_t n = 0; n < w.end; n++)
        CHECK_U64(stg_window_at(&w, n)->position, n);
    while (w.first < w.end)
        free(stg_window_shift(&w));
    free(w.messages);
}

static void check_window(uint64_t seed, const stg_window *w,
                         const uint64_t *positions, uint64_t first,
                         uint64_t end, stg_rng *rng)
{
    uint64_t asked = stg_rng_upto(rng, 4 * end + 10), n = first;

    CHECK_FROM(seed, w->first == first && w->end == end);
    for (uint64_t i = first; i < end; i++)
        CHECK_FROM(seed, stg_window_at(w, i)->position == positions[i] &&
                             stg_window_position(w, i) == positions[i]);
    while (n < end && positions[n] < asked)
        n++;
    CHECK_FROM(seed, stg_window_find(w, asked) == n);
    CHECK_FROM(seed, first == 0 || w->start == positions[first - 1] + 1);
}

TEST(window, is_a_list_with_numbers)
{
    enum { MOST = 2000 };
    bool is_empty = false;
    stg_memory memory = {allocate, release, &is_empty};
    uint64_t *positions = calloc(MOST, sizeof *positions);

    for (uint64_t seed = 0; seed < seeds(20); seed++) {
        stg_rng rng = stg_rng_seed(seed);
        uint64_t first = 0, end = 0, position = 0;
        stg_window w;

        stg_window_init(&w, 0);
        while (end < MOST) {
            if (stg_rng_upto(&rng, 99) < 40 && first < end) {
                stg_message *m = stg_window_shift(&w);

                CHECK_FROM(seed, m->position == positions[first++]);
                free(m);
            } else {
                position += 1 + stg_rng_upto(&rng, 5);
                CHECK(stg_window_reserve(&w, 1, &memory));
                stg_window_push(&w, make_message(position));
                positions[end++] = position;
                w.next = position + 1;
            }
            if (end % 16 == 0)
                check_window(seed, &w, positions, first, end, &rng);
        }
        while (w.first < w.end)
            free(stg_window_shift(&w));
        free(w.messages);
    }
    free(positions);
}
