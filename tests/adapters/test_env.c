#include <stagger/env.h>

#include <sys/wait.h>
#include <unistd.h>

#include <stagger/loop.h>

#include "tests/adapters/story.h"
#include "tests/harness.h"

static stg_ns now(void)
{
    return stg_env_system()->now(NULL);
}

TEST(env, has_a_clock_that_never_steps_back)
{
    stg_ns last = now();

    CHECK(last > 0);
    for (int i = 0; i < 10000; i++) {
        stg_ns next = now();

        CHECK(next >= last);
        last = next;
    }
}

TEST(env, sleeps_until_the_instant_and_not_less)
{
    const stg_env *env = stg_env_system();
    stg_cancel cancel = {0};
    stg_ns until_at = now() + 3 * STG_MS;

    CHECK(env->sleep(NULL, until_at, NULL));
    CHECK(now() >= until_at);
    until_at = now() + 3 * STG_MS;
    CHECK(env->sleep(NULL, until_at, &cancel));
    CHECK(now() >= until_at);
}

TEST(env, does_not_sleep_to_what_is_past)
{
    const stg_env *env = stg_env_system();
    stg_cancel cancel = {0};
    stg_ns began_at = now();

    CHECK(env->sleep(NULL, 0, NULL));
    CHECK(env->sleep(NULL, began_at, NULL));
    CHECK(env->sleep(NULL, began_at, &cancel));
    CHECK(now() - began_at < 10 * STG_S);
}

TEST(env, does_not_sleep_when_it_is_cancelled_before)
{
    const stg_env *env = stg_env_system();
    stg_cancel cancel = {0};

    stg_cancel_set(&cancel);
    CHECK(!env->sleep(NULL, STG_NEVER, &cancel));
    CHECK(!env->sleep(NULL, 0, &cancel));
}

TEST(env, never_draws_the_same_twice)
{
    const stg_env *env = stg_env_system();

    CHECK(env->random(NULL) != env->random(NULL));
}

/* What a child process finds, by way of a pipe. */
static uint64_t find_in_child(uint64_t (*find)(void))
{
    int ends[2], status;
    uint64_t found;
    pid_t child;

    CHECK(pipe(ends) == 0);
    child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        found = find();
        _exit(write(ends[1], &found, sizeof found) != sizeof found);
    }
    CHECK(read(ends[0], &found, sizeof found) == sizeof found);
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    close(ends[0]);
    close(ends[1]);
    return found;
}

static uint64_t draw(void)
{
    return stg_env_system()->random(NULL);
}

TEST(env, draws_anew_after_a_fork)
{
    uint64_t child, other;

    draw();
    child = find_in_child(draw);
    other = find_in_child(draw);
    CHECK(child != other);
    CHECK(child != draw());
}

/* The wait of an operation on a virtual clock and the system's chance. */
static uint64_t wait_once(void)
{
    stg_policy policy = policy_of("fixed base=1d jitter=full deadline=none");
    story s;
    stg_env env;
    stg_loop r;

    story_begin(&s, "503 200");
    env = s.env;
    env.random = NULL;
    stg_loop_begin(&r, &policy, &(stg_with){.env = &env});
    while (stg_loop_again(&r))
        stg_loop_report(&r, story_attempt(&s));
    CHECK_INT(s.draws, 0);
    return s.now;
}

TEST(env, lets_processes_wait_apart_after_a_fork)
{
    uint64_t child = find_in_child(wait_once), other = wait_once();

    CHECK(child != other);
}

/* A user's env may wrap the system's. */
static stg_ns later(void *ctx)
{
    return stg_env_system()->now(NULL) + *(stg_ns *)ctx;
}

static bool sleep_less(void *ctx, stg_ns until_at, const stg_cancel *cancel)
{
    return stg_env_system()->sleep(NULL, until_at - *(stg_ns *)ctx, cancel);
}

TEST(env, can_be_wrapped)
{
    stg_policy policy = policy_of("fixed base=1ms jitter=none");
    stg_ns ahead = 100 * STG_DAY;
    stg_env env = {.now = later, .sleep = sleep_less, .ctx = &ahead};
    story s;
    stg_loop r;

    story_begin(&s, "503 503 200");
    stg_loop_begin(&r, &policy, &(stg_with){.env = &env});
    while (stg_loop_again(&r))
        stg_loop_report(&r, story_attempt(&s));
    CHECK_INT(stg_loop_result(&r).attempts, 3);
    CHECK(stg_loop_result(&r).waited >= 2 * STG_MS);
    CHECK(stg_loop_result(&r).took < STG_MIN);
}
