/* What cannot be connected to: a target that restarts, and one whose balancer
 * has a dead backend. */
#include "flow/state.h"

#include "tests/flow/world.h"

/* Publishes so many a second, evenly, until then. */
static void publish_until(stg_world *w, uint64_t rate, stg_ns end_at)
{
    uint64_t step = rate > 1000 ? rate / 1000 : 1;

    while (stg_world_now(w) < end_at) {
        stg_world_publish(w, 0, step);
        stg_world_run(w, world_after(w, step * STG_S / rate));
    }
}

/* -- a restart -------------------------------------------------------------- */

static const stg_ns gone_at = 3 * STG_S, back_at = 7 * STG_S;

static stg_world_answer answer_but_for_4_s(stg_world *w, uint32_t l,
                                           uint64_t position, uint64_t attempt)
{
    (void)l;
    (void)position;
    (void)attempt;
    if (stg_world_now(w) < gone_at || stg_world_now(w) >= back_at)
        return (stg_world_answer){stg_ok(), 10 * STG_MS, true};
    return (stg_world_answer){stg_failed(STG_FAULT_REFUSED), STG_MS, false};
}

/* Runs on until it has delivered one more. */
static void await_delivery(stg_world *w, stg_ns until_at)
{
    uint64_t delivered = world_look(w, 0).delivered;

    while (stg_world_now(w) < until_at &&
           world_look(w, 0).delivered == delivered)
        stg_world_run(w, world_after(w, STG_MS));
}

TEST(reach, loses_five_messages_at_most_to_a_restart)
{
    for (uint64_t seed = 0; seed < seeds(20); seed++) {
        stg_world *w = world_new(seed);

        world_lane(w, "broadcast");
        stg_world_set_target(w, 0, answer_but_for_4_s);
        stg_world_start(w);
        stg_world_run(
            w, world_after(w, stg_rng_upto(stg_world_rng(w), 50 * STG_MS)));
        publish_until(w, 20, back_at);
        CHECK_FROM(seed, world_look(w, 0).dead >= 3);
        CHECK_FROM(seed, world_look(w, 0).dead <= 5);
        await_delivery(w, back_at + STG_MIN);
        CHECK_FROM(seed, stg_world_now(w) <= back_at + 4 * STG_S);
        stg_world_run(w, STG_NEVER);
        CHECK_FROM(seed, world_look(w, 0).dead <= 5);
        world_end(w);
    }
}

/* At more than 30 a second it is known after 100 ms. */
TEST(reach, loses_a_tenth_of_a_second_to_a_restart)
{
    stg_world *w = world_new(1);

    world_lane(w, "broadcast");
    world_trace_off(w);
    stg_world_set_target(w, 0, answer_but_for_4_s);
    stg_world_start(w);
    publish_until(w, 1000, back_at);
    CHECK(world_look(w, 0).dead >= 3);
    CHECK(world_look(w, 0).dead <= 110);
    await_delivery(w, back_at + STG_MIN);
    CHECK(stg_world_now(w) <= back_at + 4 * STG_S);
    stg_world_run(w, STG_NEVER);
    world_end(w);
}

/* -- one dead backend of three --------------------------------------------- */

/* A balancer that sends each connection somewhere by chance. */
static stg_world_answer answer_of_three(stg_world *w, uint32_t l,
                                        uint64_t position, uint64_t attempt)
{
    (void)l;
    (void)position;
    (void)attempt;
    if (stg_rng_upto(stg_world_rng(w), 2) == 0)
        return (stg_world_answer){stg_failed(STG_FAULT_REFUSED), STG_MS, false};
    return (stg_world_answer){stg_ok(), 2 * STG_MS, true};
}

/* What is settled of so many a second after so long, in thousandths. */
static uint64_t settled_of_three(uint64_t seed, uint64_t rate, stg_ns how_long)
{
    stg_world *w = world_new(seed);
    stg_lane_view v;
    uint64_t share;

    world_lane(w, "broadcast");
    world_trace_off(w);
    stg_world_set_target(w, 0, answer_of_three);
    stg_world_start(w);
    publish_until(w, rate, world_after(w, how_long));
    v = world_look(w, 0);
    share = 1000 * (v.delivered + v.dead) / stg_world_sum(w).messages;
    world_free(w);
    return share;
}

/* At few a second three in a row are soon there by chance: the breaker opens
 * for a while, and then the lane catches up. At many there are connects all the
 * time; and what is refused is no reason for fewer attempts at once. */
TEST(reach, loses_a_tenth_of_its_rate_at_most_to_a_dead_backend)
{
    static const struct {
        uint64_t rate;
        stg_ns how_long;
    } rows[] = {{20, 2 * STG_MIN},  {100, STG_MIN},    {300, 20 * STG_S},
                {1000, 10 * STG_S}, {3000, 4 * STG_S}, {10000, 1500 * STG_MS}};
    enum { SEEDS = 5 };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint64_t sum = 0;

        for (uint64_t seed = 0; seed < SEEDS; seed++)
            sum += settled_of_three(seed, rows[i].rate, rows[i].how_long);
        if (sum < SEEDS * UINT64_C(900))
            harness_fail(__FILE__, __LINE__, "%ju/s: %ju thousandths",
                         (uintmax_t)rows[i].rate, (uintmax_t)(sum / SEEDS));
    }
}
