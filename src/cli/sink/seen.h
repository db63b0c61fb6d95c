/* seen.h - how often each delivery came, of the last million of them.
 *
 * A delivery is told by a hash of 64 bits. Beyond SINK_SEEN_MAX the one that
 * first came longest ago is forgotten, and would count from 1 again. The
 * memory, 20 MB at most, is touched as it fills. */
#ifndef STAGGER_CLI_SINK_SEEN_H
#define STAGGER_CLI_SINK_SEEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SINK_SEEN_MAX = 1000000 };

typedef struct sink_delivery {
    uint64_t hash;
    uint32_t next; /* in the same chain: its place + 1; 0: the last */
    uint32_t attempts : 31;
    uint32_t is_delivered : 1; /* it was answered 2xx */
} sink_delivery;

typedef struct sink_seen {
    sink_delivery *ring;
    uint32_t *chains;
    uint64_t count; /* deliveries so far, those forgotten too */
} sink_seen;

/* False: there is no memory. */
bool stg_sink_seen_init(sink_seen *s);
void stg_sink_seen_close(sink_seen *s);

/* The delivery, with this attempt counted. Lent until the next call. */
sink_delivery *stg_sink_seen_count(sink_seen *s, uint64_t hash);

#endif
