/* dead_options.h - what a store keeps of dead letters (I30).
 *
 * Those that ended (replayed, dropped, expired, cancelled) go after a day. The
 * others stay until one of these is reached, and then a bulk row of their target
 * and cause counts them. */
#ifndef STAGGER_STORE_DEAD_OPTIONS_H
#define STAGGER_STORE_DEAD_OPTIONS_H

#include <stagger/ns.h>

typedef struct stg_dead_options {
    stg_ns keep;  /* 1 m to 365 d; STG_NEVER: for ever */
    uint64_t max; /* rows, from 1; UINT64_MAX: any number */
    /* Percent of the quota of a file, 1 to 30. Where the store is refusing,
     * nothing is evicted for room. */
    uint32_t share;
} stg_dead_options;

#endif
