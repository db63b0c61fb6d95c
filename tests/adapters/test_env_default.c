#include <stagger/env.h>

#include <stagger/call.h>
#include <stagger/text.h>

#include "tests/harness.h"

static stg_ns read_clock(void *clock)
{
    return *(stg_ns *)clock;
}

static bool skip(void *clock, stg_ns until_at, const stg_cancel *cancel)
{
    (void)cancel;
    *(stg_ns *)clock = until_at;
    return true;
}

static stg_outcome refuse(void *calls)
{
    ++*(int *)calls;
    return stg_failed(STG_FAULT_REFUSED);
}

static stg_policy parse(const char *text)
{
    stg_policy policy;

    CHECK(stg_policy_parse(&policy, text, NULL) == STG_OK);
    return policy;
}

TEST(env_default, is_that_of_operations_without_one)
{
    stg_policy policy = parse("fixed base=1h jitter=none deadline=none");
    stg_ns clock = 0;
    stg_env env = {.now = read_clock, .sleep = skip, .ctx = &clock};
    int calls = 0;

    stg_env_default_set(&env);
    CHECK(!stg_call(&policy, NULL, refuse, &calls, NULL));
    CHECK(calls == 3 && clock == 2 * STG_HOUR);
    stg_env_default_set(NULL);
    policy = parse("fixed base=0 jitter=none");
    CHECK(!stg_call(&policy, NULL, refuse, &calls, NULL));
    CHECK(calls == 6 && clock == 2 * STG_HOUR);
}

TEST(env_default, leaves_an_operation_the_env_that_it_has)
{
    stg_policy policy = parse("fixed base=1h jitter=none deadline=none");
    stg_ns clocks[2] = {0, 0};
    stg_env common = {.now = read_clock, .sleep = skip, .ctx = &clocks[0]};
    stg_env own = {.now = read_clock, .sleep = skip, .ctx = &clocks[1]};
    int calls = 0;

    stg_env_default_set(&common);
    CHECK(!stg_call(&policy, &(stg_with){.env = &own}, refuse, &calls, NULL));
    CHECK(clocks[0] == 0 && clocks[1] == 2 * STG_HOUR);
    stg_env_default_set(NULL);
}
