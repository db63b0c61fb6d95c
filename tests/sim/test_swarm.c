/* Random worlds of flow, as scripts: sim/delivery/swarm.h. `stagger sim delivery
 * --swarm` tries larger ones, and fresh seeds. */
#include "sim/delivery/swarm.h"

#include <stdio.h>
#include <stdlib.h>

#include <stagger/text.h>

#include "tests/harness.h"
#include "tests/malloc_memory.h"

static const stg_memory memory = STG_MALLOC_MEMORY;
static const stg_swarm_bounds small = {
    .lanes = 12, .partitions = 8, .messages = 400, .steps = 30};

static stg_script *new_script(void)
{
    stg_script *s = calloc(1, sizeof *s);

    CHECK(s != NULL);
    return s;
}

static stg_swarm_run *new_run(void)
{
    stg_swarm_run *run = calloc(1, sizeof *run);

    CHECK(run != NULL);
    return run;
}

/* -- seeds ----------------------------------------------------------------- */

TEST(swarm, keeps_all_invariants)
{
    stg_script *s = new_script();
    stg_swarm_run *run = new_run();

    for (uint64_t seed = 0; seed < seeds(150); seed++) {
        stg_swarm_draw(s, seed, &small);
        CHECK(stg_swarm_play(s, &memory, run));
        if (run->has_failed)
            harness_fail(__FILE__, __LINE__, "seed %ju: %s does not hold: %s",
                         (uintmax_t)seed, run->failure.invariant,
                         run->failure.text);
    }
    free(run);
    free(s);
}

/* By gcc and clang, optimised or not, on each machine: this is the number. */
TEST(swarm, has_the_same_trace_everywhere)
{
    stg_script *s = new_script();
    stg_swarm_run *run = new_run();
    uint64_t all = 0;

    for (uint64_t seed = 0; seed < 20; seed++) {
        stg_swarm_draw(s, seed, &small);
        CHECK(stg_swarm_play(s, &memory, run));
        all += run->hash;
    }
    CHECK_U64(all, UINT64_C(7614143557684216587));
    free(run);
    free(s);
}

TEST(swarm, draws_policies_that_can_be_read)
{
    char text[STG_DRAWN_POLICY_MAX];
    stg_rng rng = stg_rng_seed(1);
    stg_policy p;

    for (uint64_t i = 0; i < seeds(2000); i++)
        CHECK(stg_policy_parse(
                  &p, stg_script_policy(stg_rng_next(&rng) >> 32, text),
                  NULL) == STG_OK);
}

/* -- scripts --------------------------------------------------------------- */

TEST(swarm, reads_what_it_prints)
{
    stg_script *s = new_script(), *read = new_script();
    char text[STG_STEP_TEXT_MAX];
    stg_error err;

    for (uint64_t seed = 0; seed < seeds(100); seed++) {
        stg_swarm_draw(s, seed, &small);
        for (size_t i = 0; i < s->count; i++) {
            stg_step_print(&s->steps[i], text);
            CHECK(stg_script_read(read, text, strlen(text), &err) == STG_OK);
            CHECK_U64(read->count, 1);
            CHECK(read->steps[0].kind == s->steps[i].kind);
            CHECK(memcmp(read->steps[0].at, s->steps[i].at,
                         sizeof s->steps[i].at) == 0);
        }
    }
    free(read);
    free(s);
}

TEST(swarm, says_where_a_script_is_wrong)
{
    static const char *const wrong[] = {
        "world\nnonsense\n", "world\nlane order=wrong\n", "world\ncrash 7\n",
        "world\ncrash after=7\n", "world\nsteps count=1\n"};
    stg_script *s = new_script();
    stg_error err;

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        CHECK(stg_script_read(s, wrong[i], strlen(wrong[i]), &err) ==
              STG_INVALID);
        CHECK_U64(err.line, 2);
    }
    CHECK(stg_script_read(s, "# no step\n\n world  seed=3 # one\n", 31, &err) ==
          STG_OK);
    CHECK_U64(s->count, 1);
    CHECK_U64(s->steps[0].at[STG_WORLD_SEED], 3);
    free(s);
}

/* Messages that are to be sent in hours outlive the bound of I20: no bug of
 * flow's, and so there to be found for ever. */
TEST(swarm, makes_a_failure_small)
{
    stg_script *s = new_script();
    stg_swarm_run *run = new_run();
    uint64_t seed = 0;

    do {
        stg_swarm_draw(s, seed++, &small);
        s->steps[0].at[STG_WORLD_TIMES] = 4 * STG_HOUR;
        CHECK(stg_swarm_play(s, &memory, run));
    } while (!run->has_failed || s->count < 30);
    CHECK_STR(run->failure.invariant, "I20");
    stg_swarm_shrink(s, &memory, run, 2000);
    CHECK(run->has_failed);
    CHECK_STR(run->failure.invariant, "I20");
    CHECK(s->count <= 4);
    free(run);
    free(s);
}

TEST(swarm, takes_any_script_that_begins_with_a_world)
{
    stg_script *s = new_script();
    stg_swarm_run *run = new_run();

    CHECK(!stg_swarm_play(s, &memory, run));
    for (int kind = 0; kind < STG_STEP_COUNT; kind++) {
        s->count = 2;
        s->steps[0] = (stg_step){.kind = STG_STEP_WORLD};
        s->steps[1] = (stg_step){.kind = (stg_step_kind)kind};
        for (size_t i = 0; i < STG_STEP_NUMBERS; i++)
            s->steps[1].at[i] = UINT32_MAX;
        if (kind == STG_STEP_PUBLISH)
            s->steps[1].at[1] = 5;
        CHECK(stg_swarm_play(s, &memory, run));
    }
    free(run);
    free(s);
}
