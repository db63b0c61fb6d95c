/* shed.h - what a bulk row of messages that were never tried says of them: how
 * they were settled (`why`), and for what cause. */
#ifndef STAGGER_STORE_SHED_H
#define STAGGER_STORE_SHED_H

#include "flow/group.h"

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
