/* Worlds of flow as a runner has them: what the flow tests do not see. */
#include "sim/delivery/world.h"
#include "tests/harness.h"
#include "tests/malloc_memory.h"

#define POLICY "fixed base=1s jitter=none attempts=3 deadline=none retry=any"

/* -- memory that may fail, and is counted ---------------------------------- */

typedef struct scarce {
    uint64_t allocations, fail_at, held;
} scarce;

static void *allocate(void *ctx, size_t size)
{
    scarce *s = ctx;

    if (++s->allocations == s->fail_at)
        return NULL;
    s->held++;
    return malloc(size);
}

static void release(void *ctx, void *bytes)
{
    scarce *s = ctx;

    s->held--;
    free(bytes);
}

/* Retries, a crash, a replay, a bulk row, partitions that move: whatever fails. */
static void live(stg_world *w)
{
    stg_lane_options *o = stg_world_add_lane(w, POLICY);

    if (o == NULL || stg_world_add_lane(w, POLICY) == NULL ||
        stg_world_set_script(w, 0, "503 404 200") != STG_OK)
        return;
    o->order = STG_ORDER_KEY;
    stg_world_set_partitions(w, 2);
    stg_world_join_group(w, false);
    stg_world_set_keys(w, 3);
    stg_world_publish(w, 0, 20);
    stg_world_publish(w, 1, 20);
    stg_world_start(w);
    stg_world_run(w, 2 * STG_S);
    stg_world_crash(w, STG_S);
    stg_world_revoke(w, 1, STG_S);
    stg_world_run(w, 4 * STG_S);
    stg_world_settle_elsewhere(w, 1, 5);
    stg_world_replay(w, 0, 5);
    stg_world_remove(w, 1);
    stg_world_run(w, STG_NEVER);
    stg_world_assign(w, 1);
    stg_world_run(w, STG_NEVER);
}

TEST(delivery, ends_with_a_failure_when_it_has_no_memory)
{
    scarce s = {.fail_at = 0};
    stg_world_hooks hooks = {.memory = {allocate, release, &s}};
    uint64_t failures = 0;
    stg_world *w;

    for (uint64_t n = 1; n == 1 || s.allocations >= s.fail_at; n++) {
        s = (scarce){.fail_at = n};
        if (stg_world_new(&w, &hooks, 1) == STG_OK) {
            live(w);
            failures += stg_world_failed(w) != NULL;
            stg_world_free(w);
        }
        CHECK_U64(s.held, 0);
    }
    CHECK(failures > 100);
}

/* -- a failure ------------------------------------------------------------- */

static void count(void *ctx, const stg_world_failure *f)
{
    int *calls = ctx;

    (void)f;
    ++*calls;
}

TEST(delivery, reports_the_first_invariant_that_does_not_hold)
{
    int calls = 0;
    stg_world_hooks hooks = {
        .memory = STG_MALLOC_MEMORY, .failed = count, .ctx = &calls};
    stg_lane_options *o;
    stg_world *w;

    CHECK(stg_world_new(&w, &hooks, 7) == STG_OK);
    o = stg_world_add_lane(w, POLICY);
    stg_world_publish(w, 0, 3);
    stg_world_start(w);
    stg_world_publish(w, 0, 3);
    o->is_paused = true; // which flow does not know
    stg_world_run(w, STG_NEVER);
    CHECK_INT(calls, 1);
    CHECK_STR(stg_world_failed(w)->invariant, "I7");
    CHECK_U64(stg_world_failed(w)->seed, 7);
    CHECK_U64(stg_world_failed(w)->lane, 0);
    // Nothing happens from then on.
    stg_world_crash(w, STG_S);
    stg_world_run(w, STG_NEVER);
    CHECK_U64(stg_world_sum(w).crashes, 0);
    CHECK_INT(calls, 1);
    stg_world_free(w);
}

TEST(delivery, refuses_a_script_or_a_policy_that_it_cannot_read)
{
    static const char *const wrong[] = {
        "",   " ",    "200 nonsense", "99",  "600",     "429+",
        "+2", "200x", "429+2+2",      "1e3", "9999999", "429+9999999"};
    stg_world_hooks hooks = {.memory = STG_MALLOC_MEMORY};
    stg_world *w;

    CHECK(stg_world_new(&w, &hooks, 1) == STG_OK);
    CHECK(stg_world_add_lane(w, "nonsense") == NULL);
    CHECK(stg_world_add_lane(w, POLICY) != NULL);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        CHECK_INT(stg_world_set_script(w, 0, wrong[i]), STG_INVALID);
    CHECK_INT(stg_world_set_script(w, 0, "  429+2  hang dns "), STG_OK);
    CHECK(stg_world_failed(w) == NULL);
    stg_world_free(w);
}
