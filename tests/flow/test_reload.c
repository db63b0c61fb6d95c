/* Other settings while it runs, and what they find after a restart (I7, I15,
 * I17, I18). */
#include "tests/flow/world.h"

static void change_order(stg_world *w, stg_order order)
{
    stg_lane_options o = stg_lane_options_default(NULL);

    stg_world_copy_options(w, 0, &o);
    o.order = order;
    CHECK(stg_world_change_lane(w, 0, &o, NULL, NULL) == STG_OK);
}

static void change_policy(stg_world *w, const char *policy)
{
    stg_lane_options o = stg_lane_options_default(NULL);

    stg_world_copy_options(w, 0, &o);
    CHECK(stg_world_change_lane(w, 0, &o, policy, NULL) == STG_OK);
}

/* -- lanes that come ------------------------------------------------------- */

TEST(reload, begins_a_lane_at_what_comes)
{
    stg_world *w = world_new(1);

    world_lane(w, STEADY);
    stg_world_publish(w, 0, 20);
    stg_world_start(w);
    stg_world_run(w, world_after(w, STG_S));
    world_join(w, STEADY, false);
    CHECK(!stg_world_sum_lane(w, 1).was_added); // not yet
    stg_world_run(w, world_after(w, 100 * STG_MS));
    CHECK(stg_world_sum_lane(w, 1).was_added);
    stg_world_crash(w, STG_S); // it is known from now on
    stg_world_publish(w, 0, 5);
    stg_world_run(w, STG_NEVER);
    CHECK_U64(world_look(w, 0).delivered, 25);
    CHECK_U64(world_look(w, 1).delivered, 5);
    world_end(w);
}

/* A lane that is paused holds the log. */
TEST(reload, begins_a_lane_at_the_oldest_message)
{
    stg_world *w = world_new(2);

    world_lane(w, STEADY);
    world_lane(w, STEADY);
    stg_world_publish(w, 0, 10);
    stg_world_start(w);
    stg_world_run(w, world_after(w, STG_S));
    stg_world_pause(w, 1, true);
    stg_world_publish(w, 0, 20);
    stg_world_run(w, world_after(w, STG_S));
    world_join(w, STEADY, true);
    stg_world_run(w, world_after(w, 100 * STG_MS));
    CHECK(stg_world_sum_lane(w, 2).was_added);
    CHECK(stg_world_committed(w, 0) <= stg_world_position_at(w, 10));
    stg_world_publish(w, 0, 5);
    stg_world_crash(w, STG_S);
    stg_world_run(w, world_after(w, STG_MIN));
    CHECK_U64(world_look(w, 0).delivered, 35);
    CHECK_U64(world_look(w, 1).delivered, 10);
    CHECK_U64(world_look(w, 2).delivered, 25);
    stg_world_pause(w, 1, false);
    stg_world_run(w, STG_NEVER);
    world_end(w);
}

/* Behind the window it reads by itself, while nothing is lost of the log. */
TEST(reload, begins_a_lane_at_the_oldest_behind_the_window)
{
    stg_world *w = world_new(3);

    stg_world_options(w)->memory_max = 1 << 20;
    stg_world_set_size(w, 20000);
    world_lane(w, STEADY);
    world_lane(w, STEADY)->is_paused = true;
    stg_world_publish(w, 0, 200);
    stg_world_start(w);
    stg_world_run(w, world_after(w, 5 * STG_S));
    world_join(w, STEADY, true);
    stg_world_run(w, world_after(w, STG_MIN));
    CHECK_U64(world_look(w, 2).delivered, 200);
    stg_world_pause(w, 1, false);
    stg_world_run(w, STG_NEVER);
    world_end(w);
}

/* -- levels ---------------------------------------------------------------- */

TEST(reload, keeps_what_is_left_of_a_budget)
{
    stg_world *w = world_new(4);

    world_lane(w, STEADY " budget=tokens:10:0.001/s");
    stg_world_options(w)->budget = (stg_budget_options){
        .kind = STG_BUDGET_TOKENS, .capacity = 10, .rate = 1};
    world_script(w, 0, "503 503 503 503 200");
    stg_world_publish(w, 0, 4);
    stg_world_start(w);
    stg_world_run(w, world_after(w, 5 * STG_S));
    CHECK_U64(world_look(w, 0).budget_left / 1000, 6);
    change_policy(w, STEADY " budget=tokens:100:0.001/s");
    CHECK_U64(world_look(w, 0).budget_left / 1000, 6);
    change_policy(w, STEADY " budget=tokens:3:0.001/s");
    CHECK_U64(world_look(w, 0).budget_left / 1000, 3);
    CHECK_U64(world_look_all(w).budget_left / 1000, 6);
    stg_world_options(w)->budget.capacity = 50;
    CHECK(stg_world_change(w, NULL) == STG_OK);
    CHECK_U64(world_look_all(w).budget_left / 1000, 6);
    world_free(w);
}

TEST(reload, keeps_a_breaker_open_with_other_numbers)
{
    stg_world *w = world_begin(5, STEADY " breaker=2:30s-10m", "reset", 10);

    stg_world_run(w, world_after(w, STG_S));
    CHECK_INT(world_look(w, 0).breaker, STG_BREAKER_OPEN);
    change_policy(w, STEADY " breaker=50%/10/5s:1s-2s");
    CHECK_INT(world_look(w, 0).breaker, STG_BREAKER_OPEN);
    CHECK_INT(world_look(w, 0).state, STG_LANE_CIRCUIT_OPEN);
    stg_world_run(w, world_after(w, 20 * STG_S));
    CHECK_U64(world_look(w, 0).in_flight, 0);
    change_policy(w, STEADY); // none at all
    CHECK_INT(world_look(w, 0).state, STG_LANE_LIVE);
    world_script(w, 0, "200");
    stg_world_run(w, STG_NEVER);
    CHECK_U64(world_look(w, 0).delivered, 10);
    world_end(w);
}

/* -- slots ----------------------------------------------------------------- */

TEST(reload, lowers_what_may_be_under_way)
{
    stg_world *w = world_new(6);
    stg_lane_options o = stg_lane_options_default(NULL);

    world_lane(w, STEADY);
    world_script(w, 0, "200");
    stg_world_publish(w, 0, 400);
    stg_world_start(w);
    stg_world_run(w, world_after(w, 70 * STG_MS));
    CHECK(world_look(w, 0).in_flight > 8);
    stg_world_copy_options(w, 0, &o);
    o.in_flight_max = 2;
    CHECK(stg_world_change_lane(w, 0, &o, NULL, NULL) == STG_OK);
    CHECK_U64(world_look(w, 0).limit, 2);
    stg_world_run(w, world_after(w, 50 * STG_MS));
    CHECK(world_look(w, 0).in_flight <= 2);
    stg_world_run(w, STG_NEVER);
    CHECK_U64(world_look(w, 0).delivered, 400);
    world_end(w);
}

TEST(reload, lowers_what_may_be_under_way_in_all)
{
    stg_world *w = world_new(7);

    world_lane(w, STEADY);
    stg_world_publish(w, 0, 2000);
    stg_world_start(w);
    stg_world_run(w, world_after(w, 70 * STG_MS));
    CHECK(world_look_all(w).in_flight > 8);
    stg_world_options(w)->in_flight_max = 1;
    CHECK(stg_world_change(w, NULL) == STG_OK);
    stg_world_run(w, world_after(w, 50 * STG_MS));
    CHECK_U64(world_look_all(w).in_flight, 2); // its own, and a shared one
    stg_world_options(w)->in_flight_max = 0;
    CHECK(stg_world_change(w, NULL) == STG_INVALID);
    stg_world_options(w)->in_flight_max = 100;
    CHECK(stg_world_change(w, NULL) == STG_OK);
    stg_world_run(w, world_after(w, 50 * STG_MS));
    CHECK(world_look_all(w).in_flight > 2);
    stg_world_run(w, STG_NEVER);
    world_end(w);
}

/* -- filters --------------------------------------------------------------- */

/* What it has taken it goes on with; of the rest it asks the new one. */
TEST(reload, asks_another_filter_of_what_is_still_to_come)
{
    stg_world *w = world_new(8);
    stg_lane_options o = stg_lane_options_default(NULL);
    uint64_t odd = 0;

    world_lane(w, STEADY);
    stg_world_publish(w, 0, 10);
    stg_world_start(w);
    stg_world_run(w, world_after(w, STG_S));
    CHECK_U64(world_look(w, 0).delivered, 10);
    stg_world_set_filter(w, 0, 2);
    stg_world_copy_options(w, 0, &o);
    CHECK(stg_world_change_lane(w, 0, &o, NULL, NULL) == STG_OK);
    stg_world_publish(w, 0, 20);
    stg_world_run(w, STG_NEVER);
    for (uint64_t i = 10; i < 30; i++)
        odd += stg_world_position_at(w, i) % 2;
    CHECK_U64(world_look(w, 0).delivered, 10 + odd);
    world_free(w);
}

/* -- pause ----------------------------------------------------------------- */

TEST(reload, lets_end_what_is_under_way_in_a_paused_lane)
{
    stg_world *w = world_new(9);

    world_lane(w, STEADY);
    stg_world_publish(w, 0, 3);
    stg_world_start(w);
    stg_world_run(w, world_after(w, 5 * STG_MS));
    stg_world_pause(w, 0, true);
    stg_world_run(w, world_after(w, STG_MIN));
    CHECK_U64(world_look(w, 0).delivered, 1);
    stg_world_crash(w, STG_S); // what pauses it is in the settings
    stg_world_run(w, world_after(w, STG_MIN));
    stg_world_pause(w, 0, false);
    stg_world_run(w, STG_NEVER);
    CHECK_TRACE(world_trace(w),
                "     10 ms  0:1 #1 200  done\n"
                " 121015 ms  0:2 #1 200  done\n"
                " 121025 ms  0:3 #1 200  done\n");
    world_end(w);
}

/* -- each setting of a lane, raised and lowered ----------------------------- */

/* Returns the options that the lane has now, to be changed. */
static stg_lane_options options_of(const stg_world *w)
{
    stg_lane_options o = stg_lane_options_default(NULL);

    stg_world_copy_options(w, 0, &o);
    return o;
}

static void change_shed_after(stg_world *w, stg_ns shed_after)
{
    stg_lane_options o = options_of(w);

    o.shed_after = shed_after;
    CHECK(stg_world_change_lane(w, 0, &o, NULL, NULL) == STG_OK);
}

TEST(reload, ends_and_begins_to_shed_by_another_time)
{
    stg_world *w = world_new(31);
    uint64_t shed;

    world_lane(w, STEADY " breaker=3:10s-10s")->shed_after = STG_MIN;
    world_script(w, 0, "503 503 503 refused");
    stg_world_publish(w, 0, 100);
    stg_world_start(w);
    stg_world_run(w, world_after(w, 2 * STG_MIN));
    CHECK_INT(world_look(w, 0).state, STG_LANE_SHEDDING);
    shed = world_look(w, 0).dead;
    CHECK_U64(shed, 97);
    change_shed_after(w, STG_MIN); // the same: nothing changes
    CHECK_INT(world_look(w, 0).state, STG_LANE_SHEDDING);

    change_shed_after(w, STG_NEVER);
    CHECK_INT(world_look(w, 0).state, STG_LANE_CIRCUIT_OPEN);
    stg_world_publish(w, 0, 20);
    stg_world_run(w, world_after(w, STG_HOUR));
    CHECK_U64(world_look(w, 0).dead, shed);

    change_shed_after(w, 2 * STG_HOUR);
    stg_world_run(w, world_after(w, STG_MIN));
    CHECK_U64(world_look(w, 0).dead, shed);
    change_shed_after(w, STG_HOUR); // which has passed
    stg_world_run(w, world_after(w, STG_MIN));
    CHECK_INT(world_look(w, 0).state, STG_LANE_SHEDDING);
    CHECK_U64(world_look(w, 0).dead, shed + 20);

    change_shed_after(w, 3 * STG_HOUR);
    stg_world_publish(w, 0, 10);
    stg_world_run(w, world_after(w, STG_MIN));
    world_script(w, 0, "200");
    stg_world_run(w, STG_NEVER);
    CHECK_U64(world_look(w, 0).delivered, 13);
    world_end(w);
}

/* Four retries, and a budget for one of them each 1000 s. */
static stg_world *begin_poor(const char *policy)
{
    stg_world *w = world_new(32);

    world_lane(w, policy);
    world_script(w, 0, "503 503 503 503 200");
    stg_world_publish(w, 0, 4);
    return w;
}

static const stg_budget_options poor = {
    .kind = STG_BUDGET_TOKENS, .capacity = 1, .rate = 1};

TEST(reload, lets_go_what_waits_for_a_budget_of_its_own)
{
    stg_world *w =
        begin_poor(STEADY " budget=tokens:1:0.001/s budget-empty=wait");

    stg_world_start(w);
    stg_world_run(w, world_after(w, 10 * STG_S));
    CHECK_U64(world_look(w, 0).delivered, 1);
    change_policy(w, STEADY " budget=tokens:1:0.5/s budget-empty=wait");
    stg_world_run(w, world_after(w, 10 * STG_S));
    CHECK_U64(world_look(w, 0).delivered, 4);
    world_end(w);
}

TEST(reload, gives_up_what_waits_for_a_budget_of_its_own)
{
    stg_world *w =
        begin_poor(STEADY " budget=tokens:1:0.001/s budget-empty=wait");

    stg_world_start(w);
    stg_world_run(w, world_after(w, 10 * STG_S));
    change_policy(w, STEADY " budget=tokens:1:0.001/s budget-empty=give-up");
    stg_world_run(w, world_after(w, 10 * STG_S));
    CHECK_U64(world_look(w, 0).dead, 3);
    world_end(w);
}

/* `budget` and `budget-empty` of the hub. */
static stg_world *begin_poor_in_all(bool waits)
{
    stg_world *w = begin_poor(STEADY);

    stg_world_options(w)->budget = poor;
    stg_world_options(w)->budget_waits = waits;
    stg_world_start(w);
    stg_world_run(w, world_after(w, 10 * STG_S));
    return w;
}

TEST(reload, lets_go_what_waits_for_the_budget_of_all)
{
    stg_world *w = begin_poor_in_all(true);

    CHECK_U64(world_look(w, 0).delivered, 1);
    stg_world_options(w)->budget.rate = 500;
    CHECK(stg_world_change(w, NULL) == STG_OK);
    stg_world_run(w, world_after(w, 10 * STG_S));
    CHECK_U64(world_look(w, 0).delivered, 4);
    world_end(w);
}

TEST(reload, gives_up_what_waits_for_the_budget_of_all)
{
    stg_world *w = begin_poor_in_all(true);

    stg_world_options(w)->budget_waits = false;
    CHECK(stg_world_change(w, NULL) == STG_OK);
    stg_world_run(w, world_after(w, 10 * STG_S));
    CHECK_U64(world_look(w, 0).dead, 3);
    world_end(w);
}

TEST(reload, lets_wait_what_the_budget_of_all_refuses_from_now_on)
{
    stg_world *w = begin_poor_in_all(false);

    CHECK_U64(world_look(w, 0).dead, 3);
    stg_world_options(w)->budget_waits = true;
    CHECK(stg_world_change(w, NULL) == STG_OK);
    world_script(w, 0, "503 200");
    stg_world_publish(w, 0, 1);
    stg_world_run(w, world_after(w, 10 * STG_S));
    CHECK_U64(world_look(w, 0).dead, 3);
    CHECK_U64(world_look(w, 0).parked, 1);
    world_free(w);
}

TEST(reload, raises_what_may_be_under_way)
{
    stg_world *w = world_new(33);
    stg_lane_options o;

    world_lane(w, STEADY)->in_flight_max = 2;
    stg_world_publish(w, 0, 4000);
    stg_world_start(w);
    stg_world_run(w, world_after(w, 70 * STG_MS));
    CHECK_U64(world_look(w, 0).in_flight, 2);
    o = options_of(w);
    o.in_flight_max = 32;
    CHECK(stg_world_change_lane(w, 0, &o, NULL, NULL) == STG_OK);
    stg_world_run(w, world_after(w, STG_S));
    CHECK(world_look(w, 0).in_flight > 8);
    stg_world_run(w, STG_NEVER);
    world_end(w);
}

static void change_parked_max(stg_world *w, uint32_t parked_max)
{
    stg_lane_options o = options_of(w);

    o.parked_max = parked_max;
    CHECK(stg_world_change_lane(w, 0, &o, NULL, NULL) == STG_OK);
}

TEST(reload, raises_and_lowers_how_many_rows_may_be_parked)
{
    stg_world *w = world_new(34);

    world_lane(w,
               "fixed base=1h jitter=none attempts=3 deadline=none "
               "retry=5xx")
        ->parked_max = 5;
    world_script(w, 0, "503");
    stg_world_publish(w, 0, 100);
    stg_world_start(w);
    stg_world_run(w, world_after(w, STG_S));
    CHECK_U64(world_look(w, 0).parked, 5);
    change_parked_max(w, 12);
    stg_world_run(w, world_after(w, STG_S));
    CHECK_U64(world_look(w, 0).parked, 12);
    change_parked_max(w, 3);
    world_script(w, 0, "200");
    stg_world_run(w, world_after(w, STG_S));
    CHECK_U64(world_look(w, 0).delivered, 0);
    change_parked_max(w, 13);
    stg_world_run(w, world_after(w, STG_MIN));
    CHECK_U64(world_look(w, 0).delivered, 88);
    stg_world_run(w, STG_NEVER);
    world_end(w);
}

TEST(reload, raises_and_lowers_the_rate)
{
    stg_world *w = world_new(35);
    uint64_t delivered;

    world_lane(w, STEADY " rate=0.02/s");
    stg_world_publish(w, 0, 1000);
    stg_world_start(w);
    stg_world_run(w, world_after(w, STG_S));
    CHECK_U64(world_look(w, 0).delivered, 1);
    change_policy(w, STEADY " rate=10/s");
    stg_world_run(w, world_after(w, 10 * STG_S));
    delivered = world_look(w, 0).delivered;
    CHECK(delivered >= 95 && delivered <= 105);
    change_policy(w, STEADY " rate=0.02/s");
    stg_world_run(w, world_after(w, STG_MIN));
    CHECK(world_look(w, 0).delivered <= delivered + 3);
    change_policy(w, STEADY);
    stg_world_run(w, STG_NEVER);
    CHECK_U64(world_look(w, 0).delivered, 1000);
    world_end(w);
}

/* The target asks for an hour, as far as the policy lets it. */
TEST(reload, cuts_what_the_target_has_asked_to_wait)
{
    stg_world *w =
        world_begin(36, STEADY " retry-after-max=2h", "429+3600 200", 3);

    stg_world_run(w, world_after(w, STG_MIN));
    CHECK_U64(world_look(w, 0).delivered, 0);
    change_policy(w, STEADY " retry-after-max=10s");
    stg_world_run(w, world_after(w, 20 * STG_S));
    CHECK(world_look(w, 0).delivered >= 2);
    stg_world_run(w, STG_NEVER);
    world_end(w);
}

TEST(reload, opens_and_closes_a_circuit_by_other_numbers)
{
    stg_world *w = world_begin(37, STEADY " breaker=50:1m-1m", "503", 10);

    stg_world_run(w, world_after(w, 500 * STG_MS));
    CHECK_INT(world_look(w, 0).breaker, STG_BREAKER_CLOSED);
    change_policy(w, STEADY " breaker=11:1m-1m");
    stg_world_run(w, world_after(w, 2 * STG_S));
    CHECK_INT(world_look(w, 0).breaker, STG_BREAKER_OPEN);
    change_policy(w, STEADY " breaker=none");
    CHECK_INT(world_look(w, 0).state, STG_LANE_LIVE);
    stg_world_run(w, STG_NEVER);
    CHECK_U64(world_look(w, 0).dead, 10);
    world_end(w);
}

TEST(reload, raises_and_lowers_attempts_of_what_is_parked)
{
    stg_world *w = world_begin(38, STEADY, "503", 1);

    stg_world_run(w, world_after(w, 1500 * STG_MS)); // two of three
    change_policy(w,
                  "fixed base=1s jitter=none attempts=5 deadline=none "
                  "retry=5xx");
    stg_world_run(w, world_after(w, 2 * STG_S)); // four of five
    CHECK_U64(world_look(w, 0).dead, 0);
    change_policy(w,
                  "fixed base=1s jitter=none attempts=2 deadline=none "
                  "retry=5xx");
    stg_world_run(w, world_after(w, STG_S));
    CHECK_U64(world_look(w, 0).dead, 1);
    world_end(w);
}

/* -- order ----------------------------------------------------------------- */

/* What waited behind a parked head goes, and the head has its row. */
TEST(reload, gives_up_an_order_at_once)
{
    stg_world *w = world_new(10);

    world_lane(w, STEADY)->order = STG_ORDER_STRICT;
    world_script(w, 0, "503 200");
    stg_world_publish(w, 0, 4);
    stg_world_start(w);
    stg_world_run(w, world_after(w, 500 * STG_MS));
    change_order(w, STG_ORDER_NONE);
    stg_world_run(w, world_after(w, 100 * STG_MS));
    CHECK_INT(world_look(w, 0).order, STG_ORDER_NONE);
    CHECK_U64(world_look(w, 0).delivered, 3);
    CHECK_U64(world_look(w, 0).parked, 1);
    stg_world_crash(w, 100 * STG_MS);
    stg_world_run(w, STG_NEVER);
    CHECK_U64(world_look(w, 0).delivered, 4);
    CHECK_U64(stg_world_sum_lane(w, 0).starts, 5); // none twice
    world_end(w);
}

/* Before the first in order may start all that had none must have ended. */
TEST(reload, takes_up_an_order_when_all_before_has_ended)
{
    stg_world *w = world_begin(11, STEADY, "503 200 200 200", 4);

    stg_world_run(w, world_after(w, 500 * STG_MS));
    change_order(w, STG_ORDER_STRICT);
    stg_world_publish(w, 0, 2);
    stg_world_run(w, world_after(w, 300 * STG_MS));
    CHECK_INT(world_look(w, 0).order, STG_ORDER_NONE);
    CHECK_U64(world_look(w, 0).delivered, 3);
    stg_world_run(w, world_after(w, 100 * STG_MS));
    CHECK_U64(world_look(w, 0).lag, 2); // they wait
    stg_world_run(w, STG_NEVER);
    CHECK_INT(world_look(w, 0).order, STG_ORDER_STRICT);
    CHECK_U64(world_look(w, 0).delivered, 6);
    world_end(w);
}

/* The settings ask for another order than the rows were made in. */
TEST(reload, takes_up_an_order_after_a_restart)
{
    for (int order = STG_ORDER_NONE; order <= STG_ORDER_STRICT; order++)
        for (int to = STG_ORDER_NONE; to <= STG_ORDER_STRICT; to++) {
            stg_world *w = world_new(12);
            stg_lane_options *o = world_lane(w, STEADY);

            o->order = (stg_order)order;
            stg_world_set_keys(w, 3);
            world_script(w, 0, "503 503 200");
            stg_world_publish(w, 0, 12);
            stg_world_start(w);
            stg_world_run(w, world_after(w, 200 * STG_MS));
            CHECK(world_look(w, 0).parked > 0);
            o->order = (stg_order)to;
            stg_world_crash(w, 100 * STG_MS);
            stg_world_publish(w, 0, 6);
            stg_world_run(w, STG_NEVER);
            CHECK_INT(world_look(w, 0).order, to);
            CHECK_U64(world_look(w, 0).delivered, 18);
            world_end(w);
        }
}

TEST(reload, makes_an_order_stricter_when_nothing_is_under_way)
{
    stg_world *w = world_new(13);

    world_lane(w, STEADY)->order = STG_ORDER_KEY;
    stg_world_set_keys(w, 3);
    world_script(w, 0, "200 200 503 503 200");
    stg_world_publish(w, 0, 12);
    stg_world_start(w);
    stg_world_run(w, world_after(w, 35 * STG_MS));
    CHECK(world_look(w, 0).in_flight > 0);
    change_order(w, STG_ORDER_STRICT);
    CHECK_INT(world_look(w, 0).order, STG_ORDER_KEY);
    stg_world_run(w, world_after(w, 300 * STG_MS));
    CHECK_INT(world_look(w, 0).order, STG_ORDER_STRICT);
    stg_world_run(w, STG_NEVER);
    CHECK_U64(world_look(w, 0).delivered, 12);
    world_end(w);
}

/* -- a lane that only the store knows -------------------------------------- */

/* Nobody knows its settings: it is added paused, as lanes are by default, and
 * forgotten. Every message of it ends once, also where it was ordered. */
TEST(reload, forgets_a_lane_that_only_the_store_knows)
{
    for (int order = STG_ORDER_NONE; order <= STG_ORDER_STRICT; order++) {
        stg_world *w = world_new(14);
        stg_lane_options *o = world_lane(w, STEADY);
        uint64_t rows = 0, ranged = 0;

        o->order = (stg_order)order;
        stg_world_set_keys(w, 4);
        world_script(w, 0, "503 503 503 200 200 200 503");
        stg_world_publish(w, 0, 20);
        stg_world_start(w);
        stg_world_run(w, world_after(w, 200 * STG_MS));
        rows = stg_world_sum(w).parked;
        CHECK(rows > 0);
        o->order = STG_ORDER_NONE;
        o->is_paused = true;
        stg_world_crash(w, STG_S);
        stg_world_run(w, world_after(w, STG_MIN)); // all of the log is read
        stg_world_remove(w, 0);
        stg_world_run(w, STG_NEVER);
        CHECK(stg_world_sum_lane(w, 0).was_removed);
        CHECK_U64(stg_world_sum(w).parked, 0);
        CHECK(stg_world_sum_lane(w, 0).bulk_dead <= 1);
        for (size_t i = 0; i < stg_world_sum(w).dead; i++)
            ranged += stg_world_dead_at(w, i)->count;
        CHECK_U64(stg_world_sum_lane(w, 0).dead, rows + ranged);
        world_free(w);
    }
}

/* Without an order attempts are under way that an order would not have begun. */
TEST(reload, takes_up_no_order_while_anything_is_under_way)
{
    stg_world *w = world_new(9);
    stg_lane_options *o = world_lane(w, STEADY), changed;

    o->is_limit_fixed = true;
    stg_world_set_answer(w, 0, stg_ok(), STG_S);
    stg_world_set_keys(w, 1);
    stg_world_publish(w, 0, 100);
    stg_world_start(w);
    stg_world_run(w, world_after(w, 500 * STG_MS));
    CHECK(world_look(w, 0).in_flight > 1);
    changed = *o;
    changed.order = STG_ORDER_KEY;
    CHECK(stg_world_change_lane(w, 0, &changed, NULL, NULL) == STG_OK);
    stg_world_publish(w, 0, 1); // the lane has a look
    stg_world_run(w, world_after(w, 100 * STG_MS));
    CHECK_INT(world_look(w, 0).order, STG_ORDER_NONE);
    stg_world_run(w, STG_NEVER);
    CHECK_INT(world_look(w, 0).order, STG_ORDER_KEY);
    world_end(w);
}
