/* I27 How many attempts at once a lane has: chance costs it little, and a
 * target that is overloaded is brought to what it bears, and held there. */
#include "tests/flow/world.h"

/* Faults are tried again soon, and the breaker is not what is tested. */
#define PATIENT                                               \
    "fixed base=200ms jitter=none attempts=20 deadline=none " \
    "attempt-timeout=10s retry=5xx"

enum { BEST = 50 };

static const stg_ns usual = 100 * STG_MS;

/* -- chance ---------------------------------------------------------------- */

static stg_world_answer answer(stg_world *w, uint64_t percent)
{
    if (stg_rng_upto(stg_world_rng(w), 99) < percent)
        return (stg_world_answer){stg_answered(503), usual, false};
    return (stg_world_answer){stg_ok(), usual, true};
}

static stg_world_answer by_chance_0(stg_world *w, uint32_t l, uint64_t position,
                                    uint64_t attempt)
{
    (void)l;
    (void)position;
    (void)attempt;
    return answer(w, 0);
}

static stg_world_answer by_chance_1(stg_world *w, uint32_t l, uint64_t position,
                                    uint64_t attempt)
{
    (void)l;
    (void)position;
    (void)attempt;
    return answer(w, 1);
}

static stg_world_answer by_chance_5(stg_world *w, uint32_t l, uint64_t position,
                                    uint64_t attempt)
{
    (void)l;
    (void)position;
    (void)attempt;
    return answer(w, 5);
}

static stg_world *begin(uint64_t seed, stg_world_target *leaf,
                        uint32_t in_flight_max)
{
    stg_world *w = world_new(seed);

    world_lane(w, PATIENT)->in_flight_max = in_flight_max;
    world_trace_off(w);
    stg_world_set_target(w, 0, leaf);
    stg_world_publish(w, 0, 12000);
    stg_world_start(w);
    return w;
}

/* What is delivered in 15 s. */
static uint64_t deliver(uint64_t seed, stg_world_target *leaf)
{
    stg_world *w = begin(seed, leaf, 64);
    uint64_t delivered;

    stg_world_run(w, world_after(w, 15 * STG_S));
    delivered = world_look(w, 0).delivered;
    world_free(w);
    return delivered;
}

/* I27 A share q costs q / (1 - q) more attempts, and a tenth besides: of the rate,
 * which is a mean. In one run of 25 a fall without cause, from which the limit
 * takes seconds to come back, costs more of these 15. */
TEST(load, chance_costs_the_retries_and_a_tenth)
{
    uint64_t all = 0, all_1 = 0, all_5 = 0;

    for (uint64_t seed = 0; seed < seeds(3); seed++) {
        uint64_t without = deliver(seed, by_chance_0);
        uint64_t with_1 = deliver(seed, by_chance_1);
        uint64_t with_5 = deliver(seed, by_chance_5);

        CHECK_FROM(seed, without > 8000);
        CHECK_FROM(seed, with_1 * 1100 > without * 990);
        CHECK_FROM(seed, with_5 * 2 > without);
        all += without;
        all_1 += with_1;
        all_5 += with_5;
    }
    CHECK(all_1 * 1100 > all * 990);
    CHECK(all_5 * 1100 > all * 950);
}

/* -- load ------------------------------------------------------------------ */

/* Beyond 50 at once they wait for each other. */
static stg_world_answer slow_beyond(stg_world *w, uint32_t l, uint64_t position,
                                    uint64_t attempt)
{
    uint64_t in_flight = world_look(w, l).in_flight;

    (void)position;
    (void)attempt;
    return (stg_world_answer){
        stg_ok(), in_flight > BEST ? usual * in_flight / BEST : usual, true};
}

/* Beyond 50 at once they are sent away. */
static stg_world_answer refuse_beyond(stg_world *w, uint32_t l,
                                      uint64_t position, uint64_t attempt)
{
    (void)position;
    (void)attempt;
    if (world_look(w, l).in_flight > BEST)
        return (stg_world_answer){stg_answered(503), 20 * STG_MS, false};
    return (stg_world_answer){stg_ok(), usual, true};
}

static void check_held(uint64_t seed, stg_world_target *leaf,
                       uint32_t in_flight_max)
{
    stg_world *w = begin(seed, leaf, in_flight_max);

    stg_world_run(w, world_after(w, 5 * STG_S));
    for (int i = 0; i < 60; i++) {
        uint32_t limit = world_look(w, 0).limit;

        if (limit < 40 || limit > 60)
            harness_fail(__FILE__, __LINE__, "seed %ju: %u at %ju ms",
                         (uintmax_t)seed, limit,
                         (uintmax_t)(stg_world_now(w) / STG_MS));
        stg_world_run(w, world_after(w, 200 * STG_MS));
    }
    CHECK_FROM(seed, world_look(w, 0).delivered > 6500);
    world_free(w);
}

TEST(load, holds_what_is_slow_beyond_fifty_at_forty_to_sixty)
{
    for (uint64_t seed = 0; seed < seeds(2); seed++) {
        check_held(seed, slow_beyond, 64);
        check_held(seed, slow_beyond, 1000);
    }
}

TEST(load, holds_what_refuses_beyond_fifty_at_forty_to_sixty)
{
    for (uint64_t seed = 0; seed < seeds(2); seed++) {
        check_held(seed, refuse_beyond, 64);
        check_held(seed, refuse_beyond, 1000);
    }
}
