/* Open for longer than `shed-after`: the lane settles what comes into one bulk row,
 * until a probe succeeds. */
#include "tests/flow/world.h"

#define FRAIL                                             \
    "fixed base=1s jitter=none attempts=3 deadline=none " \
    "attempt-timeout=5s retry=5xx,429,timeout,reset,refused breaker=3:10s-10s"

TEST(shed, settles_what_comes_into_one_range_row)
{
    stg_world *w = world_new(3);

    world_lane(w, "broadcast")->shed_after = 5 * STG_S;
    world_script(w, 0, "refused");
    stg_world_publish(w, 0, 200);
    stg_world_start(w);
    stg_world_run(w, world_after(w, 20 * STG_S));
    CHECK_U64(stg_world_sum(w).dead, 4);
    CHECK_U64(stg_world_dead_at(w, 3)->count, 197);
    CHECK_U64(stg_world_dead_at(w, 3)->position, stg_world_position_at(w, 3));
    CHECK_U64(stg_world_dead_at(w, 3)->last_position,
              stg_world_position_at(w, 199));
    // Its cause is the fault that opened the breaker.
    CHECK_INT(stg_world_dead_at(w, 3)->reason, STG_SHED_OPEN);
    CHECK_INT(stg_world_dead_at(w, 3)->outcome.fault, STG_FAULT_REFUSED);
    world_end(w);
}

TEST(shed, holds_before_it_sheds)
{
    stg_world *w = world_new(1);

    world_lane(w, FRAIL)->shed_after = STG_MIN;
    world_script(w, 0, "503 503 503 refused");
    stg_world_publish(w, 0, 100);
    stg_world_start(w);
    stg_world_run(w, world_after(w, 59 * STG_S));
    CHECK_U64(world_look(w, 0).state, STG_LANE_CIRCUIT_OPEN);
    CHECK_U64(stg_world_sum(w).dead, 0);
    stg_world_run(w, world_after(w, 2 * STG_S));
    CHECK_U64(world_look(w, 0).state, STG_LANE_SHEDDING);
    CHECK_U64(stg_world_sum_lane(w, 0).dead, 97);
    CHECK_U64(stg_world_sum(w).dead, 1);
    world_free(w);
}

/* Rows parked before stay parked; they go out when the target is back. */
TEST(shed, leaves_parked_rows_parked)
{
    stg_world *w = world_new(1);

    world_lane(w, FRAIL)->shed_after = STG_MIN;
    world_script(w, 0, "503 503 503 refused");
    stg_world_publish(w, 0, 100);
    stg_world_start(w);
    stg_world_run(w, world_after(w, 5 * STG_MIN));
    CHECK_U64(stg_world_sum(w).parked, 3);
    world_script(w, 0, "200");
    stg_world_run(w, STG_NEVER);
    CHECK_U64(world_look(w, 0).delivered, 3);
    CHECK_U64(world_look(w, 0).dead, 97);
    CHECK_U64(world_look(w, 0).state, STG_LANE_LIVE);
    CHECK(strstr(world_trace(w), "0: closed\n") != NULL);
    CHECK(strstr(world_trace(w), "0: shed 97\n") != NULL);
    world_end(w);
}

/* What comes later goes into the same row, as long as it sheds. */
TEST(shed, goes_on_in_the_same_row)
{
    stg_world *w = world_new(2);

    world_lane(w, FRAIL)->shed_after = 0;
    world_script(w, 0, "refused");
    stg_world_publish(w, 0, 10);
    stg_world_start(w);
    for (uint32_t i = 0; i < 50; i++) {
        stg_world_run(w, world_after(w, 3 * STG_S));
        stg_world_publish(w, 0, 2);
    }
    stg_world_run(w, world_after(w, 30 * STG_S));
    CHECK_U64(stg_world_sum_lane(w, 0).bulk_dead, 1);
    CHECK_U64(stg_world_sum_lane(w, 0).dead + world_look(w, 0).parked +
                  world_look(w, 0).waiting + world_look(w, 0).in_flight,
              110);
    world_script(w, 0, "200");
    stg_world_run(w, STG_NEVER);
    world_end(w);
}

/* A probe's success ends it; the next time it is another row. */
TEST(shed, begins_another_row_the_next_time)
{
    stg_world *w = world_new(2);

    world_lane(w, FRAIL)->shed_after = 20 * STG_S;
    for (uint32_t i = 1; i <= 3; i++) {
        world_script(w, 0, "refused");
        stg_world_publish(w, 0, 50);
        if (i == 1)
            stg_world_start(w);
        stg_world_run(w, world_after(w, 25 * STG_S));
        CHECK_U64(stg_world_sum_lane(w, 0).bulk_dead, i);
        world_script(w, 0, "200");
        stg_world_publish(w, 0, 10);
        stg_world_run(w, world_after(w, 30 * STG_S));
        CHECK_U64(world_look(w, 0).state, STG_LANE_LIVE);
    }
    stg_world_run(w, STG_NEVER);
    world_end(w);
}

static stg_world_answer refuse_slowly(stg_world *w, uint32_t l,
                                      uint64_t position, uint64_t attempt)
{
    (void)l;
    (void)attempt;
    if (stg_world_now(w) < 1500 * STG_MS)
        return (stg_world_answer){stg_ok(), 50 * STG_MS, true};
    return (stg_world_answer){stg_failed(STG_FAULT_REFUSED),
                              (position % 7 == 0 ? 4000 : 10) * STG_MS, false};
}

/* Attempts that were under way come back, and are within the row. */
TEST(shed, has_all_that_it_settled_between_first_and_last)
{
    stg_world *w = world_new(4);

    world_lane(w, FRAIL)->shed_after = 0;
    stg_world_set_target(w, 0, refuse_slowly);
    stg_world_publish(w, 0, 1000);
    stg_world_start(w);
    stg_world_run(w, world_after(w, STG_MIN));
    world_script(w, 0, "200");
    stg_world_run(w, STG_NEVER);
    CHECK(stg_world_sum_lane(w, 0).dead > 0);
    world_end(w);
}

/* The reader goes on, for the lanes that are well and for the one that sheds
 * alone. */
TEST(shed, does_not_lead_the_reader_away_from_others)
{
    stg_world *w = world_new(5);

    stg_world_options(w)->memory_max = 1 << 20;
    stg_world_set_size(w, 10000);
    world_lane(w, FRAIL)->shed_after = 0;
    world_lane(w, FRAIL);
    world_script(w, 0, "refused");
    stg_world_publish(w, 0, 1000);
    stg_world_start(w);
    stg_world_run(w, world_after(w, 30 * STG_S));
    CHECK_U64(world_look(w, 1).delivered, 1000);
    CHECK(strstr(world_trace(w), "1: catching-up\n") == NULL);
    world_free(w);
}

TEST(shed, drains_the_log_when_all_lanes_shed)
{
    stg_world *w = world_new(5);

    stg_world_options(w)->memory_max = 1 << 20;
    stg_world_set_size(w, 10000);
    world_lane(w, FRAIL)->shed_after = 0;
    world_script(w, 0, "refused");
    stg_world_publish(w, 0, 1000);
    stg_world_start(w);
    stg_world_run(w, world_after(w, 9 * STG_S));
    CHECK_U64(stg_world_sum_lane(w, 0).dead, 997);
    CHECK_U64(stg_world_committed(w, 0), stg_world_position_at(w, 999) + 1);
    world_free(w);
}

/* I7 A paused lane's messages wait, whatever its breaker says. */
TEST(shed, does_not_shed_while_it_is_paused)
{
    stg_world *w = world_new(6);

    world_lane(w, FRAIL)->shed_after = 20 * STG_S;
    world_script(w, 0, "503");
    stg_world_publish(w, 0, 100);
    stg_world_start(w);
    stg_world_run(w, world_after(w, STG_S));
    stg_world_pause(w, 0, true);
    stg_world_run(w, world_after(w, STG_HOUR));
    CHECK_U64(stg_world_sum(w).dead, 0);
    world_script(w, 0, "200");
    stg_world_pause(w, 0, false);
    stg_world_run(w, STG_NEVER);
    CHECK_U64(world_look(w, 0).delivered, 100);
    world_end(w);
}

/* -- retention ------------------------------------------------------------- */

TEST(shed, sheds_what_has_expired)
{
    stg_world *w = world_new(7);

    world_lane(w, FRAIL)->is_paused = true;
    world_lane(w, FRAIL);
    stg_world_publish(w, 0, 100);
    stg_world_start(w);
    stg_world_run(w, world_after(w, STG_S));
    CHECK_U64(stg_world_committed(w, 0), stg_world_position_at(w, 0));
    stg_world_retain(w, 0, stg_world_position_at(w, 60));
    stg_world_run(w, STG_NEVER);
    CHECK_U64(stg_world_sum(w).dead, 1);
    CHECK_U64(stg_world_dead_at(w, 0)->count, 60);
    CHECK_U64(stg_world_dead_at(w, 0)->position, stg_world_position_at(w, 0));
    CHECK_U64(stg_world_dead_at(w, 0)->last_position,
              stg_world_position_at(w, 59));
    CHECK_INT(stg_world_dead_at(w, 0)->reason, STG_SHED_PAUSED);
    CHECK_INT(stg_world_dead_at(w, 0)->outcome.fault, STG_FAULT_NONE);
    CHECK_U64(stg_world_committed(w, 0), stg_world_position_at(w, 60));
    CHECK_U64(world_look(w, 0).state, STG_LANE_PAUSED);
    CHECK(strstr(world_trace(w), "0: expiring\n") != NULL);
    stg_world_pause(w, 0, false);
    stg_world_run(w, STG_NEVER);
    CHECK_U64(world_look(w, 0).delivered, 40);
    world_end(w);
}

/* The retention ends for one lane: messages that wait in it now expire, later
 * ones do not. */
TEST(shed, sheds_what_a_lane_has_waited_for_too_long)
{
    stg_world *w = world_new(7);

    world_lane(w, FRAIL)->is_paused = true;
    world_lane(w, FRAIL);
    stg_world_publish(w, 0, 100);
    stg_world_start(w);
    stg_world_run(w, world_after(w, STG_S));
    CHECK(!stg_flow_retain_lane(stg_world_flow(w), 9, stg_world_now(w)));
    CHECK(!stg_flow_retain_lane(stg_world_flow(w), 1, stg_world_now(w)));
    CHECK(stg_flow_retain_lane(stg_world_flow(w), 0, stg_world_now(w)));
    CHECK(!stg_flow_retain_lane(stg_world_flow(w), 0,
                                stg_world_now(w))); // it does
    stg_world_publish(w, 0, 20);
    stg_world_run(w, STG_NEVER);
    CHECK_U64(stg_world_sum(w).dead, 1);
    CHECK_U64(stg_world_dead_at(w, 0)->count, 100);
    CHECK_INT(stg_world_dead_at(w, 0)->reason, STG_SHED_PAUSED);
    CHECK_U64(stg_world_committed(w, 0), stg_world_position_at(w, 100));
    stg_world_pause(w, 0, false);
    stg_world_run(w, STG_NEVER);
    CHECK_U64(world_look(w, 0).delivered, 20);
    CHECK_U64(world_look(w, 1).delivered, 120);
    world_end(w);
}

/* Behind the window it has to read them, to count them. */
TEST(shed, counts_what_has_expired_behind_the_window)
{
    stg_world *w = world_new(8);

    stg_world_options(w)->memory_max = 1 << 20;
    stg_world_set_size(w, 20000);
    world_lane(w, FRAIL)->is_paused = true;
    world_lane(w, FRAIL);
    stg_world_publish(w, 0, 300);
    stg_world_start(w);
    stg_world_run(w, world_after(w, 10 * STG_S));
    CHECK_U64(world_look(w, 1).delivered, 300);
    stg_world_retain(w, 0, stg_world_position_at(w, 250));
    stg_world_run(w, STG_NEVER);
    CHECK_U64(stg_world_sum_lane(w, 0).bulk_dead, 1);
    CHECK_U64(stg_world_sum_lane(w, 0).dead, 250);
    stg_world_pause(w, 0, false);
    stg_world_run(w, STG_NEVER);
    world_end(w);
}

/* What a lane has not got to, though it works, expires, too; what is in flight
 * ends as it ends. */
TEST(shed, sheds_a_slow_lane_up_to_retention)
{
    stg_world *w = world_new(9);

    world_lane(w, FRAIL)->in_flight_max = 2;
    world_script(w, 0, "200 200 200 hang hang 200");
    stg_world_publish(w, 0, 100);
    stg_world_start(w);
    stg_world_run(w, world_after(w, STG_S));
    CHECK_U64(world_look(w, 0).in_flight, 2);
    stg_world_retain(w, 0, stg_world_position_at(w, 80));
    stg_world_run(w, STG_NEVER);
    CHECK(stg_world_sum_lane(w, 0).dead >= 70);
    CHECK_U64(world_look(w, 0).delivered + stg_world_sum_lane(w, 0).dead, 100);
    CHECK_INT(stg_world_dead_at(w, 0)->reason, STG_SHED_SLOW);
    world_end(w);
}

/* The end of retention is for what was never tried: what is parked ends by its
 * policy. */
TEST(shed, ends_nothing_that_is_parked_at_the_end_of_retention)
{
    stg_world *w = world_new(12);

    world_lane(w, FRAIL)->shed_after = STG_NEVER;
    world_script(w, 0, "503 503 503 refused");
    stg_world_publish(w, 0, 100);
    stg_world_start(w);
    stg_world_run(w, world_after(w, STG_MIN));
    CHECK_U64(stg_world_sum(w).parked, 3);
    stg_world_retain(w, 0, stg_world_position_at(w, 60));
    stg_world_run(w, world_after(w, STG_MIN));
    CHECK_U64(stg_world_sum(w).parked, 3);
    CHECK_U64(stg_world_sum_lane(w, 0).dead, 57);
    world_script(w, 0, "200");
    stg_world_run(w, STG_NEVER);
    CHECK_U64(world_look(w, 0).delivered, 43);
    CHECK_U64(world_look(w, 0).dead, 57);
    world_end(w);
}

/* Each row has one cause: that of its time. */
TEST(shed, says_why_it_shed)
{
    stg_world *w = world_new(11);

    world_lane(w, FRAIL)->shed_after = STG_NEVER;
    world_script(w, 0, "503 503 503 refused");
    stg_world_publish(w, 0, 100);
    stg_world_start(w);
    stg_world_run(w, world_after(w, 5 * STG_S));
    stg_world_retain(w, 0, stg_world_position_at(w, 40));
    stg_world_run(w, world_after(w, STG_S));
    CHECK_U64(stg_world_sum_lane(w, 0).bulk_dead, 1);
    CHECK_INT(stg_world_dead_at(w, 0)->reason, STG_SHED_DOWN);
    CHECK_INT(stg_world_dead_at(w, 0)->outcome.fault, STG_FAULT_5XX);
    CHECK_U64(stg_world_dead_at(w, 0)->outcome.code, 503);
    stg_world_run(w, world_after(w, STG_MIN)); // other faults of probes
    stg_world_retain(w, 0, stg_world_position_at(w, 60));
    stg_world_run(w, world_after(w, STG_S));
    CHECK_U64(stg_world_sum_lane(w, 0).bulk_dead, 1);
    CHECK_INT(stg_world_dead_at(w, 0)->outcome.fault, STG_FAULT_5XX);
    stg_world_pause(w, 0, true);
    stg_world_retain(w, 0, stg_world_position_at(w, 80));
    stg_world_run(w, world_after(w, STG_S));
    CHECK_U64(stg_world_sum_lane(w, 0).bulk_dead, 2);
    CHECK_INT(stg_world_dead_at(w, 1)->reason, STG_SHED_PAUSED);
    stg_world_pause(w, 0, false);
    world_script(w, 0, "200");
    stg_world_run(w, STG_NEVER);
    world_end(w);
}

/* A lane that catches up whose ring is full has to wait, and nobody reads for it. */
TEST(shed, reads_nothing_for_a_full_ring)
{
    stg_world *w = world_new(10);
    stg_lane_options *o = world_lane(w,
                                     "fixed base=1s jitter=none attempts=3 "
                                     "deadline=none retry=timeout "
                                     "attempt-timeout=1h");
    uint64_t reads;

    o->in_flight_max = 2;
    stg_world_options(w)->memory_max = 1 << 20;
    stg_world_set_size(w, 10000);
    world_lane(w, FRAIL);
    world_script(w, 0, "200 200 200 hang 200");
    stg_world_publish(w, 0, 500);
    stg_world_start(w);
    stg_world_run(w, world_after(w, 20 * STG_S));
    CHECK(world_look(w, 0).is_catching_up);
    CHECK_U64(world_look(w, 0).in_flight, 1);
    reads = stg_world_sum(w).reads;
    stg_world_retain(w, 0, stg_world_position_at(w, 400));
    stg_world_run(w, world_after(w, STG_MIN));
    CHECK(stg_world_sum(w).reads < reads + 10);
    stg_world_run(w, STG_NEVER);
    world_end(w);
}

/* Of first to last nothing is missing in a row, for a replay of it sends all of
 * that: the probe that failed in between has a row of its own. */
TEST(shed, begins_another_row_behind_a_probe)
{
    stg_world *w = world_new(40);

    world_lane(w,
               "fixed base=1s jitter=none attempts=1 deadline=none "
               "breaker=2:10s-1m")
        ->shed_after = 0;
    world_script(w, 0, "500");
    stg_world_publish(w, 0, 20);
    stg_world_start(w);
    stg_world_run(w, world_after(w, 11 * STG_S)); // now a probe may start
    CHECK_U64(stg_world_sum_lane(w, 0).bulk_dead, 1);
    CHECK_U64(stg_world_sum_lane(w, 0).dead, 20);
    stg_world_publish(w, 0, 5);
    stg_world_run(w, world_after(w, STG_S));
    CHECK_U64(stg_world_sum_lane(w, 0).bulk_dead, 2);
    CHECK_U64(stg_world_sum_lane(w, 0).dead, 25);
    world_script(w, 0, "200");
    stg_world_run(w, STG_NEVER);
    world_end(w);
}
