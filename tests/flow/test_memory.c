/* I6: the bytes held stay within the limit, which the world checks after each
 * event; and none is enough for the hub to go on. */
#include "tests/flow/world.h"

/* Ten times the limit goes through. */
TEST(memory, is_enough_for_more_messages_than_it_holds)
{
    stg_world *w = world_new(1);

    stg_world_options(w)->memory_max = 1 << 20;
    stg_world_set_size(w, 65536); // the largest
    for (uint32_t l = 0; l < 5; l++)
        world_lane(w, STEADY);
    stg_world_publish(w, 0, 160);
    stg_world_start(w);
    stg_world_run(w, STG_NEVER);
    for (uint32_t l = 0; l < 5; l++)
        CHECK_FROM(l, world_look(w, l).delivered == 160);
    world_end(w);
}

/* What all lanes have taken and ended is let go: nothing is held when all is
 * quiet. */
TEST(memory, is_let_go_when_all_lanes_have_passed)
{
    stg_world *w = world_new(3);

    stg_world_set_size(w, 65536); // the largest
    for (uint32_t l = 0; l < 3; l++)
        world_lane(w, STEADY);
    stg_world_publish(w, 0, 100);
    stg_world_start(w);
    stg_world_run(w, world_after(w, STG_MIN));
    CHECK_U64(world_look(w, 2).delivered, 100);
    CHECK(world_look_all(w).held <= 4 << 20); // the room of the next read
    world_end(w);
}

static stg_world_answer hang(stg_world *w, uint32_t l, uint64_t position,
                             uint64_t attempt)
{
    (void)w;
    (void)l;
    (void)position;
    (void)attempt;
    return (stg_world_answer){stg_ok(), STG_NEVER, false};
}

/* I8 Lanes that hang pin what is in flight: their share, and no more. */
TEST(memory, is_not_used_up_by_lanes_that_hang)
{
    stg_world *w = world_new(2);

    stg_world_options(w)->memory_max = 1 << 20;
    stg_world_set_size(w, 20000);
    world_lane(w, STEADY);
    for (uint32_t l = 1; l < 10; l++) {
        world_lane(w,
                   "fixed base=1s jitter=none attempts=3 deadline=none "
                   "attempt-timeout=1h retry=timeout");
        stg_world_set_target(w, l, hang);
    }
    stg_world_publish(w, 0, 500);
    stg_world_start(w);
    stg_world_run(w, world_after(w, 30 * STG_S));
    CHECK_U64(world_look(w, 0).delivered, 500);
    world_free(w);
}

/* Nor by one that was quick, and has many under way when it begins to hang. */
TEST(memory, is_not_used_up_by_a_quick_lane_that_hangs)
{
    stg_world *w = world_new(3);

    stg_world_options(w)->memory_max = 1 << 20;
    stg_world_set_size(w, 30000);
    world_lane(w, STEADY);
    world_lane(w,
               "fixed base=1s jitter=none attempts=3 deadline=none "
               "attempt-timeout=1h retry=timeout");
    stg_world_publish(w, 0, 500);
    stg_world_start(w);
    stg_world_run(w, world_after(w, 100 * STG_MS));
    stg_world_set_target(w, 1, hang);
    stg_world_run(w, world_after(w, STG_MIN));
    CHECK_U64(world_look(w, 0).delivered, 500);
    world_free(w);
}

/* What is in flight counts, whether it was parked or not: here targets hang that may
 * have any number of attempts, after they have answered `first`. */
static void hang_after(const char *first, uint32_t hanging)
{
    stg_world *w = world_new(5);

    stg_world_options(w)->memory_max = 1 << 20;
    stg_world_set_size(w, 30000);
    world_lane(w, STEADY);
    for (uint32_t l = 1; l <= hanging; l++) {
        stg_lane_options *o =
            world_lane(w,
                       "fixed base=1s jitter=none attempts=3 deadline=none "
                       "attempt-timeout=1h retry=timeout,503");

        o->in_flight_max = 1000;
        o->is_limit_fixed = true;
        world_script(w, l, first);
    }
    stg_world_publish(w, 0, 100);
    stg_world_start(w);
    stg_world_run(w, world_after(w, 500 * STG_MS));
    for (uint32_t l = 1; l <= hanging; l++)
        stg_world_set_target(w, l, hang);
    stg_world_publish(w, 0, 400);
    stg_world_run(w, world_after(w, STG_MIN));
    CHECK_U64(world_look(w, 0).delivered, 500);
    world_free(w);
}

TEST(memory, is_not_used_up_by_many_attempts_that_hang)
{
    hang_after("200", 1);
    hang_after("200", 3);
}

TEST(memory, is_not_used_up_by_retries_that_hang)
{
    hang_after("503", 1);
    hang_after("503", 3);
}

/* Rows of many lanes compete for it. */
TEST(memory, is_shared_by_the_rows_of_many_lanes)
{
    stg_world *w = world_new(4);

    world_trace_off(w);
    stg_world_options(w)->memory_max = 1 << 20;
    stg_world_set_size(w, 30000);
    for (uint32_t l = 0; l < 12; l++) {
        world_lane(w,
                   "fixed base=5s jitter=full attempts=4 deadline=none "
                   "retry=5xx");
        world_script(w, l, "503 503 503 200");
    }
    stg_world_publish(w, 0, 60);
    stg_world_start(w);
    stg_world_run(w, STG_NEVER);
    world_end(w);
}

/* Of ordered lanes, too, which need theirs to go on. */
TEST(memory, is_shared_by_ordered_lanes)
{
    stg_world *w = world_new(5);

    world_trace_off(w);
    stg_world_set_keys(w, 7);
    stg_world_options(w)->memory_max = 1 << 20;
    stg_world_set_size(w, 30000);
    for (uint32_t l = 0; l < 12; l++) {
        stg_lane_options *o =
            world_lane(w,
                       "fixed base=5s jitter=full attempts=4 deadline=none "
                       "retry=5xx");

        o->order = l % 2 == 0 ? STG_ORDER_KEY : STG_ORDER_STRICT;
        world_script(w, l, "503 503 503 200");
    }
    stg_world_publish(w, 0, 60);
    stg_world_start(w);
    stg_world_run(w, STG_NEVER);
    stg_world_check_ends(w);
    stg_world_crash(w, 0);
    stg_world_run(w, STG_NEVER);
    world_end(w);
}

/* -- when there is none ---------------------------------------------------- */

static stg_world *make_busy_world(uint64_t seed)
{
    stg_world *w = world_new(seed);

    world_trace_off(w);
    stg_world_set_keys(w, 5);
    stg_world_set_partitions(w, 2);
    stg_world_options(w)->memory_max = 1 << 20;
    stg_world_set_size(w, 3000);
    world_lane(w, STEADY);
    world_lane(w, STEADY)->order = STG_ORDER_KEY;
    world_lane(w,
               "fixed base=100ms jitter=none attempts=3 deadline=none "
               "attempt-timeout=1s retry=any breaker=3:1s-4s")
        ->shed_after = 500 * STG_MS;
    world_script(w, 0, "503 200 503 503 404 200");
    world_script(w, 1, "200 503 200 404");
    world_script(w, 2, "refused refused refused refused refused 200");
    stg_world_publish(w, 0, 150);
    stg_world_publish(w, 1, 150);
    return w;
}

/* One allocation fails, whichever: nothing is lost, and nothing stalls. */
TEST(memory, may_be_refused_once_anywhere)
{
    for (uint64_t n = 1; n < 40 + seeds(160); n++) {
        stg_world *w = make_busy_world(n % 7);

        stg_world_start(w);
        stg_world_fail_allocation_at(w, n * 3);
        stg_world_run(w, STG_NEVER);
        stg_world_check_ends(w);
        stg_world_fail_allocation_at(
            w, 0); // it may not have come to that: not at the start
        stg_world_crash(w, 0);
        stg_world_fail_allocation_at(w, n);
        stg_world_run(w, STG_NEVER);
        world_end(w);
    }
}

/* Many fail; when there is memory again everything pending ends. */
TEST(memory, may_be_refused_again_and_again)
{
    for (uint64_t seed = 0; seed < seeds(60); seed++) {
        stg_world *w = make_busy_world(seed);

        stg_world_start(w);
        stg_world_fail_allocations(w, 1 + (uint32_t)(seed % 9));
        stg_world_steps(w, 400);
        stg_world_fail_allocations(w, 0);
        stg_world_run(w, STG_NEVER);
        world_end(w);
    }
}

/* Without any the hub waits; it does not spin. */
TEST(memory, is_asked_for_now_and_then_when_there_is_none)
{
    stg_world *w = make_busy_world(1);
    uint64_t reads;

    stg_world_start(w);
    stg_world_steps(w, 100);
    stg_world_fail_allocations(w, 1);
    reads = stg_world_sum(w).reads;
    stg_world_run(w, world_after(w, STG_S));
    CHECK(stg_world_sum(w).reads < reads + 100);
    stg_world_fail_allocations(w, 0);
    stg_world_run(w, STG_NEVER);
    world_end(w);
}

/* Rows of two lanes are due, wait for the rate limit, and do not fit together:
 * they do not push each other out all the while. */
TEST(memory, does_not_fetch_in_circles)
{
    stg_world *w = world_new(30);
    stg_lane_options *o[2];
    stg_policy slow;

    stg_world_options(w)->memory_max = 1 << 20;
    stg_world_set_size(w, 60000);
    for (uint32_t l = 0; l < 2; l++) {
        o[l] = world_lane(w,
                          "fixed base=10s jitter=none attempts=3 "
                          "deadline=none attempt-timeout=2s retry=5xx");
        world_script(w, l, "503");
    }
    stg_world_publish(w, 0, 20);
    world_trace_off(w);
    stg_world_start(w);
    stg_world_run(w, world_after(w, 5 * STG_S));
    CHECK_U64(stg_world_sum(w).parked, 40);
    stg_world_stop(w);
    stg_world_set_fetch_delay(w, 0);
    for (uint32_t l = 0; l < 2; l++) {
        world_script(w, l, "200");
        slow = *o[l]->policy;
        slow.rate = 100;
        o[l]->policy = &slow;
    }
    stg_world_restart(w, 0);
    stg_world_run(w, STG_NEVER);
    CHECK(stg_world_sum(w).fetches < 10000); // ten a second
    world_end(w);
}

/* What is paused sends nothing, and takes no memory from those that do. */
TEST(memory, is_not_for_the_rows_of_a_paused_lane)
{
    stg_world *w = world_begin(31, STEADY, "503", 20);

    stg_world_run(w, world_after(w, 500 * STG_MS));
    stg_world_stop(w);
    stg_world_restart(w, 0);
    stg_world_pause(w, 0, true);
    stg_world_run(w, world_after(w, STG_MIN));
    CHECK(stg_world_sum(w).fetches <= 1);
    world_script(w, 0, "200");
    stg_world_pause(w, 0, false);
    stg_world_run(w, STG_NEVER);
    CHECK_U64(world_look(w, 0).delivered, 20);
    world_end(w);
}
