/* parallel.h - many jobs over the machine's cores, by threads.
 *
 * Jobs are numbered, and start in that order; which thread does one is left to
 * chance. So what comes out must not depend on it: a job writes to places of
 * its own, or adds whole numbers under a lock. Not pure: it starts threads. */
#ifndef STAGGER_SIM_PARALLEL_H
#define STAGGER_SIM_PARALLEL_H

#include <stddef.h>

/* How many threads the machine runs at once: 1 at least. */
unsigned stg_parallel_cores(void);

/* Does the jobs 0 to count - 1, each once, and returns when all are done.
 * `worker` is the number of the thread, below `threads` (1 to 1024), so that it
 * can have a workplace of its own. Runs with fewer threads where the system has
 * no more. */
void stg_parallel_run(size_t count, unsigned threads,
                      void (*job)(void *ctx, size_t number, unsigned worker),
                      void *ctx);

#endif
