/* Lanes behind the window: one reader serves them, a place at a time, in turn,
 * until they join again. */
#include "tests/flow/world.h"

/* 1 MiB of memory, messages of 10 kB, and lane 0 leaves the paused others
 * behind. */
static world *make_world(uint64_t seed, uint32_t paused, uint64_t messages)
{
    world *w = world_new(seed);

    world_options(w)->memory_max = 1 << 20;
    world_size(w, 10000);
    world_lane(w, STEADY);
    for (uint32_t i = 0; i < paused; i++)
        world_lane(w, STEADY)->is_paused = true;
    world_publish(w, messages);
    world_start(w);
    world_run(w, world_after(w, 10 * STG_S));
    CHECK_U64(world_look(w, 0).delivered, messages);
    return w;
}

TEST(laggards, are_served_from_the_log_and_join_again)
{
    world *w = make_world(1, 1, 500);

    CHECK_U64(world_catch_ups(w), 0);
    world_pause(w, 1, false);
    world_run(w, world_after(w, 50 * STG_MS));
    CHECK(world_look(w, 1).is_laggard);
    world_run(w, STG_NEVER);
    CHECK_U64(world_look(w, 1).delivered, 500);
    CHECK(!world_look(w, 1).is_laggard);
    CHECK(world_catch_ups(w) > 0);
    world_end(w, 1);
}

/* A log that cannot be reached is not one that has nothing: I1. */
TEST(laggards, pass_over_nothing_that_could_not_be_read)
{
    world *w = make_world(9, 2, 500);

    world_unread(w, 5);
    world_pause(w, 1, false);
    world_pause(w, 2, false);
    world_run(w, STG_NEVER);
    CHECK_U64(world_look(w, 1).delivered, 500);
    CHECK_U64(world_look(w, 2).delivered, 500);
    CHECK(!world_look(w, 1).is_laggard);
    world_end(w, 9);
}

/* Once it has joined it needs nobody. */
TEST(laggards, need_no_reader_once_they_have_joined)
{
    world *w = make_world(2, 1, 500);
    uint64_t catch_ups;

    world_pause(w, 1, false);
    world_run(w, STG_NEVER);
    catch_ups = world_catch_ups(w);
    world_publish(w, 100);
    world_run(w, STG_NEVER);
    CHECK_U64(world_look(w, 1).delivered, 600);
    CHECK_U64(world_catch_ups(w), catch_ups);
    world_end(w, 2);
}

/* What was read for one is for all whose place is inside. */
TEST(laggards, share_what_is_read_at_the_same_place)
{
    world *w = make_world(3, 1, 500), *other = make_world(3, 20, 500);

    world_pause(w, 1, false);
    world_run(w, STG_NEVER);
    for (uint32_t l = 1; l <= 20; l++)
        world_pause(other, l, false);
    world_run(other, STG_NEVER);
    // 20 times the lanes, and not many more reads.
    CHECK(world_catch_ups(other) < 3 * world_catch_ups(w));
    world_check_ends(w, 3);
    world_check_ends(other, 3);
    world_free(w);
    world_free(other);
}

static world_answer answer_slowly(world *w, uint32_t l, uint64_t position,
                                  uint64_t attempt)
{
    (void)w;
    (void)l;
    (void)position;
    (void)attempt;
    return (world_answer){stg_ok(), 200 * STG_MS, true};
}

/* Two at different places: neither waits for the other to be through. */
TEST(laggards, progress_at_different_places)
{
    world *w = make_world(4, 2, 400);

    world_leaf_is(w, 1, answer_slowly);
    world_leaf_is(w, 2, answer_slowly);
    world_pause(w, 1, false);
    world_run(w, world_after(w, 3 * STG_S)); // 1 is some way ahead of 2
    CHECK(world_look(w, 1).delivered > 20);
    world_pause(w, 2, false);
    for (uint32_t i = 0; i < 5; i++) {
        uint64_t one = world_look(w, 1).delivered;
        uint64_t two = world_look(w, 2).delivered;

        world_run(w, world_after(w, 500 * STG_MS));
        CHECK_FROM(i, world_look(w, 1).delivered > one ||
                          world_look(w, 1).delivered == 400);
        CHECK_FROM(i, world_look(w, 2).delivered > two);
    }
    world_run(w, STG_NEVER);
    world_end(w, 4);
}

static world_answer answer_at_once(world *w, uint32_t l, uint64_t position,
                                   uint64_t attempt)
{
    (void)w;
    (void)l;
    (void)position;
    (void)attempt;
    return (world_answer){stg_ok(), 0, true};
}

/* In turn: the lowest, though it always wants more, is not read for alone. */
TEST(laggards, take_turns)
{
    world *w = make_world(8, 2, 1500);
    uint64_t one;

    world_trace_off(w); // from now on reads take some time
    world_leaf_is(w, 1, answer_slowly);
    world_leaf_is(w, 2, answer_at_once);
    world_pause(w, 1, false);
    world_run(w, world_after(w, 2 * STG_S));
    world_leaf_is(w, 1, answer_at_once);
    world_run(w, world_after(w, 60 * STG_MS));
    one = world_look(w, 1).delivered;
    CHECK(one < 1000);
    world_pause(w, 2, false);
    world_run(w, world_after(w, 60 * STG_MS));
    CHECK(world_look(w, 2).delivered > 0);
    CHECK(world_look(w, 1).delivered > one + 20);
    world_run(w, STG_NEVER);
    world_end(w, 8);
}

/* I8 The main lanes do not notice. */
TEST(laggards, do_not_slow_the_others)
{
    uint64_t delivered[2];

    for (uint32_t run = 0; run < 2; run++) {
        world *w = make_world(5, 10, 500);

        for (uint32_t l = 1; l <= 10 && run == 1; l++) {
            world_leaf_is(w, l, answer_slowly);
            world_pause(w, l, false);
        }
        world_run(w, world_after(w, STG_S));
        for (uint32_t i = 0; i < 20; i++) {
            world_publish(w, 20);
            world_run(w, world_after(w, 50 * STG_MS));
        }
        delivered[run] = world_look(w, 0).delivered;
        world_free(w);
    }
    CHECK_U64(delivered[1], delivered[0]);
}

/* A laggard that may not send (gated, held, paused) is not read for. */
TEST(laggards, are_not_read_for_while_they_cannot_send)
{
    world *w = make_world(6, 1, 300);
    uint64_t catch_ups;

    world_script(w, 1, "200 200 200 200 429+60 200");
    world_pause(w, 1, false);
    world_run(w, world_after(w, 10 * STG_S));
    catch_ups = world_catch_ups(w);
    world_run(w, world_after(w, 40 * STG_S));
    CHECK_U64(world_catch_ups(w), catch_ups);
    world_run(w, STG_NEVER);
    CHECK_U64(world_look(w, 1).delivered, 300);
    world_end(w, 6);
}

/* In every partition by itself. */
TEST(laggards, are_behind_in_one_partition_and_not_in_another)
{
    world *w = world_new(7);

    world_options(w)->memory_max = 1 << 20;
    world_size(w, 10000);
    world_partitions(w, 3);
    world_lane(w, STEADY);
    world_lane(w, STEADY)->is_paused = true;
    world_publish_to(w, 0, 5);
    world_publish_to(w, 1, 400);
    world_publish_to(w, 2, 50);
    world_start(w);
    world_run(w, world_after(w, 10 * STG_S));
    world_pause(w, 1, false);
    world_run(w, STG_NEVER);
    CHECK_U64(world_look(w, 1).delivered, 455);
    CHECK(world_catch_ups(w) > 0);
    world_end(w, 7);
}

/* The base does not fall when the window has moved on. */
TEST(laggards, keep_their_place_when_the_window_leaves_them)
{
    for (uint64_t seed = 0; seed < seeds(20); seed++) {
        world *w = make_world(seed, 1, 50);
        uint64_t base = world_look(w, 1).base;

        world_publish(w, 300);
        world_run(w, world_after(w, 10 * STG_S));
        CHECK_FROM(seed, world_look(w, 1).base >= base);
        world_crash(w, 0);
        world_pause(w, 1, false);
        world_run(w, STG_NEVER);
        world_end(w, seed);
    }
}
