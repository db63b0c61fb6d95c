/* What was tried and waits: a durable row, and the lane moves on (I3, I4,
 * I21). */
#include "tests/flow/world.h"

#include "flow/lane.h"

/* I4 */
TEST(parking, waits_as_the_policy_says)
{
    stg_world *w = world_begin(
        1,
        "exponential base=1s factor=2 cap=3s jitter=none attempts=5 "
        "deadline=none retry=5xx",
        "503", 1);

    stg_world_run(w, STG_NEVER);
    CHECK_TRACE(world_trace(w),
                "     10 ms  0:1 #1 503  wait 1000 ms (backoff)\n"
                "   1020 ms  0:1 #2 503  wait 2000 ms (backoff)\n"
                "   3030 ms  0:1 #3 503  wait 3000 ms (backoff)\n"
                "   6040 ms  0:1 #4 503  wait 3000 ms (backoff)\n"
                "   9050 ms  0:1 #5 503  attempts\n");
    CHECK_U64(stg_world_sum(w).dead, 1);
    CHECK_U64(stg_world_dead_at(w, 0)->attempts, 5);
    world_end(w);
}

/* The next attempt waits for its row: max(due, durable). */
TEST(parking, waits_for_the_row_to_be_durable)
{
    stg_world *w = world_new(1);

    world_lane(w, STEADY);
    stg_world_set_store_delay(w, 3 * STG_S);
    world_script(w, 0, "503 200");
    stg_world_publish(w, 0, 1);
    stg_world_start(w);
    stg_world_run(w, STG_NEVER);
    // The group of the start is there at 3 s, that of the row at 6 s.
    CHECK_TRACE(world_trace(w),
                "     10 ms  0:1 #1 503  wait 1000 ms (backoff)\n"
                "   6010 ms  0:1 #2 200  done\n");
    world_end(w);
}

/* Until the first write is durable it keeps its place in the ring: a slow
 * store slows the lane, and no other. */
TEST(parking, a_slow_store_slows_the_lane_that_fails_only)
{
    stg_world *w = world_new(1);

    world_lane(w, STEADY)->in_flight_max = 2;
    world_lane(w, STEADY);
    stg_world_set_store_delay(w, 100 * STG_S);
    world_script(w, 0, "503");
    stg_world_publish(w, 0, 500);
    stg_world_start(w);
    stg_world_run(w, world_after(w, 50 * STG_S));
    CHECK_U64(stg_world_sum_lane(w, 0).starts, 8); // 4 times its 2
    CHECK_U64(world_look(w, 0).waiting, 8);
    CHECK_U64(world_look(w, 1).delivered, 500);
    world_free(w);
}

TEST(parking, holds_64_rows_in_memory)
{
    stg_world *w = world_new(2);
    const stg_lane *l;

    world_lane(w,
               "fixed base=10m jitter=none attempts=3 deadline=none "
               "retry=5xx");
    world_script(w, 0, "503");
    stg_world_publish(w, 0, 500);
    stg_world_start(w);
    stg_world_run(w, world_after(w, STG_MIN));
    l = world_lane_of(w, 0);
    CHECK_U64(stg_world_sum(w).parked, 500);
    CHECK_U64(l->caches[STG_PARKED_RETRIES].count, STG_PARKED_HELD);
    CHECK(!l->caches[STG_PARKED_RETRIES].is_all);
    stg_world_run(w, STG_NEVER);
    CHECK_U64(world_look(w, 0).dead, 500);
    CHECK(stg_world_sum(w).fetches >= 500 / 64);
    world_end(w);
}

/* In the order in which they are due, whatever is fetched when. */
TEST(parking, tries_what_is_due_first_first)
{
    stg_world *w = world_new(3);
    stg_lane_options *o = world_lane(w,
                                     "fixed base=10m jitter=none attempts=2 "
                                     "deadline=none retry=5xx");
    stg_ns last = 0;

    o->in_flight_max = 1;
    world_script(w, 0, "503");
    stg_world_publish(w, 0, 300);
    stg_world_start(w);
    stg_world_run(w, STG_NEVER);
    for (uint64_t i = 0; i < 300; i++) {
        const stg_world_receipt *r =
            world_receipt_of(w, 0, stg_world_position_at(w, i));

        CHECK_FROM(i, r->attempts == 2 && r->started_at > last);
        last = r->started_at;
    }
    world_end(w);
}

/* Live first, and one start in four for what was parked. */
TEST(parking, one_start_in_four_is_for_what_was_parked)
{
    stg_world *w = world_new(4);
    stg_lane_options *o = world_lane(w, STEADY);

    o->in_flight_max = 1;
    world_script(w, 0, "503 503 503 503 503 503 503 503 200");
    stg_world_publish(w, 0, 300);
    stg_world_start(w);
    stg_world_run(w, world_after(w, 1500 * STG_MS));
    // From 1 s on, 50 starts: the 8 rows are among the first 32.
    for (uint64_t i = 0; i < 8; i++)
        CHECK_FROM(
            i,
            world_receipt_of(w, 0, stg_world_position_at(w, i))->attempts == 2);
    CHECK(world_look(w, 0).delivered < 200);
    stg_world_run(w, STG_NEVER);
    world_end(w);
}

/* -- fetches that race ----------------------------------------------------- */

/* Row 1 is settled while the store answers with it: it is not sent again. */
TEST(parking, does_not_send_what_was_settled_while_it_was_fetched)
{
    for (stg_ns delay = 0; delay < 200; delay += 5) {
        stg_world *w = world_new(5);

        world_lane(w,
                   "fixed base=10s jitter=none attempts=3 deadline=none "
                   "retry=5xx");
        stg_world_set_fetch_delay(w, delay * STG_MS);
        world_script(w, 0, "503");
        stg_world_publish(w, 0, 200);
        stg_world_start(w);
        stg_world_run(w, world_after(w, 5 * STG_S));
        world_script(w, 0, "200");
        stg_world_run(w, STG_NEVER);
        CHECK_FROM(delay, stg_world_sum(w).fetches > 0);
        CHECK_FROM(delay, world_look(w, 0).delivered == 200);
        for (uint64_t i = 0; i < 200; i++)
            CHECK_FROM(delay,
                       world_receipt_of(w, 0, stg_world_position_at(w, i))
                               ->processed == 1);
        world_end(w);
    }
}

/* Nor what was parked, tried again and settled all the while. */
TEST(parking, does_not_send_what_came_and_went_while_it_was_fetched)
{
    stg_world *w = world_new(12);

    world_lane(w,
               "fixed base=20s jitter=none attempts=9 deadline=none "
               "retry=5xx");
    stg_world_set_fetch_delay(w, 60 * STG_S);
    world_script(w, 0, "503");
    stg_world_publish(w, 0, 200);
    stg_world_start(w);
    stg_world_run(w, world_after(w, 22 * STG_S)); // rows are being fetched
    CHECK_U64(stg_world_sum(w).fetches, 1);
    stg_world_run(w, world_after(w, 5 * STG_S));
    stg_world_publish(w, 0, 20);
    stg_world_run(w, world_after(w, 10 * STG_S)); // and these are parked
    world_script(w, 0, "200");
    stg_world_run(w, STG_NEVER);
    CHECK_U64(world_look(w, 0).delivered, 220);
    for (uint64_t i = 0; i < 220; i++)
        CHECK_U64(
            world_receipt_of(w, 0, stg_world_position_at(w, i))->processed, 1);
    world_end(w);
}

/* Rows come and go, are replaced and fetched, at every pace. */
TEST(parking, keeps_up_with_a_store_of_any_pace)
{
    for (uint64_t seed = 0; seed < seeds(40); seed++) {
        stg_world *w = world_new(seed);
        stg_rng rng = stg_rng_seed(seed);

        world_trace_off(w);
        world_lane(w,
                   "exponential base=50ms jitter=full attempts=6 "
                   "deadline=none retry=5xx");
        stg_world_set_fetch_delay(w, stg_rng_upto(&rng, STG_S));
        stg_world_set_store_delay(w, stg_rng_upto(&rng, 200 * STG_MS));
        world_script(w, 0, "503 200 503 503 200 503 503 503");
        stg_world_publish(w, 0, 300);
        stg_world_start(w);
        stg_world_run(w, STG_NEVER);
        world_end(w);
    }
}

/* -- as many as it may have ------------------------------------------------ */

TEST(parking, gates_at_parked_max)
{
    stg_world *w = world_new(6);
    stg_lane_options *o = world_lane(w,
                                     "fixed base=1m jitter=none attempts=2 "
                                     "deadline=none retry=5xx");

    o->parked_max = 20;
    world_script(w, 0, "503");
    stg_world_publish(w, 0, 100);
    stg_world_start(w);
    stg_world_run(w, world_after(w, 30 * STG_S));
    CHECK_U64(stg_world_sum(w).parked, 20);
    CHECK_U64(world_look(w, 0).state, STG_LANE_THROTTLED);
    CHECK(strstr(world_trace(w), "0: parked-max\n") != NULL);
    world_script(w, 0, "200");
    stg_world_run(w, STG_NEVER);
    CHECK_U64(world_look(w, 0).state, STG_LANE_LIVE);
    CHECK_U64(world_look(w, 0).delivered, 100);
    world_end(w);
}

/* -- memory ---------------------------------------------------------------- */

/* I6 Bodies of parked rows go first; they come back from the store. */
TEST(parking, gives_up_bodies_under_memory_pressure)
{
    stg_world *w = world_new(7);

    stg_world_options(w)->memory_max = 1 << 20;
    stg_world_set_size(w, 15000);
    world_lane(w,
               "fixed base=20s jitter=none attempts=2 deadline=none "
               "retry=5xx");
    world_lane(w, STEADY);
    world_script(w, 0, "503");
    stg_world_publish(w, 0, 60);
    stg_world_start(w);
    stg_world_run(w, world_after(w, 10 * STG_S));
    stg_world_publish(w, 0, 200);
    stg_world_run(w, world_after(w, 5 * STG_S));
    CHECK_U64(world_look(w, 1).delivered, 260);
    CHECK(world_lane_of(w, 0)->caches[STG_PARKED_RETRIES].count < 60);
    stg_world_run(w, STG_NEVER);
    CHECK_U64(world_look(w, 0).dead, 260);
    world_end(w);
}

/* -- over a restart -------------------------------------------------------- */

TEST(parking, keeps_attempts_and_due_time_over_a_restart)
{
    stg_world *w =
        world_begin(8,
                    "fixed base=10s jitter=none attempts=3 deadline=none "
                    "retry=5xx",
                    "503", 1);

    stg_world_run(w, world_after(w, STG_S));
    stg_world_crash(w, 4 * STG_S);
    stg_world_run(w, STG_NEVER);
    CHECK_TRACE(world_trace(w),
                "     10 ms  0:1 #1 503  wait 10000 ms (backoff)\n"
                "  10020 ms  0:1 #2 503  wait 10000 ms (backoff)\n"
                "  20030 ms  0:1 #3 503  attempts\n");
    world_end(w);
}

/* Down for longer than the wait: due at once. */
TEST(parking, starts_at_once_what_was_due_while_it_was_down)
{
    stg_world *w = world_begin(8, STEADY, "503 200", 1);

    stg_world_run(w, world_after(w, 100 * STG_MS));
    stg_world_crash(w, STG_MIN);
    stg_world_run(w, STG_NEVER);
    CHECK_TRACE(world_trace(w),
                "     10 ms  0:1 #1 503  wait 1000 ms (backoff)\n"
                "  60110 ms  0:1 #2 200  done\n");
    world_end(w);
}

/* I21 Set forward: early, once. */
TEST(parking, is_early_once_when_the_clock_was_set_forward)
{
    stg_world *w =
        world_begin(8,
                    "fixed base=10m jitter=none attempts=3 deadline=none "
                    "retry=5xx",
                    "503", 1);

    stg_world_run(w, world_after(w, STG_S));
    stg_world_stop(w);
    stg_world_set_wall_forward(w, STG_HOUR);
    stg_world_restart(w, 0);
    stg_world_run(w, STG_NEVER);
    CHECK_TRACE(world_trace(w),
                "     10 ms  0:1 #1 503  wait 600000 ms (backoff)\n"
                "   1010 ms  0:1 #2 503  wait 600000 ms (backoff)\n"
                " 601020 ms  0:1 #3 503  attempts\n");
    world_end(w);
}

/* I21 Set back: never longer than the stored wait. */
TEST(parking, waits_no_longer_than_its_wait_when_the_clock_was_set_back)
{
    stg_world *w =
        world_begin(8,
                    "fixed base=10m jitter=none attempts=3 deadline=none "
                    "retry=5xx",
                    "503", 100);

    stg_world_run(w, world_after(w, 10 * STG_S));
    stg_world_stop(w);
    stg_world_set_wall_back(w, STG_DAY);
    stg_world_restart(w, 0);
    stg_world_run(w, world_after(w, 11 * STG_MIN));
    CHECK_U64(stg_world_sum_lane(w, 0).starts, 200);
    stg_world_run(w, STG_NEVER);
    world_end(w);
}

/* -- the deadline ---------------------------------------------------------- */

/* What waited past its deadline for something else is given up, and has no
 * attempt without time. */
TEST(parking, gives_up_what_is_past_its_deadline)
{
    stg_world *w =
        world_begin(9,
                    "fixed base=1s jitter=none attempts=3 deadline=10s "
                    "retry=5xx",
                    "503", 1);

    stg_world_run(w, world_after(w, 100 * STG_MS));
    stg_world_pause(w, 0, true);
    stg_world_run(w, world_after(w, 20 * STG_S));
    stg_world_pause(w, 0, false);
    stg_world_run(w, STG_NEVER);
    CHECK_U64(stg_world_sum_lane(w, 0).starts, 1);
    CHECK_U64(stg_world_sum(w).dead, 1);
    CHECK_U64(stg_world_dead_at(w, 0)->why, STG_WHY_DEADLINE);
    world_end(w);
}

/* -- reset-after ----------------------------------------------------------- */

/* The second attempt runs for 70 s. */
static stg_world_answer answer_long(stg_world *w, uint32_t l, uint64_t position,
                                    uint64_t attempt)
{
    (void)w;
    (void)l;
    (void)position;
    return (stg_world_answer){stg_answered(503),
                              attempt == 2 ? 70 * STG_S : 10 * STG_MS, false};
}

static stg_world *make_long(uint64_t seed, const char *policy)
{
    stg_world *w = world_new(seed);

    world_lane(w, policy);
    stg_world_set_target(w, 0, answer_long);
    stg_world_publish(w, 0, 1);
    stg_world_start(w);
    stg_world_run(w, world_after(w, 120 * STG_S));
    stg_world_crash(w, STG_S);
    stg_world_run(w, STG_NEVER);
    return w;
}

/* A new series begins with the attempt that ran long; what was on the wire
 * before is counted, also after a restart and a replay (I13). */
TEST(parking, counts_the_attempts_of_all_series)
{
    stg_world *w =
        make_long(12,
                  "fixed base=40s jitter=none attempts=3 deadline=none "
                  "reset-after=60s retry=5xx");
    uint64_t position = stg_world_position_at(w, 0);

    CHECK_U64(world_receipt_of(w, 0, position)->attempts, 4);
    CHECK_U64(stg_world_dead_at(w, 0)->attempts, 4);
    CHECK_U64(stg_world_replay(w, 0, 1), 1);
    stg_world_run(w, STG_NEVER);
    CHECK_U64(world_receipt_of(w, 0, position)->attempts, 7);
    CHECK_U64(stg_world_dead_at(w, 0)->attempts, 7);
    world_end(w);
}

/* Its deadline begins anew, too, and a restart does not forget that. */
TEST(parking, begins_a_new_series_with_a_deadline_of_its_own)
{
    stg_world *w =
        make_long(13,
                  "fixed base=40s jitter=none attempts=9 deadline=150s "
                  "reset-after=60s retry=5xx");

    CHECK_U64(stg_world_dead_at(w, 0)->attempts, 5);
    CHECK_U64(stg_world_dead_at(w, 0)->why, STG_WHY_DEADLINE);
    world_end(w);
}

/* -- replays --------------------------------------------------------------- */

TEST(parking, delivers_what_was_replayed)
{
    stg_world *w = world_begin(10, STEADY, "404", 200);

    stg_world_run(w, world_after(w, 10 * STG_S));
    CHECK_U64(world_look(w, 0).dead, 200);
    world_script(w, 0, "503 503 503 200");
    CHECK_U64(stg_world_replay(w, 0, 150), 150);
    CHECK_U64(world_look(w, 0).parked, 150);
    stg_world_run(w, STG_NEVER);
    CHECK_U64(world_look(w, 0).delivered, 150);
    CHECK_U64(world_look(w, 0).dead, 50);
    world_end(w);
}

/* While other rows wait, are fetched and are in flight. */
TEST(parking, takes_replays_at_any_moment)
{
    for (uint64_t steps = 0; steps < 400; steps += 7) {
        stg_world *w = world_new(11);

        world_lane(w, STEADY);
        world_script(w, 0, "404 404 404 404 404 404 404 404 503");
        stg_world_publish(w, 0, 150);
        stg_world_start(w);
        stg_world_steps(w, 60 + steps);
        stg_world_replay(w, 0, 5);
        stg_world_steps(w, steps);
        world_script(w, 0, "200");
        stg_world_replay(w, 0, 1000);
        stg_world_run(w, STG_NEVER);
        world_end(w);
    }
}
