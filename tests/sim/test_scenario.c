#include "sim/delivery/scenario.h"

#include <string.h>

#include <stagger/text.h>

#include "tests/harness.h"
#include "tests/sim/memory.h"

/* -- a fault as a text ------------------------------------------------------- */

static stg_world_scenario_fault read_fault(const char *text)
{
    stg_world_scenario_fault f = {.share = 0};
    stg_error err;

    if (stg_world_scenario_read_fault(text, &f, &err) != STG_OK)
        harness_fail(__FILE__, __LINE__, "%s: %s", text, err.text);
    return f;
}

TEST(scenario, reads_what_a_target_answers_and_when)
{
    stg_world_scenario_fault f = read_fault("leaf3 refused");

    CHECK_STR(f.target, "leaf3");
    CHECK_INT(f.what.outcome.fault, STG_FAULT_REFUSED);
    CHECK_U64(f.from, STG_MIN);
    CHECK_U64(f.until, STG_NEVER);
    CHECK_INT(f.share, 100);
    f = read_fault("  *  429+30  share=5%  for=10m  from=0s ");
    CHECK_STR(f.target, "*");
    CHECK_STR(f.answer, "429+30");
    CHECK_INT(f.what.outcome.code, 429);
    CHECK_U64(f.what.took, 0); // as long as the target takes
    CHECK_U64(f.from, 0);
    CHECK_U64(f.until, 10 * STG_MIN);
    CHECK_INT(f.share, 5);
    CHECK_U64(read_fault("a 200 took=3s").what.took, 3 * STG_S);
    CHECK_U64(read_fault("a hang").what.took, STG_NEVER);
}

TEST(scenario, says_what_is_wrong_with_a_fault)
{
    static const char *const texts[][2] = {
        {"", "the name of a target, or *, found nothing"},
        {"leaf3", "expected an answer: 503, 429+60, hang, refused"},
        {"leaf3 down", "found down"},
        {"leaf3 503 soon", "expected from=, for=, took= or share=, found soon"},
        {"leaf3 503 from=1", "from: expected a time"},
        {"leaf3 503 for=0s", "for: expected a time"},
        {"leaf3 503 took=x", "took: expected a time"},
        {"leaf3 503 share=0%", "share: expected 1% to 100%"},
        {"leaf3 503 share=101%", "share: expected 1% to 100%"},
        {"leaf3 503 share=5", "share: expected 1% to 100%"},
    };

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        stg_world_scenario_fault f = {.share = 77};
        stg_error err;

        CHECK_INT(stg_world_scenario_read_fault(texts[i][0], &f, &err),
                  STG_INVALID);
        CHECK_INT(f.share, 77);
        if (strstr(err.text, texts[i][1]) == NULL)
            harness_fail(__FILE__, __LINE__, "%s: %s", texts[i][0], err.text);
    }
}

/* -- a run ------------------------------------------------------------------- */

enum { TARGETS = 3 };

typedef struct study {
    test_memory told;
    stg_memory memory;
    stg_policy policy;
    stg_world_scenario_target targets[TARGETS];
    stg_world_scenario_fault faults[2];
    stg_world_scenario s;
    stg_world_scenario_hooks hooks;
    stg_world_scenario_result r;
    stg_error err;
    uint64_t stored, looked, passed, openings, closings, dead;
} study;

static void prepare(study *y, const char *policy, uint32_t rate, stg_ns load)
{
    static const char *const names[TARGETS] = {"a", "b", "c"};

    *y = (study){.told = {.left = SIZE_MAX}};
    y->memory = test_memory_of(&y->told);
    if (stg_policy_parse(&y->policy, policy, &y->err) != STG_OK)
        harness_fail(__FILE__, __LINE__, "%s", y->err.text);
    for (size_t i = 0; i < TARGETS; i++)
        y->targets[i] = (stg_world_scenario_target){
            names[i], stg_lane_options_default(&y->policy)};
    y->s = (stg_world_scenario){.flow = stg_flow_options_default(),
                                .targets = y->targets,
                                .target_count = TARGETS,
                                .faults = y->faults,
                                .rate = rate * 1000,
                                .load = load,
                                .size = 100,
                                .latency = 20 * STG_MS,
                                .retention = STG_NEVER,
                                .seed = 7};
    y->hooks = (stg_world_scenario_hooks){.memory = y->memory, .ctx = y};
}

static void add(study *y, const char *fault)
{
    y->faults[y->s.fault_count++] = read_fault(fault);
}

static void go(study *y)
{
    if (stg_world_scenario_run(&y->s, &y->hooks, &y->r, &y->err) != STG_OK)
        harness_fail(__FILE__, __LINE__, "%s", y->err.text);
    if (y->r.failure.invariant != NULL)
        harness_fail(__FILE__, __LINE__, "%s: %s", y->r.failure.invariant,
                     y->r.failure.text);
}

static void finish(study *y)
{
    stg_world_scenario_free(&y->r, &y->memory);
    CHECK_U64(y->told.held, 0);
}

/* Each message has one end, and the intervals come to the sums. */
static void check_books(const study *y)
{
    const stg_world_scenario_result *r = &y->r;

    CHECK(r->interval_count <= STG_WORLD_SCENARIO_INTERVALS);
    CHECK(r->interval * r->interval_count >= r->lasted);
    for (size_t t = 0; t < TARGETS; t++) {
        const stg_world_scenario_sum *sum = &r->sums[t];
        stg_world_scenario_interval all = {.starts = 0};

        for (size_t i = 0; i < r->interval_count; i++) {
            const stg_world_scenario_interval *in =
                &r->intervals[i * TARGETS + t];

            all.starts += in->starts;
            all.delivered += in->delivered;
            all.dead += in->dead;
            all.waiting = in->waiting;
        }
        CHECK_U64(sum->delivered + sum->dead + sum->waiting, sum->messages);
        CHECK_U64(all.starts, sum->starts);
        CHECK_U64(all.delivered, sum->delivered);
        CHECK_U64(all.dead, sum->dead);
        CHECK_U64(all.waiting, sum->waiting);
        CHECK(sum->p50 <= sum->p99 && sum->p99 <= sum->slowest);
    }
}

static const char patient[] =
    "fixed base=1s jitter=full attempts=100 deadline=1h "
    "retry=default,refused";

TEST(scenario, delivers_all_where_nothing_fails)
{
    study y;

    prepare(&y, patient, 50, 2 * STG_MIN);
    go(&y);
    check_books(&y);
    CHECK_U64(y.r.all.dead + y.r.all.waiting, 0);
    CHECK_U64(y.r.all.starts, y.r.all.delivered);
    CHECK_U64(y.r.all.late, 0);
    // 50 a second for two minutes, by chance.
    CHECK(y.r.sums[0].messages > 5700 && y.r.sums[0].messages < 6300);
    // Half to one and a half times the latency.
    CHECK(y.r.all.p50 > 18 * STG_MS && y.r.all.p50 < 22 * STG_MS);
    CHECK(y.r.sums[1].slowest < 60 * STG_MS);
    finish(&y);
}

TEST(scenario, keeps_what_an_outage_holds_up_and_delays_nobody_else)
{
    study y;

    prepare(&y, patient, 50, 5 * STG_MIN);
    add(&y, "b refused from=1m for=2m");
    go(&y);
    check_books(&y);
    CHECK_U64(y.r.all.dead + y.r.all.waiting, 0);
    CHECK(y.r.sums[1].waiting_most > 5000);
    CHECK(y.r.sums[1].slowest > 110 * STG_S);
    CHECK(y.r.sums[1].late > 100 * STG_S);
    CHECK(y.r.sums[1].late_until > 170 * STG_S);
    CHECK_U64(y.r.sums[0].late + y.r.sums[2].late, 0);
    CHECK(y.r.sums[0].slowest < 100 * STG_MS);
    finish(&y);
}

TEST(scenario, fails_a_share_of_the_attempts_of_each_target)
{
    study y;

    prepare(&y, patient, 50, 5 * STG_MIN);
    add(&y, "* 503 from=0s share=20%");
    go(&y);
    check_books(&y);
    for (size_t t = 0; t < TARGETS; t++) {
        double each = (double)y.r.sums[t].starts / (double)y.r.sums[t].messages;

        CHECK(each > 1.2 && each < 1.3);
    }
    finish(&y);
}

/* Of more than four minutes intervals are merged, and nothing of them is lost. */
TEST(scenario, has_so_many_intervals_at_most)
{
    study y;

    prepare(&y, patient, 2, 3 * STG_HOUR);
    add(&y, "a 500 from=1h for=10m");
    go(&y);
    check_books(&y);
    CHECK(y.r.interval == 64 * STG_S);
    finish(&y);
}

TEST(scenario, does_not_wait_for_a_target_that_is_paused)
{
    study y;

    prepare(&y, patient, 10, STG_MIN);
    y.targets[2].lane.is_paused = true;
    go(&y);
    check_books(&y);
    CHECK(y.r.lasted < 2 * STG_MIN);
    CHECK_U64(y.r.sums[2].waiting, y.r.sums[2].messages);
    finish(&y);
}

/* What a target took when its attempt had ended is dead, and was not delivered. */
TEST(scenario, has_no_delay_of_what_came_too_late)
{
    study y;

    prepare(&y, "attempts=1 attempt-timeout=1s deadline=none", 5, STG_MIN);
    add(&y, "a 200 from=0s for=20h took=5s");
    go(&y);
    check_books(&y);
    CHECK_U64(y.r.sums[0].delivered, 0);
    CHECK_U64(y.r.sums[0].slowest, 0);
    finish(&y);
}

static void on_told(void *ctx, const stg_action *notice, stg_ns now)
{
    study *y = ctx;

    CHECK(now >= STG_S);
    y->openings += notice->tell.what == STG_TELL_OPENED;
    y->closings += notice->tell.what == STG_TELL_CLOSED;
}

static void on_stored(void *ctx, const stg_group *group, stg_ns now)
{
    study *y = ctx;

    (void)now;
    y->stored++;
    for (size_t i = 0; i < group->change_count; i++)
        y->dead += group->changes[i].kind == STG_CHANGE_DEAD;
}

static void on_looked(void *ctx, uint32_t lane, uint64_t waiting, stg_ns oldest,
                      stg_ns now)
{
    study *y = ctx;

    (void)now;
    CHECK(lane < TARGETS);
    CHECK(waiting < 10000 && oldest < STG_HOUR);
    y->looked++;
}

static bool on_passed(void *ctx, stg_ns now)
{
    study *y = ctx;

    (void)now;
    return ++y->passed < 90;
}

TEST(scenario, tells_of_what_happens_until_it_is_interrupted)
{
    study y;

    prepare(&y, "attempts=1 breaker=5:10s", 20, 5 * STG_MIN);
    add(&y, "c reset from=10s for=40s");
    y.hooks.told = on_told;
    y.hooks.stored = on_stored;
    y.hooks.looked = on_looked;
    y.hooks.passed = on_passed;
    go(&y);
    check_books(&y);
    CHECK(y.r.is_interrupted);
    CHECK_U64(y.passed, 90);
    CHECK_U64(y.looked, 90 * TARGETS);
    CHECK(y.openings > 0 && y.openings == y.r.sums[2].openings);
    CHECK_U64(y.openings, y.closings);
    CHECK(y.dead >= 5 && y.dead == y.r.all.dead);
    finish(&y);
}

TEST(scenario, is_the_same_for_the_same_seed)
{
    study y[3];

    for (int i = 0; i < 3; i++) {
        prepare(&y[i], patient, 40, 3 * STG_MIN);
        add(&y[i], "* 503 from=1m for=1m share=50%");
        y[i].s.seed += i == 2;
        go(&y[i]);
    }
    CHECK_U64(y[0].r.interval_count, y[1].r.interval_count);
    CHECK(memcmp(y[0].r.sums, y[1].r.sums, TARGETS * sizeof *y[0].r.sums) == 0);
    CHECK(memcmp(y[0].r.sums, y[2].r.sums, TARGETS * sizeof *y[0].r.sums) != 0);
    for (int i = 0; i < 3; i++)
        finish(&y[i]);
}

static void refuse(study *y, const char *words)
{
    CHECK_INT(stg_world_scenario_run(&y->s, &y->hooks, &y->r, &y->err),
              STG_INVALID);
    if (strstr(y->err.text, words) == NULL)
        harness_fail(__FILE__, __LINE__, "%s", y->err.text);
    finish(y);
}

TEST(scenario, refuses_what_it_cannot_run)
{
    study y;

    prepare(&y, patient, 10, STG_MIN);
    add(&y, "d refused");
    refuse(&y, "a fault is of no target, found d");
    prepare(&y, patient, 100000, STG_HOUR);
    refuse(&y, "more than 10,000,000 deliveries");
    prepare(&y, patient, 10, STG_MIN);
    y.s.target_count = 0;
    refuse(&y, "there is no target");
}

TEST(scenario, ends_where_there_is_no_memory)
{
    for (size_t left = 0; left < 400; left += 7) {
        study y;
        stg_status status;

        prepare(&y, patient, 10, 10 * STG_S);
        y.told.left = left;
        status = stg_world_scenario_run(&y.s, &y.hooks, &y.r, &y.err);
        CHECK(status == STG_OK || status == STG_IO);
        finish(&y);
    }
}
