/* Attempts at once, over all lanes: every lane owns one, the rest is shared
 * (I8). */
#include "tests/flow/world.h"

#include <stdlib.h>

#define PATIENT                                             \
    "fixed base=1s jitter=none attempts=100 deadline=none " \
    "attempt-timeout=10s retry=any"

static stg_world_answer answer_in_50(stg_world *w, uint32_t l,
                                     uint64_t position, uint64_t attempt)
{
    (void)w;
    (void)l;
    (void)position;
    (void)attempt;
    return (stg_world_answer){stg_ok(), 50 * STG_MS, true};
}

TEST(slots, every_lane_has_one)
{
    stg_world *w = world_new(1);

    stg_world_options(w)->in_flight_max = 1;
    for (uint32_t l = 0; l < 50; l++) {
        world_lane(w, PATIENT);
        stg_world_set_target(w, l, answer_in_50);
    }
    stg_world_publish(w, 0, 20);
    stg_world_start(w);
    stg_world_run(w, world_after(w, 20 * STG_MS));
    CHECK_U64(world_look_all(w).in_flight, 50);
    stg_world_run(w, world_after(w, 50 * STG_MS));
    CHECK_U64(world_look_all(w).in_flight, 51); // and the shared one
    stg_world_run(w, STG_NEVER);
    world_end(w);
}

TEST(slots, of_a_fixed_limit_are_there_from_the_first)
{
    stg_world *w = world_new(3);
    stg_lane_options *o = world_lane(w, PATIENT);

    o->is_limit_fixed = true;
    o->in_flight_max = 300;
    stg_world_set_target(w, 0, answer_in_50);
    stg_world_publish(w, 0, 1000);
    stg_world_start(w);
    stg_world_run(w, world_after(w, 20 * STG_MS));
    CHECK_U64(world_look_all(w).in_flight, 300);
    stg_world_run(w, STG_NEVER);
    world_end(w);
}

TEST(slots, are_shared_by_those_who_want_more)
{
    stg_world *w = world_new(2);

    stg_world_options(w)->in_flight_max = 10;
    for (uint32_t l = 0; l < 4; l++) {
        world_lane(w, PATIENT);
        stg_world_set_target(w, l, answer_in_50);
    }
    stg_world_publish(w, 0, 500);
    stg_world_start(w);
    stg_world_run(w, world_after(w, STG_S));
    CHECK_U64(world_look_all(w).in_flight, 14);
    for (uint32_t l = 0; l < 4; l++) // they take turns
        CHECK_FROM(l, world_look(w, l).delivered > 30);
    stg_world_run(w, STG_NEVER);
    world_end(w);
}

/* It tries, and for a timeout's length nothing succeeded. */
TEST(slots, a_lane_without_success_falls_to_its_own)
{
    stg_world *w = world_new(3);

    world_lane(w, PATIENT)->in_flight_max = 32;
    stg_world_set_target(w, 0, answer_in_50);
    stg_world_publish(w, 0, 5000);
    stg_world_start(w);
    stg_world_run(w, world_after(w, 2 * STG_S));
    CHECK_U64(world_look(w, 0).in_flight, 32);
    world_script(w, 0, "hang");
    stg_world_run(w, world_after(w, 5 * STG_S));
    CHECK_U64(world_look(w, 0).in_flight, 32);
    stg_world_run(w, world_after(w, 8 * STG_S)); // all timed out
    CHECK_U64(world_look(w, 0).in_flight, 1);
    stg_world_set_target(w, 0, answer_in_50);
    stg_world_run(w, world_after(w, 12 * STG_S));
    CHECK(world_look(w, 0).in_flight > 1);
    world_free(w);
}

/* -- I8: what is wrong with the others does not matter --------------------- */

static stg_world_answer misbehave(stg_world *w, uint32_t l, uint64_t position,
                                  uint64_t attempt)
{
    (void)w;
    (void)position;
    (void)attempt;
    switch (l % 4) {
    case 0:
        return (stg_world_answer){stg_ok(), STG_NEVER, false};
    case 1:
        return (stg_world_answer){stg_failed(STG_FAULT_REFUSED), STG_MS, false};
    case 2:
        return (stg_world_answer){stg_answered(503), 5 * STG_S, false};
    default:
        return (stg_world_answer){stg_ok(), 8 * STG_S, true};
    }
}

/* How many messages lane 0 has delivered after each tenth of a second. */
static void run_among(uint32_t others, stg_world_target *leaf,
                      uint64_t *delivered, uint32_t count)
{
    stg_world *w = world_new(4);

    world_trace_off(w);
    stg_world_options(w)->in_flight_max = 64;
    world_lane(w, PATIENT)->in_flight_max = 16;
    stg_world_set_target(w, 0, answer_in_50);
    for (uint32_t l = 1; l <= others; l++) {
        world_lane(w,
                   "fixed base=1s jitter=none attempts=3 deadline=none "
                   "attempt-timeout=10s retry=any breaker=20:30s-10m");
        stg_world_set_target(w, l, leaf);
    }
    stg_world_start(w);
    for (uint32_t i = 0; i < count; i++) {
        stg_world_publish(w, 0, 10);
        stg_world_run(w, STG_S + (i + 1) * 100 * STG_MS);
        delivered[i] = world_look(w, 0).delivered;
    }
    world_free(w);
}

TEST(slots, two_hundred_lanes_in_trouble_do_not_slow_a_healthy_one)
{
    enum { COUNT = 150 };
    uint64_t alone[COUNT], among[COUNT];

    run_among(0, NULL, alone, COUNT);
    run_among(200, misbehave, among, COUNT);
    for (uint32_t i = 0; i < COUNT; i++) {
        uint64_t most = alone[i] > among[i] ? alone[i] - among[i] : 0;

        // No more than what 2 ms of reading make: a batch.
        CHECK_FROM(i, most <= 10);
    }
    CHECK(alone[COUNT - 1] > 10 * (COUNT - 2));
}
