/* contention.h - clients that contend for one resource. Pure. */
#ifndef STAGGER_SIM_CONTENTION_H
#define STAGGER_SIM_CONTENTION_H

#include <stagger/ns.h>
#include <stagger/retry.h>

#include "sim/engine.h"
#include "sim/resource.h"
#include "sim/statistics.h"

/* -- totals ---------------------------------------------------------------- */

/* What many repetitions came to, client by client and
 * over time: whole numbers, so that books can be merged in any order.
 *
 * Pure; totals belong to one thread while they are written. */

enum {
    STG_TOTALS_WAITS = 16, /* waits by retry; later ones count for the last */
};

/* Events by time, in slices of equal width, of several repetitions. */
typedef struct stg_sim_series {
    stg_ns width;
    uint64_t slice;    /* of the last event */
    stg_ns from;       /* when it begins */
    size_t room;       /* slices at most; 0: none are counted */
    size_t used;       /* the last slice that has any, plus 1 */
    size_t made;       /* of the arrays */
    uint64_t runs;     /* repetitions */
    uint64_t beyond;   /* events after the last slice */
    uint64_t *sums;    /* by slice */
    uint64_t *squares; /* of each repetition's number, by slice */
    uint32_t *now;     /* events of this repetition, by slice */
    const stg_memory *memory;
} stg_sim_series;

void stg_sim_series_init(stg_sim_series *s, stg_ns width, size_t room,
                         const stg_memory *memory);
void stg_sim_series_close(stg_sim_series *s);

/* An event of this repetition. Returns false if there is no memory. */
bool stg_sim_series_add(stg_sim_series *s, stg_ns at);

/* The repetition has ended: its slices are added up, or forgotten. */
void stg_sim_series_finish(stg_sim_series *s);
void stg_sim_series_drop(stg_sim_series *s);

/* Each `of` slices become one, which is as wide as they were. Exact only for
 * one repetition at most: what several had in two slices together is not kept.
 * */
void stg_sim_series_join(stg_sim_series *s, size_t of);

bool stg_sim_series_merge(stg_sim_series *s, const stg_sim_series *other);

/* The mean number in a slice, and its standard error; *se may not be NULL. */
double stg_sim_series_mean(const stg_sim_series *s, size_t slice, double *se);

typedef struct stg_contention_totals {
    stg_sim_tally done;     /* when clients succeeded, ns */
    stg_sim_curve by_then;  /* how many have succeeded by when */
    stg_sim_tally attempts; /* calls of a client, however it ended */
    stg_sim_tally waits[STG_TOTALS_WAITS]; /* before retry i + 1, ns */
    stg_sim_series calls;                  /* at the resource, over time */
    stg_sim_series successes;              /* that clients heard of, likewise */
} stg_contention_totals;

/* Empty totals, which count calls in `slices` slices of width. memory is
 * kept. */
void stg_contention_totals_init(stg_contention_totals *b, stg_ns width,
                                size_t slices, const stg_memory *memory);
void stg_contention_totals_close(stg_contention_totals *b);

/* The client succeeded then. Returns false if there is no memory. */
bool stg_contention_totals_succeed(stg_contention_totals *b, stg_ns at);

/* The repetition has ended. One that was stopped counts for the tallies, but
 * is no value of its own: what is known by time and by repetition is without
 * it. */
void stg_contention_totals_finish(stg_contention_totals *b, bool is_whole);

/* Adds all that other has; both count in the same slices. Returns false if
 * there is no memory: the totals are then of no use. */
bool stg_contention_totals_merge(stg_contention_totals *b,
                                 const stg_contention_totals *other);

/* -- a contention ---------------------------------------------------------- */

/* N clients with one policy compete for one resource.
 *
 * All clients begin at 0, or each at a time of its own between 0 and the spread of
 * starts. Each wants one success, and stops there or where its
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

/* A call, as it is answered. */
typedef struct stg_contention_call {
    stg_ns at;                  /* when it arrived at the resource */
    uint32_t client;            /* from 0 */
    uint32_t attempt;           /* from 1 */
    bool is_success;            /* the resource said yes */
    stg_ns begun_at;            /* of the attempt */
    stg_ns ended_at;            /* when the client heard, or waited no longer */
    const stg_outcome *outcome; /* what it heard; borrowed */
} stg_contention_call;

typedef struct stg_contention_options {
    uint32_t clients;         /* 1 to STG_CONTENTION_CLIENTS_MAX */
    const stg_policy *policy; /* kept; checked */
    stg_resource resource;
    stg_distribution network; /* of each message */
    stg_ns start_spread; /* clients begin at any time below it; 0: at once */
    uint64_t seed;       /* one for all repetitions */
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
