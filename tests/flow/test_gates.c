/* What holds back a lane's untried messages: Retry-After, a rate, as many
 * attempts at once as the target turns out to bear, a pause, a gate of the hub's. */
#include <stdio.h>

#include "tests/flow/world.h"

/* I4 Nothing starts before it, what was tried or not. */
TEST(gates, retry_after_holds_back_the_whole_lane)
{
    stg_world *w = world_begin(1, STEADY, "200 429+5 200", 4);

    stg_world_run(w, STG_NEVER);
    CHECK_TRACE(world_trace(w),
                "     10 ms  0:1 #1 200  done\n"
                "     20 ms  0:2 #1 429  wait 5000 ms (server-delay)\n"
                "     20 ms  0:3 #1 200  done\n"
                "   5030 ms  0:2 #2 200  done\n"
                "   5030 ms  0:4 #1 200  done\n");
    world_end(w);
}

/* I4, I21: the target asked for it, and does not know of our crash. Nothing
 * starts before the rows are read that say so. */
TEST(gates, retry_after_holds_back_the_lane_over_a_restart)
{
    stg_world *w = world_begin(1, STEADY, "429+5 200", 1);

    stg_world_run(w, world_after(w, 100 * STG_MS));
    stg_world_publish(w, 0, 1);
    stg_world_set_fetch_delay(w, 50 * STG_MS);
    stg_world_crash(w, STG_S);
    stg_world_run(w, STG_NEVER);
    CHECK_TRACE(world_trace(w),
                "     10 ms  0:1 #1 429  wait 5000 ms (server-delay)\n"
                "   5020 ms  0:2 #1 200  done\n"
                "   5030 ms  0:1 #2 200  done\n");
    world_end(w);
}

/* Of an answer that says nothing of the target's load: only its own. */
TEST(gates, retry_after_of_another_answer_does_not)
{
    stg_world *w = world_begin(1, STEADY, "500+5 200", 2);

    stg_world_run(w, STG_NEVER);
    CHECK_TRACE(world_trace(w),
                "     10 ms  0:1 #1 500  wait 5000 ms (server-delay)\n"
                "     20 ms  0:2 #1 200  done\n"
                "   5020 ms  0:1 #2 200  done\n");
    world_free(w);
}

TEST(gates, retry_after_is_ignored_where_the_policy_says_so)
{
    stg_world *w = world_begin(1, STEADY " retry-after=ignore", "429+5 200", 2);

    stg_world_run(w, STG_NEVER);
    CHECK_TRACE(world_trace(w),
                "     10 ms  0:1 #1 429  wait 1000 ms (backoff)\n"
                "     20 ms  0:2 #1 200  done\n"
                "   1020 ms  0:1 #2 200  done\n");
    world_free(w);
}

TEST(gates, retry_after_is_capped)
{
    stg_world *w =
        world_begin(1, STEADY " retry-after-max=3s", "503+1000 200", 1);

    stg_world_run(w, world_after(w, 10 * STG_MS));
    CHECK_U64(world_look(w, 0).state, STG_LANE_THROTTLED);
    CHECK_U64(world_look(w, 0).gate_until, world_after(w, 3 * STG_S));
    stg_world_run(w, STG_NEVER);
    CHECK_TRACE(world_trace(w),
                "     10 ms  0:1 #1 503  wait 3000 ms (server-delay)\n"
                "   3020 ms  0:1 #2 200  done\n");
    world_free(w);
}

/* -- a rate ---------------------------------------------------------------- */

/* Attempts, first ones and retries alike: burst, then one each interval. */
TEST(gates, a_rate_spaces_attempts)
{
    stg_world *w = world_new(2);
    stg_lane_options *o = world_lane(w, STEADY " rate=2/s"); // each 500 ms

    o->burst = 3;
    world_script(w, 0, "503 200");
    stg_world_publish(w, 0, 5);
    stg_world_start(w);
    stg_world_run(w, STG_NEVER);
    CHECK_TRACE(world_trace(w),
                "     10 ms  0:1 #1 503  wait 1000 ms (backoff)\n"
                "     20 ms  0:2 #1 200  done\n"
                "     30 ms  0:3 #1 200  done\n"
                "    510 ms  0:4 #1 200  done\n"
                "   1010 ms  0:5 #1 200  done\n"
                "   1510 ms  0:1 #2 200  done\n");
    world_end(w);
}

/* Without a burst of its own a tenth of a second's goes at once: two. */
TEST(gates, a_rate_has_a_burst)
{
    stg_world *w = world_begin(3, STEADY " rate=20/s", "200", 60);

    stg_world_run(w, world_after(w, STG_S));
    CHECK_U64(stg_world_sum_lane(w, 0).starts, 22);
    stg_world_run(w, STG_NEVER);
    world_end(w);
}

/* In any second no more than burst and rate. */
TEST(gates, a_rate_is_never_passed)
{
    for (uint64_t seed = 0; seed < seeds(20); seed++) {
        stg_world *w = world_new(seed);
        stg_rng rng = stg_rng_seed(seed);
        uint32_t rate = 1 + (uint32_t)stg_rng_upto(&rng, 50);
        char policy[sizeof STEADY + 20];
        stg_lane_options *o;
        uint64_t last = 0;

        snprintf(policy, sizeof policy, STEADY " rate=%u/s", rate);
        o = world_lane(w, policy);
        o->burst = 1 + (uint32_t)stg_rng_upto(&rng, 10);
        world_trace_off(w);
        world_script(w, 0, "200 503 200 429+1 200 200 503");
        stg_world_publish(w, 0, 300);
        stg_world_start(w);
        for (uint32_t s = 0; s < 20; s++) {
            stg_world_run(w, world_after(w, STG_S));
            CHECK_FROM(seed, stg_world_sum_lane(w, 0).starts - last <=
                                 rate + o->burst);
            last = stg_world_sum_lane(w, 0).starts;
        }
        world_free(w);
    }
}

/* -- as many at once as it bears ------------------------------------------- */

static stg_world_answer answer_in_100(stg_world *w, uint32_t l,
                                      uint64_t position, uint64_t attempt)
{
    (void)w;
    (void)l;
    (void)position;
    (void)attempt;
    return (stg_world_answer){stg_ok(), 100 * STG_MS, true};
}

static stg_world_answer fail_in_100(stg_world *w, uint32_t l, uint64_t position,
                                    uint64_t attempt)
{
    (void)w;
    (void)l;
    (void)position;
    (void)attempt;
    return (stg_world_answer){stg_answered(503), 100 * STG_MS, false};
}

/* 1, 2, 4 ... up to the most, a round each; at 16 it waits until it has seen
 * 64 answers, and knows how long one takes. */
TEST(gates, begins_slowly)
{
    static const uint32_t rounds[] = {1, 2, 4, 8, 16, 16, 16, 16, 20};
    stg_world *w = world_new(3);

    world_lane(w, STEADY)->in_flight_max = 20;
    stg_world_set_target(w, 0, answer_in_100);
    stg_world_publish(w, 0, 500);
    stg_world_start(w);
    stg_world_run(w, world_after(w, 50 * STG_MS));
    for (size_t i = 0; i < sizeof rounds / sizeof *rounds; i++) {
        CHECK_FROM(i, world_look(w, 0).in_flight == rounds[i]);
        CHECK_FROM(i, world_look(w, 0).limit == rounds[i]);
        stg_world_run(w, world_after(w, 100 * STG_MS));
    }
    world_free(w);
}

/* Lowered by a fifth for all that failed together, not for each; then one more in two
 * rounds. */
TEST(gates, is_lowered_once_a_round)
{
    stg_world *w = world_new(3);

    world_lane(w,
               "fixed base=1h jitter=none attempts=3 deadline=none "
               "retry=5xx")
        ->in_flight_max = 64;
    stg_world_set_target(w, 0, answer_in_100);
    stg_world_publish(w, 0, 5000);
    stg_world_start(w);
    stg_world_run(w, world_after(w, 1650 * STG_MS));
    CHECK_U64(world_look(w, 0).limit, 64);
    stg_world_set_target(w, 0, fail_in_100);
    stg_world_run(w, world_after(w, 100 * STG_MS));
    CHECK_U64(world_look(w, 0).limit, 64); // these were well
    stg_world_run(w, world_after(w, 100 * STG_MS));
    CHECK_U64(world_look(w, 0).limit, 51);
    stg_world_set_target(w, 0, answer_in_100);
    stg_world_run(w, world_after(w, 400 * STG_MS));
    CHECK_U64(world_look(w, 0).limit, 51); // a round without trouble
    stg_world_run(w, world_after(w, 200 * STG_MS));
    CHECK_U64(world_look(w, 0).limit, 52);
    stg_world_run(w, world_after(w, 200 * STG_MS));
    CHECK_U64(world_look(w, 0).limit, 53);
    world_free(w);
}

/* -- a pause --------------------------------------------------------------- */

/* I7 From the call on nothing starts; what is in flight goes on. */
TEST(gates, a_pause_starts_nothing)
{
    stg_world *w = world_new(4);

    world_lane(w, STEADY);
    stg_world_set_target(w, 0, answer_in_100);
    stg_world_publish(w, 0, 100);
    stg_world_start(w);
    stg_world_run(w, world_after(w, 350 * STG_MS));
    CHECK_U64(stg_world_sum_lane(w, 0).starts, 15);
    stg_world_pause(w, 0, true);
    stg_world_run(w, world_after(w, STG_MIN));
    CHECK_U64(stg_world_sum_lane(w, 0).starts, 15);
    CHECK_U64(world_look(w, 0).delivered, 15);
    CHECK_U64(world_look(w, 0).state, STG_LANE_PAUSED);
    stg_world_pause(w, 0, false);
    stg_world_run(w, STG_NEVER);
    CHECK_U64(world_look(w, 0).delivered, 100);
    world_end(w);
}

/* I7 Nor what was parked before; and it stays so over a restart. */
TEST(gates, a_pause_holds_back_what_is_parked)
{
    stg_world *w = world_begin(5, STEADY, "503", 10);

    stg_world_run(w, world_after(w, 500 * STG_MS));
    stg_world_pause(w, 0, true);
    stg_world_run(w, world_after(w, STG_MIN));
    stg_world_crash(w, STG_S);
    stg_world_run(w, world_after(w, STG_MIN));
    CHECK_U64(stg_world_sum_lane(w, 0).starts, 10);
    stg_world_pause(w, 0, false);
    stg_world_run(w, STG_NEVER);
    CHECK_U64(world_look(w, 0).dead, 10);
    world_end(w);
}

/* -- what requests need of us ------------------------------------------------ */

/* I7 Nothing is tried, nothing is dead, and nothing counts: also what was
 * parked, also over a restart. */
TEST(gates, a_closed_gate_starts_nothing_and_counts_nothing)
{
    stg_world *w = world_begin(6, STEADY, "503 200", 10);

    stg_world_run(w, world_after(w, 15 * STG_MS));
    stg_world_gate(w, 0, true);
    stg_world_run(w, world_after(w, STG_HOUR));
    CHECK_U64(stg_world_sum_lane(w, 0).starts, 2);
    CHECK_U64(world_look(w, 0).state, STG_LANE_THROTTLED);
    CHECK(world_look(w, 0).is_gated);
    CHECK_U64(world_look(w, 0).gate_until, 0);
    stg_world_crash(w, STG_S);
    stg_world_run(w, world_after(w, STG_HOUR));
    CHECK(world_look(w, 0).is_gated);
    stg_world_publish(w, 0, 5);
    stg_world_gate(w, 0, false);
    stg_world_run(w, STG_NEVER);
    CHECK_U64(world_look(w, 0).state, STG_LANE_LIVE);
    CHECK_U64(world_look(w, 0).delivered, 15);
    CHECK_U64(stg_world_sum(w).dead, 0);
    world_end(w);
}

/* The open breaker of a lane that cannot be probed sheds nothing. */
TEST(gates, a_closed_gate_does_not_shed)
{
    stg_world *w = world_new(7);

    world_lane(w, STEADY " breaker=3:10s-40s")->shed_after = 20 * STG_S;
    world_script(w, 0, "503");
    stg_world_publish(w, 0, 100);
    stg_world_start(w);
    stg_world_run(w, world_after(w, STG_S));
    CHECK_U64(world_look(w, 0).state, STG_LANE_CIRCUIT_OPEN);
    stg_world_gate(w, 0, true);
    CHECK(!stg_world_probe(w, 0));
    stg_world_run(w, world_after(w, STG_HOUR));
    CHECK_U64(stg_world_sum(w).dead, 0);
    world_script(w, 0, "200");
    stg_world_gate(w, 0, false);
    stg_world_run(w, STG_NEVER);
    CHECK_U64(world_look(w, 0).delivered, 100);
    world_end(w);
}

/* The credential was old: the attempt is made again, and has the same number. */
TEST(gates, an_unauthorized_attempt_is_put_back_uncounted)
{
    stg_world *w = world_begin(8, STEADY, "401 200 503 401 200", 2);

    stg_world_set_signing_in(w, 0, true);
    stg_world_run(w, STG_NEVER);
    CHECK_TRACE(world_trace(w),
                "     10 ms  0:1 401  put back\n"
                "     20 ms  0:1 #1 200  done\n"
                "     30 ms  0:2 #1 503  wait 1000 ms "
                "(backoff)\n"
                "   1040 ms  0:2 401  put back\n"
                "   1050 ms  0:2 #2 200  done\n");
    world_end(w);
}

/* A target that refuses the new one, too, means it. */
TEST(gates, an_unauthorized_attempt_is_put_back_once)
{
    stg_world *w = world_begin(9, STEADY, "401 401 401 200", 2);

    stg_world_set_signing_in(w, 0, true);
    stg_world_run(w, STG_NEVER);
    CHECK_TRACE(world_trace(w),
                "     10 ms  0:1 401  put back\n"
                "     20 ms  0:1 #1 401  permanent\n"
                "     30 ms  0:2 401  put back\n"
                "     40 ms  0:2 #1 200  done\n");
    world_end(w);
}
