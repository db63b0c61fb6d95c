/* story.h - what a test of the adapters needs: an operation that plays a script
 * on virtual time, and tells what happened as a trace.
 *
 *     story s;
 *
 *     story_begin(&s, "503 503 200");
 *     ... run any adapter with .env = &s.env, whose attempts come to
 *         story_attempt(&s) ...
 *     CHECK_TRACE(s.trace, "     0 ms  503\n"
 *                          "   100 ms  503\n"
 *                          "   300 ms  200\n");
 *
 * The words of a script, one attempt after the other:
 *
 *     200, 503    an HTTP status
 *     429:2s      with a server's delay
 *     refused     a fault, by its name
 *     +30ms       the attempt takes that long; the outcome is the next word
 *     cancel      s.cancel is set meanwhile; the outcome is the next word */
#ifndef TESTS_ADAPTERS_STORY_H
#define TESTS_ADAPTERS_STORY_H

#include <stagger/env.h>
#include <stagger/event.h>
#include <stagger/peer.h>

#include "tests/policy_of.h"

typedef struct story {
    stg_env env;   /* virtual: sleeping moves the clock */
    stg_hook hook; /* tells each event in the trace */
    stg_cancel cancel;
    stg_ns now;
    uint64_t bits; /* what env.random() answers */
    const char *script;
    unsigned clocks, sleeps, draws, attempts; /* how often it was asked */
    size_t length;
    char trace[4096];
} story;

/* At 0 ms, with an empty trace. A story stays where it is. */
void story_begin(story *s, const char *script);

/* The next outcome of the script; a line in the trace. */
stg_outcome story_attempt(story *s);

/* A line in the trace, with the time before it. */
__attribute__((format(printf, 2, 3))) void story_say(story *s,
                                                     const char *format, ...);

/* A peer made for the policy. */
stg_peer peer_of(const stg_policy *policy);

#endif
