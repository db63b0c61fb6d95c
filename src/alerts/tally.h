/* tally.h - how many of something came within a window that slides, and of
 * which cause.
 *
 * Pure; memory is what is here, however many came. The window is cut into
 * STG_TALLY_SLICES, and one that is half past counts whole: of so many in the
 * window none is missed, and what is up to a slice older may be counted, too.
 * Plain data: zeroed it has counted nothing. */
#ifndef STAGGER_ALERTS_TALLY_H
#define STAGGER_ALERTS_TALLY_H

#include <stdint.h>

#include <stagger/ns.h>
#include <stagger/outcome.h>

#include "flow/group.h"

enum { STG_TALLY_SLICES = 20 };

typedef struct stg_tally {
    uint64_t total;  /* in the window, saturating at 2^32 - 1 a slice */
    uint64_t latest; /* the number of the newest slice, from 0 at time 0 */
    uint32_t slices[STG_TALLY_SLICES + 1]; /* number n at n % (SLICES + 1) */
} stg_tally;

/* What is older than the window goes. window: the same in all calls, 1 us or
 * more. now may step back: it reads as the latest. Returns how many went. */
uint64_t stg_tally_pass(stg_tally *t, stg_ns window, stg_ns now);

/* So many more, at now. */
void stg_tally_add(stg_tally *t, stg_ns window, uint64_t count, stg_ns now);

/* So many less: of the newest first, at most what there is. */
void stg_tally_take(stg_tally *t, uint64_t count);

/* When the next of them pass; STG_NEVER: there is none. */
stg_ns stg_tally_next(const stg_tally *t, stg_ns window);

/* When the slice of the oldest began; only of a tally that has some. */
stg_ns stg_tally_since(const stg_tally *t, stg_ns window);

/* -- of which cause
 * ------------------------------------------------------------
 *
 * A short list, however many causes come: the first STG_ALERT_CAUSES_MAX
 * different ones, and the others counted together. Pure, plain data: zeroed it
 * is empty. */

enum { STG_ALERT_CAUSES_MAX = 6 };

/* What makes two failures one cause. */
typedef struct stg_alert_cause {
    uint16_t fault;     /* stg_fault */
    uint16_t code_kind; /* stg_code_kind */
    uint32_t code;
} stg_alert_cause;

typedef struct stg_alert_causes {
    struct {
        stg_alert_cause cause;
        uint64_t count; /* 0: there are no more */
    } list[STG_ALERT_CAUSES_MAX];
    uint64_t others;
} stg_alert_causes;

stg_alert_cause stg_alert_cause_of(const stg_outcome *o);

/* Of what was never tried, in a bulk row. */
stg_alert_cause stg_alert_cause_of_shed(const stg_change *c);

/* "HTTP_503". Returns text. */
const char *stg_alert_cause_text(stg_alert_cause c, char text[STG_CAUSE_MAX]);

void stg_alert_causes_add(stg_alert_causes *c, stg_alert_cause cause,
                          uint64_t count);

/* So many less, of the most frequent first. */
void stg_alert_causes_take(stg_alert_causes *c, uint64_t count);

/* All of b out of a; what a does not have, as stg_alert_causes_take(). */
void stg_alert_causes_remove(stg_alert_causes *a, const stg_alert_causes *b);

/* All of b into a. */
void stg_alert_causes_merge(stg_alert_causes *a, const stg_alert_causes *b);

/* The most frequent first. */
void stg_alert_causes_sort(stg_alert_causes *c);

#endif
