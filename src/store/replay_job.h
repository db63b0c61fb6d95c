/* replay_job.h - a replay, a drop or a rewind, as its own files see it.
 *
 *   replay_job    the letters of a filter, step by step
 *   replay_range  bulk rows: their messages are in the queue, or in another log
 *   rewind_job    a range of the log in the place of a bulk row, or one message
 *   rewind_rows   rewinds in the table, as the job goes through them
 *   rewinds       rewinds as they are asked for
 *   remote_replay letters of partitions that other hubs have */
#ifndef STAGGER_STORE_REPLAY_JOB_H
#define STAGGER_STORE_REPLAY_JOB_H

#include "store/internal.h"
#include "store/query.h"

enum {
    STG_REPLAY_JOB_PAGE = 256, /* letters that are found at once */
    STG_REPLAY_JOB_PIECE = 64, /* rows of a transaction */
    STG_REPLAY_JOB_BYTES = 1 << 20,
    STG_REPLAY_JOB_SCANNED =
        256, /* messages of a bulk row that are looked at at once */
};

typedef struct stg_replay_job stg_replay_job;

/* What is sent again though no letter stands for it. */
typedef struct stg_again {
    uint32_t lane, partition;
    bool is_stored;  /* a rewind, with a row; else one message */
    uint64_t number; /* of the rewind */
    bool has_begun;  /* position is where it goes on; else where it begins: */
    stg_ns since;    /* if not 0, at the first message that is not older: */
    uint64_t low, high; /* it is between these; high 0: it is not sought yet */
    uint64_t position, until;
    uint64_t sent;
} stg_again;

/* One step; the replay goes with it if it is never answered. */
typedef struct stg_replay_job_step {
    stg_store_request request;
    stg_replay_job *r;
    void (*then)(stg_replay_job *r, struct stg_replay_job_step *s);

    /* of letters: these, from r->at on, and what became of them */
    uint64_t ids[STG_REPLAY_JOB_PIECE];
    stg_replayed out[STG_REPLAY_JOB_PIECE];
    size_t count;
    uint64_t number; /* of the transaction, to be told with the next group */
    uint32_t partitions[STG_REPLAY_JOB_PIECE]; /* of the letters */
    bool is_fenced; /* others have them by now: nothing was done */

    /* of a bulk row */
    uint64_t last, positions[STG_REPLAY_JOB_SCANNED];
    uint64_t keys[STG_REPLAY_JOB_SCANNED]; /* their hashes */
    stg_order order;                       /* of the lane; of stg_again only */
    bool wants_body;                       /* the target's filter looks at it */
    stg_parcel *parcels;                   /* with bodies only then */
    stg_record *records; /* of a log that is not the queue: as many */
    stg_arena texts;
    stg_bite bite;
} stg_replay_job_step;

struct stg_replay_job {
    stg_store *s;
    stg_filter filter;
    bool is_drop, is_dry;
    stg_found found;
    size_t at;
    uint64_t after, last; /* ids: a letter that is made later is another one */
    bool is_last;         /* page */
    stg_letters_sum sum;
    stg_letters_sum *so_far; /* the asker's copy of it, or NULL */
    char held[128];          /* of the first that ended it so */
    uint32_t *unread;        /* partitions whose log is not asked any more */
    size_t unread_count;
    unsigned tries;       /* to read for the letter at `at`, in vain */
    uint32_t *held_lanes; /* that are not waited for any more */
    size_t held_count;
    uint64_t waiting_at; /* since when it waits for room in the lane; 0: not */
    uint64_t bitten;  /* the bulk row counted last: one replayed in steps counts
                        once */
    stg_link reading; /* in s->readings, while another log reads for it */
    stg_again *again; /* NULL: letters of the filter */
    stg_link rewinding; /* in s->rewinding, if it is stored */
    stg_letters_sum_fn *done;
    void *ctx;
};

/* NULL: no memory; the store breaks, and the replay is gone. */
stg_replay_job_step *stg_replay_job_step_new(
    stg_replay_job *r, void (*then)(stg_replay_job *r, stg_replay_job_step *s));

/* Goes on with the next letter. */
void stg_replay_job_advance(stg_replay_job *r);

/* It ends before its time. */
void stg_replay_job_finish(stg_replay_job *r, stg_letters_end end);
void stg_replay_job_free(stg_replay_job *r);

/* Counts what became of a letter. Messages that were parked end the wait for room
 * in their lane, too. */
void stg_replay_job_count(stg_replay_job *r, const stg_replayed *out);

/* Tells flow what was parked. */
void stg_replay_job_tell(stg_replay_job *r, stg_replay_job_step *s);

/* The letter stays dead, and the target is named. */
void stg_replay_job_leave(stg_replay_job *r, const stg_letter *l,
                          stg_letters_end end);

/* Goes on after a pause. */
#define STG_REPLAY_JOB_PAUSE (100 * STG_MS)
void stg_replay_job_rest(stg_replay_job *r, stg_ns pause);

/* Whether the settings lack its target: it stays dead. */
bool stg_replay_job_is_orphaned(const stg_replay_job *r, const stg_letter *l);

/* Adds messages that were parked again, or would be. */
void stg_replay_job_add(stg_replay_job *r, uint32_t lane, uint64_t messages);

/* How many rows the lane may take now. */
uint64_t stg_replay_job_room(const stg_replay_job *r, uint32_t lane);

/* The books of what a step has parked, in the transaction that did it. */
int stg_replay_job_move_books(stg_store_writer *w, stg_replay_job_step *s);

/* Whether others have taken partitions of a step: then s->is_fenced. */
int stg_replay_job_fence(stg_store_writer *w, stg_replay_job_step *s);

/* replay_range.c: the letter at r->at, which is a bulk row. */
void stg_replay_job_range(stg_replay_job *r, const stg_letter *l);

/* Whether it is a bulk row whose log is not asked, or not any more. */
bool stg_replay_job_is_unread(const stg_replay_job *r, const stg_letter *l);

/* rewind_job.c: what to do next, and when a piece is done. */
void stg_rewind_advance(stg_replay_job *r);
void stg_rewind_have_piece(stg_replay_job *r, stg_replay_job_step *s);

/* rewind_rows.c: the next number of the lane's rewinds; 0: the lane is forgotten,
 * or has none left. */
int stg_rewind_take_number(stg_db *db, uint32_t lane, uint64_t *number);

/* Begins the rewind of s->r at position, or where its time is; and does a piece of
 * it, or of the one message. The writer's. */
int stg_rewind_begin(stg_store_writer *w, stg_replay_job_step *s);
int stg_rewind_write(stg_store_writer *w, stg_replay_job_step *s);

/* Those that are to go on, of the partitions that are claimed (NULL: of all); of
 * malloc(). The query thread's. */
int stg_rewind_look(stg_db *db, const char *claimed, stg_again **all,
                    size_t *count);

/* Those that still wait for another log when the store closes. */
void stg_replay_job_drop_readings(stg_store *s);

/* store/postgres/remote_replay.c: letters of partitions that others have, from
 * r->at on. */
bool stg_replay_job_is_ours(const stg_replay_job *r, const stg_letter *l);
void stg_replay_job_ask_others(stg_replay_job *r);

#endif
