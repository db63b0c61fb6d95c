/* The end of an incarnation (I14): no start from now on, attempts have the
 * drain time, the last checkpoint is durable. */
#include "tests/flow/world.h"

#define PATIENT                                           \
    "fixed base=1s jitter=none attempts=3 deadline=none " \
    "attempt-timeout=20s retry=5xx,429,timeout,reset"

static world_answer answer_in_2s(world *w, uint32_t l, uint64_t position,
                                 uint64_t attempt)
{
    (void)w;
    (void)l;
    (void)position;
    (void)attempt;
    return (world_answer){stg_ok(), 2 * STG_S, true};
}

TEST(stop, is_clean_when_nothing_is_under_way)
{
    world *w = world_new(1);

    world_lane(w, PATIENT);
    world_publish(w, 100);
    world_start(w);
    world_run(w, STG_NEVER);
    CHECK(world_stop(w));
    CHECK_U64(world_committed(w, 0), world_position(w, 99) + 1);
    world_end(w, 1);
}

/* Attempts end in peace; nothing new starts. */
TEST(stop, lets_attempts_end)
{
    world *w = world_new(2);
    uint64_t starts;

    world_lane(w, PATIENT);
    world_leaf_is(w, 0, answer_in_2s);
    world_publish(w, 100);
    world_start(w);
    world_run(w, world_after(w, 7 * STG_S));
    starts = world_starts(w, 0);
    CHECK_U64(world_look(w, 0).in_flight, 8);
    CHECK(world_stop(w));
    CHECK_U64(world_starts(w, 0), starts);
    CHECK(world_is_stopped(w));
    CHECK_U64(world_now(w), STG_S + 8 * STG_S + 10 * STG_MS);
    world_restart(w, 0);
    world_run(w, STG_NEVER);
    for (uint64_t i = 0; i < 100; i++) // I16 exactly one
        CHECK_U64(world_receipt_of(w, 0, world_position(w, i))->processed, 1);
    world_end(w, 2);
}

/* What has not been answered then is cut: it may have arrived, as after a
 * timeout. */
TEST(stop, cuts_what_has_not_ended_in_the_drain_time)
{
    world *w = world_new(1);

    world_options(w)->drain = 3 * STG_S;
    world_lane(w, PATIENT);
    world_script(w, 0, "hang 200");
    world_publish(w, 1);
    world_start(w);
    world_run(w, world_after(w, STG_S));
    CHECK(!world_stop(w));
    CHECK_TRACE(world_trace(w),
                "   4000 ms  0:1 #1 cancelled  wait 1000 ms (backoff)\n");
    CHECK_U64(world_parked(w), 1);
    world_restart(w, 0);
    world_run(w, STG_NEVER);
    CHECK_U64(world_look(w, 0).delivered, 1);
    world_end(w, 1);
}

TEST(stop, a_cut_attempt_whose_policy_knows_no_timeout_is_dead)
{
    world *w = world_new(1);

    world_options(w)->drain = 0;
    world_lane(w, "fixed base=1s attempts=3 deadline=none retry=5xx");
    world_script(w, 0, "hang");
    world_publish(w, 1);
    world_start(w);
    world_run(w, world_after(w, STG_S));
    CHECK(!world_stop(w));
    CHECK_U64(world_dead_count(w), 1);
    CHECK_U64(world_dead_at(w, 0)->outcome.fault, STG_FAULT_TIMEOUT);
    world_free(w);
}

/* The last failures are parked, durably, before it ends. */
TEST(stop, stores_what_fails_while_it_drains)
{
    world *w = world_new(4);

    world_lane(w, PATIENT);
    world_store_delay(w, STG_S);
    world_script(w, 0, "200 503");
    world_publish(w, 10);
    world_start(w);
    world_run(w, world_after(w, 15 * STG_MS));
    CHECK(world_stop(w));
    CHECK_U64(world_parked(w), 2);
    world_script(w, 0, "200");
    world_restart(w, 0);
    world_run(w, STG_NEVER);
    CHECK_U64(world_look(w, 0).delivered, 10);
    world_end(w, 4);
}

/* I7, I14 Nothing starts after the call, whatever is due. */
TEST(stop, starts_and_reads_nothing)
{
    world *w = world_new(5);
    uint64_t starts, reads;

    world_lane(w, PATIENT);
    world_script(w, 0, "503");
    world_publish(w, 100);
    world_lane(w, PATIENT);
    world_script(w, 1, "hang");
    world_start(w);
    world_run(w, world_after(w, 900 * STG_MS));
    starts = world_starts(w, 0);
    reads = world_reads(w);
    world_publish(w, 100);
    world_stop(w);
    CHECK_U64(world_starts(w, 0), starts);
    CHECK_U64(world_reads(w), reads);
    world_free(w);
}

/* Twice is once. */
TEST(stop, may_be_asked_for_twice)
{
    world *w = world_new(6);

    world_lane(w, PATIENT);
    world_publish(w, 10);
    world_start(w);
    world_run(w, STG_NEVER);
    stg_flow_stop(world_flow(w), world_now(w));
    CHECK(world_stop(w));
    world_free(w);
}

/* With a group under way, unknown answers and rows that have no room yet. */
TEST(stop, ends_at_any_moment)
{
    for (uint64_t steps = 0; steps < 200; steps += 3) {
        world *w = world_new(steps);

        world_trace_off(w);
        world_partitions(w, 2);
        world_options(w)->drain = 100 * STG_MS;
        world_lane(w, PATIENT);
        world_lane(w, PATIENT);
        world_script(w, 0, "503 200 404 200 hang 200 refused");
        world_publish(w, 60);
        world_publish_to(w, 1, 60);
        world_store_unknown(w, (uint32_t)steps % 3);
        world_start(w);
        world_steps(w, steps);
        world_stop(w);
        world_restart(w, 0);
        world_script(w, 0, "200");
        world_run(w, STG_NEVER);
        world_end(w, steps);
    }
}

static world_answer answer_unsent(world *w, uint32_t l, uint64_t position,
                                  uint64_t attempt)
{
    (void)w;
    (void)l;
    (void)position;
    (void)attempt;
    return (world_answer){
        {.fault = STG_FAULT_RESET, .unsent = true}, STG_NEVER, false};
}

/* I29: what waits for a file of ours has not been sent. It is put back, and what
 * it took of the rate is there again. */
TEST(stop, does_not_count_what_was_never_sent)
{
    world *w = world_new(9);

    world_lane(w, STEADY " rate=0.001/s");
    world_leaf_is(w, 0, answer_unsent);
    world_publish(w, 1);
    world_start(w);
    // Its time is up twice, and the one place of 1000 s is not used up.
    world_run(w, world_after(w, 5 * STG_S));
    CHECK(world_starts(w, 0) > 2);
    world_stop(w);
    CHECK_U64(world_parked(w), 0);
    world_restart(w, STG_S);
    CHECK_U64(world_look(w, 0).parked, 0);
    world_leaf_says(w, 0, stg_ok(), STG_MS);
    world_run(w, STG_NEVER);
    CHECK_U64(world_look(w, 0).delivered, 1);
    world_end(w, 9);
}
