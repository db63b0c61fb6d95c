/* Bulk rows, message by message: what is in one, and what begins another. */
#include "tests/flow/bare.h"

static const stg_end fails = {.outcome = {.fault = STG_FAULT_5XX,
                                          .code_kind = STG_CODE_STATUS,
                                          .code = 503}};

/* What is gated is not shed: it is our own fault that it waits. */
TEST(bulk, has_nothing_of_a_lane_that_is_gated)
{
    bare b;

    begin(&b, ONCE " breaker=1:1h-1h");
    read_one(&b, 1, (stg_record){.size = 0});
    end_one(&b, 0, &fails);
    read_one(&b, 2, (stg_record){.size = 0});
    CHECK_U64(look_at(&b, 0).dead, 2);
    stg_flow_gate(b.flow, 0, true, now);
    read_one(&b, 3, (stg_record){.size = 0});
    CHECK_U64(look_at(&b, 0).dead, 2);
    stg_flow_gate(b.flow, 0, false, now);
    run(&b);
    CHECK_U64(look_at(&b, 0).dead, 3);
    stg_flow_free(b.flow);
}

/* An attempt that is put back stands below what was shed meanwhile: it has a row of
 * its own, since the first position is a row's name. */
TEST(bulk, has_nothing_below_its_first_position)
{
    stg_lane_options o;
    bare b;

    o = prepare(&b, ONCE);
    o.in_flight_max = 1;
    begin_with(&b, &o);
    read_one(&b, 1, (stg_record){.size = 0});
    read_of(&b, 0, 2, (stg_record){.size = 0});
    run(&b);
    read_of(&b, 0, 3, (stg_record){.size = 0});
    run(&b);
    CHECK_U64(b.start_count, 1);
    stg_flow_retain(b.flow, 0, 100, now);
    run(&b);
    CHECK_INT(b.changes[0].kind, STG_CHANGE_RANGE);
    CHECK_U64(b.changes[0].position, 2);
    CHECK_U64(b.changes[0].count, 2);
    end_one(&b, 0,
            &(stg_end){.outcome = stg_answered(401), .is_unauthorized = true});
    CHECK_INT(b.changes[0].kind, STG_CHANGE_RANGE);
    CHECK_U64(b.changes[0].position, 1);
    CHECK_U64(b.changes[0].last_position, 1);
    CHECK_U64(b.changes[0].count, 1);
    CHECK_U64(look_at(&b, 0).dead, 3);
    stg_flow_free(b.flow);
}

/* What outlived the retention while the breaker was open a second time was lost for
 * another cause. */
TEST(bulk, has_one_opening_of_the_breaker)
{
    stg_lane_options o;
    bare b;

    o = prepare(&b, OFTEN " breaker=1:1h-1h");
    o.shed_after = STG_NEVER;
    begin_with(&b, &o);
    read_one(&b, 1, (stg_record){.size = 0});
    read_one(&b, 2, (stg_record){.size = 0});
    end_one(&b, 0, &fails);
    end_one(&b, 1, &fails);
    read_one(&b, 3, (stg_record){.size = 0});
    stg_flow_retain(b.flow, 0, 4, now);
    run(&b);
    CHECK_INT(b.changes[0].kind, STG_CHANGE_RANGE);
    CHECK_INT(b.changes[0].reason, STG_SHED_DOWN);
    CHECK_U64(b.changes[0].position, 3);
    b.later = 2 * STG_S;
    CHECK(stg_flow_probe(b.flow, 0, now + b.later));
    run(&b);
    end_one(&b, 2, &(stg_end){.outcome = stg_ok()});
    CHECK_U64(b.start_count, 4);
    end_one(&b, 3, &fails);
    CHECK_U64(look_at(&b, 0).openings, 2);
    read_one(&b, 4, (stg_record){.size = 0});
    stg_flow_retain(b.flow, 0, 5, now + b.later);
    run(&b);
    CHECK_INT(b.changes[0].kind, STG_CHANGE_RANGE);
    CHECK_U64(b.changes[0].position, 4);
    CHECK_U64(b.changes[0].count, 1);
    stg_flow_free(b.flow);
}

/* -- what sheds, and what is read ------------------------------------------- */

static bool follows_none(void *ctx, uint32_t partition)
{
    (void)ctx;
    (void)partition;
    return false;
}

/* A lane that sheds leads the reader, where no other has to come along: not one that
 * is paused, nor one that follows nothing. */
TEST(bulk, is_filled_though_other_lanes_stand_still)
{
    static char bytes[50000];
    const stg_record large = {.bytes = bytes, .size = sizeof bytes};
    stg_lane_options o, other;
    size_t reads;
    bare b;

    o = prepare_small(&b, ONCE " breaker=1:1h-1h");
    begin_with(&b, &o);
    read_one(&b, 1, (stg_record){.size = 0});
    end_one(&b, 0, &fails);
    other = o;
    other.is_paused = true;
    add_lane(&b, 1, &other);
    other = o;
    other.follows = follows_none;
    add_lane(&b, 2, &other);
    run(&b);
    reads = b.read_count;
    for (uint64_t position = 2; position <= 11; position++)
        read_one(&b, position, large);
    CHECK_U64(b.read_count, reads + 10);
    CHECK_U64(look_at(&b, 0).dead, 11);
    stg_flow_free(b.flow);
}
