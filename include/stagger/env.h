/* env.h - where the adapters get time and chance from.
 *
 * The one way to run any adapter on virtual time: give it a clock that your
 * test moves and a sleep that moves it.
 *
 *     static stg_ns now(void *t) { return *(stg_ns *)t; }
 *     static bool sleep(void *t, stg_ns until_at, const stg_cancel *c)
 *     {
 *         *(stg_ns *)t = until_at;
 *         return true;
 *     }
 *     stg_ns t = 0;
 *     stg_env env = {.now = now, .sleep = sleep, .ctx = &t};
 *
 * A clock and a sleep belong together: one without the other is refused. */
#ifndef STAGGER_ENV_H
#define STAGGER_ENV_H

#include <stagger/cancel.h>
#include <stagger/ns.h>

STG_DECLS_BEGIN

typedef struct stg_env {
    /* The time, from any origin. NULL: the monotonic clock. */
    stg_ns (*now)(void *ctx);
    /* Sleeps to until_at, or until cancel (which may be NULL) is set. Returns
     * false if it was, or for a reason of its own: the operation then ends as
     * cancelled. NULL: the system's. */
    bool (*sleep)(void *ctx, stg_ns until_at, const stg_cancel *cancel);
    /* 64 random bits, asked once for each failure. NULL: the system's entropy,
     * which two processes after a fork() do not share. */
    uint64_t (*random)(void *ctx);
    void *ctx;
} stg_env;

/* The system's three, to wrap or to call; they ignore ctx. Static. */
STG_API const stg_env *stg_env_system(void);

#ifdef STG_TESTING
/* The env of all operations that are given none, from now on: a test of a
 * program that has no way to hand one in. NULL: the system's again. Kept. Any
 * thread may call it. Only in a static library that was built for tests
 * (-DSTAGGER_TESTING=ON, which defines STG_TESTING): what makes every wait end
 * at once has no place in one that serves. It does not move the clock for what
 * waits in an event loop (stg_uv, stg_curl_multi): give that an env. */
void stg_env_default_set(const stg_env *env);
#endif

STG_DECLS_END

#endif
