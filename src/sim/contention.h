/* contention.h - N clients with one policy compete for one resource.
 *
 * All clients begin at 0, each wants one success, and stops there or where its
 * policy gives up. A message takes a time by the network's distribution, drawn
 * anew. An attempt is a call that arrives at the resource, and the answer that
 * arrives at the client; of an optimistic resource it is two such: a read, and
 * then the write, which is the call. After a failure stg_retry_step() says when
 * the next attempt begins. Each client is a program of its own, with a budget
 * and a breaker of its own if the policy has one.
 *
 * Only the call at the resource is an event: whatever happens before and after
 * it is the client's own, and drawn with it. One that has an attempt timeout
 * stops waiting then, but not before its call has arrived.
 *
 * Pure: memory comes from a hook. One contention belongs to one thread.
 *
 * Source: Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog,
 * 2015, for the optimistic resource. */
#ifndef STAGGER_SIM_CONTENTION_H
#define STAGGER_SIM_CONTENTION_H

#include <stagger/retry.h>

#include "sim/contention_totals.h"
#include "sim/engine.h"
#include "sim/resource.h"

/* A call, as it is answered. */
typedef struct stg_contention_call {
    stg_ns at;        /* when it arrived at the resource */
    uint32_t client;  /* from 0 */
    uint32_t attempt; /* from 1 */
    bool is_success;  /* the resource said yes */
} stg_contention_call;

typedef struct stg_contention_options {
    uint32_t clients;         /* 1 to STG_CONTENTION_CLIENTS_MAX */
    const stg_policy *policy; /* kept; checked */
    stg_resource resource;
    stg_distribution network; /* of each message */
    uint64_t seed;            /* of all repetitions */
    stg_ns until_at;    /* no call is made then or later; STG_NEVER: no limit */
    uint64_t calls_max; /* UINT64_MAX: no limit */
    stg_sim_queue_kind queue;
    const atomic_bool *stop; /* set by any thread; or NULL */
    /* Told of each call, in the order of time; or NULL. */
    void (*on_call)(void *ctx, const stg_contention_call *call);
    void *ctx;
} stg_contention_options;

#define STG_CONTENTION_CLIENTS_MAX 100000000

/* 100 clients of an optimistic resource, a network of |normal(10 ms, 2 ms)|,
 * seed 1, no limits; the policy is to be filled in. */
stg_contention_options stg_contention_options_default(void);

/* What one repetition came to. */
typedef struct stg_contention_run {
    uint64_t calls;     /* that arrived at the resource */
    uint64_t successes; /* clients that heard of theirs */
    uint64_t given_up;  /* clients whose policy gave up */
    uint64_t peak;      /* the most calls in any 100 ms */
    stg_ns completion;  /* when the last client stopped */
    stg_engine_end end; /* STG_END_EMPTY: all clients have stopped; else it is a
                           part of a run */
} stg_contention_run;

/* Calls that were nobody's success. */
static inline uint64_t stg_contention_wasted(const stg_contention_run *run)
{
    return run->calls - run->successes;
}

typedef struct stg_contention stg_contention;

/* Refuses hedges: a client's attempts would compete with each other for the
 * resource, which has nothing slow that they could be faster than. Returns
 * STG_INVALID with words in err. */
stg_status stg_contention_check_policy(const stg_policy *p, stg_error *err);

/* Makes what repetitions need; options are copied, memory is kept. Returns
 * STG_INVALID with words in err for options out of range, STG_IO when there is
 * no memory. */
stg_status stg_contention_new(stg_contention **contention,
                              const stg_memory *memory,
                              const stg_contention_options *options,
                              stg_error *err);
void stg_contention_free(stg_contention *c);

/* Runs a repetition, from 0: the same number gives the same run. What it came
 * to is written to *run, and added to totals if that is not NULL. Returns false
 * if there was no memory: run and totals are then of no use. */
bool stg_contention_repeat(stg_contention *c, uint64_t repetition,
                           stg_contention_run *run,
                           stg_contention_totals *totals);

/* About how many bytes a contention with these options takes, at most. */
uint64_t stg_contention_size(const stg_contention_options *options);

#endif
