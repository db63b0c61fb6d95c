#include "sim/queue.h"

#include <stdlib.h>

#include <stagger/rng.h>

#include "tests/harness.h"
#include "tests/sim/memory.h"

static const stg_sim_queue_kind kinds[] = {STG_SIM_QUEUE_HEAP,
                                           STG_SIM_QUEUE_LADDER};

enum { KINDS = sizeof kinds / sizeof *kinds };

/* -- a model: all events in a list, which is searched */

typedef struct event {
    stg_ns at;
    uint32_t id;
} event;

typedef struct model {
    event events[4096];
    size_t count;
} model;

static bool is_before(event a, event b)
{
    return a.at < b.at || (a.at == b.at && a.id < b.id);
}

static event take_first(model *m)
{
    size_t first = 0;
    event e;

    for (size_t i = 1; i < m->count; i++)
        if (is_before(m->events[i], m->events[first]))
            first = i;
    e = m->events[first];
    m->events[first] = m->events[--m->count];
    return e;
}

typedef struct pair {
    model model;
    stg_sim_queue queue;
    uint64_t seed;
    stg_ns now;
} pair;

static void push(pair *p, stg_ns at, uint32_t id)
{
    CHECK_FROM(p->seed, stg_sim_queue_push(&p->queue, at, id));
    p->model.events[p->model.count++] = (event){at, id};
}

static void pop(pair *p)
{
    event expected = take_first(&p->model);
    stg_ns at, top_at;
    uint32_t id, top_id;

    CHECK_FROM(p->seed, stg_sim_queue_top(&p->queue, &top_at, &top_id));
    CHECK_FROM(p->seed, stg_sim_queue_pop(&p->queue, &at, &id));
    CHECK_FROM(p->seed, at == expected.at && id == expected.id);
    CHECK_FROM(p->seed, top_at == at && top_id == id);
    CHECK_FROM(p->seed, stg_sim_queue_count(&p->queue) == p->model.count);
    p->now = at;
}

/* Spans that fit before the horizon, and spans that do not. */
static stg_ns draw_span(stg_rng *rng)
{
    return stg_rng_next(rng) >> (8 + stg_rng_upto(rng, 55));
}

static void try_seed(stg_sim_queue_kind kind, uint64_t seed)
{
    stg_rng rng = stg_rng_seed(seed);
    uint32_t ids =
        1 + (uint32_t)stg_rng_upto(&rng, (1U << stg_rng_upto(&rng, 31)) - 1);
    uint64_t crowd = stg_rng_upto(&rng, 1000);
    test_memory counts;
    stg_memory memory = test_memory_of(&counts);
    pair p = {.seed = seed};

    stg_sim_queue_init(&p.queue, kind, ids, &memory);
    for (int round = 0; round < 3000; round++) {
        bool is_growing = p.model.count < 2 + crowd;

        if (p.model.count > 0 && stg_rng_upto(&rng, is_growing ? 3 : 1) == 0)
            pop(&p);
        else if (p.model.count < 4000)
            push(&p,
                 stg_ns_add(p.now,
                            stg_rng_upto(&rng, 3) == 0 ? 0 : draw_span(&rng)),
                 (uint32_t)stg_rng_upto(&rng, ids - 1));
    }
    while (p.model.count > 0)
        pop(&p);
    CHECK_FROM(seed, !stg_sim_queue_pop(&p.queue, &p.now, &ids));
    stg_sim_queue_close(&p.queue);
    CHECK_FROM(seed, counts.held == 0);
}

TEST(queue, gives_events_in_the_order_of_time_and_id)
{
    for (uint64_t seed = 0; seed < seeds(200); seed++)
        for (size_t k = 0; k < KINDS; k++)
            try_seed(kinds[k], seed);
}

TEST(queue, keeps_any_number_of_events_of_one_id_and_time)
{
    for (size_t k = 0; k < KINDS; k++) {
        test_memory counts;
        stg_memory memory = test_memory_of(&counts);
        stg_sim_queue q;
        stg_ns at;
        uint32_t id;

        stg_sim_queue_init(&q, kinds[k], 8, &memory);
        for (int i = 0; i < 1000; i++)
            CHECK(stg_sim_queue_push(&q, 5 * STG_S, 3));
        for (int i = 0; i < 1000; i++)
            CHECK(stg_sim_queue_pop(&q, &at, &id) && at == 5 * STG_S &&
                  id == 3);
        CHECK(!stg_sim_queue_pop(&q, &at, &id));
        stg_sim_queue_close(&q);
    }
}

TEST(queue, has_a_horizon_of_some_hours_for_a_million_ids)
{
    test_memory counts;
    stg_memory memory = test_memory_of(&counts);
    stg_sim_queue q;
    stg_ns at;
    uint32_t id;

    stg_sim_queue_init(&q, STG_SIM_QUEUE_LADDER, 1000000, &memory);
    CHECK(q.span / STG_MIN == 293);
    CHECK(stg_sim_queue_push(&q, q.span, 999999));
    CHECK_INT(q.far_count, 0);
    CHECK(stg_sim_queue_push(&q, 365 * STG_DAY, 7));
    CHECK(stg_sim_queue_push(&q, 365 * STG_DAY + 1, 6));
    CHECK_INT(q.far_count, 2);
    CHECK(stg_sim_queue_pop(&q, &at, &id) && at == q.span && id == 999999);
    CHECK(stg_sim_queue_pop(&q, &at, &id) && at == 365 * STG_DAY && id == 7);
    CHECK_INT(q.far_count, 0);
    CHECK(stg_sim_queue_pop(&q, &at, &id) && id == 6);
    stg_sim_queue_close(&q);
}

TEST(queue, may_be_used_again_after_it_was_cleared)
{
    for (size_t k = 0; k < KINDS; k++) {
        test_memory counts;
        stg_memory memory = test_memory_of(&counts);
        stg_sim_queue q;
        size_t held = 0;
        stg_ns at;
        uint32_t id;

        stg_sim_queue_init(&q, kinds[k], 1000, &memory);
        for (int round = 0; round < 3; round++) {
            for (uint32_t i = 0; i < 1000; i++)
                CHECK(stg_sim_queue_push(&q, 3 * STG_S - i * STG_MS, i));
            CHECK(stg_sim_queue_push(&q, STG_NEVER, 0));
            CHECK(stg_sim_queue_pop(&q, &at, &id) && id == 999);
            stg_sim_queue_clear(&q);
            CHECK_INT(stg_sim_queue_count(&q), 0);
            CHECK(!stg_sim_queue_pop(&q, &at, &id));
            CHECK(round == 0 || counts.held == held);
            held = counts.held;
        }
        stg_sim_queue_close(&q);
        CHECK_INT(counts.held, 0);
    }
}

TEST(queue, says_so_when_there_is_no_memory_and_loses_nothing)
{
    for (size_t k = 0; k < KINDS; k++)
        for (size_t left = 0; left < 4; left++) {
            test_memory counts;
            stg_memory memory = test_memory_of(&counts);
            stg_sim_queue q;
            size_t held = 0;

            counts.left = left;
            stg_sim_queue_init(&q, kinds[k], 1000, &memory);
            for (uint32_t i = 0; i < 200000; i++) {
                stg_ns at = i % 2 == 0 ? i * STG_US : 365 * STG_DAY + i;

                if (stg_sim_queue_push(&q, at, i % 1000))
                    held++;
            }
            CHECK_INT(stg_sim_queue_count(&q), held);
            CHECK(held < 200000);
            stg_sim_queue_close(&q);
            CHECK_INT(counts.held, 0);
        }
}
