/* A lane behind an open breaker: one probe an interval, and all else waits
 * (I22). */
#include "tests/flow/world.h"

#define FRAIL                                             \
    "fixed base=1s jitter=none attempts=3 deadline=none " \
    "attempt-timeout=5s retry=5xx,429,timeout,reset,refused breaker=3:10s-40s"

TEST(breaker, opens_after_failures_and_probes_once_an_interval)
{
    stg_world *w = world_begin(1, FRAIL, "503 503 503 refused refused 200", 4);

    stg_world_run(w, STG_NEVER);
    CHECK_TRACE(world_trace(w),
                "     10 ms  0:1 #1 503  wait 1000 ms (backoff)\n"
                "     20 ms  0:2 #1 503  wait 1000 ms (backoff)\n"
                "     30 ms  0:3 #1 503  wait 1000 ms (backoff)\n"
                "     30 ms  0: opened\n"
                "  10040 ms  0:1 refused  put back\n"
                "  30050 ms  0:4 refused  put back\n"
                "  70060 ms  0:1 #2 200  done\n"
                "  70060 ms  0: closed\n"
                "  70070 ms  0:4 #1 200  done\n"
                "  70070 ms  0:2 #2 200  done\n"
                "  70080 ms  0:3 #2 200  done\n");
    world_end(w);
}

TEST(breaker, is_probed_at_once_when_somebody_asks)
{
    stg_world *w = world_begin(1, FRAIL, "503 503 503 refused 200", 4);

    CHECK(!stg_world_probe(w, 0)); // it is not open
    stg_world_run(w, world_after(w, 100 * STG_MS));
    CHECK(
        stg_world_probe(w, 0)); // with the fourth: no row is due before 1010 ms
    stg_world_run(w, world_after(w, 2 * STG_S));
    CHECK(stg_world_probe(w, 0));
    CHECK(!stg_world_probe(w, 9));
    stg_world_run(w, STG_NEVER);
    CHECK_TRACE(world_trace(w),
                "     10 ms  0:1 #1 503  wait 1000 ms (backoff)\n"
                "     20 ms  0:2 #1 503  wait 1000 ms (backoff)\n"
                "     30 ms  0:3 #1 503  wait 1000 ms (backoff)\n"
                "     30 ms  0: opened\n"
                "    110 ms  0:4 refused  put back\n"
                "   2110 ms  0:1 #2 200  done\n"
                "   2110 ms  0: closed\n"
                "   2120 ms  0:4 #1 200  done\n"
                "   2120 ms  0:2 #2 200  done\n"
                "   2130 ms  0:3 #2 200  done\n");
    world_end(w);
}

TEST(breaker, is_not_probed_while_its_lane_is_paused)
{
    stg_world *w = world_begin(1, FRAIL, "503 503 503 200", 3);

    stg_world_run(w, world_after(w, 100 * STG_MS));
    stg_world_pause(w, 0, true);
    CHECK(!stg_world_probe(w, 0));
    stg_world_pause(w, 0, false);
    stg_world_run(w, STG_NEVER);
    CHECK_U64(world_look(w, 0).delivered, 3);
    world_end(w);
}

/* What the target's filter refuses is no message for it. */
TEST(breaker, is_not_probed_without_a_message)
{
    stg_world *w = world_new(1);

    world_lane(w,
               "fixed base=1s jitter=none attempts=1 deadline=none "
               "attempt-timeout=5s retry=5xx breaker=3:10s-40s");
    stg_world_set_filter(w, 0, UINT32_MAX);
    world_script(w, 0, "503 503 503 200");
    stg_world_publish(w, 0, 3);
    stg_world_start(w);
    stg_world_run(w, world_after(w, 100 * STG_MS));
    CHECK_U64(world_look(w, 0).dead, 3);
    CHECK_U64(world_look(w, 0).state, STG_LANE_CIRCUIT_OPEN);
    CHECK(!stg_world_probe(w, 0));
    stg_world_set_filter(w, 0, 1);
    stg_world_publish(w, 0, 1);
    stg_world_run(w, world_after(w, 100 * STG_MS));
    CHECK(!stg_world_probe(w, 0));
    stg_world_set_filter(w, 0, UINT32_MAX);
    CHECK(stg_world_probe(w, 0));
    stg_world_run(w, world_after(w, 100 * STG_MS));
    CHECK_U64(world_look(w, 0).delivered, 1);
    CHECK_U64(world_look(w, 0).state, STG_LANE_LIVE);
    stg_world_run(w, STG_NEVER);
    world_end(w);
}

/* I3 A probe that could not connect counts nothing, however often. */
TEST(breaker, a_probe_that_could_not_connect_uses_no_attempt)
{
    stg_world *w = world_new(2);

    world_lane(w, FRAIL)->shed_after = STG_NEVER;
    world_script(w, 0, "503 503 503 refused");
    stg_world_publish(w, 0, 3);
    stg_world_start(w);
    stg_world_run(w, world_after(w, STG_HOUR));
    CHECK(stg_world_sum_lane(w, 0).starts > 50);
    CHECK_U64(stg_world_sum(w).parked, 3);
    world_script(w, 0, "200");
    stg_world_run(w, STG_NEVER);
    CHECK_U64(world_look(w, 0).delivered, 3);
    world_end(w);
}

/* One that was answered, badly, is an attempt as any. */
TEST(breaker, a_probe_that_fails_otherwise_counts)
{
    stg_world *w = world_new(1);

    world_lane(w, FRAIL)->shed_after = STG_NEVER;
    world_script(w, 0, "503");
    stg_world_publish(w, 0, 3);
    stg_world_start(w);
    stg_world_run(w, STG_NEVER);
    CHECK_TRACE(world_trace(w),
                "     10 ms  0:1 #1 503  wait 1000 ms (backoff)\n"
                "     20 ms  0:2 #1 503  wait 1000 ms (backoff)\n"
                "     30 ms  0:3 #1 503  wait 1000 ms (backoff)\n"
                "     30 ms  0: opened\n"
                "  10040 ms  0:1 #2 503  wait 1000 ms (backoff)\n"
                "  30050 ms  0:2 #2 503  wait 1000 ms (backoff)\n"
                "  70060 ms  0:1 #3 503  attempts\n"
                " 110070 ms  0:3 #2 503  wait 1000 ms (backoff)\n"
                " 150080 ms  0:2 #3 503  attempts\n"
                " 190090 ms  0:3 #3 503  attempts\n");
    world_end(w);
}

static stg_world_answer answer_by_position(stg_world *w, uint32_t l,
                                           uint64_t position, uint64_t attempt)
{
    (void)l;
    (void)attempt;
    if (stg_world_now(w) > 20 * STG_S)
        return (stg_world_answer){stg_ok(), 10 * STG_MS, true};
    if (stg_world_now(w) < 1500 * STG_MS)
        return (stg_world_answer){stg_ok(), 50 * STG_MS, true};
    // Some take longer: they end when the breaker is open.
    return (stg_world_answer){stg_failed(STG_FAULT_REFUSED),
                              (position % 4 == 0 ? 3000 : 10) * STG_MS, false};
}

/* I3 What was under way when the breaker opened is an attempt as any: those
 * that end later with a refusal are used up. Only the probe's is not. */
TEST(breaker, what_was_under_way_when_it_opened_counts)
{
    stg_world *w = world_new(4);
    uint64_t twice = 0;

    world_lane(w, FRAIL);
    stg_world_set_target(w, 0, answer_by_position);
    stg_world_publish(w, 0, 1000);
    stg_world_start(w);
    stg_world_run(w, STG_NEVER);
    CHECK(strstr(world_trace(w), "#1 refused  wait 1000 ms") != NULL);
    CHECK_U64(world_look(w, 0).delivered, 1000);
    for (uint64_t i = 0; i < 1000; i++) {
        const stg_world_receipt *r =
            world_receipt_of(w, 0, stg_world_position_at(w, i));

        CHECK(r->attempts <= 2);
        // Slow ones began before the breaker opened and ended after it.
        if (stg_world_position_at(w, i) % 4 == 0 && r->attempts == 2)
            twice++;
    }
    CHECK(twice > 1);
    world_end(w);
}

/* Of a policy that does not retry a refusal they are dead, though the breaker
 * had opened before they ended. */
TEST(breaker, what_was_under_way_when_it_opened_may_die)
{
    stg_world *w = world_new(4);

    world_lane(w,
               "fixed base=1s attempts=3 deadline=none attempt-timeout=5s "
               "retry=5xx breaker=3:10s-40s");
    stg_world_set_target(w, 0, answer_by_position);
    stg_world_publish(w, 0, 1000);
    stg_world_start(w);
    stg_world_run(w, STG_NEVER);
    CHECK(stg_world_sum(w).dead > 3);
    CHECK_U64(world_look(w, 0).delivered + stg_world_sum(w).dead, 1000);
    world_end(w);
}

static stg_world_answer answer_in_100(stg_world *w, uint32_t l,
                                      uint64_t position, uint64_t attempt)
{
    (void)w;
    (void)l;
    (void)position;
    (void)attempt;
    return (stg_world_answer){stg_ok(), 100 * STG_MS, true};
}

/* The one that comes back is not trampled: the probe, then 1, 2, 4 ... */
TEST(breaker, starts_slowly_after_a_probe_has_succeeded)
{
    static const uint32_t rounds[] = {1, 1, 2, 4, 8, 16, 16, 16, 16, 20};
    stg_world *w = world_new(5);

    world_lane(w, FRAIL)->in_flight_max = 20;
    stg_world_set_target(w, 0, answer_in_100);
    stg_world_publish(w, 0, 1000);
    stg_world_start(w);
    stg_world_run(w, world_after(w, STG_S));
    CHECK_U64(world_look(w, 0).limit, 20);
    world_script(w, 0, "refused");
    stg_world_run(w, world_after(w, 5 * STG_S));
    CHECK_U64(world_look(w, 0).state, STG_LANE_CIRCUIT_OPEN);
    stg_world_set_target(w, 0, answer_in_100);
    stg_world_run(w, world_look(w, 0).gate_until + 50 * STG_MS);
    for (size_t i = 0; i < sizeof rounds / sizeof *rounds; i++) {
        CHECK_U64(world_look(w, 0).in_flight, rounds[i]);
        stg_world_run(w, world_after(w, 100 * STG_MS));
    }
    stg_world_run(w, STG_NEVER);
    world_end(w);
}

/* I22 Whatever comes: between two starts on an open lane there is an interval.
 */
TEST(breaker, starts_nothing_but_probes_while_it_is_open)
{
    for (uint64_t seed = 0; seed < seeds(20); seed++) {
        stg_world *w = world_new(seed);
        uint64_t starts;

        world_lane(w, FRAIL)->shed_after = STG_NEVER;
        world_trace_off(w);
        world_script(w, 0, "200 200 503 200 reset 503 503 refused");
        stg_world_publish(w, 0, 200);
        stg_world_start(w);
        stg_world_run(w, world_after(w, 6 * STG_S));
        CHECK_FROM(seed, world_look(w, 0).state == STG_LANE_CIRCUIT_OPEN);
        starts = stg_world_sum_lane(w, 0).starts;
        for (uint32_t i = 0; i < 60; i++) {
            stg_world_publish(w, 0, 1);
            stg_world_run(w, world_after(w, 10 * STG_S));
            CHECK_FROM(seed, stg_world_sum_lane(w, 0).starts <= starts + 1);
            starts = stg_world_sum_lane(w, 0).starts;
        }
        world_script(w, 0, "200");
        stg_world_run(w, STG_NEVER);
        world_end(w);
    }
}

/* A hanging probe has its timeout; then the next one. */
TEST(breaker, a_probe_that_hangs_is_one_attempt)
{
    stg_world *w = world_begin(6, FRAIL, "503 503 503 hang 200", 3);

    stg_world_run(w, STG_NEVER);
    CHECK_TRACE(world_trace(w),
                "     10 ms  0:1 #1 503  wait 1000 ms (backoff)\n"
                "     20 ms  0:2 #1 503  wait 1000 ms (backoff)\n"
                "     30 ms  0:3 #1 503  wait 1000 ms (backoff)\n"
                "     30 ms  0: opened\n"
                "  15030 ms  0:1 #2 timeout  wait 1000 ms (backoff)\n"
                "  35040 ms  0:2 #2 200  done\n"
                "  35040 ms  0: closed\n"
                "  35050 ms  0:3 #2 200  done\n"
                "  35050 ms  0:1 #3 200  done\n");
    world_end(w);
}

/* The breaker's levels are of an incarnation: a new one begins closed. */
TEST(breaker, is_closed_after_a_restart)
{
    stg_world *w = world_begin(7, FRAIL, "503 503 503 200", 10);

    stg_world_run(w, world_after(w, STG_S));
    CHECK_U64(world_look(w, 0).state, STG_LANE_CIRCUIT_OPEN);
    stg_world_crash(w, 0);
    stg_world_run(w, world_after(w, STG_S));
    CHECK_U64(world_look(w, 0).delivered, 10);
    world_end(w);
}
