/* world_inside.h - what a world holds, and what its files do for each other.
 * Tests use world.h. */
#ifndef TESTS_FLOW_WORLD_INSIDE_H
#define TESTS_FLOW_WORLD_INSIDE_H

#include "tests/flow/world.h"

enum { TRACE_MAX = 1 << 17, SCRIPT_MAX = 64, PARTITIONS = 4 };

typedef enum what {
    MESSAGES,
    CATCH_UP,
    POLL,
    MERGED,
    LOOK,
    ROWS,
    ENDED,
    STORED
} what;

/* Where a partition of a group of hubs is. */
typedef enum where {
    HERE,
    GOING, /* taken or lost, and flow has not said that it is gone */
    AWAY,
} where;

/* One that comes and goes. */
typedef struct part {
    where where;
    bool is_lost;        /* GOING, and not in order */
    uint64_t generation; /* as the store has it */
    uint64_t claimed;    /* and as flow was given it */
    uint64_t assignment;
    uint64_t read_at; /* the position where the consumer goes on */
    uint64_t group;   /* the offset that is committed */
} part;

/* What one poll brought of a partition: of its messages, by index. */
typedef struct run {
    uint64_t assignment, first, count, next;
} run;

/* The rows as they were some time before the answer. */
typedef struct fetched {
    struct row *rows;
    size_t count;
    bool is_all;
} fetched;

typedef struct event {
    what what;
    stg_ns at;
    uint64_t order;
    uint32_t lane, partition;
    uint64_t from;
    size_t bytes_max;
    bool is_replay; /* LOOK, ROWS */
    stg_mark after; /* LOOK */
    uint32_t rows_max;
    stg_ns left;
    fetched fetched;
    run runs[PARTITIONS];
    uint64_t assignment;
    stg_delivery *delivery;
    uint32_t replay;
    uint64_t position;
    world_answer answer;
    struct event *next;
} event;

typedef struct logged {
    uint64_t position, key;
    stg_ns created_at;
    uint32_t partition;
    size_t size, true_size;
} logged;

typedef struct row {
    uint32_t lane, partition, replay;
    uint64_t attempts_before;
    uint64_t position;
    stg_progress progress;
    stg_ns began_at;
    stg_failure failure;
    bool has_failure;
    stg_ns wait, due_at;
} row;

typedef struct cursor {
    stg_cursor c;
    bool is_known;
    uint64_t *settled;
    uint64_t begin;    /* the first position that is the lane's business */
    uint64_t end;      /* it is removed: the first that is not */
    uint64_t replayed; /* since the group was made that is with the store */
} cursor;

typedef struct lane {
    stg_policy *policy; /* flow keeps it */
    stg_lane_options o;
    bool is_dialing;
    world_leaf *leaf;
    world_answer said; /* by a leaf that always says the same */
    char *script[SCRIPT_MAX];
    uint32_t script_count, script_at;
    cursor cursors[PARTITIONS];
    uint32_t in_flight, peak;
    uint64_t starts;
    uint32_t life; /* how often it came back */
    uint32_t replays;
    uint64_t filter; /* refuses every so manyth position; 0: none */
    uint32_t others; /* bit p: it does not follow partition p */
    bool is_removing, was_removed;
    bool was_added;          /* flow said that its cursor is durable */
    bool was_known;          /* the store had a cursor of it, in this life */
    bool has_changed;        /* its policy: of how many attempts? */
    bool has_lost;           /* or others had some of it */
    bool has_shed;           /* some of it, so that its order has holes */
    world_receipt *receipts; /* by index of the message */
} lane;

struct world {
    stg_flow *flow;
    stg_flow_options o;
    stg_rng rng;
    uint64_t seed;
    stg_ns now, origin_at, wall_at;
    uint64_t order;
    event *events;
    lane *lanes;
    uint32_t lane_count, partition_count;
    logged *log;
    uint64_t log_count, next_position[PARTITIONS], key_count;
    uint64_t *of_partition[PARTITIONS]; /* indices of its messages */
    uint64_t partition_logged[PARTITIONS];
    uint64_t committed[PARTITIONS], trimmed[PARTITIONS];
    size_t size;
    uint64_t large;  /* every so manyth message is too large; 0: none */
    bool is_merged;  /* partitions come and go */
    bool keeps_rows; /* the store is this hub's alone */
    part parts[PARTITIONS];
    row *rows;
    size_t row_count;
    world_dead *dead;
    size_t dead_count;
    world_dead *replayed; /* rows that were dead */
    size_t replayed_count;
    const stg_group *group;
    bool is_group_out; /* not yet answered for good */
    uint64_t groups;
    uint64_t store_room;
    uint32_t store_unknown;
    stg_ns store_delay, fetch_delay;
    uint32_t crashes;
    uint64_t reads, catch_ups, fetches;
    uint32_t unread; /* catch-up reads that come to nothing from now on */
    size_t allocated;
    uint64_t allocations, fail_at;
    uint32_t fail_one_in;
    stg_policy **policies;
    size_t policy_count;
    char *trace;
    size_t trace_size;
    bool is_traced, is_stopped, is_clean;
    uint32_t ask_events, ask_ends; /* see world_asks() */
    stg_ns turn;
    uint32_t events_since, ends_since;
    stg_ns turn_at; /* the first event that flow was not asked about */
};

/* -- world.c: time --------------------------------------------------------- */

event *world_post(world *w, what kind, stg_ns after);
__attribute__((format(printf, 2, 3))) void world_note(world *w,
                                                      const char *format, ...);
/* The index of a message in the log. */
uint64_t world_index(const world *w, uint32_t partition, uint64_t position);
/* I11: the bytes of a message say which one it is; 12 of them. */
void world_write_bytes(unsigned char *bytes, uint32_t p, uint64_t position);
/* Whether the lane's filter lets it pass. */
bool world_is_wanted(const lane *l, uint32_t partition, uint64_t position);
world_receipt *world_receipt_at(world *w, uint32_t l, uint32_t partition,
                                uint64_t position);

stg_policy *world_make_policy(world *w, const char *text);
void world_add_lane(world *w, uint32_t number);
/* Removes it: what the reader has not come to is not its business. */
void world_end_lane(world *w, uint32_t number);
/* Where flow lets a lane begin that the store does not know. */
void world_note_begin(world *w, uint32_t number);

/* -- world_leaf.c ---------------------------------------------------------- */

void world_begin_attempt(world *w, const stg_action *a);
void world_cancel_attempt(world *w, const stg_action *a);
void world_end_attempt(world *w, event *e);
/* The leaf took it, and perhaps nobody will ever know. */
void world_count_processed(world *w, const event *e);

/* -- world_store.c --------------------------------------------------------- */

void world_read_log(world *w, const stg_action *a);
bool world_is_readable(const world *w, const event *e);
void world_answer_read(world *w, const event *e);
void world_fetch(world *w, const stg_action *a);
void world_look_rows(world *w, const event *look);
void world_answer_fetch(world *w, event *e);
void world_store(world *w, const stg_action *a);
void world_end_store(world *w);
/* A crash: the group on its way got there, or not. */
void world_lose_store(world *w);
row *world_find_row(world *w, uint32_t l, uint32_t p, uint64_t position,
                    uint32_t replay);
bool world_is_settled(const cursor *c, uint64_t position);

void world_give_records(world *w, uint32_t p, const event *e, uint64_t first,
                        uint64_t count, uint64_t next, uint64_t assignment);
/* A row is settled by somebody else. */
void world_delete_row(world *w, row *r);
row *world_add_row(world *w);
void world_put_dead(world *w, const stg_change *c);
void world_cancel_rows(world *w, const stg_change *c);

/* -- world_move.c ---------------------------------------------------------- */

void world_begin_parts(world *w); /* before the start of flow */
void world_give_parts(world *w);  /* and after it */
/* What others had done before is not the lane's business. */
uint64_t world_begin_of(const world *w, uint32_t p, uint64_t next);
void world_poll(world *w, const stg_action *a);
bool world_is_pollable(const world *w);
void world_answer_poll(world *w, size_t left);
void world_answer_merged(world *w, const event *e);
void world_note_commit(world *w, const stg_action *a);
void world_note_taken(world *w, uint32_t p);
/* I2: in the name of what flow was given, of what it has. */
void world_check_claims(const world *w, const stg_group *g);
/* Whether the store refuses it; then flow is told for what. */
bool world_is_fenced(world *w, const stg_group *g);
/* Nothing begins of what was taken. */
void world_check_here(world *w, const stg_action *a);
/* REMOVED, and other hubs have some of its partitions. */
void world_forget_elsewhere(world *w, uint32_t number);
/* What the store says of a partition's messages, and not this hub. */
void world_forget_part(world *w, uint32_t number, uint32_t p);

/* -- world_ends.c ---------------------------------------------------------- */

/* I17: a stored cursor balances, and counts the rows that are. */
void world_check_cursor(const world *w, const stg_cursor *c);
/* I17: what flow says of itself balances. */
void world_check_views(const world *w);
/* A lane is gone: every message that was its business has an end. */
void world_check_removed(world *w, uint32_t l);

#endif
