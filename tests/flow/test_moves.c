/* Partitions that are given, taken, lost and fenced: what is under way then,
 * and what comes of it (I1, I2, I16, I18). */
#include "flow/state.h"
#include "tests/flow/world.h"

#define PATIENT                                           \
    "fixed base=1s jitter=none attempts=3 deadline=none " \
    "attempt-timeout=20s retry=5xx,429,timeout,reset"

enum { OWN = true, SHARED = false };

/* One lane whose leaf says the same after some time; not started. */
static world *make_world(bool keeps_rows, int status, stg_ns took)
{
    world *w = world_new(1);

    world_merge(w, keeps_rows);
    world_lane(w, PATIENT);
    world_leaf_says(w, 0, stg_answered(status), took);
    return w;
}

static void start(world *w, uint64_t messages)
{
    world_publish(w, messages);
    world_start(w);
    world_give(w, 0);
}

static void run_for(world *w, stg_ns wait)
{
    world_run(w, world_after(w, wait));
}

/* The target is well, and the partition comes back. */
static void come_back(world *w)
{
    for (uint32_t l = 0; l < world_lane_count(w); l++)
        world_leaf_says(w, l, stg_ok(), 10 * STG_MS);
    world_run(w, STG_NEVER);
    world_give(w, 0);
    world_run(w, STG_NEVER);
    world_check_ends(w, 1);
}

/* -- taken in order -------------------------------------------------------- */

TEST(moves, let_attempts_end_that_are_quick_enough)
{
    world *w = make_world(SHARED, 200, STG_S);
    uint64_t starts;

    start(w, 100);
    run_for(w, 500 * STG_MS);
    starts = world_starts(w, 0);
    CHECK(starts > 0);
    world_take(w, 0, 2 * STG_S);
    CHECK(!world_is_away(w, 0));
    run_for(w, 2 * STG_S);
    CHECK(world_is_away(w, 0));
    CHECK_U64(world_starts(w, 0), starts);
    CHECK_U64(world_committed(w, 0), world_position(w, starts));
    come_back(w);
    for (uint64_t i = 0; i < 100; i++) // I16 exactly one
        CHECK_U64(world_receipt_of(w, 0, world_position(w, i))->attempts, 1);
    world_free(w);
}

/* What was cut may have arrived, as after a timeout. */
TEST(moves, cut_what_has_not_ended_in_time)
{
    world *w = make_world(SHARED, 200, 15 * STG_S);
    uint64_t starts;

    start(w, 100);
    run_for(w, 500 * STG_MS);
    starts = world_starts(w, 0);
    world_take(w, 0, 2 * STG_S);
    run_for(w, 1990 * STG_MS);
    CHECK_U64(world_look(w, 0).in_flight, starts);
    run_for(w, 20 * STG_MS);
    CHECK(world_is_away(w, 0));
    CHECK_U64(world_look(w, 0).in_flight, 0);
    CHECK_U64(world_parked(w), starts);
    CHECK_U64(world_committed(w, 0), world_position(w, starts));
    come_back(w);
    for (uint64_t i = 0; i < starts; i++)
        CHECK_U64(world_receipt_of(w, 0, world_position(w, i))->attempts, 2);
    world_free(w);
}

/* Its partition has gone when each that was tried was parked: so many. */
static uint64_t park_and_take(world *w)
{
    start(w, 100);
    run_for(w, 15 * STG_MS);
    world_take(w, 0, 2 * STG_S);
    run_for(w, 500 * STG_MS);
    CHECK(world_is_away(w, 0));
    CHECK_U64(world_parked(w), world_starts(w, 0));
    return world_starts(w, 0);
}

/* Rows of a store that is this hub's alone go on; all else waits. */
TEST(moves, keep_the_rows_of_an_own_store)
{
    world *w = make_world(OWN, 503, 10 * STG_MS);
    uint64_t starts = park_and_take(w);

    CHECK_U64(world_look(w, 0).parked, starts);
    world_leaf_says(w, 0, stg_ok(), 10 * STG_MS);
    world_run(w, STG_NEVER);
    CHECK_U64(world_starts(w, 0), 2 * starts);
    CHECK_U64(world_parked(w), 0);
    CHECK_U64(world_look(w, 0).delivered, starts);
    come_back(w);
    world_free(w);
}

/* Those of a store that others use are theirs. */
TEST(moves, leave_the_rows_of_a_shared_store)
{
    world *w = make_world(SHARED, 503, 10 * STG_MS);
    uint64_t starts = park_and_take(w);

    CHECK_U64(world_look(w, 0).parked, 0);
    world_run(w, STG_NEVER);
    CHECK_U64(world_starts(w, 0), starts);
    CHECK_U64(world_parked(w), starts);
    come_back(w); // with the attempts that were made
    CHECK_U64(world_receipt_of(w, 0, world_position(w, 0))->attempts, 2);
    world_free(w);
}

/* A row that is tried while its partition is away has no place in a ring. That
 * it has ended is in the group with its end, or a crash would send it anew. */
TEST(moves, note_with_its_end_that_a_row_has_ended)
{
    world *w = world_new(1);

    world_merge(w, OWN);
    world_lane(w, PATIENT)->order = STG_ORDER_STRICT;
    world_script(w, 0, "503 200");
    start(w, 5);
    run_for(w, 100 * STG_MS);
    world_take(w, 0, 0);
    run_for(w, 800 * STG_MS);
    CHECK(world_is_away(w, 0));
    while (world_parked(w) > 0)
        world_steps(w, 1);
    world_crash(w, 0);
    come_back(w);
    CHECK_U64(world_receipt_of(w, 0, world_position(w, 0))->attempts, 2);
    CHECK_U64(world_look(w, 0).routed, 5);
    world_free(w);
}

/* I18 also while the partition goes. */
TEST(moves, let_rows_wait_for_each_other_when_the_order_is_strict)
{
    world *w = make_world(OWN, 503, 10 * STG_MS);
    stg_lane_options o;

    world_options(w)->in_flight_max = 100;
    world_keys(w, 5);
    world_lane(w, PATIENT);
    world_leaf_says(w, 1, stg_ok(), 15 * STG_S); // for this it goes so long
    world_publish(w, 5);
    o = stg_lane_options_default(NULL);
    world_keep(w, 0, &o);
    o.order = STG_ORDER_KEY;
    world_start(w);
    CHECK_INT(world_change(w, 0, &o, NULL, NULL), STG_OK);
    world_give(w, 0);
    run_for(w, 500 * STG_MS);
    CHECK(world_look(w, 0).parked > 1);
    world_take(w, 0, 10 * STG_S);
    o.order = STG_ORDER_STRICT;
    CHECK_INT(world_change(w, 0, &o, NULL, NULL), STG_OK);
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
    world *w = make_world(SHARED, 200, STG_S);
    uint64_t starts, committed, groups;

    start(w, 100);
    run_for(w, 990 * STG_MS);
    starts = world_starts(w, 0);
    committed = world_committed(w, 0);
    groups = world_groups(w);
    world_lose(w, 0);
    run_for(w, 5 * STG_S);
    CHECK(world_is_away(w, 0));
    CHECK_U64(world_starts(w, 0), starts);
    CHECK_U64(world_committed(w, 0), committed);
    CHECK_U64(world_groups(w), groups);
    CHECK_U64(world_look(w, 0).routed, 0);
    CHECK_U64(world_look(w, 0).in_flight, 0);
    world_give(w, 0);
    come_back(w);
    CHECK(world_starts(w, 0) > 100);
    world_free(w);
}

/* Nor are attempts counted that were cancelled by it. */
TEST(moves, count_no_attempt_that_was_cancelled)
{
    world *w = make_world(OWN, 503, 10 * STG_MS);

    start(w, 1);
    run_for(w, 500 * STG_MS);
    CHECK_U64(world_parked(w), 1);
    world_leaf_says(w, 0, stg_answered(503), 10 * STG_S);
    run_for(w, STG_S); // its second attempt is under way
    CHECK_U64(world_look(w, 0).in_flight, 1);
    world_lose(w, 0);
    run_for(w, 100 * STG_MS);
    CHECK(world_is_away(w, 0));
    world_run(w, STG_NEVER);
    CHECK_U64(world_dead_count(w), 1);
    CHECK_U64(world_dead_at(w, 0)->attempts, 3);
    world_give(w, 0);
    world_run(w, STG_NEVER);
    world_end(w, 1);
}

/* The group that is out has something of it, which the store may take; no
 * other group does, whatever comes. */
TEST(moves, store_nothing_more_of_what_is_lost)
{
    world *w = make_world(SHARED, 503, 10 * STG_MS);

    start(w, 20);
    run_for(w, 100 * STG_MS);
    world_store_delay(w, STG_S);
    world_publish(w, 20);
    run_for(w, 100 * STG_MS);
    world_lose(w, 0);
    world_join(w, PATIENT); // the world looks at all claims
    world_remove(w, 0);
    run_for(w, 500 * STG_MS);
    CHECK(!world_is_away(w, 0));
    CHECK(!world_was_removed(w, 0)); // the store may still hear of it
    run_for(w, STG_S);
    CHECK(world_is_away(w, 0));
    CHECK(world_was_removed(w, 0));
    come_back(w);
    world_free(w);
}

/* -- fenced ---------------------------------------------------------------- */

/* Another hub has one of two partitions: what the group had of the other goes
 * into the next. */
TEST(moves, give_up_what_is_fenced_and_nothing_else)
{
    world *w = make_world(SHARED, 503, 10 * STG_MS);

    world_partitions(w, 2);
    world_publish_to(w, 1, 20);
    start(w, 20);
    world_give(w, 1);
    run_for(w, 12 * STG_MS);
    world_fence(w, 0);
    run_for(w, 100 * STG_MS);
    CHECK(world_is_away(w, 0));
    CHECK(world_is_here(w, 1));
    CHECK_U64(world_look(w, 0).parked, world_parked(w));
    CHECK(world_parked(w) > 0);
    world_elsewhere(w, 0, 5);
    come_back(w);
    world_free(w);
}

/* -- given ----------------------------------------------------------------- */

static uint64_t find_next(world *w)
{
    stg_partition_view v;

    CHECK(stg_flow_look_partition(world_flow(w), 0, &v) == STG_OK);
    return v.next;
}

/* What was read under an older assignment comes late. */
TEST(moves, drop_what_was_read_before)
{
    world *w = make_world(SHARED, 200, 10 * STG_MS);
    uint64_t before, after, next;
    stg_record r = {.bytes = "late", .size = 4};

    start(w, 5);
    world_run(w, STG_NEVER);
    before = stg_flow_assignment(world_flow(w), 0);
    world_take(w, 0, 0);
    world_run(w, STG_NEVER);
    CHECK_U64(stg_flow_assignment(world_flow(w), 0), 0);
    world_give(w, 0);
    world_run(w, STG_NEVER);
    after = stg_flow_assignment(world_flow(w), 0);
    CHECK(after > before);
    next = r.position = find_next(w);
    stg_flow_messages(world_flow(w), false, 0, before, &r, 1, next + 1,
                      world_now(w));
    CHECK_U64(find_next(w), next);
    stg_flow_messages(world_flow(w), false, 0, after, NULL, 0, next + 1,
                      world_now(w));
    CHECK_U64(find_next(w), next + 1);
    world_end(w, 1);
}

/* A lane is told of as one that begins there whatever happens: also in what was
 * given a moment before. */
TEST(moves, tell_of_a_new_lane_when_it_is_durable_in_what_was_given)
{
    world *w = make_world(SHARED, 200, 10 * STG_MS);

    start(w, 5);
    world_take(w, 0, 0);
    world_run(w, STG_NEVER);
    world_join(w, PATIENT);
    world_store_delay(w, STG_S);
    world_give(w, 0); // before flow is asked what to do
    run_for(w, 500 * STG_MS);
    CHECK(!world_was_added(w, 1));
    run_for(w, STG_S);
    CHECK(world_was_added(w, 1));
    come_back(w);
    world_free(w);
}

TEST(moves, refuse_what_is_there_and_what_comes_at_the_end)
{
    world *w = make_world(OWN, 200, 10 * STG_MS);
    stg_assignment g = {.partition = 0};
    stg_error err = {0};

    start(w, 5);
    CHECK_INT(stg_flow_assign(world_flow(w), &g, world_now(w), &err),
              STG_INVALID);
    CHECK_STR(err.text, "partition: wanted one that is not there");
    g.partition = STG_PARTITIONS_MAX;
    CHECK_INT(stg_flow_assign(world_flow(w), &g, world_now(w), NULL),
              STG_INVALID);
    g.partition = 1;
    stg_flow_stop(world_flow(w), world_now(w));
    CHECK_INT(stg_flow_assign(world_flow(w), &g, world_now(w), NULL),
              STG_INVALID);
    world_free(w);
}

/* -- what the log has lost ------------------------------------------------- */

TEST(moves, settle_what_the_log_has_lost)
{
    world *w = make_world(SHARED, 200, 10 * STG_MS);

    world_publish(w, 100);
    world_start(w);
    world_give(w, 0);
    run_for(w, 5 * STG_MS);
    world_take(w, 0, STG_S);
    run_for(w, STG_S);
    CHECK(world_is_away(w, 0));
    world_expire(w, 0, world_position(w, 90));
    world_give(w, 0);
    world_run(w, STG_NEVER);
    CHECK_U64(world_ranges_of(w, 0), 1);
    CHECK(world_dead_at(w, 0)->is_expired);
    CHECK_U64(world_dead_at(w, 0)->last_position, world_position(w, 90) - 1);
    CHECK(strstr(world_trace(w), "0: lost\n") != NULL);
    CHECK_U64(world_look(w, 0).dead, world_dead_at(w, 0)->count); // I17
    CHECK_U64(world_committed(w, 0), world_position(w, 99) + 1);
    CHECK_U64(world_receipt_of(w, 0, world_position(w, 95))->processed, 1);
    world_end(w, 1);
}

/* A row of an ordered lane that lies in what the log has lost does not hold the
 * base below that: after a restart the books would count it once more (I17). */
TEST(moves, count_once_what_the_log_has_lost)
{
    world *w = world_new(1);
    uint64_t dead;

    world_merge(w, SHARED);
    world_partitions(w, 2);
    world_lane(w, PATIENT)->order = STG_ORDER_STRICT;
    world_leaf_says(w, 0, stg_answered(503), 10 * STG_MS);
    start(w, 100);
    run_for(w, 15 * STG_MS);
    world_take(w, 0, STG_S);
    world_take(w, 1, STG_S);
    run_for(w, 100 * STG_MS);
    CHECK(world_is_away(w, 0));
    CHECK_U64(world_parked(w), 1);
    world_store_delay(w, 200 * STG_MS);
    world_publish_to(w, 1, 1);
    world_give(w, 1);
    run_for(w, 15 * STG_MS); // a group is with the store
    world_expire(w, 0, world_position(w, 50));
    world_give(w, 0);
    run_for(w, 500 * STG_MS);
    dead = world_look(w, 0).dead;
    CHECK(dead >= 49);
    world_crash(w, STG_MS);
    run_for(w, 300 * STG_MS);
    CHECK_U64(world_look(w, 0).dead, dead);
    come_back(w);
    world_free(w);
}

/* A lane that wants nothing of it is not told. */
TEST(moves, are_silent_of_what_nobody_wanted)
{
    world *w = world_new(1);

    world_merge(w, SHARED);
    world_lane(w, PATIENT);
    world_follow(w, 0, 0);
    world_start(w);
    world_give(w, 0);
    world_publish(w, 10);
    world_expire(w, 0, world_position(w, 9));
    world_run(w, STG_NEVER);
    CHECK_U64(world_dead_count(w), 0);
    CHECK(strstr(world_trace(w), "lost") == NULL);
    world_free(w);
}

/* -- lanes that follow some of the partitions only ------------------------- */

/* Two partitions, of 10 kB messages; lane 0 follows partition 0, lane 1 the
 * other. */
static world *make_followers(bool is_merged)
{
    world *w = world_new(1);

    world_partitions(w, 2);
    if (is_merged)
        world_merge(w, OWN);
    world_options(w)->memory_max = 1 << 20;
    world_size(w, 10000);
    for (uint32_t l = 0; l < 2; l++) {
        world_lane(w, PATIENT)->shed_after = STG_NEVER;
        world_follow(w, l, 1 << l);
    }
    world_start(w);
    for (uint32_t p = 0; p < 2 && is_merged; p++)
        world_give(w, p);
    return w;
}

static uint64_t behind_last(world *w)
{
    return world_position(w, world_published(w) - 1) + 1;
}

TEST(moves, commit_past_a_paused_lane_that_does_not_follow)
{
    world *w = make_followers(true);

    world_pause(w, 1, true);
    world_publish_to(w, 0, 300);
    world_run(w, STG_NEVER);
    CHECK_U64(world_look(w, 0).delivered, 300);
    CHECK_U64(world_committed(w, 0), behind_last(w));
    // It was never behind, also not after a restart.
    world_crash(w, STG_S);
    world_publish_to(w, 0, 300);
    world_run(w, STG_NEVER);
    CHECK_U64(world_committed(w, 0), behind_last(w));
    CHECK(strstr(world_trace(w), "1: laggard") == NULL);
    CHECK_U64(world_catch_ups(w), 0);
    world_pause(w, 1, false);
    world_run(w, STG_NEVER);
    world_end(w, 1);
}

TEST(moves, commit_past_an_open_breaker_of_a_lane_that_does_not_follow)
{
    world *w = make_followers(true);
    stg_lane_options o = stg_lane_options_default(NULL);

    world_keep(w, 1, &o);
    o.shed_after = STG_NEVER;
    CHECK(world_change(w, 1, &o,
                       "fixed base=1s attempts=3 deadline=none retry=any "
                       "breaker=1:1h-1h",
                       NULL) == STG_OK);
    world_leaf_says(w, 1, stg_answered(503), 10 * STG_MS);
    world_publish_to(w, 1, 5);
    run_for(w, STG_S);
    CHECK_INT(world_look(w, 1).state, STG_LANE_CIRCUIT_OPEN);
    world_publish_to(w, 0, 300);
    run_for(w, STG_MIN);
    CHECK_U64(world_committed(w, 0), behind_last(w));
    world_leaf_says(w, 1, stg_ok(), 10 * STG_MS);
    world_run(w, STG_NEVER);
    world_end(w, 1);
}

/* The lane of the other partition has nothing to do, and is no faster for it:
 * what is slow is read as fast as it is sent. */
TEST(moves, are_read_as_fast_as_those_that_follow_take_them)
{
    world *w = make_followers(false);

    world_leaf_says(w, 0, stg_ok(), STG_S);
    world_publish_to(w, 0, 500);
    world_run(w, STG_NEVER);
    CHECK_U64(world_look(w, 0).delivered, 500);
    CHECK_U64(world_catch_ups(w), 0);
    world_end(w, 1);
}

TEST(moves, are_read_and_committed_where_no_lane_follows)
{
    world *w = make_followers(true);
    stg_lane_options o = stg_lane_options_default(NULL);

    world_pause(w, 1, true);
    world_publish_to(w, 1, 300);
    run_for(w, STG_MIN);
    CHECK(world_committed(w, 1) <= world_position(w, 0));
    // What it has not taken it need not send any more.
    world_follow(w, 1, 0);
    world_keep(w, 1, &o);
    CHECK(world_change(w, 1, &o, NULL, NULL) == STG_OK);
    world_run(w, STG_NEVER);
    CHECK_U64(world_committed(w, 1), behind_last(w));
    world_publish_to(w, 1, 300);
    world_run(w, STG_NEVER);
    CHECK_U64(world_committed(w, 1), behind_last(w));
    world_end(w, 1);
}

/* Two lanes on 10 kB messages. One hangs, with some that it has taken behind
 * its first, and falls behind the window; what is lost lies on either side of
 * that. */
static world *make_loss(void)
{
    stg_lane_options *o;
    world *w = world_new(1);

    world_merge(w, OWN);
    world_options(w)->memory_max = 1 << 20;
    world_size(w, 10000);
    o = world_lane(w, PATIENT);
    o->in_flight_max = 4;
    o->order = STG_ORDER_STRICT;
    world_lane(w, PATIENT);
    start(w, 5);
    world_run(w, STG_NEVER);
    world_leaf_says(w, 0, stg_ok(), 19 * STG_S);
    world_publish(w, 200);
    run_for(w, STG_S);
    CHECK_U64(world_look(w, 1).delivered, 205);
    CHECK(world_look(w, 0).waiting > 3);
    world_pause(w, 1, true);
    world_publish(w, 100);
    run_for(w, STG_S);
    world_store_delay(w, 5 * STG_S);
    world_expire(w, 0, world_position(w, 280));
    CHECK(find_next(w) == world_position(w, 280));
    return w;
}

/* A replay of a bulk row sends all from its first to its last. */
TEST(moves, let_no_range_reach_over_what_is_lost)
{
    world *w = make_loss();

    world_retain(w, 0, world_position(w, 304) + 1);
    come_back(w);
    CHECK_U64(world_ranges_of(w, 0), 4); // two of them are lost
    world_free(w);
}

/* Then the lane falls behind more of the window. */
TEST(moves, do_not_shrink_the_row_of_what_is_lost)
{
    world *w = make_loss();
    uint64_t last = 0;

    run_for(w, STG_S);
    world_pause(w, 1, false);
    world_publish(w, 53);
    run_for(w, STG_S);
    world_expire(w, 0, world_position(w, 290));
    run_for(w, 10 * STG_S);
    come_back(w);
    for (size_t i = 0; i < world_dead_count(w); i++)
        last = stg_ns_max(last, world_dead_at(w, i)->last_position);
    CHECK_U64(last, world_position(w, 280) - 1);
    world_free(w);
}

/* -- too large ------------------------------------------------------------- */

/* A body that was left out is dead at once, and nobody waits for it. */
TEST(moves, refuse_what_is_too_large)
{
    world *w = world_new(1);

    world_merge(w, SHARED);
    world_large(w, 3);
    world_lane(w, PATIENT)->order = STG_ORDER_STRICT;
    start(w, 9);
    world_run(w, STG_NEVER);
    CHECK_U64(world_look(w, 0).delivered, 6);
    CHECK_U64(world_dead_count(w), 3);
    for (size_t i = 0; i < 3; i++) {
        const world_dead *d = world_dead_at(w, i);

        CHECK_INT(d->outcome.fault, STG_FAULT_TOO_LARGE);
        CHECK_INT(d->why, STG_WHY_PERMANENT);
        CHECK_U64(d->attempts, 0);
        CHECK_U64(d->position, world_position(w, 3 * i + 2));
    }
    CHECK_U64(world_committed(w, 0), world_position(w, 8) + 1);
    world_end(w, 1);
}
