/* Deliveries in a ring, in the order in which they first came, and a hash table whose
 * chains go through it: what the ring overwrites is taken out of its chain first. */
#include "cli/sink/seen.h"

#include <stdlib.h>

enum { CHAINS = 1 << 20, ATTEMPTS_MAX = INT32_MAX };

/* The hash is FNV-1a, whose high bits are the better ones. */
static uint32_t *find_chain(sink_seen *s, uint64_t hash)
{
    return &s->chains[(hash ^ hash >> 32) % CHAINS];
}

bool stg_sink_seen_init(sink_seen *s)
{
    *s = (sink_seen){.ring = calloc(SINK_SEEN_MAX, sizeof *s->ring),
                     .chains = calloc(CHAINS, sizeof *s->chains)};
    if (s->ring != NULL && s->chains != NULL)
        return true;
    stg_sink_seen_close(s);
    return false;
}

void stg_sink_seen_close(sink_seen *s)
{
    free(s->ring);
    free(s->chains);
    *s = (sink_seen){0};
}

/* The entry is in its chain for certain: only what the ring overwrites is ever
 * taken out. */
static void forget(sink_seen *s, uint32_t place)
{
    uint32_t *link = find_chain(s, s->ring[place].hash);

    while (*link != place + 1)
        link = &s->ring[*link - 1].next;
    *link = s->ring[place].next;
}

static sink_delivery *add(sink_seen *s, uint64_t hash)
{
    uint32_t place = (uint32_t)(s->count % SINK_SEEN_MAX);
    uint32_t *chain = find_chain(s, hash);

    if (s->count >= SINK_SEEN_MAX)
        forget(s, place);
    s->count++;
    s->ring[place] = (sink_delivery){.hash = hash, .next = *chain};
    *chain = place + 1;
    return &s->ring[place];
}

/* Two deliveries with the same hash of 64 bits would be counted as one: of a
 * million that has a probability of about 3 in 10^8. */
sink_delivery *stg_sink_seen_count(sink_seen *s, uint64_t hash)
{
    uint32_t place = *find_chain(s, hash);
    sink_delivery *d;

    while (place != 0 && s->ring[place - 1].hash != hash)
        place = s->ring[place - 1].next;
    d = place != 0 ? &s->ring[place - 1] : add(s, hash);
    if (d->attempts < ATTEMPTS_MAX)
        d->attempts++;
    return d;
}
