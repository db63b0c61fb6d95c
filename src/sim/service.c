#include "sim/service.h"

#include <string.h>

#include "core/writer.h"
#include "sim/random.h"
#include "sim/service_internal.h"

/* Workers and a queue, as lists through arrays: a request is in one list at
 * most (free, or queued), a worker is busy or in the list of the free.
 *
 * Every function that changes `queued` or `busy` calls stg_sim_service_count()
 * first: `present` and `queued` are integrals over time, and the time since the
 * last change counts with the old numbers. `present` and `stay_inside` measure
 * the same thing from two sides (Little's law); tests compare them.
 *
 * A stall does not take back the events that on_start asked for. They come, and
 * stg_sim_service_is_due() tells them from those that a resume asked for. */

enum { NORMAL = 1000 }; // thousandths of the usual time
enum { REQUESTS_FIRST = 1024 };

#define SPANS "1us to 1d"

static bool is_span(stg_ns span)
{
    return span >= STG_US && span <= STG_DAY;
}

stg_status stg_sim_service_check(const stg_sim_service_options *o,
                                 stg_error *err)
{
    if (o->workers < 1 || o->workers > 100000)
        return stg_refuse_number(err, "workers", o->workers, "1 to 100000");
    if (o->queue_max > 10000000)
        return stg_refuse_number(err, "queue", o->queue_max, "0 to 10000000");
    if (o->drag > 1000000)
        return stg_refuse_number(err, "drag", o->drag,
                                 "0 to 1000000 millionths");
    if (o->order == STG_SIM_ORDER_ADAPTIVE && !is_span(o->stands_after))
        return stg_refuse_duration(err, "order", o->stands_after, SPANS);
    if (o->shed != STG_SIM_SHED_NONE && !is_span(o->shed_target))
        return stg_refuse_duration(err, "shedding", o->shed_target, SPANS);
    if ((o->shed == STG_SIM_SHED_CODEL || o->shed_interval != 0) &&
        !is_span(o->shed_interval))
        return stg_refuse_duration(err, "shedding", o->shed_interval, SPANS);
    if (o->limit != 0 && !is_span(o->limit))
        return stg_refuse_duration(err, "limit", o->limit, SPANS);
    return STG_OK;
}

static void make_workers(stg_sim_service *s)
{
    for (uint32_t i = 0; i < s->options.workers; i++)
        s->workers[i] = (stg_sim_worker){
            .request = STG_SIM_NONE,
            .next = i + 1 < s->options.workers ? i + 1 : STG_SIM_NONE,
        };
    s->worker_free = 0;
}

stg_status stg_sim_service_init(stg_sim_service *s,
                                const stg_sim_service_options *o,
                                uint32_t request_max, const stg_memory *memory)
{
    *s = (stg_sim_service){
        .options = *o,
        .memory = memory,
        .request_free = STG_SIM_NONE,
        .request_max = request_max,
        .first = STG_SIM_NONE,
        .last = STG_SIM_NONE,
        .inside_max = o->limit != 0 ? o->workers : UINT32_MAX,
        .staffed = o->workers,
        .slowness = NORMAL,
        .is_uneven = o->drag != 0,
    };
    s->workers = memory->allocate(memory->ctx, o->workers * sizeof *s->workers);
    if (s->workers == NULL)
        return STG_IO;
    make_workers(s);
    return STG_OK;
}

void stg_sim_service_close(stg_sim_service *s)
{
    if (s->workers != NULL)
        s->memory->release(s->memory->ctx, s->workers);
    if (s->requests != NULL)
        s->memory->release(s->memory->ctx, s->requests);
    s->workers = NULL;
    s->requests = NULL;
}

/* -- slots ----------------------------------------------------------------- */

static bool grow(stg_sim_service *s)
{
    uint32_t count =
        s->request_count == 0 ? REQUESTS_FIRST : s->request_count * 2;
    stg_sim_request *requests;

    if (count > s->request_max)
        count = s->request_max;
    if (count <= s->request_count)
        return false;
    requests = s->memory->allocate(s->memory->ctx, count * sizeof *requests);
    if (requests == NULL)
        return false;
    if (s->requests != NULL) {
        memcpy(requests, s->requests, s->request_count * sizeof *requests);
        s->memory->release(s->memory->ctx, s->requests);
    }
    for (uint32_t i = count; i-- > s->request_count;) {
        requests[i] = (stg_sim_request){.next = s->request_free};
        s->request_free = i;
    }
    s->requests = requests;
    s->request_count = count;
    return true;
}

uint32_t stg_sim_service_take(stg_sim_service *s, uint32_t caller)
{
    uint32_t id;

    if (s->request_free == STG_SIM_NONE && !grow(s))
        return STG_SIM_NONE;
    id = s->request_free;
    s->request_free = s->requests[id].next;
    s->requests[id] = (stg_sim_request){
        .caller = caller,
        .next = STG_SIM_NONE,
        .prev = STG_SIM_NONE,
        .place = STG_REQUEST_AWAY,
    };
    return id;
}

void stg_sim_service_drop(stg_sim_service *s, uint32_t request)
{
    s->requests[request] = (stg_sim_request){.next = s->request_free};
    s->request_free = request;
}

/* -- counts ---------------------------------------------------------------- */

void stg_sim_service_count(stg_sim_service *s, stg_ns now)
{
    double passed = (double)stg_ns_sub(now, s->counted_at);

    s->counts.present += passed * ((double)s->queued + s->busy);
    s->counts.queued += passed * s->queued;
    s->counted_at = now;
}

void stg_sim_service_count_from(stg_sim_service *s, stg_ns now)
{
    s->counts = (stg_sim_service_counts){.queued_most = s->queued};
    s->counted_from_at = s->counted_at = now;
}

/* The part of a request's stay that lies in the time that is counted. */
void stg_sim_service_count_stay(stg_sim_service *s, const stg_sim_request *q,
                                stg_ns now)
{
    stg_ns from_at = stg_ns_max(q->reached_at, s->counted_from_at);

    s->counts.stay_inside += (double)stg_ns_sub(now, from_at);
}

void stg_sim_service_count_rest(stg_sim_service *s, stg_ns now)
{
    stg_sim_service_count(s, now);
    for (uint32_t i = 0; i < s->request_count; i++)
        if (s->requests[i].place >= STG_REQUEST_QUEUED)
            stg_sim_service_count_stay(s, &s->requests[i], now);
}

/* -- workers --------------------------------------------------------------- */

/* ns times thousandths. The division comes first, as ns * factor may overflow;
 * the remainder is scaled apart, so that nothing is lost but a fraction. */
static stg_ns scale(stg_ns ns, uint32_t factor)
{
    return stg_ns_add(stg_ns_mul(ns / 1000, factor), ns % 1000 * factor / 1000);
}

/* How warm caches are is no more than a rounding error where exp(-x) is less
 * than 1e-12: they are warm then. */
static double find_coldness(stg_sim_service *s, stg_ns now)
{
    const stg_sim_cold *c = &s->cold;
    double x = c->starts != 0
                   ? (double)s->cold_starts / c->starts
                   : (double)stg_ns_sub(now, s->cold_from_at) / (double)c->time;

    s->cold_starts++;
    if (x < 28)
        return (c->factor / 1000.0 - 1) * stg_random_exp(x);
    s->is_uneven = s->options.drag != 0;
    s->cold = (stg_sim_cold){0};
    return 0;
}

/* By those that are inside besides the one that is started, and by the cold. */
static stg_ns lengthen(stg_sim_service *s, stg_ns time, stg_ns now)
{
    double others = (double)s->queued + s->busy, factor;

    factor = 1 + others * s->options.drag / 1e6;
    if (s->cold.factor != 0)
        factor *= 1 + find_coldness(s, now);
    factor *= (double)time;
    return factor < 0x1p62 ? (stg_ns)(factor + 0.5) : (stg_ns)1 << 62;
}

static stg_ns draw(stg_sim_service *s)
{
    const stg_sim_service_options *o = &s->options;

    return o->times == NULL
               ? stg_distribution_draw(&o->time, &s->rng)
               : o->times[stg_rng_upto(&s->rng, o->time_count - 1)];
}

static void start(stg_sim_service *s, uint32_t request, stg_ns now)
{
    stg_sim_request *q = &s->requests[request];
    uint32_t id = s->worker_free;
    stg_sim_worker *w = &s->workers[id];
    stg_ns time = scale(draw(s), s->slowness);

    if (s->is_uneven)
        time = lengthen(s, time, now);
    s->worker_free = w->next;
    *w = (stg_sim_worker){
        .request = request, .started_at = now, .due_at = stg_ns_add(now, time)};
    q->place = STG_REQUEST_SERVED;
    s->busy++;
    s->counts.started++;
    if (q->reached_at < now)
        s->counts.waited++;
    s->on_start(s->ctx, id, w->due_at);
}

static void set_free(stg_sim_service *s, uint32_t worker)
{
    s->workers[worker].request = STG_SIM_NONE;
    s->workers[worker].next = s->worker_free;
    s->worker_free = worker;
    s->busy--;
}

/* Who gave up and still waits is started as well: skips_gone has taken such out
 * of the queue before. */
static void start_next(stg_sim_service *s, stg_ns now)
{
    const stg_sim_service_options *o = &s->options;
    uint32_t id = s->first;

    if (o->order == STG_SIM_ORDER_FIFO && o->shed == STG_SIM_SHED_NONE)
        stg_sim_queue_take_out(s, id);
    else
        id = stg_sim_queue_next(s, now);
    if (id != STG_SIM_NONE)
        start(s, id, now);
}

static bool has_free_worker(const stg_sim_service *s)
{
    return !s->is_stalled && s->busy < s->staffed;
}

stg_reception stg_sim_service_reach(stg_sim_service *s, uint32_t request,
                                    stg_ns now)
{
    stg_sim_service_count(s, now);
    s->counts.reached++;
    s->requests[request].reached_at = now;
    if (s->queued + s->busy >= s->inside_max) {
        s->counts.refused++;
        return STG_RECEPTION_REFUSED;
    }
    if (has_free_worker(s)) {
        if (s->options.shed == STG_SIM_SHED_CODEL)
            stg_sim_queue_pass(s);
        start(s, request, now);
        return STG_RECEPTION_STARTED;
    }
    if (s->queued < s->options.queue_max) {
        stg_sim_queue_append(s, request, now);
        return STG_RECEPTION_QUEUED;
    }
    s->counts.refused++;
    return STG_RECEPTION_REFUSED;
}

bool stg_sim_service_is_due(const stg_sim_service *s, uint32_t worker,
                            stg_ns now)
{
    const stg_sim_worker *w = &s->workers[worker];

    return w->request != STG_SIM_NONE && w->due_at == now && !s->is_stalled;
}

static void count_served(stg_sim_service *s, const stg_sim_worker *w,
                         stg_ns now)
{
    const stg_sim_request *q = &s->requests[w->request];

    s->counts.served++;
    s->counts.served_for_nobody += q->is_gone;
    stg_sim_service_count_stay(s, q, now);
    if (q->reached_at < s->counted_from_at)
        return;
    s->counts.timed++;
    s->counts.wait += (double)(w->started_at - q->reached_at);
    s->counts.stay += (double)(now - q->reached_at);
}

/* As the AIMDLimit of Netflix's concurrency-limits: one more where at least half
 * of the limit is in use, a tenth less where a request was late. Never fewer
 * than have a worker, nor more than have a place. */
static void adapt(stg_sim_service *s, bool is_late)
{
    uint32_t most = s->options.workers + s->options.queue_max;

    if (is_late)
        s->inside_max = s->inside_max / 10 * 9 + s->inside_max % 10 * 9 / 10;
    else if (s->queued + s->busy >= (s->inside_max + 1) / 2)
        s->inside_max++;
    if (s->inside_max < s->options.workers)
        s->inside_max = s->options.workers;
    if (s->inside_max > most)
        s->inside_max = most;
}

uint32_t stg_sim_service_finish(stg_sim_service *s, uint32_t worker, stg_ns now)
{
    uint32_t request = s->workers[worker].request;

    stg_sim_service_count(s, now);
    count_served(s, &s->workers[worker], now);
    if (s->options.limit != 0)
        adapt(s, now - s->requests[request].reached_at > s->options.limit);
    s->requests[request].place = STG_REQUEST_AWAY;
    set_free(s, worker);
    if (s->queued > 0 && s->busy < s->staffed)
        start_next(s, now);
    return request;
}

bool stg_sim_service_leave(stg_sim_service *s, uint32_t request, stg_ns now)
{
    stg_sim_request *q = &s->requests[request];

    q->is_gone = true;
    if (!s->options.skips_gone || q->place != STG_REQUEST_QUEUED)
        return false;
    stg_sim_service_count(s, now);
    stg_sim_service_count_stay(s, q, now);
    stg_sim_queue_take_out(s, request);
    s->counts.lost++;
    return true;
}

/* -- trouble --------------------------------------------------------------- */

void stg_sim_service_stall(stg_sim_service *s, stg_ns now)
{
    s->is_stalled = true;
    for (uint32_t i = 0; i < s->options.workers; i++)
        s->workers[i].left = stg_ns_sub(s->workers[i].due_at, now);
}

/* Workers go on with what they had left at the stall; then those that were free
 * take from the queue. */
void stg_sim_service_resume(stg_sim_service *s, stg_ns now)
{
    stg_sim_service_count(s, now);
    s->is_stalled = false;
    for (uint32_t i = 0; i < s->options.workers; i++) {
        stg_sim_worker *w = &s->workers[i];

        if (w->request == STG_SIM_NONE)
            continue;
        w->due_at = stg_ns_add(now, w->left);
        s->on_start(s->ctx, i, w->due_at);
    }
    while (s->queued > 0 && s->busy < s->staffed)
        start_next(s, now);
}

void stg_sim_service_staff(stg_sim_service *s, uint32_t workers, stg_ns now)
{
    s->staffed = workers;
    stg_sim_service_count(s, now);
    while (s->queued > 0 && has_free_worker(s))
        start_next(s, now);
}

void stg_sim_service_chill(stg_sim_service *s, const stg_sim_cold *cold,
                           stg_ns now)
{
    s->cold = *cold;
    s->cold_from_at = now;
    s->cold_starts = 0;
    s->is_uneven = true;
}

/* The queue first, then the workers; a worker that becomes free takes nothing,
 * since the queue is empty by then. */
uint32_t stg_sim_service_clear(stg_sim_service *s, stg_ns now)
{
    uint32_t id = s->first;

    stg_sim_service_count(s, now);
    if (id != STG_SIM_NONE) {
        stg_sim_queue_take_out(s, id);
    } else {
        uint32_t i = 0;

        while (i < s->options.workers && s->workers[i].request == STG_SIM_NONE)
            i++;
        if (i == s->options.workers)
            return STG_SIM_NONE;
        id = s->workers[i].request;
        s->requests[id].place = STG_REQUEST_AWAY;
        set_free(s, i);
    }
    s->counts.lost++;
    stg_sim_service_count_stay(s, &s->requests[id], now);
    return id;
}
