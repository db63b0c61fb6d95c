#include "sim/contention.h"

#include <stdio.h>

#include <stagger/text.h>

#include "sim/estimate.h"
#include "tests/harness.h"
#include "tests/sim/memory.h"

enum { RUNS_MAX = 4000 };

typedef struct outcome {
    stg_estimate calls, completion_ms;
    stg_contention_run last;
} outcome;

static stg_policy policy_of(const char *text)
{
    stg_policy policy;
    stg_error err;

    if (stg_policy_parse(&policy, text, &err) != STG_OK)
        harness_fail(__FILE__, __LINE__, "%s", err.text);
    return policy;
}

/* All repetitions from 0 on. */
static outcome repeat(const stg_contention_options *o, size_t runs)
{
    static double calls[RUNS_MAX], completion_ms[RUNS_MAX];
    test_memory counts;
    stg_memory memory = test_memory_of(&counts);
    stg_contention *c;
    stg_contention_run run = {0};
    outcome out;

    CHECK(runs <= RUNS_MAX);
    CHECK_INT(stg_contention_new(&c, &memory, o, NULL), STG_OK);
    for (size_t i = 0; i < runs; i++) {
        CHECK(stg_contention_repeat(c, i, &run, NULL));
        calls[i] = (double)run.calls;
        completion_ms[i] = (double)run.completion / 1e6;
    }
    out.calls = stg_estimate_make(calls, runs);
    out.completion_ms = stg_estimate_make(completion_ms, runs);
    out.last = run;
    stg_contention_free(c);
    CHECK_INT(counts.held, 0);
    return out;
}

TEST(contention, of_one_client_is_four_messages)
{
    stg_policy policy = policy_of("none");
    stg_contention_options o = stg_contention_options_default();
    outcome out;

    o.clients = 1;
    o.policy = &policy;
    o.network = (stg_law){.a = 10 * STG_MS};
    out = repeat(&o, 1);
    CHECK_U64(out.last.completion, 40 * STG_MS);
    CHECK_U64(out.last.calls, 1);
    CHECK_INT(out.last.end, STG_END_EMPTY);
}

/* n + (n - 1) + ... + 1: each round has one less. */
TEST(contention, of_rounds_takes_half_the_square_of_calls)
{
    stg_policy policy =
        policy_of("fixed base=0 jitter=none attempts=unlimited deadline=none");

    for (uint32_t n = 1; n < 300; n += 13) {
        stg_contention_options o = stg_contention_options_default();
        outcome out;

        o.clients = n;
        o.policy = &policy;
        o.network = (stg_law){0};
        CHECK_INT(stg_resource_parse(&o.resource, "round=40ms", NULL), STG_OK);
        out = repeat(&o, 1);
        CHECK_U64(out.last.calls, (uint64_t)n * (n + 1) / 2);
        CHECK_U64(out.last.completion, n * 40 * STG_MS);
        CHECK_U64(out.last.successes, n);
    }
}
