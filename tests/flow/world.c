#include "tests/flow/world.h"

#include <stdlib.h>

#include "flow/lane.h"
#include "flow/state.h"
#include "tests/malloc_memory.h"

enum { TRACE_MAX = 1 << 17 };

typedef struct trace {
    char text[TRACE_MAX];
    size_t size;
    bool is_off;
} trace;

static void add_line(void *ctx, const char *line)
{
    trace *t = ctx;
    size_t length = strlen(line);

    if (t->is_off || t->size + length + 2 > TRACE_MAX)
        return;
    memcpy(t->text + t->size, line, length);
    t->size += length;
    t->text[t->size++] = '\n';
    t->text[t->size] = '\0';
}

static void fail(void *ctx, const stg_world_failure *f)
{
    (void)ctx;
    harness_fail(__FILE__, __LINE__,
                 "seed %ju at %ju ms: lane %d partition %d position %jd: "
                 "%s does not hold: %s",
                 (uintmax_t)f->seed, (uintmax_t)(f->at / STG_MS), (int)f->lane,
                 (int)f->partition, (intmax_t)f->position, f->invariant,
                 f->text);
}

stg_world *world_new(uint64_t seed)
{
    stg_world_hooks hooks = {.memory = STG_MALLOC_MEMORY,
                             .failed = fail,
                             .line = add_line,
                             .ctx = calloc(1, sizeof(trace))};
    stg_world *w;

    CHECK(stg_world_new(&w, &hooks, seed) == STG_OK);
    return w;
}

void world_free(stg_world *w)
{
    trace *t = stg_world_ctx(w);

    stg_world_free(w);
    free(t);
}

void world_end(stg_world *w)
{
    stg_world_check_ends(w);
    world_free(w);
}

stg_lane_options *world_lane(stg_world *w, const char *policy)
{
    stg_lane_options *o = stg_world_add_lane(w, policy);

    CHECK(o != NULL);
    return o;
}

stg_lane_options *world_join(stg_world *w, const char *policy,
                             bool is_from_earliest)
{
    stg_lane_options *o = stg_world_join_lane(w, policy, is_from_earliest);

    CHECK(o != NULL);
    return o;
}

void world_script(stg_world *w, uint32_t lane, const char *answers)
{
    CHECK(stg_world_set_script(w, lane, answers) == STG_OK);
}

stg_world *world_begin(uint64_t seed, const char *policy, const char *answers,
                       uint64_t count)
{
    stg_world *w = world_new(seed);

    world_lane(w, policy);
    world_script(w, 0, answers);
    stg_world_publish(w, 0, count);
    stg_world_start(w);
    return w;
}

stg_ns world_after(const stg_world *w, stg_ns wait)
{
    return stg_ns_add(stg_world_now(w), wait);
}

struct stg_lane *world_lane_of(stg_world *w, uint32_t lane)
{
    return stg_flow_lane(stg_world_flow(w), lane);
}

stg_lane_view world_look(stg_world *w, uint32_t lane)
{
    stg_lane_view view = {.limit = 0};

    CHECK(stg_flow_view_lane(stg_world_flow(w), lane, &view,
                             stg_world_now(w)) == STG_OK);
    return view;
}

stg_flow_view world_look_all(stg_world *w)
{
    stg_flow_view view;

    stg_flow_view_all(stg_world_flow(w), &view, stg_world_now(w));
    return view;
}

const stg_world_receipt *world_receipt_of(stg_world *w, uint32_t lane,
                                          uint64_t position)
{
    return stg_world_receipt_of(w, lane, 0, position);
}

const char *world_trace(stg_world *w)
{
    trace *t = stg_world_ctx(w);

    return t->text;
}

void world_trace_off(stg_world *w)
{
    trace *t = stg_world_ctx(w);

    t->is_off = true;
    stg_world_set_delays(w, true);
}

void world_trace_clear(stg_world *w)
{
    trace *t = stg_world_ctx(w);

    t->size = 0;
    t->text[0] = '\0';
}
