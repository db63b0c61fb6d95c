#include <stagger/env.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <stagger/key.h>
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

/* -- made of it: keys, and lines for people -------------------------------- */

TEST(env, makes_keys_of_its_own_time_that_differ)
{
    unsigned long long before = (unsigned long long)time(NULL), seconds;
    char key[STG_KEY_MAX], other[STG_KEY_MAX], digits[13] = "";

    CHECK(stg_key_new(key) == key);
    CHECK_INT(strlen(key), 36);
    CHECK_INT(key[14], '7');
    CHECK(strcmp(key, stg_key_new(other)) != 0);
    CHECK(stg_key_new(NULL) == NULL);
    memcpy(digits, key, 8);
    memcpy(digits + 8, key + 9, 4);
    seconds = strtoull(digits, NULL, 16) / 1000;
    CHECK(seconds >= before && seconds <= (unsigned long long)time(NULL));
}

/* A story with a rate limit: a retry that it holds back is told once. */
static void fail_thrice(void)
{
    stg_policy policy = policy_of("list=20ms,30500us jitter=none attempts=3");
    stg_peer peer = peer_of(&policy);
    stg_hook hook = {.on = stg_event_to_stderr};
    story s;
    stg_loop r;

    story_begin(&s, "503 503 503");
    CHECK_INT(stg_peer_limit(&peer, 1000, 1, NULL), STG_OK);
    stg_loop_begin(&r, &policy,
                   &(stg_with){.env = &s.env, .hook = &hook, .peer = &peer});
    while (stg_loop_again(&r))
        stg_loop_report(&r, story_attempt(&s));
    CHECK_U64(s.now, 2 * STG_S);
}

TEST(env, prints_each_retry_to_stderr)
{
    FILE *file = tmpfile();
    int kept = dup(STDERR_FILENO);
    char text[200];
    size_t size;

    CHECK(file != NULL && kept >= 0);
    dup2(fileno(file), STDERR_FILENO);
    fail_thrice();
    stg_event_to_stderr(NULL, NULL);
    dup2(kept, STDERR_FILENO);
    close(kept);
    rewind(file);
    size = fread(text, 1, sizeof text - 1, file);
    text[size] = '\0';
    fclose(file);
    CHECK_STR(text, "Retry 1 after 20 ms\nRetry 2 after 30 ms\n");
}
