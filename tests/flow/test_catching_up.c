/* Lanes behind the window: one reader serves them, a place at a time, in turn,
 * until they join again. */
#include "tests/flow/world.h"

/* 1 MiB of memory, messages of 10 kB, and lane 0 leaves the paused others
 * behind. */
static stg_world *make_world(uint64_t seed, uint32_t paused, uint64_t messages)
{
    stg_world *w = world_new(seed);

    stg_world_options(w)->memory_max = 1 << 20;
    stg_world_set_size(w, 10000);
    world_lane(w, STEADY);
    for (uint32_t i = 0; i < paused; i++)
        world_lane(w, STEADY)->is_paused = true;
    stg_world_publish(w, 0, messages);
    stg_world_start(w);
    stg_world_run(w, world_after(w, 10 * STG_S));
    CHECK_U64(world_look(w, 0).delivered, messages);
    return w;
}

TEST(catching_up, are_served_from_the_log_and_join_again)
{
    stg_world *w = make_world(1, 1, 500);

    CHECK_U64(stg_world_sum(w).catch_ups, 0);
    stg_world_pause(w, 1, false);
    stg_world_run(w, world_after(w, 50 * STG_MS));
    CHECK(world_look(w, 1).is_catching_up);
    stg_world_run(w, STG_NEVER);
    CHECK_U64(world_look(w, 1).delivered, 500);
    CHECK(!world_look(w, 1).is_catching_up);
    CHECK(stg_world_sum(w).catch_ups > 0);
    world_end(w);
}

/* A log that cannot be reached is not one that has nothing: I1. */
TEST(catching_up, pass_over_nothing_that_could_not_be_read)
{
    stg_world *w = make_world(9, 2, 500);

    stg_world_fail_reads(w, 5);
    stg_world_pause(w, 1, false);
    stg_world_pause(w, 2, false);
    stg_world_run(w, STG_NEVER);
    CHECK_U64(world_look(w, 1).delivered, 500);
    CHECK_U64(world_look(w, 2).delivered, 500);
    CHECK(!world_look(w, 1).is_catching_up);
    world_end(w);
}

/* Once it has joined it needs nobody. */
TEST(catching_up, need_no_reader_once_they_have_joined)
{
    stg_world *w = make_world(2, 1, 500);
    uint64_t catch_ups;

    stg_world_pause(w, 1, false);
    stg_world_run(w, STG_NEVER);
    catch_ups = stg_world_sum(w).catch_ups;
    stg_world_publish(w, 0, 100);
    stg_world_run(w, STG_NEVER);
    CHECK_U64(world_look(w, 1).delivered, 600);
    CHECK_U64(stg_world_sum(w).catch_ups, catch_ups);
    world_end(w);
}

/* What was read for one is for all whose place is inside. */
TEST(catching_up, share_what_is_read_at_the_same_place)
{
    stg_world *w = make_world(3, 1, 500), *other = make_world(3, 20, 500);

    stg_world_pause(w, 1, false);
    stg_world_run(w, STG_NEVER);
    for (uint32_t l = 1; l <= 20; l++)
        stg_world_pause(other, l, false);
    stg_world_run(other, STG_NEVER);
    // 20 times the lanes, and not many more reads.
    CHECK(stg_world_sum(other).catch_ups < 3 * stg_world_sum(w).catch_ups);
    stg_world_check_ends(w);
    stg_world_check_ends(other);
    world_free(w);
    world_free(other);
}

static stg_world_answer answer_slowly(stg_world *w, uint32_t l,
                                      uint64_t position, uint64_t attempt)
{
    (void)w;
    (void)l;
    (void)position;
    (void)attempt;
    return (stg_world_answer){stg_ok(), 200 * STG_MS, true};
}

/* Two at different places: neither waits for the other to be through. */
TEST(catching_up, progress_at_different_places)
{
    stg_world *w = make_world(4, 2, 400);

    stg_world_set_target(w, 1, answer_slowly);
    stg_world_set_target(w, 2, answer_slowly);
    stg_world_pause(w, 1, false);
    stg_world_run(w, world_after(w, 3 * STG_S)); // 1 is some way ahead of 2
    CHECK(world_look(w, 1).delivered > 20);
    stg_world_pause(w, 2, false);
    for (uint32_t i = 0; i < 5; i++) {
        uint64_t one = world_look(w, 1).delivered;
        uint64_t two = world_look(w, 2).delivered;

        stg_world_run(w, world_after(w, 500 * STG_MS));
        CHECK_FROM(i, world_look(w, 1).delivered > one ||
                          world_look(w, 1).delivered == 400);
        CHECK_FROM(i, world_look(w, 2).delivered > two);
    }
    stg_world_run(w, STG_NEVER);
    world_end(w);
}

static stg_world_answer answer_at_once(stg_world *w, uint32_t l,
                                       uint64_t position, uint64_t attempt)
{
    (void)w;
    (void)l;
    (void)position;
    (void)attempt;
    return (stg_world_answer){stg_ok(), 0, true};
}

/* In turn: the lowest, though it always wants more, is not read for alone. */
TEST(catching_up, take_turns)
{
    stg_world *w = make_world(8, 2, 1500);
    uint64_t one;

    world_trace_off(w); // from now on reads take some time
    stg_world_set_target(w, 1, answer_slowly);
    stg_world_set_target(w, 2, answer_at_once);
    stg_world_pause(w, 1, false);
    stg_world_run(w, world_after(w, 2 * STG_S));
    stg_world_set_target(w, 1, answer_at_once);
    stg_world_run(w, world_after(w, 60 * STG_MS));
    one = world_look(w, 1).delivered;
    CHECK(one < 1000);
    stg_world_pause(w, 2, false);
    stg_world_run(w, world_after(w, 60 * STG_MS));
    CHECK(world_look(w, 2).delivered > 0);
    CHECK(world_look(w, 1).delivered > one + 20);
    stg_world_run(w, STG_NEVER);
    world_end(w);
}

/* I8 The main lanes do not notice. */
TEST(catching_up, do_not_slow_the_others)
{
    uint64_t delivered[2];

    for (uint32_t run = 0; run < 2; run++) {
        stg_world *w = make_world(5, 10, 500);

        for (uint32_t l = 1; l <= 10 && run == 1; l++) {
            stg_world_set_target(w, l, answer_slowly);
            stg_world_pause(w, l, false);
        }
        stg_world_run(w, world_after(w, STG_S));
        for (uint32_t i = 0; i < 20; i++) {
            stg_world_publish(w, 0, 20);
            stg_world_run(w, world_after(w, 50 * STG_MS));
        }
        delivered[run] = world_look(w, 0).delivered;
        world_free(w);
    }
    CHECK_U64(delivered[1], delivered[0]);
}

/* A lane that catches up that may not send (gated, held, paused) is not read for. */
TEST(catching_up, are_not_read_for_while_they_cannot_send)
{
    stg_world *w = make_world(6, 1, 300);
    uint64_t catch_ups;

    world_script(w, 1, "200 200 200 200 429+60 200");
    stg_world_pause(w, 1, false);
    stg_world_run(w, world_after(w, 10 * STG_S));
    catch_ups = stg_world_sum(w).catch_ups;
    stg_world_run(w, world_after(w, 40 * STG_S));
    CHECK_U64(stg_world_sum(w).catch_ups, catch_ups);
    stg_world_run(w, STG_NEVER);
    CHECK_U64(world_look(w, 1).delivered, 300);
    world_end(w);
}

/* In every partition by itself. */
TEST(catching_up, are_behind_in_one_partition_and_not_in_another)
{
    stg_world *w = world_new(7);

    stg_world_options(w)->memory_max = 1 << 20;
    stg_world_set_size(w, 10000);
    stg_world_set_partitions(w, 3);
    world_lane(w, STEADY);
    world_lane(w, STEADY)->is_paused = true;
    stg_world_publish(w, 0, 5);
    stg_world_publish(w, 1, 400);
    stg_world_publish(w, 2, 50);
    stg_world_start(w);
    stg_world_run(w, world_after(w, 10 * STG_S));
    stg_world_pause(w, 1, false);
    stg_world_run(w, STG_NEVER);
    CHECK_U64(world_look(w, 1).delivered, 455);
    CHECK(stg_world_sum(w).catch_ups > 0);
    world_end(w);
}

/* The base does not fall when the window has moved on. */
TEST(catching_up, keep_their_place_when_the_window_leaves_them)
{
    for (uint64_t seed = 0; seed < seeds(20); seed++) {
        stg_world *w = make_world(seed, 1, 50);
        uint64_t base = world_look(w, 1).base;

        stg_world_publish(w, 0, 300);
        stg_world_run(w, world_after(w, 10 * STG_S));
        CHECK_FROM(seed, world_look(w, 1).base >= base);
        stg_world_crash(w, 0);
        stg_world_pause(w, 1, false);
        stg_world_run(w, STG_NEVER);
        world_end(w);
    }
}
