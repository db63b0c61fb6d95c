#include "sim/delivery/swarm.h"

/* A seed draws settings and steps. Which kinds of faults and disturbances exist
 * at all is drawn first, each with a chance of one half: where all exist in each
 * run, some hide others ("swarm testing", Groce et al., ISSTA 2012). Rates are
 * log-uniform, so that rare and frequent ones are tried alike. */

/* Partitions that are not read together: each read has its share of memory. A hub
 * has one such, its queue. */
enum { QUEUES_MAX = 3 };

typedef struct drawing {
    stg_script *script;
    stg_swarm_bounds most;
    stg_rng rng;
    uint32_t lanes, partitions;
    uint64_t published; /* messages, at most */
    bool is_group, has_times;
    stg_step_kind kinds[STG_STEP_COUNT]; /* that exist in this world */
    size_t kind_count;
    stg_step none; /* where the script is full */
} drawing;

stg_swarm_bounds stg_swarm_bounds_default(void)
{
    return (stg_swarm_bounds){
        .lanes = 200, .partitions = 32, .messages = 4000, .steps = 60};
}

/* -- chance ---------------------------------------------------------------- */

static uint64_t upto(drawing *d, uint64_t most)
{
    return stg_rng_upto(&d->rng, most);
}

static bool one_in(drawing *d, uint64_t n)
{
    return upto(d, n - 1) == 0;
}

/* From 1 to most: each power of two as often as the others. */
static uint64_t log_upto(drawing *d, uint64_t most)
{
    uint64_t bits = 0, low;

    while (most >> (bits + 1) > 0)
        bits++;
    low = (uint64_t)1 << upto(d, bits);
    low += upto(d, low - 1);
    return low < most ? low : most;
}

/* Whole milliseconds. */
static stg_ns some_time(drawing *d, stg_ns most)
{
    return upto(d, most / STG_MS) * STG_MS;
}

static stg_step *add(drawing *d, stg_step_kind kind)
{
    stg_script *s = d->script;

    if (s->count == STG_SCRIPT_MAX)
        return &d->none;
    stg_script_add(s, &(stg_step){.kind = kind});
    return &s->steps[s->count - 1];
}

/* -- settings -------------------------------------------------------------- */

/* How often the shell asks flow: after each event, or as a busy hub does. */
static void draw_turn(drawing *d, stg_step *world)
{
    static const uint64_t turns[][2] = {{1, 1},   {1, 1},   {1, 1},   {16, 16},
                                        {156, 1}, {156, 4}, {156, 16}};
    const uint64_t *turn = turns[upto(d, sizeof turns / sizeof *turns - 1)];

    world->at[STG_WORLD_ASK_EVENTS] = turn[0];
    world->at[STG_WORLD_ASK_ENDS] = turn[1];
}

static void draw_flow(drawing *d)
{
    stg_step *o = add(d, STG_STEP_FLOW);

    o->at[STG_FLOW_KIB] = 1024 + upto(d, 1024);
    o->at[STG_FLOW_IN_FLIGHT] = log_upto(d, 256);
    o->at[STG_FLOW_DRAIN] = some_time(d, 2 * STG_S);
    o->at[STG_FLOW_BUDGET] = one_in(d, 2) ? 0 : 1 + upto(d, 1);
    o->at[STG_FLOW_CAPACITY] = log_upto(d, 50);
    o->at[STG_FLOW_RATE] = upto(d, 1000);
    o->at[STG_FLOW_WAITS] = upto(d, 1);
}

/* Flow holds four messages of each ordered lane in memory: they have to fit. */
static void draw_world(drawing *d, uint64_t seed)
{
    stg_step *w = add(d, STG_STEP_WORLD);
    uint64_t bytes_max = (1 << 20) / (8 * (d->lanes + 12));

    d->is_group = one_in(d, 2);
    d->partitions = one_in(d, 2)
                        ? 1
                        : (uint32_t)log_upto(d, d->is_group ? d->most.partitions
                                                            : QUEUES_MAX);
    w->at[STG_WORLD_SEED] = seed;
    w->at[STG_WORLD_PARTITIONS] = d->partitions;
    w->at[STG_WORLD_GROUP] = d->is_group ? 1 + upto(d, 1) : 0;
    w->at[STG_WORLD_BYTES] = STG_WORLD_SIZE_MIN + log_upto(d, bytes_max);
    w->at[STG_WORLD_KEYS] = one_in(d, 2) ? 0 : log_upto(d, 50);
    w->at[STG_WORLD_TIMES] = one_in(d, 4) ? some_time(d, 20 * STG_S) : 0;
    d->has_times = w->at[STG_WORLD_TIMES] > 0;
    w->at[STG_WORLD_TOO_LARGE] =
        d->is_group && one_in(d, 4) ? 2 + upto(d, 20) : 0;
    w->at[STG_WORLD_CHECKS] = 1 + d->lanes / 4;
    draw_turn(d, w);
}

/* What a reload may change, too. */
static void draw_limits(drawing *d, stg_step *lane)
{
    lane->at[STG_LANE_POLICY] = 1 + upto(d, UINT32_MAX - 1);
    lane->at[STG_LANE_ORDER] = upto(d, 2);
    lane->at[STG_LANE_IN_FLIGHT] = log_upto(d, 64);
    lane->at[STG_LANE_PARKED_MAX] = log_upto(d, 1000);
    lane->at[STG_LANE_SHED_AFTER] =
        one_in(d, 2) ? some_time(d, 3 * STG_S) : STG_MIN;
    lane->at[STG_LANE_BURST] = upto(d, 5);
    lane->at[STG_LANE_BATCH] =
        one_in(d, 4) ? STG_MS + some_time(d, 100 * STG_MS) : 0;
}

static void draw_lane(drawing *d, stg_step_kind kind, bool has_topics)
{
    stg_step *lane = add(d, kind);

    draw_limits(d, lane);
    lane->at[STG_LANE_FILTER] = one_in(d, 4) ? 2 + upto(d, 3) : 0;
    if (has_topics && one_in(d, 2))
        lane->at[STG_LANE_IGNORES] =
            upto(d, ((uint64_t)1 << d->partitions) - 1);
    lane->at[STG_LANE_PROXY] = one_in(d, 4) ? 1 + upto(d, 1) : 0;
    lane->at[STG_LANE_DIALS] = upto(d, 1);
    lane->at[STG_LANE_SIGNS_IN] = one_in(d, 4);
    if (kind == STG_STEP_JOIN)
        lane->at[STG_LANE_EARLIEST] = upto(d, 1);
}

/* -- faults ---------------------------------------------------------------- */

static void draw_rate(drawing *d, stg_leaf_fault kind)
{
    stg_step *fault = add(d, STG_STEP_FAULT);

    fault->at[STG_FAULT_KIND] = kind;
    fault->at[STG_FAULT_EVERY] = log_upto(d, 1024);
    fault->at[STG_FAULT_TOOK] = some_time(d, log_upto(d, 3000) * STG_MS);
    fault->at[STG_FAULT_WAIT] = one_in(d, 2) ? 0 : some_time(d, 5 * STG_S);
    fault->at[STG_FAULT_PROCESSED] = 50 * upto(d, 2);
}

static void choose_kinds(drawing *d)
{
    stg_step_kind last = d->is_group ? STG_STEP_EXPIRE : STG_STEP_RETAIN;

    for (int kind = STG_STEP_CRASH; kind <= (int)last; kind++)
        if (kind == STG_STEP_ASSIGN || one_in(d, 2))
            d->kinds[d->kind_count++] = (stg_step_kind)kind;
    if (one_in(d, 2))
        d->kinds[d->kind_count++] = STG_STEP_FLOW;
    if (one_in(d, 2))
        d->kinds[d->kind_count++] = STG_STEP_FAULT;
}

/* -- steps ----------------------------------------------------------------- */

static void publish(drawing *d)
{
    uint64_t most = d->most.messages / d->lanes;
    stg_step *p = add(d, STG_STEP_PUBLISH);

    p->at[0] = upto(d, d->partitions - 1);
    p->at[1] = log_upto(d, most < 4 ? 4 : most > 200 ? 200 : most);
    d->published += p->at[1];
}

static void pass_time(drawing *d)
{
    switch (upto(d, 3)) {
    case 0:
        add(d, STG_STEP_ACTIONS)->at[0] = log_upto(d, 300);
        break;
    case 1:
        add(d, STG_STEP_RUN)->at[0] =
            log_upto(d, 10 * STG_MIN / STG_MS) * STG_MS;
        break;
    default:
        add(d, STG_STEP_EVENTS)->at[0] = log_upto(d, 1000);
    }
}

static void disturb_store(drawing *d)
{
    stg_step *e = add(d, STG_STEP_STORE);

    e->at[0] = upto(d, 1);
    e->at[1] = log_upto(d, 200);
    e->at[2] = one_in(d, 2) ? 0 : log_upto(d, 8);
    e->at[3] =
        one_in(d, 4) ? some_time(d, STG_MIN) : some_time(d, 100 * STG_MS);
    e->at[4] = some_time(d, 200 * STG_MS);
}

/* The second number of a step of a lane or a partition. */
static uint64_t draw_second(drawing *d, stg_step_kind kind)
{
    switch (kind) {
    case STG_STEP_PAUSE:
    case STG_STEP_GATE:
        return upto(d, 1);
    case STG_STEP_TARGET:
        return upto(d, 3);
    case STG_STEP_REVOKE:
        return some_time(d, 2 * STG_S);
    default:
        return log_upto(d, 64);
    }
}

static void disturb_one(drawing *d, stg_step_kind kind)
{
    bool is_of_partition = kind >= STG_STEP_ASSIGN && kind < STG_STEP_EXPIRE;
    bool is_of_message = kind == STG_STEP_RETAIN || kind == STG_STEP_EXPIRE;
    stg_step *e = add(d, kind);

    e->at[0] = upto(d, is_of_message     ? d->published
                       : is_of_partition ? d->partitions - 1
                                         : d->lanes - 1);
    if (!is_of_message && kind != STG_STEP_PROBE && kind != STG_STEP_REMOVE &&
        kind != STG_STEP_ASSIGN && kind != STG_STEP_LOSE &&
        kind != STG_STEP_FENCE)
        e->at[1] = draw_second(d, kind);
}

static void disturb_lanes(drawing *d, stg_step_kind kind)
{
    if (kind == STG_STEP_JOIN) {
        draw_lane(d, kind, false);
        d->lanes++;
        return;
    }
    stg_step *e = add(d, kind);

    draw_limits(d, e);
    e->at[STG_LANE_NUMBER] = upto(d, d->lanes - 1);
    if (one_in(d, 2))
        e->at[STG_LANE_POLICY] = 0;
}

static void disturb(drawing *d)
{
    stg_step_kind kind = d->kinds[upto(d, d->kind_count - 1)];

    switch (kind) {
    case STG_STEP_CRASH:
    case STG_STEP_STOP:
        add(d, kind)->at[0] = log_upto(d, 10000) * STG_MS;
        break;
    case STG_STEP_CLOCK:
        if (one_in(d, 2))
            add(d, kind)->at[0] = some_time(d, 10 * STG_MIN);
        else
            add(d, kind)->at[1] =
                some_time(d, d->has_times ? 10 * STG_MIN : STG_DAY);
        break;
    case STG_STEP_STORE:
        disturb_store(d);
        break;
    case STG_STEP_UNREAD:
        add(d, kind)->at[0] = log_upto(d, 8);
        break;
    case STG_STEP_MEMORY:
        add(d, kind)->at[upto(d, 1)] = one_in(d, 2) ? 0 : 1 + log_upto(d, 100);
        break;
    case STG_STEP_JOIN:
    case STG_STEP_CHANGE:
        disturb_lanes(d, kind);
        break;
    case STG_STEP_FLOW:
        draw_flow(d);
        break;
    case STG_STEP_FAULT:
        draw_rate(d, (stg_leaf_fault)upto(d, STG_LEAF_COUNT - 1));
        break;
    default:
        disturb_one(d, kind);
    }
}

void stg_swarm_draw(stg_script *s, uint64_t seed, const stg_swarm_bounds *most)
{
    drawing d = {
        .script = s, .most = *most, .rng = stg_rng_seed(seed + 1000000)};
    bool has_topics;

    s->count = 0;
    d.lanes = (uint32_t)log_upto(&d, most->lanes);
    draw_world(&d, seed);
    draw_flow(&d);
    has_topics = one_in(&d, 4);
    for (uint32_t i = 0; i < d.lanes; i++)
        draw_lane(&d, STG_STEP_LANE, has_topics);
    for (int kind = 0; kind < STG_LEAF_COUNT; kind++)
        if (one_in(&d, 2))
            draw_rate(&d, (stg_leaf_fault)kind);
    choose_kinds(&d);
    publish(&d);
    add(&d, STG_STEP_START);
    for (uint64_t i = log_upto(&d, most->steps); i > 0; i--) {
        pass_time(&d);
        if (d.kind_count == 0 || one_in(&d, 3))
            publish(&d);
        else
            disturb(&d);
    }
}
