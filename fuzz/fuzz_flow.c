/* Any bytes: lanes and policies, what leaves answer, what people, store and
 * the power supply do. After each event stg_flow_check() holds and the books
 * balance; when the faults end, everything has come to exactly one end. */
#include <errno.h>
#include <string.h>

#include "fuzz/fuzz.h"
#include "sim/delivery/world.h"
#include "tests/malloc_memory.h"

/* An invariant does not hold. */
static void fail(void *ctx, const stg_world_failure *f)
{
    (void)ctx;
    fprintf(stderr, "at %ju ms, lane %d, position %jd: %s: %s\n",
            (uintmax_t)(f->at / STG_MS), (int)f->lane, (intmax_t)f->position,
            f->invariant, f->text);
    abort();
}

/* -- the bytes, in turn ---------------------------------------------------- */

static const uint8_t *bytes, *end;

static uint8_t next(void)
{
    return bytes < end ? *bytes++ : 0;
}

static uint32_t upto(uint32_t most)
{
    return next() % (most + 1);
}

/* Long and short ones: 0 to 12.8 s. */
static stg_ns some_time(void)
{
    uint8_t b = next();

    return (stg_ns)(b & 31) * ((b & 128) != 0 ? 400 * STG_MS : STG_MS);
}

/* -- leaves ---------------------------------------------------------------- */

static stg_world_answer answer_ok(void)
{
    return (stg_world_answer){stg_ok(), some_time() / 10, true};
}

/* What a dial that came to nothing says. */
static stg_world_answer answer_undialed(void)
{
    static const stg_fault faults[] = {
        STG_FAULT_REFUSED,    STG_FAULT_UNREACHABLE,
        STG_FAULT_DNS,        STG_FAULT_DNS_TEMPORARY,
        STG_FAULT_TLS,        STG_FAULT_CONNECT_TIMEOUT,
        STG_FAULT_NO_FILES,   STG_FAULT_NO_PORTS,
        STG_FAULT_NO_BUFFERS, STG_FAULT_INTERRUPTED,
    };
    uint8_t b = next();
    stg_world_answer a = {.took = (b & 64) != 0 ? STG_NEVER : 10 * STG_MS};

    a.outcome = stg_failed(faults[b % 10]);
    if ((b & 32) != 0) // a network of ours that is away
        a.outcome = stg_failed_errno(ENETUNREACH);
    a.outcome.unsent = true;
    return a;
}

static stg_world_answer answer(stg_world *w, uint32_t l, uint64_t position,
                               uint64_t attempt)
{
    stg_world_answer a = {.took = 10 * STG_MS};

    (void)position;
    (void)attempt;
    stg_world_set_dialing(w, l, upto(1) == 0);
    switch (upto(9)) {
    case 0:
        return answer_undialed();
    case 1:
        a.outcome = stg_failed(STG_FAULT_RESET);
        a.is_processed = true;
        return a;
    case 2:
        a.took = STG_NEVER;
        return a;
    case 3:
        a.outcome = stg_answered_after(429, some_time());
        return a;
    case 4:
        a.outcome = stg_answered(503);
        return a;
    case 5:
        a.outcome = stg_answered(404);
        return a;
    case 6:
        stg_world_set_signing_in(w, l, upto(3) > 0);
        a.outcome = stg_answered(401);
        return a;
    default:
        return answer_ok();
    }
}

static stg_world_answer answer_well(stg_world *w, uint32_t l, uint64_t position,
                                    uint64_t attempt)
{
    (void)w;
    (void)l;
    (void)position;
    (void)attempt;
    return (stg_world_answer){stg_ok(), 10 * STG_MS, true};
}

enum { LANES_MAX = 12 };

/* -- a world --------------------------------------------------------------- */

static const char *const policies[] = {
    "broadcast",
    "webhook",
    "fixed base=400ms jitter=none attempts=3 deadline=5s reset-after=2s "
    "retry=any",
    "fixed base=100ms jitter=none attempts=3 attempt-timeout=1s deadline=none "
    "retry=5xx,429,timeout,reset",
    "fixed base=1s jitter=full attempts=5 attempt-timeout=500ms deadline=none "
    "retry=any breaker=3:1s-4s",
    "exponential base=50ms attempts=4 attempt-timeout=1s deadline=5s retry=any "
    "budget=tokens:3:1/s budget-empty=wait",
    "fixed base=10s attempts=2 attempt-timeout=1s deadline=none retry=any "
    "budget=tokens:5:1/s breaker=50%/4/5s:500ms-2s",
    "fixed base=100ms jitter=full attempts=4 attempt-timeout=1s deadline=5s "
    "retry=any budget=aws:20:5:10:3 rate=20/s",
};

enum { POLICIES = sizeof policies / sizeof *policies };

static void choose_options(stg_lane_options *o)
{
    o->in_flight_max = 1 + upto(7);
    o->shed_after = upto(3) * STG_S;
    o->parked_max = 1 + upto(100);
    o->burst = upto(3);
}

/* Whose partitions they are: the queue's, or of hubs that have each a store of
 * its own or share one. */
static bool make_partitions(stg_world *w, uint32_t *count)
{
    uint8_t b = next();

    *count = 1 + b % 3;
    stg_world_set_partitions(w, *count);
    if (b < 224)
        return false;
    stg_world_join_group(w, (b & 16) != 0);
    stg_world_set_too_large(w, (b & 8) != 0 ? 5 : 0);
    return true;
}

static stg_world *make_world(uint32_t *partitions, bool *moves)
{
    const stg_world_hooks hooks = {.memory = STG_MALLOC_MEMORY, .failed = fail};
    stg_world *w;
    uint8_t seed = next();
    uint32_t lanes = 1 + upto(4);

    stg_world_new(&w, &hooks, seed);
    *moves = make_partitions(w, partitions);
    stg_world_set_delays(w, true);
    stg_world_options(w)->memory_max = 1 << 20;
    stg_world_options(w)->in_flight_max = 1 + upto(20);
    stg_world_options(w)->drain = some_time();
    stg_world_set_keys(w, upto(4));
    if (seed >= 192)
        stg_world_set_some_times(w, 5 * STG_S);
    stg_world_set_size(w, 12 + 250 * (size_t)next());
    for (uint32_t l = 0; l < lanes; l++) {
        stg_lane_options *o =
            stg_world_add_lane(w, policies[upto(POLICIES - 1)]);

        o->order = (stg_order)upto(2);
        choose_options(o);
        stg_world_set_filter(w, l, upto(3) == 0 ? 2 : 0);
        stg_world_set_target(w, l, answer);
    }
    stg_world_publish(w, 0, upto(100));
    return w;
}

/* -- what happens ---------------------------------------------------------- */

static void change(stg_world *w, uint32_t lane)
{
    stg_lane_options o = stg_lane_options_default(NULL);

    choose_options(&o);
    stg_world_copy_options(w, lane, &o);
    o.order = upto(3) == 0 ? (stg_order)upto(2) : o.order;
    stg_world_change_lane(w, lane, &o, policies[upto(POLICIES - 1)], NULL);
}

/* One that is new, or other options of all. */
static void settle_anew(stg_world *w)
{
    uint32_t what = upto(2);

    stg_world_options(w)->in_flight_max = 1 + upto(20);
    if (what == 0 || stg_world_sum(w).lanes == LANES_MAX) {
        stg_world_change(w, NULL);
        return;
    }
    if (what == 1)
        stg_world_join_lane(w, policies[upto(POLICIES - 1)], false);
    else
        stg_world_join_lane(w, policies[upto(POLICIES - 1)], true);
    stg_world_set_target(w, stg_world_sum(w).lanes - 1, answer);
}

static void do_with_lane(stg_world *w, uint32_t what)
{
    uint32_t lane = upto(stg_world_sum(w).lanes - 1);

    if (stg_world_sum_lane(w, lane).was_removed) {
        stg_world_add_again(w, lane);
        return;
    }
    switch (what) {
    case 0:
        stg_world_pause(w, lane, true);
        break;
    case 1:
        stg_world_pause(w, lane, false);
        break;
    case 2:
        stg_world_remove(w, lane);
        break;
    case 3:
        stg_world_replay(w, lane, upto(20));
        break;
    default:
        change(w, lane);
    }
}

/* What its requests need of the hub is missing, or there again. */
static void gate(stg_world *w, bool is_gated)
{
    uint32_t lane = upto(stg_world_sum(w).lanes - 1);

    if (!stg_world_sum_lane(w, lane).was_removed)
        stg_world_gate(w, lane, is_gated);
}

static void do_with_store(stg_world *w, uint32_t what)
{
    switch (what) {
    case 0:
        stg_world_set_store_room(w, upto(20));
        break;
    case 1:
        stg_world_set_store_room(w, UINT64_MAX);
        break;
    case 2:
        stg_world_lose_answers(w, 1);
        break;
    case 3:
        stg_world_set_store_delay(w, some_time());
        break;
    default:
        stg_world_set_fetch_delay(w, some_time());
    }
}

static void do_with_hub(stg_world *w, uint32_t what)
{
    uint64_t i = next();

    switch (what) {
    case 0:
        stg_world_crash(w, some_time());
        break;
    case 1:
        stg_world_stop(w);
        stg_world_restart(w, some_time());
        break;
    case 2:
        stg_world_set_wall_back(w, STG_MIN);
        stg_world_crash(w, 0);
        break;
    case 3:
        // Not each: a stop without any memory has no end.
        stg_world_fail_allocations(w, 2 + upto(62));
        break;
    default:
        if (i < stg_world_sum(w).messages)
            stg_world_retain(w, stg_world_partition_at(w, i),
                             stg_world_position_at(w, i));
    }
}

/* Partitions that come and go, and what the other hubs do. */
static void do_with_partition(stg_world *w, uint32_t what, uint32_t p)
{
    uint64_t i = next();

    switch (what) {
    case 0:
        stg_world_revoke(w, p, (stg_ns)i * 10 * STG_MS);
        break;
    case 1:
        stg_world_lose(w, p);
        break;
    case 2:
        stg_world_fence(w, p);
        stg_world_settle_elsewhere(w, p, i % 32);
        break;
    case 3:
        stg_world_settle_elsewhere(w, p, i % 64);
        break;
    case 4:
        if (i < stg_world_sum(w).messages)
            stg_world_expire(w, stg_world_partition_at(w, i),
                             stg_world_position_at(w, i));
        break;
    default:
        stg_world_assign(w, p);
    }
}

static void happen(stg_world *w, uint32_t partitions, bool moves)
{
    uint8_t b = next();

    if (moves && b >= 192) { // in place of half of what store and hub do
        do_with_partition(w, b % 8, (b >> 3) % partitions);
        return;
    }

    if (b < 80)
        stg_world_steps(w, b);
    else if (b < 110)
        stg_world_run(w, stg_ns_add(stg_world_now(w), some_time()));
    else if (b < 140 && stg_world_sum(w).messages < 1000)
        stg_world_publish(w, b % partitions, upto(60));
    else if (b < 180)
        do_with_lane(w, b % 5);
    else if (b < 186)
        settle_anew(w);
    else if (b < 190)
        gate(w, b % 2 == 0);
    else if (b < 220)
        do_with_store(w, b % 5);
    else
        do_with_hub(w, b % 5);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint32_t partitions;
    bool moves;
    stg_world *w;

    bytes = data;
    end = data + (size < 4096 ? size : 4096);
    w = make_world(&partitions, &moves);
    stg_world_start(w);
    for (uint32_t i = 0; i < 100 && bytes < end; i++)
        happen(w, partitions, moves);
    stg_world_heal(w, answer_well);
    stg_world_free(w);
    return 0;
}
