/* A lane that is removed by call: what it holds is cancelled, durably, and
 * then it is gone (I7, I17). */
#include "tests/flow/world.h"

/* The cancelled messages: those of rows, and of ranges. */
static uint64_t count_cancelled(stg_world *w, bool in_ranges)
{
    uint64_t count = 0;

    for (size_t i = 0; i < stg_world_sum(w).dead; i++) {
        const stg_world_dead *d = stg_world_dead_at(w, i);

        if (d->is_cancelled && in_ranges)
            count += d->count;
        else if (d->is_cancelled)
            count += d->count == 0;
    }
    return count;
}

TEST(removal, ends_a_lane_that_has_nothing)
{
    stg_world *w = world_new(1);

    world_lane(w, STEADY);
    stg_world_start(w);
    stg_world_remove(w, 0);
    stg_world_run(w, STG_NEVER);
    CHECK_TRACE(world_trace(w), "     10 ms  0: removed\n");
    CHECK_U64(stg_world_sum(w).dead, 0);
    world_free(w);
}

/* I1, I17 */
TEST(removal, cancels_what_waits_into_one_range_row)
{
    stg_world *w = world_new(2);

    world_lane(w, STEADY);
    world_lane(w, STEADY)->is_paused = true;
    stg_world_publish(w, 0, 20);
    stg_world_start(w);
    stg_world_run(w, world_after(w, STG_S));
    stg_world_remove(w, 1);
    stg_world_run(w, STG_NEVER);
    CHECK(stg_world_sum_lane(w, 1).was_removed);
    CHECK_U64(stg_world_sum(w).dead, 1);
    CHECK_U64(stg_world_dead_at(w, 0)->count, 20);
    CHECK_U64(stg_world_dead_at(w, 0)->position, stg_world_position_at(w, 0));
    CHECK_U64(stg_world_dead_at(w, 0)->last_position,
              stg_world_position_at(w, 19));
    CHECK(stg_world_dead_at(w, 0)->is_cancelled);
    CHECK_U64(stg_world_committed(w, 0), stg_world_position_at(w, 19) + 1);
    world_end(w);
}

TEST(removal, cancels_each_parked_row)
{
    stg_world *w = world_begin(3, STEADY, "503", 5);

    stg_world_run(w, world_after(w, 500 * STG_MS));
    CHECK_U64(stg_world_sum(w).parked, 5);
    stg_world_remove(w, 0);
    stg_world_run(w, STG_NEVER);
    CHECK(stg_world_sum_lane(w, 0).was_removed);
    CHECK_U64(count_cancelled(w, false), 5);
    CHECK_U64(stg_world_sum(w).parked, 0);
    world_free(w);
}

/* What is in flight is cancelled, too: it is not tried again, and its place is
 * within the bulk row. */
TEST(removal, cancels_attempts)
{
    stg_world *w = world_new(4);
    stg_lane_options *o = world_lane(w, STEADY);

    o->in_flight_max = 3;
    world_script(w, 0, "200 200 200 200 200 200 hang");
    stg_world_publish(w, 0, 30);
    stg_world_start(w);
    stg_world_run(w, world_after(w, STG_S));
    CHECK_U64(world_look(w, 0).in_flight, 3);
    stg_world_remove(w, 0);
    stg_world_run(w, STG_NEVER);
    CHECK(stg_world_sum_lane(w, 0).was_removed);
    CHECK_U64(stg_world_sum(w).dead, 1);
    CHECK_U64(stg_world_dead_at(w, 0)->count, 24);
    CHECK_U64(stg_world_dead_at(w, 0)->position, stg_world_position_at(w, 6));
    CHECK_U64(stg_world_sum_lane(w, 0).starts, 9);
    world_free(w);
}

TEST(removal, cancels_in_every_partition)
{
    stg_world *w = world_new(5);

    stg_world_set_partitions(w, 3);
    world_lane(w, STEADY);
    world_script(w, 0, "503");
    for (uint32_t p = 0; p < 3; p++)
        stg_world_publish(w, p, 4);
    stg_world_start(w);
    stg_world_run(w, world_after(w, 500 * STG_MS));
    CHECK_U64(stg_world_sum(w).parked, 12);
    stg_world_remove(w, 0);
    stg_world_run(w, STG_NEVER);
    CHECK(stg_world_sum_lane(w, 0).was_removed);
    CHECK_U64(count_cancelled(w, false), 12);
    world_free(w);
}

/* A lane that catches up has to read what it cancels, to count it. */
TEST(removal, counts_what_is_behind_the_window)
{
    stg_world *w = world_new(6);

    stg_world_options(w)->memory_max = 1 << 20;
    stg_world_set_size(w, 20000);
    world_lane(w, STEADY);
    world_lane(w, STEADY)->is_paused = true;
    stg_world_publish(w, 0, 200);
    stg_world_start(w);
    stg_world_run(w, world_after(w, 5 * STG_S));
    CHECK(world_look_all(w).window < 100);
    stg_world_remove(w, 1);
    stg_world_run(w, STG_NEVER);
    CHECK(stg_world_sum_lane(w, 1).was_removed);
    CHECK_U64(count_cancelled(w, true), 200);
    CHECK_U64(stg_world_sum_lane(w, 1).bulk_dead, 1);
    world_end(w);
}

/* What was shed before is dead and stays so: another row. */
TEST(removal, does_not_mix_what_was_shed_with_what_is_cancelled)
{
    stg_world *w = world_new(7);
    stg_lane_options *o = world_lane(w,
                                     "fixed base=1s jitter=none attempts=2 "
                                     "deadline=none retry=refused "
                                     "breaker=2:30s-10m");

    o->shed_after = 0;
    world_script(w, 0, "refused");
    stg_world_publish(w, 0, 10);
    stg_world_start(w);
    stg_world_run(w, world_after(w, STG_S));
    stg_world_remove(w, 0);
    stg_world_publish(w, 0, 5); // not its business any more
    stg_world_run(w, STG_NEVER);
    CHECK(stg_world_sum_lane(w, 0).was_removed);
    CHECK_U64(stg_world_sum_lane(w, 0).bulk_dead, 1);
    CHECK_U64(count_cancelled(w, false), 2);
    CHECK_U64(stg_world_sum_lane(w, 0).dead, 10);
    world_free(w);
}

TEST(removal, does_not_mix_what_has_expired_with_what_is_cancelled)
{
    stg_world *w = world_new(8);

    world_lane(w, STEADY)->is_paused = true;
    world_lane(w, STEADY);
    stg_world_publish(w, 0, 20);
    stg_world_start(w);
    stg_world_run(w, world_after(w, STG_S));
    stg_world_retain(w, 0, stg_world_position_at(w, 10));
    stg_world_run(w, world_after(w, STG_S));
    CHECK_U64(stg_world_sum_lane(w, 0).dead, 10);
    stg_world_remove(w, 0);
    stg_world_run(w, STG_NEVER);
    CHECK(stg_world_sum_lane(w, 0).was_removed);
    CHECK_U64(stg_world_sum_lane(w, 0).bulk_dead, 2);
    CHECK_U64(count_cancelled(w, true), 10);
    world_end(w);
}

/* At the reader's next position, as a lane that is new. */
TEST(removal, lets_a_lane_come_back)
{
    stg_world *w = world_new(9);

    world_lane(w, STEADY);
    world_lane(w, STEADY);
    stg_world_publish(w, 0, 10);
    stg_world_start(w);
    stg_world_run(w, world_after(w, STG_S));
    stg_world_remove(w, 1);
    stg_world_run(w, world_after(w, STG_S));
    stg_world_publish(w, 0, 10);
    stg_world_run(w, world_after(w, STG_S));
    stg_world_add_again(w, 1);
    stg_world_publish(w, 0, 10);
    stg_world_run(w, STG_NEVER);
    CHECK_U64(world_look(w, 0).delivered, 30);
    CHECK_U64(world_look(w, 1).delivered, 10);
    world_end(w);
}

/* The rows of a fetch that was under way when the lane went are no rows of the
 * lane that came back. */
TEST(removal, forgets_the_fetch_that_is_under_way)
{
    stg_world *w = world_new(10);
    stg_lane_options *o = world_lane(w, STEADY);

    o->in_flight_max = 100;
    world_script(w, 0, "503");
    stg_world_publish(w, 0, 100);
    stg_world_start(w);
    stg_world_run(w, world_after(w, 500 * STG_MS));
    stg_world_stop(w);
    stg_world_set_fetch_delay(w, 10 * STG_S);
    stg_world_restart(w, 0); // the first rows are asked for
    CHECK_U64(stg_world_sum(w).fetches, 1);
    stg_world_remove(w, 0);
    stg_world_run(w, world_after(w, STG_S));
    stg_world_run(w, world_after(w, 11 * STG_S));
    CHECK(stg_world_sum_lane(w, 0).was_removed);
    CHECK_U64(stg_world_sum_lane(w, 0).dead,
              51); // the reader had come no further
    stg_world_add_again(w, 0);
    stg_world_publish(w, 0, 100);
    stg_world_run(w, STG_NEVER);
    CHECK_U64(world_look(w, 0).dead, 100);
    CHECK_U64(stg_world_sum_lane(w, 0).starts, 51 + 300);
    world_end(w);
}

/* Before the crash it had come further than its base, which is where all read
 * on: what it left unsettled in between is cancelled and counted, too. */
TEST(removal, cancels_what_was_left_below_what_is_settled)
{
    stg_world *w = world_new(12);

    world_lane(w, STEADY)->in_flight_max = 10;
    world_script(w, 0, "200 200 hang 200");
    stg_world_publish(w, 0, 20);
    stg_world_start(w);
    stg_world_run(w, world_after(w, STG_S));
    CHECK_U64(world_look(w, 0).delivered, 19);
    stg_world_crash(w, STG_S);
    stg_world_remove(w, 0); // nothing was read yet
    stg_world_run(w, STG_NEVER);
    CHECK(stg_world_sum_lane(w, 0).was_removed);
    CHECK_U64(count_cancelled(w, true), 1);
    CHECK_U64(stg_world_dead_at(w, 0)->position, stg_world_position_at(w, 2));
    world_free(w);
}

/* In an ordered lane parked rows say how far it had come. */
TEST(removal, cancels_what_was_left_below_a_parked_row)
{
    stg_world *w = world_new(13);
    stg_lane_options *o = world_lane(w, STEADY);

    o->order = STG_ORDER_KEY;
    o->in_flight_max = 10;
    stg_world_set_keys(w, 20);
    world_script(w, 0, "200 200 hang 503");
    stg_world_publish(w, 0, 20);
    stg_world_start(w);
    stg_world_run(w, world_after(w, 500 * STG_MS));
    CHECK_U64(stg_world_sum(w).parked, 9);
    stg_world_crash(w, STG_S);
    stg_world_remove(w, 0);
    stg_world_run(w, STG_NEVER);
    CHECK(stg_world_sum_lane(w, 0).was_removed);
    CHECK_U64(count_cancelled(w, true), 1);
    CHECK_U64(count_cancelled(w, false), 9);
    world_free(w);
}

/* A crash in between: the settings know that it is to go. */
TEST(removal, goes_on_after_a_crash)
{
    for (uint64_t steps = 0; steps < 60; steps++) {
        stg_world *w = world_new(11);

        stg_world_set_partitions(w, 2);
        world_lane(w, STEADY);
        world_script(w, 0, "503 503 200");
        stg_world_publish(w, 0, 20);
        stg_world_publish(w, 1, 20);
        stg_world_start(w);
        stg_world_steps(w, 20);
        stg_world_remove(w, 0);
        stg_world_steps(w, steps);
        if (!stg_world_sum_lane(w, 0).was_removed) {
            stg_world_crash(w, STG_S);
            stg_world_run(w, STG_NEVER);
        }
        CHECK_FROM(steps, stg_world_sum_lane(w, 0).was_removed);
        CHECK_FROM(steps, stg_world_sum(w).parked == 0);
        world_free(w);
    }
}

/* A partition that comes while it ends has nothing for it. */
TEST(removal, takes_nothing_of_a_partition_that_comes)
{
    stg_world *w = world_new(9);

    stg_world_set_partitions(w, 2);
    stg_world_join_group(w, true);
    world_lane(w, STEADY);
    world_lane(w, STEADY);
    stg_world_publish(w, 0, 5);
    stg_world_publish(w, 1, 5);
    stg_world_start(w);
    stg_world_assign(w, 0);
    stg_world_set_store_delay(w, STG_S);
    stg_world_run(w, world_after(w, 15 * STG_MS));
    stg_world_remove(w, 0);
    stg_world_assign(w, 1);
    stg_flow_remove(stg_world_flow(w), 0, stg_world_now(w)); // twice is once
    stg_world_run(w, STG_NEVER);
    CHECK(stg_world_sum_lane(w, 0).was_removed);
    CHECK_U64(world_look(w, 1).delivered, 10);
    for (uint64_t i = 0; i < 10; i++)
        if (stg_world_partition_at(w, i) == 1)
            CHECK_U64(stg_world_receipt_of(w, 0, 1, stg_world_position_at(w, i))
                          ->attempts,
                      0);
    world_end(w);
}

/* The partition takes what waits in it along: only then is the lane at its end. */
TEST(removal, waits_for_a_partition_that_goes)
{
    stg_world *w = world_new(10);

    stg_world_join_group(w, false);
    world_lane(w, STEADY);
    world_lane(w, STEADY);
    stg_world_set_answer(w, 1, stg_ok(), 1500 * STG_MS);
    stg_world_publish(w, 0, 30);
    stg_world_start(w);
    stg_world_assign(w, 0);
    stg_world_run(w, world_after(w, 100 * STG_MS));
    stg_world_revoke(w, 0, 5 * STG_S);
    stg_world_remove(w, 0);
    stg_world_run(w, world_after(w, STG_S));
    CHECK(!stg_world_is_away(w, 0));
    CHECK(!stg_world_sum_lane(w, 0).was_removed);
    stg_world_run(w, STG_NEVER);
    CHECK(stg_world_is_away(w, 0));
    CHECK(stg_world_sum_lane(w, 0).was_removed);
    stg_world_assign(w, 0);
    stg_world_run(w, STG_NEVER);
    CHECK_U64(world_look(w, 1).delivered, 30);
    world_free(w);
}
