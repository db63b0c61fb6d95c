/* I26 Which delivery is the probe of an open breaker: whatever mix of messages
 * waits, one that the target would take comes to be probed, and closes it. */
#include "tests/flow/world.h"

#define AS_PRESET                                         \
    "fixed base=1s jitter=none attempts=3 deadline=none " \
    "attempt-timeout=10s retry=5xx breaker=20:200ms-30s"
#define STUBBORN                                                  \
    "fixed base=1s jitter=none attempts=unlimited deadline=none " \
    "attempt-timeout=5s retry=5xx breaker=3:10s-40s"

#define FOR_LONG                                           \
    "fixed base=1s jitter=none attempts=99 deadline=none " \
    "attempt-timeout=10s retry=5xx"

static stg_world_answer answer(bool takes)
{
    return (stg_world_answer){takes ? stg_ok() : stg_answered(503), 10 * STG_MS,
                              takes};
}

/* Like `stagger sink --reply 503x2,200`. */
static stg_world_answer take_third(stg_world *w, uint32_t l, uint64_t position,
                                   uint64_t attempt)
{
    (void)w;
    (void)l;
    (void)position;
    return answer(attempt >= 3);
}

/* The try-out of the README. */
TEST(probes, come_to_a_third_attempt)
{
    stg_world *w = world_new(1);

    world_lane(w, AS_PRESET);
    stg_world_set_target(w, 0, take_third);
    stg_world_publish(w, 0, 100);
    stg_world_start(w);
    stg_world_run(w, world_after(w, STG_MIN));
    CHECK_U64(world_look(w, 0).delivered, 100);
    CHECK(world_look(w, 0).openings > 0);
    world_end(w);
}

/* -- several at once */

/* Well but for a minute. */
static stg_ns is_ill_at;

static stg_world_answer fail_for_a_minute(stg_world *w, uint32_t l,
                                          uint64_t position, uint64_t attempt)
{
    bool is_ill = stg_world_now(w) >= is_ill_at &&
                  stg_world_now(w) < stg_ns_add(is_ill_at, STG_MIN);

    (void)l;
    (void)position;
    (void)attempt;
    return (stg_world_answer){is_ill ? stg_answered(500) : stg_ok(), STG_S,
                              true};
}

TEST(probes, may_be_several_at_once)
{
    stg_world *w = world_new(1);
    uint32_t most = 0;

    world_lane(w, FOR_LONG " breaker=5:2s breaker-probes=2/3")->shed_after =
        STG_NEVER;
    stg_world_set_target(w, 0, fail_for_a_minute);
    stg_world_publish(w, 0, 400);
    stg_world_start(w);
    is_ill_at = world_after(w, 10 * STG_S);
    while (world_look(w, 0).breaker == STG_BREAKER_CLOSED)
        stg_world_run(w, world_after(w, 100 * STG_MS));
    stg_world_run(w, world_after(w, 2 * STG_S)); // what was under way ends
    while (world_look(w, 0).breaker != STG_BREAKER_CLOSED) {
        uint32_t under_way = world_look(w, 0).in_flight;

        CHECK(under_way <= 3);
        most = under_way > most ? under_way : most;
        stg_world_run(w, world_after(w, 100 * STG_MS));
    }
    CHECK_U64(most, 3);
    world_script(w, 0, "200");
    stg_world_run(w, STG_NEVER);
    CHECK_U64(world_look(w, 0).delivered, 400);
    CHECK_U64(world_look(w, 0).openings, 1);
    world_end(w);
}

/* Every answer is good, and takes too long for a minute. */
static stg_world_answer answer_late_for_a_minute(stg_world *w, uint32_t l,
                                                 uint64_t position,
                                                 uint64_t attempt)
{
    bool is_ill = stg_world_now(w) >= is_ill_at &&
                  stg_world_now(w) < stg_ns_add(is_ill_at, STG_MIN);

    (void)l;
    (void)position;
    (void)attempt;
    return (stg_world_answer){stg_ok(), is_ill ? 2 * STG_S : 2 * STG_S - 1,
                              true};
}

static uint64_t openings_of_slow_target(const char *policy)
{
    stg_world *w = world_new(1);
    uint64_t openings;

    world_lane(w, policy)->shed_after = STG_NEVER;
    stg_world_set_target(w, 0, answer_late_for_a_minute);
    stg_world_publish(w, 0, 400);
    stg_world_start(w);
    is_ill_at = world_after(w, 10 * STG_S);
    stg_world_run(w, is_ill_at);
    CHECK_U64(world_look(w, 0).openings, 0);
    stg_world_run(w, STG_NEVER);
    CHECK_U64(world_look(w, 0).delivered, 400);
    openings = world_look(w, 0).openings;
    world_end(w);
    return openings;
}

TEST(probes, may_be_too_slow)
{
    CHECK_U64(openings_of_slow_target(FOR_LONG " breaker=50%/5/10s:10s"), 0);
    CHECK_U64(openings_of_slow_target(FOR_LONG " breaker=50%/5/10s:10s "
                                               "breaker-slow=80%/2s"),
              1);
}

/* The first is poison, and the others are taken at their second attempt. */
static stg_world_answer refuse_first(stg_world *w, uint32_t l,
                                     uint64_t position, uint64_t attempt)
{
    (void)l;
    return answer(position != stg_world_position_at(w, 0) && attempt >= 2);
}

TEST(probes, are_by_turns_the_one_tried_most_and_a_new_one)
{
    stg_world *w = world_new(1);

    world_lane(w, STUBBORN)->shed_after = STG_NEVER;
    stg_world_set_target(w, 0, refuse_first);
    stg_world_publish(w, 0, 5);
    stg_world_start(w);
    stg_world_run(w, world_after(w, 191 * STG_S));
    CHECK_TRACE(world_trace(w),
                "     10 ms  0:1 #1 503  wait 1000 ms (backoff)\n"
                "     20 ms  0:2 #1 503  wait 1000 ms (backoff)\n"
                "     30 ms  0:3 #1 503  wait 1000 ms (backoff)\n"
                "     30 ms  0: opened\n"
                "  10040 ms  0:1 #2 503  wait 1000 ms (backoff)\n"
                "  30050 ms  0:4 #1 503  wait 1000 ms (backoff)\n"
                "  70060 ms  0:1 #3 503  wait 1000 ms (backoff)\n"
                " 110070 ms  0:5 #1 503  wait 1000 ms (backoff)\n"
                " 150080 ms  0:1 #4 503  wait 1000 ms (backoff)\n"
                " 190090 ms  0:2 #2 200  done\n"
                " 190090 ms  0: closed\n"
                " 190100 ms  0:3 #2 200  done\n"
                " 190100 ms  0:4 #2 200  done\n"
                " 190110 ms  0:5 #2 200  done\n"
                " 190110 ms  0:1 #5 503  wait 1000 ms (backoff)\n");
    world_free(w);
}

static stg_world_answer take_new(stg_world *w, uint32_t l, uint64_t position,
                                 uint64_t attempt)
{
    (void)l;
    (void)attempt;
    return answer(position > stg_world_position_at(w, 9));
}

/* Parked rows that nothing helps do not keep out what is new. */
TEST(probes, come_to_a_new_one)
{
    stg_world *w = world_new(1);

    world_lane(w, STUBBORN)->shed_after = STG_NEVER;
    stg_world_set_target(w, 0, take_new);
    stg_world_publish(w, 0, 10);
    stg_world_start(w);
    stg_world_run(w, world_after(w, STG_HOUR));
    CHECK_U64(world_look(w, 0).state, STG_LANE_CIRCUIT_OPEN);
    stg_world_publish(w, 0, 1);
    stg_world_run(w, world_after(w, 81 * STG_S)); // two probes
    CHECK_U64(world_look(w, 0).delivered, 1);
    world_free(w);
}

static stg_world_answer take_third_position(stg_world *w, uint32_t l,
                                            uint64_t position, uint64_t attempt)
{
    (void)w;
    (void)l;
    (void)attempt;
    return answer(position % 3 == 0);
}

static stg_world_answer take_sixth(stg_world *w, uint32_t l, uint64_t position,
                                   uint64_t attempt)
{
    (void)w;
    (void)l;
    (void)position;
    return answer(attempt >= 6);
}

/* Thousands are parked, of which 64 are in memory. A probe that fails comes
 * back behind all of them, and yet it is the next one. */
TEST(probes, stay_with_one_of_thousands)
{
    stg_world *w = world_new(1);
    uint64_t starts, delivered;

    world_lane(w,
               "fixed base=1h jitter=none attempts=8 deadline=none "
               "attempt-timeout=5s retry=5xx breaker=20:10s-40s")
        ->shed_after = STG_NEVER;
    world_trace_off(w);
    stg_world_set_target(w, 0, take_third_position);
    stg_world_publish(w, 0, 3000);
    stg_world_start(w);
    stg_world_run(w, world_after(w, 30 * STG_MIN));
    CHECK(world_look(w, 0).parked > 1900);
    CHECK_U64(world_look(w, 0).openings, 0);
    stg_world_set_target(w, 0, take_sixth);
    while (world_look(w, 0).openings == 0)
        stg_world_run(w, world_after(w, STG_MIN));
    starts = stg_world_sum_lane(w, 0).starts;
    delivered = world_look(w, 0).delivered;
    while (world_look(w, 0).delivered == delivered)
        stg_world_run(w, world_after(w, STG_S));
    // One row waits four times for an hour; probes are 40 s apart.
    CHECK(stg_world_sum_lane(w, 0).starts - starts < 4 * 100);
    world_free(w);
}

/* -- any mix --------------------------------------------------------------- */

/* What share of the messages nothing helps, and how many attempts the others
 * want, in each lane. */
static const struct {
    const char *policy;
    uint64_t poison, wants_min, wants_max;
} mixes[] = {
    {AS_PRESET, 20, 1, 3},
    {AS_PRESET, 0, 3, 3},
    {STUBBORN, 30, 2, 6},
    {STUBBORN, 50, 1, 12},
    {"exponential base=100ms cap=5s attempts=8 deadline=none "
     "attempt-timeout=5s retry=5xx breaker=5:200ms-10s",
     70, 2, 8},
    {"fixed base=20s jitter=full attempts=20 deadline=none "
     "attempt-timeout=5s retry=5xx breaker=50%/4/10s:1s-8s",
     10, 3, 20},
};

enum { LANES = sizeof mixes / sizeof *mixes };

/* 0: never; else the attempt that is taken. It is always the same. */
static uint64_t wants(uint32_t l, uint64_t position)
{
    stg_rng rng = stg_rng_seed(position * LANES + l);

    if (stg_rng_upto(&rng, 99) < mixes[l].poison)
        return 0;
    return mixes[l].wants_min +
           stg_rng_upto(&rng, mixes[l].wants_max - mixes[l].wants_min);
}

static stg_world_answer take_some(stg_world *w, uint32_t l, uint64_t position,
                                  uint64_t attempt)
{
    uint64_t needed = wants(l, position);

    (void)w;
    return answer(needed > 0 && attempt >= needed);
}

static bool is_all_taken(stg_world *w, uint32_t l)
{
    uint64_t needed = 0;

    for (uint64_t i = 0; i < stg_world_sum(w).messages; i++)
        needed += wants(l, stg_world_position_at(w, i)) > 0;
    return world_look(w, l).delivered == needed;
}

static void publish_for_hours(stg_world *w, int hours)
{
    for (int i = 0; i < hours * 30; i++) {
        stg_world_publish(w, 0, 5);
        stg_world_run(w, world_after(w, 2 * STG_MIN));
    }
}

/* While new ones come, more than there are probes, every breaker closes now and
 * then. */
static void check_progress(stg_world *w, uint64_t seed)
{
    uint64_t before[LANES];

    publish_for_hours(w, 1);
    for (uint32_t l = 0; l < LANES; l++)
        before[l] = world_look(w, l).delivered;
    publish_for_hours(w, 3);
    for (uint32_t l = 0; l < LANES; l++)
        CHECK_FROM(seed, world_look(w, l).delivered > before[l]);
}

static void wait_for_all(stg_world *w, uint64_t seed)
{
    stg_ns until_at = world_after(w, 200 * STG_HOUR);

    for (uint32_t l = 0; l < LANES; l++)
        while (!is_all_taken(w, l)) {
            CHECK_FROM(seed, stg_world_now(w) < until_at);
            stg_world_run(w, world_after(w, STG_MIN));
        }
}

/* I26, I20 Whatever mix waits, what the target would take is taken, and nothing
 * else keeps the breaker open before. */
TEST(probes, bring_through_all_that_is_taken)
{
    for (uint64_t seed = 0; seed < seeds(4); seed++) {
        stg_world *w = world_new(seed);

        world_trace_off(w);
        for (uint32_t l = 0; l < LANES; l++) {
            world_lane(w, mixes[l].policy)->shed_after = STG_NEVER;
            stg_world_set_target(w, l, take_some);
        }
        stg_world_publish(w, 0, 20 + stg_rng_upto(stg_world_rng(w), 300));
        stg_world_start(w);
        check_progress(w, seed);
        wait_for_all(w, seed);
        world_free(w);
    }
}

/* Nothing of what waits in its partitions is for the lane. */
TEST(probes, are_not_asked_for_where_nothing_waits_for_the_lane)
{
    stg_world *w = world_new(9);

    stg_world_set_partitions(w, 2);
    world_lane(w,
               "fixed base=1s jitter=none attempts=1 deadline=none "
               "retry=5xx breaker=1:1h-1h");
    stg_world_set_followed(w, 0, 1);
    world_script(w, 0, "503 200");
    stg_world_publish(w, 0, 1);
    stg_world_start(w);
    stg_world_run(w, world_after(w, STG_S));
    CHECK_INT(world_look(w, 0).state, STG_LANE_CIRCUIT_OPEN);
    stg_world_publish(w, 1, 3);
    stg_world_run(w, world_after(w, STG_S));
    CHECK(!stg_world_probe(w, 0));
    stg_world_publish(w, 0, 1);
    stg_world_run(w, world_after(w, STG_S));
    CHECK(stg_world_probe(w, 0));
    stg_world_run(w, world_after(w, STG_S));
    CHECK_INT(world_look(w, 0).state, STG_LANE_LIVE);
    world_free(w);
}
