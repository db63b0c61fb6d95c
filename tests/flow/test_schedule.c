/* A message's own times: not before, and no longer than (I34). */
#include "tests/flow/world.h"

#include "flow/lane.h"

static stg_world *begin(uint64_t seed, const char *answers, stg_order order,
                        stg_ns not_before, stg_ns expires)
{
    stg_world *w = world_new(seed);

    world_lane(w, STEADY)->order = order;
    world_script(w, 0, answers);
    stg_world_set_keys(w, 2);
    stg_world_set_times(w, not_before, expires);
    stg_world_publish(w, 0, 1);
    stg_world_set_times(w, 0, 0);
    return w;
}

static stg_fault fault_of(const stg_world *w, size_t i)
{
    return stg_world_dead_at(w, i)->outcome.fault;
}

TEST(schedule, sends_at_the_time_and_counts_from_then)
{
    stg_world *w = world_new(1);

    world_lane(w,
               "fixed base=1s jitter=none attempts=9 deadline=2500ms "
               "attempt-timeout=2s retry=5xx");
    world_script(w, 0, "503");
    stg_world_set_times(w, 10 * STG_MIN, 0);
    stg_world_publish(w, 0, 1);
    stg_world_start(w);
    stg_world_run(w, STG_NEVER);
    // The deadline, too, begins with the first attempt.
    CHECK_TRACE(world_trace(w),
                " 600010 ms  0:1 #1 503  wait 1000 ms (backoff)\n"
                " 601020 ms  0:1 #2 503  wait 1000 ms (backoff)\n"
                " 602030 ms  0:1 #3 503  deadline\n");
    world_end(w);
}

/* In strict order nothing else can be the probe. */
TEST(schedule, sheds_only_after_there_was_something_to_probe_with)
{
    stg_world *w = world_new(3);
    stg_lane_options *o =
        world_lane(w,
                   "fixed base=1s jitter=none attempts=3 deadline=none "
                   "attempt-timeout=5s retry=5xx breaker=3:10s-10s");

    o->order = STG_ORDER_STRICT;
    o->shed_after = STG_MIN;
    world_script(w, 0, "503");
    stg_world_publish(w, 0, 1);
    stg_world_set_times(w, STG_HOUR, 0);
    stg_world_publish(w, 0, 1);
    stg_world_set_times(w, 0, 0);
    stg_world_publish(w, 0, 20);
    stg_world_start(w);
    stg_world_run(w, world_after(w, STG_HOUR + 15 * STG_S));
    CHECK_U64(world_look(w, 0).state, STG_LANE_CIRCUIT_OPEN);
    CHECK_U64(stg_world_sum_lane(w, 0).dead, 1);
    world_free(w);
}

TEST(schedule, parks_it_durably_and_goes_on)
{
    stg_world *w = begin(2, "200", STG_ORDER_NONE, STG_HOUR, 0);

    stg_world_publish(w, 0, 5);
    stg_world_start(w);
    stg_world_run(w, world_after(w, STG_MIN));
    CHECK_U64(world_look(w, 0).delivered, 5);
    CHECK_U64(world_look(w, 0).parked, 1);
    CHECK_U64(stg_world_sum(w).parked, 1);
    CHECK_U64(stg_world_sum_lane(w, 0).starts, 5);
    CHECK_U64(stg_world_committed(w, 0), stg_world_position_at(w, 5) + 1);
    stg_world_run(w, STG_NEVER);
    CHECK_U64(world_look(w, 0).delivered, 6);
    CHECK(world_receipt_of(w, 0, 1)->started_at >= STG_HOUR);
    world_end(w);
}

TEST(schedule, keeps_the_time_over_a_crash)
{
    stg_world *w = begin(3, "200", STG_ORDER_NONE, STG_HOUR, 0);

    stg_world_start(w);
    stg_world_run(w, world_after(w, STG_MIN));
    stg_world_crash(w, STG_MIN);
    stg_world_run(w, world_after(w, 50 * STG_MIN));
    CHECK_U64(stg_world_sum_lane(w, 0).starts, 0);
    // A clock that was set back shortens no wait: the time is the message's.
    stg_world_set_wall_back(w, 2 * STG_HOUR);
    stg_world_crash(w, STG_S);
    stg_world_run(w, world_after(w, STG_HOUR + 50 * STG_MIN));
    CHECK_U64(stg_world_sum_lane(w, 0).starts, 0);
    stg_world_run(w, STG_NEVER);
    CHECK_U64(world_look(w, 0).delivered, 1);
    world_end(w);
}

TEST(schedule, holds_its_key_or_the_lane)
{
    static const struct {
        stg_order order;
        uint64_t delivered; /* after a minute */
    } all[] = {{STG_ORDER_NONE, 4}, {STG_ORDER_KEY, 2}, {STG_ORDER_STRICT, 0}};

    for (size_t i = 0; i < 3; i++) {
        stg_world *w = begin(4, "200", all[i].order, STG_HOUR, 0);

        stg_world_publish(w, 0, 4);
        stg_world_start(w);
        stg_world_run(w, world_after(w, STG_MIN));
        CHECK_U64(world_look(w, 0).delivered, all[i].delivered);
        stg_world_run(w, STG_NEVER);
        CHECK_U64(world_look(w, 0).delivered, 5);
        world_end(w);
    }
}

/* The rows of a lane that is full of them are as many as parked-max. */
TEST(schedule, counts_as_parked)
{
    stg_world *w = world_new(5);

    world_lane(w, STEADY)->parked_max = 10;
    stg_world_set_times(w, STG_HOUR, 0);
    stg_world_publish(w, 0, 100);
    stg_world_start(w);
    stg_world_run(w, world_after(w, STG_MIN));
    CHECK_U64(stg_world_sum(w).parked, 10);
    stg_world_run(w, STG_NEVER);
    CHECK_U64(world_look(w, 0).delivered, 100);
    world_end(w);
}

TEST(schedule, begins_no_attempt_of_what_has_expired)
{
    stg_world *w = begin(6, "503", STG_ORDER_NONE, 0, 1500 * STG_MS);

    stg_world_start(w);
    stg_world_run(w, STG_NEVER);
    CHECK_TRACE(world_trace(w),
                "     10 ms  0:1 #1 503  wait 1000 ms (backoff)\n"
                "   1020 ms  0:1 #2 503  deadline\n");
    CHECK_U64(stg_world_sum(w).dead, 1);
    CHECK_INT(fault_of(w, 0), STG_FAULT_MESSAGE_EXPIRED);
    CHECK_INT(stg_world_dead_at(w, 0)->outcome.code, 503);
    CHECK_INT(stg_world_dead_at(w, 0)->why, STG_WHY_DEADLINE);
    world_end(w);
}

TEST(schedule, expires_untried_while_it_waits)
{
    stg_world *w = begin(7, "200", STG_ORDER_KEY, 0, STG_MIN);

    stg_world_start(w);
    stg_world_pause(w, 0, true);
    stg_world_publish(w, 0, 2);
    stg_world_run(w, world_after(w, STG_HOUR));
    stg_world_pause(w, 0, false);
    stg_world_run(w, STG_NEVER);
    CHECK_U64(world_look(w, 0).delivered + world_look(w, 0).dead, 3);
    world_end(w);
}

TEST(schedule, expires_before_it_may_be_sent)
{
    stg_world *w = begin(8, "200", STG_ORDER_NONE, STG_HOUR, STG_HOUR);

    stg_world_start(w);
    stg_world_run(w, world_after(w, STG_MIN));
    CHECK_U64(stg_world_sum(w).dead, 1);
    CHECK_INT(fault_of(w, 0), STG_FAULT_MESSAGE_EXPIRED);
    CHECK_U64(stg_world_dead_at(w, 0)->attempts, 0);
    world_end(w);
}

/* Nobody may send what is over: a replay ends as it did before. */
TEST(schedule, a_replay_expires_again)
{
    stg_world *w = begin(9, "503 200", STG_ORDER_NONE, 0, STG_S);

    stg_world_start(w);
    stg_world_run(w, world_after(w, STG_MIN));
    CHECK_U64(stg_world_sum(w).dead, 1);
    CHECK_U64(stg_world_replay(w, 0, 1), 1);
    stg_world_run(w, STG_NEVER);
    CHECK_U64(stg_world_sum(w).dead, 1);
    CHECK_U64(stg_world_sum_lane(w, 0).starts, 1);
    CHECK_U64(stg_world_dead_at(w, 0)->replay, 1);
    world_end(w);
}
