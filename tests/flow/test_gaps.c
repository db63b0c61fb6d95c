/* Gaps at the end of a partition: markers of transactions, transactions that
 * were aborted, records that are no messages. Lanes pass them without a
 * delivery, and so does what is committed. */
#include "tests/flow/world.h"

/* Two lanes that have all of five messages. */
static world *make_world(void)
{
    world *w = world_new(1);

    world_merge(w, true);
    world_lane(w, STEADY);
    world_lane(w, STEADY);
    world_publish(w, 5);
    world_start(w);
    world_give(w, 0);
    world_run(w, STG_NEVER);
    return w;
}

static uint64_t end_of(world *w, uint64_t gap)
{
    return world_position(w, world_published(w) - 1) + 1 + gap;
}

static void run_for(world *w, stg_ns wait)
{
    world_run(w, world_after(w, wait));
}

TEST(gaps, are_committed)
{
    world *w = make_world();

    CHECK_U64(world_committed(w, 0), end_of(w, 0));
    world_gap(w, 0, 1000);
    world_run(w, STG_NEVER);
    CHECK_U64(world_committed(w, 0), end_of(w, 1000));
    CHECK_U64(stg_flow_wake_at(world_flow(w)), STG_NEVER); // I20 it sleeps
    world_end(w, 1);
}

/* Each transaction has a marker. */
TEST(gaps, cost_one_checkpoint_a_second)
{
    world *w = make_world();
    uint64_t groups = world_groups(w);

    for (int i = 0; i < 100; i++) {
        world_gap(w, 0, 1);
        run_for(w, 100 * STG_MS);
    }
    world_run(w, STG_NEVER);
    CHECK(world_groups(w) - groups >= 9);
    CHECK(world_groups(w) - groups <= 11);
    CHECK_U64(world_committed(w, 0), end_of(w, 100));
    world_end(w, 1);
}

/* A lane that takes nothing stands at the end of what was read, too. */
TEST(gaps, are_passed_by_a_lane_that_is_paused)
{
    world *w = make_world();

    world_pause(w, 1, true);
    world_gap(w, 0, 10);
    world_run(w, STG_NEVER);
    CHECK_U64(world_committed(w, 0), end_of(w, 10));
    world_pause(w, 1, false);
    world_end(w, 1);
}

/* One that has messages before them still has these. */
TEST(gaps, are_not_passed_before_what_waits)
{
    world *w = make_world();
    uint64_t before = end_of(w, 0);

    world_pause(w, 1, true);
    world_publish(w, 1);
    run_for(w, 2 * STG_S);
    world_gap(w, 0, 10);
    world_run(w, STG_NEVER);
    CHECK(world_committed(w, 0) >= before);
    CHECK(world_committed(w, 0) <= world_position(w, 5));
    world_pause(w, 1, false);
    world_run(w, STG_NEVER);
    CHECK_U64(world_committed(w, 0), end_of(w, 10));
    world_end(w, 1);
}

/* Who has the partition next begins behind them. */
TEST(gaps, are_committed_by_a_partition_that_goes)
{
    world *w = make_world();

    world_gap(w, 0, 10);
    world_take(w, 0, STG_S);
    run_for(w, 500 * STG_MS);
    CHECK(world_is_away(w, 0));
    CHECK_U64(world_committed(w, 0), end_of(w, 10));
    world_give(w, 0);
    world_run(w, STG_NEVER);
    world_end(w, 1);
}

TEST(gaps, are_committed_by_a_stop)
{
    world *w = make_world();

    world_gap(w, 0, 10);
    CHECK(world_stop(w));
    CHECK_U64(world_committed(w, 0), end_of(w, 10));
    world_free(w);
}

/* A marker that the log has dropped when the hub comes back was no message. */
TEST(gaps, are_not_lost_when_the_log_has_dropped_them)
{
    world *w = make_world();

    world_gap(w, 0, 3);
    CHECK(world_stop(w));
    world_restart(w, STG_S);
    world_give(w, 0);
    world_expire(w, 0, end_of(w, 3));
    world_run(w, STG_NEVER);
    CHECK_U64(world_dead_count(w), 0);
    CHECK(strstr(world_trace(w), "lost") == NULL);
    world_end(w, 1);
}

TEST(gaps, are_committed_when_the_answer_was_lost)
{
    world *w = make_world();

    world_store_unknown(w, 2);
    world_gap(w, 0, 10);
    world_run(w, STG_NEVER);
    CHECK_U64(world_committed(w, 0), end_of(w, 10));
    world_end(w, 1);
}
