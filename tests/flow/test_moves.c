/* Partitions that are given, taken, lost and fenced: what is under way then,
 * and what comes of it (I1, I2, I16, I18). */
#include "flow/state.h"
#include "tests/flow/world.h"

#define PATIENT                                           \
    "fixed base=1s jitter=none attempts=3 deadline=none " \
    "attempt-timeout=20s retry=5xx,429,timeout,reset"

enum { OWN = true, SHARED = false };

/* One lane whose leaf says the same after some time; not started. */
static stg_world *make_world(bool keeps_rows, int status, stg_ns took)
{
    stg_world *w = world_new(1);

    stg_world_join_group(w, keeps_rows);
    world_lane(w, PATIENT);
    stg_world_set_answer(w, 0, stg_answered(status), took);
    return w;
}

static void start(stg_world *w, uint64_t messages)
{
    stg_world_publish(w, 0, messages);
    stg_world_start(w);
    stg_world_assign(w, 0);
}

static void run_for(stg_world *w, stg_ns wait)
{
    stg_world_run(w, world_after(w, wait));
}

/* The target is well, and the partition comes back. */
static void come_back(stg_world *w)
{
    for (uint32_t l = 0; l < stg_world_sum(w).lanes; l++)
        stg_world_set_answer(w, l, stg_ok(), 10 * STG_MS);
    stg_world_run(w, STG_NEVER);
    stg_world_assign(w, 0);
    stg_world_run(w, STG_NEVER);
    stg_world_check_ends(w);
}

static stg_partition_state find_state(stg_world *w)
{
    stg_partition_view v;

    CHECK(stg_flow_view_partition(stg_world_flow(w), 0, &v) == STG_OK);
    return v.state;
}

/* -- taken in order -------------------------------------------------------- */

TEST(moves, let_attempts_end_that_are_quick_enough)
{
    stg_world *w = make_world(SHARED, 200, STG_S);
    uint64_t starts;

    start(w, 100);
    run_for(w, 500 * STG_MS);
    starts = stg_world_sum_lane(w, 0).starts;
    CHECK(starts > 0);
    stg_world_revoke(w, 0, 2 * STG_S);
    CHECK(!stg_world_is_away(w, 0));
    CHECK_INT(find_state(w), STG_PARTITION_REVOKING);
    run_for(w, 2 * STG_S);
    CHECK(stg_world_is_away(w, 0));
    CHECK_U64(stg_world_sum_lane(w, 0).starts, starts);
    CHECK_U64(stg_world_committed(w, 0), stg_world_position_at(w, starts));
    come_back(w);
    for (uint64_t i = 0; i < 100; i++) // I16 exactly one
        CHECK_U64(world_receipt_of(w, 0, stg_world_position_at(w, i))->attempts,
                  1);
    world_free(w);
}

/* What is kept of the rows takes memory for each lane: those that have it do not
 * wait for it again with those that lack it. */
TEST(moves, end_with_little_memory_for_many_lanes)
{
    stg_world *w = make_world(OWN, 200, 10 * STG_MS);

    for (uint32_t l = 1; l < 60; l++) {
        world_lane(w, PATIENT);
        stg_world_set_answer(w, l, stg_ok(), 10 * STG_MS);
    }
    start(w, 20);
    run_for(w, 10 * STG_S);
    stg_world_fail_allocations(w, 2);
    stg_world_revoke(w, 0, STG_S);
    run_for(w, 30 * STG_S);
    CHECK(stg_world_is_away(w, 0));
    stg_world_fail_allocations(w, 0);
    come_back(w);
    world_free(w);
}

/* What was cut may have arrived, as after a timeout. */
TEST(moves, cut_what_has_not_ended_in_time)
{
    stg_world *w = make_world(SHARED, 200, 15 * STG_S);
    uint64_t starts;

    start(w, 100);
    run_for(w, 500 * STG_MS);
    starts = stg_world_sum_lane(w, 0).starts;
    stg_world_revoke(w, 0, 2 * STG_S);
    run_for(w, 1990 * STG_MS);
    CHECK_U64(world_look(w, 0).in_flight, starts);
    run_for(w, 20 * STG_MS);
    CHECK(stg_world_is_away(w, 0));
    CHECK_U64(world_look(w, 0).in_flight, 0);
    CHECK_U64(stg_world_sum(w).parked, starts);
    CHECK_U64(stg_world_committed(w, 0), stg_world_position_at(w, starts));
    come_back(w);
    for (uint64_t i = 0; i < starts; i++)
        CHECK_U64(world_receipt_of(w, 0, stg_world_position_at(w, i))->attempts,
                  2);
    world_free(w);
}

/* Its partition has gone when each that was tried was parked: so many. */
static uint64_t park_and_take(stg_world *w)
{
    start(w, 100);
    run_for(w, 15 * STG_MS);
    stg_world_revoke(w, 0, 2 * STG_S);
    run_for(w, 500 * STG_MS);
    CHECK(stg_world_is_away(w, 0));
    CHECK_U64(stg_world_sum(w).parked, stg_world_sum_lane(w, 0).starts);
    return stg_world_sum_lane(w, 0).starts;
}

/* Rows of a store that is this hub's alone go on; all else waits. */
TEST(moves, keep_the_rows_of_an_own_store)
{
    stg_world *w = make_world(OWN, 503, 10 * STG_MS);
    uint64_t starts = park_and_take(w);

    CHECK_INT(find_state(w), STG_PARTITION_ROWS);
    CHECK_U64(world_look(w, 0).parked, starts);
    stg_world_set_answer(w, 0, stg_ok(), 10 * STG_MS);
    stg_world_run(w, STG_NEVER);
    CHECK_U64(stg_world_sum_lane(w, 0).starts, 2 * starts);
    CHECK_U64(stg_world_sum(w).parked, 0);
    CHECK_U64(world_look(w, 0).delivered, starts);
    come_back(w);
    world_free(w);
}

/* Those of a store that others use are theirs. */
TEST(moves, leave_the_rows_of_a_shared_store)
{
    stg_world *w = make_world(SHARED, 503, 10 * STG_MS);
    uint64_t starts = park_and_take(w);

    CHECK_U64(world_look(w, 0).parked, 0);
    stg_world_run(w, STG_NEVER);
    CHECK_U64(stg_world_sum_lane(w, 0).starts, starts);
    CHECK_U64(stg_world_sum(w).parked, starts);
    come_back(w); // with the attempts that were made
    CHECK_U64(world_receipt_of(w, 0, stg_world_position_at(w, 0))->attempts, 2);
    world_free(w);
}

/* A row that is tried while its partition is away has no place in a ring. That
 * it has ended is in the group with its end, or a crash would send it anew. */
TEST(moves, note_with_its_end_that_a_row_has_ended)
{
    stg_world *w = world_new(1);

    stg_world_join_group(w, OWN);
    world_lane(w, PATIENT)->order = STG_ORDER_STRICT;
    world_script(w, 0, "503 200");
    start(w, 5);
    run_for(w, 100 * STG_MS);
    stg_world_revoke(w, 0, 0);
    run_for(w, 800 * STG_MS);
    CHECK(stg_world_is_away(w, 0));
    while (stg_world_sum(w).parked > 0)
        stg_world_steps(w, 1);
    stg_world_crash(w, 0);
    come_back(w);
    CHECK_U64(world_receipt_of(w, 0, stg_world_position_at(w, 0))->attempts, 2);
    CHECK_U64(world_look(w, 0).routed, 5);
    world_free(w);
}

/* I18 also while the partition goes. */
TEST(moves, let_rows_wait_for_each_other_when_the_order_is_strict)
{
    stg_world *w = make_world(OWN, 503, 10 * STG_MS);
    stg_lane_options o;

    stg_world_options(w)->in_flight_max = 100;
    stg_world_set_keys(w, 5);
    world_lane(w, PATIENT);
    stg_world_set_answer(w, 1, stg_ok(),
                         15 * STG_S); // for this it goes so long
    stg_world_publish(w, 0, 5);
    o = stg_lane_options_default(NULL);
    stg_world_copy_options(w, 0, &o);
    o.order = STG_ORDER_KEY;
    stg_world_start(w);
    CHECK_INT(stg_world_change_lane(w, 0, &o, NULL, NULL), STG_OK);
    stg_world_assign(w, 0);
    run_for(w, 500 * STG_MS);
    CHECK(world_look(w, 0).parked > 1);
    stg_world_revoke(w, 0, 10 * STG_S);
    o.order = STG_ORDER_STRICT;
    CHECK_INT(stg_world_change_lane(w, 0, &o, NULL, NULL), STG_OK);
    run_for(w, 600 * STG_MS); // both are due: the world sees to the order
    CHECK_INT(world_look(w, 0).order, STG_ORDER_STRICT);
    CHECK(world_look(w, 0).in_flight <= 1);
    come_back(w);
    world_free(w);
}

/* -- lost ------------------------------------------------------------------ */

/* Whatever is under way is as it was; who has it now sends it again. */
TEST(moves, commit_nothing_of_what_is_lost)
{
    stg_world *w = make_world(SHARED, 200, STG_S);
    uint64_t starts, committed, groups;

    start(w, 100);
    run_for(w, 990 * STG_MS);
    starts = stg_world_sum_lane(w, 0).starts;
    committed = stg_world_committed(w, 0);
    groups = stg_world_sum(w).groups;
    stg_world_lose(w, 0);
    run_for(w, 5 * STG_S);
    CHECK(stg_world_is_away(w, 0));
    CHECK_U64(stg_world_sum_lane(w, 0).starts, starts);
    CHECK_U64(stg_world_committed(w, 0), committed);
    CHECK_U64(stg_world_sum(w).groups, groups);
    CHECK_U64(world_look(w, 0).routed, 0);
    CHECK_U64(world_look(w, 0).in_flight, 0);
    stg_world_assign(w, 0);
    come_back(w);
    CHECK(stg_world_sum_lane(w, 0).starts > 100);
    world_free(w);
}

/* Nor are attempts counted that were cancelled by it. */
TEST(moves, count_no_attempt_that_was_cancelled)
{
    stg_world *w = make_world(OWN, 503, 10 * STG_MS);

    start(w, 1);
    run_for(w, 500 * STG_MS);
    CHECK_U64(stg_world_sum(w).parked, 1);
    stg_world_set_answer(w, 0, stg_answered(503), 10 * STG_S);
    run_for(w, STG_S); // its second attempt is under way
    CHECK_U64(world_look(w, 0).in_flight, 1);
    stg_world_lose(w, 0);
    run_for(w, 100 * STG_MS);
    CHECK(stg_world_is_away(w, 0));
    stg_world_run(w, STG_NEVER);
    CHECK_U64(stg_world_sum(w).dead, 1);
    CHECK_U64(stg_world_dead_at(w, 0)->attempts, 3);
    stg_world_assign(w, 0);
    stg_world_run(w, STG_NEVER);
    world_end(w);
}

/* The group that is out has something of it, which the store may take; no
 * other group does, whatever comes. */
TEST(moves, store_nothing_more_of_what_is_lost)
{
    stg_world *w = make_world(SHARED, 503, 10 * STG_MS);

    start(w, 20);
    run_for(w, 100 * STG_MS);
    stg_world_set_store_delay(w, STG_S);
    stg_world_publish(w, 0, 20);
    run_for(w, 100 * STG_MS);
    stg_world_lose(w, 0);
    world_join(w, PATIENT, false); // the world looks at all claims
    stg_world_remove(w, 0);
    run_for(w, 500 * STG_MS);
    CHECK(!stg_world_is_away(w, 0));
    CHECK(!stg_world_sum_lane(w, 0)
               .was_removed); // the store may still hear of it
    run_for(w, STG_S);
    CHECK(stg_world_is_away(w, 0));
    CHECK(stg_world_sum_lane(w, 0).was_removed);
    come_back(w);
    world_free(w);
}

/* A group that had no answer comes again without what was lost since: all of it, or
 * the part of one of two partitions. The rest of it is stored. */
TEST(moves, send_again_what_is_left_of_a_group)
{
    for (uint64_t rest = 0; rest <= 3; rest += 3) {
        stg_world *w = world_new(1);
        stg_lane_options *o = world_lane(w, PATIENT);

        o->is_limit_fixed = true; // all are under way at once
        stg_world_join_group(w, SHARED);
        stg_world_set_answer(w, 0, stg_answered(503), 10 * STG_MS);
        stg_world_set_partitions(w, 2);
        stg_world_publish(w, 1, rest);
        start(w, 3);
        stg_world_assign(w, 1);
        stg_world_run(w, world_after(w, 9 * STG_MS));
        stg_world_set_store_delay(w, STG_S);
        run_for(w, 1100 * STG_MS); // the second group is with the store
        stg_world_lose_answers(w, 1);
        CHECK_U64(world_look(w, 0).parked, 1);
        stg_world_lose(w, 0);
        CHECK(!stg_world_is_away(w, 0));
        run_for(w, 3 * STG_S);
        CHECK(stg_world_is_away(w, 0));
        CHECK_FROM(rest, (world_look(w, 0).parked > 0) == (rest > 0));
        come_back(w);
        world_free(w);
    }
}

/* -- fenced ---------------------------------------------------------------- */

/* Another hub has one of two partitions: what the group had of the other goes
 * into the next. */
TEST(moves, give_up_what_is_fenced_and_nothing_else)
{
    stg_world *w = make_world(SHARED, 503, 10 * STG_MS);

    stg_world_set_partitions(w, 2);
    stg_world_publish(w, 1, 20);
    start(w, 20);
    stg_world_assign(w, 1);
    run_for(w, 12 * STG_MS);
    stg_world_fence(w, 0);
    run_for(w, 100 * STG_MS);
    CHECK(stg_world_is_away(w, 0));
    CHECK(stg_world_is_assigned(w, 1));
    CHECK_U64(world_look(w, 0).parked, stg_world_sum(w).parked);
    CHECK(stg_world_sum(w).parked > 0);
    stg_world_settle_elsewhere(w, 0, 5);
    come_back(w);
    world_free(w);
}

/* -- given ----------------------------------------------------------------- */

static uint64_t find_next(stg_world *w)
{
    stg_partition_view v;

    CHECK(stg_flow_view_partition(stg_world_flow(w), 0, &v) == STG_OK);
    return v.next;
}

/* What was read under an older assignment comes late. */
TEST(moves, drop_what_was_read_before)
{
    stg_world *w = make_world(SHARED, 200, 10 * STG_MS);
    uint64_t before, after, next;
    stg_record r = {.bytes = "late", .size = 4};

    start(w, 5);
    stg_world_run(w, STG_NEVER);
    before = stg_flow_assignment(stg_world_flow(w), 0);
    stg_world_revoke(w, 0, 0);
    stg_world_run(w, STG_NEVER);
    CHECK_U64(stg_flow_assignment(stg_world_flow(w), 0), 0);
    stg_world_assign(w, 0);
    stg_world_run(w, STG_NEVER);
    after = stg_flow_assignment(stg_world_flow(w), 0);
    CHECK(after > before);
    next = r.position = find_next(w);
    stg_flow_messages(stg_world_flow(w), false, 0, before, &r, 1, next + 1,
                      stg_world_now(w));
    CHECK_U64(find_next(w), next);
    stg_flow_messages(stg_world_flow(w), false, 0, after, NULL, 0, next + 1,
                      stg_world_now(w));
    CHECK_U64(find_next(w), next + 1);
    world_end(w);
}

/* A lane is told of as one that begins there whatever happens: also in what was
 * given a moment before. */
TEST(moves, tell_of_a_new_lane_when_it_is_durable_in_what_was_given)
{
    stg_world *w = make_world(SHARED, 200, 10 * STG_MS);

    start(w, 5);
    stg_world_revoke(w, 0, 0);
    stg_world_run(w, STG_NEVER);
    world_join(w, PATIENT, false);
    stg_world_set_store_delay(w, STG_S);
    stg_world_assign(w, 0); // before flow is asked what to do
    run_for(w, 500 * STG_MS);
    CHECK(!stg_world_sum_lane(w, 1).was_added);
    run_for(w, STG_S);
    CHECK(stg_world_sum_lane(w, 1).was_added);
    come_back(w);
    world_free(w);
}

TEST(moves, refuse_what_is_there_and_what_comes_at_the_end)
{
    stg_world *w = make_world(OWN, 200, 10 * STG_MS);
    stg_assignment g = {.partition = 0};
    stg_error err = {0};

    start(w, 5);
    CHECK_INT(stg_flow_assign(stg_world_flow(w), &g, stg_world_now(w), &err),
              STG_INVALID);
    CHECK_STR(err.text, "partition: expected one that is not there");
    g.partition = STG_PARTITIONS_MAX;
    CHECK_INT(stg_flow_assign(stg_world_flow(w), &g, stg_world_now(w), NULL),
              STG_INVALID);
    g.partition = 1;
    stg_flow_stop(stg_world_flow(w), stg_world_now(w));
    CHECK_INT(stg_flow_assign(stg_world_flow(w), &g, stg_world_now(w), NULL),
              STG_INVALID);
    world_free(w);
}

/* -- what the log has lost ------------------------------------------------- */

TEST(moves, settle_what_the_log_has_lost)
{
    stg_world *w = make_world(SHARED, 200, 10 * STG_MS);

    stg_world_publish(w, 0, 100);
    stg_world_start(w);
    stg_world_assign(w, 0);
    run_for(w, 5 * STG_MS);
    stg_world_revoke(w, 0, STG_S);
    run_for(w, STG_S);
    CHECK(stg_world_is_away(w, 0));
    stg_world_expire(w, 0, stg_world_position_at(w, 90));
    stg_world_assign(w, 0);
    stg_world_run(w, STG_NEVER);
    CHECK_U64(stg_world_sum_lane(w, 0).bulk_dead, 1);
    CHECK(stg_world_dead_at(w, 0)->is_expired);
    CHECK_U64(stg_world_dead_at(w, 0)->last_position,
              stg_world_position_at(w, 90) - 1);
    CHECK(strstr(world_trace(w), "0: lost\n") != NULL);
    CHECK_U64(world_look(w, 0).dead, stg_world_dead_at(w, 0)->count); // I17
    CHECK_U64(stg_world_committed(w, 0), stg_world_position_at(w, 99) + 1);
    CHECK_U64(world_receipt_of(w, 0, stg_world_position_at(w, 95))->processed,
              1);
    world_end(w);
}

/* A row of an ordered lane that lies in what the log has lost does not hold the
 * base below that: after a restart the books would count it once more (I17). */
TEST(moves, count_once_what_the_log_has_lost)
{
    stg_world *w = world_new(1);
    uint64_t dead;

    stg_world_join_group(w, SHARED);
    stg_world_set_partitions(w, 2);
    world_lane(w, PATIENT)->order = STG_ORDER_STRICT;
    stg_world_set_answer(w, 0, stg_answered(503), 10 * STG_MS);
    start(w, 100);
    run_for(w, 15 * STG_MS);
    stg_world_revoke(w, 0, STG_S);
    stg_world_revoke(w, 1, STG_S);
    run_for(w, 100 * STG_MS);
    CHECK(stg_world_is_away(w, 0));
    CHECK_U64(stg_world_sum(w).parked, 1);
    stg_world_set_store_delay(w, 200 * STG_MS);
    stg_world_publish(w, 1, 1);
    stg_world_assign(w, 1);
    run_for(w, 15 * STG_MS); // a group is with the store
    stg_world_expire(w, 0, stg_world_position_at(w, 50));
    stg_world_assign(w, 0);
    run_for(w, 500 * STG_MS);
    dead = world_look(w, 0).dead;
    CHECK(dead >= 49);
    stg_world_crash(w, STG_MS);
    run_for(w, 300 * STG_MS);
    CHECK_U64(world_look(w, 0).dead, dead);
    come_back(w);
    world_free(w);
}

/* A lane that wants nothing of it is not told. */
TEST(moves, are_silent_of_what_nobody_wanted)
{
    stg_world *w = world_new(1);

    stg_world_join_group(w, SHARED);
    world_lane(w, PATIENT);
    stg_world_set_followed(w, 0, 0);
    stg_world_start(w);
    stg_world_assign(w, 0);
    stg_world_publish(w, 0, 10);
    stg_world_expire(w, 0, stg_world_position_at(w, 9));
    stg_world_run(w, STG_NEVER);
    CHECK_U64(stg_world_sum(w).dead, 0);
    CHECK(strstr(world_trace(w), "lost") == NULL);
    world_free(w);
}

/* -- lanes that follow some of the partitions only ------------------------- */

/* Two partitions, of 10 kB messages; lane 0 follows partition 0, lane 1 the
 * other. */
static stg_world *make_followers(bool is_merged)
{
    stg_world *w = world_new(1);

    stg_world_set_partitions(w, 2);
    if (is_merged)
        stg_world_join_group(w, OWN);
    stg_world_options(w)->memory_max = 1 << 20;
    stg_world_set_size(w, 10000);
    for (uint32_t l = 0; l < 2; l++) {
        world_lane(w, PATIENT)->shed_after = STG_NEVER;
        stg_world_set_followed(w, l, 1 << l);
    }
    stg_world_start(w);
    for (uint32_t p = 0; p < 2 && is_merged; p++)
        stg_world_assign(w, p);
    return w;
}

static uint64_t behind_last(stg_world *w)
{
    return stg_world_position_at(w, stg_world_sum(w).messages - 1) + 1;
}

TEST(moves, commit_past_a_paused_lane_that_does_not_follow)
{
    stg_world *w = make_followers(true);

    stg_world_pause(w, 1, true);
    stg_world_publish(w, 0, 300);
    stg_world_run(w, STG_NEVER);
    CHECK_U64(world_look(w, 0).delivered, 300);
    CHECK_U64(stg_world_committed(w, 0), behind_last(w));
    // It was never behind, also not after a restart.
    stg_world_crash(w, STG_S);
    stg_world_publish(w, 0, 300);
    stg_world_run(w, STG_NEVER);
    CHECK_U64(stg_world_committed(w, 0), behind_last(w));
    CHECK(strstr(world_trace(w), "1: catching-up") == NULL);
    CHECK_U64(stg_world_sum(w).catch_ups, 0);
    stg_world_pause(w, 1, false);
    stg_world_run(w, STG_NEVER);
    world_end(w);
}

TEST(moves, commit_past_an_open_breaker_of_a_lane_that_does_not_follow)
{
    stg_world *w = make_followers(true);
    stg_lane_options o = stg_lane_options_default(NULL);

    stg_world_copy_options(w, 1, &o);
    o.shed_after = STG_NEVER;
    CHECK(stg_world_change_lane(
              w, 1, &o,
              "fixed base=1s attempts=3 deadline=none retry=any "
              "breaker=1:1h-1h",
              NULL) == STG_OK);
    stg_world_set_answer(w, 1, stg_answered(503), 10 * STG_MS);
    stg_world_publish(w, 1, 5);
    run_for(w, STG_S);
    CHECK_INT(world_look(w, 1).state, STG_LANE_CIRCUIT_OPEN);
    stg_world_publish(w, 0, 300);
    run_for(w, STG_MIN);
    CHECK_U64(stg_world_committed(w, 0), behind_last(w));
    stg_world_set_answer(w, 1, stg_ok(), 10 * STG_MS);
    stg_world_run(w, STG_NEVER);
    world_end(w);
}

/* The lane of the other partition has nothing to do, and is no faster for it:
 * what is slow is read as fast as it is sent. */
TEST(moves, are_read_as_fast_as_those_that_follow_take_them)
{
    stg_world *w = make_followers(false);

    stg_world_set_answer(w, 0, stg_ok(), STG_S);
    stg_world_publish(w, 0, 500);
    stg_world_run(w, STG_NEVER);
    CHECK_U64(world_look(w, 0).delivered, 500);
    CHECK_U64(stg_world_sum(w).catch_ups, 0);
    world_end(w);
}

TEST(moves, are_read_and_committed_where_no_lane_follows)
{
    stg_world *w = make_followers(true);
    stg_lane_options o = stg_lane_options_default(NULL);

    stg_world_pause(w, 1, true);
    stg_world_publish(w, 1, 300);
    run_for(w, STG_MIN);
    CHECK(stg_world_committed(w, 1) <= stg_world_position_at(w, 0));
    // What it has not taken it need not send any more.
    stg_world_set_followed(w, 1, 0);
    stg_world_copy_options(w, 1, &o);
    CHECK(stg_world_change_lane(w, 1, &o, NULL, NULL) == STG_OK);
    stg_world_run(w, STG_NEVER);
    CHECK_U64(stg_world_committed(w, 1), behind_last(w));
    stg_world_publish(w, 1, 300);
    stg_world_run(w, STG_NEVER);
    CHECK_U64(stg_world_committed(w, 1), behind_last(w));
    world_end(w);
}

/* Two lanes on 10 kB messages. One hangs, with some that it has taken behind
 * its first, and falls behind the window; what is lost lies on either side of
 * that. */
static stg_world *make_loss(void)
{
    stg_lane_options *o;
    stg_world *w = world_new(1);

    stg_world_join_group(w, OWN);
    stg_world_options(w)->memory_max = 1 << 20;
    stg_world_set_size(w, 10000);
    o = world_lane(w, PATIENT);
    o->in_flight_max = 4;
    o->order = STG_ORDER_STRICT;
    world_lane(w, PATIENT);
    start(w, 5);
    stg_world_run(w, STG_NEVER);
    stg_world_set_answer(w, 0, stg_ok(), 19 * STG_S);
    stg_world_publish(w, 0, 200);
    run_for(w, STG_S);
    CHECK_U64(world_look(w, 1).delivered, 205);
    CHECK(world_look(w, 0).waiting > 3);
    stg_world_pause(w, 1, true);
    stg_world_publish(w, 0, 100);
    run_for(w, STG_S);
    stg_world_set_store_delay(w, 5 * STG_S);
    stg_world_expire(w, 0, stg_world_position_at(w, 280));
    CHECK(find_next(w) == stg_world_position_at(w, 280));
    return w;
}

/* A replay of a bulk row sends all from its first to its last. */
TEST(moves, let_no_range_reach_over_what_is_lost)
{
    stg_world *w = make_loss();

    stg_world_retain(w, 0, stg_world_position_at(w, 304) + 1);
    come_back(w);
    CHECK_U64(stg_world_sum_lane(w, 0).bulk_dead, 4); // two of them are lost
    world_free(w);
}

/* Then the lane falls behind more of the window. */
TEST(moves, do_not_shrink_the_row_of_what_is_lost)
{
    stg_world *w = make_loss();
    uint64_t last = 0;

    run_for(w, STG_S);
    stg_world_pause(w, 1, false);
    stg_world_publish(w, 0, 53);
    run_for(w, STG_S);
    stg_world_expire(w, 0, stg_world_position_at(w, 290));
    run_for(w, 10 * STG_S);
    come_back(w);
    for (size_t i = 0; i < stg_world_sum(w).dead; i++)
        last = stg_ns_max(last, stg_world_dead_at(w, i)->last_position);
    CHECK_U64(last, stg_world_position_at(w, 280) - 1);
    world_free(w);
}

/* -- too large ------------------------------------------------------------- */

/* A body that was left out is dead at once, and nobody waits for it. */
TEST(moves, refuse_what_is_too_large)
{
    stg_world *w = world_new(1);

    stg_world_join_group(w, SHARED);
    stg_world_set_too_large(w, 3);
    world_lane(w, PATIENT)->order = STG_ORDER_STRICT;
    start(w, 9);
    stg_world_run(w, STG_NEVER);
    CHECK_U64(world_look(w, 0).delivered, 6);
    CHECK_U64(stg_world_sum(w).dead, 3);
    for (size_t i = 0; i < 3; i++) {
        const stg_world_dead *d = stg_world_dead_at(w, i);

        CHECK_INT(d->outcome.fault, STG_FAULT_TOO_LARGE);
        CHECK_INT(d->why, STG_WHY_PERMANENT);
        CHECK_U64(d->attempts, 0);
        CHECK_U64(d->position, stg_world_position_at(w, 3 * i + 2));
    }
    CHECK_U64(stg_world_committed(w, 0), stg_world_position_at(w, 8) + 1);
    world_end(w);
}
