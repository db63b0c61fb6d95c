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
