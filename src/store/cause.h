/* cause.h - why a letter is dead, in words: causes and families of them, the
 * categories A to D, and what a bulk row of messages that were never tried says
 * (how they were settled, its `why`, and for what cause). */
#ifndef STAGGER_STORE_CAUSE_H
#define STAGGER_STORE_CAUSE_H

#include <stdbool.h>

#include <stagger/fault.h>
#include <stagger/outcome.h>

#include "flow/group.h"

/* -- which letters a word means -------------------------------------------- */

/* One of both; the other is "". */
typedef struct stg_cause {
    char pattern[STG_CAUSE_MAX]; /* "HTTP_503", "PAUSED"; "HTTP_5*": all that
                                    begin so */
    char category[2];            /* "A" connect, B server, C request,
                                    D overload */
} stg_cause;

/* Reads a fault in any spelling that policies know (503, HTTP_503, refused,
 * ECONNREFUSED, 5xx, connect, A ...), or the cause of a bulk row, like PAUSED.
 * False: dead letters have no such cause; near is then what was meant, as
 * records write it, "" if it is like none. */
bool stg_cause_read(stg_cause *cause, const char *word,
                    char near[STG_CAUSE_MAX]);

bool stg_cause_fits(const char *pattern, const char *cause);

/* -- categories ------------------------------------------------------------ */

/* "A" connect, "B" server, "C" request, "D" overload; NULL for the others.
 * Static. */
const char *stg_category_letter(stg_category category);

/* -- bulk rows ------------------------------------------------------------- */

/* Of STG_CHANGE_RANGE. */
typedef enum stg_shed_how {
    STG_SHED_HOW_SHED,      /* behind an open breaker */
    STG_SHED_HOW_RETENTION, /* older than it is kept, or beyond its room */
    STG_SHED_HOW_EXPIRED,   /* the log had lost them */
    STG_SHED_HOW_CANCELLED, /* the target was removed */
    STG_SHED_HOWS
} stg_shed_how;

stg_shed_how stg_shed_how_of(const stg_change *c);
const char *stg_shed_how_name(stg_shed_how how);

/* Where the cause is no fault (c->failure is NULL). */
typedef enum stg_shed_cause {
    STG_SHED_CAUSE_SHED, /* behind a breaker, and its fault is not known */
    STG_SHED_CAUSE_PAUSED,
    STG_SHED_CAUSE_SLOW,
    STG_SHED_CAUSE_EXPIRED,
    STG_SHED_CAUSE_CANCELLED,
    STG_SHED_CAUSES
} stg_shed_cause;

stg_shed_cause stg_shed_cause_of(const stg_change *c);
const char *stg_shed_cause_name(stg_shed_cause cause);

#endif
