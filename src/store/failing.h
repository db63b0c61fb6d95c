/* failing.h - since when a lane only fails, for `disable-after`: over restarts, and
 * of all hubs that share the store.
 *
 * Each hub says of a lane, every ten seconds at most, whether an attempt has succeeded
 * since it said so last, or whether all have failed. A success of any hub ends
 * it; the next failure begins anew, with the time of what was said. */
#ifndef STAGGER_STORE_FAILING_H
#define STAGGER_STORE_FAILING_H

#include "store/store.h"

typedef struct stg_lane_note {
    uint32_t lane;
    bool has_succeeded;
    stg_ns failing_since; /* the answer: since 1970; 0: it does not only fail */
    stg_ns now; /* by the same clock, which is the server's if there is
                             one */
} stg_lane_note;

/* Notes them, in one transaction. notes: of malloc(), given. done: when they are
 * durable, with the answers, which are lent; not called where the store is full or
 * breaks. */
typedef void stg_lane_notes_fn(void *ctx, const stg_lane_note *notes,
                               size_t count);
void stg_store_note_lanes(stg_store *s, stg_lane_note *notes, size_t count,
                          stg_lane_notes_fn *done, void *ctx);

#endif
