/* note.h - the fault that opened a lane's breaker, for what is shed behind it.
 *
 * A lane has one note of its last opening, with what was last seen of the same
 * fault. Groups that are out keep the notes that their bulk rows name. Its
 * words are cut, so it is not among what memory_max counts. */
#ifndef STAGGER_FLOW_NOTE_H
#define STAGGER_FLOW_NOTE_H

#include "flow/flow.h"

struct stg_lane;

typedef struct stg_note {
    uint32_t refs;
    uint64_t opening;    /* of the lane's openings, which one */
    stg_failure failure; /* first_attempt_at: when the breaker opened */
    char texts[];
} stg_note;

/* The breaker is open, and an attempt has failed: it opened it, or is one more
 * since. Without memory the note stays as it was. */
void stg_note_failure(stg_flow *f, struct stg_lane *l, const stg_end *end,
                      stg_ns attempt_at);

/* NULL: nothing. */
stg_note *stg_note_hold(stg_note *note);
void stg_note_drop(stg_flow *f, stg_note *note);

#endif
