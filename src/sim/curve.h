/* curve.h - how many have come by a time, over several repetitions: the mean,
 * and its standard error.
 *
 * What happens within a repetition is not independent: a late client was late
 * because of the others. So how many have come by a time is one value a
 * repetition. Times are counted in the places of a tally (sim/tally.h), each a
 * 64th of its power of two wide, or less.
 *
 * Only whole numbers are added up, so curves can be merged in any order. Pure;
 * a curve belongs to one thread while it is written. */
#ifndef STAGGER_SIM_CURVE_H
#define STAGGER_SIM_CURVE_H

#include <stdbool.h>
#include <stddef.h>

#include <stagger/ns.h>

#include "base/memory.h"
#include "sim/estimate.h"

typedef struct stg_sim_curve {
    uint64_t runs;       /* repetitions */
    uint64_t *steps;     /* by place: what comes there, over repetitions */
    uint64_t *squares;   /* by place: by how much the squares of what each
                            repetition has so far rise there */
    uint32_t *now;       /* by place: of this repetition */
    size_t first, after; /* the places that this repetition has; first ==
                            after: none */
    const stg_memory *memory;
} stg_sim_curve;

void stg_sim_curve_init(stg_sim_curve *c, const stg_memory *memory);
void stg_sim_curve_close(stg_sim_curve *c);

/* What a curve takes at most, in bytes. */
size_t stg_sim_curve_size(void);

/* One of this repetition. Returns false if there is no memory. */
bool stg_sim_curve_add(stg_sim_curve *c, stg_ns at);

/* The repetition has ended and counts; or was stopped and does not. */
void stg_sim_curve_finish(stg_sim_curve *c);
void stg_sim_curve_drop(stg_sim_curve *c);

bool stg_sim_curve_merge(stg_sim_curve *c, const stg_sim_curve *other);

typedef struct stg_sim_curve_point {
    stg_ns at;          /* the last moment of a place */
    stg_estimate count; /* of a repetition, so far */
} stg_sim_curve_point;

/* Where the curve rises, in order of time. points may be NULL to ask how many
 * there are; else it has room for all of them. */
size_t stg_sim_curve_read(const stg_sim_curve *c, stg_sim_curve_point *points);

#endif
