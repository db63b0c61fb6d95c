/* Tests what operators do to lanes, message by message. */
#include "tests/flow/bare.h"

/* With the same one it goes on. */
TEST(lanes, begin_a_rate_anew_with_another_burst)
{
    stg_lane_options o;
    bare b;

    o = prepare(&b, ONCE " rate=1/s");
    o.burst = 1;
    begin_with(&b, &o);
    for (uint64_t position = 1; position <= 4; position++)
        read_one(&b, position, (stg_record){.size = 0});
    CHECK_U64(b.start_count, 1);
    CHECK_INT(stg_flow_change_lane(b.flow, 0, &o, now, NULL), STG_OK);
    run(&b);
    CHECK_U64(b.start_count, 1);
    o.burst = 2;
    CHECK_INT(stg_flow_change_lane(b.flow, 0, &o, now, NULL), STG_OK);
    run(&b);
    CHECK_U64(b.start_count, 3);
    stg_flow_free(b.flow);
}

/* What is read for a lane that may not send any more is read again. */
TEST(lanes, take_nothing_of_what_is_read_while_they_stand_still)
{
    static const stg_record records[] = {{.position = 7}, {.position = 8}};
    const stg_cursor cursors[] = {{.lane = 0, .base = 100},
                                  {.lane = 1, .base = 5}};

    for (int variant = 0; variant < 4; variant++) {
        stg_lane_options o;
        bare b;

        o = prepare(&b, ONCE);
        add_lane(&b, 0, &o);
        add_lane(&b, 1, &o);
        stg_flow_start(b.flow, now);
        assign(&b, 0, cursors, 2);
        run(&b);
        stg_flow_messages(b.flow, true, 0, 0, records, 1, 8, now);
        run(&b);
        CHECK_U64(b.start_count, 1);
        CHECK_U64(b.catch_up.read.from, 8);
        if (variant == 1)
            stg_flow_pause(b.flow, 1, true, now);
        else if (variant == 2)
            stg_flow_gate(b.flow, 1, true, now);
        else if (variant == 3)
            stg_flow_remove(b.flow, 1, now);
        stg_flow_messages(b.flow, true, 0, 0, &records[1], 1, 9, now);
        run(&b);
        CHECK_U64(b.start_count, variant == 0 ? 2 : 1);
        CHECK_U64(look(&b, 1).next, variant == 0 ? 9 : 8);
        stg_flow_free(b.flow);
    }
}

/* The answers of `first` to the last one that has started come before flow is asked
 * again, as those of a slow target do. Returns how many have started by then. */
static size_t serve_together(bare *b, size_t first)
{
    for (size_t i = first, until = b->start_count; i < until; i++)
        (void)stg_flow_ended(b->flow, b->started[i],
                             &(stg_end){.outcome = stg_ok()}, now);
    run(b);
    return b->start_count;
}

static void begin_slow_start(bare *b, uint64_t messages)
{
    stg_lane_options o = prepare(b, ONCE);

    o.is_limit_fixed = false;
    o.in_flight_max = 100;
    begin_with(b, &o);
    for (uint64_t position = 1; position <= messages; position++)
        read_one(b, position, (stg_record){.size = 0});
    CHECK_U64(b->start_count, 1);
}

/* A round trip is of all that were under way, however many answers come at once. */
TEST(lanes, double_what_is_under_way_by_answers_that_come_together)
{
    bare b;
    size_t first = 0;

    begin_slow_start(&b, 16);
    for (size_t expected = 3; expected <= 15; expected = 2 * expected + 1) {
        size_t until = b.start_count;

        CHECK_U64(serve_together(&b, first), expected);
        first = until;
    }
    stg_flow_free(b.flow);
}

/* The last of a backlog used it; a single message after them does not. */
TEST(lanes, allow_no_more_than_was_used)
{
    bare b;

    begin_slow_start(&b, 3);
    CHECK_U64(serve_together(&b, 0), 3);
    CHECK_U64(serve_together(&b, 1), 3);
    CHECK_U64(look_at(&b, 0).limit, 4);
    for (uint64_t position = 4; position <= 9; position++) {
        read_one(&b, position, (stg_record){.size = 0});
        CHECK_U64(serve_together(&b, position - 1), position);
        CHECK_U64(look_at(&b, 0).limit, 4);
    }
    stg_flow_free(b.flow);
}

/* Each allocation fails in its turn: the table of lanes has to grow, too. */
TEST(lanes, leave_nothing_behind_that_could_not_be_added)
{
    stg_status status = STG_NOT_FOUND;
    size_t left = 0;

    for (; status != STG_OK; left++) {
        bare b;
        stg_lane_options o = prepare(&b, ONCE);

        assign(&b, 0, NULL, 0);
        add_lane(&b, 0, &o);
        allocations_left = left;
        status = stg_flow_add_lane(b.flow, STG_SLICE, &o, now, NULL);
        allocations_left = SIZE_MAX;
        stg_flow_free(b.flow);
        CHECK_U64(allocations_held, 0);
    }
    CHECK(left > 4);
}

/* -- rows and cursors ------------------------------------------------------ */

/* A lane that is paused, or behind a gate, tries none of its rows: they stay where
 * they are. */
TEST(lanes, fetch_no_rows_that_they_may_not_try)
{
    const stg_cursor c = {.base = 5, .routed = 2, .parked = 2};

    for (int is_gated = 0; is_gated < 2; is_gated++) {
        bare b;
        stg_lane_options o = prepare(&b, OFTEN);

        o.is_paused = !is_gated;
        o.is_gated = is_gated;
        add_lane(&b, 0, &o);
        stg_flow_start(b.flow, now);
        assign(&b, 0, &c, 1);
        run(&b);
        CHECK_U64(b.fetch_count, 0);
        if (is_gated)
            stg_flow_gate(b.flow, 0, false, now);
        else
            stg_flow_pause(b.flow, 0, false, now);
        run(&b);
        CHECK_U64(b.fetch_count, 1);
        stg_flow_free(b.flow);
    }
}

/* A lane is written with those of the same row of the store, and no others. */
TEST(lanes, are_written_with_those_of_their_row_alone)
{
    bare b;
    stg_lane_options o = prepare(&b, ONCE);

    assign(&b, 0, NULL, 0);
    add_lane(&b, 0, &o);
    o.is_paused = true;
    add_lane(&b, 1, &o);
    add_lane(&b, STG_SLICE, &o);
    stg_flow_start(b.flow, now);
    run(&b);
    CHECK_U64(b.last_cursors, 3);
    read_one(&b, 1, (stg_record){.size = 0});
    b.later = STG_MIN;
    end_one(&b, 0, &(stg_end){.outcome = stg_ok()});
    CHECK_U64(b.last_cursors, 2);
    CHECK_U64(b.cursors[0].base, 2);
    CHECK_U64(b.cursors[1].lane, 1);
    stg_flow_free(b.flow);
}

/* Nobody knows since when: since its partition came, at least. */
TEST(lanes, are_behind_from_the_time_at_which_they_were_seen_to_be)
{
    const stg_cursor cursors[] = {{.lane = 0, .base = 100},
                                  {.lane = 1, .base = 5}};
    const stg_assignment g = {
        .begin = 1, .cursors = cursors, .cursor_count = 2};
    stg_ns since[2];

    for (uint64_t hours = 0; hours < 2; hours++) {
        bare b;
        stg_lane_options o = prepare(&b, ONCE);

        add_lane(&b, 0, &o);
        add_lane(&b, 1, &o);
        stg_flow_start(b.flow, now);
        CHECK_INT(stg_flow_assign(b.flow, &g, now + hours * STG_HOUR, NULL),
                  STG_OK);
        CHECK(look(&b, 1).is_catching_up);
        since[hours] = look(&b, 1).oldest_at;
        stg_flow_free(b.flow);
    }
    CHECK_U64(since[1] - since[0], STG_HOUR);
}
