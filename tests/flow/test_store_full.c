/* A store without room: first the cursors alone, for they make room; then the
 * rows. Lanes with rows gate, the others go on. */
#include "tests/flow/world.h"

TEST(store_full, gates_the_lanes_with_rows_and_no_others)
{
    world *w = world_new(1);

    world_lane(w, STEADY);
    world_lane(w, STEADY);
    world_script(w, 0, "503");
    world_publish(w, 300);
    world_store_room(w, 0);
    world_start(w);
    world_run(w, world_after(w, 10 * STG_S));
    CHECK_U64(world_look(w, 0).state, STG_LANE_THROTTLED);
    CHECK(world_starts(w, 0) < 10);
    CHECK_U64(world_look(w, 1).delivered, 300);
    CHECK_U64(world_parked(w), 0);
    CHECK(strstr(world_trace(w), "store-full\n") != NULL);
    world_store_room(w, UINT64_MAX);
    world_run(w, STG_NEVER);
    CHECK(strstr(world_trace(w), "store-space-ok\n") != NULL);
    CHECK_U64(world_look(w, 0).dead, 300);
    CHECK_U64(world_look(w, 0).state, STG_LANE_LIVE);
    world_end(w, 1);
}

/* The cursors of the lanes that are well are durable, and what they allow. */
TEST(store_full, stores_the_cursors_all_the_same)
{
    world *w = world_new(2);

    world_lane(w, STEADY);
    world_lane(w, STEADY);
    world_script(w, 0, "200 200 200 200 200 200 200 503");
    world_publish(w, 300);
    world_store_room(w, 0);
    world_start(w);
    world_run(w, world_after(w, 10 * STG_S));
    // Up to below the first row that did not fit.
    CHECK_U64(world_committed(w, 0), world_position(w, 7));
    world_crash(w, 0);
    world_store_room(w, UINT64_MAX);
    world_run(w, STG_NEVER);
    for (uint64_t i = 0; i < 300; i++) // I16
        CHECK_FROM(i, world_receipt_of(w, 1, world_position(w, i))->processed ==
                          1);
    world_end(w, 2);
}

/* The cursors of its other partitions, too. */
TEST(store_full, takes_rows_as_soon_as_there_is_room)
{
    for (uint64_t room = 0; room < 12; room++) {
        world *w = world_new(3);

        world_partitions(w, 2);
        world_lane(w, STEADY);
        world_script(w, 0, "503");
        world_publish(w, 30);
        world_publish_to(w, 1, 30);
        world_store_room(w, room);
        world_start(w);
        world_run(w, world_after(w, 5 * STG_S));
        CHECK_FROM(room, world_parked(w) <= room);
        for (uint32_t i = 0; i < 5; i++) {
            world_store_room(w, 4);
            world_run(w, world_after(w, 3 * STG_S));
        }
        world_store_room(w, UINT64_MAX);
        world_run(w, STG_NEVER);
        world_end(w, room);
    }
}

/* At the stop what healthy lanes delivered is stored, even now. */
TEST(store_full, stores_the_last_cursors_at_the_stop)
{
    for (stg_ns more = 0; more < 20; more++) {
        world *w = world_new(4);

        world_lane(w, STEADY);
        world_lane(w, STEADY);
        world_script(w, 0, "503");
        world_publish(w, 100);
        world_store_room(w, 0);
        world_start(w);
        world_run(w, world_after(w, 5 * STG_S + more * 100 * STG_MS));
        world_publish(w, 100);
        world_run(w, world_after(w, 90 * STG_MS));
        CHECK_FROM(more, !world_stop(w)); // a row has no room
        world_store_room(w, UINT64_MAX);
        world_restart(w, 0);
        world_run(w, STG_NEVER);
        for (uint64_t i = 0; i < 200; i++)
            CHECK_FROM(
                more,
                world_receipt_of(w, 1, world_position(w, i))->processed == 1);
        world_end(w, more);
    }
}

/* -- answers that got lost ------------------------------------------------- */

TEST(store_full, sends_the_same_group_again_after_no_answer)
{
    for (uint32_t lost = 1; lost < 20; lost++) {
        world *w = world_new(lost);

        world_lane(w, STEADY);
        world_script(w, 0, "503 404 200 503 503 200");
        world_publish(w, 100);
        world_store_unknown(w, lost);
        world_start(w);
        world_run(w, STG_NEVER);
        CHECK_FROM(lost, world_groups(w) > lost);
        world_check_ends(w, lost); // nothing is counted twice
        world_free(w);
    }
}

/* Nothing counts before an answer: no retry, no commit. */
TEST(store_full, counts_nothing_before_an_answer)
{
    world *w = world_new(5);

    world_lane(w, STEADY);
    world_script(w, 0, "503 200");
    world_publish(w, 50);
    world_store_unknown(w, UINT32_MAX);
    world_start(w);
    world_run(w, world_after(w, 20 * STG_S));
    CHECK_U64(world_committed(w, 0), 0);
    CHECK_U64(world_receipt_of(w, 0, world_position(w, 0))->attempts, 1);
    CHECK_U64(world_look(w, 0).parked, 0);
    CHECK_U64(world_look(w, 0).waiting, 1);
    CHECK_U64(world_look(w, 0).delivered, 49);
    world_store_unknown(w, 0);
    world_run(w, STG_NEVER);
    world_end(w, 5);
}
