/* Arguments that cannot be, each refused with its words; and options that
 * change while the hub runs. */
#include "tests/flow/world.h"
#include "tests/malloc_memory.h"

static const stg_memory memory = STG_MALLOC_MEMORY;

/* The words for such options of a flow; "" if they will do. */
static const char *refuse_flow(const stg_flow_options *o)
{
    static stg_error err;
    stg_flow *f = NULL;
    stg_status status = stg_flow_new(&f, &memory, o, 0, &err);

    if (status == STG_OK) {
        stg_flow_free(f);
        return "";
    }
    CHECK_INT(status, STG_INVALID);
    CHECK_INT(stg_flow_new(&f, &memory, o, 0, NULL), STG_INVALID);
    return err.text;
}

TEST(options, of_a_flow_have_ranges)
{
    stg_flow_options o = stg_flow_options_default();

    CHECK_STR(refuse_flow(&o), "");
    o.memory_max = (1 << 20) - 1;
    CHECK_STR(refuse_flow(&o), "memory_max: expected 1 MiB to 1 TiB");
    o.memory_max = 1 << 20;
    CHECK_STR(refuse_flow(&o), "");
#if SIZE_MAX > UINT32_MAX
    o.memory_max = ((size_t)1 << 40) + 1;
    CHECK_STR(refuse_flow(&o), "memory_max: expected 1 MiB to 1 TiB");
    o.memory_max = (size_t)1 << 40;
    CHECK_STR(refuse_flow(&o), "");
#endif
    o.in_flight_max = 0;
    CHECK_STR(refuse_flow(&o), "in_flight_max: expected 1 to 1000000");
    o.in_flight_max = 1000001;
    CHECK_STR(refuse_flow(&o), "in_flight_max: expected 1 to 1000000");
    o.in_flight_max = 1000000;
    CHECK_STR(refuse_flow(&o), "");
    o.budget = (stg_budget_options){.kind = STG_BUDGET_TOKENS};
    CHECK(refuse_flow(&o)[0] != '\0');
}

static const char *refuse_lane(stg_lane_options o)
{
    static stg_error err;
    stg_flow_options fo = stg_flow_options_default();
    stg_flow *f = NULL;
    stg_status status;

    err.text[0] = '\0';
    CHECK(stg_flow_new(&f, &memory, &fo, 0, NULL) == STG_OK);
    CHECK(stg_flow_assign(f, &(stg_assignment){.begin = 0}, 0, NULL) == STG_OK);
    status = stg_flow_add_lane(f, 0, &o, 0, &err);
    CHECK(status == STG_OK || status == STG_INVALID);
    CHECK((status == STG_OK) == (err.text[0] == '\0'));
    stg_flow_free(f);
    return err.text;
}

TEST(options, of_a_lane_have_ranges)
{
    stg_policy policy = stg_policy_default(), zeroed = {0};
    stg_lane_options good = stg_lane_options_default(&policy), o = good;

    CHECK_STR(refuse_lane(o), "");
    o.policy = NULL;
    CHECK_STR(refuse_lane(o),
              "policy: expected one that passes stg_policy_check()");
    o.policy = &zeroed;
    CHECK_STR(refuse_lane(o),
              "policy: expected one that passes stg_policy_check()");
    o = good;
    o.in_flight_max = 0;
    CHECK_STR(refuse_lane(o), "in_flight_max: expected 1 to 10000");
    o.in_flight_max = 10001;
    CHECK_STR(refuse_lane(o), "in_flight_max: expected 1 to 10000");
    o = good;
    o.parked_max = 0;
    CHECK_STR(refuse_lane(o), "parked_max: expected 1 to 1000000");
    o.parked_max = 1000001;
    CHECK_STR(refuse_lane(o), "parked_max: expected 1 to 1000000");
    o = good;
    o.shed_after = 365 * STG_DAY + 1;
    CHECK_STR(refuse_lane(o), "shed-after: expected 0 to 365 d, or never");
    o.shed_after = STG_NEVER;
    CHECK_STR(refuse_lane(o), "");
    o.order = (stg_order)3;
    CHECK_STR(refuse_lane(o), "order: expected none, key or strict");
    o = good;
    o.burst = 1000001;
    CHECK_STR(refuse_lane(o), ""); // no rate has it
    policy.rate = 1000;
    CHECK(strstr(refuse_lane(o), "burst") != NULL);
    o.burst = 1000000;
    CHECK_STR(refuse_lane(o), "");
}

TEST(options, numbers_of_lanes_and_partitions_have_ranges)
{
    stg_policy policy = stg_policy_default();
    stg_lane_options o = stg_lane_options_default(&policy);
    stg_flow_options fo = stg_flow_options_default();
    stg_lane_view view;
    stg_cursor c = {.lane = 0, .partition = 0};
    stg_flow *f = NULL;
    stg_error err;

    CHECK(stg_flow_new(&f, &memory, &fo, 0, NULL) == STG_OK);
    CHECK_INT(stg_flow_assign(f, &(stg_assignment){.begin = 7}, 0, NULL),
              STG_OK);
    CHECK_INT(stg_flow_assign(f, &(stg_assignment){.begin = 7}, 0, NULL),
              STG_INVALID);
    CHECK_INT(stg_flow_restore(f, &c), STG_INVALID); // no such lane
    CHECK_INT(stg_flow_add_lane(f, 1000000, &o, 0, &err), STG_INVALID);
    CHECK_STR(err.text,
              "lane: expected a number below 1000000 that no lane has");
    CHECK_INT(stg_flow_add_lane(f, 999999, &o, 0, &err), STG_OK);
    CHECK_INT(stg_flow_add_lane(f, 999999, &o, 0, &err), STG_INVALID);
    CHECK_STR(err.text,
              "lane: expected a number below 1000000 that no lane has");
    CHECK_INT(stg_flow_view_lane(f, 5, &view, 0), STG_NOT_FOUND);
    CHECK_INT(stg_flow_change_lane(f, 5, &o, 0, &err), STG_INVALID);
    CHECK_STR(err.text, "lane: there is none of this number");
    c.lane = 999999;
    c.partition = 1;
    CHECK_INT(stg_flow_restore(f, &c), STG_INVALID);
    c.partition = 0;
    CHECK_INT(stg_flow_restore(f, &c), STG_OK);
    CHECK_INT(stg_flow_restore(f, &c), STG_INVALID); // it has one
    stg_flow_start(f, 0);
    CHECK_INT(stg_flow_restore(f, &c), STG_INVALID); // too late
    stg_flow_free(f);
}

/* Where a lane without a cursor begins, by the side of one that stands at 70 where
 * the group has committed 50 of a log that begins at 10. */
static uint64_t begin_at(bool is_from_earliest, bool is_known, uint64_t floor)
{
    stg_policy policy = stg_policy_default();
    stg_lane_options o = stg_lane_options_default(&policy);
    stg_flow_options fo = stg_flow_options_default();
    stg_cursor c = {.lane = 0, .partition = 3, .base = 70};
    stg_assignment g = {.partition = 3,
                        .begin = 10,
                        .floor = floor,
                        .is_merged = true,
                        .cursors = &c,
                        .cursor_count = 1};
    stg_lane_cursor_view v = {.next = 0};
    stg_flow *f = NULL;

    CHECK(stg_flow_new(&f, &memory, &fo, 0, NULL) == STG_OK);
    CHECK(stg_flow_add_lane(f, 0, &o, 0, NULL) == STG_OK);
    o.is_from_earliest = is_from_earliest;
    o.is_known = is_known;
    CHECK(stg_flow_add_lane(f, 1, &o, 0, NULL) == STG_OK);
    stg_flow_start(f, 0);
    CHECK(stg_flow_assign(f, &g, 0, NULL) == STG_OK);
    CHECK(stg_flow_view_cursor(f, 1, 3, &v) == STG_OK);
    stg_flow_free(f);
    return v.next;
}

TEST(options, a_lane_that_is_known_begins_at_the_floor)
{
    CHECK_U64(begin_at(false, false, 50), 70);
    CHECK_U64(begin_at(true, false, 50), 50);
    CHECK_U64(begin_at(false, true, 50), 50);
    CHECK_U64(begin_at(true, true, 50), 50);
    CHECK_U64(begin_at(false, true, 0), 70);
    CHECK_U64(begin_at(true, true, 0), 10);
}

/* Events for what is not there change nothing. */
TEST(options, events_for_nobody_are_ignored)
{
    stg_world *w = world_new(1);
    stg_lane_cursor_view cursor;
    stg_partition_view partition;
    stg_flow *f;

    world_lane(w, STEADY);
    stg_world_publish(w, 0, 5);
    stg_world_start(w);
    stg_world_run(w, world_after(w, STG_S)); // nothing is under way any more
    f = stg_world_flow(w);
    stg_flow_messages(f, false, 77, 0, NULL, 0, 5, stg_world_now(w));
    stg_flow_messages(f, true, 0, 0, NULL, 0, 5, stg_world_now(w));
    stg_flow_rows(f, 0, false, NULL, 0, true, stg_world_now(w));
    stg_flow_rows(f, 9, true, NULL, 0, true, stg_world_now(w));
    stg_flow_stored(f, STG_STORED, stg_world_now(w));
    stg_flow_retain(f, 9, 100, stg_world_now(w));
    stg_flow_replayed(f, 9, 0, 3, false, stg_world_now(w));
    stg_flow_replayed(f, 0, 9, 3, false, stg_world_now(w));
    stg_flow_pause(f, 9, true, stg_world_now(w));
    stg_flow_gate(f, 9, true, stg_world_now(w));
    stg_flow_revoke(f, 9, true, STG_S, stg_world_now(w));
    stg_flow_lose(f, 9, true, stg_world_now(w));
    stg_flow_fenced(f, 9, stg_world_now(w));
    stg_flow_expired(f, 9, 100, stg_world_now(w));
    stg_flow_unread(f, 0, 77, stg_world_now(w));
    CHECK(!stg_flow_retain_lane(f, 9, stg_world_now(w)));
    CHECK_U64(stg_flow_assignment(f, 9), 0);
    CHECK_U64(stg_flow_view_proxy(f, 9), 0);
    CHECK(!stg_flow_probe(f, 9, stg_world_now(w)));
    CHECK_INT(stg_flow_view_cursor(f, 9, 0, &cursor), STG_NOT_FOUND);
    CHECK_INT(stg_flow_view_cursor(f, 0, 9, &cursor), STG_NOT_FOUND);
    CHECK_INT(stg_flow_view_partition(f, 9, &partition), STG_NOT_FOUND);
    stg_flow_remove(f, 9, stg_world_now(w));
    stg_world_run(w, STG_NEVER);
    world_end(w);
}

#define SHORT "fixed base=1s jitter=none attempts=2 deadline=none retry=5xx"

/* -- a change -------------------------------------------------------------- */

TEST(options, change_while_it_runs)
{
    stg_world *w = world_new(2);
    stg_lane_options *o = world_lane(w, STEADY), changed;

    world_script(w, 0, "503");
    stg_world_publish(w, 0, 3);
    stg_world_start(w);
    stg_world_run(w, world_after(w, 500 * STG_MS));
    changed = *o;
    changed.in_flight_max = 2;
    CHECK(stg_world_change_lane(w, 0, &changed, SHORT, NULL) == STG_OK);
    stg_world_run(w, STG_NEVER);
    CHECK_U64(stg_world_sum_lane(w, 0).starts, 6); // by the policy of now
    CHECK(world_look(w, 0).limit <= 2);
    world_end(w);
}

/* As many at once as were allowed before are under way still. */
TEST(options, may_allow_less_than_is_under_way)
{
    stg_world *w = world_new(3);
    stg_lane_options *o = world_lane(w, STEADY), changed;

    world_script(w, 0, "200");
    stg_world_publish(w, 0, 300);
    stg_world_start(w);
    stg_world_run(w, world_after(w, 55 * STG_MS));
    CHECK(world_look(w, 0).in_flight > 8);
    changed = *o;
    changed.in_flight_max = 1;
    CHECK(stg_world_change_lane(w, 0, &changed, NULL, NULL) == STG_OK);
    stg_world_run(w, world_after(w, 20 * STG_MS));
    CHECK_U64(world_look(w, 0).in_flight, 1);
    stg_world_run(w, STG_NEVER);
    world_end(w);
}

TEST(options, change_only_to_what_can_be)
{
    stg_world *w = world_new(4);
    stg_lane_options *o = world_lane(w, STEADY), changed;
    stg_error err;

    stg_world_start(w);
    changed = *o;
    changed.parked_max = 0;
    CHECK_INT(stg_world_change_lane(w, 0, &changed, NULL, &err), STG_INVALID);
    CHECK_STR(err.text, "parked_max: expected 1 to 1000000");
    changed = *o;
    changed.burst = 1000001;
    CHECK_INT(stg_world_change_lane(w, 0, &changed, STEADY " rate=5/s", &err),
              STG_INVALID);
    CHECK_STR(err.text, "burst=1000001 is out of range, expected 0 to 1000000");
    world_free(w);
}

/* The breaker stays open over a reload. */
TEST(options, keep_the_breaker_as_it_is)
{
    stg_world *w = world_new(7);
    stg_lane_options *o = world_lane(w, STEADY " breaker=3:10s-10s"), changed;
    uint64_t starts;

    world_script(w, 0, "503");
    stg_world_publish(w, 0, 30);
    stg_world_start(w);
    stg_world_run(w, world_after(w, STG_S));
    starts = stg_world_sum_lane(w, 0).starts;
    changed = *o;
    changed.burst = 100;
    CHECK(stg_world_change_lane(w, 0, &changed,
                                STEADY " breaker=3:10s-10s budget=tokens:9:1/s "
                                       "rate=1000/s",
                                NULL) == STG_OK);
    CHECK_U64(world_look(w, 0).state, STG_LANE_CIRCUIT_OPEN);
    stg_world_run(w, world_after(w, 5 * STG_S));
    CHECK_U64(stg_world_sum_lane(w, 0).starts, starts);
    world_script(w, 0, "200");
    stg_world_run(w, STG_NEVER);
    world_end(w);
}

/* Without a breaker nothing holds the lane any more. */
TEST(options, may_take_the_breaker_away)
{
    stg_world *w = world_new(8);
    stg_lane_options *o = world_lane(w, STEADY " breaker=3:1h-1h"), changed;

    o->shed_after = STG_MIN;
    world_script(w, 0, "503 503 503 200");
    stg_world_publish(w, 0, 30);
    stg_world_start(w);
    stg_world_run(w, world_after(w, STG_S));
    CHECK_U64(world_look(w, 0).state, STG_LANE_CIRCUIT_OPEN);
    changed = *o;
    CHECK(stg_world_change_lane(w, 0, &changed, STEADY, NULL) == STG_OK);
    stg_world_run(w, world_after(w, 10 * STG_S));
    CHECK_U64(world_look(w, 0).delivered, 30);
    CHECK_U64(world_look(w, 0).state, STG_LANE_LIVE);
    world_end(w);
}
