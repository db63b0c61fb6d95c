/* times.h - when a message may be sent: its headers Stagger-Not-Before and
 * Stagger-Expires.
 *
 * Each is an instant, 2026-03-01T12:00:00Z, or how long after the message was
 * accepted, 10m. A parcel has instants only, as the first lines of its headers,
 * behind Stagger-Hops. */
#ifndef STAGGER_STORE_TIMES_H
#define STAGGER_STORE_TIMES_H

#include <stdbool.h>

#include <stagger/ns.h>

#include "base/span.h"
#include "host/wall.h"

#define STG_NOT_BEFORE "Stagger-Not-Before"
#define STG_EXPIRES "Stagger-Expires"

#define STG_NOT_BEFORE_MAX (30 * STG_DAY) /* ahead */

typedef struct stg_times {
    stg_ns not_before, expires_at; /* by the wall clock; 0: none */
} stg_times;

/* Reads an instant, or a time of up to 365 days after `from` (0: not known, and
 * then this is none). */
bool stg_times_read(stg_span text, stg_ns from, stg_ns *at);

/* Reads both as they were published at `now`; one that is not there has at NULL.
 * NULL: done. Else what is expected, and *is_expires says of which. */
const char *stg_times_read_both(stg_times *t, stg_span not_before,
                                stg_span expires, stg_ns now, bool *is_expires);

/* Writes an instant as a parcel has it. */
stg_span stg_times_print(stg_ns at, char text[STG_UTC_TEXT_MAX]);

enum { STG_TIMES_ROOM = 96 };

/* Writes the lines, STG_TIMES_ROOM bytes at most. Returns the end. */
char *stg_times_put(char *to, const stg_times *t);

/* The times of a parcel's headers. Where they cannot be read not_before is
 * STG_NEVER. */
stg_times stg_times_find(stg_span headers);

/* *headers, behind Stagger-Hops, moves behind what no target is sent:
 * Stagger-Not-Before. */
void stg_times_skip(stg_span *headers);

#endif
