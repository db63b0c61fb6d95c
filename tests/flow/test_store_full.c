/* A store without room: first the cursors alone, for they make room; then the
 * rows. Lanes with rows gate, the others go on. */
#include <string.h>

#include "tests/flow/world.h"

TEST(store_full, gates_the_lanes_with_rows_and_no_others)
{
    stg_world *w = world_new(1);

    world_lane(w, STEADY);
    world_lane(w, STEADY);
    world_script(w, 0, "503");
    stg_world_publish(w, 0, 300);
    stg_world_set_store_room(w, 0);
    stg_world_start(w);
    stg_world_run(w, world_after(w, 10 * STG_S));
    CHECK_U64(world_look(w, 0).state, STG_LANE_THROTTLED);
    CHECK(stg_world_sum_lane(w, 0).starts < 10);
    CHECK_U64(world_look(w, 1).delivered, 300);
    CHECK_U64(stg_world_sum(w).parked, 0);
    CHECK(strstr(world_trace(w), "store-full\n") != NULL);
    stg_world_set_store_room(w, UINT64_MAX);
    stg_world_run(w, STG_NEVER);
    CHECK(strstr(world_trace(w), "store-space-ok\n") != NULL);
    CHECK_U64(world_look(w, 0).dead, 300);
    CHECK_U64(world_look(w, 0).state, STG_LANE_LIVE);
    world_end(w);
}

/* The cursors of the lanes that are well are durable, and what they allow. */
TEST(store_full, stores_the_cursors_all_the_same)
{
    stg_world *w = world_new(2);

    world_lane(w, STEADY);
    world_lane(w, STEADY);
    world_script(w, 0, "200 200 200 200 200 200 200 503");
    stg_world_publish(w, 0, 300);
    stg_world_set_store_room(w, 0);
    stg_world_start(w);
    stg_world_run(w, world_after(w, 10 * STG_S));
    // Up to below the first row that did not fit.
    CHECK_U64(stg_world_committed(w, 0), stg_world_position_at(w, 7));
    stg_world_crash(w, 0);
    stg_world_set_store_room(w, UINT64_MAX);
    stg_world_run(w, STG_NEVER);
    for (uint64_t i = 0; i < 300; i++) // I16
        CHECK_FROM(
            i, world_receipt_of(w, 1, stg_world_position_at(w, i))->processed ==
                   1);
    world_end(w);
}

/* The cursors of its other partitions, too. */
TEST(store_full, takes_rows_as_soon_as_there_is_room)
{
    for (uint64_t room = 0; room < 12; room++) {
        stg_world *w = world_new(3);

        stg_world_set_partitions(w, 2);
        world_lane(w, STEADY);
        world_script(w, 0, "503");
        stg_world_publish(w, 0, 30);
        stg_world_publish(w, 1, 30);
        stg_world_set_store_room(w, room);
        stg_world_start(w);
        stg_world_run(w, world_after(w, 5 * STG_S));
        CHECK_FROM(room, stg_world_sum(w).parked <= room);
        for (uint32_t i = 0; i < 5; i++) {
            stg_world_set_store_room(w, 4);
            stg_world_run(w, world_after(w, 3 * STG_S));
        }
        stg_world_set_store_room(w, UINT64_MAX);
        stg_world_run(w, STG_NEVER);
        world_end(w);
    }
}

/* At the stop what healthy lanes delivered is stored, even now. */
TEST(store_full, stores_the_last_cursors_at_the_stop)
{
    for (stg_ns more = 0; more < 20; more++) {
        stg_world *w = world_new(4);

        world_lane(w, STEADY);
        world_lane(w, STEADY);
        world_script(w, 0, "503");
        stg_world_publish(w, 0, 100);
        stg_world_set_store_room(w, 0);
        stg_world_start(w);
        stg_world_run(w, world_after(w, 5 * STG_S + more * 100 * STG_MS));
        stg_world_publish(w, 0, 100);
        stg_world_run(w, world_after(w, 90 * STG_MS));
        CHECK_FROM(more, !stg_world_stop(w)); // a row has no room
        stg_world_set_store_room(w, UINT64_MAX);
        stg_world_restart(w, 0);
        stg_world_run(w, STG_NEVER);
        for (uint64_t i = 0; i < 200; i++)
            CHECK_FROM(more, world_receipt_of(w, 1, stg_world_position_at(w, i))
                                     ->processed == 1);
        world_end(w);
    }
}

/* Nothing waits for room any more when what had none is another hub's. */
TEST(store_full, ends_with_the_partition_whose_rows_had_no_room)
{
    stg_world *w = world_new(6);

    stg_world_join_group(w, false);
    world_lane(w, STEADY);
    world_script(w, 0, "503");
    stg_world_publish(w, 0, 20);
    stg_world_set_store_room(w, 0);
    stg_world_start(w);
    stg_world_assign(w, 0);
    stg_world_run(w, world_after(w, 10 * STG_S));
    CHECK_U64(world_look(w, 0).state, STG_LANE_THROTTLED);
    stg_world_lose(w, 0);
    stg_world_run(w, world_after(w, 2 * STG_S));
    CHECK(strstr(world_trace(w), "store-space-ok\n") != NULL);
    CHECK_U64(world_look(w, 0).state, STG_LANE_LIVE);
    stg_world_set_store_room(w, UINT64_MAX);
    stg_world_assign(w, 0);
    stg_world_run(w, STG_NEVER);
    world_end(w);
}

/* -- a disk that is full ---------------------------------------------------- */

static unsigned count_lines(stg_world *w, const char *what)
{
    unsigned count = 0;

    for (const char *at = world_trace(w); (at = strstr(at, what)) != NULL;
         at += strlen(what))
        count++;
    return count;
}

/* A lane that is well has cursors to store, and no row. */
static stg_world *world_on_a_full_disk(uint64_t seed, const char *answers)
{
    stg_world *w = world_new(seed);

    world_lane(w, STEADY);
    world_lane(w, STEADY);
    world_script(w, 0, answers);
    stg_world_fill_store(w, true);
    stg_world_publish(w, 0, 300);
    stg_world_start(w);
    stg_world_run(w, world_after(w, 10 * STG_S));
    return w;
}

TEST(store_full, tries_once_a_second_where_not_even_cursors_fit)
{
    for (int with_rows = 0; with_rows < 2; with_rows++) {
        stg_world *w = world_on_a_full_disk(7, with_rows ? "503" : "200");

        // A group without its rows is a try of its own.
        CHECK_FROM(with_rows, stg_world_sum(w).groups <= 24);
        CHECK_FROM(with_rows, count_lines(w, "store-full\n") == 1);
        CHECK_FROM(with_rows, count_lines(w, "store-space-ok\n") == 0);
        CHECK_U64(stg_world_committed(w, 0), 0);
        stg_world_fill_store(w, false);
        stg_world_run(w, STG_NEVER);
        CHECK_FROM(with_rows, count_lines(w, "store-space-ok\n") == 1);
        world_end(w);
    }
}

/* The end comes with one more try, and says that not all is stored. */
TEST(store_full, stops_where_not_even_cursors_fit)
{
    for (int with_rows = 0; with_rows < 2; with_rows++) {
        stg_world *w = world_on_a_full_disk(8, with_rows ? "503" : "200");
        uint64_t groups = stg_world_sum(w).groups;

        CHECK_FROM(with_rows, !stg_world_stop(w));
        CHECK_FROM(with_rows, stg_world_sum(w).groups <= groups + 3);
        stg_world_fill_store(w, false);
        stg_world_restart(w, 0);
        stg_world_run(w, STG_NEVER);
        world_end(w);
    }
}

/* -- answers that got lost ------------------------------------------------- */

TEST(store_full, sends_the_same_group_again_after_no_answer)
{
    for (uint32_t lost = 1; lost < 20; lost++) {
        stg_world *w = world_new(lost);

        world_lane(w, STEADY);
        world_script(w, 0, "503 404 200 503 503 200");
        stg_world_publish(w, 0, 100);
        stg_world_lose_answers(w, lost);
        stg_world_start(w);
        stg_world_run(w, STG_NEVER);
        CHECK_FROM(lost, stg_world_sum(w).groups > lost);
        stg_world_check_ends(w); // nothing is counted twice
        world_free(w);
    }
}

/* Nothing counts before an answer: no retry, no commit. */
TEST(store_full, counts_nothing_before_an_answer)
{
    stg_world *w = world_new(5);

    world_lane(w, STEADY);
    world_script(w, 0, "503 200");
    stg_world_publish(w, 0, 50);
    stg_world_lose_answers(w, UINT32_MAX);
    stg_world_start(w);
    stg_world_run(w, world_after(w, 20 * STG_S));
    CHECK_U64(stg_world_committed(w, 0), 0);
    CHECK_U64(world_receipt_of(w, 0, stg_world_position_at(w, 0))->attempts, 1);
    CHECK_U64(world_look(w, 0).parked, 0);
    CHECK_U64(world_look(w, 0).waiting, 1);
    CHECK_U64(world_look(w, 0).delivered, 49);
    stg_world_lose_answers(w, 0);
    stg_world_run(w, STG_NEVER);
    world_end(w);
}
