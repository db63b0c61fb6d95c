/* What operators do to lanes, message by message. */
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

static bare begin_slow_start(uint64_t messages)
{
    stg_lane_options o;
    bare b;

    o = prepare(&b, ONCE);
    o.is_limit_fixed = false;
    o.in_flight_max = 100;
    begin_with(&b, &o);
    for (uint64_t position = 1; position <= messages; position++)
        read_one(&b, position, (stg_record){.size = 0});
    CHECK_U64(b.start_count, 1);
    return b;
}

/* A round trip is of all that were under way, however many answers come at once. */
TEST(lanes, double_what_is_under_way_by_answers_that_come_together)
{
    bare b = begin_slow_start(16);
    size_t first = 0;

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
    bare b = begin_slow_start(3);

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
