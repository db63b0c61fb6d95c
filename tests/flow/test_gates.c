/* What holds back a lane's untried messages: Retry-After, a rate, as many
 * attempts at once as the target turns out to bear, a pause. */
#include "tests/flow/world.h"

/* I4 Nothing starts before it, what was tried or not. */
TEST(gates, retry_after_holds_back_the_whole_lane)
{
    world *w = world_begin(1, STEADY, "200 429+5 200", 4);

    world_run(w, STG_NEVER);
    CHECK_TRACE(world_trace(w),
                "     10 ms  0:1 #1 200  done\n"
                "     20 ms  0:2 #1 429  wait 5000 ms (server-delay)\n"
                "     20 ms  0:3 #1 200  done\n"
                "   5030 ms  0:2 #2 200  done\n"
                "   5030 ms  0:4 #1 200  done\n");
    world_end(w, 1);
}

/* Of an answer that says nothing of the target's load: only its own. */
TEST(gates, retry_after_of_another_answer_does_not)
{
    world *w = world_begin(1, STEADY, "500+5 200", 2);

    world_run(w, STG_NEVER);
    CHECK_TRACE(world_trace(w),
                "     10 ms  0:1 #1 500  wait 5000 ms (server-delay)\n"
                "     20 ms  0:2 #1 200  done\n"
                "   5020 ms  0:1 #2 200  done\n");
    world_free(w);
}

TEST(gates, retry_after_is_capped)
{
    world *w = world_begin(1, STEADY " retry-after-max=3s", "503+1000 200", 1);

    world_run(w, world_after(w, 10 * STG_MS));
    CHECK_U64(world_look(w, 0).state, STG_LANE_GATED);
    CHECK_U64(world_look(w, 0).gate_until, world_after(w, 3 * STG_S));
    world_run(w, STG_NEVER);
    CHECK_TRACE(world_trace(w),
                "     10 ms  0:1 #1 503  wait 3000 ms (server-delay)\n"
                "   3020 ms  0:1 #2 200  done\n");
    world_free(w);
}

/* -- a rate ---------------------------------------------------------------- */

/* Attempts, first ones and retries alike: burst, then one each interval. */
TEST(gates, a_rate_spaces_attempts)
{
    world *w = world_new(2);
    stg_lane_options *o = world_lane(w, STEADY);

    o->rate = 2000; // one each 500 ms
    o->burst = 3;
    world_script(w, 0, "503 200");
    world_publish(w, 5);
    world_start(w);
    world_run(w, STG_NEVER);
    CHECK_TRACE(world_trace(w),
                "     10 ms  0:1 #1 503  wait 1000 ms (backoff)\n"
                "     20 ms  0:2 #1 200  done\n"
                "     30 ms  0:3 #1 200  done\n"
                "    510 ms  0:4 #1 200  done\n"
                "   1010 ms  0:5 #1 200  done\n"
                "   1510 ms  0:1 #2 200  done\n");
    world_end(w, 2);
}

/* In any second no more than burst and rate. */
TEST(gates, a_rate_is_never_passed)
{
    for (uint64_t seed = 0; seed < seeds(20); seed++) {
        world *w = world_new(seed);
        stg_rng rng = stg_rng_seed(seed);
        stg_lane_options *o = world_lane(w, STEADY);
        uint32_t rate = 1 + (uint32_t)stg_rng_upto(&rng, 50);
        uint64_t last = 0;

        o->rate = 1000 * rate;
        o->burst = 1 + (uint32_t)stg_rng_upto(&rng, 10);
        world_trace_off(w);
        world_script(w, 0, "200 503 200 429+1 200 200 503");
        world_publish(w, 300);
        world_start(w);
        for (uint32_t s = 0; s < 20; s++) {
            world_run(w, world_after(w, STG_S));
            CHECK_FROM(seed, world_starts(w, 0) - last <= rate + o->burst);
            last = world_starts(w, 0);
        }
        world_free(w);
    }
}

/* -- as many at once as it bears ------------------------------------------- */

static world_answer answer_in_100(world *w, uint32_t l, uint64_t position,
                                  uint64_t attempt)
{
    (void)w;
    (void)l;
    (void)position;
    (void)attempt;
    return (world_answer){stg_ok(), 100 * STG_MS, true};
}

static world_answer fail_in_100(world *w, uint32_t l, uint64_t position,
                                uint64_t attempt)
{
    (void)w;
    (void)l;
    (void)position;
    (void)attempt;
    return (world_answer){stg_answered(503), 100 * STG_MS, false};
}

/* 1, 2, 4 ... up to the most, a round each. */
TEST(gates, begins_slowly)
{
    static const uint32_t rounds[] = {1, 2, 4, 8, 16, 20, 20};
    world *w = world_new(3);

    world_lane(w, STEADY)->in_flight_max = 20;
    world_leaf_is(w, 0, answer_in_100);
    world_publish(w, 500);
    world_start(w);
    world_run(w, world_after(w, 50 * STG_MS));
    for (size_t i = 0; i < sizeof rounds / sizeof *rounds; i++) {
        CHECK_FROM(i, world_look(w, 0).in_flight == rounds[i]);
        CHECK_FROM(i, world_look(w, 0).limit == rounds[i]);
        world_run(w, world_after(w, 100 * STG_MS));
    }
    world_free(w);
}

/* Halved for all that failed together, not for each; then one more a round. */
TEST(gates, is_halved_once_a_round)
{
    world *w = world_new(3);

    world_lane(w,
               "fixed base=1h jitter=none attempts=3 deadline=none "
               "retry=5xx")
        ->in_flight_max = 64;
    world_leaf_is(w, 0, answer_in_100);
    world_publish(w, 5000);
    world_start(w);
    world_run(w, world_after(w, 650 * STG_MS));
    CHECK_U64(world_look(w, 0).limit, 64);
    world_leaf_is(w, 0, fail_in_100);
    world_run(w, world_after(w, 100 * STG_MS));
    CHECK_U64(world_look(w, 0).limit, 64); // these were well
    world_run(w, world_after(w, 100 * STG_MS));
    CHECK_U64(world_look(w, 0).limit, 32);
    world_run(w, world_after(w, 100 * STG_MS));
    CHECK_U64(world_look(w, 0).limit, 16);
    world_leaf_is(w, 0, answer_in_100);
    world_run(w, world_after(w, 100 * STG_MS));
    CHECK_U64(world_look(w, 0).limit, 8);
    world_run(w, world_after(w, 100 * STG_MS));
    CHECK_U64(world_look(w, 0).limit, 9);
    world_run(w, world_after(w, 100 * STG_MS));
    CHECK_U64(world_look(w, 0).limit, 10);
    world_free(w);
}

/* -- a pause --------------------------------------------------------------- */

/* I7 From the call on nothing starts; what is in flight goes on. */
TEST(gates, a_pause_starts_nothing)
{
    world *w = world_new(4);

    world_lane(w, STEADY);
    world_leaf_is(w, 0, answer_in_100);
    world_publish(w, 100);
    world_start(w);
    world_run(w, world_after(w, 350 * STG_MS));
    CHECK_U64(world_starts(w, 0), 15);
    world_pause(w, 0, true);
    world_run(w, world_after(w, STG_MIN));
    CHECK_U64(world_starts(w, 0), 15);
    CHECK_U64(world_look(w, 0).delivered, 15);
    CHECK_U64(world_look(w, 0).state, STG_LANE_PAUSED);
    world_pause(w, 0, false);
    world_run(w, STG_NEVER);
    CHECK_U64(world_look(w, 0).delivered, 100);
    world_end(w, 4);
}

/* I7 Nor what was parked before; and it stays so over a restart. */
TEST(gates, a_pause_holds_back_what_is_parked)
{
    world *w = world_begin(5, STEADY, "503", 10);

    world_run(w, world_after(w, 500 * STG_MS));
    world_pause(w, 0, true);
    world_run(w, world_after(w, STG_MIN));
    world_crash(w, STG_S);
    world_run(w, world_after(w, STG_MIN));
    CHECK_U64(world_starts(w, 0), 10);
    world_pause(w, 0, false);
    world_run(w, STG_NEVER);
    CHECK_U64(world_look(w, 0).dead, 10);
    world_end(w, 5);
}
