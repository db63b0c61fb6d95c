/* Whatever leaves, store, people and the power supply do: I1 to I7, I11, I13,
 * I16 to I18, I20, I22, I34. */
#include "tests/flow/world.h"

static const char *const policies[] = {
    "fixed base=100ms jitter=none attempts=3 attempt-timeout=1s deadline=none "
    "retry=5xx,429,timeout,reset",
    "fixed base=100ms jitter=full attempts=5 attempt-timeout=500ms "
    "deadline=none retry=any breaker=5:1s-4s",
    "exponential base=50ms attempts=4 attempt-timeout=1s deadline=20s "
    "retry=any budget=ratio:0.2+10/s budget-empty=wait",
    "fixed base=1s attempts=2 attempt-timeout=1s deadline=none "
    "budget=tokens:5:1/s breaker=50%/10/5s:500ms-2s",
    "fixed base=200ms jitter=50% attempts=6 attempt-timeout=700ms "
    "deadline=none retry=any once=404 breaker=3:300ms-2s",
    "fixed base=100ms jitter=full attempts=4 attempt-timeout=600ms "
    "deadline=none retry=any budget=aws:40:5:10:3",
    "fixed base=100ms jitter=full attempts=4 attempt-timeout=1s deadline=none "
    "retry=any breaker=5:1s-4s rate=20/s",
    "fixed base=50ms jitter=full attempts=5 attempt-timeout=1s deadline=none "
    "retry=any budget=share:30%+1 budget-empty=wait",
    "fixed base=100ms jitter=full attempts=4 attempt-timeout=700ms "
    "deadline=20s retry=any budget=share:50%+2 breaker=5:200ms-1s",
    "fixed base=100ms jitter=full attempts=4 attempt-timeout=500ms "
    "deadline=none retry=any breaker=4:300ms-2s breaker-probes=2/3",
    "fixed base=100ms jitter=full attempts=4 attempt-timeout=500ms "
    "deadline=none retry=any breaker=50%/4/2s:300ms-2s breaker-probes=2/3 "
    "breaker-slow=60%/200ms",
};

enum { POLICIES = sizeof policies / sizeof *policies, LANES_MAX = 70 };

/* -- leaves ---------------------------------------------------------------- */

static stg_world_answer answer_any(stg_world *w, uint32_t l, uint64_t position,
                                   uint64_t attempt)
{
    static const int statuses[] = {200, 200, 200, 503, 500, 429, 404};
    stg_rng *rng = stg_world_rng(w);
    stg_world_answer a = {.took = stg_rng_upto(rng, 300 * STG_MS)};

    (void)l;
    (void)position;
    (void)attempt;
    switch (stg_rng_upto(rng, 11)) {
    case 0:
        a.outcome = stg_failed(STG_FAULT_REFUSED);
        break;
    case 1:
        a.outcome = stg_failed(STG_FAULT_RESET);
        a.is_processed = stg_rng_upto(rng, 1) == 1;
        break;
    case 2:
        a.took = STG_NEVER;
        a.is_processed = stg_rng_upto(rng, 1) == 1;
        break;
    case 3:
        a.outcome = stg_answered_after(429, stg_rng_upto(rng, 2 * STG_S));
        break;
    default:
        a.outcome = stg_answered(statuses[stg_rng_upto(rng, 6)]);
        a.is_processed = a.outcome.fault == STG_FAULT_NONE;
    }
    return a;
}

static stg_world_answer answer_well(stg_world *w, uint32_t l, uint64_t position,
                                    uint64_t attempt)
{
    (void)l;
    (void)position;
    (void)attempt;
    return (stg_world_answer){
        stg_ok(), stg_rng_upto(stg_world_rng(w), 50 * STG_MS), true};
}

static stg_world_answer answer_badly(stg_world *w, uint32_t l,
                                     uint64_t position, uint64_t attempt)
{
    (void)position;
    (void)attempt;
    if (l % 2 == 0)
        return (stg_world_answer){stg_failed(STG_FAULT_REFUSED), STG_MS, false};
    return (stg_world_answer){stg_ok(), STG_NEVER,
                              stg_rng_upto(stg_world_rng(w), 9) == 0};
}

/* -- a world --------------------------------------------------------------- */

static void choose_options(stg_lane_options *o, stg_rng *rng)
{
    o->in_flight_max = 1 + (uint32_t)stg_rng_upto(rng, 15);
    o->shed_after =
        stg_rng_upto(rng, 1) == 0 ? stg_rng_upto(rng, 3) * STG_S : STG_MIN;
    o->parked_max = 5 + (uint32_t)stg_rng_upto(rng, 200);
    o->burst = (uint32_t)stg_rng_upto(rng, 5);
    o->is_limit_fixed = o->in_flight_max % 4 == 0;
}

/* Half of the lanes follow some of the partitions only. */
static void choose_partitions(stg_world *w, stg_rng *rng)
{
    for (uint32_t i = 0; i < stg_world_sum(w).lanes; i++)
        if (stg_rng_upto(rng, 1) == 0)
            stg_world_set_followed(w, i, (uint32_t)stg_rng_upto(rng, 7));
}

static void make_lanes(stg_world *w, stg_rng *rng, uint64_t lanes)
{
    for (uint64_t i = 0; i < lanes; i++) {
        stg_lane_options *o =
            world_lane(w, policies[stg_rng_upto(rng, POLICIES - 1)]);

        o->order = (stg_order)stg_rng_upto(rng, 2);
        choose_options(o, rng);
        if (stg_rng_upto(rng, 3) == 0)
            stg_world_set_filter(w, (uint32_t)i, 2 + stg_rng_upto(rng, 3));
        stg_world_set_target(w, (uint32_t)i,
                             stg_rng_upto(rng, 4) == 0 ? answer_badly
                                                       : answer_any);
    }
}

static uint32_t make_partitions(stg_world *w, stg_rng *rng)
{
    uint32_t count = 1 + (uint32_t)stg_rng_upto(rng, 2);

    stg_world_set_partitions(w, count);
    return count;
}

static void publish(stg_world *w, stg_rng *rng, uint32_t partitions,
                    uint64_t most)
{
    for (uint32_t p = 0; p < partitions; p++)
        stg_world_publish(w, p, stg_rng_upto(rng, most / partitions));
}

/* -- what may happen to it ------------------------------------------------- */

static void disturb_hub(stg_world *w, stg_rng *rng)
{
    switch (stg_rng_upto(rng, 3)) {
    case 0:
        stg_world_stop(w);
        stg_world_restart(w, stg_rng_upto(rng, STG_S));
        break;
    case 1:
        stg_world_set_wall_back(w, stg_rng_upto(rng, STG_HOUR));
        stg_world_crash(w, stg_rng_upto(rng, STG_S));
        break;
    case 2:
        stg_world_set_wall_forward(w, stg_rng_upto(rng, STG_MIN));
        stg_world_crash(w, stg_rng_upto(rng, STG_S));
        break;
    default:
        stg_world_crash(w, stg_rng_upto(rng, STG_S));
    }
}

static void disturb_store(stg_world *w, stg_rng *rng)
{
    switch (stg_rng_upto(rng, 4)) {
    case 0:
        stg_world_set_store_room(w, stg_rng_upto(rng, 50));
        break;
    case 1:
        stg_world_set_store_room(w, UINT64_MAX);
        break;
    case 2:
        stg_world_lose_answers(w, 1 + (uint32_t)stg_rng_upto(rng, 2));
        break;
    case 3:
        stg_world_set_fetch_delay(w, stg_rng_upto(rng, 200 * STG_MS));
        break;
    default:
        stg_world_set_store_delay(w, stg_rng_upto(rng, 100 * STG_MS));
    }
}

static void change(stg_world *w, stg_rng *rng, uint32_t lane)
{
    stg_lane_options o = stg_lane_options_default(NULL);

    choose_options(&o, rng);
    stg_world_copy_options(w, lane, &o); // what may not change, or need not
    if (stg_rng_upto(rng, 3) == 0)
        o.order = (stg_order)stg_rng_upto(rng, 2);
    stg_world_change_lane(w, lane, &o,
                          stg_rng_upto(rng, 1) == 0
                              ? NULL
                              : policies[stg_rng_upto(rng, POLICIES - 1)],
                          NULL);
}

static void join(stg_world *w, stg_rng *rng)
{
    const char *policy = policies[stg_rng_upto(rng, POLICIES - 1)];

    if (stg_world_sum(w).lanes == LANES_MAX)
        return;
    if (stg_rng_upto(rng, 1) == 0)
        world_join(w, policy, false);
    else
        world_join(w, policy, true);
    stg_world_set_target(w, stg_world_sum(w).lanes - 1, answer_any);
}

static void change_all(stg_world *w, stg_rng *rng)
{
    stg_world_options(w)->in_flight_max = 1 + (uint32_t)stg_rng_upto(rng, 40);
    stg_world_options(w)->budget =
        (stg_budget_options){.kind = STG_BUDGET_NONE};
    if (stg_rng_upto(rng, 1) == 0)
        stg_world_options(w)->budget = (stg_budget_options){
            .kind = STG_BUDGET_TOKENS,
            .capacity = 1 + (uint32_t)stg_rng_upto(rng, 50),
            .rate = 50000};
    else if (stg_rng_upto(rng, 1) == 0)
        stg_world_options(w)->budget =
            (stg_budget_options){.kind = STG_BUDGET_SHARE,
                                 .capacity = 1 + (uint32_t)stg_rng_upto(rng, 5),
                                 .ratio = (uint32_t)stg_rng_upto(rng, 1000)};
    stg_world_change(w, NULL);
}

static void disturb_lane(stg_world *w, stg_rng *rng)
{
    uint32_t lane = (uint32_t)stg_rng_upto(rng, stg_world_sum(w).lanes - 1);
    uint64_t what = stg_rng_upto(rng, 8);

    if (stg_world_sum_lane(w, lane).was_removed) {
        stg_world_add_again(w, lane);
        return;
    }
    if (what < 2)
        stg_world_pause(w, lane, what == 1);
    else if (what == 2)
        stg_world_remove(w, lane);
    else if (what == 3)
        change(w, rng, lane);
    else if (what < 6)
        stg_world_replay(w, lane, (uint32_t)stg_rng_upto(rng, 20));
    else if (what == 6)
        stg_world_set_target(w, lane, answer_any);
    else if (what == 7)
        join(w, rng);
    else
        change_all(w, rng);
}

static void disturb_log(stg_world *w, stg_rng *rng, uint32_t partitions)
{
    uint64_t i = stg_rng_upto(rng, stg_world_sum(w).messages);

    if (stg_rng_upto(rng, 3) > 0)
        publish(w, rng, partitions, 150);
    else if (i < stg_world_sum(w).messages)
        stg_world_retain(w, stg_world_partition_at(w, i),
                         stg_world_position_at(w, i));
}

/* Partitions that come and go, and what the other hubs do. */
static void disturb_part(stg_world *w, stg_rng *rng, uint32_t partitions)
{
    uint32_t p = (uint32_t)stg_rng_upto(rng, partitions - 1);
    uint64_t i = stg_rng_upto(rng, stg_world_sum(w).messages);

    switch (stg_rng_upto(rng, 11)) {
    case 0:
    case 1:
    case 2:
        stg_world_revoke(w, p, stg_rng_upto(rng, STG_S));
        break;
    case 3:
        stg_world_lose(w, p);
        break;
    case 4:
        stg_world_fence(w, p);
        stg_world_settle_elsewhere(w, p, stg_rng_upto(rng, 30));
        break;
    case 5:
    case 6:
        stg_world_settle_elsewhere(w, p, stg_rng_upto(rng, 60));
        break;
    case 7:
        if (i < stg_world_sum(w).messages)
            stg_world_expire(w, stg_world_partition_at(w, i),
                             stg_world_position_at(w, i));
        break;
    default:
        stg_world_assign(w, p);
    }
}

static void disturb(stg_world *w, stg_rng *rng, uint32_t partitions,
                    bool has_parts)
{
    if (has_parts && stg_rng_upto(rng, 1) == 0) {
        disturb_part(w, rng, partitions);
        return;
    }
    switch (stg_rng_upto(rng, 6)) {
    case 0:
        disturb_hub(w, rng);
        break;
    case 1:
        disturb_store(w, rng);
        break;
    case 2:
    case 3:
        disturb_lane(w, rng);
        break;
    case 4:
        stg_world_fail_allocations(
            w, stg_rng_upto(rng, 1) == 0 ? 0
                                         : 2 + (uint32_t)stg_rng_upto(rng, 40));
        break;
    default:
        disturb_log(w, rng, partitions);
    }
}

/* Whose partitions there are. */
typedef enum kind {
    QUEUE,
    OWN_STORE,    /* of a group of hubs, each with its own store */
    SHARED_STORE, /* or with one */
    OWN_TOPICS,   /* OWN_STORE, and lanes that follow some partitions only */
} kind;

/* How often flow is asked: after so many events, and ends. */
typedef struct asks {
    uint32_t events, ends;
} asks;

static void live_busily(uint64_t seed, uint64_t lanes_max,
                        uint64_t messages_max, kind of, asks how)
{
    stg_world *w = world_new(seed);
    stg_rng rng = stg_rng_seed(seed + 1000000);
    uint32_t partitions = make_partitions(w, &rng);

    world_trace_off(w);
    stg_world_set_turn(w, how.events, how.ends, 20 * STG_MS);
    if (of != QUEUE)
        stg_world_join_group(w, of != SHARED_STORE);
    if (of != QUEUE && stg_rng_upto(&rng, 3) == 0)
        stg_world_set_too_large(w, 2 + stg_rng_upto(&rng, 20));
    stg_world_options(w)->memory_max =
        (1 << 20) + (size_t)stg_rng_upto(&rng, 1 << 20);
    stg_world_options(w)->in_flight_max = 1 + (uint32_t)stg_rng_upto(&rng, 40);
    stg_world_options(w)->drain = stg_rng_upto(&rng, 2 * STG_S);
    if (stg_rng_upto(&rng, 3) == 0)
        stg_world_options(w)->budget = (stg_budget_options){
            .kind = STG_BUDGET_TOKENS, .capacity = 20, .rate = 50000};
    stg_world_set_size(
        w, 20 + (size_t)stg_rng_upto(&rng, stg_rng_upto(&rng, 3) == 0 ? 60000
                                                                      : 4000));
    stg_world_set_keys(w, stg_rng_upto(&rng, 10));
    if (stg_rng_upto(&rng, 3) == 0)
        stg_world_set_some_times(w, 1 + stg_rng_upto(&rng, 20 * STG_S));
    make_lanes(w, &rng, 1 + stg_rng_upto(&rng, lanes_max - 1));
    if (of == OWN_TOPICS)
        choose_partitions(w, &rng);
    publish(w, &rng, partitions, messages_max);
    stg_world_start(w);
    for (uint64_t i = stg_rng_upto(&rng, 20); i > 0; i--) {
        stg_world_steps(w, stg_rng_upto(&rng, 400));
        disturb(w, &rng, partitions, of != QUEUE);
    }
    stg_world_heal(w, answer_well);
    world_free(w);
}

static void live(uint64_t seed, uint64_t lanes_max, uint64_t messages_max,
                 kind of)
{
    live_busily(seed, lanes_max, messages_max, of, (asks){1, 1});
}

TEST(any, loses_nothing_whatever_happens)
{
    for (uint64_t seed = 0; seed < seeds(600); seed++)
        live(seed, 6, 200, QUEUE);
}

TEST(any, loses_nothing_with_many_lanes)
{
    for (uint64_t seed = 0; seed < seeds(30); seed++)
        live(seed, 60, 100, QUEUE);
}

TEST(any, loses_nothing_of_partitions_that_come_and_go)
{
    for (uint64_t seed = 0; seed < seeds(120); seed++)
        live(seed, 6, 200, OWN_STORE);
}

TEST(any, loses_nothing_of_partitions_that_hubs_share)
{
    for (uint64_t seed = 0; seed < seeds(120); seed++)
        live(seed, 6, 200, SHARED_STORE);
}

TEST(any, loses_nothing_of_partitions_that_some_lanes_follow)
{
    for (uint64_t seed = 0; seed < seeds(120); seed++)
        live(seed, 6, 200, OWN_TOPICS);
}

/* Whether flow is asked once in a long turn or after every few ends: the same
 * invariants. */
TEST(any, loses_nothing_however_often_it_is_asked)
{
    static const asks busy[] = {
        {16, 16}, {156, 156}, {156, 1}, {156, 4}, {156, STG_ENDS_MAX}};

    for (uint64_t seed = 0; seed < seeds(40); seed++)
        for (size_t i = 0; i < sizeof busy / sizeof *busy; i++) {
            live_busily(seed, 6, 200, (kind)(seed % 4), busy[i]);
            live_busily(seed, 60, 100, (kind)(seed % 4), busy[i]);
        }
}

/* Of thousands of seeds, those that once found something. */
TEST(any, loses_nothing_where_something_was_found)
{
    static const uint64_t own[] = {217,  418,  2393, 2487, 2770, 3217, 3922,
                                   5315, 6312, 6820, 8865, 8877, 9852};
    static const uint64_t shared[] = {182,  216,  418,  1001, 1088, 1454,
                                      1803, 1836, 1966, 2443, 2464, 2469,
                                      4435, 4608, 6312, 8877, 9215, 9923};

    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        live(own[i], 6, 200, OWN_STORE);
    for (size_t i = 0; i < sizeof shared / sizeof *shared; i++)
        live(shared[i], 6, 200, SHARED_STORE);
}
