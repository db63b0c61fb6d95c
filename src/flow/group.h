/* group.h - what flow is handed by a log, and what goes to the store in one
 * transaction: rows, and the cursors that rely on them.
 *
 * Flow makes a group (STG_ACTION_STORE) and keeps all that it points to
 * unchanged until stg_flow_stored(). A group may be written twice, after an
 * answer that got lost: rows are keyed by (lane, partition, position, replay),
 * cursors only rise, deletes name keys.
 *
 * Times here are of the wall clock: nanoseconds since 1970. */
#ifndef STAGGER_FLOW_GROUP_H
#define STAGGER_FLOW_GROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <stagger/event.h>
#include <stagger/ns.h>
#include <stagger/retry.h>

#include "flow/positions.h"

/* -- a message ------------------------------------------------------------- */

/* What was published, held in memory once however many lanes want it. Flow does
 * not read the bytes: the shell packs into them whatever a delivery needs
 * (content type, headers, body), and gets them back to send. */
typedef struct stg_message {
    uint64_t position; /* where it is in the log: orders, does not count */
    uint64_t key;      /* hash of its ordering key; 0: it has none */
    uint32_t partition;
    uint32_t refs;         /* flow's own: references */
    uint32_t slot;         /* flow's own: of its partition */
    uint32_t true_size;    /* see stg_record; UINT32_MAX at most */
    uint32_t headers_lost; /* see stg_record */
    uint32_t in_flight;    /* flow's own: attempts with it */
    /* Flow's own: what the log has lost before it, which no reader has read:
     * [lost_from, lost_end). 0, 0: nothing. */
    uint64_t lost_from, lost_end;
    stg_ns created_at; /* when it was accepted, by the wall clock: since 1970;
                          0: not known */
    /* By the wall clock: no attempt begins before not_before, nor at expires_at
     * or later. 0: at any time. */
    stg_ns not_before, expires_at;
    size_t size;
    unsigned char bytes[];
} stg_message;

/* The same as it comes from a log, lent for a call. */
typedef struct stg_record {
    uint64_t position;
    uint64_t key;
    stg_ns created_at;
    /* As in stg_message. STG_NEVER: its publisher has set times that cannot be
     * read, so that each lane settles it as dead, at once. */
    stg_ns not_before;
    stg_ns expires_at;
    const void *bytes;
    size_t size;
    size_t true_size; /* of a body too large to be sent, which was left out:
                         each lane that wants the message settles it as dead, at
                         once; 0: nothing was */
    uint32_t headers_lost; /* headers that cannot be sent, where it is not to be
                              sent without them: likewise, but with its bytes */
} stg_record;

/* -- a group --------------------------------------------------------------- */

/* The record of an attempt that failed. */
typedef struct stg_failure {
    stg_outcome outcome;
    stg_why why; /* why it is parked, or was given up */
    stg_ns first_attempt_at, last_attempt_at;
    const char *detail; /* a line to read; "" if there is nothing to say */
    const void *answer; /* the first bytes of what the target answered */
    size_t answer_size;
} stg_failure;

typedef enum stg_change_kind {
    STG_CHANGE_PARK,      /* insert the parked row; one that is there keeps its
                             message, and has the rest anew */
    STG_CHANGE_DELIVERED, /* delete the parked row */
    STG_CHANGE_DEAD,      /* insert into failed_broadcast_logs, and delete the
                             parked row if there is one */
    STG_CHANGE_RANGE,     /* insert or update the bulk row that begins at
                             position: last_position and count are absolute */
    STG_CHANGE_CANCEL,    /* every parked row of the lane in this partition
                             moves to failed_broadcast_logs, cancelled */
    STG_CHANGE_FORGET,    /* the lane is removed: delete its cursor */
} stg_change_kind;

/* Why a lane settled messages without an attempt. */
typedef enum stg_shed_reason {
    STG_SHED_OPEN,   /* its breaker was open for longer than `shed-after` */
    STG_SHED_DOWN,   /* past retention: its breaker was open */
    STG_SHED_PAUSED, /* past retention: it was paused */
    STG_SHED_SLOW,   /* past retention: it had not come to them */
} stg_shed_reason;

typedef struct stg_change {
    stg_change_kind kind;
    uint32_t lane;
    uint32_t partition;
    uint64_t position; /* RANGE: the first */
    uint32_t replay;   /* how often the delivery was replayed; 0 first */

    const stg_message *message; /* PARK, DEAD */
    const stg_failure *failure; /* PARK, DEAD; NULL: nothing failed yet.
                                   RANGE, of OPEN and DOWN: what opened the
                                   breaker, at first_attempt_at; NULL: not
                                   known */
    stg_progress progress;      /* PARK, DEAD: attempts and the like, of the
                                   series that is under way */
    uint64_t attempts_before;   /* PARK, DEAD: requests of earlier series and
                                   replays: absolute, as are all numbers here */
    stg_ns began_at;            /* PARK: when the series began; 0: it has not */
    stg_ns wait;                /* PARK: how long was decided */
    stg_ns due_at;              /* PARK */

    uint64_t last_position; /* RANGE */
    uint64_t count;         /* RANGE: messages settled by it */
    uint64_t added;         /* RANGE: of them, since it was last durable */
    bool is_cancelled;      /* RANGE: the lane was removed, else it was shed */
    stg_shed_reason reason; /* RANGE, shed */
    /* RANGE: the log had lost them before the lane could read them. They have
     * no bodies, and count is an upper bound. */
    bool is_expired;
} stg_change;

/* The replay in the name of such a row: nothing else has it, though a message
 * may be settled, or have a row, where it begins. */
#define STG_REPLAY_LOST INT32_MAX

/* Where a lane stands in a partition. Everything below base is settled, and so
 * are the ranges listed, which are not below it: also of what was not the
 * lane's, and of what the log had lost.
 *
 * The books (I17): routed is what a reader handed to the lane and is settled.
 * routed = delivered + dead + cancelled + parked, at any moment, in the store:
 * dead are the rows in state dead, dropped or expired (a bulk row by its
 * count), parked the parked rows. */
typedef struct stg_cursor {
    uint32_t lane;
    uint32_t partition;
    uint64_t base;
    uint64_t routed, delivered, dead, cancelled, parked;
    uint64_t replays; /* of parked, those of replays: replay > 0 */
    bool is_ordered;  /* positions of parked rows do not count as settled */
    stg_ns oldest_at; /* when the oldest message was accepted that is not
                         settled, if that was a minute ago; 0: not, or unknown */
    const stg_positions *settled;
    size_t settled_count;
} stg_cursor;

/* Lanes of a stored row of cursors, which is written whole: few enough that a lane
 * whose message failed does not write many others with its own. */
#define STG_SLICE 32

/* What is written of a partition is written in the name of a generation: a
 * number that rises with each taking of the partition, by whomever. The store
 * refuses the group where an older one than its own is claimed. */
typedef struct stg_claim {
    uint32_t partition;
    uint64_t generation;
} stg_claim;

typedef struct stg_group {
    const stg_change *changes;
    size_t change_count;
    /* Whole slices: all lanes n with the same n / STG_SLICE that have a cursor
     * in the partition. Sorted by partition, then by lane. */
    const stg_cursor *cursors;
    size_t cursor_count;
    /* One for each partition that a change or a cursor is of, sorted. */
    const stg_claim *claims;
    size_t claim_count;
    /* Counts the groups that were made, from 1. A group that comes again after
     * STG_STORED_UNKNOWN has the number that it had: it was made before what flow
     * has heard of since (replays). 0: it does not come again. */
    uint64_t number;
} stg_group;

/* A parked row as it comes back from the store, lent for a call. due_at is no
 * more than wait ahead of the wall clock: the store sees to that when it is
 * opened, should the clock have been set back (I21). */
typedef struct stg_parked_row {
    uint32_t partition;
    uint32_t replay;
    stg_record record;
    uint64_t attempts_before; /* requests of earlier series and replays */
    stg_progress progress;    /* attempts 0: begin it by the lane's policy */
    stg_ns began_at;          /* when the series began; 0: it has not */
    stg_failure failure;
    bool has_failure;
    stg_ns wait, due_at;
} stg_parked_row;

/* The order of a lane's parked rows: which comes first. */
typedef struct stg_mark {
    stg_ns due_at;
    uint64_t position;
    uint32_t partition;
    uint32_t replay;
} stg_mark;

#endif
