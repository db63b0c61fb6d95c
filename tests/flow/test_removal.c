/* A lane that is removed by call: what it holds is cancelled, durably, and
 * then it is gone (I7, I17). */
#include "tests/flow/world.h"

/* The cancelled messages: those of rows, and of ranges. */
static uint64_t count_cancelled(world *w, bool in_ranges)
{
    uint64_t count = 0;

    for (size_t i = 0; i < world_dead_count(w); i++) {
        const world_dead *d = world_dead_at(w, i);

        if (d->is_cancelled && in_ranges)
            count += d->count;
        else if (d->is_cancelled)
            count += d->count == 0;
    }
    return count;
}

TEST(removal, ends_a_lane_that_has_nothing)
{
    world *w = world_new(1);

    world_lane(w, STEADY);
    world_start(w);
    world_remove(w, 0);
    world_run(w, STG_NEVER);
    CHECK_TRACE(world_trace(w), "     10 ms  0: removed\n");
    CHECK_U64(world_dead_count(w), 0);
    world_free(w);
}

/* I1, I17 */
TEST(removal, cancels_what_waits_into_one_range_row)
{
    world *w = world_new(2);

    world_lane(w, STEADY);
    world_lane(w, STEADY)->is_paused = true;
    world_publish(w, 20);
    world_start(w);
    world_run(w, world_after(w, STG_S));
    world_remove(w, 1);
    world_run(w, STG_NEVER);
    CHECK(world_was_removed(w, 1));
    CHECK_U64(world_dead_count(w), 1);
    CHECK_U64(world_dead_at(w, 0)->count, 20);
    CHECK_U64(world_dead_at(w, 0)->position, world_position(w, 0));
    CHECK_U64(world_dead_at(w, 0)->last_position, world_position(w, 19));
    CHECK(world_dead_at(w, 0)->is_cancelled);
    CHECK_U64(world_committed(w, 0), world_position(w, 19) + 1);
    world_end(w, 2);
}

TEST(removal, cancels_each_parked_row)
{
    world *w = world_begin(3, STEADY, "503", 5);

    world_run(w, world_after(w, 500 * STG_MS));
    CHECK_U64(world_parked(w), 5);
    world_remove(w, 0);
    world_run(w, STG_NEVER);
    CHECK(world_was_removed(w, 0));
    CHECK_U64(count_cancelled(w, false), 5);
    CHECK_U64(world_parked(w), 0);
    world_free(w);
}

/* What is in flight is cancelled, too: it is not tried again, and its place is
 * within the bulk row. */
TEST(removal, cancels_attempts)
{
    world *w = world_new(4);
    stg_lane_options *o = world_lane(w, STEADY);

    o->in_flight_max = 3;
    world_script(w, 0, "200 200 200 200 200 200 hang");
    world_publish(w, 30);
    world_start(w);
    world_run(w, world_after(w, STG_S));
    CHECK_U64(world_look(w, 0).in_flight, 3);
    world_remove(w, 0);
    world_run(w, STG_NEVER);
    CHECK(world_was_removed(w, 0));
    CHECK_U64(world_dead_count(w), 1);
    CHECK_U64(world_dead_at(w, 0)->count, 24);
    CHECK_U64(world_dead_at(w, 0)->position, world_position(w, 6));
    CHECK_U64(world_starts(w, 0), 9);
    world_free(w);
}

TEST(removal, cancels_in_every_partition)
{
    world *w = world_new(5);

    world_partitions(w, 3);
    world_lane(w, STEADY);
    world_script(w, 0, "503");
    for (uint32_t p = 0; p < 3; p++)
        world_publish_to(w, p, 4);
    world_start(w);
    world_run(w, world_after(w, 500 * STG_MS));
    CHECK_U64(world_parked(w), 12);
    world_remove(w, 0);
    world_run(w, STG_NEVER);
    CHECK(world_was_removed(w, 0));
    CHECK_U64(count_cancelled(w, false), 12);
    world_free(w);
}

/* A laggard has to read what it cancels, to count it. */
TEST(removal, counts_what_is_behind_the_window)
{
    world *w = world_new(6);

    world_options(w)->memory_max = 1 << 20;
    world_size(w, 20000);
    world_lane(w, STEADY);
    world_lane(w, STEADY)->is_paused = true;
    world_publish(w, 200);
    world_start(w);
    world_run(w, world_after(w, 5 * STG_S));
    CHECK(world_look_all(w).window < 100);
    world_remove(w, 1);
    world_run(w, STG_NEVER);
    CHECK(world_was_removed(w, 1));
    CHECK_U64(count_cancelled(w, true), 200);
    CHECK_U64(world_ranges_of(w, 1), 1);
    world_end(w, 6);
}

/* What was shed before is dead and stays so: another row. */
TEST(removal, does_not_mix_what_was_shed_with_what_is_cancelled)
{
    world *w = world_new(7);
    stg_lane_options *o = world_lane(w,
                                     "fixed base=1s jitter=none attempts=2 "
                                     "deadline=none retry=refused "
                                     "breaker=2:30s-10m");

    o->shed_after = 0;
    world_script(w, 0, "refused");
    world_publish(w, 10);
    world_start(w);
    world_run(w, world_after(w, STG_S));
    world_remove(w, 0);
    world_publish(w, 5); // not its business any more
    world_run(w, STG_NEVER);
    CHECK(world_was_removed(w, 0));
    CHECK_U64(world_ranges_of(w, 0), 1);
    CHECK_U64(count_cancelled(w, false), 2);
    CHECK_U64(world_dead_of(w, 0), 10);
    world_free(w);
}

TEST(removal, does_not_mix_what_has_expired_with_what_is_cancelled)
{
    world *w = world_new(8);

    world_lane(w, STEADY)->is_paused = true;
    world_lane(w, STEADY);
    world_publish(w, 20);
    world_start(w);
    world_run(w, world_after(w, STG_S));
    world_retain(w, 0, world_position(w, 10));
    world_run(w, world_after(w, STG_S));
    CHECK_U64(world_dead_of(w, 0), 10);
    world_remove(w, 0);
    world_run(w, STG_NEVER);
    CHECK(world_was_removed(w, 0));
    CHECK_U64(world_ranges_of(w, 0), 2);
    CHECK_U64(count_cancelled(w, true), 10);
    world_end(w, 8);
}

/* At the reader's next position, as a lane that is new. */
TEST(removal, lets_a_lane_come_back)
{
    world *w = world_new(9);

    world_lane(w, STEADY);
    world_lane(w, STEADY);
    world_publish(w, 10);
    world_start(w);
    world_run(w, world_after(w, STG_S));
    world_remove(w, 1);
    world_run(w, world_after(w, STG_S));
    world_publish(w, 10);
    world_run(w, world_after(w, STG_S));
    world_return(w, 1);
    world_publish(w, 10);
    world_run(w, STG_NEVER);
    CHECK_U64(world_look(w, 0).delivered, 30);
    CHECK_U64(world_look(w, 1).delivered, 10);
    world_end(w, 9);
}

/* The rows of a fetch that was under way when the lane went are no rows of the
 * lane that came back. */
TEST(removal, forgets_the_fetch_that_is_under_way)
{
    world *w = world_new(10);
    stg_lane_options *o = world_lane(w, STEADY);

    o->in_flight_max = 100;
    world_script(w, 0, "503");
    world_publish(w, 100);
    world_start(w);
    world_run(w, world_after(w, 500 * STG_MS));
    world_stop(w);
    world_fetch_delay(w, 10 * STG_S);
    world_restart(w, 0); // the first rows are asked for
    CHECK_U64(world_fetches(w), 1);
    world_remove(w, 0);
    world_run(w, world_after(w, STG_S));
    world_run(w, world_after(w, 11 * STG_S));
    CHECK(world_was_removed(w, 0));
    CHECK_U64(world_dead_of(w, 0), 51); // the reader had come no further
    world_return(w, 0);
    world_publish(w, 100);
    world_run(w, STG_NEVER);
    CHECK_U64(world_look(w, 0).dead, 100);
    CHECK_U64(world_starts(w, 0), 51 + 300);
    world_end(w, 10);
}

/* Before the crash it had come further than its base, which is where all read
 * on: what it left unsettled in between is cancelled and counted, too. */
TEST(removal, cancels_what_was_left_below_what_is_settled)
{
    world *w = world_new(12);

    world_lane(w, STEADY)->in_flight_max = 10;
    world_script(w, 0, "200 200 hang 200");
    world_publish(w, 20);
    world_start(w);
    world_run(w, world_after(w, STG_S));
    CHECK_U64(world_look(w, 0).delivered, 19);
    world_crash(w, STG_S);
    world_remove(w, 0); // nothing was read yet
    world_run(w, STG_NEVER);
    CHECK(world_was_removed(w, 0));
    CHECK_U64(count_cancelled(w, true), 1);
    CHECK_U64(world_dead_at(w, 0)->position, world_position(w, 2));
    world_free(w);
}

/* In an ordered lane parked rows say how far it had come. */
TEST(removal, cancels_what_was_left_below_a_parked_row)
{
    world *w = world_new(13);
    stg_lane_options *o = world_lane(w, STEADY);

    o->order = STG_ORDER_KEY;
    o->in_flight_max = 10;
    world_keys(w, 20);
    world_script(w, 0, "200 200 hang 503");
    world_publish(w, 20);
    world_start(w);
    world_run(w, world_after(w, 500 * STG_MS));
    CHECK_U64(world_parked(w), 9);
    world_crash(w, STG_S);
    world_remove(w, 0);
    world_run(w, STG_NEVER);
    CHECK(world_was_removed(w, 0));
    CHECK_U64(count_cancelled(w, true), 1);
    CHECK_U64(count_cancelled(w, false), 9);
    world_free(w);
}

/* A crash in between: the settings know that it is to go. */
TEST(removal, goes_on_after_a_crash)
{
    for (uint64_t steps = 0; steps < 60; steps++) {
        world *w = world_new(11);

        world_partitions(w, 2);
        world_lane(w, STEADY);
        world_script(w, 0, "503 503 200");
        world_publish(w, 20);
        world_publish_to(w, 1, 20);
        world_start(w);
        world_steps(w, 20);
        world_remove(w, 0);
        world_steps(w, steps);
        if (!world_was_removed(w, 0)) {
            world_crash(w, STG_S);
            world_run(w, STG_NEVER);
        }
        CHECK_FROM(steps, world_was_removed(w, 0));
        CHECK_FROM(steps, world_parked(w) == 0);
        world_free(w);
    }
}
