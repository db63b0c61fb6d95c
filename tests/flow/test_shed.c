/* Open for longer than `shed-after`: the lane settles what comes into one bulk row,
 * until a probe succeeds. */
#include "tests/flow/world.h"

#define FRAIL                                             \
    "fixed base=1s jitter=none attempts=3 deadline=none " \
    "attempt-timeout=5s retry=5xx,429,timeout,reset,refused breaker=3:10s-10s"

TEST(shed, settles_what_comes_into_one_range_row)
{
    world *w = world_new(3);

    world_lane(w, "broadcast")->shed_after = 5 * STG_S;
    world_script(w, 0, "refused");
    world_publish(w, 200);
    world_start(w);
    world_run(w, world_after(w, 20 * STG_S));
    CHECK_U64(world_dead_count(w), 4);
    CHECK_U64(world_dead_at(w, 3)->count, 197);
    CHECK_U64(world_dead_at(w, 3)->position, world_position(w, 3));
    CHECK_U64(world_dead_at(w, 3)->last_position, world_position(w, 199));
    // Its cause is the fault that opened the breaker.
    CHECK_INT(world_dead_at(w, 3)->reason, STG_SHED_OPEN);
    CHECK_INT(world_dead_at(w, 3)->outcome.fault, STG_FAULT_REFUSED);
    world_end(w, 3);
}

TEST(shed, holds_before_it_sheds)
{
    world *w = world_new(1);

    world_lane(w, FRAIL)->shed_after = STG_MIN;
    world_script(w, 0, "503 503 503 refused");
    world_publish(w, 100);
    world_start(w);
    world_run(w, world_after(w, 59 * STG_S));
    CHECK_U64(world_look(w, 0).state, STG_LANE_CIRCUIT_OPEN);
    CHECK_U64(world_dead_count(w), 0);
    world_run(w, world_after(w, 2 * STG_S));
    CHECK_U64(world_look(w, 0).state, STG_LANE_SHEDDING);
    CHECK_U64(world_dead_of(w, 0), 97);
    CHECK_U64(world_dead_count(w), 1);
    world_free(w);
}

/* Rows parked before stay parked; they go out when the target is back. */
TEST(shed, leaves_parked_rows_parked)
{
    world *w = world_new(1);

    world_lane(w, FRAIL)->shed_after = STG_MIN;
    world_script(w, 0, "503 503 503 refused");
    world_publish(w, 100);
    world_start(w);
    world_run(w, world_after(w, 5 * STG_MIN));
    CHECK_U64(world_parked(w), 3);
    world_script(w, 0, "200");
    world_run(w, STG_NEVER);
    CHECK_U64(world_look(w, 0).delivered, 3);
    CHECK_U64(world_look(w, 0).dead, 97);
    CHECK_U64(world_look(w, 0).state, STG_LANE_LIVE);
    CHECK(strstr(world_trace(w), "0: closed\n") != NULL);
    CHECK(strstr(world_trace(w), "0: shed 97\n") != NULL);
    world_end(w, 1);
}

/* What comes later goes into the same row, as long as it sheds. */
TEST(shed, goes_on_in_the_same_row)
{
    world *w = world_new(2);

    world_lane(w, FRAIL)->shed_after = 0;
    world_script(w, 0, "refused");
    world_publish(w, 10);
    world_start(w);
    for (uint32_t i = 0; i < 50; i++) {
        world_run(w, world_after(w, 3 * STG_S));
        world_publish(w, 2);
    }
    world_run(w, world_after(w, 30 * STG_S));
    CHECK_U64(world_ranges_of(w, 0), 1);
    CHECK_U64(world_dead_of(w, 0) + world_look(w, 0).parked +
                  world_look(w, 0).waiting + world_look(w, 0).in_flight,
              110);
    world_script(w, 0, "200");
    world_run(w, STG_NEVER);
    world_end(w, 2);
}

/* A probe's success ends it; the next time it is another row. */
TEST(shed, begins_another_row_the_next_time)
{
    world *w = world_new(2);

    world_lane(w, FRAIL)->shed_after = 20 * STG_S;
    for (uint32_t i = 1; i <= 3; i++) {
        world_script(w, 0, "refused");
        world_publish(w, 50);
        if (i == 1)
            world_start(w);
        world_run(w, world_after(w, 25 * STG_S));
        CHECK_U64(world_ranges_of(w, 0), i);
        world_script(w, 0, "200");
        world_publish(w, 10);
        world_run(w, world_after(w, 30 * STG_S));
        CHECK_U64(world_look(w, 0).state, STG_LANE_LIVE);
    }
    world_run(w, STG_NEVER);
    world_end(w, 2);
}

static world_answer refuse_slowly(world *w, uint32_t l, uint64_t position,
                                  uint64_t attempt)
{
    (void)l;
    (void)attempt;
    if (world_now(w) < 1500 * STG_MS)
        return (world_answer){stg_ok(), 50 * STG_MS, true};
    return (world_answer){stg_failed(STG_FAULT_REFUSED),
                          (position % 7 == 0 ? 4000 : 10) * STG_MS, false};
}

/* Attempts that were under way come back, and are within the row. */
TEST(shed, has_all_that_it_settled_between_first_and_last)
{
    world *w = world_new(4);

    world_lane(w, FRAIL)->shed_after = 0;
    world_leaf_is(w, 0, refuse_slowly);
    world_publish(w, 1000);
    world_start(w);
    world_run(w, world_after(w, STG_MIN));
    world_script(w, 0, "200");
    world_run(w, STG_NEVER);
    CHECK(world_dead_of(w, 0) > 0);
    world_end(w, 4);
}

/* The reader goes on, for the lanes that are well and for the one that sheds
 * alone. */
TEST(shed, does_not_lead_the_reader_away_from_others)
{
    world *w = world_new(5);

    world_options(w)->memory_max = 1 << 20;
    world_size(w, 10000);
    world_lane(w, FRAIL)->shed_after = 0;
    world_lane(w, FRAIL);
    world_script(w, 0, "refused");
    world_publish(w, 1000);
    world_start(w);
    world_run(w, world_after(w, 30 * STG_S));
    CHECK_U64(world_look(w, 1).delivered, 1000);
    CHECK(strstr(world_trace(w), "1: laggard\n") == NULL);
    world_free(w);
}

TEST(shed, drains_the_log_when_all_lanes_shed)
{
    world *w = world_new(5);

    world_options(w)->memory_max = 1 << 20;
    world_size(w, 10000);
    world_lane(w, FRAIL)->shed_after = 0;
    world_script(w, 0, "refused");
    world_publish(w, 1000);
    world_start(w);
    world_run(w, world_after(w, 9 * STG_S));
    CHECK_U64(world_dead_of(w, 0), 997);
    CHECK_U64(world_committed(w, 0), world_position(w, 999) + 1);
    world_free(w);
}

/* I7 A paused lane's messages wait, whatever its breaker says. */
TEST(shed, does_not_shed_while_it_is_paused)
{
    world *w = world_new(6);

    world_lane(w, FRAIL)->shed_after = 20 * STG_S;
    world_script(w, 0, "503");
    world_publish(w, 100);
    world_start(w);
    world_run(w, world_after(w, STG_S));
    world_pause(w, 0, true);
    world_run(w, world_after(w, STG_HOUR));
    CHECK_U64(world_dead_count(w), 0);
    world_script(w, 0, "200");
    world_pause(w, 0, false);
    world_run(w, STG_NEVER);
    CHECK_U64(world_look(w, 0).delivered, 100);
    world_end(w, 6);
}

/* -- retention ------------------------------------------------------------- */

TEST(shed, sheds_what_has_expired)
{
    world *w = world_new(7);

    world_lane(w, FRAIL)->is_paused = true;
    world_lane(w, FRAIL);
    world_publish(w, 100);
    world_start(w);
    world_run(w, world_after(w, STG_S));
    CHECK_U64(world_committed(w, 0), world_position(w, 0));
    world_retain(w, 0, world_position(w, 60));
    world_run(w, STG_NEVER);
    CHECK_U64(world_dead_count(w), 1);
    CHECK_U64(world_dead_at(w, 0)->count, 60);
    CHECK_U64(world_dead_at(w, 0)->position, world_position(w, 0));
    CHECK_U64(world_dead_at(w, 0)->last_position, world_position(w, 59));
    CHECK_INT(world_dead_at(w, 0)->reason, STG_SHED_PAUSED);
    CHECK_INT(world_dead_at(w, 0)->outcome.fault, STG_FAULT_NONE);
    CHECK_U64(world_committed(w, 0), world_position(w, 60));
    CHECK_U64(world_look(w, 0).state, STG_LANE_PAUSED);
    CHECK(strstr(world_trace(w), "0: expiring\n") != NULL);
    world_pause(w, 0, false);
    world_run(w, STG_NEVER);
    CHECK_U64(world_look(w, 0).delivered, 40);
    world_end(w, 7);
}

/* The retention ends for one lane: messages that wait in it now expire, later
 * ones do not. */
TEST(shed, sheds_what_a_lane_has_waited_for_too_long)
{
    world *w = world_new(7);

    world_lane(w, FRAIL)->is_paused = true;
    world_lane(w, FRAIL);
    world_publish(w, 100);
    world_start(w);
    world_run(w, world_after(w, STG_S));
    CHECK(!stg_flow_retain_lane(world_flow(w), 9, world_now(w)));
    CHECK(!stg_flow_retain_lane(world_flow(w), 1, world_now(w)));
    CHECK(stg_flow_retain_lane(world_flow(w), 0, world_now(w)));
    CHECK(!stg_flow_retain_lane(world_flow(w), 0, world_now(w))); // it does
    world_publish(w, 20);
    world_run(w, STG_NEVER);
    CHECK_U64(world_dead_count(w), 1);
    CHECK_U64(world_dead_at(w, 0)->count, 100);
    CHECK_INT(world_dead_at(w, 0)->reason, STG_SHED_PAUSED);
    CHECK_U64(world_committed(w, 0), world_position(w, 100));
    world_pause(w, 0, false);
    world_run(w, STG_NEVER);
    CHECK_U64(world_look(w, 0).delivered, 20);
    CHECK_U64(world_look(w, 1).delivered, 120);
    world_end(w, 7);
}

/* Behind the window it has to read them, to count them. */
TEST(shed, counts_what_has_expired_behind_the_window)
{
    world *w = world_new(8);

    world_options(w)->memory_max = 1 << 20;
    world_size(w, 20000);
    world_lane(w, FRAIL)->is_paused = true;
    world_lane(w, FRAIL);
    world_publish(w, 300);
    world_start(w);
    world_run(w, world_after(w, 10 * STG_S));
    CHECK_U64(world_look(w, 1).delivered, 300);
    world_retain(w, 0, world_position(w, 250));
    world_run(w, STG_NEVER);
    CHECK_U64(world_ranges_of(w, 0), 1);
    CHECK_U64(world_dead_of(w, 0), 250);
    world_pause(w, 0, false);
    world_run(w, STG_NEVER);
    world_end(w, 8);
}

/* What a lane has not got to, though it works, expires, too; what is in flight
 * ends as it ends. */
TEST(shed, sheds_a_slow_lane_up_to_retention)
{
    world *w = world_new(9);

    world_lane(w, FRAIL)->in_flight_max = 2;
    world_script(w, 0, "200 200 200 hang hang 200");
    world_publish(w, 100);
    world_start(w);
    world_run(w, world_after(w, STG_S));
    CHECK_U64(world_look(w, 0).in_flight, 2);
    world_retain(w, 0, world_position(w, 80));
    world_run(w, STG_NEVER);
    CHECK(world_dead_of(w, 0) >= 70);
    CHECK_U64(world_look(w, 0).delivered + world_dead_of(w, 0), 100);
    CHECK_INT(world_dead_at(w, 0)->reason, STG_SHED_SLOW);
    world_end(w, 9);
}

/* The end of retention is for what was never tried: what is parked ends by its
 * policy. */
TEST(shed, ends_nothing_that_is_parked_at_the_end_of_retention)
{
    world *w = world_new(12);

    world_lane(w, FRAIL)->shed_after = STG_NEVER;
    world_script(w, 0, "503 503 503 refused");
    world_publish(w, 100);
    world_start(w);
    world_run(w, world_after(w, STG_MIN));
    CHECK_U64(world_parked(w), 3);
    world_retain(w, 0, world_position(w, 60));
    world_run(w, world_after(w, STG_MIN));
    CHECK_U64(world_parked(w), 3);
    CHECK_U64(world_dead_of(w, 0), 57);
    world_script(w, 0, "200");
    world_run(w, STG_NEVER);
    CHECK_U64(world_look(w, 0).delivered, 43);
    CHECK_U64(world_look(w, 0).dead, 57);
    world_end(w, 12);
}

/* Each row has one cause: that of its time. */
TEST(shed, says_why_it_shed)
{
    world *w = world_new(11);

    world_lane(w, FRAIL)->shed_after = STG_NEVER;
    world_script(w, 0, "503 503 503 refused");
    world_publish(w, 100);
    world_start(w);
    world_run(w, world_after(w, 5 * STG_S));
    world_retain(w, 0, world_position(w, 40));
    world_run(w, world_after(w, STG_S));
    CHECK_U64(world_ranges_of(w, 0), 1);
    CHECK_INT(world_dead_at(w, 0)->reason, STG_SHED_DOWN);
    CHECK_INT(world_dead_at(w, 0)->outcome.fault, STG_FAULT_5XX);
    CHECK_U64(world_dead_at(w, 0)->outcome.code, 503);
    world_run(w, world_after(w, STG_MIN)); // other faults of probes
    world_retain(w, 0, world_position(w, 60));
    world_run(w, world_after(w, STG_S));
    CHECK_U64(world_ranges_of(w, 0), 1);
    CHECK_INT(world_dead_at(w, 0)->outcome.fault, STG_FAULT_5XX);
    world_pause(w, 0, true);
    world_retain(w, 0, world_position(w, 80));
    world_run(w, world_after(w, STG_S));
    CHECK_U64(world_ranges_of(w, 0), 2);
    CHECK_INT(world_dead_at(w, 1)->reason, STG_SHED_PAUSED);
    world_pause(w, 0, false);
    world_script(w, 0, "200");
    world_run(w, STG_NEVER);
    world_end(w, 11);
}

/* A laggard whose ring is full has to wait, and nobody reads for it. */
TEST(shed, reads_nothing_for_a_full_ring)
{
    world *w = world_new(10);
    stg_lane_options *o = world_lane(w,
                                     "fixed base=1s jitter=none attempts=3 "
                                     "deadline=none retry=timeout "
                                     "attempt-timeout=1h");
    uint64_t reads;

    o->in_flight_max = 2;
    world_options(w)->memory_max = 1 << 20;
    world_size(w, 10000);
    world_lane(w, FRAIL);
    world_script(w, 0, "200 200 200 hang 200");
    world_publish(w, 500);
    world_start(w);
    world_run(w, world_after(w, 20 * STG_S));
    CHECK(world_look(w, 0).is_laggard);
    CHECK_U64(world_look(w, 0).in_flight, 1);
    reads = world_reads(w);
    world_retain(w, 0, world_position(w, 400));
    world_run(w, world_after(w, STG_MIN));
    CHECK(world_reads(w) < reads + 10);
    world_run(w, STG_NEVER);
    world_end(w, 10);
}

/* Of first to last nothing is missing in a row, for a replay of it sends all of
 * that: the probe that failed in between has a row of its own. */
TEST(shed, begins_another_row_behind_a_probe)
{
    world *w = world_new(40);

    world_lane(w,
               "fixed base=1s jitter=none attempts=1 deadline=none "
               "breaker=2:10s-1m")
        ->shed_after = 0;
    world_script(w, 0, "500");
    world_publish(w, 20);
    world_start(w);
    world_run(w, world_after(w, 11 * STG_S)); // now a probe may start
    CHECK_U64(world_ranges_of(w, 0), 1);
    CHECK_U64(world_dead_of(w, 0), 20);
    world_publish(w, 5);
    world_run(w, world_after(w, STG_S));
    CHECK_U64(world_ranges_of(w, 0), 2);
    CHECK_U64(world_dead_of(w, 0), 25);
    world_script(w, 0, "200");
    world_run(w, STG_NEVER);
    world_end(w, 40);
}
