/* What operators fear, each with a verdict: outages, herds, crash loops, stores
 * and clocks that fail. Numbers are of virtual time. */
#include <stdlib.h>

#include "flow/lane.h"
#include "tests/flow/world.h"

#define PATIENT                                                 \
    "fixed base=1s jitter=full attempts=20 attempt-timeout=1s " \
    "deadline=none retry=any breaker=20:200ms-5s"

/* -- a service with a capacity --------------------------------------------- */

/* One queue, one request each millisecond, whether or not anybody still waits
 * for it; it is down from from_at to to_at. Where a test has one, it is the one
 * target of its world. */
enum { CAPACITY = 1000, LOAD = 900, SECONDS_MAX = 200 };

typedef struct service {
    stg_ns free_at, from_at, to_at;
    uint32_t good[SECONDS_MAX], calls[SECONDS_MAX]; /* by second of arrival */
} service;

static service the_service;

static stg_world_answer answer_by_service(stg_world *w, uint32_t l,
                                          uint64_t position, uint64_t attempt)
{
    service *s = &the_service;
    stg_ns now = stg_world_now(w), second = now / STG_S;
    stg_ns timeout = STG_S;

    (void)l;
    (void)position;
    (void)attempt;
    CHECK(second < SECONDS_MAX);
    s->calls[second]++;
    if (now >= s->from_at && now < s->to_at)
        return (stg_world_answer){stg_failed(STG_FAULT_TIMEOUT), STG_NEVER,
                                  false};
    s->free_at = stg_ns_max(s->free_at, now) + STG_S / CAPACITY;
    s->good[second] += s->free_at - now <= timeout;
    return (stg_world_answer){stg_ok(), s->free_at - now, true};
}

static stg_world *begin_service(const char *policy)
{
    stg_world *w = world_new(1);

    the_service = (service){.from_at = 20 * STG_S, .to_at = 50 * STG_S};
    world_lane(w, policy);
    stg_world_set_target(w, 0, answer_by_service);
    stg_world_set_checks(w, 10000);
    world_trace_off(w);
    return w;
}

/* As many messages a second, evenly. */
static void load_until(stg_world *w, stg_ns end_at)
{
    while (stg_world_now(w) < end_at) {
        stg_world_publish(w, 0, LOAD / 100);
        stg_world_run(w, world_after(w, 10 * STG_MS));
    }
}

/* Percent of the load, over ten seconds from there on. */
static uint32_t find_goodput(uint32_t from)
{
    uint32_t good = 0;

    for (uint32_t i = from; i < from + 10; i++)
        good += the_service.good[i];
    return good * 100 / (10 * LOAD);
}

TEST(scenarios, recovers_from_an_outage_at_nine_tenths_of_the_capacity)
{
    stg_world *w = begin_service("broadcast");

    stg_world_start(w);
    load_until(w, 112 * STG_S);
    CHECK(find_goodput(5) >= 95);
    CHECK(find_goodput(35) == 0);
    CHECK(find_goodput(100) >= 95); // 50 to 60 s after it
    world_free(w);
}

/* The same service and load, and clients that wait a second for an answer and
 * ask again a tenth of a second later, without an end: retries of the outage keep
 * the queue so long that what is answered is what nobody waits for. This is what
 * the scenario above is worth: the service alone would not recover. */
TEST(scenarios, would_not_recover_with_naive_retries)
{
    enum { MS = 112000, AGAIN = 1100 };
    stg_world *w = begin_service("broadcast"); // for its clock alone
    uint32_t *again = calloc(MS + AGAIN, sizeof *again);

    CHECK(again != NULL);
    stg_world_start(w);
    for (uint32_t ms = 0; ms < MS; ms++) {
        uint32_t calls = again[ms] + (ms % 10 < LOAD / 100);

        for (; calls > 0; calls--) {
            stg_world_answer a = answer_by_service(w, 0, 0, 0);

            again[ms + AGAIN] += a.took > STG_S;
        }
        stg_world_run(w, world_after(w, STG_MS));
    }
    CHECK(find_goodput(5) >= 95);
    CHECK(find_goodput(100) <= 5);
    CHECK(the_service.calls[105] >= 2 * CAPACITY);
    free(again);
    world_free(w);
}

/* Flow without what protects it (an adaptive limit, a breaker, a budget) is
 * hardly better: thousands of requests at once, of which most time out, in turn
 * with seconds of one at a time. */
TEST(scenarios, would_not_recover_with_a_fixed_limit_and_no_breaker)
{
    stg_world *w = begin_service(
        "fixed base=100ms jitter=none attempts=1000 "
        "attempt-timeout=1s deadline=none retry=any");
    stg_lane_options o = stg_lane_options_default(NULL);

    stg_world_copy_options(w, 0, &o);
    stg_world_start(w);
    o.in_flight_max = 3000;
    o.is_limit_fixed = true;
    CHECK(stg_world_change_lane(w, 0, &o, NULL, NULL) == STG_OK);
    load_until(w, 112 * STG_S);
    CHECK(find_goodput(5) >= 95);
    CHECK(find_goodput(100) <= 40);
    world_free(w);
}

/* -- a hundred thousand that wait ------------------------------------------ */

static void make_many_wait(stg_world *w, stg_outcome outcome, stg_ns for_ns)
{
    world_trace_off(w);
    stg_world_set_checks(w, 10000);
    stg_world_set_answer(w, 0, outcome, STG_MS);
    stg_world_start(w);
    stg_world_publish(w, 0, 100000);
    stg_world_run(w, world_after(w, for_ns));
}

/* The herd: the target is back, and is not met by all at once. */
TEST(scenarios, meets_a_target_that_is_back_with_few_requests)
{
    stg_world *w = world_new(1);
    uint64_t before;

    world_lane(w, PATIENT)->in_flight_max = 1000;
    make_many_wait(w, stg_failed(STG_FAULT_REFUSED), STG_MIN);
    before = stg_world_sum_lane(w, 0).starts;
    CHECK(before < 200);
    stg_world_set_answer(w, 0, stg_ok(), 100 * STG_MS);
    while (world_look(w, 0).delivered == 0) // the probe
        stg_world_steps(w, 1);
    before = stg_world_sum_lane(w, 0).starts;
    stg_world_run(w, world_after(w, 250 * STG_MS));
    CHECK(stg_world_sum_lane(w, 0).starts - before <= 20); // 1, 2, 4 ...
    stg_world_run(w, STG_NEVER);
    CHECK_U64(world_look(w, 0).delivered, 100000);
    CHECK_U64(stg_world_sum(w).dead, 0);
    world_free(w);
}

TEST(scenarios, waits_as_a_whole_for_retry_after)
{
    stg_world *w = world_new(1);
    uint64_t before;

    world_lane(w, PATIENT);
    make_many_wait(w, stg_answered_after(429, 10 * STG_MIN), 9 * STG_MIN);
    before = stg_world_sum_lane(w, 0).starts;
    CHECK(before <= 64); // what was under way when the first was told
    stg_world_set_answer(w, 0, stg_ok(), STG_MS);
    stg_world_run(w, STG_NEVER);
    CHECK_U64(world_look(w, 0).delivered, 100000);
    CHECK_U64(stg_world_sum(w).dead, 0);
    world_free(w);
}

/* -- partitions, store, clock, crashes ------------------------------------- */

TEST(scenarios, repeats_nothing_when_a_partition_goes_to_and_fro)
{
    stg_world *w = world_new(1);

    world_lane(w, STEADY);
    world_trace_off(w);
    stg_world_join_group(w, false);
    stg_world_start(w);
    for (uint32_t i = 0; i < 100; i++) {
        stg_world_publish(w, 0, 10);
        stg_world_run(w, world_after(w, 100 * STG_MS));
        stg_world_revoke(w, 0, STG_S);
        stg_world_run(w, world_after(w, 100 * STG_MS));
        stg_world_assign(w, 0);
    }
    stg_world_run(w, STG_NEVER);
    for (uint64_t i = 0; i < 1000; i++)
        CHECK_U64(
            world_receipt_of(w, 0, stg_world_position_at(w, i))->processed, 1);
    world_end(w);
}

TEST(scenarios, outlives_a_store_that_is_away_for_an_hour)
{
    stg_world *w = world_new(1);
    stg_ns end_at;

    world_lane(w, PATIENT);
    world_trace_off(w);
    stg_world_options(w)->memory_max = 1 << 20;
    stg_world_set_checks(w, 100);
    stg_world_set_size(w, 1000);
    stg_world_set_answer(w, 0, stg_answered(503), STG_MS);
    stg_world_start(w);
    end_at = world_after(w, STG_HOUR);
    stg_world_lose_answers(w, UINT32_MAX);
    while (stg_world_now(w) < end_at) {
        stg_world_publish(w, 0, 5);
        stg_world_run(w, world_after(w, STG_S));
        CHECK(world_look_all(w).held <= world_look_all(w).memory_max);
    }
    stg_world_lose_answers(w, 0);
    stg_world_set_answer(w, 0, stg_ok(), STG_MS);
    stg_world_run(w, world_after(w, 10 * STG_MIN));
    CHECK_U64(world_look(w, 0).lag, 0);
    CHECK_U64(world_look(w, 0).parked, 0);
    stg_world_run(w, STG_NEVER);
    world_end(w);
}

TEST(scenarios, keeps_to_a_wait_though_the_clock_is_set_back_by_a_day)
{
    stg_world *w = world_begin(1, STEADY, "503 200", 1);
    stg_ns begun_at = stg_world_now(w);

    stg_world_run(w, world_after(w, 200 * STG_MS));
    CHECK_U64(world_look(w, 0).parked, 1);
    stg_world_set_wall_back(w, STG_DAY);
    stg_world_crash(w, 100 * STG_MS);
    stg_world_run(w, STG_NEVER);
    CHECK_U64(world_look(w, 0).delivered, 1);
    CHECK(stg_world_now(w) - begun_at <= 1500 * STG_MS);
    world_end(w);
}

/* Each life delivers something, and no attempt is given up for the crashes. */
TEST(scenarios, gets_on_in_a_crash_loop)
{
    stg_world *w = world_new(1);

    world_lane(w, STEADY);
    world_trace_off(w);
    stg_world_set_answer(w, 0, stg_ok(), 50 * STG_MS);
    stg_world_publish(w, 0, 500);
    stg_world_start(w);
    for (uint32_t i = 0; i < 100; i++) {
        stg_world_run(w, world_after(w, 200 * STG_MS));
        stg_world_crash(w, STG_MS);
    }
    CHECK(world_look(w, 0).delivered >= 200);
    stg_world_run(w, STG_NEVER);
    CHECK_U64(world_look(w, 0).delivered, 500);
    CHECK_U64(stg_world_sum(w).dead, 0);
    world_end(w);
}

TEST(scenarios, goes_on_when_a_full_store_has_room_again)
{
    stg_world *w = world_new(1);

    world_lane(w, PATIENT);
    world_lane(w, PATIENT);
    world_trace_off(w);
    stg_world_set_answer(w, 0, stg_answered(503), STG_MS);
    stg_world_set_store_room(w, 10);
    stg_world_publish(w, 0, 1000);
    stg_world_start(w);
    stg_world_run(w, world_after(w, STG_MIN));
    CHECK(world_look_all(w).is_store_full);
    CHECK_U64(world_look(w, 1).delivered, 1000); // the other does not mind
    stg_world_set_store_room(w, UINT64_MAX);
    stg_world_set_answer(w, 0, stg_ok(), STG_MS);
    stg_world_run(w, STG_NEVER);
    CHECK_U64(world_look(w, 0).delivered, 1000);
    world_end(w);
}

TEST(scenarios, removes_a_target_in_the_drain_of_a_stop)
{
    stg_world *w = world_new(1);

    world_lane(w, STEADY);
    world_lane(w, STEADY);
    world_trace_off(w);
    stg_world_set_answer(w, 0, stg_ok(), STG_S);
    stg_world_publish(w, 0, 200);
    stg_world_start(w);
    stg_world_run(w, world_after(w, 500 * STG_MS));
    stg_flow_stop(stg_world_flow(w), stg_world_now(w));
    stg_world_remove(w, 0);
    stg_world_stop(w);
    stg_world_restart(w, STG_S);
    stg_world_run(w, STG_NEVER);
    CHECK(stg_world_sum_lane(w, 0).was_removed);
    CHECK_U64(world_look(w, 1).delivered, 200);
    world_end(w);
}

/* -- many targets, and faults of all rates --------------------------------- */

static stg_world_answer answer_but_one_in_hundred(stg_world *w, uint32_t l,
                                                  uint64_t position,
                                                  uint64_t attempt)
{
    (void)w;
    (void)position;
    (void)attempt;
    if (l % 100 == 0)
        return (stg_world_answer){stg_failed(STG_FAULT_TIMEOUT), STG_NEVER,
                                  false};
    return (stg_world_answer){stg_ok(), 10 * STG_MS, true};
}

/* The others have their messages as soon as if all were well. */
TEST(scenarios, serves_thousands_of_targets_of_which_some_are_dead)
{
    enum { TARGETS = 10000, MESSAGES = 3 };
    stg_world *w = world_new(1);
    stg_ns begun_at = stg_world_now(w);

    for (uint32_t i = 0; i < TARGETS; i++) {
        world_lane(w, "broadcast-wide");
        stg_world_set_target(w, i, answer_but_one_in_hundred);
    }
    world_trace_off(w);
    stg_world_set_checks(w, 1000000);
    stg_world_options(w)->in_flight_max = 1000;
    stg_world_publish(w, 0, MESSAGES);
    stg_world_start(w);
    stg_world_run(w, world_after(w, 5 * STG_S));
    for (uint32_t l = 0; l < TARGETS; l++)
        for (uint64_t i = 0; i < MESSAGES; i++) {
            const stg_world_receipt *r =
                world_receipt_of(w, l, stg_world_position_at(w, i));

            CHECK_U64(r->processed, l % 100 != 0);
            if (l % 100 != 0)
                CHECK(r->ended_at - begun_at <= STG_S);
        }
    world_free(w);
}

static uint32_t per_thousand;

static stg_world_answer answer_with_faults(stg_world *w, uint32_t l,
                                           uint64_t position, uint64_t attempt)
{
    stg_rng *rng = stg_world_rng(w);

    (void)l;
    (void)position;
    (void)attempt;
    if (stg_rng_upto(rng, 999) < per_thousand)
        return (stg_world_answer){stg_answered(503), STG_MS, false};
    return (stg_world_answer){stg_ok(), 5 * STG_MS, true};
}

/* A share p of faults costs p more attempts, and p^3 dead letters. */
TEST(scenarios, delivers_all_where_some_of_the_attempts_fail)
{
    static const uint32_t rates[] = {1, 3, 10, 30, 100};
    enum { MESSAGES = 5000 };

    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++) {
        stg_world *w = world_new(i);
        uint64_t starts;

        per_thousand = rates[i];
        world_lane(w, STEADY);
        world_trace_off(w);
        stg_world_set_checks(w, 100);
        stg_world_set_target(w, 0, answer_with_faults);
        stg_world_publish(w, 0, MESSAGES);
        stg_world_start(w);
        stg_world_run(w, STG_NEVER);
        starts = stg_world_sum_lane(w, 0).starts - MESSAGES;
        CHECK(starts <= 2 * MESSAGES * rates[i] / 1000 + 10);
        CHECK(stg_world_sum(w).dead <= 15);
        CHECK_U64(world_look(w, 0).delivered + world_look(w, 0).dead, MESSAGES);
        world_end(w);
    }
}
