/* The books (I17): what was routed is delivered, dead, cancelled, parked,
 * waiting or in flight; the world adds up after each event. Here: what they
 * count. */
#include "tests/flow/world.h"

TEST(books, show_where_everything_is)
{
    stg_world *w = world_new(1);
    stg_lane_view v;

    world_lane(w, STEADY)->in_flight_max = 1;
    world_script(w, 0, "200 404 503 hang");
    stg_world_publish(w, 0, 10);
    stg_world_start(w);
    stg_world_run(w, world_after(w, 500 * STG_MS));
    v = world_look(w, 0);
    CHECK_U64(v.routed, 4);
    CHECK_U64(v.delivered, 1);
    CHECK_U64(v.dead, 1);
    CHECK_U64(v.parked, 1);
    CHECK_U64(v.in_flight, 1);
    CHECK_U64(v.waiting, 0);
    CHECK_U64(v.cancelled, 0);
    CHECK_U64(v.next, stg_world_position_at(w, 3) + 1);
    CHECK_U64(v.base, stg_world_position_at(w, 3));
    CHECK_U64(v.retries, 0);
    world_free(w);
}

/* A row that is tried again is in flight, and not parked. */
TEST(books, count_a_row_once)
{
    stg_world *w = world_new(1);
    stg_lane_view v;

    world_lane(w, STEADY);
    world_script(w, 0, "503 hang 200");
    stg_world_publish(w, 0, 1);
    stg_world_start(w);
    stg_world_run(w, world_after(w, 2 * STG_S));
    v = world_look(w, 0);
    CHECK_U64(v.in_flight, 1);
    CHECK_U64(v.parked, 0);
    CHECK_U64(v.routed, 1);
    CHECK_U64(v.retries, 1);
    stg_world_run(w, STG_NEVER);
    world_end(w);
}

/* What a filter refuses never enters them. */
TEST(books, leave_out_what_a_filter_refuses)
{
    stg_world *w = world_new(2);
    uint64_t routed = 0;

    world_lane(w, STEADY);
    stg_world_set_filter(w, 0, 3);
    world_lane(w, STEADY);
    stg_world_set_filter(w, 1, 1); // wants nothing
    world_script(w, 0, "200 503 404 200");
    stg_world_publish(w, 0, 100);
    for (uint64_t i = 0; i < 100; i++)
        routed += stg_world_position_at(w, i) % 3 != 0;
    stg_world_start(w);
    stg_world_run(w, STG_NEVER);
    CHECK_U64(world_look(w, 0).routed, routed);
    CHECK_U64(world_look(w, 1).routed, 0);
    CHECK_U64(stg_world_sum_lane(w, 1).starts, 0);
    CHECK_U64(world_look(w, 1).base, world_look(w, 1).next);
    CHECK_U64(stg_world_committed(w, 0), stg_world_position_at(w, 99) + 1);
    world_end(w);
}

/* Shed, expired and cancelled: only what was routed is counted. */
TEST(books, leave_it_out_of_range_rows_too)
{
    stg_world *w = world_new(3);
    uint64_t routed[3] = {0};

    for (uint32_t l = 0; l < 3; l++) {
        world_lane(w,
                   "fixed base=1s jitter=none attempts=1 deadline=none "
                   "retry=refused breaker=1:1h-1h")
            ->shed_after = STG_MIN;
        stg_world_set_filter(w, l, l + 2);
    }
    stg_world_publish(w, 0, 200);
    for (uint64_t i = 0; i < 200; i++)
        for (uint32_t l = 0; l < 3; l++)
            routed[l] += stg_world_position_at(w, i) % (l + 2) != 0;
    world_script(w, 0, "refused");
    stg_world_start(w);
    stg_world_pause(w, 1, true);
    stg_world_pause(w, 2, true);
    stg_world_run(w, world_after(w, STG_S));
    stg_world_retain(w, 0, UINT64_MAX);
    stg_world_remove(w, 2);
    stg_world_run(w, STG_NEVER);
    for (uint32_t l = 0; l < 3; l++)
        CHECK_FROM(l, stg_world_sum_lane(w, l).dead == routed[l]);
    world_free(w);
}

/* The totals are stored with the cursor. */
TEST(books, hold_over_a_restart)
{
    stg_world *w = world_new(4);
    stg_lane_view before, after;

    world_lane(w, STEADY);
    world_script(w, 0, "200 200 404 503 200 404 503");
    stg_world_publish(w, 0, 50);
    stg_world_start(w);
    stg_world_run(w, world_after(w, 900 * STG_MS));
    CHECK(stg_world_stop(w));
    before = world_look(w, 0);
    stg_world_restart(w, 0);
    after = world_look(w, 0);
    CHECK_U64(after.delivered, before.delivered);
    CHECK_U64(after.dead, before.dead);
    CHECK_U64(after.parked + after.in_flight, before.parked);
    CHECK_U64(after.routed - after.waiting, before.routed - before.waiting);
    world_script(w, 0, "200");
    stg_world_run(w, STG_NEVER);
    world_end(w);
}

/* The watermark: the lowest durable cursor, and never beyond it (I2). */
TEST(books, let_the_log_go_as_far_as_the_slowest_lane)
{
    stg_world *w = world_new(5);

    world_lane(w, STEADY);
    world_lane(w, STEADY)->in_flight_max = 1;
    world_script(w, 1, "200 200 200 hang");
    stg_world_publish(w, 0, 100);
    stg_world_start(w);
    stg_world_run(w, world_after(w, STG_S));
    CHECK_U64(stg_world_committed(w, 0), stg_world_position_at(w, 3));
    stg_world_remove(w, 1);
    stg_world_run(w, STG_NEVER);
    CHECK_U64(stg_world_committed(w, 0), stg_world_position_at(w, 99) + 1);
    world_free(w);
}
