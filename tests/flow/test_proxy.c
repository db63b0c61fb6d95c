/* Lanes of one proxy that is away, attempt by attempt: who ends it, and who does not. */
#include "tests/flow/bare.h"

enum { PROXY = 7 };

static const stg_end away = {.outcome = {.fault = STG_FAULT_PROXY},
                             .dialed_at = 2 * STG_S};

/* Two lanes through it, each with one attempt under way. */
static void begin_proxy(bare *b)
{
    stg_lane_options o = prepare(b, OFTEN);

    o.proxy = PROXY;
    assign(b, 0, NULL, 0);
    add_lane(b, 0, &o);
    add_lane(b, 1, &o);
    stg_flow_start(b->flow, now);
    run(b);
    read_one(b, 1, (stg_record){.size = 0});
    CHECK_U64(b->start_count, 2);
    CHECK_U64(stg_flow_view_proxy(b->flow, PROXY), 0);
    b->later = STG_S;
}

static stg_end reached_at(stg_ns at)
{
    return (stg_end){.outcome = stg_answered(503), .dialed_at = at};
}

/* A dial of before says nothing of now. */
TEST(proxy, is_down_until_a_later_dial_has_ended_otherwise)
{
    for (int variant = 0; variant < 3; variant++) {
        stg_end end = reached_at(variant == 0 ? now : now + 2 * STG_S);
        bare b;

        if (variant == 1)
            end.outcome = stg_failed(STG_FAULT_CANCELLED);
        begin_proxy(&b);
        end_one(&b, b.starts[0].lane, &away);
        CHECK_U64(b.tells[STG_TELL_PROXY_DOWN], 1);
        CHECK_U64(stg_flow_view_proxy(b.flow, PROXY), 1);
        b.later = 3 * STG_S / 2;
        end_one(&b, 1, &end);
        CHECK_U64(b.tells[STG_TELL_PROXY_UP], variant == 2);
        CHECK_U64(stg_flow_view_proxy(b.flow, PROXY), variant == 2 ? 0 : 1);
        stg_flow_free(b.flow);
    }
}

/* Nor is it told where there is no memory for that. */
TEST(proxy, is_down_without_memory_to_tell_of_it)
{
    bare b;

    begin_proxy(&b);
    allocations_left = 0;
    (void)stg_flow_ended(b.flow, b.started[0], &away, now + b.later);
    allocations_left = SIZE_MAX;
    run(&b);
    CHECK_U64(b.tells[STG_TELL_PROXY_DOWN], 0);
    CHECK_U64(stg_flow_view_proxy(b.flow, PROXY), 1);
    stg_flow_free(b.flow);
}

/* Where none waits for it, or the one that may dial does not, nobody is woken. */
TEST(proxy, wakes_nobody_where_nobody_may_dial)
{
    for (int variant = 0; variant < 2; variant++) {
        stg_lane_options o;
        bare b;

        begin_proxy(&b);
        o = stg_lane_options_default(&b.policy);
        end_one(&b, 0, &away);
        CHECK_U64(stg_flow_wake_at(b.flow), now + b.later + STG_S);
        if (variant == 0) {
            CHECK_INT(
                stg_flow_change_lane(b.flow, b.starts[0].lane, &o, now, NULL),
                STG_OK);
            stg_flow_pause(b.flow, b.starts[0].lane, true, now);
        } else {
            stg_flow_pause(b.flow, b.starts[0].lane, true, now);
            b.later += STG_S;
        }
        run(&b);
        CHECK(stg_flow_wake_at(b.flow) > now + b.later + STG_S);
        CHECK_U64(b.start_count, 2);
        CHECK_U64(stg_flow_view_proxy(b.flow, PROXY), (uint64_t)variant);
        stg_flow_free(b.flow);
    }
}

/* What a lane was sure of it is sure of still when another attempt of it tells less:
 * once the dial that ended otherwise is long ago, the proxy is down. */
TEST(proxy, is_down_by_what_was_sure_once)
{
    stg_end unsure = {.outcome = stg_failed(STG_FAULT_CONNECT_TIMEOUT),
                      .dialed_at = now + STG_S};
    stg_end reached = reached_at(now + 2 * STG_S);
    bare b;

    begin_proxy(&b);
    read_one(&b, 2, (stg_record){.size = 0});
    CHECK_U64(b.start_count, 4);
    b.later = 2 * STG_S;
    for (size_t i = 0; i < 4; i++)
        if (b.starts[i].lane == 1)
            end_one(&b, i, &reached);
    b.later += STG_S / 2;
    for (size_t i = 0, count = 0; i < 4; i++)
        if (b.starts[i].lane == 0)
            end_one(&b, i, count++ == 0 ? &away : &unsure);
    CHECK_U64(b.tells[STG_TELL_PROXY_DOWN], 0);
    b.later += 2 * STG_S;
    run(&b);
    CHECK_U64(b.tells[STG_TELL_PROXY_DOWN], 1);
    CHECK_U64(stg_flow_view_proxy(b.flow, PROXY), 1);
    stg_flow_free(b.flow);
}

/* -- the network of this machine -------------------------------------------- */

/* Lanes that may not dial are not waited for. */
TEST(proxy, is_none_and_the_network_is_down_by_those_that_dial)
{
    const stg_end unreached = {.outcome = stg_failed(STG_FAULT_DNS_TEMPORARY),
                               .dialed_at = now + STG_S};

    for (int variant = 0; variant < 4; variant++) {
        stg_flow_view view;
        stg_lane_options o;
        bare b;

        o = prepare(&b, OFTEN);
        assign(&b, 0, NULL, 0);
        for (uint32_t lane = 0; lane < 3; lane++)
            add_lane(&b, lane, &o);
        stg_flow_start(b.flow, now);
        run(&b);
        read_one(&b, 1, (stg_record){.size = 0});
        CHECK_U64(b.start_count, 3);
        if (variant == 1)
            stg_flow_pause(b.flow, b.starts[2].lane, true, now);
        else if (variant == 2)
            stg_flow_gate(b.flow, b.starts[2].lane, true, now);
        else if (variant == 3)
            stg_flow_remove(b.flow, b.starts[2].lane, now);
        b.later = STG_S;
        end_one(&b, 0, &unreached);
        end_one(&b, 1, &unreached);
        stg_flow_view_all(b.flow, &view, now + b.later);
        CHECK_INT(view.is_uplink_down, variant > 0);
        stg_flow_free(b.flow);
    }
}
