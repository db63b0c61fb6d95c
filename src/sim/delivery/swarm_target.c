#include "sim/delivery/swarm.h"

/* What the targets of a script do. Each kind of fault that exists has its chance
 * in each attempt, in turn; what no fault has taken is answered 200.
 *
 * With a batch, attempts of one lane that start in the same interval are one
 * request: they end together, with one outcome, which the interval draws. */

enum { WELL_MAX = 50, OWN_FAULTS_MAX = 1000 };

static const uint64_t interval_step = 0x9e3779b97f4a7c15;

static stg_world_answer fail(stg_fault fault, stg_ns took)
{
    return (stg_world_answer){stg_failed(fault), took, false};
}

static stg_world_answer say(int status, stg_ns wait, stg_ns took)
{
    return (stg_world_answer){stg_answered_after(status, wait), took,
                              status < 300};
}

static stg_world_answer answer_well(stg_rng *rng)
{
    return say(200, 0, stg_rng_upto(rng, WELL_MAX * STG_MS));
}

stg_world_answer stg_swarm_answer_well(stg_world *w, uint32_t lane,
                                       uint64_t position, uint64_t attempt)
{
    (void)lane;
    (void)position;
    (void)attempt;
    return answer_well(stg_world_rng(w));
}

static const stg_fault faults[STG_LEAF_COUNT] = {
    [STG_LEAF_REFUSED] = STG_FAULT_REFUSED,
    [STG_LEAF_DNS] = STG_FAULT_DNS,
    [STG_LEAF_DNS_TEMPORARY] = STG_FAULT_DNS_TEMPORARY,
    [STG_LEAF_NO_PORTS] = STG_FAULT_NO_PORTS,
    [STG_LEAF_NO_FILES] = STG_FAULT_NO_FILES,
    [STG_LEAF_CONNECT_TIMEOUT] = STG_FAULT_CONNECT_TIMEOUT,
    [STG_LEAF_TLS] = STG_FAULT_TLS,
    [STG_LEAF_PROXY] = STG_FAULT_PROXY,
    [STG_LEAF_RESET] = STG_FAULT_RESET,
    [STG_LEAF_PROTOCOL] = STG_FAULT_PROTOCOL,
};

static const int statuses[STG_LEAF_COUNT] = {
    [STG_LEAF_401] = 401, [STG_LEAF_404] = 404, [STG_LEAF_429] = 429,
    [STG_LEAF_500] = 500, [STG_LEAF_503] = 503,
};

/* Only what was sent can have been processed. */
static stg_world_answer answer_fault(const stg_step *f, stg_rng *rng)
{
    stg_leaf_fault kind = (stg_leaf_fault)f->at[STG_FAULT_KIND];
    stg_ns took = stg_rng_upto(rng, f->at[STG_FAULT_TOOK]);
    stg_ns wait = stg_rng_upto(rng, f->at[STG_FAULT_WAIT]);
    stg_world_answer a = {.took = took};

    if (kind < STG_LEAF_RESET)
        return fail(faults[kind], took);
    if (kind == STG_LEAF_SLOW)
        return say(200, 0, took);
    if (kind == STG_LEAF_LIE) {
        a.outcome = stg_ok();
        return a;
    }
    if (kind == STG_LEAF_HANG)
        a = fail(STG_FAULT_TIMEOUT, STG_NEVER);
    else if (statuses[kind] > 0)
        a = say(statuses[kind], wait, took);
    else
        a = fail(faults[kind], took);
    a.is_processed = stg_rng_upto(rng, 99) < f->at[STG_FAULT_PROCESSED];
    return a;
}

/* An attempt that lacks a port or a file is put back and comes again ten times a
 * second: without a bound for each step such attempts would be most of what some
 * worlds do, and nothing new. Beyond it there are ports and files. */
static bool is_over(stg_swarm_state *s, int kind)
{
    return (kind == STG_LEAF_NO_PORTS || kind == STG_LEAF_NO_FILES) &&
           s->own_faults++ >= OWN_FAULTS_MAX;
}

static stg_world_answer answer_any(stg_swarm_state *s, const stg_swarm_lane *l,
                                   stg_rng *rng)
{
    for (int kind = 0; kind < STG_LEAF_COUNT; kind++) {
        const stg_step *f = &s->faults[kind];

        if (f->at[STG_FAULT_EVERY] == 0 ||
            (kind == STG_LEAF_PROXY && !l->has_proxy) ||
            (kind == STG_LEAF_401 && !l->signs_in))
            continue;
        if (stg_rng_upto(rng, f->at[STG_FAULT_EVERY] - 1) == 0 &&
            !is_over(s, kind))
            return answer_fault(f, rng);
    }
    return answer_well(rng);
}

static stg_world_answer answer(stg_swarm_state *s, const stg_swarm_lane *l,
                               stg_rng *rng)
{
    switch (l->mode) {
    case 1:
        return fail(STG_FAULT_REFUSED, STG_MS);
    case 2:
        return fail(STG_FAULT_TIMEOUT, STG_NEVER);
    case 3:
        return say(503, 0, STG_MS);
    default:
        return answer_any(s, l, rng);
    }
}

stg_world_answer stg_swarm_answer(stg_world *w, uint32_t lane,
                                  uint64_t position, uint64_t attempt)
{
    stg_swarm_state *s = stg_world_ctx(w);
    const stg_swarm_lane *l = &s->lanes[lane];
    stg_ns now = stg_world_now(w), interval;
    stg_world_answer a;
    stg_rng rng;

    (void)position;
    (void)attempt;
    if (l->batch == 0)
        return answer(s, l, stg_world_rng(w));
    interval = now / l->batch;
    rng = stg_rng_seed(s->seed + interval * interval_step + lane);
    a = answer(s, l, &rng);
    a.took = stg_ns_add(a.took, (interval + 1) * l->batch - now);
    return a;
}
