/* world.h - worlds of flow (sim/delivery/world.h) as tests have them: memory is
 * the C library's, a trace is kept, and an invariant that does not hold fails the
 * test.
 *
 *     stg_world *w = world_new(seed);
 *     world_lane(w, "fixed base=1s jitter=none attempts=3 deadline=none");
 *     world_script(w, 0, "503 503 200");
 *     stg_world_publish(w, 0, 1);
 *     stg_world_start(w);
 *     stg_world_run(w, STG_NEVER);
 *     CHECK_TRACE(world_trace(w), "...");
 *     world_end(w); */
#ifndef TESTS_FLOW_WORLD_H
#define TESTS_FLOW_WORLD_H

#include <stagger/text.h>

#include "sim/delivery/world.h"
#include "tests/harness.h"

struct stg_lane;

/* A second between three attempts of what may get better. */
#define STEADY                                            \
    "fixed base=1s jitter=none attempts=3 deadline=none " \
    "attempt-timeout=2s retry=5xx,429,timeout,reset,refused"

stg_world *world_new(uint64_t seed);
void world_free(stg_world *w);
void world_end(stg_world *w); /* stg_world_check_ends(), and frees it */

stg_lane_options *world_lane(stg_world *w, const char *policy);
stg_lane_options *world_join(stg_world *w, const char *policy,
                             bool is_from_earliest);
void world_script(stg_world *w, uint32_t lane, const char *answers);

/* One lane, that is started, with so many messages. */
stg_world *world_begin(uint64_t seed, const char *policy, const char *answers,
                       uint64_t count);

stg_ns world_after(const stg_world *w, stg_ns wait); /* so long from now */

struct stg_lane *world_lane_of(stg_world *w, uint32_t lane); /* flow's own */
stg_lane_view world_look(stg_world *w, uint32_t lane);
stg_flow_view world_look_all(stg_world *w);
/* Of partition 0. */
const stg_world_receipt *world_receipt_of(stg_world *w, uint32_t lane,
                                          uint64_t position);

const char *world_trace(stg_world *w); /* a line an attempt and notice */
/* No trace, but delays: see stg_world_set_delays(). */
void world_trace_off(stg_world *w);
void world_trace_clear(stg_world *w);

#endif
