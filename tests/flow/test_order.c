/* Ordered lanes: of a key, or of all, the next one starts when the one before
 * has ended (I18). The world watches every start. */
#include "tests/flow/world.h"

static stg_world *make_world(uint64_t seed, stg_order order, const char *policy)
{
    stg_world *w = world_new(seed);

    world_lane(w, policy)->order = order;
    return w;
}

/* I18 */
TEST(order, none_lets_the_next_one_overtake)
{
    stg_world *w = make_world(1, STG_ORDER_NONE, STEADY);

    world_script(w, 0, "503 200");
    stg_world_publish(w, 0, 2);
    stg_world_start(w);
    stg_world_run(w, STG_NEVER);
    CHECK_TRACE(world_trace(w),
                "     10 ms  0:1 #1 503  wait 1000 ms (backoff)\n"
                "     20 ms  0:2 #1 200  done\n"
                "   1020 ms  0:1 #2 200  done\n");
    world_end(w);
}

TEST(order, strict_waits_for_the_one_before)
{
    stg_world *w = make_world(1, STG_ORDER_STRICT, STEADY);

    world_script(w, 0, "503 200");
    stg_world_publish(w, 0, 3);
    stg_world_start(w);
    stg_world_run(w, STG_NEVER);
    CHECK_TRACE(world_trace(w),
                "     10 ms  0:1 #1 503  wait 1000 ms (backoff)\n"
                "   1020 ms  0:1 #2 200  done\n"
                "   1035 ms  0:2 #1 200  done\n"
                "   1045 ms  0:3 #1 200  done\n");
    world_end(w);
}

/* What has given up has ended, too. */
TEST(order, strict_goes_on_after_a_dead_letter)
{
    stg_world *w = make_world(1, STG_ORDER_STRICT, STEADY);

    world_script(w, 0, "404 200");
    stg_world_publish(w, 0, 2);
    stg_world_start(w);
    stg_world_run(w, STG_NEVER);
    CHECK_TRACE(world_trace(w),
                "     10 ms  0:1 #1 404  permanent\n"
                "     25 ms  0:2 #1 200  done\n");
    world_end(w);
}

/* Keys 1, 2, 1, 2: each waits for its own. */
TEST(order, key_waits_for_its_own_key_only)
{
    stg_world *w = make_world(1, STG_ORDER_KEY, STEADY);

    stg_world_set_keys(w, 2);
    world_script(w, 0, "503 200");
    stg_world_publish(w, 0, 4);
    stg_world_start(w);
    stg_world_run(w, STG_NEVER);
    CHECK_TRACE(world_trace(w),
                "     10 ms  0:1 #1 503  wait 1000 ms (backoff)\n"
                "     20 ms  0:2 #1 200  done\n"
                "     30 ms  0:4 #1 200  done\n"
                "   1020 ms  0:1 #2 200  done\n"
                "   1035 ms  0:3 #1 200  done\n");
    world_end(w);
}

TEST(order, no_key_is_no_order)
{
    stg_world *w = make_world(1, STG_ORDER_KEY, STEADY);

    world_script(w, 0, "503 200");
    stg_world_publish(w, 0, 2);
    stg_world_start(w);
    stg_world_run(w, STG_NEVER);
    CHECK_U64(world_receipt_of(w, 0, stg_world_position_at(w, 1))->started_at,
              STG_S + 10 * STG_MS);
    world_end(w);
}

/* Strict within a partition: two partitions do not wait for each other. */
TEST(order, partitions_have_no_order_among_them)
{
    stg_world *w = make_world(1, STG_ORDER_STRICT, STEADY);

    stg_world_set_partitions(w, 2);
    world_script(w, 0, "503 200");
    stg_world_publish(w, 0, 1);
    stg_world_publish(w, 1, 1);
    stg_world_start(w);
    stg_world_run(w, STG_NEVER);
    CHECK_TRACE(world_trace(w),
                "     10 ms  0:1 #1 503  wait 1000 ms (backoff)\n"
                "     20 ms  0:1 #1 200  done\n"
                "   1020 ms  0:1 #2 200  done\n");
    world_end(w);
}

/* The price: the lane takes 4 times its attempts, and then waits whole. */
TEST(order, waits_whole_when_the_ring_is_full)
{
    stg_world *w = world_new(2);
    stg_lane_options *o =
        world_lane(w,
                   "fixed base=1h jitter=none attempts=2 deadline=none "
                   "attempt-timeout=2s retry=503");

    o->order = STG_ORDER_KEY;
    o->in_flight_max = 4;
    stg_world_set_keys(w, 100);
    world_script(w, 0, "503 200");
    stg_world_publish(w, 0, 100);
    stg_world_start(w);
    stg_world_run(w, world_after(w, STG_MIN));
    CHECK_U64(world_look(w, 0).delivered, 15);
    CHECK_U64(world_look(w, 0).base, stg_world_position_at(w, 0));
    stg_world_run(w, STG_NEVER);
    CHECK_U64(world_look(w, 0).delivered, 100);
    world_end(w);
}

/* -- over a restart -------------------------------------------------------- */

/* The row has attempts and due time, the base stays, and the message that is
 * read again is that row. */
TEST(order, a_parked_head_goes_on_after_a_crash)
{
    stg_world *w = make_world(1, STG_ORDER_STRICT, STEADY);

    world_script(w, 0, "503 503 200");
    stg_world_publish(w, 0, 2);
    stg_world_start(w);
    stg_world_run(w, world_after(w, 100 * STG_MS));
    CHECK_U64(stg_world_sum(w).parked, 1);
    stg_world_crash(w, 500 * STG_MS);
    stg_world_run(w, STG_NEVER);
    CHECK_TRACE(world_trace(w),
                "     10 ms  0:1 #1 503  wait 1000 ms (backoff)\n"
                "   1020 ms  0:1 #2 503  wait 1000 ms (backoff)\n"
                "   2030 ms  0:1 #3 200  done\n"
                "   2045 ms  0:2 #1 200  done\n");
    world_end(w);
}

/* As many heads as there are keys, in two partitions, more than are fetched at
 * a time. */
TEST(order, loads_all_parked_heads_before_it_goes_on)
{
    stg_world *w = world_new(3);
    stg_lane_options *o = world_lane(w, STEADY);

    o->order = STG_ORDER_KEY;
    o->in_flight_max = 16;
    stg_world_set_partitions(w, 2);
    stg_world_set_keys(w, 200);
    world_script(w, 0, "503");
    stg_world_publish(w, 0, 60);
    stg_world_publish(w, 1, 60);
    stg_world_start(w);
    stg_world_run(w, world_after(w, 990 * STG_MS));
    CHECK(stg_world_sum(w).parked > 64);
    world_script(w, 0, "200");
    stg_world_crash(w, 100 * STG_MS);
    stg_world_run(w, STG_NEVER);
    CHECK(stg_world_sum(w).fetches > 1);
    CHECK_U64(world_look(w, 0).delivered, 120);
    world_end(w);
}

/* The log has lost what the rows still have. */
TEST(order, attaches_heads_that_the_log_has_lost)
{
    for (uint64_t heads = 1; heads < 20; heads++) {
        stg_world *w = world_new(4);
        stg_lane_options *o = world_lane(w, STEADY);

        o->order = STG_ORDER_KEY;
        o->in_flight_max = 16;
        stg_world_set_keys(w, 100);
        world_script(w, 0, "503");
        stg_world_publish(w, 0, heads);
        stg_world_start(w);
        stg_world_run(w, world_after(w, 990 * STG_MS));
        CHECK_FROM(heads, stg_world_sum(w).parked == heads);
        world_script(w, 0, "200");
        stg_world_trim(w, 0, stg_world_position_at(w, heads - 1) + 1);
        stg_world_publish(w, 0, 30);
        stg_world_crash(w, 100 * STG_MS);
        stg_world_run(w, STG_NEVER);
        CHECK_FROM(heads, world_look(w, 0).delivered == heads + 30);
        world_end(w);
    }
}

/* -- what comes in between ------------------------------------------------- */

/* A replay is out of turn: nothing waits for it, and it for nothing. */
TEST(order, lets_a_replay_pass)
{
    stg_world *w = make_world(1, STG_ORDER_STRICT, STEADY);

    world_script(w, 0, "404 200 503 200");
    stg_world_publish(w, 0, 3);
    stg_world_start(w);
    stg_world_run(w, world_after(w, 500 * STG_MS));
    CHECK_U64(stg_world_replay(w, 0, 1), 1);
    stg_world_run(w, STG_NEVER);
    CHECK_TRACE(world_trace(w),
                "     10 ms  0:1 #1 404  permanent\n"
                "     25 ms  0:2 #1 200  done\n"
                "     35 ms  0:3 #1 503  wait 1000 ms (backoff)\n"
                "    510 ms  0:1 #2 200  done\n"
                "   1045 ms  0:3 #2 200  done\n");
    CHECK_U64(world_look(w, 0).delivered, 3);
    CHECK_U64(world_look(w, 0).dead, 0);
    world_end(w);
}

/* A crash while a replay is parked: its message is below the base. */
TEST(order, keeps_a_replay_over_a_crash)
{
    stg_world *w = make_world(1, STG_ORDER_STRICT, STEADY);

    world_script(w, 0, "404 200 503");
    stg_world_publish(w, 0, 20);
    stg_world_start(w);
    stg_world_run(w, world_after(w, 500 * STG_MS));
    CHECK_U64(stg_world_replay(w, 0, 1), 1);
    stg_world_run(w, world_after(w, 500 * STG_MS));
    CHECK_U64(stg_world_sum(w).parked, 2);
    world_script(w, 0, "200");
    stg_world_crash(w, 0);
    stg_world_run(w, STG_NEVER);
    CHECK_U64(world_look(w, 0).delivered, 20);
    world_end(w);
}

/* What expires while its head waits is shed; the head goes on. */
TEST(order, sheds_behind_a_head_that_waits)
{
    stg_world *w = make_world(5, STG_ORDER_STRICT, STEADY);

    world_script(w, 0, "503 200");
    stg_world_publish(w, 0, 50);
    stg_world_start(w);
    stg_world_run(w, world_after(w, 500 * STG_MS));
    stg_world_retain(w, 0, stg_world_position_at(w, 40));
    stg_world_run(w, STG_NEVER);
    CHECK_U64(world_look(w, 0).delivered, 11);
    CHECK_U64(stg_world_sum_lane(w, 0).dead, 39);
    CHECK_U64(stg_world_sum_lane(w, 0).bulk_dead, 1);
    world_end(w);
}

/* I8 A head that waits pins no more than the lane's share of the memory. */
TEST(order, does_not_hold_up_other_lanes)
{
    stg_order order = STG_ORDER_KEY;

    do {
        stg_world *w = make_world(6, order,
                                  "fixed base=1h jitter=none attempts=2 "
                                  "deadline=none attempt-timeout=2s retry=503");

        stg_world_options(w)->memory_max = 1 << 20;
        world_lane(w, STEADY);
        stg_world_set_size(w, 30000);
        stg_world_set_keys(w, 1000);
        world_script(w, 0, "503");
        stg_world_publish(w, 0, 300);
        stg_world_start(w);
        stg_world_run(w, world_after(w, STG_MIN));
        CHECK_FROM(order, world_look(w, 1).delivered == 300);
        world_free(w);
    } while (order++ == STG_ORDER_KEY);
}
