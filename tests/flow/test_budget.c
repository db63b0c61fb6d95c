/* What retries may cost (I5): a lane's own budget, and one of all lanes. */
#include <stdio.h>

#include "tests/flow/world.h"

#define SPARE(waits)                                                \
    "fixed base=1s jitter=none attempts=4 deadline=none retry=5xx " \
    "budget=tokens:2:1/s" waits

TEST(budget, gives_up_when_it_is_empty)
{
    stg_world *w = world_begin(1, SPARE(""), "503", 5);

    stg_world_run(w, world_after(w, 1500 * STG_MS));
    // Two retries were paid for at 1 s; the other three are given up.
    CHECK_U64(stg_world_sum(w).dead, 3);
    for (size_t i = 0; i < 3; i++) {
        CHECK_U64(stg_world_dead_at(w, i)->why, STG_WHY_BUDGET);
        CHECK_U64(stg_world_dead_at(w, i)->attempts, 1);
        CHECK_U64(stg_world_dead_at(w, i)->outcome.code, 503);
    }
    stg_world_run(w, STG_NEVER);
    world_end(w);
}

TEST(budget, waits_when_the_policy_says_so)
{
    stg_world *w = world_begin(1, SPARE(" budget-empty=wait"),
                               "503 503 503 503 503 200", 5);

    stg_world_run(w, STG_NEVER);
    CHECK_U64(world_look(w, 0).delivered, 5);
    CHECK_U64(world_look(w, 0).retries, 5);
    CHECK(stg_world_now(w) > 4 * STG_S);
    world_end(w);
}

/* By hand, of 500: 14, 14 and 5 are paid; the 5 come back with the success.
 * The one of all lanes has other numbers. */
TEST(budget, charges_by_what_failed_before)
{
    stg_world *w = world_new(1);

    stg_world_options(w)->budget = (stg_budget_options){.kind = STG_BUDGET_AWS,
                                                        .capacity = 100,
                                                        .cost = 1,
                                                        .timeout_cost = 20,
                                                        .throttle_cost = 30};
    world_lane(w,
               "fixed base=1s jitter=none attempts=4 attempt-timeout=1s "
               "deadline=none retry=any budget=aws:500:14:14:5");
    world_script(w, 0, "503 timeout 429 200");
    stg_world_publish(w, 0, 1);
    stg_world_start(w);
    stg_world_run(w, STG_NEVER);
    CHECK_U64(world_look(w, 0).retries, 3);
    CHECK_U64(world_look(w, 0).budget_left, 472000);
    CHECK_U64(world_look_all(w).budget_left, 79000);
    world_end(w);
}

/* I5 It never holds back a first attempt. */
TEST(budget, does_not_hold_back_first_attempts)
{
    stg_world *w =
        world_begin(2,
                    "fixed base=1s jitter=none attempts=4 deadline=none "
                    "retry=5xx budget=tokens:1:0.001/s budget-empty=wait",
                    "503 503 503 503 503 200", 300);

    stg_world_run(w, world_after(w, 10 * STG_S));
    CHECK_U64(world_look(w, 0).delivered, 296);
    CHECK_U64(world_look(w, 0).parked, 4);
    world_free(w);
}

/* The global one is asked, too; by whichever refuses, neither is charged. */
TEST(budget, is_of_all_lanes_as_well)
{
    stg_world *w = world_new(3);
    uint64_t retries = 0;

    stg_world_options(w)->budget = (stg_budget_options){
        .kind = STG_BUDGET_TOKENS, .capacity = 6, .rate = 1000};
    stg_world_options(w)->budget_waits = false;
    for (uint32_t l = 0; l < 4; l++) {
        world_lane(w,
                   "fixed base=1s jitter=none attempts=2 deadline=none "
                   "retry=5xx budget=tokens:100:1/s");
        world_script(w, l, "503");
    }
    stg_world_publish(w, 0, 5);
    stg_world_start(w);
    stg_world_run(w, STG_NEVER);
    for (uint32_t l = 0; l < 4; l++)
        retries += world_look(w, l).retries;
    CHECK_U64(retries, 6);
    world_end(w);
}

/* By the word of the one that refuses: a lane that gives up at its own budget
 * waits for that of all, and the other way round. */
TEST(budget, of_all_waits_or_gives_up_by_its_own_word)
{
    for (int waits = 0; waits < 2; waits++) {
        stg_world *w = world_new(5);
        char policy[160];

        stg_world_options(w)->budget = (stg_budget_options){
            .kind = STG_BUDGET_TOKENS, .capacity = 1, .rate = 1000};
        stg_world_options(w)->budget_waits = waits == 1;
        snprintf(policy, sizeof policy,
                 "fixed base=1s jitter=none attempts=2 deadline=none "
                 "retry=5xx budget=tokens:100:1/s budget-empty=%s",
                 waits ? "give-up" : "wait");
        world_lane(w, policy);
        world_script(w, 0, "503");
        stg_world_publish(w, 0, 5);
        stg_world_start(w);
        stg_world_run(w, STG_NEVER);
        CHECK_U64(world_look(w, 0).retries, waits ? 5 : 1);
        CHECK_U64(world_look(w, 0).dead, 5);
        world_end(w);
    }
}

/* Nothing is used up of a lane's own by what the global one refuses. */
TEST(budget, pays_neither_when_one_refuses)
{
    stg_world *w = world_new(6);

    stg_world_options(w)->budget = (stg_budget_options){
        .kind = STG_BUDGET_TOKENS, .capacity = 1, .rate = 100};
    world_lane(w,
               "fixed base=1s jitter=none attempts=2 deadline=none "
               "retry=5xx budget=tokens:3:0.001/s budget-empty=wait");
    world_script(w, 0, "503");
    stg_world_publish(w, 0, 5);
    stg_world_start(w);
    stg_world_run(w, world_after(w, STG_MIN));
    CHECK_U64(world_look(w, 0).retries, 3);
    world_free(w);
}

/* I5 In any window, whatever the leaves do: capacity and what came since. */
TEST(budget, is_never_passed)
{
    for (uint64_t seed = 0; seed < seeds(30); seed++) {
        stg_world *w = world_new(seed);
        stg_rng rng = stg_rng_seed(seed);
        uint32_t capacity = 1 + (uint32_t)stg_rng_upto(&rng, 20);
        uint32_t rate = 1 + (uint32_t)stg_rng_upto(&rng, 10);
        bool waits = stg_rng_upto(&rng, 1) == 1;
        char policy[200];

        snprintf(policy, sizeof policy,
                 "fixed base=100ms jitter=full attempts=10 deadline=none "
                 "retry=5xx budget=tokens:%u:%u/s%s",
                 capacity, rate, waits ? " budget-empty=wait" : "");
        world_trace_off(w);
        world_lane(w, policy);
        world_script(w, 0, "200 503 503 200 503");
        stg_world_publish(w, 0, 200);
        stg_world_start(w);
        for (uint64_t s = 1; s < 40; s++) {
            stg_world_run(w, world_after(w, STG_S / 2));
            CHECK_FROM(seed,
                       world_look(w, 0).retries <= capacity + rate * s / 2 + 1);
        }
        world_script(w, 0, "200");
        stg_world_run(w, STG_NEVER);
        world_end(w);
    }
}

/* A ratio: one retry for ten first attempts, and the floor. */
TEST(budget, may_be_a_ratio)
{
    stg_world *w =
        world_begin(4,
                    "fixed base=1s jitter=none attempts=3 deadline=none "
                    "retry=5xx budget=ratio:0.1+1/s",
                    "503", 100);

    stg_world_run(w, world_after(w, 3 * STG_S));
    CHECK(world_look(w, 0).retries <= 20);
    CHECK(world_look(w, 0).retries >= 10);
    stg_world_run(w, STG_NEVER);
    world_end(w);
}

/* -- a share of what is under way */

/* Every other message fails at first. */
static stg_world_answer answer_in_a_second(stg_world *w, uint32_t lane,
                                           uint64_t position, uint64_t attempt)
{
    (void)w;
    (void)lane;
    return (stg_world_answer){
        stg_answered(position % 2 == 0 && attempt == 1 ? 503 : 200), STG_S,
        true};
}

#define ONE_AT_ONCE                                                    \
    "fixed base=100ms jitter=none attempts=2 deadline=none retry=5xx " \
    "budget=share:0%+1"

/* One retry after the other, a second each, though three may be under way. */
TEST(budget, may_be_a_share_of_the_attempts_under_way)
{
    stg_world *w = world_new(7);

    world_lane(w, ONE_AT_ONCE " budget-empty=wait");
    stg_world_set_target(w, 0, answer_in_a_second);
    stg_world_publish(w, 0, 12);
    stg_world_start(w);
    stg_world_run(w, world_after(w, 30 * STG_S));
    CHECK_U64(world_look(w, 0).retries, 6);
    CHECK_U64(world_look(w, 0).delivered, 12);
    CHECK(world_look(w, 0).budget_refused > 10);
    CHECK_U64(world_look(w, 0).budget_left, 1000);
    world_end(w);
}

/* Attempts that began under another budget are under way, too. */
TEST(budget, that_becomes_a_share_counts_what_is_under_way)
{
    stg_world *w = world_new(8);
    stg_lane_options o = stg_lane_options_default(NULL);
    uint32_t under_way;

    world_lane(w, STEADY);
    stg_world_set_target(w, 0, answer_in_a_second);
    stg_world_publish(w, 0, 40);
    stg_world_start(w);
    stg_world_run(w, world_after(w, 3500 * STG_MS));
    under_way = world_look(w, 0).in_flight;
    CHECK(under_way > 3);
    stg_world_copy_options(w, 0, &o);
    CHECK(stg_world_change_lane(w, 0, &o,
                                STEADY " budget=share:100%+1 budget-empty=wait",
                                NULL) == STG_OK);
    stg_world_options(w)->budget = (stg_budget_options){
        .kind = STG_BUDGET_SHARE, .ratio = 1000, .capacity = 1};
    CHECK(stg_world_change(w, NULL) == STG_OK);
    CHECK_U64(world_look_all(w).budget_left, world_look(w, 0).budget_left);
    CHECK(world_look(w, 0).budget_left > 1000);
    CHECK(world_look(w, 0).budget_left <= 1000 * (uint64_t)under_way);
    stg_world_run(w, STG_NEVER);
    CHECK_U64(world_look(w, 0).delivered, 40);
    CHECK_U64(world_look(w, 0).budget_left, 1000);
    world_end(w);
}

/* A probe that could not connect leaves its message as it was: it is no attempt
 * that would allow a retry. */
TEST(budget, counts_no_first_attempt_that_was_put_back)
{
    stg_world *w = world_new(1);

    stg_world_options(w)->budget =
        (stg_budget_options){.kind = STG_BUDGET_RATIO, .ratio = 1000};
    world_lane(w,
               "fixed base=1s jitter=none attempts=2 deadline=none retry=5xx "
               "budget=ratio:1 breaker=1:1s-1s")
        ->in_flight_max = 1;
    world_script(w, 0, "refused");
    stg_world_publish(w, 0, 5);
    stg_world_start(w);
    stg_world_run(w, world_after(w, 8 * STG_S));
    CHECK(stg_world_sum_lane(w, 0).starts > 5);
    CHECK_U64(stg_world_sum(w).dead, 1);
    CHECK_U64(world_look(w, 0).budget_left, 1000);
    CHECK_U64(world_look_all(w).budget_left, 1000);
    world_free(w);
}

#define SCARCE                                                      \
    "fixed base=1s jitter=none attempts=4 deadline=none retry=5xx " \
    "budget=tokens:2:0.001/s"

/* The levels stay when other options come. */
TEST(budget, keeps_its_level_when_the_lane_changes)
{
    stg_world *w = world_new(5);
    stg_lane_options *o = world_lane(w, SCARCE);
    stg_lane_options changed;

    world_script(w, 0, "503");
    stg_world_publish(w, 0, 2);
    stg_world_start(w);
    stg_world_run(w, world_after(w, 1050 * STG_MS));
    CHECK_U64(world_look(w, 0).retries, 2);
    changed = *o;
    changed.in_flight_max = 5;
    CHECK(stg_world_change_lane(w, 0, &changed, SCARCE " breaker=20:1s-2s",
                                NULL) == STG_OK);
    stg_world_run(w, world_after(w, 500 * STG_MS));
    stg_world_publish(w, 0, 3);
    stg_world_run(w, STG_NEVER);
    CHECK_U64(world_look(w, 0).retries, 2);
    world_end(w);
}
