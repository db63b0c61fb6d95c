/* Flow without a world: what no log, target or shell of the simulator does. */
#include "tests/flow/bare.h"

/* -- a message that the log has not got as it was published ---------------- */

TEST(bare, names_what_a_message_lacks)
{
    bare b;

    begin(&b, ONCE);
    read_one(&b, 1, (stg_record){.bytes = "x", .size = 1, .headers_lost = 12});
    CHECK_STR(b.detail, "12 of its headers cannot be sent");
    CHECK_INT(b.outcome.fault, STG_FAULT_INVALID);
    read_one(&b, 2, (stg_record){.not_before = STG_NEVER});
    CHECK_STR(b.detail,
              "its Stagger-Not-Before or Stagger-Expires cannot be read");
    read_one(&b, 3, (stg_record){.true_size = 1 << 20});
    CHECK_STR(b.detail, "1048576 bytes");
    CHECK_U64(b.start_count, 0);
    stg_flow_free(b.flow);
}

TEST(bare, counts_no_more_bytes_than_it_can)
{
    bare b;

    if (SIZE_MAX == UINT32_MAX)
        return;
    begin(&b, ONCE);
    read_one(&b, 1, (stg_record){.true_size = (size_t)(UINT64_C(5) << 30)});
    CHECK_U64(b.true_size, UINT32_MAX);
    CHECK_STR(b.detail, "4294967295 bytes");
    stg_flow_free(b.flow);
}

static uint64_t count_routed(const bare *b)
{
    stg_lane_view view = {.routed = 0};

    CHECK(stg_flow_view_lane(b->flow, 0, &view, now) == STG_OK);
    return view.routed;
}

TEST(bare, takes_what_is_read_twice_once)
{
    bare b;

    begin(&b, ONCE);
    read_one(&b, 1, (stg_record){.size = 0});
    read_one(&b, 1, (stg_record){.size = 0}); // nobody has asked for it
    end_one(&b, 0, &(stg_end){.outcome = stg_ok()});
    CHECK_U64(count_routed(&b), 1);
    read_one(&b, 1, (stg_record){.size = 0});
    CHECK_U64(count_routed(&b), 1);
    read_one(&b, 2, (stg_record){.size = 0});
    CHECK_U64(count_routed(&b), 2);
    CHECK_U64(b.start_count, 2);
    stg_flow_free(b.flow);
}

/* -- what is kept of a failure --------------------------------------------- */

TEST(bare, keeps_the_words_and_the_answer_that_there_are)
{
    static const struct {
        const char *detail, *answer;
    } rows[] = {{NULL, NULL},
                {"a detail", NULL},
                {NULL, "an answer"},
                {"both", "of them"}};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *detail = rows[i].detail, *answer = rows[i].answer;
        stg_end end = failed_with(detail, answer);
        bare b;

        begin(&b, ONCE " breaker=1:1h-1h");
        read_one(&b, 1, (stg_record){.size = 0});
        end_one(&b, 0, &end);
        CHECK_STR(b.detail, detail == NULL ? "" : detail);
        CHECK_U64(b.answer_size, answer == NULL ? 0 : strlen(answer));
        CHECK(memcmp(b.answer, answer == NULL ? "" : answer, b.answer_size) ==
              0);
        // The bulk row has the failure that opened the breaker.
        b.detail[0] = '\0';
        read_one(&b, 2, (stg_record){.size = 0});
        CHECK_INT(b.kind, STG_CHANGE_RANGE);
        CHECK_STR(b.detail, detail == NULL ? "" : detail);
        CHECK_U64(b.answer_size, answer == NULL ? 0 : strlen(answer));
        stg_flow_free(b.flow);
    }
}

/* Where memory is full the failure has its numbers alone. */
TEST(bare, keeps_no_words_that_there_is_no_room_for)
{
    static char bytes[(1 << 20) - 100];
    stg_end end = failed_with(
        "word word word word word word word word word word "
        "word word word word word word word word word word",
        "answer");
    stg_lane_options o;
    bare b;

    o = prepare_small(&b, OFTEN);
    begin_with(&b, &o);
    read_one(&b, 1, (stg_record){.bytes = bytes, .size = sizeof bytes});
    end_one(&b, 0, &end);
    CHECK_INT(b.kind, STG_CHANGE_PARK);
    CHECK_INT(b.outcome.code, 503);
    CHECK_STR(b.detail, "");
    CHECK_U64(b.answer_size, 0);
    stg_flow_free(b.flow);
}

/* The bulk row has the last failure of the kind that opened the breaker. */
TEST(bare, keeps_what_opened_the_breaker)
{
    stg_end first = failed_with("first", NULL), same = failed_with("same", ""),
            other = failed_with("other", NULL), alike = other;
    bare b;

    other.outcome = stg_answered(500);
    alike.outcome.code_kind = STG_CODE_ERRNO;
    begin(&b, ONCE " breaker=1:1h-1h");
    for (uint64_t position = 1; position <= 4; position++)
        read_one(&b, position, (stg_record){.size = 0});
    CHECK_U64(b.start_count, 4);
    end_one(&b, 0, &first);
    end_one(&b, 1, &same);
    end_one(&b, 2, &alike);
    end_one(&b, 3, &other);
    CHECK_STR(b.detail, "other"); // the row of its own
    read_one(&b, 5, (stg_record){.size = 0});
    CHECK_INT(b.kind, STG_CHANGE_RANGE);
    CHECK_STR(b.detail, "same");
    CHECK_INT(b.outcome.code, 503);
    stg_flow_free(b.flow);
}

/* A store that has no room for the cursors alone either: both wait a second. */
TEST(bare, waits_where_there_is_no_room_for_cursors_either)
{
    stg_end end = failed_with(NULL, NULL);
    size_t before;
    bare b;

    begin(&b, ONCE);
    b.store_says = STG_STORED_FULL;
    before = b.group_count;
    read_one(&b, 1, (stg_record){.size = 0});
    end_one(&b, 0, &end);
    CHECK_U64(b.group_count - before, 2);
    CHECK_U64(b.last_changes, 0); // the second had no rows
    CHECK_U64(stg_flow_wake_at(b.flow), now + STG_S);
    stg_flow_free(b.flow);
}

/* -- another hub has it ---------------------------------------------------- */

/* Its attempt was quicker than the cancel: nothing is booked, whatever it came to. */
TEST(bare, books_nothing_of_a_partition_that_was_lost)
{
    static const int statuses[] = {200, 503};

    for (size_t i = 0; i < 2; i++) {
        stg_end end = {.outcome = stg_answered(statuses[i])};
        stg_verdict v;
        bare b;

        begin(&b, ONCE);
        read_one(&b, 1, (stg_record){.size = 0});
        stg_flow_lose(b.flow, 0, false, now);
        // Whatever is still said of it.
        stg_flow_fenced(b.flow, 0, now);
        stg_flow_revoke(b.flow, 0, true, STG_S, now);
        stg_flow_expired(b.flow, 0, 100, now);
        stg_flow_replayed(b.flow, 0, 0, 5, true, now);
        read_one(&b, 2, (stg_record){.size = 0});
        v = stg_flow_ended(b.flow, b.started[0], &end, now);
        CHECK_INT(v.decision.next, i == 0 ? STG_DONE : STG_WAIT);
        if (i > 0)
            CHECK_INT(v.decision.why, STG_WHY_CANCELLED);
        run(&b);
        CHECK_U64(count_routed(&b), 0);
        stg_flow_free(b.flow);
    }
}

/* Also where the partition was being given away, and there was time for what is under
 * way. */
TEST(bare, cancels_at_once_what_another_hub_has)
{
    bare b;

    begin(&b, ONCE);
    read_one(&b, 1, (stg_record){.size = 0});
    stg_flow_revoke(b.flow, 0, false, STG_MIN, now);
    run(&b);
    CHECK_U64(b.cancel_count, 0);
    stg_flow_lose(b.flow, 0, false, now);
    run(&b);
    CHECK_U64(b.cancel_count, 1);
    end_one(&b, 0, &(stg_end){.outcome = stg_failed(STG_FAULT_CANCELLED)});
    CHECK_U64(b.revoked, 1);
    stg_flow_free(b.flow);
}

/* The partition has gone and come back since it was asked for. */
TEST(bare, takes_nothing_that_was_read_for_an_earlier_assignment)
{
    const stg_record r = {.position = 1};
    uint64_t before;
    bare b;

    begin(&b, ONCE);
    before = b.main_read.read.assignment;
    CHECK_U64(before, stg_flow_assignment(b.flow, 0));
    stg_flow_revoke(b.flow, 0, false, 0, now);
    run(&b);
    CHECK_U64(b.revoked, 1);
    assign(&b, 0, NULL, 0);
    run(&b);
    CHECK_U64(b.read_count, 2);
    CHECK_U64(b.main_read.read.assignment, stg_flow_assignment(b.flow, 0));
    stg_flow_messages(b.flow, false, 0, before, &r, 1, 2, now);
    run(&b);
    CHECK_U64(b.start_count, 0);
    stg_flow_messages(b.flow, false, 0, b.main_read.read.assignment, &r, 1, 2,
                      now);
    run(&b);
    CHECK_U64(b.start_count, 1);
    stg_flow_free(b.flow);
}

/* A lane that is added while only the rows are here stands where the group says that
 * is out, also when the partition comes before the answer. */
TEST(bare, begins_where_the_group_says_that_is_out)
{
    stg_assignment rows = {.partition = 1, .begin = 1, .is_rows_only = true};
    stg_assignment all = {.partition = 1, .begin = 40};
    stg_lane_options o;
    bare b;

    o = prepare(&b, ONCE);
    begin_with(&b, &o);
    CHECK_INT(stg_flow_assign(b.flow, &rows, now, NULL), STG_OK);
    run(&b);
    b.holds_groups = true;
    add_lane(&b, 1, &o);
    run(&b);
    CHECK_U64(b.cursors[b.last_cursors - 1].lane, 1);
    CHECK_U64(b.cursors[b.last_cursors - 1].partition, 1);
    CHECK_INT(stg_flow_assign(b.flow, &all, now, NULL), STG_OK);
    CHECK_U64(look_in(&b, 1, 1).base, b.cursors[b.last_cursors - 1].base);
    b.holds_groups = false;
    answer_group(&b, STG_STORED);
    stg_flow_free(b.flow);
}

/* Rows that were asked for before their partition was lost are another hub's. */
TEST(bare, drops_rows_of_a_partition_that_was_lost)
{
    const stg_parked_row row = {
        .partition = 0, .replay = 1, .record = {.position = 1, .size = 0}};
    stg_end end = {.outcome = stg_ok()};
    bare b;

    begin(&b, ONCE);
    read_one(&b, 1, (stg_record){.size = 0});
    stg_flow_replayed(b.flow, 0, 0, 1, true, now);
    run(&b);
    CHECK_U64(b.fetch_count, 1);
    stg_flow_lose(b.flow, 0, false, now);
    run(&b);
    CHECK_U64(b.revoked, 0); // what is under way is awaited
    stg_flow_rows(b.flow, 0, true, &row, 1, true, now);
    run(&b);
    CHECK_U64(b.start_count, 1);
    end_one(&b, 0, &end);
    CHECK_U64(b.revoked, 1);
    stg_flow_free(b.flow);
}

/* Of one of which only the rows are here nothing changes where they stay; where they
 * are another hub's, it ends. */
TEST(bare, keeps_the_rows_of_a_partition_or_loses_them)
{
    stg_partition_view view;
    stg_assignment g = {.partition = 1, .begin = 1, .is_rows_only = true};
    bare b;

    begin(&b, ONCE);
    CHECK_INT(stg_flow_assign(b.flow, &g, now, NULL), STG_OK);
    stg_flow_revoke(b.flow, 1, true, STG_S, now);
    stg_flow_lose(b.flow, 1, true, now);
    run(&b);
    CHECK_INT(stg_flow_view_partition(b.flow, 1, &view), STG_OK);
    CHECK_INT(view.state, STG_PARTITION_ROWS);
    CHECK_U64(stg_flow_assignment(b.flow, 0), 1);
    CHECK_U64(stg_flow_assignment(b.flow, 1), 0);
    CHECK(!stg_flow_retain_lane(b.flow, 0, now)); // nothing waits in it
    stg_flow_lose(b.flow, 1, false, now);
    run(&b);
    CHECK_INT(stg_flow_view_partition(b.flow, 1, &view), STG_NOT_FOUND);
    stg_flow_free(b.flow);
}

/* -- the log --------------------------------------------------------------- */

/* Of two lanes one stands at 100, where the window begins, and one at 5. */
static void begin_behind(bare *b)
{
    stg_flow_options fo = stg_flow_options_default();
    stg_cursor cursors[] = {{.lane = 0, .base = 100},
                            {.lane = 1, .base = 5},
                            {.lane = 77, .base = 3}};
    stg_assignment g = {.begin = 1, .cursors = cursors, .cursor_count = 3};
    stg_lane_options o;

    *b = (bare){.policy = stg_policy_default()};
    o = stg_lane_options_default(&b->policy);
    CHECK(stg_flow_new(&b->flow, &memory, &fo, now, NULL) == STG_OK);
    for (uint32_t lane = 0; lane < 2; lane++)
        CHECK(stg_flow_add_lane(b->flow, lane, &o, now, NULL) == STG_OK);
    stg_flow_start(b->flow, now);
    CHECK(stg_flow_assign(b->flow, &g, now, NULL) == STG_OK);
    run(b);
    CHECK(look(b, 1).is_catching_up);
    CHECK_U64(b->catch_up.read.from, 5);
}

static void catch_up(bare *b, uint32_t partition, uint64_t assignment,
                     const stg_record *r, size_t count, uint64_t next)
{
    stg_flow_messages(b->flow, true, partition, assignment, r, count, next,
                      now);
    run(b);
}

/* Where the log has nothing up to the window, that comes next. */
TEST(bare, joins_the_window_where_there_is_nothing_before_it)
{
    bare b;

    begin_behind(&b);
    catch_up(&b, 1, 0, NULL, 0, 50);  // another partition's
    catch_up(&b, 0, 99, NULL, 0, 50); // another assignment's
    CHECK_U64(look(&b, 1).next, 5);
    catch_up(&b, 0, 0, NULL, 0, 50); // nothing up to there
    CHECK_U64(look(&b, 1).next, 50);
    CHECK(look(&b, 1).is_catching_up);
    catch_up(&b, 0, b.catch_up.read.assignment, NULL, 0, 50);
    CHECK(!look(&b, 1).is_catching_up);
    CHECK_U64(look(&b, 1).next, 100);
    stg_flow_free(b.flow);
}

/* It reads no further than the main reader has. */
TEST(bare, catches_up_to_the_main_reader)
{
    static const stg_record records[] = {{.position = 7}, {.position = 100}};
    bare b;

    begin_behind(&b);
    catch_up(&b, 0, 0, records, 2, 101);
    CHECK_U64(b.start_count, 1);
    CHECK_U64(look(&b, 1).next, 100);
    CHECK_U64(look(&b, 0).next, 100);
    stg_flow_free(b.flow);
}

/* A message may be larger than the lane's share of memory; the next one then waits. */
TEST(bare, catches_up_within_its_share_of_memory)
{
    static const char large[300000];
    const stg_record r = {.bytes = large, .size = sizeof large};
    stg_record records[] = {r, r, r};
    const stg_cursor cursors[] = {{.lane = 0, .base = 100},
                                  {.lane = 1, .base = 5}};
    stg_lane_options o;
    bare b;

    for (uint64_t i = 0; i < 3; i++)
        records[i].position = 7 + i;
    o = prepare_small(&b, ONCE);
    add_lane(&b, 0, &o);
    add_lane(&b, 1, &o);
    stg_flow_start(b.flow, now);
    assign(&b, 0, cursors, 2);
    run(&b);
    CHECK_U64(b.catch_up.read.from, 5);
    stg_flow_messages(b.flow, true, 0, 0, records, 3, 50, now);
    CHECK_U64(look(&b, 1).waiting, 1);
    CHECK_U64(look(&b, 1).next, 8);
    stg_flow_free(b.flow);
}

/* The lowest partition first, whichever lane was behind first. */
TEST(bare, catches_up_in_the_lowest_partition_first)
{
    const stg_cursor in_1[] = {{.lane = 1, .partition = 1, .base = 5},
                               {.lane = 2, .partition = 1, .base = 100}};
    const stg_cursor in_0[] = {{.lane = 0, .base = 5},
                               {.lane = 2, .base = 100}};
    bare b;
    stg_lane_options o = prepare(&b, ONCE);

    o.is_from_earliest = false;
    for (uint32_t lane = 0; lane < 3; lane++)
        add_lane(&b, lane, &o);
    stg_flow_start(b.flow, now);
    assign(&b, 1, in_1, 2);
    assign(&b, 0, in_0, 2);
    run(&b);
    CHECK_U64(b.catch_up.partition, 0);
    catch_up(&b, 0, b.catch_up.read.assignment, NULL, 0, 50);
    CHECK_U64(b.catch_up.partition, 1);
    stg_flow_free(b.flow);
}

/* A lane that sheds takes what was read, and asks for nothing. One that joins behind
 * it has nothing to take: more is read. */
TEST(bare, reads_for_a_lane_that_joins_where_another_sheds)
{
    static const char large[200000];
    const stg_end end = {.outcome = stg_answered(503)};
    stg_lane_options o;
    stg_action a;
    bare b;

    o = prepare_small(&b, ONCE " breaker=1:1h-1h");
    begin_with(&b, &o);
    read_one(&b, 1, (stg_record){.size = 0});
    end_one(&b, 0, &end);
    CHECK_U64(b.tells[STG_TELL_SHEDDING], 1);
    read_of(&b, 0, 2, (stg_record){.bytes = large, .size = sizeof large});
    CHECK(!stg_flow_next_start(b.flow, &a, now));
    CHECK_U64(look(&b, 0).next, 3);
    o.is_from_earliest = false;
    add_lane(&b, 1, &o);
    CHECK_U64(look(&b, 1).next, 3);
    b.read_count = 0;
    run(&b);
    CHECK_U64(b.read_count, 1);
    stg_flow_free(b.flow);
}

/* What is lost before anything was read is one gap, however often it grows. */
TEST(bare, counts_once_what_is_lost_bit_by_bit)
{
    stg_lane_view view;
    bare b;

    begin(&b, ONCE);
    stg_flow_expired(b.flow, 0, 50, now);
    stg_flow_expired(b.flow, 0, 60, now);
    stg_flow_expired(b.flow, 0, 60, now);
    run(&b);
    CHECK(stg_flow_view_lane(b.flow, 0, &view, now) == STG_OK);
    CHECK_U64(view.dead, 59);
    CHECK_U64(look(&b, 0).base, 60);
    read_one(&b, 70, (stg_record){.size = 0});
    CHECK_U64(b.start_count, 1);
    CHECK_U64(look(&b, 0).base, 70);
    stg_flow_free(b.flow);
}

/* What was settled before a restart is not lost. */
TEST(bare, counts_as_lost_what_was_not_settled)
{
    static const stg_positions settled[] = {{7, 7}, {9, 9}};
    const stg_cursor c = {.base = 5,
                          .routed = 2,
                          .delivered = 2,
                          .settled = settled,
                          .settled_count = 2};
    stg_lane_options o;
    bare b;

    o = prepare(&b, ONCE);
    add_lane(&b, 0, &o);
    stg_flow_start(b.flow, now);
    assign(&b, 0, &c, 1);
    run(&b);
    for (uint64_t begin = 7; begin <= 10; begin++) {
        static const uint64_t lost[] = {2, 2, 3, 3};

        stg_flow_expired(b.flow, 0, begin, now);
        run(&b);
        CHECK_U64(b.lost, lost[begin - 7]);
        CHECK_U64(look_at(&b, 0).dead, lost[begin - 7]);
        CHECK_U64(look(&b, 0).base, begin);
    }
    stg_flow_free(b.flow);
}

/* Nobody has asked for it. */
TEST(bare, takes_nothing_unasked)
{
    bare b;

    for (int is_merged = 0; is_merged < 2; is_merged++) {
        stg_assignment g = {.partition = 1, .begin = 1, .is_merged = is_merged};

        begin(&b, ONCE);
        CHECK_INT(stg_flow_assign(b.flow, &g, now, NULL), STG_OK);
        read_of(&b, 1, 1, (stg_record){.size = 0});
        run(&b);
        CHECK_U64(b.start_count, 0);
        read_of(&b, 1, 2, (stg_record){.size = 0});
        if (is_merged)
            stg_flow_read_end(b.flow, now);
        read_of(&b, 1, 3, (stg_record){.size = 0});
        run(&b);
        CHECK_U64(b.start_count, 1);
        CHECK_U64(b.positions[0], 2);
        stg_flow_free(b.flow);
    }
}

/* A lane that catches up has messages, though it has read none of them. */
TEST(bare, may_probe_with_what_it_has_not_read)
{
    static const stg_record records[] = {{.position = 7}};
    bare b;

    begin_behind(&b);
    CHECK(stg_policy_parse(&b.policy, ONCE " breaker=1:1h-1h", NULL) == STG_OK);
    catch_up(&b, 0, 0, records, 1, 50);
    CHECK_U64(b.start_count, 1);
    end_one(&b, 0, &(stg_end){.outcome = stg_answered(503)});
    CHECK(look(&b, 1).is_catching_up);
    CHECK_U64(look(&b, 1).waiting, 0);
    CHECK(stg_flow_probe(b.flow, 1, now));
    CHECK(!stg_flow_probe(b.flow, 0, now));
    stg_flow_free(b.flow);
}

/* Only its rows were here, before the start: then it is assigned, whole. */
TEST(bare, is_assigned_after_its_rows)
{
    stg_flow_options fo = stg_flow_options_default();
    stg_assignment g = {.begin = 1, .is_rows_only = true};
    stg_partition_view view;
    bare b = {.flow = NULL};

    CHECK(stg_flow_new(&b.flow, &memory, &fo, now, NULL) == STG_OK);
    CHECK_INT(stg_flow_assign(b.flow, &g, now, NULL), STG_OK);
    g.is_rows_only = false;
    CHECK_INT(stg_flow_assign(b.flow, &g, now, NULL), STG_OK);
    stg_flow_start(b.flow, now);
    run(&b);
    CHECK_INT(stg_flow_view_partition(b.flow, 0, &view), STG_OK);
    CHECK_INT(view.state, STG_PARTITION_ASSIGNED);
    stg_flow_stop(b.flow, now);
    run(&b);
    CHECK(b.is_stopped);
    run(&b); // once
    stg_flow_free(b.flow);
}

/* -- a lane that follows the partition no more ------------------------------ */

static bool follows_none(void *ctx, uint32_t partition)
{
    (void)ctx;
    (void)partition;
    return false;
}

/* Where it stands when all below 11 was read; it stood at 5 before a restart, with 7
 * and 9 settled, and so many rows. */
static uint64_t pass_to(stg_order order, uint64_t rows)
{
    static const stg_positions settled[] = {{7, 7}, {9, 9}};
    stg_flow_options fo = stg_flow_options_default();
    stg_cursor c = {.base = 5,
                    .routed = 2 + rows,
                    .delivered = 2,
                    .parked = rows,
                    .is_ordered = order != STG_ORDER_NONE,
                    .settled = settled,
                    .settled_count = 2};
    stg_lane_cursor_view view;
    stg_lane_options o;
    bare b = {.flow = NULL};

    b.policy = stg_policy_default();
    o = stg_lane_options_default(&b.policy);
    o.order = order;
    o.follows = follows_none;
    CHECK(stg_flow_new(&b.flow, &memory, &fo, now, NULL) == STG_OK);
    CHECK(stg_flow_assign(b.flow, &(stg_assignment){.begin = 1}, now, NULL) ==
          STG_OK);
    CHECK(stg_flow_add_lane(b.flow, 0, &o, now, NULL) == STG_OK);
    CHECK(stg_flow_restore(b.flow, &c) == STG_OK);
    stg_flow_start(b.flow, now);
    run(&b);
    for (uint64_t position = 5; position <= 10; position++)
        read_one(&b, position, (stg_record){.size = 0});
    CHECK_U64(b.start_count, 0);
    CHECK_INT(stg_flow_view_cursor(b.flow, 0, 0, &view), STG_OK);
    stg_flow_free(b.flow);
    return view.base;
}

/* It passes all that is read; in an ordered lane not before its rows have come. */
TEST(bare, passes_what_a_lane_follows_no_more)
{
    CHECK_U64(pass_to(STG_ORDER_NONE, 0), 11);
    CHECK_U64(pass_to(STG_ORDER_NONE, 1), 11);
    CHECK_U64(pass_to(STG_ORDER_KEY, 0), 11);
    CHECK_U64(pass_to(STG_ORDER_KEY, 1), 5);
}

/* Nor before rows that were parked in another order. */
TEST(bare, passes_nothing_before_rows_of_another_order)
{
    const stg_cursor c = {
        .base = 5, .routed = 1, .parked = 1, .is_ordered = true};
    stg_lane_options o;
    bare b;

    o = prepare(&b, ONCE);
    o.follows = follows_none;
    add_lane(&b, 0, &o);
    stg_flow_start(b.flow, now);
    assign(&b, 0, &c, 1);
    run(&b);
    read_one(&b, 5, (stg_record){.size = 0});
    CHECK_U64(look(&b, 0).base, 5);
    CHECK_U64(look(&b, 0).next, 5);
    stg_flow_free(b.flow);
}

/* What it passes above what is under way is settled, whether it was so before a
 * restart or is not the lane's; no memory is needed for that. */
TEST(bare, notes_what_it_passes_as_settled)
{
    static const stg_positions settled[] = {{7, 14}};
    const stg_cursor c = {.base = 5,
                          .routed = 8,
                          .delivered = 8,
                          .settled = settled,
                          .settled_count = 1};
    stg_lane_options o;
    bare b;

    o = prepare(&b, ONCE);
    add_lane(&b, 0, &o);
    stg_flow_start(b.flow, now);
    assign(&b, 0, &c, 1);
    run(&b);
    read_one(&b, 5, (stg_record){.size = 0});
    CHECK_U64(b.start_count, 1);
    stg_flow_pause(b.flow, 0, true, now);
    for (uint64_t position = 6; position <= 15; position++)
        read_one(&b, position, (stg_record){.size = 0});
    o.is_paused = true;
    o.follows = follows_none;
    allocations_left = 0;
    CHECK_INT(stg_flow_change_lane(b.flow, 0, &o, now, NULL), STG_OK);
    CHECK_U64(look(&b, 0).next, 16);
    allocations_left = SIZE_MAX;
    stg_flow_stop(b.flow, now);
    run(&b);
    CHECK_U64(b.cursors[0].base, 5);
    CHECK_U64(b.cursors[0].settled_count, 1);
    CHECK_U64(b.settled[0].first, 6);
    CHECK_U64(b.settled[0].last, 15);
    end_one(&b, 0, &(stg_end){.outcome = stg_ok()});
    CHECK_U64(look(&b, 0).base, 16);
    stg_flow_free(b.flow);
}

/* -- without memory -------------------------------------------------------- */

/* Says whether it could be done. What failed has changed nothing, and can be done
 * when there is memory. */
static bool set_up(stg_flow *f, const stg_lane_options *o)
{
    static const stg_positions settled[] = {{7, 7}, {9, 9}};
    stg_lane_options through_proxy = *o;
    stg_cursor c = {.lane = 0,
                    .base = 5,
                    .routed = 2,
                    .delivered = 2,
                    .settled = settled,
                    .settled_count = 2};
    stg_assignment first = {.begin = 1}, second = {.partition = 1,
                                                   .begin = 1,
                                                   .cursors = &c,
                                                   .cursor_count = 1};
    stg_status status[6];
    bool is_done = true;

    through_proxy.proxy = 7;
    status[0] = stg_flow_assign(f, &first, now, NULL);
    status[1] = stg_flow_add_lane(f, 0, &through_proxy, now, NULL);
    status[2] = stg_flow_add_lane(f, 300, o, now, NULL);
    status[3] = stg_flow_restore(f, &c);
    c.partition = 1;
    status[4] = stg_flow_assign(f, &second, now, NULL);
    through_proxy.proxy = 8;
    status[5] = stg_flow_change_lane(f, 0, &through_proxy, now, NULL);
    for (size_t i = 0; i < 6; i++)
        is_done &= status[i] == STG_OK;
    if (is_done)
        return allocations_left > 0;
    allocations_left = SIZE_MAX;
    c.partition = 0;
    (void)stg_flow_assign(f, &first, now, NULL); // those that are there stay
    (void)stg_flow_add_lane(f, 0, o, now, NULL);
    (void)stg_flow_add_lane(f, 300, o, now, NULL);
    (void)stg_flow_restore(f, &c);
    c.partition = 1;
    (void)stg_flow_assign(f, &second, now, NULL);
    return false;
}

TEST(bare, can_be_set_up_when_there_is_memory_again)
{
    stg_policy policy = stg_policy_default();
    stg_lane_options o = stg_lane_options_default(&policy);
    bool is_done = false;

    for (size_t n = 0; n < 100 && !is_done; n++) {
        stg_flow_options fo = stg_flow_options_default();
        stg_lane_cursor_view view;
        stg_flow *f;

        allocations_left = n;
        if (stg_flow_new(&f, &memory, &fo, now, NULL) != STG_OK)
            continue;
        is_done = set_up(f, &o);
        allocations_left = SIZE_MAX;
        stg_flow_start(f, now);
        for (uint32_t p = 0; p < 2; p++) {
            CHECK_INT(stg_flow_view_cursor(f, 0, p, &view), STG_OK);
            CHECK_FROM(n, view.base == 5);
            CHECK_INT(stg_flow_view_cursor(f, 300, p, &view), STG_OK);
        }
        stg_flow_free(f);
        CHECK_U64(allocations_held, 0);
    }
    CHECK(is_done);
}

/* A lane that is dropped leaves nothing, however far it came. */
TEST(bare, makes_lanes_that_are_dropped_or_placed)
{
    bare b;
    stg_lane_options o = prepare(&b, ONCE), wrong = o;
    stg_lane *made = NULL;
    stg_error err;
    size_t held;

    add_lane(&b, 0, &o);
    o.proxy = 7;
    held = allocations_held;
    for (size_t n = 0; made == NULL; n++) {
        CHECK(n < 10);
        allocations_left = n;
        if (stg_flow_make_lane(b.flow, &o, now, &made, &err) != STG_OK)
            CHECK_U64(allocations_held, held);
    }
    allocations_left = SIZE_MAX;
    stg_flow_drop_lane(b.flow, made);
    stg_flow_drop_lane(b.flow, NULL);
    CHECK_U64(allocations_held, held);

    wrong.parked_max = 0;
    CHECK_INT(stg_flow_make_lane(b.flow, &wrong, now, &made, &err),
              STG_INVALID);
    CHECK_INT(stg_lane_options_check(&wrong, &err), STG_INVALID);
    CHECK_INT(stg_lane_options_check(&o, &err), STG_OK);
    CHECK_INT(stg_flow_fit_lane(b.flow, 0, &err), STG_INVALID);
    CHECK_INT(stg_flow_fit_lane(b.flow, 1000000, &err), STG_INVALID);
    allocations_left = 0;
    CHECK_INT(stg_flow_fit_lane(b.flow, 300, &err), STG_IO);
    allocations_left = SIZE_MAX;

    CHECK_INT(stg_flow_make_lane(b.flow, &o, now, &made, &err), STG_OK);
    CHECK_INT(stg_flow_fit_lane(b.flow, 300, &err), STG_OK);
    allocations_left = 0;
    stg_flow_place_lane(b.flow, made, 300, &o);
    allocations_left = SIZE_MAX;
    CHECK_INT(stg_flow_fit_lane(b.flow, 300, &err), STG_INVALID);
    stg_flow_free(b.flow);
    CHECK_U64(allocations_held, 0);
}
