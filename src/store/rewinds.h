/* rewinds.h - a target gets messages of the log again: all from a moment on
 * (a rewind), or one (a resend).
 *
 * A rewind is a row for each partition of the log, a second cursor: from where
 * it began up to where the lane stood then. Piece by piece, as the lane has room
 * for replays, its messages are parked, due at once, in the transaction that
 * moves the row's position: so a crash loses none and parks none twice. They are
 * routed once more in the books, and go out below live traffic under their ids.
 * The log's commits and the lane's own cursor know nothing of it. What the log
 * has no more, what the target does not want, and what waits for it anyway is
 * passed over.
 *
 * In an ordered lane a message is parked when those of its key (with strict
 * order: all) that the rewind has parked before it have ended (I18).
 *
 * Who has a partition does its rows; with PostgreSQL other hubs may. Calls are
 * made on the loop, and answered there; not after the store broke. */
#ifndef STAGGER_STORE_REWINDS_H
#define STAGGER_STORE_REWINDS_H

#include "store/store.h"

/* From where. */
typedef struct stg_rewind_start {
    uint32_t lane;
    stg_ns since; /* messages that were accepted then or later, since 1970, in
                           all partitions; 0: from a position */
    uint32_t partition; /* of the position; STG_NO_PARTITION: from the first
                           message on, in all partitions */
    uint64_t position;
    bool is_one; /* it ends behind the position */
} stg_rewind_start;

typedef enum stg_rewound {
    STG_REWOUND,         /* it is stored, and begins */
    STG_REWOUND_RUNNING, /* the lane has one under way */
    STG_REWOUND_NOTHING, /* the lane has no cursor there */
    STG_REWOUND_NO_ROOM, /* the store is full, or the lane's numbers are used
                            up; nothing has changed */
} stg_rewound;

/* number: of the lane's rewinds, from 1. */
typedef void stg_rewound_fn(void *ctx, stg_rewound how, uint64_t number);
void stg_store_rewind(stg_store *s, const stg_rewind_start *start,
                      stg_rewound_fn *done, void *ctx);

/* Ends what is under way of the lane; what is parked is still sent. is_known:
 * something was. */
typedef void stg_rewind_cancelled_fn(void *ctx, bool is_known, bool is_full);
void stg_store_cancel_rewind(stg_store *s, uint32_t lane,
                             stg_rewind_cancelled_fn *done, void *ctx);

typedef struct stg_rewind_view {
    uint64_t number;
    bool is_running, is_cancelled; /* else it is done */
    stg_ns since;                  /* 0: from a position */
    stg_ns began_at, ended_at;     /* since 1970; ended_at 0: it runs */
    uint64_t partitions, begun;    /* that it is of; that know their range */
    uint64_t messages;             /* positions in the ranges that are known */
    uint64_t passed;               /* of them, positions that it is behind */
    uint64_t sent;                 /* of them, messages that were parked */
} stg_rewind_view;

/* Those of a lane that are remembered, the newest first; lent. */
typedef void stg_rewinds_fn(void *ctx, const stg_rewind_view *all,
                            size_t count);
void stg_store_rewinds(stg_store *s, uint32_t lane, stg_rewinds_fn *done,
                       void *ctx);

typedef enum stg_resent {
    STG_RESENT,       /* it is parked, and due */
    STG_RESENT_WAITS, /* it waits for the target anyway; nothing was done */
    STG_RESENT_GONE, /* the log has it no more, or the target does not want it */
    STG_RESENT_AWAY, /* the log, or the target's settings, cannot be asked now */
    STG_RESENT_ELSEWHERE, /* another hub has the partition, and sends it */
    STG_RESENT_NO_ROOM,   /* the store is full; or it stops */
} stg_resent;

/* Parks one message of the log again. */
typedef void stg_resent_fn(void *ctx, stg_resent how);
void stg_store_resend(stg_store *s, uint32_t lane, uint32_t partition,
                      uint64_t position, stg_resent_fn *done, void *ctx);

/* Goes on with rewinds that were under way, from now on: flow has the lanes. */
void stg_store_start_rewinds(stg_store *s);

#endif
