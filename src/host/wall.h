/* wall.h - what the wall clock shows: for people, and for what must outlive the
 * process. Nothing waits by it. */
#ifndef STAGGER_HOST_WALL_H
#define STAGGER_HOST_WALL_H

#include <time.h>

#include <stagger/ns.h>

/* Nanoseconds since 1970. */
static inline stg_ns stg_wall_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return (stg_ns)t.tv_sec * STG_S + (stg_ns)t.tv_nsec;
}

#endif
