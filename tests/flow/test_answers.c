/* Answers of the store that come late, or are no: what happens meanwhile. */
#include "tests/flow/bare.h"

static const stg_end done = {.outcome = {.fault = STG_FAULT_NONE}};

static bool has_change(const bare *b, stg_change_kind kind)
{
    for (size_t i = 0; i < b->last_changes; i++)
        if (b->changes[i].kind == kind)
            return true;
    return false;
}

/* Refuses the group, and lets a second pass: a store without room is asked again
 * behind it. */
static void refuse_group(bare *b, stg_stored how)
{
    answer_group(b, how);
    b->later += STG_S;
    run(b);
}

/* -- a lane that is removed ------------------------------------------------- */

/* Two lanes in partition 1. */
static void begin_two(bare *b, const char *policy)
{
    stg_lane_options o = prepare(b, policy);

    assign(b, 1, NULL, 0);
    add_lane(b, 0, &o);
    add_lane(b, 1, &o);
    stg_flow_start(b->flow, now);
    run(b);
}

/* Nothing of it may be in a group that is out: its number may be another lane's
 * then. */
TEST(answers, come_before_a_lane_is_removed)
{
    bare b;

    begin_two(&b, ONCE);
    b.holds_groups = true;
    stg_flow_remove(b.flow, 0, now);
    run(&b);
    CHECK(has_change(&b, STG_CHANGE_FORGET));
    assign(&b, 0, NULL, 0);
    stg_flow_stored(b.flow, STG_STORED, now);
    stg_flow_lose(b.flow, 0, false, now);
    stg_flow_replayed(b.flow, 1, 1, 1, true, now); // the slice is written again
    run(&b);
    CHECK(has_change(&b, STG_CHANGE_FORGET));
    CHECK_U64(b.revoked, 1);
    CHECK_U64(b.removed, 0);
    answer_group(&b, STG_STORED);
    CHECK_U64(b.removed, 1);
    stg_flow_free(b.flow);
}

TEST(answers, forget_a_lane_by_what_is_durable_alone)
{
    static const stg_stored nos[] = {STG_STORED_FENCED, STG_STORED_FULL};

    for (size_t i = 0; i < 2; i++) {
        bare b;

        begin_two(&b, ONCE);
        b.holds_groups = true;
        stg_flow_remove(b.flow, 0, now);
        run(&b);
        refuse_group(&b, nos[i]);
        CHECK(has_change(&b, STG_CHANGE_FORGET)); // again
        CHECK_U64(b.removed, 0);
        answer_group(&b, STG_STORED);
        CHECK_U64(b.removed, 1);
        stg_flow_free(b.flow);
    }
}

/* The cursor of a partition that comes while a lane ends is forgotten as well. */
TEST(answers, forget_a_lane_where_a_partition_has_come)
{
    const stg_cursor c = {.lane = 0, .partition = 0, .base = 5};
    bare b;

    begin_two(&b, ONCE);
    b.holds_groups = true;
    stg_flow_remove(b.flow, 0, now);
    run(&b);
    assign(&b, 0, &c, 1);
    answer_group(&b, STG_STORED);
    CHECK(has_change(&b, STG_CHANGE_FORGET));
    CHECK_U64(b.removed, 0);
    answer_group(&b, STG_STORED);
    CHECK_U64(b.removed, 1);
    stg_flow_free(b.flow);
}

/* -- a partition that goes -------------------------------------------------- */

TEST(answers, come_before_a_partition_is_revoked)
{
    static const stg_stored nos[] = {STG_STORED_FENCED, STG_STORED_FULL};

    for (size_t i = 0; i < 2; i++) {
        bare b;

        begin_two(&b, ONCE);
        read_of(&b, 1, 1, (stg_record){.size = 0});
        run(&b);
        b.holds_groups = true;
        end_one(&b, 0, &done);
        end_one(&b, 1, &done);
        stg_flow_revoke(b.flow, 1, false, STG_S, now);
        run(&b);
        refuse_group(&b, nos[i]);
        CHECK_U64(b.revoked, 0);
        CHECK_U64(b.last_cursors, 2);
        answer_group(&b, STG_STORED);
        CHECK_U64(b.revoked, 1);
        stg_flow_free(b.flow);
    }
}

/* One that was made after the last checkpoint is awaited, too. */
TEST(answers, come_before_a_partition_is_revoked_that_changes_again)
{
    bare b;

    begin_two(&b, ONCE);
    read_of(&b, 1, 1, (stg_record){.size = 0});
    run(&b);
    b.holds_groups = true;
    end_one(&b, 0, &done);
    end_one(&b, 1, &done);
    stg_flow_revoke(b.flow, 1, false, STG_S, now);
    run(&b);
    stg_flow_stored(b.flow, STG_STORED, now);
    stg_flow_replayed(b.flow, 1, 1, 1, true, now);
    run(&b);
    CHECK_U64(b.last_cursors, 2);
    CHECK_U64(b.revoked, 0);
    answer_group(&b, STG_STORED);
    CHECK_U64(b.revoked, 1);
    stg_flow_free(b.flow);
}

/* -- what the log has lost -------------------------------------------------- */

/* The row is written again, and the lane goes only when it is there. */
TEST(answers, come_for_what_is_lost_before_a_lane_is_removed)
{
    static const stg_stored nos[] = {STG_STORED_FENCED, STG_STORED_FULL};

    for (size_t i = 0; i < 2; i++) {
        bare b;

        begin(&b, ONCE);
        b.holds_groups = true;
        stg_flow_expired(b.flow, 0, 11, now);
        if (i == 0)
            run(&b); // the group is out
        stg_flow_remove(b.flow, 0, now);
        run(&b);
        CHECK(has_change(&b, STG_CHANGE_RANGE));
        refuse_group(&b, nos[i]);
        CHECK(has_change(&b, STG_CHANGE_RANGE));
        CHECK(!has_change(&b, STG_CHANGE_FORGET));
        CHECK_U64(b.changes[0].count, 10);
        CHECK_U64(b.changes[0].added, 10);
        answer_group(&b, STG_STORED);
        CHECK(has_change(&b, STG_CHANGE_FORGET));
        // An end is an end: it loses nothing more.
        stg_flow_expired(b.flow, 0, 31, now);
        run(&b);
        CHECK_U64(b.lost, 10);
        answer_group(&b, STG_STORED);
        CHECK_U64(b.removed, 1);
        stg_flow_free(b.flow);
    }
}

/* -- a bulk row ------------------------------------------------------------- */

/* The row is of the first time that the breaker was open: what opened it since is no
 * cause of it. */
TEST(answers, name_no_failure_that_came_later)
{
    stg_end first = failed_with("first", NULL), second = first;
    bare b;

    second.detail = "second";
    begin(&b, ONCE " breaker=1:1h-1h");
    read_one(&b, 1, (stg_record){.size = 0});
    end_one(&b, 0, &first);
    b.holds_groups = true;
    read_one(&b, 2, (stg_record){.size = 0});
    CHECK_U64(b.changes[0].count, 1);
    CHECK(b.changes[0].failure != NULL);
    read_one(&b, 3, (stg_record){.size = 0});
    read_of(&b, 0, 4, (stg_record){.size = 0});
    CHECK(stg_flow_probe(b.flow, 0, now));
    run(&b);
    end_one(&b, 1, &done);
    read_one(&b, 5, (stg_record){.size = 0});
    end_one(&b, 2, &second);
    answer_group(&b, STG_STORED);
    CHECK(has_change(&b, STG_CHANGE_RANGE));
    for (size_t i = 0; i < b.last_changes; i++)
        if (b.changes[i].kind == STG_CHANGE_RANGE) {
            CHECK_U64(b.changes[i].count, 2);
            CHECK(b.changes[i].failure == NULL);
        }
    answer_group(&b, STG_STORED);
    stg_flow_free(b.flow);
}

/* -- an order that changes -------------------------------------------------- */

/* What waited for another waits on, for its partition goes. */
TEST(answers, let_nothing_begin_by_another_order)
{
    static const stg_record same_key = {.key = 7};
    bare b;
    stg_lane_options o = prepare(&b, OFTEN);

    o.order = STG_ORDER_KEY;
    begin_with(&b, &o);
    read_one(&b, 1, same_key);
    read_one(&b, 2, same_key);
    CHECK_U64(b.start_count, 1);
    stg_flow_revoke(b.flow, 0, false, 10 * STG_S, now);
    o.order = STG_ORDER_NONE;
    CHECK_INT(stg_flow_change_lane(b.flow, 0, &o, now, NULL), STG_OK);
    run(&b);
    CHECK_INT(look_at(&b, 0).order, STG_ORDER_NONE);
    CHECK_U64(b.start_count, 1);
    end_one(&b, 0, &done);
    CHECK_U64(b.start_count, 1);
    CHECK_U64(b.revoked, 1);
    stg_flow_free(b.flow);
}

/* Rows that have left memory stand in the store as they did. */
TEST(answers, say_how_the_rows_stand_that_have_left)
{
    static const stg_record keys[] = {{.key = 1}, {.key = 2}};

    for (int variant = 0; variant < 3; variant++) {
        bool keeps_rows = variant == 1, has_rows = variant < 2;
        stg_end end = has_rows ? failed_with(NULL, NULL) : done;
        bare b;
        stg_lane_options o = prepare(&b, OFTEN);

        o.order = STG_ORDER_KEY;
        begin_with(&b, &o);
        read_one(&b, 1, keys[0]);
        read_one(&b, 2, keys[1]);
        end_one(&b, 0, &end);
        stg_flow_revoke(b.flow, 0, keeps_rows, 10 * STG_S, now);
        o.order = STG_ORDER_NONE;
        CHECK_INT(stg_flow_change_lane(b.flow, 0, &o, now, NULL), STG_OK);
        run(&b);
        CHECK_INT(look_at(&b, 0).order, STG_ORDER_NONE);
        CHECK_U64(b.last_cursors, 1);
        CHECK_U64(b.cursors[0].parked, has_rows);
        CHECK_INT(b.cursors[0].is_ordered, variant == 0);
        end_one(&b, 1, &done);
        CHECK_U64(b.revoked, 1);
        stg_flow_free(b.flow);
    }
}

/* -- a fetch ---------------------------------------------------------------- */

static stg_parked_row row_of(uint64_t position)
{
    return (stg_parked_row){
        .record = {.position = position},
        .progress = {.attempts = 1, .last = STG_S},
        .failure = {.outcome = stg_answered(503), .detail = ""},
        .has_failure = true};
}

/* Two rows: the first is tried while what comes after it is fetched, and ends. */
static void end_while_fetching(bare *b)
{
    const stg_cursor c = {.base = 10, .routed = 2, .parked = 2};
    const stg_parked_row row = row_of(3);
    stg_lane_options o = prepare(b, OFTEN);

    add_lane(b, 0, &o);
    stg_flow_start(b->flow, now);
    assign(b, 0, &c, 1);
    run(b);
    CHECK_U64(b->fetch_count, 1);
    stg_flow_rows(b->flow, 0, false, &row, 1, false, now);
    run(b);
    CHECK_U64(b->start_count, 1);
    CHECK_U64(b->fetch_count, 2);
    end_one(b, 0, &done);
    CHECK_U64(look(b, 0).parked, 1);
}

/* A partition does not wait for what has ended, though a fetch may bring it back. */
TEST(answers, are_not_awaited_of_what_has_ended)
{
    for (int variant = 0; variant < 3; variant++) {
        bare b;

        end_while_fetching(&b);
        if (variant == 0)
            stg_flow_lose(b.flow, 0, false, now);
        else
            stg_flow_revoke(b.flow, 0, variant == 1, STG_S, now);
        run(&b);
        CHECK_U64(b.revoked, 1);
        stg_flow_rows(b.flow, 0, false, NULL, 0, true, now);
        run(&b);
        CHECK_U64(b.start_count, 1);
        stg_flow_free(b.flow);
    }
}

/* The row is the same message's, but another replay. */
TEST(answers, bring_a_replay_of_what_is_under_way)
{
    const stg_parked_row row = {.record = {.position = 1}, .replay = 1};
    stg_lane_options o;
    bare b;

    begin(&b, ONCE);
    read_one(&b, 1, (stg_record){.size = 0});
    stg_flow_replayed(b.flow, 0, 0, 1, true, now);
    run(&b);
    CHECK(b.fetch.fetch.is_replay);
    stg_flow_rows(b.flow, 0, true, &row, 1, true, now);
    run(&b);
    CHECK_U64(b.start_count, 2);
    CHECK_U64(b.starts[1].start.replay, 1);
    CHECK_U64(b.positions[1], 1);
    end_one(&b, 0, &done);
    // Without an order it goes on: what was begun so has to end first.
    o = stg_lane_options_default(&b.policy);
    o.order = STG_ORDER_KEY;
    CHECK_INT(stg_flow_change_lane(b.flow, 0, &o, now, NULL), STG_OK);
    run(&b);
    CHECK_INT(look_at(&b, 0).order, STG_ORDER_NONE);
    end_one(&b, 1, &done);
    CHECK_INT(look_at(&b, 0).order, STG_ORDER_KEY);
    stg_flow_free(b.flow);
}

/* Replays that are fetched may be the lane's last. */
TEST(answers, to_a_fetch_come_before_a_lane_is_removed)
{
    bare b;

    begin(&b, ONCE);
    stg_flow_replayed(b.flow, 0, 0, 1, true, now);
    run(&b);
    CHECK_U64(b.fetch_count, 1);
    stg_flow_remove(b.flow, 0, now);
    run(&b);
    CHECK_U64(b.removed, 0);
    stg_flow_rows(b.flow, 0, true, NULL, 0, true, now);
    run(&b);
    CHECK_U64(b.removed, 1);
    stg_flow_free(b.flow);
}

/* A lane of this order, with its cursor in partition 0. */
static void begin_restored(bare *b, stg_order order, const stg_cursor *c)
{
    stg_lane_options o = prepare(b, OFTEN);

    o.order = order;
    add_lane(b, 0, &o);
    stg_flow_start(b->flow, now);
    assign(b, 0, c, 1);
}

/* Rows of a lane that had another order, and a replay: nothing of the partition is
 * taken before they end. */
static void begin_draining(bare *b, stg_order order)
{
    const stg_cursor c = {.base = 5,
                          .routed = 2,
                          .parked = 2,
                          .replays = 1,
                          .is_ordered = order == STG_ORDER_NONE};

    begin_restored(b, order, &c);
    run(b);
    CHECK_U64(b->fetch_count, 2);
}

/* A row that has ended while others are fetched gets no slot in the ring again,
 * though the fetch may bring it once more. Rows of another order let the lane go on
 * meanwhile. */
TEST(answers, to_a_fetch_bring_no_slot_to_what_has_ended)
{
    const stg_cursor own = {
        .base = 5, .routed = 2, .parked = 2, .is_ordered = true};
    const stg_cursor old = {
        .partition = 1, .base = 5, .routed = 1, .parked = 1};
    stg_parked_row rows[] = {row_of(5), row_of(6), row_of(3)};
    bare b;

    begin_restored(&b, STG_ORDER_KEY, &own);
    assign(&b, 1, &old, 1);
    run(&b);
    rows[2].partition = 1;
    rows[2].due_at = rows[2].wait = STG_HOUR;
    stg_flow_rows(b.flow, 0, false, rows, 3, false, now);
    run(&b);
    CHECK_U64(b.fetch_count, 2);
    for (uint64_t position = 5; position <= 6; position++)
        read_one(&b, position, (stg_record){.size = 0});
    b.later = STG_S;
    run(&b);
    CHECK_U64(b.start_count, 2);
    CHECK_U64(b.positions[1], 6);
    end_one(&b, 1, &done);
    read_one(&b, 8, (stg_record){.size = 0});
    CHECK_U64(b.start_count, 3);
    CHECK_U64(b.positions[2], 8);
    CHECK_U64(look(&b, 0).base, 5);
    end_one(&b, 0, &done);
    CHECK_U64(look(&b, 0).base, 8);
    stg_flow_free(b.flow);
}

/* Whether it was stored the first time nobody knows: without the partition that was
 * lost it comes again, and not as another one that says less. */
TEST(answers, that_fence_a_group_that_may_be_there_are_no_end_of_it)
{
    const stg_end end = {.outcome = stg_answered(503)};
    bare b;

    begin(&b, OFTEN);
    assign(&b, 1, NULL, 0);
    run(&b);
    read_one(&b, 1, (stg_record){.size = 0});
    read_of(&b, 1, 1, (stg_record){.size = 0});
    run(&b);
    CHECK_U64(b.start_count, 2);
    b.holds_groups = true;
    (void)stg_flow_ended(b.flow, b.started[0], &end, now);
    (void)stg_flow_ended(b.flow, b.started[1], &end, now);
    run(&b);
    CHECK_U64(b.last_changes, 2);
    answer_group(&b, STG_STORED_UNKNOWN);
    CHECK_U64(b.last_changes, 2);
    stg_flow_fenced(b.flow, 1, now);
    answer_group(&b, STG_STORED_FENCED);
    CHECK_U64(b.last_changes, 1);
    CHECK_U64(b.changes[0].partition, 0);
    b.holds_groups = false;
    answer_group(&b, STG_STORED);
    CHECK_U64(look(&b, 0).parked, 1);
    CHECK_U64(b.revoked, 1);
    stg_flow_free(b.flow);
}

/* The group after one that may have been there is another one: where it is fenced, it
 * is taken back, and what has come meanwhile goes with it. */
TEST(answers, that_were_unknown_say_nothing_of_the_next_group)
{
    const stg_end end = {.outcome = stg_answered(503)};
    bare b;

    begin(&b, OFTEN);
    for (uint64_t position = 1; position <= 3; position++)
        read_one(&b, position, (stg_record){.size = 0});
    CHECK_U64(b.start_count, 3);
    b.holds_groups = true;
    end_one(&b, 0, &end);
    answer_group(&b, STG_STORED_UNKNOWN);
    answer_group(&b, STG_STORED);
    end_one(&b, 1, &end);
    CHECK_U64(b.last_changes, 1);
    end_one(&b, 2, &end);
    answer_group(&b, STG_STORED_FENCED);
    CHECK_U64(b.last_changes, 2);
    answer_group(&b, STG_STORED);
    CHECK_U64(look(&b, 0).parked, 3);
    stg_flow_free(b.flow);
}

/* A commit that is due is not sent once the partition is lost: another hub has it. */
TEST(answers, that_come_before_a_loss_commit_nothing)
{
    bare b;
    size_t before;

    begin(&b, ONCE);
    read_one(&b, 1, (stg_record){.size = 0});
    before = b.commit_count;
    b.holds_groups = true;
    b.later = STG_MIN;
    end_one(&b, 0, &done);
    CHECK_U64(b.last_cursors, 1);
    CHECK_U64(b.cursors[0].base, 2);
    stg_flow_stored(b.flow, STG_STORED, now + b.later);
    stg_flow_lose(b.flow, 0, false, now + b.later);
    run(&b);
    CHECK_U64(b.commit_count, before);
    CHECK_U64(b.revoked, 1);
    stg_flow_free(b.flow);
}

/* With rows of another order of which not all were fetched: one in partition 1, due in
 * an hour. */
static void assign_old_rows(bare *b, uint64_t fetches)
{
    const stg_cursor old = {
        .partition = 1, .base = 5, .routed = 2, .parked = 2};
    stg_parked_row row = row_of(3);

    row.partition = 1;
    row.due_at = row.wait = STG_HOUR;
    assign(b, 1, &old, 1);
    run(b);
    CHECK_U64(b->fetch_count, fetches);
    stg_flow_rows(b->flow, 0, false, &row, 1, false, now + b->later);
    run(b);
    CHECK_U64(b->fetch_count, fetches + 1);
}

/* A message is not taken for a new one while its row may not have been fetched yet. */
TEST(answers, to_a_fetch_come_before_the_messages_of_its_rows)
{
    const stg_cursor own = {
        .base = 5, .routed = 1, .parked = 1, .is_ordered = true};
    const stg_parked_row row = row_of(5);
    bare b;

    begin_restored(&b, STG_ORDER_KEY, &own);
    assign_old_rows(&b, 1);
    read_one(&b, 5, (stg_record){.size = 0});
    CHECK_U64(b.start_count, 0);
    CHECK_U64(look(&b, 0).next, 5);
    stg_flow_rows(b.flow, 0, false, &row, 1, true, now);
    run(&b);
    b.later = STG_S;
    run(&b);
    CHECK_U64(b.start_count, 1);
    CHECK_U64(b.positions[0], 5);
    CHECK_U64(look(&b, 0).next, 6);
    stg_flow_free(b.flow);
}

/* What is under way without a row, and a replay, are none of its rows. */
TEST(answers, to_a_fetch_are_not_awaited_where_there_are_no_rows)
{
    stg_parked_row replay = row_of(1);
    stg_lane_options o;
    bare b;

    o = prepare(&b, OFTEN);
    o.order = STG_ORDER_KEY;
    begin_with(&b, &o);
    read_one(&b, 1, (stg_record){.size = 0});
    end_one(&b, 0, &done);
    read_one(&b, 2, (stg_record){.size = 0});
    replay.replay = 1;
    stg_flow_replayed(b.flow, 0, 0, 1, true, now);
    run(&b);
    stg_flow_rows(b.flow, 0, true, &replay, 1, true, now);
    run(&b);
    CHECK_U64(b.start_count, 3);
    CHECK_U64(b.starts[2].start.replay, 1);
    assign_old_rows(&b, 2);
    read_one(&b, 3, (stg_record){.size = 0});
    CHECK_U64(b.start_count, 4);
    CHECK_U64(b.positions[3], 3);
    stg_flow_free(b.flow);
}

/* There is room to note as many as it counts: of the others nothing is noted. */
TEST(answers, bring_more_rows_than_the_cursor_counts)
{
    const stg_parked_row rows[] = {row_of(5), row_of(6)};
    bare b;

    begin_draining(&b, STG_ORDER_NONE);
    b.is_unsound = true;
    stg_flow_rows(b.flow, 0, false, rows, 2, true, now);
    run(&b);
    CHECK_U64(b.start_count, 2);
    end_one(&b, 0, &done);
    end_one(&b, 1, &done);
    CHECK_U64(b.cursors[0].delivered, 2);
    CHECK_U64(b.cursors[0].settled_count, 1);
    CHECK_U64(b.settled[0].first, 5);
    CHECK_U64(b.settled[0].last, 5);
    stg_flow_free(b.flow);
}

/* It ends though it has read nothing. */
TEST(answers, let_a_lane_end_that_has_rows_of_another_order)
{
    bare b;

    begin_draining(&b, STG_ORDER_NONE);
    read_one(&b, 5, (stg_record){.size = 0});
    for (int is_replay = 0; is_replay < 2; is_replay++)
        stg_flow_rows(b.flow, 0, is_replay, NULL, 0, true, now);
    stg_flow_remove(b.flow, 0, now);
    run(&b);
    CHECK_U64(b.start_count, 0);
    CHECK_U64(b.removed, 1);
    stg_flow_free(b.flow);
}

/* What is read for another lane is nothing for one that has such rows. */
TEST(answers, to_a_read_are_taken_by_lanes_that_may)
{
    static const stg_record records[] = {{.position = 7}};
    const stg_cursor cursors[] = {
        {.lane = 0, .base = 100},
        {.lane = 1, .base = 5},
        {.lane = 2, .base = 5, .routed = 1, .parked = 1, .is_ordered = true}};
    stg_lane_options o;
    bare b;

    o = prepare(&b, OFTEN);
    for (uint32_t lane = 0; lane < 3; lane++)
        add_lane(&b, lane, &o);
    stg_flow_start(b.flow, now);
    assign(&b, 0, cursors, 3);
    run(&b);
    CHECK_U64(b.catch_up.read.from, 5);
    stg_flow_messages(b.flow, true, 0, 0, records, 1, 50, now);
    run(&b);
    CHECK_U64(b.start_count, 1);
    CHECK_U64(b.starts[0].lane, 1);
    CHECK_U64(look(&b, 1).next, 50);
    CHECK_U64(look(&b, 2).next, 5);
    stg_flow_free(b.flow);
}

/* Nor does such a row keep the lane from having no order. */
TEST(answers, let_the_order_change_before_rows_of_another_have_ended)
{
    stg_parked_row row = row_of(5);
    stg_lane_options o;
    bare b;

    row.due_at = STG_HOUR;
    row.wait = STG_HOUR;
    begin_draining(&b, STG_ORDER_KEY);
    stg_flow_rows(b.flow, 0, false, &row, 1, true, now);
    o = stg_lane_options_default(&b.policy);
    CHECK_INT(stg_flow_change_lane(b.flow, 0, &o, now, NULL), STG_OK);
    run(&b);
    CHECK_U64(b.start_count, 0);
    CHECK_INT(look_at(&b, 0).order, STG_ORDER_NONE);
    stg_flow_free(b.flow);
}

/* -- a stop ----------------------------------------------------------------- */

/* Who is cancelled twice over is told so once. */
TEST(answers, are_asked_for_once)
{
    for (int variant = 0; variant < 2; variant++) {
        bare b;

        begin(&b, ONCE);
        read_one(&b, 1, (stg_record){.size = 0});
        stg_flow_remove(b.flow, 0, now);
        if (variant == 0)
            stg_flow_lose(b.flow, 0, false, now);
        else
            stg_flow_stop(b.flow, now);
        b.later = STG_MIN;
        run(&b);
        CHECK_U64(b.cancel_count, 1);
        end_one(&b, 0, &(stg_end){.outcome = stg_failed(STG_FAULT_CANCELLED)});
        CHECK_U64(b.cancel_count, 1);
        stg_flow_free(b.flow);
    }
}

/* What was cut before anything was sent is as it was; else it may have arrived. */
TEST(answers, of_a_cut_attempt_say_whether_it_was_sent)
{
    for (int unsent = 0; unsent < 2; unsent++) {
        stg_end end = {.outcome = stg_failed(STG_FAULT_CANCELLED)};
        bare b;

        end.outcome.unsent = unsent;
        begin(&b, OFTEN " retry=timeout");
        read_one(&b, 1, (stg_record){.size = 0});
        stg_flow_stop(b.flow, now);
        b.later = STG_MIN;
        run(&b);
        CHECK_U64(b.cancel_count, 1);
        end_one(&b, 0, &end);
        CHECK(b.is_stopped);
        CHECK_U64(look(&b, 0).parked, !unsent);
        stg_flow_free(b.flow);
    }
}

/* -- a failure -------------------------------------------------------------- */

/* The first attempt was long enough to be a success: its failure begins a series, with
 * a deadline of its own. */
TEST(answers, that_come_late_begin_a_series)
{
    stg_end end = failed_with(NULL, NULL);
    bare b;

    begin(&b,
          "fixed base=1s jitter=none attempts=9 deadline=1m reset-after=2s");
    read_one(&b, 1, (stg_record){.size = 0});
    read_one(&b, 2, (stg_record){.size = 0});
    b.later = STG_S;
    end_one(&b, 0, &end);
    CHECK_INT(b.changes[0].kind, STG_CHANGE_PARK);
    CHECK_U64(b.changes[0].began_at, 0);
    b.later = 2 * STG_S;
    end_one(&b, 1, &end);
    CHECK_U64(b.last_changes, 1);
    CHECK_U64(b.changes[0].position, 2);
    CHECK_U64(b.changes[0].began_at, 2 * STG_S);
    CHECK_U64(look(&b, 0).parked, 2);
    stg_flow_free(b.flow);
}

/* What is our own fault is tried again where the policy says so, and takes nothing from
 * the budget. */
TEST(answers, that_are_our_own_fault_cost_no_budget)
{
    stg_end end = {.outcome = stg_failed(STG_FAULT_LOOP)};
    uint64_t left;
    bare b;

    begin(&b, OFTEN " retry=loop,5xx budget=grpc:10:0.1");
    read_one(&b, 1, (stg_record){.size = 0});
    read_one(&b, 2, (stg_record){.size = 0});
    left = look_at(&b, 0).budget_left;
    end_one(&b, 0, &end);
    CHECK_U64(look(&b, 0).parked, 1);
    CHECK_U64(look_at(&b, 0).budget_left, left);
    end.outcome = stg_answered(503);
    end_one(&b, 1, &end);
    CHECK_U64(look(&b, 0).parked, 2);
    CHECK(look_at(&b, 0).budget_left < left);
    stg_flow_free(b.flow);
}

/* -- a stop that has to wait ------------------------------------------------ */

/* A stop waits for the last group where memory lacks for it; a store that is full is
 * asked once more for the cursors. */
TEST(answers, are_awaited_by_a_stop_that_lacks_memory)
{
    for (int is_full = 0; is_full < 2; is_full++) {
        stg_end end = is_full ? failed_with(NULL, NULL) : done;
        size_t groups;
        bare b;

        begin(&b, ONCE);
        b.store_says = is_full ? STG_STORED_FULL : STG_STORED;
        read_one(&b, 1, (stg_record){.size = 0});
        end_one(&b, 0, &end);
        groups = b.group_count;
        stg_flow_stop(b.flow, now);
        allocations_left = 0;
        run(&b);
        run(&b);
        CHECK(!b.is_stopped);
        CHECK_U64(b.group_count, groups);
        allocations_left = SIZE_MAX;
        b.later = STG_S;
        run(&b);
        CHECK(b.is_stopped);
        CHECK_U64(b.group_count, groups + 1);
        CHECK_INT(b.is_clean, !is_full);
        stg_flow_free(b.flow);
    }
}
