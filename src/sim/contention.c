#include "sim/contention.h"

#include <string.h>

#include "core/writer.h"
#include "sim/random.h"
#include "sim/statistics.h"

/* Clients that begin at once and compete for one resource, each with a retry of
 * the core. A client has one event in the queue at most: the arrival of its
 * next call. The answer is worked out when the call arrives, and the client's
 * decision with it, at the later time at which the answer is received. So an
 * attempt costs one event, and events_max counts calls.
 *
 * Clients share no peer: budget, breaker and rate belong to each. Network,
 * service and backoff draw from streams of their own, so that a change of the
 * policy leaves the sequence of the service as it was. All clients share the
 * streams, in the order of calls: a change of that order changes results. */

enum {
    LINE = 64,     /* bytes that come from memory at once */
    STATE = 80,    /* bytes of a client's own: a retry, and the time it read */
    CACHED = 4096, /* clients whose state is surely near */
};

/* The further state of a client whose policy has a budget, a breaker, a rate or
 * a bulkhead. */
typedef struct program {
    stg_with with;
    stg_peer peer;
} program;

struct stg_contention {
    stg_contention_options options;
    stg_memory memory;
    stg_engine engine;
    stg_server server;
    stg_sim_max_rate peak;
    stg_distribution_ahead network;
    stg_rng backoff, starts;
    bool has_timeout;   /* an attempt may be given up before its answer */
    bool is_optimistic; /* the call comes after a read */
    void *block;        /* of the retries, which begin at a line */
    stg_retry *retries;
    stg_ns *read_at;   /* of the attempt under way */
    program *programs; /* NULL: the policy needs none */
    stg_contention_run run;
    stg_contention_totals *totals; /* of this repetition; or NULL */
    bool is_lost;                  /* there was no memory for something */
};

stg_contention_options stg_contention_options_default(void)
{
    return (stg_contention_options){
        .clients = 100,
        .resource = stg_resource_default(),
        .network = {.kind = STG_DISTRIBUTION_NORMAL,
                    .a = 10 * STG_MS,
                    .b = 2 * STG_MS},
        .seed = 1,
        .until_at = STG_NEVER,
        .calls_max = UINT64_MAX,
    };
}

uint64_t stg_contention_size(const stg_contention_options *o)
{
    uint64_t size = STATE + 16; // the event, and its time in the peak

    if (stg_policy_needs_peer(o->policy))
        size += sizeof(program);
    return 65536 + o->clients * size;
}

/* -- making one */

static void *allocate(const stg_contention *c, size_t count, size_t size)
{
    if (count > (SIZE_MAX - LINE) / size)
        return NULL;
    return c->memory.allocate(c->memory.ctx, count * size + LINE);
}

static bool make_clients(stg_contention *c)
{
    size_t clients = c->options.clients;

    c->block = allocate(c, clients, sizeof *c->retries);
    if (c->block == NULL)
        return false;
    c->retries = (stg_retry *)(void *)((char *)c->block +
                                       (LINE - (uintptr_t)c->block % LINE));
    if (c->is_optimistic) {
        c->read_at = allocate(c, clients, sizeof *c->read_at);
        if (c->read_at == NULL)
            return false;
    }
    if (stg_policy_needs_peer(c->options.policy)) {
        c->programs = allocate(c, clients, sizeof *c->programs);
        if (c->programs == NULL)
            return false;
    }
    if (clients > CACHED)
        stg_sim_queue_fetch(&c->engine.queue, c->retries, sizeof *c->retries,
                            c->read_at, sizeof *c->read_at);
    return stg_sim_queue_reserve(&c->engine.queue, clients);
}

stg_status stg_contention_check_policy(const stg_policy *p, stg_error *err)
{
    return p->hedge.max == 0
               ? STG_OK
               : stg_refuse(err,
                            "hedge= is not for contention, where a client's "
                            "attempts would compete with each other; say "
                            "hedge=none, or simulate it under a load: stagger "
                            "sim overload");
}

static stg_status check_options(const stg_contention_options *o, stg_error *err)
{
    if (o->clients < 1 || o->clients > STG_CONTENTION_CLIENTS_MAX)
        return stg_refuse_number(err, "clients", o->clients, "1 to 100000000");
    if (o->policy == NULL || o->policy->attempts_max == 0)
        return stg_refuse(err, "the policy is missing");
    return stg_contention_check_policy(o->policy, err);
}

stg_status stg_contention_new(stg_contention **contention,
                              const stg_memory *memory,
                              const stg_contention_options *options,
                              stg_error *err)
{
    stg_contention *c;
    stg_status status = check_options(options, err);

    if (status != STG_OK)
        return status;
    c = memory->allocate(memory->ctx, sizeof *c);
    if (c != NULL) {
        memset(c, 0, sizeof *c);
        c->options = *options;
        c->memory = *memory;
        c->is_optimistic = options->resource.kind == STG_RESOURCE_OPTIMISTIC;
        c->has_timeout = options->policy->attempt_timeout != STG_NEVER ||
                         options->policy->deadline != STG_NEVER;
        stg_engine_init(&c->engine, options->queue, options->clients,
                        &c->memory);
        c->engine.until_at = options->until_at;
        c->engine.events_max = options->calls_max;
        c->engine.stop = options->stop;
        stg_sim_max_rate_init(&c->peak, 100 * STG_MS, &c->memory);
        if (stg_server_init(&c->server, &options->resource, &c->memory) &&
            make_clients(c)) {
            *contention = c;
            return STG_OK;
        }
        stg_contention_free(c);
    }
    (void)stg_refuse(err, "there is no memory for so many clients");
    return STG_IO;
}

static void release(const stg_contention *c, void *bytes)
{
    if (bytes != NULL)
        c->memory.release(c->memory.ctx, bytes);
}

void stg_contention_free(stg_contention *c)
{
    stg_memory memory = c->memory;

    stg_engine_close(&c->engine);
    stg_server_close(&c->server);
    stg_sim_max_rate_close(&c->peak);
    release(c, c->block);
    release(c, c->read_at);
    release(c, c->programs);
    memory.release(memory.ctx, c);
}

/* -- a client */

/* The attempt begins at `at`; when its call arrives is known at once. */
static inline void send_call(stg_contention *c, uint32_t id, stg_ns at)
{
    at = stg_ns_add(at, stg_distribution_ahead_draw(&c->network));
    if (c->is_optimistic) {
        c->read_at[id] = at;
        at = stg_ns_add(at, stg_distribution_ahead_draw(&c->network));
        at = stg_ns_add(at, stg_distribution_ahead_draw(&c->network));
    }
    stg_engine_push(&c->engine, at, id);
}

/* The client has come to its end, after so many calls. */
/* The run is complete when its last client has stopped, successful or not. */
static void stop_client(stg_contention *c, const stg_retry *r, stg_ns at)
{
    if (at > c->run.completion)
        c->run.completion = at;
    if (c->totals != NULL &&
        !stg_sim_tally_add(&c->totals->attempts, r->attempts))
        c->is_lost = true;
}

static void succeed(stg_contention *c, const stg_retry *r, stg_ns at)
{
    c->run.successes++;
    stop_client(c, r, at);
    if (c->totals != NULL && !stg_contention_totals_succeed(c->totals, at))
        c->is_lost = true;
}

static void give_up(stg_contention *c, const stg_retry *r, stg_ns at)
{
    c->run.given_up++;
    stop_client(c, r, at);
}

/* May an attempt begin at *at? If so, *at is when: budget, breaker or rate may
 * want more time. */
static inline bool is_admitted(stg_contention *c, stg_retry *r, stg_ns *at)
{
    for (;;) {
        stg_decision d = stg_retry_admit(r, *at, &c->backoff);

        if (d.next != STG_WAIT)
            return d.next == STG_GO;
        *at = stg_ns_max(*at, d.due_at);
    }
}

/* Always inlined: each call comes here, and only the start besides. */
__attribute__((always_inline)) static inline void
begin_attempt(stg_contention *c, uint32_t id, stg_ns at)
{
    stg_retry *r = &c->retries[id];

    if (is_admitted(c, r, &at))
        send_call(c, id, at);
    else
        give_up(c, r, at);
}

/* Adds a wait to the tally of its retry's number; the last tally has all later
 * retries, too. */
static void note_wait(stg_contention *c, const stg_retry *r, stg_ns wait)
{
    uint32_t before = r->attempts - 1;
    uint32_t last = STG_TOTALS_WAITS - 1;

    if (!stg_sim_tally_add(&c->totals->waits[before < last ? before : last],
                           wait))
        c->is_lost = true;
}

/* The client learns the outcome of its call at `at`, which lies ahead of the
 * engine's clock by the way back. */
static void hear(stg_contention *c, uint32_t id, const stg_outcome *o,
                 stg_ns at)
{
    stg_retry *r = &c->retries[id];
    stg_decision d = stg_retry_step(r, o, at, &c->backoff);

    if (d.next == STG_DONE) {
        succeed(c, r, at);
    } else if (d.next == STG_WAIT) {
        if (c->totals != NULL)
            note_wait(c, r, d.due_at - at);
        begin_attempt(c, id, d.due_at);
    } else {
        give_up(c, r, at);
    }
}

/* -- the resource */

static void count_call(stg_contention *c)
{
    stg_ns now = c->engine.now;

    c->run.calls++;
    if (!stg_sim_max_rate_add(&c->peak, now))
        c->is_lost = true;
    if (c->totals != NULL && !stg_sim_series_add(&c->totals->calls, now))
        c->is_lost = true;
}

static void tell_call(const stg_contention *c, uint32_t id,
                      const stg_resource_answer *a, stg_ns ended_at)
{
    stg_contention_call call = {.at = c->engine.now,
                                .client = id,
                                .attempt = c->retries[id].attempts,
                                .is_success = a->is_success,
                                .begun_at = c->retries[id].since_at,
                                .ended_at = ended_at,
                                .outcome = a->outcome};

    c->options.on_call(c->options.ctx, &call);
}

/* Whether the answer at *at comes after the attempt's timeout; *at becomes the
 * moment at which the client stopped. That is never before now: the call has
 * arrived, and a later attempt cannot be pushed into the past. */
static bool is_too_late(const stg_contention *c, uint32_t id, stg_ns *at)
{
    const stg_retry *r = &c->retries[id];
    stg_ns timeout = stg_retry_timeout(r, r->since_at);
    stg_ns stop_at = stg_ns_add(r->since_at, timeout);

    if (*at <= stop_at)
        return false;
    *at = stg_ns_max(stop_at, c->engine.now);
    return true;
}

/* The resource answers on arrival; a client that stopped before the answer
 * comes hears a timeout, and the resource has done the work all the same. */
static void take_call(stg_contention *c, uint32_t id)
{
    static const stg_outcome timeout = {.fault = STG_FAULT_TIMEOUT};
    stg_ns read_at = c->is_optimistic ? c->read_at[id] : 0;
    stg_resource_answer a = stg_server_call(&c->server, c->engine.now, read_at);
    stg_ns at = stg_ns_add(a.at, stg_distribution_ahead_draw(&c->network));

    count_call(c);
    if (c->has_timeout && is_too_late(c, id, &at))
        a.outcome = &timeout;
    if (c->options.on_call != NULL)
        tell_call(c, id, &a, at);
    hear(c, id, a.outcome, at);
}

/* -- a repetition */

static stg_ns draw_start(stg_contention *c)
{
    stg_ns spread = c->options.start_spread;

    return spread == 0
               ? 0
               : (stg_ns)(stg_random_uniform(&c->starts) * (double)spread);
}

/* A peer is made anew: what it learned was of another run. */
static void start_clients(stg_contention *c)
{
    for (uint32_t id = 0; id < c->options.clients; id++) {
        const stg_policy *policy = c->options.policy;
        stg_with *with = NULL;
        stg_ns at = draw_start(c);

        if (c->programs != NULL) {
            with = &c->programs[id].with;
            *with = (stg_with){.peer = &c->programs[id].peer};
            (void)stg_peer_init(with->peer, policy);
        }
        (void)stg_retry_start(&c->retries[id], policy, with, at);
        begin_attempt(c, id, at);
    }
}

static void clear(stg_contention *c, uint64_t repetition,
                  stg_contention_totals *totals)
{
    uint64_t seed = c->options.seed;

    stg_engine_clear(&c->engine);
    stg_sim_max_rate_clear(&c->peak);
    stg_server_clear(&c->server,
                     stg_random_stream(seed, repetition, STG_CONCERN_SERVICE));
    stg_distribution_ahead_init(
        &c->network, &c->options.network,
        stg_random_stream(seed, repetition, STG_CONCERN_NETWORK));
    c->backoff = stg_random_stream(seed, repetition, STG_CONCERN_BACKOFF);
    c->starts = stg_random_stream(seed, repetition, STG_CONCERN_ARRIVALS);
    c->run = (stg_contention_run){0};
    c->totals = totals;
    c->is_lost = false;
}

bool stg_contention_repeat(stg_contention *c, uint64_t repetition,
                           stg_contention_run *run,
                           stg_contention_totals *totals)
{
    uint32_t id;

    clear(c, repetition, totals);
    start_clients(c);
    while (stg_engine_next(&c->engine, &id))
        take_call(c, id);
    c->run.peak = stg_sim_max_rate_most(&c->peak);
    c->run.end = c->is_lost ? STG_END_MEMORY : c->engine.end;
    *run = c->run;
    if (totals != NULL)
        stg_contention_totals_finish(totals, run->end != STG_END_STOPPED);
    return run->end != STG_END_MEMORY;
}
