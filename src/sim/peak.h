/* peak.h - the most events in any window of time, exactly: a ring of the times
 * of those in the window that ends now. Pure. */
#ifndef STAGGER_SIM_PEAK_H
#define STAGGER_SIM_PEAK_H

#include <stdbool.h>

#include <stagger/ns.h>

#include "base/memory.h"

typedef struct stg_sim_peak {
    stg_ns width;    /* of the window: 1 ns to 4 s */
    uint32_t *times; /* their low 32 bits, which tell 4 s apart */
    size_t room;     /* a power of two, or 0 */
    size_t first;
    size_t count;
    size_t most;
    stg_ns last_at;
    const stg_memory *memory;
} stg_sim_peak;

void stg_sim_peak_init(stg_sim_peak *p, stg_ns width, const stg_memory *memory);
void stg_sim_peak_close(stg_sim_peak *p);

/* Forgets all events, and keeps the memory. */
void stg_sim_peak_clear(stg_sim_peak *p);

/* An event, not before the last one. most is then the most in any window
 * [t, t + width). Returns false if there is no memory. */
bool stg_sim_peak_add(stg_sim_peak *p, stg_ns at);

#endif
