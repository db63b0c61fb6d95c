#include <stdlib.h>

#include <stagger/rng.h>

#include "base/heap.h"
#include "tests/harness.h"

enum { NODES = 64 };

/* The model: an array of nodes, looked through for the least key. */
typedef struct model {
    stg_heap heap;
    stg_node nodes[NODES];
    bool is_in[NODES];
    uint64_t keys[NODES];
} model;

static size_t count_of(const model *m)
{
    size_t count = 0;

    for (size_t i = 0; i < NODES; i++)
        count += m->is_in[i];
    return count;
}

static uint64_t least_of(const model *m)
{
    uint64_t least = UINT64_MAX;

    for (size_t i = 0; i < NODES; i++)
        if (m->is_in[i] && m->keys[i] < least)
            least = m->keys[i];
    return least;
}

static void put(model *m, size_t i, uint64_t key)
{
    stg_heap_put(&m->heap, &m->nodes[i], key);
    m->is_in[i] = true;
    m->keys[i] = key;
}

static void take_out(model *m, size_t i)
{
    stg_heap_remove(&m->heap, &m->nodes[i]);
    m->is_in[i] = false;
}

/* Below `node`, and beside it: links that agree, and no key above a lesser one.
 * Returns how many there are. Its depth is not bounded, their number is. */
static size_t walk(const stg_node *node, const stg_node *over)
{
    size_t count = 0;

    for (const stg_node *before = over; node != NULL;
         before = node, node = node->next) {
        CHECK(node->prev == before);
        CHECK(node->key >= over->key);
        count += 1 + (node->child ? walk(node->child, node) : 0);
    }
    return count;
}

static void check(const model *m, uint64_t seed)
{
    const stg_node *top = m->heap.top;

    CHECK_FROM(seed, (top == NULL) == (count_of(m) == 0));
    for (size_t i = 0; i < NODES; i++)
        CHECK_FROM(seed, stg_heap_has(&m->nodes[i]) == m->is_in[i]);
    if (top == NULL)
        return;
    CHECK_FROM(seed, top->key == least_of(m));
    CHECK_FROM(seed, top->prev == top && top->next == NULL);
    CHECK_FROM(seed, 1 + walk(top->child, top) == count_of(m));
}

static void step(model *m, stg_rng *rng)
{
    size_t i = (size_t)stg_rng_upto(rng, NODES - 1);
    // Few keys, so that many are equal; and now and then the ends.
    uint64_t key =
        stg_rng_upto(rng, 9) == 0 ? UINT64_MAX : stg_rng_upto(rng, NODES);

    switch (stg_rng_upto(rng, 3)) {
    case 0:
        take_out(m, i);
        break;
    case 1:
        if (m->heap.top != NULL)
            take_out(m, (size_t)(m->heap.top - m->nodes));
        break;
    default:
        put(m, i, key);
    }
}

TEST(heap, agrees_with_a_plain_array_whatever_is_put_in_and_taken_out)
{
    for (uint64_t seed = 0; seed < seeds(300); seed++) {
        stg_rng rng = stg_rng_seed(seed);
        model m = {.heap = {NULL}};

        for (int i = 0; i < 300; i++) {
            step(&m, &rng);
            check(&m, seed);
        }
    }
}

TEST(heap, gives_out_in_order_what_was_put_in_in_any)
{
    for (uint64_t seed = 0; seed < seeds(200); seed++) {
        stg_rng rng = stg_rng_seed(seed);
        model m = {.heap = {NULL}};
        uint64_t last = 0;

        for (size_t i = 0; i < NODES; i++)
            put(&m, i, stg_rng_upto(&rng, UINT64_MAX));
        while (m.heap.top != NULL) {
            CHECK_FROM(seed, m.heap.top->key >= last);
            last = m.heap.top->key;
            take_out(&m, (size_t)(m.heap.top - m.nodes));
        }
        CHECK_FROM(seed, count_of(&m) == 0);
    }
}

TEST(heap, takes_out_a_node_that_is_in_none_as_nothing)
{
    stg_heap heap = {NULL};
    stg_node in = {.key = 0}, out = {.key = 7};

    stg_heap_remove(&heap, &out);
    CHECK(heap.top == NULL);
    stg_heap_put(&heap, &in, 3);
    stg_heap_remove(&heap, &out);
    CHECK(heap.top == &in);
    stg_heap_remove(&heap, &in);
    stg_heap_remove(&heap, &in);
    CHECK(heap.top == NULL && !stg_heap_has(&in));
    CHECK_U64(in.key, 3);
}
