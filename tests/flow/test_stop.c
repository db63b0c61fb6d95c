/* The end of an incarnation (I14): no start from now on, attempts have the
 * drain time, the last checkpoint is durable. */
#include "tests/flow/world.h"

#define PATIENT                                           \
    "fixed base=1s jitter=none attempts=3 deadline=none " \
    "attempt-timeout=20s retry=5xx,429,timeout,reset"

static stg_world_answer answer_in_2s(stg_world *w, uint32_t l,
                                     uint64_t position, uint64_t attempt)
{
    (void)w;
    (void)l;
    (void)position;
    (void)attempt;
    return (stg_world_answer){stg_ok(), 2 * STG_S, true};
}

TEST(stop, is_clean_when_nothing_is_under_way)
{
    stg_world *w = world_new(1);

    world_lane(w, PATIENT);
    stg_world_publish(w, 0, 100);
    stg_world_start(w);
    stg_world_run(w, STG_NEVER);
    CHECK(stg_world_stop(w));
    CHECK_U64(stg_world_committed(w, 0), stg_world_position_at(w, 99) + 1);
    world_end(w);
}

/* Attempts end in peace; nothing new starts. */
TEST(stop, lets_attempts_end)
{
    stg_world *w = world_new(2);
    uint64_t starts;

    world_lane(w, PATIENT);
    stg_world_set_target(w, 0, answer_in_2s);
    stg_world_publish(w, 0, 100);
    stg_world_start(w);
    stg_world_run(w, world_after(w, 7 * STG_S));
    starts = stg_world_sum_lane(w, 0).starts;
    CHECK_U64(world_look(w, 0).in_flight, 8);
    CHECK(stg_world_stop(w));
    CHECK_U64(stg_world_sum_lane(w, 0).starts, starts);
    CHECK(stg_world_sum(w).is_stopped);
    CHECK_U64(stg_world_now(w), STG_S + 8 * STG_S + 10 * STG_MS);
    stg_world_restart(w, 0);
    stg_world_run(w, STG_NEVER);
    for (uint64_t i = 0; i < 100; i++) // I16 exactly one
        CHECK_U64(
            world_receipt_of(w, 0, stg_world_position_at(w, i))->processed, 1);
    world_end(w);
}

/* What has not been answered then is cut: it may have arrived, as after a
 * timeout. */
TEST(stop, cuts_what_has_not_ended_in_the_drain_time)
{
    stg_world *w = world_new(1);

    stg_world_options(w)->drain = 3 * STG_S;
    world_lane(w, PATIENT);
    world_script(w, 0, "hang 200");
    stg_world_publish(w, 0, 1);
    stg_world_start(w);
    stg_world_run(w, world_after(w, STG_S));
    CHECK(!stg_world_stop(w));
    CHECK_TRACE(world_trace(w),
                "   4000 ms  0:1 #1 cancelled  wait 1000 ms (backoff)\n");
    CHECK_U64(stg_world_sum(w).parked, 1);
    stg_world_restart(w, 0);
    stg_world_run(w, STG_NEVER);
    CHECK_U64(world_look(w, 0).delivered, 1);
    world_end(w);
}

TEST(stop, a_cut_attempt_whose_policy_knows_no_timeout_is_dead)
{
    stg_world *w = world_new(1);

    stg_world_options(w)->drain = 0;
    world_lane(w, "fixed base=1s attempts=3 deadline=none retry=5xx");
    world_script(w, 0, "hang");
    stg_world_publish(w, 0, 1);
    stg_world_start(w);
    stg_world_run(w, world_after(w, STG_S));
    CHECK(!stg_world_stop(w));
    CHECK_U64(stg_world_sum(w).dead, 1);
    CHECK_U64(stg_world_dead_at(w, 0)->outcome.fault, STG_FAULT_TIMEOUT);
    world_free(w);
}

/* The last failures are parked, durably, before it ends. */
TEST(stop, stores_what_fails_while_it_drains)
{
    stg_world *w = world_new(4);

    world_lane(w, PATIENT);
    stg_world_set_store_delay(w, STG_S);
    world_script(w, 0, "200 503");
    stg_world_publish(w, 0, 10);
    stg_world_start(w);
    stg_world_run(w, world_after(w, 15 * STG_MS));
    CHECK(stg_world_stop(w));
    CHECK_U64(stg_world_sum(w).parked, 2);
    world_script(w, 0, "200");
    stg_world_restart(w, 0);
    stg_world_run(w, STG_NEVER);
    CHECK_U64(world_look(w, 0).delivered, 10);
    world_end(w);
}

/* I7, I14 Nothing starts after the call, whatever is due. */
TEST(stop, starts_and_reads_nothing)
{
    stg_world *w = world_new(5);
    uint64_t starts, reads;

    world_lane(w, PATIENT);
    world_script(w, 0, "503");
    stg_world_publish(w, 0, 100);
    world_lane(w, PATIENT);
    world_script(w, 1, "hang");
    stg_world_start(w);
    stg_world_run(w, world_after(w, 900 * STG_MS));
    starts = stg_world_sum_lane(w, 0).starts;
    reads = stg_world_sum(w).reads;
    stg_world_publish(w, 0, 100);
    stg_world_stop(w);
    CHECK_U64(stg_world_sum_lane(w, 0).starts, starts);
    CHECK_U64(stg_world_sum(w).reads, reads);
    world_free(w);
}

/* Twice is once. */
TEST(stop, may_be_asked_for_twice)
{
    stg_world *w = world_new(6);

    world_lane(w, PATIENT);
    stg_world_publish(w, 0, 10);
    stg_world_start(w);
    stg_world_run(w, STG_NEVER);
    stg_flow_stop(stg_world_flow(w), stg_world_now(w));
    CHECK(stg_world_stop(w));
    world_free(w);
}

/* With a group under way, unknown answers and rows that have no room yet. */
TEST(stop, ends_at_any_moment)
{
    for (uint64_t steps = 0; steps < 200; steps += 3) {
        stg_world *w = world_new(steps);

        world_trace_off(w);
        stg_world_set_partitions(w, 2);
        stg_world_options(w)->drain = 100 * STG_MS;
        world_lane(w, PATIENT);
        world_lane(w, PATIENT);
        world_script(w, 0, "503 200 404 200 hang 200 refused");
        stg_world_publish(w, 0, 60);
        stg_world_publish(w, 1, 60);
        stg_world_lose_answers(w, (uint32_t)steps % 3);
        stg_world_start(w);
        stg_world_steps(w, steps);
        stg_world_stop(w);
        stg_world_restart(w, 0);
        world_script(w, 0, "200");
        stg_world_run(w, STG_NEVER);
        world_end(w);
    }
}

static stg_world_answer answer_unsent(stg_world *w, uint32_t l,
                                      uint64_t position, uint64_t attempt)
{
    (void)w;
    (void)l;
    (void)position;
    (void)attempt;
    return (stg_world_answer){
        {.fault = STG_FAULT_RESET, .unsent = true}, STG_NEVER, false};
}

/* I29: what waits for a file of ours has not been sent. It is put back, and what
 * it took of the rate is there again. */
TEST(stop, does_not_count_what_was_never_sent)
{
    stg_world *w = world_new(9);

    world_lane(w, STEADY " rate=0.001/s");
    stg_world_set_target(w, 0, answer_unsent);
    stg_world_publish(w, 0, 1);
    stg_world_start(w);
    // Its time is up twice, and the one place of 1000 s is not used up.
    stg_world_run(w, world_after(w, 5 * STG_S));
    CHECK(stg_world_sum_lane(w, 0).starts > 2);
    stg_world_stop(w);
    CHECK_U64(stg_world_sum(w).parked, 0);
    stg_world_restart(w, STG_S);
    CHECK_U64(world_look(w, 0).parked, 0);
    stg_world_set_answer(w, 0, stg_ok(), STG_MS);
    stg_world_run(w, STG_NEVER);
    CHECK_U64(world_look(w, 0).delivered, 1);
    world_end(w);
}

/* What is with the store when the drain time is over is not cut. */
TEST(stop, waits_for_what_is_with_the_store)
{
    for (uint32_t hanging = 0; hanging < 2; hanging++) {
        stg_world *w = world_new(9);

        world_lane(w, STEADY);
        world_lane(w,
                   "fixed base=1s jitter=none attempts=3 deadline=none "
                   "attempt-timeout=1h retry=timeout");
        world_script(w, 0, "503 200");
        if (hanging > 0)
            world_script(w, 1, "hang 200");
        stg_world_publish(w, 0, 1);
        stg_world_start(w);
        stg_world_run(w, world_after(w, 9 * STG_MS));
        stg_world_set_store_delay(w, 15 * STG_S);
        stg_world_run(w, world_after(w, 10 * STG_MS));
        CHECK(stg_world_stop(w) == (hanging == 0));
        CHECK_U64(stg_world_sum(w).parked, 1 + hanging);
        stg_world_set_store_delay(w, 0);
        stg_world_restart(w, STG_S);
        stg_world_run(w, STG_NEVER);
        world_end(w);
    }
}
