/* Parked rows that a lane has from the store: where they stand, and what there is no
 * memory for. */
#include "flow/state.h"
#include "tests/flow/bare.h"

/* In a store: after so many attempts, the last of which was answered 503. */
static stg_parked_row row_of(uint64_t position, uint32_t attempts)
{
    return (stg_parked_row){
        .record = {.position = position, .key = position},
        .progress = {.attempts = attempts, .last = STG_S},
        .failure = {.outcome = stg_answered(503), .detail = ""},
        .has_failure = true};
}

static stg_record message(uint64_t position)
{
    return (stg_record){.key = position, .bytes = "x", .size = 1};
}

/* With so many rows in the order of the lane. */
static void begin_with_rows(bare *b, const stg_lane_options *options,
                            uint64_t base, uint64_t rows)
{
    stg_cursor c = {.base = base,
                    .routed = rows,
                    .parked = rows,
                    .is_ordered = options->order != STG_ORDER_NONE};

    add_lane(b, 0, options);
    stg_flow_start(b->flow, now);
    assign(b, 0, &c, 1);
    run(b);
    CHECK_U64(b->fetch_count, rows > 0);
}

/* What came into the ring is due at its next turn. */
static void let_turn(bare *b)
{
    b->later += STG_S / 10;
    run(b);
}

static void bring(bare *b, const stg_parked_row *rows, size_t count)
{
    stg_flow_rows(b->flow, 0, false, rows, count, true, now + b->later);
    run(b);
}

/* One that was tried more is no probe while it waits behind another. */
TEST(rows, are_no_probes_while_they_wait_for_others)
{
    const stg_parked_row rows[] = {row_of(5, 1), row_of(6, 3)};
    stg_lane_options o;
    bare b;

    o = prepare_small(&b, OFTEN " breaker=1:1h-1h");
    o.order = STG_ORDER_STRICT;
    o.shed_after = STG_NEVER;
    begin_with_rows(&b, &o, 5, 2);
    bring(&b, rows, 2);
    read_one(&b, 5, message(5));
    read_one(&b, 6, message(6));
    let_turn(&b);
    CHECK_U64(b.start_count, 1);
    CHECK_U64(b.positions[0], 5);
    end_one(&b, 0, &(stg_end){.outcome = stg_answered(503)});
    b.later = 2 * STG_S;
    CHECK(stg_flow_probe(b.flow, 0, now + b.later));
    run(&b);
    CHECK_U64(b.start_count, 2);
    CHECK_U64(b.positions[1], 5);
    stg_flow_free(b.flow);
}

/* The log's first message has the position 0: nothing is below but what is due
 * earlier. */
TEST(rows, leave_memory_also_at_the_first_position)
{
    static char bytes[(1 << 20) - 100];
    const stg_record large = {.bytes = bytes, .size = sizeof bytes};
    stg_parked_row row = row_of(0, 1);
    stg_lane_options o;
    bare b;

    o = prepare_small(&b, OFTEN);
    CHECK_INT(stg_flow_assign(b.flow, &(stg_assignment){.begin = 0}, now, NULL),
              STG_OK);
    add_lane(&b, 0, &o);
    stg_flow_start(b.flow, now);
    run(&b);
    read_one(&b, 0, large);
    CHECK_U64(b.start_count, 1);
    CHECK_U64(b.read_count, 1);
    end_one(&b, 0, &(stg_end){.outcome = stg_answered(503)});
    CHECK_U64(b.read_count, 2); // there is room again
    CHECK_U64(look(&b, 0).parked, 1);
    b.later = STG_S;
    run(&b);
    CHECK_U64(b.fetch_count, 1);
    CHECK_U64(b.fetch.fetch.after.due_at, STG_S - 1);
    CHECK_U64(b.fetch.fetch.after.position, UINT64_MAX);
    row.due_at = STG_S;
    row.wait = STG_S;
    bring(&b, &row, 1);
    CHECK_U64(b.start_count, 2);
    CHECK_U64(b.positions[1], 0);
    stg_flow_free(b.flow);
}

/* The probe of an ordered lane that is kept for the next one leaves with the others,
 * and they come again, when there is room. */
TEST(rows, of_an_order_leave_memory_with_the_kept_probe)
{
    static char bytes[(1 << 20) - 100];
    const stg_cursor cursors[] = {
        {.base = 9, .routed = 1, .parked = 1, .is_ordered = true},
        {.lane = 1, .base = 9}};
    const stg_parked_row row = row_of(5, 1); // below the base: in no ring
    stg_lane_options o;
    bare b;

    o = prepare_small(&b, OFTEN " breaker=1:1h-1h");
    o.shed_after = STG_NEVER;
    add_lane(&b, 1, &o);
    o.order = STG_ORDER_KEY;
    add_lane(&b, 0, &o);
    stg_flow_start(b.flow, now);
    assign(&b, 0, cursors, 2);
    run(&b);
    bring(&b, &row, 1);
    for (size_t i = 0; i < 2; i++) { // the second one is a probe
        CHECK_U64(b.start_count, i + 1);
        end_one(&b, i, &(stg_end){.outcome = stg_answered(503)});
        b.later += 2 * STG_S;
        CHECK(i > 0 || stg_flow_probe(b.flow, 0, now + b.later));
        run(&b);
    }
    read_one(&b, 9, (stg_record){.bytes = bytes, .size = sizeof bytes});
    CHECK_U64(b.start_count, 3); // the other lane's, which takes all the memory
    CHECK_U64(b.fetch_count, 1);
    end_one(&b, 2, &(stg_end){.outcome = stg_ok()});
    b.later += 2 * STG_S;
    run(&b);
    CHECK_U64(b.fetch_count, 2);
    stg_flow_free(b.flow);
}

/* A row that has its place in the lane's order keeps it when others do not fit. */
TEST(rows, stay_in_their_order_where_others_do_not_fit)
{
    static char bytes[1 << 20];
    const stg_cursor c = {.partition = 1,
                          .base = 9,
                          .routed = 1,
                          .parked = 1,
                          .is_ordered = true};
    stg_parked_row row = row_of(9, 1);
    stg_lane_options o;
    bare b;

    o = prepare_small(&b, OFTEN);
    o.order = STG_ORDER_KEY;
    begin_with_rows(&b, &o, 5, 0);
    read_one(&b, 5, message(5));
    end_one(&b, 0, &(stg_end){.outcome = stg_answered(503)});
    CHECK_U64(look(&b, 0).parked, 1);
    assign(&b, 1, &c, 1);
    run(&b);
    CHECK_U64(b.fetch_count, 1);
    row.partition = 1;
    row.record.bytes = bytes;
    row.record.size = sizeof bytes;
    bring(&b, &row, 1);
    b.later = 2 * STG_S;
    run(&b);
    CHECK_U64(b.fetch_count, 2);
    CHECK_U64(b.start_count, 1); // none before all are here
    row.record.size = 1;
    bring(&b, &row, 1);
    read_of(&b, 1, 9, message(9));
    run(&b);
    let_turn(&b);
    CHECK_U64(b.start_count, 3);
    CHECK_U64(b.positions[1] + b.positions[2], 5 + 9);
    stg_flow_free(b.flow);
}

/* A lane with order key and two rows, 8 and 9, due at once or after so long; what is
 * before them is under way. */
static void begin_before_rows(bare *b, stg_ns due_at)
{
    stg_parked_row rows[] = {row_of(8, 1), row_of(9, 1)};
    stg_lane_options o = prepare_small(b, OFTEN);

    o.order = STG_ORDER_KEY;
    o.in_flight_max = 16;
    begin_with_rows(b, &o, 1, 2);
    for (size_t i = 0; i < 2; i++)
        rows[i].due_at = rows[i].wait = due_at;
    bring(b, rows, 2);
    for (uint64_t position = 1; position <= 7; position++)
        read_one(b, position, message(position));
    CHECK_U64(b->start_count, 7);
}

/* Rows below what was read, which no message follows, come into the ring when there
 * is memory for it. */
TEST(rows, take_memory_at_the_end_of_what_was_read)
{
    bare b;

    begin_before_rows(&b, 0);
    allocations_left = 0;
    stg_flow_messages(b.flow, false, 0, 0, NULL, 0, 10, now);
    run(&b);
    allocations_left = SIZE_MAX;
    for (int i = 0; i < 3; i++)
        let_turn(&b);
    CHECK_U64(b.start_count, 9);
    CHECK_U64(b.positions[7] + b.positions[8], 8 + 9);
    stg_flow_free(b.flow);
}

/* Rows come into the ring as the lane comes to the message after them, and the message
 * itself: it is taken when there is memory for all. */
TEST(rows, take_memory_before_the_message_after_them)
{
    for (int is_shed = 0; is_shed < 2; is_shed++) {
        bare b;

        begin_before_rows(&b, STG_HOUR);
        if (is_shed) {
            stg_flow_pause(b.flow, 0, true, now);
            stg_flow_retain(b.flow, 0, 100, now);
            run(&b);
        }
        allocations_left = 1; // of the message itself
        read_of(&b, 0, 10, message(10));
        run(&b);
        allocations_left = SIZE_MAX;
        CHECK_U64(b.start_count, 7);
        CHECK_U64(look_at(&b, 0).dead, 0);
        CHECK_U64(look(&b, 0).next, 10);
        b.later = STG_S;
        stg_flow_pause(b.flow, 0, is_shed, now + b.later);
        run(&b);
        CHECK_U64(look(&b, 0).next, 11);
        CHECK_U64(look_at(&b, 0).dead, (uint64_t)is_shed);
        CHECK_U64(b.start_count, is_shed ? 7 : 8);
        stg_flow_free(b.flow);
    }
}

/* -- what a lane does not follow -------------------------------------------- */

static bool follows_none(void *ctx, uint32_t partition)
{
    (void)ctx;
    (void)partition;
    return false;
}

static bool accepts_none(void *ctx, const stg_message *m)
{
    (void)ctx;
    (void)m;
    return false;
}

/* A lane that has rows there goes on by them, but does not lead the reader: another
 * is to have what was read. */
TEST(rows, do_not_make_a_lane_lead_that_follows_no_more)
{
    stg_parked_row row = row_of(5, 1);
    stg_lane_options o, other;
    bare b;

    o = prepare_small(&b, OFTEN);
    other = o;
    o.order = STG_ORDER_KEY;
    o.follows = follows_none;
    o.accepts = accepts_none;
    begin_with_rows(&b, &o, 5, 1);
    other.is_paused = true;
    add_lane(&b, 1, &other);
    row.due_at = row.wait = STG_HOUR;
    bring(&b, &row, 1);
    for (uint64_t position = 5; position <= 7; position++)
        read_one(&b, position, message(position));
    let_turn(&b);
    CHECK_U64(look(&b, 0).next, 8);
    CHECK_U64(stg_flow_partition(b.flow, 0)->ahead, 3);
    stg_flow_free(b.flow);
}

static bool follows_own(void *ctx, uint32_t partition)
{
    return partition == *(const uint32_t *)ctx;
}

/* Of partitions that are read together one whose lane stands still leaves memory, for
 * others wait; one that is read alone is in nobody's way. */
TEST(rows, make_way_in_partitions_that_are_read_together)
{
    static char bytes[50000];
    static uint32_t numbers[] = {2, 1};
    stg_assignment g = {.begin = 1};
    stg_partition_view view;
    stg_lane_options o;
    size_t reads;
    bare b;

    o = prepare_small(&b, OFTEN);
    o.follows = follows_own;
    o.ctx = &numbers[0];
    begin_with_rows(&b, &o, 1, 0);
    o.ctx = &numbers[1];
    o.is_paused = true;
    add_lane(&b, 1, &o);
    g.is_merged = true;
    for (g.partition = 1; g.partition <= 2; g.partition++)
        CHECK_INT(stg_flow_assign(b.flow, &g, now, NULL), STG_OK);
    run(&b);
    for (uint64_t position = 1; position <= 3; position++)
        read_of(&b, 1, position,
                (stg_record){.bytes = bytes, .size = sizeof bytes});
    reads = b.read_count;
    stg_flow_read_end(b.flow, now);
    run(&b);
    CHECK_U64(b.read_count, reads + 1);
    CHECK_INT(stg_flow_view_partition(b.flow, 1, &view), STG_OK);
    CHECK_U64(view.window, 2);
    stg_flow_free(b.flow);
}
