/* Dead letters that are parked anew: below live traffic and the lane's own
 * retries, under a policy that begins anew, with attempts that are counted on
 * (I13, I17). */
#include "flow/lane.h"
#include "tests/flow/world.h"

/* A lane with so many dead letters. */
static stg_world *make_world(uint64_t seed, uint64_t dead, stg_order order)
{
    stg_world *w = world_new(seed);

    world_lane(w, STEADY)->order = order;
    stg_world_set_answer(w, 0, stg_answered(404), STG_MS);
    stg_world_publish(w, 0, dead);
    world_trace_off(w);
    stg_world_start(w);
    stg_world_run(w, STG_NEVER);
    CHECK_U64(world_look(w, 0).dead, dead);
    return w;
}

/* -- pace ------------------------------------------------------------------ */

typedef struct waits {
    stg_ns longest, sum;
} waits;

/* A message every 10 ms: how long until its attempt starts. */
static waits send_live(stg_world *w, uint32_t count)
{
    waits all = {0, 0};
    uint64_t first = stg_world_sum(w).messages;
    stg_ns first_at = stg_world_now(w);

    for (uint32_t i = 0; i < count; i++) {
        stg_world_publish(w, 0, 1);
        stg_world_run(w, world_after(w, 10 * STG_MS));
    }
    stg_world_run(w, world_after(w, STG_S));
    for (uint32_t i = 0; i < count; i++) {
        const stg_world_receipt *r =
            world_receipt_of(w, 0, stg_world_position_at(w, first + i));
        stg_ns wait = r->started_at - (first_at + i * 10 * STG_MS);

        CHECK(r->processed == 1);
        all.longest = stg_ns_max(all.longest, wait);
        all.sum += wait;
    }
    return all;
}

/* I8 within a lane: who replays does not make the messages of now wait. */
TEST(replay, of_ten_thousand_does_not_make_live_traffic_wait)
{
    stg_world *w = make_world(1, 10000, STG_ORDER_NONE);
    waits without, with;

    stg_world_set_answer(w, 0, stg_ok(), 20 * STG_MS);
    without = send_live(w, 500);
    CHECK_U64(stg_world_replay(w, 0, 10000), 10000);
    CHECK_U64(world_look(w, 0).replays, 10000);
    with = send_live(w, 500);
    CHECK(world_look(w, 0).replays > 0); // still at it
    CHECK(world_look(w, 0).replays < 9500);
    CHECK(with.longest <= without.longest + 3 * STG_MS);
    CHECK(with.sum <= without.sum + 500 * STG_MS);
    stg_world_run(w, STG_NEVER);
    CHECK_U64(world_look(w, 0).replays, 0);
    CHECK_U64(world_look(w, 0).delivered, 11000);
    CHECK_U64(world_look(w, 0).dead, 0);
    world_end(w);
}

/* They do not fill up the lane: it goes on to take what comes. */
TEST(replay, does_not_count_against_parked_max)
{
    stg_world *w = world_new(2);

    world_lane(w, STEADY)->parked_max = 5;
    stg_world_set_answer(w, 0, stg_answered(404), STG_MS);
    stg_world_publish(w, 0, 100);
    stg_world_start(w);
    stg_world_run(w, STG_NEVER);
    stg_world_pause(w, 0, true);
    CHECK_U64(stg_world_replay(w, 0, 100), 100);
    stg_world_set_answer(w, 0, stg_ok(), 20 * STG_MS);
    stg_world_pause(w, 0, false);
    stg_world_publish(w, 0, 10);
    stg_world_run(w, world_after(w, 40 * STG_MS));
    CHECK_INT(world_look(w, 0).state, STG_LANE_LIVE);
    CHECK(world_look(w, 0).delivered >= 2);
    stg_world_run(w, STG_NEVER);
    CHECK(strstr(world_trace(w), "parked-max") == NULL);
    CHECK_U64(world_look(w, 0).delivered, 110);
    world_end(w);
}

/* The lane's own retries are not behind thousands of replays. */
TEST(replay, lets_a_retry_pass)
{
    stg_world *w = make_world(3, 500, STG_ORDER_NONE);
    const stg_world_receipt *r;
    uint64_t i = stg_world_sum(w).messages;

    world_script(w, 0, "503");
    stg_world_publish(w, 0, 1);
    stg_world_run(w, world_after(w, 500 * STG_MS));
    CHECK_U64(world_look(w, 0).parked, 1);
    stg_world_set_answer(w, 0, stg_ok(), 20 * STG_MS);
    CHECK_U64(stg_world_replay(w, 0, 500), 500);
    stg_world_run(w, world_after(w, 600 * STG_MS));
    CHECK(world_look(w, 0).replays > 100);
    r = world_receipt_of(w, 0, stg_world_position_at(w, i));
    CHECK_U64(r->processed, 1); // a second after it failed
    stg_world_run(w, STG_NEVER);
    world_end(w);
}

/* Somebody asked for them: where live traffic never ends they come, too. */
TEST(replay, gets_its_turns)
{
    stg_world *w = make_world(4, 50, STG_ORDER_NONE);

    stg_world_set_answer(w, 0, stg_ok(), 20 * STG_MS);
    world_lane_of(w, 0)->o.in_flight_max = 4;
    world_lane_of(w, 0)->peer->limit.max = 4;
    stg_world_publish(w, 0, 2000);
    stg_world_replay(w, 0, 50);
    stg_world_run(w, world_after(w, 8 * STG_S));
    CHECK(world_look(w, 0).lag > 0);
    CHECK_U64(world_look(w, 0).replays, 0);
    stg_world_run(w, STG_NEVER);
    world_end(w);
}

/* -- its attempts ---------------------------------------------------------- */

/* Three attempts each time, as the policy says; they are counted on. */
TEST(replay, counts_attempts_on_and_begins_the_policy_anew)
{
    stg_world *w = world_begin(5, STEADY, "503", 1);

    stg_world_run(w, world_after(w, 10 * STG_S));
    stg_world_replay(w, 0, 1);
    stg_world_run(w, world_after(w, 10 * STG_S));
    CHECK_U64(stg_world_dead_at(w, 0)->attempts, 6);
    CHECK_INT(stg_world_dead_at(w, 0)->replay, 1);
    stg_world_crash(w, 0);
    stg_world_replay(w, 0, 1);
    world_script(w, 0, "503 200");
    stg_world_run(w, STG_NEVER);
    CHECK_TRACE(world_trace(w),
                "     10 ms  0:1 #1 503  wait 1000 ms (backoff)\n"
                "   1020 ms  0:1 #2 503  wait 1000 ms (backoff)\n"
                "   2030 ms  0:1 #3 503  attempts\n"
                "  10010 ms  0:1 #4 503  wait 1000 ms (backoff)\n"
                "  11020 ms  0:1 #5 503  wait 1000 ms (backoff)\n"
                "  12030 ms  0:1 #6 503  attempts\n"
                "  20010 ms  0:1 #7 503  wait 1000 ms (backoff)\n"
                "  21020 ms  0:1 #8 200  done\n");
    world_end(w);
}

/* A budget never holds back a first attempt (I5), nor that of a replay. */
TEST(replay, begins_without_the_budget)
{
    stg_world *w =
        world_begin(6,
                    "fixed base=1s jitter=none attempts=2 deadline=none "
                    "retry=5xx budget=tokens:1:0.001/s budget-empty=wait",
                    "404 404 503 503", 4);

    stg_world_run(w, world_after(w, 5 * STG_S));
    CHECK_U64(world_look(w, 0).parked, 1); // the other one had the token
    world_script(w, 0, "200");
    CHECK_U64(stg_world_replay(w, 0, 2), 2);
    stg_world_run(w, world_after(w, STG_S));
    CHECK_U64(world_look(w, 0).delivered, 2);
    CHECK_U64(world_look(w, 0).parked, 1);
    world_free(w);
}

/* -- an ordered lane ------------------------------------------------------- */

/* They have no place in it, and need not be in memory for it to go on. */
TEST(replay, does_not_stall_an_ordered_lane)
{
    for (int order = STG_ORDER_KEY; order <= STG_ORDER_STRICT; order++) {
        stg_world *w = world_new(7);

        stg_world_options(w)->memory_max = 1 << 20;
        stg_world_set_size(w, 20000);
        world_lane(w, STEADY)->order = (stg_order)order;
        stg_world_set_answer(w, 0, stg_answered(404), STG_MS);
        stg_world_publish(w, 0, 200);
        world_trace_off(w);
        stg_world_start(w);
        stg_world_run(w, STG_NEVER);
        CHECK_U64(stg_world_replay(w, 0, 200), 200); // four times the memory
        stg_world_set_answer(w, 0, stg_ok(), 20 * STG_MS);
        stg_world_publish(w, 0, 100);
        stg_world_crash(w, STG_S);
        stg_world_run(w, STG_NEVER);
        CHECK_U64(world_look(w, 0).delivered, 300);
        world_end(w);
    }
}

/* -- the store ------------------------------------------------------------- */

/* A group and a replay cross each other: the books are right, whichever the
 * store has first, and after a crash between any two events (I17). */
TEST(replay, may_cross_a_group)
{
    for (uint64_t steps = 0; steps < 60; steps++) {
        stg_world *w = world_new(steps);

        world_lane(w, STEADY);
        world_script(w, 0, "404 404 503 404 200 404 503 200");
        stg_world_publish(w, 0, 20);
        stg_world_start(w);
        stg_world_lose_answers(w, 1);
        stg_world_steps(w, steps);
        stg_world_replay(w, 0, 2);
        stg_world_steps(w, steps % 7);
        if (steps % 2 == 1)
            stg_world_crash(w, STG_S);
        stg_world_run(w, STG_NEVER);
        world_end(w);
    }
}

/* The store takes the time of a replay from the wall clock, which may be ahead of
 * flow's: it was set forward, or the machine has slept. */
TEST(replay, starts_at_once_though_the_wall_clock_was_set_forward)
{
    stg_world *w = make_world(1, 200, STG_ORDER_NONE);
    stg_ns begun_at = stg_world_now(w);

    stg_world_set_wall_forward(w, STG_HOUR);
    stg_world_set_answer(w, 0, stg_ok(), STG_MS);
    CHECK_U64(stg_world_replay(w, 0, 200), 200);
    stg_world_run(w, STG_NEVER);
    CHECK_U64(world_look(w, 0).delivered, 200);
    CHECK(stg_world_now(w) - begun_at < 10 * STG_S);
    world_end(w);
}
