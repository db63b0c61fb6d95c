/* replay_write.h - one letter is replayed, or dropped: the writer's side.
 *
 * Each call names the state that it expects: a letter that is not dead any more
 * is left as it is. In the caller's transaction. */
#ifndef STAGGER_STORE_REPLAY_WRITE_H
#define STAGGER_STORE_REPLAY_WRITE_H

#include "store/rows.h"

typedef struct stg_replays {
    stg_stmt *look, *park, *over, *drop, *eat, *feed, *shorten, *end;
} stg_replays;

int stg_replays_prepare(stg_replays *r, stg_db *db);

/* The result of a replay. */
typedef struct stg_replayed {
    bool is_done;      /* it was dead, and something was done */
    bool is_forgotten; /* its target was removed: it stays as it is */
    uint32_t lane, partition;
    uint64_t messages; /* parked anew, or dropped */
    uint64_t expired;  /* of a bulk row that is over: those whose bodies are
                          gone */
    uint64_t next;     /* a bulk row goes on from here; 0: it is over */
} stg_replayed;

/* A letter for one message is parked, due at `wall`. */
int stg_replays_letter(stg_replays *r, stg_rows *rows, uint64_t id, stg_ns wall,
                       stg_replayed *out);

/* A piece of a bulk row's front. */
typedef struct stg_bite {
    uint64_t id;
    uint64_t from;             /* where the row must begin, or it has changed */
    const uint64_t *positions; /* messages to be parked; rising */
    const stg_record *records; /* they, of a log that is not the queue; NULL:
                                  they are in the store */
    size_t count;
    uint64_t to; /* nothing else up to here is wanted */
} stg_bite;

/* At its end the row is replayed, or expired if some of its messages were not
 * there any more. */
int stg_replays_range(stg_replays *r, stg_rows *rows, const stg_bite *bite,
                      stg_ns wall, stg_replayed *out);

int stg_replays_drop(stg_replays *r, stg_rows *rows, uint64_t id, stg_ns wall,
                     stg_replayed *out);

#endif
