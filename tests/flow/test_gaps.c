/* Gaps at the end of a partition: markers of transactions, transactions that
 * were aborted, records that are no messages. Lanes pass them without a
 * delivery, and so does what is committed. */
#include "tests/flow/world.h"

/* Two lanes that have all of five messages. */
static stg_world *make_world(void)
{
    stg_world *w = world_new(1);

    stg_world_join_group(w, true);
    world_lane(w, STEADY);
    world_lane(w, STEADY);
    stg_world_publish(w, 0, 5);
    stg_world_start(w);
    stg_world_assign(w, 0);
    stg_world_run(w, STG_NEVER);
    return w;
}

static uint64_t end_of(stg_world *w, uint64_t gap)
{
    return stg_world_position_at(w, stg_world_sum(w).messages - 1) + 1 + gap;
}

static void run_for(stg_world *w, stg_ns wait)
{
    stg_world_run(w, world_after(w, wait));
}

TEST(gaps, are_committed)
{
    stg_world *w = make_world();

    CHECK_U64(stg_world_committed(w, 0), end_of(w, 0));
    stg_world_skip(w, 0, 1000);
    stg_world_run(w, STG_NEVER);
    CHECK_U64(stg_world_committed(w, 0), end_of(w, 1000));
    CHECK_U64(stg_flow_wake_at(stg_world_flow(w)), STG_NEVER); // I20 it sleeps
    world_end(w);
}

/* Each transaction has a marker. */
TEST(gaps, cost_one_checkpoint_a_second)
{
    stg_world *w = make_world();
    uint64_t groups = stg_world_sum(w).groups;

    for (int i = 0; i < 100; i++) {
        stg_world_skip(w, 0, 1);
        run_for(w, 100 * STG_MS);
    }
    stg_world_run(w, STG_NEVER);
    CHECK(stg_world_sum(w).groups - groups >= 9);
    CHECK(stg_world_sum(w).groups - groups <= 11);
    CHECK_U64(stg_world_committed(w, 0), end_of(w, 100));
    world_end(w);
}

/* A lane that takes nothing stands at the end of what was read, too. */
TEST(gaps, are_passed_by_a_lane_that_is_paused)
{
    stg_world *w = make_world();

    stg_world_pause(w, 1, true);
    stg_world_skip(w, 0, 10);
    stg_world_run(w, STG_NEVER);
    CHECK_U64(stg_world_committed(w, 0), end_of(w, 10));
    stg_world_pause(w, 1, false);
    world_end(w);
}

/* A lane with messages before the gap does not pass it. */
TEST(gaps, are_not_passed_before_what_waits)
{
    stg_world *w = make_world();
    uint64_t before = end_of(w, 0);

    stg_world_pause(w, 1, true);
    stg_world_publish(w, 0, 1);
    run_for(w, 2 * STG_S);
    stg_world_skip(w, 0, 10);
    stg_world_run(w, STG_NEVER);
    CHECK(stg_world_committed(w, 0) >= before);
    CHECK(stg_world_committed(w, 0) <= stg_world_position_at(w, 5));
    stg_world_pause(w, 1, false);
    stg_world_run(w, STG_NEVER);
    CHECK_U64(stg_world_committed(w, 0), end_of(w, 10));
    world_end(w);
}

/* Who has the partition next begins behind them. */
TEST(gaps, are_committed_by_a_partition_that_goes)
{
    stg_world *w = make_world();

    stg_world_skip(w, 0, 10);
    stg_world_revoke(w, 0, STG_S);
    run_for(w, 500 * STG_MS);
    CHECK(stg_world_is_away(w, 0));
    CHECK_U64(stg_world_committed(w, 0), end_of(w, 10));
    stg_world_assign(w, 0);
    stg_world_run(w, STG_NEVER);
    world_end(w);
}

TEST(gaps, are_committed_by_a_stop)
{
    stg_world *w = make_world();

    stg_world_skip(w, 0, 10);
    CHECK(stg_world_stop(w));
    CHECK_U64(stg_world_committed(w, 0), end_of(w, 10));
    world_free(w);
}

/* A marker that the log has dropped when the hub comes back was no message. */
TEST(gaps, are_not_lost_when_the_log_has_dropped_them)
{
    stg_world *w = make_world();

    stg_world_skip(w, 0, 3);
    CHECK(stg_world_stop(w));
    stg_world_restart(w, STG_S);
    stg_world_assign(w, 0);
    stg_world_expire(w, 0, end_of(w, 3));
    stg_world_run(w, STG_NEVER);
    CHECK_U64(stg_world_sum(w).dead, 0);
    CHECK(strstr(world_trace(w), "lost") == NULL);
    world_end(w);
}

TEST(gaps, are_committed_when_the_answer_was_lost)
{
    stg_world *w = make_world();

    stg_world_lose_answers(w, 2);
    stg_world_skip(w, 0, 10);
    stg_world_run(w, STG_NEVER);
    CHECK_U64(stg_world_committed(w, 0), end_of(w, 10));
    world_end(w);
}
