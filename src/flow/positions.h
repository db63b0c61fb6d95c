/* positions.h - ranges of positions, in arrays that rise and do not touch.
 *
 * Pure. The caller sees to the room. */
#ifndef STAGGER_FLOW_POSITIONS_H
#define STAGGER_FLOW_POSITIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct stg_positions {
    uint64_t first, last; /* both are in it */
} stg_positions;

/* Adds [first, end), which begins behind the first position of the last one:
 * what touches or overlaps it makes it longer. Nothing where it is empty.
 * Returns the new count: one more at most. */
size_t stg_positions_append(stg_positions *list, size_t count, uint64_t first,
                            uint64_t end);

/* Adds a position, wherever it belongs. Returns the new count: one more at
 * most. */
size_t stg_positions_insert(stg_positions *list, size_t count,
                            uint64_t position);

/* Whether they are as such arrays are, and none begins below the base. */
bool stg_positions_are_sound(const stg_positions *list, size_t count,
                             uint64_t base);

/* Whether one of them has the position. */
bool stg_positions_have(const stg_positions *list, size_t count,
                        uint64_t position);

/* How many positions of [from, end) are in none of them; the first of these is
 * *first, unless there are none. */
uint64_t stg_positions_missing(const stg_positions *list, size_t count,
                               uint64_t from, uint64_t end, uint64_t *first);

#endif
