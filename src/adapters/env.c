#include "adapters/clock.h"

#include <errno.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#ifdef __linux__
#include <linux/futex.h>
#include <sys/random.h>
#include <sys/syscall.h>
#endif

static stg_ns system_now(void *ctx)
{
    struct timespec t;

    (void)ctx;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (stg_ns)t.tv_sec * STG_S + (stg_ns)t.tv_nsec;
}

static struct timespec timespec_of(stg_ns ns)
{
    return (struct timespec){.tv_sec = (time_t)(ns / STG_S),
                             .tv_nsec = (long)(ns % STG_S)};
}

#ifdef __linux__

static void doze(stg_ns until_at, const stg_cancel *cancel)
{
    struct timespec until = timespec_of(until_at);

    if (cancel == NULL) {
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
        return;
    }
    // As long as the flag is 0; to an instant of the monotonic clock.
    syscall(SYS_futex, &cancel->is_set, FUTEX_WAIT_BITSET_PRIVATE, 0, &until,
            NULL, FUTEX_BITSET_MATCH_ANY);
}

void stg_cancel_set(stg_cancel *c)
{
    int error = errno;

    atomic_store(&c->is_set, 1);
    syscall(SYS_futex, &c->is_set, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL,
            0);
    errno = error;
}

#else

/* Without a futex the flag is looked at every 20 ms. */
static void doze(stg_ns until_at, const stg_cancel *cancel)
{
    stg_ns left = stg_ns_sub(until_at, system_now(NULL));
    struct timespec rest;

    rest = timespec_of(cancel == NULL ? left : stg_ns_min(left, 20 * STG_MS));
    nanosleep(&rest, NULL);
}

void stg_cancel_set(stg_cancel *c)
{
    atomic_store(&c->is_set, 1);
}

#endif

static bool system_sleep(void *ctx, stg_ns until_at, const stg_cancel *cancel)
{
    (void)ctx;
    // A signal ends a doze, not the sleep.
    while (system_now(NULL) < until_at) {
        if (cancel != NULL && stg_cancel_is_set(cancel))
            return false;
        doze(until_at, cancel);
    }
    return cancel == NULL || !stg_cancel_is_set(cancel);
}

static uint64_t system_random(void *ctx)
{
    uint64_t bits;

    (void)ctx;
    // Not to be had early at boot, or in a sandbox: jitter needs no secret.
    if (getentropy(&bits, sizeof bits) != 0)
        bits = system_now(NULL) ^ (uint64_t)getpid() << 40;
    return bits;
}

static const stg_env system_env = {
    .now = system_now,
    .sleep = system_sleep,
    .random = system_random,
};

const stg_env *stg_env_system(void)
{
    return &system_env;
}

stg_ns stg_env_now(const stg_env *env)
{
    return env == NULL || env->now == NULL ? system_now(NULL)
                                           : env->now(env->ctx);
}

bool stg_env_sleep(const stg_env *env, stg_ns until_at,
                   const stg_cancel *cancel)
{
    return env == NULL || env->sleep == NULL
               ? system_sleep(NULL, until_at, cancel)
               : env->sleep(env->ctx, until_at, cancel);
}

uint64_t stg_env_random(const stg_env *env)
{
    return env == NULL || env->random == NULL ? system_random(NULL)
                                              : env->random(env->ctx);
}
