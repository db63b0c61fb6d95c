/* Our own network is away: nothing of it is counted. */
#include <errno.h>

#include "flow/state.h"

#include "tests/flow/world.h"

static const stg_ns gone_at = 5 * STG_S, back_at = 35 * STG_S;

static bool is_gone(stg_world *w)
{
    return stg_world_now(w) >= gone_at && stg_world_now(w) < back_at;
}

static stg_world_answer well(void)
{
    return (stg_world_answer){stg_ok(), 5 * STG_MS, true};
}

static stg_world_answer fail_by(stg_outcome o)
{
    return (stg_world_answer){o, STG_MS, false};
}

/* Each lane in its own way. */
static stg_world_answer answer_but_for_30_s(stg_world *w, uint32_t l,
                                            uint64_t position, uint64_t attempt)
{
    static const int errors[] = {ENETUNREACH, ENETDOWN, EADDRNOTAVAIL};

    (void)position;
    (void)attempt;
    if (!is_gone(w))
        return well();
    return fail_by(l % 4 == 3 ? stg_failed(STG_FAULT_DNS_TEMPORARY)
                              : stg_failed_errno(errors[l % 4]));
}

static stg_world_answer answer_cut_off(stg_world *w, uint32_t l,
                                       uint64_t position, uint64_t attempt)
{
    (void)w;
    (void)l;
    (void)position;
    (void)attempt;
    return fail_by(stg_failed_errno(ENETUNREACH));
}

static stg_world_answer answer_well(stg_world *w, uint32_t l, uint64_t position,
                                    uint64_t attempt)
{
    (void)w;
    (void)l;
    (void)position;
    (void)attempt;
    return well();
}

static stg_world *begin(uint64_t seed, uint32_t lanes, stg_world_target *leaf)
{
    stg_world *w = world_new(seed);

    for (uint32_t l = 0; l < lanes; l++) {
        world_lane(w, "broadcast");
        stg_world_set_dialing(w, l, true);
        stg_world_set_target(w, l, leaf);
    }
    stg_world_start(w);
    return w;
}

/* A message now and then, until then. */
static void publish_until(stg_world *w, stg_ns every, stg_ns end_at)
{
    while (stg_world_now(w) < end_at) {
        stg_world_publish(w, 0, 1);
        stg_world_run(w, stg_ns_min(world_after(w, every), end_at));
    }
}

static uint32_t count_lines(stg_world *w, const char *words)
{
    uint32_t count = 0;

    for (const char *at = world_trace(w); (at = strstr(at, words)) != NULL;
         at++)
        count++;
    return count;
}

static uint64_t starts_of_all(stg_world *w)
{
    uint64_t starts = 0;

    for (uint32_t l = 0; l < stg_world_sum(w).lanes; l++)
        starts += stg_world_sum_lane(w, l).starts;
    return starts;
}

/* Whoever has how many targets, and however often there is a message. */
TEST(uplink, costs_no_dead_letter)
{
    static const uint32_t lanes[] = {1, 2, 3, 4, 7, 20};
    static const stg_ns every[] = {20 * STG_MS, 300 * STG_MS, 2500 * STG_MS};

    for (size_t i = 0; i < sizeof lanes / sizeof *lanes; i++)
        for (size_t k = 0; k < sizeof every / sizeof *every; k++) {
            stg_world *w = begin(i, lanes[i], answer_but_for_30_s);

            world_trace_off(w);
            publish_until(w, every[k], gone_at + 8 * STG_S);
            CHECK_FROM(i, world_look_all(w).is_uplink_down);
            publish_until(w, every[k], back_at + 5 * STG_S);
            CHECK_FROM(i, !world_look_all(w).is_uplink_down);
            stg_world_run(w, STG_NEVER);
            for (uint32_t l = 0; l < lanes[i]; l++) {
                CHECK_FROM(i, world_look(w, l).dead == 0);
                CHECK_FROM(i, world_look(w, l).openings == 0);
            }
            world_end(w);
        }
}

/* One dial a second, by turns, and all go on when one connects. */
TEST(uplink, dials_once_a_second_while_it_is_away)
{
    stg_world *w = begin(1, 10, answer_but_for_30_s);
    uint64_t before;
    stg_ns until_at;

    publish_until(w, 50 * STG_MS, gone_at + 3 * STG_S);
    CHECK(world_look_all(w).is_uplink_down);
    CHECK_U64(world_look_all(w).uplink_lanes, 10);
    CHECK_U64(world_look_all(w).proxies_down, 0);
    CHECK_INT(world_look(w, 3).state, STG_LANE_THROTTLED);
    before = starts_of_all(w);
    publish_until(w, 50 * STG_MS, gone_at + 23 * STG_S);
    CHECK(starts_of_all(w) - before >= 19);
    CHECK(starts_of_all(w) - before <= 21);
    for (uint32_t l = 0; l < 10; l++)
        CHECK(stg_world_sum_lane(w, l).starts > 0);
    until_at = back_at + 1100 * STG_MS;
    stg_world_run(w, until_at);
    CHECK(!world_look_all(w).is_uplink_down);
    CHECK_U64(world_look_all(w).uplink_lanes, 0);
    stg_world_run(w, STG_NEVER);
    world_end(w);
}

/* A literal address that cannot be reached, while others connect. */
TEST(uplink, takes_no_targets_own_fault_for_it)
{
    stg_world *w = begin(2, 4, answer_well);

    stg_world_set_target(w, 2, answer_cut_off);
    stg_world_publish(w, 0, 1);
    stg_world_run(w, world_after(w, 100 * STG_MS));
    CHECK_U64(world_look(w, 2).dead, 1); // at once
    publish_until(w, 100 * STG_MS, world_after(w, 10 * STG_S));
    CHECK(world_look(w, 2).dead >= 3);
    CHECK(world_look(w, 2).openings > 0);
    CHECK_INT(count_lines(w, "uplink"), 0);
    for (uint32_t l = 0; l < 4; l++)
        if (l != 2)
            CHECK_U64(world_look(w, l).delivered, stg_world_sum(w).messages);
    world_free(w);
}

/* A host or a port that is not there, and what no code explains, is the
 * target's own. */
TEST(uplink, is_not_blamed_for_a_host_that_is_away)
{
    stg_outcome unexplained = stg_failed(STG_FAULT_UNREACHABLE);

    for (int i = 0; i < 2; i++) {
        stg_world *w = begin(2, 4, answer_well);

        for (uint32_t l = 0; l < 4; l++)
            stg_world_set_answer(
                w, l, i == 0 ? unexplained : stg_failed_errno(EHOSTUNREACH),
                STG_MS);
        stg_world_publish(w, 0, 1);
        stg_world_run(w, world_after(w, 30 * STG_S));
        CHECK_INT(count_lines(w, "uplink"), 0);
        for (uint32_t l = 0; l < 4; l++)
            CHECK_U64(world_look(w, l).dead, 1);
        world_free(w);
    }
}

/* Where nobody else dials, nothing speaks for the uplink: 2 s, and no more. */
TEST(uplink, waits_two_seconds_for_word_of_others)
{
    stg_world *w = world_new(3);

    for (uint32_t l = 0; l < 4; l++) {
        world_lane(w, "broadcast");
        stg_world_set_target(w, l, answer_well);
    }
    stg_world_set_dialing(w, 0, true);
    stg_world_set_target(w, 0, answer_cut_off);
    stg_world_start(w);
    stg_world_publish(w, 0, 1);
    stg_world_run(w, world_after(w, 1900 * STG_MS));
    CHECK_U64(world_look(w, 0).dead, 0);
    CHECK_INT(world_look(w, 0).state, STG_LANE_THROTTLED);
    stg_world_run(w, world_after(w, 200 * STG_MS));
    CHECK_U64(world_look(w, 0).dead, 1);
    CHECK_INT(count_lines(w, "uplink"), 0);
    world_end(w);
}

/* A target that was dead before is no witness, and none is needed. */
TEST(uplink, is_seen_beside_a_target_that_is_dead_by_itself)
{
    stg_world *w = begin(4, 3, answer_but_for_30_s);

    stg_world_set_target(w, 0, answer_cut_off);
    publish_until(w, 100 * STG_MS, back_at + 5 * STG_S);
    stg_world_run(w, world_after(w, STG_MIN));
    CHECK_U64(world_look(w, 1).dead, 0);
    CHECK_U64(world_look(w, 2).dead, 0);
    CHECK_INT(count_lines(w, "uplink down"), 1);
    CHECK_INT(count_lines(w, "uplink up"), 1);
    world_free(w);
}

/* Those with a connection that is kept do not dial, and go on. */
TEST(uplink, does_not_hold_what_works)
{
    stg_world *w = world_new(5);

    for (uint32_t l = 0; l < 5; l++) {
        world_lane(w, "broadcast");
        stg_world_set_target(w, l, l == 4 ? answer_well : answer_but_for_30_s);
        if (l < 4)
            stg_world_set_dialing(w, l, true);
    }
    stg_world_start(w);
    publish_until(w, 100 * STG_MS, gone_at + 8 * STG_S);
    CHECK(world_look_all(w).is_uplink_down);
    CHECK_U64(world_look_all(w).uplink_lanes, 4);
    CHECK_U64(world_look(w, 4).delivered, stg_world_sum(w).messages);
    stg_world_run(w, STG_NEVER);
    world_end(w);
}

/* What this machine is short of for a moment is nobody's fault. */
TEST(uplink, waits_for_what_this_machine_is_short_of)
{
    stg_world *w = begin(6, 1, answer_well);

    stg_world_set_answer(w, 0, stg_failed_errno(EMFILE), STG_MS);
    stg_world_publish(w, 0, 5);
    stg_world_run(w, world_after(w, 5 * STG_S));
    CHECK_U64(world_look(w, 0).dead, 0);
    CHECK_U64(world_look(w, 0).openings, 0);
    CHECK(stg_world_sum_lane(w, 0).starts <= 60);
    stg_world_set_target(w, 0, answer_well);
    stg_world_run(w, STG_NEVER);
    CHECK_U64(world_look(w, 0).delivered, 5);
    world_end(w);
}

/* -- proxies --------------------------------------------------------------- */

static stg_world_answer answer_by_proxy(stg_world *w, uint32_t l,
                                        uint64_t position, uint64_t attempt)
{
    (void)l;
    (void)position;
    (void)attempt;
    return is_gone(w) ? fail_by(stg_failed(STG_FAULT_PROXY)) : well();
}

static stg_world_answer answer_late(stg_world *w, uint32_t l, uint64_t position,
                                    uint64_t attempt)
{
    (void)w;
    (void)l;
    (void)position;
    (void)attempt;
    return fail_by(stg_failed(STG_FAULT_CONNECT_TIMEOUT));
}

/* So many lanes, which dial each time, those from `from` on by a proxy. */
static stg_world *begin_by_proxy(uint64_t seed, uint32_t lanes, uint32_t from,
                                 stg_world_target *leaf)
{
    stg_world *w = world_new(seed);

    for (uint32_t l = 0; l < lanes; l++) {
        world_lane(w, "broadcast")->proxy = l < from ? 0 : 7;
        stg_world_set_dialing(w, l, true);
        stg_world_set_target(w, l, l < from ? answer_well : leaf);
    }
    stg_world_start(w);
    return w;
}

TEST(proxy, that_is_away_costs_no_dead_letter)
{
    static const uint32_t lanes[] = {2, 3, 20};
    static const stg_ns every[] = {20 * STG_MS, 300 * STG_MS, 2500 * STG_MS};

    for (size_t i = 0; i < sizeof lanes / sizeof *lanes; i++)
        for (size_t k = 0; k < sizeof every / sizeof *every; k++) {
            stg_world *w = begin_by_proxy(i, lanes[i], 1, answer_by_proxy);

            publish_until(w, every[k], gone_at + 8 * STG_S);
            CHECK_FROM(i, world_look_all(w).proxies_down == 1);
            CHECK_FROM(i, !world_look_all(w).is_uplink_down);
            CHECK_FROM(i, world_look(w, 1).state == STG_LANE_THROTTLED);
            CHECK_FROM(i,
                       world_look(w, 0).delivered == stg_world_sum(w).messages);
            publish_until(w, every[k], back_at + 5 * STG_S);
            CHECK_FROM(i, world_look_all(w).proxies_down == 0);
            stg_world_run(w, STG_NEVER);
            CHECK_FROM(i, count_lines(w, "proxy down") == 1);
            CHECK_FROM(i, count_lines(w, "proxy up") == 1);
            CHECK_FROM(i, count_lines(w, "uplink") == 0);
            for (uint32_t l = 0; l < lanes[i]; l++) {
                CHECK_FROM(i, world_look(w, l).dead == 0);
                CHECK_FROM(i, world_look(w, l).openings == 0);
                CHECK_FROM(i, world_look(w, l).retries == 0);
            }
            world_end(w);
        }
}

TEST(proxy, that_is_away_is_asked_once_a_second)
{
    stg_world *w = begin_by_proxy(1, 10, 0, answer_by_proxy);
    uint64_t before;

    publish_until(w, 50 * STG_MS, gone_at + 3 * STG_S);
    CHECK_U64(stg_flow_view_proxy(stg_world_flow(w), 7), 10);
    CHECK_U64(stg_flow_view_proxy(stg_world_flow(w), 8), 0);
    before = starts_of_all(w);
    publish_until(w, 50 * STG_MS, gone_at + 23 * STG_S);
    CHECK(starts_of_all(w) - before >= 19);
    CHECK(starts_of_all(w) - before <= 21);
    stg_world_run(w, STG_NEVER);
    world_end(w);
}

/* It fails one of them always, and lets the others through. */
TEST(proxy, that_fails_one_of_its_lanes_is_not_down)
{
    stg_world *w = begin_by_proxy(2, 4, 0, answer_well);

    stg_world_set_answer(w, 2, stg_failed(STG_FAULT_PROXY), STG_MS);
    publish_until(w, 100 * STG_MS, world_after(w, 20 * STG_S));
    // At the very first dial nothing speaks for it yet.
    CHECK_INT(count_lines(w, "proxy down"), 1);
    CHECK_INT(count_lines(w, "proxy up"), 1);
    CHECK_U64(world_look(w, 2).dead, 0);
    CHECK_U64(world_look(w, 2).openings, 0);
    CHECK(stg_world_sum_lane(w, 2).starts <= 210);
    for (uint32_t l = 0; l < 4; l++)
        if (l != 2)
            CHECK_U64(world_look(w, l).delivered, stg_world_sum(w).messages);
    stg_world_set_target(w, 2, answer_well);
    stg_world_run(w, STG_NEVER);
    CHECK_U64(world_look(w, 2).delivered, stg_world_sum(w).messages);
    world_end(w);
}

/* Nobody knows whether it waits for the target, but by the others. */
TEST(proxy, that_says_nothing_is_judged_by_its_other_lanes)
{
    stg_world *w = begin_by_proxy(3, 4, 0, answer_well);

    stg_world_set_target(w, 2, answer_late);
    publish_until(w, 100 * STG_MS, world_after(w, 10 * STG_S));
    CHECK(world_look(w, 2).dead > 0 || world_look(w, 2).retries > 0);
    CHECK(world_look(w, 2).openings > 0);
    CHECK_INT(count_lines(w, "proxy down"), 0);
    world_free(w);

    w = begin_by_proxy(4, 4, 0, answer_late);
    publish_until(w, 100 * STG_MS, world_after(w, 10 * STG_S));
    CHECK_INT(count_lines(w, "proxy down"), 1);
    for (uint32_t l = 0; l < 4; l++) {
        CHECK_U64(world_look(w, l).dead, 0);
        CHECK_U64(world_look(w, l).openings, 0);
        stg_world_set_target(w, l, answer_well);
    }
    stg_world_run(w, STG_NEVER);
    world_end(w);
}

/* Another one may work. */
TEST(proxy, that_no_lane_has_any_more_is_not_down)
{
    stg_world *w = begin_by_proxy(5, 2, 0, answer_by_proxy);
    stg_lane_options o;

    publish_until(w, 100 * STG_MS, gone_at + 3 * STG_S);
    CHECK_U64(world_look_all(w).proxies_down, 1);
    for (uint32_t l = 0; l < 2; l++) {
        CHECK_INT(count_lines(w, "proxy up"), 0);
        o = world_lane_of(w, l)->o;
        o.proxy = 8;
        CHECK(stg_world_change_lane(w, l, &o, NULL, NULL) == STG_OK);
        stg_world_set_target(w, l, answer_well);
    }
    stg_world_run(w, world_after(w, STG_S));
    CHECK_INT(count_lines(w, "proxy up"), 1);
    CHECK_U64(world_look_all(w).proxies_down, 0);
    for (uint32_t l = 0; l < 2; l++)
        CHECK_U64(world_look(w, l).delivered, stg_world_sum(w).messages);
    world_end(w);
}

/* -- whatever comes -------------------------------------------------------- */

/* Where a network comes and goes as it likes. */
static stg_world_answer answer_by_weather(stg_world *w, uint32_t l,
                                          uint64_t position, uint64_t attempt)
{
    stg_rng *rng = stg_world_rng(w);
    bool is_away = stg_world_now(w) / (3 * STG_S) % 3 == 0;

    (void)position;
    (void)attempt;
    if (is_away && l != 0)
        return fail_by(l % 2 == 0 ? stg_failed(STG_FAULT_PROXY)
                                  : stg_failed_errno(ENETDOWN));
    switch (stg_rng_upto(rng, 19)) {
    case 4:
        return fail_by(stg_failed(STG_FAULT_PROXY));
    case 5:
        return fail_by(stg_failed(STG_FAULT_CONNECT_TIMEOUT));
    case 0:
        return fail_by(stg_failed(STG_FAULT_DNS_TEMPORARY));
    case 1:
        return fail_by(stg_failed(STG_FAULT_NO_PORTS));
    case 2:
        return fail_by(stg_failed(STG_FAULT_REFUSED));
    case 3:
        return (stg_world_answer){stg_answered(503), STG_MS, false};
    default:
        return well();
    }
}

/* I1, I3, I17, I20 Whatever comes: each message has one end, over crashes, a
 * lane that is removed and one that has other options. */
TEST(uplink, loses_nothing_whatever_the_network_does)
{
    for (uint64_t seed = 0; seed < seeds(20); seed++) {
        stg_world *w = world_new(seed);
        uint32_t lanes = 1 + (uint32_t)stg_rng_upto(stg_world_rng(w), 5);

        for (uint32_t l = 0; l < lanes; l++) {
            stg_lane_options *o = world_lane(w, "broadcast");

            o->order = (stg_order)stg_rng_upto(stg_world_rng(w), 2);
            o->proxy = l % 2 == 0 ? l : 0;
            stg_world_set_target(w, l, answer_by_weather);
            if (stg_rng_upto(stg_world_rng(w), 3) > 0)
                stg_world_set_dialing(w, l, true);
        }
        stg_world_set_keys(w, 3);
        world_trace_off(w);
        stg_world_start(w);
        publish_until(w, 100 * STG_MS, 10 * STG_S);
        stg_world_crash(w, STG_S);
        publish_until(w, 100 * STG_MS, 25 * STG_S);
        stg_world_pause(w, 0, true);
        if (lanes > 1)
            stg_world_remove(w, lanes - 1);
        publish_until(w, 100 * STG_MS, 30 * STG_S);
        stg_world_pause(w, 0, false);
        stg_world_heal(w, answer_well);
        world_free(w);
    }
}
