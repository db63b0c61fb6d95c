/* world.h - a shell for flow in virtual time: a log, a store, leaves that
 * answer as they are told, and a crash whenever it is asked for.
 *
 *     world *w = world_new(seed);
 *     world_lane(w, "fixed base=1s jitter=none attempts=3 deadline=none");
 *     world_script(w, 0, "503 503 200");
 *     world_publish(w, 1);
 *     world_start(w);
 *     world_run(w, STG_NEVER);              // until nothing happens any more
 *     CHECK_TRACE(world_trace(w), "...");
 *
 * After every event stg_flow_check() holds and the books of every lane
 * balance, or the test fails; so it does when an attempt starts too early
 * (I4), on a lane that is paused or removed (I7), with other bytes than those
 * published (I11), or before its turn in an ordered lane (I18).
 *
 * Times are of flow's clock, which begins at 1 s; until_at is such an instant,
 * world_after() makes one. Lanes are numbered from 0. */
#ifndef TESTS_FLOW_WORLD_H
#define TESTS_FLOW_WORLD_H

#include <stagger/text.h>

#include "flow/flow.h"
#include "tests/harness.h"

enum { WORLD_LANES = 300, WORLD_MESSAGES = 20000 };

/* A second between three attempts of what may get better. */
#define STEADY                                            \
    "fixed base=1s jitter=none attempts=3 deadline=none " \
    "attempt-timeout=2s retry=5xx,429,timeout,reset,refused"

typedef struct world world;

/* What a leaf answers to an attempt, and after how long. is_processed: it took
 * the message, whatever the hub gets to hear. outcome.unsent: nothing of it is sent, also if it is
 * cancelled; with a timeout it is put back, for it waits for something of ours. */
typedef struct world_answer {
    stg_outcome outcome;
    stg_ns took;
    bool is_processed;
} world_answer;

typedef world_answer world_leaf(world *w, uint32_t lane, uint64_t position,
                                uint64_t attempt);

/* A row of failed_broadcast_logs. */
typedef struct world_dead {
    uint32_t lane, partition, replay, attempts;
    uint64_t position, last_position, count; /* count 0: no range */
    stg_outcome outcome;
    stg_why why;
    bool is_cancelled, is_expired;
    stg_shed_reason reason; /* of a range */
    uint32_t life;          /* of the lane: how often it had come back */
} world_dead;

/* What a leaf saw of a message. */
typedef struct world_receipt {
    uint32_t attempts, processed, unknown, replays;
    stg_ns started_at, ended_at, not_before;
    bool is_over; /* it has ended, as far as the hub knows */
} world_receipt;

world *world_new(uint64_t seed);
void world_free(world *w);

/* -- before the start; options may be changed in place */
stg_flow_options *world_options(world *w);
stg_lane_options *world_lane(world *w, const char *policy);
void world_partitions(world *w, uint32_t count); /* 1 to 4 */
void world_leaf_is(world *w, uint32_t lane, world_leaf *leaf);
/* From now on, where attempts end: a connection was made for each on the lane, or
 * could not be; else others had made it. */
void world_dials(world *w, uint32_t lane, bool is_dialing);
/* "503 timeout 200": the answers in the order of the attempts on the lane, the
 * last one repeats; each takes 10 ms. "429+2" asks to wait 2 s, "hang" never
 * answers. */
void world_script(world *w, uint32_t lane, const char *answers);
/* The lane refuses positions that are multiples of n; 0: none. */
void world_filter(world *w, uint32_t lane, uint64_t n);

/* The lane follows partition p if bit p of the mask is set. */
void world_follow(world *w, uint32_t lane, uint32_t mask);

/* Messages with keys i % key_count + 1 (0: no keys), of size bytes (12 at
 * least). Their positions have gaps. */
void world_keys(world *w, uint64_t key_count);
void world_size(world *w, size_t bytes);
void world_publish(world *w, uint64_t count); /* to partition 0 */
void world_publish_to(world *w, uint32_t partition, uint64_t count);

void world_start(world *w);

/* From now on the shell asks flow after so many events, or when none is near:
 * within `turn` of the first of them; and what to start after so many ends. 1, 1:
 * after each event, as a world does unless told otherwise. */
void world_asks(world *w, uint32_t events, uint32_t ends, stg_ns turn);

/* All of the above for one lane: it is started, with so many messages. */
world *world_begin(uint64_t seed, const char *policy, const char *answers,
                   uint64_t count);

/* -- time */
void world_run(world *w, stg_ns until_at);  /* or until nothing is under way */
void world_steps(world *w, uint64_t count); /* so many events at most */
stg_ns world_now(const world *w);
stg_ns world_after(const world *w, stg_ns wait); /* so long from now */
stg_rng *world_rng(world *w);

/* Kills the hub: what is under way is lost, or got through unseen. Then a new
 * one begins, `after` later, on what was durable. */
void world_crash(world *w, stg_ns after);
/* In order; returns whether flow called it clean. */
bool world_stop(world *w);
void world_restart(world *w, stg_ns after);
/* The wall clock is set forward or back; a running hub does not mind. */
void world_wall_forward(world *w, stg_ns by);
void world_wall_back(world *w, stg_ns by);

/* -- what people do */
void world_pause(world *w, uint32_t lane, bool is_paused);
void world_remove(world *w, uint32_t lane);
void world_return(world *w, uint32_t lane); /* a lane that was removed */
stg_lane_options *world_join(world *w, const char *policy); /* a new one */
stg_lane_options *world_join_oldest(world *w, const char *policy);
/* Other options of the hub, as changed in place. */
stg_status world_change_all(world *w, stg_error *err);
/* Other options, as changed in place, and another policy; NULL: the same. */
stg_status world_change(world *w, uint32_t lane, const stg_lane_options *o,
                        const char *policy, stg_error *err);
/* The lane's options as they are that may not change at any time: its policy,
 * order, filter, and whether it is paused. */
void world_keep(const world *w, uint32_t lane, stg_lane_options *o);
/* Retention ends below the position; the log itself loses it by trim. */
void world_retain(world *w, uint32_t partition, uint64_t position);
void world_trim(world *w, uint32_t partition, uint64_t position);
/* Dead rows (no ranges) of the lane are parked anew, `count` at most. Returns
 * how many. */
uint32_t world_replay(world *w, uint32_t lane, uint32_t count);

/* -- partitions that come and go (world_merge() before the start): one consumer
 * reads them all, other hubs have what this one has not */
void world_merge(world *w, bool keeps_rows);
void world_large(world *w, uint64_t n); /* each nth message is too large */
bool world_is_here(const world *w, uint32_t partition);
bool world_is_away(const world *w, uint32_t partition);
void world_give(world *w, uint32_t partition); /* if it is away */
void world_take(world *w, uint32_t partition, stg_ns drain);
void world_lose(world *w, uint32_t partition);
/* Another hub has taken it, and flow does not know. */
void world_fence(world *w, uint32_t partition);
/* Other hubs settle up to `count` of its messages, of each lane. */
void world_elsewhere(world *w, uint32_t partition, uint64_t count);
/* The reader comes so many positions further without a message: markers of
 * transactions, records that are no messages. All before was read. */
void world_gap(world *w, uint32_t partition, uint64_t count);
/* The log has lost what is below the position. */
void world_expire(world *w, uint32_t partition, uint64_t position);

/* -- the store: it has room for so many rows more; the next so many answers
 * get lost; how long a group and a fetch take */
void world_store_room(world *w, uint64_t rows);
void world_store_unknown(world *w, uint32_t answers);
void world_store_delay(world *w, stg_ns delay);
void world_fetch_delay(world *w, stg_ns delay);

/* -- memory: the n-th allocation from now fails; or one in so many. 0: none */
void world_fail_at(world *w, uint64_t n);
void world_fail_one_in(world *w, uint32_t n);
uint64_t world_allocations(const world *w);

/* -- what came of it */
stg_flow *world_flow(world *w);
struct stg_lane *world_lane_of(world *w, uint32_t lane); /* flow's own */
stg_lane_view world_look(world *w, uint32_t lane);
stg_flow_view world_look_all(world *w);
const char *world_trace(world *w); /* a line an attempt and tell */
void world_trace_off(world *w);
void world_trace_clear(world *w);
world_receipt *world_receipt_of(world *w, uint32_t lane, uint64_t position);
size_t world_parked(const world *w); /* rows in the store */
size_t world_dead_count(const world *w);
const world_dead *world_dead_at(const world *w, size_t i);
uint64_t world_dead_of(const world *w, uint32_t lane); /* ranges by count */
uint64_t world_ranges_of(const world *w, uint32_t lane);
uint64_t world_committed(const world *w, uint32_t partition);
uint64_t world_published(const world *w);
uint64_t world_position(const world *w, uint64_t i); /* of message i */
uint32_t world_partition(const world *w, uint64_t i);
uint32_t world_crashes(const world *w);
uint32_t world_peak(const world *w, uint32_t lane); /* most in flight */
uint64_t world_starts(const world *w, uint32_t lane);
uint32_t world_lane_count(const world *w);
bool world_was_removed(const world *w, uint32_t lane);
bool world_was_added(const world *w, uint32_t lane); /* durably */
bool world_is_stopped(const world *w);
uint64_t world_reads(const world *w);
uint64_t world_catch_ups(const world *w);    /* reads of that reader */
void world_unread(world *w, uint32_t count); /* so many come to nothing */
uint64_t world_fetches(const world *w);
uint64_t world_groups(const world *w); /* sent to the store */

/* Everything has settled: each (lane, message) has exactly one end, delivered
 * ones were answered 2xx, the books agree with the store (I1, I3, I13, I16,
 * I17). What a filter refused was never tried. Fails the test if not. */
void world_check_ends(world *w, uint64_t seed);
void world_end(world *w, uint64_t seed); /* checks that, and frees it */

/* I20 The faults end: leaves answer as `leaf` does, nothing is paused or full,
 * and everything that is pending ends (world_check_ends()). */
void world_calm(world *w, world_leaf *leaf, uint64_t seed);

/* A leaf's answer that is always the same. */
void world_leaf_says(world *w, uint32_t lane, stg_outcome outcome, stg_ns took);

#endif
