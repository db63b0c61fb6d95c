/* internal.h - what a world holds, and what its files do for each other. */
#ifndef STAGGER_SIM_DELIVERY_INTERNAL_H
#define STAGGER_SIM_DELIVERY_INTERNAL_H

#include "flow/state.h"
#include "sim/delivery/world.h"

typedef enum stg_world_event_kind {
    STG_WORLD_READ,     /* the log answers a read of one partition */
    STG_WORLD_CATCH_UP, /* and one of the catch-up reader */
    STG_WORLD_POLL,     /* the consumer looks at what there is */
    STG_WORLD_POLLED,   /* and answers */
    STG_WORLD_LOOK,     /* the store looks at the rows of a fetch */
    STG_WORLD_ROWS,     /* and answers */
    STG_WORLD_ENDED,    /* an attempt ends */
    STG_WORLD_STORED,   /* the store answers a group */
} stg_world_event_kind;

/* What one poll brought of a partition: `count` of its messages from its
 * `first`th on, read up to the position `next`. */
typedef struct stg_world_batch {
    uint64_t assignment, first, count, next;
} stg_world_batch;

/* A parked delivery, as the store has it. */
typedef struct stg_world_row {
    uint32_t lane, partition, replay;
    uint64_t attempts_before;
    uint64_t position;
    stg_progress progress;
    stg_ns began_at;
    stg_failure failure;
    bool has_failure;
    stg_ns wait, due_at;
} stg_world_row;

typedef struct stg_world_event {
    struct stg_world_event *next, *prev; /* prev: of ENDED alone */
    size_t place;                        /* in the heap: likewise */
    stg_world_event_kind kind;
    stg_ns at;
    uint64_t order; /* of events at one instant */
    uint32_t lane, partition;
    union {
        struct {
            uint64_t from, assignment;
            size_t bytes_max;
        } read;                   /* READ, CATCH_UP, POLL */
        stg_world_batch *batches; /* POLLED: one a partition */
        struct {
            bool is_replay, is_all;
            stg_mark after;
            uint32_t rows_max, count;
            stg_ns left;         /* from the look to the answer */
            stg_world_row *rows; /* as they were when the store looked */
        } fetch;                 /* LOOK, ROWS */
        struct {
            stg_delivery *delivery;
            uint32_t replay;
            uint64_t position;
            uint64_t index; /* of the message in the log */
            stg_world_answer answer;
        } attempt; /* ENDED */
    };
} stg_world_event;

/* A message of the log. */
typedef struct stg_world_message {
    uint64_t position, key;
    stg_ns created_at;
    stg_ns not_before, expires_at; /* 0: none */
    uint32_t partition;
    size_t size, true_size;
} stg_world_message;

/* Rows of a lane in a partition, and dead letters of its present life. */
typedef struct stg_world_tally {
    uint64_t parked, replays, dead, cancelled;
} stg_world_tally;

/* By what a row or a dead letter is found. */
typedef struct stg_world_key {
    uint64_t position;
    uint32_t lane, partition, replay;
    uint32_t life; /* of the lane; of parked rows 0 */
} stg_world_key;

typedef struct stg_world_place {
    stg_world_key key;
    size_t number; /* which of the array, from 1 on; 0: free */
} stg_world_place;

/* From keys to places in an array. */
typedef struct stg_world_keys {
    stg_world_place *places;
    size_t room, count; /* room: a power of two, or 0 */
} stg_world_keys;

/* A lane's cursor in a partition, as the store has it. */
typedef struct stg_world_cursor {
    stg_cursor c;
    bool is_known;
    stg_positions *settled;
    size_t settled_capacity;
    uint64_t begin; /* the first position that is the lane's business */
    uint64_t over;  /* none of so many first messages is awaited: I18 */
    uint64_t end;   /* of a removed lane: the first that is not */
    /* Rows of replays since the group was made that is with the store, and
     * those of them that a rewind has made. */
    uint64_t replayed, rewound;
    stg_world_tally tally;
} stg_world_cursor;

typedef struct stg_world_lane {
    stg_world *world;
    uint32_t number;
    stg_policy *policy; /* flow keeps it */
    stg_lane_options o;
    bool is_dialing, is_signing_in;
    stg_world_target *target;
    stg_world_answer same; /* of a target that always answers the same */
    stg_world_answer *script;
    uint32_t script_count, script_at;
    stg_world_cursor cursors[STG_WORLD_PARTITIONS_MAX];
    uint32_t in_flight, peak;
    uint64_t starts;
    uint32_t life; /* how often it was added again */
    uint32_t replays;
    uint64_t rewound;    /* messages, in this life */
    uint64_t filter;     /* refuses multiples of it; 0: none */
    uint32_t unfollowed; /* bit p: it does not follow partition p */
    bool is_removing, was_removed;
    bool was_added;    /* flow said that its cursor is durable */
    bool was_known;    /* the store had a cursor of it, in this life */
    bool is_forgotten; /* and has it no more */
    bool has_changed;  /* its policy: of how many attempts? */
    bool has_lost;     /* messages, or other hubs had some of it */
    bool has_shed;     /* some of it, so that its order has holes */
    stg_world_receipt *receipts; /* by index of the message */
} stg_world_lane;

/* Where a partition of a group of hubs is. */
typedef enum stg_world_where {
    STG_WORLD_ASSIGNED,
    STG_WORLD_REVOKING, /* revoked or lost, and flow has not answered REVOKED */
    STG_WORLD_AWAY,
} stg_world_where;

typedef struct stg_world_partition {
    uint64_t *messages; /* indices in the log */
    size_t count, capacity;
    uint64_t last; /* the highest position so far, gaps included */
    uint64_t committed, trimmed;
    /* Of one that comes and goes. */
    stg_world_where where;
    bool is_lost;        /* REVOKING, and not in order */
    uint64_t generation; /* as the store has it */
    uint64_t claimed;    /* and as flow was given it */
    uint64_t assignment;
    uint64_t read_at;  /* the position where the consumer goes on */
    uint64_t group_at; /* position that the group has committed */
} stg_world_partition;

struct stg_world {
    stg_world_hooks hooks;
    stg_world_failure failure;
    stg_flow *flow;
    stg_flow_options o;
    stg_rng rng;
    uint64_t seed;
    stg_ns now, origin_at, wall_at;

    stg_world_event *events;   /* all but ENDED: few; the newest first */
    stg_world_event *attempts; /* ENDED: many; the newest first */
    stg_world_event *spare;    /* for the next ones */
    stg_world_event **due;     /* the same as a heap, the earliest at the top */
    size_t due_count, due_capacity;
    uint64_t order;
    stg_world_lane **lanes;
    size_t lane_count, lane_capacity;
    stg_policy **policies; /* all there were: flow may keep an old one */
    size_t policy_count, policy_capacity;

    stg_world_message *log;
    size_t log_count, log_capacity;
    stg_world_partition partitions[STG_WORLD_PARTITIONS_MAX];
    uint64_t key_count;
    size_t size;
    uint64_t too_large;         /* every so manyth message is; 0: none */
    stg_ns not_before, expires; /* of what is published, after that; 0: none */
    stg_ns times_most; /* or some have such, by chance, up to it; 0: none */

    stg_world_row *rows;
    size_t row_count, row_capacity;
    stg_world_keys row_keys;
    stg_world_dead *dead;
    size_t dead_count, dead_capacity;
    stg_world_keys dead_keys;
    stg_world_dead *replayed; /* rows that were dead */
    size_t replayed_count, replayed_capacity;
    stg_world_keys replayed_keys;
    const stg_group *group; /* that the store works on */
    uint64_t store_room;
    bool is_store_full;              /* no group fits, whatever is in it */
    stg_ns store_delay, fetch_delay; /* STG_NEVER: a random one */

    uint64_t reads, catch_ups, fetches, groups, handled, delivered;
    uint64_t actions;
    size_t allocated; /* by flow, and not released */
    uint64_t allocations, fail_at;

    stg_ns turn;    /* see stg_world_set_turn() */
    stg_ns turn_at; /* the first event that flow was not asked about */
    uint32_t ask_events, ask_ends; /* the same */
    uint32_t events_since, ends_since;
    uint32_t check_every, unchecked; /* stg_world_set_checks() */
    uint64_t actions_left;           /* stg_world_actions(); 0: no bound */
    uint32_t partition_count;
    uint32_t lost_answers;
    uint32_t crashes, failing_reads;
    uint32_t fail_one_in;

    bool has_failed;
    bool is_group;         /* partitions come and go */
    bool keeps_rows;       /* the store is this hub's alone */
    bool is_group_pending; /* no group is answered for good since it was made */
    bool has_replayed;     /* some cursor has rows of replays since then */
    uint64_t group_number; /* of it */
    bool was_written;      /* it is there, though flow does not know */
    bool has_delays;
    bool is_stopped, is_clean;
    bool is_cut; /* between two actions */
};

/* -- invariants.c ---------------------------------------------------------- */

/* What a failure is about. */
typedef struct stg_world_subject {
    uint32_t lane, partition;
    uint64_t position;
} stg_world_subject;

static inline stg_world_subject
stg_about_message(uint32_t lane, uint32_t partition, uint64_t position)
{
    return (stg_world_subject){lane, partition, position};
}

static inline stg_world_subject stg_about_lane(uint32_t lane)
{
    return (stg_world_subject){lane, UINT32_MAX, UINT64_MAX};
}

static inline stg_world_subject stg_about_partition(uint32_t partition)
{
    return (stg_world_subject){UINT32_MAX, partition, UINT64_MAX};
}

static inline stg_world_subject stg_about_all(void)
{
    return stg_about_lane(UINT32_MAX);
}

void stg_world_fail(stg_world *w, const char *invariant, stg_world_subject of,
                    const char *text);
/* Returns the claim; the first that does not hold is the failure. */
static inline bool stg_world_require(stg_world *w, bool claim,
                                     const char *invariant,
                                     stg_world_subject of, const char *text)
{
    if (!claim)
        stg_world_fail(w, invariant, of, text);
    return claim;
}

/* I17: a stored cursor balances, and counts the rows that are. (That the world
 * has counted those well is checked at the end.) */
void stg_world_check_cursor(stg_world *w, const stg_world_cursor *known);
/* I17: what flow says of itself balances; and stg_flow_check(). */
void stg_world_check_flow(stg_world *w);
/* What an event has touched, of it: a lane in a partition. */
void stg_world_check_touched(stg_world *w, uint32_t lane, uint32_t partition);
/* All of it, of every so manyth call. */
void stg_world_check_sometimes(stg_world *w);
/* An attempt may start, and of this message. */
void stg_world_check_start(stg_world *w, const stg_action *a, uint64_t i);
/* I2: a group writes in the name of what flow was assigned, of what it has. */
void stg_world_check_claims(stg_world *w, const stg_group *g);

/* -- ends.c ---------------------------------------------------------------- */

/* A removed lane has left: every message that was its business has an end. */
void stg_world_check_removed(stg_world *w, uint32_t lane);

/* -- world.c --------------------------------------------------------------- */

/* Zeroed; NULL: the world has failed for want of memory. */
void *stg_world_allocate(stg_world *w, size_t count, size_t size);
void stg_world_release(stg_world *w, void *bytes); /* NULL: nothing */
/* Room for `count` items, in an array that may move. */
bool stg_world_grow(stg_world *w, void *array, size_t *capacity, size_t count,
                    size_t size);
stg_policy *stg_world_make_policy(stg_world *w, const char *text,
                                  stg_error *err);

/* -- loop.c ---------------------------------------------------------------- */

/* NULL: no memory. */
stg_world_event *stg_world_post(stg_world *w, stg_world_event_kind kind,
                                stg_ns after);
void stg_world_free_events(stg_world *w);
/* The time of an event of kind ENDED is another one. */
void stg_world_moved(stg_world *w, stg_world_event *e);
/* Carries out all that flow wants. */
void stg_world_act(stg_world *w);
void stg_world_note_removed(stg_world *w, uint32_t lane);

/* -- hub.c ----------------------------------------------------------------- */

bool stg_world_start_lane(stg_world *w, uint32_t lane);
/* Removes it: what the reader has not come to is not its business. */
void stg_world_end_lane(stg_world *w, uint32_t lane);
/* Notes where flow lets a lane begin that the store does not know. */
void stg_world_note_begin(stg_world *w, uint32_t lane);
/* The lane's first position in the partition is this one. */
static inline void stg_world_set_begin(stg_world_cursor *c, uint64_t begin)
{
    c->begin = begin;
    c->over = 0;
}
/* Forgets what this hub alone knew of a partition's messages. */
void stg_world_forget(stg_world *w, uint32_t lane, uint32_t partition);

/* -- trace.c --------------------------------------------------------------- */

void stg_world_trace_notice(stg_world *w, const stg_action *a);
void stg_world_trace_removed(stg_world *w, uint32_t lane);
void stg_world_trace_end(stg_world *w, const stg_world_event *e,
                         const stg_verdict *v);
/* Nothing of the attempt counts. */
bool stg_world_is_put_back(const stg_verdict *v);

/* -- target.c -------------------------------------------------------------- */

stg_world_answer stg_world_answer_ok(stg_world *w, uint32_t lane,
                                     uint64_t position, uint64_t attempt);
void stg_world_begin_attempt(stg_world *w, const stg_action *a);
void stg_world_cancel_attempt(stg_world *w, const stg_action *a);
void stg_world_end_attempt(stg_world *w, stg_world_event *e);
/* The target took it, and perhaps the hub will never know. */
void stg_world_count_processed(stg_world *w, const stg_world_event *e);

/* -- log.c ----------------------------------------------------------------- */

/* The index of a message; log_count: there is none, which is a failure. */
uint64_t stg_world_index(stg_world *w, uint32_t partition, uint64_t position);
/* The first message of the partition's at position or above: which of its. */
uint64_t stg_world_find(const stg_world *w, uint32_t partition,
                        uint64_t position);
/* I11: the bytes of a message say which one it is. */
void stg_world_write_bytes(unsigned char *bytes, uint32_t partition,
                           uint64_t position);
/* Whether the lane's filter lets it pass. */
bool stg_world_is_routed(const stg_world_lane *l, uint32_t partition,
                         uint64_t position);
/* 0 in a world without delays. */
stg_ns stg_world_some_time(stg_world *w, stg_ns most);
void stg_world_read(stg_world *w, const stg_action *a);
/* Whether an answer can be given: a main read waits for messages. */
bool stg_world_is_readable(const stg_world *w, const stg_world_event *e);
void stg_world_answer_read(stg_world *w, const stg_world_event *e);
void stg_world_answer_poll(stg_world *w, size_t bytes_max);
void stg_world_answer_polled(stg_world *w, const stg_world_event *e);

/* -- store.c --------------------------------------------------------------- */

void stg_world_fetch(stg_world *w, const stg_action *a);
void stg_world_look_rows(stg_world *w, const stg_world_event *look);
void stg_world_answer_fetch(stg_world *w, const stg_world_event *e);
void stg_world_store(stg_world *w, const stg_action *a);
void stg_world_end_store(stg_world *w);
/* A crash: the group on its way got there, or not. */
void stg_world_lose_store(stg_world *w);

/* -- key_table.c ----------------------------------------------------------- */

/* Adds a key, or moves it to another place. False: no memory. */
bool stg_world_keys_put(stg_world *w, stg_world_keys *t,
                        const stg_world_key *key, size_t i);
/* SIZE_MAX: it is not there. */
size_t stg_world_keys_find(const stg_world_keys *t, const stg_world_key *key);
void stg_world_keys_remove(stg_world_keys *t, const stg_world_key *key);

/* -- rows.c: what the store holds ------------------------------------------ */

stg_world_row *stg_world_find_row(const stg_world *w, uint32_t lane,
                                  uint32_t partition, uint64_t position,
                                  uint32_t replay);
/* A copy of it, which the store does not have yet. False: no memory. */
bool stg_world_add_row(stg_world *w, const stg_world_row *row);
void stg_world_delete_row(stg_world *w, stg_world_row *r); /* NULL: nothing */
void stg_world_put_dead(stg_world *w, const stg_change *c);
static inline uint64_t stg_world_count_dead(const stg_world_dead *d)
{
    return d->count == 0 ? 1 : d->count;
}
void stg_world_cancel_rows(stg_world *w, const stg_change *c);
void stg_world_apply(stg_world *w, const stg_group *g); /* one transaction */
bool stg_world_is_settled(const stg_world_cursor *c, uint64_t position);

/* -- partition.c ----------------------------------------------------------- */

void stg_world_assign_rows(stg_world *w); /* before the start of flow */
void stg_world_assign_all(stg_world *w);  /* and after it */
/* Returns the position where a lane's business begins: `next`, or what the
 * group has committed, if that is higher: other hubs did what is below. */
uint64_t stg_world_begin_of(const stg_world *w, uint32_t partition,
                            uint64_t next);
void stg_world_note_commit(stg_world *w, const stg_action *a);
void stg_world_note_revoked(stg_world *w, uint32_t partition);
/* Whether the store refuses it; then flow is told for what. */
bool stg_world_is_fenced(stg_world *w, const stg_group *g);
/* REMOVED, and other hubs have some of its partitions. */
void stg_world_forget_elsewhere(stg_world *w, uint32_t lane);

#endif
