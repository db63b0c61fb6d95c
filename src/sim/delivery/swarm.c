#include <string.h>

#include "core/writer.h"
#include "sim/delivery/internal.h"
#include "sim/delivery/swarm.h"

/* Runs a script: each step is a call of the world or two. What the steps name
 * (a lane, a partition, a message) is made to be there, or the step is passed
 * over. */

enum { CHECK_LEAST = 4, CHECK_EVERY = 4 };

/* -- the trace ------------------------------------------------------------- */

/* FNV-1a, with an end of line. */
static void hash_line(stg_swarm_run *run, const char *line)
{
    static const uint64_t prime = 0x100000001b3;

    uint64_t hash = run->hash;

    for (; *line != '\0'; line++)
        hash = (hash ^ (unsigned char)*line) * prime;
    run->hash = (hash ^ '\n') * prime;
}

static void add_line(void *ctx, const char *line)
{
    stg_swarm_state *s = ctx;
    char *last = s->run->last[s->run->lines++ % STG_SWARM_LINES];
    size_t length = strlen(line);

    if (length >= STG_SWARM_LINE_MAX)
        length = STG_SWARM_LINE_MAX - 1;
    memcpy(last, line, length);
    last[length] = '\0';
    if (s->run->line != NULL)
        s->run->line(s->run->ctx, line);
    hash_line(s->run, line);
}

static void trace_step(stg_swarm_state *s, const stg_step *e)
{
    char text[STG_STEP_TEXT_MAX], line[STG_STEP_TEXT_MAX + 4];
    stg_writer to = stg_writer_on(line, sizeof line);

    stg_write_text(&to, "-- ");
    stg_write_text(&to, stg_step_print(e, text));
    add_line(s, line);
}

/* -- settings -------------------------------------------------------------- */

static uint64_t at_least(uint64_t number, uint64_t least)
{
    return number < least ? least : number;
}

static uint32_t within(uint64_t number, uint32_t least, uint32_t most)
{
    return number < least ? least : number > most ? most : (uint32_t)number;
}

/* A check of all reads each cursor, and a script says how many lanes there are for
 * one after each event: it is made as often as it costs little beside the events,
 * and after each step. */
static uint32_t find_checks(const stg_world *w, const stg_step *e)
{
    return within(e->at[STG_WORLD_CHECKS], 1, 1000) *
           (CHECK_LEAST + w->partition_count) * CHECK_EVERY;
}

static void set_world(stg_swarm_state *s, const stg_step *e)
{
    stg_world *w = s->world;

    stg_world_set_delays(w, true);
    stg_world_set_partitions(
        w, within(e->at[STG_WORLD_PARTITIONS], 1, STG_WORLD_PARTITIONS_MAX));
    s->is_group = e->at[STG_WORLD_GROUP] > 0;
    if (s->is_group)
        stg_world_join_group(w, e->at[STG_WORLD_GROUP] == 1);
    stg_world_set_size(
        w, within(e->at[STG_WORLD_BYTES], STG_WORLD_SIZE_MIN, 60000));
    stg_world_set_keys(w, e->at[STG_WORLD_KEYS]);
    stg_world_set_some_times(w, e->at[STG_WORLD_TIMES]);
    stg_world_set_too_large(w, e->at[STG_WORLD_TOO_LARGE]);
    stg_world_set_turn(w, within(e->at[STG_WORLD_ASK_EVENTS], 1, 1000),
                       within(e->at[STG_WORLD_ASK_ENDS], 1, 1000), 20 * STG_MS);
    stg_world_set_checks(w, find_checks(w, e));
}

static stg_budget_options make_budget(const stg_step *e)
{
    uint32_t rate = within(e->at[STG_FLOW_RATE], 0, 1000);

    if (e->at[STG_FLOW_BUDGET] == 1)
        return (stg_budget_options){
            .kind = STG_BUDGET_TOKENS,
            .capacity = within(e->at[STG_FLOW_CAPACITY], 1, 1000),
            .rate = 1000 + 100 * rate};
    if (e->at[STG_FLOW_BUDGET] == 2)
        return (stg_budget_options){
            .kind = STG_BUDGET_SHARE,
            .capacity = within(e->at[STG_FLOW_CAPACITY], 1, 1000),
            .ratio = rate};
    return (stg_budget_options){.kind = STG_BUDGET_NONE};
}

static void set_flow(stg_swarm_state *s, const stg_step *e)
{
    stg_flow_options *o = stg_world_options(s->world);

    if (!s->has_started)
        o->memory_max = (size_t)within(e->at[STG_FLOW_KIB], 1024, 65536) * 1024;
    o->in_flight_max = within(e->at[STG_FLOW_IN_FLIGHT], 1, 10000);
    o->drain = e->at[STG_FLOW_DRAIN];
    o->budget = make_budget(e);
    o->budget_waits = e->at[STG_FLOW_WAITS] > 0;
    if (s->has_started)
        (void)stg_world_change(s->world, NULL);
}

static void set_limits(stg_lane_options *o, const stg_step *e)
{
    o->order = (stg_order)(e->at[STG_LANE_ORDER] % 3);
    o->in_flight_max = within(e->at[STG_LANE_IN_FLIGHT], 1, 10000);
    o->parked_max = within(e->at[STG_LANE_PARKED_MAX], 1, 1000000);
    o->shed_after = e->at[STG_LANE_SHED_AFTER];
    o->burst = within(e->at[STG_LANE_BURST], 0, 1000000);
    o->is_limit_fixed = e->at[STG_LANE_BATCH] > 0;
}

/* A lane of a hub that runs has its options changed by a reload at once: it is
 * made with the default ones. */
static void add_lane(stg_swarm_state *s, const stg_step *e)
{
    char policy[STG_DRAWN_POLICY_MAX];
    uint32_t lane = stg_world_sum(s->world).lanes;
    stg_swarm_lane *l = &s->lanes[lane];
    stg_lane_options *o, limits;

    if (lane == STG_SCRIPT_MAX)
        return;
    stg_script_policy(e->at[STG_LANE_POLICY], policy);
    o = s->has_started
            ? stg_world_join_lane(s->world, policy, e->at[STG_LANE_EARLIEST])
            : stg_world_add_lane(s->world, policy);
    if (o == NULL)
        return;
    *l = (stg_swarm_lane){.batch = e->at[STG_LANE_BATCH],
                          .has_proxy = e->at[STG_LANE_PROXY] > 0,
                          .signs_in = e->at[STG_LANE_SIGNS_IN] > 0};
    stg_world_set_target(s->world, lane, stg_swarm_answer);
    stg_world_set_dialing(s->world, lane, e->at[STG_LANE_DIALS] > 0);
    stg_world_set_signing_in(s->world, lane, l->signs_in);
    if (s->has_started) {
        limits = *o;
        set_limits(&limits, e);
        (void)stg_world_change_lane(s->world, lane, &limits, NULL, NULL);
        return;
    }
    set_limits(o, e);
    o->proxy = e->at[STG_LANE_PROXY];
    if (e->at[STG_LANE_FILTER] > 0)
        stg_world_set_filter(s->world, lane, e->at[STG_LANE_FILTER]);
    if (e->at[STG_LANE_IGNORES] > 0)
        stg_world_set_followed(s->world, lane,
                               ~(uint32_t)e->at[STG_LANE_IGNORES]);
}

static void set_fault(stg_swarm_state *s, const stg_step *e)
{
    stg_step *f = &s->faults[e->at[STG_FAULT_KIND] % STG_LEAF_COUNT];

    *f = *e;
    f->at[STG_FAULT_KIND] %= STG_LEAF_COUNT;
}

/* -- steps of lanes -------------------------------------------------------- */

/* False: there is none. */
static bool find_lane(const stg_swarm_state *s, const stg_step *e,
                      uint32_t *lane)
{
    uint32_t lanes = stg_world_sum(s->world).lanes;

    if (lanes == 0)
        return false;
    *lane = (uint32_t)(e->at[0] % lanes);
    return true;
}

static void change_lane(stg_swarm_state *s, uint32_t lane, const stg_step *e)
{
    stg_lane_options o = stg_lane_options_default(NULL);
    char policy[STG_DRAWN_POLICY_MAX];

    stg_world_copy_options(s->world, lane, &o);
    o.proxy = s->world->lanes[lane]->o.proxy;
    set_limits(&o, e);
    if (e->at[STG_LANE_POLICY] > 0)
        stg_script_policy(e->at[STG_LANE_POLICY], policy);
    s->lanes[lane].batch = e->at[STG_LANE_BATCH];
    (void)stg_world_change_lane(
        s->world, lane, &o, e->at[STG_LANE_POLICY] > 0 ? policy : NULL, NULL);
}

/* What was removed can only be added again. */
static void do_lane(stg_swarm_state *s, const stg_step *e)
{
    uint32_t lane, count = (uint32_t)e->at[1];
    stg_world *w = s->world;

    if (!find_lane(s, e, &lane))
        return;
    if (stg_world_sum_lane(w, lane).was_removed) {
        if (e->kind == STG_STEP_REMOVE)
            stg_world_add_again(w, lane);
        return;
    }
    if (e->kind == STG_STEP_PAUSE)
        stg_world_pause(w, lane, e->at[1] > 0);
    else if (e->kind == STG_STEP_GATE)
        stg_world_gate(w, lane, e->at[1] > 0);
    else if (e->kind == STG_STEP_PROBE)
        (void)stg_world_probe(w, lane);
    else if (e->kind == STG_STEP_TARGET)
        s->lanes[lane].mode = e->at[1];
    else if (e->kind == STG_STEP_REMOVE)
        stg_world_remove(w, lane);
    else if (e->kind == STG_STEP_CHANGE)
        change_lane(s, lane, e);
    else if (e->kind == STG_STEP_REPLAY)
        (void)stg_world_replay(w, lane, count);
    else
        (void)stg_world_rewind(w, lane, count);
}

/* -- steps of partitions --------------------------------------------------- */

static void do_partition(stg_swarm_state *s, const stg_step *e)
{
    uint32_t p = (uint32_t)(e->at[0] % s->world->partition_count);

    if (e->kind == STG_STEP_PUBLISH)
        stg_world_publish(s->world, p, e->at[1]);
    else if (!s->is_group)
        return;
    else if (e->kind == STG_STEP_ASSIGN)
        stg_world_assign(s->world, p);
    else if (e->kind == STG_STEP_REVOKE)
        stg_world_revoke(s->world, p, e->at[1]);
    else if (e->kind == STG_STEP_LOSE)
        stg_world_lose(s->world, p);
    else if (e->kind == STG_STEP_FENCE)
        stg_world_fence(s->world, p);
    else
        stg_world_settle_elsewhere(s->world, p, e->at[1]);
}

static void do_message(stg_swarm_state *s, const stg_step *e)
{
    uint64_t count = stg_world_sum(s->world).messages, i;

    if (count == 0)
        return;
    i = e->at[0] % count;
    if (e->kind == STG_STEP_RETAIN)
        stg_world_retain(s->world, stg_world_partition_at(s->world, i),
                         stg_world_position_at(s->world, i));
    else if (s->is_group)
        stg_world_expire(s->world, stg_world_partition_at(s->world, i),
                         stg_world_position_at(s->world, i));
}

/* -- steps of the hub ------------------------------------------------------ */

static void set_store(stg_world *w, const stg_step *e)
{
    stg_world_set_store_room(w, e->at[0] > 0 ? e->at[1] : UINT64_MAX);
    stg_world_lose_answers(w, (uint32_t)e->at[2]);
    stg_world_set_store_delay(w, at_least(e->at[3], STG_MS));
    stg_world_set_fetch_delay(w, e->at[4]);
}

static void do_hub(stg_swarm_state *s, const stg_step *e)
{
    stg_world *w = s->world;

    if (e->kind == STG_STEP_CRASH) {
        stg_world_crash(w, e->at[0]);
    } else if (e->kind == STG_STEP_STOP) {
        (void)stg_world_stop(w);
        stg_world_restart(w, e->at[0]);
    } else if (e->kind == STG_STEP_CLOCK) {
        s->stepped = stg_ns_add(s->stepped, stg_ns_add(e->at[0], e->at[1]));
        stg_world_set_wall_forward(w, e->at[0]);
        stg_world_set_wall_back(w, e->at[1]);
    } else if (e->kind == STG_STEP_STORE) {
        set_store(w, e);
    } else if (e->kind == STG_STEP_UNREAD) {
        stg_world_fail_reads(w, (uint32_t)e->at[0]);
    } else if (e->kind == STG_STEP_MEMORY) {
        stg_world_fail_allocations(w, (uint32_t)e->at[0]);
        stg_world_fail_allocation_at(w, e->at[1]);
    }
}

static void pass_time(stg_swarm_state *s, const stg_step *e)
{
    if (e->kind == STG_STEP_EVENTS)
        stg_world_steps(s->world, e->at[0]);
    else if (e->kind == STG_STEP_ACTIONS)
        stg_world_actions(s->world, at_least(e->at[0], 1));
    else
        stg_world_run(s->world, stg_ns_add(stg_world_now(s->world), e->at[0]));
}

/* -- a script -------------------------------------------------------------- */

static void start(stg_swarm_state *s)
{
    if (!s->has_started)
        stg_world_start(s->world);
    s->has_started = true;
}

static void set_up(stg_swarm_state *s, const stg_step *e)
{
    switch (e->kind) {
    case STG_STEP_WORLD:
        set_world(s, e);
        break;
    case STG_STEP_FLOW:
        set_flow(s, e);
        break;
    case STG_STEP_LANE:
    case STG_STEP_JOIN:
        add_lane(s, e);
        break;
    case STG_STEP_FAULT:
        set_fault(s, e);
        break;
    case STG_STEP_PUBLISH:
        do_partition(s, e);
        break;
    default:
        break;
    }
}

/* A hub that begins, and a lane that is added, have their memory: see hub.c. */
static bool needs_memory(stg_step_kind kind)
{
    return kind == STG_STEP_CRASH || kind == STG_STEP_STOP ||
           kind == STG_STEP_JOIN || kind == STG_STEP_LANE ||
           kind == STG_STEP_REMOVE;
}

static void do_step(stg_swarm_state *s, const stg_step *e)
{
    trace_step(s, e);
    s->own_faults = 0;
    if (needs_memory(e->kind))
        stg_world_fail_allocation_at(s->world, 0);
    if (e->kind <= STG_STEP_PUBLISH || e->kind == STG_STEP_JOIN) {
        set_up(s, e);
        return;
    }
    start(s);
    if (e->kind >= STG_STEP_EVENTS && e->kind <= STG_STEP_RUN)
        pass_time(s, e);
    else if (e->kind >= STG_STEP_CRASH && e->kind <= STG_STEP_MEMORY)
        do_hub(s, e);
    else if (e->kind >= STG_STEP_PAUSE && e->kind <= STG_STEP_REWIND)
        do_lane(s, e);
    else if (e->kind == STG_STEP_RETAIN || e->kind == STG_STEP_EXPIRE)
        do_message(s, e);
    else if (e->kind >= STG_STEP_ASSIGN)
        do_partition(s, e);
    stg_world_check_flow(s->world);
}

/* I20: within a time that all waits of the drawn policies, and all that was told
 * by Retry-After, are far below. A message's own times are by the wall clock of
 * when it was published, and a hub goes by that of its start (I34): where the
 * clock was set in between, they come later by so much. */
static void heal(stg_swarm_state *s)
{
    stg_world *w = s->world;
    stg_ns begun_at;

    start(s);
    add_line(s, "-- heal");
    begun_at = stg_world_now(w);
    stg_world_fail_allocation_at(w, 0);
    stg_world_heal(w, stg_swarm_answer_well);
    stg_world_check_flow(w);
    stg_world_require(w,
                      stg_world_now(w) - begun_at <=
                          stg_ns_add(STG_SWARM_HEALS, s->stepped),
                      "I20", stg_about_all(),
                      "all that is pending ends soon after the faults");
}

static void play(stg_swarm_state *s, const stg_script *script)
{
    stg_world *w = s->world;

    for (size_t i = 1; i < script->count && stg_world_failed(w) == NULL; i++) {
        s->run->step = i;
        do_step(s, &script->steps[i]);
    }
    if (stg_world_failed(w) == NULL) {
        s->run->step = script->count;
        heal(s);
    }
    s->run->sum = stg_world_sum(w);
    s->run->lasted = stg_world_now(w) - w->origin_at;
}

static void note_failure(void *ctx, const stg_world_failure *f)
{
    stg_swarm_state *s = ctx;

    s->run->has_failed = true;
    s->run->failure = *f;
}

bool stg_swarm_play(const stg_script *script, const stg_memory *memory,
                    stg_swarm_run *run)
{
    static const uint64_t basis = 0xcbf29ce484222325;
    stg_swarm_state *s = memory->allocate(memory->ctx, sizeof *s);
    stg_world_hooks hooks = {
        .memory = *memory, .failed = note_failure, .line = add_line, .ctx = s};
    bool is_there =
        script->count > 0 && script->steps[0].kind == STG_STEP_WORLD;

    *run = (stg_swarm_run){.hash = basis, .line = run->line, .ctx = run->ctx};
    if (s == NULL)
        return false;
    memset(s, 0, sizeof *s);
    s->run = run;
    s->seed = script->steps[0].at[STG_WORLD_SEED];
    is_there = is_there && stg_world_new(&s->world, &hooks, s->seed) == STG_OK;
    if (is_there) {
        do_step(s, &script->steps[0]);
        play(s, script);
        stg_world_free(s->world); // which may be a failure, too
    }
    memory->release(memory->ctx, s);
    return is_there &&
           !(run->has_failed && strcmp(run->failure.invariant, "memory") == 0);
}
