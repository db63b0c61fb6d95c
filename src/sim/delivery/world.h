/* world.h - flow in virtual time: a log, a store, targets and other hubs that do
 * as they are told, and a crash between any two actions.
 *
 *     stg_world_new(&w, &hooks, seed);
 *     stg_world_add_lane(w, "fixed base=1s jitter=none attempts=3");
 *     stg_world_set_script(w, 0, "503 503 200");
 *     stg_world_publish(w, 0, 1);
 *     stg_world_start(w);
 *     stg_world_run(w, STG_NEVER);   // until nothing happens any more
 *     stg_world_check_ends(w);
 *     if (stg_world_failed(w) != NULL) ...
 *
 * A world is a shell of flow (flow/flow.h), as the hub is. It keeps a record of
 * its own of what targets saw and of what the store holds, and judges flow by
 * that record: what an event has touched is as flow's books say, and so is all of
 * it (stg_flow_check()) as often as stg_world_set_checks() asks; no attempt starts early (I4), on a lane that is paused or removed
 * (I7), with other bytes than those published (I11), before its turn in an
 * ordered lane (I18), or outside its message's own times (I34); nothing is committed that is not settled durably (I2).
 *
 * The first invariant that does not hold is the world's failure: the hook is
 * called with it, and nothing happens from then on. One seed and the same calls
 * give the same failure, on every machine.
 *
 * Times are of flow's clock, which begins at 1 s: until_at is such an instant.
 * Lanes are numbered from 0 as they are added, partitions from 0. A number out of
 * range is a bug of the caller's. Memory comes from the hook alone. A world
 * belongs to one thread. */
#ifndef STAGGER_SIM_DELIVERY_WORLD_H
#define STAGGER_SIM_DELIVERY_WORLD_H

#include <stagger/rng.h>

#include "base/memory.h"
#include "flow/flow.h"

#define STG_WORLD_PARTITIONS_MAX 32

/* Bytes of a message at least: they say which one it is. */
#define STG_WORLD_SIZE_MIN 12

typedef struct stg_world stg_world;

/* What did not hold. */
typedef struct stg_world_failure {
    const char
        *invariant;   /* "I4"; "check": stg_flow_check(); "rest": flow or the
                              world never comes to rest; "memory": there was none
                              for the world itself; static */
    const char *text; /* the claim that was broken; static */
    uint64_t seed;
    stg_ns at;          /* since the world began */
    uint32_t lane;      /* UINT32_MAX: of no lane */
    uint32_t partition; /* likewise */
    uint64_t position;  /* UINT64_MAX: of no message */
} stg_world_failure;

typedef struct stg_world_hooks {
    stg_memory memory;
    /* Called once, with the first failure; it need not return. NULL: ask
     * stg_world_failed(). */
    void (*failed)(void *ctx, const stg_world_failure *failure);
    /* A line for each attempt that ended and each notice, without its end. Lent.
     * NULL: none are made. */
    void (*line)(void *ctx, const char *line);
    /* A notice of flow's (STG_ACTION_TELL), and a group that the store has taken;
     * lent. NULL: nobody wants to know. */
    void (*told)(void *ctx, const stg_action *notice);
    void (*stored)(void *ctx, const stg_group *group);
    void *ctx;
} stg_world_hooks;

/* What a target answers to an attempt, and after how long. */
typedef struct stg_world_answer {
    /* Where it is `unsent`, nothing of the request is sent, also when the attempt
     * is cancelled; when it times out it is put back, for it waits for something
     * of the hub's own. */
    stg_outcome outcome;
    stg_ns took;       /* STG_NEVER: until the attempt times out */
    bool is_processed; /* it took the message, whatever the hub gets to know */
} stg_world_answer;

/* Reads a word: `503`, `429+2` (which asks to wait 2 s), `hang` (never answers), or
 * a fault: `refused`, `timeout`, `connect-timeout`, `reset`, `protocol`, `dns`. It
 * takes 10 ms. False: it is none of these. */
bool stg_world_read_answer(const char *text, size_t length,
                           stg_world_answer *a);

typedef stg_world_answer stg_world_target(stg_world *w, uint32_t lane,
                                          uint64_t position, uint64_t attempt);

/* A dead letter as the store has it. */
typedef struct stg_world_dead {
    uint32_t lane, partition, replay, attempts;
    uint64_t position, last_position;
    uint64_t count; /* messages of a bulk row; 0: the row of one delivery */
    stg_outcome outcome;
    stg_why why;
    bool is_cancelled, is_expired;
    stg_shed_reason reason; /* of a bulk row */
    uint32_t life;          /* of the lane: how often it was added again */
} stg_world_dead;

/* What a target saw of a message. */
typedef struct stg_world_receipt {
    uint32_t attempts, processed, replays;
    uint32_t unknown; /* it was processed, and the hub cannot know */
    uint32_t lied;    /* it was not processed, and the target said 2xx */
    stg_ns started_at, ended_at, not_before;
    bool is_over; /* it has ended, as far as the hub knows */
} stg_world_receipt;

/* -- a world --------------------------------------------------------------- */

/* hooks is copied. STG_IO: no memory. */
stg_status stg_world_new(stg_world **world, const stg_world_hooks *hooks,
                         uint64_t seed);
/* Checks that flow gives back all its memory. NULL: nothing. */
void stg_world_free(stg_world *w);

/* NULL: all has held so far. */
const stg_world_failure *stg_world_failed(const stg_world *w);

void *stg_world_ctx(const stg_world *w); /* of the hooks */
stg_rng *stg_world_rng(stg_world *w);    /* all chance of the world */

/* -- before the start: settings -------------------------------------------- */

stg_flow_options *stg_world_options(stg_world *w); /* to change in place */

/* One more lane, whose target answers 200 after 10 ms. Returns its options, to
 * change in place; NULL for a policy that does not parse, or without memory. */
stg_lane_options *stg_world_add_lane(stg_world *w, const char *policy);

/* The lane refuses positions that are multiples of n; 0: none. */
void stg_world_set_filter(stg_world *w, uint32_t lane, uint64_t n);
/* The lane follows partition p if bit p of the mask is set. */
void stg_world_set_followed(stg_world *w, uint32_t lane, uint32_t mask);
void stg_world_set_partitions(stg_world *w, uint32_t count); /* 1: as it is */

/* Messages published from now on have keys i % key_count + 1 (0: no keys), and so
 * many bytes. */
void stg_world_set_keys(stg_world *w, uint64_t key_count);
void stg_world_set_size(stg_world *w, size_t bytes);
/* Each nth message is larger than flow may hold; 0: none. */
void stg_world_set_too_large(stg_world *w, uint64_t n);
/* Messages published from now on may be sent from `not_before` after that, and
 * expire `expires` after it; 0: at once, and never. */
void stg_world_set_times(stg_world *w, stg_ns not_before, stg_ns expires);
/* Some of the messages have such times, up to `most`, and others; 0: none. */
void stg_world_set_some_times(stg_world *w, stg_ns most);

/* Reads and fetches take random times, so that answers overtake each other; else
 * they take none. */
void stg_world_set_delays(stg_world *w, bool has_delays);

/* Partitions come and go, read by one consumer, as in a group of hubs.
 * keeps_rows: each hub has a store of its own; else all share one. */
void stg_world_join_group(stg_world *w, bool keeps_rows);

/* How often the shell asks flow: after so many events, or `turn` after the first
 * of them if none is near, and what to start after so many ends. 1, 1: after each
 * event, as a world does unless told otherwise. */
void stg_world_set_turn(stg_world *w, uint32_t events, uint32_t ends,
                        stg_ns turn);

/* All of flow is checked after each `every`th event, or so many actions; 1: after
 * each event, as a world does unless told otherwise. The check is dear where there
 * are many lanes; the lane of an attempt is checked when it starts and when it
 * ends, and what a target sees is judged at each start, in any case. */
void stg_world_set_checks(stg_world *w, uint32_t every);

/* -- targets --------------------------------------------------------------- */

void stg_world_set_target(stg_world *w, uint32_t lane,
                          stg_world_target *answer);
/* The same answer to every attempt. */
void stg_world_set_answer(stg_world *w, uint32_t lane, stg_outcome outcome,
                          stg_ns took);
/* "503 timeout 200": words of stg_world_read_answer() in the order of the attempts
 * on the lane; the last one repeats. STG_INVALID: not a word of these, or none at
 * all. STG_IO: no memory. */
stg_status stg_world_set_script(stg_world *w, uint32_t lane,
                                const char *answers);
/* Whether attempts that end from now on had made (or could not make) a connection
 * of their own; else they had one of others. */
void stg_world_set_dialing(stg_world *w, uint32_t lane, bool is_dialing);
/* Whether the lane has credentials that a 401 replaces. */
void stg_world_set_signing_in(stg_world *w, uint32_t lane, bool is_signing_in);

/* -- time ------------------------------------------------------------------ */

/* Positions have gaps. At any time. */
void stg_world_publish(stg_world *w, uint32_t partition, uint64_t count);
void stg_world_start(stg_world *w);
/* Until then, or until nothing is under way. */
void stg_world_run(stg_world *w, stg_ns until_at);
void stg_world_steps(stg_world *w, uint64_t count); /* so many events at most */
/* Runs until flow has asked for so many actions at most, and stands between two
 * of them: for a crash there. */
void stg_world_actions(stg_world *w, uint64_t count);
stg_ns stg_world_now(const stg_world *w);
stg_ns stg_world_wall(const stg_world *w); /* Returns the wall clock's time */

/* Kills the hub: what is under way is lost, or got through unseen. A new one
 * begins, `after` later, on what was durable. */
void stg_world_crash(stg_world *w, stg_ns after);
/* Stops in order; returns whether flow called it clean. */
bool stg_world_stop(stg_world *w);
void stg_world_restart(stg_world *w, stg_ns after);
/* The wall clock is set by so much; a running hub does not mind. */
void stg_world_set_wall_forward(stg_world *w, stg_ns by);
void stg_world_set_wall_back(stg_world *w, stg_ns by);

/* I20 The faults end: targets answer as `answer` does, nothing is paused, away or
 * full, and all that is pending ends: stg_world_check_ends(). */
void stg_world_heal(stg_world *w, stg_world_target *answer);

/* Judges a world in which all has settled: each (lane, message) has exactly one
 * end, delivered ones were answered 2xx, the books agree with the store (I1, I3,
 * I13, I16, I17), and what a filter refused was never tried. */
void stg_world_check_ends(stg_world *w);

/* -- what operators do ----------------------------------------------------- */

void stg_world_pause(stg_world *w, uint32_t lane, bool is_paused);

/* As stg_flow_gate(). */
void stg_world_gate(stg_world *w, uint32_t lane, bool is_gated);

/* As stg_flow_probe(). */
bool stg_world_probe(stg_world *w, uint32_t lane);
void stg_world_remove(stg_world *w, uint32_t lane);
void stg_world_add_again(stg_world *w,
                         uint32_t lane); /* one that was removed */
/* A new lane of a running hub; as stg_world_add_lane(). */
stg_lane_options *stg_world_join_lane(stg_world *w, const char *policy,
                                      bool is_from_earliest);
/* Other options of the hub, as changed in place. */
stg_status stg_world_change(stg_world *w, stg_error *err);
/* Other options of the lane, and another policy; NULL: the same. */
stg_status stg_world_change_lane(stg_world *w, uint32_t lane,
                                 const stg_lane_options *o, const char *policy,
                                 stg_error *err);
/* Copies to o what stg_world_change_lane() is not to change: the lane's policy,
 * order, filter, where it begins, and whether it is paused. */
void stg_world_copy_options(const stg_world *w, uint32_t lane,
                            stg_lane_options *o);
/* Dead letters (no bulk rows) of the lane are parked anew, `count` at most.
 * Returns how many. */
uint32_t stg_world_replay(stg_world *w, uint32_t lane, uint32_t count);
/* Messages of the lane that have ended are sent once more, as a rewind does,
 * `count` at most: the oldest that have no dead letter of their own. Returns how
 * many. */
uint32_t stg_world_rewind(stg_world *w, uint32_t lane, uint32_t count);
/* Retention ends below the position; the log itself loses it by trim. */
void stg_world_retain(stg_world *w, uint32_t partition, uint64_t position);
void stg_world_trim(stg_world *w, uint32_t partition, uint64_t position);

/* -- partitions of a group: stg_world_join_group() ------------------------- */

bool stg_world_is_assigned(const stg_world *w, uint32_t partition);
bool stg_world_is_away(const stg_world *w, uint32_t partition);
void stg_world_assign(stg_world *w, uint32_t partition); /* if it is away */
void stg_world_revoke(stg_world *w, uint32_t partition, stg_ns drain);
void stg_world_lose(stg_world *w, uint32_t partition);
/* Another hub has claimed it, and this one does not know. */
void stg_world_fence(stg_world *w, uint32_t partition);
/* Other hubs settle up to `count` of its messages, of each lane. */
void stg_world_settle_elsewhere(stg_world *w, uint32_t partition,
                                uint64_t count);
/* The reader passes so many positions without a message: markers of
 * transactions, records that are no messages. All before was read. */
void stg_world_skip(stg_world *w, uint32_t partition, uint64_t count);
/* The log has lost what is below the position. */
void stg_world_expire(stg_world *w, uint32_t partition, uint64_t position);

/* -- faults of the store, the log and memory ------------------------------- */

void stg_world_set_store_room(stg_world *w, uint64_t rows); /* so many more */
/* The disk is full, so that not even cursors fit; or it is not any more. */
void stg_world_fill_store(stg_world *w, bool is_full);
/* The next so many answers are lost: the group was written, or not. */
void stg_world_lose_answers(stg_world *w, uint32_t answers);
void stg_world_set_store_delay(stg_world *w, stg_ns delay); /* of a group */
void stg_world_set_fetch_delay(stg_world *w, stg_ns delay);
/* The next so many reads of the catch-up reader come to nothing. */
void stg_world_fail_reads(stg_world *w, uint32_t count);
/* The n-th allocation of flow's from now fails; or one in so many. 0: none */
void stg_world_fail_allocation_at(stg_world *w, uint64_t n);
void stg_world_fail_allocations(stg_world *w, uint32_t one_in);

/* -- what came of it ------------------------------------------------------- */

typedef struct stg_world_totals {
    uint32_t lanes, crashes;
    uint64_t messages;         /* published */
    uint64_t reads, catch_ups; /* of the log; of these the catch-up reader's */
    uint64_t fetches, groups;  /* of the store; written to it */
    uint64_t allocations;      /* by flow */
    /* What happened in the world: a read, a look or an answer of the log or the
     * store, the end of an attempt. And what flow wanted: starts, groups ... */
    uint64_t events, actions;
    uint64_t starts;     /* attempts of all lanes */
    uint64_t delivered;  /* attempts that were answered 2xx */
    size_t parked, dead; /* rows in the store */
    bool is_stopped;     /* the hub, in order */
} stg_world_totals;

stg_world_totals stg_world_sum(const stg_world *w);

typedef struct stg_world_lane_totals {
    uint64_t starts;          /* of attempts */
    uint32_t peak;            /* most in flight */
    uint64_t dead, bulk_dead; /* messages that are dead; bulk rows */
    bool was_added;           /* flow said that its cursor is durable */
    bool was_removed;
} stg_world_lane_totals;

stg_world_lane_totals stg_world_sum_lane(const stg_world *w, uint32_t lane);

stg_flow *stg_world_flow(stg_world *w); /* for a look */
/* What the hub has committed of the partition. */
uint64_t stg_world_committed(const stg_world *w, uint32_t partition);
/* Where message i is, in the order in which they were published. */
uint64_t stg_world_position_at(const stg_world *w, uint64_t i);
uint32_t stg_world_partition_at(const stg_world *w, uint64_t i);
/* Dead letter i in the store, in no order. Lent until anything happens. */
const stg_world_dead *stg_world_dead_at(const stg_world *w, size_t i);
/* NULL: there is no such message. Lent until more are published. */
const stg_world_receipt *stg_world_receipt_of(stg_world *w, uint32_t lane,
                                              uint32_t partition,
                                              uint64_t position);

#endif
