/* What people see of lanes and of all. */
#include "tests/flow/world.h"

#define BREAKING STEADY " breaker=2:10s-1m"

static stg_world *make_world(uint64_t seed, const char *policy)
{
    stg_world *w = world_new(seed);

    world_lane(w, policy);
    return w;
}

TEST(view, says_what_the_breaker_does)
{
    stg_world *w = make_world(1, BREAKING);
    stg_lane_view v;

    stg_world_start(w);
    v = world_look(w, 0);
    CHECK_INT(v.breaker, STG_BREAKER_CLOSED);
    CHECK_U64(v.openings, 0);
    world_script(w, 0, "reset");
    stg_world_publish(w, 0, 2);
    stg_world_run(w, world_after(w, 500 * STG_MS));
    v = world_look(w, 0);
    CHECK_INT(v.breaker, STG_BREAKER_OPEN);
    CHECK_INT(v.state, STG_LANE_CIRCUIT_OPEN);
    CHECK_U64(v.openings, 1);
    CHECK(v.probe_at > stg_world_now(w) && v.probe_at == v.gate_until);
    stg_world_run(w, v.probe_at);
    v = world_look(w, 0); // the probe is under way
    CHECK_INT(v.breaker, STG_BREAKER_HALF_OPEN);
    CHECK_U64(v.probe_at, 0);
    world_script(w, 0, "200");
    stg_world_run(w, world_after(w, STG_MIN));
    v = world_look(w, 0);
    CHECK_INT(v.breaker, STG_BREAKER_CLOSED);
    CHECK_U64(v.openings, 1); // it stayed open, and did not open again
    world_free(w);
}

TEST(view, says_what_the_budgets_have_left)
{
    stg_world *w = make_world(2, STEADY " budget=tokens:3:0.001/s");

    stg_world_options(w)->budget = (stg_budget_options){
        .kind = STG_BUDGET_TOKENS, .capacity = 10, .rate = 1};
    stg_world_start(w);
    CHECK_U64(world_look(w, 0).budget_left, 3000);
    CHECK_U64(world_look_all(w).budget_left, 10000);
    world_script(w, 0, "503");
    stg_world_publish(w, 0, 5);
    stg_world_run(w, world_after(w, 1500 * STG_MS));
    CHECK_U64(world_look(w, 0).budget_left / 1000, 0);
    CHECK_U64(world_look_all(w).budget_left / 1000, 7);
    CHECK_U64(world_look(w, 0).retries, 3);
    CHECK_U64(world_look(w, 0).budget_refused, 2);
    CHECK_U64(world_look_all(w).budget_refused, 0); // it was not asked
    world_free(w);
}

TEST(view, has_no_budget_where_there_is_none)
{
    stg_world *w = make_world(3, STEADY);

    stg_world_start(w);
    CHECK_U64(world_look(w, 0).budget_left, UINT64_MAX);
    CHECK_U64(world_look_all(w).budget_left, UINT64_MAX);
    world_free(w);
}

TEST(view, counts_the_lag_of_a_lane_in_the_window)
{
    stg_world *w = make_world(4, STEADY);
    stg_ns first_at;

    world_lane(w, STEADY);
    stg_world_start(w);
    CHECK_U64(world_look(w, 0).lag, 0);
    CHECK_U64(world_look(w, 0).oldest_at, 0);
    first_at = 1000000 * STG_S;
    stg_world_pause(w, 0, true);
    stg_world_publish(w, 0, 30);
    stg_world_run(w, world_after(w, STG_S));
    stg_world_publish(w, 0, 10);
    stg_world_run(w, world_after(w, STG_S));
    CHECK_U64(world_look(w, 0).lag, 40);
    CHECK(world_look(w, 0).is_lag_exact);
    CHECK_U64(world_look(w, 0).oldest_at, first_at);
    CHECK_U64(world_look(w, 1).lag, 0);
    CHECK_U64(world_look(w, 1).oldest_at, 0);
    world_free(w);
}

/* What it has taken and not settled is older than what it has not taken. */
TEST(view, knows_the_oldest_that_is_in_flight)
{
    stg_world *w = make_world(5, STEADY);

    stg_world_start(w);
    stg_world_run(w, world_after(w, STG_S));
    world_script(w, 0, "hang 200");
    stg_world_publish(w, 0, 1);
    stg_world_run(w, world_after(w, 500 * STG_MS));
    stg_world_publish(w, 0, 5);
    CHECK_U64(world_look(w, 0).oldest_at, 1000001 * STG_S);
    stg_world_run(w, world_after(w, 10 * STG_S)); // parked after its timeout
    CHECK_U64(world_look(w, 0).oldest_at, 0);
    world_free(w);
}

/* Over a restart, too, where nobody reads for it. */
TEST(view, knows_how_old_it_is_what_a_paused_lane_is_behind)
{
    stg_world *w = make_world(11, STEADY);

    world_lane(w, STEADY)->is_paused = true;
    stg_world_start(w);
    stg_world_run(w, world_after(w, STG_S));
    stg_world_publish(w, 0, 5);
    stg_world_run(w, world_after(w, STG_HOUR));
    CHECK_U64(world_look(w, 1).oldest_at, 1000001 * STG_S);
    stg_world_publish(w, 0, 5); // another checkpoint
    stg_world_run(w, world_after(w, STG_S));
    stg_world_crash(w, STG_S);
    stg_world_run(w, world_after(w, STG_S));
    CHECK_U64(world_look(w, 1).oldest_at, 1000001 * STG_S);
    CHECK_U64(world_look(w, 0).oldest_at, 0);
    world_free(w);
}

/* Of what it is behind since before a restart that is the restart, at least; and
 * the next one knows of that. */
TEST(view, knows_how_old_it_is_at_least_what_a_paused_lane_is_behind)
{
    stg_world *w = make_world(11, STEADY);
    stg_ns oldest_at;

    world_lane(w, STEADY)->is_paused = true;
    stg_world_start(w);
    stg_world_publish(w, 0, 5);
    stg_world_run(w, world_after(w, STG_S)); // too little behind to be noted
    stg_world_crash(w, STG_S);
    stg_world_run(w, world_after(w, STG_S));
    oldest_at = world_look(w, 1).oldest_at;
    CHECK_U64(oldest_at, 1000002 * STG_S);
    stg_world_crash(w, STG_DAY);
    stg_world_run(w, world_after(w, STG_S));
    CHECK_U64(world_look(w, 1).oldest_at, oldest_at);
    CHECK_U64(world_look(w, 0).oldest_at, 0);
    world_free(w);
}

/* Of what lies between it and the window nothing is known but where it is. */
TEST(view, says_that_the_lag_of_a_lane_that_catches_up_is_not_exact)
{
    stg_world *w = make_world(6, STEADY);

    stg_world_options(w)->memory_max = 1 << 20;
    stg_world_set_size(w, 20000);
    world_lane(w, STEADY)->is_paused = true;
    stg_world_publish(w, 0, 200);
    stg_world_start(w);
    stg_world_run(w, world_after(w, 5 * STG_S));
    stg_world_pause(w, 1, true); // its turn: it sees that it is behind
    stg_world_run(w, world_after(w, 5 * STG_S));
    CHECK(!world_look(w, 1).is_lag_exact);
    CHECK(world_look(w, 1).lag < 200);
    CHECK(world_look(w, 1).next <= stg_world_position_at(w, 0));
    stg_world_pause(w, 1, false);
    stg_world_run(w, STG_NEVER);
    CHECK(world_look(w, 1).is_lag_exact);
    CHECK_U64(world_look(w, 1).lag, 0);
    CHECK(strstr(world_trace(w), "1: catching-up\n") != NULL);
    CHECK(strstr(world_trace(w), "1: joined\n") != NULL);
    world_free(w);
}

TEST(view, counts_the_rows_of_replays)
{
    stg_world *w = make_world(7, STEADY);

    world_script(w, 0, "404");
    stg_world_publish(w, 0, 5);
    stg_world_start(w);
    stg_world_run(w, world_after(w, STG_S));
    stg_world_pause(w, 0, true);
    CHECK_U64(stg_world_replay(w, 0, 3), 3);
    CHECK_U64(world_look(w, 0).replays, 3);
    CHECK_U64(world_look(w, 0).parked, 3);
    CHECK_U64(world_look(w, 0).dead, 2);
    stg_world_crash(w, STG_S); // the store knows
    CHECK_U64(world_look(w, 0).replays, 3);
    stg_world_pause(w, 0, false);
    world_script(w, 0, "200");
    stg_world_run(w, STG_NEVER);
    CHECK_U64(world_look(w, 0).replays, 0);
    CHECK_U64(world_look(w, 0).delivered, 3);
    world_free(w);
}

TEST(view, counts_what_is_in_an_open_range_row)
{
    stg_world *w = make_world(8, BREAKING);

    world_script(w, 0, "refused");
    stg_world_publish(w, 0, 10);
    stg_world_start(w);
    stg_world_run(w, world_after(w, 12 * STG_MIN));
    CHECK_INT(world_look(w, 0).state, STG_LANE_SHEDDING);
    CHECK_U64(world_look(w, 0).bulk, 8);
    world_script(w, 0, "200");
    stg_world_run(w, world_after(w, 2 * STG_MIN));
    CHECK_U64(world_look(w, 0).bulk, 0);
    world_free(w);
}

TEST(view, tells_when_there_are_fewer_parked_rows_again)
{
    stg_world *w = make_world(9, STEADY);

    stg_world_flow(w);
    world_script(w, 0, "503 503 503 200");
    stg_world_publish(w, 0, 4);
    stg_world_start(w);
    stg_world_run(w, STG_NEVER);
    CHECK(strstr(world_trace(w), "parked-max") == NULL);
    world_free(w);

    w = world_new(10);
    world_lane(w, STEADY)->parked_max = 2;
    world_script(w, 0, "503 503 200");
    stg_world_publish(w, 0, 4);
    stg_world_start(w);
    stg_world_run(w, STG_NEVER);
    CHECK(strstr(world_trace(w), "0: parked-max\n") != NULL);
    CHECK(strstr(world_trace(w), "0: parked-below-max\n") != NULL);
    world_free(w);
}

TEST(view, has_a_word_for_each_state)
{
    static const char *const names[] = {"live",     "throttled", "circuit-open",
                                        "shedding", "paused",    "removing"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        CHECK_STR(stg_lane_state_name((stg_lane_state)i), names[i]);
}

/* Before the first attempt, too: one that adapts begins with one, a fixed one with all
 * that it may have. */
TEST(view, says_of_a_new_lane_how_it_will_start)
{
    for (uint32_t most = 1; most <= 3; most++)
        for (int is_fixed = 0; is_fixed < 2; is_fixed++) {
            stg_world *w = world_new(12);
            stg_lane_options *o = world_lane(w, STEADY);
            bool is_slow = most > 1 && !is_fixed;

            o->in_flight_max = most;
            o->is_limit_fixed = is_fixed;
            world_script(w, 0, "hang 200");
            stg_world_start(w);
            CHECK_U64(world_look(w, 0).limit, is_fixed ? most : 1);
            CHECK_FROM(most, world_look(w, 0).is_slow_start == is_slow);
            stg_world_publish(w, 0, 1);
            stg_world_run(w, world_after(w, 500 * STG_MS));
            CHECK_U64(world_look(w, 0).in_flight, 1);
            CHECK_U64(world_look(w, 0).limit, is_fixed ? most : 1);
            CHECK_FROM(most, world_look(w, 0).is_slow_start == is_slow);
            world_free(w);
        }
}
