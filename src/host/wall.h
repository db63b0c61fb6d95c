/* wall.h - what the wall clock shows: for people, and for what must outlive the
 * process. Nothing waits by it. Instants are nanoseconds since 1970. */
#ifndef STAGGER_HOST_WALL_H
#define STAGGER_HOST_WALL_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include <stagger/ns.h>

static inline stg_ns stg_wall_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return (stg_ns)t.tv_sec * STG_S + (stg_ns)t.tv_nsec;
}

#define STG_UTC_TEXT_MAX 32

/* Writes an instant as 2026-03-01T12:00:00.250Z. Returns text. */
const char *stg_utc_text(uint64_t utc, char text[STG_UTC_TEXT_MAX]);

/* Reads "2026-11-22T10:00:00Z", or with a fraction of a second. False: it is no
 * such text. */
bool stg_instant_read(const char *text, stg_ns *wall);

#endif
