/* flow.h - many deliveries: one log, N cursors, parked exceptions.
 *
 * The contract between flow, which decides about all deliveries of a hub, and
 * its shell, which carries the decisions out: the hub for real, the simulator
 * in virtual time. Events go in by the calls below, actions come out of
 * stg_flow_next(). The shell is one loop:
 *
 *     stg_flow_...(f, ..., now);               // what happened
 *     while (stg_flow_next(f, &action, now))   // what to do about it
 *         switch (action.kind) ...
 *     sleep until stg_flow_wake_at(f), or until something happens
 *
 * After every STG_ENDS_MAX attempts that have ended since it last asked, the
 * shell asks what to start, by stg_flow_next_start(), so that the next start
 * finds in the processor's cache what the end has touched.
 *
 * Flow is pure: no clock, no I/O, no thread; memory comes from a hook. now is
 * monotonic and may not step back; the same events give the same actions. A
 * stg_flow belongs to one thread. Pointers in actions and answers are lent
 * until the next call of flow, unless a comment says otherwise.
 *
 *   message   is in the log, by its partition and position. Flow has a bounded
 *             window of recent ones in memory.
 *   lane      one target's queue: a cursor in each partition, and above its base
 *             the few deliveries that it has taken.
 *   parked    tried, and waits for its next attempt: a durable row in the store;
 *             the lane goes on with the next message.
 *   dead      ended without a delivery: a durable row, and only then the cursor
 *             passes.
 *   throttled what was never tried waits: for Retry-After, a rate or concurrency
 *             limit, a budget, room in the store.
 *   catching  a lane whose next message is no longer in the window: it is served
 *   up        by the catch-up reader, in turn, until it is in the window again.
 *   shedding  the breaker was open for longer than `shed-after`: the lane settles
 *             all that comes into one bulk row, until a probe succeeds.
 *   watermark what is committed to the log: everything below is settled durably
 *             in every lane that follows the partition.
 *
 * How a message passes: ACTION_READ, stg_flow_messages(); ACTION_START for each
 * lane that takes it, stg_flow_ended(); ACTION_STORE with what it came to,
 * stg_flow_stored(); ACTION_COMMIT when no lane needs it any more. */
#ifndef STAGGER_FLOW_FLOW_H
#define STAGGER_FLOW_FLOW_H

#include <stagger/policy.h>

#include "base/memory.h"
#include "flow/group.h"

typedef struct stg_flow stg_flow;
typedef struct stg_delivery stg_delivery;

typedef struct stg_flow_options {
    size_t memory_max;         /* bytes held of messages and answers: 1 MiB to
                               2^40. A message is a sixteenth at most; where
                               lanes are ordered, it has room for four messages
                               of each of them. */
    uint32_t in_flight_max;    /* attempts at once over all lanes, 1 to 1000000;
                               every lane owns one besides */
    stg_ns drain;              /* how long attempts may go on after a stop */
    stg_budget_options budget; /* of all retries of all lanes */
    bool budget_waits; /* a retry that it refuses waits; else it is given up. A
                          lane's own budget has its policy's word */
    stg_ns wall_at; /* what the wall clock showed at `now` of stg_flow_new() */
    uint64_t seed;  /* of the jitter */
} stg_flow_options;

/* 64 MiB, 10000 in flight, drain 10 s, no budget, which waits; wall_at and seed
 * 0. */
stg_flow_options stg_flow_options_default(void);

/* Returns STG_OK where stg_flow_change() takes them, and STG_INVALID with words. */
stg_status stg_flow_options_check(const stg_flow_options *o, stg_error *err);

typedef enum stg_order {
    STG_ORDER_NONE,
    STG_ORDER_KEY,    /* messages with one key: the next starts when the one
                         before has ended */
    STG_ORDER_STRICT, /* messages of a partition: one after the other */
} stg_order;

typedef struct stg_lane_options {
    const stg_policy *policy; /* the caller's: checked, and kept until the lane
                                 has another one, or has been removed */
    stg_order order;
    uint32_t in_flight_max; /* 1 to 10000: the most that its adaptive limit
                               grows to */
    uint32_t burst;         /* with a rate in the policy: 1 to 1000000; 0: a
                               tenth of a second's */
    uint32_t parked_max;    /* 1 to 1000000 rows; at it the lane is
                               throttled */
    stg_ns shed_after;      /* how long an open breaker keeps messages before
                               the lane sheds, 0 to 365 d; STG_NEVER: for ever */
    uint64_t proxy; /* its requests go through this one: a number that lanes of
                       one proxy share; 0: through none. See lane.h */
    bool is_limit_fixed; /* it does not adapt, and is in_flight_max from the
                            first: the shell limits the requests that several
                            attempts share */
    bool is_paused;
    bool is_gated; /* see stg_flow_gate() */
    bool
        is_from_earliest; /* a lane without a cursor begins at the oldest message
                            that is sure to be kept, else at the next that the
                            reader will read */
    /* It is not new: without a cursor in a partition it begins at the floor, for
     * another hub may have had it there; where there is no floor, as above. */
    bool is_known;
    /* Whether the lane wants the message; NULL: all. */
    bool (*accepts)(void *ctx, const stg_message *m);
    /* Whether it may want anything of the partition; NULL: of all. It is asked
     * when the partition is assigned, and when the lane is added or changed. Of
     * another partition the lane takes nothing, also while it is paused or its
     * breaker is open: it delays neither commits nor reads, and what the log
     * loses of it is not the lane's loss. */
    bool (*follows)(void *ctx, uint32_t partition);
    void *ctx;
} stg_lane_options;

/* 64 in flight, 10000 parked, shed_after 10 m, order none. */
stg_lane_options stg_lane_options_default(const stg_policy *policy);

/* Returns STG_OK for options that a lane takes, and STG_INVALID with words. */
stg_status stg_lane_options_check(const stg_lane_options *o, stg_error *err);

/* -- a flow ---------------------------------------------------------------- */

/* Returns STG_INVALID with words in err for options out of range, STG_IO when
 * there is no memory. */
stg_status stg_flow_new(stg_flow **flow, const stg_memory *memory,
                        const stg_flow_options *o, stg_ns now, stg_error *err);
void stg_flow_free(stg_flow *f);

/* Changes the options. What was used of the budget stays used; attempts that are
 * under way go on, also where they are more than there may be now. Memory,
 * wall clock and seed stay as they are. STG_INVALID: as stg_flow_new(), and
 * nothing has changed. */
stg_status stg_flow_change(stg_flow *f, const stg_flow_options *o, stg_ns now,
                           stg_error *err);

/* -- at the start: lanes, partitions, cursors ------------------------------ */

/* Adds a lane by its number (below 1000000; the store assigns it, and never to
 * another name). At any time; one that was removed can be added again after
 * STG_ACTION_REMOVED. STG_INVALID: out of range, or there already. For a lane
 * that the store does not know STG_ACTION_ADDED follows when its cursor is
 * durable: from then on it begins there, also after a crash. */
stg_status stg_flow_add_lane(stg_flow *f, uint32_t lane,
                             const stg_lane_options *o, stg_ns now,
                             stg_error *err);

/* The same in steps, for many lanes of which all are added or none. All that can
 * fail comes first, and changes nothing of flow that can be seen: making a lane
 * (*made: given to one of the calls behind it, before flow goes on), and room for
 * its number. Options as they are placed are those of the check, or differ in
 * is_paused, is_gated and is_known alone. */
typedef struct stg_lane stg_lane;
stg_status stg_flow_make_lane(stg_flow *f, const stg_lane_options *o,
                              stg_ns now, stg_lane **made, stg_error *err);
stg_status stg_flow_fit_lane(stg_flow *f, uint32_t lane, stg_error *err);
void stg_flow_place_lane(stg_flow *f, stg_lane *made, uint32_t lane,
                         const stg_lane_options *o);
void stg_flow_drop_lane(stg_flow *f, stg_lane *made); /* NULL is none */

#define STG_PARTITIONS_MAX 65536

/* A partition of a log. Its number is never used for another one. */
typedef struct stg_assignment {
    uint32_t partition;  /* below STG_PARTITIONS_MAX; needs no neighbours */
    uint64_t generation; /* what the claim of a group says; see stg_claim */
    uint64_t begin;      /* the log's oldest message is not below */
    uint64_t floor;      /* no lane begins below; nor is less committed */
    bool is_merged;      /* read together with others: STG_ANY_PARTITION */
    bool is_rows_only;   /* nothing is read of it: its parked rows go on */
    /* What the store knows of all lanes in this partition: lent. Cursors of lanes
     * that flow does not have are ignored. */
    const stg_cursor *cursors;
    size_t cursor_count;
} stg_assignment;

/* Assigns a partition, at any time; lanes are added first. A lane without a
 * cursor begins at the highest cursor of the others; at `begin` if there is
 * none, or if it is to begin at the earliest; at the floor if it is known. Rows
 * that the cursors count are fetched: no fetch that was answered before may
 * have returned them.
 *
 * A partition of which only the rows are here (see stg_flow_revoke()) may be
 * assigned again. Flow then knows its cursors best, and ignores those of the
 * assignment.
 *
 * STG_INVALID: out of range, it is there already, or flow stops. STG_IO: no
 * memory; nothing has changed. */
stg_status stg_flow_assign(stg_flow *f, const stg_assignment *g, stg_ns now,
                           stg_error *err);

/* The number of the partition's last assignment, counted over all partitions: its
 * messages carry it. 0: it is not there, or for its rows only. */
uint64_t stg_flow_assignment(const stg_flow *f, uint32_t partition);

/* Restores a lane's cursor in a partition that was assigned without cursors,
 * before stg_flow_start(). */
stg_status stg_flow_restore(stg_flow *f, const stg_cursor *c);

/* Ends the restore: from now on stg_flow_next() has actions. */
void stg_flow_start(stg_flow *f, stg_ns now);

/* -- partitions that are revoked or lost ----------------------------------- */

/* Revokes the partition in order. From the return of this call on nothing is read
 * of it and no untried delivery of it starts; attempts under way have `drain`,
 * and time out then. When all of it is durable and committed STG_ACTION_REVOKED
 * follows, and no later action names the partition.
 *
 * keeps_rows: the store is this hub's alone. Parked rows stay, are retried and
 * settle: the partition is there for its rows only. Else its rows leave memory,
 * their attempts end as well, and rows of it that a fetch returns are ignored. */
void stg_flow_revoke(stg_flow *f, uint32_t partition, bool keeps_rows,
                     stg_ns drain, stg_ns now);

/* The partition was lost: another hub has it. From the return of this call on
 * nothing of it is committed, no new group contains it, and it no longer counts
 * in the books. Its attempts are cancelled, and not counted. When they have
 * ended, and the group with the store was answered, STG_ACTION_REVOKED follows.
 *
 * keeps_rows: as above, and what failed before is still parked. */
void stg_flow_lose(stg_flow *f, uint32_t partition, bool keeps_rows,
                   stg_ns now);

/* The store refused the group for this partition's claim: it is lost, with all
 * its rows. Before stg_flow_stored(f, STG_STORED_FENCED, now). */
void stg_flow_fenced(stg_flow *f, uint32_t partition, stg_ns now);

/* -- events ---------------------------------------------------------------- */

/* Answers STG_ACTION_READ: the log's messages from action.read.from on, in order.
 * next: everything below it was read, gaps included. A main read is answered when
 * there is a message. A catch-up read is answered at once; where the log has
 * nothing from `from` on, next is `from`, and lanes pass what is missing. Where
 * messages may exist that could not be read, answer by stg_flow_unread().
 *
 * assignment: stg_flow_assignment() of when these were read, or that of the
 * action; messages of an older one are dropped. 0: of a log whose partitions
 * are never revoked.
 *
 * A read of STG_ANY_PARTITION is answered so once for each partition that has
 * messages, each from where it was read last, and ends by stg_flow_read_end(). */
void stg_flow_messages(stg_flow *f, bool is_catch_up, uint32_t partition,
                       uint64_t assignment, const stg_record *records,
                       size_t count, uint64_t next, stg_ns now);
void stg_flow_read_end(stg_flow *f, stg_ns now);

/* Answers a catch-up read that failed: what the log has is not known. The
 * cursor is read for again in its turn. */
void stg_flow_unread(stg_flow *f, uint32_t partition, uint64_t assignment,
                     stg_ns now);

/* The log has lost what was below `begin`. A lane that has not read up to there
 * settles it into a bulk row of its own (is_expired), with STG_TELL_LOST.
 * Messages that are in memory are still delivered. */
void stg_flow_expired(stg_flow *f, uint32_t partition, uint64_t begin,
                      stg_ns now);

/* Answers STG_ACTION_FETCH: the rows of its kind above the mark, in the order of
 * marks. is_all: there are no more. */
void stg_flow_rows(stg_flow *f, uint32_t lane, bool is_replay,
                   const stg_parked_row *rows, size_t count, bool is_all,
                   stg_ns now);

/* The end of an attempt. */
typedef struct stg_end {
    stg_outcome outcome;
    const char *detail; /* lent; NULL: nothing to say */
    const void *answer; /* lent */
    size_t answer_size;
    stg_ns dialed_at; /* when the connection was made for this attempt, or could
                         not be; 0: another had made it, or it was not dialed */
    /* The target refused the credential that the hub has now replaced: the
     * delivery is put back as it was, uncounted (STG_WHY_GATE); but not twice in a
     * row: the second refusal is judged by the policy. */
    bool is_unauthorized;
} stg_end;

/* What an attempt came to, for the log: the delivery's end, or its next
 * attempt. */
typedef struct stg_verdict {
    stg_decision decision;      /* WAIT: parked until due_at, or with
                               STG_WHY_CIRCUIT_OPEN put back as it was */
    stg_failure const *failure; /* NULL after a success */
    uint64_t attempts;
} stg_verdict;

/* Answers STG_ACTION_START: the attempt has ended. The shell may not use the
 * delivery any more. */
stg_verdict stg_flow_ended(stg_flow *f, stg_delivery *d, const stg_end *end,
                           stg_ns now);

typedef enum stg_stored {
    STG_STORED,         /* durable */
    STG_STORED_FULL,    /* nothing of it, for want of space */
    STG_STORED_UNKNOWN, /* no answer: the same group is sent again, without what
                           was lost since */
    STG_STORED_FENCED,  /* nothing of it: see stg_flow_fenced() */
} stg_stored;

/* Answers STG_ACTION_STORE. */
void stg_flow_stored(stg_flow *f, stg_stored how, stg_ns now);

/* The log's retention ends below position, now or soon: a lane that has not
 * come so far sheds up to it. */
void stg_flow_retain(stg_flow *f, uint32_t partition, uint64_t position,
                     stg_ns now);

/* The lane sheds all that was read and waits untried for it, in all partitions
 * that are assigned, also while it is paused: it has outlived the retention.
 * False: nothing waits, or the lane sheds already. */
bool stg_flow_retain_lane(stg_flow *f, uint32_t lane, stg_ns now);

/* A replay has put rows into the store: parked so many more of the lane, with
 * replay > 0, which were dead until then; or (is_again) messages that are routed
 * once more, whatever became of them before. They are due at once, start after live
 * traffic and the lane's own retries, in a quarter of what the lane may have in
 * flight, do not count against parked_max, and are not ordered. No fetch that was
 * answered before may have returned them. Their policy begins anew; the attempts
 * before the replay are in attempts_before of the row. */
void stg_flow_replayed(stg_flow *f, uint32_t lane, uint32_t partition,
                       uint64_t count, bool is_again, stg_ns now);

/* Pauses a lane, or resumes it. From the return of a pause on no attempt of the
 * lane starts; those in flight go on. */
void stg_flow_pause(stg_flow *f, uint32_t lane, bool is_paused, stg_ns now);

/* Closes the lane's gate, or opens it: something of ours that each request needs is
 * missing, such as a token. From the return of this call on no attempt of the lane
 * starts while it is closed, nothing is counted, and nothing is shed for an open
 * breaker; attempts in flight go on. Unlike a pause it is nobody's wish, so the
 * lane is throttled. */
void stg_flow_gate(stg_flow *f, uint32_t lane, bool is_gated, stg_ns now);

/* The next probe of an open circuit may start at once, and not only when the
 * breaker would let it: with the next delivery that is due (I4). False: nothing
 * has changed, because the circuit is not open, no message waits for the lane, or
 * the lane is paused, gated or not there. */
bool stg_flow_probe(stg_flow *f, uint32_t lane, stg_ns now);

/* Changes a lane's options. What was used of the budget stays used, and an open
 * breaker open, also where the policy has other numbers for them. A filter
 * applies to what is taken from now on. Another order applies as soon as it
 * can: to none or to key at once; to strict when the attempts under way have
 * ended, and none starts before; from none when all that was taken and parked
 * has ended, and the lane takes nothing before. is_paused applies at once. The
 * policy of the old options must be there until this returns. STG_INVALID: there
 * is no such lane, or an option is wrong; nothing has changed. */
stg_status stg_flow_change_lane(stg_flow *f, uint32_t lane,
                                const stg_lane_options *o, stg_ns now,
                                stg_error *err);

/* Removes the lane: attempts are cancelled, parked rows and all that waits become
 * cancelled dead letters; then STG_ACTION_REMOVED. */
void stg_flow_remove(stg_flow *f, uint32_t lane, stg_ns now);

/* Stops the flow: nothing starts and nothing is read from now on; attempts have
 * the drain time, after which they time out, or wait again where nothing was
 * sent; the last group is stored; then STG_ACTION_STOPPED. */
void stg_flow_stop(stg_flow *f, stg_ns now);

/* -- actions --------------------------------------------------------------- */

#define STG_ANY_PARTITION UINT32_MAX

typedef enum stg_action_kind {
    STG_ACTION_READ, /* answer by stg_flow_messages(); of STG_ANY_PARTITION: all
                          those that are merged, from where each was read last:
                          one such read at a time */
    STG_ACTION_FETCH,  /* answer by stg_flow_rows() */
    STG_ACTION_START,  /* an attempt; answer by stg_flow_ended() */
    STG_ACTION_CANCEL, /* the attempt is to end now: it is still answered, with
                          STG_FAULT_CANCELLED (unsent, if nothing was sent)
                          unless it was quicker */
    STG_ACTION_STORE,  /* answer by stg_flow_stored() */
    STG_ACTION_COMMIT, /* everything below position is settled for good */
    STG_ACTION_TELL,   /* an event of a lane or of all, for log and alerts */
    STG_ACTION_ADDED,  /* the cursor of a lane that was new is durable */
    STG_ACTION_REMOVED,
    STG_ACTION_REVOKED, /* nothing of the partition is under way, but for rows
                            that are kept; it may be assigned again */
    STG_ACTION_STOPPED,
} stg_action_kind;

typedef enum stg_tell {
    STG_TELL_OPENED,           /* the breaker opened */
    STG_TELL_CLOSED,           /* a probe succeeded */
    STG_TELL_SHEDDING,         /* it was open for longer than shed_after */
    STG_TELL_SHED,             /* shedding has ended; count: in the bulk row */
    STG_TELL_PARKED_MAX,       /* parked_max is reached: throttled */
    STG_TELL_PARKED_BELOW_MAX, /* fewer rows again */
    STG_TELL_CATCHING_UP,      /* its next message left the window */
    STG_TELL_CAUGHT_UP,        /* in the window again, in every partition */
    STG_TELL_STORE_FULL,     /* a group did not fit; its lanes are throttled */
    STG_TELL_STORE_SPACE_OK, /* a group fits again */
    STG_TELL_EXPIRING,       /* it sheds what outlived the retention */
    STG_TELL_UPLINK_DOWN, /* our own network is down, see lane.h; count: lanes
                             that wait for it; lane: the last of them */
    STG_TELL_UPLINK_UP,   /* count: lanes that waited; until_at: since when */
    STG_TELL_PROXY_DOWN,  /* likewise, of a proxy */
    STG_TELL_PROXY_UP,
    STG_TELL_LOST, /* count, at most: the log lost them unread */
} stg_tell;

typedef struct stg_action {
    stg_action_kind kind;
    uint32_t lane;      /* FETCH, START, CANCEL, TELL, ADDED, REMOVED */
    uint32_t partition; /* READ, COMMIT, TELL, REVOKED */
    union {
        struct {
            bool is_catch_up;
            uint64_t assignment; /* but for STG_ANY_PARTITION */
            uint64_t from;       /* the first position wanted; as above */
            size_t bytes_max;    /* of messages, but one at least */
        } read;
        struct {
            bool is_replay; /* those with replay > 0 only; else with 0 only */
            stg_mark after; /* rows above it; all zeros: from the first */
            uint32_t rows_max;
        } fetch;
        struct {
            stg_delivery *delivery;     /* the handle, until it has ended */
            const stg_message *message; /* there until then */
            uint64_t attempt;           /* from 1, all replays counted */
            uint64_t attempts_max;      /* STG_UNLIMITED; counted likewise */
            uint32_t replay;
            bool is_retry;  /* not the first, nor the first of a replay */
            stg_ns timeout; /* STG_NEVER: none */
            bool is_probe;
        } start;
        struct {
            stg_delivery *delivery;
            void *attempt; /* of stg_delivery_attach() */
        } cancel;
        const stg_group *group; /* kept until stg_flow_stored() */
        uint64_t position;      /* COMMIT */
        struct {
            stg_tell what;
            uint64_t count;  /* SHED, LOST */
            stg_ns until_at; /* OPENED: the next probe */
            uint64_t proxy;  /* PROXY_DOWN, PROXY_UP: its number */
        } tell;
        bool is_clean; /* STOPPED: nothing was cut, and all of it is stored */
    };
} stg_action;

/* The next action to carry out; false: there is none for now. */
bool stg_flow_next(stg_flow *f, stg_action *action, stg_ns now);

/* Ends after which starts are asked for. The data of so many deliveries, their
 * lanes and connections included, fit into a core's second cache. */
enum { STG_ENDS_MAX = 16 };

/* As stg_flow_next(), but for STG_ACTION_START only: at any time, also between
 * two calls of stg_flow_next(). */
bool stg_flow_next_start(stg_flow *f, stg_action *action, stg_ns now);

/* When stg_flow_next() may have something without an event; STG_NEVER. */
stg_ns stg_flow_wake_at(const stg_flow *f);

/* Attaches the shell's own attempt to a delivery in flight: CANCEL brings it. */
void stg_delivery_attach(stg_delivery *d, void *attempt);

/* -- views, for operators and metrics -------------------------------------- */

typedef enum stg_lane_state {
    STG_LANE_LIVE,
    STG_LANE_THROTTLED,    /* Retry-After, rate, parked_max, store full, uplink,
                           stg_flow_gate() */
    STG_LANE_CIRCUIT_OPEN, /* the breaker is open */
    STG_LANE_SHEDDING,
    STG_LANE_PAUSED,
    STG_LANE_REMOVING,
} stg_lane_state;

/* "circuit-open" */
const char *stg_lane_state_name(stg_lane_state state);

/* Counts marked "since the start" are since the start of the process. */
typedef struct stg_lane_view {
    stg_lane_state state;
    bool is_catching_up;
    bool is_gated;      /* by stg_flow_gate() */
    stg_order order;    /* that holds now: another may be requested */
    bool is_slow_start; /* its limit doubles with each round that goes well */
    uint32_t limit;     /* of attempts at once, as adapted */
    uint32_t in_flight; /* attempts */
    uint64_t waiting;   /* taken and untried, or not durably settled yet */
    uint64_t routed, delivered, dead, cancelled, parked; /* the books */
    uint64_t replays;  /* rows of replays among the parked */
    uint64_t bulk;     /* messages in its open bulk rows; 0: none */
    uint64_t next;     /* where it reads on: the lowest of all partitions */
    uint64_t base;     /* all below is settled: likewise */
    uint64_t lag;      /* messages that were read and it has not taken yet */
    bool is_lag_exact; /* else it is catching up, and there are more: what
                           is between next and the window is only in the log */
    stg_ns oldest_at;  /* when the oldest message was accepted that it has not
                           settled, by the wall clock; 0: none, or not known.
                           Of a lane that catches up and has read nothing since
                           a restart it may be earlier */
    stg_ns gate_until; /* THROTTLED, CIRCUIT_OPEN: until when; else 0 */
    uint64_t retries;  /* started since the start */
    uint64_t
        budget_refused; /* of retries by a budget, its own or the global one,
                           since the start */
    stg_breaker_state breaker; /* closed where there is none */
    stg_ns probe_at;           /* OPEN: when the next probe may start; else 0 */
    uint64_t openings;         /* of the breaker since the start */
    uint64_t budget_left; /* of its own: see stg_budget_left(); UINT64_MAX: it
                             has none */
} stg_lane_view;

/* STG_NOT_FOUND: no such lane. */
stg_status stg_flow_view_lane(const stg_flow *f, uint32_t lane,
                              stg_lane_view *view, stg_ns now);

/* A lane's cursor in one partition. */
typedef struct stg_lane_cursor_view {
    bool is_catching_up;
    uint64_t next, base; /* positions: as above */
    uint64_t lag;        /* as above */
    bool is_lag_exact;
    stg_ns oldest_at; /* as above */
    uint64_t waiting, parked;
} stg_lane_cursor_view;

/* STG_NOT_FOUND: no such lane, or the partition is not there. */
stg_status stg_flow_view_cursor(const stg_flow *f, uint32_t lane,
                                uint32_t partition, stg_lane_cursor_view *view);

typedef enum stg_partition_state {
    STG_PARTITION_ASSIGNED,
    STG_PARTITION_REVOKING, /* revoked or lost, and something is under way */
    STG_PARTITION_ROWS,     /* there for its rows only */
} stg_partition_state;

typedef struct stg_partition_view {
    stg_partition_state state;
    uint64_t generation, assignment;
    uint64_t next;      /* where the main reader goes on */
    uint64_t committed; /* by the last COMMIT, or the floor */
    uint32_t window;    /* messages */
} stg_partition_view;

/* STG_NOT_FOUND: it is not there. */
stg_status stg_flow_view_partition(const stg_flow *f, uint32_t partition,
                                   stg_partition_view *view);

typedef struct stg_flow_view {
    size_t held;            /* bytes of messages and answers */
    size_t memory_max;      /* limit of `held`, bytes */
    uint32_t in_flight;     /* attempts */
    uint32_t in_flight_max; /* as the options say */
    uint32_t window;        /* messages in the window, all partitions */
    uint32_t lanes;
    uint32_t partitions;     /* assigned, or there for their rows only */
    uint64_t budget_left;    /* of the global one; UINT64_MAX: there is none */
    uint64_t budget_refused; /* retries, by the global one, since the start */
    bool is_store_full;      /* rows or cursors do not fit */
    bool is_uplink_down;     /* see lane.h */
    stg_ns uplink_down_at;   /* is_uplink_down: since then; else 0 */
    uint32_t uplink_lanes; /* is_uplink_down: lanes that wait for it; else 0 */
    uint32_t proxies_down; /* likewise, of all proxies */
    bool is_stopping;
} stg_flow_view;

void stg_flow_view_all(const stg_flow *f, stg_flow_view *view, stg_ns now);

/* How many lanes wait for the proxy of this number; 0: it is not down. */
uint32_t stg_flow_view_proxy(const stg_flow *f, uint64_t proxy);

/* Checks what must hold between any two calls (I2, I5, I6, I17, I18, I22, I34,
 * and the structure). For tests and fuzzing; slow. Returns NULL, or what is wrong:
 * static. */
const char *stg_flow_check(const stg_flow *f);
/* The part of it that a lane's own numbers in a partition say, without a look at
 * its deliveries. A lane or a partition that there is not has none. */
const char *stg_flow_check_cursor(const stg_flow *f, uint32_t lane,
                                  uint32_t partition);

#endif
