#include "sim/overload.h"

#include <string.h>

#include "core/writer.h"
#include "sim/overload_internal.h"
#include "sim/random.h"

/* A run of an overload: its options, and the loop over its events.
 *
 * An event is one number, index << 3 | kind, so there are 8 kinds at most.
 * Nothing is ever taken out of the queue: operations, workers and arrivals have
 * their own due time, and an event that comes at another is old and ignored. A
 * request's event is never old: its slot stays taken until it has come.
 *
 * Each concern draws from a stream of its own, so that another policy meets the
 * same arrivals and service times. A new use of chance needs a new stream at
 * the end of seed_all(): one in between changes the results of every seed. */

/* -- options --------------------------------------------------------------- */

stg_overload_options stg_overload_default(void)
{
    return (stg_overload_options){
        .policy = stg_policy_default(),
        .share = STG_SHARE_OPEN,
        .load = {.rate = 700 * 1000},
        .processes = 10,
        .timeout = 500 * STG_MS,
        .network = {.a = STG_MS},
        .service = {.workers = 10,
                    .queue_max = 1000,
                    .time = {.kind = STG_DISTRIBUTION_EXPONENTIAL,
                             .a = 10 * STG_MS}},
        .trigger = {.kind = STG_TRIGGER_OUTAGE,
                    .from_at = 20 * STG_S,
                    .until_at = 30 * STG_S},
        .warmup = 10 * STG_S,
        .end_at = 90 * STG_S,
        .bin = 250 * STG_MS,
        .live_max = 10000000,
    };
}

static stg_status check_load(const stg_overload_load *l, stg_error *err)
{
    if (!l->is_closed && (l->rate < 1 || l->rate > 4000000000))
        return stg_refuse_thousandths(err, "rate", l->rate,
                                      "0.001 to 4000000 a second");
    if (l->rate_end > 4000000000)
        return stg_refuse_thousandths(err, "rate", l->rate_end,
                                      "0.001 to 4000000 a second");
    if (l->is_closed && (l->clients < 1 || l->clients > 10000000))
        return stg_refuse_number(err, "clients", l->clients, "1 to 10000000");
    return STG_OK;
}

/* Either may be the one that somebody has set: both are said. */
static stg_status refuse_start(const stg_trigger *t, stg_error *err)
{
    char expected[64];
    stg_writer w = stg_writer_on(expected, sizeof expected);

    stg_write_text(&w, "less than its end, to=");
    stg_write_duration(&w, t->until_at);
    return stg_refuse_duration(err, "the trigger's start", t->from_at,
                               expected);
}

/* The trigger ends before the run does, for its recovery is measured after it.
 * check_times() has passed, so end_at is sound. */
static stg_status check_trigger(const stg_overload_options *o, stg_error *err)
{
    const stg_trigger *t = &o->trigger;
    uint32_t factor_max = t->kind == STG_TRIGGER_ERRORS ? 1000 : 1000000;

    if (t->kind == STG_TRIGGER_NONE)
        return STG_OK;
    if (t->kind >= STG_TRIGGER_SLOW &&
        (t->factor < 1 || t->factor > factor_max))
        return stg_refuse_thousandths(
            err, "trigger", t->factor,
            t->kind == STG_TRIGGER_ERRORS ? "0.1% to 100%" : "0.001 to 1000");
    if (t->until_at >= o->end_at)
        return stg_refuse_duration(err, "the trigger's end", t->until_at,
                                   "less than the duration");
    if (t->kind == STG_TRIGGER_SPIKE && o->load.trace != NULL)
        return stg_refuse(err,
                          "trigger=spike: expected another trouble, for "
                          "operations begin as in the trace");
    return t->from_at < t->until_at ? STG_OK : refuse_start(t, err);
}

/* How the service comes back, and after which trouble. */
static stg_status check_return(const stg_overload_options *o, stg_error *err)
{
    const stg_sim_cold *c = &o->cold;
    stg_trigger_kind kind = o->trigger.kind;

    if (o->return_steps != 0 && (o->return_steps < 2 || o->return_steps > 1000))
        return stg_refuse_number(err, "return", o->return_steps,
                                 "2 to 1000 steps");
    if (o->return_steps != 0 &&
        (o->return_step < STG_US || o->return_step > STG_DAY))
        return stg_refuse_duration(err, "return", o->return_step, "1us to 1d");
    if (o->return_steps != 0 && kind != STG_TRIGGER_OUTAGE &&
        kind != STG_TRIGGER_STALL)
        return stg_refuse(err,
                          "return is of workers that an outage or a stall "
                          "took: expected trigger=outage or stall");
    if (c->factor == 0)
        return STG_OK;
    if (c->factor < 1000 || c->factor > 1000000)
        return stg_refuse_thousandths(err, "cold", c->factor, "1 to 1000");
    if (c->starts == 0 && (c->time < STG_US || c->time > STG_DAY))
        return stg_refuse_duration(err, "cold", c->time, "1us to 1d");
    if (c->starts > 1000000000)
        return stg_refuse_number(err, "cold", c->starts, "1 to 1000000000");
    if (kind != STG_TRIGGER_OUTAGE)
        return stg_refuse(err,
                          "cold is of caches that an outage has emptied: "
                          "expected trigger=outage");
    return STG_OK;
}

/* A bin divides the duration, so that every bin is whole. */
static stg_status check_times(const stg_overload_options *o, stg_error *err)
{
    if (o->end_at < STG_MS || o->end_at > 30 * STG_DAY)
        return stg_refuse_duration(err, "duration", o->end_at, "1ms to 30d");
    if (o->warmup >= o->end_at)
        return stg_refuse_duration(err, "warmup", o->warmup,
                                   "less than the duration");
    if (o->bin == 0 || o->end_at % o->bin != 0 ||
        o->end_at / o->bin > STG_OVERLOAD_BINS_MAX)
        return stg_refuse_duration(
            err, "bin", o->bin, "what divides the duration into 1000 at most");
    if (o->timeout < STG_US ||
        (o->timeout > STG_DAY && o->timeout != STG_NEVER))
        return stg_refuse_duration(err, "timeout", o->timeout,
                                   "1us to 1d, or none");
    if (o->retry_after > STG_DAY)
        return stg_refuse_duration(err, "retry-after", o->retry_after,
                                   "0 to 1d");
    return STG_OK;
}

static stg_status check_policies(const stg_overload_options *o, stg_error *err)
{
    if (stg_policy_check(&o->policy, err) != STG_OK)
        return STG_INVALID;
    if (!o->has_others && o->share != 0 && o->share != STG_SHARE_OPEN)
        return stg_refuse(err,
                          "share is of the clients that have another "
                          "policy: expected others=POLICY, too");
    if (o->layers > STG_LAYERS_MAX)
        return stg_refuse_number(err, "layers", o->layers, "1 to 4");
    for (uint32_t i = 0; i < o->inner_count; i++)
        if (stg_policy_check(&o->inner[i], err) != STG_OK)
            return STG_INVALID;
    if (!o->has_others)
        return STG_OK;
    if (o->share > 1000000)
        return stg_refuse_number(err, "share", o->share,
                                 "0 to 1000000 millionths");
    return stg_policy_check(&o->others, err);
}

/* The most hedges of any policy. */
static uint32_t most_hedges(const stg_overload_options *o)
{
    uint32_t most = o->policy.hedge.max;

    if (o->has_others && o->others.hedge.max > most)
        most = o->others.hedge.max;
    for (uint32_t i = 0; o->layers > 1 && i < o->inner_count; i++)
        if (o->inner[i].hedge.max > most)
            most = o->inner[i].hedge.max;
    return most;
}

bool stg_overload_hedges(const stg_overload_options *o)
{
    return most_hedges(o) != 0;
}

stg_status stg_overload_check(const stg_overload_options *o, stg_error *err)
{
    if (check_policies(o, err) != STG_OK ||
        check_load(&o->load, err) != STG_OK ||
        stg_sim_service_check(&o->service, err) != STG_OK ||
        check_times(o, err) != STG_OK || check_trigger(o, err) != STG_OK ||
        check_return(o, err) != STG_OK)
        return STG_INVALID;
    if (o->processes < 1 || o->processes > 1000000)
        return stg_refuse_number(err, "processes", o->processes,
                                 "1 to 1000000");
    if (o->throttle != 0 && (o->throttle < 1000 || o->throttle > 100000))
        return stg_refuse_thousandths(err, "throttle", o->throttle,
                                      "none, or 1 to 100");
    if (o->errors > 1000000)
        return stg_refuse_number(err, "errors", o->errors,
                                 "0 to 1000000 millionths");
    if (o->live_max < 1 || o->live_max > 50000000)
        return stg_refuse_number(err, "operations at once", o->live_max,
                                 "1 to 50000000");
    if (o->load.is_closed && o->load.clients > o->live_max)
        return stg_refuse_number(err, "clients", o->load.clients,
                                 "no more than operations at once");
    return STG_OK;
}

static double most(double a, double b)
{
    return a > b ? a : b;
}

/* What an open load may have under way at once: what begins in the longest life
 * of an operation, twice over for the growth of arrays. The rate is turned from
 * operations a second into operations a ns. */
static double guess_live(const stg_overload_options *o)
{
    bool is_once = o->policy.attempts_max == 1 &&
                   (!o->has_others || o->others.attempts_max == 1);
    stg_ns deadline = o->policy.deadline;
    const stg_overload_load *l = &o->load;
    double rate = stg_load_most(l) / 1e9, life, live;

    if (l->is_closed)
        return l->clients;
    if (o->trigger.kind == STG_TRIGGER_SPIKE)
        rate *= most(1, o->trigger.factor / 1000.0);
    if (o->has_others)
        deadline = stg_ns_max(deadline, o->others.deadline);
    life = (double)stg_ns_min(deadline, o->end_at);
    if (is_once)
        life = (double)stg_ns_min(o->timeout, o->end_at);
    live = rate * life * 2;
    return live > o->live_max ? o->live_max : live;
}

uint64_t stg_overload_memory(const stg_overload_options *o)
{
    double layers = o->layers > 1 ? o->layers : 1;
    double live = guess_live(o) * layers, processes = o->processes * layers;
    uint32_t hedges = most_hedges(o);
    // Live ones have a request; and there are those that nobody waits for.
    double requests =
        live * (1 + hedges) + 2.0 * (o->service.queue_max + o->service.workers);
    double bins = (double)(uint32_t)(o->end_at / o->bin);
    double sum = live * (sizeof(stg_overload_operation) + 32) +
                 requests * (sizeof(stg_sim_request) + 32) +
                 (double)o->service.workers * sizeof(stg_sim_worker) +
                 processes * (sizeof(stg_peer) + sizeof(stg_with)) +
                 bins * sizeof(stg_overload_bin);

    if (o->throttle != 0)
        sum += processes * sizeof(stg_throttle);
    if (hedges != 0)
        sum += live * sizeof(stg_overload_round);
    return (uint64_t)sum;
}

/* -- a run ----------------------------------------------------------------- */

void stg_overload_push(stg_overload_world *w, stg_ns at,
                       stg_overload_event kind, uint32_t index)
{
    // What comes after the end does not happen.
    if (at < w->options->end_at)
        stg_engine_push(&w->engine, at, index << 3 | (uint32_t)kind);
}

static void on_start(void *ctx, uint32_t worker, stg_ns due_at)
{
    stg_overload_push(ctx, due_at, STG_EVENT_FINISH, worker);
}

static void on_shed(void *ctx, uint32_t request)
{
    stg_overload_refuse(ctx, request);
}

/* Zeroed bytes. */
static void *allocate(const stg_memory *memory, size_t count, size_t size)
{
    void *bytes = memory->allocate(memory->ctx, count * size);

    return bytes == NULL ? NULL : memset(bytes, 0, count * size);
}

static void release(const stg_memory *memory, void *bytes)
{
    if (bytes != NULL)
        memory->release(memory->ctx, bytes);
}

/* The operations of a process share its peer, and so budget and breaker. Those of
 * the clients come first, then those of each service that calls another. The
 * inits cannot fail: the options have passed the check. */
static stg_status make_processes(stg_overload_world *w)
{
    const stg_overload_options *o = w->options;
    uint32_t count = o->processes * w->layers, layer = 0;

    w->peers = allocate(w->memory, count, sizeof *w->peers);
    w->withs = allocate(w->memory, count, sizeof *w->withs);
    if (o->throttle != 0)
        w->throttles = allocate(w->memory, count, sizeof *w->throttles);
    if (w->peers == NULL || w->withs == NULL ||
        (o->throttle != 0 && w->throttles == NULL))
        return STG_IO;
    for (uint32_t i = 0; i < count; i++) {
        layer += i == (layer + 1) * o->processes;
        (void)stg_peer_init(&w->peers[i], layer == 0
                                              ? stg_overload_policy(o, i)
                                              : stg_overload_inner(o, layer));
        w->withs[i].peer = &w->peers[i];
        if (w->throttles != NULL)
            (void)stg_throttle_init(
                &w->throttles[i],
                &(stg_throttle_options){STG_THROTTLE_SRE, o->throttle});
    }
    return STG_OK;
}

/* A stream a concern; those that have no number of their own come out of one
 * that has. */
static void seed_all(stg_overload_world *w, uint64_t seed, uint64_t repetition)
{
    stg_rng seeds = stg_random_stream(seed, repetition, STG_CONCERN_CHOICE);

    w->of_load = stg_random_stream(seed, repetition, STG_CONCERN_ARRIVALS);
    w->of_jitter = stg_random_stream(seed, repetition, STG_CONCERN_BACKOFF);
    w->of_network = stg_random_stream(seed, repetition, STG_CONCERN_NETWORK);
    w->service.rng = stg_random_stream(seed, repetition, STG_CONCERN_SERVICE);
    w->of_process = stg_rng_seed(stg_rng_next(&seeds));
    w->of_think = stg_rng_seed(stg_rng_next(&seeds));
    w->of_errors = stg_rng_seed(stg_rng_next(&seeds));
    w->of_throttle = stg_rng_seed(stg_rng_next(&seeds));
}

/* A failure half-way is left to unmake(), so what was not made must be NULL.
 * The queue needs room for the largest event: kind in the 3 low bits, and a
 * slot or a worker above them. */
static stg_status make(stg_overload_world *w)
{
    const stg_overload_options *o = w->options;
    uint32_t bins = (uint32_t)(o->end_at / o->bin);
    uint32_t most_slots =
        o->live_max > o->service.workers ? o->live_max : o->service.workers;

    stg_engine_init(&w->engine, STG_SIM_QUEUE_AUTO, (most_slots + 1) << 3,
                    w->memory);
    if (stg_sim_service_init(&w->service, &o->service, o->live_max,
                             w->memory) != STG_OK ||
        make_processes(w) != STG_OK)
        return STG_IO;
    w->service.on_start = on_start;
    w->service.on_shed = on_shed;
    w->service.ctx = w;
    w->result->bins = allocate(w->memory, bins, sizeof *w->result->bins);
    if (w->result->bins == NULL)
        return STG_IO;
    w->result->bin_count = bins;
    w->bin = w->result->bins;
    w->bin_end_at = o->bin;
    return STG_OK;
}

static void unmake(stg_overload_world *w)
{
    stg_engine_close(&w->engine);
    stg_sim_service_close(&w->service);
    release(w->memory, w->peers);
    release(w->memory, w->withs);
    release(w->memory, w->throttles);
    release(w->memory, w->operations);
    release(w->memory, w->rounds);
}

static void handle(stg_overload_world *w, uint32_t id)
{
    uint32_t index = id >> 3;

    switch ((stg_overload_event)(id & 7)) {
    case STG_EVENT_BEGIN:
        stg_overload_begin(w);
        break;
    case STG_EVENT_OPERATION:
        stg_overload_wake(w, index);
        break;
    case STG_EVENT_REACH:
        stg_overload_reach(w, index);
        break;
    case STG_EVENT_FINISH:
        stg_overload_finish(w, index);
        break;
    case STG_EVENT_ANSWER:
        stg_overload_answer(w, index);
        break;
    case STG_EVENT_TRIGGER:
        stg_overload_change(w, index == 0);
        break;
    case STG_EVENT_RETURN:
        stg_overload_return(w, index);
        break;
    }
}

/* stg_overload_push() keeps out what comes at the end or later, so a run that
 * comes to its end has an empty queue. Any other end means that it was cut. */
static void go(stg_overload_world *w)
{
    uint32_t id;

    while (!w->result->is_cut && stg_engine_next(&w->engine, &id)) {
        w->now = w->engine.now;
        stg_overload_pass(w, w->now);
        handle(w, id);
    }
    w->result->events = w->engine.events;
    if (w->engine.end != STG_END_EMPTY)
        w->result->is_cut = true;
}

static void begin(stg_overload_world *w)
{
    const stg_trigger *t = &w->options->trigger;

    if (t->kind != STG_TRIGGER_NONE) {
        stg_overload_push(w, t->from_at, STG_EVENT_TRIGGER, 0);
        stg_overload_push(w, t->until_at, STG_EVENT_TRIGGER, 1);
    }
    stg_overload_begin_load(w);
}

/* A run that was cut has the bins that were whole by then, and no others. */
static void end(stg_overload_world *w)
{
    const stg_overload_options *o = w->options;
    stg_overload_result *r = w->result;
    stg_ns at = r->is_cut ? w->now : o->end_at;

    stg_overload_pass(w, at);
    stg_sim_service_count_rest(&w->service, at);
    r->service = w->service.counts;
    r->counted = stg_ns_sub(at, o->warmup);
    r->bin_count = (uint32_t)(at / o->bin);
    r->recovery = stg_overload_recover(o, r->bins, r->bin_count);
}

stg_status stg_overload_run(const stg_overload_options *o, uint64_t seed,
                            uint64_t repetition, const atomic_bool *stop,
                            const stg_memory *memory, stg_overload_result *r)
{
    stg_overload_world w = {.options = o,
                            .memory = memory,
                            .result = r,
                            .layers = o->layers > 1 ? o->layers : 1,
                            .operation_free = STG_SIM_NONE};
    stg_status status;

    memset(r, 0, sizeof *r);
    status = make(&w);
    if (status == STG_OK) {
        w.engine.stop = stop;
        if (o->events_max > 0)
            w.engine.events_max = o->events_max;
        seed_all(&w, seed, repetition);
        begin(&w);
        go(&w);
        end(&w);
    } else {
        stg_overload_free(r, memory);
    }
    unmake(&w);
    return status;
}

void stg_overload_free(stg_overload_result *r, const stg_memory *memory)
{
    release(memory, r->bins);
    r->bins = NULL;
    r->bin_count = 0;
}
