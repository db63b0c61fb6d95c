/* instant.h - a time of the wall clock as a text. */
#ifndef STAGGER_HOST_INSTANT_H
#define STAGGER_HOST_INSTANT_H

#include <stdbool.h>

#include <stagger/ns.h>

/* "2026-11-22T10:00:00Z" or with a fraction of a second: nanoseconds since 1970.
 * False: it is none. */
bool stg_instant_read(const char *text, stg_ns *wall);

#endif
