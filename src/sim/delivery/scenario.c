#include "sim/delivery/scenario.h"

#include <stdlib.h>
#include <string.h>

#include <stagger/text.h>

#include "core/writer.h"
#include "sim/delivery/internal.h"
#include "sim/random.h"

/* A world with a load. Time goes in ticks of a second: messages come within a tick
 * at their own times, and at its end each lane is looked at. Intervals are as many
 * ticks as it takes to have STG_WORLD_SCENARIO_INTERVALS of them at most: whenever there
 * are more, two become one. */

enum { TICK = STG_S, KEYS = 1000 };

/* -- a run ------------------------------------------------------------------- */

typedef struct lane {
    uint64_t starts, delivered, dead; /* as last looked at */
    uint64_t oldest;     /* all messages before this one have their ends */
    uint64_t bulk_until; /* the last position of its bulk rows */
} lane;

typedef struct run {
    const stg_world_scenario *s;
    const stg_world_scenario_hooks *hooks;
    stg_world_scenario_result *r;
    stg_world *world;
    stg_ns origin_at;
    stg_rng arrivals, answers;
    stg_ns next_at;  /* of the next message */
    double gap;      /* ns between two of them, on the average */
    size_t retained; /* all messages before it are older than the retention */
    lane *lanes;
    uint64_t ticks_each, ticks; /* of an interval; in the last one */
} run;

static void *take(run *x, size_t count, size_t size)
{
    void *bytes =
        count == 0 || count > SIZE_MAX / size
            ? NULL
            : x->hooks->memory.allocate(x->hooks->memory.ctx, count * size);

    if (bytes != NULL)
        memset(bytes, 0, count * size);
    return bytes;
}

static void give(const stg_memory *memory, void *bytes)
{
    if (bytes != NULL)
        memory->release(memory->ctx, bytes);
}

/* Half to one and a half times what a target takes. */
static stg_ns draw_latency(run *x)
{
    return x->s->latency / 2 + stg_rng_upto(&x->answers, x->s->latency);
}

static stg_world_answer answer(stg_world *w, uint32_t l, uint64_t position,
                               uint64_t attempt)
{
    run *x = stg_world_ctx(w);
    stg_ns since = stg_ns_sub(stg_world_now(w), x->origin_at);
    stg_world_answer a = {stg_ok(), draw_latency(x), true};

    (void)position;
    (void)attempt;
    for (size_t i = 0; i < x->s->fault_count; i++) {
        const stg_world_scenario_fault *f = &x->s->faults[i];

        if (!stg_world_scenario_holds(x->s, f, l, since) ||
            stg_rng_upto(&x->answers, 99) >= f->share)
            continue;
        if (f->what.took == 0)
            return (stg_world_answer){f->what.outcome, a.took,
                                      f->what.is_processed};
        return f->what;
    }
    return a;
}

static void on_told(void *ctx, const stg_action *notice)
{
    run *x = ctx;

    if (x->hooks->told != NULL)
        x->hooks->told(x->hooks->ctx, notice, stg_world_now(x->world));
}

static void on_stored(void *ctx, const stg_group *group)
{
    run *x = ctx;

    for (size_t i = 0; i < group->change_count; i++) {
        const stg_change *c = &group->changes[i];

        if (c->kind == STG_CHANGE_RANGE &&
            c->last_position > x->lanes[c->lane].bulk_until)
            x->lanes[c->lane].bulk_until = c->last_position;
    }
    if (x->hooks->stored != NULL)
        x->hooks->stored(x->hooks->ctx, group, stg_world_now(x->world));
}

/* -- at the start */

/* What the store has is the lane's own: it keeps the policy and what its options
 * say. */
static stg_status add_lane(run *x, const stg_world_scenario_target *t)
{
    char text[STG_POLICY_TEXT_MAX];
    stg_lane_options *o, all = t->lane;
    stg_status status = stg_policy_print(t->lane.policy, text);

    if (status != STG_OK)
        return status;
    o = stg_world_add_lane(x->world, text);
    if (o == NULL)
        return STG_IO;
    all.policy = o->policy;
    all.accepts = o->accepts;
    all.follows = o->follows;
    all.ctx = o->ctx;
    *o = all;
    return STG_OK;
}

static stg_status make_world(run *x)
{
    const stg_world_hooks hooks = {.memory = x->hooks->memory,
                                   .told = on_told,
                                   .stored = on_stored,
                                   .ctx = x};
    stg_status status = stg_world_new(&x->world, &hooks, x->s->seed);
    bool has_keys = false;

    if (status != STG_OK)
        return status;
    *stg_world_options(x->world) = x->s->flow;
    stg_world_set_checks(x->world, UINT32_MAX);
    for (size_t t = 0; t < x->s->target_count && status == STG_OK; t++) {
        status = add_lane(x, &x->s->targets[t]);
        has_keys |= x->s->targets[t].lane.order == STG_ORDER_KEY;
        if (status == STG_OK)
            stg_world_set_target(x->world, (uint32_t)t, answer);
    }
    stg_world_set_keys(x->world, has_keys ? KEYS : 0);
    stg_world_set_size(x->world, x->s->size < STG_WORLD_SIZE_MIN
                                     ? STG_WORLD_SIZE_MIN
                                     : x->s->size);
    return status;
}

static stg_status make(run *x)
{
    size_t targets = x->s->target_count;
    stg_world_scenario_result *r = x->r;

    x->lanes = take(x, targets, sizeof *x->lanes);
    r->sums = take(x, targets, sizeof *r->sums);
    r->held = take(x, STG_WORLD_SCENARIO_INTERVALS, sizeof *r->held);
    r->intervals =
        take(x, STG_WORLD_SCENARIO_INTERVALS * targets, sizeof *r->intervals);
    if (x->lanes == NULL || r->sums == NULL || r->held == NULL ||
        r->intervals == NULL)
        return STG_IO;
    return make_world(x);
}

/* -- as time goes by */

/* When message i came: nobody sets a scenario's wall clock. */
static stg_ns published_at(const run *x, uint64_t i)
{
    const stg_world *w = x->world;

    return w->log[i].created_at - w->wall_at + w->origin_at;
}

static void draw_gap(run *x)
{
    x->next_at = stg_ns_add(
        x->next_at, (stg_ns)(x->gap * stg_random_exponential(&x->arrivals)));
}

static stg_world_scenario_interval *interval_of(const run *x, size_t i,
                                                size_t target)
{
    return &x->r->intervals[i * x->s->target_count + target];
}

static void merge(stg_world_scenario_interval *to,
                  const stg_world_scenario_interval *later)
{
    to->starts += later->starts;
    to->delivered += later->delivered;
    to->dead += later->dead;
    to->waiting = later->waiting;
    to->slowest = stg_ns_max(to->slowest, later->slowest);
}

/* Two intervals become one. */
static void halve(run *x)
{
    stg_world_scenario_result *r = x->r;
    const size_t targets = x->s->target_count, half = r->interval_count / 2;

    for (size_t i = 0; i < half; i++) {
        for (size_t t = 0; t < targets; t++) {
            stg_world_scenario_interval both = *interval_of(x, 2 * i, t);

            merge(&both, interval_of(x, 2 * i + 1, t));
            *interval_of(x, i, t) = both;
        }
        r->held[i] = r->held[2 * i] > r->held[2 * i + 1] ? r->held[2 * i]
                                                         : r->held[2 * i + 1];
    }
    memset(interval_of(x, half, 0), 0,
           (r->interval_count - half) * targets * sizeof *r->intervals);
    memset(&r->held[half], 0, (r->interval_count - half) * sizeof *r->held);
    r->interval_count = half;
    x->ticks_each *= 2;
}

/* Whether message i has its end: by itself, or in a bulk row, which has what was
 * never tried. */
static bool is_over(const run *x, uint32_t l, uint64_t i)
{
    const stg_world_receipt *r = &x->world->lanes[l]->receipts[i];

    return r->is_over || (r->attempts == 0 &&
                          x->world->log[i].position <= x->lanes[l].bulk_until);
}

/* For how long the oldest message waits that has not its end; 0: there is none. */
static stg_ns find_age(run *x, uint32_t l)
{
    lane *of = &x->lanes[l];

    while (of->oldest < x->world->log_count && is_over(x, l, of->oldest))
        of->oldest++;
    return of->oldest == x->world->log_count
               ? 0
               : stg_ns_sub(x->world->now, published_at(x, of->oldest));
}

static void tell_look(const run *x, uint32_t l, const stg_lane_view *v)
{
    stg_ns age = v->oldest_at == 0
                     ? 0
                     : stg_ns_sub(stg_world_wall(x->world), v->oldest_at);

    if (x->hooks->looked != NULL)
        x->hooks->looked(x->hooks->ctx, l, stg_ns_add(v->waiting, v->lag), age,
                         stg_world_now(x->world));
}

/* What a lane has done since the last look. Returns what it still has before it; of
 * one that is paused nothing is awaited. */
static uint64_t look_at(run *x, uint32_t l, stg_world_scenario_interval *in)
{
    stg_world_lane_totals totals = stg_world_sum_lane(x->world, l);
    stg_world_scenario_sum *sum = &x->r->sums[l];
    stg_ns now = stg_world_now(x->world);
    lane *of = &x->lanes[l];
    stg_lane_view v;

    if (stg_flow_view_lane(stg_world_flow(x->world), l, &v, now) != STG_OK)
        return 0;
    in->starts += totals.starts - of->starts;
    in->delivered += v.delivered - of->delivered;
    in->dead += v.dead - of->dead;
    of->starts = totals.starts;
    of->delivered = v.delivered;
    of->dead = v.dead;
    in->waiting = x->world->log_count - v.delivered - v.dead - v.cancelled;
    sum->openings = v.openings;
    if (in->waiting > sum->waiting_most)
        sum->waiting_most = in->waiting;
    if (find_age(x, l) > STG_WORLD_SCENARIO_LATE) {
        sum->late += TICK;
        sum->late_until = stg_ns_sub(now, x->origin_at);
    }
    tell_look(x, l, &v);
    return v.state == STG_LANE_PAUSED ? 0 : in->waiting;
}

/* What is older than the retention goes. */
static void retain(run *x)
{
    stg_ns now = stg_world_now(x->world);
    size_t from = x->retained;

    while (x->retained < x->world->log_count &&
           stg_ns_sub(now, published_at(x, x->retained)) > x->s->retention)
        x->retained++;
    if (x->retained > from)
        stg_world_retain(x->world, 0,
                         stg_world_position_at(x->world, x->retained - 1) + 1);
}

/* The end of a tick. Returns how much waits, of all lanes. */
static uint64_t look(run *x)
{
    stg_world_scenario_result *r = x->r;
    uint64_t waiting = 0;
    stg_flow_view v;
    size_t at;

    if (x->ticks == 0) {
        if (r->interval_count == STG_WORLD_SCENARIO_INTERVALS)
            halve(x);
        r->interval_count++;
    }
    at = r->interval_count - 1;
    for (uint32_t l = 0; l < x->s->target_count; l++)
        waiting += look_at(x, l, interval_of(x, at, l));
    stg_flow_view_all(stg_world_flow(x->world), &v, stg_world_now(x->world));
    if (v.held > r->held[at])
        r->held[at] = v.held;
    x->ticks = (x->ticks + 1) % x->ticks_each;
    return waiting;
}

/* Until the next look. */
static void tick(run *x, stg_ns until_at)
{
    stg_ns end_at = stg_ns_add(x->origin_at, x->s->load);

    while (x->next_at <= until_at && x->next_at < end_at) {
        stg_world_run(x->world, x->next_at);
        stg_world_publish(x->world, 0, 1);
        draw_gap(x);
    }
    stg_world_run(x->world, until_at);
    retain(x);
}

static void live(run *x)
{
    stg_ns at = x->origin_at, end_at = stg_ns_add(at, x->s->load);
    uint64_t waiting = 1;

    draw_gap(x);
    stg_world_start(x->world);
    while ((at < end_at || waiting > 0) &&
           at < stg_ns_add(end_at, STG_WORLD_SCENARIO_TAIL)) {
        at = stg_ns_add(at, TICK);
        tick(x, at);
        if (stg_world_failed(x->world) != NULL)
            break;
        waiting = look(x);
        if (x->hooks->passed != NULL && !x->hooks->passed(x->hooks->ctx, at)) {
            x->r->is_interrupted = true;
            break;
        }
    }
    x->r->lasted = stg_ns_sub(at, x->origin_at);
    x->r->interval = x->ticks_each * TICK;
}

/* -- what came of it */

static int compare(const void *a, const void *b)
{
    const stg_ns *left = a, *right = b;

    return (*left > *right) - (*left < *right);
}

/* What `percent` of them do not exceed; they are sorted. */
static stg_ns percentile(const stg_ns *delays, size_t count, uint32_t percent)
{
    size_t rank = (count * percent + 99) / 100;

    return count == 0 ? 0 : delays[rank > 0 ? rank - 1 : 0];
}

static void sum_up(stg_world_scenario_sum *sum, stg_ns *delays, size_t count)
{
    qsort(delays, count, sizeof *delays, compare);
    sum->p50 = percentile(delays, count, 50);
    sum->p99 = percentile(delays, count, 99);
    sum->slowest = percentile(delays, count, 100);
}

/* Marks the messages that are dead by rows of their own. */
static void mark_dead(const run *x, uint32_t l, bool *is_dead)
{
    size_t count = stg_world_sum(x->world).dead;

    for (size_t i = 0; i < count; i++) {
        const stg_world_dead *d = stg_world_dead_at(x->world, i);
        uint64_t at;

        if (d->lane != l || d->count > 0)
            continue;
        at = stg_world_find(x->world, 0, d->position);
        if (at < x->world->log_count)
            is_dead[at] = true;
    }
}

/* The delays of what the lane delivered. Returns how many. */
static size_t find_delays(run *x, uint32_t l, bool *is_dead, stg_ns *delays)
{
    size_t count = 0;

    memset(is_dead, 0, x->world->log_count * sizeof *is_dead);
    mark_dead(x, l, is_dead);
    for (uint64_t i = 0; i < x->world->log_count; i++) {
        const stg_world_receipt *receipt = &x->world->lanes[l]->receipts[i];
        stg_ns came_at = published_at(x, i);
        size_t at = (size_t)((came_at - x->origin_at) / x->r->interval);
        stg_world_scenario_interval *in;

        if (!receipt->is_over || receipt->processed == 0 || is_dead[i] ||
            at >= x->r->interval_count)
            continue;
        in = interval_of(x, at, l);
        delays[count] = stg_ns_sub(receipt->ended_at, came_at);
        in->slowest = stg_ns_max(in->slowest, delays[count]);
        count++;
    }
    return count;
}

static void add_sum(stg_world_scenario_sum *all,
                    const stg_world_scenario_sum *one)
{
    all->messages += one->messages;
    all->delivered += one->delivered;
    all->dead += one->dead;
    all->starts += one->starts;
    all->shed += one->shed;
    all->expired += one->expired;
    all->openings += one->openings;
    all->waiting_most += one->waiting_most;
    all->waiting += one->waiting;
    all->late = stg_ns_max(all->late, one->late);
    all->late_until = stg_ns_max(all->late_until, one->late_until);
}

static void count_bulk(const run *x)
{
    size_t count = stg_world_sum(x->world).dead;

    for (size_t i = 0; i < count; i++) {
        const stg_world_dead *d = stg_world_dead_at(x->world, i);

        if (d->lane < x->s->target_count)
            *(d->reason == STG_SHED_OPEN ? &x->r->sums[d->lane].shed
                                         : &x->r->sums[d->lane].expired) +=
                d->count;
    }
}

static stg_status conclude(run *x)
{
    size_t targets = x->s->target_count, total = 0;
    stg_ns *delays = take(x, x->world->log_count * targets + 1, sizeof *delays);
    bool *is_dead = take(x, x->world->log_count + 1, sizeof *is_dead);
    stg_status status = delays == NULL || is_dead == NULL ? STG_IO : STG_OK;

    if (status == STG_OK)
        count_bulk(x);
    for (uint32_t l = 0; l < targets && status == STG_OK; l++) {
        stg_world_scenario_sum *sum = &x->r->sums[l];
        size_t count = find_delays(x, l, is_dead, &delays[total]);

        sum->messages = x->world->log_count;
        sum->delivered = x->lanes[l].delivered;
        sum->dead = x->lanes[l].dead;
        sum->starts = x->lanes[l].starts;
        sum->waiting = sum->messages - sum->delivered - sum->dead;
        sum_up(sum, &delays[total], count);
        add_sum(&x->r->all, sum);
        total += count;
    }
    if (status == STG_OK)
        sum_up(&x->r->all, delays, total);
    give(&x->hooks->memory, delays);
    give(&x->hooks->memory, is_dead);
    return status;
}

/* -- all of it */

static void end(run *x)
{
    const stg_world_failure *failure =
        x->world == NULL ? NULL : stg_world_failed(x->world);

    if (failure != NULL)
        x->r->failure = *failure;
    stg_world_free(x->world);
    give(&x->hooks->memory, x->lanes);
}

stg_status stg_world_scenario_run(const stg_world_scenario *s,
                                  const stg_world_scenario_hooks *hooks,
                                  stg_world_scenario_result *r, stg_error *err)
{
    run x = {.s = s,
             .hooks = hooks,
             .r = r,
             .arrivals = stg_random_stream(s->seed, 0, STG_CONCERN_ARRIVALS),
             .answers = stg_random_stream(s->seed, 0, STG_CONCERN_SERVICE),
             .gap = (double)STG_S * 1000 / s->rate,
             .ticks_each = 1};
    stg_status status;

    *r = (stg_world_scenario_result){.interval = TICK};
    status = stg_world_scenario_check(s, err);
    if (status != STG_OK)
        return status;
    status = make(&x);
    if (status == STG_OK) {
        x.origin_at = x.next_at = r->began_at = stg_world_now(x.world);
        live(&x);
    }
    if (status == STG_OK && stg_world_failed(x.world) == NULL)
        status = conclude(&x);
    end(&x);
    if (status == STG_OK && r->failure.invariant != NULL &&
        strcmp(r->failure.invariant, "memory") == 0)
        status = STG_IO;
    if (status == STG_IO)
        (void)stg_refuse(err, "there is no memory");
    return status;
}

void stg_world_scenario_free(stg_world_scenario_result *r,
                             const stg_memory *memory)
{
    give(memory, r->intervals);
    give(memory, r->held);
    give(memory, r->sums);
    *r = (stg_world_scenario_result){.lasted = 0};
}
