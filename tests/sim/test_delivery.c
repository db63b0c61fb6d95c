/* Worlds of flow as a runner has them: what the flow tests do not see. */
#include "sim/delivery/internal.h"
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

/* -- where rows are -------------------------------------------------------- */

enum { KEYS = 500 };

static stg_world_key draw_key(stg_rng *rng)
{
    return (stg_world_key){.position = stg_rng_upto(rng, 20),
                           .lane = (uint32_t)stg_rng_upto(rng, 5),
                           .partition = (uint32_t)stg_rng_upto(rng, 1),
                           .replay = (uint32_t)stg_rng_upto(rng, 1),
                           .life = (uint32_t)stg_rng_upto(rng, 1)};
}

/* Which of those that were put it is. */
static size_t number_of(const stg_world_key *k)
{
    return (((k->position * 6 + k->lane) * 2 + k->partition) * 2 + k->replay) *
               2 +
           k->life;
}

/* The same as an array that has a place for each key. */
TEST(delivery, finds_rows_by_their_keys_until_they_are_removed)
{
    for (uint64_t seed = 0; seed < seeds(20); seed++) {
        stg_rng rng = stg_rng_seed(seed);
        stg_world_hooks hooks = {.memory = STG_MALLOC_MEMORY};
        size_t expected[21 * 6 * 2 * 2 * 2] = {0}, count = 0;
        stg_world_keys t = {.places = NULL};
        stg_world *w;

        CHECK(stg_world_new(&w, &hooks, seed) == STG_OK);
        for (size_t i = 1; i <= KEYS; i++) {
            stg_world_key key = draw_key(&rng);
            size_t *known = &expected[number_of(&key)];

            CHECK_FROM(seed, stg_world_keys_find(&t, &key) == *known - 1);
            count -= *known > 0;
            if (stg_rng_upto(&rng, 2) == 0) {
                stg_world_keys_remove(&t, &key);
                *known = 0;
            } else {
                CHECK(stg_world_keys_put(w, &t, &key, i - 1));
                *known = i;
                count++;
            }
            CHECK_FROM(seed, t.count == count);
        }
        stg_world_release(w, t.places);
        stg_world_free(w);
    }
}
