/* memory.h - memory for simulations, and how much there is: a size that
 * cannot fit is refused before it starts. */
#ifndef STAGGER_CLI_SIM_MEMORY_H
#define STAGGER_CLI_SIM_MEMORY_H

#include <stdint.h>

#include "base/memory.h"

/* malloc() and free(), with the system's huge pages for what is large; for any
 * thread. */
stg_memory stg_sim_memory(void);

/* Bytes that this process may take besides what it has: what the system has
 * left, or the least of the limits that are set for it. UINT64_MAX: unknown. */
uint64_t stg_sim_memory_left(void);

#endif
