/* The system's clock, sleep and randomness: the only file of the library that
 * reads them. A sleep ends early when its cancel flag is set, by any thread or
 * by a signal handler: by futex where there is one, else by a condition that
 * all sleepers share, and look at once a second. */
#include "adapters/internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <stagger/key.h>
#include <stagger/retry.h>

#ifdef __linux__
#include <sys/random.h>
#endif
#if defined __linux__ && !defined STAGGER_NO_FUTEX
#include <sys/syscall.h>
#else
#include <pthread.h>
#endif

static stg_ns system_now(void *ctx)
{
    struct timespec t;

    (void)ctx;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (stg_ns)t.tv_sec * STG_S + (stg_ns)t.tv_nsec;
}

/* At most as far as a time_t of 32 bits goes, or one sleep: others follow. */
static struct timespec timespec_of(stg_ns ns)
{
    ns = stg_ns_min(ns, INT32_MAX * STG_S);
    return (struct timespec){.tv_sec = (time_t)(ns / STG_S),
                             .tv_nsec = (long)(ns % STG_S)};
}

#if defined __linux__ && !defined STAGGER_NO_FUTEX

/* Of linux/futex.h, which musl comes without: they are the kernel's ABI. */
enum { WAKE_PRIVATE = 1 | 128, WAIT_BITSET_PRIVATE = 9 | 128 };

#ifdef SYS_futex
enum { FUTEX = SYS_futex };
#else
enum { FUTEX = SYS_futex_time64 };
#endif

/* As long as the flag is 0, to an instant of the monotonic clock. */
static void wait_for_flag(const stg_flag *flag, struct timespec until)
{
    const uint32_t any = UINT32_MAX;
#ifdef SYS_futex_time64
    // Of a machine of 32 bits, whose libc may have a time_t of 32 or 64.
    int64_t wide[2] = {until.tv_sec, until.tv_nsec};
    long narrow[2] = {(long)until.tv_sec, until.tv_nsec};

    if (syscall(SYS_futex_time64, flag, WAIT_BITSET_PRIVATE, 0, wide, NULL,
                any) == 0 ||
        errno != ENOSYS)
        return;
    (void)syscall(FUTEX, flag, WAIT_BITSET_PRIVATE, 0, narrow, NULL, any);
#else
    (void)syscall(FUTEX, flag, WAIT_BITSET_PRIVATE, 0, &until, NULL, any);
#endif
}

static void doze(stg_ns until_at, const stg_cancel *cancel)
{
    struct timespec until = timespec_of(until_at);

    if (cancel != NULL)
        wait_for_flag(&cancel->is_set, until);
    else
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
}

static void wake_all(stg_flag *flag)
{
    (void)syscall(FUTEX, flag, WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

#else

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t is_any_set = PTHREAD_COND_INITIALIZER;

/* For a second at most: whoever sets a flag from a signal handler while the
 * lock is held may be missed. */
static void doze(stg_ns until_at, const stg_cancel *cancel)
{
    stg_ns left = stg_ns_sub(until_at, system_now(NULL));
    struct timespec rest = timespec_of(left), wall;

    if (cancel == NULL) {
        nanosleep(&rest, NULL);
        return;
    }
    // Its clock is the wall's, for not every system has another one for it.
    clock_gettime(CLOCK_REALTIME, &wall);
    rest = timespec_of(stg_ns_min(left, STG_S) + (stg_ns)wall.tv_nsec);
    wall.tv_sec += rest.tv_sec;
    wall.tv_nsec = rest.tv_nsec;
    pthread_mutex_lock(&lock);
    if (atomic_load(&cancel->is_set) == 0)
        pthread_cond_timedwait(&is_any_set, &lock, &wall);
    pthread_mutex_unlock(&lock);
}

/* Never waits for the lock: this may be a handler, above one that has it. */
static void wake_all(stg_flag *flag)
{
    bool is_locked = pthread_mutex_trylock(&lock) == 0;

    (void)flag;
    pthread_cond_broadcast(&is_any_set);
    if (is_locked)
        pthread_mutex_unlock(&lock);
}

#endif

/* A signal handler may call it: errno stays as it is. */
void stg_cancel_set(stg_cancel *c)
{
    int error = errno;

    if (c == NULL)
        return;
    atomic_store(&c->is_set, 1);
    wake_all(&c->is_set);
    errno = error;
}

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

#ifdef STG_TESTING

/* Builds for tests only: what stands in for the system where with.env is
 * NULL. */
static const stg_env *_Atomic of_test;

void stg_env_default_set(const stg_env *env)
{
    atomic_store(&of_test, env);
}

static const stg_env *or_default(const stg_env *env)
{
    return env == NULL ? atomic_load(&of_test) : env;
}

#else

static const stg_env *or_default(const stg_env *env)
{
    return env;
}

#endif

stg_ns stg_env_now(const stg_env *env)
{
    env = or_default(env);
    return env == NULL || env->now == NULL ? system_now(NULL)
                                           : env->now(env->ctx);
}

bool stg_env_sleep(const stg_env *env, stg_ns until_at,
                   const stg_cancel *cancel)
{
    env = or_default(env);
    return env == NULL || env->sleep == NULL
               ? system_sleep(NULL, until_at, cancel)
               : env->sleep(env->ctx, until_at, cancel);
}

uint64_t stg_env_random(const stg_env *env)
{
    env = or_default(env);
    return env == NULL || env->random == NULL ? system_random(NULL)
                                              : env->random(env->ctx);
}

const char *stg_key_new(char text[STG_KEY_MAX])
{
    uint64_t random[2] = {system_random(NULL), system_random(NULL)};
    uint8_t bytes[10];
    struct timespec t;

    memcpy(bytes, random, sizeof bytes);
    clock_gettime(CLOCK_REALTIME, &t);
    return stg_key_make(
        text, (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000, bytes);
}

void stg_event_to_stderr(void *ctx, const stg_event *event)
{
    (void)ctx;
    // Without an outcome it is held back: its retry was told already.
    if (event == NULL || event->decision.next != STG_WAIT ||
        event->outcome == NULL)
        return;
    fprintf(stderr, "Retry %" PRIu32 " after %" PRIu64 " ms\n",
            event->retry->attempts,
            stg_ns_sub(event->decision.due_at, event->at) / STG_MS);
}
